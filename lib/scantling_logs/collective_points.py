"""Published points of collectives (nccl-tests) as columns, with the links that they ran on."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scantling import catalogue
from scantling.base.columns import Array
from scantling.base.records import take
from scantling.catalogue.rows import CollectiveSeries
from scantling.physics.collectives import COLLECTIVES, volume
from scantling.physics.wires import Link, Wires
from scantling.runs.links import link_of_chip, links_of

NAMES = {"alltoall": "all_to_all"}
ACCELERATORS = ("a100-80-sxm", "h100-sxm", "h200-sxm", "b200-sxm", "gb200-nvl72")


@dataclass(frozen=True)
class Points:
    """Published points as columns."""

    series: Array  # ids
    fabric: Array
    collective: Array
    message_bytes: Array
    seconds: Array
    wires: Wires

    def take(self, rows: Any) -> "Points":
        """The points at some rows, a slice or an integer or boolean array."""
        return take(self, rows)


def fabric_of(name: str) -> str:
    """Fabric of a series, one spelling each."""
    text = catalogue.collective_series()[name].fabric
    if "unspecified" in text:
        return "not stated, about 100 GB/s a node"
    return text.replace("/NVSwitch", "").split(" (")[0]


@cache
def points() -> Points:
    """All nccl-tests points of NVLink over InfiniBand or EFA: the 28 curves, and single points
    (ring forced, fewer devices, other sites)."""
    series = []
    fabrics = []
    collectives = []
    message_bytes = []
    seconds = []
    ranks = []
    inside = []
    links = []
    for name, s in usable_series().items():
        collective = NAMES.get(s.collective, s.collective)
        link = link_of_series(s, plain="nonvls" in name or "sharp_off" in name)
        members = float(s.devices)
        for size, bus in zip(s.message_bytes, s.busbw_bytes_per_s):
            series.append(name)
            fabrics.append(fabric_of(name))
            collectives.append(collective)
            message_bytes.append(size)
            seconds.append(float(volume(collective, members)) * size / bus)
            ranks.append(members)
            inside.append(members / s.nvlink_domains)
            links.append(link)
    return Points(
        series=np.array(series),
        fabric=np.array(fabrics),
        collective=np.array(collectives),
        message_bytes=np.array(message_bytes),
        seconds=np.array(seconds),
        wires=Wires(np.array(ranks), np.array(inside), links_of(links)),
    )


def usable_series() -> dict[str, CollectiveSeries]:
    """The published series of collectives that the model times, over NVLink and InfiniBand or
    EFA."""
    return {
        name: s
        for name, s in catalogue.collective_series().items()
        if s.accelerator in ACCELERATORS
        and NAMES.get(s.collective, s.collective) in COLLECTIVES
        and not name.endswith("_nvlstree")
        and "TCPXO" not in s.fabric
    }


def link_of_series(series: CollectiveSeries, plain: bool) -> Link:
    """The links of a published series; `plain` where reduction in the switches was turned off."""
    network = "efa-v2" if "EFA" in series.fabric else "ib-ndr"
    link = link_of_chip(catalogue.accelerator(series.accelerator), network)
    return replace(
        link,
        out_bytes_per_s=series.link_bytes_per_s if series.nvlink_domains > 1 else np.inf,
        nvls=0 if plain else link.nvls,
        sharp=1 if "SHARP" in series.fabric else 0,
    )
