"""Tables of runs as frames of numbers and text: rows in the format of the published runs."""

from __future__ import annotations

import io
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.columns import Array
from ..base.errors import DesignError, plain
from ..base.files import read_text
from ..catalogue.models.entries import build_model, models
from .normalise import normalise
from .run_columns import LEADING, Bounds, bounds, switch_bounds
from .run_shapes import DETAIL, columns_of

if TYPE_CHECKING:
    from pandas import DataFrame, Series

_MOST_BYTES = 10_000_000
_MOST_COLUMNS = 1000
WINDOWS = (f"{DETAIL}window", f"{DETAIL}windowed_layers")
SAME = ("layers", "hidden", "heads", "kv_heads", "moe_experts")  # of a row and a model that are one
PADDED = 0.01  # of a vocabulary, at most


def read_runs(path: str | Path) -> DataFrame:
    """The CSV as a frame of numbers and text; columns that are missing are blank. Cells that are no
    number, or one outside the bounds of run_columns.csv, are named in the column `unreadable`.
    Leading lines that begin with # explain and are not read. Raises ValueError without an id
    column."""
    return runs_of_text(read_text(path, "a table of runs as CSV", _MOST_BYTES), Path(path))


def read_named(path: str | Path) -> DataFrame:
    """`read_runs` of a table that a user names; raises DesignError where it is none."""
    try:
        return read_runs(path)
    except (OSError, ValueError) as e:
        problem = f"cannot be read as a table of runs: {plain(e, 200)}"
        raise DesignError(plain(path, 200), problem=problem) from None


def frame_of(runs: str | Path | DataFrame) -> DataFrame:
    """The rows of a table of runs that a user gives as its path or as a frame; raises DesignError
    for anything else."""
    import pandas as pd

    if isinstance(runs, (str, Path)):
        return read_named(runs)
    if not isinstance(runs, pd.DataFrame) or "id" not in runs:
        allowed = "a pandas DataFrame with a column `id`, or the path of a table of runs"
        raise DesignError("runs", type(runs).__name__, allowed)
    return runs if "unreadable" in runs else checked(runs.reset_index(drop=True), Path())


def runs_of_text(text: str, path: Path) -> DataFrame:
    """The text of a table as `read_runs` gives it; `path` leads its messages, and the files that it
    names lie beside it."""
    import pandas as pd

    lines = io.StringIO(text).readlines()
    explained = len(list(takewhile(lambda line: line.startswith(LEADING), lines)))
    table = lines[explained:]
    if table and table[0].count(",") >= _MOST_COLUMNS:
        raise ValueError(f"more than {_MOST_COLUMNS:,} columns")
    frame = pd.read_csv(io.StringIO("".join(table)), low_memory=False, dtype={"id": str})
    if "id" not in frame:
        raise ValueError(f"{path}: no column `id`; the format is that of the published-run tables")
    return checked(frame, path.parent)


def checked(frame: DataFrame, folder: Path) -> DataFrame:
    """The rows with every column of the format, their numbers read, their words settled; `folder`
    holds the files that they name."""
    import pandas as pd

    frame = with_shapes(frame, folder)
    unreadable = pd.Series("", index=frame.index)
    limits = bounds()
    frame = frame.reindex(columns=[*dict.fromkeys([*frame, *limits])])
    limits |= {name: limit for name, limit in switch_bounds().items() if name in frame}
    for name, limit in limits.items():
        column = pd.to_numeric(frame[name], errors="coerce").astype(float)
        for i in np.flatnonzero(frame[name].notna() & ~within(column, limit)):
            cell = str(frame[name][i])[:40]
            unreadable[i] += f"{name} {cell!r} is not {limit.words}; "
        frame[name] = column
    frame["unreadable"] = unreadable + frame.pop("shapeless")
    return normalise(frame)


def within(column: Series, limit: Bounds) -> Series:
    """Which numbers of a column lie within bounds."""
    fine = column.between(limit.low, limit.high)
    return fine & (column % 1 == 0) if limit.whole else fine


def with_shapes(frame: DataFrame, folder: Path) -> DataFrame:
    """Rows without layers take the shape of their `hf_config`, else that of the catalogue's model
    of that id; rows that print the dimensions of a catalogue's model with windows, which no column
    of theirs can say, take those. What stops a config is kept in the column `shapeless`."""
    import pandas as pd

    shapeless = pd.Series("", index=frame.index)
    blank = frame["layers"].isna() if "layers" in frame else frame.id.notna()
    named = frame.reindex(columns=["hf_config", "model"]).astype(object).fillna("")
    shapes: dict[int, dict[str, Any]] = {}
    for i in np.flatnonzero(blank):
        config, model = (str(cell) for cell in named.loc[i])
        try:
            built, _ = build_model({"hf_config": config} if config else model, folder)
            shapes[int(i)] = columns_of(built)
        except DesignError as e:
            shapeless[i] = f"{plain(e, 200)}; " if config else ""
    shapes |= windows_of(frame, blank)
    filling = pd.DataFrame.from_dict(shapes, "index", object)
    whole = frame.reindex(columns=[*dict.fromkeys([*frame, *filling])])
    filled = {name: whole[name].astype(object).combine_first(filling[name]) for name in filling}
    filled["shapeless"] = shapeless
    return pd.concat([whole.drop(columns=list(filling)), pd.DataFrame(filled)], axis=1)


def windows_of(frame: DataFrame, blank: Series) -> dict[int, dict[str, Any]]:
    """{row: windows of attention} of the rows whose dimensions are those of a catalogue's model
    with windows."""
    import pandas as pd

    printed = frame.reindex(columns=[*SAME, "vocab"]).apply(pd.to_numeric, errors="coerce")
    dimensions: Array = printed[list(SAME)].fillna(0).to_numpy(float)
    windows: dict[int, dict[str, Any]] = {}
    for model in models().values():
        if not model.windowed_layers:
            continue
        row = columns_of(model)
        same = (dimensions == [row[name] for name in SAME]).all(axis=1)
        padded = (printed.vocab / model.vocab - 1).abs() < PADDED
        for i in np.flatnonzero(same & padded & ~blank):
            windows[int(i)] = {name: row[name] for name in WINDOWS}
    return windows
