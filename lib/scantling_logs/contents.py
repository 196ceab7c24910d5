"""What a reader takes from a log, before anything is concluded from it."""

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from math import nan
from typing import Any

from scantling.base.records import Record, record
from scantling.base.units import DAY_S
from scantling.catalogue.setting_names import NAMES, SETTING_OF, Setting

TIME = r"(?P<time>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)"
STAMPS = (
    re.compile(rf"(?P<year>\d{{4}})[-/]?(?P<month>\d\d)[-/]?(?P<day>\d\d)[ T_]{TIME}"),
    # nanotron and the Trainer of Hugging Face: %m/%d/%Y %H:%M:%S
    re.compile(rf"(?<!\d)(?P<month>\d\d)/(?P<day>\d\d)/(?P<year>\d{{4}}) {TIME}"),
    # absl, as JAX's programs log: severity, month and day, no year
    re.compile(rf"\b[IWE](?P<month>\d\d)(?P<day>\d\d) {TIME}"),
)
NO_YEAR = 2000  # which had a 29 February
DATED_S = datetime(NO_YEAR + 1, 1, 1, tzinfo=UTC).timestamp()  # from here on a stamp has a year


class Column(StrEnum):
    """What a step line may hold; a value that it does not hold is nan."""

    STEP = "step"
    SECONDS = "s"  # of one step, as printed
    TOTAL_S = "total_s"  # seconds since the start, as printed: differences are steps
    CLOCK_S = "clock_s"  # wall clock, with a resolution better than a second
    STAMP_S = "stamp_s"  # wall clock, as coarse as it may be
    BAR_S = "bar_s"  # elapsed time of a progress bar: whole seconds
    TOKENS_PER_S_PER_DEVICE = "tokens_per_s_per_device"
    TOKENS_PER_S = "tokens_per_s"  # of the whole job
    SAMPLES_PER_S = "samples_per_s"  # of the whole job
    TFLOPS_PER_DEVICE = "tflops_per_device"
    GLOBAL_BATCH = "global_batch"
    TOKENS_TOTAL = "tokens_total"
    SAMPLES_TOTAL = "samples_total"


StepValues = Mapping[Column, float]  # of one step line


class Event(StrEnum):
    """What lines beside the step lines tell of."""

    SAVES = "saves"
    EVALUATION = "evaluation"
    LAUNCH = "launch"  # written once a launch
    RESTART = "restart"  # written by every rank at a launch


# words for what is not set; of recompute they are the setting
ABSENT = frozenset({"none", "null", "nan", "auto"})


@record
class Collective(Record):
    """A row of a table of collectives."""

    test: str
    bytes: int | None  # of the message
    busbw_gbytes_per_s: float


def clock_of(line: str) -> float:
    """The first time stamp of a line as seconds since 1970; nan where it has none, and for a date
    that does not exist."""
    stamp = next(filter(None, (stamp.search(line, 0, 400) for stamp in STAMPS)), None)
    if not stamp:
        return nan
    said = stamp.groupdict()
    time = said["time"]
    date = (int(said.get("year", NO_YEAR)), int(said["month"]), int(said["day"]))
    try:
        moment = datetime(*date, int(time[:2]), int(time[3:5]), int(time[6:8]), tzinfo=UTC)
    except ValueError:
        return nan
    return moment.timestamp() + float(f"0.{time[9:] or 0}")


def seconds_of_elapsed(text: str) -> float:
    """Seconds of "01:02", "1:02:03", "3 days, 1:02:03"; nan for anything else."""
    days, _, rest = text.rpartition("day")
    parts = rest.lstrip("s, ").split(":")
    try:
        total = 0.0
        for part in parts:
            total = total * 60 + float(part)
        return total + (float(days) * DAY_S if days.strip() else 0.0)
    except ValueError:
        return nan


def number(text: Any) -> float:
    """A number of a log (1,234.5 and 4.1e+4 too), nan for what is none."""
    try:
        return float(str(text).replace(",", "").strip("'\"_"))
    except ValueError:
        return nan


def _no_steps() -> dict[Column, "array[float]"]:
    return {Column.STEP: array("d")}


def _no_events() -> defaultdict[Event, Counter[int]]:
    return defaultdict(Counter)


@dataclass
class Launch:
    """What a launch of a job says: from which step line on, its settings (name: first value), the
    peak of memory of one device."""

    line: int = 0
    settings: dict[str, str] = field(default_factory=dict)
    memory_gib: float = 0.0


@dataclass(kw_only=True)
class Contents:
    """The step lines of a log as columns, its settings as words, and what else happened in it."""

    format: str
    framework: str
    columns: dict[Column, "array[float]"] = field(default_factory=_no_steps)  # those met so far
    launches: list[Launch] = field(default_factory=lambda: [Launch()])
    name: str = ""  # of one of several runs of a log
    goes_on: bool = False  # with the steps of the run before it in its log
    oom: bool = False
    # of an event: before which step lines, how often
    events: defaultdict[Event, Counter[int]] = field(default_factory=_no_events)
    clock_from: float = nan  # first moment of the log [s since 1970]
    notes: list[str] = field(default_factory=list)
    ignored: tuple[Setting, ...] = ()  # settings by whose names this format means something else
    data_parallel_only: bool = False  # the framework splits the batch alone
    collectives: list[Collective] = field(default_factory=list)
    kernels: dict[str, float] = field(default_factory=dict)  # seconds of a step by part, of a trace
    progress_bar: bool = False  # the step lines are those of a progress bar
    coarse_mean: bool = False  # the step time is the slope of a clock, not a printed duration

    @property
    def step_lines(self) -> int:
        """How many step lines there are so far."""
        return len(self.columns[Column.STEP])

    @property
    def settings(self) -> dict[str, str]:
        """The settings of the last launch."""
        return self.launches[-1].settings

    @property
    def memory_gib(self) -> float:
        """The peak of memory of one device in the last launch."""
        return self.launches[-1].memory_gib

    def add_launch(self) -> None:
        """What follows is of another launch."""
        self.launches.append(Launch(self.step_lines))

    def add_step(self, values: StepValues) -> None:
        """One step line."""
        for name in values.keys() - self.columns.keys():
            self.columns[name] = array("d", [nan]) * self.step_lines
        for name, column in self.columns.items():
            column.append(values.get(name, nan))

    def amend_step(self, values: StepValues) -> None:
        """Values that follow on the last step line."""
        last = {name: column.pop() for name, column in self.columns.items()}
        self.add_step({**last, **values})

    def add_setting(self, name: str, value: Any) -> None:
        """A setting, unless one of that name was read before."""
        if not isinstance(value, (int, float, str)):
            return
        text = str(value).strip().strip("'\"")
        of_recompute = SETTING_OF.get(name) is Setting.RECOMPUTE
        if text and (of_recompute or text.lower() not in ABSENT):
            self.settings.setdefault(name, text[:200])

    def add_peak(self, gib: float) -> None:
        """A peak of memory of one device."""
        if 0 < gib < 1e5:
            self.launches[-1].memory_gib = max(self.memory_gib, gib)

    def add_moment(self, clock_s: float) -> None:
        """A moment of the log: it begins with the first, where there is one with a year with the
        first of those (torchrun warns in stamps without)."""
        if self.clock_from != self.clock_from or self.clock_from < DATED_S <= clock_s:
            self.clock_from = clock_s

    def word(self, setting: Setting) -> str | None:
        """What the log states of a setting, by the best of its names; None where it is silent."""
        for name in NAMES[setting]:
            if name in self.settings:
                return self.settings[name]
        return None

    def count(self, setting: Setting) -> int | None:
        """The whole number from 1 on that the log states of a setting, by the best name with
        one."""
        for name in NAMES[setting]:
            value = number(self.settings.get(name))
            if 1 <= value < 1e12 and value.is_integer():
                return int(value)
        return None
