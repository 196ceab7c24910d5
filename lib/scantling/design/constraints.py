"""The constraints that a run may have to keep to: one row each, for whoever judges, relaxes or
shows them."""

from __future__ import annotations

from typing import NamedTuple


class Constraint(NamedTuple):
    """One constraint. `{value}` and `{limit}` stand in its words."""

    field: str  # of `constraints` in the design file
    figure: str  # key of `design --json` that answers it, in the table of quantities
    ceiling: bool  # the figure must not lie above the limit; else not below
    name: str
    missed: str  # where it is not met
    relaxed: str = ""  # the constraint moved to {limit}
    band: str = ""  # days or step_s: the band of the estimate that the figure moves with
    scale: float = 1.0  # units of the figure in one unit of the field


CONSTRAINTS = {
    row.field: row
    for row in (
        Constraint(
            "deadline_days",
            "days",
            True,
            "deadline",
            "deadline: {value} predicted, {limit} allowed",
            "a deadline of {limit}",
            "days",
        ),
        Constraint(
            "budget_usd",
            "cost_usd",
            True,
            "budget",
            "budget: {value} predicted, {limit} allowed",
            "a budget of {limit}",
            "days",
        ),
        Constraint(
            "min_mfu",
            "mfu",
            False,
            "MFU, at least",
            "MFU: {value} predicted",
            "an MFU floor of {limit}",
            "step_s",
        ),
        Constraint(
            "min_goodput",
            "goodput",
            False,
            "goodput, at least",
            "goodput: {value} predicted, {limit} asked for",
            "a goodput floor of {limit}",
        ),
        Constraint(
            "max_checkpoint_overhead",
            "checkpoint_overhead",
            True,
            "checkpoint overhead",
            "checkpoint overhead: {value} predicted, {limit} allowed",
            "{limit} of the time for saves",
        ),
        Constraint(
            "max_checkpoint_stall_s",
            "endurance.checkpoint_stall_s",
            True,
            "stall of a save",
            "stall: a save stalls training for {value}, {limit} allowed",
            "a stall of {limit} a save",
        ),
        Constraint(
            "max_lost_work_s",
            "endurance.lost_work_s",
            True,
            "lost work",
            "lost work: a failure can lose {value}, {limit} allowed",
            "{limit} of work lost to a failure",
        ),
        Constraint(
            "max_recovery_s",
            "endurance.recovery_s",
            True,
            "recovery",
            "recovery: {value} for detection and restart, {limit} allowed",
            "{limit} to recover",
        ),
        Constraint(
            "max_power_mw",
            "cost.power_w",
            True,
            "facility power",
            "power: {value} with the site's overhead, {limit} allowed",
            "{limit} of power",
            scale=1e6,
        ),
        Constraint(
            "survive",
            "endurance.copies_survive",
            True,
            "survive the loss of a",
            "losing a {limit} loses the copies too: they are only on the nodes' own disks",
        ),
    )
}
