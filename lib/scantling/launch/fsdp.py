"""PyTorch FSDP2: train_fsdp.py with fully_shard, mixed precision, activation checkpointing and a device mesh."""
from __future__ import annotations

from functools import cache
from importlib.resources import files as resources

from .quote import comment, py
from .record import Gap

PACKAGE, VERSION, FILE = "torch", "2.13.0", "train_fsdp.py"
LAUNCHER = "torchrun"
ONE = (1,)
DATA_PARALLEL = {
    "tp": (ONE, "state is split over data-parallel ranks alone; tensor parallelism is another API, torchtitan combines them"),
    "pp": (ONE, "one program a rank, no stages; torchtitan and Megatron have them"),
    "vpp": (ONE, "no stages"),
    "cp": (ONE, "every rank holds whole sequences"),
    "ep": (ONE, "experts are sharded like other weights, tokens stay where they are"),
    "etp": (ONE, "no tensor parallelism"),
}
DOMAIN = DATA_PARALLEL | {
    "sharding": (("zero3", "zero2", "hsdp"), "fully_shard shards weights, gradients and optimizer states together; optimizer states alone it does not"),
    "offload": (("none",), "offload to host memory is not written into this trainer"),
    "precision": (("bf16", "fp16", "fp32"), "fp8 and fp4 products are torchao's or Transformer Engine's, not FSDP's"),
    "optimizer": (("adamw",), "the trainer steps AdamW with fp32 moments"),
}
SAVES = ("torch.distributed.checkpoint, sharded, one writer a rank; reads back on another number of ranks",
         "checkpoints/step-NNNNNNNNN, whole once `.metadata` is there", "start the same command again: the newest whole checkpoint is loaded, then the random state, then step and data position follow",
         "torch.distributed.checkpoint.format_utils.dcp_to_torch_save, then safetensors.torch.save_file with your architecture's names")
LEFT_OUT = ("relative_positions", "embedding_norm", "sinks", "shared_gate", "parallel_block", "expert_bias", "router_bias")


@cache
def source(name: str) -> str:
    """A file that a kit takes as it is."""
    return (resources(__package__) / "templates" / name).read_text()


def gaps(launch):
    """What the kit's model.py does not build."""
    m, out = launch.model, []
    left = [k for k in LEFT_OUT if getattr(m, k)] + (["qk_norm over the width"] if m.qk_norm == "width" else []) + ([] if m.norms_per_layer == 2 else ["norms_per_layer"])
    if left:
        out.append(Gap("model", ", ".join(left), "model.py does not build it", "left out: put your own model there", "parameters and step differ slightly"))
    if m.mtp_layers:
        out.append(Gap("model.mtp_layers", m.mtp_layers, "model.py does not build the modules that predict further tokens", "the next token's loss alone", "the assessment counts them"))
    if m.window and m.windowed_layers:
        out.append(Gap("model.window", m.window, "model.py attends to the whole sequence", "full attention in every layer", "the assessment counts the window"))
    if launch.phase.precision == "fp16" and launch.to == "deepspeed":
        return out
    return out


def header(launch, kit) -> dict:
    """Values of the trainer's template."""
    return dict(title=comment(launch.name), model=py(kit["shape"] | {"recompute": launch.plan["recompute"]}), plan=py(kit["train"]))


def files(launch, kit):
    """train_fsdp.py with its model and trainer."""
    from .scripts import render

    p = launch.plan
    text = {"zero3": "weights gathered again in the backward pass", "zero2": "weights stay gathered between forward and backward",
            "hsdp": f"sharded over {p['shard_group']} ranks, replicated over {p['dp'] // max(p['shard_group'], 1)}"}[p["sharding"]]
    return {FILE: render("train_fsdp.py.j2", **header(launch, kit), sharding_text=text), "model.py": source("model.py"), "trainer.py": source("trainer.py")}


def command(launch) -> str:
    """What torchrun starts."""
    return '"$HERE/train_fsdp.py"'
