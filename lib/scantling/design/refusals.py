"""What pydantic finds wrong with a design, as one line that names field, value, what is allowed and
the nearest."""

from collections.abc import Mapping
from json import dumps
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ..base.errors import DesignError, closest
from ..base.typed import currency
from .fields import FieldFacts
from .file import number_text
from .paths import fields_at
from .schema import TAGS


def first_error(error: ValidationError, root: type[BaseModel]) -> DesignError:
    """The first fault of a pydantic error of `root` as a DesignError with a dotted path; misspelt
    fields come before missing ones."""
    faults = error.errors(include_url=False)
    others = [fault for fault in faults if fault["type"] != "missing"]
    return _refusal((others or faults)[0], root)


def _refusal(fault: ErrorDetails, root: type[BaseModel]) -> DesignError:
    path = tuple(str(step) for step in fault["loc"] if step not in TAGS)
    field = ".".join(path)
    refusal = fault.get("ctx", {}).get("error")
    if isinstance(refusal, DesignError):
        return refusal.at(field) if field else refusal
    around = fields_at(root, path[:-1])
    if fault["type"] == "extra_forbidden":
        nearest = _nearest(path, around, root)
        problem = "there is no such field"
        if currency(path[-1]) or path[-1] == "currency":
            problem += ", and dollars are planned with: say how many"
        return DesignError(field, allowed=list(around), nearest=nearest, problem=problem)
    if fault["type"] == "missing":
        return DesignError(field, allowed=_wanted(around[path[-1]]), problem="is missing")
    value = fault.get("input")
    if fault["type"] in ("model_type", "model_attributes_type", "dict_type"):
        names = ", ".join(list(fields_at(root, path))[:12])
        allowed = f"a mapping of {names}" if names else "a text or a mapping"
        return DesignError(field, value, allowed, problem="is not a mapping")
    return DesignError(field, value, problem=fault["msg"].rstrip(".").lower())


def _wanted(facts: FieldFacts) -> str:
    if not facts.examples:
        return facts.text
    return f"{facts.text}, such as {_example(facts.examples[0])}"


def _example(value: Any) -> str:
    if isinstance(value, float):
        return number_text(value)
    return dumps(value).replace('"', "")


def _nearest(
    path: tuple[str, ...], around: Mapping[str, FieldFacts], root: type[BaseModel]
) -> str | None:
    """A good name in the wrong place, or the one spelt most like the last of the path."""
    *above, name = path
    sections = list(fields_at(root, ()))
    # the shape of a model has many names: it comes last
    for section in [s for s in sections if s != "model"] + ["model"]:
        if name in fields_at(root, (section,)):
            return f"{section}.{name}"
    near = closest(name, around)
    if near:
        return ".".join([*above, near])
    return name if name in sections else None
