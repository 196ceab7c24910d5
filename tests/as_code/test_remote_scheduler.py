"""Tables of designs over a Dask scheduler and workers that somebody else started: processes of
their own, reached by an address alone."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scantling.design.design import Design

pytest.importorskip("distributed")
pytestmark = pytest.mark.slow

BASE = {
    "model": "llama-2-13b",
    "cluster": {"accelerator": "h100-sxm", "devices": 64},
    "job": {"tokens": 1e11, "seq_len": 4096, "global_batch": 128},
}
COUNTS = [8 * n for n in range(1, 25)]
# what each worker does before it serves: keep a list of the designs that it was given, be slow for
# one name, and die with another in hand
PRELOAD = """
import os, signal, time
from scantling_code import many

def listed(job, space, assess):
    with open({calls!r}, "a") as file:
        file.write(f"{{job.name}} {{job.varied}}\\n")
    if "fatal" in job.name:
        os.kill(os.getpid(), signal.SIGKILL)
    if "slow" in job.name:
        time.sleep(0.3)
    return assess(job, space)

def dask_setup(worker, assess=many.assess_job):
    many.assess_job = lambda job, space: listed(job, space, assess)
"""
PATIENCE_S = 120


def dask(*arguments: object, folder: Path) -> subprocess.Popen[bytes]:
    """A process of the command line of Dask, in a session of its own."""
    with open(folder / "dask.log", "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_scheduler", *map(str, arguments)]
            if arguments[0] == "--port"
            else [sys.executable, "-m", "distributed.cli.dask_worker", *map(str, arguments)],
            stdout=log,
            stderr=log,
            cwd=folder,
            start_new_session=True,
        )


def wait_for(ready, what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not ready():
        assert time.monotonic() < end, what
        time.sleep(0.1)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """Address of a scheduler with two workers on the loopback, and the file that lists what they
    were given."""
    folder = tmp_path_factory.mktemp("dask")
    calls, file = folder / "calls.txt", folder / "scheduler.json"
    (folder / "listed.py").write_text(PRELOAD.format(calls=str(calls)))
    started = [
        dask(
            *("--port", 0, "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", file),
            folder=folder,
        )
    ]
    try:
        wait_for(lambda: file.exists() and file.read_text().endswith("}"), "no scheduler")
        started.append(
            dask(
                *("--scheduler-file", file, "--nworkers", 2, "--nthreads", 1, "--no-dashboard"),
                *("--preload", folder / "listed.py", "--host", "127.0.0.1"),
                folder=folder,
            )
        )
        yield json.loads(file.read_text())["address"], calls
    finally:
        for process in reversed(started):
            os.killpg(process.pid, signal.SIGTERM)
        for process in started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def command(folder: Path, source: str, out: str, *more: str) -> subprocess.Popen[str]:
    over = "cluster.devices=" + ",".join(map(str, COUNTS))
    call = ["assess-many", source, "-o", out, "--over", over, "--space", "coarse", *more]
    return subprocess.Popen(
        [sys.executable, "-m", "scantling", *call],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finished(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=4 * PATIENCE_S)
    assert process.returncode == 0, err
    return out


def table(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def folder(tmp_path):
    """A folder with a design that is slow in the hands of the workers."""
    Design.from_data(BASE).write(tmp_path / "slow.yaml")
    return tmp_path


def test_a_remote_scheduler_gives_the_rows_of_one_process(folder, scheduler):
    address, _ = scheduler
    finished(command(folder, "slow.yaml", "here.csv", "--jobs", "1"))
    assert "24 designs" in finished(
        command(folder, "slow.yaml", "there.csv", "--scheduler", address)
    )
    assert table(folder / "there.csv") == table(folder / "here.csv")


def test_a_run_that_is_killed_goes_on(folder, scheduler):
    """The rows that came before the kill are not asked for again."""
    address, calls = scheduler
    partial = folder / "out.csv.partial"
    call = ("slow.yaml", "out.csv", "--scheduler", address)
    first = command(folder, *call)
    wait_for(lambda: partial.exists() and len(partial.read_text().splitlines()) > 2, "no row")
    first.kill()
    first.communicate()
    lines = [json.loads(line) for line in partial.read_text().splitlines()[1:] if line]
    kept = [row for _, row in lines]
    assert 0 < len(kept) < len(COUNTS) and not (folder / "out.csv").exists()
    before = calls.read_text()
    finished(command(folder, *call))
    again = calls.read_text().removeprefix(before)
    for row in kept:
        assert f"{{'cluster.devices': {row['cluster.devices']}}}" not in again
    finished(command(folder, "slow.yaml", "here.csv", "--jobs", "1"))
    assert table(folder / "out.csv") == table(folder / "here.csv") and not partial.exists()


def test_a_design_that_costs_its_workers_their_lives_costs_no_other(folder, scheduler):
    """The workers' keepers start them again; what dies with every one of them is one row."""
    address, calls = scheduler
    (folder / "fatal.yaml").write_text((folder / "slow.yaml").read_text())
    (folder / "designs.csv").write_text(
        "design\n" + "slow.yaml\n" * 5 + "fatal.yaml\n" + "slow.yaml\n" * 6
    )
    call = ["assess-many", "designs.csv", "-o", "out.csv", "--space", "coarse"]
    done = subprocess.Popen(
        [sys.executable, "-m", "scantling", *call, "--scheduler", address],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert "11 feasible, 1 failed" in finished(done)
    rows = table(folder / "out.csv")
    assert [row["verdict"] for row in rows] == ["feasible"] * 5 + ["failed"] + ["feasible"] * 6
    assert "died" in rows[5]["error"] and len({row["step_s"] for row in rows}) == 2
    assert calls.read_text().count("fatal.yaml") >= 2


def test_a_scheduler_that_goes_away_is_one_line(folder, tmp_path):
    file = tmp_path / "scheduler.json"
    alone = dask(
        *("--port", 0, "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", file),
        folder=tmp_path,
    )
    try:
        wait_for(lambda: file.exists() and file.read_text().endswith("}"), "no scheduler")
        address = json.loads(file.read_text())["address"]
        asked = command(folder, "slow.yaml", "out.csv", "--scheduler", address)
        wait_for(lambda: (folder / "out.csv.partial").exists(), "nothing was asked")
        time.sleep(5)
    finally:
        os.killpg(alone.pid, signal.SIGKILL)
        alone.wait(20)
    _, err = asked.communicate(timeout=PATIENCE_S)
    assert asked.returncode == 2 and "Traceback" not in err
    assert "scantling: --scheduler" in err.splitlines()[-1]
