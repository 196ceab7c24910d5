"""Claims that go round about large plans, each worked out by the search; the figures they are held
against are published ones."""

import pytest
from plan_claims import CASE, links, sharding_alone, tensor_across_nodes, usual_plan
from scantling import Design, assess


def test_nvlink_is_18_times_a_card_only_when_directions_are_mixed():
    """H100: 900 GB/s NVLink both ways (data sheet) against 400 Gb/s a card; H200 and A100 come to
    18 and 24."""
    found = links()
    assert found.numbers["both_over_one"] == pytest.approx(18.0) and found.numbers[
        "like_for_like"
    ] == pytest.approx(9.0)
    assert 18 <= found.numbers["both_over_one"] <= 20 and found.verdict == "holds"
    assert links("a100-80-sxm", "ib-hdr").numbers["both_over_one"] == pytest.approx(600 / 25)


def test_tensor_parallelism_across_nodes_collapses_mfu():
    """Narayanan et al. 2021 (arXiv 2104.04473), section 5.4.1: tensor parallelism up to the node,
    pipelines across; beyond it throughput falls off."""
    rows = tensor_across_nodes().numbers["by_tp"]
    mfu = [rows[k]["mfu"] for k in (8, 16, 32, 64)]
    assert mfu == sorted(mfu, reverse=True) and mfu[-1] < 0.65 * mfu[0]
    share = [rows[k]["tp_share"] for k in (8, 16, 32, 64)]
    assert share == sorted(share) and share[-1] > 0.4


def test_sharded_data_parallelism_alone_does_not_reach_16_384_devices():
    """Llama 3 (arXiv 2407.21783, section 3.3.2) and torchtitan combine it with tensor and pipeline
    parallelism beyond some thousand ranks."""
    rows = sharding_alone().numbers["by_devices"]
    assert rows[512]["alone"] > 0.8 * rows[512]["best"]  # near the best where it is small
    assert rows[16_384]["used"] == 2048  # one sequence a device is the end
    assert (
        rows[16_384]["alone"] < 0.25 * rows[16_384]["best"]
        and rows[16_384]["alone"] < 0.15 * rows[512]["alone"]
    )


def test_tp_8_pp_16_dp_128_is_near_the_best_for_16_384_h100():
    """Llama 3 ran it on 16,384 H100 at a sequence of 8,192 (arXiv 2407.21783, Table 4); as many
    ranks share a layer in the one that is taken, some by its sequence, which is the plainest within
    a tenth of the fastest."""
    found = usual_plan()
    assert found.verdict == "holds" and 0.9 <= found.numbers["ratio"] < 1.06
    assert found.numbers["best_tp"] in (4, 8) and found.numbers["best_pp"] == 16


def test_the_claims_follow_the_machine_and_are_not_written_down():
    """With the card as fast as the link, leaving the node costs next to nothing."""
    fast = {
        **CASE,
        "cluster": {**CASE["cluster"], "scale_out_gbytes_per_s_per_device": 450.0, "devices": 2048},
        "job": {**CASE["job"], "global_batch": 256},
    }
    slow = {**fast, "cluster": {**fast["cluster"], "scale_out_gbytes_per_s_per_device": 25.0}}
    at = lambda case, tp: assess(Design.from_data(case).change({"plan.tp": tp, "plan.pp": 16})).mfu  # noqa: E731
    assert at(fast, 16) / at(fast, 8) > at(slow, 16) / at(slow, 8) + 0.1
