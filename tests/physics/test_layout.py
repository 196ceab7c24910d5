"""Stages of models whose layers are not alike."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scantling.catalogue.models.entries import model
from scantling.catalogue.models.shape import shape_of
from scantling.physics import layout


def worst(shares, bounds, tail):
    parts = [sum(shares[a:b]) for a, b in zip(bounds, bounds[1:])]
    return max([*parts[:-1], parts[-1] + tail])


@given(
    st.lists(st.floats(0.01, 1.0), min_size=4, max_size=9),
    st.integers(1, 4),
    st.floats(0.0, 1.0),
)
def test_no_other_cut_has_a_faster_slowest_run(shares, runs, tail):
    """Against every cut there is."""

    def cuts(first, left):
        if left == 1:
            yield [len(shares)]
            return
        for end in range(first + 1, len(shares) - left + 2):
            for rest in cuts(end, left - 1):
                yield [end, *rest]

    found = layout.bounds(shares, runs, tail)
    assert found[0] == 0 and found[-1] == len(shares) and len(found) == runs + 1
    best = min(worst(shares, [0, *cut], tail) for cut in cuts(0, runs))
    assert worst(shares, found, tail) == pytest.approx(best, rel=1e-6)


def test_alike_layers_are_cut_evenly_and_a_head_lightens_the_last_stage():
    """Llama 3, section 3.3.2: a layer fewer where the output head stands."""
    assert np.diff(layout.bounds([1.0] * 16, 4, 0.0)).tolist() == [4, 4, 4, 4]
    assert np.diff(layout.bounds([1.0] * 15, 4, 1.0)).tolist() == [4, 4, 4, 3]


def test_the_order_of_a_pattern_names_the_blocks_of_each_layer():
    """Nemotron 3 Nano: 52 layers, 6 of attention, 23 each of Mamba-2 and experts."""
    shape = shape_of(model("nemotron-3-nano-30b-a3b"))
    kinds = [shape.blocks[i].kind for layer in shape.order for i in layer]
    assert len(shape.order) == len(kinds) == 52
    assert [kinds.count(kind) for kind in ("attention", "mamba2", "moe")] == [6, 23, 23]
    assert not shape_of(model("llama-3.1-8b")).order
