"""Environment variables that makers' recipes carry: typed rows, one a variable and framework.

Sources: `recipes` is perf_recipes of megatron-bridge 0.6.2, run and counted (338 of language
models); releases are the first of megatron-core or megatron-bridge whose files have the variable.
"""

from collections.abc import Callable

from scantling.base.records import Lines
from scantling.catalogue.words import Precision

from .frameworks import megatron_core as core
from .frameworks.maxtext_settings import hardware
from .launch_plan import LaunchPlan
from .recipe_settings import Setting, Value

MEGATRONS: Lines = ("megatron", "megatron-bridge")
OWN: Lines = ("fsdp", "ddp", "deepspeed", "accelerate")  # whose training loop is the kit's, or HF's
TORCHES: Lines = (*MEGATRONS, "torchtitan", *OWN)
FIRST = "0"  # every release
FLAT_BOARD = 8  # devices of a board whose switches have no reduction that the plan counts on


def of(
    frameworks: Lines,
    when: Callable[[LaunchPlan], bool],
    name: str,
    value: Value | Callable[[LaunchPlan], Value],
    why: str | Callable[[LaunchPlan], str],
    source: str,
    since: str = FIRST,
) -> tuple[Setting, ...]:
    """The same variable for each of some frameworks."""
    return tuple(
        Setting(
            framework=framework,
            since=since,
            when=when,
            name=name,
            value=value,
            why=why,
            source=source,
        )
        for framework in frameworks
    )


def on_nvidia(launch: LaunchPlan) -> bool:
    """CUDA devices."""
    return launch.chip == "nvidia"


def on_amd(launch: LaunchPlan) -> bool:
    """ROCm devices."""
    return launch.chip == "amd"


def on_gpus(launch: LaunchPlan) -> bool:
    """CUDA or ROCm devices."""
    return launch.gpu


def together(launch: LaunchPlan) -> bool:
    """Several CUDA devices."""
    return on_nvidia(launch) and launch.devices > 1


def gpus_together(launch: LaunchPlan) -> bool:
    """Several CUDA or ROCm devices."""
    return launch.gpu and launch.devices > 1


def amd_dense(launch: LaunchPlan) -> bool:
    """ROCm devices without experts, which end in a core dump where scratch memory is kept."""
    return on_amd(launch) and not launch.model.is_moe


def amd_low(launch: LaunchPlan) -> bool:
    """ROCm devices in 8 bit."""
    return on_amd(launch) and launch.phase.precision not in (
        Precision.BF16,
        Precision.FP16,
        Precision.FP32,
    )


def whole(launch: LaunchPlan) -> bool:
    """Captured graphs of the whole iteration."""
    return core.graphs(launch) == "whole"


def allocator(launch: LaunchPlan) -> str:
    """PyTorch's allocator: segments that grow; streams recorded in a captured graph are used
    again."""
    out = "expandable_segments:True"
    megatron = launch.framework.id in MEGATRONS
    return f"{out},graph_capture_record_stream_reuse:True" if megatron and whole(launch) else out


def records_streams(launch: LaunchPlan) -> str:
    """0 where the whole iteration is captured, whose allocator uses recorded streams."""
    return "0" if whole(launch) else "1"


def ordered(launch: LaunchPlan) -> bool:
    """Collectives that have to be issued in order: tensor or context parallelism below Blackwell,
    but for Megatron-FSDP, which refuses it (arguments.py)."""
    p = launch.plan
    sharded = p.sharding in core.FSDP_STRATEGY
    return launch.kin.ordered_launch and not sharded and (p.tp > 1 or p.cp > 1)


def queues(launch: LaunchPlan) -> str:
    """Hardware queues of a device."""
    return "1" if ordered(launch) else "32"


def engine(launch: LaunchPlan) -> bool:
    """Transformer Engine on several CUDA devices."""
    return together(launch) and launch.kin.transformer_engine


def captured(launch: LaunchPlan) -> bool:
    """Captured graphs of any kind."""
    return core.graphs(launch) != ""


def no_switch_reduction(launch: LaunchPlan) -> bool:
    """NVLink switches that could reduce."""
    return on_nvidia(launch) and launch.kin.nvls and launch.cluster.scale_up_domain >= 4


def dense_stages(launch: LaunchPlan) -> bool:
    """A dense model in stages over several nodes."""
    p = launch.plan
    return on_nvidia(launch) and not launch.model.is_moe and p.pp > 1 and launch.nodes > 1


def ultra_boards(launch: LaunchPlan) -> bool:
    """Blackwell Ultra on boards of eight behind NVLink switches, no racks: B300."""
    board = launch.cluster.accelerator.scale_up_domain_max <= FLAT_BOARD
    return on_nvidia(launch) and launch.kin.nvls and board and core.ultra(launch)


def four_bit(launch: LaunchPlan) -> bool:
    """Products in NVFP4."""
    return launch.phase.precision == Precision.NVFP4


def hybrid_ep(launch: LaunchPlan) -> bool:
    """Tokens travel by HybridEP."""
    return core.dispatcher(launch) == "hybridep"


def hybrid_ranks(launch: LaunchPlan) -> str:
    """Ranks of an expert group that one NVLink domain holds."""
    k = launch.cluster
    joined = k.scale_up_domain if core.racked(launch) else min(k.devices_per_node, FLAT_BOARD)
    return str(min(launch.plan.ep * launch.plan.etp, joined))


def nvlink_domain(launch: LaunchPlan) -> str:
    """Devices that NVLink joins."""
    k = launch.cluster
    if not core.racked(launch):
        return str(k.devices_per_node)
    return str(max(k.accelerator.scale_up_domain_max, k.scale_up_domain))


def over_nodes(launch: LaunchPlan) -> str:
    """Whether NVLink reaches over nodes."""
    return str(int(core.racked(launch)))


def latent_whole(launch: LaunchPlan) -> bool:
    """Latent attention in captured iterations of MXFP8."""
    return whole(launch) and hybrid_ep(launch) and launch.model.attention == "mla"


def whole_board(launch: LaunchPlan) -> bool:
    """All eight devices of an AMD board."""
    return on_amd(launch) and launch.per_node == 8


def amd_megatron(launch: LaunchPlan) -> bool:
    """AMD devices under Megatron, but for Megatron-FSDP."""
    return on_amd(launch) and launch.plan.sharding not in core.FSDP_STRATEGY


def amd_network(launch: LaunchPlan) -> bool:
    """AMD devices over a network of verbs."""
    fabric = launch.network
    return on_amd(launch) and fabric is not None and fabric.transport == "verbs"


def jax_gpus(launch: LaunchPlan) -> bool:
    """CUDA devices under JAX."""
    return hardware(launch) == "gpu" and on_nvidia(launch)


VARIABLES: tuple[Setting, ...] = (
    *of(
        TORCHES,
        on_gpus,
        "PYTORCH_ALLOC_CONF",
        allocator,
        "segments grow in place of new ones: less fragmentation",
        "recipes: 308 of 338; PyTorch notes on the CUDA allocator (the name from torch 2.9 on)",
    ),
    *of(
        TORCHES,
        on_gpus,
        "PYTORCH_CUDA_ALLOC_CONF",
        allocator,
        "the same for torch before 2.9, and for what still reads this name (megatron-core 0.19.2)",
        "recipes: 308 of 338; arguments.py of megatron-core",
    ),
    *of(
        TORCHES,
        gpus_together,
        "TORCH_NCCL_HIGH_PRIORITY",
        "1",
        "collectives run on a stream that goes before the products they hide under",
        "recipes: 338 of 338 (perf_recipes/environment.py); AMD's MI300X tuning guide; Primus",
    ),
    *of(
        TORCHES,
        together,
        "TORCH_NCCL_AVOID_RECORD_STREAMS",
        records_streams,
        "tensors of a collective are held by reference, not by stream: their memory is free sooner "
        "(0 where the whole iteration is captured)",
        "recipes: 338 of 338; PyTorch, ProcessGroupNCCL",
    ),
    *of(
        TORCHES,
        no_switch_reduction,
        "NCCL_NVLS_ENABLE",
        "0",
        "reduction in the NVLink switches keeps buffers in device memory and takes kernels that "
        "overlap less; without registered user buffers the recipes leave it off",
        "recipes: 322 of 338 (1 with nccl_ub alone)",
    ),
    *of(
        MEGATRONS,
        together,
        "CUDA_DEVICE_MAX_CONNECTIONS",
        queues,
        "1 where Megatron demands that collectives are issued before the products they hide under "
        "(tensor or context parallelism below Blackwell), else queues for exchanges and products "
        "beside each other",
        "recipes: 338 of 338; arguments.py of megatron-core",
    ),
    *of(
        MEGATRONS,
        engine,
        "NVTE_FWD_LAYERNORM_SM_MARGIN",
        "20",
        "multiprocessors that norms leave to collectives beside them",
        "recipes: 326 of 338 (16 in the others)",
    ),
    *of(
        MEGATRONS,
        engine,
        "NVTE_BWD_LAYERNORM_SM_MARGIN",
        "20",
        "the same in the backward pass",
        "recipes: 326 of 338 (16 in the others)",
    ),
    *of(
        MEGATRONS,
        captured,
        "NCCL_GRAPH_REGISTER",
        "0",
        "captured graphs beside expandable segments end in illegal accesses with it; Megatron asks "
        "for it",
        "recipes: 308 of 338; arguments.py of megatron-core",
    ),
    *of(
        TORCHES,
        dense_stages,
        "NCCL_P2P_NET_CHUNKSIZE",
        "2097152",
        "sends between stages go in pieces of 2 MB",
        "recipes: 41 of 94 of dense models, all of them in stages",
    ),
    *of(
        TORCHES,
        ultra_boards,
        "NCCL_IGNORE_CPU_AFFINITY",
        "1",
        "NCCL takes the cores beside its card, not those that the launcher left it",
        "recipes: 54 of 54 on B300",
    ),
    *of(
        MEGATRONS,
        four_bit,
        "NVTE_USE_FAST_MATH",
        "1",
        "casts to 4 bit by the device's approximate arithmetic",
        "recipes: 66 of 66 in NVFP4",
    ),
    *of(
        MEGATRONS,
        hybrid_ep,
        "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN",
        hybrid_ranks,
        "ranks of an expert group that one NVLink domain holds, as HybridEP counts them",
        "recipes: 201 of 201 under HybridEP",
    ),
    *of(
        MEGATRONS,
        hybrid_ep,
        "NUM_OF_TOKENS_PER_CHUNK_COMBINE_API",
        "128",
        "tokens that HybridEP brings back at a time",
        "recipes: 199 of 201 under HybridEP",
    ),
    *of(
        MEGATRONS,
        hybrid_ep,
        "NVLINK_DOMAIN_SIZE",
        nvlink_domain,
        "devices that NVLink joins: of a rack, else of a board",
        "recipes: 72 on racks, 8 on boards",
    ),
    *of(
        MEGATRONS,
        hybrid_ep,
        "USE_MNNVL",
        over_nodes,
        "whether HybridEP's buffers reach over nodes",
        "recipes: 1 on racks, 0 on boards",
    ),
    *of(
        MEGATRONS,
        core.fuses_experts,
        "NVTE_CUTEDSL_FUSED_GROUPED_MLP",
        "1",
        "grouped products that apply and cast the activation themselves",
        "recipes: 64, in MXFP8 with fused experts",
    ),
    *of(
        MEGATRONS,
        core.fuses_experts,
        "CUDNNFE_CLUSTER_OVERLAP_MARGIN",
        "8",
        "clusters that those products leave to what runs beside them",
        "recipes: 48 of 64 with fused experts",
    ),
    *of(
        MEGATRONS,
        latent_whole,
        "NVTE_NORM_FWD_USE_CUDNN",
        "1",
        "cuDNN's norms, which captured iterations of latent attention are measured with",
        "recipes of DeepSeek-V3 and Kimi K2 in MXFP8: all",
    ),
    *of(
        MEGATRONS,
        latent_whole,
        "NVTE_NORM_BWD_USE_CUDNN",
        "1",
        "the same in the backward pass",
        "recipes of DeepSeek-V3 and Kimi K2 in MXFP8: all",
    ),
    *of(
        TORCHES,
        amd_dense,
        "HSA_NO_SCRATCH_RECLAIM",
        "1",
        "ROCm otherwise gives scratch memory back between kernels and takes it again in every step "
        "(left alone with experts, which end in a core dump with it)",
        "AMD's MI300X tuning guide; Primus, runner/helpers/envs/base_env.sh",
    ),
    *of(
        TORCHES,
        whole_board,
        "NCCL_MIN_NCHANNELS",
        "112",
        "RCCL needs the channels to fill all Infinity Fabric links of a node of eight",
        "AMD's MI300X tuning guide",
    ),
    *of(
        TORCHES,
        on_amd,
        "GPU_MAX_HW_QUEUES",
        "2",
        "two streams for products and two for collectives: the device is fastest with four at most",
        "AMD's MI300X tuning guide; Primus, runner/helpers/envs/base_env.sh",
    ),
    *of(
        MEGATRONS,
        amd_megatron,
        "CUDA_DEVICE_MAX_CONNECTIONS",
        "1",
        "collectives are issued before the products they hide under",
        "Primus, runner/helpers/envs/base_env.sh",
    ),
    *of(
        TORCHES,
        on_amd,
        "RCCL_MSCCL_ENABLE",
        "0",
        "RCCL's own algorithms alone: more stable on many nodes",
        "Primus, runner/helpers/envs/base_env.sh",
    ),
    *of(
        TORCHES,
        amd_network,
        "NCCL_PXN_DISABLE",
        "1",
        "each device sends through its own card: no buffers on another device",
        "Primus, runner/helpers/envs/base_env.sh",
    ),
    *of(
        TORCHES,
        amd_network,
        "NCCL_P2P_NET_CHUNKSIZE",
        "524288",
        "sends go in pieces of 512 kB",
        "Primus, runner/helpers/envs/base_env.sh",
    ),
    *of(
        MEGATRONS,
        on_amd,
        "NVTE_CK_USES_BWD_V3",
        "0",
        "the newer backward kernel of attention is off: it loses accuracy",
        "Primus, runner/helpers/envs/base_env.sh",
    ),
    *of(
        MEGATRONS,
        amd_low,
        "NVTE_USE_CAST_TRANSPOSE_TRITON",
        "1",
        "casts to 8 bit by Triton's kernel",
        "Primus, runner/helpers/envs/base_env.sh",
    ),
    *of(
        ("maxtext",),
        jax_gpus,
        "CUDA_DEVICE_MAX_CONNECTIONS",
        "1",
        "collectives are issued before the products they hide under",
        "maxtext, tools/orchestration/gpu_multi_process_run.sh",
    ),
    *of(
        ("maxtext",),
        jax_gpus,
        "NVTE_FUSED_ATTN",
        "1",
        "attention is cuDNN's fused kernel, as maxtext.yml asks for it",
        "maxtext, tests/end_to_end/gpu/a3",
    ),
)
