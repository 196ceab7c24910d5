"""How the run lives on, here and on more devices: the ladder of measures, a start part by part,
running on with fewer replicas."""

from scantling.advise.recovery import STARTS, fewer, ladder
from scantling.base.records import Lines, Record, Rows, record
from scantling.endure.first_step import first_step

from .site import Site
from .texts import fill, texts

# the job as it is, and the sizes beyond it that its ladder is shown at
SIZES = {"own": None, "at_100k": 100_000, "at_300k": 300_000, "at_1m": 1_000_000}
HALF = 0.5


@record
class Endured(Record):
    """Goodput that each rung of the ladder leaves, the parts of a first start by devices, and what
    is best where nodes are lost."""

    devices: int
    ladder: Rows  # {measure, why, own, at_100k, at_300k, at_1m}
    starts: Rows  # {devices, a part each [s], total_s}
    elastic: Rows  # `advise.recovery.fewer`
    lines: Lines


def endured(s: Site) -> Endured:
    """The ladder on this design's own saves, times and failures a device at its size and at SIZES
    (`endure.scale.measures`), what keeps goodput above one half there, the time to the first step
    (`endure.first_step`), and swap, shrink or wait."""
    e = s.a.endurance
    sizes = {key: n or s.used for key, n in SIZES.items()}
    rungs = {key: ladder(e, s.plan, n) for key, n in sizes.items()}
    return Endured(
        devices=s.used,
        ladder=tuple(
            {"measure": row[0].measure, "why": row[0].why}
            | {key: r.goodput for key, r in zip(SIZES, row)}
            for row in zip(*rungs.values())
        ),
        starts=tuple(
            {"devices": n, **{f"{part}_s": x for part, x in begun.items()}}
            | {"total_s": sum(begun.values())}
            for n in sorted({*STARTS, s.used})
            for begun in [first_step(n, e.first_step_s["load"])]
        ),
        elastic=tuple(fewer(e)),
        lines=tuple(_said(s, n, rungs[key]) for key, n in sizes.items()),
    )


def _said(s: Site, n: int, rungs) -> str:
    """What keeps goodput above one half on n devices; where no rung in step does, how seldom
    failures would have to be for it, or by how much less each would have to hold all of them up
    (lost over the time between failures, as `elastic.ft_hsdp` counts)."""
    enough = next((r.measure for r in rungs if r.goodput > HALF), "")
    first, *_, step, last = rungs
    case = "below" if not enough else "apart" if enough == last.measure else "above"
    lost = (1 - step.goodput) * step.mtbf_s
    return fill(
        texts("advice", "recovery", case),
        s,
        n=n,
        enough=enough,
        first=first,
        step=step,
        last=last,
        seldom=lost / HALF,
        less=lost - HALF * step.mtbf_s,
    )
