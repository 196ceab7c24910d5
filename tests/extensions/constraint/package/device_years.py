"""A ceiling on device-years, as grants of computing time state it."""

from scantling.design.constraints import Constraint

CONSTRAINT = Constraint(
    field="max_device_years",
    figure="device_years",
    ceiling=True,
    name="device-years",
    missed="device-years: {value} predicted, {limit} granted",
    relaxed="a grant of {limit}",
    band="days",
)


def device_years(assessment) -> float | None:
    """Devices that work x days / 365.25. [device-years]"""
    days = assessment.days
    return None if days is None else assessment.resolved.cluster.devices * days / 365.25
