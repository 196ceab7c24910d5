"""The laws of plans against the frameworks' own checks, and the enumeration against plain loops."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scantling.catalogue.words import RECOMPUTES, SHARDINGS
from scantling.design.design import Design, DesignError
from scantling.physics.gather import situation
from scantling.physics.pipeline import SCHEDULE_NAMES
from scantling.plans import laws, space as plans
from scantling.plans.enumerate import enumerate_plans
from scantling.plans.evaluate import find
from scantling.plans.plan_names import as_dict
from scantling.plans.prepare import prepare

SMALL = plans.Space(tp=(1, 2, 4), cp=(1, 2), micro_batch=(1, 2), recompute_share=(0.5, 1.0))
DENSE = (
    "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: %d}\njob: {seq_len: "
    "8192, global_batch: %d}\n"
)
MOE = (
    "model: mixtral-8x7b\ncluster: {accelerator: h100-sxm, devices: %d}\njob: {seq_len: "
    "4096, global_batch: %d}\n"
)


def setting(text):
    r = prepare(Design.from_yaml(text))
    return r.model, r.phases[0], r.cluster


def plain(model, phase, cluster, space):
    """Every legal plan by nested loops: the rules as each framework states them, one `if` each."""
    out = set()
    depths = [
        p
        for p in range(1, min(model.layers, cluster.devices, 128) + 1)
        if model.layers % p == 0
        or (model.layers + 2) % p == 0
        or (model.layers % 2 and p & (p - 1) == 0)
    ]
    experts = [e for e in range(1, 257) if model.experts % e == 0] if model.is_moe else [1]
    for tp, cp, pp, mb, ep, tensor, fewer in itertools.product(
        space.tp,
        space.cp,
        depths,
        space.micro_batch,
        experts,
        (False, True) if model.is_moe else (False,),
        ("", "rounder", "whole rounds"),
    ):
        if tp > cluster.devices or (cp > 1 and phase.seq_len // cp < 4096):
            continue
        if model.heads % tp or (
            model.kv_heads % tp and tp % model.kv_heads
        ):  # Megatron-LM arguments.py, torchtitan parallelize
            continue
        if model.ffn_hidden % tp or (
            cp > 1 and phase.seq_len % (2 * cp)
        ):  # Megatron-Core: 2 x cp chunks of the sequence
            continue
        room = cluster.devices // (tp * cp * pp)
        if room < 1:
            continue
        divisors = [d for d in range(1, room + 1) if phase.global_batch % d == 0]
        dp = max(divisors)
        if fewer == "whole rounds":  # interleaving on fewer devices, where all have too few rounds
            rounds = [d for d in divisors if phase.global_batch // d % pp == 0]
            if pp == 1 or max(rounds, default=0) in (0, dp):
                continue
            dp = max(rounds)
        if fewer == "rounder" and 2 * dp > room:
            dp = max(
                (d for d in divisors if 2 * d > room),
                key=lambda d: (max(2**i for i in range(12) if d % 2**i == 0), d),
            )
        if phase.global_batch % (dp * mb):  # Megatron-LM: global batch % (micro batch x dp)
            continue
        etp = tp if tensor else 1
        if (
            (tensor and tp == 1)
            or (model.shared_ffn_hidden % tp)
            or (model.is_moe and ((dp * cp * tp) % (ep * etp) or model.expert_ffn_hidden % etp))
        ):
            continue
        m = phase.global_batch // (dp * mb)
        layouts = [("1f1b", 1)] if pp <= model.layers and fewer != "whole rounds" else []
        if pp > 1 and m % pp == 0:  # Megatron-LM: micro-batches % pp under interleaving
            whole = model.layers if model.layers % pp == 0 else model.layers + 2
            layouts += [("interleaved", v) for v in range(2, 21) if whole % (pp * v) == 0]
        head = head_layers(model, phase.seq_len)
        splits = (
            (0, 1) if slowest(model, pp, head, True) < 0.97 * slowest(model, pp, head) else (0,)
        )
        for (schedule, vpp), sharding, sp, split in itertools.product(
            layouts, space.sharding, space.sp, splits
        ):
            if split and pp * vpp >= model.layers:  # a run of layers would be left empty
                continue
            ranks = dp * cp
            if (ranks == 1 and sharding != "none") or (sharding in ("zero3", "hsdp") and vpp > 1):
                continue
            group = ranks
            if sharding == "hsdp":
                group = int(np.gcd(ranks, max(cluster.scale_up_domain // tp, 1)))
                if not 1 < group < ranks or (
                    ep > 1 and (group * tp) % (ep * etp)
                ):  # torchtitan: expert ranks inside a shard group
                    continue
            able = (
                tp > 1 and phase.seq_len % (tp * (2 * cp if cp > 1 else 1)) == 0
            )  # torchtitan's trainer
            if not able and sp != max(space.sp):
                continue
            held = -(-model.layers // pp)
            for recompute in space.recompute:
                for whole in (
                    sorted({int(np.ceil(s * held)) for s in space.recompute_share})
                    if recompute == "full"
                    else [held]
                ):
                    out.add(
                        (
                            tp,
                            cp,
                            pp,
                            vpp,
                            dp,
                            ep,
                            etp,
                            int(sp and able),
                            sharding,
                            group,
                            schedule,
                            mb,
                            recompute,
                            whole,
                            split,
                        )
                    )
    return out


def head_layers(model, seq_len):
    """FLOP of the output head over those of a layer; MTP modules have a layout of their own."""
    if model.mtp_layers:
        return 0
    h, kv = model.hidden, model.kv_heads * model.head_dim
    width = model.ffn_hidden if not model.is_moe else model.top_k * model.expert_ffn_hidden
    layer = h * (2 * h + 2 * kv) + 3 * h * width + model.experts * h + 2 * seq_len * h
    return model.vocab * h / layer


def slowest(model, pp, head, balanced=False):
    """Layers' time of the slowest stage: the head stands for whole layers where `balanced`, else
    for one, as the embedding does, where the layers divide so and not otherwise."""
    places = [0] * pp
    if balanced and head:
        places[-1] = min(int(np.ceil(head)), -(-model.layers // pp) - 1) if pp > 1 else 0
    elif model.layers % pp and (model.layers + 2) % pp == 0:
        places[0] = places[-1] = 1
    held = [-n for n in places]
    for i in range(model.layers + sum(places)):
        held[(i + (i >= (model.layers + sum(places)) // pp * pp)) % pp] += 1
    held[-1] += head
    return max(held)


def listed(plan, model):
    column = lambda name: np.broadcast_to(np.asarray(getattr(plan, name)), plan.tp.shape)  # noqa: E731
    names = (
        "tp",
        "cp",
        "pp",
        "vpp",
        "dp",
        "ep",
        "etp",
        "sp",
        "sharding",
        "shard_group",
        "schedule",
        "micro_batch",
        "recompute",
        "recompute_share",
        "layer_split",
    )
    rows = zip(*(column(n).tolist() for n in names))
    return [
        (
            int(a),
            int(b),
            int(c),
            int(d),
            int(e),
            int(f),
            int(g),
            int(h),
            SHARDINGS[int(i)],
            int(j),
            SCHEDULE_NAMES[int(k)],
            int(m),
            RECOMPUTES[int(n)],
            round(o * -(-model.layers // int(c))),
            split,
        )
        for a, b, c, d, e, f, g, h, i, j, k, m, n, o, split in rows
    ]


@pytest.mark.parametrize(
    "text",
    [
        DENSE % (16, 64),
        DENSE % (24, 96),
        DENSE % (13, 30),
        MOE % (16, 32),
        MOE % (24, 48),
        (
            "model: deepseek-v3\ncluster: {accelerator: h100-sxm, devices: 64}\njob: "
            "{seq_len: 4096, global_batch: 32}"
        ),
        (
            "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 16}\njob: "
            "{seq_len: 8194, global_batch: 32}"
        ),
    ],
)
def test_every_legal_plan_once_and_no_other(text):
    model, phase, cluster = setting(text)
    found = listed(enumerate_plans(model, phase, cluster, SMALL), model)
    assert len(found) == len(set(found))
    expected = plain(model, phase, cluster, SMALL)
    assert sorted(expected - set(found))[:3] == sorted(set(found) - expected)[:3] == []


@pytest.mark.parametrize("devices", [13, 15, 25])
@pytest.mark.parametrize("batch", [8030, 64])
def test_no_plan_takes_more_devices_than_a_site_has(devices, batch):
    """Of two sites of an odd number one has a device less: a replica that needs one more fits on
    neither."""
    r = prepare(
        Design.from_data(
            {
                "model": "llama-3.1-8b",
                "cluster": {"accelerator": "h100-sxm", "devices": devices, "sites": 2},
                "job": {"seq_len": 4096, "global_batch": batch},
            }
        )
    )
    found = enumerate_plans(r.model, r.phases[0], r.cluster, SMALL)
    ranks = found.tp * found.cp * found.pp
    assert np.all(ranks * found.dp <= devices) and np.all(found.dp <= 2 * (devices // 2 // ranks))


@pytest.mark.parametrize("batch", [96, 256, 1024])
@pytest.mark.parametrize("model", ["llama-3.1-405b", "deepseek-v3"])
def test_more_devices_never_slow_the_fastest_plan(model, batch):
    """Pipelines that are left fewer micro-batches than stages cannot interleave (Megatron-LM), so
    that twice the devices may have to leave half of them idle."""
    steps = []
    for devices in (2048, 3072, 4096, 6144, 8192, 16384, 32768):
        r = prepare(
            Design.from_data(
                {
                    "model": model,
                    "cluster": {"accelerator": "h100-sxm", "devices": devices},
                    "job": {"seq_len": 4096, "global_batch": batch},
                }
            )
        )
        found = find(situation(r, r.phases[0]))
        steps.append(found.step_s[found.best()])
    assert all(then <= 1.0001 * now for now, then in zip(steps, steps[1:])), steps


def test_the_default_space_of_405b_is_large():
    r = prepare(
        Design.from_yaml(
            "model: llama-3.1-405b\ncluster: {accelerator: h100-sxm, devices: 16384}\njob: "
            "{seq_len: 8192, global_batch: 2048}"
        )
    )
    p = enumerate_plans(r.model, r.phases[0], r.cluster)
    assert p.tp.size >= 20_000
    names = (
        "tp",
        "cp",
        "pp",
        "vpp",
        "dp",
        "sharding",
        "shard_group",
        "schedule",
        "micro_batch",
        "recompute",
        "recompute_share",
        "sp",
    )
    rows = np.stack([np.broadcast_to(getattr(p, n), p.tp.shape) for n in names])
    assert np.unique(rows, axis=1).shape[1] == p.tp.size


# published plans: legal in the frameworks that ran them
PUBLISHED = {
    "Megatron 1T (Narayanan et al. 2021, table 1)": (
        "megatron-1t",
        "a100-80-sxm",
        3072,
        2048,
        3072,
        dict(tp=8, pp=64, vpp=2, dp=6, micro_batch=1, schedule="interleaved"),
    ),
    "MT-NLG 530B (Smith et al. 2022, section 2.3)": (
        "mt-nlg-530b",
        "a100-80-sxm",
        2240,
        2048,
        1920,
        dict(tp=8, pp=35, dp=8, micro_batch=1),
    ),
    "BLOOM 176B (Le Scao et al. 2022, section 3.2)": (
        "bloom-176b",
        "a100-80-sxm",
        384,
        2048,
        2048,
        dict(tp=4, pp=12, dp=8, micro_batch=2),
    ),
    "Llama 3 405B (Llama Team 2024, table 4)": (
        "llama-3.1-405b",
        "h100-sxm",
        16384,
        8192,
        2048,
        dict(tp=8, cp=1, pp=16, dp=128),
    ),
    "Llama 3 405B, long context (table 4)": (
        "llama-3.1-405b",
        "h100-sxm",
        16384,
        131072,
        128,
        dict(tp=8, cp=16, pp=16, dp=8),
    ),
    "DeepSeek-V3 (2024, section 3.2)": (
        "deepseek-v3",
        "h800-sxm",
        2048,
        4096,
        15360,
        dict(tp=1, pp=16, ep=64, etp=1, schedule="dualpipe"),
    ),
    "Megatron 175B with interleaving (figure 12)": (
        "megatron-175b",
        "a100-80-sxm",
        96,
        2048,
        48,
        dict(tp=8, pp=12, vpp=2, dp=1, schedule="interleaved"),
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_plans_that_ran_are_legal(name):
    seen = 0
    model, chip, devices, seq, batch, pins = PUBLISHED[name]
    text = (
        f"model: {model}\ncluster: {{accelerator: {chip}, devices: {devices}}}\njob: "
        f"{{seq_len: {seq}, global_batch: {batch}}}\nplan: {pins}"
    ).replace("'", "")
    m, phase, cluster = setting(text)
    p = enumerate_plans(m, phase, cluster, plans.DEFAULT, phase.pins)
    assert p.tp.size
    for field, value in pins.items():
        if field != "schedule":
            seen += 1
            assert np.all(getattr(p, field) == value), field
    assert seen


BROKEN = {  # (pins, field named, words of the rule): what each framework refuses at start
    "Megatron-LM: num_attention_heads % tensor_model_parallel_size": (
        dict(tp=3),
        "plan.tp",
        "heads",
    ),
    "Megatron-LM: global batch % (micro batch x dp)": (
        dict(dp=3, micro_batch=1),
        "plan.dp",
        "global_batch",
    ),
    "Megatron-LM: world size % (tp x pp x cp)": (dict(tp=8, pp=4, dp=16), "plan.dp", "devices"),
    "Megatron-LM: interleaving needs micro-batches % pp": (
        dict(tp=4, pp=8, dp=4, vpp=2, schedule="interleaved", micro_batch=8),
        "plan.schedule",
        "divisible by pp",
    ),
    "Megatron-LM: virtual stages need a layer each": (
        dict(pp=32, vpp=4, schedule="interleaved"),
        "plan.schedule",
        "layer",
    ),
    "Megatron-Core: seq_length % (2 x cp)": (dict(cp=3), "plan.cp", "sequence"),
    "Megatron-LM: more stages than layers": (dict(pp=64, tp=1), "plan.pp", "layer"),
    "experts on a dense model": (dict(ep=2), "plan.ep", "expert"),
    "torchtitan: seq_len % (tp x 2 cp) with sequence parallelism": (
        dict(tp=8, sp=True),
        "plan.sp",
        "sequence",
    ),
    "Transformer Engine: heads and key-value heads % cp under a2a": (
        dict(tp=8, cp=2, cp_type="ulysses"),
        "plan.cp",
        "key-value heads",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_pin_that_breaks_a_rule_names_rule_and_field(name):
    pins, field, words = BROKEN[name]
    text = (DENSE % (128, 64)).replace(
        "8192", "8196" if "sp" in pins else "8192"
    ) + f"plan: {pins}".replace("'", "")
    with pytest.raises(DesignError) as caught:
        model, phase, cluster = setting(text)
        enumerate_plans(model, phase, cluster, plans.DEFAULT, phase.pins)
    assert caught.value.field.startswith(field)
    assert words in str(caught.value)


@settings(max_examples=60, deadline=None)
@given(
    devices=st.integers(1, 3000),
    batch=st.integers(1, 600),
    seq=st.sampled_from([2048, 8192, 32768]),
    model=st.sampled_from(["llama-3.1-8b", "mixtral-8x7b", "gpt-3-6.7b"]),
)
def test_any_device_count_has_plans_and_all_keep_the_laws(devices, batch, seq, model):
    m, phase, cluster = setting(
        f"model: {model}\ncluster: {{accelerator: h100-sxm, devices: {devices}}}\njob: "
        f"{{seq_len: {seq}, global_batch: {batch}}}"
    )
    p = enumerate_plans(m, phase, cluster, plans.COARSE)
    assert p.tp.size
    used = p.tp * p.cp * p.pp * p.dp
    assert np.all(used <= devices) and np.all(used >= 1)
    assert np.all(batch % (p.dp * p.micro_batch) == 0)
    columns = {
        k: np.broadcast_to(np.asarray(getattr(p, k)), p.tp.shape) for k in p.__dataclass_fields__
    }
    for rule in laws.LAWS:
        assert np.all(rule.holds(columns, laws.setting_of(m, phase, cluster))), rule.text


def test_every_law_reads_what_it_says_that_it_reads():
    m, phase, cluster = setting(DENSE % (16, 64))
    for rule in laws.LAWS:
        columns = {name: np.array([2, 4]) for name in rule.reads}
        assert rule.holds(columns, laws.setting_of(m, phase, cluster)).shape in ((2,), ()), (
            rule.text
        )


def test_every_law_says_what_and_whose():
    for rule in laws.LAWS:
        assert len(rule.text) > 10 and len(rule.source) > 5
        assert rule.field in {"tp", "cp", "pp", "dp", "ep", "etp", "micro_batch", "sp", "sharding"}


@pytest.mark.parametrize("layers", [2, 3, 4])
def test_pinned_recompute_layers_are_kept(layers):
    m, phase, cluster = setting(
        (DENSE % (16, 64)) + f"plan: {{pp: 4, recompute: full, recompute_layers: {layers}}}"
    )
    p = enumerate_plans(m, phase, cluster, plans.DEFAULT, phase.pins)
    assert as_dict(p, 0, m, phase)["recompute_layers"] == layers
    assert isinstance(SimpleNamespace(**as_dict(p, 0, m, phase)).sp, bool)
