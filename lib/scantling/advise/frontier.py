"""Choices that no other choice beats in everything, and a few that differ, to be measured and read
back."""

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import combinations
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..base.columns import Array
from ..base.errors import DesignError, plain
from ..base.files import read_table_text, write_text
from ..design.design import Design
from ..design.repriced import repriced
from ..physics.cases import devices
from ..plans.evaluate import Search
from ..plans.leaderboard import listed
from ..plans.plan_names import KEYS, pins_of
from ..plans.prepare import prepare
from ..plans.remote import Progress
from ..verdict.assess import assess
from ..verdict.assessment import Assessment
from .saving import fewer_that_keep

# fields of a plan that a table of candidates does not hold as they are
NOT_LISTED = ("recompute_layers", "recompute_modules", "layer_split", "layout", "precision")
FIELDS = tuple(key for key in KEYS if key not in NOT_LISTED)
NUMBERS = ("measured_step_s", "predicted_step_s", "measured_memory_gb")
MEASURED = ("measured_step_s", "measured_memory_gb", "measured_note")
WITHIN = 0.25  # of the fastest step, by which a candidate is longer at most
# two candidates of one family differ in tuning only
FAMILY = ("tp", "cp", "pp", "ep", "sharding", "recompute")
AXES = ("days", "cost_usd", "devices", "memory_share")  # of a front of designs
AROUND = (0.5, 0.75, 1.5, 2)  # times the devices of a design that its front is taken over
Row = dict[str, Any]


def undominated(columns: ArrayLike) -> Array:
    """Indices of the rows that no other row beats or equals in every column while beating it in
    one; smaller is better. [columns: (n, k)]

    Rows with a value that is not finite never count. Equal rows: the first one stays.
    """
    values = np.asarray(columns, float)
    rows = np.flatnonzero(np.isfinite(values).all(axis=1))
    # a row can only be beaten by one that comes before it, so the first of the rest stays
    rows = rows[np.lexsort(values[rows].T[::-1])]
    front = []
    while len(rows):
        front.append(int(rows[0]))
        rows = rows[np.any(values[rows] < values[rows[0]], axis=1)]
    return np.array(front, int)


def plan_front(search: Search) -> Array:
    """Rows of one search that no other plan beats in step time, memory and devices used, fastest
    first; with the allowed chance of going out of memory, where the best has it."""
    best = search.best()
    tight = best is None or not search.roomy[best]
    allowed = search.practised & (search.roomy | tight)
    rows = search.order[allowed[search.order]]
    rows = rows[np.argsort(search.step_s[rows], kind="stable")]
    figures = (search.step_s, search.total_bytes, np.asarray(devices(search.plan)))
    front: Array = rows[undominated(np.stack([column[rows] for column in figures], axis=1))]
    return front


def fronts(designs: Sequence[Design], *, progress: Progress | None = None) -> list[Row]:
    """Designs on the front of (days, dollars, devices, memory used), fastest first: [{design, days,
    cost_usd, likely, devices, memory_share, verdict, plan}].

    designs : changed copies of one design, with tokens. Where no price is known, device-hours stand
    in for dollars (the machine is the same).
    A design may bring one choice for its fastest plan and others for roomier plans: for each, the
    front of its own search is taken.
    """
    choices: list[Row] = []
    for i, design in enumerate(designs, 1):
        assessment = assess(design)
        if assessment.fits and assessment.days is not None:
            choices += _choices(assessment, assessment.days)
        if progress:
            progress(i, len(designs))
    if not choices:
        return []
    return [choices[i] for i in undominated([[row[k] for k in AXES] for row in choices])]


def front(
    design: Design, devices: Sequence[int] | None = None, *, progress: Progress | None = None
) -> list[Row]:
    """The front of a design over device counts, rows as of `fronts`. devices : the counts; half to
    twice the design's own, and the fewest that keep its deadline, where they are left out.

    Raises DesignError for a design without tokens.
    """
    resolved = prepare(design)
    if all(phase.tokens is None for phase in resolved.phases):
        raise DesignError(
            "job.tokens", allowed="tokens to train on: the front counts days", problem="is missing"
        )
    node = max(resolved.cluster.devices_per_node, 1)
    own = resolved.cluster.devices
    if devices is None:
        around = {max(node, round(own * times / node) * node) for times in AROUND}
        counts = sorted(around | {own} | fewer_that_keep(assess(design)))
        devices = [n for n in counts if _allowed(design, n)]
    return fronts([design.change(_of_so_many(design, n)) for n in devices], progress=progress)


def _of_so_many(design: Design, devices: int) -> dict[str, Any]:
    return repriced(design, {"cluster.devices": devices})


def _allowed(design: Design, devices: int) -> bool:
    """Whether a design, its pins among it, allows so many devices."""
    try:
        prepare(design.change({"cluster.devices": devices}))
    except DesignError:
        return False
    return True


def _choices(assessment: Assessment, days: float) -> Iterator[Row]:
    """The chosen plan, and those of the front of the design's own search that take longer; the
    chosen one alone where only it adds up to the days. A plan that is a little faster and less
    plain is what `design` names as the fastest, and no choice of its own."""
    chosen = assessment.chosen
    search = chosen.search
    have = assessment.resolved.cluster.devices
    alone = len(assessment.phases) == 1 and not assessment.resolved.measured
    cost = assessment.cost_usd
    likely = assessment.likely
    longer = [row for row in plan_front(search) if search.step_s[row] > search.step_s[chosen.row]]
    for row in [chosen.row, *map(int, longer)] if alone else [chosen.row]:
        ratio = float(search.step_s[row] / search.step_s[chosen.row])
        yield {
            "design": assessment.design,
            "days": days * ratio,
            "cost_usd": (days * 24 * have if cost is None else cost) * ratio,
            "likely": {
                "days": None if likely.days is None else likely.days * ratio,
                "cost_usd": None if likely.cost_usd is None else likely.cost_usd * ratio,
            },
            "priced": cost is not None,
            "devices": have,
            "memory_share": float(search.total_bytes[row] / chosen.memory.capacity),
            "verdict": assessment.verdict,
            "plan": search.row(row),
            "step_s": chosen.step_s * ratio,
        }


def diverse(search: Search, count: int = 8) -> Array:
    """Rows of the best plans that differ in kind: the fastest of each family (FAMILY) within a
    share WITHIN of the winner's time, fastest first.

    A measured sweep over these tells more than one over the leaderboard's top, whose rows differ in
    one setting that costs nothing.
    """
    rows = search.order
    if not len(rows):
        return rows
    rows = rows[search.roomy[rows] == search.roomy[rows[0]]]
    rows = rows[search.step_s[rows] <= search.step_s[rows[0]] * (1 + WITHIN)]
    families = np.stack([search.column(name)[rows] for name in FAMILY])
    _, first = np.unique(families, axis=1, return_index=True)
    kinds: Array = rows[np.sort(first)][:count]
    return kinds


def export(search: Search, path: str | Path, count: int = 8) -> Path:
    """Write diverse candidates as CSV: rank, plan, predicted step [s], MFU and memory [GB], and
    empty columns for what is measured."""
    rows = diverse(search, count)
    table = listed(search, rows)
    path = Path(path)
    columns: dict[str, Any] = {name: table[name] for name in FIELDS} | {
        "recompute_layers": [search.row(int(i))["recompute_layers"] for i in rows],
        "predicted_step_s": [f"{x:.6g}" for x in table["step_s"]],
        "predicted_mfu": [f"{x:.4f}" for x in table["mfu"]],
        "predicted_memory_gb": [f"{x / 1e9:.4g}" for x in table["memory_bytes"]],
    }
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["rank", *columns, *MEASURED])
    for rank, row in enumerate(zip(*columns.values()), 1):
        writer.writerow((rank, *row, *("" for _ in MEASURED)))
    write_text(path, out.getvalue(), force=True)
    return path


def read_back(path: str | Path) -> Row:
    """What a measured sweep says: {rows, ratio, ranked, agreement, best, calibration}.

    rows : the file's rows with measured_step_s, as dicts, fastest measured first; ratio : measured
    over predicted step of each;
    agreement : share of pairs that the prediction put in the measured order (None below two); best
    : the plan to pin;
    calibration : the median ratio, to multiply predicted steps of this machine and stack by.
    Raises ValueError where no row has been measured or a measured value is no positive number.
    """
    text = read_table_text(path, "a table of candidates as CSV")
    rows: list[Row] = []
    for number, row in enumerate(csv.DictReader(io.StringIO(text, newline="")), 2):
        cells = {name: (row.get(name) or "").strip() for name in NUMBERS}
        if cells["measured_step_s"]:
            place = f"{path}, line {number}"
            figures = {k: _positive(cell, place, k) for k, cell in cells.items() if cell}
            rows.append({**row, "measured_memory_gb": None, **figures})
    if not rows:
        raise ValueError(f"{path}: no row has a measured_step_s")
    rows.sort(key=lambda row: float(row["measured_step_s"]))
    steps = [(row["measured_step_s"], row["predicted_step_s"]) for row in rows]
    ratio = [measured / predicted for measured, predicted in steps]
    ordered = [p <= q for (m, p), (n, q) in combinations(steps, 2) if m < n]
    return {
        "rows": rows,
        "ratio": ratio,
        "agreement": sum(ordered) / len(ordered) if ordered else None,
        "best": pins_of(rows[0]),
        "calibration": float(np.median(ratio)),
    }


def _positive(text: str, place: str, column: str) -> float:
    """The positive number that a cell says. Raises ValueError, saying where, for what is none."""
    with suppress(ValueError):
        if 0 < float(text) < inf:
            return float(text)
    unit = "seconds" if column.endswith("_s") else "GB"
    raise ValueError(f"{place}: {column} is {plain(text)!r}; a positive number of {unit} is needed")
