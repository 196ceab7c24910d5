"""What a budget of compute buys and what a global batch costs: published laws, each with its source
and range, no model of our own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.words import table

__all__ = [
    "BATCH_LAWS",
    "LAWS",
    "LR_LAWS",
    "LR_RULES",
    "Allocation",
    "BatchAdvice",
    "BatchLaw",
    "LrLaw",
    "LrRule",
    "ScalingLaw",
    "allocations",
    "batch_advice",
    "batch_size",
    "compute_optimal",
    "learning_rate_factor",
    "loss",
    "peak_learning_rate",
]


_TABLES = table(__file__, "scaling_laws")
_SPECIALIST = _TABLES["specialist"]


def _laws(kind: type, name: str) -> dict:
    """Records of one table of scaling_laws.yaml, by id."""
    return {
        id: kind(
            id=id,
            **row,
        )
        for id, row in _TABLES[name].items()
    }


@dataclass(
    frozen=True,
    kw_only=True,
)
class ScalingLaw:
    """One published answer to: which size and how many tokens for a budget of compute.

    Attributes
    ----------
    surface : tuple of float or None
        (E, A, alpha, B, beta) of L(N, D) = E + A/N^alpha + B/D^beta [nats per token]; None where
        the source fits no surface.
    frontier : tuple of float or None
        (k, a, k_tokens, b): N = k·C^a and, where k_tokens > 0, D = k_tokens·C^b; else D = C/(6N).
        None where the surface gives it.
    unit_flops : float
        Unit of C in `frontier` [FLOP].
    size : str
        What the law calls size: "parameters", "non-embedding parameters" or "non-embedding FLOP per
        token" (where D = C/size).
    verified : str
        "text": read in a copy of the source's text; "memory": from recall; "derived": worked out
        here from the source's own table.
    """

    id: str
    title: str
    surface: tuple[float, float, float, float, float] | None = None
    frontier: tuple[float, float, float, float] | None = None
    unit_flops: float = 1.0
    size: str
    fitted: str
    caveat: str = _TABLES["dense_models"]
    source: str
    verified: str


LAWS = _laws(ScalingLaw, "sizes")


def _law(table, law):
    try:
        return table[law]
    except KeyError:
        raise ValueError(f"unknown law {law!r}; known: {', '.join(table)}") from None


def compute_optimal(compute_flops, law="besiroglu-2024"):
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
    (alpha·A/(beta·B))^(1/(alpha + beta)), D = C/(6·N)
    (Hoffmann et al. 2022, equation 4). From a frontier: N = k·C^a and D = C/(6·N). For
    deepseek-llm-2024 the size is the FLOP per
    token M and D = C/M. C = 6ND leaves attention out, which matters at long sequences.

    Raises
    ------
    ValueError
        For an unknown law.
    """
    row = _law(LAWS, law)
    compute = np.asarray(compute_flops, dtype=float)
    if row.frontier is not None:
        k, a, k_tokens, b = row.frontier
        size = k * (compute / row.unit_flops) ** a
        tokens = k_tokens * (compute / row.unit_flops) ** b if k_tokens else compute / (6 * size)
    else:
        _, big_a, alpha, big_b, beta = row.surface
        size = (alpha * big_a / (beta * big_b)) ** (1 / (alpha + beta)) * (compute / 6) ** (
            beta / (alpha + beta)
        )
        tokens = compute / (6 * size)
    return size[()], tokens[()]


def loss(
    params,
    tokens,
    law="besiroglu-2024",
):
    """Final training loss that a law's surface expects. [nats per token of the source's tokenizer
    and data; only differences carry over]

    L = E + A/N^alpha + B/D^beta, N parameters, D tokens seen once.

    Raises ValueError for an unknown law or one without a surface.
    """
    row = _law(LAWS, law)
    if row.surface is None:
        raise ValueError(
            f"{law} fits no loss surface; laws with one: "
            f"{', '.join(k for k, r in LAWS.items() if r.surface)}"
        )
    floor, big_a, alpha, big_b, beta = row.surface
    return (
        floor
        + big_a / np.asarray(params, dtype=float) ** alpha
        + big_b / np.asarray(tokens, dtype=float) ** beta
    )


@dataclass(
    frozen=True,
    kw_only=True,
)
class Allocation:
    """What one law makes of a compute budget: params and tokens (nan where the law counts size
    otherwise), tokens per parameter."""

    law: str
    title: str
    size: float
    size_is: str
    params: float
    tokens: float
    tokens_per_param: float
    caveat: str
    source: str
    verified: str


def allocations(compute_flops):
    """Every law's answer to one budget, so that their spread is seen. [tuple of Allocation, in the
    order of LAWS]

    DeepSeek's FLOP per token becomes parameters as M/6, which leaves attention in: a little too
    many.
    """
    rows = []
    for law in LAWS.values():
        size, tokens = (float(x) for x in compute_optimal(compute_flops, law.id))
        params = size / 6 if law.size == "non-embedding FLOP per token" else size
        said = {name: getattr(law, name) for name in ("title", "caveat", "source", "verified")}
        rows.append(
            Allocation(
                law=law.id,
                size=size,
                size_is=law.size,
                params=params,
                tokens=tokens,
                tokens_per_param=tokens / params,
                **said,
            )
        )
    return tuple(rows)


@dataclass(
    frozen=True,
    kw_only=True,
)
class BatchLaw:
    """A published power law of the batch size in tokens: batch = unit_tokens·k·(x/unit_x)^exponent,
    x as `of` names it.

    kind "critical": beyond it more data parallelism buys little; "optimal": least loss at given
    size and tokens. overhead: share of the
    tokens that a critical batch spends above the least, by the source's own definition.
    """

    id: str
    kind: str
    of: str
    k: float
    exponent: float
    unit_x: float = 1.0
    unit_tokens: float = 1
    definition: str
    fitted: str
    source: str
    verified: str
    overhead: float = 1.0


BATCH_LAWS = _laws(BatchLaw, "batches")


def batch_size(x, law="zhang-2024"):
    """Critical or optimal global batch by a published law. [tokens per step, shape of x]

    Parameters
    ----------
    x : float or array
        What `BATCH_LAWS[law].of` names: training tokens, training compute [FLOP] or loss [nats per
        token].

    Notes
    -----
    The laws differ by a factor of ten at 1e12 tokens, partly by definition, partly because all are
    fitted on small models. Zhang and
    Bergsma agree that it grows with the tokens and hardly with the size. The critical batch starts
    near nothing and grows in training
    (McCandlish et al. 2018; Merrill et al. 2025, arXiv:2505.23971): a batch warm-up costs little.
    """
    row = _law(BATCH_LAWS, law)
    return row.unit_tokens * row.k * (np.asarray(x, dtype=float) / row.unit_x) ** row.exponent


@dataclass(
    frozen=True,
    kw_only=True,
)
class BatchAdvice:
    """How a global batch stands to the published laws.

    standing: "small" below every critical estimate, "contested" between them, "large" above all.
    extra_tokens: share of the tokens
    that the batch spends above the least, overhead·B/B_crit by each critical law, lowest and
    highest. flags: what a specialist must confirm.
    """

    batch_tokens: float
    critical_tokens: dict[str, float]
    optimal_tokens: dict[str, float]
    standing: str
    extra_tokens: tuple[float, float]
    flags: tuple[str, ...]


def batch_advice(
    batch_tokens,
    tokens,
    compute_flops=None,
    final_loss=None,
):
    """Compare a global batch with every published law that the known quantities allow.
    [BatchAdvice]

    Parameters
    ----------
    batch_tokens : float
        Global batch [tokens]: sequences × length.
    tokens : float
        Training tokens.
    compute_flops, final_loss : float, optional
        Bring in the laws that need them.
    """
    known = {
        "tokens": tokens,
        "compute": compute_flops,
        "loss": final_loss,
    }
    found = {
        "critical": {},
        "optimal": {},
    }
    for law in BATCH_LAWS.values():
        if known[law.of] is not None:
            found[law.kind][law.id] = float(batch_size(known[law.of], law.id))
    critical = found["critical"]
    low, high = min(critical.values()), max(critical.values())
    standing = "small" if batch_tokens <= low else "large" if batch_tokens > high else "contested"
    flags = [*_TABLES["flags"][standing], _SPECIALIST]
    extra = sorted(
        float(BATCH_LAWS[name].overhead * batch_tokens / c) for name, c in critical.items()
    )
    return BatchAdvice(
        batch_tokens=float(batch_tokens),
        critical_tokens=critical,
        optimal_tokens=found["optimal"],
        standing=standing,
        extra_tokens=(extra[0], extra[-1]),
        flags=tuple(flags),
    )


@dataclass(
    frozen=True,
    kw_only=True,
)
class LrLaw:
    """A published power law of the peak learning rate: k·C^c·N^n·D^d, C compute [FLOP], N
    non-embedding parameters, D tokens."""

    id: str
    k: float
    c: float = 0.0
    n: float = 0.0
    d: float = 0.0
    fitted: str
    source: str
    verified: str
    confirm: str = _SPECIALIST


LR_LAWS = _laws(LrLaw, "learning_rates")


def peak_learning_rate(
    params,
    tokens,
    law="deepseek-llm-2024",
):
    """Peak learning rate by a published power law, for a specialist to start from. [1, shape of
    params and tokens] C = 6·N·D.

    Both hold at their own optimal batch (`batch_size`), standard parametrisation and their own
    schedule.
    """
    row = _law(LR_LAWS, law)
    n, d = np.asarray(params, dtype=float), np.asarray(tokens, dtype=float)
    return row.k * (6 * n * d) ** row.c * n**row.n * d**row.d


@dataclass(
    frozen=True,
    kw_only=True,
)
class LrRule:
    """How the learning rate follows the global batch: factor = (B_to/B_from)^exponent; who found
    it, for what, and who must confirm it."""

    id: str
    exponent: float
    optimizer: str
    condition: str
    source: str
    verified: str
    confirm: str = _SPECIALIST


LR_RULES = _laws(LrRule, "rules")


def learning_rate_factor(
    batch_from,
    batch_to,
    rule="square-root",
    critical_tokens=None,
):
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
    2018, section 2.2; its appendix E.2
    for Adam's exponent, between 1/2 and 1).
    """
    row = _law(LR_RULES, rule)
    start, end = np.asarray(batch_from, dtype=float), np.asarray(batch_to, dtype=float)
    if critical_tokens is None:
        return (end / start) ** row.exponent
    return ((1 + critical_tokens / start) / (1 + critical_tokens / end)) ** row.exponent
