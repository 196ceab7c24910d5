"""Direct answers: the largest, longest, biggest, fewest and earliest that a design allows, each
found by evaluating it."""

from bisect import bisect_left
from functools import lru_cache, partial
from math import inf, isinf

from ..base.units import DAY_S
from ..catalogue.scaling_laws import LAWS, allocations, compute_optimal, loss, tokens_to_loss
from ..plans.enumerate import divisors
from ..plans.space import COARSE, DEFAULT
from ..verdict.assess import assess, changed
from ..verdict.record import Assessment

LARGEST = 2_000_000  # devices
LAW = "besiroglu-2024"  # of `within_budget_of_compute`
few = lru_cache(maxsize=4)  # assessments that are kept: one of 100,000 plans takes 0.2 GB
NEARBY = 15  # counts above the coarse search's answer where the whole search's is looked for first
DEGREES = ("tp", "pp", "cp", "dp", "ep", "sharding")  # that an answer keeps


def _dense(now: Assessment, params: float, tokens: float, constraints=None):
    """A dense model of that size and tokens on the design's machine, by these constraints alone."""
    changes = {
        "constraints": constraints,
        "model": {"size": float(f"{params:.4g}")},
        f"{now.resolved.job_path}.tokens": float(f"{tokens:.4g}"),
    }
    return changed(now.design, now.design.freed | changes)


def _fits(a) -> bool:
    return a is not None and a.fits


def _allowed(a) -> bool:
    """Whether a design fits and misses none of its constraints."""
    return _fits(a) and a.met


def _stopped_by(a) -> str:
    """What keeps a changed design from being an answer, in a few words."""
    if a is None:
        return "no plan is legal"
    if not a.fits:
        return "it does not fit in memory"
    if a.missed:
        return a.missed[0].text.partition(";")[0]
    return a.reasons[0].text.partition(";")[0] if a.reasons else "it is no better"


def _first(holds) -> int:
    """The least count from 1 up for which something holds, and from there on: by doubling and
    halving."""
    high = 1
    while not holds(high):
        high *= 2
    return bisect_left(range(high), True, lo=high // 2 + 1, key=holds)


def _most(at, step: int, limit: int) -> int:
    """The largest multiple of step up to limit whose design is allowed; what is allowed is assumed
    to stop once. 0 where step itself is not."""
    past = limit // step
    return step * (_first(lambda n: n > past or not _allowed(at(n * step))) - 1)


def longest_sequence(design) -> dict | None:
    """Longest sequence [tokens, a multiple of 1,024] that fits and misses no
    constraint: {seq_len, ...} as `_said`; None where not even 1,024 is one.

    Today's degrees (tp, pp, dp, ep, sharding) are kept; cp, recompute and micro-batch follow. The
    global batch keeps its sequences.
    """
    now = assess(design)
    job = now.resolved.job_path
    kept = {}
    if now.phases:
        kept = _pinned(now, DEGREES) | {
            f"{job}.global_batch": now.chosen.phase.global_batch,
            f"{job}.global_batch_tokens": None,
        }

    @few
    def at(seq):
        return changed(design, kept | {f"{job}.seq_len": seq})

    best = _most(at, 1024, 2**24)
    if not best:
        return None
    more = best + 1024
    return _said(at(best), "seq_len", best, f"at {more:,} tokens: {_stopped_by(at(more))}")


def _pinned(now: Assessment, names) -> dict:
    """The changes that pin fields of the plan to what they are."""
    return {f"plan.{name}": now.plan[name] for name in names}


def biggest_micro_batch(design) -> dict | None:
    """Largest micro-batch that fits with today's degrees, recompute and offload and misses
    no constraint: {micro_batch, ...} as `_said`; None where there is none."""
    now = assess(design)
    if not now.fits:
        return None
    pins = _pinned(now, (*DEGREES, "recompute", "offload"))
    pins |= dict.fromkeys(("plan.vpp", "plan.schedule", "plan.grad_accum"))
    best = None
    bound = "all of a replica's batch"
    for micro in divisors(now.chosen.phase.global_batch // now.plan["dp"]).tolist():
        a = changed(design, pins | {"plan.micro_batch": micro})
        if _allowed(a):
            best = a, "micro_batch", micro
        elif best is not None or not _fits(a):
            bound = f"at {micro}: {_stopped_by(a)}"
            break
    return best and _said(*best, bound)


def fewest_devices(design) -> dict | None:
    """Fewest devices, in whole nodes (or racks, where one link joins a rack): {devices, ...} as
    `_said`; with all constraints met. None where none does."""
    unit = assess(design).resolved.cluster.unit

    @few
    def at(units):
        return changed(design, {"cluster.devices": units * unit})

    def works(units):
        return _allowed(at(units))

    best = _first(lambda units: units * unit > LARGEST or works(units))
    if not works(best):
        return None
    # a round count below may divide where those between do not
    for step in (2**k for k in range(1, best.bit_length())):
        rounder = best // step * step
        if rounder < best and works(rounder):
            best = rounder
    less = best - 1
    return _said(
        at(best),
        "devices",
        best * unit,
        f"with {less * unit:,}: {_stopped_by(at(less))}" if less else "a single one",
    )


def earliest_finish(design, most_devices: int | None = None) -> dict | None:
    """Fewest days over device counts, in whole nodes or racks: {days, devices, ...} as `_said`.

    The counts double from a quarter of today's until two doublings in a row bring nothing, or up
    to `most_devices`; then quarter octaves around the best. Past the critical batch more devices
    only split the same batch: the curve bends back. The constraints of the design are kept but the
    deadline. None without tokens or where nothing fits.
    """
    now = assess(design)
    if now.resolved.phases[0].tokens is None:
        return None
    cluster = now.resolved.cluster
    cap = min(most_devices or LARGEST, LARGEST) // cluster.unit * cluster.unit

    @few
    def at(count):
        return changed(design, {"cluster.devices": count, "constraints.deadline_days": None})

    def days(count):
        return at(count).days if _allowed(at(count)) else inf

    def whole(count):
        return min(cluster.whole(count), cap)

    if not cap:
        return None
    best = searched = whole(cluster.devices / 4)
    idle = 0  # doublings in a row that brought nothing
    while searched < cap and idle < 2:
        searched = whole(2 * searched)
        idle = 0 if days(searched) < days(best) or isinf(days(best)) else idle + 1
        best = min((best, searched), key=days)
    beside = (whole(best * 2 ** (k / 4)) for k in (-3, -2, -1, 1, 2, 3))
    best = min((best, whole(cluster.devices), *beside), key=days)
    if isinf(days(best)):
        return None
    more = whole(2 * best)
    stated = now.resolved.constraints.given()
    if best == cap:
        bound = f"the {cap:,} devices that are allowed"
    elif not _allowed(at(more)):
        bound = f"with {more:,} devices: {_stopped_by(at(more))}"
    else:
        bound = f"{more:,} devices take {at(more).days:,.3g} days: the batch is shared out"
    bound += f"; searched up to {searched:,} devices, keeping "
    bound += ", ".join(n for n in stated if n != "deadline_days") or "no other constraint"
    return _said(at(best), "days", days(best), bound)


def largest_model(design) -> dict | None:
    """Largest model by size alone, dense or MoE as the design's own, that the design's machine can
    train within its constraints: {params, ...} as `_said`.

    The shape follows the kit's rule for a size (three digits are meant); everything else of the
    design is kept, pins of the plan are not. None where
    not even 100M fits.
    """
    kind = {"moe": True} if assess(design).resolved.model.is_moe else {}

    @few
    def at(millions):
        return changed(design, design.freed | {"model": {"size": millions * 1e6} | kind})

    best = _most(at, 100, 100_000_000)
    if not best:
        return None
    return _said(
        at(best),
        "params",
        at(best).params,
        f"at {(best + 100) / 1e3:,.4g}B: {_stopped_by(at(best + 100))}",
    )


def within_budget_of_compute(design) -> dict:
    """From the design's machine and deadline to the size and tokens of least loss: {compute_flops,
    params, tokens, law, source, ...} as `_said`.

    Compute [FLOP] is the most, in thousandths of what the machine's bf16 peak does by the deadline,
    whose dense model fits and is trained by then, failures included; formats below 16 bit may pass
    that peak, none ten times. It does not matter whether the design's own model has a plan. Raises
    ValueError without constraints.deadline_days, and where the model of the least such part does
    not fit or is late.
    """
    deadline = design.constraints.deadline_days
    if deadline is None:
        raise ValueError("constraints.deadline_days is needed: compute is devices x time x rate")
    a = assess(design)
    cluster = a.resolved.cluster
    part = cluster.accelerator.half_flops * cluster.devices * deadline * DAY_S / 1000

    @few
    def at(n):
        return _dense(a, *compute_optimal(n * part, LAW), {"deadline_days": deadline})

    best = _most(at, 1, 9999)
    if not best:
        raise ValueError(f"no model of least loss for this machine: {_stopped_by(at(1))}")
    size, tokens = compute_optimal(best * part, LAW)
    return {"params": size, "tokens": tokens, "law": LAW, "source": LAWS[LAW].source} | _said(
        at(best), "compute_flops", best * part, f"with more compute: {_stopped_by(at(best + 1))}"
    )


def by_scaling_laws(design, compute_flops: float | None = None) -> dict:
    """One budget of compute by every published law, each trained on the design's machine:
    {compute_flops, from, rows}.

    compute_flops : training compute [FLOP, 6 x parameters x tokens]; left out, what the machine
    does by constraints.deadline_days, else what the design itself spends.
    rows : [{law, title, params, tokens, tokens_per_param, loss, days, cost_usd, mfu, mfu_shown,
    verdict, plan, caveat, source}], the design's own model and tokens first (law None)
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
    if compute_flops is None and deadline is not None:
        compute_flops = within_budget_of_compute(design)["compute_flops"]
        origin = f"what the machine does in {deadline:g} days"
    elif compute_flops is None and d:
        compute_flops = 6 * n * d
        origin = "6 x parameters x tokens of the design"
    elif compute_flops is None:
        raise ValueError("a budget in FLOP, constraints.deadline_days or job.tokens is needed")
    said = ("law", "title", "params", "tokens", "caveat", "source")
    rows = [a | _trained(_dense(now, a["params"], a["tokens"])) for a in allocations(compute_flops)]
    if d and now.phases:
        rows = [dict(zip(said, (None, "this design", n, d, "", ""))) | _trained(now), *rows]
    for row in rows:
        params = row["params"]
        tokens = row["tokens"]
        row |= {"tokens_per_param": tokens / params, "loss": float(loss(params, tokens))}
    return {"compute_flops": float(compute_flops), "from": origin, "rows": rows}


def to_loss(now: Assessment, target: float) -> dict:
    """Days of a design's own model to a target loss, by each published surface: {target_loss,
    rows: [{law, title, tokens, days, cost_usd, verdict, source}], days_low, days_high}; tokens and
    days are None where a surface does not reach the loss at that size."""
    rows = []
    found = tokens_to_loss(float(now.resolved.params.active), target)
    path = now.resolved.job_path
    for id, law in LAWS.items():
        if law.surface is None:
            continue
        tokens = found.get(id)
        a = None
        if tokens is not None:
            a = changed(
                now.design,
                {f"{path}.tokens": float(f"{tokens:.4g}"), f"{path}.target_loss": None},
                like=now,
            )
        said = {"law": id, "title": law.title, "tokens": tokens, "source": law.source}
        rows.append(said | _trained(a) | ({} if a else {"verdict": "not reached"}))
    days = [row["days"] for row in rows if row["days"] is not None]
    return {
        "target_loss": target,
        "rows": rows,
        "days_low": min(days, default=None),
        "days_high": max(days, default=None),
    }


def _trained(a) -> dict:
    figures = ("days", "cost_usd", "mfu", "mfu_shown", "plan")
    return {
        "verdict": "refused" if a is None else a.verdict,
        **(a.figures(*figures) if _fits(a) else dict.fromkeys(figures)),
    }


def _said(a: Assessment, name: str, value, bound: str) -> dict:
    """An answer: its value under its name and as `value`, what bounds it, and the figures of the
    design that it was read from."""
    own = {name: value, "value": value, "bound": bound, "devices": a.resolved.cluster.devices}
    return own | a.figures(
        "verdict", "days", "cost_usd", "plan", "mfu", "mfu_shown", "memory_share"
    )


def largest_active(now: Assessment) -> dict | None:
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
    spec = {} if isinstance(design.model, str) else design.model.given()
    if None in (deadline, now.days, now.resolved.model.experts or None, spec.get("size")):
        return None
    if "active" in spec:
        return None
    size = float(spec["size"])
    grid = [k * 10.0**power for power in range(5, 13) for k in range(10, 100)]
    grid = [count for count in grid if size / 100 <= count < size]

    @few
    def at(count, space):
        return changed(design, {"model.active": count}, space=space)  # None: no such shape

    def late(count, space=DEFAULT):
        return not _fits(at(count, space)) or at(count, space).days > deadline

    near = max(bisect_left(grid, True, key=partial(late, space=COARSE)) - 1, 0)
    for end in (near + NEARBY, len(grid)):
        near = bisect_left(grid, True, near, min(end, len(grid)), key=late)
        if near < end:
            break
    if not near:
        return None
    best = at(grid[near - 1], DEFAULT)
    return {
        "active_params": float(best.active_params),
        "experts": best.resolved.model.experts,
        "top_k": best.resolved.model.top_k,
        "days": best.days,
    }
