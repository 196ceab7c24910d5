"""The changes that come next, each evaluated on one design: changes of the site, and the list of
all. A function returns None where the change cannot be made."""

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

from scantling import catalogue
from scantling.advise.recovery import between_sites
from scantling.base.show import seconds
from scantling.base.units import HOUR_S
from scantling.catalogue.models.shape import Model, parameters
from scantling.catalogue.words import SHARDINGS, Sharding
from scantling.physics.step import step_time

from ..constants import CONSTANTS
from .change import RESIZED, Base, Change, figure, memory_figure, step_figure, unsaid
from .growth import grown
from .model_changes import longer, other_precision, sparser

GROWTH = (2, 4, 10)
CONTEXT = (4, 16)
GBIT = 1.25e8  # bytes


def changes(b: Base) -> Iterator[Change]:
    """All that can be made, in the order of the list."""
    tried = (
        *(grown(b, k) for k in GROWTH),
        other_precision(b, "fp8"),
        other_precision(b, "nvfp4"),
        sparser(b),
        *(longer(b, k) for k in CONTEXT),
        reducing_switches(b),
        two_sites(b),
        post_training(b),
    )
    return (change for change in tried if change is not None)


def reducing_switches(b: Base) -> Change | None:
    """Switches that reduce, in place of the fabric's own."""
    s = b.s
    cluster = s.cluster
    if not s.wired or cluster.in_network_reduction:
        return None
    what = "switches that reduce (SHARP and its like)"
    fabric = catalogue.fabrics("scale-out").get(cluster.scale_out)
    if fabric is not None and not fabric.in_network_reduction:
        return Change(
            id="in-network",
            what=what,
            figure=figure("step", "s", s.model_step_s, None),
            works=False,
            breaks=f"the switches of {fabric.name} do not reduce",
            mend="another fabric",
        )
    now = s.chosen.step
    then = step_time(replace(s.case, link=replace(s.case.link, sharp=1)))
    sharding = SHARDINGS[int(s.case.plan.sharding)]
    breaks = mend = ""
    if sharding != Sharding.NONE:
        breaks = (
            f"{sharding} sends a reduce-scatter and an all-gather, which the switches do not "
            "shorten"
        )
        mend = "an all-reduce of unsharded gradients gains, where the states fit unsharded"
    return Change(
        id="in-network",
        what=what,
        figure=figure("step", "s", float(now.total), float(then.total)),
        more=(figure("exposed data-parallel traffic", "s", float(now.dp), float(then.dp)),),
        breaks=breaks,
        mend=mend,
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
    way = between_sites(then.a)
    if way is None:
        return None
    now = b.coarse
    devices = b.s.cluster.devices
    return Change(
        id="sites-2",
        what="two datacentres, weights averaged after local steps",
        figure=step_figure(now, then),
        more=(
            figure("goodput", "share", now.e.goodput, then.e.goodput),
            figure("one exchange", "s", 0.0, way["exchange_s"]),
            figure("steps between two exchanges", "count", 1.0, way["local_steps"]),
            figure(
                "step where gradients cross every time", "s", now.model_step_s, every.model_step_s
            ),
            memory_figure(now, then),
            figure("checkpoint", "bytes", now.e.checkpoint_bytes, then.e.checkpoint_bytes),
            figure("devices a site", "count", devices, 0.5 * devices),
        ),
        breaks=(
            f"{way['exchange_s']:,.0f} s over {b.s.cluster.site_bytes_per_s / GBIT:,.0f} Gbit/s "
            f"for each average of {way['local_steps']} steps of {seconds(then.model_step_s)}"
        ),
        mend=(
            "values of 8 or 4 bits, an exchange beside the next steps; more waves between the sites"
        ),
        confirm="loss of local steps against the synchronous run",
    )


def kv_bytes_per_token(model: Model) -> float:
    """Cache of one token in 16 bit: 2 x layers x kv heads x head size x 2, or the latent and rotary
    part of MLA. [bytes]"""
    width = 2 * model.kv_heads * model.head_dim
    if model.attention == "mla" and model.kv_lora:
        width = model.kv_lora + model.qk_rope
    return 2.0 * model.layers * width


def post_training(b: Base) -> Change | None:
    """Rollouts and training on the same fleet: the share of devices that keeps both busy.

    One engine is the fewest nodes that hold the weights in 16 bit with a third of the memory free.
    Decode is bound by memory traffic: tokens/s = s x rate / (active weights + s x cache of a
    sequence of seq_len), s as many sequences as the free memory holds, at most 256 a device.
    Training runs at today's tokens/s per device. Balanced where generated = trained.
    """
    s = b.s
    cluster = s.cluster
    chip = s.case.chip
    memory = float(chip.usable_bytes)
    n = parameters(s.model)
    weights = 2.0 * float(n.total)
    of_node = memory * s.per_node * CONSTANTS.engine_memory
    devices = ceil(weights / of_node) * s.per_node
    if devices * 2 > cluster.devices:
        return None
    cache = kv_bytes_per_token(s.model) * s.phase.seq_len
    free = memory * devices * CONSTANTS.engine_usable - weights
    seqs = max(1.0, min(free / cache, CONSTANTS.engine_sequences * devices))
    all_run = seqs * max(s.model.top_k, 1) >= max(s.model.experts, 1)
    read = 2.0 * float(n.total if all_run else n.active) + seqs * cache
    generated = seqs * float(chip.hbm_bytes_per_s) * float(s.case.constants.hbm_share) / read
    trained = s.a.tokens_per_s_per_device
    share = trained / (trained + generated)
    out_bytes_per_s = devices * (cluster.scale_out_bytes_per_s * cluster.scale_out_efficiency)
    breaks = ""
    if share > 0.5:
        breaks = (
            f"{share:.0%} of the devices would generate: the {seqs:,.0f} sequences of "
            f"{s.phase.seq_len:,} tokens in an engine's memory bound it"
        )
    return Change(
        id="post-training",
        what="reinforcement learning on the same fleet",
        figure=figure("share of devices that generate", "share", 0.0, share),
        more=(
            figure("tokens/s per device, training", "tokens/s", trained, trained),
            figure("tokens/s per device, generating", "tokens/s", None, generated),
            figure("sequences in flight per engine", "count", None, seqs),
            figure("new weights to an engine", "s", None, weights / out_bytes_per_s),
            figure("devices of an engine", "count", None, devices),
            figure("a billion tokens of fine-tuning", "h", None, 1e9 / (trained * s.used) / HOUR_S),
        ),
        breaks=breaks,
        mend="shorter rollouts, a quantised cache, speculative decoding",
        confirm="how stale the weights of rollouts may be",
    )
