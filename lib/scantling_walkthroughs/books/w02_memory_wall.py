"""Beat the memory wall: a 70B model on 64 devices, byte by byte: state, sharding, activations, what
is in flight, logits, what a card really has."""

from functools import cached_property

from scantling import Assessment, assess
from scantling.base import show
from scantling.base.records import record
from scantling.catalogue.models.shape import parameters
from scantling.design.design import Design
from scantling.physics import pipeline

from .. import measured
from ..measured import Run
from ..question import (
    KEPT,
    SENT,
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
from .shared_sums import DesignFacts


@record
class Shape:
    """A model of a paper, and the length of its sequences in tokens."""

    layers: int
    hidden: int
    heads: int
    seq_len: int


@record
class Sharded:
    """Bytes of weights, gradients and optimizer per device."""

    zero1: float
    zero2: float
    zero3: float


def sharded_bytes(params: float, ways: int, gradients: int = 2) -> Sharded:
    """Bytes per device of 16-bit weights, gradients of 2 or 4 bytes and 12 bytes of Adam and
    master: zero1, zero2, zero3; ZeRO's own count has 16 bytes a parameter."""
    return Sharded(
        zero1=(2 + gradients) * params + 12 * params / ways,
        zero2=2 * params + (gradients + 12) * params / ways,
        zero3=(2 + gradients + 12) * params / ways,
    )


def layer_bytes(shape: Shape, scores: bool = True) -> float:
    """Activations of a layer for one sequence [bytes]: s h (34 + 5 a s / h), without the scores
    34 s h (Korthikanti et al. 2022, equation 1)."""
    s, h, a = shape.seq_len, shape.hidden, shape.heads
    return s * h * (34 + (5 * a * s / h if scores else 0))


class Facts(DesignFacts):
    """The numbers of the book, each worked out when it is first asked for, with its unit."""

    devices = 64  # devices
    seq_len = 8192  # tokens
    global_batch = 256  # sequences
    smi_mib = 81_559  # MiB
    gpt3 = Shape(layers=96, hidden=12_288, heads=96, seq_len=2048)
    mtnlg = Shape(layers=105, hidden=20_480, heads=128, seq_len=2048)
    recompute_more = 1 / 3  # share

    @cached_property
    def design(self) -> Design:
        return Design.from_data(
            {
                "name": "Llama 3.1 70B on 64 H100",
                "model": "llama-3.1-70b",
                "cluster": {
                    "accelerator": "h100-sxm",
                    "devices": self.devices,
                    "devices_per_node": 8,
                    "scale_out": "ib-ndr",
                },
                "job": {
                    "tokens": 1e12,
                    "seq_len": self.seq_len,
                    "global_batch": self.global_batch,
                    "precision": "bf16",
                },
                "plan": {"offload": "none"},
            }
        )

    @cached_property
    def piped(self) -> Assessment:
        """The best plan with tensor-parallel 4 and 8 stages."""
        return assess(self.design.change(plan={"tp": 4, "pp": 8, "dp": 2}))

    @cached_property
    def tight_design(self) -> Design:
        """The plan of the question as the kit has it, recompute left to the search."""
        return self.design.change(plan={"tp": 8, "pp": 1, "dp": 8, "sharding": "zero1"})

    @cached_property
    def everything_again(self) -> Design:
        return self.design.change(
            plan={
                "tp": 8,
                "pp": 4,
                "vpp": 1,
                "cp": 1,
                "dp": 2,
                "sharding": "zero1",
                "micro_batch": 1,
                "recompute": "full",
            }
        )

    @cached_property
    def tight(self) -> Assessment:
        return assess(self.tight_design)

    @cached_property
    def recompute_pair(self) -> tuple[Run, ...]:
        return measured.runs("korthikanti-t5-175b-full", "korthikanti-t5-175b-seqsel")

    @cached_property
    def measured(self) -> tuple[Run, ...]:
        return measured.peaks(
            "bloom-002",
            "simumax-b200-01",
            "simumax-b200-03",
            "titan2412-01",
            "internevo-mem-7B-n3-tp1pp1fsdp",
        )

    @cached_property
    def context_answer(self) -> str:
        """Key of the option that `context_most` makes right."""
        return {"activations": "b", "optimizer": "c", "weights": "d"}.get(self.context_most, "a")

    @cached_property
    def usable(self) -> float:  # bytes
        return self.chip.hbm_usable_bytes

    @cached_property
    def weights(self) -> float:  # bytes
        return 2 * self.params

    @cached_property
    def result_share(self) -> float:  # share
        return self.result.memory_bytes["total"] / self.result.memory_bytes["capacity"]

    @cached_property
    def oom_allowed(self) -> float:  # share
        return self.result.resolved.max_oom_probability

    @cached_property
    def state_zero1(self) -> float:
        """Weights and fp32 gradients over tp 8; Adam and master over tp 8 and dp 8. [bytes]"""
        return self.params * (6 / 8 + 12 / 64)

    @cached_property
    def recomputed(self) -> float:  # ratio
        return float(self.tight.plan["recompute_layers"] / self.model.layers)

    @cached_property
    def layer(self) -> float:  # bytes
        return layer_bytes(self.gpt3)

    @cached_property
    def saved_gpt3(self) -> float:  # share
        return 1 - self.layer_flash / self.layer

    @cached_property
    def all_layers(self) -> float:  # bytes
        return self.layer * self.gpt3.layers

    @cached_property
    def logits(self) -> float:  # bytes
        return self.seq_len * self.model.vocab * 4.0

    @cached_property
    def offload_bytes(self) -> float:
        """Per device and step, states sharded over all 64: fp32 gradients down, bf16 weights up.
        [bytes]"""
        return self.params / 64 * (4 + 2)

    @cached_property
    def offload_s(self) -> float:  # s
        return self.offload_bytes / self.chip.host_link_bytes_per_s

    @cached_property
    def params(self) -> float:  # parameters
        return float(parameters(self.model).total)

    @cached_property
    def layer_flash(self) -> float:  # bytes
        return layer_bytes(self.gpt3, scores=False)

    @cached_property
    def saved_mtnlg(self) -> float:  # share
        return 1 - layer_bytes(self.mtnlg, scores=False) / layer_bytes(self.mtnlg)

    @cached_property
    def smi_bytes(self) -> int:  # bytes
        return self.smi_mib * 2**20

    @cached_property
    def sharded(self) -> Sharded:
        """18 bytes a parameter, 64 ways."""
        return sharded_bytes(self.params, 64, 4)

    @cached_property
    def first_stage_ratio(self) -> float:
        """Activations of the first stage at pp 8 over those at pp 4, the layers the same in all.
        [ratio]"""
        return float(
            pipeline.in_flight("1f1b", 8, 1, 128, stage=0)
            / 8
            / (pipeline.in_flight("1f1b", 4, 1, 128, stage=0) / 4)
        )

    @cached_property
    def interleaved_more(self) -> float:  # share
        return float(
            pipeline.in_flight("interleaved", 8, 10, 128) / pipeline.in_flight("1f1b", 8, 1, 128)
            - 1
        )

    @cached_property
    def context_most(self) -> str:
        return max(self.context_parts, key=self.context_parts.__getitem__)

    @cached_property
    def first_half_free(self) -> str:
        """Key of the first sharding that leaves half a device free."""
        if self.sharded.zero1 < self.half:
            return "a"
        if self.sharded.zero2 < self.half:
            return "b"
        return "c" if self.sharded.zero3 < self.half else "d"

    @cached_property
    def first_stage_answer(self) -> str:
        if abs(self.first_stage_ratio - 1) < 0.01:
            return "b"
        return "a" if self.first_stage_ratio < 1 else "c"

    @cached_property
    def contexts(self) -> list[tuple[int, Assessment]]:
        """(sequence length, memory of the fullest device by part) for the plan with everything
        recomputed, the tokens of a batch kept."""
        rows = []
        for times in (1, 2, 4, 8, 16):
            length = self.seq_len * times
            job = {"seq_len": length, "global_batch": self.global_batch // times}
            rows.append((length, assess(self.everything_again.change(job=job))))
        return rows

    @cached_property
    def context_parts(self) -> dict[str, float]:
        first, last = (self.contexts[at][1].memory_bytes for at in (0, -1))
        parts = ("weights", "gradients", "optimizer", "activations")
        return {part: last[part] / first[part] for part in parts}


# ---------------------------------------------------------------- questions


def card_question(f: Facts) -> Number:
    return Number(
        id="card",
        axis="memory",
        level="mid",
        minutes=2,
        ask="`nvidia-smi` says 81,559 MiB. How many GB, of 10⁹ bytes, is that?",
        expected=f.smi_bytes,
        unit="GB",
        scale=1e9,
        within=1.005,
        slips=(
            Slip(
                value=f.smi_mib * 1e6,
                says="That reads MiB as MB: a MiB is 1,048,576 bytes.",
                within=1.005,
            ),
            Slip(
                value=f.smi_mib * 1_048_576 / 1.073741824,
                says="Those are GiB. GB are asked.",
                within=1.005,
            ),
            Slip(value=8e10, says="That is the name on the box. The card has more.", within=1.005),
        ),
        hints=("MiB are powers of two.", "`MiB · 2²⁰ / 10⁹`", "81,559 · 1,048,576"),
        worked=(
            f"{show.size(f.smi_bytes)}. After the driver's own share a program gets about "
            f"{show.size(f.usable)}: more than the 80 on the box, which are GiB."
        ),
        takeaway=(
            "Keep capacity in bytes. Mixing GB and GiB is worth seven per cent of a card, as "
            "much as the slack of many plans that ran."
        ),
    )


def state_question(f: Facts) -> Number:
    return Number(
        id="state",
        axis="memory",
        level="senior",
        ask=(
            "70B on tensor-parallel 8 and data-parallel 8, optimizer states sharded over the "
            "data-parallel ranks (ZeRO-1), gradients in fp32. How many GB of weights, "
            "gradients and Adam per device?"
        ),
        expected=f.state_zero1,
        unit="GB",
        scale=1e9,
        within=1.04,
        made_of=(KEPT,),
        slips=(
            Slip(
                value=f.params * 18 / 8,
                says=(
                    "Adam's 12 bytes are sharded over data-parallel ranks as well: they are "
                    "divided by 64."
                ),
            ),
            Slip(
                value=f.params * 18 / 64,
                says=(
                    "That is ZeRO-3: weights and gradients are whole on every data-parallel "
                    "rank here."
                ),
            ),
            Slip(
                value=f.params * 0.6875,
                says="That has gradients in 2 bytes. They are accumulated in fp32 here.",
            ),
            Slip(
                value=f.params * 7.5,
                says="Tensor parallelism is missing: it divides everything by 8.",
            ),
        ),
        hints=(
            "Which bytes are divided by 8, and which by 64?",
            "`(2 + 4) · N / 8 + (4 + 4 + 4) · N / 64`",
            f"N = {show.params(f.params)}",
        ),
        worked=(
            "Weights 2 and gradients 4 bytes over tp 8; master copy and two moments, 12 "
            f"bytes, over tp · dp = 64: {show.size(f.state_zero1)} of {show.size(f.usable)}, "
            "before any activation."
        ),
        takeaway=(
            "ZeRO-1 shards the largest part and leaves the two that are used every "
            "micro-batch whole. It is nearly free in traffic, and often not enough."
        ),
    )


def state_note(f: Facts) -> str:
    return f"It fits only because the search recomputes {show.share(f.recomputed)} of the layers."


def sharding_question(f: Facts) -> Choice:
    return Choice(
        id="sharding",
        axis="memory",
        level="senior",
        ask=(
            "No tensor parallelism now, 64 data-parallel ranks, 18 bytes a parameter. Which "
            "is the first that leaves half of a device for activations?"
        ),
        expected=f.first_half_free,
        options=(
            Option(
                key="a",
                text="ZeRO-1: optimizer states sharded",
                says=(
                    "Weights and gradients stay whole on each device: "
                    f"{show.size(f.sharded.zero1)}."
                ),
            ),
            Option(
                key="b",
                text="ZeRO-2: gradients too",
                says=(
                    f"The weights alone are {show.size(f.weights)} on each device; in all it "
                    f"is {show.size(f.sharded.zero2)}."
                ),
            ),
            Option(
                key="c", text="ZeRO-3: weights too", says=f"{show.size(f.sharded.zero3)} a device."
            ),
            Option(
                key="d",
                text="None of them: it needs tensor parallelism",
                says=(f"ZeRO-3 holds {show.size(f.sharded.zero3)} a device, less than half of it."),
            ),
        ),
        hints=(
            "Compute each: which bytes stay whole, which are divided by 64?",
            "ZeRO-1: `6N + 12N/64`; ZeRO-2: `2N + 16N/64`; ZeRO-3: `18N/64`.",
            f"Half a device is {show.size(f.half)}.",
        ),
        worked=(
            f"ZeRO-1 {show.size(f.sharded.zero1)}, ZeRO-2 {show.size(f.sharded.zero2)}, "
            f"ZeRO-3 {show.size(f.sharded.zero3)}."
        ),
        takeaway=(
            "Below ZeRO-3 every rank holds the whole model's weights; a model larger than a "
            "card needs ZeRO-3, or a second axis. ZeRO-3 pays in traffic: the weights cross "
            "the network for each micro-batch."
        ),
    )


def layer_question(f: Facts) -> Number:
    return Number(
        id="layer",
        axis="memory",
        level="senior",
        minutes=4,
        ask=(
            "Activations, the classic case: GPT-3 (hidden 12,288, 96 heads, sequences of "
            "2,048), one sequence, no parallelism, 16 bit, scores kept. How many GB does "
            "**one layer** keep for the backward pass?"
        ),
        expected=f.layer,
        unit="GB",
        scale=1e9,
        made_of=(KEPT,),
        slips=(
            Slip(
                value=f.layer_flash,
                says=(
                    "Without the scores: `5·a·s/h` is missing. That is what a fused "
                    "attention kernel leaves."
                ),
            ),
            Slip(
                value=f.layer / 2,
                says=(
                    "The 34 already counts bytes, not values: do not halve it. (Or a factor "
                    "two went missing elsewhere.)"
                ),
            ),
            Slip(value=f.all_layers, says="That is the whole model. One layer is asked."),
            Slip(
                value=f.layer * 2, says="34 and 5 are bytes already; two bytes a value are in them."
            ),
        ),
        hints=(
            "Some terms go with s·h, some with s²·a.",
            "`s·b·h · (34 + 5·a·s/h)`",
            "`5·a·s/h` is 80.",
        ),
        worked=(
            f"`2,048 · 12,288 · (34 + 80)` = {show.size(f.layer)} a layer; 96 layers make "
            f"{show.size(f.all_layers)} for a single sequence."
        ),
        takeaway=(
            "Bytes, not parameters: activations know tokens, width and heads, and nothing of "
            "the optimizer. For a while they were the larger half of training memory."
        ),
    )


def scores_question(f: Facts) -> Number:
    return Number(
        id="scores",
        axis="memory",
        level="senior",
        ask=(
            "Twist: MT-NLG 530B (hidden 20,480, 128 heads, the same length). Recompute only "
            "the attention core, or fuse it: which share of the layer's activations, in per "
            "cent, is gone?"
        ),
        expected=f.saved_mtnlg,
        unit="%",
        scale=0.01,
        within=1.03,
        slips=(
            Slip(
                value=f.saved_gpt3,
                says="That is GPT-3's share. MT-NLG is wider for its heads.",
                within=1.02,
            ),
            Slip(
                value=1.8823529411764706,
                says="That compares with what is left. The share is of all that was kept.",
            ),
            Slip(value=0.3469387755102041, says="That is what remains."),
        ),
        hints=(
            "What is the term in `a·s/h` against the whole?",
            "`5as/h / (34 + 5as/h)`",
            "`5as/h` is 64 here.",
        ),
        worked=(
            f"`64 / (34 + 64)` = {show.share(f.saved_mtnlg)}; for GPT-3 it was "
            f"{show.share(f.saved_gpt3)}."
        ),
        takeaway=(
            "Drop what is large and cheap to redo. The scores are the largest piece and take "
            "few FLOP to make again: a fused kernel does it for nothing, and the square of "
            "the length is gone from memory."
        ),
    )


def flight_question(f: Facts) -> Choice:
    return Choice(
        id="flight",
        axis="memory",
        level="staff",
        ask=(
            "A pipeline of 8 stages instead of 4, 1F1B, the same model and micro-batch. What "
            "becomes of the activations on the **first** stage?"
        ),
        expected=f.first_stage_answer,
        options=(
            Option(
                key="a",
                text="They halve: each stage has half the layers.",
                says=(
                    "Each micro-batch leaves half as much, but twice as many are in flight "
                    "before the first backward pass reaches this stage."
                ),
            ),
            Option(
                key="b",
                text="They stay as they are.",
                says="Half the layers times twice the micro-batches.",
            ),
            Option(
                key="c",
                text="They double: twice the micro-batches are in flight.",
                says="Twice the micro-batches, each with half the layers.",
            ),
        ),
        hints=(
            ("Each stage has half as many layers. And how many micro-batches are in flight?"),
            "The first stage holds p micro-batches of layers / p each.",
            "4 · L/4 against 8 · L/8.",
        ),
        worked=(
            "Half the layers, twice the micro-batches in flight: the first stage holds "
            f"{f.first_stage_ratio:.2f} times what it held. The last stage holds one "
            "micro-batch, so its share does fall."
        ),
        takeaway=(
            "A deeper pipeline divides states, not the activations of its first stage. When "
            "activations are the wall, more stages do not move it: recompute, or split the "
            "sequence."
        ),
    )


def interleaved_question(f: Facts) -> Number:
    return Number(
        id="interleaved",
        axis="memory",
        level="staff",
        ask=(
            "And interleaved, with 10 model parts on each of 8 devices: how many per cent "
            "more than plain 1F1B does the first device hold?"
        ),
        expected=f.interleaved_more,
        unit="%",
        scale=0.01,
        within=1.08,
        slips=(
            Slip(
                value=0.875,
                says=(
                    "That divides by the stages alone: with v parts the extra warm-up is v "
                    "times finer."
                ),
            ),
            Slip(
                value=10.0,
                says=(
                    "The parts divide the micro-batch's layers as well: v times the passes, "
                    "each of 1/v."
                ),
            ),
        ),
        hints=(
            "The warm-up is longer, counted in parts.",
            "`1 + (p − 1) / (p · v)` times as much.",
            "p = 8, v = 10.",
        ),
        worked=f"`(8 − 1) / (8 · 10)` = {show.share(f.interleaved_more)} more.",
        takeaway=(
            "Interleaving buys bubble with a few per cent of memory and more messages: a "
            "good trade once activations fit at all."
        ),
    )


def recompute_question(f: Facts) -> Number:
    return Number(
        id="recompute",
        axis="memory",
        level="senior",
        ask=(
            "Recompute everything. If the step were all matrix products, how many per cent "
            "longer would it take?"
        ),
        expected=f.recompute_more,
        unit="%",
        scale=0.01,
        within=1.06,
        slips=(
            Slip(
                value=0.25,
                says=(
                    "That is the share of the longer step. Against the step as it was it is more."
                ),
            ),
            Slip(value=0.5, says="The forward pass against the backward pass: the step has both."),
            Slip(
                value=1.0,
                says=(
                    "That doubles the step: only the forward pass, a third of it, is done twice."
                ),
            ),
        ),
        hints=(
            "One forward pass is done twice.",
            "Forward 1, backward 2: what is one more forward?",
            "`4 / 3`",
        ),
        worked=f"Three passes' worth becomes four: {show.share(f.recompute_more)} more.",
        takeaway=(
            "A third more time for one layer's input a layer. In practice recompute a few "
            "layers, or the cheap pieces: memory is bought by the layer, not all or nothing."
        ),
    )


def logits_question(f: Facts) -> Number:
    return Number(
        id="logits",
        axis="memory",
        level="senior",
        ask=(
            "The head: one sequence of 8,192 and a vocabulary of 128,256, without tensor "
            "parallelism. How many GB is one fp32 copy of the logits?"
        ),
        expected=f.logits,
        unit="GB",
        scale=1e9,
        within=1.04,
        made_of=(KEPT,),
        slips=(
            Slip(value=f.logits / 2, says="That is 16 bit. The loss is taken in fp32."),
            Slip(
                value=f.seq_len * (f.model.hidden * 4),
                says=(
                    "That has hidden values per token; logits have one per word of the vocabulary."
                ),
            ),
        ),
        hints=("One value per token and word.", "`s · V · 4` bytes.", "8,192 · 128,256 · 4"),
        worked=(
            f"{show.size(f.logits)} for a copy, and a plain loss keeps more than one of them. "
            "It sits on the last stage, for a moment, on top of everything."
        ),
        takeaway=(
            "Peaks have a place and a moment: the last stage at the loss. Splitting the "
            "vocabulary over tensor-parallel ranks, or computing the loss in pieces, takes "
            "it away."
        ),
    )


def plan_question(f: Facts) -> Plan:
    def outside_the_node(trial: Assessment, best: Assessment) -> str:
        return (
            f"tp {trial.plan['tp']} spans two nodes: "
            f"{show.seconds(trial.step_breakdown_s['tp'])} of exposed tensor-parallel time in "
            f"a step of {show.seconds(trial.step_s)}."
        )

    def whole_weights(trial: Assessment, best: Assessment) -> str:
        return (
            "Every device would hold the whole model's weights: "
            f"{show.size(trial.memory_bytes['total'])} against "
            f"{show.size(trial.memory_bytes['capacity'])}. Shard the weights, or split the model."
        )

    def states_first(trial: Assessment, best: Assessment) -> str:
        return (
            f"States take {show.size(f.state_zero1)} of each device, so nearly every "
            f"activation has to be recomputed: {show.seconds(trial.step_s)} a step against "
            f"{show.seconds(best.step_s)}."
        )

    return Plan(
        id="plan",
        axis="parallelism",
        level="staff",
        minutes=6,
        ask=(
            "Now fit 70B on the 64 devices, nothing of it on the host, with a batch of 256 "
            "sequences of 8,192: `tp`, `pp`, `dp`, and what else you like. Within a tenth of "
            "the best step."
        ),
        design=f.design,
        names=("tp", "pp", "dp"),
        slips=(
            PlanSlip(
                example={"tp": 16, "pp": 1, "dp": 4}, says=outside_the_node, at_least={"tp": 9}
            ),
            PlanSlip(
                example={"tp": 1, "pp": 1, "dp": 64, "sharding": "zero1"},
                says=whole_weights,
                at_most={"tp": 1, "pp": 1},
                among={"sharding": ["none", "zero1", "zero2"]},
            ),
            PlanSlip(
                example={"tp": 8, "pp": 1, "dp": 8, "sharding": "zero1"},
                says=states_first,
                among={"tp": [8], "pp": [1], "sharding": [None, "none", "zero1"]},
            ),
        ),
        hints=(
            "What must shrink: states, or activations?",
            (
                "Stages divide states; tensor parallelism divides both; full recompute "
                "divides activations and costs a third."
            ),
            "Try tp 4 with pp 4 or 8 and little dp, or ZeRO-3 with little tp.",
        ),
        worked=(
            "Two kinds lie close together. Stages: tp 4 · pp 8 leaves "
            f"{f.piped.plan['grad_accum']} micro-batches a replica, so the bubble is "
            f"{show.share(f.piped.bubble_fraction)} and next to nothing is recomputed: "
            f"{show.seconds(f.piped.step_s)}. ZeRO-3: no bubble and little tensor-parallel "
            f"traffic, but {show.seconds(f.result.step_breakdown_s['recompute'])} of recompute and "
            f"{show.seconds(f.result.step_breakdown_s['dp'])} that wait for weights: "
            f"{show.seconds(f.result.step_s)}, and the plainer plan."
        ),
        takeaway=(
            "With many micro-batches per replica stages cost hardly any bubble, and on few "
            "devices ZeRO-3 hardly any traffic. On a larger fleet the same batch gives fewer "
            "micro-batches and less compute to hide behind, and both turn dear."
        ),
    )


def offload_question(f: Facts) -> Number:
    return Number(
        id="offload",
        axis="communication",
        level="staff",
        ask=(
            "Adam on the host instead, states spread over all 64 devices: each sends its "
            "fp32 gradients down and takes bf16 weights back, over a host link of "
            f"{show.bytes_per_s(f.chip.host_link_bytes_per_s)}. How many ms a step?"
        ),
        expected=f.offload_s,
        unit="ms",
        scale=0.001,
        within=1.08,
        made_of=(SENT,),
        slips=(
            Slip(value=f.offload_s * 64, says="Each device moves only what it owns, a 64th."),
            Slip(
                value=f.offload_s * 8,
                says="The link is in bytes already: do not turn it into bits.",
            ),
            Slip(
                value=f.offload_s * 18 / 6,
                says=("The states stay on the host: only gradients go down and weights come up."),
            ),
        ),
        hints=(
            "What each device owns, times bytes both ways.",
            "`N / 64 · (4 + 2) / link`",
            f"{show.size(f.offload_bytes)}",
        ),
        worked=(
            f"{show.size(f.offload_bytes)} over "
            f"{show.bytes_per_s(f.chip.host_link_bytes_per_s)} is "
            f"{show.seconds(f.offload_s)}, once a step of {show.seconds(f.result.step_s)}."
        ),
        takeaway=(
            "Optimizer offload is paid once a step, so a long step hides it; the host's own "
            "arithmetic is the real cost. Activations are paid every micro-batch: there the "
            "same link is a wall."
        ),
    )


def context_question(f: Facts) -> Choice:
    return Choice(
        id="context",
        axis="memory",
        level="staff",
        ask=(
            "Eight or sixteen times the context, the tokens of a batch and the plan kept. "
            "Which part of a device's memory breaks the plan first?"
        ),
        expected=f.context_answer,
        options=(
            Option(
                key="a",
                text="Gradients: there are more tokens per step.",
                says=(
                    "The batch has the same tokens, and gradients have the size of the "
                    "weights whatever the batch."
                ),
            ),
            Option(
                key="b",
                text="Activations: each micro-batch holds a longer sequence.",
                says="They are linear in the tokens of a micro-batch.",
            ),
            Option(
                key="c",
                text="Optimizer states: Adam follows every position.",
                says=("Adam has two moments per parameter, and positions are not parameters here."),
            ),
            Option(
                key="d",
                text="Weights: attention needs larger matrices.",
                says="The matrices know the width, not the length.",
            ),
        ),
        hints=(
            "What depends on the tokens of one micro-batch?",
            ("States know only parameters. What does a micro-batch of one longer sequence hold?"),
            (
                "Activations and logits are linear in the length; with fused attention "
                "nothing is quadratic in memory."
            ),
        ),
        worked=(
            f"From {f.seq_len:,} tokens to sixteen times that, activations grow "
            f"{f.context_parts['activations']:.0f} times; weights, gradients and states by "
            "nothing."
        ),
        takeaway=(
            "The context is a memory axis: once one sequence does not fit, no batch setting "
            "helps, and only context parallelism, recompute or offload divide it."
        ),
    )


def launch_question(f: Facts) -> Explain:
    return Explain(
        id="launch",
        axis="verification",
        level="staff",
        minutes=4,
        ask=(
            f"The search's best plan uses {show.share(f.result_share)} of the usable memory, "
            f"and its chance of running out is put at {show.share(f.result.oom_probability)}. "
            "Do you launch it?"
        ),
        points=(
            Point(
                says=(
                    "Names what the estimate leaves out: fragmentation, the allocator, "
                    "communication buffers."
                ),
                words=("fragment", "allocat", "buffer", "nccl", "headroom", "margin"),
            ),
            Point(
                says=(
                    "Measures the peak on every stage, not on one rank, and past the first "
                    "optimizer step."
                ),
                words=("every stage", "each stage", "per stage", "all stages", "peak"),
            ),
            Point(
                says=(
                    "Has a way back that costs little: a few layers recomputed, or a safer "
                    "plan a few per cent slower."
                ),
                words=("recompute", "fall ?back", "safer", "instead", "way back"),
            ),
        ),
        model=(
            "Not on the estimate alone: fragmentation and buffers can take more than it has "
            "for them. I run a dozen steps and read the peak on every stage, past the first "
            "optimizer step. If it is too close we recompute a few layers, which costs "
            "little."
        ),
        hints=(
            "What is in a real allocator that no formula has?",
            "Fragmentation, a late peak, another stage, another rank.",
            "Say what you measure, over how long, and what you fall back to.",
        ),
        worked=(
            "The search takes the fastest plan with a chance of at most "
            f"{show.share(f.oom_allowed)} to run out, reckoned from how far estimates lay "
            "from measured peaks: so the best plan may fill the device to "
            f"{show.share(f.result_share)}. The kit calls anything above 80 % of the usable "
            "memory tight. One published estimator (Fujii et al.) was held against 454 runs: "
            "none that it placed below that line ran out. Above it, it depends on the "
            "allocator."
        ),
        takeaway=(
            "A plan this full is launched with a measurement and a way back: the peak of "
            "every stage over the first optimizer steps, and a layer or two to recompute if "
            "it is too close."
        ),
    )


BOOK = Walkthrough(
    number="02",
    name="memory_wall",
    title="Beat the memory wall: 70B on 64 devices",
    minutes=50,
    book=Facts,
    asks=(
        card_question,
        state_question,
        sharding_question,
        layer_question,
        scores_question,
        flight_question,
        interleaved_question,
        recompute_question,
        logits_question,
        plan_question,
        offload_question,
        context_question,
        launch_question,
    ),
)
