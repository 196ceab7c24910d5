"""Many assessments of changed copies of one design. Each figure is the library's; nothing is worked
out here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scantling.advise import sensitivity, sweeps
from scantling.base.errors import DesignError

from . import choices, inputs, words

_ALONG, _ACROSS = 11, 7  # values of a sweep over one input, and rows of one over two
# controls of the desk that a sweep may go along
SWEPT = (
    "cluster.devices",
    "model.size",
    "model.experts",
    "model.top_k",
    "cluster.scale_out",
    "cluster.accelerator",
    ".seq_len",
    ".global_batch",
    ".tokens",
    ".precision",
    "plan.tp",
    "plan.pp",
    "plan.cp",
    "plan.ep",
    "plan.micro_batch",
    "plan.sharding",
    "plan.recompute",
    "plan.schedule",
)
_FACTORS = {
    "reliability.failures_per_1000_node_days": "Failures per 1,000 node-days",
    "reliability.checkpoint_stall_s": "Stall of a save",
    "reliability.restart_s": "Restart time",
    "reliability.spares": "Spare nodes",
    "prices.usd_per_device_hour": "Price per device-hour",
}


_UNITS = {"reliability.failures_per_1000_node_days": "", "prices.usd_per_device_hour": "USD"}


@dataclass(frozen=True)
class Along:
    """One input to sweep along: the control, its name, the values and how each is said; `now` is
    the place of the design's own."""

    field: str
    name: str
    values: tuple
    texts: tuple[str, ...]
    now: int


def assessed(judge: Callable, design, fields: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The assessment of a changed copy as plain data; None where the design does not allow the
    change."""
    try:
        return judge(design.change(fields), False).as_dict(advice=False)
    except DesignError:
        return None


def device_counts(judge: Callable, design, cluster) -> tuple[int, Iterator[dict]]:
    """The design on other numbers of devices, whole nodes, from an eighth to eight times as
    many."""
    counts = [
        n
        for n in choices.octaves(
            cluster.devices_per_node, 2**18, cluster.devices_per_node, steps=(1.0, 1.5)
        )
        if cluster.devices / 8 <= n <= cluster.devices * 8
    ]
    counts = choices.with_value(counts, cluster.devices)

    def run():
        for n in counts:
            given = assessed(judge, design, {"cluster.devices": n})
            yield {"devices": n, "given": given} if given is not None else None

    return len(counts), run()


def vary(assessment, key: str) -> tuple[int, Iterator[list[dict]]]:
    """The inputs of a design one after the other, each a step down and up: for each, its rows of
    the library's tornado of one quantity."""
    todo = sensitivity.inputs(assessment)
    return len(todo), (sensitivity.tornado(assessment, key, over=[one]) for one in todo)


# ---------------------------------------------------------------- sweeps along the desk's own
# controls
def alongs(session) -> list[Along]:
    """Every input that a sweep may go along, with the values of its control around the design's
    own."""
    out = []
    for group in inputs.groups(session):
        for field in group["fields"]:
            name = field["field"]
            if name in _FACTORS:
                found = _factors(session, name, field)
            elif field["kind"] != "number" and name.endswith(SWEPT) and not field.get("disabled"):
                found = _options(session, name, field)
            else:
                continue
            if found is not None and len(found.values) > 1:
                out.append(found)
    return out


def _options(session, name: str, field: dict, most: int = _ALONG) -> Along | None:
    options = [
        o
        for o in field["options"]
        if o["value"] not in (None, "") and not (name.endswith(".tokens") and not o["value"])
    ]
    value = field["value"]
    if name.startswith("plan.") and value is None:
        value = (session.now.given.get("plan") or {}).get(name.removeprefix("plan."))
    at = next((i for i, o in enumerate(options) if o["value"] == value), None)
    step = (
        max(1, len(options) // 24)
        if at is not None and name in ("cluster.devices", "model.size")
        else 1
    )  # fine ladders in larger steps
    kept = options[(at or 0) % step :: step]
    at = next((i for i, o in enumerate(kept) if o["value"] == value), None)
    first = max(0, min((at or 0) - most // 2, len(kept) - most))
    kept = kept[first : first + most]
    at = next((i for i, o in enumerate(kept) if o["value"] == value), -1)
    label = {"plan.micro_batch": "Micro-batch"}.get(name, field["label"])
    return Along(
        name,
        label,
        tuple(o["value"] for o in kept),
        tuple(dict.fromkeys(o["text"] for o in kept))
        if len({o["text"] for o in kept}) == len(kept)
        else tuple(str(o["value"]) for o in kept),
        at,
    )


def _factors(session, name: str, field: dict) -> Along | None:
    ladder, now = choices.around(_now_of(session, name), whole=name.endswith("spares"))
    return (
        Along(
            name,
            _FACTORS[name],
            tuple(ladder),
            tuple(
                (
                    f"{words.plain(float(v)) if isinstance(v, float) else f'{v:,}'} "
                    f"{_UNITS.get(name, field.get('unit', ''))}"
                ).strip()
                for v in ladder
            ),
            now,
        )
        if ladder
        else None
    )


def _now_of(session, name: str):
    section, key = name.split(".")
    value = getattr(getattr(session.now.design, section), key)
    if value is not None:
        return value
    given = session.now.given
    return (
        (given.get("endurance") or {}).get(key)
        if section == "reliability"
        else (given.get("cost") or {}).get(key)
    )


def sweep(session, along: Along, across: Along | None = None) -> tuple[int, Iterator[sweeps.Cell]]:
    """The library's cells along one input or, row by row, along two: rows are `across`, columns
    `along`."""
    rows = [inputs.changes(session, across.field, v) for v in across.values] if across else [{}]
    columns = [inputs.changes(session, along.field, v) for v in along.values]
    design = session.now.design

    def run():
        for row in rows:
            for column in columns:
                fields = {**row, **column}
                yield sweeps.cell(design, tuple(fields), tuple(fields.values()))

    return len(rows) * len(columns), run()


def narrowed(along: Along, most: int = _ACROSS) -> Along:
    """At most so many values, those around the design's own."""
    first = max(0, min(max(along.now, 0) - most // 2, len(along.values) - most))
    cut = slice(first, first + most)
    return Along(
        along.field,
        along.name,
        along.values[cut],
        along.texts[cut],
        along.now - first if along.now >= 0 else -1,
    )


def fields_of(session, *pairs) -> dict:
    """The change of the design that one cell stands for, from (input, place) pairs."""
    out: dict = {}
    for along, place in pairs:
        out |= inputs.changes(session, along.field, along.values[place])
    return out
