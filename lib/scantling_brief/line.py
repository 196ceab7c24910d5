"""A line as it was read: a brief with what the line asks."""

from functools import partial
from typing import Any

from scantling.base.errors import DesignError
from scantling.base.records import record
from scantling.design.line_reading import Brief

from .topics import Topic

refusal = partial(DesignError, "text")  # of a line


@record
class Question:
    """What a line asks: the topic that decides, its words, and what they say besides: the
    fields with the values to compare, the thing that changes and how, the compute."""

    topic: Topic
    words: str = ""
    others: tuple[Topic, ...] = ()  # what it asks besides, of other commands
    compared: tuple[tuple[str, tuple[Any, ...]], ...] = ()  # fields and the values of each
    changed: str = ""  # "infiniband", "gpus" ...
    by: str = ""  # "halved", "twice" ...
    share: float | None = None  # of it, in per cent
    flops: float | None = None  # of the training


@record
class Reading(Brief):
    """A brief, and what the line asks; None where it asks nothing."""

    question: Question | None = None
