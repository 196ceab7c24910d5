"""Commands that compare: candidates for a measured sweep, sweeps over inputs, a diagnosis, direct
answers."""

import csv
from contextlib import contextmanager
from dataclasses import asdict

import click

from ..advise import answers, diagnose as diagnosing, sweeps
from ..advise.answers import by_scaling_laws
from ..advise.fixes import cheaper
from ..advise.frontier import diverse, export, fronts, read_back
from ..advise.sensitivity import tornado
from ..advise.sweeps import edge
from ..base.console import console, print_json
from ..base.errors import DesignError, plain
from ..base.quantities.table import band, show
from ..base.show import percent
from ..design.design import Design
from ..physics.memory.peak import SAFE, zone
from ..plans.prepare import prepare
from ..plans.words import short
from ..verdict.assess import assess
from ..verdict.verdicts import VERDICTS
from .common import EXIT, count_on_stderr, on_scheduler, possible, read
from .options import FILE, JSON, PATH
from .summary import fix_line
from .tables import TABLES, print_rows, say


@contextmanager
def _blamed_on(field: str):
    """Inside, what has no answer is said of this field."""
    try:
        yield
    except DesignError:
        raise
    except ValueError as e:
        raise DesignError(field, problem=str(e)) from None


def _value(word: str):
    """A whole number, another number, or the word itself."""
    try:
        number = float(word)
    except ValueError:
        return word
    return int(number) if number.is_integer() and "." not in word else number


def axes_of(words) -> dict:
    """{field: values} of words like cluster.devices=4096,8192."""
    axes = {}
    for word in words:
        field, equals, values = word.partition("=")
        if not equals or not values:
            raise DesignError(
                word, allowed="field=value,value,…", problem="is no field with values"
            )
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
def candidates(file, output, top, measured):
    """Plans of FILE that differ in kind, for a short measured sweep; with --measured, what the
    sweep says."""

    a = possible(file)
    out = console()
    search = a.chosen.search
    if measured:
        _swept(a.design, measured, output, out)
        return EXIT[a.verdict]
    if output:
        export(search, output, top)
    for rank, row in enumerate(diverse(search, top), 1):
        figures = {k: getattr(search, k)[row] for k in ("step_s", "total_bytes")}
        out.print(say("candidate", rank=rank, plan=short(search.row(int(row))), **figures))
    return EXIT[a.verdict]


def _swept(design, measured, output, out):
    """What the measured sweep in a file says; the winner pinned in a copy of the design."""
    try:
        back = read_back(measured)
    except (ValueError, KeyError, OverflowError, csv.Error) as e:
        said = f"no column {e}" if isinstance(e, KeyError) else plain(e, 300)
        said = said.removeprefix(f"{measured}: ").removeprefix(f"{measured}, ")
        raise DesignError(measured, problem=said) from None
    best = back["rows"][0]
    pairs = say("one-row" if back["agreement"] is None else "pairs", **back)
    out.print(say("swept", **back, n=len(back["rows"]), pairs=pairs))
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
def diagnose(file, as_json):
    """The likely losses of the run that FILE's `measured` describes, most likely first, and what to
    measure next."""

    a = possible(file, as_json)
    with _blamed_on(file):
        said = diagnosing.diagnose(a.design)
    if as_json:
        print_json(asdict(said))
    else:
        console().print("\n".join(said.lines))
    return EXIT[a.verdict]


@click.command()
@FILE
@click.argument("over", nargs=-1, required=True, metavar="FIELD=V1,V2,…")
@click.option("--scheduler", help="Address of a Dask scheduler; without it everything runs here.")
@JSON
def sweep(file, over, scheduler, as_json):
    """Every combination of values of one or more fields of FILE: cluster.devices=4096,8192
    job.global_batch=1024,2048."""

    axes = axes_of(over)
    design = Design.read(file)
    with on_scheduler(scheduler):
        cells = sweeps.sweep(design, axes, scheduler=scheduler, progress=count_on_stderr)
    if all(c.verdict == "refused" for c in cells):
        raise click.ClickException(cells[0].why)
    if as_json:
        print_json([asdict(c) for c in cells])
        return

    out = console()
    rows = (
        dict.fromkeys(sweeps.KEYS)
        | c.figures
        | {
            "at": c.at,
            "verdict": (VERDICTS[c.verdict].name.lower() if c.verdict in VERDICTS else c.verdict)
            + (f": {c.why.partition(':')[0]}" if c.verdict == "constraint-missed" else ""),
        }
        for c in cells
    )
    fields = {path.rpartition(".")[2]: f"{{at[{i}]}}" for i, path in enumerate(axes)}
    print_rows(out, fields | TABLES["sweep"], rows)
    for c in cells:
        if c.verdict in ("refused", "impossible"):
            out.print(f"· {', '.join(map(str, c.at))}: {c.why}")
    for a in edge(cells) if len(axes) == 1 else ():
        out.print(say("edge", a=a))


QUESTIONS = {
    "longest-sequence": answers.longest_sequence,
    "biggest-micro-batch": answers.biggest_micro_batch,
    "fewest-devices": answers.fewest_devices,
    "earliest-finish": answers.earliest_finish,
    "largest-model": answers.largest_model,
    "compute-budget": answers.within_budget_of_compute,
    "cheaper": cheaper,
}
SHOWN = {
    "seq_len": "{:,} tokens a sequence",
    "micro_batch": "micro-batch {:,}",
    "devices": "{:,} devices",
    "tokens": "{:.3g} tokens",
    "compute_flops": "{:.3g} FLOP",
}
NAMED = {"mfu_shown": "MFU ", "params": "parameters "}
BESIDE = ("value", "mfu", "plan", "memory_share", "law", "source", "bound", "verdict")


@click.command()
@FILE
@click.argument("question", type=click.Choice([*QUESTIONS]), metavar="QUESTION")
@click.option(
    "--most-devices",
    type=click.IntRange(1),
    help="earliest-finish: no more devices than these; without it, until more bring nothing.",
)
@JSON
def answer(file, question, most_devices, as_json):
    """A direct answer about FILE: longest-sequence, biggest-micro-batch, fewest-devices,
    earliest-finish, largest-model, compute-budget, cheaper."""

    design = read(file)
    if question == "cheaper":
        _cheaper(design, as_json)
        return
    given = {"most_devices": most_devices} if most_devices else {}
    if given and question != "earliest-finish":
        raise DesignError("--most-devices", most_devices, "the question earliest-finish")
    ask = QUESTIONS[question]
    with _blamed_on(question):
        said = ask(design, **given)
    if as_json:
        keys = ("value", "bound", "verdict", "days", "cost_usd", "devices", "plan", "mfu")
        print_json({"question": question} | dict.fromkeys(keys) | (said or {}))
        return
    out = console()
    out.print(_answered(said) if said else "none: no choice tried fits and meets every constraint")
    if said is None:
        merely = ask(design.change({"constraints": None}), **given)
        aside = merely and f"with the constraints left aside: {_answered(merely)}"
        out.print(aside or "nor does any choice hold the model")


def _answered(said: dict) -> str:
    """An answer in words, what bounds it, and its plan, on a line each."""

    words = [
        SHOWN[k].format(v) if k in SHOWN else NAMED.get(k, "") + show(k, v)
        for k, v in said.items()
        if v is not None and k not in BESIDE
    ]
    words += [f"{percent(said['memory_share'], 0)} of the memory", VERDICTS[said["verdict"]].name]
    words += [said["source"]] if "source" in said else []
    return f"{', '.join(words)}\nbound: {said['bound']}\nplan: {short(said['plan'])}"


def _cheaper(design, as_json):
    """Changes that cost less and take no longer, or stay within the deadline."""

    a = assess(design)
    if not a.met or a.cost_usd is None:
        raise DesignError(
            "cheaper",
            allowed="a feasible design with tokens and a price",
            problem="has nothing to compare with",
        )
    rows = cheaper(a)
    if as_json:
        print_json(rows)
        return
    out = console()
    for row in rows:
        out.print(fix_line(row))
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
def scaling(file, flops, target, as_json):
    """A budget of compute as model size and tokens by published scaling laws, and the days each
    takes on FILE's machine; with --loss, the days of FILE's model to a loss."""

    if target is not None:
        return _to_loss(read(file), target, as_json)
    if flops is not None and not 1e15 <= flops <= 1e32:
        raise DesignError(
            "--flops", flops, "a number from 1e15 to 1e32", problem="is no budget of a training run"
        )
    with _blamed_on("--flops"):
        said = by_scaling_laws(read(file), flops)
    if as_json:
        print_json(said)
        return

    out = console()
    out.print(say("budget", **said))
    print_rows(
        out,
        TABLES["scaling"],
        (_or_verdict(r) | {"law": r["law"] or r["title"]} for r in said["rows"]),
    )
    out.print(
        "loss: nats a token by the refitted Chinchilla surface (Besiroglu et al. 2024), "
        "to compare rows by; fitted up to 3e21 FLOP on dense models. Ask an ML "
        "specialist before a size is settled."
    )
    for r in said["rows"]:
        if r["source"]:
            out.print(f"· {r['law']}: {r['source']}")


def _or_verdict(row: dict) -> dict:
    """The row with its verdict where there are no days."""
    return row if row["days"] is not None else row | {"days": row["verdict"]}


def _to_loss(design, target: float, as_json: bool) -> None:
    """Tokens, days and dollars to a loss, by each law's surface, and the spread."""
    if not 0.5 <= target <= 10:
        raise DesignError("--loss", target, "nats a token, from 0.5 to 10")
    said = answers.to_loss(assess(design), target)
    if as_json:
        print_json(said)
        return
    out = console()
    print_rows(out, TABLES["to loss"], map(_or_verdict, said["rows"]))
    if said["days_low"] is not None:
        out.print(f"to a loss of {target:g}: {band('days', said['days_low'], said['days_high'])}")
    out.print(
        "loss: nats a token of each source's own tokenizer and data; only differences carry over"
    )


@click.command()
@FILE
@click.option(
    "--key",
    default="days",
    show_default=True,
    help="Quantity of `design --json` to look at: days, cost_usd, mfu, step_s, goodput …",
)
@JSON
def sensitivity(file, key, as_json):
    """What a result hangs on: each input a realistic step down and up, the plan searched again for
    each, the largest swing first."""

    a = possible(file, as_json)
    numbers = {k: v for k, v in a.headline().items() if isinstance(v, (int, float))}
    if key not in numbers:
        raise DesignError("--key", key, list(numbers), problem="is no number of this design")
    rows = tornado(a, key)
    if as_json:
        print_json({"key": key, "value": numbers[key], "rows": rows})
        return

    out = console()
    out.print(f"{key}: {show(key, numbers[key])}")

    def said(row, side):
        none = "does not fit" if row[f"{side}_says"] else ""
        return none if row[side] is None else show(key, row[side])

    print_rows(
        out,
        TABLES["sensitivity"],
        (r | {side: said(r, side) for side in ("low", "high")} for r in rows),
    )
    for r in rows:
        out.print(f"· {r['what']}: {r['why']}")


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
def front(file, counts, every, as_json):
    """The choices that no other beats in days, dollars, devices and memory headroom at once, over
    device counts and plans."""

    design = read(file)
    r = prepare(design)
    node = max(r.cluster.devices_per_node, 1)
    own = r.cluster.devices
    around = {max(node, round(own * x / node) * node) for x in (0.5, 0.75, 1.5, 2)}
    values = [*map(_value, counts.split(","))] if counts else sorted(around | {own})
    if all(p.tokens is None for p in r.phases):
        raise DesignError(
            "job.tokens", allowed="tokens to train on: the front counts days", problem="is missing"
        )
    points = fronts(
        [design.change({"cluster.devices": n}) for n in values], progress=count_on_stderr
    )
    if as_json:
        print_json([{k: v for k, v in p.items() if k != "design"} for p in points])
        return
    if not points:
        raise click.ClickException(f"no plan fits at {', '.join(f'{n:,}' for n in values)} devices")

    shown = points
    if not every:
        shown = [p for n in values for p in _corners([p for p in points if p["devices"] == n])]
    out = console()
    rows = (
        p
        | {
            "cost": show("cost_usd", p["cost_usd"]) if p["priced"] else f"{p['cost_usd']:,.0f} h",
            "short": short(p["plan"]),
        }
        for p in shown
    )
    print_rows(out, TABLES["front"], rows)
    if len(points) > len(shown):
        out.print(f"{len(points) - len(shown)} more on the front; --all prints them")


def _corners(points) -> list:
    """The fastest, the fastest that keeps a fifth of the memory free, the roomiest that takes at
    most a quarter longer; each once."""

    safe = [p for p in points if zone(p["memory_share"], 1.0) == SAFE]
    near = [p for p in points if p["days"] <= 1.25 * points[0]["days"]]
    kept = [*points[:1], *safe[:1], *sorted(near, key=lambda p: p["memory_share"])[:1]]
    return [p for i, p in enumerate(kept) if p not in kept[:i]]
