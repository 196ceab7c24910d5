"""From a line of text to the fields of a design: what was read, from which words, and what those
words were taken to mean."""

from scantling.base.errors import DesignError, plain

from .decisive import ask_about_rest
from .facts_asked import (
    ask_about_comparisons,
    ask_about_questions,
    ask_about_tuning,
    read_measured,
    read_rates,
    read_worth,
)
from .facts_job import (
    read_base,
    read_batch,
    read_dates,
    read_engine,
    read_kind_of_method,
    read_offload,
    read_pace,
    read_past,
    read_rank,
    read_samples,
    read_tokens,
    read_trainer,
)
from .facts_machine import read_machine
from .facts_model import read_model, read_trillions
from .facts_money import read_budget, read_owned
from .grammar import scan
from .line import Reading, refusal
from .notes import Clash, Notes
from .question_commands import question_of

_EXAMPLE = "such as 175B MoE, 1024x A100 80GB, 1T tokens in 30 days"
LONGEST = 10_000
AMOUNTS = ("examples", "example_tokens", "epochs", "tokens_per_param")


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
    read_engine(notes)
    read_kind_of_method(notes)
    read_trainer(notes)
    read_base(notes)
    read_rank(notes)
    read_samples(notes)
    read_model(notes)
    read_machine(notes)
    read_rates(notes, text)
    read_measured(notes, text)
    read_batch(notes)
    read_offload(notes)
    read_trillions(notes)
    read_dates(notes)
    read_pace(notes)
    read_tokens(notes)
    read_past(notes)
    read_budget(notes)
    read_owned(notes)
    read_worth(notes)
    ask_about_questions(notes)
    ask_about_comparisons(notes)
    question = question_of(notes)
    ask_about_tuning(notes, question)
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
            notes.take_back(clash.path)
        notes.facts.pop(clash.path, None)
    notes.clashes.clear()


def _holds_something(notes: Notes) -> None:
    """Raises DesignError for a line without anything of a design."""
    if not notes.fields and not notes.facts.keys() - {"behind"}:
        raise refusal(
            allowed="a model, a machine or a job, " + _EXAMPLE, problem="holds nothing of a design"
        )


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
        raise refusal(allowed="the plan in words, " + _EXAMPLE, problem=problem)


def _contradiction(clash: Clash) -> DesignError:
    one = plain(str(clash.one), 40)
    two = plain(str(clash.two), 40)
    problem = f"gives {clash.path} twice: {one} and {two} ('{plain(clash.words, 60)}')"
    return refusal(problem=problem, allowed="one value")
