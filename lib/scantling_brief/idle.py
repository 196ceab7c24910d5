"""Words that set nothing, and words that turn round what follows."""

from collections.abc import Iterable
from functools import cache

from scantling.base.files import table


@cache
def idle() -> frozenset[str]:
    """Words that set nothing; never a negation or a bound."""
    groups: dict[str, str] = table(__file__, "words")["idle"]
    return frozenset(word for words in groups.values() for word in words.split())


@cache
def _ordinary() -> frozenset[str]:
    """Words of ordinary talk, without their endings."""
    groups: dict[str, str] = table(__file__, "words")["ordinary"]
    return frozenset(word for words in groups.values() for word in words.split())


_ENDINGS = ("ing", "ed", "es", "ly", "s", "d", "y", "'s", "’s")


def is_idle(word: str) -> bool:
    """Whether a word, in lower case, sets nothing: as it stands, or as a form of an ordinary one
    (talk: talks, talking; try: tried; plan: planned; make: making)."""
    if word in idle() or word in _ordinary():
        return True
    stems = {word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending)}
    stems |= {f"{stem[:-1]}y" for stem in stems if stem.endswith("i")}
    stems |= {stem[:-1] for stem in stems if stem[-2:-1] and stem[-1] == stem[-2]}
    stems |= {f"{stem}e" for stem in stems}
    return bool(stems & _ordinary())


@cache
def turning() -> frozenset[str]:
    """Words that turn round or bound what follows: alone they take it out of the reading."""
    return frozenset(table(__file__, "words")["turning"].split())


def words_beside(paths: Iterable[str]) -> frozenset[str]:
    """Words that say nothing of their own beside these fields: labels of each or of its section."""
    groups: dict[str, str] = table(__file__, "words")["beside"]
    names = {name for path in paths for name in (path, path.partition(".")[0])}
    return frozenset(word for name in names & groups.keys() for word in groups[name].split())


@cache
def organisations() -> frozenset[str]:
    """Names of laboratories, companies and machines."""
    return frozenset(table(__file__, "names")["organisations"].split())
