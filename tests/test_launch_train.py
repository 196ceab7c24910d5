"""FSDP2, DDP and DeepSpeed kits train a small model on gloo CPU processes through their own launch.sh: memory as counted, a kill survived to the last bit."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from scantling import Design
from scantling.launch import kits, write
from scantling.verdict import assess

HERE = Path(__file__).parent / "launch"
PYTHON = Path(os.environ.get("LAUNCH_VENVS", Path.home() / ".cache" / "scantling")) / "judges" / "bin" / "python"
WANTED = bool(os.environ.get("LAUNCH_JUDGES"))
pytestmark = [pytest.mark.launch, pytest.mark.slow, pytest.mark.skipif(not WANTED, reason="make test-launch trains small models")]


def tiny(ranks, sharding):
    return Design.from_data({
        "scantling": 1, "name": "tiny", "model": dict(layers=4, hidden=128, ffn_hidden=352, heads=8, kv_heads=4, head_dim=16, vocab=1024, mlp="swiglu", attention="gqa"),
        "cluster": {"accelerator": "h100-sxm", "devices": ranks, "devices_per_node": ranks, "scale_up_domain": ranks}, "job": {"tokens": 1e9, "seq_len": 64, "global_batch": 16},
        "plan": {"sharding": sharding, "tp": 1, "pp": 1, "cp": 1, "micro_batch": 2, "recompute": "none"}})


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize(("to", "sharding"), [("fsdp", "zero3"), ("ddp", "none"), ("deepspeed", "zero1"), ("deepspeed", "zero2"), ("deepspeed", "zero3")])
def test_trains_is_killed_and_resumes(to, sharding, ranks, tmp_path):
    write(kits(assess(tiny(ranks, sharding)), to), tmp_path / "kit")
    p = subprocess.run([sys.executable, str(HERE / "train.py"), str(PYTHON), str(tmp_path / "kit"), str(ranks)], capture_output=True, text=True, timeout=900)
    assert p.returncode == 0, p.stderr[-3000:]
    run = json.loads(p.stdout)
    whole = {step: (loss, norm) for step, loss, norm in run["whole"]}
    assert list(whole) == list(range(1, 21))
    assert run["done"]
    assert run["killed_after"] < 20
    assert run["resumed"][0][0] in (6, 11), "resumed from a checkpoint, not from the start"
    assert run["resumed"][-1][0] == 20
    assert all(whole[step] == (loss, norm) for step, loss, norm in run["resumed"]), "the resumed curve is that of the unbroken run"
    for state in run["state"]:
        found, planned = state["found"], state["planned"]
        assert {k: found[k] for k in ("parameters", "gradients", "master", "moments")} == {k: planned[k] for k in ("parameters", "gradients", "master", "moments")}
