"""The launch plan of one phase of an assessment."""

from dataclasses import asdict, replace
from functools import partial
from itertools import pairwise

from scantling.advise.why import why
from scantling.endure.reliability import Endurance
from scantling.physics.cases import devices as devices_of
from scantling.physics.communication import communication
from scantling.physics.layout import runs
from scantling.physics.memory.peak import Memory
from scantling.verdict.assessment import Assessment, Chosen
from scantling.verdict.limits import limits
from scantling.verdict.numbers import speeds, useful_s
from scantling_site.placement import leaf_nodes
from scantling_site.storage import copies

from .launch_plan import Framework, LaunchPlan, no_reasons
from .quote import slug
from .values import DeviceMemory, Plan, Survival, Traffic


def launch_plan(assessment: Assessment, framework: Framework, on: str, which: int) -> LaunchPlan:
    """The record of phase `which` of an assessment that has a plan."""
    chosen = assessment.phases[which]
    r = assessment.resolved
    endurance = assessment.endurance
    if endurance is None:
        raise ValueError("an impossible design has no plan to launch")
    every_s, phase_s = useful_s(assessment.phases), useful_s([chosen])
    phase_name = f" {chosen.phase.name or which + 1}" if len(assessment.phases) > 1 else ""
    plan = Plan(**chosen.plan)
    return LaunchPlan(
        assessment=assessment,
        name=r.name,
        slug=slug(r.name + phase_name),
        framework=framework,
        on=on,
        model=r.model,
        params=r.params,
        cluster=r.cluster,
        phase=chosen.phase,
        does=chosen.case.software,
        plan=plan,
        devices=int(devices_of(chosen.case.plan)),
        runs=tuple(end - first for first, end in pairwise(runs(chosen.case))),
        memory=_memory(chosen.memory),
        step_s=chosen.step_s,
        figures=replace(assessment, **speeds(chosen)._asdict()),
        survival=_survival(endurance),
        reasons=partial(why, assessment) if which == r.main else no_reasons,
        communication=_traffic(chosen),
        limits=partial(limits, assessment),
        assumed=tuple(map(asdict, assessment.assumed)),
        assessed=plan,
        assessed_step_s=chosen.step_s,
        stack=r.stack,
        dispatcher=stated_dispatcher(assessment, which),
        leaf_nodes=leaf_nodes(r.cluster),
        keep=copies(endurance),
        later=which > 0,
        time_share=phase_s / every_s if phase_s and every_s else 1.0,
        run_tokens=sum(p.tokens or 0.0 for p in r.phases),
    )


def stated_dispatcher(assessment: Assessment, which: int) -> str:
    """The word that the design has for what sends tokens to experts in phase `which`; "" where it
    names none. The step counts several of them alike, so its number does not tell."""
    data = assessment.design.data()
    job = data["job"]
    if "phases" in job:
        job = {**job, **job["phases"][which]}
    plan = {**data.get("plan", {}), **job.get("plan", {})}
    return str(plan.get("moe_dispatcher") or "").lower()


def _traffic(chosen: Chosen) -> tuple[Traffic, ...]:
    rows = communication(chosen.case, chosen.step)
    return tuple(
        Traffic(
            axis=row["axis"],
            what=row["what"],
            group=row["group"],
            tier=row["tier"],
            bytes=row["bytes"],
            calls=row["calls"],
            time_s=row["time_s"],
            exposed_s=row["exposed_s"],
        )
        for row in rows
    )


def _memory(peak: Memory) -> DeviceMemory:
    return DeviceMemory(
        weights=float(peak.weights),
        gradients=float(peak.gradients),
        optimizer=float(peak.optimizer),
        activations=float(peak.activations),
        other=float(peak.other),
        total=float(peak.total),
        capacity=float(peak.capacity),
    )


def _survival(endurance: Endurance) -> Survival:
    values = endurance.as_dict()
    return Survival(
        recovery=values["recovery"],
        restart_s=values["restart_s"],
        stall_s=values["checkpoint_stall_s"] or 0.0,
        durable_s=values["checkpoint_durable_s"] or 0.0,
        keep_days=values["keep_days"],
        tiers=tuple(values["tiers"]),
    )
