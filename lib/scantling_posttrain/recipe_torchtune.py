"""A fine-tune as a run of torchtune 0.6: overrides of one of its recipes."""

from math import ceil
from typing import NamedTuple

from scantling.base.errors import DesignError
from scantling.catalogue.words import POLICIES, Method
from scantling.design.design import Design
from scantling.design.methods import method_of

from .posttrained import Posttrained
from .recipe import (
    ALPHA,
    PORT,
    UNSPLIT,
    Recipe,
    changed,
    machine,
    packed,
    planned,
    rank_of,
    row_tokens,
    targets_of,
    texts,
)


class Configured(NamedTuple):
    """The recipes that torchtune has of a model: its folder, its size, their kinds."""

    folder: str
    size: str
    kinds: tuple[str, ...]


FULL, FULL_ALONE, LORA, LORA_ALONE, QUANTISED = (
    "full",
    "full_single_device",
    "lora",
    "lora_single_device",
    "quantize_base",  # of the builder of its adapters
)
EVERY = (FULL, FULL_ALONE, LORA, LORA_ALONE, QUANTISED)
SHARDED = (FULL, LORA, QUANTISED)
# by catalogue id
CONFIGURED = {
    "llama-3.1-8b": Configured("llama3_1", "8B", EVERY),
    "llama-3.1-70b": Configured("llama3_1", "70B", SHARDED),
    "llama-3.2-1b": Configured("llama3_2", "1B", EVERY),
    "llama-3.2-3b": Configured("llama3_2", "3B", EVERY),
    "llama-3.3-70b": Configured("llama3_3", "70B", (FULL, LORA)),
    "llama-2-7b": Configured("llama2", "7B", (FULL, LORA, LORA_ALONE, QUANTISED)),
    "llama-2-13b": Configured("llama2", "13B", SHARDED),
    "llama-2-70b": Configured("llama2", "70B", (LORA, QUANTISED)),
    "mistral-7b": Configured("mistral", "7B", (FULL, LORA, LORA_ALONE, QUANTISED)),
    "qwen2.5-0.5b": Configured("qwen2_5", "0.5B", EVERY),
    "qwen2.5-1.5b": Configured("qwen2_5", "1.5B", EVERY),
    "qwen2.5-3b": Configured("qwen2_5", "3B", EVERY),
    "qwen2.5-7b": Configured("qwen2_5", "7B", EVERY),
    "qwen2.5-32b": Configured("qwen2_5", "32B", (LORA, QUANTISED)),
    "qwen2.5-72b": Configured("qwen2_5", "72B", (LORA, QUANTISED)),
}


def torchtune(design: Design) -> Recipe:
    """A fine-tune under torchtune, which shards weights and splits them no other way."""
    method = method_of(design)
    if method in POLICIES or method is Method.DPO:
        raise DesignError("--to", "torchtune", "verl", problem=f"is written for no {method}")
    model = design.model if isinstance(design.model, str) else ""
    if model not in CONFIGURED:
        named = model or "a model of its own"
        raise DesignError("model", named, list(CONFIGURED), problem="has no recipe")
    pins = {**UNSPLIT}
    alone = design.cluster.devices == 1
    of_model = CONFIGURED[model]
    kind = "full" if method is Method.SFT else "lora"
    config = f"{kind}_single_device" if alone else kind
    needed = {config} | ({QUANTISED} if method is Method.QLORA else set())
    if not needed <= {*of_model.kinds}:
        where = "one device" if alone else "several devices"
        problem = f"has no recipe of {method} on {where}"
        raise DesignError("model", model, of_model.kinds, problem=problem)
    recipe = f"{kind}_finetune_{'single_device' if alone else 'distributed'}"
    config = f"{of_model.folder}/{of_model.size}_{config}"
    if not alone:
        pins["plan.sharding"] = "zero3"  # fully_shard, always
    result = planned(design, pins)
    plan = result.plan
    assert plan is not None
    settings: dict[str, object] = {
        "tokenizer.max_seq_len": row_tokens(result),
        "dataset.packed": packed(result),
        "batch_size": plan["micro_batch"],
        "gradient_accumulation_steps": plan["grad_accum"],
        "enable_activation_checkpointing": plan["recompute"] != "none",
        "dtype": "bf16",
        "checkpointer.checkpoint_dir": "$MODEL",
        "output_dir": "$OUTPUT",
    }
    if result.steps is not None:
        data = result.design.job.data
        settings["epochs"] = epochs = ceil((data and data.epochs) or 1.0)
        settings["max_steps_per_epoch"] = max(round(result.steps / epochs), 1)
    gaps = ["the data set: dataset._component_, and the files of the checkpoint, are the recipe's"]
    if kind == "lora":
        settings |= adapter_settings(result)
    if method is Method.QLORA:
        settings["model.quantize_base"] = True
    nodes, each = machine(design)
    command = f"tune run {recipe} --config {config}"
    if not alone:
        meet = f' --rdzv_backend c10d --rdzv_id tune --rdzv_endpoint "$HEAD:{PORT}"'
        starts = f"tune run --nnodes {nodes} --nproc_per_node {each}{meet if nodes > 1 else ''}"
        command = f"{starts} {recipe} --config {config}"
    return Recipe(command, texts(settings), (*gaps,), changed(design, pins), result)


def adapter_settings(result: Posttrained) -> dict[str, object]:
    """The adapters under torchtune's names."""
    rank, named = rank_of(result), targets_of(result)
    modules = []
    if "attention" in named or "qkv" in named:
        modules += ["q_proj", "k_proj", "v_proj"]
    if "attention" in named or "out" in named:
        modules.append("output_proj")
    return {
        "model.lora_rank": rank,
        "model.lora_alpha": ALPHA * rank,
        "model.lora_attn_modules": f"[{','.join(modules)}]",
        "model.apply_lora_to_mlp": "mlp" in named,
    }
