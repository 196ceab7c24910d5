"""The same design on more devices."""

from typing import NamedTuple

from scantling.catalogue import scaling_laws as convergence
from scantling.catalogue.words import STEP_PARTS
from scantling.endure.cost import power_w
from scantling.verdict.overheads import OWN_COMPUTATION
from scantling.verdict.texts import loss_name

from ..fabric.build import built
from ..job_site import STANDSTILL, Site
from .change import DIP, RESIZED, Base, Change, Figure, figure, share_of_step, step_figure, unsaid

FAILURES = "failures and saves"
UNFILLED = "devices that the batch cannot fill"


class ExtraTokens(NamedTuple):
    """Tokens that a larger batch costs, as shares of those it trains on."""

    low: float
    high: float


def tokens_per_s(s: Site) -> float:
    """Useful tokens per second of the whole job, failures counted."""
    return s.batch_tokens / s.model_step_s * s.e.goodput


def growth_losses(now: Site, then: Site, devices: int) -> dict[str, float]:
    """What more devices lose, by cause: failures, idle devices, parts of the step that take more of
    it."""
    losses = {FAILURES: 1 - then.e.goodput / now.e.goodput, UNFILLED: 1 - then.used / devices}
    for part in STEP_PARTS:
        if part not in OWN_COMPUTATION:
            losses[loss_name(part)] = share_of_step(then, part) - share_of_step(now, part)
    return losses


def grown(b: Base, k: int) -> Change:
    """k times the devices, at the same batch and with the batch grown as well."""
    s = b.s
    cluster = s.cluster
    now = b.coarse
    n = cluster.devices * k
    paths = {"cluster.devices": n, "reliability.spares": None, **unsaid("plan", RESIZED)}
    if s.torus and cluster.scale_up_domain >= cluster.devices:
        paths["cluster.scale_up_domain"] = min(n, cluster.accelerator.scale_up_domain_max)
    then = b.look(paths)
    if then is None:
        return Change(
            id=f"devices-{k}",
            what=f"{n:,} devices",
            figure=figure("goodput", "share", now.e.goodput, None),
            works=False,
            breaks="no plan spreads over them",
            mend="a larger global batch",
        )
    batch = then.phase.global_batch * k
    wider = b.look({**paths, f"{b.job}.global_batch": batch, f"{b.job}.global_batch_tokens": None})
    advice = convergence.batch_advice(
        batch * then.phase.seq_len, then.phase.tokens or 20 * float(s.a.resolved.params.total)
    )
    extra = ExtraTokens(*advice.extra_tokens)
    faster = tokens_per_s(then) / tokens_per_s(now)
    losses = growth_losses(now, then, n)
    cause = max(losses, key=lambda name: losses[name])
    breaks = _breaks(then, k, faster, cause, losses[cause])
    mend = _mend(cause, k, extra) if breaks else ""
    return Change(
        id=f"devices-{k}",
        what=f"{n:,} devices",
        figure=figure("speed over today's", "ratio", 1.0, 0.0 if _stands(then) else faster),
        more=_more(now, then, wider, extra),
        breaks=breaks,
        mend=mend,
        confirm="the larger batch" if "batch" in mend else "",
    )


def _stands(s: Site) -> bool:
    """Whether failures come faster than the run recovers from them."""
    return s.e.goodput < STANDSTILL


def _breaks(then: Site, k: int, faster: float, cause: str, more: float) -> str:
    """What keeps k times the devices from being k times as fast."""
    if _stands(then):
        return (
            f"a failure every {then.e.mtbf_s:,.0f} s, {then.e.recovery_s:,.0f} s to recover from "
            "one: the run hardly advances"
        )
    take = "take" if cause in (FAILURES, UNFILLED) else "takes"
    if faster < 1:
        return f"at the same batch more devices make it slower: {cause} {take} {more:.1%} more"
    if faster <= k * (1 - DIP):
        return f"{cause} {take} {more:.1%} more; {faster:.2f} times as fast instead of {k}"
    return ""


def _mend(cause: str, k: int, extra: ExtraTokens) -> str:
    """What takes a cause of loss away."""
    if cause == FAILURES:
        return "restart in place from peers' memory, replica-level recovery (the recovery ladder)"
    if cause == UNFILLED:
        return f"a global batch {k} times as large"
    return (
        f"a global batch {k} times as large costs {extra.low:.0%} to {extra.high:.0%} more tokens"
    )


def _more(now: Site, then: Site, wider: Site | None, extra: ExtraTokens) -> tuple[Figure, ...]:
    """The other figures that growth moves."""
    network = built(now.cluster).topology
    network_then = built(then.cluster).topology
    ratio = None if wider is None else tokens_per_s(wider) / tokens_per_s(now)
    days_then = then.a.days if then.e.goodput > 1e-3 else None
    return (
        figure("speed with the batch grown as well", "ratio", 1.0, ratio),
        figure("tokens that such a batch costs", "ratio", 1.0, 1 + extra.low),
        step_figure(now, then),
        figure("MFU", "share", now.a.mfu_shown, then.a.mfu_shown),
        figure("goodput", "share", now.e.goodput, then.e.goodput),
        figure("time between failures", "s", now.e.mtbf_s, then.e.mtbf_s),
        figure("micro-batches a replica", "count", now.plan["grad_accum"], then.plan["grad_accum"]),
        figure("devices used", "count", now.a.devices_used, then.a.devices_used),
        figure("spare nodes", "nodes", now.spares, then.spares),
        figure(
            "write rate needed",
            "bytes/s",
            now.e.write_bytes_per_s_needed,
            then.e.write_bytes_per_s_needed,
        ),
        figure(
            "power at the nodes", "W", float(power_w(now.cluster)), float(power_w(then.cluster))
        ),
        figure("switches", "count", network.switches, network_then.switches),
        figure("tiers of switches", "count", network.tiers, network_then.tiers),
        figure("days", "days", now.a.days, days_then),
    )
