"""From a published log to a corrected plan: the page gallery/learned/README.md.

    python tests/logs/learned.py        writes it again

A run of 64 devices is planned; the pilot on 16 printed a log; the plan is corrected by it, and what
the 64 printed later stands beside.
"""

from __future__ import annotations

from pathlib import Path

import scantling as sc
from jinja2 import Template
from scantling.plans.plan_names import short
from scantling_logs.learning import read_log
from scantling_logs.point import of_design
from scantling_logs.site_calibration import calibration

HERE = Path(__file__).parent
LEARNED = HERE.parents[1] / "gallery" / "learned"
PILOT, WHOLE = (LEARNED / f"qwen2.5-32b-{n}-b200.log" for n in (16, 64))


def corrected() -> dict:
    """Everything that the page says, as numbers."""
    design = sc.Design.read(LEARNED / "qwen2.5-32b-64-b200.yaml")
    pilot, whole = map(read_log, (PILOT, WHOLE))
    point = of_design(pilot, design)
    site = calibration([point], [pilot])
    after = design.change({"calibration": site})
    freed = {n: v.change(design.freed) for n, v in (("before", design), ("after", after))}
    return {
        "pilot": pilot,
        "whole": whole,
        "point": point,
        "site": site,
        "before": sc.assess(design).as_dict(),
        "after": sc.assess(after).as_dict(),
        "open": {n: sc.assess(d).as_dict() for n, d in freed.items()},
        "short": short,
    }


def page() -> str:
    """The page in Markdown."""
    text = (HERE / "learned.md.j2").read_text(encoding="utf-8")
    template = Template(text, trim_blocks=True, keep_trailing_newline=True)
    return template.render(**corrected())


if __name__ == "__main__":
    (LEARNED / "README.md").write_text(page(), encoding="utf-8")
