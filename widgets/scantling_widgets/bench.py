"""How fast the desk follows a slider: `make bench-desk`. Times are taken in the browser, from the
move to the redrawn pictures."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from . import resources, servers
from .chromium import FLAGS, chromium
from .desk import Desk

MOVES = 100
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


def kernel_ms(design, moves: int = MOVES) -> list[float]:
    """Time of each slider move inside the kernel, without a browser [ms]."""
    desk = Desk(design)
    ladder = [o["value"] for o in desk.form.field("cluster.devices")["options"]]
    at = ladder.index(desk.design.cluster.devices)
    times = []
    for i in range(moves):
        n = ladder[max(0, min(len(ladder) - 1, at - abs((i % 16) - 8)))]
        begin = time.perf_counter()
        desk.form.send_change("cluster.devices", n, False)
        times.append(1e3 * (time.perf_counter() - begin))
    return times


def page_ms(url: str, moves: int = MOVES) -> list[float]:
    """Time of each move from the event to the redrawn pictures, in a page of Chromium [ms]."""
    from playwright.sync_api import sync_playwright

    program = chromium()
    if program is None:
        raise SystemExit("no Chromium on this machine")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program,
            args=list(FLAGS),
        )
        page = browser.new_page(
            viewport={
                "width": 1440,
                "height": 900,
            }
        )
        page.goto(url)
        page.wait_for_function(
            "() => document.querySelectorAll('.sd-chart[data-revision] svg').length >= 2",
            timeout=90_000,
        )
        page.wait_for_timeout(2000)
        times = []
        for i in range(moves):
            times.append(page.evaluate(MOVE, ["cluster.devices", -1 if (i // 8) % 2 == 0 else 1]))
        browser.close()
    return times


def said(name: str, times: list[float]) -> str:
    ranked = sorted(times)
    return (
        f"{name}: median {statistics.median(ranked):.0f} ms, 95th percentile "
        f"{ranked[int(0.95 * (len(ranked) - 1))]:.0f} ms, {len(ranked)} moves"
    )


def main() -> int:
    """Print the times of the kernel, of JupyterLab and of the page."""
    design = resources.example()
    print(said("kernel", kernel_ms(design)), flush=True)
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "wb") as log:
        with servers.jupyter_lab(
            design,
            Path(folder),
            port=9410,
            log=log,
        ) as server:
            print(said("JupyterLab, move to new pixels", page_ms(server.url)), flush=True)
        with servers.voila_page(
            design,
            port=9420,
            log=log,
        ) as server:
            print(said("Voila page, move to new pixels", page_ms(server.url)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
