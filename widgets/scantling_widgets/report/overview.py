"""The index of a batch: every design with its headline figures, what failed and why."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from .jobs import today
from .page import document
from .phrases import plan_text
from .text import environment


def overview(records: Iterable, title: str = "Design reports") -> str:
    """A page over the records of a folder, with links to the reports beside it."""
    body = (
        environment()
        .get_template("overview.j2")
        .render(
            records=list(records),
            title=title,
            plan_text=plan_text,
        )
    )
    return document(
        Markup(body),
        title=title,
        date=today(),
        kind="wide",
    )
