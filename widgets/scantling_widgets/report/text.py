"""Sentences of the report: jinja2 templates filled from an Assessment. Nothing here computes;
numbers are shown as the library shows them."""

from __future__ import annotations

import functools
import json
import re
from types import SimpleNamespace

import jinja2
from scantling import cluster as blueprint
from scantling.design.constraints import CONSTRAINTS

from .phrases import FILTERS, band, fabric, in_unit, show, value_text

REFUSAL = {"error": "Hardware constraints insufficient for model parameters"}

LOSSES = {
    "attention": "attention core",
    "elementwise": "element-wise kernels",
    "logits": "output head and loss",
    "recompute": "activation recompute",
    "tp": "exposed TP communication",
    "cp": "exposed CP communication",
    "ep": "exposed EP all-to-all",
    "dp": "exposed DP communication",
    "pp": "exposed PP sends",
    "bubble": "pipeline bubble",
    "optimizer": "optimizer update",
    "host": "host and launches",
    "straggler": "stragglers",
    "data": "waiting for data",
}
LIBRARIES = {
    "NVIDIA": "NCCL",
    "AMD": "RCCL",
    "Google": "XLA",
    "AWS": "Neuron",
    "Intel": "HCCL",
    "Huawei": "HCCL",
}
# limits, changes, risks and things to avoid on the first page; all of them are in the appendix
FRONT = 3
RDMA = (
    "ib-",
    "roce",
    "oci-roce",
    "gcp-roce",
    "gb200-so",
    "efa",
)  # fabrics whose devices read each other's memory


@functools.cache
def environment() -> jinja2.Environment:
    """Templates of this package; everything put into one is escaped."""
    env = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=jinja2.ChainableUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals.update(n=show, band=band, unit=in_unit)
    env.filters.update(FILTERS)
    return env


def macros():
    """The macros of tables, as functions."""
    return environment().get_template("tables.j2").module


def render(name: str, view: dict) -> str:
    """One section as HTML; empty where the design gives no reason for it."""
    return environment().get_template(f"{name}.j2").render(view).strip()


def view(data: dict, resolved, main: int = 0) -> dict:
    """What the templates may say: an assessment as plain data, and the resolved inputs it was made
    from; `main` is the phase of the headline."""
    a = SimpleNamespace(**data)
    if a.verdict == "impossible":
        proof = getattr(a, "proof", None) or getattr(a, "limits", [])
        return {
            "a": a,
            "refusal": json.dumps(REFUSAL),
            "proof": proof,
            "title": resolved.name,
            "given_line": given_line(resolved, main),
        }
    endurance = getattr(a, "endurance", None) or {}
    return {
        "a": a,
        "p": SimpleNamespace(**a.plan),
        "e": SimpleNamespace(**endurance),
        "k": SimpleNamespace(**(getattr(a, "cost", None) or {})),
        "c": resolved.cluster,
        "m": resolved.model,
        "job": resolved.phases[main],
        "phases": resolved.phases,
        "title": resolved.name,
        "given_line": given_line(resolved, main),
        "library": LIBRARIES.get(resolved.cluster.accelerator.vendor, "the vendor's"),
        "rdma": resolved.cluster.scale_out.startswith(RDMA),
        "headline": headline(a, getattr(a, "cost", None) or {}),
        "asked": asked(data, resolved.constraints),
        "tokens": sum(p.tokens or 0 for p in resolved.phases),
        "fullest": fullest_phase(a),
        "losses": losses(a),
        "overlap": overlap(a),
        "carried": carried(a),
        "badput": badput(endurance),
        "front": FRONT,
        "specialist": specialist(a, resolved, resolved.phases[main]),
        "given": given(resolved),
        "quantities": appendix(a),
    }


class Parts:
    """The parts of a blueprint as plain data, each worked out when a section first asks for it."""

    def __init__(self, assessment):
        self._assessment = assessment

    def __getattr__(self, name: str):
        part = blueprint.part(self._assessment, name)
        made = None if part is None else plain(part.as_dict())
        setattr(self, name, made)
        return made


def given_line(resolved, main: int = 0) -> str:
    """What is to be trained, on what, in one line."""
    from scantling.base.quantities import table as quantities

    m, c, job = resolved.model, resolved.cluster, resolved.phases[main]
    size = quantities.show("params", resolved.params.total)
    if resolved.params.active != resolved.params.total:
        size += f", {quantities.show('active_params', resolved.params.active)} active"
    parts = [
        f"{m.name}, {size} parameters" if m.name else f"{size} parameters",
        f"{show('count', c.devices)} × {c.accelerator.name}",
    ]
    if c.nodes > 1:
        parts.append(fabric(c.scale_out))
    tokens = (
        f"{show('tokens', total)} tokens, "
        if (total := sum(p.tokens or 0 for p in resolved.phases))
        else ""
    )
    parts.append(
        f"{tokens}sequence {show('count', job.seq_len)}, batch "
        f"{show('count', job.global_batch)}, {job.precision}"
    )
    return " · ".join(parts)


def plain(data):
    """Numbers, text, lists and mappings alone, as JSON holds them; percentages in its sentences as
    the library shows them."""
    text = json.dumps(data, default=lambda x: x.tolist() if hasattr(x, "tolist") else str(x))
    return json.loads(re.sub(r"(?<=\d)%", " %", text))


def headline(a, cost) -> list[dict]:
    """The tiles on top: label, value, band."""

    def tile(label, key, value, low=None, high=None, note=""):
        return {
            "label": label,
            "value": show(key, value),
            "band": band(key, low, high)
            if low is not None and high is not None and low != high
            else note,
        }

    tiles = [
        tile("MFU", "mfu", a.mfu, a.mfu_low, a.mfu_high),
        tile("Step", "step_s", a.step_s, a.step_s_low, a.step_s_high),
    ]
    if a.days is not None:
        tiles.append(tile("Days", "days", a.days, a.days_low, a.days_high))
    if a.cost_usd is not None:
        tiles.append(
            tile(
                "Cost", "cost_usd", a.cost_usd, cost.get("cost_usd_low"), cost.get("cost_usd_high")
            )
        )
    tiles += [
        tile(
            "Memory",
            "bytes",
            a.memory_bytes["total"],
            note=f"of {show('bytes', a.memory_bytes['capacity'])}",
        ),
        tile("Goodput", "goodput", a.goodput, note="of wall time"),
        tile("MTBF", "mtbf_s", a.mtbf_s, note="of the whole job"),
        tile(
            "Checkpoint every",
            "checkpoint_interval_s",
            a.checkpoint_interval_s,
            note=f"{show('checkpoint_overhead', a.checkpoint_overhead)} overhead",
        ),
    ]
    return tiles


def asked(data: dict, constraints) -> list[dict]:
    """The constraints of the design, each beside the figure that answers it and whether it is
    met."""
    from ..words import at

    missed = {row["field"] for row in data.get("missed") or []}
    rows = []
    for field, row in CONSTRAINTS.items():
        limit, key = getattr(constraints, field, None), row.figure
        if limit is not None:
            rows.append(
                {
                    "what": row.name,
                    "limit": show(key, limit if field == "survive" else limit * row.scale),
                    "met": field not in missed,
                    "value": "copies survive a " + show(key, at(data, key))
                    if field == "survive"
                    else show(key, at(data, key)),
                }
            )
    return rows


def fullest_phase(a) -> str:
    """The name of the phase whose memory the headline is, where there are several."""
    phases = getattr(a, "phases", None) or []
    return max(phases, key=lambda f: f["memory_bytes"])["name"] if len(phases) > 1 else ""


def losses(a) -> list[dict]:
    """What a step spends beside matrix products, longest first, with the limit that names it."""
    parts = [
        (key, value) for key, value in a.step_breakdown_s.items() if value > 0 and key != "gemm"
    ]
    parts.sort(key=lambda kv: -kv[1])
    why = {row["axis"]: row["text"] for row in getattr(a, "why", []) or []}
    return [
        {
            "key": k,
            "name": LOSSES.get(k, k),
            "time_s": v,
            "what": why.get(k) if k not in ("tp", "pp", "cp", "dp", "ep") else None,
        }
        for k, v in parts[:6]
    ]


def overlap(a) -> list[dict]:
    """Communication hidden under compute and exposed, by axis."""
    hidden = getattr(a, "hidden_s", None) or {}
    return [
        {
            "axis": axis,
            "hidden_s": hidden.get(axis, 0),
            "exposed_s": a.step_breakdown_s.get(axis, 0),
        }
        for axis in ("tp", "cp", "ep", "dp", "pp")
        if hidden.get(axis, 0) or a.step_breakdown_s.get(axis, 0)
    ]


def carried(a) -> SimpleNamespace:
    """The axes that ride on each tier."""

    def axes(*names):
        return ", ".join(
            dict.fromkeys(
                row["axis"].upper()
                for row in getattr(a, "communication", [])
                if row["tier"] in names and row["bytes"]
            )
        )

    return SimpleNamespace(up=axes("scale-up", "scale_up"), out=axes("scale-out", "scale_out"))


def badput(endurance: dict) -> list[dict]:
    """Shares of wall time that train nothing, largest first."""
    shares = endurance.get("badput") or {}
    from ..words import label_or

    return [
        {
            "name": label_or(f"endurance.badput.{key}", key.replace("_", " ").capitalize()),
            "share": value,
        }
        for key, value in sorted(shares.items(), key=lambda kv: -(kv[1] or 0))
        if value
    ]


def specialist(a, resolved, job) -> list[dict]:
    """What an ML specialist has to confirm."""
    plan, out = a.plan, []
    if job.precision == "fp16":
        out.append(
            {
                "what": "Precision recipe, fp16",
                "why": "dynamic loss scaling, and which operations stay in fp32.",
            }
        )
    elif job.precision not in ("bf16", "fp32"):
        out.append(
            {
                "what": f"Precision recipe, {job.precision}",
                "why": (
                    "which matrix products run in it, the scaling granularity, and that "
                    "norms, softmax, router and master weights stay higher."
                ),
            }
        )
    if plan["dp"] > 1:
        out.append(
            {
                "what": "Batch after a reshape",
                "why": f"losing data-parallel ranks changes accumulation "
                f"{show('grad_accum', plan['grad_accum'])} or the global batch of "
                f"{show('global_batch', job.global_batch)} sequences; the latter needs a "
                f"new learning-rate schedule.",
            }
        )
    if len(resolved.phases) > 1:
        out.append(
            {
                "what": "Batch and sequence ramp",
                "why": (
                    f"{len(resolved.phases)} phases change the global batch or the sequence length."
                ),
            }
        )
    if resolved.model.experts:
        out.append(
            {
                "what": "Router balance",
                "why": (
                    "strength of the balancing term against quality; the step time assumes "
                    "the balance stated under assumptions."
                ),
            }
        )
    return out


def given(resolved) -> list[dict]:
    """The fields that the design file gives, by dotted path."""

    def walk(value, path):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from walk(inner, [*path, str(key)])
        elif isinstance(value, (list, tuple)) and value and isinstance(value[0], dict):
            for i, inner in enumerate(value):
                yield from walk(inner, [*path, str(i)])
        else:
            yield {"field": ".".join(path), "value": value_text(value)}

    return [
        row for row in walk(resolved.design.data(), []) if row["field"] not in ("scantling", "name")
    ]


def appendix(a) -> list[dict]:
    """The numbers of the assessment with formula, convention and source, from the library's table
    of quantities."""
    from scantling.base.quantities import table as quantities

    rows = []
    for q in quantities.table().values():
        value = vars(a)
        for step in q.key.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if (
            isinstance(value, (int, float))
            and not isinstance(value, bool)
            and q.kind != "text"
            and not q.formula.startswith("as ")
            and not q.key.endswith(("_low", "_high"))
            and not q.key.startswith(("search_", "plan.", "hidden_s."))
            and not (q.key.startswith("step_breakdown_s.") and not value)
        ):
            rows.append(
                {
                    "label": q.label,
                    "key": q.key,
                    "value": quantities.shown(value, q.kind, q.unit),
                    "formula": q.formula,
                    "convention": q.convention,
                    "source": q.source,
                }
            )
    return rows
