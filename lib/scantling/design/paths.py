"""Dotted paths of a design: the section that a path leads to, and the value at its end changed."""

from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel

from ..base.errors import DesignError
from .fields import FieldFacts, Like, Section, fields

# a figure changed below an id starts from that row of the catalogue
_ROWS = ("model", "accelerator", "scale_out", "stack")

Node = dict[str, Any] | list[Any]  # a mapping or a list of the file


def section_at(root: type[BaseModel], path: tuple[str, ...]) -> type[BaseModel] | None:
    """The class of the section at a path below `root`: ("cluster",); ("job", "phases", "0"); None
    where there is none."""
    section: type[BaseModel] | None = root
    for step in path:
        if section is None:
            return None
        if not step.isdigit():
            info = section.model_fields.get(step)
            section = None if info is None else _section_of(info.annotation)
    return section


def fields_at(root: type[BaseModel], path: tuple[str, ...]) -> Mapping[str, FieldFacts]:
    """The fields of the section at a path below `root`; {} where there is none."""
    section = section_at(root, path)
    return {} if section is None else fields(section)


def _section_of(annotation: Any) -> type[BaseModel] | None:
    """The section in the type of a field: alone, in a list, or one of several types."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in get_args(annotation):
        section = _section_of(part)
        if section is not None:
            return section
    return None


def put(data: dict[str, Any], path: str, value: Any) -> None:
    """Set (or with None take away) the value at `path`, copying the containers on the way; a
    section that holds nothing any more goes too."""
    node: Node = data
    steps = path.split(".")
    for depth, step in enumerate(steps[:-1], 1):
        child = _copy(_child(node, step, path), step)
        if child is None:
            raise DesignError(
                path,
                allowed=f"{'.'.join(steps[:depth])} is a single value",
                problem="there is no such field",
            )
        _set(node, step, path, child)
        node = child
    last = steps[-1]
    if value is not None:
        _set(node, last, path, value.stated() if isinstance(value, (Section, Like)) else value)
        return
    if isinstance(node, list):
        del node[_position(node, last, path)]
    elif last in node:
        del node[last]
    else:
        return
    if not node and len(steps) > 2 and not steps[-2].isdigit():
        put(data, ".".join(steps[:-1]), None)


def _child(node: Node, step: str, path: str) -> Any:
    if isinstance(node, list):
        return node[_position(node, step, path)]
    return node.get(step)


def _set(node: Node, step: str, path: str, value: Any) -> None:
    if isinstance(node, list):
        node[_position(node, step, path)] = value
    else:
        node[step] = value


def _copy(child: Any, step: str) -> Node | None:
    """A copy of a mapping or a list; of nothing a mapping; None of a single value."""
    if child is None:
        return {}
    if isinstance(child, dict):
        return dict(child)
    if isinstance(child, (list, tuple)):
        return list(child)
    if isinstance(child, str) and step in _ROWS:
        return {"like": child}
    return None


def _position(node: list[Any], step: str, path: str) -> int:
    """The position in a list that a step of a path says."""
    if not step.isdigit() or int(step) >= len(node):
        raise DesignError(
            path, allowed=f"a position from 0 to {len(node) - 1}", problem="there is no such phase"
        )
    return int(step)
