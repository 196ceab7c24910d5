"""Pictures that only the report has: goodput over the checkpoint interval, communication hidden and
exposed, share of wall time lost."""

from ..charts.chart import Figure, figure, laid, shown_on, table, text, worded
from ..charts.endurance import ladder
from ..charts.memory_step import memory, step
from ..charts.palette import MEMORY, STEP
from ..charts.plans import tornado_of
from ..charts.schedule import laid as layers
from ..words import at, label, show

AXES = ("tp", "cp", "ep", "dp", "pp")
_KINDS = {"exposed_s": ("exposed", ""), "hidden_s": ("hidden", "")}


# ---------------------------------------------------------------- goodput
def _goodput_rows(given) -> dict:
    curve = (given.get("endurance") or {}).get("curve")
    if not curve or not len(curve["goodput"]):
        return {"curve": []}
    intervals, goodputs = (list(curve[key]) for key in ("interval_s", "goodput"))
    most, best = max(zip(goodputs, intervals))
    # where they all but coincide, one mark says both
    apart = most - given["goodput"] > 5e-4
    chosen = {
        "interval_s": given["checkpoint_interval_s"],
        "goodput": given["goodput"],
        "also": "" if apart else ", the optimum",
    }
    optimum = {"interval_s": best, "goodput": most}
    return {
        "curve": {"interval_s": intervals, "goodput": goodputs},
        "chosen": worded("goodput", "chosen", [chosen]),
        "optimum": worded("goodput", "optimum", [optimum] if apart else []),
    }


def _goodput_words(given) -> str:
    curve = table(_goodput_rows(given)["curve"])
    if not curve:
        return "No goodput curve."
    first, last = (
        text("goodput", "place", **{key: values[i] for key, values in curve.items()})
        for i in (0, -1)
    )
    return text("goodput", "words", first=first, last=last, **given)


goodput = figure("goodput", _goodput_rows, _goodput_words)


# ---------------------------------------------------------------- communication
def by_axis(given) -> list[dict]:
    """Exposed and hidden seconds of each axis that communicates."""
    shown, hidden = given["step_breakdown_s"], given.get("hidden_s") or {}
    rows = (
        {"axis": axis, "exposed_s": shown.get(axis) or 0, "hidden_s": hidden.get(axis) or 0}
        for axis in AXES
    )
    return [row for row in rows if row["exposed_s"] or row["hidden_s"]]


def _traffic_rows(given) -> dict:
    parts = [
        part | {"axis": row["axis"].upper()}
        for row in by_axis(given)
        for part in laid(_KINDS, row)
        if part["size"] > 0
    ]
    return {"traffic": worded("traffic", "traffic", parts)}


traffic = figure("traffic", _traffic_rows)


# ---------------------------------------------------------------- what moves the result
def tornado(key: str) -> Figure:
    """What moves one headline figure."""
    return tornado_of(
        key,
        "report_tornado",
        name="sensitivity",
        title=f"{label(key)} with one input changed at a time, the plan searched again where it is "
        "open",
    )


# ---------------------------------------------------------------- designs side by side
def _side_by_side(
    name: str, title: str, what: str, parts: dict, mapping: str, headline: str, given: dict
) -> Figure:
    """Stacked parts of one figure, a bar a design."""

    def rows(given, results=()):
        return {
            "parts": [
                part | {"design": f"{i}  {of['name'][:44]}"}
                for i, of in enumerate(results, 1)
                for part in laid(parts, of[mapping])
            ]
        }

    def words(given, results=()):
        said = "; ".join(f"{of['name']} {show(headline, at(of, headline))}" for of in results)
        return f"{what}: {said}."

    names, hues = zip(*parts.values())
    given = given | {"names": [*names], "hues": [*hues]}
    return figure("parts", rows, words, name=name, title=title, given=given)


memories = _side_by_side(
    "memories",
    "Memory of the fullest device",
    "Memory of the fullest device",
    MEMORY,
    "memory_bytes",
    "memory_bytes.total",
    shown_on("memory_bytes.total", "{} per device"),
)
steps = _side_by_side(
    "steps",
    "One training step",
    "Time of one step",
    STEP,
    "step_breakdown_s",
    "step_s",
    shown_on("step_s", "seconds of one step"),
)

SIDE_BY_SIDE = (memories, steps)
FIGURES = {
    "memory": memory,
    "step": step,
    "layers": layers,
    "goodput": goodput,
    "ladder": ladder,
    "communication": traffic,
    "sensitivity": tornado("days"),
}
# sections of the report, and the pictures that follow them; the first page ends before the plan
ORDER = (
    "verdict",
    "sensitivity-picture",
    "brief",
    "signing",
    "plan",
    "layers",
    "layers-picture",
    "cost",
    "specialist",
    "memory",
    "memory-picture",
    "step",
    "step-picture",
    "communication",
    "communication-picture",
    "recovery",
    "goodput-picture",
    "ladder",
    "ladder-picture",
    "domains",
    "site",
    "sensitivity",
    "risks",
    "avoid",
    "measured",
    "evidence",
    "candidates",
    "assumptions",
    "quantities",
    "planes",
    "fabrics",
    "stores",
    "rollout",
    "evolution",
)
