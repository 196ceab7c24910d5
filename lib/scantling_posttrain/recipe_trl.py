"""A fine-tune as a run of TRL 1.16: arguments of `trl sft` and `trl dpo`, which Accelerate starts
with one of the configurations that TRL ships. Its parser refuses an argument that it does not
know."""

from scantling.base.errors import DesignError
from scantling.catalogue.words import ADAPTED, POLICIES, Method
from scantling.design.design import Design
from scantling.design.methods import method_of

from .posttrained import Posttrained
from .recipe import (
    ALPHA,
    PORT,
    UNSPLIT,
    Recipe,
    changed,
    machine,
    packed,
    planned,
    rank_of,
    repeated,
    row_tokens,
    targets_of,
    texts,
)
from .trainer import loader

SHARDED, WHOLE, ALONE = "fsdp2", "multi_gpu", "single_gpu"  # configurations of Accelerate
# projections of the transformers library, by the words of a design
MODULES = {
    "qkv": ("q_proj", "k_proj", "v_proj"),
    "out": ("o_proj",),
    "attention": ("q_proj", "k_proj", "v_proj", "o_proj"),
    "mlp": ("gate_proj", "up_proj", "down_proj"),
}


def trl(design: Design) -> Recipe:
    """A fine-tune under TRL, whose data parallelism shards all of the states or none: whichever
    takes less time."""
    method = method_of(design)
    if method in POLICIES:
        raise DesignError(
            "--to", "trl", ["verl", "nemo-rl"], problem=f"is not written for {method}"
        )
    result = faster(design)
    plan = result.plan
    assert plan is not None
    nodes, each = machine(design)
    alone = design.cluster.devices == 1
    kind = ALONE if alone else SHARDED if plan["sharding"] == "zero3" else WHOLE
    micro, accumulated = batches(plan["micro_batch"], plan["grad_accum"], method)
    settings: dict[str, object] = {
        "--accelerate_config": kind,
        "--num_processes": nodes * each,
        "--model_name_or_path": '"$MODEL"',
        "--dataset_name": '"$DATA"',
        "--output_dir": '"$OUTPUT"',
        "--per_device_train_batch_size": micro,
        "--gradient_accumulation_steps": accumulated,
        "--max_length": row_tokens(result),
        "--gradient_checkpointing": plan["recompute"] != "none",
        "--bf16": True,
    }
    if nodes > 1:
        settings |= {
            "--num_machines": nodes,
            "--machine_rank": '"$NODE_RANK"',
            "--main_process_ip": '"$HEAD"',
            "--main_process_port": PORT,
        }
    if method is not Method.DPO:
        settings["--packing"] = packed(result)
    if method in ADAPTED or design.job.adapter:
        settings |= adapter_settings(result, quantised(design))
    if result.steps is not None:
        settings["--max_steps"] = max(round(result.steps), 1)
    gaps = ["the data set: its columns are those that TRL expects", *repeated(result)]
    if method is Method.DPO and packed(result):
        gaps.append("job.data.packed: pairs are padded, and take longer than foretold")
    command = f"trl {'dpo' if method is Method.DPO else 'sft'}"
    changes = changed(design, {**UNSPLIT, "plan.sharding": plan["sharding"]})
    return Recipe(command, texts(settings), (*gaps,), changes, result)


def faster(design: Design) -> Posttrained:
    """The plan with whole states on every device, or with sharded ones."""
    pins = {**UNSPLIT, "stack": loader()}
    kinds = ["none"] if design.cluster.devices == 1 else ["none", "zero3"]
    results: list[Posttrained] = []
    refusals: list[DesignError] = []
    for kind in kinds:
        try:
            results.append(planned(design, {**pins, "plan.sharding": kind}))
        except DesignError as refusal:
            refusals.append(refusal)
    if not results:
        raise refusals[-1]
    return min(results, key=lambda one: one.step_s or 0.0)


def batches(micro: int, accumulated: int, method: Method) -> tuple[int, int]:
    """(batch of a device, accumulations): of DPO in pairs, each of which is two sequences."""
    if method is not Method.DPO:
        return micro, accumulated
    pairs = micro * accumulated // 2
    each = max(micro // 2, 1)
    return each, max(pairs // each, 1)


def quantised(design: Design) -> bool:
    """Whether the base is kept in 4 bits."""
    spec = design.job.adapter
    bits = spec.base_bits if spec else None
    return bits == 4 if bits else method_of(design) is Method.QLORA


def adapter_settings(result: Posttrained, in_4_bits: bool) -> dict[str, object]:
    """The adapters under peft's names, and the bits of the base."""
    modules = dict.fromkeys(name for word in targets_of(result) for name in MODULES[word])
    out: dict[str, object] = {
        "--use_peft": True,
        "--lora_r": rank_of(result),
        "--lora_alpha": ALPHA * rank_of(result),
        "--lora_target_modules": " ".join(modules),
    }
    return out | ({"--load_in_4bit": True} if in_4_bits else {})
