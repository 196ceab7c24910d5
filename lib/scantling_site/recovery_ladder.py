"""How the run lives on, here and on more devices: the ladder of measures, a start part by part,
running on with fewer replicas."""

from collections.abc import Sequence
from typing import TypedDict

from scantling.advise.recovery import STARTS, fewer, ladder
from scantling.base.records import Lines, Record, Rows, record
from scantling.base.show import share
from scantling.endure.first_step import first_step
from scantling.endure.scale import Rung

from .job_site import Site

HALF = 0.5


class LadderRow(TypedDict):
    """A measure, and the goodput with it and all before it on the job's own devices and on more."""

    measure: str
    why: str
    own: float
    at_100k: float
    at_300k: float
    at_1m: float


@record
class Recovery(Record):
    """Goodput that each rung of the ladder leaves, the parts of a first start by devices, and what
    is best where nodes are lost."""

    devices: int
    ladder: tuple[LadderRow, ...]
    starts: tuple[dict[str, float], ...]  # {devices, a part each [s], total_s}
    elastic: Rows  # `advise.recovery.fewer`
    lines: Lines


def recovery(s: Site) -> Recovery:
    """The ladder on this design's own saves, times and failures a device at its size and at 100,000
    devices and more (`endure.scale.measures`), what keeps goodput above one half there, the time to
    the first step (`endure.first_step`), and swap, shrink or wait."""
    e = s.a.endurance
    at_own, at_100k, at_300k, at_1m = rungs = [
        ladder(e, s.plan, n) for n in (s.used, 100_000, 300_000, 1_000_000)
    ]
    return Recovery(
        devices=s.used,
        ladder=tuple(
            LadderRow(
                measure=of_own.measure,
                why=of_own.why,
                own=float(of_own.goodput),
                at_100k=float(of_100k.goodput),
                at_300k=float(of_300k.goodput),
                at_1m=float(of_1m.goodput),
            )
            for of_own, of_100k, of_300k, of_1m in zip(at_own, at_100k, at_300k, at_1m)
        ),
        starts=tuple(_start(n, s.e.first_step_s["load"]) for n in sorted({*STARTS, s.used})),
        elastic=tuple(fewer(e)),
        lines=tuple(
            _half(n, steps) for n, steps in zip((s.used, 100_000, 300_000, 1_000_000), rungs)
        ),
    )


def _start(devices: int, load_s: float) -> dict[str, float]:
    """The parts of a first start on so many devices."""
    parts = {part: float(x) for part, x in first_step(devices, load_s).items()}
    return {
        "devices": devices,
        **{f"{part}_s": x for part, x in parts.items()},
        "total_s": sum(parts.values()),
    }


def _half(n: int, rungs: Sequence[Rung]) -> str:
    """What keeps goodput above one half on n devices; where no rung in step does, how seldom
    failures would have to be for it, or by how much less each would have to hold all of them up
    (lost over the time between failures, as `elastic.ft_hsdp` counts)."""
    enough = next((rung.measure for rung in rungs if rung.goodput > HALF), "")
    first = rungs[0]
    step, last = rungs[-2:]  # all devices in step; parts that stop alone
    mtbf_s = float(step.mtbf_s)
    lost = (1 - float(step.goodput)) * mtbf_s
    seldom = lost / HALF
    if not enough:
        return (
            f"{n:,} devices: {share(last.goodput)} with the whole ladder; in step one half needs a "
            f"failure every {seldom:.0f} s at most, not every {mtbf_s:.0f} s"
        )
    if enough == last.measure:
        return (
            f"{n:,} devices: above one half with “{enough}” alone ({share(last.goodput)}); all in "
            f"step {share(step.goodput)} at a failure every {mtbf_s:.0f} s: one half needs one "
            f"every {seldom:.0f} s, or each to hold all devices up {lost - HALF * mtbf_s:.0f} s "
            "less"
        )
    return (
        f"{n:,} devices: above one half from “{enough}” on; {share(first.goodput)} with "
        f"{first.measure}, {share(last.goodput)} with the whole ladder"
    )
