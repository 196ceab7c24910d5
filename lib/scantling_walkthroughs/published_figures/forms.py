"""Published figures that are closed forms: bubble, activations, model states, compute-optimal
sizes."""

from dataclasses import replace

import numpy as np
from scantling import catalogue
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
from scantling.physics.constants import gather
from scantling.physics.memory import constants as memory_constants
from scantling.physics.memory.peak import memory, saved_bytes
from scantling.physics.pipeline import bubble_time
from scantling.physics.schedule import lay_out
from scantling.physics.software import USUAL
from scantling.physics.wires import Link

from .record import Point

GENERIC = Chip(
    linear_flops=989e12,
    bf16_flops=989e12,
    hbm_bytes_per_s=3.35e12,
    usable_bytes=85e9,
    host_bytes_per_s=55e9,
)
SCHEDULES = {"1f1b": "1f1b", "zb-h1": "zb-1p", "zb-h2": "zb-2p"}


def _bubble(r) -> float:
    """Idle share of a step [1]: 1 - m (F + B + W) / span, from the schedule laid out with its
    transfers (schedule.lay_out)."""
    p, m, *passes, comm = (r["given"][k] for k in ("p", "m", "f", "b", "w", "comm"))
    span = lay_out(SCHEDULES[r["series"]], int(p), 1, int(m), *passes, t_p2p=comm).span_s.max()
    return float(1 - m * sum(passes) / span)


def _bubble_curves():
    """(p - 1)(F + B + W) and its zero-bubble forms without transfers, F = B = W, 8 stages, over
    micro-batches per stage."""
    p = 8
    m = np.arange(8, 73)
    idle = {s: bubble_time(name, p, 1, m, 1.0, 2.0, 1.0) for s, name in SCHEDULES.items()}
    return {series: (m / p, waits / (3 * m + waits)) for series, waits in idle.items()}


def bare(shape, plan, flash=0.0, *, chip=GENERIC, constants=None, **job) -> Cases:
    """A case in which only the formulas speak: one generic chip, no fitted constant."""
    if constants is None:
        constants = replace(
            gather(catalogue.accelerator(USUAL_ACCELERATOR).family, USUAL_ACCELERATOR, None, {}),
            memory=memory_constants.gather("megatron-lm", {}),
        )
    return Cases(
        shape=shape,
        job=Job(**{"seq_len": 2048, "global_batch": 4096, "precision": 0} | job),
        chip=chip,
        link=Link(domain=8, up_bytes_per_s=450e9, out_bytes_per_s=50e9),
        plan=Plan(**plan),
        software=replace(USUAL, flash=flash),
        constants=constants,
    )


def gpt(layers, hidden, heads):
    """A GPT shape as the Megatron papers have them."""
    layers = int(layers)
    hidden = int(hidden)
    heads = int(heads)
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


def layer_activations(layers, hidden, heads, micro_batch, seq_len, tp, sp, recompute: str) -> float:
    """Bytes that one GPT layer keeps for its backward pass under a recompute policy: sbh(34 +
    5as/h) and what is left of it.

    none: all. selective: without the attention scores' 5as/h. full: the layer's input alone.
    Divided by tp with sequence parallelism,
    else 10 of the 34 are not. Korthikanti et al. 2022, equations 1 to 4 and table 2.
    """
    if recompute == "full":
        return float(2 * seq_len * micro_batch * hidden / (tp if sp else 1))
    case = bare(
        gpt(layers, hidden, heads),
        {"micro_batch": micro_batch, "tp": tp, "sp": sp},
        2.0 if recompute == "selective" else 0.0,
        seq_len=seq_len,
    )
    return float(saved_bytes(case)[0])


def _saved(r) -> float:
    g = r["given"]
    args = [g[k] for k in ("layers", "hidden", "heads", "micro_batch", "seq_len", "tp")]
    was, now = (layer_activations(*args, g[f"sp_{at}"], g[at]) for at in ("was", "now"))
    return 1 - now / was


def state_bytes(params, dp, sharding: str):
    """Bytes of weights, 16-bit gradients and Adam states on one device: 2 + 2 + 12 bytes a
    parameter, each over dp where sharded."""
    shape = gpt(36, 4096, 32)
    m = memory(bare(shape, {"dp": dp, "sharding": code(SHARDINGS, sharding)}, grad_bytes=2.0))
    return (m.weights + m.gradients + m.optimizer) / parameters(shape).total * params


def _zero(r) -> float:
    return state_bytes(r["given"]["params"], r["x"], r["given"]["sharding"]) / 1e9


def _optimal(r) -> float:
    return convergence.compute_optimal(r["x"], r["given"]["law"])[1]


def _hybrid_flops(r) -> float:
    """FLOP a token as Megatron-Bridge counts them, and every depth of multi-token prediction."""
    model, seq_len = entries()[r["given"]["model"]].model, r["given"]["seq_len"]
    return causal_flops_per_token(model, seq_len) + flops_per_token(model, seq_len).mtp


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


def _parameter_points():
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
        for e in map(entries().get, PUBLISHED)
    ]


OURS = {  # our value for a printed row
    "bubble-rates": _bubble,
    "activation-memory": _saved,
    "zero-memory": _zero,
    "compute-optimal": _optimal,
    "hybrid-flops": _hybrid_flops,
}
POINTS = {"parameters": _parameter_points}  # all points
CURVES = {"bubble-rates": _bubble_curves}  # ours between the points
