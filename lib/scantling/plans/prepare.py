"""A design made ready for the models: resolved, its own calibration read, its pins found legal."""

from contextlib import suppress
from dataclasses import replace

from ..base.errors import DesignError
from ..base.records import Assumed
from ..catalogue.stacks import stack
from ..catalogue.words import RecomputeModule
from ..design.design import Design
from ..design.resolve import resolve
from ..design.resolved import Phase, Resolved
from ..physics import calibration_file
from ..physics.gather import situation, stack_of
from .batch import with_batches
from .evaluate import find
from .pin_laws import check_pins
from .space import COARSE, offered
from .stack_laws import kits_for


def prepare(design: Design) -> Resolved:
    """`design` resolved, with the constants of the calibration that it names or holds and with
    every pin held against the laws of plans. Raises DesignError for whatever is wrong with it."""
    resolved = _with_plans(design)
    if design.calibration is None:
        return resolved
    override = calibration_file.read(design.calibration, folder=design.folder)
    override.check(resolved.cluster.accelerator)
    applied = override.under(stack_of(resolved))
    assumed = (*resolved.assumed, Assumed("calibration", override.path, applied.says()))
    return replace(resolved, calibration=applied, assumed=assumed)


def _with_plans(design: Design) -> Resolved:
    """`design` resolved, its batches chosen, its pins found legal. Where it names no stack, and one
    framework alone has a launch kit for its chips and a plan that fits, it is run by that one."""
    resolved = resolve(design)
    kits = [] if resolved.stack else kits_for(resolved.cluster)
    if len(kits) == 1:
        with suppress(DesignError):
            run = _checked(with_batches(resolve(design, kits[0].name)))
            found = [find(situation(run, phase), offered(COARSE, run)) for phase in run.phases]
            if all(search.fits.any() for search in found):
                return run
    return _checked(with_batches(resolved))


def _checked(resolved: Resolved) -> Resolved:
    """The same where the pins of every phase are legal; raises DesignError."""
    for i, phase in enumerate(resolved.phases):
        _check(resolved, i, phase)
    return resolved


def _check(resolved: Resolved, i: int, phase: Phase) -> None:
    """The pins of one phase; an error names the phase where the pin stands there."""
    try:
        modules = phase.pins.get("recompute_modules") or [RecomputeModule.LAYERS]
        if modules != [RecomputeModule.LAYERS] and stack(resolved.stack).memory.get("per_op"):
            raise DesignError(
                "plan.recompute_modules",
                modules,
                "recompute: selective, whose operations the stack lists itself",
                problem=f"cannot be chosen with {resolved.stack}",
            )
        check_pins(phase.pins, resolved.model, phase, resolved.cluster, resolved.stack)
    except DesignError as e:
        phases = resolved.design.job.phases
        stated = phases[i].plan if phases else None
        pins = stated.stated() if stated else {}
        name = e.field.rpartition(".")[2]
        if name not in pins:
            raise
        raise DesignError(
            f"job.phases.{i}.plan.{name}", e.value, e.allowed, e.nearest, problem=e.problem
        ) from None
