"""Settings beside the plan, held to what the makers' own recipes and files say."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import renamed
import yaml
from corpus import DENSE, MLA, spec
from scantling import Design, assess
from scantling_kits import FRAMEWORKS, framework, kits
from scantling_kits.base_variables import BASE_VARIABLES
from scantling_kits.expressible import express
from scantling_kits.frameworks import megatron_core as core
from scantling_kits.frameworks.maxtext_options import OPTIONS as MAXTEXT_OPTIONS, tile
from scantling_kits.frameworks.megatron_settings import OPTIONS, flag
from scantling_kits.launched import launch_plan
from scantling_kits.misfits import misfits
from scantling_kits.pages import kit
from scantling_kits.recipe_settings import Chosen, Setting, always, chosen, release, there
from scantling_kits.variables import VARIABLES
from scantling_kits.xla_flags import XLA_FLAGS

RACK = dict(devices=256, devices_per_node=4, scale_up_domain=64)


def launched(data, to="megatron-bridge"):
    return launch_plan(assess(Design.from_data(data | {"name": "x"})), framework(to), "slurm", 0)


def published(model, chip, release, job=None, **plan):
    """A design of a published recipe of Megatron-Bridge."""
    racks = "nvl72" in chip
    return {
        "scantling": 1,
        "model": model,
        "cluster": {"accelerator": chip, "devices": 256} | (RACK if racks else {}),
        "job": dict(seq_len=4096, global_batch=4096, effort="tuned", routing="forced")
        | (job or {}),
        "stack": {"id": "megatron-core", "release": release},
        "plan": dict(tp=1, cp=1, micro_batch=1, sharding="zero1", offload="none", etp=1) | plan,
    }


def deepseek(chip, **plan):
    full = dict(pp=4, vpp=4, ep=64, recompute="selective", recompute_modules=["mla_up_proj"])
    return published("deepseek-v3", chip, "26.08", dict(precision="mxfp8"), **full | plan)


def overrides(data):
    files = kits(assess(Design.from_data(data | {"name": "x"})), "megatron-bridge", "slurm")
    lines = files["bridge.overrides"].splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_every_setting_has_a_reason_a_source_and_a_release_that_has_it():
    rows = (*OPTIONS, *VARIABLES, *BASE_VARIABLES, *XLA_FLAGS, *MAXTEXT_OPTIONS)
    for row in rows:
        assert row.why and row.source
        assert there(row, FRAMEWORKS[row.framework].version), row.name
    names = [(row.framework, row.name, row.when, str(row.value)) for row in rows]
    assert len({*names}) == len(names)


def test_a_release_before_a_setting_does_not_have_it():
    row = Setting(
        framework="megatron",
        since="0.14.0",
        until="0.19.0",
        when=always,
        name="model.x_y",
        value=True,
        why="w",
        source="s",
    )
    assert [there(row, v) for v in ("0.13.9", "0.14.0", "0.18.2", "0.19.0")] == [
        False,
        True,
        True,
        False,
    ]
    assert release("0.9.1") < release("0.10.0")
    launch = launched(spec(model=DENSE), to="megatron")
    old = replace(launch, framework=replace(launch.framework, version="0.18.0"))
    assert not chosen([row], launch)
    assert [flag(option) for option in chosen([row], old)] == ["--x-y"]
    assert flag(Chosen("a.scale", 2.5, "", "")) == "--scale 2.5"


@pytest.mark.parametrize(
    ("chip", "low"), [("gb200-nvl72", False), ("b200-sxm", False), ("gb300-nvl72", True)]
)
def test_attention_is_in_8_bit_where_deepseek_s_recipes_have_it_so(chip, low):
    """perf_recipes/deepseek at 0.6.2: fp8_dot_product_attention is True on B300 and GB300 alone."""
    plan = {} if "nvl72" in chip else dict(pp=8, vpp=2, ep=32)
    written = overrides(deepseek(chip, **plan))
    assert ("mixed_precision.fp8_dot_product_attention" in written) == low


def test_deepseek_v3_routes_as_it_was_trained():
    """config.json of DeepSeek-V3: routed_scaling_factor 2.5, n_group 8, topk_group 4."""
    written = overrides(deepseek("gb200-nvl72"))
    assert float(written["model.moe_router_topk_scaling_factor"]) == 2.5
    assert written["model.moe_router_num_groups"] == "8"
    assert written["model.moe_router_group_topk"] == "4"


def test_gates_and_norms_are_those_that_the_model_was_trained_with():
    """transformers: GptOssExperts clamps both halves to swiglu_limit 7 and takes (up + 1) times a
    quick GELU; Qwen3NextRMSNorm multiplies by 1 + weight. Megatron-Bridge's GPTOSSProvider and the
    scripts of slime for Megatron-LM (--quick-geglu --glu-linear-offset 1.0
    --activation-func-clamp-value 7.0) say the same."""
    oss = published("gpt-oss-120b", "gb200-nvl72", "26.08")
    written = overrides(oss)
    assert float(written["model.activation_func_clamp_value"]) == 7
    assert float(written["model.glu_linear_offset"]) == 1
    files = kits(assess(Design.from_data(oss | {"name": "x"})), "megatron", "slurm")
    args = files["megatron.args"].split()
    assert "--quick-geglu" in args and "--swiglu" not in args
    assert args[args.index("--activation-func-clamp-value") + 1] == "7"
    assert args[args.index("--glu-linear-offset") + 1] == "1"
    qwen = overrides(published("qwen3-next-80b-a3b", "gb200-nvl72", "26.08"))
    assert qwen["model.layernorm_zero_centered_gamma"] == "true"
    assert "model.glu_linear_offset" not in qwen
    plain = overrides(deepseek("gb200-nvl72"))
    assert not {"model.layernorm_zero_centered_gamma", "model.glu_linear_offset"} & plain.keys()


def test_latent_attention_turns_by_the_fused_kernel_and_is_not_stretched():
    """transformer_config.py: the fused kernel asks for YaRN, plain RoPE at a scale of 1."""
    written = overrides(deepseek("gb200-nvl72"))
    assert written["model.rope_type"] == "'yarn'"
    assert float(written["model.rotary_scaling_factor"]) == 1
    assert written["model.apply_rope_fusion"] == "true"


@pytest.mark.parametrize(
    ("chip", "named", "found"),
    [
        ("h100-sxm", "hybridep", "hybridep"),
        ("h100-sxm", "deepep", "deepep"),
        ("gb200-nvl72", "hybridep", "hybridep"),
        ("gb200-nvl72", "deepep", "hybridep"),
    ],
)
def test_the_dispatcher_is_the_one_that_the_design_names_or_its_kit_says_otherwise(
    chip, named, found
):
    """flex_dispatcher_backend.py of Megatron-Bridge: DeepEP on Ampere, Hopper, B200 and B300;
    HybridEP on those and on racks."""
    data = spec(
        model=MLA,
        cluster=dict(accelerator=chip) | (RACK | dict(devices=64) if "nvl" in chip else {}),
        plan=dict(tp=1, pp=1, ep=8, etp=1, sharding="zero1", moe_dispatcher=named),
    )
    files = kits(assess(Design.from_data(data | {"name": "x"})), "megatron", "slurm")
    assert f"--moe-flex-dispatcher-backend {found}\n" in files["megatron.args"]
    gaps = {gap["field"]: gap for gap in json.loads(files["plan.json"])["not_expressed"]}
    assert ("moe_dispatcher" in gaps) == (named != found)
    if found == "hybridep":
        on_rack = "nvl" in chip
        assert f"USE_MNNVL:={int(on_rack)}}}" in files["env.sh"]
        assert f"NVLINK_DOMAIN_SIZE:={72 if on_rack else 8}}}" in files["env.sh"]


def nemotron(precision):
    return published(
        "nemotron-3-super-120b-a12b",
        "gb300-nvl72",
        "26.08",
        dict(precision=precision, seq_len=8192, global_batch=512),
        pp=1,
        ep=64,
        recompute="none",
        cuda_graphs="layer",
        moe_dispatcher="hybridep",
    ) | {"cluster": {"accelerator": "gb300-nvl72"} | RACK | {"devices": 64}}


def test_hybrids_capture_what_nemotron_s_recipes_capture():
    """perf_recipes/nemotronh: attn, mamba, moe_router, moe_preprocess, under TE's random state."""
    written = overrides(nemotron("mxfp8"))
    assert written["model.cuda_graph_modules"] == "[attn,mamba,moe_router,moe_preprocess]"
    assert written["model.use_te_rng_tracker"] == "true"
    assert written["model.moe_router_padding_for_quantization"] == "true"


def test_nvfp4_keeps_the_layers_that_the_maker_keeps():
    """mixed_precision.py of Megatron-Bridge 0.6.2: Nemotron-3 Super keeps the last 14 of its 88
    blocks in bf16; te_quant.cfg: attention's products, latent projections and further tokens."""
    data = nemotron("nvfp4")
    written = overrides(data)
    assert written["mixed_precision.first_last_layers_bf16"] == "true"
    assert written["mixed_precision.num_layers_at_start_in_bf16"] == "0"
    assert written["mixed_precision.num_layers_at_end_in_bf16"] == "14"
    files = kits(assess(Design.from_data(data | {"name": "x"})), "megatron", "slurm")
    assert "--num-layers-at-end-in-bf16 14" in files["megatron.args"]
    formats = yaml.safe_load(files["quantization.yaml"])
    named = {row["pattern"]: row["config"] for row in formats["matchers"].values()}
    assert named["*.linear_qkv"] == named["mtp.*"] == "sixteen"
    assert named["*mixer.out_proj"] == "eight"
    super_ = launched(data)
    ultra = replace(super_, model=replace(super_.model, layers=108))
    assert core.kept_layers(ultra) == (0, 16)  # of 108


def test_weights_are_gathered_as_the_presets_have_it():
    """mixed_precision.py: mxfp8 gathers in 8 bit into the gradients' buffer, blockwise in 16."""
    mx = launched(deepseek("gb200-nvl72"), "megatron")
    assert core.gathers_low(mx)
    names = [option.name for option in chosen(OPTIONS, mx)]
    assert "ddp.reuse_grad_buf_for_mxfp8_param_ag" in names
    block = replace(mx, phase=replace(mx.phase, precision="fp8-block"))
    assert not core.gathers_low(block)


@pytest.mark.parametrize("optimizer", ["muon", "adamw-bf16", "sgd"])
def test_bridge_has_the_optimizers_that_its_recipes_have(optimizer):
    """Kimi K2's recipe is distributed Muon, DeepSeek-V3's has moments in bf16."""
    data = spec(model=MLA, plan=dict(tp=1, pp=1, ep=8, etp=1, sharding="zero1"))
    data["job"] = data["job"] | {"optimizer": optimizer}
    files = kits(assess(Design.from_data(data | {"name": "x"})), "megatron-bridge", "slurm")
    plan = json.loads(files["plan.json"])
    assert plan["optimizer"] == optimizer
    assert "optimizer" not in {gap["field"] for gap in plan["not_expressed"]}
    word = {"muon": "'dist_muon'", "sgd": "'sgd'"}.get(optimizer)
    assert word is None or f"optimizer.optimizer={word}\n" in files["bridge.overrides"]


@pytest.mark.parametrize("to", ["megatron", "megatron-bridge", "torchtitan"])
def test_no_collective_is_given_up_before_a_link_has_tried_again(to):
    """NCCL: 4.096 us x 2^22 a try, seven tries; makers' recipes set 10 to 60 minutes."""
    launch = launched(spec(model=DENSE), to)
    assert launch.hang_s >= max(300, 1.5 * 7 * 4.096e-6 * 2**22)
    assert launch.first_hang_s >= 2 * launch.hang_s and launch.first_hang_s % 60 == 0
    slow = replace(launch, step_s=400.0)
    assert slow.hang_s >= 800 and slow.first_hang_s >= 1600


def test_maxtext_counts_all_hosts_of_gpus_as_one_slice():
    """max_utils.get_num_slices counts slice indices, of which XLA gives each host of GPUs one."""
    data = spec(model=DENSE, plan=dict(tp=1, pp=1, sharding="zero3"))
    files = kits(assess(Design.from_data(data | {"name": "x"})), "maxtext", "slurm")
    assert yaml.safe_load(files["maxtext.yml"])["num_slices"] == 1


@pytest.mark.parametrize(
    ("precision", "chip", "converter"),
    [
        ("fp8-row", "h100-sxm", "Float8LinearConverter"),
        ("fp8", "h100-sxm", "Float8LinearConverter"),
        ("mxfp8", "b200-sxm", "MXFP8LinearConverter"),
        ("nvfp4", "b200-sxm", "NVFP4LinearConverter"),
    ],
)
def test_torchtitan_has_its_converters(precision, chip, converter):
    data = spec(
        model=DENSE,
        cluster=dict(accelerator=chip),
        plan=dict(tp=1, pp=1, sharding="zero3"),
        job=dict(precision=precision),
    )
    files = kits(assess(Design.from_data(data | {"name": "x"})), "torchtitan", "slurm")
    assert f"{converter}.Config(" in files["torchtitan_config.py"]
    gaps = {gap["field"]: gap for gap in json.loads(files["plan.json"])["not_expressed"]}
    assert ("precision" in gaps) == (precision == "fp8")


def environment(data, to="megatron-bridge"):
    files = kits(assess(Design.from_data(data | {"name": "x"})), to, "slurm")
    return {v["name"]: v["value"] for v in json.loads(files["plan.json"])["environment"]}


@pytest.mark.parametrize(
    ("model", "chip", "precision", "degrees", "name"),
    [
        ("llama-3-70b", "h100-sxm", "bf16", (4, 4, 2), "bf16_h100_h8192_tp4_mbs1_seqlen8192"),
        ("llama-3-70b", "h100-sxm", "fp8-current", (4, 8, 1), "fp8_h100_h8192_tp4_mbs1_seqlen8192"),
        ("llama-3-70b", "b200-sxm", "mxfp8", (2, 4, 1), "fp8_b200_h8192_tp2_mbs1_seqlen8192"),
        (
            "llama-3.1-405b",
            "gb300-nvl72",
            "bf16",
            (2, 8, 1),
            "bf16_b200_h16384_tp4_cp2_mbs1_seqlen8192",
        ),
        (
            "llama-3.1-405b",
            "h100-sxm",
            "fp8-current",
            (8, 8, 2),
            "fp8_h100_h16384_tp8_cp2_mbs1_seqlen8192",
        ),
        ("llama-3-70b", "h100-sxm", "bf16", (8, 4, 1), ""),
    ],
)
def test_user_buffers_have_the_sizes_that_the_makers_name(model, chip, precision, degrees, name):
    """perf_recipes/llama of megatron-bridge 0.6.2: cfg.comm_overlap.tp_comm_overlap_cfg, by chip,
    number format and degrees (tp, pp, cp); none with eight ranks for a width of 8,192, where the
    kit says that Transformer Engine's own sizes hold."""
    tp, pp, cp = degrees
    job = dict(precision=precision, seq_len=8192, global_batch=256)
    data = published(model, chip, "26.08", job, tp=tp, pp=pp, cp=cp, tp_overlap="userbuffer")
    del data["job"]["routing"]
    files = kits(assess(Design.from_data(data | {"name": "x"})), "megatron-bridge", "slurm")
    written = dict(line.split("=", 1) for line in files["bridge.overrides"].splitlines())
    assert written["model.tp_comm_overlap"] == "true"
    found = written.get("model.tp_comm_overlap_cfg", "").strip("'")
    assert found == (f"userbuffers_{name}" if name else "")
    said = "none by name for a width of 8,192 with tp 8" in files["assumptions.md"]
    assert said == (not name)


def test_the_environment_is_that_of_deepseek_v3_s_own_recipe():
    """deepseek_v3_pretrain_256gpu_gb200_fp8mx_config of megatron-bridge 0.6.2: env_vars, but for
    the choice of deterministic kernels, which costs speed and which no design asks for."""
    recipe = dict(
        TORCH_NCCL_HIGH_PRIORITY=1,
        CUDA_DEVICE_MAX_CONNECTIONS=32,
        NCCL_GRAPH_REGISTER=0,
        PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True,graph_capture_record_stream_reuse:True",
        TORCH_NCCL_AVOID_RECORD_STREAMS=0,
        NCCL_NVLS_ENABLE=0,
        NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN=64,
        NUM_OF_TOKENS_PER_CHUNK_COMBINE_API=128,
        NVLINK_DOMAIN_SIZE=72,
        USE_MNNVL=1,
        CUDNNFE_CLUSTER_OVERLAP_MARGIN=8,
        NVTE_BWD_LAYERNORM_SM_MARGIN=20,
        NVTE_CUTEDSL_FUSED_GROUPED_MLP=1,
        NVTE_FWD_LAYERNORM_SM_MARGIN=20,
        NVTE_NORM_BWD_USE_CUDNN=1,
        NVTE_NORM_FWD_USE_CUDNN=1,
    )
    found = environment(deepseek("gb200-nvl72"))
    assert {name: found.get(name) for name in recipe} == {k: str(v) for k, v in recipe.items()}
    assert found["PYTORCH_ALLOC_CONF"] == recipe["PYTORCH_CUDA_ALLOC_CONF"]


def test_amd_s_own_list():
    """Primus, runner/helpers/envs/base_env.sh; experts crash where scratch is kept."""
    dense = spec(
        model=DENSE, cluster=dict(accelerator="mi300x"), plan=dict(tp=8, pp=1, sharding="zero1")
    )
    found = environment(dense, "megatron")
    assert found["GPU_MAX_HW_QUEUES"] == "2"
    assert found["CUDA_DEVICE_MAX_CONNECTIONS"] == found["TORCH_NCCL_HIGH_PRIORITY"] == "1"
    assert found["HSA_NO_SCRATCH_RECLAIM"] == "1"
    assert not {name for name in found if name.startswith("NVTE_FWD")}


@pytest.mark.parametrize("version", ["0.3.0", "0.4.0"])
def test_torchtitan_s_names_go_by_its_release(version):
    """torchtitan 0.3.0 (wheel) and main at b5bcd76, 21 August 2026: modules and fields renamed."""
    old = {
        "torchtitan.components.checkpoint import",
        "HuggingFaceTextDataLoader",
        "local_batch_size=",
        "global_batch_size=",
        "seq_len=4096",
        "pipeline_parallel_microbatch_size=",
    }
    new = {
        "torchtitan.components.checkpointer import",
        "GrainDataLoader",
        "num_tokens_per_microbatch_per_dp_rank=",
        "num_tokens_per_train_step=",
        "max_context_length=4096",
        "num_pp_microbatches=",
    }
    data = spec(model=DENSE, plan=dict(tp=2, pp=2, sharding="zero3"), stack="torchtitan")
    launch = express(
        assess(Design.from_data(data | {"name": "x"})), 0, framework("torchtitan"), "slurm"
    )
    pinned = replace(launch, framework=replace(launch.framework, version=version))
    text = kit(pinned)["torchtitan_config.py"]
    compile(text, "torchtitan_config.py", "exec")
    there_, gone = (old, new) if version == "0.3.0" else (new, old)
    assert not [word for word in there_ if word not in text]
    assert not [word for word in gone if f"    {word}" in text or f"from {word}" in text]


def test_a_stated_switch_is_not_replaced_by_a_stack_s_recipe():
    """Experts in MXFP8 overlap their exchange from a release on, unless the design says otherwise
    (deepseek_v3_pretrain_256gpu_b200_fp8mx_config does)."""
    free = launched(deepseek("b200-sxm", pp=8, vpp=2, ep=8))
    off = launched(deepseek("b200-sxm", pp=8, vpp=2, ep=8, moe_overlap=False))
    assert (float(free.does.ep_overlap), float(off.does.ep_overlap)) == (1.0, 0.0)


def maxtext(chip, devices=256, precision="bf16", **plan):
    whole = dict(tp=1, cp=1, pp=1, sharding="zero3", recompute="full", micro_batch=1) | plan
    data = {
        "scantling": 1,
        "name": "x",
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": chip, "devices": devices},
        "job": dict(seq_len=8192, global_batch=devices, precision=precision),
        "plan": whole,
    }
    files = kits(assess(Design.from_data(data)), "maxtext", "slurm")
    flags = {v["name"]: v["value"] for v in json.loads(files["plan.json"])["environment"]}
    return yaml.safe_load(files["maxtext.yml"]), flags


def test_maxtext_has_the_tiles_and_meshes_of_its_own_runs():
    """benchmarks/maxtext_trillium_model_configs.py, llama3_1-8b-8192: tiles of 2,048, a table of
    one-hot products; a tensor axis that is no side of the slice is split."""
    keys, _ = maxtext("tpu-v6e")
    blocks = [v for k, v in keys.items() if k.startswith("sa_block")]
    assert blocks == [2048] * 8
    assert keys["use_iota_embed"] is True
    assert "allow_split_physical_axes" not in keys
    split, _ = maxtext("tpu-v6e", tp=2)
    assert split["allow_split_physical_axes"] is True
    assert not [k for k in maxtext("tpu-v5p")[0] if k.startswith("sa_block")]


def test_a_tile_divides_what_it_tiles():
    """Splash attention wants whole tiles of the sequence."""
    for tokens in (512, 1024, 3072, 4096, 8192, 12288, 131072):
        assert tokens % tile(tokens) == 0
    assert tile(8192) == 2048 and tile(3072) == 1024


def test_documents_are_packed_on_gpus_where_the_kernel_takes_them():
    """configs/base.yml: max_segments_per_seq, something like 32 for GPUs; attention_op.py refuses
    packed documents under gathered context parallelism."""
    keys, _ = maxtext("h100-sxm", 64)
    assert keys["packing"] is True and keys["max_segments_per_seq"] == 32
    apart, _ = maxtext("h100-sxm", 64, cp=2)
    assert apart["packing"] is False and "max_segments_per_seq" not in apart


def test_sparse_cores_sum_gradients_of_copies_alone():
    """xla_flags_library.py: reduces the time of the gradients' all-reduce beside compute."""
    name = "xla_tpu_enable_sparse_core_collective_offload_all_reduce=true"
    assert name not in maxtext("tpu-v6e")[1]["LIBTPU_INIT_ARGS"]
    copies = maxtext("tpu-v6e", sharding="hsdp", shard_group=64)[1]
    assert name in copies["LIBTPU_INIT_ARGS"]


def test_dense_models_fuse_gate_and_activation_as_llama_s_converter_does():
    """models/llama/llama_bridge.py of 0.6.2: bias_activation_fusion and bias_dropout_fusion."""
    written = overrides(spec(model=DENSE))
    assert written["model.bias_activation_fusion"] == "true"
    assert written["model.bias_dropout_fusion"] == "true"
    biased = overrides(spec(model="gpt-neox-20b"))
    assert "model.bias_dropout_fusion" not in biased


def test_names_that_a_release_no_longer_has_are_listed(tmp_path, capsys):
    """torchtitan 0.3.0 and its main of 21 August 2026: TrainingConfig.seq_len became
    max_context_length, components.checkpoint became components.checkpointer."""
    for name, module, field in (
        ("old", "checkpoint", "seq_len"),
        ("new", "checkpointer", "max_context_length"),
    ):
        parts = tmp_path / name / "torchtitan" / "components"
        parts.mkdir(parents=True)
        (parts / f"{module}.py").write_text("class CheckpointManager:\n    keep: int = 1\n")
        (parts.parent / "config.py").write_text(f"class TrainingConfig:\n    {field}: int = 1\n")
    kit_ = tmp_path / "kit"
    kit_.mkdir()
    (kit_ / "torchtitan_config.py").write_text(
        "from torchtitan.components.checkpoint import CheckpointManager\n"
        "from torchtitan.config import TrainingConfig\n"
        "TrainingConfig(seq_len=4096)\n"
    )
    assert renamed.main(str(tmp_path / "old"), str(tmp_path / "new"), str(kit_)) == 1
    text = capsys.readouterr().out
    assert "torchtitan.components.checkpoint is gone" in text
    assert "TrainingConfig.seq_len is gone; new names near it: TrainingConfig.max_context" in text
    assert "CheckpointManager is gone" not in text
    assert renamed.main(str(tmp_path / "old"), str(tmp_path / "old"), str(kit_)) == 0


def test_kits_write_captured_modules_and_layers_in_16_bit_as_the_design_says():
    """Megatron-Core 0.19.2's arguments: --cuda-graph-modules, --first-last-layers-bf16,
    --num-layers-at-start-in-bf16, --num-layers-at-end-in-bf16; Megatron-Bridge's fields."""
    data = nemotron("mxfp8")
    del data["plan"]["cuda_graphs"]
    data["plan"] |= {
        "graph_modules": ["mamba", "moe_router"],
        "keep_16bit": {"first": 1, "last": 5},
    }
    written = overrides(data)
    assert written["model.cuda_graph_modules"] == "[mamba,moe_router]"
    assert written["mixed_precision.first_last_layers_bf16"] == "true"
    assert written["mixed_precision.num_layers_at_start_in_bf16"] == "1"
    assert written["mixed_precision.num_layers_at_end_in_bf16"] == "5"
    a = assess(Design.from_data(data | {"name": "x"}))
    arguments = kits(a, "megatron", "slurm")["megatron.args"]
    assert "--cuda-graph-modules mamba moe_router\n" in arguments
    ends = "--num-layers-at-start-in-bf16 1\n--num-layers-at-end-in-bf16 5\n"
    assert f"--first-last-layers-bf16\n{ends}" in arguments


def test_layers_in_16_bit_that_a_framework_does_not_keep_are_named():
    """transformer_config.py: "Delayed scaling does not support first / last layer in BF16"."""
    plan = {"tp": 1, "pp": 1, "keep_16bit": {"last": 2}}
    job = {"tokens": 1e11, "seq_len": 4096, "global_batch": 256}
    for to, precision, named in (
        ("megatron", "fp8", True),
        ("megatron-bridge", "fp8", True),
        ("megatron", "fp8-current", False),
        ("torchtitan", "fp8", True),
    ):
        data = {
            "scantling": 1,
            "model": "llama-3.1-8b",
            "cluster": {"accelerator": "h100-sxm", "devices": 64},
            "job": job,
            "plan": plan | {"precision": precision},
        }
        found = misfits(launched(data, to))
        assert ("keep_16bit" in {gap.field for gap in found}) == named
