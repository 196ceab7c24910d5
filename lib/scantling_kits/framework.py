"""What the search of plans asks of a framework."""

from dataclasses import fields
from typing import Any

from scantling.plans.space import Space

from .record import Framework


def offers(framework: Framework) -> dict[str, tuple[Any, ...]]:
    """Axis of a plan -> the values that a framework has words for, of the axes that a search
    varies."""
    axes = {field.name for field in fields(Space)} - {"precision"}
    stated = {name: domain.values for name, domain in framework.domain.items()}
    stated |= framework.space
    return {name: values for name, values in stated.items() if name in axes}
