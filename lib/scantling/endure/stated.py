"""What a design states about reliability, saves and prices, and the figures that stand in."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..design import fields

# a section of the design file, or a mapping of its fields, any of which may be missing; None: no
# section
Section = fields.Section | Mapping[str, Any] | None


class Usual(NamedTuple):
    """The figure of a field that nobody gave, and the rule that the reader sees."""

    value: float
    why: str
