"""What passes through the hosts' memory beside training: the model as it is loaded, a copy as it is
saved."""

from collections.abc import Iterator

from ..base.show import size
from ..catalogue.stacks import GENERIC, stack
from ..endure.tiers import SNAPSHOT_SHARE
from ..physics.cases import WEIGHT_BYTES
from .assessment import Assessment

WIDE_BYTES = 4.0  # of a weight that a library reads in fp32


def loading(assessment: Assessment) -> Iterator[str]:
    """A line on a model that does not fit into the memory of a node as its processes load it.

    Processes a node x parameters x 2 bytes, or x 4 where they are widened (transformers before 5
    unless a format is stated; for FSDP's fp32 shards). 40B in fp32 on 8 processes: 1,280 GB
    (transformers, pull request 25107).
    """
    resolved = assessment.resolved
    remedy = stack(resolved.stack or GENERIC).loads_whole
    there = resolved.cluster.host_memory_bytes
    if not remedy or not resolved.phases[0].from_checkpoint:
        return
    processes = resolved.cluster.devices_per_node
    weights = processes * float(resolved.params.total)
    if weights * WIDE_BYTES > there:
        yield (
            f"loading: where each of the {processes:,} processes of a node reads the whole model, "
            f"they take {size(weights * WEIGHT_BYTES)} of its memory in 16 bit, "
            f"{size(weights * WIDE_BYTES)} in fp32, and a node has {size(there)}; {remedy}"
        )


def saving(assessment: Assessment) -> Iterator[str]:
    """A line on a save whose copy takes more of a node's memory than it leaves for the next one.

    Megatron's torch_dist and asynchronous saves of torch.distributed.checkpoint copy what each
    rank saves to its host before the first byte is written: checkpoint / nodes, up to
    SNAPSHOT_SHARE of the node's memory. 744B on 16 trays of GB300 (960 GB) comes to 651 GB each:
    they were killed at the first save. States that are offloaded are on the host already.
    """
    cluster = assessment.resolved.cluster
    nodes = max(assessment.devices_used / cluster.devices_per_node, 1.0)
    copy, there = assessment.checkpoint_bytes / nodes, cluster.host_memory_bytes
    if assessment.fits and assessment.chosen.memory.host <= 0 and copy > SNAPSHOT_SHARE * there:
        yield (
            f"saving: a save that copies all of the state to the hosts before it writes takes "
            f"{size(copy)} of a node's {size(there)}; a synchronous one of "
            "torch.distributed.checkpoint passes tensor by tensor"
        )
