"""Questions, verdicts and worked parts as plain text and as HTML that needs no script: folded with
<details>, readable in any notebook and page."""

from __future__ import annotations

import base64
import json
from functools import cache
from html import escape
from pathlib import Path

import numpy as np
from markupsafe import Markup
from scantling import assess

from .answers import right_answer, shown_answer
from .question import OPEN, Choice, Explain, Number, Plan, Question, value_of
from .rubric import LEVELS, rubric
from .texts import fill_text
from .typed import DIMENSIONS, FACTORS, confusions, dimension, factors

HERE = Path(__file__).parent
_SIGN = {
    "right": "✓",
    "slip": "✗",
    "near": "≈",
    "wrong": "✗",
    "unreadable": "?",
    "open": "…",
}
_NAME = {
    "right": "Right",
    "slip": "A usual slip",
    "near": "Nearly",
    "wrong": "Not yet",
    "unreadable": "Not readable",
    "open": "Open",
}


@cache
def parts():
    """The macros of walkthrough.j2: each gives one part of a page as markup."""
    from jinja2 import Environment, FileSystemLoader

    return (
        Environment(
            loader=FileSystemLoader(HERE),
            autoescape=True,
        )
        .get_template("walkthrough.j2")
        .module
    )


def markdown(text: str) -> str:
    """Markdown as HTML, foreign markup escaped."""
    import mistune

    return mistune.create_markdown(plugins=["table"])(text).strip()


def block(inside: str, kind: str = "") -> str:
    """A piece of a walkthrough with its look."""
    return str(parts().block(inside, kind))


def style() -> str:
    return f"<style>{(HERE / 'style.css').read_text(encoding='utf-8')}</style>"


# ---------------------------------------------------------------- plain text
def verdict_text(v) -> str:
    if v.status == OPEN:
        return f"{v.question.id}: open"
    return f"{v.question.id}: {_NAME[v.status].lower()}. {v.says}".rstrip()


def ask_text(q: Question, facts) -> str:
    lines = [fill_text(q.ask, facts)]
    if isinstance(q, Choice):
        lines += [f"  {o.key}  {fill_text(o.text, facts)}" for o in q.options]
    return "\n".join(lines)


def answer_text(q: Question, facts) -> str:
    return f"Answer: {shown_answer(q, right_answer(q, facts), facts)}\n{fill_text(q.worked, facts)}"


# ---------------------------------------------------------------- HTML
def verdict_part(v) -> str:
    if v.status == OPEN:
        return f'<div class="scl-verdict"><p>{escape(v.says)}</p></div>' if v.says else ""
    said = markdown(v.says) if v.says else ""
    points = points_part(v.question, v.facts, v.hits) if isinstance(v.question, Explain) else ""
    return str(
        parts().verdict(
            v.status,
            _SIGN[v.status],
            _NAME[v.status],
            given(v),
            said,
            points,
        )
    )


def given(v) -> str:
    if v.status == "unreadable":
        return str(v.answer)[:200]
    try:
        return shown_answer(v.question, v.answer, v.facts)
    except (ValueError, TypeError, AttributeError):
        return str(v.answer)[:200]


def points_part(
    q: Explain,
    facts,
    hits,
) -> str:
    """The points of a strong answer, those found marked; the words decide nothing, the reader
    does."""
    found = hits or [False] * len(q.points)
    return _marked(
        ("✓" if hit else "○", fill_text(p.says, facts)) for p, hit in zip(q.points, found)
    )


def _marked(items) -> str:
    """A list of (mark, markdown)."""
    return str(parts().marked([(key, _inline(text)) for key, text in items]))


def _inline(text: str) -> str:
    out = markdown(text)
    return (
        out[3:-4]
        if out.startswith("<p>") and out.endswith("</p>") and out.count("<p>") == 1
        else out
    )


def hints_part(
    q: Question,
    facts,
    opened: int = 0,
) -> str:
    """Three hints, each folded inside the one before, so that they are opened one at a time."""
    inside = ""
    for i, hint in reversed([*enumerate(q.hints, 1)]):
        inside = str(
            parts().fold(f"Hint {i}", markdown(fill_text(hint, facts)) + inside, opened=i <= opened)
        )
    return inside


def answer_part(
    q: Question,
    facts,
    opened: bool = False,
) -> str:
    """The worked answer, folded."""
    value = shown_answer(q, right_answer(q, facts), facts)
    if isinstance(q, Choice):
        right = q.right(facts)
        head = options_part([o for o in q.options if o.key in right], facts)
    elif isinstance(q, Explain):
        head = points_part(q, facts, (True,) * len(q.points)) + f"<p><em>{escape(value)}</em></p>"
    else:
        head = f"<p><strong>{escape(value)}</strong></p>"
    worked = markdown(fill_text(q.worked, facts))
    return str(
        parts().fold(
            "Worked answer",
            head + worked,
            "scl-answer",
            opened,
        )
    )


def slips_part(q: Question, facts) -> str:
    """What a teacher listens for: the usual wrong answers, each with what to say to it; plans say
    theirs with the numbers of the plan that was tried."""
    if isinstance(q, Number):
        rows = [
            (shown_answer(q, s.amount(facts) / q.scale, facts), fill_text(s.says, facts))
            for s in q.slips
        ]
    elif isinstance(q, Choice):
        right = q.right(facts)
        rows = [
            (o.key, fill_text(o.says, facts)) for o in q.options if o.key not in right and o.says
        ]
    elif isinstance(q, Plan):
        rows = [(shown_answer(q, dict(s.example), facts), "") for s in q.slips]
    else:
        return ""
    if not rows:
        return ""
    table = parts().table((), [(value, Markup(_inline(says))) for value, says in rows], (0, 1))
    return str(parts().fold("Usual slips", table, "scl-slips"))


def ask_part(
    q: Question,
    facts,
    options: bool = True,
) -> str:
    """The question itself, with its options unless they stand elsewhere."""
    axis = rubric()[0][q.axis]
    asked = str(
        parts().head(
            axis.name,
            q.level,
            f"{q.minutes:g}",
            q.id,
        )
    ) + markdown(fill_text(q.ask, facts))
    with_options = options and isinstance(q, Choice)
    return asked + options_part(q.options, facts) if with_options else asked


def options_part(options, facts) -> str:
    return _marked((o.key, fill_text(o.text, facts)) for o in options)


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


def card(
    q: Question,
    facts,
    verdict,
    mode: str,
    opened: int = 0,
) -> str:
    """A question with whatever was answered; hints and worked answer folded (open for an
    instructor, left out in a blank)."""
    inside = ask_part(q, facts)
    answered = verdict is not None and verdict.status != OPEN
    if mode == "blank":
        if answered:
            noted = f"<p>Noted: {escape(given(verdict))}</p>"
            inside += f'<div class="scl-verdict">{noted}</div>'
        return block(parts().card(inside))
    if verdict is not None:
        inside += verdict_part(verdict)
    inside += hints_part(q, facts, opened) + answer_part(q, facts, mode == "instructor")
    if mode == "instructor":
        return block(parts().card(inside + slips_part(q, facts)))
    return block(parts().card(inside, _key(q, facts)))


def _key(q: Question, facts) -> str:
    """What a page needs to check an answer by itself, as base64 so that it does not meet the eye in
    the source."""
    data: dict = {
        "kind": q.kind,
        "id": q.id,
        "wanted": wanted(q),
        "axis": q.axis,
        "staff": q.level == LEVELS[2],
        "hints": len(q.hints),
    }
    if isinstance(q, Number):
        data |= {
            "unit": q.unit,
            "units": factors(q.unit),
            "confusions": confusions(q.unit),
            "factors": FACTORS,
            "dimensions": DIMENSIONS,
            "asked": dimension(q.unit),
            "within": q.within,
            "right": float(value_of(q.expected, facts)) / q.scale,
            "shown": shown_answer(q, right_answer(q, facts), facts),
            "slips": [
                {
                    "value": s.amount(facts) / q.scale,
                    "within": s.within,
                    "says": markdown(fill_text(s.says, facts)),
                }
                for s in q.slips
            ],
        }
    elif isinstance(q, Choice):
        right = q.right(facts)
        data |= {
            "several": q.several,
            "right": sorted(right) if q.several else right,
            "says": {o.key: markdown(fill_text(o.says, facts)) for o in q.options},
        }
    elif isinstance(q, Plan):
        data |= plan_table(q, facts)
    elif isinstance(q, Explain):
        data |= {
            "points": [
                {
                    "says": _inline(fill_text(p.says, facts)),
                    "words": list(p.words),
                }
                for p in q.points
            ]
        }
    return packed(data)


def packed(data) -> str:
    """Data for a page's own script, as an attribute holds them."""
    return base64.b64encode(json.dumps(data).encode()).decode()


def plan_table(q: Plan, facts) -> dict:
    """Every legal choice of the named fields with the least step that fits [s], null where none
    does: what a page needs to judge a plan."""
    best = assess(value_of(q.design, facts))
    found = best.chosen.found
    columns = [
        np.broadcast_to(getattr(found.plan, name), found.legal).astype(int) for name in q.names
    ]
    keys, at = np.unique(
        np.stack(columns, axis=1),
        axis=0,
        return_inverse=True,
    )
    least = np.full(len(keys), np.inf)
    np.minimum.at(least, at.ravel(), np.where(found.fits, found.step_s, np.inf))
    return {
        "names": list(q.names),
        "slower": q.slower,
        "best": float(best.step_s),
        "steps": {
            ",".join(map(str, k)): None if np.isinf(s) else round(float(s), 4)
            for k, s in zip(keys.tolist(), least.tolist())
        },
    }


def mark(v) -> str:
    """One sign for a verdict, for tables."""
    return "·" if v is None or v.status == OPEN else _SIGN[v.status]
