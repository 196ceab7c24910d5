"""What is said of a post-training design: a frozen record, and its JSON."""

from typing import Any

from scantling.base.json import clean
from scantling.base.records import Assumed, Known, Lines, record
from scantling.design.design import Design


@record
class Varied:
    """The step under one change of what the design says."""

    change: str
    step_s: float
    share: float  # longer than the design's, of it


@record
class Other:
    """Another layout or plan, and why it was not taken."""

    what: str
    step_s: float
    cost: str


@record
class Posttrained:
    """The answer to a post-training design; None where it has no plan, or no price, or no end."""

    design: Design
    name: str
    method: str
    verdict: str
    limits: Lines
    devices: int
    params: float
    trained_params: float
    plan: dict[str, Any] | None
    plan_words: str
    step_s: Known
    step_s_low: Known
    step_s_high: Known
    step_parts_s: dict[str, float]
    phases_s: dict[str, float]
    rollout: dict[str, Any] | None
    tokens_per_s_per_device: Known
    memory_bytes: dict[str, float]
    oom_probability: Known
    steps: Known
    days: Known
    days_low: Known
    days_high: Known
    cost_usd: Known
    cost_usd_low: Known
    cost_usd_high: Known
    goodput: Known
    mtbf_s: Known
    checkpoint_interval_s: Known
    checkpoint_bytes: Known
    legal_plans: int
    fitting_plans: int
    why: Lines
    others: tuple[Other, ...]
    sensitivity: tuple[Varied, ...]
    asks: Lines
    assumed: tuple[Assumed, ...]

    def as_dict(self) -> dict[str, Any]:
        """The JSON of `design --json`."""
        out: dict[str, Any] = {name: clean(value) for name, value in vars(self).items()}
        out["design"] = self.design.data()
        out["others"] = [clean(vars(one)) for one in self.others]
        out["sensitivity"] = [clean(vars(one)) for one in self.sensitivity]
        out["assumed"] = [one.as_dict() for one in self.assumed]
        out["likely"] = {"days": self.days, "cost_usd": self.cost_usd}
        return out
