"""Runs as cases: rows in the format of the run tables become columns, with every inferred setting
named.

None of the measured columns is read here. A missing run setting is inferred by a rule; a missing
dimension of the model is never guessed: the row gets an error, as does one with a cell that cannot
be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import catalogue
from ..base.columns import Array
from ..base.errors import DesignError
from ..base.records import record
from ..base.units import GB
from ..catalogue.hardware import Accelerator
from ..catalogue.models.entries import build_model
from ..catalogue.stacks import Stack, stack
from ..catalogue.words import (
    ATTENTIONS,
    CP_TYPES,
    DISPATCHERS,
    EFFORTS,
    LAYER_SPLITS,
    MLPS,
    OFFLOADS,
    RECOMPUTES,
    SHARDINGS,
)
from ..design.cluster import NetworkMeasured
from ..physics.cases import Cases, Plan
from ..physics.collectives import measured_link
from ..physics.constants import gather
from ..physics.gather import chip_of, job_of, precision_code, software_of
from ..physics.ingest import token_bytes
from ..physics.memory.peak import memory
from ..physics.pipeline import SCHEDULE_NAMES, schedule_code
from ..physics.software import SWITCHES
from ..physics.wires import WHOLE_POD, Link
from .contradictions import contradictions
from .frames import table_of
from .infer import Gaps, in_half, infer
from .links import fabric_of, link_of_chip, links_of
from .normalise import normalise
from .run_columns import bounds
from .run_shapes import shape_of
from .run_table import Table, each, filled, is_blank

if TYPE_CHECKING:
    from pandas import DataFrame

NEEDED = ("layers", "hidden", "heads", "vocab", "seq_len")
VOCABULARIES: Mapping[str, Sequence[str]] = {
    "sharding": SHARDINGS,
    "recompute": RECOMPUTES,
    "offload": OFFLOADS,
    "mlp": MLPS,
    "attention": ATTENTIONS,
    "cp_type": CP_TYPES,
    "schedule": SCHEDULE_NAMES,
    "scale_out": tuple(catalogue.fabrics("scale-out")),
    "moe_dispatcher": DISPATCHERS,
    "effort": EFFORTS,
    "optimizer": tuple(catalogue.optimizers()),
}
# columns that decide whether a row has a case
CHECKED = (
    *NEEDED,
    *VOCABULARIES,
    "moe_experts",
    "moe_topk",
    "moe_ffn_hidden",
    "moe_layers",
    "known_vocab",
    "n_devices",
    "dp",
    "accelerator",
    "precision",
    "unreadable",
)
USUAL_OPTIMIZER = "adamw"
TWO_PARTS = ("zb-v", "v-half", "v-min")  # schedules that place two parts of a model on each stage


class Relief(NamedTuple):
    """What takes the place of a blank setting under which a run would not fit, and the share of the
    layers that repeat their forward; none: those that they are."""

    setting: str
    value: str | float
    layers: float | None = None


RELIEFS = (  # in order
    Relief("recompute", "selective"),
    Relief("recompute", "full", 0.125),
    Relief("recompute", "full", 0.25),
    Relief("recompute", "full", 0.5),
    Relief("recompute", "full", 1.0),
    Relief("micro_batch", 1.0),
)


@record
class Runs:
    """Rows that can be computed, as cases, with what was assumed and what stopped the others."""

    ids: Array  # every row of the file, in order
    ready: Array  # bool, shape (rows,): has a case
    cases: Cases | None  # one column entry per ready row
    assumed: list[str]  # per row
    errors: list[str]  # per row, "" where ready
    families: Array  # chip family, per ready row
    fabrics: Array  # scale-out network (catalogue id)
    chips: Array
    stacks: Array
    tokens: Array  # of the whole run, nan where none are named; per ready row, as the next two
    goodput: Array
    usd_per_hour: Array  # nan where none is named


def to_runs(runs: Table | DataFrame) -> Runs:
    """Cases of every row that has a shape, an accelerator and a sequence length; the rules of
    inference are in `infer`."""
    table = normalise(runs if isinstance(runs, Table) else table_of(runs))
    table = known(table.replace({name: table.numbers(name) for name in bounds()}))
    rows = {name: table[name].tolist() for name in CHECKED if name in table}
    unlike = contradictions(table)
    errors = [error_of(dict(zip(rows, row))) or text for *row, text in zip(*rows.values(), unlike)]
    ready = np.array([not error for error in errors], bool)
    f = table.take(ready)
    chips = [catalogue.accelerator(name) for name in f["accelerator"]]
    families = np.array([chip.family for chip in chips], dtype=str)
    cases = None
    notes: list[list[str]] = []
    if len(f):
        f, notes, cases = inferred(f, chips, families)
    assumed = np.full(len(table), "", dtype=object)
    assumed[ready] = ["; ".join(row) for row in notes]
    return Runs(
        ids=table.text("id"),
        ready=ready,
        cases=cases,
        assumed=assumed.tolist(),
        errors=errors,
        families=families,
        fabrics=np.array([fabric_of(*pair) for pair in zip(chips, f["scale_out"])], object),
        chips=f["accelerator"].astype(str),
        stacks=f["stack"].astype(str),
        tokens=f.numbers("tokens"),
        goodput=filled(f.numbers("goodput"), 1.0),
        usd_per_hour=f.numbers("usd_per_hour"),
    )


def known(table: Table) -> Table:
    """The rows with what they say without a word: the kind of attention by heads and those of keys
    and values, and the vocabulary of the catalogue's model of a row's name, `known_vocab`."""
    heads, kv = table.numbers("heads"), table.numbers("kv_heads")
    kinds = np.select([kv == heads, kv == 1, kv > 0], ["mha", "mqa", "gqa"], "")
    attention = table.text("attention")
    blank = (attention == "") & (heads > 0) & (kv > 0)
    vocab = each(table.text("model"), float, vocab_of)
    columns = {"attention": np.where(blank, kinds.astype(object), attention), "known_vocab": vocab}
    return table.replace(columns)


def vocab_of(name: str) -> float:
    """Vocabulary of the catalogue's model of a name; nan where it knows none."""
    try:
        return float(build_model(name)[0].vocab) if name else np.nan
    except DesignError:
        return np.nan


def error_of(row: Mapping[Any, Any]) -> str:
    """Why a row has no case; "" where it has one."""
    if unreadable := row.get("unreadable", ""):
        return str(unreadable).removesuffix("; ")
    if missing := missing_in(row):
        return "no " + ", ".join(missing) + ": a dimension is never guessed"
    if row["moe_topk"] > row["moe_experts"] or row["moe_layers"] > row["layers"]:
        return "more experts a token than experts, or more MoE layers than layers"
    for name, words in VOCABULARIES.items():
        word = row[name]
        if word and word not in words:
            return f"{name} {word!r} is none of {', '.join(words)}"
    try:
        chip = catalogue.accelerator(row["accelerator"], "accelerator")
        if row["precision"]:
            precision_code(row["precision"])
            chip.peak_flops(row["precision"])
    except (DesignError, ValueError) as e:
        return str(e)
    return ""


def missing_in(row: Mapping[Any, Any]) -> list[str]:
    """Dimensions that no rule gives."""
    needed = [*NEEDED, "mlp", "attention"]
    if row["mlp"] == "gelu" or row["known_vocab"] > 0:
        needed.remove("vocab")
    if row["moe_experts"] > 0:
        needed += ["moe_topk", "moe_ffn_hidden"]
    missing = [name for name in needed if is_missing(row[name])]
    if not (row["n_devices"] > 0 or row["dp"] > 0):
        missing.append("n_devices")
    return missing


def is_missing(cell: float | str) -> bool:
    """Whether a dimension is not stated."""
    return not cell if isinstance(cell, str) else not cell > 0


def inferred(
    table: Table, chips: Sequence[Accelerator], families: Array
) -> tuple[Table, list[list[str]], Cases]:
    """The rows without blanks, what was assumed of each, and the cases. Where a run would not fit,
    settings that it leaves blank give way as RELIEFS says: what was measured was possible."""
    blank = {
        "recompute": table["recompute"] == "",
        "micro_batch": np.isnan(table["micro_batch"]) & ~(table["grad_accum"] > 0),
    }
    gaps = Gaps(table)
    infer(gaps, chips)
    rule = "the default does not fit"
    cases = cases_of(gaps.table, chips, families)
    possible = np.array([stack(name).half_possible for name in gaps["stack"]])
    over = ~np.broadcast_to(memory(cases).fits, len(table)) & possible
    if over.any():
        in_half(gaps, over, rule)
        cases = cases_of(gaps.table, chips, families)
    for relief in RELIEFS:
        over = ~np.broadcast_to(memory(cases).fits, len(table)) & blank[relief.setting]
        if over.any():
            gaps.fill(relief.setting, relief.value, rule, at=over)
            if relief.layers is not None:
                layers = relief.layers * np.ceil(gaps["layers"] / gaps["pp"])
                gaps.fill("recompute_layers", layers, rule, at=over)
            cases = cases_of(gaps.table, chips, families)
    return gaps.table, gaps.notes, cases


def cases_of(f: Table, chips: Sequence[Accelerator], families: Array) -> Cases:
    """Rows without blanks as cases."""
    stacks = [stack(name) for name in f["stack"]]
    domain = domains(f, chips)
    shape = shape_of(f)
    plan = plans(f, stacks, domain)
    precisions = f["precision"].tolist()
    job = job_of(
        stacks,
        precisions,
        f["seq_len"],
        f["global_batch_seqs"],
        optimizers=[word or USUAL_OPTIMIZER for word in f.text("optimizer")],
        grad_bytes=f["grad_bytes"],
        half=filled(f["half_states"], 0.0),
    )
    job = replace(
        job,
        read_bytes_per_s=filled(f["read_gbytes_per_s"], np.inf) * GB,
        reads_per_s=filled(f["reads_per_s"], np.inf),
        token_bytes=token_bytes(f["vocab"]),
    )
    stated = {name: f.numbers(name) for name in SWITCHES if name in f}
    software = software_of(
        stacks, chips, shape, plan, stated, precision=job.precision, planned=to_come(f)
    )
    return Cases(
        shape=shape,
        job=job,
        chip=chip_of(chips, precisions, domain),
        link=links(f, chips, domain),
        plan=plan,
        software=software,
        constants=gather(
            families,
            f["accelerator"].astype(str),
            f["stack"].astype(str),
            tuned=np.broadcast_to(software.tuned, len(f)),
        ),
    )


def to_come(f: Table) -> Array:
    """Which rows are runs to come, as designs are, that have what their stack offers by now: those
    without a date and without a measured figure. bool"""
    dated = ~is_blank(f.text("published")) | (f["released"] > 0)
    measured = f.numbers("measured_tokens_per_s_per_device") > 0
    return np.asarray(~dated & ~measured)


def domains(f: Table, chips: Sequence[Accelerator]) -> Array:
    """Devices of one scale-up domain: as the row says, else the product's, those of the row's node
    where a node is the domain and has fewer, or those of a slice where the row says over how many
    slices it ran."""
    products = np.array([float(chip.scale_up_domain) for chip in chips])
    nodes = np.array([float(catalogue.devices_per_node(chip.id)) for chip in chips])
    smaller = np.minimum(products, np.maximum(f["devices_per_node"], 1.0))
    products = np.where(nodes == products, smaller, products)
    slices = np.where(f["slices"] > 1, f["n_devices"] / f["slices"], np.inf)
    return filled(f["scale_up_domain"], np.minimum(slices, products))


def links(f: Table, chips: Sequence[Accelerator], domain: Array) -> Link:
    """The network of each row: what it prints, else that of the accelerator's usual node."""
    usual = links_of([link_of_chip(chip, network) for chip, network in zip(chips, f["scale_out"])])
    printed = f["scale_out_gbytes_per_s_per_device"]
    out_bytes_per_s = np.where(printed > 0, printed * 1e9, usual.out_bytes_per_s)
    whole = np.array([float(chip.scale_up_domain) for chip in chips])
    link = replace(
        usual,
        domain=domain,
        up_bytes_per_s=filled(f["scale_up_gbytes_per_s"] * GB, usual.up_bytes_per_s),
        out_bytes_per_s=out_bytes_per_s,
        mesh=usual.mesh * (domain == whole),
        pod_devices=filled(f["pod_devices"], WHOLE_POD),
        oversubscription=filled(f["oversubscription"], 1.0),
        sharp=filled(f["in_network_reduction"], 0.0),
        rail_only=filled(f["rail_only"], 0.0),
    )
    measured = NetworkMeasured(
        all_reduce=f["all_reduce_gbytes_per_s"] * GB,
        all_reduce_in_node=f["all_reduce_in_node_gbytes_per_s"] * GB,
        all_to_all=f["all_to_all_gbytes_per_s"] * GB,
    )
    return measured_link(link, f["n_devices"], measured)


def codes(words: Sequence[str], names: Sequence[str]) -> Array:
    """The codes of some words of a list."""
    return np.array([words.index(name) for name in names])


def schedules(f: Table, stacks: Sequence[Stack]) -> list[str]:
    """The pipeline schedule of each row: as printed, the stack's, else that of its chunks."""
    usual = np.where(f["vpp"] > 1, "interleaved", "1f1b")
    return [
        printed or of_stack.schedule or str(else_)
        for printed, of_stack, else_ in zip(f["schedule"], stacks, usual)
    ]


def splits(f: Table) -> Array:
    """How the layers of each row fall on stages: as stated, else evenly. Raises DesignError for a
    word that is none."""
    words = [str(word) or LAYER_SPLITS[0] for word in f["layer_split"]]
    for word in words:
        if word not in LAYER_SPLITS:
            raise DesignError("layer_split", word, LAYER_SPLITS)
    return codes(LAYER_SPLITS, words)


def plans(f: Table, stacks: Sequence[Stack], domain: Array) -> Plan:
    """The plan of each row."""
    schedule = schedules(f, stacks)
    cp_type = [printed or s.cp_type or "ring" for printed, s in zip(f["cp_type"], stacks)]
    replicas = f["dp"] * f["cp"]
    usual_group = filled(f["shard_group"], np.maximum(domain // f["tp"], 1))
    group = np.where(f["sharding"] == "hsdp", usual_group, replicas)
    repeated = f["recompute_layers"] / np.ceil(f["layers"] / f["pp"])
    repeated = filled(f["recompute_share"], np.nan_to_num(repeated, nan=1.0))
    return Plan(
        tp=f["tp"],
        cp=f["cp"],
        pp=f["pp"],
        vpp=np.where(np.isin(schedule, TWO_PARTS), 2.0, f["vpp"]),
        dp=f["dp"],
        ep=f["ep"],
        etp=f["etp"],
        sp=f["sp"],
        micro_batch=f["micro_batch"],
        sharding=codes(SHARDINGS, f["sharding"].tolist()),
        shard_group=np.minimum(group, replicas),
        schedule=np.array([schedule_code(name) for name in schedule]),
        recompute=codes(RECOMPUTES, f["recompute"].tolist()),
        recompute_share=np.minimum(repeated, 1.0),
        cp_type=codes(CP_TYPES, list(np.where(f["ulysses_sp"] > 1, "ulysses", cp_type))),
        offload=codes(OFFLOADS, [word or "none" for word in f["offload"]]),
        layer_split=splits(f),
    )
