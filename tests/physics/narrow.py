"""Assesses designs where whole numbers have 32 bits by default, as in a browser's Python, and
prints their numbers: numpy's makers of arrays are narrowed before the library is imported."""

from __future__ import annotations

import json
import sys
from functools import wraps

import numpy as np

_MAKERS = ("arange", "array", "asarray", "full", "ones", "where", "zeros")


def _holds_wide(values) -> bool:
    """Whether an argument brings a width of its own."""
    if isinstance(values, (list, tuple)):
        return any(map(_holds_wide, values))
    return isinstance(values, (np.ndarray, np.generic)) and values.dtype in (np.int64, np.uint64)


def narrowed(make):
    """The maker as it is where C's long has 32 bits."""

    @wraps(make)
    def made(*args, **more):
        out = make(*args, **more)
        own = any(a is np.int64 for a in (*args, *more.values()))
        if out.dtype != np.int64 or own or any(map(_holds_wide, (*args, *more.values()))):
            return out
        if out.size and max(abs(int(out.max())), abs(int(out.min()))) >= 2**31:
            raise OverflowError("Python int too large to convert to C long")
        return out.astype(np.int32)

    return made


def main(paths) -> None:
    for name in _MAKERS:
        setattr(np, name, narrowed(getattr(np, name)))
    import scantling

    for path in paths:
        print(json.dumps(scantling.assess(path).as_dict(advice=False), default=np.generic.item))


if __name__ == "__main__":
    main(sys.argv[1:])
