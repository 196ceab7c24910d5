"""Debug: MFU fell from 42 to 31 % after the fleet was doubled; what is arithmetic, what is a fault,
and what proves it."""

from __future__ import annotations

from functools import cached_property

from scantling.advise.diagnose import diagnose
from scantling.evidence.figures.figures import recreate
from scantling.verdict.assess import assess

from ..measured import rate
from ..question import Choice, Explain, Number, Option, Plan, PlanSlip, Point, Slip, Walkthrough
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
        return float(self.after.resolved.cluster.accelerator.bf16_flops)

    # ---------------------------------------------------------------- reading the dashboard
    def _step(self, devices, mfu):
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


QUESTIONS = (
    Explain(
        "first",
        "What do you ask or look up before you open a single trace? Four or five lines.",
        "scope",
        "senior",
        (
            "Is the fall real, and is it a fault at all?",
            "What changed with the devices: batch, plan, data, software, nodes?",
            "Work out what MFU the new setting should have.",
        ),
        "First whether the number is right (devices, tokens, peak in the formula), then "
        "everything that changed at once: the batch, micro-batches per replica, the "
        "plan, the software, which nodes are new. "
        "Then the expectation for the new setting on paper: a fall is only a fault "
        "where the measurement lies below what the plan can do.",
        (
            "A regression is measured against the expectation for the new setting, never "
            "against the old number."
        ),
        minutes=4,
        points=(
            Point(
                "checks how MFU is computed: devices, tokens, step time, peak",
                (
                    (
                        r"\b(mfu.*(computed|measured|defined)|formula|peak|denominator|number "
                        r"of devices|step time)"
                    ),
                ),
            ),
            Point(
                "asks what changed: batch, plan, software, nodes",
                (r"\b(chang|batch|plan|config|version|driver|image|new nodes)",),
            ),
            Point(
                "works out what the new setting should reach: micro-batches, bubble",
                (r"\b(expect|bubble|micro-?batch|should|predict)",),
            ),
            Point(
                "asks when it fell: at once with the growth or later, steadily or in spikes",
                (r"\b(when|since|sudden|over time|steady|spike|immediately)",),
            ),
        ),
        model="Is MFU computed with the right number of devices and tokens? What else "
        "changed: batch, plan, software image, new nodes? When did it fall, at once or "
        "later? "
        "What do I expect for this setting: fewer micro-batches per replica, so a larger bubble?",
    ),
    Number(
        "step",
        (
            "The dashboard says MFU {mfu_large:share} on {large} H100, {batch} sequences of "
            "{seq_len} tokens a step, {flops_per_token:flop} a token. How long is a step, "
            "in seconds?"
        ),
        "size",
        "mid",
        (
            "MFU is useful FLOP over what the devices could have done in the time.",
            "`tokens · FLOP per token / (devices · peak · MFU)`.",
            (
                "`{batch} · {seq_len} · {flops_per_token:flop} / ({large} · {peak:flops} · "
                "{mfu_large:share})`"
            ),
        ),
        (
            "`{batch} · {seq_len} · {flops_per_token:flop} / ({large} · {peak:flops} · "
            "{mfu_large:share})` = {step_s:seconds}. Before it was {step_small_s:seconds}: "
            "twice the devices bought a factor of {speedup:ratio}."
        ),
        "Turn a utilisation into seconds before you debug it: seconds add up, percentages do not.",
        expected="step_s",
        unit="s",
        within=1.05,
        slips=(
            Slip(
                lambda f: f.step_s / 2,
                (
                    "That uses the peak with structured sparsity, twice the dense one. "
                    "Training is dense."
                ),
            ),
            Slip(
                lambda f: f.step_s / 3,
                (
                    "That counts the forward pass alone: a token costs three times that, "
                    "backward included."
                ),
                1.03,
            ),
            Slip(
                lambda f: f.step_s * f.mfu_large,
                "That is the step at full peak: divide by the MFU.",
            ),
            Slip("step_small_s", "That is the step before the growth, on {small} devices.", 1.02),
        ),
    ),
    Number(
        "micro",
        (
            "The plan is tensor {tp}, pipeline {pp}, micro-batch {micro_batch}; research "
            "kept the batch at {batch} sequences. How many micro-batches does each replica "
            "run a step now?"
        ),
        "parallelism",
        "mid",
        (
            "How many replicas are there?",
            "`batch / (replicas · micro-batch)`, replicas = devices / (tensor · pipeline).",
            "`{large} / ({tp} · {pp})` replicas",
        ),
        (
            "`{large} / ({tp} · {pp})` = {dp} replicas share {batch} sequences: {m} "
            "micro-batches each. Before the growth it was {m_small}."
        ),
        "At a fixed batch every new replica takes micro-batches from the old ones.",
        expected="m",
        unit="micro-batches",
        within=1.0,
        slips=(
            Slip("m_small", "That was before: there are twice as many replicas now.", 1.0),
            Slip(
                lambda f: f.batch // (f.large // f.tp),
                (
                    "The pipeline's {pp} stages are one replica together: divide the "
                    "devices by tensor times pipeline."
                ),
                1.0,
            ),
        ),
    ),
    Number(
        "bubble",
        (
            "What share of the step does a plain 1F1B pipeline idle now, in per cent of the "
            "whole step?"
        ),
        "communication",
        "senior",
        (
            "How many micro-batch times pass until the last stage has its first work, and back?",
            "`(p - 1) / (m + p - 1)` of the whole step.",
            "`({pp} - 1) / ({m} + {pp} - 1)`",
        ),
        (
            "`({pp} - 1) / ({m} + {pp} - 1)` = {bubble:share}; before, with {m_small} "
            "micro-batches, {bubble_small:share}. The kit, which counts what does not scale "
            "with the pipeline too, says {after.bubble_fraction:share}."
        ),
        (
            "The bubble goes with one over micro-batches per stage: growing devices at a "
            "fixed batch is a decision to idle."
        ),
        expected="bubble",
        unit="%",
        scale=0.01,
        within=1.06,
        slips=(
            Slip(
                "bubble_over_ideal",
                (
                    "That is over the ideal time, `(p - 1) / m`, as the Megatron paper "
                    "prints it. The question asks for the share of the whole step."
                ),
            ),
            Slip(
                "bubble_small",
                "That is the bubble before the growth, with {m_small} micro-batches.",
                1.03,
            ),
            Slip(
                lambda f: f.pp / (f.m + f.pp),
                "`p - 1` slots idle, not `p`: the first stage starts at once.",
                1.03,
            ),
        ),
    ),
    Number(
        "expected",
        (
            "It ran at {mfu_small:share} before. What MFU does the bubble alone let you "
            "expect now, in per cent?"
        ),
        "size",
        "senior",
        (
            "The old figure had a bubble in it as well.",
            "Working share now over working share then.",
            "`{mfu_small:share} · (1 - {bubble:share}) / (1 - {bubble_small:share})`",
        ),
        (
            "`{mfu_small:share} · (1 - {bubble:share}) / (1 - {bubble_small:share})` = "
            "{expected:share}. So most of the fall is arithmetic: nobody broke anything. "
            "The kit, with costs that do not shrink per step, expects {after.mfu:share}."
        ),
        (
            "Most of a scaling loss is usually in the plan; find that part first, and only "
            "then look for what is broken."
        ),
        expected="expected",
        unit="%",
        scale=0.01,
        within=1.04,
        slips=(
            Slip(
                "one_bubble",
                (
                    "Tempting, since it explains the whole fall: but the {mfu_small:share} "
                    "already had a bubble of {bubble_small:share} in it. Divide that out."
                ),
                1.03,
            ),
            Slip(
                "mfu_small",
                "That would be weak scaling, with a batch that grows along. The batch stayed.",
                1.01,
            ),
        ),
    ),
    Number(
        "late",
        (
            "Against that expectation: how much longer than it should be is the measured "
            "step, in per cent?"
        ),
        "verification",
        "senior",
        (
            "Seconds, not points of MFU.",
            "Step times go as one over MFU.",
            "`{expected:share} / {mfu_large:share} - 1`",
        ),
        (
            "`{expected:share} / {mfu_large:share} - 1` = {late:share}. Against the kit's "
            "own step of {after.step_s:seconds}, which also counts the fixed costs, "
            "{slow_share:share} remain: that is the size of what you are looking for."
        ),
        (
            "Give the fault a size in seconds before you look for it; it says which "
            "suspects are large enough."
        ),
        expected="late",
        unit="%",
        scale=0.01,
        within=1.1,
        slips=(
            Slip(
                "points",
                (
                    "Those are points of MFU. The step is longer by the ratio of the two, "
                    "not by their difference."
                ),
                1.04,
            ),
            Slip(
                lambda f: f.mfu_small / f.mfu_large - 1,
                "That compares with the run before the growth and blames the bubble on the fault.",
                1.03,
            ),
        ),
    ),
    Choice(
        "where",
        (
            "A profile of one ordinary rank:\n\n{part_table}\n\nThe gradient reduction "
            "takes {gradient_times:.0f} times what it should. The network team tests it "
            "alone: full rate. What is going on?"
        ),
        "communication",
        "staff",
        (
            "What does a collective measure: the transfer, or the wait for the last to arrive?",
            "A rank that arrives early waits inside the collective.",
            "Compute is as expected here; the network is as expected alone.",
        ),
        (
            "The collective starts when the last rank arrives, so every early rank books "
            "its waiting there. Compute on this rank is as expected and the network is "
            "sound alone: somebody else is late."
        ),
        (
            "A slow collective on a sound network is a slow rank somewhere else: look for "
            "the rank that does not wait."
        ),
        expected=lambda f: "b",
        options=(
            Option(
                "a",
                "the network is congested when all of it is in use",
                (
                    "Then the test alone would be sound, but the waiting would differ from "
                    "step to step and all ranks would wait the same; look at the waiting by "
                    "rank first, it costs minutes."
                ),
            ),
            Option(
                "b",
                "some rank arrives late, and everybody waits for it inside the reduction",
                "Yes: waiting is booked where it happens, not where it comes from.",
            ),
            Option(
                "c",
                "gradients are reduced in fp32 instead of bf16",
                (
                    "That doubles the bytes; it cannot make {gradient_times:.0f} times of "
                    "it, and it would be there before the growth too."
                ),
            ),
            Option(
                "d",
                "the bubble is larger than the formula says",
                "Pipeline idle time is its own line, and it is as expected.",
            ),
        ),
    ),
    Choice(
        "which",
        "Four nodes of the {large} devices' list:\n\n{node_table}\n\nWhich one do you drain?",
        "verification",
        "senior",
        (
            "The late one is not the one that waits.",
            "Longest compute, least waiting.",
            "Compare the columns row by row.",
        ),
        (
            "node-173 computes {slow_share:share} longer and hardly waits: all others wait "
            "for it. That it waits least is the proof, more than that it computes longest."
        ),
        "The culprit is the rank that does not wait.",
        expected="slow_node",
        options=(
            Option("a", "node-041", "It computes as the others do, and waits."),
            Option("b", "node-087", "It is the fastest of the four and waits longest: a victim."),
            Option("c", "node-173", "Yes: longest compute, least waiting."),
            Option("d", "node-202", "That is ordinary scatter; it waits like the others."),
        ),
    ),
    Number(
        "tax",
        (
            "One node of {per_node} devices is {slow_share:share} slower. How many "
            "device-hours does the run lose a day?"
        ),
        "cost",
        "senior",
        ("Who waits?", "`devices · 24 h · (1 - 1 / ratio)`.", "ratio {slow:.3f}"),
        (
            "`{large} · 24 h · (1 - 1/{slow:.3f})` = {lost_device_h:count} device-hours, "
            "{lost_usd:usd} a day at {price:.2f} dollars. The node's own loss is "
            "{lost_own_h:.0f}."
        ),
        "In a synchronous job the slowest rank is priced as if all of them were slow.",
        expected="lost_device_h",
        unit="device-hours",
        within=1.12,
        slips=(
            Slip(
                "lost_own_h", "That is what the node itself loses. All {large} devices wait for it."
            ),
            Slip(
                lambda f: f.large * 24 * f.slow_share,
                "Nearly: the lost share is `1 - 1/ratio` of the day, not `ratio - 1`.",
                1.01,
            ),
        ),
    ),
    Explain(
        "prove",
        (
            "Draining the node costs a restart. How do you make sure first, and what would "
            "change your mind?"
        ),
        "verification",
        "staff",
        (
            "A cause that you can move is a cause.",
            "Run the same work without it, or its work elsewhere.",
            "Clocks, power, a GEMM alone on each node, then swap.",
        ),
        "Run one matrix product of the model's shape alone on every node: seconds, no "
        "restart. Read clock, power and temperature of its devices. Then exchange the "
        "node with a spare: if the waiting goes, it was the node; if the next node in "
        "the same place is slow, it is the place "
        "(rack power, cooling, the stage's layers); if the waiting moves with the rank, "
        "it is the rank's work.",
        "Move one thing at a time and see whether the symptom moves with it.",
        minutes=4,
        points=(
            Point(
                "tests the node alone: a GEMM or short step on every node",
                (r"\b(alone|gemm|matmul|burn|micro-?bench|single node|each node)",),
            ),
            Point(
                "reads clocks, power, temperature, error counters",
                (r"\b(clock|power|thermal|temperature|xid|ecc|counter|throttl)",),
            ),
            Point(
                (
                    "exchanges it and watches whether the symptom follows the node, the "
                    "place or the rank"
                ),
                (r"\b(swap|exchange|replace|spare|move|remap|follow)",),
            ),
            Point(
                "says what would prove it wrong",
                (r"\b(wrong|change my mind|otherwise|if not|if the next|not the node|rule out)",),
            ),
        ),
        model="A GEMM of the model's shape alone on each node, clocks, power and temperature "
        "of the suspect. Then swap it with a spare and see whether the slow rank "
        "follows the node, the place or the rank's layers. "
        "If the spare is slow in the same place, I am wrong about the node: it is the "
        "rack or the stage.",
    ),
    Plan(
        "plan",
        (
            "The node is drained; the bubble is still there. Research holds the batch at "
            "{batch}. Give a plan for the {large} devices within a tenth of the best step."
        ),
        "parallelism",
        "staff",
        (
            "What makes a bubble smaller at the same batch?",
            "Fewer stages, more chunks a stage, or weight gradients moved into the gaps.",
            (
                "80 layers divide by stages times chunks; tensor parallelism below {tp} "
                "leaves smaller all-reduces."
            ),
        ),
        (
            "The kit's best: {best.mfu:share} at {best.step_s:seconds} a step, against "
            "{after.mfu:share} for the plan as it was. Interleaving divides the bubble by "
            "the chunks a stage holds; fewer stages and less tensor parallelism help as "
            "long as the memory holds."
        ),
        (
            "At a fixed batch the schedule is the lever: interleave, shorten the pipeline, "
            "and only then ask research for a larger batch."
        ),
        design="open_design",
        names=("tp", "pp", "vpp", "micro_batch"),
        minutes=6,
        slips=(
            PlanSlip(
                {"tp": 8, "pp": 4, "vpp": 1, "cp": 1, "micro_batch": 1, "recompute": "none"},
                lambda plan, a, f: (
                    (plan.get("tp"), plan.get("pp"), plan.get("vpp", 1)) == (8, 4, 1)
                ),
                (
                    "That is the plan as it was: {a.mfu:share}, with "
                    "{a.bubble_fraction:share} of the step idle. The best has "
                    "{best.mfu:share}."
                ),
            ),
            PlanSlip(
                {"tp": 4, "pp": 8, "vpp": 1, "cp": 1, "micro_batch": 1, "recompute": "none"},
                lambda plan, a, f: plan.get("vpp", 1) == 1 and plan.get("pp", 1) >= 8,
                (
                    "A longer pipeline without interleaving idles {a.bubble_fraction:share} "
                    "of the step: {m} micro-batches cannot fill it."
                ),
            ),
        ),
    ),
    Choice(
        "again",
        (
            "A week later another run falls by as much. Every node computes alike and waits "
            "alike; the all-reduce alone, without the job, reaches four tenths of its old "
            "rate on all of them. Where do you look?"
        ),
        "communication",
        "staff",
        (
            "What is the same for all, and slow even without the job?",
            "A rank that is late makes others wait; here nobody is early.",
            "Compare with the table of the first case.",
        ),
        (
            "Nobody waits for anybody, and the collective is slow by itself: that is the "
            "network. A uniform loss points at what all share: a routing change, one plane "
            "or rail down (jobs go on with the rest), congestion control, or a library that "
            "fell back to another transport."
        ),
        (
            "Uneven waiting: a rank. Even waiting with a slow transfer: the network. Even "
            "waiting with a sound transfer: the host or the input."
        ),
        expected=lambda f: "b",
        options=(
            Option(
                "a",
                "for one slow node again",
                "Then one node would compute longer and wait less; here all are alike.",
            ),
            Option(
                "b",
                "at the network: routing, a plane that is down, the transport the library chose",
                "Yes: slow alone, for everybody.",
            ),
            Option(
                "c",
                "at the data loader",
                (
                    "It shows as a gap before the first kernel, and leaves the all-reduce "
                    "alone at full rate."
                ),
            ),
            Option(
                "d",
                "at the batch size",
                "It has not changed, and it does not slow an all-reduce alone.",
            ),
        ),
    ),
    Explain(
        "tell",
        "Write the incident in four sentences for somebody who pays for the machine.",
        "telling",
        "staff",
        (
            "Money and days first.",
            "Two causes, one of them a decision.",
            "What is done, what is asked, what will be watched.",
        ),
        (
            "Lead with what it cost and that it is over, separate the decision (growing at "
            "a fixed batch) from the fault (one node), say what was done and what you need "
            "decided, and name the alarm that will see it next time."
        ),
        (
            "An incident has a cost, a cause, a fix and an alarm; percentages of "
            "utilisation are none of them."
        ),
        minutes=4,
        points=(
            Point(
                "says the cost: dollars, device-hours or days",
                (r"\b(\$|dollars?|device-?hours|gpu-?hours|days|cost)",),
            ),
            Point(
                "separates the planned part (batch, bubble) from the fault (node)",
                (r"\b(bubble|batch|micro-?batch|plan)",),
            ),
            Point("names the node, and that it is drained", (r"\b(node|drain|replac|spare)",)),
            Point(
                "names the decision that is needed, and who takes it",
                (r"\b(decid|decision|research|batch|approve|interleav|agree)",),
            ),
            Point(
                "names the alarm or test that will find it earlier",
                (r"\b(alarm|alert|monitor|watch|per-?rank|screen|burn-?in)",),
            ),
        ),
        model="Since the growth we lost device-hours worth thousands of dollars a day to one "
        "slow node; it is drained. The larger part of the fall was the plan: at a fixed "
        "batch twice the devices idle in the pipeline. "
        "We have switched to an interleaved schedule; a larger batch is research's "
        "decision by Friday. An alert on waiting per rank will find the next slow node "
        "within an hour.",
    ),
)

WALKTHROUGH = Walkthrough(
    "06", "mfu_fell", "Debug: MFU fell from 42 to 31 % after growing", 50, Facts, QUESTIONS
)
