"""What a budget of compute buys and what a global batch costs: published laws, each with its source
and range, no model of our own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..physics.cases import accumulated

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
    "batch_cost",
    "batch_size",
    "compute_optimal",
    "gradient_noise_scale",
    "learning_rate_factor",
    "loss",
    "peak_learning_rate",
    "reshapes",
]

_MOE = (
    "Fitted on dense models. For a mixture of experts read N as the active parameters; "
    "total parameters lower the loss further, by laws of their own."
)
_SPECIALIST = (
    "Ask an ML specialist: it holds for the optimizer, schedule and range it was found on, "
    "and instability shows only in training."
)


@dataclass(frozen=True)
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
    surface: tuple[float, float, float, float, float] | None
    frontier: tuple[float, float, float, float] | None
    unit_flops: float
    size: str
    fitted: str
    caveat: str
    source: str
    verified: str


LAWS: dict[str, ScalingLaw] = {
    law.id: law
    for law in (
        ScalingLaw(
            "besiroglu-2024",
            "Chinchilla's surface, refitted",
            (1.8172, 482.01, 0.3478, 2085.43, 0.3658),
            None,
            1.0,
            "parameters",
            "digitised runs of Hoffmann et al., 6e18 to 3e21 FLOP",
            _MOE
            + (
                " Standard errors: A 125, B 1,293, exponents 0.02; the ratio D/N is known "
                "to a factor of about two."
            ),
            "Besiroglu, Erdil, Barnett, You 2024, arXiv:2404.10102, table 1",
            "text",
        ),
        ScalingLaw(
            "hoffmann-2022-1",
            "Chinchilla, minimum over training curves",
            None,
            (0.0894, 0.50, 0.0, 0.0),
            1.0,
            "parameters",
            "70M to 16B parameters",
            _MOE,
            "Hoffmann et al. 2022, arXiv:2203.15556, tables 2 and 3 (a = 0.50; k from table 3)",
            "derived",
        ),
        ScalingLaw(
            "hoffmann-2022-2",
            "Chinchilla, IsoFLOP profiles",
            None,
            (0.1425, 0.49, 0.0, 0.0),
            1.0,
            "parameters",
            "6e18 to 3e21 FLOP",
            _MOE,
            "Hoffmann et al. 2022, arXiv:2203.15556, tables 2 and A3 (a = 0.49; k from table A3)",
            "derived",
        ),
        ScalingLaw(
            "hoffmann-2022-3",
            "Chinchilla, parametric fit",
            (1.6934, 406.4, 0.3392, 410.7, 0.2849),
            None,
            1.0,
            "parameters",
            "6e18 to 3e21 FLOP",
            _MOE
            + (
                " Contradicts the paper's other two approaches; Besiroglu et al. trace it "
                "to an optimizer stopped early."
            ),
            "Hoffmann et al. 2022, arXiv:2203.15556, equation 10, digits as in its source file",
            "text",
        ),
        ScalingLaw(
            "deepseek-llm-2024",
            "DeepSeek LLM",
            None,
            (0.1715, 0.5243, 5.8316, 0.4757),
            1.0,
            "non-embedding FLOP per token",
            "1e17 to 3e20 FLOP",
            _MOE + " Their data; better data moved the exponent towards size.",
            "DeepSeek-AI 2024, arXiv:2401.02954, equation 4",
            "text",
        ),
        ScalingLaw(
            "kaplan-2020",
            "Kaplan, for contrast",
            None,
            (1.3e9, 0.73, 0.0, 0.0),
            8.64e19,
            "non-embedding parameters",
            "768 to 1.5B non-embedding parameters",
            _MOE + " Superseded: embeddings and the output head left out, warm-up too long for "
            "small models "
            "(Porian et al. 2024, arXiv:2406.19146). Leads to models trained on too little.",
            "Kaplan et al. 2020, arXiv:2001.08361, section 6 and table 6",
            "text",
        ),
    )
}


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


def loss(params, tokens, law="besiroglu-2024"):
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


@dataclass(frozen=True)
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
        rows.append(
            Allocation(
                law.id,
                law.title,
                size,
                law.size,
                params,
                tokens,
                tokens / params,
                law.caveat,
                law.source,
                law.verified,
            )
        )
    return tuple(rows)


@dataclass(frozen=True)
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
    unit_x: float
    unit_tokens: float
    definition: str
    fitted: str
    source: str
    verified: str
    overhead: float = 1.0


BATCH_LAWS: dict[str, BatchLaw] = {
    law.id: law
    for law in (
        BatchLaw(
            "zhang-2024",
            "critical",
            "tokens",
            22.91,
            0.47,
            1e6,
            512,
            "20 % more data than the best batch would need",
            "85M to 1.2B parameters, C4, Adam, sequences of 512",
            (
                "Zhang et al. 2024, arXiv:2410.21676, section 3.3 (batch in sequences, D in "
                "millions; within 4 % of the paper's fits in N where both meet)"
            ),
            "memory",
            0.2,
        ),
        BatchLaw(
            "bergsma-2025-critical",
            "critical",
            "tokens",
            0.0471,
            0.462,
            1.0,
            2048,
            "twice the steps that an unbounded batch would need",
            (
                "111M to 3.3B parameters, SlimPajama, AdamW with maximal update "
                "parametrisation, 20 to 1,280 tokens per parameter"
            ),
            (
                "Bergsma et al. 2025, arXiv:2505.13738 (exponent read in text, coefficient "
                "and unit from recall)"
            ),
            "memory",
        ),
        BatchLaw(
            "bergsma-2025-optimal",
            "optimal",
            "tokens",
            0.0306,
            0.383,
            1.0,
            2048,
            "least loss at given size and tokens",
            "as bergsma-2025-critical",
            (
                "Bergsma et al. 2025, arXiv:2505.13738 (exponent read in text, coefficient "
                "and unit from recall)"
            ),
            "memory",
        ),
        BatchLaw(
            "step-law-2025",
            "optimal",
            "tokens",
            0.58,
            0.571,
            1.0,
            1,
            "least loss at given size and tokens",
            "3,700 models up to 1B parameters and 100B tokens, dense and sparse",
            "Li et al. 2025, arXiv:2503.04715 (Step Law)",
            "text",
        ),
        BatchLaw(
            "deepseek-llm-2024",
            "optimal",
            "compute",
            0.2920,
            0.3271,
            1.0,
            1,
            "loss within 0.25 % of the best",
            "1e17 to 2e19 FLOP",
            "DeepSeek-AI 2024, arXiv:2401.02954, equation 1",
            "text",
        ),
        BatchLaw(
            "kaplan-2020",
            "critical",
            "loss",
            2e8,
            -1 / 0.21,
            1.0,
            1,
            "twice the steps and twice the tokens of the two extremes",
            "WebText2, up to 1.5B non-embedding parameters",
            "Kaplan et al. 2020, arXiv:2001.08361, section 5.1",
            "text",
        ),
    )
}


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


def batch_cost(batch_tokens, critical_tokens):
    """Price of a batch: (steps, tokens) relative to the least possible of each. [shares ≥ 1]

    steps/steps_min = 1 + B_crit/B and tokens/tokens_min = 1 + B/B_crit, so that (S/S_min −
    1)(E/E_min − 1) = 1 and both are 2 at
    B = B_crit. Source: McCandlish et al. 2018, arXiv:1812.06162, section 2.3.
    """
    ratio = np.asarray(batch_tokens, dtype=float) / critical_tokens
    return 1 + 1 / ratio, 1 + ratio


def gradient_noise_scale(norm2_small, batch_small, norm2_big, batch_big):
    """Critical batch from measured gradients, unbiased in numerator and denominator. [unit of the
    batches]

    Parameters
    ----------
    norm2_small, norm2_big : float or array
        Squared norms of the gradient averaged over a small and a big batch, averaged over steps;
        with data parallelism that of one
        rank before, and that of all after, the all-reduce.
    batch_small, batch_big : float

    Notes
    -----
    |G|² = (B_big·g_big − B_small·g_small)/(B_big − B_small); tr(Σ) = (g_small − g_big)/(1/B_small −
    1/B_big); B = tr(Σ)/|G|².
    Average both over many steps before dividing. Source: McCandlish et al. 2018, arXiv:1812.06162,
    appendix A.1.
    """
    g2 = (batch_big * np.asarray(norm2_big) - batch_small * np.asarray(norm2_small)) / (
        batch_big - batch_small
    )
    trace = (np.asarray(norm2_small) - norm2_big) / (1 / batch_small - 1 / batch_big)
    return trace / g2


@dataclass(frozen=True)
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


def batch_advice(batch_tokens, tokens, compute_flops=None, final_loss=None):
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
    known = {"tokens": tokens, "compute": compute_flops, "loss": final_loss}
    found = {"critical": {}, "optimal": {}}
    for law in BATCH_LAWS.values():
        if known[law.of] is not None:
            found[law.kind][law.id] = float(batch_size(known[law.of], law.id))
    low, high = min(found["critical"].values()), max(found["critical"].values())
    standing = "small" if batch_tokens <= low else "large" if batch_tokens > high else "contested"
    flags = ["All these laws are fitted below 4B parameters: beyond, they are extrapolated."]
    if standing != "small":
        flags.append(
            "Above a critical batch more devices save time but spend tokens; a smaller "
            "batch early in training avoids part of it."
        )
    flags.append(_SPECIALIST)
    extra = sorted(
        float(BATCH_LAWS[name].overhead * batch_tokens / c) for name, c in found["critical"].items()
    )
    return BatchAdvice(
        float(batch_tokens),
        found["critical"],
        found["optimal"],
        standing,
        (extra[0], extra[-1]),
        tuple(flags),
    )


@dataclass(frozen=True)
class LrLaw:
    """A published power law of the peak learning rate: k·C^c·N^n·D^d, C compute [FLOP], N
    non-embedding parameters, D tokens."""

    id: str
    k: float
    c: float
    n: float
    d: float
    fitted: str
    source: str
    verified: str
    confirm: str = _SPECIALIST


LR_LAWS: dict[str, LrLaw] = {
    law.id: law
    for law in (
        LrLaw(
            "deepseek-llm-2024",
            0.3118,
            -0.1250,
            0.0,
            0.0,
            "AdamW, 1e17 to 2e19 FLOP, at its own optimal batch",
            "DeepSeek-AI 2024, arXiv:2401.02954, equation 1",
            "text",
        ),
        LrLaw(
            "step-law-2025",
            1.79,
            0.0,
            -0.713,
            0.307,
            "AdamW, up to 1B parameters and 100B tokens, at its own optimal batch",
            "Li et al. 2025, arXiv:2503.04715 (Step Law)",
            "text",
        ),
    )
}


def peak_learning_rate(params, tokens, law="deepseek-llm-2024"):
    """Peak learning rate by a published power law, for a specialist to start from. [1, shape of
    params and tokens] C = 6·N·D.

    Both hold at their own optimal batch (`batch_size`), standard parametrisation and their own
    schedule.
    """
    row = _law(LR_LAWS, law)
    n, d = np.asarray(params, dtype=float), np.asarray(tokens, dtype=float)
    return row.k * (6 * n * d) ** row.c * n**row.n * d**row.d


@dataclass(frozen=True)
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


LR_RULES: dict[str, LrRule] = {
    rule.id: rule
    for rule in (
        LrRule(
            "linear",
            1.0,
            "SGD with momentum",
            "well below the critical batch, with warm-up",
            "Goyal et al. 2017, arXiv:1706.02677, section 2.1",
            "memory",
        ),
        LrRule(
            "square-root",
            0.5,
            "Adam, AdamW",
            (
                "well below the critical batch; betas and epsilon move too: 1 − beta by the "
                "batch ratio"
            ),
            (
                "Malladi et al. 2022, arXiv:2205.10287, definition 4.2; You et al. 2019, "
                "arXiv:1904.00962 (LAMB)"
            ),
            "memory",
        ),
        LrRule(
            "constant",
            0.0,
            "any",
            "above the critical batch, where a larger step no longer pays",
            "McCandlish et al. 2018, arXiv:1812.06162, section 2.2",
            "text",
        ),
    )
}


def learning_rate_factor(batch_from, batch_to, rule="square-root", critical_tokens=None):
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


def reshapes(global_batch, data_parallel=None, micro_batch=None, most_devices=None):
    """Every (dp, micro_batch, grad_accum) that keeps the global batch exactly. [int array, shape
    (n, 3), sorted]

    Parameters
    ----------
    global_batch : int
        Sequences per step.
    data_parallel, micro_batch : int, optional
        Pins.
    most_devices : int, optional
        Upper end of dp.

    Notes
    -----
    dp·micro_batch·grad_accum = global_batch. Any of them gives the same optimizer steps up to
    rounding and the order of sums; the loss
    must be averaged over tokens, not over micro-batches, where sequences are masked or packed.
    Empty where no such plan exists.
    """
    n = np.arange(1, int(global_batch) + 1)
    divisors = n[global_batch % n == 0]
    dp, micro = (grid.ravel() for grid in np.meshgrid(divisors, divisors, indexing="ij"))
    keep = global_batch % (dp * micro) == 0
    for pin, column in ((data_parallel, dp), (micro_batch, micro)):
        if pin is not None:
            keep &= column == pin
    if most_devices is not None:
        keep &= dp <= most_devices
    dp, micro = dp[keep], micro[keep]
    return np.column_stack([dp, micro, accumulated(global_batch, dp, micro).astype(int)])
