"""Review: a plan for a 70B run with three planted faults, and lines that only look wrong."""

from __future__ import annotations

from functools import cached_property

from scantling.base.units import DAY_S, HOUR_S, MINUTE_S
from scantling.catalogue import storage
from scantling.catalogue.models.entries import models
from scantling.catalogue.models.shape import parameters
from scantling.endure import checkpoint, goodput
from scantling.evidence.figures.figures import recreate
from scantling.evidence.published import best_published
from scantling.verdict.assess import assess

from ..measured import published
from ..question import Choice, Explain, Number, Option, Plan, PlanSlip, Point, Slip, Walkthrough
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
            cluster={"pod_devices": 512, "oversubscription": self.oversubscription},
        )

    @cached_property
    def stated(self):
        """The plan of the document, by the kit."""
        return assess(
            self._design(
                tp=self.tp, pp=self.pp, vpp=1, cp=1, micro_batch=self.micro_batch, recompute="none"
            )
        )

    @cached_property
    def inside(self):
        """The same with tensor parallelism inside the node."""
        return assess(
            self._design(
                tp=8, pp=self.pp, vpp=1, cp=1, micro_batch=self.micro_batch, recompute="none"
            )
        )

    @cached_property
    def open_design(self):
        return self._design()

    @cached_property
    def best(self):
        return assess(self.open_design)

    @property
    def params(self):
        return float(self.stated.params)

    @cached_property
    def params_elsewhere(self):
        """(ours, printed) parameters of the model."""
        row = recreate("parameters").table().set_index("x").loc["llama-3.1-70b"]
        return float(row.ours), float(row.published)

    @property
    def dense_flops(self):
        return float(self.stated.resolved.cluster.accelerator.bf16_flops)

    # ---------------------------------------------------------------- compute and days
    @property
    def flops(self):
        return 6 * self.params * self.tokens

    def _days(self, peak, mfu):
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
        return best_published("h100-sxm", "bf16", False, self.seq_len)

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
        return float(checkpoint.contents(self.params).total)

    @cached_property
    def bloom_save_bytes(self):
        """The same sum for BLOOM 176B."""
        return float(checkpoint.contents(parameters(models()["bloom-176b"]).total).total)

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
        return float(self.stated.mtbf_s)

    @property
    def interval_s(self):
        return float(goodput.young(self.mtbf_s, self.save_s))

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


QUESTIONS = (
    Explain(
        "how",
        (
            "You have half an hour for this review. How do you go about it, and what do you "
            "want to be able to say at the end?"
        ),
        "scope",
        "senior",
        (
            "What decision depends on this document?",
            (
                "Reproduce the lines that the decision hangs on, in the order of what they "
                "cost if wrong."
            ),
            "Days, fit, layout; then what keeps it running.",
        ),
        (
            "Find the decision first: an order, a date, a budget. Redo the arithmetic of "
            "the lines it hangs on, in the order of dollars at stake, and hold each against "
            "something published. At the end say: sound, wrong by how much, or not shown; "
            "and what would have to be measured."
        ),
        "A review reproduces numbers; reading them finds typing errors.",
        minutes=4,
        points=(
            Point(
                "names the decision or commitment that the plan supports",
                (r"\b(decision|commit|deadline|budget|approve|date|promise|order)",),
            ),
            Point(
                "reproduces the numbers rather than reading them",
                (
                    (
                        r"\b(reproduce|redo|recompute|re-derive|own arithmetic|check the "
                        r"arithmetic|calculate|on paper)"
                    ),
                ),
            ),
            Point(
                "orders by what an error would cost",
                (r"\b(order|largest|first|priorit|dollars|impact|most expensive)",),
            ),
            Point(
                "holds results against published runs",
                (r"\b(publish|known runs?|other runs?|compare|sanity|benchmark)",),
            ),
        ),
        model=(
            "What decision or deadline hangs on it? Then I redo the arithmetic of the lines "
            "with the largest impact first: days, layout, memory, then saves. Each result I "
            "compare with a published run. At the end: sound, wrong by how much, or not "
            "shown."
        ),
    ),
    Number(
        "flops",
        "Line a. What is the compute of the run, in FLOP?",
        "size",
        "mid",
        (
            "Parameters, tokens, a constant.",
            "Two FLOP per parameter and token forward, four backward.",
            "`6 · {params:params} · {tokens:params}`",
        ),
        (
            "`6 · {params:params} · {tokens:params}` = {flops}: line a is sound. (Attention "
            "adds some per cent at {seq_len} tokens, which the exact count has.)"
        ),
        "Check the line that everything else divides by first.",
        expected="flops",
        unit="FLOP",
        within=1.06,
        slips=(
            Slip(
                lambda f: f.flops / 3,
                "`2 · N · D` is the forward pass; the backward pass costs twice that again.",
            ),
        ),
    ),
    Number(
        "implied",
        "Line b. What MFU of the dense bf16 peak do the stated days take, in per cent?",
        "size",
        "senior",
        (
            "Which peak is that number of TFLOP/s?",
            "The data sheet's larger figure counts structured sparsity.",
            "`{said_mfu:share} · {sparse_flops:flops} / {dense_flops:flops}`",
        ),
        (
            "{sparse_flops:flops} is the peak with two of four weights zero; dense it is "
            "{dense_flops:flops}. The days take an MFU of {implied:share}. The best anybody "
            "has published for a dense bf16 model on this device is {record.mfu:share}."
        ),
        (
            "Turn every promised time into an MFU of the dense peak: above six tenths on "
            "this hardware it is a mistake until shown otherwise."
        ),
        expected="implied",
        unit="%",
        scale=0.01,
        within=1.05,
        slips=(
            Slip(
                "said_mfu",
                (
                    "That is what the document prints, of a peak that training cannot use: "
                    "look at which peak it divides by."
                ),
                1.02,
            ),
            Slip(
                lambda f: f.said_mfu / 2,
                (
                    "The other way: the true peak is half as large, so the same days take "
                    "twice the MFU."
                ),
                1.03,
            ),
        ),
    ),
    Number(
        "days",
        "At the stated MFU, but of the dense peak: how many days?",
        "size",
        "senior",
        (
            "Same compute, same devices, the other peak.",
            "`FLOP / (devices · peak · MFU)`.",
            "`{flops} / ({devices} · {dense_flops:flops} · {said_mfu:share})`",
        ),
        (
            "`{flops} / ({devices} · {dense_flops:flops} · {said_mfu:share})` = "
            "{dense_days:days}: twice the stated time, and twice the money in line h. The "
            "deadline is {deadline_days} days. Meta's model card gives {card_gpu_h:params} "
            "GPU-hours for the 70B: the stated plan would take {said_gpu_h:params}."
        ),
        "The first fault is worth a factor of two in days and in dollars: sparse for dense.",
        expected="dense_days",
        unit="days",
        within=1.05,
        slips=(
            Slip("said_days", "Those are the document's days.", 1.03),
            Slip(lambda f: f.dense_days / 3, "That counts the forward pass alone.", 1.03),
        ),
    ),
    Number(
        "traffic",
        (
            "Line c. How many bytes does one device send for tensor parallelism in one "
            "step, in GB? (Two all-reduces a layer forward and two backward, in bf16.)"
        ),
        "communication",
        "staff",
        (
            "How large is what one all-reduce carries, and how often does it happen on one device?",
            (
                "`2 (t - 1)/t · tokens · hidden · 2 bytes`, times 4, times layers of the "
                "stage, times micro-batches."
            ),
            "{activation_bytes:bytes} an all-reduce, {stage_layers} layers, {m} micro-batches",
        ),
        (
            "`4 · 2 · 15/16 · {activation_bytes:bytes} · {stage_layers} · {m}` = "
            "{tp_bytes:bytes}. With tensor 8 it would be {tp_bytes_inside:bytes}: wider "
            "tensor parallelism leaves fewer replicas, each with more micro-batches, and "
            "every one of them pays the same."
        ),
        (
            "At fixed devices and batch, tensor-parallel traffic per device grows with its "
            "degree: it never pays for itself in bytes."
        ),
        expected="tp_bytes",
        unit="GB",
        scale=1e9,
        within=1.09,
        slips=(
            Slip(
                lambda f: f.tp_bytes / 2,
                (
                    "Half of it: an all-reduce moves the data twice (reduce-scatter, then "
                    "all-gather), and there are two forward and two backward."
                ),
                1.03,
            ),
            Slip(
                lambda f: f.tp_bytes * f.pp,
                "That counts all {layers} layers; a device holds the {stage_layers} of its stage.",
                1.03,
            ),
            Slip(lambda f: f.tp_bytes / f.m, "That is one micro-batch; a step has {m}.", 1.03),
            Slip(lambda f: f.tp_bytes * 8, "Bits for bytes.", 1.03),
        ),
    ),
    Choice(
        "across",
        (
            'Line c again. The document says that it fits "with room". What is wrong with '
            "tensor {tp} on nodes of {per_node}?"
        ),
        "parallelism",
        "senior",
        (
            "Which tier carries those bytes now, and what do they hide behind?",
            "Slower link, twice the bytes, half the work per device and layer.",
            "step {stated.step_s:seconds} against {inside.step_s:seconds}",
        ),
        "The all-reduce now crosses the network cards, moves {tp_bytes:bytes} instead "
        "of {tp_bytes_inside:bytes}, and has half the matrix product to hide behind: "
        "{stated.step_s:seconds} a step against {inside.step_s:seconds} with tensor 8, "
        "MFU {stated.mfu:share} against {inside.mfu:share}. "
        "The room in memory was not needed.",
        (
            "The second fault: tensor parallelism past the node, bought with memory that "
            "nobody was short of."
        ),
        expected=lambda f: "b",
        options=(
            Option(
                "a",
                "nothing, as long as the network is fast",
                (
                    "It moves {tp_bytes:bytes} a device and step over cards that are an "
                    "order of magnitude slower than the links."
                ),
            ),
            Option(
                "b",
                "it crosses nodes for every layer, and memory did not ask for it",
                "Yes: {tp_cost:.2f} times the step.",
            ),
            Option(
                "c",
                "80 layers do not divide by 16",
                (
                    "Layers divide by pipeline stages, heads by tensor ranks; 64 heads do "
                    "divide by {tp}."
                ),
            ),
            Option(
                "d",
                "it makes the bubble larger",
                "The other way: fewer replicas have more micro-batches each.",
            ),
        ),
    ),
    Number(
        "states",
        (
            "Did memory ask for it? At tensor 8, pipeline {pp}: how many GB of weights, "
            "fp32 gradients and Adam states does a device hold, the states sharded over the "
            "replicas?"
        ),
        "memory",
        "senior",
        (
            "Parameters a device holds, then bytes for each.",
            "`N / (8 · 4) · (2 + 4) + N / (8 · 4) · 12 / replicas`.",
            "{dp_inside} replicas",
        ),
        (
            "`{params:params} / 32 · (6 + 12/{dp_inside})` = {states_bytes:bytes}; with "
            "activations the kit has {inside.memory_bytes[total]:bytes} of the "
            "{inside.memory_bytes[capacity]:bytes} that this stack can fill. Less than half "
            "is used: even tensor 4 fits."
        ),
        "Ask what the memory is for before spending bandwidth on it.",
        expected="states_bytes",
        unit="GB",
        scale=1e9,
        within=1.1,
        slips=(
            Slip(
                "states_unsharded",
                (
                    "That keeps all of Adam's states on every replica; sharded over "
                    "{dp_inside} of them they nearly vanish."
                ),
            ),
            Slip(
                lambda f: f.params / 32 * 4 + f.params / 32 * 12 / f.dp_inside,
                "Gradients are accumulated in fp32: four bytes, not two.",
                1.03,
            ),
            Slip(
                lambda f: f.params / 32 * 2,
                "Weights only: gradients and optimizer states come on top.",
                1.03,
            ),
        ),
    ),
    Choice(
        "spine",
        "Line e. {oversubscription:.0f}:1 at the spine. A fault?",
        "communication",
        "senior",
        (
            "What crosses it, how often, and what runs beside it?",
            "Once a step: the gradients of one device's share, reduced over the replicas.",
            "exposed {stated.step_breakdown_s[dp]:seconds} of {stated.step_s:seconds}",
        ),
        (
            "Gradients of a device's share cross once a step, behind the last micro-batch's "
            "backward pass; {stated.step_breakdown_s[dp]:seconds} of "
            "{stated.step_s:seconds} show. An oversubscribed spine is a saving here. It "
            "would be a fault under tensor parallelism, fully sharded weights or experts "
            "across it."
        ),
        "A cheap tier is only wrong under an axis that talks often.",
        expected=lambda f: "b",
        options=(
            Option(
                "a",
                "yes: bandwidth is halved twice for everything",
                "Only for what crosses pods, and that is once a step.",
            ),
            Option(
                "b",
                "no: one reduction a step, hidden behind compute",
                "Yes: it shows for {stated.step_breakdown_s[dp]:seconds}.",
            ),
            Option(
                "c",
                "yes: the pipeline sends cross it",
                "They need not, with stages placed inside a pod; and even so they are small.",
            ),
        ),
    ),
    Number(
        "save",
        "Line f. How many GB does a checkpoint that training can resume from hold?",
        "reliability",
        "mid",
        (
            "What does Adam need to go on as if nothing had happened?",
            "Working weights, fp32 weights, two moments.",
            "`(2 + 4 + 4 + 4) bytes · {params:params}`",
        ),
        (
            "`{bytes_per_param} bytes · {params:params}` = {save_bytes:bytes}. The document "
            "saves {said_save_bytes:bytes}: the bf16 weights. That is a model to publish, "
            "not a run to resume."
        ),
        (
            "A checkpoint is weights, master weights, moments, random state and the place "
            "in the data: fourteen bytes a parameter, not two."
        ),
        expected="save_bytes",
        unit="GB",
        scale=1e9,
        within=1.16,
        slips=(
            Slip(
                "said_save_bytes",
                (
                    "Those are the weights alone, as the document has it. Optimizer states "
                    "are six times as large."
                ),
                1.03,
            ),
            Slip(lambda f: f.save_bytes * 8, "Bits for bytes.", 1.03),
            Slip(
                lambda f: 8 * f.params,
                "The moments alone; the fp32 weights and the working weights belong to it.",
                1.03,
            ),
        ),
    ),
    Number(
        "overhead",
        (
            "What share of the time do these saves take, in per cent, at "
            "{store_bytes_per_s:bytes_per_s} and every {save_every_s:seconds}, while "
            "training waits?"
        ),
        "reliability",
        "senior",
        (
            "Seconds of a save over seconds between saves.",
            "`save / (interval + save)`.",
            "`{save_bytes:bytes} / {store_bytes_per_s:bytes_per_s}` = {save_s:seconds}",
        ),
        (
            "{save_s:seconds} a save, {overhead:share} of the time; the document says "
            "{said_overhead:share}. At one failure in {mtbf_s:seconds} it also saves far "
            "too often: Young would wait {interval_s:seconds}."
        ),
        "The third fault hides in a small percentage: a factor of seven on one per cent is six.",
        expected="overhead",
        unit="%",
        scale=0.01,
        within=1.09,
        slips=(
            Slip("said_overhead", "That is the document's, for the weights alone.", 1.05),
            Slip(
                lambda f: 8 * f.save_s / (f.save_every_s + 8 * f.save_s),
                "Bits for bytes: the store is in bytes a second.",
                1.03,
            ),
        ),
    ),
    Number(
        "interval",
        "How often would you save with that store, in minutes?",
        "reliability",
        "senior",
        (
            "Balance what saves cost with what a failure loses.",
            "`sqrt(2 · save · MTBF)`.",
            "`sqrt(2 · {save_s:seconds} · {mtbf_s:seconds})`",
        ),
        (
            "`sqrt(2 · {save_s:seconds} · {mtbf_s:seconds})` = {interval_s:seconds}. "
            "Better: copy to host memory and write behind the training, after which the "
            "interval hardly matters."
        ),
        "A thousand devices fail seldom; the interval follows the fleet, not a habit.",
        expected="interval_s",
        unit="min",
        scale=MINUTE_S,
        within=1.1,
        slips=(
            Slip(
                lambda f: (f.save_s * f.mtbf_s) ** 0.5,
                "A factor of two is missing under the root.",
                1.03,
            ),
            Slip(
                lambda f: (2 * f.said_save_s * f.mtbf_s) ** 0.5,
                "With the document's {said_save_s:seconds} a save; use the whole state.",
                1.03,
            ),
        ),
    ),
    Choice(
        "faults",
        "So: which lines are planted faults? (Not the lines that only inherit one.)",
        "verification",
        "senior",
        (
            "Go through the lines again with your own numbers.",
            "Three of them are wrong in themselves.",
            "One in speed, one in layout, one in reliability.",
        ),
        (
            "b divides by the sparse peak, c runs tensor parallelism across nodes, f saves "
            "weights only. h is wrong because b is. a, d, e and g are sound."
        ),
        (
            "Separate what is wrong from what inherits it: the author has to fix three "
            "lines, not five."
        ),
        expected="real",
        several=True,
        minutes=4,
        options=(
            Option("a", "compute", "It is right: six FLOP per parameter and token."),
            Option("b", "time", "The peak is the sparse one."),
            Option("c", "layout", "Tensor parallelism leaves the node."),
            Option(
                "d",
                "bubble",
                (
                    "`(p - 1)/(m + p - 1)` of the whole step, as it should be; and nothing "
                    "is recomputed since nothing has to be."
                ),
            ),
            Option("e", "network", "Only gradients cross, hidden."),
            Option("f", "checkpoints", "Weights only; the optimizer is missing."),
            Option("g", "failures", "The published rate, scaled by devices: right."),
            Option("h", "cost", "It only inherits the days of line b."),
        ),
    ),
    Plan(
        "plan",
        (
            "Give the author a better plan for the same {devices} devices, within a tenth "
            "of the best step."
        ),
        "parallelism",
        "staff",
        (
            "Tensor parallelism inside the node, and no more of it than memory asks for.",
            "Interleave what is left of the bubble.",
            "Micro-batch 1; {layers} layers divide by stages times chunks.",
        ),
        (
            "The kit's best runs at MFU {best.mfu:share}, {best.days:days}; the document's "
            "layout at {stated.mfu:share} takes {stated.days:days}."
        ),
        (
            "Fix the layout and most of the second half of the time comes back; the first "
            "half was never there."
        ),
        design="open_design",
        names=("tp", "pp", "vpp", "micro_batch"),
        minutes=5,
        slips=(
            PlanSlip(
                {"tp": 16, "pp": 4, "vpp": 1, "cp": 1, "micro_batch": 1, "recompute": "none"},
                lambda plan, a, f: plan.get("tp", 1) > 8,
                (
                    "That still crosses the node with tensor parallelism: "
                    "{a.step_s:seconds} a step, the best takes {best.step_s:seconds}."
                ),
            ),
            PlanSlip(
                {"tp": 8, "pp": 4, "vpp": 1, "cp": 1, "micro_batch": 1, "recompute": "none"},
                lambda plan, a, f: plan.get("tp") == 8 and plan.get("vpp", 1) == 1,
                (
                    "Inside the node, good; but {a.bubble_fraction:share} of the step is "
                    "idle and eight ranks reduce where fewer would do: {a.step_s:seconds} "
                    "against {best.step_s:seconds}."
                ),
            ),
        ),
    ),
    Number(
        "needed",
        (
            "A sound plan takes {best.days:days} on these {devices} devices, by the kit. "
            "How many devices does the deadline of {deadline_days} days take?"
        ),
        "cost",
        "staff",
        (
            "Days scale as one over devices, as long as the batch feeds them.",
            "`devices · days / deadline`.",
            "`{devices} · {best.days:days} / {deadline_days}`",
        ),
        (
            "`{devices} · {best.days:days} / {deadline_days}` = {needed:count}, a little "
            "more in truth since the batch stays and the bubble grows. The document would "
            "have bought {devices}, and found out on day {deadline_days}."
        ),
        "The finding of the review is a number of devices, not a list of errors.",
        expected="needed",
        unit="devices",
        within=1.12,
        slips=(
            Slip("needed_said", "That trusts the document's days.", 1.05),
            Slip("needed_stated", "That is with the document's layout; yours is faster.", 1.05),
        ),
    ),
    Explain(
        "comment",
        "Write the review: five or six lines that the author can act on and the director can read.",
        "telling",
        "staff",
        (
            "Verdict first.",
            "Each finding: line, what is wrong, what it is worth, what to do.",
            "What is sound deserves a line as well.",
        ),
        (
            "Verdict and consequence first, then the findings in order of money, each with "
            "its number and a fix, then what is sound, then what should be measured before "
            "ordering."
        ),
        "A review that only lists faults is hard to act on: say what it costs and what to do.",
        minutes=4,
        points=(
            Point(
                "opens with the verdict: the date does not hold, or not on these devices",
                (
                    (
                        r"\b(not? (meet|hold|make)|does not|cannot|misses?|late|twice|more "
                        r"devices|verdict)"
                    ),
                ),
            ),
            Point("peak: dense, not sparse; twice the days", (r"\b(dense|spars)",)),
            Point("layout: tensor parallelism inside the node", (r"\b(tensor|tp)\b",)),
            Point(
                "checkpoints: optimizer states; asynchronous or less often",
                (r"\b(optimi[sz]er|adam|states|14 bytes|checkpoint)",),
            ),
            Point("says what is sound", (r"\b(sound|fine|correct|right|ok|agree)\b",)),
            Point(
                "asks for a short measured run before the order",
                (r"\b(measure|sweep|benchmark|test run|trial)",),
            ),
        ),
        model="The date does not hold on 1,024 devices: twice the time. Line b divides by the "
        "sparse peak; dense doubles the days. Line c: keep tensor parallelism inside "
        "the node, memory has room. "
        "Line f: a checkpoint needs the optimizer states; save asynchronously. Compute, "
        "bubble, network and failures are sound. Measure a hundred steps on 64 nodes "
        "before ordering.",
    ),
)

WALKTHROUGH = Walkthrough(
    "07", "review", "Review: a plan with planted faults", 55, Facts, QUESTIONS
)
