"""python record.py RESULTS: the tables of lib/NOTES-kits.md from the lines that runs of
the judges left, each with its date."""

from __future__ import annotations

import datetime
import json
import platform
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
NOTES = HERE.parent.parent / "lib" / "NOTES-kits.md"
NAMES = {
    "megatron": ("Megatron-LM", "megatron-core"),
    "megatron-bridge": ("Megatron-Bridge", "megatron-bridge"),
    "torchtitan": ("torchtitan", "torchtitan"),
    "fsdp": ("FSDP2", "torch"),
    "ddp": ("DDP", "torch"),
    "deepspeed": ("DeepSpeed", "deepspeed"),
    "accelerate": ("Accelerate", "accelerate"),
    "maxtext": ("MaxText", "maxtext"),
    "kubernetes": ("JobSet, PyTorchJob, Job, Pod", "kubernetes-validate"),
    "slurm": ("Slurm", None),
}
BEGIN, END = "<!-- results: make test-launch writes from here -->", "<!-- to here -->"


def table(rows, pins):
    """Markdown of the judges' and the trainers' rows."""
    passed = {k: r for k, r in rows.items() if len(r) > 2}
    lost = [NAMES[k][0] if k in NAMES else k for k in [*NAMES, *rows] if k not in passed]
    out = [
        f"Python {platform.python_version()}, CPU only."
        + (f" No result: {', '.join(dict.fromkeys(lost))}." if lost else ""),
        "",
        (
            "| framework | version | kits accepted | broken kits refused | fields read back "
            "as the plan's | designs without a plan | judge, s | date |"
        ),
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for key, (name, package) in NAMES.items():
        if key not in passed:
            continue
        r = passed[key]
        out.append(
            f"| {name} | {r.get('version') or package + ' ' + pins[package]} | "
            f"{r['accepted']} of {r['accepted']} | {r['refused']} of {r['refused']} | "
            f"{r.get('fields', 'nodes, devices a node')} | "
            f"{r.get('inexpressible', '')} | {r.get('seconds', '')} | {r['date']} |"
        )
    trained = [r for k, r in passed.items() if k.startswith("train ") and "to" in r]
    if trained:
        out += [
            "",
            (
                "| trained on CPU processes | ranks | steps | killed after | resumed at | "
                "curve equal to the unbroken one | bytes a rank, found and counted | date |"
            ),
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
        out += [
            (
                f"| {r['to']} {r['sharding']} | {r['ranks']} | {r['steps']} | {r['killed']} "
                f"| {r['resumed']} | to the last bit | {r['bytes']:,} | {r['date']} |"
            )
            for r in trained
        ]
    starts = {
        "torchtitan": "torchtitan",
        "maxtext": "MaxText",
        "megatron": "Megatron-LM",
        "megatron-bridge": "Megatron-Bridge",
    }
    for to, framework in starts.items():
        name, package = f"start {to} ", {"megatron": "megatron-core"}.get(to, to)
        begun = [k.removeprefix(name) for k in passed if k.startswith(name)]
        if begun:
            last = passed[name + begun[-1]]
            out += [
                "",
                (
                    f"{framework} {last.get('version', pins[package])} under the kit's launch.sh "
                    f"on two CPU processes or devices, four steps and a checkpoint: "
                    f"{', '.join(begun)}; {last['date']}."
                ),
            ]
    if "train weights" in passed:
        r = passed["train weights"]
        out += [
            "",
            (
                f"Weights of a trained checkpoint and of five families out through "
                f"handover.py and back: transformers' own classes give the same logits "
                f"(largest difference {r['worst']:.1g}, fp32), {r['date']}."
            ),
        ]
    return "\n".join(out)


def main(results):
    rows = {}
    for line in Path(results).read_text().splitlines():  # the last line of each judge counts
        r = json.loads(line)
        rows[r["what"]] = {"date": datetime.date.today().isoformat()} | r
    pins = dict(re.findall(r"([\w-]+)==([\w.]+)", (HERE / "install").read_text()))
    text = NOTES.read_text()
    head, rest = text.split(BEGIN)
    NOTES.write_text(head + BEGIN + "\n" + table(rows, pins) + "\n" + END + rest.split(END)[1])
    print(f"results of {len(rows)} judges and runs are in {NOTES.relative_to(HERE.parent.parent)}")


if __name__ == "__main__":
    main(sys.argv[1])
