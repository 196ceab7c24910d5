"""Several designs side by side: where their inputs and plans differ, their headline figures, memory
and step to one scale."""

from __future__ import annotations

import json
from pathlib import Path

from markupsafe import Markup

from ..words import at, band, label
from . import charts, pictures
from .jobs import assessment_in, today
from .page import document
from .phrases import show
from .run import write
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


PLAN = (
    *("tp", "pp", "vpp", "cp", "dp", "ep", "sharding", "schedule", "micro_batch", "grad_accum"),
    *("recompute", "offload", "precision"),
)


def comparison(
    results: list[dict],
    title: str = "Designs side by side",
    date: str | None = None,
) -> str:
    """A page that sets assessments (`Assessment.as_dict()`) side by side."""
    rows = [
        {
            "label": label(key),
            **cells,
        }
        for key in ROWS
        if (cells := _cells(results, key)) and any(at(r, key) is not None for r in results)
    ]
    plans = [
        {
            "label": label(key),
            **_cells(results, key),
        }
        for key in (f"plan.{a}" for a in PLAN)
    ]
    drawn = [r for r in results if r.get("plan")]
    draw = charts.SIDE_BY_SIDE if len(drawn) > 1 else ()
    page = environment().get_template("compare.j2")
    body = page.render(
        title=title,
        results=results,
        rows=rows,
        plans=[row for row in plans if len(set(row["cells"])) > 1],
        pictures=[pictures.draw(figure, drawn[0], results=drawn) for figure in draw],
    )
    return document(
        Markup(body),
        title=title,
        date=date or today(),
        kind="wide",
    )


def _cells(results: list[dict], key: str) -> dict:
    """One figure of each design, and its band."""
    return {
        "cells": [show(key, at(r, key)) for r in results],
        "bands": [_band(at(r, f"{key}_low"), at(r, f"{key}_high"), key) for r in results],
    }


def _band(
    low,
    high,
    key: str,
) -> str:
    return "" if low is None or high is None else band(key, low, high)


def write_comparison(records, out) -> Path | None:
    """The comparison of the reports of `records` that stand in the folder `out`; None where there
    are fewer than two."""
    results = [result_of(Path(out) / f"{r.name}.ipynb") for r in records]
    if len(results) < 2:
        return None
    write(Path(out) / "comparison.html", comparison(results))
    return Path(out) / "comparison.html"


def result_of(notebook: Path) -> dict:
    """The assessment that an executed report notebook holds."""
    return assessment_in(json.loads(notebook.read_text(encoding="utf-8")))
