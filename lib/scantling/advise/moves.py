"""What a planner would try on a design that misses something: changes with how much they ask, not
yet assessed. Texts and efforts stand in moves.yaml."""

from collections.abc import Iterator
from dataclasses import field
from json import dumps
from math import ceil, floor, isnan, log2, log10

from .. import catalogue
from ..base.records import record
from ..base.words import Filler, table
from ..catalogue.families import family
from ..catalogue.hardware import known_link
from ..catalogue.stacks import stacks
from ..design.cluster import LARGEST_RACK
from ..design.constraints import CONSTRAINTS
from ..physics import sites
from ..physics.bands import known_stack
from ..plans.evaluate import skipped
from ..verdict.limits import batches_nearby, bubbles
from ..verdict.record import Assessment
from .recovery import between_sites, near_copies

OWN_OF_CHIP = (
    "cluster.scale_out",
    "cluster.devices_per_node",
    "cluster.scale_up_domain",
    "cluster.nics_per_node",
)
SPENT = ("deadline_days", "budget_usd", "max_power_mw")  # what more of it can buy
SAVING = (
    "max_checkpoint_overhead",
    "max_lost_work_s",
    "min_goodput",
    "checkpoint.interval_s",
)  # what better saves and restarts help
SPARING = ("survive", "min_goodput", "max_recovery_s")  # what spares help
WORTH = 0.005  # of a step: what the way between sites takes from which it is worth a change
FASTER = 1.2  # times the rate from which a fabric is another one
HOST_ENOUGH = 2e12  # bytes of host memory a node that are not added to
_FILL = Filler()
SHORT = 4096  # tokens of a sequence that is not halved


@record
class Change:
    """One change: effort orders them, text for the reader, dotted paths and values."""

    effort: float
    text: str
    set: dict = field(hash=False)
    kind: str = ""

    @property
    def key(self) -> str:
        """The fields and values, the same for the same change."""
        return dumps(self.set, sort_keys=True)

    @property
    def gives_way(self) -> bool:
        """True where something that is asked for changes: the job or a constraint."""
        return any(path.startswith("constraints.") for path in self.set) or self.kind in (
            "less",
            "sequence",
        )


def moves() -> dict:
    """Rows of moves.yaml by id."""
    return table(__file__, "moves")


def move(id: str, set: dict | None = None, more: float = 0.0, **facts) -> Change:
    """The change of a row of moves.yaml; `more` effort, facts for its text."""
    row = moves()[id]
    return Change(
        effort=row["effort"] + more,
        text=_FILL.vformat(row["text"], (), facts),
        set=row["set"] if set is None else set,
        kind=row.get("kind", ""),
    )


def all_of(*changes: Change) -> Change:
    """Several changes as one."""
    return Change(
        effort=sum(change.effort for change in changes),
        text=", and ".join(change.text for change in changes),
        set={path: value for change in changes for path, value in change.set.items()},
        kind=next((change.kind for change in changes if change.kind), ""),
    )


def misses(assessment: Assessment) -> dict:
    """Constraints that are missed, by field."""
    return {m.field: m for m in assessment.missed}


def _speed_helps(assessment: Assessment) -> bool:
    """Whether a faster step meets, or comes nearer to, a constraint that is missed, or makes sense
    of a run."""
    return assessment.verdict == "impractical" or any(m.banded for m in assessment.missed)


def _nothing_to_gain(assessment: Assessment) -> bool:
    """Whether neither speed nor memory is what a design lacks."""
    return assessment.fits and not assessment.met and not _speed_helps(assessment)


def plan_changes(assessment: Assessment) -> Iterator:
    """Pins let go or changed, sharding, recompute, micro-batch, a faster kind of plan that nobody
    has published."""
    pins = assessment.design.plan.given()
    if assessment.fits and _speed_helps(assessment):
        yield from _little_published(assessment, pins)
    if not pins or assessment.refusal or _nothing_to_gain(assessment):
        return  # a refusal has looked at the plans without pins
    if not assessment.fits:
        yield from _leaner(pins)
    for name in pins:
        yield move("unpin", {f"plan.{name}": None}, name=name, value=pins[name])
    if len(pins) > 1:
        yield move("unpin-all", assessment.design.freed)


def _little_published(assessment, pins) -> Iterator:
    """Faster kinds of plans that nobody, or hardly anybody, has published."""
    better = skipped(assessment.chosen.found) if "tp" not in pins else None
    if better is not None:
        tp = assessment.chosen.found.row(better[0])["tp"]
        yield move("tp-across", {"plan.tp": tp}, tp=tp)
    if (
        assessment.plan["cp"] > 1
        and "cp_type" not in pins
        and assessment.plan["cp_type"] != "all-gather"
    ):
        yield move("gather")


def _leaner(pins) -> Iterator:
    """Pins changed to what takes less memory: rows of moves.yaml that say where from."""
    for id, row in moves().items():
        if any(pins.get(name) in values for name, values in row.get("pinned", {}).items()):
            yield move(id)
    if pins.get("micro_batch", 1) > 1:
        yield move("micro-batch-1")


def site_changes(assessment: Assessment) -> Iterator:
    """Precision, batch, sequence, a leaner optimizer, host memory, fabric, chip."""
    if _nothing_to_gain(assessment):
        return
    yield from _precisions(assessment)
    yield from _batches(assessment) if assessment.fits else _smaller(assessment)
    cluster = assessment.resolved.cluster
    if assessment.fits:
        most = known_link(cluster.accelerator.host_link_bytes_per_s)  # no card reaches more
        for row in faster_fabrics(cluster)[:2]:
            if row.device_bytes_per_s <= most:
                yield move("fabric", {"cluster.scale_out": row.id}, name=row.name)
        yield from _between(assessment)
        yield from _stacks(assessment)
        if now := assessment.resolved.model.attention_every:
            yield move("attention", {"model.attention_every": 2 * now}, now=now, then=2 * now)
    chip = cluster.accelerator
    for other in family(chip.family).instead:
        if other != chip.id and other in catalogue.accelerators():
            yield _other_chip(cluster, other)


def _between(assessment) -> Iterator:
    """A faster way between sites, or more local steps, where the exchange takes time."""
    way = between_sites(assessment)
    if way is None or way["share"] < WORTH:
        return
    more = 2 * way["local_steps"] if way["kind"] == "local-steps" else sites.LEAST_STEPS
    paths = {"job.sync.kind": "local-steps", "job.sync.local_steps": min(more, sites.MOST_STEPS)}
    if more < 2 * sites.MOST_STEPS:
        yield move("local-steps", paths, steps=paths["job.sync.local_steps"])
    listed = assessment.design.data()["cluster"]["sites"]
    for times in (4, 16):
        rate = times * way["gbits_per_s"]
        paths = {"cluster.site_gbytes_per_s": rate / 8}
        if not isinstance(listed, int):
            at = [i for i, site in enumerate(listed) if site.get("gbits_per_s", rate) <= rate]
            paths |= {f"cluster.sites.{i}.gbits_per_s": rate for i in at}
        yield move("site-link", paths, log2(times) / 10, gbits=rate)


def _other_chip(cluster, other: str) -> Change:
    """The same count of another chip, in whole racks where one link joins its racks."""
    chip = cluster.accelerator
    devices = cluster.devices
    domain = catalogue.accelerator(other).scale_up_domain
    racked = catalogue.devices_per_node(other) < domain <= min(LARGEST_RACK, devices)
    whole = -(-devices // domain) * domain if racked else devices
    fields = {"cluster.accelerator": other} | dict.fromkeys(OWN_OF_CHIP)
    if whole != devices:
        fields["cluster.devices"] = whole
    return move(
        "chip" if whole == devices else "chip-in-racks",
        fields,
        other=other,
        chip=chip.id,
        racks=whole // domain,
        domain=domain,
        devices=whole,
    )


def _stacks(assessment) -> Iterator:
    """Software that anybody may run on this chip and whose speed is measured, in the place of the
    one that is named."""
    now = assessment.resolved.stack
    kin = family(assessment.resolved.cluster.accelerator.family)
    for name, other in stacks().items() if now else ():
        if name != now and kin.vendor_stack in other.chips.split() and known_stack(name):
            yield move("stack", {"stack": name}, name=name, now=now)


def _precisions(assessment) -> Iterator:
    """Faster matrix products, or ones whose peak is easier to reach."""
    now = assessment.resolved.main_phase.precision
    chip = assessment.resolved.cluster.accelerator
    if now in ("bf16", "fp16") and chip.fp8_flops > 0:
        yield move("fp8")
    easier = now not in ("bf16", "fp16", "fp32") and not isnan(chip.bf16_flops)
    if "min_mfu" in misses(assessment) and easier:
        yield move("bf16")


def _batches(assessment) -> Iterator:
    """Other global batches: rounder ones, and multiples."""
    job = assessment.resolved.job_path
    now = assessment.resolved.main_phase.global_batch

    def paths(batch):
        return {f"{job}.global_batch": batch, f"{job}.global_batch_tokens": None}

    for id, batch, facts in batches_nearby(assessment.chosen):
        yield move(f"batch-{id}", paths(batch), abs(log2(batch / now)), batch=batch, **facts)
    for times in (2, 4, 8) if bubbles(assessment.chosen) else (2,):
        yield move("batch", paths(times * now), log2(times) / 10, batch=times * now)


def _smaller(assessment) -> Iterator:
    """What makes room: shorter sequences, a leaner optimizer, host memory to offload to."""
    r = assessment.resolved
    phase = assessment.resolved.main_phase
    half = phase.seq_len // 2
    if phase.seq_len >= SHORT:
        yield move("sequence", {f"{r.job_path}.seq_len": half}, seq_len=half)
    if phase.optimizer == "adamw":
        yield move("optimizer")
    if r.cluster.host_memory_bytes < HOST_ENOUGH:
        yield move("host")


def fabrics_by_rate() -> list:
    """One scale-out fabric of the catalogue for each rate, from slow to fast."""
    every = reversed(catalogue.fabrics("scale-out").values())
    rows = {row.device_bytes_per_s: row for row in every if row.device_bytes_per_s > 0}
    return [rows[rate] for rate in sorted(rows)]


def faster_fabrics(cluster) -> list:
    """Fabrics at least a fifth faster than the cluster's own, slowest first."""
    least = FASTER * cluster.scale_out_bytes_per_s
    return [row for row in fabrics_by_rate() if row.device_bytes_per_s > least]


def scale_out_steps(cluster) -> tuple:
    """(next slower, next faster) fabric of the catalogue, None at an end."""
    most = cluster.scale_out_bytes_per_s / FASTER
    slower = [row for row in fabrics_by_rate() if row.device_bytes_per_s < most]
    return next(reversed(slower), None), next(iter(faster_fabrics(cluster)), None)


def recovery_changes(assessment: Assessment) -> Iterator:
    """Saves, restarts and spares, where the run loses too much to failures, or where what it loses
    is all that a deadline or budget lacks."""
    missed = misses(assessment)
    if not missed:
        return
    late = [missed[name] for name in ("deadline_days", "budget_usd") if name in missed]
    lost = bool(late) and all(m.value * assessment.goodput <= m.limit for m in late)
    yield from _ceilings_of_saves(assessment, missed)
    if lost or missed.keys() & set(SAVING):
        yield from _cadence(assessment)
        yield from _stores(assessment.resolved.cluster)
        for stall in (1.0, 0.2):
            yield move(
                "saves",
                {"reliability.checkpoint_stall_s": stall, "reliability.checkpoint_durable_s": 60.0},
                stall=stall,
            )
        yield move("restarts")
        yield move("saves-and-restarts")
    yield from _spares(assessment.endurance, missed, bool(late))


def _cadence(assessment) -> Iterator:
    """Saves as often as pays, where the design pins another interval; copies in the host's memory
    and at a peer between those in the store, where these gain goodput."""
    saves = assessment.design.checkpoint.given()
    now = saves.get("interval_s")
    if now:
        yield move(
            "interval",
            {"checkpoint.interval_s": None},
            now=now,
            best=assessment.endurance.optimum_s,
        )
    near = near_copies(assessment)
    if near["gain"] > 0 and "tiers" not in saves:
        every = float(f"{near['interval_s']:.2g}")
        yield move(
            "tiers",
            {
                "checkpoint.interval_s": None,
                "checkpoint.tiers.l0.every_s": every,
                "checkpoint.tiers.l1": {},
                "checkpoint.tiers.l2": {},
            },
            every=every,
        )


def _stores(cluster) -> Iterator:
    """The next faster store of its kind in the catalogue, for saves."""
    now = catalogue.storage(cluster.storage)

    def rate(row):
        return row.write_bytes_per_s(cluster.nodes)

    rows = (r for r in catalogue.storages().values() if r.kind == now.kind)
    for row in sorted((r for r in rows if rate(r) > FASTER * rate(now)), key=rate)[:1]:
        yield move("storage", {"cluster.storage": row.id}, name=row.name)


def _ceilings_of_saves(assessment, missed) -> Iterator:
    """A stall or a recovery as short as is asked for."""
    if "max_checkpoint_stall_s" in missed:
        limit = missed["max_checkpoint_stall_s"].limit
        yield move("stall", {"reliability.checkpoint_stall_s": limit}, limit=limit)
    if "max_recovery_s" in missed:
        limit = missed["max_recovery_s"].limit
        detect = min(float(assessment.endurance.detect_s), limit / 2)
        restart = limit - detect
        yield move(
            "recover",
            {"reliability.restart_s": restart, "reliability.detect_s": detect},
            detect=detect,
            restart=restart,
        )


def _spares(endurance, missed, late: bool) -> Iterator:
    """As many spare nodes as the run asks for, and as a domain that must be survived holds."""
    now = int(endurance.spares)
    need = max(int(endurance.spares_recommended), now + late)
    wanted = [("spares", need)] if late or missed.keys() & set(SPARING) else []
    if "survive" in missed:
        rack = max(map(int, endurance.domain_nodes.values()), default=1)
        wanted += [("spares-of-a-domain", nodes) for nodes in sorted({1, need, rack})]
    for id, asked in wanted:
        nodes = int(endurance.segments.nodes(endurance.segments.covered(asked)))
        if nodes > now:
            yield move(id, {"reliability.spares": nodes}, nodes=nodes)


def relaxation(assessment: Assessment, name: str) -> Change | None:
    """One missed constraint moved to what is predicted; None for what is no number."""
    miss = misses(assessment).get(name)
    row = CONSTRAINTS.get(name)
    if miss is None or row is None or not row.relaxed:
        return None
    id = "relax"
    more = 0.0
    if not row.ceiling:
        value = floor(miss.value * 1000) / 1000
    elif name in SPENT:
        value = _three_digits(miss.value * 1.0005, ceil)
        id = "relax-spent"
        more = log2(max(value / miss.limit, 1))
    else:
        value = float(f"{miss.value * 1.01:.3g}")
    return move(
        id, {f"constraints.{name}": value}, more, words=row.relaxed.format(limit=row.shown(value))
    )


def relaxations(assessment: Assessment) -> Iterator:
    """The constraints themselves, moved to what is predicted; fewer tokens; and all constraints at
    once where several are missed."""
    missed = misses(assessment)
    resolved = assessment.resolved
    moved = [c for name in missed if (c := relaxation(assessment, name)) is not None]
    yield from moved
    if missed and missed.keys() <= {"deadline_days", "budget_usd"} and len(resolved.phases) == 1:
        now = resolved.phases[0].tokens
        share = min(m.limit / m.value for m in missed.values())
        tokens = _three_digits(now * share * 0.9995, floor)
        yield move(
            "tokens",
            {f"{resolved.job_path}.tokens": tokens},
            -log2(share),
            tokens=tokens,
            share=tokens / now,
        )
    if len(moved) > 1:
        every = all_of(*moved)
        yield move(
            "relax-all", every.set, every.effort, words=listed([change.text for change in moved])
        )


def listed(words: list) -> str:
    """Words as a list: a, b and c."""
    *head, last = words
    return f"{', '.join(head)} and {last}" if head else last


def _three_digits(value: float, rounding) -> float:
    """The next number of three digits above (math.ceil) or below (math.floor) a value."""
    unit = 10.0 ** (floor(log10(value)) - 2)
    return float(f"{rounding(value / unit) * unit:.6g}")
