"""Changes by which a post-training design that fits nowhere, or misses its deadline or budget,
would do, each assessed before it is said."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from scantling.advise.changes import listed
from scantling.base.errors import DesignError
from scantling.base.show import several
from scantling.catalogue.words import ADAPTED, Method, Offload
from scantling.design.design import Design
from scantling.design.methods import method_of, of_method
from scantling.design.repriced import price_note, repriced
from scantling.verdict.verdicts import rank

from .posttrained import Fix, Posttrained

MOST = 4  # that are said
SAVES = 0.1  # of days or dollars, from which a change of a design that does is said
MET = ("feasible", "feasible-at-risk")
TIMES = (2, 4, 8, 16)  # the devices, until they do
# settings of the engine that a search chooses where they are left out
_ENGINE = ("devices", "colocated", "tp", "dp", "ep", "kv_fraction")
# of how much a change asks: of the trainer's settings, of the samples, of the method, of money
_OWN, _DATA, _METHOD, _MONEY = range(4)


class Change(NamedTuple):
    """A change in words, the fields that it sets, the changed design, and how much it asks."""

    text: str
    sets: dict[str, Any]
    design: Design
    asks: int


def nearest(
    design: Design, result: Posttrained, assess: Callable[[Design], Posttrained]
) -> list[Fix]:
    """What makes the design do, the change that asks least first; where nothing does, what comes
    nearer. Nothing of a design that does."""
    if result.verdict in MET:
        return []
    tried: list[tuple[int, Fix]] = []
    for change in changes(design, result):
        fix = _tried(change, assess)
        if fix is not None and (rank(fix.verdict), len(fix.missed)) < _of(result):
            tried.append((change.asks, fix))
    does = sorted((pair for pair in tried if pair[1].verdict in MET), key=lambda pair: pair[0])
    grown = _more_devices(design, result, assess)
    rows = [fix for _, fix in does] + [fix for fix in grown if fix.verdict in MET]
    nearer = [fix for _, fix in tried if fix.verdict not in MET]
    return (rows or nearer + grown)[:MOST]


def trials(design: Design, result: Posttrained) -> list[Change]:
    """Changes of a design that does, which may save days or dollars: those that would mend one that
    does not, trainer and engine otherwise, and fewer or more devices."""
    out = [*changes(design, result)]
    if result.rollout is not None:
        shared = not result.rollout["colocated"]
        text = "trainer and engine on the same devices" if shared else "devices of their own"
        out.append(_set(design, text, {"job.rollout.colocated": shared}, _OWN))
    devices = design.cluster.devices
    if devices > 1:
        text = f"{several(devices // 2, 'device')}, half as many"
        out.append(_set(design, text, {"cluster.devices": devices // 2}, _MONEY))
    text = f"{several(2 * devices, 'device')}, twice as many"
    return [*out, _set(design, text, {"cluster.devices": 2 * devices}, _MONEY)]


def tried(
    change: Change, result: Posttrained, assess: Callable[[Design], Posttrained]
) -> Fix | None:
    """A change of a design that does, where it still does and saves a tenth of days or dollars."""
    fix = _tried(change, assess)
    if fix is None or fix.verdict not in MET or result.days is None or fix.days is None:
        return None
    faster = fix.days < (1 - SAVES) * result.days
    cheaper = (
        result.cost_usd is not None
        and fix.cost_usd is not None
        and fix.cost_usd < (1 - SAVES) * result.cost_usd
    )
    return fix if faster or cheaper else None


def _of(result: Posttrained) -> tuple[int, int]:
    return rank(result.verdict), len(result.limits)


def _tried(change: Change, assess: Callable[[Design], Posttrained]) -> Fix | None:
    """A change with what it comes to; None where it may not be."""
    try:
        result = assess(change.design)
    except DesignError:
        return None
    return Fix(
        change=change.text,
        set=change.sets,
        verdict=result.verdict,
        missed=result.limits,
        devices=result.devices,
        step_s=result.step_s,
        days=result.days,
        days_low=result.days_low,
        days_high=result.days_high,
        cost_usd=result.cost_usd,
        cost_usd_low=result.cost_usd_low,
        cost_usd_high=result.cost_usd_high,
    )


def _more_devices(
    design: Design, result: Posttrained, assess: Callable[[Design], Posttrained]
) -> list[Fix]:
    """The fewest of some multiples of the devices that do; where only the budget is missed, more
    devices are not tried."""
    deadline = design.constraints.deadline_days
    late = deadline is not None and result.days_high is not None and result.days_high > deadline
    if result.plan is not None and not late:
        return []
    for times in TIMES:
        devices = times * design.cluster.devices
        text = f"{several(devices, 'device')}, {times} times as many"
        fix = _tried(_set(design, text, {"cluster.devices": devices}, _MONEY), assess)
        if fix is not None and fix.verdict in MET:
            return [fix]
    return []


def _set(design: Design, text: str, sets: dict[str, Any], asks: int) -> Change:
    sets = repriced(design, sets)
    if note := price_note(sets):
        text += f", {note}"
    return Change(text, sets, design.change(sets), asks)


def _open(design: Design, fields: list[str]) -> Change:
    return _set(design, f"leave {listed(fields)} open", dict.fromkeys(fields), _OWN)


def changes(design: Design, result: Posttrained) -> Iterator[Change]:
    """Changes that may help, without more devices: what is pinned let go, smaller micro-batches,
    full recompute, shorter samples or rows, fewer weights that are trained or kept."""
    plan, job = design.plan, design.job
    if result.plan is None:
        if (plan.micro_batch or 1) > 1:
            yield _set(design, "micro-batches of 1", {"plan.micro_batch": 1}, _OWN)
        if plan.recompute not in (None, "full"):
            yield _set(design, "full recompute", {"plan.recompute": "full"}, _OWN)
        if plan.offload is None:
            yield _offload(design)
    pins = [name for name, value in vars(plan).items() if value is not None]
    if pins:
        yield _open(design, [f"plan.{name}" for name in pins])
    yield from _samples(design)
    yield from _methods(design)
    rollout = job.rollout
    if rollout is not None:
        held = [f"job.rollout.{name}" for name in _ENGINE if vars(rollout)[name] is not None]
        if held:
            yield _open(design, held)
        longest = rollout.max_response
        if longest is not None and longest > 2 * (rollout.mean_response or 0):
            text = f"responses cut at {longest / 2:,.0f} tokens"
            yield _set(design, text, {"job.rollout.max_response": longest / 2}, _DATA)


def _offload(design: Design) -> Change:
    """States in host memory: the optimizer's, or of adapters, which have few, the frozen weights
    too (Answer.AI 2024, 70B by QLoRA on two cards of 24 GB)."""
    adapted = method_of(design) in ADAPTED
    what = Offload.OPTIMIZER_PARAMS if adapted else Offload.OPTIMIZER
    text = "frozen weights in host memory" if adapted else "optimizer states in host memory"
    return _set(design, text, {"plan.offload": what.value}, _OWN)


def _samples(design: Design) -> Iterator[Change]:
    """Rows without padding, samples or rows of half the length."""
    job = design.job
    data = job.data
    if data is not None and data.packed is False:
        yield _set(design, "packed samples", {"job.data.packed": True}, _DATA)
    mean = data.mean_tokens if data is not None else None
    if data is not None and data.p95_tokens is not None and data.p95_tokens > 2 * (mean or 0):
        text = f"samples of which 95 % keep to {data.p95_tokens / 2:,.0f} tokens"
        sets: dict[str, Any] = {"job.data.p95_tokens": data.p95_tokens / 2}
        if job.seq_len is not None:
            sets["job.seq_len"] = max(job.seq_len // 2, 1)
        yield _set(design, text, sets, _DATA)
    elif job.seq_len is not None and job.seq_len >= 2 * (mean or 1):
        text = f"rows of {job.seq_len // 2:,} tokens"
        yield _set(design, text, {"job.seq_len": job.seq_len // 2}, _DATA)


def _methods(design: Design) -> Iterator[Change]:
    """Adapters beside frozen weights, and these in 4 bits. Another objective is no nearer."""
    method = method_of(design)
    if method is Method.SFT:
        text = "job.method: lora, adapters beside frozen weights"
        yield Change(text, {"job.method": "lora"}, of_method(design, Method.LORA), _METHOD)
    if method in (Method.SFT, Method.LORA):
        text = "job.method: qlora, the frozen weights in 4 bits"
        yield Change(text, {"job.method": "qlora"}, of_method(design, Method.QLORA), _METHOD)
