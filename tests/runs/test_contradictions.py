"""Tables that contradict themselves: an error in the row, never a figure."""

import csv
from pathlib import Path

import pytest
from scantling.catalogue import HERE
from scantling.runs.contradictions import contradictions, product_against
from scantling.runs.predict import predicted_columns
from scantling.runs.read import named_table, read_table, unread_columns

ROW = {
    "id": "a",
    "model": "llama-3.1-70b",
    "accelerator": "h100-sxm",
    "n_devices": "512",
    "tp": "4",
    "pp": "4",
    "cp": "1",
    "dp": "32",
    "micro_batch": "1",
    "global_batch_seqs": "512",
    "recompute": "selective",
    "stack": "megatron-core",
}


def error_of(tmp_path: Path, **cells: str) -> str:
    """The error of one row with some cells in the place of ROW's."""
    row = ROW | cells
    path = tmp_path / "runs.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, row)
        writer.writeheader()
        writer.writerow(row)
    columns = predicted_columns(named_table(path))
    has_figure = bool(columns["step_time_s"][0] > 0)
    assert has_figure == (columns["error"][0] == "")
    return str(columns["error"][0])


def test_a_row_that_adds_up_has_a_figure(tmp_path: Path) -> None:
    assert error_of(tmp_path) == ""
    assert error_of(tmp_path, dp="") == ""
    assert error_of(tmp_path, n_devices="") == ""


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"dp": "16"}, "is 256 devices, n_devices is 512"),
        ({"n_devices": "511", "pp": "7", "dp": ""}, "does not divide n_devices 511"),
        ({"tp": "3", "n_devices": "384"}, "tp divides the attention heads"),
        ({"pp": "128", "tp": "1", "dp": "4"}, "every stage holds a layer"),
        ({"micro_batch": "3"}, "dp x micro_batch divides the global batch"),
        ({"model": "mixtral-8x7b", "ep": "3"}, "ep divides the experts"),
    ],
)
def test_what_does_not_add_up_is_the_error(
    tmp_path: Path, cells: dict[str, str], words: str
) -> None:
    assert words in error_of(tmp_path, **cells)


@pytest.mark.parametrize(
    ("column", "nearest"),
    [("tpp", "tp"), ("recomput", "recompute"), ("TP", "tp"), ("num_layers", "layers")],
)
def test_a_misspelt_column_is_named_with_the_nearest(
    tmp_path: Path, column: str, nearest: str
) -> None:
    assert f"column {column} is not known; nearest: {nearest}" in error_of(
        tmp_path, **{column: "8"}
    )


def test_a_remark_stops_nothing_and_is_named(tmp_path: Path) -> None:
    assert error_of(tmp_path, remark="second try") == ""
    assert unread_columns(named_table(tmp_path / "runs.csv")) == ["remark"]


def test_spaces_beside_the_names_of_columns_are_no_other_names(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("id, model, accelerator, n_devices\na,llama-3.1-70b,h100-sxm,512\n")
    assert predicted_columns(named_table(path))["error"][0] == ""


def test_published_runs_keep_the_laws_of_plans() -> None:
    """Runs that were made break no law by what they print, but for rows whose source contradicts
    itself."""
    table = read_table(HERE / "published_runs.csv")
    broken = {str(i): text for i, text in zip(table.text("id"), contradictions(table)) if text}
    assert len(broken) < 0.01 * len(table), broken


def test_degrees_that_leave_out_one_are_held_to_what_they_say() -> None:
    assert product_against({"tp": 8, "pp": 4}, 64) == ""
    assert product_against({"tp": 8}, 12) == ""  # pp may be anything
    assert "does not divide" in product_against({"tp": 8, "pp": 4}, 100)
    assert product_against({"tp": 8, "pp": 4, "dp": 2}, 0) == ""
    assert product_against({"tp": 2, "pp": 1, "cp": 4, "ulysses_sp": 4, "dp": 2}, 16) == ""


def test_degrees_beyond_64_bits_do_not_wrap_around(tmp_path: Path) -> None:
    """2^64 is 0 in 64 bits; forty digits are no number of 64 bits at all."""
    assert "is 18,446,744,073," in product_against({"tp": 2**32, "pp": 2**32, "dp": 1}, 512)
    assert "n_devices is 8" in product_against({"tp": 1, "pp": 1, "dp": int("9" * 40)}, 8)
    assert "not a whole number" in error_of(tmp_path, dp="9" * 40)
