"""Numbers as people type them: one rule in the form, the walkthroughs, `init` and the refusals of
the design file. Signs as in the Unicode CLDR's number formats of en, de, fr and de-CH."""

from __future__ import annotations

import pytest
from scantling.base.errors import DesignError
from scantling.base.typed import amount, is_date, number, with_points
from scantling.design.checks import as_number
from scantling.design.design import Design
from scantling_brief.brief import read_brief
from scantling_brief.facts_job import FEWEST_TOKENS
from scantling_walkthroughs.typed import read_number
from scantling_widgets.desk import amounts

DESIGN = Design.from_data(
    {
        "scantling": 1,
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": "h100-sxm", "devices": 64},
        "job": {"tokens": 1e12, "seq_len": 4096, "global_batch": 256},
    }
)
FIELDS = (
    "cluster.devices",
    "job.tokens",
    "reliability.restart_s",
    "constraints.deadline_days",
    "constraints.min_mfu",
    "constraints.budget_usd",
    "cluster.scale_out_gbytes_per_s_per_device",
    "measured.goodput",
)
TYPED = {
    "7.5": 7.5,
    "7,5": 7.5,
    "0,125": 0.125,
    "1,024": 1024,
    "1.024": 1.024,
    "1,234,567": 1234567,
    "1.234.567": 1234567,
    "1,234,567.5": 1234567.5,  # en
    "1.234.567,5": 1234567.5,  # de
    "1\u202f234\u202f567,5": 1234567.5,  # fr
    "1’234’567.5": 1234567.5,  # de-CH
    "12_000": 12000,
    "50M": 50e6,
    "1.5 trillion": 1.5e12,
    "6,5e3": 6500,
    "−3": -3,
}
NONE = [
    "",
    "x",
    "1.2.3",
    "12,34,567",
    "1,23,4",
    "1 2",
    "7,5,5",
    "1.5.5,5",
    "5 apples",
    "40%%",
    "８",
]


@pytest.mark.parametrize("text", TYPED)
def test_a_number_is_read_alike_wherever_it_is_typed(text):
    value = TYPED[text]
    assert number(text) == (pytest.approx(value, rel=1e-12), False)
    assert amounts.number("constraints.budget_usd", text) == pytest.approx(value)
    assert read_number(text) == pytest.approx(value)
    if text == "50M":  # a design file takes a scale, and no other text for a number
        assert as_number(text, "a number") == value
    else:
        with pytest.raises(DesignError, match="is text, not a number") as refused:
            as_number(text, "a number")
        assert float(refused.value.nearest) == pytest.approx(value)
    if value > 0 and "e" not in text:
        read = read_brief(f"70B on 64 H100, budget ${text}").fields
        assert read["constraints.budget_usd"] == pytest.approx(value)
        tokens = read_brief(f"70B on 64 H100, {text} tokens")
        if value >= FEWEST_TOKENS:
            assert tokens.fields["job.tokens"] == pytest.approx(value)
        else:  # too few for a run: a sequence's, or asked about
            assert "job.tokens" not in tokens.fields
            if "job.seq_len" in tokens.fields:
                assert tokens.fields["job.seq_len"] == pytest.approx(value)
            else:
                assert any("job.tokens" in unread.question for unread in tokens.unread)


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_number_is_refused_everywhere(text):
    assert number(text) is None
    with pytest.raises(DesignError, match="is not a number"):
        amounts.number("constraints.budget_usd", text)
    with pytest.raises(ValueError):
        read_number(text)


def test_per_cent_is_a_share_and_nothing_else():
    assert amounts.number("constraints.min_mfu", "40%") == 0.4
    assert amounts.number("constraints.min_mfu", "37,5 %") == 0.375
    with pytest.raises(DesignError, match="is not a number"):
        amounts.number("constraints.budget_usd", "40%")


def test_names_and_versions_in_a_sentence_stay():
    text = "llama-3.1-8b, Llama 3.1 405B on 1,024 H100, torch 2.4.1, tp 8, pp 16"
    assert with_points(text) == text
    assert with_points("7,5B on 1.024.000 tokens") == "7.5B on 1024000 tokens"
    assert "model.layers" not in read_brief("70B with 7,5 layers on 64 H100").fields


UNITS = {
    ("cluster.scale_out_gbytes_per_s_per_device", "400 GB/s"): 400,
    ("cluster.scale_out_gbytes_per_s_per_device", "400 Gb/s"): 50,  # eight bits a byte
    ("cluster.scale_out_gbytes_per_s_per_device", "400Gbit/s"): 50,
    ("constraints.deadline_days", "36 hours"): 1.5,
    ("constraints.deadline_days", "2 weeks"): 14,
    ("reliability.restart_s", "5 min"): 300,
    ("reliability.restart_s", "5m"): 300,
    ("measured.step_s", "20 ms"): 0.02,
    ("constraints.max_power_mw", "1,500 kW"): 1.5,
    ("prices.usd_per_device_hour", "2.5 USD/h"): 2.5,
    ("cluster.devices", "64 GPUs"): 64,
}


@pytest.mark.parametrize(("field", "text"), UNITS)
def test_a_number_with_its_unit_is_read_on_the_desk_and_named_by_a_refusal(field, text):
    assert amounts.number(field, text) == pytest.approx(UNITS[field, text])
    with pytest.raises(DesignError, match="is text, not a number") as refused:
        DESIGN.change({field: text})
    assert float(refused.value.nearest) == pytest.approx(UNITS[field, text])


@pytest.mark.parametrize("text", ["400 gb", "400 gb/s", "400 GBPS"])
def test_bits_or_bytes_are_never_guessed(text):
    assert amount(text, "GB/s") is None


@pytest.mark.parametrize("text", ["50%", "5m", "64 GB", "1e30", "0.5", "2 weeks", "-8", "7,5"])
def test_the_nearest_that_a_refusal_names_is_allowed(text):
    for field in FIELDS:
        with pytest.raises(DesignError) as refused:
            DESIGN.change({field: text})
        if refused.value.nearest not in (None, ""):
            DESIGN.change({field: float(refused.value.nearest)})


def test_a_date_is_one_of_the_calendar():
    """ISO 8601 by day, month or year; leap years as the Gregorian calendar has them."""
    dates = ("2026", "2026-05", "2026-05-07", "2024-02-29", "2000-02-29")
    assert all(is_date(text) for text in dates)
    others = (
        "2026-02-29",
        "1900-02-29",
        "2026-02-31",
        "2026-13",
        "0000",
        "31/12/2025",
        "26-05",
        "",
    )
    assert not any(is_date(text) for text in others)
