"""Figures and tables that others published, computed again by the kit's own functions and held
against the printed values.

`figures.yaml` says what each compares, how near it has to come and, for training runs, which of
them; the modules beside it compute the points. Values live in `catalogue/published_figures.csv` (or
in the tables of runs, collectives and matrix products), each with paper, place, address and how it
was read; nothing is digitised by eye.
"""

from functools import cache, partial
from pathlib import Path

import numpy as np
from scantling.base.words import yaml_of

from . import endurance, forms, kernels, runs
from .record import READ as READ, Figure, Recreation, drawn, points_of


@cache
def figures() -> dict:
    """All figures by id, in the order of the file."""
    formulas = forms.OURS | runs.OURS | endurance.OURS
    points = {id: partial(points_of, id, ours) for id, ours in formulas.items()}
    points |= forms.POINTS | kernels.POINTS
    curves = forms.CURVES | kernels.CURVES | endurance.CURVES
    about = yaml_of(Path(__file__).with_suffix(".yaml"))
    for id, said in about.items():
        if axis := said.pop("axis", None):
            curves[id] = partial(drawn, id, formulas[id], np.geomspace(*axis))
        if which := said.pop("runs", None):
            points[id] = partial(runs.points, said["unit"], **which)
            curves[id] = partial(runs.lines, said["unit"], **which)
    return {
        id: Figure(id=id, points=points[id], curves=curves.get(id, dict), **said)
        for id, said in about.items()
    }


@cache
def recreate(id: str) -> Recreation:
    """The figure of this id, computed; KeyError names those there are."""
    if id not in figures():
        raise KeyError(f"{id!r} is none of {', '.join(figures())}")
    figure = figures()[id]
    return Recreation(figure=figure, points=tuple(figure.points()), curves=dict(figure.curves()))


def recreate_all() -> dict:
    """Every figure, computed."""
    return {id: recreate(id) for id in figures()}
