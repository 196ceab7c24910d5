"""Answers for the rows of post-training tables."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from scantling.base.columns import Array, Column
from scantling.base.records import Lines, record
from scantling.base.units import GB

from .constants import Constants, constants
from .policy import phases
from .policy_tables import PolicyRows, read_policy_rows
from .tuning import held, spent, weights_sent_s
from .tuning_cases import Rows, read_rows

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
DECISIVE_OF_A_POLICY = ("mean_response",)


def wider(rows: Rows | PolicyRows, decisive: Lines, k: Constants) -> Array:
    """The power to which both ends of an interval are raised: `assumed_wider` where one of the
    decisive settings of a row had to be guessed, else one."""
    notes = [text for text, ready in zip(rows.assumed, rows.ready) if ready]
    guessed = np.array([any(f"{name}=" in text for name in decisive) for text in notes])
    return np.where(guessed, k.assumed_wider, 1.0)


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
    column = partial(_column, n=int(rows.ready.sum()))
    step, sync = column(spent(c, t, k).total), column(weights_sent_s(c, t, k))
    memory = held(c, t, k)
    power = wider(rows, DECISIVE, k)
    return TuningAnswers(
        step_s=step,
        low=1 / k.high_speed**power,
        high=1 / k.low_speed**power,
        tokens_per_s_per_device=column(c.job.global_batch * c.job.seq_len / c.devices)
        / (step + sync),
        peak_bytes=column(memory.total),
        capacity_bytes=column(memory.capacity),
        sync_s=sync,
    )


def tuning_columns(table: Sequence[Mapping[str, str]]) -> dict[str, Array]:
    """The columns of COLUMNS for a fine-tuning table."""
    k, rows = constants(), read_rows(table)
    answers = tuning_answers(rows, k)
    if answers is None:
        return _columns(rows, {})
    fits = answers.peak_bytes <= answers.capacity_bytes
    return _columns(
        rows,
        {
            "step_s": answers.step_s,
            "step_s_low": answers.step_s * answers.low,
            "step_s_high": answers.step_s * answers.high,
            "tokens_per_s_per_device": answers.tokens_per_s_per_device,
            "weight_sync_s": np.where(answers.sync_s > 0, answers.sync_s, np.nan),
            "train_s": answers.step_s,
            "peak_memory_gb": answers.peak_bytes / GB,
            "peak_memory_gb_low": answers.peak_bytes * k.low_peak / GB,
            "peak_memory_gb_high": answers.peak_bytes * k.high_peak / GB,
            "fits": np.where(fits, "true", "false"),
        },
    )


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
    column = partial(_column, n=int(rows.ready.sum()))
    times, _ = phases(c, e, replace(d, spread=k.length_spread), p, k)
    step = column(times.total)
    power = wider(rows, DECISIVE_OF_A_POLICY, k)
    devices = column(np.where(p.colocated > 0, c.devices, c.devices + p.replicas * e.devices))
    tokens = column(d.samples * p.replicas * (d.prompt + d.response))
    return PolicyAnswers(
        step_s=step,
        low=k.low_policy**power,
        high=k.high_policy**power,
        rollout_s=column(times.rollout),
        train_s=column(times.updates),
        logprob_s=column(times.logprobs),
        sync_s=column(times.sync),
        tokens_per_s_per_device=tokens / step / devices,
    )


def policy_columns(table: Sequence[Mapping[str, str]]) -> dict[str, Array]:
    """The columns of COLUMNS for a table of policy training."""
    k = constants()
    rows = read_policy_rows(table, k)
    answers = policy_answers(rows, k)
    if answers is None:
        return _columns(rows, {})
    return _columns(
        rows,
        {
            "step_s": answers.step_s,
            "step_s_low": answers.step_s * answers.low,
            "step_s_high": answers.step_s * answers.high,
            "rollout_s": answers.rollout_s,
            "train_s": answers.train_s,
            "logprob_s": answers.logprob_s,
            "weight_sync_s": answers.sync_s,
            "tokens_per_s_per_device": answers.tokens_per_s_per_device,
        },
    )


def _column(value: Column, n: int) -> Array:
    """A number of n cases as their column."""
    return np.broadcast_to(np.asarray(value, float), n)


def _columns(rows: Rows | PolicyRows, answers: Mapping[str, Array]) -> dict[str, Array]:
    """The columns of COLUMNS with what is answered of the ready rows: nan, or "" in text, where a
    row has none."""
    out = {name: np.full(len(rows.ids), np.nan) for name in COLUMNS}
    out["fits"] = np.full(len(rows.ids), "", object)
    for name, column in answers.items():
        out[name][rows.ready] = column
    return out | {
        "id": np.array(rows.ids, object),
        "assumed": np.array(rows.assumed, object),
        "error": np.array(rows.errors, object),
    }


POLICY = {"prompts_per_step", "samples_per_prompt", "devices_rollout"}  # columns of such a table
TUNING = {"method", "lora_rank", "base_weight_bits"}


def answer(rows: Sequence[Mapping[str, str]]) -> dict[str, Array] | None:
    """The answers for a table of fine-tuning or of policy training, known by its columns; None for
    any other."""
    names = set(rows[0]) if rows else set()
    if names >= POLICY:
        return policy_columns(rows)
    return tuning_columns(rows) if names >= TUNING else None
