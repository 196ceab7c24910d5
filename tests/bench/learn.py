"""What `learn` reaches: figures read, steps after one row, ratios of published runs, speed.

    python tests/bench/learn.py [FOLDER of logs with truth.csv] [FOLDER of run tables] [GIGABYTES]

One line a figure. Goals: `learn_goals`, with the tables of the second folder. Read: share of logs
whose stated figures are all within 3 %. After one peak of memory: the other peaks of its source.
Pairs: published rows of a source that differ in two or more settings. Dirt: variants of two logs.
"""

from __future__ import annotations

import csv
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import scantling as sc
from dirt import REFUSED, tried
from scantling import catalogue
from scantling.base.errors import DesignError
from scantling.endure.cost import Z80
from scantling.physics.memory.chance import spread
from scantling.physics.memory.constants import (
    calibration as memory_calibration,
    gather as memory_constants,
)
from scantling.physics.step import rates, step_time
from scantling.runs.read import read_runs
from scantling.runs.to_cases import to_runs
from scantling_logs.contents import number
from scantling_logs.peaks import WITHIN, moved_by_peaks, peak_bytes

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "logs")]
memory_fit = importlib.import_module("validation.memory_fit")
learn_goals = importlib.import_module("learn_goals")
SETTINGS = ["n_devices", "tp", "pp", "cp", "ep", "micro_batch", "global_batch_seqs", "seq_len"]
STATED = {
    "step_s": "step_s",
    "tokens_per_s_per_device": "tokens_per_s_per_device",
    "tflops_per_device_printed": "tflops_per_device",
    "peak_memory_gb": "peak_memory_gb",
    "n_devices": "devices",
    "seq_len": "seq_len",
    "global_batch": "global_batch",
    "restarts": "restarts",
}
PLAN = ("tp", "pp", "cp", "ep", "dp", "micro_batch")
STATED |= {name: name for name in PLAN}
LINE = (
    " [2025-12-22 15:18:{:02d}] iteration {:8d}/ 5000000 | consumed samples: {:12d} | "
    "elapsed time per iteration (ms): 9000.0 | throughput per GPU (TFLOP/s/GPU): 400.0 | "
    "global batch size:   512 | lm loss: 8.114214E+00 | grad norm: 0.042 |\n"
)


# a command, and the most memory that its process held [kB]: the kernel's ru_maxrss of a child
# counts what its parent held when it started it
PEAK = """
import sys
from scantling.cli import main
main(sys.argv[1:])
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0], file=sys.stderr)
"""


def tell(name: str, **figures) -> None:
    print(name, *(f"{k} {v:.4g}" for k, v in figures.items()), sep=" · ")


def reading(folder: Path) -> None:
    right, wrong = 0, []
    rows = list(csv.DictReader((folder / "truth.csv").open()))
    for row in rows:
        try:
            (got,) = sc.learn(folder / row["file"])
        except DesignError:
            got = {}
        silent = row["what_is_not_in_the_file"]
        off = []
        for stated, mine in STATED.items():
            value, found = number(row[stated]), got.get(mine)
            known = "plan" in silent and mine in PLAN or mine.split("_")[0] in silent
            if value == value and not known:
                near = found is not None and abs(found - value) <= 0.03 * abs(value)
                off += [] if near else [f"{mine} {found} not {value:g}"]
        right += not off
        wrong += [f"{row['file']}: {', '.join(off)}"] if off else []
    tell("read", files=len(rows), all_figures=right)
    print(*wrong, sep="\n")


def runs():
    frame = read_runs(catalogue.HERE / "published_runs.csv")
    good = (frame.trust != "low") & (frame.setup != "sparse")
    good &= frame.measured_tokens_per_s_per_device > 0
    return frame[good].reset_index(drop=True)


def dirt() -> None:
    """Variants of the logs beside this file that are read as the log itself, or refused in one
    line where they may be."""
    told = {}
    for path in (
        HERE / "data/torchtitan_qwen3_14b.log",
        HERE / "data/llama_factory_trainer_log.jsonl",
    ):
        with tempfile.TemporaryDirectory() as folder:
            result = tried(path.read_bytes(), Path(folder))
        told |= {(path.name, name): said for name, said in result.items()}
    wrong = {key: said for key, said in told.items() if said and key[1] not in REFUSED}
    tell("dirt", variants=len(told), right=len(told) - len(wrong))
    print(*(f"{file}: {name}: {said}" for (file, name), said in wrong.items()), sep="\n")


def pairs(frame) -> None:
    made = to_runs(frame)
    rows = frame[made.ready].reset_index(drop=True)
    told = np.log(np.ravel(rates(made.cases, step_time(made.cases).total).tokens_per_s))
    seen = np.log(rows.measured_tokens_per_s_per_device.to_numpy(float))
    settings, draw = rows[SETTINGS].to_numpy(float), np.random.default_rng(0)
    off, sign = [], []
    for _, at in rows.groupby(["source", "model"]).indices.items():
        a, b = draw.choice(at, 200), draw.choice(at, 200)
        differ = settings[a] != settings[b]
        two = (differ & np.isfinite(settings[a]) & np.isfinite(settings[b])).sum(axis=1) >= 2
        a, b = a[two], b[two]
        off += list(abs(np.expm1((told[a] - told[b]) - (seen[a] - seen[b]))))
        apart = abs(seen[a] - seen[b]) > 0.02
        sign += list((np.sign(told[a] - told[b]) == np.sign(seen[a] - seen[b]))[apart])
    tell("pairs", pairs=len(off), median=np.median(off), sign_right=np.mean(sign))


def after_peaks(most: int = 12) -> None:
    """The other peaks of a source after one of its peaks, each source as a stack that no fit has
    seen: of the same model, and of its other models."""
    rows = memory_fit.read(catalogue.HERE / "published_memory.csv")
    rows = rows.take(np.isfinite(rows.measured))
    names = read_runs(catalogue.HERE / "published_memory.csv").set_index("id").model
    model = names.reindex(rows.ids).to_numpy(str)
    pooled = {n: {"global": v["global"]} for n, v in memory_calibration()["offsets"].items()}
    usual, within = spread(), WITHIN
    cases = []
    for i, stack in enumerate(rows.stacks):
        case = rows.cases.take(slice(i, i + 1))
        own = replace(case.constants, memory=memory_constants(str(stack), pooled))
        cases.append(replace(case, constants=own))
    before = np.log(rows.measured / [peak_bytes(c) for c in cases])
    draw, off = np.random.default_rng(0), {"same": [], "other": []}
    for source in np.unique(rows.sources):
        at = np.flatnonzero(rows.sources == source)
        for i in draw.permutation(at)[:most] if at.size > 2 else ():
            weight = usual**2 / (usual**2 + within**2)
            moved = moved_by_peaks(cases[i], weight * before[i], weight)
            times = {n: c.value for n, c in moved.items()}
            for j in at[at != i]:
                after = np.log(rows.measured[j] / peak_bytes(cases[j], times))
                off["same" if model[i] == model[j] else "other"].append((before[j], after))
    half = Z80 * within * np.sqrt(1 + weight)
    for kind, pairs_ in off.items():
        was, now = abs(np.expm1(np.transpose(pairs_)))
        tell(
            f"after 1 peak, {kind} model",
            peaks=len(now),
            median=np.median(now),
            p90=np.quantile(now, 0.9),
            median_without=np.median(was),
            p90_without=np.quantile(was, 0.9),
            inside=np.mean(abs(np.transpose(pairs_)[1]) <= half),
        )


def speed(gigabytes: float) -> None:
    """Seconds and memory of a process of its own that reads a long log."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.out"
        with path.open("w") as file:
            step = 0
            while file.tell() < gigabytes * 1e9:
                file.writelines(LINE.format(i % 60, i, 512 * i) for i in range(step, step + 200))
                file.writelines(
                    "INFO a line that says nothing of the step at all\n" for _ in range(800)
                )
                step += 200
        began = time.monotonic()
        words = [sys.executable, "-c", PEAK, "learn", str(path), "--json"]
        done = subprocess.run(words, capture_output=True, text=True, env=os.environ, check=True)
        spent = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = {"seconds": spent, "processor_seconds": used.ru_utime + used.ru_stime}
    tell("long log", gigabytes=gigabytes, **seconds, megabytes=float(done.stderr) / 1e3)
    assert json.loads(done.stdout)[0]["step_s"] == 9.0


def main(argv: list[str]) -> None:
    folders = [Path(word) for word in argv if not word.replace(".", "").isdigit()]
    sizes = [float(word) for word in argv if word.replace(".", "").isdigit()]
    logs = next((folder for folder in folders if (folder / "truth.csv").is_file()), None)
    data = next((folder for folder in folders if folder != logs), None)
    learn_goals.main(data)
    if logs is not None:
        reading(logs)
    pairs(runs())
    after_peaks()
    dirt()
    speed(sizes[0] if sizes else 1.0)


if __name__ == "__main__":
    main(sys.argv[1:])
