"""`design` and `predict` of one plan give one answer."""

from functools import cache
from pathlib import Path

import pytest
import scantling as sc
from scantling.base.errors import DesignError
from scantling.cli.app import main
from scantling.physics.software import SWITCHES
from scantling.runs.plan_rows import inexpressible, plan_rows
from scantling.runs.run_columns import columns, plan_switches

DESIGNS = sorted((Path(__file__).parents[2] / "gallery/designs").glob("*.yaml"))
EXACT = 1e-9
# what a row that is filled in by hand takes from `design --json`: its switches stay blank
PLAN = (
    *("tp", "pp", "vpp", "cp", "ep", "etp", "dp", "sp", "micro_batch", "shard_group", "offload"),
    *("sharding", "schedule", "recompute", "recompute_layers", "cp_type", "layer_split"),
)
STATED = (
    *("scale_out", "accelerator", "n_devices", "devices_per_node", "stack", "precision"),
    "seq_len",
)


@cache
def figures(path):
    """A design's assessment, where a plan fits."""
    one = sc.assess(path)
    if not one.fits:
        pytest.skip("no plan fits")
    return one


@pytest.mark.parametrize("path", DESIGNS, ids=lambda p: p.stem)
def test_the_row_of_a_plan_is_predicted_as_the_design_says(path):
    one = figures(path)
    predicted = sc.predict(one)
    assert predicted.error.eq("").all()
    for row, chosen in zip(predicted.to_dict("records"), one.phases, strict=True):
        assert row["step_time_s"] == pytest.approx(chosen.step_s, rel=EXACT)
        # a row of a table says how many layers of each kind there are, not their order
        near = 0.01 if chosen.case.shape.order else EXACT
        assert row["memory_bytes"] == pytest.approx(float(chosen.memory.total), rel=near)
    if one.days is not None:
        assert predicted.days.sum() == pytest.approx(one.days, rel=EXACT)
        assert predicted.cost_usd.sum() == pytest.approx(one.cost_usd, rel=EXACT)


@pytest.mark.parametrize("path", DESIGNS, ids=lambda p: p.stem)
def test_a_row_filled_in_by_hand_is_predicted_as_the_design_says(path):
    """Without one switch of the software: what a design leaves to its stack a row leaves to it
    too."""
    one = figures(path)
    data = one.design.data()
    switches = {"plan": set(data.get("plan", {})) - {*PLAN}, "cluster": set(data["cluster"])}
    network = {"oversubscription", "scale_up_domain", "nics_per_node"}
    network |= {"scale_out_gbytes_per_s_per_device"}
    software = {"routing", "capacity_factor", "expert_skew", "node_limit", "effort"}
    if switches["plan"] or switches["cluster"] & network or software & set(data["job"]):
        pytest.skip("the design states a switch or a network of its own")
    for chosen, whole in zip(one.phases, plan_rows(one), strict=True):
        shape = {"model": data["model"]} if isinstance(data["model"], str) else whole
        row = {"id": "by hand", **shape, "global_batch_seqs": chosen.phase.global_batch}
        row |= {name: whole[name] for name in STATED} | {k: chosen.plan[k] for k in PLAN}
        # a list of modules of the plan's own is what these columns say
        row |= {name: whole[name] for name in whole if name.startswith("selective_")}
        (predicted,) = sc.predict({name: [value] for name, value in row.items()}).to_dict("records")
        assert predicted["step_time_s"] == pytest.approx(chosen.step_s, rel=EXACT)


@pytest.mark.parametrize("name", ("case-5-deepseek-v3", "llama-3.1-405b-long-context"))
def test_the_table_that_the_template_writes_of_a_design_is_predicted_to_the_digit(name, tmp_path):
    path = next(path for path in DESIGNS if path.stem == name)
    rows, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    assert main(["predict", "--template", str(path), "-o", str(rows)]) == 0
    one = sc.assess(path)
    predicted = sc.predict(rows)
    steps = [chosen.step_s for chosen in one.phases]
    assert predicted.step_time_s.tolist() == pytest.approx(steps, rel=EXACT)
    assert main(["predict", str(rows), "-o", str(out)]) == 0


def test_the_template_has_every_column_that_a_plan_has():
    every = {*columns(), *(switch.column for switch in plan_switches())}
    (row,) = plan_rows(sc.assess(next(p for p in DESIGNS if p.stem == "case-5-deepseek-v3")))
    assert {*PLAN, "recompute_share", "optimizer", "tokens"} <= every
    assert {*SWITCHES} <= row.keys()


BASE = {
    "scantling": 1,
    "name": "x",
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm", "devices": 64},
    "job": {"tokens": 1e12, "global_batch": 512},
}


@pytest.mark.parametrize(
    ("path", "value", "words"),
    (
        ("cluster.accelerator", {"like": "h100-sxm", "hbm_gb": 96}, "accelerator of its own"),
        ("cluster.sites", 2, "2 sites"),
        ("measured.step_s", 8.0, "measured"),
        ("plan", {"precision": "fp8", "keep_16bit": {"last": 4}}, "plan.keep_16bit"),
    ),
)
def test_what_no_row_can_say_is_said(path, value, words):
    one = sc.assess(sc.Design.from_data(BASE).change({path: value}))
    assert any(words in line for line in inexpressible(one, one.chosen))
    with pytest.raises(DesignError, match=words):
        plan_rows(one)


@pytest.mark.parametrize(
    "changes",
    (
        {"cluster.oversubscription": 7},
        {"cluster.in_network_reduction": True},
        {"cluster.measured.all_reduce_gbytes_per_s": 100},
        {"job.optimizer": "muon"},
        {"job.optimizer": "adamw-bf16", "job.precision": "fp8"},
        {"job.corpus": {"read_gbytes_per_s": 0.0001}},
        {"job.document_tokens": 1024},
        {"plan.recompute": "full", "plan.recompute_layers": 3},
        {"plan.gradients": "bf16", "plan.pp": 4, "plan.vpp": 2, "plan.recompute": "full"},
        {"stack": {"id": "megatron-core", "release": "25.09"}, "model": "mixtral-8x7b"},
    ),
)
def test_what_a_row_can_say_it_says(changes):
    one = sc.assess(sc.Design.from_data(BASE).change(changes))
    (row,) = sc.predict(one).to_dict("records")
    assert row["step_time_s"] == pytest.approx(one.step_s, rel=EXACT)
    assert row["days"] == pytest.approx(one.days, rel=EXACT)
