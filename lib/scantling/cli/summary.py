"""An assessment in a terminal: labels, units and manner of every number come from the table of
quantities, lines from texts.py."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from ..advise.recovery import GOODPUT, Living
from ..base.errors import plain
from ..base.quantities.quantity import quantity, show
from ..base.records import at
from ..base.show import largest, params, seconds, share, size, value_text
from ..catalogue.words import MEMORY_PARTS
from ..physics.bands import NearRun
from ..physics.block_kinds import Kind
from ..plans.plan_names import PlanRow, fields_of_plan, short
from ..verdict.result import FigureKey, Result, band_of
from ..verdict.texts import leading, verdict_sentence
from ..verdict.verdicts import met
from . import texts
from .tables import DIM, LABEL, NAME, TONES, Look, bare, figures, named_line, print_rows

# fields that days and dollars hang on most where they are assumed, the weightiest first
DECIDING = (
    "accelerator",
    "tokens",
    "precision",
    "seq_len",
    "global_batch",
    "usd_per_device_hour",
    "scale_out",
    "stack",
    "effort",
    "optimizer",
)
SAID = 0.001  # of a step, below which no faster plan is named
_HEADLINE: tuple[FigureKey, ...] = (
    "likely.days",
    "likely.cost_usd",
    "days",
    "mfu_shown",
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
    "synchronous_save_s",
    "watchdog_s",
    "detect_s",
    "restart_s",
    "repair_s",
    "recovery_s",
    "lost_work_s",
)
_WIDTH = 28
LINES = 40
_WIDE = 120  # columns
_JOINED = "\ue000"  # a space that no row is broken at: rich breaks at the no-break one too
# lines that the summary has of each section; the others are under --full
_SHORT = {
    "Limits": 5,
    "Other changes": 3,
    "What this cluster can do": 3,
    "Not tried": 2,
    "Find out first": 2,
    "Avoid": 4,
    "Launch kit": 2,
    "No effect": 2,
}


class Line(NamedTuple):
    """A line, and after how many characters its further rows begin."""

    text: Text
    hang: int = 0


def summary(result: Result, out: Console) -> None:
    """What decides, on at most LINES lines: verdict and its reason, job, plan, days, cost, MFU,
    memory, goodput and the first change on the first ten; then the step, what binds, more changes,
    what to avoid and what was assumed."""
    first = [row for line in _decisive_lines(result, out.width) for row in _rows(line, out)]
    tail = _assumed_in_short(result, out.width)
    room = LINES - len(first) - len(tail)
    sections = [[*_rows(line, out)] for line in _sections(result, out.width, short=True)]
    for row in (*first, *_whole(sections, room), *tail):
        out.print(row)


def _whole(lines: list[list[Text]], room: int) -> list[Text]:
    """The rows of the first lines that find room whole, without a heading that none of its own
    follows."""
    ends = accumulate(map(len, lines))
    kept = [rows for rows, end in zip(lines, ends) if end <= room]
    while kept and not kept[-1][0].plain.startswith("·"):
        kept.pop()
    return [row for rows in kept for row in rows]


def _rows(line: Line, out: Console) -> Iterator[Text]:
    """The rows of a line, those after the first under its text; what _JOINED holds together stays
    on one."""
    head, text = line.text.divide([line.hang])
    text.plain = text.plain.replace(" %", f"{_JOINED}%")
    for row in text.wrap(out, out.width - line.hang):
        row.rstrip()
        row.plain = row.plain.replace(_JOINED, " ")
        yield head.append_text(row)
        head = Text(" " * line.hang)


def _print(line: Line, out: Console) -> None:
    """Print a line."""
    for row in _rows(line, out):
        out.print(row)


def full(result: Result, out: Console) -> None:
    """The first ten lines, then all there is: figures with bands, memory, step, limits, changes,
    what to avoid, why this plan, the batch, nearest runs, assumptions."""
    for line in _decisive_lines(result, out.width * 4):
        _print(line, out)
    out.print(Text(" " * NAME).append(_plan_in_full(result["plan"])))
    out.print()
    _headline(result, out)
    _memory_bars(result["memory_bytes"], out)
    _step_bars(result["step_breakdown_s"], result["step_s"], out)
    out.print(Text("\nWhat each kind of block takes", style="bold"))
    print_rows(out, [_block(row) for row in result["blocks"]])
    for line in _sections(result, out.width * LINES, short=False):
        _print(line, out)
    out.print()
    section(out, "Assumed", _assumed(result["assumed"]), LABEL, Look(no_wrap=True), DIM)


def _plan_in_full(plan: PlanRow) -> str:
    """Every field of the plan that says something."""
    quiet = dict(_QUIET)
    if plan["sharding"] != "hsdp":
        quiet["shard_group"] = plan["shard_group"]
    fields = fields_of_plan(plan, _PLAN).items()
    return " · ".join(f"{key} {x}" for key, x in fields if x not in (None, quiet.get(key)))


def _memory_bars(memory: Mapping[str, float], out: Console) -> None:
    """Memory of the fullest device by part."""
    parts = {f"memory_bytes.{k}": (memory[k], size(memory[k])) for k in MEMORY_PARTS}
    total, capacity = size(memory["total"]), size(memory["capacity"])
    _bars(out, f"Memory of the fullest device   {total} of {capacity}", parts, memory["capacity"])


def _step_bars(step: Mapping[str, float], whole_s: float, out: Console) -> None:
    """The step by part."""
    parts = {
        f"step_breakdown_s.{k}": (v, f"{seconds(v)}  {share(v / whole_s)}")
        for k, v in largest(step)
        if v > 0.0005 * whole_s
    }
    _bars(out, f"Where the step goes   {seconds(whole_s)}", parts, max(step.values()))


def _block(row: Kind) -> dict[str, str]:
    """What a kind of block takes, as a row of a table."""
    return {
        "kind": row["kind"],
        "blocks": f"{row['count']:,.0f}",
        "parameters": params(row["parameters"]),
        "compute": share(row["step_share"]),
        "memory": share(row["memory_share"]),
        "over cp": share(row["context_share"]),
    }


def _decisive_lines(result: Result, width: int) -> list[Line]:
    """The first ten lines."""
    sentence = verdict_sentence(result)
    first = Text(f"{sentence.name}: ", style=TONES[sentence.tone])
    first.append(plain(sentence.reason, 600), style="default")
    most = -(-_WIDE // width)  # of a line on a terminal narrower than usual
    lines = [Line(Text(plain(result["name"], 120), style="bold")), Line(first)]
    for name, text in _named_lines(result, width * max(most, 2) - 2 * NAME).items():
        lines.append(Line(named_line(name, text), NAME))
    two = (1, 2, 4, 7, 8, 9, 10)  # lines that may take two rows: not name, Plan, MFU, Memory
    return [_clipped(line, width, 2 if i in two else most) for i, line in enumerate(lines)]


def _named_lines(result: Result, width: int) -> dict[str, str]:
    """Job to step, each by its name; a change has at most `width` characters."""
    memory = result["memory_bytes"]
    off_device = result["limit_kinds"][:1] == ["memory"]
    fits = memory["total"] <= memory["capacity"] and not off_device
    rows = {
        "Job": texts.job(result),
        "Plan": short(result["plan"]),
        "Run": texts.run(result) if fits else texts.NO_FIT,
        "MFU": texts.mfu(result) if fits else texts.NO_FIT,
        "Memory": texts.memory(result),
        "Goodput": texts.goodput(result) if fits else texts.NO_FIT,
        "Change": _first_change(result, width),
        "Step": _step(result) if fits else texts.NO_FIT,
    }
    fastest = result["fastest"]
    if fastest and fastest["plan"] != result["plan"]:
        gain = 1 - fastest["step_s"] / result["step_s"]
        if gain >= SAID:
            rows["Fastest"] = texts.fastest(short(fastest["plan"]), gain, fastest["why_not"])
    if result["sites"]:
        rows["Sites"] = texts.sites(result["sites"])
    return rows


def _first_change(result: Result, width: int) -> str:
    """The change that is nearest, or why there is none."""
    if result["nearest_fixes"]:
        return texts.change(result["nearest_fixes"][0], width)
    saving = result.get("saving")
    if saving:
        return texts.change(saving, width)
    if met(result["verdict"]):
        return texts.NONE_NEEDED
    return texts.NOT_CHECKED if result["verdict"] == "not-checked" else texts.NONE_FOUND


def _sections(result: Result, width: int, short: bool) -> Iterator[Line]:
    """The lines below the first ten under their headings, on two rows each; in short so many of
    each heading as _SHORT says."""
    active = result.get("largest_active")
    avoid = texts.avoid_in_short if short else texts.avoid
    sections: dict[str, Iterable[str]] = {
        "Limits": result["limits"][leading(result) :],
        "Other changes": map(texts.change, result["nearest_fixes"][1:]),
        "What this cluster can do": map(texts.change, result["can_do"]),
        "Tried": _tried(result),
        "Not tried": result["not_tried"],
        "Find out first": map(texts.worth_knowing, result["measure_first"]),
        "Active parameters": [texts.active(active)] if active else [],
        "Launch kit": result["kit"] or [],
        "No effect": result["no_effect"],
        "Avoid": map(avoid, result["avoid"]),
        "Why this plan": (row["text"] for row in result["why"]),
        "Global batch": result["batch"].get("lines", ()),
        "Nearest published runs": map(_run, result["nearest_runs"][:5]),
    }
    for heading, section_lines in sections.items():
        lines = [Line(Text(f"· {plain(line, 600)}"), 2) for line in section_lines]
        n = _SHORT.get(heading, 0) if short else len(lines)
        if lines and n:
            more = f"   {len(lines) - n} more under --full" if len(lines) > n else ""
            yield Line(Text(""))
            yield Line(Text(heading, style="bold").append(more, style="dim"))
            yield from (_clipped(line, width, 2) for line in lines[:n])


def _clipped(line: Line, width: int, most: int) -> Line:
    """The line on at most so many rows."""
    text = line.text.copy()
    room = width * most - (8 + line.hang) * (most - 1)
    text.truncate(max(room, 20), overflow="ellipsis")
    return Line(text, line.hang)


def _step(result: Result) -> str:
    """The step, its largest parts, tokens a second."""
    whole = result["step_s"]
    parts = []
    for part, span in largest(result["step_breakdown_s"])[:5]:
        if span > 0.005 * whole:
            label = quantity(f"step_breakdown_s.{part}").label.replace(",", "")
            parts.append(f"{label} {share(span / whole)}".replace(" ", _JOINED))
    return texts.step(result, parts)


def _assumed_in_short(result: Result, width: int) -> list[Text]:
    """How many inputs were assumed, the weightiest by name, where to read on."""
    assumed = result["assumed"]
    by_name = [(a["field"].rpartition(".")[2], a) for a in assumed]
    heavy = [a for name in DECIDING for own, a in by_name if own == name]
    names = ", ".join(f"{a['field']} {value_text(a['value'])}" for a in heavy)
    lines = ("", texts.assumed(len(assumed), names), texts.MORE)
    clipped = (_clipped(Line(Text(plain(line, 1000), style="dim")), width, 1) for line in lines)
    return [line.text for line in clipped]


def endurance(result: Living, out: Console) -> None:
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
    for line in _goodput_lines(result):
        out.print(Text(plain(line, 1000)))


def _goodput_lines(result: Living) -> Iterator[str]:
    """Lines below the figures of `goodput`: copies by tier, the interval, spares, the promise."""
    yield from map(texts.tier, result["tiers"])
    yield f"Interval: {result['interval_why']}"
    yield from map(texts.spares, result["spares_table"])
    if result["promise"]:
        yield texts.promised(result["promise"])


def _headline(result: Result, out: Console) -> None:
    same = {"hfu": result["mfu"], "active_params": result["params"]}
    measured = {"mfu_shown" if key == "mfu" else key for key in result["measured"]}
    in_full = ", attention in full" if result["mfu_basis"] == "causal" else ""
    rows = (
        (
            quantity(key).label + (in_full if key == "hfu" else ""),
            show(key, at(result, key)),
            "measured" if key in measured else band_of(result, key),
        )
        for key in _HEADLINE
        if at(result, key) not in (None, same.get(key))
    )
    out.print(figures(rows, "80 % band"))


def section(out: Console, title: str, rows: Iterable[Sequence[str]], *looks: Look) -> None:
    """A heading and a table without one below it."""
    out.print(Text(title, style="bold"))
    out.print(bare(rows, *looks))


def _assumed(assumed: Iterable[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """(field, value, why) of every assumption, fit for a terminal."""
    return [
        (plain(a["field"], 60), plain(value_text(a["value"]), 40), plain(a["why"], 300))
        for a in assumed
    ]


def _bars(out: Console, title: str, rows: Mapping[str, tuple[float, str]], full: float) -> None:
    """Parts of a whole, by the keys of their quantities: (value, text), with a bar each."""
    out.print()
    out.print(Text(title, style="bold"))
    bars = []
    for key, (value, text) in rows.items():
        length = min(max(value / full, 0.0), 2.0) * _WIDTH
        bar = "█" * int(length) + ("▌" if length % 1 >= 0.5 else "")
        if not bar and value > 0:
            bar = "▏"
        bars.append((quantity(key).label, text, Text(bar, style="cyan")))
    out.print(figures(bars))


def _tried(result: Result) -> Iterator[str]:
    """What every change comes to where an MFU floor is missed that none of them reaches."""
    floor = next((float(m["limit"]) for m in result["missed"] if m["field"] == "min_mfu"), 0.0)
    rows = result["tried"]
    if rows and all(r["mfu_shown"] < floor for r in rows):
        best = largest({_without_remarks(r["change"]): r["mfu_shown"] for r in rows})
        leading = best[:5] + [row for row in best[5:] if "matrix products" in row[0]]
        named = ", ".join(f"{change} {share(mfu)}" for change, mfu in leading)
        yield texts.tried(len(best), floor, named)


def _without_remarks(change: str) -> str:
    """A change without its remarks in brackets, but for the peak that its MFU is a share of."""
    return change if "peak" in change else change.partition(" (")[0]


def _run(run: NearRun) -> str:
    """A published run on one line."""
    devices = f"{run['devices']:,} devices" if run["devices"] else ""
    mfu = f"MFU {share(run['mfu_shown'])}" if run["mfu_shown"] else ""
    parts = (run["model"], run["accelerator"], devices, run["plan"], mfu, run["source"])
    return " · ".join(part for part in parts if part)
