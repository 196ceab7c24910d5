"""Published runs as cases: rows in the format of the run tables become columns, with every inferred
setting named.

None of the measured columns is read here. A missing run setting is inferred by the rule beside it;
a missing dimension of the
model is never guessed: the row gets an error.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from .. import catalogue
from ..catalogue.families import family
from ..catalogue.models.shape import make_shape, parameters
from ..catalogue.stacks import canonical, stack
from ..physics import cases
from ..physics.cases import TILE, Cases, Chip, Job, Link, Plan, Software
from ..physics.constants import gather
from ..physics.pipeline import DUALPIPES, schedule_code

NEEDED = ("layers", "hidden", "heads", "vocab", "seq_len")
NUMERIC = (
    "layers hidden ffn_hidden heads kv_heads head_dim vocab tied_embeddings seq_len "
    "moe_experts moe_topk moe_ffn_hidden moe_shared_ffn_hidden moe_layers "
    "dense_ffn_hidden_in_moe_model mtp_layers n_devices devices_per_node "
    "scale_out_gbytes_per_s_per_device tp sp pp vpp cp ulysses_sp ep etp dp micro_batch "
    ""
    "global_batch_seqs grad_accum"
).split()
TEXT = (
    "published stack accelerator precision mlp attention sharding sharding_as_printed "
    "recompute recompute_as_printed offload other_opts scale_out_network framework notes"
).split()
ABLATION = (
    "baseline",
    "+ptb",
    "+swa",
    "+tp overlap",
    "+pp overlap",
    "+dp overlap",
    "+efficient ops",
    "+misc",
    "+lamb",
)  # MegaScale, table 3: each row keeps those before
FLASH_SINCE = 2022.8  # the first FlashAttention in training frameworks
# PyTorch's asynchronous tensor parallelism shortens the forward by up to 29 % and the step by 8 %:
# the forward's collectives, 1 of 1 + 1.25, are pipelined
ASYNC_TP = 0.44
SCHEDULE_WORDS = (
    ("zero-bubble", "zb-1p"),
    ("zero bubble", "zb-1p"),
    ("zbb", "zb-2p"),
    ("dualpipe", "dualpipe"),
    ("zb-1p", "zb-1p"),
    ("zb-2p", "zb-2p"),
    ("zb-v", "zb-v"),
    ("zbv", "zb-v"),
    ("v-half", "v-half"),
    ("v-min", "v-min"),
)  # the most specific last


@dataclass(frozen=True)
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


def read_runs(path) -> pd.DataFrame:
    """The CSV as a frame of numbers and lower-case text; columns that are missing are blank. Raises
    ValueError without an id column."""
    frame = pd.read_csv(path, low_memory=False, dtype={"id": str})
    if "id" not in frame:
        raise ValueError(f"{path}: no column `id`; the format is that of the published-run tables")
    for name in NUMERIC:
        frame[name] = pd.to_numeric(frame[name], errors="coerce") if name in frame else np.nan
    for name in TEXT:
        frame[name] = frame[name].astype(object).fillna("").astype(str) if name in frame else ""
    return frame


class _Inference:
    """Collects, row by row, which settings were inferred and by which rule."""

    def __init__(self, frame):
        self.frame, self.said = frame, [[] for _ in range(len(frame))]

    def fill(self, name, value, rule, where=None):
        """The column with its blanks (or the rows in `where`) replaced, each noted."""
        column = self.frame[name]
        blank = (
            (column.isna() if column.dtype.kind == "f" else column.eq("")).to_numpy()
            if where is None
            else np.asarray(where)
        )
        value = np.broadcast_to(
            np.asarray(value, dtype=object if column.dtype.kind == "O" else float), len(column)
        )
        for i in np.flatnonzero(blank):
            self.said[i].append(
                f"{name}={value[i]:g} ({rule})"
                if column.dtype.kind == "f"
                else f"{name}={value[i]} ({rule})"
            )
        self.frame[name] = np.where(blank, value, column)
        return self.frame[name].to_numpy()


def _stack_column(names, attribute):
    return np.array([float(getattr(stack(n), attribute)) for n in names])


def to_runs(frame: pd.DataFrame) -> Runs:
    """Cases of every row that has a shape, an accelerator and a sequence length; the rules of
    inference are in `_infer`."""
    frame = frame.copy()
    errors = _errors(frame)
    ready = np.array([e == "" for e in errors])
    f = frame[ready].reset_index(drop=True)
    if not len(f):
        return Runs(
            frame.id.to_numpy(),
            ready,
            None,
            [""] * len(frame),
            errors,
            *(np.array([], dtype=str),) * 3,
        )
    note = _infer(f)
    chips = [catalogue.accelerator(a) for a in f.accelerator]
    families = np.array([c.family for c in chips])
    shape = _shape(f)
    opts = (f.other_opts + " " + f.recompute_as_printed).str.lower()
    plan = _plan(f, opts, chips)
    built = Cases(
        shape,
        _job(f),
        _chip(f, chips),
        _link(f, chips),
        plan,
        _software(f, opts, chips, plan.schedule),
        gather(families, f.accelerator.to_numpy(), f["stack"].to_numpy()),
    )
    said = iter("; ".join(s) for s in note.said)
    return Runs(
        frame.id.to_numpy(),
        ready,
        built,
        [next(said) if r else "" for r in ready],
        errors,
        families,
        f.accelerator.to_numpy(),
        f["stack"].to_numpy(),
    )


def _errors(frame):
    known = set(catalogue.accelerators())
    errors = []
    for row in frame.itertuples():
        missing = [
            n
            for n in NEEDED
            if not getattr(row, n) > 0 and not (n == "vocab" and row.mlp == "gelu")
        ]
        if not row.mlp or not row.attention:
            missing += [n for n in ("mlp", "attention") if not getattr(row, n)]
        if row.moe_experts > 0:
            missing += [n for n in ("moe_topk", "moe_ffn_hidden") if not getattr(row, n) > 0]
        if not row.n_devices > 0 and not (row.dp > 0):
            missing.append("n_devices")
        if missing:
            errors.append("no " + ", ".join(missing) + ": a dimension is never guessed")
        elif row.accelerator not in known:
            errors.append(f"accelerator {row.accelerator!r} is not in the catalogue")
        else:
            errors.append("")
    return errors


def _infer(f) -> _Inference:
    """Fill blanks in place. Each rule says what it chose and why; its words end up in `assumed`."""
    note = _Inference(f)
    same = [
        canonical(n, family(catalogue.accelerator(a).family).modern)
        for n, a in zip(f["stack"], f.accelerator)
    ]
    note.fill("stack", same, "Megatron-LM since Hopper", where=f["stack"].ne(same))
    names = f["stack"].to_numpy()
    note.fill("vocab", 51200, "the GPT-2 vocabulary, padded; only where the MLP is GPT's")
    note.fill("head_dim", f.hidden / f.heads, "hidden / heads")
    note.fill("kv_heads", f.heads, "as many as heads")
    gated = f.mlp.isin(["swiglu", "geglu"])
    note.fill(
        "ffn_hidden",
        np.where(gated, np.round(8 * f.hidden / 3 / 256) * 256, 4 * f.hidden),
        "4 x hidden, 8/3 gated",
        where=f.ffn_hidden.isna() & ~(f.moe_experts > 0),
    )
    f["ffn_hidden"] = np.where(
        f.moe_experts > 0, f.dense_ffn_hidden_in_moe_model.fillna(0), f.ffn_hidden
    )
    f["moe_layers"] = np.where(f.moe_experts > 0, f.moe_layers.fillna(f.layers), 0)
    for n in (
        "moe_experts",
        "moe_topk",
        "moe_ffn_hidden",
        "moe_shared_ffn_hidden",
        "mtp_layers",
        "tied_embeddings",
    ):
        f[n] = f[n].fillna(0)
    chips = [catalogue.accelerator(a) for a in f.accelerator]
    note.fill(
        "devices_per_node",
        [float(catalogue.devices_per_node(c.id)) for c in chips],
        "the accelerator's usual node",
    )
    n = f.n_devices.fillna(f.tp.fillna(1) * f.pp.fillna(1) * f.cp.fillna(1) * f.dp.fillna(1))
    f["n_devices"] = n
    gpu = np.array([not family(c.family).torus for c in chips])
    dense_gb = parameters(_shape(f)).total * 18 / 1e9
    usable = np.array([c.hbm_usable_bytes for c in chips]) / 1e9
    lost = (
        f.tp.isna()
        & f.pp.isna()
        & gpu
        & (parameters(_shape(f)).total > 20e9)
        & ~f.sharding.isin(["zero3", "hsdp"])
    )
    room = np.maximum(dense_gb / (8 * 0.6 * usable), 1)
    note.fill(
        "tp",
        np.where(lost, np.minimum(8, n), 1),
        "8 for an unsharded model above 20 B parameters, else 1",
    )
    note.fill(
        "pp",
        np.where(lost, np.minimum(2 ** np.ceil(np.log2(room)), np.maximum(n // 8, 1)), 1),
        "smallest power of two that holds 18 bytes a parameter in 60 % of memory",
    )
    note.fill("cp", f.ulysses_sp.fillna(1), "none printed")
    f["cp"] = np.maximum(f.cp, 1)
    note.fill(
        "dp",
        np.maximum(np.floor(n / (f.tp * f.pp * f.cp)), 1),
        "devices / (tp pp cp)",
        where=f.dp.isna() | (f.dp <= 0),
    )
    note.fill(
        "ep",
        np.where(
            f.moe_experts > 0, np.minimum(np.minimum(f.moe_experts, 8), f.dp * f.cp * f.tp), 1
        ),
        "8 where experts and ranks allow",
        where=f.ep.isna() & (f.moe_experts > 0),
    )
    f["ep"] = f.ep.fillna(1)
    f["etp"] = f.etp.fillna(1)
    interleaved = f.other_opts.str.contains("interleav", case=False)
    note.fill(
        "vpp",
        _vpp(f, names, interleaved),
        (
            "the stack's chunks where it has some, a layer each under an interleaving "
            "recipe, 2 where the text says interleaved, else 1"
        ),
        where=f.vpp.isna() & (f.pp > 1),
    )
    f["vpp"] = f.vpp.fillna(1)
    gb = 4e6 / f.seq_len
    note.fill("global_batch_seqs", np.maximum(np.round(gb / f.dp), 1) * f.dp, "4M tokens")
    guess = np.where((f.pp > 1) | (f.moe_experts > 0), 1, np.maximum(np.round(8192 / f.seq_len), 1))
    per_replica = np.maximum(f.global_batch_seqs / f.dp, 1)
    from_accum = np.where(
        f.grad_accum > 0,
        np.maximum(per_replica / f.grad_accum.fillna(1), 1),
        np.minimum(guess, per_replica),
    )
    note.fill(
        "micro_batch", from_accum, "from grad_accum, else 1 under pp or MoE, else 8,192 tokens"
    )
    seq_parallel = np.array([stack(s).sequence_parallel for s in names]) & (f.tp > 1)
    note.fill(
        "sp", np.where(seq_parallel, 1, 0), "the stack's default", where=f.sp.isna() & (f.tp > 1)
    )
    f["sp"] = f.sp.fillna(0)
    default = np.array([stack(s).sharding for s in names], dtype=object)
    default = np.array([family(c.family).zero_unsaid or d for c, d in zip(chips, default)])
    note.fill("sharding", default, "the stack's default")
    note.fill("recompute", [stack(s).recompute for s in names], "the stack's default")
    inputs = (
        f.recompute_as_printed.str.contains("remat_policy=custom")
        & f.recompute_as_printed.str.contains("decoder_layer_input=")
        & ~f.recompute_as_printed.str.contains("proj|mlpw|context")
    )
    note.fill("recompute", "full", "layer inputs alone are kept", where=inputs)
    note.fill(
        "precision",
        ["fp16" if np.isnan(c.bf16_flops) else "bf16" for c in chips],
        "bf16, fp16 where the chip lacks it",
    )
    return note


def _vpp(f, names, interleaved):
    """Chunks per device where none are printed: the stack's own layout; or, where neither
    micro-batch nor options are printed and the
    stack's recipes interleave, as many as divide the stage's layers, 8 at most."""
    chunk = np.array([stack(n).chunk_layers for n in names])
    own = np.floor((f.layers + 2) / (f.pp * np.maximum(chunk, 1)))
    per_stage = np.round(f.layers / f.pp)
    divisor = np.max([np.where(per_stage % v == 0, v, 1) for v in range(1, 9)], axis=0)
    unsaid = f.micro_batch.isna() | (f.recompute_as_printed.eq("") & f.other_opts.eq(""))
    recipe = _stack_column(names, "interleaves").astype(bool) & unsaid & (f.layers % f.pp == 0)
    return np.where(
        chunk > 0, own, np.where(recipe, divisor, np.where(interleaved & (f.pp > 1), 2, 1))
    )


def _recomputed(f):
    """Share of a device's layers that recompute: all, or as many as the text names."""
    n = pd.to_numeric(f.recompute_as_printed.str.extract(r"num_layers=(\d+)")[0], errors="coerce")
    return np.minimum((n * f.vpp / (f.layers / f.pp)).fillna(1.0), 1.0).to_numpy(float)


def _year(f):
    """Year of the software, from the publication date; now where none is given."""
    text = f.published.str.extract(r"(\d{4})-?(\d\d)?")
    year = (
        pd.to_numeric(text[0], errors="coerce")
        + (pd.to_numeric(text[1], errors="coerce").fillna(6.5) - 0.5) / 12
    )
    return year.fillna(Software.released).to_numpy(float)


def _shape(f):
    mla = {
        n: np.where(f.attention == "mla", v, 0)
        for n, v in dict(q_lora=1536, kv_lora=512, qk_nope=128, qk_rope=64, v_head_dim=128).items()
    }
    integer = {
        k: np.nan_to_num(f[c].to_numpy(float)).astype(np.int64)
        for k, c in dict(
            layers="layers",
            hidden="hidden",
            ffn_hidden="ffn_hidden",
            heads="heads",
            kv_heads="kv_heads",
            head_dim="head_dim",
            vocab="vocab",
            experts="moe_experts",
            top_k="moe_topk",
            expert_ffn_hidden="moe_ffn_hidden",
            shared_ffn_hidden="moe_shared_ffn_hidden",
            moe_layers="moe_layers",
            mtp_layers="mtp_layers",
        ).items()
    }
    return make_shape(
        **integer,
        mlp=f.mlp.to_numpy(str),
        attention=f.attention.to_numpy(str),
        tied_embeddings=(f.tied_embeddings > 0).to_numpy(),
        **mla,
    )


def _job(f):
    grads = _stack_column(f["stack"], "grad_bytes")
    grads = np.where(f.other_opts.str.contains("MP Mode DEFAULT"), 4.0, grads)
    # NVIDIA's performance recipes set grad_reduce_in_fp32 = False (Megatron-Bridge
    # scripts/performance, NeMo grad_sync_dtype: bf16); Megatron's own default under bf16 is fp32
    grads = np.where(
        f.framework.str.contains("NeMo|Megatron.Bridge", case=False)
        & ~f.other_opts.str.contains("fp32 grad"),
        2.0,
        grads,
    )
    own = _stack_column(f["stack"], "bf16_grad_bytes")
    grads = np.where((own > 0) & (f.precision == "bf16"), own, grads)
    return Job(
        f.seq_len.to_numpy(float),
        f.global_batch_seqs.to_numpy(float),
        np.array([cases.code(cases.PRECISIONS, p) for p in f.precision]),
        grad_bytes=grads,
    )


def _chip(f, chips):
    peak = np.array([c.peak_flops(p) for c, p in zip(chips, f.precision)])
    half = np.array([c.fp16_flops if np.isnan(c.bf16_flops) else c.bf16_flops for c in chips])
    column = lambda name: np.array([float(getattr(c, name)) for c in chips])  # noqa: E731
    return Chip(
        peak,
        half,
        column("hbm_bytes_per_s"),
        column("hbm_usable_bytes"),
        column("host_link_bytes_per_s"),
        np.array([float(family(c.family).torus) for c in chips]),
        np.array([float(family(c.family).modern) for c in chips]),
        np.nan_to_num(column("sms")) * TILE,
    )


def _link(f, chips):
    domain = _domain(f, chips)
    default = np.array([catalogue.default_scale_out_bytes_per_s(c.id) for c in chips])
    out = np.where(
        f.scale_out_gbytes_per_s_per_device > 0, f.scale_out_gbytes_per_s_per_device * 1e9, default
    )
    return Link(
        domain,
        np.array([c.link_bytes_per_s for c in chips]),
        2e-6,
        out,
        5e-6,
        1e9,
        1.0,
        np.array([float(c.mesh) for c in chips]),
    )


def _domain(f, chips):
    """Devices of one scale-up domain: the product's, or those of a slice where the row says over
    how many slices it ran."""
    slices = (
        pd.to_numeric(f.scale_out_network.str.extract(r"(\d+) slices")[0], errors="coerce")
        .fillna(0)
        .to_numpy(float)
    )
    whole = np.array([float(c.scale_up_domain) for c in chips])
    return np.where(slices > 1, np.minimum(f.n_devices / np.maximum(slices, 1), whole), whole)


def _plan(f, opts, chips):
    schedule = np.where(f.vpp > 1, schedule_code("interleaved"), schedule_code("1f1b"))
    default = [stack(n).schedule for n in f["stack"]]
    schedule = np.array([schedule_code(d) if d else s for d, s in zip(default, schedule)])
    printed = f.other_opts.str.lower()
    for word, name in SCHEDULE_WORDS:
        schedule = np.where(printed.str.contains(word, regex=False), schedule_code(name), schedule)
    vpp = np.where(
        np.isin(schedule, [schedule_code(n) for n in ("zb-v", "v-half", "v-min")]), 2, f.vpp
    )
    column = lambda name: f[name].to_numpy(float)  # noqa: E731
    ulysses = f.ulysses_sp.fillna(1).gt(1) | opts.str.contains("cp a2a")
    own = np.array([cases.CP_TYPES.index(stack(n).cp_type or "ring") for n in f["stack"]])
    group = np.where(f.sharding == "hsdp", np.maximum(_domain(f, chips) // f.tp, 1), f.dp * f.cp)
    offload = np.where(
        f.offload.str.contains("optimizer+param", regex=False),
        2,
        np.where(f.offload.str.startswith("optimizer"), 1, 0),
    )
    return Plan(
        column("tp"),
        column("cp"),
        column("pp"),
        vpp.astype(float),
        column("dp"),
        column("ep"),
        column("etp"),
        column("sp"),
        np.array([cases.code(cases.SHARDINGS, s) for s in f.sharding]),
        np.minimum(group, (f.dp * f.cp).to_numpy(float)),
        schedule,
        column("micro_batch"),
        np.array([cases.code(cases.RECOMPUTES, r) for r in f.recompute]),
        _recomputed(f),
        np.where(ulysses, 2, own),
        offload,
    )


def _software(f, opts, chips, schedule):
    has = lambda *words: np.any([opts.str.contains(w, regex=False) for w in words], axis=0).astype(
        float
    )  # noqa: E731
    names = f["stack"].to_numpy()
    column = {
        a.name: np.array([float(stack(n).software.get(a.name, a.default)) for n in names])
        for a in fields(Software)
    }
    column["flash"] = _stack_column(names, "flash")
    modern = np.array([family(c.family).modern for c in chips])
    own = np.array([family(c.family).own_flash for c in chips])
    flash = np.where(
        modern,
        _stack_column(names, "flash_modern"),
        np.where(column["flash"] == 0, own, column["flash"]),
    )
    flash = np.where(_year(f) < FLASH_SINCE, 0.0, flash)
    flash = np.where(
        has("flash_attentionv1") > 0,
        1.0,
        np.where(
            has("flash_attention2") > 0,
            2.0,
            np.where(
                has("flashattention-4") > 0, 4.0, np.where(has("flashattention-3") > 0, 3.0, flash)
            ),
        ),
    )
    plain = f.other_opts.isin(["torch", "fused"])
    flash = np.where(plain, 0.0, flash)
    within = (
        pd.to_numeric(
            f.sharding_as_printed.str.lower().str.extract(r"within (\d+)")[0], errors="coerce"
        )
        .fillna(0)
        .to_numpy(float)
    )
    graphs = np.where(
        has("cuda_graph_impl=full_iteration") > 0,
        2.0,
        np.where(
            (has("cuda_graph_impl=transformer_engine", "cuda_graph_impl=local", "cuda graphs") > 0),
            1.0,
            0.0,
        ),
    )
    graphs = np.where((graphs == 1) & (has("moe_router") > 0) & (has("'attn'") == 0), 0.5, graphs)
    graphs = np.where((has("cuda_graph_impl=local") > 0) & (has("full_iteration") > 0), 2.0, graphs)
    tp_overlap = np.where(
        has("ub_tp_comm_overlap", "tp-comm-overlap", "async tp", "+tp overlap") > 0,
        1.0,
        column["tp_overlap"],
    )
    tp_overlap = np.where(has("async tp") > 0, ASYNC_TP, tp_overlap)
    step = np.max(
        [
            np.where(f.other_opts.str.lower().str.startswith(w).to_numpy(), i, -1)
            for i, w in enumerate(ABLATION)
        ],
        axis=0,
    )
    early = lambda i: (step >= 0) & (step < i)  # noqa: E731
    flash = np.where(early(ABLATION.index("+efficient ops")), 0.0, flash)
    tp_overlap = np.where(step >= ABLATION.index("+tp overlap"), 1.0, tp_overlap)
    late = early(ABLATION.index("+dp overlap"))
    tp_overlap = np.where(has("no comm overlap") > 0, -1.0, tp_overlap)
    # DeepSpeed's pipeline engine sends and reduces between its instructions; without ZeRO the rows
    # ran Megatron's own schedule
    engine = (
        (_stack_column(names, "pipeline_engine") > 0)
        & (f.sharding != "none").to_numpy()
        & (f.pp > 1).to_numpy()
    )
    mtp = (f.mtp_layers > 0) & (f.pp > 1)
    laid_out = mtp & (
        (f.vpp > 1)
        | (has("pp_layout") > 0)
        | (_year(f) >= _stack_column(names, "mtp_layout_since"))
    )
    column.update(
        flash=flash,
        unfused_scores=(plain & f.other_opts.eq("torch")).to_numpy(float),
        optimizer_group=within,
        released=_year(f),
        fused_norm=np.where(has("eager") > 0, 0.0, column["fused_norm"]),
        graphs=graphs,
        tp_overlap=tp_overlap,
        ep_overlap=np.maximum(
            np.maximum(column["ep_overlap"], has("moe_a2a_overlap=true")),
            np.isin(schedule, DUALPIPES),
        ),
        dedup_dispatch=np.maximum(column["dedup_dispatch"], has("hybridep", "deepep")),
        dp_overlap=np.where(
            (has("no comm overlap", "use_gradient_bucket=false") > 0) | engine | late,
            0.0,
            column["dp_overlap"],
        ),
        step_engine=engine.astype(float),
        grad_all_reduce=np.maximum(column["grad_all_reduce"], engine),
        p2p_overlap=np.where(
            (has("no comm overlap") > 0) | engine | early(ABLATION.index("+pp overlap")), 0.0, 1.0
        ),
        parallel_block=np.maximum(
            has("parallel transformer block"), (step >= ABLATION.index("+ptb")).astype(float)
        ),
        norm_kernel=has("rms kernel"),
        fp8_attention=has("fp8_dot_product_attention=true"),
        even_routing=np.maximum(
            has("forced-balanced", "force balance"), 2 * has("token drop", "token-drop moe")
        ),
        chunked_loss=np.maximum(column["chunked_loss"], has("liger")),
        balanced_layout=laid_out.to_numpy(float),
    )
    return Software(**column)
