"""From a design to the records the models work on: catalogue rows looked up, and every gap filled
by a stated rule."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field as slot, replace
from functools import lru_cache
from json import dumps, loads
from math import ceil, exp, log, log2
from re import fullmatch
from typing import Any

import numpy as np

from .. import catalogue
from ..base.errors import DesignError, Rule, refuse
from ..base.records import Assumed, Derived, get, record
from ..base.show import named_size
from ..catalogue.families import family
from ..catalogue.models.entries import build_model
from ..catalogue.models.shape import flops_per_token, parameters
from ..catalogue.scaling_laws import tokens_to_loss
from ..catalogue.stacks import canonical, stack, stacks, switches
from ..catalogue.words import PRECISIONS
from .cluster import Sync
from .cluster_rules import build_cluster
from .corpus import build_corpus
from .design import Design
from .fields import defaults
from .schema import Checkpoint, Constraints, PhaseSpec, Prices, Reliability, SyncSpec

SEQ_LEN = 4096
OWN = ("tokens", "seq_len", "global_batch", "global_batch_tokens")  # of each phase by itself
SMALL_BATCH_TOKENS = 4 * 2**20
LARGE_BATCH_TOKENS = 16 * 2**20
LARGE_PARAMS = 100e9
OPTIMIZER = "adamw"
MOST_MFU = 0.95  # no published run comes near
MAX_OOM = 0.05  # chance of going out of memory that a search allows: one run in twenty


@record
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
    evaluation_hours: float = 0.0  # at its end
    from_checkpoint: bool = False  # weights that somebody trained before
    software: Mapping = slot(default_factory=dict)  # field of software.csv -> what the design says


@record
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
    checkpoint: Checkpoint
    prices: Prices
    measured: dict
    assumed: tuple
    corpus: Mapping  # fields of job.corpus, all of them
    calibration: Any = None  # physics.calibration_file.Override, where the design names a file
    kit: Mapping = slot(default_factory=dict)  # axis -> values of the framework that is to run it

    @property
    def max_oom_probability(self) -> float:
        """Chance of going out of memory that the search allows a plan."""
        asked = self.constraints.max_oom_probability
        return MAX_OOM if asked is None else asked

    @property
    def offers(self) -> dict:
        """Axis of a plan -> the values that the named stack, and the framework of a kit, have; what
        is not there is open. Of an axis that both state the values of both, else the kit's."""
        out = dict(stack(self.stack).offers) if self.stack else {}
        for axis, values in self.kit.items():
            out[axis] = tuple(v for v in out.get(axis, values) if v in values) or tuple(values)
        return out

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


def main_phase(phases: tuple) -> int:
    """Index of the phase that most tokens go through, the first of equals."""
    return max(range(len(phases)), key=lambda i: phases[i].tokens or 0)


def default_batch(params: float, seq_len: int, nodes: int) -> int:
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
        return 2 ** round(log2(aim))
    unit = nodes if nodes <= 1.125 * aim else 2 ** max(0, int(log2(aim / 64)))
    near = np.arange(max(1, ceil(0.875 * aim / unit)), int(1.125 * aim / unit) + 1)
    if not len(near):
        return unit * max(1, round(aim / unit))
    shared = near & -near if unit == nodes else np.gcd(near * unit, nodes)
    near = unit * near[shared == shared.max()]
    return int(near[abs(near - aim).argmin()])


def resolve(design: Design) -> Resolved:
    """`design` with nothing left to look up: catalogue rows found, defaults applied and listed in
    `assumed`. Raises DesignError for an
    unknown id or an impossible combination."""
    cluster, assumed_cluster = _cluster(dumps(design.cluster.given(), sort_keys=True))
    model, params, assumed_model = _model(design)
    assumed = [*assumed_model, *assumed_cluster]
    if cluster.sites > 1:
        cluster = replace(cluster, sync=_sync(design.job.sync, assumed))
    software = _stack(design, assumed)
    phases = tuple(
        _phases(
            design,
            model,
            params,
            cluster,
            canonical(software, family(cluster.accelerator.family).modern),
            assumed,
        )
    )
    named = [phase.tokens for phase in phases]
    corpus = build_corpus(design.job.corpus, None if None in named else sum(named), cluster)
    assumed += corpus.assumed
    _family(cluster.accelerator, assumed)
    measured = {} if design.measured_at else design.measured.given()
    reliability = design.reliability
    _not_beyond_peak(measured, model, phases, cluster)
    if design.constraints.max_oom_probability is None:
        assumed.append(
            Assumed(
                "constraints.max_oom_probability",
                MAX_OOM,
                "one run in twenty: a plan of more risk is taken only where no other fits",
            )
        )
    if reliability.preset is not None:
        catalogue.failure_preset(reliability.preset)
    return Resolved(
        design=design,
        name=_title(design, model, params),
        model=model,
        params=params,
        cluster=cluster,
        phases=phases,
        constraints=design.constraints,
        stack=software,
        reliability=reliability,
        checkpoint=design.checkpoint,
        prices=design.prices,
        measured=measured,
        assumed=tuple(assumed),
        corpus=corpus.fields,
    )


def _sync(spec, assumed) -> Sync:
    """How the sites keep in step: as given, else averages of local steps."""
    new = Derived(spec.given() if spec else {}, "job.sync")
    steps = new.given.get("local_steps", 0)
    kind = new.take(
        "kind",
        "synchronous" if steps == 1 else "local-steps",
        "weights averaged after local steps, an outer step over them (DiLoCo, arXiv 2311.08105): "
        "no step waits for the way between sites; to be confirmed by an ML specialist",
    )
    if kind == "synchronous":
        if steps > 1:
            raise DesignError(
                "job.sync.local_steps",
                steps,
                "1, or kind: local-steps",
                1,
                problem="contradicts job.sync.kind synchronous",
            )
        new.fields["local_steps"] = 1
        new.take("compress_bits", 0, "gradients as they are")
    else:
        why = "the fewest whose exchange takes 2 % of the time, from 24 to 500, "
        new.take("local_steps", 0, f"0: searched with the plan, {why}the published numbers")
        new.take_usual(defaults(SyncSpec))
    assumed += new.assumed
    return Sync(exchange_bytes=new.fields.pop("compress_bits") / 8, **new.fields)


def _title(design, model, params) -> str:
    """The design's title; a model that its file does not name is named by what it counts to."""
    spec = design.model
    if design.name or isinstance(spec, str) or spec.name or spec.like or spec.size:
        return design.title
    name = model.name if spec.hf_config else f"{named_size(params.total)} "
    name += "" if spec.hf_config else "MoE" if model.is_moe else "dense"
    return design.title.replace("model", name, 1)


def _not_beyond_peak(measured, model, phases, cluster):
    """A measured speed that the devices' dense peak rules out is a slip of a unit."""
    rate, step = (measured.get(k) for k in ("tokens_per_s_per_device", "step_s"))
    if rate is None and step is None:
        return
    phase = phases[main_phase(phases)]
    chip = cluster.accelerator
    # tokens/s of a device
    most = MOST_MFU * chip.peak_flops(phase.precision) / flops_per_token(model, phase.seq_len).total
    least = phase.global_batch * phase.seq_len / (cluster.devices * most)
    of = f"{MOST_MFU:.0%} of the dense {phase.precision} peak of"
    at_most = f"at most {most:.4g}: {of} {chip.name}"
    at_least = f"at least {least:.4g} s: {of} {cluster.devices:,} {chip.name}"
    beyond = "is beyond the hardware"
    rules = (
        Rule("tokens_per_s_per_device", not rate or rate <= most, at_most, beyond),
        Rule("step_s", not step or step >= least, at_least, beyond),
    )
    within("measured", refuse, rules, measured)


@lru_cache(maxsize=256)
def _cluster(spec: str):
    return within("cluster", build_cluster, loads(spec))


def within(section, build, *arguments):
    """What `build` makes; its errors name the section."""
    try:
        return build(*arguments)
    except DesignError as e:
        raise e if e.field.startswith(section) else e.at(section) from None


def _model(design):
    spec = design.model
    changed = 0.0
    if not isinstance(spec, str):
        spec = spec.given()
        path = spec.get("hf_config")
        if path is not None:
            with suppress(OSError, ValueError):  # whoever reads it says what is wrong with it
                changed = (design.folder / path).stat().st_mtime
    return _built_model(dumps(spec, sort_keys=True), str(design.folder), changed)


@lru_cache(maxsize=256)
def _built_model(spec: str, folder: str, changed: float):
    model, assumed = within("model", build_model, loads(spec), folder)
    return model, parameters(model), tuple(assumed)


def _phases(design, model, params, cluster, software, assumed):
    job = design.job.given()
    plan = design.plan.given()
    specs = job.get("phases") or (job,)
    for i, spec in enumerate(specs):
        at = f"job.phases.{i}" if "phases" in job else "job"
        new = Derived({k: v for k, v in job.items() if k not in ("phases", *OWN)} | spec, at)
        pins = plan | spec.get("plan", {})
        if modules := pins.get("recompute_modules"):
            pins = {"recompute": "full" if modules == ["layers"] else "selective", **pins}
        if parts := len(pins.get("layout", ())):
            pp = pins.get("pp") or parts // pins.get("vpp", 1)
            pins = {"pp": pp, "vpp": parts // pp or 1, **pins}
        seq_len = (
            new.take("seq_len", model.seq_len, "the catalogue's context for this model")
            if model.seq_len
            else new.take("seq_len", SEQ_LEN, "not given, and the model's row has none")
        )
        why = "the usual one: two fp32 moments and an fp32 copy of the weights"
        precision = _precision(new, pins.get("precision"), cluster.accelerator)
        holds = {
            "moe": model.is_moe,
            "packed": False,  # nothing to say where a design does not
            "low": precision not in ("bf16", "fp16", "fp32"),
            "sharded": "zero3" in (pins.get("sharding"), stack(software).sharding),
        }
        yield Phase(
            tokens=spec.get("tokens") or _to_loss(new, params),
            seq_len=seq_len,
            global_batch=_batch(new, seq_len, params, cluster),
            precision=precision,
            software=_software(new, pins, software, holds) | _released(design.stack),
            optimizer=new.take("optimizer", OPTIMIZER, why),
            pins=pins,
            evaluation_hours=new.take("evaluation_hours", *defaults(PhaseSpec)["evaluation_hours"]),
            from_checkpoint=bool(new.given.get("from_checkpoint")),
            name=spec.get("name") or (f"phase {i + 1}" if len(specs) > 1 else ""),
        )
        assumed += new.assumed


def _to_loss(new: Derived, params) -> float | None:
    """Tokens that bring the model to the loss asked for, the geometric mean of the published
    surfaces; None where no loss is asked for. Raises DesignError for a loss that no surface reaches
    at this size."""
    target = new.given.get("target_loss")
    if target is None:
        return None
    found = tokens_to_loss(float(params.active), target)
    if not found:
        raise DesignError(
            f"{new.section}.target_loss",
            target,
            "a loss that the model's size reaches on enough tokens",
            problem="is below what any published law gives this model",
        )
    tokens = exp(sum(map(log, found.values())) / len(found))
    said = ", ".join(f"{value:.3g} by {law}" for law, value in found.items())
    return new.take(
        "tokens",
        float(f"{tokens:.4g}"),
        f"to a loss of {target:g}, the middle of published laws: {said}",
    )


def _software(new: Derived, pins: dict, name, holds: dict) -> dict:
    """Switches of the software that the design sets, taken out of the pins; the stack's own are
    noted where they decide anything."""
    out = {}
    does = stack(name).software | stack(name).planned
    for switch in switches().values():
        section, _, field = switch.field.partition(".")
        given = (pins.pop if section == "plan" else new.given.get)(field, None)
        own = does.get(switch.name, switch.default)
        if given is not None:
            out |= {switch.name: switch.of(given)} if switch.of(given) != own else {}
        elif field and holds.get(switch.where, True):
            why = "what the stack does: " + switch.meaning
            new.assumed.append(Assumed(switch.field, switch.word(float(own)), why))
    # PyTorch that is not compiled launches a kernel for each operation
    return out | ({"fused_norm": 0.0} if out.get("eager_tp") else {})


def _batch(new: Derived, seq_len: int, params, cluster) -> int:
    """Sequences in one step: as given, or so many tokens, or the usual; as many at each site of
    sites of one size."""
    tokens = new.given.get("global_batch_tokens")
    total = params.total
    shares = cluster.shares
    if tokens is None:
        nodes = max(1, cluster.devices // cluster.devices_per_node)
        size = "4M tokens in a step below" if total < LARGE_PARAMS else "16M tokens in a step from"
        why = f"{size} 100B parameters, in sequences that divide over the nodes ({nodes:,})"
        usual = -(-default_batch(total, seq_len, nodes) // shares) * shares
        batch = new.take("global_batch", usual, why)
        if batch % shares:
            raise DesignError(
                f"{new.section}.global_batch",
                batch,
                f"a multiple of the {shares} sites of one size",
                (batch // shares + 1) * shares,
            )
        return batch
    least = seq_len * shares
    batch = max(1, round(tokens / least)) * shares
    if abs(batch * seq_len / tokens - 1) > 0.5:
        raise DesignError(
            f"{new.section}.global_batch_tokens",
            tokens,
            f"at least {least:,}: a sequence at each site",
            least,
            problem="is less than a sequence",
        )
    if batch * seq_len != tokens:
        why = f"{tokens:,.0f} tokens in whole sequences of {seq_len:,}"
        new.take("global_batch", batch, why)
    return batch


def _precision(new: Derived, pinned, chip) -> str:
    """The format of the products: the phase's, the job's, the plan's, else what the chip has."""
    given = new.given.get("precision")
    if given and pinned and given != pinned:
        raise DesignError(
            "plan.precision",
            pinned,
            f"the precision of the job, {given}, or leave one of the two out",
            given,
            problem=f"contradicts {new.section}.precision {given}",
        )
    usual = "bf16"
    why = "the default"
    if not chip.bf16_flops > 0:
        usual = "fp16"
        why = f"{chip.name} has no bf16"
        if not chip.fp16_flops > 0:
            usual = "fp32"
            why += " and no fp16"
    precision = pinned or new.take("precision", usual, why)
    if precision not in chip.precisions():
        raise DesignError(
            f"{new.section}.precision" if given else "plan.precision",
            precision,
            [p for p in PRECISIONS if p in chip.precisions()],
            problem=f"is not a unit that {chip.name} has",
        )
    return precision


def _stack(design, assumed):
    spec = design.stack
    if spec is None:
        assumed.append(
            Assumed(
                "stack",
                None,
                "no software named: constants pooled over all stacks, and a wider band",
            )
        )
        return None
    name = spec if isinstance(spec, str) else spec.id or spec.like
    if name not in stacks():
        raise DesignError("stack", name, list(stacks()), problem="is unknown")
    if stack(name).unmeasured:
        assumed.append(Assumed("stack", name, stack(name).unmeasured))
    return name


def _released(spec) -> dict:
    """The year of the release that a design names, as the switch `released`; empty without one."""
    text = None if isinstance(spec, str) else get(spec, "release")
    if text is None:
        return {}
    if not fullmatch(r"\d\d\.(0[1-9]|1[0-2])", text):
        raise DesignError(
            "stack.release",
            text,
            "year and month in quotes, such as 26.08",
            problem="is no release",
        )
    year, month = map(int, text.split("."))
    return {"released": 2000 + year + (month - 0.5) / 12}


def _family(chip, assumed):
    """Says whose constants stand in where nobody has published a run on this kind of chip."""
    own = family(chip.family)
    if not own.measured:
        assumed.append(
            Assumed(
                "cluster.accelerator",
                own.constants_of,
                f"nobody has published a run on {chip.family}: the constants of the most "
                f"careful measured family, {own.constants_of}, and a wider band",
            )
        )
