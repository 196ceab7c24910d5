"""Your first week's log: what a pilot's log says of the whole run, and how far it is believed."""

from functools import cached_property
from math import log
from typing import Any

from scantling import Assessment, assess
from scantling.base import show
from scantling.base.units import DAY_S
from scantling.design.design import Design
from scantling_logs.log_reading import Reading
from scantling_logs.point import of_design
from scantling_logs.site_calibration import calibration

from ..question import FLEET, Choice, Explain, Number, Option, Point, Slip, Walkthrough
from .shared_sums import run_days


class Facts:
    """The numbers of the book, each worked out when it is first asked for, with its unit."""

    pilot = 16  # devices
    whole = 64  # devices
    batch = 512  # sequences
    seq_len = 4096  # tokens
    tokens = 1e12  # tokens
    per_node = 8  # devices
    # as the pilot's log prints them: gallery/learned
    steps = 20  # steps
    warm = 5  # steps
    warm_s = 194.1  # s
    first_s = 52.33  # s
    step_s = 27.5  # s
    log_steps = "52.33, 39.9, 35.75, 33.68, 32.44, then fifteen from 27.46 to 27.51"
    later_s = 6.73  # s
    # how far sites lie apart, and runs of one site, in the kit's ln(measured / expected)
    between = 0.13  # share
    within = 0.07  # share

    @cached_property
    def pilot_design(self) -> Design:
        return Design.from_data(
            {
                "model": "qwen2.5-32b",
                "cluster": {"accelerator": "b200-sxm", "devices": self.pilot, "node": "gcp-a4"},
                "job": {
                    "tokens": self.tokens,
                    "seq_len": self.seq_len,
                    "global_batch": self.batch,
                    "precision": "bf16",
                },
                "plan": {"tp": 2, "pp": 2, "vpp": 32, "cp": 1, "micro_batch": 1},
                "stack": "megatron-core",
            }
        )

    @cached_property
    def whole_design(self) -> Design:
        return self.pilot_design.change(
            cluster={"devices": self.whole}, plan={"vpp": 8, "micro_batch": 2}
        )

    @cached_property
    def expected(self) -> Assessment:
        return assess(self.pilot_design)

    @cached_property
    def before(self) -> Assessment:
        return assess(self.whole_design)

    @cached_property
    def mean_s(self) -> float:  # s
        return (self.warm_s + (self.steps - self.warm) * self.step_s) / self.steps

    @cached_property
    def job_rate(self) -> float:  # tokens/s
        return self.batch * self.seq_len / self.step_s

    @cached_property
    def device_rate(self) -> float:  # tokens/s
        return self.job_rate / self.pilot

    @cached_property
    def node_rate(self) -> float:  # tokens/s
        return self.device_rate * self.per_node

    @cached_property
    def sequences(self) -> float:  # tokens/s
        return self.batch / self.step_s

    @cached_property
    def flops_per_token(self) -> float:  # FLOP
        return self.expected.flops_per_token

    @cached_property
    def peak(self) -> float:  # FLOP/s
        return self.expected.resolved.cluster.accelerator.bf16_flops

    @cached_property
    def pilot_mfu(self) -> float:  # share
        return self.device_rate * self.flops_per_token / self.peak

    @cached_property
    def ratio(self) -> float:  # ratio
        return self.step_s / self.expected.step_s

    @cached_property
    def faster(self) -> float:  # share
        return 1 - self.ratio

    @cached_property
    def spreads(self) -> float:
        """How far the pilot lies from what was expected, in spreads of runs of one site."""
        return -log(self.ratio) / self.within

    @cached_property
    def site_spreads(self) -> float:
        """The same, in spreads of sites."""
        return -log(self.ratio) / self.between

    @cached_property
    def weight(self) -> float:  # share
        return self.between**2 / (self.between**2 + self.within**2)

    @cached_property
    def weight_three(self) -> float:  # share
        return self.between**2 / (self.between**2 + self.within**2 / 3)

    @cached_property
    def weight_plain(self) -> float:  # share
        return self.between / (self.between + self.within)

    @cached_property
    def factor(self) -> float:  # ratio
        return float(self.ratio**self.weight)

    @cached_property
    def factor_other(self) -> float:  # ratio
        return float(self.ratio ** (1 - self.weight))

    @cached_property
    def by_factor_s(self) -> float:  # s
        return self.before.step_s * self.factor

    @cached_property
    def quarter_s(self) -> float:  # s
        return self.step_s * self.pilot / self.whole

    @cached_property
    def whole_days(self) -> float:  # days
        return run_days(self.after)

    @cached_property
    def days_before(self) -> float:  # ratio
        return run_days(self.before)

    @cached_property
    def days_low(self) -> float:  # days
        return self.whole_days * self.after.step_s_low / self.after.step_s

    @cached_property
    def days_high(self) -> float:  # days
        return self.whole_days * self.after.step_s_high / self.after.step_s

    @cached_property
    def days_pilot(self) -> float:  # days
        return self.step_s * self.tokens / (self.batch * self.seq_len) / DAY_S

    @cached_property
    def site(self) -> dict[str, Any]:
        """The calibration that a step of the pilot makes."""
        log = Reading(
            file="pilot", format="nemo", framework="NeMo", step_s=self.step_s, devices=self.pilot
        )
        point = of_design(log, self.pilot_design)
        if point is None:
            raise ValueError("the pilot's step tells nothing of the site")
        return calibration([point])

    @cached_property
    def factor_kit(self) -> float:  # ratio
        """The pilot's step with the calibration over that without it."""
        corrected = assess(self.pilot_design.change({"calibration": self.site}))
        return corrected.step_s / assess(self.pilot_design).step_s

    @cached_property
    def after(self) -> Assessment:
        return assess(self.whole_design.change({"calibration": self.site}))


# ---------------------------------------------------------------- questions


def first_question(f: Facts) -> Explain:
    return Explain(
        id="first",
        axis="scope",
        level="senior",
        minutes=4,
        ask=(
            f"A pilot of twenty steps has run on {f.pilot} B200. What do you look up in its "
            "log before you use a single number? Four or five lines."
        ),
        points=(
            Point(
                says="whether it is the same run: model, sequence, batch, precision, plan",
                words=(r"\b(model|batch|sequence|precision|plan|settings|config)",),
            ),
            Point(
                says=("which steps are steady, and which hold compilation, evaluation or a save"),
                words=(r"\b(steady|warm|compil|evaluat|checkpoint|first steps?)",),
            ),
            Point(
                says=("what a rate counts: per device or job, tokens or samples, recompute or not"),
                words=(r"\b(per (device|gpu)|whole job|convention|recompute|samples|counts?)",),
            ),
            Point(
                says="restarts, errors and memory",
                words=(r"\b(restart|error|oom|memory|peak|crash)",),
            ),
        ),
        model=(
            "Is it our run: model, batch, sequence length, precision, plan? Which steps are "
            "steady, and which hold compilation or a checkpoint? Do its rates count a device "
            "or the whole job, and recompute or not? Did it restart or come near the memory, "
            "and which release of the software was it?"
        ),
        hints=(
            "Is it the run that you plan?",
            "Not every step counts.",
            "A rate has a convention.",
        ),
        worked=(
            "First whether it is the run that is planned, then which of its steps are "
            "steady, then what its rates count, then what else happened: restarts, errors, "
            "the peak of memory, the release."
        ),
        takeaway=(
            "A log is evidence of one run under one set of settings; write those down beside "
            "the number."
        ),
    )


def step_question(f: Facts) -> Number:
    return Number(
        id="step",
        axis="verification",
        level="mid",
        ask=(
            f"It prints seconds a step: {f.log_steps}. Which step time do you go on with, in "
            "seconds?"
        ),
        expected=f.step_s,
        unit="s",
        within=1.01,
        slips=(
            Slip(
                value=f.mean_s,
                says=(
                    "That is the mean over all steps: compilation and first allocations are "
                    "in it, and a long run pays for them once."
                ),
                within=1.01,
            ),
            Slip(value=f.first_s, says="That is the first step, which compiles.", within=1.01),
        ),
        hints=(
            "Which of them would the thousandth step look like?",
            "Leave the warm-up out.",
            "The median of what is left.",
        ),
        worked=(
            f"The first {f.warm} hold compilation and first allocations. The others agree "
            f"within a fifth of a per cent: {show.seconds(f.step_s)}. The mean over all would "
            f"have said {show.seconds(f.mean_s)}."
        ),
        takeaway="Take the median of steady steps, and say how many were left out.",
    )


def step_note(f: Facts) -> str:
    return f"The log's own seconds: {f.log_steps}."


def rate_question(f: Facts) -> Number:
    return Number(
        id="rate",
        axis="size",
        level="mid",
        ask=(
            f"A step trains {f.batch} sequences of {f.seq_len:,} tokens on {f.pilot} devices. "
            "How many tokens a second is that for one device?"
        ),
        expected=f.device_rate,
        unit="tokens/s",
        made_of=(FLEET,),
        slips=(
            Slip(value=f.job_rate, says="That is the whole job; divide by the devices."),
            Slip(value=f.node_rate, says=f"That is a node of {f.per_node}."),
            Slip(value=f.sequences, says="Those are sequences a second of the whole job."),
        ),
        hints=(
            "Tokens of a step first.",
            "`batch · sequence / step / devices`",
            f"`{f.batch} · {f.seq_len:,} / {show.seconds(f.step_s)} / {f.pilot}`",
        ),
        worked=(
            f"`{f.batch} · {f.seq_len:,} / {show.seconds(f.step_s)} / {f.pilot}` = "
            f"{f.device_rate:,.0f} tokens a second and device."
        ),
        takeaway=(
            "Compare runs by tokens a second and device: it needs neither a peak nor a convention."
        ),
    )


def mfu_question(f: Facts) -> Number:
    return Number(
        id="mfu",
        axis="size",
        level="mid",
        ask=(
            f"A token costs {show.flop(f.flops_per_token)} and the dense bf16 peak is "
            f"{show.flops(f.peak)}. What MFU is that, in per cent?"
        ),
        expected=f.pilot_mfu,
        unit="%",
        scale=0.01,
        slips=(
            Slip(value=f.pilot_mfu / 3, says="That counts the forward pass alone.", within=1.03),
            Slip(
                value=f.pilot_mfu / 2,
                says="That divides by the peak with structured sparsity, twice the dense one.",
                within=1.03,
            ),
        ),
        hints=(
            "Useful FLOP over what the device could have done.",
            "`tokens/s · FLOP per token / peak`",
            (f"`{f.device_rate:,.0f} · {show.flop(f.flops_per_token)} / {show.flops(f.peak)}`"),
        ),
        worked=(
            f"`{f.device_rate:,.0f} · {show.flop(f.flops_per_token)} / {show.flops(f.peak)}` = "
            f"{show.share(f.pilot_mfu)}."
        ),
        takeaway="An MFU without its FLOP count and its peak is no number.",
    )


def expectation_question(f: Facts) -> Choice:
    return Choice(
        id="beside",
        axis="verification",
        level="senior",
        ask=(
            f"From published runs alone the kit expects {show.seconds(f.expected.step_s)} of "
            f"this pilot; it took {show.share(f.faster)} less. Sites that the kit has never "
            f"seen lie some {show.share(f.between)} from what it expects, runs of one site "
            f"{show.share(f.within)} from each other. What do you make of it?"
        ),
        expected="b",
        options=(
            Option(
                key="a",
                text="the kit is wrong; only the measured number counts from now on",
                says=(
                    "One run scatters too: the next one of the same site may lie "
                    f"{show.share(f.within)} elsewhere. And the measured number alone says "
                    "nothing of another plan."
                ),
            ),
            Option(
                key="b",
                text=(
                    "this site is faster than the published ones, by most of the difference "
                    "but not by all of it"
                ),
                says=(
                    "Yes: the measured step moves the expectation, as far as it is more "
                    "certain than that."
                ),
            ),
            Option(
                key="c",
                text="the log is wrong, since it is faster than expected",
                says=(
                    f"It lies {f.site_spreads:.1f} times as far off as sites usually do; look at "
                    "the settings, then believe it."
                ),
            ),
            Option(
                key="d",
                text="it is within the scatter of a single run, so nothing changes",
                says=f"It is {f.spreads:.1f} times that scatter.",
            ),
        ),
        hints=(
            "Compare the difference with both scatters.",
            "Which of the two numbers is the more certain?",
            "Neither alone.",
        ),
        worked=(
            f"{show.share(f.faster)} is more than runs of one site differ and not more than "
            "sites do once in a while. So most of it is the site, and some of it this one "
            "run."
        ),
        takeaway=(
            "A measurement and an expectation are weighed by their variances; neither "
            "replaces the other."
        ),
    )


def weight_question(f: Facts) -> Number:
    return Number(
        id="weight",
        axis="verification",
        level="staff",
        ask=(
            f"Sites scatter by {show.share(f.between)}, runs of a site by "
            f"{show.share(f.within)}, both as standard deviations of the logarithm. What "
            "share of the difference do you believe after one run, in per cent?"
        ),
        expected=f.weight,
        unit="%",
        scale=0.01,
        within=1.03,
        slips=(
            Slip(value=f.weight_three, says="That is after three runs; there is one.", within=1.02),
            Slip(
                value=f.weight_plain,
                says="Variances are weighed, not deviations: square both.",
                within=1.03,
            ),
        ),
        hints=(
            "Two normal distributions.",
            "Variance of the sites over the sum of both variances.",
            (f"`{show.share(f.between)}² / ({show.share(f.between)}² + {show.share(f.within)}²)`"),
        ),
        worked=(
            f"`{show.share(f.between)}² / ({show.share(f.between)}² + "
            f"{show.share(f.within)}²)` = {show.share(f.weight)}. Three runs would make it "
            f"{show.share(f.weight_three)}."
        ),
        takeaway="The first run tells most; the third makes sure.",
    )


def factor_question(f: Facts) -> Number:
    return Number(
        id="factor",
        axis="verification",
        level="senior",
        ask=(
            f"The step took {show.number(f.ratio)} times what was expected. By what factor do "
            "you correct the steps of this site?"
        ),
        expected=f.factor,
        within=1.02,
        slips=(
            Slip(value=f.ratio, says="That believes one run entirely.", within=1.01),
            Slip(
                value=f.factor_other,
                says="That is the share which you do not believe.",
                within=1.01,
            ),
        ),
        hints=(
            "The share counts on the logarithm.",
            "`ratio^share`",
            f"`{show.number(f.ratio)}^{show.number(f.weight)}`",
        ),
        worked=(
            f"`{show.number(f.ratio)}^{show.number(f.weight)}` = {show.number(f.factor)}; the "
            f"kit's calibration says {show.number(f.factor_kit)}."
        ),
        takeaway="Correct by ratios and their logarithms: steps multiply, they do not add.",
    )


def scale_question(f: Facts) -> Number:
    return Number(
        id="scale",
        axis="parallelism",
        level="senior",
        ask=(
            f"The whole run has {f.whole} devices at the same batch, with another micro-batch "
            "and fewer chunks a stage. From published runs alone the kit says "
            f"{show.seconds(f.before.step_s)}. How long will its step be, in seconds, now "
            "that the pilot's log is known?"
        ),
        expected=f.after.step_s,
        unit="s",
        within=1.06,
        slips=(
            Slip(
                value=f.before.step_s, says="That is the expectation without the log.", within=1.02
            ),
            Slip(value=f.step_s, says="That is the pilot's own step; there are more devices now."),
        ),
        hints=(
            "Correct the expectation of the whole run, not the pilot's step.",
            "Expected step times the factor of the site.",
            f"`{show.seconds(f.before.step_s)} · {show.number(f.factor)}`",
        ),
        worked=(
            f"`{show.seconds(f.before.step_s)} · {show.number(f.factor)}` = "
            f"{show.seconds(f.by_factor_s)}; the kit, which moves the speeds of the chip and not "
            f"what the network and the host take, says {show.seconds(f.after.step_s)} "
            f"({show.seconds(f.after.step_s_low)} to {show.seconds(f.after.step_s_high)}). "
            f"Later the run printed {show.seconds(f.later_s)}. Dividing the pilot's step by "
            f"the devices says {show.seconds(f.quarter_s)}: near, because this plan scales, "
            "and without a word of how sure that is."
        ),
        takeaway=(
            "Carry the site's factor over, not the step: the plan of the large run has its "
            "own bubble and its own traffic."
        ),
    )


def carry_question(f: Facts) -> Choice:
    return Choice(
        id="carry",
        axis="communication",
        level="staff",
        ask=(
            "A colleague wants to use the same calibration for a mixture of experts on the "
            "same machine. What does your log say of that?"
        ),
        expected="c",
        options=(
            Option(
                key="a",
                text="the same factor, the machine is the same",
                says=(
                    "Its step is made of other parts: exchanges of tokens that your run "
                    "never sent. Published runs show that a factor of one model helps no "
                    "other."
                ),
            ),
            Option(
                key="b",
                text="the same factor for its matrix products, none for the rest",
                says="A step is one number; which of its parts was faster it does not say.",
            ),
            Option(
                key="c",
                text="nothing; a trace or a table of collectives would",
                says="Yes: those show single constants, which every model shares.",
            ),
            Option(
                key="d",
                text="half of the factor, to be careful",
                says="A rule without a reason is no caution.",
            ),
        ),
        hints=(
            "How many unknowns does one number settle?",
            "What do both models share?",
            "Which measurement shows one part alone?",
        ),
        worked=(
            "One step is one equation for many constants. Kernels of a trace show the rate "
            "of matrix products by themselves, a table of nccl-tests the links; those hold "
            "for every model."
        ),
        takeaway=(
            "A step tells of its own model; a trace and a table of collectives tell of the machine."
        ),
    )


def days_question(f: Facts) -> Number:
    return Number(
        id="days",
        axis="cost",
        level="mid",
        ask=(
            f"How many days does the whole run take for {show.params(f.tokens)} tokens, with "
            "the log known and the goodput that the kit expects?"
        ),
        expected=f.whole_days,
        unit="days",
        within=1.05,
        slips=(
            Slip(value=f.days_before, says="That is without the log.", within=1.02),
            Slip(value=f.days_pilot, says="That is on the pilot's devices."),
        ),
        hints=(
            "How many steps are there?",
            "`tokens / (batch · sequence) · step`, over the goodput.",
            (
                f"`{show.params(f.tokens)} / ({f.batch} · {f.seq_len:,}) · "
                f"{show.seconds(f.after.step_s)}`"
            ),
        ),
        worked=(
            f"`{show.params(f.tokens)} / ({f.batch} · {f.seq_len:,}) · "
            f"{show.seconds(f.after.step_s)}` over a goodput of {show.share(f.after.goodput)} "
            f"= {f.whole_days:.1f} days; without the log {f.days_before:.1f}."
        ),
        takeaway=(
            "Twenty steps of a pilot moved the date by more than any switch of the plan would."
        ),
    )


def memory_question(f: Facts) -> Choice:
    return Choice(
        id="memory",
        axis="memory",
        level="senior",
        ask=(
            "The pilot's log says nothing of memory, only that it ran. The whole run shards "
            "the optimizer over four times the replicas and doubles the micro-batch. What do "
            "you conclude for its memory?"
        ),
        expected="c",
        options=(
            Option(
                key="a",
                text="it fits, since the pilot did",
                says="The micro-batch doubles, and activations with it.",
            ),
            Option(
                key="b",
                text="it does not fit, since the micro-batch doubles",
                says="The states of the optimizer shrink at the same time.",
            ),
            Option(
                key="c",
                text=(
                    "nothing yet; have the pilot print its peak, and move both parts by the model"
                ),
                says="Yes: one printed peak is worth more than the argument.",
            ),
        ),
        hints=(
            "What grows, and what shrinks?",
            "Activations grow with the micro-batch, states shrink with the replicas.",
            "A log that ran is only an upper bound on one sum.",
        ),
        worked=(
            "Activations double, optimizer states fall to a quarter; which wins is a matter "
            "of the model, and a printed peak narrows it."
        ),
        takeaway="That it ran says that one sum was below the capacity; print the peak.",
    )


def next_question(f: Facts) -> Explain:
    return Explain(
        id="next",
        axis="verification",
        level="staff",
        minutes=5,
        ask=(
            "You have the machine for one more week before the whole run starts. What do you "
            "measure, in which order, and what would change your mind?"
        ),
        points=(
            Point(
                says="the peak of memory and two more runs of this model",
                words=(r"\b(peak|memory|two more|another run|repeat)",),
            ),
            Point(
                says="nccl-tests or an all-reduce between nodes",
                words=(r"\b(nccl|all-?reduce|collective|links?|network)",),
            ),
            Point(says="a trace of a few steps", words=(r"\b(trace|profil|kernel)",)),
            Point(
                says="the same plan on more nodes, rung by rung",
                words=(r"\b(rung|ladder|nodes|scale|pod|32|half)",),
            ),
            Point(
                says="what would prove the estimate wrong",
                words=(r"\b(wrong|change my mind|outside|beyond|if it|slower than)",),
            ),
        ),
        model=(
            "First the peak of memory and two more runs of the same plan, so that the factor "
            "is sure. Then nccl-tests between nodes and a trace of a few steps, which hold "
            "for other models too. Then the ladder: the same plan on a node, a rack and half "
            "of the machine, each against its limits. A step outside the band on any rung "
            "would change my mind, and I would look there before going on."
        ),
        hints=(
            "What does the log not say?",
            "Cheap and general before dear and special.",
            "Name the number that would stop you.",
        ),
        worked=(
            "Minutes: peak of memory, two more runs. An hour: collectives and a trace. A "
            "day: the rungs of the ladder, each held against what it should show. What stops "
            "the climb is a step or a bus bandwidth outside its limits."
        ),
        takeaway=(
            "Every measurement should be able to stop the run; one that cannot is decoration."
        ),
    )


def tell_question(f: Facts) -> Explain:
    return Explain(
        id="tell",
        axis="telling",
        level="staff",
        minutes=4,
        ask="Tell the owner of the budget in four sentences what the pilot has changed.",
        points=(
            Point(
                says="the date and the cost, before and after",
                words=(r"\b(days?|date|\$|dollars?|cost)",),
            ),
            Point(
                says="how sure it is, as a range", words=(r"\b(range|band|chance|sure|per cent)",)
            ),
            Point(
                says="what it rests on, and that it is one run",
                words=(r"\b(one run|pilot|measured|log)",),
            ),
            Point(
                says="what is still open, and when it will be known",
                words=(r"\b(open|unknown|next week|until)",),
            ),
        ),
        model=(
            f"The pilot's step took {show.share(f.faster)} less than published runs let us "
            f"expect, so the whole run takes {f.whole_days:.0f} days, not {f.days_before:.0f}. The "
            f"range is {f.days_low:.0f} to {f.days_high:.0f} days: measured here, and resting on "
            "one run. Memory and the network between many nodes are open and will be known next "
            f"week. Until then I would promise {f.days_high:.0f} days."
        ),
        hints=(
            "The date first.",
            "A range, and what it rests on.",
            "What is open, and until when.",
        ),
        worked=(
            f"{f.days_before:.1f} days became {f.whole_days:.1f}; the band is measured here "
            "now; one run, one model; memory and the larger network are open until the "
            "ladder is climbed."
        ),
        takeaway=(
            "Promise the end of the band that you can keep, and say which measurement narrows it."
        ),
    )


BOOK = Walkthrough(
    number="09",
    name="first_log",
    title="Your first week's log: from a pilot to the whole run",
    minutes=48,
    book=Facts,
    asks=(
        first_question,
        step_question,
        rate_question,
        mfu_question,
        expectation_question,
        weight_question,
        factor_question,
        scale_question,
        carry_question,
        days_question,
        memory_question,
        next_question,
        tell_question,
    ),
)
