"""Records of published figures: points that were printed beside ours, and how near they come."""

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
from scantling.base.records import Rows, fields_of, record
from scantling.catalogue import HERE, read

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
    points: Callable[[], list]
    curves: Callable[[], Mapping]
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
    curves: Mapping

    @property
    def errors(self) -> np.ndarray:
        """Signed error of every point, in the figure's way."""
        published, ours = (
            np.array([getattr(p, k) for p in self.points], float) for k in ("published", "ours")
        )
        return ours - published if self.figure.absolute else ours / published - 1

    @property
    def counted(self) -> np.ndarray:
        """The errors that the bounds hold for."""
        return np.abs(self.errors[[p.counted for p in self.points]])

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
    def sources(self) -> tuple:
        """(paper, places, address), each once."""
        found = {}
        for p in self.points:
            found.setdefault((p.title, p.url), {})[p.locator] = None
        return tuple((title, ", ".join(places), url) for (title, url), places in found.items())

    def table(self):
        """The points as a pandas DataFrame: series, x, published, ours, error, counted, read,
        locator."""
        import pandas as pd

        rows = [vars(p) | {"error": e} for p, e in zip(self.points, self.errors)]
        return pd.DataFrame(rows)[
            ["series", "x", "published", "ours", "error", "counted", "read", "locator", "why"]
        ]


@cache
def printed(figure: str) -> Rows:
    """Rows of published_figures.csv for one figure; `given` as a mapping, numbers as numbers."""
    rows = [r for r in read(HERE / "published_figures.csv", None) if r["figure"] == figure]
    return tuple(
        r
        | {
            "x": _number(r["x"]),
            "value": float(r["value"]),
            "given": {k: _number(v) for k, v in (p.split("=") for p in r["given"].split())},
        }
        for r in rows
    )


def point(row: dict, ours: float) -> Point:
    """A row of `printed` beside ours; rows marked left_out are shown, not counted."""
    given = row["given"]
    return Point(
        published=row["value"],
        ours=float(ours),
        url=row["source"],
        counted=not given.get("left_out"),
        why=str(given.get("why", "")).replace("_", " "),
        **fields_of(row, ("series", "x", "title", "locator", "read")),
    )


def points_of(figure: str, ours: Callable[[dict], float]) -> list:
    """A Point for each printed row, ours from the row."""
    return [point(r, ours(r)) for r in printed(figure)]


def drawn(figure: str, ours: Callable[[dict], float], axis) -> dict:
    """Ours over an axis for each printed series, given what its first row was, where it is above
    0: {series: (x, y)}."""
    out = {}
    for row in printed(figure):
        if row["series"] not in out:
            y = np.array([ours(row | {"x": x}) for x in axis])
            out[row["series"]] = axis[y > 0], y[y > 0]
    return out


def _number(text: str):
    try:
        return float(text)
    except ValueError:
        return text
