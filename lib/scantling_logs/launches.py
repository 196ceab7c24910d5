"""The runs of a log: a job that is launched again with another plan, batch, model or number of
devices is another run, whose steps are not the first one's."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf, nan

from scantling.catalogue.setting_names import SETTING_OF, Setting

from .contents import Column, Contents, Event, Launch

# settings that make another run; a release, a chip or a rate of another name is none
BESIDE = {Setting.RELEASE, Setting.ACCELERATOR, Setting.STEPS_PER_SECOND}
DECISIVE = {name for name, setting in SETTING_OF.items() if setting not in BESIDE}


def runs_of(log: Contents) -> list[Contents]:
    """The runs that a log holds, each with its own settings, steps, events and peak of memory:
    launches that follow one another with the same settings are one run. What a later launch does
    not state is as before; a launch without a step is none where others have steps."""
    launches = merged(log.launches)
    ends = [*(launch.line for launch in launches[1:]), log.step_lines]
    stepped = [launch for launch, end in zip(launches, ends) if end > launch.line]
    if len(stepped) < 2:
        return [replace(log, launches=stepped or launches[-1:])]
    next_lines = [*(float(launch.line) for launch in stepped[1:]), inf]
    runs = [run_of(log, launch, end) for launch, end in zip(stepped, next_lines)]
    for i, run in enumerate(runs, 1):
        run.name = f"run {i} of {len(runs)}"
        run.notes.append("the log holds launches with other settings: each is a run of its own")
    return runs


def merged(launches: Iterable[Launch]) -> list[Launch]:
    """Launches with all that is known of each, neighbours with the same settings as one, of which
    the first value of a name counts."""
    first, *later = launches
    out = [first]
    for launch in later:
        last = out[-1]
        settings = {**last.settings, **launch.settings}
        if not contradict(settings, last.settings):
            peak_gib = max(last.memory_gib, launch.memory_gib)
            out[-1] = Launch(last.line, {**settings, **last.settings}, peak_gib)
        else:
            out.append(Launch(launch.line, settings, launch.memory_gib))
    return out


def contradict(settings: Mapping[str, str], earlier: Mapping[str, str]) -> bool:
    """Whether settings say another run than earlier ones, of what both of them say."""
    both = settings.keys() & earlier.keys() & DECISIVE
    return any(settings[name] != earlier[name] for name in both)


def run_of(log: Contents, launch: Launch, end: float) -> Contents:
    """The part of a log from a launch up to before step line `end`. Its clock begins with the last
    stamp before it; it goes on with the steps of those before it, or begins with the first step as
    they did."""
    last = int(min(end, log.step_lines))
    step = log.columns[Column.STEP]
    events: defaultdict[Event, Counter[int]] = defaultdict(Counter)
    for event, lines in log.events.items():
        for line, times in lines.items():
            if launch.line <= line < end:
                events[event][line - launch.line] = times
    return replace(
        log,
        columns={name: column[launch.line : last] for name, column in log.columns.items()},
        launches=[replace(launch, line=0)],
        events=events,
        clock_from=log.clock_from if launch.line == 0 else clock_before(log, launch.line),
        goes_on=launch.line > 0 and step[launch.line] > step[0],
        notes=[*log.notes],
    )


def clock_before(log: Contents, line: int) -> float:
    """The last stamp before a step line [s since 1970]; nan where there is none."""
    for name in (Column.STAMP_S, Column.CLOCK_S):
        column = log.columns.get(name)
        known = [s for s in column[max(0, line - 100) : line] if s == s] if column else []
        if known:
            return known[-1]
    return nan
