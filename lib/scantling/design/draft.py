"""A first design file: fields put together, gaps filled by stated rules, and comments that say what
each line is."""

from __future__ import annotations

import math

from .. import catalogue
from ..base.errors import DesignError, plain
from ..base.records import Assumed
from ..catalogue.models.entries import entry
from ..catalogue.models.shape import parameters
from . import file as design_yaml
from .brief.read import Brief
from .design import Design

_START = "h100-sxm"  # accelerator when only a model is named
_STATE_BYTES = 18.0  # bf16 weights, fp32 gradients, fp32 master copy and two moments
_ROOM = 4.0


def draft(brief: Brief | None, like: str | None) -> tuple[Design, list[Assumed]]:
    """(design, what was assumed) from a brief, a catalogue model, or both.

    A model alone gets a machine: h100-sxm, the smallest power of two of whole nodes with four times
    the memory of weights, gradients and Adam
    states (18 bytes a parameter). A brief without an accelerator, a device count or a model is an
    error that says which is missing.
    """
    fields = dict(brief.fields) if brief else {}
    assumed = list(brief.assumed) if brief else []
    if like is not None:
        if any(k == "model" or k.startswith("model.") for k in fields):
            raise DesignError(
                "--like",
                like,
                "a model named once: by --like or in --text",
                problem="is given beside a model in the text",
            )
        fields["model"] = entry(like, "--like").id
    if brief is None:
        devices = starting_devices(fields["model"])
        fields["cluster.accelerator"], fields["cluster.devices"] = _START, devices
        assumed.append(
            Assumed("cluster.accelerator", _START, "no machine given: a common one to start from")
        )
        assumed.append(
            Assumed(
                "cluster.devices",
                devices,
                (
                    f"smallest power of two with {_ROOM:g} x the memory of weights, "
                    f"gradients and Adam states ({_STATE_BYTES:g} bytes a parameter)"
                ),
            )
        )
    for path, example in (
        ("model", "175B dense, or --like llama-3.1-70b"),
        ("cluster.accelerator", "1024x H100"),
        ("cluster.devices", "1024x H100"),
    ):
        if not any(k == path or k.startswith(path + ".") for k in fields):
            raise DesignError(
                "text",
                problem=f"says nothing about {path}",
                allowed=f"for instance {example}",
            )
    data: dict = {
        "scantling": 1,
        "model": {},
        "cluster": {},
        "job": {},
    }
    for path, value in fields.items():
        section, _, name = path.partition(".")
        if name:
            data.setdefault(section, {})[name] = value
        else:
            data[section] = value
    if not isinstance(data["model"], str) and "size" not in data["model"]:
        missing = [f for f in ("layers", "hidden", "heads") if f not in data["model"]]
        if missing:
            raise DesignError(
                "text",
                problem="gives no size of the model",
                allowed="parameters (175B), a catalogue model, or layers, hidden size and heads",
            )
    return Design.from_data(data), assumed


def starting_devices(model: str) -> int:
    """Devices to start with for a catalogue model; the rule is in `draft`."""

    need = _ROOM * _STATE_BYTES * parameters(entry(model).model).total
    return max(8, 2 ** math.ceil(math.log2(need / catalogue.accelerator(_START).hbm_usable_bytes)))


def commented(
    design: Design,
    text: str | None,
    assumed,
) -> str:
    """The design as YAML with a comment on every field, and what was assumed as commented lines
    that can be put to use."""
    lines = [
        (
            "# A design file for scantling: `scantling design FILE` assesses it, `scantling "
            "schema` lists all fields."
        ),
        "# Lines behind # are assumed; take the # away to state your own.",
    ]
    if text:
        lines.append(f"# Read from: {plain(' '.join(text.split()), 2000)}")
    data = dict(design.data())
    gaps: dict[str, list[Assumed]] = {}
    for a in assumed:
        gaps.setdefault(a.field.partition(".")[0], []).append(a)
    for key in type(design).model_fields:
        if key not in data and not (key in gaps and key in _SECTIONS):
            continue
        info = type(design).model_fields[key]
        value = data.get(key, {})
        lines.append("")
        if isinstance(value, dict):
            lines += _section(
                key,
                value,
                info.description,
                gaps.pop(key, []),
            )
        else:
            lines.append(
                _line(
                    0,
                    key,
                    value,
                    info.description,
                )
            )
            lines += _rest("# ", gaps.pop(key, []))
    for rest in gaps.values():
        lines += ["", *_rest("# ", rest)]
    return "\n".join(lines) + "\n"


_SECTIONS = ("job", "reliability", "prices")


def _section(
    key,
    value,
    what,
    assumed,
):
    known = Design.section_fields(key)
    lines = [_aligned(f"{key}:", what)]
    lines += [
        _line(
            2,
            k,
            v,
            known[k].description if k in known else "",
        )
        for k, v in value.items()
    ]
    for a in assumed:
        name = a.field.partition(".")[2]
        if name in value:
            continue
        usable = (
            name in known and a.value is not None and not isinstance(a.value, (dict, list, tuple))
        )
        lines.append(
            _aligned(f"  # {name}: {design_yaml.inline(a.value)}", f"assumed: {plain(a.why, 200)}")
            if usable
            else f"  # {_said(a)}"
        )
    return lines


def _line(
    indent,
    key,
    value,
    what,
):
    return _aligned(" " * indent + f"{key}: {design_yaml.inline(value)}", what or "")


def _aligned(head, comment):
    return (
        f"{head:<48}# {comment}"
        if comment and len(head) < 48
        else f"{head}  # {comment}"
        if comment
        else head
    )


def _rest(mark, assumed):
    return [mark + _said(a) for a in assumed]


def _said(a):
    value = "" if a.value is None else f" = {plain(str(a.value), 60)}"
    return f"assumed {plain(a.field, 80)}{value}: {plain(a.why, 200)}"
