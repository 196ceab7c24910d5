"""Negotiate: an approved plan, then 30 % less budget and half the time; what can give, what each
gift costs, what to offer."""

from functools import cached_property

import numpy as np
from scantling import Assessment, assess
from scantling.base import show
from scantling.base.columns import Array
from scantling.base.units import HOUR_S, MINUTE_S
from scantling.catalogue import scaling_laws
from scantling.catalogue.published import best_published
from scantling.catalogue.published_laws import BATCH_LAWS
from scantling.design.design import Design
from scantling.endure import goodput

from .. import measured
from ..question import (
    FLEET,
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
from .shared_sums import run_days, run_usd, swept


class Facts:
    """The numbers of the book, each worked out when it is first asked for, with its unit."""

    devices = 2048  # devices
    more = 4096  # devices
    middle = 3072  # devices
    per_node = 8  # devices
    tokens = 8e12  # tokens
    fewer_tokens = 6.6e12  # tokens
    seq_len = 8192  # tokens
    batch = 1024  # sequences
    middle_batch = 768  # sequences
    price = 2.5  # USD a device-hour
    cut = 0.3  # share
    faster = 0.5  # ratio
    layers = 80  # layers
    small_params = 4.94e10  # parameters
    trial_devices = 128  # devices
    trial_h = 24  # h
    spot_price = 1.5  # ratio
    spot_mtbf_h = 2.0  # h
    spot_restart_min = 12.0  # min
    spot_save_s = 30.0  # s

    @cached_property
    def base_design(self) -> Design:
        return Design.from_data(
            {
                "model": "llama-3.1-70b",
                "cluster": {
                    "accelerator": "h100-sxm",
                    "devices": self.devices,
                    "devices_per_node": 8,
                    "scale_out": "ib-ndr",
                },
                "job": {
                    "tokens": self.tokens,
                    "seq_len": self.seq_len,
                    "global_batch": self.batch,
                    "precision": "bf16",
                },
                "stack": "megatron-core",
                "prices": {"usd_per_device_hour": self.price},
                "reliability": {"preset": "llama3"},
            }
        )

    @cached_property
    def doubled_design(self) -> Design:
        return self.base_design.change({"cluster.devices": self.more})

    @cached_property
    def low_design(self) -> Design:
        return self.base_design.change({"job.precision": "fp8"})

    @cached_property
    def open_design(self) -> Design:
        return self.low_design.change(
            cluster={"devices": self.middle},
            job={"tokens": self.fewer_tokens, "global_batch": self.middle_batch},
        )

    @cached_property
    def fewer_design(self) -> Design:
        return self.doubled_design.change({"job.tokens": 5.6e12})

    @cached_property
    def both_design(self) -> Design:
        return self.doubled_design.change({"job.precision": "fp8"})

    @cached_property
    def base(self) -> Assessment:
        return assess(self.base_design)

    @cached_property
    def doubled(self) -> Assessment:
        return assess(self.doubled_design)

    @cached_property
    def low(self) -> Assessment:
        return assess(self.low_design)

    @cached_property
    def best(self) -> Assessment:
        return assess(self.open_design)

    @cached_property
    def fewer_on_more(self) -> Assessment:
        return assess(self.fewer_design)

    @cached_property
    def low_on_more(self) -> Assessment:
        return assess(self.both_design)

    @cached_property
    def params(self) -> float:  # parameters
        return self.base.params

    @cached_property
    def hours(self) -> float:  # device-hours
        return self.devices * 24 * run_days(self.base)

    @cached_property
    def usd(self) -> float:  # USD
        return run_usd(self.base)

    @cached_property
    def budget_usd(self) -> float:  # USD
        return (1 - self.cut) * self.usd

    @cached_property
    def deadline_days(self) -> float:  # days
        return self.faster * run_days(self.base)

    @cached_property
    def cut_tokens(self) -> float:  # tokens
        return (1 - self.cut) * self.tokens

    @cached_property
    def cut_days(self) -> float:  # days
        return (1 - self.cut) * run_days(self.base)

    @cached_property
    def gain_tokens(self) -> float:  # tokens
        return self.loss_tokens - self.loss_base

    @cached_property
    def gain_params(self) -> float:  # parameters
        return self.loss_params - self.loss_base

    @cached_property
    def per_param(self) -> float:  # tokens a parameter
        return self.tokens / self.params

    @cached_property
    def doubled_usd_share(self) -> float:  # share
        return run_usd(self.doubled) / self.usd - 1

    @cached_property
    def half_days(self) -> float:  # days
        return run_days(self.base) * self.devices / self.more

    @cached_property
    def gemm_share(self) -> float:  # share
        return self.base.step_breakdown_s["gemm"] / self.base.step_s

    @cached_property
    def amdahl(self) -> float:
        """Speed-up when the linear layers' products run twice as fast and nothing else does.
        [ratio]"""
        return 1 / (1 - self.gemm_share / 2)

    @cached_property
    def low_speedup(self) -> float:  # ratio
        return self.base.step_s / self.low.step_s

    @cached_property
    def margin_in_days_share(self) -> float:  # share
        return self.deadline_days / run_days(self.best) - 1

    @cached_property
    def margin_in_usd_share(self) -> float:  # share
        return self.budget_usd / run_usd(self.best) - 1

    @cached_property
    def band_up(self) -> float:  # share
        return self.best.step_s_high / self.best.step_s - 1

    @cached_property
    def trial_usd(self) -> float:  # USD
        return self.trial_devices * self.trial_h * self.price

    @cached_property
    def trial_share(self) -> float:  # share
        return self.trial_usd / self.budget_usd

    @cached_property
    def mean_day_usd(self) -> float:  # USD
        return run_usd(self.packages["e"]) / run_days(self.packages["e"])

    @cached_property
    def spot_usd(self) -> float:
        """Dollars per useful device-hour. [USD]"""
        return self.spot_price / self.spot_useful

    @cached_property
    def spot_only_restart(self) -> float:  # USD
        return self.spot_price / (1 - self.spot_restart_min / 60 / self.spot_mtbf_h)

    @cached_property
    def base_useful_usd(self) -> float:  # USD
        return self.price / self.base.goodput

    @cached_property
    def spot_saving(self) -> float:  # share
        return 1 - self.spot_usd / self.base_useful_usd

    @cached_property
    def spot_days(self) -> float:  # days
        return run_days(self.low) * self.low.goodput / self.spot_useful

    @cached_property
    def batch_tokens(self) -> int:  # tokens
        return self.batch * self.seq_len

    @cached_property
    def batch_ratio(self) -> float:  # ratio
        return self.batch_tokens / self.critical

    @cached_property
    def twice_ratio(self) -> float:  # ratio
        return 2 * self.batch_ratio

    @cached_property
    def loss_base(self) -> float:  # ratio
        return float(scaling_laws.loss(self.params, self.tokens))

    @cached_property
    def loss_tokens(self) -> float:  # tokens
        return float(scaling_laws.loss(self.params, self.cut_tokens))

    @cached_property
    def loss_params(self) -> float:  # parameters
        return float(scaling_laws.loss(self.small_params, self.tokens))

    @cached_property
    def measured_speedup(self) -> float:
        """Rate in fp8 over that in bf16 of one published recipe, Llama 3.1 70B on 512 H100."""
        return measured.rate("dgxc-70b-v25.04.02-10") / measured.rate("dgxc-70b-v25.04.02-04")

    @cached_property
    def loss_offer(self) -> float:  # ratio
        return float(scaling_laws.loss(self.params, self.fewer_tokens) - self.loss_base)

    @cached_property
    def margin(self) -> float:
        """How much longer a step of package c may take before one of the limits breaks. [share]"""
        return min(self.margin_in_days_share, self.margin_in_usd_share)

    @cached_property
    def spot_interval_s(self) -> float:  # s
        return float(goodput.optimum_interval(self.spot_mtbf_h * HOUR_S, self.spot_save_s))

    @cached_property
    def spot_useful(self) -> float:  # share
        return float(
            goodput.ettr(
                self.spot_mtbf_h * HOUR_S,
                self.spot_save_s,
                self.spot_interval_s,
                restart_s=self.spot_restart_min * MINUTE_S,
            )
        )

    @cached_property
    def critical(self) -> float:  # parameters
        return float(scaling_laws.batch_size(self.tokens, "zhang-2024"))

    @cached_property
    def optimal(self) -> tuple[float, float]:
        params, tokens = scaling_laws.compute_optimal(6 * self.params * self.tokens)
        return float(params), float(tokens)

    @cached_property
    def optimal_per_param(self) -> float:  # ratio
        return self.optimal[1] / self.optimal[0]

    @cached_property
    def day_usd(self) -> float:
        """Dollars paid for each day that package e finishes before package b. [USD]"""
        return (run_usd(self.low_on_more) - run_usd(self.low)) / (
            run_days(self.low) - run_days(self.low_on_more)
        )

    @cached_property
    def over_critical(self) -> float:
        """Share of tokens that twice the batch spends over the present one, by the source's own
        definition of critical."""
        return BATCH_LAWS["zhang-2024"].overhead * self.batch_tokens / self.critical

    @cached_property
    def twice_extra(self) -> float:  # share
        return (1 + 2 * self.over_critical) / (1 + self.over_critical) - 1

    @cached_property
    def published_mfu(self) -> tuple[float, float]:
        """MFU of published dense bf16 runs on this device: from Llama 3's largest fleet to the
        record."""
        largest = measured.runs("llama3-405b-t4-3")[0].mfu_measured
        record = best_published("h100-sxm", "bf16", False, self.seq_len)
        if record is None:
            raise ValueError("no such run is published")
        return largest, record.mfu

    @cached_property
    def softer(self) -> str:
        return "a" if self.loss_tokens < self.loss_params else "b"

    @cached_property
    def loss_curves(self) -> dict[str, tuple[Array, Array]]:
        d = np.geomspace(2e12, 16e12, 40)
        return {
            "70B": (d, np.asarray(scaling_laws.loss(self.params, d))),
            "49B": (d, np.asarray(scaling_laws.loss(self.small_params, d))),
        }

    @cached_property
    def half_answer(self) -> str:
        return "c" if run_days(self.doubled) > 1.01 * self.half_days else "b"

    @cached_property
    def scale_curves(self) -> dict[str, tuple[Array, Array]]:
        ends = swept(self.base_design, "cluster.devices", 1024, 8192)
        n = np.array([1024, 2048, 4096, 8192], float)
        first, last = (run_days(a) for a in ends.values())
        return {
            "the kit": (n, np.array([first, run_days(self.base), run_days(self.doubled), last])),
            "days · devices constant": (n, run_days(self.base) * self.devices / n),
        }

    @cached_property
    def packages(self) -> dict[str, Assessment]:
        return dict(
            zip("abcde", (self.doubled, self.low, self.best, self.fewer_on_more, self.low_on_more))
        )

    @cached_property
    def meets(self) -> list[str]:
        """The packages that keep both limits."""
        return [
            k
            for k, r in self.packages.items()
            if run_days(r) <= self.deadline_days and run_usd(r) <= self.budget_usd
        ]

    @cached_property
    def package_lines(self) -> str:
        rows = []
        for key, package in self.packages.items():
            days, usd = run_days(package), run_usd(package)
            late = " (late)" if days > self.deadline_days else ""
            dear = " (over)" if usd > self.budget_usd else ""
            both = "" if late or dear else ": both kept"
            rows.append(f"- {key}: {days:.1f} days{late}, ${usd / 1e6:.2f}M{dear}{both}")
        return "\n".join(rows)

    def priced(self, package: str) -> str:
        """Days and dollars of a package, as they are printed."""
        found = self.packages[package]
        return f"{show.days(run_days(found))}, {show.usd(run_usd(found))}"

    @cached_property
    def points(self) -> dict[str, tuple[list[float], list[float]]]:
        return {
            k: ([run_days(r)], [run_usd(r)])
            for k, r in [("approved", self.base), *self.packages.items()]
        }


# ---------------------------------------------------------------- questions


def ask_question(f: Facts) -> Explain:
    return Explain(
        id="ask",
        axis="scope",
        level="staff",
        minutes=4,
        ask=(
            "The plan was approved on Monday. On Thursday: 30 % less money, half the time. "
            "What do you ask before you offer anything?"
        ),
        points=(
            Point(
                says="which limit is hard, and where it comes from",
                words=(r"\b(hard|firm|which (one|limit)|flexible|why|contract|launch)",),
            ),
            Point(
                says="what a day, or a delay, is worth",
                words=(r"\b(worth|value|revenue|delay|per day|opportunity)",),
            ),
            Point(
                says="whether quality may give: tokens, size, precision; who signs",
                words=(r"\b(quality|tokens|loss|precision|fp8|smaller|size|research)",),
            ),
            Point(
                says="supply: more devices, terms, spot, reserved",
                words=(r"\b(devices|gpus|capacity|availab|spot|reserv|supply|price)",),
            ),
            Point(
                says="risk: what happens if it is late or fails",
                words=(r"\b(risk|late|fail|slip|buffer|margin)",),
            ),
        ),
        model=(
            "Which limit is hard and where does it come from? What is a day worth to the "
            "launch? May tokens, model size or precision give, and who in research signs? "
            "Can we get more devices, at what price and term, spot or reserved? What happens "
            "if we are late?"
        ),
        hints=(
            "Both limits at once are rarely both hard.",
            ("What is a day worth, what is the floor for quality, what is fixed by contract?"),
            "Money, time, quality, risk: which one may give, and who decides?",
        ),
        worked=(
            "Which of the two is hard, and why; what a day is worth; whether tokens, model "
            "size, precision or the batch may move, and who signs for quality; whether the "
            "devices can be had, at which price and term; what happens when the run is late."
        ),
        takeaway=(
            "A negotiation needs the price of each thing that can give, before anything is given."
        ),
    )


def hours_question(f: Facts) -> Number:
    return Number(
        id="hours",
        axis="cost",
        level="mid",
        ask=(
            f"The approved plan: Llama 3.1 70B, {show.params(f.tokens)} tokens on "
            f"{f.devices:,} H100 in {show.days(f.base.days)}. How many device-hours?"
        ),
        expected=f.hours,
        unit="h",
        within=1.04,
        manner="hours",
        made_of=(FLEET,),
        slips=(
            Slip(value=f.hours / 24, says="That is device-days: times 24."),
            Slip(
                value=f.hours / f.per_node,
                says=f"Those are node-hours: {f.per_node} devices a node.",
            ),
        ),
        hints=(
            "Devices times time.",
            "`devices · days · 24`.",
            f"`{f.devices:,} · {show.days(f.base.days)} · 24 h`",
        ),
        worked=(
            f"`{f.devices:,} · 24 · {show.days(f.base.days)}` = {show.hours(f.hours)}. By `6 "
            f"· N · D` over the dense peak that is an MFU of {show.share(f.base.mfu)} at a "
            f"goodput of {show.share(f.base.goodput)}."
        ),
        takeaway=(
            "Negotiate in device-hours: they are what money buys, and what time and devices "
            "trade against each other."
        ),
    )


def usd_question(f: Facts) -> Number:
    return Number(
        id="usd",
        axis="cost",
        level="mid",
        ask=(
            f"At {f.price:.2f} dollars a device-hour, the few spare nodes paid for as well: "
            "what does the run cost, in million dollars?"
        ),
        expected=f.usd,
        unit="M$",
        scale=1e6,
        within=1.04,
        manner="usd",
        made_of=(FLEET,),
        slips=(
            Slip(
                value=f.budget_usd,
                says="That is after the cut; the question asks for the approved plan.",
                within=1.03,
            ),
            Slip(
                value=f.usd * 2,
                says="A factor of two: the price is per device-hour, not per half.",
                within=1.03,
            ),
            Slip(
                value=f.usd / f.per_node, says="The price is per device, not per node.", within=1.03
            ),
        ),
        hints=(
            "Hours times price.",
            f"`hours · price`, and {f.base.spares} spare nodes on top.",
            f"`{show.hours(f.hours)} · {f.price:.2f}`",
        ),
        worked=(
            f"`{show.hours(f.hours)} · {f.price:.2f}` and the spares: {show.usd(f.usd)}. The "
            f"new limits: {show.usd(f.budget_usd)} and {show.days(f.deadline_days)}."
        ),
        takeaway=(
            "Write the two new limits next to the two old numbers before you think about levers."
        ),
    )


def usd_note(f: Facts) -> str:
    return (
        f"Old: {show.usd(f.usd)}, {show.days(f.base.days)}. New: {show.usd(f.budget_usd)}, "
        f"{show.days(f.deadline_days)}."
    )


def tokens_question(f: Facts) -> Number:
    return Number(
        id="tokens",
        axis="size",
        level="mid",
        ask=(
            "First lever: train on less. With the money cut and all else as it is, how many "
            "tokens can you afford, in trillions?"
        ),
        expected=f.cut_tokens,
        unit="T",
        scale=1e12,
        within=1.03,
        manner="params",
        slips=(
            Slip(
                value=f.tokens * f.cut, says="That is what you lose, not what is left.", within=1.02
            ),
            Slip(
                value=f.tokens / (1 + f.cut),
                says="A cut of 30 % multiplies by 0.7; dividing by 1.3 is a smaller cut.",
                within=1.02,
            ),
        ),
        hints=(
            "Cost goes with tokens.",
            "`(1 - cut) · tokens`.",
            f"`(1 - {show.share(f.cut)}) · {show.params(f.tokens)}`",
        ),
        worked=(
            f"`(1 - {show.share(f.cut)}) · {show.params(f.tokens)}` = "
            f"{show.params(f.cut_tokens)}: the run would take {show.days(f.cut_days)}, not "
            "half. One lever for two limits is not enough."
        ),
        takeaway=(
            "Tokens cut money and time by the same share; half the time needs something else "
            "as well."
        ),
    )


def softer_question(f: Facts) -> Choice:
    return Choice(
        id="softer",
        axis="size",
        level="staff",
        ask=(
            "To save the same compute: (a) 30 % fewer tokens, or (b) a model of 49B instead "
            "of 70B on all the tokens. Which loses less, by the published law of loss?"
        ),
        expected=f.softer,
        options=(
            Option(
                key="a",
                text="30 % fewer tokens",
                says=(
                    f"It adds {f.gain_tokens:.4f} to the loss, the smaller model "
                    f"{f.gain_params:.4f}."
                ),
            ),
            Option(
                key="b",
                text="49B on all the tokens",
                says=(
                    f"It adds {f.gain_params:.4f}, fewer tokens {f.gain_tokens:.4f}: the run "
                    "is past the optimum, so tokens are the cheaper gift."
                ),
            ),
        ),
        hints=(
            "Where is this run against the compute-optimal line?",
            (
                f"It has {f.per_param:.0f} tokens a parameter; the optimum at this compute "
                f"has {f.optimal_per_param:.0f}."
            ),
            "`L = E + A / N^a + B / D^b`: which term is larger here?",
        ),
        worked=(
            f"Loss {f.loss_base:.4f} now; {f.loss_tokens:.4f} with fewer tokens, "
            f"{f.loss_params:.4f} with the smaller model. At {f.per_param:.0f} tokens a "
            f"parameter the run is far beyond the optimum of {f.optimal_per_param:.0f}: its "
            "last tokens buy little. (The smaller model is cheaper to serve for ever after; "
            "that may still decide.)"
        ),
        takeaway=(
            "Cut on the side of the optimum you are on: over-trained runs give tokens cheaply."
        ),
    )


def half_question(f: Facts) -> Choice:
    return Choice(
        id="half",
        axis="cost",
        level="senior",
        ask=(
            f"Second lever: {f.more:,} devices instead of {f.devices:,}, the batch kept at "
            f"{f.batch:,} sequences. Half the time for the same money?"
        ),
        expected=f.half_answer,
        options=(
            Option(
                key="a",
                text="better: less than half the time",
                says="Nothing gets faster per device.",
            ),
            Option(
                key="b",
                text="yes, device-hours are device-hours",
                says="Only if the step scales: fixed costs a step do not.",
            ),
            Option(
                key="c",
                text="no: more than half the time, so more money",
                says=(
                    f"Yes: {show.days(f.doubled.days)}, {show.share(f.doubled_usd_share)} dearer."
                ),
            ),
        ),
        hints=(
            "What does a replica do when there are twice as many of them?",
            ("Half the micro-batches each: what is paid once a step is paid for half the work."),
            f"{show.days(f.base.days)} on {f.devices:,}",
        ),
        worked=(
            f"{show.days(f.doubled.days)} instead of {show.days(f.half_days)}, and "
            f"{show.share(f.doubled_usd_share)} more money: pipeline, gradient reduction and "
            "everything else that happens once a step are shared by half the work."
        ),
        takeaway=(
            "Time is bought with devices at a falling rate of exchange; at a fixed batch the "
            "rate falls faster."
        ),
    )


def fp8_question(f: Facts) -> Number:
    return Number(
        id="fp8",
        axis="parallelism",
        level="senior",
        ask=(
            "Third lever: fp8. Matrix products of the linear layers are "
            f"{show.share(f.gemm_share)} of the step and would run twice as fast; nothing "
            "else changes. What speed-up do you expect?"
        ),
        expected=f.amdahl,
        unit="times",
        within=1.08,
        slips=(
            Slip(
                value=2.0,
                says=(
                    f"Twice is the matrix products alone; they are {show.share(f.gemm_share)} "
                    "of the step."
                ),
                within=1.05,
            ),
            Slip(
                value=1 + f.gemm_share / 2,
                says="You added the saved share; the step is what is left: divide by it.",
                within=1.03,
            ),
        ),
        hints=("Amdahl.", "`1 / (1 - share / 2)`.", f"`1 / (1 - {show.share(f.gemm_share)} / 2)`"),
        worked=(
            f"`1 / (1 - {show.share(f.gemm_share)}/2)` = {f.amdahl:.2f}. The kit, with casts "
            f"and with products that do not quite double, says {f.low_speedup:.2f}; a "
            f"published recipe for this model measured {f.measured_speedup:.2f}."
        ),
        takeaway="Twice the peak is never twice the speed: multiply by the share it works on.",
    )


def spot_question(f: Facts) -> Number:
    return Number(
        id="spot",
        axis="reliability",
        level="staff",
        ask=(
            f"Fourth lever: spot devices at {f.spot_price:.2f} dollars. A reclaim takes the "
            f"whole job every {f.spot_mtbf_h:g} hours on average, a restart takes "
            f"{f.spot_restart_min:g} minutes, a save blocks for "
            f"{show.seconds(f.spot_save_s)}. What does a useful device-hour cost, in dollars?"
        ),
        expected=f.spot_usd,
        unit="$",
        within=1.04,
        slips=(
            Slip(
                value=f.spot_price,
                says="That is the price of an hour, useful or not: divide by the goodput.",
                within=1.03,
            ),
            Slip(
                value=f.spot_only_restart,
                says="The restarts are in; saves and lost work are not.",
                within=1.012,
            ),
            Slip(
                value=f.spot_price * f.spot_useful,
                says="Times the goodput makes it cheaper than it is: divide.",
                within=1.03,
            ),
        ),
        hints=(
            "Price over goodput.",
            ("Goodput with the best interval `sqrt(2 · save · MTBF)`: saves, lost work, restarts."),
            f"interval {show.seconds(f.spot_interval_s)}",
        ),
        worked=(
            f"Goodput {show.share(f.spot_useful)} at a checkpoint interval of "
            f"{show.seconds(f.spot_interval_s)}: `{f.spot_price:.2f} / "
            f"{show.share(f.spot_useful)}` = {f.spot_usd:.2f} dollars, against "
            f"{f.base_useful_usd:.2f} now. Money: yes, {show.share(f.spot_saving)} less. "
            "Time: no, and the reclaim rate is somebody else's decision."
        ),
        takeaway=(
            "A spot price is divided by the goodput it leaves; it buys money with time and risk."
        ),
    )


def spot_note(f: Facts) -> str:
    return (
        f"`price / goodput`. In fp8 on {f.devices:,} spot devices the run would take "
        f"{show.days(f.spot_days)}: inside the money, outside the time, and at the mercy of a "
        "reclaim rate that nobody guarantees."
    )


def batch_question(f: Facts) -> Number:
    return Number(
        id="batch",
        axis="parallelism",
        level="staff",
        ask=(
            "Fifth lever: research could double the batch, so that more devices stay busy. "
            f"By the law of Zhang et al. the critical batch is {show.params(f.critical)} "
            f"tokens; you run {show.params(f.batch_tokens)}. It costs tokens: how many per "
            "cent more? (Tokens go as `1 + 0.2 · B / B_crit`.)"
        ),
        expected=f.twice_extra,
        unit="%",
        scale=0.01,
        within=1.12,
        slips=(
            Slip(
                value=1.0,
                says="Twice the batch is half the steps, not twice the tokens.",
                within=1.05,
            ),
            Slip(
                value=f.batch_ratio * 0.4,
                says=(
                    "That is the overhead over the least possible; what you already spend is "
                    "part of it."
                ),
            ),
        ),
        hints=(
            "What is spent now, what would be spent at twice the batch?",
            "`(1 + 0.2 · 2B/Bc) / (1 + 0.2 · B/Bc) - 1`.",
            f"`B/Bc` = {f.batch_ratio:.2f}",
        ),
        worked=(
            f"`(1 + 0.2 · {f.twice_ratio:.2f}) / (1 + 0.2 · {f.batch_ratio:.2f}) - 1` = "
            f"{show.share(f.twice_extra)}, beside the {show.share(f.doubled_usd_share)} "
            "that twice the devices lose at the old batch. The laws are fitted on small "
            "models; that is a question for research, not a promise."
        ),
        takeaway=(
            "A larger batch buys device efficiency with tokens; below the critical batch the "
            "trade is nearly free, beyond it is not."
        ),
    )


def package_question(f: Facts) -> Choice:
    return Choice(
        id="package",
        axis="cost",
        level="staff",
        minutes=6,
        ask=(
            f"Both limits: {show.usd(f.budget_usd)} and {show.days(f.deadline_days)}. Which "
            "packages keep them? (By the kit twice the devices take "
            f"{show.share(f.doubled_usd_share)} more device-hours at this batch, and fp8 is "
            f"{f.low_speedup:.2f} times as fast.)"
        ),
        expected=tuple(f.meets),
        several=True,
        options=(
            Option(key="a", text=f"{f.more:,} devices, bf16, all tokens", says=f"{f.priced('a')}."),
            Option(
                key="b", text=f"{f.devices:,} devices, fp8, all tokens", says=f"{f.priced('b')}."
            ),
            Option(
                key="c",
                text=f"{f.middle:,} devices, fp8, {show.params(f.fewer_tokens)} tokens",
                says=f"{f.priced('c')}.",
            ),
            Option(
                key="d",
                text=f"{f.more:,} devices, bf16, {show.params(f.cut_tokens)} tokens",
                says=f"{f.priced('d')}.",
            ),
            Option(key="e", text=f"{f.more:,} devices, fp8, all tokens", says=f"{f.priced('e')}."),
        ),
        hints=(
            "Two inequalities for each.",
            (f"fp8 cuts hours by `1 - 1/{f.low_speedup:.2f}`; devices cut days; tokens cut both."),
            "Work out days first, then dollars.",
        ),
        worked=f"{f.package_lines}",
        takeaway=(
            "Two limits need two levers: one that lowers the hours, one that spends them faster."
        ),
    )


def package_note(f: Facts) -> str:
    return (
        f"Days against dollars: the limits are {show.days(f.deadline_days)} and "
        f"{show.usd(f.budget_usd)}; what lies left of and below both is an offer."
    )


def day_question(f: Facts) -> Number:
    return Number(
        id="day",
        axis="cost",
        level="staff",
        ask=(
            f"Compare b and e: the same tokens in fp8, {show.days(f.packages['b'].days)} for "
            f"{show.usd(f.packages['b'].cost_usd)} on {f.devices:,} devices, "
            f"{show.days(f.packages['e'].days)} for {show.usd(f.packages['e'].cost_usd)} on "
            f"{f.more:,}. From which value of a day on, in thousand dollars, is e the better "
            "deal?"
        ),
        expected=f.day_usd,
        unit="k$",
        scale=1000.0,
        within=1.12,
        manner="usd",
        slips=(
            Slip(
                value=f.mean_day_usd,
                says=(
                    "That is what a day of training costs on average; the question is what "
                    "one day less costs."
                ),
                within=1.05,
            ),
        ),
        hints=(
            "What do you pay more, and how many days does it buy?",
            "`(dollars e - dollars b) / (days b - days e)`.",
            (
                f"`({show.usd(f.packages['e'].cost_usd)} - "
                f"{show.usd(f.packages['b'].cost_usd)}) / ({show.days(f.packages['b'].days)} "
                f"- {show.days(f.packages['e'].days)})`"
            ),
        ),
        worked=(
            f"`({show.usd(f.packages['e'].cost_usd)} - {show.usd(f.packages['b'].cost_usd)}) "
            f"/ ({show.days(f.packages['b'].days)} - {show.days(f.packages['e'].days)})` = "
            f"{show.usd(f.day_usd)} a day. If a day earlier is worth more than that to the "
            "company, it should buy more devices, and the cut of the budget is a mistake."
        ),
        takeaway=(
            "The slope of the frontier is the price of a day: say it aloud, and the decision "
            "leaves your desk."
        ),
    )


def plan_question(f: Facts) -> Plan:
    def idle_stages(trial: Assessment, best: Assessment) -> str:
        return (
            f"It runs, at {show.seconds(trial.step_s)} against {show.seconds(best.step_s)}: "
            f"{show.share(trial.bubble_fraction)} of the step is idle, and fp8 makes eight-way "
            "reductions a larger part of it."
        )

    return Plan(
        id="plan",
        axis="parallelism",
        level="senior",
        minutes=5,
        ask=(
            f"The offer on the table is {f.middle:,} devices, fp8, "
            f"{show.params(f.fewer_tokens)} tokens, batch {f.middle_batch}. Give a plan "
            "within a tenth of the best step."
        ),
        design=f.open_design,
        names=("tp", "pp", "vpp", "micro_batch"),
        slips=(
            PlanSlip(
                example={
                    "tp": 8,
                    "pp": 4,
                    "vpp": 1,
                    "cp": 1,
                    "micro_batch": 1,
                    "recompute": "none",
                },
                says=idle_stages,
                among={"tp": [8], "vpp": [None, 1]},
            ),
        ),
        hints=(
            "Tensor parallelism inside the node, as little as memory allows.",
            (
                f"Replicas have to divide the batch: `{f.middle:,} / (tensor · pipeline)` "
                f"into {f.middle_batch}."
            ),
            f"Interleave: {f.layers} layers over stages times chunks.",
        ),
        worked=(
            f"The kit's best: {show.seconds(f.best.step_s)} a step, {show.days(f.best.days)} "
            f"for {show.usd(f.best.cost_usd)}."
        ),
        takeaway="A package is only real with a plan that fits it.",
    )


def margin_question(f: Facts) -> Number:
    return Number(
        id="margin",
        axis="verification",
        level="staff",
        ask=(
            f"Package c, {show.days(f.best.days)} for {show.usd(f.best.cost_usd)}, rests on a "
            "step time that nobody has measured. By how many per cent may it be longer "
            "before one of the two limits breaks?"
        ),
        expected=f.margin,
        unit="%",
        scale=0.01,
        within=1.12,
        slips=(
            Slip(
                value=max(f.margin_in_days_share, f.margin_in_usd_share),
                says="That is the looser limit; the other one breaks first.",
                within=1.1,
            ),
        ),
        hints=(
            "Both limits scale with the step; one breaks first.",
            "`limit / value - 1` for days and for dollars; the smaller one.",
            (
                f"days `{show.days(f.deadline_days)} / {show.days(f.best.days)}`, dollars "
                f"`{show.usd(f.budget_usd)} / {show.usd(f.best.cost_usd)}`"
            ),
        ),
        worked=(
            f"Days leave {show.share(f.margin_in_days_share)}, dollars "
            f"{show.share(f.margin_in_usd_share)}: the smaller one is {show.share(f.margin)}; "
            f"the kit's own band on this step reaches {show.share(f.band_up)} up. A trial on "
            f"{f.trial_devices} devices for a day costs {show.usd(f.trial_usd)}, "
            f"{show.share(f.trial_share)} of the budget, and measures exactly that number; it "
            "also shows the first loss curve in fp8."
        ),
        takeaway=(
            "Before the money is spent, know the number at which you would withdraw, and buy "
            "the measurement of it."
        ),
    )


def margin_note(f: Facts) -> str:
    return (
        f"The kit's band for this step is {show.seconds(f.best.step_s_low)} to "
        f"{show.seconds(f.best.step_s_high)} around {show.seconds(f.best.step_s)}. Sources left "
        "out of its fit lie within that band four times of five: an estimate to plan with, not "
        "to sign with."
    )


def offer_question(f: Facts) -> Explain:
    return Explain(
        id="offer",
        axis="telling",
        level="staff",
        minutes=5,
        ask=(
            "Make the offer: three options in six lines, a recommendation, and what would "
            "change it."
        ),
        points=(
            Point(
                says="each option with days and dollars",
                words=(
                    r"\b(days?)\b.*(\$|dollars?|million|M\b)",
                    r"(\$|dollars?|million).*\bdays?\b",
                ),
            ),
            Point(
                says="what gives: tokens or precision, and who signs for quality",
                words=(r"\b(tokens|fp8|precision|quality|loss|research|sign)",),
            ),
            Point(
                says="one clear recommendation",
                words=(r"\b(recommend|i would|my choice|we should|propose)",),
            ),
            Point(
                says="the price of a day",
                words=(r"\b(per day|a day|price of a day|value of a day)",),
            ),
            Point(
                says="risk and what is measured first",
                words=(r"\b(risk|measure|test|trial|fall ?back|if .*fails|validate)",),
            ),
        ),
        model=(
            f"Option one: {f.middle:,} devices, fp8, {show.params(f.fewer_tokens)} tokens: "
            f"{f.priced('c')}, inside both limits. Option two: all tokens on {f.more:,} in fp8: "
            f"{f.priced('e')}, in time, over budget. Option three: all tokens on {f.devices:,} in "
            f"fp8: {f.priced('b')}, late. I recommend the first if research signs the tokens and "
            f"fp8; the second if a day is worth more than {show.usd(f.day_usd)}, the price of a "
            "day. Risk: fp8 stability; we measure a week of fp8 against bf16 first and fall back "
            "with the deadline moved."
        ),
        hints=(
            "Three options: money, time, quality, risk of each.",
            "One recommendation.",
            "What has to be decided, by whom, until when.",
        ),
        worked=(
            "One line an option with days, dollars, loss and risk; then which one and why; "
            "then the decision needed and its date; then what you will measure first and "
            "what would make you come back."
        ),
        takeaway=(
            "Options with prices and one recommendation: the others decide on values, you "
            "answer for the numbers."
        ),
    )


def offer_note(f: Facts) -> str:
    return (
        f"The tokens given up add {f.loss_offer:.4f} nats to the loss by the published law; "
        "research owns that number, and the first week of fp8 against bf16 is the measurement "
        "that can prove the offer wrong."
    )


BOOK = Walkthrough(
    number="08",
    name="negotiate",
    title="Negotiate: 30 % less budget, half the time",
    minutes=55,
    book=Facts,
    asks=(
        ask_question,
        hours_question,
        usd_question,
        tokens_question,
        softer_question,
        half_question,
        fp8_question,
        spot_question,
        batch_question,
        package_question,
        day_question,
        plan_question,
        margin_question,
        offer_question,
    ),
)
