"""Names that would act in a table that another program opens do not."""

import csv
import io

import mistune
import numpy as np
import pytest
from scantling.base.cells import markdown_cell, spreadsheet_cell
from scantling.runs.run_table import to_csv

NAMES = (
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1+1",
    "a | b",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "![x](http://host/x.png)",
    "`code` **bold** ~~gone~~",
    "@everyone",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_one_cell_of_plain_text_in_markdown(name):
    """By a parser of Markdown with tables: one cell, no tag of its own."""
    source = f"| head |\n| --- |\n| {markdown_cell(name)} |\n"
    page = mistune.create_markdown(plugins=["table", "strikethrough"])(source)
    cell = page.split("<tbody>")[1].split("<td>")[1].split("</td>")[0]
    assert page.count("<td>") == 1 and "<" not in cell


@pytest.mark.parametrize("name", NAMES[:5])
def test_a_formula_is_text_in_a_spreadsheet(name):
    text = to_csv(
        {"id": np.array([name, "-1.5", "plain"], object), "x": np.array([1.0, -2.0, np.nan])}
    )
    rows = [*csv.reader(io.StringIO(text, newline=""))]
    assert rows[1] == [f"'{name}", "1.0"]
    assert rows[2] == ["-1.5", "-2.0"] and rows[3] == ["plain", ""]
    assert spreadsheet_cell("plain") == "plain"
