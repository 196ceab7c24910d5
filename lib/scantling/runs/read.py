"""Published runs as cases: rows in the format of the run tables become columns, with every inferred
setting named.

None of the measured columns is read here. A missing run setting is inferred by the rule beside it;
a missing dimension of the model is never guessed: the row gets an error, as does one with a cell
that cannot be read.
"""

from __future__ import annotations

import csv
import io
from dataclasses import fields, replace
from functools import cache, partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .. import catalogue
from ..base.errors import DesignError, plain
from ..base.files import csv_rows, read_text
from ..base.records import fields_of, record
from ..base.words import table
from ..catalogue.families import family
from ..catalogue.models.dimensions import GATED
from ..catalogue.models.entries import build_model, models
from ..catalogue.models.shape import Model, make_shape, parameters
from ..catalogue.models.sizing import MLA
from ..catalogue.stacks import canonical, software_switches, stack, stacks
from ..catalogue.words import ATTENTIONS, CP_TYPES, MLPS, OFFLOADS, RECOMPUTES, SHARDINGS
from ..physics.cases import Cases, Plan
from ..physics.constants import gather
from ..physics.gather import chip_of, job_of, precision_code, software_of
from ..physics.memory.peak import memory
from ..physics.pipeline import SCHEDULE_NAMES, schedule_code
from ..physics.software import SWITCHES
from ..physics.wires import Link
from .links import link_of_chip, links_of
from .normalise import normalise

if TYPE_CHECKING:
    from pandas import DataFrame

NUMBERS = ("count", "number")  # kinds of columns
NEEDED = ("layers", "hidden", "heads", "vocab", "seq_len")
_MOST_BYTES = 10_000_000
_MOST_COLUMNS = 1000
_LEADING = "#"  # a line of explanation above the header
VOCABULARIES = {
    "sharding": SHARDINGS,
    "recompute": RECOMPUTES,
    "offload": OFFLOADS,
    "mlp": MLPS,
    "attention": ATTENTIONS,
    "cp_type": CP_TYPES,
    "schedule": SCHEDULE_NAMES,
    "scale_out": tuple(catalogue.fabrics("scale-out")),
}
SHAPE = {  # field of a shape: column of the tables
    n: n
    for n in (
        "layers",
        "hidden",
        "ffn_hidden",
        "heads",
        "kv_heads",
        "head_dim",
        "vocab",
        "moe_layers",
        "mtp_layers",
    )
} | {
    "experts": "moe_experts",
    "top_k": "moe_topk",
    "expert_ffn_hidden": "moe_ffn_hidden",
    "shared_ffn_hidden": "moe_shared_ffn_hidden",
}
MOE = ("moe_experts", "moe_topk", "moe_ffn_hidden", "moe_shared_ffn_hidden")
_SAID = ("mlp", "attention", "tied_embeddings", "moe_layout", "source")
DETAIL = "model."  # columns of what a model's own code adds to its dimensions
WINDOWS = (f"{DETAIL}window", f"{DETAIL}windowed_layers")
SAME = ("layers", "hidden", "heads", "kv_heads", "moe_experts")  # of a row and a model that are one
PADDED = 0.01  # of a vocabulary, at most
_DETAILS = {  # field of a model: its default
    f.name: f.default
    for f in fields(Model)
    if f.name not in {*SHAPE, *_SAID} and isinstance(f.default, (int, str))
}
LESS = table(__file__, "less")  # what gives way where a run would not fit
TWO_PARTS = ("zb-v", "v-half", "v-min")  # schedules that place two parts of a model on each stage


@record
class Runs:
    """Rows that can be computed, as cases, with what was assumed and what stopped the others."""

    ids: np.ndarray  # every row of the file, in order
    ready: np.ndarray  # bool, shape (rows,): has a case
    cases: Cases | None  # one column entry per ready row
    assumed: list[str]  # per row
    errors: list[str]  # per row, "" where ready
    families: np.ndarray  # chip family, per ready row
    chips: np.ndarray
    stacks: np.ndarray


@cache
def columns() -> dict:
    """The columns of a table of runs by name: unit, kind, low, high, a worked example and what each
    means (run_columns.csv)."""
    return {row["column"]: row for row in csv_rows(catalogue.HERE / "run_columns.csv")}


def template() -> str:
    """An empty table of runs: every column explained above the header, and one worked row."""
    told = []
    for name, c in columns().items():
        bounds = f", {c['low']} to {c['high']}" if c["low"] else ""
        unit = f" [{c['unit']}]" if c["unit"] else ""
        told.append(f"{_LEADING} {name}{unit} ({c['kind']}{bounds}): {c['description']}\n")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([columns(), [c["example"] for c in columns().values()]])
    return "".join(told) + out.getvalue()


def read_runs(path) -> DataFrame:
    """The CSV as a frame of numbers and text; columns that are missing are blank. Cells that are no
    number, or one outside the bounds of run_columns.csv, are named in the column `unreadable`.
    Leading lines that begin with # explain and are not read. Raises ValueError without an id
    column."""
    return runs_of_text(read_text(path, "a table of runs as CSV", _MOST_BYTES), Path(path))


def read_named(path) -> DataFrame:
    """`read_runs` of a table that a user names; raises DesignError where it is none."""
    try:
        return read_runs(path)
    except (OSError, ValueError) as e:
        problem = f"cannot be read as a table of runs: {plain(e, 200)}"
        raise DesignError(plain(path, 200), problem=problem) from None


def taken(runs: str | Path | DataFrame) -> DataFrame:
    """The rows of a table of runs that a user gives as its path or as a frame; raises DesignError
    for anything else."""
    import pandas as pd

    if isinstance(runs, (str, Path)):
        return read_named(runs)
    if not isinstance(runs, pd.DataFrame) or "id" not in runs:
        allowed = "a pandas DataFrame with a column `id`, or the path of a table of runs"
        raise DesignError("runs", type(runs).__name__, allowed)
    return runs if "unreadable" in runs else checked(runs.reset_index(drop=True), Path())


def runs_of_text(text: str, path: Path) -> DataFrame:
    """The text of a table as `read_runs` gives it; `path` leads its messages, and the files that it
    names lie beside it."""
    import pandas as pd

    lines = io.StringIO(text).readlines()
    told = len(list(takewhile(lambda line: line.startswith(_LEADING), lines)))
    if lines[told:] and lines[told].count(",") >= _MOST_COLUMNS:
        raise ValueError(f"more than {_MOST_COLUMNS:,} columns")
    frame = pd.read_csv(io.StringIO("".join(lines[told:])), low_memory=False, dtype={"id": str})
    if "id" not in frame:
        raise ValueError(f"{path}: no column `id`; the format is that of the published-run tables")
    return checked(frame, path.parent)


def checked(frame: DataFrame, folder: Path) -> DataFrame:
    """The rows with every column of the format, their numbers read, their words settled; `folder`
    holds the files that they name."""
    import pandas as pd

    frame = _fill_shapes(frame, folder)
    unreadable = pd.Series("", index=frame.index)
    numbers = {name: column for name, column in columns().items() if column["kind"] in NUMBERS}
    frame = frame.reindex(columns=[*dict.fromkeys([*frame, *numbers])])
    said = {n: {"kind": "number", **vars(s)} for n, s in software_switches().items() if n in frame}
    for name, column in (numbers | said).items():
        number = pd.to_numeric(frame[name], errors="coerce").astype(float)
        low = float(column["low"])
        high = float(column["high"])
        whole = column["kind"] == "count"
        fine = number.between(low, high) & ~(whole & (number % 1 != 0))
        for i in np.flatnonzero(frame[name].notna() & ~fine):
            what = "a whole number" if whole else "a number"
            cell = str(frame[name][i])[:40]
            unreadable[i] += f"{name} {cell!r} is not {what} from {low:.15g} to {high:.15g}; "
        frame[name] = number
    frame["unreadable"] = unreadable + frame.pop("shapeless")
    return normalise(frame)


def _fill_shapes(frame, folder: Path) -> DataFrame:
    """Rows without layers take the shape of their `hf_config`, else that of the catalogue's model
    of that id; rows that print the dimensions of a catalogue's model with windows, which no column
    of theirs can say, take those. What stops a config is kept in the column `shapeless`."""
    import pandas as pd

    texts = frame.reindex(columns=["hf_config", "model"]).astype(object).fillna("")
    blank = frame["layers"].isna() if "layers" in frame else frame.id.notna()
    said = pd.Series("", index=frame.index)
    found = {}
    for i in np.flatnonzero(blank):
        config, model = map(str, texts.loc[i])
        try:
            built, _ = build_model({"hf_config": config} if config else model, folder)
            found[i] = _of_model(built)
        except DesignError as e:
            said[i] = f"{plain(e, 200)}; " if config else ""
    said_of = frame.reindex(columns=[*SAME, "vocab"]).apply(pd.to_numeric, errors="coerce")
    for model in (m for m in models().values() if m.windowed_layers):
        of = _of_model(model)
        alike = (said_of[list(SAME)].fillna(0) == [of[n] for n in SAME]).all(axis=1) & ~blank
        alike &= (said_of.vocab / model.vocab - 1).abs() < PADDED
        found |= dict.fromkeys(np.flatnonzero(alike), {n: of[n] for n in WINDOWS})
    given = pd.DataFrame.from_dict(found, "index", object)
    own = frame.reindex(columns=[*dict.fromkeys([*frame, *given])])
    filled = {name: own[name].astype(object).combine_first(given[name]) for name in given}
    filled = pd.DataFrame(filled | {"shapeless": said})
    return pd.concat([own.drop(columns=list(given)), filled], axis=1)


def _of_model(model: Model) -> dict:
    """The columns of a row that runs a model of the catalogue or of a config."""
    shape = {column: getattr(model, name) for name, column in SHAPE.items()}
    shape |= fields_of(model, ("mlp", "attention", "seq_len"))
    shape["tied_embeddings"] = int(model.tied_embeddings)
    shape["dense_ffn_hidden_in_moe_model"] = model.ffn_hidden if model.moe_layers else np.nan
    return shape | {DETAIL + n: getattr(model, n) for n in _DETAILS}


def to_runs(frame: DataFrame) -> Runs:
    """Cases of every row that has a shape, an accelerator and a sequence length; the rules of
    inference are in `_infer`."""
    frame = normalise(frame)
    errors = [_error(row) for row in frame.itertuples()]
    ready = np.array(errors, dtype=object) == ""
    f = frame[ready].reset_index(drop=True)
    chips = [catalogue.accelerator(a) for a in f.accelerator]
    families = np.array([c.family for c in chips], dtype=str)
    said, cases = _inferred(f, chips, families) if len(f) else ([], None)
    texts = map("; ".join, said)
    return Runs(
        ids=frame.id.to_numpy(),
        ready=ready,
        cases=cases,
        assumed=[next(texts) if r else "" for r in ready],
        errors=errors,
        families=families,
        chips=f.accelerator.to_numpy(str),
        stacks=f["stack"].to_numpy(str),
    )


def _error(row) -> str:
    """Why a row has no case; "" where it has one."""
    if unreadable := getattr(row, "unreadable", ""):
        return unreadable.removesuffix("; ")
    if missing := _missing(row):
        return "no " + ", ".join(missing) + ": a dimension is never guessed"
    if row.moe_topk > row.moe_experts or row.moe_layers > row.layers:
        return "more experts a token than experts, or more MoE layers than layers"
    if row.accelerator not in catalogue.accelerators():
        return f"accelerator {row.accelerator!r} is not in the catalogue"
    for name, words in VOCABULARIES.items():
        word = getattr(row, name)
        if word and word not in words:
            return f"{name} {word!r} is none of {', '.join(words)}"
    try:
        if row.precision:
            precision_code(row.precision)
            catalogue.accelerator(row.accelerator).peak_flops(row.precision)
    except (DesignError, ValueError) as e:
        return str(e)
    return ""


def _missing(row) -> list:
    """Dimensions that no rule gives."""
    needed = [n for n in NEEDED if not (n == "vocab" and row.mlp == "gelu")]
    needed += ["mlp", "attention"]
    needed += ["moe_topk", "moe_ffn_hidden"] if row.moe_experts > 0 else []
    values = fields_of(row, needed).items()
    out = [n for n, v in values if not (v if isinstance(v, str) else v > 0)]
    return out if row.n_devices > 0 or row.dp > 0 else [*out, "n_devices"]


def _fill(f, said, name, value, rule, at=None):
    """Replace the blanks of a column (or the rows in `at`), each noted in `said`, a list a
    row, in the place of what was noted before."""
    column = f[name]
    number = column.dtype.kind == "f"
    blank = (column.isna() if number else column.eq("")) if at is None else at
    value = np.broadcast_to(np.asarray(value, dtype=float if number else object), len(column))
    for i in np.flatnonzero(blank):
        text = f"{value[i]:g}" if number else value[i]
        before = [note for note in said[i] if not note.startswith(f"{name}=")]
        said[i][:] = [*before, f"{name}={text} ({rule})"]
    f[name] = np.where(blank, value, column)


def _stack(f, attribute):
    """One attribute of every row's stack."""
    return np.array([getattr(stack(n), attribute) for n in f["stack"]])


def _inferred(f, chips, families) -> tuple:
    """What was assumed of every row, and the cases. Where a run would not fit, settings that it
    leaves blank give way as LESS says: what was measured was possible."""
    blank = {
        "recompute": f.recompute.eq(""),
        "micro_batch": f.micro_batch.isna() & ~(f.grad_accum > 0),
    }
    noted = _infer(f, chips)
    cases = _cases(f, chips, families)
    for name, value, share in LESS:
        over = ~np.broadcast_to(memory(cases).fits, len(f)) & blank[name]
        if over.any():
            fill = partial(_fill, f, noted, rule="the default does not fit", at=over)
            fill(name, value)
            if share:
                fill("recompute_layers", share * f.layers / (f.pp * f.vpp))
            cases = _cases(f, chips, families)
    return noted, cases


def _infer(f, chips) -> list:
    """Fill blanks in place. Each rule says what it chose and why; its words end up in `assumed`."""
    noted = [[] for _ in chips]
    fill = partial(_fill, f, noted)
    kinds = [family(c.family) for c in chips]
    same = [canonical(n, k.modern) for n, k in zip(f["stack"], kinds)]
    fill("stack", same, "Megatron-LM since Hopper", at=f["stack"].ne(same))
    _infer_shape(f, fill)
    _infer_layout(f, fill, chips, np.array([k.torus for k in kinds]))
    _infer_batch(f, fill)
    usual = "the stack's default"
    fill("sp", _stack(f, "sequence_parallel") * 1, usual, at=f.sp.isna() & (f.tp > 1))
    f["sp"] = f.sp.fillna(0)
    fill("sharding", [k.zero_unsaid or s for k, s in zip(kinds, _stack(f, "sharding"))], usual)
    fill("recompute", _stack(f, "recompute"), usual)
    fill(
        "precision",
        ["fp16" if np.isnan(c.bf16_flops) else "bf16" for c in chips],
        "bf16, fp16 where the chip lacks it",
    )
    for said, kind, name in zip(noted, kinds, f["stack"]):
        if not kind.measured:
            said.append(f"constants={kind.constants_of}'s (no published run on {kind.id})")
        if name not in stacks() or stack(name).unmeasured:
            said.append(f"constants=those of all stacks (none of {name or 'an unnamed stack'})")
    return noted


def _infer_shape(f, fill):
    """Dimensions that follow from others."""
    fill("vocab", 51200, "the GPT-2 vocabulary, padded; only where the MLP is GPT's")
    fill("head_dim", f.hidden / f.heads, "hidden / heads")
    fill("kv_heads", f.heads, "as many as heads")
    moe = f.moe_experts > 0
    fill(
        "ffn_hidden",
        np.where(f.mlp.isin(GATED), np.round(8 * f.hidden / 3 / 256) * 256, 4 * f.hidden),
        "4 x hidden, 8/3 gated",
        at=f.ffn_hidden.isna() & ~moe,
    )
    f["ffn_hidden"] = np.where(moe, f.dense_ffn_hidden_in_moe_model.fillna(0), f.ffn_hidden)
    f["moe_layers"] = f.moe_layers.fillna(f.layers) * moe
    for n in (*MOE, "mtp_layers", "tied_embeddings"):
        f[n] = f[n].fillna(0)
    fill(
        "devices_per_node",
        [float(catalogue.devices_per_node(a)) for a in f.accelerator],
        "the accelerator's usual node",
    )


def _infer_layout(f, fill, chips, torus):
    """Ways to split the model and the devices."""
    n = f.n_devices.fillna(f[["tp", "pp", "cp", "dp"]].fillna(1).prod(axis=1))
    f["n_devices"] = n
    count = parameters(_shape(f)).total
    whole = ~f.sharding.isin(["zero3", "hsdp"]) & ~torus & (count > 20e9)
    lost = f.tp.isna() & f.pp.isna() & whole
    room = np.maximum(count * 18 / (8 * 0.6 * np.array([c.hbm_usable_bytes for c in chips])), 1)
    fill(
        "tp",
        np.where(lost, np.minimum(8, n), 1),
        "8 for an unsharded model above 20 B parameters, else 1",
    )
    fill(
        "pp",
        np.where(lost, np.minimum(2 ** np.ceil(np.log2(room)), np.maximum(n // 8, 1)), 1),
        "smallest power of two that holds 18 bytes a parameter in 60 % of memory",
    )
    fill("cp", f.ulysses_sp.fillna(1), "none printed")
    f["cp"] = np.maximum(f.cp, 1)
    fill(
        "dp",
        np.maximum(np.floor(n / (f.tp * f.pp * f.cp)), 1),
        "devices / (tp pp cp)",
        at=f.dp.isna() | (f.dp <= 0),
    )
    fill(
        "ep",
        np.minimum(np.minimum(f.moe_experts, 8), f.dp * f.cp * f.tp),
        "8 where experts and ranks allow",
        at=f.ep.isna() & (f.moe_experts > 0),
    )
    f["ep"] = f.ep.fillna(1)
    f["etp"] = f.etp.fillna(f.tp.where((f.moe_experts > 0) & (f.ep == 1), 1))
    fill(
        "vpp",
        _vpp(f),
        "the stack's chunks where it has some, a layer each under an interleaving "
        "recipe, 2 where the text says interleaved, else 1",
        at=f.vpp.isna() & (f.pp > 1),
    )
    f["vpp"] = f.vpp.fillna(1)


def _vpp(f):
    """Chunks per device where none are printed: the stack's own layout; or, where neither
    micro-batch nor options are printed and the stack's recipes interleave, as many as divide the
    stage's layers, 8 at most."""
    chunk = _stack(f, "chunk_layers")
    per_stage = np.round(f.layers / f.pp)
    divisor = np.max([(per_stage % v == 0) * v for v in range(1, 9)], axis=0)
    unsaid = f.micro_batch.isna() | ~(f.options_printed > 0)
    return np.select(
        [chunk > 0, _stack(f, "interleaves") & unsaid & (f.layers % f.pp == 0)],
        [np.floor((f.layers + 2) / (f.pp * np.maximum(chunk, 1))), divisor],
        1 + ((f.interleaved > 0) & (f.pp > 1)),
    )


def _infer_batch(f, fill):
    """Batch and micro-batch."""
    fill("global_batch_seqs", np.maximum(np.round(4e6 / f.seq_len / f.dp), 1) * f.dp, "4M tokens")
    # weights that are gathered for every micro-batch want it large, experts or not
    guess = np.where(
        (f.pp > 1) | ((f.moe_experts > 0) & ~f.sharding.isin(["zero3", "hsdp"])),
        1,
        np.maximum(np.round(8192 / f.seq_len), 1),
    )
    share = np.maximum(f.global_batch_seqs / f.dp, 1)
    fill(
        "micro_batch",
        np.where(
            f.grad_accum > 0,
            np.maximum(share / f.grad_accum.fillna(1), 1),
            np.minimum(guess, share),
        ),
        "from grad_accum, else 1 under pp or whole experts, else 8,192 tokens",
    )


def _shape(f):
    counts = {k: np.nan_to_num(f[c].to_numpy(float)).astype(np.int64) for k, c in SHAPE.items()}
    mla = (f.attention == "mla").to_numpy()
    details = {n: v * mla for n, v in MLA.items()}
    for name in _DETAILS:
        if DETAIL + name in f:
            usual = details.get(name, _DETAILS[name])
            told = f[DETAIL + name].where(f[DETAIL + name].notna(), usual)
            details[name] = told.to_numpy(str if isinstance(usual, str) else np.int64)
    return make_shape(
        **counts,
        **details,
        mlp=f.mlp.to_numpy(str),
        attention=f.attention.to_numpy(str),
        tied_embeddings=(f.tied_embeddings > 0).to_numpy(),
    )


def _cases(f, chips, families) -> Cases:
    """Rows without blanks as cases."""
    stacks = [stack(n) for n in f["stack"]]
    domain = _domain(f, chips)
    shape = _shape(f)
    plan = _plan(f, domain)
    job = job_of(
        stacks,
        f.precision,
        f.seq_len.to_numpy(float),
        f.global_batch_seqs.to_numpy(float),
        grad_bytes=f.grad_bytes.to_numpy(float),
        half=f.half_states.fillna(0).to_numpy(float),
    )
    software = software_of(
        stacks,
        chips,
        shape,
        plan,
        {n: f[n].to_numpy(float) for n in SWITCHES if n in f},
        precision=job.precision,
    )
    return Cases(
        shape=shape,
        job=job,
        chip=chip_of(chips, f.precision, domain),
        link=_link(f, chips, domain),
        plan=plan,
        software=software,
        constants=gather(
            families,
            f.accelerator.to_numpy(str),
            f["stack"].to_numpy(str),
            tuned=np.broadcast_to(software.tuned, len(f)),
        ),
    )


def _domain(f, chips):
    """Devices of one scale-up domain: the product's, or those of a slice where the row says over
    how many slices it ran."""
    return np.minimum(
        np.where(f.slices > 1, f.n_devices / f.slices, np.inf),
        np.array([float(c.scale_up_domain) for c in chips]),
    )


def _link(f, chips, domain) -> Link:
    """The network of each row: what it prints, else that of the accelerator's usual node."""
    usual = links_of([link_of_chip(c, said) for c, said in zip(chips, f.scale_out)])
    printed = f.scale_out_gbytes_per_s_per_device
    return replace(
        usual,
        domain=domain,
        out_bytes_per_s=np.where(printed > 0, printed * 1e9, usual.out_bytes_per_s),
    )


def _codes(words, names):
    return np.array([words.index(n) for n in names])


def _plan(f, domain) -> Plan:
    names = [
        w or u or p
        for w, u, p in zip(
            f.schedule, _stack(f, "schedule"), np.where(f.vpp > 1, "interleaved", "1f1b")
        )
    ]
    ways = [w or u or "ring" for w, u in zip(f.cp_type, _stack(f, "cp_type"))]
    ways = np.where(f.ulysses_sp > 1, "ulysses", ways)
    number = {
        n: f[n].to_numpy(float)
        for n in ("tp", "cp", "pp", "vpp", "dp", "ep", "etp", "sp", "micro_batch")
    }
    replicas = number["dp"] * number["cp"]
    group = np.where(f.sharding == "hsdp", f.shard_group.fillna((domain // f.tp).clip(1)), replicas)
    again = (f.recompute_layers * f.vpp * f.pp / f.layers).to_numpy(float)
    number["vpp"] = np.where(np.isin(names, TWO_PARTS), 2.0, number["vpp"])
    return Plan(
        **number,
        sharding=_codes(SHARDINGS, f.sharding),
        shard_group=np.minimum(group, replicas),
        schedule=np.array([schedule_code(n) for n in names]),
        recompute=_codes(RECOMPUTES, f.recompute),
        recompute_share=np.minimum(np.nan_to_num(again, nan=1.0), 1.0),
        cp_type=_codes(CP_TYPES, ways),
        offload=_codes(OFFLOADS, f.offload.replace("", "none")),
    )
