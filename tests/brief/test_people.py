"""Lines in people's own words: most are read as they were meant, and hardly any is read as
something else."""

from __future__ import annotations

from collections import Counter

import pytest
from scoring import rows, score

PEOPLE = rows("people.yaml")
LATER = rows("later.yaml")
PLANNERS = rows("planners.yaml")
FORUMS = rows("forums.yaml")
THREADS = rows("threads.yaml")
COLLEAGUES = rows("colleagues.yaml")
OFFICES = rows("offices.yaml")
BUYERS = rows("buyers.yaml")
INBOXES = rows("inboxes.yaml")
TRACKERS = rows("trackers.yaml")
TEAMS = rows("teams.yaml")
ORDINARY = rows("ordinary.yaml")


@pytest.mark.parametrize(
    "row",
    [
        *PEOPLE,
        *LATER,
        *PLANNERS,
        *FORUMS,
        *THREADS,
        *COLLEAGUES,
        *OFFICES,
        *BUYERS,
        *INBOXES,
        *TRACKERS,
        *TEAMS,
    ],
    ids=lambda row: row["said"][:40],
)
def test_no_line_is_read_as_another(row):
    """A question is better than a wrong reading; nothing is worked out from it."""
    result = score(row)
    assert result.kind != "wrong", result.why


@pytest.mark.parametrize(
    "lines",
    [
        [row for row in PEOPLE if not row.get("aside")],
        [row for row in PEOPLE if row.get("aside")],
        LATER,
        PLANNERS,
        FORUMS,
        THREADS,
        COLLEAGUES,
        OFFICES,
        BUYERS,
        INBOXES,
        TRACKERS,
        TEAMS,
    ],
    ids=[
        "first half",
        "kept aside",
        "written later",
        "planners",
        "forums",
        "threads",
        "colleagues",
        "offices",
        "buyers",
        "inboxes",
        "trackers",
        "teams",
    ],
)
def test_most_lines_are_right_and_hardly_any_is_wrong(lines):
    counts = Counter(score(row).kind for row in lines)
    assert counts["right"] >= 0.8 * len(lines)
    assert counts["wrong"] <= 0.03 * len(lines)


@pytest.mark.parametrize("row", ORDINARY, ids=lambda row: row["said"][:40])
def test_ordinary_words_are_read(row):
    result = score(row)
    assert result.kind == "right", result.why
