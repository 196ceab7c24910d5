"""The changes that come next, each evaluated on one design. A function returns what it found, None
where the change cannot be made; the words stand in tables/changes.yaml."""

from dataclasses import replace
from functools import cached_property, partial

import numpy as np
from scantling import catalogue
from scantling.advise.recovery import between_sites
from scantling.base.errors import DesignError
from scantling.base.records import Known, Record, record
from scantling.catalogue import scaling_laws as convergence
from scantling.catalogue.models.shape import parameters
from scantling.catalogue.words import SHARDINGS
from scantling.endure.cost import power_w
from scantling.physics.gather import situation
from scantling.physics.memory.peak import memory
from scantling.physics.step import COMPUTE, PARTS, step_time
from scantling.plans import space as planning
from scantling.plans.prepare import prepare
from scantling.plans.words import short
from scantling.verdict.assess import assess
from scantling.verdict.texts import loss_name

from ..fabric.build import built
from ..site import STANDSTILL, Site, site_of
from ..texts import constant, fill, texts

GROWTH = (2, 4, 10)
CONTEXT = (4, 16)
DIP = constant("dip")
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
MOE = ("top_k", "expert_ffn_hidden", "shared_ffn_hidden", "moe_layers", "mtp_layers")
MLA = ("q_lora", "kv_lora", "qk_nope", "qk_rope", "v_head_dim")
RESIZED = ("dp", "grad_accum", "micro_batch", "ep", "etp")  # of the plan, where the job changes


@record
class Figure(Record):
    """One figure before and after a change."""

    name: str
    now: Known
    then: Known
    unit: str


@record
class Change(Record):
    """One change evaluated: the figure that it moves most, others beside it, what breaks and what
    would mend it."""

    id: str
    what: str
    figure: Figure
    more: tuple[Figure, ...] = ()
    works: bool = True  # whether a plan fits and trains
    breaks: str = ""
    mend: str = ""
    confirm: str = ""  # what an ML specialist has to confirm, empty where nothing


def unsaid(section: str, fields) -> dict:
    """The change that leaves fields of a section of the design to the rules."""
    return {f"{section}.{field}": None for field in fields}


class Base:
    """A design, and the same design with its plan searched on the coarse space: what the changed
    ones are compared with."""

    def __init__(self, site: Site):
        self.s = site
        self.searches = 0
        self.design = site.a.design.change(dict.fromkeys(("measured", "constraints")))
        self.job = site.a.resolved.job_path  # of the main phase's fields in the design
        self.unpinned = unsaid("plan", self.design.plan.given())  # its own pins, dropped

    def look(self, changes: dict) -> Site | None:
        """The site of a changed design with the plan's own pins dropped where they cannot hold;
        None where nothing fits."""
        for pins in ({}, self.unpinned) if self.unpinned else ({},):
            try:
                self.searches += 1
                found = assess(self.design.change(changes | pins), space=planning.COARSE)
            except DesignError:
                continue
            if found.phases and all(c.fits for c in found.phases):
                return site_of(found)
        return None

    @cached_property
    def coarse(self) -> Site:
        """Today's design on the coarse space; the design itself where nothing of that space
        fits."""
        return self.look({}) or self.s


def change(s: Site, kind: str, id="", /, *, broken="breaks", mend="mend", **values) -> Change:
    """The change of that kind in tables/changes.yaml, filled with what was found; `broken` and
    `mend` name the texts that apply, empty where nothing breaks."""
    words = texts("changes")[kind]

    def figure(name, unit, *cells):
        if len(cells) == 1:
            cells = f"=now.{cells[0]}", f"=then.{cells[0]}"
        now, then = fill(cells, s, **values)
        return Figure(name=name, now=now, then=then, unit=unit)

    def text(key):
        return fill(words.get(key, ""), s, **values)

    return Change(
        id=id or kind.removesuffix(" refused"),
        what=text("what"),
        figure=figure(*words["figure"]),
        more=tuple(figure(*row) for row in words.get("more", ())),
        works=values.get("works", not kind.endswith("refused")),
        breaks=text(broken),
        mend=text(mend),
        confirm=text("confirm"),
    )


def tokens_per_s(s: Site) -> float:
    """Useful tokens per second of the whole job, failures counted."""
    return s.batch_tokens / s.model_step_s * s.e.goodput


def step_shares(s: Site) -> dict:
    """Exposed parts of the step as shares of it."""
    return {p: getattr(s.chosen.step, p) / s.model_step_s for p in PARTS}


def growth_losses(now: Site, then: Site, devices: int) -> dict:
    """What more devices lose, by cause: failures, idle devices, parts of the step that take more of
    it."""
    before = step_shares(now)
    after = step_shares(then)
    return {
        "failures and saves": 1 - then.e.goodput / now.e.goodput,
        "devices that the batch cannot fill": 1 - then.used / devices,
    } | {loss_name(p): after[p] - before[p] for p in PARTS if p not in COMPUTE}


def grown(b: Base, k: int) -> Change:
    """k times the devices, at the same batch and with the batch grown as well."""
    s = b.s
    cluster = b.s.cluster
    now = b.coarse
    id = f"devices-{k}"
    n = cluster.devices * k
    paths = {"cluster.devices": n, "reliability.spares": None, **unsaid("plan", RESIZED)}
    if s.torus and cluster.scale_up_domain >= cluster.devices:
        paths["cluster.scale_up_domain"] = min(n, cluster.accelerator.scale_up_domain_max)
    then = b.look(paths)
    if then is None:
        return change(s, "devices refused", id, devices=n, now=now)
    batch = then.phase.global_batch * k
    advice = convergence.batch_advice(
        batch * then.phase.seq_len, then.phase.tokens or 20 * s.a.resolved.params.total
    )
    wider = b.look({**paths, f"{b.job}.global_batch": batch, f"{b.job}.global_batch_tokens": None})
    faster = tokens_per_s(then) / tokens_per_s(now)
    stands = then.e.goodput < STANDSTILL
    losses = growth_losses(now, then, n)
    (low, high) = advice.extra_tokens
    cause = max(losses, key=losses.get)
    words = texts("changes", "devices")
    broken = "slower" if faster < 1 else "breaks" if faster <= k * (1 - DIP) else ""
    broken = "standstill" if stands else broken
    mend = words["mends"].get(cause, words["mend"]) if broken else ""
    found = change(
        s,
        "devices",
        id,
        broken=broken,
        devices=n,
        now=now,
        then=then,
        k=k,
        faster=faster,
        cause=cause,
        low=low,
        high=high,
        s="" if cause.startswith(("devices", "failures")) else "s",
        more=losses[cause],
        speed=0.0 if stands else faster,
        alone=None if wider is None else tokens_per_s(wider) / tokens_per_s(now),
        batch_tokens=1 + low,
        watts=power_w(cluster),
        watts_then=power_w(then.cluster),
        network=built(now.cluster).topology,
        network_then=built(then.cluster).topology,
        days=now.figures["days"],
        days_then=then.figures["days"] if then.e.goodput > 1e-3 else None,
    )
    mend = fill(mend, k=k, low=low, high=high)
    return replace(found, mend=mend, confirm=found.confirm if "batch" in mend else "")


def other_precision(b: Base, name: str) -> Change | None:
    """The same plan in another precision of the matrix products."""
    s = b.s
    own = b.s.phase.precision
    offered = name in s.cluster.accelerator.precisions()
    if not offered or name in own or own.endswith(name[-3:]):
        return None
    paths = {f"{b.job}.precision": None, "job.precision": name}
    try:
        resolved = prepare(b.design.change(paths))
        there = situation(resolved, resolved.main_phase)
    except DesignError:
        return None
    case = there.cases(s.case.plan)
    now = s.model_step_s
    then = step_time(case).total
    held = s.chosen.memory
    used = memory(case).total
    peak = case.chip.linear_flops / s.case.chip.linear_flops
    return change(
        s,
        "precision",
        f"precision-{name}",
        broken="breaks" if now / then < peak * (1 - DIP) else "",
        works=used <= held.capacity,
        name=name,
        now=now,
        then=then,
        had=held.total,
        used=used,
        peak=peak,
        faster=now / then,
        rest=1 - s.chosen.step.gemm / now,
    )


def sparser_model(m) -> dict | None:
    """Twice the experts at the same active parameters; a dense model becomes eight experts of which
    two run, each half as wide."""
    names = (*SHAPE, *(MOE if m.is_moe else ()), *(MLA if m.attention == "mla" else ()))
    shape = {k: getattr(m, k) for k in names}
    if m.is_moe:
        return {**shape, "experts": 2 * m.experts}
    if m.ffn_hidden % 2:
        return None
    return {
        **shape,
        "experts": 8,
        "top_k": 2,
        "expert_ffn_hidden": m.ffn_hidden // 2,
        "moe_layers": m.layers,
    }


def sparser(b: Base) -> Change | None:
    """More experts for the same FLOPs a token."""
    m = b.s.model
    shape = sparser_model(m)
    if shape is None:
        return None
    then = b.look({"model": shape, **b.unpinned})
    what = fill(
        texts("changes", "sparsity", "experts" if m.is_moe else "dense"), m=m, twice=2 * m.experts
    )
    if then is None:
        return change(b.s, "sparsity refused", what=what)
    ratio = then.model_step_s / b.coarse.model_step_s
    return change(
        b.s,
        "sparsity",
        broken="breaks" if ratio - 1 > DIP else "",
        what=what,
        now=b.coarse,
        then=then,
        ratio=ratio,
        extra=ratio - 1,
        plan=short(then.plan),
    )


def longer(b: Base, k: int) -> Change | None:
    """k times the sequence at the same tokens a step."""
    phase = b.s.phase
    now = b.coarse
    id = f"context-{k}"
    batch = phase.global_batch // k
    tokens = phase.seq_len * k
    if batch < 1:
        return None
    then = b.look(
        {
            f"{b.job}.seq_len": tokens,
            f"{b.job}.global_batch": batch,
            f"{b.job}.global_batch_tokens": None,
            **unsaid("plan", (*RESIZED, "cp")),
        }
    )
    if then is None:
        return change(b.s, "context refused", id, tokens=tokens, batch=batch)
    times = then.model_step_s / now.model_step_s
    attention, later = (step_shares(x)["attention"] for x in (now, then))
    return change(
        b.s,
        "context",
        id,
        broken="breaks" if times > 1 + DIP else "",
        tokens=tokens,
        batch=batch,
        now=now,
        then=then,
        times=times,
        attention=attention,
        attention_then=later,
    )


def reducing_switches(b: Base) -> Change | None:
    """Switches that reduce, in place of the fabric's own."""
    s = b.s
    cluster = b.s.cluster
    if not s.wired or cluster.in_network_reduction:
        return None
    own = catalogue.fabrics("scale-out").get(cluster.scale_out)
    if own is not None and not own.in_network_reduction:
        return change(s, "in-network refused", name=own.name)
    sharding = SHARDINGS[s.case.plan.sharding]
    plain = sharding == "none"
    return change(
        s,
        "in-network",
        broken="" if plain else "breaks",
        now=s.chosen.step,
        then=step_time(replace(s.case, link=replace(s.case.link, sharp=1))),
        sharding=sharding,
        worth="" if plain else texts("changes", "in-network", "worth"),
    )


def two_sites(b: Base) -> Change | None:
    """Two datacentres instead of one."""
    if b.s.sites > 1 or b.s.nodes < 2:
        return None
    paths = {"cluster.sites": 2, **unsaid("plan", RESIZED)}
    then = b.look(paths)
    every = b.look({**paths, "job.sync.kind": "synchronous"})
    if then is None or every is None:
        return None
    return change(b.s, "sites-2", now=b.coarse, then=then, every=every, way=between_sites(then.a))


def kv_bytes_per_token(model) -> float:
    """Cache of one token in 16 bit: 2 x layers x kv heads x head size x 2, or the latent and rotary
    part of MLA. [bytes]"""
    latent = model.attention == "mla" and model.kv_lora
    width = model.kv_lora + model.qk_rope if latent else 2 * model.kv_heads * model.head_dim
    return 2.0 * model.layers * width


def post_training(b: Base) -> Change | None:
    """Rollouts and training on the same fleet: the share of devices that keeps both busy.

    One engine is the fewest nodes that hold the weights in 16 bit with a third of the memory free.
    Decode is bound by memory traffic: tokens/s = s x rate / (active weights + s x cache of a
    sequence of seq_len), s as many sequences as the free memory holds, at most 256 a device.
    Training runs at today's tokens/s per device. Balanced where generated = trained.
    """
    s = b.s
    cluster = b.s.cluster
    chip = b.s.case.chip
    n = parameters(s.model)
    weights = 2.0 * n.total
    held = chip.usable_bytes * s.per_node * constant("engine_memory")
    devices = int(np.ceil(weights / held)) * s.per_node
    if devices * 2 > cluster.devices:
        return None
    cache = kv_bytes_per_token(s.model) * s.phase.seq_len
    free = chip.usable_bytes * devices * constant("engine_usable") - weights
    seqs = max(1.0, min(free / cache, constant("engine_sequences") * devices))
    all_run = seqs * max(s.model.top_k, 1) >= max(s.model.experts, 1)
    read = 2.0 * (n.total if all_run else n.active) + seqs * cache
    made = seqs * chip.hbm_bytes_per_s * s.case.constants.hbm_share / read
    trained = s.figures["tokens_per_s_per_device"]
    share = trained / (trained + made)
    return change(
        s,
        "post-training",
        broken="breaks" if share > 0.5 else "",
        share=share,
        trained=trained,
        made=made,
        seqs=seqs,
        devices=devices,
        load_s=weights / (devices * (cluster.scale_out_bytes_per_s * cluster.scale_out_efficiency)),
        tuned_h=1e9 / (trained * s.used) / 3600,
    )


CHANGES = (
    *(partial(grown, k=k) for k in GROWTH),
    partial(other_precision, name="fp8"),
    partial(other_precision, name="nvfp4"),
    sparser,
    *(partial(longer, k=k) for k in CONTEXT),
    reducing_switches,
    two_sites,
    post_training,
)
