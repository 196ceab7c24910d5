"""The links of a chip as runs have them: those of its usual node, unless a run names others."""

from collections.abc import Sequence

import numpy as np

from .. import catalogue
from ..catalogue.hardware import Accelerator
from ..physics.wires import Link, fabric_facts

USUAL_NETWORK = "ib-ndr"  # of a chip that no node of the catalogue holds


def fabric_of(chip: Accelerator, scale_out: str = "") -> str:
    """The network of a chip of the catalogue: the one that is named, else that of its usual
    node."""
    node = catalogue.node_for(chip.id)
    return scale_out or (node.scale_out if node else USUAL_NETWORK)


def link_of_chip(chip: Accelerator, scale_out: str = "") -> Link:
    """The links of a chip of the catalogue and a network, else that of its usual node."""
    return Link(
        domain=float(chip.scale_up_domain),
        up_bytes_per_s=chip.link_bytes_per_s,
        out_bytes_per_s=catalogue.default_scale_out_bytes_per_s(chip.id),
        mesh=float(chip.mesh),
        **fabric_facts(
            catalogue.fabric(chip.scale_up), catalogue.fabric(fabric_of(chip, scale_out))
        ),
    )


def links_of(links: Sequence[Link]) -> Link:
    """The links of many chips, or series of points, in columns."""
    return Link(
        domain=np.array([link.domain for link in links], float),
        up_bytes_per_s=np.array([link.up_bytes_per_s for link in links], float),
        out_bytes_per_s=np.array([link.out_bytes_per_s for link in links], float),
        mesh=np.array([link.mesh for link in links], float),
        generation=np.array([link.generation for link in links], float),
        up_share=np.array([link.up_share for link in links], float),
        up_hop_s=np.array([link.up_hop_s for link in links], float),
        out_share=np.array([link.out_share for link in links], float),
        out_hop=np.array([link.out_hop for link in links], float),
        srd=np.array([link.srd for link in links], float),
        nvls=np.array([link.nvls for link in links], float),
        sharp=np.array([link.sharp for link in links], float),
    )
