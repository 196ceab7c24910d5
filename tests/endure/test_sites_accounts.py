"""Several datacentres in the headline goodput, and the three ways of counting a failure."""

import numpy as np
import pytest
from scantling.design.cluster_rules import build_cluster
from scantling.endure import elastic, goodput
from scantling.endure.reliability import endure, finish


def run(sites=1, devices=16_384, step_s=6.5, between=None, **features):
    spec = {"accelerator": "h100-sxm", "devices": devices, "sites": sites} | (
        {"site_gbytes_per_s": between} if between else {}
    )
    cluster = build_cluster(spec)[0]
    return endure(
        cluster,
        {"preset": "llama3"},
        checkpoint_bytes=405e9 * 14,
        state_bytes_per_device=405e9 * 14 / devices,
        step_s=step_s,
        **features,
    )


def test_sites_move_the_headline():
    one, two, four = run(), run(2), run(4)
    assert one.badput["sites"] == 0 and one.sites == 1
    assert one.goodput > two.goodput > four.goodput
    for e in (one, two, four):
        assert e.goodput + sum(e.badput.values()) == pytest.approx(1, abs=1e-9)
    said = next(a for a in two.assumed if a.field == "cluster.sites")
    assert "every 100 steps" in said.why and "specialist" in said.why


def test_the_exchange_is_the_ring_all_reduce_of_fp32_gradients():
    """Bytes per outer step and site: 2 (s - 1) / s x params x 4 (DiLoCo, arXiv 2311.08105); 405B
    over 100 Gbit/s: 130 s."""
    way = elastic.apart(405e9, 6.5, 2)
    assert way["sync_s"] == pytest.approx(405e9 * 4 / 12.5e9)
    assert way["share"] == pytest.approx(way["sync_s"] / (100 * 6.5 + way["sync_s"]))
    assert run(2).badput["sites"] == pytest.approx(way["share"], rel=0.01)


def test_the_rate_between_the_sites_is_the_designs():
    """Eight waves instead of one: an exchange of 16.2 s instead of 130 s; without several sites
    nothing is assumed about it."""
    cluster, assumed = build_cluster({"accelerator": "h100-sxm", "devices": 64, "sites": 2})
    assert (
        next(a.value for a in assumed if a.field == "cluster.site_gbytes_per_s")
        == cluster.site_bytes_per_s / 1e9
        == 12.5
    )
    assert not [
        a
        for a in build_cluster({"accelerator": "h100-sxm", "devices": 64})[1]
        if "site_g" in a.field
    ]
    assert run(2, between=100).badput["sites"] == pytest.approx(16.2 / (650 + 16.2), rel=0.01)
    assert "over 100 GB/s (16 s each" in next(
        a.why for a in run(2, between=100).assumed if a.field == "cluster.sites"
    )


def test_what_is_averaged_are_the_parameters_whatever_the_optimizer_keeps():
    assert run(2, params=405e9).badput["sites"] == pytest.approx(run(2).badput["sites"])
    assert run(2, params=40.5e9).badput["sites"] == pytest.approx(13 / (650 + 13), rel=0.01)


def test_synchronous_steps_over_sites_lose_nearly_everything():
    """An exchange of 130 s for each step of 6.5 s, and an edge cut off 10 h in 1,710 (IMC'18,
    median)."""
    way = elastic.apart(405e9, 6.5, 2)
    assert way["every_step_share"] == pytest.approx(
        1 - 6.5 / (6.5 + 129.6) / (1 + 2 * 10 / 1710), rel=1e-3
    )


def test_sites_that_restart_alone_lose_less_to_each_failure():
    one, two = run(), run(2)
    lost = lambda e: float(e.badput["lost work"] + e.badput["restart"] + e.badput["detection"])  # noqa: E731
    assert lost(two) / (1 - two.badput["sites"]) < 0.6 * lost(one)


def test_simulation_bears_the_sites_out():
    e = run(2)
    found = finish(e, 20 * 86_400.0, replicas=200, seed=4)
    assert found["days_p50"] == pytest.approx(20 / float(e.goodput), rel=0.02)


def test_more_sites_over_many_device_counts_at_once():
    cluster = build_cluster({"accelerator": "h100-sxm", "devices": 16_384, "sites": 3})[0]
    n = np.array([1024, 8192, 65_536])
    e = endure(
        cluster,
        {"preset": "llama3"},
        checkpoint_bytes=np.full(3, 1e12),
        state_bytes_per_device=1e12 / n,
        step_s=10.0,
        devices=n,
    )
    assert e.goodput.shape == (3,) and np.all(np.diff(e.goodput) < 0)


def test_metas_44_percent_is_linear_accounting():
    """18 min between failures, 10 min each: 44 % effective (FT-HSDP, arXiv 2602.00277); 64 % where
    the clock stands while the job is down."""
    at = {
        k: float(goodput.shares(1080.0, 0.0, 1e-6, restart_s=600.0, accounts=k)["useful"])
        for k in goodput.ACCOUNTS
    }
    assert at["linear"] == pytest.approx(0.444, abs=0.001) and at["renewal"] == pytest.approx(
        0.643, abs=0.001
    )
    assert at["exact"] == pytest.approx(np.exp(-600 / 1080), rel=1e-3)  # a restart can fail too


def test_accounts_agree_where_failures_are_rare_and_order_where_not():
    rare = [
        float(
            goodput.shares(
                1e7, 1.0, 3000.0, durable_s=30.0, restart_s=300.0, down_s=180.0, accounts=k
            )["useful"]
        )
        for k in goodput.ACCOUNTS
    ]
    assert max(rare) - min(rare) < 1e-6
    exact, renewal, linear = (
        float(
            goodput.shares(
                1500.0, 1.0, 60.0, durable_s=30.0, restart_s=300.0, down_s=180.0, accounts=k
            )["useful"]
        )
        for k in goodput.ACCOUNTS
    )
    assert linear < exact < renewal


def test_shares_sum_to_one_under_every_account():
    for k in goodput.ACCOUNTS:
        for m in (50.0, 1000.0, 1e5):
            parts = goodput.shares(
                m, 2.0, 100.0, durable_s=10.0, restart_s=200.0, down_s=60.0, accounts=k
            )
            assert sum(parts.values()) == pytest.approx(1) and all(v >= 0 for v in parts.values())


def test_one_switch_for_the_whole_endurance():
    exact, linear = run(), run(accounts="linear")
    assert linear.goodput < exact.goodput and linear.goodput + sum(
        linear.badput.values()
    ) == pytest.approx(1)
    with pytest.raises(ValueError, match="exact, renewal, linear"):
        run(accounts="best")
