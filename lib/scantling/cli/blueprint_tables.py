"""The blueprint in a terminal: each part as tables. Units come from the names of the keys."""

from __future__ import annotations

from numbers import Number

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..base.errors import plain
from ..base.show import shown

_SUFFIXES = (
    ("_bytes_per_s", "bytes_per_s"),
    ("_bytes_per_day", "bytes"),
    ("_bytes", "bytes"),
    ("_usd", "usd"),
    ("usd_per_month", "usd"),
    ("usd_per_run", "usd"),
    ("_days", "days"),
    ("_flops", "flops"),
    ("_s", "seconds"),
    ("_w", "watts"),
)
_KINDS = {
    "usd": "usd", "days": "days", "seconds": "seconds", "load": "share", "likelihood": "share", "score": "share", "stake": "share", "share": "share", "running": "share", "goodput": "share",
    "goodput_cost": "share", "goodput_in_place": "share", "goodput_requeued": "share", "gain": "share", "useful": "share", "usable": "share", "whole": "share", "fraction": "share", "node_down": "share",
    "cut": "share", "usd_per_day": "usd", "days_lost": "days", "usd_lost": "usd", "expected_days": "days", "expected_usd": "usd", "impact_days": "days", "impact_usd": "usd", "usd_cost": "usd", "usd_gain": "usd",
    "evict_slower_than": "share", "waits_unscreened": "share", "waits_screened": "share", "spread": "share", "mitigation_usd": "usd", "left_after_days": "days", "mfu": "share", "goodput_gain": "share", "goodput_lost_where_restarts_preempt": "share",
}  # fmt: skip
_UNITS = {
    "bytes/s": "bytes_per_s",
    "bytes": "bytes",
    "s": "seconds",
    "share": "share",
    "USD": "usd",
    "days": "days",
    "W": "watts",
    "bytes/s per device": "bytes_per_s",
    "bytes/s at least": "bytes_per_s",
    # fmt: skip
    "share of usable": "share",
    "FLOP/s": "flops",
    "FLOP/s per device": "flops",
    "FLOP/s at least": "flops",
    "s at most": "seconds",
}

# part: (title, path to the list, [(key, heading)]), in the order to print; what is not named here
# is printed by the plain rule
_TABLES = {
    "scheduler": (
        ("What is at stake", "criteria", (("what", "the scheduler"), ("stake", "of the run"), ("why", "because"))),
        ("Options", "options", (("name", ""), ("usable", "usable"), ("score", "keeps"), ("control_planes", "control planes"), ("most_nodes", "most nodes"), ("against", "against it"))),
        ("Health checks", "health_checks", (("check", ""), ("when", "when"), ("threshold", "threshold"), ("unit", ""), ("on_fail", "else"))),
        ("Waiting for a share of a busy cluster", "queue.waits", (("fraction", "of the nodes"), ("wait_in_mean_jobs", "mean run times of the others"), ("wait_preempting_s", "at most, preempting"))),
        ("Blocks", "queue.fragments", (("block_nodes", "nodes"), ("spare_nodes", "of them spare"), ("whole", "whole"), ("usable", "usable"))),
        ("From paid to useful", "queue.chain", (("stage", ""), ("share", "share"), ("running", "left"))),
    ),
    "stores": (
        ("Needs", "needs", (("tier", "tier"), ("what", ""), ("needed", "needed"), ("has", "the design has"), ("load", "load"), ("why", "because"))),
        ("Candidates", "candidates", (("tier", "tier"), ("name", ""), ("sold_by", "sold by"), ("meets", "meets"), ("pieces", "pieces"), ("piece", ""), ("misses", "misses"), ("unknown", "not published"), ("usd_per_month", "a month"))),
    ),
    "domains": (
        ("Failure domains", "rows", (("id", ""), ("devices", "devices"), ("nodes", "nodes"), ("replicas_stalled", "replicas stalled"), ("events_per_run", "a run"), ("at_most_per_run", "at most"), ("loss_s", "loss"), ("wait_s", "wait"), ("goodput_cost", "goodput"),
                                     ("usd_lost", "cost"), ("recovers", "brought back by"))),
    ),
    "risks": (
        ("Risks, dearest first", "rows", (("risk", ""), ("likelihood", "likelihood"), ("impact_days", "impact"), ("impact_usd", ""), ("expected_usd", "expected"), ("mitigation", "mitigation"), ("pays", "pays"), ("owner", "owner"))),
        ("How they were evaluated", "rows", (("id", ""), ("evidence", ""), ("likelihood_from", "likelihood from"))),
    ),
    "rollout": (
        ("Burn-in", "burn_in", (("id", ""), ("tool", "with"), ("expected", "expected"), ("evict_below", "evict below"), ("ratio", "ratio"), ("rounds", "rounds"), ("seconds", "takes"), ("why", "because"))),
        ("Alerts", "alerts", (("board", ""), ("metric", ""), ("normal", "normal"), ("beyond", ""), ("threshold", "threshold"), ("unit", ""), ("for_s", "for"), ("level", ""), ("action", "then"))),
        ("Drills", "drills", (("what", ""), ("copy", "copy"), ("expected_s", "expected"), ("pass_s", "passes below"), ("checks", "shows"))),
        ("Calendar", "calendar", (("what", ""), ("days", "takes"))),
    ),
    "evolution": (("What comes next", "changes", (("what", ""), ("figure", "figure"), ("breaks", "breaks"), ("mend", "mend"), ("confirm", "to be confirmed by an ML specialist"))),),
}  # fmt: skip
_LINES = {
    "scheduler": ("lines", "why", "queue.lines"),
    "stores": ("lines",),
    "domains": ("advice",),
    "risks": (),
    "rollout": ("screen.lines",),
    "evolution": (),
}
_ROWS, _COLUMNS = 24, 9


def show_parts(name: str, parts: dict, out: Console) -> None:
    """Print the named parts of a blueprint's plain data, one after the other."""
    out.print(Text(plain(name, 120), style="bold"))
    for part, data in parts.items():
        out.print()
        out.print(Text(part, style="bold underline"))
        if data is None:
            out.print(Text("none: the design is impossible"))
        elif part in _TABLES:
            _own(part, data, out)
        else:
            _any(data, out)


def _own(part: str, data: dict, out: Console) -> None:
    for path in _LINES[part]:
        for line in _at(data, path) or ():
            out.print(Text(f"· {plain(str(line), 400)}"))
    if part == "evolution":
        out.print(Text(f"· breaks first {plain(data['next'], 300)}"))
    if part == "risks" and data["harmless"]:
        out.print(Text("· harmless here: " + plain("; ".join(data["harmless"]), 600)))
    for title, path, columns in _TABLES[part]:
        _table(title, _at(data, path) or [], columns, out)
    if part == "scheduler":
        _pairs(
            "Request",
            {**data["request"]["gang"], **data["request"]["topology"], **data["request"]["fields"]},
            out,
        )
        _pairs("Spares", data["spares"], out)
        _pairs("Requeue", data["requeue"], out)
    if part == "rollout":
        for book in data["playbooks"]:
            out.print(
                Text(
                    (
                        f"\n{book['id']}: {shown(book['seconds'], 'seconds')}, "
                        f"{shown(book['usd'], 'usd')} each"
                    ),
                    style="bold",
                )
            )
            for line in (*book["signals"], *(f"{i}. {s}" for i, s in enumerate(book["steps"], 1))):
                out.print(Text(f"  {plain(str(line), 400)}"))
        _pairs("Watchdog on collectives", data["timeout"], out)
        _pairs("Collectives that survive", data["collectives"], out)
        _pairs("Numerical smoke test", data["smoke"], out)
        _pairs("On call", data["on_call"], out)


def _at(data, path: str):
    for key in path.split("."):
        data = (data or {}).get(key)
    return data


def _table(title: str, rows, columns, out: Console) -> None:
    if not rows:
        return
    grid = Table(
        box=None,
        pad_edge=False,
        header_style="dim",
        title=title,
        title_justify="left",
        title_style="bold",
    )
    for key, heading in columns:
        grid.add_column(
            heading,
            overflow="fold",
            justify="right"
            if all(
                isinstance(r.get(key), Number | None) and not isinstance(r.get(key), bool)
                for r in rows
            )
            else "left",
        )
    for row in rows[:_ROWS]:
        grid.add_row(*(cell(key, row.get(key), row.get("unit")) for key, _ in columns))
    out.print()
    out.print(grid)
    if len(rows) > _ROWS:
        out.print(Text(f"and {len(rows) - _ROWS} more: --json has them", style="dim"))


def _pairs(title: str, data: dict, out: Console) -> None:
    grid = Table(
        box=None,
        pad_edge=False,
        show_header=False,
        title=title,
        title_justify="left",
        title_style="bold",
    )
    grid.add_column()
    grid.add_column(overflow="fold")
    for key, value in data.items():
        if isinstance(value, list) and value and isinstance(value[0], str):
            for i, line in enumerate(value):
                grid.add_row(key.replace("_", " ") if i == 0 else "", plain(line, 300))
        elif (
            value is not None
            and value != ""
            and not (isinstance(value, list) and value and isinstance(value[0], dict))
        ):
            grid.add_row(key.replace("_", " "), cell(key, value))
    out.print()
    out.print(grid)


def _any(data: dict, out: Console) -> None:
    """A part with no tables of its own: lists of mappings as tables, lists of texts as lines, the
    rest as pairs."""
    pairs = {}
    for key, value in data.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            columns = [k for k in value[0] if not isinstance(value[0][k], dict | list)][:_COLUMNS]
            _table(key.replace("_", " "), value, [(k, k.replace("_", " ")) for k in columns], out)
        elif isinstance(value, list) and value and isinstance(value[0], str):
            for line in value:
                out.print(Text(f"· {plain(line, 400)}"))
        elif isinstance(value, dict):
            flat = {k: v for k, v in value.items() if not isinstance(v, dict | list)}
            if flat:
                _pairs(key.replace("_", " "), flat, out)
        else:
            pairs[key] = value
    if pairs:
        _pairs("", pairs, out)


def cell(key: str, value, unit: str | None = None) -> str:
    """One value as people read it: the unit of the row where it has one, else the one that the
    key's ending names."""
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        if {"now", "then"} <= value.keys():
            return (
                f"{value['name']} {cell('', value['now'], value['unit'])} → "
                f"{cell('', value['then'], value['unit'])}"
            )
        return ", ".join(f"{k} {cell(k, v)}" for k, v in value.items())
    if isinstance(value, list):
        if value and isinstance(value[0], dict) and "short_by" in value[0]:
            return ", ".join(f"{m['what']} by {shown(m['short_by'], 'ratio')} times" for m in value)
        return plain("; ".join(str(v) for v in value[:2]), 240)
    if isinstance(value, Number):
        kind = _kind(key, unit)
        whole = kind == "plain" and value == value and abs(value) < 1e6 and value == int(value)
        return f"{int(value):,}" if whole else shown(value, kind)
    return plain(str(value), 400)


def _kind(key: str, unit: str | None) -> str:
    if unit in _UNITS and key in (
        "",
        "needed",
        "has",
        "expected",
        "evict_below",
        "normal",
        "threshold",
    ):
        return _UNITS[unit]
    if key in _KINDS:
        return _KINDS[key]
    return next((kind for ending, kind in _SUFFIXES if key.endswith(ending)), "plain")
