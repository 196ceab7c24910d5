"""What a control of the form is: a record of each kind, which says how it stands for a design."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from math import inf
from numbers import Real
from typing import Any

from scantling import catalogue
from scantling.base.quantities.quantity import quantity
from scantling.base.records import at, record
from scantling.base.show import bytes_per_s
from scantling.base.units import GB
from scantling.catalogue.stacks import stacks
from scantling.catalogue.words import Method
from scantling.design.design import Design
from scantling.design.fields import FieldFacts, Kind
from scantling.design.file import inline
from scantling.design.methods import method_of
from scantling.design.resolved import Resolved
from scantling.plans.enumerate import divisors

from . import choices
from .choices import Option, choice, ratio_text, with_value
from .session import Moment

METHODS = {
    Method.PRETRAIN: "pre-training",
    Method.SFT: "fine-tuning, all weights",
    Method.LORA: "LoRA",
    Method.QLORA: "QLoRA, 4-bit base",
    Method.DPO: "DPO, pairs",
    Method.GRPO: "GRPO",
    Method.PPO: "PPO, with a critic",
}


@record
class ControlState:
    """One input as it stands on the page.

    `input_kind` : slider, list, number or text; `options` : what a slider or a list offers;
    `fault` why what the user set is not taken; `asks` whether its values that cannot be are marked
    when it is about to be opened.
    """

    field: str
    label: str
    help: str
    input_kind: str
    value: Any  # as the design file has it
    options: tuple[Option, ...] = ()
    fault: str = ""
    unit: str = ""
    placeholder: str = ""
    pinned: bool = False
    asks: bool = False
    wide: bool = False
    disabled: bool = False
    # what stands in the box beside a slider, to be changed; empty where there is none
    typed: str = ""


@record
class Control:
    """One input of the form: a field of the design, and what it is called.

    Where the design leaves the field out, what is taken for it is `usual` of the design with its
    defaults filled in, or the `figure` of the assessment, or the value that is listed as assumed.
    `swept` controls are inputs of a sweep with the values that they offer, `coarse` ones in larger
    steps; one with an `axis` alone is swept over multiples of its value.
    """

    field: str  # path in the file; of a field of a phase as where the job has one phase
    label: str
    help: str = ""  # the description of the field where it is empty
    live_help: Callable[[Resolved], str] | None = None  # in its place, with figures of the design
    of_phase: bool = False  # whether it stands for the field of the main phase
    unit: str = ""  # that of the field where it is empty
    usual: Callable[[Resolved], Any] | None = None
    figure: str = ""  # key of `design --json`
    swept: bool = False
    coarse: bool = False
    axis: str = ""  # its name as an axis, where that is longer than the label
    axis_unit: str | None = None  # where that is another than `unit`

    def path(self, design: Resolved) -> str:
        """The path of its field in a design."""
        if not self.of_phase:
            return self.field
        return f"{design.job_path}.{self.field.removeprefix('job.')}"

    def state(self, now: Moment) -> ControlState:
        """The control as it stands for the design on the desk."""
        raise NotImplementedError

    def help_text(self, now: Moment) -> str:
        """What is said of it on demand."""
        if self.live_help is not None:
            return self.live_help(now.resolved)
        facts = facts_of(self.field)
        return self.help or (facts.text if facts else self.label)

    def unit_text(self) -> str:
        """The unit of its field."""
        facts = facts_of(self.field)
        return self.unit or (facts.unit if facts else "")

    def computed(self, now: Moment) -> Any:
        """What is taken for the field where the design leaves it out."""
        if self.usual is not None:
            return self.usual(now.resolved)
        if self.figure:
            return at(now.figures, self.figure)
        path = self.path(now.resolved)
        assumed = now.figures.get("assumed", ())
        return next((row["value"] for row in assumed if row["field"] == path), None)

    def stated(self, now: Moment) -> Any:
        """What the design says of the field."""
        return stated(now.design, self.path(now.resolved))

    def _list(
        self,
        now: Moment,
        value: Any,
        options: Iterable[Option],
        *,
        pinned: bool = False,
        asks: bool = False,
        wide: bool = False,
    ) -> ControlState:
        """A list that stands at `value`."""
        return ControlState(
            field=self.path(now.resolved),
            label=self.label,
            help=self.help_text(now),
            input_kind="list",
            value=value,
            options=_holding(value, options),
            pinned=pinned,
            asks=asks,
            wide=wide,
        )

    def _slider(
        self,
        now: Moment,
        value: Any,
        options: Iterable[Option],
        *,
        unit: str = "",
        disabled: bool = False,
        typed: str = "",
    ) -> ControlState:
        """A slider that stands at `value`."""
        return ControlState(
            field=self.path(now.resolved),
            label=self.label,
            help=self.help_text(now),
            input_kind="slider",
            value=value,
            options=_holding(value, options),
            unit=unit,
            disabled=disabled,
            typed=typed,
        )


@record
class Entry(Control):
    """A field as the file has it: a list of its words, or a box to type in, in which what is taken
    where the design says nothing stands in grey. `rows` : the rows of the catalogue that it
    names."""

    rows: Callable[[], Iterable[str]] | None = None

    def state(self, now: Moment) -> ControlState:
        value, usual = self.stated(now), self.computed(now)
        facts, unset = facts_of(self.field), _unset(self.field)
        words: list[Any] = [*self.rows()] if self.rows is not None else words_of(self.field)
        if words and not (facts and facts.several):
            auto = choice(None, unset if usual in (None, "") else f"auto: {_word(usual)}")
            options = [auto, *word_choices(words)]
            return self._list(now, value, options, pinned=value is not None, wide=True)
        if isinstance(usual, Real):
            usual = float(f"{float(usual):.5g}")
        return ControlState(
            field=self.path(now.resolved),
            label=self.label,
            help=self.help_text(now),
            input_kind="number" if facts and facts.unit else "text",
            value="" if value is None else _text(value),
            unit=self.unit_text(),
            placeholder=f"auto {_text(usual)}" if _brief(usual) else unset,
        )


@record
class Slider(Control):
    """A slider over a ladder of values. What stands in the design takes the place of steps `near`
    it, which would come to the same."""

    value: Callable[[Resolved], Any]
    steps: Callable[[Resolved], Iterable[float]]
    short: Callable[[float], str]  # a value beside the slider
    long: Callable[[float], str]  # and read aloud
    near: float = 0.0  # share of the value
    most: Callable[[Resolved], float] | None = None  # upper end of the ladder in a design
    needs: Callable[[Resolved], Any] | None = None  # without it the slider is idle
    typed: bool = False  # whether a number may be typed beside it

    def state(self, now: Moment) -> ControlState:
        design = now.resolved
        value = self.value(design) or 0
        near = self.near * value
        most = inf if self.most is None else self.most(design)
        ladder = [v for v in self.steps(design) if v <= most and not abs(v - value) < near]
        options = [choice(v, self.short(v), long=self.long(v)) for v in with_value(ladder, value)]
        idle = self.needs is not None and not self.needs(design)
        typed = self.short(value).replace(" seq", "").replace(" tok", "") if self.typed else ""
        return self._slider(now, value, options, disabled=idle, typed=typed)


@record
class Rate(Control):
    """A slider whose ladder, `low` to `high`, holds at its place what is taken where the design
    says nothing."""

    low: float
    high: float

    def state(self, now: Moment) -> ControlState:
        value, usual, unit = self.stated(now), self.computed(now), self.unit_text()
        ladder = with_value(choices.decades(self.low, self.high), value)
        steps = [
            choice(v, ratio_text(v), long=f"{ratio_text(v)} {unit}") for v in map(float, ladder)
        ]
        text, long, place = "auto", "as the preset or catalogue has it", 0.0
        if value is None:
            known = "not known" if usual is None else ratio_text(float(usual))
            text, place = known if usual is None else f"auto {known}", usual or 0.0
            long = f"not given: {known} {unit}"
        below = [v for v in ladder if v < place]
        steps.insert(len(below), choice(None, text, long=long))
        return self._slider(now, value, steps, unit=unit)

    def help_text(self, now: Moment) -> str:
        facts = facts_of(self.field)
        assert facts is not None, f"{self.field} is a field of the design"
        return f"{facts.text}, {self.unit_text()}"


@record
class ModelList(Control):
    """The model by name, or its own shape."""

    def state(self, now: Moment) -> ControlState:
        stated, known = now.design.model, choices.models()
        if isinstance(stated, str):
            return self._list(now, stated, known)
        name = now.resolved.model.name
        own = f"{name} (own shape)" if stated.like else f"by size: {name}"
        return self._list(now, "", [choice("", own), *known])


@record
class NetworkRate(Control):
    """What the network gives a device, one direction, as people name it: Gbit/s."""

    def state(self, now: Moment) -> ControlState:
        value = now.resolved.cluster.scale_out_bytes_per_s / GB
        ladder = [v for v in choices.NETWORK_GBYTES_PER_S if abs(v - value) > 1e-3 * value]
        options = [choices.network_rate(v) for v in with_value(ladder, value)]
        return self._slider(now, value, options)

    def help_text(self, now: Moment) -> str:
        fabric = catalogue.fabric(now.resolved.cluster.scale_out)
        rate = bytes_per_s(now.resolved.cluster.scale_out_bytes_per_s)
        return (
            f"Scale-out bandwidth of one device, one direction; now {rate}. Latency and efficiency "
            f"stay those of the fabric, {fabric.name}."
        )


@record
class FabricList(Control):
    """The scale-out networks that this chip is sold with, and those of no provider."""

    def state(self, now: Moment) -> ControlState:
        cluster = now.resolved.cluster
        return self._list(now, cluster.scale_out, choices.fabrics(cluster.accelerator.id))

    def help_text(self, now: Moment) -> str:
        return (
            "Scale-out network between nodes. Choosing one brings its own rate, latency and ports."
        )


@record
class OneOf(Control):
    """One of several that a design always has; a list of what can be done has no value."""

    rows: Callable[[Resolved], Iterable[Option]]
    value: Callable[[Resolved], Any] | None = None

    def state(self, now: Moment) -> ControlState:
        value = "" if self.value is None else self.value(now.resolved)
        return self._list(now, value, self.rows(now.resolved))


@record
class StackList(Control):
    """The software, which the file names alone or beside its release."""

    def state(self, now: Moment) -> ControlState:
        value = self.stated(now)
        if isinstance(value, Mapping):
            value = value.get("id") or value["like"]
        options = [choice(None, "none"), *word_choices(stacks())]
        return self._list(now, value, options, pinned=value is not None, wide=True)


@record
class MethodList(Control):
    """What is trained, and on what."""

    def state(self, now: Moment) -> ControlState:
        options = [choice(method.value, text) for method, text in METHODS.items()]
        return self._list(now, method_of(now.design).value, options)


@record
class Pin(Control):
    """One field of the plan: searched, or pinned to a value. `octave` : the steps of an octave of
    ways."""

    octave: tuple[float, ...] = (1.0,)

    @property
    def name(self) -> str:
        """The axis of the plan."""
        return self.field.removeprefix("plan.")

    def state(self, now: Moment) -> ControlState:
        pins = now.design.plan.stated()
        used, value, pinned = at(now.figures, self.field), pins.get(self.name), self.name in pins
        auto = choice(None, "auto" if used is None or pinned else f"auto: {used}")
        words = words_of(self.field)
        values = words or with_value(self.ways(now.resolved), value)
        options = [auto, *word_choices(values)]
        return self._list(now, value, options, pinned=pinned, asks=True, wide=bool(words))

    def help_text(self, now: Moment) -> str:
        axis = quantity(self.field)
        return f"{axis.label}. {axis.formula}" if axis.formula else axis.label

    def ways(self, design: Resolved) -> list[int]:
        """Ways to split along the axis that a design could take."""
        model, experts = design.model, design.model.experts
        if self.name == "ep":
            return [int(n) for n in divisors(experts or 1)]
        most = {
            "dp": design.cluster.devices,
            "etp": 64 if experts else 1,
            "tp": min(model.heads, 256),
            "pp": min(model.layers, 256),
            "vpp": min(model.layers, 256),
        }
        return choices.octaves(1, most.get(self.name, 64), steps=self.octave)


# ---------------------------------------------------------------- fields and their words
@cache
def facts_of(field: str) -> FieldFacts | None:
    """What is known of a field of the design."""
    section, _, name = field.rpartition(".")
    return Design.section_fields(*section.split(".") if section else ()).get(name)


def words_of(field: str) -> list[Any]:
    """The words that the schema lets stand in a field."""
    facts = facts_of(field)
    if facts is None:
        return []
    return [True, False] if facts.kind is Kind.FLAG else [word for word in facts.choices if word]


def stated(design: Design, path: str) -> Any:
    """What a design says at a dotted path."""
    return at(design.data(), path)


def word_choices(values: Iterable[Any]) -> list[Option]:
    """Words of the design as a list offers them."""
    return [choice(value, _word(value)) for value in values]


def _holding(value: Any, options: Iterable[Option]) -> tuple[Option, ...]:
    """The options, with the value among them."""
    rows = tuple(options)
    if rows and value not in [row["value"] for row in rows]:
        return (choice(value, str(value)), *rows)
    return rows


def _unset(field: str) -> str:
    """What stands in a control whose field the design leaves out and nothing else fills."""
    section = field.partition(".")[0]
    return "none" if section in ("constraints", "measured", "name", "stack") else "auto"


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _brief(usual: Any) -> bool:
    """Whether what is taken is more than nothing and less than a list of records."""
    return usual not in (None, "") and "{" not in _text(usual)


def _text(value: Any) -> str:
    """A value of the design as it stands in a box; lists of records as the file has them."""
    if isinstance(value, Real):
        return f"{float(value):.10g}"
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value):
        return ", ".join(value)
    return inline(value)
