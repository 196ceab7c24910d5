"""Clusters built from a design's mapping: known machines come out as their owners describe them,
and every gap is said."""

from __future__ import annotations

import math

import pytest
from scantling import catalogue
from scantling.base.errors import DesignError
from scantling.design.cluster_rules import build_cluster
from scantling.design.design import Design
from scantling.design.replaced_rows import (
    ACCELERATOR_OVERRIDES,
    resolve_accelerator,
    resolve_fabric,
)
from scantling.design.resolve import resolve
from scantling.design.schema import ClusterSpec

GB = 1e9


def build(**spec):
    return build_cluster(spec)[0]


def said(**spec):
    return {a.field: a for a in build_cluster(spec)[1]}


def test_dgx_h100_superpod():
    """DGX H100: 8 GPUs at 450 GB/s a direction, 8 NDR ports, 2 TB, 10.2 kW; the scaling book puts
    node egress at 400 GB/s."""
    c = build(accelerator="h100-sxm", devices=16384)
    assert (c.nodes, c.devices_per_node, c.scale_up_domain, c.nics_per_node) == (2048, 8, 8, 8)
    assert c.scale_up_bytes_per_s == 450 * GB
    assert c.scale_out_bytes_per_s == 50 * GB
    assert c.scale_out_bytes_per_s * c.devices_per_node == 400 * GB
    assert c.node_power_w == 10200
    assert c.host_memory_bytes == 2048 * GB


def test_selene():
    """Megatron-LM 2021: DGX A100 80GB with 8 HDR ports, 25 GB/s a GPU."""
    c = build(accelerator="a100-80-sxm", devices=3072, scale_out="ib-hdr")
    assert c.scale_out_bytes_per_s == 25 * GB
    assert c.scale_up_bytes_per_s == 300 * GB


def test_jean_zay():
    """BLOOM: 8 A100 a node, four Omni-Path links of 100 Gb/s: 6.25 GB/s a GPU."""
    c = build(accelerator="a100-80-sxm", devices=384, scale_out="omnipath", nics_per_node=4)
    assert c.scale_out_bytes_per_s == 6.25 * GB
    assert c.nodes == 48


def test_gb200_racks():
    """GB200 NVL72: 4 GPUs a tray, 72 a rack, rack egress 72 x 50 GB/s = 3.6 TB/s (scaling book)."""
    c = build(accelerator="gb200-nvl72", devices=144)
    assert (c.devices_per_node, c.scale_up_domain, c.nodes) == (4, 72, 36)
    assert c.scale_up_bytes_per_s == 900 * GB
    assert 72 * c.scale_out_bytes_per_s == 3.6e12


def test_tpu_v5p():
    """v5p: 16x20x28 pod, 6.25 GB/s of data-centre network a chip (25 GB/s a 4-chip host), six links
    of 90 GB/s one way."""
    c = build(accelerator="tpu-v5p", devices=6144)
    assert c.scale_up_domain == 6144
    assert c.scale_out == "dcn-tpu"
    assert c.scale_out_bytes_per_s == 6.25 * GB
    assert c.scale_up_bytes_per_s == 540 * GB
    assert build(accelerator="tpu-v5p", devices=17920).scale_up_domain == 8960
    assert build(accelerator="tpu-v5e", devices=1024).scale_up_domain == 256


def test_frontier():
    """OLCF: 4 MI250X and four 25 GB/s Slingshot ports a node; a framework sees 8 devices of 64
    GB."""
    whole, half = build(accelerator="mi250x", devices=4), build(accelerator="mi250x-gcd", devices=8)
    assert whole.scale_out_bytes_per_s == 25 * GB
    assert half.scale_out_bytes_per_s == 12.5 * GB
    assert whole.nodes == half.nodes == 1
    assert half.accelerator.hbm_usable_bytes < 70e9 < whole.accelerator.hbm_usable_bytes


@pytest.mark.parametrize(
    ("accelerator", "network", "per_device"),
    [
        ("h100", "efa-v2", 50),
        ("h200", "efa-v3", 50),
        ("b200", "efa-v4", 50),
        ("a100-40", "efa-v1", 6.25),
        ("h100", "gcp-tcpx", 12.5),
        ("h100", "gcp-tcpxo", 25),
        ("b300", "ib-xdr", 100),
        ("mi300x", "roce", 50),
    ],
)
def test_cloud_instances(accelerator, network, per_device):
    """Network of the instance as its cloud prints it: p5 3,200 Gb/s, p4d 400, a3-high 800, a3-mega
    1,600, DGX B300 6,400."""
    assert (
        build(accelerator=accelerator, devices=64, scale_out=network).scale_out_bytes_per_s
        == per_device * GB
    )


def test_eight_v100_without_nvlink():
    c = build(accelerator="v100-16-pcie", devices=8)
    assert c.scale_up == "pcie3"
    assert c.scale_up_domain == 8
    assert c.nodes == 1
    assert c.scale_up_bytes_per_s < 16 * GB
    assert c.accelerator.hbm_usable_bytes < 17e9
    assert "no NVLink" in said(accelerator="v100-16-pcie", devices=8)["cluster.scale_up_domain"].why


def test_two_hundred_gigabit_per_gpu_or_per_node():
    per_gpu = build(accelerator="a100-80-sxm", devices=1024, scale_out="ib-hdr")
    per_node = build(accelerator="a100-80-sxm", devices=1024, scale_out="ib-hdr", nics_per_node=1)
    assert per_gpu.scale_out_bytes_per_s == 8 * per_node.scale_out_bytes_per_s == 25 * GB
    # a faster fabric than the node's own keeps the node's number of ports
    assert (
        build(accelerator="h100", devices=64, scale_out="ib-hdr").scale_out_bytes_per_s == 25 * GB
    )


def test_ethernet_belongs_to_the_host():
    c = build(accelerator="h100", devices=64, scale_out="ethernet")
    assert c.nics_per_node == 1
    assert c.scale_out_bytes_per_s == 12.5 * GB / 8
    assert c.scale_out_latency_s > build(accelerator="h100", devices=64).scale_out_latency_s


def test_stated_rate_wins():
    c = build(
        accelerator="h100", devices=64, scale_out="ib-ndr", scale_out_gbytes_per_s_per_device=37.5
    )
    assert c.scale_out_bytes_per_s == 37.5 * GB


def test_nothing_assumed_when_all_is_given():
    given = dict(
        accelerator="h100-sxm",
        devices=64,
        devices_per_node=8,
        scale_up_domain=8,
        scale_out="ib-ndr",
        scale_out_gbytes_per_s_per_device=50,
        oversubscription=2,
        sites=1,
        nics_per_node=8,
        topology="rail-optimized",
        rails=8,
        delivery=[{"day": 0, "devices": 64}],
        pod_devices=64,
        host_memory_gb=2048,
        nvme_gb=0,
        storage="lustre",
        in_network_reduction=False,
        leaf_devices=32,
    )
    cluster, assumed = build_cluster(given)
    assert {a.field for a in assumed} == {"cluster.node_power_w"}
    assert cluster.oversubscription == 2
    assert cluster.nvme_bytes == 0
    assert cluster.storage == "lustre"


def test_every_gap_is_said_with_its_rule():
    cluster, assumed = build_cluster({"accelerator": "h100-sxm", "devices": 64})
    fields = {a.field.removeprefix("cluster.") for a in assumed}
    optional = set(ClusterSpec.model_fields) - {
        "accelerator",
        "devices",
        "node",
        "in_network_reduction",
        "measured",
        "storage_client_gbytes_per_s",  # as fast as the store is where nobody measured it
    }
    assert optional - {"site_gbytes_per_s", "site_rtt_ms"} <= fields  # one site: nothing between
    several = {
        a.field for a in build_cluster({"accelerator": "h100-sxm", "devices": 64, "sites": 2})[1]
    }
    assert "cluster.site_gbytes_per_s" in several
    assert all(a.why for a in assumed)
    assert cluster.storage in catalogue.storages()


def test_partial_last_node_is_legal():
    assert build(accelerator="h100", devices=20).nodes == 3


def test_smaller_nodes_take_their_share():
    c = build(accelerator="h100-sxm", devices=64, devices_per_node=4)
    assert (c.scale_up_domain, c.nics_per_node) == (4, 4)
    assert c.host_memory_bytes == 1024 * GB
    assert c.scale_out_bytes_per_s == 50 * GB
    assert build(accelerator="v100-32-sxm2", devices=64, devices_per_node=16).scale_up_domain == 16


def test_like_changes_figures():
    """The 96 GB H100 of a custom design keeps what is not named; usable capacity moves with the
    name on the box."""
    base = catalogue.accelerator("h100-sxm")
    c = build(accelerator={"like": "h100-sxm", "hbm_gb": 96, "tdp_w": 500}, devices=8)
    assert c.accelerator.hbm_bytes == 96 * GB
    assert c.accelerator.tdp_w == 500
    assert c.accelerator.hbm_usable_bytes == pytest.approx(base.hbm_usable_bytes * 96 / 80)
    assert c.accelerator.bf16_flops == base.bf16_flops
    faster = build(accelerator={"like": "h100-sxm", "link_gbytes_per_s": 900}, devices=8)
    assert faster.scale_up_bytes_per_s == 900 * GB
    assert faster.accelerator.p2p_bytes_per_s == pytest.approx(2 * base.p2p_bytes_per_s)
    network = build(
        accelerator="h100",
        devices=16,
        scale_out={"like": "ib-ndr", "port_gbits_per_s": 800, "latency_us": 2},
    )
    assert network.scale_out_bytes_per_s == 100 * GB
    assert network.scale_out_latency_s == pytest.approx(2e-6)


@pytest.mark.parametrize("field", sorted(set(ACCELERATOR_OVERRIDES) - {"scale_up_domain"}))
def test_every_override_reaches_its_field(field):
    target, factor = ACCELERATOR_OVERRIDES[field]
    c = build(accelerator={"like": "b200-sxm", field: 123.5}, devices=8)
    assert getattr(c.accelerator, target) == pytest.approx(123.5 * factor)


def test_a_name_of_ones_own_is_text_on_one_line():
    names = "\u202egnp.exe\x1b[31m\n", "x" * 10_000
    for name in names:
        chip = resolve_accelerator({"like": "h100-sxm", "name": name})
        wire = resolve_fabric({"like": "ib-ndr", "name": name})
        for shown in (chip.name, wire.name):
            assert shown.isprintable() and 0 < len(shown) <= 60


def test_in_network_reduction_is_asked_for():
    assert not build(accelerator="h100", devices=64, scale_out="ib-ndr").in_network_reduction
    assert build(
        accelerator="h100", devices=64, scale_out="ib-ndr", in_network_reduction=True
    ).in_network_reduction
    assert not build(
        accelerator="h100", devices=64, scale_out="eth-100", in_network_reduction=True
    ).in_network_reduction


@pytest.mark.parametrize(
    ("spec", "field", "nearest"),
    [
        ({"devices": 8}, "cluster.accelerator", None),
        ({"accelerator": "h100"}, "cluster.devices", None),
        ({"accelerator": "h1000", "devices": 8}, "cluster.accelerator", "h100-sxm"),
        ({"accelerator": "h100", "devices": 0}, "cluster.devices", None),
        ({"accelerator": "h100", "devices": -8}, "cluster.devices", None),
        ({"accelerator": "h100", "devices": 8.5}, "cluster.devices", None),
        ({"accelerator": "h100", "devices": "many"}, "cluster.devices", None),
        ({"accelerator": "h100", "devices": [8]}, "cluster.devices", None),
        ({"accelerator": "h100", "devices": True}, "cluster.devices", None),
        ({"accelerator": "h100", "devices": float("nan")}, "cluster.devices", None),
        ({"accelerator": "h100", "device": 8}, "cluster.device", "cluster.devices"),
        (
            {"accelerator": "h100", "devices": 8, "oversubscription": 0.5},
            "cluster.oversubscription",
            None,
        ),
        ({"accelerator": "h100", "devices": 8, "scale_out": "nvlink4"}, "cluster.scale_out", None),
        ({"accelerator": "h100", "devices": 8, "storage": "luster"}, "cluster.storage", None),
        ({"accelerator": "h100", "devices": 8, "node": "dgx-a100"}, "cluster.node", None),
        (
            {"accelerator": {"like": "h100", "hbm": 96}, "devices": 8},
            "cluster.accelerator.hbm",
            None,
        ),
        ({"accelerator": {"hbm_gb": 96}, "devices": 8}, "cluster.accelerator.like", None),
        (
            {"accelerator": {"like": "h100", "hbm_gb": -1}, "devices": 8},
            "cluster.accelerator.hbm_gb",
            None,
        ),
        (
            {
                "accelerator": "h100",
                "devices": 8,
                "scale_out": {"like": "ib-ndr", "efficiency": 1.5},
            },
            "cluster.scale_out.efficiency",
            None,
        ),
        (
            {"accelerator": "h100", "devices": 8, "host_memory_gb": -1},
            "cluster.host_memory_gb",
            None,
        ),
    ],
)
def test_wrong_clusters_name_their_field(spec, field, nearest):
    with pytest.raises(DesignError) as e:
        resolve(Design.from_data({"model": "llama-3.1-8b", "cluster": spec, "job": {}}))
    assert e.value.field == field
    assert "\n" not in str(e.value)
    if nearest:
        assert e.value.nearest == nearest


def test_peak_by_precision():
    h100, v100 = catalogue.accelerator("h100"), catalogue.accelerator("v100")
    assert h100.peak_flops("bf16") == 989e12
    assert {
        h100.peak_flops(p) for p in ("fp8", "fp8-row", "fp8-current", "fp8-block", "mxfp8")
    } == {1979e12}
    assert v100.peak_flops("fp16") == 125e12
    assert catalogue.accelerator("gb200").peak_flops("nvfp4") == 10e15
    for chip, precision in (
        (v100, "bf16"),
        (h100, "nvfp4"),
        (h100, "fp7"),
        (catalogue.accelerator("a100"), "fp8"),
    ):
        with pytest.raises(DesignError) as e:
            chip.peak_flops(precision)
        assert e.value.field == "job.precision" and "bf16" in e.value.allowed or chip is v100


COMPLETE = sorted(id for id, chip in catalogue.accelerators().items() if not chip.unpublished)


@pytest.mark.parametrize("id", COMPLETE)
def test_every_accelerator_makes_a_cluster(id):
    c = build(accelerator=id, devices=1024)
    assert c.nodes >= 1
    assert c.scale_out_bytes_per_s > 0
    assert c.scale_up_bytes_per_s >= 10 * GB
    assert 0 < c.scale_out_efficiency <= 1
    assert 0 < c.scale_up_efficiency <= 1
    assert 0.5e-6 <= c.scale_up_latency_s < c.scale_out_latency_s <= 1e-4
    assert c.host_memory_bytes > 0
    assert c.nvme_bytes > 0
    assert math.isnan(c.node_power_w) or 500 < c.node_power_w < 40000
    assert c.scale_up_bytes_per_s >= c.scale_out_bytes_per_s, (
        "a device talks no faster outside its domain than inside"
    )


@pytest.mark.parametrize("id", sorted(catalogue.fabrics("scale-out")))
def test_every_fabric_makes_a_cluster(id):
    c = build(accelerator="h100", devices=1024, scale_out=id)
    assert c.scale_out == id and 1 * GB < c.scale_out_bytes_per_s <= 100 * GB or id in ("eth-25",)


@pytest.mark.parametrize(
    ("fabric", "said"),
    [("ib-ndr", "all-reduce of unsharded gradients"), ("rocev2-400", "do not reduce")],
)
def test_reducing_switches_say_what_they_change(fabric, said):
    cluster, assumed = build_cluster(
        {
            "accelerator": "h100-sxm",
            "devices": 64,
            "scale_out": fabric,
            "in_network_reduction": True,
        }
    )
    assert cluster.in_network_reduction == (fabric == "ib-ndr")
    assert said in next(a.why for a in assumed if a.field == "cluster.in_network_reduction")


def test_devices_that_do_not_fill_a_node_have_what_stands_there():
    """One H100 NVL beside 744 GB of host memory has all of it, not an eighth (LLaMA-Factory issue
    6755); of a catalogue's node it is thought to have its share."""
    c = build(accelerator="h100-nvl", devices=1, host_memory_gb=744)
    assert (c.devices_per_node, c.nodes, c.host_memory_bytes) == (1, 1, 744 * GB)
    for chip in ("h100-sxm", "rtx4090", "gb200-nvl72", "tpu-v5p"):  # with a node's row and without
        whole, one = (build(accelerator=chip, devices=n) for n in (144, 1))
        assert (one.devices_per_node, one.nodes) == (1, 1)
        for field in ("host_memory_bytes", "nvme_bytes"):
            of_each = getattr(whole, field) / whole.devices_per_node
            assert getattr(one, field) == pytest.approx(of_each)
