"""Rows of policy-training tables as cases: trainer, engine, samples and what joins them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scantling import catalogue
from scantling.base.columns import Array, Column
from scantling.base.errors import DesignError
from scantling.base.records import record
from scantling.physics.cases import Cases
from scantling.runs.normalise import cell_of
from scantling.runs.read import checked
from scantling.runs.run_table import table_of_cells
from scantling.runs.to_cases import to_runs

from .constants import Constants
from .engine import COLOCATED, ON_ITS_OWN, engine_of
from .names import model_id
from .policy import BROADCAST, IPC, ROW_UNIT, Policy
from .rollout import Drawn, Engine
from .tuning_cases import Cells, number, precision_of, sharding_of, stack_of

PROMPT = 130.0  # tokens of a question with its instruction, where none is printed (judgement)
SHARE_OF_CAP = 0.2  # of the longest response that the mean one has, where none is printed,
MOST_ASSUMED = 2000.0  # and no more tokens than this (judgement: long caps are rarely reached)
ACTOR_TOKENS = 16_384.0  # of a micro-batch on a device where batches are filled by tokens (verl)


@record
class StepNumbers:
    """What the phases of a step are made of beside its trainer: of one row, or a column of rows."""

    samples: Column  # that a replica of the engine draws
    per_prompt: Column
    prompt: Column  # tokens
    response: Column  # tokens, on average
    longest: Column  # tokens
    replicas: Column  # of the engine
    rollout_tp: Column
    updates: Column
    lag: Column  # steps
    colocated: Column
    forwards: Column  # log-probability passes
    critic: Column
    path: Column  # of the weights, in PATHS
    environment_s: Column
    redraw: Column
    away: Column
    fraction: Column  # of a device's memory that the engine takes
    narrow: Column  # bytes of a weight of the engine


@record
class PolicyRow:
    """One row: cells of the core's table, and numbers beside it; none of a row that cannot be
    computed."""

    cells: dict[str, str]
    numbers: StepNumbers | None
    assumed: list[str]
    error: str


def lengths(row: Cells, assumed: list[str]) -> tuple[float, float, float]:
    """(prompt, mean response, longest response) in tokens; what is not printed is assumed."""
    drawn = number(row, "prompts_per_step") * number(row, "samples_per_prompt")
    total = number(row, "mean_total_tokens_per_sample")
    if np.isnan(total):
        total = number(row, "tokens_per_step") / drawn
    response, prompt = number(row, "mean_response_tokens"), number(row, "mean_prompt_tokens")
    if np.isnan(prompt):
        prompt = total - response if total > response else PROMPT
    longest = number(row, "max_response_tokens", number(row, "max_total_tokens") - prompt)
    if np.isnan(response):
        response = total - prompt if total > prompt else min(SHARE_OF_CAP * longest, MOST_ASSUMED)
        if not total > prompt:
            assumed.append(f"mean_response={response:g} (not printed)")
    if np.isnan(longest):
        longest = 4 * response
        assumed.append(f"max_response={longest:g} (not printed)")
    return prompt, response, longest


def updates_of(row: Cells, samples: float) -> float:
    """Optimizer steps on the samples of one generation: samples / batch of an update. verl's batch
    is counted in prompts (ppo_mini_batch_size x n samples)."""
    words = re.search(r"= (\d+) updates", row.get("notes", ""))
    if words:
        return float(words[1])
    batch = number(row, "train_global_batch")
    return max(round(samples / batch), 1) if batch > 0 else 1.0


def redraw_of(notes: str, k: Constants) -> float:
    """Samples that dynamic sampling draws over those it trains on: the generation's batch over the
    trained one where the words give both (`gen batch 3x512`)."""
    if "filter_groups" not in notes:
        return 1.0
    words = re.search(r"gen batch (\d+)x", notes)
    return float(words[1]) if words else k.redraw


def micro_batch(row: Cells, cp: float, pack: float, most: float) -> float:
    """Sequences of a micro-batch: one, or as many as fill the tokens that a device takes."""
    if "verl" not in row.get("framework", "").lower():
        return 1.0
    words = re.search(r"actor (\d+)k", row.get("notes", "").lower())
    tokens = float(words[1]) * 1024 if words else ACTOR_TOKENS
    return max(min(round(tokens * cp / pack), int(most)), 1.0)


class Sampling(NamedTuple):
    """What a row prints of one generation, and of the devices of a step."""

    prompts: float
    per_prompt: float
    prompt: float  # tokens
    response: float  # tokens, on average
    longest: float  # tokens
    train_devices: float
    rollout_devices: float
    colocated: bool

    @property
    def samples(self) -> float:
        """Of one generation."""
        return self.prompts * self.per_prompt

    @property
    def mean(self) -> float:
        """Tokens of a sample."""
        return self.prompt + self.response

    @property
    def packed(self) -> float:
        """Tokens of a row that samples are packed into."""
        return float(ROW_UNIT * np.ceil(max(self.longest + self.prompt, 4096.0) / ROW_UNIT))


def sampling_of(row: Cells, assumed: list[str]) -> Sampling:
    """What a row prints of its samples and devices; lengths that it does not print are assumed."""
    prompt, response, longest = lengths(row, assumed)
    train = number(row, "devices_train", number(row, "devices_total"))
    return Sampling(
        prompts=number(row, "prompts_per_step"),
        per_prompt=number(row, "samples_per_prompt", 1.0),
        prompt=prompt,
        response=response,
        longest=longest,
        train_devices=train,
        rollout_devices=number(row, "devices_rollout", train),
        colocated=row.get("colocated", "yes") != "no",
    )


class Batches(NamedTuple):
    """The samples of an update as packed rows on the trainer's ranks."""

    tp: float
    pp: float
    cp: float
    micro_batch: float  # packed rows
    sequences: float  # packed rows of an update
    slots: float  # as many, and those left empty: every rank takes whole micro-batches

    @classmethod
    def of(cls, row: Cells, sampling: Sampling, updates: float) -> "Batches":
        """The batches of a row that updates so often on one generation."""
        ulysses = ulysses_of(row)
        tp, pp = number(row, "train_tp", 1.0), number(row, "train_pp", 1.0)
        cp = float(ulysses) if ulysses else number(row, "train_cp", 1.0)
        sequences = sampling.samples / updates * sampling.mean / sampling.packed
        dp = max(sampling.train_devices / (tp * pp * cp), 1.0)
        size = micro_batch(row, cp, sampling.packed, sequences / dp)
        slots = dp * size * max(round(sequences / dp / size), 1)
        return cls(tp, pp, cp, size, sequences, slots)


def ulysses_of(row: Cells) -> str:
    """Ranks that a row's trainer splits heads over, as printed; "" where it does not."""
    words = re.search(r"ulysses sp (\d+)", row.get("train_sharding", ""))
    return words[1] if words else ""


def read_policy_row(row: Cells, k: Constants) -> PolicyRow:
    """A row of a policy-training table."""
    assumed: list[str] = []
    sampling = sampling_of(row, assumed)
    if not model_id(row.get("model", "")):
        return refused(row, f"model {row.get('model', '')!r} is in no catalogue")
    if np.isnan([sampling.samples, sampling.response, sampling.train_devices]).any():
        return refused(row, "no prompts, samples, lengths or devices: none is guessed")
    updates = updates_of(row, sampling.samples)
    batches = Batches.of(row, sampling, updates)
    return PolicyRow(
        cells=trainer_cells(row, sampling, batches, k),
        numbers=step_numbers(row, sampling, updates * batches.sequences / batches.slots, k),
        assumed=assumed,
        error="",
    )


def trainer_cells(row: Cells, sampling: Sampling, batches: Batches, k: Constants) -> dict[str, str]:
    """The trainer of a row, as a row of the core's table."""
    sharding = row.get("train_sharding", "")
    usual_recompute = "full" if re.search(r"fsdp (\d+)", sharding) else "none"
    fsdp = "fsdp" in row.get("framework", "").lower()
    return {
        "id": row.get("id", ""),
        "model": model_id(row.get("model", "")),
        "accelerator": row.get("accelerator", ""),
        "n_devices": cell_of(sampling.train_devices),
        "seq_len": cell_of(round(sampling.packed)),
        "precision": precision_of({"precision": row.get("precision_train", "")}),
        "tp": cell_of(batches.tp),
        "pp": cell_of(batches.pp),
        "cp": cell_of(batches.cp),
        "ep": cell_of(number(row, "train_ep", 1.0)),
        "sharding": sharding_of({"sharding": sharding}),
        "recompute": row.get("train_recompute", "") or usual_recompute,
        "micro_batch": cell_of(batches.micro_batch),
        "global_batch_seqs": cell_of(batches.slots),
        "stack": "torchtitan" if fsdp else stack_of(row).id,
        "half_states": "0",
        "offload": "none",
        "published": row.get("published", ""),
        "document_tokens": cell_of(round(sampling.mean * np.exp(k.length_spread**2))),
        "ulysses_sp": ulysses_of(row),
    }


def step_numbers(row: Cells, sampling: Sampling, updates: float, k: Constants) -> StepNumbers:
    """What the phases of a row's step are made of beside its trainer."""
    notes, algorithm = row.get("notes", "").lower(), row.get("algorithm", "").upper()
    nemo = "nemo" in row.get("framework", "").lower()
    no_critic = "NO CRITIC" in algorithm or "DECOUPLED" in algorithm
    tp = number(row, "rollout_tp", 1.0)
    return StepNumbers(
        samples=sampling.samples * tp / sampling.rollout_devices,
        per_prompt=sampling.per_prompt,
        prompt=sampling.prompt,
        response=sampling.response,
        longest=sampling.longest,
        replicas=sampling.rollout_devices / tp,
        rollout_tp=tp,
        updates=updates,
        lag=0.0 if row.get("sync_or_async", "sync").lower().startswith("sync") else 1.0,
        colocated=float(sampling.colocated),
        forwards=2.0 if nemo or "kl" in notes else 1.0,
        critic=float("PPO" in algorithm and not no_critic),
        path=float(IPC if sampling.colocated else BROADCAST),
        environment_s=0.0,
        redraw=redraw_of(notes, k),
        away=float("offload parameters" in notes or "offload true" in notes),
        fraction=COLOCATED if sampling.colocated else ON_ITS_OWN,
        narrow=1.0 if "fp8" in row.get("precision_rollout", "").lower() else 2.0,
    )


def refused(row: Cells, error: str) -> PolicyRow:
    """A row that cannot be computed."""
    return PolicyRow(
        cells={"accelerator": "", "id": row.get("id", "")}, numbers=None, assumed=[], error=error
    )


@record
class PolicyRows:
    """Rows of a policy-training table that can be computed, and what stopped the others."""

    ids: list[str]
    ready: Array
    cases: Cases | None
    engine: Engine | None
    drawn: Drawn | None
    policy: Policy | None
    assumed: list[str]
    errors: list[str]


def read_policy_rows(rows: Sequence[Cells], k: Constants) -> PolicyRows:
    """The rows of a policy-training table as cases."""
    read = [with_chip(read_policy_row(row, k)) for row in rows]
    errors, assumed = [one.error for one in read], ["; ".join(one.assumed) for one in read]
    ids = [row.get("id", "") for row in rows]
    good = [one for one in read if not one.error]
    if not good:
        empty = np.zeros(len(rows), bool)
        return PolicyRows(
            ids=ids,
            ready=empty,
            cases=None,
            engine=None,
            drawn=None,
            policy=None,
            assumed=assumed,
            errors=errors,
        )
    table = table_of_cells({name: [one.cells[name] for one in good] for name in good[0].cells})
    runs = to_runs(checked(table, Path()))
    at = [i for i, error in enumerate(errors) if not error]
    for i, error in zip(at, runs.errors):
        errors[i] = error
    ready = np.array([not error for error in errors], bool)
    x = columns_of([vars(one.numbers) for one, error in zip(good, runs.errors) if not error])
    c = runs.cases
    assert c is not None
    flops = np.where(x.narrow < 2, 2.0 * c.chip.bf16_flops, c.chip.bf16_flops)
    engine = engine_of(
        c.shape,
        c.chip,
        devices=x.rollout_tp,
        domain=c.link.domain,
        narrow=x.narrow,
        fraction=x.fraction,
        flops=flops,
    )
    drawn = Drawn(
        samples=x.samples,
        per_prompt=x.per_prompt,
        prompt=x.prompt,
        response=x.response,
        longest=x.longest,
        replicas=x.replicas,
        spread=k.length_spread,
    )
    policy = Policy(
        updates=x.updates,
        lag=x.lag,
        colocated=x.colocated,
        forwards=x.forwards,
        critic=x.critic,
        path=np.asarray(x.path, int),
        replicas=x.replicas,
        environment_s=x.environment_s,
        redraw=x.redraw,
        away=x.away,
    )
    return PolicyRows(
        ids=ids,
        ready=ready,
        cases=c,
        engine=engine,
        drawn=drawn,
        policy=policy,
        assumed=assumed,
        errors=errors,
    )


def columns_of(rows: Sequence[Mapping[str, float]]) -> StepNumbers:
    """The numbers of rows as columns."""
    return StepNumbers(**{name: np.array([row[name] for row in rows]) for name in rows[0]})


def with_chip(row: PolicyRow) -> PolicyRow:
    """The row with the catalogue's id of its chip."""
    if row.error:
        return row
    try:
        chip = catalogue.accelerator(row.cells["accelerator"]).id
    except DesignError as refusal:
        return replace(row, error=str(refusal)[:200])
    return replace(row, cells=row.cells | {"accelerator": chip})
