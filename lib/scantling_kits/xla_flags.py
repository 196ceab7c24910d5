"""Flags of libtpu and XLA that MaxText's own runs carry: typed rows.

Sources, at e591f30: `library` is benchmarks/xla_flags_library.py, used by the model configurations
beside it (maxtext_trillium_model_configs.py, ..._v5p_...); `a3` is
src/maxtext/configs/gpu/a3/llama_3.1_405b/128vm.sh.
"""

from collections.abc import Callable

from scantling.catalogue.words import Offload, Sharding

from .launch_plan import LaunchPlan
from .recipe_settings import Setting, Value

SINCE = "0.1.0"
VMEM_DENSE_KIB, VMEM_EXPERTS_KIB = 98304, 81920  # of v6e's on-chip memory, for one operation
PLANAR = 2  # axes of a slice's torus
FLOP_A_BYTE = 400.0  # of 16 bit and device memory, beyond which tiles are larger: v5e 241, v6e 560


def of(
    when: Callable[[LaunchPlan], bool],
    name: str,
    value: Value | Callable[[LaunchPlan], Value],
    why: str,
    source: str,
) -> Setting:
    """One flag, or one key of MaxText's configuration."""
    return Setting(
        framework="maxtext", since=SINCE, when=when, name=name, value=value, why=why, source=source
    )


def on_tpus(launch: LaunchPlan) -> bool:
    """TPUs."""
    return launch.chip == "tpu"


def on_gpus(launch: LaunchPlan) -> bool:
    """CUDA or ROCm devices."""
    return launch.gpu


def hungry(launch: LaunchPlan) -> bool:
    """TPUs of planar slices whose products outrun their memory, and want larger tiles: v6e, with
    560 flop a byte (v5e 241; of the others, in slices of three axes, v5p 166 and v7x 313)."""
    chip = launch.cluster.accelerator
    planar = chip.slice_axes == PLANAR
    return on_tpus(launch) and planar and chip.bf16_flops > FLOP_A_BYTE * chip.hbm_bytes_per_s


def dense_hungry(launch: LaunchPlan) -> bool:
    """The same without experts."""
    return hungry(launch) and not launch.model.is_moe


def vmem(launch: LaunchPlan) -> str:
    """On-chip memory of one operation [KiB]: less where experts' rows are fetched ahead."""
    return str(VMEM_EXPERTS_KIB if launch.model.is_moe else VMEM_DENSE_KIB)


def slices(launch: LaunchPlan) -> bool:
    """Data parallelism on TPUs, whose sums may run over several iterations."""
    return on_tpus(launch) and launch.plan.dp > 1


def on_host(launch: LaunchPlan) -> bool:
    """States or activations in host memory on TPUs."""
    away = launch.plan.offload != Offload.NONE or launch.phase.offloaded_layers > 0
    return on_tpus(launch) and away


def sparse_sums(launch: LaunchPlan) -> bool:
    """Dense models on the chips of `hungry`, all of which have sparse cores, whose data-parallel
    ranks hold copies: gradients are summed over them."""
    p = launch.plan
    sharded = launch.shards if p.sharding in (Sharding.ZERO3, Sharding.HSDP) else 1
    return dense_hungry(launch) and p.dp > sharded


FUSION = "xla_tpu_enable_async_collective_fusion"
SPARSE = "library: ENABLE_SPARSECORE_OFFLOADING_FOR_ALL_REDUCE (14 of 48 on v6e)"
XLA_FLAGS: tuple[Setting, ...] = (
    of(
        on_tpus,
        FUSION,
        "true",
        "a collective is split and runs beside the matrix products around it",
        "library: CF_FOR_ALL_GATHER",
    ),
    of(
        on_tpus,
        f"{FUSION}_fuse_all_gather",
        "true",
        "the same for the gathers of sharded weights",
        "library: CF_FOR_ALL_GATHER",
    ),
    of(
        on_tpus,
        f"{FUSION}_multiple_steps",
        "true",
        "one collective may hide under several products",
        "library: CF_FOR_ALL_GATHER",
    ),
    of(
        on_tpus,
        "xla_tpu_overlap_compute_collective_tc",
        "true",
        "collectives may share the tensor core's time",
        "library: CF_FOR_ALL_GATHER",
    ),
    of(
        on_tpus,
        "xla_enable_async_all_gather",
        "true",
        "gathers are started early and waited for late",
        "library: CF_FOR_ALL_GATHER",
    ),
    of(
        hungry,
        "xla_tpu_scoped_vmem_limit_kib",
        vmem,
        "room in on-chip memory for larger product tiles, as MaxText sets it on this chip for "
        "dense models and for experts",
        "library: DENSE_VMEM_LIMIT_FLAG, MOE_VMEM_LIMIT_FLAG",
    ),
    of(
        slices,
        "xla_tpu_enable_data_parallel_all_reduce_opt",
        "true",
        "sums between data-parallel ranks over the network are pipelined",
        "library: DATA_PARALLEL_OVERLAP",
    ),
    of(
        slices,
        "xla_tpu_data_parallel_opt_different_sized_ops",
        "true",
        "over several iterations, whatever their sizes",
        "library: DATA_PARALLEL_OVERLAP",
    ),
    of(
        dense_hungry,
        "xla_tpu_use_minor_sharding_for_major_trivial_input",
        "true",
        "a layout of sums and their scatters that needs no copy",
        "library: LAYOUT_FOR_ALL_REDUCE_SCATTER",
    ),
    of(
        dense_hungry,
        "xla_tpu_relayout_group_size_threshold_for_reduce_scatter",
        "1",
        "the same for groups of any size",
        "library: LAYOUT_FOR_ALL_REDUCE_SCATTER",
    ),
    of(
        dense_hungry,
        "xla_tpu_assign_all_reduce_scatter_layout",
        "true",
        "the same for sums that are scattered",
        "library: LAYOUT_FOR_ALL_REDUCE_SCATTER",
    ),
    of(
        sparse_sums,
        f"{FUSION}_fuse_all_reduce",
        "false",
        "sums of gradients are the sparse cores': one of both takes them",
        SPARSE,
    ),
    of(
        sparse_sums,
        "xla_tpu_enable_sparse_core_collective_offload_all_reduce",
        "true",
        "sums of gradients run on the sparse cores, beside the products",
        SPARSE,
    ),
    of(
        sparse_sums,
        "xla_tpu_enable_all_reduce_offload_tracing",
        "true",
        "they are seen in a profile",
        SPARSE,
    ),
    of(
        sparse_sums,
        "xla_tpu_use_tc_device_shape_on_sc",
        "true",
        "sparse cores read the layout of the tensor cores",
        SPARSE,
    ),
    of(
        sparse_sums,
        "xla_sc_enable_instruction_fusion",
        "false",
        "sums on the sparse cores stay apart",
        SPARSE,
    ),
    of(sparse_sums, "xla_sc_disjoint_spmem", "false", "they share its memory", SPARSE),
    of(
        sparse_sums,
        "xla_sc_disable_megacore_partitioning",
        "true",
        "a sum is not split over two cores",
        SPARSE,
    ),
    of(
        on_host,
        "xla_tpu_enable_all_experimental_scheduler_features",
        "true",
        "transfers to and from the host are scheduled beside compute",
        "library: HOST_OFFLOAD_FLAGS",
    ),
    of(
        on_host,
        "xla_tpu_enable_scheduler_memory_pressure_tracking",
        "true",
        "as many as memory allows",
        "library: HOST_OFFLOAD_FLAGS",
    ),
    of(
        on_host,
        "xla_tpu_host_transfer_overlap_limit",
        "24",
        "transfers with the host at a time",
        "library: HOST_OFFLOAD_FLAGS",
    ),
    of(
        on_host,
        "xla_tpu_aggressive_opt_barrier_removal",
        "ENABLED",
        "compute does not wait for transfers that it does not need",
        "library: HOST_OFFLOAD_FLAGS",
    ),
    of(
        on_host,
        "xla_lhs_prioritize_async_depth_over_stall",
        "ENABLED",
        "transfers that are long under way go first",
        "library: HOST_OFFLOAD_FLAGS",
    ),
    of(
        on_host,
        "xla_tpu_enable_ag_backward_pipelining",
        "true",
        "gathers of the backward pass run beside the layer before",
        "library: HOST_OFFLOAD_FLAGS",
    ),
    of(
        on_host,
        "xla_should_allow_loop_variant_parameter_in_chain",
        "ENABLED",
        "gathers may depend on the layer of the loop",
        "library: HOST_OFFLOAD_FLAGS",
    ),
    of(
        on_host,
        "xla_should_add_loop_invariant_op_in_chain",
        "ENABLED",
        "and on what all layers share",
        "library: HOST_OFFLOAD_FLAGS",
    ),
    of(
        on_host,
        "xla_tpu_scheduler_percent_shared_memory_limit",
        "100",
        "the schedule may use all of the memory",
        "library: HOST_OFFLOAD_FLAGS",
    ),
    of(
        on_host,
        "xla_max_concurrent_host_send_recv",
        "100",
        "sends and receives with the host at a time",
        "library: HOST_OFFLOAD_FLAGS",
    ),
    of(
        on_host,
        "xla_latency_hiding_scheduler_rerun",
        "2",
        "a schedule that does not fit is made again with less overlap",
        "library: HOST_OFFLOAD_FLAGS",
    ),
    of(
        on_gpus,
        "xla_gpu_enable_latency_hiding_scheduler",
        "true",
        "collectives are scheduled beside compute",
        "a3",
    ),
    of(
        on_gpus,
        "xla_gpu_enable_highest_priority_async_stream",
        "true",
        "collectives go before the products they hide under",
        "a3",
    ),
    of(on_gpus, "xla_gpu_enable_triton_gemm", "false", "products are cuBLAS's", "a3"),
    of(
        on_gpus,
        "xla_gpu_enable_command_buffer",
        "''",
        "no captured graphs: they hold up collectives that are pipelined",
        "a3",
    ),
    of(
        on_gpus,
        "xla_gpu_all_reduce_combine_threshold_bytes",
        str(2**30),
        "sums of gradients go together, up to 1 GB",
        "a3",
    ),
    of(
        on_gpus,
        "xla_gpu_all_gather_combine_threshold_bytes",
        str(2**27),
        "gathers of weights go in pieces of 128 MB: large enough for the network, small enough to "
        "start early",
        "a3",
    ),
    of(
        on_gpus,
        "xla_gpu_reduce_scatter_combine_threshold_bytes",
        str(2**27),
        "reduce-scatters likewise",
        "a3",
    ),
    of(
        on_gpus,
        "xla_gpu_enable_pipelined_all_gather",
        "true",
        "gathers of a layer run beside the layer before",
        "a3 (xla_gpu_pipeline_all_gather there, which jaxlib 0.10 and later do not know)",
    ),
    of(
        on_gpus,
        "xla_gpu_enable_pipelined_reduce_scatter",
        "true",
        "scatters of a layer run beside the layer after",
        "a3 (xla_gpu_pipeline_reduce_scatter there)",
    ),
    of(
        on_gpus,
        "xla_gpu_enable_pipelined_all_reduce",
        "true",
        "sums of a layer run beside the layer after",
        "a3 (xla_gpu_pipeline_all_reduce there)",
    ),
    of(
        on_gpus,
        "xla_gpu_enable_while_loop_double_buffering",
        "true",
        "the loop over layers keeps two layers in flight, so that pipelined collectives need no "
        "copies",
        "a3",
    ),
    of(
        on_gpus,
        "xla_gpu_enable_all_gather_combine_by_dim",
        "false",
        "gathers of any dimension go together",
        "a3",
    ),
    of(
        on_gpus,
        "xla_gpu_enable_reduce_scatter_combine_by_dim",
        "false",
        "scatters of any dimension go together",
        "a3",
    ),
    of(
        on_gpus,
        "xla_disable_hlo_passes",
        "rematerialization",
        "what is computed again is MaxText's choice (remat_policy), not the compiler's",
        "a3",
    ),
)
