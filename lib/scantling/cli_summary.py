"""An assessment in a terminal: labels, units and manner of every number come from the table of quantities."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .errors import plain
from .quantities import band, quantity, show, table

_COLOUR = {"feasible": "bold green", "constraint-missed": "bold yellow", "impossible": "bold red"}
_BANDS = {"step_s": ("step_s_low", "step_s_high"), "mfu": ("mfu_low", "mfu_high"), "days": ("days_low", "days_high")}
_HEADLINE = (
    "days",
    "mfu",
    "step_s",
    "tokens_per_s_per_device",
    "model_tflops_per_device",
    "hfu",
    "bubble_fraction",
    "goodput",
    "mtbf_s",
    "checkpoint_interval_s",
    "checkpoint_overhead",
    "checkpoint_bytes",
    "spares",
    "cost_usd",
    "energy_kwh",
    "params",
    "active_params",
    "devices_used",
)
_PARTS = ("weights", "gradients", "optimizer", "activations", "other")
_WIDTH = 28


def summary(result: dict, out: Console) -> None:
    """Verdict, plan, headline figures with their bands, memory, step, limits, fixes, what to avoid, why this plan, the batch, nearest runs, assumptions."""
    title = Text(plain(result["name"], 120), style="bold")
    title.append("   ").append(result["verdict"], style=_COLOUR[result["verdict"]])
    out.print(title)
    out.print(Text(plan_line(result["plan"])))
    out.print()
    _headline(result, out)
    _lines(out, "Limits", [str(x) for x in result.get("limits") or []])
    _lines(out, "Nearest changes that help", [_fix(f) for f in result.get("nearest_fixes") or []])
    _lines(out, "Tried", _tried(result))
    _bars(
        out,
        "Memory of the fullest device",
        [
            (quantity(f"memory_bytes.{p}").label, result["memory_bytes"][p], show(f"memory_bytes.{p}", result["memory_bytes"][p]))
            for p in _PARTS
        ],
        result["memory_bytes"]["capacity"],
        f"{show('memory_bytes.total', result['memory_bytes']['total'])} of {show('memory_bytes.capacity', result['memory_bytes']['capacity'])}",
    )
    parts = sorted(((k, v) for k, v in result["step_breakdown_s"].items() if v > 0.0005 * result["step_s"]), key=lambda kv: -kv[1])
    _bars(
        out,
        "Where the step goes",
        [(quantity(f"step_breakdown_s.{k}").label, v, f"{show('step_s', v)}  {show('mfu', v / result['step_s'])}") for k, v in parts],
        max(v for _, v in parts),
        show("step_s", result["step_s"]),
    )
    _lines(out, "Avoid", [_avoid(a) for a in result.get("avoid") or []])
    _lines(out, "Why this plan", [w["text"] for w in result.get("why") or []])
    _lines(out, "Global batch", (result.get("batch") or {}).get("lines") or [])
    _lines(out, "Nearest published runs", [_run(r) for r in (result.get("nearest_runs") or [])[:5]])
    _assumed(result.get("assumed") or [], out)


def plan_line(plan: dict) -> str:
    """A plan in one line: tp 8 · pp 16 · …, only what says something."""
    quiet = {"cp": 1, "vpp": 1, "ep": 1, "etp": 1, "offload": "none", "recompute_layers": 0}
    shown = [
        k
        for k in (
            "tp",
            "cp",
            "pp",
            "vpp",
            "dp",
            "ep",
            "etp",
            "sharding",
            "shard_group",
            "schedule",
            "micro_batch",
            "grad_accum",
            "recompute",
            "recompute_layers",
            "offload",
            "precision",
        )
        if plan.get(k) not in (None, quiet.get(k)) and not (k == "shard_group" and plan.get("sharding") != "hsdp")
    ]
    return " · ".join(f"{k} {plan[k]}" for k in shown)


def _headline(result, out):
    grid = _table("", "80 % band")
    for key in _HEADLINE:
        value = result.get(key)
        if value is None or (key == "hfu" and value == result["mfu"]) or (key == "active_params" and value == result["params"]):
            continue
        ends = _BANDS.get(key)
        grid.add_row(
            quantity(key).label,
            show(key, value),
            band(key, result[ends[0]], result[ends[1]]) if ends and result.get(ends[0]) is not None else "",
        )
    out.print(grid)


def _table(*heads):
    grid = Table(box=None, show_header=any(heads), pad_edge=False, header_style="dim")
    grid.add_column("", style="dim", no_wrap=True)
    for i, head in enumerate(heads):
        grid.add_column(head, justify="right" if i == 0 else "left", no_wrap=i == 0)
    return grid


def _bars(out, title, rows, full, total):
    out.print()
    out.print(Text(title, style="bold").append(f"   {total}", style="not bold"))
    grid = _table("", "")
    for label, value, text in rows:
        size = 0.0 if not full else max(0.0, value / full) * _WIDTH
        bar = "█" * int(size) + ("▌" if size % 1 >= 0.5 else "") or ("▏" if value > 0 else "")
        grid.add_row(label, text, Text(bar[: 2 * _WIDTH], style="cyan"))
    out.print(grid)


def _lines(out, title, lines):
    if lines:
        out.print()
        out.print(Text(title, style="bold"))
        grid = Table(box=None, show_header=False, pad_edge=False)
        grid.add_column(width=1)
        grid.add_column()
        for line in lines:
            grid.add_row("·", Text(plain(line, 600)))
        out.print(grid)


def _fix(fix):
    from .cli_design import _fix as line

    return line(fix)


def _tried(result):
    """What every change comes to where an MFU floor is missed that none of them reaches."""
    floor = next((m for m in result.get("missed") or [] if m["field"] == "min_mfu"), None)
    rows = result.get("tried") or []
    if floor is None or not rows or any(r["mfu"] >= floor["limit"] for r in rows):
        return []
    best = sorted({r["change"].partition(" (")[0]: r["mfu"] for r in rows}.items(), key=lambda kv: -kv[1])
    shown = best[:5] + [kv for kv in best[5:] if "matrix products" in kv[0]]
    return [f"none of {len(best)} changes reaches MFU {show('mfu', floor['limit'])}: " + ", ".join(f"{what} {show('mfu', mfu)}" for what, mfu in shown)]


def _avoid(item):
    return (
        " — ".join(str(item[k]) for k in ("what", "why", "cost") if item.get(k) not in (None, "")) if isinstance(item, dict) else str(item)
    )


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


def _assumed(rows, out):
    if not rows:
        return
    out.print()
    out.print(Text("Assumed", style="bold"))
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(style="dim")
    for row in rows:
        grid.add_row(plain(row["field"], 60), plain(value_text(row["value"]), 40), plain(row["why"], 300))
    out.print(grid)


def value_text(value) -> str:
    """An input as people read it: whole numbers grouped, others with four digits."""
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if value is None:
        return "—"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if value == round(value) and abs(value) < 1e9 else f"{value:.4g}"


def endurance(result: dict, keys, out: Console) -> None:
    """Failures, saves, restarts, spares."""
    grid = _table("", "")
    for key in keys:
        if result.get(key) is not None:
            grid.add_row(quantity(key).label, show(key, result[key]), Text(quantity(key).formula, style="dim"))
    more = result.get("endurance") or {}
    for key in ("checkpoint_stall_s", "checkpoint_durable_s", "detect_s", "restart_s", "repair_s", "recovery_s", "lost_work_s"):
        if more.get(key) is not None:
            grid.add_row(
                quantity(f"endurance.{key}").label,
                show(f"endurance.{key}", more[key]),
                Text(quantity(f"endurance.{key}").formula, style="dim"),
            )
    for cause, value in (more.get("badput") or {}).items():
        label = table().get(f"endurance.badput.{cause}")
        grid.add_row(label.label if label else cause, show("goodput", value), Text(label.formula if label else "", style="dim"))
    out.print(Text(plain(result["name"], 120), style="bold"))
    out.print(grid)
