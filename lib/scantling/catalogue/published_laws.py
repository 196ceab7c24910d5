"""Published laws of scaling with their coefficients, ranges and sources."""

from ..base.records import Lines, record

SPECIALIST = (
    "Ask an ML specialist: it holds for the optimizer, schedule and range it was found "
    "on, and instability shows only in training."
)
_DENSE_MODELS = (
    "Fitted on dense models. For a mixture of experts read N as the active parameters; "
    "total parameters lower the loss further, by laws of their own."
)


@record
class Published:
    """Where a law comes from.

    verified : "text": read in a copy of the source's text; "memory": from recall; "derived": worked
    out here from the source's own table. confirm : who has to agree.
    """

    source: str
    verified: str
    fitted: str = ""
    confirm: str = SPECIALIST


@record
class Surface:
    """L(N, D) = floor + a / N^alpha + b / D^beta of N parameters and D tokens. [nats per token]"""

    floor: float
    a: float
    alpha: float
    b: float
    beta: float


@record
class Frontier:
    """Size k (C / unit)^exponent of a budget C [FLOP] and, where k_tokens > 0, tokens k_tokens
    (C / unit)^tokens_exponent, else C / (6 size)."""

    k: float
    exponent: float
    k_tokens: float = 0.0
    tokens_exponent: float = 0.0
    unit_flops: float = 1.0


@record
class SizeLaw(Published):
    """Size and tokens of a budget of compute, by a surface of the loss or by its frontier; `size`
    is what the law calls size: "parameters", "non-embedding parameters" or "non-embedding FLOP per
    token"."""

    title: str
    size: str
    caveat: str = _DENSE_MODELS
    surface: Surface | None = None
    frontier: Frontier | None = None


@record
class BatchLaw(Published):
    """batch = unit_tokens k (x / unit_x)^exponent [tokens], x as `of` names it: training tokens,
    training compute [FLOP] or loss [nats per token].

    kind : "critical": beyond it more data parallelism buys little, "optimal": least loss at
    given size and tokens. overhead : the share of the tokens that a critical batch spends above the
    least, by the source's own definition.
    """

    kind: str
    of: str
    k: float
    exponent: float
    definition: str
    unit_x: float = 1.0
    unit_tokens: float = 1
    overhead: float = 1.0


@record
class RateLaw(Published):
    """Peak learning rate k C^c N^n D^d; C compute [FLOP], N non-embedding parameters, D tokens."""

    k: float
    c: float = 0.0
    n: float = 0.0
    d: float = 0.0


@record
class RateRule(Published):
    """The learning rate follows the batch as (B_to / B_from)^exponent."""

    exponent: float
    optimizer: str
    condition: str


@record
class RateOf:
    """What laws of AdamW's rate say for another optimizer: factors on it."""

    low: float
    high: float
    source: str


LAWS = {
    "besiroglu-2024": SizeLaw(
        title="Chinchilla's surface, refitted",
        surface=Surface(floor=1.8172, a=482.01, alpha=0.3478, b=2085.43, beta=0.3658),
        size="parameters",
        fitted="digitised runs of Hoffmann et al., 6e18 to 3e21 FLOP",
        caveat=_DENSE_MODELS
        + (
            " Standard errors: A 125, B 1,293, exponents 0.02; the ratio D/N is known to a "
            "factor of about two."
        ),
        source="Besiroglu, Erdil, Barnett, You 2024, arXiv:2404.10102, table 1",
        verified="text",
    ),
    "hoffmann-2022-1": SizeLaw(
        title="Chinchilla, minimum over training curves",
        frontier=Frontier(k=0.0894, exponent=0.5),
        size="parameters",
        fitted="70M to 16B parameters",
        source=(
            "Hoffmann et al. 2022, arXiv:2203.15556, tables 2 and 3 (a = 0.50; k from table 3)"
        ),
        verified="derived",
    ),
    "hoffmann-2022-2": SizeLaw(
        title="Chinchilla, IsoFLOP profiles",
        frontier=Frontier(k=0.1425, exponent=0.49),
        size="parameters",
        fitted="6e18 to 3e21 FLOP",
        source=(
            "Hoffmann et al. 2022, arXiv:2203.15556, tables 2 and A3 (a = 0.49; k from table A3)"
        ),
        verified="derived",
    ),
    "hoffmann-2022-3": SizeLaw(
        title="Chinchilla, parametric fit",
        surface=Surface(floor=1.6934, a=406.4, alpha=0.3392, b=410.7, beta=0.2849),
        size="parameters",
        fitted="6e18 to 3e21 FLOP",
        caveat=_DENSE_MODELS
        + (
            " Contradicts the paper's other two approaches; Besiroglu et al. trace it to an "
            "optimizer stopped early."
        ),
        source=(
            "Hoffmann et al. 2022, arXiv:2203.15556, equation 10, digits as in its source file"
        ),
        verified="text",
    ),
    "deepseek-llm-2024": SizeLaw(
        title="DeepSeek LLM",
        frontier=Frontier(k=0.1715, exponent=0.5243, k_tokens=5.8316, tokens_exponent=0.4757),
        size="non-embedding FLOP per token",
        fitted="1e17 to 3e20 FLOP",
        caveat=_DENSE_MODELS + " Their data; better data moved the exponent towards size.",
        source="DeepSeek-AI 2024, arXiv:2401.02954, equation 4",
        verified="text",
    ),
    "kaplan-2020": SizeLaw(
        title="Kaplan, for contrast",
        frontier=Frontier(k=1300000000.0, exponent=0.73, unit_flops=8.64e19),
        size="non-embedding parameters",
        fitted="768 to 1.5B non-embedding parameters",
        caveat=_DENSE_MODELS
        + (
            " Superseded: embeddings and the output head left out, warm-up too long for small "
            "models (Porian et al. 2024, arXiv:2406.19146). Leads to models trained on too "
            "little."
        ),
        source="Kaplan et al. 2020, arXiv:2001.08361, section 6 and table 6",
        verified="text",
    ),
}

BATCH_LAWS = {
    "zhang-2024": BatchLaw(
        kind="critical",
        of="tokens",
        k=22.91,
        exponent=0.47,
        unit_x=1000000.0,
        unit_tokens=512,
        definition="20 % more data than the best batch would need",
        fitted="85M to 1.2B parameters, C4, Adam, sequences of 512",
        source=(
            "Zhang et al. 2024, arXiv:2410.21676, section 3.3 (batch in sequences, D in millions;"
            " within 4 % of the paper's fits in N where both meet)"
        ),
        verified="memory",
        overhead=0.2,
    ),
    "bergsma-2025-critical": BatchLaw(
        kind="critical",
        of="tokens",
        k=0.0471,
        exponent=0.462,
        unit_tokens=2048,
        definition="twice the steps that an unbounded batch would need",
        fitted=(
            "111M to 3.3B parameters, SlimPajama, AdamW with maximal update parametrisation, 20 "
            "to 1,280 tokens per parameter"
        ),
        source=(
            "Bergsma et al. 2025, arXiv:2505.13738 (exponent read in text, coefficient and unit "
            "from recall)"
        ),
        verified="memory",
    ),
    "bergsma-2025-optimal": BatchLaw(
        kind="optimal",
        of="tokens",
        k=0.0306,
        exponent=0.383,
        unit_tokens=2048,
        definition="least loss at given size and tokens",
        fitted="as bergsma-2025-critical",
        source=(
            "Bergsma et al. 2025, arXiv:2505.13738 (exponent read in text, coefficient and unit "
            "from recall)"
        ),
        verified="memory",
    ),
    "step-law-2025": BatchLaw(
        kind="optimal",
        of="tokens",
        k=0.58,
        exponent=0.571,
        definition="least loss at given size and tokens",
        fitted="3,700 models up to 1B parameters and 100B tokens, dense and sparse",
        source="Li et al. 2025, arXiv:2503.04715 (Step Law)",
        verified="text",
    ),
    "deepseek-llm-2024": BatchLaw(
        kind="optimal",
        of="compute",
        k=0.292,
        exponent=0.3271,
        definition="loss within 0.25 % of the best",
        fitted="1e17 to 2e19 FLOP",
        source="DeepSeek-AI 2024, arXiv:2401.02954, equation 1",
        verified="text",
    ),
    "kaplan-2020": BatchLaw(
        kind="critical",
        of="loss",
        k=200000000.0,
        exponent=-4.761904761904762,
        definition="twice the steps and twice the tokens of the two extremes",
        fitted="WebText2, up to 1.5B non-embedding parameters",
        source="Kaplan et al. 2020, arXiv:2001.08361, section 5.1",
        verified="text",
    ),
}

LR_LAWS = {
    "deepseek-llm-2024": RateLaw(
        k=0.3118,
        c=-0.125,
        fitted="AdamW, 1e17 to 2e19 FLOP, at its own optimal batch",
        source="DeepSeek-AI 2024, arXiv:2401.02954, equation 1",
        verified="text",
    ),
    "step-law-2025": RateLaw(
        k=1.79,
        n=-0.713,
        d=0.307,
        fitted="AdamW, up to 1B parameters and 100B tokens, at its own optimal batch",
        source="Li et al. 2025, arXiv:2503.04715 (Step Law)",
        verified="text",
    ),
}

LR_RULES = {
    "linear": RateRule(
        exponent=1.0,
        optimizer="SGD with momentum",
        condition="well below the critical batch, with warm-up",
        source="Goyal et al. 2017, arXiv:1706.02677, section 2.1",
        verified="memory",
    ),
    "square-root": RateRule(
        exponent=0.5,
        optimizer="Adam, AdamW",
        condition=(
            "well below the critical batch; betas and epsilon move too: 1 − beta by the batch ratio"
        ),
        source=(
            "Malladi et al. 2022, arXiv:2205.10287, definition 4.2; You et al. 2019, "
            "arXiv:1904.00962 (LAMB)"
        ),
        verified="memory",
    ),
    "constant": RateRule(
        exponent=0.0,
        optimizer="any",
        condition="above the critical batch, where a larger step no longer pays",
        source="McCandlish et al. 2018, arXiv:1812.06162, section 2.2",
        verified="text",
    ),
}

RATES_OF = {
    "adamw": RateOf(low=1.0, high=1.0, source="the laws' own optimizer"),
    "adamw-bf16": RateOf(low=1.0, high=1.0, source="the laws' own optimizer"),
    "adamw-8bit": RateOf(
        low=1.0,
        high=1.0,
        source="Dettmers et al. 2022, arXiv:2110.02861: a drop-in at the same settings",
    ),
    "muon": RateOf(
        low=1.0,
        high=1.0,
        source=(
            "Liu et al. 2025, arXiv:2502.16982, section 2.2: updates matched in RMS to AdamW's "
            "keep its rate (0.2 sqrt(max(rows, columns)))"
        ),
    ),
    "lion": RateOf(
        low=0.1,
        high=0.333,
        source="Chen et al. 2023, arXiv:2302.06675, section 5: 3 to 10 times below AdamW's",
    ),
}

_BELOW = "All these laws are fitted below 4B parameters: beyond, they are extrapolated."
_MORE_TOKENS = (
    "Above a critical batch more devices save time but spend tokens; a smaller batch "
    "early in training avoids part of it."
)
# what a batch of a standing has to be told
FLAGS: dict[str, Lines] = {
    "small": (_BELOW,),
    "contested": (_BELOW, _MORE_TOKENS),
    "large": (_BELOW, _MORE_TOKENS),
}
