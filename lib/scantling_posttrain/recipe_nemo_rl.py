"""A policy as a run of NeMo RL: overrides of examples/configs/grpo_math_1B_megatron.yaml, whose
structure is closed: a name that it does not know ends the run (nemo_rl/utils/config.py)."""

from collections.abc import Mapping
from typing import Any

from scantling.base.errors import DesignError
from scantling.catalogue.words import Method
from scantling.design.design import Design
from scantling.design.methods import method_of

from .posttrained import RolloutRow
from .recipe import (
    PROMPT_ROOM,
    SIXTEEN_BIT,
    Recipe,
    changed,
    machine,
    planned,
    prompt_tokens,
    ray_cluster,
    repeated,
    texts,
)

CONFIG = "examples/configs/grpo_math_1B_megatron.yaml"
TRAINER: Mapping[str, Any] = {
    "plan.vpp": 1,
    "plan.schedule": None,
    "plan.sharding": "zero1",
    **SIXTEEN_BIT,
}
ROW = 64  # tokens that a sequence is a multiple of (sequence_length_round)


def nemo_rl(design: Design) -> Recipe:
    """A policy under NeMo RL with Megatron as trainer and vLLM as engine, on the same devices or on
    nodes of their own. The trainer does not interleave its stages."""
    if method_of(design) is not Method.GRPO:
        raise DesignError("--to", "nemo-rl", "verl, torchtune", problem="is written for grpo")
    result = planned(design, TRAINER)
    plan, r = result.plan, result.rollout
    assert plan is not None and r is not None
    if r["engine"] != "vllm":
        raise DesignError("job.rollout.engine", r["engine"], ["vllm"], problem="is not written for")
    nodes, each = machine(design)
    prompt = PROMPT_ROOM * prompt_tokens(result)
    row = -(-(prompt + round(r["max_response"])) // ROW) * ROW
    trainer = "policy.megatron_cfg"
    settings: dict[str, object] = {
        "grpo.num_prompts_per_step": r["prompts"],
        "grpo.num_generations_per_prompt": r["samples"],
        "grpo.async_grpo.enabled": r["lag"] > 0,
        "grpo.async_grpo.max_trajectory_age_steps": max(r["lag"], 1),
        "loss_fn.use_importance_sampling_correction": r["lag"] > 0,
        "policy.model_name": "$MODEL",
        "policy.train_global_batch_size": r["prompts"] * r["samples"] // r["updates"],
        "policy.train_micro_batch_size": plan["micro_batch"],
        "policy.max_total_sequence_length": row,
        f"{trainer}.tensor_model_parallel_size": plan["tp"],
        f"{trainer}.pipeline_model_parallel_size": plan["pp"],
        f"{trainer}.context_parallel_size": plan["cp"],
        f"{trainer}.expert_model_parallel_size": plan["ep"],
        f"{trainer}.sequence_parallel": plan["tp"] > 1,
        f"{trainer}.activation_checkpointing": plan["recompute"] != "none",
        "cluster.num_nodes": nodes,
        "cluster.gpus_per_node": each,
        **engine_settings(r, nodes, each),
    }
    if plan["recompute"] != "none":
        settings[f"{trainer}.recompute_granularity"] = plan["recompute"]
    if result.steps is not None:
        settings["grpo.max_num_steps"] = round(result.steps)
    gaps = (
        f"policy.max_total_sequence_length: the design has a mean prompt alone; {prompt:,} tokens "
        f"are {PROMPT_ROOM} times it",
        "the reward and the data set: env and data are those of the configuration",
        *repeated(result),
        *ray_cluster(nodes),
    )
    command = f"uv run examples/run_grpo.py --config {CONFIG}"
    return Recipe(command, texts(settings), gaps, changed(design, TRAINER), result)


def engine_settings(r: RolloutRow, nodes: int, each: int) -> dict[str, object]:
    """The engine: its replicas, its memory, and the devices that are its own."""
    out: dict[str, object] = {
        "policy.generation.backend": r["engine"],
        "policy.generation.max_new_tokens": round(r["max_response"]),
        "policy.generation.vllm_cfg.async_engine": r["lag"] > 0,
        "policy.generation.vllm_cfg.tensor_parallel_size": r["tp"],
        "policy.generation.vllm_cfg.gpu_memory_utilization": r["kv_fraction"],
        "policy.generation.colocated.enabled": r["colocated"],
    }
    if not r["colocated"]:
        own = "policy.generation.colocated.resources"
        if nodes > 1 and r["devices"] % each:
            allowed = f"whole nodes of {each}"
            raise DesignError("job.rollout.devices", r["devices"], allowed, each)
        out[f"{own}.num_nodes"] = r["devices"] // each if nodes > 1 else "null"
        out[f"{own}.gpus_per_node"] = each if nodes > 1 else r["devices"]
    return out
