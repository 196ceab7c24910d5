"""Choices that no other choice beats in everything, and a few that differ, to be measured and read
back."""

import csv
import io
from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations
from math import inf
from pathlib import Path

import numpy as np

from ..base.errors import plain
from ..base.files import read_text, write_text
from ..physics.cases import devices
from ..plans.evaluate import Found
from ..plans.leaderboard import listed
from ..plans.words import KEYS, pins_of
from ..verdict.assess import assess
from ..verdict.record import Assessment

BESIDE = ("recompute_layers", "recompute_modules", "layer_split", "layout", "precision")
FIELDS = tuple(k for k in KEYS if k not in BESIDE)
NUMBERS = ("measured_step_s", "predicted_step_s", "measured_memory_gb")
MEASURED = ("measured_step_s", "measured_memory_gb", "measured_note")
WITHIN = 0.25  # of the fastest step, by which a candidate is longer at most
# two candidates of one family differ in tuning only
FAMILY = ("tp", "cp", "pp", "ep", "sharding", "recompute")


def undominated(columns) -> np.ndarray:
    """Indices of the rows that no other row beats or equals in every column while beating it in
    one; smaller is better. [columns: (n, k)]

    Rows with a value that is not finite never count. Equal rows: the first one stays.
    """
    values = np.asarray(columns, float)
    rows = np.flatnonzero(np.isfinite(values).all(axis=1))
    # a row can only be beaten by one that comes before it, so the first of the rest stays
    rows = rows[np.lexsort(values[rows].T[::-1])]
    kept = []
    while len(rows):
        kept.append(int(rows[0]))
        rows = rows[np.any(values[rows] < values[rows[0]], axis=1)]
    return np.array(kept, int)


def plan_front(found: Found) -> np.ndarray:
    """Rows of one search that no other plan beats in step time, memory and devices used, fastest
    first; with the allowed chance of going out of memory, where the best has it."""
    best = found.best()
    allowed = found.practised & (found.roomy | (best is None or not found.roomy[best]))
    rows = found.order[allowed[found.order]]
    rows = rows[np.argsort(found.step_s[rows], kind="stable")]
    figures = (found.step_s, found.total_bytes, devices(found.plan))
    return rows[undominated(np.stack([column[rows] for column in figures], axis=1))]


def fronts(designs, *, progress=None) -> list:
    """Designs on the front of (days, dollars, devices, memory used), fastest first: [{design, days,
    cost_usd, devices, memory_share, verdict, plan}].

    designs : changed copies of one design, with tokens. Where no price is known, device-hours stand
    in for dollars (the machine is the same).
    A design may bring one choice for its fastest plan and others for roomier plans: for each, the
    front of its own search is taken.
    """
    out = []
    for i, design in enumerate(designs, 1):
        a = assess(design)
        if a.fits and a.days is not None:
            out += _choices(a)
        if progress:
            progress(i, len(designs))
    axes = ("days", "cost_usd", "devices", "memory_share")
    return [out[i] for i in undominated([[o[k] for k in axes] for o in out])] if out else []


def _choices(a: Assessment) -> Iterator:
    """The front of an assessed design's own search; the chosen plan alone where only it adds up to
    the days."""
    found = a.chosen.found
    chosen = a.chosen
    have = a.resolved.cluster.devices
    alone = len(a.phases) == 1 and not a.resolved.measured
    price = a.days * 24 * have if a.cost_usd is None else a.cost_usd
    for row in plan_front(found).tolist() if alone else [chosen.row]:
        ratio = float(found.step_s[row] / found.step_s[chosen.row])
        yield {
            "design": a.design,
            "days": a.days * ratio,
            "cost_usd": price * ratio,
            "priced": a.cost_usd is not None,
            "devices": have,
            "memory_share": float(found.total_bytes[row] / chosen.memory.capacity),
            "verdict": a.verdict,
            "plan": found.row(row),
            "step_s": chosen.step_s * ratio,
        }


def diverse(found: Found, count: int = 8) -> np.ndarray:
    """Rows of the best plans that differ in kind: the fastest of each family (FAMILY) within a
    share WITHIN of the winner's time, fastest first.

    A measured sweep over these tells more than one over the leaderboard's top, whose rows differ in
    one setting that costs nothing.
    """
    rows = found.order
    if not len(rows):
        return rows
    rows = rows[found.roomy[rows] == found.roomy[rows[0]]]
    rows = rows[found.step_s[rows] <= found.step_s[rows[0]] * (1 + WITHIN)]
    _, first = np.unique(
        np.stack([found.column(name)[rows] for name in FAMILY]), axis=1, return_index=True
    )
    return rows[np.sort(first)][:count]


def export(found: Found, path, count: int = 8) -> Path:
    """Write diverse candidates as CSV: rank, plan, predicted step [s], MFU and memory [GB], and
    empty columns for what is measured."""
    rows = diverse(found, count)
    table = listed(found, rows)
    path = Path(path)
    columns = {name: table[name] for name in FIELDS} | {
        "recompute_layers": [found.row(int(i))["recompute_layers"] for i in rows],
        "predicted_step_s": [f"{x:.6g}" for x in table["step_s"]],
        "predicted_mfu": [f"{x:.4f}" for x in table["mfu"]],
        "predicted_memory_gb": [f"{x / 1e9:.4g}" for x in table["memory_bytes"]],
    }
    out = io.StringIO()
    w = csv.writer(out, lineterminator="\n")
    w.writerow(["rank", *columns, *MEASURED])
    w.writerows((i, *row, *[""] * len(MEASURED)) for i, row in enumerate(zip(*columns.values()), 1))
    write_text(path, out.getvalue(), force=True)
    return path


def read_back(path) -> dict:
    """What a measured sweep says: {rows, ratio, ranked, agreement, best, calibration}.

    rows : the file's rows with measured_step_s, as dicts, fastest measured first; ratio : measured
    over predicted step of each;
    agreement : share of pairs that the prediction put in the measured order (None below two); best
    : the plan to pin;
    calibration : the median ratio, to multiply predicted steps of this machine and stack by.
    Raises ValueError where no row has been measured or a measured value is no positive number.
    """
    text = read_text(path, "a table of candidates as CSV")
    rows = []
    for number, row in enumerate(csv.DictReader(io.StringIO(text, newline="")), 2):
        said = {name: (row.get(name) or "").strip() for name in NUMBERS}
        if said["measured_step_s"]:
            where = f"{path}, line {number}"
            figures = {k: _positive(v, where, k) for k, v in said.items() if v}
            rows.append(row | {"measured_memory_gb": None} | figures)
    if not rows:
        raise ValueError(f"{path}: no row has a measured_step_s")
    rows.sort(key=lambda r: r["measured_step_s"])
    steps = [(r["measured_step_s"], r["predicted_step_s"]) for r in rows]
    ratio = [measured / predicted for measured, predicted in steps]
    ordered = [p <= q for (m, p), (n, q) in combinations(steps, 2) if m < n]
    return {
        "rows": rows,
        "ratio": ratio,
        "agreement": sum(ordered) / len(ordered) if ordered else None,
        "best": pins_of(rows[0]),
        "calibration": float(np.median(ratio)),
    }


def _positive(text: str, where: str, column: str) -> float:
    """The positive number that a cell says. Raises ValueError, saying where, for what is none."""
    with suppress(ValueError):
        if 0 < float(text) < inf:
            return float(text)
    unit = "seconds" if column.endswith("_s") else "GB"
    raise ValueError(f"{where}: {column} is {plain(text)!r}; a positive number of {unit} is needed")
