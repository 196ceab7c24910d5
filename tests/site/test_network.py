"""Networks against published designs: counts, bisection, prices; and what follows for a design."""

import json
from math import comb, exp, factorial

import numpy as np
import pytest
from scantling import Design, DesignError, assess, catalogue
from scantling.catalogue.packet_switches import leaf_ports, packet_switches
from scantling.catalogue.words import TOPOLOGIES
from scantling.design.cluster_rules import build_cluster
from scantling_site import blueprint, part
from scantling_site.fabric.build import built
from scantling_site.fabric.dragonflies import dragonfly, dragonfly_plus
from scantling_site.fabric.prices import usd
from scantling_site.fabric.published_networks import published
from scantling_site.fabric.torus import near_cube, torus
from scantling_site.fabric.trees import clos, pods, rail_only
from scantling_site.network.fabric_settings import fullest_uplink

ROWS = {r["id"]: r for r in published()}
TREES = [
    r
    for r in ROWS.values()
    if r["kind"] in ("fat-tree", "rail-optimised", "multi-plane", "rail-only")
]
NDR = 50e9


def design(model="llama-3.1-405b", devices=16384, plan=None, job=None, **cluster):
    return Design.from_data(
        {
            "scantling": 1,
            "model": model,
            "cluster": {"accelerator": "h100-sxm", "devices": devices, **cluster},
            "job": {
                "seq_len": 8192,
                "global_batch": 2048,
                "precision": "bf16",
                "tokens": 15.6e12,
                **(job or {}),
            },
            "plan": plan if plan is not None else {"tp": 8, "pp": 16, "dp": 128, "cp": 1},
        }
    )


@pytest.fixture(scope="module")
def llama():
    return assess(design(scale_out="ib-ndr"))


def build(row):
    if row["kind"] == "rail-only":
        return rail_only(row["endpoints"] // row["per_node"], row["per_node"], row["radix"], NDR)
    return clos(
        row["endpoints"],
        row["radix"],
        NDR,
        planes=row["planes"],
        rails=row["per_node"] if row["kind"] == "rail-optimised" else 1,
    )


@pytest.mark.parametrize("row", TREES, ids=lambda r: r["id"])
def test_counts_equal_the_published_ones(row):
    """DGX SuperPOD H100 (table 4), B200, B300 on Spectrum and on Quantum-X800, scaling-book, cost
    sheet: 48, 96, 768, 2,560 switches and every tier and cable count that those pages print."""
    t = build(row)
    for tier in ("leaf", "spine", "core"):
        if row[tier] is not None:
            assert getattr(t, tier) == row[tier], tier
    assert t.switches == row["switches"]
    if row["leaf_spine_cables"] is not None:
        assert (
            t.cables["leaf to spine"] / row["planes"] ** (row["kind"] == "multi-plane")
            == row["leaf_spine_cables"]
        )
    if row["spine_core_cables"] is not None:
        assert t.cables["spine to core"] == row["spine_core_cables"]


@pytest.mark.parametrize("radix, two, three", [(64, 2048, 65536), (128, 8192, 524288)])
def test_reach_and_shares_of_a_folded_clos(radix, two, three):
    """k^2/2 in two tiers with 3N/k switches and 2N cables; k^3/4 in three with 5N/k and 3N
    (Al-Fares et al. 2008)."""
    for n, tiers, per, cables in ((two, 2, 3, 2), (three, 3, 5, 3)):
        t = clos(n, radix, NDR)
        assert (t.tiers, t.switches, t.all_cables, t.hops) == (
            tiers,
            per * n // radix,
            cables * n,
            2 * tiers - 1,
        )
        assert t.bisection_bytes_per_s == n / 2 * NDR
    with pytest.raises(ValueError, match="beyond three tiers"):
        clos(three + 1, radix, NDR)


def test_no_switch_has_more_cables_than_ports():
    rng = np.random.default_rng(5)
    for _ in range(300):
        k = int(rng.choice([40, 64, 128, 144]))
        n = int(rng.integers(1, k**3 // 4))
        r = float(rng.choice([1, 2, 3, 7]))
        t = clos(
            n,
            k,
            NDR,
            rails=int(rng.choice([1, 8])) if n % 8 == 0 and n < k**3 // 8 else 1,
            oversubscription=r,
            leaf_down=float(rng.choice([k // 4, np.inf])) if n < k**3 // 16 else np.inf,
        )
        for tier, p in t.ports.items():
            assert p["down"] + p["up"] <= k and p["free"] >= 0, (n, k, r, tier, p)
        assert sum(t.cables.values()) * 2 <= n + t.switches * k, (n, k, r, t)
        assert t.bisection_bytes_per_s == pytest.approx(n / 2 * NDR / r)


def test_no_pod_has_more_cables_than_ports_and_uplinks_share_out_evenly():
    rng = np.random.default_rng(6)
    for _ in range(300):
        k, r = int(rng.choice([64, 128, 144])), float(rng.choice([1, 2, 3, 7]))
        pod = int(rng.integers(2, 40)) * k // 2
        n = int(rng.integers(pod + 1, 20 * pod))
        t = pods(n, pod, k, NDR, r)
        assert sum(t.cables.values()) * 2 <= n + t.switches * k, (n, pod, k, r, t)
        assert t.ports["core"]["down"] <= k and t.ports["leaf"]["down"] + t.ports["leaf"]["up"] <= k
        assert t.cables["spine to core"] >= n / r


def test_oversubscribed_leaves():
    """48 : 12 ports of 64 are 4 : 1, 56 : 8 are 7 : 1; an odd ratio leaves no port more down than
    up allows."""
    assert (
        leaf_ports(64, 1) == (32, 32)
        and leaf_ports(64, 4) == (48, 12)
        and leaf_ports(64, 7) == (56, 8)
    )
    for k in (40, 64, 128, 144):
        for r in (1, 1.5, 2, 3, 7, 15):
            down, up = leaf_ports(k, r)
            assert down + up <= k and down <= r * up


def test_every_part_counts_the_same_leaves(each):
    """Failure domains, scheduler's request and placement speak of the network's own leaf."""
    b, cluster = blueprint(each), each.resolved.cluster
    leaf = min(b.placement.per_unit // cluster.devices_per_node, b.placement.node_count)
    rows = {x.id: x for x in b.domains.rows}
    if "leaf" in rows:
        assert rows["leaf"].nodes == leaf
    if b.scheduler.request["topology"]["unit"] == "leaf":
        assert b.scheduler.request["topology"]["leaves"] == b.placement.unit_count
    if "rack" in rows and cluster.scale_up_domain <= cluster.devices_per_node:
        assert rows["rack"].devices == min(b.placement.per_rack, b.placement.devices)


def test_metas_pods():
    """Llama 3, section 3.3.1: 16 GPUs a rack switch, 192 racks a pod of 3,072 with full bisection,
    eight pods, 1:7 above: 24K GPUs."""
    row = ROWS["meta-24k-roce"]
    t = pods(24576, 3072, 576, NDR, 7, leaf_down=16)
    assert t.leaf == row["leaf"] == 8 * 192 and t.pod_endpoints == 3072 and t.unit_endpoints == 16
    assert t.bisection_bytes_per_s == pytest.approx(24576 / 2 * NDR / row["oversubscription"])
    assert t.bisection_bytes_per_s / (24576 / 2) == pytest.approx(50e9 / 7)


def test_meta_on_a_design_whose_pods_and_ratio_are_stated():
    a = assess(
        design(
            devices=24576,
            pod_devices=3072,
            oversubscription=7,
            scale_out="rocev2-400",
            plan={"tp": 8, "pp": 16, "dp": 192},
            job={"global_batch": 1920},
        )
    )
    n = part(a, "network")
    assert (
        n.topology.kind == "pods"
        and n.topology.pod_endpoints == 3072
        and n.tiers[-1].device_bytes_per_s == pytest.approx(50e9 / 7)
    )
    assert part(a, "placement").pod_count == 8


def test_meta_from_a_design_that_says_what_stands_below_a_leaf():
    """24,576 / 16 = 1,536 rack switches (section 3.3.1), no rails."""
    stated = {"pod_devices": 3072, "oversubscription": 7, "rails": 1, "leaf_devices": 16}
    cluster, _ = build_cluster(
        {"accelerator": "h100-sxm", "devices": 24576, "scale_out": "rocev2-400", **stated}
    )
    t, why, _ = built(cluster)
    assert t.leaf == ROWS["meta-24k-roce"]["leaf"] and t.pod_endpoints == 3072, why
    assert t.unit_endpoints == 16


@pytest.mark.parametrize("rails", [1, 2, 4, 8])
def test_fewer_rails_are_the_same_tree(rails):
    """2N/k leaves and N/k spines of 2,048 cards, however the cards of a node are dealt to them."""
    cluster, _ = build_cluster(
        {"accelerator": "h100-sxm", "devices": 2048, "scale_out": "ib-ndr", "rails": rails}
    )
    t, _, _ = built(cluster)
    assert (t.leaf, t.spine, t.core, t.tiers) == (64, 32, 0, 2)


def test_a_gb200_rack_has_a_leaf_of_each_rail():
    """Eight racks of 18 trays of 4: eight leaves in each of four rail groups (DGX SuperPOD GB200,
    from recall; the number of spines is a range there)."""
    row = ROWS["superpod-gb200-1su"]
    cluster, _ = build_cluster(
        {
            "accelerator": "gb200-nvl72",
            "devices": row["devices"],
            "scale_out": "ib-ndr",
            "leaf_devices": 72,
        }
    )
    t, _, _ = built(cluster)
    assert t.leaf == row["leaf"] and t.unit_endpoints == 72


def test_fire_flyers_zones():
    """Two zones of 800 ports in two tiers of 40-port switches, joined by a few: 122 in all (SC'24,
    from recall): 60 a zone, and two between them."""
    zone = clos(800, 40, 25e9)
    assert (zone.leaf, zone.spine) == (40, 20)
    assert 0 <= ROWS["fire-flyer-2"]["switches"] - 2 * zone.switches <= 2


def test_tpu_v4_pod():
    """Jouppi et al. 2023: 64 cubes of 64, 48 optical switches with 128 of 136 ports in use, 1.5
    transceivers a chip (96 fibres a cube)."""
    t = torus((16, 16, 16), 45e9)
    assert t.circuits == ROWS["tpu-v4-pod"]["switches"] == 48 and t.endpoints == 4096
    assert t.ports["circuit switch"]["down"] == 128 <= packet_switches()["palomar"].ports
    assert t.transceivers / 4096 == 1.5 and t.cables["cube to circuit switch"] == 64 * 96
    assert t.all_cables - t.cables["cube to circuit switch"] // 2 == 3 * 4096, (
        "three links a chip, each with two ends"
    )


def test_other_tpu_pods():
    """Ironwood: 9,216 chips in 144 racks of 64, 1.5 optical transceivers a chip; v5e and v6e: 16 x
    16 chips, no optical switches (Google Cloud TPU documentation; nextbigfuture 2025-11; Hot Chips
    2025)."""
    t = torus(near_cube(9216), 100e9)
    assert (
        t.ports["circuit switch"]["down"] / 2 == 144
        and t.unit_endpoints == 64
        and t.transceivers / 9216 == 1.5
    )
    flat = torus(near_cube(256, 2), 45e9)
    assert (
        flat.circuits == 0
        and flat.all_cables == 2 * 256
        and flat.hops == 16
        and flat.bisection_bytes_per_s == pytest.approx(2 * 16 * 45e9)
    )


def test_tpu_v5p_bisection():
    """16 x 20 x 28 chips at 90 GB/s one way a link: 2 x 320 x 90 GB/s cross the cut of the longest
    side."""
    assert torus((16, 20, 28), 90e9).bisection_bytes_per_s == pytest.approx(57.6e12)
    assert (
        near_cube(8960) == (16, 20, 28)
        and near_cube(4096) == (16, 16, 16)
        and near_cube(256, 2) == (16, 16)
    )


def test_nvl72_rack():
    """GB200 SuperPOD: nine switch trays of two chips, one of each GPU's 18 links to each chip, 1.8
    TB/s both ways a GPU; more than 5,000 copper cables in the spine (NVIDIA GTC 2024); scale-out of
    72 x 50 GB/s = 3.6 TB/s, nine times an HGX H100 (scaling-book)."""
    a = assess(
        Design.from_data(
            {
                "scantling": 1,
                "model": "qwen3-235b-a22b",
                "cluster": {"accelerator": "gb200-nvl72", "devices": 576, "scale_out": "ib-ndr"},
                "job": {"seq_len": 4096, "global_batch": 1152, "precision": "bf16"},
            }
        )
    )
    up = part(a, "network").scale_up
    assert (up.devices, up.domains, up.switches, up.links) == (72, 8, 18, 72 * 18)
    assert 5000 < up.copper_cables < 5300
    assert up.bisection_bytes_per_s * 2 * 2 == pytest.approx(130e12, rel=0.01), (
        "130 TB/s in all, both directions"
    )
    h100 = part(assess(design(scale_out="ib-ndr")), "network").scale_up
    assert up.egress_bytes_per_s == pytest.approx(
        3.6e12
    ) and up.egress_bytes_per_s / h100.egress_bytes_per_s == pytest.approx(9)


def test_frontier():
    """74 groups of 32 switches of 64 ports: 16 down, 31 inside, up to 16 out, 512 a group of which
    Frontier fills 292 (Lockwood)."""
    row = ROWS["frontier"]
    t = dragonfly(row["endpoints"], row["radix"], 25e9)
    assert (
        t.leaf == row["leaf"] == 74 * 32
        and t.pod_endpoints == 512
        and t.cables["inside groups"] == 74 * 992 // 2
    )
    assert (t.ports["router"]["down"], t.ports["router"]["up"]) == (16, 31 + 16) and t.cables[
        "between groups"
    ] == 74 * 512 // 2


def test_dragonflies():
    """Balanced dragonfly of 64 ports: 262,656 cards (p = h = 16, a = 32, 513 groups); dragonfly+:
    more than a million in three hops between switches, as NVIDIA says of Quantum-2."""
    t = dragonfly(262656, 64, NDR)
    assert (
        t.reach_endpoints == 262656
        and t.leaf == 513 * 32
        and t.cables["between groups"] == 513 * 32 * 16 // 2
    )
    assert t.cables["inside groups"] == 513 * comb(32, 2)
    plus = dragonfly_plus(100_000, 64, NDR)
    assert plus.reach_endpoints == 1_049_600 and plus.hops - 1 == 3
    assert 0.5 <= plus.bisection_bytes_per_s / (100_000 / 2 * NDR) < 0.55
    with pytest.raises(ValueError, match="beyond"):
        dragonfly(262657, 64, NDR)


def test_rails_alone_save_what_their_authors_found():
    """arXiv 2307.12169: network cost 38 to 77 % lower than a full-bisection network, 32,768 GPUs in
    domains of 256; less in domains of 8."""
    full, rails = clos(32768, 128, NDR), rail_only(128, 256, 128, NDR)
    assert 0.37 <= 1 - usd(rails) / usd(full) <= 0.78
    full, rails = clos(16384, 64, NDR), rail_only(2048, 8, 64, NDR)
    assert 0.3 <= 1 - usd(rails) / usd(full) < 0.38


def test_network_share_of_an_h100_cluster():
    """The cost sheet's all-in price rises from 49.2 to 51.6 k$ a GPU where a third tier is needed;
    switches cost 36 to 50 k$."""
    two, three = clos(2048, 64, NDR), clos(32768, 64, NDR)
    extra = usd(three) / 32768 - usd(two) / 2048
    assert extra == pytest.approx(51613 - 49248, rel=0.3)
    assert 0.08 <= usd(two) / 2048 / 49248 <= 0.13


def test_link_to_card_ratio_of_the_h100(llama):
    """900 GB/s of NVLink as printed against one 400 Gb/s rail: 18 times; both one way: 9."""
    up = part(llama, "network").scale_up
    assert up.ratio_as_printed == pytest.approx(18) and up.ratio_one_way == pytest.approx(9)


def test_tensor_parallelism_rides_nvlink_and_the_rest_the_cards(llama):
    rows = {a.axis: a for a in part(llama, "network").axes}
    assert rows["tp"].tier == "scale-up" and rows["tp"].widest == "scale-up domain"
    assert rows["pp"].tier == rows["dp"].tier == "scale-out"
    for a in rows.values():
        assert (
            a.exposed_s == pytest.approx(llama.step_breakdown_s[a.axis])
            and 0.4 < a.alone_s / a.time_s < 2.5
        ), a


def test_the_alternatives_start_with_the_network_of_the_design(llama):
    n = part(llama, "network")
    assert n.alternatives[0].chosen and sum(a.chosen for a in n.alternatives) == 1
    assert n.alternatives[0].topology.switches == n.topology.switches == 1280
    kinds = {a.kind for a in n.alternatives}
    assert {"rail-optimised", "rail-only", "pods", "dragonfly+", "dragonfly"} <= kinds
    assert all(a.step_change >= -1e-9 for a in n.alternatives), (
        "nothing beats a non-blocking network"
    )


def pods_of(a):
    return {
        x.topology.oversubscription: x.step_change
        for x in part(a, "network").alternatives
        if x.kind == "pods"
    }


def test_narrow_pods_slow_many_rings_and_spare_few():
    """A ring in rank order crosses a pod's edge once, so eight rings do not feel 7:1 (why Llama 3
    ran on it); 256 rings over pods of 1,024 do."""
    few = assess(
        design(
            devices=4096,
            plan={"tp": 8, "pp": 1, "dp": 512, "sharding": "zero3"},
            model="llama-3.1-70b",
            scale_out="ib-ndr",
            job={"global_batch": 512},
        )
    )
    many = assess(
        design(
            devices=40960,
            plan={"tp": 8, "pp": 32, "dp": 160, "cp": 1},
            scale_out="ib-ndr",
            job={"global_batch": 2560},
        )
    )
    assert pods_of(few)[7.0] == 0.0 and 0 <= pods_of(many)[2.0] < pods_of(many)[7.0]


@pytest.mark.parametrize(
    "fabric, words",
    [
        ("ib-ndr", "adaptive routing"),
        ("rocev2-400", "packet spraying"),
        ("efa-v2", "spray packets"),
    ],
)
def test_routing_follows_the_fabric(fabric, words):
    n = part(assess(design(scale_out=fabric)), "network")
    assert any(words in s.choice for s in n.settings), n.settings
    assert n.provided == fabric.startswith("efa")


def test_quality_of_service_follows_the_traffic():
    """A plan whose groups stay inside one domain asks for nothing; expert exchange across nodes
    brings fan-in that rings do not have."""
    small = part(assess(design("llama-3.1-8b", 8, plan={}, job={"global_batch": 64})), "network")
    assert [s.what for s in small.settings] == ["scale-out"] and small.bursts.busy_share == 0
    moe = part(
        assess(
            design(
                "deepseek-v3",
                2048,
                plan={"tp": 1, "pp": 16, "dp": 128, "ep": 64},
                scale_out="rocev2-400",
                job={"seq_len": 4096, "global_batch": 15360},
            )
        ),
        "network",
    )
    assert moe.bursts.incast == 64 / 8 - 1 and any(s.what == "fan-in" for s in moe.settings)
    rings = part(assess(design(scale_out="rocev2-400")), "network")
    assert rings.bursts.incast == 1 and any(s.what == "congestion control" for s in rings.settings)


def test_hashed_flows_against_the_poisson_law():
    """One flow an uplink over 64 of them: P(some uplink has more than m) = 1 - (1 - P(X > m))^64,
    near one half at m = 4."""
    tail = lambda m: 1 - sum(exp(-1) / factorial(i) for i in range(m + 1))  # noqa: E731
    m = fullest_uplink(1.0, 64)
    assert 64 * tail(int(m)) < 0.5 <= 64 * tail(int(m) - 1)
    assert fullest_uplink(64, 64) < fullest_uplink(8, 64) < fullest_uplink(1, 64)


def test_peak_over_mean(llama):
    b = part(llama, "network").bursts
    assert (
        b.factor == pytest.approx(b.peak_bytes_per_s / b.mean_bytes_per_s)
        and b.factor > 1
        and b.largest == "dp"
    )
    assert b.mean_bytes_per_s * llama.step_s == pytest.approx(
        sum(r["bytes_per_step"] for r in b.rows)
    )


def test_every_kind_of_cluster_gets_a_network_in_plain_json():
    for chip, devices, kind in (
        ("tpu-v5p", 1024, "torus"),
        ("a100-80-sxm", 8, "one switch"),
        ("gb200-nvl72", 288, "rail-optimised"),
        ("mi300x", 64, "one switch"),
        ("trn2", 256, None),
    ):
        d = (
            design("llama-3.1-8b", devices, plan={}, accelerator=chip, job={"global_batch": 512})
            if chip == "h100-sxm"
            else Design.from_data(
                {
                    "scantling": 1,
                    "model": "llama-3.1-8b",
                    "cluster": {"accelerator": chip, "devices": devices},
                    "job": {"seq_len": 4096, "global_batch": 1024, "precision": "bf16"},
                }
            )
        )
        n = part(assess(d), "network")
        assert kind in (None, n.topology.kind), (chip, n.topology.kind)
        json.dumps(n.as_dict(), allow_nan=False)


def test_curves_say_how_far_they_were_off(llama):
    n = part(llama, "network")
    assert [r["judged_on"] for r in n.curve_errors] == ["NVLink4", "NDR400 IB + SHARP"]
    assert all(r["large_error"] <= 0.15 for r in n.curve_errors)
    assert {c["series"] for c in n.measured_curves} <= set(
        catalogue.collective_series()
    ) and n.measured_curves
    other = {}
    for chip, fabric in (("mi300x", "rocev2-400"), ("mi250x-gcd", "slingshot11")):
        a = assess(
            Design.from_data(
                {
                    "scantling": 1,
                    "model": "llama-3.1-8b",
                    "cluster": {"accelerator": chip, "devices": 64, "scale_out": fabric},
                    "job": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"},
                }
            )
        )
        other[chip] = part(a, "network").curve_errors
    assert [r["judged_on"] for r in other["mi300x"]] == ["xGMI", "RoCE 8x400G"] and all(
        r["large_error"] <= 0.15 for r in other["mi300x"]
    )
    assert all(r["judged_on"] is None for r in other["mi250x-gcd"]), "nobody has published one"


def test_impossible_designs_have_no_network():
    a = assess(
        Design.from_data(
            {
                "scantling": 1,
                "model": {"size": 1e12},
                "cluster": {"accelerator": "v100-16-pcie", "devices": 8},
                "job": {"seq_len": 2048, "global_batch": 64, "precision": "fp16"},
            }
        )
    )
    assert (
        a.verdict == "impossible"
        and part(a, "network") is None
        and blueprint(a).as_dict(("network", "placement"))["placement"] is None
    )


def test_sites_have_a_network_each():
    """Four sites of 8,192 are four trees of three tiers (5N/k switches each), not one of 32,768;
    between them is what the design says."""
    a = assess(
        design(
            devices=32768,
            sites=4,
            scale_out="ib-ndr",
            plan={"tp": 8, "pp": 16, "dp": 256},
            job={"global_batch": 2048},
        )
    )
    n = part(a, "network")
    one = clos(8192, 64, NDR, rails=8, kind="rail-optimised")
    assert (
        n.topology.switches == 4 * one.switches == 4 * 5 * 8192 // 64
        and n.topology.all_cables == 4 * one.all_cables
    )
    assert n.topology.bisection_bytes_per_s == one.bisection_bytes_per_s and [
        t.devices for t in n.tiers
    ][-2:] == [8192, 32768]
    assert n.tiers[-1].device_bytes_per_s == pytest.approx(
        a.resolved.cluster.site_bytes_per_s * 4 / 32768
    )


def test_beyond_every_other_topology_a_fourth_tier():
    """1,049,600 cards end a dragonfly+ of 64 ports; twice a million still has a network that keeps
    to its ports."""
    a = assess(
        design(
            devices=1_200_000,
            scale_out="ib-ndr",
            plan={"tp": 8, "pp": 16, "dp": 9375},
            job={"global_batch": 9375},
        )
    )
    t = part(a, "network").topology
    assert (
        t.kind == "pods"
        and t.tiers == 4
        and sum(t.cables.values()) * 2 <= t.endpoints + t.switches * 64
    )


def test_pods_of_more_cards_than_a_tree_holds_are_joined_by_a_fourth_tier():
    """k^3/4 cards end three tiers (Al-Fares et al. 2008): 65,536 of 64 ports, where a pod of 8,192
    devices with so many cards a node has ten million."""
    a = assess(design(scale_out="ib-ndr", nics_per_node=10_000, pod_devices=8192))
    found = part(a, "network")
    assert found.topology.tiers == 4
    assert not [x for x in found.alternatives if x.what.startswith("pods of")]


@pytest.mark.parametrize("cards", [8191, 8193, 9449, 10_000])
def test_no_pod_is_of_less_than_a_device(cards):
    """k^2/4 = 1,024 cards of two tiers of 64 ports, at so many a node of 8, are 0.8 to 1 device."""
    plan = {"tp": 8, "pp": 4, "dp": 4, "cp": 1}
    a = assess(design("llama-3.1-70b", 128, plan, scale_out="ib-ndr", nics_per_node=cards))
    whats = [x.what for x in part(a, "network").alternatives]
    assert whats and not [what for what in whats if what.startswith("pods of 0 ")]


def test_a_small_group_in_a_mesh_is_warned_of():
    """One xGMI link carries 47.7 GB/s between two MI300X, seven 313 (ml-engineering): tp 2 has a
    seventh of the wires that tp 8 has."""
    spec = {
        "scantling": 1,
        "model": "llama-3.1-70b",
        "cluster": {"accelerator": "mi300x", "devices": 64, "scale_out": "rocev2-400"},
        "job": {"seq_len": 8192, "global_batch": 512, "precision": "bf16"},
    }
    alone = {}
    for tp in (2, 8):
        n = part(assess(Design.from_data({**spec, "plan": {"tp": tp, "pp": 4}})), "network")
        alone[tp] = next(a for a in n.axes if a.axis == "tp")
        assert tp == 2 or not any("links" in note for note in n.notes)
    rate = {tp: a.bytes / a.alone_s for tp, a in alone.items()}
    assert rate[8] / rate[2] == pytest.approx(312.9 / 47.671, rel=0.15)


def seventy(**pins):
    plan = {"tp": 8, "pp": 8, **pins}
    return design("llama-3-70b", 4096, plan, {"global_batch": 512}, scale_out="ib-ndr")


@pytest.mark.parametrize("devices, leaf, spine", [(248, 8, 4), (504, 16, 8)])
def test_a_design_gets_the_switches_of_its_reference_architecture(devices, leaf, spine):
    """DGX SuperPOD H100 of one and two units (RA-11333-001, table 4): 8 + 4 and 16 + 8 switches,
    256 and 512 cables between them."""
    d = design("llama-3.1-8b", devices, {"tp": 2}, {"global_batch": devices}, scale_out="ib-ndr")
    for topology_asked in (None, "rail-optimized"):
        n = part(assess(d.change({"cluster.topology": topology_asked})), "network")
        assert (n.topology.leaf, n.topology.spine) == (leaf, spine)
        assert n.topology.cables["leaf to spine"] == 32 * leaf
        totals = {row["what"]: row["amount"] for row in n.totals}
        assert totals["leaf switches"] == leaf and len(totals) <= 20


def test_every_topology_can_be_asked_for():
    d = seventy()
    kinds = {}
    for asked in TOPOLOGIES:
        a = assess(d.change({"cluster.topology": asked}))
        kinds[asked] = part(a, "network").topology.kind
    assert kinds == {
        "fat-tree": "fat-tree",
        "rail-optimized": "rail-optimised",
        "rail-only": "rail-only",
        "multi-plane": "fat-tree",
        "dragonfly": "dragonfly",
        "dragonfly+": "dragonfly+",
    }
    far = assess(d.change({"cluster.topology": "rail-only", "cluster.devices": 1_000_000}))
    with pytest.raises(DesignError, match="out of reach"):
        part(far, "network")


@pytest.mark.parametrize("topology", [t for t in TOPOLOGIES if t])
@pytest.mark.parametrize("ratio", [2.0, [1, 2], [1, 1, 4]])
def test_a_taper_that_the_step_counts_is_drawn(topology, ratio):
    """Half the links above (or a quarter): half the bisection and no dearer, in trees as in
    dragonflies, whose groups are joined by so many fewer links."""
    base = {"accelerator": "h100-sxm", "devices": 16384, "topology": topology}
    whole, narrow = (
        built(build_cluster(one)[0]).topology
        for one in ({**base, "oversubscription": 1.0}, {**base, "oversubscription": ratio})
    )
    by = np.prod(ratio)
    assert narrow.oversubscription == pytest.approx(by * whole.oversubscription)
    assert narrow.bisection_bytes_per_s == pytest.approx(whole.bisection_bytes_per_s / by)
    assert usd(narrow) < usd(whole)


@pytest.mark.parametrize("leaf", [4, 8])
def test_leaves_too_small_for_three_tiers_are_refused_in_one_line(leaf):
    """k^3 / 4 endpoints of a fat tree (Al-Fares et al. 2008) hold for full leaves: with one card of
    each rail below a leaf 64 ports reach 2,048 cards."""
    d = Design.from_data(
        {
            "model": "llama-3.1-405b",
            "cluster": {
                "accelerator": "h100-sxm",
                "devices": 131072,
                "pod_devices": 4096,
                "oversubscription": 3.0,
                "leaf_devices": leaf,
            },
            "job": {"tokens": 1e13},
        }
    )
    with pytest.raises(DesignError, match=f"leaf_devices {leaf}.*more devices below a leaf"):
        part(assess(d), "network")


def test_ratios_of_tiers_narrow_where_they_stand():
    """Cards to leaves, leaves to spines, spines to cores: the step sees where it narrows, the
    network has the links that are left (Meta's 24K cluster: 1 : 7 above pods of 3,072)."""
    d = seventy()
    at = {}
    for ratios in ([1, 1, 1], [1, 1, 4], [1, 3, 1], [2]):
        a = assess(d.change({"cluster.oversubscription": ratios}))
        at[tuple(ratios)] = a.step_s, part(a, "network").topology, a.resolved.cluster
    step, flat, _ = at[1, 1, 1]
    above, t, cluster = at[1, 1, 4]
    assert t.cables["spine to core"] * 4 == flat.cables["spine to core"]
    assert cluster.pod_devices == 64 * 64 // 4 and above >= step
    leaf, t, cluster = at[1, 3, 1]
    assert t.ports["leaf"]["down"] == 3 * t.ports["leaf"]["up"] == 48
    assert cluster.pod_devices == 48 * 8 and leaf > step
    assert at[2,][2].scale_out_bytes_per_s == 25e9


def test_rails_spread_the_cards_of_a_node():
    d = seventy()
    n = part(assess(d.change({"cluster.rails": 4})), "network")
    assert n.rails == 4 and n.topology.unit_endpoints == 32 * 4
    with pytest.raises(DesignError, match="divisor of the 8 cards"):
        assess(d.change({"cluster.rails": 3}))


def test_switches_that_reduce_shorten_the_step_of_unsharded_gradients():
    """Data-parallel alone, and gradients whole: the switches take part (SHARP)."""
    d = seventy(sharding="none", recompute="full")
    off, on = (assess(d.change({"cluster.in_network_reduction": x})).step_s for x in (False, True))
    assert on < off


def test_slices_beyond_one_are_counted_all():
    """TPU v5p slices of at most 8,960 chips: 16,384 are two of 8,192 (128 cubes of 64 each, 96
    fibres a cube), joined by the hosts' network."""
    d = design("llama-3-70b", 16_384, {}, {"global_batch": 4096}).change(
        {"cluster.accelerator": "tpu-v5p"}
    )
    n = part(assess(d), "network")
    assert n.topology.endpoints == 2 * 8192
    assert n.topology.cables["cube to circuit switch"] == 2 * 128 * 96
    one = torus(near_cube(8192), n.topology.port_bytes_per_s)
    assert n.topology.circuits == 2 * one.circuits
    assert n.topology.bisection_bytes_per_s == one.bisection_bytes_per_s


@pytest.mark.parametrize("chip, pods", [("tpu-v4", 2), ("tpu-v5p", 1), ("tpu-v7x", 1)])
def test_slices_of_one_pod_share_its_optical_switches(chip, pods):
    """A v4 pod of 4,096 chips has 48 (Jouppi et al. 2023, section 2), whatever slices are cut from
    it; 8,192 chips in slices of 512 are two such pods, and part of one of v5p or Ironwood."""
    d = design("llama-3-70b", 8192, {}, {"global_batch": 4096})
    d = d.change({"cluster.accelerator": chip, "cluster.scale_up_domain": 512})
    n = part(assess(d), "network").topology
    whole = torus(near_cube(8192 // pods), n.port_bytes_per_s)
    assert n.circuits == pods * whole.circuits == 96
    assert n.ports["circuit switch"] == whole.ports["circuit switch"]
    assert n.cables["cube to circuit switch"] == 128 * 96


def test_sites_of_unequal_size_have_a_network_each():
    """Two and one tiers: 2N/k leaves and N/k spines of 768 cards, and of 256."""
    sites = [{"devices": 768}, {"devices": 256}]
    d = design(
        "llama-3-70b", 1024, {"tp": 8}, {"global_batch": 512}, scale_out="ib-ndr", sites=sites
    )
    t = part(assess(d), "network").topology
    each = [clos(n, 64, NDR, rails=8, kind="rail-optimised") for n in (768, 256)]
    assert t.switches == sum(one.switches for one in each)
    assert t.all_cables == sum(one.all_cables for one in each)
