"""Logs whose steps are lines: one loop over the lines of a file reads every such format."""

import re
from collections.abc import Container, Iterable
from math import nan
from pathlib import Path

from scantling.catalogue.setting_names import SETTING_OF, TEXTS

from .contents import Column, Contents, Event, clock_of, number, seconds_of_elapsed
from .line_format import BAR, LineFormat, Place, StepLine, Value
from .text import texts

STEPS_TRIED = 5_000  # step lines after which patterns that never matched are no longer tried
SETTING_LINES = 60_000  # lines that are read for settings, at most
LONGEST = 8_000  # characters of a line that are read for settings
MOST_BARS = 64
SETTING = re.compile(
    r"""(?<![A-Za-z\d])([A-Za-z][\w-]{1,60})["']?\]?\s*(?:\s\.{2,}|[:=](?!=))"""
    r"""\s*(?=(["']?[\w.+/~-]+))"""
)
OPTION = re.compile(r"--([A-Za-z][\w-]{1,60})(?:=|\s+)([\w.+/~-]+)")
NO_TRAINING = re.compile(r"test|eval|valid|sanity|loading|load|map|download|tokeniz|predict", re.I)
SCALES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}
# by name: what a line of the job's script may state, whatever the framework
OF_SCRIPTS = {  # nvidia-smi -L
    "accelerator_name": re.compile(r"GPU 0: (?:NVIDIA |AMD )?([^(]{1,60}?) \(UUID")
}
OUT_OF_MEMORY = (
    "CUDA out of memory",
    "HIP out of memory",
    "OutOfMemoryError",
    "RESOURCE_EXHAUSTED: Out of memory",
    "RESOURCE_EXHAUSTED: Attempting to allocate",
)
# what takes wall clock beside steps, and words of lines that tell of it
PAUSES = {
    Event.SAVES: (
        "saving checkpoint",
        "saved checkpoint",
        "Saving model checkpoint",
        "about to be saved",
        "aving the checkpoint",
    ),
    Event.EVALUATION: ("validation loss", "Running Evaluation"),
}


def value_of(text: str) -> float:
    """A number of a log, with K, M, G or without, or the seconds of 1:02:03."""
    try:
        return float(text)
    except ValueError:
        pass
    if ":" in text:
        return seconds_of_elapsed(text)
    if text[-1:] in SCALES:
        return number(text[:-1]) * SCALES[text[-1]]
    return number(text)


class LineReader:
    """A log of a line format while it is read as a stream."""

    def __init__(self, form: LineFormat, log: Contents) -> None:
        self.form = form
        self.log = log
        self.counted: dict[str, set[str]] = {name: set() for name in form.counted}
        # by title and total of a progress bar: the seconds at which each count was reached first
        self.bars: dict[tuple[str, int], dict[int, float]] = {}
        self.ahead: dict[Column, float] = {}  # values of the step line that comes next
        self.settings = (*form.settings.items(), *OF_SCRIPTS.items())
        self.values = {id(kind): kind.values for kind in form.lines}  # those still tried
        self.setting_lines = SETTING_LINES  # left to read
        words = PAUSES | {
            Event.LAUNCH: form.launches,
            Event.RESTART: (*form.launches, *form.headers),
        }
        self.event_words = [(event, word) for event, known in words.items() for word in known]

    def read(self, path: Path) -> None:
        """Read a whole file."""
        for text in texts(path):
            self.log.oom = self.log.oom or any(word in text for word in OUT_OF_MEMORY)
            events = [(event, word) for event, word in self.event_words if word in text]
            if self.setting_lines or events or any(word in text for word in self.form.words):
                for line in text.split("\n"):
                    self.read_line(line, events)
        for name, matches in self.counted.items():
            if matches:
                self.log.add_setting(name, len(matches))
        if self.bars and not self.log.step_lines:
            self.log.progress_bar = True
            for done, elapsed_s in sorted(max(self.bars.values(), key=len).items()):
                self.log.add_step({Column.STEP: done, Column.BAR_S: elapsed_s})

    def read_line(self, line: str, events: Iterable[tuple[Event, str]]) -> None:
        """One line: events whose words it holds, memory, a step; else a bar or settings."""
        told = {event for event, word in events if word in line}
        for event in told:
            self.log.events[event][self.log.step_lines] += 1
        if told and self.begins(told):
            self.log.add_launch()
        for peak in self.form.memory:
            if peak.word in line:
                for match in peak.pattern.finditer(line):
                    self.log.add_peak(value_of(match[1]) * peak.factor)
        is_step = False
        for kind in self.form.lines:
            if kind.fits(line):
                for part in line.split(kind.split):
                    is_step = self.read_step(kind, part) or is_step
        if line and not is_step:
            self.read_other(line)

    def begins(self, told: Container[Event]) -> bool:
        """Whether a line is the first of another launch: steps lie before it, or a line that is
        written once a launch."""
        if Event.RESTART in told and self.log.step_lines > self.log.launches[-1].line:
            return True
        return Event.LAUNCH in told and self.log.events[Event.LAUNCH][self.log.step_lines] > 1

    def read_step(self, kind: StepLine, line: str) -> bool:
        """Take the values of one line of a kind; False where it is none (source code, half a
        line)."""
        tried = self.values[id(kind)]
        values = values_in(line, tried)
        if self.log.step_lines == STEPS_TRIED:  # what so many lines lacked later ones lack too
            self.values[id(kind)] = tuple(v for v in tried if v.column in self.log.columns)
        if kind.place is Place.BEFORE_STEP:
            self.ahead.update(values)
            return bool(values)
        if kind.place is Place.AFTER_STEP:
            if self.log.step_lines:
                self.log.amend_step(values)
            return bool(values)
        if Column.STEP not in values:
            return False
        clock_s = clock_of(line)
        self.log.add_moment(clock_s)
        values[Column.CLOCK_S if kind.precise_clock else Column.STAMP_S] = clock_s
        self.log.add_step({**self.ahead, **values})
        self.ahead.clear()
        return True

    def read_other(self, line: str) -> None:
        """A line that is no step: a progress bar, a setting."""
        if self.form.progress_bars and "%|" in line:
            self.read_bars(line)
        if self.setting_lines:
            self.setting_lines -= 1
            if not self.log.step_lines:
                self.log.add_moment(clock_of(line))
            self.read_settings(line)

    def read_settings(self, line: str) -> None:
        """Settings that a line states: as the format writes them, and in the general ways."""
        settings = self.log.settings
        for name, pattern in self.settings:
            match = None if name in settings else pattern.search(line)
            if match:
                self.log.add_setting(name, match[match.lastindex or 0])
        for name, pattern in self.form.counted.items():
            self.counted[name].update(pattern.findall(line))
        for name, text in stated_in(line[:LONGEST]):
            setting = SETTING_OF.get(name)
            if setting and name not in settings:
                if setting in TEXTS or number(text) == number(text):
                    self.log.add_setting(name, text)

    def read_bars(self, line: str) -> None:
        """Progress bars of training in a line: when each count was reached first."""
        for match in BAR.finditer(line):
            done, total, elapsed = int(match[1]), int(match[2]), match[3]
            before = re.split(r"[]|%]", line[: match.start()][-80:])[-1]
            title = re.sub(r"\d+$", "", before.strip(" :"))[-40:]
            bar = (title, total)
            if done and not NO_TRAINING.search(title):
                if bar in self.bars or len(self.bars) < MOST_BARS:
                    self.bars.setdefault(bar, {}).setdefault(done, seconds_of_elapsed(elapsed))


def values_in(line: str, values: Iterable[Value]) -> dict[Column, float]:
    """The values that a line holds, in the units of their columns."""
    row: dict[Column, float] = {}
    for value in values:
        match = value.pattern.search(line)
        if not match or value.column in row:
            continue
        figure = value_of(match[match.lastindex or 0])
        if value.per_second:
            figure = 1 / figure if figure > 0 else nan
        if figure == figure:
            row[value.column] = figure * value.factor
    return row


def stated_in(line: str) -> Iterable[tuple[str, str]]:
    """(name, text) of settings as most programs print them: name = value, name: value,
    name .... value, --name value."""
    for pattern in (SETTING, OPTION) if "--" in line else (SETTING,):
        for match in pattern.finditer(line):
            yield match[1].lower().replace("-", "_"), match[2].partition("..")[0]
