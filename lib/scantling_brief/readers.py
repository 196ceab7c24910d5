"""What a match says: each reader makes a value of it; None where its group said nothing. The
groups of a field alone are `v`, the unit is `u` or `v_u`."""

import re
from collections.abc import Callable, Mapping
from math import prod
from typing import NamedTuple

from scantling.base.files import table
from scantling.base.units import DAY_S, HOUR_S

from .fragments import FORM, LEAST
from .match import Match
from .units import GIGABYTES, MEGAWATTS, SECONDS

# names of racks: alone they name what is in the usual one, and may stand beside another
RACKS: Mapping[str, str] = table(__file__, "names")["racks"]


class Chip(NamedTuple):
    """An accelerator as it is written."""

    family: str
    memory_gb: int | None
    form: str | None  # SXM, PCIe, OAM ...
    text: str  # as it was written

    def __str__(self) -> str:
        """The words, as a contradiction names them."""
        return self.text

    def is_another(self, other: "Chip") -> bool:
        """Whether the other is of another kind; a rack alone may be one of either."""
        return self.family != other.family and not {self.family, other.family} & RACKS.keys()

    def of_word(self, word: str) -> "Chip | None":
        """The same chip in the other form, or with the other memory, that a word names; None where
        it names none."""
        form = word.replace("-", "")
        if self.form is not None and _FORM.fullmatch(form) and form != self.form:
            return self._replace(form=form, text=f"{self.family} {form}")
        memory = re.fullmatch(r"(\d+)gb?", form)
        if memory and self.memory_gb not in (None, int(memory[1])):
            return self._replace(memory_gb=int(memory[1]), text=f"{self.family} {word}")
        return None

    def joined(self, other: "Chip") -> "Chip | None":
        """The same chip with what either says of memory and form; None where they differ."""
        if self.is_another(other):
            return None
        if self.memory_gb and other.memory_gb and self.memory_gb != other.memory_gb:
            return None
        if self.form and other.form and self.form != other.form:
            return None
        return Chip(
            family=other.family if self.family in RACKS else self.family,
            memory_gb=self.memory_gb or other.memory_gb,
            form=self.form or other.form,
            text=max(self.text, other.text, key=len),
        )


Value = str | float | Chip | list[str]
Reader = Callable[[Match], Value | None]


def always(value: Value) -> Reader:
    """A value that the words themselves say."""
    return lambda match: value


_MANY = re.compile(r"\d[a-z]*s$", re.IGNORECASE)


def one_chip(match: Match) -> int | None:
    """One device, where the name of its chip is no plural: my H100, not our H100s."""
    return None if _MANY.search(match.words) else 1


def number(group: str) -> Reader:
    """A number with its scale."""
    return lambda match: match.number(group)


def whole(group: str, thousand: float = 1000) -> Reader:
    """A whole number, whose K is `thousand`."""
    return lambda match: match.whole(group, thousand)


def devices(group: str) -> Reader:
    """A count of devices; nothing where the group took no part."""
    return lambda match: match.devices(group) if match.text(group) else None


def product(groups: str, each: str) -> Reader:
    """So many groups of so many devices each."""
    return lambda match: (match.whole(groups) or 0) * match.devices(each)


def quotient(all: str, groups: str) -> Reader:
    """How many of all each of so many groups has; nothing where they do not divide."""

    def read(match: Match) -> int | None:
        each, rest = divmod(match.devices(all), match.whole(groups) or 1)
        return None if rest else each

    return read


MOST_IN_A_NODE = 16  # devices that share a host: HGX-2, Trainium


def of_each(count: str, groups: str) -> Reader:
    """Devices of a node, from a count beside that of nodes: more than a host holds are all."""
    each = quotient(count, groups)
    return lambda match: (
        each(match) if match.devices(count) > MOST_IN_A_NODE else match.devices(count)
    )


_USUAL_NODE = 8  # devices of a node, where a product does not say which number is that


def of_a_node(first: str, second: str) -> Reader:
    """Devices of a node, of a product behind a chip's name: eight where one of both is, else the
    first."""

    def read(match: Match) -> int | None:
        pair = (match.whole(first), match.whole(second))
        return _USUAL_NODE if _USUAL_NODE in pair else pair[0]

    return read


def groups_beside(first: str, second: str) -> Reader:
    """Nodes, of the same product."""
    each = of_a_node(first, second)

    def read(match: Match) -> int:
        pair = (match.whole(first) or 0, match.whole(second) or 0)
        return pair[0] * pair[1] // int(str(each(match)))

    return read


def prefixed(kind: str) -> Reader:
    """A word behind what it is a kind of: ib-ndr, zero3."""
    return lambda match: kind + match.text("v").lower()


def word(match: Match) -> str:
    """The word itself; of several, with a dash between."""
    return "-".join(match.text("v").lower().split())


def word_of_group(group: str) -> Reader:
    """The word of one group; nothing where it took no part."""
    return lambda match: match.text(group).lower() or None


def amount(match: Match) -> float | None:
    """A number with its scale, whole or not."""
    value = match.number("v")
    return None if value is None else float(value)


def plain(match: Match) -> float:
    """A number without a scale."""
    return match.plain()


def written(match: Match) -> str:
    """The words as they stand."""
    return " ".join(match.words.split())


def written_of(group: str) -> Reader:
    """The words of one group as they stand."""
    return lambda match: " ".join(match.text(group).split())


_WISH = re.compile(
    rf"{LEAST}|aim|want|hop(?:e|ing) for|shoot|need|target|goal|floor|minimum|must|should|require"
    r"|or (?:more|better|higher)|\+",
    re.IGNORECASE,
)


def wished(match: Match) -> bool | None:
    """True where a figure is asked for, not measured."""
    return True if _WISH.search(match.words) else None


def plain_of(group: str) -> Reader:
    """The number of one group, without a scale."""
    return lambda match: float(match.text(group))


def sequence_of(group: str) -> Reader:
    """Tokens of a sequence: 32k are 32,768; 20k, no power of two, are 20,000."""
    return devices(group)


def in_thousands(many: int) -> int:
    """Tokens of a sequence of so many K: 1,024 each where they are a power of two."""
    return many * (1024 if many & (many - 1) == 0 else 1000)


sequence = sequence_of("v")


def millions(match: Match) -> int:
    """Tokens of a sequence in millions: 1M are 1,048,576; 10M, no power of two, are 10,000,000."""
    many = int(match.text("v"))
    return many * (2**20 if many & (many - 1) == 0 else 10**6)


def share(match: Match) -> float:
    """A share that is written in per cent."""
    return float(f"{match.plain() / 100:.12g}")


def slower(group: str) -> Reader:
    """How much longer a step takes that is so many per cent slower."""
    return lambda match: (
        float(f"{1 + float(match.text(group)) / 100:.12g}") if match.text(group) else None
    )


def cents(match: Match) -> float:
    """Dollars of a price in cents."""
    return share(match)


def ratio(part: str, whole: str) -> Reader:
    """One whole number over another."""
    return lambda match: (match.whole(part) or 0) / (match.whole(whole) or 1)


def rest(done: str, all: str) -> Reader:
    """What is left of all; nothing where that is no more than what is done."""

    def read(match: Match) -> float | None:
        left = (match.number(all) or 0) - (match.number(done) or 0)
        return left if left > 0 else None

    return read


def product_of(*groups: str) -> Reader:
    """A product of whole numbers."""
    return lambda match: prod(match.whole(group) or 0 for group in groups)


def tpu_slices(match: Match) -> int:
    """Chips of so many TPU slices."""
    return tpu_slice(match) * (match.whole("n") or 0)


def tpu_slice(match: Match) -> int:
    """Chips of a TPU slice: generations 2 to 5p are named by their cores, two a chip; the efficient
    ones by chips."""
    cores = 1 if match.text("acc").lower().endswith("e") else 2
    return max(1, (match.whole("v") or 0) // cores)


def _in_units(match: Match, units: Mapping[str, float], group: str, per: float = 1) -> float:
    return float(f"{match.plain() * units[match.text(group).lower()] / per:.12g}")


def seconds(match: Match) -> float:
    """A span in seconds."""
    return _in_units(match, SECONDS, "v_u")


def seconds_of(group: str) -> Reader:
    """A span of one group in seconds."""
    return lambda match: (
        match.plain(group) * SECONDS[match.text(f"{group}_u").lower()]
        if match.text(group)
        else None
    )


def span_of_each(count: str) -> Reader:
    """Seconds of each of so many that take a span."""
    return lambda match: float(f"{seconds(match) / float(match.text(count)):.12g}")


def every(match: Match) -> float:
    """Seconds between two of so many in a span."""
    return float(f"{SECONDS[match.text('v_u').lower()] / match.plain():.12g}")


def a_day(match: Match) -> float:
    """So many in a span, of a day."""
    return (match.number("v") or 0) * DAY_S / SECONDS[match.text("v_u").lower()]


def hours_of_days(match: Match) -> float:
    """Device-hours of so many device-days, -weeks, -months or -years."""
    spans = (match.number("v") or 0) * SECONDS[match.text("unit").lower()]
    return float(f"{spans / HOUR_S:.12g}")


def days(match: Match) -> float:
    """A span in days."""
    return _in_units(match, SECONDS, "v_u", DAY_S)


def years(match: Match) -> float:
    """A span in years."""
    return _in_units(match, SECONDS, "v_u", SECONDS["year"])


def gigabytes(match: Match) -> float:
    """Memory or disks in GB."""
    return _in_units(match, GIGABYTES, "u")


def megawatts(match: Match) -> float:
    """Power in MW."""
    return _in_units(match, MEGAWATTS, "u")


_PREFIXES = {"g": 1e9, "t": 1e12, "p": 1e15, "e": 1e18, "z": 1e21, "y": 1e24}


def operations(match: Match) -> float | None:
    """FLOP of a training: with a prefix, of a rate that is kept up for so many days."""
    value = match.number("v")
    if value is None:
        return None
    prefix = match.text("flop").lower()[:1]
    seconds_of = DAY_S if match.text("for") else 1.0
    return float(f"{value * _PREFIXES.get(prefix, 1.0) * seconds_of:.12g}")


def gigabits(match: Match) -> float:
    """A rate in Gb/s."""
    unit = match.text("u")
    bits = 8 if "B" in unit else 1
    return match.plain() * bits * (1000 if unit[0] in "Tt" else 1)


def gigabytes_per_s(match: Match) -> float:
    """A rate in GB/s."""
    return gigabits(match) / 8


_RATE_OF = {
    "host": "node",
    "server": "node",
    "nic": "port",
    "link": "port",
    "rail": "port",
    "gpu": "device",
    "chip": "device",
    "accelerator": "device",
}


def gigabytes_per_s_of(group: str) -> Reader:
    """A rate in Gb/s of one group, in GB/s."""
    return lambda match: float(match.text(group)) / 8


def rate_of(match: Match) -> str | None:
    """What a rate is that of: node, port or device."""
    word = match.text("of").lower()
    return _RATE_OF.get(word, word) or None


def domain(match: Match) -> str:
    """What must not take the run down: device, node, rack, pod."""
    word = match.text("v").lower()
    return "node" if word in ("machine", "host", "server") else word


_MEMORY = re.compile(r"(\d+)(?=\s?g(?:i?b)?s?\b)|(?<=[\s-])\d+(?=s?$)")

_FORM = re.compile(FORM, re.IGNORECASE)
# by the first letters of a code name (cloud.google.com/tpu/docs/v6e, /v7)
_MAKER = re.compile(r"^tpu")  # before the code name
_BY_CODE_NAME = {"iron": "tpuv7x", "tril": "tpuv6e"}


def accelerator(match: Match) -> Chip | None:
    """An accelerator with its memory and form."""
    if not match.text("acc"):
        return None
    details = (match.text("pre") + match.text("more")).lower()
    memory = _MEMORY.search(details)
    forms = sorted(_FORM.findall(details), key=lambda form: form.startswith("hbm"))
    family = re.sub(r"[\s-]", "", match.text("acc").lower())
    family = _BY_CODE_NAME.get(_MAKER.sub("", family)[:4], family.removeprefix("geforce"))
    written = f"{match.text('pre')}{match.text('acc')}{match.text('more')}"
    return Chip(
        family=family,
        memory_gb=int(memory[0]) if memory else None,
        form=forms[0].replace("-", "") if forms else None,
        text=" ".join(written.replace("(", " ").replace(")", " ").split()),
    )
