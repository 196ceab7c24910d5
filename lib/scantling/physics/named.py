"""Records whose values stand in a table of the catalogue, a row a field."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from ..base.columns import Array
from ..base.errors import CatalogueError

Names = str | Sequence[str] | Array  # a name, or one a case
# constant -> {"global": log offset, level: {name of the level: log offset}}; JSON of a fit
Offsets = Mapping[str, Mapping[str, Any]]


def same_names(kind: type, rows: Iterable[str], table: str, elsewhere: Iterable[str] = ()) -> None:
    """Raises CatalogueError where a row of `table` has no field in the record `kind`, or a field no
    row; fields whose values come from `elsewhere` need none."""
    names = {field.name for field in fields(kind)} - set(elsewhere)
    rows = set(rows)
    if rows - names:
        unknown = ", ".join(sorted(rows - names))
        raise CatalogueError(f"{table}: {kind.__name__} has no field {unknown}")
    if names - rows:
        missing = ", ".join(sorted(names - rows))
        raise CatalogueError(f"{table}: no row for {missing} of {kind.__name__}")
