"""Chip families: what the chips of one architecture do alike, a row of families.csv each.

A family without a published run has the constants of its most careful measured sibling
(`constants_of`); a name without a row is the family `other`.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from ..base.columns import Array
from ..base.records import Lines, record
from .load import filled, rows
from .words import Vendor

OTHER = "other"
Names = str | Sequence[str] | Array  # one name, or a column of them


@record
class Family:
    """One row of families.csv."""

    id: str
    label: str  # in legends
    vendor_stack: Vendor
    devices: str  # in a sentence; "": no kit runs on them
    device_plugin: str  # resource name in Kubernetes
    collectives: str  # library that talks between nodes: nccl, rccl; "": another
    imex: bool  # a scale-up domain over several nodes is allotted to a job
    flash: float  # best FlashAttention generation of its kernels, 0 none
    own_flash: float  # generation that runs whatever the stack says, 0 none
    torus: bool
    nvls: bool
    transformer_engine: bool
    ordered_launch: bool
    block_scales: bool  # its matrix units take block scales: mxfp8, mxfp4, nvfp4
    zero_unsaid: str  # sharding of a published run that prints none, where not the stack's
    constants_of: str  # the family whose fitted constants and priors hold: itself if measured
    networks: Lines  # technologies of the networks that its nodes are sold with; none: any
    instead: Lines  # accelerators to try in its place, smallest step first
    notes: str

    @property
    def measured(self) -> bool:
        """Whether anybody has published a run on a chip of the family."""
        return self.constants_of == self.id

    @property
    def modern(self) -> bool:
        """Whether FlashAttention-3 or its like exists for it."""
        return self.flash >= 3


@cache
def families() -> dict[str, Family]:
    """All families by name, `other` among them."""
    records = filled(Family, rows("families"), ("source", "date", "verified"))
    return {f.id: replace(f, constants_of=f.constants_of or f.id) for f in records}


def family(name: str) -> Family:
    """The family of that name; `other` where the table has no such row."""
    return families().get(name) or families()[OTHER]


def constants_of(names: Names) -> Names:
    """The family whose constants hold, of one name or a column of them; a blank name (all families
    pooled) stays blank."""
    if isinstance(names, str):
        return family(names).constants_of if names else names
    return np.array([family(n).constants_of for n in np.asarray(names, dtype=str)])
