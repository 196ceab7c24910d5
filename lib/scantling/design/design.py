"""The design file: read, checked, changed, written, and resolved into the records that the models
work on."""

import os
from collections.abc import Mapping
from functools import cached_property
from json import dumps
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, PrivateAttr, ValidationError

from ..base.errors import DesignError
from ..base.files import write_text
from ..base.show import is_number, named_size
from . import file as design_yaml, link
from .checks import text_up_to, validator
from .fields import FieldFacts, Kind, Section, field, listed, other, text
from .paths import fields_at, put, section_at
from .refusals import all_errors
from .schema import (
    BY_TEXT,
    COMPOUND,
    SINGLE,
    Checkpoint,
    ClusterSpec,
    Constraints,
    Job,
    Measured,
    ModelRef,
    PlanSpec,
    Prices,
    Reliability,
    StackRef,
    UnreadWords,
)

VERSION = 1
_OF_A_STEP = ("model", "cluster", "job", "plan", "stack", "calibration")


def _version(value: Any) -> int:
    if not is_number(value) or value != VERSION:
        raise DesignError(
            "",
            value,
            f"{VERSION}, the version of the format that this kit reads",
            VERSION,
            problem="is not a version this kit reads",
        )
    return VERSION


def _known(path: str) -> str:
    """The path of a field that there is."""
    section, *steps = path.split(".")
    names = [step for step in steps if not step.isdigit()]
    if steps:
        known = bool(names) and names[-1] in Design.section_fields(section, *names[:-1])
    else:
        known = section in Design.section_fields()
    if not known:
        raise DesignError(
            "", path, "a list of fields, such as [job.tokens]", problem="there is no such field"
        )
    return path


def _empty(value: Any) -> Any:
    """What stands in a section that says nothing."""
    return {} if value is None else value


EMPTY = BeforeValidator(_empty)


def _part(section: type[Section], description: str) -> Any:
    """A section, empty where nothing stands in it."""
    return field(FieldFacts(kind=Kind.OTHER, description=description), empty=section)


FileOrContent = Annotated[
    Annotated[str, validator(text_up_to(1000)), SINGLE] | Annotated[dict[str, Any], COMPOUND],
    BY_TEXT,
]
FieldPath = Annotated[str, validator(text_up_to()), AfterValidator(_known)]


class Design(Section):
    """One training run to plan: model, cluster and job, and whatever else was decided or measured.

    A frozen value: `change` gives a changed copy. `read` and `from_yaml` raise DesignError, one
    line, for anything wrong.
    """

    scantling: Annotated[int, BeforeValidator(_version)] = field(
        FieldFacts(kind=Kind.OTHER, description="version of this format", constant=VERSION),
        default=VERSION,
    )
    name: str | None = text("name to show", example="Llama 3.1 405B, 15.6T tokens")
    notes: str | None = text("free text, shown as it stands", high=20_000, lines=True)
    model: ModelRef = other(
        "catalogue id (scantling catalogue models) or a mapping",
        example="llama-3.1-405b",
        second={"size": 175e9, "layers": 96, "moe": True},
        required=True,
    )
    cluster: ClusterSpec = other(
        "the machine", example={"accelerator": "h100-sxm", "devices": 16384}, required=True
    )
    job: Annotated[Job, EMPTY] = other(
        "what is trained",
        example={"tokens": 15.6e12, "seq_len": 8192, "global_batch": 2048},
        required=True,
    )
    constraints: Annotated[Constraints, EMPTY] = _part(Constraints, "what the run must keep to")
    plan: Annotated[PlanSpec, EMPTY] = _part(
        PlanSpec, "pins of the parallel plan; what is left out is searched"
    )
    stack: StackRef | None = other(
        "training software (scantling catalogue stacks)", example="megatron-core"
    )
    reliability: Annotated[Reliability, EMPTY] = _part(Reliability, "failures, saves, restarts")
    checkpoint: Annotated[Checkpoint, EMPTY] = _part(
        Checkpoint, "copies of the state: how often, where, how many"
    )
    prices: Annotated[Prices, EMPTY] = _part(Prices, "money and energy")
    measured: Annotated[Measured, EMPTY] = _part(
        Measured, "measured values that replace computed ones"
    )
    calibration: FileOrContent | None = other(
        "file that scantling measure or learn wrote of these devices, relative to this file, or "
        "what stands in it",
        example="calibration.yaml",
    )

    unread: list[UnreadWords] | None = listed(
        "words",
        100,
        "words of a line that found no field: nothing is worked out before each is settled and "
        "taken out, or all are confirmed",
        least=0,
        example=[
            {"text": "RTX 3090", "question": "which accelerator is meant?", "choices": ["rtx4090"]}
        ],
    )
    confirm: list[FieldPath] | None = listed(
        "fields",
        100,
        "fields whose unusual values are meant as they stand",
        least=0,
        example=["job.tokens"],
    )

    _folder: Path = PrivateAttr(default_factory=Path)
    _measured_at: "Design | None" = PrivateAttr(default=None)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The design in the YAML file at `path`, paths inside it relative to its folder; or that of
        a link, as the desk gives it."""
        if link.holds(str(path)) and not os.path.exists(path):
            return cls.from_data(link.unpack(str(path)))
        return cls.from_yaml(design_yaml.read_text(path), folder=Path(path).parent)

    def __init__(self, /, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as e:
            raise all_errors(e, Design, fields) from None

    @classmethod
    def from_yaml(cls, yaml_text: str, folder: str | Path = ".") -> Self:
        """The design that `yaml_text` spells; paths inside it are relative to `folder`."""
        return cls.from_data(design_yaml.load(yaml_text), folder)

    @classmethod
    def from_data(cls, data: Mapping[str, Any], folder: str | Path = ".") -> Self:
        """The design that plain dicts, lists, numbers and text spell, laid out as in the file."""
        if not isinstance(data, Mapping):
            raise DesignError(
                "",
                data,
                "a mapping with scantling, model, cluster and job",
                problem="is not a design",
            )
        design = cls(**{str(k): v for k, v in data.items()})
        design._folder = Path(folder)
        return design

    def data(self) -> dict[str, Any]:
        """The given fields as plain data, in the order of the format; do not change it in place."""
        return self._data

    @cached_property
    def _data(self) -> dict[str, Any]:
        dumped = {"scantling": VERSION, **self.stated()}
        return {k: v for k, v in dumped.items() if v or k == "job"}

    def to_yaml(self) -> str:
        """The design as YAML text that reads back equal."""
        return design_yaml.dump(self.data())

    def write(self, path: str | Path, force: bool = False) -> None:
        """Write the design to `path` in one step; an existing file is replaced only with
        `force`."""
        write_text(path, self.to_yaml(), force)

    def change(self, paths: Mapping[str, Any] | None = None, **sections: Any) -> Self:
        """A changed copy.

        `change({"cluster.devices": 8192, "plan.tp": None})` sets fields by dotted path, None takes
        one away;
        `change(cluster={"devices": 8192})` updates a section (`model` is replaced); a dotted
        keyword is a path. More devices than an owned machine has cost more of the same: where
        `prices` is not changed beside `cluster.devices`, what was paid for the machine grows with
        them. Raises DesignError, and this design stays as it is.
        """
        data = dict(self.data())
        changes = {**(paths or {}), **sections}
        for path in sorted(changes, key=lambda path: "." in str(path)):
            value = changes[path]
            old = data.get(path)
            updated = path in sections and path != "model"
            if updated and isinstance(old, dict) and isinstance(value, Mapping):
                value = {k: v for k, v in {**old, **value}.items() if v is not None}
            put(data, str(path), value)
        out = type(self).from_data(data, self._folder)
        out = self._owned_alike(out)
        if self.measured.stated() and self.measured == out.measured:
            origin = self._measured_at or self
            out._measured_at = None if origin._run() == out._run() else origin
        return out

    def _owned_alike(self, after: Self) -> Self:
        """A changed copy whose machine costs as much a device as this one's, where it is owned at
        the same price."""
        owned, ratio = self.prices.owned, after.cluster.devices / self.cluster.devices
        if owned is None or ratio == 1 or self.prices != after.prices:
            return after
        data = after.data()
        own = {**data["prices"]["owned"], **owned.grown(ratio)}
        data["prices"] = {**data["prices"], "owned": own}
        return type(self).from_data(data, self._folder)

    def _run(self) -> dict[str, Any]:
        """What a measurement holds for: everything that a step depends on."""
        run = {k: v for k, v in self.data().items() if k in _OF_A_STEP}
        return {**run, "job": {k: v for k, v in run["job"].items() if k != "tokens"}}

    def of_a_step(self) -> Self:
        """The design with what its steps depend on alone: no tokens, prices, failures, limits or
        calibration."""
        run = {k: v for k, v in self._run().items() if k != "calibration"}
        return type(self).from_data(run, self._folder)

    @property
    def measured_at(self) -> "Design | None":
        """The design that the measured values were taken on, where this one is a variation of it;
        None where they were taken on this one."""
        return self._measured_at

    @classmethod
    def section(cls, *path: str) -> type[BaseModel] | None:
        """The class of the section at `path` ("cluster"; "job", "phases"); None where there is
        none."""
        return section_at(cls, path)

    @classmethod
    def section_fields(cls, *path: str) -> Mapping[str, FieldFacts]:
        """The fields of the section at `path`, with description, unit, bounds and example; {} where
        there is none."""
        return fields_at(cls, path)

    @property
    def folder(self) -> Path:
        """Folder that the paths in the design are relative to."""
        return self._folder

    @property
    def title(self) -> str:
        """The name, or one made of model, device count and accelerator."""
        if self.name:
            return self.name
        model = self.model
        if not isinstance(model, str):
            kind = "MoE" if model.moe or model.experts or model.active else "dense"
            by_size = f"{named_size(model.size)} {kind}" if model.size else "model"
            model = model.name or model.like or by_size
        chip = self.cluster.accelerator
        return f"{model} on {self.cluster.devices:,} {chip if isinstance(chip, str) else chip.like}"

    @property
    def unsettled(self) -> list[UnreadWords]:
        """The unread words that nobody has confirmed."""
        return [] if "unread" in (self.confirm or ()) else list(self.unread or ())

    @property
    def freed(self) -> dict[str, None]:
        """The changes that let go of every pin of the plan."""
        return {f"plan.{field}": None for field in self.plan.stated()}

    def key(self) -> str:
        """Text that is equal for equal designs: the sorted JSON of the given fields, with the
        folder where a path depends on it."""
        return self._key

    @cached_property
    def _key(self) -> str:
        has_path = isinstance(self.calibration, str)
        if not isinstance(self.model, str) and self.model.hf_config:
            has_path = True
        folder = str(self._folder.resolve()) if has_path else ""
        origin = self._measured_at.key() if self._measured_at else ""
        return dumps(self.data(), sort_keys=True) + folder + origin

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Design) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the design file, with descriptions, units and examples."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Design.model_json_schema(),
        "title": "scantling design file",
        "description": "A large training run to plan: model, cluster, job, and what was decided, "
        "required or measured.",
    }
    return {key: _tidy(part) for key, part in schema.items()}


def _tidy(node: Any) -> Any:
    """A part of the schema without the defaults that say nothing."""
    if isinstance(node, dict):
        return {k: _tidy(v) for k, v in node.items() if k != "default" or v is not None}
    return [_tidy(v) for v in node] if isinstance(node, list) else node
