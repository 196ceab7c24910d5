"""Many assessments of changed copies of one design. Each figure is the library's; nothing is worked out here."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scantling.errors import DesignError

from . import choices


@dataclass(frozen=True)
class Variation:
    """One input, one step down and one step up: fields of the design to set, and how to say it."""

    what: str
    low: tuple[Mapping[str, Any], str] | None
    high: tuple[Mapping[str, Any], str] | None


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


def variations(session) -> list[Variation]:
    """What a reviewer asks about: the machine a step smaller or larger, the network, batch, context, and the plan's pins let go."""
    resolved = session.now.resolved
    cluster = resolved.cluster
    from .inputs import job_path, main_phase

    job, phase = job_path(session), resolved.phases[main_phase(resolved)]
    out = [_scaled("Devices", "cluster.devices", cluster.devices, " devices", cluster.devices_per_node), _fabric(cluster),
           _scaled("Global batch", f"{job}.global_batch", phase.global_batch, " sequences"), _scaled("Sequence length", f"{job}.seq_len", phase.seq_len, " tokens")]
    for name, label, rate in (("hbm_gbytes_per_s", "HBM bandwidth", cluster.accelerator.hbm_bytes_per_s), ("link_gbytes_per_s", "Scale-up bandwidth", cluster.scale_up_bytes_per_s)):
        giga = rate / 1e9
        out.append(Variation(label, ({f"cluster.accelerator.{name}": giga * 0.8}, "a fifth less"), ({f"cluster.accelerator.{name}": giga * 1.2}, "a fifth more")))
    out.append(Variation("Oversubscription", None, ({"cluster.oversubscription": max(2.0, 2 * cluster.oversubscription)}, "twice")))
    for recompute in ("none", "selective", "full"):
        if (session.now.given.get("plan") or {}).get("recompute") != recompute:
            out.append(Variation(f"Recompute {recompute}", None, ({"plan.recompute": recompute}, "pinned")))
    return out


def _scaled(what, field, value, unit, whole=1) -> Variation:
    half, double = value // 2, value * 2
    low = ({field: half}, f"{half:,}{unit}") if half >= whole and half % whole == 0 else None
    return Variation(what, low, ({field: double}, f"{double:,}{unit}"))


def _fabric(cluster) -> Variation:
    known = [f["value"] for f in choices.fabrics()]
    at = known.index(cluster.scale_out) if cluster.scale_out in known else None
    slower = choices.fabrics()[at - 1] if at else None
    faster = choices.fabrics()[at + 1] if at is not None and at + 1 < len(known) else None
    side = lambda f: ({"cluster.scale_out": f["value"]}, f["text"]) if f else None
    return Variation("Interconnect", side(slower), side(faster))


def vary(judge: Callable, session, key: str) -> tuple[int, Iterator[dict]]:
    """For each variation the quantity on both sides; a row per variation that the design allows."""
    design = session.now.design
    todo = variations(session)

    def run():
        for variation in todo:
            row = {"what": variation.what}
            for side in ("low", "high"):
                change = getattr(variation, side)
                given = assessed(judge, design, change[0]) if change else None
                row[side] = given.get(key) if given else None
                row[side + "_says"] = change[1] if change else ""
            yield row
    return len(todo), run()
