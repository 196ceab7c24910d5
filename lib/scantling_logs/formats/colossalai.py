"""Colossal-AI."""

from ..contents import Column
from ..line_format import COUNT, VALUE, LineFormat, StepLine, pattern, value

COLOSSALAI = LineFormat(
    name="colossalai",
    framework="Colossal-AI",
    marks=(("Step time:", "TFLOPS:", "Loss:"), ("colossalai - ",), ("colossalai", "| step")),
    opens=(pattern(r"colossalai - \S+ - (?:\d{4}-\d\d-\d\d|INFO)"),),
    progress_bars=True,
    lines=(
        StepLine(
            word="Step time:",
            values=(
                value(Column.STEP, rf"\[{COUNT}/\d+\]"),
                value(Column.SECONDS, rf"Step time:{VALUE} ?s"),
                value(Column.TFLOPS_PER_DEVICE, rf"TFLOPS:{VALUE}"),
            ),
        ),
    ),
    settings={
        "world_size": pattern(rf"world size: {COUNT}"),
        "data_parallel_size": pattern(rf"data parallel size: {COUNT}"),
        "pipeline_model_parallel_size": pattern(rf"pipeline parallel size: {COUNT}"),
        "tensor_model_parallel_size": pattern(rf"tensor parallel size: {COUNT}"),
    },
)
