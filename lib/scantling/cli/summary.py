"""An assessment in a terminal: labels, units and manner of every number come from the table of
quantities."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..base.errors import plain
from ..base.quantities.table import band, quantity, show

_COLOUR = {
    "feasible": "bold green",
    "constraint-missed": "bold yellow",
    "impossible": "bold red",
}
_BANDED = ("step_s", "mfu", "days")
_HEADLINE = (
    "days mfu step_s tokens_per_s_per_device model_tflops_per_device hfu "
    "bubble_fraction goodput mtbf_s checkpoint_interval_s "
    "checkpoint_overhead checkpoint_bytes spares cost_usd energy_kwh params "
    "active_params devices_used"
).split()
_PARTS = ("weights", "gradients", "optimizer", "activations", "other")
_PLAN = (
    "tp cp pp vpp dp ep etp sharding shard_group schedule micro_batch grad_accum recompute "
    "recompute_layers offload precision"
).split()
_QUIET = {
    "cp": 1,
    "vpp": 1,
    "ep": 1,
    "etp": 1,
    "offload": "none",
    "recompute_layers": 0,
}  # values that say nothing
_ENDURANCE = (
    "checkpoint_stall_s checkpoint_durable_s detect_s restart_s repair_s recovery_s lost_work_s"
).split()
_WIDTH = 28


def summary(result: dict, out: Console) -> None:
    """Verdict, plan, headline figures with their bands, memory, step, limits, fixes, what to avoid,
    why this plan, the batch, nearest runs, assumptions."""
    title = Text(plain(result["name"], 120), style="bold")
    title.append("   ").append(result["verdict"], style=_COLOUR[result["verdict"]])
    out.print(title)
    out.print(Text(plan_line(result["plan"])))
    out.print()
    _headline(result, out)
    _lines(out, "Limits", result.get("limits"))
    _lines(
        out, "Nearest changes that help", [fix_line(f) for f in result.get("nearest_fixes") or []]
    )
    _lines(out, "Tried", _tried(result))
    _lines(out, "Active parameters", _active(result))
    memory, step, whole = result["memory_bytes"], result["step_breakdown_s"], result["step_s"]
    held = {k: f"memory_bytes.{k}" for k in (*_PARTS, "total", "capacity")}
    rows = [(quantity(held[k]).label, memory[k], show(held[k], memory[k])) for k in _PARTS]
    _bars(
        out,
        "Memory of the fullest device",
        rows,
        memory["capacity"],
        " of ".join(show(held[k], memory[k]) for k in ("total", "capacity")),
    )
    parts = sorted(((k, v) for k, v in step.items() if v > 0.0005 * whole), key=lambda kv: -kv[1])
    rows = [
        (
            quantity(f"step_breakdown_s.{k}").label,
            v,
            f"{show('step_s', v)}  {show('mfu', v / whole)}",
        )
        for k, v in parts
    ]
    _bars(
        out,
        "Where the step goes",
        rows,
        parts[0][1],
        show("step_s", whole),
    )
    _lines(
        out,
        "Avoid",
        [
            " — ".join(str(a[k]) for k in ("what", "why", "cost") if a.get(k) not in (None, ""))
            for a in result.get("avoid") or []
        ],
    )
    _lines(out, "Why this plan", [w["text"] for w in result.get("why") or []])
    _lines(out, "Global batch", (result.get("batch") or {}).get("lines"))
    _lines(out, "Nearest published runs", [_run(r) for r in (result.get("nearest_runs") or [])[:5]])
    _assumed(result.get("assumed") or [], out)


def plan_line(plan: dict) -> str:
    """A plan in one line: tp 8 · pp 16 · …, only what says something."""
    shown = [
        k
        for k in _PLAN
        if plan.get(k) not in (None, _QUIET.get(k))
        and not (k == "shard_group" and plan.get("sharding") != "hsdp")
    ]
    return " · ".join(f"{k} {plan[k]}" for k in shown)


def fix_line(fix: dict) -> str:
    """A change in one line: what, the verdict with it, days, dollars, MFU and what is still
    missed."""
    if not fix.get("verdict"):
        return str(fix.get("change", ""))
    figures = [
        ("MFU " if k == "mfu" else "") + show(k, fix[k])
        for k in ("days", "cost_usd", "mfu")
        if fix.get(k) is not None
    ]
    still = [text.partition(",")[0].partition(";")[0] for text in fix.get("missed") or []]
    return (
        f"{fix['change']} → {fix['verdict']}: "
        + ", ".join(figures)
        + (f"; still missed: {', '.join(still)}" if still else "")
    )


def value_text(value) -> str:
    """An input as people read it: whole numbers grouped, others with four digits."""
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if value is None:
        return "—"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e9 else f"{value:.4g}"


def endurance(
    result: dict,
    keys,
    out: Console,
) -> None:
    """Failures, saves, restarts, spares; each with its formula."""
    more = result.get("endurance") or {}
    values = {key: result.get(key) for key in keys} | {
        f"endurance.{key}": more.get(key) for key in _ENDURANCE
    }
    values |= {
        f"endurance.badput.{cause}": share for cause, share in (more.get("badput") or {}).items()
    }
    grid = _figures("", "")
    for key, value in values.items():
        if value is not None:
            grid.add_row(
                quantity(key).label, show(key, value), Text(quantity(key).formula, style="dim")
            )
    out.print(Text(plain(result["name"], 120), style="bold"))
    out.print(grid)


def _headline(result, out):
    same = {
        "hfu": result["mfu"],
        "active_params": result["params"],
    }
    measured = result.get("measured") or {}
    grid = _figures("", "80 % band")
    for key in _HEADLINE:
        value, low, high = (result.get(key + end) for end in ("", "_low", "_high"))
        if value is not None and value != same.get(key):
            wide = key in _BANDED and low not in (None, high)
            spread = "measured" if key in measured else band(key, low, high) if wide else ""
            grid.add_row(quantity(key).label, show(key, value), spread)
    out.print(grid)


def _figures(*heads):
    """A table of a label, a number and what `heads` name."""
    grid = Table(
        box=None,
        show_header=any(heads),
        pad_edge=False,
        header_style="dim",
    )
    grid.add_column(
        "",
        style="dim",
        no_wrap=True,
    )
    for i, head in enumerate(heads):
        grid.add_column(
            head,
            justify="right" if i == 0 else "left",
            no_wrap=i == 0,
        )
    return grid


def _section(out, title, rows, *columns):
    """A heading and a table without one below it; nothing where there are no rows."""
    if not rows:
        return
    out.print()
    out.print(Text(title, style="bold"))
    grid = Table(
        box=None,
        show_header=False,
        pad_edge=False,
    )
    for column in columns:
        grid.add_column(**column)
    for row in rows:
        grid.add_row(*row)
    out.print(grid)


def _lines(
    out,
    title,
    lines,
):
    _section(
        out,
        title,
        [("·", Text(plain(str(line), 600))) for line in lines or []],
        {"width": 1},
        {},
    )


def _assumed(rows, out):
    cells = [
        (plain(r["field"], 60), plain(value_text(r["value"]), 40), plain(r["why"], 300))
        for r in rows
    ]
    _section(
        out,
        "Assumed",
        cells,
        {
            "style": "dim",
            "no_wrap": True,
        },
        {"no_wrap": True},
        {"style": "dim"},
    )


def _bars(
    out,
    title,
    rows,
    full,
    total,
):
    out.print()
    out.print(Text(title, style="bold").append(f"   {total}", style="not bold"))
    grid = _figures("", "")
    for label, value, text in rows:
        size = 0.0 if not full else max(0.0, value / full) * _WIDTH
        bar = "█" * int(size) + ("▌" if size % 1 >= 0.5 else "") or ("▏" if value > 0 else "")
        grid.add_row(label, text, Text(bar[: 2 * _WIDTH], style="cyan"))
    out.print(grid)


def _tried(result):
    """What every change comes to where an MFU floor is missed that none of them reaches."""
    floor = next((m for m in result.get("missed") or [] if m["field"] == "min_mfu"), None)
    rows = result.get("tried") or []
    if floor is None or not rows or any(r["mfu"] >= floor["limit"] for r in rows):
        return []
    named = {
        r["change"] if "peak" in r["change"] else r["change"].partition(" (")[0]: r["mfu"]
        for r in rows
    }
    best = sorted(named.items(), key=lambda kv: -kv[1])
    shown = best[:5] + [kv for kv in best[5:] if "matrix products" in kv[0]]
    return [
        f"none of {len(best)} changes reaches MFU {show('mfu', floor['limit'])}: "
        + ", ".join(f"{what} {show('mfu', mfu)}" for what, mfu in shown)
    ]


def _active(result):
    most = result.get("largest_active")
    if not most:
        return []
    return [
        f"the active count was not given: up to "
        f"{show('active_params', most['active_params'])} (top-{most['top_k']} of "
        f"{most['experts']}) "
        f"meet the deadline, in {show('days', most['days'])}"
    ]


def _run(run):
    parts = [
        run.get("model"),
        run.get("accelerator"),
        f"{run['devices']:,} devices" if run.get("devices") else None,
        run.get("plan"),
        f"MFU {show('mfu', run['mfu'])}" if run.get("mfu") else None,
        run.get("source"),
    ]
    return " · ".join(str(p) for p in parts if p)
