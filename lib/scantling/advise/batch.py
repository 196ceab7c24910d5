"""The global batch of a design as the convergence constraint: where it stands to published critical
batches, which plans keep it, what the learning rate does if it changes."""

from __future__ import annotations

from itertools import islice

import numpy as np

from ..base.show import percent
from ..physics.cases import devices
from ..verdict.limits import guessed
from .alternatives import alternatives
from .scaling_laws import (
    BATCH_LAWS,
    LR_LAWS,
    LR_RULES,
    batch_advice,
    learning_rate_factor,
    peak_learning_rate,
)
from .words import say

SHAPE = ("dp", "micro_batch", "grad_accum", "tp", "cp", "pp")
SHAPES = 6  # other shapes of the same batch that are listed


def batch_guide(assessment, others=None) -> dict:
    """Guidance on the global batch of an assessed design's main phase, as plain data; `lines` says
    it in words.

    critical, optimal : [{law, tokens, definition, fitted, source}] published batch laws at the
    run's tokens and compute (6 x active parameters x tokens)
    standing : "small" below every critical estimate, "contested" between, "large" above all, None
    without tokens
    extra_tokens : (low, high) share of the tokens that the batch spends above the least, by those
    laws
    learning_rate : peak [{law, value, source}] as a place to start from; if_batch [{times, low,
    high}] factor on it where the batch is halved or doubled:
    from none (above the critical batch) to the square-root rule of Adam
    reshapes : other (dp, micro_batch, grad_accum) that make the same batch, fastest first, with the
    step of the best plan of each
    flags : what an ML specialist must confirm. Every law is fitted on models below 4B parameters.
    """
    if not assessment.phases:
        return {}
    r, chosen = assessment.resolved, assessment.chosen
    phase, plan = chosen.phase, chosen.plan
    tokens = phase.global_batch * phase.seq_len
    total = sum(p.tokens or 0.0 for p in r.phases) or None
    active = float(r.params.active)
    out = dict(
        sequences=int(phase.global_batch),
        tokens=float(tokens),
        steps=phase.tokens / tokens if phase.tokens else None,
        dp=plan["dp"],
        micro_batch=plan["micro_batch"],
        grad_accum=plan["grad_accum"],
        standing=None,
        extra_tokens=None,
        critical=[],
        optimal=[],
        flags=[],
    )
    peaks = []
    if total:
        said = batch_advice(tokens, total, compute_flops=6 * active * total)
        out |= dict(
            standing=said.standing,
            extra_tokens=list(said.extra_tokens),
            critical=_laws(said.critical_tokens),
            optimal=_laws(said.optimal_tokens),
            flags=list(said.flags),
        )
        peaks = [
            dict(
                law=k,
                value=float(peak_learning_rate(active, total, k)),
                source=row.source,
            )
            for k, row in LR_LAWS.items()
        ]
    rule = LR_RULES["square-root"]
    ends = [
        (times, *sorted((1.0, float(learning_rate_factor(1.0, times, "square-root")))))
        for times in (0.5, 2.0)
    ]
    out["learning_rate"] = dict(
        peak=peaks,
        if_batch=[
            dict(
                times=t,
                low=a,
                high=b,
            )
            for t, a, b in ends
        ],
        source=f"{rule.source}; {LR_RULES['constant'].source}",
    )
    out["reshapes"] = reshapes_of(assessment, others)
    out["lines"] = _lines(out, guessed(assessment, "global_batch"), phase)
    return out


def _laws(found: dict[str, float]) -> list[dict]:
    """Batches by law, with what each law says of itself."""
    said = ("definition", "fitted", "source")
    return [
        dict(
            law=k,
            tokens=v,
        )
        | {name: getattr(BATCH_LAWS[k], name) for name in said}
        for k, v in found.items()
    ]


def reshapes_of(
    assessment,
    others=None,
    most: int = SHAPES,
) -> list[dict]:
    """Other ways to make the same global batch, the fastest plan of each, fastest first:
    [{dp, micro_batch, grad_accum, tp, cp, pp, devices_used, step_s, memory_share, step_ratio}];
    step_ratio is the step over that of today's plan.

    dp x micro_batch x grad_accum is the global batch in every row: the optimizer's steps are the
    same up to rounding and the order of sums.
    Pins of the plan are not kept. Empty where the plan does not fit.
    """
    found = others or alternatives(assessment)
    if found is None:
        return []
    rows = found.order[found.practised[found.order]]
    _, first = np.unique(
        found.plan.dp[rows] * 1e6 + found.plan.micro_batch[rows], return_index=True
    )
    used, now = devices(found.plan), assessment.chosen
    plans = ((i, found.row(int(i))) for i in rows[np.sort(first)])
    others = (
        {k: plan[k] for k in SHAPE}
        | dict(
            devices_used=int(used[i]),
            step_s=float(found.step_s[i]),
            memory_share=float(found.total_bytes[i] / found.capacity),
            step_ratio=float(found.step_s[i] / now.step.total),
        )
        for i, plan in plans
        if any(plan[k] != now.plan[k] for k in ("dp", "micro_batch"))
    )
    return list(islice(others, most))


def _lines(
    g,
    assumed,
    phase,
) -> list[str]:
    """The guidance in words, with its sources."""
    steps = say("batch-steps", steps=g["steps"]) if g["steps"] else ""
    out = [
        say(
            "batch",
            tokens=_million(g["tokens"]),
            g=g,
            phase=phase,
            steps=steps,
        )
    ]
    if g["critical"]:
        ends = sorted(g["critical"], key=lambda x: x["tokens"])
        laws = (f"{_million(x['tokens'])} ({_name(x)}: {x['definition']})" for x in ends)
        stand = {
            "small": "below",
            "contested": "between",
            "large": "above",
        }[g["standing"]]
        extra = " to ".join(dict.fromkeys(percent(x, 0) for x in g["extra_tokens"]))
        out.append(
            say(
                "critical",
                laws=", ".join(laws),
                stand=stand,
                extra=extra,
            )
            + (say("critical-large") if g["standing"] == "large" else "")
        )
        peaks = (f"{x['value']:.1e} ({_name(x)})" for x in g["learning_rate"]["peak"])
        out.append(say("peak-rates", laws=", ".join(peaks)))
    if g["reshapes"]:
        shapes = (
            say(
                "reshape",
                more=x["step_ratio"] - 1,
                **x,
            )
            for x in g["reshapes"][:3]
        )
        out.append(
            say(
                "reshapes",
                shapes=", ".join(shapes),
                best=g["reshapes"][0],
            )
        )
    half, twice = g["learning_rate"]["if_batch"]
    out.append(
        say(
            "learning-rate",
            half=half,
            twice=twice,
        )
    )
    return [*out, say("batch-assumed")] if assumed else out


def _million(tokens: float) -> str:
    return f"{tokens / 1e6:,.3g}M" if tokens >= 1e6 else f"{tokens / 1e3:,.3g}k"


def _name(law: dict) -> str:
    return law["source"].split(",")[0]
