"""Megatron-LM (megatron-core 0.19): command-line arguments of pretrain_gpt.py, one flag a line; of
pretrain_hybrid.py where the layers of a pattern are not all a mixer before a feed-forward."""

from collections.abc import Iterator
from dataclasses import replace

from scantling.catalogue.models.patterns import layers_of
from scantling.catalogue.models.shape import Model
from scantling.catalogue.words import Offload, Precision, Sharding

from ..launch_plan import Domain, Framework, Gap, Install, Knobs, LaunchPlan, Pins, Saves, last_rank
from ..render import source
from ..values import RunValues
from . import megatron_core as core
from .common import (
    MOCK_DATA,
    STEPS_TOGETHER,
    all_layers,
    constants_note,
    near_copies,
    recovery_gaps,
)
from .megatron_args import arguments


def builds(m: Model) -> Model:
    """The model that the flags describe: biases everywhere or on q, k and v alone, two norms a
    layer (one a block in patterns), MLP after attention; a Mamba-2 mixer as it has no flags for."""
    biased = bool(m.mlp_bias or m.out_bias)
    layers = layers_of(m.pattern)
    model = replace(
        m,
        qkv_bias=biased or m.qkv_bias,
        out_bias=biased,
        mlp_bias=biased,
        head_bias=False,
        qk_norm="head" if m.qk_norm else "",
        attention_gate="width" if m.attention_gate else "",
        norms_per_layer=len(layers[0]) if layers else 2,
        relative_positions=False,
        embedding_norm=False,
        extras=0,
        extra_products=0,
        expert_bias=False,
        router_bias=False,
        parallel_block=False,
        shared_kv=False,
        latent_norm=False,
        zero_experts=0,
        router_scales=False,
        hyper_connections=0,
        proj_bias=False,
        chunks=False,
    )
    if core.scans(layers):
        return replace(model, conv=4, conv_bias=True, gated_norm=True, chunk=128)
    return model


def gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """What of the model and plan has no flag."""
    yield from sharing_gaps(launch)
    yield from muon_gaps(launch)
    yield from plan_gaps(launch)
    if launch.model.mlp in ("geglu", "relu"):
        yield Gap(
            "model.mlp",
            launch.model.mlp,
            "no flag for ReLU, nor for the exact GELU as a gate",
            "GELU for ReLU, and --quick-geglu, which comes near GeGLU; as many products either way",
        )
    yield from model_gaps(launch)


def sharing_gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """States, copies and nodes that are not shared or lost so."""
    p = launch.plan
    fully = p.sharding in core.FSDP_STRATEGY
    optimizer = launch.phase.optimizer
    if launch.sync and (fully or (optimizer == "muon" and p.sharding == Sharding.ZERO1)):
        why = (
            "Megatron-FSDP and Muon share their states over all data-parallel ranks as written "
            "here, those of other sites too"
        )
        yield Gap("sharding", p.sharding, why)
    if fully and len(launch.tiers) > 1:
        yield near_copies(
            launch, "copies near the devices are of torch_dist alone, not of Megatron-FSDP"
        )
    yield from recovery_gaps(launch)
    several = p.sharding == Sharding.NONE and p.dp * p.cp > 1
    if several and (p.offload != Offload.NONE or optimizer == "adamw-bf16"):
        why = "optimizer states on the hosts, or in 16 bit, are its distributed optimizer's alone"
        yield Gap("sharding", p.sharding, why)


def muon_gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """What Muon does not run with."""
    p = launch.plan
    if launch.phase.optimizer != "muon":
        return
    if p.sharding in core.FSDP_STRATEGY:
        why = (
            "Muon works on whole matrices: Megatron spreads them over the data-parallel ranks "
            "layer by layer (zero1), and its FSDP refuses Muon"
        )
        yield Gap("sharding", p.sharding, why)
    if p.precision == Precision.FP16:
        yield Gap("precision", p.precision, "Megatron's Muon refuses fp16")
    if p.offload != Offload.NONE:
        yield Gap("offload", p.offload, "only Adam's states are offloaded")


def plan_gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """What of recompute, kernels, stages and experts it does not run."""
    yield from recompute_gaps(launch)
    yield from format_gaps(launch)
    yield from engine_gaps(launch)
    yield from stage_gaps(launch)
    yield from core.dispatcher_gaps(launch)
    p = launch.plan
    m = launch.model
    if m.is_moe and p.tp > 1 and not p.sp:
        why = "Megatron demands sequence parallelism for experts under tensor parallelism"
        yield Gap("sp", p.sp, why)
    if m.index_heads and p.cp > 1 and p.cp_type != "all-gather":
        why = "its sparse attention takes keys that are gathered (all-gather) alone"
        yield Gap("cp_type", p.cp_type, why)
    if p.precision == Precision.FP32 and p.pp > 1:
        yield Gap(
            "precision",
            p.precision,
            "pipeline sends take 16-bit types by default",
            "--attention-softmax-in-fp32 and fp32 parameters are kept",
        )


def recompute_gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """Modules that `selective` does not repeat."""
    modules = launch.plan.recompute_modules
    if "mlp_act" in modules and not launch.model.is_moe:
        why = "--recompute-modules moe_act repeats the activations of experts alone"
        yield Gap("recompute_modules", modules, why)
    if launch.plan.precision == Precision.FP8 and {"norm", "mlp_act"} & {*modules}:
        why = "layernorm and moe_act are not repeated under delayed scaling"
        yield Gap("recompute_modules", modules, why)


def format_gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """Layers that cannot stay in 16 bit: under delayed scaling, and beyond a stage's share at one
    end (transformer_config.py of Megatron-Core 0.19.2)."""
    if not launch.phase.kept_16bit or not any(launch.phase.kept_16bit):
        return
    first, last = launch.phase.kept_16bit
    most = launch.model.layers // launch.plan.pp
    why = ""
    if launch.phase.precision == Precision.FP8:
        why = "delayed scaling does not support first and last layers in bf16; fp8-current does"
    elif max(first, last) > most:
        why = f"at most {most} layers of one end, as many as a stage has"
    if why:
        yield Gap("keep_16bit", f"first {first}, last {last}", why)


def engine_gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """What needs Transformer Engine where the chip has none."""
    p = launch.plan
    m = launch.model
    if launch.kin.transformer_engine:
        return
    if p.sp:
        why = (
            "without Transformer Engine, which begins with Ampere, norms are torch's and see the "
            "whole sequence"
        )
        yield Gap("sp", p.sp, why)
    if m.is_moe or m.attention == "mla" or p.cp > 1 or m.pattern:
        why = (
            "grouped experts, latent attention and context parallelism need Transformer Engine, "
            "which begins with Ampere"
        )
        yield Gap("cluster.accelerator", launch.cluster.accelerator.name, why)


def stage_gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """What of virtual stages it does not run."""
    p = launch.plan
    fully = p.sharding in core.FSDP_STRATEGY
    if fully and p.pp > 1 and p.vpp > 1:
        why = "Megatron-FSDP does not run interleaved chunks"
        yield Gap("sharding", p.sharding, why)
    if fully and launch.model.is_moe and p.etp != 1:
        yield Gap("etp", p.etp, "not with Megatron-FSDP")
    if p.vpp > 1 and (p.grad_accum < p.pp or p.grad_accum % p.pp):
        why = (
            "Megatron's interleaved schedule wants micro-batches in whole groups of pp: "
            f"{p.grad_accum} on {p.pp} stages"
        )
        yield Gap("vpp", p.vpp, why)
    if p.recompute_layers % p.vpp and p.recompute_layers < all_layers(launch):
        why = (
            "the same number of layers is repeated in every virtual stage, so a multiple of vpp "
            f"({p.vpp})"
        )
        yield Gap("recompute_layers", p.recompute_layers, why)


def model_gaps(launch: LaunchPlan) -> Iterator[Gap]:
    """Layers that no flags describe."""
    if launch.framework.builds(launch.model) == launch.model:
        return
    why = (
        "one bias flag for all products; no flag for relative positions, a norm after the "
        "embedding, further norms, parallel blocks, attention in chunks, hyper-connections, a norm "
        "of the latent width, experts that compute nothing or biases of router, experts and head; "
        "its Mamba-2 has 4 taps with a bias, a gated norm and chunks of 128 tokens"
    )
    yield Gap("model", launch.model.name, why, "the layers that the flags describe")


def adjust(pins: Pins, launch: LaunchPlan, outside: set[str]) -> Pins:
    """Pins of a nearest plan: no interleaving where that is what Megatron cannot run."""
    out = dict(pins)
    if outside & {"vpp", "schedule"}:
        out |= {"vpp": 1, "schedule": "1f1b"}
    if "sp" in outside and pins.get("tp", 1) > 1:
        out["sp"] = not launch.plan.sp
    if "cp_type" in outside and "cp" in pins:
        out["cp_type"] = "all-gather"
    return out


def rotary(launch: LaunchPlan) -> bool:
    """Whether rotary positions have a base: a hybrid may state none."""
    m = launch.model
    return bool(m.rope_base or not (m.position_rows or m.pattern))


def notes(launch: LaunchPlan) -> list[str]:
    """Constants, what has to be installed besides, the router, and options that are not set."""
    out = [f"{constants_note(launch, rotary(launch))}."]
    out += optimizer_note(launch)
    out += hybrid_note(launch)
    out.append("Garbage is collected by hand every 100 steps, so that no rank pauses alone.")
    out += router_note(launch, "--moe-router-topk-scaling-factor")
    out += dispatcher_note(launch)
    out += formats_note(launch)
    if core.overlaps_tensor_products(launch):
        out.append(
            "Products overlap with the sizes of user buffers that Transformer Engine has by "
            "default: Megatron-LM has none by name (--tp-comm-overlap-cfg FILE); megatron-bridge "
            "has, for the makers' recipes."
        )
    out.append(
        "The loss is Megatron's own fused kernel: 0.19.2 refuses Transformer Engine's, which "
        "Megatron-Bridge's recipes take, for its stability."
    )
    attention = core.attention_words(
        launch, ", for which Megatron-LM has no flag and megatron-bridge has"
    )
    if options := core.options_note(launch, core.unset_options(launch, attention)):
        out.append(options)
    if launch.phase.precision in (
        Precision.FP8,
        Precision.FP8_CURRENT,
        Precision.FP8_BLOCK,
        Precision.MXFP8,
    ):
        ends = "; --first-last-layers-bf16 keeps one layer at each end so too"
        if launch.phase.kept_16bit or launch.phase.precision == Precision.FP8:
            ends = ""
        out.append(f"Attention, router, norms and the output head stay in bf16{ends}.")
    return out


def hybrid_note(launch: LaunchPlan) -> list[str]:
    """Kernels of a hybrid model, and what is left as Megatron has it."""
    if not launch.model.pattern:
        return []
    return [
        "The scans are kernels of their own: `pip install mamba-ssm causal-conv1d` for Mamba-2, "
        "`pip install flash-linear-attention causal-conv1d` for gated delta nets. What the design "
        "does not state is left as Megatron has it: the share of a head's width that is rotated "
        "(Qwen3-Next: a quarter) and norms whose weights are kept less one."
    ]


def optimizer_note(launch: LaunchPlan) -> list[str]:
    """What Muon needs, and how its states are shared."""
    if launch.phase.optimizer != "muon":
        return []
    return [
        "Muon needs `pip install emerging-optimizers`; the 0.19 release spreads whole matrices "
        "over the data-parallel ranks, and steps embeddings, head and norms by Adam."
    ]


def router_note(launch: LaunchPlan, scale: str) -> list[str]:
    """How the router scores and balances; `scale`: the option for the scale of its weights."""
    m = launch.model
    if not m.is_moe:
        return []
    factor = f"; {scale} is not set, since the catalogue does not know the model's own"
    if m.router_scale:
        factor = f"; its weights are multiplied by {m.router_scale:g}, as the model's own"
    if m.router_buffers:
        return [
            "The router scores by sigmoid and balances by a bias on each expert, as the model's "
            f"files have it{factor}."
        ]
    first = ", taken before experts are chosen" if m.router_pre_softmax else ""
    return [
        f"The router is softmax{first} with an auxiliary loss of 1e-3: set the model's "
        f"own{factor if m.router_scale else ''}."
    ]


def formats_note(launch: LaunchPlan) -> list[str]:
    """What keeps another format than the run's."""
    first, last = core.kept_layers(launch)
    if launch.phase.kept_16bit:
        return [f"The first {first} and the last {last} layers stay in bf16, as the design says."]
    if launch.phase.precision != Precision.NVFP4:
        return []
    if not last:
        return [
            "All layers run in NVFP4, as in the maker's recipes for this kind of model, which "
            "measure speed. Published training in NVFP4 keeps about 15 % of the layers, the last, "
            "in bf16 (arXiv 2509.25149): first_last_layers_bf16 with num_layers_at_start_in_bf16 0 "
            "and num_layers_at_end_in_bf16. Run 1,000 steps both ways before the run."
        ]
    named = ""
    if core.layer_formats(launch):
        named = (
            "; quantization.yaml keeps attention's products, the latent projections of experts and "
            "the modules of further tokens in bf16 and Mamba's output in MXFP8"
        )
    return [
        f"The last {last} blocks stay in bf16, as the maker's recipe of this kind of model{named}."
    ]


def format_files(launch: LaunchPlan) -> dict[str, str]:
    """quantization.yaml, where products have formats of their own by name."""
    if not core.layer_formats(launch):
        return {}
    return {"quantization.yaml": source("quantization.yaml")}


def dispatcher_note(launch: LaunchPlan) -> list[str]:
    """Where the flex dispatcher comes from."""
    counted_on = launch.does.dedup_dispatch > 0 and launch.kin.modern and launch.plan.ep > 1
    if not (launch.model.is_moe and counted_on):
        return []
    return [
        "The step counts on tokens that travel once to each rank: the flex dispatcher is DeepEP or "
        "HybridEP of github.com/deepseek-ai/DeepEP, which NVIDIA's NeMo containers hold. Where it "
        "is not installed, the dispatcher `alltoall` trains the same and takes longer: measure "
        "both in the first hour."
    ]


def keep(copies: int, days: float) -> str:
    """What becomes of old checkpoints."""
    return (
        f"the last {copies}: launch.sh on node 0 removes older ones, for which Megatron-LM has no "
        f"word; one a day is yours to copy elsewhere and to keep {days:.0f} days"
    )


def sites(launch: LaunchPlan) -> str:
    """The flags for several sites."""
    return sites_text(launch, "--use-tp-pp-dp-mapping", "--num-distributed-optimizer-instances")


def sites_text(launch: LaunchPlan, mapping: str, instances: str) -> str:
    """What the options `mapping` and `instances` do for several sites."""
    outer = ""
    if launch.plan.pp > 1:
        outer = (
            f"{mapping} puts data parallelism outermost, so that the stages of a replica stay "
            "inside a site; "
        )
    if launch.plan.sharding == Sharding.NONE:
        return f"{outer}gradients go in one all-reduce over all ranks"
    return (
        f"{outer}{instances} {launch.cluster.sites} shares optimizer states inside a site, and "
        "only sums of shards go between sites"
    )


def files(launch: LaunchPlan, run: RunValues) -> dict[str, str]:
    """megatron.args."""
    args = {"megatron.args": "".join(f"{line}\n" for line in arguments(launch, run))}
    return args | format_files(launch)


FRAMEWORK = Framework(
    id="megatron",
    package="megatron-core",
    version="0.19.2",
    file="megatron.args",
    launcher="torchrun",
    chips=("nvidia", "amd"),
    runtime="torch",
    has_trainer=False,
    transformer_engine=True,
    without_transformer_engine=(
        "Transformer Engine is left out: it begins with Ampere (--transformer-impl local)."
    ),
    reads_by_position=True,
    saves_in_background=True,
    stop="term",
    whole="checkpoints/latest_*",
    domain={
        "sharding": Domain(
            values=(Sharding.ZERO1, Sharding.NONE, Sharding.ZERO3, Sharding.ZERO2),
            why=(
                "Megatron shards optimizer states (zero1), or with Megatron-FSDP all of them over "
                "all data-parallel ranks; shard groups are not judged here"
            ),
        ),
        "schedule": Domain(
            values=("1f1b", "interleaved"),
            why=(
                "Megatron-LM runs 1F1B and interleaved 1F1B; zero-bubble and DualPipe schedules "
                "are not in it"
            ),
        ),
        "offload": Domain(
            values=("none", "optimizer"), why="Megatron offloads optimizer states, not weights"
        ),
        "precision": Domain(
            values=(
                Precision.BF16,
                Precision.FP16,
                Precision.FP8,
                Precision.FP8_CURRENT,
                Precision.FP8_BLOCK,
                Precision.MXFP8,
                Precision.NVFP4,
                Precision.FP32,
            ),
            why="Transformer Engine has no recipe with scales by row, nor for mxfp4",
        ),
        "optimizer": Domain(
            values=("adamw", "adamw-bf16", "sgd", "muon"),
            why="Megatron has Adam (also with bf16 moments), SGD and Muon",
        ),
    },
    saves=Saves(
        format="torch_dist (sharded, one writer a rank, read back under other layouts)",
        place="checkpoints/iter_NNNNNNN, `latest_checkpointed_iteration.txt` written last",
        resume="start the same command again: `--load` reads the newest whole iteration",
        hand_over=(
            "Megatron-Bridge 0.6.2 writes safetensors with the names of the Hugging Face "
            "architecture, on one process: `python -c 'from megatron.bridge import AutoBridge; "
            'AutoBridge.from_hf_pretrained("ORGANISATION/MODEL").export_ckpt("run/checkpoints", '
            "\"hand-over\")'`, with the architecture's configuration in place of "
            "ORGANISATION/MODEL"
        ),
        begin=(
            "a folder of Megatron's checkpoints, with latest_checkpointed_iteration.txt in it; "
            "Megatron-Bridge makes one of Hugging Face's files (AutoBridge.import_ckpt)"
        ),
        of_shards="fsdp_dtensor (Megatron-FSDP's, sharded, one writer a rank)",
    ),
    install=(
        Install(
            (
                "git clone --branch core_v0.19.2 MEGATRON_LM_REPOSITORY && export "
                "MEGATRON_LM=$PWD/Megatron-LM"
            ),
            "pretrain_gpt.py and pretrain_hybrid.py are not in the wheel",
        ),
        Install(
            (
                "pip install 'megatron-core[mlm]==0.19.2' 'transformer-engine[pytorch]>=2.12' "
                "nvidia-resiliency-ext tensorboard pybind11"
            ),
            (
                "Python 3.12 or later; nvidia-resiliency-ext for asynchronous saves and what "
                "--log-straggler reads; the checkout compiles its index of samples when it "
                "starts: make, g++ and pybind11"
            ),
        ),
    ),
    data=(
        "the prefix of a .bin and .idx pair from tools/preprocess_data.py with --append-eod, or a "
        "file of `weight prefix` words; already tokenised, so NullTokenizer is enough (end of "
        "document: the last id); TOKENIZER names a Hugging Face tokenizer to use instead"
    ),
    log=(
        "standard output and TensorBoard below RUN_DIR: lm loss, grad norm, TFLOP/s/GPU; "
        "--log-straggler names the fastest and slowest ranks with their TFLOP/s; progress.txt "
        "beside the checkpoints adds up tokens; --wandb-project and --wandb-exp-name send all of "
        "it to a tracker"
    ),
    loss_rank=last_rank,
    profile=(
        "in megatron.args: --profile --use-pytorch-profiler --profile-step-start 20 "
        "--profile-step-end 22 --profile-ranks 0; traces in RUN_DIR/tensorboard, for Perfetto. "
        "Memory: --record-memory-history, opened at pytorch.org/memory_viz"
    ),
    skip="--iterations-to-skip with the numbers of the bad steps",
    keep=keep,
    thins="checkpoints/iter_*",
    rehearse="the line --exit-interval 100 in megatron.args",
    knobs=Knobs(
        micro_batch="--micro-batch-size",
        recompute="--recompute-granularity",
        offload="--optimizer-cpu-offload",
        sharding={
            Sharding.NONE: "--use-distributed-optimizer",
            Sharding.ZERO1: "--use-megatron-fsdp with --data-parallel-sharding-strategy",
            Sharding.ZERO2: "--data-parallel-sharding-strategy",
        },
        spill="--pipeline-model-parallel-size",
    ),
    mock_data=MOCK_DATA,
    stragglers="Compare the ranks' TFLOP/s (--log-straggler)",
    network_limit=(
        "The network is a limit: plan.gradients bf16 sets --grad-reduce-in-bf16, which changes "
        "the sums; with --ddp-reduce-scatter-with-fp32-accumulation only what is sent is short."
    ),
    ordered_launch=True,
    source="MEGATRON_LM",
    command=(
        '"${MEGATRON_LM:?the folder of a Megatron-LM checkout}/pretrain_$MODEL.py" "${ARGS[@]}" '
        '--save "$RUN_DIR/checkpoints" --load "$RUN_DIR/checkpoints" --tensorboard-dir '
        '"$RUN_DIR/tensorboard" "${DATA_ARGS[@]}"'
    ),
    prepare=(
        'mapfile -d "" -t ARGS < <(xargs printf \'%s\\0\' < "$HERE/megatron.args")\n'
        'case " ${ARGS[*]} " in *" --hybrid-layer-pattern "*) MODEL=hybrid ;; *) MODEL=gpt ;; '
        "esac\n"
        "DATA_ARGS=()\n"
        'if [ -f "${DATA:-}" ]; then DATA_ARGS=(--data-args-path "$DATA"); else '
        'DATA_ARGS=(--data-path "${DATA:-}"); fi\n'
        'if [ -n "${DATA:-}" ]; then DATA_ARGS+=(--split "99,1,0" --data-cache-path '
        '"$RUN_DIR/data-cache"); fi\n'
        'if [ -z "${DATA:-}" ] && [ "$MOCK_DATA" = 1 ]; then DATA_ARGS=(--mock-data); fi\n'
        'if [ -f "$HERE/quantization.yaml" ]; then DATA_ARGS+=(--te-precision-config-file '
        '"$HERE/quantization.yaml"); fi\n'
        'if [ -n "${TOKENIZER:-}" ]; then DATA_ARGS+=(--tokenizer-type HuggingFaceTokenizer '
        '--tokenizer-model "$TOKENIZER"); fi\n'
        'if [ -n "${INIT:-}" ]; then DATA_ARGS+=(--pretrained-checkpoint "$INIT"); fi'
    ),
    modules={
        "core_attn": "core_attn",
        "mla_up_proj": "mla_up_proj",
        "norm": "layernorm",
        "mlp_act": "moe_act",
        "moe": "moe",
    },
    blocks={
        "mamba2": "M",
        "gdn": "G",
        "attn": "*",
        "mla_dsa": "D",
        "mlp": "-",
        "moe": "E",
        "latentmoe": "E",
    },
    syncs=("synchronous",),
    sites=sites,
    no_local_steps=STEPS_TOGETHER,
    files=files,
    gaps=gaps,
    keeps_16bit=True,
    forces_even_routing="--moe-router-force-load-balancing",
    adjust=adjust,
    builds=builds,
    notes=notes,
)
