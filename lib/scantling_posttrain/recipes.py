"""The plan of a post-training design as a run of a framework: a script that starts it, each setting
under the name that the framework's own configuration has, and what the framework has no words for.

verl 0.9 (policies): overrides of trainer/config/ppo_trainer.yaml with Megatron as the engine of the
actor. torchtune 0.6 (fine-tuning): overrides of one of its recipes. Both refuse a name that they do
not know.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from scantling.base.errors import DesignError
from scantling.catalogue.words import POLICIES, Method
from scantling.design.design import Design
from scantling.design.methods import method_of, untuned
from scantling.plans.prepare import prepare

from .answering import posttrain
from .posttrained import Posttrained

MICRO_TOKENS = 2  # rows of the longest sample that a device of a cp group takes at once
PROMPT_ROOM = 8  # times the mean prompt that the longest one may have: longer ones are dropped
ALPHA = 2  # lora_alpha over rank: the usual one of torchtune's recipes


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


class Recipe(NamedTuple):
    """A run of a framework."""

    command: str  # what starts it, without its settings
    settings: Mapping[str, str]
    gaps: tuple[str, ...]  # what the framework has no words for, or the design no value
    result: Posttrained  # of the plan that the settings have


def verl(design: Design) -> Recipe:
    """A policy under verl's hybrid engine, which shares the devices: another layout is searched
    again with them shared."""
    if method_of(design) not in POLICIES:
        raise DesignError("--to", "verl", "torchtune", problem="trains policies alone")
    result = posttrain(design.change({"job.rollout.colocated": True}))
    plan, r = result.plan, result.rollout
    if plan is None or r is None:
        raise DesignError("design", result.verdict, problem="holds no plan: see its limits")
    nodes, each = machine(design)
    actor, ref, rollout = (f"actor_rollout_ref.{part}" for part in ("actor", "ref", "rollout"))
    layout = {
        "tensor_model_parallel_size": plan["tp"],
        "pipeline_model_parallel_size": plan["pp"],
        "context_parallel_size": plan["cp"],
        "expert_model_parallel_size": plan["ep"],
    }
    if plan["vpp"] > 1:
        layout["virtual_pipeline_model_parallel_size"] = plan["vpp"]
    prompt = PROMPT_ROOM * prompt_tokens(result)
    row = prompt + round(r["max_response"])
    settings: dict[str, object] = {
        "algorithm.adv_estimator": "gae" if result.method == Method.PPO else "grpo",
        "data.train_files": "$TRAIN",
        "data.val_files": "$VALIDATION",
        "data.train_batch_size": r["prompts"],
        "data.max_prompt_length": prompt,
        "data.max_response_length": round(r["max_response"]),
        "actor_rollout_ref.model.path": "$MODEL",
        f"{actor}.ppo_mini_batch_size": max(r["prompts"] // r["updates"], 1),
        f"{actor}.use_dynamic_bsz": True,
        f"{actor}.ppo_max_token_len_per_gpu": MICRO_TOKENS * row // plan["cp"],
        f"{actor}.megatron.param_offload": r["states_leave_the_device"],
        f"{actor}.megatron.optimizer_offload": r["states_leave_the_device"],
        f"{ref}.megatron.param_offload": True,
        f"{rollout}.name": r["engine"],
        f"{rollout}.n": r["samples"],
        f"{rollout}.tensor_model_parallel_size": r["tp"],
        f"{rollout}.gpu_memory_utilization": r["kv_fraction"],
        "trainer.nnodes": nodes,
        "trainer.n_gpus_per_node": each,
    }
    settings |= {f"{actor}.megatron.{name}": value for name, value in layout.items()}
    if plan["recompute"] != "none":
        transformer = f"{actor}.megatron.override_transformer_config"
        settings[f"{transformer}.recompute_granularity"] = plan["recompute"]
        if plan["recompute"] == "full":
            settings[f"{transformer}.recompute_method"] = "uniform"
            settings[f"{transformer}.recompute_num_layers"] = 1
    if result.steps is not None:
        settings["trainer.total_training_steps"] = round(result.steps)
    gaps = [
        f"data.max_prompt_length: the design has a mean prompt alone; {prompt:,} tokens are "
        f"{PROMPT_ROOM} times it",
        "the reward: state reward.custom_reward_function, or a data set that verl scores itself",
    ]
    return Recipe(
        "python3 -m verl.trainer.main_ppo model_engine=megatron", texts(settings), (*gaps,), result
    )


def prompt_tokens(result: Posttrained) -> int:
    """Mean tokens of a prompt: as stated, else as assumed."""
    spec = result.design.job.rollout
    if spec is not None and spec.mean_prompt is not None:
        return round(spec.mean_prompt)
    assumed = {one.field: one.value for one in result.assumed}
    mean: float = assumed["job.rollout.mean_prompt"]
    return round(mean)


def machine(design: Design) -> tuple[int, int]:
    """(nodes, devices of a node)."""
    cluster = prepare(untuned(design)).cluster
    each = min(cluster.devices, cluster.devices_per_node)
    return -(-cluster.devices // each), each


def torchtune(design: Design) -> Recipe:
    """A fine-tune under torchtune, which shards weights and splits them no other way."""
    method = method_of(design)
    if method in POLICIES or method is Method.DPO:
        raise DesignError("--to", "torchtune", "verl", problem=f"is written for no {method}")
    model = design.model if isinstance(design.model, str) else ""
    if model not in CONFIGURED:
        named = model or "a model of its own"
        raise DesignError("model", named, list(CONFIGURED), problem="has no recipe")
    pins: dict[str, object] = {f"plan.{axis}": 1 for axis in ("tp", "pp", "cp", "ep")}
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
    result = posttrain(design.change(pins))
    plan = result.plan
    if plan is None:
        raise DesignError("design", result.verdict, problem="holds no plan: see its limits")
    row = next(
        (one.value for one in result.assumed if one.field == "job.seq_len"), design.job.seq_len
    )
    settings: dict[str, object] = {
        "tokenizer.max_seq_len": row,
        "dataset.packed": packed(result),
        "batch_size": plan["micro_batch"],
        "gradient_accumulation_steps": plan["grad_accum"],
        "enable_activation_checkpointing": plan["recompute"] != "none",
        "dtype": "bf16",
        "checkpointer.checkpoint_dir": "$MODEL",
        "output_dir": "$OUTPUT",
    }
    if result.steps is not None:
        settings["max_steps_per_epoch"] = max(round(result.steps), 1)
    gaps = ["the data set: dataset._component_, and the files of the checkpoint, are the recipe's"]
    if kind == "lora":
        settings |= adapter_settings(result)
    if method is Method.QLORA:
        settings["model.quantize_base"] = True
    nodes, each = machine(design)
    command = f"tune run {recipe} --config {config}"
    if not alone:
        command = f"tune run --nnodes {nodes} --nproc_per_node {each} {recipe} --config {config}"
    return Recipe(command, texts(settings), (*gaps,), result)


def packed(result: Posttrained) -> bool:
    """Whether samples are packed: as stated, else as assumed."""
    data = result.design.job.data
    return data is None or data.packed is not False


def adapter_settings(result: Posttrained) -> dict[str, object]:
    """The adapters under torchtune's names."""
    spec = result.design.job.adapter
    assumed = {one.field: one.value for one in result.assumed}
    rank = spec.rank if spec and spec.rank else assumed["job.adapter.rank"]
    named = spec.targets if spec and spec.targets else assumed["job.adapter.targets"]
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


def texts(settings: Mapping[str, object]) -> dict[str, str]:
    """Settings as they are written on a command line."""
    return {name: str(value) for name, value in settings.items()}


FRAMEWORKS: Mapping[str, Callable[[Design], Recipe]] = {"verl": verl, "torchtune": torchtune}


def script(recipe: Recipe, framework: str) -> str:
    """The script that starts a run."""
    head = [
        "#!/bin/bash",
        f"# {recipe.result.name}: {recipe.result.method} under {framework}",
        f"# plan: {recipe.result.plan_words}",
        *(f"# not in the design: {gap}" for gap in recipe.gaps),
        "set -eu",
        ': "${MODEL:?the folder of the model in the format of the transformers library}"',
    ]
    lines = [recipe.command, *(f'{name}="{value}"' for name, value in recipe.settings.items())]
    return "\n".join(head) + "\n" + " \\\n  ".join(lines) + ' "$@"\n'
