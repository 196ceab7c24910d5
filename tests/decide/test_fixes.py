"""Fixes: applying one gives the verdict it was shown with; the fewest devices are the fewest; and
the refusal proves itself."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scantling import Design, DesignError, assess, fixes
from scantling.advise.fixes import cheaper, singles, tries
from scantling.verdict.limits import limits

SMALL = (
    "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 64}\njob: {tokens: "
    "1.0e12, seq_len: 8192, global_batch: 256}\n"
)
ASKED = {
    "deadline": SMALL + "constraints: {deadline_days: 10}",
    "budget": SMALL + "constraints: {budget_usd: 5.0e4}",
    "deadline and budget": SMALL + "constraints: {deadline_days: 10, budget_usd: 5.0e4}",
    "MFU floor": SMALL + "constraints: {min_mfu: 0.65}",
    "power": SMALL + "constraints: {max_power_mw: 0.05}",
    "stall and recovery": SMALL + "constraints: {max_checkpoint_stall_s: 1, max_recovery_s: 60}",
    "a pinned plan too large": "model: llama-3.1-70b\ncluster: {accelerator: h100-sxm, devices: 128}\njob: "  # noqa: E501
    "{seq_len: 8192, global_batch: 128}\n"
    "plan: {tp: 2, pp: 1, sharding: none, recompute: none}",
    "too few devices": (
        "model: llama-3.1-405b\ncluster: {accelerator: v100-16-sxm2, devices: 16, "
        "host_memory_gb: 256, nvme_gb: 0}\njob: {seq_len: 4096, global_batch: 64}"
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_fix_applied_gives_the_verdict_shown(name):
    a = assess(Design.from_text(ASKED[name]))
    assert a.verdict != "feasible"
    offered = fixes(a)
    assert offered
    for fix in offered:
        b = assess(a.design.change(fix["set"]))
        assert b.verdict == fix["verdict"], fix["change"]
        assert b.mfu == pytest.approx(fix["mfu"]) and b.days == (
            pytest.approx(fix["days"]) if fix["days"] else None
        )
        assert bool(fix["missed"]) == (b.verdict != "feasible")
    verdicts = [f["verdict"] for f in offered]
    assert verdicts == sorted(verdicts, key=lambda v: v != "feasible")  # feasible ones first
    assert len({json.dumps(f["set"], sort_keys=True) for f in offered}) == len(offered)
    assert (
        sum(set(f["set"]) == {"cluster.devices"} for f in offered if f["verdict"] == "feasible")
        <= 1
    )


def test_the_device_count_offered_is_the_smallest_ladder_step_that_works():
    a = assess(Design.from_text(ASKED["deadline"]))
    (more,) = (f for f in fixes(a) if set(f["set"]) == {"cluster.devices"})
    assert (
        more["days"] <= 10 < assess(a.design.change({"cluster.devices": more["devices"] - 16})).days
    )


def test_only_giving_way_is_said_to_be_that():
    """Nothing reaches 65 % of the bf16 peak of an H100 on an 8B model; the changes that come
    closest are listed as misses."""
    offered = fixes(assess(Design.from_text(ASKED["MFU floor"])))
    real = [
        f
        for f in offered
        if f["verdict"] == "feasible" and not all(k.startswith("constraints.") for k in f["set"])
    ]
    if not real:
        assert any(f["verdict"] == "constraint-missed" and f["missed"] for f in offered)


def test_several_constraints_are_met_together():
    """A deadline that more devices meet beside an MFU floor that nothing reaches: one row does the
    first and gives way on the second."""
    a = assess(Design.from_text(SMALL + "constraints: {deadline_days: 10, min_mfu: 0.75}"))
    rows = [
        f
        for f in fixes(a)
        if f["verdict"] == "feasible"
        and set(f["set"]) == {"cluster.devices", "constraints.min_mfu"}
    ]
    assert rows and rows[0]["days"] <= 10 and "constraints.deadline_days" not in rows[0]["set"]
    tried = singles(tries(a))
    assert tried and max(t["mfu"] for t in tried) < 0.75 and all(t["change"] for t in tried)


def test_devices_that_stand_idle_get_a_batch_that_uses_them():
    """100 sequences on 7 devices: five work. 98 is the nearest that seven share."""
    a = assess(
        Design.from_text(
            "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 7}\njob: "
            "{tokens: 1.0e11, seq_len: 8192, global_batch: 100}\nconstraints: "
            "{deadline_days: 20}"
        )
    )
    assert a.devices_used == 5 and any(line.startswith("idle:") for line in limits(a))
    first = fixes(a)[0]
    assert first["set"]["job.global_batch"] == 98 and first["verdict"] == "feasible"
    assert assess(a.design.change(first["set"])).devices_used == 7


def test_a_budget_of_a_tenth_buys_a_tenth_of_the_tokens():
    a = assess(Design.from_text(SMALL))
    poor = assess(a.design.change({"constraints.budget_usd": 0.1 * a.cost_usd}))
    (less,) = (f for f in fixes(poor) if set(f["set"]) == {"job.tokens"})
    assert (
        less["set"]["job.tokens"] == pytest.approx(1.0e11, rel=0.02)
        and less["cost_usd"] <= 0.1 * a.cost_usd
    )


def test_cheaper_is_cheaper_within_the_deadline():
    a = assess(Design.from_text(SMALL + "constraints: {deadline_days: 60}"))
    rows = cheaper(a)
    assert rows
    for row in rows:
        b = assess(a.design.change(row["set"]))
        assert b.verdict == "feasible" and b.cost_usd < a.cost_usd and b.days <= 60


def test_the_refusal_is_arithmetic_that_can_be_followed():
    a = assess(Design.from_text(ASKED["too few devices"]))
    assert a.verdict == "impossible"
    text = "\n".join(limits(a))
    assert f"{a.resolved.params.total:,} parameters" in text
    assert "16 x 16.9 GB usable" in text or "16 x" in text
    assert "leanest" in text and "cannot split further" in text


@settings(max_examples=15, deadline=None)
@given(
    model=st.sampled_from(["llama-3.1-8b", "mixtral-8x7b", "llama-2-13b", "gpt-3-175b"]),
    nodes=st.integers(1, 24),
    more=st.integers(1, 24),
    chip=st.sampled_from(["a100-80-sxm", "v100-32-sxm2", "h100-sxm"]),
    batch=st.sampled_from([60, 128, 1000, 1536]),
)
def test_more_devices_never_turn_fits_into_does_not_fit(model, nodes, more, chip, batch):
    def verdict(n):
        return assess(
            Design.from_text(
                f"model: {model}\ncluster: {{accelerator: {chip}, devices: "
                f"{8 * n}}}\njob: {{seq_len: 2048, global_batch: {batch}}}"
            )
        ).verdict

    if verdict(nodes) == "feasible":
        assert verdict(nodes + more) == "feasible"


@settings(max_examples=10, deadline=None)
@given(
    model=st.sampled_from(["llama-3.1-8b", "mixtral-8x7b", "llama-3.1-70b"]),
    nodes=st.integers(2, 32),
    days=st.floats(3, 400),
    tp=st.sampled_from([None, 1, 8]),
)
def test_fixes_of_random_designs_hold(model, nodes, days, tp):
    text = (
        f"model: {model}\ncluster: {{accelerator: h100-sxm, devices: {8 * nodes}}}\njob: "
        f"{{tokens: 2.0e11, seq_len: 4096, global_batch: 256}}\nconstraints: "
        f"{{deadline_days: {days}}}\n"
    )
    try:
        a = assess(Design.from_text(text + (f"plan: {{tp: {tp}, pp: 1}}" if tp else "")))
    except DesignError:
        return
    for fix in fixes(a)[:3]:
        assert assess(a.design.change(fix["set"])).verdict == fix["verdict"]


def test_what_failures_alone_take_is_given_back():
    """One sequence in 8 devices' memory, a deadline that the undisturbed run meets: a spare node or
    quick restarts come before more devices."""
    text = (
        "model: llama-3.1-70b\ncluster: {accelerator: h200-sxm, devices: 256}\njob: "
        "{tokens: 1.0e10, seq_len: 1048576, global_batch: 8}\n"
    )
    free = assess(Design.from_text(text))
    late = assess(Design.from_text(text + f"constraints: {{deadline_days: {0.995 * free.days}}}"))
    assert late.verdict == "constraint-missed" and free.days * free.goodput < 0.995 * free.days
    first = fixes(late)[0]
    assert (
        first["verdict"] == "feasible"
        and all(path.startswith("reliability.") for path in first["set"])
        and first["devices"] == 256
    )
    assert not any(
        set(f["set"]) == {"cluster.devices"} and f["days"] >= first["days"] for f in fixes(late)
    )


def test_an_awkward_count_gets_a_batch_that_its_nodes_share():
    """1,000 devices are 125 nodes: 1,024 sequences leave a third of them idle, 1,000 none."""
    a = assess(
        Design.from_text(
            "model: llama-3.1-70b\ncluster: {accelerator: h100-sxm, devices: "
            "1000}\njob: {tokens: 2.0e12, seq_len: 8192, global_batch: "
            "1024}\nconstraints: {deadline_days: 30}"
        )
    )
    assert a.devices_used < 700 and any(
        line.startswith("idle:") and "a batch of 1,000 would keep 1,000 at work" in line
        for line in limits(a)
    )
    first = fixes(a)[0]
    assert (
        first["set"]["job.global_batch"] == 1000
        and assess(a.design.change(first["set"])).devices_used == 1000
    )


def test_two_constraints_that_two_changes_meet():
    """Power and goodput: a few devices fewer for the one, quick restarts for the other, both in one
    row beside the third of the devices that meets both alone."""
    now = assess(
        Design.from_text(
            "model: llama-3.1-70b\ncluster: {accelerator: h100-sxm, devices: "
            "2048}\njob: {tokens: 1.0e12, seq_len: 8192, global_batch: "
            "1024}\nreliability: {preset: llama3}\n"
        )
    )
    megawatts = assess(now.design.change({"constraints.max_power_mw": 0.1})).missed[0].value
    quick = assess(
        now.design.change({"reliability.restart_s": 60.0, "reliability.detect_s": 30.0})
    ).goodput
    asked = assess(
        now.design.change(
            {
                "constraints.min_goodput": (now.goodput + 3 * quick) / 4,
                "constraints.max_power_mw": 0.9 * megawatts,
            }
        )
    )
    assert {m.field for m in asked.missed} == {"min_goodput", "max_power_mw"}
    both = next(
        f
        for f in fixes(asked)
        if f["verdict"] == "feasible"
        and "cluster.devices" in f["set"]
        and any(path.startswith("reliability.") for path in f["set"])
    )
    assert 0.75 * 2048 < both["devices"] < 2048
    assert all(
        both["days"] < f["days"] for f in fixes(asked) if set(f["set"]) == {"cluster.devices"}
    )


def test_a_chip_that_works_only_with_offload_says_so():
    """1T parameters are 18 TB of state: eight A100 hold 0.68 TB of it, the rest lies in host memory
    and on NVMe."""
    a = assess(
        Design.from_text(
            "model: {size: 1.0e12}\ncluster: {accelerator: v100-16-pcie, devices: "
            "8}\njob: {precision: fp16}"
        )
    )
    assert a.verdict == "impossible"
    (chip,) = (f for f in fixes(a) if "cluster.accelerator" in f["set"])
    assert "in host memory" in chip["change"]
