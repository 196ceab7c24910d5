"""The comparing commands from outside: what they print, write and end with."""

from __future__ import annotations

import csv
import json
import sys

import pytest
from rich.console import Console
from scantling.cli.app import main
from scantling.cli.tables import print_table

TEXT = (
    "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 64}\njob: {tokens: "
    "1.0e12, seq_len: 8192, global_batch: 256}\n"
)


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
    pinned = tmp_path / "best.yaml"
    assert main(["candidates", str(file), "--measured", str(out), "-o", str(pinned)]) == 0
    capsys.readouterr()
    assert main(["design", str(pinned), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["step_s"] == said["step_s_low"] == 3.0 and said["measured"] == {"step_s": 3.0}
    assert all(
        str(said["plan"][k]) == rows[1][k] for k in ("tp", "pp", "dp", "sharding", "micro_batch")
    )
    assert main(["diagnose", str(pinned)]) == 0


def test_a_sweep_with_its_edge(file, capsys):
    file.write_text(TEXT + "constraints: {deadline_days: 25}\n")
    assert main(["sweep", str(file), "cluster.devices=32,64"]) == 0
    assert "edge: constraint-missed at 32, feasible at 64" in capsys.readouterr().out
    assert (
        main(["sweep", str(file), "cluster.devices=32,64", "job.global_batch=128,256", "--json"])
        == 0
    )
    cells = json.loads(capsys.readouterr().out)
    assert [c["at"] for c in cells] == [[32, 128], [32, 256], [64, 128], [64, 256]]
    pairs = ["cluster.devices=32,64", "job.global_batch=128,256", "--together"]
    assert main(["sweep", str(file), *pairs, "--json"]) == 0
    assert [c["at"] for c in json.loads(capsys.readouterr().out)] == [[32, 128], [64, 256]]
    assert (
        main(["sweep", str(file), "cluster.devices=32,64", "job.global_batch=1", *pairs[2:]]) == 2
    )
    assert "do not pair" in capsys.readouterr().err
    assert main(["sweep", str(file), "cluster.devices"]) == 2


def test_answers(file, capsys):
    assert main(["answer", str(file), "fewest-devices", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["devices"] == 8
    assert main(["design", str(file), "--json"]) == 0
    now = json.loads(capsys.readouterr().out)
    assert main(["answer", str(file), "cheaper", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    likely = now["likely"]
    assert rows and all(r["likely"]["cost_usd"] < likely["cost_usd"] for r in rows)
    assert all(r["likely"]["days"] <= likely["days"] * 1.001 for r in rows)
    assert main(["answer", str(file), "compute-budget"]) == 2
    assert "deadline_days" in capsys.readouterr().err


def test_diagnose(file, capsys):
    assert main(["diagnose", str(file)]) == 2
    assert "measured" in capsys.readouterr().err
    file.write_text(TEXT + "measured: {step_s: 6.0}\n")
    assert main(["diagnose", str(file), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["measured_s"] == 6.0 and said["causes"] and not said["inside"]


def test_the_spaces_are_listed_with_their_counts(file, capsys):
    assert main(["spaces", str(file), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert set(said["spaces"]) == {"coarse", "default", "wide"}
    legal = {row["space"]: row for row in said["design"]}
    assert legal["coarse"]["legal"] < legal["default"]["legal"] < legal["wide"]["legal"]
    assert (
        set(legal["coarse"]["axes"]["tp"])
        <= set(legal["default"]["axes"]["tp"])
        <= set(legal["wide"]["axes"]["tp"])
    )
    assert (
        "zb-1p" in legal["wide"]["axes"]["schedule"]
        and "optimizer" in legal["wide"]["axes"]["offload"]
    )
    words = {row["field"]: row["values"] for row in said["spaces"]["default"]}
    for axis in ("tp", "micro_batch"):  # what is said is what occurs
        assert set(map(str, legal["default"]["axes"][axis])) <= set(words[axis].split())
    assert main(["spaces"]) == 0
    assert "micro_batch" in capsys.readouterr().out


@pytest.mark.slow
def test_a_wide_search_tries_precisions_left_open(file, capsys):
    counts = {}
    for more in ([], ["--wide"], ["--space", "coarse"]):
        assert main(["search", str(file), "--json", "--no-progress", *more]) == 0
        said = json.loads(capsys.readouterr().out)
        counts[said["space"]] = said
    assert counts["coarse"]["legal"] < counts["default"]["legal"] < counts["wide"]["legal"]
    assert (
        counts["wide"]["plans"][0]["precision"] == "fp8"
        and counts["default"]["plans"][0]["precision"] == "bf16"
    )
    for said in counts.values():
        assert said["legal"] == said["evaluated"] + sum(said["rejected"].values())
    file.write_text(TEXT.replace("global_batch: 256", "global_batch: 256, precision: bf16"))
    assert main(["search", str(file), "--json", "--no-progress", "--wide"]) == 0
    assert {p["precision"] for p in json.loads(capsys.readouterr().out)["plans"]} == {"bf16"}
    assert main(["search", str(file), "--wide", "--space", "coarse"]) == 2


def test_a_search_is_stopped_by_one_interrupt_and_keeps_what_it_has(file, capsys, monkeypatch):
    import os
    import signal

    monkeypatch.setattr("scantling.plans.evaluate.CHUNK", 4096)
    real = __import__("scantling.plans.evaluate", fromlist=["scored"]).scored
    calls = []
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a background job starts with interrupts ignored

    def slow(where, plan):
        if (
            signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        ):  # the design's own assessment comes first
            calls.append(1)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return real(where, plan)

    monkeypatch.setattr("scantling.plans.evaluate.scored", slow)
    try:
        assert main(["search", str(file), "--wide", "--json"]) == 0
    finally:
        signal.signal(signal.SIGINT, before)
    out = capsys.readouterr()
    said = json.loads(out.out)
    assert len(calls) == 3 and 0 < said["legal"] <= 3 * 4096 and said["unseen"] > 0
    assert "stopping" in out.err


def test_a_budget_of_compute_as_size_tokens_and_days(file, capsys):
    assert main(["scaling", str(file), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["compute_flops"] == pytest.approx(6 * 8.03e9 * 1e12, rel=0.01)
    rows = {r["law"]: r for r in said["rows"]}
    assert rows[None]["days"] > 0 and {
        "besiroglu-2024",
        "hoffmann-2022-1",
        "deepseek-llm-2024",
    } <= set(rows)
    for law in ("besiroglu-2024", "hoffmann-2022-1"):
        assert 6 * rows[law]["params"] * rows[law]["tokens"] == pytest.approx(
            said["compute_flops"], rel=1e-6
        )
        assert (
            10 < rows[law]["tokens_per_param"] < 30
            and rows[law]["loss"] < rows[None]["loss"]
            and "arXiv" in rows[law]["source"]
        )
        assert rows[law]["days"] == pytest.approx(
            rows[None]["days"], rel=0.25
        )  # the same compute on the same machine
    assert main(["scaling", str(file), "--flops", "1e3"]) == 2
    capsys.readouterr()
    assert main(["scaling", str(file), "--flops", "1e22"]) == 0
    assert "1e+22 FLOP (given)" in capsys.readouterr().out


def test_what_a_result_hangs_on(file, capsys):
    assert main(["sensitivity", str(file), "--key", "cost_usd", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    price = next(r for r in said["rows"] if r["what"] == "Price")
    assert price["low"] == pytest.approx(0.75 * said["value"]) and [
        r["swing"] for r in said["rows"]
    ] == sorted((r["swing"] for r in said["rows"]), reverse=True)
    assert main(["sensitivity", str(file), "--key", "happiness"]) == 2
    assert "is no number of this design" in capsys.readouterr().err


def test_the_front_over_device_counts(file, capsys):
    assert main(["front", str(file), "--devices", "32,64", "--json"]) == 0
    points = json.loads(capsys.readouterr().out)
    rows = [(p["days"], p["cost_usd"], p["devices"], p["memory_share"]) for p in points]
    assert {p["devices"] for p in points} == {32, 64}
    assert not any(all(b <= a for a, b in zip(x, y)) and x != y for x in rows for y in rows)
    assert main(["front", str(file), "--devices", "32,64"]) == 0
    assert "more on the front" in capsys.readouterr().out


@pytest.mark.slow
def test_no_number_is_cut_at_80_columns(file, capsys, monkeypatch):
    from rich.console import Console

    file.write_text(TEXT + "constraints: {deadline_days: 25}\n")
    monkeypatch.setattr(
        "scantling.cli.decide.console", lambda: Console(width=80, markup=False, highlight=False)
    )
    monkeypatch.setattr(
        "scantling.cli.search.console", lambda: Console(width=80, markup=False, highlight=False)
    )
    for words in (
        ["search", "--top", "5"],
        ["front", "--devices", "64"],
        ["scaling"],
        ["sensitivity"],
        ["sweep", "cluster.devices=32,64", "job.global_batch=128,256"],
    ):
        assert main([words[0], str(file), *words[1:]]) in (0, 3)
        said = capsys.readouterr().out
        assert "…" not in said and "%" in said


@pytest.mark.slow
def test_what_cannot_be_is_one_message(file, capsys):
    assert main(["sweep", str(file), "no_such_field=1,2"]) == 2
    assert "there is no such field" in capsys.readouterr().err
    assert main(["search", str(file), "--over", "cluster.devices=9.5"]) == 2
    assert "not a whole number" in capsys.readouterr().err
    file.write_text(
        "model: {size: 1.0e13}\ncluster: {accelerator: h100-sxm, devices: 8}\njob: "
        "{tokens: 1.0e12}\n"
    )
    for command in ("sensitivity", "candidates", "diagnose"):
        assert main([command, str(file)]) == 4
        assert (
            capsys.readouterr().out.strip()
            == '{"error": "Hardware constraints insufficient for model parameters"}'
        )
    assert main(["front", str(file), "--devices", "8"]) == 2
    assert "no plan fits at 8 devices" in capsys.readouterr().err


def test_the_verdict_line_says_its_verdict_once(file, capsys):
    """ "Feasible at risk: at risk: chance 27 % of going out of memory" was the first line."""
    main(["design", str(file), "--json"])
    days = json.loads(capsys.readouterr().out)["days"]
    asked = {
        "feasible at risk": TEXT + f"constraints: {{deadline_days: {1.02 * days}}}\n",
        "makes no sense": TEXT.replace("1.0e12", "1.0e15"),
        "not checked": TEXT.replace("tokens: 1.0e12, ", "") + "constraints: {deadline_days: 9}\n",
    }
    for name, text in asked.items():
        file.write_text(text)
        main(["design", str(file)])
        said, _, reason = capsys.readouterr().out.splitlines()[1].lower().partition(": ")
        assert said == name
        assert not reason.startswith(("at risk", "makes no sense", "not checked")), reason


@pytest.mark.parametrize("width", [60, 80, 120])
def test_numbers_of_a_table_are_whole_and_its_words_wrap(width, capsys):
    """A column of numbers is as wide as its widest cell, whatever words stand beside it."""
    rows = [["copies in memory of one device, one after the other", "36.9 min", "$1,234,567"]]
    out = Console(width=width, file=sys.stdout)
    print_table(out, ("measurement", "removes days", "removes $"), rows)
    printed = capsys.readouterr().out
    assert all(whole in printed for whole in ("36.9 min", "$1,234,567", "removes days"))
    assert " ".join(printed.split()).count("copies in memory") == 1
    assert max(map(len, printed.splitlines())) <= width
