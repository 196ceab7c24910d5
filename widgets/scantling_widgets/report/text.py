"""Sentences of the report: jinja2 templates filled from an Assessment. Nothing here computes;
numbers are shown as the library shows them."""

import functools
from json import dumps, loads
from re import sub

import jinja2
import scantling_site as site
from scantling import catalogue
from scantling.advise.comparison import flat
from scantling.base.quantities import table as quantities
from scantling.base.quantities.table import band, band_in
from scantling.base.show import is_number, shown
from scantling.base.words import Words
from scantling.verdict.verdicts import VERDICTS

from ..charts.endurance import shares
from ..charts.network import AXES, by_axis
from ..words import at, withheld
from .phrases import FILTERS, WORDS, in_unit, show, value_text

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
    env.globals.update(n=show, band=band, unit=in_unit)
    env.filters.update(FILTERS)
    return env


def macros():
    """The macros of tables, as functions."""
    return environment().get_template("tables.j2").module


def render(name: str, view: dict) -> str:
    """One section as HTML; empty where the design gives no reason for it."""
    return environment().get_template(f"{name}.j2").render(view).strip()


def view(data: dict, resolved) -> dict:
    """What the templates may say: an assessment as plain data, and the resolved inputs it was made
    from."""
    common = {
        "a": data,
        "title": resolved.name,
        "c": resolved.cluster,
        "m": resolved.model,
        "size": resolved.params,
        "job": resolved.main_phase,
        "given": given(resolved),
        "assumed": data.get("assumed", resolved.assumed),
        "tokens": sum(phase.tokens or 0 for phase in resolved.phases),
    }
    if data["verdict"] == "impossible":
        return common | {
            "refusal": dumps(REFUSAL),
            "proof": data.get("proof") or data.get("limits", []),
        }
    cluster = resolved.cluster
    return common | {
        "p": data["plan"],
        "e": data.get("endurance") or {},
        "k": data.get("cost") or {},
        "phases": resolved.phases,
        "library": WORDS["libraries"].get(cluster.accelerator.vendor, "the vendor's"),
        "rdma": catalogue.fabric(cluster.scale_out).transport in _RDMA,
        "headline": headline(data),
        "called": VERDICTS[data["verdict"]].name,
        "asked": data.get("asked", ()),
        "fullest": fullest_phase(data),
        "losses": losses(data),
        "overlap": by_axis(data),
        "carried": carried(data),
        "badput": shares(data),
        "front": FRONT,
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


def plain(data):
    """Numbers, text, lists and mappings alone, as JSON holds them; percentages in its sentences as
    the library shows them."""
    return loads(
        sub(
            r"(?<=\d)%",
            " %",
            dumps(data, default=lambda x: x.tolist() if hasattr(x, "tolist") else str(x)),
        )
    )


def headline(data: dict) -> list[dict]:
    """The tiles on top: label, value, and the band or a remark below it."""
    tiles, say = [], Words(WORDS["below"])
    for key, name in WORDS["tiles"].items():
        value = at(data, key)
        below = say(key, **data) if key in WORDS["below"] else band_in(data, key)
        if withheld(data, key):
            value, below = None, "does not fit"
        if value is not None or below:
            name = name.format_map(data)
            tiles.append({"label": name, "value": show(key, value), "band": below})
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
        {"name": WORDS["losses"].get(key, key), "time_s": value, "what": why.get(key)}
        for key, value in parts
        if value > 0 and key != "gemm"
    ]
    return rows[:6]


def carried(data: dict) -> dict[str, str]:
    """The axes that ride on each tier."""
    axes = {"up": {}, "out": {}}
    for row in data.get("communication") or ():
        if row["bytes"]:
            axes[row["tier"].removeprefix("scale-")][row["axis"].upper()] = None
    return {tier: ", ".join(names) for tier, names in axes.items()}


def given(resolved) -> list[dict]:
    """The fields that the design file gives, by dotted path."""
    return [
        {"field": path, "value": value_text(value)}
        for path, value in flat(resolved.design.data()).items()
        if path not in ("scantling", "name")
    ]


_NOT_LISTED = ("search_", "plan.", "hidden_s.")


def appendix(data: dict) -> list[dict]:
    """The numbers of the assessment with formula, convention and source, from the library's table
    of quantities."""
    rows = []
    for key, q in quantities.table().items():
        value = at(data, key)
        derived = q.kind == "text" or q.formula.startswith("as ") or key.endswith(("_low", "_high"))
        nil = key.startswith("step_breakdown_s.") and not value
        if is_number(value) and not (derived or nil or key.startswith(_NOT_LISTED)):
            said = {"value": shown(value, q.kind, q.unit)}
            about = ("label", "key", "formula", "convention", "source")
            rows.append(said | {name: getattr(q, name) for name in about})
    return rows
