"""Tables of runs where pandas is not installed: the same figures, from a table of our own."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scantling
from hypothesis import given, strategies as st
from scantling import catalogue
from scantling.runs.frames import frame_of, table_of
from scantling.runs.predict import COLUMNS
from scantling.runs.read import read_table
from scantling.runs.run_table import is_blank, numbers, read_csv, table_of_cells, text, to_csv

RUNS = catalogue.HERE / "published_runs.csv"
BLOCKED = """
import json, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pandas", "pyarrow", "scipy"):
            raise ImportError(name)

sys.meta_path.insert(0, Blocked())
import scantling
from scantling.base.errors import DesignError
from scantling.cli import main
table, out, empty = sys.argv[1:]
codes = [main(["predict", table, "-o", out]), main(["predict", "--template", "-o", empty])]
whole = scantling.predict(table)
row = {"id": ["a"], "model": ["llama-3.1-70b"], "accelerator": ["h100-sxm"], "n_devices": [512]}
alone = scantling.predict(row)
try:
    refused = main(["validate", table])
except DesignError as e:
    refused = str(e)
wrong = []
for runs in (None, {}, {"layers": [32]}, {"id": ["a", "b"], "layers": [3]}, {"id": "a"}):
    try:
        scantling.predict(runs)
    except DesignError as e:
        wrong.append(str(e))
print(json.dumps([codes, list(whole), len(whole["mfu"]), alone["mfu"].tolist(), refused, wrong]))
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Every twentieth published run as a file."""
    path = tmp_path_factory.mktemp("runs") / "runs.csv"
    with RUNS.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([rows[0], *rows[1::20]])
    return path


def test_predictions_without_pandas_are_those_with_it(table, tmp_path):
    out, empty = tmp_path / "out.csv", tmp_path / "empty.csv"
    call = [sys.executable, "-c", BLOCKED, str(table), str(out), str(empty)]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    codes, names, rows, alone, refused, wrong = json.loads(done.stdout.splitlines()[-1])
    frame = scantling.predict(table)
    assert codes == [0, 0] and tuple(names) == COLUMNS and rows == len(frame) > 90
    assert out.read_text(encoding="utf-8") == frame.to_csv(index=False)
    assert empty.read_text(encoding="utf-8").startswith("# id")
    row = {"id": ["a"], "model": ["llama-3.1-70b"], "accelerator": ["h100-sxm"]}
    assert alone == scantling.predict(row | {"n_devices": [512]}).mfu.tolist()
    assert "scantling[learn]" in f"{refused}{done.stderr}"
    assert len(wrong) == 5 and all("column `id`" in message for message in wrong)


CELLS = st.one_of(
    st.sampled_from(["", "NA", "None", " ", "True", "false", "1,024", "8k", "inf", "0x10", "1_0"]),
    st.integers(-(10**22), 10**22).map(str),
    st.floats().map(str),
    st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=6),
)


@given(st.lists(CELLS, min_size=1, max_size=6))
def test_a_table_that_is_written_is_read_again(cells):
    """Whatever cells a table holds, writing it and reading it changes no column."""
    ids = [f"row {i}" for i in range(len(cells))]
    once = read_csv(lines(to_csv(table_of_cells({"id": ids, "cell": cells}).columns)))
    again = read_csv(lines(to_csv(once.columns)))
    assert len(once) == len(cells) and (again.text("cell") == once.text("cell")).all()
    np.testing.assert_array_equal(again.numbers("cell"), once.numbers("cell"))


def lines(source):
    """The lines of a text with their ends, as a file has them."""
    return io.StringIO(source, newline="").readlines()


@pytest.mark.parametrize(
    ("cells", "values", "texts"),
    [
        (["3", "12"], [3, 12], ["3", "12"]),
        (["3", ""], [3, None], ["3.0", ""]),
        (["1.5", " 2 "], [1.5, 2], ["1.5", "2.0"]),
        (["True", "false", "NA"], [1, 0, None], ["True", "False", ""]),
        (["True", "1"], [None, 1], ["True", "1"]),
        (["8k", "8", " "], [None, 8, None], ["8k", "8", " "]),
        (["1,024", "８", "1_0"], [None, None, None], ["1,024", "８", "1_0"]),
        (["", "null"], [None, None], ["", ""]),
        (["9" * 40, "1"], [1e40, 1], ["9" * 40, "1"]),
    ],
)
def test_a_column_is_numbers_where_all_of_its_cells_are(cells, values, texts):
    rows = "".join(f'r,"{cell}"\n' for cell in cells)
    column = read_csv(lines(f"id,x\n{rows}"))["x"]
    known = [None if number != number else number for number in numbers(column).tolist()]
    assert known == values and text(column).tolist() == texts
    assert is_blank(column).tolist() == [cell == "" for cell in texts]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "No columns"),
        ("\n \n", "No columns"),
        ("id,x\na,1,2\n", "Expected 2 fields in line 2, saw 3"),
        ("id,x\n\na,1\nb,1,2", "Expected 2 fields in line 4, saw 3"),
        ('id,x\na,"1\n', "EOF inside string starting at row 1"),
        (f"id\n{'x' * 2_000_000}\n", "line 2: field larger"),
    ],
)
def test_lines_that_are_no_table_are_refused(source, message):
    with pytest.raises(ValueError, match=message):
        read_csv(lines(source))


def test_rows_and_names_as_spreadsheets_write_them():
    source = 'id,x,x,x.1,\na,1,2,3,4\n\n   \nb\n"c\n""d""",5\n'
    table = read_csv(lines(source), text_only=("id",))
    assert list(table) == ["id", "x", "x.2", "x.1", "Unnamed: 4"]
    assert table["id"].tolist() == ["a", "b", 'c\n"d"']
    assert table.numbers("x").tolist()[::2] == [1, 5] and table.blank("x.2")[1]


def test_a_frame_is_the_table_that_it_came_from():
    table = read_table(RUNS)
    again = table_of(frame_of(table))
    assert list(again) == list(table)
    for name in table:
        assert (again.text(name) == table.text(name)).all(), name


def test_a_data_frame_may_hold_values_of_any_kind():
    odd = pd.DataFrame(
        {
            "id": ["a", pd.NA],
            "whole": pd.array([1, None], "Int64"),
            "mixed": [True, None],
            "kind": pd.Categorical(["x", None]),
            "number": [2, 3],
        }
    )
    table = table_of(odd)
    assert table.text("id").tolist() == ["a", ""]
    assert table.numbers("whole")[0] == 1 and table.blank("whole")[1]
    assert table.numbers("mixed")[0] == 1 and table.text("kind").tolist() == ["x", ""]
    assert table.numbers("number").tolist() == [2, 3]
