"""Debug: MFU fell from 42 to 31 % after the fleet was doubled; what is arithmetic, what is a fault,
and what proves it."""

from __future__ import annotations

from functools import cached_property

from scantling import assess
from scantling.advise.diagnose import diagnose
from scantling.evidence.figures.figures import recreate

from ..measured import rate
from .base import bubble, design

NODES = {
    "a": ("node-041", 1.0),
    "b": ("node-087", 0.993),
    "c": ("node-173", None),
    "d": ("node-202", 1.006),
}


class Facts:
    """A 70B run on 1,024 devices and the same on twice as many, its batch unchanged; what both
    measured, and what the kit expects."""

    small, large, batch, seq_len, per_node = 1024, 2048, 512, 8192, 8
    tp, pp, micro_batch = 8, 4, 1
    mfu_small, mfu_large = 0.42, 0.31  # what the dashboard showed
    price = 2.5

    def _design(self, devices, **plan):
        return design(
            "llama-3.1-70b",
            devices,
            self.batch,
            15e12,
            seq_len=self.seq_len,
            plan=plan,
            stack="megatron-core",
        )

    @cached_property
    def pinned(self):
        return {
            "tp": self.tp,
            "pp": self.pp,
            "vpp": 1,
            "cp": 1,
            "micro_batch": self.micro_batch,
            "recompute": "none",
        }

    @cached_property
    def before(self):
        return assess(self._design(self.small, **self.pinned))

    @cached_property
    def after(self):
        return assess(self._design(self.large, **self.pinned))

    @cached_property
    def open_design(self):
        return self._design(self.large)

    @cached_property
    def best(self):
        return assess(self.open_design)

    @property
    def flops_per_token(self):
        return self.after.flops_per_token

    @property
    def peak(self):
        return self.after.resolved.cluster.accelerator.bf16_flops

    # ---------------------------------------------------------------- reading the dashboard
    def _step(
        self,
        devices,
        mfu,
    ):
        return self.batch * self.seq_len * self.flops_per_token / (devices * self.peak * mfu)

    @property
    def step_s(self):
        return self._step(self.large, self.mfu_large)

    @property
    def step_small_s(self):
        return self._step(self.small, self.mfu_small)

    @property
    def speedup(self):
        return self.step_small_s / self.step_s

    # ---------------------------------------------------------------- what growing alone does
    @property
    def dp(self):
        return self.large // (self.tp * self.pp)

    @property
    def m(self):
        return self.batch // (self.dp * self.micro_batch)

    @property
    def m_small(self):
        return self.m * self.large // self.small

    @property
    def bubble(self):
        return bubble(self.pp, self.m)

    @property
    def bubble_small(self):
        return bubble(self.pp, self.m_small)

    @property
    def bubble_over_ideal(self):
        return (self.pp - 1) / self.m

    @property
    def expected(self):
        return self.mfu_small * (1 - self.bubble) / (1 - self.bubble_small)

    @property
    def one_bubble(self):
        return self.mfu_small * (1 - self.bubble)

    @property
    def late(self):
        """How much longer the step is than the bubble explains."""
        return self.expected / self.mfu_large - 1

    @property
    def points(self):
        return self.expected - self.mfu_large

    # ---------------------------------------------------------------- the fault
    @property
    def slow(self):
        """How many times longer the slowest node takes: what is left between the kit's step and the
        measured one."""
        return self.step_s / self.after.step_s

    @property
    def slow_share(self):
        return self.slow - 1

    @property
    def slow_lost(self):
        return 1 - 1 / self.slow

    @cached_property
    def compute_ms(self):
        parts = self.after.step_breakdown_s
        return 1e3 * (parts["gemm"] + parts["attention"] + parts["elementwise"]) / self.m

    @cached_property
    def node_table(self):
        head = (
            "| node | compute a micro-batch | waiting in collectives, a step |\n| --- | "
            "---: | ---: |\n"
        )
        rows = []
        for name, factor in NODES.values():
            f = self.slow if factor is None else factor
            rows.append(
                f"| {name} | {self.compute_ms * f:.1f} ms | "
                f"{1e-3 * self.compute_ms * (self.slow - f) * self.m + 0.02:.2f} s |"
            )
        return head + "\n".join(rows)

    @cached_property
    def part_table(self):
        """Measured step parts of an ordinary rank beside those of the kit."""
        kit = self.after.step_breakdown_s
        compute = kit["gemm"] + kit["attention"] + kit["elementwise"] + kit["logits"]
        rest = kit["host"] + kit["pp"] + kit["optimizer"] + kit["straggler"]
        wait = self.step_s - compute - kit["tp"] - kit["bubble"] - rest
        rows = (
            ("matrix products, attention, norms, loss", compute, compute),
            ("tensor-parallel all-reduce", kit["tp"], kit["tp"]),
            ("pipeline idle", kit["bubble"], kit["bubble"]),
            ("gradient reduction", wait, kit["dp"]),
            ("the rest", rest, rest),
        )
        return "| part of a step | measured | the kit |\n| --- | ---: | ---: |\n" + "\n".join(
            f"| {n} | {a:.2f} s | {b:.2f} s |" for n, a, b in rows
        )

    @property
    def gradient_times(self):
        kit = self.after.step_breakdown_s
        return (self.step_s - (self.after.step_s - kit["dp"])) / kit["dp"]

    @property
    def slow_node(self):
        return "c"

    @property
    def lost_device_h(self):
        """Device-hours a day that everybody loses to the slowest node."""
        return self.large * 24 * (1 - 1 / self.slow)

    @property
    def lost_own_h(self):
        return self.per_node * 24 * (1 - 1 / self.slow)

    @property
    def lost_usd(self):
        return self.lost_device_h * self.price

    @cached_property
    def diagnosis(self):
        return diagnose(
            self._design(self.large, **self.pinned).change({"measured": {"mfu": self.mfu_large}})
        )

    @property
    def causes(self):
        return "\n".join(
            f"1. {c['cause']}{' (' + c['size'] + ')' if c['size'] else ''}; measure: {c['measure']}"
            for c in self.diagnosis.causes[:4]
        )

    @property
    def open_mfu(self):
        return self.best.mfu

    # ---------------------------------------------------------------- measured by others
    @cached_property
    def megascale(self):
        t = recreate("strong-scaling").table().set_index(["series", "x"])
        return t.loc["Megatron-LM, batch 6144"]

    @property
    def megascale_fall(self):
        t = self.megascale.published
        return 1 - t.iloc[-1] / t.iloc[0]

    @property
    def megascale_fall_ours(self):
        t = self.megascale.ours
        return 1 - t.iloc[-1] / t.iloc[0]

    @cached_property
    def bloom_bad_node(self):
        """Share of throughput that one bad node took from BLOOM's run, from its own log."""
        return 1 - rate("bloom-176b-prod-it42783-badnode") / rate("bloom-176b-prod-it42780")

    # ---- usual wrong answers
    @cached_property
    def slip_micro_2(self):
        return self.batch // (self.large // self.tp)

    @cached_property
    def slip_bubble_3(self):
        return self.pp / (self.m + self.pp)

    @cached_property
    def slip_late_2(self):
        return self.mfu_small / self.mfu_large - 1
