"""Published points of collectives (nccl-tests) as columns, with the links that they ran on."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scantling import catalogue
from scantling.base.records import take
from scantling.physics.collectives import COLLECTIVES, volume
from scantling.physics.wires import Wires
from scantling.runs.read import link_facts, links_of

NAMES = {"alltoall": "all_to_all"}
ACCELERATORS = ("a100-80-sxm", "h100-sxm", "h200-sxm", "b200-sxm", "gb200-nvl72")


@dataclass(frozen=True)
class Points:
    """Published points as columns."""

    series: np.ndarray
    fabric: np.ndarray
    collective: np.ndarray
    message_bytes: np.ndarray
    seconds: np.ndarray
    wires: Wires

    def take(self, keep) -> "Points":
        """The points at `keep`."""
        return take(self, keep)


def fabric_of(name: str) -> str:
    """Fabric of a series, one spelling each."""
    text = catalogue.collective_series()[name].fabric
    return (
        "not stated, about 100 GB/s a node"
        if "unspecified" in text
        else text.replace("/NVSwitch", "").split(" (")[0]
    )


@cache
def points() -> Points:
    """All nccl-tests points of NVLink over InfiniBand or EFA: the 28 curves, and single points
    (ring forced, fewer devices, other sites)."""
    rows = []
    links = []
    for name, s in catalogue.collective_series().items():
        collective = NAMES.get(s.collective, s.collective)
        if s.accelerator not in ACCELERATORS or collective not in COLLECTIVES:
            continue
        if name.endswith("_nvlstree") or "TCPXO" in s.fabric:
            continue
        link = _link(s, plain="nonvls" in name or "sharp_off" in name)
        ranks = float(s.devices)
        for size, bus in zip(s.message_bytes, s.busbw_bytes_per_s):
            seconds = float(volume(collective, ranks)) * size / bus
            inside = ranks / s.nvlink_domains
            rows.append((name, fabric_of(name), collective, size, seconds, ranks, inside))
            links.append(link)
    columns = [np.array(column) for column in zip(*rows)]
    return Points(*columns[:5], Wires(*columns[5:], links_of(links)))


def _link(series, plain: bool) -> dict:
    """The links of a published series; `plain` where reduction in the switches was turned off."""
    facts = link_facts(
        catalogue.accelerator(series.accelerator), "efa-v2" if "EFA" in series.fabric else "ib-ndr"
    )
    return facts | {
        "out_bytes_per_s": series.link_bytes_per_s if series.nvlink_domains > 1 else np.inf,
        "nvls": 0 if plain else facts["nvls"],
        "sharp": 1 if "SHARP" in series.fabric else 0,
    }
