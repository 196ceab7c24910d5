"""The index of a batch: every design with its headline figures, what failed and why."""

from __future__ import annotations

from collections.abc import Iterable

from .jobs import today
from .page import templated
from .phrases import plan_text


def overview(records: Iterable, title: str = "Design reports") -> str:
    """A page over the records of a folder, with links to the reports beside it."""
    records = list(records)
    return templated(
        "overview",
        title=title,
        date=today(),
        records=records,
        plan_text=plan_text,
    )
