"""Who sends what to whom in one step: the collectives of each axis, with their share of its bytes
and time."""

from scantling.base.records import Record, record
from scantling.catalogue.words import CpType, Sharding
from scantling.physics import collectives as curves
from scantling.physics.step import device_params, exchange_passes
from scantling.physics.traffic import data_parallel
from scantling.physics.wires import members_inside
from scantling.verdict.assessment import Chosen

from ..constants import CONSTANTS
from ..job_site import Site, Traffic
from ..network.traffic import inside, layer_units
from .timeline import dp_shares

CP_EXCHANGES = {
    CpType.RING: "send to the next in the ring",
    CpType.ALL_GATHER: "all_gather",
    CpType.ULYSSES: "all_to_all",
}


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


@record
class Operation:
    """One operation of an axis, in words and in shares of what the axis does in a step."""

    what: str
    operation: str
    share: float  # of the axis's bytes
    times: int  # a step
    beside: str  # what hides it


@record
class CommGroup:
    """Ranks that communicate with one another on an axis, and what they move."""

    whose: str
    ranks: int
    inside: int  # ranks that share a scale-up domain
    share: float  # of the axis's bytes


def collectives(s: Site) -> tuple[CollectiveRow, ...]:
    """Who sends what to whom in one step. Times and bytes of an axis are split over its operations;
    their sums are those of `communication`.

    The last rows are the small ones that every rank waits for: the gradient norm and the log; their
    time is part of the host's.
    """
    rows = [
        _collective(s, traffic, group, op)
        for traffic in s.traffic
        for group in _groups(s.chosen, traffic)
        for op in operations(s, traffic)
        if op.share * group.share > 0 and op.times >= 1
    ]
    return (*rows, *_small(s))


def _collective(s: Site, traffic: Traffic, group: CommGroup, op: Operation) -> CollectiveRow:
    """One operation of an axis in one of its groups."""
    n = group.ranks
    wires = curves.wires(s.cluster, n, group.inside)
    share = op.share * group.share
    size = traffic.bytes * share
    each = size / op.times
    sends = op.operation.startswith("send")
    whole = each * n / max(n - 1, 1) / (2 if op.operation == "all_reduce" else 1)
    time = traffic.time_s * share
    exposed = traffic.exposed_s * share
    return CollectiveRow(
        axis=traffic.axis,
        what=op.what + group.whose,
        operation=op.operation,
        ranks=n,
        groups=s.used // n,
        message_bytes=each if sends else whole,
        bytes=size,
        times=op.times,
        tier="scale-up" if n <= group.inside else traffic.tier,
        algorithm="point to point" if sends else curves.picked(op.operation, whole, wires),
        time_s=time,
        exposed_s=exposed,
        hidden=_hidden(time, exposed),
        beside=op.beside,
    )


def _hidden(time_s: float, exposed_s: float) -> str:
    """How much of an operation runs beside something else."""
    if exposed_s >= 0.95 * time_s:
        return "no"
    return "yes" if exposed_s <= 0.05 * time_s else "partly"


def _small(s: Site) -> tuple[CollectiveRow, ...]:
    """The all-reduces of a few bytes that all ranks take part in."""
    if s.used < 2:
        return ()
    norm = _all_ranks(
        s,
        "gradient norm",
        CONSTANTS.norm_bytes,
        hidden="in the host's time",
        beside="nothing: clipping needs it",
    )
    log = _all_ranks(
        s, "loss and timers", CONSTANTS.log_bytes, hidden="yes", beside="the next forward"
    )
    return norm, log


def _all_ranks(s: Site, what: str, size: float, *, hidden: str, beside: str) -> CollectiveRow:
    """An all-reduce of so many bytes over all ranks, once a step."""
    ranks = s.used
    domain = s.cluster.scale_up_domain
    wires = curves.wires(s.cluster, ranks, min(domain, ranks))
    return CollectiveRow(
        axis="all",
        what=what,
        operation="all_reduce",
        ranks=ranks,
        groups=1,
        message_bytes=size,
        bytes=2.0 * size * (ranks - 1) / ranks,
        times=1,
        tier="scale-up" if ranks <= domain else "scale-out",
        algorithm=curves.picked("all_reduce", size, wires),
        time_s=float(curves.fastest("all_reduce", size, wires)),
        exposed_s=0.0,
        hidden=hidden,
        beside=beside,
    )


def _groups(chosen: Chosen, traffic: Traffic) -> list[CommGroup]:
    """The groups of one axis: experts are reduced over their own replicas."""
    plan = chosen.plan
    case = chosen.case
    near = inside(chosen, traffic.axis)
    if traffic.axis == "dp" and plan["ep"] > 1:
        dense, experts = device_params(case)
        packed = plan["ep"] * plan["etp"]
        copies = max(1, plan["dp"] * plan["cp"] * plan["tp"] // packed)
        of_dense = float(data_parallel(case, dense, 0.0 * experts).bytes)
        of_experts = float(data_parallel(case, 0.0 * dense, experts).bytes)
        if of_dense + of_experts > 0:
            share = of_dense / (of_dense + of_experts)
            together = int(members_inside(copies, packed, case.link.domain))
            return [
                CommGroup(whose=" outside experts", ranks=traffic.group, inside=near, share=share),
                CommGroup(whose=" of experts", ranks=copies, inside=together, share=1 - share),
            ]
    return [CommGroup(whose="", ranks=traffic.group, inside=near, share=1.0)]


@record
class Halves:
    """An axis's traffic before the backward (a recomputed forward counted) and in it: shares of its
    bytes, calls."""

    forward: float
    backward: float
    forward_calls: int
    backward_calls: int


def _halves(s: Site, axis: str, calls: int) -> Halves:
    first, again, back = map(float, exchange_passes(s.case)[axis])
    share = back / (first + again + back)
    calls_back = back if axis == "tp" else 1
    before = round(calls * (1 + again) / (1 + again + calls_back))
    return Halves(
        forward=1 - share, backward=share, forward_calls=before, backward_calls=calls - before
    )


def operations(s: Site, traffic: Traffic) -> list[Operation]:
    """Operations of one axis."""
    axis = traffic.axis
    calls = max(traffic.calls, 1)
    if axis == "pp":
        return _pipeline_operations(calls)
    if axis == "dp":
        return _data_operations(s)
    halves = _halves(s, axis, calls)
    if axis == "ep":
        return _expert_operations(halves, overlap=float(s.case.software.ep_overlap) > 0)
    if axis == "cp":
        return _context_operations(halves, CP_EXCHANGES[CpType(s.plan["cp_type"])])
    return _sequence_operations(halves) if s.plan["sp"] else _tensor_operations(halves)


def _sequence_operations(halves: Halves) -> list[Operation]:
    """Tensor parallelism with sequence parallelism: every all-reduce is an all-gather and a
    reduce-scatter, and the backward gathers the inputs of the products again (Korthikanti et al.
    2022, section 4.2.2)."""
    forward = halves.forward_calls // 2
    backward = halves.backward_calls // 3
    each = halves.backward / 3
    return [
        Operation(
            what="activations before a block",
            operation="all_gather",
            share=0.5 * halves.forward,
            times=forward,
            beside="nothing, or its GEMM",
        ),
        Operation(
            what="partial sums after a block",
            operation="reduce_scatter",
            share=0.5 * halves.forward,
            times=forward,
            beside="nothing, or its GEMM",
        ),
        Operation(
            what="gradients before a block",
            operation="all_gather",
            share=each,
            times=backward,
            beside="weight gradients",
        ),
        Operation(
            what="inputs of a block again",
            operation="all_gather",
            share=each,
            times=backward,
            beside="gradients of the inputs",
        ),
        Operation(
            what="gradients after a block",
            operation="reduce_scatter",
            share=each,
            times=backward,
            beside="weight gradients",
        ),
    ]


def _tensor_operations(halves: Halves) -> list[Operation]:
    return [
        Operation(
            what="partial sums of a block",
            operation="all_reduce",
            share=halves.forward,
            times=max(halves.forward_calls // 2, 1),
            beside="nothing",
        ),
        Operation(
            what="gradients of a block's input",
            operation="all_reduce",
            share=halves.backward,
            times=max(halves.backward_calls // 2, 1),
            beside="weight gradients",
        ),
    ]


def _context_operations(halves: Halves, exchange: str) -> list[Operation]:
    return [
        Operation(
            what="keys and values",
            operation=exchange,
            share=halves.forward,
            times=max(halves.forward_calls, 1),
            beside="attention of the chunk at hand",
        ),
        Operation(
            what="keys, values and their gradients",
            operation=exchange,
            share=halves.backward,
            times=max(halves.backward_calls, 1),
            beside="attention backward",
        ),
    ]


def _expert_operations(halves: Halves, overlap: bool) -> list[Operation]:
    forward = halves.forward_calls // 2
    backward = halves.backward_calls // 2
    return [
        Operation(
            what="tokens to their experts",
            operation="all_to_all",
            share=0.5 * halves.forward,
            times=forward,
            beside="the other micro-batch" if overlap else "nothing",
        ),
        Operation(
            what="results back",
            operation="all_to_all",
            share=0.5 * halves.forward,
            times=forward,
            beside="shared experts",
        ),
        Operation(
            what="gradients to the experts",
            operation="all_to_all",
            share=0.5 * halves.backward,
            times=backward,
            beside="nothing",
        ),
        Operation(
            what="gradients back",
            operation="all_to_all",
            share=0.5 * halves.backward,
            times=backward,
            beside="nothing",
        ),
    ]


def _pipeline_operations(calls: int) -> list[Operation]:
    return [
        Operation(
            what=what, operation="send", share=0.5, times=calls // 2, beside="the next micro-batch"
        )
        for what in ("activations to the next stage", "gradients to the stage before")
    ]


def _data_operations(s: Site) -> list[Operation]:
    """Gradients and weights of the replicas, by what they share."""
    shares = dp_shares(s.chosen)
    if shares["gather"] > 0:
        layers = s.micro_batches * layer_units(s.chosen)
        return [
            Operation(
                what="weights of a layer, forward and backward",
                operation="all_gather",
                share=shares["gather"],
                times=2 * layers,
                beside="the layer before",
            ),
            Operation(
                what="gradients of a layer",
                operation="reduce_scatter",
                share=shares["gradients"],
                times=layers,
                beside="the layer after",
            ),
        ]
    if s.plan["sharding"] == Sharding.NONE:
        return [
            Operation(
                what="gradients",
                operation="all_reduce",
                share=1.0,
                times=1,
                beside="backward of the last micro-batch",
            )
        ]
    return [
        Operation(
            what="gradients",
            operation="reduce_scatter",
            share=shares["gradients"],
            times=1,
            beside="backward of the last micro-batch",
        ),
        Operation(
            what="updated weights",
            operation="all_gather",
            share=shares["weights"],
            times=1,
            beside="the next forward",
        ),
    ]
