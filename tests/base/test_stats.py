"""Quantiles of draws, and formulas of plain numbers over columns, beside numpy's own."""

import numpy as np
import pytest
from scantling.base.columns import each
from scantling.base.stats import quantile_of


@pytest.mark.parametrize("draws", [2, 3, 11, 8192])
def test_quantiles_of_sorted_draws_are_those_of_numpy(draws):
    drawn = np.random.default_rng(draws).lognormal(size=draws)
    for share in (0.0, 0.1, 0.25, 0.5, 0.9, 0.999):
        assert quantile_of(np.sort(drawn), share) == np.quantile(drawn, share)


def test_a_formula_of_numbers_broadcasts_over_columns():
    sums = each(lambda a, b: a + b, np.array([[1.0], [2.0]]), np.array([10.0, 20.0, 30.0]))
    assert sums.tolist() == [[11.0, 21.0, 31.0], [12.0, 22.0, 32.0]]
    one = each(lambda a, b: a + b, 1, 2.0)
    assert isinstance(one, float) and one == 3.0
