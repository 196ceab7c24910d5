"""What a move did, in one sentence, and the moves that are worth trying next."""

from collections.abc import Iterator, Mapping
from itertools import islice
from math import inf, isclose
from typing import Any, NamedTuple

from scantling.advise import candidates, comparison
from scantling.advise.changes import Change
from scantling.advise.explanation import plain
from scantling.advise.trials import Trials
from scantling.base.quantities.quantity import show
from scantling.base.show import is_number, params, several, share
from scantling.design.cluster import Cluster
from scantling.design.design import Design
from scantling.verdict.assessment import Assessment
from scantling.verdict.overheads import overheads
from scantling.verdict.result import FigureKey, Result, figure, figure_texts
from scantling.verdict.verdicts import met

from ..charts.palette import STEP
from ..quantity_texts import fits
from .controls import control_of, label_of
from .session import Fields, Moment

# the headline figures, and what they are called in a sentence
_FIGURES: dict[FigureKey, str] = {
    "step_s": "step",
    "likely.days": "run",
    "likely.cost_usd": "cost",
    "mfu_shown": "MFU",
}
_MOST_TRIED = 8  # changes of the library that are tried for the suggestions

Figures = Result


class Bottleneck(NamedTuple):
    """A part of the step."""

    name: str
    share: float  # of the step


class Suggestion(NamedTuple):
    """A change that is worth trying next."""

    name: str
    effect: str  # what comes of it, and on a line of its own the change
    fields: Fields


def bottleneck(figures: Figures) -> Bottleneck | None:
    """The largest overhead of the step; None where it has none."""
    step = figure(figures, "step_s")
    part, time_s = overheads(figures.get("step_breakdown_s") or {})[0]
    return Bottleneck(STEP[part].name, time_s / step) if step and time_s else None


def changed(before: Moment, now: Moment) -> str:
    """What moved between two moments of a session, and which bottleneck took over."""
    text = f"{_moved(before.design, now.design)}: {_figures(before.figures, now.figures)}."
    was, has = bottleneck(before.figures), bottleneck(now.figures)
    if not was or not has:
        return text
    if was.name == has.name:
        return (
            f"{text} Largest overhead still: {has.name}, {share(was.share)} → {share(has.share)} "
            "of the step."
        )
    return (
        f"{text} {has.name} ({share(has.share)} of the step) took over from "
        f"{was.name} ({share(was.share)}) as the largest overhead."
    )


def _moved(before: Design, now: Design) -> str:
    """The inputs that moved by name, at most two of them; rounding of one that follows another is
    none."""
    moved = {path: ends for path, ends in comparison.changed(before, now).items() if path != "name"}
    if not moved:
        return "The same design"
    set_ = {path: ends for path, ends in moved.items() if ends[1] is not None} or moved
    named = {path: ends for path, ends in set_.items() if control_of(path) and not _close(*ends)}
    if not named:
        path = next(iter(moved))
        return f"{label_of(path)} by less than 1 %" if _close(*moved[path]) else _of_fields(moved)
    texts = [f"{label_of(path)} {_end(old)} → {_end(new)}" for path, (old, new) in named.items()]
    more = len(moved) - 2
    return ", ".join(texts[:2]) + (f" and {_of_fields(moved, more)}" if texts[2:] else "")


def _of_fields(moved: Mapping[str, Any], count: int = 0) -> str:
    return f"{several(count or len(moved), 'field')} {'more' if count else 'changed'}"


def _close(old: Any, new: Any) -> bool:
    """Whether two numbers differ by less than a hundredth."""
    return is_number(old) and is_number(new) and isclose(old, new, rel_tol=0.01)


def _end(value: Any) -> str:
    """A value of a field, as it is said: large ones in short."""
    if value is None:
        return "auto"
    return params(value) if is_number(value) and value >= 1e6 else plain(value)


def _figures(before: Figures, now: Figures) -> str:
    """The headline figures that moved; none of days and dollars where a plan does not fit."""
    if not fits(now):
        memory = show("memory_bytes.total", now["memory_bytes"]["total"])
        return f"the plan needs {memory} a device and does not fit"
    moved = []
    for key, name in _FIGURES.items():
        old, new = show(key, figure(before, key)), show(key, figure(now, key))
        if figure(now, key) is not None and old != new and (fits(before) or key == "step_s"):
            moved.append(f"{name} {old} → {new}")
    return ", ".join(moved) or "no headline figure moves"


def moves(moment: Moment) -> Iterator[Change]:
    """The changes that a planner would try on a design that meets its constraints: half and twice
    the devices, and those of the library; none on another, whose nearest fixes are known."""
    if moment.assessment.met:
        yield from _scaled(moment.resolved.cluster)
        yield from islice(candidates.site_changes(moment.assessment), _MOST_TRIED)


def _scaled(cluster: Cluster) -> Iterator[Change]:
    """Half and twice the devices, in whole nodes."""
    node = cluster.devices_per_node
    for text, times in (("half the devices", 0.5), ("twice the devices", 2)):
        count = max(1, int(cluster.devices * times / node)) * node
        yield Change(effort=3, text=f"{text}, {count:,}", set={"cluster.devices": count})


def suggested(moment: Moment, trials: Trials) -> Iterator[Suggestion]:
    """At most three moves: of an unmet design its nearest fixes, else the one that costs least, the
    one that ends first and the one with another bottleneck, each held to the whole space of plans
    before it is said."""
    now = moment.assessment
    if not now.met:
        fixes = [f for f in moment.figures["nearest_fixes"] if f.get("set")][:3]
        yield from (Suggestion("Mend", _effect(f["change"], f), f["set"]) for f in fixes)
        return
    own = bottleneck(now.headline())
    if own is None:
        return
    good = [t for t in trials if t.feasible]

    def cheaper(after: Assessment, before: Assessment) -> bool:
        return _cost(after) < _cost(before)

    def sooner(after: Assessment, before: Assessment) -> bool:
        return _duration(after) < _duration(before)

    def elsewhere(after: Assessment, before: Assessment) -> bool:
        part = bottleneck(after.headline())
        return part is not None and part.name != own.name

    wanted = (
        ("Cheaper", _cost, cheaper),
        ("Sooner", _duration, sooner),
        ("Another bottleneck", _step, elsewhere),
    )
    for name, score, better in wanted:
        able = [t for t in good if better(t.result, trials.before)]
        for row in sorted(able, key=lambda t: score(trials.known(t).result)):
            whole = next(iter(trials.verified([row])), None)
            if whole is not None and better(whole.result, now):
                good.remove(row)
                effect = _effect(row.change.text, whole.fix())
                yield Suggestion(name, effect, row.change.set)
                break


def _cost(a: Assessment) -> float:
    """[USD]; what has no price costs more than anything."""
    return float(a.cost_usd or inf)


def _duration(a: Assessment) -> float:
    """Days, or seconds of a step where the design names no tokens."""
    return float(a.days or a.step_s)


def _step(a: Assessment) -> float:
    """[s]"""
    return float(a.step_s)


def none_helps(moment: Moment, tried: int) -> str:
    """What is said where no move is suggested."""
    if not met(str(moment.figures.get("verdict"))):
        return "No nearby change is known that mends it."
    return f"Of {several(tried, 'move')} tried here none helps." if tried else ""


def _effect(change: str, after: Mapping[str, Any]) -> str:
    figures = figure_texts(after, {"likely.days": "", "likely.cost_usd": ""})
    return "\n".join(filter(None, (", ".join(figures), change)))
