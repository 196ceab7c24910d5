"""How the report words one thing: numbers with their units, clauses as sentences, and what only odd
designs reach."""

from __future__ import annotations

import re

import pytest
from markupsafe import Markup
from scantling import assess
from scantling.advise.design_json import as_dict
from scantling.catalogue.words import Recompute, Schedule, Sharding
from scantling.design.design import Design
from scantling_widgets import report
from scantling_widgets.report import blocks, phrases
from scantling_widgets.report.blocks import Bullets, Column, Row, Section, Table, line, strong
from scantling_widgets.report.sections.summary import front_limits, overrun
from scantling_widgets.shipped_files import example


def test_every_way_of_sharding_recomputing_and_scheduling_has_a_name():
    assert len({phrases.sharding_name(word) for word in Sharding}) == len(Sharding)
    assert len({phrases.recompute_name(word) for word in Recompute}) == len(Recompute)
    assert len({phrases.schedule_name(word) for word in Schedule}) == len(Schedule)
    assert phrases.schedule_name(None) == "no schedule"


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        ("bytes", 80e9, "80.0 GB"),
        ("bytes/s of each node", 400e9, "400 GB/s"),
        ("share", 0.5, "50.0 %"),
        ("days", 2.0, "2.00 days"),
        ("count", 3.0, "3"),
        ("ratio", 3.0, "3.00"),
        ("steps", 12.0, "12 steps"),
        ("GB/s", 1.5, "1.50 GB/s"),
    ],
)
def test_a_value_is_shown_in_the_unit_that_comes_with_it(unit, value, text):
    assert phrases.in_unit(unit, value) == text


def test_a_clause_becomes_a_sentence_once():
    assert phrases.sentence("a link is slow") == "A link is slow."
    assert phrases.sentence("Is it?") == "Is it?"
    assert phrases.sentence("h100 is fast") == "h100 is fast."  # an id keeps its letters
    assert phrases.lead("why: <b>") == Markup("<strong>Why</strong>: &lt;b&gt;")


def test_what_is_no_markup_is_escaped_wherever_it_stands():
    table = Table(
        columns=(Column(title="<i>"), Column(title="n", number=True)),
        rows=[Row(cells=("<b>", line("1", strong("<u>"))))],
    )
    html = Section(id="s", blocks=[table, Bullets(items=["<s>", blocks.bullets(["<p>"])])]).html()
    assert not re.search(r"<[ibsu]>", html)
    assert html.count("&lt;") == 5
    assert "<strong>&lt;u&gt;</strong>" in html


def test_a_machine_that_is_owned_is_not_rented():
    design = Design.read(example("llama-3.1-405b")).change(
        {"prices": {"owned": {"capex_usd": 300e6, "years": 4, "network_usd": 20e6}}}
    )
    text = report.Report(design).section("cost").html
    assert "machine, staff, energy" in text and "rent with its energy" not in text


def test_the_overrun_counts_the_risks_whose_days_it_adds_up():
    """A late delivery, 40 % of 91 days, stands first in the table and adds no day to the run."""
    made = report.Report(Design.read(example("llama-3.1-405b")))
    risks = made.view.parts["risks"]
    adding = [row for row in risks["rows"] if not (row["before_start"] or row["in_headline"])]
    assert len(adding) < len(risks["rows"])
    assert sum(row["expected_days"] for row in adding) == pytest.approx(risks["expected_days"])
    said = f"from {len(adding)} of {len(risks['rows'])} risks"
    assert said in overrun(risks, "") and "delays the start" in overrun(risks, "")
    (late,) = (row for row in risks["rows"] if row["before_start"])
    alone = {**risks, "rows": [row for row in risks["rows"] if row is not late]}
    assert "delays the start" not in overrun(alone, "")


def test_the_line_on_risks_is_left_to_their_table_whatever_it_says():
    """Page one has a table of risks; what a line is about is a field of it, not how it begins."""
    text = (
        "model: {size: 120.0e9}\ncluster: {accelerator: b200-sxm, devices: 512}\njob: {tokens: "
        "4.0e12, seq_len: 8192, global_batch: 1024, precision: nvfp4}"
    )
    figures = as_dict(assess(Design.from_yaml(text)), advice=False)
    kinds, lines = figures["limit_kinds"], figures["limits"]
    assert len(kinds) == len(lines) and kinds.count("risks") == 1
    at = kinds.index("risks")
    assert lines[at] not in front_limits(figures)
    lines[at] = "in other words"
    assert "in other words" not in front_limits(figures)
    kinds[at] = "loss"
    only = {"limits": lines[at:], "limit_kinds": kinds[at:]}
    assert "in other words" in front_limits({**figures, **only})
