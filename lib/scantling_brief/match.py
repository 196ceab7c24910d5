"""One match of a rule: the words, and what stands in its groups."""

import re
from math import isfinite

from scantling.base.errors import DesignError

from .units import SCALES


class Match:
    """A match, with readers of its numbers and words."""

    def __init__(self, match: re.Match[str]) -> None:
        self.words = match.group(0).strip(" \t\n,.;:")
        self._groups: dict[str, str | None] = match.groupdict()

    def text(self, group: str) -> str:
        """What stands in a group; empty where it took no part in the match."""
        return self._groups.get(group) or ""

    def number(self, group: str, thousand: float = 1e3) -> float | None:
        """A number with its scale: 175B, 1.5 trillion, 1e12; None where there is none. Raises
        DesignError for one that is not finite."""
        digits = self.text(group)
        if not digits:
            return None
        scale = self.text(f"{group}_s").strip().lower()
        times = thousand if scale == "k" else SCALES.get(scale, 1.0)
        value = float(digits.replace(",", "")) * times
        if not isfinite(value):
            raise DesignError(
                "text", self.words, "a number such as 1.5e12", problem="is not a finite number"
            )
        if value == round(value) and abs(value) < 1e18:
            return round(value)
        return float(f"{value:.15g}")

    def whole(self, group: str, thousand: float = 1000) -> int | None:
        """A whole number, None where there is none. Raises DesignError for another."""
        value = self.number(group, thousand)
        if value is None:
            return None
        if value != int(value):
            raise DesignError("text", self.words, "a whole number", problem="is not a whole number")
        return int(value)

    def devices(self, group: str) -> int:
        """A count of devices: 16K are 16,384, as the field says it; 100K are 100,000."""
        digits = float(self.text(group).replace(",", ""))
        power_of_two = digits.is_integer() and int(digits) & (int(digits) - 1) == 0
        return self.whole(group, 1024 if power_of_two else 1000) or 0

    def plain(self, group: str = "v") -> float:
        """A number without a scale."""
        return float(self.text(group).replace(",", ""))
