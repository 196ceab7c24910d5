"""Threads of the linear algebra below numpy: one here, whose matrices are small, and what the
caller has set for the programs of others."""

import os
from collections.abc import Mapping
from functools import cache

NAME = "OPENBLAS_NUM_THREADS"


@cache
def given() -> str | None:
    """What the caller's environment says, asked before this program sets its own; None for
    nothing."""
    return os.environ.get(NAME)


def one_thread() -> None:
    """One thread for this process and its own workers, unless the caller says otherwise: more
    would only wait. Before numpy is imported."""
    if given() is None:
        os.environ[NAME] = "1"


def as_given(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a program that runs other people's code: without this one's thread."""
    other = {name: value for name, value in environment.items() if name != NAME}
    threads = given()
    return other if threads is None else other | {NAME: threads}
