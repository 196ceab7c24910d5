"""Published facts about running large machines, by id (catalogue/reliability.csv)."""

from functools import cache
from math import isnan

from scantling import catalogue
from scantling.catalogue.rows import Fact


def number(id: str) -> float:
    """The figure of a published fact, in the unit printed there. Raises ValueError where it is not
    one number."""
    fact = _facts()[id]
    if isnan(fact.number):
        raise ValueError(f"{id} is not one number: {fact.value!r}")
    return fact.number


def source(*ids: str) -> str:
    """Title and place of published facts, for a reader."""
    facts = (_facts()[id] for id in ids)
    return "; ".join(dict.fromkeys(f"{fact.title}, {fact.locator}" for fact in facts))


@cache
def _facts() -> dict[str, Fact]:
    return {fact.id: fact for fact in catalogue.reliability_facts()}
