"""The links of a machine as collectives see them, and the group of ranks on them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, TypedDict

import numpy as np

from .. import catalogue
from ..base.columns import Array, Column
from ..base.files import csv_rows
from ..base.records import record
from ..catalogue.hardware import Fabric
from ..catalogue.load import fitted
from ..design.cluster import Cluster
from .named import same_names

# InfiniBand NDR in the catalogue: the fabric of the fitted series, others stand relative to it
REFERENCE_SHARE, REFERENCE_HOP_S = 0.83, 5e-6
WHOLE_POD = 1e9  # devices: no boundary


def calibration() -> Mapping[str, Any]:
    """catalogue/collective_calibration.json: constants, and by fabric how far off each series was
    foretold by a fit without it."""
    return fitted("collective_calibration")


@record
class CurveConstants:
    """Fitted factors; the sourced prior of each, and how far the series may move it, is its row of
    catalogue/collective_priors.csv."""

    ring_share: Column  # of the NVLink rate, ring, bus bandwidth
    ring_share_a100: Column  # log factor of the generation
    ring_share_b200: Column  # log factor of the generation
    nvls_share: Column  # of the NVLink rate, multicast reduction
    nvls_share_b200: Column  # log factor of the generation
    nvls_share_rack: Column  # domains wider than a node, on top
    nvls_share_across: Column  # two domains joined by a tree, on top
    out_share: Column  # of the cards' rate, ring across domains
    out_share_efa: Column  # log factor of EFA
    tree_share: Column  # Simple tree over ring
    sharp_gain: Column  # reduction in the network over ring
    direct_share: Column  # of the card's rate, all-to-all
    start: Column  # factor on NCCL's start-up
    hop_ll: Column  # factor on NCCL's hop inside the domain, LL
    hop: Column  # the same, LL128 and Simple
    hop_out: Column  # between domains on InfiniBand and RoCE
    hop_efa: Column  # the same on EFA
    hop_tree: Column  # Simple tree: waiting for whole chunks
    nvls_start: Column  # factor on the start-up of multicast
    nvls_start_rack: Column  # per 8 devices of a wider domain
    direct_start: Column  # all-to-all start-up in Simple hops between domains
    direct_peer_s: Column  # seconds per peer
    fill: Column  # g inside a domain
    fill_out: Column  # g across
    fill_direct: Column  # g of an all-to-all across: a peer's piece passes its own buffers
    ring_share_wide: Column  # rings across domains wider than a node, on top: rate
    hop_wide: Column  # the same: hop inside


same_names(CurveConstants, calibration()["constants"], "collective_calibration.json")
same_names(
    CurveConstants,
    (row["name"] for row in csv_rows(catalogue.HERE / "collective_priors.csv")),
    "collective_priors.csv",
)


@cache
def constants() -> CurveConstants:
    """The factors that ship with the kit, fitted on all series."""
    return CurveConstants(**calibration()["constants"])


@record
class Link:
    """The network's tiers as seen from one device; bytes/s one direction, seconds."""

    domain: Column  # devices in one scale-up domain
    up_bytes_per_s: Column
    out_bytes_per_s: Column  # scale-out, per device
    pod_devices: Column = 1e9  # devices under one full-bisection pod
    oversubscription: Column = 1.0  # down : up at the top of the pod
    # 1 where no switch joins a domain: each pair of devices has a link of its own, (domain - 1)
    # make up the rate
    mesh: Column = 0.0
    generation: Column = 1  # NVLink generation less 3, 0 to 2; 0 also for what is not NVLink
    # share of the link a ring reaches and seconds of a step, where no series is published of the
    # scale-up fabric; nan: those fitted on NVLink's
    up_share: Column = np.nan
    up_hop_s: Column = np.nan
    # share of the cards' rate and time of a step between domains, over those of InfiniBand NDR
    out_share: Column = 1.0
    out_hop: Column = 1.0
    srd: Column = 0  # 1 where cards deliver packets in any order (EFA)
    nvls: Column = 0  # 1 where the switches of the domain reduce
    sharp: Column = 0  # 1 where those of the network do
    rail_only: Column = 0.0  # 1 where no switch joins the rails
    # share of the cards' rate that rings and all-to-alls were measured to reach; nan: as fitted
    ring_reach: Column = np.nan
    exchange_reach: Column = np.nan
    sites: Column = 1.0
    smallest_site: Column = 1.0  # its share of the devices
    site_bytes_per_s: Column = np.inf  # of one site to the others, one direction
    site_rtt_s: Column = 0.0


@dataclass(frozen=True)
class Wires:
    """A group of ranks on a machine's links: members, how many of them share a domain, and the
    factors that the links are timed with."""

    ranks: Column
    inside: Column
    link: Link
    k: CurveConstants = field(default_factory=constants)

    @cached_property
    def domains(self) -> Column:
        """Scale-up domains that a group sits in: n / m."""
        return self.ranks / self.inside

    @cached_property
    def across(self) -> bool | Array:
        """True where the group leaves a domain."""
        return self.ranks > self.inside


class FabricFacts(TypedDict):
    """Fields of `Link` that two fabrics settle."""

    generation: int
    up_share: float
    up_hop_s: float
    out_share: float
    out_hop: float
    srd: int
    nvls: int


def fabric_facts(
    up: Fabric,
    out: Fabric,
    up_reach: tuple[float, float] | None = None,
    out_reach: tuple[float, float] | None = None,
) -> FabricFacts:
    """What two fabrics of the catalogue, scale-up and scale-out, do in a collective: fields of
    `Link`.

    Fabrics without a published series keep the fitted constants, scaled by the catalogue's
    efficiency and step time against ib-ndr's; scale-up links other than NVLink use the catalogue's
    efficiency and step time as they are, and none comes out more than 5 % better than InfiniBand
    NDR (judgement: no such series is published). `up_reach` and `out_reach`, (efficiency, step
    time), replace the catalogue's.
    """
    share, hop = (np.nan, np.nan) if up.fitted_curves else up_reach or (up.efficiency, up.latency_s)
    out_share, out_hop = out_reach or (out.efficiency, out.latency_s)
    return {
        "generation": min(max(up.generation - 3, 0), 2),
        "up_share": share,
        "up_hop_s": hop,
        "out_share": 1.0 if out.fitted_curves else min(out_share / REFERENCE_SHARE, 1.05),
        "out_hop": 1.0 if out.fitted_curves else out_hop / REFERENCE_HOP_S,
        "srd": int(out.transport == "srd"),
        "nvls": int(up.fitted_curves and up.in_network_reduction),
    }


def link_of(cluster: Cluster) -> Link:
    """The links of a cluster as collectives see them."""
    chip, whole = cluster.accelerator, cluster.accelerator.scale_up_domain
    return Link(
        domain=float(cluster.scale_up_domain),
        up_bytes_per_s=cluster.scale_up_bytes_per_s,
        out_bytes_per_s=cluster.scale_out_bytes_per_s,
        pod_devices=float(cluster.pod_devices or WHOLE_POD),
        oversubscription=cluster.oversubscription,
        mesh=float(chip.mesh and cluster.scale_up_domain == whole),
        sharp=int(cluster.in_network_reduction),
        rail_only=float(cluster.topology == "rail-only"),
        sites=float(cluster.sites),
        smallest_site=min(cluster.by_site) / cluster.devices if cluster.sites > 1 else 1.0,
        site_bytes_per_s=cluster.site_bytes_per_s,
        site_rtt_s=cluster.site_rtt_s,
        **fabric_facts(
            catalogue.fabric(cluster.scale_up),
            catalogue.fabric(cluster.scale_out),
            (cluster.scale_up_efficiency, cluster.scale_up_latency_s),
            (cluster.scale_out_efficiency, cluster.scale_out_latency_s),
        ),
    )


def members_inside(group: Column, packed: Column, domain: Column) -> Column:
    """Ranks of one group that share a scale-up domain when `packed` other ranks are placed before
    the group's next member.

    Megatron's order places tp first, then cp, then dp, then pp: the dp group of a plan has packed =
    tp x cp.
    """
    return np.clip(np.floor(domain / packed), 1, group)
