"""Published figures that are closed forms: bubble, activations, model states, compute-optimal
sizes."""

from dataclasses import replace
from functools import partial

import numpy as np
from scantling import catalogue
from scantling.base.columns import Column
from scantling.blocks.block_table import Shape
from scantling.catalogue import scaling_laws as convergence
from scantling.catalogue.hardware import USUAL_ACCELERATOR
from scantling.catalogue.models.entries import entries
from scantling.catalogue.models.shape import (
    causal_flops_per_token,
    flops_per_token,
    make_shape,
    parameters,
)
from scantling.catalogue.words import SHARDINGS
from scantling.physics.cases import Cases, Chip, Job, Plan, code
from scantling.physics.constants import Constants, gather
from scantling.physics.memory import constants as memory_constants
from scantling.physics.memory.peak import memory, saved_bytes
from scantling.physics.pipeline import bubble_time
from scantling.physics.schedule import lay_out
from scantling.physics.software import USUAL
from scantling.physics.wires import Link

from .recreation import Curves, Figure, Point, PrintedValue, curves_through, points_of

GENERIC = Chip(
    linear_flops=989e12,
    bf16_flops=989e12,
    hbm_bytes_per_s=3.35e12,
    usable_bytes=85e9,
    host_bytes_per_s=55e9,
)
SCHEDULES = {"1f1b": "1f1b", "zb-h1": "zb-1p", "zb-h2": "zb-2p"}


def _bubble(row: PrintedValue) -> float:
    """Idle share of a step [1]: 1 - m (F + B + W) / span, from the schedule laid out with its
    transfers (schedule.lay_out)."""
    m = int(row.micro_batches)
    passes = (row.forward_ms, row.backward_ms, row.weight_gradient_ms)
    schedule = SCHEDULES[row.series]
    laid_out = lay_out(schedule, int(row.stages), 1, m, *passes, t_p2p=row.transfer_ms)
    return float(1 - m * sum(passes) / laid_out.span_s.max())


def _bubble_curves() -> Curves:
    """(p - 1)(F + B + W) and its zero-bubble forms without transfers, F = B = W, 8 stages, over
    micro-batches per stage."""
    p = 8
    m = np.arange(8, 73)
    idle = {s: bubble_time(name, p, 1, m, 1.0, 2.0, 1.0) for s, name in SCHEDULES.items()}
    return {series: (m / p, waits / (3 * m + waits)) for series, waits in idle.items()}


GENERIC_JOB = Job(seq_len=2048, global_batch=4096, precision=0)


def generic_constants() -> Constants:
    """Priors of the usual chip, without any fit."""
    family = catalogue.accelerator(USUAL_ACCELERATOR).family
    return replace(
        gather(family, USUAL_ACCELERATOR, None, {}),
        memory=memory_constants.gather("megatron-lm", {}),
    )


def bare(
    shape: Shape,
    plan: Plan,
    *,
    flash: float = 0.0,
    job: Job = GENERIC_JOB,
    chip: Chip = GENERIC,
    constants: Constants | None = None,
) -> Cases:
    """A case in which only the formulas speak: one generic chip, no fitted constant."""
    return Cases(
        shape=shape,
        job=job,
        chip=chip,
        link=Link(domain=8, up_bytes_per_s=450e9, out_bytes_per_s=50e9),
        plan=plan,
        software=replace(USUAL, flash=flash),
        constants=constants or generic_constants(),
    )


def gpt(layers: int, hidden: int, heads: int) -> Shape:
    """A GPT shape as the Megatron papers have them."""
    return make_shape(
        layers=layers,
        hidden=hidden,
        ffn_hidden=4 * hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        vocab=51200,
        mlp="gelu",
        attention="mha",
        tied_embeddings=True,
    )


def layer_activations(
    layers: int,
    hidden: int,
    heads: int,
    micro_batch: int,
    seq_len: int,
    tp: int,
    sp: bool,
    recompute: str,
) -> float:
    """Bytes that one GPT layer keeps for its backward pass under a recompute policy: sbh(34 +
    5as/h) and what is left of it.

    none: all. selective: without the attention scores' 5as/h. full: the layer's input alone.
    Divided by tp with sequence parallelism, else 10 of the 34 are not. Korthikanti et al. 2022,
    equations 1 to 4 and table 2.
    """
    if recompute == "full":
        return float(2 * seq_len * micro_batch * hidden / (tp if sp else 1))
    case = bare(
        gpt(layers, hidden, heads),
        Plan(micro_batch=micro_batch, tp=tp, sp=float(sp)),
        flash=2.0 if recompute == "selective" else 0.0,
        job=Job(seq_len=seq_len, global_batch=4096, precision=0),
    )
    return float(saved_bytes(case)[0])


def _saved(row: PrintedValue) -> float:
    layer = partial(
        layer_activations,
        int(row.layers),
        int(row.hidden),
        int(row.heads),
        int(row.micro_batch),
        int(row.seq_len),
        int(row.tp),
    )
    before = layer(row.sp_before, row.recompute_before)
    after = layer(row.sp_after, row.recompute_after)
    return 1 - after / before


def state_bytes(params: float, dp: Column, sharding: str) -> Column:
    """Bytes of weights, 16-bit gradients and Adam states on one device: 2 + 2 + 12 bytes a
    parameter, each over dp where sharded."""
    shape = gpt(36, 4096, 32)
    plan = Plan(dp=dp, sharding=code(SHARDINGS, sharding))
    constants = generic_constants()
    # the paper accumulates in 16 bit, whatever stacks do since
    constants = replace(constants, memory=replace(constants.memory, bf16_gradients=0.0))
    m = memory(bare(shape, plan, job=replace(GENERIC_JOB, grad_bytes=2.0), constants=constants))
    each = (m.weights + m.gradients + m.optimizer) / parameters(shape).total
    return each * params


def _zero(row: PrintedValue) -> float:
    return float(state_bytes(row.params, row.at, row.sharding)) / 1e9


def _optimal(row: PrintedValue) -> float:
    return float(convergence.compute_optimal(row.at, row.law)[1])


def _hybrid_flops(row: PrintedValue) -> float:
    """FLOP a token as Megatron-Bridge counts them, and every depth of multi-token prediction."""
    model = entries()[row.model].model
    seq_len = row.seq_len
    return float(causal_flops_per_token(model, seq_len) + flops_per_token(model, seq_len).mtp)


PUBLISHED = (
    "gpt-3-175b",
    "llama-2-7b",
    "llama-2-70b",
    "llama-3.1-8b",
    "llama-3.1-70b",
    "llama-3.1-405b",
    "mixtral-8x7b",
    "mixtral-8x22b",
    "qwen3-235b-a22b",
    "deepseek-v2",
    "deepseek-v3",
)


def _parameter_points() -> list[Point]:
    return [
        Point(
            series="all parameters",
            x=e.id,
            published=float(e.published_params),
            ours=float(parameters(e.model).total),
            title=e.source,
            locator=e.counted,
            url=e.source,
        )
        for e in (entries()[id] for id in PUBLISHED)
    ]


PARAMETERS = Figure(
    id="parameters",
    title="Parameters of published models",
    basis="closed form",
    formula="attention h (q + 2 kv + out), MLP 2 or 3 h f, experts, router, norms, embeddings",
    x="model",
    quantity="parameters",
    unit="parameters",
    median=0.001,
    worst=0.02,
    misses="counts that are printed rounded",
    log="y",
    points=_parameter_points,
)
HYBRID_FLOPS = Figure(
    id="hybrid-flops",
    title="FLOPs of a token that a trainer counts for hybrids",
    basis="closed form",
    formula=(
        "3 x forward, summed over the blocks; causal half of the scores, "
        "windows, no router, every depth of multi-token prediction"
    ),
    x="release",
    quantity="FLOP a token",
    unit="FLOP",
    median=0.01,
    worst=0.015,
    misses=(
        "the counter's inner width of a Mamba block is twice the hidden width, "
        "and until the release of June an expert of gpt-oss had two matrices of "
        "three"
    ),
    log="y",
    points=partial(points_of, "hybrid-flops", _hybrid_flops),
)
BUBBLE_RATES = Figure(
    id="bubble-rates",
    title="Pipeline bubble against micro-batches",
    basis="closed form",
    formula=(
        "idle / step; 1F1B idles (p - 1)(F + B + W), ZB-H1 (p - 1)(F + B - W), "
        "ZB-H2 (p - 1)(F + B - 2 W), transfers on top"
    ),
    x="micro-batches per stage",
    quantity="bubble",
    unit="1",
    absolute=True,
    median=0.0001,
    worst=0.00015,
    points=partial(points_of, "bubble-rates", _bubble),
    curves=_bubble_curves,
)
ACTIVATION_MEMORY = Figure(
    id="activation-memory",
    title="Activation memory that recompute and sequence parallelism save",
    basis="closed form",
    formula="sbh (34 + 5as/h) / tp with sequence parallelism; selective leaves 34sbh / tp",
    x="model",
    quantity="share saved",
    unit="1",
    absolute=True,
    median=0.03,
    worst=0.06,
    misses="the abstract says five times for all four models together; the smallest saves more",
    points=partial(points_of, "activation-memory", _saved),
)
ZERO_MEMORY = Figure(
    id="zero-memory",
    title="Model states per device under ZeRO",
    basis="closed form",
    formula=(
        "(2 + 2 + 12) bytes a parameter; stage 1 divides the 12 by dp, stage 2 "
        "the gradients too, stage 3 all"
    ),
    x="data-parallel ranks",
    quantity="model states",
    unit="GB",
    median=0.005,
    worst=0.03,
    misses="the printed values are rounded",
    log="xy",
    points=partial(points_of, "zero-memory", _zero),
    curves=partial(curves_through, "zero-memory", _zero, np.geomspace(1, 1024, 11)),
)
COMPUTE_OPTIMAL = Figure(
    id="compute-optimal",
    title="Tokens of a compute-optimal run",
    basis="closed form",
    formula="D proportional to C to the power b; constants of each approach",
    x="FLOP",
    quantity="tokens",
    unit="1",
    median=0.03,
    worst=0.11,
    misses="approach 3 prints its own rounding of the fitted exponents",
    log="xy",
    points=partial(points_of, "compute-optimal", _optimal),
    curves=partial(curves_through, "compute-optimal", _optimal, np.geomspace(1e19, 1e29, 20)),
)

FIGURES = (PARAMETERS, HYBRID_FLOPS, BUBBLE_RATES, ACTIVATION_MEMORY, ZERO_MEMORY, COMPUTE_OPTIMAL)
