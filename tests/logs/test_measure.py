"""What timings say: laws found again from timings they predict, published benchmark points,
drivers' names; and what a design does with the file."""

from __future__ import annotations

import importlib.util
import math
import os
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scantling import catalogue
from scantling.base.errors import DesignError
from scantling.blocks.answers import Gemm
from scantling.blocks.kernels import Device
from scantling.cli.app import main
from scantling.design.design import Design
from scantling.design.file import dump, load
from scantling.physics import calibration_file
from scantling.physics.collectives import exchange_s, near_s, ring_s
from scantling.physics.compute import device
from scantling.physics.gather import situation
from scantling.physics.wires import Link, Wires, fabric_facts
from scantling.plans.evaluate import find
from scantling.plans.prepare import prepare
from scantling_logs import measure_command as measure
from scantling_logs.measure import constants_fit as measure_fit, measurements as measure_curves

torch_missing = importlib.util.find_spec("torch") is None
DESIGN = """scantling: 1
model: llama-3.1-8b
cluster: {accelerator: a100-80-sxm, devices: 8}
job: {tokens: 1.0e9, seq_len: 8192, global_batch: 64}
plan: {tp: 1, pp: 1, cp: 1}
stack: megatron-core
"""
A100 = catalogue.accelerator("a100-80-sxm")


def file_of(constants, accelerator="a100-80-sxm", **more) -> str:
    return dump(
        {
            "scantling_calibration": 2,
            "made": "2026-01-02",
            "device": {"accelerator": accelerator, "name": "NVIDIA A100-SXM4-80GB"},
            "constants": constants,
            **more,
        }
    )


def priors(**changes):
    """The sourced priors of an A100 as constants of a case, some of them changed."""
    values = {
        name: calibration_file.prior_of(name, A100)
        for name in (
            "gemm",
            "gemm_bytes",
            "gemm_launch_s",
            "hbm_share",
            "attention",
            "attention_half",
            "attention_tiles",
            "attention_fa2",
            "attention_fa1",
            "scale_up_share",
            "scale_out_share",
        )
    }
    return SimpleNamespace(**{**values, **changes})


def test_published_cubes_give_the_published_curve():
    """Sustained fp16 cubes on an A100 (Azure's guide) follow 0.80 x peak, half of it at 2.2 GFLOP,
    as the catalogue's curve of them says."""
    rows = [
        r
        for r in catalogue.read(catalogue.HERE / "gemm_points.csv", None)
        if r["accelerator"] == "a100-80-sxm" and r["shape_class"] == "Azure sustained" and r["m"]
    ]
    rows = [r for r in rows if r["m"] == r["n"] == r["k"]]
    points = [
        {
            **{k: float(r[k]) for k in "mnk"},
            "seconds": 2
            * float(r["m"])
            * float(r["n"])
            * float(r["k"])
            / (float(r["achieved_tflops"]) * 1e12),
        }
        for r in rows
    ]
    assert len(points) >= 5
    curve = next(
        r
        for r in catalogue.read(catalogue.HERE / "efficiency_curves.csv", None)
        if r["accelerator"] == "a100-80-sxm" and r["kind"] == "gemm"
    )
    got = measure_fit.saturation(points)
    assert got["flops_per_s"] / A100.fp16_flops == pytest.approx(
        float(curve["asymptote_fraction"]), abs=0.03
    )
    assert got["half_flop"] / 1e9 == pytest.approx(float(curve["half_size"]), rel=0.35)


@pytest.mark.parametrize(("share", "launch_s"), [(0.55, 4e-6), (0.8, 9e-6), (0.4, 20e-6)])
def test_gemm_timings_of_the_step_model_give_its_constants_back(share, launch_s):
    k = priors(gemm=share, gemm_launch_s=launch_s)
    on = SimpleNamespace(
        linear_flops=share * A100.bf16_flops,
        operand_bytes=2.0,
        bytes_per_s=A100.hbm_bytes_per_s * k.hbm_share,
        constants=k,
    )
    sizes = [(n, n, n) for n in (512, 1024, 2048, 4096, 8192)] + [
        (8192, 1280, 8192),
        (2048, 8192, 1024),
    ]
    noise = np.random.default_rng(1).normal(0, 0.01, len(sizes))
    points = [
        {
            "m": m,
            "n": n,
            "k": kk,
            "seconds": float(
                Device.gemm_s(on, Gemm("", 2 * m * n * kk, m * n + n * kk + m * kk, 1))
                * math.exp(e)
            ),
        }
        for (m, n, kk), e in zip(sizes, noise)
    ]
    copies = [
        {"op": "copy", "bytes": 2**30, "seconds": 2**30 / (A100.hbm_bytes_per_s * k.hbm_share)}
    ]
    found, left = measure_fit.constants_of({"gemm": {"bf16": points}, "memory": copies}, A100)
    assert left == []
    assert found["gemm"]["value"] == pytest.approx(share, rel=0.03)
    assert found["gemm_launch_s"]["value"] == pytest.approx(launch_s, rel=0.2)
    assert found["hbm_share"]["value"] == pytest.approx(k.hbm_share, rel=1e-3)
    assert found["gemm"]["offset"] == pytest.approx(
        math.log(found["gemm"]["value"] / found["gemm"]["prior"]), abs=1e-3
    )


def test_attention_timings_of_the_step_model_give_its_share_back(tmp_path):
    """A design with the measured share sees the measured seconds again."""
    (tmp_path / "c.yaml").write_text(file_of({"attention": 0.45}))
    resolved = prepare(
        Design.from_yaml(DESIGN + "calibration: c.yaml\n", tmp_path).change({"stack": None})
    )
    found = find(situation(resolved, resolved.phases[0]))
    case = found.case(0)
    assert case.constants.attention == pytest.approx(0.45)
    case = replace(case, constants=replace(case.constants, **vars(priors(attention=0.45))))
    (attention,) = case.shape.of("mixer")
    forward, _ = attention.core_s(device(case, 8192.0))
    point = {
        "batch": 1,
        "seq_len": 8192,
        "heads": 32,
        "head_dim": 128,
        "backend": "flash",
        "seconds": float(forward),
    }
    slower = {**point, "backend": "cudnn", "seconds": 2 * point["seconds"]}
    constants, left = measure_fit.constants_of({"attention": [slower, point]}, A100)
    assert left == []
    assert constants["attention"]["value"] == pytest.approx(0.45, rel=0.02)


def test_collective_timings_give_link_shares_back():
    up, out = (catalogue.fabric(name) for name in (A100.scale_up, "ib-hdr"))
    link = Link(
        domain=8,
        up_bytes_per_s=0.7 * A100.link_bytes_per_s,
        out_bytes_per_s=0.6 * 25e9,
        **fabric_facts(up, out),
    )
    node, four = Wires(8, 8, link), Wires(32, 8, link)
    size = 2**30
    exchange = exchange_s(7, near_s(size * 7 / 8, node, 0.65), node)
    points = [
        {"op": op, "ranks": w.ranks, "ranks_per_node": 8, "bytes": size, "seconds": float(seconds)}
        for op, w, seconds in (
            ("all_gather", node, ring_s(size, node)),
            ("all_reduce", node, ring_s(size, node, 2.0)),
            ("all_to_all", node, exchange),
            ("all_reduce", four, ring_s(size, four, 2.0)),
        )
    ]
    found, left = measure_fit.constants_of(
        {"collectives": points}, A100, scale_out_bytes_per_s=25e9
    )
    assert left == []
    assert found["scale_up_share"]["value"] == pytest.approx(0.7, rel=0.01)
    assert found["scale_out_share"]["value"] == pytest.approx(0.6, rel=0.01)
    assert found["ep_up_share"]["value"] == pytest.approx(0.65, rel=0.01)


def test_a_device_that_cannot_be_the_named_one_is_left_out():
    """A laptop's memory called an A100's, and copies faster than its HBM."""
    for rate, why in ((20e9, "times what is known"), (2.5e12, "above the rate")):
        found, left = measure_fit.constants_of(
            {"memory": [{"op": "copy", "bytes": 2**28, "seconds": 2**28 / rate}]}, A100
        )
        assert found == {}
        assert why in left[0]["why"]


@pytest.mark.parametrize(
    ("name", "gib", "id"),
    [
        ("NVIDIA H100 80GB HBM3", 79.1, "h100-sxm"),
        ("NVIDIA H100 PCIe", 79.1, "h100-pcie"),
        ("NVIDIA A100-SXM4-80GB", 79.15, "a100-80-sxm"),
        ("NVIDIA A100-SXM4-40GB", 39.4, "a100-40-sxm"),
        ("NVIDIA A100 80GB PCIe", 79.1, "a100-80-pcie"),
        ("NVIDIA H200", 139.8, "h200-sxm"),
        ("Tesla V100-SXM2-32GB", 31.7, "v100-32-sxm2"),
        ("AMD Instinct MI300X", 191.7, "mi300x"),
        ("NVIDIA B200", 178.4, "b200-sxm"),
        ("AMD EPYC 9654", 700, None),
        ("NVIDIA GeForce GTX 1080", 8, None),
    ],
)
def test_drivers_names_find_the_catalogue_row(name, gib, id):
    assert measure_fit.match(name, gib * 2**30) == id


def test_ctrl_c_keeps_what_was_measured_and_a_missing_kernel_is_skipped():
    from scantling_logs.measure.bench import Step

    def stop():
        raise KeyboardInterrupt

    def fail():
        raise RuntimeError("no kernel image\nmore")

    steps = [
        Step("gemm.bf16", "a", lambda: {"m": 1, "seconds": 0.123456}),
        Step("attention", "b", fail),
        Step("memory", "c", stop),
        Step("memory", "d", lambda: {}),
    ]
    curves, skipped, stopped = measure_curves.run(steps, show=False)
    assert curves == {"gemm": {"bf16": [{"m": 1, "seconds": 0.1235}]}}
    assert skipped == [{"step": "b", "why": "no kernel image"}]
    assert stopped == ["c", "d"]


def test_measured_constants_replace_the_chip_and_keep_the_software(tmp_path):
    (tmp_path / "c.yaml").write_text(file_of({"gemm": {"value": 0.6}, "hbm_share": 0.7}))
    override = calibration_file.read(tmp_path / "c.yaml")
    from scantling.physics.constants import calibration, gather

    bare = gather(A100.family, A100.id, "", override.offsets)
    assert bare.gemm == pytest.approx(0.6)
    assert bare.hbm_share == pytest.approx(0.7)
    for stack in ("megatron-core", "pytorch-fsdp"):
        kept = (
            calibration()["offsets"]
            .get("gemm", {})
            .get("pair", {})
            .get(f"{stack} on {A100.id}", 0.0)
        )
        assert gather(A100.family, A100.id, stack, override.offsets).gemm == pytest.approx(
            0.6 * math.exp(kept)
        )
        untouched = gather(A100.family, A100.id, stack)
        assert gather(A100.family, A100.id, stack, override.offsets).attention == pytest.approx(
            untouched.attention
        )


def test_a_design_runs_on_what_was_measured(tmp_path):
    (tmp_path / "slow.yaml").write_text(file_of({"gemm": 0.4}))
    (tmp_path / "design.yaml").write_text(DESIGN + "calibration: slow.yaml\n")
    slow, usual = Design.read(tmp_path / "design.yaml"), Design.from_yaml(DESIGN)
    assert Design.from_yaml(slow.to_yaml(), tmp_path) == slow
    assert slow.key() != Design.from_yaml(slow.to_yaml(), "/").key()
    import scantling

    a, b = scantling.assess(slow), scantling.assess(usual)
    assert a.step_s > 1.2 * b.step_s
    [said] = [x for x in a.as_dict()["assumed"] if x["field"] == "calibration"]
    assert said["value"] == "slow.yaml"
    assert "gemm 0.4 instead of 0." in said["why"]
    assert "NVIDIA A100-SXM4-80GB" in said["why"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("scantling: 1\n", "is not a calibration"),
        (file_of({"gem": 0.5}), "gemm"),
        (file_of({"gemm": -1}), "is not a measured value"),
        (file_of({"gemm": {"value": "fast"}}), "is not a measured value"),
        (file_of({"gemm": 0.01}), "times what is known"),
        (file_of({"gemm": 1.4}), "above the peak"),
        (file_of({}, accelerator="h100-sxm"), "was measured on h100-sxm, not on a100-80-sxm"),
        (file_of({}, accelerator="a101"), "a101"),
        (file_of({}, accelerator=None), "is missing"),
        (file_of([1]), "is not a mapping"),
    ],
)
def test_a_wrong_calibration_is_one_line(tmp_path, text, what):
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(DesignError, match="calibration") as e:
        prepare(Design.from_yaml(DESIGN + "calibration: c.yaml\n", tmp_path))
    assert what in str(e.value)
    assert "\n" not in str(e.value)


def test_a_missing_calibration_is_one_line(tmp_path):
    with pytest.raises(DesignError):
        prepare(Design.from_yaml(DESIGN + "calibration: none.yaml\n", tmp_path))


def test_without_pytorch_it_says_what_to_install(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(measure, "find_spec", lambda name: None)
    assert main(["measure", "-o", str(tmp_path / "c.yaml")]) == 2
    assert "scantling[measure]" in capsys.readouterr().err
    assert not (tmp_path / "c.yaml").exists()


@pytest.mark.skipif(torch_missing, reason="no PyTorch")
def test_measured_on_this_machine(tmp_path, capsys):
    path = tmp_path / "c.yaml"
    assert main(["measure", "--quick", "--device", "cpu", "-o", str(path)]) == 0
    data = load(path.read_text())
    assert data["device"]["accelerator"] is None
    assert data["constants"] == {}
    assert {"gemm", "memory", "attention", "launch"} <= set(data["curves"])
    assert all(p["seconds"] > 0 for points in data["curves"]["gemm"].values() for p in points)
    assert main(["measure", "--quick", "-o", str(path)]) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(torch_missing, reason="no PyTorch")
def test_collectives_under_torchrun(tmp_path):
    path = tmp_path / "c.yaml"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--nproc-per-node",
            "2",
            "-m",
            "scantling",
            "measure",
            "--quick",
            "--device",
            "cpu",
            "-o",
            str(path),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    points = load(path.read_text())["curves"]["collectives"]
    assert {p["op"] for p in points} == {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}
    assert all(p["ranks"] == 2 and p["seconds"] > 0 for p in points)
