"""Smoke tests of kits: small, of the same framework and formats; those that run are in
test_launch_train.py."""

from __future__ import annotations

import json

import pytest
import yaml
from corpus import DENSE, MLA, MOE, spec
from scantling import Design, assess
from scantling.cli import main
from scantling_kits import FRAMEWORKS, smoke_kit


@pytest.mark.parametrize("to", FRAMEWORKS)
@pytest.mark.parametrize("model", [DENSE, MOE, MLA], ids=["dense", "experts", "latent"])
def test_a_smoke_test_is_the_same_kit_for_a_few_layers(model, to):
    full = dict(tp=1, pp=1, sharding="zero3", recompute="full")
    a = assess(Design.from_data(spec(model=model, plan=full) | {"name": "x"}))
    files = smoke_kit(a, to)
    plan = json.loads(files["plan.json"])
    assert plan["shape"]["layers"] == 4 and plan["devices"] == 2 and plan["nodes"] == 1
    assert plan["params"] < 5e6
    assert plan["shape"]["attention"] == a.resolved.model.attention or a.resolved.model.kv_heads
    assert bool(plan["shape"]["experts"]) == a.resolved.model.is_moe
    assert plan["plan"]["recompute"] in (a.plan["recompute"], "none")
    assert files["README.md"].count("```") == 4


def test_the_command_writes_it(tmp_path, capsys):
    file = tmp_path / "d.yaml"
    file.write_text(yaml.safe_dump(spec(plan=dict(tp=1, pp=1, sharding="zero3"))))
    smoke = tmp_path / "smoke"
    assert main(["launch", str(file), "--to", "fsdp", "--smoke", str(smoke)]) == 0
    assert "smoke test" in capsys.readouterr().out
    assert (smoke / "launch.sh").exists()
    assert main(["launch", str(file), "--to", "fsdp"]) == 2
