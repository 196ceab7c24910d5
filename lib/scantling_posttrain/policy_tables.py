"""Rows of policy-training tables as cases: trainer, engine, samples and what joins them."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scantling import catalogue
from scantling.base.columns import Array
from scantling.base.errors import DesignError
from scantling.base.records import record
from scantling.physics.cases import Cases
from scantling.runs.read import checked
from scantling.runs.run_table import table_of_cells
from scantling.runs.to_cases import to_runs

from .constants import Constants
from .engine import engine_of
from .names import model_id
from .policy import BROADCAST, IPC, Policy
from .rollout import Drawn, Engine
from .tuning_cases import Cells, number, precision_of, sharding_of, stack_of, text

PROMPT = 130.0  # tokens of a question with its instruction, where none is printed (judgement)
SHARE_OF_CAP = 0.2  # of the longest response that the mean one has, where none is printed,
MOST_ASSUMED = 2000.0  # and no more tokens than this (judgement: long caps are rarely reached)
UNIT = 256.0  # tokens that a packed row is a multiple of, so that any cp divides it
ACTOR_TOKENS = 16_384.0  # of a micro-batch on a device where batches are filled by tokens (verl)
FRACTION = 0.6  # of a device's memory that a colocated engine takes: recipes of verl and NeMo-RL
FRACTION_ALONE = 0.8  # of a device of its own: recipes of NeMo-RL


@record
class PolicyRow:
    """One row: cells of the core's table, and numbers beside it."""

    cells: dict[str, str]
    numbers: dict[str, float]
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


def read_policy_row(row: Cells, k: Constants) -> PolicyRow:
    """A row of a policy-training table."""
    assumed: list[str] = []
    notes, framework = row.get("notes", "").lower(), row.get("framework", "").lower()
    prompts, each = number(row, "prompts_per_step"), number(row, "samples_per_prompt", 1.0)
    samples = prompts * each
    prompt, response, longest = lengths(row, assumed)
    train = number(row, "devices_train", number(row, "devices_total"))
    rollout = number(row, "devices_rollout", train)
    colocated = row.get("colocated", "yes") != "no"
    how = row.get("sync_or_async", "sync").lower()
    lag = 0.0 if how.startswith("sync") else 1.0
    if not model_id(row.get("model", "")):
        return refused(row, f"model {row.get('model', '')!r} is in no catalogue")
    if np.isnan(samples) or np.isnan(response) or np.isnan(train):
        return refused(row, "no prompts, samples, lengths or devices: none is guessed")
    updates = updates_of(row, samples)
    spread = k.length_spread
    pack = UNIT * np.ceil(max(longest + prompt, 4096.0) / UNIT)
    mean = prompt + response
    sequences = samples / updates * mean / pack
    fsdp = re.search(r"fsdp (\d+)", row.get("train_sharding", ""))
    ulysses = re.search(r"ulysses sp (\d+)", row.get("train_sharding", ""))
    cp = float(ulysses[1]) if ulysses else number(row, "train_cp", 1.0)
    tp, pp = number(row, "train_tp", 1.0), number(row, "train_pp", 1.0)
    recompute = row.get("train_recompute", "") or ("full" if fsdp else "none")
    dp = max(train / (tp * pp * cp), 1.0)
    each_micro = micro_batch(row, cp, pack, sequences / dp)
    slots = dp * each_micro * max(round(sequences / dp / each_micro), 1)
    algorithm = row.get("algorithm", "").upper()
    rollout_tp = number(row, "rollout_tp", 1.0)
    nemo = "nemo" in framework
    cells = {
        "id": row.get("id", ""),
        "model": model_id(row.get("model", "")),
        "accelerator": row.get("accelerator", ""),
        "n_devices": text(train),
        "seq_len": text(round(pack)),
        "precision": precision_of({"precision": row.get("precision_train", "")}),
        "tp": text(tp),
        "pp": text(pp),
        "cp": text(cp),
        "ep": text(number(row, "train_ep", 1.0)),
        "sharding": sharding_of({"sharding": row.get("train_sharding", "")}),
        "recompute": recompute,
        "micro_batch": text(each_micro),
        "global_batch_seqs": text(slots),
        "stack": stack_of(row).id if "fsdp" not in framework else "torchtitan",
        "half_states": "0",
        "offload": "none",
        "published": row.get("published", ""),
        "document_tokens": text(round(mean * np.exp(spread**2))),
        "ulysses_sp": ulysses[1] if ulysses else "",
    }
    numbers = {
        "samples": samples * rollout_tp / rollout,
        "per_prompt": each,
        "prompt": prompt,
        "response": response,
        "longest": longest,
        "replicas": rollout / rollout_tp,
        "rollout_tp": rollout_tp,
        "updates": updates * sequences / slots,
        "lag": lag,
        "colocated": float(colocated),
        "forwards": 2.0 if nemo or "kl" in notes else 1.0,
        "critic": float(
            "PPO" in algorithm and "NO CRITIC" not in algorithm and "DECOUPLED" not in algorithm
        ),
        "path": float(IPC if colocated else BROADCAST),
        "environment_s": 0.0,
        "redraw": redraw_of(notes, k),
        "away": float("offload parameters" in notes or "offload true" in notes),
        "fraction": FRACTION if colocated else FRACTION_ALONE,
        "narrow": 1.0 if "fp8" in row.get("precision_rollout", "").lower() else 2.0,
        "pack": pack,
    }
    return PolicyRow(cells=cells, numbers=numbers, assumed=assumed, error="")


def refused(row: Cells, error: str) -> PolicyRow:
    """A row that cannot be computed."""
    return PolicyRow(
        cells={"accelerator": "", "id": row.get("id", "")}, numbers={}, assumed=[], error=error
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
    kept = [one for one, error in zip(good, runs.errors) if not error]
    x = {name: np.array([one.numbers[name] for one in kept]) for name in kept[0].numbers}
    c = runs.cases
    assert c is not None
    flops = np.where(x["narrow"] < 2, 2.0 * c.chip.bf16_flops, c.chip.bf16_flops)
    engine = engine_of(
        c.shape,
        c.chip,
        devices=x["rollout_tp"],
        domain=c.link.domain,
        narrow=x["narrow"],
        fraction=x["fraction"],
        flops=flops,
    )
    drawn = Drawn(
        samples=x["samples"],
        per_prompt=x["per_prompt"],
        prompt=x["prompt"],
        response=x["response"],
        longest=x["longest"],
        replicas=x["replicas"],
        spread=k.length_spread,
    )
    policy = Policy(
        updates=x["updates"],
        lag=x["lag"],
        colocated=x["colocated"],
        forwards=x["forwards"],
        critic=x["critic"],
        path=x["path"].astype(int),
        replicas=x["replicas"],
        environment_s=x["environment_s"],
        redraw=x["redraw"],
        away=x["away"],
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


def with_chip(row: PolicyRow) -> PolicyRow:
    """The row with the catalogue's id of its chip."""
    if row.error:
        return row
    try:
        cells = row.cells | {"accelerator": catalogue.accelerator(row.cells["accelerator"]).id}
        return PolicyRow(cells=cells, numbers=row.numbers, assumed=row.assumed, error=row.error)
    except DesignError as error:
        return PolicyRow(
            cells=row.cells,
            numbers=row.numbers,
            assumed=row.assumed,
            error=row.error or str(error)[:200],
        )
