"""Which part of a plan a framework can express, the nearest plan that it can, and what that costs.

A framework's module says in `DOMAIN` which values of a plan's field it has words for (a field that
is not there: all), in `SPACE` what
the search for another plan leaves out, and in `gaps(launch)` what else it lacks. The nearest plan
keeps the fields that the framework can express; more of them move where that is
clearly faster or where nothing fits otherwise. It is assessed like any other.
"""

from __future__ import annotations

from dataclasses import replace

from ..base.errors import DesignError
from ..plans import space as planning
from ..verdict.assess import assess
from .record import Gap, LaunchPlan, launch_plan

FIELDS = (
    "tp",
    "cp",
    "pp",
    "vpp",
    "dp",
    "ep",
    "etp",
    "sp",
    "sharding",
    "shard_group",
    "schedule",
    "micro_batch",
    "grad_accum",
    "recompute",
    "recompute_layers",
    "cp_type",
    "offload",
    "precision",
)
KEPT = (
    (
        "tp",
        "cp",
        "pp",
        "vpp",
        "ep",
        "etp",
        "sp",
        "sharding",
        "shard_group",
        "schedule",
        "micro_batch",
        "recompute",
        "recompute_layers",
        "cp_type",
        "offload",
    ),
    ("tp", "cp", "pp", "ep", "etp", "sharding", "cp_type"),
    ("tp", "cp"),
    (),
)
SPACED = ("tp", "cp", "pp", "vpp", "ep", "etp", "sharding", "recompute", "schedule", "offload")
JOB = ("precision", "optimizer")


GPUS = ("nvidia", "amd")
MEMORY = "it does not fit in memory"
WORDS = {"nvidia": "CUDA devices", "amd": "ROCm devices", "tpu": "TPUs"}


class Inexpressible(Exception):
    """No plan that the framework can express meets what the design asks for: the gaps, and why the
    nearest plan does not do."""

    def __init__(self, to, gaps, why):
        self.to, self.gaps, self.why = to, tuple(gaps), why
        said = "; ".join(f"{g.field} {g.value}: {g.why}" for g in self.gaps)
        super().__init__(
            f"{to} cannot express the plan ({said}), and no plan that it can express will do: {why}"
        )


def misfits(module, launch: LaunchPlan) -> list[Gap]:
    """What of the plan is outside the framework's domain."""
    out = []
    for name, (allowed, why) in module.DOMAIN.items():
        value = launch.phase.optimizer if name == "optimizer" else launch.plan[name]
        if (
            name == "schedule"
            and launch.plan["pp"] == 1
            or name == "cp_type"
            and launch.plan["cp"] == 1
        ):
            continue
        if value not in allowed:
            out.append(Gap(name, value, why))
    return out + list(module.gaps(launch)) if hasattr(module, "gaps") else out


def express(assessment, which: int, module, to: str, on: str) -> LaunchPlan:
    """The launch plan of phase `which` under a framework: the assessment's own where it can be
    expressed, else the nearest, with the gaps.

    Raises Inexpressible where no plan that fits and keeps the constraints can be expressed.
    """
    own = launch_plan(assessment, to, on, which)
    chips = getattr(module, "CHIPS", GPUS)
    if own.chip not in chips:
        reach = [f for f in ("maxtext",) if own.chip == "tpu"]
        raise Inexpressible(
            to,
            [
                Gap(
                    "cluster.accelerator",
                    own.cluster.accelerator.name,
                    (
                        f"{module.PACKAGE} as written here runs on "
                        f"{' and '.join(WORDS[c] for c in chips)}"
                    ),
                )
            ],
            f"the plan is for {own.cluster.accelerator.name}"
            + (f"; --to {reach[0]} is for it" if reach else ", for which no kit is written"),
        )
    found = misfits(module, own)
    hard = [g for g in found if g.instead is None]
    if not hard:
        return replace(own, gaps=tuple(found))
    best = nearest(assessment, which, module, own, hard)
    launch = launch_plan(best, to, on, 0, gaps=(), asked=own)
    launch = replace(
        launch, slug=own.slug, faster=faster(assessment, which, module, own, hard, launch)
    )
    rest = misfits(module, launch)
    if [g for g in rest if g.instead is None]:
        raise Inexpressible(to, hard, "; ".join(f"{g.field} {g.value}: {g.why}" for g in rest))
    cost = (
        f"{launch.step_s / own.step_s - 1:+.1%} step time, "
        f"{launch.memory['total'] / 1e9:.1f} GB a device against "
        f"{own.memory['total'] / 1e9:.1f} GB"
    )
    shown = [
        replace(
            g,
            instead=launch.phase.optimizer
            if g.field == "optimizer"
            else launch.plan.get(g.field, "see the note"),
            cost=cost,
        )
        for g in hard
    ]
    return replace(launch, gaps=(*shown, *rest))


def faster(assessment, which, module, own, hard, launch) -> tuple:
    """(plan, step_s) of the search among all that the framework can express, where that is at least
    5 % faster than the nearest plan; else ()."""
    job, space = _space(module, hard)
    trial, _ = (
        _try(single(assessment, which, {}, job), space, module, own)
        if assessment.phases[which].phase.pins
        else (None, "")
    )
    return (dict(trial.plan), trial.step_s) if trial and trial.step_s < 0.95 * launch.step_s else ()


def _space(module, hard):
    """(what of the job has to change, the plans that the framework can express)."""
    outside, job = {g.field for g in hard}, {}
    for name in JOB:
        if name in outside:
            job[name] = module.DOMAIN[name][0][0]
    domain = {k: v for k, (v, _) in module.DOMAIN.items() if k in SPACED}
    limit = {
        k: v
        for k, v in domain.items()
        if k in ("tp", "cp", "pp", "vpp", "ep", "etp", "sharding", "recompute", "schedule")
    }
    space = replace(
        planning.DEFAULT, **{k: tuple(v) for k, v in limit.items() if isinstance(v, tuple)}
    )
    space = replace(space, **getattr(module, "SPACE", {}))
    if "offload" in domain:
        space = replace(space, offload=tuple(v for v in domain["offload"] if v == "none"))
    return job, space


def nearest(assessment, which, module, own: LaunchPlan, hard):
    """The assessment of a plan that the framework can express: of those that keep less and less,
    the first within 3 % of the fastest."""
    outside = {g.field for g in hard}
    job, space = _space(module, hard)
    reasons = []
    best = []
    # what the design itself states stays wherever the framework has words for it and something fits
    # so; what the search chose may move
    for stated in ({k for k in assessment.phases[which].phase.pins if k in KEPT[0]}, set()):
        for kept in KEPT:
            pins = {
                k: own.plan[k]
                for k in KEPT[0]
                if (k in kept or k in stated)
                and k not in outside
                and _inside(module, k, own.plan[k])
                and own.plan[k] is not None
            }
            pins = _coherent(pins, own, outside)
            if hasattr(module, "adjust"):
                pins = module.adjust(pins, own, outside)
            found, why = _trials(assessment, which, module, own, pins, job, space)
            best += [min(found, key=lambda t: (_share(t) > _roomy(own), t.step_s))] if found else []
            reasons += why
        if best:
            break
    best = [t for t in best if _share(t) <= _roomy(own)] or best
    if best:  # the nearer one unless another is clearly faster
        fastest = min(t.step_s for t in best)
        return next(t for t in best if t.step_s <= 1.03 * fastest)
    raise Inexpressible(
        own.to,
        hard,
        next(
            (r for r in reasons if r == MEMORY),
            max(reasons, key=reasons.count) if reasons else "none fits",
        ),
    )


def _trials(assessment, which, module, own, pins, job, space):
    """(assessments, reasons why not) of these pins: with the search's own sharding, else with each
    that the framework has."""
    found, reasons = [], []
    open_ = (
        []
        if "sharding" in pins or "sharding" not in module.DOMAIN
        else list(module.DOMAIN["sharding"][0])
    )
    for more in ({}, *({"sharding": s} for s in open_)):
        trial, reason = _try(single(assessment, which, pins | more, job), space, module, own)
        found += [trial] if trial else []
        reasons += [reason] if reason else []
        if trial and not more and _share(trial) <= _roomy(own):
            break
    return found, reasons


TIGHT = 0.9  # share of the memory above which another plan is looked for


def _share(assessment) -> float:
    return assessment.phases[0].memory.total / assessment.phases[0].memory.capacity


def _roomy(own: LaunchPlan) -> float:
    """The share of memory that a nearest plan may fill: that of the design's own, where it is
    fuller than TIGHT."""
    return max(TIGHT, own.memory["total"] / own.memory["capacity"])


def _try(design, space, module, own):
    """(assessment, None) of a design whose plan fits, can be expressed and keeps the constraints;
    (None, why not)."""
    try:
        trial = assess(design, space=space)
    except DesignError as e:
        return None, str(e)
    if trial.verdict == "impossible" or not trial.phases[0].fits:
        return None, MEMORY
    bad = [g for g in misfits(module, launch_plan(trial, own.to, own.on, 0)) if g.instead is None]
    if bad:
        return None, "; ".join(f"{g.field} {g.value}: {g.why}" for g in bad)
    if trial.verdict != "feasible":
        return None, "; ".join(m.text for m in trial.missed) or "a constraint is missed"
    return trial, None


def _inside(module, name, value):
    return name not in module.DOMAIN or value in module.DOMAIN[name][0]


def _coherent(pins, own, outside):
    """Pins without those that only make sense beside a field that is free now."""
    pins = dict(pins)
    if pins.get("sharding") != "hsdp":
        pins.pop("shard_group", None)
    if pins.get("tp") in (None, 1):
        pins.pop("sp", None)
    if not pins.get("recompute_layers") or pins.get("recompute", "none") == "none":
        pins.pop("recompute_layers", None)
    if pins.get("pp") in (None, 1) or own.plan["vpp"] == 1:
        pins.pop("vpp", None)
        pins.pop("schedule", None)
    if pins.get("ep") is None or not own.model.is_moe:
        pins.pop("etp", None)
        pins.pop("ep", None)
    if pins.get("cp") in (None, 1):
        pins.pop("cp_type", None)
    return pins


def single(assessment, which, pins, job):
    """The design of one phase alone, with these pins; constraints on the whole run only where there
    is one phase."""
    phase = assessment.phases[which].phase
    spec = dict(
        seq_len=phase.seq_len,
        global_batch=phase.global_batch,
        precision=phase.precision,
        optimizer=phase.optimizer,
    )
    if phase.tokens is not None:
        spec["tokens"] = phase.tokens
    data = dict(assessment.design.data())
    data["job"], data["plan"] = {**spec, **job}, pins
    if len(assessment.phases) > 1:
        data.pop("constraints", None)
    return type(assessment.design).from_data(data, assessment.design.folder)
