"""A pipeline schedule laid out in time, and the micro-batches that each stage holds."""

import numpy as np

from ..words import share
from .chart import Figure, figure

_KINDS = {"F": "forward", "B": "backward", "W": "weight gradients"}
_HUES = ("#0072b2", "#e69f00", "#cc79a7")
_NUMBERED = 70  # passes side by side up to which each has room for its number
_EDGED = 1200  # passes in all up to which each has an edge


def _gantt_rows(given, layout=None, window=(0.0, 1.0)) -> dict:
    """`layout`: a `scantling.physics.schedule.Layout`; the picture holds its passes as they are.
    `window`: (first, last) share of the time that is drawn."""
    if layout is None:
        return {"passes": {}}
    first, last = (layout.makespan_s * w for w in window)
    seen = np.flatnonzero((layout.end_s > first) & (layout.start_s < last))
    start, end = (np.asarray(getattr(layout, name))[seen] for name in ("start_s", "end_s"))
    numbered = (last - first) / max(float(np.min(end - start, initial=1.0)), 1e-9) <= _NUMBERED
    batch = layout.micro_batch[seen].tolist()
    columns = {
        "stage": layout.device[seen],
        "start": np.maximum(start, first),
        "end": np.minimum(end, last),
        "mid": (start + end) / 2,
        "kind": [_KINDS[k] for k in np.asarray(layout.kind)[seen].tolist()],
        "batch": batch,
        "label": [str(number) * numbered for number in batch],
        "edge": [0.4 if len(seen) < _EDGED else 0.0] * len(batch),
    }
    return {"passes": columns | ({"chunk": layout.chunk[seen]} if layout.vpp > 1 else {})}


def words_of(layout) -> str:
    """Idle share and what is held, as one line."""
    idle = float(np.mean(layout.idle_s) / layout.makespan_s)
    held = layout.peak_in_flight
    return (
        f"{layout.schedule}: {layout.pp} stages × {layout.m} micro-batches, idle {share(idle)}, "
        f"at most {held.max():.3g} micro-batches held (stage {int(held.argmax())})"
    )


def _gantt_words(given, layout=None, window=(0.0, 1.0)) -> str:
    return f"Pipeline schedule in time. {words_of(layout)}" if layout else "No schedule."


def _gantt(name: str, kinds: int) -> Figure:
    return figure(
        "gantt",
        _gantt_rows,
        _gantt_words,
        name=name,
        given={"kinds": [*_KINDS.values()][:kinds], "hues": list(_HUES[:kinds])},
    )


gantt, split = _gantt("pipeline-schedule", 2), _gantt("pipeline-schedule-split", 3)


def gantt_of(layout) -> Figure:
    """The figure for a layout: with weight gradients named where the schedule has passes of their
    own for them."""
    return split if layout is not None and "W" in layout.kind else gantt


def _held_rows(given, layouts=()) -> dict:
    return {
        "held": [
            {"stage": stage, "held": held, "schedule": layout.schedule}
            for layout in layouts
            for stage, held in enumerate(layout.peak_in_flight.tolist())
        ]
    }


def _held_words(given, layouts=()) -> str:
    return f"Micro-batches held at the peak, by stage. {'; '.join(map(words_of, layouts))}"


held = figure("held", _held_rows, _held_words)


def _laid_rows(given) -> dict:
    return {
        "layers": [
            {
                "stage": run["stage"],
                "layer": run["first"] + i,
                "end": run["first"] + i + 1,
                "blocks": blocks,
            }
            for run in given["stages"]
            for i, blocks in enumerate(run["layers"])
        ]
    }


def _laid_words(given) -> str:
    said = (
        f"stage {run['stage']}: {', '.join(f'{n} {kind}' for kind, n in run['blocks'].items())}"
        for run in given["stages"]
    )
    return f"Blocks of each run, in the order in which a token meets them. {'; '.join(said)}"


laid = figure("stages", _laid_rows, _laid_words)
