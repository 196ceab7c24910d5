"""What the walkthroughs' books share: sums that more than one of them needs, and the class that
their formulas and the facts of their files make."""

import ast
from dataclasses import replace
from functools import cached_property, partial
from types import SimpleNamespace

from scantling import assess
from scantling.base import units
from scantling.catalogue import collective_series, failure_preset, scaling_laws, storage
from scantling.catalogue.models.entries import models
from scantling.catalogue.models.shape import flops_per_token, parameters
from scantling.catalogue.published import best_published
from scantling.design.design import Design
from scantling.endure import checkpoint, elastic, failures, goodput, spares
from scantling.physics import pipeline, stragglers
from scantling.physics.memory.peak import memory_by_stage
from scantling.physics.pipeline import bubble_interleaved

from .. import measured
from ..texts import fill_text
from ..typed import worth
from . import shared


def swept(design, field, *values) -> dict:
    """{value: assessment} of a design with one field at each of the values."""
    return {value: assess(design.change({field: value})) for value in values}


def fastest(found):
    """Of {value: assessment}, the value with the shortest step of those that fit."""
    return min((v for v, a in found.items() if a.chosen.fits), key=lambda v: found[v].step_s)


def sent(assessment, axis) -> dict:
    """What an axis of the plan sends, and how long it takes."""
    return next(r for r in assessment.as_dict()["communication"] if r["axis"] == axis)


def layers_s(assessment) -> float:
    """Time of a step that the layers compute. [s]"""
    return sum(assessment.step_breakdown_s[part] for part in ("gemm", "attention", "elementwise"))


def tp_sent(activation, tp):
    """Sent by a device for tensor parallelism, per layer and micro-batch: 4 gathers or scatters of
    the activation forward and 4 backward, or 2 all-reduces each way. [bytes]"""
    return 8 * activation * (tp - 1) / tp


def idle_share(stages, micro_batches, chunks=1) -> float:
    """Idle share of an (interleaved) 1F1B step: `i / (m + i)`, i the idle micro-batches."""
    idle = bubble_interleaved(stages, chunks, 1 / 3, 1 / 3, 1 / 3)
    return idle / (micro_batches + idle)


# what a sum may name beside the facts: units, and where the library's own formulas stand
_FORMULAS = vars(units) | {"spare_nodes": spares}
_FORMULAS |= {
    formula.__name__.rpartition(".")[2]: formula
    for formula in (
        checkpoint,
        elastic,
        goodput,
        pipeline,
        scaling_laws,
        stragglers,
        flops_per_token,
        parameters,
        storage,
        measured.published,
        measured.rate,
        measured.runs,
        idle_share,
        swept,
        fastest,
        sent,
        layers_s,
        tp_sent,
        failures,
        failure_preset,
        best_published,
        collective_series,
        models,
        memory_by_stage,
        replace,
        int,
        max,
        min,
    )
}


def facts_of(book, said: dict) -> type:
    """The class of a book's facts, each worked out when it is asked for and kept.

    book : module of formulas; the parameters of one name the facts that it needs, and of one with a
    `/` the fact is a function of what follows
    said : sections of facts by name. given: values, a mapping with its parts as attributes;
    designs: design files; assessed: names of designs; printed: a reader of `measured` and its ids;
    told: rows of texts, filled from the facts; keys: a fact, {its value: key of the right option},
    and the key for any other value; sums: arithmetic on other facts, and the library's formulas of
    them
    """
    formulas = {
        name: _fact(formula)
        for module in (shared, book)
        for name, formula in vars(module).items()
        if getattr(formula, "__module__", "") == module.__name__ and not name.startswith("_")
    }
    rows = {
        name: cached_property(partial(read, row))
        for section, read in _SECTIONS.items()
        for name, row in said.get(section, {}).items()
    }
    return type("Facts", (), formulas | rows)


def _fact(formula) -> cached_property:
    code = formula.__code__
    needs = code.co_varnames[: code.co_posonlyargcount or code.co_argcount]

    def worked(facts):
        known = [getattr(facts, name) for name in needs]
        return partial(formula, *known) if code.co_posonlyargcount else formula(*known)

    return cached_property(worked)


def _key(row, facts):
    fact, keys, other = row
    return keys.get(getattr(facts, fact), other)


def _given(value, facts):
    return SimpleNamespace(**value) if isinstance(value, dict) else value


def _design(data, facts):
    return Design.from_data(data)


def _assessed(name, facts):
    return assess(getattr(facts, name))


def _printed(row, facts):
    reader, *ids = row
    return getattr(measured, reader)(*ids)


def _told(rows, facts):
    return [tuple(fill_text(text, facts) for text in row) for row in rows]


def _sum(expression, facts):
    def names(name):
        return getattr(facts, name) if hasattr(type(facts), name) else _FORMULAS[name]

    return worth(ast.parse(expression, mode="eval").body, names)


_SECTIONS = {
    "given": _given,
    "designs": _design,
    "assessed": _assessed,
    "printed": _printed,
    "told": _told,
    "keys": _key,
    "sums": _sum,
}
