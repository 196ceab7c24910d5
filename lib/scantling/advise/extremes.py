"""Direct answers: the largest, longest, biggest, fewest and earliest that a design allows, each
found by evaluating it."""

from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache, partial
from math import inf, isinf
from typing import Any

from ..base.units import DAY_S
from ..catalogue.published_laws import LAWS
from ..catalogue.scaling_laws import allocations, compute_optimal, loss, tokens_to_loss
from ..design.constraints import CONSTRAINTS
from ..design.design import Design
from ..plans.enumerate import divisors
from ..plans.plan_names import fields_of_plan
from ..plans.space import COARSE, DEFAULT, Space
from ..verdict.assess import assess, changed
from ..verdict.assessment import Assessment
from ..verdict.result import FigureName, LargestActive, LawRow, ToLoss
from ..verdict.sensible import LARGEST

LAW = "besiroglu-2024"  # of `within_budget_of_compute`
few = lru_cache(maxsize=4)  # assessments that are kept: one of 100,000 plans takes 0.2 GB
NEARBY = 15  # counts above the coarse search's answer where the whole search's is looked for first
LONGEST = 2**24  # tokens of a sequence that are tried
LARGEST_MODEL = 100_000_000  # millions of parameters
MODEL_STEP = 100
PINNED = ("tp", "pp", "cp", "dp", "ep", "sharding")  # fields of the plan that an answer keeps
RECOMPUTE = ("recompute", "recompute_modules", "recompute_layers")
Answer = dict[str, Any]  # of `answer --json`


def _dense(now: Assessment, params: float, tokens: float, *, kept: bool) -> Assessment | None:
    """A dense model of that size and tokens on the design's machine, with its constraints kept or
    without any."""
    changes: dict[str, Any] = {
        "model": {"size": float(f"{params:.4g}")},
        f"{now.resolved.job_path}.tokens": float(f"{tokens:.4g}"),
    }
    if not kept:
        changes["constraints"] = None
    return changed(now.design, now.design.freed | changes)


def _fits(after: Assessment | None) -> bool:
    return after is not None and after.fits


def _allowed(after: Assessment | None) -> bool:
    """Whether a design fits and misses none of its constraints."""
    return after is not None and after.fits and after.met


def _days(after: Assessment | None) -> float:
    """Likely days of a design that is allowed; inf of another, and without tokens."""
    if after is None or not _allowed(after) or after.likely.days is None:
        return inf
    return after.likely.days


def _stopped_by(after: Assessment | None) -> str:
    """What keeps a changed design from being an answer, in a few words."""
    if after is None:
        return "model and batch cannot be split so"
    if not after.fits:
        return "it does not fit in memory"
    texts = [*(missed.text for missed in after.missed), *(why.text for why in after.reasons)]
    return texts[0].partition(";")[0] if texts else "it is no better"


def _first(holds: Callable[[int], bool], least: int = 1) -> int:
    """The least count from `least` up for which something holds, and from there on: by doubling and
    halving."""
    high = least
    while not holds(high):
        high *= 2
    return bisect_left(range(high), True, lo=max(high // 2 + 1, least), key=holds)


def _too_little(after: Assessment | None) -> bool:
    """Whether a design gives its machine too little to do, or nothing that it can split."""
    return after is None or (after.fits and after.verdict == "impractical")


def _most(at: Callable[[int], Assessment | None], step: int, limit: int, own: float) -> int:
    """The largest multiple of step up to limit whose design is allowed, 0 where none is; what is
    allowed is assumed to be one stretch: around the design's own value, else above those that give
    the machine too little to do."""
    least, past = max(int(own // step), 1), limit // step
    if not _allowed(at(least * step)):
        least = 1
        while least <= past and _too_little(at(least * step)):
            least *= 2
        if least > past or not _allowed(at(least * step)):
            return 0
    return step * (_first(lambda n: n > past or not _allowed(at(n * step)), least) - 1)


def longest_sequence(design: Design) -> Answer | None:
    """Longest sequence [tokens, a multiple of 1,024] that fits and misses no
    constraint: {seq_len, ...} as `_answer`; None where there is none.

    Today's degrees (tp, pp, dp, ep, sharding) are kept; cp, recompute and micro-batch follow. The
    global batch keeps its sequences.
    """
    now = assess(design)
    job = now.resolved.job_path
    same: dict[str, Any] = {}
    if now.phases:
        same = _pinned(now, *PINNED) | {
            f"{job}.global_batch": now.chosen.phase.global_batch,
            f"{job}.global_batch_tokens": None,
        }

    @few
    def at(seq_len: int) -> Assessment | None:
        return changed(design, same | {f"{job}.seq_len": seq_len})

    best = _most(at, 1024, LONGEST, now.resolved.phases[now.resolved.main].seq_len)
    more = best + 1024
    bound = f"at {more:,} tokens: {_stopped_by(at(more))}"
    return _answer(at(best), "seq_len", best, bound) if best else None


def _pinned(now: Assessment, *names: str) -> dict[str, Any]:
    """The changes that pin fields of the plan to what they are."""
    return {f"plan.{name}": value for name, value in fields_of_plan(now.plan, names).items()}


def biggest_micro_batch(design: Design) -> Answer | None:
    """Largest micro-batch that fits with today's degrees, recompute and offload and misses
    no constraint: {micro_batch, ...} as `_answer`; None where there is none."""
    now = assess(design)
    if not now.fits:
        return None
    same = _pinned(now, *PINNED, *RECOMPUTE, "offload")
    same |= dict.fromkeys(("plan.vpp", "plan.schedule", "plan.grad_accum"))
    best, largest = None, 0
    bound = "the whole batch of a replica"
    for micro_batch in divisors(now.chosen.phase.global_batch // now.plan["dp"]).tolist():
        after = changed(design, same | {"plan.micro_batch": micro_batch})
        if _allowed(after):
            best, largest = after, micro_batch
        elif best is not None or not _fits(after):
            bound = f"at micro-batch {micro_batch}: {_stopped_by(after)}"
            break
    return _answer(best, "micro_batch", largest, bound)


def fewest_devices(design: Design) -> Answer | None:
    """Fewest devices, in whole nodes (or racks, where one link joins a rack): {devices, ...} as
    `_answer`; with all constraints met. None where none does."""
    unit = assess(design).resolved.cluster.unit

    @few
    def at(units: int) -> Assessment | None:
        return changed(design, {"cluster.devices": units * unit})

    best = _first(lambda units: units * unit > LARGEST or _allowed(at(units)))
    if not _allowed(at(best)):
        return None
    # a round count below may divide where those between do not
    for step in (2**k for k in range(1, best.bit_length())):
        rounder = best // step * step
        if rounder < best and _allowed(at(rounder)):
            best = rounder
    less = best - 1
    bound = f"with {less * unit:,} devices: {_stopped_by(at(less))}" if less else "there is no less"
    return _answer(at(best), "devices", best * unit, bound)


def earliest_finish(design: Design, most_devices: int | None = None) -> Answer | None:
    """Fewest likely days over device counts, in whole nodes or racks: {days, devices, ...} as
    `_answer`, the likely days as `value`.

    The counts double from a quarter of today's until two doublings in a row bring nothing, or up
    to `most_devices`; then quarter octaves and eighths around the best. Past the critical batch
    more devices only split the same batch: the curve bends back. The constraints of the design are
    kept but the deadline. None where nothing fits. Raises ValueError without tokens.
    """
    now = assess(design)
    if now.resolved.phases[0].tokens is None:
        raise ValueError("job.tokens is needed: without them no run has an end")
    cluster = now.resolved.cluster
    cap = min(most_devices or LARGEST, LARGEST) // cluster.unit * cluster.unit
    if not cap:
        return None

    @few
    def at(count: int) -> Assessment | None:
        return changed(design, {"cluster.devices": count, "constraints.deadline_days": None})

    def days(count: int) -> float:
        return _days(at(count))

    def whole(count: float) -> int:
        devices: int = min(cluster.whole(count), cap)
        return devices

    best = searched = whole(cluster.devices / 4)
    idle = 0  # doublings in a row that brought nothing
    while searched < cap and idle < 2:
        searched = whole(2 * searched)
        idle = 0 if days(searched) < days(best) or isinf(days(best)) else idle + 1
        best = min((best, searched), key=days)
    octaves = (whole(best * 2 ** (k / 4)) for k in (-3, -2, -1, 1, 2, 3))
    # a batch of a round number divides over round shares of the devices
    eighths = (whole(best * k / 8) for k in range(5, 16))
    allowed = (cap,) if most_devices else ()
    best = min((best, whole(cluster.devices), *allowed, *octaves, *eighths), key=days)
    best = min((best, whole(best * 15 / 16), whole(best * 17 / 16)), key=days)
    if isinf(days(best)):
        return None
    more = whole(2 * best)
    if best == cap:
        bound = f"the {cap:,} devices that are allowed"
    elif not _allowed(at(more)):
        bound = f"with {more:,} devices: {_stopped_by(at(more))}"
    else:
        took = f"{days(more):,.3g} likely days"
        bound = f"{more:,} devices take {took}: they split the same batch further"
    stated = [name for name in now.resolved.constraints.stated() if name != "deadline_days"]
    constraints = ", ".join(stated) or "no other constraint"
    bound += f"; searched up to {searched:,} devices, keeping {constraints}"
    return _answer(at(best), "days", days(best), bound)


def largest_model(design: Design) -> Answer | None:
    """Largest model by size alone, dense or MoE as the design's own, that the design's machine can
    train within its constraints on the design's tokens: {params, tokens, tokens_per_param, ...} as
    `_answer`.

    The shape follows the kit's rule for a size (three digits are meant); everything else of the
    design is kept, pins of the plan are not. None where no size is allowed. Raises ValueError for a
    deadline or a budget without tokens: how large a model may be in that time is then a question of
    tokens (`within_budget_of_compute`).
    """
    now = assess(design)
    resolved = now.resolved
    counted = [phase.tokens for phase in resolved.phases]
    tokens = None if None in counted else sum(n for n in counted if n is not None)
    of_runs = [field for field, row in CONSTRAINTS.items() if row.promise is not None]
    stated = [field for field in of_runs if field in resolved.constraints.stated()]
    if tokens is None and stated:
        raise ValueError(
            f"job.tokens is needed beside constraints.{min(stated)}; without tokens ask "
            "compute-budget, which chooses size and tokens together"
        )
    kind = {"moe": True} if resolved.model.is_moe else {}

    @few
    def at(millions: int) -> Assessment | None:
        return changed(design, design.freed | {"model": {"size": millions * 1e6} | kind})

    millions = _most(at, MODEL_STEP, LARGEST_MODEL, float(now.resolved.params.total) / 1e6)
    best = at(millions) if millions else None
    if best is None:
        return None
    more = millions + MODEL_STEP
    bound = f"at {more / 1e3:,.4g}B parameters: {_stopped_by(at(more))}"
    answer = _answer(best, "params", best.params, bound) or {}
    ratio = None if tokens is None else tokens / best.params
    return {"params": best.params, "tokens": tokens, "tokens_per_param": ratio, **answer}


def within_budget_of_compute(design: Design) -> Answer:
    """From the design's machine and deadline to the size and tokens of least loss: {compute_flops,
    params, tokens, law, source, ...} as `_answer`.

    Compute [FLOP] is the most, in thousandths of what the machine's bf16 peak does by the deadline,
    whose dense model fits and keeps the design's constraints, failures included; formats below 16
    bit may pass that peak, none ten times. It does not matter whether the design's own model has a
    plan. Raises ValueError without constraints.deadline_days, and where no such part has a model
    that is allowed.
    """
    deadline = design.constraints.deadline_days
    if deadline is None:
        raise ValueError("constraints.deadline_days is needed: compute is devices x time x rate")
    now = assess(design)
    cluster = now.resolved.cluster
    part = cluster.accelerator.half_flops * cluster.devices * deadline * DAY_S / 1000

    @few
    def at(parts: int) -> Assessment | None:
        size, tokens = compute_optimal(parts * part, LAW)
        return _dense(now, float(size), float(tokens), kept=True)

    best = _most(at, 1, 9999, 1)
    if not best:
        raise ValueError(f"no model of least loss for this machine: {_stopped_by(at(1))}")
    size, tokens = compute_optimal(best * part, LAW)
    bound = f"with more compute: {_stopped_by(at(best + 1))}"
    answer = _answer(at(best), "compute_flops", best * part, bound) or {}
    return {"params": size, "tokens": tokens, "law": LAW, "source": LAWS[LAW].source, **answer}


def by_scaling_laws(design: Design, compute_flops: float | None = None) -> Answer:
    """One budget of compute by every published law, each trained on the design's machine:
    {compute_flops, from, rows}.

    compute_flops : training compute [FLOP, 6 x parameters x tokens]; left out, what the machine
    does by constraints.deadline_days, else what the design itself spends.
    rows : [{law, title, params, tokens, tokens_per_param, loss, days, cost_usd, likely, mfu,
    mfu_shown, verdict, plan, caveat, source}], the design's own model and tokens first (law None)
    where it has tokens. loss : by the refitted Chinchilla surface [nats a token], for comparing
    rows; days, cost, mfu, plan are None where no plan holds the model.
    Sizes are trained as dense models of the kit's shape for a size; pins of the plan are not kept.
    Raises ValueError where there is neither a budget, nor a deadline, nor tokens.
    """
    now = assess(design)
    deadline = design.constraints.deadline_days
    n = float(now.resolved.params.active)
    d = sum(p.tokens or 0.0 for p in now.resolved.phases)
    origin = "given"
    by_deadline = compute_flops is None and deadline is not None
    if by_deadline:
        compute_flops = within_budget_of_compute(design)["compute_flops"]
        others = [name for name in now.resolved.constraints.stated() if name != "deadline_days"]
        keeping = f", keeping {', '.join(others)}" if others else ""
        origin = f"what the machine does in {deadline:g} days{keeping}"
    elif compute_flops is None and d:
        compute_flops = 6 * n * d
        origin = "6 x parameters x tokens of the design"
    elif compute_flops is None:
        raise ValueError("a budget in FLOP, constraints.deadline_days or job.tokens is needed")
    # by the deadline each is judged as `within_budget_of_compute` judges it
    rows = []
    for row in allocations(compute_flops):
        after = _dense(now, float(row["params"]), float(row["tokens"]), kept=by_deadline)
        rows.append({**row, **_trained(after)})
    if d and now.phases:
        today = {
            "law": None,
            "title": "this design",
            "params": n,
            "tokens": d,
            "caveat": "",
            "source": "",
        }
        rows = [{**today, **_trained(now)}, *rows]
    for row in rows:
        params = row["params"]
        tokens = row["tokens"]
        row |= {"tokens_per_param": tokens / params, "loss": float(loss(params, tokens))}
    return {"compute_flops": float(compute_flops), "from": origin, "rows": rows}


def to_loss(now: Assessment, target: float) -> ToLoss:
    """Days of a design's own model to a target loss, by each published surface: {target_loss,
    rows: [{law, title, tokens, days, cost_usd, verdict, source}], days_low, days_high}; tokens and
    days are None where a surface does not reach the loss at that size."""
    rows = []
    by_law = tokens_to_loss(float(now.resolved.params.active), target)
    for id, law in LAWS.items():
        if law.surface is None:
            continue
        tokens = by_law.get(id)
        after = None if tokens is None else _trained_on(now, tokens)
        trained = after if after is not None and after.fits else None
        rows.append(
            LawRow(
                law=id,
                title=law.title,
                tokens=tokens,
                source=law.source,
                verdict="not reached" if after is None else after.verdict,
                days=None if trained is None else trained.days,
                cost_usd=None if trained is None else trained.cost_usd,
                mfu=None if trained is None else trained.mfu,
                mfu_shown=None if trained is None else trained.mfu_shown,
                plan=None if trained is None else trained.plan,
            )
        )
    days = [row["days"] for row in rows if row["days"] is not None]
    return {
        "target_loss": target,
        "rows": rows,
        "days_low": min(days, default=None),
        "days_high": max(days, default=None),
    }


def _trained_on(now: Assessment, tokens: float) -> Assessment | None:
    """A design trained on so many tokens, whatever loss it names."""
    path = now.resolved.job_path
    fields = {f"{path}.tokens": float(f"{tokens:.4g}"), f"{path}.target_loss": None}
    return changed(now.design, fields, like=now)


def _trained(after: Assessment | None) -> Answer:
    """What training a design comes to; None where no plan holds the model."""
    names: tuple[FigureName, ...] = ("days", "cost_usd", "likely", "mfu", "mfu_shown", "plan")
    verdict = "refused" if after is None else after.verdict
    if after is None or not after.fits:
        return {"verdict": verdict, **dict.fromkeys(names)}
    return {"verdict": verdict, **after.figures(*names)}


def _answer(after: Assessment | None, name: str, value: float, bound: str) -> Answer | None:
    """An answer: its value under its name and as `value`, what bounds it, and the figures of the
    design that it was read from; None where there is none."""
    if after is None:
        return None
    devices = after.resolved.cluster.devices
    return {
        name: value,
        "value": value,
        "bound": bound,
        "devices": devices,
        **after.figures(
            "verdict", "days", "cost_usd", "likely", "plan", "mfu", "mfu_shown", "memory_share"
        ),
    }


def largest_active(now: Assessment) -> LargestActive | None:
    """Largest active count with which a mixture of experts counted by its size alone meets the
    deadline: {active_params, experts, top_k, days}; None where the question does not arise or none
    does.

    It arises where the model is {size, moe: true} without `active`, and constraints.deadline_days
    and tokens are given. Counts of two digits from a hundredth of the size up, halved between: days
    grow with the active count but for steps of the search, so the count above the answer misses.
    Each is an assessment with the experts that `sizing.from_size` derives for it, by a coarse
    search, and by the whole one from the largest that meets the deadline then; how well a model of
    that shape trains is not asked.
    """
    design = now.design
    deadline = now.resolved.constraints.deadline_days
    stated = {} if isinstance(design.model, str) else design.model.stated()
    if deadline is None or now.days is None or not now.resolved.model.experts:
        return None
    if "active" in stated or stated.get("size") is None:
        return None
    size = float(stated["size"])
    counts = (k * 10.0**power for power in range(5, 13) for k in range(10, 100))
    grid = [count for count in counts if size / 100 <= count < size]

    @few
    def at(count: float, space: Space) -> Assessment | None:
        return changed(design, {"model.active": count}, space=space)  # None: no such shape

    def late(count: float, space: Space = DEFAULT) -> bool:
        after = at(count, space)
        return after is None or not after.fits or (after.days or 0.0) > deadline

    near = max(bisect_left(grid, True, key=partial(late, space=COARSE)) - 1, 0)
    for end in (near + NEARBY, len(grid)):
        near = bisect_left(grid, True, near, min(end, len(grid)), key=late)
        if near < end:
            break
    best = at(grid[near - 1], DEFAULT) if near else None
    if best is None:
        return None
    return {
        "active_params": float(best.active_params),
        "experts": best.resolved.model.experts,
        "top_k": best.resolved.model.top_k,
        "days": best.days,
    }
