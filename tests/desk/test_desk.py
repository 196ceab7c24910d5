"""The desk without a browser: what its widgets hold after each move is what the library says of
that design."""

from __future__ import annotations

import math
from html import unescape
from itertools import count

import pytest
import scantling
from scantling.base.errors import DesignError
from scantling.base.quantities.quantity import show
from scantling.base.records import at
from scantling.base.show import size
from scantling.design.design import Design
from scantling.verdict.verdicts import met
from scantling_widgets import shipped_files
from scantling_widgets.charts import memory_step as charts
from scantling_widgets.charts.livechart import columns
from scantling_widgets.desk.desk import DeskPane
from scantling_widgets.desk.session import Session
from scantling_widgets.desk.widgets import open_desk


@pytest.fixture
def desk():
    return DeskPane(shipped_files.example())


def card(desk, key: str) -> dict:
    return next(item for item in desk.headline.strip.items if item["key"] == key)


def text(item: dict) -> str:
    return f"{item['value']} {item['unit']}".strip()


# ---------------------------------------------------------------- numbers on screen are the
# library's
@pytest.mark.parametrize(
    "key",
    [
        "mfu_shown",
        "step_s",
        "bubble_fraction",
        "likely.days",
        "likely.cost_usd",
        "goodput",
        "checkpoint_interval_s",
    ],
)
def test_a_card_shows_what_the_library_says(desk, key):
    figures = scantling.assess(desk.design).as_dict()
    assert text(card(desk, key)) == show(key, at(figures, key))


def test_the_card_of_mfu_says_when_it_counts_what_a_causal_mask_leaves(desk):
    """The 405B's scores are 4 % of its FLOPs at 8,192 tokens and most of them at 131,072."""
    assert card(desk, "mfu_shown")["label"] == "MFU"
    desk.controls.form.send_change("job.seq_len", 131_072)
    assert card(desk, "mfu_shown")["label"] == "MFU, causal"


@pytest.mark.parametrize(
    ("field", "value", "where"),
    [
        ("cluster.devices", 8192, lambda d: d.cluster.devices),
        ("job.seq_len", 16384, lambda d: d.job.seq_len),
        ("job.global_batch", 4096, lambda d: d.job.global_batch),
        ("cluster.scale_out", "ib-hdr", lambda d: d.cluster.scale_out),
        ("cluster.accelerator", "a100-80-sxm", lambda d: d.cluster.accelerator),
        ("plan.tp", 8, lambda d: d.plan.tp),
        ("model", "gpt-3-175b", lambda d: d.model),
    ],
)
def test_a_moved_control_changes_its_field_and_every_number_follows(desk, field, value, where):
    chart, spec, before = desk.step_card.chart, desk.step_card.chart.spec, desk.step_card.chart.data
    desk.controls.form.send_change(field, value)
    assert desk.session.refusal is None
    assert desk.session.fault is None
    assert where(desk.design) == value
    assert desk.controls.form.field(field)["value"] == value
    given = scantling.assess(desk.design).as_dict()
    assert text(card(desk, "mfu_shown")) == show("mfu", given["mfu_shown"])
    assert desk.step_card.chart is chart
    assert desk.step_card.chart.spec is spec, "the chart is fed, not built again"
    assert field == "plan.tp" or desk.step_card.chart.data != before


@pytest.mark.slow
def test_size_and_experts_make_a_model_of_that_size(desk):
    desk.controls.form.send_change("model.size", 200e9)
    assert desk.session.now.resolved.params.total == pytest.approx(200e9, rel=0.05)
    desk.controls.form.send_change("model.experts", 16)
    model = desk.session.now.resolved.model
    assert (model.experts, desk.controls.form.field("model.top_k")["disabled"]) == (16, False)
    assert desk.session.now.resolved.params.active < desk.session.now.resolved.params.total
    desk.controls.form.send_change("model.top_k", 4)
    assert desk.session.now.resolved.model.top_k == 4


def test_experts_that_come_and_go_leave_the_size_that_was_typed(desk):
    """The count of a shape is a little beside the size that it was made for; at every move of the
    slider it would drift."""
    desk.controls.form.send_change("model.size", 200e9)
    for experts in (8, 16, 0):
        desk.controls.form.send_change("model.experts", experts)
        assert desk.design.model.size == 200e9


@pytest.mark.slow
def test_attention_of_a_hybrid_is_moved_in_steps(desk):
    desk.controls.form.send_change("model", "qwen3-next")
    assert desk.controls.form.field("model.attention_every")["value"] == 4
    before = desk.session.now.figures["step_s"]
    desk.controls.form.send_change("model.attention_every", 8)
    assert desk.session.refusal is None
    assert desk.session.now.resolved.model.attention_every == 8
    assert desk.session.now.figures["step_s"] != before


@pytest.mark.slow
def test_a_window_is_moved_where_layers_have_one(desk):
    assert desk.controls.form.field("model.window")["disabled"]
    assert desk.controls.form.field("model.state_size")["disabled"]
    desk.controls.form.send_change("model", "gpt-oss-20b")
    assert desk.controls.form.field("model.window")["value"] == 128
    assert not desk.controls.form.field("model.window")["disabled"]
    desk.controls.form.send_change("model.window", 4096)
    assert desk.session.refusal is None
    assert desk.session.now.resolved.model.window == 4096


def test_experts_of_a_catalogue_moe_keep_their_width(desk):
    desk.controls.form.send_change("model", "mixtral-8x7b")
    width, total = (
        desk.session.now.resolved.model.expert_ffn_hidden,
        desk.session.now.resolved.params.total,
    )
    desk.controls.form.send_change("model.experts", 16)
    assert desk.session.now.resolved.model.expert_ffn_hidden == width
    assert desk.session.now.resolved.params.total > 1.5 * total


def test_another_accelerator_brings_its_node_and_drops_a_precision_it_has_not(desk):
    desk.controls.form.send_change("cluster.accelerator", "v100-32-sxm2")
    assert desk.session.refusal is None
    assert desk.session.now.resolved.phases[0].precision == "fp16"
    assert desk.session.now.resolved.cluster.accelerator.family == "volta"


# ---------------------------------------------------------------- pictures
def test_memory_picture_sums_to_the_total_and_marks_the_fullest_stage(desk):
    given = desk.session.now.figures
    data = charts.memory.data(given)
    for row in charts.stages(given):
        ends = [
            e
            for s, e in zip(data["parts"]["stage"], data["parts"]["end"])
            if s == str(row["stage"])
        ]
        assert max(ends) == pytest.approx(row["total"])
    totals = [row["total"] for row in charts.stages(given)]
    assert data["marks"]["level"] == [max(totals)]
    assert data["marks"]["says"][0].strip(" ▾") == f"fullest stage: {size(max(totals))}"
    late = 2 * totals.index(max(totals)) >= len(totals)
    assert data["marks"]["side"] == ["right" if late else "left"]  # no text beyond the edge
    assert data["lines"]["level"] == pytest.approx(
        [0.8 * given["memory_bytes"]["capacity"], given["memory_bytes"]["capacity"]]
    )


def test_step_picture_ends_where_the_step_ends(desk):
    given = desk.session.now.figures
    data = charts.step.data(given)
    assert max(data["solid"]["end"]) == pytest.approx(given["step_s"], rel=1e-3)
    hidden = {key: v or 0.0 for key, v in (given.get("hidden_s") or {}).items()}
    drawn = zip(data["pale"]["row"], data["pale"]["start"], data["pale"]["end"])
    by_name = {charts.STEP[key].name: v for key, v in hidden.items()}
    assert {name: end - start for name, start, end in drawn} == pytest.approx(
        {name: v for name, v in by_name.items() if v > 0.003 * given["step_s"]}, rel=1e-6
    )


def test_the_step_picture_names_each_part_with_its_amount(desk):
    """A row for each part beside its bar, and none for parts that the step does not have."""
    given = desk.session.now.figures
    data = charts.step.data(given)
    parts = {charts.STEP[key].name: v for key, v in given["step_breakdown_s"].items() if v}
    rows = data["rows"]["row"]
    assert rows[0] == "one step" and set(rows[1:]) <= {*parts, "the rest"}
    assert {name for name, v in parts.items() if v > 0.003 * given["step_s"]} <= set(rows)
    assert data["texts"]["text"][0].startswith(show("step_s", given["step_breakdown_s"]["gemm"]))
    entries = desk.step_card.key.entries
    assert entries and not [entry for entry in entries if entry["nil"]]


def test_overflow_is_hatched_from_the_line_up(desk):
    desk.controls.form.send_change("plan.tp", 1)
    desk.controls.form.send_change("plan.pp", 1)
    desk.controls.form.send_change("plan.sharding", "none")
    given = desk.session.now.figures
    assert given["memory_bytes"]["total"] > given["memory_bytes"]["capacity"]
    over = charts.memory.data(given)["over"]
    assert over["from"] == [given["memory_bytes"]["capacity"]] * len(over["from"])
    assert max(over["to"]) == given["memory_bytes"]["total"]
    assert card(desk, "verdict")["value"] == "Does not fit"


def test_pictures_are_valid_and_carry_words(desk):
    for figure in (charts.memory, charts.step):
        spec = figure(desk.result).to_dict()
        assert spec["width"] == 640
        assert len(spec["description"]) > 40
        assert all(rows for name, rows in spec["datasets"].items() if name in ("parts", "solid"))


def test_what_is_not_finite_becomes_null():
    assert columns({"x": [1.0, math.nan, math.inf]}) == {"x": [1.0, None, None]}


# ---------------------------------------------------------------- wrong values
def test_a_refused_value_leaves_the_last_valid_picture_and_marks_its_control(desk):
    good, mfu = desk.design, text(card(desk, "mfu_shown"))
    desk.controls.form.send_change("plan.tp", 7)
    assert desk.design == good
    assert text(card(desk, "mfu_shown")) == mfu
    assert desk.controls.form.field("plan.tp")["fault"]
    assert "Input rejected" in desk.headline.line.value
    desk.controls.form.send_change("plan.tp", 4)
    assert desk.session.refusal is None
    assert desk.design.plan.tp == 4
    assert not desk.controls.form.field("plan.tp")["fault"]


def test_a_pin_in_the_way_of_a_change_is_offered_to_go():
    desk = DeskPane(shipped_files.example("qwen3-235b-a22b-256-gb200"))
    desk.controls.form.send_change("cluster.devices", 128)  # fewer than the pinned ways make
    assert desk.design.cluster.devices == 256
    pins = set(desk.design.plan.stated())
    named = set()
    for _ in range(4):
        if desk.session.refusal is None:
            break
        named.add(desk.session.refusal.field.removeprefix("plan."))
        assert desk.headline.fix.description.startswith("Unpin")
        desk.headline.fix.click()
    assert desk.design.cluster.devices == 128
    assert set(desk.design.plan.stated()) == pins - named


def test_two_fields_that_are_only_legal_together_can_be_set_one_after_the_other():
    """A rule of a design that no field can leave alone: a sequence a node."""

    class Pair(Design):
        def change(self, paths=None, **sections):
            new = super().change(paths, **sections)
            nodes = new.cluster.devices // 8
            if nodes != new.job.global_batch:
                raise DesignError("cluster.devices", new.cluster.devices, f"{nodes} nodes")
            return new

    session = Session(Pair.read(shipped_files.example()))
    assert session.change({"cluster.devices": 8192}) is False
    assert session.refusal.field == "cluster.devices"
    assert session.change({"job.global_batch": 1024}) is True
    assert (session.design.cluster.devices, session.design.job.global_batch) == (8192, 1024)


def test_a_list_says_which_degrees_cannot_be_and_why(desk):
    seen = 0
    desk.controls.form.ask("plan.dp")
    reasons = {
        o["value"]: o.get("reason", "") for o in desk.controls.form.field("plan.dp")["options"]
    }
    assert "batch" in reasons[3]
    assert reasons[64] == ""
    for value, why in reasons.items():
        if why:
            seen += 1
            desk.controls.form.send_change("plan.dp", value)
            assert desk.session.refusal is not None, f"dp {value} is greyed and yet taken"
            desk.controls.form.send_change("plan.dp", None)
            break
    assert seen


@pytest.mark.parametrize("typed", ["ten", "1e999", "-3", "[1]", "🙂"])
def test_nonsense_in_a_number_box_is_answered_in_one_line(desk, typed):
    desk.controls.form.send_change("constraints.deadline_days", typed)
    assert desk.session.fault is None
    assert "\n" not in desk.session.refusal.text
    desk.controls.form.send_change("constraints.deadline_days", "90")
    assert desk.design.constraints.deadline_days == 90


def test_an_error_in_the_kit_is_shown_and_the_desk_goes_on():
    broken = {"on": False}

    def judge(design, quick):
        if broken["on"]:
            raise ZeroDivisionError("a bug")
        return scantling.assess(design)

    desk = DeskPane(shipped_files.example(), judge=judge)
    broken["on"] = True
    desk.controls.form.send_change("cluster.devices", 8192)
    assert "ZeroDivisionError: a bug" in desk.headline.fault.value
    assert desk.controls.form.answered == desk.controls.form.proposal["serial"]
    broken["on"] = False
    desk.controls.form.send_change("cluster.devices", 4096)
    assert desk.design.cluster.devices == 4096


def test_names_cannot_write_markup(desk):
    desk.session.change({"name": "<img src=x onerror=alert(1)>"})
    assert "<img" not in desk.head.title.value


# ---------------------------------------------------------------- one state
def test_undo_takes_a_change_back_and_redo_does_it_again(desk):
    first = desk.design
    desk.controls.form.send_change("cluster.devices", 8192)
    second = desk.design
    desk.session.undo()
    assert (desk.design, desk.controls.form.field("cluster.devices")["value"]) == (first, 16384)
    desk.session.redo()
    assert desk.design == second


def test_a_drag_is_one_step_of_undo(desk, monkeypatch):
    clock = count(0, 0.1)
    monkeypatch.setattr("scantling_widgets.desk.session.monotonic", lambda: next(clock))
    first = desk.design
    for n in (15360, 14336, 12288, 10240):
        desk.controls.form.send_change("cluster.devices", n, final=False)
    desk.session.undo()
    assert desk.design == first


def test_letting_a_control_go_is_no_step_of_its_own(desk, monkeypatch):
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr("scantling_widgets.desk.session.monotonic", lambda: next(clock))
    first = desk.design
    desk.controls.form.send_change("cluster.devices", 8192, final=False)
    desk.controls.form.send_change("cluster.devices", 8192, final=True)
    desk.session.undo()
    assert desk.design == first


@pytest.mark.slow
def test_at_least_fifty_steps_of_undo():
    session = Session(Design.read(shipped_files.example("llama-3.1-8b-8-h100-fsdp")))
    first = session.now.design
    for i in range(51):
        session.change({"name": f"step {i}"}, moved=f"move {i}")
    for _ in range(51):
        session.undo()
    assert session.now.design == first
    assert not session.can_undo


def test_reset_brings_the_first_design_back_and_can_be_undone(desk):
    first = desk.design
    desk.controls.form.send_change("cluster.devices", 8192)
    desk.session.reset()
    assert desk.design == first
    desk.session.undo()
    assert desk.design.cluster.devices == 8192


@pytest.mark.slow
def test_the_offered_fix_makes_the_design_feasible(desk):
    desk.controls.form.send_change("constraints.deadline_days", "60")
    assert desk.session.now.figures["verdict"] == "constraint-missed"
    assert card(desk, "likely.days")["state"] == "bad"
    desk.session.advise()
    assert desk.headline.fix.hidden is False
    desk.headline.apply_fix()
    assert met(desk.session.now.figures["verdict"])  # at risk or not
    assert desk.session.can_undo


def test_an_impossible_design_says_so_everywhere_and_can_be_left(desk):
    desk.design = Design.read(shipped_files.example("case-2-1t-dense-8-v100"))
    assert card(desk, "verdict")["value"] == "Impossible"
    assert "Hardware constraints insufficient for model parameters" in desk.headline.line.value
    assert not any(desk.memory_card.chart.data.values())
    for number in range(len(desk.panels)):
        desk.tabs.selected_index = number
        assert desk.session.fault is None
    desk.session.undo()
    assert any(desk.memory_card.chart.data.values())


def test_a_pinned_design_shows_differences_and_against_itself_none(desk):
    desk.session.refer()
    assert card(desk, "mfu_shown")["delta"] == "= reference"
    desk.controls.form.send_change("cluster.devices", 8192)
    assert card(desk, "step_s")["delta"].startswith("+")
    assert card(desk, "step_s")["sense"] == "worse"
    desk.session.refer()
    assert "delta" not in card(desk, "step_s")


def test_assigning_a_design_puts_it_on_the_desk(desk):
    desk.design = Design.read(shipped_files.example()).change({"cluster.devices": 2048})
    assert desk.controls.form.field("cluster.devices")["value"] == 2048


def test_the_desk_comes_back_where_it_was(tmp_path, monkeypatch):
    state = tmp_path / "kept" / "desk.yaml"
    monkeypatch.setenv("SCANTLING_AUTOSAVE", str(state))
    monkeypatch.setenv("SCANTLING_DESIGN", str(shipped_files.example()))
    desk = open_desk()
    desk.session.change({"cluster.devices": 4096})
    assert open_desk().design == desk.design
    state.write_text("not: [a design", encoding="utf-8")
    assert open_desk().design.cluster.devices == 16384


# ---------------------------------------------------------------- tabs
def test_tabs_are_made_when_they_are_first_shown(desk):
    assert [p.parts is not None for p in desk.panels] == [True] + [False] * (len(desk.panels) - 1)


@pytest.mark.parametrize("number", range(10))
def test_every_tab_draws_follows_and_never_fails(desk, number):
    desk.tabs.selected_index = number
    desk.session.refer()
    desk.controls.form.send_change("cluster.devices", 8192)
    assert desk.session.fault is None
    assert desk.panels[number].parts


def test_a_plan_of_the_leaderboard_becomes_the_design(desk):
    plans = desk.panels[0]
    assert len(plans.table.rows) > 1
    plans.table.pick(1)
    chosen = desk.session.now.figures["candidates"][0]
    assert desk.session.refusal is None
    assert {k: desk.session.now.figures["plan"][k] for k in ("tp", "pp", "cp", "micro_batch")} == {
        k: chosen[k] for k in ("tp", "pp", "cp", "micro_batch")
    }
    assert desk.design.plan.tp == chosen["tp"]


def test_a_design_can_be_saved_loaded_and_pasted(desk, tmp_path):
    file = next(p for p in desk.panels if p.title == "File and report")
    desk.tabs.selected_index = desk.panels.index(file)
    file.path.value = str(tmp_path / "mine.yaml")
    file.save.click()
    assert Design.read(tmp_path / "mine.yaml") == desk.design
    desk.controls.form.send_change("cluster.devices", 8192)
    file.load.click()
    assert desk.design.cluster.devices == 16384
    file.text.value = desk.design.change({"cluster.devices": 1024}).to_yaml()
    file.use.click()
    assert desk.design.cluster.devices == 1024
    file.text.value = "model: [what"
    file.use.click()
    assert "alert" in file.text_status.value
    assert desk.design.cluster.devices == 1024
    for text in ("scantling: 1", "no design at all"):  # the second has no field that is wrong
        file.text.value = text
        file.use.click()
        assert desk.session.refusal.text in unescape(file.text_status.value)
        assert desk.session.refusal.text in unescape(desk.headline.line.value)


def test_a_long_context_phase_is_the_one_the_sliders_move():
    design = Design.read(shipped_files.example()).change(
        job={
            "tokens": None,
            "seq_len": None,
            "global_batch": None,
            "phases": [
                {"tokens": 1e12, "seq_len": 8192, "global_batch": 2048},
                {"tokens": 14e12, "seq_len": 16384, "global_batch": 1024},
            ],
        }
    )
    desk = DeskPane(design)
    assert desk.session.now.resolved.job_path == "job.phases.1"
    desk.controls.form.send_change("job.phases.1.seq_len", 32768)
    assert [p.seq_len for p in desk.design.job.phases] == [8192, 32768]


def test_an_impossible_design_shows_the_whole_arithmetic_and_what_would_help():
    desk = DeskPane(shipped_files.example("case-2-1t-dense-8-v100"))
    desk.session.advise()
    given = desk.session.now.figures
    assert all(str(limit) in desk.memory_card.chart.empty for limit in given["limits"])
    assert given["nearest_fixes"][0]["change"] in desk.step_card.chart.empty
