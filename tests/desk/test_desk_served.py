"""The desk as a page for visitors: what they save goes to them, and no path of theirs is opened."""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys
import zipfile

import pytest
import yaml
from scantling.design.design import Design
from scantling_widgets import shipped_files
from scantling_widgets.charts.evidence import evidence
from scantling_widgets.charts.memory_step import step
from scantling_widgets.desk import link
from scantling_widgets.desk.desk import DeskPane
from scantling_widgets.desk.panels.report import Report


@pytest.fixture
def panel(monkeypatch, tmp_path):
    monkeypatch.setenv("SCANTLING_SERVED", "1")
    monkeypatch.chdir(tmp_path)
    desk = DeskPane(shipped_files.example())
    found = next(p for p in desk.panels if isinstance(p, Report))
    found.show()
    return found


def _given(download) -> tuple[str, bytes]:
    return download.file["file_name"], base64.b64decode(download.file["content"])


def test_a_design_is_saved_to_the_visitor(panel, tmp_path):
    panel.save.click()
    name, content = _given(panel.file_download)
    assert name.endswith(".yaml")
    assert Design.from_yaml(content.decode()) == panel.session.now.design
    assert list(tmp_path.iterdir()) == []


def test_a_kit_is_given_as_an_archive(panel, tmp_path):
    steps, files = panel._kit_start()
    for found in files:
        panel._kit_step(found)
    name, content = _given(panel.kit_download)
    assert steps == 1 and name.endswith(".zip")
    assert {"plan.json", "launch.sh"} <= set(zipfile.ZipFile(io.BytesIO(content)).namelist())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("line", ["model: {hf_config: /etc/passwd}", "calibration: /etc/passwd"])
def test_a_path_that_a_visitor_types_is_not_opened(panel, line, monkeypatch):
    def opened(*args, **kwargs):
        raise AssertionError("a file was opened")

    text = panel.session.now.design.to_yaml()
    key = line.partition(":")[0]
    panel.text.value = re.sub(rf"(?m)^{key}:.*\n?", "", text) + line + "\n"
    monkeypatch.setattr("scantling.base.files.read_bytes", opened)
    panel.use.click()
    assert "this page opens no file" in panel.text_status.value


def test_a_visitor_loads_a_file_of_their_own_and_none_of_the_server(panel, tmp_path):
    there = tmp_path / "there.yaml"
    there.write_text(panel.session.now.design.change({"cluster.devices": 8192}).to_yaml())
    panel.path.value = str(there)
    panel.load.click()
    assert panel.session.now.design.cluster.devices == 16384
    panel.path.value = there.read_text()  # what the page sends of a chosen file
    panel.load.click()
    assert panel.session.now.design.cluster.devices == 8192


def test_a_log_is_learnt_from_beside_the_design(panel, tmp_path):
    """What a Megatron-LM log says of its steps; a file that is no log is refused in one line."""
    line = " iteration {:8d}/ 50 | elapsed time per iteration (ms): 6000.0 |"
    before = panel.session.now.figures
    lines = [*map(line.format, range(1, 30))]
    panel.log.value = "\n".join(lines)  # chosen, or dropped on the desk
    assert "does not say its devices" in panel.log_status.value
    devices = f"world_size ....... {panel.session.now.design.cluster.devices}"
    panel.log.value = "\n".join([devices, *lines])
    name, content = _given(panel.log_download)
    steps = yaml.safe_load(content)["steps"]
    assert name == "calibration.yaml" and steps["runs"] == 1
    assert "A step took 6" in panel.log_status.value
    now = panel.session.now.figures
    assert panel.session.now.design.calibration == yaml.safe_load(content)
    rows = {row[0]: row[1:] for row in panel.learnt.rows}
    assert len(rows) == 4 and all(was != has for was, has in rows.values()), "before and after"
    assert now["band_tier"] == "measured here" != before["band_tier"]
    wide, narrow = (a["step_s_high"] / a["step_s_low"] - 1 for a in (before, now))
    assert narrow < 0.75 * wide
    for figure, key, value in ((evidence, "mfu", None), (step, "at", 6.0)):
        seen = figure.data(now)["seen"]
        assert len(seen[key]) == 1 and value in (None, *seen[key])
        assert figure.data(before)["seen"] == {}
    assert link.read(link.write(panel.session.now.design)) == panel.session.now.design
    panel.session.undo()
    assert panel.session.now.design.calibration is None
    panel.log.value = "nothing of the kind"
    panel.learn.click()
    assert "sd-fault" in panel.log_status.value and "Traceback" not in panel.log_status.value
    assert list(tmp_path.iterdir()) == []


def test_what_to_measure_first_is_said_and_given_as_a_kit(panel, tmp_path):
    _, results = panel._measures_start()
    for found in results:
        panel._measures_step(found)
    assert 1 <= len(panel.worth.rows) <= 12
    left = [float(row[-1].rstrip(" %")) for row in panel.worth.rows]
    assert left == sorted(left, reverse=True) and left[-1] < 100, "each narrows what is left"
    name, content = _given(panel.measures_download)
    files = zipfile.ZipFile(io.BytesIO(content)).namelist()
    assert name == "measure.zip" and {"run.sh", "smoke.sh", "learn.sh", "README.md"} <= set(files)
    assert list(tmp_path.iterdir()) == []


WITHOUT_WHAT_A_PAGE_LACKS = """
import sys

class Lacks:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("click", "rich") or name.startswith("scantling.cli"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Lacks())
import scantling_widgets.desk.page_worker
"""


def test_the_desk_opens_without_what_a_page_in_a_browser_lacks():
    subprocess.run([sys.executable, "-c", WITHOUT_WHAT_A_PAGE_LACKS], check=True)
