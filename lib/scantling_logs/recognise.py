"""Which format a file has, by its content."""

from .engine import Format, formats
from .text import clean, head, wrong_for

LINE = 60_000  # bytes of a line that are looked at, so that a long one hides nothing
TABLES = ("lightning_csv", "nvidia_smi", "wandb_history")


def recognise(path) -> Format:
    """The format of a file, which has `read(path)`. Raises DesignError, with how to give the
    figures by hand, where no format knows it."""
    text = clean(head(path, of_line=LINE))
    for form in formats():
        if form.knows(text):
            return form
    names = sorted({*TABLES, *(form.name for form in formats())})
    raise wrong_for(path)(
        problem=(
            "is no log of a known format: looked for step lines, tables and traces of "
            + ", ".join(names)
        ),
        allowed=(
            "a training log; without one, write the step time and the plan into the design: "
            "measured: {step_s: 5.2} and plan: {tp: 8, pp: 4}"
        ),
    )
