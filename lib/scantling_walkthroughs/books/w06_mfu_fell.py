"""Debug: MFU fell from 35 to 26 % after the fleet was doubled; what is arithmetic, what is a fault,
and what proves it."""

from functools import cached_property
from typing import Any

from scantling import Assessment, assess
from scantling.advise.diagnose import diagnose
from scantling.base import show
from scantling.design.design import Design

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
from .shared_sums import idle_share, layers_s


class Facts:
    """The numbers of the book, each worked out when it is first asked for, with its unit."""

    small = 1024  # devices
    large = 2048  # devices
    batch = 512  # sequences
    seq_len = 8192  # tokens
    per_node = 8  # devices
    tp = 8  # devices
    pp = 4  # stages
    micro_batch = 1  # sequences
    mfu_small = 0.35  # share
    mfu_large = 0.26  # share
    price = 2.5  # USD a device-hour
    # of each node, its compute over that of an ordinary one
    nodes: tuple[tuple[str, float | None], ...] = (
        ("node-041", 1.0),
        ("node-087", 0.993),
        ("node-173", None),
        ("node-202", 1.006),
    )
    slow_node = "c"

    @cached_property
    def open_design(self) -> Design:
        return Design.from_data(
            {
                "model": "llama-3.1-70b",
                "cluster": {
                    "accelerator": "h100-sxm",
                    "devices": self.large,
                    "devices_per_node": 8,
                    "scale_out": "ib-ndr",
                },
                "job": {
                    "tokens": 1.5e13,
                    "seq_len": self.seq_len,
                    "global_batch": self.batch,
                    "precision": "bf16",
                },
                "stack": "megatron-core",
            }
        )

    @cached_property
    def after_design(self) -> Design:
        return self.open_design.change(
            {
                "plan": {
                    "tp": self.tp,
                    "pp": self.pp,
                    "vpp": 1,
                    "cp": 1,
                    "micro_batch": self.micro_batch,
                    "recompute": "none",
                }
            }
        )

    @cached_property
    def before_design(self) -> Design:
        return self.after_design.change({"cluster.devices": self.small})

    @cached_property
    def before(self) -> Assessment:
        return assess(self.before_design)

    @cached_property
    def after(self) -> Assessment:
        return assess(self.after_design)

    @cached_property
    def best(self) -> Assessment:
        return assess(self.open_design)

    @cached_property
    def interleaved(self) -> Assessment:
        """The best plan with the degrees as they were."""
        return assess(self.open_design.change(plan={"tp": self.tp, "pp": self.pp}))

    @cached_property
    def megascale(self) -> tuple[Any, Any]:
        return measured.recreation_of("strong-scaling", "series", "Megatron-LM, batch 6144")

    @cached_property
    def flops_per_token(self) -> float:  # FLOP
        return self.after.flops_per_token

    @cached_property
    def peak(self) -> float:  # FLOP/s
        return self.after.resolved.cluster.accelerator.bf16_flops

    @cached_property
    def step_s(self) -> float:  # s
        return (
            self.batch
            * self.seq_len
            * self.flops_per_token
            / (self.large * self.peak * self.mfu_large)
        )

    @cached_property
    def step_small_s(self) -> float:  # s
        return (
            self.batch
            * self.seq_len
            * self.flops_per_token
            / (self.small * self.peak * self.mfu_small)
        )

    @cached_property
    def speedup(self) -> float:  # ratio
        return self.step_small_s / self.step_s

    @cached_property
    def dp(self) -> int:  # replicas
        return self.large // (self.tp * self.pp)

    @cached_property
    def m(self) -> int:  # micro-batches
        return self.batch // (self.dp * self.micro_batch)

    @cached_property
    def m_small(self) -> int:  # micro-batches
        return self.m * self.large // self.small

    @cached_property
    def bubble_over_ideal(self) -> float:  # share
        return (self.pp - 1) / self.m

    @cached_property
    def expected(self) -> float:  # share
        return self.mfu_small * (1 - self.bubble) / (1 - self.bubble_small)

    @cached_property
    def one_bubble(self) -> float:  # share
        return self.mfu_small * (1 - self.bubble)

    @cached_property
    def late(self) -> float:
        """How much longer the step is than the bubble explains. [share]"""
        return self.expected / self.mfu_large - 1

    @cached_property
    def points(self) -> float:  # share
        return self.expected - self.mfu_large

    @cached_property
    def slow(self) -> float:
        """How many times longer the step is than the kit's: what the slowest node is late by.
        [ratio]"""
        return self.step_s / self.after.step_s

    @cached_property
    def slow_share(self) -> float:  # share
        return self.slow - 1

    @cached_property
    def late_s(self) -> float:  # s
        return self.step_s - self.after.step_s

    @cached_property
    def slow_compute(self) -> float:
        """How many times longer the slowest node computes: what it is late by, over the
        micro-batches that pass its stage one after another. [ratio]"""
        return 1 + self.late_s / layers_s(self.after)

    @cached_property
    def slow_compute_share(self) -> float:  # share
        return self.slow_compute - 1

    @cached_property
    def slow_lost(self) -> float:  # ratio
        return 1 - 1 / self.slow

    @cached_property
    def lost_device_h(self) -> float:
        """Device-hours a day that everybody loses to the slowest node. [h]"""
        return self.large * 24 * (1 - 1 / self.slow)

    @cached_property
    def slow_node_h(self) -> float:  # h
        return self.per_node * 24 * (1 - 1 / self.slow)

    @cached_property
    def lost_usd(self) -> float:  # USD
        return self.lost_device_h * self.price

    @cached_property
    def bubble(self) -> float:  # share
        return idle_share(self.pp, self.m)

    @cached_property
    def bubble_small(self) -> float:  # share
        return idle_share(self.pp, self.m_small)

    @cached_property
    def bloom_bad_node(self) -> float:
        """Share of throughput that one bad node took from BLOOM's run, from its own log."""
        return 1 - measured.rate("bloom-176b-prod-it42783-badnode") / measured.rate(
            "bloom-176b-prod-it42780"
        )

    @cached_property
    def compute_ms(self) -> float:  # ms
        return 1000.0 * layers_s(self.after) / self.m

    @cached_property
    def kit_dp_s(self) -> float:  # s
        return self.after.step_breakdown_s["dp"]

    @cached_property
    def gradient_times(self) -> float:  # ratio
        return (self.step_s - (self.after.step_s - self.kit_dp_s)) / self.kit_dp_s

    @cached_property
    def megascale_fall(self) -> float:  # ratio
        return float(1 - self.megascale[1].iloc[-1] / self.megascale[1].iloc[0])

    @cached_property
    def megascale_fall_ours(self) -> float:  # ratio
        return float(1 - self.megascale[0].iloc[-1] / self.megascale[0].iloc[0])

    @cached_property
    def node_table(self) -> str:
        """Compute of a micro-batch and waiting in a step of four nodes, each by its own factor; the
        slow one has none given."""
        lines = [
            "| node | compute a micro-batch | waiting in collectives, a step |",
            "| --- | ---: | ---: |",
        ]
        for name, stated in self.nodes:
            factor = self.slow_compute if stated is None else stated
            compute_ms = self.compute_ms * factor
            wait_s = 1e-3 * self.compute_ms * (self.slow_compute - factor) * self.m + 0.02
            lines.append(f"| {name} | {compute_ms:.1f} ms | {wait_s:.2f} s |")
        return "\n".join(lines)

    @cached_property
    def part_table(self) -> str:
        """Measured step parts of an ordinary rank beside those of the kit."""
        kit = self.after.step_breakdown_s
        compute = layers_s(self.after) + kit["logits"]
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
            (f"| {n} | {a:.2f} s | {b:.2f} s |" for n, a, b in rows)
        )

    @cached_property
    def causes(self) -> str:
        lines = []
        for cause in diagnose(self.after_design.change(measured={"mfu": self.mfu_large})).causes[
            :4
        ]:
            size = f" ({cause['size']})" if cause["size"] else ""
            lines.append(f"1. {cause['cause']}{size}; measure: {cause['measure']}")
        return "\n".join(lines)


# ---------------------------------------------------------------- questions


def first_question(f: Facts) -> Explain:
    return Explain(
        id="first",
        axis="scope",
        level="senior",
        minutes=4,
        ask="What do you ask or look up before you open a single trace? Four or five lines.",
        points=(
            Point(
                says="checks how MFU is computed: devices, tokens, step time, peak",
                words=(
                    r"\b(mfu.*(computed|measured|defined)|formula|peak|denominator"
                    r"|number of devices|step time)",
                ),
            ),
            Point(
                says="asks what changed: batch, plan, software, nodes",
                words=(r"\b(chang|batch|plan|config|version|driver|image|new nodes)",),
            ),
            Point(
                says="works out what the new setting should reach: micro-batches, bubble",
                words=(r"\b(expect|bubble|micro-?batch|should|predict)",),
            ),
            Point(
                says=("asks when it fell: at once with the growth or later, steadily or in spikes"),
                words=(r"\b(when|since|sudden|over time|steady|spike|immediately)",),
            ),
        ),
        model=(
            "Is MFU computed with the right number of devices and tokens? What else changed: "
            "batch, plan, software image, new nodes? When did it fall, at once or later? "
            "What do I expect for this setting: fewer micro-batches per replica, so a larger "
            "bubble?"
        ),
        hints=(
            "Is the fall real, and is it a fault at all?",
            "What changed with the devices: batch, plan, data, software, nodes?",
            "Work out what MFU the new setting should have.",
        ),
        worked=(
            "First whether the number is right (devices, tokens, peak in the formula), then "
            "everything that changed at once: the batch, micro-batches per replica, the "
            "plan, the software, which nodes are new. Then the expectation for the new "
            "setting on paper: a fall is only a fault where the measurement lies below what "
            "the plan can do."
        ),
        takeaway=(
            "A regression is measured against the expectation for the new setting, never "
            "against the old number."
        ),
    )


def step_question(f: Facts) -> Number:
    return Number(
        id="step",
        axis="size",
        level="mid",
        ask=(
            f"The dashboard says MFU {show.share(f.mfu_large)} on {f.large:,} H100, {f.batch} "
            f"sequences of {f.seq_len:,} tokens a step, {show.flop(f.flops_per_token)} a "
            "token. How long is a step, in seconds?"
        ),
        expected=f.step_s,
        unit="s",
        made_of=(FLEET,),
        slips=(
            Slip(
                value=f.step_s / 2,
                says=(
                    "That uses the peak with structured sparsity, twice the dense one. "
                    "Training is dense."
                ),
            ),
            Slip(
                value=f.step_s / 3,
                says=(
                    "That counts the forward pass alone: a token costs three times that, "
                    "backward included."
                ),
                within=1.03,
            ),
            Slip(
                value=f.step_s * f.mfu_large,
                says="That is the step at full peak: divide by the MFU.",
            ),
            Slip(
                value=f.step_small_s,
                says=f"That is the step before the growth, on {f.small:,} devices.",
                within=1.02,
            ),
        ),
        hints=(
            "MFU is useful FLOP over what the devices could have done in the time.",
            "`tokens · FLOP per token / (devices · peak · MFU)`.",
            (
                f"`{f.batch} · {f.seq_len:,} · {show.flop(f.flops_per_token)} / ({f.large:,} "
                f"· {show.flops(f.peak)} · {show.share(f.mfu_large)})`"
            ),
        ),
        worked=(
            f"`{f.batch} · {f.seq_len:,} · {show.flop(f.flops_per_token)} / ({f.large:,} · "
            f"{show.flops(f.peak)} · {show.share(f.mfu_large)})` = {show.seconds(f.step_s)}. "
            f"Before it was {show.seconds(f.step_small_s)}: twice the devices bought a factor "
            f"of {show.number(f.speedup)}."
        ),
        takeaway=(
            "Turn a utilisation into seconds before you debug it: seconds add up, "
            "percentages do not."
        ),
    )


def micro_question(f: Facts) -> Number:
    return Number(
        id="micro",
        axis="parallelism",
        level="mid",
        ask=(
            f"The plan is tensor {f.tp}, pipeline {f.pp}, micro-batch {f.micro_batch}; "
            f"research kept the batch at {f.batch} sequences. How many micro-batches does "
            "each replica run a step now?"
        ),
        expected=f.m,
        unit="micro-batches",
        within=1.0,
        slips=(
            Slip(
                value=f.m_small,
                says="That was before: there are twice as many replicas now.",
                within=1.0,
            ),
            Slip(
                value=f.batch // (f.large // f.tp),
                says=(
                    f"The pipeline's {f.pp} stages are one replica together: divide the "
                    "devices by tensor times pipeline."
                ),
                within=1.0,
            ),
        ),
        hints=(
            "How many replicas are there?",
            ("`batch / (replicas · micro-batch)`, replicas = devices / (tensor · pipeline)."),
            f"`{f.large:,} / ({f.tp} · {f.pp})` replicas",
        ),
        worked=(
            f"`{f.large:,} / ({f.tp} · {f.pp})` = {f.dp} replicas share {f.batch} sequences: "
            f"{f.m} micro-batches each. Before the growth it was {f.m_small}."
        ),
        takeaway="At a fixed batch every new replica takes micro-batches from the old ones.",
    )


def bubble_question(f: Facts) -> Number:
    return Number(
        id="bubble",
        axis="communication",
        level="senior",
        ask=(
            "What share of the step does a plain 1F1B pipeline idle now, in per cent of the "
            "whole step?"
        ),
        expected=f.bubble,
        unit="%",
        scale=0.01,
        within=1.06,
        slips=(
            Slip(
                value=f.bubble_over_ideal,
                says=(
                    "That is over the ideal time, `(p - 1) / m`, as the Megatron paper "
                    "prints it. The question asks for the share of the whole step."
                ),
            ),
            Slip(
                value=f.bubble_small,
                says=f"That is the bubble before the growth, with {f.m_small} micro-batches.",
                within=1.03,
            ),
            Slip(
                value=f.pp / (f.m + f.pp),
                says="`p - 1` slots idle, not `p`: the first stage starts at once.",
                within=1.03,
            ),
        ),
        hints=(
            ("How many micro-batch times pass until the last stage has its first work, and back?"),
            "`(p - 1) / (m + p - 1)` of the whole step.",
            f"`({f.pp} - 1) / ({f.m} + {f.pp} - 1)`",
        ),
        worked=(
            f"`({f.pp} - 1) / ({f.m} + {f.pp} - 1)` = {show.share(f.bubble)}; before, with "
            f"{f.m_small} micro-batches, {show.share(f.bubble_small)}. The kit, which counts "
            "what does not scale with the pipeline too, says "
            f"{show.share(f.after.bubble_fraction)}."
        ),
        takeaway=(
            "The bubble goes with one over micro-batches per stage: growing devices at a "
            "fixed batch is a decision to idle."
        ),
    )


def expected_question(f: Facts) -> Number:
    return Number(
        id="expected",
        axis="size",
        level="senior",
        ask=(
            f"It ran at {show.share(f.mfu_small)} before. What MFU does the bubble alone let "
            "you expect now, in per cent?"
        ),
        expected=f.expected,
        unit="%",
        scale=0.01,
        within=1.04,
        slips=(
            Slip(
                value=f.one_bubble,
                says=(
                    "Tempting, since it explains the whole fall: but the "
                    f"{show.share(f.mfu_small)} already had a bubble of "
                    f"{show.share(f.bubble_small)} in it. Divide that out."
                ),
                within=1.03,
            ),
            Slip(
                value=f.mfu_small,
                says=(
                    "That would be weak scaling, with a batch that grows along. The batch stayed."
                ),
                within=1.01,
            ),
        ),
        hints=(
            "The old figure had a bubble in it as well.",
            "Working share now over working share then.",
            (
                f"`{show.share(f.mfu_small)} · (1 - {show.share(f.bubble)}) / (1 - "
                f"{show.share(f.bubble_small)})`"
            ),
        ),
        worked=(
            f"`{show.share(f.mfu_small)} · (1 - {show.share(f.bubble)}) / (1 - "
            f"{show.share(f.bubble_small)})` = {show.share(f.expected)}. So most of the fall "
            "is arithmetic: nobody broke anything. The kit, with costs that do not shrink "
            f"per step, expects {show.share(f.after.mfu)}."
        ),
        takeaway=(
            "Most of a scaling loss is usually in the plan; find that part first, and only "
            "then look for what is broken."
        ),
    )


def late_question(f: Facts) -> Number:
    return Number(
        id="late",
        axis="verification",
        level="senior",
        ask=(
            "Against that expectation: how much longer than it should be is the measured "
            "step, in per cent?"
        ),
        expected=f.late,
        unit="%",
        scale=0.01,
        within=1.1,
        slips=(
            Slip(
                value=f.points,
                says=(
                    "Those are points of MFU. The step is longer by the ratio of the two, "
                    "not by their difference."
                ),
            ),
            Slip(
                value=f.mfu_small / f.mfu_large - 1,
                says=(
                    "That compares with the run before the growth and blames the bubble on "
                    "the fault."
                ),
                within=1.03,
            ),
        ),
        hints=(
            "Seconds, not points of MFU.",
            "Step times go as one over MFU.",
            f"`{show.share(f.expected)} / {show.share(f.mfu_large)} - 1`",
        ),
        worked=(
            f"`{show.share(f.expected)} / {show.share(f.mfu_large)} - 1` = "
            f"{show.share(f.late)}. Against the kit's own step of "
            f"{show.seconds(f.after.step_s)}, which also counts the fixed costs, "
            f"{show.share(f.slow_share)} remain: that is the size of what you are looking "
            "for."
        ),
        takeaway=(
            "Give the fault a size in seconds before you look for it; it says which suspects "
            "are large enough."
        ),
    )


def late_note(f: Facts) -> str:
    return (
        "What the kit takes for likely at this size, most likely first:\n\n"
        f"{f.causes}\n\n"
        "The list is a set of experiments, not a verdict."
    )


def location_question(f: Facts) -> Choice:
    return Choice(
        id="where",
        axis="communication",
        level="staff",
        ask=(
            "A profile of one ordinary rank:\n\n"
            f"{f.part_table}\n\n"
            f"The gradient reduction takes {f.gradient_times:.0f} times what it should. The "
            "network team tests it alone: full rate. What is going on?"
        ),
        expected="b",
        options=(
            Option(
                key="a",
                text="the network is congested when all of it is in use",
                says=(
                    "Then the test alone would be sound, but the waiting would differ from "
                    "step to step and all ranks would wait the same; look at the waiting by "
                    "rank first, it costs minutes."
                ),
            ),
            Option(
                key="b",
                text="some rank arrives late, and everybody waits for it inside the reduction",
                says="Yes: waiting is booked where it happens, not where it comes from.",
            ),
            Option(
                key="c",
                text="gradients are reduced in fp32 instead of bf16",
                says=(
                    f"That doubles the bytes; it cannot make {f.gradient_times:.0f} times of "
                    "it, and it would be there before the growth too."
                ),
            ),
            Option(
                key="d",
                text="the bubble is larger than the formula says",
                says="Pipeline idle time is its own line, and it is as expected.",
            ),
        ),
        hints=(
            ("What does a collective measure: the transfer, or the wait for the last to arrive?"),
            "A rank that arrives early waits inside the collective.",
            "Compute is as expected here; the network is as expected alone.",
        ),
        worked=(
            "The collective starts when the last rank arrives, so every early rank books its "
            "waiting there. Compute on this rank is as expected and the network is sound "
            "alone: somebody else is late."
        ),
        takeaway=(
            "A slow collective on a sound network is a slow rank somewhere else: look for "
            "the rank that does not wait."
        ),
    )


def which_question(f: Facts) -> Choice:
    return Choice(
        id="which",
        axis="verification",
        level="senior",
        ask=(
            f"Four nodes of the {f.large:,} devices' list:\n\n"
            f"{f.node_table}\n\n"
            "Which one do you drain?"
        ),
        expected=f.slow_node,
        options=(
            Option(key="a", text="node-041", says="It computes as the others do, and waits."),
            Option(
                key="b",
                text="node-087",
                says="It is the fastest of the four and waits longest: a victim.",
            ),
            Option(key="c", text="node-173", says="Yes: longest compute, least waiting."),
            Option(
                key="d", text="node-202", says="That is ordinary scatter; it waits like the others."
            ),
        ),
        hints=(
            "The late one is not the one that waits.",
            "Longest compute, least waiting.",
            "Compare the columns row by row.",
        ),
        worked=(
            f"node-173 computes {show.share(f.slow_compute_share)} longer and hardly waits: all "
            "others wait for it. That it waits least is the proof, more than that it "
            f"computes longest. And the size fits: {f.m} micro-batches, each "
            f"{f.compute_ms * f.slow_compute_share:.0f} ms late, are the "
            f"{show.seconds(f.late_s)} by which the reduction is too long."
        ),
        takeaway="The culprit is the rank that does not wait.",
    )


def which_note(f: Facts) -> str:
    return (
        "Waiting by rank is the cheapest instrument there is: one number a rank and step, from "
        "the collective library's own log. It happens to everybody: BLOOM's log shows the same "
        f"run before and with one bad node, {show.share(f.bloom_bad_node)} of its throughput "
        f"apart; here it is {show.share(f.slow_lost)}."
    )


def tax_question(f: Facts) -> Number:
    return Number(
        id="tax",
        axis="cost",
        level="senior",
        ask=(
            f"This one node of {f.per_node} devices makes every step {show.share(f.slow_share)} "
            "longer. How many device-hours does the run lose a day?"
        ),
        expected=f.lost_device_h,
        unit="device-hours",
        within=1.1,
        slips=(
            Slip(
                value=f.slow_node_h,
                says=(f"That is what the node itself loses. All {f.large:,} devices wait for it."),
            ),
            Slip(
                value=f.large * (24 * f.slow_share),
                says="Nearly: the lost share is `1 - 1/ratio` of the day, not `ratio - 1`.",
                within=1.01,
            ),
        ),
        hints=("Who waits?", "`devices · 24 h · (1 - 1 / ratio)`.", f"ratio {f.slow:.3f}"),
        worked=(
            f"`{f.large:,} · 24 h · (1 - 1/{f.slow:.3f})` = {f.lost_device_h:,.0f} "
            f"device-hours, {show.usd(f.lost_usd)} a day at {f.price:.2f} dollars. The node's "
            f"own loss is {f.slow_node_h:.0f}."
        ),
        takeaway="In a synchronous job the slowest rank is priced as if all of them were slow.",
    )


def tax_note(f: Facts) -> str:
    return (
        "`devices · (1 - 1 / ratio)`: the price of the slowest rank grows with the job, its "
        f"chance of being there as well. In this job every one of {f.large:,} devices has to be "
        "as fast as the others, every step."
    )


def prove_question(f: Facts) -> Explain:
    return Explain(
        id="prove",
        axis="verification",
        level="staff",
        minutes=4,
        ask=(
            "Draining the node costs a restart. How do you make sure first, and what would "
            "change your mind?"
        ),
        points=(
            Point(
                says="tests the node alone: a GEMM or short step on every node",
                words=(r"\b(alone|gemm|matmul|burn|micro-?bench|single node|each node)",),
            ),
            Point(
                says="reads clocks, power, temperature, error counters",
                words=(r"\b(clock|power|thermal|temperature|xid|ecc|counter|throttl)",),
            ),
            Point(
                says=(
                    "exchanges it and watches whether the symptom follows the node, the "
                    "place or the rank"
                ),
                words=(r"\b(swap|exchange|replace|spare|move|remap|follow)",),
            ),
            Point(
                says="says what would prove it wrong",
                words=(
                    r"\b(wrong|change my mind|otherwise|if not|if the next|not the node|rule out)",
                ),
            ),
        ),
        model=(
            "A GEMM of the model's shape alone on each node, clocks, power and temperature "
            "of the suspect. Then swap it with a spare and see whether the slow rank follows "
            "the node, the place or the rank's layers. If the spare is slow in the same "
            "place, I am wrong about the node: it is the rack or the stage."
        ),
        hints=(
            "A cause that you can move is a cause.",
            "Run the same work without it, or its work elsewhere.",
            "Clocks, power, a GEMM alone on each node, then swap.",
        ),
        worked=(
            "Run one matrix product of the model's shape alone on every node: seconds, no "
            "restart. Read clock, power and temperature of its devices. Then exchange the "
            "node with a spare: if the waiting goes, it was the node; if the next node in "
            "the same place is slow, it is the place (rack power, cooling, the stage's "
            "layers); if the waiting moves with the rank, it is the rank's work."
        ),
        takeaway="Move one thing at a time and see whether the symptom moves with it.",
    )


def plan_question(f: Facts) -> Plan:
    def as_it_was(trial: Assessment, best: Assessment) -> str:
        return (
            f"That is the plan as it was: {show.share(trial.mfu)}, with "
            f"{show.share(trial.bubble_fraction)} of the step idle. The best has "
            f"{show.share(best.mfu)}."
        )

    def long_pipeline(trial: Assessment, best: Assessment) -> str:
        return (
            f"A longer pipeline without interleaving idles {show.share(trial.bubble_fraction)} of "
            f"the step: {f.m} micro-batches cannot fill it."
        )

    return Plan(
        id="plan",
        axis="parallelism",
        level="staff",
        minutes=6,
        ask=(
            "The node is drained; the bubble is still there. Research holds the batch at "
            f"{f.batch}. Give a plan for the {f.large:,} devices within a tenth of the best "
            "step."
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
                says=as_it_was,
                among={"tp": [8], "pp": [4], "vpp": [None, 1]},
            ),
            PlanSlip(
                example={
                    "tp": 4,
                    "pp": 8,
                    "vpp": 1,
                    "cp": 1,
                    "micro_batch": 1,
                    "recompute": "none",
                },
                says=long_pipeline,
                at_least={"pp": 8},
                among={"vpp": [None, 1]},
            ),
        ),
        hints=(
            "What makes a bubble smaller at the same batch?",
            "More chunks a stage, fewer stages, or weight gradients moved into the gaps.",
            (
                f"80 layers divide by stages times chunks; tensor parallelism below {f.tp} "
                "leaves smaller all-reduces."
            ),
        ),
        worked=(
            f"The kit's best: {show.share(f.best.mfu)} at {show.seconds(f.best.step_s)} a "
            f"step, against {show.share(f.after.mfu)} for the plan as it was. Interleaving "
            "divides the bubble by the chunks a stage holds, so much that tp "
            f"{f.best.plan['tp']} with {f.best.plan['pp']} stages idles "
            f"{show.share(f.best.bubble_fraction)} of the step. With the degrees as they were, tp "
            f"{f.tp} and pp {f.pp}, the best is {show.seconds(f.interleaved.step_s)}: its "
            f"all-reduces take {show.seconds(f.interleaved.step_breakdown_s['tp'])} instead of "
            f"{show.seconds(f.best.step_breakdown_s['tp'])}."
        ),
        takeaway=(
            "At a fixed batch the schedule is the lever: interleave, then trade tensor "
            "parallelism for stages, and only then ask research for a larger batch."
        ),
    )


def again_question(f: Facts) -> Choice:
    return Choice(
        id="again",
        axis="communication",
        level="staff",
        ask=(
            "A week later another run falls by as much. Every node computes alike and waits "
            "alike; the all-reduce alone, without the job, reaches four tenths of its old "
            "rate on all of them. Where do you look?"
        ),
        expected="b",
        options=(
            Option(
                key="a",
                text="for one slow node again",
                says="Then one node would compute longer and wait less; here all are alike.",
            ),
            Option(
                key="b",
                text=(
                    "at the network: routing, a plane that is down, the transport the library chose"
                ),
                says="Yes: slow alone, for everybody.",
            ),
            Option(
                key="c",
                text="at the data loader",
                says=(
                    "It shows as a gap before the first kernel, and leaves the all-reduce "
                    "alone at full rate."
                ),
            ),
            Option(
                key="d",
                text="at the batch size",
                says="It has not changed, and it does not slow an all-reduce alone.",
            ),
        ),
        hints=(
            "What is the same for all, and slow even without the job?",
            "A rank that is late makes others wait; here nobody is early.",
            "Compare with the table of the first case.",
        ),
        worked=(
            "Nobody waits for anybody, and the collective is slow by itself: that is the "
            "network. A uniform loss points at what all share: a routing change, one plane "
            "or rail down (jobs go on with the rest), congestion control, or a library that "
            "fell back to another transport."
        ),
        takeaway=(
            "Uneven waiting: a rank. Even waiting with a slow transfer: the network. Even "
            "waiting with a sound transfer: the host or the input."
        ),
    )


def tell_question(f: Facts) -> Explain:
    return Explain(
        id="tell",
        axis="telling",
        level="staff",
        minutes=4,
        ask="Write the incident in four sentences for somebody who pays for the machine.",
        points=(
            Point(
                says="says the cost: dollars, device-hours or days",
                words=(r"\b(\$|dollars?|device-?hours|gpu-?hours|days|cost)",),
            ),
            Point(
                says="separates the planned part (batch, bubble) from the fault (node)",
                words=(r"\b(bubble|batch|micro-?batch|plan)",),
            ),
            Point(
                says="names the node, and that it is drained",
                words=(r"\b(node|drain|replac|spare)",),
            ),
            Point(
                says="names the decision that is needed, and who takes it",
                words=(r"\b(decid|decision|research|batch|approve|interleav|agree)",),
            ),
            Point(
                says="names the alarm or test that will find it earlier",
                words=(r"\b(alarm|alert|monitor|watch|per-?rank|screen|burn-?in)",),
            ),
        ),
        model=(
            f"Since the growth one slow node has cost {show.usd(f.lost_usd)} a day; it is "
            "drained. The larger part of the fall was the plan: at a fixed batch twice the "
            f"devices idle {show.share(f.bubble)} of the step in the pipeline, and an interleaved "
            f"schedule brings MFU from {show.share(f.mfu_large)} to {show.share(f.best.mfu)}. A "
            "larger batch is research's decision, by Friday. An alert on waiting per rank will "
            "find the next slow node within an hour."
        ),
        hints=(
            "Money and days first.",
            "Two causes, one of them a decision.",
            "What is done, what is asked, what will be watched.",
        ),
        worked=(
            "Lead with what it cost and that it is over, separate the decision (growing at a "
            "fixed batch) from the fault (one node), say what was done and what you need "
            "decided, and name the alarm that will see it next time."
        ),
        takeaway=(
            "An incident has a cost, a cause, a fix and an alarm; percentages of utilisation "
            "are none of them."
        ),
    )


def tell_note(f: Facts) -> str:
    return f"At {f.price:.2f} dollars a device-hour the fault cost {show.usd(f.lost_usd)} a day."


BOOK = Walkthrough(
    number="06",
    name="mfu_fell",
    title="Debug: MFU fell from 35 to 26 % after growing",
    minutes=50,
    book=Facts,
    asks=(
        first_question,
        step_question,
        micro_question,
        bubble_question,
        expected_question,
        late_question,
        location_question,
        which_question,
        tax_question,
        prove_question,
        plan_question,
        again_question,
        tell_question,
    ),
)
