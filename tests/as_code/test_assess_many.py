"""Tables of designs: folders, rows, grids, errors that stay in their row, resuming, and Dask."""

from __future__ import annotations

import csv
import json

import pytest
from scantling.base.errors import DesignError
from scantling.cli.app import main
from scantling.design.design import Design
from scantling.verdict.assess import assess
from scantling_code import many
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
        torn.write('\n["cut off')
    calls.clear()
    assert assess_many(str(file), over=over, space="coarse", partial=partial) == whole
    assert len(calls) == 12
    with pytest.raises(DesignError, match="another run"):
        assess_many(str(file), over=over, space="default", partial=partial)


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
    ],
)
def test_a_wrong_call_is_one_line(tmp_path, file, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("scantling.plans.remote.PATIENCE_S", 1)
    (tmp_path / "run.csv").write_text("kept")
    (tmp_path / "table.csv").write_text("cluster.devices\n8\n")
    (tmp_path / "wrong.csv").write_text("a,b\n1,2,3\n")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    if arguments[0] == "bad.parquet":
        pytest.importorskip("pyarrow")
    assert main(["assess-many", *arguments, "--jobs", "1"]) == 2
    said = capsys.readouterr().err.strip()
    assert "Traceback" not in said and said.splitlines()[-1].startswith("scantling: ")
    assert (tmp_path / "run.csv").read_text() == "kept" and not (tmp_path / "a.csv").exists()


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
