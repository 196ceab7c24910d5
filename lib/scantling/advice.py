"""Why this plan, and what to avoid: every line from plans that this design's own search evaluated."""
from __future__ import annotations

import numpy as np

from .cases import SHARDINGS, micro_batches
from .figures import communication
from .limits import short
from .quantities import show
from .searching import REASONS, ZERO3

WORTH = 0.05        # a trap is listed when it costs at least this share of a step
AXES = ("tp", "cp", "pp", "dp", "ep")


def _column(found, name):
    return np.broadcast_to(np.asarray(getattr(found.plan, name), float), found.fits.shape)


def best_where(found, mask):
    """Row of the fastest fitting plan under a mask; None where none fits."""
    rows = np.flatnonzero(mask & found.fits)
    return int(rows[np.argmin(found.step_s[rows])]) if len(rows) else None


def _trap(found, chosen, what, mask, why) -> list[dict]:
    """One entry if the best plan with this trait is worth avoiding here: slower by WORTH, or no plan with it fits."""
    if not np.any(mask):
        return []
    base, row = found.step_s[chosen.row], best_where(found, mask)
    if row == chosen.row:
        return []
    if row is None:
        leanest = int(np.flatnonzero(mask)[np.argmin(found.total_bytes[mask])])
        need, have = found.total_bytes[leanest], found.situation.chip.usable_bytes
        return [dict(what=what, why=f"{why}; none of its {int(mask.sum()):,} plans fits: the leanest ({short(found.row(leanest))}) needs {show('memory_bytes.total', need)} of "
                     f"{show('memory_bytes.capacity', have)}, {REASONS[found.reason[leanest]]}", cost=f"{need / have - 1:+.0%} memory")]
    loss = found.step_s[row] / base - 1
    if loss < WORTH:
        return []
    return [dict(what=what, why=f"{why}; its best plan ({short(found.row(row))}) takes {show('step_s', found.step_s[row])} a step against {show('step_s', base)}", cost=f"{loss:+.0%} step time")]


def avoid(assessment) -> list[dict]:
    """Tempting plans that lose on this design, the most expensive first: [{what, why, cost}]."""
    chosen = assessment.chosen
    found, link = chosen.found, chosen.case.link
    if not chosen.fits:
        return []
    tp, pp, cp, ep, etp = (_column(found, k) for k in ("tp", "pp", "cp", "ep", "etp"))
    sharding, vpp, recompute = _column(found, "sharding"), _column(found, "vpp"), _column(found, "recompute")
    m = np.broadcast_to(micro_batches(found.situation.job, found.plan), found.fits.shape)
    ratio = link.up_bytes_per_s / link.out_bytes_per_s
    domain = int(link.domain)
    out = []
    out += _trap(found, chosen, f"tensor parallelism across nodes (tp above {domain})", tp > domain,
                 f"every layer's collectives would leave the scale-up domain for a network {ratio:.0f} times slower per device")
    out += _trap(found, chosen, "sharded data parallelism alone (no tp, pp or cp)", (tp * pp * cp == 1) & (sharding >= ZERO3),
                 f"all {assessment.resolved.params.total / 1e9:,.0f}B weights are gathered over the network every micro-batch, and dp stops at the global batch of {chosen.phase.global_batch:,}")
    out += _trap(found, chosen, "a pipeline with fewer micro-batches than four a stage, not interleaved", (pp > 1) & (m < 4 * pp) & (vpp == 1), "the bubble is (pp − 1) / micro-batches of the step")
    out += _trap(found, chosen, "unsharded optimizer states", sharding == 0, f"each replica keeps {found.situation.job.optimizer_bytes + found.situation.job.master_bytes:g} bytes a parameter that its data-parallel peers could share")
    out += _trap(found, chosen, "recomputing everything", recompute == 2, "a second forward for memory that this design has to spare")
    out += _trap(found, chosen, f"experts spread across scale-up domains (ep x etp above {domain})", ep * etp > domain, "dispatch and combine would ride the network cards in every MoE layer")
    out += _trap(found, chosen, "expert parallelism of one", (ep == 1) & (assessment.resolved.model.experts > 1), "every rank would hold all experts")
    out += _intervals(assessment)
    return sorted(out, key=lambda a: -_size(a["cost"]))


def _size(cost: str) -> float:
    return float(cost.split("%")[0].replace(",", ""))


def _intervals(assessment) -> list[dict]:
    """Hourly saves, where goodput falls by more than a point against the chosen interval."""
    e = assessment.endurance
    curve = e.curve
    if not len(curve.get("interval_s", ())):
        return []
    x, y = np.asarray(curve["interval_s"]), np.asarray(curve["goodput"])
    if not x[0] <= 3600 <= x[-1]:
        return []
    hourly = float(np.interp(3600, x, y))
    loss = 1 - hourly / float(e.goodput)
    if loss < 0.01:
        return []
    return [dict(what="hourly checkpoints", why=f"a failure every {show('mtbf_s', float(e.mtbf_s))} throws away half an hour on average; goodput {show('goodput', hourly)} "
                 f"against {show('goodput', float(e.goodput))} at {show('checkpoint_interval_s', float(e.checkpoint_interval_s))}", cost=f"{loss:+.1%} goodput")]


def why(assessment) -> list[dict]:
    """One line per axis in use (and the next value of the others): tier, traffic, exposed time, cost of the neighbouring values."""
    chosen = assessment.chosen
    found, plan = chosen.found, chosen.plan
    rows = {r["axis"]: r for r in communication(chosen)}
    out = []
    for axis in AXES:
        if axis == "ep" and assessment.resolved.model.experts == 0:
            continue
        text = f"{axis} {plan[axis]}"
        if axis in rows:
            r = rows[axis]
            text += (f" on the {r['tier']} tier: {r['what']}, {show('communication.bytes', r['bytes'])} a device and step, "
                     f"{show('communication.exposed_s', r['exposed_s'])} of {show('communication.time_s', r['time_s'])} exposed")
        elif plan[axis] == 1:
            text += ": not used"
        sides = [s for s in (_beside(found, chosen, axis, plan[axis], up) for up in (True, False)) if s]
        out.append(dict(axis=axis, text=text + ("; " + "; ".join(sides) if sides else "")))
    share = SHARDINGS.index(plan["sharding"])
    others = {SHARDINGS[i]: best_where(found, _column(found, "sharding") == i) for i in range(len(SHARDINGS)) if i != share}
    costs = [f"{name} {found.step_s[i] / found.step_s[chosen.row] - 1:+.1%}" for name, i in others.items() if i is not None and chosen.fits]
    out.append(dict(axis="sharding", text=f"{plan['sharding']}" + (": step time of the best plan with " + ", ".join(costs) if costs else "")))
    return out


def _beside(found, chosen, axis, value, up) -> str:
    """What the next value of an axis would cost, at the best setting of everything else."""
    column = _column(found, axis)
    values = np.unique(column)
    beyond = values[values > value] if up else values[values < value]
    if not len(beyond) or not chosen.fits:
        return ""
    other = beyond[0] if up else beyond[-1]
    row = best_where(found, column == other)
    if row is None:
        return f"{axis} {int(other)} does not fit"
    return f"{axis} {int(other)} {found.step_s[row] / found.step_s[chosen.row] - 1:+.1%} step time"
