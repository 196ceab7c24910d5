"""Sizes of the user buffers in which products overlap their tensor-parallel collectives: the
configurations that Megatron-Bridge has by name (training/comm_overlap.py, those of pre-training;
0.3.0 to 0.6.2 have the same), each for one generation of chips, number format and width."""

from typing import NamedTuple

from scantling.catalogue.words import Precision

from ..launch_plan import LaunchPlan
from . import megatron_core as core

EIGHT_BIT = (Precision.FP8, Precision.FP8_CURRENT, Precision.MXFP8)


class UserBuffers(NamedTuple):
    """A named configuration, and where it is taken."""

    name: str  # in Megatron-Bridge's words
    block_scales: bool  # of Blackwell and what came after it; else of Hopper
    eight_bit: bool  # 8 bit by tensor or by blocks of 32; else bf16
    hidden: int  # the model's width
    tp: tuple[int, ...]  # degrees that its name or a recipe has
    micro_batch: int  # sequences
    seq_len: int  # tokens


def _both(
    stem: str, block_scales: bool, hidden: int, tp: tuple[int, ...], micro_batch: int, seq_len: int
) -> tuple[UserBuffers, UserBuffers]:
    """A configuration that there is for bf16 and for 8 bit."""
    bf16, fp8 = (
        UserBuffers(
            f"userbuffers_{word}_{stem}", block_scales, low, hidden, tp, micro_batch, seq_len
        )
        for word, low in (("bf16", False), ("fp8", True))
    )
    return bf16, fp8


CONFIGURATIONS: tuple[UserBuffers, ...] = (
    *_both("h100_h8192_tp4_mbs1_seqlen8192", False, 8192, (4,), 1, 8192),
    *_both("b200_h8192_tp2_mbs1_seqlen8192", True, 8192, (2,), 1, 8192),
    *_both("h100_h16384_tp8_cp2_mbs1_seqlen8192", False, 16384, (8,), 1, 8192),
    # recipes of B300 and GB300 take it with two ranks, those of B200 and GB200 with four
    *_both("b200_h16384_tp4_cp2_mbs1_seqlen8192", True, 16384, (2, 4), 1, 8192),
    *_both("h100_h6144_tp2_mbs2_seqlen2048", False, 6144, (2,), 2, 2048),
    *_both("h100_h12288_tp4_mbs1_seqlen2048", False, 12288, (4,), 1, 2048),
    *_both("b200_h12288_tp4_mbs1_seqlen2048", True, 12288, (4,), 1, 2048),
    UserBuffers(
        "userbuffers_bf16_b200_h6144_tp2_mbs1_seqlen4096", True, False, 6144, (2,), 1, 4096
    ),
    *_both("b200_h18432_tp8_mbs1_seqlen4096", True, 18432, (8,), 1, 4096),
)


def configuration(launch: LaunchPlan) -> UserBuffers | None:
    """The named configuration of a plan whose products overlap; None where there is none for it.
    Context parallelism is no matter: recipes of 70B and 405B take one with and without it."""
    precision = launch.phase.precision
    if not core.overlaps_tensor_products(launch):
        return None
    if not launch.kin.modern or precision not in (Precision.BF16, *EIGHT_BIT):
        return None
    for one in CONFIGURATIONS:
        if (
            one.block_scales == launch.kin.block_scales
            and one.eight_bit == (precision in EIGHT_BIT)
            and one.hidden == launch.model.hidden
            and launch.plan.tp in one.tp
            and one.micro_batch == launch.plan.micro_batch
            and one.seq_len == launch.phase.seq_len
        ):
            return one
    return None


def named(launch: LaunchPlan) -> bool:
    """A plan that Megatron-Bridge has a configuration of user buffers for."""
    return configuration(launch) is not None


def name_of(launch: LaunchPlan) -> str:
    """Its name."""
    one = configuration(launch)
    return one.name if one else ""


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
