"""Designs that tune a trained model: what they say, what is asked, and what nobody may answer."""

import json

import pytest
import scantling as sc
from scantling.cli import main
from scantling.design import methods
from scantling.design.design import Design
from scantling_posttrain.answering import posttrain
from scantling_posttrain.posttrained import Posttrained

LORA = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm", "devices": 8},
    "job": {"method": "lora", "data": {"samples": 1e5, "mean_tokens": 900, "p95_tokens": 2400}},
}
GRPO = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm", "devices": 16},
    "job": {
        "method": "grpo",
        "rollout": {
            "prompts": 64,
            "samples": 32,
            "mean_prompt": 130,
            "mean_response": 1060,
            "max_response": 4096,
            "updates": 4,
            "environment_s": 0,
            "reward": {"kind": "rule"},
        },
    },
}


def changed(design, path, value):
    return Design.from_data(design).change({path: value})


@pytest.mark.parametrize("method", ["sft", "lora", "qlora", "dpo", "grpo", "ppo"])
def test_no_other_question_answers_a_tuning_design(method):
    design = Design.from_data({**LORA, "job": {"method": method}})
    with pytest.raises(sc.DesignError, match="nor planned as if it were pre-training"):
        sc.assess(design)


def test_without_the_package_a_tuning_design_is_refused_with_what_installs_it(monkeypatch):
    monkeypatch.setattr(methods, "entries", lambda group: {})
    with pytest.raises(sc.DesignError, match="pip install"):
        sc.assess(LORA)


def test_a_pretraining_design_is_not_this_package_s():
    with pytest.raises(sc.DesignError, match="trains from the start"):
        posttrain({**LORA, "job": {"tokens": 1e9}})


@pytest.mark.parametrize(
    "job, field",
    [
        ({"method": "sft", "adapter": {"rank": 8}}, "job.adapter"),
        ({"method": "lora", "rollout": {"prompts": 8}}, "job.rollout"),
        ({"adapter": {"rank": 8}}, "job.adapter"),
        ({"data": {"samples": 10}}, "job.data"),
        ({"method": "loRa"}, "job.method"),
        ({"method": "lora", "adapter": {"rank": 0}}, "job.adapter.rank"),
    ],
)
def test_what_a_method_has_no_use_for_is_refused(job, field):
    with pytest.raises(sc.DesignError) as refusal:
        Design.from_data({**LORA, "job": job})
    assert refusal.value.field == field


def test_adapters_train_few_parameters_and_save_as_few():
    lora, full = posttrain(LORA), posttrain(changed(LORA, "job.method", "sft"))
    assert (
        lora.trained_params < 0.01 * full.trained_params == pytest.approx(0.01 * 8.03e9, rel=0.01)
    )
    assert lora.checkpoint_bytes < 0.01 * full.checkpoint_bytes
    assert lora.step_s < full.step_s


def test_unpacked_samples_take_longer():
    packed = posttrain(LORA)
    padded = posttrain(changed(LORA, "job.data.packed", False))
    assert padded.days > packed.days


def test_a_judge_is_asked_for_and_never_assumed():
    with pytest.raises(sc.DesignError, match="is missing beside the judge"):
        posttrain(changed(GRPO, "job.rollout.reward.kind", "judge"))
    unsaid = posttrain(changed(GRPO, "job.rollout.reward", None))
    assert any("reward" in question for question in unsaid.asks)
    assert not posttrain(GRPO).asks


def test_a_length_that_nobody_printed_widens_the_interval():
    def width(design):
        found = posttrain(design)
        return found.step_s_high / found.step_s_low

    assert width(changed(GRPO, "job.rollout.mean_response", None)) > 1.5 * width(GRPO)


def test_layouts_are_searched_and_pins_are_kept():
    free = posttrain(GRPO)
    for colocated in (True, False):
        pinned = posttrain(changed(GRPO, "job.rollout.colocated", colocated))
        assert pinned.rollout["colocated"] is colocated
        assert free.step_s <= pinned.step_s * (1 + 1e-9)
    split = posttrain(
        Design.from_data(GRPO).change({"job.rollout.devices": 8, "job.rollout.tp": 2})
    )
    assert (split.rollout["devices"], split.rollout["train_devices"]) == (8, 8)
    assert (split.rollout["tp"], split.rollout["dp"]) == (2, 4)


def test_a_published_step_lies_in_its_interval():
    """NeMo RL v0.4, performance summary: Llama 3.1 8B, GRPO on 16 H100, one plan of each engine:
    97.7 s colocated, 74.6 s split one step off."""
    for colocated, published in ((True, 97.7), (False, 74.6)):
        design = Design.from_data(GRPO).change(
            {"job.rollout.colocated": colocated, "job.rollout.tp": 1}
        )
        if not colocated:
            design = design.change({"job.rollout.devices": 8})
        found = posttrain(design)
        assert found.step_s_low * 0.85 < published < found.step_s_high * 1.2


def test_phases_sum_to_a_colocated_step():
    found = posttrain(changed(GRPO, "job.rollout.colocated", True))
    assert sum(found.phases_s.values()) == pytest.approx(found.step_s)


def test_a_model_that_fits_nowhere_says_what_would():
    found = posttrain({**LORA, "model": "llama-3.1-405b", "job": {"method": "sft"}})
    assert found.verdict == "impossible" and found.plan is None
    assert any(fix.set == {"job.method": "qlora"} for fix in found.fixes)


def test_a_plan_that_may_run_out_of_memory_is_at_risk():
    """16 bytes a parameter (Rajbhandari et al. 2020) of 8.03e9 on two devices are 64.2 GB of 84.9
    GB, before the layer at work."""
    tight = {**LORA, "cluster": {"accelerator": "h100-sxm", "devices": 2}, "job": {"method": "sft"}}
    found = posttrain(tight)
    assert found.oom_probability > 0.05 and found.verdict == "feasible-at-risk"
    assert "going out of memory" in found.limits[0]
    allowed = posttrain(changed(tight, "constraints.max_oom_probability", 0.5))
    assert allowed.verdict == "feasible" and not allowed.limits
    for design in (LORA, GRPO):
        found = posttrain(design)
        assert (found.verdict == "feasible") == (found.oom_probability <= 0.05)


def test_states_that_leave_the_device_have_to_stand_somewhere():
    """405B: 12 bytes a parameter of moments, master weights and gradients are 4.9 TB, twice the
    memory of a node, and through NVMe at a few GB/s a device they take minutes."""
    design = Design.from_data({**LORA, "model": "llama-3.1-405b", "job": {"method": "sft"}}).change(
        {"plan.offload": "optimizer+params"}
    )
    roomy = posttrain(design.change({"cluster.host_memory_gb": 16_000}))
    drives = posttrain(design)
    assert roomy.verdict == "feasible" and drives.step_s > 1.3 * roomy.step_s
    assert sum(drives.step_parts_s.values()) == pytest.approx(drives.step_s, rel=0.01)
    short = posttrain(design.change({"cluster.nvme_gb": 0}))
    assert short.verdict == "impossible" and "host memory" in short.limits[0]


def test_a_row_that_is_said_bounds_the_samples_that_are_guessed():
    job = {"method": "qlora", "seq_len": 512}
    found = posttrain({**LORA, "job": job})
    guess = next(a.value for a in found.assumed if a.field == "job.data.mean_tokens")
    assert found.verdict == "feasible" and guess <= 512


def test_an_update_has_a_sample():
    samples = 64 * 32
    assert posttrain(changed(GRPO, "job.rollout.updates", samples)).verdict != "impossible"
    with pytest.raises(sc.DesignError, match="job.rollout.updates"):
        posttrain(changed(GRPO, "job.rollout.updates", samples + 1))


def test_deadlines_and_budgets_are_judged():
    late = posttrain(changed(GRPO, "constraints.deadline_days", 0.01))
    assert late.verdict == "constraint-missed"
    assert posttrain(changed(GRPO, "constraints.deadline_days", 100)).verdict == "feasible"


@pytest.mark.parametrize("command", ["design", "search"])
def test_the_terminal_answers(command, tmp_path, capsys):
    path = tmp_path / "run.yaml"
    Design.from_data(GRPO).write(path)
    assert main([command, str(path), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["method"] == "grpo" and data["rollout"]["engine"] == "vllm"
    assert main([command, str(path)]) == 0
    assert "Rollout" in capsys.readouterr().out


def test_other_commands_refuse(tmp_path, capsys):
    path = tmp_path / "run.yaml"
    Design.from_data(LORA).write(path)
    for command in ("goodput", "sensitivity", "scaling", "compare"):
        assert main([command, str(path)]) == 2
        assert "job.method" in capsys.readouterr().err


@pytest.mark.parametrize("colocated, lag", [(True, None), (False, 0), (False, 1)])
def test_the_bars_of_a_step_end_where_the_step_does_and_no_side_does_two_things_at_once(
    colocated, lag
):
    design = Design.from_data(GRPO).change({"job.rollout.colocated": colocated})
    found = posttrain(design.change({"job.rollout.lag": lag}) if lag is not None else design)
    spans = found.spans
    assert max(span.end_s for span in spans) == pytest.approx(found.step_s)
    for side in ("rollout", "trainer"):
        own = sorted((s for s in spans if s.side == side), key=lambda s: s.start_s)
        for before, after in zip(own, own[1:]):
            assert after.start_s >= before.end_s - 1e-9
    starts = min(s.start_s for s in spans if s.side == "trainer")
    made = next(s.end_s for s in spans if s.phase == "rollout_s")
    assert starts == (0 if lag == 1 else made)


def test_what_the_engine_holds_fits_into_its_part_of_the_memory():
    memory = posttrain(GRPO).rollout["memory_bytes"]
    assert memory["weights"] + memory["keys_values"] <= memory["engine"] * (1 + 1e-9)
    assert memory["engine"] < memory["capacity"]


def test_what_to_avoid_is_slower_and_says_where_its_time_goes():
    for design in (LORA, GRPO):
        found = posttrain(design)
        assert found.others
        for other in found.others:
            assert other.step_s > found.step_s and other.why and "longer" in other.cost


def test_preferences_with_adapters_are_judged_by_the_frozen_base():
    """TRL takes no second model beside adapters: the reference is the base with the adapters off.
    So a device holds what it holds for LoRA; a pair is two sequences, and each passes the base once
    more. The base in 4 bits is a quarter as large."""
    plan = {"sharding": "none", "tp": 1, "pp": 1, "cp": 1, "recompute": "full", "micro_batch": 2}

    def answered(**job):
        design = {
            "model": "llama-3.1-8b",
            "cluster": {"accelerator": "h100-sxm", "devices": 8},
            "plan": plan,
            "stack": "hf-trainer",
            "job": {"seq_len": 4096, **job},
        }
        return posttrain(Design.from_data(design)).as_dict()

    lora = answered(method="lora", adapter={"rank": 16})
    pairs = answered(method="dpo", adapter={"rank": 16})
    packed = answered(method="dpo", adapter={"base_bits": 4})
    assert pairs["memory_bytes"] == lora["memory_bytes"]
    assert pairs["trained_params"] == lora["trained_params"]
    assert 2.2 < pairs["step_s"] / lora["step_s"] < 2.7
    assert packed["memory_bytes"]["weights"] < 0.4 * pairs["memory_bytes"]["weights"]
    assert packed["step_parts_s"]["reference"] > pairs["step_parts_s"]["reference"]


PINNED_PLAN = {"tp": 1, "pp": 1, "cp": 1, "micro_batch": 1}


def held_by(method, plan, **job):
    """The assessed memory of 8B trained on 8 devices."""
    design = {
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": "b200", "devices": 8},
        "job": {"method": method, "seq_len": 2048, "global_batch": 64, **job},
        "plan": plan,
    }
    return posttrain(design).as_dict()["memory_bytes"]


@pytest.mark.parametrize("sharding, ranks", [("zero2", 1), ("zero3", 8)])
def test_a_reference_is_a_second_model_in_16_bit(sharding, ranks):
    """TRL's DPOTrainer holds `ref_model`: 8.03 billion weights of two bytes, whole on each device
    unless weights are sharded. With adapters it is the base with these off."""
    plan = PINNED_PLAN | {"sharding": sharding}
    alone, beside = held_by("sft", plan), held_by("dpo", plan)
    more = beside["weights"] - alone["weights"]
    assert more == pytest.approx(2 * 8.03e9 / ranks, rel=0.25)
    assert beside["trained"] == alone["trained"]
    base = held_by("lora", plan, adapter={"rank": 16})["weights"]
    assert held_by("dpo", plan, adapter={"rank": 16})["weights"] == base


@pytest.mark.parametrize("rows", [128, 32])
def test_packed_rows_of_another_length_hold_as_many_tokens_a_micro_batch(rows):
    """Packing changes which row a sample lies in, not how many tokens a device takes at once:
    attention stays inside a sample, so that the step stays as well."""
    job = {"method": "sft", "seq_len": 8192, "global_batch": rows}
    data = {"samples": 1e6, "mean_tokens": 900, "p95_tokens": 2400, "packed": True}
    a = posttrain(
        {
            "model": "llama-3.1-70b",
            "cluster": {"accelerator": "h100-sxm", "devices": 64},
            "job": job | {"data": data},
            "plan": {"dp": 32},
        }
    )
    varied = {one.change: one for one in a.sensitivity}
    assert "rows of 4,096 tokens, twice as many" in varied
    assert all(one.share == pytest.approx(0, abs=0.02) for one in varied.values()), varied
    # 32 rows on 32 replicas cannot be half as many
    assert ("rows of 16,384 tokens, half as many" in varied) == (rows > 32)


# What is stated is read, or said to be read nowhere ----------------------------------------------


def of_policy(**job) -> Posttrained:
    rollout = {**GRPO["job"]["rollout"], **job.pop("rollout", {})}
    rollout = {name: value for name, value in rollout.items() if value is not None}
    return posttrain({**GRPO, "job": {"method": "grpo", "rollout": rollout, **job}})


def test_the_sequence_of_a_policy_s_trainer_bounds_its_responses():
    """Frameworks take one or the other: verl's data.max_response_length beside max_prompt_length,
    NeMo RL's policy.max_total_sequence_length for both."""
    told = of_policy(seq_len=8192, rollout={"max_response": None})
    assert told.rollout["max_response"] == 8192 - 130
    assert not any("max_response" in ask for ask in told.asks)
    with pytest.raises(sc.DesignError, match="at most job.seq_len, 2,048 tokens"):
        of_policy(seq_len=2048)
    with pytest.raises(sc.DesignError, match="above job.rollout.mean_prompt"):
        of_policy(seq_len=100, rollout={"max_response": None, "mean_response": None})


def test_an_update_s_batch_gives_prompts_or_updates():
    """verl: train_batch_size prompts x n samples in updates of ppo_mini_batch_size x n samples."""
    assert (
        of_policy(global_batch=256, rollout={"updates": None}).rollout["updates"] == 64 * 32 / 256
    )
    assert (
        of_policy(global_batch=1024, rollout={"prompts": None}).rollout["prompts"] == 4 * 1024 / 32
    )
    with pytest.raises(sc.DesignError, match="64 prompts x 32 samples in 4 updates") as refusal:
        of_policy(global_batch=100)
    assert refusal.value.nearest == 512


def test_passes_over_prompts_or_tokens_are_steps():
    assert of_policy(data={"samples": 6400, "epochs": 3}).steps == 3 * 6400 / 64
    assert of_policy(tokens=1e9).steps == pytest.approx(1e9 / (64 * 32 * (130 + 1060)))
    assert of_policy(tokens=1e9, rollout={"steps": 7}).steps == 7


def test_replicas_of_the_engine_are_those_stated():
    apart = of_policy(rollout={"tp": 2, "dp": 4})
    assert (apart.rollout["devices"], apart.rollout["tp"], apart.rollout["dp"]) == (8, 2, 4)
    assert of_policy(rollout={"dp": 2, "devices": 8}).rollout["tp"] == 4
    with pytest.raises(sc.DesignError, match="job.rollout.dp"):
        of_policy(rollout={"devices": 8, "tp": 2, "dp": 3})


@pytest.mark.parametrize("design", [LORA, GRPO])
def test_a_measured_step_stands_in_the_place_of_the_computed_one(design):
    """And variations of the design take as many times what is computed for them."""
    computed = posttrain(design)
    measured = Design.from_data({**design, "measured": {"step_s": 1.5 * computed.step_s}})
    told = posttrain(measured)
    assert (
        told.step_s_low == told.step_s == told.step_s_high == pytest.approx(1.5 * computed.step_s)
    )
    assert any(line.startswith("measured: ") for line in told.why)
    twice = {"cluster.devices": 2 * measured.cluster.devices}
    varied, alone = (
        posttrain(measured.change(twice)),
        posttrain(Design.from_data(design).change(twice)),
    )
    assert varied.step_s == pytest.approx(1.5 * alone.step_s)
    assert varied.step_s_low < varied.step_s < varied.step_s_high
    rate = posttrain({**design, "measured": {"tokens_per_s_per_device": 1000.0}})
    assert rate.tokens_per_s_per_device == pytest.approx(1000.0)


def test_a_measured_goodput_counts():
    base = posttrain(LORA)
    slow = posttrain({**LORA, "measured": {"goodput": 0.5}})
    assert slow.goodput == 0.5 and slow.days == pytest.approx(base.days * base.goodput / 0.5)


def test_a_batch_of_tokens_is_rows():
    told = posttrain(changed(LORA, "job.global_batch_tokens", 4096 * 256))
    assert told.steps == pytest.approx(posttrain(changed(LORA, "job.global_batch", 256)).steps)


@pytest.mark.parametrize(
    "design, path, value",
    [
        (LORA, "measured.mfu", 0.3),
        (LORA, "job.document_tokens", 500),
        (LORA, "job.from_checkpoint", False),
        (LORA, "prices.spot", {"usd_per_device_hour": 1.0, "preemptions_per_day": 2.0}),
        (GRPO, "job.global_batch_tokens", 1e6),
        (GRPO, "job.data.mean_tokens", 900),
        (GRPO, "job.target_loss", 2.0),
        (GRPO, "job.evaluation_hours", 12),
    ],
)
def test_what_is_not_read_is_said(design, path, value):
    told, base = posttrain(changed(design, path, value)), posttrain(design)
    assert any(line.startswith(f"{path}: no effect here") for line in told.no_effect)
    assert told.step_s == base.step_s and told.days == base.days and not base.no_effect
