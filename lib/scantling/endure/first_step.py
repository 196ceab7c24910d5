"""Time to the first step: from the decision to start until training runs, part by part, as a
function of size."""

import numpy as np

from ..base.words import table
from .checkpoint import LOAD_S

PARTS = table(__file__, "first_step")
# what a recovery runs through: a requeued job all of it, processes restarted on their nodes less
BY_RECOVERY = {
    "restart": tuple(PARTS) + ("load",),
    "in-place": ("imports", "communicators", "load"),
    "elastic": ("imports", "communicators", "load"),
}


def part_s(part: str, devices):
    """Seconds of one part: at_least, or seconds x (devices / at)^power where that is more."""
    p = PARTS[part]
    size = devices / p.get("at", 1)
    return np.maximum(p.get("at_least", 0.0), p["seconds"] * size ** p.get("power", 0.0))


def communicator_init_s(devices):
    """Start of the collectives' library [s]: 17 s at 16,384 devices and 200 s at 98,304 (FT-HSDP,
    arXiv 2602.00277), a power law through both, 5 s at least (MegaScale). Nobody has published
    more devices."""
    return part_s("communicators", devices)


def first_step(devices, load_s=LOAD_S, recovery: str = "restart") -> dict:
    """{part: seconds} from the decision to start to the first step. load_s : opening and reading
    the state. Sums: `sum(first_step(n).values())`. Source of each part in first_step.yaml."""
    return {
        part: load_s if part == "load" else part_s(part, devices) for part in BY_RECOVERY[recovery]
    }
