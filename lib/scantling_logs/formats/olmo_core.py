"""OLMo-core."""

from ..contents import Column
from ..line_format import (
    COUNT,
    GIB,
    MIB,
    VALUE,
    LineFormat,
    Place,
    StepLine,
    memory,
    pattern,
    steps_per_second,
    value,
)

OLMO_CORE = LineFormat(
    name="olmo_core",
    framework="OLMo-core",
    marks=(("[step=", "throughput/"), ("olmo_core", "throughput/device")),
    lines=(
        StepLine(
            word="[step=", precise_clock=True, values=(value(Column.STEP, rf"\[step={COUNT}/"),)
        ),
        StepLine(
            word="throughput/device/",
            place=Place.AFTER_STEP,
            values=(
                value(
                    Column.TOKENS_PER_S_PER_DEVICE,
                    rf"throughput/device/(?:TPS|tokens_per_second)={VALUE}",
                ),
                steps_per_second(rf"throughput/device/(?:BPS|batches_per_second)={VALUE}"),
            ),
        ),
    ),
    memory=(
        memory("System/Peak GPU Memory ", rf"System/Peak GPU Memory \(GiB\)={VALUE}", GIB),
        memory("GPU reserved mem ", rf"GPU reserved mem \(GiB\)={VALUE}", GIB),
        memory("System/Peak GPU Memory ", rf"System/Peak GPU Memory \(MB\)={VALUE}", MIB),
    ),
    settings={
        "world_size": pattern(rf"world_size={COUNT}"),
        "seq_length": pattern(rf"sequence_length={COUNT}"),
    },
)
