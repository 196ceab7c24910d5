"""NeMo, its first release (DLLogger) and NeMo-RL."""

from scantling.catalogue.setting_names import Setting

from ..contents import Column
from ..line_format import BYTE, COUNT, VALUE, LineFormat, Place, StepLine, memory, pattern, value

_STEP_VALUES = (
    value(Column.SECONDS, rf"train_step_timing in s:{VALUE}"),
    value(Column.TFLOPS_PER_DEVICE, rf"TFLOPS_per_GPU:{VALUE}"),
    value(Column.TOKENS_PER_S_PER_DEVICE, rf"tokens_per_sec_per_gpu:{VALUE}"),
    value(Column.GLOBAL_BATCH, rf"global_batch_size:{VALUE}"),
    value(Column.SAMPLES_TOTAL, rf"consumed_samples:{VALUE}"),
)
NEMO = LineFormat(
    name="nemo",
    framework="NeMo",
    marks=(
        ("train_step_timing in s",),
        ("[NeMo ",),
        ("nemo_logging", "Epoch 0"),
        ("nemo.collections",),
    ),
    opens=(pattern(r"\[NeMo [IWE] \d{4}-\d\d-\d\d"), pattern(r"Epoch \d+, global step \d+")),
    headers=("Experiments will be logged at", "GPU available: "),
    progress_bars=True,
    lines=(
        StepLine(
            word="train_step_timing in s : ",
            values=(
                value(Column.STEP, rf"- {COUNT} reduced_train_loss"),
                value(Column.SECONDS, rf"train_step_timing in s :{VALUE}"),
                value(Column.TFLOPS_PER_DEVICE, rf"TFLOPS_per_GPU :{VALUE}"),
                value(Column.SAMPLES_TOTAL, rf"consumed_samples :{VALUE}"),
            ),
        ),
        StepLine(
            word="train_step_timing in s: ",
            also="global_step: ",  # an iteration counts within its epoch
            values=(value(Column.STEP, rf"global_step:{VALUE}"), *_STEP_VALUES),
        ),
        StepLine(
            word="train_step_timing in s: ",
            without="global_step: ",
            values=(value(Column.STEP, rf"iteration {COUNT}/"), *_STEP_VALUES),
        ),
        StepLine(
            word="train_step_timing in s=",
            without="train_step_timing in s : ",
            split="]",
            values=(
                value(Column.STEP, rf"global_step={VALUE}"),
                value(Column.SECONDS, rf"train_step_timing in s={VALUE}"),
                value(Column.SAMPLES_TOTAL, rf"consumed_samples={VALUE}"),
            ),
        ),
    ),
    memory=(
        memory("max_memory_allocated: ", rf"max_memory_allocated:{VALUE}", BYTE),
        memory("peak_memory_usage: ", rf"peak_memory_usage:{VALUE}", BYTE),
    ),
    settings={
        "accelerator_name": pattern(r"^GPU 0: (?:NVIDIA |AMD )?([^(\n]{1,60}?)(?: \(UUID|$)")
    },
)

NEMO_RL = LineFormat(
    name="nemo_rl",
    framework="NeMo-RL",
    marks=(("Total step time:", "= Step "), ("Total step time:", "nemo_rl")),
    ignored=(Setting.TP, Setting.PP, Setting.CP, Setting.EP),
    lines=(
        StepLine(word="= Step ", values=(value(Column.STEP, rf"= Step {COUNT}/"),)),
        StepLine(
            word="Total step time:",
            place=Place.AFTER_STEP,
            values=(value(Column.SECONDS, rf"Total step time:{VALUE}s"),),
        ),
        StepLine(
            word="E2E (Tokens/sec/gpu)",  # the other rates are of a part of the step
            place=Place.AFTER_STEP,
            values=(value(Column.TOKENS_PER_S_PER_DEVICE, rf"Tokens/sec/gpu\):{VALUE}"),),
        ),
    ),
)

DLLOGGER = LineFormat(
    name="dllogger",
    framework="NeMo 1 (DLLogger)",
    marks=(("DLLL {",),),
    opens=(pattern(r'^.{0,80}DLLL \{"\w'),),
    headers=('"step": "PARAMETER"',),
    lines=(
        StepLine(
            word='"train_step_tim',
            also="DLLL {",
            values=(
                # of [epoch, step] the last
                value(Column.STEP, rf'"step": \[?(?:\d+, )*{COUNT}'),
                value(Column.SECONDS, rf'"train_step_tim(?:e|ing in s)":{VALUE}'),
                value(Column.TFLOPS_PER_DEVICE, rf'"TFLOPS_per_GPU":{VALUE}'),
                value(Column.GLOBAL_BATCH, rf'"global_batch_size":{VALUE}'),
                value(Column.SAMPLES_TOTAL, rf'"consumed_samples":{VALUE}'),
            ),
        ),
    ),
)
