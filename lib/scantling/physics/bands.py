"""How sure a step time is: 80 % bands from runs that the fit had not seen, and the published runs
nearest to a plan.

The quantiles in catalogue/calibration.json are of ln(measured / predicted throughput) with the
run's whole family of sources left out of the fit, families weighing alike, and the factors by which
what is not known widens them. They are not symmetric: what no model knows of mostly slows.
"""

from collections import Counter
from dataclasses import replace
from functools import cache
from math import prod

import numpy as np

from ..base.files import csv_rows
from ..base.words import table
from ..catalogue.families import family as family_of
from ..catalogue.load import HERE
from ..catalogue.stacks import canonical
from .cases import Cases, devices
from .constants import calibration, gather
from .step import rates, step_time

# seconds below which a step is small: what the host does shows
SMALL_STEP_S = 0.5
# what widens a band, in words; the factors are fitted (calibration.json, `bands`)
WIDER = {
    "typical": "not a recipe tuned for its machine",
    "small step": "step under half a second",
    "inferred": "a setting that decides the step was not given",
    "experts": "mixture of experts",
    "unseen stack": "stack never measured",
    "unseen chip": "chip never measured",
    "unseen family": "nothing measured on chips of its family",
}
# a prior of another family stands in: as far again as an unseen chip of a seen family; judgement
UNSEEN_FAMILY = 1.5
MOST_MFU = 0.999  # the upper end of a band lies below the peak


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


def tier(stack, chip, *, measured=False) -> str:
    """How far a band is held up by runs: "measured here" (a step or a calibration of this site),
    "known stack and chip" (several sources of published runs on each of the two), "new site" (one
    source on either; or no stack named, whose constants are pooled over all), "nothing compared"
    (no run on the chip or of the stack)."""
    if measured:
        return "measured here"
    named = [("chip", chip), *([("stack", stack)] if stack else [])]
    found = [_support(level, name) for level, name in named]
    if not all(of.get("rows", 0) for of in found):
        return "nothing compared"
    return (
        "new site"
        if any(of.get("single_source", False) for of in found) or not stack
        else "known stack and chip"
    )


def several_sources_only(offsets: dict, support: dict) -> dict:
    """The offsets without those that one source alone supports; such a name falls back to what all
    runs share."""

    return {
        constant: {
            level: {
                name: value
                for name, value in values.items()
                if not support.get(level, {}).get(name, {}).get("single_source")
            }
            if level != "global"
            else values
            for level, values in levels.items()
        }
        for constant, levels in offsets.items()
    }


def without_single_source(
    c: Cases, *, chip: str = "", family: str = "", stack: str = ""
) -> dict | None:
    """The step of one case without the constants that one source alone supports: which names they
    are, step_s and mfu; None where there are none.

    The stack's (and a chip's) own offsets are replaced by what all runs share, as the validation
    page does for its headline.
    """
    stack = canonical(stack, family_of(family).modern) or ""
    names = {"stack": stack, "chip": chip}
    alone = [name for level, name in names.items() if _support(level, name).get("single_source")]
    if not alone:
        return None
    shared = gather(
        family,
        chip,
        stack,
        several_sources_only(calibration()["offsets"], calibration()["support"]),
        c.software.tuned,
    )
    case = replace(c, constants=replace(shared, memory=c.constants.memory))
    seconds = step_time(case).total
    return {"single_source": alone, "step_s": float(seconds), "mfu": float(rates(case, seconds)[2])}


def wider(
    c: Cases, known=True, seen_chip=True, inferred=False, seen_family=True, step_s=np.inf
) -> dict:
    """What holds of WIDER, by name: columns or scalars.

    known: the stack has runs behind it; seen_chip: so has the accelerator; inferred: a setting that
    decides the step (micro-batch, recompute, layout) was not given; seen_family: somebody has
    published a run on a chip of the family.
    """
    return {
        "typical": c.software.tuned <= 0,
        "small step": step_s < SMALL_STEP_S,
        "inferred": inferred,
        "experts": c.shape.moe_layers > 0,
        "unseen stack": np.logical_not(known),
        "unseen chip": np.logical_not(seen_chip),
        "unseen family": np.logical_not(seen_family),
    }


def band(c: Cases, **known):
    """80 % band on the step time: (low, high) factors on the predicted seconds, columns or scalars;
    what is known of the run as in `wider`."""
    return ends(wider(c, **known))


def ends(holds: dict, of: dict | None = None):
    """The band where these of WIDER hold; `of` in place of the shipped quantiles and factors."""
    of = of or calibration()["bands"]
    factors = of["wider"] | {"unseen family": UNSEEN_FAMILY}
    wide = prod(np.where(holds[name], factor, 1.0) for name, factor in factors.items())
    low, high = of["ends"]
    return np.exp(-high * wide)[()], np.exp(-low * wide)[()]


FAR, WORDS, KINDS = table(__file__, "near").values()
OTHER_CHIP, OTHER_FAMILY, OTHER_STACK = 2.0, 3.0, 1.5  # judgement, no published figure
SIZES = list(FAR)[:9]
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
    return {name: np.log2(np.maximum(size, 1.0)) for name, size in sizes.items()} | {
        "recompute": p.recompute * 1.0,
        "moe": (s.moe_layers > 0) * 1.0,
        "low": (c.job.precision >= 2) * 1.0,
        "sharded": (p.sharding >= 3) * 1.0,
        "tuned": (c.software.tuned > 0) * 1.0,
    }


@cache
def _published():
    """(rows as text, their conditions as columns) of the published runs that ship with the kit."""
    rows = csv_rows(HERE / "run_conditions.csv")
    return rows, {k: np.array([float(r[k]) for r in rows]) for k in FAR}


def nearest_runs(
    case: Cases, n: int = 5, *, chip: str = "", family: str = "", stack: str = ""
) -> list:
    """The `n` published runs nearest to one case, with how they differ.

    Distance: weighted base-2 logs of size, scale and layout, plus fixed amounts for another chip,
    family or stack; at most two rows of one source. `mfu` is the measured one in the convention of
    this kit, `mfu_predicted` what the kit says of that run from a fit without its family.
    """
    rows, columns = _published()
    here = {k: float(np.ravel(v)[0]) for k, v in conditions(case).items()}
    far = sum(amount * np.abs(columns[k] - here[k]) for k, amount in FAR.items())
    far = far + [
        OTHER_CHIP * (r["accelerator"] != chip)
        + OTHER_STACK * (r["stack"] != stack)
        + OTHER_FAMILY * (r["accelerator"] != chip and r["family"] != family)
        for r in rows
    ]
    out, taken = [], Counter()
    for i in np.argsort(far, kind="stable"):
        row = rows[i]
        taken[row["source"]] += 1
        if taken[row["source"]] <= FROM_ONE_SOURCE and len(out) < n:
            numbers = {
                "devices": int(float(row["n_devices"])),
                **{name: float(row[name]) for name in ("mfu", "mfu_predicted")},
                "distance": round(float(far[i]), 2),
                "differs": _differs({k: columns[k][i] for k in FAR}, here, row, chip, stack),
            }
            out.append({name: row[name] for name in SHOWN} | numbers)
    return out


def _differs(there, here, row, chip, stack) -> str:
    said = [row["accelerator"]] if row["accelerator"] != chip else []
    said += [row["stack"]] if stack and row["stack"] != stack else []
    said += [
        f"{WORDS.get(name, name)} {2 ** there[name]:,.0f} against {2 ** here[name]:,.0f}"
        for name in SIZES
        if abs(there[name] - here[name]) > 0.1
    ]
    said += [words[int(there[name])] for name, words in KINDS.items() if there[name] != here[name]]
    return ", ".join(said) or "none"
