"""The kit of a published plan, or why there is none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from scantling import Design
from scantling.base.errors import DesignError
from scantling.verdict.assess import assess
from scantling_kits import Inexpressible, framework, kits
from scantling_kits.expressible import express
from scantling_kits.pages import kit

MISFIT = "does not fit by this model"


def kit_of(data: Mapping[str, Any], to: str, version: str = "") -> Mapping[str, str] | str:
    """The files of the kit of a pinned design, for a release of the framework other than the
    judged one where it is named."""
    try:
        assessment = assess(Design.from_data(dict(data)))
        if not assessment.fits:
            return MISFIT
        if not version:
            return kits(assessment, to, "slurm")
        launch = express(assessment, 0, framework(to), "slurm")
        return kit(replace(launch, framework=replace(launch.framework, version=version)))
    except (DesignError, Inexpressible) as error:
        return re.sub(r"[\d,.]+", "N", str(error))[:160]
