"""Failure domains: what they take out, by counting; how often, by published counts; what that
costs, by the closed form."""

import numpy as np
import pytest
from lookups import one
from scantling import Design, assess
from scantling.base.units import DAY_S
from scantling_site import part
from scantling_site.domains import replicas_hit


def counted(size, block, replicas, devices):
    """Replicas with a rank in each aligned block of devices, one by one."""
    of = (np.arange(devices) // block) % replicas
    return max(len(set(of[i : i + size].tolist())) for i in range(0, devices, size))


def test_replicas_hit_is_what_counting_gives():
    rng = np.random.default_rng(3)
    for _ in range(300):
        tp, dp, pp = (int(rng.choice(c)) for c in ((1, 2, 4, 8), (1, 2, 3, 6, 16), (1, 2, 4, 5)))
        n = tp * dp * pp
        size = int(rng.integers(1, n + 1))
        assert replicas_hit(size, tp, dp, n) == counted(size, tp, dp, n), (tp, dp, pp, size)
        assert replicas_hit(size, tp * pp, dp, n) == counted(size, tp * pp, dp, n), (
            tp,
            dp,
            pp,
            size,
        )


def test_llama3s_54_days_give_its_table_5(assessed):
    """419 unexpected interruptions, 262 of GPU or HBM, 47 planned, on 16,384 H100 in 54 days (arXiv
    2407.21783, Table 5)."""
    d = part(assessed("llama-3.1-405b-16384-published"), "domains")
    per_day = {r.id: r.events_per_run / d.run.days for r in d.rows if r.events_per_run is not None}
    assert per_day["device"] * 54 == pytest.approx(148 + 72 + 19 + 17 + 6, rel=1e-6)
    assert per_day["corruption"] * 54 == pytest.approx(6, rel=1e-6)
    assert per_day["power-supply"] * 54 == pytest.approx(3, rel=1e-6)
    assert (per_day["link"] + per_day["leaf"]) * 54 == pytest.approx(35, rel=1e-6)
    assert per_day["pod-maintenance"] * 54 == pytest.approx(47, rel=1e-6)
    unplanned = sum(v for k, v in per_day.items() if k not in ("pod-maintenance", "building"))
    assert unplanned * 54 == pytest.approx(419, rel=1e-6)


def test_one_failure_in_a_hundred_takes_a_switch_and_32_machines(assessed):
    """ByteRobust, arXiv 2509.16293, section 8.2; 32 nodes are also what a leaf of 64 ports holds
    (DGX SuperPOD H100, one scalable unit)."""
    d = part(assessed("llama-3.1-405b-16384-published"), "domains")
    leaf, total = one(d.rows, "leaf"), 419 / 54 * d.run.days
    assert leaf.events_per_run == pytest.approx(0.01 * total, rel=1e-6)
    assert one(part(assessed("case-3-500b-4096-h100"), "domains").rows, "leaf").nodes == 32


def test_domains_are_judged_by_the_phase_that_a_lost_node_stops_most():
    """Llama 3's long context (arXiv 2407.21783, table 4): 16 replicas of 1,024 devices in place of
    128 of 128. One lost node stops a sixteenth of the job, not a 128th, and a pod all of it."""
    main = {"name": "main", "tokens": 14e12, "seq_len": 8192, "global_batch": 2048}
    long = {"name": "long", "tokens": 8e11, "seq_len": 131072, "global_batch": 128}
    base = {
        "model": "llama-3.1-405b",
        "cluster": {"accelerator": "h100-sxm", "devices": 16384, "pod_devices": 3072},
    }

    def domains(*phases):
        return part(assess(Design.from_data(base | {"job": {"phases": list(phases)}})), "domains")

    both, alone, short = domains(main, long), domains(long), domains(main)
    assert both.phase == "long"
    stalled = [one(d.rows, "node").replicas_stalled / d.rows[0].of_replicas for d in (both, alone)]
    assert stalled[0] == stalled[1] > one(short.rows, "node").replicas_stalled / 64
    assert "judged by long" in both.advice[0] and "judged" not in alone.advice[0]
    # what the closed form of goodput counts stays what the rows sum to
    bad = assess(Design.from_data(base | {"job": {"phases": [main, long]}})).endurance.badput
    lost = bad["detection"] + bad["restart"] + bad["lost work"] + bad["sdc"]
    assert both.unplanned_cost == pytest.approx(float(lost), rel=1e-3)


def test_an_operator_in_five_has_a_serious_outage_in_three_years(assessed):
    """Uptime Institute, 2022: the rate that makes it so."""
    row = one(part(assessed("llama-3.1-405b"), "domains").rows, "building")
    assert 1 - np.exp(-3 * 365.25 / row.days_between) == pytest.approx(0.20, rel=1e-6)


def test_rows_sum_to_the_closed_form(each):
    d, e = part(each, "domains"), each.endurance
    assert d.unplanned_cost == pytest.approx(
        sum(float(e.badput[name]) for name in ("detection", "restart", "lost work", "sdc")),
        rel=1e-9,
    )
    assert d.planned_cost == pytest.approx(float(e.badput["planned stops"]))
    assert d.waits_cost >= 0


def test_every_row_is_consistent(each):
    d = part(each, "domains")
    plan = next((one.plan for one in each.phases if one.phase.name == d.phase), each.plan)
    for r in d.rows:
        assert 1 <= r.replicas <= r.replicas_stalled <= plan["dp"] == r.of_replicas
        assert r.replicas_compact <= r.replicas
        assert r.devices <= each.devices_used and r.nodes >= 1 and r.count >= 1
        assert (r.events_per_run is None) == (r.goodput_cost is None)
        if r.events_per_run:  # the row multiplies, also for who checks it by hand
            assert r.events_per_run * r.each_s / DAY_S == pytest.approx(r.days_lost, rel=1e-9)
            assert r.days_lost / d.run.days == pytest.approx(r.goodput_cost, rel=1e-9)
        assert r.one_percent_every_days == pytest.approx((r.loss_s + r.wait_s) / DAY_S / 0.01)
    sizes = [
        r.devices
        for r in d.rows
        if r.id in ("process", "node", "rack", "pod-maintenance", "building")
    ]
    assert sizes == sorted(sizes)


def test_experts_tie_replicas_together(assessed):
    """DeepSeek-V3 spreads its experts over 64 devices (arXiv 2412.19437, section 3.2): one device
    stalls its whole group."""
    d = part(assessed("case-5-deepseek-v3"), "domains")
    assert (
        d.expert_span == 64
        and one(d.rows, "process").replicas == 1
        and one(d.rows, "process").replicas_stalled == 64
    )
    assert any("64 of 128" in line for line in d.advice)


def test_spares_cover_a_rack_when_there_are_that_many(assessed):
    base = assessed("llama-3.1-405b")
    few, many = (
        part(assess(base.design.change({"reliability.spares": n})), "domains") for n in (1, 64)
    )
    assert not one(few.rows, "rack").spares_cover and one(few.rows, "rack").wait_s > 0
    assert one(many.rows, "leaf").spares_cover and one(many.rows, "leaf").wait_s == 0
    assert many.waits_cost < few.waits_cost


def test_racks_and_slices_are_the_hardwares(assessed):
    assert (
        one(part(assessed("qwen3-235b-a22b-256-gb200"), "domains").rows, "rack").devices == 64
    )  # the design uses 64 of an NVL72's 72
    torus = part(assessed("llama-3.1-405b-256-tpu-v7x"), "domains")
    assert one(torus.rows, "cube").devices == 64  # 4 x 4 x 4 chips (TPU v4, ISCA'23)
    assert not [r for r in torus.rows if r.id in ("leaf", "rack")]


def test_what_nobody_publishes_is_bounded_by_llama3s_silence(assessed):
    """Zero racks in 54 days of 16,384 devices: exp(-3) = 5 % is the chance of that at three
    expected (rule of three)."""
    d = part(assessed("llama-3.1-405b-16384-published"), "domains")
    rack = one(d.rows, "rack")
    assert rack.events_per_run is None and rack.at_most_per_run * 54 / d.run.days == pytest.approx(
        3.0
    )
    assert np.exp(-3.0) < 0.05 < np.exp(-2.9)
    assert rack.goodput_at_most == pytest.approx(
        rack.at_most_per_run * (rack.loss_s + rack.wait_s) / 86_400 / d.run.days
    )
    assert all((r.at_most_per_run is None) == (r.events_per_run is not None) for r in d.rows)


def test_a_synchronous_step_of_ten_thousand_devices_swings_by_megawatts(assessed):
    """Llama 3 (section 3.3.4): tens of megawatts on 16,384 H100, whose servers draw 10.2 kW;
    a cap of 80 % lowers clocks by the cube root and so lengthens what computes."""
    a = assessed("llama-3.1-405b-16384-published")
    swing, cap = (
        next(line for line in part(a, "domains").advice if word in line)
        for word in ("swing within", "capped to 80%")
    )
    assert 14 < float(swing.split(" MW")[0].rsplit(" ", 1)[1]) < 16384 / 8 * 10.2e-3
    days = float(cap.split(" days longer")[0].rsplit(" ", 1)[1])
    assert 0.6 < days / (a.days * (0.8 ** (-1 / 3) - 1)) < 0.95
    small = part(assessed("case-1-175b-moe-1024-a100"), "domains").advice
    assert not any("swing within" in line for line in small)
