"""An assessment in a terminal: labels, units and manner of every number come from the table of
quantities."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..base.errors import plain
from ..base.quantities.table import band, quantity, show
from ..base.show import percent, scalar, several, shown
from ..plans.words import short
from ..verdict.verdicts import TONE, VERDICTS, met

_COLOURS = {
    "good": "bold green",
    "warn": "bold yellow",
    "bad": "bold red",
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
    """What decides, on at most LINES lines: verdict and its reason, job, plan, days, cost, MFU,
    memory, goodput and the first change on the first ten; then the step, what binds, more changes,
    what to avoid and what was assumed."""
    lines = _decides(result, out.width)
    for heading, said, most in (
        ("Limits", result["limits"][_leading(result) :], 5),
        ("Other changes", map(fix_line, (result.get("nearest_fixes") or [])[1:]), 3),
        ("What this cluster can do", map(fix_line, result.get("can_do") or []), 3),
        ("Not tried", result.get("not_tried"), 2),
        ("Find out first", map(_open, result.get("measure_first") or []), 2),
        ("Avoid", (_short_of(a) for a in result.get("avoid") or []), 4),
    ):
        said = [Text(f"· {plain(str(line), 600)}") for line in said or ()]
        if said:
            more = f"   {len(said) - most} more under --full" if len(said) > most else ""
            lines += [Text(""), Text(heading, style="bold").append(more, style="dim")]
            lines += [
                _clipped(
                    line,
                    out.width,
                    2,
                )
                for line in said[:most]
            ]
    shown = [row for line in lines for row in line.wrap(out, out.width)]
    tail = _assumed_in_short(result, out.width)
    for row in (*shown[: LINES - len(tail)], *tail):
        out.print(row)


LINES = 40
_NAME = 9  # width of the names of the first ten lines
_WIDE = 120  # columns


def _decides(result: dict, width: int) -> list[Text]:
    """The first ten lines."""
    verdict = result["verdict"]
    first = Text(f"{VERDICTS[verdict].name}: ", style=_COLOURS[TONE[verdict]])
    first.append(plain(_reason(result), 600), style="default")
    fix = (result.get("nearest_fixes") or [None])[0]
    rows = (
        ("Job", _job(result)),
        ("Plan", short(result["plan"])),
        ("Run", _run_of(result)),
        ("MFU", _mfu(result)),
        ("Memory", _memory(result)),
        ("Goodput", _goodput(result)),
        ("Change", fix_line(fix) if fix else _without_fix(result)),
    )
    lines = [Text(plain(result["name"], 120), style="bold"), first]
    for name, said in rows:
        lines.append(Text(f"{name:<{_NAME}}", style="dim").append(said, style="default"))
    lines.append(Text(f"{'Step':<{_NAME}}", style="dim").append(_step(result), style="default"))
    fastest = result.get("fastest") or {}
    if fastest.get("plan") not in (None, result["plan"]):
        gain = 1 - fastest["step_s"] / result["step_s"]
        said = f"{short(fastest['plan'])}: {show('mfu', gain)} less time a step"
        lines.append(Text(f"{'Fastest':<{_NAME}}", style="dim").append(said, style="default"))
    rows = -(-_WIDE // width)  # of a line on a terminal narrower than usual
    return [
        _clipped(
            line,
            width,
            2 if i in (1, 4, 9) else rows,
        )
        for i, line in enumerate(lines)
    ]


def _clipped(
    line: Text,
    width: int,
    most: int,
) -> Text:
    """The line on at most so many rows."""
    line = line.copy()
    line.truncate(max(width * most - 8 * (most - 1), 20), overflow="ellipsis")
    return line


def _leading(result: dict) -> int:
    """How many of the limits the verdict line holds already."""
    return int(result["verdict"] != "feasible" and bool(result["limits"]))


def _reason(result: dict) -> str:
    if _leading(result):
        return result["limits"][0]
    return "a plan fits, and no stated constraint is violated"


def _job(result: dict) -> str:
    phase = max(result["phases"], key=lambda p: p["tokens"] or 0)
    size, batch = show("params", result["params"]), phase["global_batch"]
    active = result["active_params"]
    if active < 0.95 * result["params"]:
        size += f" ({show('active_params', active)} active)"
    tokens = show("phases.tokens", phase["tokens"]).replace(" ", "") if phase["tokens"] else "no"
    parts = [
        f"{size} parameters",
        f"{result['devices']:,} {result['accelerator']}",
        f"{tokens} tokens",
        f"seq {phase['seq_len']:,}",
        f"batch {batch:,} ({batch * phase['seq_len'] / 1e6:,.3g}M tokens)",
        result["plan"]["precision"],
        result["stack"] or "no stack named",
    ]
    idle = result["devices"] - result["devices_used"]
    parts += [f"{idle:,} devices idle"] if idle else []
    more = len(result["phases"]) - 1
    return ", ".join(parts + ([f"and {more} more phases"] if more else []))


def _valued(
    result: dict,
    key: str,
    missing: str,
) -> str:
    """A figure with its band."""
    value, low, high = (result.get(key + end) for end in ("", "_low", "_high"))
    if value is None:
        return missing
    return show(key, value) + (f" ({band(key, low, high)})" if low not in (None, high) else "")


def _run_of(result: dict) -> str:
    """Days and dollars with their bands, and what holds the bands up."""
    if result["days"] is None:
        return "without tokens there are no days and no cost"
    parts = [
        _valued(
            result,
            "days",
            "",
        ),
        _valued(
            result,
            "cost_usd",
            "no price",
        ),
    ]
    loss = result.get("to_loss")
    if loss and loss["days_low"] is not None:
        spread = band(
            "days",
            loss["days_low"],
            loss["days_high"],
        )
        parts.append(f"{spread} to a loss of {loss['target_loss']:g} by {len(loss['rows'])} laws")
    planned = (result.get("to_plan_for") or {}).get("total_usd")
    parts += [f"to plan for: {show('cost_usd', planned)}"] if planned else []
    late = (result.get("promise") or {}).get("days_p90")
    parts += [f"to promise: {show('days', late)}"] if late else []
    return "; ".join([*parts, f"80 % bands, {result['band_tier']}"])


def _mfu(result: dict) -> str:
    scale = result["mfu_shown"] / result["mfu"]
    spread = band(
        "mfu",
        result["mfu_low"] * scale,
        result["mfu_high"] * scale,
    )
    peak = result["mfu_denominator"].partition(" of ")[0]
    attention = f"{result['mfu_basis']} attention"
    said = f"{show('mfu', result['mfu_shown'])} ({spread}) of {peak}, {attention}"
    other = result["mfu_bf16_peak"] / result["mfu"]
    if abs(other - 1) > 0.1:
        said += f"; {show('mfu', result['mfu_bf16_peak'])} of the bf16 peak in full"
    return said


def _memory(result: dict) -> str:
    held = result["memory_bytes"]
    total, capacity = (show(f"memory_bytes.{k}", held[k]) for k in ("total", "capacity"))
    share = percent(held["total"] / held["capacity"], 0)
    chance = shown(result["oom_probability"], "chance")
    return f"{total} of {capacity} ({share}); {chance} chance of running out"


def _goodput(result: dict) -> str:
    failures, saves = (show(k, result[k]) for k in ("mtbf_s", "checkpoint_interval_s"))
    said = f"{show('goodput', result['goodput'])}; a failure every {failures}, "
    return said + f"a checkpoint every {saves}, {several(result['spares'], 'spare node')}"


def _without_fix(result: dict) -> str:
    if met(result["verdict"]):
        return "none is needed"
    return "confirm or complete the file" if result["verdict"] == "not-checked" else "none found"


def _step(result: dict) -> str:
    """The step, its largest parts, tokens a second."""
    parts = sorted(result["step_breakdown_s"].items(), key=lambda kv: -kv[1])[:5]
    label = {k: quantity(f"step_breakdown_s.{k}").label.replace(",", "") for k, _ in parts}
    share = ", ".join(
        f"{label[k]} {show('mfu', v / result['step_s'])}"
        for k, v in parts
        if v > 0.005 * result["step_s"]
    )
    rate = show("tokens_per_s_per_device", result["tokens_per_s_per_device"])
    return f"{_valued(result, 'step_s', '')}, {rate} a device; {share}"


def _open(row: dict) -> str:
    """What is worth knowing first, and the bands then."""
    ends = [(k, row[f"{k}_low"], row[f"{k}_high"]) for k in ("days", "cost_usd")]
    said = " and ".join(band(*end) for end in ends if end[1] is not None)
    return f"{row['what']}: {percent(row['narrows'], 0)} of the width goes, {said} stay"


def _short_of(avoided: dict) -> str:
    return " — ".join(str(x) for x in (avoided.get("what"), avoided.get("cost")) if x)


def _assumed_in_short(result: dict, width: int) -> list[Text]:
    """How many inputs were assumed, those of the job by name, where to read on."""
    assumed = result.get("assumed") or []
    named = [a for a in assumed if a["field"].startswith(("job", "prices.usd_per_device"))]
    said = ", ".join(f"{a['field']} {value_text(a['value'])}" for a in named)
    head = f"{several(len(assumed), 'input')} assumed" + (f", among them {said}" if said else "")
    rest = (
        "--full: every part of step and memory, why this plan, batch, published runs, assumptions"
    )
    lines = [
        Text(""),
        Text(plain(head, 1000), style="dim"),
        Text(rest, style="dim"),
    ]
    return [
        _clipped(
            line,
            width,
            1,
        )
        for line in lines
    ]


def full(result: dict, out: Console) -> None:
    """The first ten lines, then all there is: figures with bands, memory, step, limits, changes,
    what to avoid, why this plan, the batch, nearest runs, assumptions."""
    for line in _decides(result, out.width * 4):
        out.print(line)
    out.print(Text(f"{'':<{_NAME}}").append(plan_line(result["plan"])))
    out.print()
    _headline(result, out)
    for heading, lines in (
        ("Limits", result.get("limits")),
        ("Nearest changes that help", map(fix_line, result.get("nearest_fixes") or [])),
        ("What this cluster can do", map(fix_line, result.get("can_do") or [])),
        ("Tried", _tried(result)),
        ("Not tried", result.get("not_tried")),
        ("Find out first", map(_open, result.get("measure_first") or [])),
        ("Active parameters", _active(result)),
    ):
        _lines(
            out,
            heading,
            lines,
        )
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
    avoid = ([a.get(k) for k in ("what", "why", "cost")] for a in result.get("avoid") or [])
    for heading, lines in (
        ("Avoid", (" — ".join(str(x) for x in said if x not in (None, "")) for said in avoid)),
        ("Why this plan", (w["text"] for w in result.get("why") or [])),
        ("Global batch", (result.get("batch") or {}).get("lines")),
        ("Nearest published runs", map(_run, (result.get("nearest_runs") or [])[:5])),
    ):
        _lines(
            out,
            heading,
            lines,
        )
    assumed = result.get("assumed")
    if assumed:
        out.print()
        rows = assumed_rows((a["field"], a["value"], a["why"]) for a in assumed)
        section(
            out,
            "Assumed",
            rows,
            {
                "style": "dim",
                "no_wrap": True,
            },
            {"no_wrap": True},
            {"style": "dim"},
        )


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
    value = scalar(value)
    if value is None:
        return "—"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return (
        f"{value:,.0f}"
        if isinstance(value, int) or (value == round(value) and abs(value) < 1e9)
        else f"{value:.4g}"
    )


def endurance(
    result: dict,
    keys,
    out: Console,
) -> None:
    """Failures, saves, restarts, spares; each with its formula."""
    more = result.get("endurance") or {}
    values = {
        **{key: result.get(key) for key in keys},
        **{f"endurance.{key}": more.get(key) for key in _ENDURANCE},
        **{f"endurance.badput.{k}": share for k, share in (more.get("badput") or {}).items()},
    }
    grid = _figures("", "")
    for key, value in values.items():
        if value is not None:
            known = quantity(key)
            grid.add_row(
                known.label,
                show(key, value),
                Text(known.formula, style="dim"),
            )
    out.print(Text(plain(result["name"], 120), style="bold"))
    out.print(grid)
    for line in _lived(result):
        out.print(Text(plain(line, 1000)))


def _lived(result: dict):
    """Lines below the figures of `goodput`: copies by tier, the interval, spares, the promise."""
    for tier in result["tiers"]:
        every, write = (show("checkpoint_interval_s", tier[k]) for k in ("every_s", "write_s"))
        causes = ", ".join(tier["restores"]) or "nothing"
        yield f"{tier['tier']}: every {every}, written in {write}, restores {causes}"
    yield f"Interval: {result['interval_why']}"
    for row in result["spares_table"]:
        said = (show(key, row[key]) for key in ("goodput", "days", "cost_usd"))
        yield f"Spares {row['spares']}: goodput, days, cost " + ", ".join(said)
    if result["promise"]:
        yield f"Promise: {promised(result['promise'])}"


def promised(promise: dict) -> str:
    """The date and the cost to promise, in a line."""
    said = {
        k: show(k[: k.rindex("_")] + ("_usd" if "cost" in k else ""), promise[k])
        for k in ("days_p50", "days_p90", "cost_p50", "cost_p90")
    }
    return (
        f"{said['days_p50']} as likely as not, {said['days_p90']} in nine of ten; "
        f"{said['cost_p50']} and {said['cost_p90']}"
    )


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
            spread = (
                "measured"
                if key in measured
                else band(
                    key,
                    low,
                    high,
                )
                if wide
                else ""
            )
            grid.add_row(
                quantity(key).label,
                show(key, value),
                spread,
            )
    out.print(grid)


def bare(*columns: dict, headed: bool = True) -> Table:
    """A table without rules."""
    table = Table(
        box=None,
        pad_edge=False,
        header_style="dim",
        show_header=headed,
    )
    for column in columns:
        table.add_column(**column)
    return table


def _figures(*heads):
    """A table of a label, a number and what `heads` name."""
    return bare(
        {
            "style": "dim",
            "no_wrap": True,
        },
        {
            "header": heads[0],
            "justify": "right",
            "no_wrap": True,
        },
        *({"header": head} for head in heads[1:]),
        headed=any(heads),
    )


def section(out, title, rows, *columns):
    """A heading and a table without one below it."""
    out.print(Text(title, style="bold"))
    table = bare(*columns, headed=False)
    for row in rows:
        table.add_row(*row)
    out.print(table)


def _lines(
    out,
    title,
    lines,
):
    rows = [("·", Text(plain(str(line), 600))) for line in lines or []]
    if rows:
        out.print()
        section(
            out,
            title,
            rows,
            {"width": 1},
            {},
        )


def assumed_rows(rows, most: int = 300) -> list[tuple[str, ...]]:
    """(field, value, why) of every assumption, fit for a terminal."""
    return [
        (plain(field, 60), plain(value_text(value), 40), plain(why, most))
        for field, value, why in rows
    ]


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
        grid.add_row(
            label,
            text,
            Text(bar[: 2 * _WIDTH], style="cyan"),
        )
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
    count = show("active_params", most["active_params"])
    return [
        f"the active count was not given: up to {count} (top-{most['top_k']} of "
        f"{most['experts']}) meet the deadline, in {show('days', most['days'])}"
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
