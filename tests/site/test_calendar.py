"""The calendar: parts of a machine, phases with plans of their own, what lies between them."""

import pytest
import scantling as sc
from scantling_site import part


def design(delivery=None, phases=(1e12,), **job):
    lengths = (8192, 131_072)
    return sc.Design.from_data(
        {
            "scantling": 1,
            "model": "llama-3-70b",
            "cluster": {"accelerator": "h100-sxm", "devices": 1024, "scale_out": "ib-ndr"}
            | ({"delivery": delivery} if delivery else {}),
            "job": {
                "phases": [
                    {"name": f"p{i}", "tokens": n, "seq_len": s, "global_batch": 2**22 // s}
                    for i, (n, s) in enumerate(zip(phases, lengths))
                ],
                **job,
            },
        }
    )


@pytest.fixture(scope="module")
def whole():
    a = sc.assess(design(phases=(1e12, 5e10)))
    return a, part(a, "calendar")


def test_the_last_token_comes_after_the_days_of_the_run(whole):
    a, found = whole
    trained = sum(e["days"] for e in found.entries if e["why"] == "training")
    assert trained == pytest.approx(a.days)
    between = sum(p["seconds"] for p in found.passages) / 86_400
    assert found.last_token_day == pytest.approx(
        found.first_step_day + a.days + between + 4 / 24, rel=1e-6
    )


def test_a_longer_context_is_another_plan_and_its_states_are_read(whole):
    _, found = whole
    (passage,) = found.passages
    assert passage["changes"] and passage["compatible"] and passage["seconds"] > 60
    assert {d["phase"] for d in found.demands} == {"p0", "p1"}
    other = design(phases=(1e12, 5e10)).change({"job.phases.1.optimizer": "muon"})
    (passage,) = part(sc.assess(other), "calendar").passages
    assert not passage["compatible"]


def test_a_load_takes_as_long_as_bytecheckpoint_measured(whole):
    """129 to 266 s end to end, resharding included (ByteCheckpoint, NSDI'25, table 8)."""
    a, found = whole
    (passage,) = found.passages
    assert 120 <= passage["parts"]["read"] <= 266
    assert passage["seconds"] == pytest.approx(sum(passage["parts"].values()))
    per_s = a.cost_usd / a.days / 86_400
    assert passage["usd"] == pytest.approx(passage["seconds"] * per_s, rel=0.05)
    assert "another index" in " ".join(passage["why"])  # sequences of another length


def between(*phases, **pins):
    """The passage between two phases of 70B on 1,024 devices."""
    design = sc.Design.from_data(
        {
            "model": "llama-3-70b",
            "cluster": {"accelerator": "h100-sxm", "devices": 1024, "scale_out": "ib-ndr"},
            "job": {"phases": [{"name": f"p{i}", **p} for i, p in enumerate(phases)]},
            "plan": {
                "tp": 8,
                "cp": 1,
                "pp": 4,
                "vpp": 5,
                "sharding": "zero1",
                "micro_batch": 1,
                **pins,
            },
        }
    )
    (passage,) = part(sc.assess(design), "calendar").passages
    return passage


def test_a_batch_ramp_and_an_annealing_go_on_in_the_same_job():
    """Megatron-LM ramps the batch inside one job (--rampup-batch-size), and a schedule of the
    learning rate is a schedule: without another layout nothing is saved or read."""
    one = {"tokens": 1e11, "seq_len": 8192, "global_batch": 512}
    for after in (one, one | {"global_batch": 1024}):
        found = between(one, after, dp=32)
        assert not found["changes"] and found["seconds"] == found["usd"] == 0
        assert "same job goes on" in found["why"][0]


def test_another_layout_has_a_price_of_its_own():
    """All of the passage where nothing else asks for a start; else what devices fetch from each
    other, and that is bytes over the cards' rate: seconds beside the minutes of a load."""
    one = {"tokens": 1e11, "seq_len": 8192, "global_batch": 64}
    ramp = between(one, one | {"global_batch": 1024})
    assert set(ramp["changes"]) == {"dp"} and ramp["layout_s"] == ramp["seconds"] > 100
    assert ramp["layout_usd"] == ramp["usd"] > 0
    longer = between(one, one | {"global_batch": 1024, "seq_len": 4096})
    assert longer["changes"] and longer["layout_s"] == longer["parts"]["exchange"]
    # a device of 8 x 4 holds 2 bytes of 70e9 / 32 weights and up to 12 more of its share of them
    slowest, quickest = 14 * 70e9 / 32 / 50e9 / 0.5, 2 * 70e9 / 32 / 50e9
    assert quickest < longer["layout_s"] < slowest
    wide = one | {"global_batch": 512}
    same = between(wide, wide | {"seq_len": 4096}, dp=32)
    assert not same["changes"] and same["layout_s"] == 0 < same["seconds"]


def test_network_and_stores_are_judged_by_the_phase_that_needs_most(whole):
    a, found = whole
    asked = {d["phase"]: d for d in found.demands}
    network, stores = part(a, "network"), part(a, "stores")
    assert network.phase == max(asked, key=lambda p: asked[p]["network_share"])
    assert stores.phase == max(asked, key=lambda p: asked[p]["read_bytes_per_s"])
    assert stores.ingest_bytes_per_s == pytest.approx(asked[stores.phase]["read_bytes_per_s"])
    # the same run with its phases the other way round is judged by the same one
    phases = a.design.data()["job"]["phases"][::-1]
    turned = part(sc.assess(a.design.change({"job.phases": phases})), "network")
    assert turned.phase == network.phase
    (judged,) = (one for one in a.phases if one.phase.name == network.phase)
    ranks = {axis.axis: axis.ranks for axis in network.axes}
    assert ranks["tp"] == judged.plan["tp"] and ranks["pp"] == judged.plan["pp"]


def test_a_phase_alone_needs_what_it_needs_among_others(whole):
    """What a part of the machine cannot hold waits for more of it; what it can is planned there."""
    a, _ = whole
    few = [{"day": 0, "devices": 8}, {"day": 20, "devices": 1016}]
    found = part(sc.assess(design(few).change({"plan.offload": "none"})), "calendar")
    assert found.first_step_day > 20 and "hold no plan" in " ".join(found.lines)
    half = sc.assess(a.design.change({"cluster.devices": 512}))
    late = [{"day": 0, "devices": 512}, {"day": 40, "devices": 512}]
    parts = part(sc.assess(a.design.change({"cluster.delivery": late})), "calendar")
    p0 = [e for e in parts.entries if e["what"] == "p0"]
    early = sum(e["days"] for e in p0 if e["devices"] <= 512)
    trained = early * half.goodput / half.phases[0].step_s
    rest = sum(e["days"] for e in p0 if e["devices"] > 512)
    steps = 1e12 / 2**22
    whole_rate = a.goodput / a.phases[0].step_s
    assert 86_400 * (trained + rest * whole_rate) == pytest.approx(steps, rel=0.01)


def test_parts_train_as_they_come():
    late = [{"day": 0, "devices": 256}, {"day": 20, "devices": 768}]
    at_once, parts, last = (
        part(sc.assess(design(d)), "calendar") for d in (None, late, [{"day": 20, "devices": 1024}])
    )
    assert at_once.last_token_day < parts.last_token_day < last.last_token_day
    assert last.last_token_day == pytest.approx(at_once.last_token_day + 20, abs=0.1)
    # a quarter of the devices for 20 days is worth five days of all of them
    assert parts.last_token_day == pytest.approx(last.last_token_day - 5, abs=0.5)
    used = {e["devices"] for e in parts.entries if e["why"] == "training"}
    assert used == {256, 1024}


def test_parts_have_to_add_up():
    with pytest.raises(sc.DesignError, match="cluster.delivery"):
        sc.assess(design([{"day": 0, "devices": 256}, {"day": 9, "devices": 700}]))


def test_without_tokens_there_is_no_last_one():
    d = design().change({"job.phases.0.tokens": None})
    found = part(sc.assess(d), "calendar")
    assert found.last_token_day is None and found.first_step_day > 0
