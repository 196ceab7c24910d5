"""What the parts about operations stand on: published facts by id, the run's length and price,
small records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ..base.records import Record
from ..base.units import DAY_S
from ..catalogue.families import family

HORIZON_DAYS = (
    30.0  # stands for the run where the design names no tokens, and where the run hardly advances:
)
STANDSTILL = 0.05  # goodput below which it does not


@cache
def _facts() -> dict:
    from .. import catalogue

    return {f.id: f for f in catalogue.reliability_facts()}


def number(id: str) -> float:
    """The figure of a published fact (catalogue/reliability.csv), in the unit printed there. Raises
    ValueError where it is not one number."""
    value = _facts()[id].number
    if value != value:
        raise ValueError(f"{id} is not one number: {_facts()[id].value!r}")
    return value


def source(*ids: str) -> str:
    """Title and place of published facts, for a reader."""
    return "; ".join(dict.fromkeys(f"{_facts()[i].title}, {_facts()[i].locator}" for i in ids))


@dataclass(frozen=True)
class Run(Record):
    """Length and price of the run that shares and losses are counted on."""

    days: float  # of the run, else HORIZON_DAYS
    of_the_run: bool  # False where the design names no tokens
    usd_per_day: float | None
    devices_paid: int
    nodes: int

    def usd(self, days) -> float | None:
        """Dollars of so many days of the whole allocation; None without a price."""
        return None if self.usd_per_day is None or days is None else self.usd_per_day * float(days)


def run_of(assessment) -> Run:
    """Length and price of an assessment's run: its days, or 30 where no tokens are named or hardly
    a step is kept; dollars a day of all devices that are paid."""
    from ..endure.cost import price

    r, e = assessment.resolved, assessment.endurance
    days = assessment.figures["days"] if float(e.goodput) > STANDSTILL else None
    paid = r.cluster.devices + int(e.spares) * r.cluster.devices_per_node
    usd = price(r.cluster, r.prices, wall_s=DAY_S, devices_paid=paid).cost_usd
    return Run(
        HORIZON_DAYS if days is None else float(days),
        days is not None,
        None if usd is None else float(usd),
        int(paid),
        int(r.cluster.nodes),
    )


def idle_nodes(assessment) -> int:
    """Whole nodes of the cluster that the plan does not use: they stand in for spares."""
    cluster = assessment.resolved.cluster
    return int(
        (cluster.devices - int(assessment.figures["devices_used"])) // cluster.devices_per_node
    )


def is_torus(cluster) -> bool:
    """True where the scale-up network is a torus of chips rather than a switch (TPU)."""
    return family(cluster.accelerator.family).torus and cluster.scale_up_domain > 1
