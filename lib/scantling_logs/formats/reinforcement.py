"""Reinforcement learning with verl and OpenRLHF."""

from scantling.catalogue.setting_names import Setting

from ..contents import Column
from ..line_format import COUNT, GIB, VALUE, LineFormat, StepLine, memory, pattern, value

VERL = LineFormat(
    name="verl",
    framework="verl",
    marks=(
        ("perf/time_per_step:",),
        ("perf/throughput:", "timing_s/"),
        ("timing_s/step:",),
        ("verl.trainer.main_ppo",),
    ),
    opens=(pattern(r"\(TaskRunner pid=\d+\)"), pattern(r"python3? -m verl\.trainer\.main_ppo")),
    ignored=(Setting.TP, Setting.PP, Setting.CP, Setting.EP, Setting.MICRO_BATCH),
    lines=(
        StepLine(
            word="perf/",
            also="step:",
            values=(
                value(Column.STEP, rf"step:{COUNT} - "),
                value(Column.SECONDS, rf"(?:timing_s/step|perf/time_per_step):{VALUE}"),
                value(Column.TOKENS_PER_S_PER_DEVICE, rf"perf/throughput:{VALUE}"),
            ),
        ),
    ),
    memory=(
        memory("perf/max_memory_allocated_gb:", rf"perf/max_memory_allocated_gb:{VALUE}", GIB),
    ),
    settings={
        "num_gpus_per_node": pattern(
            rf"""["']n_gpus_per_node["']: {COUNT}|trainer\.n_gpus_per_node={COUNT}"""
        ),
        "num_nodes": pattern(rf"""["']nnodes["']: ([1-9]\d*)|trainer\.nnodes={COUNT}"""),
    },
)

OPENRLHF = LineFormat(
    name="openrlhf",
    framework="OpenRLHF",
    marks=(("Global step ", "policy_loss"), ("openrlhf", "Global step ")),
    ignored=(Setting.TP, Setting.PP, Setting.CP, Setting.EP),
    lines=(
        StepLine(
            word="Global step ",
            precise_clock=True,
            values=(
                value(Column.STEP, rf"Global step {COUNT}:"),
                value(Column.SECONDS, rf"timing/(?:step_total|total)'?:{VALUE}"),
            ),
        ),
    ),
)
