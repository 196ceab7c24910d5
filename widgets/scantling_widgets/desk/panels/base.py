"""What every tab has in common."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, ClassVar

from scantling.advise.explanation import Opened, inputs, opened
from scantling.verdict.result import Result

from ... import quantity_texts
from ...charts.figure import Figure
from ...charts.page_parts import Box, Part
from .. import boxes, headline
from ..legend import Facts
from ..page_table import Table, record_text
from ..pane import Pane
from ..panel_tables import TableSpec
from ..session import Fields, Kept, Moment, Session

_NO_PLAN = (
    "<p>No plan can hold this model on this machine; the line above gives the arithmetic.</p>"
)
_OVER = "<p>The plan does not fit into memory: there is no run, and nothing to count of it.</p>"


class Methods(Enum):
    """Designs that a tab has something to say of."""

    PRETRAINING = "train from the start"
    TUNING = "tune a trained model"
    ALL = "all"


def table_card(table: Table, *below: Part, see: str) -> Box:
    """A table in its card, with one sentence on what to see there, and what stands below it."""
    return boxes.card(table.label, table, *below, see=see)


class Panel(Pane):
    """A tab. `build` makes its parts once, `draw` puts the session's current design into them."""

    title: ClassVar[str] = ""
    always: ClassVar[bool] = False  # whether it has something for a design that no plan can hold
    methods: ClassVar[Methods] = Methods.PRETRAINING  # of which it says something
    of_a_run: ClassVar[bool] = False  # whether it speaks of a run, which needs a plan that fits
    charts: ClassVar[Iterable[Figure[...]]] = ()  # the charts that it may show

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.root = boxes.stack()
        self.parts: tuple[Part, ...] | None = None
        # the design, what it is compared with, and how many are kept
        self._drawn: tuple[Moment, Kept | None, int] | None = None

    @property
    def now(self) -> Moment:
        """The design on the desk, assessed."""
        return self.session.now

    def choose(self, fields: Fields) -> bool:
        """Change fields of the design on the desk, as a click in a tab does."""
        return self.session.change(fields)

    @classmethod
    def answers(cls, tuned: bool) -> bool:
        """Whether it has something to say of a design that tunes a trained model, or of others."""
        return cls.methods in (Methods.ALL, Methods.TUNING if tuned else Methods.PRETRAINING)

    @property
    def figures(self) -> Result:
        """Its assessment as data."""
        return self.now.figures

    # ------------------------------------------------------------ tables whose numbers open
    def list_of(self, spec: TableSpec) -> Table:
        """A table of the design on the desk."""
        explain = self.explain_record(spec.extra_lines) if spec.extra_lines else self.explain
        return Table(spec, explain=explain, text=self.cell_text)

    def choice_of(self, spec: TableSpec, on_pick: Callable[[int], None]) -> Table:
        """A table of other plans or designs, of which one can be chosen."""
        explain = partial(self.explain, alone=True)
        return Table(spec, on_pick, explain=explain, text=self.cell_text)

    def explain(
        self, key: str, facts: Mapping[str, Any] | None = None, *, alone: bool = False
    ) -> Opened:
        """What a number of this tab opens to."""
        return headline.explanation(self.session, key, facts, alone=alone)

    def explain_record(self, extra_lines: Mapping[str, str]) -> Callable[[str, Facts], Opened]:
        """What a number of a record of the blueprint opens to; `extra_lines`: {term: field of the
        record} said below it."""

        def explain(key: str, row: Facts) -> Opened:
            out = opened(key, self.figures, inputs(self.now, self.figures), row)
            out["value"] = self.cell_text(key, row)
            out["lines"] += [
                (term, quantity_texts.named(field, row[field]))
                for term, field in extra_lines.items()
                if row.get(field) not in (None, "")
            ]
            return out

        return explain

    def cell_text(self, key: str, row: Facts) -> str:
        """The text of a number of a record in one of its columns."""
        return record_text(key, row)

    # ------------------------------------------------------------ what a tab does
    def build(self) -> Sequence[Part]:
        """Make the parts of the tab; those that stand on it, from the top."""
        raise NotImplementedError

    def draw(self) -> None:
        """Put the design on the desk into the parts."""
        raise NotImplementedError

    def opened(self) -> None:
        """What starts when the tab is shown for the first time."""

    def ended(self, error: Exception | None) -> None:
        """What a job of this tab does at its end."""
        if error is not None:
            self.session.report(error)
            self.session.notify()

    def show(self) -> None:
        """Bring the tab up to date; does nothing when it already shows this design and this
        comparison."""
        plan, over = (
            self.figures.get("plan"),
            self.of_a_run and not quantity_texts.fits(self.figures),
        )
        if not self.always and (over or not plan):
            self.root.children, self._drawn = (boxes.text(_OVER if plan else _NO_PLAN),), None
            return
        first = self.parts is None
        if self.parts is None:
            self.parts = tuple(self.build())
        self.root.children = self.parts
        drawn, shown = self._drawn, (self.now, self.session.reference, len(self.session.kept))
        if drawn is None or any(was is not has for was, has in zip(drawn, shown)):
            self.draw()
            self._drawn = shown
        if first:
            self.opened()
