"""What an elastic run of a plan drops at once, and the plan without some of it."""

from dataclasses import replace
from functools import partial

import numpy as np

from ..base.columns import Array, Column
from ..endure.life import Gang, Reshaped
from ..physics.cases import Cases
from ..physics.memory.peak import memory
from ..physics.step import step_time
from ..plans.plan_names import PlanRow


def tied(plan: PlanRow) -> int:
    """Data-parallel replicas that share a group of experts: they go and come together."""
    expert_ranks = plan["ep"] * plan["etp"]
    return int(min(plan["dp"], max(1, -(-expert_ranks // (plan["tp"] * plan["cp"])))))


def gang_of(case: Cases, plan: PlanRow, per_node: int) -> Gang:
    """What an elastic run of the plan drops at once: the replicas that share a group of experts,
    their nodes, the micro-batches of each in a step, and the plan `reshaped` without them."""
    span = tied(plan)
    return Gang(
        replicas=plan["dp"] // span,
        nodes=-(-plan["tp"] * plan["cp"] * plan["pp"] * span // per_node),
        micro_batches=max(plan["grad_accum"], 1),
        reshape=partial(reshaped, case, span),
    )


def shrunk(case: Cases, span: int, gone: Array) -> Cases:
    """A plan whole, then without `gone` of its gangs of `span` replicas, a row each; the global
    batch kept by accumulation."""
    whole = case.plan.dp
    dp = np.maximum(whole - span * np.array([0, *gone]), 1)
    m = np.ceil(case.micro_batches * whole / dp - 1e-9)
    batch = m * dp * case.plan.micro_batch
    return replace(case.with_plan(dp=dp), job=replace(case.job, global_batch=batch))


def reshaped(case: Cases, span: int, gone: Array) -> Reshaped:
    """A plan without `gone` of its gangs of `span` replicas, the global batch kept by
    accumulation; it fits within the capacity, or where it takes no more than the plan does
    whole."""
    less = shrunk(case, span, gone)
    device = memory(less)
    return beside_whole(less, device.total, device.capacity, step_time(less).total)


def beside_whole(
    less: Cases, used_bytes: Column, capacity_bytes: Column, step_s: Column
) -> Reshaped:
    """`reshaped` of the rows of `shrunk`, from their memory and step."""
    used, times = (
        np.broadcast_to(column, np.shape(less.plan.dp)) for column in (used_bytes, step_s)
    )
    return Reshaped(
        dp=np.asarray(less.plan.dp)[1:],
        micro_batches=np.asarray(less.micro_batches)[1:],
        ratio=times[1:] / times[0],
        memory_bytes=used[1:],
        fits=(used <= np.maximum(capacity_bytes, used[0]))[1:],
    )
