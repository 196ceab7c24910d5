"""Activations that wait in host memory, and MaxText's policies by name: what leaves the device,
what its way costs, what is refused."""

from __future__ import annotations

import pytest
from scantling import Design, DesignError, assess
from scantling.physics.recompute import product_shares, remat_switches
from scantling.verdict.limits import limits

GB200 = (
    "model: llama-3.1-70b\ncluster: {accelerator: gb200-nvl72, devices: 64%s}\n"
    "job: {tokens: 1e12, seq_len: 8192, global_batch: 128}\nplan: {tp: 1, pp: 1, cp: 1, "
    "sharding: zero3, micro_batch: 1, offload: none, recompute: none%s}"
)
V6E = (
    "model: llama-3.1-70b\ncluster: {accelerator: tpu-v6e, devices: 256}\nstack: maxtext\n"
    "job: {tokens: 1e12, seq_len: 8192, global_batch: 1280}\n"
    "plan: {tp: 1, pp: 1, cp: 1, sharding: zero3, micro_batch: 5, offload: none, %s}"
)


def gb200(offload="", cluster=""):
    more = f", activation_offload: {offload}" if offload else ""
    return assess(Design.from_text(GB200 % (cluster, more)))


def activations(a):
    return float(a.chosen.memory.activations)


def test_half_of_the_layers_take_half_of_what_waits():
    """70B under FSDP on GB200, published as run with the activations of 40 layers in host memory,
    does not fit without."""
    whole, half = gb200(), gb200("{layers: 40}")
    assert not whole.fits and half.fits
    away, moving = float(half.chosen.memory.away), 2 / 80 * 0.5
    left = activations(whole) - away
    assert activations(half) == pytest.approx(left + 2 * away / 40 / 2, rel=0.02), moving
    assert float(half.chosen.memory.host) == pytest.approx(away)
    assert any(line.startswith("activations:") for line in limits(half))


def test_more_modules_leave_more_and_never_all_that_is_not_there():
    words = ["core_attn", "attn_proj", "mlp_act", "mlp_fc2", "attn_norm"]
    used = [activations(gb200("{modules: [%s]}" % ", ".join(words[: i + 1]))) for i in range(5)]
    assert used == sorted(used, reverse=True) and used[-1] > 0
    assert used[-1] >= activations(gb200("{}")) * (1 - 1e-9)
    experts = activations(gb200("{modules: [expert_fc1, moe_act]}"))
    assert experts == pytest.approx(activations(gb200()))


def test_what_compute_does_not_cover_of_the_way_shows_in_the_step():
    """Twelve bytes of 100 GB over a link of 20 GB/s take longer than a step of 7 s."""
    fast = gb200("{}")
    slow = assess(
        Design.from_text(
            GB200.replace("gb200-nvl72", "{like: gb200-nvl72, host_link_gbytes_per_s: 20}")
            % ("", ", activation_offload: {}")
        )
    )
    m = float(slow.chosen.case.micro_batches)
    wire_s = float(slow.chosen.memory.away) / 20e9
    assert slow.step_s > fast.step_s
    shown = slow.step_breakdown_s["host"] - fast.step_breakdown_s["host"]
    assert 0 < shown <= 2 * m * wire_s * 1.05


def test_a_host_that_is_too_small_does_not_hold_them():
    a = gb200("{}", ", host_memory_gb: 100, nvme_gb: 0")
    assert not a.fits


def test_the_recipe_of_the_maker_fits_its_chips():
    """MaxText's llama3_1_70b_8192 on 256 v6e: remat custom, the layer's input and q, k, v to the
    host (benchmarks/maxtext_trillium_model_configs.py)."""
    on_device = assess(Design.from_text(V6E % "recompute: full"))
    recipe = assess(
        Design.from_text(
            V6E % "recompute: full, activation_offload: {modules: [attn_norm, core_attn]}"
        )
    )
    assert not on_device.fits and recipe.fits
    inputs = 80 * 5 * 8192 * 8192 * 2.0
    assert float(recipe.chosen.memory.away) > inputs


@pytest.mark.parametrize(
    "more, less",
    [
        ("save_out_proj", "full"),
        ("save_qkv_proj", "save_out_proj"),
        ("save_dot_except_mlp", "save_qkv_proj"),
        ("save_dot_except_mlpwi", "save_dot_except_mlp"),
        ("minimal", "save_dot_except_mlpwi"),
        ("minimal_with_context", "minimal"),
        ("minimal", "minimal_offloaded"),
    ],
)
def test_policies_stand_in_the_order_that_maxtext_gives(more, less):
    """base.yml: a trade-off between speed (fastest to slowest) and memory (highest to lowest)."""
    first, second = (
        assess(Design.from_text(V6E.replace("batch: 5", "batch: 1") % f"remat: {policy}"))
        for policy in (more, less)
    )
    assert activations(first) >= activations(second) * (1 - 1e-9)
    assert first.chosen.step.recompute <= second.chosen.step.recompute * (1 + 1e-9)


def test_products_are_shared_out_as_their_weights():
    """Llama 3.1 70B: 8,192 x (8,192 + 2 x 1,024), 8,192 x 8,192, two of 8,192 x 28,672 and one."""
    shape = assess(Design.from_text(V6E % "recompute: full")).chosen.case.shape
    h, kv, f = 8192, 1024, 28672
    whole = 2 * h * h + 2 * h * kv + 3 * h * f
    shares = product_shares(shape)
    assert shares["qkv"] == pytest.approx((h * h + 2 * h * kv) / whole)
    assert shares["out"] == pytest.approx(h * h / whole)
    assert shares["wi"] == pytest.approx(2 * h * f / whole) and sum(shares.values()) == (
        pytest.approx(1)
    )
    assert remat_switches("full", shape) == {}


@pytest.mark.parametrize(
    "plan, said",
    [
        ("remat: minimal, recompute: full", "remat"),
        ("remat: minimal, recompute_modules: [norm]", "remat"),
        ("remat: everything", "remat"),
        ("activation_offload: {modules: [attention]}", "activation_offload.modules"),
    ],
)
def test_what_contradicts_itself_or_is_no_word_is_refused(plan, said):
    with pytest.raises(DesignError, match=said):
        assess(Design.from_text(V6E % plan))
