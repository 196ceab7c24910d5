"""A ceiling on device-years, as grants of computing time state it."""

from scantling.design.constraints import Constraint


def _missed(value: str, limit: str) -> str:
    return f"device-years: {value} predicted, {limit} granted"


def _relaxed(limit: str) -> str:
    return f"a grant of {limit}"


CONSTRAINT = Constraint(
    field="max_device_years",
    figure="device_years",
    ceiling=True,
    name="device-years",
    missed=_missed,
    relaxed=_relaxed,
    band="days",
)


def device_years(assessment) -> float | None:
    """Devices that work x days / 365.25. [device-years]"""
    days = assessment.days
    return None if days is None else assessment.resolved.cluster.devices * days / 365.25
