"""The run that a log is of: plan, batch, model and rate, from its settings and its steps."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import nan

import numpy as np
from scantling.base.errors import plain
from scantling.catalogue.models.entries import id_of, of_shape
from scantling.catalogue.setting_names import NOT_SET, Setting
from scantling.catalogue.words import NARROW_PRECISIONS, Precision, Recompute, Sharding
from scantling.runs.spellings import spelt

from .contents import Column, Contents, number
from .steady import Steady, differences

PRECISIONS = {
    "fp8": re.compile(r"fp8|float8"),
    "int8": re.compile(r"int8"),
    "bf16": re.compile(r"bf16|bfloat16"),
    "fp16": re.compile(r"fp16|float16|^16|half"),
    "fp32": re.compile(r"fp32|float32|^32"),
}
MLPS = {  # by the setting swiglu
    "true": "swiglu",
    "false": "gelu",
    "fast-swiglu": "swiglu",
    "swiglu": "swiglu",
    "gelu": "gelu",
    "fast-geglu": "geglu",
}
DIMENSIONS = (Setting.LAYERS, Setting.HIDDEN, Setting.HEADS, Setting.KV_HEADS, Setting.VOCAB)
DENSE = (Setting.FFN_HIDDEN,)
MIXED = (Setting.EXPERTS, Setting.TOP_K, Setting.EXPERT_FFN_HIDDEN)


@dataclass(frozen=True)
class RunPlan:
    """Parallel degrees, batches and devices of a run; None where its log does not say."""

    tp: int | None
    pp: int | None
    vpp: int | None
    cp: int | None
    ep: int | None
    dp: int | None
    seq_len: int | None
    micro_batch: int | None
    nodes: int | None
    devices: int | None = None

    @property
    def model_ranks(self) -> int:
        """Devices that hold one copy of the model."""
        return (self.tp or 1) * (self.pp or 1) * (self.cp or 1)


def plan_of(log: Contents) -> RunPlan:
    """The plan that the settings state, and what follows from them."""
    plan = stated_plan(log)
    per_node = log.count(Setting.DEVICES_PER_NODE)
    if per_node is None:
        per_node = 1 + (log.count(Setting.LAST_LOCAL_RANK) or -1)
    devices = stated_devices(log)
    if not devices and per_node and plan.nodes:
        devices = per_node * plan.nodes
    if plan.dp and plan.tp and plan.pp and "dp_shard" in log.settings:
        devices = plan.dp * plan.model_ranks
    if per_node and not devices and plan.nodes is None:
        devices = per_node
        log.notes.append("devices: one node, as the log names no other")
    nodes = plan.nodes
    if not nodes and devices and per_node and devices % per_node == 0:
        nodes = devices // per_node
    dp = plan.dp
    if dp is None and devices and (plan.tp or log.data_parallel_only):
        dp = devices // plan.model_ranks if devices % plan.model_ranks == 0 else None
    return replace(plan, nodes=nodes, dp=dp, devices=devices)


def stated_plan(log: Contents) -> RunPlan:
    """The plan as the settings state it."""

    def count(setting: Setting) -> int | None:
        return None if setting in log.ignored else log.count(setting)

    pp = count(Setting.PP)
    if pp is None and "pipe_parallel_size" in log.settings:
        pp = 1
    dp = count(Setting.DP)
    replicas = number(log.settings.get("dp_replicate"))
    shards = number(log.settings.get("dp_shard"))
    if replicas >= 1 and shards >= 1:
        dp = int(replicas * shards)
    return RunPlan(
        tp=count(Setting.TP),
        pp=pp,
        vpp=count(Setting.VPP),
        cp=count(Setting.CP),
        ep=count(Setting.EP),
        dp=dp,
        seq_len=count(Setting.SEQ_LEN),
        micro_batch=count(Setting.MICRO_BATCH),
        nodes=count(Setting.NODES),
    )


def stated_devices(log: Contents) -> int | None:
    """Devices of the job: as a setting states them, else the product of a device mesh."""
    devices = log.count(Setting.DEVICES)
    mesh = log.word(Setting.MESH)
    if devices or not mesh:
        return devices
    return math.prod(int(axis) for axis in re.findall(r"\d+", mesh))


def median_of(steps: Steady, column: Column) -> float:
    """Median of a printed figure over the steady steps, over all steps where none is steady."""
    values = steps.columns[column]
    usable = (values > 0) & np.isfinite(values)
    later = np.arange(values.size) >= min(3, values.size - 1)
    for mask in (steps.steady & usable, later & usable):
        if mask.any():
            return float(np.median(values[mask]))
    return nan


def per_step(steps: Steady, column: Column) -> float:
    """How much a printed total grows in a step, nan where the log has none."""
    grown = differences(steps.columns[Column.STEP], steps.columns[column])
    grown = grown[grown > 0]
    return float(np.median(grown)) if grown.size else nan


def with_totals(plan: RunPlan, log: Contents, steps: Steady) -> RunPlan:
    """The plan with the sequence length and the devices that follow from totals and rates, where
    no setting says them."""
    if plan.seq_len is None:
        plan = replace(plan, seq_len=seq_len_of(steps))
    if plan.devices is None:
        step_tokens = median_of(steps, Column.TOKENS_PER_S_PER_DEVICE) * steps.step_s
        count = per_step(steps, Column.TOKENS_TOTAL) / step_tokens if step_tokens > 0 else nan
        if count > 0.5 and abs(count / round(count) - 1) < 0.03:
            log.notes.append("devices: tokens of a step / (tokens/s of a device x step time)")
            return replace(plan, devices=round(count))
    return plan


def seq_len_of(steps: Steady) -> int | None:
    """Tokens of a sequence where the log counts tokens and sequences."""
    tokens = steps.columns[Column.TOKENS_TOTAL]
    samples = steps.columns[Column.SAMPLES_TOTAL]
    both = (samples > 0) & (tokens > 0)
    length = float(np.median(tokens[both] / samples[both])) if both.any() else 0.0
    return int(length) if length > 0 and length.is_integer() else None


def batch_of(plan: RunPlan, log: Contents, steps: Steady) -> int | None:
    """Sequences in a step, from the best source that the log has."""
    printed = median_of(steps, Column.GLOBAL_BATCH)
    if printed >= 1:
        return int(printed)
    if stated := log.count(Setting.GLOBAL_BATCH):
        return stated
    tokens = log.count(Setting.TOTAL_BATCH_TOKENS)
    if tokens and plan.seq_len and tokens % plan.seq_len == 0:
        return tokens // plan.seq_len
    count = median_of(steps, Column.SAMPLES_PER_S) * steps.step_s
    if count > 0 and abs(count - round(count)) < 0.02 * count:
        return max(1, round(count))
    passes = log.count(Setting.ACCUMULATION)
    if plan.micro_batch and plan.dp and passes:
        return plan.micro_batch * plan.dp * passes
    return None


def rate_of(plan: RunPlan, steps: Steady, batch: int | None) -> float:
    """Tokens/s of one device: as printed, else tokens of a step / step time / devices."""
    if steps.steps == 1 and not steps.step_s > 0:
        return nan  # one step alone: its rate holds compilation
    printed = median_of(steps, Column.TOKENS_PER_S_PER_DEVICE)
    if printed > 0:
        return printed
    if not plan.devices:
        return nan
    job = median_of(steps, Column.TOKENS_PER_S)
    if job > 0:
        return job / plan.devices
    tokens = (batch or 0) * (plan.seq_len or 0)
    return tokens / steps.step_s / plan.devices if tokens and steps.step_s > 0 else nan


def precision_of(log: Contents) -> str | None:
    """The precision of products, as the settings say: of 8 bit by its recipe."""
    if switch_of(log, Setting.FP4):
        return Precision.NVFP4
    if switch_of(log, Setting.FP8):
        words = [word for s in (Setting.FP8_RECIPE, Setting.FP8) if (word := log.word(s))]
        names = [spelt("precision", name) for word in words for name in (word, f"fp8-{word}")]
        return next((name for name in names if name in NARROW_PRECISIONS), Precision.FP8)
    for switch in (Setting.BF16, Setting.FP16):
        if switch_of(log, switch):
            return switch.value
    word = (log.word(Setting.PRECISION) or "").lower()
    return next((name for name, spelling in PRECISIONS.items() if spelling.search(word)), None)


def switch_of(log: Contents, setting: Setting) -> bool | None:
    """Whether a switch is on; None where the log does not say."""
    word = log.word(setting)
    return None if word is None else word.lower() not in NOT_SET


def recompute_of(log: Contents) -> Recompute | None:
    """What the backward computes again, as the settings say; None where they do not."""
    word = spelt("recompute", log.word(Setting.RECOMPUTE) or "")
    return next((mode for mode in Recompute if mode == word), None)


def recompute_layers_of(log: Contents, plan: RunPlan) -> int | None:
    """Layers of a stage that are recomputed; None for all. Megatron counts those of a virtual
    stage; under the method `uniform` its number is the layers of a checkpoint, and all are
    recomputed."""
    layers = log.count(Setting.RECOMPUTE_LAYERS)
    if layers is None or log.word(Setting.RECOMPUTE_METHOD) != "block":
        return None
    return layers * (plan.vpp or 1)


def sharding_of(log: Contents) -> Sharding | None:
    """What the data-parallel ranks share out, as the settings say: the stage of ZeRO, or Megatron's
    distributed optimizer, which is the first."""
    stage = number(log.word(Setting.ZERO_STAGE))
    if 0 <= stage <= 3:
        return (Sharding.NONE, Sharding.ZERO1, Sharding.ZERO2, Sharding.ZERO3)[int(stage)]
    sharded = switch_of(log, Setting.SHARDED_OPTIMIZER)
    return None if sharded is None else Sharding.ZERO1 if sharded else Sharding.NONE


def shape_of(log: Contents) -> dict[str, int | str]:
    """The dimensions of a model that a log states. One group of heads is what Megatron prints
    where heads are not grouped."""
    mixed = (log.count(Setting.EXPERTS) or 1) > 1
    shape: dict[str, int | str] = {}
    for name in DIMENSIONS + (MIXED if mixed else DENSE):
        size = log.count(name)
        if size and (size > 1 or name is Setting.TOP_K):
            shape[name.value] = size
    mlp = MLPS.get((log.word(Setting.SWIGLU) or "").lower())
    if mlp:
        shape["mlp"] = mlp
    return shape


def model_of(log: Contents, shape: Mapping[str, int | str]) -> str | None:
    """The model by name, the last part of what may be a path, as the catalogue spells it; else the
    catalogue's of the same shape, else by its shape."""
    path = (log.word(Setting.MODEL) or "").replace("\\", "/").rstrip("/")
    name = plain(path.rpartition("/")[2], 80)
    known = id_of(re.sub(r"[\s_]+", "-", name))
    if known or name:
        return known or name
    same = of_shape({"experts": 0, **shape})
    if same:
        log.notes.append("model: the first of the catalogue that has the same shape")
        return same
    if "layers" in shape and "hidden" in shape:
        return f"{shape['layers']} layers x {shape['hidden']}"
    return None
