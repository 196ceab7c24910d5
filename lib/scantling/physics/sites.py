"""Several sites: what they exchange, how long it takes, what of it training waits for, and how many
steps each takes alone.

A replica stands inside one site, and what is sharded is shared out inside one. Between sites go
the gradients of every step, or what the weights moved in so many local steps (Douillard et al.
2023, arXiv 2311.08105, and their successors).
"""

from dataclasses import replace
from typing import TypedDict

import numpy as np

from ..base.columns import Column
from ..catalogue.models.shape import as_floats, parameters
from .cases import Cases

WAIT_SHARE = 0.02  # judgement: of the time that a search of the local steps lets the exchange take
CHOICES = (2, 10, 30, 100, 250, 500)
OPEN = (
    "loss against the synchronous run, outer learning rate and momentum: equal or better is "
    "printed up to 9e9 parameters (arXiv 2311.08105, 2503.09799, 2604.21428), above that no run "
    "has been printed beside its synchronous twin; to be confirmed by an ML specialist"
)
LEAST_STEPS = 24  # the fewest published (arXiv 2604.21428)
MOST_STEPS = 500  # the most for which DiLoCo prints no loss in quality (arXiv 2311.08105, abstract)


def exchanged_bytes(c: Cases) -> Column:
    """Bytes that a site sends in one exchange: a ring, 2 (s - 1) / s of a copy. [bytes]"""
    n, link, wide = as_floats(parameters(c.shape)), c.link, c.job.exchange_bytes
    values = 2 * (link.sites - 1) / link.sites * (n.total + n.mtp)
    return values * np.where(wide > 0, wide, c.job.grad_bytes)


def exchange_s(c: Cases) -> Column:
    """One exchange: its bytes over the link of a site, and 2 (s - 1) hops of half a round trip;
    the buckets of a copy follow each other, so that the way is waited for once. [s]"""
    return exchanged_bytes(c) / c.link.site_bytes_per_s + (c.link.sites - 1) * c.link.site_rtt_s


def every_step_s(c: Cases) -> Column:
    """The exchange of a synchronous step, which comes on top of the reduction inside the sites; 0
    where sites step alone. [s]"""
    if np.all(c.link.sites <= 1):
        return 0.0
    return np.where(c.job.local_steps == 1, exchange_s(c), 0.0)


def local_steps(c: Cases, step_s: Column) -> Column:
    """Steps between two exchanges: as given; where they are searched, the fewest whose exchange
    takes
    WAIT_SHARE of the time, or hides beside them, LEAST_STEPS to MOST_STEPS; `step_s` without it."""
    share = np.where(c.job.exchange_overlap > 0, 1.0, WAIT_SHARE)
    fewest = np.clip(np.ceil(exchange_s(c) / (share * step_s)), LEAST_STEPS, MOST_STEPS)
    return np.where(c.job.local_steps > 0, c.job.local_steps, fewest)


def waited_s(c: Cases, step_s: Column) -> Column:
    """What an exchange after local steps adds to each of them: all of it, or what is left of it
    when the next ones run beside it; 0 where every step is synchronous. [s]

    38 minutes of steps and an exchange of 103 s use 0.957 of the time, of 469 s 0.83 (INTELLECT-1,
    arXiv 2412.01152, table 2).
    """
    if np.all((c.link.sites <= 1) | (c.job.local_steps == 1)):
        return 0.0
    each = exchange_s(c) / local_steps(c, step_s)
    return np.where(
        c.job.local_steps == 1,
        0.0,
        np.where(c.job.exchange_overlap > 0, np.maximum(each - step_s, 0.0), each),
    )


class Steps(TypedDict):
    """A number of local steps, and the share of the time that the exchange then takes."""

    local_steps: int
    share: float


class Tokens(TypedDict):
    """What training apart costs in tokens, from none to nobody knows."""

    low: float
    high: float | None


class Report(TypedDict):
    """What the sites of one case exchange and what that costs."""

    sites: int
    kind: str
    local_steps: int
    searched: bool
    exchange_bytes: float
    exchange_s: float
    waited_s: float  # that the exchange adds to a step
    share: float  # of the step
    needed_bytes_per_s: float  # of a link over which the exchange would take WAIT_SHARE of the time
    choices: list[Steps]
    extra_tokens: Tokens
    confirm: str  # sources of extra_tokens, and who has to confirm


def report(c: Cases, step_s: float, alone_s: float) -> Report:
    """What the sites of one case exchange and what that costs, as plain data. `alone_s`: a step of
    the same case without the exchange.

    """
    apart = c.job.local_steps != 1
    steps, took = float(local_steps(c, alone_s)), float(exchange_s(c))
    waited = step_s - alone_s

    def choice(n: int) -> Steps:
        more = float(waited_s(replace(c, job=replace(c.job, local_steps=n)), alone_s))
        return {"local_steps": n, "share": more / (alone_s + more)}

    return {
        "sites": int(c.link.sites),
        "kind": "local-steps" if apart else "synchronous",
        "local_steps": int(steps),
        "searched": bool(c.job.local_steps == 0),
        "exchange_bytes": float(exchanged_bytes(c)),
        "exchange_s": took,
        "waited_s": waited,
        "share": waited / step_s,
        "needed_bytes_per_s": float(exchanged_bytes(c)) / (WAIT_SHARE * steps * alone_s),
        "choices": [choice(n) for n in CHOICES] if apart else [],
        "extra_tokens": {"low": 0.0, "high": None if apart else 0.0},
        "confirm": OPEN if apart else "",
    }
