"""Which part of a plan a framework can express, the nearest plan that it can, and what that costs.

A framework says in `domain` which values of a plan's field it has words for (a field that is not
there: all), in `space` what the search for another plan leaves out, and in `gaps(launch)` what else
it lacks. The nearest plan
keeps the fields that the framework can express; more of them move where that is
clearly faster or where nothing fits otherwise. It is assessed like any other.
"""

from dataclasses import replace
from functools import cache, lru_cache

from scantling.base.errors import DesignError
from scantling.catalogue.families import families
from scantling.catalogue.models.patterns import layers_of
from scantling.catalogue.stacks import software_switches
from scantling.plans import space as planning
from scantling.plans.enumerate import divisors
from scantling.verdict.assess import assess
from scantling.verdict.verdicts import VERDICTS

from .framework import Framework
from .frameworks import FRAMEWORKS
from .record import Gap, LaunchPlan, launch_plan

PINNED = (
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
    "recompute_modules",
    "recompute_layers",
    "layout",
    "cp_type",
    "offload",
)
KEPT = (PINNED, ("tp", "cp", "pp", "ep", "etp", "sharding", "cp_type"), ("tp", "cp"), ())
SPACED = ("tp", "cp", "pp", "vpp", "ep", "etp", "sharding", "recompute", "schedule", "offload")
JOB = ("precision", "optimizer")
SPEC = ("seq_len", "global_batch", "tokens", *JOB)
# what a design says of a job besides
SAID = (
    "sync",
    "from_checkpoint",
    "evaluation_hours",
    "effort",
    "routing",
    "expert_skew",
    "capacity_factor",
    "node_limit",
    "document_tokens",
)
PLAIN = {"attn", "mlp", "moe"}  # blocks of models without a pattern
TIGHT = 0.9  # share of the memory above which another plan is looked for
MEMORY = "it does not fit in memory"


def in_words(gaps) -> str:
    """Gaps in one line."""
    return "; ".join(f"{g.field} {g.value}: {g.why}" for g in gaps)


class Inexpressible(DesignError):
    """No plan that the framework can express meets what the design asks for: the gaps, and why the
    nearest plan does not do."""

    def __init__(self, to, gaps, why):
        self.to = to
        self.gaps = tuple(gaps)
        self.why = why
        said = in_words(self.gaps)
        does_not = f"{to} cannot express the plan ({said}), and no plan that it can express will do"
        super().__init__(problem=f"{does_not}: {why}")


def misfits(launch: LaunchPlan) -> list:
    """What of the plan is outside the framework's domain."""
    plan = launch.plan
    out = []
    silent = {"schedule": plan["pp"] == 1, "cp_type": plan["cp"] == 1}
    for name, domain in launch.framework.domain.items():
        value = launch.phase.optimizer if name == "optimizer" else plan[name]
        if value not in domain.values and not silent.get(name):
            out.append(Gap(name, value, domain.why))
    return out + lacking(launch)


def hard_gaps(launch: LaunchPlan) -> list:
    """Those that nothing stands in for."""
    return [g for g in misfits(launch) if g.instead is None]


def lacking(launch: LaunchPlan) -> list:
    """What else of model and plan the framework lacks, in the words of its file."""
    plan = launch.plan
    model = launch.model
    named = {
        "model": model.name,
        "cluster.accelerator": launch.cluster.accelerator.name,
        "checkpoint.tiers": ", ".join(t["tier"] for t in launch.tiers),
        "reliability.recovery": launch.endurance["recovery"],
    } | plan
    asked = {
        "near": len(launch.tiers) > 1,
        "elastic": launch.endurance["recovery"] == "elastic",
        "key_heads": model.kv_heads % plan["tp"],
        "together": launch.sync == "local-steps" and str(launch.cluster.sites),
    }
    found = asked | launch.framework.lacks(launch, model, **plan)
    out = []
    for name, row in launch.framework.gaps.items():
        if held := found[name]:  # a text names what is lacking
            field = row["field"]
            said = held if isinstance(held, str) else named.get(field)
            said = getattr(model, field.partition(".")[2]) if said is None else said
            out.append(Gap(**row | {"value": said, "why": row["why"].format(**plan)}))
    mute = set(plan["recompute_modules"]) - {"layers"} - launch.framework.modules.keys()
    if mute:
        why = "it has no words for repeating these modules alone"
        out.append(Gap("recompute_modules", ", ".join(sorted(mute)), why))
    return out


def foreign(framework: Framework, model) -> list:
    """What of the blocks of a model's layers, and of how they stand, the framework's kit has no
    words for."""
    layers = layers_of(model.pattern)
    words = set().union(*layers)
    unknown = words - framework.blocks.keys()
    found = {
        "blocks side by side": "|" in model.pattern,
        "weights that several layers share": ">" in model.pattern,
        "layers with unlike numbers of blocks": len({*map(len, layers)}) > 1,
        "an indexer in some of the attention": "mla_dsa" in words and {"attn", "gdn"} & words,
        model.mixers: model.mixers,
    }
    return sorted(unknown - PLAIN or unknown) + [what for what, holds in found.items() if holds]


def buildable(own: LaunchPlan) -> None:
    """Raises Inexpressible where the framework's kit does not build the model's blocks."""
    lacks = foreign(own.framework, own.model)
    if not lacks:
        return
    able = {f.id: foreign(f, own.model) for f in FRAMEWORKS.values() if own.chip in f.chips}
    near = min(able, key=lambda to: len(able[to]))
    left = ", ".join(able[near])
    raise Inexpressible(
        own.to,
        [Gap("model.pattern", ", ".join(lacks), "its kit builds no such layers")],
        f"no kit does, --to {near} all but {left}" if left else f"--to {near} does",
    )


def kept_in_step(own: LaunchPlan) -> None:
    """Raises Inexpressible where a kit cannot run on the sites of the design as it says: no word
    for local steps, sites of several sizes, one scheduler for all."""
    kind = own.sync
    able = [f.id for f in FRAMEWORKS.values() if kind in f.sites and own.chip in f.chips]
    others = f"--to {' or '.join(able)} does, or " if able else ""
    sizes = own.cluster.by_site
    rules = (
        (
            kind not in own.framework.sites,
            Gap("job.sync.kind", kind, own.framework.sites.get("why", "")),
            f"{others}set job.sync.kind to synchronous",
        ),
        (
            len(set(sizes)) > 1 or sizes[0] % own.per_node,
            Gap("cluster.sites", sizes, "ranks are shared out evenly"),
            "give every site as many whole nodes",
        ),
        (
            own.on != "torchrun",
            Gap("--on", own.on, "each site has a scheduler of its own"),
            "write it --on torchrun, which each of them starts with its own NODE_RANKs",
        ),
    )
    for wrong, gap, instead in rules:
        if wrong:
            raise Inexpressible(own.to, [gap], instead)


def express(assessment, which: int, framework: Framework, on: str) -> LaunchPlan:
    """The launch plan of phase `which` under a framework: the assessment's own where it can be
    expressed, else the nearest, with the gaps.

    Raises Inexpressible where no plan that fits and keeps the constraints can be expressed.
    """
    own = launch_plan(assessment, framework, on, which)
    chip = own.cluster.accelerator.name
    chips = framework.chips
    if own.chip not in chips:
        named = dict.fromkeys(f.devices for f in families().values() if f.vendor_stack in chips)
        runs = f"runs on {' and '.join(named)}"
        gap = Gap("cluster.accelerator", chip, f"{framework.package} as written here {runs}")
        others = [f.id for f in FRAMEWORKS.values() if own.chip in f.chips]
        other = f"; --to {others[0]} is for it" if others else ", for which no kit is written"
        raise Inexpressible(framework.id, [gap], f"the plan is for {chip}{other}")
    buildable(own)
    packed = own.phase.software.get("document_tokens")
    if packed and own.chip not in framework.packs:
        gap = Gap("job.document_tokens", int(packed), "its attention runs over the whole sequence")
        raise Inexpressible(framework.id, [gap], "leave it out; --to maxtext has it on TPUs")
    if own.sync:
        kept_in_step(own)
    own, waits = without_shrinking(own, which)
    asked = own
    swaps = []
    built = framework.builds(own.model)
    if built != own.model:
        swaps = [g for g in misfits(own) if g.field.startswith("model")]
        own = _beside(asked, rebuilt(own, built, swaps))
        cost = _against(own, asked)
        still = misfits(own)
        swaps = [replace(g, cost=cost) for g in swaps if g not in still]
    hard = hard_gaps(own)
    if not hard:
        return replace(own, gaps=(*swaps, *misfits(own), *waits))
    launch = _beside(asked, nearest(own, hard))
    cost = _against(launch, asked)
    now = {"optimizer": launch.phase.optimizer} | launch.plan
    shown = (replace(g, instead=now.get(g.field, "see the note"), cost=cost) for g in hard)
    return replace(
        launch, faster=faster(own, hard, launch), gaps=(*swaps, *shown, *misfits(launch), *waits)
    )


@lru_cache(maxsize=1)
def in_place(before):
    """The assessment of the same run, all its phases, where a lost node is waited for."""
    return assess(
        before.design.change({"reliability.recovery": "in-place"}),
        kit=before.resolved.kit,
        like=before,
    )


def without_shrinking(own: LaunchPlan, which: int) -> tuple:
    """The launch plan of the same run where a lost node is waited for, with what that costs, where
    the design counts on going on with fewer and the framework does not.

    Raises Inexpressible where that does not meet what the design asks for.
    """
    gaps = [g for g in lacking(own) if g.field == "reliability.recovery"]
    if not gaps:
        return own, []
    before = own.assessment
    trial = in_place(before)
    if VERDICTS[before.verdict].launch and not VERDICTS[trial.verdict].launch:
        raise Inexpressible(own.to, gaps, trial.missed[0].text)
    cost = f"goodput {trial.goodput:.2%} against {before.goodput:.2%}"
    made = launch_plan(trial, own.framework, own.on, which)
    return made, [replace(gaps[0], cost=cost)]


def _beside(asked: LaunchPlan, assessment) -> LaunchPlan:
    """The launch plan of another assessment of the phase, under the name of the one that was asked
    for and beside its plan."""
    made = launch_plan(assessment, asked.framework, asked.on, 0)
    return replace(made, slug=asked.slug, asked=asked.plan, asked_step_s=asked.step_s)


def _against(launch: LaunchPlan, asked: LaunchPlan) -> str:
    """What a kit's model and plan cost against those that were asked for: parameters where they
    differ, step, memory."""
    new = launch.params.total
    old = asked.params.total
    count = f"{new:,.0f} parameters against {old:,.0f}, " if new != old else ""
    return (
        f"{count}{launch.step_s / asked.step_s - 1:+.1%} step time, "
        f"{launch.memory['total'] / 1e9:.1f} GB a device against "
        f"{asked.memory['total'] / 1e9:.1f} GB"
    )


def rebuilt(own: LaunchPlan, model, swaps):
    """The assessment of a phase with the model that the framework builds in place of the design's,
    under the same plan where it fits, else under the design's own pins.

    Raises Inexpressible where that does not meet what the design asks for.
    """
    for pins in (coherent(pins_of(own.plan), own), dict(own.phase.pins)):
        trial, why = _assessed(single(own, pins, {}), model=model)
        if trial:
            return trial
    raise Inexpressible(own.to, swaps, why)


def faster(own: LaunchPlan, hard, launch: LaunchPlan) -> tuple:
    """(plan, step_s) of the search among all that the framework can express, where that is at least
    5 % faster than the nearest plan; else ()."""
    if not own.phase.pins:
        return ()
    trial, _ = _try(own, {}, *plans_of(own, hard))
    quick = trial and trial.step_s < 0.95 * launch.step_s
    return (dict(trial.plan), trial.step_s) if quick else ()


def plans_of(own: LaunchPlan, hard):
    """(what of the job has to change, the plans that the framework can express)."""
    framework = own.framework
    domain = framework.domain
    outside = {g.field for g in hard}
    job = {name: domain[name].values[0] for name in JOB if name in outside}
    limit = {k: d.values for k, d in domain.items() if k in SPACED}
    if "offload" in limit:
        limit["offload"] = ("none",) if "none" in limit["offload"] else ()
    if "key_heads" in framework.gaps:
        limit["tp"] = (*divisors(own.model.kv_heads).tolist(),)
    return job, replace(planning.DEFAULT, **(limit | framework.space))


def nearest(own: LaunchPlan, hard):
    """The assessment of a plan that the framework can express: of those that keep less and less,
    the first within 3 % of the fastest."""
    framework = own.framework
    outside = {g.field for g in hard}
    reasons = []
    best = []
    # what the design itself states stays wherever the framework has words for it and something fits
    # so; what the search chose may move
    domain = framework.domain
    fits = {
        k: v
        for k, v in own.plan.items()
        if v is not None and k not in outside and (k not in domain or v in domain[k].values)
    }
    for stated in (own.phase.pins, ()):
        for kept in KEPT:
            pins = {k: fits[k] for k in PINNED if k in fits and (k in stated or k in kept)}
            pins = framework.adjust(coherent(pins, own), own, outside)
            found, why = _trials(own, pins, *plans_of(own, hard))
            best += sorted(found, key=lambda t: (_tight(t, own), t.step_s))[:1]
            reasons += why
        if best:
            break
    best = [t for t in best if not _tight(t, own)] or best
    if best:  # the nearer one unless another is clearly faster
        fastest = min(t.step_s for t in best)
        return next(t for t in best if t.step_s <= 1.03 * fastest)
    common = max(reasons, key=reasons.count, default="none fits")
    raise Inexpressible(own.to, hard, MEMORY if MEMORY in reasons else common)


def _trials(own, pins, job, space):
    """(assessments, reasons why not) of these pins: with the search's own sharding, else with each
    that the framework has."""
    found = []
    reasons = []
    domain = own.framework.domain
    free = "sharding" in domain and "sharding" not in pins
    for more in ({}, *({"sharding": s} for s in (domain["sharding"].values if free else ()))):
        trial, reason = _try(own, pins | more, job, space)
        found += [trial] if trial else []
        reasons += [reason] if reason else []
        if trial and not more and not _tight(trial, own):
            break
    return found, reasons


def _tight(trial, own: LaunchPlan) -> bool:
    """Whether a plan fills more of the memory than TIGHT, and than the design's own does."""
    memory = trial.phases[0].memory
    return memory.total / memory.capacity > max(TIGHT, own.memory["total"] / own.memory["capacity"])


def _try(own, pins, job, space):
    """(assessment, "") of a plan of these pins that fits, can be expressed and keeps the
    constraints; (None, why not)."""
    trial, why = _assessed(single(own, pins, job), space=space, model=own.model)
    bad = trial and in_words(hard_gaps(_beside(own, trial)))
    return (None, bad) if bad else (trial, why)


def _assessed(design, **how):
    """(assessment, "") of a design that fits and keeps its constraints; (None, why not)."""
    try:
        trial = assess(design, **how)
    except DesignError as e:
        return None, str(e)
    if not trial.fits:
        return None, MEMORY
    if VERDICTS[trial.verdict].launch:
        return trial, ""
    said = "; ".join(m.text for m in (*trial.missed, *trial.reasons))
    return None, said or "a constraint is violated"


def pins_of(plan) -> dict:
    """All fields of a plan that a design can pin."""
    return {k: plan[k] for k in PINNED if plan[k] is not None}


def coherent(pins, own):
    """Pins without those that only make sense beside a field that is free now."""
    pin = pins.get
    split = {k for k in ("tp", "cp", "pp") if pin(k, 1) not in (None, 1)}
    staged = "pp" in split and own.plan["vpp"] != 1
    expert = pin("ep") is not None and own.model.is_moe
    repeated = pin("recompute_layers") and pin("recompute", "none") != "none"
    sensible = {
        "shard_group": pin("sharding") == "hsdp",
        "sp": "tp" in split,
        "recompute_layers": repeated,
        "recompute_modules": pin("recompute") == "selective"
        and "recompute_modules" in own.phase.pins,
        "vpp": staged,
        "schedule": staged,
        "etp": expert,
        "ep": expert,
        "cp_type": "cp" in split,
        "layout": pin("pp", 0) * pin("vpp", 1) == len(pin("layout", ())),
    }
    return {k: v for k, v in pins.items() if sensible.get(k, True)}


@cache
def software_fields() -> frozenset[str]:
    """Fields of a plan that switch software on or off, which no nearest plan moves."""
    return frozenset(s.field.removeprefix("plan.") for s in software_switches().values())


def single(own: LaunchPlan, pins, job):
    """The design of one phase alone, with these pins; constraints on the whole run only where there
    is one phase."""
    design = own.assessment.design
    spec = {k: v for k in SPEC if (v := getattr(own.phase, k)) is not None}
    data = dict(design.data())
    said = dict(data["job"])
    if "phases" in said:
        said |= said["phases"][[c.phase for c in own.assessment.phases].index(own.phase)]
    spec |= {k: said[k] for k in SAID if k in said}
    stated = data.get("plan", {}) | said.get("plan", {})
    data |= {
        "reliability": {"recovery": "in-place"} | data.get("reliability", {}),  # no kit shrinks
        "job": spec | job,
        "plan": {k: stated[k] for k in stated if k in software_fields()} | pins,
    }
    if len(own.assessment.phases) > 1:
        data.pop("constraints", None)
    return type(design).from_data(data, design.folder)
