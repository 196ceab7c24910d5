"""The gallery's page from a published log to a corrected plan."""

import pytest
from learned import LEARNED, corrected, page


@pytest.fixture(scope="module")
def told():
    return corrected()


def test_the_logs_are_read_as_a_careful_reader_does(told):
    """Medians of the steady steps that the logs print, and what their settings say."""
    pilot, whole = told["pilot"], told["whole"]
    assert pilot.step_s == pytest.approx(27.4968, rel=1e-3)
    assert whole.step_s == pytest.approx(6.7293, rel=1e-3)
    assert (pilot.devices, whole.devices) == (16, 64)
    assert (pilot.tp, pilot.pp, pilot.vpp, pilot.micro_batch) == (2, 2, 32, 1)
    assert pilot.accelerator == "B200" and pilot.precision == "bf16"


def test_a_pilot_foretells_four_times_its_devices(told):
    """Half as far off as without it and inside the band, which is narrower: one run is believed in
    part."""
    before, after, measured = told["before"], told["after"], told["whole"].step_s
    off = [abs(a["step_s"] / measured - 1) for a in (before, after)]
    assert off[1] < 0.6 * off[0]
    assert after["step_s_low"] < measured < after["step_s_high"]
    width = [a["step_s_high"] / a["step_s_low"] for a in (before, after)]
    assert width[1] < width[0]


def test_the_page_is_the_one_in_the_gallery():
    assert (LEARNED / "README.md").read_text(encoding="utf-8") == page()
