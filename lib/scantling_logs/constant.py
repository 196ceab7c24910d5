"""Constants that a site's tables, traces and peaks of memory move."""

from typing import Any

from scantling.base.records import record


@record
class Moved:
    """A constant of a calibration file: its value after and before, and the standard deviation of
    its logarithm that is left open."""

    value: float
    was: float
    sd_ln: float

    def as_entry(self) -> dict[str, Any]:
        """The constant as a calibration file has it."""
        return {"value": self.value, "was": self.was, "sd_ln": self.sd_ln}


def moved(value: float, was: float, sd_ln: float) -> Moved:
    """A constant in the digits of a calibration file."""
    return Moved(value=round(value, 6), was=round(was, 6), sd_ln=round(sd_ln, 4))
