"""python compare.py DIR [--all]: published recipes below DIR beside the kits of the same pinned
plans: settings that a kit lacks, has otherwise, or has beyond, a line each with the reason where
there is one; at the end those without a reason, by name.

DIR holds checkouts or unpacked wheels: of Megatron-Bridge (perf_recipes, run under recording
stubs). Recipes of models or chips that the catalogue does not have are counted and left out.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from scantling import Design
from scantling.base.errors import DesignError
from scantling.catalogue.models import entries
from scantling.verdict.assess import assess
from scantling_kits import kits

sys.path.insert(0, str(Path(__file__).parent))
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
}
OFF = (None, False, "none", (), "", 0)


class Difference(NamedTuple):
    """One setting that a kit lacks, has otherwise or has beyond."""

    kind: str
    name: str
    recipe: Any
    kit: Any


def of_bridge(folder: Path) -> list[dict[str, Any]]:
    """The rows of record_bridge.py: the base, then a recipe each."""
    script = Path(__file__).parent / "record_bridge.py"
    p = subprocess.run([sys.executable, str(script), str(folder)], capture_output=True, text=True)
    if p.returncode:
        raise SystemExit(p.stderr[-2000:])
    return [json.loads(line) for line in p.stdout.splitlines()]


def graphs(model: Mapping[str, Any]) -> str:
    """The design's word for a recipe's captured graphs."""
    impl = model.get("cuda_graph_impl") or "none"
    scope = model.get("cuda_graph_modules") or model.get("cuda_graph_scope") or []
    if impl == "full_iteration" or "full_iteration" in scope:
        return "full"
    if impl == "none":
        return "none"
    return "layer" if not scope or {"attn", "mamba"} & {*scope} else "router"


def design_of(name: str, settings: Mapping[str, Any]) -> Design | str:
    """The pinned design of a recipe, or why there is none."""
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
        "cuda_graphs": graphs(m),
    }
    muon = "muon" in settings["optimizer"]["optimizer"]
    plan["sharding"] = "zero3" if ddp.get("use_megatron_fsdp") else "zero1"
    if selective:
        plan["recompute_modules"] = [MODULES[word] for word in modules]
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
    data = {
        "scantling": 1,
        "name": name,
        "model": MODELS[model],
        "cluster": cluster,
        "job": job,
        "stack": {"id": "megatron-core", "release": "26.08"},
        "plan": plan,
    }
    try:
        return Design.from_data(data)
    except DesignError as error:
        return str(error)


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
    if out.get("model.tensor_model_parallel_size", 1) == 1:  # nothing to overlap
        out = {name: v for name, v in out.items() if not name.startswith("model.tp_comm_overlap")}
    if out.get("model.context_parallel_size", 1) == 1:
        out.pop("model.cp_comm_type", None)
    if not out.get("ddp.use_megatron_fsdp"):
        out.pop("ddp.data_parallel_sharding_strategy", None)
    return {
        name: value
        for name, value in out.items()
        if not LEFT_OUT.fullmatch(name) and DEFAULTS.get(name) != value
    }


def frozen(value: Any) -> Any:
    """A value that compares."""
    if isinstance(value, list):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return tuple(sorted((k, frozen(v)) for k, v in value.items()))
    return value


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
    sections.setdefault("model", {})["apply_rope_fusion"] = sections["model"].get(
        "apply_rope_fusion"
    )
    out = flat(sections)
    plan = json.loads(files["plan.json"])
    if plan["optimizer"] == "adamw-bf16":
        out |= {"optimizer.exp_avg_dtype": "bfloat16", "optimizer.exp_avg_sq_dtype": "bfloat16"}
    if "quantization.yaml" in files:
        out["model.quant_recipe"] = "cfg"
    for name in ("fp8_param_gather", "reuse_grad_buf_for_mxfp8_param_ag"):
        out.pop(f"ddp.{name}", None)
    return out, {v["name"]: v["value"] for v in plan["environment"]}


def differences(
    recipe: Mapping[str, Any], kit: Mapping[str, Any], prefix: str = ""
) -> Iterator[Difference]:
    """What differs, by name; what is off on both sides is the same."""
    for name in sorted({*recipe, *kit}):
        here, there = recipe.get(name), kit.get(name)
        if here == there or (here in OFF and there in OFF):
            continue
        if isinstance(here, (int, float)) and str(here) == str(there):
            continue
        kind = "lacks" if there in OFF else "beyond" if name not in recipe else "otherwise"
        yield Difference(kind, f"{prefix}{name}", here, there)


def main(folder: str) -> int:
    places = [p for p in [Path(folder), *sorted(Path(folder).iterdir())] if p.is_dir()]
    bridges = [
        p
        for p in places
        if any((p / src / "megatron/bridge/perf_recipes").is_dir() for src in ("", "src"))
    ]
    if not bridges:
        raise SystemExit(f"{folder}: no recipes that this reads")
    open_: Counter[str] = Counter()
    compared, left = 0, Counter[str]()
    for place in bridges:
        first, *rows = of_bridge(place)
        for row in rows:
            name = row["recipe"]
            if "error" in row:
                left[f"does not run here: {row['error']}"] += 1
                continue
            design = design_of(name, row["settings"])
            if isinstance(design, str):
                left[design] += 1
                continue
            try:
                assessment = assess(design)
                if not assessment.fits:
                    left["does not fit by this model"] += 1
                    continue
                files = kits(assessment, "megatron-bridge", "slurm")
            except DesignError as error:
                left[re.sub(r"[\d,.]+", "N", str(error))[:160]] += 1
                continue
            compared += 1
            settings, environment = of_kit(files, first)
            recipe = flat(row["settings"])
            if "expert_model_parallel_size" not in row["settings"]["model"]:  # a dense model
                recipe = {k: v for k, v in recipe.items() if not k.startswith("model.moe_")}
            told = [
                *differences(recipe, settings),
                *differences(row["env"], only(environment, row["env"]), "env "),
            ]
            print(f"{place.name}: {name}")
            for one in told:
                why = reason_of(one.name, one.kind, one.recipe, one.kit)
                said = f" ({why})" if why else ""
                print(f"  {one.kind} {one.name}: recipe {one.recipe!r}, kit {one.kit!r}{said}")
                if not why:
                    open_[f"{one.kind} {one.name}"] += 1
    print(f"\n{compared} recipes compared; left out:")
    for why, count in left.most_common():
        print(f"  {count:4} {why}")
    print("without a reason:")
    for what, count in open_.most_common():
        print(f"  {count:4} {what}")
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
