"""The rules of the grammar: a pattern, and what its words say."""

import re
from collections.abc import Mapping
from dataclasses import field

from scantling.base.records import Lines, record

from .readers import Reader
from .topics import Topic


@record
class Rule:
    """One way to say something: it sets fields, or facts that fields are worked out from when all
    has been read (brief.py); or it is asked about; or it is a question; or it is understood and
    sets nothing, saying why. What is asked about may set fields by what else it says."""

    pattern: re.Pattern[str]
    sets: Mapping[str, Reader] = field(default_factory=dict)
    why: str = ""
    asks: str = ""  # what has to be answered about the words
    choices: Lines = ()  # what may be meant by them
    topic: Topic | None = None  # of a question


def compiled(pattern: str, case: bool = False) -> re.Pattern[str]:
    """A pattern that ends at a word's end; `case` : capitals count. Letters are those of ASCII,
    which Python makes ready in half of the time."""
    return re.compile(rf"(?:{pattern})(?![A-Za-z0-9])", re.ASCII | (0 if case else re.IGNORECASE))


def sets(
    fields: Mapping[str, Reader], *patterns: str, case: bool = False, why: str = ""
) -> tuple[Rule, ...]:
    """Words that set fields or facts; a reader that finds nothing sets nothing."""
    return tuple(
        Rule(pattern=compiled(pattern, case), sets=fields, why=why) for pattern in patterns
    )


def means(why: str, *patterns: str) -> tuple[Rule, ...]:
    """Words that are understood and set nothing."""
    return tuple(Rule(pattern=compiled(pattern), why=why) for pattern in patterns)


def asks(
    question: str,
    *patterns: str,
    choices: Lines = (),
    case: bool = False,
    fields: Mapping[str, Reader] | None = None,
    of: Topic | None = None,
) -> tuple[Rule, ...]:
    """Words that decide and have no field: what has to be answered about them, what may be meant,
    and what else they say; `of`: the question that they are a part of."""
    return tuple(
        Rule(
            pattern=compiled(pattern, case),
            asks=question,
            choices=choices,
            sets=fields or {},
            topic=of,
        )
        for pattern in patterns
    )


def topic(
    of: Topic, *patterns: str, fields: Mapping[str, Reader] | None = None
) -> tuple[Rule, ...]:
    """Words of a question, and what else they say."""
    return tuple(
        Rule(pattern=compiled(pattern), topic=of, sets=fields or {}) for pattern in patterns
    )
