"""What is said of a post-training design, in sentences with numbers."""

from collections.abc import Sequence

import numpy as np
from scantling.base.records import Lines
from scantling.base.show import days as days_text, percent, seconds, several, size, usd
from scantling.design.design import Design

from .constants import Constants
from .inputs import Adapters, Rollout, Samples
from .layouts import Layout
from .trainer import Trainer

NO_REPLICA = (
    "no replica of the engine holds the weights and the longest sample in its part of the memory "
    "(job.rollout.kv_fraction, job.rollout.tp, job.rollout.max_response)"
)

# parts of a fine-tuning step, phases of a policy step, and what fills a device
PARTS = {
    "products": "Matrix products",
    "attention": "Attention core",
    "elementwise": "Element-wise",
    "logits": "Output head and loss",
    "recompute": "Recompute",
    "adapters": "Adapters",
    "unpacking": "Unpacking of weights",
    "exposed": "Exposed traffic, bubbles",
    "optimizer": "Optimizer",
    "host": "Launches",
    "reference": "Reference model",
}
PHASES = {
    "rollout_s": "Generation",
    "logprob_s": "Log-probabilities",
    "train_s": "Updates",
    "weight_sync_s": "Weight sync",
    "other_s": "Everything else",
}
TRAINER_MEMORY = {
    "weights": "Weights",
    "trained": "Gradients, optimizer",
    "activations": "Activations",
    "other": "Other",
}
ENGINE_MEMORY = {"weights": "Weights", "keys_values": "Keys and values"}


def of_measured(design: Design, computed: float, step: float) -> Lines:
    """A line on a measured step, with what is computed in its place."""
    if design.measured_at is not None:
        return (
            f"calibrated: the step is {step / computed:.3g} times what is computed, as it was "
            "measured on the design that this one varies; the interval is that of a computed one",
        )
    if step == computed:
        return ()
    return (f"measured: a step of {seconds(step)} in the place of {seconds(computed)} computed",)


def late(days: float, deadline: float) -> str:
    """A deadline that is missed."""
    return f"deadline: {days_text(days)} likely, {days_text(deadline)} allowed"


def perhaps_late(high: float, deadline: float) -> str:
    """A deadline within the interval."""
    return f"deadline: up to {days_text(high)} in 80 %, {days_text(deadline)} allowed"


def dear(cost: float, budget: float) -> str:
    """A budget that is missed."""
    return f"budget: {usd(cost)} likely, {usd(budget)} allowed"


def perhaps_out_of_memory(trainer: Trainer, row: int) -> str:
    """A plan with a larger chance of going out of memory than is allowed."""
    allowed = percent(trainer.resolved.max_oom_probability, 0)
    return (
        f"at risk: chance {percent(trainer.chance(row), 0)} of going out of memory "
        f"({size(trainer.total_bytes[row])} of {size(trainer.capacity)}), {allowed} allowed"
    )


def not_judged(names: Sequence[str]) -> str:
    """Constraints that are not judged for this method."""
    fields = ", ".join(f"constraints.{name}" for name in names)
    return f"not checked: {fields}: of this method only memory, deadline and budget are judged"


def too_large(need: float, capacity: float, plan: str) -> str:
    """Why no plan fits."""
    return f"the leanest plan ({plan}) needs {size(need)} a device of {size(capacity)}"


def too_much_away(trainer: Trainer) -> str:
    """Why no plan fits that keeps states off the device."""
    need = size(trainer.away_bytes[trainer.total_bytes <= trainer.capacity].min())
    have = size(trainer.host_bytes)
    return f"offloaded state of {need} a device exceeds its share of host memory and NVMe, {have}"


def why_tuned(
    trainer: Trainer, row: int, adapters: Adapters | None, samples: Samples, k: Constants
) -> Lines:
    """Why the plan of a fine-tune is what it is."""
    lines = [f"{len(trainer.order):,} of {trainer.legal:,} legal plans fit; the fastest is taken"]
    parts, memory = trainer.spent(row, k), trainer.held(row, k)
    if adapters is not None:
        share = float(np.ravel((parts.adapters + parts.unpacking) / parts.total)[0])
        states = float(np.ravel(memory.trained)[0])
        lines.append(
            f"frozen weights have no gradients: a third of the products, their exchange and "
            f"the optimizer's states fall away; what is trained takes {size(states)}, adapters "
            f"and unpacking {percent(share)} of the step"
        )
    filled = samples.filled / samples.slots
    if not samples.packed:
        lines.append(f"padding: {percent(1 - filled)} of what is computed; packed rows have 1 %")
    return tuple(lines)


def layout_words(layout: Layout) -> str:
    """A layout in a few words."""
    if layout.colocated:
        where = f"trainer and engine share {several(layout.train_devices, 'device')}"
    else:
        where = (
            f"{several(layout.train_devices, 'device')} train, {layout.rollout_devices:,} generate"
        )
    old = f", samples {several(layout.lag, 'step')} old" if layout.lag else ""
    return f"{where}; engine tp {layout.tp} · {layout.replicas:,} replicas{old}"


def longer(share: float) -> str:
    """By how much a step is longer."""
    return f"a step {percent(share, 0)} longer"


def change_of(what: str, tokens: float) -> str:
    """A length that is changed."""
    return f"{what} of {tokens:,.0f} tokens"


def rows_of(tokens: float, factor: float) -> str:
    """Packed rows of another length, so many that they hold as many tokens."""
    many = "twice" if factor < 1 else "half"
    return f"rows of {tokens:,.0f} tokens, {many} as many"


def slower_plan(trainer: Trainer, best: int, other: int, k: Constants) -> str:
    """Where another plan of a fine-tune loses its time."""
    fast, slow = (trainer.spent(row, k)._asdict() for row in (best, other))
    lost = {name: float(np.ravel(slow[name] - fast[name])[0]) for name in slow}
    most = max(lost, key=lambda name: lost[name])
    return f"{seconds(lost[most])} more in {PARTS[most].lower()}"


def slower_layout(best: Layout, other: Layout) -> str:
    """Where another layout of a policy step loses its time."""
    trainer, engine = float(other.phases.trainer), float(other.phases.engine)
    if other.colocated or not other.lag:
        return f"engine and trainer wait for each other: {seconds(engine)} and {seconds(trainer)}"
    waits, longer_side = ("trainer", "engine") if engine > trainer else ("engine", "trainer")
    idle = abs(engine - trainer) / max(engine, trainer)
    return f"the {longer_side} sets the pace, the {waits} stands idle for {percent(idle, 0)} of it"


def tail_of(spread: float) -> str:
    """A tail that is changed."""
    return f"longer tail: spread of log lengths {spread:.2f}"


def why_layout(best: Layout, ranked: Sequence[Layout], r: Rollout) -> Lines:
    """Why trainer and engine stand as they do."""
    times = best.phases
    among = (
        f"the fastest of {len(ranked):,} layouts that hold"
        if ranked[1:]
        else "the only one tried that holds"
    )
    lines = [f"{layout_words(best)}: {among} both"]
    if best.lag and not best.colocated:
        trainer, engine = float(times.trainer), float(times.engine)
        longer_side = "the engine" if engine > trainer else "the trainer"
        lines.append(
            f"{longer_side} sets the pace: engine {seconds(engine)}, trainer {seconds(trainer)} "
            "a step, side by side"
        )
    else:
        share = float(times.rollout / times.total)
        lines.append(f"generation takes {percent(share, 0)} of a step; nothing runs beside it")
    lines.append(
        f"the tail: {percent(best.tail_share, 0)} of the generation has fewer than a tenth of the "
        f"samples running; the longest has {r.longest:,.0f} tokens on any number of devices"
    )
    if best.away:
        lines.append("the trainer's states go to the host while the engine generates: memory")
    return tuple(lines)
