"""What has been read of a line so far."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scantling.base.records import Assumed, Lines
from scantling.base.units import DAY_S
from scantling.catalogue.stacks import stacks
from scantling.catalogue.words import (
    ADAPTED,
    OFFLOADS,
    POLICIES,
    RECOMPUTES,
    SCHEDULES,
    SHARDINGS,
    Method,
)
from scantling.design.line_reading import Read, Unread

from .match import Match
from .open_questions import Asking
from .readers import Chip, in_thousands
from .rule import Rule
from .topics import Topic
from .units import SECONDS

# what fields are worked out from when all has been read
FACTS = (
    "accelerator",
    "memory",
    "instance",
    "nodes",
    "racks",
    "nvlink",
    "fabric",
    "rate",
    "rate_of",
    "maker",
    "examples",
    "example_tokens",
    "epochs",
    "steps",
    "tokens_of_epoch",
    "tokens_per_param",
    "trillions",
    "tokens_per_s",
    "tflops",
    "tflops_alone",
    "group",
    "then",
    "no_ib",
    "spares_of_each",
    "rate_before",
    "rate_after",
    "alike",
    "tokens_each",
    "tokens_per_s_node",
    "device_hours",
    "node_hours",
    "bare_sum",
    "hours_of",
    "mfu",
    "mtbf_s",
    "node_mtbf_s",
    "device_mtbf_s",
    "mfu_wished",
    "mfu_seen",
    "of_them",
    "of_each",
    "taken_back_s",
    "adapter_rank",
    "flops",
    "changed",
    "by",
    "share",
    "behind",
    "years",
    "owned",
    "capex_each",
    "pace",
    "begun",
    "added",
    "added_nodes",
    "active_beside",
    "host_gb_each",
    "apart_km",
    "no_currency",
)
UNUSED = "no rule reads it"
TURNED = "a negation or bound that no rule reads: what is meant?"
NEGATED = "not asked for, and not planned unless it is"
OF_A_POLICY = "a policy is planned with all its weights, not with adapters: is that meant?"
SECOND_CHIP = "a run is planned on one kind of accelerator: which one?"


class Clash(NamedTuple):
    """Two values of one thing."""

    path: str
    one: Any
    two: Any
    words: str  # that gave the second


class Either(NamedTuple):
    """Another value of a field, joined by or."""

    path: str
    value: Any
    words: str


class OtherPlan(NamedTuple):
    """Settings that an or sets beside those of the plan."""

    settings: dict[str, Any]
    words: str


class Asked(NamedTuple):
    """A question of the line."""

    topic: Topic
    words: str
    place: int = 0  # where the words begin


@dataclass
class Notes:
    """What the rules have gathered so far: fields, facts that need each other, the words that set
    each, what was read, what was assumed, what is asked about, and what is asked."""

    fields: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)  # field or fact -> the words that set it
    read: list[Read] = field(default_factory=list)
    ignored: list[Read] = field(default_factory=list)
    assumed: list[Assumed] = field(default_factory=list)
    clashes: list[Clash] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    either: list[Either] = field(default_factory=list)
    questions: list[Asked] = field(default_factory=list)
    asking: list[Asking] = field(default_factory=list)  # questions that no rule took
    as_given: set[str] = field(default_factory=set)  # fields that hold a name no catalogue knows
    second: Chip | None = None  # of another kind than the one before, where it was read last
    last: str = ""  # the field or fact that was set last
    text: str = ""  # as it is read, with its numbers and words as English has them
    place: int = 0  # where the words begin that are read now
    places: dict[str, int] = field(default_factory=dict)  # where the words of a field begin
    supposed: list[Either] = field(default_factory=list)  # what might be otherwise
    plan: list[str] = field(default_factory=list)  # fields of the plan that others stand beside
    plans: list[OtherPlan] = field(default_factory=list)  # which an or sets beside it

    def note(self, words: str, path: str = "", value: Any = None, why: str = "") -> None:
        """What some words were taken to mean."""
        self.read.append(Read(words, path, value, why))

    def ignore(self, words: str, why: str) -> None:
        """Words that set nothing, and why."""
        entry = Read(words, "", None, why)
        if entry not in self.ignored:
            self.ignored.append(entry)

    def ask(self, words: str, question: str, choices: Lines = ()) -> None:
        """Words that decide and have no field."""
        entry = Unread(words=words, question=question, choices=choices)
        if entry not in self.unread:
            self.unread.append(entry)

    def take_back(self, path: str) -> None:
        """Leave a field out that was read."""
        del self.fields[path]
        self.read[:] = [read for read in self.read if read.field != path]

    def leave_open(self, path: str, question: str, choices: Lines = ()) -> None:
        """Ask about a field in place of setting it."""
        self.take_back(path)
        self.ask(self.words[path], question, choices)

    @property
    def is_sized(self) -> bool:
        """Whether a model is named, or its size or layers are said."""
        return bool(self.fields.keys() & {"model", "model.like", "model.size", "model.layers"})

    def assume(self, path: str, value: Any, why: str) -> None:
        """A reading that was a choice."""
        self.assumed.append(Assumed(path, value, why))

    def set(self, path: str, value: Any, words: str, why: str = "") -> None:
        """A field or fact is `value`; a second, different value is a clash. InfiniBand and its
        generation may be said apart, and so may a chip and its memory."""
        if path == "rate_of" and self.last not in _RATED:
            self.ignore(words, UNUSED)  # of something else than the network's rate
            return
        is_fact = path in FACTS
        values = self.facts if is_fact else self.fields
        old = values.get(path, value)
        if path == "fabric" and "ib" in (old, value) and old[:2] == value[:2]:
            old = value = max(old, value, key=len)
        if isinstance(old, Chip) and isinstance(value, Chip):
            joined = old.joined(value)
            if joined is not None:
                old = value = joined
        if path == "job.method" and old != value and self._of_adapters(str(old), value, words):
            return
        if old != value:
            self.clashes.append(Clash(path, old, value, words))
        values[path] = value
        self.words[path] = words
        self.places[path] = self.place
        self.last = path
        if not is_fact:
            self.note(words, path, value, why)

    def _of_adapters(self, one: str, other: str, words: str) -> bool:
        """Adapters beside what they are trained by: preferences, which the frozen base judges too
        with the adapters off; a policy with adapters is asked about."""
        trained, adapters = (other, one) if one in ADAPTED else (one, other)
        if adapters not in ADAPTED or trained in ADAPTED:
            return False
        if trained in POLICIES:
            self.fields["job.method"] = trained
            self.ask(words, OF_A_POLICY, ("job.method",))
        elif trained == Method.DPO:
            self.fields["job.method"] = trained
            bits = 4 if adapters == Method.QLORA else 16
            self.set("job.adapter.base_bits", bits, words, "adapters beside a frozen base")
        else:
            return False
        return True

    def follow(self, rule: Rule, match: Match) -> None:
        """Do what a rule says with its match."""
        if rule.topic is not None:
            self.questions.append(Asked(rule.topic, match.words, self.place))
        if rule.asks:
            self.ask(match.words, rule.asks, rule.choices)
            if not rule.sets:
                return
        values = values_of(rule, match)
        if self._is_second_chip(values):
            self.ask(match.words, SECOND_CHIP)
            self.second = values["accelerator"]
            return
        self.second = None
        for path, value in values.items():
            self.set(path, value, match.words, rule.why)
        if not rule.sets:
            self.note(match.words, why=rule.why or (rule.topic or ""))

    def _is_second_chip(self, values: Mapping[str, Any]) -> bool:
        """Whether a chip of another kind than the one before is named."""
        old = self.facts.get("accelerator")
        new = values.get("accelerator")
        return isinstance(old, Chip) and isinstance(new, Chip) and old.is_another(new)

    def alternative(self, rule: Rule, match: Match, words: str) -> bool:
        """Take a match as another value of what was read before it; False where it is none. Of two
        chips behind one that was read, the second may be that one."""
        chip = values_of(rule, match).get("accelerator")
        if self.second is not None and isinstance(chip, Chip):
            first = self.facts["accelerator"]
            self.unread.pop()
            self.either.append(Either("accelerator", self.second, words))
            self.second = None
            if isinstance(first, Chip) and chip.is_another(first):
                self.either.append(Either("accelerator", chip, words))
            return True
        taken = False
        values = values_of(rule, match)
        if self._is_other_rent(values):
            self.follow(rule, match)
            return True
        if "job.tokens" in values and "trillions" in self.facts and "job.tokens" not in self.fields:
            self.set("job.tokens", float(self.facts.pop("trillions")), self.words["trillions"])
        counted = (path for path in _COUNTS if path in self.facts or path in self.fields)
        if "of_them" in values and (path := next(counted, None)) is not None:
            values[path] = values.pop("of_them")
        self._whole_weights(values)
        self._as_stacks(values)
        known = self.facts | self.fields
        differs = any(known.get(path, value) != value for path, value in values.items())
        for path, value in values.items():
            if path in known and (known[path] != value or differs and path in _COUNTS):
                self.either.append(Either(path, value, words))
                taken = True
            elif path == "rate" and taken:  # of the other network
                self.either.append(Either(path, value, words))
            elif path not in known and taken:
                self.set(path, value, words)
        return taken

    def begin_plan(self, rule: Rule, match: Match, words: str, since: int) -> bool:
        """Take a match behind an or as the first setting of another plan; False where it is none of
        a plan, or the clause, which begins at `since`, has none before it."""
        values = values_of(rule, match)
        before = [path for path in self.fields if _of_plan(path) and self.places[path] >= since]
        if not before and not self.plans or not values or not all(map(_of_plan, values)):
            return False
        if self._names_a_stack(values):
            return False
        self.plan += [path for path in before if path not in self.plan]
        self.plans.append(OtherPlan(values, words))
        return True

    def goes_on(self, rule: Rule, match: Match) -> bool:
        """Take a match as a further setting of the other plan; False where it is none."""
        values = values_of(rule, match)
        if not self.plans or not values or not all(map(_of_plan, values)):
            return False
        self.plans[-1].settings.update(values)
        return True

    def settle_plans(self) -> None:
        """Plans beside each other, as columns: what only one of them has, the others have as a plan
        without it has; what the first says holds for those that set something of it otherwise."""
        paths = [*self.plan, *(path for other in self.plans for path in other.settings)]
        for path in dict.fromkeys(paths):
            words, first = self.plans[0].words, path in self.plan
            without = WITHOUT.get(path)
            here = self.fields[path] if first else without
            others = [
                other.settings.get(
                    path, here if any(name in other.settings for name in self.plan) else without
                )
                for other in self.plans
            ]
            if here is None or None in others:
                self.ask(words, f"which plans is {path} of?", (path,))
            elif any(value != here for value in others):
                if not first:
                    self.set(path, here, words, "the plan without it")
                self.either += [Either(path, value, words) for value in others]
            elif not first:
                self.set(path, here, words)
        if self.plans and not self.either and not self.unread:
            self.ask(self.plans[0].words, "it is what is planned without it: what differs?")

    def suppose(self, rule: Rule, match: Match) -> bool:
        """Take a match as what might be otherwise; False where it sets nothing."""
        values = values_of(rule, match)
        self.supposed += [Either(path, value, match.words) for path, value in values.items()]
        return bool(values)

    def settle_supposed(self) -> None:
        """What might be otherwise is another value of what the line says, or of what a plan has
        without it; anything else is what the line says."""
        of_networks = {e.words for e in self.supposed if e.path == "fabric"}
        for path, value, words in self.supposed:
            path = "job.tokens" if path == "trillions" and "job.tokens" in self.fields else path
            known = (self.facts | self.fields).get(path)
            if known is not None and known != value:
                self.either.append(Either(path, value, words))
            elif known is None and words in of_networks and path in ("fabric", "rate"):
                self.either.append(Either(path, value, words))
            elif known is None and (path in AS_PLANNED or WITHOUT.get(path, value) != value):
                self.either.append(Either(path, value, words))
            elif known is None and path == "rate":
                self.ask(words, "in place of which network (cluster.scale_out)?")
            elif known is None:
                self.set(path, value, words)

    def _whole_weights(self, values: dict[str, Any]) -> None:
        """Tuning of all weights beside adapters is a method of its own."""
        fields = self.fields
        if values.get("job.from_checkpoint") and "job.method" in fields:
            del values["job.from_checkpoint"]
            values["job.method"] = Method.SFT.value
        elif values.get("job.method") in ADAPTED and fields.get("job.from_checkpoint"):
            fields.setdefault("job.method", Method.SFT.value)

    def _as_stacks(self, values: dict[str, Any]) -> None:
        """FSDP beside a software stack is PyTorch's own: FSDP or Megatron."""
        sharding = "plan.sharding"
        if "stack" in values and self.last == sharding and _is_fsdp(self.words[sharding]):
            del self.fields[sharding]
            self.read[:] = [read for read in self.read if read.field != sharding]
            self.set("stack", _fsdp_stack(), self.words[sharding])
        elif self._names_a_stack(values):
            del values[sharding]
            values["stack"] = _fsdp_stack()

    def _is_other_rent(self, values: Mapping[str, Any]) -> bool:
        """Whether a price is that of devices that are taken back beside one of those that are not,
        or the other way round: a design has both."""
        new, old = _RENTS & values.keys(), _RENTS & self.fields.keys()
        return bool(new and old and not new & old)

    def _names_a_stack(self, values: Mapping[str, Any]) -> bool:
        """Whether FSDP is named beside a stack that is, or shards in the same way."""
        same = values.get("plan.sharding") == "zero3" == self.fields.get("plan.sharding")
        return "stack" in self.fields and (
            same or self.last == "stack" and values.get("plan.sharding") == "zero3"
        )

    def other_number(self, value: float, words: str, unit: str = "") -> bool:
        """Take a number as another value of the field that was set last; False where it holds
        none, or another unit's. Thousands of a sequence are 1,024 behind a power of two."""
        path, old = self.last, (self.facts | self.fields).get(self.last)
        if supposing := bool(self.supposed):
            path, old, _ = self.supposed[-1]
        if unit == "k":
            value = in_thousands(int(value)) if path == "job.seq_len" else 1000 * value
        if not isinstance(old, (int, float)) or isinstance(old, bool):
            return False
        if unit in SECONDS:
            if not path.endswith(("_s", "_days")):
                return False
            value *= SECONDS[unit] / (DAY_S if path.endswith("_days") else 1)
        (self.supposed if supposing else self.either).append(Either(path, type(old)(value), words))
        return True

    def other_word(self, value: str, words: str) -> bool:
        """Take a word as another form or memory of the chip, or another value of the field that was
        set last; False where it is none."""
        chip = self.facts.get("accelerator")
        if isinstance(chip, Chip) and (other := chip.of_word(value)) is not None:
            self.either.append(Either("accelerator", other, words))
            return True
        old = self.fields.get(self.last)
        if value not in _WORDS_OF.get(self.last, ()) or value == old:
            return False
        self.either.append(Either(self.last, value, words))
        return True


def _fsdp_stack() -> str:
    """The software stack that is FSDP alone."""
    return next(stack.name for stack in stacks().values() if stack.kit == "fsdp")


def _is_fsdp(words: str) -> bool:
    """Whether words of a sharding name FSDP."""
    return words.lower().startswith("fsdp")


_RENTS = {"prices.usd_per_device_hour", "prices.spot.usd_per_device_hour"}
# a design has one in any case
AS_PLANNED = ("job.precision", "job.seq_len", "job.global_batch", "cluster.scale_out")
# what a run has where a setting is left out that may be tried
WITHOUT: Mapping[str, Any] = {
    "job.precision": "bf16",
    "job.optimizer": "adamw",
    "plan.offload": "none",
    "plan.recompute": "none",
    "plan.schedule": "1f1b",
    "plan.sharding": "zero1",
    "plan.moe_dispatcher": "alltoall",
    "plan.tp": 1,
    "plan.pp": 1,
    "plan.cp": 1,
    "plan.ep": 1,
    "plan.vpp": 1,
    "cluster.oversubscription": 1.0,
}


_COUNTS = ("racks", "nodes", "cluster.devices")  # of a machine


def _of_plan(path: str) -> bool:
    """Whether a field is a setting of the plan."""
    return path.startswith("plan.") or path in ("job.precision", "job.optimizer")


_RATED = ("rate", "fabric", "no_ib", "cluster.nics_per_node")
_WORDS_OF = {
    "plan.recompute": RECOMPUTES,
    "plan.schedule": SCHEDULES,
    "plan.sharding": SHARDINGS,
    "plan.offload": OFFLOADS,
}


def values_of(rule: Rule, match: Match) -> dict[str, Any]:
    """What the readers of a rule make of a match, without those that found nothing."""
    read = {path: reader(match) for path, reader in rule.sets.items()}
    return {path: value for path, value in read.items() if value is not None}
