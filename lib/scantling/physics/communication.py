"""What the axes of a plan send in one step: between whom, how much, how often, how long."""

from typing import TypedDict

import numpy as np

from ..catalogue.words import SHARDINGS
from .cases import Cases
from .step import Step
from .traffic import scattered_again

WEIGHTS_ONCE = "reduce-scatter of gradients, all-gather of weights"
GRADIENTS_ALWAYS = "reduce-scatter of gradients, every micro-batch; all-gather of weights"
WEIGHTS_ALWAYS = "all-gather of weights, reduce-scatter of gradients"
GRADIENTS = {
    "none": "all-reduce of gradients",
    "zero1": WEIGHTS_ONCE,
    "zero2": WEIGHTS_ONCE,
    "zero3": f"{WEIGHTS_ALWAYS}, every micro-batch",
    "hsdp": f"{WEIGHTS_ALWAYS} in the shard group, every micro-batch; all-reduce across",
}


class Traffic(TypedDict):
    """What one axis of a plan sends in one step."""

    axis: str
    what: str
    group: int  # members
    tier: str  # the slowest that the group spans: scale-up or scale-out
    bytes: float  # that each device sends
    calls: int
    time_s: float  # on the wire
    exposed_s: float


def communication(c: Cases, step: Step) -> list[Traffic]:
    """Traffic of one step of one case by axis in use: group, the slowest tier it spans, bytes each
    device sends, calls, time on the wire, exposed time. [bytes, s]

    Bytes, calls and times are those of `step.axes`: what is shown is what was timed.
    """
    p = c.plan
    forward = "all-gather and reduce-scatter" if p.sp else "all-reduce"
    groups = (  # axis, members, ranks placed before a group's next member, operation and payload
        ("tp", p.tp, 1, f"{forward} of activations"),
        ("cp", p.cp, p.tp, "keys and values of the other chunks"),
        ("ep", p.ep, p.etp, "tokens to experts and back"),
        ("pp", p.pp, p.tp * p.cp * p.dp, "activations and their gradients to the next stage"),
        ("dp", p.dp * p.cp, p.tp, gradients(c)),
    )
    return [
        {
            "axis": axis,
            "what": what,
            "group": int(members),
            "tier": "scale-up" if members * packed <= c.link.domain else "scale-out",
            "bytes": float(x.bytes),
            "calls": int(np.round(x.calls)),
            "time_s": float(x.exposed_s + x.hidden_s),
            "exposed_s": float(x.exposed_s),
        }
        for axis, members, packed, what in groups
        for x in [step.axes[axis]]
        if members > 1
    ]


def gradients(c: Cases) -> str:
    """What the ranks that share a stage's weights send of them."""
    if scattered_again(c) > 0:
        return GRADIENTS_ALWAYS
    return GRADIENTS[SHARDINGS[int(c.plan.sharding)]]
