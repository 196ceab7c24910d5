"""An assessment in a terminal: labels, units and manner of every number come from the table of
quantities, lines from summary.yaml."""

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from ..advise.recovery import GOODPUT
from ..base.errors import plain
from ..base.quantities.table import band, band_in, quantity, show, told
from ..base.records import at
from ..base.show import value_text
from ..base.words import Words, table
from ..plans.words import short
from ..verdict.texts import verdict_sentence
from ..verdict.verdicts import VERDICTS, met
from .tables import TABLES, bare, figures, print_rows

say = Words(table(__file__, "summary"))
_COLOURS = {"good": "bold green", "warn": "bold yellow", "bad": "bold red"}
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
_PLAN = (
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
_QUIET = {
    "cp": 1,
    "vpp": 1,
    "ep": 1,
    "etp": 1,
    "offload": "none",
    "recompute_layers": 0,
}  # values that say nothing
_ENDURANCE = (
    "checkpoint_stall_s",
    "checkpoint_durable_s",
    "detect_s",
    "restart_s",
    "repair_s",
    "recovery_s",
    "lost_work_s",
)
_WIDTH = 28
LINES = 40
_NAME = 9  # width of the names of the first ten lines
_WIDE = 120  # columns
# lines that the summary has of each section; the others are under --full
_SHORT = {
    "Limits": 5,
    "Other changes": 3,
    "What this cluster can do": 3,
    "Not tried": 2,
    "Find out first": 2,
    "Avoid": 4,
}


def summary(result: dict, out: Console) -> None:
    """What decides, on at most LINES lines: verdict and its reason, job, plan, days, cost, MFU,
    memory, goodput and the first change on the first ten; then the step, what binds, more changes,
    what to avoid and what was assumed."""
    lines = [*_decides(result, out.width), *_sections(result, "avoid-short", out.width, _SHORT)]
    shown = [row for line in lines for row in _rows(line, out)]
    tail = _assumed_in_short(result, out.width)
    for row in (*shown[: LINES - len(tail)], *tail):
        out.print(row)


def _rows(line: Text, out: Console) -> Iterator[Text]:
    """The rows of a line; a number and its per cent stay on one. (To rich every space, the
    no-break one too, is a place to break: a letter of private use is not.)"""
    line.plain = line.plain.replace(" %", "\ue000%")
    for row in line.wrap(out, out.width):
        row.plain = row.plain.replace("\ue000", " ")
        yield row


def full(result: dict, out: Console) -> None:
    """The first ten lines, then all there is: figures with bands, memory, step, limits, changes,
    what to avoid, why this plan, the batch, nearest runs, assumptions."""
    for line in _decides(result, out.width * 4):
        out.print(line)
    plan = result["plan"]
    quiet = dict(_QUIET)
    if plan["sharding"] != "hsdp":
        quiet["shard_group"] = plan["shard_group"]
    said = (f"{k} {plan[k]}" for k in _PLAN if plan[k] not in (None, quiet.get(k)))
    out.print(Text(" " * _NAME).append(" · ".join(said)))
    out.print()
    _headline(result, out)
    memory = result["memory_bytes"]
    step = result["step_breakdown_s"]
    whole = result["step_s"]
    held = {k: show(f"memory_bytes.{k}", memory[k]) for k in (*_PARTS, "total", "capacity")}
    _bars(
        out,
        f"Memory of the fullest device   {held['total']} of {held['capacity']}",
        {f"memory_bytes.{k}": (memory[k], held[k]) for k in _PARTS},
        memory["capacity"],
    )
    parts = {
        f"step_breakdown_s.{k}": (v, f"{show('step_s', v)}  {show('mfu', v / whole)}")
        for k, v in largest(step)
        if v > 0.0005 * whole
    }
    _bars(out, f"Where the step goes   {show('step_s', whole)}", parts, max(step.values()))
    out.print(Text("\nWhat each kind of block takes", style="bold"))
    print_rows(out, TABLES["blocks"], result["blocks"])
    for line in _sections(result, "avoid", out.width * LINES):
        out.print(line)
    out.print()
    section(
        out,
        "Assumed",
        assumed_rows(result["assumed"]),
        {"style": "dim", "no_wrap": True},
        {"no_wrap": True},
        {"style": "dim"},
    )


def _decides(result: dict, width: int) -> list:
    """The first ten lines."""
    verdict = result["verdict"]
    memory = result["memory_bytes"]
    sentence = verdict_sentence(result)
    first = Text(f"{sentence.name}: ", style=_COLOURS[sentence.tone])
    first.append(plain(sentence.reason, 600), style="default")
    unchecked = "not-checked" if verdict == "not-checked" else "none-found"
    most = -(-_WIDE // width)  # of a line on a terminal narrower than usual
    changes = [fix_line(fix, width * most - 2 * _NAME) for fix in result["nearest_fixes"][:1]]
    rows = {
        "Job": _job(result),
        "Plan": short(result["plan"]),
        "Run": _run_of(result),
        "MFU": _mfu(result),
        "Memory": say("memory", **result, share=memory["total"] / memory["capacity"]),
        "Goodput": say("goodput", **result),
        "Change": changes[0] if changes else say("none-needed" if met(verdict) else unchecked),
        "Step": _step(result),
    }
    if memory["total"] > memory["capacity"]:
        rows |= dict.fromkeys(("Run", "MFU", "Goodput", "Step"), say("no-fit"))
    fastest = result["fastest"] or {}
    if fastest.get("plan") not in (None, result["plan"]):
        rows["Fastest"] = say(
            "fastest", plan=short(fastest["plan"]), gain=1 - fastest["step_s"] / result["step_s"]
        )
    if sites := result["sites"]:
        rows["Sites"] = say("sites", **sites, open=say("sites-apart") if sites["confirm"] else "")
    lines = [Text(plain(result["name"], 120), style="bold"), first]
    for name, said in rows.items():
        lines.append(Text(f"{name:<{_NAME}}", style="dim").append(said, style="default"))
    return [_clipped(line, width, 2 if i in (1, 4, 9) else most) for i, line in enumerate(lines)]


def _sections(result: dict, avoid: str, width: int, most: dict | None = None) -> Iterator:
    """The lines below the first ten under their headings; of each heading so many as `most` says,
    on two rows each. avoid : the form of the lines on what to avoid."""
    active = result.get("largest_active")
    lines = {
        "Limits": result["limits"][_leading(result) :],
        "Other changes": map(fix_line, result["nearest_fixes"][1:]),
        "What this cluster can do": map(fix_line, result["can_do"]),
        "Tried": _tried(result),
        "Not tried": result["not_tried"],
        "Find out first": map(_open, result["measure_first"]),
        "Active parameters": [say("active", **active)] if active else [],
        "Avoid": (say(avoid, **a) for a in result["avoid"]),
        "Why this plan": (w["text"] for w in result["why"]),
        "Global batch": result["batch"].get("lines", ()),
        "Nearest published runs": map(_run, result["nearest_runs"][:5]),
    }
    for heading, said in lines.items():
        said = [Text(f"· {plain(line, 600)}") for line in said]
        n = len(said) if most is None else most.get(heading, 0)
        if said and n:
            more = f"   {len(said) - n} more under --full" if len(said) > n else ""
            yield Text("")
            yield Text(heading, style="bold").append(more, style="dim")
            yield from (_clipped(line, width, 2) for line in said[:n])


def _clipped(line: Text, width: int, most: int) -> Text:
    """The line on at most so many rows."""
    line = line.copy()
    line.truncate(max(width * most - 8 * (most - 1), 20), overflow="ellipsis")
    return line


def _leading(result: dict) -> int:
    """How many of the limits the verdict line holds already."""
    return int(result["verdict"] != "feasible" and bool(result["limits"]))


def _job(result: dict) -> str:
    phases = result["phases"]
    phase = max(phases, key=lambda p: p["tokens"] or 0)
    more = len(phases) - 1
    sparse = result["active_params"] < 0.95 * result["params"]
    facts = result | {
        "phase": phase,
        "size": say("size-active" if sparse else "size", **result),
        "tokens": show("phases.tokens", phase["tokens"] or "no").replace(" ", ""),
        "batch": show("phases.tokens", phase["global_batch"] * phase["seq_len"]).replace(" ", ""),
        "stack": result["stack"] or "no stack named",
    }
    return say("job", **facts) + (say("phases", more=more) if more else "")


def _valued(result: dict, key: str) -> str:
    """A figure with its band."""
    spread = band_in(result, key)
    return show(key, result[key]) + (f" ({spread})" if spread else "")


def _run_of(result: dict) -> str:
    """Days and dollars with their bands, and what holds the bands up."""
    if result["days"] is None:
        return say("no-run")
    said = say(
        "run",
        days=_valued(result, "days"),
        cost="no price" if result["cost_usd"] is None else _valued(result, "cost_usd"),
    )
    loss = result["to_loss"]
    if loss and loss["days_low"] is not None:
        said += say(
            "to-loss",
            **loss,
            spread=band("days", loss["days_low"], loss["days_high"]),
            laws=len(loss["rows"]),
        )
    for name, key in (("to_plan_for", "total_usd"), ("promise", "days_p90")):
        found = result.get(name) or {}
        said += say(name.replace("_", "-"), **found) if found.get(key) else ""
    kept = (result.get("promise") or {}).get("deadline_kept")
    said += "" if kept is None else say("deadline-kept", deadline_kept=kept)
    return said + say("bands", **result)


def _mfu(result: dict) -> str:
    said = say(
        "mfu",
        mfu=_valued(result, "mfu_shown"),
        peak=result["mfu_denominator"].partition(" of ")[0],
        mfu_basis=result["mfu_basis"],
    )
    half = abs(result["mfu_bf16_peak"] / result["mfu"] - 1) > 0.1
    return said + (say("mfu-bf16", **result) if half else "")


def largest(parts: dict) -> list:
    """Parts of a whole, the largest first."""
    return sorted(parts.items(), key=lambda kv: -kv[1])


def _step(result: dict) -> str:
    """The step, its largest parts, tokens a second."""
    whole = result["step_s"]
    label = {k: quantity(f"step_breakdown_s.{k}").label for k in result["step_breakdown_s"]}
    parts = (
        f"{label[k].replace(',', '')} {show('mfu', v / whole)}"
        for k, v in largest(result["step_breakdown_s"])[:5]
        if v > 0.005 * whole
    )
    return say("step", **result, step=_valued(result, "step_s"), parts=", ".join(parts))


def _open(row: dict) -> str:
    """What is worth knowing first, and the bands then."""
    ends = [(k, row[f"{k}_low"], row[f"{k}_high"]) for k in ("days", "cost_usd")]
    bands = " and ".join(band(*end) for end in ends if end[1] is not None)
    return say("open", **row, bands=bands)


def _assumed_in_short(result: dict, width: int) -> list:
    """How many inputs were assumed, those of the job by name, where to read on."""
    assumed = result["assumed"]
    named = [a for a in assumed if a["field"].startswith(("job", "prices.usd_per_device"))]
    said = ", ".join(f"{a['field']} {value_text(a['value'])}" for a in named)
    said = say("assumed-named", named=said) if said else ""
    lines = ("", say("assumed", n=len(assumed), named=said), say("more"))
    return [_clipped(Text(plain(line, 1000), style="dim"), width, 1) for line in lines]


def fix_line(fix: dict, most: int = 1200) -> str:
    """A change in one line: what, the verdict with it, days, dollars, MFU and what is still missed;
    the words of the change are cut where the line has more than `most` characters."""
    still = [text.partition(",")[0].partition(";")[0] for text in fix["missed"]]
    row = fix | {
        "figures": ", ".join(told(fix, {"days": "", "cost_usd": "", "mfu_shown": "MFU "})),
        "verdict": VERDICTS[fix["verdict"]].name.lower(),
    }
    left = say("missed", missed=", ".join(still)) if still else ""
    room = most - len(say("fix", **row | {"change": ""}) + left)
    return say("fix", **row | {"change": plain(fix["change"], max(room, 24))}) + left


def endurance(result: dict, out: Console) -> None:
    """Failures, saves, restarts, spares; each with its formula."""
    badput = result["endurance"]["badput"]
    keys = (
        *GOODPUT,
        *(f"endurance.{k}" for k in _ENDURANCE),
        *(f"endurance.badput.{k}" for k in badput),
    )
    out.print(Text(plain(result["name"], 120), style="bold"))
    rows = (
        (quantity(k).label, show(k, value), Text(quantity(k).formula, style="dim"))
        for k in keys
        if (value := at(result, k)) is not None
    )
    out.print(figures(rows))
    for line in _lived(result):
        out.print(Text(plain(line, 1000)))


def _lived(result: dict) -> Iterator:
    """Lines below the figures of `goodput`: copies by tier, the interval, spares, the promise."""
    for tier in result["tiers"]:
        yield say("tier", **tier, causes=", ".join(tier["restores"]) or "nothing")
    yield say("interval", **result)
    yield from (say("spares", **row) for row in result["spares_table"])
    if result["promise"]:
        yield say("promised", **result["promise"])


def _headline(result: dict, out: Console) -> None:
    same = {"hfu": result["mfu"], "active_params": result["params"]}
    rows = (
        (
            quantity(key).label,
            show(key, result[key]),
            "measured" if key in result["measured"] else band_in(result, key),
        )
        for key in _HEADLINE
        if result[key] not in (None, same.get(key))
    )
    out.print(figures(rows, "80 % band"))


def section(out: Console, title: str, rows, *columns: dict) -> None:
    """A heading and a table without one below it."""
    out.print(Text(title, style="bold"))
    out.print(bare(rows, *columns))


def assumed_rows(assumed, most: int = 300) -> list:
    """(field, value, why) of every assumption, fit for a terminal."""
    return [
        (plain(a["field"], 60), plain(value_text(a["value"]), 40), plain(a["why"], most))
        for a in assumed
    ]


def _bars(out: Console, title: str, rows: dict, full: float) -> None:
    """Parts of a whole, by the keys of their quantities: (value, text), with a bar each."""
    out.print()
    out.print(Text(title, style="bold"))
    bars = []
    for key, (value, text) in rows.items():
        size = min(max(value / full, 0.0), 2.0) * _WIDTH
        bar = "█" * int(size) + ("▌" if size % 1 >= 0.5 else "") or ("▏" if value > 0 else "")
        bars.append((quantity(key).label, text, Text(bar, style="cyan")))
    out.print(figures(bars))


def _tried(result: dict) -> Iterator:
    """What every change comes to where an MFU floor is missed that none of them reaches."""
    floor = next((m["limit"] for m in result["missed"] if m["field"] == "min_mfu"), 0.0)
    rows = result["tried"]
    if rows and all(r["mfu_shown"] < floor for r in rows):
        best = largest({_named(r["change"]): r["mfu_shown"] for r in rows})
        kept = best[:5] + [kv for kv in best[5:] if "matrix products" in kv[0]]
        named = ", ".join(f"{what} {show('mfu', mfu)}" for what, mfu in kept)
        yield say("tried", n=len(best), floor=floor, named=named)


def _named(change: str) -> str:
    """A change without its remarks in brackets, but for the peak that its MFU is a share of."""
    return change if "peak" in change else change.partition(" (")[0]


def _run(run: dict) -> str:
    devices = run["devices"] and f"{run['devices']:,} devices"
    mfu = run["mfu"] and f"MFU {show('mfu', run['mfu'])}"
    parts = (run["model"], run["accelerator"], devices, run["plan"], mfu, run["source"])
    return " · ".join(filter(None, parts))
