"""The headline numbers and the one most useful sentence, from an assessment and from the design it
is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter

from scantling.base.show import shown
from scantling.design.constraints import CONSTRAINTS

from . import words
from .report.phrases import sentence
from .words import at, band, in_text, quantity, show, split

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
    return [_card(*card, given, pinned or {}) for card in CARDS]


def _card(
    key,
    name,
    better,
    given,
    pinned,
) -> dict:
    if key == "verdict":
        return _verdict(given, pinned)
    number, unit = split(show(key, at(given, key)))
    missed = {row["field"] for row in given.get("missed") or ()} & set(_LIMITS.get(key, ()))
    item = {
        "key": key,
        "label": name,
        "value": number,
        "unit": unit,
        "note": _note(key, given),
    }
    item |= {
        "hint": "Open the formula of this number",
        "state": "bad" if missed else "",
    }
    return item | _against(
        key,
        given,
        pinned,
        better,
    )


def _against(
    key,
    given,
    pinned,
    better,
) -> dict:
    """The difference of a card from the pinned design, where there is one."""
    text, sense = difference(
        key,
        at(given, key),
        at(pinned, key),
        better,
    )
    return (
        {
            "delta": text,
            "sense": sense,
        }
        if pinned
        else {}
    )


def _verdict(given, pinned) -> dict:
    memory = given.get("memory_bytes")
    word, state = _fits(given, memory)
    item = {
        "key": "verdict",
        "label": "Fits?",
        "value": word,
        "unit": "",
        "state": state,
    }
    item |= {
        "hint": "Open what decides the verdict",
        "note": "",
    }
    if memory:
        used, usable = (in_text(given, f"memory_bytes.{key}") for key in ("total", "capacity"))
        item["note"] = f"{split(used)[0]} of {usable}"
    both = pinned if memory and pinned.get("memory_bytes") else {}
    return item | _against(
        "memory_bytes.total",
        given,
        both,
        False,
    )


def _fits(given, memory) -> tuple[str, str]:
    """The verdict in a word or two, and its state."""
    word, state = _VERDICTS.get(given.get("verdict"), (str(given.get("verdict")), ""))
    if memory and memory["total"] > memory["capacity"]:
        return "Does not fit", "bad"
    if word == "Feasible":
        if (at(given, "plan.offload") or "none") != "none":
            return "Fits, offload", "warn"
        if any(str(limit).startswith("tight:") for limit in given.get("limits") or ()):
            return "Fits, tight", "warn"
    return word, state


def _note(key, given) -> str:
    low, high = at(given, key + "_low"), at(given, key + "_high")
    if low is not None and high is not None:
        unit = split(in_text(given, key))[1]  # it stands above
        return band(key, low, high).removesuffix(f" {unit}")
    if key in ("days", "cost_usd"):
        return _lacks(key, given) if given.get("plan") else ""
    of, form = _REMARKS.get(key, ("", ""))
    value = at(given, of)
    return "" if value is None or not (value or key != "goodput") else form.format(show(of, value))


# what stands below a number that has no band: another figure, and how it is said
_REMARKS = {
    "bubble_fraction": ("step_breakdown_s.bubble", "{} a step"),
    "goodput": ("mtbf_s", "MTBF {}"),
    "checkpoint_interval_s": ("checkpoint_overhead", "{} stalled"),
}


def _lacks(key, given) -> str:
    """What days and dollars lack, or the price that they are at."""
    price = at(given, "cost.usd_per_device_hour")
    if key == "cost_usd" and price is not None:
        shown = show("cost.usd_per_device_hour", price)
        return f"at {shown}" + ("" if "/h" in shown else "/device-h")
    if given.get("days") is None:
        return "no tokens named"
    return "no price known" if key == "cost_usd" else ""


def lacking(given) -> str:
    """What the design does not say that dollars need: tokens, a price, or nothing."""
    needs = (("days", "tokens"), ("cost_usd", "a price"))
    return next((name for key, name in needs if given.get(key) is None), "")


def difference(
    key: str,
    value,
    before,
    better,
) -> tuple[str, str]:
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
        said = f"{refusal.text}. The picture is still the last valid design."
        return "bad", "Not taken.", said
    limits = [str(limit) for limit in given.get("limits") or ()]
    first = limits[0] if limits else ""
    if given.get("verdict") == "impossible":
        why = "; ".join([given.get("error") or "", *limits[:2]]).strip("; ")
        return "bad", "Impossible.", why
    if given.get("verdict") == "constraint-missed":
        fixes = given.get("nearest_fixes")
        fix = f" Nearest: {fix_text(nearest(fixes))}." if fixes else ""
        return "warn", "Misses a limit.", sentence(first) + fix
    for start, word in (("tight:", "Fits, tight."), ("offload:", "Fits with offload only.")):
        if first.startswith(start):
            return "warn", word, sentence(first.removeprefix(start))
    avoid = given.get("avoid")
    if avoid and not first:
        first = f"Avoid {avoid[0]['what']}: {avoid[0]['why']}"
    return "good", "Fits.", sentence(first)


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
        {
            **refusal.fields,
            refusal.field: None,
        },
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


def explanation(
    key: str,
    session,
    facts: Mapping | None = None,
    alone: bool = False,
) -> dict:
    """What a number opens to; `facts` are those of the row that it stands in.

    `alone`: the row is another plan or design, so that no result of the one on the desk explains
    it.
    """
    given = session.now.given
    if alone:
        own = {
            "plan": facts,
            **{k: given.get(k) for k in _OF_THE_MODEL},
            **(facts or {}),
        }
        return words.explain(
            key,
            own,
            inputs(session, own),
            own,
        )
    if key == "verdict" and facts is None:
        out = words.explain("verdict", given, {})
        out["lines"] += _deciding(given)
        return out
    out = words.explain(
        key,
        given,
        inputs(session),
        facts,
    )
    prices = [at(given, f"cost.cost_usd_{end}") for end in ("low", "high")]
    if key == "cost_usd" and None not in prices:
        of = words.band_of("cost.cost_usd")
        out["lines"].append(("At other prices", f"{band('cost_usd', *prices)}: {of}"))
    if session.pinned and facts is None:
        before = session.pinned.given
        change = difference(
            key,
            at(given, key),
            at(before, key),
            None,
        )[0]
        if change:
            out["lines"].append(("Pinned design", f"{in_text(before, key)}; now {change}"))
    return out


def _deciding(given) -> list[tuple[str, str]]:
    """Memory, limits and nearest fixes: what decides the verdict."""
    memory = (f"memory_bytes.{part}" for part in given.get("memory_bytes") or {})
    return [
        *((words.label(key), in_text(given, key)) for key in memory),
        *(("Limits", str(limit)) for limit in (given.get("limits") or ())[:4]),
        *(("Nearest fix", fix_text(fix)) for fix in (given.get("nearest_fixes") or ())[:4]),
    ]


# inputs of formulas, as paths into the resolved design
_RESOLVED = {
    "tokens": "main_phase.tokens",
    "seq_len": "main_phase.seq_len",
    "global_batch": "main_phase.global_batch",
    "optimizer": "main_phase.optimizer",
    "devices": "cluster.devices",
    "params": "params.total",
    "vocab": "model.vocab",
    "storage": "cluster.storage",
    "devices_per_node": "cluster.devices_per_node",
    "oversubscription": "cluster.oversubscription",
}
_PRICES = ("usd_per_device_hour", "pue", "usd_per_kwh")
_RATES = ("preset", "failures_per_1000_node_days", "repair_s")


def inputs(session, given: Mapping | None = None) -> dict:
    """Inputs of formulas that an assessment does not repeat, by the names that the formulas use."""
    resolved = session.now.resolved
    given = session.now.given if given is None else given
    model, cluster, precision = resolved.model, resolved.cluster, resolved.main_phase.precision
    chip, cost = cluster.accelerator, given.get("cost") or {}
    plain = (given.get("endurance") or {}).items()
    endurance = {k: v for k, v in plain if isinstance(v, (int, float, str))}
    peak = show("roofline.peak_flops", chip.peak_flops(precision))
    return {
        **{name: attrgetter(path)(resolved) for name, path in _RESOLVED.items()},
        "precision": f"{precision}, {peak} dense peak",
        "stack": resolved.stack or "not named",
        "model": (
            f"{model.name} ({model.layers} layers, h {model.hidden:,}, {model.heads} heads, "
            f"{model.kv_heads} KV heads, vocab {model.vocab:,})"
        ),
        "cluster": f"{cluster.devices:,} x {chip.name}",
        "accelerator": f"{chip.name}, {shown(chip.hbm_usable_bytes, 'bytes')} usable",
        "prices": _stated(cost, _PRICES),
        **{name: cost.get(name) for name in _PRICES},
        "constraints": _stated(session.now.design.constraints.given()),
        "reliability": _stated(endurance, _RATES),
        **endurance,
    }


def _stated(section: Mapping, names=None) -> str:
    """The fields of a section that are stated, in a line."""
    said = (
        f"{name} {words.plain(value)}"
        for name, value in section.items()
        if value is not None and (names is None or name in names)
    )
    return ", ".join(said) or "none"
