"""Many assessments of changed copies of one design. Each figure is the library's; nothing is worked out here."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from scantling import sensitivity
from scantling.errors import DesignError

from . import choices


def assessed(judge: Callable, design, fields: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The assessment of a changed copy as plain data; None where the design does not allow the change."""
    try:
        return judge(design.change(fields), False).as_dict(advice=False)
    except DesignError:
        return None


def device_counts(judge: Callable, design, cluster) -> tuple[int, Iterator[dict]]:
    """The design on other numbers of devices, whole nodes, from an eighth to eight times as many."""
    counts = [n for n in choices.octaves(cluster.devices_per_node, 2**18, cluster.devices_per_node, steps=(1.0, 1.5)) if cluster.devices / 8 <= n <= cluster.devices * 8]
    counts = choices.with_value(counts, cluster.devices)

    def run():
        for n in counts:
            given = assessed(judge, design, {"cluster.devices": n})
            yield {"devices": n, "given": given} if given is not None else None
    return len(counts), run()


def vary(assessment, key: str) -> tuple[int, Iterator[list[dict]]]:
    """The inputs of a design one after the other, each a step down and up: for each, its rows of the library's tornado of one quantity."""
    todo = sensitivity.inputs(assessment)
    return len(todo), (sensitivity.tornado(assessment, key, over=[one]) for one in todo)
