"""The run as it is likely to go: days and dollars with all that failures, planned stops and risks
add, of drawn runs. Whoever shows or judges days, dollars or a chance of keeping a limit asks these.

The register of risks that the draws take belongs to the site, a package beside the core: it brings
the function `promise` (`scantling_site.promise`).
"""

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from ..base.records import Known
from .result import LikelyRow, Promise


class Likely(NamedTuple):
    """Days and dollars that half of the drawn runs keep, between those that one in ten and nine in
    ten keep; None without tokens, of dollars also without a price."""

    days: Known
    days_low: Known
    days_high: Known
    cost_usd: Known
    cost_usd_low: Known
    cost_usd_high: Known

    def row(self) -> LikelyRow:
        """The same as plain data."""
        return LikelyRow(
            days=self.days,
            days_low=self.days_low,
            days_high=self.days_high,
            cost_usd=self.cost_usd,
            cost_usd_low=self.cost_usd_low,
            cost_usd_high=self.cost_usd_high,
        )


def likely(promise: Promise) -> Likely:
    """The headline of drawn runs: their median, with the 80 % interval that they span themselves.

    Unlike `days` (tokens / rate / goodput at the estimated step) it holds the risks of the register
    by their chances, the first start, and the skew of the step's band.
    """
    return Likely(
        days=promise["days_p50"],
        days_low=promise["days_p10"],
        days_high=promise["days_p90"],
        cost_usd=promise["cost_p50"],
        cost_usd_low=promise["cost_p10"],
        cost_usd_high=promise["cost_p90"],
    )


class DrawnRuns:
    """The drawn runs of one assessment, worked out when they are first asked for, once for all its
    copies."""

    def __init__(self, draw: Callable[[], Promise | None]) -> None:
        self._draw = draw

    @cached_property
    def promise(self) -> Promise | None:
        """Days, dollars and chances of the drawn runs; None without tokens."""
        return self._draw()
