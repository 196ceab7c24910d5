"""Rows of fine-tuning tables as cases of the core and what they do beside it.

A row's settings stand in its columns and, where a table has one for remarks, in the words of its
notes; none of the measured columns is read here. What no column and no word says is filled in by a
rule, which the row's `assumed` names.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scantling import catalogue
from scantling.base.columns import Array
from scantling.base.errors import DesignError
from scantling.base.records import record
from scantling.physics.cases import Cases
from scantling.runs.normalise import cell_of
from scantling.runs.read import checked
from scantling.runs.run_table import table_of_cells
from scantling.runs.to_cases import to_runs

from .adapters import RANK, Targets
from .names import model_id
from .tuning_columns import Tuning, fp32_base

Cells = Mapping[str, str]  # of a row, by column
# trainers of whatever model the transformers library has
ANY_MODEL = ("transformers", "hf trainer", "prime-rl", "swift", "trl", "llama-factory", "axolotl")
OWN_CODE = ("qwen-",)  # models whose modules come with their weights
MAKERS = ("nemo", "megatron-bridge", "mindspeed")  # recipes of a maker of chips
EVERY_TARGET = ("prime-rl", "torchtune")  # adapters of all projections, where none are named
FUSED = ("foak", "liger", "unsloth")
METHODS = (  # words of a method's column, the first that is found counts
    ("qlora", "qlora"),
    ("lora", "lora"),
    ("peft", "lora"),
    ("dpo", "dpo"),
    ("orpo", "dpo"),
    ("full", "sft"),
    ("sft", "sft"),
)
UNPACKED_TOKENS = 256.0  # of an instruction with its answer, where no length is printed (judgement)
REAL_TOKENS = "tokens/s is of real tokens"  # of a ladder whose samples are not packed
ALONE = "all runs are single-gpu"  # of a page whose machines have several devices
ATTENTION = ("q_proj", "k_proj", "v_proj", "qkv", "c_attn", "query_key_value", "attention", "attn")
OUT = ("o_proj", "c_proj", "out_proj", "attention", "attn.c_proj", "all", "dense")
MLP = ("gate_proj", "up_proj", "w1", "mlp", "fc1", "all", "c_fc", "dense_h")


class Stack(NamedTuple):
    """The core's stack that stands for a trainer, and what that keeps of a trained parameter."""

    id: str
    half: bool  # weights, gradients and moments in 16 bit, no fp32 copy, where unsharded
    adapter_bytes: float  # of an adapter's weight
    eager: bool  # kernels are launched one by one


def stack_of(row: Cells) -> Stack:
    """The stack of a row's framework, by its name."""
    name = row.get("framework", "").lower()
    if "megatron" in name or "mindspeed" in name:
        return Stack("megatron-core", half=False, adapter_bytes=2.0, eager=False)
    if "torchtune" in name:
        return Stack("torchtitan", half=True, adapter_bytes=2.0, eager=True)
    if "prime-rl" in name or "torchtitan" in name or "dtensor" in name:
        return Stack("torchtitan", half=False, adapter_bytes=4.0, eager=False)
    if "litgpt" in name:
        return Stack("pytorch-fsdp", half=True, adapter_bytes=2.0, eager=True)
    whole = method_of(row) in ("sft", "dpo")
    if "deepspeed" in name and (whole or "zero3" in row.get("sharding", "")):
        return Stack("deepspeed", half=False, adapter_bytes=2.0, eager=True)
    return Stack("hf-trainer", half=True, adapter_bytes=2.0, eager=True)


def method_of(row: Cells) -> str:
    """sft, lora, qlora or dpo by the words of the method's column; "" where it says none."""
    text = row.get("method", "").lower()
    return next((method for word, method in METHODS if word in text), "")


def number(row: Cells, column: str, otherwise: float = np.nan) -> float:
    """A number of a row, as much of the cell as is one; `otherwise` where it has none."""
    match = re.match(r"\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?)", row.get(column, ""), re.ASCII)
    return float(match[1]) if match else otherwise


def bits_of(row: Cells) -> float:
    """Bits of a weight of the base."""
    match = re.search(r"\d+", row.get("base_weight_bits", ""))
    if match is None:
        return 4.0 if method_of(row) == "qlora" else 16.0
    return float(match[0])


def targets_of(row: Cells) -> Targets:
    """Which projections have adapters, by the names of the modules, or as its framework has it
    where none are named: of prime-rl (LoRAConfig.target_modules) and of torchtune's recipes
    (apply_lora_to_mlp) all of a layer, of the library peft attention's for most models."""
    text = row.get("target_modules", "").lower()
    if any(name in row.get("framework", "").lower() for name in EVERY_TARGET):
        text = text or "all, attention"
    named = bool(text) and "default" not in text
    qkv = not named or any(word in text for word in ATTENTION)
    fused = any(word in text for word in ("c_attn", "fused", "linear_qkv", "query_key_value"))
    return Targets(
        qkv=float(qkv),
        out=float(named and any(word in text for word in OUT)),
        mlp=float(named and any(word in text for word in MLP)),
        fused=float(fused),
    )


def sharding_of(row: Cells) -> str:
    """The core's word of a row's sharding."""
    text = row.get("sharding", "").lower()
    for word in ("zero1", "zero2", "zero3", "hsdp"):
        if word in text:
            return word
    if "fsdp" in text:
        return "zero3"
    return "none" if text else ""


def recompute_of(row: Cells, method: str) -> str:
    """The core's word of a row's recompute. Trainers of the transformers library and litgpt that
    say nothing: see `recompute` of the rule that fills it."""
    text = row.get("recompute", "").lower()
    for word in ("full", "selective", "none"):
        if word in text:
            return word
    return ""


def precision_of(row: Cells) -> str:
    """The core's word of a row's precision."""
    text = row.get("precision", "").lower()
    for word in ("mxfp8", "nvfp4", "fp8-block"):
        if word in text:
            return word
    if "fp8" in text:
        return "fp8-block" if "block" in text else "fp8"
    if "fp16" in text or "float16" in text and "bfloat16" not in text:
        return "fp16"
    return "bf16"


def packed(row: Cells) -> bool:
    """Whether samples are packed into full sequences, or all as long as one."""
    return row.get("packed", "").lower().startswith(("yes", "padded"))


class Row(NamedTuple):
    """One row: the cells of the core's table, and the tuning beside it."""

    cells: dict[str, str]
    tuning: dict[str, float]
    targets: Targets
    assumed: list[str]
    error: str


class Facts(NamedTuple):
    """What the words of a row say of its trainer."""

    method: str
    stack: Stack
    notes: str  # in lower case
    framework: str  # in lower case
    sharding: str
    own_code: bool  # the model's publisher ships the modules, not the transformers library

    @property
    def adapters(self) -> bool:
        """Whether adapters are trained beside frozen weights."""
        return self.method in ("lora", "qlora")

    @property
    def policy(self) -> bool:
        """Whether the step is that of a policy's trainer."""
        return "rl trainer" in self.notes

    @property
    def half(self) -> bool:
        """Whether weights, gradients and moments are in 16 bit: unsharded ones keep the format
        that they are loaded in, and torchtune's recipes load 16 bit."""
        whole = self.method == "sft" and self.stack.id == "deepspeed"
        return (self.stack.half and self.alone and not whole) or self.torchtune

    @property
    def chunked(self) -> bool:
        """Whether the loss never has the whole logits: Liger's kernel, a chunked cross entropy, a
        policy's chunked head (prime-rl)."""
        return "liger" in self.framework or (self.policy and "prime-rl" in self.framework)

    @property
    def alone(self) -> bool:
        """Whether every device has the whole weights."""
        return self.sharding in ("", "none")

    @property
    def torchtune(self) -> bool:
        """Whether the trainer is torchtune."""
        return "torchtune" in self.framework

    @property
    def library(self) -> bool:
        """Whether the modules are those of the transformers library, under its own trainer."""
        return self.stack.id in ("hf-trainer", "deepspeed")

    @property
    def effort(self) -> str:
        """What went into the recipe: of the maker of the chips, unless it is said to be untuned."""
        if "not tuned" in self.notes:
            return "first-week"
        return "tuned" if any(name in self.framework for name in MAKERS) else ""

    @property
    def fused(self) -> bool:
        """Whether norms, rotations and the loss are kernels of their own (fms-acceleration FOAK,
        Liger), or compiled."""
        return any(word in self.framework for word in FUSED) or "+ compile" in self.notes

    @property
    def eager(self) -> bool:
        """Whether element-wise chains run one operation at a time."""
        return (self.library or self.torchtune) and not self.fused

    @property
    def norm_kernel(self) -> bool:
        """Whether norms are one kernel in code that is eager otherwise: the first Qwen's own takes
        flash-attention's where that is installed (modeling_qwen.py, flash_attn.ops.rms_norm)."""
        return self.eager and self.own_code and "flash attention" in self.notes

    @property
    def logits_spared(self) -> float:
        """Bytes a logit that the loss does without: a fused one overwrites the logits with their
        gradient in the place of a log-softmax (fms-acceleration FOAK, Unsloth's
        cross_entropy_loss.py), a chunked one of torchtune has 16-bit logits, and one of eight
        chunks at a time in fp32 (modules/loss, CEWithChunkedOutputLoss)."""
        if self.torchtune:
            return 9.0 * ("+ chunked" in self.notes)
        return 4.0 * ("foak" in self.framework)


def facts_of(row: Cells) -> Facts:
    """What the words of a row say."""
    method = row.get("method", "").lower()
    return Facts(
        method=method_of(row),
        stack=stack_of(row),
        notes=f"{method}; {row.get('notes', '').lower()}",
        framework=row.get("framework", "").lower(),
        sharding=sharding_of(row),
        own_code=row.get("model", "").lower().startswith(OWN_CODE),
    )


def read_row(row: Cells) -> Row:
    """A row of a fine-tuning table; its notes may say what rows before it had (`with_steps`)."""
    facts, assumed = facts_of(row), list[str]()
    cells = {**of_run(row, facts, assumed), **of_shape(row, facts, assumed)}
    if facts.adapters and np.isnan(number(row, "lora_rank")):
        assumed.append(f"rank={RANK:g} (not printed)")
    error = ""
    if not facts.method:
        error = "the method is none of sft, lora, qlora, dpo"
    elif not cells["model"]:
        error = f"model {row.get('model', '')!r} is in no catalogue"
    elif not cells["seq_len"]:
        error = "no seq_len: a length is never guessed"
    return Row(cells, tuning_cells(row, facts), targets_of(row), assumed, error)


def of_run(row: Cells, facts: Facts, assumed: list[str]) -> dict[str, str]:
    """The cells of the software and what it is told."""
    recompute = recompute_of(row, facts.method)
    if not recompute:
        recompute = usual_recompute(row)
        assumed.append(f"recompute={recompute} (the usual one of the framework)")
    flash = re.search(r"flash[_ -]?attention[_ -]?(\d)", facts.notes)
    return {
        "id": row.get("id", ""),
        "model": model_id(row.get("model", "")),
        "accelerator": row.get("accelerator", ""),
        "precision": precision_of(row),
        "recompute": recompute,
        "offload": "none",
        "stack": facts.stack.id,
        "half_states": str(int(facts.half)),
        "grad_bytes": "2" if facts.half else "",
        "published": row.get("published", ""),
        "effort": facts.effort,
        "chunked_loss": "1" if facts.chunked else "",
        "flash": flash[1] if flash else "",
        "activation_offload": "1" if "activation" in row.get("offload", "").lower() else "",
    }


def of_shape(row: Cells, facts: Facts, assumed: list[str]) -> dict[str, str]:
    """The cells of lengths, batch and layout."""
    seq_len = number(row, "seq_len", number(row, "mean_length"))
    if row.get("packed", "").lower().startswith("no") and REAL_TOKENS in facts.notes:
        seq_len = min(seq_len, UNPACKED_TOKENS)
        assumed.append(f"mean_length={seq_len:g} (not packed, lengths not printed)")
    micro = number(row, "micro_batch")
    if np.isnan(micro):
        micro = 1.0
        assumed.append("micro_batch=1 (not printed)")
    devices = 1.0 if ALONE in facts.notes else number(row, "devices", 1.0)
    cp, tp, pp = (number(row, name, 1.0) for name in ("cp", "tp", "pp"))
    if "layer split" in row.get("sharding", "").lower():
        pp = devices
    dp = max(devices / (cp * tp * pp), 1.0)
    batch = number(row, "global_batch", micro * dp * number(row, "grad_accum", 1.0))
    return {
        "n_devices": cell_of(devices),
        "seq_len": cell_of(seq_len),
        "tp": cell_of(tp),
        "pp": cell_of(pp),
        "vpp": cell_of(number(row, "vpp")),
        "cp": cell_of(cp),
        "ep": cell_of(number(row, "ep", 1.0)),
        "sharding": facts.sharding or ("none" if devices == 1 else ""),
        "micro_batch": cell_of(micro),
        "global_batch_seqs": cell_of(batch),
    }


def tuning_cells(row: Cells, facts: Facts) -> dict[str, float]:
    """What the step does beside its plan, by the fields of Tuning."""
    adapters, stack, notes = facts.adapters, facts.stack, facts.notes
    prime = facts.policy and "prime-rl" in facts.framework
    engine = stack.id == "deepspeed"
    kind = row.get("peak_memory_kind", "")
    return {
        "adapters": float(adapters),
        "rank": number(row, "lora_rank", RANK) * adapters,
        "ends_trained": float("embedding" in row.get("target_modules", "").lower()),
        "base_bits": bits_of(row) if adapters else 16.0,
        "blockwise": float("gptq" not in row.get("base_weight_bits", "").lower()),
        "adapter_bytes": stack.adapter_bytes,
        "fused_lora": float("foak" in facts.framework),
        "forwards": float(facts.method == "dpo"),
        "critics": 0.0,
        "pairs": float(facts.method == "dpo"),
        "eager_loss": float(not facts.chunked and (facts.library or facts.torchtune)),
        "logits_spared": facts.logits_spared,
        "eager_chains": float(facts.eager),
        "norm_kernel": float(facts.norm_kernel),
        "fp32_stream": float("baseline-peft-bnb" in facts.framework),
        "any_model": float(any(name in facts.framework for name in ANY_MODEL)),
        "policy_loss": float(facts.policy),
        "file_sync": float(prime),
        "looped": float("unoptimised kernels" in notes),
        "engine": float(engine),
        "fp32_base": float(adapters and fp32_base(stack.id, stack.half)),
        "reserved": float("reserved" in kind),
        "context": float("printed" in kind),
        "backward_update": float("step in backward" in notes and not adapters),
        "moment_bytes": 2.0 if "+ 8-bit adam" in notes and not adapters else 0.0,
        "eager_peft": float(stack.eager and (adapters or engine)),
    }


ADDS = "each step adds to the one before"


def with_steps(rows: Sequence[Cells]) -> list[Cells]:
    """The rows of a ladder, each with the notes of those before it: where a source says that each
    step adds to the one before."""
    steps: dict[str, str] = {}
    out: list[Cells] = []
    for row in rows:
        notes, source = row.get("notes", ""), row.get("source", "")
        if ADDS in notes:
            steps[source] = f"{steps.get(source, '')} {notes.partition(';')[0]}"
            row = {**row, "notes": f"{steps[source]}; {notes}"}
        out.append(row)
    return out


def usual_recompute(row: Cells) -> str:
    """What a framework recomputes where a row does not say: peft's examples, ms-swift and the
    benchmarks of the transformers trainer checkpoint every layer; litgpt's single-device scripts
    and torchtune's defaults nothing."""
    name = row.get("framework", "").lower()
    if "hf trainer" in name or "transformers" in name or "swift" in name:
        return "full"
    return "none"


@record
class Rows:
    """Rows of a table that can be computed, as cases, with what stopped the others."""

    ids: list[str]
    ready: Array  # bool, a row each
    cases: Cases | None  # one column entry a ready row
    tuning: Tuning | None
    assumed: list[str]  # a row each
    errors: list[str]
    chips: Array
    stacks: Array
    families: Array


def read_rows(rows: Sequence[Cells]) -> Rows:
    """The rows of a fine-tuning table as cases."""
    read = [with_chip(read_row(row)) for row in with_steps(rows)]
    errors = [one.error for one in read]
    assumed = ["; ".join(one.assumed) for one in read]
    good = [one for one in read if not one.error]
    ids = [row.get("id", "") for row in rows]
    if not good:
        blank = np.array([])
        return Rows(
            ids=ids,
            ready=np.zeros(len(rows), bool),
            cases=None,
            tuning=None,
            assumed=assumed,
            errors=errors,
            chips=blank,
            stacks=blank,
            families=blank,
        )
    table = table_of_cells({name: [one.cells[name] for one in good] for name in good[0].cells})
    runs = to_runs(checked(table, Path()))
    at = [i for i, error in enumerate(errors) if not error]
    for i, refusal, more in zip(at, runs.errors, runs.assumed, strict=True):
        errors[i] = refusal
        assumed[i] = "; ".join(filter(None, (assumed[i], more)))
    ready = [one for one, refusal in zip(good, runs.errors, strict=True) if not refusal]
    return Rows(
        ids=ids,
        ready=np.array([not error for error in errors], bool),
        cases=runs.cases,
        tuning=tuning_of(ready) if ready else None,
        assumed=assumed,
        errors=errors,
        chips=runs.chips[runs.ready],
        stacks=runs.stacks[runs.ready],
        families=runs.families,
    )


def with_chip(row: Row) -> Row:
    """The row with the catalogue's id of its chip."""
    try:
        chip = catalogue.accelerator(row.cells["accelerator"]).id
    except DesignError as refusal:
        return row._replace(error=row.error or str(refusal)[:200])
    return row._replace(cells=row.cells | {"accelerator": chip})


def tuning_of(rows: Sequence[Row]) -> Tuning:
    """The tuning of rows as columns."""
    columns = {name: np.array([row.tuning[name] for row in rows]) for name in rows[0].tuning}
    targets = Targets(*(np.array(column) for column in zip(*(row.targets for row in rows))))
    return Tuning(targets=targets, **columns)
