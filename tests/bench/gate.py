"""What a change of the models moved since the last accepted state: `make gate`; `make gate
ACCEPT=1` writes the state anew.

Compared are the step time and memory of every published run, of 5,000 points of the design space
and of every design of the gallery (its days and cost too), and six rules at each point: more
bandwidth, memory or arithmetic at the same plan never take longer. The state is
tests/bench/gate.csv, a line a figure of five digits.

A point is its number and the chips, models and stacks there are: for each it takes the id that
hashes lowest together with the number, so that a new row of the catalogue changes a few points, not
all of them. Families of sources whose median error a change makes worse are named. Exit code 1
where a figure moved by more than one in a thousand, or where a rule breaks at a point where it
held.
"""

from __future__ import annotations

import argparse
import csv
import sys
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np
import pandas as pd
from scantling import Design, assess, catalogue
from scantling.catalogue.models.entries import models
from scantling.catalogue.stacks import stacks
from scantling.physics.memory.peak import memory
from scantling.physics.step import step_time
from scantling.runs.frames import frame_of
from scantling.runs.predict import predict_frame
from scantling.runs.read import read_runs, table_of_text
from scantling.runs.to_cases import to_runs

HERE = Path(__file__).parent
STATE, POINTS = HERE / "gate.csv", 5000
MOVED = 1e-3  # relative, from where a figure has moved
WORSE = 0.002  # of a family's median error, from where it is named
MORE = 1.25  # of what a rule gives more of
SLACK = 1e-9
RULES = {  # name: (part of a case, its fields that grow)
    "memory bandwidth": ("chip", ("hbm_bytes_per_s",)),
    "arithmetic": ("chip", ("linear_flops", "bf16_flops")),
    "memory": ("chip", ("usable_bytes",)),
    "scale-up bandwidth": ("link", ("up_bytes_per_s",)),
    "scale-out bandwidth": ("link", ("out_bytes_per_s",)),
    "all bandwidth": ("link", ("up_bytes_per_s", "out_bytes_per_s")),
}
AXES = {
    "n_devices": (1, 8, 16, 64, 256, 1024, 4096, 16384),
    "tp": (1, 1, 2, 4, 8, 16),
    "pp": (1, 1, 2, 4, 8, 16),
    "cp": (1, 1, 1, 2, 8),
    "ep": (1, 8, 32),
    "vpp": (1, 2),
    "micro_batch": (1, 2, 4),
    "accumulated": (1, 4, 16, 64),
    "seq_len": (2048, 4096, 8192, 65536),
    "recompute": ("none", "selective", "full"),
    "sharding": ("none", "zero1", "zero2", "zero3", "hsdp"),
    "precision": ("", "", "fp8"),
}


def drawn(number: int, axis: str, names):
    """The name that point `number` takes on an axis."""
    return min(names, key=lambda name: crc32(f"{number} {axis} {name}".encode()))


def points() -> pd.DataFrame:
    """The points as a table of runs; `id` is the number and the hash of the row."""
    rows = []
    chips = [id for id, chip in catalogue.accelerators().items() if not chip.unpublished]
    named = {"model": list(models()), "accelerator": chips}
    named["stack"] = list(stacks())
    for number in range(POINTS):
        row = {axis: drawn(number, axis, names) for axis, names in named.items()}
        for axis, values in AXES.items():
            row[axis] = values[crc32(f"{number} {axis}".encode()) % len(values)]
        if not catalogue.accelerator(row["accelerator"]).fp8_flops > 0:
            row["precision"] = ""
        each = row["tp"] * row["pp"] * row["cp"]
        row["n_devices"] = max(row["n_devices"], each)
        row["dp"] = row["n_devices"] // each
        row["global_batch_seqs"] = row["dp"] * row["micro_batch"] * row.pop("accumulated")
        rows.append(row)
    table = pd.DataFrame(rows)
    ids = [f"{n} {crc32(repr(row).encode()) % 65536:04x}" for n, row in enumerate(rows)]
    return frame_of(table_of_text(table.assign(id=ids).to_csv(index=False), STATE))


def of_table(kind: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Figures of every row of a table of runs."""
    got = predict_frame(frame)
    return pd.DataFrame(
        {"kind": kind, "id": got.id, "step_s": got.step_time_s, "memory": got.memory_bytes / 1e9}
    )


def of_gallery() -> pd.DataFrame:
    """Figures of every design of the gallery."""
    rows = []
    for path in sorted((HERE.parents[1] / "gallery/designs").glob("*.yaml")):
        a = assess(Design.read(path))
        about = {"kind": "gallery", "id": path.stem}
        if a.verdict != "impossible":
            said = a.as_dict(advice=False)
            about |= {n: said[n] for n in ("step_s", "days", "cost_usd")}
            about["memory"] = said["memory_bytes"]["total"] / 1e9
        rows.append(about | {"broken": a.verdict})
    return pd.DataFrame(rows)


def broken(frame: pd.DataFrame) -> pd.Series:
    """The rules that each ready row breaks, by its id."""
    runs = to_runs(frame)
    case, ids = runs.cases, runs.ids[runs.ready]
    before, held = step_time(case).total, memory(case).total
    said = np.full(len(ids), "", dtype=object)
    for name, (part, fields) in RULES.items():
        own = getattr(case, part)
        more = replace(own, **{f: MORE * np.asarray(getattr(own, f)) for f in fields})
        better = replace(case, **{part: more})
        worse = step_time(better).total > before * (1 + SLACK)
        worse |= memory(better).total > held * (1 + SLACK)
        said[np.broadcast_to(worse, said.shape)] += f"{name}; "
    return pd.Series(said, index=ids)


def now() -> pd.DataFrame:
    """The state of this tree."""
    frame = points()
    drawn_points = of_table("point", frame)
    drawn_points["broken"] = drawn_points.id.map(broken(frame))
    tables = [
        of_table(name.removeprefix("published_"), read_runs(catalogue.HERE / f"{name}.csv"))
        for name in ("published_runs", "published_memory")
    ]
    found = pd.concat([of_gallery(), *tables, drawn_points], ignore_index=True)
    for name in ("step_s", "memory", "days", "cost_usd"):
        found[name] = [f"{v:.4g}" if v == v and v is not None else "" for v in found[name]]
    found["broken"] = found.broken.fillna("").str.removesuffix("; ")
    return found[["kind", "id", "step_s", "memory", "days", "cost_usd", "broken"]]


def compared(old: pd.DataFrame, new: pd.DataFrame) -> int:
    """Print what moved; 1 where something did, or a rule broke anew."""
    both = old.merge(new, on=["kind", "id"], suffixes=("_was", ""), how="outer", indicator=True)
    code = 0
    for kind, rows in both.groupby("kind"):
        come, gone = (int((rows._merge == side).sum()) for side in ("right_only", "left_only"))
        print(f"{kind}: {len(rows):,} figures, {come} new, {gone} gone")
        rows = rows[rows._merge == "both"]
        for name in ("step_s", "memory", "days", "cost_usd"):
            code |= _moved(name, rows.id, rows[f"{name}_was"], rows[name])
        differs = rows[rows.broken != rows.broken_was]
        for row in differs.head(10).itertuples():
            print(f"  {row.id}: {row.broken_was or 'kept'} -> {row.broken or 'kept'}")
        code |= int(len(differs) > 0)
    _errors(old, new)
    return code


def _moved(name: str, ids, was, is_) -> int:
    """Print how many figures moved and by how much, the furthest first."""
    blank = (was == "") != (is_ == "")
    change = np.log(pd.to_numeric(is_) / pd.to_numeric(was)).fillna(0.0)
    far = change[change.abs() > MOVED]
    if blank.any():
        print(f"  {name}: {int(blank.sum())} answers came or went, {ids[blank].head(5).tolist()}")
    if len(far):
        low, middle, high = (100 * np.expm1(far.quantile(q)) for q in (0.1, 0.5, 0.9))
        print(
            f"  {name}: {len(far):,} moved, median {middle:+.2f} %, middle 80 % {low:+.2f} to "
            f"{high:+.2f} %"
        )
        for i in far.abs().nlargest(5).index:
            print(f"    {ids[i]}: {was[i]} -> {is_[i]} ({100 * np.expm1(far[i]):+.1f} %)")
    return int(len(far) > 0 or blank.any())


def _errors(old: pd.DataFrame, new: pd.DataFrame) -> None:
    """Print the error of the published runs under both states."""
    frame = read_runs(catalogue.HERE / "published_runs.csv")
    rate = pd.to_numeric(frame.measured_tokens_per_s_per_device, errors="coerce")
    runs = to_runs(frame)
    ready = runs.ids[runs.ready]
    tokens = pd.Series(runs.cases.job.global_batch * runs.cases.job.seq_len, ready)
    tokens = tokens / frame.set_index("id").n_devices.reindex(ready)
    measured = (tokens / pd.Series(rate.to_numpy(), frame.id)).dropna()
    errors = []
    for name, state in (("accepted", old), ("now", new)):
        said = pd.to_numeric(state[state.kind == "runs"].set_index("id").step_s)
        off = (measured / said - 1).abs().dropna()
        errors.append(off)
        print(
            f"published runs, {name}: {len(off):,} answered, error {100 * off.median():.2f} % "
            f"median, {100 * off.quantile(0.9):.1f} % at the 90th percentile (fitted)"
        )
    family = frame.set_index("id").family if "family" in frame else None
    if family is not None:
        families(*errors, family)


def by_family(off: pd.DataFrame) -> pd.DataFrame:
    """Median error of every family of sources, a column a state, each family's rows first."""
    return off.groupby("family").median().join(off.family.value_counts().rename("rows"))


def families(accepted: pd.Series, now_: pd.Series, family: pd.Series) -> None:
    """Print what the change does to families of sources, each with weight one, and those that it
    makes worse: a mechanism is judged by families, not by rows."""
    off = pd.DataFrame({"was": accepted, "now": now_, "family": family}).dropna()
    if not len(off):
        return
    found = by_family(off)
    print(
        f"families, each with weight one: {len(found)}, median of their medians "
        f"{100 * found.was.median():.2f} -> {100 * found.now.median():.2f} %, mean "
        f"{100 * found.was.mean():.2f} -> {100 * found.now.mean():.2f} %"
    )
    found["by"] = found.now - found.was
    worse, better = found[found.by > WORSE], found[found.by < -WORSE]
    print(f"  {len(better)} better by more than {WORSE:.1%}, {len(worse)} worse")
    for row in worse.sort_values("by", ascending=False).itertuples():
        print(
            f"    {row.Index}: {100 * row.was:.1f} -> {100 * row.now:.1f} % over "
            f"{row.rows:.0f} rows"
        )


def main(argv=None) -> int:
    """Compare with the accepted state, or accept this one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accept", action="store_true", help="write the state of this tree")
    accept = parser.parse_args(argv).accept
    new = now()
    some = new[new.kind == "point"].broken
    print(f"{(some != '').sum()} of {len(some):,} points break a rule")
    for name in RULES:
        print(f"  more {name}: {some.str.split('; ').map(lambda s, n=name: n in s).sum()}")
    if accept:
        new.to_csv(STATE, index=False, lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
        print(f"{STATE.name}: {len(new):,} figures accepted, {STATE.stat().st_size / 1e3:.0f} kB")
        return 0
    if not STATE.is_file():
        print("no accepted state yet: make gate ACCEPT=1")
        return 1
    return compared(pd.read_csv(STATE, dtype=str, keep_default_na=False), new)


if __name__ == "__main__":
    sys.exit(main())
