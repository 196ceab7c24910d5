"""The prediction beside what was published: MFU of this design with its band, and of the runs most
like it."""

from __future__ import annotations

from .assessment_charts import figure, text, worded
from .words import band

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
        {
            **run,
            "name": name,
            "differs": run.get("differs") or "nothing that is known",
        }
        for name, run in zip(twice, runs)
    ]
    here = {key: given.get(key) for key in ("mfu", "mfu_low", "mfu_high")}
    return {
        "here": worded(
            "evidence",
            "here",
            [here],
            name=_HERE,
            band=band("mfu", here["mfu_low"], here["mfu_high"]),
        ),
        "runs": worded("evidence", "runs", named),
        "order": [{"run": name} for name in (_HERE, *twice)],
    }


def _evidence_words(given) -> str:
    data = _evidence_rows(given)
    says = (row["says"] for row in [*data.get("here", []), *data["runs"]])
    return f"MFU of this design and of the nearest published runs. {'; '.join(says)}."


evidence = figure("evidence", _evidence_rows, _evidence_words)
