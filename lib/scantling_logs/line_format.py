"""What the step lines of a format look like: words and patterns, as each format's module has them.

A pattern is a regular expression over one line. It is written of the pieces below: COUNT a whole
number, NUMBER any, HUMAN one with K, M or G. VALUE and HUMAN_VALUE are the same behind blanks, a
quote or the type that numpy writes; the colon or equals sign before them is the pattern's:
rf"loss:{VALUE}".
"""

import re
from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import NamedTuple

from scantling.base.records import record
from scantling.catalogue.setting_names import Setting

from .contents import Column

COUNT = r"(\d{1,15})(?!\d)"  # a longer one is no count
NUMBER = r"(?<!\d)(?<!\d,)([-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?)"
HUMAN = r"([-+]?[\d,]*\.?\d+(?:[eE][-+]?\d+)?[kKMGBT]?)"
_BETWEEN = r"""\s*(?:np\.float\d+\(|['"])?"""
VALUE = _BETWEEN + NUMBER
HUMAN_VALUE = _BETWEEN + HUMAN
# of a release of a library; 0.0.0 is that of a checkout
RELEASE = r"(?!0\.0\.0)(\d+(?:\.\d+)+(?:\.?(?:rc|dev|post)\d+)?)"
BAR = re.compile(r"(?<!\d)\d{1,3}%\|[^|\n]{0,400}\|\s{0,9}(\d+)/(\d+)\s\[((?:\d+ days?, )?[\d:]+)<")

MILLI = 1e-3
TERA = 1e-12
# to GiB, in which peaks of memory are kept
GIB = 1.0
GB = 1e9 / 2**30
MIB = 1 / 1024
BYTE = 1 / 2**30


def pattern(text: str) -> re.Pattern[str]:
    """A pattern over a text of lines."""
    return re.compile(text, re.M)


class Value(NamedTuple):
    """A value of a step line: the column that it fills, where it stands, and the factor to the
    unit of the column; `per_second`: it is the inverse of what is printed."""

    column: Column
    pattern: re.Pattern[str]
    factor: float = 1.0
    per_second: bool = False


def value(column: Column, text: str, factor: float = 1.0) -> Value:
    """A value as its line prints it, times a factor."""
    return Value(column, pattern(text), factor)


def steps_per_second(text: str) -> Value:
    """The seconds of a step where its line prints steps a second."""
    return Value(Column.SECONDS, pattern(text), per_second=True)


class Peak(NamedTuple):
    """A peak of memory of one device: a word that its line holds, where it stands, and the factor
    to GiB."""

    word: str
    pattern: re.Pattern[str]
    factor: float


def memory(word: str, text: str, factor: float) -> Peak:
    """A peak of memory in lines with a word."""
    return Peak(word, pattern(text), factor)


class Place(Enum):
    """Which step the values of a line belong to."""

    SAME_STEP = "the step that the line names"
    BEFORE_STEP = "the step line after it"
    AFTER_STEP = "the step line before it"


@record
class StepLine:
    """One kind of line: words that it holds, and its values."""

    word: str
    also: str = ""
    without: str = ""  # a word that it does not hold
    split: str = "\n"  # where one line holds several records: what ends each
    precise_clock: bool = False  # its time stamp is better than a second
    place: Place = Place.SAME_STEP
    values: tuple[Value, ...] = ()  # of two for one column the first that a line holds counts

    def fits(self, line: str) -> bool:
        """Whether a line has the words that it must have, and not the one that it must not."""
        if self.without and self.without in line:
            return False
        return self.word in line and self.also in line

    def names_step(self, line: str) -> bool:
        """Whether a line says which step it is of."""
        steps = [v.pattern for v in self.values if v.column is Column.STEP]
        return self.fits(line) and any(step.search(line) for step in steps)


@record
class LineFormat:
    """A format of logs whose steps are lines."""

    name: str
    framework: str
    # words by which a content is known: all of one of these
    marks: tuple[tuple[str, ...], ...]
    # what only its framework writes, besides step lines: prose and code have the same words
    opens: tuple[re.Pattern[str], ...] = ()
    lines: tuple[StepLine, ...] = ()
    memory: tuple[Peak, ...] = ()
    # by name: settings that are no `name = value`
    settings: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    # by name: settings that are the number of different matches
    counted: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    launches: tuple[str, ...] = ()  # words that are written once a launch
    headers: tuple[str, ...] = ()  # words that every rank writes at a launch
    ignored: tuple[Setting, ...] = ()  # settings whose names mean something else here
    progress_bars: bool = False
    data_parallel_only: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """Words without which a text has nothing of this format, settings apart."""
        words = [*(line.word for line in self.lines), *(peak.word for peak in self.memory)]
        if self.progress_bars:
            words.append("%|")
        return tuple(words)

    def knows(self, head: str) -> bool:
        """Whether the head of a file is of this format: it holds all words of a mark, and a line
        that its framework writes, not prose or code with the same words."""
        if not marked(head, self.marks):
            return False
        opens = (*self.opens, BAR) if self.progress_bars else self.opens
        if any(line.search(head) for line in opens):
            return True
        return any(kind.names_step(line) for line in head.split("\n") for kind in self.lines)


def begins(head: str, marks: tuple[tuple[str, ...], ...], opens: re.Pattern[str]) -> bool:
    """Whether the head of a file has all words of a mark, and what only its framework writes."""
    return marked(head, marks) and opens.search(head) is not None


def marked(head: str, marks: tuple[tuple[str, ...], ...]) -> bool:
    """Whether a text holds all words of one of some marks."""
    return any(all(word in head for word in words) for words in marks)
