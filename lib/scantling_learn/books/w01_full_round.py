"""The full round: a dense model of the 100B to 700B class on 16,384 H100, from the first questions
to the defence of the plan."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from scantling import assess
from scantling.base.units import DAY_S
from scantling.catalogue.models.shape import flops_per_token, parameters
from scantling.endure import goodput

from ..measured import published, runs
from .base import DesignFacts, bubble, design


class Facts(DesignFacts):
    """The fleet, the model, and what the kit makes of them."""

    tokens = 15.6e12
    devices = 16_384
    mfu = 0.40
    stall_s = 10.0
    interval_hour_s = 3600.0

    @cached_property
    def design(self):
        return design(
            "llama-3.1-405b",
            self.devices,
            2048,
            self.tokens,
            scale_out="rocev2-400",
            cluster={"pod_devices": 3072},
            preset="llama3",
            name="Llama 3.1 405B on 16,384 H100",
        )

    # ---- size
    @cached_property
    def parts(self):
        return parameters(self.model)

    @cached_property
    def params(self):
        return self.parts.total

    @cached_property
    def params_mha(self):
        return parameters(
            replace(
                self.model,
                attention="mha",
                kv_heads=self.model.heads,
            )
        ).total

    @cached_property
    def params_plain(self):
        return parameters(replace(self.model, mlp="gelu")).total

    @cached_property
    def params_layer(self):
        return (self.params - self.parts.embedding - self.parts.lm_head) / self.model.layers

    @cached_property
    def rule(self):
        return 12.0 * self.model.layers * self.model.hidden**2

    @cached_property
    def flops(self):
        return 6 * self.params * self.tokens

    @cached_property
    def flops_exact(self):
        return flops_per_token(self.model, 8192).total * self.tokens

    @cached_property
    def days_at_mfu(self):
        return self.flops / (self.devices * self.chip.bf16_flops * self.mfu) / DAY_S

    @cached_property
    def published_hours(self):
        return published("llama31-405b-hours")

    @cached_property
    def published_days(self):
        return self.published_hours.value / self.devices / 24

    # ---- memory
    @cached_property
    def state_bytes(self):
        return 18 * self.params

    @cached_property
    def state_devices(self):
        return self.state_bytes / self.chip.hbm_usable_bytes

    # ---- plan
    @cached_property
    def runs(self):
        return runs("llama3-405b-t4-1", "llama3-405b-t4-2")

    @cached_property
    def plan_rows(self):
        return [
            (name, assess(self.design.change(plan=plan)))
            for name, plan in (
                ("the best found", {}),
                (
                    "tp 8 · pp 16 · dp 128, as published",
                    {
                        "tp": 8,
                        "pp": 16,
                        "dp": 128,
                    },
                ),
                ("tp 16: across two nodes", {"tp": 16}),
                ("tp 4", {"tp": 4}),
            )
        ]

    # ---- network
    @cached_property
    def ratio(self):
        return self.up / self.out

    @cached_property
    def micro_batches(self):
        return 2048 // 128

    @cached_property
    def bubble(self):
        return bubble(16, self.micro_batches)

    @cached_property
    def bubble_over_ideal(self):
        return (16 - 1) / self.micro_batches

    @cached_property
    def bubble_interleaved(self):
        return bubble(16, self.micro_batches, 8)

    # ---- failures
    @cached_property
    def endurance(self):
        return self.result.endurance

    @cached_property
    def rate(self):
        return self.endurance.failures_per_1000_node_days

    @cached_property
    def nodes(self):
        return self.devices // 8

    @cached_property
    def mtbf_s(self):
        return self.endurance.mtbf_s

    @cached_property
    def young_s(self):
        return goodput.young(self.mtbf_s, self.stall_s)

    @cached_property
    def recovery_s(self):
        return self.endurance.recovery_s

    @cached_property
    def lost(self):
        """Share of the wall time lost at Young's interval, exactly; first-order sums lie within a
        few per cent of it."""
        return 1 - goodput.ettr(
            self.mtbf_s,
            self.stall_s,
            self.young_s,
            down_s=self.recovery_s,
        )

    @cached_property
    def goodput_share(self):
        return 1 - self.lost

    @cached_property
    def lost_saves(self):
        return self.stall_s / (self.young_s + self.stall_s)

    @cached_property
    def lost_work(self):
        return self.young_s / 2 / self.mtbf_s

    @cached_property
    def lost_recovery(self):
        return self.recovery_s / self.mtbf_s

    @cached_property
    def lost_hourly(self):
        return 1 - goodput.ettr(
            self.mtbf_s,
            self.stall_s,
            self.interval_hour_s,
            down_s=self.recovery_s,
        )

    # ---- money
    @cached_property
    def price(self):
        return self.result.cost.usd_per_device_hour

    @cached_property
    def usd(self):
        return self.days_at_mfu / (1 - self.lost) * 24 * self.devices * self.price

    @cached_property
    def usd_range(self):
        return self.usd * self.mfu / 0.45, self.usd * self.mfu / 0.35

    @cached_property
    def five_points(self):
        return self.usd * self.mfu * (1 / 0.40 - 1 / 0.45)

    # ---- half the fleet
    @cached_property
    def smaller(self):
        return assess(self.design.change({"cluster.devices": self.devices // 2}))

    @cached_property
    def half_answer(self):
        return "b" if self.smaller.mfu > self.result.mfu else "a"

    # ---- usual wrong answers
    @cached_property
    def slip_badput_2(self):
        return self.lost_saves + self.lost_work

    @cached_property
    def slip_badput_3(self):
        return self.lost_saves + 2 * self.lost_work + self.lost_recovery
