"""Recipes of frameworks: the plan in their own names; before their own configurations where these
are installed (`make test-launch`)."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import scantling as sc
from scantling.cli import main
from scantling.design.design import Design
from scantling_posttrain.recipe_nemo_rl import nemo_rl
from scantling_posttrain.recipe_torchtune import CONFIGURED, torchtune
from scantling_posttrain.recipe_trl import trl
from scantling_posttrain.recipe_verl import verl
from scantling_posttrain.recipes import FRAMEWORKS, script

GALLERY = Path(__file__).parents[2] / "gallery" / "designs"

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
        (GRPO, "trl", "--to"),
        (LORA, "nemo-rl", "--to"),
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


def test_a_policy_has_its_plan_in_the_names_of_nemo_rl():
    recipe = nemo_rl(Design.from_data(GRPO).change({"job.rollout.colocated": False}))
    plan, rollout, settings = recipe.result.plan, recipe.result.rollout, recipe.settings
    assert settings["policy.megatron_cfg.tensor_model_parallel_size"] == str(plan["tp"])
    assert settings["policy.generation.colocated.enabled"] == "False"
    assert settings["policy.train_global_batch_size"] == str(64 * 32 // 4)
    nodes = int(settings["policy.generation.colocated.resources.num_nodes"])
    assert 8 * nodes == rollout["devices"] and plan["vpp"] == 1


def test_a_pair_of_dpo_is_two_sequences():
    """TRL counts pairs in a batch of a device: 64 pairs in a step whatever the plan."""
    dpo = {**LORA, "job": {"method": "dpo", "global_batch": 64, "data": {"mean_tokens": 900}}}
    recipe = trl(Design.from_data({**dpo, "cluster": {"accelerator": "b200", "devices": 8}}))
    each = int(recipe.settings["--per_device_train_batch_size"])
    accumulated = int(recipe.settings["--gradient_accumulation_steps"])
    assert each * accumulated * 8 == 64 and "--packing" not in recipe.settings


@pytest.mark.parametrize(
    ("name", "to", "lines"),
    [
        (
            "llama-3-70b-lora-8-h100",
            "trl",
            ["plan.tp is 2, here 1", "plan.vpp is 20, here 1", 'precision is "fp8", here "bf16"'],
        ),
        (
            "qwen3-32b-grpo-64-h100",
            "verl",
            [
                "rollout.colocated is false, here true",
                "rollout.devices is 32, here it follows from the rest",
                "rollout.lag is 1, here 0",
            ],
        ),
    ],
)
def test_what_a_framework_does_otherwise_than_the_design_stands_in_its_script(
    name, to, lines, capsys
):
    """TRL splits nothing and trains in bf16; verl's hybrid engine shares the devices."""
    assert main(["recipe", str(GALLERY / "posttrain" / f"{name}.yaml"), "--to", to]) == 0
    said = capsys.readouterr().out
    assert [line for line in lines if line not in said] == []


@pytest.mark.parametrize(("data", "to"), [(GRPO, "verl"), (GRPO, "nemo-rl"), (LORA, "trl")])
def test_a_script_asks_for_what_it_is_to_be_told(data, to):
    """Under `set -u` a name that nobody set ends the run; here with what it is to hold."""
    recipe = FRAMEWORKS[to](Design.from_data(data))
    text = script(recipe, to)
    named = {*re.findall(r"\$([A-Z_]+)", " ".join(recipe.settings.values()))}
    assert named and named == {*re.findall(r'^: "\$\{([A-Z_]+):\?\w', text, re.M)}
    assert "the design's" not in text, "nothing is otherwise than stated"


def test_several_nodes_find_each_other():
    """torchrun's nodes each wait for themselves without an endpoint; Ray's have to be started."""
    model = {**LORA, "model": "llama-3.1-70b"}
    several = model | {"cluster": {"accelerator": "h100-sxm", "devices": 16}}
    text = script(torchtune(Design.from_data(several)), "torchtune")
    assert "--nnodes 2 --nproc_per_node 8 --rdzv_backend c10d" in text
    assert '--rdzv_endpoint "$HEAD:29500"' in text and "${HEAD:?" in text
    assert "rdzv" not in script(torchtune(Design.from_data(model)), "torchtune")
    assert "a Ray cluster of 8 nodes: ray start --head" in script(
        verl(Design.from_data(GRPO)), "verl"
    )


@pytest.mark.parametrize("epochs", [None, 3])
def test_an_epoch_is_no_longer_than_its_data(epochs):
    """torchtune's recipes end an epoch at max_steps_per_epoch or at the end of the data, and train
    `epochs` of them, 1 unless told."""
    data = {"samples": 1e5} | ({"epochs": epochs} if epochs else {})
    job = LORA["job"] | {"data": data}
    recipe = torchtune(Design.from_data({**LORA, "job": job}))
    assert recipe.settings["epochs"] == str(epochs or 1)
    steps = int(recipe.settings["max_steps_per_epoch"]) * (epochs or 1)
    assert steps == pytest.approx(recipe.result.steps, abs=epochs or 1)


VENVS = Path(os.environ.get("LAUNCH_VENVS", Path.home() / ".cache" / "scantling"))
JUDGE = VENVS / "tuning" / "bin" / "python"
needs_judge = pytest.mark.skipif(not JUDGE.exists(), reason="tests/kits/install has not run")
needs_nemo = pytest.mark.skipif("NEMO_RL" not in os.environ, reason="NEMO_RL names no checkout")


def judged(recipes, framework, folder) -> list[dict]:
    """What the framework's own parser makes of scripts."""
    paths = []
    for number, recipe in enumerate(recipes):
        paths.append(folder / f"{number}.sh")
        paths[-1].write_text(script(recipe, framework), encoding="utf-8")
    argv = [JUDGE, Path(__file__).with_name("judge_recipe.py"), *paths]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.mark.launch
@needs_judge
def test_verl_takes_every_setting(tmp_path):
    recipe = verl(Design.from_data(GRPO))
    (found,) = judged([recipe], "verl", tmp_path)
    assert found["tp"] == recipe.result.plan["tp"] and found["devices"] == 64
    assert (found["prompts"], found["samples"], found["updates"]) == (64, 32, 4)


@pytest.mark.launch
@needs_judge
@needs_nemo
def test_nemo_rl_takes_every_setting(tmp_path):
    designs = [
        Design.from_data(GRPO).change({"job.rollout.colocated": shared}) for shared in (True, False)
    ]
    published = Design.read(GALLERY / "posttrain" / "qwen3-32b-grpo-64-h100.yaml")
    recipes = [nemo_rl(design) for design in (*designs, published)]
    for recipe, found in zip(recipes, judged(recipes, "nemo-rl", tmp_path), strict=True):
        plan, rollout = recipe.result.plan, recipe.result.rollout
        assert (found["tp"], found["pp"], found["rollout_tp"]) == (
            plan["tp"],
            plan["pp"],
            rollout["tp"],
        )
        assert (found["prompts"], found["samples"], found["updates"]) == (64, 32, 4)
        assert found["devices"] == 64 and found["colocated"] is rollout["colocated"]
        if not rollout["colocated"]:
            assert found["rollout_devices"] == rollout["devices"]


@pytest.mark.launch
@needs_judge
def test_torchtune_takes_every_setting(tmp_path):
    data = {**LORA, "job": {"method": "lora"}}
    recipes = [torchtune(Design.from_data({**data, "model": model})) for model in CONFIGURED]
    assert [found["rank"] for found in judged(recipes, "torchtune", tmp_path)] == [16] * len(
        recipes
    )


@pytest.mark.launch
@needs_judge
def test_trl_takes_every_setting(tmp_path):
    cases = [
        (method, devices) for method in ("sft", "lora", "qlora", "dpo") for devices in (1, 8, 16)
    ]
    design = Design.from_data({**LORA, "model": "llama-3.2-1b", "job": {"method": "sft"}})
    recipes = [
        trl(design.change({"job.method": method, "cluster.devices": devices}))
        for method, devices in cases
    ]
    for (method, devices), recipe, found in zip(
        cases, recipes, judged(recipes, "trl", tmp_path), strict=True
    ):
        plan = recipe.result.plan
        assert found["devices"] == devices and found["recompute"] == (plan["recompute"] != "none")
        assert found["rank"] == (16 if "lora" in method else None)
        assert found["bits"] == (4 if method == "qlora" else 16)
        sequences = found["batch_size"] * found["accumulation"] * (2 if method == "dpo" else 1)
        assert sequences == plan["micro_batch"] * plan["grad_accum"]
        sharded = {"zero3": "fsdp2"}.get(plan["sharding"], "multi_gpu")
        assert found["accelerate"] == ("single_gpu" if devices == 1 else sharded)
