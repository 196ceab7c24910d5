"""671B for the price of 37B? A sparse model on 2,048 devices: what the experts save, what they
send, and what the saving costs."""

from __future__ import annotations

import math
from functools import cached_property

from scantling.catalogue.models.shape import flops_per_token, parameters
from scantling.physics import pipeline
from scantling.physics.memory.peak import memory_by_stage
from scantling.physics.stragglers import slowest_of
from scantling.verdict.assess import assess

from ..measured import published, runs
from ..question import Choice, Explain, Number, Option, Plan, PlanSlip, Point, Slip, Walkthrough
from .base import DesignFacts, design


class Facts(DesignFacts):
    """DeepSeek-V3's shape on its own fleet, and two dense models of its total and its active size
    beside it."""

    devices, tokens, seq_len, global_batch = 2048, 14.8e12, 4096, 15_360
    pp, ep, limit, price, skew = 16, 64, 4, 2.0, 1.5

    def make(self, model="deepseek-v3", accelerator="h800-sxm", precision="fp8-block"):
        return design(
            model,
            self.devices,
            self.global_batch,
            self.tokens,
            seq_len=self.seq_len,
            precision=precision,
            accelerator=accelerator,
            per_node=8 if accelerator == "h800-sxm" else None,
            usd=self.price,
            name="DeepSeek-V3 on 2,048 H800",
        )

    @cached_property
    def design(self):
        return self.make()

    @cached_property
    def run(self):
        """The plan of the published run, on its own software."""
        return assess(
            self.design.change(
                {"stack": "hai-llm"},
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
        )

    @cached_property
    def run_generic(self):
        """The plan of the published run, on no software in particular."""
        return assess(
            self.design.change(
                plan={
                    "tp": 1,
                    "pp": self.pp,
                    "cp": 1,
                    "ep": self.ep,
                    "etp": 1,
                    "sharding": "zero1",
                    "schedule": "dualpipe",
                }
            )
        )

    @cached_property
    def plain(self):
        """The same under 1F1B."""
        return assess(
            self.design.change(
                {"stack": "hai-llm"},
                plan={
                    "tp": 1,
                    "pp": self.pp,
                    "cp": 1,
                    "ep": self.ep,
                    "etp": 1,
                    "sharding": "zero1",
                    "schedule": "1f1b",
                },
            )
        )

    # ---- size
    @cached_property
    def parts(self):
        return parameters(self.model)

    @cached_property
    def total(self):
        return float(self.parts.total)

    @cached_property
    def active(self):
        return float(self.parts.active)

    @cached_property
    def attention_layer(self):
        return float(self.parts.attention_per_layer)

    @cached_property
    def expert(self):
        return float(self.parts.expert)

    @cached_property
    def moe_layer(self):
        """Parameters of one layer that a token meets: attention, the shared expert, its eight
        routed ones."""
        return (
            self.attention_layer
            + float(self.parts.shared_per_moe_layer)
            + self.model.top_k * self.expert
        )

    @cached_property
    def sparsity(self):
        return self.total / self.active

    # ---- memory
    def held(self, ep, bytes_per_param=6):
        """Weights and fp32 gradients on a device of an average stage."""
        routed = float(self.parts.routed_experts)
        return ((self.total - routed) / self.pp + routed / self.pp / ep) * bytes_per_param

    def least_ep(self, bytes_per_param=6):
        return next(
            float(ep)
            for ep in (1, 2, 4, 8, 16, 32, 64, 128, 256)
            if self.held(ep, bytes_per_param) < self.half
        )

    @cached_property
    def ep_least(self):
        return self.least_ep()

    @cached_property
    def held_without(self):
        return self.held(1)

    @cached_property
    def held_least(self):
        return self.held(self.ep_least)

    # ---- all-to-all
    @cached_property
    def sent_token(self):
        """Over the network per token and layer, forward: dispatch in 8 bit, combine in 16 bit, to
        at most `limit` nodes."""
        return self.limit * self.model.hidden * (1 + 2.0)

    @cached_property
    def sent_all(self):
        return self.model.top_k * self.model.hidden * (1 + 2.0)

    @cached_property
    def compute_token(self):
        """Seconds per token of a layer's matrix products forward, at the dense fp8 peak."""
        return 2 * self.moe_layer / self.chip.fp8_flops

    @cached_property
    def ratio(self):
        return self.sent_token / self.out / self.compute_token

    @cached_property
    def sent_us(self):
        return 1e6 * self.sent_token / self.out

    @cached_property
    def compute_us(self):
        return 1e6 * self.compute_token

    @cached_property
    def kit_ratio(self):
        """Compute of the layers over their all-to-all, at the rates that the kit believes."""
        s = self.plain.step_breakdown_s
        return sum(s[k] for k in ("gemm", "attention", "elementwise")) / next(
            r["time_s"] for r in self.plain.as_dict()["communication"] if r["axis"] == "ep"
        )

    # ---- schedule
    @cached_property
    def dualpipe_answer(self):
        return "b" if float(pipeline.weight_copies("dualpipe")) == 2 else "a"

    @staticmethod
    def stage_weights(assessment):
        """Weights on a device in the middle of the pipeline. [bytes]"""
        stages = memory_by_stage(assessment.chosen.case)
        return float(stages[len(stages) // 2]["weights"])

    @cached_property
    def run_weights(self):
        return self.stage_weights(self.run)

    @cached_property
    def plain_weights(self):
        return self.stage_weights(self.plain)

    @cached_property
    def copies(self):
        return float(pipeline.weight_copies("dualpipe"))

    # ---- load
    @cached_property
    def expert_share(self):
        flops = flops_per_token(self.model, self.seq_len)
        return float(flops.routed_experts / flops.total)

    @cached_property
    def skewed(self):
        return self.expert_share * (self.skew - 1)

    @cached_property
    def rows(self):
        """Token copies that an average device of the group gets per micro-batch."""
        return self.seq_len * self.model.top_k

    @cached_property
    def deviations(self):
        return float(slowest_of(self.ep))

    @cached_property
    def chance(self):
        """By how much the fullest of `ep` devices exceeds the mean when every token picks at
        random."""
        return self.deviations / math.sqrt(self.rows)

    # ---- plans
    @cached_property
    def by_tp(self):
        return {tp: assess(self.design.change(plan={"tp": tp})) for tp in (1, 2, 4, 8)}

    # ---- money
    @cached_property
    def measured(self):
        return runs("dsv3-pretrain")[0]

    @cached_property
    def hours(self):
        return self.tokens / self.measured.tokens_per_s_measured / 3600

    @cached_property
    def usd(self):
        return self.hours * self.price

    @cached_property
    def dense_active(self):
        return assess(self.make({"size": 37e9}))

    @cached_property
    def dense_total(self):
        return assess(self.make({"size": 671e9}))

    @cached_property
    def price_ratio(self):
        return self.result.cost_usd / self.dense_active.cost_usd

    @cached_property
    def saving(self):
        return self.dense_total.cost_usd / self.result.cost_usd

    # ---- the rack-scale machine
    @cached_property
    def by_ep(self):
        """{machine: {ep: assessment}}, bf16 on both so that the chips' formats play no part."""
        out = {}
        for name in ("h800-sxm", "gb200-nvl72"):
            design = self.make(accelerator=name, precision="bf16")
            out[name] = {ep: assess(design.change(plan={"ep": ep})) for ep in (8, 16, 32, 64)}
        return out

    def best_ep(self, name):
        return min(
            self.by_ep[name],
            key=lambda ep: (
                self.by_ep[name][ep].step_s if self.by_ep[name][ep].chosen.fits else math.inf
            ),
        )

    @cached_property
    def node_ep(self):
        return self.best_ep("h800-sxm")

    @cached_property
    def rack_ep(self):
        return self.best_ep("gb200-nvl72")

    @cached_property
    def node_share(self):
        a = self.by_ep["h800-sxm"][64]
        return a.step_breakdown_s["ep"] / a.step_s

    @cached_property
    def rack_share(self):
        a = self.by_ep["gb200-nvl72"][64]
        return a.step_breakdown_s["ep"] / a.step_s

    @cached_property
    def rack_answer(self):
        return "a" if self.rack_share < 0.9 * self.node_share else "b"

    published_total = published("dsv3-params")
    published_active = published("dsv3-active")
    published_hours = published("dsv3-pretrain-hours")
    published_usd = published("dsv3-usd")
    published_ratio = published("dsv3-ratio")


QUESTIONS = (
    Number(
        "total",
        (
            "61 layers, hidden 7,168. The first 3 have a dense gated MLP of 18,432; the "
            "other 58 have 256 routed experts of width 2,048 and one shared one, all gated. "
            "Attention is {attention_layer:params} a layer, the vocabulary 129,280, in and "
            "out. How many parameters?"
        ),
        "size",
        "senior",
        (
            "Nearly all of it is in one place.",
            "An expert is `3 · hidden · width`.",
            (
                "{expert:params} an expert, 58 · 257 of them; attention, dense MLP, "
                "embedding and head make the rest."
            ),
        ),
        (
            "Routed experts {parts.routed_experts:params}, shared ones "
            "{parts.shared_experts:params}, attention {parts.attention:params}, dense MLP "
            "{parts.mlp_dense:params}, embedding and head {parts.embedding:params} each: "
            "{total:params}."
        ),
        (
            "Nearly everything is routed experts. A sparse model is a large store with a "
            "small engine in front of it."
        ),
        minutes=4,
        expected="total",
        unit="parameters",
        within=1.012,
        shown="params",
        slips=(
            Slip(
                lambda f: (
                    f.total
                    + 3 * f.parts.experts_per_moe_layer
                    + 3 * f.parts.shared_per_moe_layer
                    - f.parts.mlp_dense
                ),
                "The first three layers are dense: 58 layers have experts, not 61.",
                within=1.01,
            ),
            Slip(
                lambda f: f.total - f.parts.routed_experts / 3,
                "An expert is gated: three matrices, not two.",
                within=1.02,
            ),
            Slip(
                lambda f: f.parts.routed_experts,
                "Those are the routed experts alone.",
                within=1.005,
            ),
        ),
    ),
    Number(
        "active",
        "A token meets 8 routed experts and the shared one. How many parameters work on it?",
        "size",
        "senior",
        (
            "Replace 256 by 8.",
            "`total − routed + routed · 8/256`",
            "{parts.routed_experts:params} · 8/256 and the rest whole.",
        ),
        (
            "{active:params}: {parts.routed_experts:params} · 8/256, and everything that is "
            "not routed."
        ),
        (
            "Active parameters set the FLOP, total parameters the memory. Every statement "
            "about a sparse model needs to say which."
        ),
        expected="active",
        unit="parameters",
        within=1.03,
        shown="params",
        slips=(
            Slip(
                lambda f: f.total * 8 / 256,
                (
                    "Only the routed experts are thinned out; attention, the shared expert, "
                    "embedding and head work on every token."
                ),
            ),
            Slip(
                lambda f: f.active - f.parts.shared_experts,
                "The shared expert works on every token as well.",
                within=1.02,
            ),
            Slip(lambda f: f.active - f.parts.attention, "Attention is missing."),
        ),
    ),
    Number(
        "sparsity",
        (
            "By which factor is that less compute per token than a dense model of the same "
            "total, attention scores aside?"
        ),
        "size",
        "mid",
        (
            "FLOP follow active parameters.",
            "`6 · total` against `6 · active`",
            "{total:params} / {active:params}",
        ),
        "{sparsity:.1f}. That is the promise; the rest of the hour is what becomes of it.",
        (
            "The factor is total over active, not experts over top-k: what every token "
            "meets dilutes it."
        ),
        minutes=2,
        expected="sparsity",
        unit="times",
        within=1.04,
        slips=(
            Slip(
                lambda f: 256 / 8,
                (
                    "256 over 8 holds for the experts alone; attention and the shared "
                    "expert are not thinned out."
                ),
            ),
            Slip(
                lambda f: f.total / f.active * 3,
                "Forward on one side, forward and backward on the other.",
            ),
        ),
    ),
    Number(
        "ep_least",
        (
            "16 pipeline stages. What is the least expert parallelism (a power of two) at "
            "which weights (bf16) and gradients (fp32) take less than half a device?"
        ),
        "memory",
        "senior",
        (
            "What does expert parallelism divide, and what not?",
            "`6 · (rest/16 + routed/16/ep)` against {half:bytes}",
            "Without it: {held_without:bytes}.",
        ),
        "{held_without:bytes} at ep 1; at ep {ep_least:.0f} it is {held_least:bytes}.",
        (
            "The store has to live somewhere: memory pays for the total. Expert parallelism "
            "divides it without splitting a matrix, and is paid in all-to-all."
        ),
        expected="ep_least",
        unit="",
        within=1.0,
        slips=(
            Slip(
                lambda f: f.least_ep(2),
                "That holds the weights alone: gradients in fp32 are twice as much again.",
                within=1.0,
            ),
            Slip(
                lambda f: f.least_ep(6) * 2,
                "One step too far: half of that already does.",
                within=1.0,
            ),
            Slip(
                lambda f: 64.0,
                (
                    "That is what the published run used. Memory alone would be content "
                    "with less: ask what else it buys."
                ),
                within=1.0,
            ),
        ),
    ),
    Number(
        "sent",
        (
            "Each token goes to its 8 experts in 8 bit and comes back in 16 bit, but to at "
            "most 4 nodes: within a node copies travel over NVLink. How many KB cross the "
            "network per token and layer, forward?"
        ),
        "communication",
        "staff",
        ("One copy per node, not per expert.", "`nodes · hidden · (1 + 2)` bytes", "4 · 7,168 · 3"),
        (
            "4 · 7,168 · (1 + 2) = {sent_token:bytes}, a little less where one of the four "
            "is the token's own node; a copy per expert would be {sent_all:bytes}."
        ),
        (
            "Count copies per slow link, not per expert: limiting a token to a few nodes is "
            "an algorithm's choice that halves a network bill."
        ),
        expected="sent_token",
        unit="KB",
        scale=1e3,
        within=1.05,
        slips=(
            Slip(
                "sent_all",
                (
                    "That is a copy per expert. A node gets one copy, whoever of its "
                    "devices hold the experts."
                ),
            ),
            Slip(
                lambda f: f.sent_token / 3,
                "That is the way there; the results come back in 16 bit.",
            ),
            Slip(lambda f: f.sent_token * 4 / 3, "The way there is in 8 bit: one byte a value."),
            Slip(lambda f: f.sent_token * 8, "Bits: KB are asked."),
        ),
    ),
    Number(
        "ratio",
        (
            "Set it against the compute: a token's matrix products in one such layer, "
            "forward, at the dense fp8 peak of {chip.fp8_flops:flops}, against one port of "
            "{out:bytes_per_s}. How many times longer is the network busy?"
        ),
        "communication",
        "staff",
        (
            "Per token, both sides.",
            "`bytes / port` against `2 · active parameters of the layer / peak`",
            "{moe_layer:params} in a layer: attention, shared expert, 8 routed ones.",
        ),
        (
            "{sent_us:.2f} µs on the wire against {compute_us:.2f} µs of compute: "
            "{ratio:.1f} times. Real matrix products run well below the peak, which brings "
            "the two nearer to each other."
        ),
        (
            "Sparse models are a network problem: the compute per token fell by the "
            "sparsity, the bytes per token did not."
        ),
        minutes=5,
        expected="ratio",
        unit="times",
        within=1.10,
        slips=(
            Slip(lambda f: 1 / f.ratio, "That is compute over network."),
            Slip(
                lambda f: f.ratio / 2,
                (
                    "That is bf16 products or a sparse peak somewhere: compare with the "
                    "dense fp8 peak."
                ),
            ),
            Slip(lambda f: f.ratio * 8, "400 Gb/s is 50 GB/s: bits for bytes."),
            Slip(
                lambda f: f.ratio / 3,
                "Forward against forward: the products of one pass are `2 · parameters`.",
            ),
            Slip(
                lambda f: f.ratio * f.moe_layer / f.expert,
                (
                    "One expert is not the layer: attention, the shared expert and eight "
                    "routed ones compute."
                ),
            ),
        ),
    ),
    Choice(
        "dualpipe",
        (
            "So it has to hide. DualPipe feeds micro-batches from both ends of the "
            "pipeline, so that one's all-to-all runs under another's compute. What does it "
            "cost?"
        ),
        "parallelism",
        "staff",
        (
            "What must a device hold to serve both directions?",
            "It is the first stage of one direction and the last of the other.",
            "Count copies of the weights.",
        ),
        "Every device holds two stages: {copies:.0f} copies of the weights "
        "({run_weights:bytes} against {plain_weights:bytes} in the middle of the "
        "pipeline). For it the step falls from {plain.step_s:seconds} to "
        "{run.step_s:seconds}, exposed all-to-all from "
        "{plain.step_breakdown_s[ep]:seconds} to {run.step_breakdown_s[ep]:seconds}, "
        "idle time from {plain.bubble_fraction:share} to {run.bubble_fraction:share} of "
        "the step.",
        (
            "Memory buys overlap. It can be paid because expert parallelism made the "
            "weights of a device small: the choices of this design pay for one another."
        ),
        expected="dualpipe_answer",
        options=(
            Option(
                "a",
                "Nothing but complexity.",
                (
                    "Each device is stage i of one direction and stage p − i of the other: "
                    "it needs the weights of both."
                ),
            ),
            Option(
                "b",
                "A second copy of the weights on every device.",
                "{run_weights:bytes} against {plain_weights:bytes} in the middle of the pipeline.",
            ),
            Option(
                "c",
                "Twice the activations.",
                (
                    "In flight are p + 1 micro-batches, hardly more than 1F1B's p: "
                    "activations are not the price."
                ),
            ),
            Option(
                "d",
                "Twice the bubble: two pipelines, two bubbles.",
                (
                    "The two fill each other's gaps: idle time falls from "
                    "{plain.bubble_fraction:share} to {run.bubble_fraction:share}."
                ),
            ),
        ),
    ),
    Number(
        "skew",
        (
            "Routed experts are {expert_share:share} of the FLOP. On one of the 64 devices "
            "of a group the experts get 1.5 times the mean load. How many per cent longer "
            "does the layer take, for everybody?"
        ),
        "communication",
        "senior",
        ("Who waits for whom?", "share of experts · (1.5 − 1)", "{expert_share:share} · 0.5"),
        (
            "All wait for the fullest: {expert_share:share} · 0.5 = {skewed:share}, and its "
            "memory and its all-to-all grow as well."
        ),
        (
            "A synchronous step runs at the speed of its hottest expert. The router is a "
            "piece of infrastructure: its balance belongs on the dashboard."
        ),
        expected="skewed",
        unit="%",
        scale=0.01,
        within=1.08,
        slips=(
            Slip(lambda f: 0.5, "Only the routed experts take longer, not the whole layer."),
            Slip(
                lambda f: f.skewed / 64,
                "It does not average out over the group: everybody waits for the one.",
            ),
            Slip(
                lambda f: f.expert_share * 1.5,
                "That is how long the experts take now. What was added?",
            ),
        ),
    ),
    Number(
        "chance",
        (
            "And pure chance? A device of the group gets {rows:,} token copies per "
            "micro-batch on average. If every token chose at random: by how many per cent "
            "would the fullest of 64 exceed the mean?"
        ),
        "verification",
        "staff",
        (
            "Counting noise, and the largest of many.",
            "`1/√n`, times how many deviations the largest of 64 is out",
            "the largest of 64 normal values lies {deviations:.1f} deviations above their mean",
        ),
        "`{deviations:.1f} / √{rows}` = {chance:share}.",
        (
            "Noise is not what unbalances experts: skew is learned. A measured imbalance of "
            "tens of per cent is a routing problem, and more tokens per batch will not cure "
            "it."
        ),
        minutes=4,
        expected="chance",
        unit="%",
        scale=0.01,
        within=1.25,
        slips=(
            Slip(
                lambda f: 1 / math.sqrt(f.rows),
                "That is one deviation. The fullest of 64 lies further out.",
                within=1.1,
            ),
            Slip(
                lambda f: f.chance * math.sqrt(8),
                "Each token brings 8 copies: n is {rows:,}, not the tokens of the sequence.",
                within=1.15,
            ),
        ),
    ),
    Choice(
        "fp8",
        "The matrix products run in fp8. Which of these stay in 16 or 32 bit? Name all.",
        "size",
        "senior",
        (
            "Cheap and sensitive stays high; expensive and forgiving goes low.",
            "What accumulates, decides or normalises?",
            "Five of the seven stay.",
        ),
        (
            "Embedding and head, router, norms, softmax and the optimizer's states stay "
            "high; the linear layers, experts included, go to fp8 with a scale per block."
        ),
        (
            "Precision follows cost and sensitivity: nearly all FLOP are in linear layers, "
            "nearly all risk is not. Which operations go low is a question of quality: "
            "confirm it with whoever owns the loss curve."
        ),
        expected=lambda f: ("a", "b", "d", "e", "g"),
        several=True,
        options=(
            Option("a", "master weights and Adam's moments (the moments may be bf16)"),
            Option("b", "the router's scores"),
            Option(
                "c",
                "the experts' matrix products",
                (
                    "they are the bulk of the FLOP and stand the rounding, with a scale per "
                    "block: this is where fp8 pays"
                ),
            ),
            Option("d", "softmax and attention scores"),
            Option("e", "norms"),
            Option(
                "f",
                "the dispatch of tokens to experts",
                (
                    "what is sent is the input of an fp8 product: sending it in 8 bit "
                    "halves the traffic and loses nothing more"
                ),
            ),
            Option("g", "embedding and output head"),
        ),
    ),
    Plan(
        "plan",
        (
            "Your plan for the 2,048 H800, NVLink cut to {up:bytes_per_s}: `pp`, `ep`, "
            "`dp`, within a tenth of the best."
        ),
        "parallelism",
        "staff",
        (
            "What needs tensor parallelism in a model whose matrices are 2,048 wide?",
            "tp 1 or 2; pp 8 or 16; ep from what memory needs up to what the network bears.",
            "ep divides dp · tp.",
        ),
        "Best steps: tp 1 {by_tp[1].step_s:seconds}, tp 2 {by_tp[2].step_s:seconds}, tp "
        "4 {by_tp[4].step_s:seconds}, tp 8 {by_tp[8].step_s:seconds}. Pipeline and "
        "experts carry the model. A little tensor parallelism can save a recompute; "
        "more of it "
        "only sends, over a link that was cut, and the experts are too narrow to be split at all.",
        (
            "Sparse models move the axes: expert parallelism does for memory what tensor "
            "parallelism does in a dense model, and leaves the matrices whole."
        ),
        minutes=6,
        design="design",
        names=("pp", "ep", "dp"),
        slower=1.12,
        slips=(
            PlanSlip(
                {"tp": 8, "pp": 16, "ep": 64, "dp": 16},
                lambda plan, a, f: plan.get("tp", 1) >= 4,
                (
                    "tp {a.plan[tp]} costs {a.step_breakdown_s[tp]:seconds} of a "
                    "{a.step_s:seconds} step: narrow matrices, a slow NVLink. The best plan "
                    "has tp {best.plan[tp]}."
                ),
            ),
            PlanSlip(
                {"tp": 1, "pp": 16, "ep": 2, "dp": 128},
                lambda plan, a, f: plan["ep"] <= 2,
                (
                    "With ep {a.plan[ep]} a device holds half of all experts of its layers, "
                    "or gathers them again for every micro-batch: "
                    "{a.memory_bytes[total]:bytes}, {a.step_s:seconds} a step."
                ),
            ),
            PlanSlip(
                {"tp": 1, "pp": 8, "ep": 128, "dp": 256},
                lambda plan, a, f: plan["ep"] >= 128,
                (
                    "ep {a.plan[ep]} spreads each layer over sixteen nodes or more: "
                    "{a.step_breakdown_s[ep]:seconds} of exposed all-to-all, against "
                    "{best.step_breakdown_s[ep]:seconds} at ep {best.plan[ep]}."
                ),
            ),
        ),
    ),
    Number(
        "cost",
        (
            "The report says {measured.tokens_per_s_measured:,.0f} tokens a second per "
            "device, over 14.8 trillion tokens, at 2 dollars a device-hour. Millions of "
            "dollars?"
        ),
        "cost",
        "mid",
        (
            "Device-hours first: the fleet's size drops out.",
            "`tokens / rate / 3600 · price`",
            "{hours:,.0f} hours",
        ),
        (
            "{hours:hours} at {price:usd}: {usd:usd}. The printed total, with longer "
            "contexts and post-training, is {published_usd.value:usd}: the price of one "
            "run, without the research before it."
        ),
        (
            "Device-hours are the honest unit: no fleet, no overlap, no goodput to argue "
            "about. Ask what a printed price leaves out."
        ),
        expected="usd",
        unit="M$",
        scale=1e6,
        within=1.04,
        shown="usd",
        slips=(
            Slip(lambda f: f.usd / 8, "The rate is per device, not per node."),
            Slip(
                lambda f: f.usd / f.devices,
                (
                    "Device-hours are tokens over the rate of one device: do not divide by "
                    "the fleet as well."
                ),
            ),
            Slip(lambda f: f.usd / 2, "That is the number of device-hours, in millions."),
        ),
    ),
    Number(
        "price_ratio",
        (
            "Estimate: how many times a **dense 37B** on the same fleet and tokens does the "
            "671B cost, by the kit's best plans? (Compute alone would say about one.)"
        ),
        "cost",
        "staff",
        (
            "What does the sparse one carry that the dense one does not?",
            (
                "All-to-all, the store's memory and what is recomputed for it, small "
                "matrices, imbalance."
            ),
            "Between one and a half and three.",
        ),
        (
            "{result.cost_usd:usd} against {dense_active.cost_usd:usd}: {price_ratio:.1f} "
            "times. A dense 671B would be {dense_total.cost_usd:usd}, {saving:.0f} times "
            "the sparse one."
        ),
        (
            '"671B for the price of 37B" is a slogan: here it is {price_ratio:.1f} times '
            "the price of 37B, and {saving:.0f} times below that of 671B. The saving is "
            "real, and so is the surcharge."
        ),
        minutes=4,
        expected="price_ratio",
        unit="times",
        within=1.5,
        slips=(
            Slip(
                lambda f: 1.0,
                "That counts FLOP alone. The experts have to be stored, reached and waited for.",
                within=1.2,
            ),
            Slip(
                lambda f: f.sparsity,
                "That is the ratio of total to active: the price of a dense 671B.",
            ),
        ),
    ),
    Choice(
        "rack",
        (
            "Twist: the same model on GB200, 72 devices on one NVLink domain. What becomes "
            "of 64-way expert parallelism?"
        ),
        "communication",
        "staff",
        (
            "Over which link does the all-to-all go now?",
            "A group of 64 fits into the domain.",
            "Exposed share on the nodes of eight: {node_share:share} of the step.",
        ),
        (
            "Exposed all-to-all at ep 64 falls from {node_share:share} of the step to "
            "{rack_share:share}, both in bf16; the best degree goes from {node_ep} to "
            "{rack_ep}."
        ),
        (
            "Walkthrough three's rack-scale domain did not want wide tensor parallelism. "
            "This is what it is for."
        ),
        expected="rack_answer",
        options=(
            Option(
                "a",
                "It moves inside the domain: the exposed share falls.",
                "From {node_share:share} to {rack_share:share} of the step.",
            ),
            Option(
                "b",
                "Nothing: compute got faster by as much as the network.",
                (
                    "The all-to-all left the network altogether: {node_share:share} of the "
                    "step becomes {rack_share:share}."
                ),
            ),
            Option(
                "c",
                "It is no longer needed: memory is larger.",
                (
                    "A device has more memory, but without expert parallelism it would hold "
                    "{held_without:bytes} of weights and gradients."
                ),
            ),
        ),
    ),
    Explain(
        "when",
        (
            "Your director wants every next model sparse. Say when you would **not**, and "
            "what you would have the ML side confirm first."
        ),
        "telling",
        "staff",
        (
            "What does a sparse model spend that a dense one does not?",
            "Memory when it serves, network when it trains, balance always.",
            "What could you not undo in the middle of a run?",
        ),
        "State where the saving goes, and which risks are quality risks.",
        (
            "Sparse trades FLOP for memory, network and a new way to fail. Say which of "
            "those you have."
        ),
        minutes=5,
        points=(
            Point(
                (
                    "Memory and serving: the total has to be held, in training and at every "
                    "replica that serves."
                ),
                (r"serv", r"memory", r"inference", r"\bhold"),
            ),
            Point(
                "Network: a fleet with slow scale-out loses the saving to the all-to-all.",
                (r"network", r"all-?to-?all", r"interconnect", r"bandwidth"),
            ),
            Point(
                (
                    "Balance couples system and convergence: loss weight, dropping, routing "
                    "are confirmed with the ML side."
                ),
                (r"balanc", r"rout", r"skew", r"drop"),
            ),
            Point(
                "Precision or recipe is a quality risk: small-scale runs first.",
                (
                    r"fp8",
                    r"precision",
                    r"ablation",
                    r"small(er)?[- ]scale",
                    r"quality",
                    r"converge",
                ),
            ),
        ),
        model="Not where memory is the limit, above all in serving, where every replica holds "
        "the total. Not on a fleet whose network cannot carry the all-to-all. The ML "
        "side confirms the balancing of the router, "
        "and that fp8 does not cost quality, on small-scale runs before we commit.",
    ),
)

WALKTHROUGH = Walkthrough("04", "moe", "MoE: 671B for the price of 37B", 60, Facts, QUESTIONS)
