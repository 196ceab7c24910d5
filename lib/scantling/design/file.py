"""Reading and writing the YAML of a design file: plain data only, bounded in size, depth and
expansion."""

import re
from decimal import Decimal
from math import inf, isfinite, isnan, nan

import yaml

from ..base import files
from ..base.errors import DesignError, plain
from ..base.files import MAX_BYTES, MAX_DEPTH, MAX_DIGITS

MAX_ITEMS = 20_000  # values in the file, aliases expanded

_INT = re.compile(r"[-+]?[0-9][0-9_]*$")
_FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?$"
    r"|[-+]?\.(?:inf|Inf|INF)$|\.(?:nan|NaN|NAN)$"
)
_Parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Parser):
    """YAML 1.2 core scalars: 1e12 is a number, `no` and 2026-11-21 are text, 017 is seventeen, 1:30
    is text."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", re.compile(r"(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    ("int", _INT, list("-+0123456789")),
    ("float", _FLOAT, list("-+0123456789.")),
    ("merge", re.compile(r"<<$"), ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, _first)


def _number(loader, node):
    text = node.value.replace("_", "")
    if node.tag.endswith(":int") and _INT.match(node.value):
        if len(text) > MAX_DIGITS:
            raise _wrong(f"a number of {len(text)} digits", node)
        return int(text)
    low = text.lower().lstrip("+-")
    value = nan if low == ".nan" else inf if low == ".inf" else float(text)
    return -value if text.startswith("-") and low == ".inf" else value


def _mapping(loader, node, deep=True):
    seen = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag.endswith(":merge"):
            raise _wrong(
                "a merge key (<<) or a mapping used as a key", key, "one word, then a colon"
            )
        if key.value in seen:
            raise _wrong(f"'{plain(key.value)}' is given twice", key, "each field once")
        seen.add(key.value)
    return {key.value: loader.construct_object(value, deep=True) for key, value in node.value}


_Loader.add_constructor("tag:yaml.org,2002:int", _number)
_Loader.add_constructor("tag:yaml.org,2002:float", _number)
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def _wrong(what, node, allowed=""):
    return DesignError(f"line {node.start_mark.line + 1}", allowed=allowed, problem=what)


def read_text(path) -> str:
    """The text of the design file at `path`; DesignError for a missing, unreadable, oversized or
    binary one."""
    return files.read_text(path, "a YAML file of a few kilobytes, such as design.yaml")


def load(text: str):
    """YAML text to plain dicts, lists, numbers and text.

    Refuses, with one line: text that is not YAML, tags (`!!python/object` and any other), duplicate
    keys, merge keys, more than one document,
    nesting deeper than 24, and anything whose aliases expand to more than 20,000 values; the check
    runs on the event stream and on the node graph,
    so an expansion bomb costs no more time or memory than the bytes it is written in.
    """
    if len(text) > MAX_BYTES:
        raise DesignError(
            problem=f"the text is larger than {MAX_BYTES:,} characters",
            allowed="a design file of a few kilobytes",
        )
    try:
        _check_events(text)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                raise DesignError(
                    problem="the file is empty",
                    allowed="at least scantling, model, cluster and job",
                )
            _expanded(node, {}, set())
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.reader.ReaderError as e:
        raise DesignError(
            problem=(
                f"is not text: character "
                f"{plain(chr(e.character) if isinstance(e.character, int) else str(e.character))} "
                f"at position {e.position}"
            ),
            allowed="a YAML file in UTF-8",
        ) from None
    except yaml.MarkedYAMLError as e:
        where = f"line {e.problem_mark.line + 1}" if e.problem_mark else "the file"
        raise DesignError(
            where,
            problem=f"is not YAML: {plain(e.problem or 'cannot be parsed', 100)}",
            allowed="YAML, `field: value` on each line",
        ) from None
    except UnicodeEncodeError as e:
        raise DesignError(
            problem=f"is not text (character {e.start} is half of one)",
            allowed="a YAML file in UTF-8",
        ) from None
    except yaml.YAMLError as e:
        raise DesignError(problem=f"is not YAML: {plain(str(e), 100)}") from None


def _check_events(text):
    depth = documents = 0
    for items, e in enumerate(yaml.parse(text, Loader=_Parser)):
        if isinstance(e, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            depth += 1
        elif isinstance(e, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            depth -= 1
        elif isinstance(e, yaml.DocumentStartEvent):
            documents += 1
        if getattr(e, "tag", None) not in (None, "!"):
            raise _wrong(f"carries a tag ({plain(str(e.tag))})", e, "plain values without tags")
        if depth > MAX_DEPTH:
            raise _wrong(f"nests deeper than {MAX_DEPTH} levels", e)
        if items > 2 * MAX_ITEMS:
            raise _wrong(f"holds more than {MAX_ITEMS:,} values", e)
        if documents > 1:
            raise _wrong("a second document (---) begins", e, "one design in one file")


def _expanded(node, done, open_):
    """Number of values below `node`, aliases counted each time they are used."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) in open_:
        raise _wrong("an alias contains itself", node)
    if id(node) not in done:
        open_.add(id(node))
        children = (
            [c for pair in node.value for c in pair]
            if isinstance(node, yaml.MappingNode)
            else node.value
        )
        done[id(node)] = 1 + sum(_expanded(c, done, open_) for c in children)
        open_.discard(id(node))
    if done[id(node)] > MAX_ITEMS:
        raise _wrong(f"aliases expand to more than {MAX_ITEMS:,} values", node)
    return done[id(node)]


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data):
        return True


def number_text(value: float) -> str:
    """A float in a short exact form that readers of YAML 1.1 and 1.2 both take for a number:
    15.6e+12, 0.05, 1.0e-6."""
    if not isfinite(value):
        return ".nan" if isnan(value) else ".inf" if value > 0 else "-.inf"
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return repr(value)
    digits, sign, exponent = Decimal(repr(value)).normalize().to_eng_string().partition("E")
    return digits + ".0" * ("." not in digits) + f"e{exponent}" * bool(sign)


_Dumper.add_representer(
    float,
    lambda dumper, value: dumper.represent_scalar("tag:yaml.org,2002:float", number_text(value)),
)

# text that this or an older YAML would read as something else is quoted
_Dumper.yaml_implicit_resolvers = {
    k: _Loader.yaml_implicit_resolvers.get(k, [])
    + yaml.SafeDumper.yaml_implicit_resolvers.get(k, [])
    for k in {*_Loader.yaml_implicit_resolvers, *yaml.SafeDumper.yaml_implicit_resolvers}
}


_PLAIN = {"Dumper": _Dumper, "sort_keys": False, "allow_unicode": True}


def dump(data) -> str:
    """Plain data as YAML text that `load` reads back to equal data; innermost mappings and lists on
    one line."""
    return yaml.dump(data, width=150, default_flow_style=None, **_PLAIN)


def inline(value) -> str:
    """A value as YAML on one line."""
    text = yaml.dump(value, width=10**9, default_flow_style=True, **_PLAIN)
    return text.removesuffix("\n").removesuffix("\n...")
