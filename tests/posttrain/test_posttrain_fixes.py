"""Changes that make a tuning design do: none is said that does not hold when it is made."""

import json
from dataclasses import replace

import pytest
from scantling.cli import main
from scantling.design.design import Design
from scantling.design.methods import of_method
from scantling_posttrain.answering import moves, posttrain
from scantling_posttrain.first import to_find_out
from scantling_posttrain.trainer import full_tuning
from scantling_posttrain.tuning import frozen_stream

MET = ("feasible", "feasible-at-risk")


def design_of(model, devices, job, accelerator="h100-sxm", **sections):
    cluster = {"accelerator": accelerator, "devices": devices}
    return Design.from_data({"model": model, "cluster": cluster, "job": job, **sections})


SAMPLES = {"samples": 1e5, "mean_tokens": 900}
TOO_LARGE = design_of("llama-3.1-70b", 8, {"method": "sft", "data": SAMPLES})
PINNED = design_of(
    "llama-3.1-8b",
    8,
    {"method": "sft", "data": SAMPLES},
    plan={"tp": 1, "micro_batch": 16, "recompute": "none"},
)
LONG = design_of(
    "llama-3.1-8b",
    2,
    {"method": "sft", "data": {**SAMPLES, "p95_tokens": 24_000, "packed": False}},
    plan={"recompute": "none", "tp": 2, "sharding": "none"},
)
LATE = design_of(
    "llama-3.1-8b",
    8,
    {"method": "grpo", "rollout": {"prompts": 256, "mean_response": 2000, "max_response": 8192}},
    constraints={"deadline_days": 1},
)
PADDED = design_of(
    "llama-3.1-8b",
    8,
    {"method": "sft", "data": {"samples": 3e6, "mean_tokens": 900, "packed": False}},
    constraints={"deadline_days": 0.4},
)
CRAMPED = design_of("llama-3.1-70b", 16, {"method": "ppo"})


def made(design, fix):
    """The design with a change made."""
    sets = dict(fix.set)
    method = sets.pop("job.method", None)
    return (design if method is None else of_method(design, method)).change(sets)


@pytest.mark.parametrize("design", [TOO_LARGE, PINNED, LONG, LATE, PADDED, CRAMPED])
def test_every_change_comes_to_what_is_said_of_it(design):
    found = posttrain(design)
    assert found.verdict not in MET and found.fixes
    for fix in found.fixes:
        again = posttrain(made(design, fix))
        assert (again.verdict, again.step_s, again.days) == (fix.verdict, fix.step_s, fix.days)
        assert fix.verdict in MET


def test_a_design_that_does_needs_no_change():
    assert posttrain(design_of("llama-3.1-8b", 8, {"method": "lora", "data": SAMPLES})).fixes == ()


def test_weights_that_are_frozen_or_in_four_bits_are_offered_where_all_do_not_fit():
    """70B: 140 GB of bf16 weights and 18 bytes a parameter trained (Rajbhandari et al. 2020) beside
    8 devices of 80 GB; QLoRA tunes 65B on one of 48 GB (Dettmers et al. 2023)."""
    sets = [fix.set for fix in posttrain(TOO_LARGE).fixes]
    assert {"job.method": "lora"} in sets and {"job.method": "qlora"} in sets
    assert {"cluster.devices": 32} in sets
    # 810 GB of frozen weights fit into no node of 8 x 80 GB: adapters alone are not offered
    huge = design_of("llama-3.1-405b", 8, {"method": "sft"})
    sets = [fix.set for fix in posttrain(huge).fixes]
    assert {"job.method": "lora"} not in sets and {"job.method": "qlora"} in sets


def test_frozen_weights_may_stand_in_host_memory():
    """Answer.AI 2024 (fsdp_qlora): 70B by QLoRA on two cards of 24 GB, weights on the host."""
    small = design_of("llama-3-70b", 2, {"method": "qlora", "seq_len": 512}, "rtx4090")
    found = posttrain(small)
    assert found.verdict == "impossible"
    fix = next(fix for fix in found.fixes if "plan.offload" in fix.set)
    assert fix.verdict in MET
    draws = [frozen_stream(replace(full_tuning(), base_bits=bits)) for bits in (16.0, 4.0)]
    # 2 passes in place of 3, in 4.127 bits in place of 16 (QLoRA, section 3)
    assert draws == pytest.approx([3 / 2, 3 / 2 * 16 / 4.127])


def test_what_asks_least_comes_first():
    assert posttrain(PINNED).fixes[0].set == {"plan.micro_batch": 1}
    sets = [fix.set for fix in posttrain(LATE).fixes]
    assert sets and all("cluster.devices" in each for each in sets[-1:])


def test_preferences_are_not_traded_for_another_objective():
    found = posttrain(design_of("llama-3.1-70b", 16, {"method": "dpo"}, "a100-80-sxm"))
    assert all("job.method" not in fix.set for fix in found.fixes)


def test_the_terminal_and_the_json_say_them(tmp_path, capsys):
    path = tmp_path / "run.yaml"
    TOO_LARGE.write(path)
    assert main(["design", str(path)]) == 4
    assert "Change" in capsys.readouterr().out
    assert main(["design", str(path), "--json"]) == 4
    rows = json.loads(capsys.readouterr().out)["nearest_fixes"]
    assert rows and all({"change", "set", "verdict", "likely"} <= row.keys() for row in rows)


def test_methods_beside_each_other(tmp_path, capsys):
    """A sweep of the method leaves out what the other has no use for; adapters train faster than
    all weights, and a pair of DPO takes longer than a sample."""
    path = tmp_path / "run.yaml"
    job = {"method": "lora", "adapter": {"rank": 16}, "data": SAMPLES}
    design_of("llama-3.1-8b", 8, job).write(path)
    assert main(["sweep", str(path), "job.method=lora,sft,dpo", "--json"]) == 0
    lora, sft, dpo = (c["figures"]["step_s"] for c in json.loads(capsys.readouterr().out))
    assert lora < sft < dpo


QUICK = design_of(
    "llama-3.1-8b", 16, {"method": "grpo", "rollout": {"mean_response": 2000, "max_response": 8192}}
)


def test_a_move_of_a_design_that_does_saves_a_tenth():
    found = posttrain(QUICK)
    count, tried = moves(found)
    saving = [fix for fix in tried if fix is not None]
    assert 0 < len(saving) < count
    for fix in saving:
        then = posttrain(made(QUICK, fix))
        assert (then.verdict, then.days) == (fix.verdict, pytest.approx(fix.days))
        assert then.days < 0.9 * found.days or then.cost_usd < 0.9 * found.cost_usd


def test_what_moves_a_step_most_is_found_out_first():
    first = to_find_out(posttrain(QUICK))
    swings = [one.shorter + one.longer for one in first]
    assert swings == sorted(swings, reverse=True) and min(swings) > 0
    assert {"mean response", "longest response", "longer tail"} <= {one.what for one in first}
    assert to_find_out(posttrain(TOO_LARGE)) == []


def test_one_run_is_offered_once():
    """A policy whose engine shares its devices: leaving that open, and devices of their own, come
    to the same run."""
    rollout = {"colocated": True, "prompts": 128, "samples": 16, "reference": False}
    rollout |= {"mean_response": 8000, "max_response": 32_768, "steps": 400}
    design = design_of("qwen3-235b-a22b", 128, {"method": "grpo", "rollout": rollout}, "b200-sxm")
    said = [fix for fix in moves(posttrain(design))[1] if fix]
    assert "leave job.rollout.colocated open" in [fix.change for fix in said]
    assert len({(fix.devices, fix.step_s, fix.days) for fix in said}) == len(said)


def test_more_of_an_owned_machine_is_dearer_to_tune_on_too():
    prices = {"owned": {"capex_usd": 3e5, "years": 4}}
    job = {"method": "sft", "data": {**SAMPLES, "packed": True}}
    design = design_of("llama-3.1-8b", 8, job, prices=prices)
    more = [fix for fix in moves(posttrain(design))[1] if fix and fix.devices > 8]
    assert [fix.set["prices.owned.capex_usd"] for fix in more] == [6e5]
