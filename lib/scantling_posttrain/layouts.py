"""Where trainer and engine of a policy stand: on the same devices, or on devices of their own;
every layout with the engine's best replica, in one pass."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import ceil, exp
from typing import TypeVar

import numpy as np
from scantling.base.columns import Array
from scantling.base.errors import DesignError
from scantling.base.records import record
from scantling.catalogue.words import WeightSync
from scantling.design.design import Design
from scantling.physics.cases import Cases

from .constants import Constants
from .engine import COLOCATED, ON_ITS_OWN, engine_of
from .inputs import Rollout
from .policy import PATHS, ROW_UNIT, Phases, Policy, phases
from .rollout import Drawn, Engine, Generated, room
from .trainer import BATCH, Trainer, full_tuning, trainer_of, twin
from .tuning import held

SHARES = (0.125, 0.25, 1 / 3, 0.5, 2 / 3, 0.75, 0.875)  # of the devices that generate
WIDEST = 64  # devices of one replica
Columns = TypeVar("Columns", Engine, Drawn, Policy)


@record
class Layout:
    """One way to stand: the trainer's plan, the engine's replica, and the step that comes of it."""

    colocated: bool
    train_devices: int
    rollout_devices: int
    trainer: Trainer
    row: int  # of the trainer's plan
    tp: int  # devices of one replica of the engine
    lag: int
    sync: WeightSync
    kv_fraction: float
    away: bool  # states leave the device between phases
    phases: Phases
    generated: Generated
    engine: Engine
    drawn: Drawn
    policy: Policy

    @property
    def step_s(self) -> float:
        """Seconds of one step."""
        return float(np.ravel(self.phases.total)[0])

    @property
    def replicas(self) -> int:
        """Replicas of the engine."""
        return self.rollout_devices // self.tp

    @property
    def running(self) -> int:
        """Samples that one replica runs at once."""
        return int(np.ravel(self.generated.running)[0])

    @property
    def tail_share(self) -> float:
        """Share of the generation with fewer than a tenth of the samples running."""
        return float(np.ravel(self.generated.tail_s / self.generated.total_s)[0])


def update_batch(r: Rollout, pack: int, devices: int) -> tuple[int, float]:
    """(sequences of one update, updates' share of them that is filled): samples of an update packed
    into rows of `pack` tokens, at least one a device group."""
    needed = r.drawn / r.updates * (r.prompt + r.response) / pack
    step = max(1, 2 ** int(np.floor(np.log2(max(needed, 1.0)))))
    unit = min(step, BATCH, devices)
    slots = unit * max(round(needed / unit), 1)
    return slots, needed / slots


def row_tokens(r: Rollout) -> int:
    """Tokens of the trainer's packed row: the longest prompt and response, or what is stated."""
    return ROW_UNIT * ceil(r.row / ROW_UNIT)


def trainer_on(design: Design, r: Rollout, devices: int, k: Constants) -> tuple[Trainer, float]:
    """The trainer of a policy on so many devices, and the share of its rows that is filled."""
    pack = row_tokens(r)
    batch, filled = update_batch(r, pack, devices)
    document = min((r.prompt + r.response) * exp(r.spread**2), float(pack))
    own = twin(design, devices, pack, batch, document, None)
    tuning = replace(full_tuning(), critics=float(r.critic))
    return trainer_of(own, tuning, pack, k), filled


def replica_sizes(r: Rollout, devices: int) -> list[int]:
    """Devices of one replica that are tried: the stated number, as many as give the stated
    replicas, or powers of two."""
    if r.tp is not None:
        return [r.tp]
    if r.dp is not None:
        return [devices // r.dp] if devices >= r.dp else []
    return [2**i for i in range(7) if 2**i <= min(devices, WIDEST)]


def layout_of(
    design: Design, r: Rollout, train: int, generate: int, colocated: bool, k: Constants
) -> Layout | None:
    """The best of one split of the devices; None where no plan or no replica fits."""
    trainer, filled = trainer_on(design, r, train, k)
    row = trainer.best
    if row is None:
        return None
    case = trainer.case(row)
    fraction = r.kv_fraction or (COLOCATED if colocated else ON_ITS_OWN)
    sizes = [tp for tp in replica_sizes(r, generate) if generate >= tp]
    if not sizes:
        return None
    states = held(case, trainer.tuning, k)
    resident = float(states.weights + states.trained)
    away = colocated and resident + fraction * float(case.chip.usable_bytes) > trainer.capacity
    tp = np.array(sizes, float)
    replicas = np.floor(generate / tp)
    engine, drawn = rollout_engine(case, r, tp, fraction), samples_of(r, replicas)
    lag = r.lag if r.lag is not None else int(not colocated)
    path = r.sync or (WeightSync.IPC if colocated else WeightSync.BROADCAST)
    policy = Policy(
        updates=r.updates * filled,
        lag=lag,
        colocated=float(colocated),
        forwards=1.0 + r.reference,
        critic=float(r.critic),
        path=PATHS.index(path),
        replicas=replicas,
        environment_s=r.environment_s,
        redraw=r.redraw,
        away=float(away),
    )
    times, made = phases(case, engine, drawn, policy, k)
    n = len(sizes)
    fits = np.broadcast_to(room(engine) > engine.kv_bytes * (r.prompt + r.longest), n)
    total = np.where(fits, np.broadcast_to(times.total, n), np.inf)
    best = int(np.argmin(total))
    if not np.isfinite(total[best]):
        return None
    one = partial(row_of, n=n, row=best)
    return Layout(
        colocated=colocated,
        train_devices=train,
        rollout_devices=generate,
        trainer=trainer,
        row=row,
        tp=sizes[best],
        lag=lag,
        sync=path,
        kv_fraction=fraction,
        away=away,
        phases=Phases(*(np.broadcast_to(part, n)[best] for part in times)),
        generated=Generated(*(np.broadcast_to(part, n)[best] for part in made)),
        engine=one(engine),
        drawn=one(drawn),
        policy=one(policy),
    )


def rollout_engine(case: Cases, r: Rollout, tp: Array, fraction: float) -> Engine:
    """The engine of the trainer's model and chip, on each number of devices."""
    return engine_of(
        case.shape,
        case.chip,
        devices=tp,
        domain=case.link.domain,
        narrow=r.narrow,
        fraction=fraction,
        flops=case.chip.bf16_flops * (2.0 if r.narrow < 2 else 1.0),
    )


def samples_of(r: Rollout, replicas: Array) -> Drawn:
    """What each replica draws in a step."""
    return Drawn(
        samples=r.drawn / replicas,
        per_prompt=float(r.samples),
        prompt=r.prompt,
        response=r.response,
        longest=r.longest,
        replicas=replicas,
        spread=r.spread,
    )


def row_of(columns: Columns, n: int, row: int) -> Columns:
    """One row of a record of columns of n."""
    values = {name: np.broadcast_to(column, n)[row] for name, column in vars(columns).items()}
    return replace(columns, **values)


def splits(devices: int, per_node: int, r: Rollout) -> Sequence[int]:
    """Devices that generate, of those tried: the stated number, or whole nodes near each share."""
    if r.generating is not None:
        return [r.generating]
    unit = per_node if devices > per_node else 1
    tried = {unit * max(round(devices * share / unit), 1) for share in SHARES}
    return sorted(n for n in tried if n < devices)


def layouts(design: Design, r: Rollout, per_node: int, k: Constants) -> list[Layout]:
    """Every layout that holds the models, the fastest step first."""
    lawful: list[Layout] = []
    refusals: list[DesignError] = []
    for train, generate, colocated in divisions(design.cluster.devices, per_node, r):
        try:
            layout = layout_of(design, r, train, generate, colocated, k)
        except DesignError as refusal:  # a pin of the plan that so few devices cannot keep
            refusals.append(refusal)
            continue
        if layout is not None:
            lawful.append(layout)
    if refusals and not lawful:
        raise refusals[0]
    return sorted(lawful, key=lambda one: one.step_s)


def divisions(devices: int, per_node: int, r: Rollout) -> list[tuple[int, int, bool]]:
    """(devices that train, that generate, whether they are the same) of every layout to try.
    Raises DesignError where the stated ones leave none."""
    out = []
    if r.colocated is not False and r.generating in (None, devices):
        out.append((devices, devices, True))
    if r.colocated is not True:
        out += [(devices - n, n, False) for n in splits(devices, per_node, r) if n < devices]
    if not out:
        raise DesignError(
            "job.rollout.devices",
            r.generating if r.generating is not None else devices,
            f"all {devices:,} where colocated, fewer where not",
            problem="leaves no device to one side",
        )
    return out


def varied(layout: Layout, k: Constants, **lengths: float) -> float:
    """The step of the same layout with other lengths of responses. [s] `response`, `longest` and
    `spread` replace the drawn ones; the trainer's work grows with the mean."""
    drawn = replace(layout.drawn, **lengths)
    before = layout.drawn.prompt + layout.drawn.response
    work = (drawn.prompt + drawn.response) / before
    policy = replace(layout.policy, updates=layout.policy.updates * work)
    case = layout.trainer.case(layout.row)
    return float(np.ravel(phases(case, layout.engine, drawn, policy, k)[0].total)[0])
