"""This kit, other planners and one line on the same measured runs: `make leaderboard`.

Three sets. "published, A100-80": counted runs of dense models on the one device for which each of
them has a file or nearly, at most EACH of a source, whole groups that rank plans first; this kit's
answers are those with the family of sources left out of the fit, as gallery/validation/
validation.csv holds them. "grid, H100": runs of the public grid of nanotron on a healthy network,
at most CELLS a model and number of devices. "dispatchers over EFA": experts on H100. No run of the
second is in a fit of this kit; of the third its answers are those with the family left out. The
others run as they ship, each in its own folder and Python (tests/bench/peers.py says what their
files lack). Runs whose sharding a planner has no word for (SHARED) are left out for all. A row
without an answer counts as 100 %.

Scaled: after one factor on all answers of a planner, for each row the median of measured / said
over the other families (models, in the grid and over EFA) of the set: the same rows train it for
everybody.

Writes gallery/validation/leaderboard.csv. A planner whose folder is not given is said, and keeps
the lines that it had.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd
from scantling import catalogue
from scantling.runs.accuracy import baseline, spread
from scantling.runs.predict import predict_frame
from scantling.runs.read import read_runs
from scantling.runs.to_cases import to_runs
from speed import throughput
from validation.strangers import healthy, pairs
from validation.throughput_fit import counted

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "gallery/validation"
OUT = FOLDER / "leaderboard.csv"
EACH = 24  # runs of a source
CELLS = 14  # runs of a model and number of devices of the grid
# a planner: where its folder is named
PEERS = {
    "calculon": "CALCULON",
    "simumax": "SIMUMAX",
    "llm-analysis": "LLM_ANALYSIS",
    "llm-analysis (repository)": "LLM_ANALYSIS_GIT",
}
SHARDINGS, RECOMPUTES = ("none", "zero1", "zero2", "zero3", "hsdp"), ("none", "selective", "full")
SHARED = ("", "none", "zero1")  # shardings that every planner has
PUBLISHED, GRID_SET, EFA = "published, A100-80", "grid, H100", "dispatchers over EFA, H100"
ALIKE = ["source", "model", "accelerator", "n_devices", "seq_len"]  # runs that rank plans


class Asked(NamedTuple):
    """A set of runs, and what this kit says of them."""

    name: str
    frame: pd.DataFrame
    own: np.ndarray  # tokens/s per device
    trains: np.ndarray  # what a scale leaves out together
    about: str


def by_hash(ids: pd.Series) -> pd.Series:
    """A number of each id that has nothing to do with the run."""
    return ids.map(lambda id: crc32(str(id).encode()))


def chosen() -> pd.DataFrame:
    """The published runs that all are asked about: of each source whole groups of runs that rank
    plans, until EACH."""
    frame = read_runs(catalogue.HERE / "published_runs.csv")
    frame = frame[counted(frame)]
    plain = (frame.accelerator == "a100-80-sxm") & ~(frame.moe_experts > 0)
    plain &= frame.sharding.fillna("").isin(SHARED) & (frame.cp.fillna(1) <= 1)
    frame = frame[plain]
    size = frame.groupby(ALIKE).id.transform("size")
    group = by_hash(frame[ALIKE].astype(str).agg(" ".join, axis=1))
    order = pd.DataFrame({"size": -size.clip(upper=EACH), "group": group, "id": by_hash(frame.id)})
    frame = frame.loc[order.sort_values(["size", "group", "id"]).index]
    return frame.groupby("source").head(EACH).sort_values("id").reset_index(drop=True)


def of_grid() -> pd.DataFrame:
    """Runs of the grid on a healthy network with tp up to 8, at most CELLS of a cell."""
    frame = healthy()
    frame = frame[frame.sharding.fillna("").isin(SHARED)]
    frame = frame.loc[by_hash(frame.id).sort_values().index]
    few = frame.groupby(["model", "n_devices"]).head(CELLS)
    return few.sort_values("id").reset_index(drop=True)


def over_efa() -> pd.DataFrame:
    """Experts over EFA on H100, every dispatcher and micro-batch that was published."""
    frame = read_runs(catalogue.HERE / "published_runs.csv")
    frame = frame[frame.family.eq("aws efa moe") & frame.accelerator.eq("h100-sxm")]
    return frame.reset_index(drop=True)


def sets() -> list[Asked]:
    """The sets with this kit's own answers."""
    kept = pd.read_csv(FOLDER / "validation.csv").set_index("id").family_out
    published, grid, efa = chosen(), of_grid(), over_efa()
    said = predict_frame(grid).tokens_per_s_per_device.to_numpy(float)
    made = date.today().isoformat()
    left_out = f"family of sources left out, table of {made}"
    return [
        Asked(
            PUBLISHED,
            published,
            kept.reindex(published.id).to_numpy(),
            published.family.to_numpy(str),
            left_out,
        ),
        Asked(GRID_SET, grid, said, grid.model.to_numpy(str), f"no run in any fit, {made}"),
        Asked(
            EFA, efa, kept.reindex(efa.id).to_numpy(), efa.moe_dispatcher.to_numpy(str), left_out
        ),
    ]


def settings(frame: pd.DataFrame) -> list[dict]:
    """The rows with every setting that this kit gives them, printed or inferred."""
    runs = to_runs(frame)
    plan, job = runs.cases.plan, runs.cases.job
    columns = {k: getattr(plan, k) for k in ("tp", "pp", "vpp", "dp", "sp", "micro_batch")}
    columns |= {"batch": job.global_batch, "seq_len": job.seq_len}
    ready = frame[runs.ready].reset_index(drop=True)
    for name in ("layers", "hidden", "heads", "vocab"):
        columns[name] = ready[name]
    columns["kv_heads"] = ready.kv_heads.fillna(ready.heads)
    columns["head_dim"] = ready.head_dim.fillna(ready.hidden // ready.heads)
    gated = ready.mlp.isin(("swiglu", "geglu"))
    wide = np.where(gated, np.round(8 * ready.hidden / 3 / 256) * 256, 4 * ready.hidden)
    columns["ffn_hidden"] = ready.ffn_hidden.fillna(pd.Series(wide))
    experts = {"moe_experts": "experts", "moe_topk": "top_k", "moe_ffn_hidden": "expert_ffn_hidden"}
    columns |= {word: ready[name].fillna(0) for name, word in experts.items()}
    columns |= {"ep": plan.ep}
    table = pd.DataFrame({k: np.broadcast_to(v, len(ready)) for k, v in columns.items()})
    rows = table.fillna(51200).astype(int).to_dict("records")
    n = len(ready)
    shardings, recomputes = (np.broadcast_to(x, n) for x in (plan.sharding, plan.recompute))
    words = zip(ready.id, gated, shardings, recomputes, ready.accelerator)
    for row, (id, gate, sharding, recompute, chip) in zip(rows, words):
        row |= dict(id=id, gated=bool(gate), sharding=SHARDINGS[int(sharding)], chip=chip)
        row["recompute"] = RECOMPUTES[int(recompute)]
    return rows


def answers(name: str, folder: str, rows: list[dict]) -> dict:
    """What a planner says of the rows, in its own process."""
    python = os.environ.get("PEER_PYTHON") or sys.executable
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(
            [python, HERE / "peers.py", name, Path(folder).absolute()],
            input=json.dumps(rows),
            capture_output=True,
            text=True,
            cwd=scratch,
        )
    if done.returncode:
        raise SystemExit(f"{name} did not run: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout)


def version(name: str, folder: str) -> str:
    """Commit and date of a folder, or the version of a package."""
    if name == "llm-analysis":  # of the package index
        code = f"import importlib.metadata as m; print(m.version({name!r}))"
        call = [os.environ.get("PEER_PYTHON") or sys.executable, "-c", code]
    else:
        call = ["git", "-C", folder, "log", "-1", "--format=%h of %cs"]
    return subprocess.run(call, capture_output=True, text=True).stdout.strip() or "not known"


def scaled(said: pd.Series, measured: pd.Series, trains: np.ndarray) -> pd.Series:
    """The answers after one factor: for each row the median of measured / said over the rows that
    share none of its `trains`, or over all where there are none."""
    ratio = measured / said
    factor = pd.Series(1.0, said.index)
    for name in np.unique(trains):
        others = ratio[trains != name].dropna()
        factor[trains == name] = (others if len(others) else ratio.dropna()).median()
    return said * factor


def line(planner, version, asked: Asked, said, rows_per_s, plans_per_s, how) -> dict:
    """One line of the board."""
    frame = asked.frame
    measured = pd.to_numeric(frame.measured_tokens_per_s_per_device)
    said = pd.to_numeric(pd.Series(said, dtype=float))
    off = said / measured - 1
    answered = off.notna()
    found = spread(off)
    after = spread(scaled(said, measured, asked.trains) / measured - 1)
    row = dict(
        set=asked.name,
        planner=planner,
        version=version,
        date=date.today().isoformat(),
        rows=len(frame),
        answered=int(answered.sum()),
        median=round(found["median"], 4),
        p90=round(found["p90"], 4),
        median_answered=round(off.abs().median(), 4),
        scaled_median=round(after["median"], 4),
        scaled_p90=round(after["p90"], 4),
    )
    if answered.any():
        each = pairs(frame[answered], np.log(measured[answered]), np.log(said[answered]))
        right = np.sign(each.measured) == np.sign(each.said)
        apart = (each.said - each.measured).abs()
        row |= dict(
            pairs=len(each), right=round(right.mean(), 4), ratio_off=round(apart.median(), 4)
        )
    return row | dict(
        rows_per_s=_three(rows_per_s),
        plans_per_s=_three(plans_per_s),
        how=how,
        script="tests/bench/leaderboard.py",
    )


def _three(value: float) -> float:
    """Three digits."""
    return float(f"{value:.3g}")


def own_lines(asked: Asked, plans_per_s: float) -> list[dict]:
    """The lines of this kit and of one line of arithmetic."""
    start = time.process_time()
    got = predict_frame(asked.frame)
    rows_per_s = len(asked.frame) / (time.process_time() - start)
    half = baseline(got, asked.frame).to_numpy()
    return [
        line("scantling", asked.about, asked, asked.own, rows_per_s, plans_per_s, "own"),
        line("one line", "", asked, half, np.nan, np.nan, "half of peak"),
    ]


def peer_line(name: str, folder: str, asked: Asked) -> dict:
    """The line of another planner."""
    rows = settings(asked.frame)
    found = answers(name, folder, rows)
    said = [found["said"].get(id) for id in asked.frame.id]
    rates = [x if isinstance(x, float) else np.nan for x in said]
    why = pd.Series([x for x in said if isinstance(x, str)]).value_counts().head(3)
    for reason, n in why.items():
        print(f"{asked.name}: {name}: {n} rows unanswered: {reason}", file=sys.stderr)
    speed = len(rows) / max(found["seconds"], 1e-9)
    how = "as it ships, tests/bench/peers.py"
    return line(name, version(name, folder), asked, rates, speed, np.nan, how)


def main() -> int:
    """Ask everyone, write the board, print it."""
    fast, _ = throughput(50_000)
    before = pd.read_csv(OUT) if OUT.is_file() else pd.DataFrame(columns=["set", "planner"])
    board = []
    for asked in sets():
        board += own_lines(asked, fast)
        for name, variable in PEERS.items():
            folder = os.environ.get(variable, "")
            if folder and Path(folder).is_dir():
                board.append(peer_line(name, folder, asked))
                continue
            print(
                f"{name}: no folder in {variable}; its line is the one of before", file=sys.stderr
            )
            same = before[(before.planner == name) & (before.get("set") == asked.name)]
            board += same.to_dict("records")
    table = pd.DataFrame(board)
    table.to_csv(OUT, index=False, lineterminator="\n")
    print(table.drop(columns=["how", "script"]).to_string(index=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
