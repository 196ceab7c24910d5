"""Environment variables for this fabric and chip, each with the reason it is set, and those that
only the site can fill in. Names, values and reasons stand in templates/env.j2.

Defaults of the libraries that already suit are left alone: a variable that restates one is a thing
to debug later.
Sources: NCCL user guide (environment variables), PyTorch notes on the CUDA allocator and the flight
recorder, AMD's MI300X tuning guide,
libfabric's EFA provider notes, MaxText's flag sets.
"""

from typing import NamedTuple

from .render import columns, said


class Var(NamedTuple):
    """One variable: name, value, why. A value that starts with $ is left for the shell to
    expand."""

    name: str
    value: str
    why: str


def environment(launch) -> tuple:
    """All variables of a kit: threads, allocator, collectives of the chip, the fabric, then what
    the framework itself asks for."""
    joined = " ".join(flag for flag, _ in flags(launch))
    return tuple(Var(*row) for row in columns(said("env", "variables", launch, joined)))


def site(launch) -> list:
    """(variable, how to find its value, what a wrong one looks like): what no plan can know."""
    return columns(said("env", "site", launch))


def flags(launch) -> list:
    """(flag, why) of libtpu or XLA, where JAX runs the training."""
    return columns(said("env", "flags", launch))
