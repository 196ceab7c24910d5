"""Whether the order of `scantling measure --plan` narrows faster than a random one.

    python tests/bench/measure_order.py [DESIGN.yaml ...]

A site is drawn a thousand times: constants and what no constant explains by their spreads, then
what each measurement would read. After every measurement of an order the days are foretold by what
was read so far, and the mean absolute error of ln(days) over the sites is what is left. Narrowing
an hour: what an order has taken from that error at each of its measurements over the device-hours
that it has spent by then, the mean of its measurements. Beside it the same of random orders that
keep to the budget and the number.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import scantling as sc
from scantling.verdict.assess import assess
from scantling_logs.measure.worth import (
    MOST,
    Experiment,
    Field,
    experiments,
    field_of,
    order,
    target,
)

ROOT = Path(__file__).parents[2]
DESIGNS = ("llama-3.1-405b", "case-5-deepseek-v3", "nemotron-3-super-64-gb300")
SITES, ORDERS, BUDGET_H = 1000, 200, 2.0


def drawn(field: Field, draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """ln(days) of SITES sites, and what every figure reads there."""
    root = np.linalg.cholesky(field.prior + 1e-12 * np.eye(len(field.prior)))
    truth = draw.standard_normal((SITES, len(field.prior))) @ root.T
    read = truth + draw.standard_normal(truth.shape) * field.scatter
    return read[:, 0], read


def left(field: Field, sites: tuple[np.ndarray, np.ndarray], chosen: list[int]) -> float:
    """Mean error of ln(days) after some measurements."""
    days, read = sites
    rows = [row for i in chosen for row in field.of[i]]
    if not rows:
        return float(np.abs(days).mean())
    among = field.prior[np.ix_(rows, rows)] + np.diag(field.scatter[rows] ** 2)
    said = read[:, rows] @ np.linalg.solve(among, field.prior[0, rows])
    return float(np.abs(days - said).mean())


def per_hour(
    field: Field, sites: tuple[np.ndarray, np.ndarray], among: list[Experiment], chosen: list[int]
) -> float:
    """Narrowing of the error for a device-hour, the mean over the measurements of an order."""
    before = left(field, sites, [])
    hours = np.cumsum([among[i].device_hours for i in chosen])
    gone = [before - left(field, sites, chosen[: i + 1]) for i in range(len(chosen))]
    return float(np.mean(np.array(gone) / before / hours))


def random_order(among: list[Experiment], draw: np.random.Generator) -> list[int]:
    """Measurements at random, as many as the order may have, as far as the budget goes."""
    chosen: list[int] = []
    hours = 0.0
    for i in draw.permutation(len(among)):
        if len(chosen) < MOST and hours + among[i].hours <= BUDGET_H:
            chosen.append(int(i))
            hours += among[i].hours
    return chosen


def ratio(path: Path) -> tuple[float, float]:
    """Narrowing of the error for a device-hour by the order, and by random ones in the mean."""
    assessment = assess(sc.Design.read(path))
    among = experiments(assessment)
    field = field_of(target(assessment), among)
    draw = np.random.default_rng(0)
    sites = drawn(field, draw)
    own = per_hour(field, sites, among, order(field, among, BUDGET_H))
    others = [per_hour(field, sites, among, random_order(among, draw)) for _ in range(ORDERS)]
    return own, float(np.mean(others))


def main(paths: list[str]) -> None:
    """One line a design."""
    for path in paths or [str(ROOT / "gallery/designs" / f"{name}.yaml") for name in DESIGNS]:
        own, others = ratio(Path(path))
        print(
            f"{Path(path).stem} · {own:.2%} of the error a device-hour · random {others:.2%} · "
            f"{own / others:.1f} times"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
