"""Words of a line that nobody has settled: nothing is worked out from a design that has some."""

from collections.abc import Sequence
from typing import Any

from ..base.errors import DesignError, plain
from .schema import UnreadWords

VERDICT = "not-checked"
SETTLED = "state it in the file and take its line out of unread, or confirm: [unread]"


class Unsettled(DesignError):
    """A design holds words that no field took: what is worked out from the rest could answer
    another question than the one that was asked."""

    exit = 3

    def __init__(self, title: str, unread: Sequence[UnreadWords]) -> None:
        self.title = title
        self.unread = tuple(unread)
        super().__init__("unread", problem="; ".join(self.lines()), allowed=SETTLED)

    def line(self) -> str:
        """The message: every word with its question, then what settles them."""
        return f"not checked: {plain('; '.join(self.lines()), 1500)}; {SETTLED}"

    def lines(self) -> list[str]:
        """A line of each: the words, what is asked, what may be meant."""
        return [words.line() for words in self.unread]

    def as_dict(self) -> dict[str, Any]:
        """What `design --json` prints of such a design."""
        return {
            "name": self.title,
            "verdict": VERDICT,
            "limits": [f"not checked: {line}" for line in self.lines()],
            "unread": [words.stated() for words in self.unread],
            "nearest_fixes": [],
        }
