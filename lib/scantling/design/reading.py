"""What was read in a line of text: the contract between a draft and whoever reads lines
(`scantling_brief`)."""

from dataclasses import dataclass, field
from typing import Any

from ..base.records import Assumed, record


@dataclass(frozen=True)
class Read:
    """What was made of some words: the field it set and the value, or why there was nothing to
    set."""

    words: str
    field: str
    value: Any = None
    why: str = ""


@record
class Brief:
    """Fields by dotted path, the words each came from, the words that set nothing, and the readings
    that were a choice. `amounts`: what tokens follow from when the model is known."""

    fields: dict[str, Any] = field(default_factory=dict)
    read: tuple[Read, ...] = ()
    ignored: tuple[Read, ...] = ()
    assumed: tuple[Assumed, ...] = ()
    amounts: dict[str, float] = field(default_factory=dict)
