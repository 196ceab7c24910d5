"""The full round: a dense model of the 100B to 700B class on 16,384 H100, from the first questions
to the defence of the plan."""

from dataclasses import replace
from functools import cached_property
from math import exp

from scantling import Assessment, assess
from scantling.base import show
from scantling.base.units import DAY_S
from scantling.catalogue.models.shape import Params, flops_per_token, parameters
from scantling.design.design import Design
from scantling.endure import goodput
from scantling.endure.cost import Cost
from scantling.endure.reliability import Endurance

from .. import measured
from ..measured import Run, Total
from ..question import (
    FLEET,
    WORK,
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
from ..texts import scientific
from .shared_sums import DesignFacts, idle_share, swept


class Facts(DesignFacts):
    """The numbers of the book, each worked out when it is first asked for, with its unit."""

    tokens = 1.56e13  # tokens
    devices = 16_384  # devices
    mfu = 0.4  # share
    stall_s = 10.0  # s
    interval_hour_s = 3600.0  # s
    plan_variants: tuple[tuple[str, dict[str, int]], ...] = (
        ("the best found", {}),
        ("tp 8 · pp 16 · dp 128, as published", {"tp": 8, "pp": 16, "dp": 128}),
        ("tp 16: across two nodes", {"tp": 16}),
        ("tp 4", {"tp": 4}),
    )

    @cached_property
    def design(self) -> Design:
        return Design.from_data(
            {
                "name": "Llama 3.1 405B on 16,384 H100",
                "model": "llama-3.1-405b",
                "cluster": {
                    "accelerator": "h100-sxm",
                    "devices": self.devices,
                    "devices_per_node": 8,
                    "scale_out": "rocev2-400",
                    "pod_devices": 3072,
                },
                "job": {
                    "tokens": self.tokens,
                    "seq_len": 8192,
                    "global_batch": 2048,
                    "precision": "bf16",
                },
                "reliability": {"preset": "llama3"},
            }
        )

    @cached_property
    def published_hours(self) -> Total:
        return measured.published("llama31-405b-hours")

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        return measured.runs("llama3-405b-t4-1", "llama3-405b-t4-2")

    @cached_property
    def params(self) -> float:  # parameters
        return float(self.parts.total)

    @cached_property
    def params_layer(self) -> float:  # parameters
        return float((self.params - self.parts.embedding - self.parts.lm_head) / self.model.layers)

    @cached_property
    def rule(self) -> float:  # parameters
        return 12.0 * self.model.layers * self.model.hidden**2

    @cached_property
    def flops(self) -> float:  # FLOP
        return 6 * self.params * self.tokens

    @cached_property
    def days_at_mfu(self) -> float:  # days
        return self.flops / (self.devices * self.chip.bf16_flops * self.mfu) / DAY_S

    @cached_property
    def days(self) -> float:
        """Days at the stated MFU and the goodput. [days]"""
        return self.days_at_mfu / self.goodput_share

    @cached_property
    def published_days(self) -> float:  # days
        return self.published_hours.value / self.devices / 24

    @cached_property
    def state_bytes(self) -> float:  # bytes
        return 18 * self.params

    @cached_property
    def state_devices(self) -> float:  # devices
        return self.state_bytes / self.chip.hbm_usable_bytes

    @cached_property
    def ratio(self) -> float:  # ratio
        return self.up / self.out

    @cached_property
    def micro_batches(self) -> int:  # micro-batches
        return 2048 // 128

    @cached_property
    def bubble_over_ideal(self) -> float:  # share
        return (16 - 1) / self.micro_batches

    @cached_property
    def endurance(self) -> Endurance:
        return self.result.endurance

    @cached_property
    def rate(self) -> float:  # failures per 1,000 node-days
        return float(self.endurance.failures_per_1000_node_days)

    @cached_property
    def nodes(self) -> int:  # nodes
        return self.devices // 8

    @cached_property
    def failures_a_day(self) -> float:  # failures
        return DAY_S / self.mtbf_s

    @cached_property
    def gone_at_mtbf(self) -> float:
        """Chance that a failure strikes before a save at an interval as long as the time between
        failures. [share]"""
        return 1 - exp(-1)

    @cached_property
    def mtbf_s(self) -> float:  # s
        return float(self.endurance.mtbf_s)

    @cached_property
    def recovery_s(self) -> float:  # s
        return float(self.endurance.recovery_s)

    @cached_property
    def goodput_share(self) -> float:  # share
        return 1 - self.lost

    @cached_property
    def lost_saves(self) -> float:  # share
        return self.stall_s / (self.young_s + self.stall_s)

    @cached_property
    def lost_work(self) -> float:  # share
        return self.young_s / 2 / self.mtbf_s

    @cached_property
    def lost_recovery(self) -> float:  # share
        return self.recovery_s / self.mtbf_s

    @cached_property
    def lost_sum(self) -> float:
        """The three losses added, to first order. [share]"""
        return self.lost_saves + self.lost_work + self.lost_recovery

    @cached_property
    def cost(self) -> Cost:
        if self.result.cost is None:
            raise ValueError("the run has no price")
        return self.result.cost

    @cached_property
    def price(self) -> float:  # USD a device-hour
        if self.cost.usd_per_device_hour is None:
            raise ValueError("the run has no price")
        return self.cost.usd_per_device_hour

    @cached_property
    def usd(self) -> float:  # USD
        return self.days * 24 * self.devices * self.price

    @cached_property
    def days_at_45(self) -> float:  # days
        return self.days * self.mfu / 0.45

    @cached_property
    def days_at_35(self) -> float:  # days
        return self.days * self.mfu / 0.35

    @cached_property
    def usd_at_45(self) -> float:  # USD
        return self.usd * self.mfu / 0.45

    @cached_property
    def usd_at_35(self) -> float:  # USD
        return self.usd * self.mfu / 0.35

    @cached_property
    def five_points(self) -> float:  # USD
        return self.usd * self.mfu * (1 / 0.4 - 1 / 0.45)

    @cached_property
    def parts(self) -> Params:
        return parameters(self.model)

    @cached_property
    def flops_exact(self) -> float:  # FLOP
        return float(flops_per_token(self.model, 8192).total * self.tokens)

    @cached_property
    def bubble(self) -> float:  # share
        return idle_share(16, self.micro_batches)

    @cached_property
    def bubble_interleaved(self) -> float:  # share
        return idle_share(16, self.micro_batches, 8)

    @cached_property
    def young_s(self) -> float:  # s
        return float(goodput.young(self.mtbf_s, self.stall_s))

    @cached_property
    def lost(self) -> float:
        """Share of the wall time lost at Young's interval, exactly; first-order sums lie within a
        few per cent of it. [share]"""
        return float(
            1 - goodput.ettr(self.mtbf_s, self.stall_s, self.young_s, down_s=self.recovery_s)
        )

    @cached_property
    def lost_hourly(self) -> float:  # share
        return float(
            1
            - goodput.ettr(self.mtbf_s, self.stall_s, self.interval_hour_s, down_s=self.recovery_s)
        )

    @cached_property
    def params_mha(self) -> float:  # parameters
        return float(
            parameters(replace(self.model, attention="mha", kv_heads=self.model.heads)).total
        )

    @cached_property
    def params_plain(self) -> float:  # parameters
        return float(parameters(replace(self.model, mlp="gelu")).total)

    @cached_property
    def halved(self) -> dict[int, Assessment]:
        return swept(self.design, "cluster.devices", self.devices // 2)

    @cached_property
    def smaller(self) -> Assessment:
        return self.halved[self.devices // 2]

    @cached_property
    def plan_rows(self) -> list[tuple[str, Assessment]]:
        return [(name, assess(self.design.change(plan=plan))) for name, plan in self.plan_variants]

    @cached_property
    def half_answer(self) -> str:
        return "b" if self.smaller.mfu > self.result.mfu else "a"


# ---------------------------------------------------------------- questions


def scope_question(f: Facts) -> Choice:
    return Choice(
        id="scope",
        axis="scope",
        level="senior",
        minutes=4,
        ask=(
            "You have five minutes for questions. Which of these do you ask **before** you "
            "draw anything? Name all that change the design."
        ),
        expected=("a", "b", "c", "d", "e"),
        several=True,
        options=(
            Option(key="a", text="How many tokens, by when, and who may move the date?"),
            Option(
                key="b",
                text=(
                    "Bandwidth per device at each tier: inside the node, to the rack, across pods?"
                ),
            ),
            Option(
                key="c",
                text=(
                    "How often did this fleet fail last quarter, and how long did a restart take?"
                ),
            ),
            Option(
                key="d", text="Which global batch is agreed with the people who own convergence?"
            ),
            Option(key="e", text="What is success: the date, the dollars, or goodput?"),
            Option(
                key="f",
                text="Which version of the attention kernel will be used?",
                says=(
                    "a kernel moves the step by a few per cent and can be changed on any day "
                    "of the run"
                ),
            ),
            Option(
                key="g",
                text="What latency must the model reach when it serves?",
                says="serving is another system; it may shape the model, which is fixed here",
            ),
            Option(
                key="h",
                text="Will the loss curve be logged every step or every ten?",
                says="it changes nothing that is bought or placed",
            ),
        ),
        hints=(
            ("For each, ask: would a different answer change the plan, the fleet or the date?"),
            (
                "Fix the amount of work, the machine, what breaks, and what may not change. "
                "The rest can wait or belongs to others."
            ),
            "Five of the eight belong.",
        ),
        worked=(
            "Work (tokens, deadline), machine (network per device and tier), what breaks "
            "(failure history), what must not change (global batch), and what counts "
            "(goodput or dollars per token). Peak utilisation is none of them: it is an "
            "outcome."
        ),
        takeaway=(
            "Ask for what moves the design; say aloud what you leave out. A design that "
            "maximises MFU and ignores restarts answers another question."
        ),
    )


def scope_note(f: Facts) -> str:
    return (
        "\n"
        "Here are the answers you get. **Tokens**: 15.6 trillion, in sequences of 8,192. "
        f"**Batch**: 2,048 sequences, agreed. **Failures**: {f.rate:.2f} per 1,000 node-days "
        "last quarter.\n"
        f"**Network**: no oversubscription inside a pod of {f.cluster.pod_devices:,} devices. "
        "**Success**: the date first, then dollars.\n\n"
        "Each of them turns up below as a number that changes the plan. In the kit they are "
        'the fields of one design: `sc.Design.read("design.yaml")`.\n'
    )


def params_question(f: Facts) -> Number:
    return Number(
        id="params",
        axis="size",
        level="mid",
        ask="Count the parameters from the shape alone.",
        expected=f.params,
        unit="parameters",
        within=1.03,
        manner="params",
        slips=(
            Slip(
                value=f.params_mha,
                says=(
                    f"That gives every head its own keys and values; the {f.model.heads} "
                    f"heads share {f.model.kv_heads}."
                ),
            ),
            Slip(value=f.params_plain, says="The MLP is gated (SwiGLU): three matrices, not two."),
        ),
        hints=(
            (
                "A layer has attention (queries, keys, values, output) and an MLP; then come "
                "embedding and head."
            ),
            (
                "Attention `2·h·h + 2·h·kv_heads·head_dim`; a gated MLP `3·h·ffn`; embedding "
                "and head `2·vocab·h`."
            ),
            (
                f"{show.params(f.params_layer)} a layer, {f.model.layers} layers, "
                f"{show.params(f.parts.embedding)} each for embedding and head."
            ),
        ),
        worked=(
            f"Attention {show.params(f.parts.attention)}, MLP "
            f"{show.params(f.parts.mlp_dense)}, embedding and head "
            f"{show.params(f.parts.embedding)} each: {show.params(f.params)} in all."
        ),
        takeaway=(
            "Count by part. The rule of thumb `12 · layers · hidden²` gives "
            f"{show.params(f.rule)} here, right only because the keys and values that "
            "grouping saves are about what the wide gated MLP adds."
        ),
    )


def flops_question(f: Facts) -> Number:
    return Number(
        id="flops",
        axis="size",
        level="senior",
        ask="How much compute does the whole run take?",
        expected=f.flops,
        unit="FLOP",
        within=1.09,
        made_of=(WORK,),
        slips=(
            Slip(
                value=f.flops / 3,
                says=(
                    "That is the forward pass alone, `2ND`; the backward pass costs twice as "
                    "much again."
                ),
            ),
            Slip(
                value=f.flops * 4 / 3,
                says=(
                    "That adds a full recompute, `8ND`. Recompute is work for the device, "
                    "not for the model: it belongs in HFU, not in the size of the job."
                ),
            ),
            Slip(value=f.flops * 2 / 3, says="That is the backward pass alone, `4ND`."),
        ),
        hints=(
            "Parameters times tokens, times a constant.",
            "Forward two FLOP per parameter and token, backward twice that.",
            f"`6 · {show.params(f.params)} · {show.params(f.tokens)}`",
        ),
        worked=(
            f"`6 · N · D` = {scientific(f.flops)} FLOP. With attention's own products, which "
            f"`6ND` leaves out, it is {scientific(f.flops_exact)}: either counts as right "
            "here."
        ),
        takeaway=(
            "Six FLOP per parameter and token, plus attention, which grows with the context. "
            "Say which of the two an MFU is measured with: at this length they differ by a "
            "twelfth."
        ),
    )


def flops_note(f: Facts) -> str:
    return (
        "`flops_per_token` counts matrix products only, three times the forward pass: "
        f"{scientific(f.flops_exact)} FLOP for all tokens with attention, {scientific(f.flops)} "
        "without."
    )


def days_question(f: Facts) -> Number:
    return Number(
        id="days",
        axis="size",
        level="senior",
        ask=(
            "At an MFU of 40 % on all 16,384 devices, and with nothing ever failing: how many days?"
        ),
        expected=f.days_at_mfu,
        unit="days",
        within=1.1,
        made_of=(WORK, FLEET),
        slips=(
            Slip(
                value=f.days_at_mfu / 2,
                says=(
                    "That divides by the sparse peak (or the fp8 one), twice the dense bf16 "
                    "rate. Nobody trains with structured sparsity, and the precision here is "
                    "bf16."
                ),
            ),
            Slip(value=f.days_at_mfu / 3, says="That counts the forward pass alone."),
            Slip(
                value=f.days_at_mfu * f.mfu,
                says="That is the time at full peak: the MFU is missing.",
            ),
        ),
        hints=(
            "Compute divided by what the fleet delivers.",
            "`6ND / (devices · peak · MFU)`, with the dense bf16 peak.",
            f"{show.flops(f.chip.bf16_flops)} dense for each device.",
        ),
        worked=(
            f"{scientific(f.flops)} FLOP over {f.devices:,} × {show.flops(f.chip.bf16_flops)} "
            f"× 40 % is {f.days_at_mfu:.1f} days."
        ),
        takeaway=(
            "Two minutes from tokens to days. The MFU is the one soft number in it, so give "
            "a range: 35 to 45 % is what dense models of this size have reached on this "
            "chip."
        ),
    )


def state_question(f: Facts) -> Number:
    return Number(
        id="state",
        axis="memory",
        level="senior",
        ask=(
            "How many of these devices does it take just to **hold** weights (bf16), "
            "gradients (fp32) and Adam's states with an fp32 master copy? No activations."
        ),
        expected=f.state_devices,
        unit="devices",
        within=1.03,
        slips=(
            Slip(
                value=f.state_devices * 16 / 18,
                says=(
                    "That is 16 bytes: gradients in bf16. They are said to be kept in fp32 "
                    "here, which costs two more."
                ),
            ),
            Slip(
                value=f.state_devices * 2 / 18,
                says=(
                    "That holds the weights alone: gradients and Adam's states are eight "
                    "times as much."
                ),
                within=1.06,
            ),
            Slip(
                value=f.state_bytes / 8e10,
                says=(
                    "You divided by 80e9 bytes. The name on the box means GiB: a program "
                    f"gets {show.size(f.chip.hbm_usable_bytes)}."
                ),
                within=1.02,
            ),
        ),
        hints=(
            ("Bytes per parameter first; then what a program can really allocate on one card."),
            (
                '`2 + 4 + 4 + 4 + 4` bytes; an "80 GB" card lets a program have '
                f"{show.size(f.chip.hbm_usable_bytes)}."
            ),
            f"`18 · {show.params(f.params)} / {show.size(f.chip.hbm_usable_bytes)}`",
        ),
        worked=(
            f"18 bytes a parameter make {show.size(f.state_bytes)}; over "
            f"{show.size(f.chip.hbm_usable_bytes)} a device that is {f.state_devices:.0f} "
            "devices before a single activation."
        ),
        takeaway=(
            "The state alone needs tens of cards, so the question is never whether to shard "
            "it but along which axis. 16 bytes is as often right: it depends on the "
            "gradients' precision."
        ),
    )


def plan_question(f: Facts) -> Plan:
    def outside_the_node(trial: Assessment, best: Assessment) -> str:
        return (
            f"tp {trial.plan['tp']} leaves the node: its collectives, twice forward and twice "
            "backward in every layer, run over the network. Exposed tensor-parallel time is "
            f"{show.seconds(trial.step_breakdown_s['tp'])} of a {show.seconds(trial.step_s)} step, "
            f"against {show.seconds(best.step_breakdown_s['tp'])} at the best plan."
        )

    def sharded_data_only(trial: Assessment, best: Assessment) -> str:
        return (
            "Sharded data parallelism alone gathers every weight over the network for every "
            f"micro-batch: {show.seconds(trial.step_s)} a step against "
            f"{show.seconds(best.step_s)}. It is a good plan where each device has many more "
            "tokens to work on."
        )

    def long_pipeline(trial: Assessment, best: Assessment) -> str:
        return (
            "It fits with room to spare, and pays for it: with so many stages the pipeline "
            f"idles {show.share(trial.bubble_fraction)} of the step."
        )

    return Plan(
        id="plan",
        axis="parallelism",
        level="staff",
        minutes=6,
        ask=(
            "Give the first plan that you would take to the review: `tp`, `pp`, `dp` (and "
            "whatever else you want to fix). It has to fit and to be within a tenth of the "
            "best."
        ),
        design=f.design,
        names=("tp", "pp", "dp"),
        slips=(
            PlanSlip(
                example={"tp": 16, "pp": 8, "dp": 128}, says=outside_the_node, at_least={"tp": 9}
            ),
            PlanSlip(
                example={"tp": 1, "pp": 1, "dp": 2048, "cp": 8, "sharding": "zero3"},
                says=sharded_data_only,
                at_most={"tp": 1, "pp": 1},
            ),
            PlanSlip(
                example={"tp": 8, "pp": 63, "dp": 32}, says=long_pipeline, at_least={"pp": 40}
            ),
        ),
        hints=(
            "What must stay inside a node? What may cross?",
            (
                "Tensor parallelism fills the fast domain of 8; pipeline takes the layers "
                "across nodes; data parallelism takes the rest, as far as the batch of 2,048 "
                "allows."
            ),
            (
                "`tp · pp · dp (· cp) = 16,384`; with tp 8, 16 stages leave three quarters "
                "of a device for activations, and dp 128 leaves 16 micro-batches a replica to "
                "fill them."
            ),
        ),
        worked=(
            f"tp fills the node. pp 16 leaves {f.model.layers} layers on 16 stages, eight or "
            "so each. The rest is dp, with Adam's states sharded over it; cp 2 halves the "
            "activations and dp, so that nothing is recomputed and a replica has twice the "
            f"micro-batches: {show.seconds(f.result.step_s)} a step against "
            f"{show.seconds(f.plan_rows[1][1].step_s)} without it."
        ),
        takeaway=(
            "Fast domain first, then the fewest stages that fit, then data. Several plans "
            "lie within a few per cent of each other: choose the one that your people have "
            "run."
        ),
    )


def ratio_question(f: Facts) -> Number:
    return Number(
        id="ratio",
        axis="communication",
        level="senior",
        ask=(
            "Per device and per direction: how many times faster is the link inside the node "
            "than the one out of it?"
        ),
        expected=f.ratio,
        unit="times",
        within=1.08,
        slips=(
            Slip(
                value=f.ratio * 2,
                says=(
                    "That sets NVLink's two directions together against one direction of the "
                    "NIC. Compare one way with one way."
                ),
            ),
            Slip(value=f.ratio / 8, says="400 Gb/s is bits: divide by eight before you compare."),
            Slip(
                value=f.ratio / 4,
                says=(
                    "Bits for bytes, and both directions of NVLink: two slips that partly "
                    "hide each other."
                ),
            ),
        ),
        hints=(
            "Bring both to bytes per second, one way.",
            "The box says NVLink in GB/s both ways together; a NIC is sold in Gb/s.",
            f"{show.bytes_per_s(f.up)} against {show.bytes_per_s(f.out)}.",
        ),
        worked=(
            f"NVLink {show.bytes_per_s(f.up)} a direction; one 400 Gb/s port per device is "
            f"{show.bytes_per_s(f.out)} a direction. The ratio is {f.ratio:.0f}."
        ),
        takeaway=(
            "A message between two devices sees this ratio; it is half of what is often "
            "quoted, because the quoted NVLink figure adds both directions. A collective "
            "that crosses on every port of the node loses less: walkthrough three works that "
            "out."
        ),
    )


def bubble_question(f: Facts) -> Number:
    return Number(
        id="bubble",
        axis="communication",
        level="senior",
        ask=(
            "Take tp 8, pp 16, dp 128 and micro-batches of one sequence, plain 1F1B. Which "
            "share of the step, in per cent, do devices idle in the bubble?"
        ),
        expected=f.bubble,
        unit="%",
        scale=0.01,
        slips=(
            Slip(
                value=f.bubble_over_ideal,
                says=(
                    "That is idle time over *useful* time, as in `(p − 1) / m`. As a share "
                    "of the step it is smaller."
                ),
            ),
            Slip(
                value=f.bubble_interleaved,
                says="That is the interleaved schedule. The question is about plain 1F1B.",
            ),
        ),
        hints=(
            "How many micro-batches does one replica run?",
            "`(p − 1) / (m + p − 1)` of the whole step.",
            f"m = {f.micro_batches}, p = 16.",
        ),
        worked=(
            f"A replica has 2,048 / 128 = {f.micro_batches} micro-batches: `(16 − 1) / (16 + "
            f"16 − 1)` = {show.share(f.bubble)} of the step. With 8 model parts a device, "
            f"interleaving brings it to {show.share(f.bubble_interleaved)}."
        ),
        takeaway=(
            "A wide dp leaves few micro-batches to fill the pipeline: batch, dp and pp are "
            "one trade. Interleaving divides the bubble by the parts and multiplies the "
            "messages by them."
        ),
    )


def bubble_note(f: Facts) -> str:
    micro_batches = f.result.plan["grad_accum"]
    return (
        f"The bubble left in the best plan is {show.share(f.result.bubble_fraction)} of the "
        f"step: interleaved, with {micro_batches:,} micro-batches a replica."
    )


def mtbf_question(f: Facts) -> Number:
    return Number(
        id="mtbf",
        axis="reliability",
        level="senior",
        ask=(
            f"This fleet fails {f.rate:.2f} times in 1,000 node-days. How long, in hours, "
            "between failures of the job?"
        ),
        expected=f.mtbf_s,
        unit="h",
        scale=3600,
        slips=(
            Slip(
                value=f.mtbf_s / 8,
                says="You multiplied by devices. The rate is per node of eight devices.",
            ),
            Slip(value=f.mtbf_s / 1000, says="The rate is per 1,000 node-days."),
        ),
        hints=(
            "Failures of all nodes add up.",
            "Rate times nodes, then the inverse; mind the 1,000.",
            f"{f.nodes:,} nodes.",
        ),
        worked=(
            f"{f.nodes:,} nodes × {f.rate:.2f} / 1,000 are {f.failures_a_day:.1f} failures a day: "
            f"one every {show.seconds(f.mtbf_s)}."
        ),
        takeaway=(
            "Twice the fleet, half the time between failures: reliability is a property of "
            "the job, not of the part."
        ),
    )


def interval_question(f: Facts) -> Number:
    return Number(
        id="interval",
        axis="reliability",
        level="senior",
        ask="A save stops training for 10 s. How many minutes should lie between saves?",
        expected=f.young_s,
        unit="min",
        scale=60,
        within=1.06,
        slips=(
            Slip(
                value=f.young_s / 1.4142135623730951,
                says=(
                    "The factor two under the root is missing: a failure loses half an "
                    "interval on average."
                ),
            ),
            Slip(
                value=f.mtbf_s / 2,
                says=(
                    "That is half of the time between failures; the best interval is far "
                    "shorter as long as a save is cheap."
                ),
            ),
            Slip(
                value=f.mtbf_s,
                says=(
                    "That is the time between failures: a failure would strike before "
                    f"{show.share(f.gone_at_mtbf)} of the saves."
                ),
            ),
        ),
        hints=(
            "Saving too often wastes stalls, too seldom wastes work.",
            "Young: the square root of twice the stall times the time between failures.",
            f"`√(2 · 10 s · {f.mtbf_s:.0f} s)`",
        ),
        worked=f"`√(2 · δ · M)` = {show.seconds(f.young_s)}.",
        takeaway=(
            "The best interval goes with the root of both: a stall four times shorter only "
            "halves it. The stall counts, not the time until the copy is safe; that one "
            "bounds what is lost."
        ),
    )


def badput_question(f: Facts) -> Number:
    return Number(
        id="badput",
        axis="reliability",
        level="staff",
        ask=(
            f"With that interval, and {f.recovery_s:.0f} s to see a failure, swap the node "
            "and reload: which share of the wall time, in per cent, is lost in all?"
        ),
        expected=f.lost,
        unit="%",
        scale=0.01,
        within=1.1,
        slips=(
            Slip(value=f.lost_saves, says="Those are the saves alone.", within=1.08),
            Slip(
                value=f.lost_saves + f.lost_work,
                says=(
                    "Recovery is missing: every failure also costs the time until the job "
                    "runs again."
                ),
            ),
            Slip(
                value=f.lost_saves + 2 * f.lost_work + f.lost_recovery,
                says=(
                    "A failure strikes halfway between two saves on average: half an "
                    "interval is lost, not a whole one."
                ),
            ),
        ),
        hints=(
            "Three losses: saves, work done again, recovery.",
            "`δ/τ + τ/(2M) + R/M`",
            (
                f"{show.share(f.lost_saves)} + {show.share(f.lost_work)} + "
                f"{show.share(f.lost_recovery)}"
            ),
        ),
        worked=(
            f"Saves {show.share(f.lost_saves)}, work done again {show.share(f.lost_work)}, "
            f"recovery {show.share(f.lost_recovery)}: {show.share(f.lost_sum)} if they are added, "
            f"{show.share(f.lost)} exactly, since they multiply. Goodput is "
            f"{show.share(f.goodput_share)}. An hourly save would lose "
            f"{show.share(f.lost_hourly)}."
        ),
        takeaway=(
            "At the best interval saves and lost work cost the same, and recovery is a third "
            "loss that no interval can touch. Shorten the restart before you polish the "
            "checkpoint."
        ),
    )


def badput_note(f: Facts) -> str:
    return (
        "An asynchronous save stalls for under a second and puts the best interval at "
        f"{show.seconds(f.result.checkpoint_interval_s)}: then recovery is nearly all that is "
        "left to lose."
    )


def cost_question(f: Facts) -> Number:
    return Number(
        id="cost",
        axis="cost",
        level="senior",
        ask=(
            f"At MFU 40 %, that goodput and {show.usd(f.price)} a device-hour: what does the "
            "run cost, in millions of dollars?"
        ),
        expected=f.usd,
        unit="M$",
        scale=1e6,
        within=1.03,
        manner="usd",
        made_of=(WORK, FLEET),
        slips=(
            Slip(
                value=f.usd * f.goodput_share,
                says="Goodput is missing: the fleet is paid for while it recovers too.",
                within=1.025,
            ),
            Slip(value=f.usd / 8, says="That prices nodes as if they were devices."),
            Slip(value=f.usd * f.mfu, says="That is the bill at full peak: MFU is missing."),
        ),
        hints=(
            "Device-hours times price.",
            "`days / goodput · 24 · devices · price`",
            f"{f.days_at_mfu:.0f} days at full goodput.",
        ),
        worked=(
            f"{f.days_at_mfu:.1f} days over {show.share(f.goodput_share)} goodput, times 24 "
            f"hours, {f.devices:,} devices and {show.usd(f.price)}: {show.usd(f.usd)}. "
            f"Between MFU 45 and 35 % it is {show.usd(f.usd_at_45)} to "
            f"{show.usd(f.usd_at_35)}."
        ),
        takeaway=(
            f"Five points of MFU are worth about {show.usd(f.five_points)} here: that is the "
            "budget for making it faster. The price is the second soft number; take it from "
            "a dated quote."
        ),
    )


def cost_note(f: Facts) -> str:
    return (
        f"The price is {show.usd(f.price)} a device-hour, as of {f.cost.price_date}; the "
        f"catalogue has it between {show.usd(f.cost.usd_per_device_hour_low)} and "
        f"{show.usd(f.cost.usd_per_device_hour_high)}. With the step that the kit predicts, the "
        f"run is {show.days(f.result.days)} and {show.usd(f.result.cost_usd)}: its MFU of "
        f"{show.share(f.result.mfu)} counts attention's products as well, which `6ND` leaves out. "
        f"`scantling design` leads with what is likely, {show.days(f.result.likely.days)} and "
        f"{show.usd(f.result.likely.cost_usd)}: runs drawn with the first start and the risks of a "
        "site in them."
    )


def half_question(f: Facts) -> Choice:
    return Choice(
        id="half",
        axis="parallelism",
        level="staff",
        ask=(
            "Twist: you get only half the fleet, with the same global batch. What happens to "
            "MFU at the best plan?"
        ),
        expected=f.half_answer,
        options=(
            Option(
                key="a",
                text=("It falls: the smaller fleet has less memory, so more must be recomputed."),
                says=(
                    "The state is spread over fewer devices, but each holds its layers all "
                    "the same; what changes is the number of micro-batches."
                ),
            ),
            Option(
                key="b",
                text="It rises: each replica runs more micro-batches.",
                says=f"MFU {show.share(f.result.mfu)} becomes {show.share(f.smaller.mfu)}.",
            ),
            Option(
                key="c",
                text="It stays: MFU is a ratio and does not know the fleet.",
                says=(
                    "It is a ratio of a step that has a bubble and an exchange in it, and "
                    "both are spread over the batch."
                ),
            ),
        ),
        hints=(
            "What does halving dp do to the micro-batches of a replica?",
            (
                "More micro-batches a replica: the bubble shrinks, and so does each device's "
                "share of the gradient exchange per token."
            ),
            f"Bubble at the best plans: {show.share(f.result.bubble_fraction)} now.",
        ),
        worked=(
            f"MFU goes from {show.share(f.result.mfu)} to {show.share(f.smaller.mfu)}: half "
            "as many replicas have twice the micro-batches each, so bubble and gradient "
            "exchange are spread over more work."
        ),
        takeaway=(
            "At a fixed global batch every device that is added makes all of them a little "
            "slower. Strong scaling is paid in MFU, and the batch belongs to the people who "
            "own convergence."
        ),
    )


def falsify_question(f: Facts) -> Explain:
    return Explain(
        id="falsify",
        axis="verification",
        level="staff",
        minutes=5,
        ask=(
            "You may use 256 of the devices for two days before the money is committed. What "
            "do you measure, and which result would make you change the plan?"
        ),
        points=(
            Point(
                says=(
                    "Runs the true plan on one or two replicas and compares step time or MFU "
                    "with the predicted band."
                ),
                words=(r"\bmfu\b", "step time", "replica"),
            ),
            Point(
                says=("Measures the collectives at the placement that will be used, link by link."),
                words=("all-?reduce", "collective", "nccl", "bandwidth", r"\blinks?\b"),
            ),
            Point(
                says="Kills a node on purpose and times detection, restart and reload.",
                words=("kill", "restart", "recover", "fail(ure)? drill", "pull"),
            ),
            Point(
                says="Says beforehand which result changes the plan.",
                words=(
                    "threshold",
                    "below",
                    "if .{0,60}(then|we|i would)",
                    "change the plan",
                    "worse than",
                ),
            ),
        ),
        model=(
            "Run the true plan on two replicas and compare MFU with the predicted band; "
            "measure all-reduce bandwidth on every link with the final placement; kill a "
            "node and time the restart. If MFU is below the band, or the restart takes "
            "longer than half an hour, we change the plan before committing."
        ),
        hints=(
            "Which of your numbers is soft, and which is cheap to measure?",
            (
                "One replica at the true shape shows MFU; a few hundred devices show the "
                "collectives; a pulled cable shows the restart."
            ),
            "A number, a threshold, and what you would do, for each.",
        ),
        worked=(
            f"The MFU band of the estimate is {show.share(f.result.mfu_low)} to "
            f"{show.share(f.result.mfu_high)}. Two replicas of tp 8 × pp 16 are 256 devices: "
            "run them at the true shape, micro-batch and recompute."
        ),
        takeaway=(
            "A plan is a set of claims; name the one that would hurt most if it were wrong "
            "and test it first."
        ),
    )


def summary_question(f: Facts) -> Explain:
    return Explain(
        id="summary",
        axis="telling",
        level="staff",
        minutes=4,
        ask="One minute, to the person who signs. Go.",
        points=(
            Point(
                says="Opens with days and dollars, as a range.",
                words=(r"\bdays\b", r"\$|dollar|million"),
            ),
            Point(says="Names the plan in a line.", words=(r"\btp\b", "tensor", "pipeline")),
            Point(
                says="Names the largest risk and what holds it.",
                words=("risk", "fail", "restart", "network"),
            ),
            Point(
                says="Asks for a decision, and says what can be undone.",
                words=("decid|decision|approv|sign|need", "revers|undo"),
            ),
        ),
        model=(
            f"About {f.days:.0f} days and {show.usd(f.usd)}: {f.days_at_45:.0f} to "
            f"{f.days_at_35:.0f} days and {show.usd(f.usd_at_45)} to {show.usd(f.usd_at_35)} with "
            "the MFU. Tensor parallel 8 in the node, "
            "pipeline 16 across, data parallel over the rest. The largest risk is a failure "
            f"every {show.seconds(f.mtbf_s)}: fast restarts hold it to {show.share(f.lost)}. "
            "I need a decision on the fleet today; the plan itself can be undone on any day."
        ),
        hints=(
            "The conclusion comes first.",
            (
                "Date and dollars with a range, the plan in a line, the largest risk, the "
                "decision you need."
            ),
            "No derivations: they are in the appendix.",
        ),
        worked="Lead with what they decide on, and mark what can still be undone.",
        takeaway="Conclusion, range, risk, ask. Whoever needs the derivation will ask for it.",
    )


BOOK = Walkthrough(
    number="01",
    name="full_round",
    title="The full round: 405B on 16,384 H100",
    minutes=60,
    book=Facts,
    asks=(
        scope_question,
        params_question,
        flops_question,
        days_question,
        state_question,
        plan_question,
        ratio_question,
        bubble_question,
        mtbf_question,
        interval_question,
        badput_question,
        cost_question,
        half_question,
        falsify_question,
        summary_question,
    ),
)
