"""Megatron-LM (megatron-core 0.19): command-line arguments of pretrain_gpt.py, one flag a line; of
pretrain_hybrid.py where the layers of a pattern are not all a mixer before a feed-forward."""

from dataclasses import replace

from scantling.catalogue.models.patterns import counted, layers_of

from ..render import render
from ..schedule import schedule

CP = {"ring": "p2p", "all-gather": "all_gather", "ulysses": "a2a"}
BIASES = ("norm_bias", "qkv_bias", "out_bias", "mlp_bias", "head_bias")
UNFLAGGED = (
    "relative_positions",
    "embedding_norm",
    "head_bias",
    "expert_bias",
    "router_bias",
    "parallel_block",
    "shared_kv",
    "latent_norm",
    "zero_experts",
    "router_scales",
    "hyper_connections",
    "proj_bias",
    "chunks",
)
SCAN = {  # what its Mamba-2 mixer has no flags for
    "conv": 4,
    "conv_bias": True,
    "gated_norm": True,
    "chunk": 128,
}
ZERO = {"zero2": "optim_grads", "zero3": "optim_grads_params"}


def lacks(launch, m, *, tp, pp, vpp, cp, etp, sp, sharding, grad_accum, **plan) -> dict:
    """What of the model and plan has no flag."""
    old = not launch.kin.transformer_engine
    fully = sharding in ZERO
    muon = launch.phase.optimizer == "muon"
    return {
        "near": fully and len(launch.tiers) > 1,
        "spread": launch.sync and (fully or muon and sharding == "zero1"),
        "muon_shards": muon and fully,
        "muon_half": muon and plan["precision"] == "fp16",
        "aware": sharding == "none"
        and plan["dp"] * cp > 1
        and (plan["offload"] != "none" or launch.phase.optimizer == "adamw-bf16"),
        "muon_offload": muon and plan["offload"] != "none",
        "norms": old and sp,
        "engine": old and bool(m.is_moe or m.attention == "mla" or cp > 1 or m.pattern),
        "whole_stages": vpp > 1 and stacked(layers_of(m.pattern)),
        "activation": m.mlp in ("geglu", "relu"),
        "chunks": fully and pp > 1 and vpp > 1,
        "expert_tensors": fully and etp != 1 and m.is_moe,
        "rounds": vpp > 1 and (grad_accum < pp or grad_accum % pp),
        "repeats": plan["recompute_layers"] % vpp and plan["recompute_layers"] < -(-m.layers // pp),
        "experts": not sp and tp > 1 and m.is_moe,
        "gathers": m.index_heads and cp > 1 and plan["cp_type"] != "all-gather",
        "sends": plan["precision"] == "fp32" and pp > 1,
        "blocks": launch.framework.builds(m) != m,
        "activations": "mlp_act" in plan["recompute_modules"] and not m.is_moe,
        "delayed": plan["precision"] == "fp8"
        and bool({"norm", "mlp_act"} & {*plan["recompute_modules"]}),
    }


def builds(m):
    """The model that the flags describe: biases everywhere or on q, k and v alone, two norms a
    layer (one a block in patterns), MLP after attention."""
    biased = bool(m.mlp_bias or m.out_bias)
    layers = layers_of(m.pattern)
    return replace(
        m,
        qkv_bias=biased or m.qkv_bias,
        out_bias=biased,
        mlp_bias=biased,
        qk_norm="head" if m.qk_norm else "",
        attention_gate="width" if m.attention_gate else "",
        norms_per_layer=len(layers[0]) if layers else 2,
        **dict.fromkeys(UNFLAGGED, False),
        **(SCAN if scans(layers) else {}),
    )


def scans(layers) -> bool:
    """Whether Mamba-2 is among the blocks of layers."""
    return any("mamba2" in layer for layer in layers)


def stacked(layers) -> bool:
    """Whether layers make Megatron's hybrid model, a letter a block, and not its GPT with gated
    delta nets in place of some attention."""
    return scans(layers) or any(len(layer) != 2 for layer in layers)


def adjust(pins, own, outside):
    """Pins of a nearest plan: no interleaving where that is what Megatron cannot run."""
    whole = {"vpp": 1, "schedule": "1f1b"} if outside & {"vpp", "schedule"} else {}
    turned = {"sp": not own.plan["sp"]} if "sp" in outside and pins.get("tp", 1) > 1 else {}
    gathered = {"cp_type": "all-gather"} if "cp_type" in outside and "cp" in pins else {}
    return pins | whole | turned | gathered


def moe_layers(model) -> list:
    """1 for each layer with experts, 0 for a dense one."""
    if model.pattern:
        return [int("moe" in counted(layer)) for layer in layers_of(model.pattern)]
    dense = model.layers - model.moe_layers
    if model.moe_layout == "dense-first" or not dense:
        return [0] * dense + [1] * model.moe_layers
    every = model.layers // model.moe_layers
    return [int(i % every == every - 1) for i in range(model.layers)]


def recompute(launch) -> tuple:
    """(method, layers) of full recompute: every layer of a virtual stage, or the first few."""
    p = launch.plan
    m = launch.model
    layers = layers_of(m.pattern)
    blocks = len(layers[0]) if stacked(layers) else 1
    each = -(-m.layers // (p["pp"] * p["vpp"]))
    some = -(-p["recompute_layers"] // p["vpp"])
    if some < each:
        return "block", some * blocks
    return "uniform", 1 if m.mtp_layers else blocks


def values(launch, kit) -> dict:
    """What the templates of Megatron's kits are filled from, beside the launch plan."""
    m = launch.model
    layers = layers_of(m.pattern)
    return schedule(launch, kit) | {
        "fsdp_strategy": ZERO,
        "cp_type": CP[launch.plan["cp_type"]] if launch.plan["cp"] > 1 else None,
        "uneven": m.mtp_layers or len({*launch.runs}) > 1,
        "recompute": recompute(launch),
        "modules": [
            launch.framework.modules[m] for m in launch.plan["recompute_modules"] if m != "layers"
        ],
        "moe_layers": moe_layers(m) if m.is_moe else [],
        "layers": layers,
        "linear": [int("gdn" in layer) for layer in layers],
        "further": layers_of(m.mtp_pattern),
        "stacked": stacked(layers),
        "scans": scans(layers),
    }


def files(launch, kit) -> dict:
    """megatron.args."""
    return {"megatron.args": render("megatron.args.j2", **values(launch, kit))}
