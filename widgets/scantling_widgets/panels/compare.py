"""The design on the desk beside the pinned one: the fields that differ, and every headline number
with its difference."""

from __future__ import annotations

from collections.abc import Mapping

from scantling.base.quantities import table as quantities

from .. import headline, theme
from ..table import Table, cell
from ..words import at, plain, show
from .base import Panel

_SECTIONS = ("plan", "memory_bytes", "step_breakdown_s", "endurance", "cost")


class Compare(Panel):
    title = "Compare"
    always = True

    def build(self):
        self.hint = theme.text()
        self.fields = Table("design-differences")
        self.numbers = Table("comparison", explain=self.explain)
        return [self.hint, theme.card("Design", self.fields), theme.card("Result", self.numbers)]

    def draw(self):
        session = self.session
        if session.pinned is None:
            self.hint.value = (
                "<p>Press <b>Pin</b> at the top to keep the design on the desk, then change "
                "it: what differs is listed here and marked in every picture.</p>"
            )
            self.fields.rows = self.numbers.rows = []
            return
        self.hint.value = f"<p>Pinned: <b>{theme.escape(session.pinned.design.title)}</b></p>"
        before, now = flat(session.pinned.design.data()), flat(session.now.design.data())
        self.fields.rows = [
            [f, say(before.get(f)), say(now.get(f))]
            for f in dict.fromkeys([*before, *now])
            if before.get(f) != now.get(f)
        ]
        self.numbers.rows = differing(session.pinned.given, session.now.given)


def flat(data: Mapping, prefix: str = "") -> dict:
    """Nested fields by dotted path."""
    out = {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            out.update(flat(value, f"{prefix}{key}."))
        else:
            out[prefix + str(key)] = value
    return out


def say(value) -> str:
    return "—" if value is None else plain(value)


def differing(before: Mapping, now: Mapping) -> list[list]:
    """Rows of every quantity that the two assessments give differently."""
    better = {key: sense for key, _, sense in headline.CARDS}
    rows = []
    for key, quantity in quantities.table().items():
        a, b = at(before, key), at(now, key)
        if a == b or key in ("name", "error"):
            continue
        if any(isinstance(value, (Mapping, list, tuple)) for value in (a, b)):
            continue
        truth = bool in (type(a), type(b))
        text, sense = (
            ("", "")
            if truth
            else headline.difference(
                key,
                b,
                a,
                better.get(key),
            )
        )
        rows.append(
            [
                cell(quantity.label, hint=key),
                show(key, a),
                cell(show(key, b), key=key),
                cell(
                    text,
                    mark={
                        "better": "good",
                        "worse": "bad",
                    }.get(sense, ""),
                ),
            ]
        )
    return rows
