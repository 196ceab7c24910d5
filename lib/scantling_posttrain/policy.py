"""One step of policy training: what it takes, phase by phase.

generate -> log-probabilities (of the policy as it was, and of a reference) -> updates -> new
weights to the engine. On the same devices one phase follows the other, and trainer and engine make
room for each other; on devices of their own, with samples one step old or more, the trainer's
phases run beside the generation and the longer side sets the pace (Noukhovitch et al. 2024, arXiv
2410.18252; Shao et al. 2024, GRPO, arXiv 2402.03300; Schulman et al. 2017, PPO, arXiv 1707.06347).
"""

from typing import NamedTuple

import numpy as np
from scantling.base.columns import Column
from scantling.base.records import record
from scantling.catalogue.models.shape import parameters
from scantling.physics.cases import Cases
from scantling.physics.step import Step, step_time

from .constants import Constants
from .rollout import Drawn, Engine, Generated, generate

IPC, BROADCAST, RESHARD = range(3)  # paths of a weight sync
ROW_UNIT = 256  # tokens that a packed row is a multiple of, so that any cp divides it
PATHS = ("ipc", "broadcast", "reshard")


@record
class Policy:
    """What a policy step is made of, beside trainer and engine."""

    updates: Column  # optimizer steps on the samples of one generation
    lag: Column  # steps by which samples may be old; 0: everything waits
    colocated: Column  # 1: trainer and engine on the same devices
    forwards: Column  # log-probability passes: of the policy, of a reference
    critic: Column  # 1: a value model of the policy's size is trained and asked too
    path: Column  # of the weights, in PATHS
    replicas: Column  # of the engine
    environment_s: Column  # that a step waits for tools, judges or rewards
    redraw: Column  # samples drawn over samples trained on
    away: Column  # 1: states leave the device for the host between phases


class Phases(NamedTuple):
    """Seconds of one step by phase."""

    rollout: Column
    logprobs: Column
    updates: Column
    sync: Column
    other: Column
    lag: Column
    colocated: Column

    @property
    def one_after_other(self) -> Column:
        """All phases, each after the one before."""
        return self.rollout + self.logprobs + self.updates + self.sync + self.other

    @property
    def trainer(self) -> Column:
        """What the trainer's devices do."""
        return self.logprobs + self.updates + self.sync + self.other

    @property
    def engine(self) -> Column:
        """What the engine's devices do."""
        return self.rollout + self.sync

    @property
    def total(self) -> Column:
        """Seconds of one step: the longer side where samples may be old, else the sum."""
        overlaps = (self.lag > 0) & (self.colocated == 0)
        return np.where(overlaps, np.maximum(self.trainer, self.engine), self.one_after_other)


def weight_sync_s(c: Cases, e: Engine, p: Policy, k: Constants) -> Column:
    """Bringing new weights to every replica: least + bytes of the engine's weights / rate of the
    path. [s]

    Within the same devices every rank of a replica takes its share, but each share is gathered
    through all: published times (7B on 1 to 4 ranks, 32B on 8, 235B on 16) fall with the root of
    the ranks.
    """
    ipc = k.sync_ipc_bytes_per_s * np.sqrt(e.devices)
    broadcast, reshard = k.sync_broadcast_bytes_per_s, k.sync_reshard_bytes_per_s
    rate = np.where(p.path == IPC, ipc, np.where(p.path == BROADCAST, broadcast, reshard))
    return k.sync_least_s + e.weight_bytes / rate


def waking_s(c: Cases, e: Engine, p: Policy, k: Constants) -> Column:
    """What trainer and engine take to make room for each other on the same devices: weights of the
    engine come back from the host, and the trainer's states where they leave too. [s]"""
    engine = e.weight_bytes / e.devices
    states = c.job.state_bytes * parameters(c.shape).total / c.devices
    moved = engine + p.away * 2 * states
    return p.colocated * moved / k.wake_bytes_per_s


def experts_s(c: Cases, k: Constants) -> Column:
    """What the host takes to launch the layers with experts of a step, both passes. [s]"""
    layers = c.micro_batches * c.shape.moe_layers / c.plan.pp
    return 2 * k.experts_layer_s * layers


def update_s(c: Cases, p: Policy, k: Constants, s: Step) -> Column:
    """All optimizer steps of a policy step; as many again for a critic. Code that trains whatever a
    recipe names is not tuned to one model: its layers with experts wait for their host. [s]"""
    one = s.total + np.maximum(experts_s(c, k) - (s.total - s.optimizer - s.bubble), 0.0)
    return p.updates * one * (1 + p.critic)


def logprob_s(c: Cases, p: Policy, k: Constants, s: Step) -> Column:
    """Forward passes over all samples: the products of one pass of three, attention's forward, and
    the exchanges of the forward; no recompute, gradients or optimizer. [s]"""
    three = s.gemm + s.elementwise + s.logits + s.tp + s.cp + s.ep + s.pp + s.bubble
    forward = k.passes_forward * three + s.attention / 3.5 + s.host / 3
    waits = np.maximum(experts_s(c, k) / 2 - forward, 0.0)
    return p.updates * (forward + waits) * (p.forwards + p.critic)


def phases(c: Cases, e: Engine, d: Drawn, p: Policy, k: Constants) -> tuple[Phases, Generated]:
    """The phases of every case, and how its generation went. `c` is one update of the trainer."""
    drawn = Drawn(**{**vars(d), "samples": d.samples * p.redraw})
    made = generate(e, drawn, k)
    step = step_time(c)
    log, update = logprob_s(c, p, k, step), update_s(c, p, k, step)
    sync = weight_sync_s(c, e, p, k)
    rollout = made.total_s + waking_s(c, e, p, k) + p.environment_s
    other = k.step_other_s + k.step_other_share * (rollout + log + update)
    return Phases(rollout, log, update, sync, other, p.lag, p.colocated), made
