"""PyTorch FSDP2: train_fsdp.py with fully_shard, mixed precision, activation checkpointing and a
device mesh."""

from collections.abc import Iterator
from dataclasses import replace

from scantling.catalogue.models.shape import Model
from scantling.catalogue.words import Sharding

from ..launch_plan import Domain, Framework, Gap, Install, Knobs, LaunchPlan, Saves
from ..render import render, source
from ..values import RunValues
from .common import MOCK_DATA, STEPS_TOGETHER, WEIGHTS, constants_note, near_copies, recovery_gaps
from .layers import without_parts
from .torch_gradients import gradients

TRAINER = ("model.py", "trainer.py", "handover.py")
GATHERED: dict[str, str] = {
    Sharding.ZERO3: "weights gathered again in the backward pass",
    Sharding.ZERO2: "weights stay gathered between forward and backward",
    Sharding.HSDP: "weights gathered again in the backward pass",
}


def left_out(m: Model) -> list[str]:
    """Parts of a model that model.py does not build."""
    parts = {
        "relative_positions": m.relative_positions,
        "embedding_norm": m.embedding_norm,
        "weights that no block has": m.extras > 0,
        "sinks": m.sinks,
        "shared_gate": m.shared_gate,
        "parallel_block": m.parallel_block,
        "expert_bias": m.expert_bias,
        "router_bias": m.router_bias,
        "qk_norm over the width": m.qk_norm == "width",
        "norms_per_layer": m.norms_per_layer != 2,
    }
    return [part for part, there in parts.items() if there]


def builds(m: Model) -> Model:
    """The model that model.py builds: what `left_out` names is left out."""
    return replace(
        without_parts(m),
        qk_norm="" if m.qk_norm == "width" else m.qk_norm,
        mtp_layers=0,
        window=0,
        windowed_layers=0,
    )


def gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """What the kit's model.py and trainer do not have."""
    m = launch.model
    if len(launch.tiers) > 1:
        yield near_copies(launch)
    yield from recovery_gaps(launch)
    if parts := left_out(m):
        instead = "left out: put your own model there"
        yield Gap("model", ", ".join(parts), "model.py does not build it", instead)
    if m.mtp_layers:
        why = "model.py does not build the modules that predict further tokens"
        yield Gap("model.mtp_layers", m.mtp_layers, why, "the next token's loss alone")
    if m.window and m.windowed_layers:
        why = "model.py attends to the whole sequence"
        yield Gap("model.window", m.window, why, "full attention in every layer")


def notes(launch: LaunchPlan) -> list[str]:
    """Constants of the model, and how attention runs."""
    constants = constants_note(launch, rotary=not launch.model.position_rows)
    return [
        f"{constants} (rope_base and norm_eps in plan.json and in the script); with INIT its "
        "config.json is read.",
        "Attention runs in PyTorch's scaled_dot_product_attention (FlashAttention where the "
        "device has it); the output head and the loss in pieces of 2,048 tokens, so that logits "
        "never stand whole.",
    ]


def keep(copies: int, days: float) -> str:
    """What becomes of old checkpoints."""
    return (
        f"the last {copies}, whole ones only; copy one a day elsewhere, and keep it {days:.0f} days"
    )


def sites(launch: LaunchPlan) -> str:
    """How gradients go between sites."""
    if launch.plan.sharding == Sharding.NONE:
        return "gradients go in one all-reduce over all ranks"
    return (
        f"a mesh of two axes: {launch.shards} ranks inside a site share one copy, and only sums of "
        "shards go between sites"
    )


def trainer_files() -> dict[str, str]:
    """The files that every kit with its own trainer takes as they are."""
    return {name: source(name) for name in TRAINER}


def files(launch: LaunchPlan, run: RunValues) -> dict[str, str]:
    """train_fsdp.py with its model and trainer."""
    narrow, why = gradients(launch)
    copies = launch.plan.dp // launch.shards
    program = render(
        "train_fsdp.py.j2",
        name=launch.name,
        gathered=GATHERED[launch.plan.sharding],
        shards=launch.shards,
        copies=f", {copies} copies" if copies > 1 else "",
        model=run.shape | {"recompute": launch.plan.recompute},
        plan=run.train,
        reduce="torch.bfloat16" if narrow else "torch.float32",
        why=why,
    )
    return {"train_fsdp.py": program, **trainer_files()}


FRAMEWORK = Framework(
    id="fsdp",
    package="torch",
    version="2.14.1",
    file="train_fsdp.py",
    launcher="torchrun",
    chips=("nvidia", "amd"),
    runtime="torch",
    states="fp32 shards",
    has_trainer=True,
    transformer_engine=False,
    reads_by_position=True,
    saves_in_background=True,
    stop="file",
    whole="checkpoints/step-*/.metadata",
    domain={
        "tp": Domain(
            values=(1,),
            why=(
                "state is split over data-parallel ranks alone; tensor parallelism is another "
                "API, torchtitan combines them"
            ),
        ),
        "pp": Domain(
            values=(1,), why="one program a rank, no stages; torchtitan and Megatron have them"
        ),
        "vpp": Domain(values=(1,), why="no stages"),
        "cp": Domain(values=(1,), why="every rank holds whole sequences"),
        "ep": Domain(
            values=(1,), why="experts are sharded like other weights, tokens stay where they are"
        ),
        "etp": Domain(values=(1,), why="no tensor parallelism"),
        "sharding": Domain(
            values=(Sharding.ZERO3, Sharding.ZERO2, Sharding.HSDP),
            why=(
                "fully_shard shards weights, gradients and optimizer states together; optimizer "
                "states alone it does not"
            ),
        ),
        "offload": Domain(
            values=("none",), why="offload to host memory is not written into this trainer"
        ),
        "precision": Domain(
            values=("bf16", "fp16", "fp32"),
            why="fp8 and fp4 products are torchao's or Transformer Engine's, not FSDP's",
        ),
        "optimizer": Domain(values=("adamw",), why="the trainer steps AdamW with fp32 moments"),
    },
    saves=Saves(
        format=(
            "torch.distributed.checkpoint, sharded, one writer a rank; reads back on another "
            "number of ranks"
        ),
        place="checkpoints/step-NNNNNNNNN, whole once `.metadata` is there",
        resume=(
            "start the same command again: the newest whole checkpoint is loaded, then the random "
            "state, then step and data position follow"
        ),
        hand_over=(
            "`python handover.py run/checkpoints/step-N hand-over` on one process: "
            "model.safetensors and config.json; Llama, Qwen3 and Mixtral shapes with the names of "
            "their Hugging Face classes, others with model.py's"
        ),
        begin=WEIGHTS,
    ),
    install=(
        Install(
            "pip install torch==2.14.1 numpy safetensors", "wandb or tensorboard for a tracker"
        ),
    ),
    data=(
        "a flat file of uint32 token ids (numpy's tofile); INIT a folder of safetensors to start "
        "from, as Hugging Face writes it, for fine-tuning"
    ),
    log=(
        "RUN_DIR/metrics.jsonl: step, loss, gradient norm, seconds, tokens/s a device, MFU; "
        "TRACKER=wandb or TRACKER=tensorboard sends the same rows there"
    ),
    profile=(
        "PROFILE_STEP=20 writes RUN_DIR/trace-N.json of two steps, for Perfetto. Memory: "
        "MEMORY_SNAPSHOT=1 writes memory-N.pickle after step 3, opened at pytorch.org/memory_viz"
    ),
    skip="SKIP=first-last, and the run goes on with the sequences that follow",
    keep=keep,
    rehearse="STEPS=100",
    modules={"core_attn": "checkpoint of the attention core"},
    knobs=Knobs(
        micro_batch="micro_batch in PLAN, with grad_accum raised by as much",
        recompute="recompute in PLAN",
        offload="host memory, with the deepspeed kit",
        sharding={Sharding.ZERO2: "sharding in PLAN"},
        spill="tensor parallelism, with the torchtitan kit",
    ),
    mock_data=MOCK_DATA,
    stragglers="Compare the ranks' own seconds (heartbeat-N)",
    network_limit=(
        "The network is a limit: with plan.gradients bf16, train_fsdp.py reduces gradients in "
        "bf16 (REDUCE)."
    ),
    command='"$HERE/train_fsdp.py"',
    syncs=("synchronous",),
    sites=sites,
    no_local_steps=STEPS_TOGETHER,
    files=files,
    gaps=gaps,
    builds=builds,
    notes=notes,
)
