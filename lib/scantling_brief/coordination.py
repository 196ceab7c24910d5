"""Values that an or joins: what is said once of several, a unit, a scale or a label, is said of
each. 15 or 60 minutes; 7 or 13B; from 2k to 16k GPUs; batch 1024 or 2048; 1k GPUs for 2 months or
2k for 1."""

import re
from typing import NamedTuple

from .fragments import ACCELERATOR, GROUP

_SPAN = r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|quarters?|years?|[hsd])"
_A_PRICE = r"\s*(?:/|per\s+|an\s+)\s*(?:(?:gpu|device|chip)[\s-]*(?:/\s*)?)?(?:hour|hr|h)"
_NOUN = (
    r"(?:experts|layers|blocks|heads|gpus?|devices|nodes?|servers|machines|hosts|racks|chips|cards"
    r"|tpus|sites|(?:inner\s+|local\s+)?steps|epochs?|spares?(?:\s+nodes?)?|samples|examples"
    r"|(?:sequences?|context|ctx|seq)(?:\s+len(?:gth)?)?|batch(?:\s+size)?|tok(?:en)?s?"
    r"|param(?:eter)?s|(?:of\s+)?(?:mfu|goodput)|over-?subscri\w+|taper\w*)"
)
_GIGABITS = r"\s?g(?:b(?:it)?(?:/s|ps))?(?:\s+(?:ib|infini-?band|roce(?:\s?v2)?|ethernet))?"
_FAILURES = (
    rf"\s(?:{GROUP}|gpus?|devices)\s+(?:fail|die|crash|break)(?:e?s)?\s+(?:per|every|an?|each)\s+"
    r"(?:day|week|month)"
)
# what may stand behind a number
_UNIT = (
    rf"(?:{_A_PRICE}\b|{_GIGABITS}\b|[\s-]?(?:{_SPAN}|gbe)\b|{_FAILURES}\b|[\s-]?[x×]?\s?(?:{_NOUN}\b"
    rf"|{ACCELERATOR}(?:\s+{GROUP}\b)?))"
)
# what may stand before it
_LABEL = (
    r"(?:(?:global|micro)[\s-]?)?batch(?:\s+size)?|(?:sequence|context)(?:\s+length)?"
    r"|seq(?:[\s_]?len(?:gth)?)?|ctx|gbs|mbs|tp|pp|cp|ep|dp|vpp|deadline|budget"
)
_QUANTITY = re.compile(
    r"(?<![\w.-])(?!(?<=,)\d{3}(?!\d))(?P<sign>(?:us)?[$€£]\s?)?"
    rf"(?P<value>(?:\d{{1,3}}(?:,\d{{3}})+(?!\d)|\d+)(?:\.\d+)?(?::1|\s?%|\s?percent)?|(?:an?|one)(?=\s+{_SPAN}\b)|one(?=\s*(?:[?.,;]|$)))"
    r"(?P<scale>\s?(?:k|[bt]n?|mn?|thousand|million|billion|trillion)(?!\w))?"
    rf"(?P<unit>{_UNIT})?(?![\w%]|\.\d|\s*/\s*\w|\s?[gt]i?b)",
    re.ASCII | re.IGNORECASE,
)
# what a value is of, where it is said once: global batch 2M or 8M tokens
_OF = re.compile(rf"\b({_LABEL})(?:\s*[=:]|\s+of)?\s*$", re.IGNORECASE)
# behind a number without a unit
_FREE = re.compile(
    r"\s*(?:[?.,;:)]|$)|\s+(?:for|on|in|at|with|over|using|and|or|to|vs|versus|instead)\b",
    re.IGNORECASE,
)
_OR = r"(?:or|vs\.?|versus|instead\s+of|rather\s+than|than|against)"
_JOINT = re.compile(
    rf"\s*,?\s*\b(?:{_OR})\s+(?:(?:to|the|an?|just|only|with|on)\s+)?", re.IGNORECASE
)
_ARROW = re.compile(r"\s*(?:->|=>|→)\s*")
_AND = re.compile(r"\s+and\s+", re.IGNORECASE)
_VERSUS = re.compile(r"\b(?:vs|versus|or)\b", re.IGNORECASE)
_RATE = re.compile(_GIGABITS, re.IGNORECASE)
_TOKENS = re.compile(r"tok|param", re.IGNORECASE)
_PRICE = re.compile(_A_PRICE, re.IGNORECASE)
_TRIES = re.compile(r"\b(?:sweep|scan|vary|try|compare|test)\b", re.IGNORECASE)
_COMMA = re.compile(r"\s*[,/]\s*")
_TO = re.compile(r"\s+(?:(?:up|down)\s+)?to\s+", re.IGNORECASE)
_BY = re.compile(r"\s+(?P<by>on|with|using|over|for|in|at|of|during|from)\s+", re.IGNORECASE)
_BEHIND_CHIP = re.compile(
    rf"\s*,?\s*\b(?:{_OR})\s+(?:the\s+)?{ACCELERATOR}\s+(?P<by>at|for|@)\s*",
    re.ASCII | re.IGNORECASE,
)
# a verb by which something would be another value than it is; one of the past tells what was seen
_CHANGE = (
    r"(?:mov|go|switch|chang|grow|scal|extend|rais|increas|doubl|cut|reduc|drop|lower|shrink|halv"
    r"|decreas|tak|bring|upgrad|stretch|ris|climb|fall|jump|slip|delay)(?:[a-z]?ing|e?s|e)?"
)
_FROM = re.compile(
    rf"(?:\b(?:{_CHANGE})\s+)?(?:(?:the|our|my|it)\s+)?(?:(?P<of>\b(?:{_LABEL}))\s+)?"
    r"(?:(?:up|down)\s+)?\bfrom\s+$",
    re.IGNORECASE,
)
_CHANGES = re.compile(rf"(?:^|[.;?!])(?!\s*why\b)[^.;?!]*\b(?:{_CHANGE})\b[^.;?!]*$", re.IGNORECASE)
# what a run was seen to do: from 11k to 8k tok/s
_SPEED = re.compile(
    r"\s*(?:tok(?:en)?s?\s*(?:/|per)\s*(?:s|gpu)|tgs|tps|wps|[tp]flop)", re.IGNORECASE
)
# a value that changes in the run, and a run that goes on: neither is compared
_GROWS = re.compile(r"\s+(?:during|throughout|gradually|linearly|over\s+the)\b", re.IGNORECASE)
_GOES_ON = re.compile(r"\b(?:tak|bring|train|continu|push)\w*\b[^.;?!]*$", re.IGNORECASE)
MOST_AN_HOUR = 100.0  # [USD]: what is less and has no unit is the price of an hour


class _Quantity(NamedTuple):
    """A number with what stands about it, and where."""

    start: int
    end: int
    sign: str
    value: float
    scale: str
    unit: str
    free: bool  # no other word behind it may be its unit


class _Edit(NamedTuple):
    """Words in place of a piece of the text."""

    start: int
    end: int
    words: str


def said_of_each(text: str, comparing: bool) -> str:
    """`text` with what is said once of values that an or joins said of each; `comparing`: an and
    joins them too."""
    edits: list[_Edit] = []
    found = [_quantity(match) for match in _QUANTITY.finditer(text)]
    for i in range(1, len(found)):
        one, two = found[i - 1], found[i]
        between = text[one.end : two.start]
        if _JOINT.fullmatch(between):
            edits += _joined(text, found, i)
        elif _ARROW.fullmatch(between) and not one.unit and two.scale.lower() in ("", "k"):
            edits += [_Edit(one.end, two.start, " versus "), *_joined(text, found, i)]
        elif (_COMMA.fullmatch(between) or _AND.fullmatch(between)) and _is_series(text, found, i):
            edits += [_Edit(one.end, two.start, " or "), *_of_both(one, two)]
        elif _AND.fullmatch(between) and not _TOKENS.search(two.unit):
            if comparing:
                edits += _joined(text, found, i)
            elif _are_prices(one, two) and _VERSUS.search(text, 0, one.start):
                joint = f" versus {_by(text, one)} "  # respectively
                edits += [_Edit(one.end, two.start, joint), *_of_both(one, two)]
        elif _TO.fullmatch(between):
            edits += _from_to(text, one, two)
        elif (chip := _BEHIND_CHIP.fullmatch(between)) and _by(text, one) == chip["by"].lower():
            edits += _of_both(one, two)
    for edit in sorted(set(edits), reverse=True):
        text = text[: edit.start] + edit.words + text[edit.end :]
    return text


def _is_series(text: str, found: list[_Quantity], i: int) -> bool:
    """Whether two of at least three bare numbers stand side by side, where several are tried."""
    if not _TRIES.search(text) or found[i - 1].unit:
        return False
    here = [j for j in (i - 1, i + 1) if 0 < j < len(found)]
    return any(
        re.fullmatch(r",\s*|/|\s+and\s+", text[found[j - 1].end : found[j].start])
        and not found[j - 1].unit
        for j in here
    )


def _quantity(match: re.Match[str]) -> _Quantity:
    value = match["value"].replace(",", "")
    return _Quantity(
        start=match.start(),
        end=match.end(),
        sign=match["sign"] or "",
        value=1.0 if value.isalpha() else float(re.split(r"[:%p\s]", value)[0]),
        scale=match["scale"] or "",
        unit=match["unit"] or "",
        free=_FREE.match(match.string, match.end()) is not None,
    )


def _by(text: str, quantity: _Quantity) -> str:
    """The preposition before a quantity."""
    before = re.search(r"(\w+|@)\s*$", text[: quantity.start])
    return before[1].lower() if before else ""


def _joined(text: str, found: list[_Quantity], i: int) -> list[_Edit]:
    """The values about a joint: one before and one behind it, several before it, or two pairs of
    the same preposition."""
    behind = found[i + 1] if i + 1 < len(found) else None
    if i > 1 and behind:
        first = _BY.fullmatch(text[found[i - 2].end : found[i - 1].start])
        second = _BY.fullmatch(text[found[i].end : behind.start])
        if first and second and first["by"].lower() == second["by"].lower():
            pair = found[i - 2], found[i]
            counts = _of_both(*pair)
            if not counts and _SPANS.search(behind.unit) and all(map(_is_count, pair)):
                counts = [_Edit(count.end, count.end, " devices") for count in pair]
            return [*counts, *_of_both(found[i - 1], behind)]
    edits = _of_both(found[i - 1], found[i])
    label = _OF.search(text, 0, found[i - 1].start)
    if label and "token" in found[i].unit:
        edits.append(_Edit(found[i].start, found[i].start, f"{label[1]} "))
    last = found[i]
    for j in range(i - 2, -1, -1):
        between = text[found[j].end : found[j + 1].start]
        if found[j].unit or not (_COMMA.fullmatch(between) or _JOINT.fullmatch(between)):
            break
        if last.unit and _OF.search(text, 0, found[j].start):
            break
        edits += _of_both(found[j], last)
        if _COMMA.fullmatch(between):
            edits.append(_Edit(found[j].end, found[j + 1].start, " or "))
    return edits


def _are_prices(one: _Quantity, two: _Quantity) -> bool:
    """Whether two numbers are prices of an hour: of a unit that says so, or so few dollars."""
    few = max(one.value, two.value) < MOST_AN_HOUR and not one.scale + two.scale
    bare = not one.unit + two.unit
    return _PRICE.fullmatch(two.unit) is not None or bool(one.sign and two.sign and few and bare)


_SPANS = re.compile(_SPAN, re.IGNORECASE)


def _is_count(quantity: _Quantity) -> bool:
    """Whether a number may be that of devices."""
    bare = not quantity.sign + quantity.unit and quantity.scale.strip().lower() in ("", "k")
    return bare and quantity.value >= 1 and quantity.value.is_integer()


def _of_both(one: _Quantity, two: _Quantity) -> list[_Edit]:
    """What is said of one of two values, said of both. A scale is shared by a smaller number
    before a larger one: 7 or 13B, not 500 or 1k; a noun by numbers of one scale."""
    scale = two.scale if not one.scale + one.unit and one.value < two.value else ""
    scales = {one.scale.strip().lower(), two.scale.strip().lower()}
    alike = len(scales) == 1 or scales == {"", "k"}
    if two.unit and not one.unit and (alike or scale):
        return [_Edit(one.end, one.end, scale + two.unit)]
    if scale:
        return [_Edit(one.end, one.end, scale)]
    if one.unit and not two.unit and alike and two.free:
        return (
            [_Edit(two.start, two.end, f"1{one.unit}")]
            if two.value == 1
            else [_Edit(two.end, two.end, one.unit)]
        )
    return []


def _from_to(text: str, one: _Quantity, two: _Quantity) -> list[_Edit]:
    """From one value to another, where a verb says that something changes: both are compared. A
    range without such a verb stays one. Some dollars are those of an hour."""
    if _RATE.fullmatch(two.unit) or _GROWS.match(text, two.end) or _SPEED.match(text, two.end):
        return []
    if _TOKENS.search(two.unit) and _GOES_ON.search(text, 0, one.start):
        return []
    begin = _FROM.search(text, 0, one.start)
    if begin is None or not (begin["of"] or _CHANGES.search(text, 0, one.start)):
        return []
    label = f"{begin['of']} " if begin["of"] else ""
    bare = not one.scale + one.unit + two.scale + two.unit
    if one.sign and two.sign and bare and two.value < MOST_AN_HOUR:
        label = "at "
        return [
            _Edit(begin.start(), one.start, label),
            _Edit(one.end, two.start, f" per hour versus {label}"),
            _Edit(two.end, two.end, " per hour"),
        ]
    return [
        _Edit(begin.start(), one.start, label),
        _Edit(one.end, two.start, f" versus {label}"),
        *_of_both(one, two),
    ]
