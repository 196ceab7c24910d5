"""From the words of run tables to the columns that the models read.

What a word means stands in catalogue/run_words.csv: a pattern, the text that it is sought in, the
column that it settles, its value and whose word it is. Rows hold in order, the last one that
matches wins. `python -m scantling.runs.normalise TABLE.csv` adds the columns to a table; the
shipped tables are made so, and `predict` does the same to every table that it is given.
"""

from __future__ import annotations

import re
import sys
from functools import cache, partial
from typing import TYPE_CHECKING

from ..base.files import csv_rows
from ..base.records import Lines, record
from ..catalogue import HERE

if TYPE_CHECKING:
    from pandas import DataFrame

# columns of the published format whose words are read, and those that words of their own settle
TEXT = (
    "published",
    "locator",
    "model",
    "stack",
    "accelerator",
    "precision",
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
    "notes",
)
OWN = ("precision", "sharding", "recompute", "offload", "mlp", "attention")
WORDS = (
    "schedule",
    "cp_type",
    "scale_out",
)  # settled columns that hold a word; the others hold numbers


@record
class Rule:
    """One row of run_words.csv; patterns are regular expressions over lower-case text."""

    column: str
    value: str  # \\1: what the pattern's group holds
    reads: str  # a column of TEXT; options: other_opts and recompute_as_printed
    pattern: str
    also: str  # must be found as well
    unless: str  # must not be found
    source: str


@cache
def rules() -> tuple:
    """The rows of run_words.csv, in order."""
    return tuple(Rule(**row) for row in csv_rows(HERE / "run_words.csv"))


def settled() -> Lines:
    """Columns that the words settle beside those of the published format, in order."""
    found = dict.fromkeys(r.column for r in rules() if r.column not in OWN)
    return tuple(c for c in found if c != "released_month")


def _said(rule: Rule, text: str) -> str | None:
    """The value that a rule reads in a text; None where it does not hold."""
    found = re.search(rule.pattern, text)
    barred = rule.unless and re.search(rule.unless, text)
    return found.expand(rule.value) if found and re.search(rule.also, text) and not barred else None


def normalise(frame: DataFrame) -> DataFrame:
    """The table with the columns of `settled`; what a row states there itself stands, blanks come
    from its words. Vocabulary columns are put into lower case and one spelling."""
    import pandas as pd

    frame = frame.copy()
    for name in TEXT:
        frame[name] = frame[name].astype(object).fillna("").astype(str) if name in frame else ""
    texts = {name: frame[name].str.strip().str.lower() for name in TEXT}
    texts["options"] = texts["other_opts"] + " " + texts["recompute_as_printed"]
    texts["when"] = texts["published"] + " " + texts["stack"] + " " + texts["other_opts"]
    said = {name: texts[name] for name in OWN}
    blank = pd.Series("", index=frame.index, dtype=object)
    for rule in rules():
        value = texts[rule.reads].map({t: _said(rule, t) for t in set(texts[rule.reads])})
        said[rule.column] = value.fillna(said.get(rule.column, blank))
    for name in OWN:
        frame[name] = said.pop(name)
    number = partial(pd.to_numeric, errors="coerce")
    month = number(said.pop("released_month")).fillna(6.5)
    said["released"] = number(said["released"]) + (month - 0.5) / 12
    said |= {name: number(said[name]) for name in said.keys() - {*WORDS}}
    for name in said.keys() & {*frame}:
        given = frame.pop(name)
        own = given.replace("", None) if name in WORDS else number(given)
        said[name] = own.where(own.notna(), said[name])
    return pd.concat([frame, pd.DataFrame(said, index=frame.index)], axis=1)


def main(paths: list) -> None:
    """Add the columns to each table, in place; its own columns stay as they are printed."""
    import pandas as pd

    for path in paths:
        table = pd.read_csv(path, low_memory=False, dtype=str, keep_default_na=False)
        table = table.drop(columns=[*settled()], errors="ignore")
        made = normalise(table)
        for name in settled():
            column = made[name]
            table[name] = (
                column if name in WORDS else [f"{v:.10g}" if v == v else "" for v in column]
            )
        table.to_csv(path, index=False, lineterminator="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
