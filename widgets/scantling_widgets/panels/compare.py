"""Designs side by side: those that were kept, and the one on the desk beside the reference, field
by field and number by number."""

from __future__ import annotations

from collections.abc import Mapping

from scantling.advise.comparison import flat
from scantling.base.quantities import table as quantities

from .. import headline, theme
from ..parts import Button, Field
from ..table import cell
from ..words import at, band, plain, show, withheld
from .base import Panel

_SECTIONS = ("plan", "memory_bytes", "step_breakdown_s", "endurance", "cost")


class Compare(Panel):
    title = "Compare"
    always = True

    def begin(self):
        self.keep = Button(
            "Keep this design",
            self._keep,
            "Put it beside others in the table",
        )
        self.forget = Button("Forget all", self._forget)
        self.notes = Field(
            description="Notes to the decision",
            lines=3,
            cls="sd-wide-field",
        )
        self.notes.on("value", self._noted)

    def _noted(self, text: str) -> None:
        if text != (self.session.now.design.notes or ""):
            self.choose({"notes": text or None})

    def _keep(self) -> None:
        self.session.keep()
        self._show_kept()

    def _forget(self) -> None:
        self.session.kept.clear()
        self._show_kept()

    def _show_kept(self) -> None:
        moments = self.session.kept
        data = [flat(moment.design.data()) for moment in moments]
        rows = [
            [
                cell(f"{i + 1}", i),
                cell(_differs(data[0], data[i])),
                *self._figures(moment),
            ]
            for i, moment in enumerate(moments)
        ]
        self.kept.fill(rows, [moment.given for moment in moments])

    def _figures(self, moment) -> list[dict]:
        """Figures with their bands; of a plan that does not fit, those that it has."""
        given, out = moment.given, []
        for key in self.kept.names[2:-1]:
            value, ends = at(given, key), [at(given, f"{key}_{end}") for end in ("low", "high")]
            if withheld(given, key):
                value, ends = None, [None]
            text = show(key, value) + (f" ({band(key, *ends)})" if None not in ends else "")
            out.append(cell(text, value))
        return [*out, cell(moment.design.notes or "")]

    def _pick(self, index: int) -> None:
        self.session.put(self.session.kept[index].design)

    def draw(self):
        session = self.session
        self.notes.value = session.now.design.notes or ""
        self._show_kept()
        if session.reference is None:
            self.hint.value = (
                "<p>Press <b>Set reference</b> at the top, then change the design: what differs "
                "is listed here and marked in every picture.</p>"
            )
            self.fields.rows = self.numbers.rows = []
            return
        title = theme.escape(session.reference.design.title)
        self.hint.value = f"<p>Reference: <b>{title}</b></p>"
        before, now = flat(session.reference.design.data()), flat(session.now.design.data())
        self.fields.rows = [
            [
                f,
                say(before.get(f)),
                say(now.get(f)),
            ]
            for f in dict.fromkeys([*before, *now])
            if before.get(f) != now.get(f)
        ]
        self.numbers.rows = differing(session.reference.given, session.now.given)


def _differs(first: Mapping, own: Mapping) -> str:
    """The fields in which a design differs from the first that was kept."""
    paths = [p for p in dict.fromkeys([*first, *own]) if first.get(p) != own.get(p)]
    said = (
        f"{p.rpartition('.')[2]} {say(own.get(p))}" for p in paths if p not in ("name", "notes")
    )
    return ", ".join(said) or "the first kept"


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
