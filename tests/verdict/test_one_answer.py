"""One answer a design: days, dollars and chances are the same wherever they are said, what is
assumed can be run, and what is asked for is judged by them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scantling as sc
from scantling.advise.inert import inert
from scantling.catalogue.words import TOPOLOGIES
from scantling.cli import main as command
from scantling.design.cluster_rules import build_cluster
from scantling.physics.step import step_time
from scantling.physics.wires import link_of
from scantling.verdict.assess import changed
from scantling.verdict.assessment import Alternative
from scantling.verdict.texts import verdict_sentence
from scantling_kits.preview import kit_gaps
from scantling_site import part
from scantling_site.promise import promise

GALLERY = Path(__file__).parents[2] / "gallery/designs"
DENSE = {
    "model": "llama-3.1-405b",
    "cluster": {"accelerator": "h100-sxm", "devices": 16384, "scale_out": "ib-ndr"},
    "job": {"tokens": 15.6e12, "seq_len": 8192, "global_batch": 2048},
    "stack": "megatron-core",
}
SMALL = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm", "devices": 512},
    "job": {"tokens": 2e12, "seq_len": 8192, "global_batch": 512},
}


def made(base, **sections):
    """A design with some sections updated."""
    data = {k: dict(v) if isinstance(v, dict) else v for k, v in base.items()}
    for name, section in sections.items():
        old = data.get(name)
        new = {**old, **section} if isinstance(old, dict) else section
        data[name] = new
    return sc.Design.from_data(data)


@pytest.mark.parametrize(
    "devices, deadline", [(16_384, 80.0), (131_072, 90.0), (16_384, 120.0), (8192, 200.0)]
)
def test_a_deadline_has_one_chance(devices, deadline):
    """The chance in the verdict's line is that of the drawn runs, and the headline is their median,
    inside its own interval; the verdict follows both."""
    design = made(DENSE, cluster={"devices": devices}, constraints={"deadline_days": deadline})
    a = sc.assess(design)
    said = promise(a)
    likely = a.likely
    assert likely.days == said["days_p50"] and likely.cost_usd == said["cost_p50"]
    assert likely.days_low < likely.days < likely.days_high
    late = likely.days > deadline
    assert (a.verdict == "constraint-missed") == late
    for missed in a.missed:
        assert missed.value == likely.days and missed.chance == said["deadline_kept"]
        assert missed.chance < 0.5
    if not late and 1 - said["deadline_kept"] > 0.2:
        assert any(reason.field == "deadline_days" for reason in a.reasons)
    figures = a.as_dict(advice=False)
    assert figures["likely"]["days"] == likely.days
    assert figures["promise"]["deadline_kept"] == said["deadline_kept"]
    assert not any("deadline" in risk.evidence for risk in part(a, "risks").rows)


def test_a_budget_is_judged_by_likely_dollars():
    free = sc.assess(made(SMALL, prices={"usd_per_device_hour": 2.5}))
    for times, verdict in ((0.9, "constraint-missed"), (2.5, "feasible")):
        usd = times * free.likely.cost_usd
        prices = {"usd_per_device_hour": 2.5}
        a = sc.assess(made(SMALL, prices=prices, constraints={"budget_usd": usd}))
        assert a.verdict == verdict


def test_the_terminal_says_the_same_pair_as_the_json(tmp_path, capsys):
    file = tmp_path / "a.yaml"
    file.write_text(made(DENSE).to_yaml())
    command(["design", str(file), "--json"])
    likely = json.loads(capsys.readouterr().out)["likely"]
    command(["goodput", str(file), "--json"])
    assert json.loads(capsys.readouterr().out)["likely"] == likely
    command(["design", str(file)])
    assert f"likely {likely['days']:.1f} days" in capsys.readouterr().out


def test_what_is_assumed_of_recovery_can_be_run():
    """No kit goes on without a lost replica: no design counts on it unless it says so."""
    for stack in (None, "megatron-core", "torchtitan", "pytorch-fsdp", "maxtext"):
        a = sc.assess(made(SMALL, stack=stack))
        assert a.endurance.recovery == "in-place"
        assert "reliability.recovery" in {x.field for x in a.assumed}


@pytest.mark.parametrize("devices", [16_384, 98_304])
def test_each_rung_of_recovery_stops_less_than_the_one_before(devices):
    def good(recovery):
        batch = 2048 * devices // 16_384
        changed = made(
            DENSE,
            cluster={"devices": devices},
            job={"global_batch": batch},
            reliability={"recovery": recovery},
        )
        return sc.assess(changed).goodput

    rungs = [good(word) for word in ("restart", "in-place", "elastic", "replica", "parts")]
    assert rungs == sorted(rungs) and rungs[-1] > rungs[0] + 0.1


@pytest.mark.parametrize("more", [1, 8192])
def test_idle_devices_do_not_fail_the_job(more):
    pins = {"tp": 8, "pp": 16, "cp": 1, "dp": 128}
    alone = sc.assess(made(DENSE, plan=pins))
    beside = sc.assess(made(DENSE, plan=pins, cluster={"devices": 16_384 + 8 * more}))
    assert beside.mtbf_s == alone.mtbf_s and beside.days <= alone.days * (1 + 1e-12)
    assert beside.spares <= alone.spares


def test_planned_stops_scale_with_the_machine_and_can_be_set():
    few, many = (
        sc.assess(made(SMALL, cluster={"devices": n}, job={"global_batch": 4096}))
        for n in (8, 2048)
    )
    ratio = float(many.endurance.planned_per_day / few.endurance.planned_per_day)
    assert ratio == pytest.approx(many.devices_used / few.devices_used)
    llama = sc.assess(made(DENSE)).endurance
    assert float(llama.planned_per_day) == pytest.approx(47 / 54)  # Llama 3, section 3.3.4
    assert "reliability.planned_per_day" in {x.field for x in few.assumed}
    stated = sc.assess(made(SMALL, reliability={"planned_per_day": 3}))
    assert float(stated.endurance.planned_per_day) == 3


@pytest.mark.parametrize(
    "devices, pod, spares, met",
    [(4096, 1024, None, True), (4096, 1024, 4, False), (1024, 1024, None, False)],
)
def test_a_pod_is_survived_by_a_pod_of_spares(devices, pod, spares, met):
    stated = {} if spares is None else {"spares": spares}
    a = sc.assess(
        made(
            SMALL,
            cluster={"devices": devices, "pod_devices": pod},
            constraints={"survive": "pod"},
            reliability=stated,
        )
    )
    assert (not a.missed) == met


@pytest.mark.parametrize(
    "sections, field",
    [
        ({"reliability": {"spares": 5000}}, "reliability.spares"),
        ({"model": "gpt-3-1.3b", "job": {"seq_len": 32_768}}, "job.seq_len"),
        ({"job": {"corpus": {"raw_bytes": 1e12}}}, "job.corpus.raw_bytes"),
        ({"job": {"precision": "mxfp8"}}, "job.precision"),
    ],
)
def test_values_that_do_not_go_together_are_asked_about(sections, field):
    base = dict(SMALL)
    asked = sc.assess(made(base, **sections))
    assert asked.verdict == "not-checked"
    assert field in {reason.field for reason in asked.reasons}
    confirmed = sc.assess(made(base, **sections, confirm=[field]))
    assert field not in {reason.field for reason in confirmed.reasons}


def test_an_announced_chip_is_said_to_be_one_in_the_first_line():
    a = sc.assess(made(SMALL, cluster={"accelerator": "rubin", "devices": 576}))
    assert "announced" in verdict_sentence(a.as_dict(advice=False)).name


@pytest.mark.parametrize("devices, tier", [(1024, 1), (16_384, 2)])
def test_one_ratio_is_that_of_the_top_tier(devices, tier):
    one = [1.0, 1.0, 1.0][: tier + 1]
    one[tier] = 7.0
    steps = [
        sc.assess(
            made(DENSE, cluster={"devices": devices, "oversubscription": ratio}, plan={"tp": 8})
        ).step_s
        for ratio in (7.0, one)
    ]
    assert steps[0] == pytest.approx(steps[1], rel=1e-12)


def test_pods_never_undo_what_leaves_narrow():
    for pod in (512, 4096, 16_384):
        base = {"oversubscription": [1, 7, 1]}
        flat, podded = (
            sc.assess(made(DENSE, cluster=cluster, plan={"tp": 8, "pp": 16, "cp": 1})).step_s
            for cluster in (base, {**base, "pod_devices": pod})
        )
        assert podded >= flat * (1 - 1e-12)


@pytest.mark.slow
def test_more_capacity_never_slows():
    """2,000 random networks, each against one with more of something: the plan's step is no
    longer."""
    cases = {
        name: sc.assess(made(base, **more)).chosen.case
        for name, base, more in (
            ("dense", DENSE, {"plan": {"tp": 8, "pp": 16, "cp": 1}}),
            ("small", SMALL, {}),
            (
                "experts",
                SMALL,
                {"model": "mixtral-8x22b", "cluster": {"devices": 2048}, "plan": {"ep": 8}},
            ),
        )
    }
    rng = np.random.default_rng(7)
    for _ in range(2000):
        case = list(cases.values())[rng.integers(len(cases))]
        devices = int(case.plan.tp * case.plan.cp * case.plan.pp * case.plan.dp)
        ratio = float(rng.choice([1.0, 1.067, 1.5, 2.0, 3.0, 4.0, 7.0]))
        network = {
            "accelerator": "h100-sxm",
            "devices": devices,
            "scale_out": str(rng.choice(["ib-ndr", "rocev2-400"])),
            "oversubscription": [ratio, [1.0, ratio], [1.0, 1.0, ratio]][rng.integers(3)],
        }
        if rng.random() < 0.4:
            network["pod_devices"] = int(rng.choice([256, 512, 1024, 4096]))
        if rng.random() < 0.5:
            network["topology"] = str(rng.choice(TOPOLOGIES))
        if rng.random() < 0.3:
            network["rails"] = int(rng.choice([1, 2, 4]))
        more = dict(network)
        match rng.integers(4):
            case 0:
                rate = float(rng.choice([12.5, 25.0, 50.0]))
                network["scale_out_gbytes_per_s_per_device"] = rate
                more["scale_out_gbytes_per_s_per_device"] = 2 * rate
            case 1:
                stated = network["oversubscription"]
                half = [1 + (x - 1) / 2 for x in np.atleast_1d(stated)]
                more["oversubscription"] = half if isinstance(stated, list) else half[0]
            case 2:
                more["in_network_reduction"] = True
            case _ if "pod_devices" in network:
                more["pod_devices"] = 2 * network["pod_devices"]
        before, after = (
            float(step_time(_linked(case, build_cluster(one)[0])).total) for one in (network, more)
        )
        assert after <= before * (1 + 1e-9), (network, more)


def _linked(case, cluster):
    """The case on the links of a cluster."""
    return replace(case, link=link_of(cluster))


@pytest.mark.parametrize(
    "sections, field",
    [
        ({"stack": {"id": "megatron-core", "release": "26.08"}}, "stack.release"),
        ({"cluster": {"topology": "multi-plane", "devices": 1024}}, "cluster.topology"),
        ({"cluster": {"rails": 4, "devices": 1024}}, "cluster.rails"),
        ({"cluster": {"site_rtt_ms": 50}}, "cluster.site_rtt_ms"),
        ({"cluster": {"storage": "nfs"}}, "cluster.storage"),
        ({"job": {"evaluation_hours": 20}}, "job.evaluation_hours"),
    ],
)
def test_fields_without_effect_say_so(sections, field):
    lines = inert(sc.assess(made(DENSE | {"model": "llama-3.1-70b"}, **sections)))
    assert any(line.startswith(f"{field}: no effect here, because") for line in lines)


def test_fields_with_an_effect_are_not_among_them():
    """All experts behind one dispatcher on 16,384 devices: the taper binds."""
    a = sc.assess(made(DENSE, cluster={"oversubscription": [1, 7]}, plan={"tp": 8, "pp": 16}))
    assert not any("oversubscription" in line for line in inert(a))


def test_a_field_that_moves_a_figure_is_tried_no_further(monkeypatch):
    """A pod of one node takes fewer spares to survive: no pod at all is not tried after it."""
    a = sc.assess(
        made(DENSE, cluster={"pod_devices": 1024}, constraints={"survive": "pod"}, plan={"tp": 8})
    )
    tried = []
    monkeypatch.setattr(
        "scantling.advise.inert.changed",
        lambda design, changes: tried.append(changes) or changed(design, changes),
    )
    assert not any("pod_devices" in line for line in inert(a))
    assert len(tried) == 1


def test_pins_that_cost_lead_the_verdict():
    """Tensor parallelism over PCIe: most of the step waits."""
    cluster = {"accelerator": "a100-80-pcie", "devices": 64}
    a = sc.assess(made(SMALL, cluster=cluster, plan={"tp": 8}))
    figures = a.as_dict()
    sentence = verdict_sentence(figures)
    assert "slower than it need be" in sentence.name and "tp 8" in sentence.reason
    assert figures["nearest_fixes"][0]["set"] == {"plan.tp": None}
    assert figures["nearest_fixes"][0]["days"] < 0.5 * a.days


def test_the_design_says_what_its_kit_cannot():
    pins = {"tp": 1, "pp": 16, "ep": 64, "schedule": "dualpipe"}
    base = {
        "model": "deepseek-v3",
        "cluster": {"accelerator": "h800-sxm", "devices": 2048},
        "job": {"tokens": 14.8e12, "seq_len": 4096, "global_batch": 15_360, "precision": "fp8"},
        "plan": pins,
        "stack": "megatron-core",
    }
    lines = kit_gaps(sc.assess(sc.Design.from_data(base)))
    assert any("schedule dualpipe cannot be expressed" in line for line in lines)
    assert any("its plan has a step of" in line for line in lines)
    assert kit_gaps(sc.assess(made(DENSE))) == []


def test_offload_beyond_the_host_without_drives_is_told_in_finite_figures(tmp_path, capsys):
    """A pinned offload that host memory and drives cannot hold: memory is what is said."""
    host = {"devices": 64, "host_memory_gb": 1, "nvme_gb": 0}
    design = made(SMALL, model="llama-3.1-70b", cluster=host, plan={"offload": "optimizer+params"})
    a = sc.assess(design)
    assert a.verdict == "constraint-missed" and np.isfinite(a.step_s) and 0 < a.mfu < 1
    assert a.as_dict()["limits"][0].startswith("memory:")
    file = tmp_path / "a.yaml"
    file.write_text(design.to_yaml())
    assert command(["design", str(file)]) == 3
    assert "none, the plan does not fit" in capsys.readouterr().out


def test_a_corruption_costs_one_figure():
    a = sc.assess(made(DENSE))
    rows = {row.id: row for row in part(a, "domains").rows}
    assert rows["corruption"].goodput_cost > a.endurance.badput["sdc"]
    assert rows["corruption"].loss_s > rows["device"].loss_s
    assert rows["building"].wait_s > 10 * rows["node"].loss_s


def test_a_field_by_which_a_constraint_is_judged_has_an_effect():
    """`survive: pod` is judged by the pod's size: that size is not said to have no effect on the
    page on which it decides the verdict."""
    a = sc.assess(
        made(
            DENSE | {"model": "llama-3.1-70b"},
            cluster={"devices": 4096, "pod_devices": 1024},
            job={"tokens": 4e12, "global_batch": 1024},
            constraints={"survive": "pod"},
            reliability={"spares": 8},
        )
    )
    assert a.verdict == "constraint-missed" and "128 needed" in a.missed[0].text
    assert not any("pod_devices" in line for line in inert(a))


@pytest.mark.parametrize("devices, dear", [(98_304, True), (4096, False)])
def test_what_failures_take_is_offered_back(devices, dear):
    """Where failures take half of a run that nothing forbids, what is offered saves as much as
    going on without a lost replica would; where they take 2 %, no restart is sold."""
    design = made(DENSE, cluster={"devices": devices}, job={"global_batch": 6144})
    a = sc.assess(design)
    assert (1 - a.goodput > 0.1) == dear
    offered = a.as_dict()["saving"]
    if not dear:
        assert offered is None or "reliability" not in " ".join(offered["set"])
        return
    going_on = sc.assess(design.change({"reliability.recovery": "replica"}))
    assert offered["likely"]["cost_usd"] <= going_on.likely.cost_usd < a.likely.cost_usd


def test_another_plan_is_longer_or_shorter_never_less_than_nothing_longer():
    """A tight plan that a framework runs is chosen over a faster one that none runs: the line on it
    says shorter, and why it was not taken."""
    data = {
        "model": {"size": 30e9, "layers": 48},
        "cluster": {"accelerator": "mi300x", "devices": 256, "scale_out": "roce-400"},
        "job": {"tokens": 1e12, "seq_len": 8192, "global_batch": 512},
    }
    a = sc.assess(sc.Design.from_data(data))
    assert a.fastest["step_s"] < a.step_s
    lines = a.as_dict()["limits"]
    assert not [line for line in lines if "\N{MINUS SIGN}" in line]
    shorter = [line for line in lines if line.startswith("tight:") and "shorter" in line]
    assert all("no framework with a launch kit runs it" in line for line in shorter)
    assert Alternative(plan="tp 1", longer=-0.062).apart == "a step 6.2 % shorter"
    assert Alternative(plan="tp 1", longer=0.062).apart == "a step 6.2 % longer"


@pytest.fixture(scope="module")
def deepseek_v3():
    """A design whose headline counts attention as the causal mask leaves it."""
    return sc.assess(sc.Design.read(GALLERY / "case-5-deepseek-v3.yaml"))


def test_every_mfu_beside_a_causal_headline_is_causal(deepseek_v3):
    """Plans of the search, phases and published runs, beside 19.1 % where the full count says
    21.4 %: those of this design by its own share, a run by that of its own length."""
    a = deepseek_v3.as_dict()
    assert a["mfu_basis"] == "causal"
    share = a["mfu_causal"] / a["mfu"]
    assert share < 0.9
    for row in [*a["candidates"], *a["phases"], a["without_single_source"] or {}]:
        if row:
            assert row["mfu_shown"] == pytest.approx(row["mfu"] * share)
    own = next(run for run in a["nearest_runs"] if run["id"].startswith("dsv3"))
    assert own["mfu_shown"] == pytest.approx(own["mfu"] * share, rel=1e-3)
    for run in a["nearest_runs"]:
        assert run["mfu_shown"] < run["mfu"]
        ratio = run["mfu_shown"] / run["mfu"]
        assert run["predicted_shown"] == pytest.approx(run["mfu_predicted"] * ratio)


def test_an_mfu_beside_a_full_headline_is_full():
    a = sc.assess(made(DENSE)).as_dict()
    assert a["mfu_basis"] == "full" and a["mfu_shown"] == a["mfu"]
    for row in [*a["candidates"], *a["phases"], *a["nearest_runs"]]:
        assert row["mfu_shown"] == row["mfu"]


def test_a_sweep_over_lengths_shows_mfu_by_one_count(capsys, tmp_path):
    """The full count leads at 2,048 tokens and the causal one at 8,192: one column holds both."""
    design = tmp_path / "small.yaml"
    design.write_text(made(SMALL).to_yaml())
    axes = ["job.seq_len=2048,8192", "--json"]
    command(["sweep", str(design), *axes])
    cells = json.loads(capsys.readouterr().out)
    assert [c["figures"]["mfu_basis"] for c in cells] == ["full", "causal"]
    command(["sweep", str(design), *axes[:1]])
    said = capsys.readouterr().out
    assert "MFU counts attention as causal masks leave it" in said
    for cell in cells:
        assert f"{cell['figures']['mfu_causal']:.1%}".replace("%", " %") in said


def test_a_price_that_is_missing_is_called_by_its_kind():
    """H100 have prices on demand and reserved, and none of a spot market."""
    data = {
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": "h100-sxm", "devices": 64},
        "job": {"tokens": 1e12, "seq_len": 8192, "global_batch": 512},
        "prices": {"kind": "spot"},
        "constraints": {"budget_usd": 1e5},
    }
    (line, *_) = sc.assess(sc.Design.from_data(data)).as_dict()["limits"]
    assert "the catalogue has no spot price of H100 80GB SXM5" in line
