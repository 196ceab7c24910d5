"""The blueprint in a terminal: each part as tables, lines and pairs. Units come from the names of
the keys."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Number
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text
from scantling.base.errors import plain
from scantling.base.show import (
    bytes_per_s,
    days,
    flops,
    rate,
    ratio,
    seconds,
    share,
    shown,
    size,
    usd,
    watts,
)
from scantling.cli.tables import Look, bare

ROWS = 24
COLUMNS = 9
Data = Mapping[str, Any]  # a part as plain JSON data
Manner = Callable[[Any], str]


def show_parts(
    name: str, parts: Mapping[str, Data | None], out: Console, full: bool = False
) -> None:
    """Print the named parts of a blueprint's plain data, one after the other; `full`: all lines of
    the network, not its totals alone."""
    out.print(Text(plain(name, 120), style="bold"))
    for part, data in parts.items():
        out.print()
        out.print(Text(part, style="bold underline"))
        if data is None:
            out.print(Text("none: the design is impossible"))
            continue
        for piece in _part(part, data, full):
            out.print(piece)


def _part(part: str, data: Data, full: bool) -> Iterator[RenderableType]:
    """One part as it is laid out; one with no layout of its own, and the whole network, by the kind
    of its values."""
    layouts: dict[str, Callable[[Data], Iterator[RenderableType]]] = {
        "calendar": calendar,
        "scheduler": scheduler,
        "stores": stores,
        "recovery": recovery,
        "domains": domains,
        "risks": risks,
        "rollout": rollout,
        "evolution": evolution,
    }
    if part == "network" and not full:
        return network(data)
    return layouts.get(part, any_part)(data)


def calendar(data: Data) -> Iterator[RenderableType]:
    """Stretches of the run, passages between phases, what each phase asks."""
    yield from lines(data["lines"])
    yield from table(
        "From the first rack to the last token",
        data["entries"],
        {"what": "", "start_day": "from day", "days": "takes", "devices": "devices", "why": ""},
    )
    yield from table(
        "Between phases",
        data["passages"],
        {
            "phase": "to",
            "changes": "changes",
            "compatible": "readable",
            "parts": "parts",
            "seconds": "takes",
            "usd": "costs",
            "layout_s": "of it the layout",
            "layout_usd": "costs",
            "why": "because",
        },
    )
    yield from table(
        "What each phase asks",
        data["demands"],
        {"phase": "", "network_share": "waits for the network", "read_bytes_per_s": "reads"},
    )


def network(data: Data) -> Iterator[RenderableType]:
    """The totals of the network and the rule that chose it."""
    yield from sentence("", data["rule"])
    yield from table("Network", data["totals"], {"what": "", "amount": "", "unit": ""})


def scheduler(data: Data) -> Iterator[RenderableType]:
    """The choice, what is at stake, the options, checks, waiting, and the request."""
    queue = data["queue"]
    yield from lines(data["lines"])
    yield from lines(data["why"])
    yield from lines(queue["lines"])
    yield from table(
        "What is at stake",
        data["criteria"],
        {"what": "the scheduler", "stake": "of the run", "why": "because"},
    )
    yield from table(
        "Options",
        data["options"],
        {
            "name": "",
            "usable": "usable",
            "score": "keeps",
            "control_planes": "control planes",
            "most_nodes": "most nodes",
            "against": "against it",
        },
    )
    yield from table(
        "Health checks",
        data["health_checks"],
        {"check": "", "when": "when", "threshold": "threshold", "unit": "", "on_fail": "else"},
    )
    yield from table(
        "Waiting for a share of a busy cluster",
        queue["waits"],
        {
            "fraction": "of the nodes",
            "wait_in_mean_jobs": "mean run times of the others",
            "wait_preempting_s": "at most, preempting",
        },
    )
    yield from table(
        "Blocks",
        queue["fragments"],
        {
            "block_nodes": "nodes",
            "spare_nodes": "of them spare",
            "whole": "whole",
            "usable": "usable",
        },
    )
    yield from table(
        "From paid to useful", queue["chain"], {"stage": "", "share": "share", "running": "left"}
    )
    request = data["request"]
    yield from pairs("Request", {**request["gang"], **request["topology"], **request["fields"]})
    yield from pairs("Spares", data["spares"])
    yield from pairs("Requeue", data["requeue"])


def stores(data: Data) -> Iterator[RenderableType]:
    """The corpus, what each tier must carry, what the market has."""
    yield from lines(data["lines"])
    yield from sentence("ingest of the phase that reads most: ", data["phase"])
    yield from table(
        "The corpus, from raw bytes to shards",
        data["corpus"]["stages"],
        {
            "stage": "",
            "bytes_in": "in",
            "bytes_out": "out",
            "core_hours": "core-hours",
            "days": "takes",
            "usd": "costs",
        },
    )
    yield from table(
        "Needs",
        data["needs"],
        {
            "tier": "tier",
            "what": "",
            "needed": "needed",
            "has": "the design has",
            "load": "load",
            "why": "because",
        },
    )
    yield from table(
        "Candidates",
        data["candidates"],
        {
            "tier": "tier",
            "name": "",
            "sold_by": "sold by",
            "meets": "meets",
            "pieces": "pieces",
            "piece": "",
            "misses": "misses",
            "unknown": "not published",
            "usd_per_month": "a month",
        },
    )


def recovery(data: Data) -> Iterator[RenderableType]:
    """The ladder of measures, a first start, running on with fewer replicas."""
    yield from lines(data["lines"])
    yield from table(
        "The ladder: goodput with each measure and all before it",
        data["ladder"],
        {
            "measure": "",
            "own": "this job",
            "at_100k": "100,000",
            "at_300k": "300,000",
            "at_1m": "1,000,000",
            "why": "because",
        },
    )
    yield from table(
        "Time to the first step",
        data["starts"],
        {
            "devices": "devices",
            "scheduler_s": "placement and image",
            "imports_s": "imports",
            "communicators_s": "communicators",
            "compile_s": "compilation",
            "load_s": "reading the state",
            "total_s": "in all",
        },
    )
    yield from table(
        "Replicas that lose a node each",
        data["elastic"],
        {
            "lost": "lost",
            "choice": "best",
            "dp": "replicas left",
            "micro_batches": "micro-batches",
            "ratio": "step, times",
            "memory_bytes": "memory",
            "fits": "fits",
            "shrink_loss_s": "running on loses",
            "wait_loss_s": "waiting loses",
            "break_even_s": "waiting is better below",
        },
    )


def domains(data: Data) -> Iterator[RenderableType]:
    """What fails together."""
    yield from lines(data["advice"])
    yield from table(
        "Failure domains",
        data["rows"],
        {
            "id": "",
            "devices": "devices",
            "nodes": "nodes",
            "replicas_stalled": "replicas stalled",
            "events_per_run": "a run",
            "at_most_per_run": "at most",
            "each_s": "each loses",
            "days_lost": "in all",
            "goodput_cost": "goodput",
            "usd_lost": "cost",
            "recovers": "brought back by",
        },
    )


def risks(data: Data) -> Iterator[RenderableType]:
    """The register, and how each row was evaluated."""
    yield from sentence("harmless here: ", "; ".join(data["harmless"]))
    yield from table(
        "Risks, the most expensive first",
        data["rows"],
        {
            "risk": "",
            "likelihood": "likelihood",
            "impact_days": "impact",
            "impact_usd": "",
            "expected_usd": "expected",
            "mitigation": "mitigation",
            "pays": "pays",
            "owner": "owner",
        },
    )
    yield from table(
        "How they were evaluated",
        data["rows"],
        {"id": "", "evidence": "", "likelihood_from": "likelihood from"},
    )


def rollout(data: Data) -> Iterator[RenderableType]:
    """Burn-in, alerts, drills, playbooks, who is called."""
    yield from lines(data["screen"]["lines"])
    yield from table(
        "Burn-in",
        data["burn_in"],
        {
            "id": "",
            "tool": "with",
            "expected": "expected",
            "evict_below": "evict below",
            "ratio": "ratio",
            "rounds": "rounds",
            "seconds": "takes",
            "why": "because",
        },
    )
    yield from table(
        "Alerts",
        data["alerts"],
        {
            "board": "",
            "metric": "",
            "normal": "normal",
            "beyond": "",
            "threshold": "threshold",
            "unit": "",
            "for_s": "for",
            "level": "",
            "action": "then",
        },
    )
    yield from table(
        "Drills",
        data["drills"],
        {
            "what": "",
            "copy": "copy",
            "expected_s": "expected",
            "pass_s": "passes below",
            "checks": "shows",
        },
    )
    yield from table("Calendar", data["calendar"], {"what": "", "days": "takes"})
    for book in data["playbooks"]:
        yield from playbook(book)
    yield from pairs("Watchdog on collectives", data["timeout"])
    yield from pairs("Collectives that survive", data["collectives"])
    yield from pairs("Numerical smoke test", data["smoke"])
    yield from pairs("On call", data["on_call"])


def playbook(book: Data) -> Iterator[RenderableType]:
    """Signals and steps, with what one occurrence costs."""
    head = f"\n{book['id']}: {seconds(book['seconds'])}, {usd(book['usd'])} each"
    yield Text(head, style="bold")
    yield from lines(book["signals"], "  ")
    yield from lines([f"{i}. {step}" for i, step in enumerate(book["steps"], 1)], "  ")


def evolution(data: Data) -> Iterator[RenderableType]:
    """What comes next, and what breaks first."""
    yield from sentence("breaks first ", data["next"])
    yield from table(
        "What comes next",
        data["changes"],
        {
            "what": "",
            "figure": "figure",
            "breaks": "breaks",
            "mend": "mend",
            "confirm": "to be confirmed by an ML specialist",
        },
    )


def any_part(data: Data) -> Iterator[RenderableType]:
    """A part with no layout of its own: lists of mappings as tables, lists of texts as lines, the
    rest as pairs."""
    rest = {}
    for key, value in data.items():
        first = _first(value)
        name = _spoken(key)
        if isinstance(first, dict):
            heads = {k: _spoken(k) for k in list(_flat(first))[:COLUMNS]}
            yield from table(name, value, heads)
        elif isinstance(first, str):
            yield from lines(value)
        elif not isinstance(value, dict):
            rest[key] = value
        elif flat := _flat(value):
            yield from pairs(name, flat, "bytes" if key in IN_BYTES else None)
    if rest:
        yield from pairs("", rest)


def lines(texts: Iterable[str], mark: str = "· ") -> Iterator[Text]:
    """Texts, each on a line of its own."""
    return (Text(f"{mark}{plain(text, 600)}") for text in texts)


def sentence(head: str, text: str) -> Iterator[Text]:
    """A line of a head and a text; nothing where there is no text."""
    return lines([head + text] if text else [])


def table(title: str, rows: Sequence[Data], heads: Mapping[str, str]) -> Iterator[RenderableType]:
    """Rows by the columns that have a head; nothing where there are no rows."""
    if not rows:
        return
    looks = [
        Look(
            head,
            justify="right" if all(_is_number_or_none(row.get(key)) for row in rows) else "left",
            overflow="fold",
        )
        for key, head in heads.items()
    ]
    cells = [[cell(key, row.get(key), row.get("unit")) for key in heads] for row in rows[:ROWS]]
    yield from titled(title, cells, *looks)
    if len(rows) > ROWS:
        yield Text(f"and {len(rows) - ROWS} more: --json has them", style="dim")


def _is_number_or_none(value: Any) -> bool:
    return isinstance(value, Number | None) and not isinstance(value, bool)


def pairs(title: str, data: Data, unit: str | None = None) -> Iterator[RenderableType]:
    """Names and values, all in one unit where it is said, a text a line; what is empty or a table
    is left out."""
    rows = []
    for key, value in data.items():
        first = _first(value)
        name = _spoken(key)
        if isinstance(first, str):
            for i, text in enumerate(value):
                rows.append(["" if i else name, plain(text, 300)])
        elif value not in (None, "") and not isinstance(first, dict):
            rows.append([name, cell("" if unit else key, value, unit)])
    yield from titled(title, rows, Look(), Look(overflow="fold"))


def titled(title: str, rows: Sequence[Sequence[str]], *looks: Look) -> Iterator[RenderableType]:
    """A table under a bold title, an empty line above."""
    grid = bare(rows, *looks)
    grid.title = title
    grid.title_justify = "left"
    grid.title_style = "bold"
    yield ""
    yield grid


def _spoken(key: str) -> str:
    """A key in words, without the unit that its cells show."""
    for ending in ENDINGS:
        if ending.startswith("_") and key.endswith(ending):
            return key.removesuffix(ending).replace("_", " ")
    return key.replace("_", " ")


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else None


def _flat(value: Data) -> dict[str, Any]:
    return {k: v for k, v in value.items() if not isinstance(v, dict | list)}


def cell(key: str, value: Any, unit: str | None = None) -> str:
    """One value as people read it: the unit of the row where it has one, else the one that the
    key's ending names."""
    if value is None or isinstance(value, bool):
        return shown(value, "")
    if isinstance(value, dict):
        return _mapping(value)
    if isinstance(value, list):
        return _list(value)
    if isinstance(value, Number):
        return _number(value, manner(key, unit))
    return plain(value, 400)


def _mapping(value: Data) -> str:
    """A figure before and after, or the parts of a mapping by name."""
    if {"now", "then"} <= value.keys():
        now, then = (cell("", value[end], value["unit"]) for end in ("now", "then"))
        return f"{value['name']} {now} → {then}"
    return ", ".join(f"{k} {cell(k, v)}" for k, v in value.items())


def _list(value: Sequence[Any]) -> str:
    """What is missed and by how much, or the first two of several texts."""
    first = _first(value)
    if isinstance(first, dict) and "short_by" in first:
        return ", ".join(f"{miss['what']} by {ratio(miss['short_by'])} times" for miss in value)
    return plain("; ".join(str(v) for v in value[:2]), 240)


def _number(value: Any, of: Manner | None) -> str:
    """A number in its manner; a whole one without a manner has no decimals."""
    if of is not None:
        return of(value)
    if value == value and abs(value) < 1e6 and value == int(value):
        return f"{int(value):,}"
    return rate(value, "")


USD = (
    "usd",
    "usd_per_day",
    "usd_lost",
    "expected_usd",
    "impact_usd",
    "usd_cost",
    "usd_gain",
    "mitigation_usd",
)
DAYS = ("days", "days_lost", "expected_days", "impact_days", "left_after_days")
SECONDS = ("seconds", "save", "imports", "communicators", "read", "exchange")
SHARES = (
    "own",
    "at_100k",
    "at_300k",
    "at_1m",
    "load",
    "network_share",
    "likelihood",
    "score",
    "stake",
    "share",
    "running",
    "goodput",
    "goodput_cost",
    "goodput_in_place",
    "goodput_requeued",
    "gain",
    "useful",
    "usable",
    "whole",
    "fraction",
    "node_down",
    "cut",
    "evict_slower_than",
    "waits_unscreened",
    "waits_screened",
    "spread",
    "mfu",
    "goodput_gain",
    "goodput_lost_where_restarts_preempt",
)
IN_BYTES = ("checkpoint_parts",)  # mappings whose values are bytes
BYTES_OF = ("bytes_over_", "bytes_per_device")
ENDINGS: dict[str, Manner] = {  # of keys, in this order
    "bytes_in": size,
    "bytes_out": size,
    "_bytes_per_s": bytes_per_s,
    "_bytes_per_day": size,
    "_bytes": size,
    "_usd": usd,
    "usd_per_month": usd,
    "usd_per_run": usd,
    "_days": days,
    "_flops": flops,
    "_s": seconds,
    "_w": watts,
}
# keys that a row's own unit is of
IN_UNIT = ("", "needed", "has", "expected", "evict_below", "normal", "threshold")
UNITS: dict[str, Manner] = {
    "bytes/s": bytes_per_s,
    "bytes": size,
    "s": seconds,
    "share": share,
    "USD": usd,
    "days": days,
    "W": watts,
    "bytes/s per device": bytes_per_s,
    "bytes/s at least": bytes_per_s,
    "share of usable": share,
    "FLOP/s": flops,
    "FLOP/s per device": flops,
    "FLOP/s at least": flops,
    "s at most": seconds,
}


def manner(key: str, unit: str | None) -> Manner | None:
    """How the number under a key is shown: by the unit of its row, by its name, by the ending of
    its name; None where neither says."""
    if unit in UNITS and key in IN_UNIT:
        return UNITS[unit]
    if key in USD:
        return usd
    if key in DAYS:
        return days
    if key in SECONDS:
        return seconds
    if key in SHARES:
        return share
    if key == "bytes" or key.startswith(BYTES_OF):
        return size
    return next((of for ending, of in ENDINGS.items() if key.endswith(ending)), None)
