"""What a stack's kernels and runtime do, one switch a field; the default, range and words of each
are a row of catalogue/software.csv."""

from collections.abc import Mapping

from ..base.columns import Column
from ..base.records import record
from ..catalogue.stacks import software_switches
from .named import same_names


@record
class Software:
    """What the stack's kernels and runtime do: numbers or columns, 0 or 1 unless said otherwise."""

    # 0 materialised scores, 1 FlashAttention-1, 2 FlashAttention-2 or its like, 3
    # FlashAttention-3 or cuDNN, 4 FlashAttention-4
    flash: Column
    fused_norm: Column  # element-wise chains run as fused kernels; 0: one kernel per operation
    unfused_scores: Column  # materialised scores without a fused mask and softmax
    # tensor-parallel collectives pipelined with their GEMMs: all of them (userbuffer), a part
    # (async) or none; nor does anything else run beside them (unhidden)
    tp_overlap: Column
    # the backward's tensor-parallel collectives run beside its products, but for the gathers of
    # the output's gradient that sequence parallelism needs
    async_reduce: Column
    ep_overlap: Column  # all-to-all run beside the other micro-batch's compute
    dp_overlap: Column  # gradient and parameter traffic run beside compute
    p2p_overlap: Column  # sends between stages run beside compute
    # a token crosses a link once however many of its experts live there (deepep, hybridep, uccl),
    # once for each of them (alltoall), or goes to all ranks (allgather)
    dedup_dispatch: Column
    group_limit: Column  # most nodes a token may visit; 0: any
    # tokens of a packed document that attention stays within; 0: all of the sequence
    document_tokens: Column
    # captured graphs hold nothing (none), the router alone (router), attention and router
    # (layer) or the whole iteration (full)
    graphs: Column
    balanced_ring: Column  # chunks of a context-parallel ring are dealt out so that none waits
    chunked_loss: Column  # cross entropy without the whole logits
    parallel_block: Column  # attention and MLP read the same input: one collective pair a layer
    # pipeline stages laid out so that loss and MTP share the last stage with fewer layers
    balanced_layout: Column
    fp8_attention: Column  # attention core in 8 bit
    # data parallelism outermost, so that the stages of a replica stand together
    # (tp-cp-ep-pp-dp)
    dp_outer: Column
    plain_fp4: Column  # 4-bit casts without the random Hadamard transform
    # routing forced even, so that no expert rank works longer than another (forced), or as the
    # router decides (natural), or dropped and padded to an even share (capped)
    even_routing: Column
    activation_offload: Column  # share of the saved activations sent to host memory
    norm_kernel: Column  # one fused norm kernel added to an otherwise eager stack
    selective_gemm: Column  # what `selective` recompute repeats: share of the layer's GEMMs
    selective_attention: Column  # the same of the attention core
    selective_norm: Column  # the same of norms
    selective_act: Column  # the same of the activations of feed-forwards
    selective_up: Column  # the same of the up-projections of latent attention
    selective_moe: Column  # the same of whole MoE blocks
    # full recompute stops before the product whose output the backward never reads
    lazy_recompute: Column
    # sharded optimizer states come back by one broadcast per rank, not one all-gather
    broadcast_gather: Column
    tensor_gather: Column  # sharded optimizer states come back tensor by tensor, a slice a rank
    optimizer_group: Column  # ranks that zero1 shards over; 0: all of dp x cp
    step_engine: Column  # DeepSpeed's pipeline engine drives the step
    grad_all_reduce: Column  # zero1 that all-reduces the gradients instead of scattering them
    # a recipe that its maker tuned for the model and the machine (tuned), any other (typical), or
    # code and settings that nobody has tuned yet (first-week)
    tuned: Column
    reduced_once: Column  # zero2 that sends the gradients of several micro-batches once a step
    fp32_reduce: Column  # gradients are sent in fp32, however they are kept
    own_card: Column  # gathers of sharded weights reach each device over its own card alone
    # gathered weights are copied out of the collective's buffer and gradients into it,
    # parameter by parameter
    gather_copies: Column
    # blocks are compiled (true), or tensor parallelism is dispatched operation by operation
    # (false)
    eager_tp: Column
    # kernels of a pipeline's tensor-parallel layers are launched one by one, and stall across nodes
    eager_pipeline: Column
    looped_experts: Column  # experts run one after the other, without grouped products
    # grouped products that apply the activation and cast its output in their own epilogue
    fused_experts: Column
    expert_skew: Column  # fullest expert rank over the mean; 0: that of the calibration
    # rows of an expert over an even share, to which its tokens are dropped and padded; 0: no
    # token is dropped
    capacity_factor: Column
    fp8_gather: Column  # parameters are gathered in the low precision of the products
    # sharded weights are given back after the forward and gathered again for the backward
    reshard: Column
    # over the replicas of their expert ranks experts are sharded besides (0), share their optimizer
    # states alone (OWN_ZERO1), or nothing (1)
    whole_experts: Column
    # of what a compiler keeps of a layer by itself; -1: no bound
    memory_budget: Column
    # gradients are reduced after every micro-batch, not summed first
    sync_each_batch: Column
    grad_bytes: Column  # bytes of a gradient as it is summed and sent
    released: Column  # year of the software, fraction of months included
    logit_bytes: Column  # bytes per logit that stay with the loss; 0: the constant's


# codes of `dedup_dispatch`
DEEPEP, HYBRIDEP, UCCL = (
    software_switches()["dedup_dispatch"].words[name] for name in ("deepep", "hybridep", "uccl")
)
OWN_ZERO1 = software_switches()["whole_experts"].words["zero1"]
SWITCHES: Mapping[str, float] = {
    name: switch.default for name, switch in software_switches().items()
}
same_names(Software, SWITCHES, "software.csv")
USUAL = Software(**SWITCHES)  # what a stack does that does not say
