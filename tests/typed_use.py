"""What a user's type checker sees of the public interface: `mypy --strict` passes over this file
(`make types`). Nothing here is run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import scantling as sc


def decide(path: Path) -> str:
    design: sc.Design = sc.Design.from_text("70B on 512 H100, 2T tokens, 30 days")
    design = sc.Design.read(path).change({"cluster.devices": 1024})
    same: sc.Design = sc.Design.from_data(design.data())
    text: str = same.to_yaml()
    a: sc.Assessment = sc.assess(design, space="coarse", progress=lambda done, of: done < of)
    named: list[sc.Assessment] = [sc.assess("run.yaml"), sc.assess({"model": "llama-3.1-8b"})]
    step: float = a.step_s or 0.0
    spares: int = a.spares or 0
    figures = a.as_dict(advice=False)
    mtbf_s: float = figures["mtbf_s"]
    changes: list[dict[str, object]] = sc.fixes(a)
    traps: list[dict[str, object]] = sc.avoid(a)
    swings: list[dict[str, object]] = sc.sensitivity(a, "days")
    lived: dict[str, object] = sc.goodput(a)
    files: dict[str, str] = sc.launch(a, "megatron", "slurm")
    learned: list[dict[str, object]] = sc.learn(["run.log"])
    pages: list[Path] = sc.report([path], "build")
    why = sc.explain(a, "mfu")
    beside = sc.compare([a, *named])
    cells = sc.sweep(design, {"cluster.devices": [512, 1024]})
    site = sc.blueprint(a).as_dict()
    counted: Iterable[object] = (why, beside, cells, site, figures, changes, traps, swings, lived)
    try:
        sc.Design.from_yaml(text)
    except sc.DesignError as e:
        counts = f"{step} {spares} {mtbf_s} {len(files)}"
        return f"{e.field}: {e} {counts} {learned} {pages} {list(counted)}"
    return a.verdict
