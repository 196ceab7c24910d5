"""The sections of the design file, each a frozen pydantic model: what may stand in a field, in
which unit and within which bounds, and how fields must agree."""

from types import new_class
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Discriminator, Tag, model_validator

from ..base.errors import DesignError, plain
from ..base.plugins import entries, load
from ..catalogue import optimizers
from ..catalogue.models.entries import check_spec
from ..catalogue.words import (
    ATTENTIONS,
    CP_TYPES,
    CUDA_GRAPHS,
    DEDUPS,
    DISPATCHERS,
    EFFORTS,
    EXPERT_SHARDINGS,
    GATES,
    GRADIENTS,
    GRAPH_MODULES,
    LAYER_SPLITS,
    METHODS,
    MLPS,
    MODULES,
    MOMENTS,
    OFFLOAD_MODULES,
    OFFLOADS,
    OUTERS,
    PRECISIONS,
    RECOMPUTES,
    RECOVERIES,
    REMAT_POLICIES,
    RENTS,
    ROUTINGS,
    SCHEDULES,
    SHARDINGS,
    SURVIVE,
    SYNCS,
    TOPOLOGIES,
    TP_OVERLAPS,
)
from .checks import list_of, number_from, text_up_to, validator, whole_from, word_of
from .fields import (
    Like,
    Section,
    amount,
    count,
    flag,
    fraction,
    listed,
    other,
    runs,
    text,
    text as phrase,
    word,
    words,
)
from .tuned import AdapterSpec, DataSpec, RolloutSpec, check_method

# the branches of a union, dropped from the paths of errors
TAGS = ("id:", "mapping:")
SINGLE = Tag(TAGS[0])
COMPOUND = Tag(TAGS[1])


def _text_or_mapping(value: Any) -> str:
    return TAGS[0] if isinstance(value, str) else TAGS[1]


def _one_or_list(value: Any) -> str:
    return TAGS[1] if isinstance(value, (list, tuple)) else TAGS[0]


# a measured model FLOP utilisation beyond it is a slip of a unit: no published run comes near
CREDIBLE_MFU = 0.95

BY_TEXT = Discriminator(_text_or_mapping)
BY_LIST = Discriminator(_one_or_list)
ID = validator(text_up_to())  # of the catalogue

# an id of the catalogue, or a mapping that starts from one
Ref = Annotated[Annotated[str, ID, SINGLE] | Annotated[Like, COMPOUND], BY_TEXT]


def _added(group: str) -> type[Section]:
    """A section of the fields that installed packages add: each names a `Section` under the group
    of entry points."""
    sections = tuple(load(entry) for entry in entries(group).values())
    return new_class("Added", sections) if sections else Section


class ModelSpec(Section):
    """A model by catalogue row and changes, by a Hugging Face config, by size alone, or by its
    shape."""

    like: str | None = text(
        "catalogue model to start from; other fields replace its own", example="llama-3.1-70b"
    )
    hf_config: str | None = text(
        "path of a Hugging Face config.json, relative to this file",
        example="config.json",
        high=1000,
    )
    name: str | None = text("name to show")
    size: float | None = amount(
        1e3,
        1e17,
        "parameters",
        "parameters in all, the rest of the shape is derived",
        example=175e9,
    )
    active: float | None = amount(
        1e3, 1e17, "parameters", "parameters used by one token", example=37e9
    )
    moe: bool | None = flag("mixture of experts, when the size alone is given", example=True)
    layers: int | None = count(1, 10_000, "layers", "transformer layers", example=96)
    hidden: int | None = count(
        1, 1_000_000, "elements", "width of the residual stream", example=8192
    )
    ffn_hidden: int | None = count(
        0, 10_000_000, "elements", "width of a dense feed-forward layer", example=28_672
    )
    heads: int | None = count(1, 100_000, "heads", "attention heads", example=64)
    kv_heads: int | None = count(1, 100_000, "heads", "key and value heads", example=8)
    head_dim: int | None = count(
        1, 100_000, "elements", "width of a head; hidden / heads when left out", example=128
    )
    vocab: int | None = count(1, 100_000_000, "tokens", "vocabulary", example=128_256)
    seq_len: int | None = count(
        1,
        1_000_000_000,
        "tokens",
        "context that the model is trained with, when the job gives none",
        example=8192,
    )
    mlp: str | None = word(MLPS, "feed-forward kind", example="swiglu")
    attention: str | None = word(ATTENTIONS, "attention kind", example="gqa")
    tied_embeddings: bool | None = flag("output head shares the token table", example=False)
    experts: int | None = count(
        0, 10_000, "experts", "routed experts of a MoE layer; 0: dense", example=16
    )
    top_k: int | None = count(0, 10_000, "experts", "routed experts a token visits", example=2)
    expert_ffn_hidden: int | None = count(
        0, 10_000_000, "elements", "width of one expert", example=2048
    )
    shared_ffn_hidden: int | None = count(
        0, 10_000_000, "elements", "summed width of the shared experts", example=2048
    )
    moe_layers: int | None = count(0, 10_000, "layers", "layers that are MoE", example=58)
    mtp_layers: int | None = count(0, 100, "layers", "multi-token-prediction modules", example=1)
    mtp_repeats: int | None = count(
        1, 100, "count", "depths that one multi-token-prediction module is trained for", example=2
    )
    q_lora: int | None = count(
        0, 1_000_000, "elements", "MLA: rank of the query compression", example=1536
    )
    kv_lora: int | None = count(
        0, 1_000_000, "elements", "MLA: rank of the key-value compression", example=512
    )
    qk_nope: int | None = count(
        0, 100_000, "elements", "MLA: head width without position", example=128
    )
    qk_rope: int | None = count(0, 100_000, "elements", "MLA: head width with position", example=64)
    v_head_dim: int | None = count(
        0, 100_000, "elements", "MLA: value width of a head", example=128
    )
    attention_every: int | None = count(
        2,
        1000,
        "layers",
        (
            "of so many layers that mix tokens one attends to everything, where the "
            "model's pattern has both kinds"
        ),
        example=8,
    )
    window: int | None = count(
        0, 1_000_000_000, "tokens", "sliding attention window; 0: full", example=4096
    )
    windowed_layers: int | None = count(
        0, 10_000, "layers", "layers that use the window", example=24
    )
    chunks: bool | None = flag(
        "windows stand still: a query sees keys of its own chunk alone (Llama 4)", example=True
    )
    mixers: str | None = text(
        (
            "kinds of block in place of attention, with the layers that have them and"
            " their dimensions"
        ),
        example="10*shortconv(conv=3)",
    )
    pattern: str | None = text(
        (
            "blocks of the layers in order: n*x repeats, n*(a,b) a group, mixer+ffn "
            "one layer; or Nemotron's letters"
        ),
        example="3*(gdn+moe),1*(attn+moe)",
    )
    mtp_pattern: str | None = text(
        ("blocks of one multi-token-prediction module; a layer of the last kind when left out"),
        example="attn+moe",
    )
    window_heads: int | None = count(
        0, 1_000_000, "heads", "heads of the layers with a window, where they differ", example=96
    )
    window_kv_heads: int | None = count(
        0,
        1_000_000,
        "heads",
        "key and value heads of the layers with a window, where they differ",
        example=8,
    )
    window_head_dim: int | None = count(
        0,
        1_000_000,
        "elements",
        "width of a head in the layers with a window, where it differs",
        example=256,
    )
    v_dim: int | None = count(
        0,
        1_000_000,
        "elements",
        "width of a value head that is not latent; 0: head_dim",
        example=128,
    )
    state_size: int | None = count(
        0, 1_000_000, "elements", "Mamba: width of the state", example=128
    )
    ssm_heads: int | None = count(0, 1_000_000, "heads", "Mamba-2: heads", example=64)
    ssm_head_dim: int | None = count(
        0, 1_000_000, "elements", "Mamba-2: width of a head", example=64
    )
    groups: int | None = count(0, 1_000_000, "groups", "Mamba-2: groups of B and C", example=8)
    conv: int | None = count(0, 1_000_000, "elements", "taps of the short convolution", example=4)
    chunk: int | None = count(
        0, 1_000_000_000, "tokens", "tokens that a scan takes together", example=128
    )
    dt_rank: int | None = count(
        0, 1_000_000, "elements", "Mamba-1: rank of the step size", example=256
    )
    d_inner: int | None = count(0, 1_000_000, "elements", "Mamba-1: inner width", example=8192)
    lin_k_heads: int | None = count(
        0, 1_000_000, "heads", "linear attention: key heads", example=16
    )
    lin_v_heads: int | None = count(
        0, 1_000_000, "heads", "linear attention: value heads", example=32
    )
    lin_k_dim: int | None = count(
        0, 1_000_000, "elements", "linear attention: width of a key head", example=128
    )
    lin_v_dim: int | None = count(
        0, 1_000_000, "elements", "linear attention: width of a value head", example=128
    )
    lru_width: int | None = count(0, 1_000_000, "elements", "RG-LRU, RWKV-4: width", example=2560)
    index_heads: int | None = count(
        0, 1_000_000, "heads", "indexer of sparse attention: heads", example=64
    )
    index_dim: int | None = count(
        0, 1_000_000, "elements", "indexer of sparse attention: width of a head", example=128
    )
    index_topk: int | None = count(
        0, 1_000_000_000, "tokens", "keys that the indexer picks", example=2048
    )
    o_lora: int | None = count(
        0, 1_000_000, "elements", "DeepSeek-V4: rank of a group of the output", example=1024
    )
    o_groups: int | None = count(
        0, 1_000_000, "groups", "DeepSeek-V4: groups of the output", example=8
    )
    hyper_connections: int | None = count(
        0, 1_000_000, "copies", "copies of the residual stream", example=4
    )
    hyper_mixed: bool | None = flag("layers mix the copies with one another", example=True)
    latent: int | None = count(
        0, 1_000_000, "elements", "width that routed experts work in; 0: the stream's", example=1024
    )
    zero_experts: int | None = count(
        0, 1_000_000, "experts", "experts that compute nothing", example=256
    )
    memory_blocks: int | None = count(
        0, 1_000_000, "blocks", "sets of weights of a shared layer", example=1
    )
    adapter_rank: int | None = count(
        0, 1_000_000, "elements", "rank of the adapters of a shared layer", example=128
    )
    shared_kv: bool | None = flag("keys are the values", example=True)
    gated_norm: bool | None = flag("Mamba-2: a norm before the output projection", example=True)
    inner_norms: bool | None = flag("Mamba-1: norms on step size, B and C", example=True)
    conv_bias: bool | None = flag("biases of the convolution", example=True)
    proj_bias: bool | None = flag("biases of a scan's projections", example=True)
    full_decay: bool | None = flag("Kimi delta attention: decay without a low rank", example=True)
    full_gates: bool | None = flag(
        "Kimi delta attention: output gate without a low rank", example=True
    )
    latent_norm: bool | None = flag("a norm in the experts' latent width", example=True)
    router_scales: bool | None = flag(
        "scales of the stream and of experts at the router", example=True
    )
    window_sinks: bool | None = flag("attention sinks in the layers with a window", example=True)
    attention_adapter: bool | None = flag("adapters at a shared layer's projections", example=True)
    attention_gate: str | None = word(
        GATES, "an output gate of attention: head, width, or empty", example="width"
    )

    @model_validator(mode="after")
    def _consistent(self) -> "ModelSpec":
        spec = self.stated()
        check_spec(spec)
        if spec.get("experts") and not {"like", "hf_config", "size", "top_k"} & spec.keys():
            raise DesignError(
                "top_k",
                allowed="experts that a token visits, such as 2",
                problem="is missing (experts is given)",
            )
        return self


# an id of the catalogue, or a model of its own
ModelRef = Annotated[Annotated[str, ID, SINGLE] | Annotated[ModelSpec, COMPOUND], BY_TEXT]


class SiteSpec(Section):
    """One of several datacentres."""

    name: str | None = text("name to show", example="north")
    devices: int = count(
        1, 10_000_000, "devices", "accelerators at this site", example=4096, required=True
    )
    rtt_ms: float | None = amount(0.001, 10_000, "ms", "round trip to the other sites", example=30)
    gbits_per_s: float | None = amount(
        1e-6, 1e7, "Gbit/s", "bandwidth to the other sites, one direction", example=800
    )


class DeliverySpec(Section):
    """One part of the machine."""

    day: float = amount(
        0, 10_000, "days", "day on which this part is handed over", example=30, required=True
    )
    devices: int = count(
        1, 10_000_000, "devices", "accelerators of this part", example=4096, required=True
    )


class NetworkMeasured(Section):
    """Bus bandwidth of collectives as nccl-tests print it for large messages, measured on the very
    devices: it stands in for what the fabric's rating says."""

    all_reduce_gbytes_per_s: float | None = amount(
        1e-3, 1e6, "GB/s", "all-reduce over all devices, bus bandwidth", example=180
    )
    all_reduce_in_node_gbytes_per_s: float | None = amount(
        1e-3, 1e6, "GB/s", "all-reduce inside one node, bus bandwidth", example=450
    )
    all_to_all_gbytes_per_s: float | None = amount(
        1e-3, 1e6, "GB/s", "all-to-all over all devices, bus bandwidth", example=30
    )


Ratio = Annotated[float, validator(number_from(1.0, 1000.0))]
Ratios = Annotated[
    Annotated[Ratio, SINGLE] | Annotated[list[Ratio], validator(list_of("ratios", 4)), COMPOUND],
    BY_LIST,
]
SiteCount = Annotated[int, validator(whole_from(1, 1000))]
SiteList = Annotated[list[SiteSpec], validator(list_of("sites", 1000))]
Sites = Annotated[Annotated[SiteCount, SINGLE] | Annotated[SiteList, COMPOUND], BY_LIST]


class ClusterSpec(Section):
    """The machine; what is left out comes from the catalogue row of the accelerator's usual
    node."""

    accelerator: Ref = other(
        ("accelerator id (scantling catalogue accelerators), or {like: id, figure: value}"),
        example="h100-sxm",
        required=True,
    )
    devices: int = count(
        1, 10_000_000, "devices", "accelerators in all", example=16_384, required=True
    )
    node: str | None = text("node or instance type of the catalogue", example="dgx-h100")
    devices_per_node: int | None = count(
        1, 100_000, "devices", "accelerators in one node", example=8
    )
    scale_up_domain: int | None = count(
        1, 1_000_000, "devices", "accelerators joined by the scale-up link", example=8
    )
    scale_out: Ref | None = other(
        "scale-out fabric id (scantling catalogue fabrics)", example="ib-ndr"
    )
    topology: str | None = word(
        TOPOLOGIES,
        (
            "how switches are joined; left out: a rule of the fabric, the size and "
            "what is said of pods"
        ),
        example="rail-optimized",
    )
    rails: int | None = count(
        1, 10_000, "rails", "leaf switches that the cards of a node are spread over", example=8
    )
    leaf_devices: int | None = count(
        0,
        10_000_000,
        "devices",
        (
            "devices below one leaf switch (of each rail), such as those of a rack; "
            "0: as many as its ports allow"
        ),
        example=16,
    )
    nics_per_node: int | None = count(1, 10_000, "ports", "network ports of a node", example=8)
    pod_devices: int | None = count(
        1, 10_000_000, "devices", "devices below one spine at full bandwidth", example=3072
    )
    site_rtt_ms: float | None = amount(
        0.001, 10_000, "ms", "round trip between one site and the others", example=21
    )
    site_gbytes_per_s: float | None = amount(
        1e-6, 1e6, "GB/s", "bandwidth between one site and the others, one direction", example=100
    )
    host_memory_gb: float | None = amount(0, 1e9, "GB", "memory of a node", example=2048)
    nvme_gb: float | None = amount(0, 1e9, "GB", "local NVMe of a node", example=30_000)
    storage: str | None = text("shared file system (scantling catalogue storage)", example="lustre")
    storage_client_gbytes_per_s: float | None = amount(
        1e-6,
        1e6,
        "GB/s",
        "what one node's storage client writes at most, as measured: NFS waits for its slots",
        example=2,
    )
    scale_out_gbytes_per_s_per_device: float | None = amount(
        1e-6, 1e6, "GB/s", "network bandwidth of one device, one direction", example=50
    )
    measured: NetworkMeasured | None = other(
        "bus bandwidth of collectives that was measured on these devices"
    )
    in_network_reduction: bool | None = flag(
        "the switches reduce (SHARP and its like)",
        example=False,
        usual=False,
        rule="only where the design says so: the launch kit has to turn it on",
    )
    delivery: list[DeliverySpec] | None = listed(
        "parts",
        100,
        "parts in which the devices are handed over; all on day 0 when left out",
        example=[{"day": 0, "devices": 8192}, {"day": 30, "devices": 8192}],
    )
    oversubscription: Ratios | None = other(
        "edge to core bandwidth; 1: none; a list: card to leaf, leaf to spine, spine to core",
        unit="ratio",
        low=1.0,
        high=1000.0,
        example=1.0,
    )
    sites: Sites | None = other(
        "datacentres: how many of one size, or a list of them",
        unit="sites",
        low=1,
        high=1000,
        example=1,
    )


class ActivationOffload(Section):
    """Activations that wait for the backward pass in host memory."""

    modules: list[str] | None = words(
        OFFLOAD_MODULES,
        (
            "inputs of these modules of a layer; left out, or `layers`: all that the plan keeps "
            "of it"
        ),
        example=["core_attn", "expert_fc1"],
    )
    layers: int | None = count(
        1,
        10_000,
        "layers",
        "layers of the model whose activations leave, where not all",
        example=40,
    )


class Keep16Bit(Section):
    """Layers at both ends of the model whose products stay in 16 bit beside others in 8 or 4."""

    first: int | None = count(0, 10_000, "layers", "first layers that stay in 16 bit", example=1)
    last: int | None = count(0, 10_000, "layers", "last layers that stay in 16 bit", example=5)


class PlanSpec(Section):
    """Pins of the parallel plan; what is left out is searched."""

    tp: int | None = count(1, 1_000_000, "ways", "tensor-parallel ways", example=8)
    cp: int | None = count(1, 1_000_000, "ways", "context-parallel ways", example=1)
    pp: int | None = count(1, 10_000, "stages", "pipeline stages", example=16)
    vpp: int | None = count(1, 10_000, "chunks", "virtual chunks per stage", example=1)
    dp: int | None = count(1, 10_000_000, "ways", "data-parallel ways", example=128)
    ep: int | None = count(
        1, 1_000_000, "ways", "expert-parallel ways, inside dp x cp x tp / etp", example=8
    )
    etp: int | None = count(1, 1_000_000, "ways", "tensor-parallel ways of an expert", example=1)
    sp: bool | None = flag("sequence parallel beside tp", example=True)
    sharding: str | None = word(
        SHARDINGS, "what the data-parallel ranks share out", example="zero1"
    )
    shard_group: int | None = count(
        1, 10_000_000, "ways", "ranks of one shard group (hsdp)", example=64
    )
    schedule: str | None = word(SCHEDULES, "pipeline schedule", example="1f1b")
    micro_batch: int | None = count(
        1, 1_000_000, "sequences", "sequences in one micro-batch", example=1
    )
    grad_accum: int | None = count(
        1, 10_000_000, "micro-batches", "micro-batches in one step", example=16
    )
    recompute: str | None = word(
        RECOMPUTES, "activations computed again in the backward", example="none"
    )
    recompute_modules: list[str] | None = words(
        MODULES,
        (
            "what `selective` repeats of a layer, in place of the stack's own list; "
            "layers: whole layers"
        ),
        example=["core_attn", "mla_up_proj"],
    )
    recompute_layers: int | None = count(
        0, 10_000, "layers", "layers recomputed in a stage, where not all", example=2
    )
    layer_split: str | None = word(LAYER_SPLITS, "how layers fall on stages", example="balanced")
    layout: list[list[int]] | None = runs(
        0,
        10_000,
        (
            "layers of each stage in order: its first one and the one after its last;"
            " pp x vpp of them"
        ),
        example=[[0, 7], [7, 16], [16, 24]],
    )
    cp_type: str | None = word(
        CP_TYPES, "how context parallelism exchanges keys and values", example="ring"
    )
    offload: str | None = word(OFFLOADS, "state kept in host memory or NVMe", example="none")
    activation_offload: ActivationOffload | None = other(
        "activations that wait in host memory", example={"modules": ["core_attn"], "layers": 40}
    )
    remat: str | None = word(
        REMAT_POLICIES,
        "what MaxText keeps of a layer, by the name of its policy, in place of `recompute`",
        example="minimal_with_context",
    )
    cuda_graphs: str | None = word(
        CUDA_GRAPHS,
        "what is captured: nothing, the modules of a layer, the whole iteration",
        example="layer",
    )
    graph_modules: list[str] | None = words(
        GRAPH_MODULES,
        "what is captured, by the names of Megatron-Core's modules, in place of cuda_graphs; an "
        "empty list: nothing",
        example=["attn", "moe_router"],
        empty=True,
    )
    tp_overlap: str | None = word(
        TP_OVERLAPS,
        "how tensor-parallel collectives are cut to run beside their products",
        example="userbuffer",
    )
    moe_dispatcher: str | None = word(
        DISPATCHERS, "what sends tokens to their experts", example="alltoall"
    )
    moe_overlap: bool | None = flag(
        "tokens travel beside the other micro-batch's compute", example=False
    )
    fp8_param_gather: bool | None = flag(
        "weights are gathered in 8 bit where the products run in 8 bit", example=True
    )
    reshard_after_forward: bool | None = flag(
        "sharded weights are given back after the forward (FSDP)", example=True
    )
    expert_sharding: str | None = word(
        EXPERT_SHARDINGS,
        "what the replicas of an expert rank share out where the rest is zero3 or hsdp: states "
        "(zero1: weights stay whole), or weights too (zero3)",
        example="zero1",
    )
    gradients: str | None = word(
        GRADIENTS, "number format in which gradients are summed and sent", example="bf16"
    )
    moments: str | None = word(
        MOMENTS, "number format of Adam's moments, beside fp32 weights", example="bf16"
    )
    sync_each_batch: bool | None = flag(
        "gradients are reduced after every micro-batch, not summed first", example=True
    )
    dp_outer: int | None = count(
        1,
        1_000_000,
        "groups",
        "groups of ranks that hold all states each (hsdp), in place of shard_group",
        example=4,
    )
    compile_memory_budget: float | None = amount(
        0,
        1,
        "share",
        "activations that the compiler may keep, of what it would keep by itself; the cheapest to "
        "repeat go first (torch's activation_memory_budget)",
        example=0.5,
    )
    recompute_layer_ids: list[int] | None = listed(
        "layers",
        10_000,
        "layers that are computed again, by their numbers from 0, in place of recompute_layers",
        low=0,
        high=100_000,
        example=[0, 1],
    )
    compile: bool | None = flag(
        "blocks are compiled (PyTorch), not dispatched operation by operation", example=True
    )
    precision: str | None = word(PRECISIONS, "number format of the matrix products", example="bf16")
    keep_16bit: Keep16Bit | None = other(
        "layers at both ends that stay in 16 bit under 8 or 4 bit", example={"first": 1, "last": 5}
    )


class PhaseSpec(Section):
    """One stretch of the run with its own tokens, context and batch."""

    tokens: float | None = amount(1, 1e18, "tokens", "tokens trained on", example=14e12)
    target_loss: float | None = amount(
        0.5,
        10,
        "nats a token",
        "loss to train to, in place of tokens, by published scaling laws",
        example=1.95,
    )
    seq_len: int | None = count(1, 1_000_000_000, "tokens", "tokens in one sequence", example=8192)
    global_batch: int | None = count(
        1, 1_000_000_000, "sequences", "sequences in one step", example=2048
    )
    global_batch_tokens: float | None = amount(
        1, 1e15, "tokens", "tokens in one step, instead of global_batch", example=16e6
    )
    precision: str | None = word(PRECISIONS, "number format of the matrix products", example="bf16")
    from_checkpoint: bool | None = flag(
        "weights start from a trained checkpoint: a fine-tune or continued training", example=True
    )
    effort: str | None = word(
        EFFORTS,
        "tuned: its maker's recipe for the very machine; typical: what others reach; "
        "first-week: code and settings that nobody has tuned yet",
        example="typical",
    )
    routing: str | None = word(
        ROUTINGS, "natural, or forced even as benchmarks do", example="natural"
    )
    expert_skew: float | None = amount(
        1, 1000, "ratio", "tokens of the fullest expert rank over the mean", example=1.3
    )
    capacity_factor: float | None = amount(
        0.1,
        100,
        "ratio",
        "rows of an expert over an even share; what is beyond is dropped",
        example=1.25,
    )
    node_limit: int | None = count(
        1, 10_000, "nodes", "most nodes that the experts of a token may lie on", example=4
    )
    document_tokens: float | None = amount(
        1,
        1_000_000_000,
        "tokens",
        (
            "tokens of a packed document that attention stays within: sum of squared "
            "lengths / sum of lengths"
        ),
        example=2048,
    )
    optimizer: str | None = word(
        tuple(optimizers()), "optimizer, which decides the state per parameter", example="adamw"
    )
    evaluation_hours: float | None = amount(
        0,
        10_000,
        "h",
        "pause for evaluation at the end of the stretch",
        example=4,
        usual=4,
        rule="judgement: half a shift at the end of a phase",
    )

    alone = {
        ("tokens", "target_loss"): "tokens or target_loss, not both",
        ("global_batch", "global_batch_tokens"): (
            "global_batch (sequences) or global_batch_tokens, not both"
        ),
    }


class PlannedPhase(PhaseSpec):
    """A phase of `job.phases`, with pins of its own."""

    name: str | None = text("name to show", example="long context")
    plan: PlanSpec | None = other(
        "pins for this phase, over those of the design", example={"cp": 16}
    )


class SyncSpec(Section):
    """How several sites keep in step."""

    kind: str | None = word(
        SYNCS,
        (
            "how several sites keep in step: gradients summed at every step, or "
            "weights averaged after local steps"
        ),
        example="local-steps",
    )
    local_steps: int | None = count(
        1, 1_000_000, "steps", "steps between two averages; searched when left out", example=100
    )
    compress_bits: int | None = count(
        1,
        32,
        "bits",
        "bits of a value that is exchanged between sites",
        example=4,
        usual=32,
        rule="fp32, as DiLoCo's; 8 and 4 are published",
    )
    outer_optimizer: str | None = word(
        tuple(OUTERS),
        "what applies the average",
        example="nesterov",
        usual="nesterov",
        rule="DiLoCo's, and all that followed",
    )
    overlap: bool | None = flag(
        "the exchange runs beside the steps that follow",
        example=True,
        usual=False,
        rule="the exchange is waited for",
    )


class CorpusSpec(Section):
    """The corpus from its raw bytes to shards of tokens."""

    raw_bytes: float | None = amount(
        1,
        1e21,
        "bytes",
        "raw corpus as it is fetched; worked back from the tokens when left out",
        example=400e12,
    )
    extract_share: float | None = fraction(
        1e-6,
        1,
        "bytes of text over raw bytes",
        example=0.2,
        usual=0.2,
        rule="judgement: text is a fifth of compressed pages",
    )
    exact_share: float | None = fraction(
        1e-6,
        1,
        "bytes that exact duplicates leave",
        example=0.468,
        usual=0.468,
        rule="Dolma, arXiv 2402.00159: duplicates by address are 53.2 % of the documents",
    )
    near_share: float | None = fraction(
        1e-6,
        1,
        "bytes that near duplicates leave",
        example=0.504,
        usual=0.504,
        rule="SlimPajama, 2023-06: MinHash takes 49.6 % of the bytes of RedPajama",
    )
    keep_share: float | None = fraction(
        1e-6,
        1,
        "bytes that the filters keep",
        example=0.3,
        usual=0.3,
        rule="judgement: quality filters keep a third or less",
    )
    tokens_per_byte: float | None = amount(
        0.001,
        10,
        "tokens/byte",
        "tokens of a byte of text",
        example=0.25,
        usual=0.25,
        rule="four bytes of English text a token",
    )
    cores: int | None = count(
        1,
        100_000_000,
        "cores",
        "processor cores that prepare the corpus",
        example=4096,
        usual=4096,
        rule="judgement: thirty-two servers of 128 cores",
    )
    extract_mbytes_per_s_per_core: float | None = amount(
        1e-6,
        100_000,
        "MB/s",
        "raw bytes that one core extracts",
        example=1.5,
        usual=1.5,
        rule="judgement: 20 ms for a page of 30 kB compressed",
    )
    exact_mbytes_per_s_per_core: float | None = amount(
        1e-6,
        100_000,
        "MB/s",
        "text that one core hashes",
        example=100,
        usual=100,
        rule="judgement: hashing waits for the disks",
    )
    near_mbytes_per_s_per_core: float | None = amount(
        1e-6,
        100_000,
        "MB/s",
        "text that one core compares by MinHash",
        example=0.35,
        usual=0.35,
        rule=(
            "SlimPajama, 2023-06: 1.21e12 tokens of 4 bytes in 2.5 days on 64 cores, "
            "cleaning included"
        ),
    )
    filter_mbytes_per_s_per_core: float | None = amount(
        1e-6,
        100_000,
        "MB/s",
        "text that one core scores",
        example=5,
        usual=5,
        rule="judgement: rules and a linear classifier",
    )
    tokenise_mbytes_per_s_per_core: float | None = amount(
        1e-6,
        100_000,
        "MB/s",
        "text that one core tokenises",
        example=4,
        usual=4,
        rule=(
            "judgement: 1e6 tokens a second; Hugging Face tokenizers print below 20 s"
            " a GB on a server"
        ),
    )
    usd_per_core_hour: float | None = amount(
        0,
        1000,
        "USD/h",
        "price of a core",
        example=0.04,
        usual=0.04,
        rule="judgement: a rented core",
    )
    fetch_gbytes_per_s: float | None = amount(
        1e-6,
        1_000_000,
        "GB/s",
        "rate at which the raw corpus comes in",
        example=12.5,
        usual=12.5,
        rule="judgement: one line of 100 Gbit/s",
    )
    read_gbytes_per_s: float | None = amount(
        1e-9,
        1_000_000,
        "GB/s",
        "rate at which training can read the shards; the store's when left out",
        example=100,
    )
    reads_per_s: float | None = amount(
        0.001,
        1_000_000_000_000,
        "1/s",
        "sequences that the store can hand out; no limit when left out",
        example=5500,
    )
    dedup: list[Annotated[str, validator(word_of(DEDUPS))]] | None = listed(
        "kinds", 2, "duplicates that are taken out: exact, near", example=["exact", "near"]
    )


class Job(PhaseSpec):
    """What is trained: one phase, or several."""

    method: str | None = word(
        METHODS,
        "what is trained, and on what: pretrain and sft all weights, lora and qlora adapters, "
        "dpo on preferences, grpo and ppo a policy on its own samples",
        example="grpo",
    )
    adapter: AdapterSpec | None = other("low-rank adapters", example={"rank": 16})
    data: DataSpec | None = other("samples of a fine-tune", example={"samples": 1e5})
    rollout: RolloutSpec | None = other("the policy's own samples", example={"prompts": 64})
    phases: list[PlannedPhase] | None = listed(
        "phases", 100, "phases in order, instead of tokens, seq_len and global_batch here"
    )
    corpus: CorpusSpec | None = other("where the tokens come from", example={"raw_bytes": 4e14})
    sync: SyncSpec | None = other("how several sites keep in step", example={"kind": "local-steps"})

    @model_validator(mode="after")
    def _of_one_method(self) -> "Job":
        check_method(self.method, self.stated())
        return self

    alone = {
        **PhaseSpec.alone,
        **{
            ("phases", field): f"{field} inside each of the phases, or no phases"
            for field in ("tokens", "seq_len", "global_batch", "global_batch_tokens")
        },
    }


if TYPE_CHECKING:
    _PlugInConstraints = Section
else:
    _PlugInConstraints = _added("scantling.constraints")


class Constraints(_PlugInConstraints):
    """What the run must keep to; a missed one makes the verdict `constraint-missed`."""

    deadline_days: float | None = amount(1e-6, 1e6, "days", "longest run", example=90)
    budget_usd: float | None = amount(1e-6, 1e15, "USD", "largest cost", example=150e6)
    min_mfu: float | None = fraction(0, 1, "lowest model FLOP utilisation", example=0.35)
    max_checkpoint_overhead: float | None = fraction(
        0, 1, "largest share of time stalled in saves", example=0.05
    )
    min_goodput: float | None = fraction(0, 1, "lowest productive share of wall time", example=0.9)
    max_lost_work_s: float | None = amount(
        1e-6, 1e9, "s", "most work lost to one failure", example=1800
    )
    max_recovery_s: float | None = amount(
        1e-6, 1e9, "s", "longest time from failure to training", example=900
    )
    max_checkpoint_stall_s: float | None = amount(
        0, 1e9, "s", "longest stall of one save", example=1
    )
    max_oom_probability: float | None = fraction(
        0, 1, "largest chance that the run goes out of memory", example=0.05
    )
    survive: str | None = word(
        SURVIVE, "largest failure that must not lose the run", example="node"
    )
    max_power_mw: float | None = amount(1e-9, 1e6, "MW", "largest facility power", example=30)


class Cause(Section):
    """Failures of one cause."""

    per_1000_node_days: float | None = amount(
        0, 1e6, "per 1,000 node-days", "failures of this cause that stop the job", example=1.2
    )
    detect_s: float | None = amount(0, 1e9, "s", "until it is noticed and localised", example=30)
    restart_s: float | None = amount(
        0, 1e9, "s", "from the new allocation to the first step", example=300
    )
    repair_s: float | None = amount(0, 1e9, "s", "until the node is back", example=14_400)


class Causes(Section):
    """Failures that stop the job, by cause."""

    gpu: Cause | None = other("accelerators and their memory")
    node: Cause | None = other("host: card, disk, processor, memory, chassis")
    link: Cause | None = other("cables and transceivers")
    switch: Cause | None = other("switches")
    storage: Cause | None = other("the shared store")
    software: Cause | None = other(
        "bugs, dependencies, watchdogs: the processes die and the nodes stay"
    )
    power: Cause | None = other("power supplies and feeds")
    maintenance: Cause | None = other("hosts taken out unplanned")


class Sdc(Section):
    """Silent data corruption."""

    per_1000_node_days: float | None = amount(
        0, 1e6, "per 1,000 node-days", "corruptions of the state that nobody sees", example=0.02
    )
    check_every_s: float | None = amount(
        1, 1e9, "s", "between two checks, each a step run twice", example=9000
    )


class Stragglers(Section):
    """Nodes that turn slow and do not stop."""

    share: float | None = fraction(
        0, 1, "share of the nodes that turn slow in a day", example=0.002
    )
    slowdown: float | None = amount(
        1, 1000, "ratio", "step with a slow node over step without", example=1.2
    )
    notice_s: float | None = amount(0, 1e9, "s", "until a slow node is taken out", example=3600)


class Lemons(Section):
    """Nodes that fail far more often than the others."""

    share: float | None = fraction(0, 1, "share of the nodes that are lemons", example=0.005)
    factor: float | None = amount(
        1, 100_000, "ratio", "failures of a lemon over those of a sound node", example=10
    )


class LinkFlaps(Section):
    """Links that drop for seconds and come back."""

    per_1000_link_days: float | None = amount(
        0, 1e6, "per 1,000 link-days", "flaps of a link, each stalls the step", example=0.3
    )
    seconds: float | None = amount(0, 1e6, "s", "stall of one flap", example=15)


class Reliability(Section):
    """How often the machine fails and what a failure and a save cost."""

    preset: str | None = text("fleet whose figures stand in for what is left out", example="llama3")
    failures_per_1000_node_days: float | None = amount(
        0, 1e6, "per 1,000 node-days", "failures that stop the job; 8 devices a node", example=3.8
    )
    checkpoint_stall_s: float | None = amount(
        0, 1e9, "s", "training stalls this long for a save", example=10
    )
    checkpoint_durable_s: float | None = amount(
        0, 1e9, "s", "from the end of the stall until the save is safe", example=120
    )
    restart_s: float | None = amount(
        0, 1e9, "s", "from the new allocation to the first step", example=300
    )
    detect_s: float | None = amount(0, 1e9, "s", "until a failure is noticed", example=120)
    repair_s: float | None = amount(0, 1e9, "s", "until a failed node is back", example=14_400)
    planned_per_day: float | None = amount(
        0, 1000, "1/day", "planned stops of the job, which save first", example=0.5
    )
    spares: int | None = count(
        0,
        1_000_000,
        "nodes",
        (
            "nodes kept ready beyond the cluster's devices, paid for; in racks that "
            "NVLink joins, rounded up to a tray of each rack or whole segments"
        ),
        example=16,
    )
    recovery: str | None = word(
        RECOVERIES,
        (
            "what brings the job back: restart (requeued), in-place (processes on the"
            " nodes), elastic (the others change their number and go on without the lost replica),"
            " replica (they go on at once, it recovers alone), parts (that average after local"
            " steps stop alone)"
        ),
        example="in-place",
    )
    causes: Causes | None = other("failures that stop the job by cause")
    sdc: Sdc | None = other("silent data corruption")
    stragglers: Stragglers | None = other("nodes that turn slow and do not stop")
    lemons: Lemons | None = other("nodes that fail far more often than the others")
    link_flaps: LinkFlaps | None = other("links that drop for seconds and come back")


class Tier(Section):
    """Copies in one place."""

    every_s: float | None = amount(0.001, 1e9, "s", "training between two copies", example=600)


class Tiers(Section):
    """Where copies live, from the host's memory to the object store."""

    l0: Tier | None = other("snapshot in the host's memory")
    l1: Tier | None = other("copy in a peer's memory or NVMe")
    l2: Tier | None = other("parallel file system")
    l3: Tier | None = other("object store")


class Checkpoint(Section):
    """How often copies are written, to where, and how many are kept."""

    interval_s: float | None = amount(0.001, 1e9, "s", "training between two saves", example=600)
    tiers: Tiers | None = other("where copies live, from the host's memory to the object store")
    keep_versions: int | None = count(1, 1_000_000, "copies", "copies that are kept", example=22)
    keep_days: float | None = amount(
        0, 100_000, "days", "age up to which one copy a day is kept", example=14
    )


class Owned(Section):
    """A machine that is owned."""

    capex_usd: float = amount(
        0, 1e13, "USD", "price of the machine with these devices", example=300e6, required=True
    )
    years: float | None = amount(0.1, 50, "years", "years over which it is written off", example=4)
    staff_usd_per_year: float | None = amount(0, 1e12, "USD/year", "people who run it", example=4e6)
    network_usd: float | None = amount(
        0, 1e12, "USD", "network beside the machine's price", example=40e6
    )
    storage_usd: float | None = amount(
        0, 1e12, "USD", "storage beside the machine's price", example=1e7
    )

    def grown(self, times: float) -> dict[str, float]:
        """What is stated of the price of a machine so many times as large, its people among it."""
        return {name: times * paid for name, paid in self.stated().items() if name != "years"}


class Spot(Section):
    """Devices that their owner may take back, priced beside the run."""

    usd_per_device_hour: float = amount(
        0, 1e6, "USD/h", "price of one device for an hour", example=1.1, required=True
    )
    preemptions_per_day: float = amount(
        0,
        1e5,
        "1/day",
        "nodes taken back in a day, of all the job's together",
        example=2.0,
        required=True,
    )
    notice_s: float | None = amount(
        0, 1e6, "s", "from the notice until the node is gone", example=120.0
    )
    replacement_s: float | None = amount(
        0, 1e7, "s", "until another node stands in for one", example=600.0
    )


class Prices(Section):
    """What time and energy cost. An hourly price includes energy."""

    usd_per_device_hour: float | None = amount(
        0, 1e6, "USD/h", "price of one device for an hour", example=2.5
    )
    usd_per_node_hour: float | None = amount(
        0,
        1e7,
        "USD/h",
        "price of one node for an hour, in place of usd_per_device_hour",
        example=20.0,
    )
    kind: str | None = word(
        RENTS, "kind of rent that a price of the catalogue is of", example="on-demand"
    )
    owned: Owned | None = other("a machine that is owned, in place of an hourly price")
    spot: Spot | None = other("devices that their owner may take back, beside the run as it is")
    pue: float | None = amount(1.0, 10.0, "ratio", "facility power over machine power", example=1.2)
    usd_per_kwh: float | None = amount(0, 1000, "USD/kWh", "price of energy", example=0.08)

    alone = {
        ("usd_per_device_hour", "usd_per_node_hour", "owned"): (
            "one of usd_per_device_hour, usd_per_node_hour, owned"
        )
    }


class Measured(Section):
    """What was measured; it replaces what the kit computes and is marked wherever it shows."""

    step_s: float | None = amount(1e-6, 1e9, "s", "time of one step", example=40.1)
    mfu: float | None = fraction(0.0001, CREDIBLE_MFU, "model FLOP utilisation", example=0.41)
    tokens_per_s_per_device: float | None = amount(
        1e-6, 1e12, "tokens/s", "throughput of one device", example=430.0
    )
    memory_gb: float | None = amount(
        1e-6, 1e6, "GB", "peak memory of the fullest device", example=71.0
    )
    goodput: float | None = fraction(0.0001, 1, "productive share of wall time", example=0.93)

    alone = {
        ("step_s", "mfu", "tokens_per_s_per_device"): (
            "one of step_s, mfu and tokens_per_s_per_device: each gives the others"
        )
    }


class StackSpec(Section):
    """Training software and which release of it."""

    id: str | None = text("training software (scantling catalogue stacks)", example="megatron-core")
    like: str | None = text("the same as id")
    release: str | None = text(
        "release, by year and month: a figure stands for the software of that day",
        example="26.08",
        high=12,
    )

    alone = {("id", "like"): "the id of one stack"}

    @model_validator(mode="after")
    def _named(self) -> "StackSpec":
        if not (self.id or self.like):
            raise DesignError("id", allowed="the id of a stack", problem="is missing")
        return self


class UnreadWords(Section):
    """Words of a line that found no field, and what has to be answered about them."""

    text: str = phrase("the words as they were given", example="RTX 3090", required=True)
    question: str = phrase(
        "what has to be answered", example="which accelerator is meant?", high=600, required=True
    )
    choices: list[Annotated[str, ID]] | None = listed(
        "choices", 50, "what may be meant", least=0, example=["rtx4090", "l40s"]
    )

    def line(self) -> str:
        """The words, the question and the choices on one line."""
        choices = f" ({', '.join(self.choices)})" if self.choices else ""
        return plain(f"'{self.text}': {self.question}{choices}", 500)


StackRef = Annotated[Annotated[str, ID, SINGLE] | Annotated[StackSpec, COMPOUND], BY_TEXT]
