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
from scantling.one_page import Chip, Fleet, Model, Run
from scantling.physics import wires
from scantling.physics.constants import gather

DESIGNS = Path(__file__).parents[1] / "gallery/designs"
PINNED = ("tp", "pp", "dp", "vpp", "micro_batch", "sharding", "recompute", "sp")
LLAMA_405B = Model(126, 16384, 53248, 128, 8, 128, 128256, gated=True)


# By hand -------------------------------------------------------------------------------------


def llama_on_h100(**plan) -> Run:
    """Llama 3 405B on 16,384 H100 as its paper lays it out (arXiv 2407.21783, Table 4)."""
    h100, k, ring = accelerator("h100-sxm"), gather("hopper", "h100-sxm", ""), wires.constants()
    chip = Chip(
        flops=h100.bf16_flops,
        hbm_bytes_per_s=h100.hbm_bytes_per_s,
        link_bytes_per_s=h100.link_bytes_per_s * k.scale_up_share * ring.ring_share,
        network_bytes_per_s=50e9 * k.scale_out_share * ring.out_share,
        host_bytes_per_s=h100.host_link_bytes_per_s,
        wave_outputs=h100.sms * 128 * 256,
    )
    layout = {"tp": 8, "pp": 16, "dp": 128, "vpp": 8} | plan
    return Run(LLAMA_405B, chip, k, ring, seq_len=8192, global_batch=2048, **layout)


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
    """s b h 34 of GPT, equation 2 of Korthikanti et al. 2022, whose 2 s b h of dropout masks in
    the block the page leaves out, and its queries, keys, values counted in 4 a d + 4 k d."""
    gpt = Model(96, 12288, 4 * 12288, 96, 96, 128, 51200, gated=False)
    r = replace(llama_on_h100(tp=1, pp=1, dp=1), model=gpt, seq_len=2048, global_batch=1)
    assert 8 * r.stream + r.inner_bytes == pytest.approx(2048 * 12288 * (34 - 2))


@pytest.mark.parametrize("pp", [1, 2, 7, 16, 18, 126])
def test_stages_hold_every_layer(pp):
    assert sum(one_page.stage_layers(126, pp, i) for i in range(pp)) == 126


# Against the full model ------------------------------------------------------------------------
# Ten dense designs of the gallery, their stacks with flash attention, fused norms and gradients in
# fp32. What the page has no word for is taken out: the plan that the search chooses with cp 1 and
# nothing offloaded is pinned, layers split evenly, with 1F1B for schedules without bubbles, zero1
# for zero2 and hsdp, full recompute for lists of a stack. Each once so, once with nothing
# recomputed.

TEN = {
    "100k-multi-pod-ft": {},
    "case-3-500b-4096-h100": {},
    "gpt-3-175b-64-a100": {},
    "llama-3.1-405b": {},
    "llama-3.1-405b-16384-published": {"stack": None},
    "llama-3.1-405b-8192-published": {"stack": None},
    "llama-3.1-405b-long-context": {"job.phases": None, "stack": None},
    "llama-3.1-70b-128-h100": {"plan.dp": 8, "plan.tp_overlap": "none", "plan.gradients": "fp32"},
    "llama-3.1-70b-64-mi300x": {},
    "nemotron-4-15b-1536-h100": {},
}


def in_the_words_of_the_page(name: str) -> Assessment:
    design = Design.read(DESIGNS / f"{name}.yaml")
    changed = {"plan.cp": 1, "plan.offload": "none", "prices.usd_per_device_hour": 2.0}
    if design.data()["job"].get("tokens") is None:
        changed["job.tokens"] = 1e12
    design = design.change(changed | TEN.get(name, {}))
    free = assess(design)
    pins = {name: free.plan[name] for name in PINNED}
    if pins["sharding"] != Sharding.ZERO3:
        pins["sharding"] = "zero1" if pins["dp"] > 1 else "none"
    if pins["recompute"] == Recompute.SELECTIVE and free.plan["recompute_modules"] != ["core_attn"]:
        pins["recompute"] = "full"
    pins["schedule"] = (Schedule.INTERLEAVED if pins["vpp"] > 1 else Schedule.ONE_F_ONE_B).value
    pins["layer_split"] = "even"
    return assess(design.change({f"plan.{name}": value for name, value in pins.items()}))


def run_of(a: Assessment) -> Run:
    case, plan = a.chosen.case, a.plan
    shape, chip, link, k, ring = case.shape, case.chip, case.link, case.constants, wires.constants()
    up_share = ring.ring_share if math.isnan(link.up_share) else link.up_share
    (attention,), (mlp,), (head,) = shape.of(Attention), shape.of(Mlp), shape.of(Head)
    if case.software.tuned > 0:  # a site that was tuned on so many devices has no such stragglers
        k = replace(k, straggler_wide=0.0)
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
        ),
        chip=Chip(
            flops=chip.bf16_flops,
            hbm_bytes_per_s=chip.hbm_bytes_per_s,
            link_bytes_per_s=link.up_bytes_per_s * k.scale_up_share * up_share,
            network_bytes_per_s=link.out_bytes_per_s
            * link.out_share
            * k.scale_out_share
            * ring.out_share,
            host_bytes_per_s=chip.host_bytes_per_s,
            wave_outputs=chip.wave_outputs or 1.0,  # few large units: no part-filled wave
            node=int(link.domain),
        ),
        k=k,
        ring=ring,
        tp=plan["tp"],
        pp=plan["pp"],
        dp=plan["dp"],
        seq_len=int(case.job.seq_len),
        global_batch=int(case.job.global_batch),
        micro_batch=plan["micro_batch"],
        vpp=plan["vpp"],
        sharding=Sharding(plan["sharding"]),
        recompute=Recompute(plan["recompute"]),
        sequence_parallel=plan["sp"],
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
    for name in TEN:
        out[name] = a = in_the_words_of_the_page(name)
        out[f"{name}, nothing recomputed"] = assess(a.design.change({"plan.recompute": "none"}))
    return out


@pytest.mark.parametrize("figure", ["memory", "step", "mfu", "goodput", "cost", "parameters"])
def test_the_page_gives_the_figures_of_the_full_model(assessments, figure):
    ratios = {name: ratios_of(a)[figure] for name, a in assessments.items()}
    assert len(ratios) == 20
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


# What stacks do otherwise is beyond the page: (memory, step) of the page over the full model's.
BEYOND = {
    # torch's FSDP: norms one operation after the other, a loss in pieces, sharded weights in fp32
    "llama-3.1-8b-8-h100-fsdp": (1.69, 0.64),
    # Megatron of 2021: attention scores written out, dropout, gradients in 16 bit beside fp32 ones
    "megatron-1t-3072-a100": (1.08, 1.00),
    # DeepSpeed's pipeline engine as well, whose traffic nothing hides
    "mt-nlg-530b-2240-a100": (0.87, 0.85),
    "bloom-176b-384-a100": (0.82, 0.80),
}


@pytest.mark.parametrize("name", BEYOND)
def test_how_far_the_page_is_off_where_stacks_do_otherwise(name):
    ratios = ratios_of(in_the_words_of_the_page(name))
    assert (ratios["memory"], ratios["step"]) == pytest.approx(BEYOND[name], abs=0.02)


# Plans that nobody chose -----------------------------------------------------------------------
# The designs above showed which mechanisms the page needs, so they flatter it. These models and
# chips were drawn when an earlier page was written, and nothing on it was changed for them: plans
# in the words of the page, under the stack that most runs have.

MODELS = (
    "llama-2-70b",
    "mistral-7b",
    "qwen2.5-14b",
    "opt-175b",
    "internlm2-20b",
    "phi-4-14b",
    "mistral-small-24b",
    "qwen2.5-72b",
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


def drawn(rng: random.Random) -> Design:
    model, chip = rng.choice(MODELS), rng.choice(list(CHIPS))
    tp, pp, dp = rng.choice([1, 2, 4, 8]), rng.choice([1, 2, 4, 8]), rng.choice([2, 8, 16, 64])
    plan = {
        "tp": tp,
        "pp": pp,
        "dp": dp,
        "cp": 1,
        "vpp": 1,
        "micro_batch": rng.choice([1, 2, 4]),
        "sharding": rng.choice(["zero1", "zero1", "zero3"]),
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
            "stack": "megatron-core",
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
    # measured: all figures 0.82, step 0.85, the others 1
    assert shares["all"] >= 0.8 and shares["step"] >= 0.85
    assert shares["memory"] == shares["goodput"] == shares["parameters"] == 1
    assert worst["memory"] < 0.03 and worst["step"] < 0.2  # measured: 0.02, 0.18
