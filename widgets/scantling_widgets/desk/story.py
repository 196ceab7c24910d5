"""What a move did, in one sentence, and the moves that are worth trying next."""

from collections.abc import Iterator, Mapping
from operator import lt

from scantling.advise import candidates, comparison
from scantling.base.files import table
from scantling.base.quantities.table import told
from scantling.design.design import Design
from scantling.verdict.verdicts import met

from ..charts.palette import STEP
from ..words import at, fits, plain, share, show
from .controls import label_of
from .studies import assessed

_SAID = table(__file__, "story")


def bottleneck(given: Mapping) -> tuple[str, float] | None:
    """Name and share of the largest part of the step beside the model's own arithmetic."""
    parts, step = given.get("step_breakdown_s") or {}, given.get("step_s")
    over = {key: parts.get(key) or 0.0 for key in STEP if key not in _SAID["arithmetic"]}
    if not step or not any(over.values()):
        return None
    most = max(over, key=over.get)
    return STEP[most][0], over[most] / step


def changed(before, now) -> str:
    """What moved between two moments of a session, and which bottleneck took over."""
    said = f"{_moved(before.design, now.design)}: {_figures(before.given, now.given)}."
    was, has = bottleneck(before.given), bottleneck(now.given)
    if not was or not has:
        return said
    facts = {"was": was[0], "share": share(was[1]), "is": has[0], "now": share(has[1])}
    return f"{said} {_SAID['same' if was[0] == has[0] else 'other'].format(**facts)}"


def _moved(before: Design, now: Design) -> str:
    moved = {path: ends for path, ends in comparison.changed(before, now).items() if path != "name"}
    if len(moved) != 1:
        return f"{len(moved)} fields changed" if moved else "The same design"
    ((path, ends),) = moved.items()
    old, new = ("auto" if end is None else plain(end) for end in ends)
    return f"{label_of(path)} {old} → {new}"


def _figures(before: Mapping, now: Mapping) -> str:
    """The headline figures that moved; none of days and dollars where a plan does not fit."""
    if not fits(now):
        return _SAID["over"].format(
            memory=show("memory_bytes.total", at(now, "memory_bytes.total"))
        )
    moved = [
        f"{name} {show(key, a)} → {show(key, b)}"
        for key, name in _SAID["figures"].items()
        for a, b in ((at(before, key), at(now, key)),)
        if b is not None and show(key, a) != show(key, b) and (fits(before) or key == "step_s")
    ]
    return ", ".join(moved) or _SAID["still"]


def tried(judge, moment) -> Iterator:
    """(text, fields, assessment) of the changes that a planner would try on a design that meets its
    constraints: those of the library, and half and twice the devices."""
    cluster = moment.resolved.cluster
    node = cluster.devices_per_node
    scaled = [
        (text.format(devices), {"cluster.devices": devices})
        for factor, text in ((0.5, "half the devices, {:,}"), (2, "twice the devices, {:,}"))
        for devices in (max(1, int(cluster.devices * factor / node)) * node,)
    ]
    known = [(change.text, change.set) for change in candidates.site_changes(moment.result)]
    for text, fields in (*scaled, *known[: _SAID["most"]]):
        after = assessed(judge, moment.design, fields)
        if after is not None:
            yield text, fields, after


def suggested(moment, found: list) -> list:
    """At most three moves (name, what comes of it, fields): of an unmet design its nearest fixes,
    else the one that costs least, the one that ends first and the one with another bottleneck."""
    given, out = moment.given, []
    if not met(given.get("verdict")):
        fixes = [f for f in given["nearest_fixes"] if f.get("set")][:3]
        return [("Mend", _come_of(f["change"], f), f["set"]) for f in fixes]
    good, own = [one for one in found if met(one[2].get("verdict"))], bottleneck(given)
    wants = {
        "Cheaper": lambda a: (a.get("cost_usd") or 1e99, given.get("cost_usd") or 0),
        "Sooner": lambda a: (a.get("days") or a["step_s"], given.get("days") or given["step_s"]),
        "Another bottleneck": lambda a: (a["step_s"], 1e99 if bottleneck(a)[0] != own[0] else 0),
    }
    for name, score in wants.items():
        able = [one for one in good if lt(*score(one[2]))]
        if own and able:
            best = text, fields, after = min(able, key=lambda one: score(one[2]))
            good.remove(best)
            out.append((name, _come_of(text, after), fields))
    return out


def _come_of(change: str, after: Mapping) -> str:
    return ", ".join([change, *told(after, {"days": "", "cost_usd": ""})])
