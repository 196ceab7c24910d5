"""How a field of a design file is written: `tp: int | None = count(1, 64, "ways", "...")`. One line
says what may stand in it, in which unit and within which bounds; the checks, the published schema,
the comments of `init` and the desk read that line."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.fields import FieldInfo

from ..base.errors import DesignError
from ..base.records import Lines, record
from .checks import (
    Check,
    list_of,
    number_from,
    runs_from,
    share_from,
    text_up_to,
    true_or_false,
    validator,
    whole_from,
    word_of,
    words_of,
)


class Kind(StrEnum):
    """What a field holds."""

    COUNT = "count"
    AMOUNT = "amount"
    SHARE = "share"
    FLAG = "flag"
    WORD = "word"
    WORDS = "words"
    TEXT = "text"
    RUNS = "runs"
    LIST = "list"
    OTHER = "other"  # a section, or one of several of these


@record
class FieldFacts:
    """What is known of one field of a section."""

    kind: Kind
    description: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    longest: int | None = None  # characters of a text
    choices: Lines = ()
    examples: tuple[Any, ...] = ()  # as they stand in a file
    usual: Any = None  # what it is wherever a design leaves it out
    rule: str = ""  # why, or whose value it is
    constant: Any = None  # the one value that is allowed

    @property
    def several(self) -> bool:
        """Whether it holds a list and nothing else."""
        return self.kind in (Kind.WORDS, Kind.RUNS, Kind.LIST)

    @property
    def text(self) -> str:
        """The description with its unit."""
        return f"{self.description} [{self.unit}]" if self.unit else self.description

    def schema(self) -> dict[str, Any] | None:
        """What the published schema says beside type, description and example."""
        extra: dict[str, Any] = {}
        if self.constant is not None:
            extra["const"] = self.constant
        if self.unit:
            extra["unit"] = self.unit
        if self.choices:
            extra["enum"] = [*self.choices, None]
        if self.usual is not None:
            extra["default"] = self.usual
        if self.low is not None:
            extra |= {"minimum": self.low, "maximum": self.high}
        if self.longest is not None:
            extra["maxLength"] = self.longest
        return extra or None


def field(
    facts: FieldFacts,
    check: Check | None = None,
    required: bool = False,
    default: Any = None,
    empty: Callable[[], Any] | None = None,
) -> Any:
    """A pydantic field of these facts, whose value `check` takes. Where the file says nothing,
    `default` stands in it, or what `empty` returns; `required` : the file has to say it."""
    examples = list(facts.examples) or None
    extra = facts.schema()
    info: FieldInfo
    if empty is not None:
        info = Field(
            default_factory=empty,
            description=facts.text,
            examples=examples,
            json_schema_extra=extra,
        )
    else:
        info = Field(
            default=... if required else default,
            description=facts.text,
            examples=examples,
            json_schema_extra=extra,
        )
    info.metadata.append(facts)
    if check is not None:
        info.metadata.append(validator(check))
    return info


def _example(value: Any) -> tuple[Any, ...]:
    return () if value is None else (value,)


def count(
    low: int,
    high: int,
    unit: str,
    description: str,
    *,
    example: int | None = None,
    usual: int | None = None,
    rule: str = "",
    required: bool = False,
) -> Any:
    """A whole number."""
    facts = FieldFacts(
        kind=Kind.COUNT,
        description=description,
        unit=unit,
        low=low,
        high=high,
        examples=_example(example),
        usual=usual,
        rule=rule,
    )
    return field(facts, whole_from(low, high, unit), required)


def amount(
    low: float,
    high: float,
    unit: str,
    description: str,
    *,
    example: float | None = None,
    usual: float | None = None,
    rule: str = "",
    required: bool = False,
) -> Any:
    """A number."""
    facts = FieldFacts(
        kind=Kind.AMOUNT,
        description=description,
        unit=unit,
        low=low,
        high=high,
        examples=_example(example),
        usual=usual,
        rule=rule,
    )
    return field(facts, number_from(low, high, unit), required)


def fraction(
    low: float,
    high: float,
    description: str,
    *,
    example: float | None = None,
    usual: float | None = None,
    rule: str = "",
) -> Any:
    """A share of one."""
    facts = FieldFacts(
        kind=Kind.SHARE,
        description=description,
        unit="share",
        low=low,
        high=high,
        examples=_example(example),
        usual=usual,
        rule=rule,
    )
    return field(facts, share_from(low, high))


def flag(
    description: str, *, example: bool | None = None, usual: bool | None = None, rule: str = ""
) -> Any:
    """True or false."""
    facts = FieldFacts(
        kind=Kind.FLAG, description=description, examples=_example(example), usual=usual, rule=rule
    )
    return field(facts, true_or_false)


def word(
    choices: Sequence[str],
    description: str,
    *,
    example: str | None = None,
    usual: str | None = None,
    rule: str = "",
) -> Any:
    """One of a few words."""
    facts = FieldFacts(
        kind=Kind.WORD,
        description=description,
        choices=tuple(choices),
        examples=_example(example),
        usual=usual,
        rule=rule,
    )
    return field(facts, word_of(tuple(choices)))


def words(
    choices: Sequence[str],
    description: str,
    *,
    example: list[str] | None = None,
    empty: bool = False,
) -> Any:
    """A list of some of a few words; `empty`: that none of them is listed says something."""
    facts = FieldFacts(
        kind=Kind.WORDS, description=description, choices=tuple(choices), examples=_example(example)
    )
    return field(facts, words_of(tuple(choices), empty))


def text(
    description: str,
    *,
    example: str | None = None,
    high: int = 200,
    lines: bool = False,
    required: bool = False,
) -> Any:
    """Text of at most `high` characters, on one line unless `lines`."""
    facts = FieldFacts(
        kind=Kind.TEXT, description=description, longest=high, examples=_example(example)
    )
    return field(facts, text_up_to(high, lines), required)


def runs(low: int, high: int, description: str, *, example: list[list[int]] | None = None) -> Any:
    """Runs of layers, one behind the other."""
    facts = FieldFacts(
        kind=Kind.RUNS, description=description, low=low, high=high, examples=_example(example)
    )
    return field(facts, runs_from(low, high))


def listed(
    what: str,
    most: int,
    description: str,
    *,
    least: int = 1,
    low: float | None = None,
    high: float | None = None,
    example: list[Any] | None = None,
) -> Any:
    """A list of `least` to `most` of `what`, numbers from `low` to `high`; the type says what each
    is."""
    facts = FieldFacts(
        kind=Kind.LIST, description=description, low=low, high=high, examples=_example(example)
    )
    return field(facts, list_of(what, most, least))


def other(
    description: str,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    example: Any = None,
    second: Any = None,
    required: bool = False,
) -> Any:
    """What the type of the field describes: a section, or one of several kinds. `second` : another
    example."""
    facts = FieldFacts(
        kind=Kind.OTHER,
        description=description,
        unit=unit,
        low=low,
        high=high,
        examples=_example(example) + _example(second),
    )
    return field(facts, required=required)


class Section(BaseModel):
    """A mapping of the design file: frozen, and a field it does not know is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False, defer_build=True
    )

    alone: ClassVar[Mapping[Lines, str]] = {}  # fields of which one may be given: what to write

    @model_validator(mode="after")
    def _one_of_each(self) -> "Section":
        values = dict(self) if self.alone else {}
        for names, allowed in self.alone.items():
            stated = [name for name in names if values[name] is not None]
            if len(stated) > 1:
                first, second, *_ = stated
                problem = f"is given beside {first}"
                raise DesignError(second, values[second], allowed, problem=problem)
        return self

    def stated(self) -> dict[str, Any]:
        """The fields that the file states, as plain data."""
        return self.model_dump(exclude_unset=True, exclude_none=True)


@cache
def fields(section: type[BaseModel]) -> Mapping[str, FieldFacts]:
    """Field -> what is known of it, in the order of the section."""
    return {
        name: facts
        for name, info in section.model_fields.items()
        for facts in info.metadata
        if isinstance(facts, FieldFacts)
    }


@cache
def defaults(section: type[BaseModel]) -> Mapping[str, tuple[Any, str]]:
    """Fields that have one value wherever a design leaves them out: field -> (value, the rule or
    source that chose it)."""
    return {
        name: (facts.usual, facts.rule)
        for name, facts in fields(section).items()
        if facts.usual is not None
    }


class Like(BaseModel):
    """A catalogue row with some of its figures replaced: `{like: h100-sxm, hbm_gb: 96}`."""

    model_config = ConfigDict(frozen=True, extra="allow", protected_namespaces=(), defer_build=True)
    like: str = text("the catalogue id to start from", example="h100-sxm", required=True)

    def stated(self) -> dict[str, Any]:
        return self.model_dump()
