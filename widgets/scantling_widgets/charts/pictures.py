"""A figure as a static picture: SVG with a text alternative, whose inks follow the page from light
to dark to paper."""

import functools
import re
import zlib
from base64 import b64encode
from dataclasses import dataclass
from json import dumps

from markupsafe import Markup, escape

from ..resources import in_a_page
from .chart import spec
from .livechart import vega_version

WIDTH = 700
PICTURE = "application/vnd.scantling.picture+json"  # what a cell hands to the page
# the last cell of the notebook hands the assessment over under this type
RESULT = "application/vnd.scantling.assessment+json"

# inks of the picture: what the SVG is drawn with, and the page's variable that takes its place
INKS = {"#1c2430": "--ink", "#56616f": "--soft", "#d9dee5": "--line", "#fefefe": "--paper"}
_INK, _SOFT, _LINE, _ = INKS
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"

THEME = spec("theme", ink=_INK, soft=_SOFT, line=_LINE)


@dataclass(frozen=True)
class Picture:
    """A themed chart, and its words for readers and programs that cannot draw it."""

    spec: dict
    words: str
    caption: str

    def _repr_mimebundle_(self, include=None, exclude=None):
        """A PNG on white for the notebook, which reads in any theme and without trust; the page
        takes the SVG."""
        return {
            PICTURE: {"figure": self.figure()},
            "image/png": b64encode(self.png()).decode(),
            "text/plain": self.words,
        }

    def figure(self) -> str:
        if not in_a_page():
            return framed(Markup(svg(self.spec, self.words)), self.caption)
        # no program draws here: the page itself does, from what stands in place of the picture
        mark = Markup('<svg data-spec="{}" aria-label="{}"></svg>')
        return framed(mark.format(dumps(themed(self.spec)), self.words), self.caption)

    def png(self) -> bytes:
        import vl_convert

        return vl_convert.vegalite_to_png(
            themed(self.spec, background="#ffffff", padding=8),
            vl_version=vega_version(),
            scale=1.25,
        )


def framed(picture, caption: str = "") -> str:
    """A picture as a figure of the page."""
    below = Markup("<figcaption>{}</figcaption>").format(caption) if caption else ""
    return str(Markup('<figure class="picture">{}{}</figure>').format(picture, below))


def draw(figure, assessment, width: int = WIDTH, **more) -> Picture | None:
    """A `Figure` of an assessment as a picture; None where it has nothing to show."""
    spec = figure.static(assessment, width=width, **more)
    if not any(spec["datasets"].values()):
        return None
    return Picture(_only_present(spec), spec["description"], figure.title)


def _only_present(spec: dict) -> dict:
    """The specification with legends that name the parts that are there, and no others."""
    rows = (row for rows in spec["datasets"].values() for row in rows if "part" in row)
    there = {row["part"] for row in rows if row["end"] > row["start"]}
    for mapping in _mappings({k: v for k, v in spec.items() if k != "datasets"}):
        domain = (mapping.get("scale") or {}).get("domain")
        if there and domain and mapping.get("legend"):
            mapping["legend"] |= {
                "values": [name for name in domain if name in there],
                "columns": 5,
            }
    return spec


def _mappings(node):
    """Every mapping in a specification."""
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    for inner in node if isinstance(node, list) else ():
        yield from _mappings(inner)


def svg(chart: dict, words: str) -> str:
    """A Vega-Lite specification as an accessible SVG without fixed inks, fonts or links."""
    import vl_convert

    return accessible(vl_convert.vegalite_to_svg(themed(chart), vl_version=vega_version()), words)


def themed(spec: dict, **more) -> dict:
    """The specification in the inks of the report."""
    return {
        **spec,
        "config": {
            **THEME,
            **{k: v for k, v in spec.get("config", {}).items() if k not in ("view", "axis")},
            **more,
        },
    }


def accessible(text: str, words: str) -> str:
    """Name the picture for assistive technology, give its ids a name of their own, and let the page
    choose inks and font."""
    text = re.sub(r"<\?xml[^>]*\?>\s*|<!DOCTYPE[^>]*>\s*", "", text)
    text = _ids(text, list(dict.fromkeys(re.findall(r'\bid="([^"]+)"', text))))
    text = re.sub(
        r'\s(role|aria-[a-z]+)="[^"]*"', "", text
    )  # Vega names every mark: one sentence says more
    text = re.sub(r'\sfont-family="[^"]*"', "", text)
    head, body = text.split(">", 1)
    return f'{head} role="img" aria-label="{escape(words)}"><title>{escape(words)}</title>{body}'


def _ids(text: str, idents: list[str]) -> str:
    """Ids that two pictures on one page do not share, and that are the same for the same picture:
    Vega counts on through a process."""
    for i, ident in enumerate(idents):
        text = re.sub(rf'((?:id|href)="#?|url\(#){re.escape(ident)}(?=["\)])', rf"\g<1>@{i}@", text)
    return re.sub(r"@(\d+)@", f"p{zlib.crc32(text.encode())}-\\1", text)


@functools.cache
def ink_rules() -> str:
    """The style sheet that puts the page's variables in place of the inks."""
    rules = [f".picture svg text{{font-family:{FONT}}}"]
    for ink, variable in INKS.items():
        for part in ("fill", "stroke"):
            rules.append(f'.picture svg [{part}="{ink}"]{{{part}:var({variable})}}')
    return "\n".join(rules)
