"""Designs drawn at random and what must hold for each of them: `python
tests/bench/random_designs.py 10000` looks at that many, with progress.

A design is its number: number n is the same design on every machine, so that one that breaks a
property can be looked at alone (`python tests/bench/random_designs.py --only 1234`).
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import traceback
from collections import Counter
from dataclasses import replace

import numpy as np
from scantling import Design, DesignError, assess, catalogue, fixes
from scantling.advise.frontier import plan_front
from scantling.base.records import take
from scantling.catalogue.models import entries as model_rows
from scantling.catalogue.words import SHARDINGS
from scantling.physics.gather import situation
from scantling.physics.memory.peak import memory
from scantling.physics.step import step_time
from scantling.plans import space as plans
from scantling.plans.enumerate import enumerate_plans
from scantling.plans.evaluate import find, unpinned
from scantling.plans.fit import host_bytes, why_not
from scantling.verdict.limits import limits
from scantling.verdict.verdicts import VERDICTS

FIXES_EVERY, MORE_EVERY = 100, 20  # the dear properties are looked at in one design of so many
MAY_FALL = ("avoid", "why", "convention", "assumed")
WIDE_SAMPLE = 400


def log_uniform(rng, low, high) -> int:
    return int(round(math.exp(rng.uniform(math.log(low), math.log(high)))))


def drawn(number: int) -> dict:
    """Design file number `number`: models from the catalogue, by size and by shape; any chip; any
    count of devices; pins, constraints and prices now and then."""
    rng = np.random.default_rng(number)
    one = lambda values: values[int(rng.integers(len(values)))]  # noqa: E731
    some = lambda share: rng.random() < share  # noqa: E731
    chip = one([id for id, c in catalogue.accelerators().items() if not c.unpublished])
    row = catalogue.accelerator(chip)
    kind = rng.random()
    if kind < 0.6:
        model = one(list(model_rows.models()))
    elif kind < 0.8:
        model = (
            {"size": float(f"{10 ** rng.uniform(8.5, 12.7):.3g}")}
            | ({"moe": True} if some(0.4) else {})
            | ({"layers": int(rng.integers(1, 160))} if some(0.3) else {})
        )
    else:
        heads, width = one([7, 8, 12, 16, 25, 40, 64, 96, 128]), one([64, 80, 96, 128])
        model = dict(
            layers=int(rng.integers(1, 130)),
            hidden=heads * width,
            heads=heads,
            kv_heads=one([d for d in range(1, heads + 1) if heads % d == 0]),
            vocab=int(rng.integers(1000, 260000)),
            ffn_hidden=int(rng.integers(1, 9)) * 512,
            mlp=one(["gelu", "swiglu", "squared-relu"]),
        )
        if some(0.4):
            model |= dict(
                experts=one([8, 16, 60, 64, 160, 256, 384]),
                top_k=one([1, 2, 4, 8]),
                expert_ffn_hidden=one([512, 768, 1408, 2048, 8192]),
            )
    seq = one([1, 128, 512, 1000, 2048, 4096, 4096, 8192, 8192, 32768, 131072, 1048576])
    cluster = dict(
        accelerator=chip,
        devices=log_uniform(rng, 1, 130_000) if some(0.5) else 8 * log_uniform(rng, 1, 16_000),
    )
    cluster |= {"oversubscription": one([1.5, 2, 7])} if some(0.15) else {}
    cluster |= {"devices_per_node": one([1, 4, 8, 16])} if some(0.1) else {}
    cluster |= {"host_memory_gb": one([0, 64, 512, 4096])} if some(0.2) else {}
    cluster |= (
        {"scale_out_gbytes_per_s_per_device": one([1.25, 3.1, 12.5, 50, 100])} if some(0.2) else {}
    )
    cluster |= {"sites": 2} if some(0.05) else {}
    job = (
        dict(seq_len=seq)
        | ({"tokens": float(f"{10 ** rng.uniform(9, 13.5):.3g}")} if some(0.8) else {})
        | ({"global_batch": log_uniform(rng, 1, 8192)} if some(0.7) else {})
    )
    if "global_batch" in job:  # sites share it evenly
        job["global_batch"] += job["global_batch"] % cluster.get("sites", 1)
    precisions = [
        p for p in ("bf16", "fp16", "fp8", "fp8-block", "mxfp8", "nvfp4", "fp32") if has(row, p)
    ]
    job |= {"precision": one(precisions)} if some(0.5) else {}
    job |= (
        {"optimizer": one(["adamw", "adamw-bf16", "adamw-8bit", "adafactor", "muon", "sgd"])}
        if some(0.3)
        else {}
    )
    data = dict(scantling=1, model=model, cluster=cluster, job=job)
    wants = {}
    if some(0.4):
        wants["deadline_days"] = float(f"{10 ** rng.uniform(-1, 3.5):.3g}")
    if some(0.2):
        wants["budget_usd"] = float(f"{10 ** rng.uniform(3, 9):.3g}")
    if some(0.2):
        wants["min_mfu"] = round(float(rng.uniform(0.05, 0.7)), 2)
    if some(0.1):
        wants |= one(
            [
                {"max_checkpoint_overhead": 0.02},
                {"min_goodput": 0.9},
                {"max_lost_work_s": 600.0},
                {"max_recovery_s": 300.0},
                {"max_checkpoint_stall_s": 1.0},
                {"survive": "rack"},
                {"max_power_mw": 5.0},
            ]
        )
    pins = {}
    for field, values, share in (
        ("tp", [1, 2, 4, 8, 3], 0.12),
        ("pp", [1, 2, 4, 8, 5], 0.1),
        ("cp", [1, 2, 4], 0.05),
        ("micro_batch", [1, 2, 3, 4], 0.08),
        ("sharding", list(SHARDINGS), 0.1),
        ("recompute", ["none", "selective", "full"], 0.08),
        ("schedule", ["1f1b", "interleaved", "zb-1p", "dualpipe"], 0.05),
        ("offload", ["optimizer"], 0.03),
        ("grad_accum", [1, 4, 16], 0.04),
        ("ep", [1, 2, 8], 0.04),
    ):
        if some(share):
            pins[field] = one(values)
    data |= {"constraints": wants} if wants else {}
    data |= {"plan": pins} if pins else {}
    data |= (
        {"stack": one(["megatron-core", "torchtitan", "deepspeed", "maxtext", "pytorch-fsdp"])}
        if some(0.15)
        else {}
    )
    data |= (
        {
            "reliability": one(
                [
                    {"preset": "llama3"},
                    {"failures_per_1000_node_days": 50.0},
                    {"failures_per_1000_node_days": 0.0},
                ]
            )
        }
        if some(0.2)
        else {}
    )
    data |= {"prices": {"usd_per_device_hour": 2.0}} if some(0.2) else {}
    return data


def has(row, precision) -> bool:
    try:
        return row.peak_flops(precision) > 0
    except DesignError:
        return False


def numbers(value, path=""):
    """(path, number) of every float inside plain data."""
    if isinstance(value, dict):
        for k, v in value.items():
            yield from numbers(v, f"{path}.{k}")
    elif isinstance(value, (list, tuple)):
        for i, v in enumerate(value):
            yield from numbers(v, f"{path}[{i}]")
    elif isinstance(value, (float, np.floating)):
        yield path, float(value)


def looked_at(number: int, dear: bool | None = None) -> str:
    """The outcome of one design: a verdict, or "refused" where a rule names a field. Raises
    AssertionError, with the property, where one does not hold.

    dear : also the properties that need more assessments; None: in one design of so many.
    """
    data = drawn(number)
    try:
        design = Design.from_data(data)
        a = assess(design)
    except DesignError as error:
        assert error.field and "\n" not in str(error) and len(str(error)) < 600, f"refusal {error}"
        return "refused"
    assert a.verdict in VERDICTS, a.verdict
    result = a.as_dict(advice=False)
    for path, x in numbers(result):
        assert math.isfinite(x), f"{path} is {x}"
        assert x >= 0 or path.split(".")[1].split("[")[0] in MAY_FALL, f"{path} is {x}"
    for assumed in result.get("assumed", ()):  # a switch says in its own words what -1 means
        if isinstance(assumed["value"], (float, np.floating)) and assumed["value"] < 0:
            assert f"{assumed['value']:g}: " in assumed["why"], f"{assumed}"
    if a.verdict == "impossible":
        refused(a)
    else:
        answered(a, result)
    if dear or (dear is None and number % MORE_EVERY == 0):
        more_never_hurts(a)
    if not a.met and (dear or (dear is None and number % FIXES_EVERY == 0)):
        fixes_hold(a)
    return a.verdict


def refused(a):
    """Impossible is said by argument; the widest space agrees."""
    assert len(limits(a)) >= 3 and a.error
    fits = []
    for phase in a.resolved.phases:
        where = unpinned(situation(a.resolved, phase))
        fits.append(find(where, plans.LAST_RESORT).best() is not None)
        every = enumerate_plans(
            where.resolved.model, where.phase, where.resolved.cluster, plans.WIDE, {}
        )
        rows = np.linspace(0, every.tp.size - 1, min(WIDE_SAMPLE, every.tp.size)).astype(int)
        if not fits[-1]:
            assert np.all(
                why_not(memory(where.cases(take(every, rows))), host_bytes(where.resolved.cluster))
                >= 0
            ), "a wide plan fits an impossible design"
    assert not all(fits), "impossible, and the last resort fits"


def answered(a, d):
    assert d["legal"] == d["evaluated"] + sum(d["rejected"].values()), (
        "rejected reasons do not sum to the total"
    )
    assert math.isclose(sum(d["step_breakdown_s"].values()), d["step_s"], rel_tol=1e-6), (
        "parts of the step"
    )
    assert math.isclose(
        sum(
            d["memory_bytes"][k]
            for k in ("weights", "gradients", "optimizer", "activations", "other")
        ),
        d["memory_bytes"]["total"],
        rel_tol=1e-9,
    ), "parts of the memory"
    assert 0 < d["mfu_low"] <= d["mfu"] <= d["mfu_high"] and 0 < d["mfu_causal"] < 1, (
        "MFU and its band"
    )  # full attention is counted: long causal sequences may pass 1
    assert d["step_s_low"] <= d["step_s"] <= d["step_s_high"] and 0 < d["goodput"] <= 1, (
        "band, goodput"
    )
    p, phase = d["plan"], a.chosen.phase
    assert (
        p["tp"] * p["cp"] * p["pp"] * p["dp"] == d["devices_used"] <= a.resolved.cluster.devices
    ), "devices used"
    assert p["dp"] * p["micro_batch"] * p["grad_accum"] == phase.global_batch, "the global batch"
    fits = all(c.fits for c in a.phases)
    host = host_bytes(a.resolved.cluster)
    held = [c.memory.total <= c.memory.capacity and c.memory.host <= host for c in a.phases]
    assert fits == all(held), "fits"
    assert (a.verdict == "constraint-missed") == bool(not fits or a.missed), "verdict"
    assert all(m.chance is None or 0 <= m.chance <= 1 for m in a.missed), "chance"
    if not fits:
        assert d["limits"][0].startswith("memory:"), "first limit"
    found = a.chosen.search
    assert (
        np.array_equal(found.reason < 0, found.fits)
        and np.all(np.isfinite(found.total_bytes))
        and np.all(found.total_bytes > 0)
    ), "columns"
    assert np.all(np.isfinite(found.step_s[found.fits])) and np.all(found.step_s[found.fits] > 0), (
        "step times"
    )
    rows = {0, found.legal - 1, found.legal // 2, a.chosen.row}
    for i in rows:
        c = found.case(i)
        assert math.isclose(float(memory(c).total), found.total_bytes[i], rel_tol=1e-9), (
            f"scalar memory of row {i} is not the column's"
        )
        if found.fits[i]:
            assert math.isclose(float(step_time(c).total), found.step_s[i], rel_tol=1e-9), (
                f"scalar step of row {i} is not the column's"
            )
    front = plan_front(found)[:200]
    values = np.stack(
        [
            found.step_s[front],
            found.total_bytes[front],
            (found.plan.tp * found.plan.cp * found.plan.pp * found.plan.dp)[front],
        ],
        axis=1,
    )
    for row in values:
        assert not np.any(np.all(values <= row, axis=1) & np.any(values < row, axis=1)), (
            "a dominated point on the front"
        )


def more_never_hurts(a):
    """Roomier, faster or more devices: what fits goes on fitting, and no plan gets slower by
    bandwidth. A pinned plan that held because its state left the device may be refused on more
    devices, where all fits on them without the pin."""
    for phase in a.resolved.phases:
        where = situation(a.resolved, phase)
        base = find(where)
        roomier = replace(
            where, chip=replace(where.chip, usable_bytes=where.chip.usable_bytes * 1.3)
        )
        assert np.all(find(roomier).fits >= base.fits), "more memory, and a plan no longer fits"
        link = replace(
            where.link,
            up_bytes_per_s=where.link.up_bytes_per_s * 1.7,
            out_bytes_per_s=where.link.out_bytes_per_s * 1.7,
        )
        quick = find(replace(where, link=link))
        assert np.all(quick.step_s[base.fits] <= base.step_s[base.fits] * (1 + 1e-9)), (
            "more bandwidth, and a plan is slower"
        )
    n = a.resolved.cluster.devices
    if (
        a.verdict != "impossible"
        and all(c.fits for c in a.phases)
        and "dp" not in a.design.plan.stated()
        and not (a.design.plan.stated() and a.chosen.plan["offload"] != "none")
    ):
        for devices in (n + 1, n + 8, 2 * n, 3 * n + 1):
            b = assess(
                a.design.change(
                    {"cluster.devices": devices, "job.global_batch": a.chosen.phase.global_batch}
                )
            )
            assert b.verdict != "impossible" and all(c.fits for c in b.phases), (
                f"fits {n:,} devices, and not {devices:,}"
            )


def fixes_hold(a):
    """Applying a fix gives the verdict it was shown with."""
    for fix in fixes(a):
        b = assess(a.design.change(fix["set"]))
        assert b.verdict == fix["verdict"], (
            f"{fix['change']}: shown {fix['verdict']}, is {b.verdict}"
        )
        assert [m.text for m in b.missed] == fix["missed"] and b.days == fix["days"], fix["change"]


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", nargs="?", type=int, default=10_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--only", type=int, help="one design, with everything looked at")
    args = parser.parse_args(argv)
    if args.only is not None:
        print(Design.from_data(drawn(args.only)).to_yaml())
        print(looked_at(args.only, dear=True))
        return 0
    start, outcomes, broken = time.perf_counter(), Counter(), []
    for i, number in enumerate(range(args.start, args.start + args.count), 1):
        try:
            outcomes[looked_at(number)] += 1
        except Exception as error:  # any error is a finding
            where = traceback.extract_tb(error.__traceback__)[-1]
            broken.append(
                (number, f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})")
            )
            print(f"\r{number}: {broken[-1][1]}", flush=True)
        if i % 50 == 0 or i == args.count:
            took = time.perf_counter() - start
            print(
                (
                    f"\r{i:,} of {args.count:,} designs, {took:.0f} s, {len(broken)} broken, "
                    f"about {took / i * (args.count - i):.0f} s left   "
                ),
                end="",
                file=sys.stderr,
                flush=True,
            )
    took = time.perf_counter() - start
    print(
        f"\n{args.count:,} designs in {took:.0f} s: "
        + ", ".join(f"{n:,} {name}" for name, n in outcomes.most_common())
        + f"; {len(broken)} broken a property"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
