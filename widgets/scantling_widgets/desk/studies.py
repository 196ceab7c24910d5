"""Many assessments of changed copies of one design. Each figure is the library's; nothing is worked
out here."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product

from scantling.advise import sensitivity, sweeps
from scantling.base.errors import DesignError
from scantling.base.records import Lines, record

from .. import words
from . import choices, inputs

_ALONG, _ACROSS = 11, 7  # values of a sweep over one input, and rows of one over two
# controls of the desk that a sweep may go along, beside those that controls.yaml says `swept` of
SWEPT, _FINE = tuple(inputs.SAID["swept"]), inputs.SAID["fine"]


@record
class Along:
    """One input to sweep along: the control, its name, the values and how each is said; `now` is
    the place of the design's own."""

    field: str
    name: str
    values: tuple
    texts: Lines
    now: int


def assessed(judge: Callable, design, fields: Mapping) -> Mapping | None:
    """The assessment of a changed copy as plain data; None where the design does not allow the
    change."""
    try:
        return judge(design.change(fields), False).as_dict(advice=False)
    except DesignError:
        return None


def device_counts(judge: Callable, design, cluster) -> tuple:
    """The design on other numbers of devices, whole nodes, from an eighth to eight times as
    many; None where the design does not allow the number."""
    node, devices = cluster.devices_per_node, cluster.devices
    counts = choices.octaves(node, 2**18, node, steps=(1.0, 1.5))
    counts = [n for n in counts if devices / 8 <= n <= devices * 8]
    counts = choices.with_value(counts, devices)

    def point(n):
        given = assessed(judge, design, {"cluster.devices": n})
        return given and {"devices": n, "given": given}

    return len(counts), map(point, counts)


def vary(assessment, key: str) -> tuple:
    """The inputs of a design one after the other, each a step down and up: for each, its rows of
    the library's tornado of one quantity."""
    todo = sensitivity.inputs(assessment)
    return len(todo), (sensitivity.tornado(assessment, key, over=[one]) for one in todo)


# ---------------------------------------------------------------- sweeps along the desk's own
# controls
def alongs(session) -> list:
    """Every input that a sweep may go along, with the values of its control around the design's
    own."""
    out = []
    for field in (field for group in inputs.groups(session) for field in group["fields"]):
        name, found = field["field"], None
        if "swept" in inputs.about(name) and not name.startswith("plan."):
            found = _factors(session, name)
        elif (
            field["made"] in ("slider", "list")
            and name.endswith(SWEPT)
            and not field.get("disabled")
        ):
            found = _options(session, name, field)
        if found is not None and len(found.values) > 1:
            out.append(found)
    return out


def _place(options: list, value) -> int:
    return next((i for i, option in enumerate(options) if option["value"] == value), -1)


def _options(session, name: str, field: dict) -> Along:
    empty = (None, "", 0) if name.endswith(".tokens") else (None, "")
    options = [option for option in field["options"] if option["value"] not in empty]
    value = field["value"]
    if name.startswith("plan.") and value is None:
        value = words.at(session.now.given, name)
    at = _place(options, value)
    step = max(1, len(options) // 24) if at >= 0 and name in _FINE else 1
    kept = options[max(at, 0) % step :: step]
    texts, values = (tuple(option[key] for option in kept) for key in ("text", "value"))
    around = narrowed(
        Along(
            field=name,
            name=inputs.CONTROLS.get(name, {}).get("swept", field["label"]),
            values=values,
            texts=texts,
            now=_place(kept, value),
        ),
        _ALONG,
    )
    if len(set(around.texts)) < len(around.texts):
        return replace(around, texts=tuple(map(str, around.values)))
    return around


def _factors(session, name: str) -> Along:
    """Multiples of a number, of what is taken for it where the design leaves it out."""
    stated = inputs.stated(session, name)
    now = inputs.computed(session, name) if stated is None else stated
    ladder, at = choices.around(now, whole=name.endswith(".spares"))
    about = inputs.CONTROLS[name]
    unit = about.get("swept_unit", inputs.unit(name))
    texts = (words.plain(float(v) if isinstance(v, float) else v) for v in ladder)
    return Along(
        field=name,
        name=about["swept"],
        values=tuple(ladder),
        texts=tuple(f"{text} {unit}".strip() for text in texts),
        now=at,
    )


def sweep(session, along: Along, across: Along | None = None) -> tuple:
    """The library's cells along one input or, row by row, along two: rows are `across`, columns
    `along`."""
    places = [range(len(of.values)) for of in (across, along) if of]
    named = [of for of in (across, along) if of]
    fields = [fields_of(session, *zip(named, place)) for place in product(*places)]
    design = session.now.design
    return len(fields), (sweeps.cell(design, tuple(of), tuple(of.values())) for of in fields)


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


def fields_of(session, *pairs) -> dict:
    """The change of the design that one cell stands for, from (input, place) pairs."""
    out = {}
    for along, place in pairs:
        out |= inputs.changes(session, along.field, along.values[place])
    return out
