"""Words that no rule read: which of them look as if they decided something. Those are asked about;
a planner that passes over them answers another question."""

import re
from difflib import get_close_matches

from scantling import catalogue
from scantling.base.records import Lines
from scantling.catalogue.models.entries import entries

from .idle import is_idle, organisations, turning, words_beside
from .notes import TURNED, UNUSED, Notes
from .spelling import HAN
from .topics import Topic

_QUANTITY = "no field takes it: what does it say of the run?"
NO_MODEL = "no model of the catalogue is called so: which is meant, or is a size alone enough?"
NO_CHIP = "no accelerator of the catalogue is called so: which is meant?"
_PLAN = "no field takes it: which setting of the plan is meant?"
_WORDS = "no rule reads it: does it change what is planned, and which field says so?"

# stems of words that settle a plan, a limit or a machine wherever they stand
_PLAN_WORDS = re.compile(
    r"paralleli|ulysses|sharded|off-?load|recomput|interleav|mtbf|dropless|tflops?|pflops?"
    r"|-parallel\b|sequence-parallel|megabatch",
    re.IGNORECASE,
)
SAME_SIZE = 0.1  # of a size that is rounded to billions
_DIGIT = re.compile(r"\d")
_NAMES = re.compile(r"[a-z]|\d{4}", re.IGNORECASE)  # what a chip may be called by: no 10, no 20 %


def ask_about(notes: Notes) -> None:
    """Move what decides from the ignored words of a line to those that are asked about."""
    kept = []
    for read in notes.ignored:
        words = read.words
        if read.why == UNUSED and _decides(words):
            question, choices = _question(words)
            notes.ask(words, question, choices)
        elif read.why == TURNED and _decides(words):
            notes.ask(words, TURNED)
        else:
            kept.append(read)
    notes.ignored[:] = kept


def ask_about_rest(notes: Notes) -> None:
    """Ask about every word that no rule read and that is not idle: a line may hang on it. Words
    that only label a field are read where it is set, names of organisations and of machines where
    model and accelerator are."""
    names = notes.fields.keys() | notes.facts.keys()
    if notes.either:
        names |= {"comparison", *(either.path for either in notes.either)}
    if any(asked.topic is Topic.SLOW for asked in notes.questions):
        names.add("measured")
    if any(asked.topic is Topic.SENSITIVITY for asked in notes.questions):
        names.add("sensitivity")
    if any(asked.topic is Topic.SPARES for asked in notes.questions):
        names.add("goodput")
    if isinstance(notes.fields.get("model"), str) and "model" not in notes.as_given:
        names.add("named model")
    asked = {choice.partition(":")[0] for unread in notes.unread for choice in unread.choices}
    known = words_beside(names | asked)
    if "cluster.accelerator" in notes.fields and any(
        path.startswith("model") for path in notes.fields
    ):
        known |= organisations()
    kept = []
    for read in notes.ignored:
        words = [
            word for word in re.findall(r"[^\s,;:()]+", read.words) if word.lower() not in known
        ]
        if read.why == UNUSED and words:
            notes.ask(read.words, *_question(read.words))
        elif read.why == TURNED and not all(map(_says_nothing, map(str.lower, words))):
            notes.ask(read.words, TURNED)
        else:
            kept.append(read)
    notes.ignored[:] = kept


def _says_nothing(word: str) -> bool:
    return is_idle(word) or word in turning()


def _decides(words: str) -> bool:
    return bool(_DIGIT.search(words) or _PLAN_WORDS.search(words) or HAN.search(words))


def _question(words: str) -> tuple[str, Lines]:
    """What has to be answered about unread words, and what may be meant."""
    models = near_models(words)
    if models:
        return NO_MODEL, models
    chips = near_chips(words, 0.75)
    if chips and _NAMES.search(words):
        return NO_CHIP, chips
    if _DIGIT.search(words):
        return _QUANTITY, ()
    return (_PLAN if _PLAN_WORDS.search(words) else _WORDS), ()


def near_models(words: str, cutoff: float = 0.75) -> Lines:
    """Models of the catalogue that are spelt like some words."""
    names = {name: row.id for row in entries().values() for name in (row.id, *row.aliases)}
    key = "-".join(words.lower().split())
    return tuple(dict.fromkeys(names[name] for name in get_close_matches(key, names, 5, cutoff)))


def named_so(words: str) -> str | None:
    """The model of the catalogue whose name some words are; None where none is called so."""
    names = {_flat(name): row.id for row in entries().values() for name in (row.id, *row.aliases)}
    return names.get(_flat(words))


def _flat(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name.lower())


def near_models_of(maker: str, size: float | None) -> Lines:
    """Models of the catalogue by a maker's name; of these the ones of a size, where some have it.
    None where no row bears the name."""
    key = "".join(re.findall(r"[a-z]+", maker.lower().split()[0]))
    kin = [id for id in entries() if id.startswith(key)]
    so_called = [id for id in kin if size and f"{size / 1e9:g}b" in id.split("-")]
    of_size = so_called or [id for id in kin if size and has_size(id, size)]
    return tuple(of_size or kin)[:8]


def has_size(id: str, size: float) -> bool:
    """Whether a model of the catalogue has about so many parameters."""
    return abs(entries()[id].published_params / size - 1) < SAME_SIZE


def near_chips(words: str, cutoff: float = 0.3) -> Lines:
    """Accelerators of the catalogue that are spelt like some words, those of one generation or
    beginning before the others."""
    key = re.sub(r"[^a-z0-9]", "", words.lower())
    rows = [row for row in catalogue.accelerators().values() if not row.unpublished]
    kin = [
        row.id
        for row in rows
        if row.family == key or key.startswith((row.die, row.family)) and row.die
    ]
    names = {
        re.sub(r"[^a-z0-9]", "", name): row.id for row in rows for name in (row.id, *row.aliases)
    }
    letters = re.match(r"[a-z]+", key)
    begin = [id for name, id in names.items() if letters and name.startswith(letters[0])]
    close = [names[name] for name in get_close_matches(key, names, 5, cutoff)]
    return tuple(dict.fromkeys([*kin, *close, *begin]))[:6]
