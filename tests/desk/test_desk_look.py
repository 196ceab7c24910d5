"""What a reader of the desk meets: words for every number, colours that read, ladders, and files
that ask no network."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from scantling.base.quantities import quantity as quantities
from scantling.design.design import Design
from scantling_widgets import shipped_files
from scantling_widgets.charts import palette
from scantling_widgets.desk import choices, headline
from scantling_widgets.desk.desk import DeskPane

WIDGETS = Path(__file__).parents[2] / "widgets" / "scantling_widgets"


@pytest.fixture
def desk():
    return DeskPane(shipped_files.example())


@pytest.mark.parametrize("key", [key for key, _, _ in headline.CARDS])
def test_every_headline_number_opens_to_its_formula_and_values(desk, key):
    desk.headline.strip.opened = key
    lines = dict(desk.headline.strip.detail["lines"])
    assert lines["Formula"]
    if key not in ("verdict",):
        assert re.search(r"\d", lines["With these values"])


def test_every_number_of_the_contract_has_words_and_a_unit():
    table = quantities.table()
    for key in (
        "mfu_shown",
        "step_s",
        "days",
        "cost_usd",
        "goodput",
        "checkpoint_interval_s",
        "memory_bytes.total",
    ):
        assert table[key].formula
        assert table[key].unit


def luminance(colour: str) -> float:
    """Relative luminance after WCAG 2.2."""
    r, g, b = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (r, g, b))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    "colour", sorted({c for _, c in [*palette.MEMORY.values(), *palette.STEP.values()]})
)
def test_text_on_a_part_reads(colour):
    assert contrast(palette.ink_on(colour), colour) >= 4.5


def test_marks_and_words_of_the_style_sheet_read_in_both_themes():
    css = (WIDGETS / "static" / "desk.css").read_text(encoding="utf-8")
    light, dark = (
        dict(
            re.findall(
                r"--sd-(soft|good|warn|bad|accent):\s*(?:var\([^,]+,\s*)?(#[0-9a-f]{6})", block
            )
        )
        for block in (
            css.split("body[data-jp-theme-light")[0],
            css.split("body[data-jp-theme-light")[1].split("}")[0],
        )
    )
    for name, colour in light.items():
        assert contrast(colour, "#ffffff") >= 4.5, f"{name} on white"
    for name, colour in dark.items():
        assert contrast(colour, "#111111") >= 4.5, f"{name} on JupyterLab's dark"
    assert set(light) >= {"good", "warn", "bad", "accent"}
    assert set(dark) == {"soft", "good", "warn", "bad", "accent"}


def test_nothing_on_the_page_asks_the_network():
    seen = 0
    for file in [*WIDGETS.glob("static/*"), *WIDGETS.glob("labextensions/**/*.js")]:
        if file.is_file():
            seen += 1
            assert not re.search(r"https?://|@import|//cdn", file.read_text(encoding="utf-8")), (
                file.name
            )
    assert seen


def test_ladders_hold_the_value_that_stands_in_the_design():
    desk = DeskPane(
        Design.read(shipped_files.example()).change(
            {"cluster.devices": 12344, "job.global_batch": 2043}
        )
    )
    for field, value in (("cluster.devices", 12344), ("job.global_batch", 2043)):
        options = [o["value"] for o in desk.controls.form.field(field)["options"]]
        assert value in options
        assert options == sorted(options)
    assert all(n % 8 == 0 for n in choices.octaves(8, 2**18, 8))


def test_every_control_says_what_it_is(desk):
    for group in desk.controls.form.groups:
        for field in map(desk.controls.form.field, group["fields"]):
            assert field["label"]
            assert field["help"]


def test_what_a_review_asks_first_is_up_front_and_no_more(desk):
    front, plan, *folded = desk.controls.form.groups
    assert len(front["fields"]) <= 15
    assert {"model.size", "model.experts", "cluster.devices", "cluster.scale_out"} <= {
        *front["fields"]
    }
    assert {"job.tokens", "job.seq_len", "job.precision", "constraints.deadline_days"} <= {
        *front["fields"]
    }
    assert "constraints.budget_usd" in front["fields"] and "plan.etp" not in plan["fields"]
    assert plan["title"].startswith("Plan")
    assert all(group["folded"] for group in folded)


@pytest.mark.parametrize(
    ("field", "section"),
    [
        ("reliability.failures_per_1000_node_days", "endurance"),
        ("prices.usd_per_device_hour", "cost"),
    ],
)
def test_what_is_not_given_stands_on_its_slider_at_its_place_and_can_come_back(
    desk, field, section
):
    from scantling.base.records import at

    now = at(desk.session.now.figures, f"{section}.{field.split('.')[1]}")
    options = desk.controls.form.field(field)["options"]
    place = next(i for i, o in enumerate(options) if o["value"] is None)
    assert options[place]["text"].startswith("auto ")
    assert options[place - 1]["value"] < now <= options[place + 1]["value"]
    desk.controls.form.send_change(field, options[place + 1]["value"])
    assert at(desk.session.now.figures, f"{section}.{field.split('.')[1]}") == pytest.approx(
        options[place + 1]["value"], rel=1e-12
    )
    assert desk.controls.form.field(field)["options"][0]["value"] is None
    desk.controls.form.send_change(field, None)
    assert at(desk.session.now.figures, f"{section}.{field.split('.')[1]}") == now


def test_interconnects_stand_from_slow_to_fast(desk):
    from scantling import catalogue

    options = desk.controls.form.field("cluster.scale_out")["options"]
    assert len(options) >= 8
    for group in {option["group"] for option in options}:
        ids = [option["value"] for option in options if option["group"] == group]
        rates = [catalogue.fabric(id).device_bytes_per_s for id in ids]
        assert rates == sorted(rates)


def test_the_notebook_is_two_clean_cells():
    book = json.loads(shipped_files.notebook("design_desk").read_text(encoding="utf-8"))
    assert len(book["cells"]) == 2
    assert book["metadata"]["kernelspec"]["name"] == "python3"
    assert all(
        not cell.get("outputs") and cell.get("execution_count") is None for cell in book["cells"]
    )
