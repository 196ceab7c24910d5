"""Answers for the rows of post-training tables."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scantling.base.columns import Array, Column
from scantling.base.records import record

from .constants import Constants, constants
from .policy import phases
from .policy_tables import PolicyRows, read_policy_rows
from .tuning import held, spent, weights_sent_s
from .tuning_cases import Rows, read_rows

GB = 1e9
COLUMNS = (
    "id",
    "step_s",
    "step_s_low",
    "step_s_high",
    "tokens_per_s_per_device",
    "peak_memory_gb",
    "peak_memory_gb_low",
    "peak_memory_gb_high",
    "fits",
    "rollout_s",
    "train_s",
    "logprob_s",
    "weight_sync_s",
    "assumed",
    "error",
)
# settings whose guess moves the step by more than an interval's half width
DECISIVE = ("recompute", "mean_length", "micro_batch", "effort")


@record
class TuningAnswers:
    """What is predicted of the rows that have a case, a column each."""

    step_s: Array
    low: Array  # of the step, times
    high: Array
    tokens_per_s_per_device: Array
    peak_bytes: Array
    capacity_bytes: Array
    sync_s: Array


def tuning_answers(rows: Rows, k: Constants) -> TuningAnswers | None:
    """Step and memory of fine-tuning rows; None where no row has a case."""
    c, t = rows.cases, rows.tuning
    if c is None or t is None:
        return None
    n = int(rows.ready.sum())

    def column(value: Column) -> Array:
        return np.broadcast_to(np.asarray(value, float), n)

    step, memory, sync = (
        column(spent(c, t, k).total),
        held(c, t, k),
        column(weights_sent_s(c, t, k)),
    )
    tokens = column(c.job.global_batch * c.job.seq_len / c.devices)
    notes = [text for text, ready in zip(rows.assumed, rows.ready) if ready]
    guessed = np.array([any(f"{name}=" in text for name in DECISIVE) for text in notes])
    wider = np.where(guessed, k.assumed_wider, 1.0)
    return TuningAnswers(
        step_s=step,
        low=1 / k.high_speed**wider,
        high=1 / k.low_speed**wider,
        tokens_per_s_per_device=tokens / (step + sync),
        peak_bytes=column(memory.total),
        capacity_bytes=column(memory.capacity),
        sync_s=sync,
    )


def tuning_columns(
    table: Sequence[Mapping[str, str]], k: Constants | None = None
) -> dict[str, Array]:
    """The columns of COLUMNS for a fine-tuning table: nan, or "" in text, where a row has none."""
    k, rows = k or constants(), read_rows(table)
    out = {name: np.full(len(table), np.nan) for name in COLUMNS}
    out["fits"] = np.full(len(table), "", object)
    answers = tuning_answers(rows, k)
    if answers is not None:
        at = rows.ready
        out["step_s"][at] = answers.step_s
        out["step_s_low"][at] = answers.step_s * answers.low
        out["step_s_high"][at] = answers.step_s * answers.high
        out["tokens_per_s_per_device"][at] = answers.tokens_per_s_per_device
        out["weight_sync_s"][at] = np.where(answers.sync_s > 0, answers.sync_s, np.nan)
        out["train_s"][at] = answers.step_s
        out["peak_memory_gb"][at] = answers.peak_bytes / GB
        out["peak_memory_gb_low"][at] = answers.peak_bytes * k.low_peak / GB
        out["peak_memory_gb_high"][at] = answers.peak_bytes * k.high_peak / GB
        fits = answers.peak_bytes <= answers.capacity_bytes
        out["fits"][at] = np.where(fits, "true", "false")
    out["id"] = np.array(rows.ids, object)
    out["assumed"] = np.array(rows.assumed, object)
    out["error"] = np.array(rows.errors, object)
    return out


@record
class PolicyAnswers:
    """What is predicted of the policy rows that have a case, a column each."""

    step_s: Array
    low: Array  # of the step, times
    high: Array
    rollout_s: Array
    train_s: Array
    logprob_s: Array
    sync_s: Array
    tokens_per_s_per_device: Array  # prompts and responses, over all devices


def policy_answers(rows: PolicyRows, k: Constants) -> PolicyAnswers | None:
    """Steps of policy rows by phase; None where no row has a case."""
    c, e, d, p = rows.cases, rows.engine, rows.drawn, rows.policy
    if c is None or e is None or d is None or p is None:
        return None
    n = int(rows.ready.sum())

    def column(value: Column) -> Array:
        return np.broadcast_to(np.asarray(value, float), n)

    spread = replace(d, spread=k.length_spread)
    times, _ = phases(c, e, spread, p, k)
    step = column(times.total)
    notes = [text for text, ready in zip(rows.assumed, rows.ready) if ready]
    guessed = np.array(["mean_response=" in text for text in notes])
    wider = np.where(guessed, k.assumed_wider, 1.0)
    devices = column(np.where(p.colocated > 0, c.devices, c.devices + p.replicas * e.devices))
    tokens = column(d.samples * p.replicas * (d.prompt + d.response))
    return PolicyAnswers(
        step_s=step,
        low=k.low_policy**wider,
        high=k.high_policy**wider,
        rollout_s=column(times.rollout),
        train_s=column(times.updates),
        logprob_s=column(times.logprobs),
        sync_s=column(times.sync),
        tokens_per_s_per_device=tokens / step / devices,
    )


def policy_columns(
    table: Sequence[Mapping[str, str]], k: Constants | None = None
) -> dict[str, Array]:
    """The columns of COLUMNS for a table of policy training."""
    k = k or constants()
    rows = read_policy_rows(table, k)
    out = {name: np.full(len(table), np.nan) for name in COLUMNS}
    out["fits"] = np.full(len(table), "", object)
    answers = policy_answers(rows, k)
    if answers is not None:
        at = rows.ready
        out["step_s"][at] = answers.step_s
        out["step_s_low"][at] = answers.step_s * answers.low
        out["step_s_high"][at] = answers.step_s * answers.high
        out["rollout_s"][at] = answers.rollout_s
        out["train_s"][at] = answers.train_s
        out["logprob_s"][at] = answers.logprob_s
        out["weight_sync_s"][at] = answers.sync_s
        out["tokens_per_s_per_device"][at] = answers.tokens_per_s_per_device
    out["id"] = np.array(rows.ids, object)
    out["assumed"] = np.array(rows.assumed, object)
    out["error"] = np.array(rows.errors, object)
    return out


POLICY = {"prompts_per_step", "samples_per_prompt", "devices_rollout"}  # columns of such a table
TUNING = {"method", "lora_rank", "base_weight_bits"}


def answer(rows: Sequence[Mapping[str, str]]) -> dict[str, Array] | None:
    """The answers for a table of fine-tuning or of policy training, known by its columns; None for
    any other."""
    names = set(rows[0]) if rows else set()
    if names >= POLICY:
        return policy_columns(rows)
    return tuning_columns(rows) if names >= TUNING else None
