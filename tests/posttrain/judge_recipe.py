"""A recipe before the framework's own configuration: `python judge_recipe.py SCRIPT...`.

verl, torchtune and TRL are installed by `tests/kits/install`; NEMO_RL names a checkout of NeMo RL.
verl: its configuration is composed by Hydra with the overrides of the script, which refuses a
name that it does not know. NeMo RL: its own loader and its own parser of overrides, with the
structure closed. torchtune: the recipe that the script names, read by OmegaConf, has every key, or
the builder of its model takes it. TRL: its own parser of arguments, and the configuration of
Accelerate that it ships. Prints what each plan comes to, a line of JSON a script.
"""

import ast
import json
import os
import re
import shlex
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
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


def nemo_rl(script: str) -> dict[str, object]:
    """The plan as NeMo RL's configuration has it."""
    from omegaconf import OmegaConf

    root = Path(os.environ["NEMO_RL"])
    spec = spec_from_file_location("nemo_rl_config", root / "nemo_rl" / "utils" / "config.py")
    own = module_from_spec(spec)
    spec.loader.exec_module(own)
    own.register_omegaconf_resolvers()
    config = own.load_config(root / re.search(r"--config (\S+)", script)[1])
    overrides = [f"{name}={value}" for name, value in settings_of(script).items()]
    config = own.parse_hydra_overrides(config, overrides)
    found = OmegaConf.create(OmegaConf.to_container(config, resolve=True))
    trainer, generation = found.policy.megatron_cfg, found.policy.generation
    own_devices = generation.colocated.resources
    return {
        "tp": trainer.tensor_model_parallel_size,
        "pp": trainer.pipeline_model_parallel_size,
        "rollout_tp": generation.vllm_cfg.tensor_parallel_size,
        "prompts": found.grpo.num_prompts_per_step,
        "samples": found.grpo.num_generations_per_prompt,
        "updates": found.grpo.num_prompts_per_step
        * found.grpo.num_generations_per_prompt
        // found.policy.train_global_batch_size,
        "devices": found.cluster.num_nodes * found.cluster.gpus_per_node,
        "colocated": generation.colocated.enabled,
        "rollout_devices": (own_devices.num_nodes or 1) * (own_devices.gpus_per_node or 0),
    }


def trl(script: str) -> dict[str, object]:
    """The run as TRL's parser and its configuration of Accelerate have it."""
    from importlib import import_module

    from trl.cli.accelerate_config import resolve_accelerate_config_argument

    words = shlex.split(re.sub(r"\$(\w+)", r"/\1", script.replace("\\\n", " ")), comments=True)
    at = words.index("trl")
    kind, arguments = words[at + 1], [word for word in words[at + 2 :] if word != "/@"]
    arguments += ["--use_cpu", "True"]  # of the judge: bf16 is refused where no device is
    parser = import_module(f"trl.scripts.{kind}").make_parser()
    *groups, rest = parser.parse_args_and_config(arguments, return_remaining_strings=True)
    of_script, training, model = groups[:3]
    launched = resolve_accelerate_config_argument(list(rest))
    known = {"--config_file", "--num_processes", "--num_machines", "--machine_rank"}
    known |= {"--main_process_ip", "--main_process_port"}
    unknown = [word for word in launched if word.startswith("--") and word not in known]
    if unknown:
        raise KeyError(f"trl {kind} has no {unknown}")
    return {
        "rank": model.lora_r if model.use_peft else None,
        "targets": model.lora_target_modules,
        "bits": 4 if model.load_in_4bit else 16,
        "batch_size": training.per_device_train_batch_size,
        "accumulation": training.gradient_accumulation_steps,
        "max_length": training.max_length,
        "packed": getattr(training, "packing", None),
        "recompute": training.gradient_checkpointing,
        "accelerate": Path(launched[launched.index("--config_file") + 1]).stem,
        "devices": int(launched[launched.index("--num_processes") + 1]),
    }


def judged(script: str) -> dict[str, object]:
    """What the framework of a script makes of it."""
    marks = {"verl.trainer": verl, "run_grpo.py": nemo_rl, "\ntrl ": trl, "tune run": torchtune}
    return next(judge(script) for mark, judge in marks.items() if mark in script)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(json.dumps(judged(Path(name).read_text(encoding="utf-8"))))
