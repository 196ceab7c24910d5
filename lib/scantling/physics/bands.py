"""How sure a step time is: 80 % bands from runs that the fit had not seen, and the published runs
nearest to a plan.

The quantiles in catalogue/calibration.json are of ln(measured / predicted throughput) with the
run's whole source (known stacks) or
whole stack (unknown ones) left out of the fit, every source weighing alike. They are not symmetric:
what no model knows of mostly slows.
"""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache
from importlib.resources import files

import numpy as np

from ..catalogue.families import family as family_of
from ..catalogue.stacks import canonical
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
DEFAULT = {
    "known": {"dense": (-0.12, 0.11), "moe": (-0.16, 0.16)},
    "unknown": {"dense": (-0.30, 0.15), "moe": (-0.32, 0.2)},
}


def known_chip(name) -> bool:
    """True where runs on this accelerator are behind the calibration."""
    return name in calibration().get("support", {}).get("chip", {})


def known_family(name) -> bool:
    """True where somebody has published a run on a chip of this family."""
    return family_of(name).measured


def known_stack(name) -> bool:
    """True where runs of this stack are behind the calibration, from more than one source or many
    settings of one."""
    support = calibration().get("support", {}).get("stack", {}).get(name or "")
    return bool(support) and support["rows"] >= 5


def single_source(name) -> bool:
    """True where one source alone supports a stack's constants."""
    support = calibration().get("support", {}).get("stack", {}).get(name or "")
    return bool(support) and support["single_source"]


def several_sources_only(offsets: dict, support: dict) -> dict:
    """The offsets without those that one source alone supports; such a name falls back to what all
    runs share."""
    alone = lambda level, name: support.get(level, {}).get(name, {}).get("single_source", False)  # noqa: E731
    return {
        constant: {
            level: value
            if level == "global"
            else {k: v for k, v in value.items() if not alone(level, k)}
            for level, value in levels.items()
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
    support = calibration().get("support", {})
    alone = [
        name
        for level, name in (("stack", stack), ("chip", chip), ("pair", f"{stack} on {chip}"))
        if support.get(level, {}).get(name, {}).get("single_source")
    ]
    if not alone:
        return None
    shared = gather(family, chip, stack, several_sources_only(calibration()["offsets"], support))
    case = replace(c, constants=replace(shared, memory=c.constants.memory))
    seconds = step_time(case).total
    return {"single_source": alone, "step_s": float(seconds), "mfu": float(rates(case, seconds)[2])}


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
    setting that decides the step
    (micro-batch, recompute, layout) was not given; single: one source alone supports the stack;
    memory_share: predicted memory /
    capacity, above 0.85 of which allocator retries begin.
    """
    quantiles = calibration().get("bands", DEFAULT)
    moe = np.asarray(c.shape.moe_layers) > 0
    known = np.asarray(known, bool)

    def pick(i):
        table = {k: {m: v[i] for m, v in row.items()} for k, row in quantiles.items()}
        return np.where(
            known,
            np.where(moe, table["known"]["moe"], table["known"]["dense"]),
            np.where(moe, table["unknown"]["moe"], table["unknown"]["dense"]),
        )

    p = c.plan
    wide = np.where(np.asarray(seen_family, bool), 1.0, WIDER["unseen family"])
    wide = (
        wide
        * np.where(np.asarray(seen_chip, bool), 1.0, WIDER["unseen chip"])
        * np.where(np.asarray(inferred, bool), WIDER["inferred"], 1.0)
    )
    wide = (
        wide
        * np.where(np.asarray(single, bool) & known, WIDER["single source"], 1.0)
        * np.where(np.asarray(memory_share) > 0.85, WIDER["memory"], 1.0)
    )
    group = np.asarray(p.dp) * p.cp
    wide = wide * np.where(
        (np.asarray(p.sharding) == 1) & (group > 128) & (micro_batches(c.job, p) < 8),
        WIDER["zero1 wide"],
        1.0,
    )
    wide = wide * np.where(
        (np.asarray(p.ep) * p.etp > c.link.domain) & moe, WIDER["ep across"], 1.0
    )
    return np.exp(-pick(1) * wide)[()], np.exp(-pick(0) * wide)[()]


def conditions(c: Cases) -> dict:
    """Numbers by which two runs are near: base-2 logs of size, scale and layout, codes of the rest;
    one column each."""
    p, s = c.plan, c.shape
    log = lambda x: np.log2(np.maximum(np.asarray(x, float), 1))  # noqa: E731
    return dict(
        devices=log(devices(p)),
        hidden=log(s.hidden),
        layers=log(s.layers),
        seq_len=log(c.job.seq_len),
        tp=log(p.tp),
        pp=log(p.pp),
        cp=log(p.cp),
        ep=log(p.ep),
        micro_batch=log(p.micro_batch),
        recompute=np.asarray(p.recompute, float),
        moe=(np.asarray(s.moe_layers) > 0) * 1.0,
        low=(np.asarray(c.job.precision) >= 2) * 1.0,
        sharded=(np.asarray(p.sharding) >= 3) * 1.0,
    )


# what a difference of one (a doubling, another recompute, another kind) counts
FAR = dict(
    devices=0.5,
    hidden=1.0,
    layers=0.7,
    seq_len=0.8,
    tp=0.6,
    pp=0.6,
    cp=0.8,
    ep=0.5,
    micro_batch=0.4,
    recompute=0.8,
    moe=5.0,
    low=1.5,
    sharded=1.5,
)
OTHER_CHIP, OTHER_FAMILY, OTHER_STACK = 2.0, 3.0, 1.5
WORDS = dict(
    devices="devices",
    hidden="hidden",
    layers="layers",
    seq_len="sequence length",
    tp="tp",
    pp="pp",
    cp="cp",
    ep="ep",
    micro_batch="micro-batch",
)


@cache
def _published():
    """(rows as text, their conditions as columns) of the published runs that ship with the kit."""
    with (files("scantling.catalogue") / "run_conditions.csv").open(newline="") as f:
        rows = list(csv.DictReader(f))
    return rows, {k: np.array([float(r[k]) for r in rows]) for k in FAR}


def nearest_runs(
    case: Cases, resolved=None, n: int = 5, *, chip: str = "", family: str = "", stack: str = ""
) -> list[dict]:
    """The `n` published runs nearest to one case, with how they differ.

    Distance: weighted base-2 logs of size, scale and layout, plus fixed amounts for another chip,
    family or stack; at most two rows
    of one source, so that one long table does not fill the list. `mfu` is the measured one in the
    convention of this kit.
    """
    if resolved is not None:
        accelerator = resolved.cluster.accelerator
        chip, family, stack = accelerator.id, accelerator.family, resolved.stack or ""
    rows, columns = _published()
    here = {k: float(np.ravel(v)[0]) for k, v in conditions(case).items()}
    far = sum(FAR[k] * np.abs(columns[k] - here[k]) for k in FAR)
    far = far + np.array(
        [
            0.0
            if r["accelerator"] == chip
            else OTHER_CHIP
            if r["family"] == family
            else OTHER_CHIP + OTHER_FAMILY
            for r in rows
        ]
    )
    far = far + np.array([0.0 if r["stack"] == stack else OTHER_STACK for r in rows])
    out, taken = [], {}
    for i in np.argsort(far, kind="stable"):
        r = rows[i]
        if taken.get(r["source"], 0) >= 2:
            continue
        taken[r["source"]] = taken.get(r["source"], 0) + 1
        out.append(
            dict(
                id=r["id"],
                model=r["model"],
                accelerator=r["accelerator"],
                stack=r["stack"],
                devices=int(float(r["n_devices"])),
                plan=r["plan"],
                mfu=float(r["mfu"]),
                source=r["source"],
                locator=r["locator"],
                distance=round(float(far[i]), 2),
                differs=_differs({k: columns[k][i] for k in FAR}, here, r, chip, stack),
            )
        )
        if len(out) == n:
            break
    return out


def _differs(there, here, row, chip, stack) -> str:
    said = [row["accelerator"]] if row["accelerator"] != chip else []
    said += [row["stack"]] if stack and row["stack"] != stack else []
    for name, word in WORDS.items():
        if abs(there[name] - here[name]) > 0.1:
            said.append(f"{word} {2 ** there[name]:,.0f} against {2 ** here[name]:,.0f}")
    for name, (yes, no) in dict(
        moe=("experts", "dense"),
        low=("fp8 or fp4", "16 bit"),
        sharded=("sharded weights", "whole weights"),
    ).items():
        if there[name] != here[name]:
            said.append(yes if there[name] else no)
    if there["recompute"] != here["recompute"]:
        said.append(f"recompute {('none', 'selective', 'full')[int(there['recompute'])]}")
    return ", ".join(said) or "nothing that is counted"
