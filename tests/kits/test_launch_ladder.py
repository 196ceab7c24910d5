"""The ladder to full scale: smaller rungs of the same plan, and a script that holds a log against
what each should show."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from scantling import Design, assess
from scantling_kits import framework, kits, write
from scantling_kits.expressible import express
from scantling_kits.ladder import climb, shrunk
from scantling_site.job_site import site_of
from scantling_site.rollout.burn_in import burn_in

sys.path.insert(0, str(Path(__file__).parent))
from corpus import DENSE, PLANS, spec  # noqa: E402


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kit")
    data = PLANS["dense-pp"] | {"name": "ladder"}
    write(kits(assess(Design.from_data(data)), "megatron", "slurm"), folder)
    return folder


def rungs(kit):
    return json.loads((kit / "ladder.json").read_text())


def test_each_rung_is_the_same_plan_on_fewer_devices(kit):
    """Width, micro-batch and accumulation stay, stages and replicas shrink; layers a stage stay
    where they fit, so that a device computes and holds what it will at full scale."""
    found = rungs(kit)
    full = found[-1]
    assert [r["rung"] for r in found] == ["node", "rack", "all"]
    assert [r["devices"] for r in found] == [8, 32, 64]
    for r in found:
        for name in ("tp", "micro_batch", "grad_accum", "recompute", "precision", "sharding"):
            assert r["plan"][name] == full["plan"][name], name
        assert r["layers"] / r["plan"]["pp"] <= full["layers"] / full["plan"]["pp"]
        assert r["step_s"] <= r["step_s_high"]
        assert r["memory_bytes"] <= r["memory_bytes_high"]
        own = json.loads((kit / r["folder"] / "plan.json").read_text())
        assert (own["devices"], own["step_s"]) == (r["devices"], r["step_s"])
        assert (own["shape"]["layers"], own["global_batch"]) == (r["layers"], r["global_batch"])
        assert f"#SBATCH --nodes={r['nodes']}\n" in (kit / r["folder"] / "job.sbatch").read_text()
    node, rest = found[0], found[1:]
    assert all(node["bus_bytes_per_s"] >= r["bus_bytes_per_s"] for r in rest)


def test_no_rung_has_more_layers_than_the_run():
    """Llama 3.1 405B has 126 layers on 16 stages of 8 chunks, the first and the last a layer
    short (arXiv 2407.21783, section 3.3.2): every layer of a stage is repeated on a rung too."""
    plan = dict(tp=2, pp=4, vpp=8, micro_batch=1, schedule="interleaved", recompute="full")
    data = spec(
        model=DENSE | dict(layers=30),
        devices=256,
        job=dict(global_batch=256),
        plan=plan | dict(sharding="zero2"),
        cluster=dict(pod_devices=64),
        name="x",
    )
    launch = express(assess(Design.from_data(data)), 0, framework("torchtitan"), "torchrun")
    whole = shrunk(launch, 64, 1)
    assert whole.model.layers == 30 and whole.pins["recompute_layers"] == 8
    assert shrunk(launch, 64, 2) is None, "no chunk is without a layer"
    assert [rung for rung, _ in climb(launch)][-2:] == ["pod", "all"]
    assert {rung.model.layers for name, rung in climb(launch)} <= set(range(31))


@pytest.mark.parametrize(
    ("line", "field", "unit"),
    [
        (" elapsed time per iteration (ms): {:.1f} | throughput", "step_s", 1e-3),
        ("Step Time : {:.3f}s GPU utilization: 400.0MODEL_TFLOP/s/GPU", "step_s", 1.0),
        ("completed step: 5, seconds: {:.3f}, TFLOP/s/device: 400.0", "step_s", 1.0),
        ('{{"step": 5, "loss": 2.0, "seconds": {:.4f}}}', "step_s", 1.0),
        ("[Rank 0] memory (MB) | max allocated: {:.0f} | reserved: 9", "memory_bytes", 2**20),
        ("{:.0f} MiB", "memory_bytes", 2**20),
        ("Total memory size: {:.1f} GB, Output size: 44.5 GB,", "memory_bytes", 2**30),
        ('{{"step": 5, "seconds": 1e-9, "memory_bytes": {:.0f}}}', "memory_bytes", 1.0),
        ('{{"step": 1, "seconds": 1e-9, "first_step_s": {:.1f}}}', "first_step_s", 1.0),
    ],
)
def test_a_log_within_the_limits_passes_and_one_beyond_them_fails(kit, tmp_path, line, field, unit):
    """Lines as Megatron-LM, Megatron-Bridge, MaxText, this kit's trainers and nvidia-smi print
    them."""
    node = rungs(kit)[0]
    for factor, code in ((1.0, 0), (2.5, 1)):
        log = tmp_path / f"{factor}.log"
        log.write_text("\n".join([line.format(factor * node[field] / unit)] * 6))
        assert compared(kit, "node", log)[0] == code


# as torchtitan 0.3.0 prints them on a terminal and through torchrun's tee
TITAN = (
    "[rank0]:[titan] 2026-05-19 19:31:{:02d},955 - root - INFO - \x1b[31mstep: {:2d}  "
    "\x1b[32mloss: 12.47929  \x1b[38;2;180;60;0mgrad_norm: 24.7500  "
    "\x1b[38;2;54;234;195mmemory: {:5.2f}GiB(90.05%)  \x1b[34mtps: {:,}  "
    "\x1b[36mtflops: 114.62  \x1b[35mmfu: 5.09%\x1b[39m\n"
)


def test_colours_of_a_log_hide_nothing(kit, tmp_path):
    node, log = rungs(kit)[0], tmp_path / "titan.log"
    tokens = node["global_batch"] * node["seq_len"] / node["devices"]
    for slower, fuller, code in ((1.0, 1.0, 0), (1.5, 1.0, 1), (1.0, 1.2, 1)):
        tps = round(tokens / node["step_s"] / slower)
        memory = fuller * node["memory_bytes"] / 2**30
        log.write_text("".join(TITAN.format(n, n, memory, tps) for n in range(1, 40)))
        found, said = compared(kit, "node", log)
        assert found == code
        assert "step_s" in said and "memory_bytes" in said


def test_the_first_step_counts_from_launch_sh(kit, tmp_path):
    """Megatron-LM's line of ten steps, its stamp nine of them after the first."""
    node, log = rungs(kit)[0], tmp_path / "megatron.log"
    begun = datetime(2026, 5, 19, 23, 59, 30)
    for late, code in ((1.0, 0), (3.0, 1)):
        first = late * node["first_step_s"] + 9 * node["step_s"]
        stamp = (begun + timedelta(seconds=first)).strftime("%F %T.%f")
        ms = 1e3 * node["step_s"]
        log.write_text(
            f"launch.sh: begun {begun:%F %T}\n [{stamp}] iteration       10/     100 | consumed "
            f"samples: 80 | elapsed time per iteration (ms): {ms:.1f} | learning rate: 1.5E-05 |\n"
        )
        found, said = compared(kit, "node", log)
        assert found == code and "first_step_s" in said


def test_a_node_is_held_to_what_the_burn_in_evicts_at(kit):
    """One node is judged once: what passes the ladder is not returned by the site's burn-in."""
    site = site_of(assess(Design.from_data(PLANS["dense-pp"])))
    tests = {test.id: test for test in burn_in(site)}
    node, test = rungs(kit)[0], tests["node all-reduce"]
    assert node["bus_bytes_per_s"] == pytest.approx(test.expected, rel=1e-6)
    assert node["bus_bytes_per_s_low"] == pytest.approx(test.evict_below, rel=1e-6)


def test_a_slow_link_fails_on_its_rung_and_an_empty_log_says_nothing(kit, tmp_path):
    node, log = rungs(kit)[0], tmp_path / "nccl.log"
    for share, code in ((1.0, 0), (0.5, 1)):
        log.write_text(f"# Avg bus bandwidth    : {share * node['bus_bytes_per_s'] / 1e9:.2f}\n")
        assert compared(kit, "node", log)[0] == code
    assert "FAIL" in compared(kit, "node", log)[1]
    log.write_text("nothing\n")
    assert compared(kit, "node", log)[0] == 2


def compared(kit, rung, log):
    p = subprocess.run(
        [sys.executable, str(kit / "check_ladder.py"), rung, str(log)],
        capture_output=True,
        text=True,
    )
    return p.returncode, p.stdout
