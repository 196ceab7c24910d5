"""Composer."""

from ..contents import Column
from ..line_format import (
    COUNT,
    GB,
    TERA,
    VALUE,
    LineFormat,
    Place,
    StepLine,
    memory,
    pattern,
    steps_per_second,
    value,
)

COMPOSER = LineFormat(
    name="composer",
    framework="Composer",
    marks=(("[batch=", "Train time/"), ("[batch=", "throughput/")),
    lines=(
        StepLine(word="[batch=", values=(value(Column.STEP, rf"\[batch={COUNT}/"),)),
        StepLine(
            word="throughput/",
            place=Place.AFTER_STEP,
            values=(
                steps_per_second(rf" throughput/batches_per_sec:{VALUE}"),
                value(Column.TOKENS_PER_S, rf" throughput/tokens_per_sec:{VALUE}"),
                value(Column.TOKENS_PER_S_PER_DEVICE, rf"throughput/device/tokens_per_sec:{VALUE}"),
                value(Column.SAMPLES_PER_S, rf" throughput/samples_per_sec:{VALUE}"),
                value(Column.TFLOPS_PER_DEVICE, rf"throughput/device/flops_per_sec:{VALUE}", TERA),
            ),
        ),
    ),
    memory=(memory("memory/peak_allocated_mem: ", rf"memory/peak_allocated_mem:{VALUE}", GB),),
    settings={
        "global_batch_size": pattern(rf"global_train_batch_size: {COUNT}"),
        "seq_length": pattern(rf"max_seq_len: {COUNT}"),
    },
)
