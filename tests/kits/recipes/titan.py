"""torchtitan's configurations (models/*/config_registry.py) beside the kits of the same plans.

They say neither chips nor how many: H100, as many as torchtitan's own tables have of each model;
Blackwell where the number format is its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from differ import Compared, Difference, differences, frozen
from kit_of import kit_of

MODELS = {  # (folder, flavour) -> (row of the catalogue, devices)
    ("llama3", "8B"): ("llama-3.1-8b", 8),
    ("llama3", "70B"): ("llama-3.1-70b", 256),
    ("llama3", "405B"): ("llama-3.1-405b", 512),
    ("deepseek_v3", "16B"): ("deepseek-v2-lite", 64),
    ("deepseek_v3", "671B"): ("deepseek-v3", 512),
    ("gpt_oss", "20b"): ("gpt-oss-20b", 64),
    ("gpt_oss", "120b"): ("gpt-oss-120b", 128),
    ("kimi_k2_7", "moonlight-16B-A3B"): ("moonlight-16b", 64),
    ("kimi_k2_7", "Kimi-K2.5"): ("kimi-k2", 1024),
    ("qwen3", "0.6B"): ("qwen3-0.6b", 8),
    ("qwen3", "1.7B"): ("qwen3-1.7b", 8),
    ("qwen3", "8B"): ("qwen3-8b", 8),
    ("qwen3", "14B"): ("qwen3-14b", 16),
    ("qwen3", "30B-A3B"): ("qwen3-30b-a3b", 32),
    ("qwen3", "32B"): ("qwen3-32b", 32),
    ("qwen3_5", "4B"): ("qwen3.5-4b", 8),
    ("qwen3_5", "27B"): ("qwen3.5-27b", 32),
    ("qwen3_5", "35B-A3B"): ("qwen3.5-35b-a3b", 32),
    ("qwen3_5", "122B-A10B"): ("qwen3.5-122b-a10b", 128),
}
MOE = re.compile(r"deepseek_v3|gpt_oss|kimi_k2_7|.*-A\d+B")
LATER = "num_tokens_per_microbatch_per_dp_rank"  # of the releases that count tokens
NEXT = "0.4.0"  # the release that they are taken for
# of the plan's degrees and batches, of data, logs, saves and limits of time
LEFT_OUT = re.compile(
    r"training\.(local_batch_size|global_batch_size|seq_len|steps|num_tokens_.*|max_context_length)"
    r"|parallelism\.(\w+_degree|module_fqns.*|pipeline_parallel_(microbatch_size|schedule)"
    r"|num_pp_microbatches)"
    r"|checkpoint\.(interval|enable|keep_latest_k|last_save.*|export_dtype|async_mode|initial_.*)"
    r"|comm\..*|debug\.seed|hf_assets_path|dump_folder|dataloader|validator|profiler|metrics"
    r"|lr_scheduler|tokenizer|model\.num_mtp_layers"
)
DEFAULTS = {  # of torchtitan 0.3.0, config/configs.py and the registries
    "training.mixed_precision_param": "bfloat16",
    "parallelism.enable_sequence_parallel": True,
    "parallelism.fsdp_reshard_after_forward": "always",
    "compile.components": ("model", "loss"),
    "model.attn_backend": "flex",
    "model.moe_comm_backend": "standard",
}


def precision(s: Mapping[str, Any]) -> str:
    """The design's word for the converters of a configuration."""
    text = " ".join(s.get("model.converters", []))
    for name, word in (("NVFP4", "nvfp4"), ("MXFP8", "mxfp8"), ("Float8", "fp8-row")):
        if name in text:
            return word
    return "bf16"


def data_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The design file of a configuration."""
    s = row["settings"]
    model, devices = MODELS[row["folder"], row["flavor"]]
    later = f"training.{LATER}" in s
    seq_len = s.get("training.max_context_length") if later else s.get("training.seq_len")
    seq_len = int(seq_len or 2048)
    micro = int(s.get("training.local_batch_size", 1))
    if later:
        micro = int(s[f"training.{LATER}"]) // seq_len
    tp = int(s.get("parallelism.tensor_parallel_degree", 1))
    low = precision(s) in ("mxfp8", "nvfp4")
    kind = s.get("activation_checkpoint")
    recompute = "none" if not kind else "full" if "Full" in kind else "selective"
    plan: dict[str, Any] = {
        "tp": tp,
        "cp": int(s.get("parallelism.context_parallel_degree", 1)),
        "pp": 1,
        "micro_batch": micro,
        "sharding": "zero3",
        "offload": "none",
        "recompute": recompute,
    }
    if tp > 1:
        folded = s.get("compile.enable_async_tensor_parallel")
        plan["tp_overlap"] = "async" if folded else "none"
    if MOE.fullmatch(row["folder"]) or MOE.fullmatch(row["flavor"]):
        plan |= {"ep": int(s.get("parallelism.expert_parallel_degree", 1)), "etp": 1}
        backend = s.get("model.moe_comm_backend") or "standard"
        if backend in ("deepep", "hybridep"):
            plan["moe_dispatcher"] = backend
    return {
        "scantling": 1,
        "name": row["recipe"],
        "model": model,
        "cluster": {"accelerator": "b200-sxm" if low else "h100-sxm", "devices": devices},
        "job": {
            "seq_len": seq_len,
            "global_batch": micro * devices // tp,
            "precision": precision(s),
            "effort": "tuned",
        },
        "stack": {"id": "torchtitan"},
        "plan": plan,
    }


def recorded(place: Path) -> list[dict[str, Any]]:
    """The rows of record_titan.py."""
    script = Path(__file__).parent / "record_titan.py"
    p = subprocess.run([sys.executable, str(script), str(place)], capture_output=True, text=True)
    if p.returncode:
        raise SystemExit(p.stderr[-2000:])
    return [json.loads(line) for line in p.stdout.splitlines()]


def compared(folder: Path) -> Iterator[Compared]:
    """Each configuration beside its kit."""
    for row in recorded(folder):
        name = row["recipe"]
        if "error" in row:
            yield Compared(name, (), f"does not run here: {row['error']}")
            continue
        if (row["folder"], row["flavor"]) not in MODELS:
            yield Compared(name, (), f"{row['folder']} {row['flavor']}: no row of the catalogue")
            continue
        later = f"training.{LATER}" in row["settings"]
        kit = kit_of(data_of(row), "torchtitan", NEXT if later else "")
        if isinstance(kit, str):
            yield Compared(name, (), kit)
            continue
        yield Compared(name, (*beside(row["settings"], kit["torchtitan_config.py"]),))


def beside(recipe: Mapping[str, Any], program: str) -> Iterator[Difference]:
    """What differs between a configuration and a kit's program, both run under stubs."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "torchtitan_config.py"
        file.write_text(program)
        kit = recorded(file)[0]["settings"]
    yield from differences(known(recipe), known(kit))


def known(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of speed, memory and correctness, with torchtitan's defaults."""
    kept = {k: frozen(v) for k, v in settings.items() if not LEFT_OUT.fullmatch(k)}
    whole = {**DEFAULTS, **kept}
    if not whole.get("compile.enable"):
        whole.pop("compile.components", None)
    return whole
