"""From dated price observations to the one price that a design uses when it names none."""

from __future__ import annotations

import statistics
from dataclasses import replace

from .records import Price

_ORDER = (("on-demand", "index", "contract"), ("capacity-block", "list"), ("spot", "serverless"))
_MONTHS = 6


def _month(date: str) -> int:
    """Months since year 0 of a date written 2026, 2026-05 or 2026-05-07; a bare year counts as its
    January."""
    parts = date.split("-")
    return int(parts[0]) * 12 + (int(parts[1]) if len(parts) > 1 else 1)


def newest(item: str, rents: tuple[Price, ...]) -> Price | None:
    """Median of the observations within six months of the newest, of the most usual terms that
    there are; None without any."""
    of_item = [p for p in rents if p.item == item]
    usual = next(
        (found for kinds in _ORDER if (found := [p for p in of_item if p.kind in kinds])), None
    )
    if usual is None:
        return None
    last = max(_month(p.date) for p in usual)
    recent = [p for p in usual if last - _month(p.date) < _MONTHS]
    ends = [x for p in recent for x in (p.value, p.low, p.high) if x == x]
    latest = max(recent, key=lambda p: (_month(p.date), p.date))
    return replace(
        latest,
        provider=", ".join(dict.fromkeys(p.provider for p in recent)),
        value=statistics.median(p.middle for p in recent),
        low=min(ends),
        high=max(ends),
        source="; ".join(dict.fromkeys(p.source for p in recent)),
        term=", ".join(dict.fromkeys(p.term for p in recent if p.term)),
        notes=f"median of {len(recent)} observations",
        verified="derived" if len(recent) > 1 else latest.verified,
    )
