"""What a budget of compute buys and what a global batch costs: published laws, each with its source
and range, no model of our own."""

from math import inf, prod, sqrt

import numpy as np

from ..base.records import Known, Lines, fields_of, record
from ..base.words import table

_TABLES = table(__file__, "scaling_laws")
_SPECIALIST = _TABLES["specialist"]


@record
class Law:
    """One published law, a row of a table of scaling_laws.yaml; a table uses the fields it needs.

    sizes : `surface` (E, A, alpha, B, beta) of L(N, D) = E + A/N^alpha + B/D^beta [nats per token],
    None where the source fits none; `frontier` (k, a, k_tokens, b): N = k·C^a and, where k_tokens >
    0, D = k_tokens·C^b, else D = C/(6N); None where the surface gives it; `unit_flops`, the unit of
    C [FLOP]; `size`, what the law calls size: "parameters", "non-embedding parameters" or
    "non-embedding FLOP per token" (where D = C/size).
    batches : batch = unit_tokens·k·(x/unit_x)^exponent [tokens], x as `of` names it; `kind`
    "critical": beyond it more data parallelism buys little, "optimal": least loss at given size and
    tokens; `overhead`, the share of the tokens that a critical batch spends above the least, by the
    source's own definition.
    learning_rates : k·C^c·N^n·D^d, C compute [FLOP], N non-embedding parameters, D tokens.
    rules : the learning rate follows the batch as (B_to/B_from)^exponent.
    verified : "text": read in a copy of the source's text; "memory": from recall; "derived": worked
    out here from the source's own table.
    """

    id: str
    source: str
    verified: str
    title: str = ""
    fitted: str = ""
    caveat: str = _TABLES["dense_models"]
    confirm: str = _SPECIALIST
    surface: tuple[float, ...] | None = None
    frontier: tuple[float, ...] | None = None
    unit_flops: float = 1.0
    size: str = ""
    kind: str = ""
    of: str = ""
    k: float = 0.0
    exponent: float = 0.0
    unit_x: float = 1.0
    unit_tokens: float = 1
    overhead: float = 1.0
    definition: str = ""
    c: float = 0.0
    n: float = 0.0
    d: float = 0.0
    optimizer: str = ""
    condition: str = ""


LAWS, BATCH_LAWS, LR_LAWS, LR_RULES = (
    {id: Law(id=id, **row) for id, row in _TABLES[name].items()}
    for name in ("sizes", "batches", "learning_rates", "rules")
)


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
        if k_tokens:
            return size[()], (k_tokens * (compute / row.unit_flops) ** b)[()]
    else:
        _, big_a, alpha, big_b, beta = row.surface
        power = 1 / (alpha + beta)
        size = (alpha * big_a / (beta * big_b)) ** power * (compute / 6) ** (beta * power)
    return size[()], (compute / (6 * size))[()]


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


def allocations(compute_flops) -> list[dict]:
    """Every law's answer to one budget, so that their spread is seen: {law, title, params, tokens,
    caveat, source} of each, in the order of LAWS.

    DeepSeek's FLOP per token becomes parameters as M/6, which leaves attention in: a little too
    many.
    """
    rows = []
    for id, law in LAWS.items():
        size, tokens = map(float, compute_optimal(compute_flops, id))
        params = size / 6 if law.size == "non-embedding FLOP per token" else size
        rows.append(
            {
                "law": id,
                "params": params,
                "tokens": tokens,
                **fields_of(law, ("title", "caveat", "source")),
            }
        )
    return rows


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


@record
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
    flags: Lines


def batch_advice(batch_tokens, tokens, compute_flops=None):
    """Compare a global batch with every published law that the known quantities allow.
    [BatchAdvice]

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
    found = {"critical": {}, "optimal": {}}
    for id, law in BATCH_LAWS.items():
        if (x := known.get(law.of)) is not None:
            found[law.kind][id] = float(batch_size(x, id))
    critical = found["critical"]
    low = min(critical.values())
    high = max(critical.values())
    standing = "small" if batch_tokens <= low else "large" if batch_tokens > high else "contested"
    extra = [float(BATCH_LAWS[id].overhead * batch_tokens / c) for id, c in critical.items()]
    return BatchAdvice(
        batch_tokens=float(batch_tokens),
        critical_tokens=critical,
        optimal_tokens=found["optimal"],
        standing=standing,
        extra_tokens=(min(extra), max(extra)),
        flags=(*_TABLES["flags"][standing], _SPECIALIST),
    )


def peak_learning_rate(params, tokens, law="deepseek-llm-2024"):
    """Peak learning rate by a published power law, for a specialist to start from. [1, shape of
    params and tokens] C = 6·N·D.

    Both hold at their own optimal batch (`batch_size`), standard parametrisation and their own
    schedule.
    """
    row = _law(LR_LAWS, law)
    n = np.asarray(params, dtype=float)
    d = np.asarray(tokens, dtype=float)
    return row.k * (6 * n * d) ** row.c * n**row.n * d**row.d


DISAGREE = 10.0  # times from which laws that differ so much give no start


@record
class RateAdvice:
    """Where a peak learning rate starts: the geometric mean of the published laws, each of them
    and their spread; `start` is None, with the reason in `why`, where nothing is published."""

    start: Known = None
    low: Known = None
    high: Known = None
    laws: tuple[dict, ...] = ()  # {law, value, source}
    why: str


def learning_rate_advice(
    params: float, tokens: float, optimizer: str, from_checkpoint: bool = False
) -> RateAdvice:
    """The one place where a peak learning rate comes from: for the design, the report and the kit.

    None for weights that start from a checkpoint, for an optimizer without a published relation to
    AdamW, and where the laws differ by more than DISAGREE, far outside what they are fitted on.
    """
    factors = _TABLES["rates_of"].get(optimizer)
    no = _TABLES["no_rate"]
    if from_checkpoint or factors is None:
        why = no["checkpoint" if from_checkpoint else "optimizer"]
        return RateAdvice(why=why.format(optimizer=optimizer))
    middle = sqrt(factors["low"] * factors["high"])
    values = {id: middle * float(peak_learning_rate(params, tokens, id)) for id in LR_LAWS}
    laws = tuple({"law": k, "value": v, "source": LR_LAWS[k].source} for k, v in values.items())
    low = min(values.values())
    high = max(values.values())
    if high / low > DISAGREE:
        return RateAdvice(laws=laws, why=no["apart"].format(apart=high / low))
    return RateAdvice(
        start=float(f"{prod(values.values()) ** (1 / len(values)):.2g}"),
        low=low * factors["low"] / middle,
        high=high * factors["high"] / middle,
        laws=laws,
        why="" if middle == 1 else factors["source"],
    )


def tokens_for_loss(params, target: float, law="besiroglu-2024") -> float:
    """Tokens that bring a model of `params` to a loss by a law's surface: D = (B / (L - E -
    A/N^alpha))^(1/beta). inf where the surface does not reach it at that size. Raises ValueError
    as `loss`."""
    *_, big_b, beta = _law(LAWS, law).surface
    room = target - float(loss(params, inf, law))
    return (big_b / room) ** (1 / beta) if room > 0 else inf


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
    start = np.asarray(batch_from, dtype=float)
    end = np.asarray(batch_to, dtype=float)
    if critical_tokens is None:
        return (end / start) ** row.exponent
    return ((1 + critical_tokens / start) / (1 + critical_tokens / end)) ** row.exponent


def tokens_to_loss(params, target: float) -> dict[str, float]:
    """{law: tokens} that bring a model of `params` to a loss, by every surface that reaches it."""
    found = {id: tokens_for_loss(params, target, id) for id, law in LAWS.items() if law.surface}
    return {id: tokens for id, tokens in found.items() if tokens < 1e18}
