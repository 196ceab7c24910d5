"""This kit, other planners and one line on the same published runs: `make leaderboard`.

Rows: counted runs of dense models on A100-80 (the one device for which each of them has a file or
nearly), at most EACH of a source, so that no sweep decides alone. This kit's answers are those with
the family of sources left out of the fit, as gallery/validation/validation.csv holds them; the
others run as they ship, each in its own folder and Python (tests/bench/peers.py says what their
files lack). A row without an answer counts as 100 %. Ranking: pairs of runs whose plans differ.

Writes gallery/validation/leaderboard.csv. A planner whose folder is not given is said, and keeps
the line that it had.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from zlib import crc32

import numpy as np
import pandas as pd
from scantling import catalogue
from scantling.runs.compare import baseline, spread
from scantling.runs.predict import predict_frame
from scantling.runs.read import read_runs
from scantling.runs.to_cases import to_runs
from speed import throughput
from validation.strangers import ranking
from validation.throughput_fit import counted

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "gallery/validation"
OUT, EACH = FOLDER / "leaderboard.csv", 6
PEERS = {"calculon": "CALCULON", "simumax": "SIMUMAX", "llm-analysis": "LLM_ANALYSIS"}
SHARDINGS, RECOMPUTES = ("none", "zero1", "zero2", "zero3", "hsdp"), ("none", "selective", "full")


def chosen() -> pd.DataFrame:
    """The runs that all are asked about."""
    frame = read_runs(catalogue.HERE / "published_runs.csv")
    frame = frame[counted(frame)]
    plain = (frame.accelerator == "a100-80-sxm") & ~(frame.moe_experts > 0)
    frame = frame[plain & (frame.cp.fillna(1) <= 1)]
    order = frame.id.map(lambda id: crc32(id.encode())).sort_values().index
    return frame.loc[order].groupby("source").head(EACH).sort_values("id").reset_index(drop=True)


def asked(frame: pd.DataFrame) -> list[dict]:
    """The rows with every setting that this kit gives them, printed or inferred."""
    runs = to_runs(frame)
    plan, job = runs.cases.plan, runs.cases.job
    columns = {k: getattr(plan, k) for k in "tp pp vpp dp sp micro_batch".split()}
    columns |= {"batch": job.global_batch, "seq_len": job.seq_len}
    ready = frame[runs.ready].reset_index(drop=True)
    for name in "layers hidden heads vocab".split():
        columns[name] = ready[name]
    columns["kv_heads"] = ready.kv_heads.fillna(ready.heads)
    columns["head_dim"] = ready.head_dim.fillna(ready.hidden // ready.heads)
    gated = ready.mlp.isin(("swiglu", "geglu"))
    wide = np.where(gated, np.round(8 * ready.hidden / 3 / 256) * 256, 4 * ready.hidden)
    columns["ffn_hidden"] = ready.ffn_hidden.fillna(pd.Series(wide))
    table = pd.DataFrame({k: np.broadcast_to(v, len(ready)) for k, v in columns.items()})
    rows = table.fillna(51200).astype(int).to_dict("records")
    words = zip(ready.id, gated, np.asarray(plan.sharding), np.asarray(plan.recompute))
    for row, (id, gate, sharding, recompute) in zip(rows, words):
        row |= dict(id=id, gated=bool(gate), sharding=SHARDINGS[int(sharding)])
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
    if name == "llm-analysis":
        code = f"import importlib.metadata as m; print(m.version({name!r}))"
        call = [os.environ.get("PEER_PYTHON") or sys.executable, "-c", code]
    else:
        call = ["git", "-C", folder, "log", "-1", "--format=%h of %cs"]
    return subprocess.run(call, capture_output=True, text=True).stdout.strip() or "not known"


def line(planner, version, frame, said, plans_per_s, how) -> dict:
    """One line of the board."""
    measured = pd.to_numeric(frame.measured_tokens_per_s_per_device)
    said = pd.to_numeric(pd.Series(said, dtype=float))
    off = said / measured - 1
    answered = off.notna()
    order = ranking(frame[answered], np.log(measured[answered]), np.log(said[answered]))
    found = spread(off)
    return dict(
        planner=planner,
        version=version,
        date=date.today().isoformat(),
        rows=len(frame),
        answered=int(answered.sum()),
        median=round(found["median"], 4),
        p90=round(found["p90"], 4),
        median_answered=round(off.abs().median(), 4),
        pairs=order["pairs"],
        right=round(order["right"], 4),
        ratio_off=round(order["ratio_off"], 4),
        plans_per_s=float(f"{plans_per_s:.3g}"),
        how=how,
        script="tests/bench/leaderboard.py",
    )


def main() -> int:
    """Ask everyone, write the board, print it."""
    frame = chosen()
    rows = asked(frame)
    kept = pd.read_csv(FOLDER / "validation.csv").set_index("id")
    got = predict_frame(frame)
    fast, _ = throughput(50_000)
    about = f"family of sources left out, table of {date.today().isoformat()}"
    board = [
        line("scantling", about, frame, kept.family_out.reindex(frame.id).to_numpy(), fast, "own"),
        line("one line", "", frame, baseline(got, frame).to_numpy(), np.nan, "half of peak"),
    ]
    before = pd.read_csv(OUT).to_dict("records") if OUT.is_file() else []
    for name, variable in PEERS.items():
        folder = os.environ.get(variable, "")
        if not folder or not Path(folder).is_dir():
            print(
                f"{name}: no folder in {variable}; its line is the one of before", file=sys.stderr
            )
            board += [row for row in before if row["planner"] == name]
            continue
        found = answers(name, folder, rows)
        said = [found["said"].get(id) for id in frame.id]
        rates = [x if isinstance(x, float) else np.nan for x in said]
        why = pd.Series([x for x in said if isinstance(x, str)]).value_counts().head(3)
        for reason, n in why.items():
            print(f"{name}: {n} rows unanswered: {reason}", file=sys.stderr)
        speed = len(rows) / max(found["seconds"], 1e-9)
        how = "as it ships, tests/bench/peers.py"
        board.append(line(name, version(name, folder), frame, rates, speed, how))
    table = pd.DataFrame(board)
    table.to_csv(OUT, index=False, lineterminator="\n")
    print(table.drop(columns=["how", "script"]).to_string(index=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
