"""What a budget of compute buys and what a global batch costs: published laws, each with its source
and range, no model of our own."""

from collections.abc import Mapping
from math import inf, prod, sqrt
from typing import Any, TypeVar

import numpy as np

from ..base.columns import Array, Column
from ..base.records import Known, Lines, record
from .published_laws import (
    BATCH_LAWS,
    FLAGS,
    LAWS,
    LR_LAWS,
    LR_RULES,
    RATES_OF,
    SPECIALIST,
    Surface,
)

Law = TypeVar("Law")


def _law(laws: Mapping[str, Law], law: str) -> Law:
    """The law of that name. Raises ValueError, listing the known ones."""
    if law not in laws:
        raise ValueError(f"unknown law {law!r}; known: {', '.join(laws)}")
    return laws[law]


def _surface(law: str) -> Surface:
    """The loss surface of a law. Raises ValueError for an unknown law or one without a surface."""
    surface = _law(LAWS, law).surface
    if surface is None:
        known = ", ".join(name for name, each in LAWS.items() if each.surface)
        raise ValueError(f"{law} fits no loss surface; laws with one: {known}")
    return surface


def compute_optimal(compute_flops: Column, law: str = "besiroglu-2024") -> tuple[Column, Column]:
    """Size and tokens of least loss for a budget of training compute. [(size, tokens), shapes of
    compute_flops]

    Parameters
    ----------
    compute_flops : float or array
        Training compute C [FLOP], model FLOP: devices × seconds × peak × MFU.
    law : str
        Key of LAWS.

    Notes
    -----
    From a surface, with C = 6·N·D: N = G·(C/6)^(beta/(alpha + beta)), G =
    (alpha·A/(beta·B))^(1/(alpha + beta)), D = C/(6·N) (Hoffmann et al. 2022, equation 4). From a
    frontier: N = k·C^a and D = C/(6·N). For deepseek-llm-2024 the size is the FLOP per token M and
    D = C/M. C = 6ND leaves attention out, which matters at long sequences.

    Raises
    ------
    ValueError
        For an unknown law.
    """
    frontier = _law(LAWS, law).frontier
    compute = np.asarray(compute_flops, dtype=float)
    if frontier is None:
        size = _surface_optimal(_surface(law), compute)
    else:
        units = compute / frontier.unit_flops
        size = frontier.k * units**frontier.exponent
        if frontier.k_tokens:
            return size[()], (frontier.k_tokens * units**frontier.tokens_exponent)[()]
    return size[()], (compute / (6 * size))[()]


def _surface_optimal(s: Surface, compute: Array) -> Array:
    """(alpha A / (beta B))^(1 / (alpha + beta)) (C / 6)^(beta / (alpha + beta)). [parameters]"""
    power = 1 / (s.alpha + s.beta)
    size: Array = (s.alpha * s.a / (s.beta * s.b)) ** power * (compute / 6) ** (s.beta * power)
    return size


def loss(params: Column, tokens: Column, law: str = "besiroglu-2024") -> Column:
    """Final training loss that a law's surface expects. [nats per token of the source's tokenizer
    and data; only differences carry over]

    L = E + A/N^alpha + B/D^beta, N parameters, D tokens seen once.

    Raises ValueError for an unknown law or one without a surface.
    """
    s = _surface(law)
    n, d = np.asarray(params, dtype=float), np.asarray(tokens, dtype=float)
    expected: Column = s.floor + s.a / n**s.alpha + s.b / d**s.beta
    return expected


def allocations(compute_flops: float) -> list[dict[str, Any]]:
    """Every law's answer to one budget, so that their spread is seen: {law, title, params, tokens,
    caveat, source} of each, in the order of LAWS.

    DeepSeek's FLOP per token becomes parameters as M/6, which leaves attention in: a little too
    many.
    """
    rows = []
    for id, law in LAWS.items():
        size, tokens = map(float, compute_optimal(compute_flops, id))
        rows.append(
            {
                "law": id,
                "params": size / 6 if law.size == "non-embedding FLOP per token" else size,
                "tokens": tokens,
                "title": law.title,
                "caveat": law.caveat,
                "source": law.source,
            }
        )
    return rows


def batch_size(x: Column, law: str = "zhang-2024") -> Column:
    """Critical or optimal global batch by a published law. [tokens per step, shape of x]

    Parameters
    ----------
    x : float or array
        What `BATCH_LAWS[law].of` names: training tokens, training compute [FLOP] or loss [nats per
        token].

    Notes
    -----
    The laws differ by a factor of ten at 1e12 tokens, partly by definition, partly because all are
    fitted on small models. Zhang and Bergsma agree that it grows with the tokens and hardly with
    the size. The critical batch starts near nothing and grows in training (McCandlish et al. 2018;
    Merrill et al. 2025, arXiv:2505.23971): a batch warm-up costs little.
    """
    row = _law(BATCH_LAWS, law)
    units: Array = np.asarray(x, dtype=float) / row.unit_x
    batch: Column = row.unit_tokens * row.k * units**row.exponent
    return batch


@record
class BatchAdvice:
    """How a global batch stands to the published laws.

    standing: "small" below every critical estimate, "contested" between them, "large" above all.
    extra_tokens: share of the tokens that the batch spends above the least, overhead·B/B_crit by
    each critical law, lowest and highest. flags: what a specialist must confirm.
    """

    batch_tokens: float
    critical_tokens: dict[str, float]
    optimal_tokens: dict[str, float]
    standing: str
    extra_tokens: tuple[float, float]
    flags: Lines


def batch_advice(
    batch_tokens: float, tokens: float, compute_flops: float | None = None
) -> BatchAdvice:
    """Compare a global batch with every published law that the known quantities allow.

    Parameters
    ----------
    batch_tokens : float
        Global batch [tokens]: sequences × length.
    tokens : float
        Training tokens.
    compute_flops : float, optional
        Brings in the laws that need it.
    """
    known = {"tokens": tokens, "compute": compute_flops}
    critical: dict[str, float] = {}
    optimal: dict[str, float] = {}
    for id, law in BATCH_LAWS.items():
        x = known.get(law.of)
        if x is not None:
            batches = critical if law.kind == "critical" else optimal
            batches[id] = float(batch_size(x, id))
    if batch_tokens <= min(critical.values()):
        standing = "small"
    elif batch_tokens > max(critical.values()):
        standing = "large"
    else:
        standing = "contested"
    extra = [float(BATCH_LAWS[id].overhead * batch_tokens / c) for id, c in critical.items()]
    return BatchAdvice(
        batch_tokens=float(batch_tokens),
        critical_tokens=critical,
        optimal_tokens=optimal,
        standing=standing,
        extra_tokens=(min(extra), max(extra)),
        flags=(*FLAGS[standing], SPECIALIST),
    )


def peak_learning_rate(params: Column, tokens: Column, law: str = "deepseek-llm-2024") -> Column:
    """Peak learning rate by a published power law, for a specialist to start from. [1, shape of
    params and tokens] C = 6·N·D.

    Both hold at their own optimal batch (`batch_size`), standard parametrisation and their own
    schedule.
    """
    row = _law(LR_LAWS, law)
    n = np.asarray(params, dtype=float)
    d = np.asarray(tokens, dtype=float)
    rate: Column = row.k * (6 * n * d) ** row.c * n**row.n * d**row.d
    return rate


DISAGREE = 10.0  # times from which laws that differ so much give no start


@record
class RateAdvice:
    """Where a peak learning rate starts: the geometric mean of the published laws, each of them
    and their spread; `start` is None, with the reason in `why`, where nothing is published."""

    start: Known = None
    low: Known = None
    high: Known = None
    laws: tuple[dict[str, Any], ...] = ()  # {law, value, source}
    why: str


def learning_rate_advice(
    params: float, tokens: float, optimizer: str, from_checkpoint: bool = False
) -> RateAdvice:
    """The one place where a peak learning rate comes from: for the design, the report and the kit.

    None for weights that start from a checkpoint, for an optimizer without a published relation to
    AdamW, and where the laws differ by more than DISAGREE, far outside what they are fitted on.
    """
    if from_checkpoint:
        return RateAdvice(
            why="no law covers weights that start from a checkpoint: take the rate that the "
            "checkpoint ended with, or its publisher's for fine-tuning"
        )
    factors = RATES_OF.get(optimizer)
    if factors is None:
        return RateAdvice(why=f"no published law gives a peak learning rate for {optimizer}")
    middle = sqrt(factors.low * factors.high)
    values = {id: middle * float(peak_learning_rate(params, tokens, id)) for id in LR_LAWS}
    laws = tuple({"law": k, "value": v, "source": LR_LAWS[k].source} for k, v in values.items())
    low = min(values.values())
    high = max(values.values())
    if high / low > DISAGREE:
        apart = f"the laws differ by {high / low:,.0f} times this far from their runs"
        return RateAdvice(laws=laws, why=apart)
    return RateAdvice(
        start=float(f"{prod(values.values()) ** (1 / len(values)):.2g}"),
        low=low * factors.low / middle,
        high=high * factors.high / middle,
        laws=laws,
        why="" if middle == 1 else factors.source,
    )


def tokens_for_loss(params: float, target: float, law: str = "besiroglu-2024") -> float:
    """Tokens that bring a model of `params` to a loss by a law's surface: D = (B / (L - E -
    A/N^alpha))^(1/beta). inf where the surface does not reach it at that size. Raises ValueError
    as `loss`."""
    s = _surface(law)
    room = target - float(loss(params, inf, law))
    return float((s.b / room) ** (1 / s.beta)) if room > 0 else inf


def learning_rate_factor(
    batch_from: Column,
    batch_to: Column,
    rule: str = "square-root",
    critical_tokens: Column | None = None,
) -> Column:
    """Factor on the peak learning rate when the global batch changes; a starting point for a
    specialist, never a setting. [share]

    Parameters
    ----------
    batch_from, batch_to : float or array
        Global batches, same unit.
    rule : str
        Key of LR_RULES.
    critical_tokens : float or array, optional
        Critical batch in the same unit: the growth then fades out as e/(1 + B_crit/B) does for SGD,
        to the rule's exponent.

    Notes
    -----
    (B_to/B_from)^exponent, or ((1 + B_crit/B_from)/(1 + B_crit/B_to))^exponent (McCandlish et al.
    2018, section 2.2; its appendix E.2 for Adam's exponent, between 1/2 and 1).
    """
    row = _law(LR_RULES, rule)
    start = np.asarray(batch_from, dtype=float)
    end = np.asarray(batch_to, dtype=float)
    growth: Array = end / start
    if critical_tokens is not None:
        growth = (1 + critical_tokens / start) / (1 + critical_tokens / end)
    factor: Column = growth**row.exponent
    return factor


def tokens_to_loss(params: float, target: float) -> dict[str, float]:
    """{law: tokens} that bring a model of `params` to a loss, by every surface that reaches it."""
    needed = {id: tokens_for_loss(params, target, id) for id, law in LAWS.items() if law.surface}
    return {id: tokens for id, tokens in needed.items() if tokens < 1e18}
