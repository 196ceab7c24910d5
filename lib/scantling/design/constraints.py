"""The constraints that a run may keep to, for whoever judges, relaxes or shows them. Their fields,
units and bounds stand in `schema.Constraints`."""

from abc import ABC, abstractmethod
from typing import Any

from ..base.plugins import Table
from ..base.quantities.table import show


class Constraint(ABC):
    """One constraint."""

    field: str  # of `constraints` in the design file
    figure: str  # key of `design --json` that answers it, in the table of quantities
    name: str
    ceiling: bool = True  # the figure must not lie above the limit; else not below
    band: str = ""  # days, cost_usd or step_s: the band of the estimate that the figure moves with
    scale: float = 1.0  # units of the figure in one unit of the field
    computed: bool = True  # a number answers it, which may be missing

    @abstractmethod
    def missed_text(self, value: str, limit: str) -> str:
        """What is said where it is not met."""

    @abstractmethod
    def relaxed_text(self, limit: str) -> str:
        """The constraint moved to a limit, as a change is named; empty where none can be."""

    def shown(self, value: Any) -> str:
        """A value in the unit of the field as people read it."""
        return show(self.figure, value * self.scale if isinstance(value, (int, float)) else value)


class Deadline(Constraint):
    field = "deadline_days"
    figure = "days"
    name = "deadline"
    band = "days"

    def missed_text(self, value: str, limit: str) -> str:
        return f"deadline: {value} predicted, {limit} allowed"

    def relaxed_text(self, limit: str) -> str:
        return f"a deadline of {limit}"


class Budget(Constraint):
    field = "budget_usd"
    figure = "cost_usd"
    name = "budget"
    band = "cost_usd"

    def missed_text(self, value: str, limit: str) -> str:
        return f"budget: {value} predicted, {limit} allowed"

    def relaxed_text(self, limit: str) -> str:
        return f"a budget of {limit}"


class LeastMfu(Constraint):
    field = "min_mfu"
    figure = "mfu_shown"
    name = "MFU, at least"
    ceiling = False
    band = "step_s"

    def missed_text(self, value: str, limit: str) -> str:
        return f"MFU: {value} predicted"

    def relaxed_text(self, limit: str) -> str:
        return f"an MFU floor of {limit}"


class LeastGoodput(Constraint):
    field = "min_goodput"
    figure = "goodput"
    name = "goodput, at least"
    ceiling = False

    def missed_text(self, value: str, limit: str) -> str:
        return f"goodput: {value} predicted, {limit} asked for"

    def relaxed_text(self, limit: str) -> str:
        return f"a goodput floor of {limit}"


class CheckpointOverhead(Constraint):
    field = "max_checkpoint_overhead"
    figure = "checkpoint_overhead"
    name = "checkpoint overhead"

    def missed_text(self, value: str, limit: str) -> str:
        return f"checkpoint overhead: {value} predicted, {limit} allowed"

    def relaxed_text(self, limit: str) -> str:
        return f"{limit} of the time for saves"


class CheckpointStall(Constraint):
    field = "max_checkpoint_stall_s"
    figure = "endurance.checkpoint_stall_s"
    name = "stall of a save"

    def missed_text(self, value: str, limit: str) -> str:
        return f"stall: a save stalls training for {value}, {limit} allowed"

    def relaxed_text(self, limit: str) -> str:
        return f"a stall of {limit} a save"


class LostWork(Constraint):
    field = "max_lost_work_s"
    figure = "endurance.lost_work_s"
    name = "lost work"

    def missed_text(self, value: str, limit: str) -> str:
        return f"lost work: a failure can lose {value}, {limit} allowed"

    def relaxed_text(self, limit: str) -> str:
        return f"{limit} of work lost to a failure"


class Recovery(Constraint):
    field = "max_recovery_s"
    figure = "endurance.recovery_s"
    name = "recovery"

    def missed_text(self, value: str, limit: str) -> str:
        return f"recovery: {value} for detection and restart, {limit} allowed"

    def relaxed_text(self, limit: str) -> str:
        return f"{limit} to recover"


class Power(Constraint):
    field = "max_power_mw"
    figure = "cost.power_w"
    name = "facility power"
    scale = 1e6  # W of a MW

    def missed_text(self, value: str, limit: str) -> str:
        return f"power: {value} with the site's overhead, {limit} allowed"

    def relaxed_text(self, limit: str) -> str:
        return f"{limit} of power"


class Survive(Constraint):
    field = "survive"
    figure = "endurance.copies_survive"
    name = "survive the loss of a"
    computed = False

    def missed_text(self, value: str, limit: str) -> str:
        return f"losing a {limit} loses the copies too: they are only on the nodes' own disks"

    def relaxed_text(self, limit: str) -> str:
        return ""


_SHIPPED: tuple[Constraint, ...] = (
    Deadline(),
    Budget(),
    LeastMfu(),
    LeastGoodput(),
    CheckpointOverhead(),
    CheckpointStall(),
    LostWork(),
    Recovery(),
    Power(),
    Survive(),
)
# by field, those of installed packages behind them
CONSTRAINTS: Table[Constraint] = Table(
    {row.field: row for row in _SHIPPED}, "scantling.constraint_rows"
)
