"""megatron.args: the flags of pretrain_gpt.py and pretrain_hybrid.py, one a line, by what they set.

What a release of Megatron-LM calls its options stands here alone.
"""

from scantling.catalogue.models.patterns import layers_of
from scantling.catalogue.words import Offload, Precision, Recompute, Sharding

from ..launch_plan import SEED, LaunchPlan, norm_epsilon, rotary_base
from ..quote import sh
from ..recipe_settings import chosen
from ..training_schedule import WEIGHT_DECAY, Schedule, schedule
from ..values import RunValues
from . import megatron_core as core
from .megatron_settings import OPTIONS, flag

FP8_RECIPES = {
    "fp8": "delayed",
    "fp8-current": "tensorwise",
    "fp8-block": "blockwise",
    "mxfp8": "mxfp8",
}


def arguments(launch: LaunchPlan, run: RunValues) -> list[str]:
    """All lines of megatron.args."""
    plan = schedule(launch, run)
    return [
        *shape(launch),
        *hybrid(launch),
        *attention(launch),
        *feed_forward(launch),
        *experts(launch),
        *further_tokens(launch),
        *degrees(launch),
        *stages(launch),
        *sharding(launch),
        *kernels(launch),
        *recompute(launch),
        *formats(launch),
        *optimizer(launch, plan),
        *regularisation(),
        *checkpoints(launch),
        *watching(launch, plan),
        *(flag(option) for option in chosen(OPTIONS, launch)),
    ]


def shape(launch: LaunchPlan) -> list[str]:
    """Widths, vocabulary, norms and positions."""
    m = launch.model
    layers = layers_of(m.pattern)
    positions = core.position_embedding(m)
    out = [
        f"--num-layers {m.layers * core.blocks_of_layer(layers)}",
        f"--hidden-size {m.hidden}",
        f"--ffn-hidden-size {m.ffn_hidden or m.expert_ffn_hidden or m.hidden}",
        f"--num-attention-heads {m.heads or 1}",
        f"--seq-length {launch.phase.seq_len}",
        f"--max-position-embeddings {max(m.position_rows, launch.phase.seq_len)}",
        "--tokenizer-type NullTokenizer",
        f"--vocab-size {m.vocab}",
        "--make-vocab-size-divisible-by 1",
        f"--normalization {'LayerNorm' if m.norm_bias else 'RMSNorm'}",
        f"--norm-epsilon {norm_epsilon(m):g}",
        f"--position-embedding-type {positions}",
    ]
    if positions == "rope":
        out.append(f"--rotary-base {rotary_base(m)}")
    return out


def hybrid(launch: LaunchPlan) -> list[str]:
    """Layers that are not all attention before a feed-forward."""
    m = launch.model
    layers = layers_of(m.pattern)
    linear = core.linear_layers(layers)
    sparse = bool(m.index_heads and layers)
    out = []
    if core.stacked(layers):
        out += [
            "--is-hybrid-model",
            f"--hybrid-layer-pattern {sh(core.hybrid_pattern(launch))}",
            "--spec megatron.core.models.hybrid.hybrid_layer_specs hybrid_stack_spec",
        ]
        if core.scans(layers):
            out += [
                f"--mamba-state-dim {m.state_size}",
                f"--mamba-head-dim {m.ssm_head_dim}",
                f"--mamba-num-groups {m.groups}",
                f"--mamba-num-heads {m.ssm_heads}",
            ]
    elif 1 in linear:
        out += [
            "--experimental-attention-variant gated_delta_net",
            f"--linear-attention-freq {sh(core.runs_of(linear))}",
        ]
    elif sparse:
        out.append("--experimental-attention-variant dsa")
    if sparse:
        out += [
            f"--dsa-indexer-n-heads {m.index_heads}",
            f"--dsa-indexer-head-dim {m.index_dim}",
            f"--dsa-indexer-topk {m.index_topk}",
            "--dsa-indexer-loss-coeff 1e-2",
            "--dsa-indexer-use-sparse-loss",
        ]
    if 1 in linear:
        out += [
            f"--linear-conv-kernel-dim {m.conv}",
            f"--linear-key-head-dim {m.lin_k_dim}",
            f"--linear-value-head-dim {m.lin_v_dim}",
            f"--linear-num-key-heads {m.lin_k_heads}",
            f"--linear-num-value-heads {m.lin_v_heads}",
        ]
    return out


def attention(launch: LaunchPlan) -> list[str]:
    """Gate, kernels, and heads: latent or grouped."""
    m = launch.model
    out = []
    if m.attention_gate:
        out.append("--attention-output-gate")
    if not launch.kin.transformer_engine:
        out += ["--transformer-impl local", "--no-persist-layer-norm"]
    if m.attention == "mla":
        out += [
            "--multi-latent-attention",
            f"--kv-lora-rank {m.kv_lora}",
            f"--qk-head-dim {m.qk_nope}",
            f"--qk-pos-emb-head-dim {m.qk_rope}",
            f"--v-head-dim {m.v_head_dim}",
        ]
        if m.q_lora:
            out.append(f"--q-lora-rank {m.q_lora}")
        return out
    out.append(f"--kv-channels {m.head_dim or m.hidden}")
    if m.kv_heads != m.heads:
        out += ["--group-query-attention", f"--num-query-groups {m.kv_heads}"]
    return out


def feed_forward(launch: LaunchPlan) -> list[str]:
    """Activation, biases, norms of queries and keys, windows."""
    m = launch.model
    biased = m.mlp_bias or m.out_bias
    out = []
    if m.mlp in ("swiglu", "squared-relu") and not m.gate_offset:
        out.append(f"--{m.mlp}")
    if m.mlp == "geglu" or m.gate_offset:
        out.append("--quick-geglu")
    if not m.tied_embeddings:
        out.append("--untie-embeddings-and-output-weights")
    if not biased:
        out.append("--disable-bias-linear")
    if m.qkv_bias and not biased:
        out.append("--add-qkv-bias")
    if m.qk_norm or m.attention == "mla":
        out.append("--qk-layernorm")
    if m.sinks:
        out.append("--softmax-type learnable")
    if m.window and m.windowed_layers:
        out.append(f"--window-size {m.window - 1},0")
        if m.windowed_layers < m.layers:
            out.append(f"--window-attn-skip-freq {m.layers // (m.layers - m.windowed_layers)}")
    return out


def experts(launch: LaunchPlan) -> list[str]:
    """Experts: their widths, how tokens reach them, the router."""
    m = launch.model
    if not m.is_moe:
        return []
    out = [
        f"--num-experts {m.experts}",
        f"--moe-router-topk {m.top_k}",
        f"--moe-ffn-hidden-size {m.expert_ffn_hidden}",
        "--moe-grouped-gemm",
        *dispatch(launch),
        "--moe-permute-fusion",
        "--moe-router-dtype fp32",
        *router(launch),
    ]
    if m.latent:
        out.append(f"--moe-latent-size {m.latent}")
    if m.shared_gate:
        out.append("--moe-shared-expert-gate")
    if m.moe_layers < m.layers and not core.stacked(layers_of(m.pattern)):
        out.append(f"--moe-layer-freq {sh(core.runs_of(core.moe_layers(m)))}")
    if m.shared_ffn_hidden:
        out.append(f"--moe-shared-expert-intermediate-size {m.shared_ffn_hidden}")
    return out


def dispatch(launch: LaunchPlan) -> list[str]:
    """How tokens travel to experts and back."""
    does = launch.does
    deep = core.dispatcher(launch)
    captured = core.graphs(launch)
    if deep:
        out = ["--moe-token-dispatcher-type flex", f"--moe-flex-dispatcher-backend {deep}"]
    else:
        out = [f"--moe-token-dispatcher-type {core.plain_dispatcher(launch)}"]
    if does.capacity_factor > 0:
        out.append(f"--moe-expert-capacity-factor {does.capacity_factor:g}")
        if deep != "deepep":
            out.append("--moe-pad-expert-input-to-capacity")
    if launch.routes_at_random:
        out.append(launch.framework.forces_even_routing)
    if core.overlaps_exchange(launch):
        out.append("--overlap-moe-expert-parallel-comm")
        if captured != "layers":
            out.append("--delay-wgrad-compute")
    if captured == "whole":
        out += [
            "--moe-pad-experts-for-cuda-graph-inference",
            "--moe-paged-stash",
            "--moe-expert-rank-capacity-factor 1.5",
            "--moe-paged-stash-buffer-size-factor-cuda 1.2",
            "--moe-paged-stash-buffer-size-factor-cpu 1.0",
        ]
    return out


def router(launch: LaunchPlan) -> list[str]:
    """The router's scores and how its load is balanced."""
    m = launch.model
    if m.router_buffers:
        return [
            "--moe-router-score-function sigmoid",
            "--moe-router-enable-expert-bias",
            "--moe-router-bias-update-rate 1e-3",
            "--moe-router-load-balancing-type seq_aux_loss",
            "--moe-aux-loss-coeff 1e-4",
        ]
    return ["--moe-router-load-balancing-type aux_loss", "--moe-aux-loss-coeff 1e-3"]


def further_tokens(launch: LaunchPlan) -> list[str]:
    """Modules that predict further tokens."""
    m = launch.model
    out = []
    if m.mtp_layers and not core.stacked(layers_of(m.pattern)):
        out.append(f"--mtp-num-layers {core.further_modules(m)}")
    if m.mtp_layers and m.mtp_repeats > 1:
        out.append("--mtp-use-repeated-layer")
    return out


def degrees(launch: LaunchPlan) -> list[str]:
    """Degrees of parallelism and the batch."""
    p = launch.plan
    out = [
        f"--tensor-model-parallel-size {p.tp}",
        f"--pipeline-model-parallel-size {p.pp}",
        f"--context-parallel-size {p.cp}",
        f"--micro-batch-size {p.micro_batch}",
        f"--global-batch-size {launch.phase.global_batch}",
    ]
    if p.sp:
        out.append("--sequence-parallel")
    if p.cp > 1:
        out.append(f"--cp-comm-type {core.CP[p.cp_type]}")
    if launch.model.is_moe:
        out += [f"--expert-model-parallel-size {p.ep}", f"--expert-tensor-parallel-size {p.etp}"]
    return out


def stages(launch: LaunchPlan) -> list[str]:
    """Layers of the stages; a hybrid model has them in its pattern."""
    p = launch.plan
    if core.stacked(layers_of(launch.model.pattern)):
        return []
    if p.pp > 1 and core.uneven(launch):
        return [f"--pipeline-model-parallel-layout {sh(core.layout(launch))}"]
    if p.vpp > 1:
        return [f"--num-virtual-stages-per-pipeline-rank {p.vpp}"]
    return []


def low_memory_states(launch: LaunchPlan) -> bool:
    """Whether states are in 16 bit or on the host: the distributed optimizer's, of one rank too."""
    return launch.phase.optimizer == "adamw-bf16" or launch.plan.offload == Offload.OPTIMIZER


def sharding(launch: LaunchPlan) -> list[str]:
    """What data-parallel ranks share, and on which of several sites."""
    p = launch.plan
    out = []
    if p.sharding in core.FSDP_STRATEGY:
        out += [
            "--use-megatron-fsdp",
            f"--data-parallel-sharding-strategy {core.FSDP_STRATEGY[p.sharding]}",
            "--use-distributed-optimizer",
            "--no-gradient-accumulation-fusion",
        ]
    elif p.sharding == Sharding.ZERO1:
        out += ["--use-distributed-optimizer", "--overlap-grad-reduce", "--overlap-param-gather"]
        if launch.sync:
            out.append(f"--num-distributed-optimizer-instances {launch.cluster.sites}")
    elif low_memory_states(launch):
        out.append("--use-distributed-optimizer")
    if launch.sync and p.pp > 1:
        out.append("--use-tp-pp-dp-mapping")
    return out


def kernels(launch: LaunchPlan) -> list[str]:
    """Products that overlap their collectives, and captured graphs."""
    out = []
    if core.overlaps_tensor_products(launch):
        out += ["--tp-comm-overlap", "--tp-comm-bootstrap-backend nccl"]
    captured = core.graphs(launch)
    if captured == "whole":
        out.append("--cuda-graph-impl full_iteration")
    if captured == "layers":
        out += [
            "--cuda-graph-impl transformer_engine",
            f"--cuda-graph-modules {' '.join(core.captured_modules(launch))}",
        ]
    if captured:
        out += ["--te-rng-tracker", "--no-check-for-nan-in-loss-and-grad"]
    return out


def recompute(launch: LaunchPlan) -> list[str]:
    """What the backward pass computes again."""
    if launch.plan.recompute == Recompute.FULL:
        method, layers = core.full_recompute(launch)
        return [
            "--recompute-granularity full",
            f"--recompute-method {method}",
            f"--recompute-num-layers {layers}",
        ]
    if launch.plan.recompute == Recompute.SELECTIVE:
        modules = " ".join(core.recompute_modules(launch))
        return ["--recompute-granularity selective", f"--recompute-modules {modules}"]
    return []


def formats(launch: LaunchPlan) -> list[str]:
    """Offload and number formats of products, parameters and states."""
    p = launch.plan
    job = launch.phase
    out = []
    if p.offload == Offload.OPTIMIZER:
        out += ["--optimizer-cpu-offload", "--optimizer-offload-fraction 1.0"]
    if job.precision != Precision.FP32:
        out.append("--fp16" if job.precision == Precision.FP16 else "--bf16")
        if core.narrow(launch):
            out.append("--grad-reduce-in-bf16")
    if job.precision in FP8_RECIPES:
        whole = job.precision in (Precision.FP8_BLOCK, Precision.MXFP8)
        out += [
            f"--fp8-format {'e4m3' if whole else 'hybrid'}",
            f"--fp8-recipe {FP8_RECIPES[job.precision]}",
        ]
        if core.gathers_low(launch):
            out.append("--fp8-param-gather")
    elif job.precision == Precision.NVFP4:
        out.append("--fp4-format e2m1")
    first, last = core.kept_layers(launch)
    if first or last:
        out += [
            "--first-last-layers-bf16",
            f"--num-layers-at-start-in-bf16 {first}",
            f"--num-layers-at-end-in-bf16 {last}",
        ]
    if low_memory_states(launch):
        out.append("--use-precision-aware-optimizer")
    if job.optimizer == "adamw-bf16":
        out += ["--exp-avg-dtype bf16", "--exp-avg-sq-dtype bf16"]
    return out


def optimizer(launch: LaunchPlan, plan: Schedule) -> list[str]:
    """The optimizer and its schedule."""
    name = launch.phase.optimizer
    return [
        f"--optimizer {name if name in ('sgd', 'muon') else 'adam'}",
        f"--train-iters {plan.steps}",
        f"--lr {plan.lr:g}",
        f"--min-lr {plan.lr / 10:g}",
        "--lr-decay-style cosine",
        f"--lr-warmup-iters {plan.warm_up}",
        "--adam-beta1 0.9",
        "--adam-beta2 0.95",
    ]


def regularisation() -> list[str]:
    """What a design does not say of training: the usual."""
    return [
        f"--weight-decay {WEIGHT_DECAY}",
        "--clip-grad 1.0",
        "--init-method-std 0.02",
        f"--seed {SEED}",
        "--attention-dropout 0.0",
        "--hidden-dropout 0.0",
        "--cross-entropy-loss-fusion",
        "--manual-gc",
        "--manual-gc-interval 100",
    ]


def checkpoints(launch: LaunchPlan) -> list[str]:
    """Saves in RUN_DIR, and copies near the devices."""
    fsdp = launch.plan.sharding in core.FSDP_STRATEGY
    out = [
        f"--save-interval {launch.save_steps}",
        f"--ckpt-format {'fsdp_dtensor' if fsdp else 'torch_dist'}",
    ]
    if len(launch.tiers) > 1 and not fsdp:
        out += [
            "--non-persistent-ckpt-type local",
            f"--non-persistent-save-interval {launch.near_save_steps}",
            f"--non-persistent-local-ckpt-dir /dev/shm/{launch.slug}",
        ]
        if "L1" in [tier["tier"] for tier in launch.tiers]:
            out += [
                "--replication",
                f"--replication-jump {launch.per_node}",
                "--replication-factor 2",
            ]
    return [*out, "--async-save", "--use-persistent-ckpt-worker"]


def watching(launch: LaunchPlan, plan: Schedule) -> list[str]:
    """Signals, time-outs and logs. Nothing is evaluated, but training.py divides by the interval
    before it looks."""
    return [
        "--exit-signal-handler",
        f"--distributed-timeout-minutes {launch.first_hang_s // 60}",
        f"--distributed-timeout-seconds-after-init {launch.hang_s}",
        "--log-interval 10",
        "--log-throughput",
        "--log-progress",
        "--log-params-norm",
        "--log-straggler",
        "--straggler-minmax-count 4",
        "--log-memory-to-tensorboard",
        "--eval-iters 0",
        f"--eval-interval {plan.steps}",
    ]
