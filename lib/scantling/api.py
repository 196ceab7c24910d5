"""The public names of the library, gathered from its rooms."""

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

from .advise.avoid import avoid as _avoid
from .advise.comparison import AXES, LEADING, Comparison, compare as _compare
from .advise.explanation import explain as _explain
from .advise.fixes import fixes as _fixes
from .advise.sensitivity import tornado
from .advise.sweeps import sweep as _sweep
from .base.displayed import Displayed, Table, tabled
from .base.errors import DesignError
from .base.plugins import function
from .base.quantities.table import quantity, show
from .base.records import at
from .design.design import Design as _Design
from .design.draft import draft
from .plans.leaderboard import search as _search
from .plans.prepare import prepare
from .plans.space import Space
from .runs.predict import predict as _predict
from .runs.read import given_table
from .verdict.assess import assess as _assess
from .verdict.record import Assessment as _Assessment
from .verdict.verdicts import VERDICTS


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

    def as_dict(self, advice: bool = True) -> dict:
        """The JSON of `design --json`; `advice=False` leaves out what takes more searches."""
        figures: dict[str, Any] = function("assessment_json")(self, advice)
        return figures

    @property
    def heading(self) -> str:
        """Name of the design."""
        return self.resolved.name[:100]

    def cells(self) -> list[list[str]]:
        """Label and value of the figures that lead, and the plan."""
        given = {"verdict": self.verdict, **self.headline()}
        said = [(quantity(key).label, show(key, at(given, key))) for key in LEADING]
        axes = (f"{k} {v}" for k, v in (self.plan or {}).items() if k in AXES and v != 1)
        return [
            ["Verdict", VERDICTS[self.verdict].name],
            *([label, text] for label, text in said if text != "—"),
            ["Plan", " · ".join(axes) or "none fits"],
        ]


class Described(Protocol):
    """A record that turns into plain data."""

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts by name."""


Asked = _Design | str | Path | Mapping  # what a design is given as
Judged = _Assessment | Asked  # what an assessment is given as
Given = TypeVar("Given")
Read = TypeVar("Read")
Told = TypeVar("Told")
More = ParamSpec("More")


def _designed(design: Asked) -> _Design:
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
    design: Asked,
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
    return Assessment(**vars(_assess(_designed(design), space=space, progress=progress)))


def _assessed(given: Judged) -> _Assessment:
    """An assessment, or that of a design."""
    return given if isinstance(given, _Assessment) else assess(given)


def _planned(given: Judged) -> _Assessment:
    """The same, where a plan holds the model."""
    assessment = _assessed(given)
    if not assessment.phases:
        raise DesignError("design", assessment.verdict, problem="holds no plan: see its limits")
    return assessment


def _taking(
    read: Callable[[Given], Read], function: Callable[Concatenate[Read, More], Told]
) -> Callable[Concatenate[Given, More], Told]:
    """The function with its first argument read from whatever it is given as."""

    @wraps(function)
    def called(given: Given, *args: More.args, **more: More.kwargs) -> Told:
        return function(read(given), *args, **more)

    return called


avoid = tabled(_taking(_assessed, _avoid))
explain = _taking(_assessed, _explain)
fixes = tabled(_taking(_assessed, _fixes))
predict = _taking(given_table, _predict)
search = _taking(_designed, _search)
sensitivity = tabled(_taking(_assessed, tornado))
sweep = tabled(_taking(_designed, _sweep))


def blueprint(design: Judged, parts: Iterable[str] | None = None) -> Described:
    """The site around a design: network, placement, planes, scheduler, stores, domains, recovery,
    risks, roll-out, evolution, calendar; a record with `as_dict`.

    parts : the names of some of them; all where it is left out.
    Raises DesignError for a wrong design and for a part that there is not.

    >>> site = blueprint(Design.from_text("8B on 64 H100, 1T tokens"), ["network"])
    >>> list(site.as_dict(["network"]))
    ['network']
    """
    assessment = _assessed(design)
    site: Described = function("blueprint")(assessment, *([] if parts is None else [parts]))
    return site


def goodput(design: Judged) -> dict[str, Any]:
    """Failures, checkpoint interval, goodput, spares and the promise of a design: the keys of
    `goodput --json`.

    Raises DesignError for a wrong design and for one that no plan holds.
    """
    figures: dict[str, Any] = function("goodput")(_planned(design))
    return figures


def launch(design: Judged, to: str, on: str = "torchrun") -> dict[str, str]:
    """The files of a launch kit, relative path to text.

    to : the framework: megatron, megatron-bridge, torchtitan, fsdp, deepspeed, accelerate, maxtext,
    ddp. on : what starts the processes: torchrun, slurm, kubernetes.
    Raises DesignError for a wrong design, for one that no plan holds, for a framework or a
    scheduler that there is not, and where the framework has no plan that fits and keeps the
    constraints.
    """
    files: dict[str, str] = function("launch")(_planned(design), to, on)
    return files


def learn(paths: str | Path | Iterable[str | Path]) -> list[dict[str, Any]]:
    """What training logs say: one mapping a log, as `learn --json` prints it.

    paths : a log, a folder of logs, or several of them. A figure that a log does not hold is None.
    Raises DesignError for a named file that is no log of a known format.
    """
    return Table(function("learn")(paths))


def compare(designs: Iterable[Judged]) -> Comparison:
    """Designs side by side: what was asked where it differs, the plans, the figures.

    designs : two or more, each an Assessment or whatever `assess` takes.
    Raises DesignError for fewer than two and for a wrong design.

    >>> small = Design.from_text("8B on 64 H100, 1T tokens")
    >>> rows = compare([small, small.change({"cluster.devices": 128})]).as_dict()["rows"]
    >>> rows[0]["label"], rows[0]["values"]
    ('cluster.devices', (64, 128))
    """
    return _compare(map(_assessed, designs))


def report(
    designs: str | Path | Iterable[str | Path],
    out: str | Path,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    pdf: bool = False,
    force: bool = False,
) -> list[Path]:
    """Render designs as offline HTML reports, one page each, into the folder `out`.

    designs : the path of a design file, or several.
    workers, scheduler, pdf, force : as `scantling report` has them.
    Returns the paths of the pages. Raises DesignError for a wrong design and where the view
    (scantling_widgets) is not installed.
    """
    files = list(designs) if isinstance(designs, (list, tuple)) else [designs]
    for file in files:
        if not isinstance(file, (str, Path)):
            raise DesignError(
                "designs", type(file).__name__, "the path of a design file, or a list of them"
            )
    pages: list[Path] = function("report")(
        files, out, workers=workers, scheduler=scheduler, pdf=pdf, force=force
    )
    return pages
