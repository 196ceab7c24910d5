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
from scantling_kits import FRAMEWORKS, Inexpressible, kits

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


@pytest.mark.slow
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


@pytest.mark.slow
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


CONFIGS = Path(__file__).parents[1] / "published" / "hf-hybrid" / "configs"
# megatron-core 0.19.2, models/hybrid/hybrid_layer_allocation.py, Symbols
SYMBOLS = {
    "mamba": "M",
    "linear_attention": "G",
    "indexed_attention": "D",
    **dict.fromkeys(("attention", "full_attention", "sliding_attention"), "*"),
}
VALID = {"M", "G", "*", "D", "+", "-", "E"}
# one of every model type, and what Megatron has no symbol for in it
HYBRIDS = {
    "bamba-9b": "",
    "deepseek-v4-flash": "csa4, hca128, win",
    "falcon-h1-0.5b": "blocks side by side",
    "falcon-mamba-7b": "mamba1",
    "gemma-4-26b-a4b": "local",
    "glm-5": "",
    "gpt-oss-20b": "",
    "granite-4.0-h-1b": "",
    "granite-4.0-h-tiny": "",
    "jamba-v0.1": "mamba1",
    "kimi-linear-48b-a3b": "kda, mla",
    "lfm2-1.2b": "shortconv",
    "llama-4-scout": "",
    "mamba-130m": "mamba1",
    "mamba2-130m": "",
    "mimo-v2-flash": "local",
    "nemotron-3-super-120b-a12b": "",
    "nemotron-h-4b": "",
    "qwen3-next-80b-a3b": "",
    "qwen3.5-2b": "",
    "recurrentgemma-2b": "local, rglru",
    "step-3.5-flash": "local",
    "zamba2-1.2b": "shared, weights that several layers share, layers with unlike numbers of",
}


def config_of(name):
    whole = json.loads((CONFIGS / f"{name}.json").read_text())
    return whole.get("text_config", whole)


def mixers_of(config):
    """The mixers of a config's layers in Megatron's symbols, read out of its own fields."""
    n = config.get("num_hidden_layers") or config.get("n_layer")
    if pattern := config.get("hybrid_override_pattern"):
        return "".join(c for c in pattern if c in "M*")
    if kinds := config.get("layer_types") or config.get("layers_block_type"):
        return "".join(SYMBOLS.get(kind, "?") for kind in kinds[:n])
    if (every := config.get("full_attention_interval")) is not None:
        return "".join("*" if (i + 1) % every == 0 else "G" for i in range(n))
    if "attn_layer_indices" in config:
        return "".join("*" if i in config["attn_layer_indices"] else "M" for i in range(n))
    return "M" * n if "state_size" in config else "*" * n


def read_by_megatron(pattern):
    """(segments, patterns of further tokens), by the rules of `parse_hybrid_pattern`: valid
    symbols, "|" in the main pattern alone, all patterns behind "/" the same, and no "Attention +
    MLA/DSA hybridity"."""
    main, *more = pattern.split("/")
    assert set(main) <= VALID | {"|"}
    assert len(set(more)) <= 1 and set("".join(more)) <= VALID
    assert not ("*" in main and {"D", "+"} & set(main))
    return main.split("|"), more


@pytest.mark.slow
@pytest.mark.parametrize("name", HYBRIDS)
def test_every_hybrid_is_written_as_its_config_has_it_or_one_line_says_why_not(name):
    config, missing = config_of(name), HYBRIDS[name]
    model = {"hf_config": str(CONFIGS / f"{name}.json")}
    mixers = mixers_of(config)
    layers = len(config.get("hybrid_override_pattern") or mixers)
    runs = [[0, layers // 2 + 1], [layers // 2 + 1, layers]]  # uneven
    plan = dict(tp=1, pp=2, vpp=1, layout=runs, micro_batch=1, schedule="1f1b")
    devices = 512 if config["hidden_size"] > 2000 else 16
    data = spec(model=model, plan=plan, devices=devices, job=dict(global_batch=512))
    assessment, pattern = assess(Design.from_data(data | {"name": name}), space="coarse"), ""
    for to in ("megatron", "megatron-bridge"):
        if missing:
            with pytest.raises(Inexpressible, match=rf"\(model\.pattern {missing}") as refused:
                kits(assessment, to)
            assert "\n" not in str(refused.value)
            continue
        files = kits(assessment, to)
        if to == "megatron-bridge":
            lines = files["bridge.overrides"].splitlines()
            assert not pattern or f"model.hybrid_layer_pattern='{pattern}'" in lines
            continue
        said = arguments(files)
        if pattern := said.get("--hybrid-layer-pattern"):
            segments, more = read_by_megatron(pattern)
            assert "".join(c for c in "".join(segments) if c not in "-E") == mixers
            assert bool(more) == bool(config.get("num_nextn_predict_layers"))
            cut = len(segments[0]) * layers // int(said["--num-layers"])
        else:  # "E", "t", "m" and "L" of pipeline_parallel_layer_layout.py
            stages = said["--pipeline-model-parallel-layout"].split("|")
            assert stages[0][0] == "E" and stages[-1][-1] == "L" and len(stages) == 2
            cut = stages[0].count("t")
            if freq := said.get("--linear-attention-freq"):
                assert [{0: "*", 1: "G"}[kind] for kind in eval(freq)] == [*mixers]  # noqa: S307
            assert ("D" in mixers) == (said.get("--experimental-attention-variant") == "dsa")
        assert cut == layers // 2 + 1


@pytest.mark.slow
def test_a_window_is_written_as_the_keys_to_the_left_of_a_token():
    """megatron-bridge 0.6.2, gpt_oss_bridge.py: window_size = (sliding_window - 1, 0),
    window_attn_skip_freq = 2, softmax_type "learnable"; transformers' layer_types of Gemma 3: every
    sixth attends to everything, five of 34."""
    for name, window, every in (("gpt-oss-20b", 128, 2), ("gemma-3-4b", 1024, 6)):
        data = spec(model=name, plan=dict(tp=1, pp=1, **Z1))
        said = arguments(made(data))
        assert said["--window-size"] == f"{window - 1},0"
        assert said["--window-attn-skip-freq"] == str(every)
        lines = made(data, "megatron-bridge")["bridge.overrides"].splitlines()
        assert f"model.window_size=[{window - 1},0]" in lines
        assert f"model.window_attn_skip_freq={every}" in lines
        assert ("model.softmax_type='learnable'" in lines) == (name == "gpt-oss-20b")
        assert (said.get("--softmax-type") == "learnable") == (name == "gpt-oss-20b")


def test_latent_attention_norms_its_latents_and_one_expert_is_chosen_before_the_softmax():
    """megatron-bridge 0.6.2, deepseek_v3_bridge.py and glm5_bridge.py: qk_layernorm = True;
    megatron-core 0.19.2, transformer_config.py: "Please use --moe-router-pre-softmax when topk is
    1"."""
    for name, flag in (
        ("deepseek-v3", "--qk-layernorm"),
        ("llama-4-scout", "--moe-router-pre-softmax"),
    ):
        said = arguments(made(spec(model=name, devices=1024, plan=dict(pp=8))))
        assert flag in said


@pytest.mark.slow
def test_sparse_attention_goes_with_gathered_keys():
    """megatron-core 0.19.2, transformer_config.py: "DSAttention context parallelism currently
    supports cp_comm_type=allgather only"."""
    model = {"hf_config": str(CONFIGS / "glm-5.json")}
    plan = dict(tp=1, pp=1, cp=8, cp_type="ring", ep=64, etp=1, sharding="zero3")
    plan |= dict(micro_batch=1, recompute="full")
    job = dict(seq_len=131072, global_batch=256)
    said = arguments(made(spec(model=model, devices=2048, plan=plan, job=job)))
    assert (said["--context-parallel-size"], said["--cp-comm-type"]) == ("8", "all_gather")
