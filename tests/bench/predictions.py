"""Predictions made before the outcome: `make predictions`.

Announced machines on which no training run of these models is published, each with models whose
shapes are public, searched for the fastest plan. Writes gallery/predictions/DATE.csv and the page
gallery/predictions/README.md; a file of a date is never written again, so that what was said stays
said.
"""

from __future__ import annotations

import csv
import re
import sys
from datetime import date
from pathlib import Path

from scantling import Design, DesignError, assess
from scantling.base.files import csv_rows
from scantling.catalogue import HERE
from scantling.plans.plan_names import short

FOLDER = Path(__file__).parents[2] / "gallery/predictions"
MACHINES = {"rubin": 1152, "mi455x": 1152, "tpu-v7x": 1024, "trn3": 1152}  # id: devices
MODELS = {  # id: sequences of a step, tokens of one
    "llama-3.1-405b": (1152, 8192),
    "llama-3.1-70b": (1152, 8192),
    "deepseek-v3": (9216, 4096),
    "qwen3-235b-a22b": (9216, 4096),
}
PRECISIONS = ("bf16", "fp8")
KEYS = "tokens_per_s_per_device step_s step_s_low step_s_high mfu mfu_low mfu_high".split()
HEAD = "machine devices model precision global_batch seq_len verdict".split()
HEAD += [*KEYS, "band_tier", "plan", "made"]


def plain(model: str) -> str:
    """A model's name without what spellings differ in."""
    return re.sub(r"[^a-z0-9]", "", model.lower())


def published() -> set[tuple[str, str]]:
    """Machines and models of which a run is published together."""
    rows = csv_rows(HERE / "published_runs.csv")
    return {(row["accelerator"], plain(row["model"])) for row in rows}


def said(machine: str, model: str, precision: str) -> dict | None:
    """One line; None where the chip has no unit of the precision."""
    devices, (batch, seq_len) = MACHINES[machine], MODELS[model]
    batch = batch // 9 * 8 if devices == 1024 else batch
    job = dict(tokens=1e12, seq_len=seq_len, global_batch=batch, precision=precision)
    data = dict(model=model, cluster=dict(accelerator=machine, devices=devices), job=job)
    try:
        found = assess(Design.from_data(data)).as_dict(advice=False)
    except DesignError:
        return None
    row = dict(machine=machine, devices=devices, model=model, precision=precision)
    row |= dict(global_batch=batch, seq_len=seq_len, verdict=found["verdict"])
    if found["verdict"] != "impossible":
        row |= {k: f"{found[k]:.4g}" for k in KEYS}
        row |= dict(band_tier=found.get("band_tier", ""), plan=short(found["plan"]))
    return row | dict(made=date.today().isoformat())


def page(rows: list[dict]) -> str:
    """The lines as a page."""
    lines = [
        "# Predictions made before the outcome",
        "",
        f"Made {rows[0]['made']} by `make predictions`, never changed since: machines that are "
        "announced, models whose shapes are public, no published training run of the two together. "
        "Tokens/s a device with the 80 % band of the MFU; the fastest plan of the default search.",
        "",
        "| machine | devices | model | precision | tokens/s a device | MFU | 80 % band | plan |",
        "| --- | ---: | --- | --- | ---: | ---: | --- | --- |",
    ]
    for r in rows:
        known = "tokens_per_s_per_device" in r and r["tokens_per_s_per_device"]
        figures = (
            f"{float(r['tokens_per_s_per_device']):,.0f} | {float(r['mfu']):.1%} | "
            f"{float(r['mfu_low']):.1%} to {float(r['mfu_high']):.1%} | {r['plan']}"
            if known
            else f"{r['verdict']} | – | – | –"
        )
        lines.append(
            f"| {r['machine']} | {r['devices']} | {r['model']} | {r['precision']} | {figures} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write today's file, unless there is one."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{date.today().isoformat()}.csv"
    if path.is_file():
        print(f"{path.name} is there already and stays as it is")
        return 0
    known = published()
    asked = [
        (c, m, p)
        for c in MACHINES
        for m in MODELS
        for p in PRECISIONS
        if (c, plain(m)) not in known
    ]
    rows = [row for row in (said(*one) for one in asked) if row]
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, HEAD, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    (FOLDER / "README.md").write_text(page(rows), encoding="utf-8")
    print(f"{path.name}: {len(rows)} predictions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
