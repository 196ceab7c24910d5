"""Wrong answers of thirty kinds to every question of every walkthrough: none is called right, each
is told why in words, and what is slightly off is not called far off."""

from __future__ import annotations

import math
import re

import pytest
import scantling_walkthroughs as learn
from scantling_walkthroughs.grade import grade
from scantling_walkthroughs.question import FLEET, SENT, WORK, Choice, Explain, Number, Plan
from scantling_walkthroughs.right_answers import right_answer
from scantling_walkthroughs.typed import dimension

WALKTHROUGHS = list(learn.walkthroughs().values())
QUESTIONS = [(w, q) for w in WALKTHROUGHS for q in w.questions]
TOLD = ("right", "slip", "near", "wrong", "open", "unreadable")
# factors at which a number is wrong, with a word that may name why
FACTORS = {
    **{2: "both ways", 0.5: "one way", 3: "forward", 1 / 3: "forward", 8: "eight", 1 / 8: "eight"},
    **{1000: "", 1e-3: "", 1e6: "", 1e-6: "", 1e9: "", 16: "", 24: "", 1 / 24: "", 60: ""},
    **{1 / 60: "", 3600: "", 1 / 3600: "", 1e12: "", 1.9: "", 7.0: "", 1 / 7.0: ""},
}
# and what has it: bytes travel both ways, training goes forward and backward, nodes hold devices;
# a memory's size has no ways, a time between failures no backward pass
MADE_OF = {"both ways": SENT, "one way": SENT, "forward": WORK, "eight": FLEET}
EMPTY = ("", "   ", [], None)
NO_NUMBER = (
    "many",
    "?",
    "[1, 2]",
    "1.2.3",
    "nan",
    "inf",
    "1e999",
    "1/0",
    "((",
    True,
    {"a": 1},
    "x" * 900,
)


def of_kind(kind):
    some = [(w, q) for w, q in QUESTIONS if isinstance(q, kind)]
    return pytest.mark.parametrize(("w", "q"), some, ids=[f"{w.number}.{q.id}" for w, q in some])


def told(q, answer):
    """The verdict, which is one of the known ones and never an exception; words but for silence."""
    verdict = grade(q, answer)
    assert verdict.status in TOLD
    assert 0.0 <= verdict.credit <= 1.0
    assert verdict.says or answer is None
    assert "Right Right" not in verdict._repr_html_().replace("\n", " ")
    return verdict


@of_kind(Number)
def test_thirty_wrong_numbers_are_graded_rightly(w, q):
    kinds = 0
    right = float(q.expected) / q.scale
    slips = [slip.value / q.scale for slip in q.slips]
    for answer in EMPTY:
        kinds += 1
        assert told(q, answer).status == "open"
        assert "Type an answer" in grade(q, answer).says or answer is None
    for answer in NO_NUMBER:
        kinds += 1
        assert told(q, answer).status == "unreadable", answer
    for factor, word in FACTORS.items():
        if max(factor, 1 / factor) <= q.within or math.isclose(right * factor, right):
            continue
        kinds += 1
        verdict = told(q, right * factor)
        assert not verdict.right, factor
        listed = any(abs(math.log(abs(right * factor / s))) < 0.1 for s in slips if s * right > 0)
        if verdict.status == "wrong" and not listed:
            assert ("high" if factor > 1 else "low") in verdict.says
            if word:
                named = MADE_OF[word] in q.made_of
                assert (word in verdict.says) == named, (factor, verdict.says)
            if not q.made_of:
                assert not re.search("way|forward|eight|bytes", verdict.says), verdict.says
        assert listed or verdict.status in ("slip", "wrong", "near")
    other = "GB" if dimension(q.unit) == "time" else "hours"
    for unit in (other, "apples"):
        if q.unit not in ("device-hours",):
            kinds += 1
            verdict = told(q, f"{right} {unit}")
            if verdict.status == "unreadable":
                assert "wanted in" in verdict.says
            else:
                assert not verdict.right or dimension(unit) == dimension(q.unit)
    for answer in (-right, 0):
        if right:
            kinds += 1
            assert not told(q, answer).right
    if q.within > 1:
        kinds += 1
        close = told(q, right * q.within**1.3)
        assert close.status in ("near", "slip"), close.says
    assert kinds >= 30


# how people write the letter of an option, and what none of them reads as
LETTERS = (
    *("{}", "({})", "{}.", "{})", " {} ", "option {}", "Option {}", "answer: {}", "{}?", "{}!"),
    *("maybe {}", "I think {}", "it is {}", "My answer is {}.", "{}, because it costs less"),
)
NO_OPTION = (
    *("zz", "none of them", "none", "all", "all of them", "both", "I do not know", "idk", "1", "2"),
    *("?", "##", "\n\n!", "…", "ü", "@", "yes", "no", "x, y", 5, 3.5, -1, True, {"x": 1}, [1, 2]),
)
AGAINST = ("not {}", "anything but {}", "{} is wrong", "everything except {}", "never {}")


@of_kind(Choice)
def test_thirty_wrong_choices_are_graded_rightly(w, q):
    right = q.expected
    wanted, options = set(q.right), {o.key: o for o in q.options}
    for answer in EMPTY:
        verdict = told(q, answer)
        assert verdict.status == "open" and (answer is None or "Type an answer" in verdict.says)
    kinds = len(EMPTY)
    against = [text.format(min(wanted)) for text in AGAINST]
    several = [] if q.several else [f"{min(wanted)} or {x}" for x in options.keys() - wanted]
    for answer in (*NO_OPTION, "a" * 300 + "?z", *against, *several):
        if any(o.text.lower().startswith(str(answer).strip()) for o in q.options):
            continue  # "none of them" is an answer where an option says so
        kinds += 1
        verdict = told(q, answer)
        assert verdict.status == "unreadable" and "wanted" in verdict.says, answer
        assert all(key in verdict.says for key in options)
    for key in sorted(options.keys() - wanted):
        own = options[key].text
        start = own[:-1] if len(own) > 8 else own
        for answer in (*(text.format(key) for text in LETTERS), key.upper(), own, start):
            kinds += 1
            verdict = told(q, answer)
            assert verdict.status == "slip" and verdict.credit == 0.0, answer
            assert verdict.question.options[verdict.slip].key == key
            assert options[key].says in verdict.says, "told why, not only that"
    for n in range(1, 2 ** len(options)) if q.several else ():
        picked = {key for i, key in enumerate(options) if n >> i & 1}
        if picked == wanted:
            continue
        kinds += 1
        verdict = told(q, sorted(picked))
        assert not verdict.right and verdict.credit < 1
        assert all(f"**{key}** does not belong" in verdict.says for key in picked - wanted)
        if not picked - wanted and 2 * len(picked) < len(wanted):
            assert verdict.status == "wrong", "one of five is no near miss"
    assert kinds >= 30
    if not q.several:
        assert all(told(q, text.format(right)).right for text in LETTERS)
    assert told(q, sorted(wanted) if q.several else right).right


@of_kind(Explain)
def test_explanations_that_say_nothing_get_nothing(w, q):
    words = "because it just is so and everybody knows that very well by now"
    said = [" ".join(words.split()[:n]) for n in range(1, 13)]
    said += [f"{word}!" for word in words.split()] + ["?", "42", "lorem ipsum", "…", "no", "yes"]
    graded = [told(q, text) for text in said]
    assert len(graded) >= 30
    assert all(v.status == "wrong" and v.credit == 0.0 for v in graded)
    for answer in EMPTY:
        assert told(q, answer).status == "open"
    assert told(q, right_answer(q)).right


@of_kind(Plan)
def test_wrong_plans_are_graded_rightly(w, q):
    kinds = 0
    for answer in EMPTY:
        assert told(q, answer).status == "open"
    names = q.names
    text = [
        "fast",
        "?",
        "tp",
        "pp=",
        "8 8 8 8 8 8 8",
        "none",
        "best",
        "auto",
        "1.5",
        "--",
        "tp eight",
    ]
    part = [{n: 1 for n in names[:-1]}, {}, {names[0]: 8}, {"zz": 4}, {n: None for n in names}]
    for answer in (*text, *part):
        kinds += 1
        assert told(q, answer).status == "unreadable", answer
    for degree in (0, -1, 3, 5, 7, 11, 13, 1_000_000, "x", 2.5, [1], None, 10**30, True):
        kinds += 1
        verdict = told(q, {name: degree for name in names})
        assert not verdict.right, degree
    assert kinds >= 30
