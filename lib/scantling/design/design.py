"""The design file: read, checked, changed, written, and resolved into the records that the models
work on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, PrivateAttr, ValidationError

from ..base.errors import DesignError, closest
from . import file as design_yaml
from .fields import Section, about, text
from .schema import (
    TAGS,
    ClusterSpec,
    Constraints,
    Job,
    Measured,
    PlanSpec,
    Prices,
    Ref,
    Reliability,
    model_field,
)

VERSION = 1


def _version(value):
    if (
        value is None
        or isinstance(value, bool)
        or not isinstance(value, (int, float))
        or value != VERSION
    ):
        raise DesignError(
            "",
            value,
            f"{VERSION}, the version of the format that this kit reads",
            VERSION,
            problem="is not a version this kit reads",
        )
    return VERSION


def _or_empty(value):
    return {} if value is None else value


class Design(Section):
    """One training run to plan: model, cluster and job, and whatever else was decided or measured.

    A frozen value: `change` gives a changed copy. `read` and `from_text` raise DesignError, one
    line, for anything wrong.
    """

    scantling: Annotated[int, BeforeValidator(_version)] = Field(
        default=VERSION,
        description="version of this format",
        json_schema_extra={"const": VERSION},
    )
    name: Annotated[str | None, text()] = about(
        "name to show", example="Llama 3.1 405B, 15.6T tokens"
    )
    notes: Annotated[str | None, text(20_000, lines=True)] = about("free text, shown as it stands")
    model: model_field() = Field(
        description="catalogue id (scantling catalogue models) or a mapping",
        examples=[
            "llama-3.1-405b",
            {
                "size": 175e9,
                "layers": 96,
                "moe": True,
            },
        ],
    )
    cluster: ClusterSpec = Field(
        description="the machine",
        examples=[
            {
                "accelerator": "h100-sxm",
                "devices": 16384,
            }
        ],
    )
    job: Annotated[Job, BeforeValidator(_or_empty)] = Field(
        description="what is trained",
        examples=[
            {
                "tokens": 15.6e12,
                "seq_len": 8192,
                "global_batch": 2048,
            }
        ],
    )
    constraints: Annotated[Constraints, BeforeValidator(_or_empty)] = Field(
        default_factory=Constraints,
        description="what the run must keep to",
    )
    plan: Annotated[PlanSpec, BeforeValidator(_or_empty)] = Field(
        default_factory=PlanSpec,
        description="pins of the parallel plan; what is left out is searched",
    )
    stack: Ref | None = about(
        "training software (scantling catalogue stacks)", example="megatron-core"
    )
    reliability: Annotated[Reliability, BeforeValidator(_or_empty)] = Field(
        default_factory=Reliability,
        description="failures, saves, restarts",
    )
    prices: Annotated[Prices, BeforeValidator(_or_empty)] = Field(
        default_factory=Prices,
        description="money and energy",
    )
    measured: Annotated[Measured, BeforeValidator(_or_empty)] = Field(
        default_factory=Measured,
        description="measured values that replace computed ones",
    )
    calibration: Annotated[str | None, text(1000)] = about(
        "file that scantling measure wrote on these devices, relative to this file",
        example="calibration.yaml",
    )

    _folder: Path = PrivateAttr(default_factory=Path)
    _data: dict | None = PrivateAttr(default=None)
    _key: str | None = PrivateAttr(default=None)

    @classmethod
    def read(cls, path) -> Design:
        """The design in the YAML file at `path`; paths inside it are relative to its folder."""
        return cls.from_text(design_yaml.read_text(path), folder=Path(path).parent)

    @classmethod
    def from_text(
        cls,
        yaml_text: str,
        folder=".",
    ) -> Design:
        """The design that `yaml_text` spells; paths inside it are relative to `folder`."""
        return cls.from_data(design_yaml.load(yaml_text), folder)

    @classmethod
    def from_data(
        cls,
        data: Mapping,
        folder=".",
    ) -> Design:
        """The design that plain dicts, lists, numbers and text spell, laid out as in the file."""
        if not isinstance(data, Mapping):
            raise DesignError(
                "",
                data,
                "a mapping with scantling, model, cluster and job",
                problem="is not a design",
            )
        try:
            design = cls.model_validate(data)
        except ValidationError as e:
            raise first_error(cls, e) from None
        design._folder = Path(folder)
        return design

    def data(self) -> dict[str, Any]:
        """The given fields as plain data, in the order of the format; do not change it in place."""
        if self._data is None:
            dumped = self.model_dump(
                exclude_unset=True,
                exclude_none=True,
            )
            order = type(self).model_fields
            self._data = {
                "scantling": VERSION,
                **{
                    k: dumped[k]
                    for k in order
                    if k != "scantling" and k in dumped and (dumped[k] != {} or k == "job")
                },
            }
            if "phases" in dumped["job"]:
                self._data["job"]["phases"] = list(dumped["job"]["phases"])
        return self._data

    def to_yaml(self) -> str:
        """The design as YAML text that reads back equal."""
        return design_yaml.dump(self.data())

    def write(
        self,
        path,
        force: bool = False,
    ) -> None:
        """Write the design to `path` in one step; an existing file is replaced only with
        `force`."""
        design_yaml.write_text(path, self.to_yaml(), force)

    def change(self, paths: Mapping[str, Any] | None = None, **sections) -> Design:
        """A changed copy.

        `change({"cluster.devices": 8192, "plan.tp": None})` sets fields by dotted path, None takes
        one away;
        `change(cluster={"devices": 8192})` updates a section (`model` is replaced); a dotted
        keyword is a path. Raises DesignError, and
        this design stays as it is.
        """
        data = dict(self.data())
        paths = {
            **(paths or {}),
            **{k: v for k, v in sections.items() if "." in k},
        }
        for section, value in sections.items():
            if "." in section:
                continue
            if (
                section != "model"
                and isinstance(value, Mapping)
                and isinstance(data.get(section), dict)
            ):
                value = {
                    k: v
                    for k, v in {
                        **data[section],
                        **value,
                    }.items()
                    if v is not None
                }
            _put(
                data,
                (section,),
                value,
                section,
            )
        for path, value in paths.items():
            _put(
                data,
                tuple(str(path).split(".")),
                value,
                str(path),
            )
        return type(self).from_data(data, self._folder)

    @classmethod
    def section_fields(cls, *path: str) -> dict:
        """The pydantic fields of the section at `path` ("cluster"; "job", "phases"), with
        description, unit and examples; {} where there is none."""
        return _fields(cls, path)

    @property
    def folder(self) -> Path:
        """Folder that the paths in the design are relative to."""
        return self._folder

    @property
    def title(self) -> str:
        """The name, or one made of model, device count and accelerator."""
        if self.name:
            return self.name
        m, a = self.model, self.cluster.accelerator
        model = (
            m
            if isinstance(m, str)
            else m.name
            or m.like
            or (
                f"{m.size / 1e9:g}B {'MoE' if m.moe or m.experts else 'dense'}"
                if m.size
                else "model"
            )
        )
        return f"{model} on {self.cluster.devices:,} {a if isinstance(a, str) else a.like}"

    def key(self) -> str:
        """Text that is equal for equal designs: the sorted JSON of the given fields, with the
        folder where a path depends on it."""
        if self._key is None:
            where = self.calibration or (not isinstance(self.model, str) and self.model.hf_config)
            self._key = json.dumps(self.data(), sort_keys=True) + (
                str(self._folder.resolve()) if where else ""
            )
        return self._key

    def __eq__(self, other):
        return isinstance(other, Design) and self.key() == other.key()

    def __hash__(self):
        return hash(self.key())


def _put(
    data: dict,
    path: tuple,
    value,
    shown: str,
) -> None:
    """Set (or with None take away) the value at `path`, copying the containers on the way."""
    here = data
    for i, step in enumerate(path[:-1]):
        child = (
            here[int(step)]
            if isinstance(here, list) and step.isdigit() and int(step) < len(here)
            else here.get(step)
            if isinstance(here, dict)
            else None
        )
        if isinstance(here, list) and child is None:
            raise _no_phase(here, shown)
        if isinstance(child, str) and path[i] in ("model", "accelerator", "scale_out"):
            child = {"like": child}  # a figure changed below an id: start from that catalogue row
        if child is not None and not isinstance(child, (dict, list, tuple)):
            raise DesignError(
                shown,
                allowed=f"{'.'.join(path[: i + 1])} is a single value",
                problem="there is no such field",
            )
        child = dict(child) if isinstance(child, dict) else list(child) if child is not None else {}
        here[int(step) if isinstance(here, list) else step] = child
        here = child
    last = path[-1]
    if isinstance(here, list):
        if not (last.isdigit() and int(last) < len(here)):
            raise _no_phase(here, shown)
        if value is None:
            del here[int(last)]
        else:
            here[int(last)] = value
    elif value is None:
        here.pop(last, None)
    else:
        here[last] = value.given() if isinstance(value, BaseModel) else value


def _no_phase(phases: list, shown: str) -> DesignError:
    allowed = f"a position from 0 to {len(phases) - 1}"
    return DesignError(
        shown,
        allowed=allowed,
        problem="there is no such phase",
    )


def first_error(model: type[BaseModel], error: ValidationError) -> DesignError:
    """The first fault of a pydantic error as a DesignError with a dotted path; misspelt fields come
    before missing ones."""
    faults = sorted(error.errors(include_url=False), key=lambda e: e["type"] == "missing")
    e = faults[0]
    path = [str(p) for p in e["loc"] if p not in TAGS]
    field, kind, value = ".".join(path), e["type"], e.get("input")
    inner = e.get("ctx", {}).get("error")
    if isinstance(inner, DesignError):
        found = inner.at(field) if field else inner
    elif kind == "extra_forbidden":
        found = DesignError(
            field,
            problem="there is no such field",
            allowed=_names(model, path[:-1]),
            nearest=_near(model, path),
        )
    elif kind == "missing":
        info = _fields(model, path[:-1]).get(path[-1])
        example = (
            f", such as {_example(info.examples[0])}" if info is not None and info.examples else ""
        )
        found = DesignError(
            field,
            problem="is missing",
            allowed=(info.description if info is not None and info.description else "a value")
            + example,
        )
    elif kind in ("model_type", "model_attributes_type", "dict_type"):
        found = DesignError(
            field,
            value,
            "a mapping of " + ", ".join(_names(model, path)[:12]),
            problem="is not a mapping",
        )
    else:
        found = DesignError(field, value, problem=e["msg"].rstrip(".").lower())
    if len(faults) > 1:
        found.more = len(faults) - 1
    return found


def _example(value):
    return (
        json.dumps(value).replace('"', "")
        if not isinstance(value, float)
        else design_yaml.number_text(value)
    )


def _near(model, path):
    for section in _SECTIONS:  # a good name in the wrong place
        if path[-1] in _fields(Design, [section]):
            return f"{section}.{path[-1]}"
    near = closest(path[-1], _names(model, path[:-1]))
    return (
        ".".join([*path[:-1], near])
        if near
        else path[-1]
        if path[-1] in Design.model_fields
        else None
    )


_SECTIONS = ("cluster", "job", "constraints", "plan", "reliability", "prices", "measured", "model")


def _names(model, path):
    return list(_fields(model, path))


def _fields(model, path) -> dict:
    """The fields of the section at `path`."""
    for step in path:
        if step.isdigit():
            continue
        info = model.model_fields.get(step)
        below = _section_of(info.annotation) if info is not None else None
        if below is None:
            return {}
        model = below
    return model.model_fields


def _section_of(annotation):
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        found = _section_of(inner)
        if found is not None:
            return found
    return None


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the design file, with descriptions, units and examples."""
    schema = Design.model_json_schema()
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "scantling design file",
        "description": (
            "A large training run to plan: model, cluster, job, and what was decided, "
            "required or measured."
        ),
    }
    return _tidy(schema)


def _tidy(node):
    if isinstance(node, dict):
        node = {k: _tidy(v) for k, v in node.items() if not (k == "default" and v is None)}
        return node
    return [_tidy(v) for v in node] if isinstance(node, list) else node
