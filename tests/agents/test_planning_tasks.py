"""The planning tasks end in designs whose verdict the command line confirms."""

from __future__ import annotations

import pytest

pytest.importorskip("mcp", reason="pip install 'scantling[mcp]'")

import planning_tasks  # noqa: E402

MET = {"feasible", "feasible-at-risk"}


@pytest.mark.slow
def test_no_task_says_that_a_design_fits_where_it_does_not(tmp_path):
    ended = planning_tasks.run(tmp_path)
    assert len(ended) == 20
    for one in ended:
        assert one.verdict == one.confirmed, one
        assert one.met == (one.exit == 0) == (one.confirmed in MET), one
    assert [one.verdict for one in ended if one.task.fixed] == [
        "constraint-missed",
        "impossible",
        "constraint-missed",
    ]
    assert all(one.met for one in ended if not one.task.fixed)
