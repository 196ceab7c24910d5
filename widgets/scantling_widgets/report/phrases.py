"""How one thing is worded: a number with its unit, a clause of the library as a sentence, a word of
a plan as people say it."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from markupsafe import Markup, escape
from scantling import catalogue
from scantling.base.show import (
    bytes_per_s,
    count,
    days,
    energy,
    flops,
    is_number,
    rate,
    seconds,
    share,
    size,
    usd,
    watts,
)
from scantling.catalogue.words import Recompute, Schedule, Sharding
from scantling.design.constraints import CONSTRAINTS
from scantling.verdict.result import FigureKey, Result, band_of, figure_texts
from scantling.verdict.verdicts import VERDICTS

# library of collectives, by vendor
LIBRARIES = {
    "NVIDIA": "NCCL",
    "AMD": "RCCL",
    "Google": "XLA",
    "AWS": "Neuron",
    "Intel": "HCCL",
    "Huawei": "HCCL",
}
_SHARDINGS = {
    Sharding.ZERO1: "ZeRO-1",
    Sharding.ZERO2: "ZeRO-2",
    Sharding.ZERO3: "ZeRO-3 (FSDP)",
    Sharding.HSDP: "HSDP",
}
_SCHEDULES = {
    Schedule.GPIPE: "GPipe",
    Schedule.ONE_F_ONE_B: "1F1B",
    Schedule.INTERLEAVED: "interleaved 1F1B",
    Schedule.DUALPIPE: "DualPipe",
}
_RECOMPUTES = {
    Recompute.NONE: "No activation recompute",
    Recompute.SELECTIVE: "Selective activation recompute",
    Recompute.FULL: "Full activation recompute",
}


# ---------------------------------------------------------------- numbers
def whole(value: Any) -> str:
    """A count without a unit."""
    return count(value, "")


def in_unit(unit: str, value: Any) -> str:
    """A value that comes with the name of its unit, behind which a remark may stand."""
    match unit.partition(" ")[0]:
        case "bytes/s":
            return bytes_per_s(value)
        case "bytes":
            return size(value)
        case "FLOP/s":
            return flops(value)
        case "share":
            return share(value)
        case "s":
            return seconds(value)
        case "days":
            return days(value)
        case "USD":
            return usd(value)
        case "W":
            return watts(value)
        case "kWh":
            return energy(value)
    own = "" if unit in ("count", "ratio") else unit
    if unit != "ratio" and is_number(value) and value == int(value):
        return count(value, own)
    return rate(value, own)


def nodes(n: float) -> str:
    """So many nodes."""
    return f"{whole(n)} {'node' if n == 1 else 'nodes'}"


def within(values: Result, key: FigureKey) -> str:
    """The band behind a figure; nothing behind a measured one."""
    band = band_of(values, key)
    return f" ({band})" if band else ""


def fix_figures(fix: Mapping[str, Any]) -> str:
    """The figures that a change brings with it, in brackets."""
    names: dict[FigureKey, str] = {
        "mfu_shown": "MFU ",
        "step_s": "step ",
        "likely.days": "",
        "likely.cost_usd": "",
        "goodput": "goodput ",
    }
    figures = figure_texts(fix, names)
    return f" ({', '.join(figures)})" if figures else ""


# ---------------------------------------------------------------- clauses
_AMOUNT = re.compile(
    r"(?<=\d) ?(?=%)"
    r"|(?<=\d) (?=(?:[kMGTPE]?(?:B|FLOP|bit)|[nµm]?s|min|h|days?|[kMGT]?Wh?)(?:/s)?(?![\w]))"
)


def unbroken(text: str) -> str:
    """The text with every number and its unit kept on one line."""
    return _AMOUNT.sub("\u00a0", text)


def _headed(text: str) -> tuple[str, str]:
    """(what stands before the first colon, the rest) of a text; ("", text) without such a head."""
    head, colon, rest = text.partition(":")
    return (head, rest) if colon and len(head) < 60 else ("", text)


def lead(text: Any) -> Markup:
    """What stands before the first colon in bold."""
    head, rest = _headed(upfirst(str(text)))
    return Markup("<strong>{}</strong>:{}").format(head, rest) if head else escape(rest)


def after_colon(text: str) -> str:
    """What stands behind the first colon; the heading before it is on the page already."""
    return _headed(text)[1].strip().rstrip(".")


def upfirst(text: str) -> str:
    """With a capital at its start, where no id stands there."""
    named = any(c.isdigit() for c in text.split(" ", 1)[0])
    return text if named else text[:1].upper() + text[1:]


def sentence(text: str) -> str:
    """The text with a capital at its start and a stop at its end."""
    text = upfirst(text.strip())
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."


# ---------------------------------------------------------------- names
class Named(Protocol):
    """A row of a catalogue."""

    @property
    def name(self) -> str: ...


def _short_name(rows: Mapping[str, Named], id: str) -> str:
    """The name of a row without what stands in brackets; the id where there is no such row."""
    return rows[id].name.split(" (")[0] if id in rows else id


def fabric(id: str) -> str:
    """A fabric as people call it."""
    return _short_name(catalogue.fabrics(), id)


def storage(id: str) -> str:
    """A store as people call it."""
    return _short_name(catalogue.storages(), id)


def sharding_name(sharding: str) -> str:
    """What data parallelism shares."""
    return _SHARDINGS.get(Sharding(sharding), "no ZeRO sharding")


def schedule_name(schedule: str | None) -> str:
    """A pipeline schedule."""
    if schedule is None or schedule == "none":
        return "no schedule"
    return _SCHEDULES.get(Schedule(schedule), schedule)


def recompute_name(recompute: str) -> str:
    """What the backward computes again."""
    return _RECOMPUTES[Recompute(recompute)]


def verdict_name(id: str) -> str:
    """What a verdict is called."""
    return VERDICTS[id].name


def verdict_means(id: str) -> str:
    """What a changed design does, by its verdict."""
    return VERDICTS[id].means


def set_by(field: str) -> str:
    """A constraint by its words, where a figure says that it set it."""
    row = CONSTRAINTS.get(field.removeprefix("constraints."))
    return f"set by the ceiling of {row.name}" if row else field


def under(collectives: Iterable[Mapping[str, Any]], axis: str) -> str:
    """What hides the collectives of an axis."""
    besides = dict.fromkeys(
        row["beside"] for row in collectives if row["axis"] == axis and row["hidden"] != "no"
    )
    named = [text for text in besides if text and not text.startswith("nothing")]
    return f"under {' and '.join(named) or 'compute'}"
