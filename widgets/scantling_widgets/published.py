"""Published figures as pictures and tables for notebooks: what was printed beside what the kit
computes, the error under both."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

import numpy as np
from scantling.base.show import number, shown
from scantling.evidence.figures import figures as published_figures
from scantling.evidence.figures import runs as published_figures_runs

from . import series
from .grammar import alt
from .report.pictures import Picture
from .series import HUES

WIDTH = 560
LONG = 32  # letters from which on a cell is wrapped
BESIDE = 660  # of a picture with names beside it, both
INK = "#1c2430"
_CROSS = "M-1,-1L1,1M-1,1L1,-1"
_TICKS = (
    "datum.value >= 1e15 ? replace(format(datum.value, '~e'), '+', '') : datum.value >= "
    "1e12 ? format(datum.value / 1e12, '~r') + 'T' : "
    "datum.value >= 1e4 ? replace(format(datum.value, '~s'), 'G', 'B') : format(datum.value, '~r')"
)


@dataclass(frozen=True, repr=False)
class Html:
    """HTML that a notebook shows, with plain words for programs that cannot."""

    html: str
    words: str

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.words


def value(x, unit: str = "", digits: int | None = None) -> str:
    """A published or computed value as text: shares in per cent, large counts in K, M, B, T, else
    four digits; `digits` after the point where they are given."""
    if isinstance(x, str):
        return x
    if unit == "1":
        return f"{100 * x:.4g} %" if digits is None else f"{100 * x:.{digits}f} %"
    if abs(x) >= 1e17:
        return f"{x:.3g}".replace("e+", "e")
    for size, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if abs(x) >= size:
            return f"{x / size:.4g}{letter}"
    if digits is not None and abs(x) < 1e4:
        return f"{x:,.{digits}f}"
    return f"{x:,.0f}" if float(x).is_integer() or abs(x) >= 1e3 else f"{x:.4g}"


def error(x: float, absolute: bool, unit: str = "1") -> str:
    """An error as text: points where it is a difference of shares (in the unit, of anything else),
    per cent where it is relative."""
    shown_ = (
        f"{100 * x:+.1f} %"
        if not absolute
        else f"{100 * x:+.2f} pt"
        if unit == "1"
        else f"{x:+.0f}"
    )
    return (shown_ if re.search(r"[1-9]", shown_) else shown_[1:]).replace("-", "−")


def picture(id: str, only: str = "") -> Picture:
    """A recreated figure: dots are printed values, lines and crosses ours, the error below. `only`:
    series that begin so."""
    r = published_figures.recreate(id)
    f = r.figure
    points = [(p, e) for p, e in zip(r.points, r.errors) if p.series.startswith(only)]
    named = any(isinstance(p.x, str) for p, _ in points)
    names = list(dict.fromkeys([p.series for p, _ in points]))
    shown = [
        {
            "series": p.series,
            "x": p.x,
            "published": p.published,
            "ours": p.ours,
            "error": e,
            "counted": p.counted,
        }
        for p, e in points
    ]
    curves = [
        {"series": s, "x": float(a), "y": float(b)}
        for s, (xs, ys) in r.curves.items()
        if s.startswith(only)
        for a, b in zip(xs, ys)
    ]
    names += [s for s in dict.fromkeys(line["series"] for line in curves) if s not in names]
    drawn = {s: c for s, c in r.curves.items() if s.startswith(only)}
    beside = len(names) > 1 and set(drawn) == set(names)
    width = BESIDE - series.room(names) if beside else WIDTH
    legend = (
        None
        if beside
        else alt.Legend(
            orient="bottom", columns=2 if max(map(len, names)) > 26 else 4, labelLimit=330
        )
    )
    told, dashed = (
        series.marked("series", names, legend=legend),
        series.marked("series", names, legend=legend, dashed=True),
    )
    x = _axis_x(f, named, points)
    y = alt.Y(
        "published:Q",
        title=_unit(f),
        scale=alt.Scale(type="log", nice=False, padding=10)
        if "y" in f.log
        else alt.Scale(zero=False, nice=True),
        axis=alt.Axis(format="~%", tickCount=5)
        if _share(f)
        else alt.Axis(tickCount=5, labelExpr=_TICKS),
    )
    base = alt.Chart(alt.Data(values=shown))
    layers = []
    if curves:
        layers.append(
            alt.Chart(alt.Data(values=curves))
            .mark_line(strokeWidth=1.6, clip=True)
            .encode(x=x, y=alt.Y("y:Q"), **dashed)
        )
        if beside:
            layers += series.ends(
                drawn, x, y, width, 230, dict(zip(names, HUES)), "y" in f.log, glyphs=True
            )
    layers.append(base.mark_point(filled=True, size=60, opacity=0.95).encode(x=x, y=y, **told))
    layers.append(
        base.mark_point(shape=_CROSS, size=40, strokeWidth=1.6, filled=False, color=INK).encode(
            x=x, y=alt.Y("ours:Q")
        )
    )
    zero = (
        alt.Chart(alt.Data(values=[{"y": 0}]))
        .mark_rule(strokeWidth=1, style="soft")
        .encode(y="y:Q")
    )
    below = base.mark_point(filled=True, size=44, opacity=0.95).encode(
        x=_axis_x(f, named, points, title=True),
        y=alt.Y("error:Q", title="error", axis=alt.Axis(format="+~%", tickCount=4)),
        **told,
    )
    top = alt.layer(*layers).properties(width=width, height=230)
    chart = alt.vconcat(
        top, alt.layer(zero, below).properties(width=width, height=74), spacing=12
    ).resolve_scale(color="shared", shape="shared", x="shared")
    words = f"{f.title}. {said(r)}"
    return Picture(
        chart.to_dict(),
        words,
        (
            f"{f.title}. Filled: printed. {'Lines and c' if curves else 'C'}rosses: ours. "
            f"Below: ours {'− printed' if f.absolute else '/ printed − 1'}."
        ),
    )


def _share(f) -> bool:
    return f.unit == "1" and f.quantity != "tokens"


def _axis_x(f, named: bool, points, title: bool = False):
    names = list(dict.fromkeys(p.x for p, _ in points))
    if named:
        slant = -35 if sum(map(len, names)) > 60 else 0
        axis = (
            alt.Axis(labelAngle=slant, domain=True)
            if title
            else alt.Axis(labels=False, ticks=False)
        )
        return alt.X("x:N", title=f.x if title else None, sort=names, axis=axis)
    axis = alt.Axis(
        labelExpr=_TICKS if f.x != "bytes" else "format(datum.value, '~s') + 'B'",
        grid=False,
        labelOverlap="greedy",
        labelSeparation=12,
        tickCount=7,
        labels=title,
        ticks=title,
    )
    if (
        "x" in f.log
        and 3 <= len(names) <= 12
        and all(float(n).is_integer() and n < 1e6 for n in names)
    ):
        axis = alt.Axis(
            labelExpr="format(datum.value, ',~r')",
            grid=False,
            labelOverlap="greedy",
            values=sorted(names),
            labels=title,
            ticks=title,
        )
    return alt.X(
        "x:Q",
        title=f.x if title else None,
        axis=axis,
        scale=alt.Scale(
            type="log" if "x" in f.log else "linear", nice=False, zero=False, padding=14
        ),
    )


def _unit(f) -> str:
    return f.quantity if f.unit in ("1", f.quantity) else f"{f.quantity}, {f.unit}"


def said(r) -> str:
    """Bounds and errors of a recreation in a sentence."""
    kind, unit = r.figure.absolute, r.figure.unit
    held = sum(p.counted for p in r.points)
    return (
        f"{held} printed value{'s' * (held != 1)}: median error "
        f"{error(r.median_error, kind, unit).lstrip('+')}, largest "
        f"{error(r.worst_error, kind, unit).lstrip('+')} "
        f"(allowed {error(r.figure.median, kind, unit).lstrip('+')} and "
        f"{error(r.figure.worst, kind, unit).lstrip('+')})."
    )


def table(id: str, only: str = "", most: int = 14) -> Html:
    """Printed values, ours and the error of each; more than `most` fold away. Above the verdict,
    below what misses and the sources."""
    r = published_figures.recreate(id)
    f = r.figure
    unit = f.unit if _share(f) else ""
    several, places = len({p.series for p in r.points}) > 1, len({p.locator for p in r.points}) > 1
    tell_of = [(p, e) for p, e in zip(r.points, r.errors) if p.series.startswith(only)]
    names = [
        *(["series"] if several else []),
        f.x,
        f"printed{', ' + f.unit if f.unit not in ('1', f.quantity) else ''}",
        "ours",
        "error",
        *(["where"] if places else []),
    ]
    digits = _digits([p.published for p, _ in tell_of], unit)
    words = {"series", "where"} | (
        {f.x} if any(isinstance(p.x, str) for p, _ in tell_of) else set()
    )
    head = "".join(f"<th{cell_style(n in words)}>{escape(n)}</th>" for n in names)
    rows = []
    for p, e in tell_of:
        note = "" if p.counted else f" <span title='{escape(p.why)}'>shown only</span>"
        cells = [
            *([escape(p.series)] if several else []),
            escape(value(p.x)),
            value(p.published, unit, digits),
            value(p.ours, unit, digits if digits is None or unit != "1" else max(1, digits)),
            error(e, f.absolute, f.unit) + note,
            *([escape(p.locator)] if places else []),
        ]
        rows.append(
            "<tr>"
            + "".join(
                f"<td{cell_style(n in words, n != 'where' and len(c) < LONG)}>{c}</td>"
                for n, c in zip(names, cells)
            )
            + "</tr>"
        )
    body = (
        f"<table "
        f"class='scl-table'><thead><tr>{head}</tr></thead><tbody>{''.join(rows[:most])}</tbody></table>"
    )
    if len(rows) > most:
        body += (
            f"<details><summary>{len(rows) - most} more</summary><table "
            f"class='scl-table'><thead><tr>{head}</tr></thead><tbody>{''.join(rows[most:])}</tbody></table></details>"
        )
    fitted = (
        (
            f" The constants were fitted on these "
            f"{'runs among others; the validation page shows them with their source left out' if f in published_figures_runs.FIGURES else 'series among others'}."
        )
        if f.fitted
        else ""
    )
    misses = f"<p>Where it misses: {escape(f.misses)}.</p>" if f.misses else ""
    sources = "; ".join(
        f"<a href='{escape(url)}'>{escape(title)}</a>{', ' + escape(at) if len(at) < 120 else ''}"
        if url.startswith("http")
        else escape(title)
        for title, at, url in r.sources[:5]
    )
    return Html(
        (
            f"<div class='scl'><p><b>{escape(said(r))}</b>{fitted}</p>{body}{misses}<p>From: "
            f"{sources}.</p></div>"
        ),
        said(r),
    )


def _digits(values, unit: str) -> int | None:
    """Digits after the point that the printed values have, at most two; None where they span too
    far for one number of digits."""
    sizes = [abs(v) * (100 if unit == "1" else 1) for v in values if v]
    if not sizes or max(sizes) > 1e3 * min(sizes) or max(sizes) >= 1e3:
        return None
    return min(2, max(len(f"{s:.6g}".partition(".")[2]) for s in sizes))


def cell_style(text: bool, whole: bool = False) -> str:
    """Look of a cell that needs no style sheet: text left and wrapped, numbers right and whole."""
    return (' class="t"' if text else "") + (
        f" style='padding:.2em .9em .2em "
        f"0;text-align:{'left' if text else 'right'};vertical-align:top{';white-space:nowrap' if whole else ''}'"
    )


def grid(head: tuple, rows) -> Html:
    """A table of texts, every column left, cells wrapped."""
    cells = lambda tag, row: (
        "<tr>"
        + "".join(f"<{tag}{cell_style(True)}>{escape(str(c))}</{tag}>" for c in row)
        + "</tr>"
    )  # noqa: E731
    return Html(
        (
            f'<div class="scl"><table '
            f'class="scl-table">{cells("th", head)}{"".join(cells("td", r) for r in rows)}</table></div>'
        ),
        "; ".join(" ".join(map(str, r)) for r in rows),
    )


def text(words: str) -> Html:
    """A text as it stands, such as a design file."""
    return Html(f"<pre>{escape(words)}</pre>", words)


def short(x) -> str:
    """Any value of a design as a short text."""
    return (
        value(float(x)) if isinstance(x, int | float) and not isinstance(x, bool) else str(x)[:60]
    )


def lines(
    curves: dict,
    *,
    x: str,
    y: str,
    log: str = "",
    share: bool = False,
    marks: dict | None = None,
    title: str = "",
    height: int = 230,
) -> Picture:
    """Computed curves {name: (x, y)} as one picture; `marks` {name: (x, y)} are named points on it.
    x, y: axis titles; share: y in per cent."""
    drawn = {
        s: (np.asarray(a, float)[ok], np.asarray(b, float)[ok])
        for s, (a, b) in ((s, np.broadcast_arrays(*c)) for s, c in curves.items())
        if (ok := np.isfinite(b)).any()
    }
    names, width = list(drawn), WIDTH if len(drawn) < 2 else BESIDE - series.room(drawn)
    rows = [
        {"series": s, "x": float(a), "y": float(b)}
        for s, (xs, ys) in drawn.items()
        for a, b in zip(xs, ys)
    ]
    spots = [
        {"series": s, "x": float(a), "y": float(b)}
        for s, (xs, ys) in (marks or {}).items()
        for a, b in zip(np.atleast_1d(xs), np.atleast_1d(ys))
    ]
    across = alt.X(
        "x:Q",
        title=x,
        scale=alt.Scale(type="log" if "x" in log else "linear", nice=False, zero=False),
        axis=alt.Axis(
            labelExpr=_TICKS, grid=False, tickCount=7, labelOverlap="greedy", labelSeparation=8
        ),
    )
    up = alt.Y(
        "y:Q",
        title=y,
        scale=alt.Scale(type="log" if "y" in log else "linear", zero=False, nice="y" not in log),
        axis=alt.Axis(format="~%", tickCount=5)
        if share
        else alt.Axis(labelExpr=_TICKS, tickCount=5),
    )
    layers = [
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=2.2, clip=True)
        .encode(x=across, y=up, **series.marked("series", names, dashed=True)),
        *series.ends(drawn, across, up, width, height, dict(zip(names, HUES)), "y" in log),
    ]
    if spots:
        base = alt.Chart(alt.Data(values=spots)).encode(x=across, y=up)
        layers += [
            base.mark_circle(size=60, opacity=1, color=INK),
            base.mark_text(
                align="left", baseline="bottom", dx=5, dy=-4, fontSize=11, style="ink-text"
            ).encode(text="series:N"),
        ]
    ends = "; ".join(
        (
            f"{s}: {number(float(ys[0]))} at {number(float(xs[0]))}, {number(float(ys[-1]))} "
            f"at {number(float(xs[-1]))}"
        )
        for s, (xs, ys) in (
            (s, np.broadcast_arrays(*map(np.atleast_1d, c)))
            for s, c in {**curves, **(marks or {})}.items()
        )
    )
    return Picture(
        alt.layer(*layers).properties(width=width, height=height).to_dict(),
        f"{y} against {x}. {ends}.",
        title or f"{y[:1].upper()}{y[1:]} against {x}.",
    )


def bars(
    parts: dict,
    *,
    x: str,
    y: str = "",
    share: bool = False,
    colours: dict | None = None,
    title: str = "",
    height: int = 34,
) -> Picture:
    """Stacked bars {bar: {part: value}}, one row a bar; share: values in per cent."""
    rows, names = [], []
    for bar, amounts in parts.items():
        start = 0.0
        for part, amount in amounts.items():
            if part not in names:
                names.append(part)
            rows.append({"bar": bar, "part": part, "start": start, "end": start + float(amount)})
            start += float(amount)
    range_ = [(colours or {}).get(n, HUES[i % len(HUES)]) for i, n in enumerate(names)]
    chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(stroke=None)
        .encode(
            x=alt.X(
                "start:Q",
                title=x,
                axis=alt.Axis(format="~%", tickCount=6)
                if share
                else alt.Axis(labelExpr=_TICKS, tickCount=6),
                scale=alt.Scale(nice=False),
            ),
            x2="end:Q",
            y=alt.Y(
                "bar:N",
                title=y or None,
                sort=list(parts),
                axis=alt.Axis(ticks=False, domain=False, labelLimit=230),
                scale=alt.Scale(paddingInner=0.3),
            ),
            color=alt.Color(
                "part:N",
                sort=names,
                title=None,
                scale=alt.Scale(domain=names, range=range_),
                legend=alt.Legend(orient="bottom", columns=5, labelLimit=260)
                if len(names) > 1
                else None,
            ),
        )
    )
    totals = "; ".join(
        f"{bar}: {number(sum(map(float, amounts.values())))}" for bar, amounts in parts.items()
    )
    return Picture(
        chart.properties(width=WIDTH, height=alt.Step(height)).to_dict(),
        f"{x}. {totals}.",
        title or f"{x[:1].upper()}{x[1:]}.",
    )


def verdict(result) -> Html:
    """An assessment in three lines, whichever way it went: the verdict and its numbers, the plan,
    and what binds."""
    said_ = f"**{result.verdict.replace('-', ' ')}**"
    if result.phases:
        money = (result.days is not None) * (
            f": {shown(result.days, 'days')} and "
            f"{shown(result.cost_usd, 'usd') if result.cost_usd else 'no price'}"
        ) or ", without tokens no days"
        said_ += (
            (
                f"{money} on {result.devices_used:,} devices, MFU "
                f"{shown(result.mfu, 'share')} (80 % band {shown(result.mfu_low, 'share')} "
                f"to {shown(result.mfu_high, 'share')}). "
            )
            + "The plan: "
            + " · ".join(
                f"{name} {result.plan[name]}" for name in ("tp", "pp", "dp", "micro_batch")
            )
            + "."
        )
    return say(
        "{head}\n\n{lines}", head=said_, lines="\n".join(f"- {line}" for line in result.limits[:3])
    )


def say(text: str, **facts) -> Html:
    """A sentence with computed numbers in it: `{name:share}` in the manners of the table of
    quantities, or any format of Python's."""
    import mistune
    from scantling_learn.tell import tell

    said_ = tell(text, None, **facts)
    return Html(mistune.create_markdown(plugins=["table"])(said_), said_)
