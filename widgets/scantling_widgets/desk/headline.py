"""The headline numbers and the one most useful sentence, from an assessment and from the design it
is compared with."""

from collections.abc import Mapping

from scantling.advise.explanation import inputs
from scantling.base.files import table
from scantling.base.quantities.table import band_in, told
from scantling.design.constraints import CONSTRAINTS
from scantling.verdict.verdicts import VERDICTS, beside_name, met

from .. import words
from ..report.phrases import sentence
from ..words import at, band, fits, in_text, quantity, show, split, withheld
from . import link

_SAID = table(__file__, "headline")
# key, name on the card, whether more is better (None: neither)
CARDS = tuple(map(tuple, _SAID["cards"]))
# constraints that speak of a number
_LIMITS = {row.figure: (row.field,) for row in CONSTRAINTS.values()} | _SAID["limits"]


def over(given: Mapping) -> bool:
    """Whether there is a plan, and no memory for it."""
    return bool(given.get("memory_bytes")) and not fits(given)


def cards(given: Mapping, reference: Mapping | None = None) -> list:
    """One item per headline number: value, unit, band or remark, difference from the reference."""
    out = []
    for key, name, better in CARDS:
        verdict = key == "verdict"
        parts = _verdict(given) if verdict else _number(key, given)
        item = dict(zip(("value", "unit", "note", "hint", "state"), parts))
        out.append({"key": key, "label": name, **item})
        if reference and not withheld(given, key) and not withheld(reference, key):
            of = "memory_bytes.total" if verdict else key
            out[-1]["delta"], out[-1]["sense"] = difference(
                of, at(given, of), at(reference, of), better
            )
    return out


def _number(key: str, given) -> tuple:
    """Value, unit, remark, hint and state of a number."""
    if withheld(given, key):
        return "—", "", "does not fit", "", "bad"
    missed = {row["field"] for row in given.get("missed") or ()}
    state = "" if missed.isdisjoint(_LIMITS.get(key, ())) else "bad"
    hint = "Open the formula of this number"
    return *split(in_text(given, key)), _note(key, given), hint, state


def _verdict(given) -> tuple:
    word, state = _fits(given)
    note = ""
    if given.get("memory_bytes"):
        used, usable = (in_text(given, f"memory_bytes.{key}") for key in ("total", "capacity"))
        short, unit = split(used)
        note = f"{short if unit == split(usable)[1] else used} of {usable}"
    return word, "", note, "Open what decides the verdict", state


def _fits(given) -> tuple:
    """The verdict in a word or two, and its state."""
    known = VERDICTS.get(given.get("verdict"))
    if over(given):
        return "Does not fit", "bad"
    if known is None or known.name != "Feasible":
        return (known.name, known.tone) if known else (str(given.get("verdict")), "")
    if at(given, "plan.offload") not in (None, "none"):
        return "Fits, offload", "warn"
    starts = {limit.partition(":")[0] for limit in given["limits"]}
    but = [said for key, said in _SAID["but"].items() if key in starts]
    return (but[0], "warn") if but else (known.name, known.tone)


def _note(key: str, given) -> str:
    if spread := band_in(given, key):
        unit = split(in_text(given, key))[1]  # it stands above
        return spread.removesuffix(f" {unit}")
    if key in ("days", "cost_usd"):
        return _lacks(key, given) if given.get("plan") else ""
    of, form = _SAID["remarks"].get(key, ("", ""))
    value = at(given, of)
    return "" if value is None or key == "goodput" and not value else form.format(show(of, value))


def _lacks(key: str, given) -> str:
    """What days and dollars lack, or the price that they are at."""
    price = "cost.usd_per_device_hour"
    if key == "cost_usd" and at(given, price) is not None:
        said = in_text(given, price)
        return f"at {said}" + ("" if "/h" in said else "/device-h")
    if given.get("days") is None:
        return "no tokens named"
    return "no price known" if key == "cost_usd" else ""


def lacking(given) -> str:
    """What the design does not say that dollars need: tokens, a price, or nothing."""
    needs = (("days", "tokens"), ("cost_usd", "a price"))
    return next((name for key, name in needs if given.get(key) is None), "")


def difference(key: str, value, before, better) -> tuple:
    """How a number differs from the reference, and whether that is better or worse."""
    if value is None or before is None or isinstance(value, str):
        return "", ""
    if value == before:
        return "= reference", ""
    more, text = value > before, show(key, abs(value - before))
    sense = "" if better is None else "better" if more == better else "worse"
    if quantity(key).kind == "share":
        text = f"{split(text)[0]} points"  # of a percentage, not percent of it
    return ("" if text.startswith("<") else "+" if more else "−") + text, sense


def message(given: Mapping, refusal=None) -> tuple:
    """(state, bold start, sentence): what is most worth knowing about this design right now. All of
    it is the library's text."""
    if refusal is not None:
        return "bad", "Input rejected;", f"showing the last valid design. {refusal.text}."
    first, *more = given.get("limits") or [""]
    verdict, avoid, fixes = (given.get(key) for key in ("verdict", "avoid", "nearest_fixes"))
    if verdict == "impossible":
        why = (given.get("error") or "", first, *more[:1])
        return "bad", "Impossible.", "; ".join(why).strip("; ")
    known = VERDICTS.get(verdict)
    if known and known.id != "feasible":
        short, tone = ("Does not fit", "bad") if over(given) else (known.short, known.tone)
        fix = f" Nearest: {fix_text(nearest(fixes))}." if fixes else ""
        return tone, f"{short}.", sentence(beside_name(first)) + fix
    start, _, rest = first.partition(": ")
    if start in _SAID["but"]:
        return "warn", f"{_SAID['but'][start]}.", sentence(rest)
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
        fix = nearest(session.now.given["nearest_fixes"])
        return None if fix is None else ("Apply fix", fix_text(fix), fix["set"])
    field, fields = refusal.field, refusal.fields
    if refusal.moved == link.NAME and fields:
        return "Open what is left", _SAID["link"], fields
    name = field.removeprefix("plan.")
    pinned = name != field != refusal.moved and name in session.now.design.plan.given()
    if not fields or not pinned:
        return None
    return (
        f"Unpin {words.label(field)}",
        f"Take the change, and let the search choose {name}",
        {**fields, field: None},
    )


def fix_text(fix) -> str:
    """One nearest fix in words: what to change, and what then comes of it."""
    if fix is None:
        return "none known"
    then = told(fix, {"days": "", "cost_usd": "", "mfu_shown": "MFU "})
    return f"{fix['change']}: {', '.join([fix['verdict'].replace('-', ' '), *then])}"


_OF_THE_MODEL = ("params", "active_params", "mtp_params", "flops_per_token")


def explanation(session, key: str, facts: Mapping | None = None, *, alone: bool = False) -> dict:
    """What a number opens to; `facts` are those of the row that it stands in.

    `alone`: the row is another plan or design, so that no result of the one on the desk explains
    it.
    """
    given, own = session.now.given, facts or None
    if alone:
        own = given = {"plan": own, **{k: given.get(k) for k in _OF_THE_MODEL}, **(facts or {})}
    verdict = key == "verdict" and not facts
    out = words.opened(key, given, {} if verdict else inputs(session.now, given), own)
    if alone:
        return out
    if verdict:
        out["lines"] += _deciding(given)
    prices = [at(given, f"cost.cost_usd_{end}") for end in ("low", "high")]
    if key == "cost_usd" and None not in prices:
        of = words.band_of("cost.cost_usd")
        out["lines"].append(("At other prices", f"{band(key, *prices)}: {of}"))
    if session.reference and not facts:
        before = session.reference.given
        change, _ = difference(key, at(given, key), at(before, key), None)
        if change:
            out["lines"].append(("Reference", f"{in_text(before, key)}; now {change}"))
    return out


def _deciding(given) -> list:
    """Memory, limits and nearest fixes: what decides the verdict."""
    memory = (f"memory_bytes.{part}" for part in given.get("memory_bytes") or {})
    return [
        *((words.label(key), in_text(given, key)) for key in memory),
        *(("Limits", limit) for limit in given["limits"][:4]),
        *(("Nearest fix", fix_text(fix)) for fix in given["nearest_fixes"][:4]),
    ]
