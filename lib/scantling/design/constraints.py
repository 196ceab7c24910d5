"""The constraints that a run may have to keep to: one row each, for whoever judges, relaxes or
shows them."""

from __future__ import annotations

from ..base.plugins import Table
from ..base.quantities.table import show
from ..base.records import record
from ..base.words import table_rows
from ..catalogue.load import filled


@record
class Constraint:
    """One constraint. `{value}` and `{limit}` stand in its words."""

    field: str  # of `constraints` in the design file
    figure: str  # key of `design --json` that answers it, in the table of quantities
    ceiling: bool  # the figure must not lie above the limit; else not below
    name: str
    missed: str  # where it is not met
    relaxed: str = ""  # the constraint moved to {limit}
    band: str = ""  # days, cost_usd or step_s: the band of the estimate that the figure moves with
    scale: float = 1.0  # units of the figure in one unit of the field

    def shown(self, value) -> str:
        """A value in the unit of the field as people read it."""
        return show(self.figure, value * self.scale if isinstance(value, (int, float)) else value)

    @property
    def computed(self) -> bool:
        """Whether a number answers it, which may be missing."""
        return self.field != "survive"


CONSTRAINTS: Table[Constraint] = Table(
    {c.field: c for c in filled(Constraint, table_rows(__file__, "constraints"))},
    group="scantling.constraint_rows",
)
