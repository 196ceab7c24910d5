"""One step of a design laid out: a timeline whose exposed pieces sum to the step, and the table of
its collectives."""

from __future__ import annotations

from dataclasses import dataclass

from ...base.records import Record
from ...endure import storage
from ...physics import compute, curves
from ...physics.cases import SHARDINGS, micro_batches
from ...physics.collectives import members_inside
from ...physics.communication import communication
from ...physics.step import device_params, exchange_passes
from ...physics.traffic import data_parallel
from ..network.traffic import inside, layer_units

TOKEN_COPY_BYTES = 16  # ids and labels, 8 bytes each, from host memory to a device
NORM_BYTES = 4  # one fp32 sum
LOG_BYTES = 1024  # loss, norms and timers of a step


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class CollectiveRow(Record):
    """One collective (or send) of the step."""

    axis: str
    what: str
    operation: str
    ranks: int
    groups: int
    message_bytes: float  # of one call, as nccl-tests counts
    bytes: float  # sent by a device a step
    times: int  # a step
    tier: str
    algorithm: str  # what a library picks for it, alone
    time_s: float
    exposed_s: float
    hidden: str  # yes | partly | no
    beside: str


def passes(chosen) -> dict:
    """Shares of each part of the step that belong to the forward, to the recomputed forward and to
    the backward: {part: (forward, again, backward)}.

    Counted as the step model counts them: backward GEMMs twice the forward's, its collectives once
    (a quarter more under sequence
    parallelism), recomputed layers one forward with its collectives.
    """
    c = chosen.case
    layer = compute.layer_time(c)
    split = lambda forward, again, backward: tuple(
        float(x) / max(float(forward + again + backward), 1e-30) for x in (forward, again, backward)
    )  # noqa: E731
    return {
        "gemm": split(layer.gemm, 0, 2 * layer.gemm + layer.accumulate),
        "attention": split(layer.attention, 0, layer.attention_backward),
        "elementwise": split(layer.elementwise, 0, 2 * layer.elementwise + layer.cast),
        "logits": split(1, 0, 2),
        "recompute": (0.0, 1.0, 0.0),
        **{axis: split(*each) for axis, each in exchange_passes(c).items()},
        "pp": (0.5, 0.0, 0.5),
    }


def dp_shares(chosen) -> dict:
    """Shares of the data-parallel traffic by what it is: {gather, gradients, weights}:
    per-micro-batch gathers, gradients, updated weights."""
    grads, name = float(chosen.case.job.grad_bytes), chosen.plan["sharding"]
    if SHARDINGS.index(name) >= SHARDINGS.index("zero3"):
        return {"gather": 4 / (4 + grads), "gradients": grads / (4 + grads), "weights": 0.0}
    if name == "none":
        return {"gather": 0.0, "gradients": 1.0, "weights": 0.0}
    return {"gather": 0.0, "gradients": grads / (grads + 2), "weights": 2 / (grads + 2)}


def timeline(assessment) -> tuple[Piece, ...]:
    """The step of the main phase, piece by piece; exposed_s sums to `step_s` (the measured one
    where the design has it).

    Exposed and hidden seconds are the step model's (`step_breakdown_s`, `hidden_s`); what a rank
    does m times is one piece of m times.
    The read of the next batch, its copy to the devices, logging and the checkpoint's background
    writes are hidden by construction
    (prefetch, side stream, host threads); their own seconds stand beside to show how far they are
    from showing.
    """
    chosen, cluster = assessment.chosen, assessment.resolved.cluster
    parts, c, plan, phase = (
        assessment.figures["step_breakdown_s"],
        assessment.chosen.case,
        assessment.chosen.plan,
        assessment.chosen.phase,
    )
    hidden = {k: float(axis.hidden_s) for k, axis in chosen.step.axes.items()}
    rows = {r["axis"]: r for r in _communication(assessment)}
    m = int(round(float(micro_batches(c.job, c.plan))))
    by, dp = passes(chosen), dp_shares(chosen)
    part = lambda names, which: sum(parts[n] * by[n][which] for n in names)  # noqa: E731
    quiet = lambda names, which: sum(hidden[n] * by[n][which] for n in names)  # noqa: E731
    sent = lambda names, which: sum(rows[n]["bytes"] * by[n][which] for n in names if n in rows)  # noqa: E731
    kernels, wires = ("gemm", "attention", "elementwise"), ("tp", "cp", "ep")
    dp_bytes = rows.get("dp", {"bytes": 0.0})["bytes"]
    width = 2 if assessment.resolved.model.vocab <= 65_536 else 4
    batch = phase.global_batch * phase.seq_len * width
    store = storage.rates(cluster)
    read = (
        batch
        / plan["dp"]
        / min(float(store.read_bytes_per_s) / plan["dp"], float(store.node_read_bytes_per_s))
    )
    copied = float(c.plan.micro_batch) * phase.seq_len / plan["cp"] * TOKEN_COPY_BYTES * m
    forward_share = part(kernels, 0) / max(sum(parts[k] for k in kernels), 1e-30)
    e = assessment.endurance
    per_step = chosen_step_share(assessment)
    gathers = SHARDINGS.index(plan["sharding"]) >= SHARDINGS.index("zero3")
    out = [
        (
            "next batch read",
            "data",
            parts["data"],
            read,
            "the step before",
            1,
            batch / plan["dp"],
            f"{plan['dp']:,} readers, {batch / 1e6:.3g} MB a step in all, prefetched",
        ),
        (
            "batch to the devices",
            "data",
            0.0,
            copied
            / float(
                cluster.accelerator.host_link_bytes_per_s
                if cluster.accelerator.host_link_bytes_per_s
                == cluster.accelerator.host_link_bytes_per_s
                else 31.5e9
            ),
            "forward",
            m,
            copied,
            "ids and labels of a micro-batch, side stream",
        ),
        (
            "pipeline fills",
            "compute",
            parts["bubble"] * forward_share,
            0.0,
            "",
            1 if plan["pp"] > 1 else 0,
            0.0,
            f"{plan['schedule']}: the last of {plan['pp']} stages waits for its first micro-batch",
        ),
        (
            "weights gathered",
            "network",
            parts["dp"] * dp["gather"],
            hidden["dp"] * dp["gather"],
            "forward and backward",
            2 * m if gathers else 0,
            dp_bytes * dp["gather"],
            "layer by layer ahead of use",
        ),
        ("forward", "compute", part(kernels, 0), 0.0, "", m, 0.0, "GEMMs, attention, element-wise"),
        (
            "forward collectives",
            "network",
            part(wires, 0),
            quiet(wires, 0),
            "forward",
            m,
            sent(wires, 0),
            "activations of tp, cp and ep",
        ),
        (
            "activations to the next stage",
            "network",
            parts["pp"] / 2,
            hidden["pp"] / 2,
            "forward of the next micro-batch",
            m * plan["vpp"] if plan["pp"] > 1 else 0,
            sent(("pp",), 0),
            "point to point",
        ),
        (
            "logits and loss",
            "compute",
            parts["logits"],
            0.0,
            "",
            m,
            0.0,
            "on the last stage; three GEMMs both ways",
        ),
        (
            "forward again",
            "compute",
            parts["recompute"] + part(wires, 1),
            quiet(wires, 1),
            "backward",
            m if parts["recompute"] > 0 else 0,
            sent(wires, 1),
            f"recompute {plan['recompute']}",
        ),
        (
            "backward",
            "compute",
            part(kernels, 2),
            0.0,
            "",
            m,
            0.0,
            "gradients of inputs and weights",
        ),
        (
            "backward collectives",
            "network",
            part(wires, 2),
            quiet(wires, 2),
            "backward",
            m,
            sent(wires, 2),
            "gradients of activations",
        ),
        (
            "gradients to the stage before",
            "network",
            parts["pp"] / 2,
            hidden["pp"] / 2,
            "backward of the next micro-batch",
            m * plan["vpp"] if plan["pp"] > 1 else 0,
            sent(("pp",), 2),
            "point to point",
        ),
        (
            "pipeline drains",
            "compute",
            parts["bubble"] * (1 - forward_share),
            0.0,
            "",
            1 if plan["pp"] > 1 else 0,
            0.0,
            "the first stage's last backward",
        ),
        (
            "gradients reduced",
            "network",
            parts["dp"] * dp["gradients"],
            hidden["dp"] * dp["gradients"],
            "backward",
            m if gathers else int(plan["dp"] * plan["cp"] > 1),
            dp_bytes * dp["gradients"],
            "all-reduce"
            if plan["sharding"] == "none"
            else "reduce-scatter, bucket by bucket as layers finish",
        ),
        (
            "optimizer",
            "compute",
            parts["optimizer"],
            0.0,
            "",
            1,
            0.0,
            (
                f"{phase.optimizer}, "
                f"{'each rank its shard' if plan['sharding'] != 'none' else 'every replica the same'}"
            )
            + (", states on the host" if plan["offload"] != "none" else ""),
        ),
        (
            "updated weights gathered",
            "network",
            parts["dp"] * dp["weights"],
            hidden["dp"] * dp["weights"],
            "forward of the next step",
            int(dp["weights"] > 0 and plan["dp"] * plan["cp"] > 1),
            dp_bytes * dp["weights"],
            "all-gather",
        ),
        (
            "launches and bookkeeping",
            "control",
            parts["host"],
            0.0,
            "",
            1,
            0.0,
            "kernel launches that the device waits for, loop, timers",
        ),
        (
            "barrier",
            "control",
            parts["straggler"],
            0.0,
            "",
            1,
            0.0,
            "all ranks wait for the slowest",
        ),
        (
            "log",
            "control",
            0.0,
            float(
                curves.fastest(
                    "all_reduce",
                    LOG_BYTES,
                    curves.wires(cluster, int(plan["dp"]), inside(chosen, "dp")),
                )
            )
            if plan["dp"] > 1
            else 0.0,
            "the next forward",
            1,
            float(LOG_BYTES),
            "loss, gradient norm, timers",
        ),
        (
            "checkpoint hook",
            "storage",
            0.0,
            per_step * float(e.checkpoint_durable_s),
            "the steps after a save",
            1,
            float(e.checkpoint_bytes) / max(assessment.figures["devices_used"], 1) * per_step,
            (
                f"every {float(e.checkpoint_interval_s) / assessment.figures['step_s']:,.0f} "
                f"steps; its stall of {float(e.checkpoint_stall_s):.2f} s counts in goodput, "
                f"{per_step * float(e.checkpoint_stall_s) * 1e3:.2f} ms a step"
            ),
        ),
    ]
    pieces, start = [], 0.0
    for what, plane, seconds, quiet_s, beside, times, size, note in out:
        if seconds > 0 or quiet_s > 0 or plane == "control" and times:
            pieces.append(
                Piece(
                    what,
                    plane,
                    start,
                    float(seconds),
                    float(quiet_s),
                    beside,
                    int(times),
                    float(size),
                    note,
                )
            )
            start += float(seconds)
    return tuple(pieces)


def chosen_step_share(assessment) -> float:
    """Steps over the checkpoint interval: the share of a save that one step carries."""
    return assessment.figures["step_s"] / max(
        float(assessment.endurance.checkpoint_interval_s), assessment.figures["step_s"]
    )


def _communication(assessment):
    return communication(assessment.chosen.case, assessment.chosen.step)


def collectives(assessment) -> tuple[CollectiveRow, ...]:
    """Who sends what to whom in one step. Times and bytes of an axis are split over its operations;
    their sums are those of `communication`.

    The last rows are the small ones that every rank waits for: the gradient norm and the log; their
    time is part of the host's.
    """
    chosen, cluster = assessment.chosen, assessment.resolved.cluster
    ranks = assessment.figures["devices_used"]
    out = []
    for row in _communication(assessment):
        axis = row["axis"]
        for whose, n, per, part in _groups(axis, chosen, row):
            w = curves.wires(cluster, n, per)
            for what, operation, share, times, beside in _operations(axis, chosen, row):
                if share * part <= 0 or times < 1:
                    continue
                size = row["bytes"] * share * part
                each = size / times
                message = (
                    each
                    if operation.startswith("send")
                    else each * n / max(n - 1, 1) / (2 if operation == "all_reduce" else 1)
                )
                picked = (
                    "point to point"
                    if operation.startswith("send")
                    else _picked(operation, message, w)
                )
                time, open_s = row["time_s"] * share * part, row["exposed_s"] * share * part
                tier = "scale-up" if n <= per else row["tier"]
                out.append(
                    CollectiveRow(
                        axis,
                        what + whose,
                        operation,
                        n,
                        ranks // n,
                        message,
                        size,
                        times,
                        tier,
                        picked,
                        time,
                        open_s,
                        _hidden(time, open_s),
                        beside,
                    )
                )
    if ranks > 1:
        every = curves.wires(cluster, ranks, int(min(cluster.scale_up_domain, ranks)))
        for what, size in (("gradient norm", NORM_BYTES), ("loss and timers", LOG_BYTES)):
            seconds = float(curves.fastest("all_reduce", float(size), every))
            tier = "scale-up" if ranks <= cluster.scale_up_domain else "scale-out"
            out.append(
                CollectiveRow(
                    "all",
                    what,
                    "all_reduce",
                    ranks,
                    1,
                    float(size),
                    2.0 * size * (ranks - 1) / ranks,
                    1,
                    tier,
                    _picked("all_reduce", float(size), every),
                    seconds,
                    0.0,
                    "in the host's time" if what == "gradient norm" else "yes",
                    "nothing: clipping needs it" if what == "gradient norm" else "the next forward",
                )
            )
    return tuple(out)


def _groups(axis: str, chosen, row) -> list[tuple]:
    """(whose, ranks, ranks in a domain, share of the axis's bytes) of the groups of one axis:
    experts are reduced over their own replicas."""
    plan, case = chosen.plan, chosen.case
    if axis == "dp" and plan["ep"] > 1:
        dense, experts = device_params(case)
        sent = [
            float(data_parallel(case, *held).bytes)
            for held in ((dense, 0.0 * experts), (0.0 * dense, experts))
        ]
        copies = max(1, plan["dp"] * plan["cp"] * plan["tp"] // (plan["ep"] * plan["etp"]))
        if sum(sent) > 0:
            near = int(members_inside(copies, plan["ep"] * plan["etp"], case.link.domain))
            return [
                (" outside experts", row["group"], inside(chosen, axis), sent[0] / sum(sent)),
                (" of experts", copies, near, sent[1] / sum(sent)),
            ]
    return [("", row["group"], inside(chosen, axis), 1.0)]


def _hidden(time: float, open_s: float) -> str:
    return "no" if open_s >= 0.95 * time else "yes" if open_s <= 0.05 * time else "partly"


def _picked(operation: str, message: float, w) -> str:
    by = curves.times(operation, message, w)
    return min((name for name in curves.LIBRARY), key=lambda name: float(by[name]))


def _operations(axis: str, chosen, row) -> list[tuple]:
    """(what, operation, share of the axis's bytes, times a step, hidden beside) of one axis."""
    plan, calls = chosen.plan, max(int(row["calls"]), 1)
    half, dp = calls // 2, dp_shares(chosen)
    m = int(round(float(micro_batches(chosen.case.job, chosen.case.plan))))
    if axis in ("tp", "cp", "ep"):
        first, again, back = (float(x) for x in exchange_passes(chosen.case)[axis])
        ahead = (first + again) / (first + again + back)
        calls_ahead = round(calls * (1 + again) / (2 + again))
        calls_back = calls - calls_ahead
    if axis == "tp" and plan["sp"]:
        each, each_back = calls_ahead // 2, calls_back // 2
        return [
            ("activations before a block", "all_gather", ahead / 2, each, "nothing, or its GEMM"),
            (
                "partial sums after a block",
                "reduce_scatter",
                ahead / 2,
                each,
                "nothing, or its GEMM",
            ),
            (
                "gradients before a block",
                "all_gather",
                (1 - ahead) / 2,
                each_back,
                "weight gradients",
            ),
            (
                "gradients after a block",
                "reduce_scatter",
                (1 - ahead) / 2,
                each_back,
                "weight gradients",
            ),
        ]
    if axis == "tp":
        return [
            ("partial sums of a block", "all_reduce", ahead, max(calls_ahead // 2, 1), "nothing"),
            (
                "gradients of a block's input",
                "all_reduce",
                1 - ahead,
                max(calls_back // 2, 1),
                "weight gradients",
            ),
        ]
    if axis == "cp":
        kind = {
            "ring": "send to the next in the ring",
            "all-gather": "all_gather",
            "ulysses": "all_to_all",
        }[plan["cp_type"]]
        return [
            (
                "keys and values",
                kind,
                ahead,
                max(calls_ahead, 1),
                "attention of the chunk at hand",
            ),
            (
                "keys, values and their gradients",
                kind,
                1 - ahead,
                max(calls_back, 1),
                "attention backward",
            ),
        ]
    if axis == "ep":
        each, each_back = calls_ahead // 2, calls_back // 2
        beside = "the other micro-batch" if chosen.case.software.ep_overlap > 0 else "nothing"
        return [
            ("tokens to their experts", "all_to_all", ahead / 2, each, beside),
            ("results back", "all_to_all", ahead / 2, each, "shared experts"),
            ("gradients to the experts", "all_to_all", (1 - ahead) / 2, each_back, "nothing"),
            ("gradients back", "all_to_all", (1 - ahead) / 2, each_back, "nothing"),
        ]
    if axis == "pp":
        return [
            ("activations to the next stage", "send", 0.5, half, "the next micro-batch"),
            ("gradients to the stage before", "send", 0.5, half, "the next micro-batch"),
        ]
    if plan["sharding"] == "none":
        return [("gradients", "all_reduce", 1.0, 1, "backward of the last micro-batch")]
    if dp["gather"] > 0:
        units = layer_units(chosen)
        return [
            (
                "weights of a layer, forward and backward",
                "all_gather",
                dp["gather"],
                2 * m * units,
                "the layer before",
            ),
            (
                "gradients of a layer",
                "reduce_scatter",
                dp["gradients"],
                m * units,
                "the layer after",
            ),
        ]
    return [
        ("gradients", "reduce_scatter", dp["gradients"], 1, "backward of the last micro-batch"),
        ("updated weights", "all_gather", dp["weights"], 1, "the next forward"),
    ]
