"""What is wrong with a design, a line for each fault: field, value, what is allowed, nearest."""

from collections.abc import Callable, Iterator, Mapping
from json import dumps
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ..base.errors import DesignError, closest
from ..base.typed import currency
from ..catalogue import accelerator, accelerators, fabric, failure_preset, node, storage
from ..catalogue.models.entries import entry
from ..catalogue.stacks import named_stack
from .fields import FieldFacts
from .file import number_text
from .paths import fields_at
from .schema import TAGS

# what people call fields of the design, by the field's name here
OTHER_NAMES = {
    "accelerator": ("chip", "gpu_type", "gpu_model", "device_type", "hardware"),
    "devices": ("gpu", "gpus", "num_gpus", "n_gpus", "gpu_count", "chips", "cards", "world_size"),
    "devices_per_node": ("gpus_per_node", "gpus_per_host"),
    "scale_out": ("network", "interconnect", "fabric"),
    "tokens": ("train_tokens", "num_tokens", "total_tokens"),
    "seq_len": ("context", "context_length", "sequence", "sequence_length", "max_seq_len"),
    "global_batch": ("batch", "batch_size", "gbs"),
    "micro_batch": ("mbs", "micro_batch_size"),
    "precision": ("dtype", "datatype"),
    "tp": ("tensor_parallel", "tensor_parallel_size"),
    "pp": ("pipeline_parallel", "pipeline_parallel_size"),
    "deadline_days": ("deadline", "days"),
    "budget_usd": ("budget", "max_cost"),
}

# where a design names a second kind of chip
ONE_KIND = (
    "one kind of accelerator for a job, each replica as fast as the next. Write a design for each "
    "kind, with its share of the tokens, and set them side by side: scantling compare A.yaml B.yaml"
    "; to choose between kinds: scantling sweep FILE cluster.accelerator=ONE,OTHER"
)


def all_errors(
    error: ValidationError, root: type[BaseModel], data: Mapping[str, Any]
) -> DesignError:
    """The first fault of a pydantic error of `root` as a DesignError with a dotted path, the
    others with it; misspelt fields come before missing ones, and a field that is missing because
    another is misspelt is not named again. `data` is what was read, whose names may be unknown."""
    faults = error.errors(include_url=False)
    wrong = [_refusal(fault, root) for fault in faults if fault["type"] != "missing"]
    missing = [_refusal(fault, root) for fault in faults if fault["type"] == "missing"]
    meant = [each.nearest for each in wrong]
    errors = [*wrong, *(each for each in missing if each.field not in meant)] or missing
    return errors[0].with_others([*errors[1:], *unknown_names(data)])


def unknown_names(data: Mapping[str, Any]) -> Iterator[DesignError]:
    """An error for each name in a design's data that its catalogue does not have."""
    cluster, reliability = (
        section if isinstance(section := data.get(name), Mapping) else {}
        for name in ("cluster", "reliability")
    )
    names: tuple[tuple[str, Any, Callable[[str, str], object]], ...] = (
        ("model", data.get("model"), entry),
        ("cluster.accelerator", cluster.get("accelerator"), accelerator),
        ("cluster.scale_out", cluster.get("scale_out"), fabric),
        ("cluster.node", cluster.get("node"), node),
        ("cluster.storage", cluster.get("storage"), storage),
        ("stack", data.get("stack"), named_stack),
        ("reliability.preset", reliability.get("preset"), failure_preset),
    )
    for field, name, look_up in names:
        if not isinstance(name, str):
            continue
        try:
            look_up(name, field)
        except DesignError as error:
            yield error


def _refusal(fault: ErrorDetails, root: type[BaseModel]) -> DesignError:
    path = tuple(str(step) for step in fault["loc"] if step not in TAGS)
    field = ".".join(path)
    refusal = fault.get("ctx", {}).get("error")
    if isinstance(refusal, DesignError):
        return refusal.at(field) if field else refusal
    around = fields_at(root, path[:-1])
    if _second_kind(path, fault):
        return DesignError(field, fault.get("input"), ONE_KIND, problem="names several kinds")
    if fault["type"] == "extra_forbidden":
        nearest = _nearest(path, around, root)
        problem = "there is no such field"
        if currency(path[-1]) or path[-1] == "currency":
            problem += ", and dollars are planned with: say how many"
        return DesignError(field, allowed=list(around), nearest=nearest, problem=problem)
    if fault["type"] == "missing":
        return DesignError(field, allowed=_wanted(around[path[-1]]), problem="is missing")
    value = fault.get("input")
    if fault["type"] in ("model_type", "model_attributes_type", "dict_type"):
        names = ", ".join(list(fields_at(root, path))[:12])
        allowed = f"a mapping of {names}" if names else "a text or a mapping"
        return DesignError(field, value, allowed, problem="is not a mapping")
    return DesignError(field, value, problem=fault["msg"].rstrip(".").lower())


def _second_kind(path: tuple[str, ...], fault: ErrorDetails) -> bool:
    """Whether a fault is a second kind of accelerator: a list of them or of clusters, one of a site
    or of a part, or a number of each."""
    match path:
        case ("cluster",) | ("cluster", "accelerator"):
            return isinstance(fault.get("input"), list)
        case ("cluster", "sites" | "delivery", _, "accelerator"):
            return True
        case ("cluster", "accelerator", _):
            given = fault.get("input")
            return isinstance(given, dict) and bool(given.keys() & accelerators().keys())
    return False


def _wanted(facts: FieldFacts) -> str:
    if not facts.examples:
        return facts.text
    return f"{facts.text}, such as {_example(facts.examples[0])}"


def _example(value: Any) -> str:
    if isinstance(value, float):
        return number_text(value)
    return dumps(value).replace('"', "")


def _nearest(
    path: tuple[str, ...], around: Mapping[str, FieldFacts], root: type[BaseModel]
) -> str | None:
    """A good name in the wrong place, what others call a field, or the one spelt most like the last
    of the path."""
    *above, name = path
    sections = list(fields_at(root, ()))
    # the shape of a model has many names: it comes last
    for section in [s for s in sections if s != "model"] + ["model"]:
        if name in fields_at(root, (section,)):
            return f"{section}.{name}"
    for near, words in OTHER_NAMES.items():
        if name.lower() in words:
            if near in around:
                return ".".join([*above, near])
            place = next((s for s in sections if near in fields_at(root, (s,))), None)
            if place is not None:
                return f"{place}.{near}"
    spelt = closest(name, around)
    if spelt:
        return ".".join([*above, spelt])
    return name if name in sections else None
