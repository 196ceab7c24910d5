"""The one design in the middle: proposed changes go in, an assessed design or a refusal comes out.

No widget in here: `traitlets` alone, so that a notebook can observe and link `design` and `result`
as it does those of any widget. Callbacks of a notebook may come from another thread than its cells,
hence the lock.
"""

import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import scantling
import traitlets
from scantling.advise.trials import Trials
from scantling.api import Assessment
from scantling.base.errors import DesignError
from scantling.base.records import record
from scantling.design.design import Design
from scantling.design.methods import is_posttraining, refuse_posttraining, untuned
from scantling.design.resolved import Resolved
from scantling.plans.prepare import prepare
from scantling.plans.space import COARSE
from scantling.verdict.result import Result
from scantling_posttrain.answering import posttrain
from scantling_posttrain.posttrained import Posttrained
from scantling_site.promise import assessment_json

from .. import shipped_files
from . import link
from .background import Waiting, in_background

Answer = Assessment | Posttrained  # of a design that trains from the start, or tunes a model
Judge = Callable[[Design, bool], Answer]  # of a design, and whether quickly
Fields = Mapping[str, Any]  # path of the design -> value, None where it is taken away
Openable = Design | str | Path  # a design, the path of its file, or its link

_UNDO_STEPS = 200
_SLOW_S = 0.06  # a full search that takes longer waits until the control is let go
_ADVICE_S = 0.4  # without a change, until advice, a dozen further searches, is worked out
_OF_TRAINER = ("job.seq_len", "job.global_batch")  # fields that a tuned design may leave out
_ONE_MOVE_S = 0.8  # changes of one field closer together than this are one step: a drag, not forty


@record
class Moment:
    """A design, its records with every default filled in, and what the models say; `figures` is
    the assessment as plain data, once `advised` with what would help."""

    design: Design
    resolved: Resolved
    result: Answer
    figures: Result
    quick: bool = False  # from a coarse search, while a control is being dragged
    advised: bool = True  # or advice is still worked out
    trials: Trials | None = None  # changes that the advice has tried

    @property
    def tuned(self) -> Posttrained | None:
        """The answer to a design that tunes a trained model; None of any other."""
        return self.result if isinstance(self.result, Posttrained) else None

    @property
    def assessment(self) -> Assessment:
        """The assessment of a design that trains from the start. Raises DesignError of another."""
        if isinstance(self.result, Posttrained):
            refuse_posttraining(self.design)
            raise AssertionError("a design that tunes is refused above")
        return self.result


@record
class Fault:
    """One thing that is wrong with a design: the field, what is wrong in one line, and the choice
    of the nearest name: another field, where there is no such field."""

    field: str
    text: str
    nearest: str = ""

    @classmethod
    def of(cls, error: DesignError) -> "Fault":
        return cls(field=error.field, text=str(error), nearest=str(error.nearest or ""))


@record
class Refusal:
    """A change that the design does not allow: what is wrong first, the control that was moved,
    where to, what was to be set, and what else is wrong."""

    first: Fault
    moved: str = ""
    fields: Fields | None = None
    tried: Any = None
    others: tuple[Fault, ...] = ()

    @property
    def field(self) -> str:
        """The field that is wrong, or else the control that was moved."""
        return self.first.field or self.moved

    @property
    def text(self) -> str:
        return self.first.text


@record
class Kept:
    """A design that is kept beside others, and what the models say of it."""

    design: Design
    figures: Result


def assess(design: Design, quick: bool = False) -> Answer:
    """The default judge: the library's own; `quick` searches the coarse space."""
    if is_posttraining(design):
        return posttrain(design)
    return scantling.assess(design, space=COARSE) if quick else scantling.assess(design)


def figures_of(result: Answer, advice: bool = True, trials: Trials | None = None) -> Result:
    """An answer as plain data; that to a tuned model always has its advice. `trials`: changes of
    the design that were tried already, or are tried again later."""
    if isinstance(result, Posttrained):
        return result.as_dict()
    return assessment_json(result, advice, trials)


def resolved_of(result: Answer) -> Resolved:
    """The records of a design with every default filled in; of one that tunes a trained model its
    machine, the model, and the sequences of its trainer."""
    if not isinstance(result, Posttrained):
        return result.resolved
    taken = {one.field: one.value for one in result.assumed if one.field in _OF_TRAINER}
    return prepare(untuned(result.design).change(taken))


def open_design(design: Openable | None) -> Design:
    """A design, the path of its file, its link, or nothing for the example."""
    if isinstance(design, str) and link.holds(design):
        return link.read(design)
    if isinstance(design, Design):
        return design
    return Design.read(design or shipped_files.example())


class Session(traitlets.HasTraits):
    """A design and its assessment, with whatever shows them: the parts of a desk, or a notebook's
    own widgets.

    design    the design; assigning one assesses it, and raises DesignError where it cannot be
    result    its assessment; both have changed before anybody is told of either
    computing whether an assessment is under way, so that what is shown is of an earlier design

    What the parts of a desk read beside them:

    now       the design with its assessment as plain data
    before    what was there before the last change
    named     the design that the name on the desk was given to
    kept      designs to compare with, the first kept first
    reference the one of them that differences are counted from, or None
    refusal   why the last change was not taken, or None; `now` is then still the last valid one
    fault     text of an unexpected error (with its traceback), or None

    Parameters
    ----------
    design : a `scantling.Design`, the path of a design file, or a link; without one the example.
    judge : function of a design that gives its assessment; the library's own unless a test says
    otherwise.
    """

    design: traitlets.Instance[Design] = traitlets.Instance(Design)
    result = traitlets.Union(
        [traitlets.Instance(Assessment), traitlets.Instance(Posttrained)], read_only=True
    )
    computing = traitlets.Bool(False, read_only=True)

    def __init__(self, design: Openable | None = None, judge: Judge = assess) -> None:
        super().__init__()
        self.lock = threading.RLock()
        self.judge = judge
        self._watchers: list[Callable[[], None]] = []
        # designs: an assessment of each would hold every plan that was looked at
        self._past: deque[Design] = deque(maxlen=_UNDO_STEPS)
        self._future: deque[Design] = deque()
        self._pending: Fields = {}
        self._last, self._full_s = ("", 0.0), 0.0
        self._advice_waits: Waiting | None = None
        self._one_advice = threading.Lock()
        # a control is being dragged: what is costly to draw may wait until it is let go
        self.moving = False
        self.kept: list[Kept] = []
        self.reference: Kept | None = None
        self.refusal: Refusal | None = None
        self.fault: tuple[str, str] | None = None
        self.named = open_design(design)
        self.now = self._moment(self.named)
        self.first = self.before = self.now
        self._publish()
        self._advise_soon()

    def _moment(self, design: Design, quick: bool = False) -> Moment:
        quick = quick and self._full_s > _SLOW_S
        begin = monotonic()
        self.set_trait("computing", True)
        try:
            result = self.judge(design, quick)
            advised = isinstance(result, Posttrained)  # which has it at hand
            figures = figures_of(result, advised)
            resolved = resolved_of(result)
        finally:
            self.set_trait("computing", False)
        if not quick:
            self._full_s = monotonic() - begin
        return Moment(
            design=design,
            resolved=resolved,
            result=result,
            figures=figures,
            quick=quick,
            advised=advised,
        )

    # -- the two traits
    @traitlets.validate("design")
    def _assess_assigned(self, proposal: Mapping[str, Any]) -> Design:
        """A design that somebody assigns is assessed before it counts."""
        design: Design = proposal["value"]
        with self.lock:
            if design is not self.now.design and design != self.now.design:
                self.moving = False
                try:
                    self._replace(design)
                except DesignError as error:
                    self.refuse(error)
                    raise
        return design

    def _publish(self) -> None:
        """Tell whoever observes `design` and `result`, once both are those of `now`."""
        with self.hold_trait_notifications():
            self.set_trait("design", self.now.design)
            self.set_trait("result", self.now.result)

    # -- who looks
    def watch(self, watcher: Callable[[], None]) -> None:
        """Call `watcher()` after every change, and never let one that fails stop the others."""
        self._watchers.append(watcher)

    def unwatch(self, watcher: Callable[[], None]) -> None:
        """No longer call it."""
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    def notify(self) -> None:
        """Tell whoever watches."""
        for watcher in list(self._watchers):
            try:
                watcher()
            except Exception as error:  # shown on the desk; the next change goes on
                self.report(error)

    def report(self, error: BaseException) -> None:
        """Keep an unexpected error where the desk shows it."""
        text = "".join(traceback.format_exception(error))
        self.fault = (f"{type(error).__name__}: {error}", text)

    def dismiss(self) -> None:
        """Forget the unexpected error."""
        self.fault = None

    # -- what changes it
    def change(
        self, fields: Fields, moved: str = "", quick: bool = False, tried: Any = None
    ) -> bool:
        """Set fields by dotted path (None takes one away); `moved` names the control. True when the
        design took them.

        `quick` may answer from the coarse search, where the full one is too slow for a control that
        is being dragged.

        A refused value is remembered: the next change is first tried together with it, so that two
        fields that are only legal together can be set one after the other.
        """
        with self.lock:
            self.moving, moved_before = quick, self.moving
            tries = [{**self._pending, **fields}, *([fields] if self._pending else ())]
            for attempt in tries:
                try:
                    design = self.now.design.change(attempt)
                    known = design == self.now.design and not (self.now.quick and not quick)
                    moment = self.now if known else self._moment(design, quick)
                except DesignError as error:
                    refused = error
                except Exception as error:
                    self.report(error)
                    self.notify()
                    return False
                else:
                    self._accept(moment, moved or ",".join(fields), moved_before and not quick)
                    return True
            self._pending = tries[0]
            self.refuse(refused, moved, tries[0], tried)
            return False

    def refuse(
        self, error: DesignError, moved: str = "", fields: Fields | None = None, tried: Any = None
    ) -> None:
        """Say why a change is not taken; the design stays the last valid one."""
        with self.lock:
            self.refusal = Refusal(
                first=Fault.of(error),
                moved=moved,
                fields=fields,
                tried=tried,
                others=tuple(map(Fault.of, error.others)),
            )
            self.notify()

    def put(self, design: Design) -> bool:
        """Replace the whole design (load, paste, preset)."""
        with self.lock:
            self.moving = False
            try:
                self._replace(design)
            except DesignError as error:
                self.refuse(error)
            except Exception as error:
                self.report(error)
                self.notify()
            else:
                return True
            return False

    def _replace(self, design: Design) -> None:
        moment = self._moment(design)
        self.named = design
        self._accept(moment, "")

    def _accept(self, moment: Moment, what: str, let_go: bool = False) -> None:
        field, when = self._last
        clock = monotonic()
        if moment.design != self.now.design:
            if not (what and what == field and clock - when < _ONE_MOVE_S and self._past):
                self._past.append(self.now.design)
                self.before = self.now
            self._last = (what, clock)
            self._future.clear()
        elif moment is self.now and self.refusal is None and not let_go:
            return  # a control that was let go where it was
        self._show(moment)

    def _show(self, moment: Moment) -> None:
        self.now, self._pending, self.refusal = moment, {}, None
        self.notify()
        self._publish()
        self._advise_soon()

    def _advise_soon(self) -> None:
        """See to the advice of a design that stands without it, once nothing has changed for a
        while."""
        if self._advice_waits is not None:
            self._advice_waits.cancel()
        if not (self.now.advised or self.now.quick):
            self._advice_waits = in_background(self._advising(), _ADVICE_S)

    def _advising(self) -> Iterator[None]:
        self.advise()
        yield

    def advise(self) -> None:
        """Work out the advice for the design on the desk, which stands without it."""
        with self._one_advice:
            moment = self.now
            if moment.advised or moment.quick:
                return
            trials = None
            try:
                trials = Trials(moment.assessment)
                figures = figures_of(moment.result, trials=trials)
            except Exception as error:  # shown on the desk, which goes on without advice
                self.report(error)
                figures = moment.figures
        with self.lock:
            if self.now is moment:
                advised = replace(moment, figures=figures, advised=True, trials=trials)
                self._replace_moment(moment, advised)
                self.notify()

    def _replace_moment(self, old: Moment, new: Moment) -> None:
        """Put the same design, with advice, wherever it stood without."""
        self.now = new
        self.first = new if self.first is old else self.first
        self.before = new if self.before is old else self.before
        for i, kept in enumerate(self.kept):
            if kept.figures is old.figures:
                self.kept[i] = replace(kept, figures=new.figures)
                self.reference = self.kept[i] if self.reference is kept else self.reference

    @property
    def can_undo(self) -> bool:
        """Whether there is a change to take back."""
        return bool(self._past)

    @property
    def can_redo(self) -> bool:
        """Whether there is a change to do again."""
        return bool(self._future)

    def latest(self, wanted: Callable[[Design], bool]) -> Design | None:
        """The last design before this one of which that holds; None where none was on the desk."""
        return next((design for design in reversed(self._past) if wanted(design)), None)

    def undo(self) -> None:
        """Take the last change back."""
        self._back(self._past, self._future)

    def redo(self) -> None:
        """Do the change again."""
        self._back(self._future, self._past)

    def _back(self, from_: deque[Design], to: deque[Design]) -> None:
        """Put the last design of one list on the desk, and the one on the desk into the other."""
        with self.lock:
            self.moving = False
            if from_:
                to.append(self.now.design)
                self.before = self.now
                self._last = ("", 0.0)
                self._show(self._again(from_.pop()))

    def _again(self, design: Design) -> Moment:
        """A design that was on the desk before, assessed again."""
        known = (m for m in (self.first, self.before) if m.design == design and not m.quick)
        return next(known, None) or self._moment(design)

    def reset(self) -> None:
        """Back to the design that the desk opened with (and undo brings this one back)."""
        with self.lock:
            self.moving = False
            if self.now.design != self.first.design or self.refusal:
                self._accept(self.first, "")

    def keep(self) -> Kept:
        """Keep the design on the desk to compare others with; the first that is kept is the
        reference."""
        with self.lock:
            own = next((kept for kept in self.kept if kept.design == self.now.design), None)
            if own is None:
                own = Kept(design=self.now.design, figures=self.now.figures)
                self.kept.append(own)
            self.compare_with(self.reference or own)
            return own

    def compare_with(self, kept: Kept | None) -> None:
        """Count differences from a design that was kept, or from none."""
        with self.lock:
            self.moving = False
            self.reference = kept
            self.notify()

    def refer(self) -> None:
        """Keep the design that is on the desk and compare with it; a second time compare with
        none."""
        with self.lock:
            if self.reference is None:
                self.keep()
            else:
                self.compare_with(None)

    def forget(self) -> None:
        """Let all designs go that were kept."""
        with self.lock:
            self.kept.clear()
            self.compare_with(None)
