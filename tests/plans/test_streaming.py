"""A streamed search against the one that holds everything: the same counts, the same plans in the
same order, in bounded memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scantling import Design
from scantling.physics.gather import situation
from scantling.plans import space as plans
from scantling.plans.evaluate import find
from scantling.plans.prepare import prepare
from scantling.plans.stream import stream

DESIGNS = {
    "dense": (
        "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 48}\njob: {seq_len: "
        "8192, global_batch: 96}"
    ),
    "experts": (
        "model: mixtral-8x7b\ncluster: {accelerator: h100-sxm, devices: 16}\njob: {seq_len: "
        "4096, global_batch: 64}"
    ),
    "pinned": (
        "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 64}\njob: {seq_len: "
        "8192, global_batch: 256}\nplan: {tp: 2, recompute: none}"
    ),
}


def place(text):
    r = prepare(Design.from_text(text))
    return situation(r, r.phases[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("space", [plans.COARSE, plans.WIDE], ids=["coarse", "wide"])
def test_the_same_plans_and_counts(name, space):
    where = place(DESIGNS[name])
    whole, parts = find(where, space), stream(where, space, keep=500)
    for name in ("legal", "evaluated", "rejected"):
        assert parts.counts[name] == whole.counts[name]
    assert len(parts.order) == min(500, whole.counts["evaluated"])
    top = whole.order[: len(parts.order)]
    assert np.allclose(whole.step_s[top], parts.step_s, rtol=1e-12)
    assert whole.row(whole.best()) == parts.row(parts.best())
    by_fields = lambda row: repr(sorted(row.items()))  # noqa: E731
    assert {by_fields(whole.row(int(i))) for i in whole.order[:20]} == {
        by_fields(parts.row(i)) for i in range(20)
    }


@pytest.mark.slow
def test_memory_is_that_of_one_part():
    where = place(
        "model: mixtral-8x22b\ncluster: {accelerator: h100-sxm, devices: 128}\njob: "
        "{seq_len: 4096, global_batch: 256}"
    )
    tracemalloc.start()
    found = stream(where, plans.WIDE, {"tp": 2}, keep=1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.legal > 300_000 and peak < 100e6


def test_stopped_it_keeps_what_it_has():
    seen = []

    def some(done, of):
        seen.append((done, of))
        return len(seen) < 5

    found = stream(place(DESIGNS["dense"]), plans.WIDE, progress=some)
    assert len(seen) == 5 and found.counts["unseen"] > 0 and found.best() is not None
    assert found.legal == found.counts["evaluated"] + sum(found.counts["rejected"].values())
