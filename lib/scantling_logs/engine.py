"""Line formats: a YAML file of patterns says what a step line looks like; one loop reads all."""

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from scantling.base.records import record
from scantling.base.words import yaml_of

from .formats import csv_metrics, json_series, kineto, mlperf_mllog, nccl_tests, tensorboard
from .found import NAN, Found, clock_of, number, seconds_of_elapsed
from .rows import spoken
from .text import texts

FOLDER = Path(__file__).parent / "formats"
NUMBER = r"(?<!\d)(?<!\d,)([-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?)"
HUMAN = r"([-+]?[\d,]*\.?\d+(?:[eE][-+]?\d+)?[kKMGBT]?)"
AHEAD = r"""\\s*(?:np\\.float\\d+\\(|['"])?"""
TRIED = 5_000  # steps after which patterns that never matched are no longer tried
SETTING_LINES = 60_000  # lines that are read for settings, at most
LONGEST = 8_000  # characters of a line that are read for settings
SETTING = re.compile(
    r"""(?<![A-Za-z\d])([A-Za-z][\w-]{1,60})["']?\]?\s*(?:\s\.{2,}|[:=](?!=))"""
    r"""\s*(?=(["']?[\w.+/~-]+))"""
)
OPTION = re.compile(r"--([A-Za-z][\w-]{1,60})(?:=|\s+)([\w.+/~-]+)")
BAR = re.compile(r"(?<!\d)\d{1,3}%\|[^|\n]{0,400}\|\s{0,9}(\d+)/(\d+)\s\[((?:\d+ days?, )?[\d:]+)<")
# formats with a structure of their own, by the name of their files
OWN = {
    "csv_metrics": csv_metrics,
    "json_series": json_series,
    "kineto": kineto,
    "mlperf_mllog": mlperf_mllog,
    "nccl_tests": nccl_tests,
    "tensorboard": tensorboard,
}
NO_TRAINING = re.compile(r"test|eval|valid|sanity|loading|load|map|download|tokeniz|predict", re.I)


@record
class Line:
    """One kind of line: a word that it holds, and the patterns of its values."""

    has: str
    needs: str = ""
    without: str = ""  # a word that it does not hold
    split: str = "\n"  # where one line holds several records: what ends each
    clock: bool = False
    follows: bool = False  # its values belong to the step line before it
    ahead: bool = False  # its values belong to the step line after it
    values: dict = field(default_factory=dict)

    def fits(self, line: str) -> bool:
        """Whether a line has the words that it must have, and not the one that it must not."""
        unfit = self.without and self.without in line
        return self.has in line and self.needs in line and not unfit

    def tells(self, line: str) -> bool:
        """Whether a line says which step it is of."""
        return "step" in self.values and self.fits(line) and self.values["step"].search(line)


@record
class Format:
    """A line format, as its file states it, with patterns compiled."""

    name: str
    framework: str
    order: int
    marks: tuple
    own: object  # the module that reads it, where one does
    opens: tuple = ()  # patterns of what only its framework writes, besides step lines
    lines: tuple = ()
    memory: tuple = ()
    facts: dict = field(default_factory=dict)
    counts: dict = field(default_factory=dict)
    launch: tuple = ()  # words that are written once a launch
    headers: tuple = ()  # words that every rank writes at a launch
    ignore: tuple = ()
    bars: bool = False
    data_parallel_only: bool = False

    @property
    def words(self) -> tuple:
        """Words without which a text has nothing of this format, settings apart."""
        bars = ("%|",) if self.bars else ()
        return (*(line.has for line in self.lines), *bars, *(word for word, _, _ in self.memory))

    def knows(self, head: str) -> bool:
        """Whether the head of a file is of this format: it holds all words of a mark, and a line
        that its framework writes, not prose or code with the same words."""
        if hasattr(self.own, "knows"):
            return self.own.knows(head)
        if not any(all(word in head for word in words) for words in self.marks):
            return False
        told = (kind.tells(line) for line in head.split("\n") for kind in self.lines)
        return any(pattern.search(head) for pattern in self.opens) or any(told)

    def read(self, path) -> Found:
        """What a file of this format holds, by its own module where it has one."""
        found = Found(
            format=self.name,
            framework=self.framework,
            ignored=self.ignore,
            alone=self.data_parallel_only,
        )
        if self.own:
            self.own.read(path, found)
        else:
            read_lines(path, found, self)
        return found


@dataclass(kw_only=True)
class Rest:
    """What is held while a file is read: progress bars, counted lines, values of the next step."""

    counted: dict
    bars: dict = field(default_factory=dict)
    ahead: dict = field(default_factory=dict)
    live: dict = field(default_factory=dict)  # of a kind of line: the patterns still tried
    budget: int = SETTING_LINES


def compiled(pattern: str) -> re.Pattern:
    """A pattern of a format file: {n} is a number, {h} a number with K, M, G. After a colon or an
    equals sign any blanks may stand, a quote, or the type that numpy writes."""
    pattern = pattern.replace(r"(\d+)", r"(\d{1,15})(?!\d)")  # a longer one is no count
    pattern = re.sub(r"([:=]) ?(?=\{[nh])", r"\1" + AHEAD, pattern)
    return re.compile(pattern.replace("{n}", NUMBER).replace("{h}", HUMAN), re.M)


def _memory(data: dict) -> tuple:
    """(word that a line with it holds, pattern, factor to GiB) of each peak of memory."""
    return tuple(
        (re.split(r"[{(\\]", pattern)[0], compiled(pattern), factor)
        for unit, factor in spoken()["memory"].items()
        for pattern in data.get(unit, ())
    )


def _all(patterns: dict) -> dict:
    return {name: compiled(pattern) for name, pattern in patterns.items()}


def _settled(name: str) -> dict:
    data = yaml_of(FOLDER / f"{name}.yaml")
    base = _settled(data["like"]) if "like" in data else {}
    return base | data | {"facts": base.get("facts", {}) | data.get("facts", {})}


def _format(path: Path) -> Format:
    data = {"name": path.stem, "lines": ()} | _settled(path.stem)
    made = {
        "marks": tuple(map(tuple, data.get("marks", ()))),
        "own": OWN.get(path.stem),
        "opens": (*map(compiled, data.get("opens", ())), *[BAR] * data.get("bars", False)),
        "lines": tuple(Line(**row | {"values": _all(row["values"])}) for row in data["lines"]),
        "memory": _memory(data),
        "facts": _all(data["facts"]),
        "counts": _all(data.get("counts", {})),
    }
    return Format(
        **{k: v for k, v in data.items() if k not in ("like", *spoken()["memory"])} | made
    )


@cache
def formats() -> tuple:
    """All line formats, in the order in which they are tried."""
    return tuple(sorted(map(_format, FOLDER.glob("*.yaml")), key=lambda f: f.order))


@cache
def setting_names() -> dict:
    """{name of a setting, as logs write it: what it is}."""
    return {name: fact for fact, names in spoken("words").items() for name in names}


def value_of(text: str) -> float:
    """A number of a log, with K, M, G or without, or the seconds of 1:02:03."""
    try:
        return float(text)
    except ValueError:
        if ":" in text:
            return seconds_of_elapsed(text)
        scale = spoken()["scale"].get(text[-1:], 1.0)
        return number(text[:-1] if scale > 1 else text) * scale


def read_lines(path, found: Found, form: Format) -> None:
    """Read a file of a line format as a stream."""
    rest = Rest(counted={name: set() for name in form.counts})
    events = spoken()["events"] | {"launch": form.launch, "restart": (*form.launch, *form.headers)}
    known = [(cause, word) for cause, words in events.items() for word in words]
    for text in texts(path):
        found.oom = found.oom or any(word in text for word in spoken()["oom"])
        told = [(cause, word) for cause, word in known if word in text]
        if not (rest.budget or told or any(word in text for word in form.words)):
            continue
        for line in text.split("\n"):
            for cause in {cause for cause, word in told if word in line}:
                found.marks[cause][len(found.columns["step"])] += 1
            for word, pattern, factor in form.memory:
                for match in pattern.finditer(line) if word in line else ():
                    found.memory(value_of(match[1]) * factor)
            hits = [
                step_line(found, kind, part, rest)
                for kind in form.lines
                if kind.fits(line)
                for part in line.split(kind.split)
            ]
            if line and not any(hits):
                other_line(found, form, line, rest)
    for name, count in rest.counted.items():
        found.setting(name, len(count) or "")
    found.bar = bool(rest.bars and not found.columns["step"])
    for done, elapsed in sorted(max(rest.bars.values(), key=len).items()) if found.bar else ():
        found.add(step=done, bar_s=elapsed)


def other_line(found: Found, form: Format, line: str, rest: Rest) -> None:
    """A line that is no step: a progress bar, a setting."""
    if form.bars and "%|" in line:
        read_bars(rest.bars, line)
    if rest.budget:
        rest.budget -= 1
        if not found.columns["step"]:
            found.seen(clock_of(line))
        read_settings(found, form, line, rest.counted)


def step_line(found: Found, kind: Line, line: str, rest: Rest) -> bool:
    """Take the values of one line of a kind; False where it is none (source code, half a line)."""
    values = {}
    kept = rest.ahead
    patterns = rest.live.get(id(kind), kind.values)
    for name, pattern in patterns.items():
        match = pattern.search(line)
        if match:
            _take(values, name, match[match.lastindex])
    if len(found.columns["step"]) == TRIED:  # what so many lines lacked later ones lack too
        held = (n for n in patterns if unit_of(n)[0] in found.columns)
        rest.live[id(kind)] = {n: patterns[n] for n in held}
    if kind.ahead:
        kept.update(values)
    elif kind.follows and found.columns["step"]:
        found.change(**values)
    if kind.ahead or kind.follows:
        return bool(values)
    if "step" not in values:
        return False
    clock = clock_of(line)
    found.seen(clock)
    values["clock_s" if kind.clock else "stamp_s"] = clock
    found.add(**(kept | values))
    kept.clear()
    return True


@cache
def unit_of(name: str) -> tuple:
    """(column, factor) of a value by its name in a pattern."""
    return spoken()["units"].get(name, (name, 1.0))


def _take(values: dict, name: str, text: str) -> None:
    value = value_of(text)
    column, factor = unit_of(name)
    if name == "batches_per_s":
        value = 1 / value if value > 0 else NAN
    if value == value:
        values.setdefault(column, value * factor)


def read_settings(found: Found, form: Format, line: str, counted: dict) -> None:
    """Settings that a line tells: name = value, name: value, name .... value, --name value."""
    names = setting_names()
    for name, pattern in form.facts.items():
        if name not in found.settings:
            match = pattern.search(line)
            if match:
                found.setting(name, match[match.lastindex or 0])
    for name, pattern in form.counts.items():
        counted[name].update(pattern.findall(line))
    line = line[:LONGEST]
    for pattern in (SETTING, OPTION) if "--" in line else (SETTING,):
        for match in pattern.finditer(line):
            name = match[1].lower().replace("-", "_")
            if name in names and name not in found.settings:
                value = match[2].partition("..")[0]
                if names[name] in spoken()["texts"] or number(value) == number(value):
                    found.setting(name, value)


def read_bars(bars: dict, line: str) -> None:
    """Progress bars of training in a line: when each count was reached first."""
    for match in BAR.finditer(line):
        done, total, elapsed = match.groups()
        ahead = re.split(r"[]|%]", line[: match.start()][-80:])[-1]
        title = re.sub(r"\d+$", "", ahead.strip(" :"))[-40:]
        if NO_TRAINING.search(title):
            continue
        key = (title, int(total))
        if int(done) and (key in bars or len(bars) < 64):
            bars.setdefault(key, {}).setdefault(int(done), seconds_of_elapsed(elapsed))
