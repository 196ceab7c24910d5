"""Direct answers: the largest, longest, biggest, fewest and earliest that a design allows, each
found by evaluating it."""

from __future__ import annotations

from ..base.errors import DesignError
from ..base.units import DAY_S
from ..plans.enumerate import divisors
from ..verdict.assess import assess
from .batch import SHAPE, reshapes_of
from .scaling_laws import LAWS, allocations, compute_optimal, loss

LARGEST = 2_000_000  # devices


def _try(design, changes):
    try:
        return assess(design.change(changes))
    except DesignError:
        return None


def _free(design) -> dict:
    """The changes that let go of every pin of the plan."""
    return {f"plan.{k}": None for k in design.plan.given()}


def _dense(
    design,
    job: str,
    params: float,
    tokens: float,
):
    """A dense model of that size and tokens on the design's machine, with no constraints."""
    changes = {
        "model": {"size": float(f"{params:.4g}")},
        f"{job}.tokens": float(f"{tokens:.4g}"),
    }
    return _try(design, _free(design) | {"constraints": None} | changes)


def _fits(a) -> bool:
    return a is not None and a.verdict != "impossible" and all(c.fits for c in a.phases)


def _meets(a) -> bool:
    return _fits(a) and a.verdict == "feasible"


def _most(
    works,
    low: int,
    limit: int,
    step: int = 1,
) -> int | None:
    """The largest multiple of step up to limit that works, found by doubling and halving; works is
    assumed to fall once. None where low fails."""
    if not works(low):
        return None
    high = low
    while high < limit and works(min(2 * high, limit)):
        high = min(2 * high, limit)
        if high == limit:
            return limit
    low, high = high, min(2 * high, limit)
    while high - low > step:
        middle = (low + high) // 2 // step * step
        if middle in (low, high):
            break
        low, high = (middle, high) if works(middle) else (low, middle)
    return low


def longest_sequence(design, plan_kept: bool = True) -> dict | None:
    """Longest sequence [tokens, a multiple of 1,024] that fits: {seq_len, plan, mfu, memory_share};
    None where not even 1,024 does.

    plan_kept : keep today's degrees (tp, pp, dp, ep, sharding) and let cp, recompute and
    micro-batch follow; else the whole plan is open.
    The global batch keeps its sequences.
    """
    now = assess(design)
    pins = {}
    if plan_kept and now.phases:
        pins = {f"plan.{k}": now.plan[k] for k in ("tp", "pp", "cp", "dp", "ep", "sharding")}
    job = now.resolved.job_path
    tokens = (
        {
            f"{job}.global_batch": now.chosen.phase.global_batch,
            f"{job}.global_batch_tokens": None,
        }
        if now.phases
        else {}
    )

    def at(seq):
        return _try(
            design,
            {
                **pins,
                **tokens,
                f"{job}.seq_len": seq,
            },
        )

    best = _most(
        lambda seq: _fits(at(seq)),
        1024,
        2**24,
        1024,
    )
    if best is None:
        return None
    a = at(best)
    return dict(
        seq_len=best,
        **_said(a),
    )


def biggest_micro_batch(design) -> dict | None:
    """Largest micro-batch that fits with today's degrees and recompute: {micro_batch, bound, plan,
    mfu, memory_share}; None where nothing fits.

    bound : what stops it, the memory or the batch of a replica.
    """
    now = assess(design)
    if not _fits(now):
        return None
    plan = now.plan
    per_replica = now.chosen.phase.global_batch // plan["dp"]
    pins = {
        f"plan.{k}": plan[k] for k in ("tp", "pp", "cp", "dp", "ep", "sharding", "recompute")
    } | {
        "plan.vpp": None,
        "plan.schedule": None,
        "plan.grad_accum": None,
    }
    best, bound = None, "all of a replica's batch"
    for micro in divisors(per_replica).tolist():
        a = _try(
            design,
            {
                **pins,
                "plan.micro_batch": micro,
            },
        )
        if not _fits(a):
            bound = "the next does not fit"
            break
        best = dict(
            micro_batch=micro,
            **_said(a),
        )
    return best and {
        **best,
        "bound": bound,
    }


def fewest_devices(design, meet: bool = True) -> dict | None:
    """Fewest devices, whole nodes: {devices, plan, mfu, memory_share, days}; with all constraints
    met, or (meet=False) that merely fit. None where none does."""
    node = assess(design).resolved.cluster.devices_per_node
    good = _meets if meet else _fits

    def at(nodes):
        return _try(design, {"cluster.devices": nodes * node})

    high = 1
    while not good(at(high)):
        high *= 2
        if high * node > LARGEST:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(at(middle)) else (middle, high)
    a = at(high)
    return dict(
        devices=high * node,
        days=a.days,
        **_said(a),
    )


def earliest_finish(
    design,
    most_devices: int | None = None,
    within_budget: bool = True,
) -> dict | None:
    """Fewest days over device counts in steps of the quarter octave up to `most_devices` (4 times
    today's): {days, devices, cost_usd, bound, plan, mfu, memory_share}.

    bound : the constraints that were kept, in words. within_budget : keep the other constraints of
    the design. Past the critical batch more devices only split the same batch: the curve bends
    back.
    None without tokens or where nothing fits.
    """
    now = assess(design)
    if now.resolved.phases[0].tokens is None:
        return None
    cluster = now.resolved.cluster
    most, node = most_devices or 4 * cluster.devices, cluster.devices_per_node
    counts = sorted(
        {max(node, int(round(cluster.devices * 2 ** (k / 4) / node)) * node) for k in range(-8, 13)}
        | {cluster.devices, most // node * node}
    )
    best = None
    for count in counts:
        if count > most:
            break
        a = _try(
            design,
            {
                "cluster.devices": count,
                "constraints.deadline_days": None,
            },
        )
        if (
            _fits(a)
            and (a.verdict == "feasible" or not within_budget)
            and (best is None or a.days < best["days"])
        ):
            best = dict(
                days=a.days,
                devices=count,
                cost_usd=a.cost_usd,
                **_said(a),
            )
    limits = vars(now.resolved.constraints).items() if within_budget else ()
    kept = [name for name, limit in limits if limit is not None and name != "deadline_days"]
    bound = f"keeping {', '.join(kept)}" if kept else "no other constraint"
    return best and best | {"bound": bound}


def largest_model(design, moe: bool | None = None) -> dict | None:
    """Largest dense or MoE model by size alone that the design's machine can train within its
    constraints: {params, plan, mfu, memory_share, days}.

    The shape follows the kit's rule for a size (three digits are meant); everything else of the
    design is kept, pins of the plan are not. None where
    not even 100M fits.
    """
    now = assess(design)
    moe = now.resolved.model.is_moe if moe is None else moe

    def at(millions):
        model = {"size": millions * 1e6} | ({"moe": moe} if moe else {})
        return _try(design, _free(design) | {"model": model})

    best = _most(
        lambda m: _meets(at(m)),
        100,
        100_000_000,
        100,
    )
    if best is None:
        return None
    a = at(best)
    return dict(
        params=a.params,
        days=a.days,
        **_said(a),
    )


def within_budget_of_compute(design, law: str = "besiroglu-2024") -> dict:
    """From the design's machine and deadline to the size and tokens of least loss: {compute_flops,
    params, tokens, days, mfu, law, source}.

    Compute = devices x deadline x goodput x model FLOP/s of a model of that size, so size and rate
    are found together. Raises ValueError without
    constraints.deadline_days.
    """
    deadline = design.constraints.deadline_days
    if deadline is None:
        raise ValueError("constraints.deadline_days is needed: compute is devices x time x rate")
    a = assess(design)
    compute = (
        float(a.model_tflops_per_device) * 1e12 * a.devices_used * a.goodput * deadline * DAY_S
    )
    for _ in range(8):
        size, tokens = (float(x) for x in compute_optimal(compute, law))
        b = _dense(
            design,
            a.resolved.job_path,
            size,
            tokens,
        )
        if not _fits(b):
            raise ValueError(
                f"the model of least loss for this compute, {size / 1e9:,.1f}B "
                f"parameters, does not fit the machine"
            )
        if abs(b.days / deadline - 1) < 0.01:
            break
        compute *= deadline / b.days
    return dict(
        compute_flops=compute,
        params=size,
        tokens=tokens,
        days=b.days,
        mfu=b.mfu,
        law=law,
        source=LAWS[law].source,
        plan=b.plan,
    )


def by_scaling_laws(design, compute_flops: float | None = None) -> dict:
    """One budget of compute by every published law, each trained on the design's machine:
    {compute_flops, from, rows}.

    compute_flops : training compute [FLOP, 6 x parameters x tokens]; left out, what the machine
    does by constraints.deadline_days, else what the design itself spends.
    rows : [{law, title, params, tokens, tokens_per_param, loss, days, cost_usd, mfu, verdict, plan,
    caveat, source}], the design's own model and tokens first (law None)
    where it has tokens. loss : by the refitted Chinchilla surface [nats a token], for comparing
    rows; days, cost, mfu, plan are None where no plan holds the model.
    Sizes are trained as dense models of the kit's shape for a size; pins of the plan are not kept.
    Raises ValueError where there is neither a budget, nor a deadline, nor tokens.
    """
    now = assess(design)
    n, d = float(now.resolved.params.active), sum(p.tokens or 0.0 for p in now.resolved.phases)
    if compute_flops is not None:
        origin = "given"
    elif design.constraints.deadline_days is not None:
        compute_flops, origin = (
            within_budget_of_compute(design)["compute_flops"],
            f"what the machine does in {design.constraints.deadline_days:g} days",
        )
    elif d:
        compute_flops, origin = 6 * n * d, "6 x parameters x tokens of the design"
    else:
        raise ValueError("a budget in FLOP, constraints.deadline_days or job.tokens is needed")
    rows = []
    if d and now.phases:
        own = dict(
            law=None,
            title="this design",
            params=n,
            tokens=d,
            caveat="",
            source="",
        )
        rows.append(own | _trained(now))
    for a in allocations(compute_flops):
        said = {k: getattr(a, k) for k in ("law", "title", "params", "tokens", "caveat", "source")}
        rows.append(
            said
            | _trained(
                _dense(
                    design,
                    now.resolved.job_path,
                    a.params,
                    a.tokens,
                )
            )
        )
    for row in rows:
        params, tokens = row["params"], row["tokens"]
        row |= dict(
            tokens_per_param=tokens / params,
            loss=float(loss(params, tokens)),
        )
    return {
        "compute_flops": float(compute_flops),
        "from": origin,
        "rows": rows,
    }


def _trained(a) -> dict:
    figures = ("days", "cost_usd", "mfu", "plan")
    return dict(
        verdict="refused" if a is None else a.verdict,
        **{name: getattr(a, name) if _fits(a) else None for name in figures},
    )


def reshapes(design, most: int = 20) -> list[dict]:
    """Other ways to make the same global batch, fastest first: [{dp, micro_batch, grad_accum, tp,
    cp, pp, devices_used, step_s, memory_share}].

    dp x micro_batch x grad_accum is the global batch of the design in every row, so the optimizer's
    steps are the same up to rounding and no learning
    rate has to change. Each row is the fastest plan of its shape; pins of the plan are not kept.
    """
    a = assess(design)
    if not a.phases or not a.chosen.fits:
        return []
    p = a.plan
    now = {k: p[k] for k in SHAPE} | dict(
        devices_used=a.devices_used,
        step_s=float(a.chosen.step.total),
        memory_share=a.memory_bytes["total"] / a.memory_bytes["capacity"],
        step_ratio=1.0,
    )
    return sorted([now, *reshapes_of(a, most=most - 1)], key=lambda row: row["step_s"])


def _said(a) -> dict:
    return dict(
        plan=a.plan,
        mfu=a.mfu,
        memory_share=a.memory_bytes["total"] / a.memory_bytes["capacity"],
    )
