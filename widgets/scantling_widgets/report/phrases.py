"""How one thing is worded: a number with its unit, a plan in a line, a clause of the library as a
sentence. The templates use these as filters."""

from __future__ import annotations

from markupsafe import Markup, escape
from scantling.design.constraints import CONSTRAINTS

SCHEDULES = {
    "gpipe": "GPipe",
    "1f1b": "1F1B",
    "interleaved": "interleaved 1F1B",
    "zero-bubble": "zero-bubble",
    "zb1p": "zero-bubble ZB-H1",
    "zbv": "zero-bubble ZB-V",
    "dualpipe": "DualPipe",
    "none": "no schedule",
}
VERDICTS = {
    "feasible": "meets every constraint",
    "constraint-missed": "still misses",
    "impossible": "holds no plan",
}
RECOMPUTE = {
    "none": "No activation recompute",
    "selective": "Selective activation recompute",
    "full": "Full activation recompute",
}
# inputs, and figures that stand in several lists: how they are shown
KINDS = {
    "bytes": "bytes",
    "time_s": "seconds",
    "share": "share",
    "bytes_per_s": "bytes_per_s",
    "count": "count",
    "devices": "count",
    "nodes": "count",
    "kg": "count",
    "events": "rate",
    "seq_len": "count",
    "global_batch": "count",
    "grad_accum": "count",
    "tokens": "params",
    "chance": "chance",
}
UNITS = {"kg": "kg"}
_OF_UNIT = (
    ("bytes/s", "bytes_per_s"),
    ("bytes", "bytes"),
    ("FLOP/s", "flops"),
    ("share", "share"),
    ("s", "seconds"),
    ("days", "days"),
    ("USD", "usd"),
    ("W", "watts"),
    ("kWh", "kwh"),
)


def show(key: str, value) -> str:
    """A value as text with its unit, by the library's own rule for `key`: a quantity of the
    assessment, or a kind of input."""
    from scantling.base.quantities import table as quantities

    return (
        quantities.shown(value, KINDS[key], UNITS.get(key, ""))
        if key in KINDS
        else quantities.show(key, value)
    )


def in_unit(unit: str, value) -> str:
    """A value that comes with the name of its unit."""
    from scantling.base.quantities import table as quantities

    kind = next(
        (kind for name, kind in _OF_UNIT if unit == name or unit.startswith(f"{name} ")), None
    )
    if kind:
        return quantities.shown(value, kind)
    whole = unit != "ratio" and isinstance(value, (int, float)) and value == int(value)
    return quantities.shown(
        value, "count" if whole else "rate", "" if unit in ("count", "ratio") else unit
    )


def band(key: str, low, high) -> str:
    """A band as text, the unit once."""
    from scantling.base.quantities import table as quantities

    return quantities.band(key, low, high)


def _named(rows, ident) -> str:
    """The name of a catalogue row by its id, without what stands in brackets; the id itself where
    there is no such row."""
    row = rows().get(ident) if isinstance(ident, str) else None
    return row.name.split(" (")[0] if row else ident


def fabric(ident) -> str:
    """The name of a fabric by its catalogue id."""
    from scantling import catalogue

    return _named(catalogue.fabrics, ident)


def storage(ident) -> str:
    """The name of a store by its catalogue id."""
    from scantling import catalogue

    return _named(catalogue.storages, ident)


def plan_text(p) -> str:
    """A plan in one line."""
    get = p.get if isinstance(p, dict) else lambda key, default=None: getattr(p, key, default)
    words = [
        f"{axis} {get(axis)}"
        for axis in ("tp", "pp", "vpp", "cp", "ep", "etp", "dp")
        if (get(axis) or 1) != 1
    ]
    if get("sharding") not in (None, "none"):
        words.append(get("sharding"))
    if get("micro_batch"):
        words.append(f"micro-batch {get('micro_batch')}")
    if get("recompute") not in (None, "none"):
        share = get("recompute_share") or 1
        words.append(
            f"{get('recompute')} recompute"
            + (f" of {show('share', share)} of the layers" if share < 1 else "")
        )
    if get("offload") not in (None, "none"):
        words.append(f"offload {get('offload')}")
    return ", ".join(words) or "one device"


def _lead(text) -> Markup:
    """What stands before the first colon in bold."""
    head, colon, rest = _upfirst(str(text)).partition(":")
    return (
        Markup("<strong>{}</strong>{}{}").format(head, colon, rest)
        if colon and len(head) < 60
        else escape(_upfirst(str(text)))
    )


def _after_colon(text) -> str:
    """What stands behind the first colon; the heading before it is on the page already."""
    head, colon, rest = str(text).partition(": ")
    return (rest if colon and len(head) < 60 else str(text)).rstrip(".")


def _beyond(text, name) -> str:
    """The text without the name that stands before it on the page."""
    return str(text).removeprefix(str(name)).lstrip(" ,:")


def _nodes(count) -> str:
    return f"{show('count', count)} {'node' if count == 1 else 'nodes'}"


def _upfirst(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sentence(text) -> str:
    text = str(text).strip()
    return text[:1].upper() + text[1:] + ("" if text[-1:] in ".!?" or not text else ".")


def value_text(value) -> str:
    """A value of a design file as text."""
    if isinstance(value, str):
        try:
            value = float(value) if "." in value else int(value)
        except ValueError:
            return value
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:.6g}"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < 10**9 else f"{value:.6g}"
    return str(value)


def _within(a, key: str) -> str:
    """The band behind a figure; nothing behind a measured one."""
    low, high = getattr(a, f"{key}_low"), getattr(a, f"{key}_high")
    return f" ({band(key, low, high)})" if show(key, low) != show(key, high) else ""


def _under(collectives, axis: str) -> str:
    """What hides the collectives of an axis."""
    beside = dict.fromkeys(
        row["beside"] for row in collectives if row["axis"] == axis and row["hidden"] != "no"
    )
    return (
        f"under {' and '.join(b for b in beside if b and not b.startswith('nothing')) or 'compute'}"
    )


def _asked_by(field: str) -> str:
    """A constraint by its words, where a figure says that it set it."""
    constraint = field.removeprefix("constraints.")
    return (
        f"set by the ceiling of {CONSTRAINTS[constraint].name}"
        if constraint in CONSTRAINTS
        else field
    )


def _impact(risk) -> str:
    """Days and dollars of a risk that comes true, whichever it has."""
    return " or ".join(
        show(key, risk[field])
        for field, key in (("impact_days", "days"), ("impact_usd", "cost_usd"))
        if risk.get(field)
    )


def _fix_figures(fix) -> str:
    """The figures that a nearest fix brings with it."""
    names = {"mfu": "MFU ", "step_s": "step ", "days": "", "cost_usd": "", "goodput": "goodput "}
    shown = [
        name + show(key, fix[key])
        for key, name in names.items()
        if isinstance(fix, dict) and fix.get(key) is not None
    ]
    return f" ({', '.join(shown)})" if shown else ""


FILTERS = {
    "lead": _lead,
    "after_colon": _after_colon,
    "beyond": _beyond,
    "upfirst": _upfirst,
    "sentence": _sentence,
    "value": value_text,
    "nodes": _nodes,
    "within": _within,
    "under": _under,
    "asked_by": _asked_by,
    "impact": _impact,
    "fix_figures": _fix_figures,
    "plan_text": plan_text,
    "fabric": fabric,
    "storage": storage,
    "verdict": lambda v: VERDICTS.get(v, v),
    "schedule": lambda s: SCHEDULES.get(s, s),
    "recompute": lambda r: RECOMPUTE.get(r, r),
    "cell": lambda t: str(t).replace("|", "\\|").replace("\n", " "),
}
