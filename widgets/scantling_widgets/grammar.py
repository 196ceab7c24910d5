"""Altair, imported when a chart is first drawn: it takes longer to import than the desk needs to
open."""

from __future__ import annotations

from importlib import import_module


class _Later:
    def __getattr__(self, name):
        return getattr(import_module("altair"), name)


alt = _Later()
