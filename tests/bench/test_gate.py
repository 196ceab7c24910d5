"""The gate: it sees what moved and by how much, and a new chip does not redraw its points."""

from __future__ import annotations

import gate
import pandas as pd


def state(**changed) -> pd.DataFrame:
    row = dict(kind="point", id="1 a", step_s="2", memory="40", days="", cost_usd="", broken="")
    return pd.DataFrame([row | changed])


def test_what_moved_is_said_with_its_size(capsys):
    assert gate.compared(state(), state()) == 0
    assert "moved" not in capsys.readouterr().out
    assert gate.compared(state(), state(step_s="2.1")) == 1
    assert "1 a: 2 -> 2.1 (+5.0 %)" in capsys.readouterr().out
    assert gate.compared(state(), state(memory="")) == 1
    assert gate.compared(state(), state(broken="arithmetic")) == 1
    assert "kept -> arithmetic" in capsys.readouterr().out


def test_a_row_more_in_the_catalogue_leaves_most_points_where_they_were():
    names = [f"chip-{i}" for i in range(40)]
    kept = [gate.drawn(n, "x", names) == gate.drawn(n, "x", [*names, "new"]) for n in range(400)]
    assert 0.95 < sum(kept) / 400 < 1


def test_families_that_a_change_makes_worse_are_named(capsys):
    """Each family weighs one: a large one that gains does not cover a small one that loses."""
    ids = [f"r{i}" for i in range(12)]
    family = pd.Series(["large"] * 10 + ["small"] * 2, ids)
    was = pd.Series([0.10] * 10 + [0.05] * 2, ids)
    now = pd.Series([0.02] * 10 + [0.15] * 2, ids)
    gate.families(was, now, family)
    told = capsys.readouterr().out
    assert "small: 5.0 -> 15.0 % over 2 rows" in told
    assert "large" not in told and "1 better" in told and "1 worse" in told


def test_where_nothing_moved_no_family_is_worse(capsys):
    """Each of two families as it was: none is counted, and none is named."""
    ids = ["r0", "r1"]
    off, family = pd.Series([0.1, 0.2], ids), pd.Series(["one", "two"], ids)
    gate.families(off, off, family)
    assert capsys.readouterr().out.splitlines()[1:] == ["  0 better by more than 0.2%, 0 worse"]
