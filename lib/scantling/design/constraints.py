"""The constraints that a run may have to keep to: one record each, for whoever judges, relaxes or
shows them. `max_oom_probability` has none: it says which plan is chosen (`plans/evaluate.py`)."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Literal

from ..base.plugins import Table
from ..base.quantities.quantity import show
from ..base.records import record

# chances that the whole run keeps to a constraint, in `promise` of `design --json`
PromiseKey = Literal["deadline_kept", "budget_kept"]


class Remedy(StrEnum):
    """What may help a constraint that is missed."""

    MORE_OF_IT = "more of it"  # days, dollars or power that can be found
    FEWER_DEVICES = "fewer devices"
    SAVES = "better saves and restarts"
    SPARES = "spare nodes"


@record
class Constraint:
    """One constraint, and its sentences, which are given numbers as people read them."""

    field: str  # of `constraints` in the design file
    figure: str  # key of `design --json` that answers it, in the table of quantities
    ceiling: bool  # the figure must not lie above the limit; else not below
    name: str
    missed: Callable[[str, str], str]  # what is said of a value that misses a limit
    relaxed: Callable[[str], str] | None = None  # the constraint moved to another limit
    band: str = ""  # days, cost_usd or step_s: the band of the estimate that the figure moves with
    scale: float = 1.0  # units of the figure in one unit of the field
    helped_by: tuple[Remedy, ...] = ()
    computed: bool = True  # whether a number answers it, which may be missing
    promise: PromiseKey | None = None  # of `promise`: the chance that the whole run keeps to it

    def shown(self, value: Any) -> str:
        """A value in the unit of the field as people read it."""
        return show(self.figure, value * self.scale if isinstance(value, (int, float)) else value)


def _late(value: str, limit: str) -> str:
    return f"deadline: {value} likely, {limit} allowed"


def _later(limit: str) -> str:
    return f"a deadline of {limit}"


def _dear(value: str, limit: str) -> str:
    return f"budget: {value} likely, {limit} allowed"


def _dearer(limit: str) -> str:
    return f"a budget of {limit}"


def _slow(value: str, limit: str) -> str:
    return f"MFU: {value} predicted"


def _slower(limit: str) -> str:
    return f"an MFU floor of {limit}"


def _wasteful(value: str, limit: str) -> str:
    return f"goodput: {value} predicted, {limit} asked for"


def _more_wasteful(limit: str) -> str:
    return f"a goodput floor of {limit}"


def _overhead(value: str, limit: str) -> str:
    return f"checkpoint overhead: {value} predicted, {limit} allowed"


def _more_overhead(limit: str) -> str:
    return f"{limit} of the time for saves"


def _stall(value: str, limit: str) -> str:
    return f"stall: a save stalls training for {value}, {limit} allowed"


def _longer_stall(limit: str) -> str:
    return f"a stall of {limit} a save"


def _lost_work(value: str, limit: str) -> str:
    return f"lost work: a failure can lose {value}, {limit} allowed"


def _more_lost_work(limit: str) -> str:
    return f"{limit} of work lost to a failure"


def _recovery(value: str, limit: str) -> str:
    return f"recovery: {value} for detection and restart, {limit} allowed"


def _longer_recovery(limit: str) -> str:
    return f"{limit} to recover"


def _power(value: str, limit: str) -> str:
    return f"power: {value} with the site's overhead, {limit} allowed"


def _more_power(limit: str) -> str:
    return f"{limit} of power"


def copies_lost(value: str, domain: str) -> str:
    """What the loss of a domain takes with it where copies stand on the nodes alone."""
    return f"losing a {domain} loses the copies too: they are only on the nodes' own disks"


_SHIPPED = (
    Constraint(
        field="deadline_days",
        figure="likely.days",
        ceiling=True,
        name="deadline",
        missed=_late,
        relaxed=_later,
        band="days",
        helped_by=(Remedy.MORE_OF_IT,),
        promise="deadline_kept",
    ),
    Constraint(
        field="budget_usd",
        figure="likely.cost_usd",
        ceiling=True,
        name="budget",
        missed=_dear,
        relaxed=_dearer,
        band="cost_usd",
        helped_by=(Remedy.MORE_OF_IT, Remedy.FEWER_DEVICES),
        promise="budget_kept",
    ),
    Constraint(
        field="min_mfu",
        figure="mfu_shown",
        ceiling=False,
        name="MFU, at least",
        missed=_slow,
        relaxed=_slower,
        band="step_s",
        helped_by=(Remedy.FEWER_DEVICES,),
    ),
    Constraint(
        field="min_goodput",
        figure="goodput",
        ceiling=False,
        name="goodput, at least",
        missed=_wasteful,
        relaxed=_more_wasteful,
        helped_by=(Remedy.FEWER_DEVICES, Remedy.SAVES, Remedy.SPARES),
    ),
    Constraint(
        field="max_checkpoint_overhead",
        figure="checkpoint_overhead",
        ceiling=True,
        name="checkpoint overhead",
        missed=_overhead,
        relaxed=_more_overhead,
        helped_by=(Remedy.FEWER_DEVICES, Remedy.SAVES),
    ),
    Constraint(
        field="max_checkpoint_stall_s",
        figure="endurance.checkpoint_stall_s",
        ceiling=True,
        name="stall of a save",
        missed=_stall,
        relaxed=_longer_stall,
    ),
    Constraint(
        field="max_lost_work_s",
        figure="endurance.lost_work_s",
        ceiling=True,
        name="lost work",
        missed=_lost_work,
        relaxed=_more_lost_work,
        helped_by=(Remedy.SAVES,),
    ),
    Constraint(
        field="max_recovery_s",
        figure="endurance.recovery_s",
        ceiling=True,
        name="recovery",
        missed=_recovery,
        relaxed=_longer_recovery,
        helped_by=(Remedy.SPARES,),
    ),
    Constraint(
        field="max_power_mw",
        figure="cost.power_w",
        ceiling=True,
        name="facility power",
        missed=_power,
        relaxed=_more_power,
        scale=1e6,
        helped_by=(Remedy.MORE_OF_IT, Remedy.FEWER_DEVICES),
    ),
    Constraint(
        field="survive",
        figure="endurance.copies_survive",
        ceiling=False,
        name="survive the loss of a",
        missed=copies_lost,
        helped_by=(Remedy.SPARES,),
        computed=False,
    ),
)
CONSTRAINTS: Table[Constraint] = Table(
    {constraint.field: constraint for constraint in _SHIPPED}, group="scantling.constraint_rows"
)
