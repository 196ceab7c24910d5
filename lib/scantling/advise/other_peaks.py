"""Peaks that an MFU is divided by in the place of the dense one of its own chip and precision."""

from collections.abc import Iterator
from math import log
from typing import NamedTuple

from ..base.show import flops, percent
from ..catalogue import accelerator
from ..catalogue.families import family
from ..catalogue.hardware import UNKNOWN_TO_TRAINERS, Accelerator
from ..catalogue.words import Vendor

SPARSE = (Vendor.NVIDIA, Vendor.AMD)  # their data sheets print twice the dense peak, with sparsity
# of the distance of a stated MFU from the likely one, by ratio: losses explain a low one as well
HALFWAY = 0.5


class OtherPeak(NamedTuple):
    """A peak [FLOP/s] and what it is."""

    words: str
    flops: float


def other_peaks(chip: Accelerator, precision: str) -> Iterator[OtherPeak]:
    """The peaks by which the MFU of a run on `chip` in `precision` may have been divided."""
    dense = chip.peak_flops(precision)
    kind = family(chip.family)
    if kind.vendor_stack in SPARSE and kind.flash:
        yield OtherPeak("the data sheet's peak with sparsity", 2 * dense)
    if chip.half_flops != dense:
        yield OtherPeak("the 16-bit peak", chip.half_flops)
    fallback = accelerator(UNKNOWN_TO_TRAINERS)
    if fallback.half_flops != dense:
        yield OtherPeak(f"the peak of {fallback.name}", fallback.half_flops)


def counted_anew(chip: Accelerator, precision: str, stated: float, likely: float) -> str | None:
    """The dense MFU that a stated one comes to where another peak brings it nearer to the likely
    one, and a low one at least halfway; None where none does."""
    dense = chip.peak_flops(precision)
    true = {peak: stated * peak.flops / dense for peak in other_peaks(chip, precision)}
    peak = min(true, key=lambda p: abs(log(true[p] / likely)), default=None)
    if peak is None:
        return None
    near = HALFWAY if stated < likely else 1.0
    if abs(log(true[peak] / likely)) > near * abs(log(stated / likely)):
        return None
    return (
        f"MFU {percent(stated)} of {peak.words}, {flops(peak.flops)}, is {percent(true[peak])} of "
        f"the dense {precision} peak, {flops(dense)}: see which was divided by before looking for "
        "losses"
    )
