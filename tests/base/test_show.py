"""Spans and bytes of rows that are compared: the text is the number, to the digits that it has."""

import re

import pytest
from hypothesis import given, strategies as st
from scantling.base.show import gigabytes, shown, span
from scantling.base.units import DAY_S, HOUR_S, MINUTE_S

UNITS = {"s": 1.0, "min": MINUTE_S, "h": HOUR_S, "days": DAY_S}


@given(st.floats(0, 1e18))
def test_gigabytes_are_the_bytes_to_a_tenth(size):
    digits, unit = gigabytes(size).split(" ")
    assert unit == "GB" and re.fullmatch(r"[\d,]+\.\d", digits)
    assert abs(float(digits.replace(",", "")) * 1e9 - size) <= 0.0501e9 + 1e-9 * size


@given(st.floats(1e-3, 1e9))
def test_a_span_is_the_seconds_in_the_largest_unit_that_it_fills(seconds):
    digits, unit = span(seconds).split(" ")
    value = float(digits) * UNITS[unit]
    assert abs(value - seconds) <= 0.06 * seconds
    larger = [size for size in UNITS.values() if size > UNITS[unit]]
    assert all(seconds < size for size in larger)


@pytest.mark.parametrize("kind", ["text", "count", "rate", "seconds", "usd", "bytes"])
def test_an_empty_text_is_shown_as_it_is(kind):
    """A note of a calibration that says nothing stands in a report as nothing."""
    assert shown("", kind, "nodes") == ""
