"""What is said once of two values is said of each: the short line and the long one read alike."""

from __future__ import annotations

import pytest
from scantling.design.draft import draft
from scantling.plans.prepare import prepare
from scantling_brief.brief import read_brief
from scantling_brief.coordination import said_of_each
from scantling_brief.question_commands import arguments

BESIDE = "13B on {}, 1T tokens: which one is better?"
RUN = "13B on 64 H100, 1T tokens, {}: which one is better?"
PAIRS = [
    (BESIDE, "64 or 128 H100", "64 H100 or 128 H100"),
    (BESIDE, "64 or 128 GPUs", "64 GPUs or 128 GPUs"),
    (BESIDE, "8 vs 16 nodes of H100", "8 nodes of H100 vs 16 nodes of H100"),
    (BESIDE, "8, 16 or 32 H100 nodes", "8 H100 nodes or 16 H100 nodes or 32 H100 nodes"),
    (BESIDE, "1k GPUs for 2 months or 2k for 1", "1k GPUs for 2 months or 2k GPUs for 1 month"),
    (
        BESIDE,
        "64 A100 at 1.1 or 32 H100 at 2.3 per hour",
        "64 A100 at 1.1 per hour or 32 H100 at 2.3 per hour",
    ),
    (RUN, "4 or 8k context", "4k context or 8k context"),
    (RUN, "batch 2M or 4M tokens", "batch 2M tokens or batch 4M tokens"),
    (RUN, "checkpoints every 15 or 60 minutes", "checkpoints every 15 minutes or 60 minutes"),
    (RUN, "in 30 or 60 days", "in 30 days or 60 days"),
    (RUN, "2:1 instead of 4:1 oversubscription", "2:1 oversubscription or 4:1 oversubscription"),
    (RUN, "moving from 4096 to 8192 context", "4096 context or 8192 context"),
]


def compared(line):
    """The fields of a line and the command that it means; nothing of it is asked about."""
    reading = read_brief(line)
    design, _, _ = draft(reading, None, prepare)
    assert not design.unread
    return reading.fields, arguments(reading, design, "FILE")


@pytest.mark.parametrize(("line", "once", "of_each"), PAIRS, ids=[once for _, once, _ in PAIRS])
def test_what_is_said_once_is_said_of_each(line, once, of_each):
    assert compared(line.format(once)) == compared(line.format(of_each))


@pytest.mark.parametrize(
    "line",
    [
        "between 256 and 512 H100",
        "70B and 4T tokens",
        "70B or 512 H100",
        "from 2k to 16k GPUs",
        "why did it drop from 12k to 8k tokens",
        "step time went from 9.1 s to 14 s",
        "1,536 H200, 2 nodes",
    ],
)
def test_what_is_of_different_kinds_or_a_range_is_left(line):
    assert said_of_each(line, False) == line
