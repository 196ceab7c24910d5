"""From dated price observations to the price that a design uses when it names none: like with like,
one kind of rent across all chips."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isnan, sqrt

from ..base.records import Known
from ..base.show import several
from .rows import Price

KINDS = {
    "on-demand": ("on-demand", "index"),
    "reserved": ("reserved", "contract", "capacity-block"),
    "spot": ("spot",),
    "list": ("list", "serverless"),
}
Rents = tuple[Price, ...]
QUOTE = "quote"  # kind of a row that a user adds: their own offer, which beats all others
_MONTHS = 6
# sources of a price, the best first: what a buyer can hold a seller to, what many paid, what
# somebody wrote
RANKS = {"list": "provider's own list", "benchmark": "benchmark", "press": "press"}
GOOD = ("list", "benchmark")
WANTED = 2  # good sources from which a price can be shown without a remark
ENOUGH = 3  # observations of a kind from which no other kind is looked at
COMPARED = 2  # observations of a chip from which it says how kinds stand to each other


def _month(date: str) -> int:
    """Months since year 0 of a date written 2026, 2026-05 or 2026-05-07; a bare year counts as its
    January."""
    year, month, *_ = (date + "-1").split("-")
    return int(year) * 12 + int(month)


def recent(item: str, kind: str, rents: Rents) -> list[Price]:
    """Observations of a chip and kind within six months of the newest of them."""
    kinds = KINDS.get(kind, (kind,))
    observations = [p for p in rents if p.item == item and p.kind in kinds]
    last = max((_month(p.date) for p in observations), default=0)
    return [p for p in observations if last - _month(p.date) < _MONTHS]


def _median(observations: list[Price]) -> float:
    return statistics.median(p.middle for p in observations)


def _over_chips(rents: Rents, value: Callable[[str], Known]) -> Known:
    """Median of a value over the chips that have one."""
    known = [x for item in {p.item for p in rents} if (x := value(item)) is not None]
    return statistics.median(known) if known else None


def kind_ratio(kind: str, other: str, rents: Rents) -> Known:
    """How prices of `kind` stand to those of `other`: the median over chips with several of the one
    and any of the other; None where no chip has both."""

    def of_chip(item: str) -> Known:
        these, those = (recent(item, k, rents) for k in (kind, other))
        return _median(these) / _median(those) if len(these) >= COMPARED and those else None

    return _over_chips(rents, of_chip)


def usual_spread(kind: str, rents: Rents) -> float:
    """Factor from the median to either end of a kind's observations: the median over chips with
    enough of them. One observation is no spread of its own."""

    def of_chip(item: str) -> Known:
        observations = recent(item, kind, rents)
        if len(observations) < ENOUGH:
            return None
        ends = _ends(observations)
        return sqrt(max(ends) / min(ends))

    usual = _over_chips(rents, of_chip)
    return usual or (usual_spread("on-demand", rents) if kind != "on-demand" else 1.0)


def _ends(observations: list[Price]) -> list[float]:
    return [x for p in observations for x in (p.value, p.low, p.high) if not isnan(x)]


def offers(used: Sequence[Price]) -> str:
    """How many offers a price rests on, from how good sources, how far apart they lie and how old
    they are: what a buyer is asked about it. [USD an hour]"""
    ends = _ends([*used])
    dates = sorted({p.date for p in used}, key=lambda date: (_month(date), date))
    parts = [
        f"{count} {words}"
        for rank, words in RANKS.items()
        if (count := sum(p.rank == rank for p in used))
    ]
    spread = f"${min(ends):.3g} to ${max(ends):.3g}" if len(set(ends)) > 1 else f"${ends[0]:.3g}"
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    line = f"{several(len(used), 'offer')} ({', '.join(parts)}), {spread}, {when}"
    good = len({p.provider for p in used if p.rank in GOOD})
    if good < WANTED:
        line += f"; {'no' if not good else 'only one'} good source: ask for an offer"
    return line


def newest(item: str, rents: Rents, kind: str = "on-demand") -> Price | None:
    """The price of a chip in one kind of rent; None without any observation.

    A quote of the user's own stands alone. Else the median of the kind's observations within six
    months of the newest; where there are fewer than ENOUGH, those of other kinds count too, each
    times how the two kinds stand to each other on other chips, and all are pooled by their
    geometric mean. Ends: what was observed, from ENOUGH observations; else the usual spread of the
    kind.
    """
    quotes = recent(item, QUOTE, rents)
    direct = quotes or recent(item, kind, rents)
    pool = [p.middle for p in direct]
    basis = []
    if direct:
        basis.append(several(len(direct), "own quote" if quotes else f"{kind} observation"))
    used = list(direct)
    enough = bool(quotes) or len(direct) >= ENOUGH
    for other in () if enough else [k for k in KINDS if k != kind]:
        times = kind_ratio(kind, other, rents)
        observations = recent(item, other, rents)
        if observations and times:
            used += observations
            pool.append(_median(observations) * times)
            basis.append(f"{other} prices at {times:.2f} of them, as on other chips")
    if not pool:
        return None
    value = statistics.geometric_mean(pool) if len(pool) < ENOUGH else statistics.median(pool)
    wide = usual_spread(kind, rents)
    ends = _ends(direct) if enough else [value / wide, value * wide, *pool]
    used.sort(key=lambda p: [*RANKS, ""].index(p.rank))
    latest = max(used, key=lambda p: (_month(p.date), p.date))
    spread = "" if enough else f"; the usual spread of {kind} prices"
    return replace(
        latest,
        kind=kind,
        provider=", ".join(dict.fromkeys(p.provider for p in used)),
        value=value,
        low=min(ends),
        high=max(ends),
        source="; ".join(dict.fromkeys(p.source for p in used)),
        term=", ".join(dict.fromkeys(p.term for p in used if p.term)),
        notes="; ".join(
            [("median of " if enough else "from ") + " and ".join(basis) + spread]
            + ([] if quotes else [offers(used)])
        ),
        verified="derived" if len(used) > 1 else latest.verified,
    )
