"""The desk does not mislead: what it shows belongs to the design that is on it, in its units, and
nothing is said of a run that cannot be."""

from __future__ import annotations

import base64
import json
import zlib
from time import monotonic, sleep

import pytest
import scantling
from scantling.advise.comparison import flat
from scantling.advise.trials import Trials
from scantling.base.errors import DesignError
from scantling.base.quantities.quantity import show
from scantling.design.constraints import CONSTRAINTS
from scantling.design.design import Design
from scantling.plans.prepare import prepare
from scantling.verdict.texts import verdict_sentence
from scantling_widgets import shipped_files
from scantling_widgets.desk import link, story
from scantling_widgets.desk.control import stated
from scantling_widgets.desk.desk import DeskPane
from scantling_widgets.quantity_texts import label

OVER = (("plan.tp", 2), ("plan.pp", 1), ("plan.sharding", "none"))  # 3.8 TB on a device of 85 GB


@pytest.fixture
def desk():
    return DeskPane(shipped_files.example())


def cards(desk) -> dict[str, dict]:
    return {item["key"]: item for item in desk.headline.strip.items}


def over(desk) -> DeskPane:
    for field, value in OVER:
        desk.controls.form.send_change(field, value)
    return desk


# ---------------------------------------------------------------- no misleading state
@pytest.mark.slow
@pytest.mark.parametrize("field", ["model.size", "model.experts", "cluster.devices"])
@pytest.mark.parametrize("step", [1, -1])
def test_a_slider_moves_by_the_keyboard_over_its_whole_range(desk, field, step):
    """Each press goes one place on, from wherever the last one came to, up to the end."""
    desk.session.change({"constraints.deadline_days": None})
    presses, seen = 0, []
    while presses < 90:
        control = desk.controls.form.field(field)
        places = [option["value"] for option in control["options"]]
        at = places.index(control["value"])
        seen.append(control["value"])
        if not 0 <= at + step < len(places):
            break
        desk.controls.form.send_change(field, places[at + step], final=False)
        presses += 1
    assert seen == sorted(set(seen), reverse=step < 0)
    if field == "model.size":
        assert seen[-1] == pytest.approx(1e13 if step > 0 else 1e9, rel=0.05)
    assert presses > 5 or field == "model.experts"


def test_the_unit_stays_with_the_number(desk):
    assert cards(over(desk))["verdict"]["note"] == "3.81 TB of 84.9 GB"
    desk.session.reset()
    note = cards(desk)["verdict"]["note"]
    assert note.endswith("of 84.9 GB") and note.count("GB") == 1


def test_a_plan_that_does_not_fit_has_no_days_dollars_or_goodput(desk):
    desk.session.refer()
    shown = cards(over(desk))
    for key in ("likely.days", "likely.cost_usd", "goodput", "checkpoint_interval_s"):
        assert shown[key]["value"] == "—"
        assert not shown[key].get("delta")
    assert "Does not fit" in desk.headline.line.value
    assert "days" not in desk.story.sentence.value and "$" not in desk.story.sentence.value
    for title in ("Cost", "Reliability"):
        panel = next(p for p in desk.panels if p.title == title)
        desk.tabs.selected_index = desk.panels.index(panel)
        assert ["does not fit" in part.value for part in panel.root.children] == [True]


def test_idle_devices_are_amber_and_said(desk):
    desk.controls.form.send_change("cluster.devices", 24576)
    used = desk.session.now.figures["devices_used"]
    assert used < 24576
    assert cards(desk)["verdict"]["state"] == "warn"
    assert 'data-state="warn"' in desk.headline.line.value
    line = desk.headline.line.value
    assert f"{used:,} of 24,576 devices" in line or "dearer than it need be" in line


def test_the_title_follows_the_design(desk):
    named = desk.design.title
    assert named in desk.head.title.value
    desk.controls.form.send_change("cluster.devices", 8192)
    title = desk.head.title.value.split("<small>")[0]
    assert "8,192" in title and "16,384" not in title
    desk.controls.form.send_change("model.experts", 16)
    assert "405B, 15.6T" not in desk.head.title.value.split("<small>")[0]
    desk.session.undo()
    desk.session.undo()
    assert named in desk.head.title.value.split("<small>")[0]


def test_the_page_ends_with_the_desk():
    book = json.loads(shipped_files.notebook("design_desk").read_text(encoding="utf-8"))
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert len(code) == 1
    assert "print" not in "".join(code[0]["source"])


def test_differences_of_shares_are_points_and_others_keep_their_unit(desk):
    desk.session.refer()
    desk.controls.form.send_change("cluster.devices", 8192)
    shown = cards(desk)
    for key in ("mfu_shown", "goodput", "bubble_fraction"):
        assert shown[key]["delta"].endswith(" points")
    assert shown["likely.days"]["delta"].endswith(" days")
    assert "$" in shown["likely.cost_usd"]["delta"]


def test_pinned_is_said_of_plan_fields_alone(desk):
    desk.session.refer()
    desk.controls.form.send_change("plan.tp", 4)
    assert "pinned" not in json.dumps(desk.headline.strip.items)
    assert "pinned" not in desk.head.title.value.lower()
    assert "reference" in {row for row in desk.step_card.chart.data["rows"]["row"]}


def test_dp_is_one_number_wherever_it_is_named(desk):
    panel = next(p for p in desk.panels if p.title == "Network")
    desk.tabs.selected_index = desk.panels.index(panel)
    dp = desk.session.now.figures["plan"]["dp"]
    rows = [axis for axis in panel.matrix.data["cells"]["axis"] if axis.startswith("DP")]
    assert rows and all(row.replace("|", " ").split()[1] == f"{dp:,}" for row in rows)


# ---------------------------------------------------------------- typed limits, fields of the file
@pytest.mark.parametrize(
    ("field", "typed", "value"),
    [
        ("constraints.min_mfu", "40%", 0.4),
        ("constraints.min_goodput", "95 %", 0.95),
        ("constraints.budget_usd", "50M", 50e6),
        ("constraints.budget_usd", "$50M", 50e6),
        ("constraints.deadline_days", "90 d", 90),
        ("constraints.deadline_days", "12 weeks", 84),
        ("constraints.deadline_days", "3 months", 90),
        ("constraints.max_lost_work_s", "30 min", 1800),
        ("constraints.max_recovery_s", "0.5 h", 1800),
        ("constraints.max_checkpoint_stall_s", "500 ms", 0.5),
        ("constraints.max_power_mw", "500 kW", 0.5),
        ("cluster.nvme_gb", "30 TB", 30_000),
        ("cluster.pod_devices", "4k", 4000),
    ],
)
def test_a_limit_is_read_as_people_write_it(desk, field, typed, value):
    desk.controls.form.send_change(field, typed)
    assert desk.session.refusal is None
    assert stated(desk.design, field) == pytest.approx(value)


@pytest.mark.parametrize(
    ("field", "typed"),
    [("constraints.deadline_days", "40%"), ("constraints.min_mfu", "3 d"), ("cluster.sites", "x")],
)
def test_what_is_no_such_number_is_kept_in_its_box_and_refused_in_one_line(desk, field, typed):
    desk.controls.form.send_change(field, typed)
    control = desk.controls.form.field(field)
    assert control["value"] == typed
    assert control["fault"] and "\n" not in control["fault"]


def test_the_form_has_every_limit_and_the_site_of_the_file(desk):
    shown = {field for group in desk.controls.form.groups for field in group["fields"]}
    assert {f"constraints.{name}" for name in CONSTRAINTS} <= shown
    wanted = ("oversubscription", "sites", "pod_devices", "storage")
    assert {f"cluster.{name}" for name in wanted} <= shown
    desk.controls.form.send_change("constraints.survive", "rack")
    desk.controls.form.send_change("cluster.oversubscription", "3")
    assert desk.design.constraints.survive == "rack"
    assert desk.design.cluster.oversubscription == 3
    assert Design.from_yaml(desk.design.to_yaml()) == desk.design


# ---------------------------------------------------------------- the link
def test_a_link_opens_the_design_that_wrote_it(desk):
    desk.controls.form.send_change("cluster.devices", 8192)
    desk.session.change({"notes": "taken for its price · 8k H100"})
    said = f"http://127.0.0.1:8866/?token=x#{link.write(desk.design)}"
    assert link.read(said) == desk.design
    assert desk.head.link.value == link.write(desk.design)
    assert DeskPane(said).design == desk.design


def test_every_design_of_the_gallery_goes_through_a_link():
    paths = sorted(shipped_files.example().parent.glob("*.yaml"))
    assert len(paths) > 10
    for path in paths:
        design = Design.read(path)
        assert link.read(link.write(design)).data() == design.data(), path.name
        assert len(link.write(design)) < 4000


def test_the_first_version_of_the_link_stays_readable():
    """A link as it was sent in November 2026."""
    sent = (
        "design=1.eNpFjMEKgzAQRP9lzolsaouSv4nrItqYFLOVguTfm546t3nMmwuFQ9K4pgXeGex5lgiP5aW2t254TDD"
        "g-C4qB_yFwCxRjqC5VQRHZEey5bO32SznylLaD93u1WDL00_R_JTUaE__dFTrF1nZJRw"
    )
    design = link.read(sent)
    assert (design.model, design.cluster.devices, design.job.tokens) == ("gpt-3-175b", 1024, 3e11)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("design=2.abc", "version"),
        ("design=1.", "cut short"),
        ("design=1.!!!!", "cut short"),
        ("nothing", "no link"),
        ("design=1.eJyrrgUAAXUA-Q", "model"),  # {}
    ],
)
def test_a_link_that_is_cut_old_or_wrong_is_refused_in_one_line(desk, text, said):
    with pytest.raises(DesignError) as told:
        link.read(text)
    assert said in str(told.value) and "\n" not in str(told.value)
    before = desk.design
    desk.act(lambda: desk.open_link(text))
    assert desk.design == before and desk.session.refusal is not None


def test_a_link_cut_anywhere_never_opens_another_design(desk):
    whole = link.write(desk.design)
    for end in range(len("design=1."), len(whole) - 1, 7):
        with pytest.raises(DesignError):
            link.read(whole[:end])


def test_what_is_left_of_a_cut_link_is_offered_and_is_the_senders(desk):
    """Of every field that is offered the value is the one that was sent, wherever the link was cut:
    a number that was cut is not offered."""
    sent = desk.design.change({"cluster.devices": 8192, "reliability.restart_s": 700})
    whole, offered = link.write(sent), 0
    for end in range(len("design=1.") + 40, len(whole) - 1):
        left = link.rest(whole[:end], prepare)
        if left is None:
            continue
        offered += 1
        given = {field: value for field, value in flat(left).items() if value is not None}
        assert given.items() <= flat(sent.data()).items()
    assert offered > 20


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        (lambda data: data | {"scantling": 2}, "is not a version"),
        (lambda data: data | {"wind": {"speed": 3}}, "wind"),
        (lambda data: data | {"plan": data.get("plan", {}) | {"tp": "wide"}}, "plan.tp"),
        (lambda data: data | {"stack": "no-such-stack"}, "stack"),
    ],
)
def test_an_old_link_says_what_is_wrong_and_one_press_opens_the_rest(desk, change, lost):
    sent = desk.design.change({"cluster.devices": 8192, "name": "Sent"})
    packed = base64.urlsafe_b64encode(zlib.compress(json.dumps(change(sent.data())).encode()))
    before = desk.design
    assert desk.open_link(f"design=1.{packed.decode()}") is False
    assert lost in desk.session.refusal.text and desk.design == before
    assert desk.headline.fix.description == "Open what is left" and not desk.headline.fix.hidden
    desk.headline.fix.click()
    kept = {k: v for k, v in sent.data().items() if k != lost}
    assert desk.design.data() == kept and desk.session.refusal is None


def test_of_a_link_of_another_version_what_this_one_reads_is_offered(desk):
    sent = desk.design.change({"cluster.devices": 8192})
    desk.open_link(link.write(sent).replace("design=1.", "design=2."))
    assert "version 2" in desk.session.refusal.text
    desk.headline.fix.click()
    assert desk.design == sent


@pytest.mark.parametrize("text", ["design=1.", "design=1.eJyrrgUAAXUA-Q", "design=9.!!"])
def test_where_nothing_is_left_nothing_is_offered(desk, text):
    desk.open_link(text)
    assert desk.headline.fix.hidden and desk.session.refusal is not None


@pytest.mark.parametrize("text", ['{"a":' + "[" * 200_000, '{"a":' * 5000, "[" * 200 + "]" * 200])
@pytest.mark.parametrize("version", [1, 2])
def test_a_link_nested_deeper_than_any_design_is_never_read(text, version, monkeypatch):
    """In a browser's Python the JSON reader itself ends there (a RangeError of the engine)."""
    monkeypatch.setattr("scantling.design.link.loads", lambda text: pytest.fail("was read"))
    packed = base64.urlsafe_b64encode(zlib.compress(text.encode())).decode().rstrip("=")
    with pytest.raises(DesignError):
        link.read(f"design={version}.{packed}")
    assert link.rest(f"design={version}.{packed}", prepare) is None


def test_brackets_in_a_name_are_no_depth():
    sent = Design.read(shipped_files.example()).change({"name": '[{"' * 60, "notes": "[" * 200})
    assert link.read(link.write(sent)) == sent


def test_a_link_that_unpacks_without_end_is_refused():
    bomb = base64.urlsafe_b64encode(zlib.compress(b" " * 50_000_000, 9)).decode()
    with pytest.raises(DesignError):
        link.read("design=1." + bomb.rstrip("="))


def test_a_link_on_the_page_names_no_file_of_the_server(desk, monkeypatch):
    text = link.write(desk.design.change({"calibration": "/etc/passwd"}))
    monkeypatch.setenv("SERVER_SOFTWARE", "voila/0.5")
    before = desk.design
    desk.act(lambda: desk.open_link(text))
    assert desk.design == before
    assert "no file" in desk.session.refusal.text
    desk.headline.fix.click()
    assert desk.design.calibration is None


# ---------------------------------------------------------------- the protocol
def test_the_page_is_drawn_from_messages_alone(desk):
    """What a worker would do: JSON in, JSON out, and the whole page from nothing."""
    seen, parts = [], {}

    def tell(message):
        message = json.loads(json.dumps(message))
        seen.append(message)
        for name, entries in message.get("parts", {}).items():
            parts.setdefault(name, {}).update(entries)

    desk.page.tell = tell
    desk.page.hear({"hello": 1, "vega": True, "serial": "a:1"})
    assert seen[-1] == {"answered": "a:1"}
    root = next(m["root"] for m in seen if "root" in m)
    reached, todo = set(), [root]
    while todo:
        name = todo.pop()
        reached.add(name)
        assert parts[name]["kind"]
        todo += parts[name].get("children", [])
    kinds = {parts[name]["kind"] for name in reached}
    assert {"form", "strip", "chart", "table", "tabs", "parts", "link", "button"} <= kinds
    form = next(n for n in reached if parts[n]["kind"] == "form")
    strip = next(n for n in reached if parts[n]["kind"] == "strip")
    move = {"field": "cluster.devices", "value": 8192, "final": True, "serial": 1}
    desk.page.hear({"set": {form: {"proposal": move}}, "serial": "a:2"})
    shown = {item["key"]: item for item in parts[strip]["items"]}
    given = scantling.assess(desk.design).as_dict()
    assert desk.design.cluster.devices == 8192
    days = shown["likely.days"]
    assert f"{days['value']} {days['unit']}" == show("days", given["likely"]["days"])
    assert parts[form]["answered"] == 1


def test_the_page_sets_nothing_but_what_a_part_hears(desk):
    desk.page.tell = lambda message: None
    before = desk.headline.strip.items
    desk.page.hear(
        {"set": {desk.headline.strip.id: {"items": []}, "p0": {"value": 1}}, "serial": "x"}
    )
    assert desk.headline.strip.items == before


# ---------------------------------------------------------------- what a move did
def test_the_sentence_names_the_move_and_the_bottleneck_that_took_over(desk):
    desk.controls.form.send_change("cluster.devices", 131072)
    said = desk.story.sentence.value
    assert "16,384 → 131,072" in said
    before, now = (story.bottleneck(m.figures) for m in (desk.session.before, desk.session.now))
    assert now[0] in said
    assert (before[0] == now[0]) == ("took over" not in said)
    longest = max(
        v
        for k, v in desk.session.now.figures["step_breakdown_s"].items()
        if k not in ("gemm", "attention", "elementwise", "logits")
    )
    assert now[1] == pytest.approx(longest / desk.session.now.figures["step_s"])


def test_moves_that_are_offered_again_and_again_are_the_same_parts(desk):
    parts = []
    for count in (3, 2, 0, 3):
        desk.story.offer([("Sooner", f"{place} days", {"notes": "x"}) for place in range(count)])
        parts.append(len(desk.page.parts))
        assert len(desk.story.moves.children) == max(1, count)
    assert parts == parts[:1] * 4


def test_where_no_move_helps_the_desk_says_so(desk):
    assert "being tried" in desk.story.moves.children[0].value
    assert story.none_helps(desk.session.now, 3) == "Of 3 moves tried here none helps."
    desk.controls.form.send_change("constraints.deadline_days", "1")
    assert "No nearby change" in story.none_helps(desk.session.now, 3)


@pytest.mark.slow
def test_three_moves_are_offered_and_each_does_what_it_says(desk):
    moment = desk.session.now
    trials = Trials(moment.assessment)
    trials.judge(story.moves(moment))
    moves = list(story.suggested(moment, trials))
    assert len(moves) == 3
    desk.story.offer(moves)
    for button, (name, said, _fields) in zip(desk.story.moves.children, moves):
        button.click()
        assert desk.session.refusal is None
        given = desk.session.now.figures
        assert show("likely.days", given["likely"]["days"]) in said
        if name == "Cheaper":
            assert given["cost_usd"] < moment.figures["cost_usd"]
        if name == "Sooner":
            assert given["days"] < moment.figures["days"]
        if name == "Another bottleneck":
            assert story.bottleneck(given)[0] != story.bottleneck(moment.figures)[0]
        desk.session.undo()


def test_of_a_design_that_misses_a_limit_the_fixes_are_offered(desk):
    desk.controls.form.send_change("constraints.deadline_days", "60")
    desk.session.advise()
    moment = desk.session.now
    assert not list(story.moves(moment)), "its nearest fixes are known"
    moves = list(story.suggested(moment, Trials(moment.assessment)))
    assert moves and {name for name, _, _ in moves} == {"Mend"}


def test_several_designs_stand_side_by_side_with_their_bands_and_notes(desk):
    panel = next(p for p in desk.panels if p.title == "Compare")
    desk.tabs.selected_index = desk.panels.index(panel)
    panel.notes.value = "as published"
    assert desk.design.notes == "as published"
    for devices in (16384, 8192, 32768):
        desk.controls.form.send_change("cluster.devices", devices)
        panel.keep.click()
    panel.keep.click()  # the same once
    assert [kept.design.cluster.devices for kept in desk.session.kept] == [16384, 8192, 32768]
    assert desk.session.reference is desk.session.kept[0], "the first that is kept"
    assert len(panel.numbers.rows) == 10
    text = lambda cell: cell if isinstance(cell, str) else cell["text"]
    rows = {text(row[0]): [text(cell) for cell in row[1:]] for row in panel.numbers.rows}
    _, _, *cells = rows[label("likely.cost_usd")]
    assert len(cells) == 3
    for said, kept in zip(cells, desk.session.kept):
        assert show("likely.cost_usd", kept.figures["likely"]["cost_usd"]) in said
    devices = next(row for row in panel.fields.rows if row[0] == "cluster.devices")
    assert devices[1:] == ["32,768", "16,384", "8,192", "32,768"]
    heads = [column["label"] for column in panel.numbers.columns]
    assert heads[3].endswith("(reference)") and "devices 8,192" in heads[4]
    panel.reference.value = desk.session.kept[1]
    assert desk.session.reference.design.cluster.devices == 8192
    panel.take.click()
    assert desk.design.cluster.devices == 8192
    panel.forget.click()
    assert desk.session.reference is None and not panel.numbers.rows


def test_a_feasible_design_that_costs_more_than_it_need_says_so_and_offers_the_change(desk):
    desk.controls.form.send_change("cluster.devices", 14336)
    desk.session.advise()
    saving = desk.session.now.figures["saving"]
    assert saving["share"] > 0.1
    verdict = desk.headline.strip.items[0]
    assert (verdict["value"], verdict["state"]) == ("Feasible, but dear", "warn")
    assert show("cost_usd", saving["saved_usd"]) in desk.headline.line.value
    assert "dearer than it need be" in desk.headline.line.value
    before = desk.session.now.figures["likely"]["cost_usd"]
    desk.headline.fix.click()
    after = desk.session.now.figures["likely"]["cost_usd"]
    assert before - after == pytest.approx(saving["saved_usd"], rel=1e-6)


def test_the_desk_calls_a_design_what_the_command_line_calls_it(desk):
    """A plan that is pinned to be slower than it need be is not said to be plainly feasible."""
    desk.controls.form.send_change("plan.micro_batch", 64)
    desk.session.advise()
    said = verdict_sentence(desk.session.now.figures)
    assert "slower than it need be" in said.name
    verdict = desk.headline.strip.items[0]
    assert (verdict["value"], verdict["state"]) == ("Feasible, but slow", "warn")
    assert said.name in desk.headline.line.value


def test_a_run_of_years_is_as_long_in_the_sentence_as_on_its_card(desk):
    """MFU falls to less than a hundredth at a batch of eight: the run takes five years."""
    desk.controls.form.send_change("job.global_batch", 8)
    figures = desk.session.now.figures
    assert figures["verdict"] == "impractical"
    assert f"A run of {show('likely.days', figures['likely']['days'])};" in (
        desk.headline.line.value
    )


def test_of_many_plans_the_figures_come_first_and_the_advice_follows(desk):
    desk.controls.form.send_change("cluster.devices", 10240)
    desk.controls.form.send_change("model.experts", 16)
    first = desk.session.now
    assert not first.advised and first.figures["avoid"] == []
    assert "being worked out" in desk.headline.line.value
    until = monotonic() + 300
    while not desk.session.now.advised and monotonic() < until:
        sleep(0.2)
    now = desk.session.now
    assert now.design == first.design and now.advised and now.figures["avoid"]
    assert now.figures["step_s"] == first.figures["step_s"]
    assert "being worked out" not in desk.headline.line.value


def test_the_table_of_device_counts_says_what_its_picture_shows(desk):
    panel = next(p for p in desk.panels if p.title == "Cost")
    desk.tabs.selected_index = desk.panels.index(panel)
    panel.job.run()
    panel.job.thread.join(60)
    assert panel.points
    for row, point in zip(panel.sweep.rows, panel.points):
        likely, cells = point["figures"]["likely"], dict(zip(panel.sweep.names, row))
        assert cells["likely.days"]["text"] == show("likely.days", likely["days"])
        assert cells["likely.cost_usd"]["text"] == show("likely.cost_usd", likely["cost_usd"])
    bill = {row[0]["text"]: row[1]["text"] for row in panel.bill.rows if isinstance(row[0], dict)}
    assert bill["Likely cost"] == show(
        "likely.cost_usd", desk.session.now.figures["likely"]["cost_usd"]
    )
