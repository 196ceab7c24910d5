"""The design report: read-only, static, from one Assessment. The notebook `design_report` shows it
section by section; `batch` makes several."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import scantling
from scantling.advise.rivals import rivals
from scantling.advise.sensitivity import Swing, stated_inputs, tornado
from scantling.advise.trials import Trials
from scantling.base.displayed import Html
from scantling.base.errors import DesignError
from scantling.design.design import Design
from scantling.design.methods import is_posttraining
from scantling.verdict.result import FigureKey, figure
from scantling_posttrain.answering import posttrain
from scantling_site.promise import assessment_json

from ..charts import pictures
from ..charts.endurance import goodput, ladder
from ..charts.evidence import evidence
from ..charts.figure import Facts
from ..charts.memory_step import memory, step
from ..charts.network import traffic
from ..charts.pictures import RESULT as RESULT, Picture
from ..charts.plans import printed_tornado
from ..charts.schedule import laid as layers
from ..quantity_texts import label
from .blocks import part_of_report
from .document import Document
from .order import ORDER as ORDER, WHOLE
from .report_batch import run
from .sections import SECTIONS
from .sections.step import sensitivity
from .sections.summary import REFUSAL as REFUSAL, header
from .tuned_report import TunedReport
from .view import Parts, View, plain

_PLAIN = (str, int, float, list, tuple, dict)
OF_BOTH = ("header", "signing", "assumptions")
WIDEST = 5  # inputs in the picture of the first page
_NOT_FIELDS = ("design", "space", "full", "In", "Out")


def read_design(parameters: Mapping[str, Any]) -> Design:
    """The design that a notebook's parameters spell.

    parameters : the names of the notebook; `design` is a path, the text of a design file or a
    mapping, and the sections of a design stand beside it, each as in the file. Sections on top of
    a `design` change it.
    Raises DesignError, one line, for a wrong design and for a parameter that is neither.
    """
    stated: dict[str, Any] = {
        name: value
        for name, value in parameters.items()
        if isinstance(value, _PLAIN) and not name.startswith("_") and name not in _NOT_FIELDS
    }
    design = parameters.get("design")
    if design is None:
        return Design.from_data(stated)
    stated.pop("scantling", None)
    read = _read(design)
    return read.change(**stated) if stated else read


def _read(design: Any) -> Design:
    """The design of a mapping, of the text of a design file, or of its path."""
    if isinstance(design, Mapping):
        return Design.from_data(design)
    if isinstance(design, str) and ("\n" in design or design.lstrip().startswith("{")):
        return Design.from_yaml(design)
    return Design.read(design)


class Report(Document):
    """The report of a design that trains from the start."""

    def __init__(
        self, design: Design, assessment: scantling.Assessment | None = None, full: bool = False
    ) -> None:
        """full : with all that is looked up rather than read."""
        self.design = design
        self.full = full
        self.assessment = assessment or scantling.assess(design)
        resolved = self.assessment.resolved
        self.trials = Trials(self.assessment)  # changes that several sections ask for
        figures = assessment_json(self.assessment, others=self.trials)
        self.data: Facts = plain(figures) | {"name": resolved.name}
        self.view = View(
            facts=self.data,
            resolved=resolved,
            parts=Parts(self.assessment),
            full=full,
            rivals=[]
            if self.impossible
            else rivals(self.assessment, self.data["saving"], self.trials),
        )

    @property
    def impossible(self) -> bool:
        return bool(self.data["verdict"] == "impossible")

    def section(self, name: str) -> Html | None:
        """One section as HTML; None where the design gives no reason for it. A refusal has its own
        and those of OF_BOTH."""
        if self.impossible != (name == "refusal") and name not in OF_BOTH:
            return None
        if name in WHOLE and not self.full:
            return None
        if name == "header":
            return part_of_report(header(self.view))
        if name == "sensitivity":
            title = label(self.moved_by).lower()
            section = sensitivity(self.view, self.moved_by, title, self.variations)
        else:
            section = SECTIONS[name](self.view)
        return part_of_report(section.html()) if section else None

    def picture(self, name: str) -> Picture | None:
        """One figure as a static picture; None for a refusal and where there is nothing to draw."""
        if self.impossible:
            return None
        data = self.data
        match name:
            case "memory":
                return pictures.draw(memory, data)
            case "step":
                return pictures.draw(step, data)
            case "goodput":
                return pictures.draw(goodput, data)
            case "communication":
                return pictures.draw(traffic, data)
            case "sensitivity":
                figure, rows = printed_tornado[self.moved_by], self.variations[:WIDEST]
                return pictures.draw(figure, data, rows, self.moved_by)
            case "evidence":
                return pictures.draw(evidence, data) if data.get("nearest_runs") else None
            case "ladder":
                rungs = self.view.parts["recovery"]["ladder"]
                return pictures.draw(ladder, data, rungs) if self.section(name) else None
            case "layers":
                height = min(60 * data["plan"]["pp"], 200)
                figure_of_layers = replace(layers, height=height)
                return pictures.draw(figure_of_layers, data) if self.section(name) else None
        raise KeyError(f"no picture {name!r}")

    @cached_property
    def moved_by(self) -> FigureKey:
        """The key of the headline figure that the sensitivity is about: likely days, where the
        design has tokens, else throughput."""
        return "tokens_per_s_per_device" if figure(self.data, "days") is None else "likely.days"

    @cached_property
    def variations(self) -> list[Swing]:
        """What that figure hangs on: each input a step down and up, the plan searched again; the
        widest swing first."""
        inputs = stated_inputs(self.assessment)
        return tornado(self.assessment, self.moved_by, inputs, self.trials)


def of(design: Design, space: str = "default", full: bool = False) -> Report | TunedReport:
    """The report of a design, of whichever method. Raises DesignError for a wrong one."""
    if is_posttraining(design):
        return TunedReport(posttrain(design))
    return Report(design, scantling.assess(design, space=space), full)


def render(
    files: Iterable[str | Path],
    folder: str | Path,
    *,
    workers: int | None = 1,
    scheduler: str | None = None,
    pdf: bool = False,
    force: bool = False,
    space: str = "default",
    full: bool = False,
) -> list[Path]:
    """The reports of design files, into `folder`; returns the paths of the pages. The options are
    those of `batch.run`.

    Raises DesignError where a file is wrong and RuntimeError where a report could not be made.
    """
    records = run(
        files,
        folder,
        workers=workers,
        scheduler=scheduler,
        pdf=pdf,
        force=force,
        space=space,
        full=full,
    )
    for record in records:
        if record.status == "wrong":
            raise DesignError(problem=record.error)
        if record.status != "done":
            raise RuntimeError(record.error)
    return [Path(folder) / f"{record.name}.html" for record in records]
