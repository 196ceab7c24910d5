"""A sample of the designs drawn at random that `make properties` looks at by the ten thousand."""

from __future__ import annotations

from collections import Counter

import pytest
import random_designs


@pytest.mark.parametrize("start", range(0, 120, 20))
def test_what_must_hold_for_any_design(start):
    outcomes = Counter(
        random_designs.looked_at(number, dear=number % 20 == 0)
        for number in range(start, start + 20)
    )
    assert sum(outcomes.values()) == 20


def test_the_sample_is_of_every_kind():
    outcomes = Counter()
    for number in range(175, 235):
        try:
            outcomes[
                random_designs.assess(
                    random_designs.Design.from_data(random_designs.drawn(number))
                ).verdict
            ] += 1
        except random_designs.DesignError:
            outcomes["refused"] += 1
    assert set(outcomes) == {*random_designs.VERDICTS, "refused"}


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
    assert random_designs.main(["8", "--start", "0"]) == 1
    assert "broken" in capsys.readouterr().out
