"""How fast designs as code are: a diff of two 405B designs, a check of 200 designs, of designs all
of whose inputs moved, tables of designs in the coarse and the default space, each on two processes.
Beside the seconds of the clock stand those of the processors, which a busy machine does not change.

    python tests/bench/as_code.py [diff] [check] [moved] [coarse] [whole]
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from scantling.design.design import Design
from scantling.verdict.assess import assess
from scantling_code.lock import lock, lock_path, write_lock

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "gallery" / "designs"
DESIGNS = 200
MOVED = 26
COARSE, WHOLE = 400, 60  # rows of the tables


class Took(NamedTuple):
    """What a command took, its processes included. [s]"""

    clock_s: float
    processors_s: float

    def __str__(self) -> str:
        return f"{self.clock_s:.1f} s, {self.processors_s:.1f} s of processors"


def took(*arguments: object) -> Took:
    """Seconds of a command, whatever verdict it ends with."""
    start, before = perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "scantling", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Took(perf_counter() - start, used)


def diff(folder: Path) -> str:
    """Two designs of 405B that differ in five fields."""
    design = Design.read(GALLERY / "llama-3.1-405b.yaml")
    changes = {
        "cluster.devices": 8192,
        "cluster.scale_out": "ib-ndr",
        "job.global_batch": 1024,
        "job.tokens": 10e12,
        "plan.tp": 4,
    }
    design.write(folder / "a.yaml")
    design.change(changes).write(folder / "b.yaml")
    return f"{took('diff', folder / 'a.yaml', folder / 'b.yaml')}; bound 2 s"


def varied(count: int) -> list[Design]:
    """The designs of the gallery on many counts of devices."""
    designs = [Design.read(path) for path in sorted(GALLERY.glob("*.yaml"))]
    made = []
    for i in range(count):
        design = designs[i % len(designs)].change({"plan": None})
        devices = design.cluster.devices * (1 + i // len(designs))
        made.append(design.change({"cluster.devices": devices}))
    return made


def check(folder: Path) -> str:
    """Designs of which every fourth is locked."""
    for i, design in enumerate(varied(DESIGNS)):
        path = folder / f"{i:03}.yaml"
        design.write(path)
        if i % 4 == 0:
            write_lock(path, lock(design))
    return f"{DESIGNS} designs in {took('check', folder, '--jobs', 2)}; bound 60 s"


def moved(folder: Path) -> str:
    """Designs that are all locked, and under whose locks every constant and the chip's row moved:
    the most that the causes of a check can take."""
    for i, design in enumerate(varied(MOVED)):
        path = folder / f"{i:03}.yaml"
        design.write(path)
        one = assess(design)
        write_lock(path, lock(design))
        data = json.loads(lock_path(path).read_text())
        for values in (data["inputs"]["constants"], data["figures"].get("step_s", {})):
            for name, value in values.items():
                values[name] = value and value * 0.98
        chip = data["inputs"]["rows"].get(f"accelerators/{one.resolved.cluster.accelerator.id}")
        if chip is not None:
            chip["hbm_bytes_per_s"] *= 0.98
        lock_path(path).write_text(json.dumps(data))
    return f"{MOVED} designs in {took('check', folder, '--jobs', 2)}"


def many(folder: Path, space: str, rows: int) -> str:
    """Rows of dense and expert models on chips and counts of devices."""
    table = folder / "table.csv"
    chips = ("h100-sxm", "h200-sxm", "b200-sxm", "mi300x", "a100-80-sxm")
    models = ("llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "mixtral-8x22b")
    lines = ["model,cluster.accelerator,cluster.devices,job.tokens"]
    for i in range(rows):
        devices = 256 * (1 + i // 20)
        lines.append(f"{models[i % 4]},{chips[i // 4 % 5]},{devices},1e12")
    table.write_text("\n".join(lines) + "\n")
    base = folder / "base.yaml"
    Design.read(GALLERY / "llama-3.1-70b-128-h100.yaml").change({"plan": None}).write(base)
    out = folder / f"{space}.csv"
    one = took("assess-many", table, "--base", base, "-o", out, "--space", space, "--jobs", 2)
    on_two = rows / (one.processors_s / 2)
    return f"{rows} designs in {one}: {rows / one.clock_s:.1f} a second, {on_two:.1f} by processors"


PARTS = {
    "diff": diff,
    "check": check,
    "moved": moved,
    "coarse": lambda folder: many(folder, "coarse", COARSE) + "; bound 20 a second",
    "whole": lambda folder: many(folder, "default", WHOLE) + "; bound 3 a second",
}

if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in sys.argv[1:] or PARTS:
        with tempfile.TemporaryDirectory() as place:
            print(f"{name}: {PARTS[name](Path(place))}", flush=True)
