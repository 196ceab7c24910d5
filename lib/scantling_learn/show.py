"""Questions, verdicts and worked parts as plain text and as HTML that needs no script: folded with
<details>, readable in any notebook and page."""

from __future__ import annotations

import base64
import html
import json

from .grade import OPEN, RIGHT, Verdict, right_answer, shown_answer
from .question import Choice, Explain, Number, Plan, Question, value_of
from .rubric import LEVELS, rubric
from .tell import tell
from .typed import confusions, factors

escape = html.escape
_SIGN = {"right": "✓", "slip": "✗", "near": "≈", "wrong": "✗", "unreadable": "?", "open": "…"}
_NAME = {
    "right": "Right",
    "slip": "A usual slip",
    "near": "Nearly",
    "wrong": "Not yet",
    "unreadable": "Not readable",
    "open": "Open",
}

STYLE = """
.scl{--scl-ink:var(--ink,var(--jp-content-font-color1,#1c2430));--scl-soft:var(--soft,var(--jp-content-font-color2,#56616f));
--scl-line:var(--line,var(--jp-border-color2,#d9dee5));--scl-ground:var(--raised,var(--jp-layout-color2,rgba(127,127,127,.07)));
--scl-accent:var(--accent,var(--jp-brand-color1,#1a6fb0));--scl-good:var(--good,var(--jp-success-color0,#1b7f3b));--scl-bad:var(--bad,var(--jp-error-color0,#b3261e));
color:var(--scl-ink);font-family:var(--jp-content-font-family,inherit);font-size:var(--jp-content-font-size1,1em);line-height:1.5;max-width:60rem}
.scl p,.scl ul,.scl ol{margin:.35em 0}.scl ul,.scl ol{padding-left:1.5em}
.scl code{font-family:var(--jp-code-font-family,ui-monospace,'DejaVu Sans Mono',monospace);font-size:.9em;background:none;color:inherit;padding:0}
.scl pre{white-space:pre-wrap;margin:.5em 0;background:none;color:inherit;border:0;padding:0}
.scl-card{border:1px solid var(--scl-line);border-left:4px solid var(--scl-accent);border-radius:4px;padding:.6em .9em;margin:.4em 0;background:var(--scl-ground)}
.scl-head{font-size:.82em;color:var(--scl-soft);display:flex;gap:1em;flex-wrap:wrap}.scl-head b{color:var(--scl-accent);font-weight:600}
.scl-verdict{border-left:4px solid var(--scl-soft);padding:.1em .8em;margin:.5em 0}
.scl-verdict.right{border-color:var(--scl-good)}.scl-verdict.slip,.scl-verdict.wrong,.scl-verdict.unreadable{border-color:var(--scl-bad)}
.scl-verdict b.mark{margin-right:.4em}.scl-verdict.right b.mark{color:var(--scl-good)}.scl-verdict.slip b.mark,.scl-verdict.wrong b.mark{color:var(--scl-bad)}
.scl details{margin:.3em 0}.scl summary{cursor:pointer;color:var(--scl-accent)}.scl details>div{padding-left:1em;border-left:1px solid var(--scl-line)}
.scl-options{list-style:none;padding-left:.2em !important}.scl-options li{margin:.2em 0}.scl-options b{margin-right:.5em}
.scl-take{border:1px solid var(--scl-line);border-left:4px solid var(--scl-good);border-radius:4px;padding:.4em .9em;margin:.7em 0}
.scl table,.scl-table{border-collapse:collapse;margin:.6em 0;font-variant-numeric:tabular-nums;font-size:.93em}
.scl th,.scl td{padding:.2em .8em .2em 0;text-align:right !important;border:0;border-bottom:1px solid var(--scl-line);color:var(--scl-ink);background:none;vertical-align:top}
.scl td:not(.t),.scl th:not(.t){white-space:nowrap}.scl th{color:var(--scl-soft);font-weight:500}.scl th.t,.scl td.t{text-align:left !important}
.scl .picture{margin:.6em 0}.scl .picture svg{max-width:100%;height:auto}.scl figcaption{color:var(--scl-soft);font-size:.88em}
.scl .picture svg [fill="#1c2430"]{fill:var(--scl-ink)}.scl .picture svg [stroke="#1c2430"]{stroke:var(--scl-ink)}
.scl .picture svg [fill="#56616f"]{fill:var(--scl-soft)}.scl .picture svg [stroke="#56616f"]{stroke:var(--scl-soft)}
.scl .picture svg [fill="#d9dee5"]{fill:var(--scl-line)}.scl .picture svg [stroke="#d9dee5"]{stroke:var(--scl-line)}
.scl .picture svg [fill="#fefefe"],.scl .picture svg [stroke="#fefefe"]{fill:none}
.scl .picture svg text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}
.scl-bar{display:inline-block;height:.65em;background:var(--scl-accent);border-radius:2px;vertical-align:baseline}
"""


def markdown(text: str) -> str:
    """Markdown as HTML, foreign markup escaped."""
    import mistune

    return mistune.create_markdown(plugins=["table"])(text).strip()


def block(inside: str, kind: str = "") -> str:
    """A piece of a walkthrough with its look."""
    return f'<div class="scl{" " + kind if kind else ""}">{inside}</div>'


def style() -> str:
    return f"<style>{STYLE}</style>"


# ---------------------------------------------------------------- plain text
def verdict_text(v: Verdict) -> str:
    if v.status == OPEN:
        return f"{v.question.id}: open"
    return f"{v.question.id}: {_NAME[v.status].lower()}. {v.says}".rstrip()


def ask_text(q: Question, facts) -> str:
    lines = [tell(q.ask, facts)]
    if isinstance(q, Choice):
        lines += [f"  {o.key}  {tell(o.text, facts)}" for o in q.options]
    return "\n".join(lines)


def answer_text(q: Question, facts) -> str:
    return f"Answer: {shown_answer(q, right_answer(q, facts), facts)}\n{tell(q.worked, facts)}"


# ---------------------------------------------------------------- HTML
def verdict_html(v: Verdict) -> str:
    return block(verdict_part(v))


def verdict_part(v: Verdict) -> str:
    if v.status == OPEN:
        return ""
    said = markdown(v.says) if v.says else ""
    given = f"<p>Your answer: {escape(_given(v))}</p>"
    points = points_part(v.question, v.facts, v.hits) if isinstance(v.question, Explain) else ""
    return (
        f'<div class="scl-verdict {v.status}" role="status"><p><b '
        f'class="mark">{_SIGN[v.status]} '
        f"{_NAME[v.status]}</b></p>{given}{said}{points}</div>"
    )


def _given(v: Verdict) -> str:
    if v.status == "unreadable":
        return str(v.answer)[:200]
    try:
        return shown_answer(v.question, v.answer, v.facts)
    except (ValueError, TypeError, AttributeError):
        return str(v.answer)[:200]


def points_part(q: Explain, facts, hits) -> str:
    """The points of a strong answer, those found marked; the words decide nothing, the reader
    does."""
    items = "".join(
        f"<li><b>{'✓' if hit else '○'}</b> {_inline(tell(p.says, facts))}</li>"
        for p, hit in zip(q.points, hits or [False] * len(q.points))
    )
    return f'<ul class="scl-options">{items}</ul>'


def _inline(text: str) -> str:
    out = markdown(text)
    return (
        out[3:-4]
        if out.startswith("<p>") and out.endswith("</p>") and out.count("<p>") == 1
        else out
    )


def hints_part(q: Question, facts, opened: int = 0) -> str:
    """Three hints, each folded inside the one before, so that they are opened one at a time."""
    inside = ""
    for i in range(len(q.hints), 0, -1):
        inside = (
            f"<details{' open' if i <= opened else ''}><summary>Hint "
            f"{i}</summary><div>{markdown(tell(q.hints[i - 1], facts))}{inside}</div></details>"
        )
    return inside


def answer_part(q: Question, facts, opened: bool = False) -> str:
    """The worked answer, folded."""
    value = shown_answer(q, right_answer(q, facts), facts)
    if isinstance(q, Choice):
        right = value_of(q.expected, facts)
        head = options_part([o for o in q.options if o.key in right], facts)
    elif isinstance(q, Explain):
        head = points_part(q, facts, (True,) * len(q.points)) + f"<p><em>{escape(value)}</em></p>"
    else:
        head = f"<p><strong>{escape(value)}</strong></p>"
    return (
        f'<details class="scl-answer"{" open" if opened else ""}><summary>Worked '
        f"answer</summary><div>{head}{markdown(tell(q.worked, facts))}</div></details>"
    )


def slips_part(q: Question, facts) -> str:
    """What a teacher listens for: the usual wrong answers, each with what to say to it; plans say
    theirs with the numbers of the plan that was tried."""
    if isinstance(q, Number):
        rows = [
            (shown_answer(q, float(value_of(s.value, facts)) / q.scale, facts), tell(s.says, facts))
            for s in q.slips
        ]
    elif isinstance(q, Choice):
        right = value_of(q.expected, facts)
        rows = [(o.key, tell(o.says, facts)) for o in q.options if o.key not in right and o.says]
    elif isinstance(q, Plan):
        rows = [(shown_answer(q, dict(s.example), facts), "") for s in q.slips]
    else:
        return ""
    body = "".join(
        f'<tr><td class="t">{escape(value)}</td><td class="t">{_inline(says)}</td></tr>'
        for value, says in rows
    )
    return (
        (
            f'<details class="scl-slips"><summary>Usual slips</summary><div><table '
            f'class="scl-table">{body}</table></div></details>'
        )
        if rows
        else ""
    )


def ask_part(q: Question, facts, options: bool = True) -> str:
    """The question itself, with its options unless they stand elsewhere."""
    axis = rubric()[0][q.axis]
    head = (
        f'<div class="scl-head"><b>Commit</b><span>{escape(axis.name)} · '
        f"{q.level}</span><span>{q.minutes:g} "
        f"min</span><span><code>{escape(q.id)}</code></span></div>"
    )
    body = markdown(tell(q.ask, facts))
    if options and isinstance(q, Choice):
        body += options_part(q.options, facts)
    return head + body


def options_part(options, facts) -> str:
    return (
        '<ul class="scl-options">'
        + "".join(f"<li><b>{escape(o.key)}</b>{_inline(tell(o.text, facts))}</li>" for o in options)
        + "</ul>"
    )


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


def card(q: Question, facts, verdict: Verdict | None, mode: str, opened: int = 0) -> str:
    """A question with whatever was answered; hints and worked answer folded (open for an
    instructor, left out in a blank)."""
    parts = [ask_part(q, facts)]
    if mode == "blank":
        if verdict is not None and verdict.status != OPEN:
            parts.append(f'<div class="scl-verdict"><p>Noted: {escape(_given(verdict))}</p></div>')
        return block(f'<div class="scl-card">{"".join(parts)}</div>')
    if verdict is not None:
        parts.append(verdict_part(verdict))
    parts += [hints_part(q, facts, opened), answer_part(q, facts, mode == "instructor")]
    if mode == "instructor":
        parts.append(slips_part(q, facts))
    key = "" if mode == "instructor" else f' data-key="{_key(q, facts)}"'
    return block(f'<div class="scl-card"{key}>{"".join(parts)}</div>')


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
            "within": q.within,
            "right": float(value_of(q.expected, facts)) / q.scale,
            "shown": shown_answer(q, right_answer(q, facts), facts),
            "slips": [
                {
                    "value": float(value_of(s.value, facts)) / q.scale,
                    "within": s.within,
                    "says": markdown(tell(s.says, facts)),
                }
                for s in q.slips
            ],
        }
    elif isinstance(q, Choice):
        right = value_of(q.expected, facts)
        data |= {
            "several": q.several,
            "right": sorted(right) if q.several else right,
            "says": {o.key: markdown(tell(o.says, facts)) for o in q.options},
        }
    elif isinstance(q, Plan):
        data |= plan_table(q, facts)
    elif isinstance(q, Explain):
        data |= {
            "points": [
                {"says": _inline(tell(p.says, facts)), "words": list(p.words)} for p in q.points
            ]
        }
    return packed(data)


def packed(data) -> str:
    """Data for a page's own script, as an attribute holds them."""
    return base64.b64encode(json.dumps(data).encode()).decode()


def plan_table(q: Plan, facts) -> dict:
    """Every legal choice of the named fields with the least step that fits [s], null where none
    does: what a page needs to judge a plan."""
    import numpy as np
    from scantling.verdict.assess import assess

    best = assess(value_of(q.design, facts))
    found = best.chosen.found
    columns = [
        np.broadcast_to(getattr(found.plan, name), found.legal).astype(int) for name in q.names
    ]
    keys, at = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    least = np.full(len(keys), np.inf)
    np.minimum.at(least, at.ravel(), np.where(found.fits, found.step_s, np.inf))
    steps = {
        ",".join(map(str, k)): None if np.isinf(s) else round(float(s), 4)
        for k, s in zip(keys.tolist(), least.tolist())
    }
    return {"names": list(q.names), "slower": q.slower, "best": float(best.step_s), "steps": steps}


def mark(v: Verdict | None) -> str:
    """One sign for a verdict, for tables."""
    return "·" if v is None or v.status == OPEN else "✓" if v.status == RIGHT else _SIGN[v.status]
