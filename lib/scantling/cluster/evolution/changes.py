"""The changes that come next, each evaluated on one design. A function returns what it found, None
where the change cannot be made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ... import catalogue
from ...advise import scaling_laws as convergence
from ...base.errors import DesignError
from ...catalogue.models.shape import parameters
from ...endure import elastic
from ...endure.cost import power_w
from ...endure.reliability import endure
from ...physics import traffic
from ...physics.cases import SHARDINGS
from ...physics.gather import situation
from ...physics.memory.peak import memory
from ...physics.step import PARTS, device_params, step_time
from ...plans import space as planning
from ...plans.prepare import prepare
from ...verdict.limits import LOSSES, short
from ..record import STANDSTILL, is_torus

GROWTH = (2, 4, 10)
CONTEXT = (4, 16)
DIP = 0.05  # of the ideal speed that a change may take before it counts as breaking
SHAPE = (
    "layers",
    "hidden",
    "ffn_hidden",
    "heads",
    "kv_heads",
    "head_dim",
    "vocab",
    "mlp",
    "attention",
    "tied_embeddings",
)


class Base:
    """A design, and the same design with its plan searched on the coarse space: what the changed
    ones are compared with."""

    def __init__(self, assessment):
        self.a, self.searches = assessment, 0
        self.design = assessment.design.change({"measured": None, "constraints": None})
        self._coarse = None

    def job(self) -> str:
        phases = self.a.resolved.phases
        return f"job.phases.{self.a.main}" if self.a.design.job.phases and len(phases) else "job"

    def look(self, changes: dict):
        """The assessment of a changed design with the plan's own pins dropped where they cannot
        hold; None where nothing fits."""
        from ...verdict.assess import assess

        pins = {f"plan.{k}": None for k in self.design.plan.given()}
        for paths in (changes, {**changes, **pins}) if pins else (changes,):
            try:
                self.searches += 1
                found = assess(self.design.change(paths), space=planning.COARSE)
            except DesignError:
                continue
            if found.phases and all(c.fits for c in found.phases):
                return found
        return None

    @property
    def coarse(self):
        """Today's design on the coarse space; the assessment itself where nothing of that space
        fits."""
        if self._coarse is None:
            self._coarse = self.look({}) or self.a
        return self._coarse


def _rate(a) -> float:
    """Useful tokens per second of the whole job, failures counted."""
    phase = a.chosen.phase
    return (
        phase.global_batch * phase.seq_len / float(a.chosen.step.total) * float(a.endurance.goodput)
    )


def _grown(b: Base, k: int):
    n = b.a.resolved.cluster.devices
    now, cluster = b.coarse, b.a.resolved.cluster
    paths = {
        "cluster.devices": n * k,
        "plan.dp": None,
        "plan.grad_accum": None,
        "plan.micro_batch": None,
        "plan.ep": None,
        "plan.etp": None,
        "reliability.spares": None,
    }
    if is_torus(cluster) and cluster.scale_up_domain >= n:
        paths["cluster.scale_up_domain"] = min(n * k, int(cluster.accelerator.scale_up_domain_max))
    then = b.look(paths)
    if then is None:
        return dict(
            id=f"devices-{k}",
            what=f"{n * k:,} devices",
            figure=("goodput", float(now.endurance.goodput), None, "share"),
            works=False,
            breaks="no plan spreads over them",
            mend="a larger global batch",
        )
    speed = _rate(then) / _rate(now)
    used = then.devices_used / (n * k)
    parts = lambda a: {
        p: float(getattr(a.chosen.step, p)) / float(a.chosen.step.total) for p in PARTS
    }  # noqa: E731
    before, after = parts(now), parts(then)
    useful = float(then.endurance.goodput) / float(now.endurance.goodput)
    losses = {"failures and saves": 1 - useful, "devices that the batch cannot fill": 1 - used}
    losses |= {
        LOSSES.get(p, p): after[p] - before[p]
        for p in PARTS
        if p not in ("gemm", "attention", "elementwise")
    }
    cause = max(losses, key=losses.get)
    phase = then.chosen.phase
    advice = convergence.batch_advice(
        phase.global_batch * phase.seq_len * k, phase.tokens or 20 * b.a.resolved.params.total
    )
    breaks = (
        ""
        if speed > k * (1 - DIP)
        else (
            f"{cause} take{'s' if not cause.startswith(('devices', 'failures')) else ''} "
            f"{losses[cause]:.1%} more; {speed:.2f} times as fast instead of {k}"
        )
    )
    mtbf = float(then.endurance.mtbf_s)
    mend = {
        "failures and saves": (
            "restart in place from peers' memory, replica-level recovery (the recovery ladder)"
        ),
        "devices that the batch cannot fill": f"a global batch {k} times as large",
    }.get(
        cause,
        (
            f"a global batch {k} times as large costs {advice.extra_tokens[0]:.0%} to "
            f"{advice.extra_tokens[1]:.0%} more tokens"
        ),
    )
    watts = float(power_w(then.resolved.cluster))
    job, batch = b.job(), phase.global_batch * k
    wider = b.look({**paths, f"{job}.global_batch": batch, f"{job}.global_batch_tokens": None})
    alone = None if wider is None else _rate(wider) / _rate(now)
    if float(then.endurance.goodput) < STANDSTILL:
        speed, breaks = (
            0.0,
            (
                f"a failure every {mtbf:,.0f} s, {float(then.endurance.recovery_s):,.0f} s "
                f"to recover from one: the run hardly advances"
            ),
        )
    elif speed < 1:
        breaks = (
            f"at the same batch more devices make it slower: {cause} "
            f"take{'s' if not cause.startswith(('devices', 'failures')) else ''} "
            f"{losses[cause]:.1%} more"
        )
    return dict(
        id=f"devices-{k}",
        what=f"{n * k:,} devices",
        figure=("speed over today's", 1.0, speed, "ratio"),
        breaks=breaks,
        mend=mend if breaks else "",
        confirm="the larger batch" if breaks and "batch" in mend else "",
        more=(
            ("speed with the batch grown as well", 1.0, alone, "ratio"),
            ("tokens that such a batch costs", 1.0, 1 + advice.extra_tokens[0], "ratio"),
            ("step", float(now.chosen.step.total), float(then.chosen.step.total), "s"),
            ("MFU", now.figures["mfu"], then.figures["mfu"], "share"),
            ("goodput", float(now.endurance.goodput), float(then.endurance.goodput), "share"),
            ("time between failures", float(now.endurance.mtbf_s), mtbf, "s"),
            (
                "micro-batches a replica",
                float(now.plan["grad_accum"]),
                float(then.plan["grad_accum"]),
                "count",
            ),
            ("devices used", float(now.devices_used), float(then.devices_used), "count"),
            ("spare nodes", float(now.endurance.spares), float(then.endurance.spares), "nodes"),
            (
                "write rate needed",
                float(now.endurance.write_bytes_per_s_needed),
                float(then.endurance.write_bytes_per_s_needed),
                "bytes/s",
            ),
            ("power at the nodes", float(power_w(cluster)), watts, "W"),
            *_switches_of(now, then),
            (
                "days",
                now.figures["days"],
                then.figures["days"] if float(then.endurance.goodput) > 1e-3 else None,
                "days",
            ),
        ),
    )


def _switches_of(now, then):
    """Switches and their tiers before and after, as the network part builds them."""
    from ..network.build import built

    a, b = built(now)[0], built(then)[0]
    return ("switches", float(a.switches), float(b.switches), "count"), (
        "tiers of switches",
        float(a.tiers),
        float(b.tiers),
        "count",
    )


def _precision(b: Base, name: str):
    """The same plan in another precision of the matrix products."""
    a = b.a
    chip, phase = a.resolved.cluster.accelerator, a.chosen.phase
    if (
        name not in chip.precisions()
        or name in phase.precision
        or phase.precision.endswith(name[-3:])
    ):
        return None
    try:
        resolved = prepare(
            b.design.change(
                {
                    "job.precision": name,
                    **({f"{b.job()}.precision": None} if b.job() != "job" else {}),
                }
            )
        )
        there = situation(resolved, resolved.phases[a.main])
    except DesignError:
        return None
    case = there.cases(a.chosen.case.plan)
    now, then = float(a.chosen.step.total), float(step_time(case).total)
    used, had = float(memory(case).total), float(a.chosen.memory.total)
    peak = float(case.chip.linear_flops) / float(a.chosen.case.chip.linear_flops)
    rest = 1 - float(a.chosen.step.gemm) / now
    fits = used <= float(a.chosen.memory.capacity)
    return dict(
        id=f"precision-{name}",
        what=f"{name} matrix products, same plan",
        figure=("step", now, then, "s"),
        works=fits,
        more=(("memory per device", had, used, "bytes"), ("peak", 1.0, peak, "ratio")),
        breaks=(
            f"{now / then:.2f} times as fast, not {peak:.1f}: {rest:.0%} of the step is not "
            f"matrix products"
        )
        if now / then < peak * (1 - DIP)
        else "",
        mend="fused casts, fewer bytes outside the products",
        confirm="loss against bf16 at small scale",
    )


def _sparser(b: Base):
    """Twice the experts at the same active parameters; a dense model becomes eight experts of which
    two run, each half as wide."""
    m = b.a.resolved.model
    if m.is_moe:
        shape = {
            k: getattr(m, k)
            for k in (
                *SHAPE,
                "top_k",
                "expert_ffn_hidden",
                "shared_ffn_hidden",
                "moe_layers",
                "mtp_layers",
            )
        } | {"experts": 2 * m.experts}
        what = f"{2 * m.experts} experts instead of {m.experts}, the same {m.top_k} active"
    else:
        if m.ffn_hidden % 2:
            return None
        shape = {k: getattr(m, k) for k in SHAPE} | {
            "experts": 8,
            "top_k": 2,
            "expert_ffn_hidden": m.ffn_hidden // 2,
            "moe_layers": m.layers,
        }
        what = "8 experts of half the width, 2 active: the same FLOPs a token"
    if m.attention == "mla":
        shape |= {
            k: getattr(m, k) for k in ("q_lora", "kv_lora", "qk_nope", "qk_rope", "v_head_dim")
        }
    pins = {f"plan.{k}": None for k in b.design.plan.given()}
    try:
        then = b.look({"model": shape, **pins})
    except DesignError:
        return None
    now = b.coarse
    figure = (
        "time of a step over today's",
        1.0,
        None if then is None else float(then.chosen.step.total) / float(now.chosen.step.total),
        "ratio",
    )
    if then is None:
        return dict(
            id="sparsity",
            what=what,
            figure=figure,
            works=False,
            breaks="the experts do not fit",
            mend="more devices, or offload",
        )
    extra = float(then.chosen.step.total) / float(now.chosen.step.total) - 1
    return dict(
        id="sparsity",
        what=what,
        figure=figure,
        more=(
            ("step", float(now.chosen.step.total), float(then.chosen.step.total), "s"),
            ("parameters", float(now.params), float(then.params), "count"),
            (
                "memory per device",
                float(now.chosen.memory.total),
                float(then.chosen.memory.total),
                "bytes",
            ),
            ("exposed expert traffic", float(now.chosen.step.ep), float(then.chosen.step.ep), "s"),
            ("ep", float(now.plan["ep"]), float(then.plan["ep"]), "count"),
        ),
        breaks=f"the step takes {extra:+.0%} for the same FLOPs a token: {short(then.plan)}"
        if extra > DIP
        else "",
        mend="node-limited routing, overlapped dispatch",
        confirm="routing balance and quality at equal active parameters",
    )


def _longer(b: Base, k: int):
    """k times the sequence at the same tokens a step."""
    phase, job, now = b.a.chosen.phase, b.job(), b.coarse
    batch = phase.global_batch // k
    if batch < 1:
        return None
    then = b.look(
        {
            f"{job}.seq_len": phase.seq_len * k,
            f"{job}.global_batch": batch,
            f"{job}.global_batch_tokens": None,
            "plan.dp": None,
            "plan.grad_accum": None,
            "plan.micro_batch": None,
            "plan.cp": None,
            "plan.ep": None,
            "plan.etp": None,
        }
    )
    what = f"sequences of {phase.seq_len * k:,} tokens, {batch:,} a step"
    base = float(now.chosen.step.total)
    if then is None:
        return dict(
            id=f"context-{k}",
            what=what,
            figure=("time of the same tokens", 1.0, None, "ratio"),
            works=False,
            breaks="activations do not fit on these devices",
            mend="more context parallelism, full recompute, offload",
            confirm="quality at the longer context",
        )
    took = float(then.chosen.step.total)
    return dict(
        id=f"context-{k}",
        what=what,
        figure=("time of the same tokens", 1.0, took / base, "ratio"),
        more=(
            ("step", base, took, "s"),
            ("cp", float(now.plan["cp"]), float(then.plan["cp"]), "count"),
            (
                "attention's share",
                float(now.chosen.step.attention) / base,
                float(then.chosen.step.attention) / took,
                "share",
            ),
            ("exposed context traffic", float(now.chosen.step.cp), float(then.chosen.step.cp), "s"),
            ("MFU", now.figures["mfu"], then.figures["mfu"], "share"),
            (
                "memory per device",
                float(now.chosen.memory.total),
                float(then.chosen.memory.total),
                "bytes",
            ),
        ),
        breaks=f"the same tokens take {took / base:.2f} times as long"
        if took > base * (1 + DIP)
        else "",
        mend="attention that is not quadratic (windows, sparse), or the long phase last and short",
        confirm="quality at the longer context",
    )


def reduced_in_network(case, gain: float) -> tuple[float, float]:
    """(exposed data-parallel seconds now, with reducing switches).

    An all-reduce in the switches moves S instead of 2 S (n-1)/n: the plain part is divided by
    `gain`. A reduce-scatter and all-gather
    (zero1 and up) already move S each way, so only the ring's n - 1 hops become log2 n. What
    compute hides is solved from today's
    e = c^2 / (c + w).
    """
    dense, experts = device_params(case)
    wire = float(traffic.data_parallel(case, dense, experts).step_wire_s)
    ranks = max(float(case.plan.dp * case.plan.cp), 1.0)
    grads = float(dense + experts) * float(case.job.grad_bytes)
    hops = float(case.constants.dp_hop_s) * (ranks - 1) * max(grads / 0.5e9, 1.0)
    hops = min(hops, wire)
    part = SHARDINGS[int(case.plan.sharding)]
    sent = wire - hops
    less = (sent / gain if part == "none" else sent) + hops * np.log2(max(ranks, 2)) / max(
        ranks - 1, 1
    )
    now = float(traffic.exposed(wire, _window(case, wire)))
    return now, float(traffic.exposed(less, _window(case, wire)))


def _window(case, wire: float) -> float:
    share = float(step_time(case).dp) / max(wire, 1e-30)
    return wire / share - wire if 0 < share < 1 else 0.0 if share >= 1 else 1e30


def _switches(b: Base):
    cluster, c = b.a.resolved.cluster, b.a.chosen.case
    if cluster.nodes < 2 or is_torus(cluster) or cluster.in_network_reduction:
        return None
    own = catalogue.fabrics("scale-out").get(cluster.scale_out)
    known = [
        f.in_network_gain
        for f in catalogue.fabrics().values()
        if f.in_network_gain == f.in_network_gain
    ]
    if own is not None and not own.in_network_reduction:
        return dict(
            id="in-network",
            what="switches that reduce (SHARP and its like)",
            figure=("step", float(b.a.chosen.step.total), None, "s"),
            works=False,
            breaks=f"the switches of {own.name} do not reduce",
            mend="another fabric",
        )
    published = own is not None and own.in_network_gain == own.in_network_gain
    gain = own.in_network_gain if published else float(np.median(known or [1.0]))
    now, then = reduced_in_network(c, gain)
    step = float(b.a.chosen.step.total)
    plain = SHARDINGS[int(c.plan.sharding)] == "none"
    return dict(
        id="in-network",
        what="switches that reduce (SHARP and its like)",
        figure=("step", step, step - now + then, "s"),
        more=(
            ("exposed data-parallel traffic", now, then, "s"),
            ("all-reduce over a ring", 1.0, gain, "ratio"),
        ),
        breaks=""
        if plain
        else (
            f"{SHARDINGS[int(c.plan.sharding)]} sends a reduce-scatter and an all-gather, "
            f"which the switches do not shorten; only the {int(c.plan.dp * c.plan.cp) - 1} "
            f"hops do"
        ),
        mend=("" if plain else "worth it for latency at many ranks, not for bytes")
        + (
            ""
            if published
            else "; no gain is published for this fabric, the median of the others is used"
        ),
    )


def _apart(b: Base):
    """Two datacentres instead of one."""
    a = b.a
    if a.resolved.cluster.sites > 1 or a.resolved.cluster.nodes < 2:
        return None
    size = float(a.endurance.checkpoint_bytes)
    then = endure(
        replace(a.resolved.cluster, sites=2),
        a.resolved.reliability,
        checkpoint_bytes=size,
        state_bytes_per_device=size / a.devices_used,
        step_s=a.step_s,
    )
    between = a.resolved.cluster.site_bytes_per_s
    way = elastic.apart(a.resolved.params.total, a.step_s, 2, between)
    return dict(
        id="sites-2",
        what="two datacentres, local updates",
        figure=("goodput", float(a.endurance.goodput), float(then.goodput), "share"),
        more=(
            ("one exchange", 0.0, float(way["sync_s"]), "s"),
            ("lost where gradients cross every step", 0.0, float(way["every_step_share"]), "share"),
            (
                "devices a site",
                float(a.resolved.cluster.devices),
                a.resolved.cluster.devices / 2,
                "count",
            ),
        ),
        breaks=(
            f"{way['sync_s']:,.0f} s over {between * 8 / 1e9:,.0f} Gbit/s for each average "
            f"of {elastic.INNER_STEPS} steps of {a.step_s:.3g} s"
        ),
        mend="int8 averages, overlapped; more waves between the sites",
        confirm="loss of local updates against the synchronous run",
    )


def kv_bytes_per_token(model) -> float:
    """Cache of one token in 16 bit: 2 x layers x kv heads x head size x 2, or the latent and rotary
    part of MLA. [bytes]"""
    width = (
        model.kv_lora + model.qk_rope
        if model.attention == "mla" and model.kv_lora
        else 2 * model.kv_heads * model.head_dim
    )
    return 2.0 * model.layers * width


def _post_training(b: Base):
    """Rollouts and training on the same fleet: the share of devices that keeps both busy.

    One engine is the fewest nodes that hold the weights in 16 bit with a third of the memory free.
    Decode is bound by memory traffic:
    tokens/s = s x rate / (active weights + s x cache of a sequence of seq_len), s as many sequences
    as the free memory holds, at most 256 a
    device. Training runs at today's tokens/s per device. Balanced where generated = trained.
    """
    a, model, cluster = b.a, b.a.resolved.model, b.a.resolved.cluster
    c = a.chosen.case
    per, usable = int(cluster.devices_per_node), float(c.chip.usable_bytes)
    n = parameters(model)
    weights = 2.0 * float(n.total)
    nodes = max(1, int(np.ceil(weights / (usable * per * 2 / 3))))
    devices = nodes * per
    if devices * 2 > cluster.devices:
        return None
    cache = kv_bytes_per_token(model) * a.chosen.phase.seq_len
    free = usable * devices * 0.9 - weights
    seqs = max(1.0, min(free / cache, 256.0 * devices))
    active = 2.0 * float(
        n.total if seqs * max(model.top_k, 1) >= max(model.experts, 1) else n.active
    )
    made = (
        seqs
        * float(c.chip.hbm_bytes_per_s)
        * devices
        * float(c.constants.hbm_share)
        / (active + seqs * cache)
        / devices
    )
    trained = a.figures["tokens_per_s_per_device"]
    share = trained / (trained + made)
    sync = weights / (
        devices * float(cluster.scale_out_bytes_per_s) * float(cluster.scale_out_efficiency)
    )
    return dict(
        id="post-training",
        what="reinforcement learning on the same fleet",
        figure=("share of devices that generate", 0.0, share, "share"),
        more=(
            ("tokens/s per device, training", trained, trained, "tokens/s"),
            ("tokens/s per device, generating", None, made, "tokens/s"),
            ("sequences in flight per engine", None, seqs, "count"),
            ("new weights to an engine", None, sync, "s"),
            ("devices of an engine", None, float(devices), "count"),
            ("a billion tokens of fine-tuning", None, 1e9 / (trained * a.devices_used) / 3600, "h"),
        ),
        breaks=(
            f"{share:.0%} of the devices would generate: the {seqs:,.0f} sequences of "
            f"{a.chosen.phase.seq_len:,} tokens in an engine's memory bound it"
        )
        if share > 0.5
        else "",
        mend="shorter rollouts, a quantised cache, speculative decoding",
        confirm="how stale the weights of rollouts may be",
    )


CHANGES = (
    *(lambda b, k=k: _grown(b, k) for k in GROWTH),
    lambda b: _precision(b, "fp8"),
    lambda b: _precision(b, "nvfp4"),
    _sparser,
    *(lambda b, k=k: _longer(b, k) for k in CONTEXT),
    _switches,
    _apart,
    _post_training,
)
