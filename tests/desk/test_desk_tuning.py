"""The desk on designs that tune a trained model: the method switches, rollout and trainer stand as
two bars of one step, and follow what is moved."""

from __future__ import annotations

import pytest
from scantling.catalogue.words import Method
from scantling.design.design import Design
from scantling_posttrain.answer_lines import fix_text
from scantling_posttrain.answering import moves, posttrain
from scantling_posttrain.recipes import FRAMEWORKS, script
from scantling_widgets.desk.desk import DeskPane
from scantling_widgets.pages import gallery

POLICY = gallery.tuned()["qwen3-32b-grpo-64-h100"]
START = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm", "devices": 16},
    "job": {"tokens": 1e12, "seq_len": 8192, "global_batch": 256},
}


def move(desk, field, value):
    desk.controls.form.send_change(field, value)
    assert desk.session.fault is None
    return desk.session.now


def cards(desk):
    return {item["key"]: item for item in desk.headline.strip.items}


def titles(desk):
    return [desk.tabs.titles[place] for place in desk.tabs.offered]


@pytest.fixture
def policy():
    return DeskPane(POLICY)


def test_the_step_is_two_bars_that_are_the_answers(policy):
    data = policy.step_card.side_chart.data["spans"]
    tuned = posttrain(POLICY)
    assert list(dict.fromkeys(data["row"])) == ["rollout", "trainer"]
    assert max(data["end"]) == pytest.approx(tuned.step_s)
    assert policy.step_card.side_chart.alt.count("s") > 10
    names = [entry["name"] for entry in policy.step_card.key.entries]
    assert names == ["Generation", "Log-probabilities", "Updates", "Weight sync", "Everything else"]


def test_a_longer_response_moves_the_bars(policy):
    before = max(policy.step_card.side_chart.data["spans"]["end"])
    now = move(policy, "job.rollout.mean_response", 1000.0)
    after = max(policy.step_card.side_chart.data["spans"]["end"])
    assert after < before and after == pytest.approx(now.tuned.step_s)
    assert cards(policy)["step_s"]["value"] != ""


@pytest.mark.parametrize("method", [method for method in Method if method is not Method.PRETRAIN])
def test_the_method_switches_there_and_back(method):
    desk = DeskPane(Design.from_data(START))
    whole = titles(desk)
    now = move(desk, "job.method", method.value)
    assert desk.session.refusal is None and now.tuned is not None
    assert now.design.job.tokens is None, "tokens of the pre-training"
    assert titles(desk) == ["Rollout and trainer", "File and report"]
    assert "mfu_shown" not in cards(desk) and cards(desk)["step_s"]["value"]
    fields = {field for group in desk.controls.form.groups for field in group["fields"]}
    assert ("job.rollout.mean_response" in fields) == (method in (Method.GRPO, Method.PPO))
    assert ("job.adapter.rank" in fields) == (method in (Method.LORA, Method.QLORA))
    now = move(desk, "job.method", "pretrain")
    assert now.tuned is None and titles(desk) == whole
    assert now.design.data()["job"] == START["job"], "tokens and batch come back"


def test_what_nobody_said_is_asked_for_in_the_line_at_the_top():
    desk = DeskPane(Design.from_data(START))
    move(desk, "job.method", "grpo")
    assert "To be settled: job.rollout.max_response" in desk.headline.line.value


def test_numbers_open_to_what_they_are_made_of(policy):
    for key in cards(policy):
        policy.headline.strip.opened = key
        detail = policy.headline.strip.detail
        assert detail["title"] and detail["value"] and detail["lines"], key


def test_a_model_that_fits_nowhere_says_why_in_place_of_the_pictures():
    desk = DeskPane(Design.from_data(START))
    move(desk, "job.method", "sft")
    move(desk, "cluster.devices", 8)
    now = move(desk, "model", "llama-3.1-405b")
    assert now.tuned.plan is None
    assert "leanest plan" in desk.memory_card.side_chart.empty
    assert cards(desk)["verdict"]["state"] == "bad"


def test_a_link_holds_such_a_design(policy):
    assert DeskPane(policy.head.link.value).design == policy.design


def test_undo_brings_the_other_method_back(policy):
    move(policy, "job.method", "lora")
    policy.session.undo()
    assert policy.design == Design.read(POLICY)
    assert "rollout" in policy.step_card.side_chart.data["spans"]["row"]


def panel(desk, title):
    place = desk.tabs.titles.index(title)
    desk.tabs.selected_index = place
    desk.panels[place].show()
    return desk.panels[place]


def run(job):
    job.run()
    job.thread.join()


def test_changes_are_looked_for_and_what_to_find_out_is_listed(policy):
    tab = panel(policy, "Rollout and trainer")
    assert "mean response" in tab.first.value and "draw some hundred samples" in tab.first.value
    assert "not looked for yet" in tab.changes.value
    run(tab.looking)
    count, found = moves(policy.session.now.tuned)
    texts = [fix_text(fix) for fix in found if fix is not None]
    assert count > len(texts) > 0
    assert all(fix.split(" →")[0] in tab.changes.value for fix in texts)


def test_a_design_that_does_not_names_what_would_do():
    desk = DeskPane(Design.read(POLICY).change({"constraints": {"deadline_days": 0.9}}))
    tab = panel(desk, "Rollout and trainer")
    assert tab.looking.hidden and "<li>" in tab.changes.value


def test_the_kit_is_the_script_of_a_framework_of_tuning(policy, tmp_path):
    tab = panel(policy, "File and report")
    assert tab.to.options == tuple(FRAMEWORKS) and tab.on.hidden and not tab.kit_card.hidden
    tab.to.index, tab.kit.value = tab.to.options.index("nemo-rl"), str(tmp_path)
    run(tab.kit_job)
    written = (tmp_path / "run-nemo-rl.sh").read_text(encoding="utf-8")
    assert written == script(FRAMEWORKS["nemo-rl"](policy.design), "nemo-rl")
    tab.to.index = tab.to.options.index("torchtune")
    run(tab.kit_job)
    assert "is written for no grpo" in tab.kit_status.value
    move(policy, "job.method", "pretrain")
    tab = panel(policy, "File and report")
    assert "megatron" in tab.to.options and not tab.on.hidden
