"""torchtune."""

from ..contents import Column
from ..line_format import COUNT, GIB, VALUE, LineFormat, StepLine, memory, pattern, value

TORCHTUNE = LineFormat(
    name="torchtune",
    framework="torchtune",
    marks=(
        ("Step 1 | loss:",),
        ("| loss:", "tokens_per_second_per_gpu:"),
        ("torchtune", "| loss:"),
    ),
    opens=(pattern(r"(?<!\d)\d{1,9}\|\d+\|Loss: "),),
    headers=("with resolved config:",),
    progress_bars=True,
    lines=(
        StepLine(
            word=" | loss:",
            precise_clock=True,
            values=(
                value(Column.STEP, rf"Step {COUNT} \| loss"),
                value(Column.TOKENS_PER_S_PER_DEVICE, rf"tokens_per_second_per_gpu:{VALUE}"),
            ),
        ),
    ),
    memory=(
        memory("peak_memory_active:", rf"peak_memory_active:{VALUE}", GIB),
        memory("peak_memory_reserved:", rf"peak_memory_reserved:{VALUE}", GIB),
    ),
)
