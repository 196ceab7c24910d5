"""Pipeline schedules in closed form: idle time, activations in flight, weight copies, and what each
schedule asks of a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = [
    "RULES",
    "SCHEDULES",
    "SCHEDULE_NAMES",
    "Rule",
    "Schedule",
    "bubble_time",
    "in_flight",
    "layer_split",
    "schedule_code",
    "stage_layers",
    "violations",
    "weight_copies",
    "weight_kept",
]


@dataclass(frozen=True)
class Schedule:
    """One pipeline schedule: its code, the coefficients of its closed forms, and where they come
    from.

    Attributes
    ----------
    code : int
        Index into SCHEDULE_NAMES; the integer that plans carry.
    aliases : tuple of str
        Other names the field uses.
    chunks : int or None
        Model chunks each device must hold (vpp); None where any number from two on will do.
    split_backward : bool
        True where input and weight gradients are separate passes.
    placement : str
        "ring": chunk c of device d is model part c·pp + d. "vee": chunk 0 of device d is part d,
        chunk 1 is part
        2·pp − 1 − d, so that embedding and head share device 0. "mirror": device d holds part d and
        part pp − 1 − d,
        two copies of the model in all.
    weight_copies : int
        How many times each weight is held over the devices of one pipeline.
    fill : tuple of float
        (per_pp, constant, F, B, W, max(F, B)): idle = (per_pp·pp + constant)·(sum of the four
        products), B the input gradient alone.
    beat : float
        Where a micro-batch cannot follow the one before in less than beat·max(F, B); 0 where F + B
        + W suffices.
    stagger : float
        First forwards by which the last device starts after the first one, per device, where a
        barrier makes that idle time.
    held : tuple of float
        (per_pp, per_stage, constant, waiting_per_stage): chunks in flight at the peak, those that
        wait for their weight gradient apart;
        for `chunks` None another pp·(vpp − 1).
    source : str
        Paper, table or code of the figures.
    """

    name: str
    code: int
    aliases: tuple[str, ...]
    chunks: int | None
    split_backward: bool
    placement: str
    weight_copies: int
    fill: tuple[float, float, float, float, float, float]
    beat: float
    stagger: float
    held: tuple[float, float, float, float]
    source: str


_ALL = 1e18  # as many as there are micro-batches: the cap at m makes it exact
_HUANG = (
    "Huang et al. 2019, arXiv:1811.06965, section 2.3; Narayanan et al. 2021, "
    "arXiv:2104.04473, section 2.2.1"
)
_SC21 = "Narayanan et al. 2021, arXiv:2104.04473, section 2.2"
_ZERO = "Qi et al. 2023, arXiv:2401.10241"
_CONTROL = (
    "Qi et al. 2024, arXiv:2405.15362; published for F = B = W, the form for unequal passes "
    "is that of schedule.lay_out"
)
_V3 = "DeepSeek-AI 2024, arXiv:2412.19437, section 3.2.1 and table 2"

SCHEDULES: dict[str, Schedule] = {
    row.name: row
    for row in (
        Schedule(
            "gpipe",
            0,
            ("afab", "all-forward-all-backward"),
            1,
            False,
            "ring",
            1,
            (1, -1, 1, 1, 1, 0),
            0,
            0,
            (0, 0, _ALL, 0),
            _HUANG,
        ),
        Schedule(
            "1f1b",
            1,
            ("pipedream-flush", "one-forward-one-backward"),
            1,
            False,
            "ring",
            1,
            (1, -1, 1, 1, 1, 0),
            0,
            0,
            (1, -1, 0, 0),
            _SC21,
        ),
        Schedule(
            "interleaved",
            2,
            ("interleaved-1f1b", "virtual-pipeline", "1f1b-i"),
            None,
            False,
            "ring",
            1,
            (1, -1, 1, 1, 1, 0),
            0,
            0,
            (2, -2, -1, 0),
            _SC21
            + (
                "; in flight: Megatron-LM's warm-up count, on stage 0 that of Korthikanti "
                "et al. 2022, arXiv:2205.05198, section 4.2.3"
            ),
        ),
        Schedule(
            "zb-1p",
            3,
            ("zb-h1", "zb1p"),
            1,
            True,
            "ring",
            1,
            (1, -1, 1, 1, -1, 0),
            0,
            1,
            (1, -1, 0, 1),
            _ZERO + ", table 2 (ZB-H1)",
        ),
        Schedule(
            "zb-2p",
            4,
            ("zb-h2", "zb2p"),
            1,
            True,
            "ring",
            1,
            (1, -1, 1, 1, -2, 0),
            0,
            1,
            (2, -2, -1, 2),
            _ZERO + ", table 2 (ZB-H2)",
        ),
        Schedule(
            "zb-v",
            5,
            ("zbv", "v-zb"),
            2,
            True,
            "vee",
            1,
            (1, -1, 0, 0, -1, 1),
            0,
            0,
            (2, 0, 0, 0),
            _ZERO + ", section 6; " + _CONTROL,
        ),
        Schedule(
            "v-half",
            6,
            (),
            2,
            True,
            "vee",
            1,
            (1, -1, 1 / 2, 1 / 2, -1 / 2, 1),
            2,
            0,
            (1, 0, 2, 0),
            _CONTROL,
        ),
        Schedule(
            "v-min",
            7,
            (),
            2,
            True,
            "vee",
            1,
            (1, -1, 1, 1, 0, 0),
            3,
            0,
            (2 / 3, 0, 8 / 3, 0),
            _CONTROL,
        ),
        Schedule(
            "dualpipe",
            8,
            (),
            1,
            True,
            "mirror",
            2,
            (1 / 2, -1, 1, 2, -1, 0),
            0,
            0,
            (1, 0, 1, 0),
            _V3,
        ),
        Schedule(
            "dualpipe-v",
            9,
            ("dualpipev", "cut-in-half"),
            2,
            True,
            "vee",
            1,
            (1 / 2, -1 / 2, 1, 2, -1, 0),
            0,
            0,
            (2, 0, 1, 0),
            _V3 + ", with two of its stages on each device",
        ),
    )
}
SCHEDULE_NAMES: tuple[str, ...] = tuple(SCHEDULES)
DUALPIPES = tuple(
    i for i, name in enumerate(SCHEDULES) if name.startswith("dualpipe")
)  # one direction's all-to-all runs beside the other's compute (DeepSeek-V3, section 3.2.1)

_ROWS = tuple(SCHEDULES.values())
_FILL = np.array([row.fill for row in _ROWS], dtype=float).T.copy()
_BEAT = np.array([row.beat for row in _ROWS], dtype=float)
_STAGGER = np.array([row.stagger for row in _ROWS], dtype=float)
_HELD = np.array([row.held for row in _ROWS], dtype=float).T.copy()
_CHUNKS = np.array([row.chunks or 0 for row in _ROWS])  # 0: any
_COPIES = np.array([row.weight_copies for row in _ROWS])
_CODES = {alias: row.code for row in _ROWS for alias in (row.name, *row.aliases)}
_TWO_P = _CODES["zb-2p"]


def schedule_code(name):
    """Integer code of a schedule by any name the field uses; codes pass through, arrays work
    element by element.

    Raises
    ------
    KeyError
        For a name that is neither in SCHEDULES nor among the aliases.
    """
    if isinstance(name, str):
        return _CODES[name.strip().lower().replace("_", "-")]
    array = np.asarray(name)
    if array.dtype.kind in "iu":
        return array
    return np.array([schedule_code(str(each)) for each in array.ravel()]).reshape(array.shape)


def bubble_time(
    schedule, pp, vpp, m, t_forward, t_backward, t_weight, weight_kept=1.0, barrier=False
):
    """Idle time of a device per step, beyond the m·(t_forward + t_backward) that it computes. [s,
    shape of the arguments]

    Parameters
    ----------
    schedule : str, int or array
        Names or codes of SCHEDULES.
    pp, vpp, m : int or array
        Pipeline stages (devices); model chunks per device; micro-batches per step.
    t_forward, t_backward, t_weight : float or array
        Times of one micro-batch through all chunks of one device [s]: forward; whole backward
        (input and weight gradients);
        the weight-gradient part of it. With uneven stages: the mean over the stages, which counts
        what the others wait for.
    weight_kept : float or array, default 1
        Share of a micro-batch's activations that a weight gradient still needs (see `weight_kept`);
        zb-2p alone uses it.
    barrier : bool or array, default False
        True where the optimizer waits for all stages, as it does to clip gradients by their global
        norm.

    Notes
    -----
    F is the forward, B the gradient of the inputs (t_backward − t_weight), W that of the weights, p
    is pp, v is vpp, k weight_kept.
        gpipe, 1f1b: (p − 1)(F + B + W)                interleaved: (p − 1)(F + B + W)/v
        zb-1p: (p − 1)(F + B − W)                      zb-2p: (p − 1)(F + B − 2W/k)
        zb-v: (p − 1)(max(F, B) − W)                   v-half: (p − 1)((F + B − W)/2 + max(F, B)) +
        m·(2·max(F, B) − F − B − W)
        v-min: (p − 1)(F + B) + m·(3·max(F, B) − F − B − W)
        dualpipe: (p/2 − 1)(F + 2B − W)                dualpipe-v: (p − 1)/2·(F + 2B − W)
    no bracket below 0. DeepSeek's table writes B for the whole backward and F&B for an overlapped
    pair: F&B + B − 3W with F&B = F + B
    is ours; what the overlap hides is a matter of communication, not of the schedule.
    With F = B = W the V forms are the published 0, 1/2 and 2/3 of 1F1B's. Else v-half, and v-min
    much sooner, lose time in every
    micro-batch, which its authors state without a formula.
    Qi et al. state ZB-H2 for k = 1; weight gradients that hold less can wait longer under the same
    memory, which their automatic
    ZB-2p uses (table 5: under 1 % in most settings, without FlashAttention, k about 0.4).
    The zero-bubble forms count a device from its own first to its own last pass: they need an
    optimizer step that does not wait
    (their post-validation). A barrier makes it at least (p − 1)F for zb-1p and zb-2p; their table
    10 measures 8 to 10 % of throughput.
    Meant for W ≤ F and W ≤ B, as in a transformer. Transfers are free here;
    `scantling.physics.schedule` has them, and uneven stages.

    References
    ----------
    `SCHEDULES[name].source`.
    """
    code = schedule_code(schedule)
    per_pp, constant, forward, backward, weight, longest = (column[code] for column in _FILL)
    t_input = np.asarray(t_backward) - t_weight
    t_longest = np.maximum(t_forward, t_input)
    weight = np.where(code == _TWO_P, weight / weight_kept, weight)
    one = forward * t_forward + backward * t_input + weight * t_weight + longest * t_longest
    idle = (per_pp * pp + constant) * np.maximum(one, 0.0) / np.where(_CHUNKS[code] == 0, vpp, 1)
    idle = idle + m * np.maximum(_BEAT[code] * t_longest - t_forward - t_backward, 0.0)
    idle = np.where(
        barrier, np.maximum(idle, _STAGGER[code] * (np.asarray(pp) - 1) * t_forward), idle
    )
    return np.where(np.asarray(pp) > 1, idle, 0.0)[()]


def in_flight(schedule, pp, vpp, m, stage=0, weight_kept=1.0):
    """Micro-batches whose activations a device holds at its peak, in units of its whole share of
    layers. [micro-batches]

    Parameters
    ----------
    schedule, pp, vpp, m, weight_kept
        As for `bubble_time`.
    stage : int or array, default 0
        Device along the pipeline, from 0; negative counts from the end (−1 is the last device).

    Notes
    -----
    s is the stage, p is pp, v is vpp, k weight_kept.
        gpipe: m             1f1b: min(p − s, m)         interleaved: min(p·v + p − 2s − 1, m·v)/v
        zb-1p: p − s + s·k   zb-2p: 2(p − s) − 1 + 2s·k  zb-v: p
        v-half: (p + 2)/2    v-min: (p + 4)/3            dualpipe: p + 1       dualpipe-v: p + 1/2
    never above m; V schedules in whole chunks, that is half micro-batches.
    A micro-batch counts in full from the start of its forward to the end of its backward and, where
    weight gradients are passes of
    their own, with weight_kept until the end of those. Interleaved on stage 0 is p·(1 + (p −
    1)/(p·v)), Korthikanti's form.

    References
    ----------
    `SCHEDULES[name].source`; zb-1p and zb-2p by stage: Qi et al. 2023, section 2.3.
    """
    code = schedule_code(schedule)
    per_pp, per_stage, constant, waiting = (column[code] for column in _HELD)
    pp, stage, fixed = np.asarray(pp), np.asarray(stage), _CHUNKS[code]
    chunks = np.where(fixed == 0, vpp, fixed)
    stage = np.where(stage < 0, pp + stage, stage)
    held = (
        np.floor(per_pp * pp + 1e-9 + constant)
        + per_stage * stage
        + np.where(fixed == 0, pp * (chunks - 1), 0)
        + waiting * stage * weight_kept
    )
    return (np.minimum(np.where(pp > 1, held, chunks), np.asarray(m) * chunks) / chunks)[()]


def weight_kept(hidden, heads, seq_len, flash=True):
    """Share of a layer's saved activations that its weight gradients still need once the input
    gradients are done. [share]

    32·s·b·h of the 34·s·b·h + 5·a·s²·b that a GPT layer saves; the second term (attention scores,
    dropout) is gone with flash
    attention or recomputed attention. Source: Qi et al. 2023, table 1; Korthikanti et al. 2022,
    section 4.1.
    """
    return (
        32.0
        / (34.0 + np.where(flash, 0.0, 5.0 * np.asarray(heads) * seq_len / np.asarray(hidden)))[()]
    )


def weight_copies(schedule):
    """Copies of each weight that one pipeline holds: 2 for dualpipe, 1 otherwise. [copies]
    DeepSeek-AI 2024, table 2."""
    return _COPIES[schedule_code(schedule)]


@dataclass(frozen=True)
class Rule:
    """One legality rule: for which schedules, what it says, whose rule it is, and a test of
    columns, True where the rule is kept."""

    schedules: tuple[str, ...]
    text: str
    source: str
    kept: Callable


_ONE_CHUNK = tuple(row.name for row in _ROWS if row.chunks == 1)
_TWO_CHUNKS = tuple(row.name for row in _ROWS if row.chunks == 2)

RULES: tuple[Rule, ...] = (
    Rule(
        _ONE_CHUNK,
        "vpp must be 1 for this schedule",
        "one model part per device and direction",
        lambda pp, vpp, m, layers: np.asarray(vpp) == 1,
    ),
    Rule(
        _TWO_CHUNKS,
        "vpp must be 2 for a V-shaped schedule",
        "arXiv:2401.10241, section 6",
        lambda pp, vpp, m, layers: np.asarray(vpp) == 2,
    ),
    Rule(
        ("interleaved",),
        "interleaved needs vpp of at least 2",
        _SC21,
        lambda pp, vpp, m, layers: np.asarray(vpp) >= 2,
    ),
    Rule(
        ("interleaved",),
        "interleaved needs micro-batches per step divisible by pp",
        _SC21 + "; asserted by Megatron-LM",
        lambda pp, vpp, m, layers: np.asarray(m) % pp == 0,
    ),
    Rule(
        ("dualpipe",),
        "dualpipe needs an even pp",
        _V3,
        lambda pp, vpp, m, layers: np.asarray(pp) % 2 == 0,
    ),
    Rule(
        ("dualpipe",),
        "dualpipe needs an even number of micro-batches",
        _V3,
        lambda pp, vpp, m, layers: np.asarray(m) % 2 == 0,
    ),
    Rule(
        ("dualpipe", "dualpipe-v"),
        "dualpipe needs at least 2·pp micro-batches",
        "asserted by DeepSeek's DualPipe code",
        lambda pp, vpp, m, layers: np.asarray(m) >= 2 * np.asarray(pp),
    ),
    Rule(
        tuple(name for name in SCHEDULES if name not in ("gpipe", "1f1b")),
        "this schedule needs pp of at least 2",
        "one stage has nothing to reorder",
        lambda pp, vpp, m, layers: np.asarray(pp) >= 2,
    ),
    Rule(
        SCHEDULE_NAMES,
        (
            "every model part needs a layer, the embedding and the head counting as one "
            "each: layers + 2 ≥ pp·vpp"
        ),
        (
            "Megatron-LM and torchtitan refuse empty parts; Llama 3 gives its first and "
            "last a layer less (arXiv:2407.21783, section 3.3.2)"
        ),
        lambda pp, vpp, m, layers: (
            np.asarray(layers) + np.where(np.asarray(pp) * vpp > 2, 2, 0) >= np.asarray(pp) * vpp
        ),
    ),
)
_CONCERNED = np.array([[name in rule.schedules for name in SCHEDULE_NAMES] for rule in RULES])


def violations(schedule, pp, vpp, m, layers):
    """Where each legality rule is broken: {rule text: boolean array}, only rules that some plan
    breaks."""
    code = schedule_code(schedule)
    broken = {}
    for rule, concerned in zip(RULES, _CONCERNED):
        bad = concerned[code] & ~rule.kept(pp, vpp, m, layers)
        if np.any(bad):
            broken[rule.text] = bad
    return broken


def layer_split(layers, pp, vpp=1, first_less=0, last_less=0):
    """Layers of each model part in model order, as even as whole layers allow. [layers, shape
    (pp·vpp,)]

    Parameters
    ----------
    layers, pp, vpp : int
    first_less, last_less : int
        Layers that the embedding and the head stand for: the first and last parts get that many
        fewer.

    Notes
    -----
    layers + first_less + last_less places are shared out evenly; what is left over goes one each to
    the parts from the second on,
    so that the first device, which holds most activations in flight, stays light.

    Raises
    ------
    ValueError
        Where a part would be left without a layer.
    """
    places, over = divmod(layers + first_less + last_less, pp * vpp)
    split = np.full(pp * vpp, places)
    split[1 : 1 + over] += 1
    split[0] -= first_less
    split[-1] -= last_less
    if split.min() < 1:
        raise ValueError(
            f"{layers} layers over {pp * vpp} model parts (first {first_less}, last "
            f"{last_less} fewer) leave a part without a layer"
        )
    return split


def stage_layers(layers, pp, vpp=1, first_less=0, last_less=0):
    """Layers on the first, the fullest middle and the last part of a split, for whole columns of
    plans. [layers, (first, middle, last)]

    Same rule as `layer_split` without its array: middle is the largest part between the two ends, 0
    with no such part.
    A single part holds everything and is first and last alike.
    """
    layers, parts = np.asarray(layers), np.asarray(pp) * vpp
    places, over = np.divmod(layers + np.asarray(first_less) + last_less, parts)
    first = np.where(parts == 1, layers, places - first_less)
    last = np.where(
        parts == 1, layers, places - last_less + (over == parts - 1)
    )  # left-over layers reach the last part last
    middle = np.where(parts > 2, places + (over > 0), 0)
    return first, middle, last
