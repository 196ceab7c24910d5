"""Stages of models whose layers are not alike, and of layouts that a design gives."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scantling as sc
from hypothesis import given, strategies as st
from scantling.catalogue.models.entries import model, models
from scantling.catalogue.models.shape import shape_of
from scantling.design.design import Design, DesignError
from scantling.physics import layout
from scantling.physics.cases import Plan
from scantling.physics.gather import situation
from scantling.physics.memory.peak import memory, memory_by_stage
from scantling.physics.pipeline import stage_layers
from scantling.physics.step import step_time
from scantling.plans.enumerate import enumerate_plans
from scantling.plans.plan_names import plan_at
from scantling.plans.prepare import prepare

HYBRID = {
    "model": "nemotron-3-nano-30b-a3b",
    "cluster": {"accelerator": "h100-sxm", "devices": 64},
    "job": {"tokens": 1e12},
}


def worst(shares, bounds, tail):
    parts = [sum(shares[a:b]) for a, b in zip(bounds, bounds[1:])]
    return max([*parts[:-1], parts[-1] + tail])


HYBRIDS = sorted(name for name, known in models().items() if known.pattern)


def heaviest(shares, tail, pp, bounds):
    """Most of any stage, which has every pp-th run."""
    held = [sum(shares[a:b]) for a, b in zip(bounds, bounds[1:])]
    stages = [sum(held[stage::pp]) for stage in range(pp)]
    return max(*stages[:-1], stages[-1] + tail) if pp > 1 else sum(stages) + tail


@given(
    st.lists(st.floats(0.01, 1.0), min_size=4, max_size=9), st.integers(1, 4), st.floats(0.0, 1.0)
)
def test_no_other_cut_has_a_faster_slowest_run(shares, runs, tail):
    """Against every cut there is; and of those no slower, from the last run on, none leaves a run
    nearer to the mean of what is left."""

    def cuts(first, left):
        if left == 1:
            yield [len(shares)]
            return
        for end in range(first + 1, len(shares) - left + 2):
            for rest in cuts(end, left - 1):
                yield [end, *rest]

    def off_mean(cut, run):
        held = sum(shares[cut[run] : cut[run + 1]]) + tail * (run == runs - 1)
        left = sum(shares[: cut[run + 1]]) + tail * (run == runs - 1)
        return abs(held - left / (run + 1))

    found = layout.bounds(shares, runs, 1, tail)
    assert found[0] == 0 and found[-1] == len(shares) and len(found) == runs + 1
    every = [(0, *cut) for cut in cuts(0, runs)]
    best = min(worst(shares, cut, tail) for cut in every)
    assert worst(shares, found, tail) == pytest.approx(best, rel=1e-6)
    alike = [cut for cut in every if worst(shares, cut, tail) <= best]
    for run in range(runs - 1, -1, -1):
        alike = [cut for cut in alike if cut[run + 1 :] == found[run + 1 :]]
        nearest = min((off_mean(cut, run) for cut in alike), default=np.inf)
        assert off_mean(found, run) <= nearest + 1e-9


@pytest.mark.parametrize("name", HYBRIDS)
def test_every_run_of_a_pattern_has_a_layer_and_none_is_starved(name):
    """megatron-core 0.19, hybrid_layer_allocation.py: a segment between two | is the blocks of one
    virtual stage. Runs hold every layer once; a stage that the head does not lighten has at least
    half of the mean where the pattern's heaviest layer allows."""
    design = Design.from_data(HYBRID | {"model": name, "job": {"tokens": 1e12, "seq_len": 8192}})
    resolved = prepare(design)
    where = situation(resolved, resolved.main_phase)
    each, tail = layout.weights(where.cases(Plan()))
    for pp, vpp in itertools.product((2, 4, 8, 16), (1, 2, 3, 4)):
        if pp * vpp > len(each):
            continue
        for balanced in (0, 1):
            found = layout.laid(each, tail, pp, vpp, int(np.ceil(tail)), balanced, True)
            held = np.diff(found)
            assert found[0] == 0 and found[-1] == len(each) and len(held) == pp * vpp
            assert held.min() >= 1
            if balanced and vpp == 1 and pp < len(each) / 4:
                work = [sum(each[a:b]) for a, b in zip(found, found[1:])]
                assert min(work[:-1]) >= np.mean(work[:-1]) / 2, (pp, work)
        even, mine = (layout.laid(each, tail, pp, vpp, 0, k, True) for k in (0, 1))
        assert heaviest(each, tail, pp, mine) <= heaviest(each, tail, pp, even) * (1 + 1e-9)


@pytest.mark.parametrize("name", HYBRIDS)
def test_a_faster_chip_or_another_plan_never_cuts_otherwise(name):
    """Else the fastest plan on it could be slower than before by a layer on its slowest stage."""
    resolved = prepare(Design.from_data(HYBRID | {"model": name}))
    case = situation(resolved, resolved.main_phase).cases(Plan())
    chip = replace(
        case.chip,
        linear_flops=2 * case.chip.linear_flops,
        bf16_flops=2 * case.chip.bf16_flops,
        hbm_bytes_per_s=1.3 * case.chip.hbm_bytes_per_s,
        usable_bytes=2 * case.chip.usable_bytes,
    )
    usual = layout.weights(case)
    for other in (replace(case, chip=chip), case.with_plan(tp=4, cp=2, micro_batch=4, ep=2)):
        each, tail = layout.weights(other)
        assert each == pytest.approx(usual[0], rel=1e-9) and tail == pytest.approx(usual[1])


def test_alike_layers_are_cut_evenly_and_a_head_lightens_the_last_stage():
    """Llama 3, section 3.3.2: a layer fewer where the output head stands."""
    assert np.diff(layout.bounds([1.0] * 16, 4, 1, 0.0)).tolist() == [4, 4, 4, 4]
    assert np.diff(layout.bounds([1.0] * 15, 4, 1, 1.0)).tolist() == [4, 4, 4, 3]


def test_the_order_of_a_pattern_names_the_blocks_of_each_layer():
    """Nemotron 3 Nano: 52 layers, 6 of attention, 23 each of Mamba-2 and experts."""
    shape = shape_of(model("nemotron-3-nano-30b-a3b"))
    kinds = [shape.blocks[i].kind for layer in shape.order for i in layer]
    assert len(shape.order) == len(kinds) == 52
    assert [kinds.count(kind) for kind in ("attention", "mamba2", "moe")] == [6, 23, 23]
    assert not shape_of(model("llama-3.1-8b")).order


@given(
    st.integers(1, 130),
    st.integers(1, 16),
    st.integers(1, 6),
    st.booleans(),
    st.floats(0.0, 5.0),
    st.sampled_from((0, 3)),
)
def test_runs_hold_every_layer_once_and_a_stage_as_many_as_the_columns_say(
    layers, pp, vpp, balanced, tail, stands
):
    """The bounds of one plan against the closed form for columns of plans; Megatron-Core's rule:
    embedding and loss may stand alone."""
    if pp == 1:
        vpp = 1
    if layers + 2 * (pp * vpp > 2) < pp * vpp:
        return
    stands = int(np.ceil(tail)) if balanced else stands
    less = [int(x) for x in layout.fewer(layers, pp, stands)]
    found = layout.laid((1.0,) * layers, tail, pp, vpp, stands, balanced)
    held = np.diff(found)
    assert found[0] == 0 and found[-1] == layers and len(held) == pp * vpp
    assert (held >= 0).all()
    stages = held.reshape(vpp, pp).sum(axis=0)
    first, middle, last = (int(x) for x in stage_layers(layers, pp, *less))
    assert (stages[0], stages[-1]) == (first, last)
    assert max(stages[1:-1], default=0) == middle


@pytest.mark.parametrize("name", ["nemotron-3-nano-30b-a3b", "qwen3-next-80b-a3b", "llama-3.1-8b"])
def test_columns_of_plans_are_each_plan_alone(name):
    """Stage work, step and memory of a search's columns, row by row; the fullest device is that of
    the table by stage; a balanced split's slowest stage has no more to do than an even one's."""
    resolved = prepare(Design.from_data(HYBRID | {"model": name}))
    where = situation(resolved, resolved.main_phase)
    plan = enumerate_plans(resolved.model, resolved.main_phase, resolved.cluster)
    rng = np.random.default_rng(24)
    rows = rng.choice(np.flatnonzero(np.asarray(plan.pp) > 1), 12, replace=False)
    cases = where.cases(plan).take(rows)
    work, step, held = layout.layers_per_stage(cases), step_time(cases).total, memory(cases)
    for n, i in enumerate(rows):
        case = where.cases(plan_at(plan, i))
        alone = layout.layers_per_stage(case)
        assert [float(x[n]) for x in np.broadcast_arrays(*work)] == pytest.approx(
            [*map(float, alone)]
        )
        assert float(step_time(case).total) == pytest.approx(step[n], rel=1e-9)
        most = max(row["total"] for row in memory_by_stage(case))
        assert float(memory(case).total) == pytest.approx(held.total[n], rel=1e-9)
        assert most == pytest.approx(held.total[n], rel=1e-9)
        each, tail = layout.weights(case)
        even, balanced = (
            heaviest(each, tail, int(case.plan.pp), layout.runs(case.with_plan(layer_split=k)))
            for k in (0, 1)
        )
        assert case.shape.mtp_layers or balanced <= even * (1 + 1e-9)


def test_a_stage_holds_what_its_own_blocks_hold():
    """Attention saves more than a scan where its heads are wide; experts weigh where they stand:
    weights of a stage are those of its blocks, all stages together the model's."""
    given = HYBRID | {"plan": {"tp": 1, "ep": 1, "pp": 4, "vpp": 1, "dp": 16, "sharding": "none"}}
    resolved = prepare(Design.from_data(given))
    where = situation(resolved, resolved.main_phase)
    plan = enumerate_plans(
        resolved.model, resolved.main_phase, resolved.cluster, pins=given["plan"]
    )
    case = where.cases(replace(plan_at(plan, 0), layer_split=1))
    stages = memory_by_stage(case)
    runs = layout.stages_of(case)
    shape = case.shape
    parts = {b.kind: b.parameters() for b in shape.blocks}
    size = {k: sum(v for part, v in own.items() if part != "unused") for k, own in parts.items()}
    norms = size["stream"]
    for row, run in zip(stages, runs):
        inside = sum(n * size[kind] for kind, n in run["blocks"].items())
        ends = (size["embedding"] if row["stage"] == 0 else 0) + (
            size["head"] if row["stage"] == 3 else 0
        )
        assert row["weights"] / 2 == pytest.approx(inside + norms * row["layers"] + ends, rel=1e-3)
    assert sum(row["layers"] for row in stages) == 52
    assert len({tuple(run["blocks"].items()) for run in runs}) > 1


def test_a_given_layout_is_the_plans_own():
    """The same runs by hand and by the search: the same step, memory and plan."""
    found = sc.assess(Design.from_data(HYBRID | {"plan": {"pp": 4, "vpp": 1, "schedule": "1f1b"}}))
    assert found.plan["layout"][0][0] == 0 and found.plan["layout"][-1][1] == 52
    given = {k: found.plan[k] for k in ("tp", "pp", "vpp", "ep", "layout", "recompute", "schedule")}
    again = sc.assess(Design.from_data(HYBRID | {"plan": given}))
    assert again.plan == found.plan
    assert again.step_s == pytest.approx(found.step_s, rel=1e-9)
    even = sc.assess(
        Design.from_data(HYBRID | {"plan": given | {"layout": [], "layer_split": "even"}})
    )
    assert found.step_s < even.step_s
    lopsided = [[0, 40], [40, 44], [44, 48], [48, 52]]
    worse = sc.assess(Design.from_data(HYBRID | {"plan": {"pp": 4, "vpp": 1, "layout": lopsided}}))
    assert worse.step_s > 1.5 * found.step_s
    assert worse.as_dict(advice=False)["layers_by_stage"] == [40, 4, 4]


@pytest.mark.parametrize(
    "plan, said",
    [
        ({"layout": [[0, 20], [20, 50]]}, ["ends at 50", "52", "[[0, 20], [20, 52]]"]),
        ({"layout": [[0, 20], [22, 52]]}, ["[22, 52]", "begin at layer 20", "[20, 52]"]),
        ({"layout": [[0, 20], "x"]}, ["'x'", "pair of whole numbers"]),
        ({"layout": [[0, 26], [26, 52]], "pp": 4}, ["has 2", "pp x vpp"]),
        ({"layout": [[0, 52], [52, 52]], "pp": 2, "vpp": 1}, ["a run empty", "in every run"]),
        ({"layout": "0-26"}, ["0-26", "list of pairs"]),
    ],
)
def test_a_layout_that_cannot_be_is_one_line(plan, said):
    with pytest.raises(DesignError) as e:
        sc.assess(Design.from_data(HYBRID | {"plan": plan}))
    text = str(e.value)
    assert "plan.layout" in text and "\n" not in text
    assert all(word in text for word in said), text


@pytest.mark.parametrize("pp", [2, 4, 8])
def test_an_even_split_is_not_preferred_where_the_head_is_many_layers(pp):
    """Gemma-like vocabularies: 8B's head does the work of more than two layers, so a pipeline's
    last stage has fewer (Megatron-LM: --decoder-last-pipeline-num-layers is there for it)."""
    case = {"model": "llama-3.1-8b", "cluster": {"accelerator": "h100-sxm", "devices": 8 * pp}}
    given = case | {"job": {"tokens": 1e12, "global_batch": 64}, "plan": {"pp": pp, "vpp": 1}}
    given["plan"]["recompute"] = "none"
    found = sc.assess(Design.from_data(given))
    layers = found.as_dict(advice=False)["layers_by_stage"]
    assert layers[-1] < layers[0]


def test_no_plan_leaves_a_virtual_stage_of_a_pattern_empty():
    """Every plan that is searched, and one that is asked for."""
    resolved = prepare(Design.from_data(HYBRID))
    plan = enumerate_plans(resolved.model, resolved.main_phase, resolved.cluster)
    assert np.max(plan.pp * plan.vpp) <= 52
    asked = HYBRID | {"cluster": {"accelerator": "h100-sxm", "devices": 216}}
    asked |= {"job": {"tokens": 1e12, "global_batch": 27 * 8}}
    with pytest.raises(DesignError, match="in a pattern every part has a layer of its own"):
        sc.assess(Design.from_data(asked | {"plan": {"pp": 27, "vpp": 2}}))
