"""Fine-tuning steps and memory: counts of papers, published peaks, and what cannot be otherwise."""

import numpy as np
import pytest
from scantling.catalogue.models.entries import model
from scantling.catalogue.models.shape import parameters, shape_of
from scantling_posttrain.adapters import Targets, adapter_parameters
from scantling_posttrain.constants import constants, ranges
from scantling_posttrain.names import model_id
from scantling_posttrain.predict import tuning_columns

ROW = {
    "id": "a",
    "framework": "HF Trainer",
    "method": "LoRA",
    "lora_rank": "16",
    "target_modules": "q_proj k_proj v_proj o_proj",
    "base_weight_bits": "16",
    "model": "Mistral-7B-v0.1",
    "accelerator": "a100-80",
    "devices": "1",
    "seq_len": "4096",
    "packed": "yes",
    "micro_batch": "4",
    "global_batch": "4",
    "sharding": "none",
    "precision": "bf16",
    "recompute": "full",
    "published": "2024",
    "notes": "",
}


def answers(**changes):
    columns = tuning_columns([ROW | changes])
    assert columns["error"][0] == "", columns["error"][0]
    return {name: column[0] for name, column in columns.items()}


def test_adapters_of_gpt_3_have_the_published_count():
    """Hu et al. 2021, section 5.5: GPT-3 175B, r = 4 on queries and values: 4.7 M for r = 1 on
    both, 37.7 M at r = 8."""
    shape = shape_of(model("gpt-3-175b"))
    both = adapter_parameters(shape, Targets(qkv=1.0, out=0.0, mlp=0.0, fused=0.0), 8.0)
    assert float(both) * 2 / 3 == pytest.approx(37.7e6, rel=0.01)


@pytest.mark.parametrize("targets", [(1, 1, 0), (1, 1, 1)])
def test_llama_2_7b_has_the_adapters_that_peft_prints(targets):
    """peft, print_trainable_parameters of meta-llama/Llama-2-7b-hf at r = 16: 16,777,216 on
    attention, 39,976,960 on all linear layers."""
    qkv, out, mlp = map(float, targets)
    shape = shape_of(model("llama-2-7b"))
    count = adapter_parameters(shape, Targets(qkv=qkv, out=out, mlp=mlp, fused=0.0), 16.0)
    assert float(count) == (39_976_960 if mlp else 16_777_216)


def test_four_bits_keep_a_65b_model_on_one_48_gb_device():
    """Dettmers et al. 2023, abstract: QLoRA tunes a 65B model on a single 48 GB GPU."""
    lora = answers(model="llama-1-65b", accelerator="a6000", micro_batch="1", seq_len="512")
    qlora = answers(
        model="llama-1-65b",
        accelerator="a6000",
        micro_batch="1",
        seq_len="512",
        method="QLoRA",
        base_weight_bits="4",
    )
    assert (lora["fits"], qlora["fits"]) == ("false", "true")
    assert qlora["peak_memory_gb"] < 48


def test_adapters_take_less_memory_and_time_than_all_weights():
    lora, full = answers(), answers(method="SFT full")
    assert lora["peak_memory_gb"] < full["peak_memory_gb"]
    assert lora["step_s"] < full["step_s"]


def test_a_pair_of_dpo_takes_longer_than_a_sample():
    assert answers(method="DPO full")["step_s"] > 1.2 * answers(method="SFT full")["step_s"]


def test_unpacking_costs_most_where_a_step_has_few_tokens():
    def slower(seq_len):
        lora = answers(seq_len=seq_len, micro_batch="1")
        qlora = answers(
            seq_len=seq_len, micro_batch="1", method="QLoRA", base_weight_bits="4 (gptq)"
        )
        return qlora["step_s"] / lora["step_s"]

    assert slower("256") > slower("8192") > 1


def test_a_model_that_no_catalogue_has_is_an_error_and_nothing_else():
    columns = tuning_columns([ROW | {"model": "some-new-7b"}])
    assert "some-new-7b" in columns["error"][0] and np.isnan(columns["step_s"][0])


@pytest.mark.parametrize(
    "printed, known",
    [
        ("Meta-Llama-3-8B-GPTQ", "llama-3-8b"),
        ("Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b"),
        ("qwen-1_8b-chat", "qwen-1.8b"),
        ("DeepSeek V3", "deepseek-v3"),
        ("Qwen2.5-VL-7B", ""),
        ("some-new-7b", ""),
    ],
)
def test_a_release_has_the_shape_of_its_model_and_no_other(printed, known):
    assert model_id(printed) == known


def test_every_constant_lies_within_its_range_and_says_its_source():
    values = vars(constants())
    for name, limit in ranges().items():
        assert limit.low <= values[name] <= limit.high, name
        assert len(limit.source) > 8, name


def test_parameters_of_the_models_that_tables_name():
    """Qwen-72B as its checkpoint has it."""
    assert parameters(model("qwen-72b")).total == 72_287_920_128


def grown(**changes):
    """Bytes that a token more of a micro-batch of Llama 3 8B takes."""
    row = {"model": "Meta-Llama-3-8B", "notes": "", **changes}
    peaks = [answers(micro_batch=n, global_batch=n, **row)["peak_memory_gb"] for n in ("4", "8")]
    return (peaks[1] - peaks[0]) * 1e9 / (4 * 4096)


def test_a_fused_loss_keeps_eight_bytes_of_a_logit():
    """fms-acceleration, FOAK without Liger on Llama 3 8B (scripts/benchmarks/refs, allocated): 4 to
    8 sequences of 4,096 take 1,304,165 bytes a token; an eager log-softmax adds 4 of a logit's."""
    fused = grown(framework="HF Trainer + foak-fast-kernels")
    assert fused == pytest.approx(1_304_165, rel=0.2)
    assert grown() - fused == pytest.approx(4 * 128_256, rel=0.05)


def test_the_loss_is_over_when_the_backward_of_the_layers_begins():
    """The same with Liger, whose loss has no whole logits: 528,220 bytes a token."""
    liger = grown(framework="HF Trainer + foak-fast-kernels-liger")
    assert liger == pytest.approx(528_220, rel=0.2)


def test_a_stream_in_fp32_doubles_what_is_kept_between_layers():
    """peft's prepare_model_for_kbit_training on one device; FSDP casts what enters a layer."""
    packed = {"method": "QLoRA", "base_weight_bits": "4 (bnb nf4)"}
    plain = grown(framework="HF Trainer + accelerated-peft-bnb", **packed)
    wide = grown(framework="HF Trainer + baseline-peft-bnb", **packed)
    assert wide - plain == pytest.approx(2 * 32 * 4096, rel=1e-6)
    sharded = packed | {"devices": "2", "sharding": "fsdp (zero3)"}
    assert grown(framework="HF Trainer + baseline-peft-bnb", **sharded) == pytest.approx(
        grown(framework="HF Trainer + accelerated-peft-bnb", **sharded)
    )


def test_chains_run_one_by_one_take_longer_than_fused_ones():
    assert answers()["step_s"] > 1.05 * answers(framework="HF Trainer + liger")["step_s"]


def test_a_trainer_that_adapts_every_projection_takes_longer():
    """prime-rl's LoRAConfig names all projections and experts, peft attention's."""
    named = answers(framework="prime-rl trainer", target_modules="q_proj k_proj v_proj o_proj")
    assert answers(framework="prime-rl trainer", target_modules="")["step_s"] > named["step_s"]


def test_what_a_row_says_of_others_is_not_its_own():
    """torchtune's ladder says in every row that its LoRA rows are without 8-bit AdamW."""
    said = {"framework": "torchtune", "method": "SFT full", "precision": "bf16"}
    notes = "LoRA rows without 8-bit AdamW"
    peaks = [answers(**said, notes=text)["peak_memory_gb"] for text in ("", notes, "+ 8-bit AdamW")]
    assert peaks[0] == peaks[1] > peaks[2]
