"""What faults of the network cost a run in days and dollars: a fabric that is slower than foretold,
and links that flap."""

from scantling.base.errors import DesignError
from scantling.base.records import record
from scantling.design.design import Design
from scantling.physics.collectives import LARGE_MESSAGE, fastest, links_of_machine, volume
from scantling.physics.wires import Wires
from scantling.verdict.assess import assess
from scantling.verdict.assessment import Assessment

SLOWER = 0.5  # of what the fabric should reach
OFTEN = 10.0  # times the rate of flaps that is planned with


@record
class FabricPrice:
    """What the all-reduce over all devices should reach, and what a run loses at half of it."""

    all_reduce_bytes_per_s: float
    days: float
    usd: float | None


@record
class FlapPrice:
    """What flapping links cost."""

    days: float
    usd: float | None
    days_at_ten: float


def more(before: Assessment, after: Assessment) -> tuple[float, float | None]:
    """(days, dollars) that a run takes more than another."""
    days = (after.days or 0.0) - (before.days or 0.0)
    if before.cost_usd is None or after.cost_usd is None:
        return days, None
    return days, after.cost_usd - before.cost_usd


def pinned(assessment: Assessment) -> Design:
    """The design with its plan as it was chosen."""
    plan = assessment.plan
    pins = {
        "plan.tp": plan["tp"],
        "plan.cp": plan["cp"],
        "plan.pp": plan["pp"],
        "plan.vpp": plan["vpp"],
        "plan.ep": plan["ep"],
        "plan.etp": plan["etp"],
        "plan.micro_batch": plan["micro_batch"],
        "plan.sharding": plan["sharding"],
        "plan.recompute": plan["recompute"],
    }
    try:
        return assessment.design.change(pins)
    except DesignError:
        return assessment.design


def all_reduce_rate(assessment: Assessment) -> float:
    """Bus bandwidth of a large all-reduce over all devices, as foretold or as the design measured
    it. [bytes/s]"""
    cluster = assessment.resolved.cluster
    ranks, domain = float(cluster.devices), float(min(cluster.devices, cluster.scale_up_domain))
    seconds = fastest("all_reduce", LARGE_MESSAGE, Wires(ranks, domain, links_of_machine(cluster)))
    return float(volume("all_reduce", ranks) * LARGE_MESSAGE / seconds)


def fabric_price(assessment: Assessment) -> FabricPrice | None:
    """What a fabric at half of the foretold rate costs; None for one domain, and for a run whose
    days are not known."""
    cluster = assessment.resolved.cluster
    if cluster.devices <= cluster.scale_up_domain or assessment.days is None:
        return None
    rate, design = all_reduce_rate(assessment), pinned(assessment)
    name = "cluster.measured.all_reduce_gbytes_per_s"
    usual, slow = (assess(design.change({name: rate * s / 1e9})) for s in (1.0, SLOWER))
    days, usd = more(usual, slow)
    return FabricPrice(all_reduce_bytes_per_s=rate, days=days, usd=usd)


def flap_price(assessment: Assessment) -> FlapPrice | None:
    """What flapping links cost at the rate that is planned with, and at ten times that; None where
    no rate is planned with."""
    design = pinned(assessment)
    field = "reliability.link_flaps.per_1000_link_days"
    stated = [row.value for row in assessment.assumed if row.field == field]
    own = design.reliability.link_flaps
    rate = own.per_1000_link_days if own is not None else None
    if rate is None and stated:
        rate = float(stated[0])
    if rate is None or assessment.days is None:
        return None
    never, usual, often = (assess(design.change({field: r})) for r in (0.0, rate, OFTEN * rate))
    days, usd = more(never, usual)
    return FlapPrice(days=days, usd=usd, days_at_ten=more(never, often)[0])
