"""What a planner would try on a design that misses something: changes, not yet assessed. The number
of each is its effort (`Change`), with the reason beside it."""

from collections.abc import Iterator, Mapping
from math import ceil, floor, isnan, log2, log10
from typing import Any

from .. import catalogue
from ..base.show import params, seconds, several
from ..catalogue.families import family
from ..catalogue.hardware import Fabric, known_link
from ..catalogue.stacks import stacks
from ..catalogue.words import CpType, Offload, Precision, Recompute, Sharding
from ..design.cluster import LARGEST_RACK, Cluster
from ..design.constraints import CONSTRAINTS, Remedy
from ..endure.reliability import GOES_ON, Endurance
from ..physics import sites
from ..physics.bands import known_stack
from ..plans.evaluate import skipped
from ..verdict.assessment import Assessment, Missed
from ..verdict.limits import NearbyBatch, batches_nearby, bubbles
from .changes import Change, all_of, listed
from .recovery import between_sites, near_copies

# fields of a cluster that its chip brings, where they are left out
CHIP_DEFAULTS = (  # what is said of one chip holds for no other: its node and its price
    "cluster.scale_out",
    "cluster.devices_per_node",
    "cluster.scale_up_domain",
    "cluster.nics_per_node",
    "prices.usd_per_device_hour",
    "prices.usd_per_node_hour",
    "prices.owned",
    "prices.spot",
)
OVERLAP = "checkpoint.interval_s"  # saves that overlap are missed under this field
WORTH = 0.005  # of a step: what the way between sites takes from which it is worth a change
FASTER = 1.2  # times the rate from which a fabric is another one
HOST_ENOUGH = 2e12  # bytes of host memory a node that are not added to
SHORT = 4096  # tokens of a sequence that is not halved
CONFIRM = "(to be confirmed by an ML specialist)"
WHOLE = "whole batch"  # kind of the changes that put idle devices to work
Misses = Mapping[str, Missed]  # constraints that are missed, by field


def misses(assessment: Assessment) -> dict[str, Missed]:
    """Constraints that are missed, by field."""
    return {m.field: m for m in assessment.missed}


def answered_by(missed: Misses, *figures: str) -> list[Missed]:
    """The missed constraints that these figures answer, in the order of the figures."""
    by_figure = {CONSTRAINTS[name].figure: m for name, m in missed.items() if name in CONSTRAINTS}
    return [by_figure[figure] for figure in figures if figure in by_figure]


def helped(missed: Misses, remedy: Remedy) -> bool:
    """Whether a remedy helps any of the missed constraints."""
    return any(name in CONSTRAINTS and remedy in CONSTRAINTS[name].helped_by for name in missed)


def _speed_helps(assessment: Assessment) -> bool:
    """Whether a faster step meets, or comes nearer to, a constraint that is missed, or makes sense
    of a run."""
    return assessment.verdict == "impractical" or any(m.banded for m in assessment.missed)


def _nothing_to_gain(assessment: Assessment) -> bool:
    """Whether neither speed nor memory is what a design lacks."""
    return assessment.fits and not assessment.met and not _speed_helps(assessment)


def plan_changes(assessment: Assessment) -> Iterator[Change]:
    """Pins let go or changed, sharding, recompute, micro-batch, a faster kind of plan that nobody
    has published."""
    pins = assessment.design.plan.stated()
    if assessment.fits and _speed_helps(assessment):
        yield from _little_published(assessment, pins)
    if not pins or assessment.refusal or _nothing_to_gain(assessment):
        return  # a refusal has looked at the plans without pins
    if not assessment.fits:
        yield from _leaner(pins)
    yield from pins_let_go(assessment)


def pins_let_go(assessment: Assessment) -> Iterator[Change]:
    """Each pin of the plan let go alone, and all of them."""
    pins = assessment.design.plan.stated()
    for name, value in pins.items():
        yield Change(
            effort=1.3,  # whoever pinned it is asked
            text=f"leave plan.{name} open (now {value})",
            set={f"plan.{name}": None},
        )
    if len(pins) > 1:
        yield whole_plan_open(assessment)


def whole_plan_open(assessment: Assessment) -> Change:
    """Every pin of the plan let go."""
    return Change(
        effort=2.0,  # several who pinned something are asked
        text="leave the whole plan open",
        set=assessment.design.freed,
    )


def _little_published(assessment: Assessment, pins: Mapping[str, Any]) -> Iterator[Change]:
    """Faster kinds of plans that nobody, or hardly anybody, has published."""
    better = skipped(assessment.chosen.search) if "tp" not in pins else None
    if better is not None:
        tp = assessment.chosen.search.row(better[0])["tp"]
        yield Change(
            effort=2.7,  # nothing is published of it
            text=f"tp {tp}, across scale-up domains (no large run has been published so: measure "
            "it first)",
            set={"plan.tp": tp},
        )
    plan = assessment.plan
    if plan["cp"] > 1 and "cp_type" not in pins and plan["cp_type"] != CpType.ALL_GATHER:
        yield Change(
            effort=2.6,  # little is published of it
            text="keys and values gathered at once instead of in a ring (little is published: "
            "measure it first)",
            set={"plan.cp_type": CpType.ALL_GATHER.value},
        )


def _leaner(pins: Mapping[str, Any]) -> Iterator[Change]:
    """Pins changed to what takes less memory."""
    sharding = pins.get("sharding")
    if sharding == Sharding.NONE:
        yield Change(
            effort=1.0,  # a setting, and no run pays for it
            text="shard the optimizer states (zero1)",
            set={"plan.sharding": Sharding.ZERO1.value},
        )
    if pins.get("recompute") in (Recompute.NONE, Recompute.SELECTIVE):
        yield Change(
            effort=1.2,  # a setting that costs up to a third of a step
            text="recompute everything",
            set={"plan.recompute": Recompute.FULL.value, "plan.recompute_layers": None},
        )
    if sharding in (Sharding.NONE, Sharding.ZERO1, Sharding.ZERO2):
        yield Change(
            effort=1.4,  # a setting that gathers weights in every micro-batch
            text="shard states, gradients and weights (zero3)",
            set={"plan.sharding": Sharding.ZERO3.value},
        )
    if pins.get("offload") is None:  # another way of running, bound by the host link
        yield Change(
            effort=2.2,
            text="offload optimizer states to host memory",
            set={"plan.offload": Offload.OPTIMIZER.value},
        )
        yield Change(
            effort=2.2,
            text="offload weights, gradients and optimizer states to host memory",
            set={"plan.offload": Offload.OPTIMIZER_PARAMS.value},
        )
    if pins.get("micro_batch", 1) > 1:
        yield Change(
            effort=1.1,  # a setting that may lower the rate of matrix products
            text="micro-batch 1",
            set={"plan.micro_batch": 1, "plan.grad_accum": None},
        )


def site_changes(assessment: Assessment) -> Iterator[Change]:
    """Precision, batch, sequence, a leaner optimizer, host memory, fabric, chip."""
    if _nothing_to_gain(assessment):
        return
    yield from _precisions(assessment)
    yield from _batches(assessment) if assessment.fits else _smaller(assessment)
    if assessment.fits:
        yield from _fabrics(assessment.resolved.cluster)
        yield from _between(assessment)
        yield from _stacks(assessment)
        every = assessment.resolved.model.attention_every
        if every:
            yield Change(
                effort=4.6,  # another model, whose quality nobody has measured
                text=f"one attention layer in {2 * every} in place of {every} (another model; to "
                "be confirmed by an ML specialist)",
                set={"model.attention_every": 2 * every},
            )
    yield from _other_chips(assessment.resolved.cluster)


def _fabrics(cluster: Cluster) -> Iterator[Change]:
    """Faster networks between nodes, as far as the cards reach."""
    most = known_link(cluster.accelerator.host_link_bytes_per_s)  # no card reaches more
    for fabric in faster_fabrics(cluster)[:2]:
        if fabric.device_bytes_per_s <= most:
            yield Change(
                effort=3.3,  # another network is built
                text=f"{fabric.name} between nodes",
                set={"cluster.scale_out": fabric.id},
                kind="fabric",
            )


def _between(assessment: Assessment) -> Iterator[Change]:
    """A faster way between sites, or more local steps, where the exchange takes time."""
    exchange = between_sites(assessment)
    if exchange is None or exchange["share"] < WORTH:
        return
    more = sites.LEAST_STEPS
    if exchange["kind"] == "local-steps":
        more = 2 * exchange["local_steps"]
    steps = min(more, sites.MOST_STEPS)
    if more < 2 * sites.MOST_STEPS:
        yield Change(
            effort=3.15,  # another recipe, with a risk for the loss
            text=f"weights averaged every {steps:,} steps between the sites {CONFIRM}",
            set={"job.sync.kind": "local-steps", "job.sync.local_steps": steps},
            kind="local steps",
        )
    stated = assessment.design.data()["cluster"]["sites"]
    for times in (4, 16):
        gbits = times * exchange["gbits_per_s"]
        fields = {"cluster.site_gbytes_per_s": gbits / 8}
        for i, site in enumerate([] if isinstance(stated, int) else stated):
            if site.get("gbits_per_s", gbits) <= gbits:
                fields[f"cluster.sites.{i}.gbits_per_s"] = gbits
        yield Change(
            # another line between sites is leased, and more for each doubling
            effort=3.4 + log2(times) / 10,
            text=f"{gbits:,.0f} Gbit/s between the sites",
            set=fields,
            kind="site link",
        )


def _other_chips(cluster: Cluster) -> Iterator[Change]:
    """The same count of another chip that does the work of this one."""
    for other in family(cluster.accelerator.family).instead:
        if other != cluster.accelerator.id and other in catalogue.accelerators():
            yield chip_change(cluster, other)


def every_chip(cluster: Cluster) -> Iterator[Change]:
    """The same count of every other chip that ships and has a price."""
    for other, row in catalogue.accelerators().items():
        if other != cluster.accelerator.id and row.status == "shipping" and catalogue.price(other):
            yield chip_change(cluster, other)


def chip_change(cluster: Cluster, other: str) -> Change:
    """The same count of another chip, in whole racks where one link joins its racks."""
    chip = cluster.accelerator
    devices = cluster.devices
    domain = catalogue.accelerator(other).scale_up_domain
    racked = catalogue.devices_per_node(other) < domain <= min(LARGEST_RACK, devices)
    whole = -(-devices // domain) * domain if racked else devices
    fields: dict[str, Any] = {"cluster.accelerator": other} | dict.fromkeys(CHIP_DEFAULTS)
    text = f"{other} instead of {chip.id}"
    if whole != devices:
        fields["cluster.devices"] = whole
        text += f", {whole // domain:,} racks of {domain} ({whole:,} devices)"
    return Change(
        effort=3.6,  # another machine is bought or rented
        text=text,
        set=fields,
        kind="chip",
    )


def _stacks(assessment: Assessment) -> Iterator[Change]:
    """Software that anybody may run on this chip and whose speed is measured, in the place of the
    one that is named."""
    now = assessment.resolved.stack
    if not now:
        return
    kin = family(assessment.resolved.cluster.accelerator.family)
    for name, other in stacks().items():
        if name != now and kin.vendor_stack in other.chips.split() and known_stack(name):
            yield Change(
                effort=2.8,  # another framework is learnt and the model ported
                text=f"{name} instead of {now}",
                set={"stack": name},
                kind="stack",
            )


def _precisions(assessment: Assessment) -> Iterator[Change]:
    """Faster matrix products, or ones whose peak is easier to reach."""
    now = assessment.resolved.main_phase.precision
    chip = assessment.resolved.cluster.accelerator
    half = (Precision.BF16, Precision.FP16)
    every = catalogue.eight_bit(chip)
    for eight in every if now in (*half, *every) else ():
        if eight != now:
            yield Change(
                effort=3.2,  # another recipe, with a risk for the loss
                text=f"{eight.value} matrix products {CONFIRM}",
                set={"job.precision": eight.value},
                kind="precision",
            )
    if now in (Precision.NVFP4, Precision.MXFP4) and every:
        eight = every[-1]
        yield Change(
            effort=3.1,  # another recipe, with less risk for the loss
            text=f"{eight.value} matrix products (more has been trained in them)",
            set={"job.precision": eight.value},
            kind="precision",
        )
    easier = now not in (*half, Precision.FP32) and not isnan(chip.bf16_flops)
    if easier and answered_by(misses(assessment), "mfu_shown"):
        yield Change(
            effort=3.2,  # another recipe, and a slower one
            text="bf16 throughout, whose peak is easier to reach",
            set={"job.precision": Precision.BF16.value},
            kind="precision",
        )


def _batches(assessment: Assessment) -> Iterator[Change]:
    """Other global batches: rounder ones, and multiples."""
    job = assessment.resolved.job_path
    now = assessment.resolved.main_phase.global_batch

    def fields(batch: int) -> dict[str, Any]:
        return {f"{job}.global_batch": batch, f"{job}.global_batch_tokens": None}

    for nearby in batches_nearby(assessment.chosen):
        yield Change(
            effort=_effort_of_a_batch(nearby) + abs(log2(nearby.batch / now)),
            text=f"a global batch of {nearby.batch:,} sequences, {_rounder_in(nearby, assessment)} "
            f"{CONFIRM}",
            set=fields(nearby.batch),
            kind=WHOLE,
        )
    for times in (2, 4, 8) if bubbles(assessment.chosen) else (2,):
        yield Change(
            effort=3.3 + log2(times) / 10,  # another recipe, a tenth more for each doubling
            text=f"a global batch of {times * now:,} sequences {CONFIRM}",
            set=fields(times * now),
            kind="batch",
        )


def _effort_of_a_batch(nearby: NearbyBatch) -> float:
    if nearby.kind == "nodes":
        return 1.5  # a batch a few per cent away, whole in nodes
    if nearby.kind == "plan":
        return 1.55  # as near, and harder to defend
    if nearby.kind == "power":
        return 1.58  # as whole in nodes, and further from the batch asked for
    return 1.6  # as whole in nodes, and bound to today's shape


def _rounder_in(nearby: NearbyBatch, assessment: Assessment) -> str:
    """What a nearby batch is rounder in, and what today's does not divide over."""
    devices = assessment.resolved.cluster.devices
    batch = assessment.resolved.main_phase.global_batch
    uneven = max(batch, devices) % min(batch, devices) != 0
    today = f" ({batch:,} do not divide over {devices:,} devices)" if uneven else ""
    if nearby.kind == "nodes":
        return f"which {nearby.units:,} {nearby.noun} can share{today}"
    if nearby.kind == "plan":
        return f"whose best plan takes least time a token of those near it{today}"
    if nearby.kind == "power":
        return f"a power of two{today}"
    return f"which {nearby.units:,} replicas of today's shape can share{today}"


def _smaller(assessment: Assessment) -> Iterator[Change]:
    """What makes room: shorter sequences, a leaner optimizer, host memory to offload to."""
    resolved = assessment.resolved
    phase = resolved.main_phase
    half = phase.seq_len // 2
    if phase.seq_len >= SHORT:
        yield Change(
            effort=4.5,  # the model learns something else
            text=f"sequences of {half:,} tokens",
            set={f"{resolved.job_path}.seq_len": half},
            kind="sequence",
        )
    if phase.optimizer == "adamw":
        yield Change(
            effort=3.8,  # another recipe, with a risk for the loss
            text=f"optimizer states in 8 bit {CONFIRM}",
            set={"job.optimizer": "adamw-8bit"},
            kind="optimizer",
        )
    if resolved.cluster.host_memory_bytes < HOST_ENOUGH:
        yield Change(
            effort=3.0,  # memory is the part of a node that is easiest to add
            text="2 TB of host memory a node, for offload",
            set={"cluster.host_memory_gb": 2048},
            kind="host",
        )


def device_change(assessment: Assessment, count: int) -> Change:
    """So many devices."""
    ratio = count / assessment.resolved.cluster.devices
    return Change(
        effort=2.5 + abs(log2(ratio)),  # more of the same machine, one more for each doubling
        text=f"{count:,} devices ({ratio:.3g} times)",
        set={"cluster.devices": count},
    )


def fabrics_by_rate(cluster: Cluster) -> list[Fabric]:
    """One fabric for each rate of those that the cluster's nodes are sold with, from slow to fast,
    but its own."""
    every = reversed(catalogue.fabrics_sold_with(cluster.accelerator, cluster.scale_out))
    rows = {row.device_bytes_per_s: row for row in every if row.device_bytes_per_s > 0}
    return [rows[rate] for rate in sorted(rows) if rows[rate].id != cluster.scale_out]


def faster_fabrics(cluster: Cluster) -> list[Fabric]:
    """Fabrics at least a fifth faster than the cluster's own, slowest first."""
    least = FASTER * cluster.scale_out_bytes_per_s
    return [row for row in fabrics_by_rate(cluster) if row.device_bytes_per_s > least]


def scale_out_steps(cluster: Cluster) -> tuple[Fabric | None, Fabric | None]:
    """(next slower, next faster) fabric for the cluster's nodes, None at an end."""
    most = cluster.scale_out_bytes_per_s / FASTER
    slower = [row for row in fabrics_by_rate(cluster) if row.device_bytes_per_s < most]
    return next(reversed(slower), None), next(iter(faster_fabrics(cluster)), None)


def recovery_changes(assessment: Assessment) -> Iterator[Change]:
    """Saves, restarts and spares, where the run loses too much to failures, or where what it loses
    is all that a deadline or budget lacks."""
    missed = misses(assessment)
    if not missed:
        return
    late = answered_by(missed, "likely.days", "likely.cost_usd")
    lost = bool(late) and all(float(m.value) * assessment.goodput <= float(m.limit) for m in late)
    yield from _ceilings_of_saves(assessment, missed)
    if lost or OVERLAP in missed or helped(missed, Remedy.SAVES):
        yield from less_lost(assessment)
    yield from _spares(assessment.endurance, missed, late=bool(late))


def less_lost(assessment: Assessment) -> Iterator[Change]:
    """Saves, restarts and ways of going on by which failures cost less."""
    yield from _cadence(assessment)
    yield from _stores(assessment.resolved.cluster)
    yield from _better_saves()
    yield from _going_on(assessment)


def _going_on(assessment: Assessment) -> Iterator[Change]:
    """Replicas that go on without a lost one, where the run stops whole today."""
    gang = assessment.endurance.life.gang
    if assessment.endurance.recovery in GOES_ON or gang is None or gang.replicas < 2:
        return
    yield Change(
        effort=4.2,  # another way of running, which no launch kit starts
        text=(
            "replicas that go on while a lost one recovers alone (fault-tolerant HSDP or the "
            "like: no kit starts it)"
        ),
        set={"reliability.recovery": "replica"},
    )


def _better_saves() -> Iterator[Change]:
    """Saves that stall less and restarts that take less."""
    for stall in (1.0, 0.2):
        yield Change(
            effort=3.0,  # another checkpoint library
            text=f"asynchronous saves that stall {stall:g} s and are durable in 60 s",
            set={"reliability.checkpoint_stall_s": stall, "reliability.checkpoint_durable_s": 60.0},
        )
    yield Change(
        effort=3.5,  # another launcher and health checks
        text="in-place restart within 60 s, failures seen in 30 s",
        set={"reliability.restart_s": 60.0, "reliability.detect_s": 30.0},
    )
    yield Change(
        effort=3.8,  # another checkpoint library and another launcher
        text="saves that stall 0.2 s, durable in 30 s, and in-place restart within 60 s",
        set={
            "reliability.checkpoint_stall_s": 0.2,
            "reliability.checkpoint_durable_s": 30.0,
            "reliability.restart_s": 60.0,
            "reliability.detect_s": 30.0,
        },
    )


def _cadence(assessment: Assessment) -> Iterator[Change]:
    """Saves as often as pays, where the design pins another interval; copies in the host's memory
    and at a peer between those in the store, where these gain goodput."""
    saves = assessment.design.checkpoint.stated()
    now = saves.get("interval_s")
    if now:
        best = seconds(assessment.endurance.optimum_s)
        yield Change(
            effort=1.7,  # a setting of the framework, which the design pins
            text=f"saves as often as pays, about every {best}, not every {seconds(now)}",
            set={"checkpoint.interval_s": None},
        )
    near = near_copies(assessment)
    if near["gain"] > 0 and "tiers" not in saves:
        every = float(f"{near['interval_s']:.2g}")
        yield Change(
            # the framework's copies in memory are switched on, and a library for those at a peer
            effort=2.3,
            text=f"copies in the host's memory and at a peer every {seconds(every)}, in the store "
            "when it keeps up",
            set={
                "checkpoint.interval_s": None,
                "checkpoint.tiers.l0.every_s": every,
                "checkpoint.tiers.l1": {},
                "checkpoint.tiers.l2": {},
            },
        )


def _stores(cluster: Cluster) -> Iterator[Change]:
    """The next faster store of its kind in the catalogue, for saves."""
    now = catalogue.storage(cluster.storage)
    least = FASTER * now.write_bytes_per_s(cluster.nodes)
    stores = [
        row
        for row in catalogue.storages().values()
        if row.kind == now.kind and row.write_bytes_per_s(cluster.nodes) > least
    ]
    if stores:
        store = min(stores, key=lambda row: float(row.write_bytes_per_s(cluster.nodes)))
        yield Change(
            effort=3.1,  # another store is built
            text=f"{store.name} for checkpoints",
            set={"cluster.storage": store.id},
            kind="storage",
        )


def _ceilings_of_saves(assessment: Assessment, missed: Misses) -> Iterator[Change]:
    """A stall or a recovery as short as is asked for."""
    for stall in answered_by(missed, "endurance.checkpoint_stall_s"):
        limit = stall.limit
        yield Change(
            effort=2.2,  # the framework's asynchronous saves are switched on
            text=f"save into host memory, asynchronously: a stall of {seconds(limit)}",
            set={"reliability.checkpoint_stall_s": limit},
        )
    for recovery in answered_by(missed, "endurance.recovery_s"):
        most = float(recovery.limit)
        detect = min(float(assessment.endurance.detect_s), most / 2)
        restart = most - detect
        yield Change(
            # restarts in place need detection and a launcher that keeps the processes
            effort=2.4,
            text=f"restart in place: detected in {seconds(detect)}, running again "
            f"{seconds(restart)} later",
            set={"reliability.restart_s": restart, "reliability.detect_s": detect},
        )


def _spares(endurance: Endurance, missed: Misses, late: bool) -> Iterator[Change]:
    """As many spare nodes as the run asks for, and as a domain that must be survived holds."""
    now = int(endurance.spares)
    need = max(int(endurance.spares_recommended), now + late)
    wanted = []
    if late or helped(missed, Remedy.SPARES):
        wanted.append((2.0, need))  # nodes that are paid for and idle
    for lost in answered_by(missed, "endurance.copies_survive"):
        domain = int(endurance.domain_nodes.get(str(lost.limit), 1))
        # after the number that the run itself asks for
        wanted += [(2.1, nodes) for nodes in sorted({1, need, domain})]
    for effort, losses in wanted:
        nodes = int(endurance.segments.nodes(endurance.segments.covered(losses)))
        if nodes > now:
            yield Change(
                effort=effort, text=several(nodes, "spare node"), set={"reliability.spares": nodes}
            )


def relaxation(assessment: Assessment, name: str) -> Change | None:
    """One missed constraint moved to what is predicted; None for what is no number."""
    miss = misses(assessment).get(name)
    row = CONSTRAINTS.get(name)
    if miss is None or row is None or not row.relaxed:
        return None
    value, limit = float(miss.value), float(miss.limit)
    effort = 5.0  # what is asked for is given up
    if not row.ceiling:
        relaxed = floor(value * 1000) / 1000
    elif Remedy.MORE_OF_IT in row.helped_by:
        relaxed = _three_digits(value * 1.0005, up=True)
        # days, dollars or power can be found, one more for each doubling
        effort = 4.0 + log2(max(relaxed / limit, 1))
    else:
        relaxed = float(f"{value * 1.01:.3g}")
    return Change(
        effort=effort, text=row.relaxed(row.shown(relaxed)), set={f"constraints.{name}": relaxed}
    )


def relaxations(assessment: Assessment) -> Iterator[Change]:
    """The constraints themselves, moved to what is predicted; fewer tokens; and all constraints at
    once where several are missed."""
    missed = misses(assessment)
    moved = [change for name in missed if (change := relaxation(assessment, name)) is not None]
    yield from moved
    if missed and len(answered_by(missed, "likely.days", "likely.cost_usd")) == len(missed):
        yield from _fewer_tokens(assessment, missed)
    if len(moved) > 1:
        together = all_of(*moved)
        yield Change(
            effort=50.0 + together.effort,  # no advice, but the truth
            text=listed([change.text for change in moved]),
            set=together.set,
        )


def _fewer_tokens(assessment: Assessment, missed: Misses) -> Iterator[Change]:
    """As many tokens as the days and dollars last for, of one phase alone."""
    phases = assessment.resolved.phases
    now = phases[0].tokens
    if len(phases) > 1 or now is None:
        return
    share = min(float(m.limit) / float(m.value) for m in missed.values())
    tokens = _three_digits(now * share * 0.9995, up=False)
    yield Change(
        effort=4.9 - log2(share),  # a worse model, one more for each halving
        text=f"{params(tokens)} tokens, {tokens / now:.2g} of what is asked for {CONFIRM}",
        set={f"{assessment.resolved.job_path}.tokens": tokens},
        kind="less",
    )


def _three_digits(value: float, up: bool) -> float:
    """The next number of three digits above or below a value."""
    unit = 10.0 ** (floor(log10(value)) - 2)
    steps = ceil(value / unit) if up else floor(value / unit)
    return float(f"{steps * unit:.6g}")
