"""The parts that a desk is built of: the controls, the headline, the two pictures at its centre,
what the last move did. Each also stands alone (`widgets`)."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, ClassVar

from scantling.advise.trials import Trials
from scantling.base.errors import DesignError, closest
from scantling.design.design import Design
from scantling.design.methods import is_posttraining
from scantling.verdict.result import Result, band_of
from scantling_posttrain.posttrained import Posttrained

from ..charts import memory_step
from ..charts.figure import Figure
from ..charts.livechart import LiveChart
from ..charts.page_parts import Button, Message, Part
from ..charts.sides import side_memory, sides
from . import boxes, headline, inputs, legend, story
from .background import Waiting, in_background
from .boxes import box
from .controls import GROUPS
from .form import Form
from .pane import Pane
from .session import Fields, Moment, Session

_FIRST = "Move an input or take a change: this line tells what it did, and what takes most then."
_TRIES = "Moves that might help are being tried."
_FORMULAS = "Each part with its formula"
_IDLE_S = 1.0  # after the advice, until moves are tried


# ---------------------------------------------------------------- inputs
class ControlsPane(Pane):
    """The column of inputs: all groups of the desk, or some fields alone."""

    def __init__(self, session: Session, fields: Sequence[str] | None = None) -> None:
        super().__init__(session)
        self._fields = None if fields is None else known_fields(fields)
        self.root = self.form = Form(self._moved, self._ask)
        # {field: {value: why the design cannot take it}}, for the design in _reasons_of
        self._reasons: dict[str, dict[Any, str]] = {}
        self._reasons_of: Design | None = None

    def show(self) -> None:
        known = self._reasons_of is self.session.now.design
        self.form.show(inputs.groups(self.session, self._reasons if known else {}, self._fields))

    def _moved(self, field: str, value: Any, final: bool) -> None:
        self.act(partial(self._move, field, value, final))

    def _move(self, field: str, value: Any, final: bool) -> None:
        if field == "example":
            if value:
                self.session.put(Design.read(value))
            return
        try:
            fields = inputs.changes(self.session.now, field, value, self._pretrained())
        except DesignError as error:
            self.session.refuse(error, field, tried=value)
            return
        if fields:
            self.session.change(fields, field, quick=not final, tried=value)

    def _pretrained(self) -> Design | None:
        """The last design on the desk that trained from the start."""
        return self.session.latest(lambda design: not is_posttraining(design))

    def _ask(self, field: str) -> None:
        """Somebody is about to open a list of the plan: say which of its values the design cannot
        take, and why."""
        self.act(partial(self._mark, field))

    def _mark(self, field: str) -> None:
        if self._reasons_of is not self.session.now.design:
            self._reasons, self._reasons_of = {}, self.session.now.design
        if field not in self._reasons:
            self._reasons[field] = inputs.refusals(self.session.now, field)
            self.show()


def known_fields(fields: Sequence[str]) -> tuple[str, ...]:
    """The fields, each of which has a control. Raises DesignError for one that has none, with the
    nearest that has."""
    if isinstance(fields, str):
        raise DesignError("fields", fields, "a list of fields, such as ['cluster.devices']")
    names = [control.field for group in GROUPS for control in group.controls]
    for field in fields:
        if field not in names:
            raise DesignError("fields", field, tuple(names), closest(field, names))
    return tuple(fields)


# ---------------------------------------------------------------- headline
class HeadlinePane(Pane):
    """The headline numbers, and the one sentence that is most worth knowing."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.strip = legend.Strip(partial(headline.explanation, session))
        self.line = Part(cls="sd-line-host", role="status")
        self.fault = boxes.text(cls="sd-fault-host")
        self.dismiss = Button("Dismiss", partial(self.act, self._forget))
        self.fix = Button("Apply fix", partial(self.act, self.apply_fix), cls="sd-fix")
        self._offer: headline.Offer | None = None
        self.root = box(
            "sd-headline",
            box("sd-line-of", self.fault, self.dismiss),
            self.strip,
            box("sd-line-of sd-message", self.line, self.fix),
        )

    def show(self) -> None:
        reference = self.session.reference
        figures = self.session.now.figures
        self.strip.show(headline.cards(figures, reference.figures if reference else None))
        self._show_line()
        self.show_fault()

    def _show_line(self) -> None:
        now = self.session.now
        state, start, sentence, near = headline.message(now.figures, self.session.refusal)
        if self.session.refusal is None and not (now.advised or now.quick):
            sentence = f"{sentence} What would help is being worked out.".lstrip()
        if now.tuned is not None and now.tuned.asks and self.session.refusal is None:
            sentence = f"{sentence} To be settled: {now.tuned.asks[0]}".lstrip()
        fact, mark, rest = sentence.partition("; ")
        self.line.value = (
            f'<div class="sd-line" tabindex="0" data-state="{state}"><span '
            f'title="{boxes.escape(f"{sentence} {near}".strip())}"><b>{boxes.escape(start)}</b> '
            f"{boxes.escape(fact)}<span class=sd-rest>{boxes.escape(mark + rest)}</span> "
            f"<span class=sd-near>{boxes.escape(near)}</span></span></div>"
        )
        self._offer = headline.offer(self.session)
        self.fix.hidden = self._offer is None
        if self._offer is not None:
            self.fix.description, self.fix.tooltip = self._offer.name, self._offer.effect

    def apply_fix(self) -> None:
        """Take the change that is offered."""
        if self._offer is not None:
            self.session.change(self._offer.fields)

    def _forget(self) -> None:
        self.session.dismiss()
        self.show_fault()

    def show_fault(self) -> None:
        """An unexpected error of the kit, or nothing."""
        fault = self.session.fault
        self.dismiss.hidden = not fault
        if fault is None:
            self.fault.value = ""
            return
        what, trace = map(boxes.escape, fault)
        self.fault.value = (
            '<div class="sd-error" role="alert"><b>Something went wrong in the kit; the desk goes '
            f"on.</b> {what}<details><summary>Details</summary><pre>{trace}</pre></details></div>"
        )


# ---------------------------------------------------------------- pictures
class PicturePane(Pane):
    """A picture with the key to its parts; in its place, where no plan holds the model, the reasons
    or what would help."""

    see: ClassVar[str]  # what to see here

    def __init__(
        self, session: Session, figure: Figure[...], sides: Figure[[Posttrained | None]]
    ) -> None:
        super().__init__(session)
        self.figure, self.chart = figure, figure.live()
        self.sides, self.side_chart = sides, sides.live()
        self.key = legend.Key(partial(headline.explanation, session))
        self.root = self.card = boxes.card(figure.title, self.chart, self.key, see=self.see)
        self._whole = self.card.children
        self._by_side = (self.side_chart, self.key)

    def show(self) -> None:
        tuned = self.session.now.tuned
        self.card.children = self._whole if tuned is None else self._by_side
        self.card.title = self.figure.title if tuned is None else self.sides.title
        if tuned is not None:
            self._show_sides(tuned)
        else:
            self._show_whole()

    def _show_sides(self, tuned: Posttrained) -> None:
        """Rollout and trainer of a design that tunes a trained model."""
        self.card.note = ""
        if tuned.plan is None:
            _show_lines(self.side_chart, [self.sides.empty, *tuned.limits])
            self.key.show([])
            return
        self.sides.show(self.side_chart, self.session.now.figures, tuned)
        self.show_key_of(tuned)

    def show_key_of(self, tuned: Posttrained) -> None:
        """Name and amount of each part of rollout and trainer."""
        raise NotImplementedError

    def _show_whole(self) -> None:
        figures, reference = self.session.now.figures, self.session.reference
        if not figures.get("plan"):
            _show_lines(self.chart, self.lines(figures))
            self.key.show([])
            self.card.note = ""
            return
        earlier = reference.figures if reference and reference.figures.get("plan") else None
        self.figure.show(self.chart, figures, reference=earlier)
        self.show_key(figures)

    def lines(self, figures: Result) -> list[str]:
        """What stands in the place of the picture."""
        raise NotImplementedError

    def show_key(self, figures: Result) -> None:
        """Name and amount of each part, and the remark at the right of the title."""
        raise NotImplementedError


class MemoryPane(PicturePane):
    """Memory of each stage against what a device has."""

    see = "The tallest stage decides: how far it stays below the line, and of what it is made."

    def __init__(self, session: Session) -> None:
        super().__init__(session, memory_step.memory, side_memory)

    def lines(self, figures: Result) -> list[str]:
        return [self.figure.empty, *map(str, figures["limits"])]

    def show_key(self, figures: Result) -> None:
        worst = memory_step.fullest(figures)
        self.key.show(legend.memory(worst), worst)
        self.card.note = f"legend shows stage {worst['stage']} (peak)"

    def show_key_of(self, tuned: Posttrained) -> None:
        self.key.title = ""
        self.key.show(legend.side_memory(tuned))
        self.card.note = "red line: what a program can have"


class StepPane(PicturePane):
    """One step in time, part by part."""

    see = "Blue is the model's own arithmetic; every other part is time to win."

    def __init__(self, session: Session) -> None:
        super().__init__(session, memory_step.step, sides)
        self.key.title = _FORMULAS

    def lines(self, figures: Result) -> list[str]:
        fixes = [headline.fix_text(fix) for fix in figures["nearest_fixes"]]
        return [f"{self.figure.empty} What would help:" if fixes else self.figure.empty, *fixes]

    def show_key(self, figures: Result) -> None:
        self.key.title = _FORMULAS
        self.key.show(legend.step(figures))
        spread = band_of(figures, "step_s")
        self.card.note = f"bar: {spread}, 80 % prediction interval" if spread else ""

    def show_key_of(self, tuned: Posttrained) -> None:
        self.key.title = ""
        self.key.show(legend.sides(tuned))
        spread = band_of(self.session.now.figures, "step_s")
        self.card.note = f"bar: {spread}, 80 % prediction interval"


def _show_lines(chart: LiveChart, lines: Sequence[str]) -> None:
    """Put a list into the place of a picture."""
    chart.empty = "\n• ".join(lines)
    chart.update({name: {} for name in chart.data}, chart.empty)


# ---------------------------------------------------------------- what a move did
class StoryPane(Pane):
    """What the last move did, and moves that are worth trying next."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._timer: Waiting | None = None
        self._moment: Moment | None = None  # that moves stand for, or are tried on
        self._buttons: list[Button] = []
        self._offered: list[Fields] = []  # by the buttons
        self.sentence = boxes.text(cls="sd-story")
        self.waits = boxes.text(cls="sd-waits")  # stands where moves will
        self.moves = box("sd-moves", self.waits)
        self.root = box("sd-line-of sd-tale", self.sentence, self.moves)

    def show(self) -> None:
        session = self.session
        moved = session.now.design not in (session.before.design, session.named)
        self.sentence.value = boxes.escape(
            story.changed(session.before, session.now) if moved else _FIRST
        )
        self.moves.hidden = session.now.tuned is not None  # none of it is tried
        if session.now is not self._moment:
            self._moment = session.now
            self.waits.value = _TRIES
            self.moves.children = (self.waits,)
            self._suggest()

    def greeted(self, message: Message) -> None:
        self._suggest()

    def _suggest(self) -> None:
        """Try moves once nothing has changed for a while, where somebody looks, after the advice:
        what it says leads."""
        if self._timer is not None:
            self._timer.cancel()
        now, page = self.session.now, self.root.page
        if now.tuned is None and now.advised and page is not None and page.seen:
            self._timer = in_background(self._try_moves(), _IDLE_S)

    def _try_moves(self) -> Iterator[None]:
        moment = self.session.now
        trials = Trials(moment.assessment, moment.trials)
        moves: list[story.Suggestion] = []
        steps = chain(
            map(trials.tried, story.moves(moment)),
            map(moves.append, story.suggested(moment, trials)),
        )
        try:
            for _ in steps:
                if self.session.now is not moment:
                    return
                if self.session.moving:
                    self._moment = None  # tried from the start once it is let go
                    return
                yield
        except Exception as error:  # shown on the desk, which goes on
            self.session.report(error)
            self.session.notify()
            self.waits.value = ""
        else:
            if self.session.now is moment:
                self.waits.value = story.none_helps(moment, len(trials.seen))
                self.offer(moves)

    def offer(self, moves: Iterable[tuple[str, str, Fields]]) -> None:
        """Put suggested moves (name, what comes of it, fields) below the sentence."""
        offered = list(moves)
        while len(self._buttons) < len(offered):  # a page keeps every part that it once had
            self._buttons.append(Button("", partial(self._take, len(self._buttons))))
        self._offered = [fields for _, _, fields in offered]
        for button, (name, effect, _) in zip(self._buttons, offered):
            button.description, button.tooltip = f"{name}: {effect}", effect
        self.moves.children = tuple(self._buttons[: len(offered)]) or (self.waits,)

    def _take(self, place: int) -> None:
        self.act(partial(self.session.change, self._offered[place]))
