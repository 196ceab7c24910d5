"""From the words of run tables to the columns that the models read.

What a word means is a rule of run_words.py. `python -m scantling.runs.normalise TABLE.csv` adds the
columns to a table; the shipped tables are made so, and `predict` does the same to every table that
it is given.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .run_words import RULES, Text

if TYPE_CHECKING:
    from pandas import DataFrame, Series

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
# settled columns that hold a word; the others hold numbers
WORDS = ("schedule", "cp_type", "scale_out")


def settled() -> tuple[str, ...]:
    """Columns that the words settle beside those of the published format, in order."""
    columns = dict.fromkeys(rule.column for rule in RULES if rule.column not in OWN)
    return tuple(column for column in columns if column != "released_month")


def normalise(frame: DataFrame) -> DataFrame:
    """The table with the columns of `settled`; what a row states there itself stands, blanks come
    from its words. Vocabulary columns are put into lower case and one spelling."""
    import pandas as pd

    frame = frame.copy()
    for name in TEXT:
        frame[name] = frame[name].astype(object).fillna("").astype(str) if name in frame else ""
    values = values_of(texts_of(frame), frame.index)
    for name in OWN:
        frame[name] = values.pop(name)
    month = _numbers(values.pop("released_month")).fillna(6.5)
    values["released"] = _numbers(values["released"]) + (month - 0.5) / 12
    for name in values.keys() - {*WORDS}:
        values[name] = _numbers(values[name])
    for name in values.keys() & {*frame}:
        stated = frame.pop(name)
        stated = stated.replace("", None) if name in WORDS else _numbers(stated)
        values[name] = stated.where(stated.notna(), values[name])
    return pd.concat([frame, pd.DataFrame(values, index=frame.index)], axis=1)


def texts_of(frame: DataFrame) -> dict[str, Series]:
    """The texts of every row in which words are sought, in lower case."""
    texts = {name: frame[name].str.strip().str.lower() for name in TEXT}
    texts[Text.OPTIONS] = texts["other_opts"] + " " + texts["recompute_as_printed"]
    texts[Text.WHEN] = texts["published"] + " " + texts["stack"] + " " + texts["other_opts"]
    return texts


def values_of(texts: dict[str, Series], index: Series) -> dict[str, Series]:
    """What the words of every row settle, by column, the last rule that holds first."""
    import pandas as pd

    values = {name: texts[name] for name in OWN}
    blank = pd.Series("", index=index, dtype=object)
    for rule in RULES:
        text = texts[rule.text]
        value = text.map({words: rule.value_in(words) for words in set(text)})
        values[rule.column] = value.fillna(values.get(rule.column, blank))
    return values


def _numbers(column: Series) -> Series:
    import pandas as pd

    return pd.to_numeric(column, errors="coerce")


def main(paths: Iterable[str]) -> None:
    """Add the columns to each table, in place; its own columns stay as they are printed."""
    import pandas as pd

    for path in paths:
        table = pd.read_csv(path, low_memory=False, dtype=str, keep_default_na=False)
        table = table.drop(columns=[*settled()], errors="ignore")
        columns = normalise(table)
        for name in settled():
            column = columns[name]
            if name not in WORDS:
                column = [f"{number:.10g}" if number == number else "" for number in column]
            table[name] = column
        table.to_csv(path, index=False, lineterminator="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
