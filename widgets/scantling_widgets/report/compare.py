"""Several designs side by side: where their inputs and plans differ, their headline figures, memory
and step to one scale."""

from __future__ import annotations

import json
from pathlib import Path

from markupsafe import Markup

from ..words import at
from . import charts, pictures
from .jobs import RESULT, today
from .page import document
from .phrases import plan_text, show
from .text import environment

ROWS = (
    "verdict",
    "devices_used",
    "params",
    "mfu",
    "step_s",
    "tokens_per_s_per_device",
    "bubble_fraction",
    "memory_bytes.total",
    "days",
    "goodput",
    "mtbf_s",
    "checkpoint_interval_s",
    "checkpoint_overhead",
    "cost_usd",
    "energy_kwh",
)


def comparison(
    results: list[dict], title: str = "Designs side by side", date: str | None = None
) -> str:
    """A page that sets assessments (`Assessment.as_dict()`) side by side."""
    from scantling.base.quantities import table as quantities

    rows = []
    for key in ROWS:
        values = [at(r, key) for r in results]
        if any(v is not None for v in values):
            rows.append(
                {
                    "label": quantities.quantity(key).label,
                    "cells": [show(key, v) for v in values],
                    "bands": [_band(r, key) for r in results],
                }
            )
    plans = [
        {
            "label": quantities.quantity(f"plan.{axis}").label,
            "cells": [show(f"plan.{axis}", (r.get("plan") or {}).get(axis)) for r in results],
        }
        for axis in (
            "tp",
            "pp",
            "vpp",
            "cp",
            "dp",
            "ep",
            "sharding",
            "schedule",
            "micro_batch",
            "grad_accum",
            "recompute",
            "offload",
            "precision",
        )
    ]
    plans = [row for row in plans if len(set(row["cells"])) > 1]
    drawn = [r for r in results if r.get("plan")]
    body = (
        environment()
        .get_template("compare.j2")
        .render(
            title=title,
            results=results,
            rows=rows,
            plans=plans,
            limits=[r.get("limits") or [] for r in results],
            plan_text=plan_text,
            pictures=[pictures.draw(f, drawn[0], results=drawn) for f in charts.SIDE_BY_SIDE]
            if len(drawn) > 1
            else [],
        )
    )
    return document(Markup(body), title=title, date=date or today(), kind="wide")


def write_comparison(records, out) -> Path | None:
    """The comparison of the reports of `records` that stand in the folder `out`; None where there
    are fewer than two."""
    from .run import write

    results = [result_of(Path(out) / f"{r.name}.ipynb") for r in records]
    if len(results) < 2:
        return None
    write(Path(out) / "comparison.html", comparison(results))
    return Path(out) / "comparison.html"


def result_of(notebook: Path) -> dict:
    """The assessment that an executed report notebook holds."""
    for cell in reversed(json.loads(notebook.read_text(encoding="utf-8"))["cells"]):
        for output in cell.get("outputs", []):
            if found := output.get("data", {}).get(RESULT):
                return found
    raise ValueError(f"{notebook} holds no assessment")


def _band(data: dict, key: str) -> str:
    from scantling.base.quantities import table as quantities

    low, high = data.get(f"{key}_low"), data.get(f"{key}_high")
    return quantities.band(key, low, high) if low is not None and high is not None else ""
