"""The fields of one Hugging Face config.json, with what was read of them and what was assumed."""

import re
from collections.abc import Mapping
from math import ceil
from typing import Any, NamedTuple

from ...base.errors import DesignError
from ...base.records import Assumed, Lines, at
from ...base.show import is_number


class Switch(NamedTuple):
    """A field that switches something on, and what its class has where the file is silent."""

    field: str
    usual: bool = False


Flag = bool | Switch  # what every model of an architecture has or lacks, or what its file says


class Reader:
    """One config's fields, with a record of what was taken from where."""

    def __init__(self, config: Mapping[str, Any], prefix: str = "") -> None:
        self.config = config
        self.prefix = prefix
        self.model_type = ""
        self.read: dict[str, Any] = {}
        self.assumed: list[Assumed] = []
        self.names: dict[str, str] = {}  # field of `Model`: what the file calls it

    def wrong(self, field: str, value: Any, allowed: Any, problem: str = "") -> DesignError:
        """The refusal of a field's value."""
        return DesignError(self.prefix + field, value, allowed, problem=problem)

    def missing(self, field: str, allowed: str) -> DesignError:
        """The refusal of a file without a field."""
        return DesignError(self.prefix + field, allowed=allowed, problem="missing")

    def get(self, *names: str) -> Any:
        """The first of the fields that the file has; a dot steps inside."""
        for name in names:
            value = at(self.config, name)
            if value is not None:
                self.read[self.prefix + name] = value
                return value
        return None

    def count(self, *names: str, least: int = 1) -> int | None:
        """A whole number from `least` to a billion, or None where no name is in the file; a list
        that has the same one for every layer is that number."""
        for name in names:
            value = self.get(name)
            if value is None:
                continue
            if isinstance(value, list) and value and value.count(value[0]) == len(value):
                value = value[0]
            if not is_number(value) or not least <= value <= 1e9 or value % 1:
                raise self.wrong(name, value, f"a whole number of at least {least}")
            return int(value)
        return None

    def size(self, names: Lines, usual: int | None = None, least: int = 1) -> int:
        """A dimension by the names of its field, else what the class has; refused where the file
        and its class leave it out."""
        value = self.count(*names, least=least)
        if value is not None:
            return value
        if usual is None:
            raise self.missing(names[0], "this dimension of the model; it is not guessed")
        return int(self.of_class(self.prefix + names[0], usual, self.model_type))

    def derived(self, field: str, names: Lines, value: float, formula: str, least: int = 1) -> int:
        """A dimension by the names of its field; where the file leaves it out, the value rounded
        up that follows by a formula."""
        follows = ceil(value)
        if any(self.config.get(name) == "auto" for name in names):
            return follows
        stated = self.count(*names, least=least)
        if stated is not None:
            return stated
        return int(self.assume(field, follows, f"derived: {formula}"))

    def block_size(self, field: str, usual: int | None, *names: str) -> int:
        """A dimension of a hybrid's blocks for a field of `Model`, 0 or more; `usual` is what the
        class has."""
        self._named(field, names[:-1] if usual is None else names)
        return self.size(names, usual, least=0)

    def block_derived(self, field: str, value: float, formula: str, *names: str) -> int:
        """The same, where it follows from other dimensions."""
        self._named(field, names)
        return self.derived(field, names, value, formula, least=0)

    def _named(self, field: str, names: Lines) -> None:
        """Keeps what the file calls a field, for whoever refuses it."""
        for name in names:
            if name in self.config:
                self.names.setdefault(field, name)

    def numbers(self, name: str) -> list[int]:
        """A list of layer numbers or 0/1 marks; anything else in the list, or another value, is
        refused."""
        value = self.get(name)
        if value is None:
            return []
        if isinstance(value, str) and re.fullmatch(r"\d+(,\d+)*", value):
            return [int(number) for number in value.split(",")]
        if not isinstance(value, list) or not all(isinstance(v, int) for v in value):
            raise self.wrong(name, value, "a list of whole numbers")
        return value

    def assume(self, field: str, value: Any, why: str) -> Any:
        self.assumed.append(Assumed(field, value, why))
        return value

    def of_class(self, field: str, value: Any, model_type: str) -> Any:
        """What the config class puts where the file says nothing."""
        return self.assume(field, value, f"the {model_type} class's value; not in the file")

    def flag(self, spec: Flag) -> bool:
        """A switch of the file, or what the class has where it is silent."""
        if isinstance(spec, bool):
            return spec
        value = self.get(spec.field)
        return spec.usual if value is None else bool(value)
