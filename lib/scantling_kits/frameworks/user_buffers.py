"""Sizes of the user buffers in which products overlap their tensor-parallel collectives: the
configurations that Megatron-Bridge has by name (training/comm_overlap.py, those of pre-training;
0.3.0 to 0.6.2 have the same), each for one generation of chips, number format and width."""

from typing import NamedTuple

from scantling.catalogue.words import Precision

from ..launch_plan import LaunchPlan
from . import megatron_core as core

EIGHT_BIT = (Precision.FP8, Precision.FP8_CURRENT, Precision.MXFP8)


class UserBuffers(NamedTuple):
    """A named configuration, by what its name says, and where it is taken."""

    chip: str  # h100: of Hopper; b200: of Blackwell and what came after it
    hidden: int  # the model's width
    tp: int
    micro_batch: int  # sequences
    seq_len: int  # tokens
    cp: str = ""  # of the name alone: recipes of 70B and 405B take one with and without it
    also_tp: int = 0  # another degree with which a recipe takes it
    formats: tuple[str, ...] = ("bf16", "fp8")  # fp8: 8 bit by tensor or by blocks of 32

    def name(self, number_format: str) -> str:
        """It in Megatron-Bridge's words."""
        return (
            f"userbuffers_{number_format}_{self.chip}_h{self.hidden}_tp{self.tp}{self.cp}"
            f"_mbs{self.micro_batch}_seqlen{self.seq_len}"
        )


CONFIGURATIONS = (
    UserBuffers("h100", hidden=8192, tp=4, micro_batch=1, seq_len=8192),
    UserBuffers("b200", hidden=8192, tp=2, micro_batch=1, seq_len=8192),
    UserBuffers("h100", hidden=16384, tp=8, cp="_cp2", micro_batch=1, seq_len=8192),
    # recipes of B300 and GB300 take it with two ranks, those of B200 and GB200 with four
    UserBuffers("b200", hidden=16384, tp=4, also_tp=2, cp="_cp2", micro_batch=1, seq_len=8192),
    UserBuffers("h100", hidden=6144, tp=2, micro_batch=2, seq_len=2048),
    UserBuffers("h100", hidden=12288, tp=4, micro_batch=1, seq_len=2048),
    UserBuffers("b200", hidden=12288, tp=4, micro_batch=1, seq_len=2048),
    UserBuffers("b200", hidden=6144, tp=2, micro_batch=1, seq_len=4096, formats=("bf16",)),
    UserBuffers("b200", hidden=18432, tp=8, micro_batch=1, seq_len=4096),
)


def name_of(launch: LaunchPlan) -> str:
    """The named configuration of a plan whose products overlap; "" where there is none for it."""
    precision = launch.phase.precision
    if not core.overlaps_tensor_products(launch) or not launch.kin.modern:
        return ""
    if precision not in (Precision.BF16, *EIGHT_BIT):
        return ""
    chip = "b200" if launch.kin.block_scales else "h100"
    number_format = "fp8" if precision in EIGHT_BIT else "bf16"
    for one in CONFIGURATIONS:
        if (
            one.chip == chip
            and number_format in one.formats
            and one.hidden == launch.model.hidden
            and launch.plan.tp in (one.tp, one.also_tp)
            and one.micro_batch == launch.plan.micro_batch
            and one.seq_len == launch.phase.seq_len
        ):
            return one.name(number_format)
    return ""


def named(launch: LaunchPlan) -> bool:
    """A plan that Megatron-Bridge has a configuration of user buffers for."""
    return name_of(launch) != ""


def default_sizes_note(launch: LaunchPlan) -> list[str]:
    """Why sizes of user buffers are left at their defaults, where products overlap."""
    if not core.overlaps_tensor_products(launch) or named(launch):
        return []
    return [
        "Products overlap with the sizes of user buffers that Transformer Engine has by default: "
        f"Megatron-Bridge has none by name for a width of {launch.model.hidden:,} with tp "
        f"{launch.plan.tp}, micro-batch {launch.plan.micro_batch} and {launch.phase.seq_len:,} "
        f"tokens in {launch.phase.precision} on {launch.kin.label} (tp_comm_overlap_cfg)."
    ]
