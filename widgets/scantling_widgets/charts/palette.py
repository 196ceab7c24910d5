"""Colours of the parts, one place for the desk, the report and the legends; their names come from
the table of quantities."""

from functools import cache

from scantling.base.quantities.table import quantity
from scantling.base.words import table as read_yaml

_HUES = read_yaml(__file__, "colours")
KERNELS, AXES, FAMILIES = (_HUES[name] for name in ("kernels", "axes", "families"))


def _named(table: str) -> dict[str, tuple[str, str]]:
    """Name and colour of the parts of a mapping of the assessment. The same part may be exposed or
    hidden; its name in a chart is that of the axis."""
    return {
        part: (quantity(f"{table}.{part}").label.removesuffix(", exposed"), hue)
        for part, hue in _HUES[table].items()
    }


MEMORY, STEP = map(_named, ("memory_bytes", "step_breakdown_s"))
OVER = "#d64541"  # what lies beyond the memory of a device, and what misses a limit
ACCENT = "#2e86c1"  # 3 : 1 and more on white and on JupyterLab's dark
SECOND = "#d55e00"  # the other of two designs


@cache
def ink_on(colour: str) -> str:
    """Black or white, whichever reads better on `colour`."""
    r, g, b = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (r, g, b)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#111111" if luminance > 0.179 else "#ffffff"
