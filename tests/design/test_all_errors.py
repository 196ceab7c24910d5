"""Whatever is wrong with a design file is said at once, each with the nearest name there is."""

from __future__ import annotations

import pytest
from scantling.base.errors import DesignError
from scantling.cli.app import main
from scantling.design.design import Design
from scantling.design.resolve import resolve
from scantling_widgets.desk.desk import DeskPane
from scantling_widgets.shipped_files import example

WRONG = """
scantling: 1
modle: llama-3.1-405b
cluster: {accelerator: h100-smx, device: 8, gpus: 4}
job: {token: 1e12, global_batch: many}
"""


def _errors(text: str) -> dict[str, DesignError]:
    with pytest.raises(DesignError) as caught:
        resolve(Design.from_yaml(text))
    error = caught.value
    return {one.field: one for one in (error, *error.others)}


def test_every_error_of_a_file_is_said_at_once_with_the_nearest():
    errors = _errors(WRONG)
    assert {field: error.nearest for field, error in errors.items()} == {
        "modle": "model",
        "cluster.device": "cluster.devices",
        "cluster.gpus": "cluster.devices",
        "cluster.accelerator": "h100-sxm",
        "job.token": "job.tokens",
        "job.global_batch": None,
    }


def test_a_field_that_is_missing_because_another_is_misspelt_is_not_named_again():
    text = "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, gpu_count: 8}\njob: {}\n"
    assert list(_errors(text)) == ["cluster.gpu_count"]


def test_names_that_no_catalogue_has_are_said_together():
    text = "model: llama-3.1-8x\ncluster: {accelerator: h100x, devices: 8}\njob: {}\n"
    assert set(_errors(text)) == {"model", "cluster.accelerator"}
    text = (
        "model: llama-3.1-8bb\n"
        "cluster: {accelerator: h100-smx, devices: 8, scale_out: ib-ndx, node: dgx-h1000,"
        " storage: superpod-beter}\n"
        "job: {}\nstack: megatron-cor\nreliability: {preset: llama4}\n"
    )
    assert {field: error.nearest for field, error in _errors(text).items()} == {
        "model": "llama-3.1-8b",
        "cluster.accelerator": "h100-sxm",
        "cluster.scale_out": "ib-ndr",
        "cluster.node": "dgx-h100",
        "cluster.storage": "superpod-better",
        "stack": "megatron-core",
        "reliability.preset": "llama3",
    }


@pytest.mark.parametrize(
    ("section", "name", "nearest"),
    [
        ("cluster", "gpus", "cluster.devices"),
        ("cluster", "interconnect", "cluster.scale_out"),
        ("job", "batch_size", "job.global_batch"),
        ("job", "context_length", "job.seq_len"),
        ("constraints", "deadline", "constraints.deadline_days"),
        ("constraints", "budget", "constraints.budget_usd"),
    ],
)
def test_what_others_call_a_field_finds_it(section, name, nearest):
    data = {"model": "llama-3.1-8b", "cluster": {"accelerator": "h100-sxm", "devices": 8}}
    data = {**data, "job": {}, section: {**data.get(section, {}), name: 8}}
    with pytest.raises(DesignError) as caught:
        Design.from_data(data)
    assert caught.value.nearest == nearest


def test_a_command_names_each_in_its_one_line(tmp_path, capsys):
    (tmp_path / "wrong.yaml").write_text(WRONG, encoding="utf-8")
    assert main(["design", str(tmp_path / "wrong.yaml")]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("scantling: ") and line.count("; also ") == 5
    assert "cluster.gpus: there is no such field; nearest: cluster.devices" in line


def test_the_desk_marks_each_beside_its_input():
    desk = DeskPane(example("llama-3.1-8b-8-h100-fsdp"))
    panel = next(p for p in desk.panels if p.title == "File and report")
    desk.tabs.selected_index = desk.panels.index(panel)
    text = desk.design.change({"job.global_batch": None}).to_yaml()
    panel.text.value = text.replace("job:", "job: {global_batch: many, seq_len: long}\nignored:", 1)
    panel.use.click()
    for field in ("job.global_batch", "job.seq_len"):
        assert field in panel.text_status.value
        assert "not a number" in desk.controls.form.field(field)["fault"]
    assert "alert" in panel.text_status.value
    line = desk.headline.line.value
    assert "1 further fault is named beside the inputs. Wrong too: ignored." in line


def test_the_desk_marks_a_misspelt_field_beside_the_one_that_was_meant():
    desk = DeskPane(example("llama-3.1-8b-8-h100-fsdp"))
    panel = next(p for p in desk.panels if p.title == "File and report")
    desk.tabs.selected_index = desk.panels.index(panel)
    panel.text.value = WRONG.replace("job:", "zzz: 1\njob:")
    panel.use.click()
    for field, wrong in {
        "model": ["modle"],
        "cluster.devices": ["cluster.device", "cluster.gpus"],
        "cluster.accelerator": ["cluster.accelerator"],
        "job.tokens": ["job.token"],
        "job.global_batch": ["job.global_batch"],
    }.items():
        beside = desk.controls.form.field(field)["fault"]
        assert all(f"{name}: " in beside for name in wrong), field
        assert beside.count("nearest: ") == len(wrong) or field == "job.global_batch"
    line = desk.headline.line.value
    assert "5 further faults are named beside the inputs. Wrong too: zzz." in line
    assert "being worked out" not in line, "nothing is worked out of a file that is not taken"


def test_a_link_is_read_wherever_a_file_is(tmp_path, capsys):
    design = Design.read(example("llama-3.1-8b-8-h100-fsdp"))
    value = DeskPane(design).head.link.value
    assert Design.read(f"http://127.0.0.1:8866/#{value}") == design
    assert Design.read(value) == design
    desk = DeskPane()
    panel = next(p for p in desk.panels if p.title == "File and report")
    desk.tabs.selected_index = desk.panels.index(panel)
    panel.text.value = value
    panel.use.click()
    assert desk.design == design
    assert main(["design", value[:60]]) == 2
    assert "cut short" in capsys.readouterr().err
