"""Designs that pass through the model together are what each is alone."""

import numpy as np
import pytest
from scantling.advise import sweeps
from scantling.advise.design_json import as_dict
from scantling.base.errors import DesignError
from scantling.base.records import joined, take
from scantling.catalogue.words import STEP_PARTS
from scantling.design.design import Design
from scantling.physics.gather import cases_together, situation
from scantling.physics.memory.peak import memory
from scantling.physics.step import step_time
from scantling.plans import space as plans
from scantling.plans.evaluate import evaluate, evaluate_together, legal
from scantling.plans.prepare import prepare
from scantling.verdict.assess import assess, assess_together
from scantling.verdict.settle import Pick, settled

ROUNDING = 1e-9  # relative: a sum over columns and one of numbers differ in the last digits
H100 = {"accelerator": "h100-sxm", "devices": 512}
JOB = {"tokens": 1e12, "seq_len": 8192, "global_batch": 512}
SMALL = {"model": "llama-3.1-8b", "cluster": H100, "job": JOB}
LARGE = {
    "model": "llama-3.1-405b",
    "cluster": {**H100, "devices": 16384},
    "job": {**JOB, "global_batch": 2048},
}
PHASES = [
    {"tokens": 1e12, "seq_len": 8192, "global_batch": 512},
    {"tokens": 1e11, "seq_len": 32768, "global_batch": 64},
]
DESIGNS = {
    "small": SMALL,
    "twice as many": {**SMALL, "cluster": {**H100, "devices": 1024}},
    "another batch": {**SMALL, "job": {**JOB, "global_batch": 768}},
    "another length": {**SMALL, "job": {**JOB, "seq_len": 4096}},
    "another format": {**SMALL, "job": {**JOB, "precision": "fp8"}},
    "another chip": {**SMALL, "cluster": {"accelerator": "a100-80-sxm", "devices": 512}},
    "another stack": {**SMALL, "stack": "torchtitan"},
    "large": LARGE,
    "two sites": {**SMALL, "cluster": {**H100, "sites": 2}},
    "phases": {**SMALL, "job": {"phases": PHASES}},
    "experts": {**SMALL, "model": "mixtral-8x7b"},
    "layers in order": {**SMALL, "model": "nemotron-3-nano-30b-a3b"},
    "no tokens": {**SMALL, "job": {"seq_len": 8192, "global_batch": 512}},
    "a deadline missed": {**LARGE, "constraints": {"deadline_days": 1}},
    "a pin that does not fit": {**LARGE, "plan": {"tp": 1, "pp": 1, "offload": "none"}},
    "state on the host": {**LARGE, "cluster": {**H100, "devices": 64}},
    "fits nowhere": {**LARGE, "cluster": {**H100, "devices": 8}},
    "a pin that breaks a rule": {**SMALL, "plan": {"tp": 3}},
    "measured": {**SMALL, "measured": {"mfu": 0.4}},
    "modules of its own": {**SMALL, "plan": {"recompute_modules": ["core_attn", "mlp_act"]}},
}


def flat(value, path=""):
    """{path: value} of nested data, but how long the search took."""
    if isinstance(value, dict):
        items = [(key, one) for key, one in value.items() if key != "search_seconds"]
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    else:
        return {path: value}
    return {k: v for key, one in items for k, v in flat(one, f"{path}.{key}").items()}


def alike(one, other):
    """Whether two flat answers say the same: words to the letter, numbers within ROUNDING."""
    assert one.keys() == other.keys()
    for path, value in one.items():
        if isinstance(value, float):
            assert other[path] == pytest.approx(value, rel=ROUNDING, abs=1e-12, nan_ok=True), path
        else:
            assert other[path] == value, path


@pytest.mark.parametrize("space", [plans.COARSE, plans.DEFAULT], ids=["coarse", "default"])
def test_designs_assessed_together_are_what_each_is_alone(space):
    designs = [Design.from_data(data) for data in DESIGNS.values()]
    for name, design, answer in zip(DESIGNS, designs, assess_together(designs, space=space)):
        if isinstance(answer, DesignError):
            with pytest.raises(DesignError) as refused:
                assess(design, space=space)
            assert str(answer) == str(refused.value) and name == "a pin that breaks a rule"
            continue
        alone = assess(design, space=space)
        alike(flat(as_dict(alone, advice=False)), flat(as_dict(answer, advice=False)))


def test_every_cell_of_a_map_is_its_design_assessed_alone():
    design = Design.from_data(LARGE)
    over = {"cluster.devices": [2048, 10240, 16384], "job.global_batch": [512, 1536, 4096]}
    for cell in sweeps.sweep(design, over, space=plans.COARSE):
        alone = assess(design.change(dict(zip(over, cell.at))), space=plans.COARSE)
        alike(flat(alone.figures(*sweeps.KEYS, "plan")), flat(cell.figures))
        assert (cell.verdict, cell.memory_share) == (
            alone.verdict,
            pytest.approx(alone.memory_share, rel=ROUNDING),
        )


def test_a_map_goes_over_values_that_are_no_keys():
    design = Design.from_data(LARGE)
    over = {"plan.recompute_modules": [["core_attn"], ["core_attn", "mlp_act"]]}
    rows = sweeps.sweep(design, over, space=plans.COARSE)
    assert [row.at for row in rows] == [(["core_attn"],), (["core_attn", "mlp_act"],)]


def asked(data):
    """The situation of a design and the legal plans of the coarse space."""
    resolved = prepare(Design.from_data(data))
    where = situation(resolved, resolved.phases[0])
    return where, legal(where, plans.offered(plans.COARSE, resolved))


def test_searches_together_are_what_each_is_alone():
    asks = [asked(data) for name, data in DESIGNS.items() if "rule" not in name]
    for ask, search in zip(asks, evaluate_together(asks)):
        alone = evaluate(*ask)
        assert search.reason.tolist() == alone.reason.tolist()
        assert np.allclose(search.total_bytes, alone.total_bytes, rtol=ROUNDING, atol=0)
        assert np.allclose(search.step_s, alone.step_s, rtol=ROUNDING, atol=0)
        assert (search.best(), search.simplest()) == (alone.best(), alone.simplest())
        assert search.counts["rejected"] == alone.counts["rejected"]


@pytest.mark.parametrize("name", ["layers in order", "experts", "small"])
def test_plans_laid_out_together_are_what_each_is_alone(name):
    where, plan = asked(DESIGNS[name])
    search = evaluate(where, plan)
    rows = search.order[:: max(len(search.order) // 40, 1)].tolist()
    picks = [Pick(search=search, row=row, fits=True, measured={}) for row in rows]
    for pick, one in zip(picks, settled(picks)):
        (alone,) = settled([pick])
        assert one.step_s == pytest.approx(search.step_s[pick.row], rel=ROUNDING)
        assert float(one.memory.total) == pytest.approx(search.total_bytes[pick.row], rel=ROUNDING)
        for part in STEP_PARTS:
            own = float(vars(alone.step)[part])
            assert float(vars(one.step)[part]) == pytest.approx(own, rel=ROUNDING, abs=1e-12)
        assert (one.gang.ratios is None) == (alone.gang.ratios is None)
        if alone.gang.ratios is not None:
            assert np.allclose(one.gang.ratios, alone.gang.ratios, rtol=ROUNDING, atol=0)


def test_rows_of_joined_cases_are_the_cases():
    one, two = asked(SMALL), asked({**SMALL, "cluster": {**H100, "devices": 1024}})
    rows = [np.size(plan.tp) for _, plan in (one, two)]
    table = cases_together([one, two], rows)
    assert len(table) == sum(rows) and table.constants is one[0].cases(one[1]).constants
    parts = (take(table, slice(rows[0])), take(table, slice(rows[0], None)))
    assert joined(parts, rows).job.global_batch == 512.0
    for (where, plan), part in zip((one, two), parts):
        own = where.cases(plan)
        assert np.array_equal(np.asarray(part.plan.dp), np.asarray(own.plan.dp))
        assert np.allclose(step_time(part).total, step_time(own).total, rtol=ROUNDING, atol=0)
        assert np.allclose(memory(part).total, memory(own).total, rtol=ROUNDING, atol=0)
