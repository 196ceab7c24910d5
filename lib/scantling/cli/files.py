"""Commands on files and catalogues: init, schema, catalogue, params."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click

from ..base.console import console, print_json
from ..base.errors import DesignError, plain
from ..base.quantities.table import show
from ..catalogue.models.hf import from_hf
from ..catalogue.models.shape import parameters
from ..design.brief.read import read_brief
from ..design.design import json_schema
from ..design.draft import commented, draft
from ..design.file import write_text
from ..plans.prepare import prepare
from .common import JSON
from .listing import listing
from .summary import value_text


@click.command()
def schema():
    """Print the JSON Schema of the design file."""

    print_json(json_schema())


@click.command()
@click.argument("kind", metavar="KIND")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print all columns as JSON.",
)
def catalogue(kind, as_json):
    """List what the catalogue holds of KIND: models, accelerators, fabrics, stacks, nodes, storage,
    prices."""

    rows = listing(kind)
    if as_json:
        return print_json(rows)
    from rich.table import Table

    hidden = {
        "source",
        "date",
        "verified",
        "aliases",
        "notes",
        "links",
    }
    columns = [c for c in (rows[0] if rows else {}) if c not in hidden][:9]
    grid = Table(
        box=None,
        pad_edge=False,
        header_style="dim",
    )
    for c in columns:
        numeric = all(isinstance(r.get(c), (int, float, type(None))) for r in rows)
        grid.add_column(
            c,
            justify="right" if numeric else "left",
            no_wrap=c == "id",
        )
    for row in rows:
        grid.add_row(*(_cell(c, row.get(c)) for c in columns))
    console().print(grid)


def _cell(column, value) -> str:
    if value is None:
        return ""
    counted = isinstance(value, (int, float)) and not isinstance(value, bool) and column != "year"
    return f"{value:,}" if counted else plain(str(value), 60)


@click.command()
@click.argument("config")
@JSON
def params(config, as_json):
    """Count the parameters of the Hugging Face config.json CONFIG, by block."""

    model, _, assumed = from_hf(Path(config))
    counted = parameters(model)
    parts = {k: int(v) for k, v in asdict(counted).items()}
    result = {
        "name": model.name,
        "layers": model.layers,
        **parts,
        "non_embedding": int(counted.non_embedding),
        "assumed": [
            {
                "field": a.field,
                "value": a.value,
                "why": a.why,
            }
            for a in assumed
        ],
    }
    if as_json:
        return print_json(result)
    from rich.table import Table
    from rich.text import Text

    out = console()
    out.print(
        Text(
            (
                f"{plain(model.name, 100)}: {show('params', result['total'])} parameters, "
                f"{show('active_params', result['active'])} active, {model.layers} layers"
            ),
            style="bold",
        )
    )
    grid = Table(
        box=None,
        show_header=False,
        pad_edge=False,
    )
    grid.add_column(style="dim")
    grid.add_column(justify="right")
    for key in (
        "embedding lm_head attention mlp_dense shared_experts router routed_experts norms "
        "other total active mtp"
    ).split():
        if result[key]:
            grid.add_row(key, f"{result[key]:,}")
    out.print(grid)
    for a in assumed:
        out.print(
            Text(
                f"assumed {plain(a.field, 60)}: {plain(str(a.value), 60)} ({plain(a.why, 200)})",
                style="dim",
            )
        )


@click.command()
@click.option("--like", help="Catalogue model to start from.")
@click.option(
    "--text",
    help=(
        'What is planned, in words: "175B MoE, 96 layers, 1024x A100 80GB, 200Gb/s IB, 1T '
        'tokens in 30 days".'
    ),
)
@click.option(
    "-o",
    "--output",
    required=True,
    help="Design file to write (- for stdout).",
)
@click.option(
    "--force",
    is_flag=True,
    help="Replace the file if it exists.",
)
def init(
    like,
    text,
    output,
    force,
):
    """Write a commented design file; list what was read and what was assumed."""

    if like is None and text is None:
        raise DesignError(
            problem="nothing to start from",
            allowed=(
                '--like MODEL, or --text "175B MoE, 96 layers, 1024x A100 80GB, 1T tokens '
                'in 30 days"'
            ),
        )
    if output != "-" and not force and Path(output).exists():
        raise DesignError(
            plain(output, 200),
            problem="exists already",
            allowed="a new file name, or --force to replace it",
        )
    brief = read_brief(text) if text is not None else None
    design, assumed = draft(brief, like)
    resolved = prepare(design)
    content = commented(design, text, [*assumed, *resolved.assumed])
    if output == "-":
        sys.stdout.write(content)
        return

    write_text(output, content, force)
    _report(
        brief,
        like,
        [*assumed, *resolved.assumed],
        output,
    )


def _report(
    brief,
    like,
    assumed,
    output,
):
    from rich.table import Table
    from rich.text import Text

    out = console()
    if brief is not None or like:
        out.print(Text("Read", style="bold"))
        grid = Table(
            box=None,
            show_header=False,
            pad_edge=False,
        )
        for column in ("", "dim", "dim"):
            grid.add_column(style=column)
        if like:
            grid.add_row(plain(f"--like {like}", 60), "model", plain(like, 60))
        for r in brief.read if brief else ():
            grid.add_row(
                plain(f"“{r.said}”", 80),
                r.field or "nothing to set",
                plain(str(r.value) if r.field else r.why, 100),
            )
        out.print(grid)
    out.print(Text("Assumed", style="bold"))
    grid = Table(
        box=None,
        show_header=False,
        pad_edge=False,
    )
    for column in ("", "", "dim"):
        grid.add_column(style=column)
    for a in assumed:
        grid.add_row(plain(a.field, 60), plain(value_text(a.value), 40), plain(a.why, 200))
    out.print(grid)
    out.print(Text(f"Wrote {plain(output, 200)}"))
