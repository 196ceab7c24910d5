"""How fast the desk follows, seen from a real browser: `make bench-desk`. For each main slider the
time from the move to redrawn pictures, for each tab the time until it stands the first time, and in
JupyterLab the time to the first picture once the kernel is up. With PYODIDE=DIR also the desk that
computes in the page itself."""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from scantling_widgets import shipped_files
from scantling_widgets.desk.desk import DeskPane
from scantling_widgets.pages import servers, site

sys.path.insert(0, str(Path(__file__).parents[1]))
from browser.browsing import DeskPage, browser, serving  # noqa: E402

MOVES = int(os.environ.get("SCANTLING_MOVES", 40))
FIELDS = (
    "cluster.devices",
    "model.size",
    "model.experts",
    "job.global_batch",
    "cluster.scale_out_gbytes_per_s_per_device",
)
TABS = ("Schedule", "Network", "Roofline", "Reliability", "Cost", "Sensitivity", "Evidence")
MOVE = """async ([field, by]) => {
  const input = document.querySelector(`.sd-row[data-field='${field}'] input`);
  const charts = [...document.querySelectorAll('.sd-chart')].slice(0, 2);
  const start = performance.now();
  input.value = input.valueAsNumber + by;
  input.dispatchEvent(new Event('input', { bubbles: true }));
  while (!charts.every(c => Number(c.dataset.drawn) > start)) {
    if (performance.now() - start > 10000) throw new Error('no redraw within 10 s');
    await new Promise(done => setTimeout(done, 1));
  }
  await new Promise(requestAnimationFrame);
  return performance.now() - start;
}"""


def said(name: str, times: list[float]) -> str:
    ranked = sorted(times)
    return (
        f"{name}: median {statistics.median(ranked):.0f} ms, 95th percentile "
        f"{ranked[int(0.95 * (len(ranked) - 1))]:.0f} ms, {len(ranked)} moves"
    )


def kernel_ms(field: str) -> list[float]:
    """Time of each move of a slider without a browser [ms]."""
    desk, times = DeskPane(shipped_files.example()), []
    name = field.replace("job", desk.session.now.resolved.job_path, 1)
    for i in range(MOVES):
        control = desk.controls.form.field(name)
        values = [option["value"] for option in control["options"]]
        at = values.index(control["value"]) + (-1 if (i // 4) % 2 == 0 else 1)
        begin = time.perf_counter()
        desk.controls.form.send_change(name, values[max(0, min(len(values) - 1, at))], False)
        times.append(1e3 * (time.perf_counter() - begin))
    return times


def page_ms(desk: DeskPage, field: str) -> list[float]:
    """Time of each move from the event to the redrawn pictures [ms]."""
    way = 1 if field == "model.experts" else -1
    moves = (way if (i // 4) % 2 == 0 else -way for i in range(MOVES))
    return [desk.page.evaluate(MOVE, [field, by]) for by in moves]


def show(name: str, desk: DeskPage) -> None:
    """Print the times of every slider and tab of an open desk."""
    desk.page.wait_for_timeout(6000)  # until the suggested moves have been tried
    for field in FIELDS:
        print(said(f"{name}, {field}", page_ms(desk, field)), flush=True)
        desk.settle()
        if desk.button("Reset").is_enabled():
            desk.press_button("Reset")
    for tab in TABS:
        begin = time.perf_counter()
        desk.tab(tab)
        print(f"{name}, {tab} the first time: {time.perf_counter() - begin:.2f} s", flush=True)


def main() -> int:
    for field in FIELDS:
        print(said(f"kernel, {field}", kernel_ms(field)), flush=True)
    with contextlib.ExitStack() as stack:
        context = stack.enter_context(browser())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if distribution := os.environ.get("PYODIDE"):
            site.desk(folder / "site", Path(distribution))
            desk = DeskPage(context.new_page()).open(stack.enter_context(serving(folder / "site")))
            desk.page.wait_for_function("() => document.documentElement.dataset.ready")
            show("no server", desk)
        page = stack.enter_context(servers.voila_page(shipped_files.example(), port=9420))
        show("page", DeskPage(context.new_page()).open(page.url))
        lab = stack.enter_context(servers.jupyter_lab(shipped_files.example(), folder, port=9410))
        desk = DeskPage(context.new_page())
        desk.page.goto(lab.url, wait_until="domcontentloaded")
        desk.page.get_by_text("Idle", exact=False).first.wait_for(timeout=120_000)
        begin = time.perf_counter()
        desk.page.wait_for_function(
            "() => document.querySelectorAll('.sd-chart[data-revision] svg').length >= 2",
            timeout=120_000,
        )
        print(f"lab, first pictures once the kernel is up: {time.perf_counter() - begin:.1f} s")
        show("lab", desk)
    return 0


if __name__ == "__main__":
    sys.exit(main())
