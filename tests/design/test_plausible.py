"""Inputs that nobody can mean get a question; what is published, or confirmed, gets none."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import scantling
from scantling.cli.app import main
from scantling.design.design import Design, DesignError
from scantling.design.plausible import questions, usual
from scantling.plans.prepare import prepare

BASE = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm", "devices": 64},
    "job": {"tokens": 1e12},
}


def asked(**changes) -> list[str]:
    return [q.text for q in questions(prepare(Design.from_data(BASE | changes)))]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        # "`job: {tokens: 15}` (meant 15T): exit 0 feasible, "Days 23.7 µs, Cost $0.000""
        ({"job": {"tokens": 15}}, "15 tokens: did you mean 15e12?"),
        # "`global_batch: 4e6` (meant tokens; field is sequences): feasible, 32.8 G tokens a step"
        (
            {"job": {"tokens": 15e12, "global_batch": 4e6}},
            "32.768e9 tokens a step: did you mean global_batch_tokens: 4e6?",
        ),
        ({"job": {"phases": [{"tokens": 1e12}, {"tokens": 300}]}}, "job.phases.1.tokens: 300"),
        ({"prices": {"usd_per_kwh": 8}}, "did you mean 0.08?"),
        ({"prices": {"usd_per_device_hour": 250}}, "did you mean 2.5?"),
        ({"constraints": {"budget_usd": 10}}, "did you mean 10e6?"),
        ({"prices": {"usd_per_device_hour": 5e-324}}, "4.94066e-324 USD/h: is that meant?"),
    ],
)
def test_a_slip_is_asked_about(changes, words):
    (line,) = asked(**changes)
    assert words in line
    field = line.partition(":")[0]
    assert asked(**changes, confirm=[field]) == []


def test_the_verdict_waits_for_the_answer(tmp_path, capsys):
    file = tmp_path / "design.yaml"
    file.write_text(Design.from_data(BASE | {"job": {"tokens": 15}}).to_yaml())
    assert main(["design", str(file), "--json"]) == 3
    said = json.loads(capsys.readouterr().out)
    assert said["verdict"] == "not-checked"
    assert any("did you mean 15e12?" in line for line in said["limits"])
    file.write_text(
        Design.from_data(BASE | {"job": {"tokens": 15}, "confirm": ["job.tokens"]}).to_yaml()
    )
    main(["design", str(file), "--json"])
    assert json.loads(capsys.readouterr().out)["verdict"] != "not-checked"


def test_nothing_that_was_published_is_asked_about():
    """Tokens a step, contexts and tokens of every published run lie inside the ranges."""
    bounds = {row.field: row for row in usual()}
    seen = 0
    table = Path(scantling.__file__).parent / "catalogue" / "published_runs.csv"
    for run in csv.DictReader(table.read_text(encoding="utf-8").splitlines()):
        seq, batch = (run.get(k) for k in ("seq_len", "global_batch_seqs"))
        if seq:
            assert bounds["seq_len"].low <= float(seq) <= bounds["seq_len"].high
        if seq and batch:
            assert float(seq) * float(batch) <= bounds["global_batch"].high / 4
            seen += 1
    assert seen > 100


@pytest.mark.parametrize("confirm", [["job.tokns"], "job.tokens", [3], ["foo.bar"]])
def test_what_is_confirmed_is_a_field(confirm):
    with pytest.raises(DesignError, match="^confirm"):
        Design.from_data(BASE | {"confirm": confirm})


@pytest.mark.parametrize(
    ("stack", "chip", "asked"),
    (
        ("megatron-core", "tpu-v5p", True),
        ("torchtitan", "trn2", True),
        ("deepspeed", "gaudi2", True),
        ("megatron-core", "mi300x", False),
        ("maxtext", "tpu-v5p", False),
        ("hai-llm", "h800-sxm", False),
        (None, "tpu-v5p", False),
    ),
)
def test_a_stack_on_a_chip_that_its_code_does_not_run_on_is_asked_about(stack, chip, asked):
    data = {
        "scantling": 1,
        "name": "x",
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": chip, "devices": 64},
        "job": {"tokens": 1e11},
    }
    design = Design.from_data(data | ({"stack": stack} if stack else {}))
    fields = [question.field for question in questions(prepare(design))]
    assert ("stack" in fields) == asked
    confirmed = Design.from_data(design.data() | {"confirm": ["stack"]})
    assert "stack" not in [question.field for question in questions(prepare(confirmed))]
