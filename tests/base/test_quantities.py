"""The table of quantities covers every number that is printed, and shows each as people write
it."""

from __future__ import annotations

import importlib
import math
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scantling.advise.computed_by import computed_by
from scantling.base.quantities.quantity import Quantity, band, quantity, show, table
from scantling.base.show import number
from scantling.design.design import Design

# what `scantling design --json` promises
PROMISED = [
    "name",
    "verdict",
    "error",
    "plan",
    "devices_used",
    "params",
    "active_params",
    "mtp_params",
    "flops_per_token",
    "step_s",
    "step_s_low",
    "step_s_high",
    "tokens_per_s_per_device",
    "model_tflops_per_device",
    "mfu",
    "mfu_low",
    "mfu_high",
    "mfu_causal",
    "mfu_bf16_peak",
    "hfu",
    "bubble_fraction",
    "memory_bytes",
    "step_breakdown_s",
    "days",
    "days_low",
    "days_high",
    "goodput",
    "mtbf_s",
    "checkpoint_interval_s",
    "checkpoint_bytes",
    "checkpoint_overhead",
    "spares",
    "spares_recommended",
    "cost_usd",
    "energy_kwh",
    "limits",
    "avoid",
    "nearest_fixes",
    "assumed",
]
PLAN = [
    "tp",
    "cp",
    "pp",
    "vpp",
    "dp",
    "ep",
    "etp",
    "sp",
    "sharding",
    "shard_group",
    "schedule",
    "micro_batch",
    "grad_accum",
    "recompute",
    "recompute_modules",
    "recompute_layers",
    "layer_split",
    "layout",
    "cp_type",
    "offload",
    "precision",
]
MEMORY = ["weights", "gradients", "optimizer", "activations", "other", "total", "capacity"]
STEP = [
    "gemm",
    "attention",
    "elementwise",
    "logits",
    "recompute",
    "tp",
    "cp",
    "ep",
    "dp",
    "pp",
    "bubble",
    "optimizer",
    "host",
    "straggler",
    "data",
]


def test_every_promised_key_has_a_row():
    keys = [
        *PROMISED,
        *(f"plan.{k}" for k in PLAN),
        *(f"memory_bytes.{k}" for k in MEMORY),
        *(f"step_breakdown_s.{k}" for k in STEP),
        *(f"hidden_s.{k}" for k in ("tp", "cp", "ep", "dp", "pp")),
    ]
    assert not set(keys) - table().keys()


def test_endurance_has_a_row_for_every_field():
    from dataclasses import fields

    from scantling.endure.life import BADPUT
    from scantling.endure.reliability import Endurance

    assert not {f"endurance.{f.name}" for f in fields(Endurance) if f.repr} - table().keys()
    assert not {f"endurance.badput.{k}" for k in BADPUT} - table().keys()


def test_units_match_the_names():
    """A key that ends in _s is in seconds, in _bytes in bytes, in _usd in dollars: the name carries
    the unit."""
    seen = 0
    for q in table().values():
        for ending, unit in {
            r"(?<!_per)_s$": "s",
            r"_bytes$": "bytes",
            r"_usd$": "USD",
            r"(?<!_per)_kwh$": "kWh",
            r"_bytes_per_s$": "bytes/s",
        }.items():
            if re.search(ending, q.key):
                seen += 1
                assert q.unit == unit, q.key
        assert q.label, q.key
        assert not q.label.endswith("."), q.key
        assert q.formula or q.convention, q.key
    assert seen


def _known_inputs():
    known = set(table()) | {"name"}
    for section in (
        "model",
        "cluster",
        "job",
        "constraints",
        "plan",
        "reliability",
        "prices",
        "measured",
    ):
        known |= (
            {section}
            | {f"{section}.{f}" for f in Design.section_fields(section)}
            | set(Design.section_fields(section))
        )
    return known | {"stack"}


@pytest.mark.parametrize("q", table().values(), ids=table().keys())
def test_row(q: Quantity):
    assert set(q.inputs) <= _known_inputs(), q.inputs
    for word in (q.label, q.formula, q.convention, q.source):
        assert word.isprintable()
        assert "\u2014" not in word
    function = computed_by(q.key)
    assert function or q.kind in ("text", "flag"), q.key
    if function:
        module, name = function.rsplit(".", 1)
        assert callable(getattr(importlib.import_module(module), name))


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("mfu", 0.413, "41.3 %"),
        ("mfu", 1e-5, "<0.1 %"),
        ("mfu", 0.0, "0 %"),
        ("step_s", 40.123, "40.1 s"),
        ("step_s", 0.0123, "12.3 ms"),
        ("step_s", 1.2e-5, "12.0 µs"),
        ("mtbf_s", 11134, "3.09 h"),
        ("mtbf_s", 1500.0, "25.0 min"),
        ("mtbf_s", 4e6, "46.3 days"),
        ("days", 53.94, "53.9 days"),
        ("days", 0.01, "14.4 min"),
        ("days", 128_384, "351 years"),
        ("params", 405_853_388_800, "406 B"),
        ("params", 124e6, "124 M"),
        ("params", 1.04e12, "1.04 T"),
        ("memory_bytes.total", 71.23e9, "71.2 GB"),
        ("memory_bytes.total", 84.93e9, "84.9 GB"),
        ("checkpoint_bytes", 5.68e13, "56.8 TB"),
        ("cost_usd", 98.6e6, "$98.6M"),
        ("cost_usd", 1234.0, "$1,230"),
        ("cost.usd_per_device_hour", 2.5, "$2.50"),
        ("energy_kwh", 3.2e7, "32.0 GWh"),
        ("flops_per_token", 2.7e12, "2.70 TFLOP"),
        ("devices_used", 16384, "16,384 devices"),
        ("spares", 1, "1 node"),
        ("model_tflops_per_device", 430.0, "430 TFLOP/s"),
        ("plan.sp", True, "yes"),
        ("plan.sharding", "zero1", "zero1"),
        ("days", None, "—"),
        ("mfu", math.nan, "—"),
        ("mtbf_s", math.inf, "∞"),
        ("mfu", np.float64(0.5), "50.0 %"),
        ("plan.layer_split", [7, 8, 8, 7], "7, 8, 8, 7"),
        ("step_s", 0, "0 s"),
    ],
)
def test_show(key, value, text):
    assert show(key, value) == text


def test_bands_give_the_unit_once():
    assert band("mfu", 0.38, 0.43) == "38.0 to 43.0 %"
    assert band("days", 50.1, 61.0) == "50.1 to 61.0 days"
    assert band("step_s", 0.5, 2.0) == "500 ms to 2.00 s"


def test_positions_are_ignored_and_unknown_keys_named():
    assert quantity("candidates[3].mfu") is quantity("candidates.mfu")
    with pytest.raises(KeyError, match="nearest: goodput"):
        quantity("godput")


@given(st.floats(1e-3, 1e14))
def test_numbers_keep_three_digits(x):
    shown = float(re.sub(",", "", number(x)))
    assert shown == pytest.approx(x, rel=0.0051)


@given(
    st.floats(0, 1e30),
    st.sampled_from([q.key for q in table().values() if q.kind not in ("text", "flag")]),
)
def test_anything_finite_is_shown_in_little_space(x, key):
    text = show(key, x)
    assert 0 < len(text) < 60
    assert text.isprintable()
    assert "e+" not in text
