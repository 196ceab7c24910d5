"""Placement: every device once, groups of the right size, tiers that groups span, Megatron's own
groups."""

import json

import numpy as np
import pytest
from scantling import Design, assess
from scantling_site import part
from scantling_site.placement import KIT, LLAMA3, Layout, bytes_over, describe, expert_groups


def layout(
    *, tp=1, cp=1, dp=1, pp=1, order=KIT, node=8, domain=8, rack=16, unit=256, pod=1024, site=10**9
):
    return Layout(
        sizes=dict(tp=tp, cp=cp, dp=dp, pp=pp),
        order=order,
        per_node=node,
        per_domain=domain,
        per_rack=rack,
        per_unit=unit,
        per_pod=pod,
        per_site=site,
    )


def plans(count=60):
    rng = np.random.default_rng(7)
    for _ in range(count):
        tp, cp, dp, pp = (
            int(rng.choice(c))
            for c in ((1, 2, 4, 8, 16), (1, 2, 4), (1, 3, 4, 6, 16), (1, 2, 3, 8))
        )
        yield dict(tp=tp, cp=cp, dp=dp, pp=pp)


@pytest.mark.parametrize("order", [KIT, LLAMA3], ids="-".join)
def test_every_device_stands_in_one_group_of_every_axis(order):
    for plan in plans():
        lay = layout(**plan, order=order)
        for axis, size in plan.items():
            groups = lay.groups(axis)
            assert groups.shape == (lay.devices // size, size)
            assert np.array_equal(np.sort(groups.ravel()), np.arange(lay.devices)), (plan, axis)
            assert np.all(np.diff(groups, axis=1) == lay.strides()[axis])


def test_rank_and_coordinates_are_inverse():
    for plan in plans():
        lay = layout(**plan)
        ranks = np.arange(lay.devices)
        assert np.array_equal(lay.rank(**lay.coordinates(ranks)), ranks)


def test_two_groups_of_different_axes_share_one_rank_at_most():
    seen = 0
    lay = layout(tp=4, cp=2, dp=3, pp=2)
    for a in KIT:
        for b in KIT:
            if a != b:
                seen += 1
                assert (
                    max(len(np.intersect1d(x, y)) for x in lay.groups(a) for y in lay.groups(b))
                    <= 1
                )
    assert seen


def test_megatrons_example_of_16_devices():
    """parallel_state.initialize_model_parallel, docstring: 16 GPUs, tp 2, pp 4: eight tp groups
    [g0, g1] ..., four pp groups
    [g0, g4, g8, g12] ..., eight dp groups [g0, g2], [g1, g3], [g4, g6] ..."""
    lay = layout(tp=2, dp=2, pp=4)
    assert lay.groups("tp").tolist() == [[i, i + 1] for i in range(0, 16, 2)]
    assert sorted(lay.groups("pp").tolist()) == [[i, i + 4, i + 8, i + 12] for i in range(4)]
    assert sorted(lay.groups("dp").tolist()) == sorted(
        [[i, i + 2] for base in range(0, 16, 4) for i in (base, base + 1)]
    )


@pytest.mark.parametrize("order", [KIT, LLAMA3], ids="-".join)
def test_experts_fold_into_the_ranks_of_a_stage(order):
    """Every rank of the first stage stands in one group of each axis of the experts, and of no
    other stage any."""
    lay = layout(tp=2, dp=8, pp=2, order=order)
    stage = np.sort(lay.rank(**{a: i for a, i in zip("tp dp".split(), np.indices((2, 8)))}).ravel())
    for axis, size in {"etp": 1, "ep": 8, "edp": 2}.items():
        groups = expert_groups(lay, 8, 1, axis)
        assert groups.shape == (16 // size, size)
        assert np.array_equal(np.sort(groups.ravel()), stage), axis
    assert expert_groups(lay, 8, 1)[0].tolist() == stage[:8].tolist()


def test_tp_8_fills_a_node_and_dp_follows_the_rail():
    lay = layout(tp=8, dp=128, pp=16, unit=256, pod=3072)
    tp, dp, pp = (describe(lay, a) for a in ("tp", "dp", "pp"))
    assert (tp.widest, tp.domains, tp.per_domain) == ("scale-up domain", 1, 8)
    assert dp.stride == 8 and dp.per_domain == 1 and dp.nodes == 128, (
        "one member a node: every ring stays on its own card, its own rail"
    )
    assert pp.stride == 1024 and pp.nodes == 16


def test_tp_16_leaves_a_node_of_eight_and_not_an_nvl72():
    assert describe(layout(tp=16, dp=4), "tp").domains == 2
    assert describe(layout(tp=16, dp=4, node=4, domain=64), "tp").widest == "scale-up domain"


def test_crossings_count_the_pairs_of_a_ring():
    lay = layout(tp=8, dp=128, pp=16, pod=3072)
    assert lay.crossings("dp", 1024).sum() == 0 and lay.crossings("dp", 8).sum() == lay.devices
    assert set(layout(tp=8, dp=512, pod=1024).crossings("dp", 1024).tolist()) == {4}, (
        "four pods: a ring passes each edge once"
    )


@pytest.fixture(scope="module")
def meta():
    return assess(
        Design.from_data(
            {
                "scantling": 1,
                "model": "llama-3.1-405b",
                "cluster": {
                    "accelerator": "h100-sxm",
                    "devices": 16384,
                    "scale_out": "rocev2-400",
                    "pod_devices": 3072,
                    "oversubscription": 7,
                },
                "job": {"seq_len": 8192, "global_batch": 2048, "precision": "bf16"},
                "plan": {"tp": 8, "cp": 1, "pp": 16, "vpp": 8, "dp": 128},
            }
        )
    )


def test_llama_3s_order_keeps_pipelines_in_a_pod(meta):
    """Llama 3, section 3.3.2: tp, cp, pp, dp, so that only data parallelism meets the narrow tier.
    Both orders over pods of 3,072."""
    kit, llama = part(meta, "placement").orders
    assert llama["order"] == "tp-cp-pp-dp" and kit["over_pod"]["pp"] > 0 == llama["over_pod"].get(
        "pp", 0
    )
    assert llama["bytes_over_pod"] < kit["bytes_over_pod"]
    assert any("tp-cp-pp-dp" in note for note in part(meta, "placement").notes)


def test_bytes_over_an_edge_counted_by_hand():
    """16 devices, blocks of 8: tp 2, dp 2, pp 4. Stages of 4 ranks: one pipeline edge of three lies
    between the blocks, in each of 4 pipelines."""
    lay = layout(tp=2, dp=2, pp=4)
    assert bytes_over(lay, 8, {"tp": 10.0, "dp": 7.0, "pp": 6.0}) == {
        "tp": 0.0,
        "dp": 0.0,
        "pp": 4 * 3.0,
    }
    assert bytes_over(lay, 8, {"pp": 6.0}, vpp=2)["pp"] == 4 * 3.0 * 1.5, (
        "interleaved: one more pass from the last stage to the first"
    )
    wide = layout(tp=1, dp=16, pp=1)
    assert bytes_over(wide, 4, {"dp": 1.0}) == {"dp": 4.0}, (
        "a ring over four blocks leaves each once"
    )
    experts = bytes_over(layout(dp=16, domain=4), 8, {"ep": 1.0}, ep=16)
    assert experts["ep"] == pytest.approx(16 * 8 / 12), (
        "of the 12 ranks beyond its domain, 8 stand in the other block"
    )


def test_first_replica_and_node_columns(meta):
    p = part(meta, "placement")
    ranks = p.first_replica["rank"]
    assert len(ranks) == len(set(ranks.tolist())) == 8 * 16, "tp x cp x pp devices hold one copy"
    assert len(p.nodes["node"]) == p.node_count == 2048
    assert np.all(p.nodes["tp_first"] == 0) and np.all(p.nodes["tp_last"] == 7)
    assert p.pod_count == 6 and p.idle_devices == 0
    assert np.all(np.bincount(p.nodes["pp_first"]) == 128)
    json.dumps(p.as_dict(), allow_nan=False)


def test_idle_devices_are_said():
    a = assess(
        Design.from_data(
            {
                "scantling": 1,
                "model": "llama-3.1-8b",
                "cluster": {"accelerator": "h100-sxm", "devices": 24},
                "plan": {"tp": 1, "pp": 1, "cp": 1, "dp": 16},
                "job": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"},
            }
        )
    )
    p = part(a, "placement")
    assert p.devices == 16 and p.idle_devices == 8 and any("free" in n for n in p.notes)


def test_racks_at_work_and_replicas_inside_a_site():
    """NVL72: sixteen of a rack's eighteen trays work (topology/block with --segment 16), so 64
    expert ranks on them cross no rack. Sites that average after local steps hold whole replicas."""
    rack = {
        "scantling": 1,
        "model": "deepseek-v3",
        "cluster": {"accelerator": "gb200-nvl72", "devices": 512},
        "job": {"seq_len": 4096, "global_batch": 2048, "precision": "bf16"},
        "plan": {"tp": 1, "pp": 4, "dp": 128, "ep": 64},
    }
    p = part(assess(Design.from_data(rack)), "placement")
    ep = next(g for g in p.groups if g.axis == "ep")
    assert (p.per_domain, p.rack_count) == (64, 8)
    assert (ep.widest, ep.domains, ep.racks) == ("scale-up domain", 1, 1)

    sites = {
        "scantling": 1,
        "model": "llama-3-70b",
        "cluster": {"accelerator": "h100-sxm", "devices": 512, "sites": 2},
        "job": {"seq_len": 8192, "global_batch": 512, "precision": "bf16"},
        "plan": {"tp": 8, "pp": 4, "dp": 16},
    }
    p = part(assess(Design.from_data(sites)), "placement")
    spans = {g.axis: g.widest for g in p.groups}
    assert p.pod_count == 2 and "sites" not in spans.values()
    every = {"job": {**sites["job"], "sync": {"kind": "synchronous"}}}
    p = part(assess(Design.from_data(sites | every)), "placement")
    spans = {g.axis: g.widest for g in p.groups}
    assert [axis for axis, widest in spans.items() if widest == "sites"] == ["dp"]
