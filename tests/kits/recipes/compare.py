"""python compare.py DIR [--all]: published recipes below DIR beside the kits of the same pinned
plans: settings that a kit lacks, has otherwise, or has beyond, a line each with the reason where
there is one; at the end those without a reason, by name.

DIR holds checkouts or unpacked wheels: of Megatron-Bridge (perf_recipes), torchtitan
(config_registry.py of its models) and MaxText (benchmarks/, configs/gpu), run under recording
stubs. Recipes of models or chips that the catalogue does not have are counted and left out.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from scantling.catalogue.models import entries

sys.path.insert(0, str(Path(__file__).parent))
import maxtext  # noqa: E402
import titan  # noqa: E402
from differ import OFF, Compared, differences, frozen  # noqa: E402
from kit_of import kit_of  # noqa: E402
from reasons import reason_of  # noqa: E402

NAME = re.compile(r"(.*)_pretrain_(\d+)gpu_([a-z0-9]+)_([a-z0-9]+)((?:_[a-z0-9_]+)?)_config")
MODELS = {
    "deepseek_v3": "deepseek-v3",
    "kimi_k2": "kimi-k2",
    "qwen3_235b_a22b": "qwen3-235b-a22b",
    "qwen3_30b_a3b": "qwen3-30b-a3b",
    "qwen3_next_80b_a3b": "qwen3-next-80b-a3b",
    "llama3_8b": "llama-3-8b",
    "llama3_70b": "llama-3-70b",
    "llama31_405b": "llama-3.1-405b",
    "gpt_oss_120b": "gpt-oss-120b",
    "gpt_oss_20b": "gpt-oss-20b",
    "nemotron_3_nano": "nemotron-3-nano-30b-a3b",
    "nemotron_3_super": "nemotron-3-super-120b-a12b",
    "nemotron_3_ultra": "nemotron-3-ultra-550b-a55b",
}
CHIPS = {
    "h100": "h100-sxm",
    "b200": "b200-sxm",
    "b300": "b300-sxm",
    "gb200": "gb200-nvl72",
    "gb300": "gb300-nvl72",
}
PRECISIONS = {
    "bf16": "bf16",
    "fp8cs": "fp8-current",
    "fp8ds": "fp8",
    "fp8sc": "fp8-block",
    "fp8mx": "mxfp8",
    "nvfp4": "nvfp4",
}
MODULES = {
    "core_attn": "core_attn",
    "mla_up_proj": "mla_up_proj",
    "layernorm": "norm",
    "moe_act": "mlp_act",
    "moe": "moe",
}
CP_TYPES = {"p2p": "ring", "all_gather": "all-gather", "a2a": "ulysses"}
# of a recipe's measurement, of the model's shape and of its data: no matter of a kit's settings
LEFT_OUT = re.compile(
    r"(train|validation|scheduler|dataset|logger|tokenizer|checkpoint|profiling|straggler"
    r"|rerun_state_machine)\b.*"
    r"|model\.(num_layers|hidden_size|ffn_hidden_size|num_attention_heads|num_query_groups"
    r"|kv_channels|seq_length|vocab_size|should_pad_vocab|make_vocab_size_divisible_by|mamba_.*"
    r"|hybrid_layer_pattern|mtp_.*|num_moe_experts|moe_router_topk|moe_ffn_hidden_size"
    r"|moe_shared_expert_intermediate_size|init_method_std|rotary_base|pipeline_dtype|params_dtype"
    r"|pipeline_model_parallel_layout|num_layers_in_.*|account_for_.*|hf_model_.*|activation_func"
    r"|position_embedding_type|is_hybrid_model|normalization|gated_linear_unit|add_bias_linear"
    r"|share_embeddings.*|layernorm_epsilon|attention_dropout|hidden_dropout|q_lora_rank"
    r"|multi_latent_attention|kv_lora_rank|qk_.*|v_head_dim|qk_layernorm|transformer_impl"
    r"|cuda_graph_warmup_steps|attention_backend|recompute_.*|offload_modules|moe_aux_loss_coeff"
    r"|moe_router_load_balancing_type|window_.*|softmax_type|moe_layer_freq|moe_latent_size"
    r"|linear_.*|experimental_attention_variant|attention_output_gate|yarn_.*)"
    r"|optimizer\.(lr|min_lr|adam_.*|weight_decay|clip_grad|bf16|fp16|lion_.*)"
    r"|rng\.seed|dist\.distributed_timeout.*|mixed_precision|dist\.use_tp_pp_dp_mapping"
    r"|mixed_precision\.(fp8_margin|fp8_amax.*|loss_scale.*|initial_loss_scale|min_loss_scale"
    r"|hysteresis|params_dtype|pipeline_dtype|autocast.*|fp8_param|fp4_param)"
    r"|ddp\.(check_for.*)"
)
DEFAULTS = {  # of Megatron-Core where a setting is not made
    "optimizer.exp_avg_dtype": "float32",
    "optimizer.exp_avg_sq_dtype": "float32",
    "optimizer.main_grads_dtype": "float32",
    "optimizer.main_params_dtype": "float32",
    "optimizer.optimizer": "adam",
    "model.cp_comm_type": "p2p",
    "model.moe_hybridep_num_sms_preprocessing": 108,
    "model.cuda_graph_impl": "none",
    "model.moe_token_dispatcher_type": "allgather",
    "model.moe_router_score_function": "softmax",
    "model.gradient_accumulation_fusion": True,
    "model.moe_router_num_groups": 1,
    "model.moe_router_group_topk": 1,
    "ddp.num_distributed_optimizer_instances": 1,
    "ddp.outer_dp_sharding_strategy": "no_shard",
    "model.persist_layer_norm": True,
    "model.masked_softmax_fusion": True,
    "model.rotary_percent": 1.0,
    "model.attention_softmax_in_fp32": False,
    "model.fp16": False,
    "model.bf16": True,
}
# what a model's own converter sets before a recipe does (models/ of Megatron-Bridge)
CONVERTERS = {
    "deepseek_v3": "deepseek/deepseek_v3_bridge.py",
    "kimi_k2": "kimi/kimi_bridge.py",
    "qwen3_235b_a22b": "qwen/qwen3_moe_bridge.py",
    "qwen3_30b_a3b": "qwen/qwen3_moe_bridge.py",
    "qwen3_next_80b_a3b": "qwen/qwen3_next_bridge.py",
    "llama3_8b": "llama/llama_bridge.py",
    "llama3_70b": "llama/llama_bridge.py",
    "llama31_405b": "llama/llama_bridge.py",
    "gpt_oss_120b": "gpt_oss/gpt_oss_bridge.py",
    "gpt_oss_20b": "gpt_oss/gpt_oss_bridge.py",
    "nemotron_3_nano": "nemotronh/nemotron_h_bridge.py",
    "nemotron_3_super": "nemotronh/nemotron_h_bridge.py",
    "nemotron_3_ultra": "nemotronh/nemotron_h_bridge.py",
}


def converted(root: Path, model: str) -> dict[str, Any]:
    """The constants that a model's converter sets on its provider."""
    file = root / "megatron/bridge/models" / CONVERTERS[model]
    out: dict[str, Any] = {}
    for function in ast.walk(ast.parse(file.read_text())):
        if not isinstance(function, ast.FunctionDef) or function.name != "provider_bridge":
            continue
        for line in function.body:
            if isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant):
                target = line.targets[0]
                if isinstance(target, ast.Attribute):
                    out[target.attr] = line.value.value
    return out


def of_bridge(folder: Path) -> list[dict[str, Any]]:
    """The rows of record_bridge.py: the base, then a recipe each."""
    script = Path(__file__).parent / "record_bridge.py"
    p = subprocess.run([sys.executable, str(script), str(folder)], capture_output=True, text=True)
    if p.returncode:
        raise SystemExit(p.stderr[-2000:])
    return [json.loads(line) for line in p.stdout.splitlines()]


def graphs(model: Mapping[str, Any]) -> dict[str, Any]:
    """What of the design says a recipe's captured graphs: their modules by name, or all of them."""
    impl = model.get("cuda_graph_impl") or "none"
    scope = model.get("cuda_graph_modules") or model.get("cuda_graph_scope") or []
    if impl == "full_iteration" or "full_iteration" in scope:
        return {"cuda_graphs": "full"}
    if impl == "none":
        return {"cuda_graphs": "none"}
    return {"graph_modules": [*scope]} if scope else {"cuda_graphs": "layer"}


def data_of(name: str, settings: Mapping[str, Any]) -> dict[str, Any] | str:
    """The pinned design file of a recipe, or why there is none."""
    match = NAME.fullmatch(name)
    if not match:
        return "its name is not read"
    model, devices, chip, precision, _ = match.groups()
    if model not in MODELS or chip not in CHIPS or precision not in PRECISIONS:
        return f"{model} on {chip} in {precision}: not in the catalogue"
    m, ddp = settings["model"], settings["ddp"]
    overlap = settings.get("comm_overlap") or {}
    moe = entries.model(MODELS[model]).is_moe
    modules = m.get("recompute_modules") or []
    granularity = m.get("recompute_granularity")
    selective = granularity == "selective" and bool(modules)
    if selective and not {*modules} <= MODULES.keys():
        return f"recompute of {', '.join(modules)}: no word for it"
    plan: dict[str, Any] = {
        "tp": m.get("tensor_model_parallel_size") or 1,
        "pp": m.get("pipeline_model_parallel_size") or 1,
        "cp": m.get("context_parallel_size") or 1,
        "micro_batch": settings["train"]["micro_batch_size"],
        "offload": "none",
        "recompute": "full" if granularity == "full" else "selective" if selective else "none",
        "gradients": "fp32" if ddp.get("grad_reduce_in_fp32") else "bf16",
    } | graphs(m)
    muon = "muon" in settings["optimizer"]["optimizer"]
    plan["sharding"] = "zero3" if ddp.get("use_megatron_fsdp") else "zero1"
    if selective:
        plan["recompute_modules"] = [MODULES[word] for word in modules]
    if plan["cp"] > 1:
        plan["cp_type"] = CP_TYPES[m.get("cp_comm_type") or "p2p"]
    if plan["pp"] > 1:
        plan["vpp"] = m.get("virtual_pipeline_model_parallel_size") or 1
    if moe:
        plan |= {"ep": m.get("expert_model_parallel_size") or 1, "etp": 1}
        flex = m.get("moe_token_dispatcher_type") == "flex"
        plan["moe_dispatcher"] = m["moe_flex_dispatcher_backend"] if flex else "alltoall"
        plan["moe_overlap"] = bool(overlap.get("overlap_moe_expert_parallel_comm"))
    if plan["tp"] > 1:
        plan["tp_overlap"] = "userbuffer" if overlap.get("tp_comm_overlap") else "none"
    low = settings["optimizer"].get("exp_avg_dtype") == "bfloat16"
    job = {
        "seq_len": m.get("seq_length") or settings["dataset"]["seq_length"],
        "global_batch": settings["train"]["global_batch_size"],
        "precision": PRECISIONS[precision],
        "effort": "tuned",
        "optimizer": "muon" if muon else "adamw-bf16" if low else "adamw",
    }
    if moe and m.get("moe_router_force_load_balancing"):
        job["routing"] = "forced"
    cluster = {"accelerator": CHIPS[chip], "devices": int(devices)}
    if "nvl72" in CHIPS[chip]:
        cluster |= {"devices_per_node": 4, "scale_up_domain": 64}
    return {
        "scantling": 1,
        "name": name,
        "model": MODELS[model],
        "cluster": cluster,
        "job": job,
        "stack": {"id": "megatron-core", "release": "26.08"},
        "plan": plan,
    }


def flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by dotted name, as the kit spells them."""
    out: dict[str, Any] = {}
    for section, values in settings.items():
        if isinstance(values, Mapping):
            out |= {f"{section}.{name}": frozen(value) for name, value in values.items()}
    for name in [name for name in out if name.startswith("comm_overlap.")]:
        value = out.pop(name)
        last = name.partition(".")[2]
        if value not in OFF and last != "tp_comm_bootstrap_backend":
            section = "ddp" if last.startswith(("overlap_grad", "overlap_param")) else "model"
            out[f"{section}.{last}"] = value
    scope = out.pop("model.cuda_graph_scope", None) or ()
    if "full_iteration" in scope:
        out["model.cuda_graph_impl"] = "full_iteration"
    elif scope:
        out["model.cuda_graph_modules"] = scope
    if isinstance(modules := out.get("model.cuda_graph_modules"), tuple):
        out["model.cuda_graph_modules"] = tuple(sorted(modules))
    if out.get("model.moe_token_dispatcher_type") == "alltoall":  # what flex alone reads
        for name in ("moe_flex_dispatcher_backend", "moe_hybridep_num_sms"):
            out.pop(f"model.{name}", None)
    if (out.get("model.tensor_model_parallel_size") or 1) == 1:  # nothing to overlap or to split
        out = {name: v for name, v in out.items() if not name.startswith("model.tp_comm_overlap")}
        out.pop("model.sequence_parallel", None)
    if not out.get("model.tp_comm_overlap"):  # sizes of what is off
        out.pop("model.tp_comm_overlap_cfg", None)
    if (out.get("model.context_parallel_size") or 1) == 1:
        out.pop("model.cp_comm_type", None)
    if not out.get("ddp.use_megatron_fsdp"):
        out.pop("ddp.data_parallel_sharding_strategy", None)
    return {
        name: value
        for name, value in out.items()
        if not LEFT_OUT.fullmatch(name) and DEFAULTS.get(name) != value
    }


def of_kit(
    files: Mapping[str, str], first: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """(settings, environment) of a kit: the base, its preset, its overrides."""
    given = dict(line.split("=", 1) for line in files["bridge.overrides"].splitlines())
    preset = given.pop("mixed_precision").strip("'")
    settings = {**first["base"], "mixed_precision": first["presets"][preset]}
    sections = {k: dict(v) for k, v in settings.items() if isinstance(v, dict)}
    for name, text in given.items():
        section, _, key = name.partition(".")
        sections.setdefault(section, {})[key] = yaml.safe_load(text)
    model = sections.setdefault("model", {})
    model["apply_rope_fusion"] = model.get("apply_rope_fusion")
    if buffers := model.get("tp_comm_overlap_cfg"):  # by name, as the kit's script finds them
        model["tp_comm_overlap_cfg"] = first["user_buffers"][buffers]
    out = flat(sections)
    plan = json.loads(files["plan.json"])
    if plan["optimizer"] == "adamw-bf16":
        out |= {"optimizer.exp_avg_dtype": "bfloat16", "optimizer.exp_avg_sq_dtype": "bfloat16"}
    if "quantization.yaml" in files:
        out["model.quant_recipe"] = "cfg"
    for name in ("fp8_param_gather", "reuse_grad_buf_for_mxfp8_param_ag"):
        out.pop(f"ddp.{name}", None)
    return out, {v["name"]: v["value"] for v in plan["environment"]}


def bridge(folder: Path) -> Iterator[Compared]:
    """Megatron-Bridge's perf_recipes beside their kits."""
    root = folder / "src" if (folder / "src/megatron").is_dir() else folder
    first, *rows = of_bridge(folder)
    for row in rows:
        name = row["recipe"]
        if "error" in row:
            yield Compared(name, (), f"does not run here: {row['error']}")
            continue
        data = data_of(name, row["settings"])
        if isinstance(data, str):
            yield Compared(name, (), data)
            continue
        files = kit_of(data, "megatron-bridge")
        if isinstance(files, str):
            yield Compared(name, (), files)
            continue
        settings, environment = of_kit(files, first)
        match = NAME.fullmatch(name)
        model = converted(root, match[1]) if match else {}
        recipe = flat({**row["settings"], "model": model | row["settings"]["model"]})
        if "expert_model_parallel_size" not in row["settings"]["model"]:  # a dense model
            recipe = {k: v for k, v in recipe.items() if not k.startswith("model.moe_")}
        yield Compared(
            name,
            (
                *differences(recipe, settings),
                *differences(row["env"], only(environment, row["env"]), "env "),
            ),
        )


def sources(folder: Path) -> Iterator[tuple[Path, str, Callable[[Path], Iterator[Compared]]]]:
    """The folders that hold recipes: which framework's, and what compares them."""
    for place in [folder, *sorted(folder.iterdir())]:
        if any((place / src / "megatron/bridge/perf_recipes").is_dir() for src in ("", "src")):
            yield place, "Megatron-Bridge", bridge
        if (place / "torchtitan/models").is_dir():
            yield place, "torchtitan", titan.compared
        if (place / "benchmarks/maxtext_trillium_model_configs.py").exists():
            yield place, "MaxText", maxtext.compared


def main(folder: str) -> int:
    places = [*sources(Path(folder))]
    if not places:
        raise SystemExit(f"{folder}: no recipes that this reads")
    for place, framework, compared in places:
        unexplained: Counter[str] = Counter()
        explained, count, left = 0, 0, Counter[str]()
        for recipe in compared(place):
            if recipe.left_out:
                left[recipe.left_out] += 1
                continue
            count += 1
            print(f"{place.name}: {recipe.name}")
            for one in recipe.differences:
                why = reason_of(framework, one)
                text = f" ({why})" if why else ""
                print(f"  {one.kind} {one.name}: recipe {one.recipe!r}, kit {one.kit!r}{text}")
                if why:
                    explained += 1
                else:
                    unexplained[f"{one.kind} {one.name}"] += 1
        print(f"\n{place.name}, {framework}: {count} recipes compared; left out:")
        for why, number in left.most_common():
            print(f"  {number:4} {why}")
        print(f"differences with a reason: {explained}; without one: {unexplained.total()}")
        for what, number in unexplained.most_common():
            print(f"  {number:4} {what}")
    return 0


def only(environment: Mapping[str, str], recipe: Mapping[str, Any]) -> dict[str, str]:
    """Variables of a kit that recipes speak of: those of speed, not of the site or the logs."""
    kinds = ("NVTE_", "CUDA", "CUDNN", "NUM_OF_", "NVLINK_", "USE_MNNVL", "TORCH_NCCL_", "NCCL_")
    site = ("NCCL_DEBUG", "NCCL_IB_TIMEOUT", "NCCL_CROSS_NIC", "NCCL_MNNVL_ENABLE")
    dumps = "TORCH_NCCL_DUMP_ON_TIMEOUT"
    return {
        name: value
        for name, value in environment.items()
        if name in recipe or (name.startswith(kinds) and name not in (*site, dumps))
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
