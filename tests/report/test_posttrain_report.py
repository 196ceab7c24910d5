"""The report of a post-training design: what stands in it, for who decides, for who reads it by
ear, and for paper."""

from __future__ import annotations

import re
from functools import cache

import pytest
from markupsafe import Markup, escape
from pages import Page
from scantling.base.show import days, seconds, usd
from scantling.design.design import Design
from scantling_widgets import report
from scantling_widgets.pages import gallery
from scantling_widgets.report.page import document
from scantling_widgets.report.tuned_report import TunedReport
from test_words import banned as odd_forms

NAMES = tuple(gallery.tuned())
FIT_NOWHERE = {
    "model": "llama-3.1-405b",
    "cluster": {"accelerator": "h100-sxm", "devices": 8},
    "job": {"method": "sft", "data": {"samples": 1e5, "mean_tokens": 900}},
}


@cache
def made(name: str) -> TunedReport:
    found = report.of(Design.read(gallery.tuned()[name]))
    assert isinstance(found, TunedReport)
    return found


@cache
def page_of(name: str) -> Page:
    html = document(Markup(made(name).html()), title=name, date="2026-11-29")
    return Page(html)


def spoken(name: str) -> str:
    return re.sub(r"\s+", " ", page_of(name).text)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_sound_and_speaks_the_english_of_the_field(name):
    assert page_of(name).faults == []
    assert odd_forms(spoken(name)) == []
    assert not re.search(r"\d%", spoken(name)), "a space before the per cent"


@pytest.mark.parametrize("name", NAMES)
def test_verdict_memory_and_phases_are_those_of_the_answer(name):
    t, text = made(name).result_of, spoken(name)
    assert "Feasible" in text and seconds(t.step_s) in text
    parts = t.phases_s or t.step_parts_s
    for amount in parts.values():
        assert amount == 0 or seconds(amount) in text
    assert "Given and assumed" in text
    assert all(one.field in text for one in t.assumed)


def test_a_policy_names_both_sides_and_what_to_promise():
    t, text = made("qwen3-32b-grpo-64-h100").result_of, spoken("qwen3-32b-grpo-64-h100")
    assert "32 train, 32 generate" in text
    assert f"Date to promise: {days(t.days_high)} after the start" in text
    assert f"Cost to plan for: {usd(t.cost_usd_high)}" in text
    for one in t.sensitivity:
        assert one.change in text.lower() or one.change in text


def test_page_one_decides_as_that_of_a_pre_training_does():
    for name in NAMES:
        front = spoken(name).partition("Decided")[0]
        assert "Go. Feasible" in front and "Recommended: " in front
    design = Design.read(gallery.tuned()["qwen3-32b-grpo-64-h100"])
    late = report.of(design.change({"constraints.deadline_days": 0.1}))
    front = Page(document(Markup(late.html()), title="late", date="2026-11-29")).text
    assert "No-go. Constraint violated" in front and "Not recommended as asked" in front


def test_what_is_not_known_is_asked_for_on_the_first_page():
    """The source of this run prints no length of a sample, and no end of the run."""
    text = spoken("llama-3-70b-lora-8-h100")
    front = text.partition("Decided")[0]
    assert "To be settled first" in front and "job.data.samples" in front
    assert "No date and no cost to promise" in front


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("picture", ["step", "memory", "sensitivity"])
def test_pictures_say_in_words_what_they_show(name, picture):
    drawn = made(name).picture(picture)
    assert drawn is not None and len(drawn.words) > 40
    assert escape(drawn.words) in drawn.figure()


def test_a_design_that_fits_nowhere_is_refused_with_its_arithmetic():
    refused = report.of(Design.from_data(FIT_NOWHERE))
    text = Page(document(Markup(refused.html()), title="none", date="2026-11-29")).text
    assert "no plan can hold this model" in text and "job.method: qlora" in text
    assert refused.picture("step") is None and refused.section("plan") is None
