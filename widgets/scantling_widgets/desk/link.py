"""The link of a design on the desk, and what is left of one that is cut or wrong."""

from collections.abc import Callable
from typing import Any

from scantling.base.errors import DesignError
from scantling.design.design import Design
from scantling.design.link import NAME as NAME, holds as holds, pack, unpack, whole_fields


def write(design: Design) -> str:
    """The link of a design, without an address before it."""
    return pack(design.data())


def read(text: str) -> Design:
    """The design of a link or of an address that ends in one. Raises DesignError for a link that is
    cut, of another version, or no design."""
    try:
        return Design.from_data(unpack(text))
    except RecursionError:
        raise DesignError(NAME, problem="the link holds no design") from None


def rest(text: str, check: Callable[[Design], None]) -> dict[str, Any] | None:
    """The fields that can still be used of a link that is cut, of another version or wrong: those
    that came whole, but for what `check` and the format refuse; None for each that is not there.
    None where they make no design."""
    data = whole_fields(text)
    while True:
        try:
            check(Design.from_data(data))
            return dict.fromkeys(Design.model_fields) | data
        except DesignError as error:
            section, _, field = error.field.partition(".")
            holds = data.get(section) if field else data
            if not isinstance(holds, dict) or holds.pop(field or section, None) is None:
                return None
