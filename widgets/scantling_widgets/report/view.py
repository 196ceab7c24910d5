"""What the sections of a report speak of: an assessment as plain data, the resolved inputs that it
was made from, and the parts of its site."""

from collections.abc import Sequence
from json import dumps, loads
from re import sub
from typing import Any

import scantling_site as site
from scantling.advise.comparison import flat
from scantling.base.quantities import quantity as quantities
from scantling.base.quantities.quantity import Quantity, show
from scantling.base.records import at, record
from scantling.base.show import is_number, seconds, size, value_text
from scantling.design.cluster import Cluster
from scantling.design.design import Design
from scantling.design.resolved import Phase, Resolved
from scantling.endure.reliability import EnduranceFigures
from scantling.physics.communication import Traffic
from scantling.verdict.assessment import Assessment
from scantling.verdict.result import FigureKey, FixRow, PhaseRow, band_of, figure

from ..charts.figure import Facts
from ..quantity_texts import withheld
from .blocks import Tile

# limits, changes, risks and things to avoid on the first page; all of them are in the appendix
FRONT = 3
# the tiles on top: key of the figure, and its name
TILES: dict[FigureKey, str] = {
    "likely.days": "Days, likely",
    "promise.days_p90": "Days, to promise",
    "likely.cost_usd": "Cost, likely",
    "promise.cost_p90": "Cost, to promise",
    "mfu_shown": "MFU",
    "step_s": "Step",
    "memory_bytes.total": "Memory",
    "goodput": "Goodput",
}
# figures that the record of a report keeps
HEADLINE: tuple[FigureKey, ...] = (
    "verdict",
    "params",
    "devices_used",
    "step_s",
    "step_s_low",
    "step_s_high",
    "mfu",
    "mfu_low",
    "mfu_high",
    "mfu_shown",
    "mfu_basis",
    "oom_probability",
    "band_tier",
    "tokens_per_s_per_device",
    "bubble_fraction",
    "memory_bytes.total",
    "memory_bytes.capacity",
    "likely.days",
    "likely.days_low",
    "likely.days_high",
    "likely.cost_usd",
    "days",
    "days_low",
    "days_high",
    "goodput",
    "mtbf_s",
    "checkpoint_interval_s",
    "cost_usd",
    "energy_kwh",
)
# of the plan, in the table of a batch
PLAN_COLUMNS = ("tp", "pp", "vpp", "cp", "dp", "ep", "sharding", "micro_batch", "recompute")


class Parts(dict[str, Any]):
    """The parts of a site as plain data by name, each worked out when a section first asks for
    it."""

    def __init__(self, assessment: Assessment) -> None:
        super().__init__()
        self.assessment = assessment

    def __missing__(self, name: str) -> Any:
        part = site.part(self.assessment, name)
        self[name] = None if part is None else plain(part.as_dict())
        return self[name]


@record
class View:
    """One design, as its report sees it."""

    facts: Facts
    resolved: Resolved
    parts: Parts
    full: bool = False  # with all that is looked up rather than read
    rivals: Sequence[FixRow] = ()  # the two best designs beside this one

    @property
    def plan(self) -> dict[str, Any]:
        """The plan of the main phase; empty for an impossible design."""
        return {**(self.facts.get("plan") or {})}

    @property
    def endurance(self) -> EnduranceFigures:
        """How the run lives with failures; an impossible design has none."""
        return self.facts["endurance"]

    @property
    def cluster(self) -> Cluster:
        return self.resolved.cluster

    @property
    def job(self) -> Phase:
        return self.resolved.main_phase

    @property
    def tokens(self) -> float:
        """Of all phases; 0 where the design names none."""
        return sum(phase.tokens or 0 for phase in self.resolved.phases)

    @property
    def fits(self) -> bool:
        """Whether the plan fits into the memory of a device."""
        memory = self.facts["memory_bytes"]
        return bool(memory["total"] <= memory["capacity"])

    def why(self, axis: str) -> list[str]:
        """What the library says of an axis of the plan."""
        return [row["text"] for row in self.facts.get("why") or () if row["axis"] == axis]

    def traffic(self, axis: str) -> list[Traffic]:
        """What an axis of the plan sends."""
        return [row for row in self.facts.get("communication") or () if row["axis"] == axis]


def plain(data: Any) -> Any:
    """Numbers, text, lists and mappings alone, as JSON holds them; percentages in its sentences as
    the library shows them."""
    text = dumps(data, default=lambda x: x.tolist() if hasattr(x, "tolist") else str(x))
    return loads(sub(r"(?<=\d)%", " %", text))


def tile_name(key: FigureKey, data: Facts) -> str:
    """What a tile is called; of MFU, what it counts."""
    name = TILES[key]
    return f"{name}, {data['mfu_basis']} attention" if key == "mfu_shown" else name


def headline(data: Facts) -> list[Tile]:
    """The tiles on top: label, value, and the band or a remark below it."""
    tiles = []
    for key in TILES:
        value, below = figure(data, key), _below(key, data)
        if withheld(data, key):
            value, below = None, "does not fit"
        if value is not None or below:
            tiles.append(Tile(label=tile_name(key, data), value=show(key, value), band=below))
    return tiles


def _below(key: FigureKey, data: Facts) -> str:
    """What stands below a tile."""
    match key:
        case "memory_bytes.total":
            return f"of {size(data['memory_bytes']['capacity'])}"
        case "goodput":
            mtbf = figure(data, "mtbf_s")
            return "of wall time" + (f"; MTBF {seconds(mtbf)}" if mtbf else "")
        case "promise.days_p90" | "promise.cost_p90":
            return "nine runs of ten keep it" if figure(data, key) is not None else ""
    return band_of(data, key)


def fullest_phase(data: Facts) -> str:
    """The name of the phase whose memory the headline is, where there are several."""
    phases = data.get("phases") or []
    if len(phases) < 2:
        return ""
    return str(max(phases, key=lambda phase: float(phase["memory_bytes"]))["name"])


def carried(data: Facts, tier: str) -> str:
    """The axes that ride on a tier."""
    axes = {
        row["axis"].upper(): None
        for row in data.get("communication") or ()
        if row["bytes"] and row["tier"] == tier
    }
    return ", ".join(axes)


def stated_fields(design: Design) -> list[tuple[str, str]]:
    """The fields that the design file gives: (dotted path, value)."""
    return [
        (path, value_text(value))
        for path, value in flat(design.data()).items()
        if path not in ("scantling", "name")
    ]


_NOT_LISTED = ("search_", "plan.", "hidden_s.")


def appendix(data: Facts) -> list[tuple[Quantity, str]]:
    """The numbers of the assessment that have a formula of their own: (quantity, value as text)."""
    return [
        (quantity, show(key, at(data, key)))
        for key, quantity in quantities.table().items()
        if is_number(at(data, key)) and _listed(key, quantity, at(data, key))
    ]


def _listed(key: str, quantity: Quantity, value: float) -> bool:
    """Whether a number stands in the appendix: no word, no end of a band, no part that is nil."""
    if quantity.kind == "text" or quantity.formula.startswith("as "):
        return False
    if key.endswith(("_low", "_high")) or key.startswith(_NOT_LISTED):
        return False
    return bool(value) or not key.startswith("step_breakdown_s.")


def by_phase(data: Facts) -> list[PhaseRow]:
    """The phases, where there are several."""
    phases = list(data.get("phases") or ())
    return phases if len(phases) > 1 else []
