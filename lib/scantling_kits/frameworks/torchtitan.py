"""torchtitan 0.3: a Python module whose `plan()` returns the run's Trainer.Config."""

from collections.abc import Iterator
from dataclasses import replace

from scantling.base.records import Lines, record
from scantling.catalogue.models.shape import Model
from scantling.catalogue.stacks import stack
from scantling.catalogue.words import Precision, Recompute, Sharding

from ..launch_plan import SEED, Domain, Framework, Gap, Install, Knobs, LaunchPlan, Pins, Saves
from ..recipe_settings import release
from ..render import render
from ..training_schedule import schedule
from ..values import RunValues
from .common import all_layers, constants_note, near_copies, recovery_gaps
from .layers import gated, without_biases, without_parts
from .megatron_core import dispatcher

SCHEDULES = {
    "1f1b": "1F1B",
    "interleaved": "Interleaved1F1B",
    "zb-v": "ZBVZeroBubble",
    "dualpipe": "DualPipeV",
}
V_SHAPED = ("zb-v", "dualpipe")  # their last stage is on the first rank
RECOMPUTES: dict[str, str] = {
    Recompute.FULL: "FullAC.Config()",
    Recompute.SELECTIVE: "SelectiveAC.Config()",
    Recompute.NONE: "None",
}


def formed(m: Model) -> Model:
    """The model with the layers of the library's builders: SwiGLU, RMSNorm, rotary positions, no
    biases."""
    return replace(
        without_parts(without_biases(gated(m))),
        mlp="swiglu",
        qk_norm="" if m.qk_norm == "width" else m.qk_norm,
        position_rows=0,
    )


def builds(m: Model) -> Model:
    """The model of the library's builders: their layers, a head of its own, whole sequences."""
    return replace(formed(m), tied_embeddings=False, mtp_layers=0, window=0, windowed_layers=0)


def gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """What the model builders and the mesh lack."""
    p = launch.plan
    if launch.sync and p.pp > 1:
        why = "its mesh has stages outermost, so that one replica would stand on several sites"
        yield Gap("pp", p.pp, why)
    if len(launch.tiers) > 1:
        yield near_copies(launch)
    yield from recovery_gaps(launch)
    yield from model_gaps(launch.model)
    yield from plan_gaps(launch)


def model_gaps(m: Model) -> Iterator[Gap]:
    """What the model builders lack."""
    if not same_form(m):
        yield Gap(
            "model",
            m.name,
            "torchtitan's builders make SwiGLU layers with RMSNorm and rotary positions, without "
            "biases",
            "that form, at two thirds of the width where a layer has two matrices in place of "
            "three",
        )
    if m.mtp_layers:
        why = "its modules need DeepSeek-V3's own loss"
        yield Gap("model.mtp_layers", m.mtp_layers, why, "the next token's loss alone")
    if m.window and m.windowed_layers:
        why = "the kit's layers attend to the whole sequence"
        yield Gap("model.window", m.window, why, "full attention in every layer")
    if m.tied_embeddings:
        why = "the kit builds an output head of its own"
        yield Gap("model.tied_embeddings", m.tied_embeddings, why, "two matrices")


def same_form(m: Model) -> bool:
    """Whether the builders make the layers of the model as they are, but for the widths of experts
    and of shared ones alone."""
    widths = replace(
        formed(m), expert_ffn_hidden=m.expert_ffn_hidden, shared_ffn_hidden=m.shared_ffn_hidden
    )
    return widths == m


def plan_gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """What of recompute, groups, experts and stages the library does not do."""
    p = launch.plan
    if p.recompute == Recompute.FULL and p.recompute_layers < all_layers(launch):
        yield Gap("recompute_layers", p.recompute_layers, "FullAC wraps every block")
    if p.recompute == Recompute.SELECTIVE and not per_operation(launch):
        yield Gap(
            "recompute",
            p.recompute,
            "SelectiveAC keeps the attention core's output and every second matrix product, and "
            "computes the rest again",
            "selective",
            "more compute and less memory than the assessment counts, which repeats the attention "
            "core alone",
        )
    if p.sharding == Sharding.HSDP and p.shard_group % p.cp:
        yield Gap("shard_group", p.shard_group, "a shard group holds whole context groups")
    if p.sharding == Sharding.NONE and p.cp > 1:
        why = "context-parallel ranks share one sharded copy"
        yield Gap("sharding", p.sharding, why)
    if p.ep > 1 and (dp_shard(launch) * p.cp * p.tp) % p.ep:
        yield Gap("ep", p.ep, "ep divides the ranks of one shard group")
    if launch.model.kv_heads % p.tp:
        yield Gap("tp", p.tp, "every rank has whole key-value heads")
    if launch.phase.precision == Precision.NVFP4 and launch.model.is_moe:
        why = "its NVFP4 converter is of linear layers, experts have none"
        yield Gap("precision", launch.phase.precision, why)
    if p.pp > 1 and p.pp > p.grad_accum:
        yield Gap("pp", p.pp, "as many micro-batches as stages, at least")


def per_operation(launch: LaunchPlan) -> bool:
    """Whether the stack keeps operations in the backward one by one."""
    return bool(launch.stack and stack(launch.stack).memory.get("per_op"))


def adjust(pins: Pins, launch: LaunchPlan, outside: set[str]) -> Pins:
    """Pins of a nearest plan: pipelines of sharded state do not interleave, and context parallelism
    gathers."""
    out = dict(pins)
    if "sharding" in outside and pins.get("pp", 1) > 1:
        out |= {"vpp": 1, "schedule": "1f1b"}
    if "cp_type" in outside and launch.plan.cp > 1 and "cp" in pins:
        out["cp_type"] = "all-gather"
    return out


def notes(launch: LaunchPlan) -> list[str]:
    """Gradients, dispatchers and constants."""
    out = []
    if launch.does.grad_bytes <= 2:
        out.append(
            "The step counts on gradients in 16 bit; torchtitan reduces them in fp32, the one "
            "value of training.mixed_precision_reduce: twice the bytes."
        )
    deep = backend(launch)
    if launch.model.is_moe and deep != "standard":
        out.append(
            "The step counts on tokens that travel once to each rank: comm_backend "
            f'"{deep}", which needs DeepEP 2 (github.com/deepseek-ai/DeepEP). Where it is not '
            'installed, "standard" trains the same and takes longer: measure both in the first '
            "hour."
        )
    if converters(launch, compiled=True):
        precision = launch.phase.precision
        rest = "; parameters are gathered in bf16"
        if precision == Precision.NVFP4:
            rest = ", the last 15 % of the layers too"
        out.append(
            f"Products in {precision} are torchao's, under torch.compile: `pip install torchao`, "
            f"of the same month as torch. The output head and the router stay in bf16{rest}."
        )
    constants = constants_note(launch, rotary=not launch.model.position_rows)
    return [*out, f"{constants} (SHAPE)."]


def keep(copies: int, days: float) -> str:
    """What becomes of old checkpoints."""
    return (
        f"checkpoint.keep_latest_k: the last {copies}; copy one a day elsewhere, and keep it "
        f"{days:.0f} days"
    )


def sites(launch: LaunchPlan) -> str:
    """The options for several sites."""
    if launch.plan.sharding == Sharding.NONE:
        return "gradients go in one all-reduce over all ranks"
    return (
        f"data_parallel_replicate_degree {launch.plan.dp // launch.shards}: {launch.shards} ranks "
        "inside a site share one copy, and only sums of shards go between sites"
    )


def stage_rank(launch: LaunchPlan) -> str:
    """The first rank of the last stage, by its place on its node: torchtitan's
    ensure_pp_loss_visible names it; under a schedule of V shape it is the first of all."""
    p = launch.plan
    if p.pp == 1 or p.schedule in V_SHAPED:
        return ""
    return str(launch.devices // p.pp * (p.pp - 1) % launch.per_node)


def dp_shard(launch: LaunchPlan) -> int:
    """Data-parallel ranks that share one copy."""
    return 1 if launch.plan.sharding == Sharding.NONE else launch.shards


@record
class Builders:
    """The library's own names for a kind of model."""

    folder: str  # below torchtitan.models
    model: str
    block: str  # "": made by the family's builder
    parallelize: str
    adapter: str  # of the state dict
    rope: str
    helpers: Lines  # of torchtitan.models.common.config_utils


GQA_HELPERS = ("get_attention_config", "make_ffn_config", "make_gqa_config")
LLAMA = Builders(
    folder="llama3",
    model="Llama3Model",
    block="Llama3TransformerBlock",
    parallelize="parallelize_llama",
    adapter="Llama3StateDictAdapter",
    rope="ComplexRoPE",
    helpers=GQA_HELPERS,
)
QWEN = Builders(
    folder="qwen3",
    model="Qwen3Model",
    block="Qwen3TransformerBlock",
    parallelize="parallelize_qwen3",
    adapter="Qwen3StateDictAdapter",
    rope="CosSinRoPE",
    helpers=(*GQA_HELPERS, "make_moe_config", "make_routed_experts_config", "make_router_config"),
)
DEEPSEEK = Builders(
    folder="deepseek_v3",
    model="DeepSeekV3Model",
    block="",
    parallelize="parallelize_deepseekv3",
    adapter="DeepSeekV3StateDictAdapter",
    rope="ComplexRoPE",
    helpers=("decoder_vocab_size as _",),
)


def builders(m: Model) -> Builders:
    """Whose builders make the layers of a model."""
    if m.attention == "mla":
        return DEEPSEEK
    return QWEN if m.is_moe else LLAMA


def layer_names(launch: LaunchPlan) -> list[list[str]]:
    """The modules of every virtual stage."""
    stages = []
    first = 0
    for count in launch.runs:
        stages.append([f"layers.{layer}" for layer in range(first, first + count)])
        first += count
    stages[0].insert(0, "tok_embeddings")
    stages[-1] += ["norm", "lm_head"]
    return stages


# the last release that counts batches by sequences and reads text by HuggingFaceTextDataLoader;
# main of 21 August 2026 (b5bcd76) has components.checkpointer, GrainDataLoader, batches in tokens
# and num_pp_microbatches in their place
LAST_BY_SEQUENCE = "0.3.0"
OUT_OF_8_BIT = ("lm_head", "router.gate")  # config_registry.py of llama3 405B and deepseek_v3 671B
IN_MXFP8 = ("attention", "shared_experts", "feed_forward")  # deepseek_v3_debugmodel_mxfp8
MXFP8_ROWS = 128  # of an expert, which the quantization kernel of Blackwell takes together
KEPT_SHARE = 0.15  # of the layers, the last, in bf16: llama3_debugmodel_first_85_pct_layers_nvfp4


def converters(launch: LaunchPlan, compiled: bool) -> list[str]:
    """Expressions of the converters that bring the model to the phase's format, as the library's
    own configurations have them: experts have one of their own."""
    precision = launch.phase.precision
    compiles = f"model_compile_enabled={compiled}"
    moe = launch.model.is_moe
    if precision == Precision.FP8_ROW:
        out = [f"Float8LinearConverter.Config(filter_fqns={[*OUT_OF_8_BIT]}, {compiles})"]
        return [*out, f"Float8GroupedExpertsConverter.Config({compiles})"] if moe else out
    if precision == Precision.MXFP8:
        out = [f"MXFP8LinearConverter.Config(fqns={[*IN_MXFP8]}, {compiles})"]
        experts = f"MXFP8GroupedExpertsConverter.Config(pad_multiple={MXFP8_ROWS}, {compiles})"
        return [*out, experts] if moe else out
    if precision == Precision.NVFP4:
        layers = f'nvfp4_bf16_tail_fqns(SHAPE["layers"], {KEPT_SHARE})'
        return [f"NVFP4LinearConverter.Config(fqns={layers}, {compiles})"]
    return []


def backend(launch: LaunchPlan) -> str:
    """What carries tokens to experts; in 8 bit the kinds that pad their rows (swap_token_dispatcher
    takes the standard one and HybridEP)."""
    chosen = dispatcher(launch) or "standard"
    if chosen == "deepep" and launch.phase.precision in (Precision.FP8_ROW, Precision.MXFP8):
        return "hybridep"
    return chosen


@record
class TitanValues:
    """The values of a Trainer.Config."""

    seq_len: int
    backend: str  # that carries tokens to experts
    lr: float
    warm_up: int  # steps
    steps: int
    local_batch: int  # sequences
    global_batch: int  # sequences
    dtype: str
    plain_calls: bool  # no CUDA graphs around pipelines and experts
    replicate: int  # ranks
    shard: int  # ranks
    tp: int  # ranks
    cp: int  # ranks
    pp: int  # stages
    ep: int  # ranks
    sequence_parallel: bool
    reshard: str
    schedule: str
    micro_batch: int  # sequences
    stages: list[list[str]]  # the modules of every virtual stage
    compiled: bool
    async_tensor_parallel: bool
    hang_s: int
    first_hang_s: int
    seed: int
    recompute: str
    save_steps: int
    keep: int
    converters: list[str]
    converter_names: list[str]
    spmd_types: bool  # the back-end that NVFP4's products want
    later: bool  # names of the releases after LAST_BY_SEQUENCE
    positions: str  # the option of a rotary embedding that has the longest position
    micro_tokens: int  # of a data-parallel rank in a micro-batch
    step_tokens: int
    micro_batches: int  # of a pipeline in a step


def values(launch: LaunchPlan, run: RunValues) -> TitanValues:
    """The values of the run's Trainer.Config."""
    p = launch.plan
    job = launch.phase
    times = schedule(launch, run)
    shard = dp_shard(launch)
    compiled = bool(launch.does.eager_tp <= 0)
    formats = converters(launch, compiled)
    later = release(launch.framework.version) > release(LAST_BY_SEQUENCE)
    return TitanValues(
        seq_len=job.seq_len,
        backend=backend(launch),
        lr=times.lr,
        warm_up=times.warm_up,
        steps=times.steps,
        local_batch=p.micro_batch * p.grad_accum if p.pp > 1 else p.micro_batch,
        global_batch=job.global_batch,
        dtype="float32" if job.precision == Precision.FP32 else "bfloat16",
        plain_calls=p.pp > 1 or p.ep > 1,
        replicate=p.dp // shard,
        shard=shard,
        tp=p.tp,
        cp=p.cp,
        pp=p.pp,
        ep=p.ep,
        sequence_parallel=p.sp or p.tp == 1,
        reshard="never" if p.sharding == Sharding.ZERO2 else "always",
        schedule=SCHEDULES.get(p.schedule, ""),
        micro_batch=p.micro_batch,
        stages=layer_names(launch),
        compiled=compiled,
        async_tensor_parallel=compiled and bool(launch.does.tp_overlap > 0) and p.tp > 1,
        hang_s=launch.hang_s,
        first_hang_s=launch.first_hang_s,
        seed=SEED,
        recompute=RECOMPUTES[p.recompute],
        save_steps=launch.save_steps,
        keep=launch.keep,
        converters=formats,
        converter_names=sorted(text.partition(".")[0] for text in formats),
        spmd_types=job.precision == Precision.NVFP4,
        later=later,
        positions="max_context_length" if later else "max_seq_len",
        micro_tokens=p.micro_batch * job.seq_len,
        step_tokens=job.global_batch * job.seq_len,
        micro_batches=p.grad_accum,
    )


def files(launch: LaunchPlan, run: RunValues) -> dict[str, str]:
    """torchtitan_config.py."""
    program = render(
        "torchtitan_config.py.j2",
        name=launch.name,
        shape=run.shape,
        moe=launch.model.is_moe,
        mla=launch.model.attention == "mla",
        kind=builders(launch.model),
        v=values(launch, run),
    )
    return {"torchtitan_config.py": program}


FRAMEWORK = Framework(
    id="torchtitan",
    package="torchtitan",
    version="0.3.0",
    file="torchtitan_config.py",
    launcher="torchrun",
    chips=("nvidia", "amd"),
    space={"recompute_share": (1.0,)},
    runtime="torch",
    states="fp32 shards",
    has_trainer=False,
    transformer_engine=False,
    reads_by_position=False,
    saves_in_background=True,
    stop="",
    whole="checkpoint/step-*/.metadata",
    domain={
        "sharding": Domain(
            values=(Sharding.ZERO3, Sharding.ZERO2, Sharding.HSDP, Sharding.NONE),
            why=(
                "torchtitan shards weights, gradients and optimizer states together; optimizer "
                "states alone it does not"
            ),
        ),
        "schedule": Domain(
            values=("1f1b", "interleaved"), why="this kit writes 1F1B and interleaved 1F1B"
        ),
        "etp": Domain(values=(1,), why="experts are split over ranks, never inside"),
        "cp_type": Domain(
            values=("all-gather",),
            why=(
                "under FlexAttention keys and values are gathered; no ring, and heads are not "
                "exchanged"
            ),
        ),
        "offload": Domain(
            values=("none",),
            why="offload is all or nothing there (training.enable_cpu_offload), and not counted",
        ),
        "precision": Domain(
            values=("bf16", "fp8-row", "mxfp8", "nvfp4", "fp32"),
            why=(
                "its 8- and 4-bit converters have scales by row (rowwise), MXFP8 and NVFP4 of "
                "dense layers; autocast has no fp16"
            ),
        ),
        "optimizer": Domain(values=("adamw",), why="the kit writes AdamW"),
    },
    saves=Saves(
        format=(
            "torch.distributed.checkpoint, sharded, one writer a rank; reads back on another "
            "number of ranks"
        ),
        place="checkpoint/step-N below the dump folder",
        resume="start the same command again: checkpoint.enable loads the newest",
        hand_over=(
            "checkpoint.last_save_in_hf = True writes safetensors at the end, for architectures "
            "it has an adapter for"
        ),
        begin="one checkpoint of torchtitan (.../checkpoint/step-N)",
    ),
    install=(
        Install("pip install torch==2.14.1 torchtitan==0.3.0"),
        Install(
            "export TOKENIZER=/shared/tokenizer",
            "a folder with tokenizer.json: torchtitan reads text, not token ids",
        ),
    ),
    data=(
        'a folder that `datasets.load_dataset(DATA, name="en")` reads: c4 itself, or lines of '
        "JSON with `text`, beside a README.md whose `configs` name them `en`; another layout wants "
        "an entry of its own in torchtitan's DATASETS"
    ),
    log=(
        "standard output and TensorBoard below RUN_DIR: loss, grad_norm, tps, tflops, mfu of "
        "every logged step; enable_wandb=True beside enable_tensorboard sends them to a tracker"
    ),
    loss_rank=stage_rank,
    profile=(
        "profiler=Profiler.Config(enable_profiling=True, profile_freq=100) in "
        "torchtitan_config.py, for Perfetto; enable_memory_snapshot=True for "
        "pytorch.org/memory_viz"
    ),
    skip="no option lists steps, so change the order of the data set",
    keep=keep,
    rehearse="steps=100 in torchtitan_config.py",
    knobs=Knobs(
        micro_batch="training.local_batch_size",
        recompute="activation_checkpoint",
        offload="training.enable_cpu_offload",
        sharding={
            Sharding.NONE: "parallelism.data_parallel_shard_degree",
            Sharding.ZERO2: "parallelism.fsdp_reshard_after_forward",
        },
        spill="parallelism.tensor_parallel_degree",
    ),
    mock_data=(
        "MOCK_DATA=1 trains on a few made-up lines of text, which launch.sh writes: good for the "
        "first hour on the machine, which is about speed and memory, not about loss."
    ),
    stragglers="Compare the hosts' step times in a trace",
    network_limit=(
        "The network is a limit; torchtitan reduces in fp32 always: use the fsdp kit, which sends "
        "bf16, or a larger global batch."
    ),
    command="-m torchtitan.train --module torchtitan_config --config plan",
    prepare=(
        'export PYTHONPATH="$HERE${PYTHONPATH:+:$PYTHONPATH}"\n'
        'if [ -z "${DATA:-}" ] && [ "$MOCK_DATA" = 1 ]; then\n'
        '  export DATA="$RUN_DIR/made-up"\n'
        '  mkdir -p -- "$DATA"\n'
        '  [ -e "$DATA/text.json" ] || for i in {1..1000}; do echo "{\\"text\\": \\"made-up line '
        '$i\\"}"; done > "$DATA/text.json"\n'
        "fi"
    ),
    syncs=("synchronous",),
    sites=sites,
    no_local_steps=(
        "its DiLoCo is an experiment (torchtitan.experiments.torchft, Llama 3 alone, under a "
        "lighthouse of torchft), which no kit writes"
    ),
    whole_key_heads=True,
    files=files,
    gaps=gaps,
    selects_operations=True,
    adjust=adjust,
    builds=builds,
    notes=notes,
)
