"""Which format a file has, by its content, and what it holds."""

from pathlib import Path

from scantling.base.files import COMMAS, OTHER_SEPARATORS, other_separator

from .contents import Contents
from .file_format import FileFormat
from .formats import FORMATS, Format
from .formats.csv_metrics import CSV_METRICS
from .line_reader import LineReader
from .text import clean, head, wrong_for

LINE = 60_000  # bytes of a line that are looked at, so that a long one hides nothing
TABLES = ("lightning_csv", "nvidia_smi", "wandb_history")


def recognise(path: Path) -> Format:
    """The format of a file. Raises DesignError, with how to give the figures by hand, where no
    format knows it."""
    text = clean(head(path, of_line=LINE))
    for form in FORMATS:
        if form.knows(text):
            return form
    separator = other_separator(text)
    if separator and CSV_METRICS.knows(text.replace(separator, ",")):
        problem = f"is separated by {OTHER_SEPARATORS[separator]}"
        raise wrong_for(path)(problem=problem, allowed=COMMAS)
    names = sorted({*TABLES, *(form.name for form in FORMATS)})
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


def contents_of(path: Path) -> Contents:
    """What a log holds, read as its format has it. Raises DesignError."""
    form = recognise(path)
    log = Contents(format=form.name, framework=form.framework)
    if isinstance(form, FileFormat):
        form.read(path, log)
        return log
    log.ignored = form.ignored
    log.data_parallel_only = form.data_parallel_only
    LineReader(form, log).read(path)
    return log
