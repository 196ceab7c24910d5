"""What measured steps of a site tell of further steps there: a posterior over the constants of a
step, and over what no constant explains.

ln(measured / foretold step) of a run is J ln c + u + scatter: c are the factors of the site on the
constants (rates of products, attention and memory, host time, links by span and operation, cost of
a dispatch, stragglers ...), J what the step of that run owes to each (d ln step / d ln constant), u
what no constant explains, alike for runs that are alike. A priori ln c ~ N(0, sd^2), u a Gaussian
process of the kernel `covariance` draws; all their spreads are rows of catalogue/site_priors.csv,
fitted on published runs of sites that the constants had not seen. Several models, plans and sizes
tell together what one alone cannot: what the rows do not tell apart stays near its prior.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from ..base.columns import Array, Column
from ..base.files import csv_rows
from ..base.records import record
from ..catalogue.load import HERE
from ..catalogue.models.shape import parameters
from .cases import Cases
from .constants import Constants
from .step import PARTS, step_time

# sizes of a run by base-2 logs, and codes that are alike or not: what makes two runs alike
SIZES = (
    "active",
    "seq_len",
    "devices",
    "tp",
    "pp",
    "vpp",
    "cp",
    "ep",
    "micro_batch",
    "micro_batches",
)
CODES = ("model", "sharding", "recompute", "precision", "dispatcher", "stack")
OTHER_MODEL = 0.07  # base-2 logs of active parameters, a twentieth: other models; judgement
SLOPE = 0.05  # of the log of a constant, for the slope of the log of a step
ROUNDS = 6  # of weighing the rows anew
BENDS = 3  # of working the step out anew at the posterior
BEFORE = 8.0  # runs that what was expected of their spread counts as; judgement
LEAST_SPREAD = 3  # runs from which a spread shows
SPREADS = (0.7, 2.0)  # least and most that their spread may be over what was expected
MOST_WIDENED = 1.5


@record
class SitePriors:
    """Spreads of a site before a step of it is seen; rows of catalogue/site_priors.csv."""

    constants: Mapping[str, float]  # sd of ln of the site's factor on each constant
    nearness: Mapping[str, float]  # what a difference of one counts, by SIZES, CODES and "shares"
    unexplained: float  # sd of ln of what no constant explains
    scatter: float  # sd of ln of one run that is sound
    odd_share: float  # share of rows that are not: another setting, a sick node, a misprint
    odd: float  # sd of ln of those


@cache
def priors() -> SitePriors:
    """The spreads that ship with the kit."""
    rows = csv_rows(HERE / "site_priors.csv")
    of = {kind: {r["name"]: float(r["value"]) for r in rows if r["kind"] == kind} for kind in KINDS}
    return SitePriors(constants=of["constant"], nearness=of["nearness"], **of["spread"])


KINDS = ("constant", "nearness", "spread")


class Marks(NamedTuple):
    """What decides how much one run tells of another; a row each."""

    slopes: Array  # d ln step / d ln constant, (rows, constants)
    sizes: Array  # (rows, SIZES)
    codes: Array  # (rows, CODES but for the model and the stack)
    shares: Array  # of the step by part, (rows, PARTS)
    stacks: Array  # names

    def take(self, rows: Array) -> "Marks":
        """Some rows."""
        return Marks(*(column[rows] for column in self))


def slopes(case: Cases, names: Sequence[str]) -> Array:
    """d ln step / d ln constant of every row, (rows, constants): differences of the step with each
    constant a little more and a little less."""
    total = step_time(case).total
    if np.ndim(total) == 0 and not case.shape.order:  # a model in order has a column of layers
        return slopes_of_one(case, names)
    out = np.zeros((len(np.atleast_1d(total)), len(names)))
    usual = vars(case.constants)
    for i, name in enumerate(names):
        ends = [
            step_time(replace(case, constants=Constants(**{**usual, name: usual[name] * factor})))
            for factor in (np.exp(SLOPE), np.exp(-SLOPE))
        ]
        more, less = (np.log(end.total) for end in ends)
        out[:, i] = (more - less) / (2 * SLOPE)
    return out


def slopes_of_one(case: Cases, names: Sequence[str]) -> Array:
    """The same of one case, all constants in one pass: a row for each of them and each way."""
    usual, count = vars(case.constants), len(names)
    moved: dict[str, Any] = dict(usual)
    for i, name in enumerate(names):
        factors: Array = np.ones(2 * count)
        factors[i], factors[count + i] = np.exp(SLOPE), np.exp(-SLOPE)
        moved[name] = usual[name] * factors
    total = step_time(replace(case, constants=Constants(**moved))).total
    ln = np.log(np.broadcast_to(total, 2 * count)).reshape(2, count)
    slope: Array = (ln[:1] - ln[1:]) / (2 * SLOPE)
    return slope


def marks(case: Cases, stacks: Array, names: Sequence[str] = ()) -> Marks:
    """What decides how much the runs of some cases tell of others; slopes of `names` alone."""
    plan = case.plan
    step = step_time(case)
    seconds, total = vars(step), step.total
    rows = len(np.atleast_1d(total))
    sizes: dict[str, Column] = {
        "active": parameters(case.shape).active,
        "seq_len": case.job.seq_len,
        "devices": case.devices,
        "tp": plan.tp,
        "pp": plan.pp,
        "vpp": plan.vpp,
        "cp": plan.cp,
        "ep": plan.ep,
        "micro_batch": plan.micro_batch,
        "micro_batches": case.micro_batches,
    }
    codes = (plan.sharding, plan.recompute, case.job.precision, case.software.dedup_dispatch)
    return Marks(
        slopes=slopes(case, names) if names else np.zeros((rows, 0)),
        sizes=np.log2(np.maximum(columns([sizes[name] for name in SIZES], rows), 1e-9)),
        codes=columns(codes, rows),
        shares=columns([seconds[part] / total for part in PARTS], rows),
        stacks=np.broadcast_to(np.asarray(stacks, object), rows),
    )


def columns(values: Sequence[Column], rows: int) -> Array:
    """Numbers and columns as columns of a matrix."""
    return np.stack([np.broadcast_to(np.asarray(v, float), rows) for v in values], axis=1)


def apart(a: Marks, b: Marks, j: int, nearness: Mapping[str, float]) -> Array:
    """How far the runs of `a` lie from run j of `b`: weighted squares of differences of sizes,
    weights of codes that differ, and half of what the shares of the steps differ by. A run without
    a stack is near to any."""
    square = (a.sizes - b.sizes[j]) ** 2
    far: Array = square @ np.array([nearness[name] for name in SIZES])
    far = far + nearness["model"] * (np.sqrt(square[:, 0]) > OTHER_MODEL)
    differ: Array = a.codes != b.codes[j]
    far = far + differ @ np.array([nearness[name] for name in CODES[1:-1]])
    unnamed = (a.stacks == "") | (b.stacks[j] == "")
    far = far + nearness["stack"] * ((a.stacks != b.stacks[j]) & ~unnamed)
    moved: Array = np.abs(a.shares - b.shares[j]).sum(axis=1) / 2
    return far + nearness["shares"] * moved


def alike(a: Marks, b: Marks, j: int, before: SitePriors) -> Array:
    """Covariance of what no constant explains with that of run j of `b`: unexplained^2 e^-apart."""
    near: Array = np.exp(-apart(a, b, j, before.nearness))
    near *= before.unexplained**2
    return near


def covariance(a: Marks, b: Marks, sd: Array, before: SitePriors) -> Array:
    """Covariance of ln(measured / foretold) before a step is seen, scatter left out: what the
    constants share, J sd^2 J^T, and what no constant explains."""
    shared: Array = (a.slopes * sd**2) @ b.slopes.T
    shared += np.stack([alike(a, b, j, before) for j in range(len(b.sizes))], axis=1)
    return shared


def variance_before(runs: Marks, sd: Array) -> Array:
    """Variance of ln(measured / foretold) of runs at a site of which no step was measured."""
    before = priors()
    moved: Array = ((runs.slopes * sd) ** 2).sum(axis=1)
    moved += before.unexplained**2 + before.scatter**2
    return moved


class Weighed(NamedTuple):
    """Measured rows as far as the others bear them out."""

    scatter: Array  # variance of each
    odd: Array  # chance that it is not what the others say
    apart: Array  # standard deviations between it and what the others say of it
    ln_ratio: Array  # the same as ln of measured over what they say


def weighed(prior: Array, ln_ratio: Array, before: SitePriors) -> Weighed:
    """The scatter that each measured row has to be given, from what the others say of it.

    A row is sound (scatter s) or, in a share e of cases, odd (scatter t). Its chance p of being odd
    follows from r, its distance to what the others foretell of it with variance k (row and column
    left out of the inverse): the two densities N(r; 0, k + s^2), N(r; 0, k + t^2). Its weight is
    then w = (1-p) k/(k+s^2) + p k/(k+t^2), as of a scatter of k/w - k.
    """
    sound, odd = before.scatter**2, before.odd**2
    scatter = np.full(len(ln_ratio), sound)
    for _ in range(ROUNDS):
        inverse = np.linalg.inv(prior + np.diag(scatter))
        own = np.diag(inverse)
        left = (inverse @ ln_ratio) / own
        variance = np.maximum(1 / own - scatter, 1e-9)
        is_sound = (1 - before.odd_share) * density(left, variance + sound)
        is_odd = before.odd_share * density(left, variance + odd)
        chance = is_odd / (is_sound + is_odd)
        weight = (1 - chance) * variance / (variance + sound) + chance * variance / (variance + odd)
        scatter = variance / weight - variance
    return Weighed(scatter, chance, left / np.sqrt(variance + sound), left)


def density(x: Array, variance: Array) -> Array:
    """Density of N(0, variance) at x, but for a constant."""
    return np.exp(-0.5 * x**2 / variance) / np.sqrt(variance)


@record
class Learned:
    """Measured steps of a site, and what follows from them for others. Two are the same where their
    measured runs are."""

    names: tuple[str, ...]  # of the constants
    sd: Array  # of ln of each before a step was seen
    marks: Marks  # of the measured runs
    ln_ratio: Array  # ln of measured over foretold step, on the straight line through the posterior
    scatter: Array  # variance of each
    spread: float  # of the runs about what the posterior says of them, over what was expected
    stacks: Array | str = ""  # of the runs that it is asked for

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Learned) and self.content == other.content

    def __hash__(self) -> int:
        return hash(self.content)

    @cached_property
    def content(self) -> tuple[str, ...]:
        """What it holds, as text."""
        columns = (self.sd, *self.marks, self.ln_ratio, self.scatter, np.asarray(self.stacks))
        return (*self.names, str(self.spread), *(str(column.tolist()) for column in columns))

    @cached_property
    def inverse(self) -> Array:
        """Of the covariance of the measured runs."""
        prior = covariance(self.marks, self.marks, self.sd, priors())
        return np.linalg.inv(prior + np.diag(self.scatter))

    @cached_property
    def pull(self) -> Array:
        """How much each measured run moves what is like it."""
        return self.inverse @ self.ln_ratio

    @cached_property
    def factors(self) -> dict[str, float]:
        """The site's factor on each constant."""
        ln = self.sd**2 * (self.marks.slopes.T @ self.pull)
        return {name: float(np.exp(x)) for name, x in zip(self.names, ln)}

    @property
    def straight(self) -> Array:
        """ln of the factor on the step of each measured run by the constants, were it a straight
        line in ln of them."""
        ln: Array = self.marks.slopes @ np.log([self.factors[name] for name in self.names])
        return ln

    @cached_property
    def left_open(self) -> dict[str, float]:
        """Standard deviation of ln of each constant that is left open."""
        told = self.marks.slopes * self.sd**2
        left = self.sd**2 - np.einsum("ij,ik,kj->j", told, self.inverse, told)
        return {n: float(np.sqrt(max(v, 0.0))) for n, v in zip(self.names, left)}

    def of(self, case: Cases, slopes_too: bool) -> Marks:
        """The marks of some cases."""
        return marks(case, np.asarray(self.stacks, object), self.names if slopes_too else ())

    def unexplained_of(self, here: Marks) -> Array:
        """ln of the factor on the step of some runs that no constant explains."""
        ln: Array = np.zeros(len(here.sizes))
        for j, pull in enumerate(self.pull):  # a space of plans has many rows, a site few
            ln = ln + pull * alike(here, self.marks, j, priors())
        return ln

    def unexplained(self, case: Cases) -> Column:
        """The same of some cases."""
        return _like(self.unexplained_of(self.of(case, False)), case)

    def variances(self, here: Marks) -> tuple[Array, Array]:
        """Variance of ln(step / foretold) of some runs, scatter included: before any step of the
        site was measured, and after."""
        before = priors()
        prior = variance_before(here, self.sd)
        between = covariance(here, self.marks, self.sd, before)
        told = np.einsum("ij,jk,ik->i", between, self.inverse, between)
        return prior, np.maximum(prior - told, before.scatter**2)

    def narrowing_of(self, here: Marks) -> Array:
        """Width of a band on ln of the step of some runs over what it is at a site without a
        measured step, as wide again as the measured runs lie about the posterior; MOST_WIDENED at
        most."""
        before, after = self.variances(here)
        return np.minimum(np.sqrt(after / before) * self.spread, MOST_WIDENED)

    def narrowing(self, case: Cases) -> Column:
        """The same of some cases."""
        return _like(self.narrowing_of(self.of(case, True)), case)


def told(
    names: tuple[str, ...], sd: Array, runs: Marks, ln_ratio: Array
) -> tuple[Learned, Weighed]:
    """The posterior of a site by ln(measured / foretold step) of its runs, as if the step were a
    straight line in ln of its constants, and how far the runs bear one another out."""
    weight = weighed(covariance(runs, runs, sd, priors()), ln_ratio, priors())
    site = Learned(
        names=names,
        sd=sd,
        marks=runs,
        ln_ratio=ln_ratio,
        scatter=weight.scatter,
        spread=spread_of(weight),
    )
    return site, weight


def fitted(
    names: tuple[str, ...],
    sd: Array,
    runs: Marks,
    ln_measured: Array,
    ln_step: Callable[[Mapping[str, float]], Array],
) -> tuple[Learned, Weighed]:
    """The posterior of a site by its measured runs, and how far they bear one another out.

    ln_measured: ln of the measured seconds of a step; ln_step: ln of the foretold ones with the
    constants times some factors. The step is no straight line in ln of its constants: it is worked
    out anew at the posterior, and what it bends is taken from what was measured, BENDS times.
    """
    usual = ln_step({})
    site, weight = told(names, sd, runs, ln_measured - usual)
    for _ in range(BENDS):
        bent = ln_step(site.factors) - usual - site.straight
        site, weight = told(names, sd, runs, ln_measured - usual - bent)
    return site, weight


def fewer(site: Learned, most: int) -> Learned:
    """A site by `most` of its runs, each with the mean of those that are nearest to it: the one
    that the others tell least of first, by its variance given those chosen before it (a pivoted
    Cholesky factor)."""
    rows = len(site.ln_ratio)
    if rows <= most:
        return site
    prior = covariance(site.marks, site.marks, site.sd, priors())
    left, factor, chosen = np.diag(prior).copy(), np.zeros((rows, most)), []
    for k in range(most):
        i = int(np.argmax(left))
        chosen.append(i)
        column = (prior[:, i] - factor[:, :k] @ factor[i, :k]) / np.sqrt(max(left[i], 1e-12))
        factor[:, k] = column
        left = np.where(np.isin(np.arange(rows), chosen), -1.0, left - column**2)
    scale = np.sqrt(np.diag(prior))
    nearest = np.argmax((prior / scale / scale[:, None])[:, chosen], axis=1)
    nearest[chosen] = np.arange(most)
    certain = 1 / site.scatter
    sums = np.bincount(nearest, certain, most)
    return replace(
        site,
        marks=site.marks.take(np.array(chosen)),
        ln_ratio=np.bincount(nearest, certain * site.ln_ratio, most) / sums,
        scatter=1 / sums,
    )


def spread_of(weight: Weighed) -> float:
    """How widely sound runs lie about what the others say of them, over what was expected, which
    counts as BEFORE runs; one or two runs show no spread."""
    if len(weight.odd) < LEAST_SPREAD:
        return 1.0
    squares = (1 - weight.odd) * weight.apart**2 + weight.odd
    spread = np.sqrt((BEFORE + squares.sum()) / (BEFORE + len(squares)))
    return float(np.clip(spread, *SPREADS))


def _like(values: Array, case: Cases) -> Column:
    """A column of results, or the one number where a case is one."""
    return values if np.ndim(step_time(case).total) else float(values[0])
