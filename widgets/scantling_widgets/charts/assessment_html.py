"""What a notebook shows of an assessment: its figures and two bars, memory and step, as plain HTML,
so that `interact` draws anew at every stop of a slider."""

from collections.abc import Callable, Mapping
from html import escape

from scantling.api import Assessment
from scantling.base.show import percent, seconds, size
from scantling.verdict.verdicts import VERDICTS

from .figure import laid
from .palette import MEMORY, STEP, Swatch, ink_on

_TONES = {"good": "#1b7f3b", "warn": "#9a5b00", "bad": "#b3261e"}
_ROOM = 0.085  # share of a bar that a name needs
_BAR = "display:flex;height:24px;max-width:640px;margin:1px 0 6px;border-radius:3px;overflow:hidden"
_PART = "flex:none;overflow:hidden;white-space:nowrap;padding-left:4px;box-sizing:border-box"
_EDGE = "var(--jp-border-color1,#bbb)"
_FRAME = "font:13px/1.5 var(--jp-ui-font-family,system-ui,sans-serif)"


def assessment_html(assessment: Assessment) -> str:
    """An assessment as HTML: name and verdict, the leading figures, where the memory of the fullest
    device and the time of a step go; every part is named at the pointer."""
    verdict = VERDICTS[assessment.verdict]
    tone = _TONES[verdict.tone]
    head = (
        f"<b>{escape(assessment.heading)}</b> "
        f"<span style='color:#fff;background:{tone};border-radius:9px;padding:1px 9px'>"
        f"{escape(verdict.name)}</span>"
    )
    figures = [line for line in assessment.cells() if line[0] not in ("Verdict", "Plan")]
    lines = [*figures, *(line for line in assessment.cells() if line[0] == "Plan")]
    rows = "".join(
        f"<tr><td style='text-align:left'>{escape(label)}</td>"
        f"<td style='text-align:left'>{escape(text)}</td></tr>"
        for label, text in lines
    )
    bars = _bars(assessment) if assessment.phases else _refusal(assessment)
    table = f"<table style='font-size:inherit'>{rows}</table>"
    return f"<div style='{_FRAME}'><p>{head}</p>{bars}{table}</div>"


def _refusal(assessment: Assessment) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in assessment.refusal)


def _bars(assessment: Assessment) -> str:
    memory, step_s = assessment.memory_bytes, assessment.step_s
    total, capacity = memory["total"], memory["capacity"]
    memory_words = f"Memory of the fullest device: {size(total)} of {size(capacity)}"
    parts = {part: memory[part] for part in MEMORY}
    times = {part: assessment.step_breakdown_s[part] for part in STEP}
    return "".join(
        (
            f"<div>{escape(memory_words)}</div>",
            _bar(MEMORY, parts, max(total, capacity), size),
            f"<div>One step: {escape(seconds(step_s))}</div>",
            _bar(STEP, times, step_s, lambda s: f"{seconds(s)}, {percent(s / step_s)}"),
        )
    )


def _bar(
    parts: Mapping[str, Swatch],
    amounts: Mapping[str, float],
    whole: float,
    text: Callable[[float], str],
) -> str:
    """Parts laid end to end on a bar as long as `whole`; a name stands on a part that has room."""
    out = []
    for part in laid(parts, amounts):
        if part.size <= 0:
            continue
        share = part.size / whole
        name = escape(part.part) if share > _ROOM else ""
        words = escape(f"{part.part}: {text(part.size)}", quote=True)
        colours = f"color:{ink_on(part.colour)};background:{part.colour}"
        out.append(
            f"<span title='{words}' style='{_PART};width:{share:.4%};{colours}'>{name}</span>"
        )
    return f"<div style='{_BAR};border:1px solid {_EDGE}'>{''.join(out)}</div>"
