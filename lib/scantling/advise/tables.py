"""The tables of this folder: texts and rows in YAML, each beside the module that reads it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml


@cache
def table(name: str) -> dict:
    """What NAME.yaml of this folder holds; not to be changed in place."""
    return yaml.safe_load(Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8"))
