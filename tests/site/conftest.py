"""Designs of the gallery, each assessed once for all tests of this folder."""

from functools import cache
from pathlib import Path

import pytest
from scantling import Design, assess

DESIGNS = Path(__file__).parents[2] / "gallery" / "designs"
IMPOSSIBLE = "case-2-1t-dense-8-v100"
NAMES = tuple(sorted(p.stem for p in DESIGNS.glob("*.yaml")))


@cache
def _assessed(name: str):
    return assess(Design.read(DESIGNS / f"{name}.yaml"))


@pytest.fixture(scope="session")
def assessed():
    """assessed(name): the assessment of a gallery design."""
    return _assessed


@pytest.fixture(scope="session", params=[n for n in NAMES if n != IMPOSSIBLE])
def each(request):
    """Every possible design of the gallery in turn."""
    return _assessed(request.param)
