"""The rubric of a design interview as data: nine axes, what mid, senior and staff show on each."""

from functools import cache

from scantling.base.files import table
from scantling.base.records import record

LEVELS = ("mid", "senior", "staff")


@record
class Axis:
    """One axis: key, name, what each level shows, and what to do again where it is weak."""

    key: str
    name: str
    mid: str
    senior: str
    staff: str
    redo: str

    def shows(self, level: str) -> str:
        """What a level shows on the axis."""
        return {"mid": self.mid, "senior": self.senior, "staff": self.staff}[level]


@record
class Level:
    """One level: name, least share of the points on the axes that were asked, what it does."""

    name: str
    at_least: float
    says: str


@cache
def rubric() -> tuple[dict[str, Axis], tuple[Level, ...]]:
    """(axes by key, levels from mid to staff) of `rubric.yaml`."""
    data = table(__file__, "rubric")
    axes = {key: Axis(key=key, **row) for key, row in data["axes"].items()}
    return axes, tuple(Level(name=name, **row) for name, row in data["levels"].items())


def level_of(points: float, most: float) -> Level:
    """The level that so many of the points that could be had amount to."""
    return [level for level in rubric()[1] if points / most >= level.at_least - 1e-9][-1]
