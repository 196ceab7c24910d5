"""The global batch of a design as the convergence constraint: where it stands to published critical
batches, which plans keep it, what the learning rate does if it changes."""

from itertools import islice

import numpy as np

from ..base.show import percent, shown
from ..catalogue.scaling_laws import (
    BATCH_LAWS,
    LR_RULES,
    batch_advice,
    learning_rate_advice,
    learning_rate_factor,
)
from ..physics.cases import devices
from ..verdict.limits import guessed_batch
from .alternatives import alternatives
from .words import say

SHAPE = ("dp", "micro_batch", "grad_accum", "tp", "cp", "pp")
STANDS = {"small": "below", "contested": "between", "large": "above"}
SHAPES = 6  # other shapes of the same batch that are listed


def batch_guide(assessment) -> dict:
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
    r = assessment.resolved
    chosen = assessment.chosen
    phase = chosen.phase
    plan = chosen.plan
    tokens = phase.global_batch * phase.seq_len
    total = sum(p.tokens or 0.0 for p in r.phases)
    active = float(r.params.active)
    said = batch_advice(tokens, total, compute_flops=6 * active * total) if total else None
    out = {
        "sequences": int(phase.global_batch),
        "tokens": float(tokens),
        "steps": phase.tokens / tokens if phase.tokens else None,
        **{k: plan[k] for k in ("dp", "micro_batch", "grad_accum")},
        "standing": said and said.standing,
        "extra_tokens": said and list(said.extra_tokens),
        "critical": _laws(said.critical_tokens if said else {}),
        "optimal": _laws(said.optimal_tokens if said else {}),
        "flags": list(said.flags if said else ()),
    }
    advice = learning_rate_advice(
        active, total or 20 * active, phase.optimizer, phase.from_checkpoint
    )
    factors = ((times, float(learning_rate_factor(1.0, times))) for times in (0.5, 2.0))
    out["learning_rate"] = {
        "start": advice.start if total else None,
        "why": advice.why,
        "peak": list(advice.laws) if total else [],
        "if_batch": [
            {"times": times, "low": min(1.0, factor), "high": max(1.0, factor)}
            for times, factor in factors
        ],
        "source": "; ".join(LR_RULES[rule].source for rule in ("square-root", "constant")),
    }
    out["reshapes"] = reshapes_of(assessment)
    out["lines"] = _lines(out, guessed_batch(assessment), phase)
    return out


def _laws(found: dict) -> list:
    """Batches by law, with what each law says of itself."""
    said = ("definition", "fitted", "source")
    return [
        {"law": k, "tokens": v} | {name: getattr(BATCH_LAWS[k], name) for name in said}
        for k, v in found.items()
    ]


def reshapes_of(assessment, most: int = SHAPES) -> list:
    """Other ways to make the same global batch, the fastest plan of each, fastest first:
    [{dp, micro_batch, grad_accum, tp, cp, pp, devices_used, step_s, memory_share, step_ratio}];
    step_ratio is the step over that of today's plan.

    dp x micro_batch x grad_accum is the global batch in every row: the optimizer's steps are the
    same up to rounding and the order of sums.
    Pins of the plan are not kept. Empty where the plan does not fit.
    """
    found = alternatives(assessment)
    if found is None:
        return []
    rows = found.order[found.practised[found.order]]
    _, first = np.unique(
        found.plan.dp[rows] * 1e6 + found.plan.micro_batch[rows], return_index=True
    )
    used = devices(found.plan)
    now = assessment.chosen
    plans = ((i, found.row(int(i))) for i in rows[np.sort(first)])
    others = (
        {k: plan[k] for k in SHAPE}
        | {
            "devices_used": int(used[i]),
            "step_s": float(found.step_s[i]),
            "memory_share": float(found.total_bytes[i] / found.capacity),
            "step_ratio": float(found.step_s[i] / now.step.total),
        }
        for i, plan in plans
        if any(plan[k] != now.plan[k] for k in ("dp", "micro_batch"))
    )
    return list(islice(others, most))


def _lines(g, assumed, phase) -> list:
    """The guidance in words, with its sources."""
    out = [
        say(
            "batch",
            tokens=shown(g["tokens"], "params"),
            g=g,
            phase=phase,
            steps=say("batch-steps", steps=g["steps"]) if g["steps"] else "",
        )
    ]
    rates = g["learning_rate"]
    shapes = g["reshapes"]
    if g["critical"]:
        ends = sorted(g["critical"], key=lambda x: x["tokens"])
        laws = (f"{shown(x['tokens'], 'params')} ({_name(x)}: {x['definition']})" for x in ends)
        line = say(
            "critical",
            laws=", ".join(laws),
            stand=STANDS[g["standing"]],
            extra=" to ".join(dict.fromkeys(percent(x, 0) for x in g["extra_tokens"])),
        )
        out += [
            line + (say("critical-large") if g["standing"] == "large" else ""),
            _peak_said(rates),
        ]
    if shapes:
        said = (say("reshape", more=x["step_ratio"] - 1, **x) for x in shapes[:3])
        out += [say("reshapes", shapes=", ".join(said), best=shapes[0])]
    half, twice = rates["if_batch"]
    out += [say("learning-rate", half=half, twice=twice)]
    return [*out, say("batch-assumed")] if assumed else out


def _peak_said(rates: dict) -> str:
    """Where the learning rate starts, with the spread of its sources, or why nothing is said."""
    peaks = ", ".join(f"{x['value']:.1e} ({_name(x)})" for x in rates["peak"])
    if rates["start"] is None:
        return say("no-peak-rate", why=rates["why"], laws=f" ({peaks})" if peaks else "")
    return say(
        "peak-rates",
        start=rates["start"],
        laws=peaks,
        why=f"; {rates['why']}" if rates["why"] else "",
    )


def _name(law: dict) -> str:
    return law["source"].split(",")[0]
