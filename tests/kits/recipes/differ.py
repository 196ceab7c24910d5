"""What a kit lacks, has otherwise or has beyond a published recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

OFF = (None, False, "none", (), "", 0)


class Difference(NamedTuple):
    """One setting that a kit lacks, has otherwise or has beyond."""

    kind: str
    name: str
    recipe: Any
    kit: Any


class Compared(NamedTuple):
    """A recipe beside its kit; or why there is no kit to compare."""

    name: str
    differences: tuple[Difference, ...]
    left_out: str = ""


def frozen(value: Any) -> Any:
    """A value that compares."""
    if isinstance(value, list):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return tuple(sorted((k, frozen(v)) for k, v in value.items()))
    return value


def differences(
    recipe: Mapping[str, Any], kit: Mapping[str, Any], prefix: str = ""
) -> Iterator[Difference]:
    """What differs, by name; what is off on both sides is the same."""
    for name in sorted({*recipe, *kit}):
        here, there = recipe.get(name), kit.get(name)
        if here == there or (here in OFF and there in OFF):
            continue
        if isinstance(here, (int, float)) and str(here) == str(there):
            continue
        kind = "lacks" if there in OFF else "beyond" if name not in recipe else "otherwise"
        yield Difference(kind, f"{prefix}{name}", here, there)
