"""Small frozen records that every part of the kit shares."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, fields, replace
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypedDict, TypeVar, dataclass_transform

import numpy as np

from .json import clean

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Lines = tuple[str, ...]
Rows = tuple[dict[str, Any], ...]
Known = float | None  # None: not published, not priced, not asked for
Of = TypeVar("Of")
Columns = TypeVar("Columns", bound="DataclassInstance")  # a record of columns


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(cls: type[Of]) -> type[Of]:
    """The class as a frozen dataclass that is made by keywords. A record equals its copy even where
    a figure is unknown (NaN); from Python 3.13 on a plain dataclass would not. A class that says
    itself what it equals keeps that.

    The methods are written here once: dataclass would compile them anew for each of 200 records,
    which took two fifths of the time to import the library.
    """
    cls.__doc__ = cls.__doc__ or cls.__name__  # else dataclass works a signature out to say there
    own = frozenset(vars(cls))
    kind: Any = dataclass(kw_only=True, init=False, repr=False, eq=False)(cls)  # gets methods below
    if "__init__" not in own:
        kind.__init__ = _initialise
    if "__repr__" not in own:
        kind.__repr__ = _text
    if "__eq__" not in own:
        kind.__eq__ = _equal
        kind.__hash__ = _hash
    kind.__setattr__ = _refuse
    kind.__delattr__ = _refuse
    made: type[Of] = kind
    return made


class _Known(NamedTuple):
    """What the methods of a record have to know of its class, worked out when one is first made."""

    fields: tuple[Field[Any], ...]
    every: frozenset[str]
    required: frozenset[str]
    defaults: Mapping[str, object]  # in the order of the fields, what has none as MISSING
    made: Mapping[str, Callable[[], object]]  # defaults that each record gets one of
    values_of: Callable[[object], object]  # all that is compared


@cache
def _known(kind: type["DataclassInstance"]) -> _Known:
    known = fields(kind)
    names = [f.name for f in known]
    made = {f.name: f.default_factory for f in known if f.default_factory is not MISSING}
    open_ = (f.name for f in known if f.default is MISSING and f.name not in made)
    return _Known(
        fields=known,
        every=frozenset(names),
        required=frozenset(open_),
        defaults={f.name: f.default for f in known},
        made=made,
        values_of=attrgetter("__class__", *names),
    )


def _initialise(self: "DataclassInstance", /, **values: object) -> None:
    known = _known(type(self))
    state = vars(self)
    state.update(known.defaults)
    state.update(values)
    if not len(values) == len(state) == len(known.defaults):
        if not known.required <= values.keys() <= known.every:
            _refuse_fields(type(self).__qualname__, known, values)
        for name, make in known.made.items():
            if name not in values:
                state[name] = make()


def _text(self: "DataclassInstance") -> str:
    said = (f.name for f in _known(type(self)).fields if f.repr)
    values = ", ".join(f"{name}={vars(self)[name]!r}" for name in said)
    return f"{type(self).__qualname__}({values})"


def _equal(self: "DataclassInstance", other: object) -> bool:
    values_of = _known(type(self)).values_of
    return type(other) is type(self) and values_of(self) == values_of(other)


def _hash(self: "DataclassInstance") -> int:
    return hash(_known(type(self)).values_of(self))


def _refuse(self: object, name: str, *value: object) -> None:
    raise FrozenInstanceError(f"{type(self).__qualname__} is frozen: {name!r} cannot be set")


def _refuse_fields(kind: str, known: _Known, values: Mapping[str, object]) -> None:
    """Raises TypeError for a field that is left out and has no default, else for a name that is no
    field."""
    for name in known.defaults:
        if name in known.required and name not in values:
            raise TypeError(f"{kind} needs the field {name!r}")
    for name in values:
        if name not in known.every:
            raise TypeError(f"{kind} has no field {name!r}")


class Record:
    """A frozen record that turns itself into plain JSON data."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # every subclass is a dataclass

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts of the fields that are shown (repr); what is not finite is
        None."""
        return {f.name: clean(vars(self)[f.name]) for f in fields(self) if f.repr}


class AssumedRow(TypedDict):
    """An input that was not stated."""

    field: str
    value: Any
    why: str


@dataclass(frozen=True)
class Assumed(Record):
    """One input that was not stated: the field, what it became, and the rule that chose it."""

    field: str
    value: Any
    why: str

    def row(self) -> AssumedRow:
        """The input as plain data, its value as it is."""
        return {"field": self.field, "value": self.value, "why": self.why}


class Derived:
    """The fields of a section: those stated, and those derived with the rule that chose each."""

    def __init__(self, stated: Mapping[str, Any], section: str) -> None:
        self.stated = stated
        self.section = section
        self.fields: dict[str, Any] = dict(stated)
        self.assumed: list[Assumed] = []

    def take(self, field: str, value: Of, why: str) -> Of:
        """The field as it is, which its section has checked, or the derived value with its rule."""
        if field not in self.fields:
            self.note(field, value, why)
        result: Of = self.fields[field]
        return result

    def take_all(self, values: Mapping[str, Any], why: str) -> None:
        """`take` of several fields by one rule."""
        for field, value in values.items():
            self.take(field, value, why)

    def take_usual(self, values: Mapping[str, tuple[Any, str]]) -> None:
        """`take` of several fields: field -> (value, rule)."""
        for field, (value, why) in values.items():
            self.take(field, value, why)

    def note(self, field: str, value: Of, why: str) -> Of:
        """The derived value, whatever was stated."""
        self.fields[field] = value
        self.assumed.append(Assumed(f"{self.section}.{field}".lstrip("."), value, why))
        return value


def get(record: Any, field: str) -> Any:
    """A field of a mapping or of a record, None where it is missing or there is no record."""
    return record.get(field) if isinstance(record, Mapping) else getattr(record, field, None)


def fields_of(record: Any, names: Iterable[str]) -> dict[str, Any]:
    """{name: value} of some fields of a mapping or of a record, each as `get` has it."""
    return {name: get(record, name) for name in names}


def at(data: Mapping[str, Any], key: str) -> Any:
    """The value at a dotted key of nested mappings and lists (a position); None where they have
    none."""
    node: Any = data
    for step in key.split("."):
        if isinstance(node, list):
            node = {str(place): value for place, value in enumerate(node)}
        node = node.get(step) if isinstance(node, Mapping) else None
    return node


def of_quantity(record: Mapping[str, Any], key: str, default: Any = None) -> Any:
    """The value of a quantity in a record: at its whole key, where the record is a whole result,
    else in the field that its last part names."""
    head, _, field = key.rpartition(".")
    return at(record, key) if head.partition(".")[0] in record else record.get(field, default)


def value_or(record: Any, path: str, default: Any, why: str, assumed: list[Assumed]) -> Any:
    """The last field of `path` where `record` has it, else `default`, noted in `assumed` with the
    rule that chose it."""
    value = get(record, path.rpartition(".")[2])
    if value is None:
        assumed.append(Assumed(path, default, why))
        return default
    return value


def _values(record: Any) -> Iterator[tuple[str, Any]]:
    """(field, value) of a record, without the properties that it has worked out and keeps."""
    known = record.__dataclass_fields__
    return ((name, value) for name, value in vars(record).items() if name in known)


def _is_record(value: Any) -> bool:
    return hasattr(value, "__dataclass_fields__")


def _is_column(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0


def take(record: Columns, index: Any) -> Columns:
    """The same record with every column (array of one or more elements) indexed; scalars stay
    shared, records in tuples and mappings are taken one by one."""
    columns: dict[str, Any] = {}
    for name, value in _values(record):
        if _is_column(value):
            columns[name] = value[index]
        elif _is_record(value):
            columns[name] = take(value, index)
        elif isinstance(value, tuple) and value and _is_record(value[0]):
            columns[name] = tuple(take(v, index) for v in value)
        elif isinstance(value, dict) and all(map(_is_record, value.values())):
            columns[name] = {key: take(v, index) for key, v in value.items()}
    return replace(record, **columns) if columns else record


def joined(records: Sequence[Columns], lengths: Sequence[int]) -> Columns:
    """Records of one kind, of so many rows each, as one, the rows one after the other: the reverse
    of `take`. A number that all share stays a scalar, and what is no column is the first's."""
    columns: dict[str, Any] = {}
    for name, first in _values(records[0]):
        values = [vars(one)[name] for one in records]
        if all(value is first for value in values) and not _is_column(first):
            continue
        if _is_record(first):
            columns[name] = joined(values, lengths)
        elif isinstance(first, tuple):
            if first and _is_record(first[0]):
                columns[name] = tuple(joined(part, lengths) for part in zip(*values))
        elif any(_is_column(value) or value != first for value in values):
            columns[name] = np.concatenate([*map(np.broadcast_to, values, lengths)])
    return replace(records[0], **columns) if columns else records[0]


def length(record: Any) -> int:
    """Number of rows that a columnar record holds; 1 when all its fields are scalars."""
    for _, value in _values(record):
        if isinstance(value, np.ndarray) and value.ndim:
            return len(value)
        for part in value if isinstance(value, tuple) else (value,):
            if hasattr(part, "__dataclass_fields__"):
                n = length(part)
                if n > 1:
                    return n
    return 1


def pick(condition: Any, one: Columns, other: Columns) -> Columns:
    """A record of the same kind: fields of `one` where `condition` holds, else of `other`."""
    others = dict(_values(other))
    return replace(one, **{k: np.where(condition, value, others[k]) for k, value in _values(one)})
