"""The front against its definition, and candidates out and measured results back in."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scantling import Design, assess
from scantling.advise import frontier as f
from scantling.physics.gather import situation
from scantling.plans.evaluate import find
from scantling.plans.prepare import prepare

TEXT = (
    "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 64}\njob: {tokens: "
    "1.0e12, seq_len: 8192, global_batch: 256}\n"
)


def dominated(a, b):
    return np.all(b <= a) and np.any(b < a)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 6)] * 3), min_size=1, max_size=40))
def test_the_front_by_its_definition(points):
    seen = 0
    x = np.array(points, float)
    kept = set(f.undominated(x).tolist())
    for i in range(len(x)):
        beaten = any(dominated(x[i], x[j]) for j in range(len(x)))
        if i in kept:
            seen += 1
            assert not beaten
        else:
            seen += 1
            assert beaten or any(np.array_equal(x[i], x[j]) for j in kept)
    assert seen


def test_points_that_are_not_finite_never_count():
    assert f.undominated([[1.0, np.nan], [2.0, 3.0], [np.inf, 1.0]]).tolist() == [1]


@pytest.mark.slow
def test_the_front_over_device_counts_has_no_dominated_point():
    d = Design.from_text(TEXT)
    front = f.fronts([d.change({"cluster.devices": n}) for n in (16, 32, 64, 128, 256)])
    values = np.array([[p["days"], p["cost_usd"], p["devices"], p["memory_share"]] for p in front])
    assert len(front) >= 3
    assert not any(
        dominated(values[i], values[j]) for i in range(len(values)) for j in range(len(values))
    )
    assert np.all(np.diff(values[:, 0]) >= 0)
    fastest = assess(d.change({"cluster.devices": 256}))
    sooner = fastest.fastest["step_s"] / fastest.step_s  # the simplest within a hundredth is chosen
    assert front[0]["days"] == pytest.approx(fastest.days * sooner)


def found():
    r = prepare(Design.from_text(TEXT))
    return find(situation(r, r.phases[0]))


def test_candidates_differ_in_kind():
    s = found()
    rows = f.diverse(s, 6)
    kinds = [tuple(s.row(int(i))[k] for k in f.FAMILY) for i in rows]
    assert len(set(kinds)) == len(kinds) == 6
    assert rows[0] == s.best()
    assert np.all(np.diff(s.step_s[rows]) >= 0)


def test_a_sweep_out_and_back(tmp_path):
    s = found()
    path = f.export(s, tmp_path / "candidates.csv", 5)
    with path.open(newline="") as given:
        rows = list(csv.DictReader(given))
    assert len(rows) == 5 and rows[0]["measured_step_s"] == ""
    with pytest.raises(ValueError, match="no row"):
        f.read_back(path)
    order = [3, 0, 1, 4]  # measured on another machine, where the fourth wins
    for place, i in enumerate(order):
        rows[i]["measured_step_s"] = str(10.0 + place)
    with path.open("w", newline="") as out:
        w = csv.DictWriter(out, rows[0].keys())
        w.writeheader()
        w.writerows(rows)
    back = f.read_back(path)
    assert len(back["rows"]) == 4 and 0 <= back["agreement"] < 1
    assert back["best"]["tp"] == int(rows[3]["tp"]) and back["calibration"] > 0
    pinned = assess(
        Design.from_text(TEXT).change({f"plan.{k}": v for k, v in back["best"].items()})
    )
    assert pinned.verdict == "feasible"
    assert pinned.chosen.step.total == pytest.approx(float(rows[3]["predicted_step_s"]), rel=1e-4)
    rows[1]["measured_step_s"] = "fast"
    with path.open("w", newline="") as out:
        w = csv.DictWriter(out, rows[0].keys())
        w.writeheader()
        w.writerows(rows)
    with pytest.raises(ValueError, match="line 3.*'fast'"):
        f.read_back(path)
