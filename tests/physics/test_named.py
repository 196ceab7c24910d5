"""Records whose values stand in a table: names and rows go together, and records are plain."""

import math
import pickle
from dataclasses import dataclass

import pytest
from scantling.base.files import csv_rows
from scantling.catalogue.load import HERE, CatalogueError
from scantling.physics.bands import shipped_bands, supported
from scantling.physics.constants import LEVELS, PRIORS, calibration, gather, shipped_offsets
from scantling.physics.memory.constants import GENERIC
from scantling.physics.named import known_offsets, same_names
from scantling.physics.software import USUAL
from scantling.physics.wires import constants


@dataclass
class Spring:
    """Of a clock."""

    stiffness: float
    length: float


def test_a_row_without_a_field_is_named():
    with pytest.raises(CatalogueError, match="springs.csv: Spring has no field colour$"):
        same_names(Spring, ["stiffness", "length", "colour"], "springs.csv")


def test_a_field_without_a_row_is_named():
    with pytest.raises(CatalogueError, match="springs.csv: no row for length of Spring$"):
        same_names(Spring, ["stiffness"], "springs.csv")


def test_a_field_with_a_value_from_elsewhere_needs_no_row():
    same_names(Spring, ["stiffness"], "springs.csv", elsewhere=["length"])


@pytest.mark.parametrize(
    ("offsets", "wrong"),
    [
        ({"gem": {"global": 0.1}}, "unknown gem of offset gem"),
        ({"gemm": {"globall": 0.1}}, "unknown globall of offset gemm"),
        ({"gemm": {"global": 0.1, "chips": {"h100-sxm": 0.1}}}, "unknown chips of offset gemm"),
    ],
)
def test_an_offset_of_a_misspelt_name_does_not_load(offsets, wrong):
    with pytest.raises(CatalogueError, match=f"fit.json: {wrong}$"):
        known_offsets(offsets, PRIORS, LEVELS, "fit.json")


def test_what_ships_is_of_known_names():
    assert (
        shipped_offsets() and shipped_bands().between < 1 and supported()["chip"]["h100-sxm"].rows
    )


def test_shares_of_what_was_fitted_have_the_same_figures():
    figures = calibration()["figures"].values()
    assert {frozenset(row) for row in figures} == {
        frozenset(("rows", "median", "mean", "p90", "bias", "over_sources"))
    }


def test_factors_of_collectives_lie_near_their_priors():
    """Within four standard deviations of the prior's logarithm; of the factor itself where it is a
    logarithm."""
    fitted = vars(constants())
    for row in csv_rows(HERE / "collective_priors.csv"):
        value, spread = float(row["value"]), float(row["sd"])
        moved = fitted[row["name"]] - value
        if row["log"] == "0":
            moved = math.log(fitted[row["name"]] / value)
        assert abs(moved) < 4 * spread, row["name"]


@pytest.mark.parametrize(
    "record", [gather("hopper", "h100-sxm", "megatron-core"), constants(), GENERIC, USUAL]
)
def test_records_can_be_pickled(record):
    assert pickle.loads(pickle.dumps(record)) == record
