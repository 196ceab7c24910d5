"""A smoke test of a kit: the same framework, sharding, recompute and formats for a model of a few
layers on one machine, with or without accelerators."""

from typing import Any

from scantling.catalogue.families import family
from scantling.catalogue.models.shape import Model
from scantling.design.design import Design
from scantling.verdict.assess import assess
from scantling.verdict.assessment import Assessment

from .launch_plan import Framework
from .render import render

LAYERS = 4
RANKS = 2
STEPS, SAVE_STEPS = 20, 10
SEQUENCE = 64  # tokens
BATCH = 16  # sequences
# sizes in place of the model's own, where it has the part
SMALL = {
    "hidden": 128,
    "ffn_hidden": 384,
    "heads": 8,
    "head_dim": 16,
    "vocab": 1024,
    "expert_ffn_hidden": 64,
    "shared_ffn_hidden": 64,
    "q_lora": 64,
    "kv_lora": 32,
    "qk_nope": 16,
    "qk_rope": 16,
    "v_head_dim": 16,
    "position_rows": 64,
}
EXPERTS, TOP_K = 8, 2
KEPT = ("mlp", "attention", "tied_embeddings", "norm_bias", "qkv_bias", "out_bias", "mlp_bias")


def small(m: Model) -> dict[str, Any]:
    """A model of the same parts and a few layers, as a design file has it; layers of a pattern
    become those of a plain model."""
    out: dict[str, Any] = {"layers": LAYERS, "mlp": m.mlp, "tied_embeddings": m.tied_embeddings}
    values = {name: value for name, value in SMALL.items() if size_of(m, name)}
    latent = m.attention == "mla" and not m.pattern
    out |= values | {"attention": m.attention if latent else "gqa"}
    for name, usual in (("hidden", 128), ("ffn_hidden", 384), ("heads", 8), ("head_dim", 16)):
        out.setdefault(name, usual)
    out["kv_heads"] = out["heads"] if latent or m.kv_heads == m.heads else 4
    if not latent:
        for name in ("q_lora", "kv_lora", "qk_nope", "qk_rope", "v_head_dim"):
            out.pop(name, None)
    if m.is_moe:
        dense = m.moe_layers < m.layers and not m.pattern
        out |= {
            "experts": EXPERTS,
            "top_k": min(TOP_K, m.top_k),
            "expert_ffn_hidden": 64,
            "moe_layers": LAYERS - 1 if dense else LAYERS,
        }
    return out


def size_of(m: Model, name: str) -> int:
    """A size of a model by its name in SMALL."""
    sizes = {
        "hidden": m.hidden,
        "ffn_hidden": m.ffn_hidden,
        "heads": m.heads,
        "head_dim": m.head_dim,
        "vocab": m.vocab,
        "expert_ffn_hidden": m.expert_ffn_hidden,
        "shared_ffn_hidden": m.shared_ffn_hidden,
        "q_lora": m.q_lora,
        "kv_lora": m.kv_lora,
        "qk_nope": m.qk_nope,
        "qk_rope": m.qk_rope,
        "v_head_dim": m.v_head_dim,
        "position_rows": m.position_rows,
    }
    return sizes[name]


def smoke_design(assessment: Assessment, framework: Framework) -> Design:
    """The design of the smoke test: two ranks of one node of the same chip, a few steps, what the
    plan shards, repeats and computes in as far as it goes on so few."""
    chosen = assessment.chosen
    plan = chosen.plan
    sharding = plan["sharding"] if plan["sharding"] != "hsdp" else "zero3"
    allowed = framework.domain.get("sharding")
    if allowed is not None and sharding not in allowed.values:
        sharding = allowed.values[0]
    cluster = assessment.resolved.cluster
    precision = chosen.phase.precision
    formats = framework.domain.get("precision")
    if formats is not None and precision not in formats.values:
        precision = "bf16"
    data = {
        "scantling": 1,
        "name": f"{assessment.resolved.name}, smoke test",
        "model": small(assessment.resolved.model),
        "cluster": {
            "accelerator": cluster.accelerator.id,
            "devices": RANKS,
            "devices_per_node": RANKS,
            "scale_up_domain": RANKS,
        },
        "job": {
            "tokens": float(STEPS * SEQUENCE * BATCH),
            "seq_len": SEQUENCE,
            "global_batch": BATCH,
            "precision": precision,
        },
        "plan": {
            "tp": 1,
            "pp": 1,
            "cp": 1,
            "micro_batch": 2,
            "sharding": sharding,
            "recompute": "full" if plan["recompute"] == "full" else "none",
        },
    }
    return Design.from_data(data)


def smoke_assessment(assessment: Assessment, framework: Framework) -> Assessment:
    """The assessment of the smoke test."""
    return assess(smoke_design(assessment, framework), kit=framework.offers)


def short_run(framework: Framework) -> tuple[str, str]:
    """(line up to a save, line that resumes and ends) of a smoke test."""
    if framework.has_trainer:
        first = f"MOCK_DATA=1 SAVE_STEPS={SAVE_STEPS // 2} STEPS={SAVE_STEPS} bash launch.sh"
        return first, first.replace(f" STEPS={SAVE_STEPS}", f" STEPS={STEPS}")
    if framework.id == "torchtitan":
        saves = f"--checkpoint.interval={SAVE_STEPS // 2}"
        line = f"MOCK_DATA=1 bash launch.sh {saves} --training.steps="
        return f"{line}{SAVE_STEPS}", f"{line}{STEPS}"
    return "MOCK_DATA=1 bash launch.sh", "MOCK_DATA=1 bash launch.sh"


def readme(assessment: Assessment, framework: Framework) -> str:
    """README.md of a smoke test."""
    first, again = short_run(framework)
    chip = family(assessment.resolved.cluster.accelerator.family)
    return render(
        "smoke.md.j2",
        installs=framework.installs(chip.vendor_stack),
        name=assessment.resolved.name,
        framework=framework,
        ranks=RANKS,
        layers=LAYERS,
        first=first,
        again=again,
    )
