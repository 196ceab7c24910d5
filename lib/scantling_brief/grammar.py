"""Reading plain words from left to right: rules match where the scanner stands, the longest wins,
and every word that no rule uses is listed."""

import re
from functools import cache

from scantling.base.files import table
from scantling.base.typed import with_points
from scantling.catalogue.models.entries import entries
from scantling.catalogue.stacks import Stack, stacks
from scantling.design.line_reading import Read

from .coordination import said_of_each
from .decisive import ask_about
from .fragments import FAMILY, FORM, GROUP, MEMORY, RACK, TIMES, whole_in
from .idle import is_idle, turning
from .match import Match
from .notes import NEGATED, TURNED, UNUSED, Notes
from .open_questions import asked_without_answer
from .readers import always, whole
from .rule import Rule, sets, topic
from .rules_asked import ASKED
from .rules_limits import LIMITS
from .rules_machine import MACHINE
from .rules_model import MODEL, STYLE
from .rules_questions import QUESTIONS
from .rules_tuning import TUNING
from .spelling import in_dollars, in_english
from .topics import Topic
from .units import SECONDS

_GAP = re.compile(r"(?:-*=*>|[\s,.;:()\[\]\"'“”’/&+|*•·–—~≈→?!¿¡=-]+)+")
_CLAUSE = re.compile(r"[,;:?!)\n]|\.\s")  # where the reach of a negation ends
# up to a size that a name ends in, as in MPT-30B
_WORD = re.compile(
    r"[1-9]\d{0,2}(?:,\d{3})+(?![\d.])|(?:(?!-\d+(?:\.\d+)?[bB]\b)[^\s,;()\[\]\"“”|?!])+"
)
_COMPOUND = re.compile("[/–—-]")
_PARTED = re.compile(r"(?<=[a-z]{3})/(?=[a-z]{4})", re.IGNORECASE)  # two words: jax/maxtext

_NUMBERS = (
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
)
_COUNTED = (
    r"[\s-]+(?:thousand|million|billion|trillion|seconds?|minutes?|hours?|days?|weeks?|months?"
    r"|years?|nodes?|gpus?|devices?|servers?|racks?|sites?|data\s?cent(?:er|re)s?|regions?|campuses|pods?"
    r"|(?:hot\s+)?spare|machines?|hosts?|box(?:es)?|instances?|layers|experts|dgx|hgx|epochs?|sequences?|samples?|[a-z]+\d+[a-z]*|\d+\s?[x×]\s?[a-z]+\d+[a-z]*)\b"
)
_COUNTED_AFTER_SINGLE = (
    r"[\s-]+(?:(?:dgx|hgx|nvidia|rtx)\s+)?(?:\d{4}|\d+\s?x\s?[a-z]+\d+|[a-z]+\d+[a-z]*|gpu|rack"
    r"|(?:node|server|machine)(?!s?\s+(?:fail|loss|outage)))\b"
)
_COUNTED_AFTER_A = r"\s+(?:thousand|million|billion|trillion)\b"
# a noun said once: selective vs full recompute
_RECOMPUTE = re.compile(
    r"\b(selective|full|no)\s+(vs\.?|versus|or)\s+(selective|full|no)\s+((?:activation\s+|gradient\s+)?(?:recompute|recomputation"
    r"|checkpointing))\b",
    re.IGNORECASE,
)
_ARROW = re.compile(
    rf"((?:{FAMILY})[\w-]*)\s*(?:->|→|=>)\s*(?=(?:\d+\s*x?\s*)?(?:{FAMILY}))",
    re.ASCII | re.IGNORECASE,
)
# what would be another chip: go from H100 SXM to H100 PCIe; moved from tells what was
_FROM_CHIP = re.compile(
    rf"(?<!ed\s)\bfrom\s+((?:{FAMILY})[\w-]*(?:[\s-](?:{FORM}|{MEMORY}))?)\s+to\s+(?=(?:the\s+)?(?:{FAMILY}))",
    re.ASCII | re.IGNORECASE,
)
_ONCE = re.compile(
    r"\bonce\s+(?:an?|per|each|every)\s+(?=(?:hour|day|week|month)\b)", re.IGNORECASE
)
# behind other words a day is a rate: 1B tokens a day
_A_TIME = re.compile(
    r"((?:^|[,;(]\s*)|\b(?:in|within|for|over|under|after|takes?|taking|about|around|just|only|than|have|having|got|us|get|is|be"
    r"|most|least|half|maximum|max|of|deadline|budget)[\s:]+)an?(?=\s+(?:week|month|quarter|year|day|hour)\b)"
    r"|\b((?:in|within|for|over)\s+)(?:the|this)(?=\s+(?:week|month|quarter|year)\b)",
    re.IGNORECASE,
)
_COUNT = re.compile(
    rf"\b(one)(?={_COUNTED})|\b({'|'.join(_NUMBERS[1:])})(?=[\s-]+[a-z\d])|\b(?:dual|quad)(?={_COUNTED_AFTER_SINGLE})|\ba(?={_COUNTED_AFTER_A})"
    rf"|\bsingle(?={_COUNTED_AFTER_SINGLE})",
    re.ASCII | re.IGNORECASE,
)


_UNITS = dict(zip(_NUMBERS[:19], range(1, 20), strict=True))
_TENS = {
    word: 10 * i
    for i, word in enumerate(
        ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), 2
    )
}
_ONES = "|".join(_NUMBERS[:9])
_BELOW_100 = rf"(?:(?:{'|'.join(_TENS)})(?:[\s-]+(?:{_ONES})\b)?|{'|'.join(_NUMBERS[9:19])})"
# sixty-four, a hundred, five hundred and twelve
_SPELT = re.compile(
    rf"\b(?:(?P<hundreds>an?|{_ONES})\s+hundred(?:\s+(?:and\s+)?(?P<rest>{_BELOW_100}|{_ONES}))?"
    rf"|(?P<below>(?:{'|'.join(_TENS)})(?:[\s-]+(?:{_ONES}))?))\b(?=[\s-]+[a-z\d])",
    re.ASCII | re.IGNORECASE,
)


def _in_digits(match: re.Match[str]) -> str:
    """A number in words below a thousand."""
    words = re.split(r"[\s-]+", (match["below"] or match["rest"] or "").lower())
    value = sum(_UNITS.get(word, 0) + _TENS.get(word, 0) for word in words)
    hundreds = (match["hundreds"] or "").lower()
    return str(value + 100 * (_UNITS.get(hundreds, 1) if hundreds else 0))


@cache
def rules() -> tuple[Rule, ...]:
    """Catalogue models by their ids, written with spaces, dots or dashes; the sentences; software
    stacks. Of rules that match as much the first one counts."""
    named: list[Rule] = []
    for entry in entries().values():
        for name in (entry.id, *entry.aliases):
            named += sets({"model": always(entry.id)}, _spaced(name))
            if (sized := _SIZED.fullmatch(name)) and _is_one_series(sized):  # 70B Llama 2
                series = rf"{_spaced(sized['series'])}(?![\s-]*(?:{STYLE}\b|\d|v\d))"
                behind = rf"{re.escape(sized['size'])}[\s-]+{series}"
                named += sets({"model": always(entry.id)}, behind)
                if "x" in sized["size"]:  # Mixtral-style 8x22B
                    alike = (
                        rf"{_spaced(sized['series'])}[\s-]{STYLE}[\s-]+{re.escape(sized['size'])}"
                    )
                    named += sets({"model": always(entry.id)}, alike, why="the one that it is like")
    stated: list[Rule] = []
    for stack in stacks().values():
        if stack.names:
            pattern = rf"{_of_stack(stack)}(?:\s+(?:framework|stack))?{_RELEASE}"
            stated += sets({"stack": always(stack.name)}, pattern)
    rented: list[Rule] = []
    for instance, node in table(__file__, "names")["instances"].items():
        parts = re.split(r"\s|(?<=^[a-z]\d)-", instance)  # a3-mega is A3 Mega too
        pattern = r"[\s_-]*".join(re.escape(part) for part in parts)
        family, _, of_size = instance.partition(".")
        counted = pattern  # beside a count a family is enough, where it is no chip's name too
        if of_size.endswith("xlarge"):
            if not family.startswith("trn"):
                counted = rf"(?:{pattern}|{re.escape(family)})"
            behind = rf"{whole_in('n')}{TIMES}{GROUP}\s+(?:of\s+)?{re.escape(family)}"
            rented += sets({"nodes": whole("n"), "instance": always(node)}, behind)
            machine = r"(?=s?\s+(?:(?:instance|node|vm|machine)s?|(?:at|for)\s+\$))"
            pattern = rf"(?:{pattern}|{re.escape(family)}{machine})"
        elif instance.startswith("nd"):
            pattern = counted = rf"(?:standard[\s_-])?{pattern}"
        rented += sets(
            {"nodes": whole("n"), "instance": always(node)},
            (
                rf"{whole_in('n')}{TIMES}(?:aws\s+|gcp\s+|azure\s+)?{counted}s?(?:\s+(?:instanc"
                r"es?|nodes?|vms?))?"
            ),
            rf"(?:aws\s+|gcp\s+|azure\s+)?{counted}s?\s*[x×*]\s*{whole_in('n')}",
            rf"(?:aws\s+|gcp\s+|azure\s+)?{counted}s?[\s,(]+{whole_in('n')}\s+(?:instances?|nodes?|vms?|machines?)",
        )
        rented += sets({"instance": always(node)}, rf"(?:aws\s+|gcp\s+|azure\s+)?{pattern}s?")
        rented += topic(
            Topic.FEWEST,
            rf"how\s+many\s+(?:aws\s+|gcp\s+|azure\s+)?{counted}s?(?:\s+(?:instances?|nodes?|vms?|machines?))?",
            fields={"instance": always(node)},
        )
    return (*named, *MACHINE, *rented, *MODEL, *LIMITS, *stated, *TUNING, *ASKED, *QUESTIONS)


# a release of a stack, and no amount: NeMo 2.0, megatron-core v0.12
_RELEASE = (
    r"(?:\s+(?:v\d+(?:\.\d+)*|\d+\.\d+(?:\.\d+)?)(?!\s*(?:[kmbt]n?|[kmbtgp]i?b|million|billion|trillion|tok(?:en)?s?|param\w*|x|%|\$"
    r"|s|ms|h|sec\w*|min\w*|hours?|days?|weeks?|months?|times|per)\b|[\d.]))?"
)
_SIZED = re.compile(r"(?P<series>.+)-(?P<size>(?:\d+x)?\d+(?:\.\d+)?[bmt])")


def _is_one_series(sized: re.Match[str]) -> bool:
    """Whether no later series of the name has a model of this size, as Llama 2 has of Llama."""
    begin, end = f"{sized['series']}-", f"-{sized['size']}"
    return not any(
        id.startswith(begin) and id.endswith(end) and len(id) > len(begin) + len(end) - 1
        for id in entries()
    )


def _spaced(name: str) -> str:
    """The pattern of a name that is written with spaces, dashes or neither."""
    return r"[\s_-]*".join(map(re.escape, re.split(r"-|(?<=[a-z])(?=\d)", name)))


def _of_stack(stack: Stack) -> str:
    """The pattern of a stack's names, the longest first."""
    names = sorted(stack.names, key=len, reverse=True)
    words = (r"[\s-]".join(re.escape(part) for part in name.split()) for name in names)
    return f"(?:{'|'.join(words)})"


def in_digits(text: str) -> str:
    """`text` with one to twelve, "a" before a scale or a time and "single" before a machine, in
    digits where they count something."""
    digits = {word: str(i) for i, word in enumerate(_NUMBERS, 1)} | {"dual": "2", "quad": "4"}
    text = re.sub(r"\brail[\s-]optimi[sz]ed\b", "rail-optimized", text, flags=re.IGNORECASE)
    text = re.sub(r"\bfat[\s-]trees?\b", "fat-tree", text, flags=re.IGNORECASE)
    text = _RECOMPUTE.sub(r"\1 \4 \2 \3 \4", text)
    text = _ONCE.sub("every 1 ", _ARROW.sub(r"\1 versus ", _FROM_CHIP.sub(r"\1 versus ", text)))
    text = _SPELT.sub(_in_digits, text)
    text = _A_TIME.sub(r"\1\g<2>1", text)
    text = _COUNT.sub(lambda match: digits.get(match[0].lower(), "1"), text)
    return said_of_each(in_dollars(text), bool(_WHICH.search(text)))


def scan(text: str) -> Notes:
    """What the rules make of a text; words that none of them uses are ignored, and so is what
    follows a negation or a bound that is part of no rule."""
    notes = _Scanner(in_digits(normalised(text))).read()
    ask_about(notes)
    return notes


_POWER = re.compile(r"(?:(?<=\d)\s*[x×*]\s*)?\b10\s?(?:\^|\*\*)\s?(\d{1,2})\b")
_DECIMAL_COMMA = re.compile(r"\d,\d{1,2}(?![\d,])")
_DECIMAL_POINT = re.compile(r"\d\.\d{1,2}(?![\d.])")
_POINTS_BETWEEN = re.compile(r"(?<![\w.,])([1-9]\d{0,2}(?:\.\d{3})+)(?![\d.,])")
_SPACES_BETWEEN = re.compile(
    r"(^|\b(?:on|of|mit|auf|sur|with|have|over|using)\s|@\s?)([1-9]\d{0,2}(?: \d{3})+)"
    r"(?=\s+[x×]?\s?[a-z]|\s?[x×]\s?)",
    re.IGNORECASE,
)


# those that are no ASCII; between digits they part thousands (`with_points`)
_SPACES = re.compile(r"(?<!\d)[^\S\n\t ]|[^\S\n\t ](?!\d{3})")
_JOINED = re.compile(
    r"\b((?:tp|pp|dp|cp|ep|vpp)\d+)(?=(?:(?:tp|pp|dp|cp|ep|vpp)\d+)+\b)", re.IGNORECASE
)
# what makes a number no other one: about 900, ~5 h
_NEARLY = re.compile(
    r"[~≈]\s*(?=[$€£]?\d)|(?<!how\s)(?<!what\s)\b(?:about|around|roughly|approximately|approx\.?|circa|ca\.)\s+(?=[$€£]?\d)",
    re.IGNORECASE,
)
_VS_EVERY = re.compile(r"\b(or|vs\.?|versus)\s+every\s+(?=\d)", re.IGNORECASE)
_EVERY_ONE = re.compile(
    r"\b((?:or|vs\.?|versus|checkpoint\w*|ckpts?|saves?|snapshots?)\s+every)(?=\s+(?:hour|day|minute)\b)",
    re.IGNORECASE,
)
# a count has no fraction: 10.000 H100
_WHOLE_WITH_POINT = re.compile(
    r"(?<![\w.,$€£])(\d{1,3})\.(000|\d{3})(?=\s*(?:[x×]\s*)?(?:[a-z]{1,3}\d{2,3}|gpus?\b|cards?\b|devices\b|nodes?\b))",
    re.IGNORECASE,
)
# a form that stands before its chip, or before the nodes of it: two PCIe nodes of 4 A100
_FORM_FIRST = re.compile(
    rf"\b(?P<form>PCI-?e|SXM\d?)\s+(?P<nodes>{GROUP}\s+(?:of|with|each\s+with)\s+\d+\s*[x×]?\s*|(?:versions?\s+of\s+(?:the\s+)?)?)"
    rf"(?P<chip>(?:{FAMILY})s?(?:\s+{MEMORY})?)(?![\w-]|\s+(?:PCI|SXM))",
    re.ASCII | re.IGNORECASE,
)
# two forms of one chip, which is named once: H100 SXM vs PCIe, SXM or H100 PCIe
_ONE_FORM = r"PCI-?e|SXM\d?|NVL"
_OR_FORM = (
    r"(?:\s+\w+){0,3}?\s+(?:or|vs\.?|versus|against|than|instead\s+of|worth\s+it\s+over)\s+"
    r"(?:the\s+|an?\s+)?"
)
_FORM_BEFORE = re.compile(
    rf"(?P<named>\b(?:{FAMILY})s?[\s-]+)?\b(?P<one>(?:{_ONE_FORM}){_OR_FORM})"
    rf"(?P<chip>{FAMILY})(?P<other>s?[\s-]+(?:{_ONE_FORM}))(?![\w-])",
    re.ASCII | re.IGNORECASE,
)
_SPOT_FIRST = re.compile(
    rf"\b(?P<spot>spot|pre-?emptible|interruptible)\s+(?P<chip>(?:{FAMILY})s?(?:\s+{MEMORY})?)(?![\w-])",
    re.ASCII | re.IGNORECASE,
)
_TWICE = re.compile(
    r"\btwice\s+(?=(?:an?|per|each|every)\s+(?:hour|day|week|month)\b)", re.IGNORECASE
)
_OFF_BEFORE = re.compile(
    r"(?<!\bwe\s)(?<!\bi\s)\b(?:(?:turn|switch)(?:ed|ing)?\s+off|disabl(?:e|ed|ing))\s+(?:the\s+)?"
    r"(?=(?:activation|gradient|recompute|recomputation|off-?load|compile|torch|fp8|tp|pp|pipeline|tensor)\b)",
    re.IGNORECASE,
)
_NO_APOSTROPHE = re.compile(
    r"\b(do|does|did|ca|wo|is|are|was|has|have|should|would|could|must)nt\b", re.IGNORECASE
)
# don't have NVLink, do not want more than ...
_LACKS = re.compile(
    r"\b(?:(?:(?:do|does|did)\s?(?:n['’]?t|not)|can(?:['’]?t|\s?not)|(?:must|may|should|will|shall)\s?(?:n['’]?t|not)|won['’]?t)"
    r"\s+(?:have|get|want(?!\s+to\b))|ha(?:ve|s)\s?(?:n['’]?t|not)\s+got|(?:have|has|there(?:['’]?s|\s+is|\s+are))\s+no)"
    r"\s+(?:(?:an?|any|the)\s+)?(?=[a-z])",
    re.IGNORECASE,
)
_RACK = re.compile(rf"\bnvlink[\s-]?({RACK.replace('nvl', '')})\b", re.IGNORECASE)
# a count before a dash, or before the abbreviation of numbers: 8-A100, 4 nos. of A100
_DASHED = re.compile(rf"(?<![\w.-])(\d{{1,5}})-(?=(?=[a-z])(?:{FAMILY})s?\b)", re.IGNORECASE)
_NOS = re.compile(r"(?<=\d)\s+nos\b\.?(?:\s+of)?(?=\s+[a-z\d])", re.IGNORECASE)
_TPU_OR = re.compile(
    r"(\bTPU[\s-]?v\d\w*\s+(?:or|vs\.?|versus|against|instead\s+of|than)\s+)(?=v\d[a-z]?\b)",
    re.IGNORECASE,
)
_WEEKEND = re.compile(r"\b(?:an?|the|one|1|this|next)\s+weekend\b", re.IGNORECASE)
_HALF = re.compile(
    r"\bhalf\s+an?\s+(year|month|week|day|quarter|trillion|billion|million)\b", re.IGNORECASE
)
_HALVES = {"year": "6 months"}
_CHOICE = r"\b(?:option|variant|plan|scenario|case|setup|offer|quote|vendor|cluster|bid)"
_FIRST_OPTION = re.compile(rf"{_CHOICE}\s+(?:a|1)\s*[:)]\s*", re.IGNORECASE)
_LETTERED = re.compile(
    r"(?<![\w(])\(?(?P<one>a|1|i)\)\s*(?P<first>[^()]*?)[\s;,.]*(?:\b(?:or|vs\.?)\s+)?(?<![\w(])\(?(?P<two>b|2|ii)\)\s*",
    re.IGNORECASE,
)
_PAIRS = {"a": "b", "1": "2", "i": "ii"}
_OPTION = re.compile(rf"[\s;,.]*{_CHOICE}\s+(?:b|2|c|3)\s*[:)]\s*", re.IGNORECASE)


def normalised(text: str) -> str:
    """`text` with its numbers as English writes them: 10^12, points between thousands where commas
    stand before decimals, spaces between thousands behind a preposition."""

    def power(match: re.Match[str]) -> str:
        behind_number = not match[0].startswith("10")
        return f"e{match[1]}" if behind_number else f"1e{match[1]}"

    text = _POWER.sub(power, in_english(_SPACES.sub(" ", text)))
    text = _WHOLE_WITH_POINT.sub(r"\1\2", _NEARLY.sub("", text))
    text = _VS_EVERY.sub(r"\1 ", _EVERY_ONE.sub(r"\1 1", text))
    text = _OFF_BEFORE.sub("no ", _RACK.sub(r"NVL\1", text))
    text = _NO_APOSTROPHE.sub(r"\1n't", text)
    text = _SPOT_FIRST.sub(r"\g<chip> \g<spot>", _TWICE.sub("2 times ", _LACKS.sub("no ", text)))
    text = _FORM_FIRST.sub(r"\g<nodes>\g<chip> \g<form>", text)
    text = _FORM_BEFORE.sub(
        lambda form: form[0] if form["named"] else f"{form['chip']} {form[0]}", text
    )
    text = _JOINED.sub(r"\1 ", text)
    text = _TPU_OR.sub(r"\1TPU ", text)
    text = _WEEKEND.sub("2 days", text)
    text = _OPTION.sub(r" or ", _FIRST_OPTION.sub("", text))
    text = _LETTERED.sub(_lettered, text)
    text = _DASHED.sub(r"\1 x ", _NOS.sub("", text))
    text = _HALF.sub(lambda half: _HALVES.get(half[1].lower(), f"0.5 {half[1]}"), text)
    text = _SPACES_BETWEEN.sub(lambda match: match[1] + match[2].replace(" ", ""), text)
    if _DECIMAL_COMMA.search(text) and not _DECIMAL_POINT.search(text):
        text = _POINTS_BETWEEN.sub(lambda match: match[1].replace(".", ""), text)
    return with_points(text)


def _lettered(match: re.Match[str]) -> str:
    """Options under letters or numbers, with an or between them: (a) 64 H100, (b) 32 B200."""
    if _PAIRS[match["one"].lower()] != match["two"].lower():
        return match[0]
    return f"{match['first']} or "


class _Scanner:
    """A place in a text, and what has been read up to it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.notes = Notes(text=text)
        self.place = 0
        self.unused_to: int | None = None  # where the last word that no rule reads ends
        self.comparing = bool(_WHICH.search(text))  # whether an and joins two values
        self.unit_to: int | None = None  # where the unit of an alternative ends
        self.turned: int | None = None  # start of a negation or bound whose object has not come
        self.beside: int | None = None  # end of an alternative: what follows may belong to it
        self.supposing = False  # whether a clause says what might be otherwise
        self.ended = 0  # where the last match ends
        self.listing = False  # whether it was one of several values of a list
        self.answered: list[tuple[int, int]] = []  # spans of questions and of alternatives

    def read(self) -> Notes:
        while self.place < len(self.text):
            gap = _GAP.match(self.text, self.place)
            if gap:
                self._skip(gap)
            elif not self._follow():
                self._word()
        if self.turned is not None:
            self._leave(self.text[self.turned :], TURNED)
        self.notes.settle_supposed()
        self.notes.settle_plans()
        self.notes.asking += asked_without_answer(self.text, self.answered)
        return self.notes

    def _skip(self, gap: re.Match[str]) -> None:
        """Over what stands between words; the end of a clause ends the reach of a negation."""
        if self.turned is not None and _CLAUSE.search(gap[0]):
            self._leave(self.text[self.turned : gap.start()], TURNED)
            self.turned = None
        if self.supposing and self.notes.supposed and _CLAUSE.search(gap[0]):
            self.supposing = False
        self.place = gap.end()

    def _follow(self) -> bool:
        """Do what the rule says that reads the most from here; False where none reads anything."""
        longest: re.Match[str] | None = None
        best: Rule | None = None
        for rule in rules():
            match = rule.pattern.match(self.text, self.place)
            if match and (longest is None or match.end() > longest.end()):
                longest = match
                best = rule
        if longest is None or best is None or longest.end() <= self.place:
            return False
        if self._weighs(best, longest):
            return False
        match_of_words = Match(longest)
        off = _OFF.match(self.text, longest.end())
        if off and self.turned is None and best.sets and all(map(_may_lack, best.sets)):
            self.notes.ignore(self._words(self.place, off.end()), NEGATED)
            self.place = off.end()
            return True
        either = len(self.notes.either)
        self.notes.place = self.place
        if self.turned is None:
            if self._is_supposed(best, match_of_words) or self._is_listed(
                best, match_of_words, longest.end()
            ):
                self.answered.append(longest.span())
            elif not self._belongs(best, match_of_words):
                self.notes.follow(best, match_of_words)
            if best.topic is Topic.CHANGED:
                of_words = "changed" not in self.notes.facts
                self.supposing = of_words or _NAMES_IT.match(self.text, longest.end()) is not None
        else:
            self._turn(best, match_of_words, longest.end())
        if best.topic is not None or len(self.notes.either) > either:
            self.answered.append(longest.span())
        on = _ON.match(self.text, longest.end()) if best.sets else None
        self.ended = self.place = on.end() if on else longest.end()
        return True

    def _is_listed(self, rule: Rule, match: Match, end: int) -> bool:
        """Whether a match is another value of the field that was read just before it, in a list
        that an and or an or ends: 8k, 32k and 128k. Several chips may be those of one machine."""
        between = self.text[self.ended : self.place]
        listed = _LISTED.match(self.text, end) if _COMMA.fullmatch(between) else None
        goes_on = listed or self.listing and _LAST.fullmatch(between)
        notes = self.notes
        if not goes_on or "accelerator" in rule.sets:
            self.listing = False
        elif notes.supposed and notes.supposed[-1].path in rule.sets:
            self.listing = notes.suppose(rule, match)
        else:
            of_last = notes.last in rule.sets
            self.listing = of_last and notes.alternative(rule, match, match.words)
        return self.listing

    def _weighs(self, rule: Rule, match: re.Match[str]) -> bool:
        """Whether an over sets another chip beside the one before it: do we save with B200 over 256
        H100, in place of more than 256."""
        facts = self.notes.facts
        two = "accelerator" in rule.sets and {"accelerator", "behind"} <= facts.keys()
        return two and match[0].lower().startswith("over ")

    def _is_supposed(self, rule: Rule, match: Match) -> bool:
        """Whether a match says what might be otherwise, or is one of several that are compared."""
        if rule.topic is not None or rule.asks:
            return False
        if self.supposing:
            return self.notes.suppose(rule, match)
        compares = self.comparing or self._compares_here(rule)
        return compares and self.notes.alternative(rule, match, match.words)

    def _compares_here(self, rule: Rule | None = None) -> bool:
        """Whether the sentence at this place asks which of two is the better, or of another value
        of what a sentence before it says: ... CP 8. Would CP 16 help?"""
        ends = _SENTENCE_END.finditer(self.text)
        first = max((end.end() for end in ends if end.end() <= self.place), default=0)
        end = _SENTENCE_END.search(self.text, self.place)
        sentence = self.text[first : end.end() if end else len(self.text)]
        if _BETTER.search(sentence):
            return _SUPPOSES.search(sentence) is not None
        paths = rule.sets if rule and sentence.endswith("?") else ()
        return any(self.notes.places.get(path, first) < first for path in paths)

    def _belongs(self, rule: Rule, match: Match) -> bool:
        """Whether a match behind an alternative, in the same clause, is another value of its own:
        512 H100 at $2 or 256 B200 at $3.5."""
        if self.beside is None:
            return False
        if _CLAUSE.search(self.text[self.beside : self.place]) or rule.topic is not None:
            self.beside = None
            return False
        if self.notes.goes_on(rule, match):
            return True
        return self.notes.alternative(rule, match, match.words)

    def _turn(self, rule: Rule, match: Match, end: int) -> None:
        """A match behind a negation, a bound or an or."""
        words = self._words(self.turned or 0, end)
        self.turned = None
        word = words.split()[0].lower()
        joins = word in _JOINS
        joined = self._joins(word)
        since = max(
            (clause.end() for clause in _CLAUSE.finditer(self.text, 0, self.place)), default=0
        )
        if joined and (
            self.notes.begin_plan(rule, match, words, since)
            or self.notes.alternative(rule, match, words)
        ):
            self.beside = end
            return
        if joins or self.supposing and word in ("instead", "rather"):
            self.notes.follow(rule, match)
            return
        if joined and self.supposing and self.notes.supposed and self.notes.suppose(rule, match):
            return
        if rule.topic is not None or word == "over" and _SPREAD & rule.sets.keys():
            self.notes.follow(rule, match)
        elif word in _NOT and (rule.asks or not rule.sets or all(map(_may_lack, rule.sets))):
            self.notes.ignore(words, NEGATED)
        else:
            self.notes.ask(words, TURNED)

    def _joins(self, word: str) -> bool:
        """Whether a word that turns what follows joins two values here: what is worth it over
        something, and what stands instead of something in a question, is compared."""
        if word == "over":
            return "behind" in self.notes.facts
        if word in ("instead", "rather"):
            return "?" in self.text or self._compares_here()
        return word in _OR_WORDS or word in _JOINS

    def _word(self) -> None:
        """A word that no rule reads: it turns what follows, means nothing here, or is ignored."""
        match = _WORD.match(self.text, self.place)
        word = _PARTED.split(match[0], maxsplit=1)[0].rstrip(":.") if match else ""
        word = word or self.text[self.place]
        end = self.place + len(word)
        bare = word.strip(".:'’/-–—").lower()
        if self.turned is not None and self._joins(self.text[self.turned :].split()[0].lower()):
            if self.notes.other_word(bare, self._words(self.turned, end)):
                self.answered.append((self.place, end))
                self.turned = None
                self.place = end
                return
        self.comparing |= bare in _COMPARES
        asks = bare.endswith("n't") and _SUBJECT.match(self.text, end)  # can't we ...?
        if bare in turning() and not asks or self.comparing and bare in _JOINS:
            if self.turned is None:
                self.turned = self.place
        elif not asks and not _idle(bare):
            self._unused(word, bare, end)
        self.place = max(end, self.unit_to or 0)

    def _unused(self, word: str, bare: str, end: int) -> None:
        """A word that no rule reads and that is not idle."""
        if self.turned is None:
            joins = (
                self.unused_to is not None and not self.text[self.unused_to : self.place].strip()
            )
            last = self.notes.ignored[-1] if joins else None
            if last is not None:
                self.notes.ignored[-1] = Read(
                    f"{last.words} {word.rstrip('.:,;')}", "", None, UNUSED
                )
            else:
                self.notes.ignored.append(Read(word.rstrip(".:,;"), "", None, UNUSED))
            self.unused_to = end
            return
        words = self._words(self.turned, end)
        self.turned = None
        number = _WHOLE.fullmatch(bare)
        turned_by = words.split()[0].lower()
        if number and (turned_by in _OR_WORDS or turned_by == "instead" and "?" in self.text):
            unit = _UNIT.match(self.text, end)
            said = "k" if bare.endswith("k") else unit[1].lower() if unit else ""
            if self.notes.other_number(float(bare.removesuffix("k")), words, said):
                self.answered.append((self.place, end))
                self.unit_to = unit.end() if unit and unit[1].lower() in SECONDS else None
                return
        self._leave(words, TURNED)

    def _words(self, start: int, end: int) -> str:
        return " ".join(self.text[start:end].split()).rstrip(".:,;")

    def _leave(self, words: str, why: str) -> None:
        """Words that are ignored."""
        self.notes.ignore(" ".join(words.split()).rstrip(".:,;"), why)


_COMMA = re.compile(r"\s*[,/]\s*")
_LAST = re.compile(r"\s*,?\s*(?:and\s+)?")
_LISTED = re.compile(r"(?:\s*,\s*[\w.%-]+){0,3}\s*,?\s+(?:and|or|vs\.?|versus)\s", re.IGNORECASE)
_NAMES_IT = re.compile(r"\s*[(,]\s*(?:to\s+|i\.?e\.?\s+|at\s+)?\d")  # twice as fast (800G)
_SPREAD = {"cluster.sites", "nodes", "racks"}  # over these a run is spread
_OR_WORDS = ("or", "vs", "vs.", "versus", "against", "than")
_COMPARES = (
    "sweep",
    "vary",
    "compare",
    "comparing",
    "comparison",
    "swap",
    "swapping",
    "replace",
    "replacing",
    "switch",
    "switching",
    "upgrade",
    "upgrading",
    "migrate",
    "migrating",
    "moving",
    "going",
)
# a line that asks which is the better compares whatever an and joins
_WHICH = re.compile(
    r"\bwhich\b[^?.]*\b(?:better|faster|cheaper|suit\w*|best|prefer\w*|choose|pick)\b"
    r"|\b(?:compar(?:e|ing)|(?:choos|decid|pick|select)\w* between|weigh\w*)\b"
    r"|\b(?:options|offers|quotes)\s*:",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[?!;\n]|\.(?=\s|$)")
# a sentence asks or supposes, and weighs one thing against another
_SUPPOSES = re.compile(
    r"\?|\b(?:would|will|does|do|should|shall|could|can|is|are)\s+(?:it|this|that|we|i|the|an?)\b|\b(?:what\s+(?:if|happens|would)|how\s+much"
    r"|whether|worth|any\s+(?:point|gain|benefit))\b",
    re.IGNORECASE,
)
_BETTER = re.compile(
    r"\b(?:better|worse|faster|slower|quicker|cheaper|dearer|more\s+(?:expensive|efficient)|replac(?:e|ed|es|ing)|swap\w*|switch(?:ing|ed)?"
    r"|as\s+(?:slow|fast|cheap|expensive|good)|match(?:es)?|equals?|equivalent|do\s+the\s+(?:job|work)\s+of|keep\s+up\s+with|(?:up|down)grad(?:e|ed|ing)|worth|outperforms?|beats?|hurts?|pays?\s+off|compared|than|instead|rather)\b",
    re.IGNORECASE,
)
_SUBJECT = re.compile(r"\s+(?:i|we|it|this|that|there|you|they)\b", re.IGNORECASE)
_JOINS = ("and", "to", "with", "by", "for")  # two values, where they are compared
_NOT = (
    "no",
    "not",
    "never",
    "none",
    "without",
    "don't",
    "won't",
    "isn't",
    "can't",
    "cannot",
    "avoid",
    "exclude",
    "nor",
)
_WHOLE = re.compile(r"\d+k?")
_UNIT = re.compile(r"\s?([a-z]+)\b", re.IGNORECASE)
# behind a setting: it is wanted, or it is not
_ON = re.compile(r"\s*[:=]?\s*(?:is\s+|turned\s+|switched\s+)?(?:enabled|true)\b", re.IGNORECASE)
_OFF = re.compile(
    r"\s*[:=]?\s*(?:is\s+|turned\s+|switched\s+)?(?:off|disabled|false)\b", re.IGNORECASE
)


def _may_lack(path: str) -> bool:
    """Whether a design that leaves this out is what a negation asks for."""
    return path.startswith(
        (
            "plan.",
            "job.precision",
            "job.optimizer",
            "stack",
            "job.from_checkpoint",
            "job.method",
            "job.adapter.",
            "job.rollout.",
        )
    )


def _idle(bare: str) -> bool:
    """Whether a word, or each part of a compound, sets nothing."""
    return is_idle(bare) or all(is_idle(part) for part in _COMPOUND.split(bare) if part)
