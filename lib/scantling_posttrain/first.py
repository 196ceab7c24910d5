"""What to find out first about a design that tunes a trained model: what is unknown, how to learn
it, and how far it moves a step, the most first."""

from scantling.base.records import record
from scantling.base.show import percent

from .posttrained import Posttrained

# how each input is learnt, by the word that a change of it begins with
HOW = {
    "mean response": "draw some hundred samples of the start on your prompts, and count tokens",
    "longest response": "the share of those samples that reach the cap",
    "longer tail": "the spread of the logarithms of their lengths",
    "padded sample": "count tokens of some hundred samples of the data",
}
STEP = "a step of this plan"
TIMED = "time ten steps after the first few on one replica"


@record
class Unknown:
    """Something unknown: how to learn it, and how much shorter and longer a step may be by it, as
    shares."""

    what: str
    how: str
    shorter: float
    longer: float

    @property
    def text(self) -> str:
        """It in a sentence."""
        return (
            f"{self.what}: {self.how}; a step {percent(self.shorter, 0)} shorter to "
            f"{percent(self.longer, 0)} longer by it"
        )


def to_find_out(result: Posttrained) -> list[Unknown]:
    """The inputs whose changes are worked out, and the step itself, by what they move."""
    if result.step_s is None or result.step_s_low is None or result.step_s_high is None:
        return []
    rows = [
        Unknown(
            what=STEP,
            how=TIMED,
            shorter=1 - result.step_s_low / result.step_s,
            longer=result.step_s_high / result.step_s - 1,
        )
    ]
    for word, how in HOW.items():
        shares = [one.share for one in result.sensitivity if one.change.startswith(word)]
        if shares:
            shorter, longer = max(-min(shares), 0.0), max(*shares, 0.0)
            rows.append(Unknown(what=word, how=how, shorter=shorter, longer=longer))
    rows = [row for row in rows if row.shorter + row.longer > 0]
    return sorted(rows, key=lambda row: -(row.shorter + row.longer))
