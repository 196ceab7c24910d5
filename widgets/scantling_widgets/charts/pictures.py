"""A figure as a static picture: SVG with a text alternative, whose inks follow the page from light
to dark to paper."""

import functools
import re
import zlib
from base64 import b64encode
from dataclasses import dataclass
from json import dumps
from typing import Any

from markupsafe import Markup, escape

from ..shipped_files import in_a_page
from .figure import Assessed, Facts, Figure, P, Spec
from .livechart import vega_version
from .theme import FONT, INKS, themed

WIDTH = 690  # of a picture with its axes: of a sheet of paper, on which a pixel is 3/4 pt
LEAST_PX = 11  # of letters: 8 pt on paper
PICTURE = "application/vnd.scantling.picture+json"  # what a cell hands to the page
# the last cell of the notebook hands the assessment over under this type
RESULT = "application/vnd.scantling.assessment+json"


@dataclass(frozen=True)
class Picture:
    """A themed chart, and its words for readers and programs that cannot draw it."""

    spec: Spec
    words: str
    caption: str

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """A PNG on white for the notebook, which reads in any theme and without trust; the page
        takes the SVG. Both are of one drawing."""
        return {
            PICTURE: {"figure": self.figure()},
            "image/png": b64encode(self.png()).decode(),
            "text/plain": self.words,
        }

    def figure(self) -> str:
        """The picture as a figure of the page."""
        if not in_a_page():
            return framed(Markup(accessible(self.drawing, self.words)), self.caption)
        # no program draws here: the page itself does, from what stands in place of the picture
        mark = Markup('<svg data-spec="{}" aria-label="{}"></svg>')
        return framed(mark.format(dumps(themed(self.spec)), self.words), self.caption)

    @functools.cached_property
    def drawing(self) -> str:
        """The picture as Vega draws it, an SVG."""
        import vl_convert

        return vl_convert.vegalite_to_svg(themed(self.spec), vl_version=vega_version())

    def png(self) -> bytes:
        """The picture on white."""
        import vl_convert

        head, body = self.drawing.split(">", 1)
        paper = '<rect width="100%" height="100%" fill="#ffffff"/>'
        return vl_convert.svg_to_png(f"{head}>{paper}{body}", scale=1.25)


def framed(picture: Markup, caption: str = "") -> str:
    """A picture as a figure of the page; the keyboard reaches it, since on a narrow page it
    scrolls."""
    below = Markup("<figcaption>{}</figcaption>").format(caption) if caption else ""
    return str(Markup('<figure class="picture" tabindex="0">{}{}</figure>').format(picture, below))


def draw(
    figure: Figure[P], assessment: Assessed | Facts, *args: P.args, **kwargs: P.kwargs
) -> Picture | None:
    """A figure of an assessment as a picture; None where it has nothing to show."""
    spec = figure.static(WIDTH, True, assessment, *args, **kwargs)
    if not any(spec["datasets"].values()):
        return None
    spec = {**_legible(_only_present(spec)), "autosize": {"type": "fit-x", "contains": "padding"}}
    return Picture(spec, spec["description"], figure.title)


def _legible(spec: Spec) -> Spec:
    """The specification with no letter smaller than can be read on paper."""

    def enlarged(node: Any) -> Any:
        if isinstance(node, list):
            return [enlarged(inner) for inner in node]
        if not isinstance(node, dict):
            return node
        return {
            key: max(value, LEAST_PX)
            if key.lower().endswith("fontsize") and isinstance(value, (int, float))
            else enlarged(value)
            for key, value in node.items()
        }

    return {key: value if key == "datasets" else enlarged(value) for key, value in spec.items()}


def _only_present(spec: Spec) -> Spec:
    """The specification with legends that name the parts that are there, and no others."""
    rows = (row for rows in spec["datasets"].values() for row in rows if "part" in row)
    present = {row["part"] for row in rows if row["end"] > row["start"]}
    if not present:
        return spec
    marks = {k: v for k, v in spec.items() if k != "datasets"}
    return {**_with_legends_of(present, marks), "datasets": spec["datasets"]}


def _with_legends_of(present: set[str], node: Any) -> Any:
    """A copy of a specification whose legends name only what is present."""
    if isinstance(node, list):
        return [_with_legends_of(present, inner) for inner in node]
    if not isinstance(node, dict):
        return node
    copy = {key: _with_legends_of(present, inner) for key, inner in node.items()}
    domain = (node.get("scale") or {}).get("domain")
    if domain and node.get("legend"):
        values = [name for name in domain if name in present]
        copy["legend"] = {**node["legend"], "values": values}
    return copy


def accessible(text: str, words: str) -> str:
    """An SVG that names the picture for assistive technology, gives its ids a name of their own,
    and leaves inks and font to the page."""
    text = re.sub(r"<\?xml[^>]*\?>\s*|<!DOCTYPE[^>]*>\s*", "", text)
    text = _unshared_ids(text, list(dict.fromkeys(re.findall(r'\bid="([^"]+)"', text))))
    # Vega names every mark: one sentence says more
    text = re.sub(r'\s(role|aria-[a-z]+)="[^"]*"', "", text)
    text = re.sub(r'\sfont-family="[^"]*"', "", text)
    head, body = text.split(">", 1)
    return f'{head} role="img" aria-label="{escape(words)}"><title>{escape(words)}</title>{body}'


def _unshared_ids(text: str, ids: list[str]) -> str:
    """Ids that two pictures on one page do not share, and that are the same for the same picture:
    Vega counts on through a process."""
    for i, id in enumerate(ids):
        text = re.sub(rf'((?:id|href)="#?|url\(#){re.escape(id)}(?=["\)])', rf"\g<1>@{i}@", text)
    return re.sub(r"@(\d+)@", f"p{zlib.crc32(text.encode())}-\\1", text)


@functools.cache
def ink_rules() -> str:
    """The style sheet that puts the page's variables in place of the inks."""
    rules = [f".picture svg text{{font-family:{FONT}}}"]
    for ink, variable in INKS.items():
        for part in ("fill", "stroke"):
            rules.append(f'.picture svg [{part}="{ink}"]{{{part}:var({variable})}}')
    return "\n".join(rules)
