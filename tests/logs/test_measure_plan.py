"""What to measure for a design: the order, the kit, and what learns from it."""

import importlib.util
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scantling as sc
import yaml
from scantling.cli import main
from scantling.physics.learned import slopes
from scantling.verdict.assess import assess
from scantling_logs.measure.network_price import all_reduce_rate, fabric_price, flap_price
from scantling_logs.measure.sizes import of_model, small
from scantling_logs.measure.worth import experiments, field_of, left_of, order, target

GALLERY = Path(__file__).parents[2] / "gallery/designs"
DESIGN = """
name: two hundred
model: llama-3.1-70b
cluster: {accelerator: h100-sxm, devices: 512}
job: {tokens: 1.0e12, seq_len: 8192, global_batch: 1024, precision: bf16}
plan: {tp: 8, pp: 4, micro_batch: 1}
"""


@pytest.fixture(scope="module")
def assessment():
    return assess(sc.Design.from_yaml(DESIGN))


@pytest.fixture
def kit(tmp_path):
    (tmp_path / "run.yaml").write_text(DESIGN)
    folder = tmp_path / "kit"
    words = [
        "measure",
        "--plan",
        str(tmp_path / "run.yaml"),
        "--budget",
        "90min",
        "-o",
        str(folder),
    ]
    assert main(words) == 0
    return folder


def test_each_measurement_narrows_and_the_order_is_by_device_hour(assessment):
    """More is never less; the first of the order removes most for a device-hour of all."""
    among = experiments(assessment)
    field = field_of(target(assessment), among)
    chosen = order(field, among, 2.0)
    widths = [left_of(field, chosen[:i]) for i in range(len(chosen) + 1)]
    assert widths[0] == 1 and np.all(np.diff(widths) <= 0) and widths[-1] < 0.97
    worth = [(1 - left_of(field, [i])) / e.device_hours for i, e in enumerate(among)]
    assert chosen[0] == int(np.argmax(worth)) and len(chosen) <= 5
    assert sum(among[i].hours for i in order(field, among, 0.3)) <= 0.3


def test_steps_of_the_model_tell_of_what_no_kernel_does(assessment):
    """Steps of fewer layers on two nodes remove more than any one kernel or link."""
    among = experiments(assessment)
    field = field_of(target(assessment), among)
    gone = {e.name: 1 - left_of(field, [i]) for i, e in enumerate(among)}
    steps = max(value for name, value in gone.items() if name.startswith("steps"))
    assert steps > max(value for name, value in gone.items() if not name.startswith("steps"))


def test_the_kit_is_whole(kit):
    """Scripts that sh reads, a design for each measurement of steps, one line that learns."""
    for name in ("run.sh", "smoke.sh", "learn.sh"):
        assert subprocess.run(["sh", "-n", str(kit / name)], check=False).returncode == 0
        assert os.access(kit / name, os.X_OK)
    for path in kit.glob("*/design.yaml"):
        small = assess(sc.Design.read(path))
        assert small.fits and small.plan["tp"] == 8
        assert small.resolved.cluster.devices <= 16 and small.resolved.model.layers <= 8
    page = (kit / "README.md").read_text()
    assert "device-hours" in page and "site.yaml" in page


def test_the_order_alone_is_printed_and_nothing_is_written(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("run.yaml").write_text(DESIGN)
    assert main(["measure", "--plan", "run.yaml", "--budget", "2h", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"run", "device_hours", "narrows_usd", "narrows_days"} <= rows[0].keys()
    left = [row["interval_left"] for row in rows]
    assert left == sorted(left, reverse=True) and 1 <= len(rows) <= 5
    assert [*tmp_path.iterdir()] == [tmp_path / "run.yaml"]


@pytest.mark.parametrize("budget", ["soon", "0h", "-2h", "2 fortnights", "1e9h"])
def test_a_budget_that_is_no_span_is_one_line(budget, tmp_path, capsys):
    (tmp_path / "run.yaml").write_text(DESIGN)
    words = ["measure", "--plan", str(tmp_path / "run.yaml"), f"--budget={budget}"]
    assert main([*words, "-o", str(tmp_path / "kit")]) == 2
    assert "--budget" in capsys.readouterr().err and not (tmp_path / "kit").exists()


def test_files_of_measurements_and_steps_are_learnt_together(tmp_path, capsys):
    """Links measured at two thirds of the usual, and a table of steps: both are in the site's
    file."""
    links = {"value": 0.6, "unit": "", "offset": 0.0, "prior": 1.0, "from": "test"}
    data = {"scantling_calibration": 2, "device": {"accelerator": "h100-sxm"}}
    (tmp_path / "links.yaml").write_text(
        yaml.safe_dump(data | {"constants": {"scale_up_share": links}})
    )
    head = (
        "id,model,accelerator,n_devices,seq_len,global_batch_seqs,precision,tp,pp,micro_batch,stack"
    )
    row = "0,llama-3.1-70b,h100-sxm,512,8192,1024,bf16,8,4,1,megatron-core,700"
    (tmp_path / "runs.csv").write_text(f"{head},measured_tokens_per_s_per_device\n{row}\n")
    files = [str(tmp_path / name) for name in ("links.yaml", "runs.csv")]
    assert main(["learn", *files, "--json", "-o", str(tmp_path / "site.yaml")]) == 0
    said = json.loads(capsys.readouterr().out)[-1]["summary"]
    assert said["used"] == 1 and said["left_out"] == []
    link = said["constants"]["scale_up_share"]
    assert link["prior"] == pytest.approx(1, abs=0.3) and link["posterior"] < link["prior"]
    assert 0 < said["constants"]["gemm"]["spread"] < 1
    site = yaml.safe_load((tmp_path / "site.yaml").read_text())
    assert site["constants"]["scale_up_share"]["value"] == pytest.approx(0.6)
    assert site["steps"]["runs"] == 1
    at = site["site"]["constants"].index("scale_up_share")
    assert site["site"]["open"][at] == pytest.approx(0.02)


def test_a_design_in_the_folder_of_a_log_is_that_of_its_run(tmp_path):
    folder = tmp_path / "steps"
    folder.mkdir()
    (folder / "design.yaml").write_text(DESIGN)
    lines = ["using world size: 512, tensor-model-parallel size: 8"]
    lines += [
        f" iteration {i:8d}/ 50 | elapsed time per iteration (ms): 25000.0 |" for i in range(1, 20)
    ]
    (folder / "job.out").write_text("\n".join(lines))
    site = tmp_path / "site.yaml"
    assert main(["learn", str(folder), "-o", str(site)]) == 0
    assert yaml.safe_load(site.read_text())["steps"]["factor"] > 1.05


def test_a_slow_fabric_and_flapping_links_have_a_price(assessment):
    """The rate that is asked for is what the model says rings reach; half of it costs days, as ten
    times the flaps cost ten times the days."""
    fabric, flaps = fabric_price(assessment), flap_price(assessment)
    cluster = assessment.resolved.cluster
    line = cluster.scale_out_bytes_per_s * cluster.devices_per_node
    assert 0.4 * line < all_reduce_rate(assessment) <= 1.01 * line
    assert fabric.days > 0 and fabric.usd > 0
    assert flaps.days_at_ten == pytest.approx(10 * flaps.days, rel=0.05) and flaps.days > 0


def test_the_products_of_a_model_are_those_of_its_layers(assessment):
    """Llama 3.1 70B under tp 8: 64 heads of queries, 8 of keys and values, 28,672 wide inside."""
    products = of_model(assessment.resolved.model, 8192, 8)
    assert {(p.n, p.k) for p in products} == {
        (1280, 8192),
        (8192, 1024),
        (7168, 8192),
        (8192, 3584),
        (16032, 8192),
    }
    assert {p.m for p in products} == {8192} and max(max(p) for p in small(products)) <= 512


@pytest.mark.parametrize("name", ["llama-3.1-405b", "case-5-deepseek-v3"])
def test_slopes_of_one_case_are_those_of_a_column(name):
    """All constants in one pass, and one after the other."""
    case = assess(sc.Design.read(GALLERY / f"{name}.yaml")).chosen.case
    names = ("gemm", "attention", "scale_out_share", "layer_host_s", "straggler", "overall")
    both = replace(case, plan=replace(case.plan, dp=np.full(2, case.plan.dp)))
    alone, column = slopes(case, names), slopes(both, names)
    assert column == pytest.approx(np.repeat(alone, 2, axis=0), abs=1e-9)
    assert alone[0, -1] == pytest.approx(1, abs=0.05) and (alone[0, :3] <= 0).all()


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no PyTorch")
def test_layers_products_and_a_save_are_timed_on_this_machine(tmp_path):
    words = ["measure", "--device", "cpu", "--quick", "--store", str(tmp_path)]
    words += ["--only", "layer", "--only", "save", "-o", str(tmp_path / "here.yaml")]
    assert main(words) == 0
    curves = yaml.safe_load((tmp_path / "here.yaml").read_text())["curves"]
    assert set(curves) == {"layer", "save"}
    (layer,) = curves["layer"]
    assert 0 < layer["forward_s"] < layer["seconds"]
    assert curves["save"][0]["seconds"] > 0 and not list(tmp_path.glob(".measure-*"))
