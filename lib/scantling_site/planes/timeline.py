"""The step of a design as a timeline, whose exposed pieces sum to the step."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from scantling.base import show
from scantling.base.records import Record, record
from scantling.catalogue.words import Sharding
from scantling.endure import storage
from scantling.physics import collectives as curves, compute
from scantling.physics.step import exchange_passes
from scantling.verdict.assessment import Chosen

from ..constants import CONSTANTS
from ..job_site import Site
from ..network.traffic import gathers_layers, inside

Shares = dict[str, dict[str, float]]  # part of the step -> pass -> share
EXCHANGES = ("tp", "cp", "ep")  # of activations
PRODUCTS = ("gemm", "attention", "elementwise")


@record
class Piece(Record):
    """One stretch of the step, in the order in which it first happens. Exposed seconds lengthen the
    step; hidden ones run beside `beside`."""

    what: str
    plane: str  # control | compute | data | storage | network
    start_s: float  # exposed time before it
    exposed_s: float
    hidden_s: float
    beside: str
    times: int  # a step
    bytes: float  # a device moves in it, a step
    note: str


def passes(chosen: Chosen) -> Shares:
    """Shares of each part of the step that belong to the forward, to the recomputed forward and to
    the backward: {part: {pass: share}}; of the data-parallel traffic by what it is (`dp_shares`).

    Counted as the step model counts them: backward GEMMs twice the forward's, its collectives once
    (a quarter more under sequence parallelism), recomputed layers one forward with its collectives.
    """
    layer = compute.layer_time(chosen.case)
    times = {
        "gemm": (layer.gemm, 0, 2 * layer.gemm + layer.accumulate),
        "attention": (layer.attention, 0, layer.attention_backward),
        "elementwise": (layer.elementwise, 0, 2 * layer.elementwise + layer.cast),
        "recompute": (0, 1, 0),
        "pp": (1, 0, 1),
        **exchange_passes(chosen.case),
    }
    shares = {part: _pass_shares(*(float(t) for t in of_part)) for part, of_part in times.items()}
    step = chosen.step
    seconds = {
        "gemm": float(step.gemm),
        "attention": float(step.attention),
        "elementwise": float(step.elementwise),
    }
    forward = sum(seconds[part] * shares[part]["forward"] for part in PRODUCTS)
    forward /= sum(seconds.values())
    shares["bubble"] = {"forward": forward, "backward": 1 - forward}
    shares["dp"] = dp_shares(chosen)
    return shares


def _pass_shares(forward: float, again: float, backward: float) -> dict[str, float]:
    total = max(forward + again + backward, 1e-30)
    return {"forward": forward / total, "again": again / total, "backward": backward / total}


def dp_shares(chosen: Chosen) -> dict[str, float]:
    """Shares of the data-parallel traffic by what it is: {gather, gradients, weights}:
    per-micro-batch gathers, gradients, updated weights."""
    sharding = chosen.plan["sharding"]
    layered = gathers_layers(sharding)
    parts = {
        "gather": 4 if layered else 0,
        "gradients": float(chosen.case.job.grad_bytes),
        "weights": 0 if layered or sharding == Sharding.NONE else 2,
    }
    total = sum(parts.values())
    return {part: n / total for part, n in parts.items()}


@record
class Parts:
    """The parts of a step from which its pieces are cut: seconds and bytes of a device by part, and
    the shares of its passes."""

    exposed_s: Mapping[str, float]
    hidden_s: Mapping[str, float]
    bytes: Mapping[str, float]
    shares: Shares

    def piece(
        self,
        what: str,
        plane: str,
        *parts: str,
        of: str = "all",
        times: int = 1,
        beside: str = "",
        note: str,
        hidden_s: float = 0.0,
        bytes: float = 0.0,
    ) -> Piece:
        """The pass `of` some parts of the step; `hidden_s` and `bytes` are those of work that the
        step model does not time."""
        share = {n: self.shares[n].get(of, 0.0) if n in self.shares else 1.0 for n in parts}
        return Piece(
            what=what,
            plane=plane,
            start_s=0.0,
            exposed_s=sum(self.exposed_s.get(n, 0.0) * share[n] for n in parts),
            hidden_s=hidden_s or sum(self.hidden_s.get(n, 0.0) * share[n] for n in parts),
            beside=beside,
            times=times,
            bytes=bytes or sum(self.bytes.get(n, 0.0) * share[n] for n in parts),
            note=note,
        )


def timeline(s: Site) -> tuple[Piece, ...]:
    """The step of the main phase, piece by piece; exposed_s sums to `step_s` (the measured one
    where the design has it).

    Exposed and hidden seconds are the step model's (`step_breakdown_s`, `hidden_s`); what a rank
    does m times is one piece of m times. The read of the next batch, its copy to the devices,
    logging and the checkpoint's background writes are hidden by construction (prefetch, side
    stream, host threads); their own seconds stand beside to show how far they are from showing.
    """
    parts = Parts(
        exposed_s=s.a.step_breakdown_s,
        hidden_s={axis: float(x.hidden_s) for axis, x in s.chosen.step.axes.items()},
        bytes={row.axis: row.bytes for row in s.traffic},
        shares=passes(s.chosen),
    )
    pieces = []
    start = 0.0
    for of_pass in (_input, _forward, _backward, _end):
        for piece in of_pass(s, parts):
            worked = piece.exposed_s > 0 or piece.hidden_s > 0 or piece.plane == "control"
            if worked:
                pieces.append(replace(piece, start_s=start))
                start += piece.exposed_s
    return tuple(pieces)


def _input(s: Site, parts: Parts) -> Iterator[Piece]:
    """The batch from the store to the devices."""
    dp = s.plan["dp"]
    store = storage.rates(s.cluster)
    batch = float(s.batch_tokens * s.case.job.token_bytes)
    reader = float(min(store.read_bytes_per_s / dp, store.node_read_bytes_per_s))
    yield parts.piece(
        "next batch read",
        "data",
        "data",
        hidden_s=batch / dp / reader,
        bytes=batch / dp,
        beside="the step before",
        note=f"{dp:,} readers, {show.size(batch)} a step in all, prefetched",
    )
    host = s.cluster.accelerator.host_link_bytes_per_s
    if host != host:
        host = CONSTANTS.host_link_bytes_per_s
    tokens = float(s.case.plan.micro_batch) * s.phase.seq_len / s.plan["cp"] * s.micro_batches
    copied = tokens * CONSTANTS.token_copy_bytes
    yield parts.piece(
        "batch to the devices",
        "data",
        hidden_s=copied / host,
        bytes=copied,
        times=s.micro_batches,
        beside="forward",
        note="ids and labels of a micro-batch, side stream",
    )


def _forward(s: Site, parts: Parts) -> Iterator[Piece]:
    plan = s.plan
    m = s.micro_batches
    piped = plan["pp"] > 1
    yield parts.piece(
        "pipeline fills",
        "compute",
        "bubble",
        of="forward",
        times=int(piped),
        note=(
            f"{plan['schedule']}: the last of {plan['pp']} stages waits for its first micro-batch"
        ),
    )
    yield parts.piece(
        "weights gathered",
        "network",
        "dp",
        of="gather",
        times=2 * m if gathers_layers(plan["sharding"]) else 0,
        beside="forward and backward",
        note="layer by layer ahead of use",
    )
    yield parts.piece(
        "forward",
        "compute",
        *PRODUCTS,
        of="forward",
        times=m,
        note="GEMMs, attention, element-wise",
    )
    yield parts.piece(
        "forward collectives",
        "network",
        *EXCHANGES,
        of="forward",
        times=m,
        beside="forward",
        note="activations of tp, cp and ep",
    )
    yield parts.piece(
        "activations to the next stage",
        "network",
        "pp",
        of="forward",
        times=m * plan["vpp"] if piped else 0,
        beside="forward of the next micro-batch",
        note="point to point",
    )
    yield parts.piece(
        "logits and loss",
        "compute",
        "logits",
        times=m,
        note="on the last stage; three GEMMs both ways",
    )


def _backward(s: Site, parts: Parts) -> Iterator[Piece]:
    plan = s.plan
    m = s.micro_batches
    piped = plan["pp"] > 1
    yield parts.piece(
        "forward again",
        "compute",
        "recompute",
        *EXCHANGES,
        of="again",
        times=m if s.a.step_breakdown_s["recompute"] > 0 else 0,
        beside="backward",
        note=f"recompute {plan['recompute']}",
    )
    yield parts.piece(
        "backward",
        "compute",
        *PRODUCTS,
        of="backward",
        times=m,
        note="gradients of inputs and weights",
    )
    yield parts.piece(
        "backward collectives",
        "network",
        *EXCHANGES,
        of="backward",
        times=m,
        beside="backward",
        note="gradients of activations",
    )
    yield parts.piece(
        "gradients to the stage before",
        "network",
        "pp",
        of="backward",
        times=m * plan["vpp"] if piped else 0,
        beside="backward of the next micro-batch",
        note="point to point",
    )
    yield parts.piece(
        "pipeline drains",
        "compute",
        "bubble",
        of="backward",
        times=int(piped),
        note="the first stage's last backward",
    )


def _end(s: Site, parts: Parts) -> Iterator[Piece]:
    """Gradients reduced, weights updated, and what the host and the store do."""
    plan = s.plan
    copies = plan["dp"] * plan["cp"] > 1
    whole = plan["sharding"] == Sharding.NONE
    times = s.micro_batches if gathers_layers(plan["sharding"]) else int(copies)
    yield parts.piece(
        "gradients reduced",
        "network",
        "dp",
        of="gradients",
        times=times,
        beside="backward",
        note="all-reduce" if whole else "reduce-scatter, bucket by bucket as layers finish",
    )
    stepped = "every replica the same" if whole else "each rank its shard"
    if plan["offload"] != "none":
        stepped += ", states on the host"
    yield parts.piece("optimizer", "compute", "optimizer", note=f"{s.phase.optimizer}, {stepped}")
    yield parts.piece(
        "updated weights gathered",
        "network",
        "dp",
        of="weights",
        times=int(parts.shares["dp"]["weights"] > 0 and copies),
        beside="forward of the next step",
        note="all-gather",
    )
    yield parts.piece(
        "launches and bookkeeping",
        "control",
        "host",
        note="kernel launches that the device waits for, loop, timers",
    )
    yield parts.piece("barrier", "control", "straggler", note="all ranks wait for the slowest")
    yield _log(s, parts)
    yield _checkpoint(s, parts)


def _log(s: Site, parts: Parts) -> Piece:
    """The all-reduce of what is logged."""
    dp = s.plan["dp"]
    near = curves.wires(s.cluster, dp, inside(s.chosen, "dp"))
    size = CONSTANTS.log_bytes
    return parts.piece(
        "log",
        "control",
        hidden_s=float(curves.fastest("all_reduce", size, near)) if dp > 1 else 0.0,
        bytes=size,
        beside="the next forward",
        note="loss, gradient norm, timers",
    )


def _checkpoint(s: Site, parts: Parts) -> Piece:
    """The share of a save that one step carries."""
    e = s.e
    stall_ms = s.shared_step * e.checkpoint_stall_s / 1e-3
    return parts.piece(
        "checkpoint hook",
        "storage",
        hidden_s=s.shared_step * e.checkpoint_durable_s,
        bytes=e.checkpoint_bytes / s.used * s.shared_step,
        beside="the steps after a save",
        note=(
            f"every {e.checkpoint_interval_s / s.step_s:,.0f} steps; its stall of "
            f"{e.checkpoint_stall_s:.2f} s counts in goodput, {stall_ms:.2f} ms a step"
        ),
    )
