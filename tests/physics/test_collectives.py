"""Collectives against ring algebra and published bandwidths."""

import numpy as np
import pytest
from scantling import catalogue
from scantling.physics.collectives import (
    below_line,
    curve,
    direct_s,
    exchange_s,
    far_s,
    hierarchical_s,
    link_rate,
    near_s,
    out_rate,
    relayed_s,
    ring_rate,
    ring_s,
    up_rate,
)
from scantling.physics.wires import Link, Wires, members_inside

H100 = Link(domain=8, up_bytes_per_s=450e9, out_bytes_per_s=50e9)


def test_all_gather_inside_a_domain_moves_n_minus_1_over_n():
    """nccl-tests, PERFORMANCE.md: busbw = algbw (n-1)/n for all-gather; large messages near the
    ring's rate, an all-reduce twice the time."""
    w = Wires(8, 8, H100)
    wire = 64e9 * 7 / 8 / up_rate(w)
    assert wire < ring_s(64e9, w) < 1.02 * wire
    assert ring_s(64e9, w, 2.0) == pytest.approx(2 * ring_s(64e9, w), rel=0.01)


def test_a_ring_over_nodes_uses_every_card_of_its_members():
    """Eight members a node drive eight cards together: 400 GB/s of H100 with 400 Gb/s cards, of
    which rings reach some 0.94 (331 to 382 of 400 GB/s, catalogue fabrics.csv), unless NVLink is
    slower."""
    one, eight = Wires(64, 1, H100), Wires(64, 8, H100)
    assert ring_rate(one) == pytest.approx(out_rate(one)) == pytest.approx(46.9e9, rel=0.01)
    assert ring_rate(eight) == pytest.approx(min(8 * out_rate(one), up_rate(eight)))


def test_members_of_a_group_under_others_packed_first():
    """Megatron places tp, then cp, then dp: with tp 8 on 8-device nodes each dp member sits alone;
    in a 72-device domain nine share it."""
    assert (
        members_inside(16, 8, 8) == 1
        and members_inside(16, 8, 72) == 9
        and members_inside(4, 1, 8) == 4
    )


def test_all_to_all_is_bound_by_its_slower_tier():
    near, far = Wires(8, 8, H100), Wires(64, 8, H100)
    wire = near_s(64e9 * 7 / 8, near)
    assert wire < direct_s(64e9, near) < 1.03 * wire
    wire = far_s(64e9 * 56 / 64, far)
    assert wire < direct_s(64e9, far) < 1.05 * wire
    assert wire > near_s(64e9 * 7 / 64, far)


def test_a_pair_on_a_mesh_has_one_link():
    """MI300X (ml-engineering, network/README.md): 7 links of 64 GB/s; all-reduce bus bandwidth 47.7
    GB/s over two devices, 312.9 over eight, one for every link in use."""
    chips = {
        name: catalogue.accelerator(name).mesh
        for name in (
            "mi300x",
            "mi355x",
            "gaudi2",
            "h100-sxm",
            "gb200-nvl72",
            "v100-32-sxm2",
            "tpu-v5e",
            "tpu-v5p",
        )
    }
    assert [name for name, mesh in chips.items() if mesh] == ["mi300x", "mi355x", "gaudi2"]
    link = Link(
        domain=8, up_bytes_per_s=448e9, out_bytes_per_s=50e9, mesh=1.0, up_share=0.7, up_hop_s=4e-6
    )
    assert ring_rate(Wires(8, 8, link)) == pytest.approx(312.9e9, rel=0.01)
    assert ring_rate(Wires(2, 2, link)) == pytest.approx(47.7e9, rel=0.1)
    assert link_rate(Wires(2, 2, link)) == pytest.approx(64e9)
    assert ring_rate(Wires(64, 1, link)) == out_rate(Wires(64, 1, link))


def test_deliveries_over_two_nodes_pass_the_links():
    """DeepEP V1, normal kernels on H800: 4,096 tokens x 7,168 in fp8, top 8, EP16 in 1.37 ms;
    without what the links pass on, half of that."""
    link = Link(domain=8, up_bytes_per_s=200e9, out_bytes_per_s=50e9)
    one, copies, nodes = 4096 * 7168, 16 * (1 - (15 / 16) ** 8), 2 * (1 - 0.5**8)
    w = Wires(16, 8, link)
    near, far = near_s(one * copies * 7 / 8, w), far_s(one * nodes / 2, w)
    assert far < 0.75e-3
    assert 0.9e-3 < exchange_s(8, np.maximum(near, far), w) < 1.4e-3


@pytest.mark.parametrize("group", [1, 2, 8, 64])
def test_scalars_and_columns_agree(group):
    inside = min(group, 8)
    column = ring_s(np.full(3, 1e9), Wires(np.full(3, group), np.full(3, inside), H100))
    assert np.allclose(column, ring_s(1e9, Wires(group, inside, H100)))


def test_rows_that_repeat_are_evaluated_once_and_alike():
    """Columns of plans hold runs of one split; evaluated once a run they give what each row gives
    alone."""
    size = np.repeat([1e6, 1e8, 1e9, 1e6], 50)
    ranks = np.repeat([2, 16, 16, 64], 50)
    many = ring_s(size, Wires(ranks, np.minimum(ranks, 8), H100))
    each = [ring_s(s, Wires(n, min(n, 8), H100)) for s, n in zip(size, ranks)]
    assert np.allclose(many, each, rtol=1e-12)


def test_no_factor_takes_a_share_above_the_line():
    factors = np.geomspace(0.05, 100, 50)
    shares = below_line(0.94, factors)
    assert np.all(shares <= 1) and np.all(np.diff(shares) >= 0)
    assert below_line(0.94, 1.0) == pytest.approx(0.94)
    assert below_line(0.94, 0.1) == pytest.approx(0.1 * 0.94, rel=0.15)


def test_a_hierarchy_sends_an_eighth_between_nodes_of_eight():
    """Reduce-scatter inside, all-reduce of S / m across, all-gather inside (Jia et al. 2018, arXiv
    1807.11205, section 4.2): large messages take 2 (m-1)/m S / U + 2 (d-1)/d S / m / N."""
    w, size = Wires(64, 8, H100), 64e9
    wire = 2 * 7 / 8 * size / up_rate(w) + 2 * 7 / 8 * size / 8 / out_rate(w)
    assert wire < hierarchical_s(size, w, 2.0) < 1.02 * wire


def test_tokens_that_are_relayed_leave_a_node_once():
    """DeepEP sends a token to its own index on the other node and on from there: a large exchange
    is bound by the cards, (n-m)/n S / N, as without, and starts sooner with many peers."""
    w, size = Wires(64, 8, H100), 64e9
    wire = far_s(size * 56 / 64, w)
    assert wire < relayed_s(size, w) < 1.05 * wire
    wide = Wires(512, 8, H100)
    assert relayed_s(1e5, wide) < direct_s(1e5, wide)


def test_the_bus_bandwidth_of_a_curve_is_that_of_nccl_tests():
    """nccl-tests, PERFORMANCE.md: all-reduce busbw = 2 (n-1)/n x bytes / seconds."""
    found = curve("all_reduce", Wires(64, 8, H100))
    best = np.min([found.seconds[name] for name in set(found.picked)], axis=0)
    expected = 2 * 63 / 64 * np.array(found.message_bytes) / best
    assert np.allclose(found.busbw_bytes_per_s, expected)
