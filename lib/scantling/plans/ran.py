"""Plans that are known to fit, since a published run of the model had one on the device under the
stack that needed no less."""

import numpy as np

from ..base.columns import Array, Column
from ..catalogue.published import Ran, ran
from ..catalogue.words import CP_TYPES, DEGREES, RECOMPUTES, SHARDINGS, Axis
from ..physics.cases import Plan, accumulated
from ..physics.gather import Situation, precision_code
from ..physics.memory.chance import MEASURED_SPREAD, spread
from ..physics.memory.parts import LOW_BYTES
from ..physics.pipeline import schedule_code

# switches of the software that decide memory: a design that states one runs other code
DECIDING = ("grad_bytes", "fp8_gather", "reshard", "document_tokens", "capacity_factor")
ADAMW_BYTES = 12.0  # of moments and master weight a parameter, as published runs have them
# times the stages: of more micro-batches no schedule holds more
IN_FLIGHT = 2
ROUNDING = 1e-6  # of a share of the layers


def runs_alike(situation: Situation) -> list[Ran]:
    """Plans of published runs of a phase's model on its device under its stack, in its format and
    with sequences that are no shorter."""
    resolved, phase, job = situation.resolved, situation.phase, situation.job
    if situation.stated or phase.software.keys() & set(DECIDING) or resolved.cluster.sites > 1:
        return []
    if np.any(job.optimizer_bytes + job.master_bytes > ADAMW_BYTES):
        return []
    chip = resolved.cluster.accelerator
    plans = ran(chip.id, situation.stack.name, resolved.model)
    return [
        plan
        for plan in plans
        if plan.seq_len >= phase.seq_len
        and plan.grad_bytes >= job.grad_bytes
        and as_wide(precision_code(plan.precision), int(job.precision))
    ]


def as_wide(one: int, other: int) -> bool:
    """Whether memory is alike under two formats: one format, or two with values of a size below 16
    bit, whose scales are what tells them apart."""
    return one == other or bool(LOW_BYTES[one] == LOW_BYTES[other] > 0)


def needs_no_more(plan: Plan, run: Ran, global_batch: Column) -> Array:
    """Whether plans of a run's model and format need no more memory than its own: the same degrees
    and schedule, no larger micro-batch, no less recompute, as many replicas at least. bool"""
    most = IN_FLIGHT * run.pp + 1
    micro_batches = np.minimum(accumulated(global_batch, plan.dp, plan.micro_batch), most)
    conditions = (
        *(np.equal(vars(plan)[axis], vars(run)[axis]) for axis in DEGREES if axis != Axis.DP),
        np.equal(plan.sharding, SHARDINGS.index(run.sharding)),
        np.equal(plan.schedule, schedule_code(run.schedule)) | np.equal(plan.pp, 1),
        np.equal(plan.cp_type, CP_TYPES.index(run.cp_type)) | np.equal(plan.cp, 1),
        np.equal(plan.recompute, RECOMPUTES.index(run.recompute)),
        np.greater_equal(plan.recompute_share, run.recompute_share - ROUNDING),
        np.equal(plan.modules, 0),
        np.equal(plan.layer_split, 0),
        np.less_equal(plan.micro_batch, run.micro_batch),
        np.less_equal(micro_batches, run.micro_batches),
        np.greater_equal(plan.dp, run.dp),
        np.greater_equal(plan.sp, run.sp) | np.equal(plan.tp, 1),
    )
    return np.asarray(np.logical_and.reduce(np.broadcast_arrays(*conditions)))


def run_of(situation: Situation, plan: Plan) -> Ran | None:
    """The published run that shows that one plan fits; None where there is none."""
    batch = float(situation.phase.global_batch)
    runs = [run for run in runs_alike(situation) if np.all(needs_no_more(plan, run, batch))]
    return runs[0] if runs else None


def spread_of(situation: Situation, plan: Plan) -> Column:
    """Spread of the memory estimates of plans: that of families of runs that no fit had seen, of
    peaks measured here where a calibration has some, and of a measured peak where a published run
    had a plan that needs no less."""
    usual = spread()
    here = situation.resolved.calibration
    if here is not None:
        measured: float = here.spread(usual, float(situation.resolved.params.active))
        return measured
    column: Column = usual
    batch = float(situation.phase.global_batch)
    for run in runs_alike(situation):
        known = needs_no_more(plan, run, batch)
        column = np.where(known, min(usual, MEASURED_SPREAD), column)[()]
    return column
