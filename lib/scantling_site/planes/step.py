"""One step of a design laid out: a timeline whose exposed pieces sum to the step, and the table of
its collectives. What each piece and operation is stands in tables/pieces.csv and operations.csv."""

from scantling.base.records import Record, record
from scantling.catalogue.words import SHARDINGS
from scantling.endure import storage
from scantling.physics import collectives as curves, compute
from scantling.physics.step import COMPUTE, device_params, exchange_passes
from scantling.physics.traffic import data_parallel
from scantling.physics.wires import members_inside

from ..network.traffic import inside, layer_units
from ..site import Site
from ..texts import constant, fill, rows, texts


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


@record
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
    shares = {part: _shares(x) for part, x in times.items()}
    step = {k: getattr(chosen.step, k) for k in COMPUTE}
    forward = sum(step[k] * shares[k]["forward"] for k in COMPUTE) / sum(step.values())
    shares["bubble"] = {"forward": forward, "backward": 1 - forward}
    return {**shares, "dp": dp_shares(chosen)}


def _shares(times) -> dict:
    total = max(sum(times), 1e-30)
    return {name: x / total for name, x in zip(("forward", "again", "backward"), times)}


def dp_shares(chosen) -> dict:
    """Shares of the data-parallel traffic by what it is: {gather, gradients, weights}:
    per-micro-batch gathers, gradients, updated weights."""
    name = chosen.plan["sharding"]
    layered = gathers_layers(name)
    parts = {
        "gather": 4 if layered else 0,
        "gradients": chosen.case.job.grad_bytes,
        "weights": 0 if layered or name == "none" else 2,
    }
    return {part: n / sum(parts.values()) for part, n in parts.items()}


def gathers_layers(sharding: str) -> bool:
    """True where weights are gathered layer by layer."""
    return SHARDINGS.index(sharding) >= SHARDINGS.index("zero3")


def timeline(s: Site) -> tuple:
    """The step of the main phase, piece by piece; exposed_s sums to `step_s` (the measured one
    where the design has it).

    Exposed and hidden seconds are the step model's (`step_breakdown_s`, `hidden_s`); what a rank
    does m times is one piece of m times. The read of the next batch, its copy to the devices,
    logging and the checkpoint's background writes are hidden by construction (prefetch, side
    stream, host threads); their own seconds stand beside to show how far they are from showing.
    """
    exposed = s.figures["step_breakdown_s"]
    shares = passes(s.chosen)
    hidden = {k: axis.hidden_s for k, axis in s.chosen.step.axes.items()}
    sent = {row["axis"]: row["bytes"] for row in s.traffic}
    table = fill(rows("pieces"), s, **_hidden_work(s), **_counts(s, shares["dp"]))
    pieces = []
    start = 0.0
    for row in table:
        parts = row["parts"].split()
        share = {n: shares[n].get(row["pass"], 0.0) if n in shares else 1.0 for n in parts}
        shown, quiet, moved = (
            sum(of.get(n, 0.0) * share[n] for n in parts) for of in (exposed, hidden, sent)
        )
        quiet = row["hidden_s"] or quiet
        times = int(row["times"])
        if shown > 0 or quiet > 0 or row["plane"] == "control" and times:
            pieces.append(
                Piece(
                    **{k: row[k] for k in ("what", "plane", "beside", "note")},
                    exposed_s=shown,
                    hidden_s=quiet,
                    bytes=row["bytes"] or moved,
                    start_s=start,
                    times=times,
                )
            )
            start += shown
    return tuple(pieces)


def _hidden_work(s: Site) -> dict:
    """Bytes and seconds of what is hidden by construction: input, log, the checkpoint's writes."""
    e = s.e
    dp = s.plan["dp"]
    store = storage.rates(s.cluster)
    batch = s.batch_tokens * s.case.job.token_bytes
    host = s.cluster.accelerator.host_link_bytes_per_s
    tokens = s.case.plan.micro_batch * s.phase.seq_len / s.plan["cp"] * s.micro_batches
    copied = tokens * constant("token_copy_bytes")
    reader = min(store.read_bytes_per_s / dp, store.node_read_bytes_per_s)
    near = curves.wires(s.cluster, dp, inside(s.chosen, "dp"))
    return {
        "batch_bytes": batch,
        "read_bytes": batch / dp,
        "read_s": batch / dp / reader,
        "copied": copied,
        "copy_s": copied / (host if host == host else constant("host_link_bytes_per_s")),
        "log_s": curves.fastest("all_reduce", constant("log_bytes"), near) if dp > 1 else 0.0,
        "saved": e.checkpoint_bytes / s.used * s.shared_step,
        "saved_s": s.shared_step * e.checkpoint_durable_s,
        "stall_s": s.shared_step * e.checkpoint_stall_s,
        "between": e.checkpoint_interval_s / s.step_s,
    }


def _counts(s: Site, dp: dict) -> dict:
    """How often a step does each thing, and how it reduces and steps."""
    plan = s.plan
    m = s.micro_batches
    piped = plan["pp"] > 1
    copies = plan["dp"] * plan["cp"] > 1
    gathers = gathers_layers(plan["sharding"])
    plain = plan["sharding"] == "none"
    return {
        "piped": int(piped),
        "sends": m * plan["vpp"] if piped else 0,
        "gathers": 2 * m if gathers else 0,
        "recomputes": m if s.figures["step_breakdown_s"]["recompute"] > 0 else 0,
        "reduces": m if gathers else int(copies),
        "regathers": int(dp["weights"] > 0 and copies),
        "reduced": "all-reduce" if plain else "reduce-scatter, bucket by bucket as layers finish",
        "stepped": ("every replica the same" if plain else "each rank its shard")
        + (", states on the host" if plan["offload"] != "none" else ""),
    }


def collectives(s: Site) -> tuple:
    """Who sends what to whom in one step. Times and bytes of an axis are split over its operations;
    their sums are those of `communication`.

    The last rows are the small ones that every rank waits for: the gradient norm and the log; their
    time is part of the host's.
    """
    found = (
        _collective(s, row, group, op)
        for row in s.traffic
        for group in _groups(row["axis"], s.chosen, row)
        for op in operations(s, row)
        if op["share"] * group[-1] > 0 and op["times"] >= 1
    )
    return (*found, *_small(s))


def _collective(s: Site, row: dict, group: tuple, op: dict) -> CollectiveRow:
    """One operation of an axis in one of its groups."""
    whose, n, per, part = group
    wires = curves.wires(s.cluster, n, per)
    operation = op["operation"]
    share = op["share"] * part
    size = row["bytes"] * share
    each = size / op["times"]
    sends = operation.startswith("send")
    whole = each * n / max(n - 1, 1) / (2 if operation == "all_reduce" else 1)
    time = row["time_s"] * share
    open_s = row["exposed_s"] * share
    return CollectiveRow(
        axis=row["axis"],
        what=op["what"] + whose,
        operation=operation,
        ranks=n,
        groups=s.used // n,
        message_bytes=each if sends else whole,
        bytes=size,
        times=op["times"],
        tier="scale-up" if n <= per else row["tier"],
        algorithm="point to point" if sends else curves.picked(operation, whole, wires),
        time_s=time,
        exposed_s=open_s,
        hidden="no" if open_s >= 0.95 * time else "yes" if open_s <= 0.05 * time else "partly",
        beside=op["beside"],
    )


def _small(s: Site) -> tuple:
    """The all-reduces of a few bytes that all ranks take part in."""
    ranks = s.used
    domain = s.cluster.scale_up_domain
    if ranks < 2:
        return ()
    every = curves.wires(s.cluster, ranks, min(domain, ranks))
    return tuple(
        CollectiveRow(
            axis="all",
            operation="all_reduce",
            ranks=ranks,
            groups=1,
            message_bytes=size,
            bytes=2.0 * size * (ranks - 1) / ranks,
            times=1,
            tier="scale-up" if ranks <= domain else "scale-out",
            algorithm=curves.picked("all_reduce", size, every),
            time_s=curves.fastest("all_reduce", size, every),
            exposed_s=0.0,
            **words,
        )
        for size, words in (
            (constant("norm_bytes"), texts("planes", "gradient norm")),
            (constant("log_bytes"), texts("planes", "loss and timers")),
        )
    )


def _groups(axis: str, chosen, row) -> list:
    """(whose, ranks, ranks in a domain, share of the axis's bytes) of the groups of one axis:
    experts are reduced over their own replicas."""
    plan = chosen.plan
    case = chosen.case
    near = inside(chosen, axis)
    if axis == "dp" and plan["ep"] > 1:
        dense, experts = device_params(case)
        packed = plan["ep"] * plan["etp"]
        copies = max(1, plan["dp"] * plan["cp"] * plan["tp"] // packed)
        held = (dense, 0.0 * experts), (0.0 * dense, experts)
        own, shared = (data_parallel(case, *x).bytes for x in held)
        if own + shared > 0:
            own = own / (own + shared)
            beside = int(members_inside(copies, packed, case.link.domain))
            return [
                (" outside experts", row["group"], near, own),
                (" of experts", copies, beside, 1 - own),
            ]
    return [("", row["group"], near, 1.0)]


CP_EXCHANGES = {
    "ring": "send to the next in the ring",
    "all-gather": "all_gather",
    "ulysses": "all_to_all",
}


def operations(s: Site, row: dict) -> list:
    """Operations of one axis: {what, operation, share of the axis's bytes, times a step, hidden
    beside}."""
    plan = s.plan
    axis = row["axis"]
    calls = max(row["calls"], 1)
    shares = dp_shares(s.chosen)
    updated = "none" if plan["sharding"] == "none" else "updated"
    kind = {
        "tp": "sharded" if plan["sp"] else "plain",
        "dp": "gathered" if shares["gather"] > 0 else updated,
    }.get(axis, "any")
    ahead = {}
    if axis in ("tp", "cp", "ep"):
        first, again, back = map(float, exchange_passes(s.case)[axis])
        before = round(calls * (1 + again) / (2 + again))
        share = back / (first + again + back)
        ahead = {
            "ahead": 1 - share,
            "back": share,
            "calls_ahead": before,
            "calls_back": calls - before,
        }
    table = fill(
        [r for r in rows("operations") if (r["axis"], r["kind"]) == (axis, kind)],
        **shares,
        **ahead,
        calls=calls,
        exchange=CP_EXCHANGES.get(plan["cp_type"], ""),
        dispatched_beside=(
            "the other micro-batch" if s.case.software.ep_overlap > 0 else "nothing"
        ),
        layers=s.micro_batches * layer_units(s.chosen),
    )
    for op in table:
        op["share"] = float(op["share"])
        op["times"] = max(int(float(op["times"])), int(op["least"]))
    return list(table)
