"""The comparing commands from outside: what they print, write and end with."""
from __future__ import annotations

import csv
import json

import pytest
from scantling.cli import main

TEXT = "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 64}\njob: {tokens: 1.0e12, seq_len: 8192, global_batch: 256}\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "d.yaml"
    path.write_text(TEXT)
    return path


def test_candidates_out_and_back(file, tmp_path, capsys):
    out = tmp_path / "c.csv"
    assert main(["candidates", str(file), "-o", str(out), "--top", "3"]) == 0
    with out.open(newline="") as f:
        rows = list(csv.DictReader(f))
    assert len(rows) == 3 and len(capsys.readouterr().out.strip().splitlines()) == 3
    assert main(["candidates", str(file), "--measured", str(out)]) == 2
    assert "no row has a measured_step_s" in capsys.readouterr().err
    rows[1]["measured_step_s"] = "3.0"
    with out.open("w", newline="") as f:
        w = csv.DictWriter(f, rows[0].keys())
        w.writeheader()
        w.writerows(rows)
    assert main(["candidates", str(file), "--measured", str(out)]) == 0
    assert f"'tp': {rows[1]['tp']}" in capsys.readouterr().out


def test_a_sweep_with_its_edge(file, capsys):
    file.write_text(TEXT + "constraints: {deadline_days: 25}\n")
    assert main(["sweep", str(file), "cluster.devices=32,64"]) == 0
    assert "edge: constraint-missed at 32, feasible at 64" in capsys.readouterr().out
    assert main(["sweep", str(file), "cluster.devices=32,64", "job.global_batch=128,256", "--json"]) == 0
    cells = json.loads(capsys.readouterr().out)
    assert [c["at"] for c in cells] == [[32, 128], [32, 256], [64, 128], [64, 256]]
    assert main(["sweep", str(file), "cluster.devices"]) == 2


def test_answers(file, capsys):
    assert main(["answer", str(file), "fewest-devices", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["devices"] == 8
    assert main(["answer", str(file), "compute-budget"]) == 2
    assert "deadline_days" in capsys.readouterr().err


def test_diagnose(file, capsys):
    assert main(["diagnose", str(file)]) == 2
    assert "measured" in capsys.readouterr().err
    file.write_text(TEXT + "measured: {step_s: 6.0}\n")
    assert main(["diagnose", str(file), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["measured_s"] == 6.0 and said["causes"] and not said["inside"]
