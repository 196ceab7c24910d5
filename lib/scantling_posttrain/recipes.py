"""The plan of a post-training design as a run of a framework: a script that starts it, each setting
under the name that the framework's own configuration has, and what the framework has no words
for."""

from collections.abc import Callable, Mapping
from re import findall

from scantling.design.design import Design

from .recipe import Recipe
from .recipe_nemo_rl import nemo_rl
from .recipe_torchtune import torchtune
from .recipe_trl import trl
from .recipe_verl import verl

FRAMEWORKS: Mapping[str, Callable[[Design], Recipe]] = {
    "verl": verl,
    "nemo-rl": nemo_rl,
    "torchtune": torchtune,
    "trl": trl,
}

# what a script is told: variable -> what it is
SETTINGS = {
    "MODEL": "the folder of the model in the format of the transformers library",
    "DATA": "the data set, a name or a folder",
    "TRAIN": "the file of prompts to train on",
    "VALIDATION": "the file of prompts to validate on",
    "OUTPUT": "the folder for what the run writes",
    "HEAD": "the address of the first node",
    "NODE_RANK": "the number of this node, from 0",
}


def script(recipe: Recipe, framework: str) -> str:
    """The script that starts a run; what it is to be told is asked for before anything runs."""
    used = {*findall(r"\$[A-Z_]+", " ".join((recipe.command, *recipe.settings.values())))}
    head = [
        "#!/bin/bash",
        f"# {recipe.result.name}: {recipe.result.method} under {framework}",
        f"# plan: {recipe.result.plan_words}",
        *(f"# the design's {change}" for change in recipe.changes),
        *(f"# not in the design: {gap}" for gap in recipe.gaps),
        "set -eu",
        *(f': "${{{name}:?{text}}}"' for name, text in SETTINGS.items() if f"${name}" in used),
    ]
    lines = [recipe.command, *(written(name, text) for name, text in recipe.settings.items())]
    return "\n".join(head) + "\n" + " \\\n  ".join(lines) + ' "$@"\n'


def written(name: str, text: str) -> str:
    """A setting as a framework reads it: an argument with its words, or an override."""
    return f"{name} {text}" if name.startswith("--") else f'{name}="{text}"'
