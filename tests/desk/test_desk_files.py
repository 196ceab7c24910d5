"""What the desk writes: the report of the design on it, a launch kit, the design file; and how that
is stopped."""

from __future__ import annotations

import json
import time

import pytest
from scantling.design.design import Design
from scantling_kits import FRAMEWORKS, ON
from scantling_widgets.desk import rendered_files
from scantling_widgets.desk.desk import DeskPane
from scantling_widgets.shipped_files import example


@pytest.fixture
def files():
    desk = DeskPane(example("llama-3.1-8b-8-h100-fsdp"))
    panel = next(p for p in desk.panels if p.title == "File and report")
    desk.tabs.selected_index = desk.panels.index(panel)
    panel.desk = desk
    return panel


def test_the_launch_kit_offers_what_the_library_has_and_writes_it(files, tmp_path):
    assert files.to.options == tuple(FRAMEWORKS)
    assert files.on.options == tuple(ON)
    files.to.value, files.on.value, files.kit.value = "torchtitan", "slurm", str(tmp_path / "kit")
    files.kit_job.run()
    files.kit_job.thread.join(60)
    assert str(tmp_path / "kit") in files.kit_status.value
    listed = {row[0]["text"] for row in files.files.rows}
    assert listed == {
        p.relative_to(tmp_path / "kit").as_posix()
        for p in (tmp_path / "kit").rglob("*")
        if p.is_file()
    }
    assert {"README.md", "job.sbatch", "torchtitan_config.py", "plan.json"} <= listed
    assert json.loads((tmp_path / "kit" / "plan.json").read_text(encoding="utf-8"))


def test_a_design_that_misses_a_limit_has_a_kit_and_one_whose_pins_do_not_fit_has_none(
    files, tmp_path
):
    files.desk.session.change({"constraints.min_mfu": 0.99})
    files.kit.value = str(tmp_path / "kit")
    files.kit_job.run()
    files.kit_job.thread.join(60)
    assert (tmp_path / "kit" / "README.md").exists()
    files.desk.session.change({"plan.sharding": "none", "plan.tp": 1, "plan.pp": 1})
    files.kit.value = str(tmp_path / "other")
    files.kit_job.run()
    files.kit_job.thread.join(60)
    assert "nothing is written" in files.kit_status.value
    assert not (tmp_path / "other").exists()


def test_a_kit_that_is_cancelled_is_not_written(tmp_path):
    from scantling import assess

    steps, results = rendered_files.launch_kit(
        assess(Design.read(example("llama-3.1-8b-8-h100-fsdp"))),
        "fsdp",
        "torchrun",
        tmp_path / "kit",
    )
    assert next(results)["README.md"]
    results.close()
    assert steps == 2
    assert not (tmp_path / "kit").exists()


@pytest.mark.slow
def test_the_report_is_rendered_in_the_background_and_can_be_stopped(files, tmp_path):
    files.folder.value = str(tmp_path / "reports")
    files.job.run()
    time.sleep(1.0)
    assert files.job.thread.is_alive()
    files.desk.controls.form.send_change("job.seq_len", 4096)  # the desk stays live
    assert files.desk.design.job.seq_len == 4096
    files.job.stop.click()
    files.job.thread.join(30)
    assert "ancelled" in files.report_status.value
    assert not list((tmp_path / "reports").glob("*.html"))
    files.job.run()
    files.job.thread.join(120)
    (page,) = (tmp_path / "reports").glob("llama*.html")
    assert str(page) in files.report_status.value
    assert "<svg" in page.read_text(encoding="utf-8")


def test_what_is_wrong_with_a_report_is_said(tmp_path):
    (tmp_path / "reports").write_text("a file", encoding="utf-8")
    _, ticks = rendered_files.report(
        Design.read(example("llama-3.1-8b-8-h100-fsdp")), tmp_path / "reports"
    )
    with pytest.raises(rendered_files.Stopped, match="folder|reports"):
        list(ticks)


def test_names_of_designs_are_names_of_files():
    assert (
        rendered_files.slug("Llama 3.1 405B, 15.6T tokens, 16,384 H100")
        == "llama-3.1-405b-15.6t-tokens-16-384-h100"
    )
    assert rendered_files.slug("../../etc/passwd") == "etc-passwd"
    assert rendered_files.slug("…") == "design"
