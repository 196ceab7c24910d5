"""The board beside other planners says of this kit what the table of validation says."""

import leaderboard
import numpy as np
import pandas as pd
import pytest
from scantling_widgets.pages import validation_page


def test_the_line_of_this_kit_is_that_of_the_validation_table():
    kept = pd.read_csv(leaderboard.FOLDER / "validation.csv").set_index("id")
    board = pd.read_csv(leaderboard.OUT)
    own = board[board.planner == "scantling"].set_index("set")
    frame = leaderboard.chosen()
    said = kept.family_out.reindex(frame.id).to_numpy()
    asked = leaderboard.Asked(
        leaderboard.PUBLISHED, frame, said, frame.family.to_numpy(str), "family left out"
    )
    now = leaderboard.line("scantling", "", asked, said, np.nan, np.nan, "own")
    for name in ("rows", "answered", "median", "p90", "scaled_median", "pairs", "right"):
        assert own.at[leaderboard.PUBLISHED, name] == pytest.approx(now[name], abs=1e-4), name


def test_all_are_asked_the_same_and_pairs_are_many():
    board = pd.read_csv(leaderboard.OUT)
    assert board.groupby("set").rows.nunique().eq(1).all() and board.set.nunique() == 3
    own = board[board.planner == "scantling"].set_index("set")
    assert own.pairs[[leaderboard.PUBLISHED, leaderboard.GRID_SET]].min() >= 500
    allowed = set(leaderboard.SHARED)
    assert set(leaderboard.chosen().sharding.fillna("")) <= allowed
    assert set(leaderboard.of_grid().sharding.fillna("")) <= allowed


def test_one_factor_for_everybody():
    """Answers that are all half of what was measured are right after one factor, which never saw
    the family that it is used on."""
    measured = pd.Series([100.0, 200.0, 400.0, 30.0])
    trains = np.array(["a", "a", "b", "b"])
    assert leaderboard.scaled(measured / 2, measured, trains).tolist() == measured.tolist()
    said = pd.Series([50.0, 100.0, 400.0, 30.0])
    assert leaderboard.scaled(said, measured, trains).tolist() == [50, 100, 800, 60]


def test_where_another_planner_is_nearer_the_page_says_so():
    board = pd.read_csv(leaderboard.OUT)
    told = validation_page.nearer(board.to_dict("records"))
    own = board[board.planner == "scantling"].set_index("set")
    for row in board[board.planner != "scantling"].itertuples():
        for name, better in (("median", row.median < own["median"][row.set]),):
            said = [s for s in told if s.startswith(f"On {row.set} {row.planner} ")]
            assert any("median error:" in s for s in said) == better, (row.planner, name)
