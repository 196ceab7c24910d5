"""Batches of reports: what is kept, what is made again, what happens when a worker or the batch
dies, and a Dask cluster."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.connection import wait
from pathlib import Path

import pytest
import scantling
from pages import Page
from scantling.base.errors import DesignError
from scantling.base.workers import end_with_parent
from scantling.cli.app import main
from scantling.design.design import Design
from scantling.plans.remote import across
from scantling_widgets.report import jobs, report_batch
from scantling_widgets.shipped_files import example

RESULT = {
    "name": "a design",
    "verdict": "feasible",
    "mfu": 0.4,
    "mfu_low": 0.3,
    "mfu_high": 0.5,
    "step_s": 1.0,
    "step_s_low": 0.9,
    "step_s_high": 1.1,
    "days": None,
    "cost_usd": None,
    "devices_used": 8,
    "goodput": 0.9,
    "memory_bytes": {"total": 4e10, "capacity": 8e10},
    "plan": {"tp": 8},
}


def quick(job: jobs.Job) -> jobs.Done:
    """Stands in for a kernel where only the batch is looked at; leaves a line per call, and dies or
    fails where the design's name says so."""
    name = Design.from_yaml(job.design).name
    if log := os.environ.get("SCANTLING_TEST_LOG"):
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{job.name}\n")
    if name == "dies once" and not Path(os.environ["SCANTLING_TEST_LOG"] + ".died").exists():
        Path(os.environ["SCANTLING_TEST_LOG"] + ".died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "dies always":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "slow":
        time.sleep(0.6)
    if name == "fails":
        return jobs.Done(
            name=job.name, digest=job.digest, status="failed", error="ValueError: no", notebook="{}"
        )
    return jobs.Done(
        name=job.name,
        digest=job.digest,
        status="done",
        html=f"<!DOCTYPE html>{job.name} {job.digest}",
        notebook="{}",
        assessment=RESULT,
    )


@pytest.fixture
def designs(tmp_path):
    base = Design.read(example("llama-3.1-8b-8-h100-fsdp"))

    def make(**names) -> list[Path]:
        paths = []
        for stem, name in names.items():
            paths.append(tmp_path / f"{stem}.yaml")
            base.change({"name": name}).write(paths[-1], force=True)
        return paths

    return make


@pytest.fixture
def calls(tmp_path, monkeypatch):
    log = tmp_path / "calls.log"
    monkeypatch.setenv("SCANTLING_TEST_LOG", str(log))
    monkeypatch.setattr(report_batch, "make", quick)
    return lambda: log.read_text(encoding="utf-8").split() if log.exists() else []


def left_over(folder: Path) -> list[str]:
    return [p.name for p in folder.iterdir() if p.name.endswith(".part")]


def test_finished_reports_are_kept_and_changed_ones_made_again(designs, calls, tmp_path):
    files, out = designs(a="a", b="b", c="c"), tmp_path / "out"
    assert [r.status for r in report_batch.run(files, out, workers=1)] == ["done"] * 3
    stamps = {p.name: p.stat().st_mtime_ns for p in out.glob("*.html") if p.stem != "index"}
    assert [r.reused for r in report_batch.run(files, out, workers=1)] == [True] * 3
    assert calls() == ["a", "b", "c"]

    Design.read(files[1]).change({"job.seq_len": 4096}).write(files[1], force=True)
    (out / "c.html").unlink()
    assert [r.reused for r in report_batch.run(files, out, workers=1)] == [True, False, False]
    assert calls() == ["a", "b", "c", "b", "c"]
    assert (out / "a.html").stat().st_mtime_ns == stamps["a.html"]
    assert [r.reused for r in report_batch.run(files, out, workers=1, force=True)] == [False] * 3
    assert left_over(out) == []


def test_names_that_are_no_text_or_hold_commands_of_a_terminal(designs, calls, tmp_path, capsys):
    """Linux keeps names as bytes: what is not UTF-8 reaches Python as half characters."""
    (file,) = designs(a="a")
    names = (b"\xff\xfe.yaml", b"new\nline.yaml", b"\x1b[31mred.yaml")
    odd = [file.rename(tmp_path / os.fsdecode(name)) for name in names[:1]]
    odd += [Path(shutil.copy(odd[0], tmp_path / os.fsdecode(name))) for name in names[1:]]
    assert main(["report", *map(str, odd), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    kept = report_batch.read_records(tmp_path / "out")
    said = capsys.readouterr().out
    assert said.count("\n") == len(kept) == 3 and "\x1b" not in said
    for record in kept:
        assert f"{record.name}: " in said and (tmp_path / "out" / f"{record.name}.html").is_file()


def test_comments_and_order_of_a_file_do_not_matter_its_meaning_does(designs, tmp_path):
    file = designs(a="a")[0]
    first = jobs.job(file, "a").digest
    text = file.read_text(encoding="utf-8")
    file.write_text("# a remark\n" + text, encoding="utf-8")
    assert jobs.job(file, "a").digest == first
    file.write_text(text.replace("devices: 8", "devices: 16", 1), encoding="utf-8")
    assert jobs.job(file, "a").digest != first


def test_a_referenced_config_travels_with_the_job_and_counts(tmp_path):
    config = {
        "model_type": "llama",
        "hidden_size": 2048,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 8192,
        "vocab_size": 128256,
        "tie_word_embeddings": True,
        "architectures": ["LlamaForCausalLM"],
    }
    (tmp_path / "shapes").mkdir()
    (tmp_path / "shapes" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    file = tmp_path / "d.yaml"
    file.write_text(
        (
            "model: {hf_config: shapes/config.json}\ncluster: {accelerator: h100-sxm, "
            "devices: 8}\njob: {}\n"
        ),
        encoding="utf-8",
    )
    one = jobs.job(file, "d")
    assert str(tmp_path) not in one.design
    assert dict(one.files)["config.json"]
    (tmp_path / "shapes" / "config.json").write_text(
        json.dumps({**config, "num_hidden_layers": 17}), encoding="utf-8"
    )
    assert jobs.job(file, "d").digest != one.digest
    (tmp_path / "shapes" / "config.json").unlink()
    with pytest.raises(DesignError, match=r"model\.hf_config"):
        jobs.job(file, "d")


def test_one_wrong_and_one_failing_design_do_not_stop_the_rest(designs, calls, tmp_path):
    files, out = designs(good="good", bad="fails", also="also good"), tmp_path / "out"
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(
        "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: -8}\njob: {}\n",
        encoding="utf-8",
    )
    records = report_batch.run(
        [files[0], wrong, files[1], files[2], tmp_path / "absent.yaml"], out, workers=1
    )
    assert [(r.name, r.status, r.exit) for r in records] == [
        ("good", "done", 0),
        ("wrong", "wrong", 2),
        ("bad", "failed", 1),
        ("also", "done", 0),
        ("absent", "wrong", 2),
    ]
    assert "cluster.devices" in records[1].error
    assert "\n" not in records[1].error
    assert (out / "bad.error.ipynb").exists()
    assert not (out / "bad.html").exists()
    index = Page((out / "index.html").read_text(encoding="utf-8"))
    assert index.faults == []
    for word in ("good", "also", "cluster.devices", "ValueError: no", "absent"):
        assert word in index.text
    with open(out / "summary.csv", newline="", encoding="utf-8") as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    assert rows["good"]["mfu"] == "0.4"
    assert rows["wrong"]["status"] == "wrong"
    assert rows["good"]["plan.tp"] == "8"


def test_a_batch_that_was_stopped_goes_on_where_it_was(designs, calls, tmp_path):
    files, out = designs(a="a", b="b", c="c", d="d"), tmp_path / "out"

    class Stopped(BaseException):
        pass

    def stop(record, done, total):
        if done == 2:
            raise Stopped

    with pytest.raises(Stopped):
        report_batch.run(files, out, workers=1, progress=stop)
    assert len(list(out.glob("*.html"))) == 2
    assert left_over(out) == []
    records = report_batch.run(files, out, workers=1)
    assert [r.reused for r in records] == [True, True, False, False]
    assert calls() == ["a", "b", "c", "d"]


def test_a_report_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "x.html"
    report_batch.write(target, "old")
    monkeypatch.setattr(os, "replace", lambda *a: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(DesignError, match="disk full.*room for 3.00 B"):
        report_batch.write(target, "new")
    assert target.read_text(encoding="utf-8") == "old"
    assert left_over(tmp_path) == []


def test_names_that_collide_or_belong_to_the_index(designs, calls, tmp_path):
    files = designs(index="a")
    (tmp_path / "sub").mkdir()
    twin = tmp_path / "sub" / "index.yaml"
    Design.read(files[0]).change({"name": "b"}).write(twin)
    records = report_batch.run([files[0], twin], tmp_path / "out", workers=1)
    assert [r.name for r in records] == ["index-design", "index-design-2"]
    assert "index-design-2" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


def waits(ready):
    """A worker that has nothing to do, whose kernel complains."""
    end_with_parent()
    subprocess.run([sys.executable, "-c", "raise SystemExit('its folder is gone')"], check=False)
    ready.set()
    time.sleep(600)


def test_ctrl_c_ends_a_worker_without_a_word(capfd):
    """A terminal sends SIGINT to the whole group: what is to be said, the command says."""
    spawn = get_context("spawn")
    ready = spawn.Event()
    worker = spawn.Process(target=waits, args=(ready,))
    worker.start()
    try:
        assert ready.wait(120)
        os.kill(worker.pid, signal.SIGINT)
        worker.join(60)
        assert worker.exitcode == 1
    finally:
        worker.kill()
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_a_worker_in_a_job_ends_when_an_idle_one_is_killed(tmp_path):
    """The idle one dies with the lock of the queue in its hand, and the executor catches the exit
    that the other leaves its job by: it would wait for that lock for ever, and the command for
    it."""
    noted = tmp_path / "pid"
    pool = ProcessPoolExecutor(2, get_context("spawn"), end_with_parent)
    job = pool.submit(subprocess.run, ["sh", "-c", f"echo $PPID > {noted}; exec sleep 600"])
    short = pool.submit(time.sleep, 5)
    workers = dict(pool._processes)
    while not (noted.exists() and noted.read_text().strip()):
        time.sleep(0.1)
    (idle,) = workers.keys() - {int(noted.read_text())}
    short.result(60)
    time.sleep(1)  # it waits for the next job
    os.kill(idle, signal.SIGKILL)
    with pytest.raises(BrokenProcessPool):
        job.result(60)
    # no join: the executor's thread waits for them too, and one of the two is told of no child
    assert all(wait([worker.sentinel], 60) for worker in workers.values())
    pool.shutdown()


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_no_report(designs, calls, tmp_path):
    names = {f"d{i}": f"design {i}" for i in range(5)}
    files, out = designs(**names, fatal="dies once"), tmp_path / "out"
    records = report_batch.run(files, out, workers=2)
    assert [r.status for r in records] == ["done"] * 6
    assert set(calls()) == {*names, "fatal"}
    assert calls().count("fatal") == 2


@pytest.mark.slow
def test_three_workers_that_die_cost_what_they_held_and_no_other(designs, calls, tmp_path):
    files = designs(**{f"d{i}": f"design {i}" for i in range(6)}, fatal="dies always")
    records = report_batch.run(files, tmp_path / "out", workers=2)
    status = {record.name: record.status for record in records}
    assert status == {**{f"d{i}": "done" for i in range(6)}, "fatal": "failed"}
    assert calls().count("fatal") == report_batch.ATTEMPTS
    assert all(calls().count(f"d{i}") == 1 for i in range(6))


@pytest.mark.slow
def test_a_dask_cluster_whose_worker_is_killed_loses_and_doubles_nothing(designs, calls, tmp_path):
    distributed = pytest.importorskip("distributed")
    files, out = designs(**{f"d{i}": "slow" for i in range(8)}), tmp_path / "out"
    seen = []
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        host="127.0.0.1",
        env={"PYTHONPATH": f"{Path(__file__).parent}:{Path(__file__).parents[1]}"},
    ) as cluster:

        def told(record, done, total):
            seen.append(record.name)
            if done == 2:
                os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)

        records = report_batch.run(files, out, scheduler=cluster.scheduler_address, progress=told)
    assert [r.status for r in records] == ["done"] * 8
    assert sorted(seen) == sorted(r.name for r in records)
    assert {p.stem for p in out.glob("d*.html")} == {f"d{i}" for i in range(8)}
    assert set(calls()) == {f"d{i}" for i in range(8)}
    assert left_over(out) == []


@pytest.mark.slow
def test_a_scheduler_that_goes_away_before_a_result_is_fetched_is_one_line(
    designs, calls, tmp_path, monkeypatch
):
    distributed = pytest.importorskip("distributed")

    def closed(*_):
        raise distributed.comm.CommClosedError("in <TCP (closed) …>: Stream is closed")

    with distributed.LocalCluster(processes=False, dashboard_address=":0") as cluster:
        monkeypatch.setattr(distributed.Future, "result", closed)
        with pytest.raises(DesignError, match="--scheduler.* stopped answering") as e:
            report_batch.run(designs(a="a"), tmp_path / "out", scheduler=cluster.scheduler_address)
        with pytest.raises(OSError, match="^the scheduler went away$"):
            across(abs, [(-1,)], cluster.scheduler_address)
    assert "\n" not in str(e.value) and "TCP" not in str(e.value)


def test_a_scheduler_that_is_not_there_is_one_line(designs, tmp_path):
    pytest.importorskip("distributed")
    with pytest.raises(DesignError, match="--scheduler") as e:
        report_batch.run(designs(a="a"), tmp_path / "out", scheduler="not an address")
    assert "\n" not in str(e.value)


def test_a_worker_with_another_state_of_the_kit_says_so(designs):
    from dataclasses import replace

    done = jobs.make(replace(jobs.job(designs(a="a")[0], "a"), code="another"))
    assert done.status == "failed"
    assert "another state" in done.error


# ---------------------------------------------------------------- the command
@pytest.mark.slow
def test_command_renders_compares_and_ends_with_the_worst(tmp_path, capsys):
    out = tmp_path / "out"
    files = [
        str(example(n))
        for n in ("llama-3.1-8b-8-h100-fsdp", "llama-3.1-70b-128-h100", "case-2-1t-dense-8-v100")
    ]
    assert main(["report", *files, "-o", str(out), "--workers", "2", "--compare"]) == 4
    said = capsys.readouterr().out
    assert said.count("MFU") == 2
    assert "Impossible" in said
    for name in ("llama-3.1-8b-8-h100-fsdp", "case-2-1t-dense-8-v100"):
        assert Page((out / f"{name}.html").read_text(encoding="utf-8")).faults == []
        assert json.loads((out / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    side = Page((out / "comparison.html").read_text(encoding="utf-8"))
    assert side.faults == []
    assert side.outside() == []
    assert side.elements["svg"] == 2
    assert "Llama 3.1 70B, 128 H100" in side.text
    assert main(["report", *files, "-o", str(out)]) == 4
    assert capsys.readouterr().out.count("(kept)") == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["absent.yaml", "-o", "out"],
        ["-o", "out"],
        ["x.yaml"],
        ["x.yaml", "-o", "out", "--workers", "0"],
    ],
)
def test_a_wrong_call_is_one_line(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["report", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.strip().split("\n")) == 1


def test_comparing_a_design_with_itself_shows_no_difference_in_plan():
    import scantling
    from scantling_widgets.report import compare

    result = scantling.assess(Design.read(example("llama-3.1-8b-8-h100-fsdp"))).as_dict()
    page = Page(compare.comparison([result, result], date="2026-11-21"))
    assert "Plans" not in page.text
    assert page.faults == []


def test_report_is_not_imported_by_the_command_line_until_called():
    code = (
        "import sys, scantling.cli as c; c.main(['--help']); assert not [m for m in "
        "sys.modules if m.startswith(('altair', 'papermill', 'scantling_widgets'))]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_library_s_own_report_says_what_is_wrong_with_a_file(tmp_path):
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 0}\njob: {}\n")
    with pytest.raises(DesignError, match="devices"):
        scantling.report(wrong, tmp_path / "out")
