"""Several datacentres in the headline goodput, and the three ways of counting a failure."""

from dataclasses import replace

import closed_forms
import numpy as np
import pytest
from scantling.design.cluster import Sync
from scantling.design.cluster_rules import build_cluster
from scantling.endure import goodput
from scantling.endure.reliability import endure, finish


def run(sites=1, devices=16_384, step_s=6.5, sync=None, **features):
    spec = {"accelerator": "h100-sxm", "devices": devices, "sites": sites}
    cluster = replace(build_cluster(spec)[0], sync=sync or Sync())
    return endure(
        cluster,
        {"preset": "llama3"},
        checkpoint_bytes=405e9 * 14,
        state_bytes_per_device=405e9 * 14 / devices,
        step_s=step_s,
        **features,
    )


def test_sites_that_restart_alone_lose_less_to_each_failure():
    one, two, four = run(), run(2), run(4)
    lost = lambda e: float(e.badput["lost work"] + e.badput["restart"] + e.badput["detection"])  # noqa: E731
    assert lost(two) < 0.6 * lost(one) and lost(four) < 0.6 * lost(two)
    for e in (one, two, four):
        assert e.goodput + sum(e.badput.values()) == pytest.approx(1, abs=1e-9)
        assert e.badput["sites"] == 0 and e.alone == e.sites


def test_a_site_that_trains_on_its_own_lives_as_so_many_devices_do():
    """17 s of collectives at 16,384 devices, 200 s at 98,304 (FT-HSDP): sixteen sites start, save,
    check and slow down as one of them does; failures of the whole job stay."""
    sites, one = run(16, 262_144), run(1, 16_384)
    assert sites.first_step_s["communicators"] == pytest.approx(17)
    assert float(sites.optimum_s) == pytest.approx(
        goodput.optimum_interval(16 * float(sites.mtbf_s), float(sites.checkpoint_stall_s))
    )
    more = float(sites.mtbf_s) * 16 / float(one.mtbf_s)  # larger jobs fail sooner a device
    for part in ("stragglers", "link flaps"):
        assert float(sites.badput[part]) == pytest.approx(float(one.badput[part]), rel=0.05)
    assert more < 1 and sites.goodput > one.goodput - 0.1
    assert run(1, 262_144).goodput < sites.goodput - 0.3


def test_a_synchronous_run_stops_for_every_site():
    """An edge of a backbone is cut off 10 h in 1,710 (IMC'18, median), and a failure anywhere stops
    the whole run."""
    apart = run(2)
    step = run(2, sync=Sync(kind="synchronous", local_steps=1))
    assert step.alone == 1 and step.sites == 2 and step.goodput < apart.goodput
    cut = 2 * 10 / 1710
    assert step.badput["sites"] == pytest.approx(cut / (1 + cut), rel=0.1)
    assert float(step.badput["lost work"]) == pytest.approx(
        float(run().badput["lost work"]), rel=0.02
    )


@pytest.mark.parametrize("kind", [Sync(), Sync(kind="synchronous", local_steps=1)])
def test_simulation_bears_the_sites_out(kind):
    e = run(2, sync=kind)
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
    assert goodput.ettr_linear(1080.0, 600.0) == pytest.approx(0.444, abs=0.001)
    assert closed_forms.ettr_renewal(1080.0, 600.0) == pytest.approx(0.643, abs=0.001)
    exact = goodput.ettr(1080.0, 0.0, 1e-6, restart_s=600.0)
    assert exact == pytest.approx(np.exp(-600 / 1080), rel=1e-3)  # a restart can fail too


def test_accounts_agree_where_failures_are_rare_and_order_where_not():
    def useful(m, interval):
        """Exact, by renewal, linear."""
        loss = 30.0 + 300.0 + 180.0 + (interval + 1.0) / 2
        exact = goodput.ettr(m, 1.0, interval, durable_s=30.0, restart_s=300.0, down_s=180.0)
        other = closed_forms.ettr_renewal(m, loss), goodput.ettr_linear(m, loss)
        return [float(exact), *(float(x) * interval / (interval + 1.0) for x in other)]

    rare = useful(1e7, 3000.0)
    assert max(rare) - min(rare) < 1e-6
    exact, renewal, linear = useful(1500.0, 60.0)
    assert linear < exact < renewal


def test_shares_sum_to_one():
    for m in (50.0, 1000.0, 1e5):
        parts = goodput.shares(m, 2.0, 100.0, durable_s=10.0, restart_s=200.0, down_s=60.0)
        assert sum(parts) == pytest.approx(1) and all(v >= 0 for v in parts)
