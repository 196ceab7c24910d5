"""What the words of a question come to: measured speeds, what may be worth it, what stays open."""

import re

from scantling import catalogue
from scantling.base.units import TERA
from scantling.catalogue.words import Method

from .line import Question
from .machine import devices_of_node
from .notes import AS_PLANNED, WITHOUT, Asked, Either, Notes
from .question_commands import OF_TUNING
from .topics import Topic

LONGEST_QUOTE = 80  # characters of words that are asked about
_NO_QUESTION = "no rule reads this question: what do you want to know?"
_COMMANDS = (
    "days, dollars, fit: design",
    "how many devices, how large a model, what is cheaper: answer",
    "one or the other: sweep",
    "failures, saves, spares: goodput",
    "which plan: search",
    "why it is slow: diagnose",
)
_RUNS = re.compile(
    r"\b(?:why|slow|slower|currently|right now|(?:we|i)(?:'re|'m| are| am)?(?: only)?"
    r" (?:get|getting|see|seeing|saw|got|reach|measure|hit|have|run|at)|(?:my|our)"
    r" (?:run|job|training|mfu)|observed|observe|measured|achieved|achieving|attained|running at"
    r"|stuck|sits|hovers|stays|plateaus|lands|improve|normal|at the moment|diagnose|seeing"
    r"|getting|happy|worried)\b",
    re.IGNORECASE,
)


# a run that would be
_PLANS = re.compile(
    r"\b(?:would|assum\w+|suppos\w+|(?:we|i)['’]d like|(?:we|i) want|plan(?:ning|ned)?"
    r"|how (?:long|many (?:days|gpus|nodes|[a-z]+\d+s?)) (?:for|to|would|will|do we need|until)"
    r"|days and dollars|what will it cost"
    r"|(?:will|can|could|would)\s[^.?!]{0,40}?\b(?:reach|hit|achieve|make))\b",
    re.IGNORECASE,
)


def read_measured(notes: Notes, text: str) -> None:
    """An MFU is asked for, or was measured: a bound or a wish beside it says the one, words of a
    run that goes on the other; where neither does it is asked about."""
    mfu = notes.facts.get("mfu")
    if mfu is None:
        return
    words = notes.words["mfu"]
    if notes.facts.get("mfu_wished"):
        notes.set("constraints.min_mfu", mfu, words)
    elif notes.facts.get("mfu_seen") or _is_slow(notes) or _RUNS.search(text):
        notes.set("measured.mfu", mfu, words, "of a run that goes on")
    elif _PLANS.search(text) or _SOUGHT & {asked.topic for asked in notes.questions}:
        why = "of a run that is not begun"
        notes.set("constraints.min_mfu", mfu, words, why)
        notes.assume("constraints.min_mfu", mfu, why)
    else:
        choices = (f"constraints.min_mfu: {mfu:g}", f"measured.mfu: {mfu:g}")
        notes.ask(words, "is this MFU asked for, or was it measured?", choices)
    for path in _MFUS & notes.fields.keys() if "tflops_alone" in notes.facts else ():
        notes.assume(path, mfu, "TFLOP/s without more are those of a device, as trainers log them")


_MFUS = {"measured.mfu", "constraints.min_mfu"}

# what only a run that is not begun has open
_SOUGHT = {Topic.FEWEST, Topic.LARGEST, Topic.COMPUTE_OPTIMAL, Topic.CHEAPEST, Topic.CHIP}


def _is_slow(notes: Notes) -> bool:
    """Whether a line asks why a run is slow."""
    return any(asked.topic is Topic.SLOW for asked in notes.questions)


MOST_CREDIBLE = 0.9  # of a chip's peak: what is above is the peak itself


def read_rates(notes: Notes, text: str) -> None:
    """Rates of a run that follow from others: tokens of all devices, and FLOP of one over the dense
    peak of its format."""
    facts, fields, words = notes.facts, notes.fields, notes.words
    devices, chip = fields.get("cluster.devices"), fields.get("cluster.accelerator")
    of_all = devices, "on how many devices (cluster.devices)?"
    of_node = devices_of_node(notes), "how many devices does a node hold?"
    for fact, (count, question) in (("tokens_per_s", of_all), ("tokens_per_s_node", of_node)):
        if fact not in facts:
            continue
        if count is None:
            notes.ask(words[fact], question)
        else:
            rate = float(f"{facts[fact] / count:.12g}")
            path = "measured.tokens_per_s_per_device"
            notes.set(path, rate, words[fact], f"over {count:,} devices")
    if "tflops" not in facts:
        return
    if chip is None or notes.as_given & {"cluster.accelerator"}:
        notes.ask(words["tflops"], "of which accelerator (cluster.accelerator)?")
        return
    row = catalogue.accelerator(chip)
    formats = row.precisions()
    stated = fields.get("job.precision")
    precision = stated if stated in formats else "bf16" if "bf16" in formats else "fp16"
    share = float(f"{facts['tflops'] * TERA / row.peak_flops(precision):.4g}")
    if share > MOST_CREDIBLE:
        notes.ask(words["tflops"], "more than a run reaches: is it the chip's peak?")
    else:
        facts["mfu"] = share
        words["mfu"] = words["tflops"]


_NOT_BESIDE = "compared with what? `scantling sweep` sets values beside each other"
_SENTENCE = re.compile(r"[?!;]|\.(?=\s|$)")


def read_worth(notes: Notes) -> None:
    """Whether something is worth it is seen in a run with it and in one without: of a setting
    against what a plan has without it, of a chip in a rack against the same one in a node, of
    another chip against all others. Beside words that no question begins nothing is asked."""
    asked = next((q for q in notes.questions if q.topic is Topic.WORTH), None)
    if asked is None or notes.either:
        return
    ends = [0, *(end.start() for end in _SENTENCE.finditer(notes.text)), len(notes.text)]
    last = next(end for end in ends if end > asked.place)
    first = max(end for end in ends if end <= asked.place)
    behind = notes.facts["behind"]
    openers = list(_OPENER.finditer(notes.text, first, asked.place))
    if not (openers or behind or "worth" in asked.words.lower()):
        return
    if any(q.topic is Topic.SPARES and first <= q.place < last for q in notes.questions):
        return  # what more frequent checkpoints are worth
    begin = openers[-1].end() if openers else first
    span = (asked.place, last) if behind else (begin, asked.place)
    place = _tried(notes, *span)
    words = " ".join(notes.text[asked.place if behind else begin : last].split())[:LONGEST_QUOTE]
    path = _PATHS.get(place, place)
    value = notes.fields.get(path)
    other = _in_a_node(str(value)) if path == _CHIP else WITHOUT.get(path)
    places = notes.places.items()
    if value is not None and other is not None and other != value:
        notes.either.append(Either(path, other, asked.words))
    elif path == _CHIP:
        notes.questions.append(Asked(Topic.CHIP, asked.words))
    elif any(p.startswith(_OF_FAILURES) and span[0] <= at < span[1] for p, at in places):
        notes.questions.append(Asked(Topic.SPARES, asked.words))
    else:
        notes.ask(words, _NOT_BESIDE)


_CHIP = "cluster.accelerator"
# goodput says what they cost
_OF_FAILURES = ("reliability.", "checkpoint.", "mtbf_s", "constraints.max_checkpoint")
_PATHS = {"accelerator": _CHIP}  # the field that a fact is worked out to
_OPENER = re.compile(
    r"(?:^|(?<=[.?!,:;-]))\s*(?:(?:and|but|so|also)\s+)?"
    r"(?:does|do|did|would|will|could|can|is|are|should|might|may|how|what)\b",
    re.IGNORECASE,
)
_SUBJECT = re.compile(r"\s+(?:(?:an?|the)\s+)?", re.IGNORECASE)  # is the H200 ...


def _tried(notes: Notes, first: int, last: int) -> str:
    """The setting that a piece of text tries: the first that it names; a chip where it is what the
    question begins with. Empty where there is none."""
    chip = notes.places.get("accelerator", -1)
    if first <= chip < last and _SUBJECT.fullmatch(notes.text[first:chip]):
        return "accelerator"
    places = {path: notes.places.get(path, -1) for path in WITHOUT if path in notes.fields}
    inside = [path for path, place in places.items() if first <= place < last]
    return min(inside, key=lambda path: places[path], default="")


def _in_a_node(id: str) -> str | None:
    """The chip of the same die in a node, of one in a rack."""
    rows = catalogue.accelerators()
    if id not in rows or rows[id].scale_up_domain <= catalogue.devices_per_node(id):
        return None
    smaller = (row for row in rows.values() if row.scale_up_domain < rows[id].scale_up_domain)
    return next((row.id for row in smaller if row.die and row.die == rows[id].die), None)


_OF_OPERATIONS = "of which model and tokens (model.size, job.tokens)? Laws alone choose both"
_BY_LAWS = {Topic.SCALING, Topic.COMPUTE_OPTIMAL, Topic.LARGEST}


def ask_about_questions(notes: Notes) -> None:
    """A question that no rule reads is asked about: the assessment would answer another. Whether a
    plan can be carried out is what the assessment says. Of operations alone only the laws answer
    something."""
    others = {asked.topic for asked in notes.questions} - _BY_LAWS
    if "flops" in notes.facts and others:
        notes.ask(notes.words["flops"], _OF_OPERATIONS, ("model.size", "job.tokens"))
    for asking in notes.asking:
        if asking.feasible:
            notes.questions.append(Asked(Topic.DESIGN, asking.words))
        elif not notes.either:
            notes.ask(asking.words[:LONGEST_QUOTE], _NO_QUESTION, _COMMANDS)
    if not notes.asking and not notes.either:
        _slow_unmeasured(notes)


_WHY_SLOW = re.compile(
    r"why|low|poor|reproduce|bottleneck|improve|optimi[sz]e|speed", re.IGNORECASE
)
_WISHED = re.compile(
    r"\b(?:needs?|wants?|target|at least|goal|require\w*|minimum|hope|aim)\b", re.IGNORECASE
)
_HOW_FAST = "how fast does it run (one of the fields of measured)?"
_FIGURES = ("measured.mfu", "measured.step_s", "measured.tokens_per_s_per_device")


def _slow_unmeasured(notes: Notes) -> None:
    """Why a run is slow can only be said of one whose speed is stated."""
    topics = {asked.topic: asked.words for asked in notes.questions}
    measured = any(path.startswith("measured.") for path in notes.fields)
    path = "measured.tokens_per_s_per_device"
    if path in notes.fields and _WISHED.search(notes.text) and not _RUNS.search(notes.text):
        notes.leave_open(path, "is this speed asked for, or was it measured?", (path,))
    if not measured and topics.keys() == {Topic.SLOW} and _WHY_SLOW.search(topics[Topic.SLOW]):
        notes.ask(topics[Topic.SLOW], _HOW_FAST, _FIGURES)


def ask_about_tuning(notes: Notes, question: Question | None) -> None:
    """Of a run that tunes a model not everything is answered: another question is asked about."""
    method = notes.fields.get("job.method", Method.PRETRAIN)
    if question is None or method == Method.PRETRAIN or question.topic in OF_TUNING:
        return
    if question.topic is Topic.SLOW and question.words in {u.words for u in notes.unread}:
        return
    why = f"{question.topic}: not answered for {method}; what else do you want to know?"
    choices = ("days, dollars, fit: design", "which layout: search", "one or the other: sweep")
    notes.ask(question.words, why, choices)


def ask_about_comparisons(notes: Notes) -> None:
    """What stands beside a value that is not planned is asked about."""
    for either in list(notes.either):
        beside = notes.fields.keys() | WITHOUT.keys() | set(AS_PLANNED)
        if either.path not in beside:
            notes.either.remove(either)
            notes.ask(either.words, _NOT_BESIDE)
