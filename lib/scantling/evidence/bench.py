"""How fast the kit answers on this machine: `python -m scantling.evidence.bench`."""

from __future__ import annotations

import resource
import time

import numpy as np

from ..advise.sweeps import heat_map
from ..advise.whole import as_dict
from ..base.records import take
from ..design.design import Design
from ..physics.gather import situation
from ..physics.memory.peak import memory
from ..physics.step import step_time
from ..plans import space as plans
from ..plans.enumerate import enumerate_plans
from ..plans.prepare import prepare
from ..plans.run import CHUNK, find
from ..plans.words import one
from ..verdict.assess import assess
from .exhaustive import exhaust

CASE = (
    "model: llama-3.1-405b\ncluster: {{accelerator: h100-sxm, devices: {devices}}}\njob: "
    "{{tokens: 15.6e12, seq_len: 8192, global_batch: 2048}}\n"
)
CALCULON = (
    "model: gpt-3-175b\ncluster: {accelerator: a100-80-sxm, devices: 1024}\njob: {seq_len: "
    "2048, global_batch: 1536}\n"
)
COUNTS = (16384, 16000, 15360, 14336, 12288, 12000, 10240, 8192, 20480, 24576)


def timed(run) -> tuple[object, float, float]:
    """(result, wall, processor time of this process) of one call. [s]"""
    wall, own = time.perf_counter(), time.process_time()
    out = run()
    return out, time.perf_counter() - wall, time.process_time() - own


def places(counts):
    """One situation for each device count, so that nothing from the one before can answer."""

    for devices in counts:
        r = prepare(Design.from_text(CASE.format(devices=devices)))
        yield devices, situation(r, r.phases[0])


def searches(space, counts=COUNTS) -> list[tuple]:
    """(devices, legal, fitting, wall, processor time) of a search at each count, after one that
    warms up."""

    out = []
    for devices, where in [*places((16128,)), *places(counts)]:
        found, wall, own = timed(lambda where=where: find(where, space))
        out.append((devices, found.legal, int(found.fits.sum()), wall, own))
    return out[1:]


def throughput(rows: int = 200_000) -> tuple[float, float]:
    """(plans/s through memory and step time in columns, plans/s of a plain loop over the same
    functions), by processor time."""

    _, where = next(places((16384,)))
    columns = enumerate_plans(where.resolved.model, where.phase, where.resolved.cluster, plans.WIDE)
    n = min(rows, columns.tp.size)

    def blocks():
        for i in range(0, n, CHUNK):
            c = where.cases(take(columns, slice(i, min(i + CHUNK, n))))
            memory(c), step_time(c)

    def loop(some=200):
        for i in np.linspace(0, n - 1, some).astype(int):
            c = where.cases(one(columns, int(i)))
            memory(c), step_time(c)
        return some

    blocks()
    own = timed(blocks)[2]
    some, _, plain = timed(loop)
    return n / own, some / plain


def main() -> None:
    """Print the figures."""

    fast, slow = throughput()
    print(
        f"memory and step time: {fast / 1e6:.2f} million plans/s of processor time in "
        f"columns, {slow:,.0f}/s one by one: {fast / slow:,.0f} times"
    )
    for name, space, aim in (("default", plans.DEFAULT, 150), ("coarse", plans.COARSE, 20)):
        rows = searches(space)
        for devices, legal, fitting, wall, own in rows:
            print(
                f"  {name} space, {devices:,} H100: {legal:,} legal, {fitting:,} fit, "
                f"{wall * 1e3:.0f} ms ({own * 1e3:.0f} ms of processor)"
            )
        print(
            f"{name} space: median {np.median([r[3] for r in rows]) * 1e3:.0f} ms wall, "
            f"{np.median([r[4] for r in rows]) * 1e3:.0f} ms of processor; aim {aim} ms"
        )
    designs = [Design.from_text(CASE.format(devices=n)) for n in COUNTS]
    as_dict(assess(designs[0]), advice=False)
    times = [timed(lambda d=d: assess(d))[1:] for d in designs[1:]]
    print(
        f"one design assessed, all plans searched: median "
        f"{np.median([t[0] for t in times]) * 1e3:.0f} ms wall, "
        f"{np.median([t[1] for t in times]) * 1e3:.0f} ms of processor"
    )
    coarse = [timed(lambda d=d: assess(d, space=plans.COARSE))[1:] for d in designs[1:]]
    print(
        f"one design assessed, coarse space: median "
        f"{np.median([t[0] for t in coarse]) * 1e3:.0f} ms wall, "
        f"{np.median([t[1] for t in coarse]) * 1e3:.0f} ms of processor"
    )

    counts, batches = [2048 * i for i in range(1, 9)], [512 * i for i in range(1, 9)]
    _, wall, own = timed(
        lambda: heat_map(designs[0], ("cluster.devices", counts), ("job.global_batch", batches))
    )
    print(
        f"heat map of 8 x 8 designs: {wall * 1e3:.0f} ms wall, {own * 1e3:.0f} ms of "
        f"processor; aim 500 ms"
    )
    ((_, where),) = places((16384,))

    wide, wall, own = timed(lambda: find(where, plans.WIDE))
    print(f"wide space: {wide.legal:,} legal plans, {wall:.2f} s wall, {own:.2f} s of processor")
    r = prepare(Design.from_text(CALCULON))
    result, wall, own = timed(lambda: exhaust(situation(r, r.phases[0])))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(
        f"exhaustive GPT-3 175B on 1,024 A100: {result.executions:,} executions in "
        f"{wall:.2f} s wall, {own:.2f} s of processor; this process never above "
        f"{peak:,.0f} MB"
    )


if __name__ == "__main__":
    main()
