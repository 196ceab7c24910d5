"""The board beside other planners says of this kit what the table of validation says."""

import leaderboard
import pandas as pd
import pytest


def test_the_line_of_this_kit_is_that_of_the_validation_table():
    frame = leaderboard.chosen()
    kept = pd.read_csv(leaderboard.FOLDER / "validation.csv").set_index("id")
    said = kept.family_out.reindex(frame.id).to_numpy()
    now = leaderboard.line("scantling", "", frame, said, 0.0, "own")
    board = pd.read_csv(leaderboard.OUT).set_index("planner")
    for name in ("rows", "answered", "median", "p90", "pairs", "right", "ratio_off"):
        assert board.at["scantling", name] == pytest.approx(now[name], abs=1e-4), name
    others = board.drop(index="scantling")
    assert (board.at["scantling", "median"] < others["median"]).all()  # else say who is nearer
