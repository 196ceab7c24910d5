"""The full round: a dense model of the 100B to 700B class on 16,384 H100, from the first questions
to the defence of the plan."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

from scantling.base.units import DAY_S
from scantling.catalogue.models.shape import flops_per_token, parameters, shape_of
from scantling.endure import goodput
from scantling.verdict.assess import assess

from ..measured import published, runs
from ..question import Choice, Explain, Number, Option, Plan, PlanSlip, Point, Slip, Walkthrough
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
    def shape(self):
        return shape_of(self.model)

    @cached_property
    def parts(self):
        return parameters(self.shape)

    @cached_property
    def params(self):
        return float(self.parts.total)

    @cached_property
    def params_mha(self):
        return float(
            parameters(
                replace(self.shape, kv_width=self.shape.q_width, kv_heads=self.shape.heads)
            ).total
        )

    @cached_property
    def params_plain(self):
        return float(parameters(replace(self.shape, ffn_matrices=2)).total)

    @cached_property
    def params_layer(self):
        return (
            self.params - float(self.parts.embedding) - float(self.parts.lm_head)
        ) / self.model.layers

    @cached_property
    def rule(self):
        return 12.0 * self.model.layers * self.model.hidden**2

    @cached_property
    def flops(self):
        return 6 * self.params * self.tokens

    @cached_property
    def flops_exact(self):
        return float(flops_per_token(self.model, 8192).total) * self.tokens

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
                ("tp 8 · pp 16 · dp 128, as published", {"tp": 8, "pp": 16, "dp": 128}),
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
        return float(self.endurance.failures_per_1000_node_days)

    @cached_property
    def nodes(self):
        return self.devices // 8

    @cached_property
    def mtbf_s(self):
        return float(self.endurance.mtbf_s)

    @cached_property
    def young_s(self):
        return float(goodput.young(self.mtbf_s, self.stall_s))

    @cached_property
    def recovery_s(self):
        return float(self.endurance.recovery_s)

    @cached_property
    def lost(self):
        """Share of the wall time lost at Young's interval, exactly; first-order sums lie within a
        few per cent of it."""
        return 1 - float(
            goodput.ettr(self.mtbf_s, self.stall_s, self.young_s, down_s=self.recovery_s)
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
        return 1 - float(
            goodput.ettr(self.mtbf_s, self.stall_s, self.interval_hour_s, down_s=self.recovery_s)
        )

    # ---- money
    @cached_property
    def price(self):
        return float(self.result.cost.usd_per_device_hour)

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


QUESTIONS = (
    Choice(
        "scope",
        (
            "You have five minutes for questions. Which of these do you ask **before** you "
            "draw anything? Name all that change the design."
        ),
        "scope",
        "senior",
        (
            "For each, ask: would a different answer change the plan, the fleet or the date?",
            (
                "Fix the amount of work, the machine, what breaks, and what may not change. "
                "The rest can wait or belongs to others."
            ),
            "Five of the eight belong.",
        ),
        "Work (tokens, deadline), machine (network per device and tier), what breaks "
        "(failure history), what must not change (global batch), and what counts "
        "(goodput or "
        "dollars per token). Peak utilisation is none of them: it is an outcome.",
        (
            "Ask for what moves the design; say aloud what you leave out. A design that "
            "maximises MFU and ignores restarts answers another question."
        ),
        minutes=4,
        expected=lambda f: ("a", "b", "c", "d", "e"),
        several=True,
        options=(
            Option("a", "How many tokens, by when, and who may move the date?"),
            Option(
                "b", "Bandwidth per device at each tier: inside the node, to the rack, across pods?"
            ),
            Option(
                "c", "How often did this fleet fail last quarter, and how long did a restart take?"
            ),
            Option("d", "Which global batch is agreed with the people who own convergence?"),
            Option("e", "What is success: the date, the dollars, or goodput?"),
            Option(
                "f",
                "Which version of the attention kernel will be used?",
                (
                    "a kernel moves the step by a few per cent and can be changed on any "
                    "day of the run"
                ),
            ),
            Option(
                "g",
                "What latency must the model reach when it serves?",
                "serving is another system; it may shape the model, which is fixed here",
            ),
            Option(
                "h",
                "Will the loss curve be logged every step or every ten?",
                "it changes nothing that is bought or placed",
            ),
        ),
    ),
    Number(
        "params",
        "Count the parameters from the shape alone.",
        "size",
        "mid",
        (
            (
                "A layer has attention (queries, keys, values, output) and an MLP; then "
                "come embedding and head."
            ),
            (
                "Attention `2·h·h + 2·h·kv_heads·head_dim`; a gated MLP `3·h·ffn`; "
                "embedding and head `2·vocab·h`."
            ),
            (
                "{params_layer:params} a layer, {model.layers} layers, "
                "{parts.embedding:params} each for embedding and head."
            ),
        ),
        (
            "Attention {parts.attention:params}, MLP {parts.mlp_dense:params}, embedding "
            "and head {parts.embedding:params} each: {params:params} in all."
        ),
        (
            "Count by part. The rule of thumb `12 · layers · hidden²` gives {rule:params} "
            "here, right only because the keys and values that grouping saves are about "
            "what the wide gated MLP adds."
        ),
        expected="params",
        unit="parameters",
        within=1.03,
        shown="params",
        slips=(
            Slip(
                "params_mha",
                (
                    "That gives every head its own keys and values; the {model.heads} heads "
                    "share {model.kv_heads}."
                ),
            ),
            Slip("params_plain", "The MLP is gated (SwiGLU): three matrices, not two."),
        ),
    ),
    Number(
        "flops",
        "How much compute does the whole run take?",
        "size",
        "senior",
        (
            "Parameters times tokens, times a constant.",
            "Forward two FLOP per parameter and token, backward twice that.",
            "`6 · {params:params} · {tokens:params}`",
        ),
        (
            "`6 · N · D` = {flops:sci} FLOP. With attention's own products, which `6ND` "
            "leaves out, it is {flops_exact:sci}: either counts as right here."
        ),
        (
            "Six FLOP per parameter and token, plus attention, which grows with the "
            "context. Say which of the two an MFU is measured with: at this length they "
            "differ by a twelfth."
        ),
        expected="flops",
        unit="FLOP",
        within=1.09,
        slips=(
            Slip(
                lambda f: f.flops / 3,
                (
                    "That is the forward pass alone, `2ND`; the backward pass costs twice "
                    "as much again."
                ),
            ),
            Slip(
                lambda f: f.flops * 4 / 3,
                (
                    "That adds a full recompute, `8ND`. Recompute is work for the device, "
                    "not for the model: it belongs in HFU, not in the size of the job."
                ),
            ),
            Slip(lambda f: f.flops * 2 / 3, "That is the backward pass alone, `4ND`."),
        ),
    ),
    Number(
        "days",
        "At an MFU of 40 % on all 16,384 devices, and with nothing ever failing: how many days?",
        "size",
        "senior",
        (
            "Compute divided by what the fleet delivers.",
            "`6ND / (devices · peak · MFU)`, with the dense bf16 peak.",
            "{chip.bf16_flops:flops} dense for each device.",
        ),
        (
            "{flops:sci} FLOP over {devices} × {chip.bf16_flops:flops} × 40 % is "
            "{days_at_mfu:.1f} days."
        ),
        (
            "Two minutes from tokens to days. The MFU is the one soft number in it, so give "
            "a range: 35 to 45 % is what dense models of this size have reached on this "
            "chip."
        ),
        expected="days_at_mfu",
        unit="days",
        within=1.10,
        slips=(
            Slip(
                lambda f: f.days_at_mfu / 2,
                (
                    "That divides by the sparse peak (or the fp8 one), twice the dense bf16 "
                    "rate. Nobody trains with structured sparsity, and the precision here "
                    "is bf16."
                ),
            ),
            Slip(lambda f: f.days_at_mfu / 3, "That counts the forward pass alone."),
            Slip(
                lambda f: f.days_at_mfu * f.mfu,
                "That is the time at full peak: the MFU is missing.",
            ),
        ),
    ),
    Number(
        "state",
        (
            "How many of these devices does it take just to **hold** weights (bf16), "
            "gradients (fp32) and Adam's states with an fp32 master copy? No activations."
        ),
        "memory",
        "senior",
        (
            "Bytes per parameter first; then what a program can really allocate on one card.",
            (
                '`2 + 4 + 4 + 4 + 4` bytes; an "80 GB" card lets a program have '
                "{chip.hbm_usable_bytes:bytes}."
            ),
            "`18 · {params:params} / {chip.hbm_usable_bytes:bytes}`",
        ),
        (
            "18 bytes a parameter make {state_bytes:bytes}; over "
            "{chip.hbm_usable_bytes:bytes} a device that is {state_devices:.0f} devices "
            "before a single activation."
        ),
        (
            "The state alone needs tens of cards, so the question is never whether to shard "
            "it but along which axis. 16 bytes is as often right: it depends on the "
            "gradients' precision."
        ),
        expected="state_devices",
        unit="devices",
        within=1.03,
        slips=(
            Slip(
                lambda f: f.state_devices * 16 / 18,
                (
                    "That is 16 bytes: gradients in bf16. They are said to be kept in fp32 "
                    "here, which costs two more."
                ),
            ),
            Slip(
                lambda f: f.state_devices * 2 / 18,
                (
                    "That holds the weights alone: gradients and Adam's states are eight "
                    "times as much."
                ),
                within=1.06,
            ),
            Slip(
                lambda f: f.state_devices * f.chip.hbm_usable_bytes / 80e9,
                (
                    "You divided by 80e9 bytes. The name on the box means GiB: a program "
                    "gets {chip.hbm_usable_bytes:bytes}."
                ),
                within=1.02,
            ),
        ),
    ),
    Plan(
        "plan",
        (
            "Give the first plan that you would take to the review: `tp`, `pp`, `dp` (and "
            "whatever else you want to fix). It has to fit and to be within a tenth of the "
            "best."
        ),
        "parallelism",
        "staff",
        (
            "What must stay inside a node? What may cross?",
            (
                "Tensor parallelism fills the fast domain of 8; pipeline takes the layers "
                "across nodes; data parallelism takes the rest, as far as the batch of "
                "2,048 allows."
            ),
            (
                "`tp · pp · dp (· cp) = 16,384`; with tp 8, 16 stages leave three quarters "
                "of a device for activations."
            ),
        ),
        "tp fills the node. pp 16 leaves {model.layers} layers on 16 stages, eight or "
        "so each. The rest is dp, with Adam's states sharded over it; a little context "
        "parallelism trades "
        "data-parallel width for more micro-batches a replica.",
        (
            "Fast domain first, then the fewest stages that fit, then data. Several plans "
            "lie within a few per cent of each other: choose the one that your people have "
            "run."
        ),
        minutes=6,
        design="design",
        names=("tp", "pp", "dp"),
        slips=(
            PlanSlip(
                {"tp": 16, "pp": 8, "dp": 128},
                lambda plan, a, f: plan["tp"] > 8,
                "tp {a.plan[tp]} leaves the node: its collectives, twice forward and "
                "twice backward in every layer, run over the network. Exposed "
                "tensor-parallel time is "
                "{a.step_breakdown_s[tp]:seconds} of a {a.step_s:seconds} step, against "
                "{best.step_breakdown_s[tp]:seconds} at the best plan.",
            ),
            PlanSlip(
                {"tp": 1, "pp": 1, "dp": 2048, "cp": 8, "sharding": "zero3"},
                lambda plan, a, f: plan["tp"] == 1 and plan["pp"] == 1,
                "Sharded data parallelism alone gathers every weight over the network "
                "for every micro-batch: {a.step_s:seconds} a step against "
                "{best.step_s:seconds}. "
                "It is a good plan where each device has many more tokens to work on.",
            ),
            PlanSlip(
                {"tp": 8, "pp": 63, "dp": 32},
                lambda plan, a, f: plan["pp"] >= 40,
                (
                    "It fits with room to spare, and pays for it: with so many stages the "
                    "pipeline idles {a.bubble_fraction:share} of the step."
                ),
            ),
        ),
    ),
    Number(
        "ratio",
        (
            "Per device and per direction: how many times faster is the link inside the "
            "node than the one out of it?"
        ),
        "communication",
        "senior",
        (
            "Bring both to bytes per second, one way.",
            "The box says NVLink in GB/s both ways together; a NIC is sold in Gb/s.",
            "{up:bytes_per_s} against {out:bytes_per_s}.",
        ),
        (
            "NVLink {up:bytes_per_s} a direction; one 400 Gb/s port per device is "
            "{out:bytes_per_s} a direction. The ratio is {ratio:.0f}."
        ),
        (
            "A message between two devices sees this ratio; it is half of what is often "
            "quoted, because the quoted NVLink figure adds both directions. A collective "
            "that crosses on every port of the node loses less: walkthrough three works "
            "that out."
        ),
        expected="ratio",
        unit="times",
        within=1.08,
        slips=(
            Slip(
                lambda f: 2 * f.ratio,
                (
                    "That sets NVLink's two directions together against one direction of "
                    "the NIC. Compare one way with one way."
                ),
            ),
            Slip(lambda f: f.ratio / 8, "400 Gb/s is bits: divide by eight before you compare."),
            Slip(
                lambda f: f.ratio / 4,
                (
                    "Bits for bytes, and both directions of NVLink: two slips that partly "
                    "hide each other."
                ),
            ),
        ),
    ),
    Number(
        "bubble",
        (
            "Take tp 8, pp 16, dp 128 and micro-batches of one sequence, plain 1F1B. Which "
            "share of the step, in per cent, do devices idle in the bubble?"
        ),
        "communication",
        "senior",
        (
            "How many micro-batches does one replica run?",
            "`(p − 1) / (m + p − 1)` of the whole step.",
            "m = {micro_batches}, p = 16.",
        ),
        (
            "A replica has 2,048 / 128 = {micro_batches} micro-batches: `(16 − 1) / (16 + "
            "16 − 1)` = {bubble:share} of the step. With 8 model parts a device, "
            "interleaving brings it to {bubble_interleaved:share}."
        ),
        (
            "A wide dp leaves few micro-batches to fill the pipeline: batch, dp and pp are "
            "one trade. Interleaving divides the bubble by the parts and multiplies the "
            "messages by them."
        ),
        expected="bubble",
        unit="%",
        scale=0.01,
        within=1.05,
        slips=(
            Slip(
                "bubble_over_ideal",
                (
                    "That is idle time over *useful* time, as in `(p − 1) / m`. As a share "
                    "of the step it is smaller."
                ),
            ),
            Slip(
                "bubble_interleaved",
                "That is the interleaved schedule. The question is about plain 1F1B.",
            ),
        ),
    ),
    Number(
        "mtbf",
        (
            "This fleet fails {rate:.2f} times in 1,000 node-days. How long, in hours, "
            "between failures of the job?"
        ),
        "reliability",
        "senior",
        (
            "Failures of all nodes add up.",
            "Rate times nodes, then the inverse; mind the 1,000.",
            "{nodes} nodes.",
        ),
        "{nodes} nodes × {rate:.2f} / 1,000 is {endurance.mtbf_s:seconds} between failures.",
        (
            "Twice the fleet, half the time between failures: reliability is a property of "
            "the job, not of the part."
        ),
        expected="mtbf_s",
        unit="h",
        scale=3600,
        within=1.05,
        slips=(
            Slip(
                lambda f: f.mtbf_s / 8,
                "You multiplied by devices. The rate is per node of eight devices.",
            ),
            Slip(lambda f: f.mtbf_s / 1000, "The rate is per 1,000 node-days."),
        ),
    ),
    Number(
        "interval",
        "A save stops training for 10 s. How many minutes should lie between saves?",
        "reliability",
        "senior",
        (
            "Saving too often wastes stalls, too seldom wastes work.",
            "Young: the square root of twice the stall times the time between failures.",
            "`√(2 · 10 s · {mtbf_s:.0f} s)`",
        ),
        "`√(2 · δ · M)` = {young_s:seconds}.",
        (
            "The best interval goes with the root of both: a stall four times shorter only "
            "halves it. The stall counts, not the time until the copy is safe; that one "
            "bounds what is lost."
        ),
        expected="young_s",
        unit="min",
        scale=60,
        within=1.06,
        slips=(
            Slip(
                lambda f: f.young_s / math.sqrt(2),
                (
                    "The factor two under the root is missing: a failure loses half an "
                    "interval on average."
                ),
            ),
            Slip(
                lambda f: f.mtbf_s / 2,
                (
                    "That is half of the time between failures; the best interval is far "
                    "shorter as long as a save is cheap."
                ),
            ),
            Slip("mtbf_s", "That would lose, on average, everything since the last failure."),
        ),
    ),
    Number(
        "badput",
        (
            "With that interval, and {recovery_s:.0f} s to see a failure, swap the node and "
            "reload: which share of the wall time, in per cent, is lost in all?"
        ),
        "reliability",
        "staff",
        (
            "Three losses: saves, work done again, recovery.",
            "`δ/τ + τ/(2M) + R/M`",
            "{lost_saves:share} + {lost_work:share} + {lost_recovery:share}",
        ),
        (
            "Saves {lost_saves:share}, work done again {lost_work:share}, recovery "
            "{lost_recovery:share}: {lost:share}, so goodput is {goodput_share:share}. An "
            "hourly save would lose {lost_hourly:share}."
        ),
        (
            "At the best interval saves and lost work cost the same, and recovery is a "
            "third loss that no interval can touch. Shorten the restart before you polish "
            "the checkpoint."
        ),
        expected="lost",
        unit="%",
        scale=0.01,
        within=1.10,
        slips=(
            Slip("lost_saves", "Those are the saves alone.", within=1.08),
            Slip(
                lambda f: f.lost_saves + f.lost_work,
                "Recovery is missing: every failure also costs the time until the job runs again.",
            ),
            Slip(
                lambda f: f.lost_saves + 2 * f.lost_work + f.lost_recovery,
                (
                    "A failure strikes halfway between two saves on average: half an "
                    "interval is lost, not a whole one."
                ),
            ),
        ),
    ),
    Number(
        "cost",
        (
            "At MFU 40 %, that goodput and {price:usd} a device-hour: what does the run "
            "cost, in millions of dollars?"
        ),
        "cost",
        "senior",
        (
            "Device-hours times price.",
            "`days / goodput · 24 · devices · price`",
            "{days_at_mfu:.0f} days at full goodput.",
        ),
        (
            "{days_at_mfu:.1f} days over {goodput_share:share} goodput, times 24 hours, "
            "{devices} devices and {price:usd}: {usd:usd}. Between MFU 45 and 35 % it is "
            "{usd_range[0]:usd} to {usd_range[1]:usd}."
        ),
        (
            "Five points of MFU are worth about {five_points:usd} here: that is the budget "
            "for making it faster. The price is the second soft number; take it from a "
            "dated quote."
        ),
        expected="usd",
        unit="M$",
        scale=1e6,
        within=1.03,
        shown="usd",
        slips=(
            Slip(
                lambda f: f.usd * (1 - f.lost),
                "Goodput is missing: the fleet is paid for while it recovers too.",
                within=1.025,
            ),
            Slip(lambda f: f.usd / 8, "That prices nodes as if they were devices."),
            Slip(lambda f: f.usd * f.mfu, "That is the bill at full peak: MFU is missing."),
        ),
    ),
    Choice(
        "half",
        (
            "Twist: you get only half the fleet, with the same global batch. What happens "
            "to MFU at the best plan?"
        ),
        "parallelism",
        "staff",
        (
            "What does halving dp do to the micro-batches of a replica?",
            (
                "More micro-batches a replica: the bubble shrinks, and so does each "
                "device's share of the gradient exchange per token."
            ),
            "Bubble at the best plans: {result.bubble_fraction:share} now.",
        ),
        (
            "MFU goes from {result.mfu:share} to {smaller.mfu:share}: half as many replicas "
            "have twice the micro-batches each, so bubble and gradient exchange are spread "
            "over more work."
        ),
        (
            "At a fixed global batch every device that is added makes all of them a little "
            "slower. Strong scaling is paid in MFU, and the batch belongs to the people who "
            "own convergence."
        ),
        expected="half_answer",
        options=(
            Option(
                "a",
                "It falls: the smaller fleet has less memory, so more must be recomputed.",
                (
                    "The state is spread over fewer devices, but each holds its layers all "
                    "the same; what changes is the number of micro-batches."
                ),
            ),
            Option(
                "b",
                "It rises: each replica runs more micro-batches.",
                "MFU {result.mfu:share} becomes {smaller.mfu:share}.",
            ),
            Option(
                "c",
                "It stays: MFU is a ratio and does not know the fleet.",
                (
                    "It is a ratio of a step that has a bubble and an exchange in it, and "
                    "both are spread over the batch."
                ),
            ),
        ),
    ),
    Explain(
        "falsify",
        (
            "You may use 256 of the devices for two days before the money is committed. "
            "What do you measure, and which result would make you change the plan?"
        ),
        "verification",
        "staff",
        (
            "Which of your numbers is soft, and which is cheap to measure?",
            (
                "One replica at the true shape shows MFU; a few hundred devices show the "
                "collectives; a pulled cable shows the restart."
            ),
            "A number, a threshold, and what you would do, for each.",
        ),
        (
            "The MFU band of the estimate is {result.mfu_low:share} to "
            "{result.mfu_high:share}. Two replicas of tp 8 × pp 16 are 256 devices: run "
            "them at the true shape, micro-batch and recompute."
        ),
        (
            "A plan is a set of claims; name the one that would hurt most if it were wrong "
            "and test it first."
        ),
        minutes=5,
        points=(
            Point(
                (
                    "Runs the true plan on one or two replicas and compares step time or "
                    "MFU with the predicted band."
                ),
                (r"\bmfu\b", r"step time", r"replica"),
            ),
            Point(
                "Measures the collectives at the placement that will be used, link by link.",
                (r"all-?reduce", r"collective", r"nccl", r"bandwidth", r"\blinks?\b"),
            ),
            Point(
                "Kills a node on purpose and times detection, restart and reload.",
                (r"kill", r"restart", r"recover", r"fail(ure)? drill", r"pull"),
            ),
            Point(
                "Says beforehand which result changes the plan.",
                (
                    r"threshold",
                    r"below",
                    r"if .{0,60}(then|we|i would)",
                    r"change the plan",
                    r"worse than",
                ),
            ),
        ),
        model="Run the true plan on two replicas and compare MFU with the predicted band; "
        "measure all-reduce bandwidth on every link with the final placement; kill a "
        "node and time the restart. "
        "If MFU is below the band, or the restart takes longer than half an hour, we "
        "change the plan before committing.",
    ),
    Explain(
        "summary",
        "One minute, to the person who signs. Go.",
        "telling",
        "staff",
        (
            "The conclusion comes first.",
            (
                "Date and dollars with a range, the plan in a line, the largest risk, the "
                "decision you need."
            ),
            "No derivations: they are in the appendix.",
        ),
        "Lead with what they decide on, and mark what can still be undone.",
        "Conclusion, range, risk, ask. Whoever needs the derivation will ask for it.",
        minutes=4,
        points=(
            Point("Opens with days and dollars, as a range.", (r"\bdays\b", r"\$|dollar|million")),
            Point("Names the plan in a line.", (r"\btp\b", r"tensor", r"pipeline")),
            Point(
                "Names the largest risk and what holds it.",
                (r"risk", r"fail", r"restart", r"network"),
            ),
            Point(
                "Asks for a decision, and says what can be undone.",
                (r"decid|decision|approv|sign|need", r"revers|undo"),
            ),
        ),
        model="About {days_at_mfu:.0f} days and {usd:usd}, {usd_range[0]:usd} to "
        "{usd_range[1]:usd} with the MFU. Tensor parallel 8 in the node, pipeline 16 "
        "across, data parallel over the rest. "
        "The largest risk is a failure every {mtbf_s:seconds}: fast restarts hold it to "
        "{lost:share}. I need a decision on the fleet today; the plan itself can be "
        "undone on any day.",
    ),
)

WALKTHROUGH = Walkthrough(
    "01", "full_round", "The full round: 405B on 16,384 H100", 60, Facts, QUESTIONS
)
