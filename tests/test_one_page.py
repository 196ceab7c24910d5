"""The page that a reader opens first: held to papers, and to the full model on the gallery."""

from __future__ import annotations

import math
import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from scantling import Assessment, Design, DesignError, assess, one_page
from scantling.blocks.attention import Attention
from scantling.blocks.head import Head
from scantling.blocks.mlp import Mlp
from scantling.catalogue import accelerator
from scantling.catalogue.words import Recompute, Schedule, Sharding
from scantling.one_page import Chip, Fleet, Model, Plan, Run
from scantling.physics import wires
from scantling.physics.constants import gather
from scantling.physics.software import USUAL

DESIGNS = Path(__file__).parents[1] / "gallery/designs"
PINNED = ("tp", "pp", "dp", "vpp", "micro_batch", "sharding", "recompute", "sp")
LLAMA_405B = Model(126, 16384, 53248, 128, 8, 128, 128256, gated=True)


# By hand -------------------------------------------------------------------------------------


def llama_on_h100(**plan) -> Run:
    """Llama 3 405B on 16,384 H100 as its paper lays it out (arXiv 2407.21783, Table 4)."""
    h100 = accelerator("h100-sxm")
    chip = Chip(
        flops=h100.bf16_flops,
        hbm_bytes_per_s=h100.hbm_bytes_per_s,
        link_bytes_per_s=h100.link_bytes_per_s,
        network_bytes_per_s=50e9,
        host_bytes_per_s=h100.host_link_bytes_per_s,
        wave_outputs=h100.sms * 128 * 256,
    )
    return Run(
        model=LLAMA_405B,
        chip=chip,
        plan=Plan(**{"tp": 8, "pp": 16, "dp": 128, "vpp": 8} | plan),
        seq_len=8192,
        global_batch=2048,
        k=gather("hopper", "h100-sxm", ""),
        stack=replace(USUAL, flash=3.0),
    )


def test_llama_405b_has_the_published_parameters_flops_and_mfu():
    r = llama_on_h100()
    assert one_page.parameters(r.model) == pytest.approx(405e9, rel=0.01)
    assert one_page.flops_per_token(r.model, 8192) * 15.6e12 == pytest.approx(3.8e25, rel=0.1)
    assert one_page.mfu(r) == pytest.approx(0.41, rel=0.1)  # Table 4


def test_llama_405b_has_the_published_goodput():
    """466 interruptions in 54 days, 419 of them unexpected; effective training time over 90 %
    (section 3.3.4)."""
    per_1000_node_days = 419 / 54 / (16384 / 8) * 1000
    fleet = Fleet(per_1000_node_days, detect_s=180, restart_s=300, write_bytes_per_s=2e12)
    assert 0.9 < one_page.goodput(llama_on_h100(), fleet) < 1


def test_a_gpt_layer_saves_what_korthikanti_counts():
    """s b h (34 + 5 a s / h): Korthikanti et al. 2022, equation 1, scores and masks kept."""
    gpt = Model(96, 12288, 4 * 12288, 96, 96, 128, 51200, gated=False, tied=True)
    k = gather("ampere", "a100-80-sxm", "megatron-lm")
    r = Run(
        model=gpt,
        chip=llama_on_h100().chip,
        plan=Plan(tp=1, pp=1, dp=1),
        seq_len=2048,
        global_batch=1,
        k=replace(k, memory=replace(k.memory, dropout=1.0)),
        stack=replace(USUAL, flash=0.0),
    )
    listed = 2048 * 12288 * (34 + 5 * 96 * 2048 / 12288)
    assert one_page.saved_bytes(r) == pytest.approx(listed)


@pytest.mark.parametrize("pp", [1, 2, 7, 16, 18, 126])
def test_stages_hold_every_layer(pp):
    assert sum(one_page.stage_layers(126, pp, i) for i in range(pp)) == 126


# Against the full model ------------------------------------------------------------------------
# All designs of the gallery whose model is dense, whose products run in 16 bit, which has one
# phase, a plan and waves of tiles (no TPU), and whose file splits no sequence. What the page has no
# word for is taken out: what the search chooses with cp 1 and nothing offloaded is pinned, layers
# split evenly, with 1F1B for schedules without bubbles, zero1 for zero2 and hsdp, full recompute
# for lists of a stack. Each once so, once with nothing recomputed: twelve designs, 24 plans.


def in_the_words_of_the_page(name: str) -> Assessment | None:
    design = Design.read(DESIGNS / f"{name}.yaml")
    if (design.data().get("plan") or {}).get("cp", 1) > 1:
        return None
    changed = {"plan.cp": 1, "plan.offload": "none", "prices.usd_per_device_hour": 2.0}
    if len(design.data()["job"].get("phases", [])) > 1:
        return None
    if design.data()["job"].get("tokens") is None:
        changed["job.tokens"] = 1e12
    design = design.change(changed)
    free = assess(design)
    if not free.phases:
        return None
    case = free.chosen.case
    dense = {block.kind for block in case.shape.blocks} == {"embedding", "attention", "mlp", "head"}
    if not dense or case.chip.linear_flops != case.chip.bf16_flops or not case.chip.wave_outputs:
        return None
    pins = {name: free.plan[name] for name in PINNED}
    if pins["sharding"] not in (Sharding.NONE, Sharding.ZERO3):
        pins["sharding"] = "zero1"
    if pins["recompute"] == Recompute.SELECTIVE and free.plan["recompute_modules"] != ["core_attn"]:
        pins["recompute"] = "full"
    pins["schedule"] = (Schedule.INTERLEAVED if pins["vpp"] > 1 else Schedule.ONE_F_ONE_B).value
    pins["layer_split"] = "even"
    return assess(design.change({f"plan.{name}": value for name, value in pins.items()}))


def run_of(a: Assessment) -> Run:
    case, plan = a.chosen.case, a.plan
    shape, chip, link = case.shape, case.chip, case.link
    nvlink, ring_share = math.isnan(link.up_share), wires.constants().ring_share
    (attention,), (mlp,), (head,) = shape.of(Attention), shape.of(Mlp), shape.of(Head)
    return Run(
        model=Model(
            layers=int(shape.layers),
            hidden=int(shape.hidden),
            ffn=int(mlp.width),
            heads=int(attention.heads),
            kv_heads=int(attention.kv_heads),
            head_dim=int(attention.head_dim),
            vocab=int(head.vocab),
            gated=mlp.matrices == 3,
            tied=head.tied > 0,
        ),
        chip=Chip(
            flops=chip.bf16_flops,
            hbm_bytes_per_s=chip.hbm_bytes_per_s,
            link_bytes_per_s=link.up_bytes_per_s * (1.0 if nvlink else link.up_share / ring_share),
            network_bytes_per_s=link.out_bytes_per_s * link.out_share,
            host_bytes_per_s=chip.host_bytes_per_s,
            wave_outputs=chip.wave_outputs,
            node=int(link.domain),
            newer_flash=chip.newer_flash > 0,
            mesh=link.mesh > 0,
        ),
        plan=Plan(
            tp=plan["tp"],
            pp=plan["pp"],
            dp=plan["dp"],
            micro_batch=plan["micro_batch"],
            vpp=plan["vpp"],
            sharding=Sharding(plan["sharding"]),
            recompute=Recompute(plan["recompute"]),
            sequence_parallel=plan["sp"],
        ),
        seq_len=int(case.job.seq_len),
        global_batch=int(case.job.global_batch),
        k=case.constants,
        stack=case.software,
        bf16=a.chosen.phase.precision == "bf16",
        grad_bytes=float(case.job.grad_bytes),
    )


def fleet_of(a: Assessment) -> Fleet:
    e = a.endurance
    return Fleet(
        failures_per_1000_node_days=e.failures_per_1000_node_days,
        detect_s=e.detect_s,
        restart_s=e.restart_s,
        write_bytes_per_s=e.write_bytes_per_s,
        spares=int(e.spares) * a.resolved.cluster.devices_per_node,
    )


@pytest.fixture(scope="module")
def assessments() -> dict[str, Assessment]:
    out = {}
    for name in sorted(path.stem for path in DESIGNS.glob("*.yaml")):
        a = in_the_words_of_the_page(name)
        if a is not None:
            out[name] = a
            out[f"{name}, nothing recomputed"] = assess(a.design.change({"plan.recompute": "none"}))
    return out


def test_the_gallery_has_ten_designs_for_the_page(assessments):
    assert len(assessments) >= 20


@pytest.mark.parametrize("figure", ["memory", "step", "mfu", "goodput", "cost", "parameters"])
def test_the_page_gives_the_figures_of_the_full_model(assessments, figure):
    ratios = {name: ratios_of(a)[figure] for name, a in assessments.items()}
    assert {name: ratio for name, ratio in ratios.items() if abs(ratio - 1) > 0.05} == {}


def ratios_of(a: Assessment) -> dict[str, float]:
    """The page's figures over the full model's."""
    r, fleet = run_of(a), fleet_of(a)
    dollars = one_page.cost_usd(r, fleet, a.chosen.phase.tokens, a.cost.usd_per_device_hour)
    return {
        "memory": sum(one_page.memory_bytes(r).values()) / a.memory_bytes["total"],
        "step": one_page.step_s(r) / a.step_s,
        "mfu": one_page.mfu(r) / a.mfu,
        "goodput": one_page.goodput(r, fleet) / a.goodput,
        "cost": dollars / a.cost_usd,
        "parameters": one_page.parameters(r.model) / a.params,
    }


def test_the_page_gives_the_parts_of_memory(assessments):
    """Parts of a tenth of the memory and more."""
    for name, a in assessments.items():
        for part, size in one_page.memory_bytes(run_of(a)).items():
            if a.memory_bytes[part] > a.memory_bytes["total"] / 10:
                assert size == pytest.approx(a.memory_bytes[part], rel=0.05), (name, part)


def test_sharded_weights_without_overlap(assessments):
    """ZeRO-3 without a pipeline, as DeepSpeed has it, on a stack whose gathers nothing hides."""
    zero3 = {"plan.sharding": "zero3", "plan.pp": 1, "plan.dp": 96, "job.global_batch": 1920}
    a = assess(assessments["bloom-176b-384-a100"].design.change(zero3))
    assert ratios_of(a) == pytest.approx(dict.fromkeys(ratios_of(a), 1.0), rel=0.05)


def test_a_stacks_own_recompute_list_is_beyond_the_page(assessments):
    """torchtitan keeps every second product: `selective` of the page repeats the attention core
    alone, which keeps twice as much and takes 6 % less time."""
    design = assessments["llama-3.1-8b-8-h100-fsdp"].design
    ratios = ratios_of(assess(design.change({"plan.recompute": "selective"})))
    assert ratios["memory"] == pytest.approx(2.16, rel=0.05)
    assert ratios["step"] == pytest.approx(0.94, rel=0.02)


# Plans that nobody chose -----------------------------------------------------------------------
# The designs above showed which mechanisms the page needs, so they flatter it. These models, chips
# and stacks were drawn once the page was written, and nothing on it was changed for them. What it
# misses: facts of single stacks' memory (logits gathered whole, dense masks, eager second moments),
# hop times of links that are no NVLink, host time on small models.

MODELS = (
    "llama-2-70b",
    "mistral-7b",
    "qwen2.5-14b",
    "opt-175b",
    "gpt-3-6.7b",
    "internlm2-20b",
    "phi-4-14b",
    "mistral-small-24b",
    "qwen2.5-72b",
    "llama-3.2-3b",
)
CHIPS = {
    "h200-sxm": "ib-ndr",
    "mi325x": "rocev2-400",
    "a100-80-sxm": "ib-hdr",
    "b300-sxm": "ib-ndr",
    "h100-sxm": "rocev2-400",
    "mi250x": "ib-hdr",
    "h100-pcie": "ib-ndr",
}
STACKS = (
    "megatron-lm",
    "gpt-neox",
    "hf-trainer",
    "kempnerforge",
    "primus-rocm",
    "sailor",
    "zero-bubble",
    "aleph-alpha-scaling",
    "megatron-core",
    "hai-llm",
)


def drawn(rng: random.Random) -> Design:
    model, chip, stack = rng.choice(MODELS), rng.choice(list(CHIPS)), rng.choice(STACKS)
    tp, pp, dp = rng.choice([1, 2, 4, 8]), rng.choice([1, 2, 4, 8]), rng.choice([2, 8, 16, 64])
    plan = {
        "tp": tp,
        "pp": pp,
        "dp": dp,
        "cp": 1,
        "vpp": 1,
        "micro_batch": rng.choice([1, 2, 4]),
        "sharding": rng.choice(["none", "zero1", "zero1", "zero3"]),
        "recompute": rng.choice(["none", "full"]),
        "offload": "none",
        "layer_split": "even",
        "schedule": "1f1b",
        "sp": tp > 1 and rng.random() < 0.7,
    }
    if pp > 1 and rng.random() < 0.3:
        plan |= {"vpp": 2, "schedule": "interleaved"}
    cluster = {"accelerator": chip, "devices": tp * pp * dp, "devices_per_node": 8}
    seq_len = rng.choice([2048, 4096, 8192])
    job = {"tokens": 1e12, "seq_len": seq_len, "global_batch": dp * 32, "precision": "bf16"}
    return Design.from_data(
        {
            "scantling": 1,
            "model": model,
            "cluster": cluster | {"scale_out": CHIPS[chip]},
            "job": job,
            "plan": plan,
            "stack": stack,
            "prices": {"usd_per_device_hour": 2.0},
        }
    )


@pytest.mark.slow
def test_the_page_is_close_on_most_plans_that_nobody_chose():
    rng, ratios = random.Random(777), []
    while len(ratios) < 120:
        with suppress(DesignError):  # plans that no law allows
            a = assess(drawn(rng))
            if a.phases:
                ratios.append(ratios_of(a))

    def close(*figures: str) -> float:
        return sum(all(abs(one[f] - 1) < 0.05 for f in figures) for one in ratios) / len(ratios)

    shares = {figure: close(figure) for figure in ratios[0]} | {"all": close(*ratios[0])}
    worst = {f: max(abs(one[f] - 1) for one in ratios) for f in ratios[0]}
    # measured: all figures 0.80, memory 0.88, step 0.90, MFU 0.92, cost 0.93, goodput 1
    assert shares["all"] >= 0.75 and shares["memory"] >= 0.85 and shares["step"] >= 0.85
    assert shares["goodput"] == shares["parameters"] == 1
    # measured: memory 0.55, step 0.33
    assert worst["memory"] < 0.6 and worst["step"] < 0.35
