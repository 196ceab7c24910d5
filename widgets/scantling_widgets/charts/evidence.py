"""The prediction beside what was measured here and what was published: MFU of this design with its
band, of the steps of its calibration, and of the runs most like it."""

from scantling.base.quantities.table import band_in

from ..words import at
from .chart import figure, text, worded

_HERE = "this design"


def _evidence_rows(given) -> dict:
    if given.get("mfu") is None:
        return {"runs": []}
    runs = given.get("nearest_runs") or []
    names = [text("evidence", "run", **run) for run in runs]
    twice = [
        text("evidence", "known", **r) if names.count(n) > 1 else n for n, r in zip(names, runs)
    ]
    named = [
        run | {"name": name, "differs": run.get("differs") or "nothing that is known"}
        for name, run in zip(twice, runs)
    ]
    seen = worded("evidence", "seen", at(given, "measured_here.steps.points") or ())
    return {
        "seen": seen,
        "here": worded(
            "evidence", "here", [given | {"name": _HERE, "band": band_in(given, "mfu") or "none"}]
        ),
        "runs": worded("evidence", "runs", named),
        "order": [
            {"run": name} for name in (_HERE, *dict.fromkeys(r["run"] for r in seen), *twice)
        ],
    }


evidence = figure("evidence", _evidence_rows)
