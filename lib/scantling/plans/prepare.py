"""A design made ready for the models: resolved, its own calibration read, its pins found legal."""

from __future__ import annotations

from dataclasses import replace

from ..base.errors import DesignError
from ..base.records import Assumed
from ..design.design import Design
from ..design.resolve import Resolved, resolve
from ..physics import calibration_file
from .pins import check_pins


def prepare(design: Design) -> Resolved:
    """`design` resolved, with the constants of the calibration file that it names and with every
    pin held against the laws of plans. Raises DesignError for whatever is wrong with the file."""
    resolved = resolve(design)
    for i, phase in enumerate(resolved.phases):
        _check(resolved, i, phase)
    if design.calibration is None:
        return resolved
    override = calibration_file.read(design.folder / design.calibration)
    override.check(resolved.cluster.accelerator)
    assumed = Assumed("calibration", override.path, override.says())
    return replace(
        resolved,
        calibration=override,
        assumed=(*resolved.assumed, assumed),
    )


def _check(
    resolved,
    i,
    phase,
):
    """The pins of one phase; an error names the phase where the pin stands there."""
    try:
        check_pins(
            phase.pins,
            resolved.model,
            phase,
            resolved.cluster,
        )
    except DesignError as e:
        phases = resolved.design.job.phases
        own = phases[i].plan.given() if phases and phases[i].plan else {}
        name = e.field.rpartition(".")[2]
        if name not in own:
            raise
        raise DesignError(
            f"job.phases.{i}.plan.{name}",
            e.value,
            e.allowed,
            e.nearest,
            problem=e.problem,
        ) from None
