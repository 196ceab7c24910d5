"""What makes a run slower, or faster, than predicted: each defect one change of the case, with the
prior weight of meeting it and what to measure to tell."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..base.records import Known, record
from ..catalogue.words import RECOMPUTES, Recompute
from ..physics.cases import Cases
from ..physics.pipeline import SCHEDULES
from ..physics.step import step_time


@record
class Cause:
    """One defect: its prior weight (judgement), what it makes of a case at a size from 1 (sound) to
    `worst`, the standard deviation of ln(size), what its size says, what to measure. worst None: it
    is there or not."""

    name: str
    prior: float
    measure: str
    change: Callable[[Cases, float], Cases]
    worst: Known = None
    sd: float = 0.0
    says: Callable[[float, float], str] | None = None  # of the size and the seconds of a step


def step_s(case: Cases) -> float:
    """Seconds of a step."""
    return float(step_time(case).total)


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
    plan = case.plan
    nodes = max(float(plan.tp * plan.pp * plan.dp * plan.cp) / 8, 2.0)
    straggler = case.constants.straggler + 1 / np.log2(nodes) * (size - 1)
    return replace(case, constants=replace(case.constants, straggler=straggler))


def _waiting_for_data(case: Cases, size: float) -> Cases:
    host_s = case.constants.step_host_s + step_s(case) * (size - 1)
    return replace(case, constants=replace(case.constants, step_host_s=host_s))


def _slow_launches(case: Cases, size: float) -> Cases:
    constants = case.constants
    layer, moe = constants.layer_host_s * size, constants.moe_host_s * size
    return replace(case, constants=replace(constants, layer_host_s=layer, moe_host_s=moe))


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
    ),
    Cause(
        name="the link inside the node is slower than rated",
        prior=0.5,
        change=_slow_node_link,
        worst=8.0,
        sd=0.4,
        says=lambda size, more_s: f"{size:.1f} times slower",
        measure="an all-reduce inside each node; link widths and error counters",
    ),
    Cause(
        name="tensor-parallel ranks or expert groups are spread over nodes",
        prior=0.6,
        change=_spread_ranks,
        measure="the rank order of the launcher against the node list; traffic on the network "
        "cards in a forward pass",
    ),
    Cause(
        name="waiting for slow nodes",
        prior=1.2,
        change=_slow_nodes,
        worst=2.5,
        sd=0.15,
        says=lambda size, more_s: f"the slowest takes {size:.2f} times as long",
        measure="time in the first collective of a step by rank; the step of each node alone; "
        "leave the slowest out and repeat",
    ),
    Cause(
        name="the input pipeline or logging holds the step up",
        prior=0.8,
        change=_waiting_for_data,
        worst=3.0,
        sd=0.2,
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
