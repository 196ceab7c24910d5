"""Commands that compare: candidates for a measured sweep, sweeps over inputs, a diagnosis, direct
answers."""

from __future__ import annotations

from dataclasses import asdict

import click

from ..advise import answers, sweeps
from ..advise import diagnose as diagnosing
from ..advise.answers import by_scaling_laws
from ..advise.fixes import cheaper
from ..advise.frontier import diverse, export, fronts, read_back
from ..advise.sensitivity import tornado
from ..advise.sweeps import edge
from ..advise.whole import as_dict
from ..base.console import console, print_json
from ..base.errors import DesignError
from ..base.quantities.table import show
from ..base.show import percent
from ..design.design import Design
from ..physics.memory.peak import SAFE, zone
from ..plans.prepare import prepare
from ..plans.words import short
from ..verdict.assess import assess
from .common import EXIT, FILE, JSON, assessed, assessment_of, grid, put, read, refuse
from .summary import fix_line


def _shown(
    key,
    value,
    missing="",
) -> str:
    return missing if value is None else show(key, value)


def _assessment(
    ctx,
    file,
    as_json: bool = False,
):
    """The assessment of FILE; where no plan can hold the model, the refusal is printed and the
    command ends."""
    assessment = assessment_of(file)
    if assessment.verdict == "impossible":
        ctx.exit(refuse(as_dict(assessment), as_json))
    return assessment


def _values(text: str) -> list:
    out = []
    for word in text.split(","):
        try:
            number = float(word)
            out.append(int(number) if number == int(number) and "." not in word else number)
        except ValueError:
            out.append(word)
    return out


def axes_of(words) -> dict:
    """{field: values} of words like cluster.devices=4096,8192."""
    axes = {}
    for word in words:
        field, equals, values = word.partition("=")
        if not equals or not values:
            raise DesignError(
                word,
                allowed="field=value,value,…",
                problem="is no field with values",
            )
        axes[field] = _values(values)
    return axes


@click.command()
@FILE
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    help=(
        "Write the candidates here, with empty columns for what is measured; with "
        "--measured, the design with the fastest plan pinned and its step."
    ),
)
@click.option(
    "--top",
    default=8,
    show_default=True,
    type=click.IntRange(1),
    help="Candidates, each of another kind.",
)
@click.option(
    "--measured",
    type=click.Path(
        exists=True,
        dir_okay=False,
    ),
    help="Read a filled-in file back and say which plan won.",
)
@click.pass_context
def candidates(
    ctx,
    file,
    output,
    top,
    measured,
):
    """Plans of FILE that differ in kind, for a short measured sweep; with --measured, what the
    sweep says."""

    if measured:
        found, result = assessed(file, headline=True)
        try:
            back = read_back(measured)
        except (ValueError, KeyError) as e:
            raise DesignError(
                measured, problem=str(e).removeprefix(f"{measured}: ").removeprefix(f"{measured}, ")
            ) from None
        said = (
            f"{percent(back['agreement'], 0)} of the pairs in the predicted order"
            if back["agreement"] is not None
            else "one row only"
        )
        console().print(
            f"{len(back['rows'])} measured; measured over predicted "
            f"{back['calibration']:.3f} (median); {said}\npin: {back['best']}"
        )
        if output:
            best = back["rows"][0]
            memory = (
                {"memory_gb": float(best["measured_memory_gb"])}
                if (best.get("measured_memory_gb") or "").strip()
                else {}
            )
            found.change(
                {
                    "plan": back["best"],
                    "measured": {
                        "step_s": best["measured_step_s"],
                        **memory,
                    },
                }
            ).write(output, force=True)
            console().print(f"{output}: the design with that plan pinned and its measured step")
        ctx.exit(EXIT[result["verdict"]])
    a = _assessment(ctx, file)
    search = a.chosen.found
    if output:
        export(search, output, top)
    for rank, row in enumerate(diverse(search, top), 1):
        console().print(
            f"{rank:2}  {search.step_s[row]:8.3f} s  "
            f"{search.total_bytes[row] / 1e9:6.1f} GB  {short(search.row(int(row)))}"
        )
    ctx.exit(EXIT[a.verdict])


@click.command()
@FILE
@JSON
@click.pass_context
def diagnose(
    ctx,
    file,
    as_json,
):
    """The likely losses of the run that FILE's `measured` describes, most likely first, and what to
    measure next."""

    a = _assessment(ctx, file, as_json)
    try:
        said = diagnosing.diagnose(a.design)
    except ValueError as e:
        raise click.ClickException(f"{file}: {e}") from None
    if as_json:
        print_json(asdict(said))
    else:
        console().print("\n".join(said.lines))
    ctx.exit(EXIT[a.verdict])


@click.command()
@FILE
@click.argument(
    "over",
    nargs=-1,
    required=True,
    metavar="FIELD=V1,V2,…",
)
@click.option("--scheduler", help="Address of a Dask scheduler; without it everything runs here.")
@JSON
def sweep(
    file,
    over,
    scheduler,
    as_json,
):
    """Every combination of values of one or more fields of FILE: cluster.devices=4096,8192
    job.global_batch=1024,2048."""

    axes = axes_of(over)
    try:
        cells = sweeps.sweep(
            Design.read(file),
            axes,
            scheduler=scheduler,
            progress=lambda i, n: click.echo(
                f"\r{i} of {n}",
                nl=i == n,
                err=True,
            ),
        )
    except ImportError:
        raise DesignError(
            "--scheduler",
            scheduler,
            "pip install 'scantling[dask]'",
            problem="needs Dask",
        ) from None
    if all(c.verdict == "refused" for c in cells):
        raise click.ClickException(cells[0].why)
    if as_json:
        print_json([asdict(c) for c in cells])
        return

    table = grid(
        *(path.rpartition(".")[2] for path in axes),
        "verdict",
        "MFU",
        "step",
        "days",
        "cost",
        words=("verdict",),
    )
    for c in cells:
        missed = f": {c.why.partition(':')[0]}" if c.verdict == "constraint-missed" else ""
        table.add_row(
            *map(str, c.at),
            c.verdict + missed,
            *(_shown(key, c.figures.get(key)) for key in ("mfu", "step_s", "days", "cost_usd")),
        )
    put(console(), table)
    for c in cells:
        if c.verdict in ("refused", "impossible"):
            console().print(f"· {', '.join(map(str, c.at))}: {c.why}")
    for a in edge(cells) if len(axes) == 1 else ():
        console().print(f"edge: {a[1]} at {a[0]}, {a[3]} at {a[2]}")


QUESTIONS = (
    "longest-sequence",
    "biggest-micro-batch",
    "fewest-devices",
    "earliest-finish",
    "largest-model",
    "compute-budget",
    "cheaper",
)
SHOWN = {
    "seq_len": "{:,} tokens a sequence",
    "micro_batch": "micro-batch {:,}",
    "devices": "{:,} devices",
    "tokens": "{:.3g} tokens",
    "compute_flops": "{:.3g} FLOP",
}
NAMED = {
    "mfu": "MFU ",
    "params": "parameters ",
}


@click.command()
@FILE
@click.argument(
    "question",
    type=click.Choice(QUESTIONS),
    metavar="QUESTION",
)
@JSON
def answer(
    file,
    question,
    as_json,
):
    """A direct answer about FILE: longest-sequence, biggest-micro-batch, fewest-devices,
    earliest-finish, largest-model, compute-budget, cheaper."""

    design = read(file)
    if question == "cheaper":
        _cheaper(design, as_json)
        return
    name = {"compute-budget": "within_budget_of_compute"}.get(question, question.replace("-", "_"))
    try:
        said = getattr(answers, name)(design)
    except ValueError as e:
        if isinstance(e, DesignError):
            raise
        raise DesignError(question, problem=str(e)) from None
    if as_json:
        print_json(said)
        return
    console().print(
        _answered(said) if said else "none: no choice tried fits and meets every constraint"
    )
    if said is None and question == "fewest-devices":
        merely = answers.fewest_devices(design, meet=False)
        console().print(
            f"to hold the model alone: {_answered(merely)}"
            if merely
            else "nor does any count hold the model"
        )


def _answered(said: dict) -> str:
    """An answer in words, its plan on a line of its own."""

    words = [
        SHOWN[k].format(v) if k in SHOWN else NAMED.get(k, "") + show(k, v)
        for k, v in said.items()
        if v is not None and k not in ("plan", "memory_share", "law", "source", "bound")
    ]
    words += [f"{percent(said['memory_share'], 0)} of the memory"] if "memory_share" in said else []
    words += [said[k] for k in ("bound", "source") if k in said]
    return ", ".join(words) + f"\nplan: {short(said['plan'])}"


def _cheaper(design, as_json):
    """Changes that cost less and take no longer, or stay within the deadline."""

    a = assess(design)
    if a.verdict != "feasible" or a.cost_usd is None:
        raise DesignError(
            "cheaper",
            allowed="a feasible design with tokens and a price",
            problem="has nothing to compare with",
        )
    rows = cheaper(a)
    if as_json:
        print_json(rows)
        return
    for row in rows:
        console().print(fix_line(row))
    if any(
        "cluster.scale_out" in row["set"] and "cluster.accelerator" not in row["set"]
        for row in rows
    ):
        console().print(
            "the price of a device-hour is kept: what a faster fabric adds to it is not in the cost"
        )
    if not rows:
        console().print("none: no change tried costs less in the same time")


@click.command()
@FILE
@click.option(
    "--flops",
    type=float,
    help=(
        "Training compute; without it, what the machine of FILE does by its deadline, else "
        "what FILE itself spends."
    ),
)
@JSON
def scaling(
    file,
    flops,
    as_json,
):
    """A budget of compute as model size and tokens by published scaling laws, and the days each
    takes on FILE's machine."""

    if flops is not None and not 1e15 <= flops <= 1e32:
        raise DesignError(
            "--flops",
            flops,
            "a number from 1e15 to 1e32",
            problem="is no budget of a training run",
        )
    try:
        said = by_scaling_laws(read(file), flops)
    except ValueError as e:
        if isinstance(e, DesignError):
            raise
        raise DesignError("--flops", problem=str(e)) from None
    if as_json:
        print_json(said)
        return

    out = console()
    out.print(f"{said['compute_flops']:.3g} FLOP ({said['from']})")
    table = grid(
        "law",
        "params",
        "tokens",
        "tok/param",
        "loss",
        "days",
        "cost",
        "MFU",
        words=("law",),
    )
    for r in said["rows"]:
        table.add_row(
            r["law"] or r["title"],
            show("params", r["params"]),
            f"{r['tokens'] / 1e12:,.3g}T",
            f"{r['tokens_per_param']:,.3g}",
            f"{r['loss']:.3f}",
            _shown("days", r["days"], r["verdict"]),
            *(_shown(key, r[key], "—") for key in ("cost_usd", "mfu")),
        )
    put(out, table)
    out.print(
        "loss: nats a token by the refitted Chinchilla surface (Besiroglu et al. 2024), "
        "to compare rows by; fitted up to 3e21 FLOP on dense models. Ask an ML "
        "specialist before a size is settled."
    )
    for r in said["rows"]:
        if r["source"]:
            out.print(f"· {r['law']}: {r['source']}")


@click.command()
@FILE
@click.option(
    "--key",
    default="days",
    show_default=True,
    help="Quantity of `design --json` to look at: days, cost_usd, mfu, step_s, goodput …",
)
@JSON
@click.pass_context
def sensitivity(
    ctx,
    file,
    key,
    as_json,
):
    """What a result hangs on: each input a realistic step down and up, the plan searched again for
    each, the largest swing first."""

    a = _assessment(ctx, file, as_json)
    numbers = {k: v for k, v in a.headline().items() if isinstance(v, (int, float))}
    if key not in numbers:
        raise DesignError(
            "--key",
            key,
            list(numbers),
            problem="is no number of this design",
        )
    rows = tornado(a, key)
    if as_json:
        print_json(
            {
                "key": key,
                "value": numbers[key],
                "rows": rows,
            }
        )
        return

    out = console()
    out.print(f"{key}: {show(key, numbers[key])}")
    table = grid(
        "input",
        "a step down",
        "then",
        "a step up",
        "then ",
        "swing",
        words=("input", "a step down", "a step up"),
    )
    for r in rows:
        low, high = (
            _shown(key, r[k], "does not fit" if r[f"{k}_says"] else "") for k in ("low", "high")
        )
        table.add_row(
            r["what"],
            r["low_says"],
            low,
            r["high_says"],
            high,
            percent(r["swing"]),
        )
    put(out, table)
    for r in rows:
        out.print(f"· {r['what']}: {r['why']}")


@click.command()
@FILE
@click.option(
    "--devices",
    "counts",
    help="Device counts to compare, such as 4096,8192,16384; without it half to twice FILE's own.",
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
def front(
    file,
    counts,
    every,
    as_json,
):
    """The choices that no other beats in days, dollars, devices and memory headroom at once, over
    device counts and plans."""

    design = read(file)
    r = prepare(design)
    node, own = max(r.cluster.devices_per_node, 1), r.cluster.devices
    values = (
        _values(counts)
        if counts
        else sorted({max(node, round(own * x / node) * node) for x in (0.5, 0.75, 1.5, 2)} | {own})
    )
    if all(p.tokens is None for p in r.phases):
        raise DesignError(
            "job.tokens",
            allowed="tokens to train on: the front counts days",
            problem="is missing",
        )
    points = fronts(
        [design.change({"cluster.devices": n}) for n in values],
        progress=lambda i, n: click.echo(
            f"\r{i} of {n}",
            nl=i == n,
            err=True,
        ),
    )
    if as_json:
        print_json([{k: v for k, v in p.items() if k != "design"} for p in points])
        return
    if not points:
        raise click.ClickException(f"no plan fits at {', '.join(f'{n:,}' for n in values)} devices")

    table = grid(
        "days",
        "cost",
        "devices",
        "memory",
        "verdict",
        "plan",
        words=("verdict", "plan"),
    )
    shown = (
        points
        if every
        else [p for n in values for p in _corners([p for p in points if p["devices"] == n])]
    )
    for p in shown:
        table.add_row(
            show("days", p["days"]),
            show("cost_usd", p["cost_usd"]) if p["priced"] else f"{p['cost_usd']:,.0f} h",
            f"{p['devices']:,}",
            percent(p["memory_share"], 0),
            p["verdict"],
            short(p["plan"]),
        )
    put(console(), table)
    if len(points) > len(shown):
        console().print(f"{len(points) - len(shown)} more on the front; --all prints them")


def _corners(points) -> list:
    """The fastest, the fastest that keeps a fifth of the memory free, the roomiest that takes at
    most a quarter longer; each once."""

    safe = [p for p in points if zone(p["memory_share"], 1.0) == SAFE]
    near = [p for p in points if p["days"] <= 1.25 * points[0]["days"]]
    kept = [*points[:1], *safe[:1], *sorted(near, key=lambda p: p["memory_share"])[:1]]
    return [p for i, p in enumerate(kept) if p not in kept[:i]]
