"""The design report: read-only, static, from one Assessment. The notebook `design_report` shows it
section by section; `run` makes batches."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import scantling
from scantling.advise.sensitivity import tornado
from scantling.base.displayed import Html
from scantling.base.errors import DesignError
from scantling.design.design import Design

from ..charts import pictures
from ..charts.pictures import RESULT
from ..charts.plans import printed_tornado
from ..words import label
from . import charts, text
from .run import run as make_all

_PLAIN = (str, int, float, list, tuple, dict)
OF_BOTH = ("header", "signing", "assumptions")
WIDEST = 6  # inputs in the picture of the first page
_NOT_FIELDS = ("design", "space", "In", "Out")


def read_design(parameters: Mapping) -> Design:
    """The design that a notebook's parameters spell.

    parameters : the names of the notebook; `design` is a path, the text of a design file or a
    mapping, and the sections of a design stand beside it, each as in the file. Sections on top of
    a `design` change it.
    Raises DesignError, one line, for a wrong design and for a parameter that is neither.
    """
    given = {
        name: value
        for name, value in parameters.items()
        if isinstance(value, _PLAIN) and not name.startswith("_") and name not in _NOT_FIELDS
    }
    design = parameters.get("design")
    if design is None:
        return Design.from_data(given)
    given.pop("scantling", None)
    if isinstance(design, Mapping):
        read = Design.from_data
    else:
        text_ = isinstance(design, str) and ("\n" in design or design.lstrip().startswith("{"))
        read = Design.from_yaml if text_ else Design.read
    return read(design).change(**given) if given else read(design)


class Report:
    """One design's report, part by part, for a notebook to show."""

    def __init__(self, design, assessment=None):
        self.design, self.assessment = design, assessment or scantling.assess(design)
        self.data = text.plain(self.assessment.as_dict())
        self.data["name"] = self.assessment.resolved.name
        self.view = text.view(self.data, self.assessment.resolved)
        self.view["b"] = text.Parts(self.assessment)

    @property
    def impossible(self) -> bool:
        return self.data["verdict"] == "impossible"

    def section(self, name: str) -> Html | None:
        """One section as HTML; None where the design gives no reason for it. A refusal has its own
        and those of OF_BOTH."""
        if self.impossible != (name == "refusal") and name not in OF_BOTH:
            return None
        moved = {}
        if name == "sensitivity":
            moved = {
                "key": self.moved_by,
                "moved": label(self.moved_by).lower(),
                "variations": self.variations,
            }
        html = text.render(name, self.view | moved)
        return Html(html=html, words="<part of a design report>") if html else None

    def picture(self, name: str, **more):
        """One figure as a static picture; None for a refusal and where there is nothing to draw."""
        if self.impossible:
            return None
        if name == "sensitivity":
            figure = printed_tornado[self.moved_by]
            return pictures.draw(figure, self.data, self.variations[:WIDEST], self.moved_by)
        figure = charts.FIGURES[name]
        if name in ("ladder", "layers") and not self.section(name):
            return None
        if name == "ladder":
            more = {"rungs": self.view["b"]["recovery"]["ladder"], **more}
        if name == "layers":
            figure = replace(figure, height=min(60 * self.data["plan"]["pp"], 200))
        return pictures.draw(figure, self.data, **more)

    @cached_property
    def moved_by(self) -> str:
        """The key of the headline figure that the sensitivity is about: days, where the design has
        tokens, else throughput."""
        return "tokens_per_s_per_device" if self.data.get("days") is None else "days"

    @cached_property
    def variations(self) -> list[dict]:
        """What that figure hangs on: each input a step down and up, the plan searched again; the
        widest swing first."""
        return tornado(self.assessment, self.moved_by)

    def html(self) -> str:
        """All sections and pictures in the order of the notebook, without papermill and a
        kernel."""
        parts = []
        for name in ("header", "refusal", *charts.ORDER):
            if name.endswith("-picture"):
                picture = self.picture(name.removesuffix("-picture"))
                parts.append(picture.figure() if picture else "")
            else:
                section = self.section(name)
                parts.append(section.html if section else "")
        return "\n".join(filter(None, parts))

    def result(self) -> None:
        """Hand the assessment over as data to the program that runs the notebook."""
        from IPython.display import display

        said = f"{self.data.get('name')}: {self.data.get('verdict')}"
        display({RESULT: self.data, "text/plain": said}, raw=True)


def render(files, folder, **options) -> list[Path]:
    """The reports of design files, into `folder`; returns the paths of the pages. `options` are
    those of `run.run`.

    Raises DesignError where a file is wrong and RuntimeError where a report could not be made.
    """
    records = make_all(files, folder, **{"workers": 1} | options)
    for record in records:
        if record.status == "wrong":
            raise DesignError(problem=record.error)
        if record.status != "done":
            raise RuntimeError(record.error)
    return [Path(folder) / f"{record.name}.html" for record in records]
