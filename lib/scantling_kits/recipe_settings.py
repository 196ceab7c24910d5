"""Settings beside the plan that makers' recipes carry: typed rows, one a setting, each with the
first release that has it and where it was read. Argument lists and templates print those that
hold."""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from scantling.base.records import Lines, record

from .launch_plan import LaunchPlan

Value = bool | int | float | str | Lines


@record
class Setting:
    """One setting of a framework or of what it runs on."""

    framework: str  # id
    since: str  # the first release that has it
    when: Callable[[LaunchPlan], bool]  # of plan, chip and release
    name: str  # in the framework's own words
    value: Value | Callable[[LaunchPlan], Value]
    why: str | Callable[[LaunchPlan], str]
    source: str
    until: str = ""  # the first release that has it no longer; "": all have it


class Chosen(NamedTuple):
    """A setting that holds for a launch plan."""

    name: str
    value: Value
    why: str
    source: str


def release(version: str) -> tuple[int, ...]:
    """The numbers of a release, for comparison: 0.19.2 is (0, 19, 2)."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def there(setting: Setting, version: str) -> bool:
    """Whether a release has the setting."""
    now = release(version)
    gone = bool(setting.until) and release(setting.until) <= now
    return release(setting.since) <= now and not gone


def chosen(rows: Iterable[Setting], launch: LaunchPlan) -> list[Chosen]:
    """The settings of the launch plan's framework, at its release, that hold for it."""
    framework = launch.framework
    out = []
    for row in rows:
        if row.framework != framework.id or not there(row, framework.version):
            continue
        if row.when(launch):
            value = row.value(launch) if callable(row.value) else row.value
            why = row.why(launch) if callable(row.why) else row.why
            out.append(Chosen(row.name, value, why, row.source))
    return out


def always(launch: LaunchPlan) -> bool:
    """On every plan."""
    return True
