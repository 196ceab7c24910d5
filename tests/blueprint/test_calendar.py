"""The calendar: parts of a machine, phases with plans of their own, what lies between them."""

import pytest
import scantling as sc
from scantling.cluster import part


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
                    {
                        "name": f"p{i}",
                        "tokens": n,
                        "seq_len": s,
                        "global_batch": 2**22 // s,
                    }
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
