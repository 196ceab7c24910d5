"""TensorBoard event files: TFRecords of protocol buffers, read by hand (scalars alone)."""

import re
import struct
from collections.abc import Iterator
from math import nan
from pathlib import Path
from typing import NamedTuple

from ..contents import Column, Contents
from ..file_format import FileFormat
from ..step_rows import add_row, cells
from ..text import blocks

MARK = re.compile(r"\A[\s\S]{0,60}brain\.Event:\d")
FLOATS = {4: "<f", 8: "<d"}  # a number by its bytes
LARGEST = 16 << 20  # bytes of one record that are read
# scalars that come once a step, so that their clock is that of steps
CLOCKED = (
    "loss_metrics/global_avg_loss",
    "lm loss",
    "train/loss",
    "loss",
    "train_loss",
    "train_loss_step",
    "reduced_train_loss",
    "learning/loss",
    "train/CE loss",
    "Loss/train",
    "loss/train",
    "actor/loss",
)


class Field(NamedTuple):
    """A field of a protocol buffer: a number, or the bytes of anything else."""

    number: int
    value: int | bytes


class Scalar(NamedTuple):
    """A value of an event file."""

    clock_s: float
    step: int
    tag: str
    value: float


def records(path: Path) -> Iterator[bytes]:
    """The records of a TFRecord file: length, checksum, data, checksum."""
    buffer = b""
    for block in blocks(path):
        buffer += block
        at = size = 0
        while (size := int.from_bytes(buffer[at : at + 8], "little")) + 16 <= len(buffer) - at:
            yield buffer[at + 12 : at + 12 + size]
            at += size + 16
        if size > LARGEST:
            return
        buffer = buffer[at:]


def fields(raw: bytes) -> Iterator[Field]:
    """The fields of a protocol buffer; stops where it is broken."""
    at = 0
    while at < len(raw):
        key, at = _varint(raw, at)
        match key & 7:
            case 0:
                number, at = _varint(raw, at)
                yield Field(key >> 3, number)
                continue
            case 1:
                size = 8
            case 2:
                size, at = _varint(raw, at)
            case 5:
                size = 4
            case _:
                return
        value = raw[at : at + size]
        at += size
        if len(value) < size:
            return
        yield Field(key >> 3, value)


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    """(value, position behind it) of a number at a position."""
    value = shift = 0
    while at < len(raw) and shift < 70:
        byte = raw[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
    return value, at


def last_bytes(raw: bytes, number: int) -> bytes:
    """The last value of a field that holds bytes; none where it is missing."""
    values = [f.value for f in fields(raw) if f.number == number and isinstance(f.value, bytes)]
    return values[-1] if values else b""


def last_number(raw: bytes, number: int) -> int:
    """The last value of a field that holds a number; 0 where it is missing."""
    values = [f.value for f in fields(raw) if f.number == number and isinstance(f.value, int)]
    return values[-1] if values else 0


def scalars(path: Path) -> Iterator[Scalar]:
    """Every scalar of an event file: Event{1 wall_time, 2 step, 5 summary}, Summary{1 value},
    Value{1 tag, 2 simple_value, 8 tensor}."""
    for record in records(path):
        clock = last_bytes(record, 1)
        step = last_number(record, 2)
        for field in fields(last_bytes(record, 5)):
            if field.number != 1 or isinstance(field.value, int):
                continue
            value = last_bytes(field.value, 2) or tensor_of(last_bytes(field.value, 8))
            if len(value) in FLOATS and len(clock) == 8:
                tag = last_bytes(field.value, 1).decode("utf-8", "replace")
                (number,) = struct.unpack(FLOATS[len(value)], value)
                (clock_s,) = struct.unpack("<d", clock)
                yield Scalar(clock_s, step, tag, number)


def tensor_of(raw: bytes) -> bytes:
    """The first float or double of a tensor: TensorProto{1 dtype, 4 content, 5 float_val}."""
    content = last_bytes(raw, 4) if last_number(raw, 1) in (1, 2) else b""
    return content or last_bytes(raw, 5)[:4]


def knows(head: str) -> bool:
    """Whether the head of a file is of this format."""
    return MARK.search(head) is not None


def read(path: Path, log: Contents) -> None:
    """What the file holds: one line a step."""
    rows: dict[int, dict[str, float]] = {}
    clocks_s: dict[str, dict[int, float]] = {}
    for scalar in scalars(path):
        log.add_moment(scalar.clock_s)
        rows.setdefault(scalar.step, {"iter": scalar.step})[scalar.tag] = scalar.value
        clocks_s.setdefault(scalar.tag, {})[scalar.step] = scalar.clock_s
    timed = {step for step, row in rows.items() if _is_timed(row)}
    clock_s = next((clocks_s[tag] for tag in CLOCKED if tag in clocks_s), {})
    for step, row in sorted(rows.items()):
        if step in (timed or clock_s):
            add_row(log, {**row, "_runtime": clock_s.get(step, nan)})


def _is_timed(row: dict[str, float]) -> bool:
    """Whether a step has its own time."""
    return any(cell.column is Column.SECONDS for cell in cells(tuple(row)))


TENSORBOARD = FileFormat(name="tensorboard", framework="TensorBoard", knows=knows, read=read)
