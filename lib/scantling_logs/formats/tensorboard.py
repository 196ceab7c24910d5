"""TensorBoard event files: TFRecords of protocol buffers, read by hand (scalars alone)."""

import struct

from ..found import NAN, Found
from ..rows import chosen, spoken, take
from ..text import blocks

FLOATS = {4: "<f", 8: "<d"}  # a number by its bytes
LARGEST = 16 << 20  # bytes of one record that are read


def records(path):
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


def fields(raw: bytes):
    """(number, wire type, value) of each field of a protocol buffer; stops where it is broken."""
    at = 0
    while at < len(raw):
        key, at = _varint(raw, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(raw, at)
        elif kind in (1, 2, 5):
            size, at = _varint(raw, at) if kind == 2 else (8 if kind == 1 else 4, at)
            value = raw[at : at + size]
            at = at + size
            if len(value) < size:
                return
        else:
            return
        yield key >> 3, kind, value


def _varint(raw: bytes, at: int) -> tuple:
    value = shift = 0
    while at < len(raw) and shift < 70:
        byte = raw[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
    return value, at


def last(raw: bytes, number: int, default=b""):
    """The last value of a field of a protocol buffer, of the type of `default`."""
    held = (v for n, _, v in reversed([*fields(raw)]) if n == number)
    return next((v for v in held if isinstance(v, type(default))), default)


def scalars(path):
    """(wall clock, step, tag, value) of every scalar of an event file: Event{1 wall_time, 2 step,
    5 summary}, Summary{1 value}, Value{1 tag, 2 simple_value, 8 tensor}."""
    for record in records(path):
        wall = last(record, 1)
        step = last(record, 2, 0)
        for number, kind, value in fields(last(record, 5) or b""):
            if number != 1 or kind != 2:
                continue
            simple = last(value, 2) or tensor_of(last(value, 8) or b"")
            if len(simple) in FLOATS and len(wall) == 8:
                (got,) = struct.unpack(FLOATS[len(simple)], simple)
                yield (
                    struct.unpack("<d", wall)[0],
                    step,
                    last(value, 1).decode("utf-8", "replace"),
                    got,
                )


def tensor_of(raw: bytes) -> bytes:
    """The first float or double of a tensor: TensorProto{1 dtype, 4 content, 5 float_val}."""
    return last(raw, 1, 0) in (1, 2) and last(raw, 4) or last(raw, 5)[:4]


def read(path, found: Found) -> None:
    """What the file holds: one line a step."""
    steps = {}
    clocks = {}
    for wall, step, tag, value in scalars(path):
        found.seen(wall)
        steps.setdefault(step, {"iter": step})[tag] = value
        clocks.setdefault(tag, {})[step] = wall
    timed = {s for s, row in steps.items() for column, _, _ in chosen(tuple(row)) if column == "s"}
    walls = next((clocks[tag] for tag in spoken()["clocked"] if tag in clocks), {})
    for step, row in sorted(steps.items()):
        if step in (timed or walls):
            take(found, row | {"_runtime": walls.get(step, NAN)})
