"""A design made ready for the models: resolved, its own calibration read, its pins found legal."""

from dataclasses import replace

from ..base.errors import DesignError
from ..base.records import Assumed
from ..catalogue.stacks import stack
from ..catalogue.words import RecomputeModule
from ..design.design import Design
from ..design.resolve import resolve
from ..design.resolved import Phase, Resolved
from ..physics import calibration_file
from ..physics.gather import stack_of
from .batch import with_batches
from .pin_laws import check_pins


def prepare(design: Design) -> Resolved:
    """`design` resolved, with the constants of the calibration that it names or holds and with
    every pin held against the laws of plans. Raises DesignError for whatever is wrong with it."""
    resolved = with_batches(resolve(design))
    for i, phase in enumerate(resolved.phases):
        _check(resolved, i, phase)
    if design.calibration is None:
        return resolved
    override = calibration_file.read(design.calibration, folder=design.folder)
    override.check(resolved.cluster.accelerator)
    applied = override.under(stack_of(resolved))
    assumed = (*resolved.assumed, Assumed("calibration", override.path, applied.says()))
    return replace(resolved, calibration=applied, assumed=assumed)


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
