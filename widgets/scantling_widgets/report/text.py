"""Sentences of the report: jinja2 templates filled from an Assessment. Nothing here computes; numbers are shown as the library shows them."""
from __future__ import annotations

import functools
import json
import re
from types import SimpleNamespace

import jinja2
from markupsafe import Markup, escape

REFUSAL = {"error": "Hardware constraints insufficient for model parameters"}

SCHEDULES = {"gpipe": "GPipe", "1f1b": "1F1B", "interleaved": "interleaved 1F1B", "zero-bubble": "zero-bubble", "zb1p": "zero-bubble ZB-H1",
             "zbv": "zero-bubble ZB-V", "dualpipe": "DualPipe", "none": "no schedule"}
VERDICTS = {"feasible": "meets every constraint", "constraint-missed": "still misses one", "impossible": "holds no plan"}
RECOMPUTE = {"none": "No activation recompute", "selective": "Selective activation recompute", "full": "Full activation recompute"}
LOSSES = {"attention": "attention core", "elementwise": "element-wise kernels", "logits": "output head and loss", "recompute": "activation recompute", "tp": "exposed TP communication",
          "cp": "exposed CP communication", "ep": "exposed EP all-to-all", "dp": "exposed DP communication", "pp": "exposed PP sends", "bubble": "pipeline bubble",
          "optimizer": "optimizer update", "host": "host and launches", "straggler": "stragglers", "data": "waiting for data"}
# what a design may ask for: the figure that answers it
ASKED = {"deadline_days": ("deadline", "days"), "budget_usd": ("budget", "cost_usd"), "min_mfu": ("MFU, at least", "mfu"), "min_goodput": ("goodput, at least", "goodput"),
         "max_checkpoint_overhead": ("checkpoint overhead", "checkpoint_overhead"), "max_checkpoint_stall_s": ("stall of a save", "endurance.checkpoint_stall_s"),
         "max_lost_work_s": ("lost work", "endurance.lost_work_s"), "max_recovery_s": ("recovery", "endurance.recovery_s"), "max_power_mw": ("facility power", "cost.power_w"),
         "survive": ("survive the loss of a", "endurance.copies_survive")}
LIBRARIES = {"NVIDIA": "NCCL", "AMD": "RCCL", "Google": "XLA", "AWS": "Neuron", "Intel": "HCCL", "Huawei": "HCCL"}


FRONT = 3           # limits, changes, risks and things to avoid on the first page; all of them are in the appendix

# inputs, and figures that stand in several lists: how they are shown
KINDS = {"bytes": "bytes", "time_s": "seconds", "share": "share", "bytes_per_s": "bytes_per_s", "count": "count", "devices": "count", "nodes": "count",
         "kg": "count", "events": "rate", "seq_len": "count", "global_batch": "count", "grad_accum": "count", "tokens": "params", "chance": "chance"}
UNITS = {"kg": "kg"}

_OF_UNIT = (("bytes/s", "bytes_per_s"), ("bytes", "bytes"), ("FLOP/s", "flops"), ("share", "share"), ("s", "seconds"), ("days", "days"), ("USD", "usd"), ("W", "watts"), ("kWh", "kwh"))
RDMA = ("ib-", "roce", "oci-roce", "gcp-roce", "gb200-so", "efa")        # fabrics whose devices read each other's memory


def show(key: str, value) -> str:
    """A value as text with its unit, by the library's own rule for `key`: a quantity of the assessment, or a kind of input."""
    from scantling import quantities
    return quantities.shown(value, KINDS[key], UNITS.get(key, "")) if key in KINDS else quantities.show(key, value)


def in_unit(unit: str, value) -> str:
    """A value that comes with the name of its unit."""
    from scantling import quantities
    kind = next((kind for name, kind in _OF_UNIT if unit == name or unit.startswith(f"{name} ")), None)
    if kind:
        return quantities.shown(value, kind)
    whole = unit != "ratio" and isinstance(value, (int, float)) and value == int(value)
    return quantities.shown(value, "count" if whole else "rate", "" if unit in ("count", "ratio") else unit)


def band(key: str, low, high) -> str:
    """A band as text, the unit once."""
    from scantling import quantities
    return quantities.band(key, low, high)


@functools.cache
def environment() -> jinja2.Environment:
    """Templates of this package; everything put into one is escaped."""
    env = jinja2.Environment(loader=jinja2.PackageLoader(__package__, "templates"), autoescape=True, undefined=jinja2.ChainableUndefined,
                             trim_blocks=True, lstrip_blocks=True)
    env.globals.update(n=show, band=band, unit=in_unit)
    env.filters.update(lead=_lead, cell=lambda t: str(t).replace("|", "\\|").replace("\n", " "), fabric=fabric, nodes=_nodes, storage=storage, after_colon=_after_colon, beyond=_beyond, upfirst=_upfirst, sentence=_sentence, value=_value, plan_text=plan_text, fix_figures=_fix_figures, impact=_impact, asked_by=_asked_by, under=_under, within=_within,
                       verdict=lambda v: VERDICTS.get(v, v), schedule=lambda s: SCHEDULES.get(s, s), recompute=lambda r: RECOMPUTE.get(r, r))
    return env


def render(name: str, view: dict) -> str:
    """One section as HTML; empty where the design gives no reason for it."""
    return environment().get_template(f"{name}.j2").render(view).strip()


def view(data: dict, resolved, main: int = 0) -> dict:
    """What the templates may say: an assessment as plain data, and the resolved inputs it was made from; `main` is the phase of the headline."""
    a = SimpleNamespace(**data)
    if a.verdict == "impossible":
        proof = getattr(a, "proof", None) or getattr(a, "limits", [])
        return {"a": a, "refusal": json.dumps(REFUSAL), "proof": proof, "title": resolved.name, "given_line": given_line(resolved, main)}
    endurance = getattr(a, "endurance", None) or {}
    return {"a": a, "p": SimpleNamespace(**a.plan), "e": SimpleNamespace(**endurance), "k": SimpleNamespace(**(getattr(a, "cost", None) or {})),
            "c": resolved.cluster, "m": resolved.model, "job": resolved.phases[main], "phases": resolved.phases, "title": resolved.name, "given_line": given_line(resolved, main),
            "library": LIBRARIES.get(resolved.cluster.accelerator.vendor, "the vendor's"), "rdma": resolved.cluster.scale_out.startswith(RDMA),
            "headline": headline(a, getattr(a, "cost", None) or {}), "asked": asked(data, resolved.constraints), "tokens": sum(p.tokens or 0 for p in resolved.phases), "fullest": fullest_phase(a), "losses": losses(a), "overlap": overlap(a), "carried": carried(a), "badput": badput(endurance),
            "front": FRONT, "specialist": specialist(a, resolved, resolved.phases[main]), "given": given(resolved), "quantities": appendix(a)}


class Parts:
    """The parts of a blueprint as plain data, each worked out when a section first asks for it."""

    def __init__(self, blueprint):
        self._blueprint = blueprint

    def __getattr__(self, name: str):
        part = getattr(self._blueprint, name)
        made = None if part is None else plain(part.as_dict())
        setattr(self, name, made)
        return made


def given_line(resolved, main: int = 0) -> str:
    """What is to be trained, on what, in one line."""
    from scantling import quantities
    m, c, job = resolved.model, resolved.cluster, resolved.phases[main]
    size = quantities.show("params", resolved.params.total)
    if resolved.params.active != resolved.params.total:
        size += f", {quantities.show('active_params', resolved.params.active)} active"
    parts = [f"{m.name}, {size} parameters" if m.name else f"{size} parameters", f"{show('count', c.devices)} × {c.accelerator.name}"]
    if c.nodes > 1:
        parts.append(fabric(c.scale_out))
    tokens = f"{show('tokens', total)} tokens, " if (total := sum(p.tokens or 0 for p in resolved.phases)) else ""
    parts.append(f"{tokens}sequence {show('count', job.seq_len)}, batch {show('count', job.global_batch)}, {job.precision}")
    return " · ".join(parts)


def fabric(ident: str) -> str:
    """The name of a fabric by its catalogue id; the id itself where the catalogue has no row."""
    from scantling import catalogue
    try:
        return catalogue.fabrics()[ident].name.split(" (")[0]
    except (AttributeError, KeyError, TypeError):
        return ident


def storage(ident: str) -> str:
    """The name of a store by its catalogue id."""
    from scantling import catalogue
    try:
        return catalogue.storages()[ident].name.split(" (")[0]
    except (AttributeError, KeyError, TypeError):
        return ident


def plain(data):
    """Numbers, text, lists and mappings alone, as JSON holds them; percentages in its sentences as the library shows them."""
    text = json.dumps(data, default=lambda x: x.tolist() if hasattr(x, "tolist") else str(x))
    return json.loads(re.sub(r"(?<=\d)%", " %", text))


def headline(a, cost) -> list[dict]:
    """The tiles on top: label, value, band."""
    def tile(label, key, value, low=None, high=None, note=""):
        return {"label": label, "value": show(key, value), "band": band(key, low, high) if low is not None and high is not None and low != high else note}
    tiles = [tile("MFU", "mfu", a.mfu, a.mfu_low, a.mfu_high), tile("Step", "step_s", a.step_s, a.step_s_low, a.step_s_high)]
    if a.days is not None:
        tiles.append(tile("Days", "days", a.days, a.days_low, a.days_high))
    if a.cost_usd is not None:
        tiles.append(tile("Cost", "cost_usd", a.cost_usd, cost.get("cost_usd_low"), cost.get("cost_usd_high")))
    tiles += [tile("Memory", "bytes", a.memory_bytes["total"], note=f"of {show('bytes', a.memory_bytes['capacity'])}"),
              tile("Goodput", "goodput", a.goodput, note="of wall time"), tile("MTBF", "mtbf_s", a.mtbf_s, note="of the whole job"),
              tile("Checkpoint every", "checkpoint_interval_s", a.checkpoint_interval_s, note=f"{show('checkpoint_overhead', a.checkpoint_overhead)} overhead")]
    return tiles


def asked(data: dict, constraints) -> list[dict]:
    """The constraints of the design, each beside the figure that answers it and whether it is met."""
    from ..words import at
    missed = {row["field"] for row in data.get("missed") or []}
    rows = []
    for field, (what, key) in ASKED.items():
        limit = getattr(constraints, field, None)
        if limit is not None:
            rows.append({"what": what, "limit": show(key, limit * 1e6 if field == "max_power_mw" else limit), "met": field not in missed,
                         "value": "copies survive a " + show(key, at(data, key)) if field == "survive" else show(key, at(data, key))})
    return rows


def fullest_phase(a) -> str:
    """The name of the phase whose memory the headline is, where there are several."""
    phases = getattr(a, "phases", None) or []
    return max(phases, key=lambda f: f["memory_bytes"])["name"] if len(phases) > 1 else ""


def losses(a) -> list[dict]:
    """What a step spends beside matrix products, longest first, with the limit that names it."""
    parts = [(key, value) for key, value in a.step_breakdown_s.items() if value > 0 and key != "gemm"]
    parts.sort(key=lambda kv: -kv[1])
    why = {row["axis"]: row["text"] for row in getattr(a, "why", []) or []}
    return [{"key": k, "name": LOSSES.get(k, k), "time_s": v, "what": why.get(k) if k not in ("tp", "pp", "cp", "dp", "ep") else None}
            for k, v in parts[:6]]


def overlap(a) -> list[dict]:
    """Communication hidden under compute and exposed, by axis."""
    hidden = getattr(a, "hidden_s", None) or {}
    return [{"axis": axis, "hidden_s": hidden.get(axis, 0), "exposed_s": a.step_breakdown_s.get(axis, 0)} for axis in ("tp", "cp", "ep", "dp", "pp")
            if hidden.get(axis, 0) or a.step_breakdown_s.get(axis, 0)]


def carried(a) -> SimpleNamespace:
    """The axes that ride on each tier."""
    def axes(*names):
        return ", ".join(dict.fromkeys(row["axis"].upper() for row in getattr(a, "communication", []) if row["tier"] in names and row["bytes"]))
    return SimpleNamespace(up=axes("scale-up", "scale_up"), out=axes("scale-out", "scale_out"))


def badput(endurance: dict) -> list[dict]:
    """Shares of wall time that train nothing, largest first."""
    shares = endurance.get("badput") or {}
    from ..words import label_or
    return [{"name": label_or(f"endurance.badput.{key}", key.replace("_", " ").capitalize()), "share": value} for key, value in sorted(shares.items(), key=lambda kv: -(kv[1] or 0)) if value]


def specialist(a, resolved, job) -> list[dict]:
    """What an ML specialist has to confirm."""
    plan, out = a.plan, []
    if job.precision == "fp16":
        out.append({"what": "Precision recipe, fp16", "why": "dynamic loss scaling, and which operations stay in fp32."})
    elif job.precision not in ("bf16", "fp32"):
        out.append({"what": f"Precision recipe, {job.precision}",
                    "why": "which matrix products run in it, the scaling granularity, and that norms, softmax, router and master weights stay higher."})
    if plan["dp"] > 1:
        out.append({"what": "Batch after a reshape",
                    "why": f"losing data-parallel ranks changes accumulation {show('grad_accum', plan['grad_accum'])} or the global batch of "
                           f"{show('global_batch', job.global_batch)} sequences; the latter needs a new learning-rate schedule."})
    if len(resolved.phases) > 1:
        out.append({"what": "Batch and sequence ramp", "why": f"{len(resolved.phases)} phases change the global batch or the sequence length."})
    if resolved.model.experts:
        out.append({"what": "Router balance", "why": "strength of the balancing term against quality; the step time assumes the balance stated under assumptions."})
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
            yield {"field": ".".join(path), "value": _value(value)}
    return [row for row in walk(resolved.design.data(), []) if row["field"] not in ("scantling", "name")]


def appendix(a) -> list[dict]:
    """The numbers of the assessment with formula, convention and source, from the library's table of quantities."""
    from scantling import quantities
    rows = []
    for q in quantities.table().values():
        value = vars(a)
        for step in q.key.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and q.kind != "text" and not q.formula.startswith("as ") \
                and not q.key.endswith(("_low", "_high")) and not q.key.startswith(("search_", "plan.", "hidden_s.")) \
                and not (q.key.startswith("step_breakdown_s.") and not value):
            rows.append({"label": q.label, "key": q.key, "value": quantities.shown(value, q.kind, q.unit), "formula": q.formula,
                         "convention": q.convention, "source": q.source})
    return rows


def plan_text(p) -> str:
    """A plan in one line."""
    get = p.get if isinstance(p, dict) else lambda key, default=None: getattr(p, key, default)
    words = [f"{axis} {get(axis)}" for axis in ("tp", "pp", "vpp", "cp", "ep", "etp", "dp") if (get(axis) or 1) != 1]
    if get("sharding") not in (None, "none"):
        words.append(get("sharding"))
    if get("micro_batch"):
        words.append(f"micro-batch {get('micro_batch')}")
    if get("recompute") not in (None, "none"):
        share = get("recompute_share") or 1
        words.append(f"{get('recompute')} recompute" + (f" of {show('share', share)} of the layers" if share < 1 else ""))
    if get("offload") not in (None, "none"):
        words.append(f"offload {get('offload')}")
    return ", ".join(words) or "one device"


def _lead(text) -> Markup:
    """What stands before the first colon in bold."""
    head, colon, rest = _upfirst(str(text)).partition(":")
    return Markup("<strong>{}</strong>{}{}").format(head, colon, rest) if colon and len(head) < 60 else escape(_upfirst(str(text)))


def _after_colon(text) -> str:
    """What stands behind the first colon; the heading before it is on the page already."""
    head, colon, rest = str(text).partition(": ")
    return (rest if colon and len(head) < 60 else str(text)).rstrip(".")


def _beyond(text, name) -> str:
    """The text without the name that stands before it on the page."""
    return str(text).removeprefix(str(name)).lstrip(" ,:")


def _nodes(count) -> str:
    return f"{show('count', count)} {'node' if count == 1 else 'nodes'}"


def _upfirst(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sentence(text) -> str:
    text = str(text).strip()
    return text[:1].upper() + text[1:] + ("" if text[-1:] in ".!?" or not text else ".")


def _value(value) -> str:
    if isinstance(value, str):
        try:
            value = float(value) if "." in value else int(value)
        except ValueError:
            return value
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:.6g}"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < 10**9 else f"{value:.6g}"
    return str(value)


def _within(a, key: str) -> str:
    """The band behind a figure; nothing behind a measured one."""
    low, high = getattr(a, f"{key}_low"), getattr(a, f"{key}_high")
    return f" ({band(key, low, high)})" if show(key, low) != show(key, high) else ""


def _under(collectives, axis: str) -> str:
    """What hides the collectives of an axis."""
    beside = dict.fromkeys(row["beside"] for row in collectives if row["axis"] == axis and row["hidden"] != "no")
    return f"under {' and '.join(b for b in beside if b and not b.startswith('nothing')) or 'compute'}"


def _asked_by(field: str) -> str:
    """A constraint by its words, where a figure says that it set it."""
    constraint = field.removeprefix("constraints.")
    return f"set by the ceiling of {ASKED[constraint][0]}" if constraint in ASKED else field


def _impact(risk) -> str:
    """Days and dollars of a risk that comes true, whichever it has."""
    return " or ".join(show(key, risk[field]) for field, key in (("impact_days", "days"), ("impact_usd", "cost_usd")) if risk.get(field))


def _fix_figures(fix) -> str:
    """The figures that a nearest fix brings with it."""
    keys = ("mfu", "step_s", "days", "cost_usd", "goodput")
    shown = [f"{key.removesuffix('_s').removesuffix('_usd').upper() if key == 'mfu' else key.split('_')[0]} {show(key, fix[key])}"
             for key in keys if isinstance(fix, dict) and fix.get(key) is not None]
    return f" ({', '.join(shown)})" if shown else ""
