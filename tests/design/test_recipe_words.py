"""Words that makers' recipes set beside degrees: moments, gradients of every micro-batch, groups of
replicas, a compiler's memory budget, layers by their numbers, what graphs capture, experts that are
sharded their own way, layers that stay in 16 bit."""

from __future__ import annotations

import pytest
from scantling import Design, DesignError, assess
from scantling.advise.inert import inert
from scantling.physics.recompute import budget_switches

OLMO = (
    "model: olmo-2-32b\ncluster: {accelerator: h100-sxm, devices: 1024}\nstack: pytorch-fsdp\n"
    "job: {tokens: 1e12, seq_len: 8192, global_batch: 1024}\n"
    "plan: {tp: 1, pp: 1, cp: 1, micro_batch: 1, offload: none, %s}"
)
LLAMA = (
    "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 64}\nstack: hf-trainer\n"
    "job: {seq_len: 4096, global_batch: 1024%s}\n"
    "plan: {tp: 1, pp: 1, cp: 1, micro_batch: 1, sharding: zero2, recompute: full%s}"
)


def olmo(words):
    return assess(Design.from_text(OLMO % words))


def llama(words="", job=""):
    return assess(Design.from_text(LLAMA % (job, words)))


def test_the_published_budget_of_half_fits_under_groups_of_64():
    """OLMo-core's official script of OLMo 3 32B: HSDP over 64 ranks, activation memory budget 0.5;
    nothing repeated it would not fit."""
    half = olmo("sharding: hsdp, dp_outer: 16, compile_memory_budget: 0.5")
    assert half.fits and half.plan["shard_group"] == 64 and half.plan["sharding"] == "hsdp"
    assert not olmo("sharding: hsdp, dp_outer: 16, recompute: none").fits


def test_a_budget_is_the_share_between_the_input_of_a_layer_and_all_of_it():
    """torch/_functorch/config.py: 0.4 saves 40 % of the activations of the default strategy, 0 what
    checkpointing of the whole region saves."""
    used = {}
    for budget in (0, 0.25, 0.5, 0.75, 1):
        a = olmo(f"sharding: zero3, compile_memory_budget: {budget}")
        used[budget] = float(a.chosen.memory.activations)
    full = float(olmo("sharding: zero3, recompute: full").chosen.memory.activations)
    none = float(olmo("sharding: zero3, recompute: none").chosen.memory.activations)
    assert used[1] == pytest.approx(none, rel=0.02)
    assert used[0.5] == pytest.approx((used[0] + used[1]) / 2, rel=0.05)
    assert list(used.values()) == sorted(used.values()) and used[0] >= 0.98 * full


def test_operations_without_products_are_repeated_first():
    """PyTorch's blog on activation checkpointing: half of the memory by pointwise operations alone,
    then products, attention last."""
    half, less = budget_switches(0.5), budget_switches(0.25)
    assert half["selective_norm"] == half["selective_act"] == 1 and half["selective_gemm"] == 0
    assert less["selective_gemm"] == pytest.approx(0.5) and less["selective_attention"] == 0
    assert budget_switches(0)["selective_attention"] == budget_switches(0)["selective_gemm"] == 1
    assert budget_switches(1)["selective_norm"] == 0
    steps = [olmo(f"sharding: zero3, compile_memory_budget: {b}").step_s for b in (1, 0.5, 0.2, 0)]
    assert steps == sorted(steps)


def test_moments_are_those_of_the_optimizer_of_that_name():
    for moments, optimizer in (("bf16", "adamw-bf16"), ("int8", "adamw-8bit"), ("fp32", "adamw")):
        short, named = llama(f", moments: {moments}"), llama(job=f", optimizer: {optimizer}")
        assert short.chosen.memory.optimizer == named.chosen.memory.optimizer
    with pytest.raises(DesignError, match="is no format of the states of muon"):
        llama(", moments: bf16", ", optimizer: muon")


def test_gradients_of_every_micro_batch_are_sent_and_not_kept_whole():
    """accelerate's GradientAccumulationPlugin(sync_each_batch=True): memory of FSDP without
    accumulation, an fp32 shard where 16 bits of every parameter waited, and the traffic of every
    micro-batch."""
    summed, each = llama(), llama(", sync_each_batch: true")
    ranks, m = 64, each.plan["grad_accum"]
    assert float(each.chosen.memory.gradients) * ranks == pytest.approx(
        4 / 2 * float(summed.chosen.memory.gradients)
    )
    sent = [a.step_breakdown_s["dp"] + a.chosen.step.axes["dp"].hidden_s for a in (summed, each)]
    assert sent[1] > m / 4 * sent[0]
    assert llama(", sync_each_batch: false").step_s == summed.step_s


def test_layers_by_their_numbers_are_as_many_of_a_stage():
    ids = olmo("sharding: zero3, recompute_layer_ids: [0, 2, 4, 6]")
    count = olmo("sharding: zero3, recompute: full, recompute_layers: 4")
    assert ids.plan == count.plan and ids.step_s == count.step_s
    for wrong in ("[0, 64]", "[-1]", "[3, 3]"):
        with pytest.raises(DesignError, match="numbers of layers, 0 to 63"):
            olmo(f"sharding: zero3, recompute_layer_ids: {wrong}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("dp: 1024, dp_outer: 3", "a divisor of dp x cp, 1024"),
        ("dp: 1024, dp_outer: 4, sharding: zero1", "under hsdp"),
        ("compile_memory_budget: 0.5, recompute: full", "another is stated beside it"),
        ("recompute_layer_ids: [1], recompute: none", "another is stated beside it"),
        ("compile_memory_budget: 1.5", "compile_memory_budget"),
    ],
)
def test_words_that_contradict_each_other_are_refused_in_a_line(words, said):
    with pytest.raises(DesignError, match=said) as error:
        olmo(words)
    assert "\n" not in str(error.value)


MIXTRAL = (
    "model: mixtral-8x7b\nstack: %s\ncluster: {accelerator: h100-sxm, devices: 64}\n"
    "job: {tokens: 1e11, seq_len: 4096, global_batch: 512}\n"
    "plan: {tp: 1, pp: 1, cp: 1, ep: 8, etp: 1, micro_batch: 1, recompute: none%s}"
)


def mixtral(words, stack="megatron-core"):
    return assess(Design.from_text(MIXTRAL % (stack, f", {words}" if words else "")))


@pytest.mark.parametrize(
    ("modules", "graphs"),
    [
        ("[]", 0),
        ("[moe_router]", 0.5),
        ("[moe_router, moe_preprocess]", 0.5),
        ("[attn, moe_router, moe_preprocess]", 1),
        ("[moe]", 1),
        ("[full_iteration]", 2),
    ],
)
def test_modules_that_graphs_capture_set_the_switch_of_graphs(modules, graphs):
    """CudaGraphModule of Megatron-Core; its recipes for experts capture the router and what sorts
    its tokens."""
    named = mixtral(f"sharding: zero1, graph_modules: {modules}")
    assert named.chosen.case.software.graphs == graphs
    word = {0: "none", 1: "layer", 2: "full"}.get(graphs)
    if word:
        assert named.step_s == mixtral(f"sharding: zero1, cuda_graphs: {word}").step_s
    given = named.design.data()["plan"]["graph_modules"]
    assert given == [module.strip() for module in modules.strip("[]").split(",") if module]


def test_experts_of_zero1_keep_their_weights_beside_zero3():
    """Rajbhandari et al. 2020: states are divided by the ranks under zero1, weights and gradients
    are not, both in bf16; 8 experts of 32 layers, 3 x 4096 x 14336 each, one a rank."""
    sharded = mixtral("sharding: zero3", "pytorch-fsdp")
    whole = mixtral("sharding: zero3, expert_sharding: zero1", "pytorch-fsdp")
    usual = mixtral("sharding: zero3, expert_sharding: zero3", "pytorch-fsdp")
    assert usual.step_s == sharded.step_s and usual.memory_bytes == sharded.memory_bytes
    memory = (sharded.chosen.memory, whole.chosen.memory)
    of_rank, replicas = 32 * 3 * 4096 * 14336, 8
    more = float(memory[1].gradients - memory[0].gradients)
    assert more == pytest.approx(2 * of_rank * (1 - 1 / replicas), rel=0.05)
    assert memory[1].optimizer == memory[0].optimizer
    assert memory[1].weights - memory[0].weights == pytest.approx(2 * of_rank, rel=0.01)
    assert whole.step_breakdown_s["dp"] < sharded.step_breakdown_s["dp"]  # not gathered


def test_layers_kept_in_16_bit_take_the_time_and_memory_of_16_bit():
    """Megatron-Core's is_first_last_bf16_layer: layer < start, or layer >= layers - end."""
    plan = "sharding: zero1, precision: fp8-current"
    low, some, every = (
        mixtral(plan + keep)
        for keep in ("", ", keep_16bit: {first: 1, last: 7}", ", keep_16bit: {last: 32}")
    )
    wide = mixtral("sharding: zero1, precision: bf16")
    assert every.step_s == pytest.approx(wide.step_s, rel=1e-3)
    parts = [a.step_breakdown_s["gemm"] for a in (low, some, wide)]
    assert parts[1] == pytest.approx(parts[0] + (parts[2] - parts[0]) * 8 / 32, rel=1e-3)
    weights = [a.chosen.memory.weights for a in (low, some, wide)]
    assert weights[1] - weights[0] == pytest.approx((weights[2] - weights[0]) / 4, abs=1)
    used = [float(a.chosen.memory.activations) for a in (low, some, wide)]
    assert used[1] == pytest.approx(used[0] + (used[2] - used[0]) / 4, rel=1e-3)
    none = mixtral(plan + ", keep_16bit: {first: 0, last: 0}")
    assert none.step_s == low.step_s


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("graph_modules: [attn], cuda_graphs: full", "means graphs: layer"),
        ("graph_modules: [full_iteration, attn]", "parts beside the whole iteration"),
        ("graph_modules: [attn, mamba]", "captures mamba, which the model has not"),
        ("keep_16bit: {last: 1}", "16 bit where all are"),
        ("precision: fp8, keep_16bit: {first: 30, last: 3}", "at most 32 layers"),
    ],
)
def test_words_of_graphs_experts_and_ends_are_refused_in_a_line(words, said):
    with pytest.raises(DesignError, match=said) as error:
        mixtral(words)
    assert "\n" not in str(error.value)


def test_words_of_experts_are_refused_without_experts():
    for words, said in (
        ("graph_modules: [moe_router]", "which the model has not"),
        ("expert_sharding: zero1", "without experts"),
    ):
        with pytest.raises(DesignError, match=said):
            llama(f", {words}")


def test_a_sharding_of_experts_without_effect_says_why():
    alone = mixtral("sharding: zero1, expert_sharding: zero1, offload: optimizer")
    (line,) = (line for line in inert(alone) if line.startswith("plan.expert_sharding"))
    assert "weights of experts are whole" in line
