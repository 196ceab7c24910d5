"""Shrinking, sites, stragglers and lemons: worked examples of the papers and properties."""

from __future__ import annotations

import math

import closed_forms
import numpy as np
import pytest
from scantling.base.stats import quantile
from scantling.design.cluster_rules import build_cluster
from scantling.endure import elastic, goodput
from scantling.endure.reliability import endure
from scantling.physics import stragglers
from scipy.stats import poisson

HOUR = 3600.0


def cluster(devices=16_384, **spec):
    return build_cluster({"accelerator": "h100-sxm", "devices": devices, **spec})[0]


def run(spec=None, devices=16_384, params=405e9, **features):
    return endure(
        cluster(devices),
        spec,
        checkpoint_bytes=params * 14,
        state_bytes_per_device=params * 14 / devices,
        **features,
    )


def test_shrinking_goes_by_whole_micro_batches():
    assert elastic.shrink_ratio(16, 128) == pytest.approx(1.0625)
    assert elastic.shrink_ratio(8, 12) == pytest.approx(1.125)


def test_saves_that_take_no_time_lose_only_what_restarts_take():
    """With nothing to save, to detect and to make durable, a failure costs its restart alone: M /
    (M + R) of the time to first order."""
    m = 1e6
    found = elastic.in_place_or_requeue(m, 0.0, restore_s=0.0, detect_s=0.0, durable_s=0.0)
    assert found["requeue"] == pytest.approx(m / (m + 768.0), rel=1e-5)


def test_requeue_costs_what_the_restart_is_longer():
    found = elastic.in_place_or_requeue(11_134.0, 5.0)
    assert found["gain"] == pytest.approx(
        found["in_place"] * (1 - math.exp(-(768 - 65) / 11_134)), rel=1e-9
    )


def test_sites_that_fall_back_alone_keep_more():
    assert closed_forms.sites_goodput(3600, 4, 600, coupled=False) > closed_forms.sites_goodput(
        3600, 4, 600
    )


def test_slowest_of_n():
    """Exact small cases 1 / sqrt(pi) and 1.5 / sqrt(pi); 3.97 and 4.44 standard deviations at
    16,384 and 131,072."""
    assert stragglers.slowest_of(np.array([2, 3, 16_384, 131_072])) == pytest.approx(
        [math.pi**-0.5, 1.5 * math.pi**-0.5, 3.97, 4.44], abs=5e-3
    )
    rng = np.random.default_rng(0)
    assert stragglers.slowest_of(1000) == pytest.approx(
        rng.standard_normal((2000, 1000)).max(axis=1).mean(), abs=0.03
    )
    blom = quantile((1000 - 0.375) / (1000 + 0.25))
    assert blom == pytest.approx(float(stragglers.slowest_of(1000)), rel=6e-3)


def test_verified_interval_without_corruption_is_young():
    work, overhead = closed_forms.verified_interval(1e-4, 0.0, 0.0, 60.0)
    assert work == pytest.approx(float(goodput.young(1e4, 60.0)))
    assert overhead == pytest.approx(math.sqrt(2 * 60 / 1e4))


def test_lemons_removed_give_back_their_share():
    found = closed_forms.lemons(0.5, 1000, 10)
    assert found["multiplier"] == pytest.approx(99)
    assert found["mtbf_gain"] == pytest.approx(1.98)


def test_fail_slow_is_bounded_by_the_slowdown():
    assert 0 < closed_forms.fail_slow_share(2048, 1.0) < 1 - 1 / 1.34
    assert closed_forms.fail_slow_share(1e9, 1.0) == pytest.approx(1 - 1 / 1.34)


@pytest.mark.parametrize("load", [0.3, 40.0, 5e4, 2e6])
def test_nodes_in_repair_are_poisson(load):
    """SciPy's Poisson law over every number of nodes in repair, a gang of 4 nodes, 16 replicas of
    15 micro-batches: the sum of the shares lost."""
    n = np.arange(int(load + 14 * np.sqrt(load) + 60))
    spares = int(load)
    gone = np.minimum(np.ceil(np.maximum(n - spares, 0) / 4), 15)
    lost = 1 - 15 / np.ceil(15 * 16 / (16 - gone))
    exact = (poisson.pmf(n, load) * lost).sum()
    assert elastic.shrink_loss(load, spares, 4, 16, 15) == pytest.approx(exact, rel=1e-6)
    both = elastic.shrink_loss(
        np.array([load, load]), np.array([spares, spares + 10**7]), 4, 16, 15
    )
    assert both == pytest.approx([exact, 0.0], rel=1e-6, abs=1e-9)
