"""Pipeline schedules in closed form: idle time, activations in flight, weight copies, and what each
schedule asks of a plan.

One function per schedule and question. Their symbols: p devices along the pipeline, v model chunks
on each, m micro-batches a step; F, B, W seconds of one micro-batch through all chunks of one
device, forward, gradient of the inputs, gradient of the weights; k the share of a micro-batch's
activations that a weight gradient still needs; s the stage, from 0. `bubble_time` and `in_flight`
choose among them for columns of plans. Transfers are free here and stages even;
`scantling.physics.schedule` has both.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..base.columns import Array, Column, Truth
from ..base.records import Lines, record
from ..catalogue import words

SCHEDULE_NAMES: Lines = words.SCHEDULES


def bubble_1f1b(p: Column, F: Column, B: Column, W: Column) -> Column:
    """(p − 1)(F + B + W) [s], of GPipe and 1F1B alike. Narayanan et al. 2021, section 2.2.1."""
    return (p - 1) * (F + B + W)


def bubble_interleaved(p: Column, v: Column, F: Column, B: Column, W: Column) -> Column:
    """(p − 1)(F + B + W)/v [s]. Narayanan et al. 2021, section 2.2.2."""
    return bubble_1f1b(p, F, B, W) / v


def bubble_zb_h1(p: Column, F: Column, B: Column, W: Column, barrier: Truth = False) -> Column:
    """(p − 1)(F + B − W), at least 0 [s]. Qi et al. 2023, table 2 (ZB-H1).

    A device counts from its own first to its own last pass, which needs an optimizer step that does
    not wait (their post-validation); a barrier makes it at least (p − 1)F, 8 to 10 % of throughput
    in their table 10.
    """
    return after_barrier((p - 1) * np.maximum(F + B - W, 0.0), p, F, barrier)


def bubble_zb_h2(
    p: Column, F: Column, B: Column, W: Column, k: Column = 1.0, barrier: Truth = False
) -> Column:
    """(p − 1)(F + B − 2W/k), at least 0 [s]. Qi et al. 2023, table 2 (ZB-H2), who state it for k =
    1.

    Weight gradients that hold less can wait longer under the same memory, which their automatic
    ZB-2p uses (table 5: under 1 % in most settings, without FlashAttention, k about 0.4). The
    barrier is that of ZB-H1.
    """
    return after_barrier((p - 1) * np.maximum(F + B - 2 * W / k, 0.0), p, F, barrier)


def after_barrier(idle_s: Column, p: Column, F: Column, barrier: Truth) -> Column:
    """Idle time where the optimizer waits for all: the last device starts (p − 1)F after the
    first. [s]"""
    return np.where(barrier, np.maximum(idle_s, (p - 1) * F), idle_s)


def bubble_zb_v(p: Column, F: Column, B: Column, W: Column) -> Column:
    """(p − 1)(max(F, B) − W), at least 0 [s]; the published 0 where F = B = W. Qi et al. 2023,
    section 6; Qi et al. 2024."""
    return (p - 1) * np.maximum(np.maximum(F, B) - W, 0.0)


def bubble_v_half(p: Column, m: Column, F: Column, B: Column, W: Column) -> Column:
    """(p − 1)((F + B − W)/2 + max(F, B)) + m·(2·max(F, B) − F − B − W), no term below 0 [s].

    The published half of 1F1B's where F = B = W. With unequal passes it loses time in every
    micro-batch, which its authors state without a formula. Qi et al. 2024, V-Half.
    """
    longest = np.maximum(F, B)
    idle = (p - 1) * np.maximum((F + B - W) / 2 + longest, 0.0)
    return idle + m * np.maximum(2 * longest - F - B - W, 0.0)


def bubble_v_min(p: Column, m: Column, F: Column, B: Column, W: Column) -> Column:
    """(p − 1)(F + B) + m·(3·max(F, B) − F − B − W), no term below 0 [s].

    The published two thirds of 1F1B's where F = B = W; loses much sooner than V-Half where they
    differ. Qi et al. 2024, V-Min.
    """
    return (p - 1) * (F + B) + m * np.maximum(3 * np.maximum(F, B) - F - B - W, 0.0)


def bubble_dualpipe(p: Column, F: Column, B: Column, W: Column) -> Column:
    """(p/2 − 1)(F + 2B − W), at least 0 [s]. DeepSeek-AI 2024, table 2.

    Their table writes B for the whole backward and F&B for an overlapped pair: F&B + B − 3W with
    F&B = F + B is this. What the overlap hides is a matter of communication, not of the schedule.
    """
    return (p / 2 - 1) * np.maximum(F + 2 * B - W, 0.0)


def bubble_dualpipe_v(p: Column, F: Column, B: Column, W: Column) -> Column:
    """(p − 1)/2·(F + 2B − W), at least 0 [s]: DualPipe with two of its stages on each device."""
    return (p - 1) / 2 * np.maximum(F + 2 * B - W, 0.0)


def in_flight_gpipe(m: Column) -> Column:
    """m micro-batches: every forward runs before the first backward. Huang et al. 2019."""
    return m


def in_flight_1f1b(p: Column, s: Column) -> Column:
    """p − s micro-batches. Narayanan et al. 2021, section 2.2.1."""
    return p - s


def in_flight_interleaved(p: Column, v: Column, s: Column) -> Column:
    """(p·v + p − 2s − 1)/v micro-batches: Megatron-LM's warm-up count. On stage 0 it is p·(1 + (p −
    1)/(p·v)), Korthikanti et al. 2022, arXiv:2205.05198, section 4.2.3."""
    return (p * v + p - 2 * s - 1) / v


def in_flight_zb_h1(p: Column, s: Column, k: Column) -> Column:
    """p − s + s·k micro-batches. Qi et al. 2023, section 2.3."""
    return p - s + s * k


def in_flight_zb_h2(p: Column, s: Column, k: Column) -> Column:
    """2(p − s) − 1 + 2s·k micro-batches. Qi et al. 2023, section 2.3."""
    return 2 * (p - s) - 1 + 2 * s * k


def in_flight_zb_v(p: Column) -> Column:
    """p micro-batches. Qi et al. 2023, section 6."""
    return p


def in_flight_v_half(p: Column) -> Column:
    """(p + 2)/2 micro-batches. Qi et al. 2024, V-Half."""
    return (p + 2) / 2


def in_flight_v_min(p: Column) -> Column:
    """(p + 4)/3 micro-batches, in whole chunks, that is halves. Qi et al. 2024, V-Min."""
    return np.floor((2 * p + 8) / 3 + 1e-9) / 2


def in_flight_dualpipe(p: Column) -> Column:
    """p + 1 micro-batches. DeepSeek-AI 2024, table 2."""
    return p + 1


def in_flight_dualpipe_v(p: Column) -> Column:
    """p + 1/2 micro-batches. DeepSeek-AI 2024, table 2, with two of its stages on each device."""
    return p + 0.5


class Passes(NamedTuple):
    """What the formulas of idle time are asked with; symbols of this module."""

    p: Column
    v: Column
    m: Column
    F: Column  # s
    B: Column  # s
    W: Column  # s
    k: Column
    barrier: Truth  # where the optimizer waits for all stages


class Stage(NamedTuple):
    """What the formulas of activations in flight are asked with; symbols of this module."""

    p: Column
    v: Column
    m: Column
    s: Column
    k: Column


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
    bubble, in_flight : function
        Idle time [s] and peak activations in flight [micro-batches], of the formulas above.
    source : str
        Paper, table or code of the figures.
    """

    name: str
    bubble: Callable[[Passes], Column]
    in_flight: Callable[[Stage], Column]
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


SC21 = "Narayanan et al. 2021, arXiv:2104.04473, section 2.2"
ZERO_BUBBLE = "Qi et al. 2023, arXiv:2401.10241"
EQUAL_PASSES = (
    "Qi et al. 2024, arXiv:2405.15362; published for F = B = W, the form for unequal passes is that"
    " of schedule.lay_out"
)
DEEPSEEK_V3 = "DeepSeek-AI 2024, arXiv:2412.19437, section 3.2.1 and table 2"
_ROWS = (
    Schedule(
        name=words.Schedule.GPIPE.value,
        bubble=lambda x: bubble_1f1b(x.p, x.F, x.B, x.W),
        in_flight=lambda x: in_flight_gpipe(x.m),
        source=f"Huang et al. 2019, arXiv:1811.06965, section 2.3; {SC21}.1",
        aliases=("afab", "all-forward-all-backward"),
    ),
    Schedule(
        name=words.Schedule.ONE_F_ONE_B.value,
        bubble=lambda x: bubble_1f1b(x.p, x.F, x.B, x.W),
        in_flight=lambda x: in_flight_1f1b(x.p, x.s),
        source=SC21,
        aliases=("pipedream-flush", "one-forward-one-backward"),
    ),
    Schedule(
        name=words.Schedule.INTERLEAVED.value,
        bubble=lambda x: bubble_interleaved(x.p, x.v, x.F, x.B, x.W),
        in_flight=lambda x: in_flight_interleaved(x.p, x.v, x.s),
        source=f"{SC21}; in flight: Megatron-LM's warm-up count, on stage 0 that of Korthikanti et"
        " al. 2022, arXiv:2205.05198, section 4.2.3",
        aliases=("interleaved-1f1b", "virtual-pipeline", "1f1b-i"),
        chunks=None,
    ),
    Schedule(
        name=words.Schedule.ZB_1P.value,
        bubble=lambda x: bubble_zb_h1(x.p, x.F, x.B, x.W, x.barrier),
        in_flight=lambda x: in_flight_zb_h1(x.p, x.s, x.k),
        source=f"{ZERO_BUBBLE}, table 2 (ZB-H1)",
        aliases=("zb-h1", "zb1p"),
        split_backward=True,
    ),
    Schedule(
        name=words.Schedule.ZB_2P.value,
        bubble=lambda x: bubble_zb_h2(x.p, x.F, x.B, x.W, x.k, x.barrier),
        in_flight=lambda x: in_flight_zb_h2(x.p, x.s, x.k),
        source=f"{ZERO_BUBBLE}, table 2 (ZB-H2)",
        aliases=("zb-h2", "zb2p"),
        split_backward=True,
    ),
    Schedule(
        name=words.Schedule.ZB_V.value,
        bubble=lambda x: bubble_zb_v(x.p, x.F, x.B, x.W),
        in_flight=lambda x: in_flight_zb_v(x.p),
        source=f"{ZERO_BUBBLE}, section 6; {EQUAL_PASSES}",
        aliases=("zbv", "v-zb"),
        chunks=2,
        split_backward=True,
        placement="vee",
    ),
    Schedule(
        name=words.Schedule.V_HALF.value,
        bubble=lambda x: bubble_v_half(x.p, x.m, x.F, x.B, x.W),
        in_flight=lambda x: in_flight_v_half(x.p),
        source=EQUAL_PASSES,
        chunks=2,
        split_backward=True,
        placement="vee",
    ),
    Schedule(
        name=words.Schedule.V_MIN.value,
        bubble=lambda x: bubble_v_min(x.p, x.m, x.F, x.B, x.W),
        in_flight=lambda x: in_flight_v_min(x.p),
        source=EQUAL_PASSES,
        chunks=2,
        split_backward=True,
        placement="vee",
    ),
    Schedule(
        name=words.Schedule.DUALPIPE.value,
        bubble=lambda x: bubble_dualpipe(x.p, x.F, x.B, x.W),
        in_flight=lambda x: in_flight_dualpipe(x.p),
        source=DEEPSEEK_V3,
        split_backward=True,
        placement="mirror",
        weight_copies=2,
    ),
    Schedule(
        name=words.Schedule.DUALPIPE_V.value,
        bubble=lambda x: bubble_dualpipe_v(x.p, x.F, x.B, x.W),
        in_flight=lambda x: in_flight_dualpipe_v(x.p),
        source=f"{DEEPSEEK_V3}, with two of its stages on each device",
        aliases=("dualpipev", "cut-in-half"),
        chunks=2,
        split_backward=True,
        placement="vee",
    ),
)
SCHEDULES: dict[str, Schedule] = {row.name: row for row in _ROWS}
# one direction's all-to-all runs beside the other's compute (DeepSeek-V3, section 3.2.1)
DUALPIPES = tuple(row.code for row in _ROWS if row.name.startswith("dualpipe"))

_COPIES = np.array([row.weight_copies for row in _ROWS])
_CODES = {alias: row.code for row in _ROWS for alias in (row.name, *row.aliases)}


def schedule_code(name: str | Column | Sequence[str]) -> int | Array:
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


def _by_schedule(
    schedule: str | Column, symbols: Passes | Stage, formula: Callable[[Schedule], Column]
) -> Array:
    """Each case by the formula of its own schedule; only formulas of schedules that occur run."""
    code = np.asarray(schedule_code(schedule))
    occur = np.flatnonzero(np.bincount(code.ravel(), minlength=len(_ROWS)))
    values = [formula(_ROWS[i]) for i in occur]
    shape = np.broadcast_shapes(code.shape, *(np.shape(symbol) for symbol in symbols))
    if len(occur) == 1:
        return np.broadcast_to(values[0], shape)
    return np.broadcast_to(np.select([code == i for i in occur], values), shape)


def bubble_time(
    schedule: str | Column,
    pp: Column,
    vpp: Column,
    m: Column,
    t_forward: Column,
    t_backward: Column,
    t_weight: Column,
    *,
    weight_saved: Column = 1.0,
    barrier: Truth = False,
) -> Column:
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
    weight_saved : float or array, default 1
        Share of a micro-batch's activations that a weight gradient still needs (see
        `weight_saved`); zb-2p alone uses it.
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
    passes = Passes(
        p=pp,
        v=vpp,
        m=m,
        F=t_forward,
        B=t_backward - t_weight,
        W=t_weight,
        k=weight_saved,
        barrier=barrier,
    )
    idle = _by_schedule(schedule, passes, lambda row: row.bubble(passes))
    return np.where(pp > 1, idle, 0.0)[()]


def in_flight(
    schedule: str | Column,
    pp: Column,
    vpp: Column,
    m: Column,
    stage: Column = 0,
    weight_saved: Column = 1.0,
) -> Column:
    """Micro-batches whose activations a device holds at its peak, in units of its whole share of
    layers. [micro-batches]

    Parameters
    ----------
    schedule, pp, vpp, m, weight_saved
        As for `bubble_time`.
    stage : int or array, default 0
        Device along the pipeline, from 0; negative counts from the end (−1 is the last device).

    Notes
    -----
    Never above m; 1 with a single stage. A micro-batch counts in full from the start of its forward
    to the end of its backward and, where weight gradients are passes of their own, with
    weight_saved until the end of those.

    References
    ----------
    `SCHEDULES[name].in_flight` and `.source`.
    """
    stage = np.where(np.less(stage, 0), pp + stage, stage)
    at = Stage(p=pp, v=vpp, m=m, s=stage, k=weight_saved)
    in_flight = _by_schedule(schedule, at, lambda row: row.in_flight(at))
    return np.minimum(np.where(pp > 1, in_flight, 1.0), m)[()]


def weight_saved(hidden: Column, heads: Column, seq_len: Column, flash: Truth = True) -> Column:
    """Share of a layer's saved activations that its weight gradients still need once the input
    gradients are done. [share]

    32·s·b·h of the 34·s·b·h + 5·a·s²·b that a GPT layer saves; the second term (attention scores,
    dropout) is gone with flash attention or recomputed attention. Source: Qi et al. 2023, table 1;
    Korthikanti et al. 2022, section 4.1.
    """
    return (32.0 / (34.0 + np.where(flash, 0.0, 5.0 * heads * seq_len / hidden)))[()]


def weight_copies(schedule: str | Column) -> Array:
    """Copies of each weight that one pipeline holds: 2 for dualpipe, 1 otherwise. [copies]
    DeepSeek-AI 2024, table 2."""
    return _COPIES[schedule_code(schedule)]


@record
class Division:
    """How the layers of columns of plans are divided over a pipeline."""

    pp: Column
    vpp: Column
    m: Column  # micro-batches a step
    layers: Column
    ends: int = 2  # for how many layers embedding and head stand


@record
class Rule:
    """One legality rule: for which schedules, what it says, whose rule it is, and where columns of
    plans keep it."""

    schedules: Lines
    text: str
    source: str
    holds: Callable[[Division], Truth]


def every_part_has_a_layer(plan: Division) -> Truth:
    """layers + ends ≥ pp·vpp, where a pipeline has parts between its ends."""
    parts = plan.pp * plan.vpp
    return plan.layers + np.where(parts > 2, plan.ends, 0) >= parts


RULES = (
    Rule(
        schedules=("gpipe", "1f1b", "zb-1p", "zb-2p", "dualpipe"),
        text="vpp must be 1 for this schedule",
        source="one model part per device and direction",
        holds=lambda plan: plan.vpp == 1,
    ),
    Rule(
        schedules=("zb-v", "v-half", "v-min", "dualpipe-v"),
        text="vpp must be 2 for a V-shaped schedule",
        source="arXiv:2401.10241, section 6",
        holds=lambda plan: plan.vpp == 2,
    ),
    Rule(
        schedules=("interleaved",),
        text="interleaved needs vpp of at least 2",
        source=SC21,
        holds=lambda plan: plan.vpp >= 2,
    ),
    Rule(
        schedules=("interleaved",),
        text="interleaved needs micro-batches per step divisible by pp",
        source=f"{SC21}; asserted by Megatron-LM",
        holds=lambda plan: plan.m % plan.pp == 0,
    ),
    Rule(
        schedules=("dualpipe",),
        text="dualpipe needs an even pp",
        source=DEEPSEEK_V3,
        holds=lambda plan: plan.pp % 2 == 0,
    ),
    Rule(
        schedules=("dualpipe",),
        text="dualpipe needs an even number of micro-batches",
        source=DEEPSEEK_V3,
        holds=lambda plan: plan.m % 2 == 0,
    ),
    Rule(
        schedules=("dualpipe", "dualpipe-v"),
        text="dualpipe needs at least 2·pp micro-batches",
        source="asserted by DeepSeek's DualPipe code",
        holds=lambda plan: plan.m >= 2 * plan.pp,
    ),
    Rule(
        schedules=tuple(name for name in SCHEDULE_NAMES if name not in ("gpipe", "1f1b")),
        text="this schedule needs pp of at least 2",
        source="one stage has nothing to reorder",
        holds=lambda plan: plan.pp >= 2,
    ),
    Rule(
        schedules=SCHEDULE_NAMES,
        text="every model part needs a layer, the embedding and the head counting as one each:"
        " layers + 2 ≥ pp·vpp; in a pattern every part has a layer of its own",
        source="Megatron-LM and torchtitan refuse empty parts; Llama 3 gives its first and last a"
        " layer less (arXiv:2407.21783, section 3.3.2); Megatron-Core's stack of a pattern is built"
        " of the blocks of its segment",
        holds=every_part_has_a_layer,
    ),
)
_CONCERNED = np.array([[name in rule.schedules for name in SCHEDULE_NAMES] for rule in RULES])


def violations(
    schedule: str | Column, pp: Column, vpp: Column, m: Column, layers: Column
) -> dict[str, Array]:
    """Where each legality rule is broken: {rule text: boolean array}, only rules that some plan
    breaks."""
    code = schedule_code(schedule)
    plan = Division(pp=pp, vpp=vpp, m=m, layers=layers)
    broken = {
        rule.text: concerned[code] & ~np.asarray(rule.holds(plan))
        for rule, concerned in zip(RULES, _CONCERNED)
    }
    return {text: bad for text, bad in broken.items() if np.any(bad)}


def stage_layers(
    layers: Column, pp: Column, first_less: Column = 0, last_less: Column = 0
) -> tuple[Column, Column, Column]:
    """Layers on the first, the fullest middle and the last stage, as even as whole layers allow,
    for columns of plans. [layers, (first, middle, last)]

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
