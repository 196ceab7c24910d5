"""What a change of a design does: what was asked differently, what that did to verdict, plan and
figures, and how much of it comes from which change.

Each change is applied alone to the first design; what all of them together do beyond the sum is
the interaction.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scantling.advise.comparison import MANY, PLAN
from scantling.base.cells import markdown_cell
from scantling.base.errors import DesignError
from scantling.base.quantities.quantity import quantity, show
from scantling.base.records import Known, record
from scantling.base.show import NONE, is_number, params, percent, value_text
from scantling.catalogue.models.hf import config_file
from scantling.design.design import Design
from scantling.verdict.overheads import PartOfSteps, parts_that_moved
from scantling.verdict.verdicts import VERDICTS

from .answers import Answer, answered
from .causes import (
    PROGRAM,
    Cause,
    Change,
    Deltas,
    between_states,
    nothing,
    summed,
    with_interaction,
)
from .snapshot import ENGINE, KEYS, OF_ENGINE, State, label, state
from .sources import companions

CAUSES = 12  # changes up to which each is a cause of its own, else each section
COLUMNS = KEYS[:6]  # figures of the tables
TITLES = ("name", "notes")  # what decides nothing


@record
class Difference:
    """Two designs, and what lies between them."""

    before: State
    after: State
    asked: tuple[Change, ...]
    plan: tuple[Change, ...]
    causes: tuple[Cause, ...]  # the last is the interaction, where there are several
    deltas: Deltas

    @property
    def same(self) -> bool:
        """Whether nothing differs that decides."""
        moved = any(self.deltas[key] for key in COLUMNS)
        return not (self.asked or self.plan or moved or self.before.verdict != self.after.verdict)

    def as_dict(self) -> dict[str, Any]:
        """The keys of `diff --json`."""
        return {
            "names": {"a": self.before.name, "b": self.after.name},
            "verdict": {"a": self.before.verdict, "b": self.after.verdict},
            "plan": {"a": self.before.plan, "b": self.after.plan},
            "plan_changes": [_change_row(one) for one in self.plan],
            "asked": [_change_row(one) for one in self.asked],
            "figures": {
                key: self._figure_row(key)
                for key in KEYS
                if self.before.value(key) is not None or self.after.value(key) is not None
            },
            "step_parts": [
                {
                    "part": one.part,
                    "label": one.label,
                    "a": one.seconds[0],
                    "b": one.seconds[1],
                    "change": one.seconds[1] - one.seconds[0],
                }
                for one in self.step_parts
            ],
            "causes": [
                {
                    "cause": cause.name,
                    "changes": [_change_row(one) for one in cause.changes],
                    "verdict": cause.verdict or None,
                    "refused": cause.refused or None,
                    "change": dict(cause.deltas),
                }
                for cause in self.causes
            ],
        }

    @property
    def step_parts(self) -> list[PartOfSteps]:
        """The parts of the step that moved, the widest first, and all others together; none where
        one side is a lock, which has no parts."""
        return parts_that_moved([self.before.step_parts, self.after.step_parts])

    def step_line(self) -> str:
        """By how much which part of the step moved; nothing where none did."""
        return "; ".join(
            f"{one.label} {_delta('step_s', one.seconds[1] - one.seconds[0])}"
            for one in self.step_parts
        )

    def _figure_row(self, key: str) -> dict[str, Any]:
        """One figure on both sides with its bands, and what each cause has of its change."""
        whole = self.deltas[key]
        return {
            "label": label(key),
            "a": self.before.value(key),
            "b": self.after.value(key),
            "a_band": _band(self.before, key),
            "b_band": _band(self.after, key),
            "change": whole,
            "by": {cause.name: cause.share(key, whole) for cause in self.causes},
        }

    def verdict_line(self) -> str:
        """The verdicts in words."""
        names = [VERDICTS[one.verdict].name for one in (self.before, self.after)]
        return names[0] if names[0] == names[1] else f"{names[0]} → {names[1]}"

    def table(self) -> list[list[str]]:
        """Heads and rows: before, after, the change, and each cause with its share of it."""
        rows = [["", *(label(key) for key in COLUMNS), "verdict"]]
        for name, one in (("before", self.before), ("after", self.after)):
            cells = [show(key, one.value(key)) for key in COLUMNS]
            rows.append([name, *cells, VERDICTS[one.verdict].name])
        rows.append(["change", *(_delta(key, self.deltas[key]) for key in COLUMNS), ""])
        for cause in self.causes:
            cells = [self._part(cause, key) for key in COLUMNS]
            verdict = VERDICTS[cause.verdict].name if cause.verdict else ""
            if cause.refused:
                verdict = "not possible alone"
            rows.append([cause.name, *cells, verdict])
        return rows

    def _part(self, cause: Cause, key: str) -> str:
        """What a cause does to a figure, with its share of the whole change."""
        delta = cause.deltas.get(key)
        if not delta:
            return "" if delta is None else "0"
        share = cause.share(key, self.deltas[key])
        return _delta(key, delta) + ("" if share is None else f" ({percent(share, 0)})")

    def lines(self) -> Iterator[tuple[str, str]]:
        """(name, text) of what precedes the table."""
        yield "Designs", f"{self.before.name} → {self.after.name}"
        yield "Verdict", self.verdict_line()
        for name, changes in (("Asked", self.asked), ("Plan", self.plan)):
            yield name, "; ".join(said(one) for one in changes) or "the same"
        if step := self.step_line():
            yield "Step", step
        for line in self.after.missed:
            yield "Missed", line

    def figure_rows(self) -> list[list[str]]:
        """A row a figure: label, before, after, the change."""
        return [
            [
                label(key),
                show(key, self.before.value(key)),
                show(key, self.after.value(key)),
                _delta(key, self.deltas[key]),
            ]
            for key in KEYS
            if self.before.value(key) is not None or self.after.value(key) is not None
        ]

    def cause_lines(self) -> Iterator[tuple[str, str]]:
        """(cause, what it does to each figure that it moves, with its share of the whole)."""
        for cause in self.causes:
            if cause.refused:
                yield cause.name, f"is no design alone: {cause.refused}"
                continue
            parts = [f"{label(k)} {self._part(cause, k)}" for k in COLUMNS if cause.deltas.get(k)]
            text = ", ".join(parts) or "moves nothing"
            if cause.verdict:
                text += f"; {VERDICTS[cause.verdict].name}"
            yield cause.name, text

    def markdown(self) -> str:
        """The difference for a pull request."""
        head, *rows = self.table()
        lines = [f"**{name}** {markdown_cell(text)}" for name, text in self.lines()]
        table = [head, ["---", *(["---:"] * (len(head) - 1))], *rows]
        lines += [
            f"{markdown_cell(cause.name)} is no design alone: {markdown_cell(cause.refused)}"
            for cause in self.causes
            if cause.refused
        ]
        return (
            "\n\n".join(lines)
            + "\n\n"
            + "\n".join("| " + " | ".join(map(markdown_cell, row)) + " |" for row in table)
            + "\n"
        )


def diff(before: Design, after: Design) -> Difference:
    """What lies between two designs. Raises DesignError for one that is wrong."""
    first = answered(before)
    return between(state(first), first, state(answered(after, like=first)), after)


def between(
    before: State,
    base: Answer,
    after: State,
    design: Design,
    now: State | None = None,
    inputs: Sequence[Cause] = (),
) -> Difference:
    """What lies between two states, of which either may be that of a lock.

    base : the answer to the first design as it is now; its causes count from there.
    design : the second one. now : its state as it is now, where `after` is another. inputs : what
    each moved row and constant does between `before` and `base`, where that is known.
    """
    asked = tuple(changes(before.design, design))
    deltas = between_states(before, after)
    causes = [_cause(base, name, group) for name, group in _groups(asked)]
    others = [between_states(now or after, after)]
    if not inputs:
        others.append(between_states(before, state(base)))
    program = summed(others)
    if any(program.values()):
        causes.insert(
            0, Cause(name=PROGRAM, changes=(), verdict=base.verdict, refused="", deltas=program)
        )
    return Difference(
        before=before,
        after=after,
        asked=asked,
        plan=tuple(_plan_changes(before, after)),
        causes=with_interaction(before, deltas, [*inputs, *causes]),
        deltas=deltas,
    )


def changes(before: Design, after: Design) -> Iterator[Change]:
    """The fields in which two designs differ, lists whole; a file that both name counts by its
    content."""
    for path, one, other in _differing(before.data(), after.data(), ""):
        yield Change(path=path, before=one, after=other, of=_moved(after, path, other))
    one_files, other_files = companions(before.data()), companions(after.data())
    for field, name in one_files.items():
        if other_files.get(field) != name:
            continue
        contents = [_content(design, name) for design in (before, after)]
        if contents[0] != contents[1]:
            of = str((after.folder / name).resolve())
            yield Change(path=field, before=name, after=f"{name}, changed", of=of)


def _moved(after: Design, path: str, value: Any) -> Any:
    """The value of a field of another design; the path of a file leads from its folder."""
    files = companions(after.data())
    if path in files:
        return str((after.folder / files[path]).resolve())
    if path == "model" and "model.hf_config" in files and isinstance(value, Mapping):
        return {**value, "hf_config": str((after.folder / files["model.hf_config"]).resolve())}
    return value


def _content(design: Design, name: str) -> bytes | None:
    try:
        return config_file(design.folder / name).read_bytes()
    except OSError:
        return None


def _differing(
    one: Mapping[str, Any], other: Mapping[str, Any], prefix: str
) -> Iterator[tuple[str, Any, Any]]:
    """(dotted path, value, other value) where nested fields differ."""
    for key in dict.fromkeys([*one, *other]):
        path, a, b = f"{prefix}{key}", one.get(key), other.get(key)
        if a == b or path in TITLES:
            continue
        section = prefix == "" and key != "model"  # a section that is not there says nothing
        a_fields = {} if section and a is None else a
        b_fields = {} if section and b is None else b
        if isinstance(a_fields, Mapping) and isinstance(b_fields, Mapping):
            yield from _differing(a_fields, b_fields, f"{path}.")
        else:
            yield path, a, b


def _groups(asked: Sequence[Change]) -> Iterator[tuple[str, tuple[Change, ...]]]:
    """The changes one by one, or where they are many by their sections."""
    if len(asked) <= CAUSES:
        for one in asked:
            yield one.path, (one,)
        return
    by_section: dict[str, list[Change]] = {}
    for one in asked:
        by_section.setdefault(one.path.partition(".")[0], []).append(one)
    for section, group in by_section.items():
        yield section if len(group) > 1 else group[0].path, tuple(group)


def _cause(base: Answer, name: str, group: tuple[Change, ...]) -> Cause:
    """What some changes do alone."""
    try:
        alone = answered(base.design.change({one.path: one.of for one in group}), like=base)
    except DesignError as error:
        return Cause(name=name, changes=group, verdict="", refused=str(error), deltas=nothing())
    deltas = between_states(state(base), state(alone))
    return Cause(name=name, changes=group, verdict=alone.verdict, refused="", deltas=deltas)


def _plan_changes(before: State, after: State) -> Iterator[Change]:
    """The fields in which two plans differ."""
    one, other = before.plan or {}, after.plan or {}
    for field in (*PLAN, *(f"{OF_ENGINE}{name}" for name in ENGINE)):
        if one.get(field) != other.get(field):
            a, b = one.get(field), other.get(field)
            yield Change(path=field, before=a, after=b, of=b)


def said(one: Change) -> str:
    """A change in words."""
    return f"{one.path} {_said(one.before)} → {_said(one.after)}"


def _said(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "not given"
    if is_number(value) and abs(value) >= MANY:
        return params(value)
    return value_text(value)


def _delta(key: str, delta: Known) -> str:
    """A change of a figure with its sign; shares in points."""
    if delta is None:
        return NONE
    if delta == 0:
        return "0"
    sign = "+" if delta > 0 else "−"
    if quantity(key).kind == "share":
        return f"{sign}{abs(delta) * 100:.2f} points"
    return sign + show(key, abs(delta))


def _change_row(one: Change) -> dict[str, Any]:
    return {"field": one.path, "a": one.before, "b": one.after}


def _band(one: State, key: str) -> list[Known] | None:
    figure = one.figures.get(key)
    return None if figure is None else [figure.low, figure.high]
