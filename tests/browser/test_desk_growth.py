"""Memory, widgets and page nodes over many moves of a slider: `SCANTLING_MOVES=2000` for a working
day, some by default."""

from __future__ import annotations

import os

import pytest
from desk import MOVE

pytestmark = [pytest.mark.browser, pytest.mark.slow]
MOVES = int(os.environ.get("SCANTLING_MOVES", 160))
FIELDS = ("cluster.devices", "job.global_batch", "cluster.scale_out_gbytes_per_s_per_device")


def kernel_bytes(lab) -> int:
    """Resident memory of the kernel, the largest child of the server."""
    from pathlib import Path

    below = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(
                line.split(":", 1) for line in status.read_text().splitlines() if ":" in line
            )
            below[int(fields["Pid"])] = (
                int(fields["PPid"]),
                1024 * int(fields.get("VmRSS", "0 kB").split()[0]),
            )
        except (OSError, KeyError):
            continue
    children = {lab.process.pid}
    for _ in range(4):
        children |= {pid for pid, (parent, _) in below.items() if parent in children}
    return max(
        size for pid, (_, size) in below.items() if pid in children and pid != lab.process.pid
    )


def page_size(desk) -> dict[str, float]:
    session = desk.page.context.new_cdp_session(desk.page)
    session.send("HeapProfiler.enable")
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    found = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    return {
        "nodes": found["Nodes"],
        "heap": found["JSHeapUsedSize"],
        "listeners": found["JSEventListeners"],
    }


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="reads the kernel's memory from /proc")
def test_nothing_grows_over_many_moves(desk, lab, capsys):
    embeds = desk.embeds()

    def move(count):
        for i in range(count):
            desk.page.evaluate(
                MOVE, [FIELDS[(i // 8) % len(FIELDS)], -1 if (i // 4) % 2 == 0 else 1]
            )
        desk.settle()

    move(40)  # what is made once is made
    before, kernel = page_size(desk), kernel_bytes(lab)
    move(MOVES)
    after, grown = page_size(desk), kernel_bytes(lab) - kernel
    with capsys.disabled():
        print(
            f"\n  {MOVES} moves: page nodes {before['nodes']:.0f} to "
            f"{after['nodes']:.0f}, listeners {before['listeners']:.0f} to "
            f"{after['listeners']:.0f}, "
            f"JS heap {before['heap'] / 1e6:.1f} to {after['heap'] / 1e6:.1f} MB, kernel "
            f"{kernel / 1e6:.0f} to {(kernel + grown) / 1e6:.0f} MB"
        )
    assert after["nodes"] <= before["nodes"] * 1.05 + 200
    assert after["listeners"] <= before["listeners"] * 1.05 + 50
    assert after["heap"] <= before["heap"] * 1.1 + 4e6
    assert grown <= 40e6
    assert desk.embeds() == embeds, "the charts are the same charts"
