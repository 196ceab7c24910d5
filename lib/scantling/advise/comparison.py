"""Several designs side by side: what was asked where it differs, the plans, the figures."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..base.cells import markdown_cell
from ..base.displayed import Displayed
from ..base.errors import DesignError
from ..base.quantities.quantity import quantity, show
from ..base.records import Lines, record
from ..base.show import is_number, params
from ..design.design import Design
from ..verdict.assessment import Assessment
from ..verdict.overheads import parts_that_moved
from ..verdict.result import FigureKey, Result, band_of, figure, in_one_convention
from ..verdict.verdicts import VERDICTS
from .explanation import plain

# figures of the assessments, and fields of the plans, that are set side by side
FIGURES: tuple[FigureKey, ...] = (
    "verdict",
    "devices_used",
    "params",
    "mfu_shown",
    "step_s",
    "tokens_per_s_per_device",
    "bubble_fraction",
    "oom_probability",
    "memory_bytes.total",
    "likely.days",
    "likely.cost_usd",
    "days",
    "goodput",
    "mtbf_s",
    "checkpoint_interval_s",
    "checkpoint_overhead",
    "cost_usd",
    "promise.days_p90",
    "promise.cost_p90",
    "energy_kwh",
)
PLAN = (
    "tp",
    "pp",
    "vpp",
    "cp",
    "dp",
    "ep",
    "sharding",
    "schedule",
    "micro_batch",
    "grad_accum",
    "recompute",
    "offload",
    "precision",
)
STEP = "step_breakdown_s"
MANY = 1e6  # from here a number is said with a suffix


@record
class Row:
    """One line of a comparison. `group`: asked, plan, figure or step; `values` as JSON has them,
    `cells` as text with units, `bands` the 80 % band of each or an empty text."""

    group: str
    key: str
    label: str
    values: tuple[Any, ...]
    cells: Lines
    bands: Lines

    @property
    def differs(self) -> bool:
        """Whether the designs do not all say the same."""
        return any(value != self.values[0] for value in self.values)


@record
class Comparison(Displayed):
    """Designs side by side: their names, and rows of which those that differ stand first."""

    names: Lines
    rows: tuple[Row, ...]

    def as_dict(self) -> dict[str, Any]:
        """Names, and the rows as plain data."""
        return {"names": list(self.names), "rows": [vars(row) for row in self.rows]}

    def cells(self) -> list[list[str]]:
        """Lines of a table: the names, then label and a cell a design; the verdict leads, then what
        differs."""
        rows = sorted(self.rows, key=lambda row: (row.key != "verdict", not row.differs))
        lines = (
            [f"{cell} ({band})" if band else cell for cell, band in zip(row.cells, row.bands)]
            for row in rows
        )
        return [["", *self.names], *([row.label, *line] for row, line in zip(rows, lines))]

    def markdown(self) -> str:
        """The comparison as a Markdown table."""
        names, *lines = [[markdown_cell(cell) for cell in line] for line in self.cells()]
        rule = ["---"] + ["---:"] * len(self.names)
        return "\n".join(f"| {' | '.join(line)} |" for line in (names, rule, *lines)) + "\n"

    __repr__ = Displayed.__repr__


def compare(assessments: Iterable[Assessment]) -> Comparison:
    """Set assessments side by side: the fields asked that differ, the plans, the figures.

    Raises DesignError for fewer than two.
    """
    from_all = list(assessments)
    if len(from_all) < 2:
        raise DesignError(problem="one design has nothing to be compared with; name two or more")
    stated = [flat(one.design.data()) for one in from_all]
    fields = dict.fromkeys(field for one in stated for field in one if field != "name")
    rows = [_row("asked", field, field, [one.get(field) for one in stated]) for field in fields]
    results: list[Result] = [
        {"verdict": one.verdict, **one.headline(), "likely": one.likely.row()} for one in from_all
    ]
    return Comparison(
        names=tuple(one.resolved.name for one in from_all),
        rows=(
            *(row for row in rows if row.differs),
            *plans(results),
            *figures(results),
            *step_parts(results),
        ),
    )


def figures(results: Sequence[Result]) -> list[Row]:
    """A row for each headline figure that any of the results has; MFU in one convention."""
    rows = []
    results = in_one_convention(results)
    causal = any(result.get("mfu_basis") == "causal" for result in results)
    for key in FIGURES:
        values = [figure(result, key) for result in results]
        if any(value is not None for value in values):
            bands = tuple(band_of(result, key) for result in results)
            label = quantity(key).label
            if key == "mfu_shown" and causal:
                label += ", causal attention"
            rows.append(_row("figure", key, label, values, bands))
    return rows


def step_parts(results: Sequence[Result]) -> list[Row]:
    """A row for each part of the step that moved from one result to another, the widest first, and
    one for all others together."""
    moved = parts_that_moved([result.get("step_breakdown_s") or {} for result in results])
    return [_row("step", f"{STEP}.{one.part}", f"Step: {one.label}", one.seconds) for one in moved]


def plans(results: Sequence[Result]) -> list[Row]:
    """A row for each field in which the plans of the results differ."""
    rows = []
    rows_of_plans: list[Mapping[str, Any]] = [{**(result.get("plan") or {})} for result in results]
    for field in PLAN:
        key = f"plan.{field}"
        values = [plan.get(field) for plan in rows_of_plans]
        if any(value is not None for value in values):
            rows.append(_row("plan", key, quantity(key).label, values))
    return [row for row in rows if row.differs]


def _row(
    group: str, key: str, label: str, values: Sequence[Any], bands: Lines | None = None
) -> Row:
    return Row(
        group=group,
        key=key,
        label=label,
        values=tuple(values),
        cells=tuple(_cell(group, key, value) for value in values),
        bands=tuple("" for _ in values) if bands is None else bands,
    )


def _cell(group: str, key: str, value: Any) -> str:
    """A value as text; of what was asked a long number with its suffix."""
    if key == "verdict":
        return VERDICTS[value].name
    if group != "asked":
        return show(STEP if group == "step" else key, value)
    if value is None:
        return "not given"
    if isinstance(value, list) and all(isinstance(one, Mapping) for one in value):
        fields = [
            ", ".join(f"{name} {_cell(group, name, x)}" for name, x in flat(one).items())
            for one in value
        ]
        return "; ".join(fields)
    return params(value) if is_number(value) and abs(value) >= MANY else plain(value)


def changed(before: Design, after: Design) -> dict[str, tuple[Any, Any]]:
    """{path: (before, after)} of the fields in which two designs differ."""
    a = flat(before.data())
    b = flat(after.data())
    paths = dict.fromkeys([*a, *b])
    return {p: (a.get(p), b.get(p)) for p in paths if a.get(p) != b.get(p)}


def flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested fields by dotted path."""
    out: dict[str, Any] = {}
    for key, value in data.items():
        path = f"{prefix}{key}"
        out |= flat(value, f"{path}.") if isinstance(value, Mapping) else {path: value}
    return out
