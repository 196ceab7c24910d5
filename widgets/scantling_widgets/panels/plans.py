"""The leaderboard: the best plans that fit, why others were refused, and one click to take one."""

from __future__ import annotations

from scantling.design.schema import PlanSpec

from .. import theme
from ..charts_plans import candidates
from ..table import Table, cell
from ..words import label, show
from .base import Panel

_PLAN = (
    "tp",
    "cp",
    "pp",
    "vpp",
    "dp",
    "ep",
    "etp",
    "micro_batch",
    "sharding",
    "schedule",
    "recompute",
)
_COLUMNS = (*_PLAN, "step_s", "mfu", "memory_bytes", "devices_used")
_LISTED = 50  # the picture beside the table shows them all
_SELDOM = ("cp", "vpp", "ep", "etp", "devices_used")  # left out where all plans have the same
_OPEN = ("step_s", "mfu", "memory_bytes", "devices_used")
_LEFT = ("sharding", "schedule", "recompute")
_FREE = (
    "dp",
    "grad_accum",
    "shard_group",
    "precision",
    "sp",
)  # these follow from the rest of a plan, or are no pin of it


class Plans(Panel):
    title = "Plans"

    def build(self):
        self.table = Table(
            "Best plans, fastest first",
            self._pick,
            action="Use this plan",
            file_name="plans",
            empty="No plan is legal and fits.",
            explain=self.explain_alone,
        )
        self.rejected = Table(
            "Plans refused, by reason",
            file_name="plans-refused",
            columns=[
                {"key": "reason", "label": "Refused because", "align": "left", "wrap": True},
                {"key": "plans", "label": "Plans"},
            ],
            empty="No plan was refused.",
        )
        self.chart = candidates.live()
        self.chart.on_pick(self._pick)
        return [
            self.table,
            theme.side_by_side(
                theme.card(candidates.title, self.chart), theme.card("Refused", self.rejected)
            ),
        ]

    def draw(self):
        given = self.session.now.given
        self._plans = list(given.get("candidates") or [])
        listed = self._plans[:_LISTED]
        plan = given.get("plan") or {}
        shown = [c for c in _COLUMNS if c not in _SELDOM or len({p.get(c) for p in listed}) > 1]
        with self.table.hold_sync():
            self.table.columns = [
                {"key": "rank", "label": "Use", "align": "left"},
                *(
                    {
                        "key": c,
                        "label": label(f"candidates.{c}"),
                        "align": "left" if c in _LEFT else "",
                    }
                    for c in shown
                ),
            ]
            self.table.fill(
                [
                    [
                        cell(f"{i + 1}", i),
                        *(
                            cell(
                                show(f"candidates.{c}", p.get(c)),
                                p.get(c),
                                key=f"candidates.{c}" if c in _OPEN else "",
                            )
                            for c in shown
                        ),
                    ]
                    for i, p in enumerate(listed)
                ],
                listed,
            )
            self.table.chosen = next(
                (i for i, p in enumerate(listed) if all(p.get(c) == plan.get(c) for c in _PLAN)), -1
            )
            self.table.note = _counts(given)
        rejected = given.get("rejected") or {}
        self.rejected.rows = [
            [reason, cell(show("rejected", n), n)]
            for reason, n in sorted(rejected.items(), key=lambda item: -item[1])
        ]
        candidates.show(self.chart, given)

    def _pick(self, index: int) -> None:
        if 0 <= index < len(self._plans):
            plan = self._plans[index]
            self.choose(
                {
                    f"plan.{name}": value
                    for name, value in plan.items()
                    if name in PlanSpec.model_fields and name not in _FREE and value is not None
                }
            )


def _counts(given) -> str:
    legal, timed = given.get("legal"), given.get("evaluated")
    return (
        ""
        if legal is None
        else f"The best of {show('evaluated', timed)} timed, {show('legal', legal)} legal."
    )
