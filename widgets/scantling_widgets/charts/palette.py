"""Colours of the parts, one place for the desk, the report and the legends; their names come from
the table of quantities.

The hues follow Okabe and Ito's set for colour-blind readers; within a family the lightness differs
as well. Parts of memory and of a step stand in the order of stacking.
"""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from scantling.base.quantities.quantity import quantity
from scantling.catalogue.words import MemoryPart, StepPart


class Swatch(NamedTuple):
    """A part in a picture and its legend."""

    name: str
    colour: str


def _named(table: str, colours: Mapping[str, str]) -> dict[str, Swatch]:
    """Name and colour of the parts of a mapping of the assessment. The same part may be exposed or
    hidden; its name in a chart is that of the axis."""
    return {
        part: Swatch(quantity(f"{table}.{part}").label.removesuffix(", exposed"), colour)
        for part, colour in colours.items()
    }


MEMORY = _named(
    "memory_bytes",
    {
        MemoryPart.WEIGHTS: "#0072b2",
        MemoryPart.GRADIENTS: "#56b4e9",
        MemoryPart.OPTIMIZER: "#009e73",
        MemoryPart.ACTIVATIONS: "#e69f00",
        MemoryPart.OTHER: "#8a8f98",
    },
)
STEP = _named(
    "step_breakdown_s",
    {
        StepPart.GEMM: "#0072b2",
        StepPart.ATTENTION: "#3d94cc",
        StepPart.ELEMENTWISE: "#7fbde3",
        StepPart.LOGITS: "#a9c9e0",
        StepPart.RECOMPUTE: "#5a6fb8",
        StepPart.TP: "#d55e00",
        StepPart.CP: "#e69f00",
        StepPart.EP: "#b4471f",
        StepPart.DP: "#f0b429",
        StepPart.PP: "#9c5b2e",
        StepPart.BUBBLE: "#8a8f98",
        StepPart.OPTIMIZER: "#009e73",
        StepPart.HOST: "#66c2a4",
        StepPart.STRAGGLER: "#cc79a7",
        StepPart.DATA: "#9b72aa",
    },
)
# kernels of the roofline, by the library's names
KERNELS = {
    "projections": "#0072b2",
    "mlp": "#56b4e9",
    "experts": "#d55e00",
    "shared_experts": "#e69f00",
    "latent": "#b79f00",
    "shared layer": "#7a9a01",
    "attention": "#cc79a7",
    "scan": "#7b5ea7",
    "elementwise": "#009e73",
    "logits": "#8a8f98",
    "optimizer": "#9b72aa",
}
# axes along which device 0 has peers, and itself
AXES = {
    "tp": "#0072b2",
    "cp": "#56b4e9",
    "ep": "#d55e00",
    "etp": "#cc79a7",
    "dp": "#e69f00",
    "edp": "#9b72aa",
    "pp": "#009e73",
    "self": "#f0e442",
}
# families of chips, by their label in the catalogue
FAMILIES = {
    "V100": "#8a8f98",
    "A100": "#0072b2",
    "Hopper": "#009e73",
    "Blackwell": "#d55e00",
    "TPU": "#cc79a7",
    "AMD": "#b08900",
}
OVER = "#d64541"  # what lies beyond the memory of a device, and what misses a limit
ACCENT = "#2e86c1"  # 3 : 1 and more on white and on JupyterLab's dark
SECOND = "#d55e00"  # the other of two designs
MISSED = "#e69f00"  # a design that violates a constraint
MEASURED = "#009e73"  # what was measured here


def names(parts: Mapping[str, Swatch]) -> list[str]:
    """Names of parts, in order."""
    return [part.name for part in parts.values()]


def colours(parts: Mapping[str, Swatch]) -> list[str]:
    """Colours of parts, in order."""
    return [part.colour for part in parts.values()]


@cache
def ink_on(colour: str) -> str:
    """Black or white, whichever reads better on `colour`."""
    r, g, b = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (r, g, b)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#111111" if luminance > 0.179 else "#ffffff"
