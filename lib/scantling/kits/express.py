"""Which part of a plan a framework can express, the nearest plan that it can, and what that costs.

A framework says in `domain` which values of a plan's field it has words for (a field that is not
there: all), in `space` what the search for another plan leaves out, and in `gaps(launch)` what else
it lacks. The nearest plan
keeps the fields that the framework can express; more of them move where that is
clearly faster or where nothing fits otherwise. It is assessed like any other.
"""

from __future__ import annotations

from dataclasses import replace

from ..base.errors import DesignError
from ..plans import space as planning
from ..verdict.assess import assess
from .framework import Framework
from .frameworks import FRAMEWORKS
from .record import Gap, LaunchPlan, launch_plan

FIELDS = (
    "tp cp pp vpp dp ep etp sp sharding shard_group schedule micro_batch grad_accum "
    "recompute recompute_layers cp_type offload precision"
).split()
PINNED = (
    "tp cp pp vpp ep etp sp sharding shard_group schedule micro_batch recompute "
    "recompute_layers cp_type offload"
).split()
KEPT = (PINNED, "tp cp pp ep etp sharding cp_type".split(), ("tp", "cp"), ())
SPACED = "tp cp pp vpp ep etp sharding recompute schedule offload".split()
JOB = ("precision", "optimizer")


MEMORY = "it does not fit in memory"
WORDS = {
    "nvidia": "CUDA devices",
    "amd": "ROCm devices",
    "tpu": "TPUs",
}


class Inexpressible(Exception):
    """No plan that the framework can express meets what the design asks for: the gaps, and why the
    nearest plan does not do."""

    def __init__(
        self,
        to,
        gaps,
        why,
    ):
        self.to, self.gaps, self.why = to, tuple(gaps), why
        said = "; ".join(f"{g.field} {g.value}: {g.why}" for g in self.gaps)
        super().__init__(
            f"{to} cannot express the plan ({said}), and no plan that it can express will do: {why}"
        )


def misfits(launch: LaunchPlan) -> list[Gap]:
    """What of the plan is outside the framework's domain."""
    plan, out = launch.plan, []
    silent = {
        "schedule": plan["pp"] == 1,
        "cp_type": plan["cp"] == 1,
    }
    for name, domain in launch.framework.domain.items():
        value = launch.phase.optimizer if name == "optimizer" else plan[name]
        if value not in domain.values and not silent.get(name):
            out.append(Gap(name, value, domain.why))
    return out + lacking(launch)


def lacking(launch: LaunchPlan) -> list[Gap]:
    """What else of model and plan the framework lacks, in the words of its file."""
    plan, model = launch.plan, launch.model
    named = {
        "model": model.name,
        "cluster.accelerator": launch.cluster.accelerator.name,
    } | plan
    found, out = launch.framework.lacks(launch, model, **plan), []
    for name, row in launch.framework.gaps.items():
        if held := found[name]:  # a text names what is lacking
            field = row["field"]
            value = named[field] if field in named else getattr(model, field.partition(".")[2])
            said = held if isinstance(held, str) else value
            out.append(
                Gap(
                    **row
                    | {
                        "value": said,
                        "why": row["why"].format(**plan),
                    }
                )
            )
    return out


def express(
    assessment,
    which: int,
    framework: Framework,
    on: str,
) -> LaunchPlan:
    """The launch plan of phase `which` under a framework: the assessment's own where it can be
    expressed, else the nearest, with the gaps.

    Raises Inexpressible where no plan that fits and keeps the constraints can be expressed.
    """
    own = launch_plan(
        assessment,
        framework,
        on,
        which,
    )
    chips = framework.chips
    if own.chip not in chips:
        others = [f.id for f in FRAMEWORKS.values() if own.chip in f.chips]
        raise Inexpressible(
            framework.id,
            [
                Gap(
                    "cluster.accelerator",
                    own.cluster.accelerator.name,
                    (
                        f"{framework.package} as written here runs on "
                        f"{' and '.join(WORDS[c] for c in chips)}"
                    ),
                )
            ],
            f"the plan is for {own.cluster.accelerator.name}"
            + (f"; --to {others[0]} is for it" if others else ", for which no kit is written"),
        )
    found = misfits(own)
    hard = [g for g in found if g.instead is None]
    if not hard:
        return replace(own, gaps=tuple(found))
    best = nearest(
        assessment,
        which,
        own,
        hard,
    )
    launch = launch_plan(
        best,
        framework,
        on,
        0,
        asked=own,
    )
    launch = replace(
        launch,
        slug=own.slug,
        faster=faster(
            assessment,
            which,
            own,
            hard,
            launch,
        ),
    )
    rest = misfits(launch)
    if [g for g in rest if g.instead is None]:
        raise Inexpressible(
            framework.id, hard, "; ".join(f"{g.field} {g.value}: {g.why}" for g in rest)
        )
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


def faster(
    assessment,
    which,
    own,
    hard,
    launch,
) -> tuple:
    """(plan, step_s) of the search among all that the framework can express, where that is at least
    5 % faster than the nearest plan; else ()."""
    job, space = _space(own.framework, hard)
    trial, _ = (
        _try(
            single(
                assessment,
                which,
                {},
                job,
            ),
            space,
            own,
        )
        if assessment.phases[which].phase.pins
        else (None, "")
    )
    return (dict(trial.plan), trial.step_s) if trial and trial.step_s < 0.95 * launch.step_s else ()


def _space(framework: Framework, hard):
    """(what of the job has to change, the plans that the framework can express)."""
    outside, job = {g.field for g in hard}, {}
    for name in JOB:
        if name in outside:
            job[name] = framework.domain[name].values[0]
    limit = {k: d.values for k, d in framework.domain.items() if k in SPACED}
    if "offload" in limit:
        limit["offload"] = tuple(v for v in limit["offload"] if v == "none")
    space = replace(planning.DEFAULT, **(limit | framework.space))
    return job, space


def nearest(
    assessment,
    which,
    own: LaunchPlan,
    hard,
):
    """The assessment of a plan that the framework can express: of those that keep less and less,
    the first within 3 % of the fastest."""
    outside = {g.field for g in hard}
    job, space = _space(own.framework, hard)
    reasons = []
    best = []
    # what the design itself states stays wherever the framework has words for it and something fits
    # so; what the search chose may move
    for stated in ({k for k in assessment.phases[which].phase.pins if k in PINNED}, set()):
        for kept in KEPT:
            pins = {
                k: own.plan[k]
                for k in PINNED
                if (k in kept or k in stated)
                and k not in outside
                and _inside(own.framework, k, own.plan[k])
                and own.plan[k] is not None
            }
            pins = _coherent(pins, own, outside)
            pins = own.framework.adjust(pins, own, outside)
            found, why = _trials(
                assessment,
                which,
                own,
                pins,
                job,
                space,
            )
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


def _trials(
    assessment,
    which,
    own,
    pins,
    job,
    space,
):
    """(assessments, reasons why not) of these pins: with the search's own sharding, else with each
    that the framework has."""
    found, reasons = [], []
    open_ = (
        []
        if "sharding" in pins or "sharding" not in own.framework.domain
        else list(own.framework.domain["sharding"].values)
    )
    for more in ({}, *({"sharding": s} for s in open_)):
        trial, reason = _try(
            single(
                assessment,
                which,
                pins | more,
                job,
            ),
            space,
            own,
        )
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


def _try(
    design,
    space,
    own,
):
    """(assessment, None) of a design whose plan fits, can be expressed and keeps the constraints;
    (None, why not)."""
    try:
        trial = assess(design, space=space)
    except DesignError as e:
        return None, str(e)
    if trial.verdict == "impossible" or not trial.phases[0].fits:
        return None, MEMORY
    bad = [
        g
        for g in misfits(
            launch_plan(
                trial,
                own.framework,
                own.on,
                0,
            )
        )
        if g.instead is None
    ]
    if bad:
        return None, "; ".join(f"{g.field} {g.value}: {g.why}" for g in bad)
    if trial.verdict != "feasible":
        return None, "; ".join(m.text for m in trial.missed) or "a constraint is missed"
    return trial, None


def _inside(
    framework: Framework,
    name,
    value,
) -> bool:
    return name not in framework.domain or value in framework.domain[name].values


def _coherent(
    pins,
    own,
    outside,
):
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


def single(
    assessment,
    which,
    pins,
    job,
):
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
    data["job"], data["plan"] = (
        {
            **spec,
            **job,
        },
        pins,
    )
    if len(assessment.phases) > 1:
        data.pop("constraints", None)
    return type(assessment.design).from_data(data, assessment.design.folder)
