"""Megatron-LM (megatron-core 0.19): command-line arguments of pretrain_gpt.py, one flag a line."""

from dataclasses import replace
from itertools import groupby

from ..render import render
from ..schedule import schedule

CP = {
    "ring": "p2p",
    "all-gather": "all_gather",
    "ulysses": "a2a",
}
BIASES = ("norm_bias", "qkv_bias", "out_bias", "mlp_bias", "head_bias")
UNFLAGGED = (
    "relative_positions",
    "sinks",
    "embedding_norm",
    "head_bias",
    "expert_bias",
    "router_bias",
    "shared_gate",
    "parallel_block",
)
ZERO = {
    "zero2": "optim_grads",
    "zero3": "optim_grads_params",
}


def lacks(
    launch,
    m,
    *,
    tp,
    pp,
    vpp,
    cp,
    etp,
    sp,
    sharding,
    grad_accum,
    **plan,
) -> dict:
    """What of the model and plan has no flag."""
    old = not launch.kin.transformer_engine
    fully = sharding in ZERO
    muon = launch.phase.optimizer == "muon"
    return {
        "near": fully and len(launch.tiers) > 1,
        "spread": launch.sync and (fully or muon and sharding == "zero1"),
        "muon_shards": muon and fully,
        "muon_half": muon and plan["precision"] == "fp16",
        "muon_offload": muon and plan["offload"] != "none",
        "norms": old and sp,
        "engine": old and (m.is_moe or m.attention == "mla" or cp > 1),
        "chunks": fully and pp > 1 and vpp > 1,
        "expert_tensors": fully and etp != 1 and m.is_moe,
        "rounds": vpp > 1 and (grad_accum < pp or grad_accum % pp),
        "experts": not sp and tp > 1 and m.is_moe,
        "sends": plan["precision"] == "fp32" and pp > 1,
        "blocks": builds(m) != m,
        "activations": "mlp_act" in plan["recompute_modules"] and not m.is_moe,
        "delayed": plan["precision"] == "fp8"
        and bool({"norm", "mlp_act"} & {*plan["recompute_modules"]}),
    }


def builds(m):
    """The model that the flags describe: biases everywhere or on q, k and v alone, two norms a
    layer, MLP after attention."""
    biased = bool(m.mlp_bias or m.out_bias)
    return replace(
        m,
        qkv_bias=biased or m.qkv_bias,
        out_bias=biased,
        mlp_bias=biased,
        qk_norm="head" if m.qk_norm else "",
        norms_per_layer=2,
        **dict.fromkeys(UNFLAGGED, False),
    )


def adjust(
    pins,
    own,
    outside,
):
    """Pins of a nearest plan: no interleaving where that is what Megatron cannot run."""
    if "vpp" in outside or "schedule" in outside:
        pins = {
            **pins,
            "vpp": 1,
            "schedule": "1f1b",
        }
    return (
        {
            **pins,
            "sp": not own.plan["sp"],
        }
        if "sp" in outside and pins.get("tp", 1) > 1
        else pins
    )


def layout(launch) -> str | None:
    """`--pipeline-model-parallel-layout` where stages are uneven, None where Megatron splits by
    itself."""
    parts = launch.runs
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


def values(launch, kit) -> dict:
    """What the templates of Megatron's kits are filled from, beside the launch plan."""
    moe = launch.model.is_moe
    return schedule(launch, kit) | {
        "fsdp_strategy": ZERO,
        "cp_type": CP[launch.plan["cp_type"]] if launch.plan["cp"] > 1 else None,
        "layout": layout(launch),
        "recompute": recompute(launch),
        "modules": [
            launch.framework.modules[m] for m in launch.plan["recompute_modules"] if m != "layers"
        ],
        "moe_layers": moe_layers(launch.model) if moe else [],
        "layer_pattern": layer_pattern(launch.model) if moe else "",
    }


def files(launch, kit) -> dict[str, str]:
    """megatron.args."""
    return {"megatron.args": render("megatron.args.j2", **values(launch, kit))}
