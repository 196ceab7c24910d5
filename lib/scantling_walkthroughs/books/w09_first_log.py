"""Your first week's log: what a pilot's log says of the whole run, and how far it is believed."""

from scantling import assess
from scantling_logs.point import of_design
from scantling_logs.reading import Reading
from scantling_logs.site import calibration


def site(pilot_design, step_s):
    """The calibration that a step of the pilot makes."""
    log = Reading(file="pilot", format="nemo", framework="NeMo", step_s=step_s)
    return calibration([of_design(log, pilot_design)])


def after(whole_design, site):
    return assess(whole_design.change({"calibration": site}))
