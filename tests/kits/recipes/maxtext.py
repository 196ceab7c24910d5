"""MaxText's own runs (benchmarks/maxtext_*_model_configs.py, configs/gpu) beside the kits of the
same plans. Devices of a run that does not say are 256 of v6e and v5e, 64 of v5p and of GPUs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

import yaml
from differ import Compared, Difference, differences, frozen
from kit_of import MISFIT, kit_of

MODELS = {
    "llama2-7b": "llama-2-7b",
    "llama2-13b": "llama-2-13b",
    "llama2-70b": "llama-2-70b",
    "llama3-8b": "llama-3-8b",
    "llama3-70b": "llama-3-70b",
    "llama3.1-8b": "llama-3.1-8b",
    "llama3.1-70b": "llama-3.1-70b",
    "llama3.1-405b": "llama-3.1-405b",
    "mistral-7b": "mistral-7b",
    "mixtral-8x7b": "mixtral-8x7b",
    "mixtral-8x22b": "mixtral-8x22b",
    "deepseek3-671b": "deepseek-v3",
    "gpt3-175b": "gpt-3-175b",
    "gemma2-9b": "gemma-2-9b",
    "gemma2-27b": "gemma-2-27b",
    "gemma3-12b": "gemma-3-12b",
    "llama4-17b-16e": "llama-4-scout",
    "llama4-17b-128e": "llama-4-maverick",
}
MODULES = {  # of what a run places in host memory by name
    "decoder_layer_input": "attn_norm",
    "query_proj": "core_attn",
    "key_proj": "core_attn",
    "value_proj": "core_attn",
    "context": "attn_proj",
    "mlpwi_0": "mlp_act",
    "mlpwi_1": "mlp_act",
}
EXPERTS = ("mixtral", "deepseek", "llama4")
# of the run's measurement, data and bookkeeping, of the plan's degrees, and of the model's shape
LEFT_OUT = re.compile(
    r"(ici|dcn)_.*|run_name|base_config|base_output_directory|steps|dataset_.*|reuse_example_batch"
    r"|.*checkpoint.*|profiler.*|.*profiler|skip_first.*|profile_.*|gcs_metrics|metrics_file"
    r"|enable_(goodput|pathways|single|tensorboard).*|goodput.*|tokenizer.*|grain_.*|tfds_.*"
    r"|per_device_batch_size|gradient_accumulation_steps|max_target_length|learning_rate.*"
    r"|warmup_.*|hardware|model_name|override_model_config|base_emb_dim|base_num_.*|head_dim"
    r"|base_m.*_dim|vocab_size|decoder_block|mlp_activations|rope_.*|normalization_.*"
    r"|.*_seed|logits_via_embedding|use_qk_norm|enable_dropout|num_experts.*|first_num_dense.*"
    r"|shared_experts|q_lora_rank|kv_lora_rank|qk_.*|v_head_dim|attention_type|mtp_.*|num_slices"
    r"|log_period|upload_.*|max_segments_per_seq|monitor_.*|remat_policy_for_vit|xla_dump_to"
    r"|data_shuffle_seed|max_num_.*|eval_.*|target_eval_loss|dataset_path|expansion_factor.*"
    r"|global_parameter_scale|scan_layers|report_.*|use_vertex_tensorboard|vertex_.*"
)


def number(value: Any) -> int:
    """A degree; one that is left to MaxText is 1."""
    return max(int(value or 1), 1)


def devices(row: Mapping[str, Any]) -> int:
    """Devices of a run: as its name says, else as its degrees do, else those of its file."""
    settings = row["settings"]
    name = row["recipe"]
    if match := re.search(r"v5p[-_](\d+)", name):
        return int(match[1]) // 2  # named by cores
    if match := re.search(r"(\d)x-v6e(\d+)", name):
        return int(match[1]) * int(match[2])
    inside = [int(v) for k, v in settings.items() if k.startswith("ici_")]
    outside = [int(v) for k, v in settings.items() if k.startswith("dcn_") and int(v) > 0]
    whole = prod(inside) if inside and min(inside) > 0 and prod(inside) > 16 else row["devices"]
    if row["chip"] == "h100-sxm" and outside:
        whole = prod(map(number, inside))
    return int(whole) * prod(outside)


def data_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The design file of a run."""
    s = row["settings"]
    count = devices(row)
    moe = row["model"].startswith(EXPERTS)
    tp = number(s.get("ici_tensor_parallelism"))
    cp = number(s.get("ici_context_parallelism"))
    per_device = float(s.get("per_device_batch_size", 1))
    plan: dict[str, Any] = {
        "tp": tp,
        "cp": cp,
        "pp": 1,
        "micro_batch": max(round(per_device * tp * cp), 1),
        "sharding": "zero3",
        "offload": "optimizer" if s.get("optimizer_memory_host_offload") else "none",
    }
    if cp > 1:
        plan["cp_type"] = "all-gather"
    policy = s.get("remat_policy", "full")
    if policy == "custom":
        names = [word for word, place in s.items() if place == "offload" and word in MODULES]
        plan["recompute"] = "full"
        if names:
            modules = dict.fromkeys(MODULES[word] for word in names)
            plan["activation_offload"] = {"modules": [*modules]}
    else:
        plan["remat"] = policy
    if moe:
        plan |= {"ep": number(s.get("ici_expert_parallelism")), "etp": tp}
        if int(s.get("ici_expert_parallelism", 1)) == -1:
            plan["ep"] = count // (tp * cp)
    job: dict[str, Any] = {
        "seq_len": int(s.get("max_target_length", 2048)),
        "global_batch": max(round(per_device * count), 1),
        "precision": "int8" if s.get("quantization") == "int8" else "bf16",
        "optimizer": "sgd" if s.get("opt_type") == "sgd" else "adamw",
        "effort": "tuned",
    }
    if moe and s.get("sparse_matmul") is False and "capacity_factor" in s:
        job["capacity_factor"] = float(s["capacity_factor"])
    return {
        "scantling": 1,
        "name": row["recipe"],
        "model": MODELS[row["model"]],
        "cluster": {"accelerator": row["chip"], "devices": count},
        "job": job,
        "plan": plan,
    }


def smaller(data: Mapping[str, Any], offload: str) -> dict[str, Any]:
    """The same run with one sequence at a time: its keys and flags do not hang on how many."""
    plan, job = data["plan"], data["job"]
    batch = job["global_batch"] // plan["micro_batch"]
    return {
        **data,
        "plan": {**plan, "micro_batch": 1, "offload": offload},
        "job": {**job, "global_batch": batch},
    }


def compared(folder: Path) -> Iterator[Compared]:
    """Each run beside its kit."""
    script = Path(__file__).parent / "record_maxtext.py"
    p = subprocess.run([sys.executable, str(script), str(folder)], capture_output=True, text=True)
    if p.returncode:
        raise SystemExit(p.stderr[-2000:])
    base = yaml.safe_load((folder / "src/maxtext/configs/base.yml").read_text())
    for line in p.stdout.splitlines():
        row = json.loads(line)
        if row["model"] not in MODELS:
            yield Compared(row["recipe"], (), f"{row['model']}: no row of the catalogue")
            continue
        data = data_of(row)
        kit = kit_of(data, "maxtext")
        for offload in ("none", "optimizer"):
            if kit == MISFIT:  # a smaller batch stands in, then states in host memory
                kit = kit_of(smaller(data, offload), "maxtext")
        if isinstance(kit, str):
            yield Compared(row["recipe"], (), kit)
            continue
        yield Compared(row["recipe"], (*beside(row, kit, base),))


def beside(
    row: Mapping[str, Any], kit: Mapping[str, str], base: Mapping[str, Any]
) -> Iterator[Difference]:
    """Keys and flags that differ."""
    written = yaml.safe_load(kit["maxtext.yml"])
    yield from differences(
        keys(row["settings"], written, base), keys(written, row["settings"], base)
    )
    environment = {v["name"]: v["value"] for v in json.loads(kit["plan.json"])["environment"]}
    line = environment.get("LIBTPU_INIT_ARGS", environment.get("XLA_FLAGS", ""))
    given = dict(word.lstrip("-").split("=", 1) for word in line.split())
    flags = {k: v for k, v in row["flags"].items() if not LEFT_OUT.fullmatch(k)}
    if flags or row["chip"] != "h100-sxm":  # the files of GPUs name keys alone
        yield from differences(flags, given, "flag ")


def keys(
    settings: Mapping[str, Any], others: Mapping[str, Any], base: Mapping[str, Any]
) -> dict[str, Any]:
    """The keys that either side writes, at MaxText's defaults where this one does not."""
    names = [k for k in {*settings, *others} if not LEFT_OUT.fullmatch(k)]
    return {k: frozen(settings.get(k, base.get(k))) for k in names}
