"""From the words of run tables to the columns that the models read.

What a word means is a rule of run_words.py. `python -m scantling.runs.normalise TABLE.csv` adds the
columns to a table; the shipped tables are made so, and `predict` does the same to every table that
it is given.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np

from ..base.columns import Array
from .run_table import Table, each, filled, is_blank, numbers, table_of_cells
from .run_words import RULES, Text
from .spellings import SPELT, spelt

# columns of the published format whose words are read, and those that words of their own settle
TEXT = (
    "published",
    "stack",
    "accelerator",
    "precision",
    "precision_as_printed",
    "mlp",
    "attention",
    "sharding",
    "sharding_as_printed",
    "recompute",
    "recompute_as_printed",
    "offload",
    "other_opts",
    "scale_out_network",
    "framework",
    "source_url",
    "effort",
    "moe_dispatcher",
    "optimizer",
    "layer_split",
)
PLAN_COLUMNS = ("precision", "sharding", "recompute", "offload", "mlp", "attention")
# settled columns that hold a word; the others hold numbers
WORDS = ("schedule", "cp_type", "scale_out")


def settled() -> tuple[str, ...]:
    """Columns that the words settle beside those of the published format, in order."""
    columns = dict.fromkeys(rule.column for rule in RULES if rule.column not in PLAN_COLUMNS)
    return tuple(column for column in columns if column != "released_month")


def normalise(table: Table) -> Table:
    """The table with the columns of `settled`; what a row states there itself stands, blanks come
    from its words. Vocabulary columns are put into lower case and one spelling."""
    table = table.replace({name: table.text(name) for name in TEXT})
    texts = texts_of(table)
    values = values_of(texts)
    columns = {name: values.pop(name) for name in PLAN_COLUMNS}
    columns |= {name: texts[name] for name in SPELT.intersection(TEXT).difference(PLAN_COLUMNS)}
    month = filled(numbers(values.pop("released_month")), 6.5)
    columns["released"] = numbers(values.pop("released")) + (month - 0.5) / 12
    columns |= {name: value if name in WORDS else numbers(value) for name, value in values.items()}
    for name in settled():
        if name not in table:
            continue
        word = partial(spelt, name)
        stated = each(table.text(name), object, word) if name in WORDS else table.numbers(name)
        columns[name] = np.where(is_blank(stated), columns[name], stated)
    return table.replace(columns)


def texts_of(table: Table) -> dict[str, Array]:
    """The texts of every row in which words are sought, in lower case."""
    texts = {name: each(table[name], object, partial(cell_text, name)) for name in TEXT}
    texts[Text.OPTIONS] = texts["other_opts"] + " " + texts["recompute_as_printed"]
    texts[Text.WHEN] = texts["published"] + " " + texts["stack"] + " " + texts["other_opts"]
    return texts


def cell_text(column: str, cell: str) -> str:
    """What a cell says: a word of the column's own where it has such, else its text in lower case
    without the space around it."""
    return spelt(column, cell) if column in SPELT else cell.strip().lower()


def values_of(texts: Mapping[str, Array]) -> dict[str, Array]:
    """What the words of every row settle, by column, the last rule that holds first."""
    values = {name: texts[name] for name in PLAN_COLUMNS}
    blank = np.full(len(texts[PLAN_COLUMNS[0]]), "", object)
    for rule in RULES:
        value = each(texts[rule.text], object, rule.value_in)
        holds = np.array([cell is not None for cell in value], bool)
        values[rule.column] = np.where(holds, value, values.get(rule.column, blank))
    return values


def main(paths: Iterable[str]) -> None:
    """Add the columns to each table, in place; its own columns stay as they are printed."""
    for path in paths:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            rows = [{k: v for k, v in row.items() if k not in settled()} for row in reader]
            names = [name for name in reader.fieldnames or () if name not in settled()]
        cells = {name: [row[name] for row in rows] for name in names}
        columns = normalise(table_of_cells(cells))
        for name in settled():
            column = columns[name].tolist()
            cells[name] = column if name in WORDS else [cell_of(number) for number in column]
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(cells)
            writer.writerows(zip(*cells.values()))


def cell_of(number: float) -> str:
    """A number of a table; blank where it is unknown."""
    return f"{number:.10g}" if number == number else ""


if __name__ == "__main__":
    main(sys.argv[1:])
