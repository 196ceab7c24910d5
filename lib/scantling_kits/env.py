"""Environment variables for this fabric and chip, each with the reason it is set, and those that
only the site can fill in.
"""

from typing import NamedTuple

from .base_variables import BASE_VARIABLES
from .launch_plan import LaunchPlan
from .recipe_settings import chosen
from .values import Var
from .variables import VARIABLES
from .xla_flags import XLA_FLAGS

TABLE = (*BASE_VARIABLES, *VARIABLES)


class SiteVariable(NamedTuple):
    """A variable that no plan can know."""

    name: str
    where: str  # how to find its value
    wrong: str  # what a wrong one looks like


class Flag(NamedTuple):
    """A flag of libtpu or XLA."""

    flag: str
    why: str


def environment(launch: LaunchPlan) -> tuple[Var, ...]:
    """All variables of a kit: compiler, threads, messages, links, the fabric, the tracker, then
    those of makers' recipes."""
    return tuple(Var(v.name, str(v.value), v.why) for v in chosen(TABLE, launch))


def site(launch: LaunchPlan) -> list[SiteVariable]:
    """What no plan can know of the network."""
    fabric = launch.network
    jax = launch.framework.runtime == "jax"
    if fabric is None or (jax and launch.chip == "tpu"):
        return []
    out = [
        SiteVariable(
            "NCCL_SOCKET_IFNAME",
            "`ip -br addr`: the host network that reaches every node, for instance `=bond0`",
            "the first collective hangs, or rendezvous works and NCCL does not",
        )
    ]
    if not jax:
        out.append(
            SiteVariable(
                "GLOO_SOCKET_IFNAME",
                "the same interface, without the `=`",
                "the first barrier over gloo hangs",
            )
        )
    if fabric.transport != "verbs":
        return out
    out.append(
        SiteVariable(
            "NCCL_IB_HCA",
            f"`ibdev2netdev`: the {launch.cluster.nics_per_node} compute NICs, without those of "
            "storage, for instance `=mlx5_0,mlx5_1`",
            "half the bandwidth of nccl-tests, or a storage NIC in the ring",
        )
    )
    if fabric.technology == "ethernet":
        out.append(
            SiteVariable(
                "NCCL_IB_TC",
                "the lossless traffic class, from whoever runs the switches (106 is DSCP 26)",
                "bandwidth falls under load: pauses and drops on the switch counters",
            )
        )
    return out


def flags(launch: LaunchPlan) -> list[Flag]:
    """Flags of libtpu or XLA, where JAX runs the training."""
    if launch.framework.runtime != "jax":
        return []
    return [Flag(f"--{row.name}={row.value}", row.why) for row in chosen(XLA_FLAGS, launch)]
