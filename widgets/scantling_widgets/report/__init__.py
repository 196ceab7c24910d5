"""The design report: read-only, static, from one Assessment. The notebook `design_report` shows it
section by section; `run` makes batches."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from scantling.plans.prepare import prepare

_PLAIN = (str, int, float, list, tuple, dict)


def read_design(parameters: Mapping):
    """The design that a notebook's parameters spell.

    parameters : the names of the notebook; `design` is a path, the text of a design file or a
    mapping, and the sections of a design
        stand beside it, each as in the file. Sections on top of a `design` change it.
    Raises DesignError, one line, for a wrong design and for a parameter that is neither.
    """
    from scantling.design.design import Design

    given = {
        k: v
        for k, v in parameters.items()
        if v is not None
        and not k.startswith("_")
        and isinstance(v, _PLAIN)
        and k not in ("design", "In", "Out")
    }
    design = parameters.get("design")
    if design is None:
        return Design.from_data(given)
    if isinstance(design, Mapping):
        design = Design.from_data(design)
    elif isinstance(design, str) and ("\n" in design or design.lstrip().startswith("{")):
        design = Design.from_text(design)
    else:
        design = Design.read(design)
    given.pop("scantling", None)
    return design.change(**given) if given else design


class Markup:
    """HTML that a notebook cell shows."""

    def __init__(self, html: str):
        self.html = html

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return "<part of a design report>"


class Report:
    """One design's report, part by part, for a notebook to show."""

    def __init__(self, design, assessment=None):
        from . import text

        if assessment is None:
            import scantling

            assessment = scantling.assess(design)
        self.design, self.assessment = design, assessment
        self.data = text.plain(assessment.as_dict()) | {"name": assessment.resolved.name}
        self.view = text.view(self.data, prepare(design), assessment.resolved.main) | {
            "b": text.Parts(assessment)
        }

    @property
    def impossible(self) -> bool:
        return self.view["a"].verdict == "impossible"

    def section(self, name: str) -> Markup | None:
        """One section as HTML; None where the design gives no reason for it. A refusal has no
        section but its own."""
        from ..words import label
        from . import text

        if self.impossible != (name == "refusal") and name != "header":
            return None
        html = text.render(
            name,
            {
                **self.view,
                "variations": self.variations,
                "key": self.moved_by,
                "moved": label(self.moved_by).lower(),
            }
            if name in ("brief", "sensitivity")
            else self.view,
        )
        return Markup(html) if html else None

    def picture(self, name: str, **more):
        """One figure as a static picture; None for a refusal and where there is nothing to draw."""
        if self.impossible:
            return None
        from . import charts, pictures

        figure = charts.FIGURES[name]
        if name == "sensitivity":
            figure = charts.tornado(self.moved_by)
            more = {"rows": self.variations, "key": self.moved_by, **more}
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
        from scantling.advise.sensitivity import tornado

        return tornado(self.assessment, self.moved_by)

    def html(self) -> str:
        """All sections and pictures in the order of the notebook, without papermill and a
        kernel."""
        from . import charts

        parts = []
        for name in ("header", "refusal", *charts.ORDER):
            part = (
                self.picture(name.removesuffix("-picture"))
                if name.endswith("-picture")
                else self.section(name)
            )
            parts.append(
                "" if part is None else part.figure() if hasattr(part, "figure") else part.html
            )
        return "\n".join(filter(None, parts))

    def result(self):
        """The assessment as data, for the program that runs the notebook."""
        return _Result(self.data)


class _Result:
    def __init__(self, data: dict):
        self.data = data

    def _repr_mimebundle_(self, include=None, exclude=None):
        from .jobs import RESULT

        return {
            RESULT: self.data,
            "text/plain": f"{self.data.get('name')}: {self.data.get('verdict')}",
        }


def render(file, folder) -> Path:
    """The report of one design file, into `folder`; returns the path of the page.

    Raises DesignError where the file is wrong and RuntimeError where the report could not be made.
    """
    from scantling.base.errors import DesignError

    from .run import run

    (record,) = run([file], folder, workers=1)
    if record.status == "wrong":
        raise DesignError(problem=record.error)
    if record.status != "done":
        raise RuntimeError(record.error)
    return Path(folder) / f"{record.name}.html"
