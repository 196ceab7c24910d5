"""A sample of the designs drawn at random that `make properties` looks at by the ten thousand."""

from __future__ import annotations

from functools import cache

import pytest
import random_designs

# 212, 480 billion parameters on forty 16 GB devices, takes as long as the others together
SAMPLE = [*(number for number in range(169, 236) if number != 212), 314]  # 314 is at risk


@cache
def outcome(number: int) -> str:
    return random_designs.looked_at(number, dear=number % 20 == 0)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, len(SAMPLE), 20))
def test_what_must_hold_for_any_design(start):
    assert all(outcome(number) for number in SAMPLE[start : start + 20])


@pytest.mark.slow
def test_the_sample_is_of_every_kind():
    assert {*map(outcome, SAMPLE)} == {*random_designs.VERDICTS, "refused"}


def test_a_broken_property_is_found(monkeypatch, capsys):
    """A step that is not a number, one plan in a thousand: the run ends with its numbers, and not
    with 0."""
    import numpy as np
    from scantling.plans import evaluate as searching

    real = searching.step_time

    def spoiled(c):
        step = real(c)
        return random_designs.replace(
            step, host=step.host + np.where(np.asarray(c.plan.tp) == 2, np.nan, 0.0)
        )

    monkeypatch.setattr(searching, "step_time", spoiled)
    assert random_designs.main(["8", "--start", "5"]) == 1
    assert "broken" in capsys.readouterr().out
