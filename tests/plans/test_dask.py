"""Searches and sweeps on a Dask cluster of real processes: by address, the same result as here,
whatever happens to one of the workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scantling import Design
from scantling.advise import sweeps
from scantling.cli.app import main
from scantling.physics.gather import situation
from scantling.plans import space as plans
from scantling.plans.evaluate import find
from scantling.plans.prepare import prepare
from scantling.plans.stream import stream

pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
TEXT = (
    "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 64}\njob: {tokens: "
    "1.0e12, seq_len: 8192, global_batch: 256}\n"
)


class Cluster:
    """A scheduler and two workers, each a process of its own on loopback."""

    def __init__(self, folder):
        self.file = folder / "scheduler.json"
        self.scheduler = self.start(
            "scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--scheduler-file",
            str(self.file),
        )
        self.wait(self.file.exists)
        time.sleep(0.2)
        self.address = json.loads(self.file.read_text())["address"]
        self.workers = [self.worker() for _ in range(2)]

    def start(self, *words):
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def worker(self):
        return self.start(
            "worker",
            self.address,
            "--no-nanny",
            "--no-dashboard",
            "--nthreads",
            "1",
            "--host",
            "127.0.0.1",
            "--local-directory",
            str(self.file.parent),
        )

    @staticmethod
    def wait(ready, seconds=60):
        end = time.monotonic() + seconds
        while not ready():
            assert time.monotonic() < end, "no Dask cluster"
            time.sleep(0.1)

    def close(self):
        for process in (*self.workers, self.scheduler):
            if process.poll() is None:
                process.terminate()
        for process in (*self.workers, self.scheduler):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    c = Cluster(tmp_path_factory.mktemp("dask"))
    try:
        from distributed import Client

        with Client(c.address) as client:
            client.wait_for_workers(2, timeout=60)
        yield c
    finally:
        c.close()


@pytest.mark.slow
def test_a_search_by_address_is_the_search_here(cluster, monkeypatch):
    r = prepare(Design.from_text(TEXT))
    where = situation(r, r.phases[0])
    monkeypatch.setattr("scantling.plans.evaluate.REMOTE", 3000)
    seen = []
    here, there = (
        find(where, plans.WIDE),
        find(
            where,
            plans.WIDE,
            scheduler=cluster.address,
            progress=lambda done, of: seen.append((done, of)),
        ),
    )
    parts = stream(where, plans.WIDE, keep=200, scheduler=cluster.address)
    assert parts.legal == here.legal and np.array_equal(parts.step_s, here.step_s[here.order[:200]])
    assert len(seen) > 5 and seen[-1] == (here.legal, here.legal)
    assert (
        np.array_equal(here.order, there.order)
        and np.array_equal(here.total_bytes, there.total_bytes)
        and np.array_equal(here.step_s, there.step_s)
    )
    assert here.counts["rejected"] == there.counts["rejected"] and here.row(
        here.best()
    ) == there.row(there.best())


@pytest.mark.slow
def test_the_command_gives_the_same_by_address(cluster, tmp_path, capsys):
    file = tmp_path / "d.yaml"
    file.write_text(TEXT)
    out = []
    for more in ([], ["--scheduler", cluster.address]):
        assert (
            main(
                [
                    "search",
                    str(file),
                    "--json",
                    "--no-progress",
                    "--over",
                    "cluster.devices=32,64,96",
                    "--over",
                    "cluster.scale_out=ib-hdr,ib-ndr",
                    *more,
                ]
            )
            == 0
        )
        out.append(json.loads(capsys.readouterr().out))
        out[-1].pop("seconds")
    assert (
        out[0] == out[1]
        and out[0]["legal"] > 1000
        and max(p["cluster.devices"] for p in out[0]["plans"]) == 96
    )


@pytest.mark.slow
def test_a_worker_that_dies_changes_nothing(cluster):
    designs = [Design.from_text(TEXT).change({"cluster.devices": 8 * n}) for n in range(2, 42)]
    here, _ = sweeps.variants(designs, top=3)
    killed = []

    def kill(done, of):
        if done == 5 and not killed:
            os.kill(cluster.workers[0].pid, signal.SIGKILL)
            killed.append(done)

    there, _ = sweeps.variants(designs, top=3, scheduler=cluster.address, progress=kill)
    assert killed and cluster.workers[0].wait(10) == -signal.SIGKILL
    assert there == here and len(here) == 120


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_said_in_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("scantling.plans.remote.PATIENCE_S", 1)
    file = tmp_path / "d.yaml"
    file.write_text(TEXT)
    assert main(["search", str(file), "--scheduler", "tcp://127.0.0.1:9"]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert "--scheduler" in said and "tcp://127.0.0.1:9" in said
