"""A ceiling on device-years, as grants of computing time state it."""

from scantling.design.constraints import Constraint


class MaxDeviceYears(Constraint):
    field = "max_device_years"
    figure = "device_years"
    name = "device-years"
    band = "days"

    def missed_text(self, value: str, limit: str) -> str:
        return f"device-years: {value} predicted, {limit} granted"

    def relaxed_text(self, limit: str) -> str:
        return f"a grant of {limit}"


CONSTRAINT = MaxDeviceYears()


def device_years(assessment) -> float | None:
    """Devices that work x days / 365.25. [device-years]"""
    days = assessment.days
    return None if days is None else assessment.resolved.cluster.devices * days / 365.25
