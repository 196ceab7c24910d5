"""A kit put together: plan.json, the framework's files, scripts, README.md and checkpoint.md."""

from __future__ import annotations

import json
from dataclasses import asdict

from ..base.json import clean
from ..base.units import DAY_S
from .env import environment, flags, site
from .guide import (
    budget,
    data_plan,
    first_hour,
    justification,
    network,
    observability,
    room,
    span,
    troubles,
)
from .record import SEED, rotary_base
from .scripts import render, scripts
from .state import state_bytes

SHAPE = (
    "layers",
    "hidden",
    "ffn_hidden",
    "heads",
    "kv_heads",
    "head_dim",
    "vocab",
    "mlp",
    "attention",
    "tied_embeddings",
    "experts",
    "top_k",
    "expert_ffn_hidden",
    "shared_ffn_hidden",
    "moe_layers",
    "moe_layout",
    "mtp_layers",
    "q_lora",
    "kv_lora",
    "qk_nope",
    "qk_rope",
    "v_head_dim",
    "window",
    "windowed_layers",
    "norm_bias",
    "final_norm",
    "qk_norm",
    "position_rows",
    "qkv_bias",
    "out_bias",
    "mlp_bias",
    "head_bias",
)
STATED = ("fsdp", "accelerate", "torchtitan", "ddp", "deepspeed")
KEEP = 3


def shape(model) -> dict:
    """The model's dimensions as plain values."""
    return {k: getattr(model, k) for k in SHAPE} | {"rope_base": rotary_base(model)}


def training(launch) -> dict:
    """What the kit's own trainers read: the plan, the job, and the arithmetic that they hold
    themselves against."""
    from . import learning_rate

    p, job = launch.plan, launch.phase
    chip = launch.cluster.accelerator
    kept = {}
    if launch.to in STATED and p["tp"] * p["pp"] * p["ep"] == 1:
        kept = state_bytes(
            launch.to,
            p["sharding"],
            p["dp"] * p["cp"],
            launch.params.total,
            precision=job.precision,
            optimizer=job.optimizer,
            shard_group=p["shard_group"],
        )
    return dict(
        dp=p["dp"],
        sharding=p["sharding"],
        shard_group=p["shard_group"],
        micro_batch=p["micro_batch"],
        grad_accum=p["grad_accum"],
        recompute=p["recompute"],
        recompute_layers=p["recompute_layers"],
        precision=job.precision,
        global_batch=job.global_batch,
        seq_len=job.seq_len,
        vocab=launch.model.vocab,
        steps=launch.steps,
        save_steps=launch.save_steps,
        keep=KEEP,
        async_save=True,
        seed=SEED,
        lr=learning_rate(launch.params.active),
        flops_per_token=launch.figures["flops_per_token"],
        peak_flops=chip.peak_flops(job.precision),
        state_bytes={k: round(v) for k, v in kept.items()},
    )


def kit(launch, module) -> dict[str, str]:
    """All files of one phase's kit, name to text."""
    variables = environment(launch, module)
    about = dict(
        environment=variables,
        train=training(launch),
        shape=shape(launch.model),
        module=module,
        wall_s=None if launch.figures["days"] is None else launch.figures["days"] * DAY_S,
    )
    own = module.files(launch, about)
    about["names"] = [*own, "env.sh", "launch.sh", "plan.json"]
    plan = plan_json(launch, about)
    out = {
        **own,
        **scripts(launch, module, about),
        "plan.json": json.dumps(clean(plan), indent=1, ensure_ascii=True, allow_nan=False) + "\n",
    }
    words = module.WORDS
    known = about | dict(
        launch=launch,
        plan=plan,
        why=justification(launch),
        troubles=troubles(launch, module),
        budget=budget(launch, about["wall_s"], words),
        data=data_plan(launch, words),
        watch=observability(launch, words),
        first=first_hour(launch, words),
        network=network(launch),
        site=site(launch),
        flags=flags(launch) if launch.to == "maxtext" else (),
        notes=module.notes(launch) if hasattr(module, "notes") else [],
        words=words,
        span=span,
        room=room(launch, words),
        equivalent=getattr(module, "equivalent", lambda _: "")(launch),
        files=sorted(out),
        saves=module.SAVES,
        own=sorted(own),
    )
    known["describe"] = describe
    return {
        **out,
        "README.md": render("README.md.j2", **known),
        "checkpoint.md": render("checkpoint.md.j2", **known),
    }


def plan_json(launch, about) -> dict:
    """Every value that the other files carry, and where it came from."""
    return dict(
        name=launch.name,
        framework=launch.to,
        version=about["module"].VERSION,
        on=launch.on,
        plan=dict(launch.plan),
        assessed=dict(launch.asked),
        not_expressed=[asdict(g) for g in launch.gaps],
        devices=launch.devices,
        nodes=launch.nodes,
        devices_per_node=launch.per_node,
        last_node=launch.last_node,
        accelerator=launch.cluster.accelerator.id,
        family=launch.cluster.accelerator.family,
        layers_by_stage=list(launch.stages),
        seq_len=launch.phase.seq_len,
        global_batch=launch.phase.global_batch,
        tokens=launch.phase.tokens,
        steps=launch.steps,
        precision=launch.phase.precision,
        optimizer=launch.phase.optimizer,
        params=int(launch.params.total),
        shape=about["shape"],
        train=about["train"],
        memory_bytes=dict(launch.memory),
        step_s=launch.step_s,
        assessed_step_s=launch.asked_step_s,
        figures=dict(launch.figures),
        checkpoint=dict(
            every_steps=launch.save_steps,
            interval_s=launch.figures["checkpoint_interval_s"],
            bytes=launch.figures["checkpoint_bytes"],
            keep=KEEP,
        ),
        environment=[v._asdict() for v in about["environment"]],
        assumed=list(launch.assumed),
    )


def describe(plan) -> str:
    """A plan in one line."""
    out = [
        f"{k} {plan[k]}"
        for k in ("tp", "cp", "pp", "vpp", "dp", "ep", "etp")
        if plan[k] > 1 or k == "dp"
    ]
    out += [plan["sharding"]] if plan["sharding"] != "none" else []
    out += [f"micro-batch {plan['micro_batch']}", f"{plan['grad_accum']} accumulated"]
    return " · ".join(
        out
        + ([f"{plan['recompute']} recompute"] if plan["recompute"] != "none" else [])
        + ([f"offload {plan['offload']}"] if plan["offload"] != "none" else [])
    )
