"""Negotiate: an approved plan, then 30 % less budget and half the time; what can give, what each
gift costs, what to offer."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scantling import assess
from scantling.advise import scaling_laws as convergence
from scantling.base.units import HOUR_S, MINUTE_S
from scantling.catalogue.published import best_published
from scantling.endure import goodput

from ..measured import rate, runs
from .base import design


class Facts:
    """The approved run, the cut, and the packages that might meet it, each by the kit."""

    devices, more, middle, per_node, tokens, fewer_tokens, seq_len = (
        2048,
        4096,
        3072,
        8,
        8e12,
        6.6e12,
        8192,
    )
    batch, middle_batch, price, cut, faster, layers = 1024, 768, 2.5, 0.30, 0.5, 80
    small_params, trial_devices, trial_h = 49.4e9, 128, 24
    spot_price, spot_mtbf_h, spot_restart_min, spot_save_s = 1.5, 2.0, 12.0, 30.0

    def run(self, devices, tokens, batch, precision, **plan):
        return design(
            "llama-3.1-70b",
            devices,
            batch,
            tokens,
            seq_len=self.seq_len,
            precision=precision,
            plan=plan,
            stack="megatron-core",
            usd=self.price,
            preset="llama3",
        )

    # ---------------------------------------------------------------- the approved plan
    @cached_property
    def base(self):
        return assess(
            self.run(
                self.devices,
                self.tokens,
                self.batch,
                "bf16",
            )
        )

    @property
    def params(self):
        return self.base.params

    @cached_property
    def published_mfu(self):
        """MFU of published dense bf16 runs on this device: from Llama 3's largest fleet to the
        record."""
        return runs("llama3-405b-t4-3")[0].mfu_measured, best_published(
            "h100-sxm",
            "bf16",
            False,
            self.seq_len,
        ).mfu

    @property
    def hours(self):
        return self.devices * 24 * self.base.days

    @property
    def usd(self):
        return self.base.cost_usd

    @property
    def budget_usd(self):
        return (1 - self.cut) * self.usd

    @property
    def deadline_days(self):
        return self.faster * self.base.days

    # ---------------------------------------------------------------- tokens, parameters
    @property
    def cut_tokens(self):
        return (1 - self.cut) * self.tokens

    @property
    def cut_days(self):
        return (1 - self.cut) * self.base.days

    @property
    def loss_base(self):
        return convergence.loss(self.params, self.tokens)

    @property
    def loss_tokens(self):
        return convergence.loss(self.params, self.cut_tokens)

    @property
    def loss_params(self):
        return convergence.loss(self.small_params, self.tokens)

    @property
    def gain_tokens(self):
        return self.loss_tokens - self.loss_base

    @property
    def gain_params(self):
        return self.loss_params - self.loss_base

    @property
    def softer(self):
        return "a" if self.loss_tokens < self.loss_params else "b"

    @property
    def per_param(self):
        return self.tokens / self.params

    @property
    def optimal_per_param(self):
        n, d = convergence.compute_optimal(6 * self.params * self.tokens)
        return d / n

    @cached_property
    def loss_curves(self):
        d = np.geomspace(2e12, 16e12, 40)
        return {
            "70B": (d, convergence.loss(self.params, d)),
            "49B": (d, convergence.loss(self.small_params, d)),
        }

    # ---------------------------------------------------------------- devices
    @cached_property
    def doubled(self):
        return assess(
            self.run(
                self.more,
                self.tokens,
                self.batch,
                "bf16",
            )
        )

    @property
    def doubled_usd_share(self):
        return self.doubled.cost_usd / self.usd - 1

    @property
    def half_days(self):
        return self.base.days * self.devices / self.more

    @property
    def half_answer(self):
        return "c" if self.doubled.days > 1.01 * self.half_days else "b"

    @cached_property
    def scale_curves(self):
        rows = {
            1024: None,
            2048: self.base,
            4096: self.doubled,
        }
        rows[1024] = assess(
            self.run(
                1024,
                self.tokens,
                self.batch,
                "bf16",
            )
        )
        rows[8192] = assess(
            self.run(
                8192,
                self.tokens,
                self.batch,
                "bf16",
            )
        )
        n = np.array(sorted(rows), float)
        days = np.array([rows[int(k)].days for k in n])
        return {
            "the kit": (n, days),
            "days · devices constant": (n, self.base.days * self.devices / n),
        }

    # ---------------------------------------------------------------- precision
    @cached_property
    def low(self):
        return assess(
            self.run(
                self.devices,
                self.tokens,
                self.batch,
                "fp8",
            )
        )

    @property
    def gemm_share(self):
        return self.base.step_breakdown_s["gemm"] / self.base.step_s

    @property
    def amdahl(self):
        """Speed-up when the linear layers' products run twice as fast and nothing else does."""
        return 1 / (1 - self.gemm_share / 2)

    @property
    def low_speedup(self):
        return self.base.step_s / self.low.step_s

    @cached_property
    def measured_speedup(self):
        """fp8 over bf16 of one published recipe, Llama 3.1 70B on 512 H100."""
        return rate("dgxc-70b-v25.04.02-10") / rate("dgxc-70b-v25.04.02-04")

    # ---------------------------------------------------------------- packages
    @cached_property
    def packages(self):
        return {
            "a": assess(
                self.run(
                    self.more,
                    self.tokens,
                    self.batch,
                    "bf16",
                )
            ),
            "b": self.low,
            "c": assess(
                self.run(
                    self.middle,
                    self.fewer_tokens,
                    self.middle_batch,
                    "fp8",
                )
            ),
            "d": assess(
                self.run(
                    self.more,
                    self.cut_tokens,
                    self.batch,
                    "bf16",
                )
            ),
            "e": assess(
                self.run(
                    self.more,
                    self.tokens,
                    self.batch,
                    "fp8",
                )
            ),
        }

    @property
    def meets(self):
        """The packages that keep both limits."""
        return [
            k
            for k, r in self.packages.items()
            if r.days <= self.deadline_days and r.cost_usd <= self.budget_usd
        ]

    @property
    def package_lines(self):
        rows = []
        for k, r in self.packages.items():
            late, dear = r.days > self.deadline_days, r.cost_usd > self.budget_usd
            rows.append(
                f"- {k}: {r.days:.1f} days{' (late)' if late else ''}, "
                f"${r.cost_usd / 1e6:.2f}M{' (over)' if dear else ''}"
                f"{'' if late or dear else ': both kept'}"
            )
        return "\n".join(rows)

    @property
    def points(self):
        return {
            f"{k}": ([r.days], [r.cost_usd])
            for k, r in {
                "approved": self.base,
                **self.packages,
            }.items()
        }

    @cached_property
    def open_design(self):
        return self.run(
            self.middle,
            self.fewer_tokens,
            self.middle_batch,
            "fp8",
        )

    @property
    def best(self):
        return self.packages["c"]

    @property
    def loss_offer(self):
        return convergence.loss(self.params, self.fewer_tokens) - self.loss_base

    @property
    def margin_in_days_share(self):
        return self.deadline_days / self.best.days - 1

    @property
    def margin_in_usd_share(self):
        return self.budget_usd / self.best.cost_usd - 1

    @property
    def margin(self):
        """How much longer a step of package c may take before one of the limits breaks."""
        return min(self.margin_in_days_share, self.margin_in_usd_share)

    @property
    def band_up(self):
        return self.best.step_s_high / self.best.step_s - 1

    @property
    def trial_usd(self):
        return self.trial_devices * self.trial_h * self.price

    @property
    def trial_share(self):
        return self.trial_usd / self.budget_usd

    # ---------------------------------------------------------------- the price of a day
    @property
    def day_usd(self):
        """Dollars paid for each day that package e finishes before package b."""
        b, e = self.packages["b"], self.packages["e"]
        return (e.cost_usd - b.cost_usd) / (b.days - e.days)

    @property
    def mean_day_usd(self):
        return self.packages["e"].cost_usd / self.packages["e"].days

    # ---------------------------------------------------------------- spot
    @property
    def spot_interval_s(self):
        return goodput.optimum_interval(self.spot_mtbf_h * HOUR_S, self.spot_save_s)

    @property
    def spot_useful(self):
        return goodput.ettr(
            self.spot_mtbf_h * HOUR_S,
            self.spot_save_s,
            self.spot_interval_s,
            restart_s=self.spot_restart_min * MINUTE_S,
        )

    @property
    def spot_usd(self):
        """Dollars per useful device-hour."""
        return self.spot_price / self.spot_useful

    @property
    def spot_only_restart(self):
        return self.spot_price / (1 - self.spot_restart_min / 60 / self.spot_mtbf_h)

    @property
    def base_useful_usd(self):
        return self.price / self.base.goodput

    @property
    def spot_saving(self):
        return 1 - self.spot_usd / self.base_useful_usd

    @property
    def spot_days(self):
        return self.low.days * self.low.goodput / self.spot_useful

    # ---------------------------------------------------------------- batch
    @property
    def batch_tokens(self):
        return self.batch * self.seq_len

    @property
    def critical(self):
        return convergence.batch_size(self.tokens, "zhang-2024")

    @property
    def batch_ratio(self):
        return self.batch_tokens / self.critical

    @property
    def twice_ratio(self):
        return 2 * self.batch_ratio

    @property
    def twice_extra(self):
        """Share of tokens that twice the batch spends over the present one, by the source's own
        definition of critical."""
        law = convergence.BATCH_LAWS["zhang-2024"]
        at = lambda b: 1 + law.overhead * b / self.critical  # noqa: E731
        return at(2 * self.batch_tokens) / at(self.batch_tokens) - 1

    # ---- usual wrong answers
    @cached_property
    def slip_tokens_2(self):
        return self.tokens / (1 + self.cut)

    @cached_property
    def slip_fp8_2(self):
        return 1 + self.gemm_share / 2

    @cached_property
    def slip_margin_1(self):
        return max(self.margin_in_days_share, self.margin_in_usd_share)
