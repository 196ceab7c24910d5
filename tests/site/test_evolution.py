"""What breaks next: each change moves what it must, by how much where somebody has published it."""

import numpy as np
import pytest
from lookups import one
from scantling import assess, catalogue
from scantling_site import part
from scantling_site.evolution.next_changes import kv_bytes_per_token


@pytest.fixture(scope="module")
def grown(assessed):
    return part(assessed("llama-3.1-405b"), "evolution")


@pytest.fixture(scope="module")
def fed(assessed):
    """With sequences for ten times the devices: those that a plan leaves idle fail nobody."""
    design = assessed("llama-3.1-405b").design.change({"job.global_batch": 20_480})
    return part(assess(design), "evolution")


def figures(change):
    return {f.name: f for f in (change.figure, *change.more)}


def test_ten_times_the_devices_fail_every_few_tens_of_minutes_and_lose_half_the_time(fed, assessed):
    """Beyond 100,000 devices: tens of minutes between failures (30 min at Llama 3's rate, arXiv
    2407.21783; 18 at 98,304, arXiv 2602.00277) and, with whole-job restarts, 44 % effective time
    measured at that size (the same)."""
    f = figures(one(fed.changes, "devices-10"))
    assert 10 * 60 < f["time between failures"].then < 40 * 60
    published = assessed("100k-multi-pod-ft")  # 98,304 devices
    assert published.mtbf_s == pytest.approx(18 * 60, rel=0.01)
    assert 0.3 < published.goodput < 0.6
    assert 0.5 * published.goodput < f["goodput"].then < published.goodput  # 163,840


def test_time_between_failures_falls_as_devices_grow(fed):
    for k in (2, 4, 10):
        f = figures(one(fed.changes, f"devices-{k}"))
        # 3.79 per 1,000 node-days at 16,384 devices, 6.51 at 98,304 (arXiv 2407.21783, 2602.00277)
        more = (min(k, 6)) ** (np.log(6.5104 / 3.7887) / np.log(6))
        assert f["time between failures"].then == pytest.approx(
            f["time between failures"].now / k / more, rel=1e-3
        )
        assert f["goodput"].then < f["goodput"].now
        assert f["speed over today's"].then < k


def test_strong_scaling_is_worse_than_weak_scaling_which_costs_tokens(grown):
    for k in (4, 10):
        f = figures(one(grown.changes, f"devices-{k}"))
        assert f["speed with the batch grown as well"].then > f["speed over today's"].then
        assert f["tokens that such a batch costs"].then > 1


def test_something_is_named_that_breaks_first(grown):
    first = next(c for c in grown.changes if c.id.startswith("devices-") and c.breaks)
    assert grown.next.endswith(first.breaks) and first.mend


def test_fp8_doubles_the_products_and_not_the_step(grown):
    """H100: fp8 has twice the dense peak of bf16 (data sheet); DeepSeek-V3 and Megatron see far
    less on whole steps."""
    f = figures(one(grown.changes, "precision-fp8"))
    assert (
        f["peak"].then == pytest.approx(2.0, rel=0.01)
        and 1.1 < f["step"].now / f["step"].then < 2.0
    )
    assert one(grown.changes, "precision-fp8").confirm


def test_fp4_is_tried_on_blackwell_alone(assessed):
    ids = {c.id for c in part(assessed("qwen3-235b-a22b-256-gb200"), "evolution").changes}
    assert "precision-nvfp4" in ids
    assert "precision-nvfp4" not in {
        c.id for c in part(assessed("llama-3.1-405b"), "evolution").changes
    }


def test_sparsity_keeps_the_flops_and_adds_parameters(grown, assessed):
    f = figures(one(grown.changes, "sparsity"))
    assert f["parameters"].then > 2.5 * f["parameters"].now and f["ep"].then >= 1
    twice = figures(one(part(assessed("mixtral-8x22b-128-h100"), "evolution").changes, "sparsity"))
    assert 1.8 < twice["parameters"].then / twice["parameters"].now < 2.0


def test_longer_sequences_spend_more_on_attention(grown):
    four, sixteen = (figures(one(grown.changes, f"context-{k}")) for k in (4, 16))
    assert (
        four["attention's share"].now
        < four["attention's share"].then
        < sixteen["attention's share"].then
    )
    assert (
        four["step"].now < four["step"].then < sixteen["step"].then
        and sixteen["cp"].then > four["cp"].now
    )


def test_switches_shorten_an_all_reduce_but_not_a_sharded_one(assessed):
    """SHARP moves S instead of 2 S (n-1)/n for an all-reduce; a reduce-scatter and an all-gather
    move S each already."""
    plain, sharded = assessed("megatron-1t-3072-a100"), assessed("case-3-500b-4096-h100")
    assert plain.plan["sharding"] == "none" and sharded.plan["sharding"] == "zero1"
    f = figures(one(part(plain, "evolution").changes, "in-network"))[
        "exposed data-parallel traffic"
    ]
    assert 0.4 * f.now < f.then < f.now
    f = figures(one(part(sharded, "evolution").changes, "in-network"))["step"]
    assert f.then == f.now


def test_ethernet_switches_do_not_reduce(assessed):
    c = one(part(assessed("llama-3.1-405b"), "evolution").changes, "in-network")
    assert (
        not catalogue.fabric("rocev2-400").in_network_reduction
        and not c.works
        and c.figure.then is None
    )


def test_two_sites_change_step_goodput_and_checkpoint(grown):
    f = figures(one(grown.changes, "sites-2"))
    assert f["step"].then > f["step"].now
    assert f["goodput"].then > f["goodput"].now  # each restarts alone
    assert f["checkpoint"].then > 2 * f["checkpoint"].now  # moments of both, and the outer one's
    every = f["step where gradients cross every time"]
    assert every.then > 5 * every.now


def test_cache_of_a_token_is_what_deepseek_printed(assessed):
    """DeepSeek-V3 70.272 KB, Llama 3.1 405B 516.096 KB a token in 16 bit (arXiv 2505.09343, Table
    1)."""
    assert kv_bytes_per_token(assessed("case-5-deepseek-v3").resolved.model) == pytest.approx(
        70_272
    )
    assert kv_bytes_per_token(assessed("llama-3.1-405b").resolved.model) == pytest.approx(516_096)


def test_post_training_balances_making_and_using(grown):
    f = figures(one(grown.changes, "post-training"))
    share = f["share of devices that generate"].then
    assert share * f["tokens/s per device, generating"].then == pytest.approx(
        (1 - share) * f["tokens/s per device, training"].now
    )


@pytest.mark.slow
def test_every_change_says_what_changes(each):
    found = part(each, "evolution")
    assert {c.id for c in found.changes} >= {
        "devices-2",
        "devices-4",
        "devices-10",
        "sparsity",
        "context-4",
    }
    for c in found.changes:
        assert c.figure.name and c.what and (c.figure.then is not None or not c.works)
        assert c.works or c.breaks
