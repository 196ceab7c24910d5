"""DeepSpeed's own lines and the third step of DeepSpeed-Chat."""

from dataclasses import replace

from ..contents import Column
from ..line_format import COUNT, GIB, RELEASE, VALUE, LineFormat, StepLine, memory, pattern, value

# DeepSpeed's launcher quotes the command of the last process of a node
LAST_LOCAL_RANK = pattern(rf"sigkill_handler\].*--local_rank={COUNT}")

DEEPSPEED = LineFormat(
    name="deepspeed",
    framework="DeepSpeed",
    marks=(
        ("SamplesPerSec=",),
        ("iter time (s): ", "samples/sec:"),
        ("[deepspeed]", "samples/sec"),
    ),
    opens=(pattern(r"\[(?:INFO|WARNING|ERROR)\] \[\w+\.py:\d+:\w+\]"),),
    headers=("DeepSpeed info: version=",),
    lines=(
        StepLine(
            word="SamplesPerSec=",
            precise_clock=True,
            values=(
                value(Column.STEP, rf"global_step={COUNT}|\] \d+/{COUNT}, (?:RunningAvg)?Samples"),
                value(Column.SAMPLES_PER_S, rf"(?:Curr|, )SamplesPerSec={VALUE}"),
            ),
        ),
        StepLine(
            word="iter time (s): ",
            also="steps: ",
            values=(
                value(Column.STEP, rf"steps: {COUNT}"),
                value(Column.SECONDS, rf"iter time \(s\):{VALUE}"),
                value(Column.SAMPLES_PER_S, rf"samples/sec:{VALUE}"),
            ),
        ),
    ),
    memory=(
        memory("MaxMemAllocated=", rf"MaxMemAllocated={VALUE}GB", GIB),
        memory("max mem: ", rf"max mem:{VALUE}G", GIB),
    ),
    settings={
        "release": pattern(rf"DeepSpeed info: version={RELEASE}"),
        "last_local_rank": LAST_LOCAL_RANK,
        # of its configuration, whose 29 columns of name and dots the name fills
        "micro_batch_size": pattern(
            rf"(?:per_device_train_batch_size[ =]|train_micro_batch_size_per_gpu  ){COUNT}"
        ),
        "seq_length": pattern(rf"max_seq_len[ =]{COUNT}"),
        "model_name": pattern(r"model_name_or_path[ =](\S+)"),
    },
)

# its third step: the rate of an engine is that of its part of the step
DEEPSPEED_CHAT = replace(
    DEEPSPEED,
    name="deepspeed",
    framework="DeepSpeed-Chat",
    marks=(("SamplesPerSec=", "|ppo_ep:"), ("SamplesPerSec=", "PPO Epoch:")),
    lines=(
        StepLine(
            word="SamplesPerSec=",
            precise_clock=True,
            values=(value(Column.STEP, rf"global_step={COUNT}"),),
        ),
    ),
)
