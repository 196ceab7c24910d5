"""Colours of the parts, one place for the desk, the report and the legends; their names come from
the table of quantities.

The hues follow Okabe and Ito's set for colour-blind readers; within a family the lightness differs
as well.
"""

from __future__ import annotations

from functools import cache

from scantling.base.quantities.table import quantity

# in the order of stacking
_MEMORY = {
    "weights": "#0072b2",
    "gradients": "#56b4e9",
    "optimizer": "#009e73",
    "activations": "#e69f00",
    "other": "#8a8f98",
}
_STEP = {
    "gemm": "#0072b2",
    "attention": "#3d94cc",
    "elementwise": "#7fbde3",
    "logits": "#a9c9e0",
    "recompute": "#5a6fb8",
    "tp": "#d55e00",
    "cp": "#e69f00",
    "ep": "#b4471f",
    "dp": "#f0b429",
    "pp": "#9c5b2e",
    "bubble": "#8a8f98",
    "optimizer": "#009e73",
    "host": "#66c2a4",
    "straggler": "#cc79a7",
    "data": "#9b72aa",
}
# the same part may be exposed or hidden; its name in a chart is that of the axis
MEMORY = {key: (quantity(f"memory_bytes.{key}").label, colour) for key, colour in _MEMORY.items()}
STEP = {
    key: (quantity(f"step_breakdown_s.{key}").label.removesuffix(", exposed"), colour)
    for key, colour in _STEP.items()
}
# kernels of the roofline, by the library's names
KERNELS = {
    "projections": "#0072b2",
    "mlp": "#56b4e9",
    "experts": "#d55e00",
    "shared_experts": "#e69f00",
    "attention": "#cc79a7",
    "elementwise": "#009e73",
    "logits": "#8a8f98",
    "optimizer": "#9b72aa",
}

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
