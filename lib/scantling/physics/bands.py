"""How sure a step time is: 80 % bands from runs that the fit had not seen, and the published runs
nearest to a plan.

The quantiles in catalogue/calibration.json are of ln(measured / predicted throughput) with the
run's whole source (known stacks) or
whole stack (unknown ones) left out of the fit, every source weighing alike. They are not symmetric:
what no model knows of mostly slows.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from dataclasses import replace
from functools import cache
from importlib.resources import files

import numpy as np

from ..catalogue.families import family as family_of
from ..catalogue.stacks import canonical
from ..catalogue.words import RECOMPUTES
from .cases import Cases, devices, micro_batches
from .constants import calibration, gather
from .step import rates, step_time

# factor on both half widths where one of these holds, from the spread of the left-out errors with
# and without it
WIDER = {
    "unseen chip": 1.5,
    "unseen family": 1.5,  # on top: a prior, as far again as an unseen chip of a seen family
    "inferred": 1.1,
    "memory": 1.1,
    "zero1 wide": 1.3,
    "ep across": 1.2,
    "single source": 1.1,
}


def _support(level: str, name) -> dict:
    """What stands behind a name's constants: {rows, single_source}; empty where no run does."""
    return calibration()["support"].get(level, {}).get(name or "", {})


def known_chip(name) -> bool:
    """True where runs on this accelerator are behind the calibration."""
    return bool(_support("chip", name))


def known_family(name) -> bool:
    """True where somebody has published a run on a chip of this family."""
    return family_of(name).measured


def known_stack(name) -> bool:
    """True where runs of this stack are behind the calibration, from more than one source or many
    settings of one."""
    return _support("stack", name).get("rows", 0) >= 5


def single_source(name) -> bool:
    """True where one source alone supports a stack's constants."""
    return _support("stack", name).get("single_source", False)


def several_sources_only(offsets: dict, support: dict) -> dict:
    """The offsets without those that one source alone supports; such a name falls back to what all
    runs share."""

    def shared(level, values):
        if level == "global":
            return values
        known = support.get(level, {})
        alone = {name for name, of in known.items() if of.get("single_source")}
        return {name: value for name, value in values.items() if name not in alone}

    return {
        constant: {level: shared(level, values) for level, values in levels.items()}
        for constant, levels in offsets.items()
    }


def without_single_source(
    c: Cases,
    *,
    chip: str = "",
    family: str = "",
    stack: str = "",
) -> dict | None:
    """The step of one case without the constants that one source alone supports: which names they
    are, step_s and mfu; None where there are none.

    The stack's (and a chip's) own offsets are replaced by what all runs share, as the validation
    page does for its headline.
    """
    stack = canonical(stack, family_of(family).modern) or ""
    names = {
        "stack": stack,
        "chip": chip,
        "pair": f"{stack} on {chip}",
    }
    alone = [name for level, name in names.items() if _support(level, name).get("single_source")]
    if not alone:
        return None
    several = several_sources_only(calibration()["offsets"], calibration()["support"])
    shared = gather(
        family,
        chip,
        stack,
        several,
    )
    case = replace(c, constants=replace(shared, memory=c.constants.memory))
    seconds = step_time(case).total
    return {
        "single_source": alone,
        "step_s": float(seconds),
        "mfu": float(rates(case, seconds)[2]),
    }


def band(
    c: Cases,
    known=True,
    seen_chip=True,
    inferred=False,
    single=False,
    memory_share=0.0,
    seen_family=True,
):
    """80 % band on the step time: (low, high) factors on the predicted seconds, columns or scalars.

    known: the stack has runs behind its constants; seen_chip: so has the accelerator; inferred: a
    setting that decides the step (micro-batch, recompute, layout) was not given; single: one source
    alone supports the stack; memory_share: predicted memory / capacity, above 0.85 of which
    allocator retries begin; seen_family: somebody has published a run on a chip of the family.
    """
    p = c.plan
    moe, known = c.shape.moe_layers > 0, np.asarray(known, bool)
    wide_group = (p.dp * p.cp > 128) & (micro_batches(c.job, p) < 8)
    wider = {
        "unseen family": ~np.asarray(seen_family, bool),
        "unseen chip": ~np.asarray(seen_chip, bool),
        "inferred": np.asarray(inferred, bool),
        "single source": np.asarray(single, bool) & known,
        "memory": np.asarray(memory_share) > 0.85,
        "zero1 wide": (p.sharding == 1) & wide_group,
        "ep across": (p.ep * p.etp > c.link.domain) & moe,
    }
    wide = math.prod(np.where(holds, WIDER[name], 1.0) for name, holds in wider.items())
    of = calibration()["bands"]
    kinds = ("dense", "moe")
    table = np.array([[of[stack][kind] for kind in kinds] for stack in ("unknown", "known")])
    low, high = np.moveaxis(table[1 * known, 1 * moe], -1, 0)
    return np.exp(-high * wide)[()], np.exp(-low * wide)[()]


# what a difference of one (a doubling, another recompute, another kind) counts; the amounts here
# and below are judgement, no published figure
FAR = {
    "devices": 0.5,
    "hidden": 1.0,
    "layers": 0.7,
    "seq_len": 0.8,
    "tp": 0.6,
    "pp": 0.6,
    "cp": 0.8,
    "ep": 0.5,
    "micro_batch": 0.4,
    "recompute": 0.8,
    "moe": 5.0,
    "low": 1.5,
    "sharded": 1.5,
}
OTHER_CHIP, OTHER_FAMILY, OTHER_STACK = 2.0, 3.0, 1.5
SIZES = list(FAR)[:9]
WORDS = {
    "seq_len": "sequence length",
    "micro_batch": "micro-batch",
}
KINDS = {
    "moe": ("dense", "experts"),
    "low": ("16 bit", "fp8 or fp4"),
    "sharded": ("whole weights", "sharded weights"),
    "recompute": tuple(f"recompute {name}" for name in RECOMPUTES),
}
SHOWN = ("id", "model", "accelerator", "stack", "plan", "source", "locator")
FROM_ONE_SOURCE = 2  # rows, so that one long table does not fill the list


def conditions(c: Cases) -> dict:
    """Numbers by which two runs are near: base-2 logs of size, scale and layout, codes of the rest;
    one column each."""
    p, s = c.plan, c.shape
    sizes = {
        "devices": devices(p),
        "hidden": s.hidden,
        "layers": s.layers,
        "seq_len": c.job.seq_len,
        **{name: getattr(p, name) for name in ("tp", "pp", "cp", "ep", "micro_batch")},
    }
    return {
        name: np.log2(np.maximum(np.asarray(size, float), 1)) for name, size in sizes.items()
    } | {
        "recompute": np.asarray(p.recompute, float),
        "moe": (s.moe_layers > 0) * 1.0,
        "low": (c.job.precision >= 2) * 1.0,
        "sharded": (p.sharding >= 3) * 1.0,
    }


@cache
def _published():
    """(rows as text, their conditions as columns) of the published runs that ship with the kit."""
    with (files("scantling.catalogue") / "run_conditions.csv").open(newline="") as f:
        rows = list(csv.DictReader(f))
    return rows, {k: np.array([float(r[k]) for r in rows]) for k in FAR}


def nearest_runs(
    case: Cases,
    n: int = 5,
    *,
    chip: str = "",
    family: str = "",
    stack: str = "",
) -> list[dict]:
    """The `n` published runs nearest to one case, with how they differ.

    Distance: weighted base-2 logs of size, scale and layout, plus fixed amounts for another chip,
    family or stack; at most two rows of one source. `mfu` is the measured one in the convention of
    this kit.
    """
    rows, columns = _published()
    here = {k: float(np.ravel(v)[0]) for k, v in conditions(case).items()}
    far = sum(FAR[k] * np.abs(columns[k] - here[k]) for k in FAR)
    others = {
        "accelerator": (chip, OTHER_CHIP),
        "stack": (stack, OTHER_STACK),
    }
    for column, (mine, amount) in others.items():
        far = far + np.array([amount * (r[column] != mine) for r in rows])
    strange = [r["accelerator"] != chip and r["family"] != family for r in rows]
    far = far + OTHER_FAMILY * np.array(strange)
    out, taken = [], Counter()
    for i in np.argsort(far, kind="stable"):
        row = rows[i]
        taken[row["source"]] += 1
        if taken[row["source"]] <= FROM_ONE_SOURCE and len(out) < n:
            there = {k: columns[k][i] for k in FAR}
            numbers = {
                "devices": int(float(row["n_devices"])),
                "mfu": float(row["mfu"]),
                "distance": round(float(far[i]), 2),
                "differs": _differs(
                    there,
                    here,
                    row,
                    chip,
                    stack,
                ),
            }
            out.append({name: row[name] for name in SHOWN} | numbers)
    return out


def _differs(
    there,
    here,
    row,
    chip,
    stack,
) -> str:
    said = [row["accelerator"]] if row["accelerator"] != chip else []
    said += [row["stack"]] if stack and row["stack"] != stack else []
    said += [
        f"{WORDS.get(name, name)} {2 ** there[name]:,.0f} against {2 ** here[name]:,.0f}"
        for name in SIZES
        if abs(there[name] - here[name]) > 0.1
    ]
    said += [words[int(there[name])] for name, words in KINDS.items() if there[name] != here[name]]
    return ", ".join(said) or "nothing that is counted"
