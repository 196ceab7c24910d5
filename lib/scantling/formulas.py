"""The formulas of the model by their names, each with its source in its docstring: what the
notebooks draw beside published figures, and what a notebook of your own can call."""

from .catalogue.models.entries import models
from .catalogue.models.shape import causal_flops_per_token, flops_per_token, parameters, shape_of
from .catalogue.scaling_laws import compute_optimal, loss
from .endure.elastic import ft_hsdp
from .endure.failures import job_mtbf_s
from .endure.goodput import ettr, ettr_meta, optimum_interval, shares, young
from .endure.spares import wait_chance
from .physics.collectives import ring_s
from .physics.compute import expected_places
from .physics.pipeline import bubble_time, in_flight
from .physics.roofline import roofline
from .physics.schedule import lay_out
from .physics.stragglers import slowest_of
from .physics.wires import Wires, link_of, members_inside

__all__ = [
    "Wires",
    "bubble_time",
    "causal_flops_per_token",
    "compute_optimal",
    "ettr",
    "ettr_meta",
    "expected_places",
    "flops_per_token",
    "ft_hsdp",
    "in_flight",
    "job_mtbf_s",
    "lay_out",
    "link_of",
    "loss",
    "members_inside",
    "models",
    "optimum_interval",
    "parameters",
    "ring_s",
    "roofline",
    "shape_of",
    "shares",
    "slowest_of",
    "wait_chance",
    "young",
]
