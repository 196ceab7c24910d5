"""A log held against the ladder: python3 check_ladder.py RUNG LOG [LOG...]. Exit 1 where a limit is
missed, 2 where the logs say nothing.

RUNG: node, rack, pod or all. LOG: standard output of launch.sh with Megatron-LM, Megatron-Bridge,
torchtitan or MaxText, metrics.jsonl of this kit's own trainers, nccl-tests' output, lines of
`nvidia-smi --query-gpu=memory.used --format=csv`, or `first step SECONDS`.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

Patterns = tuple[tuple[str, float], ...]  # pattern, what one of it is
COLOUR = r"\x1b\[[\d;]*m"
WARM = 3  # steps that are left out: compilation, first use of the memory
STEP = (  # pattern, what one of it is in seconds
    (r"elapsed time per iteration \(ms\):\s*([\d.]+)", 1e-3),
    (r"Step Time\s*:\s*([\d.]+)\s*s", 1.0),
    (r"completed step: \d+, seconds: ([\d.]+)", 1.0),
    (r'"seconds": ([\d.]+)', 1.0),
)
TOKENS = r"\btps: ([\d,]+)"  # torchtitan: tokens/s a device
MEMORY = (  # pattern, what one of it is in bytes
    (r"max allocated: ([\d.]+)", 2**20),
    (r"mem-max-allocated-gigabytes: ([\d.]+)", 1e9),
    (r"\bmemory:\s+([\d.]+)GiB", 2**30),
    (r"Total (?:estimated )?memory size: ([\d.]+) GB", 2**30),  # what XLA will take
    (r'"memory_bytes": (\d+)', 1.0),
    (r"^\s*(\d+) MiB\s*$", 2**20),
)
BUS = ((r"# Avg bus bandwidth\s*:\s*([\d.]+)", 1e9),)
START = ((r"first step ([\d.]+)", 1.0), (r'"first_step_s": ([\d.]+)', 1.0))
STAMP = r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)"
BEGUN = rf"launch\.sh: begun {STAMP}"
LINE = rf"{STAMP}.*?\b(?:iteration|step:)\s+(\d+)\b"  # of Megatron-LM and torchtitan


def numbers(text: str, patterns: Patterns) -> list[float]:
    """Every number that one of the patterns finds, in its unit."""
    return [
        float(found) * unit
        for pattern, unit in patterns
        for found in re.findall(pattern, text, re.M)
    ]


def started(text: str, step_s: float) -> list[float]:
    """[seconds from launch.sh to the end of the first step], by the stamps of the log: a line that
    stands for several steps counts back to the first."""
    begun, line = re.search(BEGUN, text), re.search(LINE, text)
    if not (begun and line):
        return []
    first, last = (datetime.fromisoformat(found[1]) for found in (begun, line))
    return [(last - first).total_seconds() - (int(line[2]) - 1) * step_s]


def measured(text: str, rung: dict[str, Any]) -> dict[str, float]:
    """{field: value} of what the logs say."""
    text = re.sub(COLOUR, "", text)
    steps = numbers(text, STEP)
    if not steps:
        tokens = rung["global_batch"] * rung["seq_len"] / rung["devices"]
        steps = [tokens / float(t.replace(",", "")) for t in re.findall(TOKENS, text)]
    out = {"step_s": statistics.median(steps[WARM:] or steps)} if steps else {}
    for field, patterns, pick in (
        ("memory_bytes", MEMORY, max),
        ("bus_bytes_per_s", BUS, min),
        ("first_step_s", START, max),
    ):
        found = numbers(text, patterns)
        if field == "first_step_s" and not found and steps:
            found = started(text, out["step_s"])
        if found:
            out[field] = pick(found)
    return out


def main(name: str, *logs: str) -> None:
    rungs = json.loads((Path(__file__).parent / "ladder.json").read_text())
    rung = next((r for r in rungs if r["rung"] == name), None)
    if rung is None:
        sys.exit(f"no rung {name}: one of {', '.join(r['rung'] for r in rungs)}")
    found = measured("\n".join(Path(p).read_text(errors="replace") for p in logs), rung)
    failed = False
    for field, value in found.items():
        high, low = rung.get(f"{field}_high"), rung.get(f"{field}_low")
        slow = high is not None and value > high
        poor = low is not None and value < low and field != "step_s"
        failed |= slow or poor
        said = "FAIL" if slow or poor else "pass"
        if field == "step_s" and value < low:
            said = "pass, below the band: is it the plan that was meant?"
        limit = f"at most {high:.4g}" if high is not None else f"at least {low:.4g}"
        print(f"{name} {field}: {value:.4g}, expected {rung[field]:.4g}, {limit}: {said}")
    if not found:
        print("the logs say neither step, memory, bus bandwidth nor first step", file=sys.stderr)
    sys.exit(1 if failed else 0 if found else 2)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
