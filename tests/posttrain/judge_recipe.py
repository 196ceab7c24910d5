"""A recipe before the framework's own configuration: `python judge_recipe.py SCRIPT`, where verl
and hydra-core, or torchtune and omegaconf, are installed (without what they need to train).

verl: its configuration is composed by Hydra with the overrides of the script, which refuses a name
that it does not know. torchtune: the recipe that the script names, read by OmegaConf, has every
key, or the builder of its model takes it. Prints what the plan comes to.
"""

import ast
import re
import sys
from importlib.util import find_spec
from pathlib import Path


def settings_of(script: str) -> dict[str, str]:
    """Name and value of every setting of a script."""
    found = re.findall(r'^  ([\w.]+)="([^"]*)"', script, re.MULTILINE)
    return {name: value.replace("$", "/") for name, value in found}


def verl(script: str) -> dict[str, object]:
    """The plan as verl's configuration has it."""
    from hydra import compose, initialize_config_dir

    root = Path(find_spec("verl").submodule_search_locations[0]) / "trainer" / "config"
    overrides = [f"{name}={value}" for name, value in settings_of(script).items()]
    with initialize_config_dir(str(root), version_base=None):
        found = compose("ppo_trainer", overrides=["model_engine=megatron", *overrides])
    actor, rollout = found.actor_rollout_ref.actor, found.actor_rollout_ref.rollout
    return {
        "tp": actor.megatron.tensor_model_parallel_size,
        "pp": actor.megatron.pipeline_model_parallel_size,
        "rollout_tp": rollout.tensor_model_parallel_size,
        "samples": rollout.n,
        "prompts": found.data.train_batch_size,
        "updates": found.data.train_batch_size // actor.ppo_mini_batch_size,
        "devices": found.trainer.nnodes * found.trainer.n_gpus_per_node,
    }


def arguments(component: str) -> list[str]:
    """Arguments of a builder of torchtune, read from its source: torch is not needed."""
    module, _, name = component.rpartition(".")
    folder = Path(find_spec("torchtune").submodule_search_locations[0], *module.split(".")[1:])
    for path in folder.glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return [a.arg for a in (*node.args.args, *node.args.kwonlyargs)]
    raise KeyError(component)


def torchtune(script: str) -> dict[str, object]:
    """The run as torchtune's recipe has it."""
    from omegaconf import OmegaConf

    config = re.search(r"--config (\S+)", script)[1]
    root = Path(find_spec("recipes").submodule_search_locations[0]) / "configs"
    found = OmegaConf.load(root / f"{config}.yaml")
    OmegaConf.set_struct(found, True)
    for name, value in settings_of(script).items():
        section, _, key = name.partition(".")
        known = OmegaConf.select(found, name, default="absent") != "absent"
        if not known and not (section == "model" and key in arguments(found.model._component_)):
            raise KeyError(f"{config} has no {name}")
        OmegaConf.update(found, name, OmegaConf.from_dotlist([f"v={value}"]).v, force_add=True)
    return {
        "rank": found.model.get("lora_rank"),
        "batch_size": found.batch_size,
        "accumulation": found.gradient_accumulation_steps,
        "packed": found.dataset.packed,
    }


if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    print(verl(text) if "verl.trainer" in text else torchtune(text))
