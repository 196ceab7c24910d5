"""The headline numbers and the one most useful sentence, from an assessment and from the design it
is compared with."""

from __future__ import annotations

from collections.abc import Mapping

from scantling.design.constraints import CONSTRAINTS

from . import words
from .words import at, band, quantity, share, show, split

# key, name on the card, whether more is better (None: neither)
CARDS = (
    ("verdict", "Verdict", None),
    ("mfu", "MFU", True),
    ("step_s", "Step time", False),
    ("bubble_fraction", "Bubble", False),
    ("days", "Run time", False),
    ("cost_usd", "Cost", False),
    ("goodput", "Goodput", True),
    ("checkpoint_interval_s", "Save every", None),
)
# constraints that speak of a number
_LIMITS = {
    **{row.figure: (row.field,) for row in CONSTRAINTS.values()},
    "checkpoint_interval_s": (
        "max_checkpoint_overhead",
        "max_checkpoint_stall_s",
        "max_lost_work_s",
    ),
}
_VERDICTS = {
    "feasible": ("Feasible", "good"),
    "constraint-missed": ("Limit missed", "warn"),
    "impossible": ("Impossible", "bad"),
}


def cards(given: Mapping, pinned: Mapping | None = None) -> list[dict]:
    """One item per headline number: value, unit, band or remark, difference from the pinned
    design."""
    return [_card(key, name, better, given, pinned) for key, name, better in CARDS]


def _card(key, name, better, given, pinned) -> dict:
    if key == "verdict":
        return _verdict(given, pinned)
    value = at(given, key)
    number, unit = split(show(key, value))
    item = {
        "key": key,
        "label": name,
        "value": number,
        "unit": unit,
        "note": _note(key, given),
        "hint": "Open the formula of this number",
        "state": _state(key, given),
    }
    if pinned is not None:
        item["delta"], item["sense"] = difference(key, value, at(pinned, key), better)
    return item


def _verdict(given, pinned) -> dict:
    word, state = _VERDICTS.get(given.get("verdict"), (str(given.get("verdict")), ""))
    memory = given.get("memory_bytes")
    if memory and memory["total"] > memory["capacity"]:
        word, state = "Does not fit", "bad"
    elif word == "Feasible" and (given.get("plan") or {}).get("offload") not in (None, "none"):
        word, state = "Fits, offload", "warn"
    elif word == "Feasible" and any(
        str(limit).startswith("tight:") for limit in given.get("limits") or ()
    ):
        word, state = "Fits, tight", "warn"
    item = {
        "key": "verdict",
        "label": "Fits?",
        "value": word,
        "unit": "",
        "state": state,
        "hint": "Open what decides the verdict",
        "note": (
            f"{split(show('memory_bytes.total', memory['total']))[0]} of "
            f"{show('memory_bytes.capacity', memory['capacity'])}"
        )
        if memory
        else "",
    }
    if pinned is not None and pinned.get("memory_bytes") and memory:
        item["delta"], item["sense"] = difference(
            "memory_bytes.total", memory["total"], pinned["memory_bytes"]["total"], False
        )
    return item


def _note(key, given) -> str:
    low, high = at(given, key + "_low"), at(given, key + "_high")
    if low is not None and high is not None:
        return band(key, low, high).removesuffix(
            " " + split(show(key, at(given, key)))[1]
        )  # the unit stands above
    if key == "days":
        return "" if given.get("days") is not None or not given.get("plan") else "no tokens named"
    if key == "bubble_fraction":
        return (
            f"{show('step_breakdown_s.bubble', at(given, 'step_breakdown_s.bubble'))} a step"
            if at(given, "step_breakdown_s")
            else ""
        )
    if key == "cost_usd" and given.get("plan"):
        price = at(given, "cost.usd_per_device_hour")
        return (
            f"at {show('cost.usd_per_device_hour', price)}"
            + ("" if "/h" in show("cost.usd_per_device_hour", price) else "/device-h")
            if price is not None
            else "no tokens named"
            if lacking(given) == "tokens"
            else "no price known"
        )
    if key == "goodput":
        return f"MTBF {show('mtbf_s', given.get('mtbf_s'))}" if given.get("mtbf_s") else ""
    if key == "checkpoint_interval_s":
        overhead = given.get("checkpoint_overhead")
        return f"{share(overhead)} stalled" if overhead is not None else ""
    return ""


def lacking(given) -> str:
    """What the design does not say that dollars need: tokens, a price, or nothing."""
    return (
        "tokens"
        if given.get("days") is None
        else "a price"
        if given.get("cost_usd") is None
        else ""
    )


def _state(key, given) -> str:
    """Marked where a stated limit speaks of this number."""
    missed = {m["field"] for m in given.get("missed") or ()}
    return "bad" if missed & set(_LIMITS.get(key, ())) else ""


def difference(key: str, value, before, better) -> tuple[str, str]:
    """How a number differs from the pinned one, and whether that is better or worse."""
    if value is None or before is None or isinstance(value, str):
        return "", ""
    if value == before:
        return "= pinned", ""
    sign = "+" if value > before else "−"
    sense = "" if better is None else "better" if (value > before) == better else "worse"
    text = show(key, abs(value - before))
    if quantity(key).kind == "share":
        text = f"{split(text)[0]} points"  # of a percentage, not percent of it
    return f"{sign}{text}", sense


def message(given: Mapping, refusal=None) -> tuple[str, str, str]:
    """(state, bold start, sentence): what is most worth knowing about this design right now. All of
    it is the library's text."""
    if refusal is not None:
        return "bad", "Not taken.", f"{refusal.text}. The picture is still the last valid design."
    limits, fixes, avoid = (
        given.get("limits") or (),
        given.get("nearest_fixes") or (),
        given.get("avoid") or (),
    )
    if given.get("verdict") == "impossible":
        return (
            "bad",
            "Impossible.",
            "; ".join([given.get("error") or "", *map(str, limits[:2])]).strip("; "),
        )
    if given.get("verdict") == "constraint-missed":
        fix = f" Nearest: {fix_text(nearest(fixes))}." if fixes else ""
        return "warn", "Misses a limit.", f"{_sentence(limits[0]) if limits else ''}{fix}"
    for start, word in (("tight:", "Fits, tight."), ("offload:", "Fits with offload only.")):
        if limits and str(limits[0]).startswith(start):
            return "warn", word, _sentence(str(limits[0]).removeprefix(start))
    if limits:
        return "good", "Fits.", _sentence(limits[0])
    if avoid:
        return "good", "Fits.", _sentence(f"Avoid {avoid[0]['what']}: {avoid[0]['why']}")
    return "good", "Fits.", ""


def _sentence(text: str) -> str:
    text = str(text).strip()
    text = text[:1].upper() + text[1:]
    return text if not text or text.endswith((".", "!", "?")) else text + "."


def nearest(fixes) -> Mapping | None:
    """The fix to offer: the first that makes the design feasible, else the first that changes
    anything."""
    able = [f for f in fixes if f.get("set")]
    return next((f for f in able if f.get("verdict") == "feasible"), able[0] if able else None)


def offer(session) -> tuple[str, str, Mapping] | None:
    """What one press would mend, as (name, what it does, fields to set): the pin that stood in the
    way of a change, else the nearest fix."""
    refusal = session.refusal
    if refusal is None:
        fix = nearest(session.now.given.get("nearest_fixes") or [])
        return None if fix is None else ("Apply fix", fix_text(fix), fix["set"])
    name = refusal.field.removeprefix("plan.")
    if (
        not refusal.fields
        or refusal.field in (name, refusal.moved)
        or name not in session.now.design.plan.given()
    ):
        return None
    return (
        f"Unpin {words.label(refusal.field)}",
        f"Take the change, and let the search choose {name}",
        {**refusal.fields, refusal.field: None},
    )


def fix_text(fix) -> str:
    """One nearest fix in words: what to change, and what then comes of it."""
    if fix is None:
        return "none known"
    then = [
        f"{name}{show(key, fix[key])}"
        for key, name in (("days", ""), ("cost_usd", ""), ("mfu", "MFU "))
        if fix.get(key) is not None
    ]
    return f"{fix['change']}: {', '.join([fix['verdict'].replace('-', ' '), *then])}"


_OF_THE_MODEL = ("params", "active_params", "mtp_params", "flops_per_token")


def explanation(key: str, session, facts: Mapping | None = None, alone: bool = False) -> dict:
    """What a number opens to; `facts` are those of the row that it stands in.

    `alone`: the row is another plan or design, so that no result of the one on the desk explains
    it.
    """
    given = session.now.given
    if alone:
        own = {"plan": facts, **{k: given.get(k) for k in _OF_THE_MODEL}, **(facts or {})}
        return words.explain(key, own, inputs(session, own), own)
    if key == "verdict" and facts is None:
        out = words.explain("verdict", given, {})
        memory = given.get("memory_bytes") or {}
        out["lines"] += [
            (words.label(f"memory_bytes.{part}"), show(f"memory_bytes.{part}", amount))
            for part, amount in memory.items()
        ]
        out["lines"] += [("Limits", str(limit)) for limit in (given.get("limits") or ())[:4]]
        out["lines"] += [
            ("Nearest fix", fix_text(fix)) for fix in (given.get("nearest_fixes") or ())[:4]
        ]
        return out
    out = words.explain(key, given, inputs(session), facts)
    if key == "cost_usd" and given.get("cost"):
        ends = [given["cost"][f"cost_usd_{end}"] for end in ("low", "high")]
        out["lines"] += (
            [("At other prices", f"{band('cost_usd', *ends)}: {words.band_of('cost.cost_usd')}")]
            if None not in ends
            else []
        )
    change = (
        session.pinned
        and facts is None
        and difference(key, at(given, key), at(session.pinned.given, key), None)[0]
    )
    if change:
        out["lines"].append(
            ("Pinned design", f"{words.in_text(session.pinned.given, key)}; now {change}")
        )
    return out


def inputs(session, given: Mapping | None = None) -> dict:
    """Inputs of formulas that an assessment does not repeat, by the names that the formulas use."""
    resolved = session.now.resolved
    given = session.now.given if given is None else given
    phase = resolved.main_phase
    model, cluster = resolved.model, resolved.cluster
    chip, design = cluster.accelerator, session.now.design
    stated = lambda section: (
        ", ".join(f"{k} {words.plain(v)}" for k, v in section.items()) or "none"
    )
    prices = {
        k: v
        for k, v in (given.get("cost") or {}).items()
        if k in ("usd_per_device_hour", "pue", "usd_per_kwh") and v is not None
    }
    endurance = {
        k: v for k, v in (given.get("endurance") or {}).items() if isinstance(v, (int, float, str))
    }
    return {
        "tokens": phase.tokens,
        "seq_len": phase.seq_len,
        "global_batch": phase.global_batch,
        "precision": (
            f"{phase.precision}, "
            f"{show('roofline.peak_flops', chip.peak_flops(phase.precision))} dense peak"
        ),
        "optimizer": phase.optimizer,
        "devices": cluster.devices,
        "params": resolved.params.total,
        "vocab": model.vocab,
        "storage": cluster.storage,
        "stack": resolved.stack or "not named",
        "model": (
            f"{model.name} ({model.layers} layers, h {model.hidden:,}, {model.heads} heads, "
            f"{model.kv_heads} KV heads, vocab {model.vocab:,})"
        ),
        "cluster": f"{cluster.devices:,} x {chip.name}",
        "accelerator": f"{chip.name}, {words.quantities.shown(chip.hbm_usable_bytes, 'bytes')} usable",
        "prices": stated(prices),
        "usd_per_device_hour": prices.get("usd_per_device_hour"),
        "pue": prices.get("pue"),
        "usd_per_kwh": prices.get("usd_per_kwh"),
        "constraints": stated(design.constraints.given()),
        "reliability": stated(
            {
                k: v
                for k, v in endurance.items()
                if k in ("preset", "failures_per_1000_node_days", "repair_s")
            }
        ),
        "devices_per_node": cluster.devices_per_node,
        "oversubscription": cluster.oversubscription,
        **endurance,
    }
