"""Pipeline schedules in closed form: idle time, activations in flight, weight copies, and what each schedule asks of a plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = [
    "SCHEDULES", "SCHEDULE_NAMES", "Schedule", "RULES", "Rule",
    "bubble_time", "in_flight", "layer_split", "schedule_code", "stage_layers", "violations", "weight_copies",
]


@dataclass(frozen=True)
class Schedule:
    """One pipeline schedule: its code, the coefficients of its closed forms, and where they come from.

    Attributes
    ----------
    code : int
        Index into SCHEDULE_NAMES; the integer that plans carry.
    aliases : tuple of str
        Other names the field uses.
    chunks : int or None
        Model chunks each device must hold (vpp); None where any number from two will do.
    split_backward : bool
        True where input and weight gradients are separate passes.
    placement : str
        "ring": chunk c of device d is model part c·pp + d. "vee": chunk 0 of device d is part d, chunk 1 is part
        2·pp − 1 − d, so that embedding and head share device 0. "mirror": device d holds part d and part pp − 1 − d,
        two copies of the model in all.
    weight_copies : int
        How many times each weight is held over the devices of one pipeline.
    bubble : tuple of float
        (per_pp, constant, forward, backward, weight): idle = (per_pp·pp + constant)·(forward·F + backward·B + weight·W),
        B being the whole backward. Divided by vpp where `chunks` is None.
    in_flight : tuple of float
        (per_pp, per_pp_vpp, per_stage, constant): chunks in flight at the peak before the cap at m·chunks.
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
    bubble: tuple[float, float, float, float, float]
    in_flight: tuple[float, float, float, float]
    source: str


_UNBOUNDED = 1e18  # stands for "as many as there are micro-batches"; the cap at m makes it exact

SCHEDULES: dict[str, Schedule] = {
    row.name: row
    for row in (
        Schedule("gpipe", 0, ("afab", "all-forward-all-backward"), 1, False, "ring", 1, (1, -1, 1, 1, 0), (0, 0, 0, _UNBOUNDED),
                 "Huang et al. 2019, arXiv:1811.06965, section 2.3; Narayanan et al. 2021, arXiv:2104.04473, section 2.2.1"),
        Schedule("1f1b", 1, ("pipedream-flush", "one-forward-one-backward"), 1, False, "ring", 1, (1, -1, 1, 1, 0), (1, 0, -1, 0),
                 "Narayanan et al. 2021, arXiv:2104.04473, section 2.2.1"),
        Schedule("interleaved", 2, ("interleaved-1f1b", "virtual-pipeline"), None, False, "ring", 1, (1, -1, 1, 1, 0), (1, 1, -2, -1),
                 "Narayanan et al. 2021, arXiv:2104.04473, section 2.2.2; in flight: warm-up count of Megatron-LM's interleaved schedule, "
                 "which is Korthikanti et al. 2022, arXiv:2205.05198, section 4.2.3, on stage 0"),
        Schedule("zb-1p", 3, ("zb-h1", "zb1p"), 1, True, "ring", 1, (1, -1, 1, 1, -2), (1, 0, 0, 0),
                 "Qi et al. 2023, arXiv:2401.10241, table 2 (ZB-H1)"),
        Schedule("zb-2p", 4, ("zb-h2", "zb2p"), 1, True, "ring", 1, (1, -1, 1, 1, -3), (2, 0, 0, -1),
                 "Qi et al. 2023, arXiv:2401.10241, table 2 (ZB-H2)"),
        Schedule("zb-v", 5, ("zbv", "v-zb"), 2, True, "vee", 1, (0, 0, 0, 0, 0), (2, 0, 0, 0),
                 "Qi et al. 2023, arXiv:2401.10241, section 6; Qi et al. 2024, arXiv:2405.15362, table 1"),
        Schedule("v-half", 6, (), 2, True, "vee", 1, (1 / 2, -1 / 2, 1, 1, 0), (1, 0, 0, 2),
                 "Qi et al. 2024, arXiv:2405.15362, table 1"),
        Schedule("v-min", 7, (), 2, True, "vee", 1, (2 / 3, -2 / 3, 1, 1, 0), (2 / 3, 0, 0, 8 / 3),
                 "Qi et al. 2024, arXiv:2405.15362, table 1"),
        Schedule("dualpipe", 8, (), 1, True, "mirror", 2, (1 / 2, -1, 1, 2, -3), (1, 0, 0, 1),
                 "DeepSeek-AI 2024, arXiv:2412.19437, table 2"),
        Schedule("dualpipe-v", 9, ("dualpipev", "cut-in-half"), 2, True, "vee", 1, (1 / 2, -1 / 2, 1, 2, -3), (2, 0, 0, 1),
                 "DeepSeek-AI 2024, arXiv:2412.19437, table 2, with two of its stages on each device (DualPipe read-me)"),
    )
}
SCHEDULE_NAMES: tuple[str, ...] = tuple(SCHEDULES)

_ROWS = tuple(SCHEDULES.values())
_BUBBLE = np.array([row.bubble for row in _ROWS]).T.copy()
_IN_FLIGHT = np.array([row.in_flight for row in _ROWS]).T.copy()
_FIXED_CHUNKS = np.array([row.chunks or 0 for row in _ROWS])
_COPIES = np.array([row.weight_copies for row in _ROWS])
_CODES = {alias: row.code for row in _ROWS for alias in (row.name, *row.aliases)}


def schedule_code(name):
    """Integer code of a schedule by any name the field uses; codes pass through, arrays work element by element.

    Raises
    ------
    KeyError
        For a name that is not in SCHEDULES nor among the aliases.
    """
    if isinstance(name, str):
        return _CODES[name.strip().lower().replace("_", "-")]
    array = np.asarray(name)
    if array.dtype.kind in "iu":
        return array
    return np.array([schedule_code(str(each)) for each in array.ravel()]).reshape(array.shape)


def bubble_time(schedule, pp, vpp, m, t_forward, t_backward, t_weight):
    """Idle time of a device per step, beyond the m·(t_forward + t_backward) that it computes. [s, shape of the arguments]

    Parameters
    ----------
    schedule : str, int or array
        Names or codes of SCHEDULES.
    pp, vpp : int or array
        Pipeline stages (devices) and model chunks per device.
    m : int or array
        Micro-batches per step; the idle time does not depend on it where the schedule's own rules hold.
    t_forward, t_backward, t_weight : float or array
        Times of one micro-batch through all chunks of one device [s]: forward; whole backward (input and weight gradients);
        the weight-gradient part of it. With uneven stages: the mean over the stages.

    Notes
    -----
    F, B, W stand for the three times, p for pp, v for vpp.
        gpipe, 1f1b: (p − 1)(F + B)                   interleaved: (p − 1)(F + B)/v
        zb-1p: (p − 1)(F + B − 2W)                    zb-2p: (p − 1)(F + B − 3W)
        zb-v: 0     v-half: (p − 1)(F + B)/2          v-min: 2(p − 1)(F + B)/3
        dualpipe: (p/2 − 1)(F&B + B − 3W)             dualpipe-v: (p − 1)/2·(F&B + B − 3W)
    never below 0. F&B, a forward overlapped with a backward, is taken as F + B: what the overlap hides is a matter of communication,
    not of the schedule. Qi et al. write B for the input gradient alone (our B − W): their F + B − W is our F + B − 2W.
    The zero-bubble and V forms count a device from its own first to its own last pass: they hold where the optimizer does not wait
    for all stages (their post-validation). A global barrier adds up to (p − 1)F (zb-2p) or (p − 1)F/2 (V).
    Transfers are free here. `scantling.schedule` lays the schedules out with uneven stages and transfer times.

    References
    ----------
    `SCHEDULES[name].source`.
    """
    code = schedule_code(schedule)
    per_pp, constant, forward, backward, weight = (column[code] for column in _BUBBLE)
    pass_time = forward * t_forward + backward * np.asarray(t_backward) + weight * t_weight
    divisor = np.where(_FIXED_CHUNKS[code] == 0, vpp, 1)
    idle = np.maximum((per_pp * pp + constant) * pass_time, 0.0) / divisor
    return np.where(np.asarray(pp) > 1, idle, 0.0)[()]


def in_flight(schedule, pp, vpp, m, stage=0):
    """Micro-batches whose activations a device holds at its peak, in units of its whole share of layers. [micro-batches]

    Parameters
    ----------
    schedule, pp, vpp, m
        As for `bubble_time`.
    stage : int or array, default 0
        Device along the pipeline, from 0; negative counts from the end (−1 is the last device).

    Notes
    -----
    s is the stage.
        gpipe: m             1f1b: min(p − s, m)         interleaved: min(p·v + p − 2s − 1, m·v)/v
        zb-1p: min(p, m)     zb-2p: min(2p − 1, m)       zb-v: min(p, m)
        v-half: ⌊p + 2⌋/2    v-min: about (p + 4)/3      dualpipe: p + 1         dualpipe-v: p + 1/2
    A micro-batch counts in full from the start of its forward to the end of its backward (of its weight gradient where that is a
    pass of its own). Weight gradients need less than the full set, so split schedules are an upper bound.
    Interleaved on stage 0 is p·(1 + (p − 1)/(p·v)), Korthikanti's form.
    """
    code = schedule_code(schedule)
    per_pp, per_pp_vpp, per_stage, constant = (column[code] for column in _IN_FLIGHT)
    pp, stage = np.asarray(pp), np.asarray(stage)
    fixed = _FIXED_CHUNKS[code]
    chunks = np.where(fixed == 0, vpp, fixed)
    stage = np.where(stage < 0, pp + stage, stage)
    held = per_pp * pp + per_pp_vpp * pp * (chunks - 1) + per_stage * stage + constant
    held = np.where(fixed == 0, held + pp, held)
    return (np.minimum(np.where(pp > 1, held, chunks), np.asarray(m) * chunks) / chunks)[()]


def weight_copies(schedule):
    """Copies of each weight that one pipeline holds: 2 for dualpipe, 1 otherwise. [copies] DeepSeek-AI 2024, table 2."""
    return _COPIES[schedule_code(schedule)]


@dataclass(frozen=True)
class Rule:
    """One legality rule: for which schedules, what it says, whose rule it is, and a vectorised test that is True where it is kept."""

    schedules: tuple[str, ...]
    text: str
    source: str
    kept: object


_ONE_CHUNK = tuple(row.name for row in _ROWS if row.chunks == 1)
_TWO_CHUNKS = tuple(row.name for row in _ROWS if row.chunks == 2)

RULES: tuple[Rule, ...] = (
    Rule(_ONE_CHUNK, "vpp must be 1", "one model part per device by definition", lambda pp, vpp, m, layers: np.asarray(vpp) == 1),
    Rule(_TWO_CHUNKS, "vpp must be 2", "a V holds two model parts per device", lambda pp, vpp, m, layers: np.asarray(vpp) == 2),
    Rule(("interleaved",), "interleaved needs vpp of at least 2", "arXiv:2104.04473, section 2.2.2",
         lambda pp, vpp, m, layers: np.asarray(vpp) >= 2),
    Rule(("interleaved",), "interleaved needs micro-batches per step divisible by pp", "arXiv:2104.04473, section 2.2.2; Megatron-LM asserts it",
         lambda pp, vpp, m, layers: np.asarray(m) % pp == 0),
    Rule(("dualpipe",), "dualpipe needs an even pp", "arXiv:2412.19437, section 3.2.1", lambda pp, vpp, m, layers: np.asarray(pp) % 2 == 0),
    Rule(("dualpipe",), "dualpipe needs an even number of micro-batches", "arXiv:2412.19437, section 3.2.1",
         lambda pp, vpp, m, layers: np.asarray(m) % 2 == 0),
    Rule(("dualpipe", "dualpipe-v"), "dualpipe needs at least 2·pp micro-batches", "asserted by DeepSeek's DualPipe code",
         lambda pp, vpp, m, layers: np.asarray(m) >= 2 * np.asarray(pp)),
    Rule(tuple(name for name in SCHEDULES if name not in ("gpipe", "1f1b")), "this schedule needs pp of at least 2", "nothing to interleave on one stage",
         lambda pp, vpp, m, layers: np.asarray(pp) >= 2),
    Rule(SCHEDULE_NAMES, "every model chunk needs a layer: layers ≥ pp·vpp", "Megatron-LM and torchtitan refuse empty stages",
         lambda pp, vpp, m, layers: np.asarray(layers) >= np.asarray(pp) * vpp),
)


def violations(schedule, pp, vpp, m, layers):
    """Where each legality rule is broken: {rule text: boolean array}, only rules that some plan breaks."""
    code = np.asarray(schedule_code(schedule))
    broken = {}
    for rule in RULES:
        concerned = np.isin(code, [SCHEDULES[name].code for name in rule.schedules])
        bad = concerned & ~rule.kept(pp, vpp, m, layers)
        if np.any(bad):
            broken[rule.text] = bad
    return broken


def layer_split(layers, pp, vpp=1, first_less=0, last_less=0):
    """Layers of each model part in model order, as even as whole layers allow. [layers, shape (pp·vpp,)]

    Parameters
    ----------
    layers, pp, vpp : int
    first_less, last_less : int
        Layers that the embedding and the head stand for: the first and last parts get that many fewer.

    Notes
    -----
    layers + first_less + last_less places are shared out evenly; what is left over goes one each to the parts from the second on,
    so that the first device, which holds most activations in flight, stays light.

    Raises
    ------
    ValueError
        Where a part would be left without a layer.
    """
    parts = pp * vpp
    places, over = divmod(layers + first_less + last_less, parts)
    split = np.full(parts, places)
    split[1 : 1 + over] += 1
    split[0] -= first_less
    split[-1] -= last_less
    if split.min() < 1:
        raise ValueError(f"{layers} layers over {parts} model parts (first {first_less}, last {last_less} fewer) leave a part without a layer")
    return split


def stage_layers(layers, pp, vpp=1, first_less=0, last_less=0):
    """Layers on the first, the fullest middle and the last part of a split, for whole columns of plans. [layers, (first, middle, last)]

    Same rule as `layer_split` without its array: middle is the largest part between the two ends (0 with no such part).
    A single part holds everything and is returned as first and last alike.
    """
    layers, parts = np.asarray(layers), np.asarray(pp) * vpp
    places, over = np.divmod(layers + np.asarray(first_less) + last_less, parts)
    first = np.where(parts == 1, layers, places - first_less)
    # the left-over layers start at the second part: with two parts that is the last one, beyond that it is reached never
    last = np.where(parts == 1, layers, places - last_less + ((parts == 2) & (over > 0)))
    middle = np.where(parts > 2, places + (over > 0), 0)
    return first, middle, last
