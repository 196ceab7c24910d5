"""What `learn` reaches on runs that it has not seen: rows drawn at random DRAWN times, the others
foretold by what they tell.

Each goal is a line: error of tokens/s (median and 90th percentile of the other rows), share inside
the 80 % band and its width, as the median over the draws, the worst tenth of draws beside it, and
what it was without the rows. The rows that are drawn are learnt from as `scantling learn` does
(`learned.fitted`), the others foretold as `predict --calibration` does; only reading and writing of
tables is left out, so that 50 draws of every source take minutes.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scantling import catalogue
from scantling.physics.calibration_file import times
from scantling.physics.cases import Cases
from scantling.physics.learned import BENDS, Learned, Marks, priors, told
from scantling.physics.step import rates, step_time
from scantling.runs.predict import predicted_of
from scantling.runs.read import read_runs
from scantling.runs.to_cases import to_runs
from scantling_logs.point import marks_of

DRAWN = 50
HEALTHY = 130.0, 400.0  # GB/s of all-reduce over all devices, and in a node
SMALL = 16  # devices of two nodes
CELL = [
    "model",
    "accelerator",
    "n_devices",
    "tp",
    "pp",
    "vpp",
    "ep",
    "micro_batch",
    "seq_len",
    "global_batch_seqs",
]


class Rows(NamedTuple):
    """Counted rows that have a case, with what is foretold of them without a measured step."""

    frame: pd.DataFrame
    cases: Cases
    marks: Marks
    usual: np.ndarray  # ln of foretold step [s]
    measured: np.ndarray  # ln of measured step [s]
    low: np.ndarray  # ln of the ends of the band on the step
    high: np.ndarray


class Score(NamedTuple):
    """The rows that were not drawn: ln of foretold over measured step with the drawn ones and
    without, and whether the measured one lies inside the band, and its width."""

    at: np.ndarray
    after: np.ndarray
    before: np.ndarray
    inside: np.ndarray
    width: np.ndarray


def read(path: Path) -> Rows:
    """The counted rows of a table of runs."""
    frame = read_runs(path)
    runs = to_runs(frame)
    rate = pd.to_numeric(frame.measured_tokens_per_s_per_device, errors="coerce").to_numpy()
    counted = frame.trust.isin(("high", "medium")) & (frame.setup != "sparse") & (rate > 0)
    predicted = predicted_of(runs, runs.cases)
    keep = counted.to_numpy()[runs.ready]
    frame = frame[runs.ready][keep].reset_index(drop=True)
    cases = runs.cases.take(keep)
    step_s = predicted.step_time_s[keep]
    foretold = rates(cases, step_s).tokens_per_s
    measured_s = step_s * foretold / rate[runs.ready][keep]
    mfu = predicted.mfu[keep]
    return Rows(
        frame,
        cases,
        marks_of(cases, np.asarray(runs.stacks[keep], object)),
        np.log(step_s),
        np.log(measured_s),
        np.log(mfu / predicted.mfu_high[keep]),
        np.log(mfu / predicted.mfu_low[keep]),
    )


class Drawn(NamedTuple):
    """Rows of one draw that are learnt from, and those that are foretold by them."""

    learnt: np.ndarray
    rest: np.ndarray


def of_most(rows: Rows, drawn: np.ndarray) -> np.ndarray:
    """Those of the drawn rows that are of the accelerator with most of them."""
    chips = rows.frame.accelerator.to_numpy(str)[drawn]
    names, counts = np.unique(chips, return_counts=True)
    return drawn[chips == names[counts.argmax()]]


def ln_step(rows: Rows, at: list[np.ndarray], sites: list[Learned]) -> list[np.ndarray]:
    """ln of the foretold step of some rows of each site, with its constants: all in one pass."""
    lengths = [len(each) for each in at]
    factors = {
        name: np.repeat([site.factors[name] for site in sites], lengths) for name in sites[0].names
    }
    cases = times(rows.cases.take(np.concatenate(at)), factors)
    ln = np.log(np.broadcast_to(step_time(cases).total, sum(lengths)))
    return np.split(ln, np.cumsum(lengths)[:-1])


def sites_of(rows: Rows, at: list[np.ndarray]) -> list[Learned]:
    """What the measured rows of each site tell, as `learned.fitted` has it, all in one pass."""
    constants = priors().constants
    names, sd = tuple(constants), np.array([*constants.values()])
    off = [rows.measured[each] - rows.usual[each] for each in at]
    runs = [rows.marks.take(each) for each in at]
    sites = [told(names, sd, *of)[0] for of in zip(runs, off)]
    for _ in range(BENDS):
        moved = ln_step(rows, at, sites)
        for i, site in enumerate(sites):
            bent = moved[i] - rows.usual[at[i]] - site.straight
            sites[i] = told(names, sd, runs[i], off[i] - bent)[0]
    return sites


def after(rows: Rows, draws: list[Drawn]) -> Score:
    """The rest of each of some sites by those that were drawn: by those of the accelerator with
    most of them."""
    learnt = [of_most(rows, drawn.learnt) for drawn in draws]
    sites = sites_of(rows, learnt)
    rest = [drawn.rest for drawn in draws]
    chips = rows.frame.accelerator.to_numpy()
    parts = []
    for site, own, at, ln in zip(sites, learnt, rest, ln_step(rows, rest, sites)):
        here = rows.marks.take(at)
        moved = ln - rows.usual[at] + site.unexplained_of(here)
        same = chips[at] == chips[own[0]]
        off = rows.usual[at] - rows.measured[at]
        now = off + np.where(same, moved, 0.0)
        width = np.where(same, site.narrowing_of(here), 1.0)
        low, high = rows.low[at] * width, rows.high[at] * width
        parts.append(Score(at, now, off, (-now >= low) & (-now <= high), high - low))
    return Score(*map(np.concatenate, zip(*parts)))


def error(ln: np.ndarray) -> np.ndarray:
    """Share by which tokens/s are off where the step is off by ln."""
    return np.abs(np.expm1(-ln))


def line(name: str, draws: list[Score]) -> None:
    """One goal."""
    after_, before = ([error(getattr(d, n)) for d in draws] for n in ("after", "before"))
    median, p90 = ([100 * np.quantile(e, q) for e in after_] for q in (0.5, 0.9))
    was = [100 * np.median([np.quantile(e, q) for e in before]) for q in (0.5, 0.9)]
    inside = [100 * d.inside.mean() for d in draws]
    width = np.median([np.median(d.width) for d in draws])
    worst = [100 * np.quantile([np.quantile(e, q) for e in after_], 0.9) for q in (0.5, 0.9)]
    print(
        f"{name} · rows {len(draws[0].after)} · {np.median(median):.1f} / {np.median(p90):.1f} % · "
        f"worst tenth of draws {worst[0]:.1f} / {worst[1]:.1f} · without {was[0]:.1f} / "
        f"{was[1]:.1f} · inside {np.median(inside):.0f} % (least tenth "
        f"{np.quantile(inside, 0.1):.0f}) · width {width:.2f}"
    )


def drawn_of(rows: Rows, pool: np.ndarray, rest: np.ndarray, count: int) -> list[Score]:
    """DRAWN draws of `count` rows of a pool, each with the rest of others."""
    draw = np.random.default_rng(0)
    scores = []
    for _ in range(DRAWN):
        chosen = draw.choice(pool, count, replace=False)
        scores.append(after(rows, [Drawn(chosen, np.setdiff1d(rest, chosen))]))
    return scores


def grid(path: Path) -> None:
    """Five runs of at most two nodes of the grid, then the others."""
    rows = read(path)
    frame = rows.frame
    over = frame.all_reduce_gbytes_per_s.ge(HEALTHY[0]) | frame.n_devices.le(8)
    healthy = (over & frame.all_reduce_in_node_gbytes_per_s.ge(HEALTHY[1])).to_numpy()
    narrow = frame.tp.le(8).to_numpy()
    small = frame.n_devices.le(SMALL).to_numpy()
    pool, every = np.flatnonzero(healthy & narrow & small), np.arange(len(frame))
    line("grid: 5 of two nodes, healthy, tp 8", drawn_of(rows, pool, every[healthy & narrow], 5))
    line("grid: the same, every row, all-reduce measured", drawn_of(rows, pool, every, 5))
    line("grid: 20 of them, healthy", drawn_of(rows, pool, every[healthy & narrow], 20))


def sources(rows: Rows, keys: list[str], count: int) -> list[Score]:
    """DRAWN draws of `count` rows of each group, each with the others of its group."""
    draw = np.random.default_rng(0)
    groups = [at for at in rows.frame.groupby(keys).indices.values() if len(at) > count]
    scores = []
    for _ in range(DRAWN):
        orders = [draw.permutation(at) for at in groups]
        scores.append(after(rows, [Drawn(o[:count], o[count:]) for o in orders]))
    return scores


def worse(rows: Rows, draws: list[Score], name: str) -> None:
    """Sources whose others are worse than without the drawn rows by more than a point: by the
    median over draws of the change of their median error."""
    change: dict[str, list[float]] = {}
    for draw in draws:
        source = rows.frame.source.to_numpy()[draw.at]
        now, was = error(draw.after), error(draw.before)
        table = pd.DataFrame({"now": now, "was": was}).groupby(source).median()
        for key, row in table.iterrows():
            change.setdefault(str(key), []).append(row.now - row.was)
    median = {key: float(np.median(values)) for key, values in change.items()}
    bad = sorted((k for k in median if median[k] > 0.01), key=lambda k: -median[k])
    print(
        f"{name}: {len(bad)} of {len(median)} sources worse by more than 1 point",
        *bad[:8],
        sep=" · ",
    )


def dispatchers(rows: Rows) -> None:
    """Three cells of experts over EFA, then the others of their source, and which dispatcher of a
    cell is said to be the faster."""
    counts = rows.frame.groupby("source").moe_dispatcher.nunique()
    for source in counts.index[counts > 1]:
        part = np.flatnonzero(rows.frame.source == source)
        draws = drawn_of(rows, part, part, 3)
        line(f"3 cells of {source[:40]}", draws)
        right = [order_right(rows, draw, draw.after) for draw in draws]
        was = [order_right(rows, draw, draw.before) for draw in draws]
        print(
            f"dispatcher right · {100 * np.median(right):.0f} % of pairs · worst tenth of draws "
            f"{100 * np.quantile(right, 0.1):.0f} · without {100 * np.median(was):.0f}"
        )


def order_right(rows: Rows, score: Score, off: np.ndarray) -> float:
    """Share of pairs of rows that differ in their dispatcher alone whose faster one is named."""
    frame = rows.frame.iloc[score.at]
    cell = frame[CELL].astype(str).agg(" ".join, axis=1).to_numpy()
    kind = frame.moe_dispatcher.to_numpy()
    measured = rows.measured[score.at]
    right = [
        (measured[i] - measured[j]) * (measured[i] + off[i] - measured[j] - off[j]) > 0
        for i in range(len(frame))
        for j in range(i)
        if cell[i] == cell[j] and kind[i] != kind[j]
    ]
    return float(np.mean(right)) if right else 1.0


def main(data: Path | None) -> None:
    """Every goal; those of the grid where a folder holds it."""
    if data is not None and (data / "nanotron_grid.csv").is_file():
        grid(data / "nanotron_grid.csv")
    own = data / "published_runs.csv" if data is not None else Path()
    rows = read(own if own.is_file() else catalogue.HERE / "published_runs.csv")
    dispatchers(rows)
    for count in (1, 3, 5):
        draws = sources(rows, ["source"], count)
        line(f"{count} of a source, its others", draws)
        worse(rows, draws, f"after {count}")
    for count in (1, 3):
        draws = sources(rows, ["source", "model", "accelerator", "precision"], count)
        line(f"{count} of a source, model, chip and precision, its others", draws)


if __name__ == "__main__":
    import sys

    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
