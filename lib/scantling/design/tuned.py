"""The sections of a job that tunes a trained model: adapters, samples, the policy's own samples.

What a method has no use for is refused: adapters without lora, qlora or dpo, a rollout without
grpo or ppo.
"""

from collections.abc import Mapping
from typing import Any

from ..base.errors import DesignError
from ..catalogue.words import (
    ADAPTED,
    ADAPTER_TARGETS,
    POLICIES,
    PRECISIONS,
    ROLLOUT_ENGINES,
    WEIGHT_SYNCS,
    Method,
)
from .fields import Section, amount, count, flag, fraction, other, text, word, words


class AdapterSpec(Section):
    """Low-rank adapters beside frozen weights."""

    rank: int | None = count(1, 100_000, "elements", "rank of every adapter", example=16)
    targets: list[str] | None = words(
        ADAPTER_TARGETS,
        "projections that have one: all of attention's, queries, keys and values, its output, "
        "those of feed-forwards",
        example=["attention", "mlp"],
    )
    base_bits: int | None = count(
        2, 32, "bits", "a weight of the frozen blocks: 16, or 8 or 4 where quantised", example=4
    )


class DataSpec(Section):
    """Samples that are trained on."""

    samples: float | None = amount(1, 1e15, "samples", "samples of one pass", example=100_000)
    mean_tokens: float | None = amount(
        1, 1e9, "tokens", "mean length of a sample, prompt and answer", example=900
    )
    p95_tokens: float | None = amount(
        1, 1e9, "tokens", "length that 95 % of the samples keep to", example=2400
    )
    packed: bool | None = flag("several samples in one sequence; else each is padded", example=True)
    epochs: float | None = amount(0.001, 1000, "passes", "passes over the samples", example=3)


class RewardSpec(Section):
    """What judges a sample."""

    kind: str | None = word(
        ("rule", "model", "judge"),
        "a program, a reward model on the trainer's devices, or a judge elsewhere",
        example="rule",
    )
    model: str | None = text("catalogue id of the reward model", example="llama-3.1-8b")
    seconds: float | None = amount(
        0, 1e6, "s", "that a step waits for its judge, beside everything else", example=5
    )


class RolloutSpec(Section):
    """How a policy draws its samples, and what is done with them."""

    engine: str | None = word(ROLLOUT_ENGINES, "program that generates", example="vllm")
    devices: int | None = count(
        1, 10_000_000, "devices", "that generate; the rest train where not colocated", example=32
    )
    colocated: bool | None = flag(
        "trainer and engine share all devices, one after the other", example=False
    )
    tp: int | None = count(1, 1024, "ways", "devices of one replica of the engine", example=4)
    dp: int | None = count(1, 1_000_000, "replicas", "replicas of the engine", example=8)
    ep: int | None = count(1, 1024, "ways", "ranks over which its experts are spread", example=1)
    precision: str | None = word(PRECISIONS, "number format of the engine", example="bf16")
    prompts: int | None = count(1, 100_000_000, "prompts", "of a step", example=64)
    samples: int | None = count(1, 100_000, "samples", "drawn for each prompt", example=32)
    mean_prompt: float | None = amount(1, 1e9, "tokens", "mean length of a prompt", example=130)
    mean_response: float | None = amount(
        1, 1e9, "tokens", "mean length of a response", example=1060
    )
    max_response: float | None = amount(
        1, 1e9, "tokens", "length at which a response is cut", example=4096
    )
    tail: float | None = amount(
        0.05, 3, "ratio", "standard deviation of the logarithm of lengths", example=0.7
    )
    kv_fraction: float | None = fraction(
        0.05, 0.98, "of a device's memory that the engine may fill", example=0.6
    )
    lag: int | None = count(
        0, 100, "steps", "by which samples may be older than the weights", example=1
    )
    updates: int | None = count(
        1, 100_000, "updates", "optimizer steps on the samples of one generation", example=4
    )
    reference: bool | None = flag(
        "a frozen reference model gives log-probabilities too", example=True
    )
    critic: bool | None = flag("a value model of the policy's size is trained too", example=False)
    redraw: float | None = amount(
        1, 100, "ratio", "samples drawn over samples trained on: dynamic sampling", example=1.5
    )
    reward: RewardSpec | None = other("what judges a sample", example={"kind": "rule"})
    environment_s: float | None = amount(
        0, 1e6, "s", "that a step waits for tools and environments of agents", example=0
    )
    weight_sync: str | None = word(
        WEIGHT_SYNCS, "how new weights reach the engine", example="broadcast"
    )
    steps: float | None = amount(1, 1e9, "steps", "of the whole run", example=500)


def check_method(method: str | None, job: Mapping[str, Any]) -> None:
    """Raises DesignError where a section stands beside a method that has no use for it."""
    if "adapter" in job and method not in (*ADAPTED, Method.DPO):
        raise DesignError(
            "adapter",
            allowed="job.method: lora, qlora or dpo beside it, or no adapter",
            problem=f"stands beside the method {method or 'pretrain'}, which trains no adapters",
        )
    if "rollout" in job and method not in POLICIES:
        raise DesignError(
            "rollout",
            allowed="job.method: grpo or ppo beside it, or no rollout",
            problem=f"stands beside the method {method or 'pretrain'}, which draws no samples",
        )
    if "data" in job and method in (None, "pretrain"):
        raise DesignError(
            "data",
            allowed="job.method: sft, lora, qlora or dpo beside it, or job.tokens",
            problem="stands beside the method pretrain, which counts tokens",
        )
    if "phases" in job and method not in (None, "pretrain"):
        raise DesignError(
            "phases", allowed="one stretch", problem=f"cannot be planned with the method {method}"
        )
