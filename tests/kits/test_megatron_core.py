"""What Megatron-Core makes of a plan, held to how Megatron-Core itself reads it."""

import re
from dataclasses import replace

import pytest
from corpus import DENSE, MLA, MOE, spec
from hypothesis import given, strategies as st
from scantling import Design, assess
from scantling_kits import framework, kits
from scantling_kits.frameworks import megatron_core as core
from scantling_kits.launched import launch_plan


def launched(data, to="megatron"):
    return launch_plan(assess(Design.from_data(data | {"name": "x"})), framework(to), "slurm", 0)


@pytest.fixture(scope="module")
def experts():
    return launched(
        spec(
            model=MOE,
            cluster=dict(accelerator="gb200-nvl72", devices_per_node=4, scale_up_domain=64),
            plan=dict(tp=1, pp=1, ep=8, etp=1, sharding="zero1"),
            job=dict(precision="mxfp8", effort="tuned", routing="forced"),
            stack={"id": "megatron-core", "release": "26.08"},
        )
    )


@given(st.lists(st.integers(0, 1), min_size=1))
def test_runs_of_layers_are_the_expression_that_megatron_evaluates(kinds):
    """arguments.py, moe_freq_type: "a string containing a Python list expression"."""
    assert eval(core.runs_of(kinds)) == kinds


@pytest.mark.parametrize("further", [0, 1])
def test_a_layout_has_every_layer_once(further):
    """Megatron-Core, pipeline_parallel_layer_layout.py: E embedding, t decoder, m MTP, L loss, |
    the end of a virtual stage."""
    model = MLA | dict(mtp_layers=further)
    plan = dict(tp=1, pp=4, vpp=1, ep=8, etp=1, sharding="zero1")
    launch = launched(spec(model=model, plan=plan))
    layout = core.layout(launch)
    counts = {letter: layout.count(letter) for letter in "EtmL|"}
    assert counts == {"E": 1, "t": model["layers"], "m": further, "L": 1, "|": 3}
    assert layout.startswith("E") and layout.endswith("L")


def test_deepep_is_for_boards_and_hybridep_for_racks(experts):
    """DeepEP's own README: "intranode" kernels for NVLink of eight; HybridEP for NVL72."""
    assert core.dispatcher(experts) == "hybridep"
    chip = replace(experts.cluster.accelerator, scale_up_domain_max=8)
    board = replace(experts.cluster, accelerator=chip, devices_per_node=8, scale_up_domain=8)
    assert core.dispatcher(replace(experts, cluster=board)) == "deepep"
    whole = replace(experts, plan=replace(experts.plan, ep=1))
    assert core.dispatcher(whole) == ""


def test_captured_graphs_need_fixed_shapes(experts):
    """transformer_config.py: CUDA graphs of whole iterations want experts whose rows are bounded;
    Megatron-FSDP and optimizers on the host run outside any graph."""
    assert core.graphs(experts) == "whole"
    fully = replace(experts, plan=replace(experts.plan, sharding="zero3"))
    host = replace(experts, plan=replace(experts.plan, offload="optimizer"))
    other = replace(experts, phase=replace(experts.phase, precision="bf16"))
    assert [core.graphs(launch) for launch in (fully, host, other)] == ["", "", ""]
    assert core.graphs_note(experts) and not core.graphs_note(fully)
    assert "graphs of the whole iteration" in core.unset_options(fully, "")


def test_full_recompute_counts_layers_from_the_first_of_each_virtual_stage():
    """arguments.py: `uniform` repeats all layers in groups, `block` the first of a stage."""
    plan = dict(tp=4, pp=2, vpp=1, recompute="full", recompute_layers=5, sharding="zero1")
    launch = launched(spec(model=DENSE, plan=plan))
    assert core.full_recompute(launch) == ("block", 5)
    whole = replace(launch, plan=replace(launch.plan, recompute_layers=16))
    assert core.full_recompute(whole) == ("uniform", 1)


def test_every_kit_decays_weights_by_what_its_page_says():
    """OptimizerParamScheduler.step of Megatron-Core: param_group["weight_decay"] is its own, of
    start_wd to end_wd, whatever the optimizer has; Megatron-Bridge's _pretrain_common has 0.033
    there, Megatron-LM takes both from --weight-decay (arguments.py)."""
    files = {
        to: kits(assess(Design.from_data(spec(plan=dict(tp=8, pp=2)) | {"name": "x"})), to)
        for to in ("megatron", "megatron-bridge")
    }
    (said,) = {
        *re.findall(r"weight decay ([\d.]+)", "".join(f["assumptions.md"] for f in files.values()))
    }
    assert f"--weight-decay {said}\n" in files["megatron"]["megatron.args"]
    given = dict(
        line.split("=", 1) for line in files["megatron-bridge"]["bridge.overrides"].splitlines()
    )
    for key in (
        "optimizer.weight_decay",
        "scheduler.start_weight_decay",
        "scheduler.end_weight_decay",
    ):
        assert given[key] == said
