"""What a fine-tuning step does beside the plan of its trainer, in columns."""

from scantling.base.columns import Column
from scantling.base.records import record
from scantling.catalogue.stacks import stack

from .adapters import Targets


@record
class Tuning:
    """One column entry a case; flags are 0 or 1."""

    adapters: Column  # the base is frozen, adapters are trained
    rank: Column  # of the adapters [elements]
    targets: Targets
    ends_trained: Column  # embedding and output head are trained in full beside the adapters
    base_bits: Column  # of a weight of the frozen base's blocks [bits]
    blockwise: Column  # 4-bit weights of bitsandbytes, unpacked by one kernel; 0: GPTQ's
    adapter_bytes: Column  # of an adapter's weight
    fused_lora: Column  # adapters in fused kernels (fms FOAK, Unsloth)
    forwards: Column  # of frozen models beside the trained one: a reference [count]
    critics: Column  # value models of the trained one's size that are trained beside it [count]
    pairs: Column  # preferred and rejected sample of each: two sequences a sample
    eager_loss: Column  # whole logits, again in fp32
    logits_spared: Column  # bytes a logit that a fused or chunked loss of such code does without
    eager_chains: Column  # norms, rotations and gates run one operation at a time
    norm_kernel: Column  # norms among these are one kernel
    fp32_stream: Column  # embedding and norms in fp32: what runs between layers is, where unsharded
    # the code trains whatever model it is given, as the transformers library has it
    any_model: Column
    policy_loss: Column  # log-probabilities, entropy and ratios in place of a cross entropy
    file_sync: Column  # the whole weights are written for the engine after every step
    looped: Column  # experts run one after the other, without grouped products
    engine: Column  # DeepSpeed's hooks gather and give back the weights of every module
    fp32_base: Column  # frozen weights are kept in fp32
    context: Column  # the memory counted is the device's, with the context and what is reserved
    reserved: Column  # the memory counted is what the allocator has reserved
    backward_update: Column  # each layer is updated within the backward: one gradient at a time
    moment_bytes: Column  # of both moments of a parameter, where the words say so; 0: the job's
    eager_peft: Column  # adapters as modules of their own, launched one by one


def fp32_base(stack_id: str | None, loaded: bool) -> bool:
    """Whether frozen weights are kept in fp32: where the sharded fp32 weight of a stack is the only
    copy, cast as it is gathered (`fp32_shards` of its file; fully_shard, MixedPrecisionPolicy), and
    the code does not leave weights in the format that they were `loaded` in."""
    return not loaded and bool(stack(stack_id).memory.get("fp32_shards"))
