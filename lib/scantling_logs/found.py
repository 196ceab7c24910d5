"""What a reader finds in a log, before anything is concluded from it."""

import re
from array import array
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import nan as NAN

from scantling.base.units import DAY_S

# one entry a step line; a value that the line does not hold is nan
COLUMNS = (
    "step",
    "s",  # seconds of one step, as printed
    "total_s",  # seconds since the start, as printed: differences are steps
    "clock_s",  # wall clock, with a resolution better than a second
    "stamp_s",  # wall clock, as coarse as it may be
    "bar_s",  # elapsed time of a progress bar: whole seconds
    "tokens_per_s_per_device",
    "tokens_per_s",  # of the whole job
    "samples_per_s",  # of the whole job
    "tflops_per_device",
    "global_batch",
    "tokens_total",
    "samples_total",
)
STAMP = re.compile(r"(\d{4})[-/]?(\d\d)[-/]?(\d\d)[ T_](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")


def clock_of(line: str) -> float:
    """The first time stamp of a line as seconds since 1970; nan where it has none, and for a date
    that does not exist."""
    stamp = STAMP.search(line, 0, 400)
    if not stamp:
        return NAN
    *time, part = stamp.groups()
    try:
        return datetime(*map(int, time), tzinfo=UTC).timestamp() + float(f"0.{part or 0}")
    except ValueError:
        return NAN


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
        return NAN


def number(text) -> float:
    """A number of a log (1,234.5 and 4.1e+4 too), nan for what is none."""
    try:
        return float(str(text).replace(",", "").strip("'\"_"))
    except ValueError:
        return NAN


@dataclass(kw_only=True)
class Found:
    """The step lines of a log as columns, its settings as words, and what else happened in it."""

    format: str
    framework: str
    columns: dict = field(default_factory=lambda: {"step": array("d")})  # those seen so far
    settings: dict = field(default_factory=dict)  # name of a setting: its first value, as text
    memory_gib: float = 0.0
    oom: bool = False
    # what is told: before which step lines, how often
    marks: dict = field(default_factory=lambda: defaultdict(Counter))
    clock_from: float = NAN
    notes: list = field(default_factory=list)
    ignored: tuple = ()  # facts that settings of this format mean otherwise
    alone: bool = False  # the framework splits the batch alone
    collectives: list = field(default_factory=list)  # rows of an nccl-tests table
    kernels: dict = field(default_factory=dict)  # of a trace, see formats/kineto.py
    bar: bool = False  # the step lines are those of a progress bar
    mean: bool = False  # a step time is the slope of a clock, not a printed duration

    def add(self, **values) -> None:
        """One step line; values in the units of COLUMNS."""
        if not values.keys() <= self.columns.keys():
            for name in (values.keys() - self.columns.keys()).intersection(COLUMNS):
                self.columns[name] = array("d", [NAN]) * len(self.columns["step"])
        for name, column in self.columns.items():
            column.append(values.get(name, NAN))

    def change(self, **values) -> None:
        """Values that follow on the last step line."""
        last = {name: column.pop() for name, column in self.columns.items()}
        self.add(**(last | values))

    def setting(self, name: str, value) -> None:
        """A setting, unless one of that name was seen before."""
        if not isinstance(value, (int, float, str)):
            return
        text = str(value).strip().strip("'\"")
        if text and text.lower() not in ("none", "null", "nan", "auto"):
            self.settings.setdefault(name, text[:200])

    def memory(self, gib: float) -> None:
        """A peak of memory of one device."""
        if 0 < gib < 1e5:
            self.memory_gib = max(self.memory_gib, gib)

    def seen(self, clock_s: float) -> None:
        """A moment of the log: it begins with the first."""
        if self.clock_from != self.clock_from:
            self.clock_from = clock_s
