"""Pinning one axis of a plan never beats leaving it open: a sample of what
`python tests/bench/pinning.py` looks at."""

from __future__ import annotations

import pinning
import pytest
from scantling import Design

DEEPSEEK = (
    "model: deepseek-v3\n"
    "cluster: {accelerator: gb200-nvl72, devices: 256, devices_per_node: 4, scale_up_domain: 64}\n"
    "job: {seq_len: 4096, global_batch: 4096, precision: mxfp8, effort: tuned, routing: forced}\n"
    "stack: {id: megatron-core, release: '26.08'}\n"
    "plan: {gradients: bf16, cuda_graphs: full, moe_dispatcher: hybridep, moe_overlap: true}"
)
ON_B200 = (
    "model: deepseek-v3\ncluster: {accelerator: b200-sxm, devices: 256}\n"
    "job: {seq_len: 4096, global_batch: 4096, precision: mxfp8, effort: tuned, routing: forced}\n"
    "stack: {id: megatron-core, release: '26.04'}\n"
    "plan: {gradients: bf16, cuda_graphs: layer, moe_dispatcher: deepep, moe_overlap: true}"
)
ON_CARDS = (
    "model: llama-4-maverick\ncluster: {accelerator: rtx5090, devices: 32232}\n"
    "job: {seq_len: 8192, global_batch: 5706, precision: fp8}"
)
SMALL = (
    "model: smollm3-3b\ncluster: {accelerator: h100-sxm, devices: 384}\n"
    "job: {seq_len: 4096, global_batch: 576, precision: bf16}\nstack: nanotron"
)
LARGE = (
    "model: llama-3.1-405b\ncluster: {accelerator: h100-sxm, devices: 65536}\n"
    "job: {seq_len: 8192, global_batch: 2048}"
)
AMD = (
    "model: llama-3.1-70b\ncluster: {accelerator: mi300x, devices: 64}\n"
    "job: {seq_len: 8192, global_batch: 1024}"
)
LONG = (
    "model: powerlm-3b\ncluster: {accelerator: h800-sxm, devices: 6008}\n"
    "job: {seq_len: 131072, global_batch: 1, optimizer: adamw-8bit}"
)
ON_A10G = (
    "model: {moe: true, size: 15.8e9}\n"
    "cluster: {accelerator: a10g, devices: 28928, devices_per_node: 4, oversubscription: 7}\n"
    "job: {seq_len: 8192, global_batch: 512, precision: fp16}"
)
SEVEN = (
    "model: qwen3-0.6b\ncluster: {accelerator: gh200-96, devices: 176,"
    " scale_out_gbytes_per_s_per_device: 100}\n"
    "job: {seq_len: 1000, global_batch: 7, precision: mxfp8, optimizer: adafactor}"
)
PRIME = (
    "model: gemma-2-9b\ncluster: {accelerator: trn3, devices: 458}\n"
    "job: {seq_len: 4096, global_batch: 4027}"
)
ODD = (
    "model: {layers: 72, hidden: 6144, heads: 64, kv_heads: 1, ffn_hidden: 512, experts: 384,"
    " top_k: 8, expert_ffn_hidden: 512, vocab: 244128, mlp: squared-relu}\n"
    "cluster: {accelerator: tpu-v5e, devices: 16}\n"
    "job: {seq_len: 8192, global_batch: 45, precision: bf16}"
)
# what once was faster pinned than searched: 61 layers have no chunks that divide them, batches of
# nine have no micro-batch that is a power of two, 8,192 tokens are short for four ranks, of the
# best plans of a kind only the first was looked around, and plans whose states leave the device
# were no kind of their own; a sequence of 131,072 tokens had 32 ranks at most, short parts of one
# were reached through depths of which none was nearly the fastest, ranks did not move between tp
# and pp, no depth above 16 filled the devices, and an odd batch had no micro-batch in host memory
PINS = [
    (DEEPSEEK, {"vpp": 4}),
    (DEEPSEEK, {"recompute": "selective", "recompute_modules": ["mla_up_proj"]}),
    (ON_B200, {"tp": 1}),
    (ON_B200, {"vpp": 3}),
    (ON_CARDS, {"recompute": "none"}),
    (ON_CARDS, {"ep": 32}),
    (SMALL, {"micro_batch": 3}),
    (LARGE, {"cp": 4}),
    (LONG, {"cp": 64}),
    (ON_A10G, {"cp": 8}),
    (SEVEN, {"tp": 1}),
    (PRIME, {"recompute": "none"}),
    (PRIME, {"layer_split": "balanced"}),
    (ODD, {"micro_batch": 3}),
    (AMD, {"sharding": "zero2"}),
    (AMD, {"offload": "none"}),
    (AMD, {"recompute": "selective", "recompute_modules": ["norm", "mlp_act"]}),
]


@pytest.mark.parametrize(("text", "pins"), PINS)
def test_a_pinned_axis_is_no_faster_than_the_open_search(text, pins):
    design = Design.from_yaml(text)
    before = pinning.best_of(design)
    after = pinning.best_of(design.change({f"plan.{axis}": x for axis, x in pins.items()}))
    assert after.step_s >= before.step_s * (1 - pinning.EQUAL), pinning.words(after)


@pytest.mark.slow
def test_no_axis_of_its_own_plans_is_faster_pinned():
    for text in (SMALL, LARGE, AMD):
        pins, found, _ = pinning.breaks("sample", Design.from_yaml(text))
        assert pins > 15 and not [str(one) for one in found if not one.beyond]


def test_a_break_is_found_and_told():
    """A search that leaves an axis out is one."""
    design = Design.from_yaml(SMALL)
    before = pinning.best_of(design.change({"plan.tp": 8}))
    after = pinning.best_of(design)
    one = pinning.Break("small", {"tp": 1}, 1 - after.step_s / before.step_s, before, after)
    assert one.gain > 0 and not one.beyond and "small" in str(one)


def test_a_stack_that_repeats_every_layer_of_a_stage_is_not_asked_for_fewer():
    """Megatron-DeepSpeed repeats all layers of a stage: three of four are asked for, not searched;
    three of three are."""
    design = Design.read(pinning.HERE / "gallery" / "designs" / "mt-nlg-530b-2240-a100.yaml")
    free = pinning.opened(design)
    pin = {"recompute": "full", "recompute_layers": 3}
    before = pinning.best_of(free)
    for pp, beyond in ((27, "not offered by the stack"), (35, "")):
        pins = {f"plan.{axis}": value for axis, value in {**pin, "pp": pp}.items()}
        after = pinning.best_of(free.change(pins))
        assert pinning.Break("530B", pin, 0.0, before, after).beyond == beyond
