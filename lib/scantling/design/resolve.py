"""From a design to the records the models work on: catalogue rows looked up, and every gap filled
by a stated rule."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .. import catalogue
from ..base.errors import DesignError
from ..base.records import Assumed
from ..catalogue.families import family
from ..catalogue.models.entries import build_model
from ..catalogue.models.shape import flops_per_token, parameters
from ..catalogue.stacks import stack, stacks
from ..catalogue.words import PRECISIONS
from .cluster_rules import build_cluster
from .design import Design
from .schema import Constraints, Prices, Reliability

SEQ_LEN = 4096
SMALL_BATCH_TOKENS = 4 * 2**20
LARGE_BATCH_TOKENS = 16 * 2**20
LARGE_PARAMS = 100e9
OPTIMIZER = "adamw"
MOST_MFU = 0.95  # no published run comes near


@dataclass(
    frozen=True,
    kw_only=True,
)
class Phase:
    """One stretch of the run: tokens (None where not given), context [tokens], batch [sequences],
    formats, and the pins that hold in it."""

    tokens: float | None
    seq_len: int
    global_batch: int
    precision: str
    optimizer: str
    pins: dict
    name: str = ""


@dataclass(
    frozen=True,
    kw_only=True,
)
class Resolved:
    """A design with nothing left to look up; `assumed` lists every input that was not given, with
    the rule that chose it."""

    design: Design
    name: str
    model: Any
    params: Any
    cluster: Any
    phases: tuple[Phase, ...]
    constraints: Constraints
    stack: str | None
    reliability: Reliability
    prices: Prices
    measured: dict
    assumed: tuple
    calibration: Any = None  # physics.calibration_file.Override, where the design names a file

    @property
    def main(self) -> int:
        """Index of the main phase."""
        return main_phase(self.phases)

    @property
    def main_phase(self) -> Phase:
        """The phase that most tokens go through."""
        return self.phases[self.main]

    @property
    def job_path(self) -> str:
        """Dotted path of the fields of the main phase: job, or job.phases.N."""
        return f"job.phases.{self.main}" if self.design.job.phases else "job"


def main_phase(phases: tuple[Phase, ...]) -> int:
    """Index of the phase that most tokens go through, the first of equals."""
    return max(range(len(phases)), key=lambda i: phases[i].tokens or 0)


def default_batch(
    params: float,
    seq_len: int,
    nodes: int,
) -> int:
    """Sequences in one step when the design gives none.

    About 4M tokens (4 x 2^20) below 100e9 parameters, 16M from there, whatever the plan. A power of
    two where the node count is one. Else, up
    to 9/8 as many nodes as sequences, a multiple of the node count, and of those within an eighth
    of the aim the one with most factors
    of two: then data-parallel widths that use every node divide it. Beyond, within an eighth of the
    aim, a multiple of a power of two near
    aim / 64 that has most in common with the node count.
    """
    aim = max(1.0, (SMALL_BATCH_TOKENS if params < LARGE_PARAMS else LARGE_BATCH_TOKENS) / seq_len)
    if nodes & (nodes - 1) == 0:
        return 2 ** round(math.log2(aim))
    unit = nodes if nodes <= 1.125 * aim else 2 ** max(0, int(math.log2(aim / 64)))
    near = range(max(1, math.ceil(0.875 * aim / unit)), int(1.125 * aim / unit) + 1) or [
        max(1, round(aim / unit))
    ]
    shared = (lambda k: k & -k) if unit == nodes else (lambda k: math.gcd(k * unit, nodes))
    return unit * max(near, key=lambda k: (shared(k), -abs(k * unit - aim)))


def resolve(design: Design) -> Resolved:
    """`design` with nothing left to look up: catalogue rows found, defaults applied and listed in
    `assumed`. Raises DesignError for an
    unknown id or an impossible combination."""
    cluster, assumed_cluster = _cluster(json.dumps(design.cluster.given(), sort_keys=True))
    model, params, assumed_model = _model(design)
    assumed = [*assumed_model, *assumed_cluster]
    phases = tuple(
        _phases(
            design,
            model,
            params,
            cluster,
            assumed,
        )
    )
    _family(cluster.accelerator, assumed)
    software = _stack(design, assumed)
    _not_beyond_peak(
        design.measured,
        model,
        phases,
        cluster,
    )
    if design.reliability.preset is not None:
        catalogue.failure_preset(design.reliability.preset)
    return Resolved(
        design=design,
        name=design.title,
        model=model,
        params=params,
        cluster=cluster,
        phases=phases,
        constraints=design.constraints,
        stack=software,
        reliability=design.reliability,
        prices=design.prices,
        measured=design.measured.given(),
        assumed=tuple(assumed),
    )


def _not_beyond_peak(
    measured,
    model,
    phases,
    cluster,
):
    """A measured speed that the devices' dense peak rules out is a slip of a unit."""
    phase = phases[main_phase(phases)]
    if measured.step_s is None and measured.tokens_per_s_per_device is None:
        return
    per_token = flops_per_token(model, phase.seq_len).total
    most = (
        MOST_MFU * cluster.accelerator.peak_flops(phase.precision) / per_token
    )  # tokens/s of a device
    if measured.tokens_per_s_per_device is not None and measured.tokens_per_s_per_device > most:
        raise DesignError(
            "measured.tokens_per_s_per_device",
            measured.tokens_per_s_per_device,
            (
                f"at most {most:.4g}: {MOST_MFU:.0%} of the dense {phase.precision} peak of "
                f"{cluster.accelerator.name}"
            ),
            problem="is beyond the hardware",
        )
    least = phase.global_batch * phase.seq_len / (cluster.devices * most)
    if measured.step_s is not None and measured.step_s < least:
        raise DesignError(
            "measured.step_s",
            measured.step_s,
            (
                f"at least {least:.4g} s: {MOST_MFU:.0%} of the dense {phase.precision} peak "
                f"of {cluster.devices:,} {cluster.accelerator.name}"
            ),
            problem="is beyond the hardware",
        )


@lru_cache(maxsize=256)
def _cluster(spec: str):
    try:
        return build_cluster(json.loads(spec))
    except DesignError as e:
        raise e if e.field.startswith("cluster") else e.at("cluster") from None


def _model(design):
    spec = design.model if isinstance(design.model, str) else design.model.given()
    path = None if isinstance(spec, str) else spec.get("hf_config")
    changed = 0.0
    if path is not None:
        try:
            changed = (design.folder / path).stat().st_mtime
        except (OSError, ValueError):
            raise DesignError(
                "model.hf_config",
                path,
                "the path of a config.json, relative to the design file",
                problem="is not a file that can be read",
            ) from None
    return _built_model(json.dumps(spec, sort_keys=True), str(design.folder), changed)


@lru_cache(maxsize=256)
def _built_model(
    spec: str,
    folder: str,
    changed: float,
):
    try:
        model, assumed = build_model(json.loads(spec), folder)
    except DesignError as e:
        raise e if e.field.startswith("model") else e.at("model") from None
    return model, parameters(model), tuple(assumed)


def _phases(
    design,
    model,
    params,
    cluster,
    assumed,
):
    job = design.job
    specs = job.phases or (job,)
    for i, spec in enumerate(specs):
        at = f"job.phases.{i}" if job.phases else "job"
        pins = {
            **design.plan.given(),
            **(spec.plan.given() if job.phases and spec.plan else {}),
        }
        seq_len = spec.seq_len
        if seq_len is None:
            seq_len, why = (
                (model.seq_len, "the catalogue's context for this model")
                if model.seq_len
                else (SEQ_LEN, "not given, and the model's row has none")
            )
            assumed.append(Assumed(f"{at}.seq_len", seq_len, why))
        yield Phase(
            tokens=spec.tokens,
            seq_len=seq_len,
            global_batch=_batch(
                spec,
                seq_len,
                params,
                cluster,
                at,
                assumed,
            ),
            precision=_precision(
                job,
                spec,
                pins,
                cluster,
                at,
                assumed,
            ),
            optimizer=_optimizer(
                job,
                spec,
                at,
                assumed,
            ),
            pins=pins,
            name=getattr(spec, "name", None) or (f"phase {i + 1}" if len(specs) > 1 else ""),
        )


def _batch(
    spec,
    seq_len,
    params,
    cluster,
    at,
    assumed,
):
    if spec.global_batch is not None:
        return spec.global_batch
    if spec.global_batch_tokens is not None:
        batch = max(1, round(spec.global_batch_tokens / seq_len))
        if abs(batch * seq_len / spec.global_batch_tokens - 1) > 0.5:
            raise DesignError(
                f"{at}.global_batch_tokens",
                spec.global_batch_tokens,
                f"at least one sequence of {seq_len:,} tokens",
                seq_len,
                problem="is less than a sequence",
            )
        if batch * seq_len != spec.global_batch_tokens:
            assumed.append(
                Assumed(
                    f"{at}.global_batch",
                    batch,
                    f"{spec.global_batch_tokens:,.0f} tokens in whole sequences of {seq_len:,}",
                )
            )
        return batch
    nodes = max(1, cluster.devices // cluster.devices_per_node)
    batch = default_batch(params.total, seq_len, nodes)
    size, bound = ("4M", "below") if params.total < LARGE_PARAMS else ("16M", "from")
    assumed.append(
        Assumed(
            f"{at}.global_batch",
            batch,
            (
                f"{size} tokens in a step {bound} 100B parameters, in sequences that "
                f"{nodes:,} nodes can share"
            ),
        )
    )
    return batch


def _precision(
    job,
    spec,
    pins,
    cluster,
    at,
    assumed,
):
    chip = cluster.accelerator
    given = spec.precision or job.precision
    pinned = pins.get("precision")
    if given and pinned and given != pinned:
        raise DesignError(
            "plan.precision",
            pinned,
            f"the precision of the job, {given}, or leave one of the two out",
            given,
            problem=f"contradicts {at}.precision {given}",
        )
    precision = given or pinned
    if precision is None:
        precision = "bf16" if chip.bf16_flops > 0 else "fp16" if chip.fp16_flops > 0 else "fp32"
        why = (
            "the default"
            if precision == "bf16"
            else f"{chip.name} has no bf16" + ("" if precision == "fp16" else " and no fp16")
        )
        assumed.append(Assumed(f"{at}.precision", precision, why))
    try:
        chip.peak_flops(precision)
    except DesignError as e:
        raise DesignError(
            f"{at}.precision" if given else "plan.precision",
            precision,
            [p for p in PRECISIONS if p in chip.precisions()],
            e.nearest,
            problem=e.problem or f"is not a format of {chip.name}",
        ) from None
    return precision


def _optimizer(
    job,
    spec,
    at,
    assumed,
):
    optimizer = spec.optimizer or job.optimizer
    if optimizer is None:
        assumed.append(
            Assumed(
                f"{at}.optimizer",
                OPTIMIZER,
                "the usual one: two fp32 moments and an fp32 copy of the weights",
            )
        )
    return optimizer or OPTIMIZER


def _stack(design, assumed):
    if design.stack is None:
        assumed.append(
            Assumed(
                "stack",
                None,
                "no software named: constants pooled over all stacks, and a wider band",
            )
        )
        return None
    name = design.stack if isinstance(design.stack, str) else design.stack.like
    if name not in stacks():
        raise DesignError(
            "stack",
            name,
            list(stacks()),
            problem="is unknown",
        )
    if not isinstance(design.stack, str) and len(design.stack.given()) > 1:
        extra = next(k for k in design.stack.given() if k != "like")
        raise DesignError(
            f"stack.{extra}",
            allowed="an id alone: a stack has no figures to replace",
            problem="there is no such field",
        )
    if stack(name).unmeasured:
        assumed.append(Assumed("stack", name, stack(name).unmeasured))
    return name


def _family(chip, assumed):
    """Says whose constants stand in where nobody has published a run on this kind of chip."""
    own = family(chip.family)
    if not own.measured:
        assumed.append(
            Assumed(
                "cluster.accelerator",
                own.constants_of,
                (
                    f"nobody has published a run on {chip.family}: the constants of the most "
                    f"careful measured family, {own.constants_of}, and a wider band"
                ),
            )
        )
