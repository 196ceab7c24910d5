"""What a design states about reliability, saves and prices, and the figures that stand in."""

from typing import Any, NamedTuple

# a section of the design file, or a mapping of its fields, any of which may be missing; None: no
# section
Section = Any


class Usual(NamedTuple):
    """The figure of a field that nobody gave, and the rule that the reader sees."""

    value: float
    why: str
