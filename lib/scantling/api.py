"""A design, its assessment, and how the one becomes the other: the public names that every other
one takes."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from .base.displayed import Displayed
from .base.errors import DesignError as DesignError
from .base.plugins import function
from .base.quantities.quantity import quantity, show
from .base.show import NONE
from .design.design import Design as _Design
from .design.draft import draft
from .plans.prepare import prepare
from .plans.space import Space
from .verdict.assess import assess as _assess
from .verdict.assessment import Assessment as _Assessment
from .verdict.result import FigureKey, Result, figure
from .verdict.verdicts import VERDICTS

# figures, and fields of the plan, that lead a result in a notebook or at the Python prompt
_LEADING: tuple[FigureKey, ...] = (
    "mfu_shown",
    "step_s",
    "days",
    "cost_usd",
    "goodput",
    "memory_bytes.total",
    "oom_probability",
)
_AXES = ("tp", "cp", "pp", "vpp", "dp", "ep", "sharding", "micro_batch", "recompute", "offload")


class Design(Displayed, _Design):
    """A design: model, cluster, job, and what is asked of them. See `read`, `from_yaml`,
    `from_data` and `from_text`."""

    def cells(self) -> list[list[str]]:
        """The lines of the file."""
        return [[line] for line in self.to_yaml().splitlines()]

    @classmethod
    def from_text(cls, text: str, folder: str | Path = ".") -> Self:
        """The design that a line says: "70B on 512 H100, 2T tokens, 30 days". What it leaves open
        is filled in as by `scantling init --text`. The text of a design file is read as one.

        Raises DesignError for a line that contradicts itself.

        >>> design = Design.from_text("70B on 512 H100, 2T tokens, 30 days")
        >>> design.data()["cluster"]["devices"], design.data()["constraints"]
        (512, {'deadline_days': 30.0})
        """
        if "\n" in text or text.lstrip().startswith("{"):
            return cls.from_yaml(text, folder)
        made, _, _ = draft(function("read_brief")(text), None, prepare)
        return cls.from_data(made.data(), folder)


class Assessment(Displayed, _Assessment):
    """What the library says of one design: a frozen record of verdict, plan and numbers."""

    def as_dict(self, advice: bool = True) -> Result:
        """The JSON of `design --json`; `advice=False` leaves out what takes more searches."""
        result: Result = function("assessment_json")(self, advice)
        return result

    @property
    def heading(self) -> str:
        """Name of the design."""
        return self.resolved.name[:100]

    def cells(self) -> list[list[str]]:
        """Label and value of the figures that lead, and the plan."""
        values: Result = {"verdict": self.verdict, **self.headline()}
        figures = [(quantity(key).label, show(key, figure(values, key))) for key in _LEADING]
        axes = (f"{k} {v}" for k, v in (self.plan or {}).items() if k in _AXES and v != 1)
        return [
            ["Verdict", VERDICTS[self.verdict].name],
            *([label, text] for label, text in figures if text != NONE),
            ["Plan", " · ".join(axes) or "none fits"],
        ]

    def _repr_html_(self) -> str:
        """With a picture, where the package that draws is installed."""
        try:
            picture: str = function("assessment_html")(self)
        except DesignError:
            return super()._repr_html_()
        return picture


DesignLike = _Design | str | Path | Mapping[str, Any]  # a design, its file, its data
AssessmentLike = _Assessment | DesignLike  # an assessment, or what is to be assessed
Progress = Callable[[int, int], bool | None]  # of (done, of)


def designed(design: DesignLike) -> _Design:
    """The design that a path, a mapping or a design says."""
    if isinstance(design, Mapping):
        return Design.from_data(design)
    if isinstance(design, (str, Path)):
        return Design.read(design)
    if isinstance(design, _Design):
        return design
    raise DesignError(
        "design", type(design).__name__, "a Design, the path of a design file, or a mapping"
    )


def assess(
    design: DesignLike,
    *,
    space: Space | str | None = None,
    progress: Callable[[int, int], bool | None] | None = None,
) -> Assessment:
    """Search the plans of a design and judge the best against what it asks for.

    design : a Design, the path of a design file, or a mapping.
    space : a space of plans, or its name: coarse, default (where it is left out) or wide.
    progress : function(done, of), may return False to end a search with what it has.
    Raises DesignError for a wrong design and for pins that break a rule.

    >>> a = assess(Design.from_text("8B on 64 H100, 1T tokens"))
    >>> a.verdict, a.plan["tp"] * a.plan["pp"] * a.plan["cp"] * a.plan["dp"]
    ('feasible', 64)
    """
    return Assessment(**vars(_assess(designed(design), space=space, progress=progress)))


def assessed(design: AssessmentLike) -> _Assessment:
    """An assessment, or that of a design."""
    return design if isinstance(design, _Assessment) else assess(design)


def planned(design: AssessmentLike) -> _Assessment:
    """The same, where a plan holds the model."""
    assessment = assessed(design)
    if not assessment.phases:
        raise DesignError("design", assessment.verdict, problem="holds no plan: see its limits")
    return assessment
