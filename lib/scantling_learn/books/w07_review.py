"""Review: a plan for a 70B run with three planted faults, and lines that only look wrong."""

from __future__ import annotations

from functools import cached_property

from scantling import assess
from scantling.base.units import DAY_S, HOUR_S
from scantling.catalogue import storage
from scantling.catalogue.models.entries import models
from scantling.catalogue.models.shape import parameters
from scantling.catalogue.published import best_published
from scantling.endure import checkpoint, goodput
from scantling.evidence.figures.figures import recreate

from ..measured import published
from .base import bubble, design


class Facts:
    """What the plan states, and what its numbers should have been."""

    devices, per_node, tokens, batch, seq_len, deadline_days = 1024, 8, 15e12, 512, 8192, 100
    tp, pp, micro_batch, bytes_per_param = 16, 4, 1, 14
    store_bytes_per_s, save_every_s, price, oversubscription = 10e9, 1800.0, 2.5, 4.0
    said_mfu, sparse_flops = 0.40, 1979e12

    def _design(self, devices=None, **plan):
        return design(
            "llama-3.1-70b",
            devices or self.devices,
            self.batch,
            self.tokens,
            seq_len=self.seq_len,
            plan=plan,
            stack="megatron-core",
            usd=self.price,
            preset="llama3",
            cluster={
                "pod_devices": 512,
                "oversubscription": self.oversubscription,
            },
        )

    def _pinned(self, tp):
        own = dict(
            vpp=1,
            cp=1,
            micro_batch=self.micro_batch,
            recompute="none",
        )
        return assess(
            self._design(
                tp=tp,
                pp=self.pp,
                **own,
            )
        )

    @cached_property
    def stated(self):
        """The plan of the document, by the kit."""
        return self._pinned(self.tp)

    @cached_property
    def inside(self):
        """The same with tensor parallelism inside the node."""
        return self._pinned(8)

    @cached_property
    def open_design(self):
        return self._design()

    @cached_property
    def best(self):
        return assess(self.open_design)

    @property
    def params(self):
        return self.stated.params

    @cached_property
    def params_elsewhere(self):
        """(ours, printed) parameters of the model."""
        row = recreate("parameters").table().set_index("x").loc["llama-3.1-70b"]
        return row.ours, row.published

    @property
    def dense_flops(self):
        return self.stated.resolved.cluster.accelerator.bf16_flops

    # ---------------------------------------------------------------- compute and days
    @property
    def flops(self):
        return 6 * self.params * self.tokens

    def _days(
        self,
        peak,
        mfu,
    ):
        return self.flops / (self.devices * peak * mfu) / DAY_S

    @property
    def said_days(self):
        return self._days(self.sparse_flops, self.said_mfu)

    @property
    def said_usd(self):
        return self.devices * 24 * self.said_days * self.price

    @property
    def dense_days(self):
        return self._days(self.dense_flops, self.said_mfu)

    @property
    def implied(self):
        """MFU of the dense peak that the stated days take."""
        return self.said_mfu * self.sparse_flops / self.dense_flops

    @property
    def record(self):
        return best_published(
            "h100-sxm",
            "bf16",
            False,
            self.seq_len,
        )

    @property
    def said_gpu_h(self):
        return self.devices * 24 * self.said_days

    @property
    def card_gpu_h(self):
        return published("llama31-70b-hours").value

    @property
    def best_gpu_h(self):
        return self.devices * 24 * self.best.days

    # ---------------------------------------------------------------- tensor parallelism
    @property
    def layers(self):
        return self.stated.resolved.model.layers

    @property
    def hidden(self):
        return self.stated.resolved.model.hidden

    @property
    def stage_layers(self):
        return self.layers // self.pp

    def _micro_batches(self, tp):
        return self.batch * tp * self.pp // (self.devices * self.micro_batch)

    @property
    def m(self):
        return self._micro_batches(self.tp)

    @property
    def m_inside(self):
        return self._micro_batches(8)

    @property
    def activation_bytes(self):
        """One layer's activations of one micro-batch: what an all-reduce carries."""
        return self.micro_batch * self.seq_len * self.hidden * 2.0

    def _tp_bytes(self, tp):
        return (
            4
            * 2
            * (tp - 1)
            / tp
            * self.activation_bytes
            * self.stage_layers
            * self._micro_batches(tp)
        )

    @property
    def tp_bytes(self):
        """Bytes that a device sends for tensor parallelism in one step: two all-reduces forward and
        two backward, a layer and micro-batch."""
        return self._tp_bytes(self.tp)

    @property
    def tp_bytes_inside(self):
        return self._tp_bytes(8)

    @property
    def tp_cost(self):
        """Times longer that the step is with tensor parallelism across nodes."""
        return self.stated.step_s / self.inside.step_s

    # ---------------------------------------------------------------- memory
    @property
    def states_bytes(self):
        """Weights, fp32 gradients, and Adam's states over the replicas, of one device at tensor 8,
        pipeline 4."""
        share = self.params / (8 * self.pp)
        return share * 6 + share * 12 / self.dp_inside

    @property
    def dp_inside(self):
        return self.devices // (8 * self.pp)

    @property
    def states_unsharded(self):
        return self.params / (8 * self.pp) * 18

    @property
    def bubble(self):
        return bubble(self.pp, self.m)

    # ---------------------------------------------------------------- saves
    @property
    def said_save_bytes(self):
        return 2 * self.params

    @cached_property
    def save_bytes(self):
        return checkpoint.contents(self.params).total

    @cached_property
    def bloom_save_bytes(self):
        """The same sum for BLOOM 176B."""
        return checkpoint.contents(parameters(models()["bloom-176b"]).total).total

    @property
    def save_s(self):
        return self.save_bytes / self.store_bytes_per_s

    @property
    def said_save_s(self):
        return self.said_save_bytes / self.store_bytes_per_s

    @property
    def tectonic_bytes_per_s(self):
        return storage("meta-tectonic").total_write_bytes_per_s

    @property
    def store_ratio(self):
        return self.tectonic_bytes_per_s / self.store_bytes_per_s

    @property
    def overhead(self):
        return self.save_s / (self.save_every_s + self.save_s)

    @property
    def said_overhead(self):
        return self.said_save_s / (self.save_every_s + self.said_save_s)

    @property
    def mtbf_s(self):
        return self.stated.mtbf_s

    @property
    def interval_s(self):
        return goodput.young(self.mtbf_s, self.save_s)

    # ---------------------------------------------------------------- the outcome
    @property
    def needed(self):
        """Devices for the deadline at the best plan's rate per device."""
        return self.devices * self.best.days / self.deadline_days

    @property
    def needed_said(self):
        return self.devices * self.said_days / self.deadline_days

    @property
    def needed_stated(self):
        return self.devices * self.stated.days / self.deadline_days

    @property
    def real(self):
        return ["b", "c", "f"]

    @cached_property
    def document(self):
        rows = (
            (
                "a",
                "compute",
                (
                    f"6 · N · D = {self.flops / 1e24:.2f} · 10²⁴ FLOP for "
                    f"{self.params / 1e9:.1f}B parameters and {self.tokens / 1e12:.0f}T "
                    f"tokens"
                ),
            ),
            (
                "b",
                "time",
                (
                    f"MFU {self.said_mfu * 100:.0f} % of {self.sparse_flops / 1e12:,.0f} "
                    f"TFLOP/s on {self.devices:,} H100: {self.said_days:.0f} days, before "
                    f"the deadline of {self.deadline_days}"
                ),
            ),
            (
                "c",
                "layout",
                (
                    f"tensor {self.tp} · pipeline {self.pp} · data "
                    f'{self.devices // (self.tp * self.pp)}, nodes of {self.per_node}; "wide '
                    f'tensor parallelism leaves room in memory"'
                ),
            ),
            (
                "d",
                "bubble",
                (
                    f"{self.m} micro-batches, {self.pp} stages: {self.bubble * 100:.1f} % of "
                    f"the step; no recompute"
                ),
            ),
            (
                "e",
                "network",
                (
                    f"InfiniBand 400 Gb/s a device, {self.oversubscription:.0f}:1 at the "
                    f'spine between pods of 512: "only gradients cross it"'
                ),
            ),
            (
                "f",
                "checkpoints",
                (
                    f"{self.said_save_bytes / 1e9:.0f} GB every {self.save_every_s / 60:.0f} "
                    f"minutes to a {self.store_bytes_per_s / 1e9:.0f} GB/s file system, "
                    f"training waits: {self.said_save_s:.0f} s, "
                    f"{self.said_overhead * 100:.1f} %"
                ),
            ),
            (
                "g",
                "failures",
                f"the rate of Llama 3's fleet: one in {self.mtbf_s / HOUR_S:.0f} hours",
            ),
            (
                "h",
                "cost",
                (
                    f"{self.devices:,} · 24 · {self.said_days:.0f} · ${self.price:.2f} = "
                    f"${self.said_usd / 1e6:.1f}M"
                ),
            ),
        )
        return rows

    # ---- usual wrong answers
    @cached_property
    def slip_states_2(self):
        return self.params / 32 * 4 + self.params / 32 * 12 / self.dp_inside

    @cached_property
    def slip_overhead_2(self):
        return 8 * self.save_s / (self.save_every_s + 8 * self.save_s)

    @cached_property
    def slip_interval_1(self):
        return (self.save_s * self.mtbf_s) ** 0.5

    @cached_property
    def slip_interval_2(self):
        return (2 * self.said_save_s * self.mtbf_s) ** 0.5
