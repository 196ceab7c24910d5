"""Many assessments of changed copies of one design. Each figure is the library's; nothing is worked
out here."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, TypedDict

from scantling.advise import sensitivity, sweeps
from scantling.advise.explanation import plain
from scantling.base.errors import DesignError
from scantling.base.records import Lines, at, record
from scantling.design.cluster import Cluster
from scantling.design.design import Design
from scantling.verdict.assessment import Assessment
from scantling.verdict.result import Result

from . import choices, inputs
from .choices import Option
from .control import Control, ControlState
from .controls import control_of
from .session import Fields, Judge, Moment, Session, figures_of

Figures = Result


class Point(TypedDict):
    """A design on another number of devices."""

    devices: int
    figures: Figures


_ALONG, _ACROSS = 11, 7  # values of a sweep over one input, and rows of one over two


@record
class Along:
    """One input to sweep along: the control, its name, the values and how each is said; `now` is
    the place of the design's own."""

    field: str
    name: str
    values: tuple[Any, ...]
    texts: Lines
    now: int


def assessed(judge: Judge, design: Design, fields: Fields) -> Figures | None:
    """The assessment of a changed copy as plain data; None where the design does not allow the
    change."""
    try:
        return figures_of(judge(design.change(fields), False), advice=False)
    except DesignError:
        return None


def device_counts(
    judge: Judge, design: Design, cluster: Cluster
) -> tuple[int, Iterator[Point | None]]:
    """The design on other numbers of devices, whole nodes, from an eighth to eight times as
    many; None where the design does not allow the number."""
    node, devices = cluster.devices_per_node, cluster.devices
    counts = choices.octaves(node, 2**18, node, steps=(1.0, 1.5))
    counts = [n for n in counts if devices / 8 <= n <= devices * 8]
    counts = choices.with_value(counts, devices)

    def point(devices: int) -> Point | None:
        figures = assessed(judge, design, {"cluster.devices": devices})
        return None if figures is None else {"devices": devices, "figures": figures}

    return len(counts), map(point, counts)


def vary(assessment: Assessment, key: str) -> tuple[int, Iterator[list[sensitivity.Swing]]]:
    """The inputs of a design one after the other, each a step down and up: for each, its rows of
    the library's tornado of one quantity."""
    todo = sensitivity.inputs(assessment)
    return len(todo), (sensitivity.tornado(assessment, key, over=[one]) for one in todo)


# ---------------------------------------------------------------- sweeps along the desk's own
# controls
def alongs(session: Session) -> list[Along]:
    """Every input that a sweep may go along, with the values of its control around the design's
    own."""
    out = []
    for group in inputs.groups(session):
        for state in group.controls:
            along = _along(session.now, state)
            if along is not None and len(along.values) > 1:
                out.append(along)
    return out


def _along(now: Moment, state: ControlState) -> Along | None:
    """The values of one control; None where no sweep goes along it."""
    control = control_of(state.field)
    if control is None:
        return None
    if control.swept:
        return None if state.disabled else _options(now, control, state)
    return _factors(now, control) if control.axis else None


def _place(options: Sequence[Option], value: Any) -> int:
    return next((i for i, option in enumerate(options) if option["value"] == value), -1)


def _options(now: Moment, control: Control, state: ControlState) -> Along:
    """What a slider or a list offers."""
    empty = (None, "", 0) if state.field.endswith(".tokens") else (None, "")
    options = [option for option in state.options if option["value"] not in empty]
    value = state.value
    if state.field.startswith("plan.") and value is None:
        value = at(now.figures, state.field)
    place = _place(options, value)
    step = max(1, len(options) // 24) if place >= 0 and control.coarse else 1
    offered = options[max(place, 0) % step :: step]
    around = narrowed(
        Along(
            field=state.field,
            name=control.axis or control.label,
            values=tuple(option["value"] for option in offered),
            texts=tuple(option["text"] for option in offered),
            now=_place(offered, value),
        ),
        _ALONG,
    )
    if len(set(around.texts)) < len(around.texts):
        return replace(around, texts=tuple(map(str, around.values)))
    return around


def _factors(now: Moment, control: Control) -> Along:
    """Multiples of a number, of what is taken for it where the design leaves it out."""
    stated = control.stated(now)
    value = control.computed(now) if stated is None else stated
    ladder, place = choices.around(value, whole=control.field.endswith(".spares"))
    unit = control.unit_text() if control.axis_unit is None else control.axis_unit
    texts = (plain(float(v) if isinstance(v, float) else v) for v in ladder)
    return Along(
        field=control.path(now.resolved),
        name=control.axis,
        values=tuple(ladder),
        texts=tuple(f"{text} {unit}".strip() for text in texts),
        now=place,
    )


def sweep(
    session: Session, along: Along, across: Along | None = None
) -> tuple[int, Iterator[sweeps.Cell]]:
    """The library's cells along one input or, row by row, along two: rows are `across`, columns
    `along`."""
    axes = [axis for axis in (across, along) if axis]
    places = product(*(range(len(axis.values)) for axis in axes))
    fields = [fields_of(session.now, *zip(axes, place)) for place in places]
    design = session.now.design
    return len(fields), (cell for of in fields for cell in sweeps.cells(design, [of]))


def narrowed(along: Along, most: int = _ACROSS) -> Along:
    """At most so many values, those around the design's own."""
    first = max(0, min(max(along.now, 0) - most // 2, len(along.values) - most))
    cut = slice(first, first + most)
    return replace(
        along,
        values=along.values[cut],
        texts=along.texts[cut],
        now=along.now - first if along.now >= 0 else -1,
    )


def fields_of(now: Moment, *pairs: tuple[Along, int]) -> Fields:
    """The change of the design that one cell stands for, from (input, place) pairs."""
    out: dict[str, Any] = {}
    for along, place in pairs:
        out |= inputs.changes(now, along.field, along.values[place])
    return out
