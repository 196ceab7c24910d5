"""Tables of designs: folders, rows, grids, errors that stay in their row, resuming, and Dask."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from scantling.base.errors import DesignError
from scantling.cli.app import main
from scantling.design.design import Design
from scantling.verdict.assess import assess
from scantling_code import commands, many
from scantling_code.many import assess_many, write_table

BASE = {
    "model": "llama-2-13b",
    "cluster": {"accelerator": "h100-sxm", "devices": 64},
    "job": {"tokens": 1e11, "seq_len": 4096, "global_batch": 128},
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "run.yaml"
    Design.from_data(BASE).write(path)
    return path


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as table:
        return list(csv.DictReader(table))


def test_a_grid_is_every_combination_as_assessed_alone(file):
    over = {"cluster.devices": [64, 128], "job.seq_len": [4096, 8192]}
    rows = assess_many(str(file), over=over, space="coarse")
    assert [(r["cluster.devices"], r["job.seq_len"]) for r in rows] == [
        (64, 4096),
        (64, 8192),
        (128, 4096),
        (128, 8192),
    ]
    for row in rows:
        changes = {path: row[path] for path in over}
        alone = assess(Design.from_data(BASE).change(changes), space="coarse")
        assert row["verdict"] == alone.verdict and row["plan.tp"] == alone.plan["tp"]
        assert row["likely.days"] == pytest.approx(alone.likely.days)
        assert row["mfu_shown.low"] < row["mfu_shown"] < row["mfu_shown.high"]


def test_what_is_wrong_stands_in_its_row(tmp_path, file):
    table = tmp_path / "table.csv"
    table.write_text(
        "cluster.devices,cluster.accelerator,design\n"
        "128,,\n"
        ",h100-sxn,\n"
        "0,,\n"
        "8,v100-sxm2-16,\n"
        ",,absent.yaml\n"
        "256,,run.yaml\n"
    )
    rows = assess_many(str(table), base=file, space="coarse")
    assert [row["verdict"] for row in rows][:3] == ["feasible", "refused", "refused"]
    assert "nearest: h100-sxm" in rows[1]["error"] and "cluster.devices" in rows[2]["error"]
    assert rows[3]["verdict"] != "feasible"
    assert rows[4]["verdict"] == "refused" and "no such file" in rows[4]["error"]
    assert rows[5]["cluster.devices"] == 256 and rows[5]["verdict"] == "feasible"


def test_a_folder_has_a_row_a_design(tmp_path, file):
    (tmp_path / "wrong.yaml").write_text("scantling: 1\nmodel: 3\n")
    (tmp_path / "values.yaml").write_text("replicas: 3\n")
    rows = assess_many(str(tmp_path), space="coarse")
    assert [row["verdict"] for row in rows] == ["feasible", "refused"]


@pytest.mark.parametrize("table", ["rows.csv", "rows.parquet"])
def test_a_file_whose_name_is_no_text_has_its_row(tmp_path, file, monkeypatch, table):
    """Linux keeps names as bytes: what is not UTF-8 reaches Python as half characters."""
    monkeypatch.chdir(tmp_path)
    odd = os.fsdecode(b"\xff\xfe.yaml")
    os.rename(file, odd)
    assert main(["assess-many", ".", "--over", "cluster.devices=64,128", "-o", table]) == 0
    rows = many._read_csv(tmp_path / table) if table.endswith("csv") else None
    rows = rows or many._read_parquet(tmp_path / table)
    assert [row["design"] for row in rows] == ["\\udcff\\udcfe.yaml"] * 2
    over = os.fsdecode(b"stack=\xff")
    assert assess_many(odd, over=dict([over.split("=")]))[0]["verdict"] == "refused"


def test_a_run_goes_on_where_it_was_stopped(tmp_path, file, monkeypatch):
    partial = tmp_path / "rows.partial"
    over = {"cluster.devices": [8 * n for n in range(1, 21)]}
    calls = []
    real = many.assess_job
    monkeypatch.setattr(
        many, "assess_job", lambda job, space: calls.append(job) or real(job, space)
    )
    whole = assess_many(str(file), over=over, space="coarse")
    assert len(calls) == 20
    calls.clear()
    some = assess_many(
        str(file), over=over, space="coarse", partial=partial, progress=lambda done, of: done < 8
    )
    assert len(some) == len(calls) == 8 and some == whole[:8]
    with open(partial, "a", encoding="utf-8") as torn:
        torn.write("\n" + "[" * 100_000)
        torn.write('\n["cut off')
    calls.clear()
    assert assess_many(str(file), over=over, space="coarse", partial=partial) == whole
    assert len(calls) == 12
    with pytest.raises(DesignError, match="another run"):
        assess_many(str(file), over=over, space="default", partial=partial)


def test_a_run_does_not_go_on_with_another_model(tmp_path, llama_config):
    """The design names a file, which was changed after the run was stopped."""
    file, partial = tmp_path / "run.yaml", tmp_path / "rows.partial"
    steps = []
    for layers in (32, 40):
        (tmp_path / "config.json").write_text(
            json.dumps(llama_config | {"num_hidden_layers": layers})
        )
        Design.from_data(BASE | {"model": {"hf_config": "config.json"}}, tmp_path).write(
            file, force=True
        )
        (row,) = assess_many(str(file), space="coarse", partial=partial)
        steps.append(row["step_s"])
    assert steps[0] < steps[1]


def test_a_torn_line_does_not_spoil_the_next_run(tmp_path, file):
    partial = tmp_path / "rows.partial"
    over = {"cluster.devices": [8 * n for n in range(1, 11)]}
    assess_many(str(file), over=over, space="coarse", partial=partial, progress=lambda *_: False)
    partial.write_text(partial.read_text() + '\n["cut')
    one = assess_many(str(file), over=over, space="coarse", partial=partial)
    again = assess_many(str(file), over=over, space="coarse", partial=partial)
    assert one == again and len(one) == 10


def test_tables_are_written_and_read_back(tmp_path, file):
    rows = assess_many(str(file), over={"cluster.devices": [64, 3]}, space="coarse")
    rows[0]["name"] = "=1+1"
    write_table(str(tmp_path / "a.csv"), rows)
    back = rows_of(tmp_path / "a.csv")
    assert back[0]["name"] == "'=1+1" and float(back[0]["step_s"]) == rows[0]["step_s"]
    parquet = pytest.importorskip("pyarrow.parquet")
    write_table(str(tmp_path / "a.parquet"), rows)
    table = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    assert table[0]["plan.tp"] == rows[0]["plan.tp"] and table[0]["step_s"] == rows[0]["step_s"]
    names = [{"cluster.devices": 128}, {"cluster.devices": 256}]
    write_table(str(tmp_path / "in.parquet"), names)
    read = assess_many(str(tmp_path / "in.parquet"), base=file, space="coarse")
    assert [row["devices_used"] for row in read] == [128, 256]


@pytest.mark.parametrize(
    "arguments",
    [
        ["absent.yaml", "-o", "a.csv"],
        [".", "-o", "a.xlsx"],
        [".", "-o", "run.csv"],
        ["run.yaml", "-o", "a.csv", "--over", "cluster.devices"],
        ["table.csv", "-o", "a.csv"],
        ["wrong.csv", "-o", "a.csv"],
        ["bad.parquet", "-o", "a.csv"],
        ["run.yaml", "-o", "a.csv", "--scheduler", "tcp://127.0.0.1:1"],
        ["twice.csv", "--base", "run.yaml", "-o", "a.csv"],
        ["nameless.csv", "--base", "run.yaml", "-o", "a.csv"],
        ["long.csv", "--base", "run.yaml", "-o", "a.csv"],
        ["empty.csv", "--base", "run.yaml", "-o", "a.csv"],
        ["absent.parquet", "-o", "a.csv"],
        ["pipe.parquet", "-o", "a.csv"],
        ["run.csv", "--base", "run.yaml", "-o", "run.csv", "--force"],
        ["run.yaml", "-o", "folder.csv", "--force"],
        ["run.yaml", "-o", "absent/a.csv"],
        ["run.yaml", "-o", "b.csv"],  # whose rows are kept in a folder
        ["run.yaml", "-o", "a.csv", *("--over", "job.seq_len=1,2") * 2],
        [
            *("run.yaml", "-o", "a.csv"),
            *(w for f in "abcdef" for w in ("--over", f"{f}={'1,' * 9}1")),
        ],
    ],
)
def test_a_wrong_call_is_one_line(tmp_path, file, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("scantling.plans.remote.PATIENCE_S", 1)
    (tmp_path / "run.csv").write_text("kept")
    (tmp_path / "table.csv").write_text("cluster.devices\n8\n")
    (tmp_path / "wrong.csv").write_text("a,b\n1,2,3\n")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    (tmp_path / "twice.csv").write_text("job.seq_len,job.seq_len\n1,2\n")
    (tmp_path / "nameless.csv").write_text("job.seq_len,\n1,2\n")
    (tmp_path / "long.csv").write_text(f"job.seq_len\n{'1' * 200_000}\n")
    (tmp_path / "empty.csv").write_text("")
    os.mkfifo(tmp_path / "pipe.parquet")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "b.csv.partial").mkdir()
    if arguments[0] == "bad.parquet":
        pytest.importorskip("pyarrow")
    assert main(["assess-many", *arguments, "--jobs", "1"]) == 2
    said = capsys.readouterr().err.strip()
    assert "Traceback" not in said and said.splitlines()[-1].startswith("scantling: ")
    assert (tmp_path / "run.csv").read_text() == "kept"
    assert not (tmp_path / "a.csv").exists() and not list(tmp_path.glob("*.part"))


def test_columns_of_a_table_take_no_other_s_place(tmp_path, file):
    """Names of columns that rows have anyway, a cell that is no YAML, a pinned field of a design
    that fits nowhere."""
    table = tmp_path / "table.csv"
    table.write_text(
        "plan.tp,number,verdict,cluster.host_memory_gb,cluster.nvme_gb,model,cluster.devices\n"
        "2,,,,,,\n,7,fine,,,,\n,,,,,@a: [,\n2,,,8,0,llama-3.1-405b,8\n"
    )
    rows = assess_many(str(table), base=file, space="coarse")
    assert [row["number"] for row in rows] == [0, 1, 2, 3]
    verdicts = ["feasible", "refused", "refused", "impossible"]
    assert [row["verdict"] for row in rows] == verdicts
    assert rows[0]["plan.tp"] == rows[3]["plan.tp"] == 2 and "'@a: ['" in rows[2]["error"]


def test_cells_that_no_file_could_have_cost_their_row(file):
    tokens = [Decimal("2e11"), date(2026, 1, 1), b"x", np.float64(1e11), float("nan"), np.arange(2)]
    rows = assess_many(str(file), over={"job.tokens": tokens}, space="coarse")
    verdicts = ["feasible", "refused", "refused", "feasible", "refused", "refused"]
    assert [row["verdict"] for row in rows] == verdicts
    assert "2026-01-01" in rows[1]["error"] and rows[0]["job.tokens"] == 2e11


def test_where_no_row_is_a_design_the_table_says_so(tmp_path, file, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call = ["assess-many", "run.yaml", "-o", "a.csv", "--over", "job.luck=1,2", "--jobs", "1"]
    assert main(call) == 3
    assert ["luck" in row["error"] for row in rows_of(tmp_path / "a.csv")] == [True, True]


def test_parquet_without_its_package_is_one_line(tmp_path, file, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["assess-many", "run.yaml", "-o", "a.parquet", "--jobs", "1"]) == 2
    said = capsys.readouterr().err
    assert "scantling[many]" in said and said.count("\n") == 1
    assert not list(tmp_path.glob("a.parquet*"))


@pytest.mark.slow
def test_an_interrupt_reaches_the_command_alone_and_the_run_goes_on(tmp_path, file):
    """A terminal sends Ctrl-C to the workers as well."""
    pytest.importorskip("distributed")
    over = "cluster.devices=" + ",".join(str(8 * n) for n in range(1, 61))
    call = ["assess-many", "run.yaml", "-o", "a.csv", "--over", over, "--space", "coarse"]
    codes = []
    for interrupted in (True, False):
        process = subprocess.Popen(
            [sys.executable, "-m", "scantling", *call, "--jobs", "2"],
            cwd=tmp_path,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        partial = tmp_path / "a.csv.partial"
        while interrupted and not (partial.exists() and partial.read_text().count("\n") > 4):
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
        if interrupted:
            os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=300)
        codes.append(process.returncode)
        assert "Traceback" not in said and partial.exists() == interrupted
    assert codes == [3, 0]
    devices = [int(row["cluster.devices"]) for row in rows_of(tmp_path / "a.csv")]
    assert devices == [8 * n for n in range(1, 61)]


@pytest.mark.slow
def test_processes_of_dask_give_the_same_rows(tmp_path, file, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    over = ["--over", "cluster.devices=64,128,256,512", "--over", "job.seq_len=2048,4096,8192"]
    for jobs in ("1", "2"):
        call = ["assess-many", "run.yaml", "-o", f"{jobs}.csv", *over, "--space", "coarse"]
        assert main([*call, "--jobs", jobs]) == 0
    assert rows_of("1.csv") == rows_of("2.csv") and len(rows_of("1.csv")) == 12
    assert "12 designs" in capsys.readouterr().out and not list(tmp_path.glob("*.partial"))
    assert json.dumps(rows_of("2.csv")[0]["verdict"]) == '"feasible"'


def test_designs_that_tune_have_rows_with_their_engine(tmp_path):
    reward = {"kind": "rule"}
    rollout = {"mean_response": 1000, "max_response": 4096, "reward": reward, "environment_s": 0}
    file = tmp_path / "a.yaml"
    Design.from_data(
        {
            "model": "qwen2.5-7b",
            "cluster": {"accelerator": "h100-sxm", "devices": 16},
            "job": {"method": "grpo", "rollout": rollout},
        }
    ).write(file)
    both = assess_many(str(file), over={"cluster.devices": [8, 16]})
    assert [row["error"] for row in both] == [None, None]
    for row in both:
        assert row["rollout.tp"] >= 1 and row["likely.days.low"] < row["likely.days"]
        assert row["likely.cost_usd.low"] < row["likely.cost_usd"] < row["likely.cost_usd.high"]
    assert both[1]["likely.days"] < both[0]["likely.days"]


def test_without_dask_one_process_works_and_a_number_of_them_is_refused(
    file, monkeypatch, tmp_path, capsys
):
    """`pip install .` has no Dask, and nobody typed a number of processes."""
    monkeypatch.setattr(commands, "find_spec", lambda name: None)
    monkeypatch.setattr(commands, "cpu_count", lambda: 8)
    out = str(tmp_path / "all.csv")
    call = ["assess-many", str(file), "-o", out, "--over", "cluster.devices=64,128"]
    assert main([*call, "--space", "coarse"]) == 0 and len(rows_of(out)) == 2
    assert "one process" in capsys.readouterr().err
    assert main([*call, "--jobs", "4", "--force"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "--jobs" in line and "scantling[dask]" in line
