"""The headline numbers and the one most useful sentence, from an assessment and from the design it
is compared with."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from scantling.advise.explanation import Opened, band_meaning, inputs, opened
from scantling.base.quantities.quantity import band, quantity, show
from scantling.base.records import at
from scantling.base.show import seconds, several, share
from scantling.design.constraints import CONSTRAINTS
from scantling.verdict.result import FigureKey, FixRow, Result, band_of, figure, figure_texts
from scantling.verdict.texts import cured, slowed_by_pins, verdict_sentence
from scantling.verdict.verdicts import VERDICTS, Verdict, met
from scantling_posttrain.answer_lines import goodput_text, memory_text, run_text
from scantling_posttrain.posttrained import Posttrained
from scantling_posttrain.texts import PARTS, PHASES

from .. import quantity_texts
from ..quantity_texts import fits, in_text, split, withheld
from ..report.phrases import sentence
from . import link
from .controls import place_of
from .session import Fields, Refusal, Session


class Card(NamedTuple):
    """One headline number."""

    key: FigureKey
    name: str
    more_is_better: bool | None  # None: neither


class Difference(NamedTuple):
    """How a number differs from the reference: as text, and whether that is better or worse."""

    text: str = ""
    sense: str = ""


class Number(NamedTuple):
    """What stands on a card."""

    value: str
    unit: str
    note: str  # its band, or a remark
    hint: str
    state: str  # good, warn or bad


class Offer(NamedTuple):
    """What one press would mend."""

    name: str
    effect: str
    fields: Fields  # to set


CARDS = (
    Card("verdict", "Fits?", False),
    Card("mfu_shown", "MFU", True),
    Card("step_s", "Step time", False),
    Card("bubble_fraction", "Bubble", False),
    Card("likely.days", "Run time, likely", False),
    Card("likely.cost_usd", "Cost, likely", False),
    Card("goodput", "Goodput", True),
    Card("checkpoint_interval_s", "Checkpoint interval", None),
)
# of a design that tunes a trained model
TUNED_CARDS = (
    CARDS[0],
    Card("tokens_per_s_per_device", "Tokens/s a device", True),
    *(card for card in CARDS if card.key not in ("verdict", "mfu_shown", "bubble_fraction")),
)
# what makes a feasible design less than that, by the start of its limit
_LESS_THAN_FEASIBLE = {
    "tight": "Fits, tight",
    "idle": "Fits, idle devices",
    "offload": "Fits, offload",
}
# constraints that speak of a number
_LIMITS = {row.figure: (row.field,) for row in CONSTRAINTS.values()} | {
    "checkpoint_interval_s": (
        "max_checkpoint_overhead",
        "max_checkpoint_stall_s",
        "max_lost_work_s",
    )
}
_REST_OF_A_LINK = (
    "What can still be read of the link goes onto the desk; the rest takes its defaults. "
    "Compare it with its sender's."
)


def over(figures: Result) -> bool:
    """Whether there is a plan, and no memory for it."""
    return bool(figures.get("memory_bytes")) and not fits(figures)


def cards(figures: Result, reference: Result | None = None) -> list[dict[str, Any]]:
    """One item per headline number: value, unit, band or remark, difference from the reference."""
    out = []
    for card in TUNED_CARDS if is_tuned(figures) else CARDS:
        number = _verdict(figures) if card.key == "verdict" else _number(card.key, figures)
        if number.unit and number.unit in card.name.lower().split():  # the name has it
            number = number._replace(unit="")
        name = _name(card, figures)
        item: dict[str, Any] = {"key": card.key, "label": name, **number._asdict()}
        if reference and not withheld(figures, card.key) and not withheld(reference, card.key):
            of: FigureKey = "memory_bytes.total" if card.key == "verdict" else card.key
            change = difference(of, figure(figures, of), figure(reference, of), card.more_is_better)
            item |= {"delta": change.text, "sense": change.sense}
        out.append(item)
    return out


def _name(card: Card, figures: Result) -> str:
    """What a card is called; of MFU, that it counts attention as causal masks leave it."""
    causal = card.key == "mfu_shown" and figures.get("mfu_basis") == "causal"
    return f"{card.name}, causal" if causal else card.name


def is_tuned(figures: Result) -> bool:
    """Whether figures are those of a design that tunes a trained model."""
    return "plan" in figures and "step_breakdown_s" not in figures


def _number(key: FigureKey, figures: Result) -> Number:
    """Value, unit, remark, hint and state of a number."""
    if withheld(figures, key):
        return Number("—", "", "does not fit", "", "bad")
    missed = {row["field"] for row in figures.get("missed") or ()}
    state = "" if missed.isdisjoint(_LIMITS.get(key, ())) else "bad"
    hint = "Open the formula of this number"
    return Number(*split(in_text(figures, key)), _note(key, figures), hint, state)


def _verdict(figures: Result) -> Number:
    word, state = verdict_words(figures)
    note = ""
    if figures.get("memory_bytes"):
        used, usable = (in_text(figures, f"memory_bytes.{key}") for key in ("total", "capacity"))
        short, unit = split(used)
        note = f"{short if unit == split(usable)[1] else used} of {usable}"
    return Number(word, "", note, "Open what decides the verdict", state)


def verdict_words(figures: Result) -> tuple[str, str]:
    """The verdict in a word or two, and its state."""
    verdict = str(figures.get("verdict"))
    known = VERDICTS.get(verdict)
    if over(figures):
        return "Does not fit", "bad"
    if known is None:
        return verdict, ""
    if known.id != "feasible":
        return known.name, known.tone
    if slowed_by_pins(figures):
        return "Feasible, but slow", "warn"
    if figures.get("saving"):
        return "Feasible, but dear", "warn"
    if at(figures, "plan.offload") not in (None, "none"):
        return "Fits, offload", "warn"
    starts = {limit.partition(":")[0] for limit in figures["limits"]}
    less = [text for key, text in _LESS_THAN_FEASIBLE.items() if key in starts]
    return (less[0], "warn") if less else (known.name, known.tone)


def _note(key: FigureKey, figures: Result) -> str:
    """What stands below a number: its band, or another figure."""
    if spread := band_of(figures, key):
        unit = split(in_text(figures, key))[1]  # it stands above
        return spread.removesuffix(f" {unit}")
    if key in ("likely.days", "likely.cost_usd"):
        return _lacks(key, figures) if figures.get("plan") else ""
    return _remark(key, figures)


def _remark(key: FigureKey, figures: Result) -> str:
    """What is said below a number that has no band."""
    if key == "bubble_fraction":
        bubble = at(figures, "step_breakdown_s.bubble")
        return "" if bubble is None else f"{seconds(bubble)} a step"
    if key == "goodput":
        mtbf = figure(figures, "mtbf_s")
        return f"MTBF {show('mtbf_s', mtbf)}" if mtbf else ""
    if key == "checkpoint_interval_s":
        overhead = figure(figures, "checkpoint_overhead")
        return "" if overhead is None else f"{share(overhead)} overhead"
    return ""


def _lacks(key: FigureKey, figures: Result) -> str:
    """What days and dollars lack, or the price that they are at."""
    price = "cost.usd_per_device_hour"
    if key == "likely.cost_usd" and at(figures, price) is not None:
        rent = in_text(figures, price)
        return f"at {rent}" if "/h" in rent else f"at {rent}/device-h"
    if figure(figures, "days") is None:
        return "no tokens named"
    return "no price known" if key == "likely.cost_usd" else ""


def lacking(figures: Result) -> str:
    """What the design does not say that dollars need: tokens, a price, or nothing."""
    if figure(figures, "days") is None:
        return "tokens"
    return "a price" if figure(figures, "cost_usd") is None else ""


def difference(key: str, value: Any, before: Any, more_is_better: bool | None) -> Difference:
    """How a number differs from the reference, and whether that is better or worse."""
    if value is None or before is None or isinstance(value, str):
        return Difference()
    if value == before:
        return Difference("= reference")
    more, text = value > before, show(key, abs(value - before))
    if quantity(key).kind == "share":
        text = f"{split(text)[0]} points"  # of a percentage, not percent of it
    if not text.startswith("<"):
        text = f"+{text}" if more else f"−{text}"
    if more_is_better is None:
        return Difference(text)
    return Difference(text, "better" if more == more_is_better else "worse")


class Message(NamedTuple):
    """What is most worth knowing about a design right now. All of it is the library's text."""

    state: str  # good, warn or bad
    start: str  # in bold
    sentence: str
    nearest: str = ""  # the change that is nearest to mending it


def message(figures: Result, refusal: Refusal | None = None) -> Message:
    """The line below the headline numbers."""
    if refusal is not None:
        other = [f.field for f in refusal.others if place_of(f.field, f.nearest) is None]
        count = len(refusal.others) - len(other)
        faults = several(count, "further fault is", "further faults are")
        more = f" {faults} named beside the inputs." if count else ""
        more += f" Wrong too: {', '.join(other)}." if other else ""
        said = f"showing the last valid design. {refusal.text}.{more}"
        return Message("bad", "Input rejected;", said)
    known = VERDICTS.get(str(figures.get("verdict")))
    if known is not None and known.id == "impossible":
        verdict = verdict_sentence(figures)
        return Message(verdict.tone, f"{known.name}.", verdict.reason)
    if known is not None and known.id != "feasible":
        return _unmet(figures, known)
    return _feasible(figures)


def _unmet(figures: Result, known: Verdict) -> Message:
    """Why a design is not plainly feasible, and what would help."""
    reason = sentence(verdict_sentence(figures).reason) if figures["limits"] else ""
    fixes = figures["nearest_fixes"]
    help_ = f"Nearest: {fix_text(nearest(fixes))}." if fixes else ""
    if over(figures):
        return Message("bad", "Does not fit.", reason, help_)
    return Message(known.tone, f"{known.short}.", reason, help_)


def _feasible(figures: Result) -> Message:
    """What a feasible design lacks all the same, what it costs more than it need, or what to
    avoid."""
    if slowed_by_pins(figures) or figures.get("saving"):
        verdict = verdict_sentence(figures)
        return Message(verdict.tone, f"{verdict.name}.", sentence(verdict.reason))
    limit = next(iter(figures.get("limits") or ()), "")
    start, _, rest = limit.partition(": ")
    if start in _LESS_THAN_FEASIBLE:
        return Message("warn", f"{_LESS_THAN_FEASIBLE[start]}.", sentence(rest))
    avoid = figures.get("avoid")
    if avoid and not limit:
        said = f"To be avoided: {avoid[0]['what']}: {avoid[0]['why']}"
        return Message("good", "Fits.", sentence(said))
    return Message("good", "Fits.", sentence(limit))


def nearest(fixes: Sequence[FixRow]) -> FixRow | None:
    """The fix to offer: the first that makes the design feasible, else the first that changes
    anything."""
    able = [f for f in fixes if f.get("set")]
    feasible = [f for f in able if met(f["verdict"])]
    return next(iter([*feasible, *able]), None)


def offer(session: Session) -> Offer | None:
    """What one press would mend: the pin that stood in the way of a change, else the nearest
    fix."""
    refusal = session.refusal
    if refusal is None:
        figures = session.now.figures
        saving, fix = figures.get("saving"), nearest(figures["nearest_fixes"])
        if saving is not None and met(figures["verdict"]) and saving.get("set"):
            return Offer("Apply change", cured(saving), saving["set"])
        return None if fix is None else Offer("Apply fix", fix_text(fix), fix["set"])
    field, fields = refusal.field, refusal.fields
    if refusal.moved == link.NAME and fields:
        return Offer("Open what is left", _REST_OF_A_LINK, fields)
    name = field.removeprefix("plan.")
    pinned = name != field != refusal.moved and name in session.now.design.plan.stated()
    if not fields or not pinned:
        return None
    return Offer(
        f"Unpin {quantity_texts.label(field)}",
        f"Take the change, and let the search choose {name}",
        {**fields, field: None},
    )


def fix_text(fix: FixRow | None) -> str:
    """One nearest fix in words: what to change, and what then comes of it."""
    if fix is None:
        return "none known"
    figures = figure_texts(fix, {"likely.days": "", "likely.cost_usd": "", "mfu_shown": "MFU "})
    return f"{fix['change']}: {', '.join([fix['verdict'].replace('-', ' '), *figures])}"


def explanation(
    session: Session, key: str, facts: Mapping[str, Any] | None = None, *, alone: bool = False
) -> Opened:
    """What a number opens to; `facts` are those of the row that it stands in.

    `alone`: the row is another plan or design, so that no result of the one on the desk explains
    it.
    """
    figures = session.now.figures
    if session.now.tuned is not None:
        return _of_tuned(session.now.tuned, figures, key)
    verdict = key == "verdict" and not facts
    if alone:
        row = _of_its_own(figures, facts or {})
        return opened(key, row, {} if verdict else inputs(session.now, row), row)
    out = opened(key, figures, {} if verdict else inputs(session.now, figures), facts or None)
    if verdict:
        out["lines"] += _deciding(figures)
    out["lines"] += _beyond_the_median(figures, key)
    if session.reference and not facts:
        before = session.reference.figures
        change = difference(key, at(figures, key), at(before, key), None)
        if change.text:
            out["lines"].append(("Reference", f"{in_text(before, key)}; now {change.text}"))
    return out


def _of_its_own(figures: Result, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of another plan of the same model."""
    return {
        "plan": facts or None,
        "params": figure(figures, "params"),
        "active_params": figure(figures, "active_params"),
        "mtp_params": figure(figures, "mtp_params"),
        "flops_per_token": figure(figures, "flops_per_token"),
        **facts,
    }


def _beyond_the_median(figures: Result, key: str) -> list[tuple[str, str]]:
    """What likely days and dollars may come to: the tail to promise, and other prices."""
    lines = []
    if key in ("likely.days", "likely.cost_usd") and at(figures, f"{key}_high") is not None:
        tail = f"{show(key, at(figures, f'{key}_high'))}, which nine of ten drawn runs keep"
        lines.append(("To promise", tail))
    prices = [at(figures, f"cost.cost_usd_{end}") for end in ("low", "high")]
    if key == "likely.cost_usd" and None not in prices:
        of = band_meaning("cost.cost_usd")
        lines.append(("At other prices", f"{band(key, *prices)}: {of}"))
    return lines


def _of_tuned(tuned: Posttrained, figures: Result, key: str) -> Opened:
    """What a number of a design that tunes a trained model opens to: what it is made of."""
    lines: list[tuple[str, str]] = []
    match key:
        case "step_s" | "tokens_per_s_per_device":
            names, times = (
                (PHASES, tuned.phases_s) if tuned.rollout else (PARTS, tuned.step_parts_s)
            )
            lines += [(names[part], seconds(time)) for part, time in times.items() if time]
            lines += [("Why", text) for text in tuned.why]
        case "verdict":
            lines += [("Memory", memory_text(tuned))] if tuned.plan else []
            lines += [("Limit", text) for text in tuned.limits]
            lines += [("To be settled", text) for text in tuned.asks]
        case "likely.days" | "likely.cost_usd":
            lines.append(("Run", run_text(tuned) or "the design names no end"))
        case "goodput" | "checkpoint_interval_s":
            lines.append(("Failures", goodput_text(tuned)))
    spread = band_of(figures, "step_s")
    if key == "step_s" and spread:
        lines.append(("80 % interval", spread))
    return Opened(title=quantity_texts.label(key), value=in_text(figures, key), lines=lines)


def _deciding(figures: Result) -> list[tuple[str, str]]:
    """Memory, limits and nearest fixes: what decides the verdict."""
    memory = (f"memory_bytes.{part}" for part in figures.get("memory_bytes") or {})
    return [
        *((quantity_texts.label(key), in_text(figures, key)) for key in memory),
        *(("Limits", limit) for limit in figures["limits"][:4]),
        *(("Nearest fix", fix_text(fix)) for fix in figures["nearest_fixes"][:4]),
    ]
