"""The public names of the library, gathered from its rooms."""

from __future__ import annotations

from collections.abc import Mapping

from .advise.avoid import avoid
from .advise.fixes import fixes
from .advise.recovery import goodput
from .advise.sensitivity import tornado as sensitivity
from .advise.sweeps import sweep
from .advise.whole import as_dict
from .advise.why import why as explain
from .base.errors import DesignError
from .cluster import blueprint
from .design.design import Design
from .evidence.predict import predict_frame as predict
from .kits import kits as launch
from .plans.search import search
from .plans.space import DEFAULT
from .verdict.assess import assess as _assess
from .verdict.record import Assessment as _Assessment

__all__ = [
    "Assessment",
    "Design",
    "DesignError",
    "assess",
    "avoid",
    "blueprint",
    "explain",
    "fixes",
    "goodput",
    "launch",
    "predict",
    "search",
    "sensitivity",
    "sweep",
]


class Assessment(_Assessment):
    """What the library says of one design: a frozen record of verdict, plan and numbers."""

    def as_dict(self, advice: bool = True) -> dict:
        """The JSON of `design --json`; `advice=False` leaves out what takes more searches."""
        return as_dict(self, advice)


def assess(design, *, space=DEFAULT) -> Assessment:
    """Search the plans of a design and judge the best against what it asks for.

    design : a Design, the path of a design file, or a mapping.
    Raises DesignError for a wrong design and for pins that break a rule.
    """
    if isinstance(design, Mapping):
        design = Design.from_data(design)
    elif not isinstance(design, Design):
        design = Design.read(design)
    return Assessment(**vars(_assess(design, space=space)))
