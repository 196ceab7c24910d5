"""What each of several changes does to the figures of a design: one at a time, the rest as
interaction. Changes of the design are those of `diff`; here are those of what it rests on, rows of
the catalogue and constants, between a lock and now."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scantling.base.columns import Array
from scantling.base.errors import DesignError
from scantling.base.records import Known, record
from scantling.base.show import is_number, several
from scantling.catalogue.models.shape import Model
from scantling.catalogue.replaced import replaced, row
from scantling.design.design import Design
from scantling.physics.constants import standing_in
from scantling.physics.layout import runs
from scantling.physics.memory.peak import memory
from scantling.physics.step import step_time
from scantling.verdict.assess import assess
from scantling.verdict.assessment import Assessment

from .answers import Answer
from .provenance import MODEL, Moved, by_name, near
from .snapshot import KEYS, State, same, state

INTERACTION = "interaction"
PROGRAM = "catalogue, constants and program"
REST = "other data and program"
SINGLE = 12  # inputs up to which each is a cause of its own; beyond, the constants that do least
SMALL = 0.05  # of what all constants do, up to which one of many is told with the others
Deltas = Mapping[str, Known]  # key of a figure -> after - before, None where one of them has none


@record
class Change:
    """A field that two designs state differently; None where one leaves it out. `of` is what is
    put into the first design to have it."""

    path: str
    before: Any
    after: Any
    of: Any


@record
class Cause:
    """What one change, or those of one section, do alone."""

    name: str
    changes: tuple[Change, ...]
    verdict: str  # with these alone; empty where that is no design
    refused: str  # why it is none
    deltas: Deltas

    def share(self, key: str, whole: Known) -> Known:
        """Of the whole change of a figure."""
        part = self.deltas.get(key)
        if part is None or not whole:
            return None
        return part / whole


def nothing() -> dict[str, Known]:
    """No change that is known."""
    return dict.fromkeys(KEYS, None)


def between_states(before: State, after: State) -> dict[str, Known]:
    """After - before of each figure that both have."""
    deltas = nothing()
    for key in KEYS:
        one, other = before.value(key), after.value(key)
        if one is not None and other is not None:
            deltas[key] = 0.0 if same(one, other) else other - one
    return deltas


def summed(deltas: Iterable[Deltas]) -> dict[str, Known]:
    """Sums by figure of what is known."""
    sums = nothing()
    for one in deltas:
        for key in KEYS:
            part = one[key]
            if part is not None:
                sums[key] = (sums[key] or 0.0) + part
    return sums


def with_interaction(before: State, whole: Deltas, causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """The causes, and where there are several what they leave of the whole change of each
    figure."""
    if len(causes) < 2 and not any(cause.refused for cause in causes):
        return tuple(causes)
    parts = summed(cause.deltas for cause in causes)
    rest = nothing()
    for key in KEYS:
        change = whole[key]
        if change is not None:
            left = change - (parts[key] or 0.0)
            value = before.value(key) or 0.0
            rest[key] = 0.0 if same(value, value + left) else left
    return (*causes, Cause(name=INTERACTION, changes=(), verdict="", refused="", deltas=rest))


def of_inputs(before: State, now: Answer, moved: Sequence[Moved]) -> list[Cause]:
    """What each row and constant that moved does to a design between a state that is recorded and
    now, behind what other data and the program do. They interact (`with_interaction`).

    before : the figures as recorded. moved : what differs between its inputs and those of now, with
    the values as they were. Each is moved alone, from a design under all of them as they were;
    nothing where some of those can be no row's, and of a design that tunes a trained model.
    """
    if not isinstance(now, Assessment):
        return []
    movable = [one for one in moved if one.fields or one.constants]
    if not movable:
        return []
    with np.errstate(all="ignore"):  # what a lock says may be anything
        try:
            groups = _groups(movable, now)
            base = state(_under(now.design, groups))
        except DesignError:
            return []
        causes = [_cause(base, now, groups, i) for i in range(len(groups))]
    program = between_states(before, base)
    if any(program.values()):
        causes.insert(
            0, Cause(name=REST, changes=(), verdict=base.verdict, refused="", deltas=program)
        )
    return causes


def _cause(base: State, now: Assessment, groups: Sequence[Moved], i: int) -> Cause:
    """What one group does alone, the others as they were."""
    name = groups[i].text
    if len(groups) == 1:
        one = state(now)
    else:
        try:
            one = state(_under(now.design, [*groups[:i], *groups[i + 1 :]]))
        except DesignError as error:
            return Cause(name=name, changes=(), verdict="", refused=str(error), deltas=nothing())
    deltas = between_states(base, one)
    return Cause(name=name, changes=(), verdict=one.verdict, refused="", deltas=deltas)


def _under(design: Design, moved: Iterable[Moved]) -> Assessment:
    """The assessment of a design under rows and constants as they were."""
    rows: dict[str, Any] = {}
    constants: dict[str, float] = {}
    model: Model | None = None
    for one in moved:
        constants |= one.constants
        if not one.fields:
            continue
        if one.name.startswith(MODEL):
            model = _as_it_was(one.record, one)
        else:
            rows[one.name] = _as_it_was(row(one.name), one)
    try:
        with replaced(rows):
            return assess(design, model=model, constants=constants)
    except (ArithmeticError, LookupError, TypeError) as error:  # values that no row can have
        raise DesignError("lock", problem=f"holds what no row can have ({error})") from None


def _as_it_was(record_now: Any, one: Moved) -> Any:
    """A record with the fields that moved as they were."""
    now = vars(record_now)
    fields = {name: _restored(now.get(name), old, one) for name, old in one.fields.items()}
    return replace(record_now, **fields)


def _restored(now: Any, old: Any, one: Moved) -> Any:
    """A value of plain JSON as the record has it, by the kind of the value that it has now."""
    if old is None:
        return float("nan") if isinstance(now, float) else None
    if isinstance(now, tuple) and isinstance(old, list) and all(map(_is_plain, old)):
        return tuple(old)
    if isinstance(now, Mapping) and isinstance(old, Mapping) and all(map(_is_plain, old.values())):
        return dict(old)
    if is_number(old) and (now is None or is_number(now) and near(old, now)):
        return old
    if isinstance(old, (str, bool)) and not is_number(now):
        return old
    raise DesignError(one.name, old, problem="cannot be put back")


def _is_plain(value: Any) -> bool:
    return isinstance(value, (str, int, float, bool))


def _groups(moved: Sequence[Moved], now: Assessment) -> list[Moved]:
    """The inputs as causes: each alone, and where they are many the constants that do least to step
    and memory of the plan as one: those of a SMALL share, and what is beyond SINGLE."""
    constants = [one for one in moved if one.constants]
    spare = SINGLE - (len(moved) - len(constants))
    if len(constants) <= max(spare, 1):
        return list(moved)
    moves = effects(now, constants)
    most = np.argsort(-moves, kind="stable")[: max(spare - 1, 0)]
    large = [constants[i] for i in most if moves[i] > SMALL * moves.sum()]
    least = [one for one in constants if one not in large]
    values = {name: value for one in least for name, value in one.constants.items()}
    together = Moved(text=f"{several(len(least), 'other constant')}", constants=values)
    return [one for one in moved if one not in least] + [together]


def effects(now: Assessment, moved: Sequence[Moved]) -> Array:
    """How far each constant as it was moves step and memory of the chosen plan, as shares: a row of
    cases each."""
    if not now.phases:
        return np.zeros(len(moved))
    case = now.chosen.case
    known = by_name(case.constants)
    rows: dict[str, Array] = {}
    for i, one in enumerate(moved):
        for name, value in one.constants.items():
            rows.setdefault(name, np.full(len(moved), float(known[name])))[i] = value
    laid = case.with_plan(pp=np.full(len(moved), case.plan.pp))
    # the layers stay where they are: cuts go by the kernels' times, which a constant moves
    cuts = runs(case) if case.shape.order else case.layout
    others = replace(laid, layout=cuts, constants=standing_in(case.constants, rows))
    steps = np.abs(np.log(step_time(others).total / step_time(case).total))
    used = np.abs(np.log(memory(others).total / memory(case).total))
    return np.asarray(steps + used)
