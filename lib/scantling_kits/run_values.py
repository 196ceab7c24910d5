"""What all files of a kit are filled from: environment, the trainers' plan, the model's shape, the
learning rate."""

from typing import Any

from scantling.base.units import DAY_S
from scantling.catalogue.models.shape import Model
from scantling.catalogue.published_laws import LR_LAWS
from scantling.catalogue.scaling_laws import learning_rate_advice, peak_learning_rate

from .env import environment
from .launch_plan import SEED, LaunchPlan, norm_epsilon, rotary_base
from .rank_state import state_bytes
from .values import RunValues, Train

TOKENS_A_PARAMETER = 20  # of a run whose design names none


def run_values(launch: LaunchPlan) -> RunValues:
    """The values of one launch plan."""
    days = launch.figures.days
    lr, lr_source = learning_rate(launch)
    return RunValues(
        environment=environment(launch),
        train=training(launch, lr),
        shape=shape(launch.model),
        wall_s=days and days * DAY_S,
        lr_source=lr_source,
    )


def learning_rate(launch: LaunchPlan) -> tuple[float, str]:
    """(peak learning rate, where it is from): the start that the design and the report name, at the
    run's tokens (20 a parameter where the design names none). Where they name none, a tenth of the
    lowest law, which the reader has to replace."""
    active = float(launch.params.active)
    phase = launch.phase
    tokens = launch.run_tokens or TOKENS_A_PARAMETER * active
    advice = learning_rate_advice(active, tokens, phase.optimizer, phase.from_checkpoint)
    if advice.start is not None:
        laws = ", ".join(f"{x['value']:.1e} {x['source'].split(',')[0]}" for x in advice.laws)
        return advice.start, f"the middle of published laws: {laws}"
    least = min(peak_learning_rate(active, tokens, law) for law in LR_LAWS)
    return float(f"{least / 10:.2g}"), f"a placeholder to be replaced: {advice.why}"


def shape(m: Model) -> dict[str, Any]:
    """The model's dimensions as plain values."""
    return {
        "layers": m.layers,
        "hidden": m.hidden,
        "ffn_hidden": m.ffn_hidden,
        "heads": m.heads,
        "kv_heads": m.kv_heads,
        "head_dim": m.head_dim,
        "vocab": m.vocab,
        "mlp": m.mlp,
        "attention": m.attention,
        "tied_embeddings": m.tied_embeddings,
        "experts": m.experts,
        "top_k": m.top_k,
        "expert_ffn_hidden": m.expert_ffn_hidden,
        "shared_ffn_hidden": m.shared_ffn_hidden,
        "moe_layers": m.moe_layers,
        "moe_layout": m.moe_layout,
        "mtp_layers": m.mtp_layers,
        "q_lora": m.q_lora,
        "kv_lora": m.kv_lora,
        "qk_nope": m.qk_nope,
        "qk_rope": m.qk_rope,
        "v_head_dim": m.v_head_dim,
        "window": m.window,
        "windowed_layers": m.windowed_layers,
        "norm_bias": m.norm_bias,
        "final_norm": m.final_norm,
        "qk_norm": m.qk_norm,
        "position_rows": m.position_rows,
        "qkv_bias": m.qkv_bias,
        "out_bias": m.out_bias,
        "mlp_bias": m.mlp_bias,
        "head_bias": m.head_bias,
        "rope_base": rotary_base(m),
        "norm_eps": norm_epsilon(m),
    }


def training(launch: LaunchPlan, lr: float) -> Train:
    """What the kit's own trainers read."""
    p = launch.plan
    job = launch.phase
    return Train(
        dp=p.dp,
        sharding=p.sharding,
        shards=launch.shards,
        micro_batch=p.micro_batch,
        grad_accum=p.grad_accum,
        recompute=p.recompute,
        recompute_layers=p.recompute_layers,
        eager=bool(launch.does.eager_tp > 0),
        precision=job.precision,
        global_batch=job.global_batch,
        seq_len=job.seq_len,
        vocab=launch.model.vocab,
        steps=launch.steps,
        save_steps=launch.save_steps,
        keep=launch.keep,
        async_save=True,
        seed=SEED,
        lr=lr,
        flops_per_token=launch.figures.flops_per_token,
        peak_flops=launch.cluster.accelerator.peak_flops(job.precision),
        state_bytes=rank_state(launch),
    )


def rank_state(launch: LaunchPlan) -> dict[str, int]:
    """Bytes of one rank's state by kind, where the framework's layout is stated and data
    parallelism alone splits the model; else {}."""
    p = launch.plan
    states = launch.framework.states
    if not states or p.tp * p.pp * p.ep > 1:
        return {}
    sizes = state_bytes(
        states,
        p.sharding,
        launch.shards * p.cp,
        launch.parameters,
        precision=launch.phase.precision,
        optimizer=launch.phase.optimizer,
    )
    return {kind: round(size) for kind, size in sizes.items()}
