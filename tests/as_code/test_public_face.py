"""Designs as code from Python: what the commands print, as objects."""

from __future__ import annotations

import json

import pytest
import scantling as sc

TEXT = "model: llama-3.1-70b\ncluster: {accelerator: h100-sxm, devices: 512}\njob: {tokens: 1e12}\n"


@pytest.fixture
def design(tmp_path):
    path = tmp_path / "design.yaml"
    path.write_text(TEXT, encoding="utf-8")
    return sc.Design.read(path)


def test_a_difference_has_what_was_asked_and_what_it_did(design):
    found = sc.diff(design, design.change({"cluster.devices": 1024})).as_dict()
    assert [one["field"] for one in found["asked"]] == ["cluster.devices"]
    assert found["figures"]["days"]["b"] < found["figures"]["days"]["a"]


def test_a_lock_is_the_same_twice_and_a_folder_is_held_to_it(design, tmp_path):
    text = sc.lock(design).to_text()
    assert text == sc.lock(design).to_text()
    (tmp_path / "design.yaml.lock").write_text(text, encoding="utf-8")
    rows = sc.check(tmp_path, locked=True)
    assert isinstance(rows, sc.Table) and [row["passed"] for row in rows] == [True]


def test_a_trace_lasts_as_long_as_the_step(design):
    drawn = sc.trace(design)
    assert max(each.end_s for each in drawn.slices) == pytest.approx(sc.assess(design).step_s)
    assert json.loads(drawn.to_json())["traceEvents"]


def test_many_designs_are_a_table(design, tmp_path):
    rows = sc.assess_many(tmp_path, over={"cluster.devices": [256, 512]}, space="coarse")
    assert isinstance(rows, sc.Table) and len(rows) == 2
    assert all(row["verdict"] and not row["error"] for row in rows)
