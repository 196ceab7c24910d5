"""Choices that no other choice beats in everything, and a few that differ, to be measured and read
back."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from ..base.records import take
from ..physics.cases import devices
from ..physics.step import rates
from ..plans.run import Found
from ..plans.words import named
from ..verdict.assess import assess

FIELDS = (
    "tp",
    "cp",
    "pp",
    "vpp",
    "dp",
    "ep",
    "etp",
    "sp",
    "sharding",
    "shard_group",
    "schedule",
    "micro_batch",
    "grad_accum",
    "recompute",
    "cp_type",
    "offload",
)
MEASURED = ("measured_step_s", "measured_memory_gb", "measured_note")
FAMILY = (
    "tp",
    "cp",
    "pp",
    "ep",
    "sharding",
    "recompute",
)  # two candidates of one family differ in tuning only


def undominated(columns) -> np.ndarray:
    """Indices of the rows that no other row beats or equals in every column while beating it in
    one; smaller is better. [columns: (n, k)]

    Rows with a value that is not finite never count. Equal rows: the first one stays.
    """
    values = np.asarray(columns, float)
    rows = np.flatnonzero(np.isfinite(values).all(axis=1))
    rows = rows[
        np.lexsort(values[rows].T[::-1])
    ]  # a row can only be beaten by one that comes before it
    kept: list[int] = []
    for row in rows:
        front = values[kept]
        if not len(front) or not np.any(np.all(front <= values[row], axis=1)):
            kept.append(int(row))
    return np.array(kept, int)


def plan_front(found: Found) -> np.ndarray:
    """Rows of one search that no other plan beats in step time, memory and devices used, fastest
    first."""
    rows = found.order[found.practised[found.order]] if len(found.order) else found.order
    used = np.broadcast_to(devices(found.plan), found.fits.shape)[rows]
    return rows[undominated(np.stack([found.step_s[rows], found.total_bytes[rows], used], axis=1))]


def fronts(designs, *, progress=None) -> list[dict]:
    """Designs on the front of (days, dollars, devices, memory used), fastest first: [{design, days,
    cost_usd, devices, memory_share, verdict, plan}].

    designs : changed copies of one design, with tokens. Where no price is known, device-hours stand
    in for dollars (the machine is the same).
    A design may bring one choice for its fastest plan and others for roomier plans: for each, the
    front of its own search is taken.
    """
    out = []
    for i, design in enumerate(designs):
        a = assess(design)
        if a.fits and a.days is not None:
            found, chosen = a.chosen.found, a.chosen
            base_days, base_cost = a.days, a.cost_usd
            hours = base_days * 24 * a.resolved.cluster.devices
            alone = (
                len(a.phases) == 1 and not a.resolved.measured
            )  # else only the chosen plans add up to the days
            for row in plan_front(found) if alone else [chosen.row]:
                ratio = float(found.step_s[row] / found.step_s[chosen.row])
                out.append(
                    dict(
                        design=design,
                        days=base_days * ratio,
                        cost_usd=(base_cost if base_cost is not None else hours) * ratio,
                        priced=base_cost is not None,
                        devices=a.resolved.cluster.devices,
                        memory_share=float(found.total_bytes[row] / chosen.memory.capacity),
                        verdict=a.verdict,
                        plan=found.row(int(row)),
                        step_s=chosen.step_s * ratio,
                    )
                )
        if progress:
            progress(i + 1, len(designs))
    if not out:
        return []
    kept = undominated(
        [
            [
                o["days"],
                o["cost_usd"],
                o["devices"],
                o["memory_share"],
            ]
            for o in out
        ]
    )
    return [out[i] for i in kept]


def diverse(
    found: Found,
    count: int = 8,
    within: float = 0.25,
) -> np.ndarray:
    """Rows of the best plans that differ in kind: the fastest of each family (FAMILY) within a
    share of the winner's time, fastest first.

    A measured sweep over these tells more than one over the leaderboard's top, whose rows differ in
    one setting that costs nothing.
    """
    rows = found.order
    if not len(rows):
        return rows
    rows = rows[found.step_s[rows] <= found.step_s[rows[0]] * (1 + within)]
    families = np.stack(
        [
            np.broadcast_to(np.asarray(getattr(found.plan, name), float), found.fits.shape)[rows]
            for name in FAMILY
        ]
    )
    _, first = np.unique(
        families,
        axis=1,
        return_index=True,
    )
    return rows[np.sort(first)][:count]


def export(
    found: Found,
    path,
    count: int = 8,
) -> Path:
    """Write diverse candidates as CSV: rank, plan, predicted step [s], MFU and memory [GB], and
    empty columns for what is measured."""
    rows = diverse(found, count)
    plan = take(found.plan, rows)
    columns = named(plan, len(rows), found.situation.phase.global_batch)
    _, _, mfu = rates(found.situation.cases(plan), found.step_s[rows])
    header = (
        "rank",
        *FIELDS,
        "predicted_step_s",
        "predicted_mfu",
        "predicted_memory_gb",
        *MEASURED,
    )
    path = Path(path)
    with path.open("w", newline="") as f:
        w = csv.writer(f)
        w.writerow(header)
        for i, row in enumerate(rows):
            w.writerow(
                [
                    i + 1,
                    *(columns[k][i] for k in FIELDS),
                    f"{found.step_s[row]:.6g}",
                    f"{float(np.broadcast_to(mfu, len(rows))[i]):.4f}",
                    f"{found.total_bytes[row] / 1e9:.4g}",
                    "",
                    "",
                    "",
                ]
            )
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
    with Path(path).open(newline="") as f:
        every = list(csv.DictReader(f))
    rows = []
    for number, row in enumerate(every, 2):
        text = (row.get("measured_step_s") or "").strip()
        if not text:
            continue
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1.0
        if not (seconds > 0 and np.isfinite(seconds)):
            raise ValueError(
                f"{path}, line {number}: measured_step_s is {text!r}; a positive number "
                f"of seconds is needed"
            )
        rows.append(
            {
                **row,
                "measured_step_s": seconds,
                "predicted_step_s": float(row["predicted_step_s"]),
            }
        )
    if not rows:
        raise ValueError(f"{path}: no row has a measured_step_s")
    rows.sort(key=lambda r: r["measured_step_s"])
    ratio = [r["measured_step_s"] / r["predicted_step_s"] for r in rows]
    pairs = [
        (a, b)
        for i, a in enumerate(rows)
        for b in rows[i + 1 :]
        if a["measured_step_s"] < b["measured_step_s"]
    ]
    agreement = (
        sum(a["predicted_step_s"] <= b["predicted_step_s"] for a, b in pairs) / len(pairs)
        if pairs
        else None
    )
    return dict(
        rows=rows,
        ratio=ratio,
        agreement=agreement,
        best=pins_of(rows[0]),
        calibration=float(np.median(ratio)),
    )


def pins_of(row: dict) -> dict:
    """The plan of one exported row as pins for a design file."""
    whole = ("tp", "cp", "pp", "vpp", "dp", "ep", "etp", "micro_batch")
    pins = {k: int(float(row[k])) for k in whole}
    pins |= {k: row[k] for k in ("sharding", "schedule", "recompute", "offload")}
    pins["sp"] = row["sp"] in ("True", "true", "1")
    if row["sharding"] == "hsdp":
        pins["shard_group"] = int(float(row["shard_group"]))
    return pins
