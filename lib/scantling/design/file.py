"""Reading and writing the YAML of a design file: plain data only, bounded in size, depth and
expansion. PyYAML parses and writes; a plain word is what YAML 1.2 takes it for."""

import re
from decimal import Decimal
from math import inf, isfinite, isnan, nan
from pathlib import Path
from typing import Any

import yaml
from yaml.reader import ReaderError

from ..base import files
from ..base.errors import DesignError, plain
from ..base.files import MAX_BYTES, MAX_DEPTH, MAX_DIGITS

MAX_ITEMS = 20_000  # values in the file, aliases expanded

# the core schema of YAML 1.2: 1e12 is a number, `no` and 2026-11-21 are text, 017 is seventeen
_NOTHING = ("", "~", "null", "Null", "NULL")
_TRUE = ("true", "True", "TRUE")
_FALSE = ("false", "False", "FALSE")
_WHOLE = re.compile(r"[-+]?[0-9][0-9_]*")
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"([-+]?)\.(?:inf|Inf|INF)")
_NAN = (".nan", ".NaN", ".NAN")
_TOO_DEEP = "exceeded maximum nesting depth"  # libyaml since 0.2.6, before it gives an event
_LOADER: type[yaml.CSafeLoader] | type[yaml.SafeLoader] = getattr(
    yaml, "CSafeLoader", yaml.SafeLoader
)


def read_text(path: str | Path) -> str:
    """The text of the design file at `path`; DesignError for a missing, unreadable, oversized or
    binary one."""
    return files.read_text(path, "a YAML file of a few kilobytes, such as design.yaml")


def load(text: str) -> Any:
    """YAML text to plain dicts, lists, numbers and text.

    Refuses, with one line: text that is not YAML, tags (`!!python/object` and any other), duplicate
    keys, merge keys, more than one document, nesting deeper than 24, and anything whose aliases
    expand to more than 20,000 values; the check runs on the event stream and on the node graph, so
    an expansion bomb costs no more time or memory than the bytes it is written in.
    """
    if len(text) > MAX_BYTES:
        raise DesignError(
            problem=f"the text is larger than {MAX_BYTES:,} characters",
            allowed="a design file of a few kilobytes",
        )
    try:
        _check_events(text)
        node = yaml.compose(text, Loader=_LOADER)
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise _not_yaml(error) from None
    if node is None:
        raise DesignError(
            problem="the file is empty", allowed="at least scantling, model, cluster and job"
        )
    _expanded(node, {}, set())
    return _value(node)


def _not_yaml(error: yaml.YAMLError | UnicodeEncodeError) -> DesignError:
    if isinstance(error, UnicodeEncodeError):
        problem = f"is not text (character {error.start} is half of one)"
        return DesignError(problem=problem, allowed="a YAML file in UTF-8")
    if isinstance(error, ReaderError):
        code = error.character  # PyYAML alone gives its number, libyaml the character
        character = plain(chr(code) if isinstance(code, int) else str(code))
        problem = f"is not text: character {character} at position {error.position}"
        return DesignError(problem=problem, allowed="a YAML file in UTF-8")
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark
        line = f"line {mark.line + 1}" if mark else "the file"
        if error.problem == _TOO_DEEP:
            return DesignError(line, problem=f"nests deeper than {MAX_DEPTH} levels")
        return DesignError(
            line,
            problem=f"is not YAML: {plain(error.problem or 'cannot be parsed', 100)}",
            allowed="YAML, `field: value` on each line",
        )
    return DesignError(problem=f"is not YAML: {plain(str(error), 100)}")


def _wrong(problem: str, node: yaml.Node | yaml.Event, allowed: str = "") -> DesignError:
    line = node.start_mark.line + 1 if node.start_mark else 0
    return DesignError(f"line {line}", allowed=allowed, problem=problem)


def _check_events(text: str) -> None:
    """Refuses what nests too deeply, holds too many values, tags or a second document, before a
    node of it exists."""
    depth = documents = 0
    for items, event in enumerate(yaml.parse(text, Loader=_LOADER)):
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            depth += 1
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            depth -= 1
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
        tag = getattr(event, "tag", None)
        if tag not in (None, "!"):
            raise _wrong(f"carries a tag ({plain(str(tag))})", event, "plain values without tags")
        if depth > MAX_DEPTH:
            raise _wrong(f"nests deeper than {MAX_DEPTH} levels", event)
        if items > 2 * MAX_ITEMS:
            raise _wrong(f"holds more than {MAX_ITEMS:,} values", event)
        if documents > 1:
            raise _wrong("a second document (---) begins", event, "one design in one file")


def _expanded(node: yaml.Node, counts: dict[int, int], open_nodes: set[int]) -> int:
    """Number of values below `node`, aliases counted each time they are used."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) in open_nodes:
        raise _wrong("an alias contains itself", node)
    if id(node) not in counts:
        open_nodes.add(id(node))
        if isinstance(node, yaml.MappingNode):
            children = [child for pair in node.value for child in pair]
        else:
            children = node.value
        counts[id(node)] = 1 + sum(_expanded(child, counts, open_nodes) for child in children)
        open_nodes.discard(id(node))
    if counts[id(node)] > MAX_ITEMS:
        raise _wrong(f"aliases expand to more than {MAX_ITEMS:,} values", node)
    return counts[id(node)]


def _value(node: yaml.Node) -> Any:
    """The plain data that a node spells."""
    if isinstance(node, yaml.MappingNode):
        return _mapping(node)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item) for item in node.value]
    return _plain_word(node) if _is_plain(node) else node.value


def _mapping(node: yaml.MappingNode) -> dict[str, Any]:
    names: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or _is_plain(key) and key.value == "<<":
            problem = "a merge key (<<) or a mapping used as a key"
            raise _wrong(problem, key, "one word, then a colon")
        if key.value in names:
            raise _wrong(f"'{plain(key.value)}' is given twice", key, "each field once")
        names.add(key.value)
    return {key.value: _value(value) for key, value in node.value}


def _is_plain(node: yaml.Node) -> bool:
    """Whether a word stands without quotes, on one line."""
    return isinstance(node, yaml.ScalarNode) and not node.style


def _plain_word(node: yaml.Node) -> Any:
    """What a word without quotes stands for."""
    word: str = node.value
    if word in _NOTHING:
        return None
    if word in _TRUE + _FALSE:
        return word in _TRUE
    digits = word.replace("_", "")
    if _WHOLE.fullmatch(word):
        if len(digits) > MAX_DIGITS:
            raise _wrong(f"a number of {len(digits)} digits", node)
        return int(digits)
    if _FLOAT.fullmatch(word):
        return float(digits)
    infinite = _INFINITE.fullmatch(word)
    if infinite:
        return -inf if infinite[1] == "-" else inf
    return nan if word in _NAN else word


def number_text(value: float) -> str:
    """A float in a short exact form that readers of YAML 1.1 and 1.2 both take for a number:
    15.6e+12, 0.05, 1.0e-6."""
    if isnan(value):
        return ".nan"
    if not isfinite(value):
        return ".inf" if value > 0 else "-.inf"
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return repr(value)
    digits, _, exponent = Decimal(repr(value)).normalize().to_eng_string().partition("E")
    if "." not in digits:
        digits += ".0"
    return f"{digits}e{exponent}" if exponent else digits


class _Dumper(yaml.SafeDumper):
    """Floats in a short form, no aliases, and quotes around text that YAML 1.1 or 1.2 would read as
    something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_float(self, data: float) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:float", number_text(data))


_Dumper.add_representer(float, _Dumper.represent_float)
for _of, _pattern in (("int", _WHOLE), ("float", _FLOAT)):
    _whole = re.compile(f"(?:{_pattern.pattern})$")
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_of}", _whole, list("-+.0123456789"))


def dump(data: Any) -> str:
    """Plain data as YAML text that `load` reads back to equal data; innermost mappings and lists on
    one line."""
    return _dumped(data, width=150, flow=None)


def inline(value: Any) -> str:
    """A value as YAML on one line."""
    text = _dumped(value, width=10**9, flow=True)
    return text.removesuffix("\n").removesuffix("\n...")


def _dumped(data: Any, width: int, flow: bool | None) -> str:
    text: str = yaml.dump(
        data,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=width,
        default_flow_style=flow,
    )
    return text


def bounded(data: Any) -> None:
    """Raises DesignError for plain data that no file may hold: too many values, or too deep."""
    level, items, depth = [data], 0, 0
    while level:
        items, depth = items + len(level), depth + 1
        if items > MAX_ITEMS:
            raise DesignError("", problem=f"holds more than {MAX_ITEMS:,} values")
        if depth > MAX_DEPTH:
            raise DesignError("", problem=f"nests deeper than {MAX_DEPTH} levels")
        parts = (
            v.values() if isinstance(v, dict) else v for v in level if isinstance(v, (dict, list))
        )
        level = [value for part in parts for value in part]
