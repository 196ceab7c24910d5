"""What opens to its formula: the strip of headline numbers, and the key of a picture with colour,
name and amount. The key is also how the picture reads without eyes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypedDict

from scantling.advise.explanation import Opened
from scantling.base.quantities.quantity import show
from scantling.base.show import seconds, share, size
from scantling_posttrain.posttrained import Posttrained

from ..charts.page_parts import Part
from ..charts.palette import MEMORY, STEP, Swatch
from ..charts.sides import CACHED, HELD, PART, PHASE

Facts = Mapping[str, Any]  # figures by name
Explain = Callable[[str, Facts], Opened]  # of a quantity's key, and of the row that it stands in


class Entry(TypedDict):
    """One line of a key as it travels to the page."""

    colour: str
    name: str
    text: str
    key: str  # of the quantity that it opens to
    nil: bool


class Opens(Part):
    """A part whose numbers open; `explain(key, facts)` is what one opens to.

    asked   {key, index, serial}: the number that the user opened last
    detail  {title, value, lines: [(term, text)], serial} of that number
    """

    HEARS: ClassVar[tuple[str, ...]] = ("asked",)
    ASKS: ClassVar[Facts] = {"asked": {}, "detail": {}}

    asked: Facts
    detail: Facts
    _facts: Sequence[Facts]

    def __init__(self, explain: Explain | None, **state: Any) -> None:
        super().__init__(**self.ASKS, **state)
        self._explain, self._facts = explain, ()
        self.on("asked", self._answer)

    def ask(self, key: str, index: int) -> None:
        """What the browser does when the user opens a number; for scripts and tests."""
        self.nudge("asked", key=key, index=index)

    def _answer(self, asked: Facts) -> None:
        index = asked["index"]
        facts = self._facts[index] if 0 <= index < len(self._facts) else {}
        if self._explain is not None:
            self.detail = {**self._explain(asked["key"], facts), "serial": asked["serial"]}


class Strip(Part):
    """Cards in a row.

    items   [{key, label, value, unit, note, delta, sense, state, hint}]
    opened  key of the number whose explanation is open, or ""
    detail  {title, value, lines: [(term, text)]} of that number
    """

    KIND, HEARS = "strip", ("opened",)
    STATE = {"cls": "sd-stick", "items": (), "revision": 0, "opened": "", "detail": {}}

    items: Sequence[Facts]
    revision: int
    opened: str
    detail: Facts

    def __init__(self, explain: Callable[[str], Opened]) -> None:
        super().__init__()
        self._explain = explain
        self.on("opened", self._open)

    def _open(self, key: str) -> None:
        self.detail = {**self._explain(key)} if key else {}

    def show(self, items: Sequence[Facts]) -> None:
        """Put these numbers on the cards."""
        self.items = items
        self.revision += 1
        if self.opened:
            self._open(self.opened)


class Key(Opens):
    """Entries [{colour, name, text, nil, key}] of a picture; below a title that unfolds them where
    the picture names its parts itself."""

    KIND, STATE = "parts", {"entries": (), "title": ""}

    entries: Sequence[Entry]
    title: str

    def show(self, entries: Sequence[Entry], facts: Facts | None = None) -> None:
        """Put these entries on the page, with the facts that the amounts are explained by."""
        self._facts = [facts or {}] * len(entries)
        self.entries = entries


def entry(colour: str, name: str, text: str, key: str = "", nil: bool = False) -> Entry:
    """One line of a key."""
    return Entry(colour=colour, name=name, text=text, key=key, nil=nil)


def memory(row: Facts) -> list[Entry]:
    """The parts of one stage's memory."""
    return _entries(MEMORY, row, "memory_by_stage", lambda n: show("memory_bytes.total", n))


def step(figures: Facts) -> list[Entry]:
    """The exposed parts of the step with their shares; those that it does not have are left out."""
    total, parts = figures["step_s"], figures["step_breakdown_s"]
    lines = _entries(STEP, parts, "step_breakdown_s", lambda s: share(s / total) if s else "none")
    return [line for line in lines if not line["nil"]]


def sides(tuned: Posttrained) -> list[Entry]:
    """The phases of a policy step, or the parts of a fine-tuning step, with their times."""
    parts, amounts = (PHASE, tuned.phases_s) if tuned.rollout else (PART, tuned.step_parts_s)
    return [
        entry(hue, name, seconds(amounts[key]))
        for key, (name, hue) in parts.items()
        if amounts.get(key)
    ]


def side_memory(tuned: Posttrained) -> list[Entry]:
    """What the trainer holds on a device, and beside it the engine."""
    held = tuned.memory_bytes
    lines = [entry(hue, name, size(held[key])) for key, (name, hue) in HELD.items()]
    if tuned.rollout is not None:
        engine = tuned.rollout["memory_bytes"]
        hue = CACHED["keys_values"].colour
        lines.append(entry(hue, "Keys and values, rollout", size(engine["keys_values"])))
    return lines


def _entries(
    parts: Mapping[str, Swatch], amounts: Facts, table: str, text: Callable[[float], str]
) -> list[Entry]:
    return [
        entry(hue, name, text(amounts.get(part) or 0), f"{table}.{part}", not amounts.get(part))
        for part, (name, hue) in parts.items()
    ]
