"""MaxText 0.2: maxtext.yml on top of its base.yml. Mesh axes are spent inside one slice
(`ici_`)."""

from __future__ import annotations

from ..framework import framework
from ..record import NORM_EPSILON, Gap, rotary_base
from ..render import render
from ..schedule import schedule


def gaps(launch):
    """Where MaxText's mesh and its pipeline differ."""
    p, m, out = launch.plan, launch.model, []
    if m.is_moe and p["etp"] != p["tp"]:
        out.append(Gap("etp", p["etp"], "experts share the tensor axis: etp is tp"))
    if m.is_moe and dp_axis(launch) % p["ep"]:
        out.append(Gap("ep", p["ep"], "the expert axis is taken out of the data-parallel ranks"))
    if m.is_moe and p["pp"] > 1 and m.moe_layers < m.layers:
        out.append(Gap("pp", p["pp"], "dense and expert layers are not pipelined together"))
    if p["pp"] > 1 and p["grad_accum"] % p["pp"]:
        out.append(
            Gap(
                "pp", p["pp"], f"the micro-batches ({p['grad_accum']}) are a multiple of the stages"
            )
        )
    if p["pp"] > 1 and m.layers % (p["pp"] * p["vpp"]):
        out.append(Gap("pp", p["pp"], "stages are even"))
    if (
        p["pp"] > 1
        and p["vpp"] > 1
        and p["sharding"] != "zero1"
        and m.layers // (p["pp"] * p["vpp"]) < 1
    ):
        out.append(Gap("vpp", p["vpp"], "a repeat holds a layer"))
    if p["tp"] > 1 and not p["sp"]:
        out.append(
            Gap(
                "sp",
                False,
                "the tensor axis splits the residual stream too, by width",
                True,
                "none: a little less memory",
            )
        )
    if p["sharding"] == "hsdp" and p["shard_group"] % p["cp"]:
        out.append(Gap("shard_group", p["shard_group"], "a shard group holds whole context groups"))
    if p["recompute"] == "none":
        out.append(
            Gap(
                "recompute",
                "none",
                "MaxText always recomputes something",
                (
                    "remat_policy minimal_with_context: matrix products and the attention "
                    "core's output are kept, element-wise chains run again"
                ),
                "about 1 % of a step",
            )
        )
    if p["recompute"] == "full" and p["recompute_layers"] < -(-m.layers // p["pp"]):
        out.append(Gap("recompute_layers", p["recompute_layers"], "one policy for all layers"))
    if m.mlp == "squared-relu":
        out.append(
            Gap(
                "model.mlp",
                m.mlp,
                "mlp_activations are functions of jax.nn, which has no squared ReLU",
                "relu: the same products, another function",
                "none in time or memory",
            )
        )
    if m.window and m.windowed_layers:
        out.append(
            Gap(
                "model.window",
                m.window,
                "windows belong to named decoder blocks",
                "full attention in every layer",
                "the assessment counts the window",
            )
        )
    if (
        m.norm_bias
        or m.position_rows
        or m.qkv_bias
        or (
            m.is_moe
            and (
                m.moe_layout != "dense-first"
                or (m.attention != "mla" and (m.shared_ffn_hidden or m.moe_layers < m.layers))
            )
        )
    ):
        out.append(
            Gap(
                "model",
                m.name,
                "the decoder blocks are those of named families",
                "the nearest block: llama2, mixtral or deepseek",
                "parameters differ",
            )
        )
    return out


def adjust(pins, own, outside):
    """Pins of a nearest plan: experts without tensor parallelism, or no stages, where that is what
    stands in the way."""
    if "etp" in outside or "ep" in outside and own.model.is_moe:
        pins = {k: v for k, v in pins.items() if k not in ("sp", "ep")} | {"tp": 1, "etp": 1}
    if "pp" in outside:
        pins = {k: v for k, v in pins.items() if k not in ("vpp", "schedule")} | {"pp": 1}
    if "cp_type" in outside and pins.get("cp", 1) > 1:
        pins = pins | {"cp_type": "all-gather"}
    return pins


def dp_axis(launch) -> int:
    """Ranks that the expert axis can be taken from: those that shard the batch in one group."""
    p = launch.plan
    return p["shard_group"] // p["cp"] if p["sharding"] == "hsdp" else p["dp"]


def files(launch, kit):
    """maxtext.yml."""
    values = schedule(launch, kit) | dict(
        inside=dp_axis(launch) // launch.plan["ep"],
        sharded=launch.plan["sharding"] in ("zero3", "hsdp"),
    )
    return {"maxtext.yml": render("maxtext.yml.j2", **values)}


def command(launch) -> str:
    """What every host starts."""
    return (
        'python3 -m maxtext.trainers.pre_train.train "$HERE/maxtext.yml" '
        '"base_output_directory=$RUN_DIR" "${DATA_ARGS[@]}"'
    )


def prepare(launch) -> str:
    """Shell lines before the command."""
    return (
        "DATA_ARGS=()     # made-up tokens until DATA is set\n"
        'if [ -n "${DATA:-}" ]; then DATA_ARGS=(dataset_type=grain '
        'grain_file_type=arrayrecord "grain_train_files=$DATA" '
        'tokenizer_type=huggingface "tokenizer_path=${TOKENIZER:?the tokenizer of the '
        'data}"); fi'
    )


def notes(launch) -> list[str]:
    """What no field of the plan says and the file had to choose."""
    return [
        (
            "Outside the tensor-parallel products activations are split over the tensor "
            "axis by width, not by sequence: the same bytes."
        )
        if launch.plan["tp"] > 1
        else "Activations are split by batch alone.",
        (
            f"Rotary positions have base {rotary_base(launch.model):,} (rope_max_timescale) "
            f"and norms {NORM_EPSILON:g}, in every kit: set the model's own."
        ),
        (
            "attention is flash on TPUs and cudnn_flash_te on GPUs: cuDNN's kernel through "
            "Transformer Engine."
        ),
        *(["Experts run as sparse_matmul, without dropped tokens."] if launch.model.is_moe else []),
    ]


FRAMEWORK = framework(
    "maxtext",
    files=files,
    command=command,
    gaps=gaps,
    adjust=adjust,
    prepare=prepare,
    notes=notes,
)
