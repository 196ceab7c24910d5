"""Kits of models whose layers are not all alike: what Megatron-LM and Megatron-Bridge are told, and
what is refused where a framework has no such block."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from scantling import Design, assess
from scantling.kits import FRAMEWORKS, Inexpressible, kits

sys.path.insert(0, str(Path(__file__).parent))
from corpus import DENSE, PLANS, Z1, spec  # noqa: E402

# hybrid_override_pattern of nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16, config.json
NANO = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"


def made(data, to="megatron"):
    return kits(assess(Design.from_data(data | {"name": "x"})), to)


def arguments(files):
    """Option to value, of megatron.args."""
    words = shlex.split(files["megatron.args"])
    pairs = zip(words, [*words[1:], "--"], strict=True)
    return {k: v for k, v in pairs if k.startswith("--")}


def test_a_hybrid_is_written_in_the_letters_of_its_own_config():
    said = arguments(made(PLANS["hybrid-moe"]))
    parts = said["--hybrid-layer-pattern"].split("|")
    assert "".join(parts) == NANO
    assert len(parts) == int(said["--pipeline-model-parallel-size"]) == 2
    assert said["--num-layers"] == str(len(NANO))
    assert (said["--mamba-num-heads"], said["--mamba-state-dim"]) == ("64", "128")
    assert said["--position-embedding-type"] == "none"  # Nemotron-H has no positions
    assert "--pipeline-model-parallel-layout" not in said
    assert "--moe-layer-freq" not in said


def test_stages_are_those_of_the_plan():
    for name in ("hybrid", "hybrid-full", "hybrid-latent"):
        files = made(PLANS[name])
        plan = json.loads(files["plan.json"])
        runs = arguments(files)["--hybrid-layer-pattern"].split("/")[0].split("|")
        blocks = sum(map(len, runs)) // plan["shape"]["layers"]
        assert [len(run) // blocks for run in runs] == plan["layers_by_stage"], name


def test_further_tokens_stand_behind_a_stroke():
    """megatron-core 0.19, hybrid_layer_allocation.py: "M*M*/MM/MM"; Megatron-Bridge 0.6,
    nemotron_3_super.py: mtp_num_layers 2, mtp_use_repeated_layer."""
    said = arguments(made(PLANS["hybrid-latent"]))
    depths = said["--hybrid-layer-pattern"].split("/")[1:]
    assert depths == ["*E", "*E"]  # mtp_hybrid_override_pattern
    assert "--mtp-use-repeated-layer" in said
    assert said["--moe-latent-size"] == "1024"
    assert "--mtp-num-layers" not in said


def test_gated_delta_nets_keep_the_gpt_model():
    """Qwen/Qwen3-Next-80B-A3B-Instruct, config.json: full_attention_interval 4, 16 and 32 linear
    heads of 128, a gate on the shared expert and on attention's output."""
    files = made(PLANS["linear"])
    said = arguments(files)
    freq = said["--linear-attention-freq"]
    assert re.fullmatch(r"[\[\]()*+01234]+", freq)
    assert eval(freq) == [1, 1, 1, 0] * 12  # noqa: S307
    assert (said["--linear-num-key-heads"], said["--linear-num-value-heads"]) == ("16", "32")
    assert {"--attention-output-gate", "--moe-shared-expert-gate", "--qk-layernorm"} <= said.keys()
    assert said["--rotary-base"] == "10000000"
    overrides = made(PLANS["linear"], "megatron-bridge")["bridge.overrides"]
    assert f"model.linear_attention_freq=[{','.join(map(str, eval(freq)))}]" in overrides  # noqa: S307
    assert [
        g for g in json.loads(files["plan.json"])["not_expressed"] if g["field"] == "model"
    ] == []


def test_what_a_kit_does_not_build_is_refused_with_the_nearest_that_does():
    hybrid = assess(Design.from_data(PLANS["hybrid"] | {"name": "x"}))
    for to in FRAMEWORKS.keys() - {"megatron", "megatron-bridge"}:
        with pytest.raises(Inexpressible, match=r"model\.pattern mamba2: .*: --to megatron does$"):
            kits(hybrid, to)
    jamba = assess(Design.from_data(spec(model="jamba-v0.1", plan=Z1) | {"name": "x"}))
    for to in ("megatron", "fsdp"):
        with pytest.raises(Inexpressible, match="no kit does, --to megatron all but mamba1$"):
            kits(jamba, to)


def test_bridge_has_no_virtual_stages_for_hybrids():
    """megatron-bridge 0.6.2, hybrid_provider.py: "temporarily unsupported in Hybrid models"."""
    plan = dict(tp=1, pp=2, vpp=2, micro_batch=1, schedule="interleaved", **Z1)
    data = PLANS["hybrid"] | {"plan": plan}
    assert made(data)["megatron.args"].count("|") == 3
    found = json.loads(made(data, "megatron-bridge")["plan.json"])
    assert found["plan"]["vpp"] == 1
    assert "vpp" in {g["field"] for g in found["not_expressed"]}


@pytest.mark.parametrize(
    "mlp, flag, said",
    [
        ("geglu", "--quick-geglu", True),
        ("relu", None, True),
        ("squared-relu", "--squared-relu", False),
    ],
)
def test_the_activation_is_the_models_or_named(mlp, flag, said):
    """megatron-core 0.19, arguments.py: --swiglu, --quick-geglu and --squared-relu, else GELU."""
    files = made(spec(model=DENSE | dict(mlp=mlp), plan=dict(tp=4, pp=1, **Z1)))
    words = {"--swiglu", "--quick-geglu", "--squared-relu", "--geglu"}
    assert words & arguments(files).keys() == ({flag} if flag else set())
    gaps = {g["field"] for g in json.loads(files["plan.json"])["not_expressed"]}
    assert ("model.mlp" in gaps) == said
