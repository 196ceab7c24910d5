"""Collectives against ring algebra and published bandwidths."""

import numpy as np
import pytest
from scantling import catalogue
from scantling.physics.collectives import (
    Tiers,
    all_gather_s,
    all_to_all_s,
    members_inside,
    ring_rate,
)

H100 = Tiers(8, 450e9, 0.0, 50e9, 0.0)


def test_all_gather_inside_a_domain_moves_n_minus_1_over_n():
    """nccl-tests, PERFORMANCE.md: busbw = algbw (n-1)/n for all-gather."""
    assert all_gather_s(8e9, 8, 8, H100) == pytest.approx(8e9 * 7 / 8 / 450e9)


def test_a_ring_over_nodes_uses_every_card_of_its_members():
    """Eight members a node drive eight cards together: 400 GB/s for H100 with 400 Gb/s cards, below
    NVLink's 450."""
    assert ring_rate(H100, 64, 8) == pytest.approx(400e9)
    assert ring_rate(H100, 64, 1) == pytest.approx(50e9)


def test_members_of_a_group_under_others_packed_first():
    """Megatron places tp, then cp, then dp: with tp 8 on 8-device nodes each dp member sits alone;
    in a 72-device domain nine share it."""
    assert (
        members_inside(16, 8, 8) == 1
        and members_inside(16, 8, 72) == 9
        and members_inside(4, 1, 8) == 4
    )


def test_all_to_all_is_bound_by_its_slower_tier():
    near = all_to_all_s(1e9, 8, 8, H100)
    far = all_to_all_s(1e9, 64, 8, H100)
    assert near == pytest.approx(1e9 * 7 / 8 / 450e9) and far == pytest.approx(1e9 * 56 / 64 / 50e9)


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
    tiers = Tiers(8, 0.7 * 448e9, 0.0, 50e9, 0.0, 1.0)
    assert ring_rate(tiers, 8, 8) == pytest.approx(312.9e9, rel=0.01) and ring_rate(
        tiers, 2, 2
    ) == pytest.approx(47.7e9, rel=0.1)
    assert ring_rate(tiers, 64, 1) == pytest.approx(50e9)


def test_deliveries_over_two_nodes_pass_the_links():
    """DeepEP V1, normal kernels on H800: 4,096 tokens x 7,168 in fp8, top 8, EP16 in 1.37 ms;
    without what the links pass on, half of that."""
    tiers = Tiers(8, 160e9, 0.0, 44e9, 0.0)  # what DeepEP reaches on one node and over the cards
    one, copies, nodes = 4096 * 7168, 16 * (1 - (15 / 16) ** 8), 2 * (1 - 0.5**8)
    took = [
        float(all_to_all_s(one * copies, 16, 8, tiers, copies_out=one * nodes / 2, relayed=r))
        for r in (0.0, 1.0)
    ]
    assert took[0] < 0.75e-3 and 0.9e-3 < took[1] < 1.4e-3


@pytest.mark.parametrize("group", [1, 2, 8, 64])
def test_scalars_and_columns_agree(group):
    column = all_gather_s(np.full(3, 1e9), np.full(3, group), np.full(3, min(group, 8)), H100)
    assert np.allclose(column, all_gather_s(1e9, group, min(group, 8), H100))
