"""Who runs a plan of a design that names no software."""

from __future__ import annotations

import pytest
from scantling import Design, assess

TPU = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "tpu-v5p", "devices": 128},
    "job": {"tokens": 1e12, "seq_len": 8192, "global_batch": 512},
}


def test_the_only_framework_with_a_kit_runs_what_names_none():
    """MaxText: of the frameworks with a launch kit it alone runs on TPUs."""
    unnamed, named = (
        assess(Design.from_data(TPU)),
        assess(Design.from_data(TPU | {"stack": "maxtext"})),
    )
    assert unnamed.resolved.stack == "maxtext"
    assert unnamed.step_s == named.step_s and unnamed.plan == named.plan
    assert [a.value for a in unnamed.assumed if a.field == "stack"] == ["maxtext"]
    assert unnamed.resolved.design.stack is None


def test_pins_that_it_refuses_leave_the_stack_open():
    """MaxText shards the eight key-value heads of Llama 3.1 8B over the tensor axis of its mesh."""
    assert assess(Design.from_data(TPU | {"plan": {"tp": 16}})).resolved.stack is None


@pytest.mark.parametrize("accelerator", ["h100-sxm", "mi300x", "trn2"])
def test_of_several_or_none_nobody_is_chosen(accelerator):
    cluster = TPU["cluster"] | {"accelerator": accelerator}
    assert assess(Design.from_data(TPU | {"cluster": cluster})).resolved.stack is None
