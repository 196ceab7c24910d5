"""Beat the memory wall: a 70B model on 64 devices, byte by byte: state, sharding, activations, what
is in flight, logits, what a card really has."""

from __future__ import annotations

from functools import cached_property
from types import SimpleNamespace

from scantling.catalogue.models.shape import parameters
from scantling.physics import pipeline
from scantling.verdict.assess import assess

from ..measured import peaks, runs
from ..question import Choice, Explain, Number, Option, Plan, PlanSlip, Point, Slip, Walkthrough
from .base import DesignFacts, design

MIB = 2**20


class Facts(DesignFacts):
    """The 64 devices, the 70B model, and the GPT models of the paper that named the activation
    formula."""

    devices, seq_len, global_batch = 64, 8192, 256
    smi_mib = 81_559
    gpt3 = SimpleNamespace(layers=96, hidden=12_288, heads=96, seq_len=2048)
    mtnlg = SimpleNamespace(layers=105, hidden=20_480, heads=128, seq_len=2048)

    @cached_property
    def design(self):
        return design(
            "llama-3.1-70b",
            self.devices,
            self.global_batch,
            1e12,
            seq_len=self.seq_len,
            name="Llama 3.1 70B on 64 H100",
        )

    @cached_property
    def params(self):
        return float(parameters(self.model).total)

    @cached_property
    def usable(self):
        return self.chip.hbm_usable_bytes

    @cached_property
    def weights(self):
        return 2 * self.params

    @cached_property
    def result_share(self):
        return self.result.memory_bytes["total"] / self.result.memory_bytes["capacity"]

    # ---- what a card has
    @cached_property
    def smi_bytes(self):
        return self.smi_mib * MIB

    # ---- state
    @cached_property
    def state_zero1(self):
        """Weights and fp32 gradients over tp 8; Adam and master over tp 8 and dp 8."""
        return self.params * (6 / 8 + 12 / 64)

    @cached_property
    def tight(self):
        """The same plan as the kit has it, recompute left to the search."""
        return assess(self.design.change(plan={"tp": 8, "pp": 1, "dp": 8, "sharding": "zero1"}))

    @property
    def recomputed(self):
        return self.tight.plan["recompute_layers"] / self.model.layers

    @cached_property
    def sharded(self):
        """Bytes per device of 18 bytes a parameter, 64 ways: zero1, zero2, zero3."""
        n = self.params
        return SimpleNamespace(
            zero1=6 * n + 12 * n / 64, zero2=2 * n + 16 * n / 64, zero3=18 * n / 64
        )

    @cached_property
    def first_half_free(self):
        """Key of the first sharding that leaves half a device free."""
        for key, value in (
            ("a", self.sharded.zero1),
            ("b", self.sharded.zero2),
            ("c", self.sharded.zero3),
        ):
            if value < self.half:
                return key
        return "d"

    def zero(self, params, ways):
        """ZeRO's own count, 16 bytes a parameter."""
        return SimpleNamespace(
            zero1=4 * params + 12 * params / ways,
            zero2=2 * params + 14 * params / ways,
            zero3=16 * params / ways,
        )

    # ---- activations
    @staticmethod
    def layer_bytes(shape, scores=True, batch=1):
        """Korthikanti et al. 2022, equation 1: s b h (34 + 5 a s / h)."""
        s, h, a = shape.seq_len, shape.hidden, shape.heads
        return s * batch * h * (34 + (5 * a * s / h if scores else 0))

    @cached_property
    def layer(self):
        return self.layer_bytes(self.gpt3)

    @cached_property
    def layer_flash(self):
        return self.layer_bytes(self.gpt3, scores=False)

    @cached_property
    def saved_gpt3(self):
        return 1 - self.layer_flash / self.layer

    @cached_property
    def saved_mtnlg(self):
        return 1 - self.layer_bytes(self.mtnlg, scores=False) / self.layer_bytes(self.mtnlg)

    @cached_property
    def all_layers(self):
        return self.layer * self.gpt3.layers

    # ---- in flight
    @cached_property
    def first_stage_ratio(self):
        """Activations of the first stage at pp 8 over those at pp 4, the layers the same in all."""
        held = [float(pipeline.in_flight("1f1b", p, 1, 128, stage=0)) / p for p in (8, 4)]
        return held[0] / held[1]

    @cached_property
    def first_stage_answer(self):
        return (
            "b"
            if abs(self.first_stage_ratio - 1) < 0.01
            else "a"
            if self.first_stage_ratio < 1
            else "c"
        )

    @cached_property
    def interleaved_more(self):
        return (
            float(pipeline.in_flight("interleaved", 8, 10, 128))
            / float(pipeline.in_flight("1f1b", 8, 1, 128))
            - 1
        )

    # ---- recompute
    recompute_more = 1 / 3

    @cached_property
    def recompute_pair(self):
        return runs("korthikanti-t5-175b-full", "korthikanti-t5-175b-seqsel")

    # ---- logits
    @cached_property
    def logits(self):
        return self.seq_len * self.model.vocab * 4.0

    # ---- offload
    @cached_property
    def offload_bytes(self):
        """Per device and step, states sharded over all 64: fp32 gradients down, bf16 weights up."""
        return self.params / 64 * (4 + 2)

    @cached_property
    def offload_s(self):
        return self.offload_bytes / self.chip.host_link_bytes_per_s

    # ---- plans
    @cached_property
    def contexts(self):
        """(sequence length, memory of the fullest device by part) for the plan with everything
        recomputed, the tokens of a batch kept."""
        out = []
        for times in (1, 2, 4, 8, 16):
            changed = self.design.change(
                {
                    "job.seq_len": self.seq_len * times,
                    "job.global_batch": self.global_batch // times,
                }
            )
            out.append(
                (
                    self.seq_len * times,
                    assess(
                        changed.change(
                            plan={"tp": 8, "pp": 4, "dp": 2, "micro_batch": 1, "recompute": "full"}
                        )
                    ),
                )
            )
        return out

    @cached_property
    def context_parts(self):
        first, last = (a.memory_bytes for _, a in (self.contexts[0], self.contexts[-1]))
        return {k: last[k] / first[k] for k in ("weights", "gradients", "optimizer", "activations")}

    @cached_property
    def context_answer(self):
        grown = max(self.context_parts, key=self.context_parts.get)
        return {"activations": "b", "optimizer": "c", "weights": "d"}.get(grown, "a")

    @cached_property
    def measured(self):
        return peaks(
            "bloom-002",
            "simumax-b200-01",
            "simumax-b200-03",
            "titan2412-01",
            "internevo-mem-7B-n3-tp1pp1fsdp",
        )


QUESTIONS = (
    Number(
        "card",
        "`nvidia-smi` says 81,559 MiB. How many GB, of 10⁹ bytes, is that?",
        "memory",
        "mid",
        ("MiB are powers of two.", "`MiB · 2²⁰ / 10⁹`", "81,559 · 1,048,576"),
        (
            "{smi_bytes:bytes}. After the driver's own share a program gets about "
            "{usable:bytes}: more than the 80 on the box, which are GiB."
        ),
        (
            "Keep capacity in bytes. Mixing GB and GiB is worth seven per cent of a card, "
            "as much as the slack of many plans that ran."
        ),
        minutes=2,
        expected="smi_bytes",
        unit="GB",
        scale=1e9,
        within=1.005,
        slips=(
            Slip(
                lambda f: f.smi_mib * 1e6,
                "That reads MiB as MB: a MiB is 1,048,576 bytes.",
                within=1.005,
            ),
            Slip(
                lambda f: f.smi_mib * MIB / 1.073741824,
                "Those are GiB. GB are asked.",
                within=1.005,
            ),
            Slip(lambda f: 80e9, "That is the name on the box. The card has more.", within=1.005),
        ),
    ),
    Number(
        "state",
        (
            "70B on tensor-parallel 8 and data-parallel 8, optimizer states sharded over "
            "the data-parallel ranks (ZeRO-1), gradients in fp32. How many GB of weights, "
            "gradients and Adam per device?"
        ),
        "memory",
        "senior",
        (
            "Which bytes are divided by 8, and which by 64?",
            "`(2 + 4) · N / 8 + (4 + 4 + 4) · N / 64`",
            "N = {params:params}",
        ),
        (
            "Weights 2 and gradients 4 bytes over tp 8; master copy and two moments, 12 "
            "bytes, over tp · dp = 64: {state_zero1:bytes} of {usable:bytes}, before any "
            "activation."
        ),
        (
            "ZeRO-1 shards the largest part and leaves the two that are used every "
            "micro-batch whole. It is nearly free in traffic, and often not enough."
        ),
        expected="state_zero1",
        unit="GB",
        scale=1e9,
        within=1.04,
        slips=(
            Slip(
                lambda f: f.params * 18 / 8,
                (
                    "Adam's 12 bytes are sharded over data-parallel ranks as well: they are "
                    "divided by 64."
                ),
            ),
            Slip(
                lambda f: f.params * 18 / 64,
                "That is ZeRO-3: weights and gradients are whole on every data-parallel rank here.",
            ),
            Slip(
                lambda f: f.params * (4 / 8 + 12 / 64),
                "That has gradients in 2 bytes. They are accumulated in fp32 here.",
            ),
            Slip(
                lambda f: f.params * (6 + 12 / 8),
                "Tensor parallelism is missing: it divides everything by 8.",
            ),
        ),
    ),
    Choice(
        "sharding",
        (
            "No tensor parallelism now, 64 data-parallel ranks, 18 bytes a parameter. Which "
            "is the first that leaves half of a device for activations?"
        ),
        "memory",
        "senior",
        (
            "Compute each: which bytes stay whole, which are divided by 64?",
            "ZeRO-1: `6N + 12N/64`; ZeRO-2: `2N + 16N/64`; ZeRO-3: `18N/64`.",
            "Half a device is {half:bytes}.",
        ),
        "ZeRO-1 {sharded.zero1:bytes}, ZeRO-2 {sharded.zero2:bytes}, ZeRO-3 {sharded.zero3:bytes}.",
        (
            "Below ZeRO-3 every rank holds the whole model's weights; a model larger than a "
            "card needs ZeRO-3, or a second axis. ZeRO-3 pays in traffic: the weights cross "
            "the network for each micro-batch."
        ),
        expected="first_half_free",
        options=(
            Option(
                "a",
                "ZeRO-1: optimizer states sharded",
                "Weights and gradients stay whole on each device: {sharded.zero1:bytes}.",
            ),
            Option(
                "b",
                "ZeRO-2: gradients too",
                (
                    "The weights alone are {weights:bytes} on each device; in all it is "
                    "{sharded.zero2:bytes}."
                ),
            ),
            Option("c", "ZeRO-3: weights too", "{sharded.zero3:bytes} a device."),
            Option(
                "d",
                "None of them: it needs tensor parallelism",
                "ZeRO-3 holds {sharded.zero3:bytes} a device, less than half of it.",
            ),
        ),
    ),
    Number(
        "layer",
        (
            "Activations, the classic case: GPT-3 (hidden 12,288, 96 heads, sequences of "
            "2,048), one sequence, no parallelism, 16 bit, scores kept. How many GB does "
            "**one layer** keep for the backward pass?"
        ),
        "memory",
        "senior",
        ("Some terms go with s·h, some with s²·a.", "`s·b·h · (34 + 5·a·s/h)`", "`5·a·s/h` is 80."),
        (
            "`2,048 · 12,288 · (34 + 80)` = {layer:bytes} a layer; 96 layers make "
            "{all_layers:bytes} for a single sequence."
        ),
        (
            "Bytes, not parameters: activations know tokens, width and heads, and nothing "
            "of the optimizer. For a while they were the larger half of training memory."
        ),
        minutes=4,
        expected="layer",
        unit="GB",
        scale=1e9,
        within=1.05,
        slips=(
            Slip(
                "layer_flash",
                (
                    "Without the scores: `5·a·s/h` is missing. That is what a fused "
                    "attention kernel leaves."
                ),
            ),
            Slip(
                lambda f: f.layer / 2,
                (
                    "The 34 already counts bytes, not values: do not halve it. (Or a factor "
                    "two went missing elsewhere.)"
                ),
            ),
            Slip("all_layers", "That is the whole model. One layer is asked."),
            Slip(
                lambda f: f.layer * 2, "34 and 5 are bytes already; two bytes a value are in them."
            ),
        ),
    ),
    Number(
        "scores",
        (
            "Twist: MT-NLG 530B (hidden 20,480, 128 heads, the same length). Recompute only "
            "the attention core, or fuse it: which share of the layer's activations, in per "
            "cent, is gone?"
        ),
        "memory",
        "senior",
        (
            "What is the term in `a·s/h` against the whole?",
            "`5as/h / (34 + 5as/h)`",
            "`5as/h` is 64 here.",
        ),
        "`64 / (34 + 64)` = {saved_mtnlg:share}; for GPT-3 it was {saved_gpt3:share}.",
        (
            "Drop what is large and cheap to redo. The scores are the largest piece and "
            "take few FLOP to make again: a fused kernel does it for nothing, and the "
            "square of the length is gone from memory."
        ),
        expected="saved_mtnlg",
        unit="%",
        scale=0.01,
        within=1.03,
        slips=(
            Slip(
                "saved_gpt3", "That is GPT-3's share. MT-NLG is wider for its heads.", within=1.02
            ),
            Slip(
                lambda f: 64 / 34,
                "That compares with what is left. The share is of all that was kept.",
            ),
            Slip(lambda f: 34 / 98, "That is what remains."),
        ),
    ),
    Choice(
        "flight",
        (
            "A pipeline of 8 stages instead of 4, 1F1B, the same model and micro-batch. "
            "What becomes of the activations on the **first** stage?"
        ),
        "memory",
        "staff",
        (
            "Each stage has half as many layers. And how many micro-batches are in flight?",
            "The first stage holds p micro-batches of layers / p each.",
            "4 · L/4 against 8 · L/8.",
        ),
        (
            "Half the layers, twice the micro-batches in flight: the first stage holds "
            "{first_stage_ratio:.2f} times what it held. The last stage holds one "
            "micro-batch, so its share does fall."
        ),
        (
            "A deeper pipeline divides states, not the activations of its first stage. When "
            "activations are the wall, more stages do not move it: recompute, or split the "
            "sequence."
        ),
        expected="first_stage_answer",
        options=(
            Option(
                "a",
                "They halve: each stage has half the layers.",
                (
                    "Each micro-batch leaves half as much, but twice as many are in flight "
                    "before the first backward pass reaches this stage."
                ),
            ),
            Option("b", "They stay as they are.", "Half the layers times twice the micro-batches."),
            Option(
                "c",
                "They double: twice the micro-batches are in flight.",
                "Twice the micro-batches, each with half the layers.",
            ),
        ),
    ),
    Number(
        "interleaved",
        (
            "And interleaved, with 10 model parts on each of 8 devices: how many per cent "
            "more than plain 1F1B does the first device hold?"
        ),
        "memory",
        "staff",
        (
            "The warm-up is longer, counted in parts.",
            "`1 + (p − 1) / (p · v)` times as much.",
            "p = 8, v = 10.",
        ),
        "`(8 − 1) / (8 · 10)` = {interleaved_more:share} more.",
        (
            "Interleaving buys bubble with a few per cent of memory and more messages: a "
            "good trade once activations fit at all."
        ),
        expected="interleaved_more",
        unit="%",
        scale=0.01,
        within=1.08,
        slips=(
            Slip(
                lambda f: 7 / 8,
                (
                    "That divides by the stages alone: with v parts the extra warm-up is v "
                    "times finer."
                ),
            ),
            Slip(
                lambda f: 10.0,
                (
                    "The parts divide the micro-batch's layers as well: v times the passes, "
                    "each of 1/v."
                ),
            ),
        ),
    ),
    Number(
        "recompute",
        (
            "Recompute everything. If the step were all matrix products, how many per cent "
            "longer would it take?"
        ),
        "memory",
        "senior",
        (
            "One forward pass is done twice.",
            "Forward 1, backward 2: what is one more forward?",
            "`4 / 3`",
        ),
        "Three passes' worth becomes four: {recompute_more:share} more.",
        (
            "A third more time for one layer's input a layer. In practice recompute a few "
            "layers, or the cheap pieces: memory is bought by the layer, not all or "
            "nothing."
        ),
        expected="recompute_more",
        unit="%",
        scale=0.01,
        within=1.06,
        slips=(
            Slip(
                lambda f: 0.25,
                "That is the share of the longer step. Against the step as it was it is more.",
            ),
            Slip(lambda f: 0.5, "The forward pass against the backward pass: the step has both."),
            Slip(
                lambda f: 1.0,
                "That doubles the step: only the forward pass, a third of it, is done twice.",
            ),
        ),
    ),
    Number(
        "logits",
        (
            "The head: one sequence of 8,192 and a vocabulary of 128,256, without tensor "
            "parallelism. How many GB is one fp32 copy of the logits?"
        ),
        "memory",
        "senior",
        ("One value per token and word.", "`s · V · 4` bytes.", "8,192 · 128,256 · 4"),
        (
            "{logits:bytes} for a copy, and a plain loss keeps more than one of them. It "
            "sits on the last stage, for a moment, on top of everything."
        ),
        (
            "Peaks have a place and a moment: the last stage at the loss. Splitting the "
            "vocabulary over tensor-parallel ranks, or computing the loss in pieces, takes "
            "it away."
        ),
        expected="logits",
        unit="GB",
        scale=1e9,
        within=1.04,
        slips=(
            Slip(lambda f: f.logits / 2, "That is 16 bit. The loss is taken in fp32."),
            Slip(
                lambda f: f.seq_len * f.model.hidden * 4,
                "That has hidden values per token; logits have one per word of the vocabulary.",
            ),
        ),
    ),
    Plan(
        "plan",
        (
            "Now fit 70B on the 64 devices, with a batch of 256 sequences of 8,192: `tp`, "
            "`pp`, `dp`, and what else you like. Within a tenth of the best step."
        ),
        "parallelism",
        "staff",
        (
            "What must shrink: states, or activations?",
            (
                "Stages divide states; tensor parallelism divides both; full recompute "
                "divides activations and costs a third."
            ),
            "Try tp 4 or 8 with pp 4 or 8, and little dp.",
        ),
        (
            "With 64 devices the batch leaves many micro-batches a replica, so stages cost "
            "almost no bubble here: take pp until nothing has to be recomputed, and as "
            "little tp as that allows."
        ),
        (
            "With many micro-batches per replica, pipeline is the cheapest memory there is. "
            "On a larger fleet the same batch gives fewer of them, and the answer turns."
        ),
        minutes=6,
        design="design",
        names=("tp", "pp", "dp"),
        slips=(
            PlanSlip(
                {"tp": 16, "pp": 1, "dp": 4},
                lambda plan, a, f: plan["tp"] > 8,
                (
                    "tp {a.plan[tp]} spans two nodes: {a.step_breakdown_s[tp]:seconds} of "
                    "exposed tensor-parallel time in a step of {a.step_s:seconds}."
                ),
            ),
            PlanSlip(
                {"tp": 1, "pp": 1, "dp": 64, "sharding": "zero1"},
                lambda plan, a, f: (
                    plan["tp"] * plan["pp"] == 1
                    and plan.get("sharding", "zero3") in ("none", "zero1", "zero2")
                ),
                (
                    "Every device would hold the whole model's weights: "
                    "{a.memory_bytes[total]:bytes} against "
                    "{a.memory_bytes[capacity]:bytes}. Shard the weights, or split the "
                    "model."
                ),
            ),
            PlanSlip(
                {"tp": 8, "pp": 1, "dp": 8, "sharding": "zero1"},
                lambda plan, a, f: (
                    plan["tp"] == 8
                    and plan["pp"] == 1
                    and plan.get("sharding", "zero1") in ("none", "zero1")
                ),
                (
                    "States take {state_zero1:bytes} of each device, so nearly every "
                    "activation has to be recomputed: {a.step_s:seconds} a step against "
                    "{best.step_s:seconds}."
                ),
            ),
        ),
    ),
    Number(
        "offload",
        (
            "Adam on the host instead, states spread over all 64 devices: each sends its "
            "fp32 gradients down and takes bf16 weights back, over a host link of "
            "{chip.host_link_bytes_per_s:bytes_per_s}. How many ms a step?"
        ),
        "communication",
        "staff",
        (
            "What each device owns, times bytes both ways.",
            "`N / 64 · (4 + 2) / link`",
            "{offload_bytes:bytes}",
        ),
        (
            "{offload_bytes:bytes} over {chip.host_link_bytes_per_s:bytes_per_s} is "
            "{offload_s:seconds}, once a step of {result.step_s:seconds}."
        ),
        (
            "Optimizer offload is paid once a step, so a long step hides it; the host's own "
            "arithmetic is the real cost. Activations are paid every micro-batch: there the "
            "same link is a wall."
        ),
        expected="offload_s",
        unit="ms",
        scale=1e-3,
        within=1.08,
        slips=(
            Slip(lambda f: f.offload_s * 64, "Each device moves only what it owns, a 64th."),
            Slip(
                lambda f: f.offload_s * 8, "The link is in bytes already: do not turn it into bits."
            ),
            Slip(
                lambda f: f.offload_s * 18 / 6,
                "The states stay on the host: only gradients go down and weights come up.",
            ),
        ),
    ),
    Choice(
        "context",
        (
            "Eight or sixteen times the context, the tokens of a batch and the plan kept. "
            "Which part of a device's memory breaks the plan first?"
        ),
        "memory",
        "staff",
        (
            "What depends on the tokens of one micro-batch?",
            "States know only parameters. What does a micro-batch of one longer sequence hold?",
            (
                "Activations and logits are linear in the length; with fused attention "
                "nothing is quadratic in memory."
            ),
        ),
        (
            "From {seq_len:,} tokens to sixteen times that, activations grow "
            "{context_parts[activations]:.1f} times; weights, gradients and states by "
            "nothing."
        ),
        (
            "The context is a memory axis: once one sequence does not fit, no batch setting "
            "helps, and only context parallelism, recompute or offload divide it."
        ),
        expected="context_answer",
        options=(
            Option(
                "a",
                "Gradients: there are more tokens per step.",
                (
                    "The batch has the same tokens, and gradients have the size of the "
                    "weights whatever the batch."
                ),
            ),
            Option(
                "b",
                "Activations: each micro-batch holds a longer sequence.",
                "They are linear in the tokens of a micro-batch.",
            ),
            Option(
                "c",
                "Optimizer states: Adam follows every position.",
                "Adam has two moments per parameter, and positions are not parameters here.",
            ),
            Option(
                "d",
                "Weights: attention needs larger matrices.",
                "The matrices know the width, not the length.",
            ),
        ),
    ),
    Explain(
        "launch",
        "The search's best plan uses {result_share:share} of the usable memory. Do you launch it?",
        "verification",
        "staff",
        (
            "What is in a real allocator that no formula has?",
            "Fragmentation, a late peak, another stage, another rank.",
            "Say what you measure, over how long, and what you fall back to.",
        ),
        (
            "The kit calls anything above 80 % of the usable memory tight. One published "
            "estimator (Fujii et al.) was held against 454 runs: none that it placed below "
            "that line ran out. Above it, it depends on the allocator."
        ),
        (
            "A tight plan is launched with a measurement and a way back: the peak of every "
            "stage over the first optimizer steps, and a layer or two to recompute if it is "
            "too close."
        ),
        minutes=4,
        points=(
            Point(
                (
                    "Names what the estimate leaves out: fragmentation, the allocator, "
                    "communication buffers."
                ),
                (r"fragment", r"allocat", r"buffer", r"nccl", r"headroom", r"margin"),
            ),
            Point(
                (
                    "Measures the peak on every stage, not on one rank, and past the first "
                    "optimizer step."
                ),
                (r"every stage", r"each stage", r"per stage", r"all stages", r"peak"),
            ),
            Point(
                (
                    "Has a way back that costs little: a few layers recomputed, or a safer "
                    "plan a few per cent slower."
                ),
                (r"recompute", r"fall ?back", r"safer", r"instead", r"way back"),
            ),
        ),
        model="Not as it stands: fragmentation and buffers can take the last few per cent. I "
        "run a dozen steps and read the peak on every stage, past the first optimizer "
        "step. "
        "If it is too close we recompute a few layers, which costs little.",
    ),
)


WALKTHROUGH = Walkthrough(
    "02", "memory_wall", "Beat the memory wall: 70B on 64 devices", 50, Facts, QUESTIONS
)
