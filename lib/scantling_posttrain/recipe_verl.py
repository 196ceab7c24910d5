"""A policy as a run of verl 0.9: overrides of trainer/config/ppo_trainer.yaml with Megatron as the
engine of the actor, which Hydra refuses where it does not know a name."""

from collections.abc import Mapping
from typing import Any

from scantling.base.errors import DesignError
from scantling.catalogue.words import POLICIES, Method
from scantling.design.design import Design
from scantling.design.methods import method_of

from .recipe import (
    PROMPT_ROOM,
    SIXTEEN_BIT,
    Recipe,
    changed,
    machine,
    planned,
    prompt_tokens,
    ray_cluster,
    texts,
)

# devices that sample and train in turn; None: all of them
SHARED: Mapping[str, Any] = {
    "job.rollout.colocated": True,
    "job.rollout.devices": None,
    "job.rollout.lag": 0,
    **SIXTEEN_BIT,
}
MICRO_TOKENS = 2  # rows of the longest sample that a device of a cp group takes at once


def verl(design: Design) -> Recipe:
    """A policy under verl's hybrid engine, which shares the devices: another layout is searched
    again with them shared."""
    if method_of(design) not in POLICIES:
        raise DesignError("--to", "verl", "torchtune", problem="trains policies alone")
    result = planned(design, SHARED)
    plan, r = result.plan, result.rollout
    assert plan is not None and r is not None
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
    command = "python3 -m verl.trainer.main_ppo model_engine=megatron"
    gaps += ray_cluster(nodes)
    return Recipe(command, texts(settings), (*gaps,), changed(design, SHARED), result)
