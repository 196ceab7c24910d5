"""Measured points and what is made of them, as a calibration file holds them."""

from typing import TypedDict


class GemmPoint(TypedDict):
    """A matrix product of m x k by k x n."""

    m: int
    n: int
    k: int
    seconds: float


class CopyPoint(TypedDict):
    """A copy or a triad in the memory of a device."""

    op: str
    bytes: int  # read and written
    seconds: float


class AttentionPoint(TypedDict):
    """A forward pass of causal attention."""

    batch: int
    seq_len: int
    heads: int
    head_dim: int
    backend: str
    seconds: float


class LaunchPoint(TypedDict):
    """A small kernel."""

    what: str
    seconds: float


class HostPoint(TypedDict):
    """A copy between a device and its host."""

    way: str
    bytes: int
    seconds: float


class CollectivePoint(TypedDict):
    """A collective; bytes: the whole tensor of an all-reduce, all-gather or reduce-scatter, what
    one rank sends in an all-to-all."""

    op: str
    ranks: int
    ranks_per_node: int
    bytes: int
    seconds: float


class LayerPoint(TypedDict):
    """A transformer layer of PyTorch's own, forward and backward."""

    batch: int
    seq_len: int
    hidden: int
    heads: int
    forward_s: float
    seconds: float  # both ways


class SavePoint(TypedDict):
    """A save to a store, from each of so many ranks at once."""

    bytes: int  # of a rank
    ranks: int
    seconds: float


Measurement = (
    GemmPoint
    | CopyPoint
    | AttentionPoint
    | LaunchPoint
    | HostPoint
    | CollectivePoint
    | LayerPoint
    | SavePoint
)


class Curves(TypedDict, total=False):
    """Points by what was timed."""

    gemm: dict[str, list[GemmPoint]]  # by precision
    memory: list[CopyPoint]
    attention: list[AttentionPoint]
    launch: list[LaunchPoint]
    host: list[HostPoint]
    collectives: list[CollectivePoint]
    layer: list[LayerPoint]
    save: list[SavePoint]


# a constant that curves give, and where it is from; ln of value / prior as offset
ConstantEntry = TypedDict(
    "ConstantEntry", {"value": float, "unit": str, "offset": float, "prior": float, "from": str}
)


class LeftOut(TypedDict):
    """A constant that no such device can have."""

    constant: str
    value: float
    why: str


class Skipped(TypedDict):
    """A measurement that failed."""

    step: str
    why: str


class Saturation(TypedDict):
    """The catalogue's form of a GEMM curve: rate = a G / (G + h)."""

    flops_per_s: float  # a
    half_flop: float  # h
    rms_log_error: float
