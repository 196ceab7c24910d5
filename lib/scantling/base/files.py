"""The files that a user names: read whole and within bounds, written in one step."""

import csv
import io
import os
import re
import stat
from collections.abc import Callable, Mapping
from functools import cache, partial
from itertools import accumulate
from json import JSONDecodeError, loads
from math import inf
from pathlib import Path
from typing import Any, TextIO

import yaml

from .errors import CatalogueError, DesignError, closest, plain
from .extensions import added
from .records import Rows

MAX_BYTES = 1_000_000  # a file that people write; what programs write names its own limit
MAX_DIGITS = 400
MAX_DEPTH = 24
# of JSON: strings, and what else is no bracket
COMMAS = "columns separated by commas, numbers with a decimal point"
OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_BETWEEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[^][{}"]+', re.S)
Refusal = Callable[..., DesignError]  # makes the error, a partial that names the field


def csv_rows(path: Path) -> Rows:
    """The rows of a CSV file that ships with the package, each by the names of its columns; then
    those of the user's extensions."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        return (*reader, *added(path.name, reader.fieldnames or ()))


def yaml_of(path: Path) -> Any:
    """What a YAML file of the kit or of a user's extensions holds; one that is written as JSON is
    read as such, 50 times as fast where YAML has no compiled reader. Raises CatalogueError for one
    that is neither."""
    text = read_text(path, "a YAML file")
    try:
        if text.startswith("{"):
            return loads(text)
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        raise CatalogueError(f"{path}: {plain(' '.join(str(e).split()), 200)}") from None


@cache
def table(module_file: str | Path, name: str) -> Any:
    """What NAME.yaml in the folder of the module `beside` (its __file__) holds; not to be changed
    in place."""
    return yaml_of(Path(module_file).with_name(f"{name}.yaml"))


@cache
def table_rows(module_file: str | Path, name: str) -> Rows:
    """Rows of NAME.csv in the folder of the module `beside` (its __file__)."""
    return csv_rows(Path(module_file).with_name(f"{name}.csv"))


def read_bytes(
    path: str | Path, allowed: str = "a file", limit: int = MAX_BYTES, wrong: Refusal | None = None
) -> bytes:
    """The bytes of a regular file of at most `limit` bytes.

    Never waits, and never reads a device, a pipe, a socket or a link to one. `wrong` makes the
    error (a partial of DesignError that names the field); without it the path stands for the field.
    Raises DesignError.
    """
    wrong = wrong or partial(DesignError, plain(path, 200))
    with open_stream(path, allowed, wrong) as file:
        try:
            raw = file.read(limit + 1) or b""
        except OSError as e:
            raise _unread(e, wrong, allowed) from None
    if len(raw) > limit:
        raise wrong(problem=f"is larger than {limit:,} bytes", allowed=allowed)
    return raw


def _regular(about: os.stat_result, wrong: Refusal, allowed: str) -> None:
    if not stat.S_ISREG(about.st_mode):
        problem = "is a directory" if stat.S_ISDIR(about.st_mode) else "is not a file"
        raise wrong(problem=problem, allowed=allowed)


def read_text(
    path: str | Path, allowed: str = "a file", limit: int = MAX_BYTES, wrong: Refusal | None = None
) -> str:
    """The text of a regular file in UTF-8 of at most `limit` bytes, a leading byte order mark left
    out; as `read_bytes` else. Raises DesignError."""
    raw = read_bytes(path, allowed, limit, wrong)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        problem = f"is not text (byte {e.start} is not UTF-8)"
        wrong = wrong or partial(DesignError, plain(path, 200))
        raise wrong(problem=problem, allowed=f"{allowed} in UTF-8") from None


def read_table_text(path: str | Path, allowed: str, limit: int = MAX_BYTES) -> str:
    """The text of a table whose columns are separated by commas; as `read_text` else.

    A spreadsheet of a country with decimal commas separates by semicolons: its numbers would need
    reading in another way too. Raises DesignError where no comma is in the first line, which is no
    comment, and another separator is."""
    text = read_text(path, allowed, limit)
    if sign := other_separator(text):
        raise DesignError(
            plain(path, 200), problem=f"is separated by {OTHER_SEPARATORS[sign]}", allowed=COMMAS
        )
    return text


def other_separator(text: str) -> str:
    """The sign that separates the columns of a table in the place of commas; "" where they do."""
    head = next((line for line in text.splitlines() if line.strip() and line[0] != "#"), "")
    if "," in head:
        return ""
    return next((sign for sign in OTHER_SEPARATORS if sign in head.strip()), "")


def read_stream(stream: TextIO, name: str) -> str:
    """What a text stream (standard input) holds, at most MAX_BYTES characters. Raises
    DesignError."""
    try:
        text = stream.read(MAX_BYTES + 1)
    except (OSError, UnicodeDecodeError) as e:
        raise DesignError(name, problem=f"cannot be read ({plain(e)})") from None
    if len(text) > MAX_BYTES:
        raise DesignError(name, problem=f"is larger than {MAX_BYTES:,} characters")
    return text


def _sibling(path: Path) -> str | None:
    """The file beside it that is spelt most like it and ends alike."""
    kinds = (
        {path.suffix, ".yaml", ".yml"} if path.suffix in ("", ".yaml", ".yml") else {path.suffix}
    )
    try:
        around = zip(path.parent.iterdir(), range(500))
        others = [p.name for p, _ in around if p.suffix in kinds and p.name != path.name]
        return closest(path.name, others)
    except OSError:
        return None


def json_object(text: str, wrong: Refusal) -> Mapping[str, Any]:
    """The object that JSON text spells: at most 24 levels deep, whole numbers of at most 400
    digits. `wrong` makes the error. Raises DesignError."""
    if too_deep(text):
        raise wrong(problem="is nested too deeply", allowed=f"at most {MAX_DEPTH} levels")
    try:
        data = loads(text, parse_int=_whole)
    except JSONDecodeError:
        raise wrong(problem="is not JSON", allowed="a JSON file") from None
    except ValueError as e:
        raise wrong(problem=f"is not read ({e})", allowed="a JSON file") from None
    if not isinstance(data, Mapping):
        raise wrong(problem="is not a JSON object", allowed="a JSON object")
    return data


def too_deep(text: str) -> bool:
    """Whether a JSON text has more than MAX_DEPTH levels. Reading one of very many would end the
    Python of a browser, where others raise RecursionError."""
    steps = (1 if bracket in "[{" else -1 for bracket in _BETWEEN.sub("", text))
    return max(accumulate(steps), default=0) > MAX_DEPTH


def _whole(digits: str) -> int | float:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits")
    value = int(digits)
    if abs(value) < 10**300:
        return value
    return inf if value > 0 else -inf


def write_whole(path: Path, content: bytes, force: bool = True) -> None:
    """Write a file in one step (temporary file, then rename): a reader sees the old one or the new
    one, after a power cut too. Raises OSError."""
    temporary = path.with_name(f".{path.name[:50]}.{os.urandom(4).hex()}.part")
    try:
        with open(temporary, "xb") as f:
            f.write(content)
            f.flush()
            os.fsync(f.fileno())  # the content is on the disk before the name is
        if force:
            os.replace(temporary, path)
        else:  # a link fails when the file exists, without a moment in between
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def utf8(text: str) -> bytes:
    """`text` in UTF-8. What has no place in it, such as a byte of a file name that is no text, is
    written as its escape, which is JSON's as well."""
    return text.encode("utf-8", "backslashreplace")


def write_text(path: str | Path, text: str, force: bool = False) -> None:
    """Write `text` to `path` in one step (temporary file, then rename; a link keeps pointing where
    it did); refuses to replace a file unless `force`."""
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        path.write_bytes(utf8(text))  # /dev/stdout, a pipe: nothing to replace
        return
    path = Path(os.path.realpath(path))
    wrong = partial(DesignError, plain(path, 200))
    if path.is_dir():
        raise wrong(problem="is a directory", allowed="the name of a file to write")
    try:
        write_whole(path, utf8(text), force)
    except FileExistsError:
        raise wrong(
            problem="exists already", allowed="a new file name, or --force to replace it"
        ) from None
    except OSError as e:
        raise wrong(problem=f"cannot be written ({plain(e.strerror or str(e))})") from None


def open_stream(
    path: str | Path, allowed: str = "a file", wrong: Refusal | None = None
) -> io.BufferedReader:
    """A regular file opened for reading in pieces, of any size; as careful as `read_bytes`. Raises
    DesignError."""
    wrong = wrong or partial(DesignError, plain(path, 200))
    try:
        about = os.stat(path)
        _regular(about, wrong, allowed)  # before it is opened: opening a device may act
        if not about.st_size:  # some files of /proc wait for their first byte
            return io.BufferedReader(io.BytesIO())
        file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
        try:
            _regular(os.fstat(file.fileno()), wrong, allowed)
        except DesignError:
            file.close()
            raise
        return file
    except FileNotFoundError:
        nearest = _sibling(Path(path))
        raise wrong(
            problem="there is no such file", nearest=nearest, allowed="" if nearest else allowed
        ) from None
    except DesignError:
        raise
    except (OSError, ValueError) as e:
        raise _unread(e, wrong, allowed) from None


def _unread(error: OSError | ValueError, wrong: Refusal, allowed: str) -> DesignError:
    return wrong(
        problem=f"cannot be read ({plain(getattr(error, 'strerror', None) or str(error))})",
        allowed=allowed,
    )
