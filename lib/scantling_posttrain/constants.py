"""The constants of post-training that no formula gives: values, ranges and sources stand in
constants.csv, a row a field. `python tests/bench/posttrain.py --fit` moves those within their
ranges, all families at once."""

from dataclasses import fields
from functools import cache
from pathlib import Path

from scantling.base.errors import CatalogueError
from scantling.base.files import csv_rows
from scantling.base.records import record

HERE = Path(__file__).parent


@record
class Constants:
    """One value a constant; unit and source stand in its row of constants.csv."""

    adapter_passes: float
    adapter_fused: float
    peft_layer_s: float
    peft_module_s: float
    engine_layer_s: float
    unpack_nf4: float
    unpack_gptq: float
    frozen_products: float
    file_bytes_per_s: float
    policy_logit_bytes: float
    eager_logit_bytes: float
    reserved_share: float
    context_bytes: float
    expert_pass_s: float
    experts_layer_s: float
    any_model: float
    low_speed: float
    high_speed: float
    low_peak: float
    high_peak: float
    assumed_wider: float
    decode_hbm: float
    decode_kv: float
    decode_flops: float
    prefill_flops: float
    engine_step_s: float
    engine_row_s: float
    decode_reduce_s: float
    decode_reduce_out_s: float
    experts_step_s: float
    length_spread: float
    passes_forward: float
    step_other_share: float
    step_other_s: float
    sync_ipc_bytes_per_s: float
    sync_broadcast_bytes_per_s: float
    sync_reshard_bytes_per_s: float
    sync_least_s: float
    wake_bytes_per_s: float
    redraw: float
    low_policy: float
    high_policy: float


@record
class Range:
    """Where a fit may move a constant."""

    low: float
    high: float
    source: str


@cache
def _rows() -> dict[str, dict[str, str]]:
    """The rows of constants.csv by name. Raises CatalogueError where one has no field, or a field
    no row."""
    rows = {row["name"]: row for row in csv_rows(HERE / "constants.csv")}
    names = {f.name for f in fields(Constants)}
    for name in names.symmetric_difference(rows):
        raise CatalogueError(f"constants.csv: {name} has no row, or no field")
    return rows


@cache
def constants() -> Constants:
    """The constants as shipped."""
    return Constants(**{name: float(row["value"]) for name, row in _rows().items()})


@cache
def priors() -> Constants:
    """The constants before any fit: where one starts, and what it leaves reluctantly."""
    return Constants(**{name: float(row["prior"]) for name, row in _rows().items()})


def ranges() -> dict[str, Range]:
    """Where a fit may move each constant."""
    return {
        name: Range(low=float(row["low"]), high=float(row["high"]), source=row["source"])
        for name, row in _rows().items()
    }
