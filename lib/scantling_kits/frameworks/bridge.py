"""Megatron-Bridge 0.6: bridge.overrides (Hydra, one a line) on a plain recipe, and the script that
applies them."""

from collections.abc import Iterator
from dataclasses import replace

from scantling.catalogue.models.patterns import layers_of
from scantling.catalogue.models.shape import Model
from scantling.catalogue.words import Sharding

from ..launch_plan import Domain, Gap, Install, Knobs, LaunchPlan
from ..render import source
from ..values import RunValues
from . import megatron, megatron_core as core, user_buffers
from .bridge_overrides import overrides
from .common import constants_note


def builds(m: Model) -> Model:
    """As Megatron-LM, but the scan's chunk has a key."""
    return replace(megatron.builds(m), chunk=m.chunk)


def gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """What of the model and plan has no key."""
    yield from megatron.sharing_gaps(launch)
    yield from megatron.muon_gaps(launch)
    yield from megatron.plan_gaps(launch)
    yield from megatron.model_gaps(launch)
    if launch.plan.vpp > 1 and core.stacked(layers_of(launch.model.pattern)):
        yield Gap("vpp", launch.plan.vpp, "its hybrid models have one run of layers a stage")


def notes(launch: LaunchPlan) -> list[str]:
    """Constants, what has to be installed besides, the router, and options that are not set."""
    constants = constants_note(launch, megatron.rotary(launch))
    out = [f"{constants}; recipes of known models are in megatron.bridge.recipes."]
    out += megatron.hybrid_note(launch)
    out += megatron.optimizer_note(launch)
    out += megatron.router_note(launch, "model.moe_router_topk_scaling_factor")
    out += megatron.dispatcher_note(launch)
    out += megatron.formats_note(launch)
    out += user_buffers.default_sizes_note(launch)
    attention = "" if core.low_attention(launch) else core.attention_words(launch, "")
    if options := core.options_note(launch, core.unset_options(launch, attention)):
        out.append(options)
    return out


def keep(copies: int, days: float) -> str:
    """What becomes of old checkpoints."""
    return (
        f"checkpoint.most_recent_k: the last {copies}; copy one a day elsewhere, and keep it "
        f"{days:.0f} days"
    )


def sites(launch: LaunchPlan) -> str:
    """The keys for several sites."""
    return megatron.sites_text(
        launch, "dist.use_tp_pp_dp_mapping", "ddp.num_distributed_optimizer_instances"
    )


def files(launch: LaunchPlan, run: RunValues) -> dict[str, str]:
    """bridge.overrides and pretrain_bridge.py."""
    return {
        "bridge.overrides": "".join(f"{line}\n" for line in overrides(launch, run)),
        "pretrain_bridge.py": source("pretrain_bridge.py"),
        **megatron.format_files(launch),
    }


FRAMEWORK = replace(
    megatron.FRAMEWORK,
    id="megatron-bridge",
    package="megatron-bridge",
    version="0.6.2",
    file="bridge.overrides",
    domain={
        **megatron.FRAMEWORK.domain,
        "offload": Domain(values=("none", "optimizer"), why="optimizer states only"),
        "precision": Domain(
            values=("bf16", "fp16", "fp8", "fp8-current", "fp8-block", "mxfp8", "nvfp4"),
            why="the recipes are 16 bit, fp8 and fp4",
        ),
    },
    saves=replace(
        megatron.FRAMEWORK.saves,
        hand_over=(
            "AutoBridge.from_hf_pretrained(MODEL).export_ckpt(checkpoint, folder) writes "
            "safetensors with the architecture's names"
        ),
    ),
    install=(
        Install(
            (
                "pip install megatron-bridge==0.6.2 'transformer-engine[pytorch]>=2.12' "
                "nvidia-resiliency-ext"
            ),
            "Python 3.12; brings megatron-core",
        ),
    ),
    data=(
        "the prefix of a .bin and .idx pair from Megatron-LM's tools/preprocess_data.py, or "
        "several with their weights (dataset.data_path); already tokenised, so NullTokenizer is "
        "enough"
    ),
    log=(
        "standard output and TensorBoard below RUN_DIR: lm loss, grad norm, TFLOP/s/GPU; "
        "logger.wandb_project and logger.wandb_exp_name send them to a tracker; nvrx_straggler in "
        "Python names slow ranks"
    ),
    profile=(
        "in bridge.overrides, one a line: profiling.use_pytorch_profiler=true "
        "profiling.profile_step_start=20 profiling.profile_step_end=22; traces in the TensorBoard "
        "folder. Memory: profiling.record_memory_history=true"
    ),
    skip="train.iterations_to_skip=[first,...,last] with the numbers of the bad steps",
    keep=keep,
    thins="",
    rehearse="the line train.exit_interval=100 in bridge.overrides",
    knobs=Knobs(
        micro_batch="train.micro_batch_size",
        recompute="model.recompute_granularity",
        offload="optimizer.optimizer_cpu_offload",
        sharding={
            Sharding.NONE: "ddp.use_distributed_optimizer",
            Sharding.ZERO1: "ddp.use_megatron_fsdp with ddp.data_parallel_sharding_strategy",
            Sharding.ZERO2: "ddp.data_parallel_sharding_strategy",
        },
        spill="model.pipeline_model_parallel_size",
    ),
    stragglers="Have nvrx_straggler name them",
    network_limit=(
        "The network is a limit: plan.gradients bf16 sets ddp.grad_reduce_in_fp32=false, which "
        "changes the sums."
    ),
    without_transformer_engine="",
    source="MEGATRON_BRIDGE",
    command=(
        '"$HERE/pretrain_bridge.py" "checkpoint.save=$RUN_DIR/checkpoints" '
        '"checkpoint.load=$RUN_DIR/checkpoints" "logger.tensorboard_dir=$RUN_DIR/tensorboard" '
        '"${DATA_ARGS[@]}"'
    ),
    prepare=(
        "DATA_ARGS=()\n"
        'if [ -n "${DATA:-}" ]; then DATA_ARGS=("dataset.data_path=\'$DATA\'" '
        "\"dataset.path_to_cache='$RUN_DIR/data-cache'\"); fi\n"
        'if [ -n "${INIT:-}" ]; then DATA_ARGS+=("checkpoint.pretrained_checkpoint=\'$INIT\'"); fi'
    ),
    sites=sites,
    files=files,
    gaps=gaps,
    keeps_16bit=True,
    forces_even_routing="model.moe_router_force_load_balancing",
    builds=builds,
    notes=notes,
)
