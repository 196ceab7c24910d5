"""The parts of a desk, each a widget of its own over one session: what one changes, all show."""

from __future__ import annotations

import re

import ipywidgets
import pytest
import scantling as sc
import traitlets
from scantling.base.errors import DesignError
from scantling.base.quantities.quantity import show
from scantling_widgets import Controls, Desk, Headline, MemoryChart, Plans, Session, StepChart
from scantling_widgets.charts import memory_step
from scantling_widgets.charts.livechart import columns

SMALL = sc.Design.from_data(
    {
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": "h100-sxm", "devices": 8},
        "job": {"tokens": 1e12, "seq_len": 8192, "global_batch": 512},
    }
)
FIELDS = ["cluster.devices", "model.size", "plan.tp"]


@pytest.fixture
def session():
    return Session(SMALL)


class Browser:
    """What looks at a widget: it hears the messages, and moves what a person moves."""

    def __init__(self, widget, monkeypatch):
        self.widget, self.parts, self.messages = widget, {}, []
        monkeypatch.setattr(widget._page, "tell", self._hear)
        self._send({"hello": 1, "vega": True, "link": ""})

    def _hear(self, message):
        self.messages.append(message)
        for part, entries in message.get("parts", {}).items():
            self.parts.setdefault(part, {}).update(entries)

    def _send(self, message):
        self.widget._handle_custom_msg({**message, "serial": "x"}, [])

    def of_kind(self, kind):
        return [id for id, part in self.parts.items() if part["kind"] == kind]

    def move(self, field, value):
        (form,) = self.of_kind("form")
        last = self.parts[form]["proposal"]["serial"]
        proposal = {"field": field, "value": value, "final": True, "serial": last + 1}
        self._send({"set": {form: {"proposal": proposal}}})

    def card(self, key):
        (strip,) = self.of_kind("strip")
        item = next(item for item in self.parts[strip]["items"] if item["key"] == key)
        return f"{item['value']} {item['unit']}".strip()


@pytest.mark.parametrize(
    "part",
    [
        lambda session: Controls(session, FIELDS),
        Headline,
        MemoryChart,
        StepChart,
        Plans,
        Desk,
        lambda session: Desk(session.design),
    ],
)
def test_a_part_is_a_widget_that_stands_in_any_box(session, part):
    widget = part(session)
    assert isinstance(widget, ipywidgets.Widget)
    assert ipywidgets.HBox([widget]).children == (widget,)
    bundle = widget._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in (bundle[0] if bundle else {})


def test_the_two_traits_are_observed_and_both_have_changed_before_anybody_is_told(session):
    told = []
    for trait in ("design", "result"):
        session.observe(
            lambda change: told.append(
                (change["name"], session.design.cluster.devices, session.result.devices_used)
            ),
            trait,
        )
    session.design = session.design.change({"cluster.devices": 16})
    assert told == [("design", 16, 16), ("result", 16, 16)]
    assert session.result.step_s == sc.assess(session.design).step_s
    session.design = session.design.change({"cluster.devices": 16})
    assert len(told) == 2, "the same design again is no change"


def test_a_design_that_cannot_be_is_refused_in_one_line_and_the_last_one_stays(session):
    before = session.design, session.result
    with pytest.raises(DesignError, match="plan.tp"):
        session.design = session.design.change({"plan.tp": 7})
    assert (session.design, session.result) == before
    assert session.refusal is not None
    with pytest.raises(traitlets.TraitError):
        session.design = "llama"
    with pytest.raises(traitlets.TraitError):
        session.result = before[1]


def test_traits_link_to_any_widget(session):
    days = ipywidgets.Label()
    as_text = lambda result: show("step_s", result.step_s)  # noqa: E731
    traitlets.dlink((session, "result"), (days, "value"), as_text)
    other = Session(SMALL)
    traitlets.link((session, "design"), (other, "design"))
    other.design = other.design.change({"cluster.devices": 32})
    assert session.design.cluster.devices == 32 == session.result.devices_used
    assert days.value == show("step_s", sc.assess(other.design).step_s)


def test_a_slider_moves_the_design_and_every_part_shows_it(session, monkeypatch):
    controls = Browser(Controls(session, FIELDS), monkeypatch)
    headline = Browser(Headline(session), monkeypatch)
    memory = Browser(MemoryChart(session), monkeypatch)
    plans = Browser(Plans(session), monkeypatch)
    fields = {part["field"] for part in controls.parts.values() if part["kind"] == "control"}
    assert fields == set(FIELDS)
    controls.move("cluster.devices", 64)
    assert session.design.cluster.devices == 64
    given = sc.assess(session.design).as_dict()
    assert headline.card("step_s") == show("step_s", given["step_s"])
    (chart,) = memory.of_kind("chart")
    assert memory.parts[chart]["data"] == {
        name: columns(frame) for name, frame in memory_step.memory.data(given).items()
    }
    tables = [plans.parts[id] for id in plans.of_kind("table")]
    assert any(len(table["rows"]) == min(50, len(given["candidates"])) for table in tables)
    session.design = session.design.change({"cluster.devices": 8})
    (slider,) = (p for p in controls.parts.values() if p.get("field") == "cluster.devices")
    assert slider["value"] == 8


def test_a_value_that_cannot_be_is_said_at_its_control(session, monkeypatch):
    controls = Browser(Controls(session, FIELDS), monkeypatch)
    before = session.design
    controls.move("plan.tp", 7)
    assert session.design == before
    (control,) = (p for p in controls.parts.values() if p.get("field") == "plan.tp")
    assert "heads" in control["fault"]


def test_whoever_looks_is_told_at_once_that_the_figures_are_of_an_earlier_design(
    session, monkeypatch
):
    headline = Browser(Headline(session), monkeypatch)
    headline.messages.clear()
    under_way = []
    session.observe(lambda change: under_way.append(change["new"]), "computing")
    session.design = session.design.change({"cluster.devices": 16})
    assert under_way == [True, False]
    told = ["computing" if "computing" in m else "parts" for m in headline.messages]
    assert told == ["computing", "computing", "parts"]


def test_parts_of_two_sessions_do_not_touch(monkeypatch):
    one, other = Session(SMALL), Session(SMALL)
    other.advise()
    ours = Browser(Controls(one, FIELDS), monkeypatch)
    theirs = Browser(Headline(other), monkeypatch)
    theirs.messages.clear()
    ours.move("cluster.devices", 64)
    assert one.design.cluster.devices == 64
    assert other.design.cluster.devices == 8 and theirs.messages == []


def test_a_desk_and_a_part_beside_it_are_over_one_session(session, monkeypatch):
    desk, step = Desk(session), Browser(StepChart(session), monkeypatch)
    shown = Browser(desk, monkeypatch)
    shown.move("cluster.devices", 64)
    assert desk.design is session.design and desk.result is session.result
    (chart,) = step.of_kind("chart")
    step_s = session.result.step_s
    assert max(step.parts[chart]["data"]["solid"]["end"]) == pytest.approx(step_s)
    desk.design = desk.design.change({"cluster.devices": 16})
    assert session.result.devices_used == 16


def test_a_part_that_is_closed_follows_no_longer(session, monkeypatch):
    widget = Headline(session)
    headline = Browser(widget, monkeypatch)
    widget.close()
    headline.messages.clear()
    session.design = session.design.change({"cluster.devices": 16})
    assert headline.messages == []


@pytest.mark.parametrize(
    ("fields", "nearest"), [(["cluster.device"], "cluster.devices"), (["modle.size"], "model.size")]
)
def test_a_field_without_a_control_is_named_with_the_nearest_that_has(session, fields, nearest):
    with pytest.raises(DesignError) as told:
        Controls(session, fields)
    assert told.value.nearest == nearest and "\n" not in str(told.value)


def test_interact_draws_the_assessment(capsys):
    """As `ipywidgets.interact` does: it calls with the slider's value, and displays the result."""
    design = SMALL
    slider = ipywidgets.interactive(
        lambda n: sc.assess(design.change({"cluster.devices": n})), n=(8, 64, 8)
    )
    slider.children[0].value = 16
    slider.update()
    assert slider.result.devices_used == 16
    picture = slider.result._repr_html_()
    assert "Step time" in picture and show("step_s", slider.result.step_s) in picture
    widths = [float(share) for share in re.findall(r"width:([\d.]+)%", picture)]
    memory, capacity = (slider.result.memory_bytes[key] for key in ("total", "capacity"))
    assert sum(widths) == pytest.approx(100 + 100 * memory / capacity, abs=0.01)
