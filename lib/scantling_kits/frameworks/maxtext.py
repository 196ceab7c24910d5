"""MaxText 0.2: maxtext.yml on top of its base.yml. Mesh axes are spent inside a slice
(`ici_`); data-parallel ranks cross slices (`dcn_`)."""

from collections.abc import Iterator
from dataclasses import replace

from scantling.catalogue.models.shape import Model
from scantling.catalogue.words import Recompute, Sharding

from ..launch_plan import Domain, Framework, Gap, Install, Knobs, LaunchPlan, Pins, Saves
from ..quote import comment, js
from ..values import RunValues
from .common import MOCK_DATA, all_layers, constants_note, near_copies, recovery_gaps
from .layers import gated, without_biases, without_parts
from .maxtext_options import loose_on_gpus
from .maxtext_settings import OFFLOADS, settings

EXTRA = "Python 3.12 or later; the extra brings the jax that it runs on"


def builds(m: Model) -> Model:
    """The model of the named decoder blocks: RMSNorm, rotary positions, no biases, whole
    sequences; experts of three matrices each."""
    return replace(
        without_parts(without_biases(gated(m) if m.is_moe else m)),
        qk_norm="head" if m.qk_norm else "",
        window=0,
        windowed_layers=0,
        position_rows=0,
    )


def gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """Where MaxText's mesh, its pipeline and its decoder blocks differ."""
    yield from site_gaps(launch)
    if len(launch.tiers) > 1:
        yield near_copies(launch)
    yield from recovery_gaps(launch)
    yield from mesh_gaps(launch)
    yield from pipeline_gaps(launch)
    yield from batch_gaps(launch)
    yield from recompute_gaps(launch)
    yield from model_gaps(launch.model)


def site_gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """What of several sites it does not do."""
    p = launch.plan
    if not launch.sync:
        return
    sync = launch.cluster.sync
    if p.sharding == Sharding.ZERO1:
        why = "optimizer states are shared over the whole data axis, other sites included"
        yield Gap("sharding", p.sharding, why)
    if sync.overlap:
        why = "streaming DiLoCo is not written into this kit"
        yield Gap("job.sync.overlap", "true", why)
    if 0 < sync.exchange_bytes < 4:
        why = "weights go between sites in fp32"
        yield Gap("job.sync.compress_bits", "below 32", why)
    if launch.sync == "local-steps" and p.pp > 1:
        yield Gap("pp", p.pp, "stages under DiLoCo's outer axis are not judged here")
    if launch.sync == "local-steps":
        yield Gap(
            "cluster.sites",
            str(launch.cluster.sites),
            "one program runs over all sites",
            "a failure at one restarts all of them, where the design counts on each restarting "
            "alone",
        )


def mesh_gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """What of heads and experts does not lie on its mesh."""
    p = launch.plan
    m = launch.model
    if m.kv_heads % p.tp:
        yield Gap("tp", p.tp, "every rank has whole key-value heads")
    if m.is_moe and p.etp != p.tp:
        yield Gap("etp", p.etp, "experts share the tensor axis: etp is tp")
    if m.is_moe and launch.shards % p.ep:
        why = "the expert axis is taken out of the data-parallel ranks"
        yield Gap("ep", p.ep, why)


def pipeline_gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """What of stages it does not run."""
    p = launch.plan
    m = launch.model
    if p.pp == 1:
        return
    if m.is_moe and m.moe_layers < m.layers:
        yield Gap("pp", p.pp, "dense and expert layers are not pipelined together")
    if p.grad_accum % p.pp:
        why = f"the micro-batches ({p.grad_accum}) are a multiple of the stages"
        yield Gap("pp", p.pp, why)
    if m.layers % (p.pp * p.vpp):
        yield Gap("pp", p.pp, "stages are even")
    if p.vpp > 1 and p.sharding != Sharding.ZERO1 and m.layers < p.pp * p.vpp:
        yield Gap("vpp", p.vpp, "a repeat holds a layer")


def batch_gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """What of activations and groups it splits another way."""
    p = launch.plan
    if p.tp > 1 and not p.sp:
        yield Gap(
            "sp",
            p.sp,
            "the tensor axis splits the residual stream too, by width",
            True,
            "none: a little less memory",
        )
    if launch.phase.seq_len * p.micro_batch % (p.tp * p.cp):
        yield Gap("tp", p.tp, "every rank has whole tokens of a micro-batch")
    if p.sharding == Sharding.HSDP and p.shard_group % p.cp:
        yield Gap("shard_group", p.shard_group, "a shard group holds whole context groups")


def recompute_gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """Recompute of no layers, or of some."""
    p = launch.plan
    if p.recompute == Recompute.NONE:
        yield Gap(
            "recompute",
            p.recompute,
            "MaxText always recomputes something",
            "remat_policy minimal_with_context: matrix products and the attention core's output "
            "are kept, element-wise chains run again",
            "about 1 % of a step",
        )
    if p.recompute == Recompute.FULL and p.recompute_layers < all_layers(launch):
        yield Gap("recompute_layers", p.recompute_layers, "one policy for all layers")


def model_gaps(m: Model) -> Iterator[Gap]:
    """What the named decoder blocks lack."""
    if m.mlp == "squared-relu":
        yield Gap(
            "model.mlp",
            m.mlp,
            "mlp_activations are functions of jax.nn, which has no squared ReLU",
            "relu: the same products, another function",
            "none in time or memory",
        )
    if m.window and m.windowed_layers:
        why = "windows belong to named decoder blocks"
        yield Gap("model.window", m.window, why, "full attention in every layer")
    if builds(m) != replace(m, window=0, windowed_layers=0):
        yield Gap(
            "model",
            m.name,
            "the decoder blocks are those of named families",
            "the nearest block: llama2, mixtral or deepseek, without biases and learned positions, "
            "experts gated, of two thirds of the width where they have two matrices in place of "
            "three",
        )
    if m.is_moe and mixed_layout(m):
        why = (
            "its mixtral block has experts in every layer and none shared; dense layers and shared "
            "experts belong to its deepseek block, which has latent attention"
        )
        yield Gap("model", m.name, why)


def mixed_layout(m: Model) -> bool:
    """Whether experts stand among dense layers, or beside shared ones, as no block has them."""
    if m.moe_layout != "dense-first":
        return True
    return m.attention != "mla" and (m.shared_ffn_hidden > 0 or m.moe_layers < m.layers)


def adjust(pins: Pins, launch: LaunchPlan, outside: set[str]) -> Pins:
    """Pins of a nearest plan: experts without tensor parallelism, or no stages, where that is what
    stands in the way."""
    out = dict(pins)
    if "etp" in outside or ("ep" in outside and launch.model.is_moe):
        for field in ("sp", "ep"):
            out.pop(field, None)
        out |= {"tp": 1, "etp": 1}
    if "pp" in outside:
        for field in ("vpp", "schedule"):
            out.pop(field, None)
        out["pp"] = 1
    if "cp_type" in outside and pins.get("cp", 1) > 1:
        out["cp_type"] = "all-gather"
    return out


def notes(launch: LaunchPlan) -> list[str]:
    """How activations are split, constants, attention and experts."""
    activations = "Activations are split by batch alone."
    if launch.plan.tp > 1:
        activations = (
            "Outside the tensor-parallel products activations are split over the tensor axis by "
            "width, not by sequence: the same bytes."
        )
    rotary = not launch.model.position_rows
    out = [
        activations,
        f"{constants_note(launch, rotary, ' (rope_max_timescale)')}.",
        "attention is flash on TPUs and cudnn_flash_te on GPUs: cuDNN's kernel through "
        "Transformer Engine.",
    ]
    if loose_on_gpus(launch):
        out.append(
            "Documents are not packed (Transformer Engine's attention takes them in 16 bit alone, "
            "and under context parallelism in a ring alone): each is padded to seq_len, so give "
            "files whose examples are whole sequences."
        )
    if launch.model.is_moe:
        out.append("Experts run as sparse_matmul, without dropped tokens.")
    return out


def keep(copies: int, days: float) -> str:
    """What becomes of old checkpoints."""
    return (
        f"max_num_checkpoints_to_keep: the last {copies}; copy one a day elsewhere, and keep it "
        f"{days:.0f} days"
    )


def sites(launch: LaunchPlan) -> str:
    """The axes for several sites."""
    between = launch.between
    if launch.sync == "local-steps" and between:
        return (
            "enable_diloco: the diloco axis is outermost, each site steps alone, and every "
            f"{between.local_steps} steps (diloco_sync_period) an outer step over what the "
            "weights moved, at DiLoCo's rate of 0.7 and momentum of 0.9 (arXiv 2311.08105; "
            "MaxText's own are 0.3 and 0.9): try both on a small model. It needs "
            "`pip install drjax`"
        )
    copies = ""
    if launch.plan.sharding != Sharding.NONE:
        copies = f", and {launch.shards} ranks inside a site share one copy"
    return f"the data axis is outermost{copies}: only sums of gradients go between sites"


def files(launch: LaunchPlan, run: RunValues) -> dict[str, str]:
    """maxtext.yml."""
    lines = [f"{key}: {js(value)}\n" for key, value in settings(launch, run).items()]
    return {"maxtext.yml": f"# {comment(launch.name)}\n{''.join(lines)}"}


FRAMEWORK = Framework(
    id="maxtext",
    package="maxtext",
    version="0.2.5",
    file="maxtext.yml",
    launcher="python",
    packs=("tpu",),
    chips=("nvidia", "amd", "tpu"),
    space={"recompute_share": (1.0,), "layer_split": ("even",)},
    runtime="jax",
    has_trainer=False,
    transformer_engine=False,
    reads_by_position=False,
    offloads=OFFLOADS,
    saves_in_background=True,
    stop="term",
    whole="*/checkpoints/*/commit_success.txt",
    domain={
        "layout": Domain(values=([],), why="stages are even"),
        "sharding": Domain(
            values=(Sharding.ZERO3, Sharding.HSDP, Sharding.NONE, Sharding.ZERO1),
            why="gradients alone are not sharded",
        ),
        "schedule": Domain(
            values=("1f1b", "interleaved"), why="one pipeline schedule, repeated for interleaving"
        ),
        "offload": Domain(
            values=("none", "optimizer"),
            why="optimizer states and parameters are moved apart; the kit moves the first",
        ),
        "cp_type": Domain(
            values=("all-gather",),
            why=(
                "on GPUs and TPUs alike keys and values are gathered; ring needs Transformer "
                "Engine, Ulysses a TPU"
            ),
        ),
        "precision": Domain(
            values=("bf16", "fp32", "int8"),
            why=(
                "int8 is AQT's; fp8 and fp4 recipes are Transformer Engine's, on GPUs only, and "
                "not judged here"
            ),
        ),
        "optimizer": Domain(
            values=("adamw", "sgd", "muon"), why="opt_type is adamw, adam_pax, sgd or muon"
        ),
    },
    saves=Saves(
        format="Orbax, sharded, one writer a host",
        place=(
            "run_name/checkpoints/N below base_output_directory; Orbax renames a step when it is "
            "whole"
        ),
        resume="start the same command again with the same run_name: the newest step is restored",
        hand_over=(
            "`python3 -m maxtext.checkpoint_conversion.to_huggingface maxtext.yml "
            "model_name=FAMILY load_parameters_path=run/RUN_NAME/checkpoints/STEP/items "
            "base_output_directory=hand-over` writes safetensors, for the families that it knows "
            "(llama, qwen, gemma, deepseek, mixtral); other shapes want a mapping of their own"
        ),
        begin="the items of one checkpoint of MaxText (.../checkpoints/N/items)",
    ),
    install=(
        Install('pip install "maxtext[cuda12]==0.2.5"', EXTRA, ("nvidia",)),
        Install('pip install "maxtext[tpu]==0.2.5"', EXTRA, ("tpu",)),
        Install("pip install maxtext==0.2.5", "Python 3.12 or later", ("amd",)),
    ),
    data=(
        "Grain's ArrayRecord files, a glob that every host sees; TOKENIZER the name or folder of "
        "a Hugging Face tokenizer"
    ),
    log=(
        "standard output and TensorBoard below RUN_DIR: loss, TFLOP/s/device, tokens/s/device of "
        "every step; enable_goodput_recording=true adds up lost time, enable_wandb=true sends "
        "them to a tracker"
    ),
    profile=(
        "`profiler: xplane`, `skip_first_n_steps_for_profiler: 20` and `profiler_steps: 3` in "
        "maxtext.yml; read with xprof in TensorBoard. Memory: the same trace's memory viewer"
    ),
    skip="no option lists steps, so change data_shuffle_seed",
    keep=keep,
    rehearse="steps: 100 in maxtext.yml",
    selects_operations=True,
    modules={"core_attn": "minimal", "norm": "minimal", "mlp_act": "minimal"},
    knobs=Knobs(
        micro_batch="per_device_batch_size, with gradient_accumulation_steps raised by as much",
        recompute="remat_policy",
        offload="optimizer_memory_host_offload",
        sharding={
            Sharding.NONE: "shard_optimizer_over_data",
            Sharding.ZERO1: "ici_fsdp_parallelism",
        },
        spill="ici_tensor_parallelism",
    ),
    mock_data=MOCK_DATA,
    stragglers="Compare the hosts' step times in a trace",
    network_limit=(
        "The network is a limit. Not set, since it changes the sums: grad_dtype bfloat16 sends "
        "half the bytes."
    ),
    command=(
        'python3 -m maxtext.trainers.pre_train.train "$HERE/maxtext.yml" '
        '"base_output_directory=$RUN_DIR" "jax_distributed_initialization_timeout=$JOIN_S" '
        '"${DATA_ARGS[@]}"'
    ),
    prepare=(
        "DATA_ARGS=()\n"
        'if [ "$MOCK_DATA" != 1 ] || [ -n "${DATA:-}" ]; then DATA_ARGS=(dataset_type=grain '
        'grain_file_type=arrayrecord "grain_train_files=${DATA:-}" tokenizer_type=huggingface '
        '"tokenizer_path=${TOKENIZER:-}"); fi\n'
        'if [ -n "${INIT:-}" ]; then DATA_ARGS+=("load_parameters_path=$INIT"); fi'
    ),
    syncs=("synchronous", "local-steps"),
    sites=sites,
    whole_key_heads=True,
    files=files,
    gaps=gaps,
    adjust=adjust,
    builds=builds,
    notes=notes,
)
