"""Numbers as the walkthroughs print them, beside the manners of `scantling.base.show`, and the
computed sentences of the reference notebooks."""

from collections.abc import Mapping

from scantling.base.show import hours, number, params, seconds, share, size, usd
from scantling.catalogue.models.shape import Model, block_counts, parameters
from scantling.endure.goodput import Shares


def small_size(value: float) -> str:
    """Bytes of a message or a layer: 512 KB, 66.1 MB; from a billion on as any size."""
    if not 1e3 <= abs(value) < 0.9995e9:
        return size(value)
    if abs(value) < 0.9995e6:
        return f"{number(value / 1e3)} KB"
    return f"{number(value / 1e6)} MB"


def scientific(value: float) -> str:
    """A large count with its power of ten: 3.79e25."""
    mantissa, power = f"{float(value):.2e}".split("e")
    return f"{mantissa}e{int(power)}"


def parameter_counts(ident: str, model: Model) -> str:
    """How many parameters a model of the catalogue has, and where."""
    n = parameters(model)
    return (
        f"`{ident}`: {params(n.total)} parameters, {params(n.active)} of them at work on a token; "
        f"{model.layers:,} layers, embedding {params(n.embedding)}, output head "
        f"{params(n.lm_head)}."
    )


def block_list(ident: str, model: Model) -> str:
    """How many parameters a model of the catalogue has, and of which kinds its blocks are."""
    n = parameters(model)
    counts = ", ".join(f"{count} {kind}" for kind, count in block_counts(model).items())
    return (
        f"`{ident}`: {params(n.total)} parameters, {params(n.active)} of them at work on a token; "
        f"{counts}."
    )


def best_interval(best_s: float, young_s: float, split: Shares) -> str:
    """The best time between saves beside Young's, and how the time is split at the best."""
    return (
        f"Best interval {seconds(best_s)}, Young's {seconds(young_s)}; at the best "
        f"{share(split.useful)} trains, saves take {share(split.saves)}, lost work "
        f"{share(split.lost_work)}, restarts {share(split.restart)}."
    )


def implied_restarts(restart_min: Mapping[str, float]) -> str:
    """The restarts that two points of Kokolis et al. take [minutes, by fleet]."""
    return (
        "The point that is shown only: at one half of the time useful, the formula turned round "
        f"gives the restart that each fleet's point takes, {restart_min['RSC-1']:.1f} minutes for "
        f"RSC-1 and {restart_min['RSC-2']:.1f} for RSC-2. Both lie in what the paper says of "
        "restarts, but one curve cannot have both."
    )


def compute_budget(
    budget_usd: float,
    usd_per_device_hour: float,
    mfu: float,
    *,
    flop: float,
    model_size: float,
    tokens: float,
    loss: float,
) -> str:
    """What a budget buys [device-hours of an H100, FLOP], and the compute-optimal model for it:
    `model_size` parameters on `tokens` tokens, `loss` nats a token."""
    return (
        f"{usd(budget_usd)} at {usd_per_device_hour:.2f} dollars buy "
        f"{hours(budget_usd / usd_per_device_hour)} of an H100, {flop:.3g} FLOP at MFU "
        f"{share(mfu)}: compute-optimal a model of {params(model_size)} on {params(tokens)} "
        f"tokens, loss {loss:.3f}."
    )
