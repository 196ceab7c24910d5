"""Measured steps of a site become a calibration: the same model is foretold better, no other
worse."""

import json
import math
from dataclasses import replace

import pytest
import scantling as sc
import yaml
from scantling.cli import main
from scantling.logs.site import of_table
from scantling.physics import calibration_file

HEADER = (
    "id,model,accelerator,n_devices,seq_len,global_batch_seqs,precision,tp,pp,micro_batch,stack,"
    "measured_tokens_per_s_per_device"
)
RUN = "llama-3.1-70b,h100-sxm,{devices},8192,1024,bf16,8,4,1,"
DESIGN = """
model: {model}
cluster: {{accelerator: h100-sxm, devices: 512}}
job: {{tokens: 1.0e12, seq_len: 8192, global_batch: 1024, precision: bf16}}
plan: {{tp: 8, pp: 4, micro_batch: 1}}
"""


def table(tmp_path, rates, name="runs.csv"):
    rows = [f"{i},{RUN.format(devices=512 * (i + 1))},{rate}" for i, rate in enumerate(rates)]
    path = tmp_path / name
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return path


def foretold(tmp_path, path, *more):
    out = tmp_path / "out.csv"
    assert main(["predict", str(path), "-o", str(out), *more]) == 0
    lines = [line.split(",") for line in out.read_text().splitlines()]
    return {
        k: float(v)
        for k, v in zip(lines[0], lines[1])
        if k in ("step_time_s", "mfu_low", "mfu_high", "mfu")
    }


@pytest.fixture
def slow_site(tmp_path):
    """A site whose steps take a quarter longer than published runs say."""
    path = table(tmp_path, [1.0])
    before = foretold(tmp_path, path)
    rate = 1024 * 8192 / 512 / before["step_time_s"] / 1.25
    path = table(tmp_path, [rate])
    site = tmp_path / "site.yaml"
    assert main(["learn", str(path), "-o", str(site)]) == 0
    return path, site, before


def test_one_run_moves_most_of_the_way_and_narrows_the_band(slow_site, tmp_path):
    path, site, before = slow_site
    after = foretold(tmp_path, path, "--calibration", str(site))
    weight = 0.13**2 / (0.13**2 + 0.07**2)
    assert after["step_time_s"] / before["step_time_s"] == pytest.approx(1.25**weight, rel=1e-3)
    width = {n: (x["mfu_high"] - x["mfu_low"]) / x["mfu"] for n, x in (("b", before), ("a", after))}
    assert width["a"] < width["b"] and width["a"] <= 0.30


def test_more_runs_are_more_certain(tmp_path):
    bands = []
    for count in (1, 3):
        site = tmp_path / f"{count}.yaml"
        assert main(["learn", str(table(tmp_path, [700.0] * count)), "-o", str(site)]) == 0
        low, high = yaml.safe_load(site.read_text())["steps"]["band"]
        bands.append(high / low)
    assert bands[1] < bands[0]


def test_no_name_of_a_log_enters_the_calibration(slow_site):
    path, site, _ = slow_site
    said = site.read_text()
    assert "llama" not in said and "runs.csv" not in said and str(path.parent) not in said
    assert set(yaml.safe_load(said)) == {
        "scantling_calibration",
        "made",
        "device",
        "constants",
        "steps",
    }


def design(tmp_path, model, more=""):
    path = tmp_path / "design.yaml"
    path.write_text(DESIGN.format(model=model) + more)
    return sc.assess(path)


def test_a_design_names_the_calibration(slow_site, tmp_path):
    assert slow_site[1].name == "site.yaml"
    usual, own = (design(tmp_path, "llama-3.1-70b", m) for m in ("", "calibration: site.yaml\n"))
    assert own.band_tier == "measured here" and usual.band_tier != "measured here"
    assert own.step_s / usual.step_s == pytest.approx(1.19, abs=0.05)
    other, same = (design(tmp_path, "llama-3.1-8b", m) for m in ("", "calibration: site.yaml\n"))
    assert same.step_s == other.step_s and same.band_tier == other.band_tier


def test_a_broken_calibration_is_refused(slow_site, tmp_path, capsys):
    path, site, _ = slow_site
    site.write_text(site.read_text().replace("band:", "bend:"))
    assert main(["predict", str(path), "-o", str(tmp_path / "x"), "--calibration", str(site)]) == 2
    assert "scantling learn -o" in capsys.readouterr().err


def test_a_log_with_the_design_of_its_run(tmp_path, capsys):
    """The log has the step and no plan; the design says the rest."""
    lines = (
        f" iteration {i:8d}/ 50 | elapsed time per iteration (ms): 25000.0 | "
        "global batch size: 1024 |"
        for i in range(1, 20)
    )
    log = tmp_path / "job.out"
    log.write_text("\n".join(lines))
    (tmp_path / "design.yaml").write_text(DESIGN.format(model="llama-3.1-70b"))
    site = tmp_path / "site.yaml"
    wanted = ["learn", str(log), "-o", str(site)]
    assert main(wanted) == 2 and "--design FILE" in capsys.readouterr().err
    assert main([*wanted, "--design", str(tmp_path / "design.yaml")]) == 0
    assert yaml.safe_load(site.read_text())["steps"]["factor"] > 1.05


def test_a_step_stands_beside_what_is_possible_and_beside_published_runs(tmp_path, capsys):
    """25 s a step of Llama 3.1 70B on 512 H100: slower than NVIDIA's runs of it, mostly by tp 8."""
    lines = (
        f" iteration {i:8d}/ 50 | elapsed time per iteration (ms): 25000.0 |" for i in range(1, 20)
    )
    (tmp_path / "job.out").write_text("\n".join(lines))
    (tmp_path / "design.yaml").write_text(DESIGN.format(model="llama-3.1-70b"))
    words = ["learn", str(tmp_path / "job.out"), "--design", str(tmp_path / "design.yaml")]
    assert main([*words, "--json"]) == 0
    (got,) = json.loads(capsys.readouterr().out)
    believed = got["believed"]
    assert believed["low_s"] < believed["step_s"] < believed["high_s"] < got["step_s"]
    assert believed["step_s"] + believed["unexplained_s"] == pytest.approx(got["step_s"])
    assert sum(believed["parts_s"].values()) == pytest.approx(believed["step_s"], rel=0.05)
    nearest = got["published"][0]
    assert nearest["ratio"] < nearest["ratio_foretold"] < 1
    assert nearest["differs"] and nearest["source"]
    assert max(nearest["explains"], key=nearest["explains"].get) == "tp"
    assert sum(nearest["explains"].values()) == pytest.approx(1, abs=0.1)
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "believed possible" in said and "times the MFU of" in said


def test_a_measured_step_tells_less_of_steps_made_of_other_parts(slow_site):
    """Half of the parts' time elsewhere: e^-2 of what is known of the measured step's own parts."""
    override = calibration_file.read(slow_site[1])
    (_, (point,)) = of_table(slow_site[0])
    assert override.near(point.case) == pytest.approx(1.0, abs=0.01)
    one_part = replace(override, steps={**override.steps, "shares": {"dp": 1.0}})
    assert one_part.near(point.case) < math.exp(-3)
    assert override.narrowed(0.5, 2.0, point.case)[1] < one_part.narrowed(0.5, 2.0, point.case)[1]


def test_a_table_of_collectives_moves_the_links_for_every_model(tmp_path, capsys):
    """nccl-tests, all_reduce_perf on 8 H100: 360 GB/s of bus bandwidth is what rings reach over
    NVSwitch; at 240 GB/s tensor parallelism costs more, whatever the model."""
    head = "# nccl-tests version 2.13.8\n# Collective test starting: all_reduce_perf\n" + "".join(
        f"#  Rank  {i} Group  0 Pid   10{i} on   node-0 device  {i} [0x1b] NVIDIA H100 80GB HBM3\n"
        for i in range(8)
    )
    steps = {}
    for bus in (240.0, 360.0):
        rows = ""
        for size in (2**k for k in range(26, 34)):
            result = f"{size / bus / 1e3 * 1.75:9.1f} {bus / 1.75:7.2f} {bus:7.2f} 0 "
            rows += f"{size:12d} {size // 4:12d} float sum -1 {result * 2}\n"
        (tmp_path / "all_reduce.log").write_text(head + rows)
        site = tmp_path / "site.yaml"
        assert main(["learn", str(tmp_path / "all_reduce.log"), "-o", str(site)]) == 0
        said = yaml.safe_load(site.read_text())
        assert "steps" not in said and said["device"]["accelerator"] == "h100-sxm"
        runs = table(tmp_path, [500.0])
        steps[bus] = foretold(tmp_path, runs, "--calibration", str(site))["step_time_s"]
    assert steps[240.0] > 1.03 * steps[360.0]
