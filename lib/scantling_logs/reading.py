"""What a log says of its run: figures with one unit and one convention, null where it is silent."""

import math
import re
from dataclasses import field

import numpy as np
from scantling.base.errors import plain
from scantling.base.records import Known, Record, record
from scantling.catalogue.models.entries import id_of, of_shape

from .found import NAN, Found, number
from .rows import spoken
from .steady import Steady, differences, steady

Count = int | None  # None: the log does not say
Word = str | None


@record
class Reading(Record):
    """What one log says of its run; None where it does not say. Seconds, tokens/s of one device,
    TFLOP/s of one device as printed, GiB."""

    file: str
    format: str
    framework: str
    steps: Count = None
    step_s: Known = None
    step_s_p10: Known = None
    step_s_p90: Known = None
    tokens_per_s_per_device: Known = None
    tflops_per_device: Known = None
    peak_memory_gb: Known = None
    accelerator: Word = None
    devices: Count = None
    nodes: Count = None
    model: Word = None
    seq_len: Count = None
    global_batch: Count = None
    micro_batch: Count = None
    tp: Count = None
    pp: Count = None
    vpp: Count = None
    cp: Count = None
    ep: Count = None
    dp: Count = None
    precision: Word = None
    release: Word = None
    restarts: Count = None
    goodput: Known = None
    badput: dict = field(default_factory=dict)  # shares of the wall clock by cause
    planned: dict = field(default_factory=dict)  # the same of the design (`beside`)
    oom: bool = False
    shape: dict = field(default_factory=dict)  # dimensions of the model
    collectives: tuple = ()
    kernels: dict = field(default_factory=dict)  # of a trace: timed products, seconds by class
    assumed: tuple = ()
    missing: tuple = ()
    how: dict = field(default_factory=dict)
    believed: dict = field(default_factory=dict)  # of a step whose plan is known (`beside`)
    published: tuple = ()


def said(found: Found, fact: str) -> Word:
    """The word of a log for a fact, by the best of its names; None where it is silent."""
    return next((found.settings[n] for n in spoken("words")[fact] if n in found.settings), None)


def whole(found: Found, fact: str) -> Count:
    """A count that a log states, None where it states none."""
    for name in spoken("words")[fact]:
        value = number(found.settings.get(name))
        if value == value and 1 <= value < 1e12 and float(value).is_integer():
            return int(value)
    return None


def precision_of(found: Found) -> Word:
    """fp8, bf16, fp16 or fp32, as the settings say."""
    for kind in ("fp8", "bf16", "fp16"):
        if (said(found, kind) or "").lower() not in spoken()["none"]:
            return kind
    word = (said(found, "precision") or "").lower()
    known = spoken()["precisions"].items()
    return next((kind for pattern, kind in known if re.search(pattern, word)), None)


def mean_of(kept: Steady, name: str) -> float:
    """Median of a printed figure over the steady steps, over all steps where none is steady."""
    values = kept.columns[name]
    for mask in (kept.steady, np.arange(values.size) >= min(3, values.size - 1)):
        some = values[mask & (values > 0) & np.isfinite(values)]
        if some.size:
            return float(np.median(some))
    return NAN


def plan_of(found: Found) -> dict:
    """Parallel degrees, batches and devices that the settings hold, and what follows from them."""
    got = {
        fact: None if fact in found.ignored else whole(found, fact)
        for fact in ("tp", "pp", "vpp", "cp", "ep", "dp", "seq_len", "micro_batch", "nodes")
    }
    if "pipe_parallel_size" in found.settings and got["pp"] is None:
        got["pp"] = 1
    each = whole(found, "devices_per_node") or 1 + (whole(found, "last_local_rank") or -1)
    mesh = said(found, "mesh")
    total = whole(found, "devices") or (mesh and math.prod(map(int, re.findall(r"\d+", mesh))))
    if not total and each and got["nodes"]:
        total = each * got["nodes"]
    shard = [number(found.settings.get(n)) for n in ("dp_replicate", "dp_shard")]
    if all(ranks >= 1 for ranks in shard):
        got["dp"] = int(math.prod(shard))
    split = math.prod(got[n] or 1 for n in ("tp", "pp", "cp"))
    if got["dp"] and got["tp"] and got["pp"] and "dp_shard" in found.settings:
        total = got["dp"] * split
    if each and not total and got["nodes"] is None:
        total = each
        found.notes.append("devices: one node, as the log names no other")
    if total and each and total % each == 0:
        got["nodes"] = got["nodes"] or total // each
    if got["dp"] is None and total and (got["tp"] or found.alone):
        got["dp"] = total // split if total % split == 0 else None
    return got | {"devices": total}


def per_step(kept: Steady, name: str) -> float:
    """How much a printed total grows in a step, nan where the log has none."""
    grown = differences(kept.columns["step"], kept.columns[name])
    grown = grown[grown > 0]
    return float(np.median(grown)) if grown.size else NAN


def totals(found: Found, plan: dict, kept: Steady) -> None:
    """Sequence length and devices that follow from totals and rates, where no setting says them."""
    tokens, samples = (kept.columns[f"{n}_total"] for n in ("tokens", "samples"))
    both = (samples > 0) & (tokens > 0)
    if plan["seq_len"] is None and both.any():
        length = np.median(tokens[both] / samples[both])
        if length > 0 and float(length).is_integer():
            plan["seq_len"] = int(length)
    if plan["devices"] is None:
        each = mean_of(kept, "tokens_per_s_per_device") * kept.step_s
        count = per_step(kept, "tokens_total") / each if each > 0 else NAN
        if count > 0.5 and abs(count / round(count) - 1) < 0.03:
            plan["devices"] = round(count)
            found.notes.append("devices: tokens of a step / (tokens/s of a device x step time)")


def batch_of(found: Found, plan: dict, kept: Steady) -> Count:
    """Sequences in a step, from the best source that the log has."""
    printed = mean_of(kept, "global_batch")
    if printed >= 1:
        return int(printed)
    if stated := whole(found, "global_batch"):
        return stated
    tokens = whole(found, "total_batch_tokens")
    if tokens and plan["seq_len"] and tokens % plan["seq_len"] == 0:
        return tokens // plan["seq_len"]
    count = mean_of(kept, "samples_per_s") * kept.step_s
    if count > 0 and abs(count - round(count)) < 0.02 * count:
        return max(1, round(count))
    many = whole(found, "accumulation")
    if plan["micro_batch"] and plan["dp"] and many:
        return plan["micro_batch"] * plan["dp"] * many
    return None


def rate_of(plan: dict, kept: Steady, batch: Count) -> float:
    """Tokens/s of one device: as printed, else tokens of a step / step time / devices."""
    if kept.steps == 1 and not kept.step_s > 0:
        return NAN  # one step alone: its rate holds compilation
    printed = mean_of(kept, "tokens_per_s_per_device")
    if printed > 0:
        return printed
    if not plan["devices"]:
        return NAN
    job = mean_of(kept, "tokens_per_s")
    if job > 0:
        return job / plan["devices"]
    tokens = (batch or 0) * (plan["seq_len"] or 0)
    return tokens / kept.step_s / plan["devices"] if tokens and kept.step_s > 0 else NAN


def shape_of(found: Found) -> dict:
    """The dimensions of a model that a log tells. One group of heads is what Megatron prints where
    heads are not grouped."""
    names = spoken()["dimensions"]
    more = names["mixed" if (whole(found, "experts") or 1) > 1 else "dense"]
    told = {n: whole(found, n) for n in names["all"] + more}
    mlp = spoken()["mlps"].get((said(found, "swiglu") or "").lower())
    kept = {n: v for n, v in told.items() if v and (v > 1 or n == "top_k")}
    return kept | ({"mlp": mlp} if mlp else {})


def model_of(found: Found, shape: dict) -> Word:
    """The model by name, the last part of what may be a path, as the catalogue spells it; else the
    catalogue's of the same shape, else by its shape."""
    word = (said(found, "model") or "").replace("\\", "/").rstrip("/")
    named = plain(word.rpartition("/")[2], 80)
    known = id_of(re.sub(r"[\s_]+", "-", named))
    same = of_shape({"experts": 0} | shape)
    if same and not named:
        found.notes.append("model: the first of the catalogue that has the same shape")
    size = (
        f"{shape['layers']} layers x {shape['hidden']}"
        if {"layers", "hidden"} <= {*shape}
        else None
    )
    return known or named or same or size


def figure(value) -> Known:
    """A number with 7 digits, None for nan."""
    return float(f"{value:.7g}") if value is not None and math.isfinite(value) else None


def reading(found: Found, file: str) -> Reading:
    """What was found in a log, as figures."""
    kept = steady(found)
    plan = plan_of(found)
    totals(found, plan, kept)
    step_s = kept.step_s
    batch = batch_of(found, plan, kept)
    rate = rate_of(plan, kept, batch)
    per_second = number(found.settings.get("train_steps_per_second"))
    if not step_s > 0 and per_second > 0:
        step_s = 1 / per_second
        found.notes.append("step_s: mean over the whole run, evaluation included")
    if not step_s > 0 and rate > 0 and batch and plan["seq_len"] and plan["devices"]:
        step_s = batch * plan["seq_len"] / rate / plan["devices"]
        found.notes.append("step_s: tokens of a step / printed tokens per second")
    shape = shape_of(found)
    facts = plan | {
        "step_s": figure(step_s),
        "model": model_of(found, shape),
        "accelerator": plain(said(found, "accelerator") or "", 80) or None,
        "precision": precision_of(found),
        "release": said(found, "release"),
        "global_batch": batch,
    }
    known = facts | {"plan": facts["tp"] and facts["micro_batch"]}
    missing = {name: how for name, how in spoken()["how"].items() if known.get(name) is None}
    return Reading(
        file=plain(file, 200),
        format=found.format,
        framework=found.framework,
        steps=kept.steps or None,
        step_s_p10=figure(kept.p10_s),
        step_s_p90=figure(kept.p90_s),
        tokens_per_s_per_device=figure(rate),
        tflops_per_device=figure(mean_of(kept, "tflops_per_device")),
        peak_memory_gb=figure(found.memory_gib or NAN),
        restarts=kept.restarts,
        goodput=figure(kept.goodput),
        badput=kept.badput,
        oom=found.oom,
        collectives=tuple(found.collectives),
        shape=shape,
        kernels=found.kernels,
        assumed=tuple(notes_of(found, kept)),
        missing=tuple(missing),
        how=missing,
        **facts,
    )


def notes_of(found: Found, kept: Steady) -> list:
    """What a reader has to know of how the figures came about."""
    more = {
        "step_s: mean from a clock of whole seconds, pauses included": found.mean,
        f"step_s: {kept.pauses} steps longer than 3 medians are pauses, left out": kept.pauses,
        "peak_memory_gb: GiB (2^30 bytes) of one device, as frameworks print it": found.memory_gib,
        "oom: the log has an out-of-memory error; a step line does not show a fit": found.oom,
    }
    return [*dict.fromkeys(found.notes), *(note for note, holds in more.items() if holds)]
