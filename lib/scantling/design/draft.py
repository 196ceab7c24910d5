"""A first design file: fields put together, gaps filled by stated rules, and comments that say what
each line is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, log2
from statistics import median
from typing import Any

from .. import catalogue
from ..base.errors import DesignError, plain
from ..base.records import Assumed, Derived, record
from ..base.units import DAY_S
from ..catalogue.hardware import USUAL_ACCELERATOR
from ..catalogue.models.entries import build_model, entries, entry
from ..catalogue.models.shape import parameters
from . import file as design_yaml
from .design import Design
from .paths import put
from .phases import SEQ_LEN
from .resolve import resolve, within

_STATE_BYTES = 18.0  # bf16 weights, fp32 gradients, fp32 master copy and two moments
_ROOM = 4.0
_MFU = (
    0.4  # of dense runs on thousands of devices: Llama 3 (arXiv 2407.21783, table 4) 0.38 to 0.43
)
_MODEL = "llama-3.1-8b"  # when only a machine is named
_SIZE = 70e9


@dataclass(frozen=True)
class Read:
    """What was made of some words: the field it set and the value, or why there was nothing to
    set."""

    said: str
    field: str
    value: Any = None
    why: str = ""


@record
class Brief:
    """Fields by dotted path, the words each came from, the words that set nothing, and the readings
    that were a choice. `amounts`: what tokens follow from when the model is known."""

    fields: dict[str, Any] = field(default_factory=dict)
    read: tuple[Read, ...] = ()
    ignored: tuple[Read, ...] = ()
    assumed: tuple[Assumed, ...] = ()
    amounts: dict[str, float] = field(default_factory=dict)


def draft(brief: Brief | None, like: str | None, check: Callable = resolve) -> tuple:
    """(design, what was assumed, what was ignored) from a brief, a catalogue model, or both.

    What a brief leaves open gets a starting value by a stated rule: the model, the accelerator, and
    the smallest power of two of devices with four times the memory of weights, gradients and Adam
    states (18 bytes a parameter) that also meets a stated deadline at 40 % MFU. A field with
    which `check` raises DesignError is ignored, with the reason.
    """
    brief, given = brief or Brief(), brief is not None
    fields = dict(brief.fields)
    ignored = list(brief.ignored)
    if like is not None:
        if _given(fields, "model"):
            raise DesignError(
                "--like",
                like,
                "a model named once: by --like or in --text",
                problem="is given beside a model in the text",
            )
        fields["model"] = entry(like, "--like").id
    while True:
        try:
            gaps = _gaps(fields, brief.amounts)
            parts = _nested(fields | gaps.fields)
            design = Design.from_data({"model": {}, "cluster": {}, "job": {}, **parts})
            check(design)
            return design, [*brief.assumed, *gaps.assumed], ignored
        except DesignError as e:
            around = [k for k in fields if f"{e.field}.".startswith(f"{k}.")]
            wrong = next(iter(around + [k for k in fields if k.startswith(f"{e.field}.")]), None)
            if not given or wrong is None:
                raise
            ignored.append(Read(f"{wrong} {fields.pop(wrong)}", "", None, plain(str(e), 300)))


def _nested(fields: dict) -> dict:
    """Fields by dotted path as the sections of a design."""
    data = {}
    for path, value in fields.items():
        put(data, path, value)
    return data


def _gaps(fields: dict, amounts: dict) -> Derived:
    """What has to stand in a design and was not said, each with its rule."""
    gaps = Derived(fields, "")
    named = {k.removeprefix("model.") for k in fields if k.startswith("model.")}
    if not _given(fields, "model"):
        gaps.note("model", _MODEL, "no model is named: a common one to start from")
    elif named and not named & {"size", "like"} and not {"layers", "hidden", "heads"} <= named:
        size = _SIZE
        why = "no size is given: a common one to start from"
        if active := fields.get("model.active"):
            times = _usual_sparsity()
            size = float(f"{times * active:.3g}")
            why = f"{times:.3g} x the active parameters, the median of the catalogue's MoE models"
        gaps.take("model.size", size, why)
    if not _given(fields, "cluster.accelerator"):
        why = "no accelerator is named: a common one to start from"
        gaps.note("cluster.accelerator", USUAL_ACCELERATOR, why)
    of_model = {k: v for k, v in gaps.fields.items() if k.partition(".")[0] == "model"}
    model, _ = within("model", build_model, _nested(of_model)["model"])
    params = parameters(model)
    if "examples" in amounts:
        seq_len = fields.get("job.seq_len") or SEQ_LEN
        epochs = amounts.get("epochs", 1)
        why = f"{amounts['examples']:,.0f} examples x {epochs:g} epochs, each a full sequence of "
        tokens = amounts["examples"] * epochs * float(seq_len)
        gaps.take("job.tokens", tokens, f"{why}{seq_len:,} tokens")
    elif "tokens_per_param" in amounts:
        each = amounts["tokens_per_param"]
        why = f"{each:g} tokens a parameter (20: Hoffmann et al. 2022, table 3)"
        gaps.take("job.tokens", float(f"{each * params.total:.4g}"), why)
    if "cluster.devices" not in fields:
        gaps.note("cluster.devices", *_devices(gaps.fields, params))
    return gaps


def _usual_sparsity() -> float:
    """Median of total over active parameters of the MoE models of the catalogue."""
    counts = [parameters(e.model) for e in entries().values() if e.model.is_moe]
    return median(c.total / c.active for c in counts)


def _devices(fields: dict, params) -> tuple:
    """Devices to start with, and the rule."""
    chip = catalogue.accelerator(fields["cluster.accelerator"])
    least = _ROOM * _STATE_BYTES * params.total / chip.hbm_usable_bytes
    why = f"smallest power of two with {_ROOM:g} x the memory of weights, gradients and Adam "
    why += f"states ({_STATE_BYTES:g} bytes a parameter)"
    tokens, days = (fields.get(k) for k in ("job.tokens", "constraints.deadline_days"))
    if tokens and days:
        rate = _MFU * max(
            chip.peak_flops(p) for p in ("bf16", "fp16", "fp32") if p in chip.precisions()
        )
        least = max(least, 6 * params.active * tokens / (rate * days * DAY_S))
        why += f" that trains {tokens:.3g} tokens in {days:g} days at an MFU of {_MFU:.0%}"
    each = catalogue.devices_per_node(chip.id)
    return max(each, each * 2 ** ceil(log2(max(least / each, 1)))), why


def _given(fields, path: str) -> bool:
    """Whether a field, or one below it, is among the fields."""
    return any(f"{k}.".startswith(f"{path}.") for k in fields)


def commented(design: Design, text: str | None, assumed, ignored=()) -> str:
    """The design as YAML with a comment on every field; what was ignored, and what was assumed as
    commented lines that can be put to use."""
    lines = [
        "# A design file for scantling: `scantling design FILE` assesses it, `scantling "
        "schema` lists all fields.",
        "# Lines behind # are assumed; take the # away to state your own.",
    ]
    if text:
        lines.append(f"# Read from: '{plain(' '.join(text.split()), 2000)}'")
    lines += [f"# Ignored '{plain(r.said, 80)}': {plain(r.why, 300)}" for r in ignored]
    data = design.data()
    gaps = {}
    for a in assumed:
        gaps.setdefault(a.field.partition(".")[0], []).append(a)
    for key, facts in Design.section_fields().items():
        if key in data or key in gaps and key in _SECTIONS:
            lines += ["", *_section(key, data.get(key, {}), facts.text, gaps.pop(key, ()))]
    for rest in gaps.values():
        lines += ["", *(f"# {_said(a)}" for a in rest)]
    return "\n".join(lines) + "\n"


_SECTIONS = ("job", "reliability", "prices")


def _section(key: str, value, what: str, assumed):
    """Lines of a section: its fields, and what was assumed beside them."""
    if not isinstance(value, dict):
        head = _line(f"{key}: {design_yaml.inline(value)}", what)
        return [head, *(f"# {_said(a)}" for a in assumed)]
    known = {name: facts.text for name, facts in Design.section_fields(key).items()}
    lines = [_line(f"{key}:", what)]
    chosen = {a.field.partition(".")[2]: f"assumed: {plain(a.why, 200)}" for a in assumed}
    for k, v in value.items():
        lines.append(_line(f"  {k}: {design_yaml.inline(v)}", chosen.get(k, known.get(k))))
    for a in assumed:
        name = a.field.partition(".")[2]
        said = f"  # {_said(a)}"
        if name in known and not isinstance(a.value, (dict, list, tuple, type(None))):
            head = f"  # {name}: {design_yaml.inline(a.value)}"
            said = _line(head, f"assumed: {plain(a.why, 200)}")
        lines += [said] * (name not in value)
    return lines


def _line(head, comment):
    if not comment:
        return head
    return f"{head:<48}# {comment}" if len(head) < 48 else f"{head}  # {comment}"


def _said(a):
    value = "" if a.value is None else f" = {plain(str(a.value), 60)}"
    return f"assumed {plain(a.field, 80)}{value}: {plain(a.why, 200)}"
