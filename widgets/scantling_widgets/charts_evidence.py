"""The prediction beside what was published: MFU of this design with its band, and of the runs most
like it."""

from __future__ import annotations

from .figures import figure
from .words import band, share, show

_HERE = "this design"


def _evidence_rows(given) -> dict:
    if given.get("mfu") is None:
        return {"runs": []}
    runs = given.get("nearest_runs") or []
    names = [f"{r['model']}, {r['devices']:,} × {r['accelerator']}" for r in runs]
    names = [
        f"{r['devices']:,} × {r['accelerator']}: {r['id']}" if names.count(n) > 1 else n
        for n, r in zip(names, runs)
    ]
    mfu, low, high = given["mfu"], given.get("mfu_low"), given.get("mfu_high")
    return {
        "here": [
            {
                "run": _HERE,
                "mfu": mfu,
                "low": low,
                "high": high,
                "text": show("mfu", mfu),
                "says": f"predicted {show('mfu', mfu)}, band {band('mfu', low, high)}",
            }
        ],
        "runs": [
            {
                "run": name,
                "mfu": r["mfu"],
                "text": share(r["mfu"]),
                "says": (
                    f"{r['id']}: {share(r['mfu'])}; {r['plan']}; differs in "
                    f"{r.get('differs') or 'nothing that is known'}; {r['source']}"
                ),
            }
            for name, r in zip(names, runs)
        ],
        "order": [{"run": name} for name in (_HERE, *names)],
    }


def _evidence_words(given) -> str:
    data = _evidence_rows(given)
    says = (row["says"] for row in [*data.get("here", []), *data["runs"]])
    return f"MFU of this design and of the nearest published runs. {'; '.join(says)}."


evidence = figure("evidence", _evidence_rows, _evidence_words)
