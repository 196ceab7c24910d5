"""The command that answers a question of a line."""

import re
from collections.abc import Sequence
from dataclasses import replace
from shlex import join
from typing import Any

from scantling.base.units import GB
from scantling.design.design import Design
from scantling.design.methods import is_posttraining, untuned
from scantling.design.resolved import Resolved
from scantling.plans.prepare import prepare

from .line import Question, Reading
from .notes import AS_PLANNED, WITHOUT, Notes
from .topics import Topic

_ANSWERS = {
    Topic.COMPUTE_OPTIMAL: "compute-budget",
    Topic.LARGEST: "largest-model",
    Topic.LONGEST: "longest-sequence",
    Topic.MICRO_BATCH: "biggest-micro-batch",
    Topic.EARLIEST: "earliest-finish",
    Topic.FEWEST: "fewest-devices",
    Topic.CHEAPEST: "cheaper",
    Topic.CHIP: "cheaper",
}
_COMMANDS = {
    Topic.SLOW: "diagnose",
    Topic.SPARES: "goodput",
    Topic.SENSITIVITY: "sensitivity",
    Topic.PLAN: "search",
    Topic.TRADE: "front",
    Topic.PRICE: "prices",
    Topic.DESIGN: "design",
}
# what is answered of a run that tunes a model
OF_TUNING = {Topic.DESIGN, Topic.EITHER, Topic.FEWEST, Topic.PLAN, Topic.CHANGED, Topic.PRICE}
# questions that a comparison does not answer
_BESIDE_EITHER = {Topic.FEWEST, Topic.LARGEST, Topic.LONGEST, Topic.SPARES, Topic.SENSITIVITY}
# questions that the answer to another one answers too
_SAME = {Topic.COMPUTE_OPTIMAL: {Topic.SCALING, Topic.LARGEST, Topic.DESIGN}}
# a machine for so many days trains a model on so many tokens; how many it should have the laws say
_OF_TIME = {"cluster.devices", "constraints.deadline_days"}
_CAN = re.compile(r"how\s+many\s+tokens\s+(?:can|could|will)\b", re.IGNORECASE)
_BY_LAW = re.compile(r"optimal|chinchilla", re.IGNORECASE)
_OF_FAILURES = ("reliability.", "checkpoint.", "mtbf_s")
_COUNTS = tuple(2**power for power in range(11))  # devices from one to 1,024


def question_of(notes: Notes) -> Question | None:
    """The question that decides among those of a line: the first topic of `Topic`."""
    topics = {asked.topic: asked.words for asked in reversed(notes.questions)}
    facts = notes.facts
    paths = [either.path for either in notes.either]
    if paths:
        known = notes.fields | facts
        compared = tuple(
            (path, (known.get(path), *(e.value for e in notes.either if e.path == path)))
            for path in dict.fromkeys(paths)
            if any(e.path == path and e.value != known.get(path) for e in notes.either)
        )
        return Question(
            topic=Topic.EITHER,
            words=notes.either[0].words,
            others=tuple(topic for topic in Topic if topic in topics.keys() & _BESIDE_EITHER),
            compared=compared,
        )
    measured = any(path.startswith("measured.") for path in notes.fields)
    if measured and "mfu" in topics.get(Topic.DESIGN, "").lower():  # what MFU is that?
        topics.setdefault(Topic.SLOW, topics.pop(Topic.DESIGN))
    if Topic.SLOW in topics and not measured:
        topics.setdefault(Topic.DESIGN, topics.pop(Topic.SLOW))
    if {Topic.LARGEST, Topic.SCALING} <= topics.keys() and "model.size" not in notes.fields:
        topics[Topic.COMPUTE_OPTIMAL] = topics.pop(Topic.LARGEST)
    of_tokens = "job.tokens" in notes.fields and "tokens_per_param" not in facts
    if of_tokens and not _BY_LAW.search(topics.get(Topic.COMPUTE_OPTIMAL, "optimal")):
        topics.setdefault(Topic.LARGEST, topics.pop(Topic.COMPUTE_OPTIMAL))  # of these tokens
    in_time = notes.is_sized and _OF_TIME <= notes.fields.keys()
    if Topic.SCALING in topics and in_time and _CAN.search(notes.text):
        topics.setdefault(Topic.DESIGN, topics.pop(Topic.SCALING))
    topics.pop(Topic.WORTH, None)  # seen beside what is without it, or asked about
    if "flops" in facts:
        topics = {Topic.SCALING: topics[Topic.SCALING]}
    ordered = [topic for topic in Topic if topic in topics]
    if not ordered:
        return None
    if ordered[0] is Topic.CHANGED and notes.supposed and not facts.get("changed"):
        of_failures = any(path.startswith(_OF_FAILURES) for path, _, _ in notes.supposed)
        instead = Topic.SPARES if of_failures else Topic.DESIGN
        topics.setdefault(instead, topics[Topic.CHANGED])
        ordered = [instead, *(topic for topic in ordered[1:] if topic is not instead)]
    first, *others = ordered
    return Question(
        topic=first,
        words=topics[first],
        others=tuple(topic for topic in others if topic not in _SAME.get(first, {Topic.DESIGN})),
        changed=facts.get("changed", ""),
        by=facts.get("by", ""),
        share=facts.get("share"),
        flops=facts.get("flops"),
    )


def arguments(reading: Reading, design: Design, file: str) -> list[str]:
    """The arguments of `scantling` that answer a line about the design in a file."""
    return answers(reading, design, file)[0]


def answers(reading: Reading, design: Design, file: str) -> list[list[str]]:
    """The arguments of `scantling` for each question of a line, the one that decides first."""
    question = reading.question
    settled = untuned(design.change({"unread": None}))
    resolved = None if reading.open else prepare(settled)
    of_command = of_tuning if is_posttraining(design) else command
    asked = [question]
    if question is not None:
        asked += [replace(question, topic=topic, others=()) for topic in question.others]
    commands = [of_command(each, file, resolved) for each in asked]
    return [words for i, words in enumerate(commands) if words not in commands[:i]]


def of_tuning(question: Question | None, file: str, resolved: Resolved | None) -> list[str]:
    """The arguments of `scantling` about a run of tuning: how many devices is a sweep of them."""
    if question is None or question.topic not in OF_TUNING:
        return command(None, file, resolved)
    if question.topic is Topic.FEWEST:
        return _swept(file, "cluster.devices", _COUNTS)
    return command(question, file, resolved)


def command(question: Question | None, file: str, resolved: Resolved | None) -> list[str]:
    """The arguments of `scantling` that answer a question about the design in a file; the
    assessment itself where nothing is asked, or nothing is worked out yet."""
    if question is None or resolved is None:
        return ["design", file]
    topic = question.topic
    phase = resolved.phases[resolved.main]
    if topic is Topic.LARGEST and phase.tokens is None and resolved.constraints.deadline_days:
        topic = Topic.COMPUTE_OPTIMAL
    if topic in _ANSWERS:
        any_chip = ["--any-chip"] if topic is Topic.CHIP else []
        return ["answer", file, _ANSWERS[topic], *any_chip]
    if topic in _COMMANDS:
        return [_COMMANDS[topic], file]
    if topic is Topic.SCALING:
        flops = [] if question.flops is None else ["--flops", f"{question.flops:g}"]
        return ["scaling", file, *flops]
    if topic is Topic.KIT:
        return ["launch", file, "--to", "megatron", "-o", "kit"]
    if topic is Topic.REPORT:
        return ["report", file, "-o", "report"]
    if topic is Topic.EITHER:
        compared = [
            (path, tuple(_as_planned(path, resolved) if v is None else v for v in values))
            for path, values in question.compared
        ]
        return _compared(file, compared)
    batch = phase.global_batch
    if topic is Topic.BATCH:
        return _swept(file, "job.global_batch", (max(1, batch // 2), batch, 2 * batch))
    return _changed(question, file, resolved)


def _compared(file: str, compared: Sequence[tuple[str, Sequence[Any]]]) -> list[str]:
    """A sweep of what is compared; values of several fields that are as many belong together."""
    if len(compared) == 1:  # what is planned may be one of them
        compared = [(path, list(dict.fromkeys(values))) for path, values in compared]
    fields = [_values(path, values) for path, values in compared]
    together = len(compared) > 1 and len({len(values) for _, values in compared}) == 1
    return ["sweep", file, *fields, *(["--together"] if together else [])]


def _as_planned(path: str, resolved: Resolved) -> Any:
    """What a design has of a field that its line does not say."""
    phase = resolved.phases[resolved.main]
    planned: dict[str, Any] = {
        "job.precision": phase.precision,
        "job.seq_len": phase.seq_len,
        "job.global_batch": phase.global_batch,
        "cluster.scale_out": resolved.cluster.scale_out,
    }
    return planned[path] if path in AS_PLANNED else WITHOUT[path]


def _swept(file: str, path: str, values: Sequence[Any]) -> list[str]:
    """A sweep over some values of a field."""
    return ["sweep", file, _values(path, values)]


def _values(path: str, values: Sequence[Any]) -> str:
    return f"{path}={','.join(map(_plain, values))}"


def _plain(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _changed(question: Question, file: str, resolved: Resolved) -> list[str]:
    """What if something were half or twice as much: the field as it is and as it would be; what
    the result hangs on, where no field says it."""
    words = question.by
    times = 2.0
    if words.startswith(("half", "halv", "slower")):
        times = 0.5
    elif words.startswith("trip"):
        times = 3.0
    if question.share is not None:
        times = _share_left(question.share / 100, question.words)
    phase = resolved.phases[resolved.main]
    cluster = resolved.cluster
    what = question.changed
    if what.startswith(("gpu", "device", "node", "cluster")) and "fail" not in question.words:
        devices = cluster.devices
        return _swept(file, "cluster.devices", (devices, max(1, round(devices * times))))
    if what.startswith(
        ("infini", "network", "interconnect", "fabric", "bandwidth", "ib", "roce", "eth")
    ):
        rate = float(cluster.scale_out_bytes_per_s) / GB
        path = "cluster.scale_out_gbytes_per_s_per_device"
        return _swept(file, path, (rate, rate * times))
    if what.startswith(("token", "data")) and phase.tokens is not None:
        return _swept(file, "job.tokens", (phase.tokens, phase.tokens * times))
    if what.startswith("batch"):
        return _swept(
            file, "job.global_batch", (phase.global_batch, round(phase.global_batch * times))
        )
    if what.startswith(("sequence", "context")):
        return _swept(file, "job.seq_len", (phase.seq_len, round(phase.seq_len * times)))
    return ["sensitivity", file]


_MORE = re.compile(r"\b(?:more|higher|faster|up|(?:increase|raise|grow|rise)\w*)\b", re.IGNORECASE)
_FEWER = re.compile(
    r"\b(?:fewer|less|lower|slower|cheaper|lost|without|(?:lose|cut|reduce|drop|shrink|fall)\w*)\b",
    re.IGNORECASE,
)
_TO = re.compile(r"\bto\s+\d", re.IGNORECASE)


def _share_left(share: float, words: str) -> float:
    """What is left of something by a share of it: 60 % of it, 10 % fewer, 20 % more, lost 20 %, up
    by 30 %, down to 70 %."""
    if _MORE.search(words):
        return 1 + share
    return 1 - share if _FEWER.search(words) and not _TO.search(words) else share


def line(arguments: Sequence[str]) -> str:
    """A command as it is typed."""
    return f"scantling {join(arguments)}"
