"""A first design file: fields put together, gaps filled by stated rules, and comments that say what
each line is."""

from collections.abc import Callable, Iterable, Mapping
from math import ceil, log2
from statistics import median
from typing import Any, NamedTuple

from .. import catalogue
from ..base.errors import DesignError, plain
from ..base.records import Assumed, Derived
from ..base.units import DAY_S
from ..catalogue.hardware import USUAL_ACCELERATOR
from ..catalogue.models.entries import build_model, entries, entry
from ..catalogue.models.shape import Params, parameters
from ..catalogue.words import Method
from .design import Design
from .fields import FieldFacts
from .file import inline
from .line_reading import Brief, Read, Unread
from .methods import untuned
from .paths import put
from .phases import SEQ_LEN
from .resolve import resolve, within

_STATE_BYTES = 18.0  # bf16 weights, fp32 gradients, fp32 master copy and two moments
# beside adapters the weights alone, in 16 or in 4 bits with their scales, and some for the adapters
_FROZEN_BYTES = {Method.LORA: 2.2, Method.QLORA: 0.8}
_ROOM = 4.0  # memory over that of weights, gradients and Adam states
# of dense runs on thousands of devices: Llama 3 (arXiv 2407.21783, table 4) 0.38 to 0.43
_MFU = 0.4
_MODEL = "llama-3.1-8b"  # when only a machine is named
_OF_A_HEAD = 128  # width of an attention head: Llama 2 and 3 but 1B (arXiv 2407.21783)
_SIZE = 70e9  # parameters, when only a kind of model is named


class Draft(NamedTuple):
    """A first design, what was assumed, and the words or fields that were ignored."""

    design: Design
    assumed: list[Assumed]
    ignored: list[Read]


def draft(brief: Brief | None, like: str | None, check: Callable[[Design], Any] = resolve) -> Draft:
    """A design from a brief, a catalogue model, or both.

    What a brief leaves open gets a starting value by a stated rule: the model, the accelerator, and
    the smallest power of two of devices with four times the memory of weights, gradients and Adam
    states (18 bytes a parameter) that also meets a stated deadline at 40 % MFU. A field with
    which `check` raises DesignError is asked about, with the reason, beside the words that the
    brief asks about; where a name stands as it was given, nothing is worked out.
    """
    fields = dict(brief.fields) if brief else {}
    ignored = list(brief.ignored) if brief else []
    amounts = brief.amounts if brief else {}
    read = list(brief.assumed) if brief else []
    unread = list(brief.unread) if brief else []
    if like is not None:
        if _has(fields, "model"):
            raise DesignError(
                "--like",
                like,
                "a model named once: by --like or in --text",
                problem="is given beside a model in the text",
            )
        fields["model"] = entry(like, "--like").id
    if brief and brief.open:
        gaps = _least(fields)
        return Draft(_designed(fields | gaps.fields, unread), [*read, *gaps.assumed], ignored)
    while True:
        try:
            gaps = _gaps(fields, amounts)
            check(untuned(_designed(fields | gaps.fields, ())))
            design = _designed(fields | gaps.fields, unread)
            return Draft(design, [*read, *gaps.assumed], ignored)
        except DesignError as error:
            wrong = _at_fault(fields, error)
            if brief is None or wrong is None:
                raise
            unread.append(_unfit(brief, wrong, fields.pop(wrong), error))


def _designed(fields: Mapping[str, Any], unread: Iterable[Unread]) -> Design:
    """The design of fields by dotted path, with the words that have to be asked about."""
    open_words = [
        {
            "text": plain(words.words, 200),
            "question": plain(words.question, 600),
            "choices": list(words.choices),
        }
        for words in unread
    ]
    sections = {"model": {}, "cluster": {}, "job": {}, **_nested(fields)}
    if open_words:
        sections["unread"] = open_words
    return Design.from_data(sections)


def _unfit(brief: Brief, path: str, value: Any, error: DesignError) -> Unread:
    """What was read and no design can hold, with the reason."""
    words = next((read.words for read in brief.read if read.field == path), f"{path} {value}")
    return Unread(words=words, question=plain(str(error), 500))


def _least(fields: Mapping[str, Any]) -> Derived:
    """What a file has to hold where a name is not known: nothing is worked out from it."""
    gaps = Derived(fields, "")
    if not _has(fields, "model"):
        gaps.note("model", _MODEL, "no model is named: a common one to start from")
    if not _has(fields, "cluster.accelerator"):
        why = "no accelerator is named: a common one to start from"
        gaps.note("cluster.accelerator", USUAL_ACCELERATOR, why)
    if "cluster.devices" not in fields:
        gaps.note("cluster.devices", 1, "no number of devices is given")
    return gaps


def _at_fault(fields: Mapping[str, Any], error: DesignError) -> str | None:
    """The field that an error names: it, the section around it, or the first below it."""
    around = [path for path in fields if f"{error.field}.".startswith(f"{path}.")]
    below = [path for path in fields if path.startswith(f"{error.field}.")]
    return next(iter(around + below), None)


def _nested(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields by dotted path as the sections of a design."""
    data: dict[str, Any] = {}
    for path, value in fields.items():
        put(data, path, value)
    return data


def _has(fields: Iterable[str], path: str) -> bool:
    """Whether a field, or one below it, is among the fields."""
    return any(f"{field}.".startswith(f"{path}.") for field in fields)


def _gaps(fields: Mapping[str, Any], amounts: Mapping[str, float]) -> Derived:
    """What has to stand in a design and was not said, each with its rule."""
    gaps = Derived(fields, "")
    _model(gaps)
    if not _has(fields, "cluster.accelerator"):
        why = "no accelerator is named: a common one to start from"
        gaps.note("cluster.accelerator", USUAL_ACCELERATOR, why)
    of_model = {path: v for path, v in gaps.fields.items() if path.partition(".")[0] == "model"}
    model, _ = within("model", build_model, _nested(of_model)["model"])
    params = parameters(model)
    _tokens(gaps, amounts, params)
    if "cluster.devices" not in fields:
        devices, why = _devices(gaps.fields, params)
        gaps.note("cluster.devices", devices, why)
    return gaps


def _model(gaps: Derived) -> None:
    """The model, or its size where only its kind is named."""
    stated = {path.removeprefix("model.") for path in gaps.stated if path.startswith("model.")}
    if not _has(gaps.stated, "model"):
        gaps.note("model", _MODEL, "no model is named: a common one to start from")
    elif {"layers", "hidden"} <= stated and not stated & {"size", "like", "heads"}:
        heads = max(1, round(gaps.stated["model.hidden"] / _OF_A_HEAD))
        gaps.take("model.heads", heads, f"of {_OF_A_HEAD} each, the usual width")
    elif stated and not stated & {"size", "like"} and not {"layers", "hidden", "heads"} <= stated:
        size = _SIZE
        why = "no size is given: a common one to start from"
        active = gaps.stated.get("model.active")
        if active:
            times = _usual_sparsity()
            size = float(f"{times * active:.3g}")
            why = f"{times:.3g} x the active parameters, the median of the catalogue's MoE models"
        gaps.take("model.size", size, why)


def _tokens(gaps: Derived, amounts: Mapping[str, float], params: Params) -> None:
    """Tokens of a run that is stated in examples, or in tokens a parameter."""
    if "examples" in amounts:
        epochs = amounts.get("epochs", 1)
        each = amounts.get("example_tokens")
        length = each or gaps.stated.get("job.seq_len") or SEQ_LEN
        tokens = amounts["examples"] * epochs * float(length)
        kind = "each of" if each else "each a full sequence of"
        why = (
            f"{amounts['examples']:,.0f} examples x {epochs:g} epochs, {kind} {length:,.0f} tokens"
        )
        gaps.take("job.tokens", tokens, why)
    elif "tokens_per_param" in amounts:
        each = amounts["tokens_per_param"]
        why = f"{each:g} tokens a parameter (20: Hoffmann et al. 2022, table 3)"
        gaps.take("job.tokens", float(f"{each * params.total:.4g}"), why)


def _usual_sparsity() -> float:
    """Median of total over active parameters of the MoE models of the catalogue."""
    counts = [parameters(row.model) for row in entries().values() if row.model.is_moe]
    return median(float(count.total / count.active) for count in counts)


def _devices(fields: Mapping[str, Any], params: Params) -> tuple[int, str]:
    """Devices to start with, and the rule."""
    chip = catalogue.accelerator(fields["cluster.accelerator"])
    each = _FROZEN_BYTES.get(fields.get("job.method", ""), _STATE_BYTES)
    least = _ROOM * each * float(params.total) / chip.hbm_usable_bytes
    what = "weights, gradients and Adam states" if each == _STATE_BYTES else "frozen weights"
    why = (
        f"smallest power of two with {_ROOM:g} x the memory of {what} ({each:g} bytes a parameter)"
    )
    tokens = fields.get("job.tokens")
    days = fields.get("constraints.deadline_days")
    if tokens and days:
        formats = [p for p in ("bf16", "fp16", "fp32") if p in chip.precisions()]
        rate = _MFU * max(chip.peak_flops(p) for p in formats)
        least = max(least, 6 * float(params.active) * tokens / (rate * days * DAY_S))
        why += f" that trains {tokens:.3g} tokens in {days:g} days at an MFU of {_MFU:.0%}"
    per_node = catalogue.devices_per_node(chip.id)
    nodes: int = 2 ** ceil(log2(max(least / per_node, 1)))
    return per_node * nodes, why


def commented(
    design: Design, text: str | None, assumed: Iterable[Assumed], ignored: Iterable[Read] = ()
) -> str:
    """The design as YAML with a comment on every field; what was ignored, and what was assumed as
    commented lines that can be put to use."""
    lines = [
        "# A design file for scantling: `scantling design FILE` assesses it, `scantling "
        "schema` lists all fields.",
        "# Lines behind # are assumed; take the # away to state your own.",
    ]
    if text:
        lines.append(f"# Read from: '{plain(' '.join(text.split()), 2000)}'")
    lines += [f"# Ignored '{plain(read.words, 80)}': {plain(read.why, 300)}" for read in ignored]
    data = design.data()
    by_section: dict[str, list[Assumed]] = {}
    for row in assumed:
        by_section.setdefault(row.field.partition(".")[0], []).append(row)
    for key, facts in Design.section_fields().items():
        if key in data or key in by_section and key in _SECTIONS:
            lines += ["", *_section(key, data.get(key, {}), facts, by_section.pop(key, []))]
    for rest in by_section.values():
        lines += ["", *(f"# {_assumption(row)}" for row in rest)]
    return "\n".join(lines) + "\n"


_SECTIONS = ("job", "reliability", "prices")  # that are shown where they only hold assumptions


def _section(key: str, value: Any, facts: FieldFacts, assumed: list[Assumed]) -> list[str]:
    """Lines of a section: its fields, and what was assumed beside them."""
    if not isinstance(value, dict):
        line = _line(f"{key}: {inline(value)}", facts.text)
        return [line, *(f"# {_assumption(row)}" for row in assumed)]
    known = Design.section_fields(key)
    lines = [_line(f"{key}:", facts.text)]
    reasons = {row.field.partition(".")[2]: f"assumed: {plain(row.why, 200)}" for row in assumed}
    for name, item in value.items():
        comment = reasons.get(name) or (known[name].text if name in known else None)
        lines.append(_line(f"  {name}: {inline(item)}", comment))
    for row in assumed:
        name = row.field.partition(".")[2]
        if name in value:
            continue
        if name in known and not isinstance(row.value, (dict, list, tuple, type(None))):
            lines.append(_line(f"  # {name}: {inline(row.value)}", reasons[name]))
        else:
            lines.append(f"  # {_assumption(row)}")
    return lines


def _line(head: str, comment: str | None) -> str:
    if not comment:
        return head
    return f"{head:<48}# {comment}" if len(head) < 48 else f"{head}  # {comment}"


def _assumption(row: Assumed) -> str:
    value = "" if row.value is None else f" = {plain(str(row.value), 60)}"
    return f"assumed {plain(row.field, 80)}{value}: {plain(row.why, 200)}"
