"""Review: a plan for a 70B run with three planted faults, and lines that only look wrong."""

from functools import cached_property

from scantling import Assessment, assess
from scantling.base import show
from scantling.base.units import DAY_S
from scantling.catalogue import storage
from scantling.catalogue.models.entries import models
from scantling.catalogue.models.shape import parameters
from scantling.catalogue.published import Best, best_published
from scantling.design.design import Design
from scantling.endure import checkpoint, goodput

from .. import measured
from ..question import (
    FLEET,
    KEPT,
    SENT,
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
from ..texts import small_size
from .shared_sums import idle_share, run_days, tp_traffic_bytes


class Facts:
    """The numbers of the book, each worked out when it is first asked for, with its unit."""

    devices = 1024  # devices
    per_node = 8  # devices
    tokens = 1.5e13  # tokens
    batch = 512  # sequences
    seq_len = 8192  # tokens
    deadline_days = 100  # days
    tp = 16  # devices
    pp = 4  # stages
    micro_batch = 1  # sequences
    bytes_per_param = 14  # bytes
    store_bytes_per_s = 1e10  # bytes/s
    save_every_s = 1800.0  # s
    price = 2.5  # USD a device-hour
    oversubscription = 4.0  # ratio
    document_mfu = 0.4  # share
    sparse_flops = 1.979e15  # FLOP/s
    real = ["b", "c", "f"]

    @cached_property
    def open_design(self) -> Design:
        return Design.from_data(
            {
                "model": "llama-3.1-70b",
                "cluster": {
                    "accelerator": "h100-sxm",
                    "devices": self.devices,
                    "devices_per_node": 8,
                    "scale_out": "ib-ndr",
                    "pod_devices": 512,
                    "oversubscription": self.oversubscription,
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
    def stated_design(self) -> Design:
        """The plan of the document; the same with tensor parallelism inside the node."""
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
    def inside_design(self) -> Design:
        return self.stated_design.change({"plan.tp": 8})

    @cached_property
    def stated(self) -> Assessment:
        return assess(self.stated_design)

    @cached_property
    def inside(self) -> Assessment:
        return assess(self.inside_design)

    @cached_property
    def best(self) -> Assessment:
        return assess(self.open_design)

    @cached_property
    def params_elsewhere(self) -> tuple[float, float]:
        return measured.recreation_of("parameters", "x", "llama-3.1-70b")

    @cached_property
    def card_gpu_h(self) -> float:  # h
        return measured.value("llama31-70b-hours")

    @cached_property
    def document(self) -> list[tuple[str, str, str]]:
        return [
            (
                "a",
                "compute",
                (
                    f"6 · N · D = {self.flops / 1e24:.2f} · 10²⁴ FLOP for "
                    f"{self.params / 1e9:.1f}B parameters and {self.tokens / 1e12:.0f}T "
                    "tokens"
                ),
            ),
            (
                "b",
                "time",
                (
                    f"MFU {self.document_mfu / 0.01:.0f} % of {self.sparse_flops / 1e12:,.0f} "
                    f"TFLOP/s on {self.devices:,} H100: {self.document_days:.0f} days, before the "
                    f"deadline of {self.deadline_days}"
                ),
            ),
            (
                "c",
                "layout",
                (
                    f"tensor {self.tp} · pipeline {self.pp} · data {self.dp}, nodes of "
                    f'{self.per_node}; "wide tensor parallelism leaves room in memory"'
                ),
            ),
            (
                "d",
                "bubble",
                (
                    f"{self.m} micro-batches, {self.pp} stages: {self.bubble / 0.01:.1f} % of "
                    "the step; no recompute"
                ),
            ),
            (
                "e",
                "network",
                (
                    f"InfiniBand 400 Gb/s a device, {self.oversubscription:.0f}:1 at the "
                    'spine between pods of 512: "only gradients cross it"'
                ),
            ),
            (
                "f",
                "checkpoints",
                (
                    f"{self.document_save_bytes / 1e9:.0f} GB every {self.save_every_s / 60:.0f} "
                    f"minutes to a {self.store_bytes_per_s / 1e9:.0f} GB/s file system, "
                    f"training waits: {self.document_save_s:.0f} s, "
                    f"{self.document_overhead / 0.01:.1f} %"
                ),
            ),
            (
                "g",
                "failures",
                f"the rate of Llama 3's fleet: one in {self.mtbf_s / 3600:.0f} hours",
            ),
            (
                "h",
                "cost",
                (
                    f"{self.devices:,} · 24 · {self.document_days:.0f} · ${self.price:.2f} = "
                    f"${self.document_usd / 1e6:.1f}M"
                ),
            ),
        ]

    @cached_property
    def params(self) -> float:  # parameters
        return self.stated.params

    @cached_property
    def dense_flops(self) -> float:  # FLOP/s
        return self.stated.resolved.cluster.accelerator.bf16_flops

    @cached_property
    def flops(self) -> float:  # FLOP
        return 6 * self.params * self.tokens

    @cached_property
    def document_days(self) -> float:  # days
        return self.flops / (self.devices * self.sparse_flops * self.document_mfu) / DAY_S

    @cached_property
    def document_usd(self) -> float:  # USD
        return self.devices * 24 * self.document_days * self.price

    @cached_property
    def dense_days(self) -> float:  # days
        return self.flops / (self.devices * self.dense_flops * self.document_mfu) / DAY_S

    @cached_property
    def implied(self) -> float:
        """MFU of the dense peak that the stated days take. [share]"""
        return self.document_mfu * self.sparse_flops / self.dense_flops

    @cached_property
    def document_gpu_h(self) -> float:  # h
        return self.devices * 24 * self.document_days

    @cached_property
    def best_gpu_h(self) -> float:  # h
        return self.devices * 24 * run_days(self.best)

    @cached_property
    def layers(self) -> int:  # layers
        return self.stated.resolved.model.layers

    @cached_property
    def hidden(self) -> int:  # values
        return self.stated.resolved.model.hidden

    @cached_property
    def stage_layers(self) -> int:  # layers
        return self.layers // self.pp

    @cached_property
    def m(self) -> int:  # micro-batches
        return self.batch * self.tp * self.pp // (self.devices * self.micro_batch)

    @cached_property
    def m_inside(self) -> int:  # micro-batches
        return self.batch * 8 * self.pp // (self.devices * self.micro_batch)

    @cached_property
    def activation_bytes(self) -> float:
        """One layer's activations of one micro-batch: what an all-reduce carries. [bytes]"""
        return self.micro_batch * self.seq_len * self.hidden * 2.0

    @cached_property
    def tp_bytes(self) -> float:
        """Bytes that a device sends for tensor parallelism in one step: two all-reduces forward and
        two backward, a layer and micro-batch. [bytes]"""
        return tp_traffic_bytes(self.activation_bytes, self.tp) * self.stage_layers * self.m

    @cached_property
    def tp_bytes_inside(self) -> float:  # bytes
        return tp_traffic_bytes(self.activation_bytes, 8) * self.stage_layers * self.m_inside

    @cached_property
    def tp_cost(self) -> float:
        """Times longer that the step is with tensor parallelism across nodes. [ratio]"""
        return self.stated.step_s / self.inside.step_s

    @cached_property
    def dp(self) -> int:  # replicas
        return self.devices // (self.tp * self.pp)

    @cached_property
    def dp_inside(self) -> int:  # replicas
        return self.devices // (8 * self.pp)

    @cached_property
    def states_unsharded(self) -> float:  # bytes
        return self.params / (8 * self.pp) * 18

    @cached_property
    def document_save_bytes(self) -> float:  # bytes
        return 2 * self.params

    @cached_property
    def save_s(self) -> float:  # s
        return self.save_bytes / self.store_bytes_per_s

    @cached_property
    def document_save_s(self) -> float:  # s
        return self.document_save_bytes / self.store_bytes_per_s

    @cached_property
    def store_ratio(self) -> float:  # ratio
        return self.tectonic_bytes_per_s / self.store_bytes_per_s

    @cached_property
    def overhead(self) -> float:  # share
        return self.save_s / (self.save_every_s + self.save_s)

    @cached_property
    def document_overhead(self) -> float:  # share
        return self.document_save_s / (self.save_every_s + self.document_save_s)

    @cached_property
    def mtbf_s(self) -> float:  # s
        return self.stated.mtbf_s

    @cached_property
    def deadline_devices(self) -> float:
        """Devices for the deadline at the best plan's rate per device. [?]"""
        return self.devices * run_days(self.best) / self.deadline_days

    @cached_property
    def deadline_devices_document(self) -> float:  # devices
        return self.devices * self.document_days / self.deadline_days

    @cached_property
    def deadline_devices_stated(self) -> float:  # devices
        return self.devices * run_days(self.stated) / self.deadline_days

    @cached_property
    def bubble(self) -> float:  # share
        return idle_share(self.pp, self.m)

    @cached_property
    def save_bytes(self) -> float:  # bytes
        return checkpoint.contents(self.params).total

    @cached_property
    def tectonic_bytes_per_s(self) -> float:  # bytes/s
        return storage("meta-tectonic").total_write_bytes_per_s

    @cached_property
    def interval_s(self) -> float:  # s
        return float(goodput.young(self.mtbf_s, self.save_s))

    @cached_property
    def states_bytes(self) -> float:
        """Weights, fp32 gradients, and Adam's states over the replicas, of one device at tensor 8,
        pipeline 4. [bytes]"""
        return self.params / (8 * self.pp) * 6 + self.params / (8 * self.pp) * 12 / self.dp_inside

    @cached_property
    def record(self) -> Best:
        best = best_published("h100-sxm", "bf16", False, self.seq_len)
        if best is None:
            raise ValueError("no such run is published")
        return best

    @cached_property
    def bloom_save_bytes(self) -> float:
        """The same sum as of the save for BLOOM 176B. [bytes]"""
        return checkpoint.contents(float(parameters(models()["bloom-176b"]).total)).total


# ---------------------------------------------------------------- questions


def how_question(f: Facts) -> Explain:
    return Explain(
        id="how",
        axis="scope",
        level="senior",
        minutes=4,
        ask=(
            "You have half an hour for this review. How do you go about it, and what do you "
            "want to be able to say at the end?"
        ),
        points=(
            Point(
                says="names the decision or commitment that the plan supports",
                words=(r"\b(decision|commit|deadline|budget|approve|date|promise|order)",),
            ),
            Point(
                says="reproduces the numbers rather than reading them",
                words=(
                    r"\b(reproduce|redo|recompute|re-derive|own arithmetic|check the arithmetic"
                    r"|calculate|on paper)",
                ),
            ),
            Point(
                says="orders by what an error would cost",
                words=(r"\b(order|largest|first|priorit|dollars|impact|most expensive)",),
            ),
            Point(
                says="holds results against published runs",
                words=(r"\b(publish|known runs?|other runs?|compare|sanity|benchmark)",),
            ),
        ),
        model=(
            "What decision or deadline hangs on it? Then I redo the arithmetic of the lines "
            "with the largest impact first: days, layout, memory, then saves. Each result I "
            "compare with a published run. At the end: sound, wrong by how much, or not "
            "shown."
        ),
        hints=(
            "What decision depends on this document?",
            (
                "Reproduce the lines that the decision hangs on, in the order of what they "
                "cost if wrong."
            ),
            "Days, fit, layout; then what keeps it running.",
        ),
        worked=(
            "Find the decision first: an order, a date, a budget. Redo the arithmetic of the "
            "lines it hangs on, in the order of dollars at stake, and hold each against "
            "something published. At the end say: sound, wrong by how much, or not shown; "
            "and what would have to be measured."
        ),
        takeaway="A review reproduces numbers; reading them finds typing errors.",
    )


def how_note(f: Facts) -> str:
    return (
        f"What hangs on it: an order of {f.devices:,} devices and a date. So b, c and f first, "
        "since a mistake there is days; then what keeps it running."
    )


def flops_question(f: Facts) -> Number:
    return Number(
        id="flops",
        axis="size",
        level="mid",
        ask="Line a. What is the compute of the run, in FLOP?",
        expected=f.flops,
        unit="FLOP",
        within=1.06,
        made_of=(WORK,),
        slips=(
            Slip(
                value=f.flops / 3,
                says=("`2 · N · D` is the forward pass; the backward pass costs twice that again."),
            ),
        ),
        hints=(
            "Parameters, tokens, a constant.",
            "Two FLOP per parameter and token forward, four backward.",
            f"`6 · {show.params(f.params)} · {show.params(f.tokens)}`",
        ),
        worked=(
            f"`6 · {show.params(f.params)} · {show.params(f.tokens)}` = "
            f"{show.number(f.flops)}: line a is sound. (Attention adds some per cent at "
            f"{f.seq_len:,} tokens, which the exact count has.)"
        ),
        takeaway="Check the line that everything else divides by first.",
    )


def flops_note(f: Facts) -> str:
    return (
        f"The kit's exact count: {show.flop(f.stated.flops_per_token)} a token, attention and "
        "output head in."
    )


def implied_question(f: Facts) -> Number:
    return Number(
        id="implied",
        axis="size",
        level="senior",
        ask="Line b. What MFU of the dense bf16 peak do the stated days take, in per cent?",
        expected=f.implied,
        unit="%",
        scale=0.01,
        slips=(
            Slip(
                value=f.document_mfu,
                says=(
                    "That is what the document prints, of a peak that training cannot use: "
                    "look at which peak it divides by."
                ),
                within=1.02,
            ),
            Slip(
                value=f.document_mfu / 2,
                says=(
                    "The other way: the true peak is half as large, so the same days take "
                    "twice the MFU."
                ),
                within=1.03,
            ),
        ),
        hints=(
            "Which peak is that number of TFLOP/s?",
            "The data sheet's larger figure counts structured sparsity.",
            (
                f"`{show.share(f.document_mfu)} · {show.flops(f.sparse_flops)} / "
                f"{show.flops(f.dense_flops)}`"
            ),
        ),
        worked=(
            f"{show.flops(f.sparse_flops)} is the peak with two of four weights zero; dense "
            f"it is {show.flops(f.dense_flops)}. The days take an MFU of "
            f"{show.share(f.implied)}. The best anybody has published for a dense bf16 model "
            f"on this device is {show.share(f.record.mfu)}."
        ),
        takeaway=(
            "Turn every promised time into an MFU of the dense peak: above six tenths on "
            "this hardware it is a mistake until shown otherwise."
        ),
    )


def implied_note(f: Facts) -> str:
    return f"The record on this device in bf16: {f.record.run}, {f.record.source}."


def days_question(f: Facts) -> Number:
    return Number(
        id="days",
        axis="size",
        level="senior",
        ask="At the stated MFU, but of the dense peak: how many days?",
        expected=f.dense_days,
        unit="days",
        made_of=(WORK, FLEET),
        slips=(
            Slip(value=f.document_days, says="Those are the document's days.", within=1.03),
            Slip(value=f.dense_days / 3, says="That counts the forward pass alone.", within=1.03),
        ),
        hints=(
            "Same compute, same devices, the other peak.",
            "`FLOP / (devices · peak · MFU)`.",
            (
                f"`{show.number(f.flops)} / ({f.devices:,} · {show.flops(f.dense_flops)} · "
                f"{show.share(f.document_mfu)})`"
            ),
        ),
        worked=(
            f"`{show.number(f.flops)} / ({f.devices:,} · {show.flops(f.dense_flops)} · "
            f"{show.share(f.document_mfu)})` = {show.days(f.dense_days)}: twice the stated time, "
            f"and twice the money in line h. The deadline is {f.deadline_days} days. Meta's "
            f"model card gives {show.params(f.card_gpu_h)} GPU-hours for the 70B: the stated "
            f"plan would take {show.params(f.document_gpu_h)}."
        ),
        takeaway=(
            "The first fault is worth a factor of two in days and in dollars: sparse for dense."
        ),
    )


def traffic_question(f: Facts) -> Number:
    return Number(
        id="traffic",
        axis="communication",
        level="staff",
        ask=(
            "Line c. How many bytes does one device send for tensor parallelism in one step, "
            "in GB? (Two all-reduces a layer forward and two backward, in bf16.)"
        ),
        expected=f.tp_bytes,
        unit="GB",
        scale=1e9,
        within=1.09,
        made_of=(SENT,),
        slips=(
            Slip(
                value=f.tp_bytes / 2,
                says=(
                    "Half of it: an all-reduce moves the data twice (reduce-scatter, then "
                    "all-gather), and there are two forward and two backward."
                ),
                within=1.03,
            ),
            Slip(
                value=f.tp_bytes * f.pp,
                says=(
                    f"That counts all {f.layers} layers; a device holds the {f.stage_layers} "
                    "of its stage."
                ),
                within=1.03,
            ),
            Slip(
                value=f.tp_bytes / f.m,
                says=f"That is one micro-batch; a step has {f.m}.",
                within=1.03,
            ),
            Slip(value=f.tp_bytes * 8, says="Bits for bytes.", within=1.03),
        ),
        hints=(
            (
                "How large is what one all-reduce carries, and how often does it happen on "
                "one device?"
            ),
            (
                "`2 (t - 1)/t · tokens · hidden · 2 bytes`, times 4, times layers of the "
                "stage, times micro-batches."
            ),
            (
                f"{small_size(f.activation_bytes)} an all-reduce, {f.stage_layers} layers, "
                f"{f.m} micro-batches"
            ),
        ),
        worked=(
            f"`4 · 2 · 15/16 · {small_size(f.activation_bytes)} · {f.stage_layers} · {f.m}` = "
            f"{show.size(f.tp_bytes)}. With tensor 8 it would be "
            f"{show.size(f.tp_bytes_inside)}: wider tensor parallelism leaves fewer replicas, "
            "each with more micro-batches, and every one of them pays the same."
        ),
        takeaway=(
            "At fixed devices and batch, tensor-parallel traffic per device grows with its "
            "degree: it never pays for itself in bytes."
        ),
    )


def across_question(f: Facts) -> Choice:
    return Choice(
        id="across",
        axis="parallelism",
        level="senior",
        ask=(
            'Line c again. The document says that it fits "with room". What is wrong with '
            f"tensor {f.tp} on nodes of {f.per_node}?"
        ),
        expected="b",
        options=(
            Option(
                key="a",
                text="nothing, as long as the network is fast",
                says=(
                    f"{show.size(f.tp_bytes)} a device and step then cross the network, and "
                    f"{show.seconds(f.stated.step_breakdown_s['tp'])} of it is exposed; inside the "
                    f"node it is {show.seconds(f.inside.step_breakdown_s['tp'])}."
                ),
            ),
            Option(
                key="b",
                text="it crosses nodes for every layer, and memory did not ask for it",
                says=f"Yes: {f.tp_cost:.2f} times the step.",
            ),
            Option(
                key="c",
                text="80 layers do not divide by 16",
                says=(
                    "Layers divide by pipeline stages, heads by tensor ranks; 64 heads do "
                    f"divide by {f.tp}."
                ),
            ),
            Option(
                key="d",
                text="it makes the bubble larger",
                says="The other way: fewer replicas have more micro-batches each.",
            ),
        ),
        hints=(
            "Which tier carries those bytes now, and what do they hide behind?",
            "Slower link, twice the bytes, half the work per device and layer.",
            (f"step {show.seconds(f.stated.step_s)} against {show.seconds(f.inside.step_s)}"),
        ),
        worked=(
            f"The all-reduce now crosses the network cards, moves {show.size(f.tp_bytes)} "
            f"instead of {show.size(f.tp_bytes_inside)}, and has half the matrix product to "
            f"hide behind: {show.seconds(f.stated.step_s)} a step against "
            f"{show.seconds(f.inside.step_s)} with tensor 8, MFU {show.share(f.stated.mfu)} "
            f"against {show.share(f.inside.mfu)}. The room in memory was not needed."
        ),
        takeaway=(
            "The second fault: tensor parallelism past the node, bought with memory that "
            "nobody was short of."
        ),
    )


def states_question(f: Facts) -> Number:
    return Number(
        id="states",
        axis="memory",
        level="senior",
        ask=(
            f"Did memory ask for it? At tensor 8, pipeline {f.pp}: how many GB of weights, "
            "fp32 gradients and Adam states does a device hold, the states sharded over the "
            "replicas?"
        ),
        expected=f.states_bytes,
        unit="GB",
        scale=1e9,
        within=1.1,
        made_of=(KEPT,),
        slips=(
            Slip(
                value=f.states_unsharded,
                says=(
                    "That keeps all of Adam's states on every replica; sharded over "
                    f"{f.dp_inside} of them they nearly vanish."
                ),
            ),
            Slip(
                value=f.params / 32 * 4 + f.params / 32 * 12 / f.dp_inside,
                says="Gradients are accumulated in fp32: four bytes, not two.",
                within=1.03,
            ),
            Slip(
                value=f.params * 2 / 32,
                says="Weights only: gradients and optimizer states come on top.",
                within=1.03,
            ),
        ),
        hints=(
            "Parameters a device holds, then bytes for each.",
            "`N / (8 · 4) · (2 + 4) + N / (8 · 4) · 12 / replicas`.",
            f"{f.dp_inside} replicas",
        ),
        worked=(
            f"`{show.params(f.params)} / 32 · (6 + 12/{f.dp_inside})` = "
            f"{show.size(f.states_bytes)}; with activations the kit has "
            f"{show.size(f.inside.memory_bytes['total'])} of the "
            f"{show.size(f.inside.memory_bytes['capacity'])} that this stack can fill. Less "
            "than half is used: even tensor 4 fits."
        ),
        takeaway="Ask what the memory is for before spending bandwidth on it.",
    )


def spine_question(f: Facts) -> Choice:
    return Choice(
        id="spine",
        axis="communication",
        level="senior",
        ask=f"Line e. {f.oversubscription:.0f}:1 at the spine. A fault?",
        expected="b",
        options=(
            Option(
                key="a",
                text="yes: bandwidth is halved twice for everything",
                says="Only for what crosses pods, and that is once a step.",
            ),
            Option(
                key="b",
                text="no: one reduction a step, hidden behind compute",
                says=f"Yes: it shows for {show.seconds(f.stated.step_breakdown_s['dp'])}.",
            ),
            Option(
                key="c",
                text="yes: the pipeline sends cross it",
                says=(
                    "They need not, with stages placed inside a pod; and even so they are small."
                ),
            ),
        ),
        hints=(
            "What crosses it, how often, and what runs beside it?",
            ("Once a step: the gradients of one device's share, reduced over the replicas."),
            (
                f"exposed {show.seconds(f.stated.step_breakdown_s['dp'])} of "
                f"{show.seconds(f.stated.step_s)}"
            ),
        ),
        worked=(
            "Gradients of a device's share cross once a step, behind the last micro-batch's "
            f"backward pass; {show.seconds(f.stated.step_breakdown_s['dp'])} of "
            f"{show.seconds(f.stated.step_s)} show. An oversubscribed spine is a saving here. "
            "It would be a fault under tensor parallelism, fully sharded weights or experts "
            "across it."
        ),
        takeaway="A cheap tier is only wrong under an axis that talks often.",
    )


def save_question(f: Facts) -> Number:
    return Number(
        id="save",
        axis="reliability",
        level="mid",
        ask="Line f. How many GB does a checkpoint that training can resume from hold?",
        expected=f.save_bytes,
        unit="GB",
        scale=1e9,
        within=1.16,
        made_of=(KEPT,),
        slips=(
            Slip(
                value=f.document_save_bytes,
                says=(
                    "Those are the weights alone, as the document has it. Optimizer states "
                    "are six times as large."
                ),
                within=1.03,
            ),
            Slip(value=f.save_bytes * 8, says="Bits for bytes.", within=1.03),
            Slip(
                value=f.params * 8,
                says=("The moments alone; the fp32 weights and the working weights belong to it."),
                within=1.03,
            ),
        ),
        hints=(
            "What does Adam need to go on as if nothing had happened?",
            "Working weights, fp32 weights, two moments.",
            f"`(2 + 4 + 4 + 4) bytes · {show.params(f.params)}`",
        ),
        worked=(
            f"`{f.bytes_per_param} bytes · {show.params(f.params)}` = "
            f"{show.size(f.save_bytes)}. The document saves {show.size(f.document_save_bytes)}: "
            "the bf16 weights. That is a model to publish, not a run to resume."
        ),
        takeaway=(
            "A checkpoint is weights, master weights, moments, random state and the place in "
            "the data: fourteen bytes a parameter, not two."
        ),
    )


def overhead_question(f: Facts) -> Number:
    return Number(
        id="overhead",
        axis="reliability",
        level="senior",
        ask=(
            "What share of the time do these saves take, in per cent, at "
            f"{show.bytes_per_s(f.store_bytes_per_s)} and every "
            f"{show.seconds(f.save_every_s)}, while training waits?"
        ),
        expected=f.overhead,
        unit="%",
        scale=0.01,
        within=1.09,
        slips=(
            Slip(
                value=f.document_overhead,
                says="That is the document's, for the weights alone.",
                within=1.05,
            ),
            Slip(
                value=8 * f.save_s / (f.save_every_s + 8 * f.save_s),
                says="Bits for bytes: the store is in bytes a second.",
                within=1.03,
            ),
        ),
        hints=(
            "Seconds of a save over seconds between saves.",
            "`save / (interval + save)`.",
            (
                f"`{show.size(f.save_bytes)} / {show.bytes_per_s(f.store_bytes_per_s)}` = "
                f"{show.seconds(f.save_s)}"
            ),
        ),
        worked=(
            f"{show.seconds(f.save_s)} a save, {show.share(f.overhead)} of the time; the "
            f"document says {show.share(f.document_overhead)}. At one failure in "
            f"{show.seconds(f.mtbf_s)} it also saves far too often: Young would wait "
            f"{show.seconds(f.interval_s)}."
        ),
        takeaway=(
            "The third fault hides in a small percentage: seven times the bytes make "
            f"{show.share(f.document_overhead)} of the time {show.share(f.overhead)}."
        ),
    )


def overhead_note(f: Facts) -> str:
    return (
        f"The store of Llama 3's cluster writes {show.bytes_per_s(f.tectonic_bytes_per_s)} "
        f"sustained: this one is {f.store_ratio:.0f} times slower, and that is what the "
        "document should have been worried about."
    )


def interval_question(f: Facts) -> Number:
    return Number(
        id="interval",
        axis="reliability",
        level="senior",
        ask="How often would you save with that store, in minutes?",
        expected=f.interval_s,
        unit="min",
        scale=60.0,
        within=1.1,
        slips=(
            Slip(
                value=float((f.save_s * f.mtbf_s) ** 0.5),
                says="A factor of two is missing under the root.",
                within=1.03,
            ),
            Slip(
                value=float((2 * f.document_save_s * f.mtbf_s) ** 0.5),
                says=(
                    f"With the document's {show.seconds(f.document_save_s)} a save; use the whole "
                    "state."
                ),
                within=1.03,
            ),
        ),
        hints=(
            "Balance what saves cost with what a failure loses.",
            "`sqrt(2 · save · MTBF)`.",
            f"`sqrt(2 · {show.seconds(f.save_s)} · {show.seconds(f.mtbf_s)})`",
        ),
        worked=(
            f"`sqrt(2 · {show.seconds(f.save_s)} · {show.seconds(f.mtbf_s)})` = "
            f"{show.seconds(f.interval_s)}. Better: copy to host memory and write behind the "
            "training, after which the interval hardly matters."
        ),
        takeaway="A thousand devices fail seldom; the interval follows the fleet, not a habit.",
    )


def faults_question(f: Facts) -> Choice:
    return Choice(
        id="faults",
        axis="verification",
        level="senior",
        minutes=4,
        ask="So: which lines are planted faults? (Not the lines that only inherit one.)",
        expected=tuple(f.real),
        several=True,
        options=(
            Option(key="a", text="compute", says="It is right: six FLOP per parameter and token."),
            Option(key="b", text="time", says="The peak is the sparse one."),
            Option(key="c", text="layout", says="Tensor parallelism leaves the node."),
            Option(
                key="d",
                text="bubble",
                says=(
                    "`(p - 1)/(m + p - 1)` of the whole step, as it should be; and nothing "
                    "is recomputed since nothing has to be."
                ),
            ),
            Option(key="e", text="network", says="Only gradients cross, hidden."),
            Option(key="f", text="checkpoints", says="Weights only; the optimizer is missing."),
            Option(key="g", text="failures", says="The published rate, scaled by devices: right."),
            Option(key="h", text="cost", says="It only inherits the days of line b."),
        ),
        hints=(
            "Go through the lines again with your own numbers.",
            "Three of them are wrong in themselves.",
            "One in speed, one in layout, one in reliability.",
        ),
        worked=(
            "b divides by the sparse peak, c runs tensor parallelism across nodes, f saves "
            "weights only. h is wrong because b is. a, d, e and g are sound."
        ),
        takeaway=(
            "Separate what is wrong from what inherits it: the author has to fix three "
            "lines, not five."
        ),
    )


def faults_note(f: Facts) -> str:
    return (
        "What each is worth, the rest as it stands: sparse for dense, a factor of two in days; "
        f"tensor across nodes, {f.tp_cost:.2f} times the step; saves of weights only, "
        f"{show.share(f.overhead)} instead of {show.share(f.document_overhead)}, and a run that "
        "cannot resume."
    )


def plan_question(f: Facts) -> Plan:
    def outside_the_node(trial: Assessment, best: Assessment) -> str:
        return (
            f"That still crosses the node with tensor parallelism: {show.seconds(trial.step_s)} a "
            f"step, the best takes {show.seconds(best.step_s)}."
        )

    def idle_stages(trial: Assessment, best: Assessment) -> str:
        return (
            f"Inside the node, good; but {show.share(trial.bubble_fraction)} of the step is idle "
            f"and eight ranks reduce where fewer would do: {show.seconds(trial.step_s)} against "
            f"{show.seconds(best.step_s)}."
        )

    return Plan(
        id="plan",
        axis="parallelism",
        level="staff",
        minutes=5,
        ask=(
            f"Give the author a better plan for the same {f.devices:,} devices, within a "
            "tenth of the best step."
        ),
        design=f.open_design,
        names=("tp", "pp", "vpp", "micro_batch"),
        slips=(
            PlanSlip(
                example={
                    "tp": 16,
                    "pp": 4,
                    "vpp": 1,
                    "cp": 1,
                    "micro_batch": 1,
                    "recompute": "none",
                },
                says=outside_the_node,
                at_least={"tp": 9},
            ),
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
            "Tensor parallelism inside the node, and no more of it than memory asks for.",
            "Interleave what is left of the bubble.",
            f"Micro-batch 1; {f.layers} layers divide by stages times chunks.",
        ),
        worked=(
            f"The kit's best runs at MFU {show.share(f.best.mfu)}, {show.days(f.best.days)}; "
            f"the document's layout at {show.share(f.stated.mfu)} takes "
            f"{show.days(f.stated.days)}."
        ),
        takeaway=(
            "Fix the layout and most of the second half of the time comes back; the first "
            "half was never there."
        ),
    )


def needed_question(f: Facts) -> Number:
    return Number(
        id="needed",
        axis="cost",
        level="staff",
        ask=(
            f"A sound plan takes {show.days(f.best.days)} on these {f.devices:,} devices, by "
            f"the kit. How many devices does the deadline of {f.deadline_days} days take?"
        ),
        expected=f.deadline_devices,
        unit="devices",
        within=1.12,
        slips=(
            Slip(
                value=f.deadline_devices_document,
                says="That trusts the document's days.",
                within=1.05,
            ),
            Slip(
                value=f.deadline_devices_stated,
                says="That is with the document's layout; yours is faster.",
                within=1.05,
            ),
        ),
        hints=(
            "Days scale as one over devices, as long as the batch feeds them.",
            "`devices · days / deadline`.",
            f"`{f.devices:,} · {show.days(f.best.days)} / {f.deadline_days}`",
        ),
        worked=(
            f"`{f.devices:,} · {show.days(f.best.days)} / {f.deadline_days}` = "
            f"{f.deadline_devices:,.0f}, a little more in truth since the batch stays and the "
            f"bubble grows. The document would have bought {f.devices:,}, and found out on day "
            f"{f.deadline_days}."
        ),
        takeaway="The finding of the review is a number of devices, not a list of errors.",
    )


def needed_note(f: Facts) -> str:
    return (
        f"At the price of line h that is {show.usd(f.best.cost_usd)} for the run however many "
        "devices share it; the date costs devices, not device-hours, as long as they stay busy."
    )


def comment_question(f: Facts) -> Explain:
    return Explain(
        id="comment",
        axis="telling",
        level="staff",
        minutes=4,
        ask=(
            "Write the review: five or six lines that the author can act on and the director "
            "can read."
        ),
        points=(
            Point(
                says="opens with the verdict: the date does not hold, or not on these devices",
                words=(
                    r"\b(not? (meet|hold|make)|does not|cannot|misses?|late|twice|more devices"
                    r"|verdict)",
                ),
            ),
            Point(says="peak: dense, not sparse; twice the days", words=(r"\b(dense|spars)",)),
            Point(says="layout: tensor parallelism inside the node", words=(r"\b(tensor|tp)\b",)),
            Point(
                says="checkpoints: optimizer states; asynchronous or less often",
                words=(r"\b(optimi[sz]er|adam|states|14 bytes|checkpoint)",),
            ),
            Point(says="says what is sound", words=(r"\b(sound|fine|correct|right|ok|agree)\b",)),
            Point(
                says="asks for a short measured run before the order",
                words=(r"\b(measure|sweep|benchmark|test run|trial)",),
            ),
        ),
        model=(
            f"The date does not hold: {show.days(run_days(f.best))} on {f.devices:,} devices at "
            f"best, so {f.deadline_days} days take about {f.deadline_devices:,.0f} devices. "
            "Line b divides by the sparse peak; the dense one doubles the days. Line c: keep "
            f"tensor parallelism inside the node, {f.tp_cost:.2f} times as fast, and memory has "
            f"room. Line f: a checkpoint is {show.size(f.save_bytes)} with the optimizer states; "
            "save asynchronously. Compute, bubble, network and failures are sound. Measure a "
            "hundred steps on 64 nodes before ordering."
        ),
        hints=(
            "Verdict first.",
            "Each finding: line, what is wrong, what it is worth, what to do.",
            "What is sound deserves a line as well.",
        ),
        worked=(
            "Verdict and consequence first, then the findings in order of money, each with "
            "its number and a fix, then what is sound, then what should be measured before "
            "ordering."
        ),
        takeaway=(
            "A review that only lists faults is hard to act on: say what it costs and what to do."
        ),
    )


BOOK = Walkthrough(
    number="07",
    name="review",
    title="Review: a plan with planted faults",
    minutes=55,
    book=Facts,
    asks=(
        how_question,
        flops_question,
        implied_question,
        days_question,
        traffic_question,
        across_question,
        states_question,
        spine_question,
        save_question,
        overhead_question,
        interval_question,
        faults_question,
        plan_question,
        needed_question,
        comment_question,
    ),
)
