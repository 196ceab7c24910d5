"""How fast designs as code are: a diff of two 405B designs, a check of 200 designs, tables of
designs in the coarse and the default space, each on two processes.

    python tests/bench/as_code.py [diff] [check] [coarse] [whole]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from scantling.design.design import Design
from scantling_code.lock import lock, write_lock

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "gallery" / "designs"
DESIGNS = 200
COARSE, WHOLE = 400, 60  # rows of the tables


def took(*arguments: object) -> float:
    """Seconds of a command, whatever it ends with. [s]"""
    start = perf_counter()
    command = [sys.executable, "-m", "scantling", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(done.stderr)
    return perf_counter() - start


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
    return f"{took('diff', folder / 'a.yaml', folder / 'b.yaml'):.2f} s; bound 2 s"


def check(folder: Path) -> str:
    """The designs of the gallery on many counts of devices, half of them locked."""
    designs = [Design.read(path) for path in sorted(GALLERY.glob("*.yaml"))]
    for i in range(DESIGNS):
        design = designs[i % len(designs)].change({"plan": None})
        devices = design.cluster.devices * (1 + i // len(designs))
        path = folder / f"{i:03}.yaml"
        design.change({"cluster.devices": devices}).write(path)
    write_lock(folder / "000.yaml", lock(Design.read(folder / "000.yaml")))
    return f"{DESIGNS} designs in {took('check', folder, '--jobs', 2):.1f} s; bound 60 s"


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
    seconds = took("assess-many", table, "--base", base, "-o", out, "--space", space, "--jobs", 2)
    return f"{rows} designs in {seconds:.1f} s, {rows / seconds:.1f} a second"


PARTS = {
    "diff": diff,
    "check": check,
    "coarse": lambda folder: many(folder, "coarse", COARSE) + "; bound 20 a second",
    "whole": lambda folder: many(folder, "default", WHOLE) + "; bound 3 a second",
}

if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in sys.argv[1:] or PARTS:
        with tempfile.TemporaryDirectory() as place:
            print(f"{name}: {PARTS[name](Path(place))}", flush=True)
