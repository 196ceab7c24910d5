"""Recipes of frameworks: the plan in their own names; before their own configurations where these
are installed (`make test-launch`)."""

from importlib.util import find_spec

import judge_recipe
import pytest
import scantling as sc
from scantling.cli import main
from scantling.design.design import Design
from scantling_posttrain.recipes import CONFIGURED, script, torchtune, verl

GRPO = {
    "model": "qwen3-32b",
    "cluster": {"accelerator": "h100-sxm", "devices": 64},
    "job": {
        "method": "grpo",
        "rollout": {"prompts": 64, "samples": 32, "mean_response": 3200, "updates": 4},
    },
}
LORA = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm", "devices": 8},
    "job": {"method": "lora", "adapter": {"rank": 32}, "data": {"samples": 1e5}},
}


def test_a_policy_has_its_plan_in_verls_names():
    recipe = verl(Design.from_data(GRPO))
    plan, rollout = recipe.result.plan, recipe.result.rollout
    actor, engine = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
    settings = recipe.settings
    assert settings[f"{actor}.megatron.tensor_model_parallel_size"] == str(plan["tp"])
    assert settings[f"{engine}.tensor_model_parallel_size"] == str(rollout["tp"])
    assert settings[f"{actor}.ppo_mini_batch_size"] == "16", "64 prompts in 4 updates"
    assert rollout["colocated"] is True
    assert any("reward" in gap for gap in recipe.gaps)


def test_a_fine_tune_has_a_plan_that_torchtune_can_run():
    recipe = torchtune(Design.from_data(LORA))
    plan = recipe.result.plan
    assert (plan["tp"], plan["pp"], plan["cp"], plan["sharding"]) == (1, 1, 1, "zero3")
    assert recipe.settings["model.lora_rank"] == "32"
    assert (
        int(recipe.settings["batch_size"])
        * int(recipe.settings["gradient_accumulation_steps"])
        * plan["dp"]
        == 64
    )


@pytest.mark.parametrize(
    "data, to, field",
    [
        (LORA, "verl", "--to"),
        (GRPO, "torchtune", "--to"),
        ({**LORA, "model": "falcon-7b"}, "torchtune", "model"),
        (LORA, "somewhere", "--to"),
    ],
)
def test_what_a_framework_does_not_train_is_refused(data, to, field, tmp_path, capsys):
    path = tmp_path / "run.yaml"
    Design.from_data(data).write(path)
    assert main(["recipe", str(path), "--to", to]) == 2
    assert field in capsys.readouterr().err


def test_a_pretraining_design_has_no_recipe():
    with pytest.raises(sc.DesignError):
        torchtune(Design.from_data({**LORA, "job": {"tokens": 1e9}}))


@pytest.mark.launch
@pytest.mark.skipif(find_spec("verl") is None, reason="verl is not installed")
def test_verl_takes_every_setting():
    recipe = verl(Design.from_data(GRPO))
    found = judge_recipe.verl(script(recipe, "verl"))
    assert found["tp"] == recipe.result.plan["tp"] and found["devices"] == 64
    assert (found["prompts"], found["samples"], found["updates"]) == (64, 32, 4)


@pytest.mark.launch
@pytest.mark.skipif(find_spec("torchtune") is None, reason="torchtune is not installed")
@pytest.mark.parametrize("model", CONFIGURED)
def test_torchtune_takes_every_setting(model):
    design = Design.from_data({**LORA, "model": model, "job": {"method": "lora"}})
    recipe = torchtune(design)
    assert judge_recipe.torchtune(script(recipe, "torchtune"))["rank"] == 16
