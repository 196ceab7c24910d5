"""Negotiate: an approved plan, then 30 % less budget and half the time; what can give, what each
gift costs, what to offer."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scantling.advise import scaling_laws as convergence
from scantling.base.units import HOUR_S, MINUTE_S
from scantling.endure import goodput
from scantling.evidence.published import best_published
from scantling.verdict.assess import assess

from ..measured import rate, runs
from ..question import Choice, Explain, Number, Option, Plan, PlanSlip, Point, Slip, Walkthrough
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
        return assess(self.run(self.devices, self.tokens, self.batch, "bf16"))

    @property
    def params(self):
        return float(self.base.params)

    @cached_property
    def published_mfu(self):
        """MFU of published dense bf16 runs on this device: from Llama 3's largest fleet to the
        record."""
        return runs("llama3-405b-t4-3")[0].mfu_measured, best_published(
            "h100-sxm", "bf16", False, self.seq_len
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
        return float(convergence.loss(self.params, self.tokens))

    @property
    def loss_tokens(self):
        return float(convergence.loss(self.params, self.cut_tokens))

    @property
    def loss_params(self):
        return float(convergence.loss(self.small_params, self.tokens))

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
        return float(d / n)

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
        return assess(self.run(self.more, self.tokens, self.batch, "bf16"))

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
        rows = {1024: None, 2048: self.base, 4096: self.doubled}
        rows[1024] = assess(self.run(1024, self.tokens, self.batch, "bf16"))
        rows[8192] = assess(self.run(8192, self.tokens, self.batch, "bf16"))
        n = np.array(sorted(rows), float)
        days = np.array([rows[int(k)].days for k in n])
        return {
            "the kit": (n, days),
            "days · devices constant": (n, self.base.days * self.devices / n),
        }

    # ---------------------------------------------------------------- precision
    @cached_property
    def low(self):
        return assess(self.run(self.devices, self.tokens, self.batch, "fp8"))

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
            "a": assess(self.run(self.more, self.tokens, self.batch, "bf16")),
            "b": self.low,
            "c": assess(self.run(self.middle, self.fewer_tokens, self.middle_batch, "fp8")),
            "d": assess(self.run(self.more, self.cut_tokens, self.batch, "bf16")),
            "e": assess(self.run(self.more, self.tokens, self.batch, "fp8")),
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
                f"${r.cost_usd / 1e6:.2f}M{' (over)' if dear else ''}{'' if late or dear else ': both kept'}"
            )
        return "\n".join(rows)

    @property
    def points(self):
        return {
            f"{k}": ([r.days], [r.cost_usd])
            for k, r in {"approved": self.base, **self.packages}.items()
        }

    @cached_property
    def open_design(self):
        return self.run(self.middle, self.fewer_tokens, self.middle_batch, "fp8")

    @property
    def best(self):
        return self.packages["c"]

    @property
    def loss_offer(self):
        return float(convergence.loss(self.params, self.fewer_tokens)) - self.loss_base

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
        return float(goodput.optimum_interval(self.spot_mtbf_h * HOUR_S, self.spot_save_s))

    @property
    def spot_useful(self):
        return float(
            goodput.ettr(
                self.spot_mtbf_h * HOUR_S,
                self.spot_save_s,
                self.spot_interval_s,
                restart_s=self.spot_restart_min * MINUTE_S,
            )
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
        return float(convergence.batch_size(self.tokens, "zhang-2024"))

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


QUESTIONS = (
    Explain(
        "ask",
        (
            "The plan was approved on Monday. On Thursday: 30 % less money, half the time. "
            "What do you ask before you offer anything?"
        ),
        "scope",
        "staff",
        (
            "Both limits at once are rarely both hard.",
            "What is a day worth, what is the floor for quality, what is fixed by contract?",
            "Money, time, quality, risk: which one may give, and who decides?",
        ),
        (
            "Which of the two is hard, and why; what a day is worth; whether tokens, model "
            "size, precision or the batch may move, and who signs for quality; whether the "
            "devices can be had, at which price and term; what happens when the run is "
            "late."
        ),
        "A negotiation needs the price of each thing that can give, before anything is given.",
        minutes=4,
        points=(
            Point(
                "which limit is hard, and where it comes from",
                (r"\b(hard|firm|which (one|limit)|flexible|why|contract|launch)",),
            ),
            Point(
                "what a day, or a delay, is worth",
                (r"\b(worth|value|revenue|delay|per day|opportunity)",),
            ),
            Point(
                "whether quality may give: tokens, size, precision; who signs",
                (r"\b(quality|tokens|loss|precision|fp8|smaller|size|research)",),
            ),
            Point(
                "supply: more devices, terms, spot, reserved",
                (r"\b(devices|gpus|capacity|availab|spot|reserv|supply|price)",),
            ),
            Point(
                "risk: what happens if it is late or fails",
                (r"\b(risk|late|fail|slip|buffer|margin)",),
            ),
        ),
        model=(
            "Which limit is hard and where does it come from? What is a day worth to the "
            "launch? May tokens, model size or precision give, and who in research signs? "
            "Can we get more devices, at what price and term, spot or reserved? What "
            "happens if we are late?"
        ),
    ),
    Number(
        "hours",
        (
            "The approved plan: Llama 3.1 70B, {tokens:params} tokens on {devices} H100 in "
            "{base.days:days}. How many device-hours?"
        ),
        "cost",
        "mid",
        ("Devices times time.", "`devices · days · 24`.", "`{devices} · {base.days:days} · 24 h`"),
        (
            "`{devices} · 24 · {base.days:days}` = {hours:hours}. By `6 · N · D` over the "
            "dense peak that is an MFU of {base.mfu:share} at a goodput of "
            "{base.goodput:share}."
        ),
        (
            "Negotiate in device-hours: they are what money buys, and what time and devices "
            "trade against each other."
        ),
        expected="hours",
        unit="h",
        within=1.04,
        shown="hours",
        slips=(
            Slip(lambda f: f.hours / 24, "That is device-days: times 24."),
            Slip(
                lambda f: f.hours / f.per_node, "Those are node-hours: {per_node} devices a node."
            ),
        ),
    ),
    Number(
        "usd",
        (
            "At {price:.2f} dollars a device-hour, the few spare nodes paid for as well: "
            "what does the run cost, in million dollars?"
        ),
        "cost",
        "mid",
        (
            "Hours times price.",
            "`hours · price`, and {base.spares} spare nodes on top.",
            "`{hours:hours} · {price:.2f}`",
        ),
        (
            "`{hours:hours} · {price:.2f}` and the spares: {usd:usd}. The new limits: "
            "{budget_usd:usd} and {deadline_days:days}."
        ),
        "Write the two new limits next to the two old numbers before you think about levers.",
        expected="usd",
        unit="M$",
        scale=1e6,
        within=1.04,
        shown="usd",
        slips=(
            Slip(
                "budget_usd",
                "That is after the cut; the question asks for the approved plan.",
                1.03,
            ),
            Slip(
                lambda f: f.usd * 2,
                "A factor of two: the price is per device-hour, not per half.",
                1.03,
            ),
            Slip(lambda f: f.usd / f.per_node, "The price is per device, not per node.", 1.03),
        ),
    ),
    Number(
        "tokens",
        (
            "First lever: train on less. With the money cut and all else as it is, how many "
            "tokens can you afford, in trillions?"
        ),
        "size",
        "mid",
        (
            "Cost goes with tokens.",
            "`(1 - cut) · tokens`.",
            "`(1 - {cut:share}) · {tokens:params}`",
        ),
        (
            "`(1 - {cut:share}) · {tokens:params}` = {cut_tokens:params}: the run would "
            "take {cut_days:days}, not half. One lever for two limits is not enough."
        ),
        "Tokens cut money and time by the same share; half the time needs something else as well.",
        expected="cut_tokens",
        unit="T",
        scale=1e12,
        within=1.03,
        shown="params",
        slips=(
            Slip(lambda f: f.cut * f.tokens, "That is what you lose, not what is left.", 1.02),
            Slip(
                lambda f: f.tokens / (1 + f.cut),
                "A cut of 30 % multiplies by 0.7; dividing by 1.3 is a smaller cut.",
                1.02,
            ),
        ),
    ),
    Choice(
        "softer",
        (
            "To save the same compute: (a) 30 % fewer tokens, or (b) a model of 49B instead "
            "of 70B on all the tokens. Which loses less, by the published law of loss?"
        ),
        "size",
        "staff",
        (
            "Where is this run against the compute-optimal line?",
            (
                "It has {per_param:.0f} tokens a parameter; the optimum at this compute has "
                "{optimal_per_param:.0f}."
            ),
            "`L = E + A / N^a + B / D^b`: which term is larger here?",
        ),
        "Loss {loss_base:.4f} now; {loss_tokens:.4f} with fewer tokens, "
        "{loss_params:.4f} with the smaller model. At {per_param:.0f} tokens a "
        "parameter the run is far beyond the optimum of {optimal_per_param:.0f}: its "
        "last tokens buy little. "
        "(The smaller model is cheaper to serve for ever after; that may still decide.)",
        "Cut on the side of the optimum you are on: over-trained runs give tokens cheaply.",
        expected="softer",
        options=(
            Option(
                "a",
                "30 % fewer tokens",
                "It adds {gain_tokens:.4f} to the loss, the smaller model {gain_params:.4f}.",
            ),
            Option(
                "b",
                "49B on all the tokens",
                (
                    "It adds {gain_params:.4f}, fewer tokens {gain_tokens:.4f}: the run is "
                    "past the optimum, so tokens are the cheaper gift."
                ),
            ),
        ),
    ),
    Choice(
        "half",
        (
            "Second lever: {more} devices instead of {devices}, the batch kept at {batch} "
            "sequences. Half the time for the same money?"
        ),
        "cost",
        "senior",
        (
            "What does a replica do when there are twice as many of them?",
            "Half the micro-batches each: what is paid once a step is paid for half the work.",
            "{base.days:days} on {devices}",
        ),
        (
            "{doubled.days:days} instead of {half_days:days}, and {doubled_usd_share:share} "
            "more money: pipeline, gradient reduction and everything else that happens once "
            "a step are shared by half the work."
        ),
        (
            "Time is bought with devices at a falling rate of exchange; at a fixed batch "
            "the rate falls faster."
        ),
        expected="half_answer",
        options=(
            Option("a", "better: less than half the time", "Nothing gets faster per device."),
            Option(
                "b",
                "yes, device-hours are device-hours",
                "Only if the step scales: fixed costs a step do not.",
            ),
            Option(
                "c",
                "no: more than half the time, so more money",
                "Yes: {doubled.days:days}, {doubled_usd_share:share} dearer.",
            ),
        ),
    ),
    Number(
        "fp8",
        (
            "Third lever: fp8. Matrix products of the linear layers are {gemm_share:share} "
            "of the step and would run twice as fast; nothing else changes. What speed-up "
            "do you expect?"
        ),
        "parallelism",
        "senior",
        ("Amdahl.", "`1 / (1 - share / 2)`.", "`1 / (1 - {gemm_share:share} / 2)`"),
        (
            "`1 / (1 - {gemm_share:share}/2)` = {amdahl:.2f}. The kit, with casts and with "
            "products that do not quite double, says {low_speedup:.2f}; a published recipe "
            "for this model measured {measured_speedup:.2f}."
        ),
        "Twice the peak is never twice the speed: multiply by the share it works on.",
        expected="amdahl",
        unit="times",
        within=1.08,
        slips=(
            Slip(
                lambda f: 2.0,
                "Twice is the matrix products alone; they are {gemm_share:share} of the step.",
                1.05,
            ),
            Slip(
                lambda f: 1 + f.gemm_share / 2,
                "You added the saved share; the step is what is left: divide by it.",
                1.03,
            ),
        ),
    ),
    Number(
        "spot",
        (
            "Fourth lever: spot devices at {spot_price:.2f} dollars. A reclaim takes the "
            "whole job every {spot_mtbf_h:g} hours on average, a restart takes "
            "{spot_restart_min:g} minutes, a save blocks for {spot_save_s:seconds}. What "
            "does a useful device-hour cost, in dollars?"
        ),
        "reliability",
        "staff",
        (
            "Price over goodput.",
            "Goodput with the best interval `sqrt(2 · save · MTBF)`: saves, lost work, restarts.",
            "interval {spot_interval_s:seconds}",
        ),
        (
            "Goodput {spot_useful:share} at a save every {spot_interval_s:seconds}: "
            "`{spot_price:.2f} / {spot_useful:share}` = {spot_usd:.2f} dollars, against "
            "{base_useful_usd:.2f} now. Money: yes, {spot_saving:share} less. Time: no, and "
            "the reclaim rate is somebody else's decision."
        ),
        "A spot price is divided by the goodput it leaves; it buys money with time and risk.",
        expected="spot_usd",
        unit="$",
        within=1.04,
        slips=(
            Slip(
                "spot_price",
                "That is the price of an hour, useful or not: divide by the goodput.",
                1.03,
            ),
            Slip("spot_only_restart", "The restarts are in; saves and lost work are not.", 1.012),
            Slip(
                lambda f: f.spot_price * f.spot_useful,
                "Times the goodput makes it cheaper than it is: divide.",
                1.03,
            ),
        ),
    ),
    Number(
        "batch",
        (
            "Fifth lever: research could double the batch, so that more devices stay busy. "
            "By the law of Zhang et al. the critical batch is {critical:params} tokens; you "
            "run {batch_tokens:params}. It costs tokens: how many per cent more? (Tokens go "
            "as `1 + 0.2 · B / B_crit`.)"
        ),
        "parallelism",
        "staff",
        (
            "What is spent now, what would be spent at twice the batch?",
            "`(1 + 0.2 · 2B/Bc) / (1 + 0.2 · B/Bc) - 1`.",
            "`B/Bc` = {batch_ratio:.2f}",
        ),
        (
            "`(1 + 0.2 · {twice_ratio:.2f}) / (1 + 0.2 · {batch_ratio:.2f}) - 1` = "
            "{twice_extra:share}: about what the doubled devices lose at the old batch. The "
            "laws are fitted on small models; that is a question for research, not a "
            "promise."
        ),
        (
            "A larger batch buys device efficiency with tokens; below the critical batch "
            "the trade is nearly free, beyond it is not."
        ),
        expected="twice_extra",
        unit="%",
        scale=0.01,
        within=1.12,
        slips=(
            Slip(lambda f: 1.0, "Twice the batch is half the steps, not twice the tokens.", 1.05),
            Slip(
                lambda f: 0.2 * 2 * f.batch_tokens / f.critical,
                (
                    "That is the overhead over the least possible; what you already spend "
                    "is part of it."
                ),
                1.04,
            ),
        ),
    ),
    Choice(
        "package",
        (
            "Both limits: {budget_usd:usd} and {deadline_days:days}. Which packages keep "
            "them? (By the kit twice the devices take {doubled_usd_share:share} more "
            "device-hours at this batch, and fp8 is {low_speedup:.2f} times as fast.)"
        ),
        "cost",
        "staff",
        (
            "Two inequalities for each.",
            "fp8 cuts hours by `1 - 1/{low_speedup:.2f}`; devices cut days; tokens cut both.",
            "Work out days first, then dollars.",
        ),
        "{package_lines}",
        "Two limits need two levers: one that lowers the hours, one that spends them faster.",
        expected="meets",
        several=True,
        minutes=6,
        options=(
            Option(
                "a",
                "{more} devices, bf16, all tokens",
                "{packages[a].days:days}, {packages[a].cost_usd:usd}.",
            ),
            Option(
                "b",
                "{devices} devices, fp8, all tokens",
                "{packages[b].days:days}, {packages[b].cost_usd:usd}.",
            ),
            Option(
                "c",
                "{middle} devices, fp8, {fewer_tokens:params} tokens",
                "{packages[c].days:days}, {packages[c].cost_usd:usd}.",
            ),
            Option(
                "d",
                "{more} devices, bf16, {cut_tokens:params} tokens",
                "{packages[d].days:days}, {packages[d].cost_usd:usd}.",
            ),
            Option(
                "e",
                "{more} devices, fp8, all tokens",
                "{packages[e].days:days}, {packages[e].cost_usd:usd}.",
            ),
        ),
    ),
    Number(
        "day",
        (
            "Compare b and e: the same tokens in fp8, {packages[b].days:days} for "
            "{packages[b].cost_usd:usd} on {devices} devices, {packages[e].days:days} for "
            "{packages[e].cost_usd:usd} on {more}. From which value of a day on, in "
            "thousand dollars, is e the better deal?"
        ),
        "cost",
        "staff",
        (
            "What do you pay more, and how many days does it buy?",
            "`(dollars e - dollars b) / (days b - days e)`.",
            (
                "`({packages[e].cost_usd:usd} - {packages[b].cost_usd:usd}) / "
                "({packages[b].days:days} - {packages[e].days:days})`"
            ),
        ),
        (
            "`({packages[e].cost_usd:usd} - {packages[b].cost_usd:usd}) / "
            "({packages[b].days:days} - {packages[e].days:days})` = {day_usd:usd} a day. If "
            "a day earlier is worth more than that to the company, it should buy more "
            "devices, and the cut of the budget is a mistake."
        ),
        (
            "The slope of the frontier is the price of a day: say it aloud, and the "
            "decision leaves your desk."
        ),
        expected="day_usd",
        unit="k$",
        scale=1e3,
        within=1.12,
        shown="usd",
        slips=(
            Slip(
                "mean_day_usd",
                (
                    "That is what a day of training costs on average; the question is what "
                    "one day less costs."
                ),
                1.05,
            ),
        ),
    ),
    Plan(
        "plan",
        (
            "The offer on the table is {middle} devices, fp8, {fewer_tokens:params} tokens, "
            "batch {middle_batch}. Give a plan within a tenth of the best step."
        ),
        "parallelism",
        "senior",
        (
            "Tensor parallelism inside the node, as little as memory allows.",
            (
                "Replicas have to divide the batch: `{middle} / (tensor · pipeline)` into "
                "{middle_batch}."
            ),
            "Interleave: {layers} layers over stages times chunks.",
        ),
        "The kit's best: {best.step_s:seconds} a step, {best.days:days} for {best.cost_usd:usd}.",
        "A package is only real with a plan that fits it.",
        design="open_design",
        names=("tp", "pp", "vpp", "micro_batch"),
        minutes=5,
        slips=(
            PlanSlip(
                {"tp": 8, "pp": 4, "vpp": 1, "cp": 1, "micro_batch": 1, "recompute": "none"},
                lambda plan, a, f: plan.get("tp") == 8 and plan.get("vpp", 1) == 1,
                (
                    "It runs, at {a.step_s:seconds} against {best.step_s:seconds}: "
                    "{a.bubble_fraction:share} of the step is idle, and fp8 makes eight-way "
                    "reductions a larger part of it."
                ),
            ),
        ),
    ),
    Number(
        "margin",
        (
            "Package c, {best.days:days} for {best.cost_usd:usd}, rests on a step time that "
            "nobody has measured. By how many per cent may it be longer before one of the "
            "two limits breaks?"
        ),
        "verification",
        "staff",
        (
            "Both limits scale with the step; one breaks first.",
            "`limit / value - 1` for days and for dollars; the smaller one.",
            (
                "days `{deadline_days:days} / {best.days:days}`, dollars `{budget_usd:usd} "
                "/ {best.cost_usd:usd}`"
            ),
        ),
        "Days leave {margin_in_days_share:share}, dollars {margin_in_usd_share:share}: "
        "the smaller one is {margin:share}; the kit's own band on this step reaches "
        "{band_up:share} up. A trial on {trial_devices} devices for a day costs "
        "{trial_usd:usd}, {trial_share:share} of the budget, "
        "and measures exactly that number; it also shows the first loss curve in fp8.",
        (
            "Before the money is spent, know the number at which you would withdraw, and "
            "buy the measurement of it."
        ),
        expected="margin",
        unit="%",
        scale=0.01,
        within=1.12,
        slips=(
            Slip(
                lambda f: max(f.margin_in_days_share, f.margin_in_usd_share),
                "That is the looser limit; the other one breaks first.",
                1.1,
            ),
        ),
    ),
    Explain(
        "offer",
        "Make the offer: three options in six lines, a recommendation, and what would change it.",
        "telling",
        "staff",
        (
            "Three options: money, time, quality, risk of each.",
            "One recommendation.",
            "What has to be decided, by whom, until when.",
        ),
        (
            "One line an option with days, dollars, loss and risk; then which one and why; "
            "then the decision needed and its date; then what you will measure first and "
            "what would make you come back."
        ),
        (
            "Options with prices and one recommendation: the others decide on values, you "
            "answer for the numbers."
        ),
        minutes=5,
        points=(
            Point(
                "each option with days and dollars",
                (r"\b(days?)\b.*(\$|dollars?|million|M\b)", r"(\$|dollars?|million).*\bdays?\b"),
            ),
            Point(
                "what gives: tokens or precision, and who signs for quality",
                (r"\b(tokens|fp8|precision|quality|loss|research|sign)",),
            ),
            Point(
                "one clear recommendation", (r"\b(recommend|i would|my choice|we should|propose)",)
            ),
            Point("the price of a day", (r"\b(per day|a day|price of a day|value of a day)",)),
            Point(
                "risk and what is measured first",
                (r"\b(risk|measure|test|trial|fall ?back|if .*fails|validate)",),
            ),
        ),
        model="Option one: 3,072 devices, fp8, fewer tokens: inside both limits in days and "
        "dollars. Option two: all tokens on 4,096 in fp8: in time, over budget. Option "
        "three: 2,048 in fp8: all tokens at the least money, late. I recommend the "
        "first if research signs the tokens and fp8; "
        "the second if a day is worth more than its price per day. Risk: fp8 stability; "
        "we measure a week of fp8 against bf16 first and fall back with the deadline "
        "moved.",
    ),
)

WALKTHROUGH = Walkthrough(
    "08", "negotiate", "Negotiate: 30 % less budget, half the time", 55, Facts, QUESTIONS
)
