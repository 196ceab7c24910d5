"""How one thing is worded: a number with its unit, a plan in a line, a clause of the library as a
sentence. The templates use these as filters."""

from functools import partial

from markupsafe import Markup, escape
from scantling import catalogue
from scantling.base.files import table as read_yaml
from scantling.base.quantities import table as quantities
from scantling.base.quantities.table import band_in
from scantling.base.show import shown, value_text
from scantling.design.constraints import CONSTRAINTS
from scantling.verdict.verdicts import VERDICTS

from ..words import plan_text

WORDS = read_yaml(__file__, "words")


def show(key: str, value) -> str:
    """A value as text with its unit, by the library's own rule for `key`: a quantity of the
    assessment, or a kind of input."""
    if kind := WORDS["kinds"].get(key):
        return shown(value, kind, WORDS["units"].get(key, ""))
    return quantities.show(key, value)


def in_unit(unit: str, value) -> str:
    """A value that comes with the name of its unit."""
    for name, kind in WORDS["of_unit"].items():
        if unit == name or unit.startswith(f"{name} "):
            return shown(value, kind)
    whole = unit != "ratio" and isinstance(value, (int, float)) and value == int(value)
    return shown(value, "count" if whole else "rate", "" if unit in ("count", "ratio") else unit)


def _named(rows, ident) -> str:
    """The name of a catalogue row by its id, without what stands in brackets; the id itself where
    there is no such row."""
    row = rows().get(ident) if isinstance(ident, str) else None
    return row.name.split(" (")[0] if row else ident


fabric, storage = (partial(_named, rows) for rows in (catalogue.fabrics, catalogue.storages))


def _headed(text) -> tuple[str, str]:
    """(what stands before the first colon, the rest) of a text; ("", text) without such a head."""
    head, colon, rest = str(text).partition(":")
    return (head, rest) if colon and len(head) < 60 else ("", str(text))


def _lead(text) -> Markup:
    """What stands before the first colon in bold."""
    head, rest = _headed(_upfirst(str(text)))
    return Markup("<strong>{}</strong>:{}").format(head, rest) if head else escape(rest)


def _after_colon(text) -> str:
    """What stands behind the first colon; the heading before it is on the page already."""
    return _headed(text)[1].strip().rstrip(".")


def _nodes(count) -> str:
    return f"{show('count', count)} {'node' if count == 1 else 'nodes'}"


def _upfirst(text: str) -> str:
    """With a capital at its start, where no id stands there."""
    named = any(c.isdigit() for c in text.split(" ", 1)[0])
    return text if named else text[:1].upper() + text[1:]


def sentence(text) -> str:
    """The text with a capital at its start and a stop at its end."""
    text = _upfirst(str(text).strip())
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."


def _within(a, key: str) -> str:
    """The band behind a figure; nothing behind a measured one."""
    return f" ({said})" if (said := band_in(a, key)) else ""


def _under(collectives, axis: str) -> str:
    """What hides the collectives of an axis."""
    beside = dict.fromkeys(
        row["beside"] for row in collectives if row["axis"] == axis and row["hidden"] != "no"
    )
    return (
        f"under {' and '.join(b for b in beside if b and not b.startswith('nothing')) or 'compute'}"
    )


def _asked_by(field: str) -> str:
    """A constraint by its words, where a figure says that it set it."""
    row = CONSTRAINTS.get(field.removeprefix("constraints."))
    return f"set by the ceiling of {row.name}" if row else field


def _fix_figures(fix) -> str:
    """The figures that a nearest fix brings with it."""
    names = {
        "mfu_shown": "MFU ",
        "step_s": "step ",
        "days": "",
        "cost_usd": "",
        "goodput": "goodput ",
    }
    figures = quantities.told(fix, names)
    return f" ({', '.join(figures)})" if figures else ""


def _worded(kind: str, ident: str) -> str:
    """The words for a name of the library; the name itself where there are none."""
    return WORDS[kind].get(ident, ident)


def _verdict(ident: str, form: str = "means") -> str:
    """What a changed design does, by its verdict, or another form of the word."""
    return getattr(VERDICTS[ident], form)


FILTERS = {
    "lead": _lead,
    "after_colon": _after_colon,
    "upfirst": _upfirst,
    "sentence": sentence,
    "value": value_text,
    "nodes": _nodes,
    "within": _within,
    "under": _under,
    "asked_by": _asked_by,
    "fix_figures": _fix_figures,
    "plan_text": plan_text,
    "fabric": fabric,
    "storage": storage,
    **{kind: partial(_worded, kind) for kind in ("schedule", "recompute")},
    "verdict": _verdict,
}
