"""How the fields that a design leaves out of `job`, or of one of its phases, are filled in, each
with the rule that did it."""

from collections.abc import Mapping
from math import ceil, exp, log, log2
from re import fullmatch
from typing import Any, NamedTuple

import numpy as np

from ..base.errors import DesignError
from ..base.records import Assumed, Derived
from ..catalogue.hardware import Accelerator
from ..catalogue.models.shape import Model, Params
from ..catalogue.scaling_laws import tokens_to_loss
from ..catalogue.stacks import Stack, software_switches
from ..catalogue.words import (
    NARROW_PRECISIONS,
    PRECISIONS,
    OffloadModule,
    Recompute,
    RecomputeModule,
    Remat,
    Sharding,
)
from .cluster import Cluster
from .design import Design
from .fields import defaults
from .implied import implied, layers_in_16bit, with_moments
from .pins import pins_from
from .resolved import Phase
from .schema import PhaseSpec, StackSpec

SEQ_LEN = 4096  # tokens, where neither the job nor the model's row has a context
SMALL_BATCH_TOKENS = 4 * 2**20
LARGE_BATCH_TOKENS = 16 * 2**20
LARGE_PARAMS = 100e9
OPTIMIZER = "adamw"
# MaxText's policies that repeat whole layers, and those that send what they keep to the host, with
# the modules that it is the inputs of
WHOLE_POLICIES = (Remat.FULL, Remat.QKV_PROJ_OFFLOADED)
HOST_POLICIES: Mapping[str, tuple[str, ...]] = {
    Remat.MINIMAL_OFFLOADED: (OffloadModule.CORE_ATTN.value, OffloadModule.MLP_ACT.value),
    Remat.QKV_PROJ_OFFLOADED: (OffloadModule.CORE_ATTN.value,),
}
# fields of the job that each phase has by itself
_OF_EACH_PHASE = ("tokens", "seq_len", "global_batch", "global_batch_tokens")
_SHARDED = (Sharding.ZERO3, Sharding.HSDP)


class Machine(NamedTuple):
    """What all phases of a design have in common."""

    model: Model
    params: Params
    cluster: Cluster
    software: Stack  # whose code runs on the chip


def build_phases(design: Design, machine: Machine) -> tuple[tuple[Phase, ...], list[Assumed]]:
    """The phases of a design, and what had to be assumed. Raises DesignError."""
    job = design.job.stated()
    assumed: list[Assumed] = []
    phases = []
    stretches = job.get("phases")
    common = {k: v for k, v in job.items() if k != "phases" and k not in _OF_EACH_PHASE}
    for i, stretch in enumerate(stretches or [job]):
        of_phase = {k: v for k, v in stretch.items() if k != "phases"}
        new = Derived(common | of_phase, f"job.phases.{i}" if stretches else "job")
        plan = design.plan.stated() | stretch.get("plan", {})
        pins = _pins(implied(plan, machine.model, machine.cluster.devices))
        usual_name = f"phase {i + 1}" if stretches and len(stretches) > 1 else ""
        phases.append(_phase(new, pins, machine, design.stack, usual_name))
        assumed += new.assumed
    return tuple(phases), assumed


NEAR_BATCH = 0.05  # share by which a batch given in tokens may move to divide over the devices
NEAR_USUAL = 0.125  # the same of a batch that nobody gave
MOST_COUNTS = 10_000_000  # of batches that are looked at one by one


def _phase(
    new: Derived,
    pins: dict[str, Any],
    machine: Machine,
    stack: str | StackSpec | None,
    usual_name: str,
) -> Phase:
    """One phase; the switches of the software are taken out of the pins."""
    seq_len = _seq_len(new, machine.model)
    precision = _precision(new, pins.get("precision"), machine.cluster.accelerator)
    tokens = new.stated.get("tokens") or _to_loss(new, machine.params)
    batch = _batch(new, seq_len, machine.params, machine.cluster)
    shardings = (pins.get("sharding"), machine.software.sharding)
    concerned = {
        "moe": machine.model.is_moe,
        "packed": False,  # nothing to say where a design does not
        "low": precision in NARROW_PRECISIONS,
        "sharded": Sharding.ZERO3 in shardings,
        "sharded-experts": machine.model.is_moe and (shardings[0] or shardings[1]) in _SHARDED,
    }
    remat = pins.pop("remat", "")
    away = pins.pop("activation_offload", None)
    budget = pins.pop("compile_memory_budget", None)
    moments = pins.pop("moments", None)
    graph_modules = pins.pop("graph_modules", None) or ()
    keep = pins.pop("keep_16bit", None)
    software = _software(new, pins, machine.software, concerned)
    if moments:
        optimizer = with_moments(new.stated.get("optimizer"), moments)
    else:
        why = "the usual one: two fp32 moments and an fp32 copy of the weights"
        optimizer = new.take("optimizer", OPTIMIZER, why)
    hours, rule = defaults(PhaseSpec)["evaluation_hours"]
    return Phase(
        tokens=tokens,
        seq_len=seq_len,
        global_batch=batch,
        precision=precision,
        software=software | _released(stack),
        optimizer=optimizer,
        pins=pins_from(pins),
        evaluation_hours=new.take("evaluation_hours", hours, rule),
        from_checkpoint=bool(new.stated.get("from_checkpoint")),
        name=new.stated.get("name") or usual_name,
        offloaded_layers=_offloaded_layers(away, remat, machine.model),
        offloaded_modules=_offloaded_modules(away, remat),
        remat=remat,
        memory_budget=budget,
        graph_modules=tuple(graph_modules),
        kept_16bit=layers_in_16bit(keep, machine.model.layers, precision in NARROW_PRECISIONS),
    )


def _offloaded_layers(away: Mapping[str, Any] | None, remat: str, model: Model) -> float:
    """Layers whose activations wait in host memory: those stated, all where an offload names none,
    or where the policy moves what it keeps."""
    if away is None:
        return float(model.layers) if remat in HOST_POLICIES else 0.0
    return float(min(away.get("layers", model.layers), model.layers))


def _offloaded_modules(away: Mapping[str, Any] | None, remat: str) -> tuple[str, ...]:
    """Modules whose inputs leave; none named is all that the plan keeps."""
    if away is None:
        return HOST_POLICIES.get(remat, ())
    modules = tuple(away.get("modules", ()))
    return () if OffloadModule.LAYERS in modules else modules


def _pins(stated: Mapping[str, Any]) -> dict[str, Any]:
    """The pins of a phase, with those that others imply: modules that are recomputed, and the runs
    of layers that make the stages."""
    pins = dict(stated)
    modules = pins.get("recompute_modules")
    if modules:
        whole = modules == [RecomputeModule.LAYERS]
        recompute = Recompute.FULL if whole else Recompute.SELECTIVE
        pins = {"recompute": recompute.value, **pins}
    remat = pins.get("remat")
    if remat:
        recompute = Recompute.FULL if remat in WHOLE_POLICIES else Recompute.SELECTIVE
        if pins.get("recompute", recompute.value) != recompute.value or modules:
            raise DesignError(
                "plan.remat",
                remat,
                "a policy alone: leave recompute and recompute_modules out",
                problem=f"means recompute {recompute.value}, and another is stated beside it",
            )
        pins = {"recompute": recompute.value, **pins}
    runs = len(pins.get("layout", ()))
    if runs:
        pp = pins.get("pp") or runs // pins.get("vpp", 1)
        pins = {"pp": pp, "vpp": runs // pp or 1, **pins}
    return pins


def _seq_len(new: Derived, model: Model) -> int:
    if model.seq_len:
        return new.take("seq_len", model.seq_len, "the catalogue's context for this model")
    return new.take("seq_len", SEQ_LEN, "not given, and the model's row has none")


def _to_loss(new: Derived, params: Params) -> float | None:
    """Tokens that bring the model to the loss asked for, the geometric mean of the published
    surfaces; None where no loss is asked for. Raises DesignError for a loss that no surface reaches
    at this size."""
    target = new.stated.get("target_loss")
    if target is None:
        return None
    by_law = tokens_to_loss(float(params.active), target)
    if not by_law:
        raise DesignError(
            f"{new.section}.target_loss",
            target,
            "a loss that the model's size reaches on enough tokens",
            problem="is below what any published law gives this model",
        )
    tokens = exp(sum(log(tokens) for tokens in by_law.values()) / len(by_law))
    each = ", ".join(f"{tokens:.3g} by {law}" for law, tokens in by_law.items())
    why = f"to a loss of {target:g}, the middle of published laws: {each}"
    return new.take("tokens", float(f"{tokens:.4g}"), why)


def _precision(new: Derived, pinned: str | None, chip: Accelerator) -> str:
    """The format of the products: the phase's, the job's, the plan's, else what the chip has."""
    stated = new.stated.get("precision")
    if stated and pinned and stated != pinned:
        raise DesignError(
            "plan.precision",
            pinned,
            f"the precision of the job, {stated}, or leave one of the two out",
            stated,
            problem=f"contradicts {new.section}.precision {stated}",
        )
    precision = pinned
    if not precision:
        usual, why = _usual_precision(chip)
        precision = new.take("precision", usual, why)
    if precision not in chip.precisions():
        raise DesignError(
            f"{new.section}.precision" if stated else "plan.precision",
            precision,
            [p for p in PRECISIONS if p in chip.precisions()],
            problem=f"is not a unit that {chip.name} has",
        )
    return precision


def _usual_precision(chip: Accelerator) -> tuple[str, str]:
    """The format of a chip's products where a design names none, and why."""
    if chip.bf16_flops > 0:
        return "bf16", "the default"
    if chip.fp16_flops > 0:
        return "fp16", f"{chip.name} has no bf16"
    return "fp32", f"{chip.name} has no bf16 and no fp16"


def _software(
    new: Derived, pins: dict[str, Any], does: Stack, concerned: Mapping[str, bool]
) -> dict[str, float]:
    """Switches of the software that the design sets, taken out of the pins; the stack's own are
    noted where they decide anything (`concerned`: what a switch is for -> whether it does)."""
    stated: dict[str, float] = {}
    usual = {**does.software, **does.planned}
    for switch in software_switches().values():
        section, _, field = switch.field.partition(".")
        value = pins.pop(field, None) if section == "plan" else new.stated.get(field)
        usual_value = usual.get(switch.name, switch.default)
        if value is not None:
            # what the stack's recipes for experts would set is stated though it is the usual value
            if switch.of(value) != usual_value or switch.name in does.mxfp8_experts:
                stated[switch.name] = switch.of(value)
        elif field and concerned.get(switch.where, True):
            why = "what the stack does: " + switch.meaning
            new.assumed.append(Assumed(switch.field, switch.word(float(usual_value)), why))
    if stated.get("eager_tp"):
        # PyTorch that is not compiled launches a kernel for each operation
        stated["fused_norm"] = 0.0
    return stated


def usual_batch_tokens(params: float) -> float:
    """Tokens of a step that nobody stated, by the model's parameters."""
    return SMALL_BATCH_TOKENS if params < LARGE_PARAMS else LARGE_BATCH_TOKENS


def usual_batch(params: float) -> str:
    """`usual_batch_tokens` in words."""
    size = "4M tokens in a step below" if params < LARGE_PARAMS else "16M tokens in a step from"
    return f"{size} 100B parameters"


def default_batch(params: float, seq_len: int, nodes: int) -> int:
    """Sequences in one step when the design gives none.

    About 4M tokens (4 x 2^20) below 100e9 parameters, 16M from there, whatever the plan. A power of
    two where the node count is one. Else, up to 9/8 as many nodes as sequences, a multiple of the
    node count, and of those within an eighth of the aim the one with most factors of two: then
    data-parallel widths that use every node divide it. Beyond, within an eighth of the aim, a
    multiple of a power of two near aim / 64 that has most in common with the node count.
    """
    aim = max(1.0, usual_batch_tokens(params) / seq_len)
    if nodes & (nodes - 1) == 0:
        return int(2 ** round(log2(aim)))
    unit = nodes if nodes <= (1 + NEAR_USUAL) * aim else 2 ** max(0, int(log2(aim / 64)))
    least, most = ((1 + sign * NEAR_USUAL) * aim / unit for sign in (-1, 1))
    counts = np.arange(max(1, ceil(least)), int(most) + 1)
    if not len(counts):
        return unit * max(1, round(aim / unit))
    # factors of two, or those that a batch shares with the nodes
    common = counts & -counts if unit == nodes else np.gcd(counts * unit, nodes)
    batches = unit * counts[common == common.max()]
    return int(batches[np.abs(batches - aim).argmin()])


def _batch(new: Derived, seq_len: int, params: Params, cluster: Cluster) -> int:
    """Sequences in one step: as given, or about so many tokens, or the usual; as many at each site
    of sites of one size."""
    tokens = new.stated.get("global_batch_tokens")
    if tokens is None:
        return _batch_in_sequences(new, seq_len, params, cluster)
    least = seq_len * cluster.shares
    batch = batch_of_tokens(tokens, seq_len, cluster.devices, cluster.shares)
    if abs(batch * seq_len / tokens - 1) > 0.5:
        raise DesignError(
            f"{new.section}.global_batch_tokens",
            tokens,
            f"at least {least:,}: a sequence at each site",
            least,
            problem="is less than a sequence",
        )
    if batch * seq_len != tokens:
        why = (
            f"{tokens:,.0f} tokens in whole sequences of {seq_len:,}, the nearest number that "
            f"divides over {cluster.devices:,} devices"
        )
        new.take("global_batch", batch, why)
    return batch


def batch_of_tokens(tokens: float, seq_len: int, devices: int, shares: int) -> int:
    """Sequences in a step of about so many tokens, a multiple of the sites' shares: of those within
    NEAR_BATCH, that have most factors in common with the devices, the nearest.

    58,594 = 2 x 83 x 353 sequences leave most of 3,648 devices idle, and 58,368 = 16 x 3,648 none.
    """
    aim = tokens / seq_len / shares
    near = max(1, round(aim))
    least, most = max(ceil((1 - NEAR_BATCH) * aim), 1), int((1 + NEAR_BATCH) * aim)
    if most - least >= MOST_COUNTS:
        counts = near // devices * devices + devices * np.arange(2)
    else:
        counts = np.union1d(np.arange(least, most + 1), [near])
    common = np.gcd(counts * shares, devices)
    counts = counts[common == common.max()]
    return int(counts[np.abs(counts - aim).argmin()]) * shares


def _batch_in_sequences(new: Derived, seq_len: int, params: Params, cluster: Cluster) -> int:
    """Sequences in one step, where the design does not count them in tokens."""
    total = float(params.total)
    shares = cluster.shares
    nodes = max(1, cluster.devices // cluster.devices_per_node)
    why = f"{usual_batch(total)}, in sequences that divide over the nodes ({nodes:,})"
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


def _released(spec: str | StackSpec | None) -> dict[str, float]:
    """The year of the release that a design names, as the switch `released`; empty without one."""
    if spec is None or isinstance(spec, str) or spec.release is None:
        return {}
    if not fullmatch(r"\d\d\.(0[1-9]|1[0-2])", spec.release):
        raise DesignError(
            "stack.release",
            spec.release,
            "year and month in quotes, such as 26.08",
            problem="is no release",
        )
    year, month = spec.release.split(".")
    return {"released": 2000 + int(year) + (int(month) - 0.5) / 12}
