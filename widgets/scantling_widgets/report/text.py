"""Sentences of the report: jinja2 templates filled from an Assessment. Nothing here computes;
numbers are shown as the library shows them."""

from __future__ import annotations

import functools
import json
import re
from types import SimpleNamespace

import jinja2
from scantling import catalogue
from scantling import cluster as site
from scantling.base.quantities import table as quantities
from scantling.base.records import record
from scantling.base.show import shown
from scantling.verdict.verdicts import VERDICTS

from ..charts_endurance import shares
from ..words import at, label_or, withheld
from .charts import AXES, by_axis
from .phrases import FILTERS, WORDS, band, fabric, in_unit, show, value_text

REFUSAL = {"error": "Hardware constraints insufficient for model parameters"}
# limits, changes, risks and things to avoid on the first page; all of them are in the appendix
FRONT = 3
_RDMA = ("verbs", "srd")  # transports by which devices read each other's memory


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
    env.globals.update(
        n=show,
        band=band,
        unit=in_unit,
    )
    env.filters.update(FILTERS)
    return env


@record
class Html:
    """HTML that a notebook shows, with plain words for programs that cannot."""

    html: str
    words: str = "<part of a design report>"

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.words


def macros():
    """The macros of tables, as functions."""
    return environment().get_template("tables.j2").module


def render(name: str, view: dict) -> str:
    """One section as HTML; empty where the design gives no reason for it."""
    return environment().get_template(f"{name}.j2").render(view).strip()


def view(data: dict, resolved) -> dict:
    """What the templates may say: an assessment as plain data, and the resolved inputs it was made
    from."""
    a, cluster = SimpleNamespace(**data), resolved.cluster
    common = {
        "a": a,
        "title": resolved.name,
        "given_line": given_line(resolved),
    }
    if a.verdict == "impossible":
        return {
            **common,
            "refusal": json.dumps(REFUSAL),
            "proof": data.get("proof") or data.get("limits", []),
        }
    return {
        **common,
        "p": SimpleNamespace(**a.plan),
        "e": SimpleNamespace(**(data.get("endurance") or {})),
        "k": SimpleNamespace(**(data.get("cost") or {})),
        "c": cluster,
        "m": resolved.model,
        "job": resolved.main_phase,
        "phases": resolved.phases,
        "library": WORDS["libraries"].get(cluster.accelerator.vendor, "the vendor's"),
        "rdma": catalogue.fabric(cluster.scale_out).transport in _RDMA,
        "headline": headline(data),
        "called": VERDICTS[a.verdict].name,
        "asked": data.get("asked", ()),
        "tokens": _tokens(resolved),
        "fullest": fullest_phase(data),
        "losses": losses(data),
        "overlap": overlap(data),
        "carried": carried(data),
        "badput": badput(data),
        "front": FRONT,
        "given": given(resolved),
        "quantities": appendix(data),
    }


class Parts(dict):
    """The parts of a site as plain data by name, each worked out when a section first asks for
    it."""

    def __init__(self, assessment):
        super().__init__()
        self.assessment = assessment

    def __missing__(self, name: str):
        part = site.part(self.assessment, name)
        self[name] = None if part is None else plain(part.as_dict())
        return self[name]


def _tokens(resolved) -> float:
    return sum(phase.tokens or 0 for phase in resolved.phases)


def given_line(resolved) -> str:
    """What is to be trained, on what, in one line."""
    m, c, job, params = resolved.model, resolved.cluster, resolved.main_phase, resolved.params
    size = show("params", params.total)
    if params.active != params.total:
        size += f", {show('active_params', params.active)} active"
    total = _tokens(resolved)
    tokens = f"{show('tokens', total)} tokens, " if total else ""
    parts = (
        f"{m.name}, {size} parameters" if m.name else f"{size} parameters",
        f"{show('count', c.devices)} × {c.accelerator.name}",
        fabric(c.scale_out) if c.nodes > 1 else "",
        f"{tokens}sequence {show('count', job.seq_len)}, batch {show('count', job.global_batch)}, "
        f"{job.precision}",
    )
    return " · ".join(filter(None, parts))


def plain(data):
    """Numbers, text, lists and mappings alone, as JSON holds them; percentages in its sentences as
    the library shows them."""
    text = json.dumps(data, default=lambda x: x.tolist() if hasattr(x, "tolist") else str(x))
    return json.loads(re.sub(r"(?<=\d)%", " %", text))


def headline(data: dict) -> list[dict]:
    """The tiles on top: label, value, and the band or a remark below it."""
    notes = {
        "memory_bytes.total": f"of {show('bytes', data['memory_bytes']['capacity'])}",
        "goodput": "of wall time",
        "mtbf_s": "of the whole job",
        "checkpoint_interval_s": (
            f"{show('checkpoint_overhead', data['checkpoint_overhead'])} overhead"
        ),
    }
    tiles = []
    for key, name in WORDS["tiles"].items():
        value, notable = at(data, key), notes.get(key, "")
        if withheld(data, key):
            value, notable = None, "does not fit"
        low, high = (at(data, f"{key}_{e}") for e in ("low", "high"))
        ends = not notable and None not in (low, high) and low != high
        if notable or value is not None or key not in ("days", "cost_usd"):
            below = band(key, low, high) if ends else notable
            tiles.append(
                {
                    "label": name,
                    "value": show(key, value),
                    "band": below,
                }
            )
    return tiles


def fullest_phase(data: dict) -> str:
    """The name of the phase whose memory the headline is, where there are several."""
    phases = data.get("phases") or []
    return max(phases, key=lambda f: f["memory_bytes"])["name"] if len(phases) > 1 else ""


def losses(data: dict) -> list[dict]:
    """What a step spends beside matrix products, longest first, with the limit that names it."""
    why = {row["axis"]: row["text"] for row in data.get("why") or () if row["axis"] not in AXES}
    parts = sorted(data["step_breakdown_s"].items(), key=lambda kv: -kv[1])
    rows = [
        {
            "name": WORDS["losses"].get(key, key),
            "time_s": value,
            "what": why.get(key),
        }
        for key, value in parts
        if value > 0 and key != "gemm"
    ]
    return rows[:6]


def overlap(data: dict) -> list[dict]:
    """Communication hidden under compute and exposed, by axis."""
    keys = ("axis", "exposed_s", "hidden_s")
    return [dict(zip(keys, row)) for row in by_axis(data)]


def carried(data: dict) -> dict[str, str]:
    """The axes that ride on each tier."""
    axes = {
        "scale-up": {},
        "scale-out": {},
    }
    for row in data.get("communication") or ():
        if row["bytes"]:
            axes.setdefault(row["tier"].replace("_", "-"), {})[row["axis"].upper()] = None
    return {
        "up": ", ".join(axes["scale-up"]),
        "out": ", ".join(axes["scale-out"]),
    }


def badput(data: dict) -> list[dict]:
    """Shares of wall time that train nothing, largest first."""
    return [
        {
            "name": label_or(f"endurance.badput.{key}", key.replace("_", " ").capitalize()),
            "share": value,
        }
        for key, value in shares(data).items()
    ]


def given(resolved) -> list[dict]:
    """The fields that the design file gives, by dotted path."""

    def walk(value, path):
        inner = value.items() if isinstance(value, dict) else ()
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], dict):
            inner = enumerate(value)
        elif not isinstance(value, dict):
            yield {
                "field": ".".join(path),
                "value": value_text(value),
            }
        for key, part in inner:
            yield from walk(part, [*path, str(key)])

    rows = walk(resolved.design.data(), [])
    return [row for row in rows if row["field"] not in ("scantling", "name")]


_NOT_LISTED = ("search_", "plan.", "hidden_s.")


def appendix(data: dict) -> list[dict]:
    """The numbers of the assessment with formula, convention and source, from the library's table
    of quantities."""
    rows = []
    for key, q in quantities.table().items():
        value = at(data, key)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        derived = q.kind == "text" or q.formula.startswith("as ") or key.endswith(("_low", "_high"))
        nil = key.startswith("step_breakdown_s.") and not value
        if number and not (derived or nil or key.startswith(_NOT_LISTED)):
            said = {"value": shown(value, q.kind, q.unit)}
            about = ("label", "key", "formula", "convention", "source")
            rows.append(said | {name: getattr(q, name) for name in about})
    return rows
