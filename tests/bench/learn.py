"""What `learn` reaches: figures read, steps after one row, ratios of published runs, speed.

    python tests/bench/learn.py [FOLDER of logs with truth.csv] [GIGABYTES]

One line a figure. Read: share of logs whose stated figures are all within 3 % (without a folder the
logs beside this file). After one and three rows, drawn six times: the other published rows of the
same source, model, chip and precision; and the other models of a source. After one peak of memory:
the other peaks of its source. Pairs: published rows of a source that differ in two or more
settings. Dirt: variants of two logs.
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
import yaml
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
from scantling.runs.predict import predict_frame
from scantling.runs.read import read_runs
from scantling.runs.to_cases import to_runs
from scantling_logs.contents import number
from scantling_logs.peaks import WITHIN, moved_by_peaks, peak_bytes
from scantling_logs.point import of_table
from scantling_logs.site import calibration

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "logs")]
memory_fit = importlib.import_module("validation.memory_fit")
DRAWS = 6
GROUP = ["source", "model", "accelerator", "precision"]
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


def points(frame):
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "runs.csv"
        frame.to_csv(table, index=False)
        return of_table(table)[1]


def after_rows(frame, count: int, most: int = 1) -> None:
    """The other rows of a group after `count` of its rows, `most` draws a group."""
    draw, off, inside, width, weight = np.random.default_rng(0), [], [], [], []
    for _, group in frame.groupby(GROUP):
        for _ in range(most if len(group) > count else 0):
            chosen = draw.permutation(len(group))
            own = points(group.iloc[chosen[:count]])
            if len(own) < count:
                continue
            with tempfile.TemporaryDirectory() as folder:
                site = Path(folder) / "site.yaml"
                site.write_text(yaml.safe_dump(calibration(own)))
                rest = group.iloc[chosen[count:]]
                told = predict_frame(rest, site)
            ratio = told.tokens_per_s_per_device.to_numpy(float)
            ratio = ratio / rest.measured_tokens_per_s_per_device.to_numpy(float)
            low, high = (told[n].to_numpy(float) / told.mfu.to_numpy(float) for n in BAND)
            here = np.isfinite(ratio)
            off += list(abs(ratio[here] - 1))
            inside += list((low * ratio <= 1)[here] & (high * ratio >= 1)[here])
            width += list((high - low)[here])
            weight += [1 / here.sum()] * int(here.sum())
    order = np.argsort(off)
    share = np.cumsum(np.array(weight)[order]) / sum(weight)
    at = {p: np.array(off)[order][np.searchsorted(share, p)] for p in (0.5, 0.9)}
    of_rows = np.quantile(off, (0.5, 0.9))
    tell(
        f"after {count} rows",
        rows=len(off),
        median=of_rows[0],
        p90=of_rows[1],
        median_by_group=at[0.5],
        p90_by_group=at[0.9],
        inside=np.mean(inside),
        width=np.median(width),
    )


BAND = ("mfu_low", "mfu_high")


def other_models(frame) -> None:
    """The other models of a source after one of its rows: a step of another model tells nothing by
    itself, so that they are foretold as without the log."""
    draw, was, now = np.random.default_rng(0), [], []
    for _, group in frame.groupby(["source", "accelerator"]):
        chosen = group.iloc[[draw.integers(len(group))]]
        rest = group[group.model != chosen.model.iloc[0]]
        own = points(chosen) if len(rest) else []
        if not own:
            continue
        with tempfile.TemporaryDirectory() as folder:
            site = Path(folder) / "site.yaml"
            site.write_text(yaml.safe_dump(calibration(own)))
            told = predict_frame(rest), predict_frame(rest, site)
        seen = rest.measured_tokens_per_s_per_device.to_numpy(float)
        for off, by in zip((was, now), told):
            off += list(abs(by.tokens_per_s_per_device.to_numpy(float) / seen - 1))
    here = np.isfinite(was)
    was, now = np.array(was)[here], np.array(now)[here]
    tell(
        "other models after 1 row",
        rows=len(was),
        worse=float(np.sum(now > was + 1e-3)),
        median=np.median(now),
        median_without=np.median(was),
    )


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
    told = np.log(np.ravel(rates(made.cases, step_time(made.cases).total)[0]))
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
    if argv:
        reading(Path(argv[0]))
    frame = runs()
    pairs(frame)
    for count in (1, 3):
        after_rows(frame, count, DRAWS)
    other_models(frame)
    after_peaks()
    dirt()
    speed(float(argv[1]) if len(argv) > 1 else 1.0)


if __name__ == "__main__":
    main(sys.argv[1:])
