"""Plain pictures for walkthroughs: lines and bars over rows that the models computed, with measured
points on top."""

from __future__ import annotations

from . import series
from .grammar import alt
from .palette import ACCENT, MEMORY, SECOND, STEP
from .report.pictures import WIDTH, Picture


def _hues(names) -> list[str]:
    """The fixed colours of parts of memory or of a step, else the set in its order."""
    for family in (MEMORY, STEP):
        fixed = dict(family.values())
        if names and set(names) <= set(fixed):
            return [fixed[n] for n in names]
    return list(series.HUES[: len(names)])


def _scale(log: bool, zero: bool) -> alt.Scale:
    return alt.Scale(type="log", nice=False) if log else alt.Scale(zero=zero, nice=True)


def lines(
    rows,
    x: str,
    y: str,
    words: str,
    *,
    by: str | None = None,
    measured=(),
    x_title: str = "",
    y_title: str = "",
    x_log: bool = False,
    y_log: bool = False,
    y_format: str = "",
    x_format: str = "",
    zero: bool = True,
    height: int = 220,
    rule: float | None = None,
    ticks=None,
    caption: str = "",
) -> Picture:
    """Lines of `y` over `x`, one for each value of `by`; `measured` rows are drawn as hollow
    points; `rule` is a level across."""
    more = {"values": list(ticks)} if ticks is not None else {}
    axis_x = alt.X(
        f"{x}:Q",
        title=x_title,
        scale=_scale(x_log, False),
        axis=alt.Axis(
            grid=False, labelOverlap=True, **({"format": x_format} if x_format else {}), **more
        ),
    )
    axis_y = alt.Y(
        f"{y}:Q",
        title=y_title,
        scale=_scale(y_log, zero),
        axis=alt.Axis(tickCount=5, **({"format": y_format} if y_format else {})),
    )
    names = list(dict.fromkeys(r[by] for r in [*rows, *measured])) if by else []
    hues = _hues(names)
    curves = {
        name: ([r[x] for r in rows if r[by] == name], [r[y] for r in rows if r[by] == name])
        for name in names
        if any(r[by] == name for r in rows)
    }
    beside = len(names) > 1 and len(curves) == len(names)
    width = WIDTH - 70 - (series.room(names) if beside else 0)
    legend = None if beside else alt.Legend(orient="top", columns=3)
    told, dashed = (
        (series.marked(by, names, hues, legend, dashed) for dashed in (False, True))
        if names
        else ({"color": alt.value(ACCENT)},) * 2
    )
    base = alt.Chart(alt.Data(values=list(rows)))
    layers = [
        base.mark_line(strokeWidth=2).encode(x=axis_x, y=axis_y, **dashed),
        base.mark_point(filled=True, size=40, opacity=1).encode(x=axis_x, y=axis_y, **told),
    ]
    if beside:
        layers += series.ends(
            curves, axis_x, axis_y, width, height, dict(zip(names, hues)), y_log, glyphs=True
        )
    if measured:
        layers.append(
            alt.Chart(alt.Data(values=list(measured)))
            .mark_point(size=110, strokeWidth=2.2, opacity=1)
            .encode(x=axis_x, y=axis_y, **told)
        )
    if rule is not None:
        layers.append(
            alt.Chart(alt.Data(values=[{y: rule}]))
            .mark_rule(strokeDash=[5, 4], strokeWidth=1.4, style="soft")
            .encode(y=axis_y)
        )
    return Picture(
        alt.layer(*layers).properties(width=width, height=height).to_dict(), words, caption or words
    )


def bars(
    rows,
    name: str,
    value: str,
    words: str,
    *,
    by: str | None = None,
    title: str = "",
    log: bool = False,
    format: str = "",
    rule: float | None = None,
    label: str | None = None,
    caption: str = "",
    order=None,
) -> Picture:
    """Horizontal bars of `value`, a row for each `name`, stacked or coloured by `by`; `label` is a
    column of texts at their ends."""
    names = list(dict.fromkeys(r[by] for r in rows)) if by else []
    y = alt.Y(
        f"{name}:N",
        title=None,
        sort=None,
        axis=alt.Axis(ticks=False, domain=False, labelLimit=260),
        scale=alt.Scale(paddingInner=0.25),
    )
    x = alt.X(
        f"{value}:Q",
        title=title,
        scale=alt.Scale(type="log", nice=True) if log else alt.Scale(zero=True),
        axis=alt.Axis(tickCount=6, **({"format": format} if format else {})),
    )
    hue = (
        alt.Color(
            f"{by}:N",
            title=None,
            sort=None,
            scale=alt.Scale(domain=names, range=_hues(names)),
            legend=alt.Legend(orient="top", columns=4),
        )
        if by
        else alt.value(ACCENT)
    )
    base = alt.Chart(alt.Data(values=list(rows)))
    layers = [base.mark_bar(stroke=None).encode(x=x, y=y, color=hue)]
    if label:
        layers.append(
            base.mark_text(align="left", dx=5, fontSize=11, style="ink-text").encode(
                x=x, y=y, text=f"{label}:N"
            )
        )
    if rule is not None:
        layers.append(
            alt.Chart(alt.Data(values=[{value: rule}]))
            .mark_rule(strokeDash=[5, 4], strokeWidth=2, color=SECOND)
            .encode(x=x)
        )
    return Picture(
        alt.layer(*layers).properties(width=WIDTH - 240, height=alt.Step(24)).to_dict(),
        words,
        caption or words,
    )
