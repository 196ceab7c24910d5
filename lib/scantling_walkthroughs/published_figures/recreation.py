"""Records of published figures: points that were printed beside ours, and how near they come."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scantling.base.columns import Array
from scantling.base.records import record
from scantling.catalogue import HERE, read
from scantling.catalogue.load import filled

if TYPE_CHECKING:
    from pandas import DataFrame

READ = {"printed": "printed in the source", "quoted": "quoted by another text"}


@record
class Point:
    """One published value and ours.

    series, x : which curve, and where on it (a number, or a name where the axis has names).
    published, ours : [unit of the figure].
    counted : False where the two are shown but not held against each other, for the reason in
    `why`.
    title, locator, url, read : paper, table or section, address, and how it was had, a key of READ.
    """

    series: str
    x: float | str
    published: float
    ours: float
    title: str
    locator: str
    url: str
    read: str = "printed"
    counted: bool = True
    why: str = ""


Curves = Mapping[str, tuple[Array, Array]]  # by series: x, y


@record
class PrintedValue:
    """A row of published_figures.csv: a printed value and what it was taken at; a number that the
    row does not state is nan, a word is empty."""

    figure: str
    series: str
    x: float | str
    value: float  # unit of the figure
    title: str
    locator: str
    source: str
    read: str
    stages: float
    micro_batches: float  # of a pipeline in a step
    forward_ms: float  # ms
    backward_ms: float  # ms, gradient of the inputs alone
    weight_gradient_ms: float  # ms
    transfer_ms: float  # ms
    model: str
    params: float
    layers: float
    hidden: float
    heads: float
    micro_batch: float  # sequences
    seq_len: float  # tokens
    tp: float
    recompute_before: str
    recompute_after: str
    sp_before: bool
    sp_after: bool
    sharding: str
    law: str
    tokens_per_s: float  # tokens/s of a device
    tflops: float  # TFLOP/s of a device
    devices: float
    base_devices: float
    failure_preset: str
    failures_per_1000_node_days: float
    failure_chance: float  # of a machine in one window
    formula: str
    restart_min: float  # min
    stall_min: float  # min
    interval_min: float  # min
    save_min: float  # min
    loss_min: float  # min
    replicas: float
    left_out: bool
    why: str

    @property
    def at(self) -> float:
        """Where it stands on an axis of numbers."""
        return float(self.x)


def no_curves() -> Curves:
    """Nothing between the points."""
    return {}


@record
class Figure:
    """A published figure or table: what it shows, the formula behind ours, and the bounds on the
    error.

    Attributes
    ----------
    id, title, formula : str
        Name, what is shown, the formula in words.
    basis : str
        What stands behind ours: closed form, kernels (constants of the kit), runs (whole steps).
    x, quantity, unit : str
        Axis, what is compared, its unit ("1" for a share).
    absolute : bool
        True where the error is ours − published, else ours / published − 1.
    median, worst : float
        Bounds that the median and the largest error keep.
    fitted : bool
        True where the constants were fitted on these very runs; closed forms have nothing to fit.
    misses : str
        Where and why ours differs most; empty where nothing stands out.
    points : callable
        () -> list of Point.
    curves : callable, optional
        () -> {series: (x, y)}: ours between the points.
    log : str
        Axes drawn logarithmically: "", "x", "y" or "xy".
    missed : bool
        True where the model is known not to reproduce it, for the reason in `misses`: shown all the
        same, with the bounds it ought to keep.
    """

    id: str
    title: str
    formula: str
    basis: str
    x: str
    quantity: str
    unit: str
    median: float
    worst: float
    points: Callable[[], list[Point]]
    curves: Callable[[], Curves] = no_curves
    absolute: bool = False
    fitted: bool = False
    misses: str = ""
    log: str = ""
    missed: bool = False


@record
class Recreation:
    """A figure with its points computed."""

    figure: Figure
    points: tuple[Point, ...]
    curves: Curves

    @property
    def errors(self) -> Array:
        """Signed error of every point, in the figure's way."""
        published = np.array([p.published for p in self.points], float)
        ours = np.array([p.ours for p in self.points], float)
        return np.asarray(ours - published if self.figure.absolute else ours / published - 1)

    @property
    def counted(self) -> Array:
        """The errors that the bounds hold for."""
        return np.asarray(np.abs(self.errors[[p.counted for p in self.points]]))

    @property
    def median_error(self) -> float:
        return float(np.median(self.counted))

    @property
    def worst_error(self) -> float:
        return float(np.max(self.counted))

    @property
    def holds(self) -> bool:
        """True where median and largest error keep the bounds of the figure."""
        return self.median_error <= self.figure.median and self.worst_error <= self.figure.worst

    @property
    def sources(self) -> tuple[tuple[str, str, str], ...]:
        """(paper, places, address), each once."""
        places: dict[tuple[str, str], dict[str, None]] = {}
        for p in self.points:
            places.setdefault((p.title, p.url), {})[p.locator] = None
        return tuple((title, ", ".join(names), url) for (title, url), names in places.items())

    def table(self) -> "DataFrame":
        """The points as a pandas DataFrame: series, x, published, ours, error, counted, read,
        locator."""
        import pandas as pd

        rows = [vars(p) | {"error": e} for p, e in zip(self.points, self.errors)]
        return pd.DataFrame(rows)[
            ["series", "x", "published", "ours", "error", "counted", "read", "locator", "why"]
        ]


@cache
def printed_values(figure: str) -> tuple[PrintedValue, ...]:
    """Rows of published_figures.csv for one figure."""
    rows = filled(PrintedValue, read(HERE / "published_figures.csv", None), ("date", "verified"))
    return tuple(replace(row, x=_number(str(row.x))) for row in rows if row.figure == figure)


def point(row: PrintedValue, ours: float) -> Point:
    """A printed row beside ours; rows marked left_out are shown, not counted."""
    return Point(
        series=row.series,
        x=row.x,
        published=row.value,
        ours=float(ours),
        title=row.title,
        locator=row.locator,
        url=row.source,
        read=row.read,
        counted=not row.left_out,
        why=row.why,
    )


def points_of(figure: str, ours: Callable[[PrintedValue], float]) -> list[Point]:
    """A Point for each printed row, ours from the row."""
    return [point(row, ours(row)) for row in printed_values(figure)]


def curves_through(figure: str, ours: Callable[[PrintedValue], float], axis: Array) -> Curves:
    """Ours over an axis for each printed series, given what its first row was, where it is above
    0."""
    curves = {}
    for row in printed_values(figure):
        if row.series not in curves:
            y = np.array([ours(replace(row, x=float(x))) for x in axis])
            curves[row.series] = axis[y > 0], y[y > 0]
    return curves


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
