"""How fast the kit answers on this machine: `make bench`."""

from __future__ import annotations

import resource
import time

import numpy as np
from exhaustive import exhaust
from scantling.advise.design_json import as_dict
from scantling.advise.sweeps import sweep
from scantling.base.records import take
from scantling.design.design import Design
from scantling.endure.simulate import of_life, simulate
from scantling.physics.gather import situation
from scantling.physics.memory.peak import memory
from scantling.physics.step import step_time
from scantling.plans import space as plans
from scantling.plans.enumerate import enumerate_plans
from scantling.plans.evaluate import CHUNK, find
from scantling.plans.plan_names import plan_at
from scantling.plans.prepare import prepare
from scantling.plans.stream import search_space
from scantling.verdict.assess import assess

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
        r = prepare(Design.from_yaml(CASE.format(devices=devices)))
        yield devices, situation(r, r.phases[0])


def searches(space, counts=COUNTS) -> list[tuple]:
    """(devices, legal, fitting, wall, processor time) of a search at each count, after one that
    warms up."""

    out = []
    for devices, where in places((16128, *counts)):
        found, *took = timed(lambda where=where: find(where, space))
        out.append((devices, found.legal, int(found.fits.sum()), *took))
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
            c = where.cases(plan_at(columns, int(i)))
            memory(c), step_time(c)
        return some

    blocks()
    own = timed(blocks)[2]
    some, _, plain = timed(loop)
    return n / own, some / plain


def failures_per_s() -> float:
    """Failures a second of processor time of the Monte-Carlo, 405B on 16,384 devices for ninety
    days in as many copies as is usual."""
    life = assess(Design.from_yaml(CASE.format(devices=16384))).endurance.life
    runs, _, own = timed(lambda: simulate(of_life(life, 90 * 86400.0)))
    return runs.failures.sum() / own


def print_times(name: str, times, aim: str = "") -> None:
    """Print the median of (wall, processor time). [s]"""
    wall, own = np.median(times, axis=0) * 1e3
    print(f"{name}: median {wall:.0f} ms wall, {own:.0f} ms of processor{aim}")


def main() -> None:
    """Print the figures."""
    fast, slow = throughput()
    print(
        f"memory and step time: {fast / 1e6:.2f} million plans/s of processor time in "
        f"columns, {slow:,.0f}/s one by one: {fast / slow:,.0f} times"
    )
    print(f"Monte-Carlo: {failures_per_s() / 1e6:.2f} million failures/s of processor time")
    for name, space, aim in (("default", plans.DEFAULT, 150), ("coarse", plans.COARSE, 20)):
        rows = searches(space)
        for devices, legal, fitting, *took in rows:
            print_times(
                f"  {name} space, {devices:,} H100: {legal:,} legal, {fitting:,} fit", [took]
            )
        print_times(f"{name} space", [row[3:] for row in rows], f"; aim {aim} ms")
    first, *others = [Design.from_yaml(CASE.format(devices=n)) for n in COUNTS]
    as_dict(assess(first), advice=False)
    for name, space in (("all plans searched", {}), ("coarse space", {"space": plans.COARSE})):
        times = [timed(lambda d=d, space=space: assess(d, **space))[1:] for d in others]
        print_times(f"one design assessed, {name}", times)
    steps = np.arange(1, 9)
    axes = dict(
        (path, (each * steps).tolist())
        for path, each in (("cluster.devices", 2048), ("job.global_batch", 512))
    )
    print_times(
        "heat map of 8 x 8 designs",
        [timed(lambda: sweep(first, axes, space=plans.COARSE))[1:]],
        "; aim 500 ms",
    )
    ((_, where),) = places((16384,))
    pace = {}
    for name, space in (("default", plans.DEFAULT), ("wide", plans.WIDE)):
        found, *took = timed(lambda space=space: search_space(where, space))
        print_times(f"{name} space as search streams it, {found.legal:,} legal plans", [took])
        pace[name] = found.legal / took[1]
    print(
        f"  {pace['wide']:,.0f} plans/s of processor time, {pace['wide'] / pace['default']:.2f} "
        "of the default's; aim 0.8"
    )
    r = prepare(Design.from_yaml(CALCULON))
    result, *took = timed(lambda: exhaust(situation(r, r.phases[0])))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    name = f"exhaustive GPT-3 175B on 1,024 A100, {result.executions:,} executions"
    print_times(name, [took], f"; this process never above {peak:,.0f} MB")


if __name__ == "__main__":
    main()
