"""671B for the price of 37B? A sparse model on 2,048 devices: what the experts save, what they
send, and what the saving costs."""

from functools import cached_property

from scantling import Assessment, assess
from scantling.base import show
from scantling.catalogue.models.shape import Flops, Params, flops_per_token, parameters
from scantling.design.design import Design
from scantling.physics import pipeline, stragglers
from scantling.physics.memory.peak import memory_by_stage

from .. import measured
from ..measured import Run, Total
from ..question import (
    FLEET,
    SENT,
    Choice,
    Explain,
    Number,
    Option,
    Plan,
    PlanSlip,
    Point,
    Slip,
    Walkthrough,
)
from ..texts import small_size
from .shared_sums import DesignFacts, axis_traffic, fastest, layers_s, run_usd, swept


class Facts(DesignFacts):
    """The numbers of the book, each worked out when it is first asked for, with its unit."""

    devices = 2048  # devices
    tokens = 1.48e13  # tokens
    seq_len = 4096  # tokens
    global_batch = 15_360  # sequences
    pp = 16  # stages
    ep = 64  # devices
    limit = 4  # nodes
    price = 2.0  # USD a device-hour
    skew = 1.5  # ratio

    @cached_property
    def design(self) -> Design:
        return Design.from_data(
            {
                "name": "DeepSeek-V3 on 2,048 H800",
                "model": "deepseek-v3",
                "cluster": {
                    "accelerator": "h800-sxm",
                    "devices": self.devices,
                    "devices_per_node": 8,
                    "scale_out": "ib-ndr",
                },
                "job": {
                    "tokens": self.tokens,
                    "seq_len": self.seq_len,
                    "global_batch": self.global_batch,
                    "precision": "fp8-block",
                },
                "prices": {"usd_per_device_hour": self.price},
            }
        )

    @cached_property
    def run_design(self) -> Design:
        """The plan of the published run: on its own software, on no software in particular, under
        1F1B."""
        return self.design.change(
            stack="hai-llm",
            plan={
                "tp": 1,
                "pp": self.pp,
                "cp": 1,
                "ep": self.ep,
                "etp": 1,
                "sharding": "zero1",
                "schedule": "dualpipe",
            },
        )

    @cached_property
    def generic_design(self) -> Design:
        return self.design.change(
            {
                "plan": {
                    "tp": 1,
                    "pp": self.pp,
                    "cp": 1,
                    "ep": self.ep,
                    "etp": 1,
                    "sharding": "zero1",
                    "schedule": "dualpipe",
                }
            }
        )

    @cached_property
    def plain_design(self) -> Design:
        return self.run_design.change({"plan.schedule": "1f1b"})

    @cached_property
    def active_design(self) -> Design:
        return self.design.change({"model": {"size": 3.7e10}})

    @cached_property
    def total_design(self) -> Design:
        return self.active_design.change({"model.size": 6.71e11})

    @cached_property
    def node_bf16(self) -> Design:
        return self.design.change({"job.precision": "bf16"})

    @cached_property
    def rack_bf16(self) -> Design:
        return Design.from_data(
            {
                "name": "DeepSeek-V3 on 2,048 H800",
                "model": "deepseek-v3",
                "cluster": {
                    "accelerator": "gb200-nvl72",
                    "devices": self.devices,
                    "scale_out": "ib-ndr",
                },
                "job": {
                    "tokens": self.tokens,
                    "seq_len": self.seq_len,
                    "global_batch": self.global_batch,
                    "precision": "bf16",
                },
                "prices": {"usd_per_device_hour": self.price},
            }
        )

    @cached_property
    def run(self) -> Assessment:
        return assess(self.run_design)

    @cached_property
    def run_generic(self) -> Assessment:
        return assess(self.generic_design)

    @cached_property
    def plain(self) -> Assessment:
        return assess(self.plain_design)

    @cached_property
    def dense_active(self) -> Assessment:
        return assess(self.active_design)

    @cached_property
    def dense_total(self) -> Assessment:
        return assess(self.total_design)

    @cached_property
    def published_total(self) -> Total:
        return measured.published("dsv3-params")

    @cached_property
    def published_active(self) -> Total:
        return measured.published("dsv3-active")

    @cached_property
    def published_hours(self) -> Total:
        return measured.published("dsv3-pretrain-hours")

    @cached_property
    def published_usd(self) -> Total:
        return measured.published("dsv3-usd")

    @cached_property
    def published_ratio(self) -> Total:
        return measured.published("dsv3-ratio")

    @cached_property
    def dualpipe_answer(self) -> str:
        """Key of the option that `copies` makes right."""
        return "b" if self.copies == 2 else "a"

    @cached_property
    def total(self) -> float:  # parameters
        return float(self.parts.total)

    @cached_property
    def active(self) -> float:  # parameters
        return float(self.parts.active)

    @cached_property
    def attention_layer(self) -> float:  # parameters
        return float(self.parts.attention // self.model.layers)

    @cached_property
    def shared_layer(self) -> float:  # parameters
        return float(self.parts.shared_experts // self.model.moe_layers)

    @cached_property
    def expert(self) -> float:  # parameters
        return float(self.parts.expert)

    @cached_property
    def moe_layer(self) -> float:
        """Parameters of one layer that a token meets: attention, the shared expert, its eight
        routed ones. [parameters]"""
        return self.attention_layer + self.shared_layer + self.model.top_k * self.expert

    @cached_property
    def sparsity(self) -> float:  # ratio
        return self.total / self.active

    @cached_property
    def ep_least(self) -> float:  # devices
        return self.least_ep()

    @cached_property
    def stage_bytes_ep_1(self) -> float:  # bytes
        return self.stage_bytes(1)

    @cached_property
    def stage_bytes_ep_least(self) -> float:  # bytes
        return self.stage_bytes(self.ep_least)

    @cached_property
    def token_bytes(self) -> float:
        """Over the network per token and layer, forward: dispatch in 8 bit, combine in 16 bit, to
        at most `limit` nodes. [bytes]"""
        return self.limit * self.model.hidden * (1 + 2.0)

    @cached_property
    def token_bytes_unlimited(self) -> float:  # bytes
        return self.model.top_k * self.model.hidden * (1 + 2.0)

    @cached_property
    def compute_token(self) -> float:
        """Seconds per token of a layer's matrix products forward, at the dense fp8 peak. [s]"""
        return 2 * self.moe_layer / self.chip.fp8_flops

    @cached_property
    def ratio(self) -> float:  # ratio
        return self.token_bytes / self.out / self.compute_token

    @cached_property
    def wire_us(self) -> float:  # µs
        return 1000000.0 * self.token_bytes / self.out

    @cached_property
    def compute_us(self) -> float:  # µs
        return 1000000.0 * self.compute_token

    @cached_property
    def skewed(self) -> float:  # share
        return self.expert_share * (self.skew - 1)

    @cached_property
    def rows(self) -> int:
        """Token copies that an average device of the group gets per micro-batch. [count]"""
        return self.seq_len * self.model.top_k

    @cached_property
    def hours(self) -> float:  # device-hours
        return self.tokens / self.measured.tokens_per_s_measured / 3600

    @cached_property
    def usd(self) -> float:  # USD
        return self.hours * self.price

    @cached_property
    def price_ratio(self) -> float:  # ratio
        return run_usd(self.result) / run_usd(self.dense_active)

    @cached_property
    def saving(self) -> float:  # ratio
        return run_usd(self.dense_total) / run_usd(self.result)

    @cached_property
    def node_ep(self) -> int:  # devices
        return fastest(self.node_by_ep)

    @cached_property
    def rack_ep(self) -> int:  # devices
        return fastest(self.rack_by_ep)

    @cached_property
    def parts(self) -> Params:
        return parameters(self.model)

    @cached_property
    def copies(self) -> int:  # copies of the weights
        return int(pipeline.weight_copies("dualpipe"))

    @cached_property
    def deviations(self) -> float:  # ratio
        return float(stragglers.slowest_of(self.ep))

    @cached_property
    def chance(self) -> float:
        """By how much the fullest of `ep` devices exceeds the mean when every token picks at
        random. [share]"""
        return float(self.deviations / self.rows**0.5)

    @cached_property
    def by_tp(self) -> dict[int, Assessment]:
        return swept(self.design, "plan.tp", 1, 2, 4, 8)

    @cached_property
    def measured(self) -> Run:
        return measured.runs("dsv3-pretrain")[0]

    @cached_property
    def kit_ratio(self) -> float:
        """Compute of the layers over their all-to-all, at the rates that the kit believes.
        [ratio]"""
        return float(layers_s(self.plain) / axis_traffic(self.plain, "ep")["time_s"])

    @cached_property
    def run_weights(self) -> float:
        """Weights on a device in the middle of the pipeline. [bytes]"""
        return float(memory_by_stage(self.run.chosen.case)[self.pp // 2]["weights"])

    @cached_property
    def plain_weights(self) -> float:  # bytes
        return float(memory_by_stage(self.plain.chosen.case)[self.pp // 2]["weights"])

    @cached_property
    def token_flops(self) -> Flops:
        return flops_per_token(self.model, self.seq_len)

    @cached_property
    def expert_share(self) -> float:  # share
        return float(self.token_flops.routed_experts / self.token_flops.total)

    @cached_property
    def node_by_ep(self) -> dict[int, Assessment]:
        return swept(self.node_bf16, "plan.ep", 8, 16, 32, 64)

    @cached_property
    def rack_by_ep(self) -> dict[int, Assessment]:
        return swept(self.rack_bf16, "plan.ep", 8, 16, 32, 64)

    @cached_property
    def node_share(self) -> float:  # share
        return self.node_by_ep[64].step_breakdown_s["ep"] / self.node_by_ep[64].step_s

    @cached_property
    def rack_share(self) -> float:  # share
        return self.rack_by_ep[64].step_breakdown_s["ep"] / self.rack_by_ep[64].step_s

    def stage_bytes(self, ep: float, bytes_per_param: float = 6) -> float:
        """Weights and fp32 gradients on a device of an average stage."""
        routed = self.parts.routed_experts
        weights = (self.total - routed) / self.pp + routed / self.pp / ep
        return float(weights * bytes_per_param)

    def least_ep(self, bytes_per_param: float = 6) -> float:
        return next(
            (
                ep
                for ep in (1, 2, 4, 8, 16, 32, 64, 128, 256)
                if self.stage_bytes(ep, bytes_per_param) < self.half
            )
        )

    @cached_property
    def by_ep(self) -> dict[str, dict[int, Assessment]]:
        """{machine: {ep: assessment}}, bf16 on both so that the chips' formats play no part."""
        return {"h800-sxm": self.node_by_ep, "gb200-nvl72": self.rack_by_ep}

    @cached_property
    def rack_answer(self) -> str:
        return "a" if self.rack_share < 0.9 * self.node_share else "b"


# ---------------------------------------------------------------- questions


def total_question(f: Facts) -> Number:
    return Number(
        id="total",
        axis="size",
        level="senior",
        minutes=4,
        ask=(
            "61 layers, hidden 7,168. The first 3 have a dense gated MLP of 18,432; the "
            "other 58 have 256 routed experts of width 2,048 and one shared one, all gated. "
            f"Attention is {show.params(f.attention_layer)} a layer, the vocabulary 129,280, "
            "in and out. How many parameters?"
        ),
        expected=f.total,
        unit="parameters",
        within=1.012,
        manner="params",
        slips=(
            Slip(
                value=float(
                    f.total
                    + 3 * f.parts.routed_experts // f.model.moe_layers
                    + 3 * f.shared_layer
                    - f.parts.mlp_dense
                ),
                says="The first three layers are dense: 58 layers have experts, not 61.",
                within=1.01,
            ),
            Slip(
                value=float(f.total - f.parts.routed_experts / 3),
                says="An expert is gated: three matrices, not two.",
                within=1.02,
            ),
            Slip(
                value=float(f.parts.routed_experts),
                says="Those are the routed experts alone.",
                within=1.005,
            ),
        ),
        hints=(
            "Nearly all of it is in one place.",
            "An expert is `3 · hidden · width`.",
            (
                f"{show.params(f.expert)} an expert, 58 · 257 of them; attention, dense MLP, "
                "embedding and head make the rest."
            ),
        ),
        worked=(
            f"Routed experts {show.params(f.parts.routed_experts)}, shared ones "
            f"{show.params(f.parts.shared_experts)}, attention "
            f"{show.params(f.parts.attention)}, dense MLP {show.params(f.parts.mlp_dense)}, "
            f"embedding and head {show.params(f.parts.embedding)} each: "
            f"{show.params(f.total)}."
        ),
        takeaway=(
            "Nearly everything is routed experts. A sparse model is a large store with a "
            "small engine in front of it."
        ),
    )


def active_question(f: Facts) -> Number:
    return Number(
        id="active",
        axis="size",
        level="senior",
        ask=("A token meets 8 routed experts and the shared one. How many parameters work on it?"),
        expected=f.active,
        unit="parameters",
        within=1.03,
        manner="params",
        slips=(
            Slip(
                value=f.total * 8 / 256,
                says=(
                    "Only the routed experts are thinned out; attention, the shared expert, "
                    "embedding and head work on every token."
                ),
            ),
            Slip(
                value=float(f.active - f.parts.shared_experts),
                says="The shared expert works on every token as well.",
                within=1.02,
            ),
            Slip(value=float(f.active - f.parts.attention), says="Attention is missing."),
        ),
        hints=(
            "Replace 256 by 8.",
            "`total − routed + routed · 8/256`",
            f"{show.params(f.parts.routed_experts)} · 8/256 and the rest whole.",
        ),
        worked=(
            f"{show.params(f.active)}: {show.params(f.parts.routed_experts)} · 8/256, and "
            "everything that is not routed."
        ),
        takeaway=(
            "Active parameters set the FLOP, total parameters the memory. Every statement "
            "about a sparse model needs to say which."
        ),
    )


def active_note(f: Facts) -> str:
    return (
        "`sc.assess(design).params` counts by shape; the extra prediction layer of this model "
        f"({show.params(f.result.mtp_params)}) stands apart, as in the report."
    )


def sparsity_question(f: Facts) -> Number:
    return Number(
        id="sparsity",
        axis="size",
        level="mid",
        minutes=2,
        ask=(
            "By which factor is that less compute per token than a dense model of the same "
            "total, attention scores aside?"
        ),
        expected=f.sparsity,
        unit="times",
        within=1.04,
        slips=(
            Slip(
                value=32.0,
                says=(
                    "256 over 8 holds for the experts alone; attention and the shared expert "
                    "are not thinned out."
                ),
            ),
            Slip(
                value=f.sparsity * 3, says="Forward on one side, forward and backward on the other."
            ),
        ),
        hints=(
            "FLOP follow active parameters.",
            "`6 · total` against `6 · active`",
            f"{show.params(f.total)} / {show.params(f.active)}",
        ),
        worked=(
            f"{f.sparsity:.1f}. That is the promise; the rest of the hour is what becomes of it."
        ),
        takeaway=(
            "The factor is total over active, not experts over top-k: what every token meets "
            "dilutes it."
        ),
    )


def ep_least_question(f: Facts) -> Number:
    return Number(
        id="ep_least",
        axis="memory",
        level="senior",
        ask=(
            "16 pipeline stages. What is the least expert parallelism (a power of two) at "
            "which weights (bf16) and gradients (fp32) take less than half a device?"
        ),
        expected=f.ep_least,
        within=1.0,
        slips=(
            Slip(
                value=f.least_ep(2),
                says=("That holds the weights alone: gradients in fp32 are twice as much again."),
                within=1.0,
            ),
            Slip(
                value=f.ep_least * 2,
                says="One step too far: half of that already does.",
                within=1.0,
            ),
            Slip(
                value=64.0,
                says=(
                    "That is what the published run used. Memory alone would be content with "
                    "less: ask what else it buys."
                ),
                within=1.0,
            ),
        ),
        hints=(
            "What does expert parallelism divide, and what not?",
            f"`6 · (rest/16 + routed/16/ep)` against {show.size(f.half)}",
            f"Without it: {show.size(f.stage_bytes_ep_1)}.",
        ),
        worked=(
            f"{show.size(f.stage_bytes_ep_1)} at ep 1; at ep {f.ep_least:.0f} it is "
            f"{show.size(f.stage_bytes_ep_least)}."
        ),
        takeaway=(
            "The store has to live somewhere: memory pays for the total. Expert parallelism "
            "divides it without splitting a matrix, and is paid in all-to-all."
        ),
    )


def ep_least_note(f: Facts) -> str:
    return (
        f"The published run goes on to {f.ep:,}: fewer experts a device means more rows for "
        "each of them, and larger matrix products."
    )


def traffic_question(f: Facts) -> Number:
    return Number(
        id="sent",
        axis="communication",
        level="staff",
        ask=(
            "Each token goes to its 8 experts in 8 bit and comes back in 16 bit, but to at "
            "most 4 nodes: within a node copies travel over NVLink. How many KB cross the "
            "network per token and layer, forward?"
        ),
        expected=f.token_bytes,
        unit="KB",
        scale=1000.0,
        made_of=(SENT,),
        slips=(
            Slip(
                value=f.token_bytes_unlimited,
                says=(
                    "That is a copy per expert. A node gets one copy, whoever of its devices "
                    "hold the experts."
                ),
            ),
            Slip(
                value=f.token_bytes / 3,
                says="That is the way there; the results come back in 16 bit.",
            ),
            Slip(value=f.token_bytes * 4 / 3, says="The way there is in 8 bit: one byte a value."),
            Slip(value=f.token_bytes * 8, says="Bits: KB are asked."),
        ),
        hints=(
            "One copy per node, not per expert.",
            "`nodes · hidden · (1 + 2)` bytes",
            "4 · 7,168 · 3",
        ),
        worked=(
            f"4 · 7,168 · (1 + 2) = {small_size(f.token_bytes)}, a little less where one of "
            "the four is the token's own node; a copy per expert would be "
            f"{small_size(f.token_bytes_unlimited)}."
        ),
        takeaway=(
            "Count copies per slow link, not per expert: limiting a token to a few nodes is "
            "an algorithm's choice that halves a network bill."
        ),
    )


def ratio_question(f: Facts) -> Number:
    return Number(
        id="ratio",
        axis="communication",
        level="staff",
        minutes=5,
        ask=(
            "Set it against the compute: a token's matrix products in one such layer, "
            f"forward, at the dense fp8 peak of {show.flops(f.chip.fp8_flops)}, against one "
            f"port of {show.bytes_per_s(f.out)}. How many times longer is the network busy?"
        ),
        expected=f.ratio,
        unit="times",
        within=1.1,
        slips=(
            Slip(value=1.0 / f.ratio, says="That is compute over network."),
            Slip(
                value=f.ratio / 2,
                says="That is the dense bf16 peak: the products run in fp8, twice as fast.",
            ),
            Slip(
                value=f.ratio * 2,
                says="That is the sparse peak, or half of the parameters at work.",
            ),
            Slip(value=f.ratio * 8, says="400 Gb/s is 50 GB/s: bits for bytes."),
            Slip(
                value=f.ratio / 3,
                says="Forward against forward: the products of one pass are `2 · parameters`.",
            ),
            Slip(
                value=f.ratio * f.moe_layer / f.expert,
                says=(
                    "One expert is not the layer: attention, the shared expert and eight "
                    "routed ones compute."
                ),
            ),
        ),
        hints=(
            "Per token, both sides.",
            "`bytes / port` against `2 · active parameters of the layer / peak`",
            (f"{show.params(f.moe_layer)} in a layer: attention, shared expert, 8 routed ones."),
        ),
        worked=(
            f"{f.wire_us:.2f} µs on the wire against {f.compute_us:.2f} µs of compute: "
            f"{f.ratio:.1f} times. Real matrix products run well below the peak, which brings "
            "the two nearer to each other."
        ),
        takeaway=(
            "Sparse models are a network problem: the compute per token fell by the "
            "sparsity, the bytes per token did not."
        ),
    )


def ratio_note(f: Facts) -> str:
    return (
        "At full peak and full line rate the network is busy for a multiple of the compute. At "
        f"the rates that both reach, the kit has {f.kit_ratio:.1f} seconds of layer compute, "
        "attention and element-wise work included, for one of all-to-all; the report puts its "
        "own chunks near one. Either way it is far too much to leave exposed. The whole step "
        "under 1F1B:"
    )


def dualpipe_question(f: Facts) -> Choice:
    return Choice(
        id="dualpipe",
        axis="parallelism",
        level="staff",
        ask=(
            "So it has to hide. DualPipe feeds micro-batches from both ends of the pipeline, "
            "so that one's all-to-all runs under another's compute. What does it cost?"
        ),
        expected=f.dualpipe_answer,
        options=(
            Option(
                key="a",
                text="Nothing but complexity.",
                says=(
                    "Each device is stage i of one direction and stage p + 1 − i of the other: "
                    "it needs the weights of both."
                ),
            ),
            Option(
                key="b",
                text="A second copy of the weights on every device.",
                says=(
                    f"{show.size(f.run_weights)} against {show.size(f.plain_weights)} in the "
                    "middle of the pipeline."
                ),
            ),
            Option(
                key="c",
                text="Twice the activations.",
                says=(
                    "In flight are p + 1 micro-batches, hardly more than 1F1B's p: "
                    "activations are not the price."
                ),
            ),
            Option(
                key="d",
                text="Twice the bubble: two pipelines, two bubbles.",
                says=(
                    "The two fill each other's gaps: idle time falls from "
                    f"{show.share(f.plain.bubble_fraction)} to "
                    f"{show.share(f.run.bubble_fraction)}."
                ),
            ),
        ),
        hints=(
            "What must a device hold to serve both directions?",
            "It is the first stage of one direction and the last of the other.",
            "Count copies of the weights.",
        ),
        worked=(
            f"Every device holds two stages: {f.copies:.0f} copies of the weights "
            f"({show.size(f.run_weights)} against {show.size(f.plain_weights)} in the middle "
            f"of the pipeline). For it the step falls from {show.seconds(f.plain.step_s)} to "
            f"{show.seconds(f.run.step_s)}. Exposed all-to-all goes from "
            f"{show.seconds(f.plain.step_breakdown_s['ep'])} to "
            f"{show.seconds(f.run.step_breakdown_s['ep'])}, idle time from "
            f"{show.share(f.plain.bubble_fraction)} to {show.share(f.run.bubble_fraction)} of "
            "the step. The most comes from balance: two devices share the last stage and its "
            f"head, whose logits and loss take {show.seconds(f.run.step_breakdown_s['logits'])} "
            f"instead of {show.seconds(f.plain.step_breakdown_s['logits'])} of its step."
        ),
        takeaway=(
            "Memory buys overlap. It can be paid because expert parallelism made the weights "
            "of a device small: the choices of this design pay for one another."
        ),
    )


def dualpipe_note(f: Facts) -> str:
    return (
        "As a design of one's own, with the stack named (`stack: hai-llm`), the same plan "
        f"makes {f.run.tokens_per_s_per_device:,.0f} tokens/s; with none named the kit assumes "
        f"software in general and says {f.run_generic.tokens_per_s_per_device:,.0f}. Who wrote "
        "the kernels is a fact of the design."
    )


def skew_question(f: Facts) -> Number:
    return Number(
        id="skew",
        axis="communication",
        level="senior",
        ask=(
            f"Routed experts are {show.share(f.expert_share)} of the FLOP. On one of the 64 "
            "devices of a group the experts get 1.5 times the mean load. How many per cent "
            "longer does the layer take, for everybody?"
        ),
        expected=f.skewed,
        unit="%",
        scale=0.01,
        within=1.08,
        slips=(
            Slip(value=0.5, says="Only the routed experts take longer, not the whole layer."),
            Slip(
                value=f.skewed / 64,
                says="It does not average out over the group: everybody waits for the one.",
            ),
            Slip(
                value=f.expert_share * 1.5,
                says="That is how long the experts take now. What was added?",
            ),
        ),
        hints=(
            "Who waits for whom?",
            "share of experts · (1.5 − 1)",
            f"{show.share(f.expert_share)} · 0.5",
        ),
        worked=(
            f"All wait for the fullest: {show.share(f.expert_share)} · 0.5 = "
            f"{show.share(f.skewed)}, and its memory and its all-to-all grow as well."
        ),
        takeaway=(
            "A synchronous step runs at the speed of its hottest expert. The router is a "
            "piece of infrastructure: its balance belongs on the dashboard."
        ),
    )


def chance_question(f: Facts) -> Number:
    return Number(
        id="chance",
        axis="verification",
        level="staff",
        minutes=4,
        ask=(
            f"And pure chance? A device of the group gets {f.rows:,} token copies per "
            "micro-batch on average. If every token chose at random: by how many per cent "
            "would the fullest of 64 exceed the mean?"
        ),
        expected=f.chance,
        unit="%",
        scale=0.01,
        within=1.25,
        slips=(
            Slip(
                value=float(1 / f.rows**0.5),
                says="That is one deviation. The fullest of 64 lies further out.",
                within=1.1,
            ),
            Slip(
                value=f.chance * 2.8284271247461903,
                says=(
                    f"Each token brings 8 copies: n is {f.rows:,}, not the tokens of the sequence."
                ),
                within=1.15,
            ),
        ),
        hints=(
            "Counting noise, and the largest of many.",
            "`1/√n`, times how many deviations the largest of 64 is out",
            (
                f"the largest of 64 normal values lies {f.deviations:.1f} deviations above "
                "their mean"
            ),
        ),
        worked=f"`{f.deviations:.1f} / √{f.rows:,}` = {show.share(f.chance)}.",
        takeaway=(
            "Noise is not what unbalances experts: skew is learned. A measured imbalance of "
            "tens of per cent is a routing problem, and more tokens per batch will not cure "
            "it."
        ),
    )


def fp8_question(f: Facts) -> Choice:
    return Choice(
        id="fp8",
        axis="size",
        level="senior",
        ask="The matrix products run in fp8. Which of these stay in 16 or 32 bit? Name all.",
        expected=("a", "b", "d", "e", "g"),
        several=True,
        options=(
            Option(key="a", text="master weights and Adam's moments (the moments may be bf16)"),
            Option(key="b", text="the router's scores"),
            Option(
                key="c",
                text="the experts' matrix products",
                says=(
                    "they are the bulk of the FLOP and stand the rounding, with a scale per "
                    "block: this is where fp8 pays"
                ),
            ),
            Option(key="d", text="softmax and attention scores"),
            Option(key="e", text="norms"),
            Option(
                key="f",
                text="the dispatch of tokens to experts",
                says=(
                    "what is sent is the input of an fp8 product: sending it in 8 bit halves "
                    "the traffic and loses nothing more"
                ),
            ),
            Option(key="g", text="embedding and output head"),
        ),
        hints=(
            "Cheap and sensitive stays high; expensive and forgiving goes low.",
            "What accumulates, decides or normalises?",
            "Five of the seven stay.",
        ),
        worked=(
            "Embedding and head, router, norms, softmax and the optimizer's states stay "
            "high; the linear layers, experts included, go to fp8 with a scale per block."
        ),
        takeaway=(
            "Precision follows cost and sensitivity: nearly all FLOP are in linear layers, "
            "nearly all risk is not. Which operations go low is a question of quality: "
            "confirm it with whoever owns the loss curve."
        ),
    )


def plan_question(f: Facts) -> Plan:
    def wide_tensor(trial: Assessment, best: Assessment) -> str:
        return (
            f"tp {trial.plan['tp']} costs {show.seconds(trial.step_breakdown_s['tp'])} of a "
            f"{show.seconds(trial.step_s)} step: narrow matrices, a slow NVLink. The best plan "
            f"has tp {best.plan['tp']}."
        )

    def few_groups(trial: Assessment, best: Assessment) -> str:
        return (
            f"With ep {trial.plan['ep']} a device holds half or more of the experts of its "
            "layers, or gathers them again for every micro-batch: "
            f"{show.size(trial.memory_bytes['total'])}, {show.seconds(trial.step_s)} a step."
        )

    def many_nodes(trial: Assessment, best: Assessment) -> str:
        return (
            f"ep {trial.plan['ep']} spreads each layer over sixteen nodes or more: "
            f"{show.seconds(trial.step_breakdown_s['ep'])} of exposed all-to-all, against "
            f"{show.seconds(best.step_breakdown_s['ep'])} at ep {best.plan['ep']}."
        )

    return Plan(
        id="plan",
        axis="parallelism",
        level="staff",
        minutes=6,
        ask=(
            f"Your plan for the 2,048 H800, NVLink cut to {show.bytes_per_s(f.up)}: `pp`, "
            "`ep`, `dp`, within a tenth of the best."
        ),
        design=f.design,
        names=("pp", "ep", "dp"),
        slower=1.12,
        slips=(
            PlanSlip(
                example={"tp": 8, "pp": 16, "ep": 64, "dp": 16},
                says=wide_tensor,
                at_least={"tp": 4},
            ),
            PlanSlip(
                example={"tp": 1, "pp": 16, "ep": 2, "dp": 128}, says=few_groups, at_most={"ep": 2}
            ),
            PlanSlip(
                example={"tp": 1, "pp": 8, "ep": 128, "dp": 256},
                says=many_nodes,
                at_least={"ep": 128},
            ),
        ),
        hints=(
            "What needs tensor parallelism in a model whose matrices are 2,048 wide?",
            (
                f"tp 1 with as many as {f.result.plan['pp']} stages, or tp 2 with fewer; ep from "
                "what memory needs up to what the network bears."
            ),
            "ep divides dp · tp.",
        ),
        worked=(
            f"Best steps: tp 1 {show.seconds(f.by_tp[1].step_s)}, tp 2 "
            f"{show.seconds(f.by_tp[2].step_s)}, tp 4 {show.seconds(f.by_tp[4].step_s)}, tp 8 "
            f"{show.seconds(f.by_tp[8].step_s)}. Pipeline and experts carry the model. A "
            "little tensor parallelism can save a recompute; more of it only sends, over a "
            "link that was cut, and the experts are too narrow to be split at all. The published "
            f"degrees, pp {f.pp} and ep {f.ep}, need their authors' kernels: "
            f"{show.seconds(f.run.step_s)} with them, {show.seconds(f.run_generic.step_s)} with "
            "software in general."
        ),
        takeaway=(
            "Sparse models move the axes: expert parallelism does for memory what tensor "
            "parallelism does in a dense model, and leaves the matrices whole."
        ),
    )


def plan_note(f: Facts) -> str:
    return (
        "MFU is over the dense fp8 peak, so it looks low: over the bf16 peak the best plan has "
        f"{show.share(f.result.mfu_bf16_peak)}. Say which peak."
    )


def cost_question(f: Facts) -> Number:
    return Number(
        id="cost",
        axis="cost",
        level="mid",
        ask=(
            f"The report says {f.measured.tokens_per_s_measured:,.0f} tokens a second per "
            "device, over 14.8 trillion tokens, at 2 dollars a device-hour. Millions of "
            "dollars?"
        ),
        expected=f.usd,
        unit="M$",
        scale=1e6,
        within=1.04,
        manner="usd",
        made_of=(FLEET,),
        slips=(
            Slip(value=f.usd / 8, says="The rate is per device, not per node."),
            Slip(
                value=f.usd / f.devices,
                says=(
                    "Device-hours are tokens over the rate of one device: do not divide by "
                    "the fleet as well."
                ),
            ),
            Slip(value=f.usd / 2, says="That is the number of device-hours, in millions."),
        ),
        hints=(
            "Device-hours first: the fleet's size drops out.",
            "`tokens / rate / 3600 · price`",
            f"{f.hours:,.0f} hours",
        ),
        worked=(
            f"{show.hours(f.hours)} at {show.usd(f.price)}: {show.usd(f.usd)}. The printed "
            "total, with longer contexts and post-training, is "
            f"{show.usd(f.published_usd.value)}: the price of one run, without the research "
            "before it."
        ),
        takeaway=(
            "Device-hours are the honest unit: no fleet, no overlap, no goodput to argue "
            "about. Ask what a printed price leaves out."
        ),
    )


def price_ratio_question(f: Facts) -> Number:
    return Number(
        id="price_ratio",
        axis="cost",
        level="staff",
        minutes=4,
        ask=(
            "Estimate: how many times a **dense 37B** on the same fleet and tokens does the "
            "671B cost, by the kit's best plans? (Compute alone would say about one.)"
        ),
        expected=f.price_ratio,
        unit="times",
        within=1.5,
        slips=(
            Slip(
                value=1.0,
                says=(
                    "That counts FLOP alone. The experts have to be stored, reached and waited for."
                ),
                within=1.2,
            ),
            Slip(
                value=f.sparsity,
                says="That is the ratio of total to active: the price of a dense 671B.",
            ),
        ),
        hints=(
            "What does the sparse one carry that the dense one does not?",
            (
                "All-to-all, the store's memory and what is recomputed for it, small "
                "matrices, imbalance."
            ),
            "Between one and a half and three.",
        ),
        worked=(
            f"{show.usd(f.result.cost_usd)} against {show.usd(f.dense_active.cost_usd)}: "
            f"{f.price_ratio:.1f} times. A dense 671B would be "
            f"{show.usd(f.dense_total.cost_usd)}, {f.saving:.0f} times the sparse one."
        ),
        takeaway=(
            f'"671B for the price of 37B" is a slogan: here it is {f.price_ratio:.1f} times '
            f"the price of 37B, and {f.saving:.0f} times below that of 671B. The saving is "
            "real, and so is the surcharge."
        ),
    )


def rack_question(f: Facts) -> Choice:
    return Choice(
        id="rack",
        axis="communication",
        level="staff",
        ask=(
            "Twist: the same model on GB200, 72 devices on one NVLink domain. What becomes "
            "of 64-way expert parallelism?"
        ),
        expected=f.rack_answer,
        options=(
            Option(
                key="a",
                text="It moves inside the domain: the exposed share falls.",
                says=(
                    f"From {show.share(f.node_share)} to {show.share(f.rack_share)} of the step."
                ),
            ),
            Option(
                key="b",
                text="Nothing: compute got faster by as much as the network.",
                says=(
                    f"The all-to-all left the network altogether: {show.share(f.node_share)} "
                    f"of the step becomes {show.share(f.rack_share)}."
                ),
            ),
            Option(
                key="c",
                text="It is no longer needed: memory is larger.",
                says=(
                    "A device has more memory, but without expert parallelism it would hold "
                    f"{show.size(f.stage_bytes_ep_1)} of weights and gradients."
                ),
            ),
        ),
        hints=(
            "Over which link does the all-to-all go now?",
            "A group of 64 fits into the domain.",
            (f"Exposed share on the nodes of eight: {show.share(f.node_share)} of the step."),
        ),
        worked=(
            f"Exposed all-to-all at ep 64 falls from {show.share(f.node_share)} of the step "
            f"to {show.share(f.rack_share)}, both in bf16; the best degree goes from "
            f"{f.node_ep} to {f.rack_ep}."
        ),
        takeaway=(
            "Walkthrough three's rack-scale domain did not want wide tensor parallelism. "
            "This is what it is for."
        ),
    )


def when_question(f: Facts) -> Explain:
    return Explain(
        id="when",
        axis="telling",
        level="staff",
        minutes=5,
        ask=(
            "Your director wants every next model sparse. Say when you would **not**, and "
            "what you would have the ML side confirm first."
        ),
        points=(
            Point(
                says=(
                    "Memory and serving: the total has to be held, in training and at every "
                    "replica that serves."
                ),
                words=("serv", "memory", "inference", r"\bhold"),
            ),
            Point(
                says=("Network: a fleet with slow scale-out loses the saving to the all-to-all."),
                words=("network", "all-?to-?all", "interconnect", "bandwidth"),
            ),
            Point(
                says=(
                    "Balance couples system and convergence: loss weight, dropping, routing "
                    "are confirmed with the ML side."
                ),
                words=("balanc", "rout", "skew", "drop"),
            ),
            Point(
                says="Precision or recipe is a quality risk: small-scale runs first.",
                words=(
                    "fp8",
                    "precision",
                    "ablation",
                    "small(er)?[- ]scale",
                    "quality",
                    "converge",
                ),
            ),
        ),
        model=(
            "Not where memory is the limit, above all in serving, where every replica holds "
            "the total. Not on a fleet whose network cannot carry the all-to-all. The ML "
            "side confirms the balancing of the router, and that fp8 does not cost quality, "
            "on small-scale runs before we commit."
        ),
        hints=(
            "What does a sparse model spend that a dense one does not?",
            "Memory when it serves, network when it trains, balance always.",
            "What could you not undo in the middle of a run?",
        ),
        worked="State where the saving goes, and which risks are quality risks.",
        takeaway=(
            "Sparse trades FLOP for memory, network and a new way to fail. Say which of "
            "those you have."
        ),
    )


BOOK = Walkthrough(
    number="04",
    name="moe",
    title="MoE: 671B for the price of 37B",
    minutes=60,
    book=Facts,
    asks=(
        total_question,
        active_question,
        sparsity_question,
        ep_least_question,
        traffic_question,
        ratio_question,
        dualpipe_question,
        skew_question,
        chance_question,
        fp8_question,
        plan_question,
        cost_question,
        price_ratio_question,
        rack_question,
        when_question,
    ),
)
