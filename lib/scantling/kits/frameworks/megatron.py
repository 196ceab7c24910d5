"""Megatron-LM (megatron-core 0.19): command-line arguments of pretrain_gpt.py, one flag a line."""

from __future__ import annotations

from itertools import groupby

from ...base.units import DAY_S
from ...catalogue.families import family
from ..env import Var
from ..framework import framework
from ..record import NORM_EPSILON, Gap, rotary_base
from ..render import render
from ..schedule import schedule

FP8 = {"fp8": "delayed", "fp8-current": "tensorwise", "fp8-block": "blockwise", "mxfp8": "mxfp8"}
CP = {"ring": "p2p", "all-gather": "all_gather", "ulysses": "a2a"}
ZERO = {"zero2": "optim_grads", "zero3": "optim_grads_params"}


def gaps(launch):
    """What of the model and plan has no flag."""
    p, m, out = launch.plan, launch.model, []
    if not launch.transformer_engine and p["sp"]:
        out.append(
            Gap(
                "sp",
                True,
                (
                    "without Transformer Engine, which begins with Ampere, norms are "
                    "torch's and see the whole sequence"
                ),
            )
        )
    if not launch.transformer_engine and (m.is_moe or m.attention == "mla" or p["cp"] > 1):
        out.append(
            Gap(
                "cluster.accelerator",
                launch.cluster.accelerator.name,
                (
                    "grouped experts, latent attention and context parallelism need "
                    "Transformer Engine, which begins with Ampere"
                ),
            )
        )
    if p["sharding"] in ZERO and p["pp"] > 1 and p["vpp"] > 1:
        out.append(Gap("sharding", p["sharding"], "Megatron-FSDP does not run interleaved chunks"))
    if p["sharding"] in ZERO and p["etp"] != 1 and m.is_moe:
        out.append(Gap("etp", p["etp"], "not with Megatron-FSDP"))
    if p["vpp"] > 1 and (p["grad_accum"] < p["pp"] or 0 < p["grad_accum"] % p["pp"]):
        out.append(
            Gap(
                "vpp",
                p["vpp"],
                (
                    f"Megatron's interleaved schedule wants micro-batches in whole groups of "
                    f"pp: {p['grad_accum']} on {p['pp']} stages"
                ),
            )
        )
    if not p["sp"] and p["tp"] > 1 and m.is_moe:
        out.append(
            Gap(
                "sp",
                False,
                "Megatron demands sequence parallelism for experts under tensor parallelism",
            )
        )
    if launch.phase.precision == "fp32" and p["pp"] > 1:
        out.append(
            Gap(
                "precision",
                "fp32",
                "pipeline sends take 16-bit types by default",
                "--attention-softmax-in-fp32 and fp32 parameters are kept",
            )
        )
    if m.relative_positions or m.sinks or m.embedding_norm:
        out.append(
            Gap(
                "model",
                m.name,
                (
                    "positions relative to the query, attention sinks or a norm after the "
                    "embedding have no flag"
                ),
                "left out: the parameter count differs",
                "none counted",
            )
        )
    return out


def adjust(pins, own, outside):
    """Pins of a nearest plan: no interleaving where that is what Megatron cannot run."""
    if "vpp" in outside or "schedule" in outside:
        pins = {**pins, "vpp": 1, "schedule": "1f1b"}
    return {**pins, "sp": not own.plan["sp"]} if "sp" in outside and pins.get("tp", 1) > 1 else pins


def chunks(launch) -> list[int]:
    """Layers of every virtual stage, in the order in which a token meets them."""
    p = launch.plan
    n, layers = p["pp"] * p["vpp"], launch.model.layers
    if p["vpp"] == 1:
        return list(launch.stages)
    if layers % n == 0:
        return [layers // n] * n
    if (layers + 2) % n == 0 and (layers + 2) // n > 1:
        each = (layers + 2) // n
        return [each - 1, *[each] * (n - 2), each - 1]
    small, more = divmod(layers, n)
    return [small + (1 if 0 < i <= more else 0) for i in range(n)]


def layout(launch) -> str | None:
    """`--pipeline-model-parallel-layout` where stages are uneven, None where Megatron splits by
    itself."""
    parts = chunks(launch)
    if len(set(parts)) == 1 and not (launch.model.mtp_layers and launch.plan["pp"] > 1):
        return None
    text = ["t" * n for n in parts]
    text[0] = "E" + text[0]
    text[-1] += "m" * launch.model.mtp_layers + "L"
    return "|".join(text)


def moe_layers(model) -> list[int]:
    """1 for each layer with experts, 0 for a dense one."""
    dense = model.layers - model.moe_layers
    if model.moe_layout == "dense-first" or not dense:
        return [0] * dense + [1] * model.moe_layers
    every = model.layers // model.moe_layers
    return [int(i % every == every - 1) for i in range(model.layers)]


def layer_pattern(model) -> str:
    """The same as Megatron reads it: runs of equal layers, ([0]*3+[1]*58)."""
    runs = [f"[{kind}]*{len(list(run))}" for kind, run in groupby(moe_layers(model))]
    return f"({'+'.join(runs)})"


def recompute(launch) -> tuple[str, int]:
    """(method, layers) of full recompute: every layer of a virtual stage, or the first few."""
    p = launch.plan
    each = -(-launch.model.layers // (p["pp"] * p["vpp"]))
    some = -(-p["recompute_layers"] // p["vpp"])
    return ("uniform", 1) if some >= each else ("block", some)


def days_steps(launch) -> int:
    """Checkpoints between those that stay for good: about a day."""
    return max(1, round(DAY_S / (launch.save_steps * launch.step_s)))


def notes(launch) -> list[str]:
    """What no field of the plan says and the arguments had to choose."""
    m = launch.model
    out = [
        (
            f"Rotary positions have base {rotary_base(m):,} and norms {NORM_EPSILON:g}, in "
            f"every kit: set the model's own."
        ),
        "Garbage is collected by hand every 100 steps, so that no rank pauses alone.",
    ]
    if m.is_moe and m.router_buffers:
        out.append(
            "The router scores by sigmoid and balances by a bias on each expert, as the "
            "model's files have it; limits by group and the scale of the weights are "
            "not in the design "
            "(DeepSeek-V3 itself: --moe-router-num-groups 8 --moe-router-group-topk 4 "
            "--moe-router-topk-scaling-factor 2.5)."
        )
    elif m.is_moe:
        out.append("The router is softmax with an auxiliary loss of 1e-3: set the model's own.")
    if m.is_moe and launch.plan["ep"] > launch.cluster.scale_up_domain:
        out.append(
            f"Experts lie over {launch.plan['ep']} devices, beyond the "
            f"{launch.cluster.scale_up_domain} that fast links join: where DeepEP is "
            f"installed, --moe-token-dispatcher-type flex --moe-enable-deepep "
            "sends each token once a node; measure it against alltoall in the first hour."
        )
    if launch.phase.precision in FP8:
        out.append(
            "Attention, router, norms and the output head stay in bf16; "
            "--first-last-layers-bf16 keeps one layer at each end so too."
        )
    return out


def environment(launch):
    """Megatron's own demand on the launch order of kernels."""
    p = launch.plan
    ordered = family(launch.cluster.accelerator.family).ordered_launch
    if not ordered or p["sharding"] in ZERO:
        return ()
    if p["tp"] > 1 or p["cp"] > 1:
        return (
            Var(
                "CUDA_DEVICE_MAX_CONNECTIONS",
                "1",
                (
                    "Megatron demands it below Blackwell when tp or cp is above one: "
                    "collectives are issued before the products they hide under"
                ),
            ),
        )
    return ()


def values(launch, kit) -> dict:
    """What the templates of Megatron's kits are filled from, beside the launch plan."""
    moe = launch.model.is_moe
    return schedule(launch, kit) | dict(
        fsdp_strategy=ZERO,
        cp_type=CP[launch.plan["cp_type"]] if launch.plan["cp"] > 1 else None,
        layout=layout(launch),
        recompute=recompute(launch),
        fp8_recipe=FP8.get(launch.phase.precision),
        moe_layers=moe_layers(launch.model) if moe else [],
        layer_pattern=layer_pattern(launch.model) if moe else "",
        days_steps=days_steps(launch),
    )


def files(launch, kit) -> dict[str, str]:
    """megatron.args."""
    return {"megatron.args": render("megatron.args.j2", **values(launch, kit))}


def command(launch) -> str:
    """What torchrun starts."""
    return (
        '"${MEGATRON_LM:?the folder of a Megatron-LM checkout}/pretrain_gpt.py" '
        '"${ARGS[@]}" --save "$RUN_DIR/checkpoints" --load "$RUN_DIR/checkpoints" '
        '--tensorboard-dir "$RUN_DIR/tensorboard" "${DATA_ARGS[@]}"'
    )


def prepare(launch) -> str:
    """Shell lines before the command."""
    return (
        'mapfile -d "" -t ARGS < <(xargs printf \'%s\\0\' < "$HERE/megatron.args")\n'
        "DATA_ARGS=(--mock-data)     # made-up tokens until DATA is set\n"
        'if [ -f "${DATA:-}" ]; then DATA_ARGS=(--data-args-path "$DATA"); elif [ -n '
        '"${DATA:-}" ]; then DATA_ARGS=(--data-path "$DATA"); fi\n'
        'if [ -n "${DATA:-}" ]; then DATA_ARGS+=(--split "99,1,0" --data-cache-path '
        '"$RUN_DIR/data-cache"); fi\n'
        'if [ -n "${TOKENIZER:-}" ]; then DATA_ARGS+=(--tokenizer-type '
        'HuggingFaceTokenizer --tokenizer-model "$TOKENIZER"); fi'
    )


FRAMEWORK = framework(
    "megatron",
    files=files,
    command=command,
    gaps=gaps,
    adjust=adjust,
    prepare=prepare,
    notes=notes,
    environment=environment,
)
