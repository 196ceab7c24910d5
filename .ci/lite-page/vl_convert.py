"""vl-convert in a browser's page: the same Vega draws, in the worker that runs this Python."""

import json
import struct
import zlib
from functools import cache
from importlib.resources import files

from pyodide.code import run_js


def get_vegalite_versions():
    return [_text("version.txt").strip()]


def javascript_bundle(snippet=None, vl_version=None):
    """The runtime of the desk's charts, made with the page (`snippet` says what it always says)."""
    return _text("embed.js")


def vegalite_to_svg(spec, vl_version=None, **_):
    return _draw()(json.dumps(spec), 0)


def vegalite_to_png(spec, vl_version=None, scale=1, **_):
    width, height, pixels = _draw()(json.dumps(spec), scale)
    rows, stride = pixels.to_bytes(), 4 * width
    lines = b"".join(b"\0" + rows[at : at + stride] for at in range(0, len(rows), stride))
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


@cache
def _draw():
    return run_js(f"(() => {{ {_text('draw.js')}\nreturn globalThis.__scantlingDraw; }})()")


def _text(name):
    return (files("vl_convert") / name).read_text(encoding="utf-8")
