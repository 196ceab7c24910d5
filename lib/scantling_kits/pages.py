"""A kit put together: plan.json, the framework's files, scripts, README.md and checkpoint.md."""

from collections.abc import Sequence
from dataclasses import asdict
from json import dumps
from typing import Any

from scantling.base.json import clean
from scantling_site.job_site import site_of
from scantling_site.rollout.burn_in import scale_up_tests

from .budget import checkpoints
from .ladder import expectations
from .launch_plan import LaunchPlan
from .readme import readme
from .render import render, source
from .run_values import run_values
from .scripts import scripts
from .values import RunValues

PAGES = ("README.md", "plan.md", "assumptions.md")


def json_text(value: Any) -> str:
    """A value as the text of a JSON file."""
    return dumps(clean(value), indent=1, allow_nan=False) + "\n"


def plan_values(launch: LaunchPlan, run: RunValues) -> dict[str, Any]:
    """What plan.json holds: the plan that is launched, the one that was assessed, and what of it
    the framework has no words for."""
    job = launch.phase
    figures = launch.figures
    return {
        "name": launch.name,
        "framework": launch.to,
        "version": launch.framework.version,
        "on": launch.on,
        "plan": launch.plan,
        "assessed": launch.assessed,
        "not_expressed": [asdict(gap) for gap in launch.gaps],
        "devices": launch.devices,
        "nodes": launch.nodes,
        "devices_per_node": launch.per_node,
        "last_node": launch.last_node,
        "sites": launch.cluster.sites,
        "sync": launch.sync,
        "accelerator": launch.cluster.accelerator.id,
        "family": launch.cluster.accelerator.family,
        "layers_by_stage": launch.stages,
        "seq_len": job.seq_len,
        "global_batch": job.global_batch,
        "tokens": job.tokens,
        "steps": launch.steps,
        "precision": job.precision,
        "optimizer": job.optimizer,
        "params": launch.parameters,
        "shape": run.shape,
        "train": run.train,
        "memory_bytes": asdict(launch.memory),
        "step_s": launch.step_s,
        "assessed_step_s": launch.assessed_step_s,
        "figures": {
            name: value
            for name, value in figures.headline().items()
            if value is None or isinstance(value, (int, float))
        },
        "checkpoint": {
            "every_steps": launch.save_steps,
            "interval_s": figures.checkpoint_interval_s,
            "bytes": figures.checkpoint_bytes,
            "keep": launch.keep,
            "keep_days": launch.survival.keep_days,
            "tiers": launch.tiers,
        },
        "recovery": launch.survival.recovery,
        "environment": [variable._asdict() for variable in run.environment],
        "assumed": launch.assumed,
    }


def programs(launch: LaunchPlan) -> dict[str, str]:
    """The files that a run reads, name to text."""
    return _programs(launch, run_values(launch))


def _programs(launch: LaunchPlan, run: RunValues) -> dict[str, str]:
    return {
        **launch.framework.files(launch, run),
        **scripts(launch, run),
        "plan.json": json_text(plan_values(launch, run)),
    }


def kit(launch: LaunchPlan, rungs: Sequence[tuple[str, LaunchPlan]] = ()) -> dict[str, str]:
    """All files of one phase's kit, name to text; `rungs` are the (name, launch plan) of its
    ladder."""
    run = run_values(launch)
    out = _programs(launch, run)
    ladder = []
    if rungs:
        tests = {test.id: test for test in scale_up_tests(site_of(launch.assessment))}
        ladder = [expectations(name, rung, tests) for name, rung in rungs]
        out["ladder.json"] = json_text(ladder)
        out["check_ladder.py"] = source("check_ladder.py")
    framework_files = sorted(launch.framework.files(launch, run))
    saves = launch.framework.saves
    rows = checkpoints(launch)
    pages = readme(launch, run, framework_files, sorted(out), ladder)
    return {
        **out,
        **{name: render(f"{name}.j2", r=pages) for name in PAGES},
        "checkpoint.md": render("checkpoint.md.j2", name=launch.name, rows=rows, saves=saves),
    }
