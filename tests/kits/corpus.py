"""Designs that cover every axis of a plan, by name: what the judges are shown."""

from __future__ import annotations

from contextlib import suppress

from random_designs import drawn
from scantling import Design, DesignError, assess
from scantling_kits import FRAMEWORKS, Inexpressible, kits

DENSE = dict(
    layers=32,
    hidden=4096,
    ffn_hidden=14336,
    heads=32,
    kv_heads=8,
    head_dim=128,
    vocab=128256,
    mlp="swiglu",
    attention="gqa",
)
MHA = dict(
    layers=32,
    hidden=4096,
    ffn_hidden=11008,
    heads=32,
    kv_heads=32,
    head_dim=128,
    vocab=32000,
    mlp="swiglu",
    attention="mha",
)
MOE = DENSE | dict(layers=16, experts=16, top_k=2, expert_ffn_hidden=4096, moe_layers=16)
SMALL = dict(
    layers=16,
    hidden=2048,
    ffn_hidden=8192,
    heads=32,
    kv_heads=8,
    head_dim=64,
    vocab=32000,
    mlp="swiglu",
    attention="gqa",
)
MIXED = MOE | dict(shared_ffn_hidden=4096, moe_layers=14)
MLA = dict(
    layers=27,
    hidden=2048,
    ffn_hidden=10944,
    heads=16,
    kv_heads=16,
    head_dim=192,
    vocab=102400,
    mlp="swiglu",
    attention="mla",
    experts=64,
    top_k=6,
    expert_ffn_hidden=1408,
    shared_ffn_hidden=2816,
    moe_layers=26,
    kv_lora=512,
    qk_nope=128,
    qk_rope=64,
    v_head_dim=128,
)

MAMBA = dict(
    like="nemotron-h-8b",
    layers=24,
    hidden=2048,
    ffn_hidden=8192,
    heads=16,
    kv_heads=2,
    ssm_heads=64,
    pattern="4*(mamba2,mlp,mamba2,attn,mlp,mamba2)",
)


def spec(model=DENSE, devices=64, job=None, plan=None, cluster=None, **more):
    return {
        "scantling": 1,
        "model": model,
        "cluster": {"accelerator": "h100-sxm", "devices": devices, "devices_per_node": 8}
        | (cluster or {}),
        "job": {"tokens": 1e11, "seq_len": 4096, "global_batch": 256} | (job or {}),
        "plan": plan or {},
    } | more


def sites(kind):
    """Two sites that keep in step so."""
    return dict(cluster=dict(sites=2, site_gbytes_per_s=5000), job=dict(sync={"kind": kind}))


Z1 = dict(sharding="zero1")
PLANS = {
    "searched": spec(),
    "dense-tp": spec(plan=dict(tp=4, pp=1, **Z1)),
    "dense-narrow-gradients": spec(plan=dict(tp=4, pp=1, gradients="bf16", **Z1)),
    "zero3-narrow-gradients": spec(plan=dict(tp=1, pp=1, sharding="zero3", gradients="bf16")),
    "dense-tp-without-sp": spec(plan=dict(tp=4, pp=1, sp=False, **Z1)),
    "dense-pp": spec(plan=dict(tp=2, pp=4, vpp=1, **Z1)),
    "dense-interleaved": spec(
        plan=dict(tp=2, pp=4, vpp=4, micro_batch=1, schedule="interleaved", **Z1)
    ),
    "uneven-pp": spec(plan=dict(tp=2, pp=5, vpp=1, **Z1), devices=80, job=dict(global_batch=240)),
    "uneven-pp-3": spec(plan=dict(tp=4, pp=3, vpp=1, **Z1), devices=48, job=dict(global_batch=96)),
    "interleaved-short-ends": spec(
        model=DENSE | dict(layers=30),
        plan=dict(tp=2, pp=4, vpp=2, micro_batch=1, schedule="interleaved", **Z1),
    ),
    "cp-ring": spec(
        plan=dict(tp=4, cp=2, pp=1, cp_type="ring", **Z1), job=dict(seq_len=32768, global_batch=32)
    ),
    "cp-gather": spec(
        plan=dict(tp=4, cp=4, pp=1, cp_type="all-gather", **Z1),
        job=dict(seq_len=65536, global_batch=16),
    ),
    "cp-ulysses": spec(
        plan=dict(tp=2, cp=4, pp=1, cp_type="ulysses", **Z1),
        job=dict(seq_len=65536, global_batch=16),
    ),
    "cp-zero3": spec(
        plan=dict(tp=1, cp=2, pp=1, sharding="zero3"), job=dict(seq_len=16384, global_batch=64)
    ),
    "no-sharding": spec(
        model=DENSE | dict(layers=4, vocab=32000), plan=dict(tp=1, pp=1, sharding="none"), devices=8
    ),
    "zero2": spec(
        plan=dict(tp=1, pp=1, sharding="zero2", micro_batch=2), job=dict(global_batch=128)
    ),
    "zero3": spec(plan=dict(tp=1, pp=1, sharding="zero3")),
    "zero3-uncompiled": spec(plan=dict(tp=1, pp=1, sharding="zero3", compile=False)),
    "zero3-accumulated": spec(plan=dict(tp=1, pp=1, sharding="zero3", micro_batch=1)),
    "hsdp": spec(plan=dict(tp=1, pp=1, sharding="hsdp", shard_group=16)),
    "zero3-full": spec(plan=dict(tp=1, pp=1, sharding="zero3", recompute="full", micro_batch=4)),
    "selective": spec(plan=dict(tp=2, pp=1, recompute="selective", **Z1)),
    "selective-of-operations": spec(
        plan=dict(tp=1, pp=1, sharding="zero3", recompute="selective"), stack="torchtitan"
    ),
    "full": spec(plan=dict(tp=2, pp=2, vpp=1, recompute="full", **Z1)),
    "full-of-some": spec(plan=dict(tp=4, pp=2, vpp=1, recompute="full", recompute_layers=5, **Z1)),
    "mha": spec(model=MHA, plan=dict(tp=2, pp=2, vpp=1, **Z1)),
    "tied": spec(model=DENSE | dict(tied_embeddings=True), plan=dict(tp=2, pp=1, **Z1)),
    "gpt": spec(
        model=dict(
            layers=24,
            hidden=4096,
            ffn_hidden=16384,
            heads=32,
            kv_heads=32,
            head_dim=128,
            vocab=51200,
            mlp="gelu",
            attention="mha",
        ),
        plan=dict(tp=4, pp=2, vpp=1, **Z1),
    ),
    "gpt-3": spec(model="gpt-3-6.7b", plan=dict(tp=4, pp=1, **Z1), job=dict(seq_len=2048)),
    "nemotron": spec(model="nemotron-4-15b", plan=dict(tp=8, pp=1, **Z1)),
    "mixtral": spec(model="mixtral-8x7b", plan=dict(tp=1, pp=4, vpp=1, ep=8, etp=1, **Z1)),
    "squared-relu": spec(model=DENSE | dict(mlp="squared-relu"), plan=dict(tp=8, pp=1, **Z1)),
    "moe": spec(model=MOE, plan=dict(tp=1, pp=1, ep=8, etp=1, **Z1)),
    "moe-tp-ep": spec(model=MOE, plan=dict(tp=2, pp=2, vpp=1, ep=8, etp=1, **Z1)),
    "moe-etp": spec(model=MOE, plan=dict(tp=2, pp=1, ep=4, etp=2, **Z1)),
    "moe-interleaved": spec(
        model=MOE,
        plan=dict(tp=2, pp=4, vpp=2, ep=4, etp=1, micro_batch=1, schedule="interleaved", **Z1),
    ),
    "moe-shared": spec(model=MIXED, plan=dict(tp=1, pp=1, ep=8, etp=1, **Z1)),
    "moe-zero3": spec(model=MOE, plan=dict(tp=1, pp=1, ep=8, etp=1, sharding="zero3")),
    "moe-zero3-once": spec(
        model=MOE, plan=dict(tp=1, pp=1, ep=8, etp=1, sharding="zero3", moe_dispatcher="deepep")
    ),
    "moe-nodes": spec(
        model=MLA | dict(layers=13, moe_layers=12),
        plan=dict(tp=1, pp=1, ep=32, etp=1, **Z1),
        job=dict(node_limit=2, routing="forced"),
    ),
    "moe-capacity": spec(
        model=MIXED,
        plan=dict(tp=1, pp=1, ep=8, etp=1, moe_dispatcher="alltoall", **Z1),
        job=dict(capacity_factor=1.25),
    ),
    "moe-gathered": spec(
        model=MOE, plan=dict(tp=1, pp=1, ep=8, etp=1, moe_dispatcher="allgather", **Z1)
    ),
    "mla": spec(model=MLA, plan=dict(tp=1, pp=1, ep=8, etp=1, **Z1)),
    "mla-pp": spec(
        model=MLA,
        plan=dict(tp=1, pp=3, vpp=1, ep=8, etp=1, **Z1),
        devices=48,
        job=dict(global_batch=96),
    ),
    "mtp": spec(model=MLA | dict(mtp_layers=1), plan=dict(tp=1, pp=4, vpp=1, ep=8, etp=1, **Z1)),
    "fp8": spec(plan=dict(tp=2, pp=1, **Z1), job=dict(precision="fp8")),
    "fp8-block": spec(plan=dict(tp=2, pp=1, **Z1), job=dict(precision="fp8-block")),
    "fp8-row": spec(plan=dict(tp=2, pp=1, **Z1), job=dict(precision="fp8-row")),
    "mxfp8": spec(
        plan=dict(tp=2, pp=1, **Z1), job=dict(precision="mxfp8"), cluster=dict(accelerator="b200")
    ),
    "fp16": spec(
        plan=dict(tp=2, pp=1, **Z1),
        job=dict(precision="fp16"),
        cluster=dict(accelerator="a100-80-sxm"),
    ),
    "odd-devices": spec(
        plan=dict(tp=1, pp=1, sharding="zero3"), devices=12, job=dict(global_batch=96)
    ),
    "thirteen-devices": spec(
        plan=dict(tp=1, pp=1, sharding="zero3"), devices=13, job=dict(global_batch=104)
    ),
    "dualpipe": spec(plan=dict(tp=2, pp=4, schedule="dualpipe", micro_batch=1, **Z1)),
    "offload": spec(plan=dict(tp=2, pp=1, offload="optimizer", **Z1)),
    "bf16-moments": spec(plan=dict(tp=2, pp=1, **Z1), job=dict(optimizer="adamw-bf16")),
    "near-copies": spec(
        plan=dict(tp=4, pp=1, **Z1),
        checkpoint={"tiers": {"l0": {"every_s": 60}, "l1": {}, "l2": {"every_s": 600}}},
    ),
    "hybrid": spec(model=MAMBA, plan=dict(tp=2, pp=4, vpp=1, **Z1)),
    "hybrid-searched": spec(model=MAMBA | dict(chunk=256)),
    "hybrid-moe": spec(model="nemotron-3-nano", plan=dict(tp=1, pp=2, vpp=1, ep=8, etp=1, **Z1)),
    "hybrid-full": spec(
        model="granite-4.0-h-tiny",
        plan=dict(tp=1, pp=2, vpp=1, ep=8, etp=1, recompute="full", recompute_layers=5, **Z1),
    ),
    "hybrid-latent": spec(
        model="nemotron-3-super",
        plan=dict(tp=4, pp=4, vpp=1, ep=16, etp=1, **Z1),
        devices=256,
        job=dict(global_batch=512),
    ),
    "linear": spec(model="qwen3-next", plan=dict(tp=1, pp=4, vpp=1, ep=8, etp=1, **Z1)),
    "linear-mtp": spec(model="qwen3.5-35b-a3b", plan=dict(tp=2, pp=1, ep=8, etp=1, **Z1)),
    "moe-beside": spec(
        model=MOE, plan=dict(tp=1, pp=1, ep=8, etp=1, moe_overlap=True, cuda_graphs="layer", **Z1)
    ),
    "moe-beside-interleaved": spec(
        model=MOE,
        plan=dict(
            tp=1,
            pp=4,
            vpp=2,
            ep=4,
            etp=1,
            micro_batch=1,
            schedule="interleaved",
            layer_split="even",
            moe_overlap=True,
            **Z1,
        ),
    ),
    "moe-two-matrices": spec(
        model=MOE | dict(mlp="gelu"), plan=dict(tp=1, pp=1, ep=8, etp=1, sharding="zero3")
    ),
    "moe-one-tray": spec(
        model=MOE,
        cluster=dict(accelerator="gb200-nvl72", devices=4),
        plan=dict(tp=1, pp=1, ep=4, etp=1, **Z1),
    ),
    "moe-captured": spec(
        model=MOE,
        cluster=dict(accelerator="gb200-nvl72", devices_per_node=4, scale_up_domain=64),
        plan=dict(tp=1, pp=1, ep=8, etp=1, **Z1),
        job=dict(precision="mxfp8", effort="tuned", routing="forced"),
        stack={"id": "megatron-core", "release": "26.08"},
    ),
    "dense-captured": spec(
        plan=dict(tp=2, pp=1, cuda_graphs="full", tp_overlap="userbuffer", **Z1)
    ),
    "user-buffers-by-name": spec(
        model="llama-3-70b",
        plan=dict(
            tp=4, pp=4, cp=2, cp_type="ring", vpp=5, micro_batch=1, tp_overlap="userbuffer", **Z1
        ),
        job=dict(seq_len=8192),
    ),
    "dense-captured-layers": spec(plan=dict(tp=2, pp=2, vpp=1, cuda_graphs="layer", **Z1)),
    "tpu-int8": spec(
        model=DENSE | dict(vocab=32000),
        plan=dict(tp=1, pp=1, sharding="zero3"),
        cluster=dict(accelerator="tpu-v5p", devices_per_node=4),
        job=dict(precision="int8"),
    ),
    "parameters-on-hosts": spec(
        model=SMALL, plan=dict(tp=1, pp=1, sharding="zero1", offload="optimizer+params")
    ),
    "alone-on-hosts": spec(
        model=SMALL,
        cluster=dict(devices=1),
        plan=dict(tp=1, pp=1, offload="optimizer"),
        job=dict(global_batch=8),
    ),
    "muon": spec(plan=dict(tp=2, pp=1, **Z1), job=dict(optimizer="muon")),
    "few-key-heads": spec(model=DENSE | dict(kv_heads=4), plan=dict(tp=8, pp=1, **Z1)),
    "odd-sequence": spec(plan=dict(tp=8, pp=1, micro_batch=1, **Z1), job=dict(seq_len=1004)),
    "lion": spec(plan=dict(tp=2, pp=1, **Z1), job=dict(optimizer="lion")),
    "sites": spec(plan=dict(tp=2, pp=2, vpp=1, **Z1), **sites("synchronous")),
    "sites-zero3": spec(plan=dict(tp=1, pp=1, sharding="zero3"), **sites("synchronous")),
    "sites-moe": spec(model=MOE, plan=dict(tp=1, pp=1, ep=8, etp=1, **Z1), **sites("synchronous")),
    "sites-local": spec(plan=dict(tp=1, pp=1, sharding="zero3"), **sites("local-steps")),
}


def replicas():
    """The same jobs with models that one device can hold: what DDP can be shown."""
    out = {}
    for name, data in PLANS.items():
        model = SMALL if name != "tied" else SMALL | dict(tied_embeddings=True)
        keep = {
            k: v for k, v in data["plan"].items() if k in ("micro_batch", "recompute", "compile")
        }
        precision = data["job"].get("precision")
        job = {
            k: v
            for k, v in data["job"].items()
            if k != "precision" or precision in ("fp16", "fp32")
        }
        out[name] = data | dict(
            model=model,
            plan=keep | dict(sharding="none", tp=1, pp=1, cp=1),
            job=job | dict(seq_len=min(job["seq_len"], 8192)),
        )
    return out


def assessed(plans=None):
    """{name: assessment} of the corpus."""
    return {
        name: assess(Design.from_data(data | {"name": name}))
        for name, data in (plans or PLANS).items()
    }


CHIPS = ("h100-sxm", "b200", "a100-80-sxm", "mi300x")
# software that a design names, or none: what `selective` repeats, and how a step runs, go by it
SOFTWARE = ("", "megatron-core", "torchtitan", "deepspeed", "maxtext", "pytorch-fsdp")
MOST_RANKS = 4096  # the judges make the process groups of all of them


def at_random(first: int, last: int):
    """{name: assessment} of the designs that fit among those drawn at random, first to last: on
    devices that the frameworks run on, each software in its turn."""
    out = {}
    for number in range(first, last):
        data = drawn(number)
        data.pop("stack", None)
        if named := SOFTWARE[number % len(SOFTWARE)]:
            data["stack"] = named
        data["job"].pop("precision", None)
        data["cluster"] |= dict(
            accelerator=CHIPS[number % len(CHIPS)],
            devices=min(data["cluster"]["devices"], MOST_RANKS),
        )
        with suppress(DesignError):
            one = assess(Design.from_data(data | {"name": f"random-{number}"}))
            out |= {one.design.name: one} if one.fits else {}
    return out


def emitted(assessments, to, on="torchrun"):
    """({name: files}, {name: why not}) of one framework over the corpus."""
    assert to in FRAMEWORKS
    found, refused = {}, {}
    for name, a in assessments.items():
        try:
            found[name] = kits(a, to, on)
        except Inexpressible as e:
            refused[name] = str(e)
    return found, refused
