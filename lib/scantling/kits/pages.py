"""A kit put together: plan.json, the framework's files, scripts, README.md and checkpoint.md."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

from ..base.json import clean
from ..base.units import DAY_S
from .env import environment, flags, site
from .guide import bus_rates, justification, troubles, unknown_network
from .record import NORM_EPSILON, SEED, rotary_base
from .render import filled, lines, render, rows
from .scripts import scripts
from .state import state_bytes

SHAPE = (
    "layers hidden ffn_hidden heads kv_heads head_dim vocab mlp attention "
    "tied_embeddings experts top_k expert_ffn_hidden shared_ffn_hidden moe_layers "
    "moe_layout mtp_layers q_lora kv_lora qk_nope qk_rope v_head_dim window "
    "windowed_layers norm_bias final_norm qk_norm position_rows qkv_bias out_bias "
    "mlp_bias head_bias"
).split()
TRAINED = "dp sharding shard_group micro_batch grad_accum recompute recompute_layers".split()
KEEP = 3


def learning_rate(parameters: float) -> float:
    """Peak learning rate by size: Brown et al. 2020, table 2.1, interpolated in the logarithms; a
    start, not a result."""
    sizes, rates = (
        (125e6, 350e6, 760e6, 1.3e9, 2.7e9, 6.7e9, 13e9, 175e9),
        (6e-4, 3e-4, 2.5e-4, 2e-4, 1.6e-4, 1.2e-4, 1e-4, 6e-5),
    )
    x = min(max(parameters, sizes[0]), sizes[-1])
    i = max(k for k in range(len(sizes) - 1) if sizes[k] <= x)
    t = math.log(x / sizes[i]) / math.log(sizes[i + 1] / sizes[i])
    return float(f"{math.exp(math.log(rates[i]) * (1 - t) + math.log(rates[i + 1]) * t):.2g}")


def shape(model) -> dict:
    """The model's dimensions as plain values."""
    return {k: getattr(model, k) for k in SHAPE} | {"rope_base": rotary_base(model)}


def training(launch) -> dict:
    """What the kit's own trainers read: the plan, the job, and the arithmetic that they hold
    themselves against."""
    p, job = launch.plan, launch.phase
    chip = launch.cluster.accelerator
    kept = {}
    if launch.framework.states and p["tp"] * p["pp"] * p["ep"] == 1:
        kept = state_bytes(
            launch.framework.states,
            p["sharding"],
            p["dp"] * p["cp"],
            launch.params.total,
            precision=job.precision,
            optimizer=job.optimizer,
            shard_group=p["shard_group"],
        )
    return (
        {k: p[k] for k in TRAINED}
        | {k: getattr(job, k) for k in ("precision", "global_batch", "seq_len")}
        | dict(
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
    )


def kit(launch) -> dict[str, str]:
    """All files of one phase's kit, name to text."""
    framework = launch.framework
    variables = environment(launch)
    about = dict(
        environment=variables,
        train=training(launch),
        shape=shape(launch.model),
        wall_s=None if launch.figures["days"] is None else launch.figures["days"] * DAY_S,
    )
    own = framework.files(launch, about)
    about["names"] = [
        *own,
        "env.sh",
        "launch.sh",
        "plan.json",
    ]
    plan = plan_json(launch, about)
    out = {
        **own,
        **scripts(launch, about),
        "plan.json": json.dumps(
            clean(plan),
            indent=1,
            ensure_ascii=True,
            allow_nan=False,
        )
        + "\n",
    }
    known = about | dict(
        launch=launch,
        plan=plan,
        why=justification(launch),
        troubles=troubles(launch),
        budget=rows(
            "guide",
            "budget",
            launch,
            about["wall_s"],
        ),
        data=lines("guide", "data", launch),
        watch=lines("guide", "watch", launch),
        first=lines(
            "guide",
            "first",
            launch,
            bus_rates(launch),
            unknown_network(launch),
        ),
        network=lines("guide", "network", launch),
        site=site(launch),
        flags=flags(launch),
        notes=filled(
            framework.notes.values(),
            launch=launch,
            base=rotary_base(launch.model),
            epsilon=NORM_EPSILON,
        ),
        framework=framework,
        room=lines("guide", "room", launch)[0],
        equivalent=framework.equivalent.format(launch=launch),
        files=sorted(out),
        saves=framework.saves,
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

    def own(record, names):
        return {name: getattr(record, name) for name in names.split()}

    figures, chip = launch.figures, launch.cluster.accelerator
    return dict(
        name=launch.name,
        framework=launch.to,
        version=launch.framework.version,
        on=launch.on,
        plan=launch.plan,
        assessed=launch.asked,
        not_expressed=[asdict(g) for g in launch.gaps],
        **own(launch, "devices nodes"),
        devices_per_node=launch.per_node,
        last_node=launch.last_node,
        accelerator=chip.id,
        family=chip.family,
        layers_by_stage=launch.stages,
        **own(launch.phase, "seq_len global_batch tokens"),
        steps=launch.steps,
        **own(launch.phase, "precision optimizer"),
        params=int(launch.params.total),
        shape=about["shape"],
        train=about["train"],
        memory_bytes=launch.memory,
        step_s=launch.step_s,
        assessed_step_s=launch.asked_step_s,
        figures=figures,
        checkpoint=dict(
            every_steps=launch.save_steps,
            interval_s=figures["checkpoint_interval_s"],
            bytes=figures["checkpoint_bytes"],
            keep=KEEP,
        ),
        environment=[v._asdict() for v in about["environment"]],
        assumed=launch.assumed,
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
