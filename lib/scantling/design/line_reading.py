"""What was read in a line of text: the contract between a draft and whoever reads lines
(`scantling_brief`)."""

from dataclasses import dataclass, field
from typing import Any

from ..base.records import Assumed, Lines, record


@dataclass(frozen=True)
class Read:
    """What was made of some words: the field it set and the value, or why there was nothing to
    set."""

    words: str
    field: str
    value: Any = None
    why: str = ""


@record
class Unread:
    """Words that decide and found no field, what has to be answered about them, what may be
    meant."""

    words: str
    question: str
    choices: Lines = ()


@record
class Brief:
    """Fields by dotted path, the words each came from, the words that set nothing, the readings
    that were a choice, and the words that have to be asked about. `amounts`: what tokens follow
    from when the model is known. `open`: fields that hold a name as it was given, which no
    catalogue knows."""

    fields: dict[str, Any] = field(default_factory=dict)
    read: tuple[Read, ...] = ()
    ignored: tuple[Read, ...] = ()
    assumed: tuple[Assumed, ...] = ()
    amounts: dict[str, float] = field(default_factory=dict)
    unread: tuple[Unread, ...] = ()
    open: frozenset[str] = frozenset()
