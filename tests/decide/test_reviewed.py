"""What readers of earlier releases found wrong in a verdict, each in their words."""

from __future__ import annotations

import pytest
from scantling import Design, assess, avoid


def of(text, **changes):
    return assess(
        Design.from_text(text).change({k.replace("__", "."): v for k, v in changes.items()})
    )


LONG = """
model: {size: 13e9}
cluster: {accelerator: h100-sxm, devices: 256}
job: {tokens: 1.0e11, seq_len: 1048576, global_batch: 16}
"""


def test_nobody_reaches_an_hfu_of_97_percent():
    """ "13B, 1M context: MFU 72.6 %, HFU 96.8 % on H100; JSON has mfu_causal 37.4 %": what leads is
    the causal count, with its denominator beside it, and HFU never passes the peak."""
    a = of(LONG)
    assert a.mfu_basis == "causal" and a.mfu_shown == a.mfu_causal < 0.75 * a.mfu
    assert "989 TFLOP/s" in a.mfu_denominator and a.mfu_shown_high < 1
    asked = of(LONG, constraints__min_mfu=(a.mfu_causal + a.mfu) / 2)
    assert [m.field for m in asked.missed] == ["min_mfu"]


@pytest.mark.parametrize(
    ("chip", "tier"), [("trn2", "nothing compared"), ("h100-sxm", "known stack and chip")]
)
def test_chips_without_evidence_do_not_look_like_those_with(chip, tier):
    """ "30B, 256 MI300X: nothing on the screen says that no AMD run has been compared"."""
    text = "model: {size: 30e9}\ncluster: {accelerator: CHIP, devices: 256}\nstack: megatron-core\n"
    a = of(text.replace("CHIP", chip) + "job: {tokens: 1.0e12}")
    assert a.band_tier == tier


TRAPS = {
    "tensor parallelism across nodes": (
        "model: llama-3.1-70b\ncluster: {accelerator: a100-80-sxm, devices: 128, "
        "scale_out: eth-100}\njob: {seq_len: 4096, global_batch: 256}\nplan: {tp: 16}"
    ),
    "sharded data parallelism alone": (
        "model: llama-3.1-405b\ncluster: {accelerator: h100-sxm, devices: 16384}\n"
        "job: {seq_len: 8192, global_batch: 16384}\n"
        "plan: {tp: 1, pp: 1, cp: 1, sharding: zero3}"
    ),
    "a pipeline with fewer micro-batches": (
        "model: gpt-3-175b\ncluster: {accelerator: a100-80-sxm, devices: 1024}\n"
        "job: {seq_len: 2048, global_batch: 256}\n"
        "plan: {tp: 8, pp: 16, vpp: 1, micro_batch: 8, dp: 8}"
    ),
}


@pytest.mark.parametrize("name", TRAPS)
def test_avoid_speaks_when_the_trap_is_pinned(name):
    """ "tp16 over 100G Ethernet, MFU 2.18 %: avoid []; FSDP alone at 16,384: avoid = hourly
    checkpoints; pp16 with 4 micro-batches, bubble 74 %: pp not listed"."""
    a = of(TRAPS[name])
    if not a.fits:
        pytest.skip("the pinned plan does not fit: said by the verdict")
    assert any(row["what"].startswith(name) for row in avoid(a)), [r["what"] for r in avoid(a)]


def test_the_band_of_the_cost_holds_that_of_the_step():
    """ "days 12.5 (7.9-16.1), cost 5,721,435 low = high": the cost carries the step's band even
    where the price is stated."""
    text = "model: llama-3.1-70b\ncluster: {accelerator: h100-sxm, devices: 512}\n"
    a = of(text + "job: {tokens: 1.0e12}\nprices: {usd_per_device_hour: 2.0}")
    assert a.cost_usd_low / a.cost_usd == pytest.approx(a.days_low / a.days)
    assert a.cost_usd_high / a.cost_usd == pytest.approx(a.days_high / a.days)


def test_more_memory_never_slows_the_fastest_plan():
    """ "Mixtral 8x7B, 31 L40S 48 GB, deadline 0.08 d: 48.96 s, exit 0; with 72 GB: 102.6 s, exit
    3"."""
    text = (
        "model: mixtral-8x7b\ncluster: {accelerator: {like: l40s, hbm_gb: GB}, devices: 31}\n"
        "job: {tokens: 1.0e9, seq_len: 4096, global_batch: 310}"
    )
    steps = [of(text.replace("GB", str(gb))).fastest["step_s"] for gb in (48, 72, 96)]
    assert steps == sorted(steps, reverse=True) or steps[1] <= 1.0001 * steps[0]
    assert steps[2] <= 1.0001 * steps[1] <= 1.0002 * steps[0]


def test_more_failures_never_raise_goodput():
    """ "failures x 3 -> goodput 0.949 -> 0.981, because the default count of spares flips": with
    the spares held it falls."""
    text = (
        "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 64}\n"
        "job: {tokens: 1.0e12}\nreliability: {spares: 1, failures_per_1000_node_days: RATE}"
    )
    good = [of(text.replace("RATE", str(rate))).goodput for rate in (2, 6, 18)]
    assert good == sorted(good, reverse=True)
