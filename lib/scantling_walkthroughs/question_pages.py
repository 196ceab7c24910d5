"""Questions, verdicts and worked parts as plain text and as HTML that needs no script: folded with
<details>, readable in any notebook and page."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from json import dumps
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from markupsafe import Markup
from scantling import assess
from scantling.base.displayed import markdown

from .question import (
    BAD,
    NEAR,
    NEARLY,
    OPEN,
    RIGHT,
    SLIP,
    WRONG,
    Choice,
    Explain,
    Number,
    Option,
    Plan,
    Question,
)
from .right_answers import answer_as_text, right_answer
from .rubric import LEVELS, rubric
from .typed import DIMENSIONS, confusions, dimension, factors, likely_factors

HERE = Path(__file__).parent
# sign and name of what a verdict says
_STATUS = {
    RIGHT: ("✓", "Right"),
    SLIP: ("✗", "A usual slip"),
    NEAR: ("≈", "Nearly"),
    WRONG: ("✗", "Not yet"),
    BAD: ("?", "Not readable"),
}


class Judged(Protocol):
    """What is shown of a verdict."""

    @property
    def question(self) -> Question: ...
    @property
    def answer(self) -> Any: ...
    @property
    def status(self) -> str: ...
    @property
    def says(self) -> str: ...
    @property
    def hits(self) -> tuple[bool, ...]: ...


@cache
def _macros() -> Any:
    from jinja2 import Environment, FileSystemLoader

    folder = Environment(loader=FileSystemLoader(HERE), autoescape=True)
    return folder.get_template("walkthrough.j2").module


def part(name: str, *arguments: Any, **more: Any) -> str:
    """One part of a page as markup, by its macro in walkthrough.j2."""
    return str(getattr(_macros(), name)(*arguments, **more))


def block(inside: str) -> str:
    """A piece of a walkthrough with its look."""
    return f'<div class="scl">{inside}</div>'


def style() -> str:
    return f"<style>{(HERE / 'style.css').read_text(encoding='utf-8')}</style>"


# ---------------------------------------------------------------- plain text
def verdict_text(v: Judged) -> str:
    judgement = "open" if v.status == OPEN else f"{_STATUS[v.status][1].lower()}. {v.says}"
    return f"{v.question.id}: {judgement}".rstrip()


def ask_text(q: Question) -> str:
    options = q.options if isinstance(q, Choice) else ()
    lines = (f"  {o.key}  {o.text}" for o in options)
    return "\n".join([q.ask, *lines])


def answer_text(q: Question) -> str:
    return f"Answer: {answer_as_text(q, right_answer(q))}\n{q.worked}"


# ---------------------------------------------------------------- HTML
def verdict_part(v: Judged) -> str:
    if v.status == OPEN:
        return f'<div class="scl-verdict"><p>{escape(v.says)}</p></div>' if v.says else ""
    points = points_part(v.question, v.hits) if isinstance(v.question, Explain) else ""
    return part("verdict", v.status, *_STATUS[v.status], answered(v), markdown(v.says), points)


def answered(v: Judged) -> str:
    """The answer that was given, as people read it."""
    if v.status == BAD:
        return str(v.answer)[:200]
    return answer_as_text(v.question, v.answer)


def points_part(q: Explain, hits: Sequence[bool]) -> str:
    """The points of a strong answer, those found marked; the words decide nothing, the reader
    does."""
    items = ((hit, p.says) for p, hit in zip(q.points, hits))
    return _marked((("✓" if hit else "○", says) for hit, says in items))


def options_part(options: Iterable[Option]) -> str:
    return _marked(((o.key, o.text) for o in options))


def _marked(items: Iterable[tuple[str, str]]) -> str:
    """A list of (mark, text)."""
    return part("marked", [(key, _inline(text)) for key, text in items])


def _inline(text: str) -> str:
    out = markdown(text)
    return out[3:-4] if out.startswith("<p>") and out.find("</p>") == len(out) - 4 else out


def hints_part(q: Question, opened: int = 0) -> str:
    """Three hints, each folded inside the one before, so that they are opened one at a time."""
    inside = ""
    for i, hint in reversed([*enumerate(q.hints, 1)]):
        inside = part("fold", f"Hint {i}", markdown(hint) + inside, opened=i <= opened)
    return inside


def answer_part(q: Question, opened: bool = False) -> str:
    """The worked answer, folded."""
    right = right_answer(q)
    value = escape(answer_as_text(q, right))
    head = f"<p><strong>{value}</strong></p>"
    if isinstance(q, Choice):
        head = options_part([o for o in q.options if o.key in right])
    elif isinstance(q, Explain):
        head = points_part(q, [True] * len(q.points)) + f"<p><em>{value}</em></p>"
    return part("fold", "Worked answer", head + markdown(q.worked), "scl-answer", opened)


def slips_part(q: Question) -> str:
    """What a teacher listens for: the usual wrong answers, each with what to say to it; plans say
    theirs with the numbers of the plan that was tried."""
    rows = []
    if isinstance(q, Number):
        rows = [(answer_as_text(q, s.value / q.scale), s.says) for s in q.slips]
    elif isinstance(q, Choice):
        right = q.right
        rows = [(o.key, o.says) for o in q.options if o.key not in right and o.says]
    elif isinstance(q, Plan):
        rows = [(answer_as_text(q, s.example), "") for s in q.slips]
    if not rows:
        return ""
    laid = part("table", (), [(value, Markup(_inline(says))) for value, says in rows], (0, 1))
    return part("fold", "Usual slips", laid, "scl-slips")


def ask_part(q: Question) -> str:
    """The question itself, with its options."""
    head = part("head", rubric()[0][q.axis].name, q.level, f"{q.minutes:g}", q.id)
    listed = options_part(q.options) if isinstance(q, Choice) else ""
    return head + markdown(q.ask) + listed


def wanted(q: Question) -> str:
    """What form an answer has, in a few words."""
    if isinstance(q, Number):
        return q.unit or "a number"
    if isinstance(q, Choice):
        return (
            f"{'all that apply of' if q.several else 'one of'} "
            f"{', '.join(o.key for o in q.options)}"
        )
    if isinstance(q, Plan):
        return ", ".join(f"{n} …" for n in q.names)
    return "a few sentences"


def card(q: Question, verdict: Judged, mode: str, opened: int = 0) -> str:
    """A question with whatever was answered; hints and worked answer folded (open for an
    instructor, left out in a blank)."""
    teaching = mode == "instructor"
    inside = ask_part(q) + reply_part(verdict, mode)
    if mode != "blank":
        inside += hints_part(q, opened) + answer_part(q, teaching)
    if teaching:
        inside += slips_part(q)
    return part("card", inside, _key(q) if mode == "student" else "")


def reply_part(v: Judged, mode: str) -> str:
    """What a card says to an answer; in a blank no more than that it was noted."""
    if mode == "blank" and v.status != OPEN:
        return f'<div class="scl-verdict"><p>Noted: {escape(answered(v))}</p></div>'
    return verdict_part(v)


def controls(q: Question) -> dict[str, Any]:
    """What the controls of a question hang on."""
    return {
        "kind": q.kind,
        "id": q.id,
        "wanted": wanted(q),
        "several": isinstance(q, Choice) and q.several,
        "hints": len(q.hints),
    }


def _key(q: Question) -> str:
    """What a page needs to check an answer by itself, as base64 so that it does not meet the eye in
    the source."""
    data = controls(q) | {"axis": q.axis, "staff": q.level == LEVELS[2]}
    if isinstance(q, Number):
        right = right_answer(q)
        data |= {
            "unit": q.unit,
            "units": factors(q.unit),
            "confusions": confusions(q.unit),
            "factors": likely_factors(q),
            "dimensions": DIMENSIONS,
            "asked": dimension(q.unit),
            "within": q.within,
            "near": q.near,
            "right": right,
            "shown": answer_as_text(q, right),
            "slips": [
                {"value": s.value / q.scale, "within": s.within, "says": markdown(s.says)}
                for s in q.slips
            ],
        }
    elif isinstance(q, Choice):
        data |= {
            "right": sorted(q.right) if q.several else q.expected,
            "says": {o.key: markdown(o.says) for o in q.options},
        }
    elif isinstance(q, Plan):
        data |= plan_table(q)
    elif isinstance(q, Explain):
        data["points"] = [{"says": _inline(p.says), "words": p.words} for p in q.points]
    return packed(data)


def packed(data: Mapping[str, Any]) -> str:
    """Data for a page's own script, as an attribute holds them."""
    return base64.b64encode(dumps(data).encode()).decode()


def plan_table(q: Plan) -> dict[str, Any]:
    """Every legal choice of the named fields with the least step that fits [s], null where none
    does: what a page needs to judge a plan."""
    best = assess(q.design)
    search = best.chosen.search
    columns = [
        np.broadcast_to(getattr(search.plan, name), search.legal).astype(int) for name in q.names
    ]
    keys, at = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    least = np.full(len(keys), np.inf)
    np.minimum.at(least, at.ravel(), np.where(search.fits, search.step_s, np.inf))
    return {
        "names": list(q.names),
        "slower": q.slower,
        "near": NEARLY,
        "best": float(best.step_s),
        "steps": {
            ",".join(map(str, k)): None if np.isinf(s) else round(float(s), 4)
            for k, s in zip(keys.tolist(), least.tolist())
        },
    }


def mark(v: Judged | None) -> str:
    """One sign for the best verdict of a question, for tables."""
    return _STATUS[v.status][0] if v else "·"
