"""The global batch of a design as the convergence constraint: where it stands to published critical
batches, which plans keep it, what the learning rate does if it changes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..base.columns import Array
from ..base.show import params, percent
from ..catalogue.published_laws import BATCH_LAWS, LR_RULES
from ..catalogue.scaling_laws import batch_advice, learning_rate_advice, learning_rate_factor
from ..design.resolved import Phase
from ..physics.cases import devices
from ..plans.evaluate import Search, union
from ..plans.plan_names import fields_of_plan
from ..plans.refine import FINISHED, finished, refined
from ..verdict.assessment import Assessment
from ..verdict.limits import guessed_batch
from .alternatives import alternatives

SHAPE = ("dp", "micro_batch", "grad_accum", "tp", "cp", "pp")
SHAPES = 6  # other shapes of the same batch that are listed
SHAPES_IN_TEXT = 3  # of them, those that stand in the lines
Row = dict[str, Any]  # of `design --json`


def batch_guide(assessment: Assessment) -> Row:
    """Guidance on the global batch of an assessed design's main phase, as plain data; `lines` says
    it in words.

    critical, optimal : [{law, tokens, definition, fitted, source}] published batch laws at the
    run's tokens and compute (6 x active parameters x tokens)
    standing : "small" below every critical estimate, "contested" between, "large" above all, None
    without tokens
    extra_tokens : (low, high) share of the tokens that the batch spends above the least, by those
    laws
    learning_rate : peak [{law, value, source}] as a place to start from; if_batch [{times, low,
    high}] factor on it where the batch is halved or doubled: from none (above the critical batch)
    to the square-root rule of Adam
    reshapes : other (dp, micro_batch, grad_accum) that make the same batch, fastest first, with the
    step of the best plan of each
    flags : what an ML specialist must confirm. Every law is fitted on models below 4B parameters.
    """
    if not assessment.phases:
        return {}
    resolved = assessment.resolved
    chosen = assessment.chosen
    phase = chosen.phase
    plan = chosen.plan
    tokens = phase.global_batch * phase.seq_len
    total = sum(p.tokens or 0.0 for p in resolved.phases)
    active = float(resolved.params.active)
    advice = batch_advice(tokens, total, compute_flops=6 * active * total) if total else None
    guide: Row = {
        "sequences": int(phase.global_batch),
        "tokens": float(tokens),
        "steps": phase.tokens / tokens if phase.tokens else None,
        "dp": plan["dp"],
        "micro_batch": plan["micro_batch"],
        "grad_accum": plan["grad_accum"],
        "standing": advice and advice.standing,
        "extra_tokens": advice and list(advice.extra_tokens),
        "critical": _laws(advice.critical_tokens if advice else {}),
        "optimal": _laws(advice.optimal_tokens if advice else {}),
        "flags": list(advice.flags if advice else ()),
        "learning_rate": _learning_rate(active, total, phase),
        "reshapes": reshapes_of(assessment),
    }
    guide["lines"] = _lines(guide, phase)
    if guessed_batch(assessment):
        guide["lines"].append(
            "the batch itself was assumed: it is the first thing to settle with an ML specialist"
        )
    return guide


def _learning_rate(active: float, total: float, phase: Phase) -> Row:
    """Where the peak learning rate may start, and by what factors another batch moves it."""
    advice = learning_rate_advice(
        active, total or 20 * active, phase.optimizer, phase.from_checkpoint
    )
    factors = [(times, float(learning_rate_factor(1.0, times))) for times in (0.5, 2.0)]
    return {
        "start": advice.start if total else None,
        "why": advice.why,
        "peak": list(advice.laws) if total else [],
        "if_batch": [
            {"times": times, "low": min(1.0, factor), "high": max(1.0, factor)}
            for times, factor in factors
        ],
        "source": "; ".join(LR_RULES[rule].source for rule in ("square-root", "constant")),
    }


def _laws(batches: Mapping[str, float]) -> list[Row]:
    """Batches by law, with what each law says of itself."""
    return [
        {
            "law": id,
            "tokens": tokens,
            "definition": BATCH_LAWS[id].definition,
            "fitted": BATCH_LAWS[id].fitted,
            "source": BATCH_LAWS[id].source,
        }
        for id, tokens in batches.items()
    ]


def reshapes_of(assessment: Assessment, most: int = SHAPES) -> list[Row]:
    """Other ways to make the same global batch, the fastest plan of each, fastest first:
    [{dp, micro_batch, grad_accum, tp, cp, pp, devices_used, step_s, memory_share, step_ratio}];
    step_ratio is the step over that of today's plan.

    dp x micro_batch x grad_accum is the global batch in every row: the optimizer's steps are the
    same up to rounding and the order of sums.
    Pins of the plan are not kept. Empty where the plan does not fit.
    """
    search = alternatives(assessment)
    if search is None:
        return []
    first = search.only(best_of_shapes(search)[: most + 1])
    near = union([first, *refined(first.situation, [first])])
    search = union([near, *finished(near.only(best_of_shapes(near, FINISHED)))])
    used = np.asarray(devices(search.plan))
    now = assessment.chosen
    reshapes: list[Row] = []
    for i in best_of_shapes(search).tolist():
        if len(reshapes) == most:
            break
        plan = search.row(i)
        if plan["dp"] == now.plan["dp"] and plan["micro_batch"] == now.plan["micro_batch"]:
            continue
        reshapes.append(
            fields_of_plan(plan, SHAPE)
            | {
                "devices_used": int(used[i]),
                "step_s": float(search.step_s[i]),
                "memory_share": float(search.total_bytes[i] / search.capacity),
                "step_ratio": float(search.step_s[i] / now.step.total),
            }
        )
    return reshapes


def best_of_shapes(search: Search, each: int = 1) -> Array:
    """Rows of the fastest plans of each number of replicas and micro-batch, so many of each,
    fastest first."""
    rows = search.order[search.practised[search.order]]
    shapes = search.column("dp")[rows] * 1e6 + search.column("micro_batch")[rows]
    best = [np.flatnonzero(shapes == shape)[:each] for shape in np.unique(shapes)]
    kept: Array = rows[np.sort(np.concatenate([[], *best]).astype(int))]
    return kept


def _lines(guide: Row, phase: Phase) -> list[str]:
    """The guidance in words, with its sources."""
    steps = f", {guide['steps']:,.0f} steps" if guide["steps"] else ""
    lines = [
        f"{params(guide['tokens'])} tokens a step ({guide['sequences']:,} sequences of "
        f"{phase.seq_len:,}){steps}; dp {guide['dp']:,} x micro-batch {guide['micro_batch']:,} x "
        f"{guide['grad_accum']:,} accumulated"
    ]
    rates = guide["learning_rate"]
    if guide["critical"]:
        lines += [_critical_line(guide), _peak_line(rates)]
    if guide["reshapes"]:
        lines.append(_reshapes_line(guide["reshapes"]))
    half, twice = rates["if_batch"]
    lines.append(
        f"another batch changes the learning rate: x {half['low']:.2f} to {half['high']:.0f} at "
        f"half, x {twice['low']:.0f} to {twice['high']:.2f} at twice (Adam: square root well below "
        "the critical batch, none above it; betas and warm-up move too), to be confirmed by an ML "
        "specialist; laws are fitted below 4B parameters"
    )
    return lines


def _critical_line(guide: Row) -> str:
    """Where the batch stands to the critical batches of published laws."""
    laws = sorted(guide["critical"], key=lambda law: float(law["tokens"]))
    named = ", ".join(
        f"{params(law['tokens'])} ({_name(law)}: {law['definition']})" for law in laws
    )
    stand = {"small": "below", "contested": "between", "large": "above"}[guide["standing"]]
    extra = " to ".join(dict.fromkeys(percent(x, 0) for x in guide["extra_tokens"]))
    line = (
        f"critical batch at these tokens: {named}; this batch is {stand} them and spends about "
        f"{extra} more tokens than the least"
    )
    return f"{line}; a larger one buys little time" if guide["standing"] == "large" else line


def _peak_line(rates: Row) -> str:
    """Where the learning rate starts, with the spread of its sources, or why nothing is said."""
    peaks = ", ".join(f"{law['value']:.1e} ({_name(law)})" for law in rates["peak"])
    if rates["start"] is None:
        laws = f" ({peaks})" if peaks else ""
        return f"peak learning rate: none is given, {rates['why']}{laws}"
    why = f"; {rates['why']}" if rates["why"] else ""
    return (
        f"peak learning rate: {rates['start']:.2g}, the middle of published laws ({peaks}){why}; "
        "a start, not a setting"
    )


def _reshapes_line(reshapes: Sequence[Row]) -> str:
    """Other shapes of the same batch, with what each does to the step."""
    best = reshapes[0]
    shapes = ", ".join(
        f"dp {shape['dp']:,} x {shape['micro_batch']:,} x {shape['grad_accum']:,} "
        f"({percent(shape['step_ratio'] - 1, 1, '+')} step)"
        for shape in reshapes[:SHAPES_IN_TEXT]
    )
    return (
        f"the same batch otherwise: {shapes}; optimizer steps and learning rate stay as they are "
        f"(best: tp {best['tp']}, cp {best['cp']}, pp {best['pp']})"
    )


def _name(law: Row) -> str:
    """The paper of a law, without its year and place."""
    source: str = law["source"]
    return source.split(",")[0]
