"""Whether pinning one axis of a plan ever beats leaving it open: `python tests/bench/pinning.py`
looks at the gallery, `python tests/bench/pinning.py DIR` at the designs of a folder as well, and
`--random N` at so many designs drawn at random (`random_designs.drawn`).

A design is searched without the pins of its plan; then each axis of the plan that it gave, of the
plan that the search takes, of the fastest, and of one drawn at random is pinned alone. A pin breaks
the rule where the fastest plan under it is faster than the open design's. Switches of software and
numerics stay as they are. Not counted, and printed beside: what keeps less headroom than the open
design's fastest plan, what nobody has run (`Search.practised`), what the named stack does not offer
and schedules on more devices than any published run of them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from random_designs import drawn
from scantling.base.errors import DesignError
from scantling.catalogue.published import EVERYDAY, published_schedules
from scantling.catalogue.words import RECOMPUTES, SHARDINGS, Recompute
from scantling.design.design import Design
from scantling.physics.gather import situation
from scantling.plans.evaluate import Search
from scantling.plans.plan_names import PlanRow
from scantling.plans.prepare import prepare
from scantling.plans.space import DEFAULT, WIDE, offered
from scantling.verdict.assess import choose

HERE = Path(__file__).resolve().parents[2]
EQUAL = 1e-6  # share of a step within which two ways to one plan may differ
AXES = (
    *("tp", "cp", "pp", "vpp", "dp", "ep", "etp", "sp", "micro_batch", "sharding", "schedule"),
    *("recompute", "recompute_layers", "offload", "layer_split", "cp_type"),
)
MODULE_AXIS = "recompute_modules"  # tried where the stack offers it, and where none is named
MODULES = (["core_attn"], ["mla_up_proj"], ["moe"], ["norm", "mlp_act"], ["core_attn", "mlp_act"])


class Best(NamedTuple):
    """The fastest plan of a design."""

    step_s: float
    plan: PlanRow
    roomy: bool  # with the allowed chance of going out of memory
    practised: bool  # of a kind that has been run
    devices: int  # of the cluster
    search: Search
    seconds: float  # of processor time that the search took


@dataclass
class Break:
    """A pin under which a design has a faster plan than without."""

    design: str
    pin: dict[str, Any]
    gain: float  # share of the step that the pin saves
    before: Best
    after: Best

    @property
    def beyond(self) -> str:
        """What the pinned plan asks for that the search does not count on; "" where nothing."""
        if self.before.roomy and not self.after.roomy:
            return "less headroom"
        if self.before.practised and not self.after.practised:
            return "nobody has run it"
        resolved = self.after.search.situation.resolved
        offers = resolved.offers
        if any(axis in offers and value not in offers[axis] for axis, value in self.pin.items()):
            return "not offered by the stack"
        stage_layers = -(-resolved.model.layers // self.after.plan["pp"])
        least = min(offers.get("recompute_share", (0.0,))) * stage_layers
        if "recompute_layers" in self.pin and self.pin["recompute_layers"] < least:
            return "not offered by the stack"
        if MODULE_AXIS in self.pin and resolved.stack and not offers.get(MODULE_AXIS):
            return "not offered by the stack"
        name = self.after.plan["schedule"]
        usual = (*EVERYDAY, *published_schedules(self.after.devices))
        if self.after.plan["pp"] > 1 and name not in usual:
            return "schedule beyond its published size"
        return ""

    def __str__(self) -> str:
        return (
            f"{self.design}: {self.pin} -{self.gain:.1%}  {self.before.step_s:.4g} s "
            f"({words(self.before)}) -> {self.after.step_s:.4g} s ({words(self.after)})"
        )


def words(best: Best) -> str:
    """A plan in a few words, those left out of `short` too."""
    p = best.plan
    degrees = " ".join(f"{a}{p[a]}" for a in ("tp", "cp", "pp", "vpp", "dp", "ep", "etp"))
    return (
        f"{degrees} mb{p['micro_batch']} {p['sharding']} {p['schedule']} {p['recompute']}"
        f"/{p['recompute_layers']}/{','.join(p['recompute_modules'])} off:{p['offload']} "
        f"{p['layer_split']} sp{int(p['sp'])}"
    )


def best_of(design: Design) -> Best | None:
    """The fastest plan of a design's longest phase; None where none fits. Raises DesignError."""
    own = time.process_time()
    resolved = prepare(design)
    where = situation(resolved, resolved.main_phase)
    chosen = choose(where, DEFAULT)
    if chosen is None or not chosen.fits:
        return None
    search = chosen.search
    row = search.best()
    assert row is not None
    return Best(
        step_s=float(search.step_s[row]),
        plan=search.row(row),
        roomy=bool(search.roomy[row]),
        practised=bool(search.practised[row]),
        devices=resolved.cluster.devices,
        search=search,
        seconds=time.process_time() - own,
    )


def opened(design: Design) -> Design:
    """A design without the pins of its plan's axes; switches stay."""
    pinned = design.plan.stated()
    axes = (*AXES, "recompute_modules", "layout", "shard_group", "grad_accum")
    return design.change({f"plan.{axis}": None for axis in axes if axis in pinned})


def random_pins(best: Best, rng: np.random.Generator) -> dict[str, Any]:
    """A value of every axis, drawn from what the wide space knows."""

    def one(values: Any) -> Any:
        values = list(values)
        return values[int(rng.integers(len(values)))]

    resolved = best.search.situation.resolved
    space = offered(WIDE, resolved)
    layers, experts = resolved.model.layers, max(resolved.model.experts, 1)
    return {
        "tp": one(space.tp),
        "cp": one(space.cp),
        "pp": one(p for p in (*range(1, 17), 20, 24, 32, 64) if p <= layers),
        "vpp": one(range(1, 9)),
        "micro_batch": one(space.micro_batch),
        "ep": one(d for d in range(1, min(experts, 256) + 1) if experts % d == 0),
        "sharding": one(SHARDINGS),
        "schedule": one(space.schedule),
        "recompute": one(RECOMPUTES),
        "recompute_modules": one(MODULES),
        "offload": one(space.offload),
    }


def pins_of(plan: PlanRow) -> Iterator[dict[str, Any]]:
    """Each axis of a plan as a pin of its own; what needs another field brings it."""
    for axis in AXES:
        value = plan.get(axis)
        if value is None or (axis == "recompute_layers" and not value):
            continue
        if axis == "recompute_layers" and plan["recompute"] != Recompute.FULL:
            continue
        if axis == "recompute_layers":
            yield {axis: value, "recompute": plan["recompute"]}
        elif axis != "sp" or plan.get("tp", 1) > 1:
            yield {axis: value}
    modules = plan.get("recompute_modules")
    if modules and modules != ["layers"]:
        yield {"recompute_modules": modules, "recompute": Recompute.SELECTIVE.value}


def breaks(name: str, design: Design, seed: int = 0) -> tuple[int, list[Break], float]:
    """(pins tried, those that are faster than the open design, seconds of its search)."""
    free = opened(design)
    before = best_of(free)
    if before is None:
        return 0, [], 0.0
    simplest = before.search.simplest()
    plans = [design.plan.stated(), before.plan, random_pins(before, np.random.default_rng(seed))]
    if simplest is not None:
        plans.append(before.search.row(simplest))
    pins = {repr(pin): pin for plan in plans for pin in pins_of(plan)}
    out = []
    for pin in pins.values():
        try:
            after = best_of(free.change({f"plan.{axis}": value for axis, value in pin.items()}))
        except DesignError:
            continue
        if after is not None and after.step_s < before.step_s * (1 - EQUAL):
            gain = 1 - after.step_s / before.step_s
            out.append(Break(name, pin, gain, before, after))
    return len(pins), out, before.seconds


def designs(folders: list[Path], random: int, start: int) -> Iterator[tuple[str, Design]]:
    """The designs to look at by name."""
    for folder in folders:
        for path in sorted(folder.glob("*.yaml")):
            yield path.stem, Design.read(path)
    for number in range(start, start + random):
        try:
            yield f"random {number}", Design.from_data(drawn(number))
        except DesignError:
            continue


def main(arguments: list[str]) -> int:
    """Print the breaks; 1 where there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="folders of designs")
    parser.add_argument("--random", type=int, default=0, help="designs drawn at random")
    parser.add_argument("--start", type=int, default=0, help="the first of them")
    parser.add_argument("--no-gallery", action="store_true")
    parser.add_argument("--only", default="", help="designs whose name has this")
    parser.add_argument("-v", action="store_true", help="also what is not counted")
    options = parser.parse_args(arguments)
    folders = [*options.folders]
    if not options.no_gallery:
        folders.insert(0, HERE / "gallery" / "designs")
    tried, broken = 0, 0
    for at, (name, design) in enumerate(designs(folders, options.random, options.start)):
        if options.only not in name:
            continue
        try:
            pins, found, seconds = breaks(name, design, seed=at)
        except DesignError:
            continue
        counted = [one for one in found if not one.beyond]
        tried, broken = tried + pins, broken + len(counted)
        print(f"{name}: {pins} pins, {len(counted)} broken, open {seconds:.2f} s", flush=True)
        for one in found:
            if not one.beyond:
                print("  BREAK", one, flush=True)
            elif options.v:
                print(f"  ({one.beyond})", one, flush=True)
    print(f"{broken} of {tried} pins beat the open search")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
