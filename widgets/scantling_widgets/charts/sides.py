"""Pictures of a post-training design: one step with rollout and trainer as two bars, what each
holds in memory, and how the step moves with the lengths of responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from scantling.base.quantities.quantity import show
from scantling.base.show import seconds, share, size
from scantling_posttrain.posttrained import ENGINE, TRAINER, Posttrained
from scantling_posttrain.texts import ENGINE_MEMORY, PARTS, PHASES, TRAINER_MEMORY

from .altair_loader import alt
from .figure import Data, Facts, Figure, Row, laid, quantity_axis, saying
from .palette import ACCENT, OVER, SECOND, Swatch, ink_on
from .theme import layered, over, tip

Text = Callable[[float], str]  # an amount as it is shown
_ROW = 46  # height of a bar with its room [px]
_TELLING = 0.14  # of the picture's width, from which a bar has room for its amount


def _swatches(names: Mapping[str, str], *colours: str) -> dict[str, Swatch]:
    return {
        key: Swatch(name, colour)
        for (key, name), colour in zip(names.items(), colours, strict=True)
    }


PHASE = _swatches(PHASES, "#d55e00", "#56b4e9", "#0072b2", "#009e73", "#8a8f98")
PART = _swatches(
    PARTS,
    *("#0072b2", "#3d94cc", "#7fbde3", "#a9c9e0", "#5a6fb8", "#cc79a7"),
    *("#9b72aa", "#e69f00", "#009e73", "#66c2a4", "#d55e00"),
)
HELD = _swatches(TRAINER_MEMORY, "#0072b2", "#009e73", "#e69f00", "#8a8f98")
CACHED = _swatches(ENGINE_MEMORY, "#0072b2", "#d55e00")


# ---------------------------------------------------------------- one step
def _step_rows(figures: Facts, tuned: Posttrained | None = None) -> Data:
    if tuned is None or tuned.step_s is None:
        return {}
    spans = _phase_spans(tuned) or _part_spans(tuned)
    end = tuned.step_s_high or tuned.step_s
    sides = list(dict.fromkeys(span["row"] for span in spans))
    return {
        "spans": spans,
        "texts": [_amount(span, seconds) for span in spans if _room(span, end)],
        "rules": [{"at": tuned.step_s, "says": f"one step: {seconds(tuned.step_s)}"}],
        "band": [
            {
                "row": sides[-1],
                "low": tuned.step_s_low,
                "high": tuned.step_s_high,
                "says": f"80 % of steps between {seconds(tuned.step_s_low)} and "
                f"{seconds(tuned.step_s_high)}",
            }
        ],
    }


def _phase_spans(tuned: Posttrained) -> list[Row]:
    """The phases of a policy step, side by side."""
    spans = sorted(tuned.spans, key=lambda span: span.side != ENGINE)
    return [
        _bar(span.side, PHASE[span.phase], span.start_s, span.end_s, seconds)
        for span in spans
        if span.end_s > span.start_s
    ]


def _part_spans(tuned: Posttrained) -> list[Row]:
    """The parts of a fine-tuning step, the interval's middle as their sum."""
    return [
        _bar(TRAINER, Swatch(part.part, part.colour), part.start, part.end, seconds)
        for part in laid(PART, tuned.step_parts_s)
        if part.size > 0
    ]


def _bar(row: str, swatch: Swatch, start: float, end: float, text: Text) -> Row:
    return {
        "row": row,
        "part": swatch.name,
        "colour": swatch.colour,
        "start": start,
        "end": end,
        "says": f"{row}, {swatch.name.lower()}: {text(end - start)}",
    }


def _room(bar: Row, longest: float) -> bool:
    return bool(bar["end"] - bar["start"] > _TELLING * longest)


def _amount(bar: Row, text: Text) -> Row:
    """The amount of a bar, in its middle."""
    return {
        "row": bar["row"],
        "at": (bar["start"] + bar["end"]) / 2,
        "text": text(bar["end"] - bar["start"]),
        "ink": ink_on(bar["colour"]),
    }


def _draw_bars(key: str, swatches: Mapping[str, Swatch], legend: bool) -> alt.LayerChart:
    """Bars laid end to end, a row a side, a rule across them and the interval below the last."""
    title, ticks = quantity_axis(key)

    def row(place: float = 0.5) -> alt.Y:
        axis = alt.Axis(domain=False, labelFontSize=12, ticks=False)
        return alt.Y("row:N", title=None, axis=axis, sort=None, bandPosition=place)

    x = alt.X(
        "start:Q",
        title=title,
        axis=alt.Axis(labelExpr=ticks, tickCount=alt.ExprRef("width < 300 ? 3 : 6")),
        scale=alt.Scale(domainMin=0, nice=False),
    )
    colour = alt.Color(
        "part:N",
        legend=alt.Legend(title=None, columns=5, orient="bottom") if legend else None,
        scale=alt.Scale(
            domain=[one.name for one in swatches.values()],
            range=[one.colour for one in swatches.values()],
        ),
        sort=None,
    )
    bars = over("spans").mark_bar(stroke=None).encode(x, alt.X2("end"), row(), colour, tip())
    texts = (
        over("texts")
        .mark_text(fontSize=11)
        .encode(
            alt.X("at:Q"), row(), alt.Text("text:N"), alt.Color("ink:N", legend=None, scale=None)
        )
    )
    rule = over("rules").mark_rule(strokeWidth=2, color=OVER).encode(alt.X("at:Q"), tip())
    band = (
        over("band")
        .mark_rule(strokeWidth=2, style="ink", yOffset=3)
        .encode(alt.X("low:Q"), alt.X2("high"), row(1.0), tip())
    )
    layers = alt.LayerChart(layer=[bars, texts, rule, band])
    shown: alt.LayerChart = layers.resolve_scale(color="independent")
    return shown


sides = Figure(
    name="posttrain-step",
    title="One step in time, a bar a side",
    draw=partial(_draw_bars, "step_s", PHASE | PART),
    rows=_step_rows,
    words=saying(_step_rows, "One step in time:", ["rules", "band", "spans"]),
    height=2 * _ROW,
    empty="Nothing to time: no plan fits.",
)


# ---------------------------------------------------------------- memory
def _memory_rows(figures: Facts, tuned: Posttrained | None = None) -> Data:
    if tuned is None or tuned.plan is None:
        return {}
    held = laid(HELD, tuned.memory_bytes)
    bars = [_bar(TRAINER, Swatch(p.part, p.colour), p.start, p.end, size) for p in held if p.size]
    if tuned.rollout is not None:
        memory = tuned.rollout["memory_bytes"]
        amounts = {"weights": memory["weights"], "keys_values": memory["keys_values"]}
        bars = [
            _bar(ENGINE, Swatch(p.part, p.colour), p.start, p.end, size)
            for p in laid(CACHED, amounts)
        ] + bars
    capacity = tuned.memory_bytes["capacity"]
    return {
        "spans": bars,
        "texts": [_amount(bar, size) for bar in bars if _room(bar, capacity)],
        "rules": [{"at": capacity, "says": f"{size(capacity)} that a program can have"}],
        "band": [],
    }


side_memory = Figure(
    name="posttrain-memory",
    title="Memory of a device, a bar a side",
    draw=partial(_draw_bars, "memory_bytes.total", HELD | CACHED),
    rows=_memory_rows,
    words=saying(_memory_rows, "Memory of a device:", ["rules", "spans"]),
    height=2 * _ROW,
    empty="No plan can hold this model on this machine.",
)


# ---------------------------------------------------------------- lengths
def _length_rows(figures: Facts, tuned: Posttrained | None = None) -> Data:
    if tuned is None or tuned.step_s is None or not tuned.sensitivity:
        return {}
    return {
        "bars": [
            {
                "what": one.change,
                "from": tuned.step_s,
                "to": one.step_s,
                "side": "longer" if one.share > 0 else "shorter",
                "says": f"{one.change}: {show('step_s', one.step_s)}, {share(abs(one.share))} "
                f"{'longer' if one.share > 0 else 'shorter'}",
            }
            for one in tuned.sensitivity
        ],
        "now": [{"to": tuned.step_s}],
    }


def _draw_lengths(legend: bool) -> alt.LayerChart:
    title, ticks = quantity_axis("step_s")
    side = alt.Color(
        "side:N",
        legend=alt.Legend(title=None, orient="bottom") if legend else None,
        scale=alt.Scale(domain=["shorter", "longer"], range=[ACCENT, SECOND]),
    )
    bars = over("bars").mark_bar(stroke=None)
    return layered(
        bars.encode(
            alt.X(
                "from:Q",
                title=title,
                axis=alt.Axis(labelExpr=ticks, tickCount=alt.ExprRef("width < 300 ? 3 : 6")),
                scale=alt.Scale(zero=False, nice=True),
            ),
            alt.X2("to"),
            alt.Y(
                "what:N",
                title=None,
                axis=alt.Axis(domain=False, labelLimit=230, ticks=False),
                sort=None,
            ),
            side,
            tip(),
        ),
        over("now").mark_rule(strokeWidth=1.5, style="ink").encode(alt.X("to:Q")),
    )


lengths = Figure(
    name="posttrain-lengths",
    title="The step under other lengths, the plan kept",
    draw=_draw_lengths,
    rows=_length_rows,
    words=saying(_length_rows, "The step under other lengths:", ["bars"]),
    height=110,
)
