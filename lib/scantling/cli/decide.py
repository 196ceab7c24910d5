"""Commands that compare: candidates for a measured sweep, sweeps over inputs, a diagnosis, direct
answers."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click
from rich.console import Console

from ..advise import diagnose as diagnosing, sweeps
from ..advise.direct import QUESTIONS
from ..advise.extremes import by_scaling_laws, to_loss
from ..advise.fixes import cheaper
from ..advise.frontier import diverse, export, front as front_of, read_back
from ..advise.sensitivity import quantities, tornado
from ..advise.sweeps import edge
from ..base.console import console, print_json
from ..base.errors import DesignError, blamed_on, plain
from ..base.quantities.quantity import band, show
from ..base.show import days, params, percent, seconds, share, usd
from ..design.design import Design
from ..design.file_or_stdin import read
from ..physics.memory.peak import SAFE, zone
from ..plans.plan_names import short
from ..verdict.assess import assess
from ..verdict.result import bases_differ
from ..verdict.verdicts import EXIT, VERDICTS
from . import texts
from .common import check_new, count_on_stderr, on_scheduler, possible
from .options import FILE, JSON, PATH
from .tables import print_rows


def _value(word: str) -> Any:
    """A whole number, another number, or the word itself."""
    try:
        number = float(word)
    except ValueError:
        return word
    return int(number) if number.is_integer() and "." not in word else number


def axes_of(words: Iterable[str]) -> dict[str, list[Any]]:
    """{field: values} of words like cluster.devices=4096,8192."""
    axes: dict[str, list[Any]] = {}
    for word in words:
        field, equals, values = word.partition("=")
        if not equals or not values:
            raise DesignError(
                word, allowed="field=value,value,…", problem="is no field with values"
            )
        if field in axes:
            raise DesignError(word, problem=f"names {field} again", allowed="each field once")
        axes[field] = [*map(_value, values.split(","))]
    return axes


@click.command()
@FILE
@click.option(
    "-o",
    "--output",
    type=PATH,
    help=(
        "Write the candidates here, with empty columns for what is measured; with --measured, "
        "the design with the fastest plan pinned and its step."
    ),
)
@click.option(
    "--top",
    type=click.IntRange(1),
    default=8,
    show_default=True,
    help="Candidates, each of another kind.",
)
@click.option("--measured", type=PATH, help="Read a filled-in file back and say which plan won.")
def candidates(file: str, output: str | None, top: int, measured: str | None) -> int:
    """List plans of FILE that differ in kind, for a short measured sweep; with --measured, say what
    the sweep showed.

    Exit as `design`.
    """

    if output:
        check_new(output, True, [file, *([measured] if measured else [])])
    a = possible(file)
    out = console()
    search = a.chosen.search
    if measured:
        _swept(a.design, measured, output, out)
        return EXIT[a.verdict]
    if output:
        export(search, output, top)
    for rank, row in enumerate(diverse(search, top), 1):
        step_s, total_bytes = search.step_s[row], search.total_bytes[row]
        plan = short(search.row(int(row)))
        out.print(f"{rank:2}  {step_s:8.3f} s  {total_bytes / 1e9:6.1f} GB  {plan}")
    return EXIT[a.verdict]


def _swept(design: Design, measured: str, output: str | None, out: Console) -> None:
    """What the measured sweep in a file says; the winner pinned in a copy of the design."""
    try:
        back = read_back(measured)
    except (ValueError, KeyError, OverflowError, csv.Error) as e:
        problem = f"no column {e}" if isinstance(e, KeyError) else plain(e, 300)
        problem = problem.removeprefix(f"{measured}: ").removeprefix(f"{measured}, ")
        raise DesignError(measured, problem=problem) from None
    best = back["rows"][0]
    pairs = "one row only"
    if back["agreement"] is not None:
        pairs = f"{percent(back['agreement'], 0)} of the pairs in the predicted order"
    out.print(
        f"{len(back['rows'])} measured; measured over predicted {back['calibration']:.3f} "
        f"(median); {pairs}\npin: {back['best']}"
    )
    if output:
        figures = {k: best[f"measured_{k}"] for k in ("step_s", "memory_gb")}
        pinned = design.change(
            {"plan": back["best"], "measured": {k: v for k, v in figures.items() if v}}
        )
        pinned.write(output, force=True)
        out.print(f"{output}: the design with that plan pinned and its measured step")


@click.command()
@FILE
@JSON
def diagnose(file: str, as_json: bool) -> int:
    """Say why the run that FILE's `measured` describes is slow, most likely cause first, and what
    to measure next."""

    a = possible(file, as_json)
    with blamed_on(file):
        diagnosis = diagnosing.diagnose(a.design)
    if as_json:
        print_json(asdict(diagnosis))
    else:
        console().print("\n".join(diagnosis.lines))
    return EXIT[a.verdict]


@click.command()
@FILE
@click.argument("over", nargs=-1, required=True, metavar="FIELD=V1,V2,…")
@click.option("--scheduler", help="Address of a Dask scheduler; without it everything runs here.")
@click.option(
    "--together",
    is_flag=True,
    help="The first values of all fields belong together, the second ones, and so on.",
)
@JSON
def sweep(
    file: str, over: Sequence[str], scheduler: str | None, together: bool, as_json: bool
) -> None:
    """Assess every combination of values of one or more fields of FILE, such as
    cluster.devices=4096,8192 job.global_batch=1024,2048."""

    axes = axes_of(over)
    design = Design.read(file)
    with on_scheduler(scheduler):
        cells = sweeps.sweep(
            design, axes, together=together, scheduler=scheduler, progress=count_on_stderr
        )
    if all(c.verdict == "refused" for c in cells):
        raise click.ClickException(cells[0].why)
    if as_json:
        print_json([asdict(c) for c in cells])
        return

    out = console()
    shown = sweeps.comparable(cells)
    print_rows(out, [_swept_row(list(axes), cell) for cell in shown])
    if bases_differ(cell.figures for cell in cells):
        out.print("MFU counts attention as causal masks leave it")
    for c in cells:
        if c.verdict in ("refused", "impossible"):
            out.print(f"· {', '.join(map(str, c.at))}: {c.why}")
    for e in edge(cells) if len(axes) == 1 else ():
        out.print(f"edge: {e.verdict_at_low} at {e.low}, {e.verdict_at_high} at {e.high}")


def _swept_row(axes: Sequence[str], cell: sweeps.Cell) -> dict[str, str]:
    """A combination of values and what it comes to, as a row of a table."""
    verdict = VERDICTS[cell.verdict].name.lower() if cell.verdict in VERDICTS else cell.verdict
    if cell.verdict == "constraint-missed":
        verdict += f": {cell.why.partition(':')[0]}"
    figures = dict.fromkeys(sweeps.KEYS) | cell.figures
    likely = figures["likely"] or dict.fromkeys(("days", "cost_usd"))
    return {axis.rpartition(".")[2]: str(value) for axis, value in zip(axes, cell.at)} | {
        "verdict": verdict,
        "MFU": share(figures["mfu_shown"]),
        "step": seconds(figures["step_s"]),
        "likely days": days(likely["days"]),
        "likely cost": usd(likely["cost_usd"]),
    }


ON_LINES_OF_THEIR_OWN = (
    "value",
    "mfu",
    "plan",
    "memory_share",
    "law",
    "source",
    "bound",
    "verdict",
)


@click.command()
@FILE
@click.argument("question", type=click.Choice([*QUESTIONS]), metavar="QUESTION")
@click.option(
    "--most-devices",
    type=click.IntRange(1),
    help="earliest-finish: no more devices than these; without it, until more bring nothing.",
)
@click.option(
    "--any-chip",
    is_flag=True,
    help="cheaper: every other accelerator that ships and has a price is tried too.",
)
@JSON
def answer(
    file: str, question: str, most_devices: int | None, any_chip: bool, as_json: bool
) -> None:
    """Answer a question about FILE: longest-sequence, biggest-micro-batch, fewest-devices,
    earliest-finish, largest-model, compute-budget or cheaper."""

    design = read(file)
    if question == "cheaper":
        _cheaper(design, any_chip, as_json)
        return
    if any_chip:
        raise DesignError("--any-chip", allowed="the question cheaper", problem="has no effect")
    limits = {"most_devices": most_devices} if most_devices else {}
    if limits and question != "earliest-finish":
        raise DesignError("--most-devices", most_devices, "the question earliest-finish")
    ask = QUESTIONS[question]
    with blamed_on(question):
        reply = ask(design, **limits)
    if as_json:
        keys = ("value", "bound", "verdict", "days", "cost_usd", "devices", "plan", "mfu")
        print_json({"question": question} | dict.fromkeys(keys) | (reply or {}))
        return
    out = console()
    if reply:
        out.print(_in_words(reply))
        return
    out.print("none: no choice tried fits and meets every constraint")
    unbound = ask(design.change({"constraints": None}), **limits)
    if unbound:
        out.print(f"with the constraints left aside: {_in_words(unbound)}")
    else:
        out.print("nor does any choice hold the model")


def _in_words(reply: Mapping[str, Any]) -> str:
    """An answer in words, what bounds it, and its plan, on a line each; days and dollars are the
    likely ones where they are known."""
    likely = reply.get("likely") or {"days": None}
    undisturbed = () if likely["days"] is None else ("days", "cost_usd")
    words = [
        _figure(key, value)
        for key, value in reply.items()
        if value is not None and key not in ON_LINES_OF_THEIR_OWN and key not in undisturbed
    ]
    words += [f"{percent(reply['memory_share'], 0)} of the memory", VERDICTS[reply["verdict"]].name]
    words += [reply["source"]] if "source" in reply else []
    return f"{', '.join(words)}\nlimit: {reply['bound']}\nplan: {short(reply['plan'])}"


def _figure(key: str, value: Any) -> str:
    """A figure of an answer, with what it counts."""
    match key:
        case "likely":
            run = texts.pair(value["days"], value["cost_usd"])
            return run if value["days"] is None else f"likely {run}"
        case "seq_len":
            return f"{value:,} tokens a sequence"
        case "micro_batch":
            return f"micro-batch {value:,}"
        case "devices":
            return f"{value:,} devices"
        case "tokens":
            return f"{params(value)} tokens"
        case "tokens_per_param":
            return f"{value:.3g} tokens a parameter"
        case "compute_flops":
            return f"{value:.3g} FLOP"
        case "mfu_shown":
            return f"MFU {share(value)}"
        case "params":
            return f"parameters {params(value)}"
    return show(key, value)


def _cheaper(design: Design, any_chip: bool, as_json: bool) -> None:
    """Changes that cost less and take no longer, or stay within the deadline."""

    a = assess(design)
    if not a.met or a.cost_usd is None:
        raise DesignError(
            "cheaper",
            allowed="a feasible design with tokens and a price",
            problem="has nothing to compare with",
        )
    rows = cheaper(a, any_chip)
    if as_json:
        print_json(rows)
        return
    out = console()
    for row in rows:
        out.print(texts.change(row))
    changed = [row["set"] for row in rows]
    if any("cluster.scale_out" in c and "cluster.accelerator" not in c for c in changed):
        out.print(
            "the price of a device-hour is kept: what a faster fabric adds to it is not in the cost"
        )
    if not rows:
        out.print("none: no change tried costs less in the same time")


@click.command()
@FILE
@click.option(
    "--loss",
    "target",
    type=float,
    help="Loss to reach, in nats a token: the days of the model in FILE to it.",
)
@click.option(
    "--flops",
    type=float,
    help=(
        "Training compute; without it, what the machine of FILE does by its deadline, else "
        "what FILE itself spends."
    ),
)
@JSON
def scaling(file: str, flops: float | None, target: float | None, as_json: bool) -> None:
    """Turn a budget of compute into model size and tokens by published scaling laws, with the days
    on FILE's machine; with --loss, say the days of FILE's model to a loss."""

    if target is not None:
        _to_loss(read(file), target, as_json)
        return
    if flops is not None and not 1e15 <= flops <= 1e32:
        raise DesignError(
            "--flops", flops, "a number from 1e15 to 1e32", problem="is no budget of a training run"
        )
    with blamed_on("--flops"):
        sizes = by_scaling_laws(read(file), flops)
    if as_json:
        print_json(sizes)
        return

    out = console()
    out.print(f"{sizes['compute_flops']:.3g} FLOP ({sizes['from']})")
    print_rows(out, [_size_row(row) for row in sizes["rows"]])
    out.print(
        "loss: nats a token by the refitted Chinchilla surface (Besiroglu et al. 2024), "
        "to compare rows by; fitted up to 3e21 FLOP on dense models. Ask an ML "
        "specialist before a size is settled."
    )
    for r in sizes["rows"]:
        if r["source"]:
            out.print(f"· {r['law']}: {r['source']}")


def _size_row(row: Mapping[str, Any]) -> dict[str, str]:
    """A model size by one law, and what it takes, as a row of a table."""
    likely = row["likely"]
    return {
        "law": row["law"] or row["title"],
        "params": params(row["params"]),
        "tokens": f"{row['tokens'] / 1e12:,.3g}T",
        "tok/param": f"{row['tokens_per_param']:,.3g}",
        "loss": f"{row['loss']:.3f}",
        "days, likely": days(likely["days"] if likely else row["verdict"]),
        "cost, likely": usd(likely["cost_usd"] if likely else None),
        "MFU": share(row["mfu_shown"]),
    }


def _days_or_verdict(row: Mapping[str, Any]) -> str:
    """The days, or the verdict where there are none."""
    return days(row["verdict"] if row["days"] is None else row["days"])


def _to_loss(design: Design, target: float, as_json: bool) -> None:
    """Tokens, days and dollars to a loss, by each law's surface, and the spread."""
    if not 0.5 <= target <= 10:
        raise DesignError("--loss", target, "nats a token, from 0.5 to 10")
    reach = to_loss(assess(design), target)
    if as_json:
        print_json(reach)
        return
    out = console()
    rows = [
        {
            "law": row["title"],
            "tokens": params(row["tokens"]),
            "days": _days_or_verdict(row),
            "cost": usd(row["cost_usd"]),
        }
        for row in reach["rows"]
    ]
    print_rows(out, rows)
    if reach["days_low"] is not None:
        out.print(f"to a loss of {target:g}: {band('days', reach['days_low'], reach['days_high'])}")
    out.print(
        "loss: nats a token of each source's own tokenizer and data; only differences carry over"
    )


@click.command()
@FILE
@click.option(
    "--key",
    help=(
        "Quantity of `design --json` to look at: likely.days, likely.cost_usd, mfu, step_s …; "
        "left out, the days, and the step where the design says no tokens."
    ),
)
@JSON
def sensitivity(file: str, key: str | None, as_json: bool) -> None:
    """Move each input a realistic step down and up, search the plan again, and list the largest
    swing of the result first."""

    a = possible(file, as_json)
    numbers = {k: v for k, v in quantities(a).items() if isinstance(v, (int, float))}
    if key is None:
        key = "likely.days" if "likely.days" in numbers else "step_s"
    if key not in numbers:
        raise DesignError("--key", key, list(numbers), problem="is no number of this design")
    rows = tornado(a, key)
    if as_json:
        print_json({"key": key, "value": numbers[key], "rows": rows})
        return

    out = console()
    out.print(f"{key}: {show(key, numbers[key])}")
    print_rows(out, [_swing(key, row) for row in rows], SWING)
    for r in rows:
        out.print(f"· {r['what']}: {r['why']}")


# "then " with a blank is the head of the second of two columns that read alike
SWING = ("input", "a step down", "then", "a step up", "then ", "swing")


def _swing(key: str, row: Mapping[str, Any]) -> dict[str, str]:
    """An input, what a step of it either way comes to, and the swing, as a row of a table."""

    def then(side: str) -> str:
        if row[side] is not None:
            return show(key, row[side])
        return "does not fit" if row[f"{side}_says"] else ""

    cells = (row["what"], row["low_says"], then("low"), row["high_says"], then("high"))
    return dict(zip(SWING, (*map(str, cells), percent(row["swing"])), strict=True))


@click.command()
@FILE
@click.option(
    "--devices",
    "counts",
    help=(
        "Device counts to compare, such as 4096,8192,16384; without it half to twice FILE's own."
    ),
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help=(
        "Every point; without it, for each count the fastest, the fastest safe one and the "
        "roomiest that takes at most a quarter longer."
    ),
)
@JSON
def front(file: str, counts: str | None, every: bool, as_json: bool) -> None:
    """List the choices that no other beats in days, dollars, devices and memory headroom at once,
    over device counts and plans."""

    design = read(file)
    asked = [*map(_value, counts.split(","))] if counts else None
    points = front_of(design, asked, progress=count_on_stderr)
    if as_json:
        print_json([{k: v for k, v in p.items() if k != "design"} for p in points])
        return
    if not points:
        counted = f"{counts} devices" if counts else "half to twice its devices"
        raise click.ClickException(f"no plan fits at {plain(counted, 200)}")

    printed = points
    if not every:
        values = dict.fromkeys(sorted(p["devices"] for p in points))
        printed = [p for n in values for p in _corners([p for p in points if p["devices"] == n])]
    out = console()
    print_rows(out, [_point(p) for p in printed])
    if len(points) > len(printed):
        out.print(f"{len(points) - len(printed)} more on the front; --all prints them")


def _point(p: Mapping[str, Any]) -> dict[str, str]:
    """A choice of the front as a row of a table: its likely days and dollars; without a price its
    device-hours, undisturbed."""
    likely = p["likely"]
    return {
        "days, likely": days(likely["days"]),
        "cost": usd(likely["cost_usd"]) if p["priced"] else f"{p['cost_usd']:,.0f} h",
        "devices": f"{p['devices']:,}",
        "memory": percent(p["memory_share"], 0),
        "verdict": p["verdict"],
        "plan": short(p["plan"]),
    }


def _corners(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The fastest, the fastest that keeps a fifth of the memory free, the roomiest that takes at
    most a quarter longer; each once."""

    safe = [p for p in points if zone(p["memory_share"], 1.0) == SAFE]
    near = [p for p in points if p["days"] <= 1.25 * points[0]["days"]]
    corners = [*points[:1], *safe[:1], *sorted(near, key=lambda p: p["memory_share"])[:1]]
    return [p for i, p in enumerate(corners) if p not in corners[:i]]
