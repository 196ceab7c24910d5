"""Constants that a site's runs move."""

from typing import Any

from scantling.base.records import record


@record
class Moved:
    """A constant of a calibration file: its value after and before, the standard deviation of its
    logarithm that is left open, and what holds for other models where that is another value."""

    value: float
    was: float
    sd_ln: float
    elsewhere: float | None = None

    def as_entry(self) -> dict[str, Any]:
        """The constant as a calibration file has it."""
        entry = {"value": self.value, "was": self.was, "sd_ln": self.sd_ln}
        return entry if self.elsewhere is None else {**entry, "elsewhere": self.elsewhere}


def moved(value: float, was: float, sd_ln: float) -> Moved:
    """A constant in the digits of a calibration file."""
    return Moved(value=round(value, 6), was=round(was, 6), sd_ln=round(sd_ln, 4))


def moved_everywhere(value: float, was: float, sd_ln: float) -> Moved:
    """A constant that holds for every model, whatever measured steps of one make of it."""
    return Moved(
        value=round(value, 6), was=round(was, 6), sd_ln=round(sd_ln, 4), elsewhere=round(value, 6)
    )
