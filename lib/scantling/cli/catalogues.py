"""Commands on files and catalogues: init, schema, catalogue, params."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from ..base.console import console, print_json
from ..base.errors import plain
from ..base.show import is_number, params as parameter_count, shown, usd
from ..catalogue.listing import listing
from ..catalogue.models.hf import from_hf
from ..catalogue.models.shape import (
    Model,
    block_counts,
    causal_flops_per_token,
    flops_per_token,
    parameters,
)
from ..catalogue.quotes import price_rows
from ..design.design import json_schema
from ..design.file_or_stdin import read
from ..plans.prepare import prepare
from .options import FILE, JSON
from .summary import section
from .tables import DIM, NUMBER, Look, bare, print_rows
from .texts import assumption

HIDDEN = ("source", "date", "verified", "aliases", "notes", "links")
COUNTED = (
    "embedding",
    "lm_head",
    "attention",
    "mlp_dense",
    "shared_experts",
    "router",
    "routed_experts",
    "norms",
    "other",
    "total",
    "active",
    "mtp",
)


@click.command()
def schema() -> None:
    """Print the JSON Schema of the design file."""
    print_json(json_schema())


@click.command()
@click.argument("kind", metavar="KIND")
@click.option("--json", "as_json", is_flag=True, help="Print all columns as JSON.")
def catalogue(kind: str, as_json: bool) -> None:
    """List what the catalogue holds of KIND: models, accelerators, fabrics, stacks, nodes, storage,
    prices."""

    rows = listing(kind)
    if as_json:
        print_json(rows)
        return
    columns = [c for c in (rows[0] if rows else {}) if c not in HIDDEN][:9]
    looks = [
        Look(
            header=c,
            justify="right" if all(isinstance(r.get(c), Figure) for r in rows) else "left",
            no_wrap=c == "id",
        )
        for c in columns
    ]
    console().print(bare(([_cell(c, row.get(c)) for c in columns] for row in rows), *looks))


Figure = int | float | None


def _cell(column: str, value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,}" if is_number(value) and column != "year" else plain(value, 60)


@click.command()
@FILE
@JSON
def prices(file: str, as_json: bool) -> None:
    """What a device-hour costs by kind of rent: for the chip of the design in FILE, or by your own
    quotes in FILE.csv.

    The columns of FILE.csv are item and value, and kind, date, provider and source if you like.
    Its quotes take the place of the catalogue's.
    """

    chip = None if file.endswith(".csv") else prepare(read(file)).cluster.accelerator.id
    rows = price_rows(chip) if chip else price_rows(table=file)
    if as_json:
        print_json(rows)
        return
    out = console()
    print_rows(out, [_price(row) for row in rows])
    if file.endswith(".csv"):
        out.print(
            "a design uses these where the table is prices.csv in a folder that "
            "SCANTLING_EXTENSIONS names, or states one as prices.usd_per_device_hour"
        )


def _price(row: Mapping[str, Any]) -> dict[str, str]:
    """A price of a device-hour as a row of a table."""
    return {
        "accelerator": str(row["accelerator"]),
        "kind": str(row["kind"]),
        "USD/h": usd(row["value"]),
        "low": usd(row["low"]),
        "high": usd(row["high"]),
        "dated": shown(row["date"], "text"),
        "from": plain(row["notes"] or "no price is known", 200),
    }


@click.command()
@click.argument("config")
@click.option(
    "--seq-len", type=click.IntRange(1, 10**8), default=4096, help="Tokens of a sequence."
)
@JSON
def params(config: str, seq_len: int, as_json: bool) -> None:
    """Count the parameters of the Hugging Face config.json CONFIG, by block."""

    model, read, assumed = from_hf(Path(config))
    counted = parameters(model)
    result = {
        "name": model.name,
        "layers": model.layers,
        **{k: int(v) for k, v in asdict(counted).items()},
        "non_embedding": int(counted.non_embedding),
        "assumed": [asdict(a) for a in assumed],
    }
    counts = _hybrid_counts(model, seq_len, read)
    if as_json:
        print_json(result | counts)
        return
    out = console()
    title = (
        f"{plain(model.name, 100)}: {parameter_count(result['total'])} parameters, "
        f"{parameter_count(result['active'])} active, {model.layers} layers"
    )
    rows = [(key, f"{result[key]:,}") for key in COUNTED if result[key]]
    if model.pattern:
        rows.append(("pattern", model.pattern))
    rows.append(("blocks", ", ".join(f"{n} {kind}" for kind, n in counts["blocks"].items())))
    if counts["vision"] is None:
        rows.append(("vision", VISION_LEFT_OUT))
    section(out, title, rows, DIM, NUMBER)
    for a in assumed:
        out.print(Text(assumption(a.field, a.value, a.why), style="dim"))


ACTIVE = (
    "all parameters but the routed experts that a token does not visit; embedding and output head "
    "are in it"
)
VISION_LEFT_OUT = "the tower and its projector are not counted"


def _hybrid_counts(model: Model, seq_len: int, read: Iterable[str]) -> dict[str, Any]:
    """What the JSON says beside parameters: FLOPs a token, blocks by kind, what is left out."""
    has_vision = any(name.startswith("vision_config") for name in read)
    return {
        "active_convention": ACTIVE,
        "seq_len": seq_len,
        "flops_per_token": float(flops_per_token(model, seq_len).total),
        "flops_per_token_causal": float(causal_flops_per_token(model, seq_len)),
        "blocks": block_counts(model),
        "pattern": model.pattern,
        "vision": None if has_vision else 0,
        "vision_note": VISION_LEFT_OUT if has_vision else "",
    }
