"""The sections of the design file, each a frozen pydantic model: what may stand there, in which
unit, within which bounds."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from ..base.errors import DesignError
from ..catalogue import optimizers, words
from .fields import Like, Section, about, amount, count, flag, share, text, word

TAGS = ("id:", "mapping:")  # branches of a union, dropped from error paths


def _branch(value):
    return TAGS[0] if isinstance(value, str) else TAGS[1]


def either(mapping):
    """An id of the catalogue, or a mapping."""
    return Annotated[
        Annotated[str, text(), Tag(TAGS[0])] | Annotated[mapping, Tag(TAGS[1])],
        Discriminator(_branch),
    ]


Ref = either(Like)


class ModelSpec(Section):
    """A model by catalogue row and changes, by a Hugging Face config, by size alone, or by its
    shape."""

    like: Annotated[str | None, text()] = about(
        "catalogue model to start from; other fields replace its own", example="llama-3.1-70b"
    )
    hf_config: Annotated[str | None, text(1000)] = about(
        "path of a Hugging Face config.json, relative to this file", example="config.json"
    )
    name: Annotated[str | None, text()] = about("name to show")
    size: Annotated[float | None, amount(1e3, 1e17)] = about(
        "parameters in all, the rest of the shape is derived", "parameters", 175e9
    )
    active: Annotated[float | None, amount(1e3, 1e17)] = about(
        "parameters used by one token", "parameters", 37e9
    )
    moe: Annotated[bool | None, flag()] = about(
        "mixture of experts, when the size alone is given", example=True
    )
    layers: Annotated[int | None, count(1, 10_000)] = about("transformer layers", "layers", 96)
    hidden: Annotated[int | None, count(1, 10**6)] = about(
        "width of the residual stream", "elements", 8192
    )
    ffn_hidden: Annotated[int | None, count(0, 10**7)] = about(
        "width of a dense feed-forward layer", "elements", 28672
    )
    heads: Annotated[int | None, count(1, 10**5)] = about("attention heads", "heads", 64)
    kv_heads: Annotated[int | None, count(1, 10**5)] = about("key and value heads", "heads", 8)
    head_dim: Annotated[int | None, count(1, 10**5)] = about(
        "width of a head; hidden / heads when left out", "elements", 128
    )
    vocab: Annotated[int | None, count(1, 10**8)] = about("vocabulary", "tokens", 128256)
    seq_len: Annotated[int | None, count(1, 10**9)] = about(
        "context that the model is trained with, when the job gives none", "tokens", 8192
    )
    mlp: Annotated[str | None, word(*words.MLPS)] = about(
        "feed-forward kind", example="swiglu", choices=words.MLPS
    )
    attention: Annotated[str | None, word(*words.ATTENTIONS)] = about(
        "attention kind", example="gqa", choices=words.ATTENTIONS
    )
    tied_embeddings: Annotated[bool | None, flag()] = about(
        "output head shares the token table", example=False
    )
    experts: Annotated[int | None, count(0, 10**5)] = about(
        "routed experts of a MoE layer; 0: dense", "experts", 16
    )
    top_k: Annotated[int | None, count(0, 10**5)] = about(
        "routed experts a token visits", "experts", 2
    )
    expert_ffn_hidden: Annotated[int | None, count(0, 10**7)] = about(
        "width of one expert", "elements", 2048
    )
    shared_ffn_hidden: Annotated[int | None, count(0, 10**7)] = about(
        "summed width of the shared experts", "elements", 2048
    )
    moe_layers: Annotated[int | None, count(0, 10_000)] = about("layers that are MoE", "layers", 58)
    mtp_layers: Annotated[int | None, count(0, 100)] = about(
        "multi-token-prediction modules", "layers", 1
    )
    q_lora: Annotated[int | None, count(0, 10**6)] = about(
        "MLA: rank of the query compression", "elements", 1536
    )
    kv_lora: Annotated[int | None, count(0, 10**6)] = about(
        "MLA: rank of the key-value compression", "elements", 512
    )
    qk_nope: Annotated[int | None, count(0, 10**5)] = about(
        "MLA: head width without position", "elements", 128
    )
    qk_rope: Annotated[int | None, count(0, 10**5)] = about(
        "MLA: head width with position", "elements", 64
    )
    v_head_dim: Annotated[int | None, count(0, 10**5)] = about(
        "MLA: value width of a head", "elements", 128
    )
    window: Annotated[int | None, count(0, 10**9)] = about(
        "sliding attention window; 0: full", "tokens", 4096
    )
    windowed_layers: Annotated[int | None, count(0, 10_000)] = about(
        "layers that use the window", "layers", 24
    )

    @model_validator(mode="after")
    def _consistent(self):
        starts = [f for f in ("like", "hf_config", "size") if getattr(self, f) is not None]
        if len(starts) > 1:
            raise DesignError(
                starts[1],
                getattr(self, starts[1]),
                f"one of like, hf_config and size ({starts[0]} is given already)",
                problem="contradicts " + starts[0],
            )
        if not starts:
            for f in ("layers", "hidden", "heads"):
                if getattr(self, f) is None:
                    raise DesignError(
                        f,
                        allowed=(
                            "a catalogue id, like, hf_config, size, or the shape (layers, "
                            "hidden, heads, vocab, …)"
                        ),
                        problem="is missing",
                    )
        h, kv = self.heads, self.kv_heads
        if h and kv and h % kv:
            near = (
                min((d for d in range(1, h + 1) if h % d == 0), key=lambda d: abs(d - kv))
                if h <= 10**5
                else None
            )
            raise DesignError(
                "kv_heads",
                kv,
                f"a divisor of heads {h}",
                near,
                problem=f"does not divide heads {h}",
            )
        if (
            h
            and self.hidden
            and self.head_dim is None
            and self.hidden % h
            and self.attention != "mla"
        ):
            near = min(
                (d for d in range(1, min(self.hidden, 10**5) + 1) if self.hidden % d == 0),
                key=lambda d: abs(d - h),
            )
            raise DesignError(
                "heads",
                h,
                f"a divisor of hidden {self.hidden}, or give head_dim",
                near,
                problem=f"does not divide hidden {self.hidden}",
            )
        for small, large in (
            ("top_k", "experts"),
            ("moe_layers", "layers"),
            ("windowed_layers", "layers"),
            ("active", "size"),
        ):
            s, b = getattr(self, small), getattr(self, large)
            if s is not None and b is not None and s > b:
                raise DesignError(
                    small,
                    s,
                    f"at most {large} {b:g}",
                    f"{b:g}",
                    problem=f"is more than {large} {b:g}",
                )
        if self.moe is False and self.experts:
            raise DesignError(
                "experts", self.experts, "0, or moe: true", 0, problem="contradicts moe: false"
            )
        if not starts and self.experts and not self.top_k:
            raise DesignError(
                "top_k",
                allowed="experts that a token visits, such as 2",
                problem="is missing (experts is given)",
            )
        return self


class ClusterSpec(Section):
    """The machine; what is left out comes from the catalogue row of the accelerator's usual
    node."""

    accelerator: Ref = Field(
        description=(
            "accelerator id (scantling catalogue accelerators), or {like: id, figure: value}"
        ),
        examples=["h100-sxm"],
    )
    devices: Annotated[int, count(1, 10**7)] = Field(
        description="accelerators in all [devices]",
        examples=[16384],
        ge=1,
        json_schema_extra={"unit": "devices"},
    )
    node: Annotated[str | None, text()] = about(
        "node or instance type of the catalogue", example="dgx-h100"
    )
    devices_per_node: Annotated[int | None, count(1, 10**5)] = about(
        "accelerators in one node", "devices", 8
    )
    scale_up_domain: Annotated[int | None, count(1, 10**6)] = about(
        "accelerators joined by the scale-up link", "devices", 8
    )
    scale_out: Ref | None = about(
        "scale-out fabric id (scantling catalogue fabrics)", example="ib-ndr"
    )
    oversubscription: Annotated[float | None, amount(1.0, 1000.0, above=False)] = about(
        "edge to core bandwidth; 1: none", "ratio", 1.0
    )
    nics_per_node: Annotated[int | None, count(1, 10**4)] = about(
        "network ports of a node", "ports", 8
    )
    pod_devices: Annotated[int | None, count(1, 10**7)] = about(
        "devices below one spine at full bandwidth", "devices", 3072
    )
    sites: Annotated[int | None, count(1, 1000)] = about("datacentres", "sites", 1)
    site_gbytes_per_s: Annotated[float | None, amount(0, 1e6)] = about(
        "bandwidth between one site and the others, one direction", "GB/s", 100
    )
    host_memory_gb: Annotated[float | None, amount(0, 1e9, above=False)] = about(
        "memory of a node", "GB", 2048
    )
    nvme_gb: Annotated[float | None, amount(0, 1e9, above=False)] = about(
        "local NVMe of a node", "GB", 30000
    )
    storage: Annotated[str | None, text()] = about(
        "shared file system (scantling catalogue storage)", example="lustre"
    )
    scale_out_gbytes_per_s_per_device: Annotated[float | None, amount(0, 1e6)] = about(
        "network bandwidth of one device, one direction", "GB/s", 50
    )
    in_network_reduction: Annotated[bool | None, flag()] = about(
        "the switches reduce (SHARP and its like)", example=False
    )


class PlanSpec(Section):
    """Pins of the parallel plan; what is left out is searched."""

    tp: Annotated[int | None, count(1, 10**6)] = about("tensor-parallel ways", "ways", 8)
    cp: Annotated[int | None, count(1, 10**6)] = about("context-parallel ways", "ways", 1)
    pp: Annotated[int | None, count(1, 10**4)] = about("pipeline stages", "stages", 16)
    vpp: Annotated[int | None, count(1, 10**4)] = about("virtual chunks per stage", "chunks", 1)
    dp: Annotated[int | None, count(1, 10**7)] = about("data-parallel ways", "ways", 128)
    ep: Annotated[int | None, count(1, 10**6)] = about(
        "expert-parallel ways, inside dp x cp x tp / etp", "ways", 8
    )
    etp: Annotated[int | None, count(1, 10**6)] = about(
        "tensor-parallel ways of an expert", "ways", 1
    )
    sp: Annotated[bool | None, flag()] = about("sequence parallel beside tp", example=True)
    sharding: Annotated[str | None, word(*words.SHARDINGS)] = about(
        "what the data-parallel ranks share out", example="zero1", choices=words.SHARDINGS
    )
    shard_group: Annotated[int | None, count(1, 10**7)] = about(
        "ranks of one shard group (hsdp)", "ways", 64
    )
    schedule: Annotated[str | None, word(*words.SCHEDULES)] = about(
        "pipeline schedule", example="1f1b", choices=words.SCHEDULES
    )
    micro_batch: Annotated[int | None, count(1, 10**6)] = about(
        "sequences in one micro-batch", "sequences", 1
    )
    grad_accum: Annotated[int | None, count(1, 10**7)] = about(
        "micro-batches in one step", "micro-batches", 16
    )
    recompute: Annotated[str | None, word(*words.RECOMPUTES)] = about(
        "activations computed again in the backward", example="none", choices=words.RECOMPUTES
    )
    recompute_layers: Annotated[int | None, count(0, 10_000)] = about(
        "layers recomputed in a stage, where not all", "layers", 2
    )
    layer_split: Annotated[str | None, word(*words.LAYER_SPLITS)] = about(
        "how layers fall on stages", example="balanced", choices=words.LAYER_SPLITS
    )
    cp_type: Annotated[str | None, word(*words.CP_TYPES)] = about(
        "how context parallelism exchanges keys and values", example="ring", choices=words.CP_TYPES
    )
    offload: Annotated[str | None, word(*words.OFFLOADS)] = about(
        "state kept in host memory or NVMe", example="none", choices=words.OFFLOADS
    )
    precision: Annotated[str | None, word(*words.PRECISIONS)] = about(
        "number format of the matrix products", example="bf16", choices=words.PRECISIONS
    )


class PhaseSpec(Section):
    """One stretch of the run with its own tokens, context and batch."""

    tokens: Annotated[float | None, amount(0, 1e18)] = about("tokens trained on", "tokens", 14e12)
    seq_len: Annotated[int | None, count(1, 10**9)] = about(
        "tokens in one sequence", "tokens", 8192
    )
    global_batch: Annotated[int | None, count(1, 10**9)] = about(
        "sequences in one step", "sequences", 2048
    )
    global_batch_tokens: Annotated[float | None, amount(0, 1e15)] = about(
        "tokens in one step, instead of global_batch", "tokens", 16e6
    )
    precision: Annotated[str | None, word(*words.PRECISIONS)] = about(
        "number format of the matrix products", example="bf16", choices=words.PRECISIONS
    )
    optimizer: Annotated[str | None, word(*optimizers())] = about(
        "optimizer, which decides the state per parameter",
        example="adamw",
        choices=tuple(optimizers()),
    )

    @model_validator(mode="after")
    def _one_batch(self):
        if self.global_batch is not None and self.global_batch_tokens is not None:
            raise DesignError(
                "global_batch_tokens",
                self.global_batch_tokens,
                "global_batch (sequences) or global_batch_tokens, not both",
                problem="is given beside global_batch",
            )
        return self


class PlannedPhase(PhaseSpec):
    """A phase of `job.phases`, with pins of its own."""

    name: Annotated[str | None, text()] = about("name to show", example="long context")
    plan: PlanSpec | None = about(
        "pins for this phase, over those of the design", example={"cp": 16}
    )


def _some(value):
    if value is not None and not (isinstance(value, (list, tuple)) and 1 <= len(value) <= 100):
        raise DesignError("", value, "a list of 1 to 100 phases", problem="is not such a list")
    return value


class Job(PhaseSpec):
    """What is trained: one phase, or several."""

    phases: Annotated[tuple[PlannedPhase, ...] | None, BeforeValidator(_some)] = about(
        "phases in order, instead of tokens, seq_len and global_batch here"
    )

    @model_validator(mode="after")
    def _plain_or_phases(self):
        both = self.phases and next(
            (
                f
                for f in ("tokens", "seq_len", "global_batch", "global_batch_tokens")
                if getattr(self, f) is not None
            ),
            None,
        )
        if both:
            raise DesignError(
                both,
                getattr(self, both),
                f"{both} inside each of the phases, or no phases",
                problem="is given beside phases",
            )
        return self


class Constraints(Section):
    """What the run must keep to; a missed one makes the verdict `constraint-missed`."""

    deadline_days: Annotated[float | None, amount(0, 1e6)] = about("longest run", "days", 90)
    budget_usd: Annotated[float | None, amount(0, 1e15)] = about("largest cost", "USD", 1.5e8)
    min_mfu: Annotated[float | None, share()] = about(
        "lowest model FLOP utilisation", "share", 0.35
    )
    max_checkpoint_overhead: Annotated[float | None, share()] = about(
        "largest share of time stalled in saves", "share", 0.05
    )
    min_goodput: Annotated[float | None, share()] = about(
        "lowest productive share of wall time", "share", 0.9
    )
    max_lost_work_s: Annotated[float | None, amount(0, 1e9)] = about(
        "most work lost to one failure", "s", 1800
    )
    max_recovery_s: Annotated[float | None, amount(0, 1e9)] = about(
        "longest time from failure to training", "s", 900
    )
    max_checkpoint_stall_s: Annotated[float | None, amount(0, 1e9, above=False)] = about(
        "longest stall of one save", "s", 1
    )
    survive: Annotated[str | None, word(*words.SURVIVE)] = about(
        "largest failure that must not lose the run", example="node", choices=words.SURVIVE
    )
    max_power_mw: Annotated[float | None, amount(0, 1e6)] = about(
        "largest facility power", "MW", 30
    )


class Reliability(Section):
    """How often the machine fails and what a failure and a save cost."""

    preset: Annotated[str | None, text()] = about(
        "fleet whose figures stand in for what is left out", example="llama3"
    )
    failures_per_1000_node_days: Annotated[float | None, amount(0, 1e6, above=False)] = about(
        "failures that stop the job", "per 1,000 node-days", 3.8
    )
    checkpoint_stall_s: Annotated[float | None, amount(0, 1e9, above=False)] = about(
        "training stalls this long for a save", "s", 10
    )
    checkpoint_durable_s: Annotated[float | None, amount(0, 1e9, above=False)] = about(
        "from the end of the stall until the save is safe", "s", 120
    )
    restart_s: Annotated[float | None, amount(0, 1e9, above=False)] = about(
        "from the new allocation to the first step", "s", 300
    )
    detect_s: Annotated[float | None, amount(0, 1e9, above=False)] = about(
        "until a failure is noticed", "s", 120
    )
    repair_s: Annotated[float | None, amount(0, 1e9, above=False)] = about(
        "until a failed node is back", "s", 14400
    )
    spares: Annotated[int | None, count(0, 10**6)] = about(
        "nodes kept ready beyond the cluster's devices, paid for", "nodes", 16
    )


class Prices(Section):
    """What time and energy cost."""

    usd_per_device_hour: Annotated[float | None, amount(0, 1e6, above=False)] = about(
        "price of one device for an hour", "USD/h", 2.5
    )
    pue: Annotated[float | None, amount(1.0, 10.0, above=False)] = about(
        "facility power over machine power", "ratio", 1.2
    )
    usd_per_kwh: Annotated[float | None, amount(0, 1000, above=False)] = about(
        "price of energy", "USD/kWh", 0.08
    )


class Measured(Section):
    """What was measured; it replaces what the kit computes and is marked wherever it shows."""

    step_s: Annotated[float | None, amount(0, 1e9)] = about("time of one step", "s", 40.1)
    mfu: Annotated[float | None, share(1e-4, 0.95)] = about("model FLOP utilisation", "share", 0.41)
    tokens_per_s_per_device: Annotated[float | None, amount(0, 1e12)] = about(
        "throughput of one device", "tokens/s", 430.0
    )
    memory_gb: Annotated[float | None, amount(0, 1e6)] = about(
        "peak memory of the fullest device", "GB", 71.0
    )
    goodput: Annotated[float | None, share(1e-4)] = about(
        "productive share of wall time", "share", 0.93
    )

    @model_validator(mode="after")
    def _one_speed(self):
        given = [
            f for f in ("step_s", "mfu", "tokens_per_s_per_device") if getattr(self, f) is not None
        ]
        if len(given) > 1:
            raise DesignError(
                given[1],
                getattr(self, given[1]),
                "one of step_s, mfu and tokens_per_s_per_device: each gives the others",
                problem=f"is given beside {given[0]}",
            )
        return self


def model_field() -> Any:
    """The type of the `model` field: a catalogue id or a mapping."""
    return either(ModelSpec)
