"""The headline numbers and the one most useful sentence, from an assessment and from the design it
is compared with."""

from __future__ import annotations

from collections.abc import Mapping

from scantling.advise.explanation import inputs
from scantling.base.words import table
from scantling.design.constraints import CONSTRAINTS
from scantling.verdict.verdicts import VERDICTS, met

from . import words
from .report.phrases import sentence
from .words import at, band, fits, in_text, quantity, show, split, withheld

_SAID = table(__file__, "headline")
# key, name on the card, whether more is better (None: neither)
CARDS = tuple(map(tuple, _SAID["cards"]))
# constraints that speak of a number
_LIMITS = {row.figure: (row.field,) for row in CONSTRAINTS.values()} | _SAID["limits"]


def cards(given: Mapping, reference: Mapping | None = None) -> list[dict]:
    """One item per headline number: value, unit, band or remark, difference from the reference."""
    return [
        _card(
            *card,
            given,
            reference or {},
        )
        for card in CARDS
    ]


def _card(
    key,
    name,
    better,
    given,
    reference,
) -> dict:
    """One card, with its difference from the reference where there is one."""
    verdict = key == "verdict"
    own, of = (_verdict(given), "memory_bytes.total") if verdict else (_number(key, given), key)
    item = {
        "key": key,
        "label": name,
        **own,
    }
    both = not any(withheld(one, key) for one in (given, reference))
    if reference and both:
        better = False if verdict else better
        sides = at(given, of), at(reference, of)
        item["delta"], item["sense"] = difference(
            of,
            *sides,
            better,
        )
    return item


def _number(key: str, given) -> dict:
    if withheld(given, key):
        return {
            "value": "—",
            "unit": "",
            "note": "does not fit",
            "hint": "",
            "state": "bad",
        }
    number, unit = split(in_text(given, key))
    missed = {row["field"] for row in given.get("missed") or ()}
    return {
        "value": number,
        "unit": unit,
        "note": _note(key, given),
        "hint": "Open the formula of this number",
        "state": "" if missed.isdisjoint(_LIMITS.get(key, ())) else "bad",
    }


def _verdict(given) -> dict:
    note = ""
    word, state = _fits(given)
    if given.get("memory_bytes"):
        used, usable = (in_text(given, f"memory_bytes.{key}") for key in ("total", "capacity"))
        short, unit = split(used)
        note = f"{short if unit == split(usable)[1] else used} of {usable}"
    hint = "Open what decides the verdict"
    return {
        "value": word,
        "unit": "",
        "state": state,
        "hint": hint,
        "note": note,
    }


def _fits(given) -> tuple[str, str]:
    """The verdict in a word or two, and its state."""
    known = VERDICTS.get(given.get("verdict"))
    word, state = (known.name, known.tone) if known else (str(given.get("verdict")), "")
    if given.get("memory_bytes") and not fits(given):
        return "Does not fit", "bad"
    if word == "Feasible":
        if at(given, "plan.offload") not in (None, "none"):
            return "Fits, offload", "warn"
        starts = {str(limit).partition(":")[0] for limit in given.get("limits") or ()}
        return next(
            ((said, "warn") for key, said in _SAID["but"].items() if key in starts), (word, state)
        )
    return word, state


def _note(key: str, given) -> str:
    ends = [at(given, key + end) for end in ("_low", "_high")]
    if None not in ends:
        unit = split(in_text(given, key))[1]  # it stands above
        return band(key, *ends).removesuffix(f" {unit}")
    if key in ("days", "cost_usd"):
        return _lacks(key, given) if given.get("plan") else ""
    of, form = _SAID["remarks"].get(key, ("", ""))
    value = at(given, of)
    return "" if value is None or key == "goodput" and not value else form.format(show(of, value))


def _lacks(key: str, given) -> str:
    """What days and dollars lack, or the price that they are at."""
    price = in_text(given, "cost.usd_per_device_hour")
    if key == "cost_usd" and at(given, "cost.usd_per_device_hour") is not None:
        return f"at {price}" + ("" if "/h" in price else "/device-h")
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
    """How a number differs from the reference, and whether that is better or worse."""
    if value is None or before is None or isinstance(value, str):
        return "", ""
    if value == before:
        return "= reference", ""
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
        return "bad", "Input rejected;", f"showing the last valid design. {refusal.text}."
    limits = [str(limit) for limit in given.get("limits") or ()]
    first = limits[0] if limits else ""
    if given.get("verdict") == "impossible":
        why = "; ".join([given.get("error") or "", *limits[:2]]).strip("; ")
        return "bad", "Impossible.", why
    known = VERDICTS.get(given.get("verdict"))
    if known and known.id != "feasible":
        over = given.get("memory_bytes") and not fits(given)
        short, tone = ("Does not fit", "bad") if over else (known.short, known.tone)
        fixes = given.get("nearest_fixes")
        fix = f" Nearest: {fix_text(nearest(fixes))}." if fixes else ""
        for start in ("at risk: ", "not checked: ", "makes no sense: "):
            first = first.removeprefix(start)
        return tone, f"{short}.", sentence(first) + fix
    start, _, rest = first.partition(": ")
    if start in _SAID["but"]:
        return "warn", f"{_SAID['but'][start]}.", sentence(rest)
    avoid = given.get("avoid")
    if avoid and not first:
        first = f"Avoid {avoid[0]['what']}: {avoid[0]['why']}"
    return "good", "Fits.", sentence(first)


def nearest(fixes) -> Mapping | None:
    """The fix to offer: the first that makes the design feasible, else the first that changes
    anything."""
    able = [f for f in fixes if f.get("set")]
    return next((f for f in able if met(f.get("verdict"))), able[0] if able else None)


def offer(session) -> tuple[str, str, Mapping] | None:
    """What one press would mend, as (name, what it does, fields to set): the pin that stood in the
    way of a change, else the nearest fix."""
    refusal = session.refusal
    if refusal is None:
        fix = nearest(session.now.given.get("nearest_fixes") or [])
        return None if fix is None else ("Apply fix", fix_text(fix), fix["set"])
    field, fields = refusal.field, refusal.fields
    name = field.removeprefix("plan.")
    pinned = name != field != refusal.moved and name in session.now.design.plan.given()
    if not fields or not pinned:
        return None
    return (
        f"Unpin {words.label(field)}",
        f"Take the change, and let the search choose {name}",
        {
            **fields,
            field: None,
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
            inputs(session.now, own),
            own,
        )
    if key == "verdict" and facts is None:
        out = words.explain(
            key,
            given,
            {},
        )
        out["lines"] += _deciding(given)
        return out
    out = words.explain(
        key,
        given,
        inputs(session.now, given),
        facts,
    )
    prices = [at(given, f"cost.cost_usd_{end}") for end in ("low", "high")]
    if key == "cost_usd" and None not in prices:
        of = words.band_of("cost.cost_usd")
        out["lines"].append(("At other prices", f"{band(key, *prices)}: {of}"))
    if session.reference and facts is None:
        before = session.reference.given
        change, _ = difference(
            key,
            at(given, key),
            at(before, key),
            None,
        )
        if change:
            out["lines"].append(("Reference", f"{in_text(before, key)}; now {change}"))
    return out


def _deciding(given) -> list[tuple[str, str]]:
    """Memory, limits and nearest fixes: what decides the verdict."""
    memory = (f"memory_bytes.{part}" for part in given.get("memory_bytes") or {})
    return [
        *((words.label(key), in_text(given, key)) for key in memory),
        *(("Limits", str(limit)) for limit in (given.get("limits") or ())[:4]),
        *(("Nearest fix", fix_text(fix)) for fix in (given.get("nearest_fixes") or ())[:4]),
    ]
