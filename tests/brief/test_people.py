"""Lines in people's own words: most are read as they were meant, and hardly any is read as
something else."""

from __future__ import annotations

from collections import Counter

import pytest
from scoring import rows, score

LINES = rows("people.yaml")


@pytest.mark.parametrize("row", LINES, ids=lambda row: row["said"][:40])
def test_no_line_is_read_as_another(row):
    """A question is better than a wrong reading; nothing is worked out from it."""
    result = score(row)
    assert result.kind != "wrong", result.why


@pytest.mark.parametrize("aside", [False, True])
def test_most_lines_are_right_and_hardly_any_is_wrong(aside):
    """The half that the reader was written with, and the half that was kept aside."""
    counts = Counter(score(row).kind for row in LINES if bool(row.get("aside")) == aside)
    lines = counts.total()
    assert counts["right"] >= 0.8 * lines
    assert counts["wrong"] <= 0.03 * lines
