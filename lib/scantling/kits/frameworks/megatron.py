"""Megatron-LM (megatron-core 0.19): command-line arguments of pretrain_gpt.py, one flag a line."""

from __future__ import annotations

from ...base.units import DAY_S
from ...catalogue.families import family
from ..env import Var
from ..framework import framework
from ..quote import sh
from ..record import NORM_EPSILON, SEED, Gap, rotary_base

FP8 = {"fp8": "delayed", "fp8-current": "tensorwise", "fp8-block": "blockwise", "mxfp8": "mxfp8"}
CP = {"ring": "p2p", "all-gather": "all_gather", "ulysses": "a2a"}
ZERO = {"zero2": "optim_grads", "zero3": "optim_grads_params"}


def gaps(launch):
    """What of the model and plan has no flag."""
    p, m, out = launch.plan, launch.model, []
    if not launch.transformer_engine and p["sp"]:
        out.append(
            Gap(
                "sp",
                True,
                (
                    "without Transformer Engine, which begins with Ampere, norms are "
                    "torch's and see the whole sequence"
                ),
            )
        )
    if not launch.transformer_engine and (m.is_moe or m.attention == "mla" or p["cp"] > 1):
        out.append(
            Gap(
                "cluster.accelerator",
                launch.cluster.accelerator.name,
                (
                    "grouped experts, latent attention and context parallelism need "
                    "Transformer Engine, which begins with Ampere"
                ),
            )
        )
    if p["sharding"] in ZERO and p["pp"] > 1 and p["vpp"] > 1:
        out.append(Gap("sharding", p["sharding"], "Megatron-FSDP does not run interleaved chunks"))
    if p["sharding"] in ZERO and p["etp"] != 1 and m.is_moe:
        out.append(Gap("etp", p["etp"], "not with Megatron-FSDP"))
    if p["vpp"] > 1 and (p["grad_accum"] < p["pp"] or 0 < p["grad_accum"] % p["pp"]):
        out.append(
            Gap(
                "vpp",
                p["vpp"],
                (
                    f"Megatron's interleaved schedule wants micro-batches in whole groups of "
                    f"pp: {p['grad_accum']} on {p['pp']} stages"
                ),
            )
        )
    if not p["sp"] and p["tp"] > 1 and m.is_moe:
        out.append(
            Gap(
                "sp",
                False,
                "Megatron demands sequence parallelism for experts under tensor parallelism",
            )
        )
    if launch.phase.precision == "fp32" and p["pp"] > 1:
        out.append(
            Gap(
                "precision",
                "fp32",
                "pipeline sends take 16-bit types by default",
                "--attention-softmax-in-fp32 and fp32 parameters are kept",
            )
        )
    if m.relative_positions or m.sinks or m.embedding_norm:
        out.append(
            Gap(
                "model",
                m.name,
                (
                    "positions relative to the query, attention sinks or a norm after the "
                    "embedding have no flag"
                ),
                "left out: the parameter count differs",
                "none counted",
            )
        )
    return out


def adjust(pins, own, outside):
    """Pins of a nearest plan: no interleaving where that is what Megatron cannot run."""
    if "vpp" in outside or "schedule" in outside:
        pins = {**pins, "vpp": 1, "schedule": "1f1b"}
    return {**pins, "sp": not own.plan["sp"]} if "sp" in outside and pins.get("tp", 1) > 1 else pins


def chunks(launch) -> list[int]:
    """Layers of every virtual stage, in the order in which a token meets them."""
    p = launch.plan
    n, layers = p["pp"] * p["vpp"], launch.model.layers
    if p["vpp"] == 1:
        return list(launch.stages)
    if layers % n == 0:
        return [layers // n] * n
    if (layers + 2) % n == 0 and (layers + 2) // n > 1:
        each = (layers + 2) // n
        return [each - 1, *[each] * (n - 2), each - 1]
    small, more = divmod(layers, n)
    return [small + (1 if 0 < i <= more else 0) for i in range(n)]


def layout(launch) -> str | None:
    """`--pipeline-model-parallel-layout` where stages are uneven, None where Megatron splits by
    itself."""
    parts = chunks(launch)
    if len(set(parts)) == 1 and not (launch.model.mtp_layers and launch.plan["pp"] > 1):
        return None
    text = ["t" * n for n in parts]
    text[0] = "E" + text[0]
    text[-1] += "m" * launch.model.mtp_layers + "L"
    return "|".join(text)


def model_arguments(launch) -> list[tuple]:
    """The model's dimensions."""
    m = launch.model
    out = [
        ("--num-layers", m.layers),
        ("--hidden-size", m.hidden),
        ("--ffn-hidden-size", m.ffn_hidden or m.expert_ffn_hidden),
        ("--num-attention-heads", m.heads),
        ("--seq-length", launch.phase.seq_len),
        ("--max-position-embeddings", max(m.position_rows, launch.phase.seq_len)),
        ("--tokenizer-type", "NullTokenizer"),
        ("--vocab-size", m.vocab),
        ("--make-vocab-size-divisible-by", 1),
        ("--normalization", "LayerNorm" if m.norm_bias else "RMSNorm"),
        ("--norm-epsilon", f"{NORM_EPSILON:g}"),
        *(
            [("--position-embedding-type", "learned_absolute")]
            if m.position_rows
            else [("--position-embedding-type", "rope"), ("--rotary-base", rotary_base(m))]
        ),
    ]
    out += (
        [("--transformer-impl", "local"), ("--no-persist-layer-norm",)]
        if not launch.transformer_engine
        else []
    )
    if m.attention == "mla":
        out += [
            ("--multi-latent-attention",),
            ("--kv-lora-rank", m.kv_lora),
            ("--qk-head-dim", m.qk_nope),
            ("--qk-pos-emb-head-dim", m.qk_rope),
            ("--v-head-dim", m.v_head_dim),
        ]
        out += [("--rope-type", "rope"), ("--no-rope-fusion",)] + (
            [("--q-lora-rank", m.q_lora)] if m.q_lora else []
        )
    else:
        out += [("--kv-channels", m.head_dim)]
        out += (
            [("--group-query-attention",), ("--num-query-groups", m.kv_heads)]
            if m.kv_heads != m.heads
            else []
        )
    out += {
        "swiglu": [("--swiglu",)],
        "geglu": [("--geglu",)],
        "squared-relu": [("--squared-relu",)],
    }.get(m.mlp, [])
    out += [] if m.tied_embeddings else [("--untie-embeddings-and-output-weights",)]
    out += [] if m.mlp_bias or m.out_bias else [("--disable-bias-linear",)]
    out += [("--add-qkv-bias",)] if m.qkv_bias and not (m.mlp_bias or m.out_bias) else []
    out += [("--qk-layernorm",)] if m.qk_norm else []
    if m.window and m.windowed_layers:
        out += [("--window-size", f"{m.window},0")]
        out += (
            [
                (
                    "--window-attn-skip-freq",
                    max(2, round(m.layers / max(m.layers - m.windowed_layers, 1))),
                )
            ]
            if m.windowed_layers < m.layers
            else []
        )
    if m.is_moe:
        dense = m.layers - m.moe_layers
        pattern = (
            [1] * m.layers
            if not dense
            else [0] * dense + [1] * m.moe_layers
            if m.moe_layout == "dense-first"
            else [
                1 if i % (m.layers // m.moe_layers) == m.layers // m.moe_layers - 1 else 0
                for i in range(m.layers)
            ]
        )
        out += [
            ("--num-experts", m.experts),
            ("--moe-router-topk", m.top_k),
            ("--moe-ffn-hidden-size", m.expert_ffn_hidden),
            ("--moe-grouped-gemm",),
            ("--moe-token-dispatcher-type", "alltoall"),
            ("--moe-permute-fusion",),
            ("--moe-router-dtype", "fp32"),
        ]
        out += (
            [
                ("--moe-router-score-function", "sigmoid"),
                ("--moe-router-enable-expert-bias",),
                ("--moe-router-bias-update-rate", "1e-3"),
                ("--moe-router-load-balancing-type", "seq_aux_loss"),
                ("--moe-aux-loss-coeff", "1e-4"),
            ]
            if m.router_buffers
            else [
                ("--moe-router-load-balancing-type", "aux_loss"),
                ("--moe-aux-loss-coeff", "1e-3"),
            ]
        )
        out += [("--moe-layer-freq", f"({'+'.join(_runs(pattern))})")] if dense else []
        out += (
            [("--moe-shared-expert-intermediate-size", m.shared_ffn_hidden)]
            if m.shared_ffn_hidden
            else []
        )
    return out + ([("--mtp-num-layers", m.mtp_layers)] if m.mtp_layers else [])


def _runs(pattern):
    out, i = [], 0
    while i < len(pattern):
        j = next((k for k in range(i, len(pattern)) if pattern[k] != pattern[i]), len(pattern))
        out.append(f"[{pattern[i]}]*{j - i}")
        i = j
    return out


def plan_arguments(launch) -> list[tuple]:
    """The parallel plan, batch, precision and optimizer."""
    p, m, job = launch.plan, launch.model, launch.phase
    out = [
        ("--tensor-model-parallel-size", p["tp"]),
        ("--pipeline-model-parallel-size", p["pp"]),
        ("--context-parallel-size", p["cp"]),
        ("--micro-batch-size", p["micro_batch"]),
        ("--global-batch-size", job.global_batch),
    ]
    out += [("--sequence-parallel",)] if p["sp"] else []
    out += [("--cp-comm-type", CP[p["cp_type"]])] if p["cp"] > 1 else []
    if m.is_moe:
        out += [
            ("--expert-model-parallel-size", p["ep"]),
            ("--expert-tensor-parallel-size", p["etp"]),
        ]
    text = layout(launch)
    if p["pp"] > 1 and text:
        out += [("--pipeline-model-parallel-layout", text)]
    elif p["vpp"] > 1:
        out += [("--num-virtual-stages-per-pipeline-rank", p["vpp"])]
    fsdp = p["sharding"] in ZERO
    if fsdp:
        out += [
            ("--use-megatron-fsdp",),
            ("--data-parallel-sharding-strategy", ZERO[p["sharding"]]),
            ("--use-distributed-optimizer",),
            ("--no-gradient-accumulation-fusion",),
        ]
    elif p["sharding"] == "zero1":
        out += [
            ("--use-distributed-optimizer",),
            ("--overlap-grad-reduce",),
            ("--overlap-param-gather",),
        ]
    if p["recompute"] == "full":
        each = -(-m.layers // (p["pp"] * p["vpp"]))
        some = -(-p["recompute_layers"] // p["vpp"])
        out += [
            ("--recompute-granularity", "full"),
            *(
                [("--recompute-method", "uniform"), ("--recompute-num-layers", 1)]
                if some >= each
                else [("--recompute-method", "block"), ("--recompute-num-layers", some)]
            ),
        ]
    elif p["recompute"] == "selective":
        out += [("--recompute-granularity", "selective"), ("--recompute-modules", "core_attn")]
    out += (
        [("--optimizer-cpu-offload",), ("--optimizer-offload-fraction", "1.0")]
        if p["offload"] == "optimizer"
        else []
    )
    out += (
        [(f"--{job.precision}",)]
        if job.precision in ("bf16", "fp16")
        else []
        if job.precision == "fp32"
        else [("--bf16",)]
    )
    if job.precision in FP8:
        out += [
            ("--fp8-format", "e4m3" if job.precision in ("fp8-block", "mxfp8") else "hybrid"),
            ("--fp8-recipe", FP8[job.precision]),
        ]
    out += [("--fp4-format", "e2m1")] if job.precision == "nvfp4" else []
    offloaded = p["offload"] == "optimizer"
    if job.optimizer == "adamw-bf16" or offloaded:
        out += [("--use-precision-aware-optimizer",)]
    out += (
        [("--exp-avg-dtype", "bf16"), ("--exp-avg-sq-dtype", "bf16")]
        if job.optimizer == "adamw-bf16"
        else []
    )
    return out + [("--optimizer", {"sgd": "sgd", "muon": "muon"}.get(job.optimizer, "adam"))]


def run_arguments(launch, lr: float) -> list[tuple]:
    """Schedule, saves, watch. Paths are the launcher's: they are added in launch.sh."""
    steps = launch.steps or 1_000_000
    fsdp = launch.plan["sharding"] in ZERO
    return [
        ("--train-iters", steps),
        ("--lr", f"{lr:g}"),
        ("--min-lr", f"{lr / 10:g}"),
        ("--lr-decay-style", "cosine"),
        ("--lr-warmup-iters", min(2000, steps // 20)),
        ("--adam-beta1", "0.9"),
        ("--adam-beta2", "0.95"),
        ("--weight-decay", "0.1"),
        ("--clip-grad", "1.0"),
        ("--init-method-std", "0.02"),
        ("--seed", SEED),
        ("--attention-dropout", "0.0"),
        ("--hidden-dropout", "0.0"),
        ("--cross-entropy-loss-fusion",),
        ("--manual-gc",),
        ("--manual-gc-interval", 100),
        ("--save-interval", launch.save_steps),
        ("--save-retain-interval", launch.save_steps * days_steps(launch)),
        ("--ckpt-format", "fsdp_dtensor" if fsdp else "torch_dist"),
        *([] if fsdp else [("--async-save",), ("--use-persistent-ckpt-worker",)]),
        ("--exit-signal-handler",),
        ("--distributed-timeout-minutes", max(10, launch.lead_s // 60)),
        ("--log-interval", 10),
        ("--log-throughput",),
        ("--log-progress",),
        ("--log-params-norm",),
        ("--log-straggler",),
        ("--straggler-minmax-count", 4),
        ("--log-memory-to-tensorboard",),
        ("--eval-iters", 0),
    ]


def days_steps(launch) -> int:
    """Checkpoints between those that stay for good: about a day."""
    return max(1, round(DAY_S / (launch.save_steps * launch.step_s)))


def notes(launch) -> list[str]:
    """What no field of the plan says and the arguments had to choose."""
    m = launch.model
    out = [
        (
            f"Rotary positions have base {rotary_base(m):,} and norms {NORM_EPSILON:g}, in "
            f"every kit: set the model's own."
        ),
        "Garbage is collected by hand every 100 steps, so that no rank pauses alone.",
    ]
    if m.is_moe and m.router_buffers:
        out.append(
            "The router scores by sigmoid and balances by a bias on each expert, as the "
            "model's files have it; limits by group and the scale of the weights are "
            "not in the design "
            "(DeepSeek-V3 itself: --moe-router-num-groups 8 --moe-router-group-topk 4 "
            "--moe-router-topk-scaling-factor 2.5)."
        )
    elif m.is_moe:
        out.append("The router is softmax with an auxiliary loss of 1e-3: set the model's own.")
    if m.is_moe and launch.plan["ep"] > launch.cluster.scale_up_domain:
        out.append(
            f"Experts lie over {launch.plan['ep']} devices, beyond the "
            f"{launch.cluster.scale_up_domain} that fast links join: where DeepEP is "
            f"installed, --moe-token-dispatcher-type flex --moe-enable-deepep "
            "sends each token once a node; measure it against alltoall in the first hour."
        )
    if launch.phase.precision in FP8:
        out.append(
            "Attention, router, norms and the output head stay in bf16; "
            "--first-last-layers-bf16 keeps one layer at each end so too."
        )
    return out


def arguments(launch, lr: float) -> list[tuple]:
    """Every flag, in groups."""
    return model_arguments(launch) + plan_arguments(launch) + run_arguments(launch, lr)


def environment(launch):
    """Megatron's own demand on the launch order of kernels."""
    p = launch.plan
    ordered = family(launch.cluster.accelerator.family).ordered_launch
    if not ordered or p["sharding"] in ZERO:
        return ()
    if p["tp"] > 1 or p["cp"] > 1:
        return (
            Var(
                "CUDA_DEVICE_MAX_CONNECTIONS",
                "1",
                (
                    "Megatron demands it below Blackwell when tp or cp is above one: "
                    "collectives are issued before the products they hide under"
                ),
            ),
        )
    return ()


def files(launch, kit) -> dict[str, str]:
    """megatron.args."""
    return {
        "megatron.args": "".join(
            " ".join(sh(w) for w in row) + "\n" for row in arguments(launch, kit["train"]["lr"])
        )
    }


def command(launch) -> str:
    """What torchrun starts."""
    return (
        '"${MEGATRON_LM:?the folder of a Megatron-LM checkout}/pretrain_gpt.py" '
        '"${ARGS[@]}" --save "$RUN_DIR/checkpoints" --load "$RUN_DIR/checkpoints" '
        '--tensorboard-dir "$RUN_DIR/tensorboard" "${DATA_ARGS[@]}"'
    )


def prepare(launch) -> str:
    """Shell lines before the command."""
    return (
        'mapfile -d "" -t ARGS < <(xargs printf \'%s\\0\' < "$HERE/megatron.args")\n'
        "DATA_ARGS=(--mock-data)     # made-up tokens until DATA is set\n"
        'if [ -f "${DATA:-}" ]; then DATA_ARGS=(--data-args-path "$DATA"); elif [ -n '
        '"${DATA:-}" ]; then DATA_ARGS=(--data-path "$DATA"); fi\n'
        'if [ -n "${DATA:-}" ]; then DATA_ARGS+=(--split "99,1,0" --data-cache-path '
        '"$RUN_DIR/data-cache"); fi\n'
        'if [ -n "${TOKENIZER:-}" ]; then DATA_ARGS+=(--tokenizer-type '
        'HuggingFaceTokenizer --tokenizer-model "$TOKENIZER"); fi'
    )


FRAMEWORK = framework(
    "megatron",
    files=files,
    command=command,
    gaps=gaps,
    adjust=adjust,
    prepare=prepare,
    notes=notes,
    environment=environment,
)
