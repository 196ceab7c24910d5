"""What makes a run slower, or faster, than predicted: each defect one change of the case, with the
prior weight of meeting it and what to measure to tell."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..base.records import Known, record
from ..blocks.moe import Moe
from ..catalogue.words import OFFLOADS, RECOMPUTES, Offload, Recompute
from ..physics.cases import Cases
from ..physics.pipeline import SCHEDULES
from ..physics.step import step_time


@record
class Cause:
    """One defect: its prior weight (judgement), what it makes of a case at a size from 1 (sound) to
    `worst`, its usual size and the standard deviation of ln(size) around it, what its size says,
    what to measure, whether a plan can have it at all. worst None: it is there or not."""

    name: str
    prior: float
    measure: str
    change: Callable[[Cases, float], Cases]
    worst: Known = None
    usual: float = 1.0
    sd: float = 0.0
    says: Callable[[float, float], str] | None = None  # of the size and the seconds of a step
    possible: Callable[[Cases], bool] | None = None


def step_s(case: Cases) -> float:
    """Seconds of a step."""
    return float(step_time(case).total)


def devices_of(case: Cases) -> float:
    """Devices of a plan. [count]"""
    plan = case.plan
    return float(plan.tp * plan.pp * plan.dp * plan.cp)


def _has_tensor_ranks(case: Cases) -> bool:
    return float(case.plan.tp) > 1


def _has_expert_ranks(case: Cases) -> bool:
    """Whether experts are split over ranks that one scale-up domain can hold."""
    ranks = float(case.plan.ep * case.plan.etp)
    return 1 < ranks <= float(case.link.domain)


def _has_experts(case: Cases) -> bool:
    return bool(case.shape.of(Moe))


def _has_domains(case: Cases) -> bool:
    """Whether a plan stands in more than one scale-up domain."""
    return devices_of(case) > float(case.link.domain)


def _slow_clocks(case: Cases, size: float) -> Cases:
    chip, rate = case.chip, 1 / size
    linear, half = chip.linear_flops * rate, chip.bf16_flops * rate
    return replace(case, chip=replace(chip, linear_flops=linear, bf16_flops=half))


def _slow_network(case: Cases, size: float) -> Cases:
    link = case.link
    return replace(case, link=replace(link, out_bytes_per_s=link.out_bytes_per_s * (1 / size)))


def _slow_node_link(case: Cases, size: float) -> Cases:
    link = case.link
    return replace(case, link=replace(link, up_bytes_per_s=link.up_bytes_per_s * (1 / size)))


def _spread_ranks(case: Cases, size: float) -> Cases:
    return replace(case, link=replace(case.link, domain=1.0))


def _slow_nodes(case: Cases, size: float) -> Cases:
    """The constant counts doublings of nodes of 8; a node once more as slow adds one step."""
    nodes = max(devices_of(case) / 8, 2.0)
    straggler = case.constants.straggler + 1 / np.log2(nodes) * (size - 1)
    return replace(case, constants=replace(case.constants, straggler=straggler))


def _waiting_for_data(case: Cases, size: float) -> Cases:
    host_s = case.constants.step_host_s + step_s(case) * (size - 1)
    return replace(case, constants=replace(case.constants, step_host_s=host_s))


def _slow_launches(case: Cases, size: float) -> Cases:
    constants = case.constants
    layer, moe = constants.layer_host_s * size, constants.moe_host_s * size
    return replace(case, constants=replace(constants, layer_host_s=layer, moe_host_s=moe))


def _shared_card(case: Cases, size: float) -> Cases:
    """Two devices on one card: rings wait for the slowest member."""
    return _slow_network(case, 2.0)


def _experts_one_by_one(case: Cases, size: float) -> Cases:
    return replace(case, software=replace(case.software, looped_experts=1.0))


def _grouped_experts(case: Cases, size: float) -> Cases:
    return replace(case, software=replace(case.software, looped_experts=0.0))


def _no_graphs(case: Cases, size: float) -> Cases:
    return replace(case, software=replace(case.software, graphs=0.0))


def _fused(case: Cases, size: float) -> Cases:
    return replace(case, software=replace(case.software, fused_norm=1.0))


def _gradients_hidden(case: Cases, size: float) -> Cases:
    return replace(case, software=replace(case.software, dp_overlap=1.0))


def _states_on_device(case: Cases, size: float) -> Cases:
    return case.with_plan(offload=OFFLOADS.index(Offload.NONE))


def _rated_network(case: Cases, size: float) -> Cases:
    """A network ten times as fast: what a design's own slow one costs."""
    return _slow_network(case, 0.1)


def _unfused(case: Cases, size: float) -> Cases:
    return replace(case, software=replace(case.software, fused_norm=0.0))


def _scores_stored(case: Cases, size: float) -> Cases:
    return replace(case, software=replace(case.software, flash=0.0))


def _gradients_exposed(case: Cases, size: float) -> Cases:
    return replace(case, software=replace(case.software, dp_overlap=0.0))


def _sends_exposed(case: Cases, size: float) -> Cases:
    return replace(case, software=replace(case.software, p2p_overlap=0.0))


def _recomputed(case: Cases, size: float) -> Cases:
    full = RECOMPUTES.index(Recompute.FULL)
    return replace(case, plan=replace(case.plan, recompute=full, recompute_share=1.0))


def _not_interleaved(case: Cases, size: float) -> Cases:
    plain = SCHEDULES["1f1b"].code
    return replace(case, plan=replace(case.plan, vpp=1.0, schedule=plain))


def _crowded_experts(case: Cases, size: float) -> Cases:
    imbalance = case.constants.ep_imbalance * size
    return replace(case, constants=replace(case.constants, ep_imbalance=imbalance))


def _experts_exposed(case: Cases, size: float) -> Cases:
    return replace(case, software=replace(case.software, ep_overlap=0.0))


def _tensor_hidden(case: Cases, size: float) -> Cases:
    return replace(case, software=replace(case.software, tp_overlap=1.0))


def _not_recomputed(case: Cases, size: float) -> Cases:
    return case.with_plan(recompute=RECOMPUTES.index(Recompute.NONE))


def _graphs(case: Cases, size: float) -> Cases:
    return replace(case, software=replace(case.software, graphs=2.0))


def _newer_attention(case: Cases, size: float) -> Cases:
    return replace(case, software=replace(case.software, flash=3.0))


def _experts_hidden(case: Cases, size: float) -> Cases:
    return replace(case, software=replace(case.software, ep_overlap=1.0))


def _chunked_loss(case: Cases, size: float) -> Cases:
    return replace(case, software=replace(case.software, chunked_loss=1.0))


SLOWER = (
    Cause(
        name="devices run below their clock (power cap, heat)",
        prior=1.0,
        change=_slow_clocks,
        worst=1.8,
        sd=0.2,
        says=lambda size, more_s: f"clocks {size:.2f} times lower than rated",
        measure="SM clock and power of every device over ten minutes; one GEMM of the model's "
        "shape alone on each node",
    ),
    Cause(
        name="the network between nodes is slower than rated",
        prior=1.0,
        change=_slow_network,
        worst=8.0,
        sd=0.5,
        says=lambda size, more_s: f"{size:.1f} times slower",
        measure="an all-reduce and an all-to-all of this plan's group sizes between nodes, alone; "
        "routing and congestion counters of the switches",
        possible=_has_domains,
    ),
    Cause(
        name="the network between nodes fell back to sockets or Ethernet",
        prior=1.0,
        change=_slow_network,
        worst=1000.0,
        usual=15.0,
        sd=1.2,
        says=lambda size, more_s: f"{size:.3g} times slower than rated",
        measure="the transport that NCCL_DEBUG=INFO names at the start (NET/IB or NET/Socket) and "
        "the interface; an all-reduce between two nodes, alone",
        possible=_has_domains,
    ),
    Cause(
        name="a network card is missing or down, and two devices share one",
        prior=0.5,
        change=_shared_card,
        measure="cards and link states of every node (ibstat, ethtool); an all-reduce of each pair "
        "of nodes, alone",
        possible=_has_domains,
    ),
    Cause(
        name="the link inside the node is slower than rated",
        prior=0.5,
        change=_slow_node_link,
        worst=50.0,
        sd=0.7,
        says=lambda size, more_s: f"{size:.1f} times slower",
        measure="an all-reduce inside each node; link widths and error counters; whether peers "
        "reach each other without the host (NCCL_P2P_DISABLE, nvidia-smi topo -m)",
    ),
    Cause(
        name="tensor-parallel ranks are spread over nodes",
        prior=0.6,
        change=_spread_ranks,
        measure="the rank order of the launcher against the node list; traffic on the network "
        "cards in a forward pass",
        possible=_has_tensor_ranks,
    ),
    Cause(
        name="expert groups are spread over nodes",
        prior=0.6,
        change=_spread_ranks,
        measure="the rank order of the launcher against the node list; traffic on the network "
        "cards in a MoE layer",
        possible=lambda case: _has_expert_ranks(case) and not _has_tensor_ranks(case),
    ),
    Cause(
        name="waiting for slow or throttled nodes",
        prior=1.2,
        change=_slow_nodes,
        worst=5.0,
        sd=0.3,
        says=lambda size, more_s: f"the slowest takes {size:.2f} times as long",
        measure="time in the first collective of a step by rank; the step of each node alone; "
        "leave the slowest out and repeat; clocks and throttle reasons of its devices",
        possible=_has_domains,
    ),
    Cause(
        name="the input pipeline or logging holds the step up (input starved)",
        prior=0.8,
        change=_waiting_for_data,
        worst=30.0,
        sd=0.6,
        says=lambda size, more_s: f"{more_s:.2f} s a step outside the model",
        measure="the step with synthetic data and no logging; time between the end of one step "
        "and the first kernel of the next",
    ),
    Cause(
        name="kernels are launched too slowly by the host",
        prior=0.8,
        change=_slow_launches,
        worst=20.0,
        sd=0.7,
        says=lambda size, more_s: f"{size:.1f} times the usual launch time",
        measure="gaps between kernels in a trace; processor governor and pinning; the step with "
        "CUDA graphs",
    ),
    Cause(
        name="CUDA graphs are off",
        prior=0.6,
        change=_no_graphs,
        measure="launches per step in a trace; the line of the log that says what was captured",
        possible=lambda case: float(case.software.graphs) > 0,
    ),
    Cause(
        name="experts run one by one",
        prior=0.8,
        change=_experts_one_by_one,
        measure="kernels of one MoE layer in a trace: one small product an expert, or grouped ones",
        possible=lambda case: _has_experts(case) and float(case.software.looped_experts) <= 0,
    ),
    Cause(
        name="element-wise kernels are not fused",
        prior=0.7,
        change=_unfused,
        measure="kernels per layer in a trace: norm, rotary and activation should be one each",
    ),
    Cause(
        name="attention materialises its scores",
        prior=0.5,
        change=_scores_stored,
        measure="the attention kernel's name in a trace; memory against the sequence length",
    ),
    Cause(
        name="gradient traffic does not overlap with the backward pass",
        prior=0.9,
        change=_gradients_exposed,
        measure="a trace of the last micro-batch: are reductions beside compute or after it?",
    ),
    Cause(
        name="sends between stages do not overlap",
        prior=0.4,
        change=_sends_exposed,
        measure="a trace of one pipeline rank: send and receive beside compute or between",
    ),
    Cause(
        name="layers are recomputed that should not be",
        prior=0.7,
        change=_recomputed,
        measure="forward kernels in the backward pass of a trace; peak memory against the "
        "prediction",
    ),
    Cause(
        name="the schedule is not interleaved",
        prior=0.4,
        change=_not_interleaved,
        measure="the pipeline's warm-up in a trace: chunks per rank",
    ),
    Cause(
        name="tokens crowd on few experts",
        prior=1.2,
        change=_crowded_experts,
        worst=4.0,
        sd=0.35,
        says=lambda size, more_s: f"the fullest rank has {size:.2f} times the mean",
        measure="tokens by expert and rank over a hundred steps; the all-to-all's slowest rank",
    ),
    Cause(
        name="all-to-all does not overlap with compute",
        prior=0.7,
        change=_experts_exposed,
        measure="a trace of one MoE layer",
    ),
)
# what a plan or its stack already has, and the prediction with it, each with what takes it away
BUILT_IN = (
    Cause(
        name="experts run one by one, without grouped products",
        prior=1.0,
        change=_grouped_experts,
        measure="a model code whose experts are one grouped product",
        possible=lambda case: _has_experts(case) and float(case.software.looped_experts) > 0,
    ),
    Cause(
        name="the optimizer's states leave the device",
        prior=1.0,
        change=_states_on_device,
        measure="devices enough to hold them",
        possible=lambda case: float(case.plan.offload) > 0,
    ),
    Cause(
        name="the network between nodes",
        prior=1.0,
        change=_rated_network,
        measure="a faster one, or less traffic on it",
        possible=_has_domains,
    ),
    Cause(
        name="attention materialises its scores",
        prior=1.0,
        change=_newer_attention,
        measure="a fused attention kernel",
        possible=lambda case: float(case.software.flash) <= 0,
    ),
    Cause(
        name="element-wise kernels are not fused",
        prior=1.0,
        change=_fused,
        measure="compiled blocks or fused kernels",
        possible=lambda case: float(case.software.fused_norm) < 1,
    ),
    Cause(
        name="gradient traffic does not overlap with the backward pass",
        prior=1.0,
        change=_gradients_hidden,
        measure="the stack's option for it",
        possible=lambda case: float(case.software.dp_overlap) < 1,
    ),
    Cause(
        name="layers are recomputed",
        prior=1.0,
        change=_not_recomputed,
        measure="memory enough to keep them",
        possible=lambda case: float(case.plan.recompute) > 0,
    ),
)
FASTER = (
    Cause(
        name="tensor-parallel traffic overlaps with its products",
        prior=1.0,
        change=_tensor_hidden,
        measure="a trace of one layer",
    ),
    Cause(
        name="less is recomputed than planned",
        prior=1.0,
        change=_not_recomputed,
        measure="forward kernels in the backward pass; peak memory",
    ),
    Cause(
        name="CUDA graphs cover the step",
        prior=0.7,
        change=_graphs,
        measure="launches per step in a trace",
    ),
    Cause(
        name="a newer attention kernel",
        prior=0.7,
        change=_newer_attention,
        measure="the attention kernel's name",
    ),
    Cause(
        name="traffic between experts overlaps",
        prior=0.7,
        change=_experts_hidden,
        measure="a trace of one MoE layer",
    ),
    Cause(
        name="the loss is computed in chunks",
        prior=0.4,
        change=_chunked_loss,
        measure="the size of the logits tensor",
    ),
)
