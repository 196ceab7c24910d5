"""Several designs side by side: where their inputs and plans differ, their headline figures, memory
and step to one scale."""

from collections.abc import Iterable, Sequence
from json import loads
from pathlib import Path

from scantling.advise import comparison as side_by_side

from ..charts import pictures
from ..charts.figure import Facts
from ..charts.plans import memories, steps
from .jobs import assessment_in, today
from .page import templated
from .report_batch import Record, write


def comparison(results: Sequence[Facts], date: str | None = None) -> str:
    """A page that sets assessments (`Assessment.as_dict()`) side by side."""
    planned = [r for r in results if r.get("plan")]
    figures = (memories, steps) if len(planned) > 1 else ()
    return templated(
        "compare",
        title="Designs side by side",
        date=date or today(),
        results=results,
        rows=[*side_by_side.figures(list(results)), *side_by_side.step_parts(list(results))],
        plans=side_by_side.plans(list(results)),
        pictures=[pictures.draw(figure, planned[0], planned) for figure in figures],
    )


def write_comparison(records: Iterable[Record], out: str | Path) -> Path | None:
    """The comparison of the reports of `records` that stand in the folder `out`; None where there
    are fewer than two."""
    results = [result_of(Path(out) / f"{r.name}.ipynb") for r in records]
    if len(results) < 2:
        return None
    write(Path(out) / "comparison.html", comparison(results))
    return Path(out) / "comparison.html"


def result_of(notebook: Path) -> Facts:
    """The assessment that an executed report notebook holds."""
    return assessment_in(loads(notebook.read_text(encoding="utf-8")))
