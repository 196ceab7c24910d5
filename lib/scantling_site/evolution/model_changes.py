"""Changes of the model and of its training: precision, more experts, longer context."""

from typing import Any

from scantling.base.errors import DesignError
from scantling.catalogue.models.shape import Model
from scantling.physics.gather import situation
from scantling.physics.memory.peak import memory
from scantling.physics.step import step_time
from scantling.plans.plan_names import short
from scantling.plans.prepare import prepare

from .change import (
    DIP,
    RESIZED,
    Base,
    Change,
    figure,
    memory_figure,
    share_of_step,
    step_figure,
    unsaid,
)


def other_precision(b: Base, name: str) -> Change | None:
    """The same plan in another precision of the matrix products."""
    s = b.s
    precision = s.phase.precision
    offered = name in s.cluster.accelerator.precisions()
    if not offered or name in precision or precision.endswith(name[-3:]):
        return None
    try:
        resolved = prepare(b.design.change({f"{b.job}.precision": None, "job.precision": name}))
        case = situation(resolved, resolved.main_phase).cases(s.case.plan)
    except DesignError:
        return None
    now = s.model_step_s
    then = float(step_time(case).total)
    had = s.chosen.memory
    used = float(memory(case).total)
    peak = float(case.chip.linear_flops / s.case.chip.linear_flops)
    faster = now / then
    breaks = ""
    if faster < peak * (1 - DIP):
        rest = 1 - float(s.chosen.step.gemm) / now
        breaks = (
            f"{faster:.2f} times as fast, not {peak:.1f}: {rest:.0%} of the step is not matrix "
            "products"
        )
    return Change(
        id=f"precision-{name}",
        what=f"{name} matrix products, same plan",
        figure=figure("step", "s", now, then),
        more=(
            figure("memory per device", "bytes", float(had.total), used),
            figure("peak", "ratio", 1.0, peak),
        ),
        works=used <= float(had.capacity),
        breaks=breaks,
        mend="fused casts, fewer bytes outside the products",
        confirm="loss against bf16 at small scale",
    )


def sparser_model(m: Model) -> dict[str, Any] | None:
    """Twice the experts at the same active parameters; a dense model becomes eight experts of which
    two run, each half as wide. In the fields of `model` of a design."""
    shape: dict[str, Any] = {
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
    }
    if m.attention == "mla":
        shape |= {
            "q_lora": m.q_lora,
            "kv_lora": m.kv_lora,
            "qk_nope": m.qk_nope,
            "qk_rope": m.qk_rope,
            "v_head_dim": m.v_head_dim,
        }
    if m.is_moe:
        return shape | {
            "top_k": m.top_k,
            "expert_ffn_hidden": m.expert_ffn_hidden,
            "shared_ffn_hidden": m.shared_ffn_hidden,
            "moe_layers": m.moe_layers,
            "mtp_layers": m.mtp_layers,
            "experts": 2 * m.experts,
        }
    if m.ffn_hidden % 2:
        return None
    return shape | {
        "experts": 8,
        "top_k": 2,
        "expert_ffn_hidden": m.ffn_hidden // 2,
        "moe_layers": m.layers,
    }


def sparser(b: Base) -> Change | None:
    """More experts for the same FLOPs a token."""
    m = b.s.model
    shape = sparser_model(m)
    if shape is None:
        return None
    then = b.look({"model": shape, **b.unpinned})
    what = "8 experts of half the width, 2 active: the same FLOPs a token"
    if m.is_moe:
        what = f"{2 * m.experts} experts instead of {m.experts}, the same {m.top_k} active"
    if then is None:
        return Change(
            id="sparsity",
            what=what,
            figure=figure("time of a step over today's", "ratio", 1.0, None),
            works=False,
            breaks="the experts do not fit",
            mend="more devices, or offload",
        )
    now = b.coarse
    ratio = then.model_step_s / now.model_step_s
    breaks = ""
    if ratio - 1 > DIP:
        breaks = f"the step takes {ratio - 1:+.0%} for the same FLOPs a token: {short(then.plan)}"
    return Change(
        id="sparsity",
        what=what,
        figure=figure("time of a step over today's", "ratio", 1.0, ratio),
        more=(
            step_figure(now, then),
            figure("parameters", "count", now.a.params, then.a.params),
            memory_figure(now, then),
            figure(
                "exposed expert traffic", "s", float(now.chosen.step.ep), float(then.chosen.step.ep)
            ),
            figure("ep", "count", now.plan["ep"], then.plan["ep"]),
        ),
        breaks=breaks,
        mend="node-limited routing, overlapped dispatch",
        confirm="routing balance and quality at equal active parameters",
    )


def longer(b: Base, k: int) -> Change | None:
    """k times the sequence at the same tokens a step."""
    phase = b.s.phase
    batch = phase.global_batch // k
    tokens = phase.seq_len * k
    if batch < 1:
        return None
    now = b.coarse
    then = b.look(
        {
            f"{b.job}.seq_len": tokens,
            f"{b.job}.global_batch": batch,
            f"{b.job}.global_batch_tokens": None,
            **unsaid("plan", (*RESIZED, "cp")),
        }
    )
    what = f"sequences of {tokens:,} tokens, {batch:,} a step"
    confirm = "quality at the longer context"
    if then is None:
        return Change(
            id=f"context-{k}",
            what=what,
            figure=figure("time of the same tokens", "ratio", 1.0, None),
            works=False,
            breaks="activations do not fit on these devices",
            mend="more context parallelism, full recompute, offload",
            confirm=confirm,
        )
    times = then.model_step_s / now.model_step_s
    breaks = ""
    if times > 1 + DIP:
        breaks = f"the same tokens take {times:.2f} times as long"
    return Change(
        id=f"context-{k}",
        what=what,
        figure=figure("time of the same tokens", "ratio", 1.0, times),
        more=(
            step_figure(now, then),
            figure("cp", "count", now.plan["cp"], then.plan["cp"]),
            figure(
                "attention's share",
                "share",
                share_of_step(now, "attention"),
                share_of_step(then, "attention"),
            ),
            figure(
                "exposed context traffic",
                "s",
                float(now.chosen.step.cp),
                float(then.chosen.step.cp),
            ),
            figure("MFU", "share", now.a.mfu_shown, then.a.mfu_shown),
            memory_figure(now, then),
        ),
        breaks=breaks,
        mend="attention that is not quadratic (windows, sparse), or the long phase last and short",
        confirm=confirm,
    )
