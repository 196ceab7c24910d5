"""Every setting beside the plan, held to the list of its maker that it was read in: recipes of
Megatron-Bridge, MaxText's flags, AMD's and the networks' variables."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from corpus import DENSE, MOE, spec
from scantling import Design, assess
from scantling_kits import framework, kits
from scantling_kits.base_variables import BASE_VARIABLES
from scantling_kits.env import environment
from scantling_kits.expressible import express
from scantling_kits.frameworks.maxtext_options import OPTIONS as MAXTEXT_OPTIONS
from scantling_kits.frameworks.megatron_settings import OPTIONS
from scantling_kits.variables import VARIABLES
from scantling_kits.xla_flags import XLA_FLAGS

RACK = dict(devices_per_node=4, scale_up_domain=64)


def files(data, to):
    return kits(assess(Design.from_data(data | {"name": "x"})), to, "slurm")


def variables(data, to="megatron-bridge"):
    return {v["name"]: v["value"] for v in json.loads(files(data, to)["plan.json"])["environment"]}


def overrides(data):
    lines = files(data, "megatron-bridge")["bridge.overrides"].splitlines()
    return dict(line.split("=", 1) for line in lines)


def flags(text):
    """Flags of a command line by name."""
    pairs = (word.lstrip("-").partition("=") for word in text.split())
    return {name: value for name, _, value in pairs}


def recipe(model, chip, devices, plan, job=None, release="26.08"):
    """A pinned design of a published recipe."""
    return {
        "scantling": 1,
        "model": model,
        "cluster": {"accelerator": chip, "devices": devices} | (RACK if "nvl72" in chip else {}),
        "job": dict(seq_len=4096, global_batch=4096, effort="tuned") | (job or {}),
        "stack": {"id": "megatron-core", "release": release},
        "plan": dict(tp=1, pp=1, micro_batch=1, sharding="zero1", offload="none") | plan,
    }


def test_every_setting_is_quoted_by_a_test():
    """Its name stands in a test of this folder."""
    text = "\n".join(file.read_text() for file in Path(__file__).parent.glob("test_*.py"))
    rows = (*OPTIONS, *VARIABLES, *BASE_VARIABLES, *XLA_FLAGS, *MAXTEXT_OPTIONS)
    names = {row.name.rpartition(".")[2] for row in rows}
    assert sorted(n for n in names if n not in text and n.replace("_", "-") not in text) == []


# benchmarks/xla_flags_library.py of MaxText, list by list
CF_FOR_ALL_GATHER = """
--xla_tpu_enable_async_collective_fusion=true
--xla_tpu_enable_async_collective_fusion_fuse_all_gather=true
--xla_tpu_enable_async_collective_fusion_multiple_steps=true
--xla_tpu_overlap_compute_collective_tc=true
--xla_enable_async_all_gather=true
"""
DATA_PARALLEL_OVERLAP = """
--xla_tpu_enable_data_parallel_all_reduce_opt=true
--xla_tpu_data_parallel_opt_different_sized_ops=true
"""
LAYOUT_FOR_ALL_REDUCE_SCATTER = """
--xla_tpu_use_minor_sharding_for_major_trivial_input=true
--xla_tpu_relayout_group_size_threshold_for_reduce_scatter=1
--xla_tpu_assign_all_reduce_scatter_layout=true
"""
DENSE_VMEM_LIMIT_FLAG = "--xla_tpu_scoped_vmem_limit_kib=98304"
MOE_VMEM_LIMIT_FLAG = "--xla_tpu_scoped_vmem_limit_kib=81920"
ENABLE_SPARSECORE_OFFLOADING_FOR_ALL_REDUCE = """
--xla_tpu_enable_async_collective_fusion_fuse_all_reduce=false
--xla_tpu_enable_sparse_core_collective_offload_all_reduce=true
--xla_tpu_enable_all_reduce_offload_tracing=true
--xla_tpu_use_tc_device_shape_on_sc=true
--xla_sc_enable_instruction_fusion=false
--xla_sc_disjoint_spmem=false
--xla_sc_disable_megacore_partitioning=true
"""
HOST_OFFLOAD_FLAGS = """
--xla_tpu_enable_all_experimental_scheduler_features=true
--xla_tpu_enable_scheduler_memory_pressure_tracking=true
--xla_tpu_host_transfer_overlap_limit=24
--xla_tpu_aggressive_opt_barrier_removal=ENABLED
--xla_lhs_prioritize_async_depth_over_stall=ENABLED
--xla_tpu_enable_ag_backward_pipelining=true
--xla_should_allow_loop_variant_parameter_in_chain=ENABLED
--xla_should_add_loop_invariant_op_in_chain=ENABLED
--xla_max_concurrent_host_send_recv=100
--xla_tpu_scheduler_percent_shared_memory_limit=100
--xla_latency_hiding_scheduler_rerun=2
"""
# configs/gpu/a3/llama_3.1_405b/128vm.sh; its three xla_gpu_pipeline_... flags are
# xla_gpu_enable_pipelined_... of jaxlib 0.10 and later
A3 = """
--xla_gpu_enable_latency_hiding_scheduler=true
--xla_gpu_enable_triton_gemm=false
--xla_gpu_enable_command_buffer=''
--xla_gpu_enable_highest_priority_async_stream=true
--xla_gpu_all_reduce_combine_threshold_bytes=1073741824
--xla_gpu_all_gather_combine_threshold_bytes=134217728
--xla_gpu_reduce_scatter_combine_threshold_bytes=134217728
--xla_gpu_enable_pipelined_all_gather=true
--xla_gpu_enable_pipelined_reduce_scatter=true
--xla_gpu_enable_pipelined_all_reduce=true
--xla_gpu_enable_while_loop_double_buffering=true
--xla_gpu_enable_all_gather_combine_by_dim=false
--xla_gpu_enable_reduce_scatter_combine_by_dim=false
--xla_disable_hlo_passes=rematerialization
"""
V6E = CF_FOR_ALL_GATHER + DATA_PARALLEL_OVERLAP
DENSE_V6E = V6E + LAYOUT_FOR_ALL_REDUCE_SCATTER + DENSE_VMEM_LIMIT_FLAG
HOSTS = dict(activation_offload={"modules": ["attn_norm"]})


@pytest.mark.parametrize(
    ("chip", "model", "plan", "listed"),
    [
        ("tpu-v6e", "llama-3.1-8b", {}, DENSE_V6E),
        (
            "tpu-v6e",
            "llama-3.1-8b",
            dict(sharding="hsdp", shard_group=64),
            DENSE_V6E + ENABLE_SPARSECORE_OFFLOADING_FOR_ALL_REDUCE,
        ),
        ("tpu-v6e", "llama-3.1-8b", HOSTS, DENSE_V6E + HOST_OFFLOAD_FLAGS),
        ("tpu-v6e", "mixtral-8x7b", dict(ep=1, etp=1), V6E + MOE_VMEM_LIMIT_FLAG),
        ("tpu-v5p", "llama-3.1-8b", {}, V6E),
        ("h100-sxm", "llama-3.1-8b", {}, A3),
    ],
)
def test_flags_of_xla_are_maxtext_s_own(chip, model, plan, listed):
    """benchmarks/xla_flags_library.py and maxtext_trillium_model_configs.py; configs/gpu/a3."""
    whole = dict(tp=1, cp=1, pp=1, sharding="zero3", recompute="full", micro_batch=1)
    data = {
        "scantling": 1,
        "model": model,
        "cluster": {"accelerator": chip, "devices": 256},
        "job": dict(seq_len=8192, global_batch=256),
        "plan": whole | plan,
    }
    found = variables(data, "maxtext")
    line = found["LIBTPU_INIT_ARGS" if chip.startswith("tpu") else "XLA_FLAGS"]
    assert flags(line) == flags(listed)


def test_maxtext_on_gpus_has_its_scripts_variables():
    """tools/orchestration/gpu_multi_process_run.sh: CUDA_DEVICE_MAX_CONNECTIONS=1; tests of A3:
    NVTE_FUSED_ATTN=1; JAX's page on memory of GPUs: XLA_PYTHON_CLIENT_MEM_FRACTION, three quarters
    unless told otherwise."""
    found = variables(spec(plan=dict(tp=1, pp=1, sharding="zero3")), "maxtext")
    assert found["NVTE_FUSED_ATTN"] == found["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"
    assert 0.75 < float(found["XLA_PYTHON_CLIENT_MEM_FRACTION"]) < 1


def test_tiles_of_splash_attention_are_those_of_llama_on_v6e():
    """maxtext_trillium_model_configs.py, llama3_1-8b-8192: all eight of 2,048."""
    data = {
        "scantling": 1,
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": "tpu-v6e", "devices": 256},
        "job": dict(seq_len=8192, global_batch=256),
        "plan": dict(tp=1, cp=1, pp=1, sharding="zero3", recompute="full", micro_batch=1),
    }
    keys = yaml.safe_load(files(data, "maxtext")["maxtext.yml"])
    names = (
        *("sa_block_q", "sa_block_kv", "sa_block_kv_compute", "sa_block_q_dkv"),
        *("sa_block_kv_dkv", "sa_block_kv_dkv_compute", "sa_block_q_dq", "sa_block_kv_dq"),
    )
    assert {name: keys[name] for name in names} == dict.fromkeys(names, 2048)


def test_the_environment_of_a_dense_model_in_stages_is_its_recipe_s():
    """llama3_70b_pretrain_64gpu_h100_bf16_config of megatron-bridge 0.6.2: env_vars; the allocator
    and its records of streams belong to captured graphs there, on H100 as the stack has them."""
    job = dict(precision="bf16", seq_len=8192, global_batch=256)
    plan = dict(tp=4, pp=4, cp=2, vpp=5, cp_type="ring", tp_overlap="userbuffer")
    found = variables(recipe("llama-3-70b", "h100-sxm", 64, plan, job))
    listed = dict(
        TORCH_NCCL_HIGH_PRIORITY="1",
        CUDA_DEVICE_MAX_CONNECTIONS="1",
        PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True",
        TORCH_NCCL_AVOID_RECORD_STREAMS="1",
        NCCL_NVLS_ENABLE="0",
        NVTE_BWD_LAYERNORM_SM_MARGIN="20",
        NVTE_FWD_LAYERNORM_SM_MARGIN="20",
        NCCL_P2P_NET_CHUNKSIZE="2097152",
    )
    assert {name: found.get(name) for name in listed} == listed


def test_b300_and_nvfp4_have_their_recipes_variables():
    """deepseek_v3_pretrain_256gpu_b300_..._config: NCCL_IGNORE_CPU_AFFINITY=1 in all;
    ...nvfp4_config: NVTE_USE_FAST_MATH=1."""
    plan = dict(pp=8, vpp=2, ep=8, etp=1, recompute="selective", recompute_modules=["mla_up_proj"])
    job = dict(precision="nvfp4", routing="forced")
    found = variables(recipe("deepseek-v3", "b300-sxm", 256, plan, job))
    assert found["NCCL_IGNORE_CPU_AFFINITY"] == found["NVTE_USE_FAST_MATH"] == "1"


def test_amd_s_list_is_primus_s():
    """Primus, runner/helpers/envs/base_env.sh, and AMD's MI300X tuning guide (channels)."""
    plan = dict(tp=8, pp=1, sharding="zero1")
    data = spec(
        model=DENSE, cluster=dict(accelerator="mi300x"), plan=plan, job=dict(precision="fp8")
    )
    found = variables(data, "megatron")
    listed = dict(
        RCCL_MSCCL_ENABLE="0",
        NCCL_PXN_DISABLE="1",
        NCCL_P2P_NET_CHUNKSIZE="524288",
        NVTE_CK_USES_BWD_V3="0",
        NVTE_USE_CAST_TRANSPOSE_TRITON="1",
        NCCL_MIN_NCHANNELS="112",
    )
    assert {name: found.get(name) for name in listed} == listed


def test_megatron_fsdp_starts_shard_by_shard_as_its_recipes_do():
    """deepseek_v3_pretrain_64gpu_gb300_fp8mx_fsdp_config and gpt_oss_20b_..._b300: meta-device
    start, two buffers that stay, no transposed copies, the loss by token; Nemotron-3 Ultra:
    gradients sent in bf16. Saves go on beside the steps."""
    data = spec(
        model=MOE,
        cluster=dict(accelerator="gb300-nvl72") | RACK,
        plan=dict(tp=1, pp=1, ep=8, etp=1, sharding="zero3", gradients="bf16"),
        job=dict(precision="mxfp8"),
    )
    written = overrides(data)
    assert written["model.init_model_with_meta_device"] == "true"
    assert written["ddp.fsdp_double_buffer"] == "true"
    assert written["model.calculate_per_token_loss"] == "true"
    assert written["ddp.keep_fp8_transpose_cache"] == "false"
    assert written["checkpoint.async_save"] == "true"
    text = files(data, "megatron")["megatron.args"]
    for flag in (
        "--init-model-with-meta-device",
        "--fsdp-double-buffer",
        "--calculate-per-token-loss",
        "--megatron-fsdp-grad-comm-dtype bf16",
        "--async-save",
    ):
        assert f"{flag}\n" in text


def test_deepseek_s_experts_are_those_of_its_recipe():
    """deepseek_v3_pretrain_256gpu_gb200_fp8mx_config of megatron-bridge 0.6.2."""
    plan = dict(pp=4, vpp=4, ep=64, etp=1, recompute="selective", recompute_modules=["mla_up_proj"])
    job = dict(precision="mxfp8", routing="forced")
    written = overrides(recipe("deepseek-v3", "gb200-nvl72", 256, plan, job))
    listed = {
        "model.cross_entropy_loss_fusion": "true",
        "model.cross_entropy_fusion_impl": "'te'",
        "model.moe_router_fusion": "true",
        "model.moe_hybridep_num_sms": "32",
        "model.moe_hybridep_num_sms_preprocessing": "32",
        "model.high_priority_a2a_comm_stream": "true",
        "model.use_transformer_engine_op_fuser": "true",
        "model.moe_mlp_glu_interleave_size": "32",
    }
    assert {name: written.get(name) for name in listed} == listed


def test_shared_experts_run_beside_a_plain_exchange():
    """deepseek_v3_pretrain_256gpu_b200_bf16_config: alltoall and moe_shared_expert_overlap."""
    plan = dict(pp=16, ep=8, etp=1, moe_dispatcher="alltoall", moe_overlap=False, recompute="full")
    written = overrides(recipe("deepseek-v3", "b200-sxm", 256, plan, dict(precision="bf16")))
    assert written["model.moe_shared_expert_overlap"] == "true"


def test_nemotron_s_hybrids_are_those_of_their_recipes():
    """nemotron_3_super_pretrain_64gpu_b200_fp8mx_config: squared ReLU fused with the router's
    weight, the module of further tokens in bf16."""
    plan = dict(ep=64, etp=1, recompute="none", moe_dispatcher="hybridep")
    job = dict(precision="mxfp8", seq_len=8192, global_batch=512)
    data = recipe("nemotron-3-super-120b-a12b", "gb300-nvl72", 64, plan, job)
    written = overrides(data)
    assert written["model.use_fused_weighted_squared_relu"] == "true"
    assert written["model.keep_mtp_spec_in_bf16"] == "true"


def test_weights_are_gathered_in_4_bit_where_all_layers_are():
    """mixed_precision.py of Megatron-Bridge, bf16_with_nvfp4_mixed: fp4_param_gather."""
    job = dict(precision="nvfp4", seq_len=8192, global_batch=256)
    data = recipe("llama-3-70b", "b200-sxm", 64, dict(tp=2, pp=4), job)
    assert "--fp4-param-gather\n" in files(data, "megatron")["megatron.args"]


def test_a_model_built_otherwise_keeps_what_a_design_says_beside_the_axes():
    """gpt_oss_120b_pretrain_64gpu_gb300_bf16_config of megatron-bridge 0.6.2 captures attn,
    moe_router and moe_preprocess; its biases have no flag, so that another model is counted."""
    modules = ["attn", "moe_router", "moe_preprocess"]
    plan = dict(ep=64, etp=1, recompute="none", moe_dispatcher="hybridep", graph_modules=modules)
    data = recipe("gpt-oss-120b", "gb300-nvl72", 64, plan, dict(precision="bf16"))
    written = overrides(data)
    assert written["model.cuda_graph_modules"] == "[attn,moe_router,moe_preprocess]"
    kept = recipe("gpt-oss-120b", "gb300-nvl72", 64, plan | {"keep_16bit": {"last": 2}})
    kept["job"]["precision"] = "mxfp8"
    assert overrides(kept)["mixed_precision.num_layers_at_end_in_bf16"] == "2"


def test_norms_less_one_are_megatron_s_1p():
    """transformers, Qwen3NextRMSNorm: (1 + weight); Megatron-LM: --apply-layernorm-1p."""
    plan = dict(ep=8, etp=1)
    text = files(recipe("qwen3-next-80b-a3b", "gb200-nvl72", 64, plan), "megatron")["megatron.args"]
    assert "--apply-layernorm-1p\n" in text


@pytest.mark.parametrize(
    ("network", "listed"),
    [
        ("eth-100", dict(NCCL_IB_DISABLE="1", NCCL_SOCKET_NTHREADS="4", NCCL_NSOCKS_PERTHREAD="4")),
        (
            "slingshot11",
            dict(
                FI_CXI_ATS="0",
                FI_CXI_DISABLE_HOST_REGISTER="1",
                FI_CXI_DEFAULT_CQ_SIZE="131072",
                FI_MR_CACHE_MONITOR="userfaultfd",
                NCCL_CROSS_NIC="1",
            ),
        ),
        (
            "ib-ndr",
            dict(
                TORCH_FR_BUFFER_SIZE="20000",
                TORCH_NCCL_DUMP_ON_TIMEOUT="1",
                TORCH_FR_DUMP_TEMP_FILE="$RUN_DIR/flight-recorder-",
                WANDB_RESUME="allow",
            ),
        ),
    ],
)
def test_networks_have_the_variables_that_their_sites_and_guides_set(network, listed):
    """NCCL's guide: sockets' threads (their product at most 64); Slingshot: the user guides of
    Isambard-AI and of CSCS's Alps; torchtitan's distributed/utils.py: the flight recorder's names;
    Weights & Biases: resuming runs."""
    launch = express(
        assess(Design.from_data(spec(model=DENSE) | {"name": "x"})), 0, framework("fsdp"), "slurm"
    )
    there = replace(launch, cluster=replace(launch.cluster, scale_out=network))
    found = {v.name: v.value for v in environment(there)}
    assert {name: found.get(name) for name in listed} == listed
    assert found["WANDB_RUN_ID"]


def test_nccl_is_told_of_links_over_nodes_and_of_switches_that_reduce():
    """NCCL's guide: NCCL_MNNVL_ENABLE, 1 asks for NVLink over nodes; NCCL_COLLNET_ENABLE, 1 for the
    SHARP plugin."""
    sharp = spec(cluster=dict(in_network_reduction=True), plan=dict(tp=4, pp=1))
    assert variables(sharp, "megatron")["NCCL_COLLNET_ENABLE"] == "1"
    assert "NCCL_COLLNET_ENABLE" not in variables(spec(plan=dict(tp=4, pp=1)), "megatron")
    data = spec(cluster=dict(accelerator="gb200-nvl72") | RACK, plan=dict(tp=4, pp=1))
    assert variables(data, "megatron")["NCCL_MNNVL_ENABLE"] == "1"
