"""Which format a file has, by its content."""

from ..base.errors import DesignError, plain
from .engine import formats
from .formats import (
    csv_metrics,
    dllogger,
    json_series,
    kineto,
    mlperf_mllog,
    nccl_tests,
    tensorboard,
)
from .text import clean, head

BEFORE = (tensorboard, kineto, json_series, mlperf_mllog, dllogger)
AFTER = (nccl_tests, csv_metrics)


def names() -> list[str]:
    """The names of all formats that are known."""
    lines = (form.name for form in formats())
    files = (m.NAME for m in (*BEFORE, *AFTER))
    return sorted(
        {
            *lines,
            *files,
            "lightning_csv",
            "nvidia_smi",
            "wandb_history",
        }
    )


def recognise(path):
    """The reader of a file: what has `read(path)`. Raises DesignError, with how to give the
    figures by hand, where no format knows it."""
    text = clean(head(path))
    table = csv_metrics.knows(text)  # there a progress bar is nothing
    for form in (*BEFORE, *formats(), *AFTER):
        if form.knows(text) and not (
            table
            and getattr(
                form,
                "name",
                "",
            )
            == "progress_bar"
        ):
            return form
    raise DesignError(
        plain(str(getattr(path, "name", path)).rpartition("/")[2], 200),
        problem=(
            "is no log of a known format: looked for step lines, tables and traces of "
            + ", ".join(names())
        ),
        allowed=(
            "a training log; without one, write the step time and the plan into the design: "
            "measured: {step_s: 5.2} and plan: {tp: 8, pp: 4}"
        ),
    )
