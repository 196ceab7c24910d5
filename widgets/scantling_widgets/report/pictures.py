"""A figure as a static picture: SVG with a text alternative, whose inks follow the page from light to dark to paper."""
from __future__ import annotations

import functools
import re
import zlib
from dataclasses import dataclass

from markupsafe import escape

WIDTH = 660

# inks of the picture: what the SVG is drawn with, and the page's variable that takes its place
INKS = {"#1c2430": "--ink", "#56616f": "--soft", "#d9dee5": "--line", "#fefefe": "--paper"}
_INK, _SOFT, _LINE, _PAPER = INKS
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"

THEME = {
    "background": "transparent",
    "font": "DejaVu Sans",
    "view": {"stroke": None},
    "axis": {"labelColor": _INK, "titleColor": _SOFT, "gridColor": _LINE, "domainColor": _SOFT, "tickColor": _SOFT,
             "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": 500, "labelLimit": 260},
    "legend": {"labelColor": _INK, "titleColor": _SOFT, "labelFontSize": 11, "titleFontSize": 11, "labelLimit": 260},
    "title": {"color": _INK, "fontSize": 13, "fontWeight": 600, "anchor": "start"},
    "text": {"color": _INK},
    "rule": {"color": _SOFT},
    "style": {"ink": {"color": _INK, "stroke": _INK}, "ink-text": {"fill": _INK, "stroke": None},
              "soft": {"stroke": _SOFT}, "soft-text": {"fill": _SOFT, "stroke": None}},
}


@dataclass(frozen=True)
class Picture:
    """What a notebook cell shows: an SVG, and its words for readers and programs that cannot draw it."""

    svg: str
    words: str
    caption: str

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.figure(), "text/plain": self.words}

    def figure(self) -> str:
        return f'<figure class="picture">{self.svg}<figcaption>{escape(self.caption)}</figcaption></figure>'


def draw(figure, assessment, width: int = WIDTH, **more) -> Picture | None:
    """A `Figure` of an assessment as a picture; None where it has nothing to show."""
    from ..figures import facts
    given = facts(assessment)
    data = figure.data(given, **more)
    if not any(len(column) for frame in data.values() for column in frame.values()):
        return None
    words = figure.words(given, **more)
    return Picture(svg(figure(assessment, width=width, **more).to_dict(), words), words, figure.title)


def svg(spec: dict, words: str) -> str:
    """A Vega-Lite specification as an accessible SVG without fixed inks, fonts or links."""
    import vl_convert

    from ..livechart import vega_version
    spec = {**spec, "config": {**THEME, **{k: v for k, v in spec.get("config", {}).items() if k not in ("view", "axis")}}}
    text = vl_convert.vegalite_to_svg(spec, vl_version=vega_version())
    return accessible(text, words)


def accessible(text: str, words: str) -> str:
    """Name the picture for assistive technology, give its ids a name of their own, and let the page choose inks and font."""
    text = re.sub(r"<\?xml[^>]*\?>\s*|<!DOCTYPE[^>]*>\s*", "", text)
    n = zlib.crc32(text.encode())             # not a running number: the same picture is the same text wherever it stands
    for ident in sorted(set(re.findall(r'\bid="([^"]+)"', text))):
        text = text.replace(f'id="{ident}"', f'id="p{n}-{ident}"').replace(f"url(#{ident})", f"url(#p{n}-{ident})").replace(f'href="#{ident}"', f'href="#p{n}-{ident}"')
    text = re.sub(r'\s(role|aria-[a-z]+)="[^"]*"', "", text)      # Vega names every mark: one sentence says more
    text = re.sub(r'\sfont-family="[^"]*"', "", text)
    head, body = text.split(">", 1)
    return f'{head} role="img" aria-label="{escape(words)}"><title>{escape(words)}</title>{body}'


@functools.cache
def ink_rules() -> str:
    """The style sheet that puts the page's variables in place of the inks."""
    rules = [f".picture svg text{{font-family:{FONT}}}"]
    for ink, variable in INKS.items():
        for part in ("fill", "stroke"):
            rules.append(f'.picture svg [{part}="{ink}"]{{{part}:var({variable})}}')
    return "\n".join(rules)
