"""How sure a step time is: 80 % bands from runs that the fit had not seen, and the published runs
nearest to a plan.

catalogue/calibration.json holds the distribution of ln(measured / predicted throughput) of runs
whose whole family of sources was left out of the fit, every family with weight one: a Student t of
TAILS degrees of freedom, wider on the slow side, times a factor for each of WIDER that holds.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import prod
from typing import NamedTuple, TypedDict

import numpy as np

from ..base.columns import Array, Column, Truth
from ..base.errors import CatalogueError
from ..base.files import csv_rows
from ..base.records import Rows
from ..catalogue.families import family as family_of
from ..catalogue.load import HERE
from ..catalogue.published import group_of
from ..catalogue.stacks import canonical, software_switches
from ..catalogue.words import PRECISIONS, RECOMPUTES
from .cases import Cases
from .constants import calibration, gather, shipped_offsets
from .named import Offsets
from .step import counted_share, rates, step_time

# seconds below which a step is small: what the host does shows
SMALL_STEP_S = 0.5
# degrees of freedom of the distribution: one family in six is off by more than a third
TAILS = 4
# what widens a band, in words; the factors are fitted (calibration.json, `bands`)
WIDER = {
    "typical": "not a recipe tuned for its machine",
    "first-week": "code and settings that nobody has tuned yet",
    "small step": "step under half a second",
    "inferred": "a setting that decides the step was not given",
    "experts": "mixture of experts",
    "unseen stack": "stack never measured",
    "unseen chip": "chip never measured",
    "unseen family": "nothing measured on chips of its family",
    "unmeasured": "a mechanism that nobody has measured",
}
# kinds of sites by how much tuning a run has seen
RECIPE, ORDINARY, FIRST_WEEK = "recipe", "ordinary", "first-week"
# a prior of another family stands in: as far again as an unseen chip of a seen family; judgement
UNSEEN_FAMILY = 1.5
MOST_MFU = 0.999  # the upper end of a band lies below the peak


class Support(NamedTuple):
    """What stands behind the constants of a name."""

    rows: int = 0
    sources: int = 0
    single_source: bool = False
    families: int = 0  # of sources, which share maker, recipe or machine


@cache
def supported() -> Mapping[str, Mapping[str, Support]]:
    """level -> {name: what stands behind its constants}, of catalogue/calibration.json."""
    return {
        level: {name: Support(**row) for name, row in names.items()}
        for level, names in calibration()["support"].items()
    }


class Bands(NamedTuple):
    """The distribution of a step's error: its scale between sites and within one, the ends of the
    80 % band (natural logarithms), and the factors of WIDER."""

    between: float
    within: float
    ends: Sequence[float]
    wider: Mapping[str, float]


@cache
def shipped_bands() -> Bands:
    """The bands of catalogue/calibration.json. Raises CatalogueError where their factors are not
    those of WIDER."""
    bands = Bands(**calibration()["bands"])
    if bands.wider.keys() | {"unseen family"} != WIDER.keys():
        raise CatalogueError(f"calibration.json: bands widen by {', '.join(WIDER)}, no other words")
    return bands


def _support(level: str, name: str | None) -> Support:
    """What stands behind a name's constants; nothing where no run does."""
    return supported()[level].get(name or "", Support())


def known_chip(name: str | None) -> bool:
    """True where runs on this accelerator are behind the calibration."""
    return _support("chip", name).rows > 0


def known_family(name: str) -> bool:
    """True where somebody has published a run on a chip of this family."""
    return family_of(name).measured


def known_stack(name: str | None) -> bool:
    """True where runs of this stack are behind the calibration, from more than one source or many
    settings of one."""
    return _support("stack", name).rows >= 5


def tier(stack: str | None, chip: str, *, measured: bool = False) -> str:
    """How far a band is held up by runs: "measured here" (a step or a calibration of this site),
    "known stack and chip" (at least two families of published runs on each of the two), "new site"
    (one family on either; or no stack named, whose constants are pooled over all), "nothing
    compared" (no run on the chip or of the stack)."""
    if measured:
        return "measured here"
    families = [_support("chip", chip).families]
    if stack:
        families.append(_support("stack", stack).families)
    return tier_of(min(families), bool(stack))


def tier_of(families: int, named: bool) -> str:
    """The tier where so many families of published runs ran the chip and, where one is `named`, the
    stack."""
    if families == 0:
        return "nothing compared"
    return "known stack and chip" if named and families >= 2 else "new site"


def site_kind(tuned: Column) -> Array:
    """The kind of site whose spread a band has, by the effort of the software: recipe, ordinary or
    first-week; a column."""
    effort = np.atleast_1d(tuned)
    return np.where(effort > 0, RECIPE, np.where(effort < 0, FIRST_WEEK, ORDINARY)).astype(object)


LONG_SEQUENCE = 65_536  # tokens from which a sequence is a mechanism of its own
MANY_DEVICES = 2_048  # and devices of one job
DISPATCHERS = {
    round(code): name for name, code in software_switches()["dedup_dispatch"].words.items()
}


def mechanisms(c: Cases, family: Column | Sequence[str], fabric: Column | Sequence[str]) -> Array:
    """What a run does that somebody may or may not have measured, in words, shape (rows, 5); ""
    where it does nothing of the kind: the format of its products on the chip's family, the network
    between scale-up domains, the dispatcher of its experts, long sequences and many devices.

    family: of the chips. fabric: the scale-out network, a name a row.
    """
    p = c.plan
    count = np.broadcast_to(np.asarray(c.devices, float), np.shape(np.atleast_1d(family)))
    n = count.shape
    chips = np.atleast_1d(np.asarray(family, object))
    nets = np.broadcast_to(np.atleast_1d(np.asarray(fabric, object)), n)
    names = np.array([group_of(name) for name in PRECISIONS], object)
    formats = names[np.broadcast_to(np.asarray(c.job.precision, int), n)]
    across = count > np.broadcast_to(c.link.domain, n)
    experts = np.broadcast_to((c.shape.moe_layers > 0) & (np.asarray(p.ep) > 1), n)
    codes = np.rint(np.broadcast_to(np.asarray(c.software.dedup_dispatch, float), n)).astype(int)
    dispatchers = np.array([DISPATCHERS.get(code, "") for code in codes.tolist()], object)
    long = np.broadcast_to(np.asarray(c.job.seq_len) >= LONG_SEQUENCE, n)
    return np.stack(
        [
            formats + " products on " + chips,
            np.where(across, nets + " between domains", ""),
            np.where(experts, dispatchers + " of experts", ""),
            np.where(long, "long sequences on " + chips, ""),
            np.where(count >= MANY_DEVICES, "many devices over " + nets, ""),
        ],
        axis=1,
    )


def measured_mechanisms(words: Array) -> Array:
    """Whether somebody has published a run of every mechanism of a row of `mechanisms`."""
    known = supported()["mechanism"]
    return np.array([all(not word or word in known for word in row) for row in words.tolist()])


def several_sources_only(offsets: Offsets, support: Mapping[str, Mapping[str, Support]]) -> Offsets:
    """The offsets without those that one source alone supports; such a name falls back to what all
    runs share."""
    return {
        constant: {
            level: {
                name: value
                for name, value in values.items()
                if not support.get(level, {}).get(name, Support()).single_source
            }
            if level != "global"
            else values
            for level, values in levels.items()
        }
        for constant, levels in offsets.items()
    }


class WithoutLoneSources(TypedDict):
    """A step without the constants that one source alone supports."""

    single_source: list[str]  # the names that have such
    step_s: float
    mfu: float
    mfu_shown: float  # as the headline counts attention


def without_single_source(
    c: Cases, *, chip: str = "", family: str = "", stack: str = "", basis: str = "full"
) -> WithoutLoneSources | None:
    """The step of one case without the constants that one source alone supports; None where there
    are none.

    The stack's (and a chip's) own offsets are replaced by what all runs share, as the validation
    page does for its headline. `basis`: how `mfu_shown` counts attention, "full" or "causal".
    """
    stack = canonical(stack, family_of(family).modern) or ""
    names = {"stack": stack, "chip": chip}
    alone = [name for level, name in names.items() if _support(level, name).single_source]
    if not alone:
        return None
    shared = gather(
        family, chip, stack, several_sources_only(shipped_offsets(), supported()), c.software.tuned
    )
    case = replace(c, constants=replace(shared, memory=c.constants.memory))
    seconds = step_time(case).total
    mfu = rates(case, seconds).mfu
    return {
        "single_source": alone,
        "step_s": float(seconds),
        "mfu": float(mfu),
        "mfu_shown": float(mfu * counted_share(case, basis)),
    }


def wider(
    c: Cases,
    known: Truth = True,
    seen_chip: Truth = True,
    inferred: Truth = False,
    seen_family: Truth = True,
    step_s: Column = np.inf,
    measured: Truth = True,
) -> dict[str, Truth]:
    """What holds of WIDER, by name: columns or scalars.

    known: the stack has runs behind it; seen_chip: so has the accelerator; inferred: a setting that
    decides the step (micro-batch, recompute, layout) was not given; seen_family: somebody has
    published a run on a chip of the family; measured: somebody has published a run of each of its
    mechanisms.
    """
    tuned = np.asarray(c.software.tuned)
    return {
        "typical": (tuned <= 0)[()],
        "first-week": (tuned < 0)[()],
        "small step": step_s < SMALL_STEP_S,
        "inferred": inferred,
        "experts": c.shape.moe_layers > 0,
        "unseen stack": np.logical_not(known),
        "unseen chip": np.logical_not(seen_chip),
        "unseen family": np.logical_not(seen_family),
        "unmeasured": np.logical_not(measured),
    }


def band(
    c: Cases,
    *,
    known: Truth = True,
    seen_chip: Truth = True,
    inferred: Truth = False,
    seen_family: Truth = True,
    step_s: Column = np.inf,
    measured: Truth = True,
) -> tuple[Column, Column]:
    """80 % band on the step time: (low, high) factors on the predicted seconds, columns or scalars;
    what is known of the run as in `wider`."""
    return ends(wider(c, known, seen_chip, inferred, seen_family, step_s, measured))


def ends(holds: Mapping[str, Truth], fit: Bands | None = None) -> tuple[Column, Column]:
    """The band where these of WIDER hold; `fit` in place of the shipped ends and factors."""
    fit = fit or shipped_bands()
    factors = {"unseen family": UNSEEN_FAMILY, **fit.wider}
    wide = prod(
        np.where(holds[name], factor, 1.0) for name, factor in factors.items() if name in holds
    )
    low, high = fit.ends
    return np.exp(-high * wide)[()], np.exp(-low * wide)[()]


# What a difference of one (a doubling, another recompute, another kind) counts: judgement, no
# published figure; the first nine are base-2 logs of sizes, the rest codes.
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
    "tuned": 0.8,
}
# what they are called, where not as here
WORDS = {"seq_len": "sequence length", "micro_batch": "micro-batch"}
# the kinds behind the codes
KINDS = {
    "moe": ("dense", "experts"),
    "low": ("16 bit", "fp8 or fp4"),
    "sharded": ("whole weights", "sharded weights"),
    "tuned": ("typical effort", "tuned recipe"),
    "recompute": tuple(f"recompute {name}" for name in RECOMPUTES),
}
OTHER_CHIP, OTHER_FAMILY, OTHER_STACK = 2.0, 3.0, 1.5  # judgement, no published figure
SIZES = list(FAR)[:9]
FROM_ONE_SOURCE = 2  # rows, so that one long table does not fill the list


def conditions(c: Cases) -> dict[str, Column]:
    """Numbers by which two runs are near: base-2 logs of size, scale and layout, codes of the rest;
    one column each."""
    p, s = c.plan, c.shape
    sizes = {
        "devices": c.devices,
        "hidden": s.hidden,
        "layers": s.layers,
        "seq_len": c.job.seq_len,
        "tp": p.tp,
        "pp": p.pp,
        "cp": p.cp,
        "ep": p.ep,
        "micro_batch": p.micro_batch,
    }
    return {
        **{name: np.log2(np.maximum(size, 1.0)) for name, size in sizes.items()},
        "recompute": p.recompute * 1.0,
        "moe": (s.moe_layers > 0) * 1.0,
        "low": (c.job.precision >= 2) * 1.0,
        "sharded": (p.sharding >= 3) * 1.0,
        "tuned": (c.software.tuned > 0) * 1.0,
    }


@cache
def _published() -> tuple[Rows, dict[str, Array]]:
    """(rows as text, their conditions as columns) of the published runs that ship with the kit."""
    rows = csv_rows(HERE / "run_conditions.csv")
    return rows, {k: np.array([float(r[k]) for r in rows]) for k in FAR}


class NearRun(TypedDict):
    """A published run near a plan: what was printed of it, and how it differs."""

    id: str
    model: str
    accelerator: str
    stack: str
    plan: str
    source: str
    locator: str
    devices: int
    mfu: float  # measured
    mfu_predicted: float
    mfu_shown: float  # measured, as the headline counts attention
    predicted_shown: float
    distance: float
    differs: str


def nearest_runs(
    case: Cases,
    n: int = 5,
    *,
    chip: str = "",
    family: str = "",
    stack: str = "",
    basis: str = "full",
) -> list[NearRun]:
    """The `n` published runs nearest to one case, with how they differ.

    Distance: weighted base-2 logs of size, scale and layout, plus fixed amounts for another chip,
    family or stack; at most two rows of one source. `mfu` is the measured one in the convention of
    this kit, `mfu_predicted` what the kit says of that run from a fit without its family, attention
    in full; `mfu_shown` and `predicted_shown` the same with attention counted by `basis`, "full" or
    "causal", at that run's own length.
    """
    rows, columns = _published()
    here = {k: float(np.ravel(v)[0]) for k, v in conditions(case).items()}
    far: Array = np.zeros(len(rows))
    for condition, amount in FAR.items():
        far = far + amount * np.abs(columns[condition] - here[condition])
    far = far + np.array(
        [
            OTHER_CHIP * (r["accelerator"] != chip)
            + OTHER_STACK * (r["stack"] != stack)
            + OTHER_FAMILY * (r["accelerator"] != chip and r["family"] != family)
            for r in rows
        ]
    )
    nearest: list[NearRun] = []
    taken: Counter[str] = Counter()
    for i in np.argsort(far, kind="stable"):
        row = rows[i]
        taken[row["source"]] += 1
        if taken[row["source"]] <= FROM_ONE_SOURCE and len(nearest) < n:
            measured, predicted = float(row["mfu"]), float(row["mfu_predicted"])
            counted = float(row["causal_share"]) if basis == "causal" else 1.0
            nearest.append(
                {
                    "id": row["id"],
                    "model": row["model"],
                    "accelerator": row["accelerator"],
                    "stack": row["stack"],
                    "plan": row["plan"],
                    "source": row["source"],
                    "locator": row["locator"],
                    "devices": int(float(row["n_devices"])),
                    "mfu": measured,
                    "mfu_predicted": predicted,
                    "mfu_shown": measured * counted,
                    "predicted_shown": predicted * counted,
                    "distance": round(float(far[i]), 2),
                    "differs": _differs({k: columns[k][i] for k in FAR}, here, row, chip, stack),
                }
            )
    return nearest


def _differs(
    there: Mapping[str, float],
    here: Mapping[str, float],
    row: Mapping[str, str],
    chip: str,
    stack: str,
) -> str:
    """How a published run is not like a case, in words."""
    differences = [row["accelerator"]] if row["accelerator"] != chip else []
    if stack and row["stack"] != stack:
        differences.append(row["stack"])
    for name in SIZES:
        if abs(there[name] - here[name]) > 0.1:
            word = WORDS.get(name, name)
            differences.append(f"{word} {2 ** there[name]:,.0f} against {2 ** here[name]:,.0f}")
    for name, kinds in KINDS.items():
        if there[name] != here[name]:
            differences.append(kinds[int(there[name])])
    return ", ".join(differences) or "none"
