"""Where a published recipe splits its layers unevenly, an even split is no faster."""

from __future__ import annotations

import re

import pytest
from scantling import Design, assess

GB300 = {"accelerator": "gb300-nvl72", "devices_per_node": 4, "scale_up_domain": 64}
GB200 = GB300 | {"accelerator": "gb200-nvl72"}
B200 = {"accelerator": "b200", "devices_per_node": 8}
H100 = {"accelerator": "h100-sxm", "devices_per_node": 8}
# megatron-bridge 0.6.2, perf_recipes: model, machine, job, plan, pipeline_model_parallel_layout
RECIPES = {
    "qwen/gb300/qwen3_moe.py qwen3_next_80b_a3b_pretrain_64gpu": (
        {"like": "qwen3-next-80b-a3b", "mtp_layers": 1},
        GB300 | {"devices": 64},
        {"global_batch": 1024, "routing": "forced"},
        {"pp": 2, "vpp": 4, "ep": 32, "micro_batch": 4, "recompute": "none"},
        "Et*4|(t*7|)*5t*8|tmL",
    ),
    "deepseek/gb300/deepseek_v3.py deepseek_v3_pretrain_256gpu": (
        "deepseek-v3",
        GB300 | {"devices": 256},
        {"global_batch": 4096, "precision": "mxfp8"},
        {"pp": 2, "vpp": 8, "ep": 32, "micro_batch": 1},
        "Et*4|(t*4|)*14tmL",
    ),
    "kimi/b200/kimi_k2.py kimi_k2_pretrain_256gpu": (
        "kimi-k2",
        B200 | {"devices": 256},
        {"global_batch": 2048},
        {"pp": 16, "vpp": 1, "ep": 16, "micro_batch": 1},
        "Et*4|(t*4|)*14tL",
    ),
    "kimi/gb200/kimi_k2.py kimi_k2_pretrain_256gpu": (
        "kimi-k2",
        GB200 | {"devices": 256},
        {"global_batch": 2048},
        {"pp": 4, "vpp": 4, "ep": 64, "micro_batch": 1, "recompute_modules": ["mla_up_proj"]},
        "Et*4|(t*4|)*14tL",
    ),
    "kimi/h100/kimi_k2.py kimi_k2_pretrain_1024gpu": (
        "kimi-k2",
        H100 | {"devices": 1024},
        {"global_batch": 8192},
        {"tp": 8, "pp": 16, "vpp": 2, "ep": 64, "etp": 1, "micro_batch": 1},
        "Et|(tt|)*30L",
    ),
}


def runs(layout: str) -> list:
    """[first layer, end] of each run of a layout: E embedding, t a layer, m MTP, L loss."""
    whole = re.sub(r"\(([^()]*)\)\*(\d+)", lambda m: m[1] * int(m[2]), layout)
    whole = re.sub(r"t\*(\d+)", lambda m: "t" * int(m[1]), whole)
    ends = [0]
    for run in whole.split("|"):
        ends.append(ends[-1] + run.count("t"))
    return [list(pair) for pair in zip(ends, ends[1:])]


def test_a_layout_of_megatron_is_read():
    """61 layers of DeepSeek-V3 (arXiv 2412.19437, section 4.2) in sixteen runs."""
    read = runs("Et*4|(t*4|)*14tmL")
    assert (len(read), read[0], read[-1]) == (16, [0, 4], [60, 61])


def assessed(recipe: str, **more):
    model, cluster, job, plan, _ = RECIPES[recipe]
    design = {
        "model": model,
        "cluster": cluster,
        "job": {"seq_len": 4096, "precision": "bf16", "effort": "tuned"} | job,
        "plan": {"tp": 1, "cp": 1} | plan | more,
        "stack": "megatron-core",
    }
    return assess(Design.from_data(design))


@pytest.mark.parametrize("recipe", RECIPES)
def test_an_even_split_is_not_preferred_where_a_recipe_chose_another(recipe):
    theirs = assessed(recipe, layout=runs(RECIPES[recipe][-1]))
    even = assessed(recipe, layer_split="even")
    assert theirs.step_s <= even.step_s * (1 + 1e-9)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_search_cuts_as_well_as_the_recipe(recipe):
    """Within 1 %: a cut goes by whole layers, and by one case for all plans of a job."""
    theirs, found = assessed(recipe, layout=runs(RECIPES[recipe][-1])), assessed(recipe)
    assert not theirs.fits or found.step_s <= theirs.step_s * 1.01
