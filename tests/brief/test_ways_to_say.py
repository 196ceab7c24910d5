"""One thing said in many ways, put together at random: what a line says of one thing never changes
what it says of another, and a question has its command whatever stands in it."""

from __future__ import annotations

import re
from itertools import chain
from random import Random

import pytest
from scoring import rows, score

SAID = rows("phrases.yaml")
LENGTHS = "batch in sequences of a length"
ALONE = (LENGTHS, "machine", "model", "questions", "chip", "asked about", "method")
# what stands beside what is said of a run of tuning
TUNED = ("length of a sequence", "batch of a device", "accumulation", "recompute", "format")
# of a batch that is said of all sequences nothing is said of each device too
OF_ALL, OF_EACH = "batch", {"batch of a device", "accumulation"}
JOINS = (", ", "; ", ". ", " with ", " and ", " ,")


def line(parts, rng):
    """The parts in one line, and the fields of all."""
    words = parts[0][0] + "".join(rng.choice(JOINS) + said for said, _ in parts[1:])
    return words, dict(chain.from_iterable(fields.items() for _, fields in parts))


def scored(said, reads, **row):
    """How a line is scored; the batch of all that follows from that of each is let be."""
    if {"plan.micro_batch", "plan.grad_accum"} <= reads.keys():
        ways = reads.get("plan.tp", 1) * reads.get("plan.pp", 1) * reads.get("plan.cp", 1)
        if reads["cluster.devices"] % ways == 0:
            each = reads["plan.micro_batch"] * reads["plan.grad_accum"]
            reads = reads | {"job.global_batch": each * (reads["cluster.devices"] // ways)}
    return score({"said": said, "reads": reads, **row})


@pytest.mark.parametrize("kind", [kind for kind in SAID if kind not in ALONE or kind == LENGTHS])
def test_every_way_to_say_a_thing_is_read_so(kind):
    rng = Random(kind)
    kinds = []
    for part in SAID[kind]:
        others = [SAID["machine"][0], SAID["model"][1]]
        for parts in ([part, *others], [*others, part]):
            result = scored(*line(parts, rng))
            assert result.kind != "wrong", (parts, result.why)
            kinds.append(result.kind)
    assert kinds.count("right") >= 0.9 * len(kinds)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_said_of_one_thing_changes_no_other(seed):
    rng = Random(seed)
    kinds = []
    for _ in range(60):
        free = [kind for kind in SAID if kind not in ALONE]
        names = rng.sample(free, rng.randint(2, 5))
        if OF_EACH & set(names):
            names = [name for name in names if name != OF_ALL]
        names += ["machine", "model"]
        rng.shuffle(names)
        said, reads = line([rng.choice(SAID[name]) for name in names], rng)
        result = scored(said, reads)
        assert result.kind != "wrong", (said, result.why)
        kinds.append(result.kind)
    assert kinds.count("right") >= 0.8 * len(kinds)


@pytest.mark.parametrize("part", SAID["method"], ids=lambda part: part[0])
def test_a_method_changes_nothing_else(part):
    rng = Random(part[0])
    for _ in range(3):
        names = [*rng.sample(TUNED, 2), "machine", "model"]
        said, reads = line([part, *(rng.choice(SAID[name]) for name in names)], rng)
        result = scored(said, reads)
        assert result.kind != "wrong" or "asks []" not in result.why, (said, result.why)


@pytest.mark.parametrize("words", SAID["asked about"])
def test_what_is_not_planned_is_asked_about(words):
    said, reads = line([[words, {}], SAID["machine"][0], SAID["model"][0]], Random(words))
    assert scored(said, reads, asks=[words.split()[0]]).kind == "right", said


@pytest.mark.parametrize("question", SAID["questions"], ids=lambda question: question[0])
def test_a_question_has_its_command(question):
    pattern, command, reads = question
    rng = Random(pattern)
    for _ in range(3):
        fields = dict(reads)

        def filled(match, fields=fields):
            said, more = rng.choice(SAID[match[1]])
            fields.update(more)
            return said

        said = re.sub("<([^>]+)>", filled, pattern)
        result = scored(said, fields, command=command)
        assert result.kind == "right", (said, result.why)
