"""Time to the first step: from the decision to start until training runs, part by part, as a
function of size."""

from typing import NamedTuple

import numpy as np

from ..base.columns import Column
from .checkpoint import LOAD_S


class Part(NamedTuple):
    """A part of a start: seconds at so many devices, growing as (devices / at)^power, no less than
    `at_least`."""

    seconds: float
    why: str
    at: float = 1.0  # devices
    power: float = 0.0
    at_least: float = 0.0  # s

    def took_s(self, devices: Column) -> Column:
        """max(at_least, seconds x (devices / at)^power). [s]"""
        return np.maximum(self.at_least, self.seconds * (devices / self.at) ** self.power)


PARTS = {
    "scheduler": Part(
        seconds=454,
        at=2048,
        power=0.2527,
        at_least=60,
        why="allocation and image: a requeue of 454 s on 2,048 devices, 768 s on 16,384"
        " (ByteRobust, arXiv 2509.16293, Table 7); power law through both",
    ),
    "imports": Part(
        seconds=60,
        why="processes and their imports: 46-65 s restarted in place at 2,048-16,384 devices"
        " (ByteRobust, Table 7)",
    ),
    "communicators": Part(
        seconds=17,
        at=16384,
        power=1.37580075,
        at_least=5,
        why="17 s at 16,384 and 200 s at 98,304 devices (FT-HSDP, arXiv 2602.00277); under 5 s at"
        " 2,048 (MegaScale, arXiv 2402.15627)",
    ),
    "compile": Part(
        seconds=65,
        why="warm-up and compilation, 1.09 min at 8,192 devices (TrainMover, arXiv 2412.12636)",
    ),
}
# what a recovery runs through: a requeued job all of it, processes restarted on their nodes less
BY_RECOVERY = {
    "restart": (*PARTS, "load"),
    "in-place": ("imports", "communicators", "load"),
    "elastic": ("imports", "communicators", "load"),
    "replica": ("imports", "communicators", "load"),
    "parts": ("imports", "communicators", "load"),
}
LAZY_INIT_S = 30.0  # communicators above 10,000 devices once made lazily (MegaScale, NSDI'24)


def communicator_init_s(devices: Column) -> Column:
    """Start of the collectives' library [s]: 17 s at 16,384 devices and 200 s at 98,304 (FT-HSDP,
    arXiv 2602.00277), a power law through both, 5 s at least (MegaScale). Nobody has published
    more devices."""
    return PARTS["communicators"].took_s(devices)


def first_step(
    devices: Column, load_s: Column = LOAD_S, recovery: str = "restart"
) -> dict[str, Column]:
    """{part: seconds} from the decision to start to the first step. load_s : opening and reading
    the state. Sums: `sum(first_step(n).values())`. Source of each part in PARTS."""
    return {
        part: load_s if part == "load" else PARTS[part].took_s(devices)
        for part in BY_RECOVERY[recovery]
    }
