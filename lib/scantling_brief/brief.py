"""From a line of text to the fields of a design: what was read, from which words, and what those
words were taken to mean."""

import re
from collections.abc import Mapping
from functools import partial
from math import ceil, prod
from typing import Any

from scantling import catalogue
from scantling.base.errors import DesignError, plain
from scantling.base.records import Lines
from scantling.base.typed import currency
from scantling.base.units import DAY_S, GB, GBIT, HOUR_S, TERA
from scantling.catalogue.models.entries import entry
from scantling.catalogue.models.shape import parameters
from scantling.catalogue.words import ADAPTED, POLICIES, ROLLOUT_ENGINES, Axis, Method
from scantling.endure.failures import rate_of_mtbf

from .decisive import (
    NO_CHIP,
    NO_MODEL,
    ask_about_rest,
    has_size,
    named_so,
    near_chips,
    near_models,
    near_models_of,
)
from .fragments import ACCELERATOR, DEVICE_NOUN, GROUP
from .grammar import scan
from .line import Question, Reading
from .machine import choose_accelerator, choose_fabric
from .notes import AS_PLANNED, FACTS, WITHOUT, Asked, Clash, Either, Notes
from .question_commands import OF_TUNING, question_of
from .readers import MOST_IN_A_NODE, Chip, in_thousands
from .topics import Topic

_wrong = partial(DesignError, "text")
_EXAMPLE = "such as 175B MoE, 1024x A100 80GB, 1T tokens in 30 days"
LONGEST = 10_000
AMOUNTS = ("examples", "example_tokens", "epochs", "tokens_per_param")
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
CHINCHILLA_TOKENS = 20.0  # of a parameter
FEWEST_PARAMETERS = 1e6  # that are active: fewer are experts
SHORTEST_RUN_DAYS = 1 / 48  # half an hour: less is a step's, a save's, a restart's
_OF_WHAT = "days of the run, or how long the machine is kept?"
OWNED = (
    "the machine is owned and what it cost is not said: dollars are those of renting it; with "
    "prices.owned.capex_usd they are its share of that price, with energy on top"
)
_IN_DOLLARS = "in which currency? dollars are planned with (prices.owned.capex_usd)"
LONGEST_RUN_DAYS = 366.0  # above a year a span is that of a lease, or of a machine that is owned
DEAREST_DEVICE = 20.0  # [USD/h]: above all offers of the catalogue for one device
MOST_OF_EACH = 32  # sequences of a device's batch, as trainers are set
SHORTEST = 64  # tokens of a sequence: fewer are sequences
MOST_TOGETHER = 144  # devices of a node or a rack, of all that are announced
LONGEST_ALONE = 2**16  # tokens that nobody trains a model on: those of a sequence
FEWEST_TOKENS = 1e6  # of a run: fewer are those of a sequence


def read_brief(text: str) -> Reading:
    """The plan that `text` states, such as "175B MoE, 96 layers, 1024x A100 80GB, 200Gb/s IB, 1T
    tokens in 30 days", and what it asks.

    Words that look as if they decided something and that no rule reads are `unread`: they have to
    be answered before anything is worked out. A name that no catalogue knows stands in its field as
    it was given. Other words that no rule reads are listed as ignored. K, M, B, T scale numbers (K
    after a power of two is 1,024 for sequence lengths and devices), Gb/s are bits and GB/s bytes, a
    month has 30 days.
    Raises DesignError for two values of one thing, for a line that holds nothing of a design, and
    for what is no text: nothing, control characters, more than LONGEST characters.
    """
    _check(text)
    notes = scan(text)
    _clashes(notes)
    _holds_something(notes)
    _engine(notes)
    _kind_of_method(notes)
    _rank(notes)
    _samples(notes)
    _model(notes)
    _machine(notes)
    _rates(notes, text)
    _measured(notes, text)
    _batch(notes)
    _offload(notes)
    _trillions(notes)
    _tokens(notes)
    _small_budget(notes)
    _owned(notes)
    _worth(notes)
    _questions_unread(notes)
    _compared_alone(notes)
    question = question_of(notes)
    _of_tuning(notes, question)
    ask_about_rest(notes)
    _clashes(notes)
    facts = notes.facts
    return Reading(
        fields=notes.fields,
        read=tuple(notes.read),
        ignored=tuple(notes.ignored),
        assumed=tuple(notes.assumed),
        amounts={name: facts[name] for name in AMOUNTS if name in facts},
        unread=tuple(notes.unread),
        open=frozenset(notes.as_given),
        question=question,
    )


def _clashes(notes: Notes) -> None:
    """Two values of one thing are refused; beside words that are asked about, they are too, and
    neither is set."""
    for clash in notes.clashes:
        if not notes.unread:
            raise _contradiction(clash)
        notes.ask(clash.words, f"{clash.path} is given twice: which holds?")
        if clash.path in notes.fields:
            _take_back(notes, clash.path)
    notes.clashes.clear()


def _holds_something(notes: Notes) -> None:
    """Raises DesignError for a line without anything of a design."""
    if not notes.fields and not notes.facts.keys() - {"behind"}:
        raise _wrong(
            allowed="a model, a machine or a job, " + _EXAMPLE, problem="holds nothing of a design"
        )


def _engine(notes: Notes) -> None:
    """An engine of serving beside a policy's training is the engine of its rollouts."""
    if notes.fields.get("job.method") not in (Method.GRPO, Method.PPO):
        return
    for asked in [u for u in notes.unread if u.words.lower() in ROLLOUT_ENGINES]:
        notes.unread.remove(asked)
        notes.set("job.rollout.engine", asked.words.lower(), asked.words, "samples come from it")


_KINDS = re.compile(
    r"(?:rlhf|rl|rlvr|rlaif|verl|openrlhf|trl"
    r"|reinforcement learning|preference \w+|policy \w+)(?: \w+)?",
    re.IGNORECASE,
)


def _kind_of_method(notes: Notes) -> None:
    """The kind of a policy's training beside its method, as in RLHF with PPO, says nothing more."""
    method = notes.fields.get("job.method")
    if method not in (Method.GRPO, Method.PPO, Method.DPO):
        return
    for asked in [u for u in notes.unread if _KINDS.fullmatch(u.words)]:
        notes.unread.remove(asked)
        notes.note(asked.words, why=f"{method} is one of these")


def _rank(notes: Notes) -> None:
    """The rank of adapters, where it is said apart from them; else it is asked about."""
    rank = notes.facts.get("adapter_rank")
    if rank is None:
        return
    words = notes.words["adapter_rank"]
    of_adapters = notes.fields.get("job.method") in ADAPTED
    if of_adapters or "job.adapter.base_bits" in notes.fields:
        notes.set("job.adapter.rank", rank, words)
    else:
        notes.ask(words, "a rank of adapters, or of the launch?", ("job.adapter.rank",))


_OF_A_LENGTH = (
    "their mean length (job.rollout.mean_response), or the longest (job.rollout.max_response)?"
)
_OF_A_SEQUENCE = re.compile(r"seq|context|ctx|length|pack|document|block", re.IGNORECASE)


def _of_responses(notes: Notes) -> None:
    """Thousands alone, beside a policy, are a length of responses or of sequences: asked about."""
    path = "job.seq_len"
    if path not in notes.fields or notes.fields.get("job.method") not in POLICIES:
        return
    words = notes.words[path]
    if _OF_A_SEQUENCE.search(words):
        return
    choices = ("job.rollout.mean_response", "job.rollout.max_response", path)
    _leave_open(notes, path, _OF_A_LENGTH, choices)


_OF_A_STEP = "prompts of a step (job.rollout.prompts), or of the whole data set?"
_OF_A_PROMPT = "samples of a prompt (job.rollout.samples)?"
# four times the most of a published step (DAPO, arXiv 2503.14476); above, it may be the data set's
_MOST_PROMPTS = 2048
_ONE_STEP = re.compile(r"step|batch|update|iteration", re.IGNORECASE)


def _prompts(notes: Notes) -> None:
    """More prompts than any published step has are asked about, unless they are said to be one
    step's."""
    path = "job.rollout.prompts"
    if notes.fields.get(path, 0) > _MOST_PROMPTS and not _ONE_STEP.search(notes.words[path]):
        _leave_open(notes, path, _OF_A_STEP, (path,))


def _samples(notes: Notes) -> None:
    """Samples of a fine-tune stand in its data, where its length and passes are too; of a policy
    they are asked about; the n of a policy is its samples of a prompt."""
    facts, fields, words = notes.facts, notes.fields, notes.words
    method = fields.get("job.method")
    _of_responses(notes)
    _prompts(notes)
    if "tokens_each" in facts:
        if method in POLICIES:
            notes.set("job.rollout.mean_response", facts["tokens_each"], words["tokens_each"])
        elif "examples" in facts:
            facts["example_tokens"] = facts["tokens_each"]
            words["example_tokens"] = words["tokens_each"]
        else:
            notes.set("job.seq_len", facts["tokens_each"], words["tokens_each"])
    if "group" in facts:
        if method in POLICIES:
            notes.set("job.rollout.samples", facts["group"], words["group"])
        else:
            notes.ask(words["group"], _OF_A_PROMPT, ("job.rollout.samples",))
    if method in POLICIES and "examples" in facts:
        notes.ask(words["examples"], _OF_A_STEP, ("job.rollout.prompts",))
    if method not in POLICIES and method not in (None, Method.PRETRAIN):
        for fact, name in _DATA.items():
            if fact in facts:
                notes.set(f"job.data.{name}", float(facts.pop(fact)), words[fact])
    if "example_tokens" in facts and "examples" not in facts:
        notes.set("job.document_tokens", facts["example_tokens"], words["example_tokens"])


_DATA = {"examples": "samples", "example_tokens": "mean_tokens", "epochs": "epochs"}


_RUNS = re.compile(
    r"\b(?:why|slow|slower|currently|right now|(?:we|i)(?:'re|'m| are| am)?(?: only)?"
    r" (?:get|getting|see|seeing|saw|got|reach|measure|hit|have|run|at)|(?:my|our)"
    r" (?:run|job|training|mfu)|observed|observe|measured|achieved|achieving|attained|running at"
    r"|stuck|sits|hovers|stays|plateaus|lands|improve|normal|at the moment|diagnose|seeing"
    r"|getting|happy|worried)\b",
    re.IGNORECASE,
)


def _measured(notes: Notes, text: str) -> None:
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
    else:
        choices = (f"constraints.min_mfu: {mfu:g}", f"measured.mfu: {mfu:g}")
        notes.ask(words, "is this MFU asked for, or was it measured?", choices)


def _is_slow(notes: Notes) -> bool:
    """Whether a line asks why a run is slow."""
    return any(asked.topic is Topic.SLOW for asked in notes.questions)


MOST_CREDIBLE = 0.9  # of a chip's peak: what is above is the peak itself


def _rates(notes: Notes, text: str) -> None:
    """Rates of a run that follow from others: tokens of all devices, and FLOP of one over the dense
    peak of its format."""
    facts, fields, words = notes.facts, notes.fields, notes.words
    devices, chip = fields.get("cluster.devices"), fields.get("cluster.accelerator")
    of_all = devices, "on how many devices (cluster.devices)?"
    of_node = _per_node(notes), "how many devices does a node hold?"
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


def _worth(notes: Notes) -> None:
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
_OF_FAILURES = ("reliability.", "checkpoint.", "mtbf_s")  # goodput says what they cost
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


def _questions_unread(notes: Notes) -> None:
    """A question that no rule reads is asked about: the assessment would answer another. Whether a
    plan can be carried out is what the assessment says."""
    for asking in notes.asking:
        if asking.feasible:
            notes.questions.append(Asked(Topic.DESIGN, asking.words))
        elif not notes.either:
            notes.ask(asking.words[:LONGEST_QUOTE], _NO_QUESTION, _COMMANDS)
    if not notes.asking and not notes.either:
        _slow_unmeasured(notes)


_WHY_SLOW = re.compile(r"why|slow|bottleneck|improve|optimi[sz]e|speed", re.IGNORECASE)
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
        _leave_open(notes, path, "is this speed asked for, or was it measured?", (path,))
    if not measured and topics.keys() == {Topic.SLOW} and _WHY_SLOW.search(topics[Topic.SLOW]):
        notes.ask(topics[Topic.SLOW], _HOW_FAST, _FIGURES)


def _of_tuning(notes: Notes, question: Question | None) -> None:
    """Of a run that tunes a model not everything is answered: another question is asked about."""
    method = notes.fields.get("job.method", Method.PRETRAIN)
    if question is None or method == Method.PRETRAIN or question.topic in OF_TUNING:
        return
    if question.topic is Topic.SLOW and question.words in {u.words for u in notes.unread}:
        return
    why = f"{question.topic}: not answered for {method}; what else do you want to know?"
    choices = ("days, dollars, fit: design", "which layout: search", "one or the other: sweep")
    notes.ask(question.words, why, choices)


def _tokens(notes: Notes) -> None:
    """Tokens of several epochs; no tokens for a model that nobody names; a count too small for a
    run is asked about."""
    facts = notes.facts
    fields = notes.fields
    each = facts.get("tokens_of_epoch")
    if each is not None:
        words = notes.words["tokens_of_epoch"]
        notes.set("job.tokens", each * facts["epochs"], words, "each epoch passes all tokens")
    elif "epochs" in facts and "examples" not in facts and facts["epochs"] != 1:
        notes.ask(notes.words["epochs"], "of how many tokens is an epoch (job.tokens has all)?")
    if "steps" in facts:
        _steps(notes, facts["steps"])
    sized = any(path.partition(".")[0] == "model" for path in fields)
    if "tokens_per_param" in facts and not sized:
        del facts["tokens_per_param"]
        notes.questions.append(Asked(Topic.COMPUTE_OPTIMAL, notes.words["tokens_per_param"]))
    days = fields.get("constraints.deadline_days")
    if days is not None and days < SHORTEST_RUN_DAYS:
        path = "constraints.deadline_days"
        _leave_open(notes, path, "a time of the run, or of something else?", (path,))
    elif days is not None and days > LONGEST_RUN_DAYS and "prices.owned.capex_usd" in fields:
        _take_back(notes, "constraints.deadline_days")
        words = notes.words["constraints.deadline_days"]
        notes.set("prices.owned.years", days / 365, words, "written off over")
    elif days is not None and days > LONGEST_RUN_DAYS:
        _leave_open(notes, "constraints.deadline_days", _OF_WHAT)
    if "alike" in facts:
        _alike(notes, str(facts["alike"]))
    in_sequences = "tokens of a sequence (job.seq_len), or sequences (plan.micro_batch)?"
    _ask_if_below(notes, "job.seq_len", SHORTEST, in_sequences)
    tokens = fields.get("job.tokens", FEWEST_TOKENS)
    if SHORTEST <= tokens <= LONGEST_ALONE and "job.seq_len" not in fields:
        words = notes.words["job.tokens"]
        _take_back(notes, "job.tokens")
        thousands = re.match(r"(\d+)\s?k", words, re.IGNORECASE)
        if thousands:
            tokens = in_thousands(int(thousands[1]))
        notes.set("job.seq_len", int(tokens), words, "too few for a run: those of a sequence")
    of_a_sequence = "tokens of the run (job.tokens), or of a sequence (job.seq_len)?"
    _ask_if_below(notes, "job.tokens", FEWEST_TOKENS, of_a_sequence)


_NO_NETWORK = "no network of the catalogue has this rate: which one is compared?"
_THAT_MODEL = "nothing else says the model: it is this one"
_ITS_SHAPE = re.compile(r"arch|shape", re.IGNORECASE)


def _alike(notes: Notes, kind: str) -> None:
    """A kind of model beside a size says nothing more; alone, the architecture of one of the
    catalogue is that one, and what is like one with a number is asked about."""
    words = notes.words["alike"]
    if _is_sized(notes.fields):
        notes.note(words, why="a kind of model, beside its size")
    elif (id := named_so(kind)) and _ITS_SHAPE.search(words):
        notes.set("model", id, words, _THAT_MODEL)
        notes.assume("model", id, _THAT_MODEL)
    elif re.search(r"\d", kind):
        notes.ask(words, NO_MODEL, near_models(kind, 0.4))
    else:
        notes.note(words, why="a kind of model: its size is not said")


def _ask_if_below(notes: Notes, path: str, least: float, question: str) -> None:
    """Ask about a count that is too small for its field, which then stays open."""
    value = notes.fields.get(path)
    if value is not None and value < least:
        _leave_open(notes, path, question)


def _take_back(notes: Notes, path: str) -> None:
    """Leave a field out that was read."""
    del notes.fields[path]
    notes.read[:] = [read for read in notes.read if read.field != path]


def _leave_open(notes: Notes, path: str, question: str, choices: Lines = ()) -> None:
    """Ask about a field in place of setting it."""
    _take_back(notes, path)
    notes.ask(notes.words[path], question, choices)


def _trillions(notes: Notes) -> None:
    """Trillions without a noun are the tokens, beside a model that is named or sized, and the
    model's size where they are what it has; else they are asked about."""
    value = notes.facts.get("trillions")
    if value is None:
        return
    words, fields = notes.words["trillions"], notes.fields
    named = fields.get("model")
    if isinstance(named, str) and "model" not in notes.as_given and has_size(named, value):
        notes.note(words, "model", named, "its size")
    elif _is_sized(fields) and "job.tokens" not in fields:
        why = "trillions beside a model are tokens"
        notes.set("job.tokens", float(value), words, why)
        notes.assume("job.tokens", float(value), why)
    else:
        question = "parameters of the model (model.size), or tokens of the run (job.tokens)?"
        notes.ask(words, question, ("model.size", "job.tokens"))


def _is_sized(fields: Mapping[str, Any]) -> bool:
    """Whether a model is named, or its size or layers are said."""
    return bool(fields.keys() & {"model", "model.like", "model.size", "model.layers"})


LEAST_BUDGET = 100.0  # [USD]: less is the price of something
_OF_THE_RUN = re.compile(r"budget|total|spend|ceiling|\bcap\b", re.IGNORECASE)


def _small_budget(notes: Notes) -> None:
    """So few dollars that no run costs them are the price of an hour, unless words say that they
    are the budget; a few more are asked about."""
    path, price = "constraints.budget_usd", "prices.usd_per_device_hour"
    value = notes.fields.get(path, LEAST_BUDGET)
    if not 0 < value < LEAST_BUDGET or _OF_THE_RUN.search(notes.words[path]):
        return
    if value > DEAREST_DEVICE or price in notes.fields:
        _leave_open(notes, path, "dollars of an hour of a device, or of the run?", (price, path))
        return
    _take_back(notes, path)
    notes.set(price, value, notes.words[path], "some dollars are those of an hour of a device")
    notes.either[:] = [e._replace(path=price) if e.path == path else e for e in notes.either]


def _compared_alone(notes: Notes) -> None:
    """What stands beside a value that is not planned is asked about."""
    for either in list(notes.either):
        beside = notes.fields.keys() | WITHOUT.keys() | set(AS_PLANNED)
        if either.path not in beside:
            notes.either.remove(either)
            notes.ask(either.words, _NOT_BESIDE)


def _owned(notes: Notes) -> None:
    """Years that a machine is written off over, beside its price; they are asked about without. One
    that is owned, of which no price is said, has the dollars of a rent, which is told."""
    path, capex, budget = "prices.owned.years", "prices.owned.capex_usd", "constraints.budget_usd"
    if path in notes.fields and capex not in notes.fields and budget in notes.fields:
        price, words = notes.fields[budget], notes.words[budget]
        _take_back(notes, budget)
        notes.set(capex, price, words, "of a machine that is written off")
    if capex in notes.fields and "no_currency" in notes.facts and currency(notes.text):
        _leave_open(notes, capex, _IN_DOLLARS)
    bought = capex in notes.fields
    if "years" in notes.facts and bought:
        notes.set(path, notes.facts["years"], notes.words["years"], "written off over")
    elif "years" in notes.facts:
        notes.ask(notes.words["years"], _OF_WHAT, ("constraints.deadline_days",))
    elif path in notes.fields and not bought:
        _leave_open(notes, path, "what did the machine cost (prices.owned.capex_usd)?")
    elif "owned" in notes.facts and not any(name.startswith("prices.") for name in notes.fields):
        notes.assume(capex, None, OWNED)


def _steps(notes: Notes, steps: int) -> None:
    """Tokens of a number of steps, where the batch is said in tokens, or in sequences of a length
    that is said; it is asked about where neither is."""
    fields = notes.fields
    words = notes.words["steps"]
    if fields.get("job.method") in POLICIES:
        notes.set("job.rollout.steps", float(steps), words)
        return
    batch = fields.get("job.global_batch_tokens")
    if batch is None and {"job.global_batch", "job.seq_len"} <= fields.keys():
        batch = fields["job.global_batch"] * fields["job.seq_len"]
    if batch is None:
        notes.ask(words, "of how many tokens is a step (job.global_batch_tokens)?")
    elif "job.tokens" not in fields:
        notes.set("job.tokens", float(steps * batch), words, f"{steps:,} steps of {batch:,.0f}")


def _batch(notes: Notes) -> None:
    """The sequences of a step where the batch of a device and the accumulation are said:
    micro-batch x accumulation x data-parallel ways; ways that are not said are 1, as in a trainer's
    settings."""
    fields = notes.fields
    accumulation = fields.get("plan.grad_accum")
    devices = fields.get("cluster.devices")
    _of_each_or_all(notes, devices, accumulation)
    micro_batch = fields.get("plan.micro_batch")
    if not (micro_batch and accumulation and devices):
        return
    if fields.keys() & {"job.global_batch", "job.global_batch_tokens"}:
        return
    ways = fields.get("plan.tp", 1) * fields.get("plan.pp", 1) * fields.get("plan.cp", 1)
    if devices % ways == 0:
        batch = micro_batch * accumulation * (devices // ways)
        words = f"{notes.words['plan.micro_batch']}, {notes.words['plan.grad_accum']}"
        why = f"{micro_batch} x {accumulation} x {devices // ways} data-parallel ranks"
        notes.set("job.global_batch", batch, words, why)
        notes.assume("job.global_batch", batch, why)


def _offload(notes: Notes) -> None:
    """The CPU offload of FSDP takes parameters, gradients and the optimizer's states
    (torch.distributed.fsdp, `CPUOffloadPolicy`); where its words name the optimizer it is that
    alone."""
    path = "plan.offload"
    words = notes.words.get(path, "")
    if notes.fields.get(path) != "optimizer" or "optimi" in words.lower():
        return
    if "fsdp" in notes.words.get("plan.sharding", "").lower():
        _take_back(notes, path)
        notes.set(path, "optimizer+params", words, "FSDP takes both to the host")


_GLOBAL = re.compile(r"global|total|effective|gbs|step", re.IGNORECASE)


def _of_each_or_all(notes: Notes, devices: int | None, accumulation: int | None) -> None:
    """A batch that does not say whose it is, of no more sequences than there are devices, is a
    trainer's setting for each where accumulation is said, and asked about where it is not."""
    fields, path = notes.fields, "job.global_batch"
    batch = fields.get(path)
    if batch is None or devices is None or "plan.micro_batch" in fields:
        return
    if devices == 1 and not accumulation:
        return
    words = notes.words[path]
    if batch > devices or batch > MOST_OF_EACH or _GLOBAL.search(words):
        return
    _take_back(notes, path)
    if accumulation:
        notes.set("plan.micro_batch", batch, words, "beside accumulation it is that of each device")
    else:
        notes.ask(
            words, "of each device, or of all?", (f"plan.micro_batch: {batch}", f"{path}: {batch}")
        )


def _machine(notes: Notes) -> None:
    """Chip, count and network."""
    facts = notes.facts
    if "hours_of" in facts and "accelerator" not in facts:
        notes.set("accelerator", facts["hours_of"], notes.words["hours_of"])
    if "of_them" in facts:
        _of_them(notes, facts["of_them"])
    if "of_each" in facts:
        _of_each(notes, facts["of_each"])
    if "instance" in facts:
        _instance(notes, facts["instance"])
        _price_of_instance(notes)
    else:
        _accelerator(notes)
    if "racks" in facts:
        _racks(notes, facts["racks"])
    if "nodes" in facts:
        _nodes(notes, facts["nodes"])
    _of_each_site(notes)
    _ranks(notes)
    if "node_hours" in facts and (per_node := _per_node(notes)) is not None:
        facts["device_hours"] = facts["node_hours"] * per_node
        notes.words["device_hours"] = notes.words["node_hours"]
    if "device_hours" in facts:
        _hours(notes, facts["device_hours"])
    if "bare_sum" in facts:
        _bare_sum(notes, facts["bare_sum"])
    _spot(notes)
    _alternatives(notes)
    _network(notes)
    _failures(notes)
    if "spares_of_each" in facts:
        _spares(notes, facts["spares_of_each"])
    if "rdma" in facts:
        notes.note(notes.words["rdma"], why="the fabric does RDMA; there is no field for it")


_MACHINE = re.compile(rf"(?:{ACCELERATOR}|{DEVICE_NOUN}|{GROUP}|racks?)\s*$", re.IGNORECASE)
_OF_SUM = "dollars of the run (constraints.budget_usd), or parameters of the model (model.size)?"
_DOLLARS = "a sum behind a machine is what it may cost; no currency is said: dollars"


def _bare_sum(notes: Notes, value: float) -> None:
    """A sum without a currency behind a machine is the budget, where the model is said; else it
    may be the model's size, as behind other words it is."""
    path, words = "constraints.budget_usd", notes.words["bare_sum"]
    if not _MACHINE.search(notes.text[: notes.places["bare_sum"]]):
        notes.set("model.size", value, words, "a number of millions alone is the model's size")
    elif not _is_sized(notes.fields) or path in notes.fields or currency(notes.text):
        notes.ask(words, _OF_SUM, (path, "model.size"))
    else:
        notes.set(path, float(value), words, _DOLLARS)
        notes.assume(path, float(value), _DOLLARS)


def _spares(notes: Notes, each: float) -> None:
    """Spare nodes of so many; they are asked about where the nodes are not known."""
    words = notes.words["spares_of_each"]
    devices, per_node = notes.fields.get("cluster.devices"), _per_node(notes)
    if devices is None or per_node is None:
        notes.ask(words, "of how many nodes (reliability.spares)?", ("reliability.spares",))
        return
    nodes = devices // per_node
    notes.set("reliability.spares", ceil(each * nodes), words, f"of {nodes:,} nodes")


def _of_each_site(notes: Notes) -> None:
    """More devices for each than a node or a rack holds are those of a site; they are asked about
    where no sites are."""
    path, fields = "cluster.devices_per_node", notes.fields
    each = fields.get(path, 0)
    if each <= MOST_TOGETHER:
        return
    words = notes.words[path]
    _take_back(notes, path)
    if "cluster.sites" in fields and "cluster.devices" not in fields:
        notes.set("cluster.devices", fields["cluster.sites"] * each, words, "of each site")
    else:
        notes.ask(words, "each of what (cluster.devices has all)?", ("cluster.devices",))


def _ranks(notes: Notes) -> None:
    """Devices of a plan whose replicas are said, where no count of devices is."""
    fields = notes.fields
    if "plan.dp" not in fields or "cluster.devices" in fields:
        return
    devices = prod(fields.get(f"plan.{axis}", 1) for axis in (Axis.TP, Axis.PP, Axis.CP, Axis.DP))
    notes.set("cluster.devices", devices, notes.words["plan.dp"], "tp x pp x cp x dp")


def _failures(notes: Notes) -> None:
    """Failures per 1,000 node-days of a time between two of the job, of a node or of a device; of
    the job it is asked about where the devices are not known."""
    path = "reliability.failures_per_1000_node_days"
    for fact in notes.facts.keys() & {"node_mtbf_s", "device_mtbf_s"}:
        held = 1 if fact == "device_mtbf_s" else _devices_of_a_node(notes)
        rate = float(f"{rate_of_mtbf(notes.facts[fact], held):.4g}")
        notes.set(path, rate, notes.words[fact], f"of {held} devices, on nodes of 8")
        return
    mtbf_s = notes.facts.get("mtbf_s")
    if mtbf_s is None:
        return
    words = notes.words["mtbf_s"]
    devices = notes.fields.get("cluster.devices")
    if devices is None:
        notes.ask(words, "on how many nodes?", (path,))
        return
    rate = float(f"{rate_of_mtbf(mtbf_s, devices):.4g}")
    why = f"one in {mtbf_s / HOUR_S:.3g} h on {devices:,.0f} devices, 8 a node"
    notes.set(path, rate, words, why)


_TAKEN_BACK = "prices.spot.preemptions_per_day"
_SPOT_PRICE = "prices.spot.usd_per_device_hour"
_SPOT_ALONE = re.compile(r"(?:spot|pre-?empt|interruptible)", re.IGNORECASE)


def _spot(notes: Notes) -> None:
    """Devices that are taken back have a price and how often that happens; what is not said of the
    two is asked about."""
    since_s = notes.facts.get("taken_back_s")
    priced = _SPOT_PRICE in notes.fields
    if since_s is None and not priced:
        return
    if since_s is None:
        _leave_open(notes, _SPOT_PRICE, f"how many a day are taken back ({_TAKEN_BACK})?")
        return
    words = notes.words["taken_back_s"]
    if not priced:
        notes.ask(words, f"taken back at which price ({_SPOT_PRICE})?", (_SPOT_PRICE,))
        return
    notes.set(_TAKEN_BACK, float(f"{DAY_S / since_s:.4g}"), words, "of all nodes together")
    notes.unread[:] = [asked for asked in notes.unread if not _SPOT_ALONE.match(asked.words)]


def _devices_of_a_node(notes: Notes) -> int:
    """Devices of a node as the line says it, else of the usual node of its accelerator; 8 where the
    catalogue has none."""
    held = notes.fields.get("cluster.devices_per_node")
    chip = notes.fields.get("cluster.accelerator")
    if held is None and chip in catalogue.accelerators():
        return catalogue.devices_per_node(chip)
    return int(held or 8)


def _alternatives(notes: Notes) -> None:
    """What an or sets beside: rows of the catalogue in place of words."""
    either = []
    for path, value, words in notes.either:
        if path == "accelerator" and isinstance(value, Chip):
            choice = choose_accelerator(value, notes.facts.get("nvlink"))
            if choice.id is None:
                notes.ask(words, NO_CHIP, near_chips(value.text))
            else:
                either.append(Either("cluster.accelerator", choice.id, words))
        elif path in ("fabric", "rate"):
            other = {e.path: e.value for e in notes.either if e.words == words}
            if path == "fabric" or "fabric" not in other:
                kind = other.get("fabric", notes.facts.get("fabric"))
                network = _network_of(notes, kind, other.get("rate"))
                if _of_catalogue(notes, network, words):
                    either.append(Either("cluster.scale_out", network, words))
        elif path in ("nodes", "racks") and "cluster.devices" in notes.fields:
            each = notes.fields["cluster.devices"] // notes.facts[path]
            either.append(Either("cluster.devices", value * each, words))
        elif path in FACTS:
            notes.ask(words, "which of the two holds?")
        else:
            either.append(Either(path, value, words))
    facts = notes.facts
    if "rate_after" in facts:
        path, words = "cluster.scale_out_gbytes_per_s_per_device", notes.words["rate_after"]
        notes.set(path, facts["rate_before"], words, "of each device")
        either.append(Either(path, facts["rate_after"], words))
    if "then" in notes.facts:
        either.append(Either("job.method", notes.facts["then"], notes.words["then"]))
    if "devices_or" in notes.facts:
        words = notes.words["devices_or"]
        either.append(Either("cluster.devices", notes.facts["devices_or"], words))
    notes.either[:] = either


def _network_of(notes: Notes, kind: str | None, rate: float | None) -> Any:
    """The network of a kind and a rate [Gb/s] of its ports; InfiniBand alone is that of the
    accelerator's usual node."""
    if kind in (None, "ib") and rate is None:
        node = catalogue.node_for(notes.fields.get("cluster.accelerator", ""))
        usual = node.scale_out if node else ""
        return usual if usual.startswith("ib") else catalogue.fabric("ib").id
    return choose_fabric(kind, rate, "port", _per_node(notes) or 8)["scale_out"]


def _of_catalogue(notes: Notes, network: Any, words: str) -> bool:
    """Whether a network that is compared is one of the catalogue; another is asked about."""
    if not isinstance(network, str):
        notes.ask(words, _NO_NETWORK, ("cluster.scale_out",))
    return isinstance(network, str)


def _check(text: str) -> None:
    """Raises DesignError for what is no text: nothing, control characters, too much."""
    problem = ""
    for character in text:
        if not character.isprintable() and not character.isspace():
            problem = f"holds a control character, {character!a}"
            break
    if not text.strip():
        problem = "is empty"
    if len(text) > LONGEST:
        problem = f"has {len(text):,} characters, more than {LONGEST:,}"
    if problem:
        raise _wrong(allowed="the plan in words, " + _EXAMPLE, problem=problem)


def _contradiction(clash: Clash) -> DesignError:
    one = plain(str(clash.one), 40)
    two = plain(str(clash.two), 40)
    problem = f"gives {clash.path} twice: {one} and {two} ('{plain(clash.words, 60)}')"
    return _wrong(problem=problem, allowed="one value")


def _model(notes: Notes) -> None:
    """A model is named, or a mixture of experts where it has experts."""
    fields = notes.fields
    if "maker" in notes.facts:
        _of_maker(notes, notes.facts["maker"])
    if isinstance(fields.get("model"), str) and "model" not in notes.as_given:
        _of_series(notes)
        try:
            _named(fields)
        except DesignError as error:
            if not notes.unread:
                raise
            size = fields.pop("model.size", None)
            _take_back(notes, "model")
            notes.ask(notes.words.get("model.size", str(size)), plain(error.problem, 300))
    _few_active(notes)
    sparse = fields.keys() & {"model.experts", "model.top_k", "model.active"}
    if fields.get("model.moe") is False:
        del fields["model.moe"]
        if sparse:
            raise _wrong(problem="says dense and gives experts", allowed="one of the two")
    elif {"model.layers", "model.hidden"} <= fields.keys() and sparse:
        fields.pop("model.moe", None)  # its experts say so
    elif "model.like" not in fields and sparse - {"model.top_k"}:
        fields["model.moe"] = True


def _few_active(notes: Notes) -> None:
    """Fewer active than a model has parameters are experts: 256 experts, 8 active."""
    active = notes.fields.get("model.active")
    if active is None or active >= FEWEST_PARAMETERS:
        return
    del notes.fields["model.active"]
    notes.set("model.top_k", int(active), notes.words["model.active"], "experts of a token")


def _of_series(notes: Notes) -> None:
    """Of a series that is named without a size, the one of the size that is said: a 6.7B GPT-3."""
    fields = notes.fields
    size, words = fields.get("model.size"), notes.words.get("model", "")
    if size is None or re.search(r"\d\s?[bm]\b", words, re.IGNORECASE):
        return
    series = fields["model"].rpartition("-")[0]
    kin = [id for id in near_models_of(series, size) if id.startswith(f"{series}-")]
    if series and len(kin) == 1 and has_size(kin[0], size) and kin[0] != fields["model"]:
        notes.fields["model"] = kin[0]
        notes.note(words, "model", kin[0], f"the one of {series} with this size")


def _of_maker(notes: Notes, maker: str) -> None:
    """A model by its maker and a size: the one that the catalogue has of both; it is asked about
    where several or none are so called. Its name stands in the file as it was given."""
    words = notes.words["maker"]
    fields = notes.fields
    if isinstance(fields.get("model"), str):
        if maker.lower() not in fields["model"]:
            notes.ask(words, NO_MODEL, (fields["model"],))
        return
    size = fields.get("model.size")
    if (
        maker.lower() == "chinchilla"
        and size is not None
        and named_so(f"{maker}-{size / 1e9:g}b") is None
    ):
        why = "no model of this size: as many tokens as the law says"
        notes.facts.setdefault("tokens_per_param", CHINCHILLA_TOKENS)
        notes.note(words, "model.size", size, why)
        return
    of_maker = near_models_of(maker, size)
    kin = of_maker or near_models(maker, 0.5)
    if (
        size is not None
        and len(of_maker) == 1
        and has_size(of_maker[0], size)
        and not re.search(r"\d", maker)
    ):
        for path in ("model.size", "model.active", "model.moe"):
            fields.pop(path, None)
        why = f"the only one of {maker} with this size in the catalogue"
        notes.set("model", kin[0], words, why)
        notes.assume("model", kin[0], why)
        return
    if size is not None:
        fields["model.name"] = words
        notes.ask(words, NO_MODEL, (*kin, f"model: {{size: {size:g}}}"))
        return
    if any(path.startswith("model.") for path in fields):
        fields["model.name"] = words
        notes.ask(words, NO_MODEL, kin)
        return
    fields["model"] = words
    notes.as_given.add("model")
    notes.ask(words, NO_MODEL, kin)


def _named(fields: dict[str, Any]) -> None:
    """A catalogue model that the text also describes: sizes have to agree, other dimensions replace
    the row's."""
    id = fields["model"]
    model = entry(id).model
    counts = parameters(model)
    total = float(counts.total)
    active = float(counts.active)
    _agrees(fields.get("model.size"), id, "", total, (total, active))
    fields.pop("model.size", None)
    _agrees(fields.pop("model.active", None), id, "active ", active, (active,))
    moe = fields.pop("model.moe", model.is_moe)
    if moe != model.is_moe:
        kind = "a mixture of experts" if model.is_moe else "dense"
        raise _wrong(
            problem=f"names {id}, which is {kind}, and says the contrary", allowed="one of the two"
        )
    if any(path.startswith("model.") for path in fields):
        fields["model.like"] = fields.pop("model")


def _agrees(
    stated: float | None, id: str, kind: str, count: float, counts: tuple[float, ...]
) -> None:
    """Raises DesignError for a size that is none of the named model's, within 8 %."""
    if stated is None or min(abs(stated / n - 1) for n in counts) <= 0.08:
        return
    problem = (
        f"names {id}, which has {count / 1e9:.4g}B {kind}parameters, and says {stated / 1e9:g}B"
    )
    raise _wrong(problem=problem, allowed="one of the two")


def _accelerator(notes: Notes) -> None:
    """The card; what the catalogue lacks of it is asked about, and its name stands as it was
    given."""
    words = notes.words
    field = "cluster.accelerator"
    nvlink = notes.facts.get("nvlink")
    memory = notes.facts.get("memory")
    if "accelerator" not in notes.facts:
        if nvlink is not None:
            notes.note(words["nvlink"], why="no accelerator is named")
        if memory is not None:
            rows = catalogue.accelerators().values()
            choices = tuple(row.id for row in rows if round(row.hbm_bytes / GB) == memory)[:6]
            notes.ask(words["memory"], f"which accelerator has {memory} GB?", choices)
        return
    chip: Chip = notes.facts["accelerator"]
    if memory is not None and chip.memory_gb is None:
        chip = chip.joined(chip._replace(memory_gb=memory, text=f"{chip.text} {memory}GB")) or chip
    choice = choose_accelerator(chip, nvlink)
    if choice.id is None:
        _as_given(notes, chip, near_chips(chip.text), NO_CHIP)
        return
    for error in choice.lacking:
        of_family = tuple(map(str, error.allowed)) if isinstance(error.allowed, tuple) else ()
        ids = tuple(name.split()[0] for name in of_family) or near_chips(chip.text)
        if "NVLink" in str(error.value):
            notes.ask(words["nvlink"], plain(str(error), 300), ids)
        else:
            _as_given(notes, chip, ids, plain(str(error), 300))
            return
    notes.fields[field] = choice.id
    sources = ", ".join(words[fact] for fact in ("accelerator", "nvlink") if fact in words)
    notes.note(sources, field, choice.id, choice.why)
    if choice.why:
        notes.assume(field, choice.id, choice.why)


def _as_given(notes: Notes, chip: Chip, choices: Lines, question: str) -> None:
    """A card that the catalogue lacks stands as it was given."""
    notes.fields["cluster.accelerator"] = chip.text
    notes.as_given.add("cluster.accelerator")
    notes.ask(chip.text, question, choices)


def _instance(notes: Notes, node: str) -> None:
    """A rented instance: a node of the catalogue with its accelerator."""
    words = notes.words["instance"]
    row = catalogue.node(node)
    notes.set("cluster.accelerator", row.accelerator, words, f"the accelerator of {node}")
    notes.set("cluster.node", node, words)
    how_many = any(asked.topic is Topic.FEWEST for asked in notes.questions)
    if "nodes" not in notes.facts and "cluster.devices" not in notes.fields and not how_many:
        notes.set("cluster.devices", row.devices, words, "one instance")


_OF_DEVICE = re.compile(r"gpu|device|chip|card|accelerator|tpu|[abhv]\d", re.IGNORECASE)


def _price_of_instance(notes: Notes) -> None:
    """An hourly price beside a rented instance that names no device is asked about, or is the
    instance's where no device costs as much."""
    path = "prices.usd_per_device_hour"
    price = notes.fields.get(path)
    if price is None or _OF_DEVICE.search(notes.words[path]):
        return
    _take_back(notes, path)
    words = notes.words[path]
    if price > DEAREST_DEVICE:
        notes.set("prices.usd_per_node_hour", price, words, "an hour of an instance")
    else:
        notes.ask(
            words, "an hour of a device, or of the instance?", (path, "prices.usd_per_node_hour")
        )


def _of_them(notes: Notes, count: int) -> None:
    """A count of what was named before: instances, else accelerators; it is asked about where
    neither was, or was counted."""
    counted = "nodes" in notes.facts or "cluster.devices" in notes.fields
    if counted or not notes.facts.keys() & {"instance", "accelerator"}:
        notes.ask(notes.words["of_them"], "of what are they so many (cluster.devices)?")
        return
    of_nodes = "instance" in notes.facts or "cluster.devices_per_node" in notes.fields
    path = "nodes" if of_nodes else "cluster.devices"
    notes.set(path, count, notes.words["of_them"])


def _of_each(notes: Notes, count: int) -> None:
    """A count of devices of each: of each chip that is compared, or of each node; it is asked about
    where neither is."""
    words = notes.words["of_each"]
    if any(either.path == "accelerator" for either in notes.either):
        notes.set("cluster.devices", count, words, "of each that is compared")
    elif "nodes" in notes.facts and count <= MOST_IN_A_NODE:
        notes.set("cluster.devices_per_node", count, words)
    else:
        notes.ask(words, "each of what (cluster.devices has all)?", ("cluster.devices",))


def _racks(notes: Notes, racks: int) -> None:
    """Devices of a count of racks, where the scale-up domain is one."""
    words = notes.words["racks"]
    id = None if notes.as_given else notes.fields.get("cluster.accelerator")
    domain = catalogue.accelerator(id).scale_up_domain if id else 0
    if not id or domain <= catalogue.devices_per_node(id):
        notes.ask(words, "how many devices does a rack hold (cluster.devices)?")
        return
    notes.set("cluster.devices", racks * domain, words, f"{racks:,} racks of {domain}")


_OF_EACH = re.compile(
    r"\b(?:each|every|with|of|per|have|has|having|holding|contain\w*)\b|[x×*@]", re.IGNORECASE
)


def _nodes(notes: Notes, nodes: int) -> None:
    """Devices of a count of nodes; a count behind them that their usual nodes add up to is that of
    all: 2 nodes (16 A100)."""
    per_node = _per_node(notes)
    field = "cluster.devices"
    if per_node is None:
        notes.ask(notes.words["nodes"], "how many devices does a node hold (cluster.devices)?")
        return
    devices = nodes * per_node
    chip = notes.fields.get("cluster.accelerator")
    usual = catalogue.devices_per_node(chip) if chip and not notes.as_given else None
    stated = "cluster.devices_per_node" in notes.fields
    if stated and per_node == nodes * (usual or 0) and not _OF_EACH.search(notes.words["nodes"]):
        del notes.fields["cluster.devices_per_node"]
        notes.set(field, per_node, notes.words["nodes"], f"on {nodes:,} nodes of {usual}")
        return
    all_devices = notes.fields.setdefault(field, devices)
    if all_devices != devices:
        raise _wrong(
            problem=f"gives {all_devices:,} devices and {nodes:,} nodes of {per_node}",
            allowed="one count",
        )
    notes.note(notes.words["nodes"], field, devices, f"{nodes:,} nodes of {per_node}")
    if "cluster.devices_per_node" not in notes.fields:
        why = f"{nodes:,} nodes with {per_node} devices each, as this accelerator's usual node has"
        notes.assume(field, devices, why)


def _hours(notes: Notes, device_hours: float) -> None:
    """Devices of a budget of device-hours until the deadline, in whole nodes; where devices are
    said, or no deadline is, the hours set nothing."""
    words = notes.words["device_hours"]
    days = notes.fields.get("constraints.deadline_days")
    if "cluster.devices" in notes.fields:
        notes.ask(
            words, "device-hours beside devices: in how many days (constraints.deadline_days)?"
        )
        return
    per_node = _per_node(notes)
    if not days or per_node is None:
        notes.ask(words, "in how many days (constraints.deadline_days), on how many devices?")
        return
    most = device_hours / (24 * days)
    devices = int(most // per_node) * per_node or max(1, int(most))
    why = f"as many as the hours pay for in {days:g} days, in whole nodes of {per_node}"
    notes.set("cluster.devices", devices, words, why)
    notes.assume("cluster.devices", devices, why)


def _network(notes: Notes) -> None:
    """The fabric between nodes and its rate."""
    words = notes.words
    kind = notes.facts.get("fabric")
    rate = notes.facts.get("rate")
    rate_of = notes.facts.get("rate_of")
    if rate_of and not rate:
        notes.ignore(words["rate_of"], "no rate is said of it, such as 400 Gb/s per device")
    if _is_no_network(notes, kind, rate) or kind and _is_of_node(notes, kind, rate):
        return
    if rate_of == "node" and "cluster.nics_per_node" in notes.fields:
        rate_of = "port"  # the node's are the ports
    if rate and not rate_of and (_is_of_instances(kind) or rate > _fastest_port()):
        rate_of = "node"  # no port is as fast
    sources = " ".join(words[fact] for fact in ("rate", "fabric", "rate_of") if fact in words)
    fields = choose_fabric(kind, rate, rate_of or "port", _per_node(notes) or 8)
    if any(either.path == "cluster.scale_out" for either in notes.either):
        fields = fields or {"scale_out": _network_of(notes, kind, rate)}
        _of_catalogue(notes, fields["scale_out"], sources)
    for name, value in fields.items():
        notes.fields[f"cluster.{name}"] = value
        notes.note(sources, f"cluster.{name}", value)
    if not fields:
        notes.note(sources, why="InfiniBand of the accelerator's usual node")
    if kind is None:
        why = "a rate without a network: InfiniBand"
        notes.assume("cluster.scale_out", fields.get("scale_out"), why)


def _is_no_network(notes: Notes, kind: str | None, rate: float | None) -> bool:
    """Whether no network is named, or words of one have to be asked about first."""
    words = notes.words
    if "no_ib" in notes.facts:
        if not kind or str(kind).startswith("ib"):
            notes.ask(words["no_ib"], "which network then (cluster.scale_out)?")
            return True
        notes.note(words["no_ib"], why="another network is named")
    if kind or not rate:
        return not kind
    if "rate_of" not in notes.facts and re.search(r"B(?:/s|ps)", words["rate"]):
        choices = ("cluster.scale_out_gbytes_per_s_per_device", "cluster.storage")
        notes.ask(words["rate"], "a rate of the network, or of the shared store?", choices)
        return True
    return False


def _is_of_node(notes: Notes, kind: str, rate: float | None) -> bool:
    """Whether a network is that of the node that is named, which is noted: of its kind, with no
    generation and no rate but that of all its ports."""
    id, words = notes.fields.get("cluster.node"), notes.words
    if not id or not catalogue.node(id).scale_out.startswith(kind.partition("-")[0]):
        return False
    if re.search(r"v\d" if rate else r"\d", words["fabric"]) or rate and not _has_rate(id, rate):
        return False
    sources = " ".join(words[fact] for fact in ("rate", "fabric") if fact in words)
    notes.note(sources, why=f"that of {id}")
    return True


def _has_rate(id: str, gbits_per_s: float) -> bool:
    """Whether a rate is that of a node's ports together."""
    node = catalogue.node(id)
    ports = node.nics * catalogue.fabric(node.scale_out).port_bytes_per_s / GBIT
    return abs(ports / gbits_per_s - 1) < 0.01


def _is_of_instances(kind: Any) -> bool:
    """Whether a network's rate is stated of a rented instance: Amazon's, whose cards speak SRD."""
    rows = catalogue.fabrics("scale-out").values()
    return any(row.transport == "srd" for row in rows if kind and row.id.startswith(str(kind)))


def _fastest_port() -> float:
    """The fastest port of a network between nodes. [Gb/s]"""
    return max(row.port_bytes_per_s for row in catalogue.fabrics("scale-out").values()) / GBIT


def _per_node(notes: Notes) -> int | None:
    """Devices of a node: as said, else of the accelerator's usual node; None where it is not
    known."""
    stated: int | None = notes.fields.get("cluster.devices_per_node")
    if stated:
        return stated
    if "cluster.accelerator" in notes.as_given:
        return None
    id = notes.fields.get("cluster.accelerator")
    return catalogue.devices_per_node(id) if id else 8
