"""Records whose values stand in a table of the catalogue, a row a field."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from ..base.columns import Array
from ..base.errors import CatalogueError

Names = str | Sequence[str] | Array  # a name, or one a case
# constant -> {"global": log offset, level: {name of the level: log offset}}; JSON of a fit
Offsets = Mapping[str, Mapping[str, Any]]


def known_offsets(
    offsets: Offsets, constants: Iterable[str], levels: Iterable[str], table: str
) -> Offsets:
    """The offsets of a fit that ships. Raises CatalogueError for one of a name that is no constant,
    or at a level that is none of these."""
    names, places = set(constants), {"global", *levels}
    for name, moved in offsets.items():
        unknown = moved.keys() - places if name in names else {name}
        if unknown:
            raise CatalogueError(f"{table}: unknown {', '.join(sorted(unknown))} of offset {name}")
    return offsets


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
