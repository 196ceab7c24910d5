"""The figures of the desk and of its report, drawn ahead for a page in a browser, which has no
Altair."""

from json import dumps
from typing import Any

from .endurance import badput, goodput, ladder, spares
from .evidence import evidence
from .figure import Figure, marks
from .memory_step import memory, step
from .network import matrix, nodes, site, traffic
from .plans import candidates, frontier, printed_tornado, tornado
from .roofline import kernels, links
from .schedule import gantt, in_flight, laid, split
from .sides import lengths, side_memory, sides
from .sweeps import heat, line

FIGURES: tuple[Figure[Any], ...] = (
    memory,
    step,
    candidates,
    frontier,
    *tornado.values(),
    *printed_tornado.values(),
    *line.values(),
    *heat.values(),
    *nodes.values(),
    site,
    matrix,
    traffic,
    badput,
    goodput,
    spares,
    ladder,
    gantt,
    split,
    in_flight,
    laid,
    kernels,
    links,
    evidence,
    sides,
    side_memory,
    lengths,
)


def drawn_ahead() -> str:
    """Their marks without and with a legend, by name: what `figure.DRAWN_AHEAD` holds in a page."""
    return dumps({f.name: [marks(f, legend=False), marks(f, legend=True)] for f in FIGURES})
