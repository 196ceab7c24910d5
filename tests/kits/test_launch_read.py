"""megatron.args and bridge.overrides read back by the rules of Megatron-Core, without it: what is
launched is the plan that the kit states, whichever plan the search picks."""

from __future__ import annotations

import json
import re
import shlex
import sys
from functools import cache
from pathlib import Path

import pytest
from scantling import Design, assess
from scantling_kits import kits

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
from corpus import PLANS, Z1, spec  # noqa: E402
from random_designs import drawn  # noqa: E402

GALLERY = Path(__file__).parents[2] / "gallery" / "designs"
OVERRIDES = {  # of Megatron-Bridge's configuration, for what Megatron-LM has as a flag
    "num_virtual_stages_per_pipeline_rank": "virtual_pipeline_model_parallel_size"
}
SHARDED = {"optim": "zero1", "optim_grads": "zero2", "optim_grads_params": "zero3"}
EXCHANGES = {"p2p": "ring", "all_gather": "all-gather", "a2a": "ulysses"}
FP8 = {"delayed": "fp8", "tensorwise": "fp8-current", "blockwise": "fp8-block", "mxfp8": "mxfp8"}


def flags(files) -> dict:
    """Option to value, "" of one that has none, of megatron.args."""
    words = shlex.split(files["megatron.args"])
    pairs = zip(words, [*words[1:], "--"], strict=True)
    named = ((k[2:].replace("-", "_"), v) for k, v in pairs if k.startswith("--"))
    return {k: "" if v.startswith("--") else v for k, v in named}


def overrides(files) -> dict:
    """Option to value of bridge.overrides, by the last part of its name; what is off is left
    out."""
    lines = re.findall(r"^([\w.]+)=(.*)$", files["bridge.overrides"], re.M)
    said = {k.rpartition(".")[2]: v.strip("'") for k, v in lines}
    said = {k: v for k, v in said.items() if v not in ("false", "null")}
    return said | {flag: said[name] for flag, name in OVERRIDES.items() if name in said}


def stages_of(said, blocks: int, pp: int) -> list:
    """Layers of each virtual stage in the order in which a token meets them: those of a layout or
    pattern, else the same of each (arguments.py: with no layout pp x vpp divides the layers)."""
    vpp = int(said.get("num_virtual_stages_per_pipeline_rank", 1))
    if layout := said.get("pipeline_model_parallel_layout"):
        return [part.count("t") for part in layout.split("|")]
    if pattern := said.get("hybrid_layer_pattern"):
        return [len(part) // blocks for part in pattern.split("/")[0].split("|")]
    each, odd = divmod(int(said["num_layers"]), pp * vpp)
    assert not odd, said
    return [each] * (pp * vpp)


def repeated(said, stages, pp: int, blocks: int) -> int:
    """Layers of the fullest stage that full recompute repeats. core/transformer_block.py:
    `uniform` repeats all in pieces of recompute_num_layers, `block` the first recompute_num_layers
    of each virtual stage."""
    if said.get("recompute_granularity") != "full":
        return 0
    each = int(said["recompute_num_layers"]) // blocks
    first = max(stages) if said["recompute_method"] == "uniform" else each
    return max(sum(min(first, n) for n in stages[at::pp]) for at in range(pp))


def launched(said, kit) -> dict:
    """The plan that options state, in the words of plan.json."""
    blocks = int(said["num_layers"]) // kit["shape"]["layers"]
    tp, pp, cp = (
        int(said[f"{axis}_parallel_size"]) for axis in ("tensor_model", "pipeline_model", "context")
    )
    dp = kit["devices"] // (tp * pp * cp)
    batch, micro_batch = int(said["global_batch_size"]), int(said["micro_batch_size"])
    assert kit["devices"] == tp * pp * cp * dp and batch % (dp * micro_batch) == 0, said
    stages = stages_of(said, blocks, pp)
    fsdp = said.get("data_parallel_sharding_strategy") if "use_megatron_fsdp" in said else None
    shared = "use_distributed_optimizer" in said or "dist_muon" in said.get("optimizer", "")
    plain = "zero1" if shared else "none"
    return {
        "tp": tp,
        "pp": pp,
        "cp": cp,
        "dp": dp,
        "vpp": len(stages) // pp,
        "ep": int(said.get("expert_model_parallel_size", 1)),
        "sp": "sequence_parallel" in said,
        "micro_batch": micro_batch,
        "grad_accum": batch // (dp * micro_batch),
        "sharding": SHARDED.get(fsdp, plain),
        "recompute": said.get("recompute_granularity") or "none",
        "recompute_layers": repeated(said, stages, pp, blocks),
        "offload": "optimizer" if "optimizer_cpu_offload" in said else "none",
        "layers_by_stage": [sum(stages[at::pp]) for at in range(pp)],
        "seq_len": int(said["seq_length"]),
    } | ({"cp_type": EXCHANGES[said["cp_comm_type"].strip("[]'\"")]} if cp > 1 else {})


def number(n: int) -> dict:
    """Random design number n on a chip and a stack that Megatron runs on."""
    data = drawn(n)
    data.pop("stack", None)
    data["cluster"]["accelerator"] = "h100-sxm"
    data["job"].pop("precision", None)
    return data


SEARCHED = {  # what the search picks, and pins whose words differ from the framework's
    **{name: PLANS[name] for name in ("searched", "hybrid-searched", "uneven-pp", "full-of-some")},
    **{
        f"interleaved, {n} layers repeated": spec(
            plan=dict(tp=2, pp=4, vpp=4, micro_batch=1, schedule="interleaved", **Z1)
            | {"recompute": "full", "recompute_layers": n}
        )
        for n in (1, 2, 4, 7, 8)
    },
    # which have a plan that both launch: of many stages, layouts, experts and kinds of sharding
    **{f"random {n}": number(n) for n in (7, 12, 18, 43, 51, 63, 66, 69, 107, 129, 131, 139)},
}


@cache
def assessed(name):
    return assess(Design.from_data(SEARCHED[name] | {"name": "x"}))


@pytest.mark.parametrize("to, read", [("megatron", flags), ("megatron-bridge", overrides)])
@pytest.mark.parametrize("name", SEARCHED)
def test_what_is_launched_is_the_plan_that_the_kit_states(name, to, read):
    files = kits(assessed(name), to)
    kit = json.loads(files["plan.json"])
    states = kit["plan"] | {k: kit[k] for k in ("layers_by_stage", "seq_len")}
    if states["recompute"] != "full":
        states["recompute_layers"] = 0
    elif states["recompute_layers"] == -(-kit["shape"]["layers"] // states["pp"]):  # all of them
        states["recompute_layers"] = max(states["layers_by_stage"])
    found = launched(read(files), kit)
    assert found == {k: states[k] for k in found}
