"""What readers of earlier releases found wrong in a verdict, each in their words."""

from __future__ import annotations

import re
from math import prod

import pytest
from scantling import Design, assess, avoid, blueprint, cli, launch


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


def page_of(text, tmp_path, capsys) -> list[str]:
    """What `design` prints of a file, by the word that its line begins with."""
    file = tmp_path / "design.yaml"
    file.write_text(text, encoding="utf-8")
    cli.main(["design", str(file)])
    return capsys.readouterr().out.splitlines()


CROWDED = "model: llama-3.1-405b\ncluster: {accelerator: a100-80-sxm, devices: 8}\n"


@pytest.mark.parametrize("more", ["plan: {offload: none}", "stack: deepspeed"])
def test_a_plan_that_does_not_fit_has_no_days(more, tmp_path, capsys):
    """ "`plan: {offload: none}` for 405B on 8 A100: prints MFU 52.3 %, 65.5 years for a plan that
    needs 959 of 85.1 GB"; "with `stack: deepspeed` it still proposes param offload"."""
    text = CROWDED + "job: {tokens: 1.0e12}\n" + more
    lines = page_of(text, tmp_path, capsys)
    assert lines[1].startswith("Constraint violated: memory: the ")
    assert ("pinned" in lines[1]) == ("plan" in more)
    for name in ("Run", "MFU", "Goodput", "Step"):
        assert [line.split() for line in lines if line.startswith(name + " ")] == [
            [name, "none,", "the", "plan", "does", "not", "fit"]
        ]
    assert not any("the largest overhead" in line for line in lines)


def test_idle_devices_stand_in_the_verdict_line(tmp_path, capsys):
    """ "16M token batch -> 1,953 = 3^2*7*31 sequences: the README flagship falls to 101 days; only
    a bullet tells": 217 replicas of 72 devices leave 760 of 16,384 idle."""
    text = (
        "model: llama-3.1-405b\ncluster: {accelerator: h100-sxm, devices: 16384}\n"
        "job: {tokens: 15.6e12, seq_len: 8192, global_batch: 1953}"
    )
    lines = page_of(text, tmp_path, capsys)
    idle = 16384 - assess(Design.from_text(text)).devices_used
    assert idle > 0 and lines[1].startswith(f"Feasible, {idle:,} devices idle")
    assert any("a batch of 2,048 would keep 16,384 at work" in line for line in lines)


@pytest.mark.slow
def test_no_change_is_shown_with_an_mfu_above_the_peak(tmp_path, capsys):
    """ "StarCoder2-7B, 65,536 tokens, window 4,096, 128 H200: MFU 177 %, feasible under min_mfu
    0.9": neither the plan, nor a change, nor what the cluster can do."""
    text = (
        "model: {like: starcoder2-7b, window: 4096}\n"
        "cluster: {accelerator: h200-sxm, devices: 128}\n"
        "job: {seq_len: 65536, tokens: 1.0e11}\nconstraints: {min_mfu: 0.9}"
    )
    lines = page_of(text, tmp_path, capsys)
    said = [float(x) for line in lines for x in re.findall(r"MFU (\d+(?:\.\d+)?) %", line)]
    assert lines[1].startswith("Constraint violated: MFU") and len(said) > 1
    assert max(said) < 60 < 90
    assert len(lines) <= 40


DENSE = """
model: llama-3.1-70b
cluster: {accelerator: h100-sxm, devices: 1024}
job: {tokens: 2.0e12, seq_len: 8192, global_batch: 1024}
"""


def test_a_slow_store_of_tokens_holds_the_step_up():
    """ "Data stall 0.0 * busy": 1,024 sequences of 8,192 tokens at 4 bytes are 33.6 MB a step."""
    slow = of(DENSE, job__corpus={"read_gbytes_per_s": 1e-3})
    assert slow.step_s == pytest.approx(33.6, rel=0.01)
    assert slow.step_breakdown_s["data"] == pytest.approx(slow.step_s - of(DENSE).step_s, rel=0.3)


def test_a_kit_for_more_chips_than_a_slice_names_its_slices():
    """ "16,384 v5p (domain 8,960) -> MaxText kit with ONE slice, replicas 1,
    dcn_data_parallelism 1"."""
    a = of(
        "model: llama-3.1-405b\ncluster: {accelerator: tpu-v5p, devices: 16384}\n"
        "job: {tokens: 1.0e12, seq_len: 8192, global_batch: 2048}"
    )
    files = launch(a, "maxtext", on="kubernetes")
    across = re.findall(r"^dcn_\w+_parallelism: (\d+)$", files["maxtext.yml"], re.M)
    assert prod(map(int, across)) == 2
    slices = [int(n) for t in files.values() for n in re.findall(r"replicas: (\d+)", t)]
    assert slices and max(slices) == 2


def test_to_survive_more_never_takes_fewer_spares():
    """ "survive: pod needs fewer spares (1) than rack (4)"."""
    nested = ("device", "node", "rack", "pod")
    spares = [of(DENSE, constraints__survive=what).endurance.spares for what in nested]
    assert spares == sorted(spares) and spares[0] < spares[-1]


def test_routing_is_an_input_of_a_mixture():
    """ "MoE skew/capacity/node limit not explorable"."""
    plan = "plan: {tp: 4, pp: 4, ep: 8}\n"
    text = DENSE.replace("llama-3.1-70b", "mixtral-8x22b") + plan
    forced, typical, skewed = (
        of(text, **more).step_s
        for more in ({"job__routing": "forced"}, {}, {"job__expert_skew": 1.5})
    )
    assert forced < typical < skewed


def test_the_optimizer_moves_step_and_memory():
    """ "Optimizer does not touch step time": Muon multiplies matrices (Jordan et al. 2024), 8-bit
    Adam keeps moments of a byte (Dettmers et al. 2021)."""
    plan = "plan: {tp: 8, pp: 4, dp: 32, micro_batch: 1, sharding: zero1}\n"
    adam, muon, eight = (
        of(DENSE + plan, job__optimizer=name) for name in ("adamw", "muon", "adamw-8bit")
    )
    assert muon.step_s > adam.step_s
    assert eight.memory_bytes["total"] < adam.memory_bytes["total"]


def test_a_change_of_layout_between_phases_costs_time():
    """ "layouts change tp4pp8 -> tp4pp4 -> tp8pp2cp8 with no reshard cost"."""
    phases = [
        {"tokens": 1.9e12, "seq_len": 8192, "global_batch": 1024},
        {"tokens": 1e11, "seq_len": 131072, "global_batch": 64},
    ]
    text = "model: llama-3.1-70b\ncluster: {accelerator: h100-sxm, devices: 1024}\njob: {}\n"
    calendar = blueprint(of(text, job__phases=phases), ["calendar"]).calendar
    (passage,) = calendar.passages
    assert passage["changes"] and passage["seconds"] > 60
    assert any(e["days"] * 86_400 == pytest.approx(passage["seconds"]) for e in calendar.entries)


def test_an_object_store_alone_changes_the_headline():
    """ "Object-store-only checkpointing = file-system rate, no change in any headline"."""
    file_system, objects = (of(DENSE, cluster__storage=name) for name in ("lustre", "s3-standard"))
    assert objects.endurance.recovery_s > file_system.endurance.recovery_s
    assert objects.goodput < file_system.goodput
    assert objects.days > file_system.days


def test_a_plan_that_only_the_host_cannot_hold_is_said_so():
    """ "The pinned plan needs 11.9 GB per device; 42.4 GB are available", of a plan that was
    refused: 1.24 TB of its state a device had left for a host that has less."""
    a = assess(
        Design.from_text(
            """
model: lamda-137b
cluster: {accelerator: a100-40-pcie, devices: 8}
job: {seq_len: 128}
plan: {cp: 4, sharding: none}
"""
        )
    )
    first = a.as_dict(advice=False)["limits"][0]
    assert first.startswith("memory: the pinned plan offloads 1.24 TB per device; ")
    assert a.verdict == "constraint-missed"
