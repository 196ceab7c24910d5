"""What is asked of a design beside its assessment: the public names of advice, sweeps, tables of
runs, and of the packages beside the core."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from .advise.avoid import avoid as _avoid
from .advise.comparison import Comparison, compare as _compare
from .advise.diagnose import diagnose as _diagnose
from .advise.direct import answer as _answer
from .advise.explanation import Explanation, explain as _explain
from .advise.extremes import by_scaling_laws, to_loss
from .advise.fixes import fixes as _fixes
from .advise.frontier import front as _front
from .advise.sensitivity import tornado
from .advise.sweeps import sweep as _sweep
from .api import AssessmentLike, DesignLike, Progress, assessed, designed, planned
from .base.columns import Array
from .base.displayed import Figures, Table as Table
from .base.errors import DesignError, blamed_on
from .base.plugins import function
from .catalogue.listing import listing
from .catalogue.quotes import price_rows
from .design.design import Design
from .design.methods import is_posttraining
from .plans.leaderboard import Columns, search as _search
from .plans.prepare import prepare
from .plans.space import Space
from .runs.frames import frame_of_answers, has_pandas
from .runs.other_tables import answered
from .runs.plan_rows import table_of_plans
from .runs.predict import predict as _predict
from .runs.read import TableLike, table_of_user
from .verdict.assessment import Assessment
from .verdict.result import Line

if TYPE_CHECKING:
    from pandas import DataFrame


class Described(Protocol):
    """A record that turns into plain data."""

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts by name."""


class Written(Protocol):
    """A record that is kept as a file."""

    def to_text(self) -> str:
        """The file's text."""


class Drawn(Protocol):
    """A modelled step, laid out over ranks and streams."""

    slices: tuple[Any, ...]

    def to_json(self) -> str:
        """The trace as viewers read it."""


def answer(
    design: DesignLike, question: str, *, most_devices: int | None = None, any_chip: bool = False
) -> Table:
    """A direct answer about a design: one row {..., bound, verdict, days, cost_usd, plan, mfu},
    several for `cheaper`, none where no choice fits and keeps every constraint.

    question : longest-sequence, biggest-micro-batch, fewest-devices, earliest-finish,
    largest-model, compute-budget, cheaper. most_devices : earliest-finish looks no further.
    any_chip : cheaper tries every other chip that ships and has a price.
    Raises DesignError for a wrong design, for another question, and where the design lacks what
    the question needs.

    >>> design = Design.from_text("8B on 64 H100, 1T tokens, 30 days")
    >>> answer(design, "fewest-devices")[0]["devices"] < 64
    True
    """
    return Table(_answer(designed(design), question, most_devices=most_devices, any_chip=any_chip))


def avoid(design: AssessmentLike) -> Table:
    """Tempting plans that lose on this design, the most expensive first: [{what, why, cost}].

    Raises DesignError for a wrong design.
    """
    return Table(_avoid(assessed(design)))


def browse(kind: str) -> Table:
    """What the catalogue holds: models, accelerators, fabrics, stacks, nodes, storage, prices.

    Raises DesignError for another kind.

    >>> chips = browse("accelerators").sorted_by("hbm_gb", descending=True)
    >>> chips[0]["hbm_gb"] >= chips[1]["hbm_gb"]
    True
    """
    return Table(listing(kind))


def diagnose(design: DesignLike) -> Figures:
    """Why a run is slower (or faster) than predicted: {measured_s, predicted_s, low_s, high_s,
    inside, chance, causes, built_in, lines}; causes are a table, those that explain all of it
    first.

    design : with `measured`: step_s, mfu or tokens_per_s_per_device.
    Raises DesignError for a wrong design, for one that no plan holds, and where nothing is
    measured.
    """
    with blamed_on("measured"):
        found = asdict(_diagnose(planned(designed(design)).design))
    return Figures(found | {key: Table(found[key]) for key in ("causes", "built_in")})


def explain(design: AssessmentLike, key: str | None = None) -> Explanation | list[Line]:
    """What one number of an assessment is made of; without a key, why the plan is what it is.

    key : of `design --json`, dotted below a mapping: "mfu", "memory_bytes.weights".
    Returns an Explanation; without a key a line an axis of the plan.
    Raises DesignError for a wrong design and for a key that no assessment has, with the nearest.
    """
    return _explain(assessed(design), key)


def fixes(design: AssessmentLike) -> Table:
    """Changes that keep what is asked for, with their verdict, feasible ones first, in the order of
    how little they change: [{change, set, verdict, missed, days, cost_usd, mfu, devices}].

    `set` are dotted paths and values for `Design.change`; applying it gives the verdict shown.
    `missed` lists what such a design still misses. Empty where nothing helps.
    Raises DesignError for a wrong design.
    """
    return Table(_fixes(assessed(design)))


def front(design: DesignLike, devices: Iterable[int] | None = None) -> Table:
    """The choices that no other beats in days, dollars, devices and memory headroom at once, the
    fastest first: {days, cost_usd, devices, memory_share, verdict, plan}. devices : counts to
    compare; half to twice the design's own where left out.

    Raises DesignError for a wrong design and for one without tokens.
    """
    points = _front(designed(design), None if devices is None else [*devices])
    return Table(
        {key: value for key, value in point.items() if key != "design"} for point in points
    )


def prices(design: DesignLike) -> Table:
    """Prices of a device-hour by kind of rent [USD]: {accelerator, kind, value, low, high, date,
    notes, source}.

    design : of whose chip; or the path of your own table of prices (.csv).
    Raises DesignError for a wrong design and for a row that is no price.
    """
    if isinstance(design, (str, Path)) and str(design).endswith(".csv"):
        return Table(price_rows(table=design))
    return Table(price_rows(prepare(designed(design)).cluster.accelerator.id))


def scaling(design: DesignLike, *, flops: float | None = None, loss: float | None = None) -> Table:
    """A budget of compute as model size and tokens by published scaling laws, a row a law, and what
    each takes on the design's machine; with `loss` the tokens, days and dollars of the design's own
    model to it [nats a token].

    flops : training compute [FLOP]; what the machine does by its deadline, else what the design
    itself spends, where left out.
    Raises DesignError for a wrong design and where there is neither a budget, a deadline nor
    tokens.
    """
    if loss is not None:
        if not 0.5 <= loss <= 10:
            raise DesignError("loss", loss, "nats a token, from 0.5 to 10")
        return Table(to_loss(assessed(design), loss)["rows"])
    if flops is not None and not 1e15 <= flops <= 1e32:
        raise DesignError("flops", flops, "a number from 1e15 to 1e32")
    with blamed_on("flops"):
        return Table(by_scaling_laws(designed(design), flops)["rows"])


def posttrain(design: DesignLike) -> Described:
    """What fine-tuning, adapters, preference or policy training of a design takes: the trainer's
    plan, and the rollout's; step, memory, days and dollars, what was assumed and what has to be
    asked. `.as_dict()` is the JSON of `scantling design --json`.

    Raises DesignError for a wrong design, and for one whose `job.method` is pretrain.
    """
    tuned: Described = function("posttrain")(designed(design))
    return tuned


def predict(
    runs: "TableLike | DataFrame | Design | Assessment", calibration: str | Path | None = None
) -> "DataFrame | dict[str, Array]":
    """Predictions for rows in the run-table format; blank with an `error` where a row cannot be
    computed. None of the measured columns is read. A pandas DataFrame where pandas is installed,
    else a mapping of columns.

    runs : the path of a table, a frame, a mapping of columns, or a design or an assessment: the
    plans of its phases as rows. calibration : path of a calibration file.
    The columns are those of `scantling predict`: step_time_s [s], tokens_per_s_per_device,
    model_tflops_per_device, mfu with its 80 % band, hfu, memory_bytes, fits, days and cost_usd
    where the row has tokens and a price, what was assumed. A table of fine-tuning or policy
    training, known by its columns, has those of its own.
    Raises DesignError for what is no table of runs, and for a design that no row can say.
    """
    if isinstance(runs, (str, Path)):
        columns = answered(runs)
        if columns is not None:
            return frame_of_answers(columns) if has_pandas() else dict(columns)
    if isinstance(runs, (Design, Assessment)):
        runs = table_of_plans(planned(runs))
    return _predict(table_of_user(runs), calibration)


def search(
    design: DesignLike,
    space: Space | str | None = None,
    progress: Progress | None = None,
    scheduler: str | None = None,
) -> "DataFrame | Columns":
    """All fitting plans of a design's longest phase, best first: kinds of plan that have been run
    before others; of each, those with the allowed `oom_probability` by step time, then the rest by
    memory. A pandas DataFrame where pandas is installed, else a mapping of columns.

    space : the plans that are looked at, or their name (coarse, default, wide); the default space
    where left out.
    progress : function(done, of), may return False to end with what there is.
    scheduler : address of a Dask scheduler.

    Columns: the fields of a plan, precision, devices_used, step_s [s], tokens_per_s_per_device,
    mfu, memory_bytes, zone ("safe" | "tight"), oom_probability, practised (False for a kind of plan
    that nobody has published).
    `.attrs`: legal, evaluated (plans timed), seconds, rejected {reason: count}, unseen (legal plans
    not looked at); legal = fitting + rejected.
    Raises DesignError for a wrong design.

    >>> plans = search(Design.from_text("8B on 64 H100, 1T tokens"))
    >>> plans.attrs["legal"] == len(plans) + sum(plans.attrs["rejected"].values())
    True
    """
    return _search(designed(design), space, progress, scheduler)


def sensitivity(design: AssessmentLike, key: str = "step_s") -> Table:
    """What each input does to a headline quantity (a key of the assessment), the largest swing
    first. What moves nothing is left out.

    Raises DesignError for a wrong design and for a key that the assessment does not have.
    """
    return Table(tornado(assessed(design), key))


def sweep(
    design: DesignLike,
    over: Mapping[str, Iterable[Any]],
    *,
    together: bool = False,
    space: Space | str | None = None,
    progress: Progress | None = None,
    scheduler: str | None = None,
) -> Table:
    """Every combination of values, in order (the last path varies fastest), each assessed.

    over : {dotted path: values}. together : the first values of all paths are one copy, the second
    ones another, in place of every combination. progress : function(done, of), called as results
    come; it may raise to stop. scheduler : address of a Dask scheduler; without it everything runs
    here.
    Raises DesignError for a wrong design and for values that are no lists.

    >>> cells = sweep(Design.from_text("8B on 64 H100, 1T tokens"), {"cluster.devices": [64, 128]})
    >>> [cell.verdict for cell in cells], cells[0].figures["days"] > cells[1].figures["days"]
    (['feasible', 'feasible'], True)
    """
    return Table(
        _sweep(
            designed(design),
            over,
            together=together,
            space=space,
            progress=progress,
            scheduler=scheduler,
        )
    )


def blueprint(design: AssessmentLike, parts: Iterable[str] | None = None) -> Described:
    """The site around a design: network, placement, planes, scheduler, stores, domains, recovery,
    risks, roll-out, evolution, calendar; a record with `as_dict`.

    parts : the names of some of them; all where it is left out.
    Raises DesignError for a wrong design and for a part that there is not.

    >>> site = blueprint(Design.from_text("8B on 64 H100, 1T tokens"), ["network"])
    >>> list(site.as_dict(["network"]))
    ['network']
    """
    assessment = assessed(design)
    site: Described = function("blueprint")(assessment, *([] if parts is None else [parts]))
    return site


def goodput(design: AssessmentLike) -> Figures:
    """Failures, checkpoint interval, goodput, spares and the promise of a design: the keys of
    `goodput --json`.

    Raises DesignError for a wrong design and for one that no plan holds.
    """
    return Figures(function("goodput")(planned(design)))


def launch(design: AssessmentLike, to: str, on: str = "torchrun") -> dict[str, str]:
    """The files of a launch kit, relative path to text.

    to : the framework: megatron, megatron-bridge, torchtitan, fsdp, deepspeed, accelerate, maxtext,
    ddp. on : what starts the processes: torchrun, slurm, kubernetes.
    Raises DesignError for a wrong design, for one that no plan holds, for a framework or a
    scheduler that there is not, and where the framework has no plan that fits and keeps the
    constraints.
    """
    files: dict[str, str] = function("launch")(planned(design), to, on)
    return files


def learn(paths: str | Path | Iterable[str | Path]) -> Table:
    """What training logs say: one mapping a log, as `learn --json` prints it.

    paths : a log, a folder of logs, or several of them. A figure that a log does not hold is None.
    Raises DesignError for a named file that is no log of a known format.
    """
    return Table(function("learn")(paths))


def measure(
    *,
    quick: bool = False,
    accelerator: str | None = None,
    device: str | None = None,
    scale_out: float | None = None,
    only: Iterable[str] = (),
    store: str | Path | None = None,
    design: str | Path | None = None,
) -> Figures:
    """This machine's devices, timed: the calibration that `scantling measure -o FILE` writes, for
    `calibration` of a design.

    quick : fewer sizes. accelerator : what the device is in the catalogue, where its name does not
    tell. device : cuda or cpu. scale_out : network rate of a device [GB/s]. only : gemm, layer,
    memory, attention, launch, host, save, collectives. store : folder that a save is timed to.
    design : file whose model's matrix products are timed.
    Raises DesignError where PyTorch or the device is missing, and where nothing is left to time.
    """
    return Figures(
        function("measure")(quick, accelerator, device, scale_out, tuple(only), store, design)
    )


def ask(text: str) -> Figures:
    """A question in people's own words, answered: {question, command, unread, design, exit,
    answer}, as `ask --json` prints it. `answer` is the JSON of the command, None where `unread`
    has words to be settled first.

    Raises DesignError for a line that contradicts itself or holds nothing of a design.
    """
    return Figures(function("ask")(text))


def compare(designs: Iterable[AssessmentLike]) -> Comparison:
    """Designs side by side: what was asked where it differs, the plans, the figures.

    designs : two or more, each an Assessment or whatever `assess` takes.
    Raises DesignError for fewer than two and for a wrong design.

    >>> small = Design.from_text("8B on 64 H100, 1T tokens")
    >>> rows = compare([small, small.change({"cluster.devices": 128})]).as_dict()["rows"]
    >>> rows[0]["label"], rows[0]["values"]
    ('cluster.devices', (64, 128))
    """
    return _compare(map(assessed, designs))


def report(
    designs: str | Path | Iterable[str | Path],
    out: str | Path,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    pdf: bool = False,
    force: bool = False,
    full: bool = False,
) -> list[Path]:
    """Render designs as offline HTML reports, one page each, into the folder `out`.

    designs : the path of a design file, or several.
    workers, scheduler, pdf, force, full : as `scantling report` has them.
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
        files, out, workers=workers, scheduler=scheduler, pdf=pdf, force=force, full=full
    )
    return pages


def diff(before: DesignLike, after: DesignLike) -> Described:
    """What was asked differently of two designs, and what each change does to plan, verdict,
    memory, days, dollars and goodput: one at a time, the rest as interaction. `.as_dict()` is the
    JSON of `scantling diff --json`.

    Raises DesignError for a wrong design.
    """
    found: Described = function("diff")(designed(before), designed(after))
    return found


def lock(design: DesignLike) -> "Written":
    """The figures of a design with its inputs by hash, as `scantling lock` writes them:
    `.to_text()`.

    Raises DesignError for a wrong design.
    """
    written: Written = function("lock")(designed(design))
    return written


def check(
    paths: str | Path | Iterable[str | Path], *, tolerance: float = 0.0, locked: bool = False
) -> Table:
    """Every design under some files and folders held to its constraints and its lock:
    {file, verdict, passed, locked, findings}.

    tolerance : share by which a figure may move. locked : a design without a lock does not pass.
    Raises DesignError for a path that is not there; a wrong design is a row that does not pass.
    """
    some = [paths] if isinstance(paths, (str, Path)) else paths
    return Table(function("check")(some, tolerance=tolerance, locked=locked))


def trace(design: AssessmentLike) -> "Drawn":
    """The modelled step of a design: `.slices`, `.to_json()` for Perfetto and Chrome's viewer. Of
    one that tunes a trained model, the phases of trainer and engine or the parts of the step.

    Raises DesignError for a wrong design, for one that no plan holds, and for a step of more passes
    than a trace can show.
    """
    drawn: Drawn
    if not isinstance(design, Assessment) and is_posttraining(designed(design)):
        drawn = function("trace")(posttrain(design))
    else:
        drawn = function("trace")(planned(design))
    return drawn


def assess_many(
    source: str | Path,
    *,
    base: DesignLike | None = None,
    over: Mapping[str, Iterable[Any]] | None = None,
    space: str = "default",
    scheduler: str | None = None,
    progress: Progress | None = None,
    partial: str | Path | None = None,
) -> Table:
    """A row for each design of a folder, a design file or a table, in order: plan, figures,
    verdict, error.

    source : a folder of designs, one design, or a table (CSV, Parquet) whose columns are dotted
    paths of fields. base : the design that the rows of a table change. over : {dotted path:
    values}, every combination of each design. space : coarse, default or wide. scheduler : address
    of a Dask scheduler. progress : function(done, of), may return False to end with what there is.
    partial : file that keeps rows as they come, and from which a run goes on.
    Raises DesignError for a source that holds no design.
    """
    rows = function("assess_many")(
        str(source),
        base=base,
        over=over,
        space=space,
        scheduler=scheduler,
        progress=progress,
        partial=partial,
    )
    return Table(rows)
