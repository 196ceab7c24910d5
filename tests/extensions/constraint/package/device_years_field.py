"""The field of the design file that states the ceiling on device-years."""

from scantling.design.fields import Section, amount


class DeviceYears(Section):
    max_device_years: float | None = amount(
        0, 1e9, "device-years", "most device-years of the run", example=500
    )
