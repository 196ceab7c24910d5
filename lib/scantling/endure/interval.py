"""How often a job saves, checks itself against corruption, and how many copies it keeps."""

from typing import NamedTuple

import numpy as np

from ..base.columns import Column, some
from ..base.records import Assumed, get, value_or
from ..base.units import DAY_S, HOUR_S
from . import checkpoint
from .stated import Section

# a loss spike is noticed some 60 steps late (judgement) and rewound 100 (PaLM, arXiv 2204.02311
# s5.1): copies must reach back as far
SPIKE_STEPS = 160
KEEP_DAYS = 14.0
# no run is known that saved less often than BLOOM, every 3 h (Hugging Face, The Technology Behind
# BLOOM Training, 2022): what a rewind or an error of one's own loses comes on top of failures
LONGEST_S = 3 * HOUR_S
CHEAP = 100  # stalls apart, saves take a hundredth of the time: as far apart as that in any case


def chosen_interval(
    optimum_s: Column,
    stall_s: Column,
    durable_s: Column,
    constraints: Section,
    saves: Section,
    step_s: float,
) -> tuple[Column, str]:
    """(seconds between saves, what set it): the optimum, at most LONGEST_S where saves cost little,
    moved as far as it must be: one save in flight, then the ceilings; the wall time is unimodal in
    it, so the nearest point is best."""
    pinned = get(saves, "interval_s")
    if pinned is not None:
        return 0 * optimum_s + pinned, "checkpoint.interval_s"
    interval = np.maximum(optimum_s, step_s)
    by = "optimum"
    longest = np.maximum(LONGEST_S, CHEAP * stall_s)
    if some(interval > longest):
        interval = np.maximum(np.minimum(interval, longest), step_s)
        by = "longest interval of published runs (3 h)"
    lost_s = get(constraints, "max_lost_work_s")
    most = np.inf if lost_s is None else lost_s - stall_s - durable_s
    if some(interval > most):
        interval = np.minimum(interval, np.maximum(most, step_s))
        by = "constraints.max_lost_work_s"
    ceiling = get(constraints, "max_checkpoint_overhead")
    least = stall_s * (1 - ceiling) / ceiling if ceiling else 0.0
    if some(interval < least):
        interval = np.maximum(interval, least)
        by = "constraints.max_checkpoint_overhead"
    if some(interval < durable_s - stall_s):
        interval = np.maximum(interval, durable_s - stall_s)
        by = "one save in flight"
    return interval, by


def check_every(
    spec: Section, corruptions_per_s: Column, step_s: float, assumed: list[Assumed]
) -> Column:
    """Seconds between two checks against corruption, each a step run twice: as given, else those
    that cost least, sqrt(2 step / rate), at least once a day."""
    cheapest = np.sqrt(2 * step_s / np.maximum(corruptions_per_s, 1e-300))
    every: Column = value_or(
        get(spec, "sdc"),
        "reliability.sdc.check_every_s",
        np.clip(cheapest, step_s, max(DAY_S, step_s)),
        "where repeated steps and replays cost least: sqrt(2 x step / corruptions per s)",
        assumed,
    )
    return every


class Retention(NamedTuple):
    """Copies that stay on the store."""

    versions: Column  # the newest
    days: float  # one of each day, for so long


def copies(
    saves: Section,
    spacing_s: Column,
    check_every_s: Column,
    durable_s: Column,
    step_s: float,
    assumed: list[Assumed],
) -> Retention:
    """How many copies to keep, `spacing_s` apart: as given, else back past what is found late."""
    versions = checkpoint.retention(
        spacing_s,
        detection_latency_s=np.maximum(check_every_s, SPIKE_STEPS * step_s),
        durable_s=durable_s,
    )
    why = "back past a corruption found late and a loss spike (160 steps), one in flight"
    versions = value_or(saves, "checkpoint.keep_versions", versions, why, assumed)
    why = "judgement: a fortnight of daily copies for what nobody saw"
    days = value_or(saves, "checkpoint.keep_days", KEEP_DAYS, why, assumed)
    return Retention(versions=versions, days=days)
