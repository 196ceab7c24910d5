"""What takes the desk longer than a slider may wait, and what it keeps so as not to wait again."""

from __future__ import annotations

import pytest
from scantling_widgets import shipped_files
from scantling_widgets.charts.livechart import stored
from scantling_widgets.desk.background import Job
from scantling_widgets.desk.desk import DeskPane


@pytest.fixture
def desk():
    return DeskPane(shipped_files.example())


def test_long_work_reports_its_steps_and_can_be_cancelled():
    ended, seen = [], []

    def steps():
        for i in range(1000):
            if i == 3:
                job.stop.click()
            yield i

    job = Job("Count", lambda: (1000, steps()), seen.append, ended.append)
    job.run()
    job.thread.join(20)
    assert seen == [0, 1, 2, 3]
    assert ended == [None]
    assert job.count.value == "4 of 1000, cancelled"
    assert job.button.disabled is False


def test_an_error_in_long_work_is_handed_on():
    ended = []
    job = Job("Fail", lambda: (1, iter(lambda: 1 / 0, None)), ended.append, ended.append)
    job.run()
    job.thread.join(20)
    assert isinstance(ended[0], ZeroDivisionError)


@pytest.mark.parametrize("title", ["Cost", "Sensitivity"])
def test_a_study_fills_its_picture(desk, title):
    panel = next(p for p in desk.panels if p.title == title)
    desk.tabs.selected_index = desk.panels.index(panel)
    panel.job.run()
    panel.job.thread.join(60)
    assert desk.session.fault is None
    done, of = panel.job.count.value.split(" of ")
    assert done == of
    assert any(values for frame in panel.chart.data.values() for values in frame.values())


def test_what_is_kept_is_made_once_and_a_locked_folder_only_costs_time(tmp_path, monkeypatch):
    made = []

    def make():
        made.append(1)
        return "text"

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert [stored("a.json", make), stored("a.json", make)] == ["text", "text"]
    assert len(made) == 1
    assert (tmp_path / "scantling" / "a.json").is_file()
    (tmp_path / "scantling" / "a.json").write_text("cut short", encoding="utf-8")
    assert stored("a.json", make) == "text"
    monkeypatch.setenv(
        "XDG_CACHE_HOME", str(tmp_path / "scantling" / "a.json")
    )  # a file where the folder should be
    assert stored("b.json", make) == "text"
