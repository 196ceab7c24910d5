"""Beat the memory wall: a 70B model on 64 devices, byte by byte: state, sharding, activations, what
is in flight, logits, what a card really has."""

from __future__ import annotations

from functools import cached_property
from types import SimpleNamespace

from scantling import assess
from scantling.catalogue.models.shape import parameters
from scantling.physics import pipeline

from ..measured import peaks, runs
from .base import DesignFacts, design

MIB = 2**20


class Facts(DesignFacts):
    """The 64 devices, the 70B model, and the GPT models of the paper that named the activation
    formula."""

    devices, seq_len, global_batch = 64, 8192, 256
    smi_mib = 81_559
    gpt3 = SimpleNamespace(
        layers=96,
        hidden=12_288,
        heads=96,
        seq_len=2048,
    )
    mtnlg = SimpleNamespace(
        layers=105,
        hidden=20_480,
        heads=128,
        seq_len=2048,
    )

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
        return parameters(self.model).total

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
        return assess(
            self.design.change(
                plan={
                    "tp": 8,
                    "pp": 1,
                    "dp": 8,
                    "sharding": "zero1",
                }
            )
        )

    @property
    def recomputed(self):
        return self.tight.plan["recompute_layers"] / self.model.layers

    @cached_property
    def sharded(self):
        """Bytes per device of 18 bytes a parameter, 64 ways: zero1, zero2, zero3."""
        n = self.params
        return SimpleNamespace(
            zero1=6 * n + 12 * n / 64,
            zero2=2 * n + 16 * n / 64,
            zero3=18 * n / 64,
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

    def zero(
        self,
        params,
        ways,
    ):
        """ZeRO's own count, 16 bytes a parameter."""
        return SimpleNamespace(
            zero1=4 * params + 12 * params / ways,
            zero2=2 * params + 14 * params / ways,
            zero3=16 * params / ways,
        )

    # ---- activations
    @staticmethod
    def layer_bytes(
        shape,
        scores=True,
        batch=1,
    ):
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
        held = [
            pipeline.in_flight(
                "1f1b",
                p,
                1,
                128,
                stage=0,
            )
            / p
            for p in (8, 4)
        ]
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
            pipeline.in_flight(
                "interleaved",
                8,
                10,
                128,
            )
            / pipeline.in_flight(
                "1f1b",
                8,
                1,
                128,
            )
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
                            plan={
                                "tp": 8,
                                "pp": 4,
                                "dp": 2,
                                "micro_batch": 1,
                                "recompute": "full",
                            }
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
        return {
            "activations": "b",
            "optimizer": "c",
            "weights": "d",
        }.get(grown, "a")

    @cached_property
    def measured(self):
        return peaks(
            "bloom-002",
            "simumax-b200-01",
            "simumax-b200-03",
            "titan2412-01",
            "internevo-mem-7B-n3-tp1pp1fsdp",
        )
