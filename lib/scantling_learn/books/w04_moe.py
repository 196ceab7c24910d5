"""671B for the price of 37B? A sparse model on 2,048 devices: what the experts save, what they
send, and what the saving costs."""

from __future__ import annotations

import math
from functools import cached_property

from scantling import assess
from scantling.catalogue.models.shape import flops_per_token, parameters
from scantling.physics import pipeline
from scantling.physics.memory.peak import memory_by_stage
from scantling.physics.stragglers import slowest_of

from ..measured import published, runs
from .base import DesignFacts, design


class Facts(DesignFacts):
    """DeepSeek-V3's shape on its own fleet, and two dense models of its total and its active size
    beside it."""

    devices, tokens, seq_len, global_batch = 2048, 14.8e12, 4096, 15_360
    pp, ep, limit, price, skew = 16, 64, 4, 2.0, 1.5

    def make(
        self,
        model="deepseek-v3",
        accelerator="h800-sxm",
        precision="fp8-block",
    ):
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

    def _run(
        self,
        schedule,
        stack="hai-llm",
    ):
        axes = {
            "tp": 1,
            "pp": self.pp,
            "cp": 1,
            "ep": self.ep,
            "etp": 1,
            "sharding": "zero1",
        }
        on = {"stack": stack} if stack else {}
        return assess(
            self.design.change(
                on,
                plan={
                    **axes,
                    "schedule": schedule,
                },
            )
        )

    @cached_property
    def run(self):
        """The plan of the published run, on its own software."""
        return self._run("dualpipe")

    @cached_property
    def run_generic(self):
        """The plan of the published run, on no software in particular."""
        return self._run("dualpipe", None)

    @cached_property
    def plain(self):
        """The same under 1F1B."""
        return self._run("1f1b")

    # ---- size
    @cached_property
    def parts(self):
        return parameters(self.model)

    @cached_property
    def total(self):
        return self.parts.total

    @cached_property
    def active(self):
        return self.parts.active

    @cached_property
    def attention_layer(self):
        return self.parts.attention_per_layer

    @cached_property
    def expert(self):
        return self.parts.expert

    @cached_property
    def moe_layer(self):
        """Parameters of one layer that a token meets: attention, the shared expert, its eight
        routed ones."""
        return (
            self.attention_layer + self.parts.shared_per_moe_layer + self.model.top_k * self.expert
        )

    @cached_property
    def sparsity(self):
        return self.total / self.active

    # ---- memory
    def held(
        self,
        ep,
        bytes_per_param=6,
    ):
        """Weights and fp32 gradients on a device of an average stage."""
        routed = self.parts.routed_experts
        return ((self.total - routed) / self.pp + routed / self.pp / ep) * bytes_per_param

    def least_ep(self, bytes_per_param=6):
        return next(
            ep
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
        return "b" if pipeline.weight_copies("dualpipe") == 2 else "a"

    @staticmethod
    def stage_weights(assessment):
        """Weights on a device in the middle of the pipeline. [bytes]"""
        stages = memory_by_stage(assessment.chosen.case)
        return stages[len(stages) // 2]["weights"]

    @cached_property
    def run_weights(self):
        return self.stage_weights(self.run)

    @cached_property
    def plain_weights(self):
        return self.stage_weights(self.plain)

    @cached_property
    def copies(self):
        return pipeline.weight_copies("dualpipe")

    # ---- load
    @cached_property
    def expert_share(self):
        flops = flops_per_token(self.model, self.seq_len)
        return flops.routed_experts / flops.total

    @cached_property
    def skewed(self):
        return self.expert_share * (self.skew - 1)

    @cached_property
    def rows(self):
        """Token copies that an average device of the group gets per micro-batch."""
        return self.seq_len * self.model.top_k

    @cached_property
    def deviations(self):
        return slowest_of(self.ep)

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
            design = self.make(
                accelerator=name,
                precision="bf16",
            )
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

    # ---- usual wrong answers
    @cached_property
    def slip_total_1(self):
        return (
            self.total
            + 3 * self.parts.experts_per_moe_layer
            + 3 * self.parts.shared_per_moe_layer
            - self.parts.mlp_dense
        )

    @cached_property
    def slip_total_2(self):
        return self.total - self.parts.routed_experts / 3

    @cached_property
    def slip_active_2(self):
        return self.active - self.parts.shared_experts

    @cached_property
    def slip_active_3(self):
        return self.active - self.parts.attention

    @cached_property
    def slip_ep_least_1(self):
        return self.least_ep(2)

    @cached_property
    def slip_chance_1(self):
        return 1 / math.sqrt(self.rows)
