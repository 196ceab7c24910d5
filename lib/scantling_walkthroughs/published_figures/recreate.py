"""Figures and tables that others published, computed again by the kit's own functions and held
against the printed values.

Each figure says what it compares, how near ours has to come and how its points are computed: closed
forms, kernels, runs, endurance. Values live in `catalogue/published_figures.csv` (or in the tables
of runs, collectives and matrix products), each with paper, place, address and how it was read;
nothing is digitised by eye.
"""

from functools import cache

from . import endurance, forms, kernels, runs
from .recreation import READ as READ, Figure, Recreation


@cache
def figures() -> dict[str, Figure]:
    """All figures by id."""
    all_figures = (*forms.FIGURES, *kernels.FIGURES, *runs.FIGURES, *endurance.FIGURES)
    return {figure.id: figure for figure in all_figures}


@cache
def recreate(id: str) -> Recreation:
    """The figure of this id, computed; KeyError names those there are."""
    if id not in figures():
        raise KeyError(f"{id!r} is none of {', '.join(figures())}")
    figure = figures()[id]
    return Recreation(figure=figure, points=tuple(figure.points()), curves=dict(figure.curves()))


def recreate_all() -> dict[str, Recreation]:
    """Every figure, computed."""
    return {id: recreate(id) for id in figures()}
