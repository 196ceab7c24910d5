"""Pipeline schedules in closed form: idle time, activations in flight, weight copies, and what each
schedule asks of a plan.

One function per schedule and question. Their symbols: p devices along the pipeline, v model chunks
on each, m micro-batches a step; F, B, W seconds of one micro-batch through all chunks of one
device,
forward, gradient of the inputs, gradient of the weights; k the share of a micro-batch's activations
that a weight gradient still needs; s the stage, from 0. `bubble_time` and `in_flight` choose among
them for columns of plans. Transfers are free here and stages even; `scantling.physics.schedule` has
both.
"""

from collections.abc import Callable

import numpy as np

from ..base.records import Lines, record
from ..base.words import table as read_yaml
from ..catalogue import words

SCHEDULE_NAMES: Lines = words.SCHEDULES


def bubble_1f1b(*, p, F, B, W, **_):
    """(p − 1)(F + B + W) [s], of GPipe and 1F1B alike. Narayanan et al. 2021, section 2.2.1."""
    return (p - 1) * (F + B + W)


def bubble_interleaved(*, p, v, F, B, W, **_):
    """(p − 1)(F + B + W)/v [s]. Narayanan et al. 2021, section 2.2.2."""
    return bubble_1f1b(p=p, F=F, B=B, W=W) / v


def bubble_zb_h1(*, p, F, B, W, barrier=False, **_):
    """(p − 1)(F + B − W), at least 0 [s]. Qi et al. 2023, table 2 (ZB-H1).

    A device counts from its own first to its own last pass, which needs an optimizer step that does
    not wait (their post-validation); a barrier makes it at least (p − 1)F, 8 to 10 % of throughput
    in their table 10.
    """
    return _after_barrier((p - 1) * np.maximum(F + B - W, 0.0), p, F, barrier)


def bubble_zb_h2(*, p, F, B, W, k=1.0, barrier=False, **_):
    """(p − 1)(F + B − 2W/k), at least 0 [s]. Qi et al. 2023, table 2 (ZB-H2), who state it for k =
    1.

    Weight gradients that hold less can wait longer under the same memory, which their automatic
    ZB-2p uses (table 5: under 1 % in most settings, without FlashAttention, k about 0.4). The
    barrier
    is that of ZB-H1.
    """
    return _after_barrier((p - 1) * np.maximum(F + B - 2 * W / k, 0.0), p, F, barrier)


def _after_barrier(idle, p, F, barrier):
    """Idle time where the optimizer waits for all: the last device starts (p − 1)F after the
    first."""
    return np.where(barrier, np.maximum(idle, (p - 1) * F), idle)


def bubble_zb_v(*, p, F, B, W, **_):
    """(p − 1)(max(F, B) − W), at least 0 [s]; the published 0 where F = B = W. Qi et al. 2023,
    section 6; Qi et al. 2024."""
    return (p - 1) * np.maximum(np.maximum(F, B) - W, 0.0)


def bubble_v_half(*, p, m, F, B, W, **_):
    """(p − 1)((F + B − W)/2 + max(F, B)) + m·(2·max(F, B) − F − B − W), no term below 0 [s].

    The published half of 1F1B's where F = B = W. With unequal passes it loses time in every
    micro-batch, which its authors state without a formula. Qi et al. 2024, V-Half.
    """
    longest = np.maximum(F, B)
    return (p - 1) * np.maximum((F + B - W) / 2 + longest, 0.0) + m * np.maximum(
        2 * longest - F - B - W, 0.0
    )


def bubble_v_min(*, p, m, F, B, W, **_):
    """(p − 1)(F + B) + m·(3·max(F, B) − F − B − W), no term below 0 [s].

    The published two thirds of 1F1B's where F = B = W; loses much sooner than V-Half where they
    differ. Qi et al. 2024, V-Min.
    """
    return (p - 1) * (F + B) + m * np.maximum(3 * np.maximum(F, B) - F - B - W, 0.0)


def bubble_dualpipe(*, p, F, B, W, **_):
    """(p/2 − 1)(F + 2B − W), at least 0 [s]. DeepSeek-AI 2024, table 2.

    Their table writes B for the whole backward and F&B for an overlapped pair: F&B + B − 3W with
    F&B = F + B is this. What the overlap hides is a matter of communication, not of the schedule.
    """
    return (p / 2 - 1) * np.maximum(F + 2 * B - W, 0.0)


def bubble_dualpipe_v(*, p, F, B, W, **_):
    """(p − 1)/2·(F + 2B − W), at least 0 [s]: DualPipe with two of its stages on each device."""
    return (p - 1) / 2 * np.maximum(F + 2 * B - W, 0.0)


def held_gpipe(*, m, **_):
    """m micro-batches: every forward runs before the first backward. Huang et al. 2019."""
    return m


def held_1f1b(*, p, s, **_):
    """p − s micro-batches. Narayanan et al. 2021, section 2.2.1."""
    return p - s


def held_interleaved(*, p, v, s, **_):
    """(p·v + p − 2s − 1)/v micro-batches: Megatron-LM's warm-up count. On stage 0 it is p·(1 + (p −
    1)/(p·v)), Korthikanti et al. 2022, arXiv:2205.05198, section 4.2.3."""
    return (p * v + p - 2 * s - 1) / v


def held_zb_h1(*, p, s, k, **_):
    """p − s + s·k micro-batches. Qi et al. 2023, section 2.3."""
    return p - s + s * k


def held_zb_h2(*, p, s, k, **_):
    """2(p − s) − 1 + 2s·k micro-batches. Qi et al. 2023, section 2.3."""
    return 2 * (p - s) - 1 + 2 * s * k


def held_zb_v(*, p, **_):
    """p micro-batches. Qi et al. 2023, section 6."""
    return p


def held_v_half(*, p, **_):
    """(p + 2)/2 micro-batches. Qi et al. 2024, V-Half."""
    return (p + 2) / 2


def held_v_min(*, p, **_):
    """(p + 4)/3 micro-batches, in whole chunks, that is halves. Qi et al. 2024, V-Min."""
    return np.floor((2 * p + 8) / 3 + 1e-9) / 2


def held_dualpipe(*, p, **_):
    """p + 1 micro-batches. DeepSeek-AI 2024, table 2."""
    return p + 1


def held_dualpipe_v(*, p, **_):
    """p + 1/2 micro-batches. DeepSeek-AI 2024, table 2, with two of its stages on each device."""
    return p + 0.5


@record
class Schedule:
    """One pipeline schedule: facts, its two formulas, and where they come from.

    Attributes
    ----------
    aliases : tuple of str
        Other names the field uses.
    chunks : int or None
        Model chunks each device must hold (vpp); None where any number from two on will do.
    split_backward : bool
        True where input and weight gradients are separate passes.
    placement : str
        "ring": chunk c of device d is model part c·pp + d. "vee": chunk 0 of device d is part d,
        chunk 1 is part 2·pp − 1 − d, so that embedding and head share device 0. "mirror": device d
        holds part d and part pp − 1 − d, two copies of the model in all.
    weight_copies : int
        How many times each weight is held over the devices of one pipeline.
    bubble, held : function
        Idle time [s] and peak activations in flight [micro-batches]; symbols of this module.
    source : str
        Paper, table or code of the figures.
    """

    name: str
    bubble: Callable
    held: Callable
    source: str
    aliases: Lines = ()
    chunks: int | None = 1
    split_backward: bool = False
    placement: str = "ring"
    weight_copies: int = 1

    @property
    def code(self) -> int:
        """Index into SCHEDULE_NAMES; the integer that plans carry."""
        return SCHEDULE_NAMES.index(self.name)


_FORMULAS = {
    "gpipe": (bubble_1f1b, held_gpipe),
    "1f1b": (bubble_1f1b, held_1f1b),
    "interleaved": (bubble_interleaved, held_interleaved),
    "zb-1p": (bubble_zb_h1, held_zb_h1),
    "zb-2p": (bubble_zb_h2, held_zb_h2),
    "zb-v": (bubble_zb_v, held_zb_v),
    "v-half": (bubble_v_half, held_v_half),
    "v-min": (bubble_v_min, held_v_min),
    "dualpipe": (bubble_dualpipe, held_dualpipe),
    "dualpipe-v": (bubble_dualpipe_v, held_dualpipe_v),
}
_KNOWN = read_yaml(__file__, "pipeline")
_ROWS = tuple(
    Schedule(name=name, bubble=bubble, held=held, **_KNOWN["schedules"][name])
    for name, (bubble, held) in _FORMULAS.items()
)
SCHEDULES: dict[str, Schedule] = {row.name: row for row in _ROWS}
# one direction's all-to-all runs beside the other's compute (DeepSeek-V3, section 3.2.1)
DUALPIPES = tuple(row.code for row in _ROWS if row.name.startswith("dualpipe"))

_COPIES = np.array([row.weight_copies for row in _ROWS])
_CODES = {alias: row.code for row in _ROWS for alias in (row.name, *row.aliases)}


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


def _by_schedule(question: str, schedule, **symbols):
    """Each case by the formula of its own schedule; only formulas of schedules that occur run."""
    code = np.asarray(schedule_code(schedule))
    occur = np.flatnonzero(np.bincount(code.ravel(), minlength=len(_ROWS)))
    values = [getattr(_ROWS[i], question)(**symbols) for i in occur]
    shape = np.broadcast_shapes(code.shape, *(np.shape(given) for given in symbols.values()))
    if len(occur) == 1:
        return np.broadcast_to(values[0], shape)
    return np.broadcast_to(np.select([code == i for i in occur], values), shape)


def bubble_time(
    schedule, pp, vpp, m, t_forward, t_backward, t_weight, *, weight_kept=1.0, barrier=False
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
        (input and weight gradients); the weight-gradient part of it. With uneven stages: the mean
        over the stages, which counts what the others wait for.
    weight_kept : float or array, default 1
        Share of a micro-batch's activations that a weight gradient still needs (see `weight_kept`);
        zb-2p alone uses it.
    barrier : bool or array, default False
        True where the optimizer waits for all stages, as it does to clip gradients by their global
        norm.

    Notes
    -----
    Meant for W ≤ F and W ≤ B, as in a transformer. 0 with a single stage.

    References
    ----------
    `SCHEDULES[name].bubble` and `.source`.
    """
    idle = _by_schedule(
        "bubble",
        schedule,
        p=pp,
        v=vpp,
        m=m,
        F=t_forward,
        B=t_backward - t_weight,
        W=t_weight,
        k=weight_kept,
        barrier=barrier,
    )
    return np.where(pp > 1, idle, 0.0)[()]


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
    Never above m; 1 with a single stage. A micro-batch counts in full from the start of its forward
    to the end of its backward and, where weight gradients are passes of their own, with weight_kept
    until the end of those.

    References
    ----------
    `SCHEDULES[name].held` and `.source`.
    """
    stage = np.asarray(stage)
    stage = np.where(stage < 0, pp + stage, stage)
    held = _by_schedule("held", schedule, p=pp, v=vpp, m=m, s=stage, k=weight_kept)
    return np.minimum(np.where(pp > 1, held, 1.0), m)[()]


def weight_kept(hidden, heads, seq_len, flash=True):
    """Share of a layer's saved activations that its weight gradients still need once the input
    gradients are done. [share]

    32·s·b·h of the 34·s·b·h + 5·a·s²·b that a GPT layer saves; the second term (attention scores,
    dropout) is gone with flash attention or recomputed attention. Source: Qi et al. 2023, table 1;
    Korthikanti et al. 2022, section 4.1.
    """
    return (32.0 / (34.0 + np.where(flash, 0.0, 5.0 * heads * seq_len / hidden)))[()]


def weight_copies(schedule):
    """Copies of each weight that one pipeline holds: 2 for dualpipe, 1 otherwise. [copies]
    DeepSeek-AI 2024, table 2."""
    return _COPIES[schedule_code(schedule)]


@record
class Rule:
    """One legality rule: for which schedules, what it says, and whose rule it is."""

    name: str
    schedules: Lines
    text: str
    source: str


def rules_kept(pp, vpp, m, layers, ends=2) -> dict:
    """True where columns of plans keep each rule, by the rule's name in pipeline.yaml; `ends`: for
    how many layers embedding and head stand."""
    parts = pp * vpp
    return {
        "one chunk": vpp == 1,
        "two chunks": vpp == 2,
        "more chunks": vpp >= 2,
        "whole rounds": m % pp == 0,
        "two ways": pp % 2 == 0,
        "two halves": m % 2 == 0,
        "long enough": m >= 2 * pp,
        "stages": pp >= 2,
        "layers": layers + np.where(parts > 2, ends, 0) >= parts,
    }


RULES = tuple(Rule(name=name, **facts) for name, facts in _KNOWN["rules"].items())
_CONCERNED = np.array([[name in rule.schedules for name in SCHEDULE_NAMES] for rule in RULES])


def violations(schedule, pp, vpp, m, layers):
    """Where each legality rule is broken: {rule text: boolean array}, only rules that some plan
    breaks."""
    code = schedule_code(schedule)
    kept = rules_kept(*map(np.asarray, (pp, vpp, m, layers)))
    broken = {
        rule.text: concerned[code] & ~kept[rule.name] for rule, concerned in zip(RULES, _CONCERNED)
    }
    return {text: bad for text, bad in broken.items() if np.any(bad)}


def stage_layers(layers, pp, first_less=0, last_less=0):
    """Layers on the first, the fullest middle and the last stage, as even as whole layers allow,
    for
    columns of plans. [layers, (first, middle, last)]

    Embedding and head may stand for layers: the first and last stages get `first_less` and
    `last_less` fewer. layers + first_less + last_less places are shared out evenly; what is left
    over goes one each to the stages from the second on, so that the first device, which holds most
    activations in flight, stays light. middle is 0 with no stage between the two ends; a single
    stage holds everything and is first and last alike.
    """
    shared_out = layers + first_less + last_less
    places = np.floor(shared_out / pp)
    over = shared_out - places * pp
    return (
        np.where(pp == 1, layers, places - first_less),
        np.where(pp > 2, places + (over > 0), 0),
        np.where(pp == 1, layers, places - last_less + (over == pp - 1)),
    )
