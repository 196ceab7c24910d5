"""Failures and what follows: recovery, the ladder, failure domains, risks, what to avoid, the
roll-out and what breaks next."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from markupsafe import Markup
from scantling.base.quantities.quantity import show
from scantling.base.show import chance, days, is_number, rate, seconds, several, share, size, usd
from scantling.base.units import DAY_S

from ...charts.endurance import shares
from ..blocks import (
    Block,
    Bullets,
    Column,
    Heading,
    Paragraph,
    Section,
    Table,
    bullets,
    columns,
    line,
    rows,
    strong,
)
from ..phrases import in_unit, nodes, sentence, set_by, upfirst, whole
from ..view import View
from .summary import impact, overrun

LADDER_FROM = 32_768  # devices in use from which on the recovery ladder is worth its room
LEAST = 0.001  # share of the wall time from which a failure domain is worth a line
ADVICE = 2  # lines on failure domains
RISKS = 6  # risks that are worth a line each
START_FROM = 1024  # devices from which on the first step takes long enough to be taken apart
_LADDER = {"own": "This job", "at_100k": "100,000", "at_300k": "300,000", "at_1m": "1,000,000"}
_START = {
    "scheduler_s": "Placement and image",
    "imports_s": "Imports",
    "communicators_s": "Communicators",
    "compile_s": "Compilation",
    "load_s": "Reading the state",
    "total_s": "In all",
}


def _events(n: float) -> str:
    """How often something happens."""
    return rate(n, "")


# ---------------------------------------------------------------- recovery
def recovery(view: View) -> Section:
    """Failures, checkpoints, restart, spares."""
    items = [_failures(view)]
    for item in (_causes(view), _checkpoint(view), _state(view), _restart(view), _spares(view)):
        if item is not None:
            items.append(item)
    for item in (_elastic(view), _first_step(view), _badput(view)):
        if item is not None:
            items.append(item)
    heading = Heading(text="Reliability and recovery")
    return Section(id="recovery", blocks=[heading, Bullets(items=items)])


def _failures(view: View) -> Markup:
    a, e = view.facts, view.endurance
    text = f" for the job on {show('devices_used', view.cluster.devices)}"
    failures = e.get("failures_per_1000_node_days")
    if failures:
        text += f", at {show('endurance.failures_per_1000_node_days', failures)}"
    if e.get("preset") == "explicit":
        text += " (given)"
    elif e.get("preset"):
        text += f" ({e['preset']} fleet)"
    goodput = strong(share(a["goodput"]))
    return line(strong(f"MTBF {seconds(a['mtbf_s'])}"), f"{text}; goodput ", goodput, ".")


def _causes(view: View) -> Markup | None:
    causes = view.endurance.get("failures_per_day")
    if not causes or view.facts["mtbf_s"] >= 30 * DAY_S:
        return None
    ordered = sorted(causes.items(), key=lambda item: float(item[1] or 0), reverse=True)
    texts = (
        f"{'SDC' if cause == 'sdc' else cause} {_events(times)}"
        for cause, times in ordered
        if times
    )
    return line(strong("Failures a day"), f": {', '.join(texts)}.")


def _checkpoint(view: View) -> Markup:
    a, e = view.facts, view.endurance
    by = f" ({set_by(e['interval_set_by'])})" if e.get("interval_set_by") else ""
    text = (
        f"{by}: {size(a['checkpoint_bytes'])} a copy, {seconds(e.get('checkpoint_stall_s'))} of "
        f"stall, safe after {seconds(e.get('checkpoint_durable_s'))}, overhead "
        f"{share(a['checkpoint_overhead'])}"
    )
    if e.get("young_s"):
        text += f"; Young {seconds(e['young_s'])}, Daly {seconds(e['daly_s'])}"
    interval = seconds(a["checkpoint_interval_s"])
    return line(strong(f"Asynchronous checkpoint every {interval}"), f"{text}.")


def _state(view: View) -> Markup:
    e = view.endurance
    text = ": weights, optimizer states, RNG states and dataloader position are one version"
    if e.get("retention"):
        text += f", {whole(e['retention'])} kept"
    if e.get("copies_survive"):
        text += f"; a copy survives the loss of a {e['copies_survive']}"
    return line(strong("Sharded state"), f"{text}.")


def _restart(view: View) -> Markup:
    e = view.endurance
    detect = f"{seconds(e['detect_s'])} to detect, " if e.get("detect_s") else ""
    lost = f", at most {seconds(e['lost_work_s'])} of work lost" if e.get("lost_work_s") else ""
    text = (
        f": {detect}{seconds(e.get('restart_s'))} to restart{lost}; ranks keep their coordinates "
        f"and the global batch of {whole(view.job.global_batch)} sequences is unchanged."
    )
    return line(strong("In-place gang restart"), text)


def _spares(view: View) -> Markup:
    a, e = view.facts, view.endurance
    text = f": {nodes(a['spares_recommended'])} recommended, {whole(a['spares'])} in the design"
    most = (e.get("spares_for") or {}).get("0.99")
    if most is not None:
        text += f", {whole(most)} for a {chance(0.99)} chance that a failure finds one"
    if e.get("repair_s"):
        text += f"; a failed node is back in {seconds(e['repair_s'])}"
    return line(strong("Hot spares"), f"{text}.")


def _elastic(view: View) -> Markup | None:
    """What to do about lost nodes: swap them, run on without a replica, or wait."""
    losses = view.parts["recovery"]["elastic"]
    if not losses:
        return None
    swaps = [row for row in losses if row["choice"] == "swap"]
    others = [row for row in losses if row["choice"] != "swap"]
    loss = others[0] if others else losses[-1]
    text = ": "
    if swaps:
        text += f"spares take up to {several(swaps[-1]['lost'], 'lost node')} at once; "
    text += _without_replicas(view, loss)
    if view.endurance.get("recovery") == "elastic":
        text += "; the goodput runs on"
    return line(strong("Swap, run on or wait"), f"{text}.")


def _without_replicas(view: View, loss: Mapping[str, Any]) -> str:
    p = view.plan
    gone = whole(p["dp"] - loss["dp"])
    if not loss["fits"]:
        return f"the plan without {gone} replicas does not fit: wait"
    return (
        f"without {gone} of {whole(p['dp'])} replicas {whole(loss['micro_batches'])} micro-batches "
        f"for {whole(p['grad_accum'])} keep the batch, step {loss['ratio']:.3g} times as long, "
        f"{size(loss['memory_bytes'])}: {seconds(loss['shrink_loss_s'])} lost against "
        f"{seconds(loss['wait_loss_s'])} of waiting, right below {seconds(loss['break_even_s'])}"
    )


def _first_step(view: View) -> Markup | None:
    parts = view.endurance.get("first_step_s")
    if not parts or view.cluster.devices < START_FROM:
        return None
    names = {"scheduler": "placement and image", "load": "reading the state"}
    texts = ", ".join(f"{names.get(part, part)} {seconds(time)}" for part, time in parts.items())
    return line(strong(f"First step after {seconds(sum(parts.values()))}"), f": {texts}.")


def _badput(view: View) -> Markup | None:
    lost = shares(view.facts)
    if not lost:
        return None
    texts = ", ".join(f"{part['name']} {share(part['share'])}" for part in lost)
    return line(strong("Where the rest of the wall clock goes"), f": {texts}.")


# ---------------------------------------------------------------- the ladder
def ladder(view: View) -> Section | None:
    """Goodput with one measure after the other, for jobs of many devices."""
    part = view.parts["recovery"]
    if view.facts["devices_used"] < LADDER_FROM or not part["ladder"]:
        return None
    measures = Table(
        columns=(
            Column(title="Goodput with this measure and all above it"),
            *(Column(title=title, number=True) for title in _LADDER.values()),
        ),
        rows=rows(
            [upfirst(rung["measure"]), *(share(rung[key]) for key in _LADDER)]
            for rung in part["ladder"]
        ),
        named=True,
        scoped=True,
    )
    starts = Table(
        columns=(
            Column(title="Time to the first step on devices"),
            *(Column(title=title, number=True) for title in _START.values()),
        ),
        rows=rows(
            [whole(row["devices"]), *(seconds(row[key]) for key in _START)]
            for row in part["starts"]
        ),
        named=True,
        scoped=True,
    )
    lines = Bullets(items=[sentence(text) for text in part["lines"]])
    heading = Heading(text="The recovery ladder")
    tables = [measures, starts] if view.full else []
    return Section(id="ladder", blocks=[heading, lines, *tables])


# ---------------------------------------------------------------- failure domains
def domains(view: View) -> Section | None:
    """What each failure takes out, how often, and what it costs."""
    part = view.parts["domains"]
    if not part:
        return None
    rows_shown = part["rows"]
    if not view.full:  # those that cost goodput
        rows_shown = [row for row in rows_shown if (row["goodput_cost"] or 0) >= LEAST]
    items = [_domain(row) for row in rows_shown]
    if len(rows_shown) < len(part["rows"]):
        others = ", ".join(
            row["id"].replace("-", " ") for row in part["rows"] if row not in rows_shown
        )
        items.append(
            line(
                strong("Others"),
                f": {others}: below {share(LEAST)} of the wall time each, or no published rate.",
            )
        )
    if not part["run"]["of_the_run"]:
        counted = strong(f"Counted over {days(part['run']['days'])}")
        items.append(line(counted, ", since the design names no tokens."))
    items += [line(sentence(text)) for text in part["advice"][: None if view.full else ADVICE]]
    return Section(id="domains", blocks=[Heading(text="Failure domains"), Bullets(items=items)])


def _finite(value: Any) -> bool:
    return is_number(value) and isfinite(value)


def _domain(row: Mapping[str, Any]) -> Markup:
    name = strong(upfirst(row["id"].replace("-", " ")))
    what = row["what"].removeprefix(row["id"]).lstrip(" ,:")
    plural = "s" if row["devices"] != 1 else ""
    if _finite(row["events_per_run"]):
        often = f"{_events(row['events_per_run'])} times in the run"
    else:
        often = "at a rate that nobody has published"
    text = (
        f": {what}. Takes {whole(row['devices'])} device{plural} and {whole(row['replicas'])} of "
        f"{whole(row['of_replicas'])} replicas; back by "
    )
    after = (
        f", up to {seconds(row['wait_s'])} of waiting; {often}" if row["wait_s"] else f"; {often}"
    )
    if _finite(row["goodput_cost"]):
        lost = days(row["days_lost"])
        after += (
            f" × {seconds(row['each_s'])} = {lost}, {share(row['goodput_cost'])} of the wall time"
        )
    if row["usd_lost"] is not None:
        after += f", {usd(row['usd_lost'])}"
    return line(name, text, strong(row["recovers"]), f"{after}.")


# ---------------------------------------------------------------- risks
def risks(view: View) -> Section:
    """What could go wrong, how likely, what it costs and who acts."""
    part = view.parts["risks"]
    count = len(part["rows"]) if view.full else RISKS
    items: list[str] = [_risk(row, view.full) for row in part["rows"][:count]]
    if part["rows"][count:]:
        less = "; ".join(row["risk"] for row in part["rows"][count:])
        items.append(f"Less expected cost: {less}.")
    if not part["rows"]:
        items.append("No risk evaluated costs this design anything.")
    if part["harmless"] and view.full:
        items.append(f"Evaluated and harmless here: {'; '.join(part['harmless'])}.")
    if part["expected_days"]:
        run = view.parts["domains"]["run"]
        counted = "" if run["of_the_run"] else f" in {days(run['days'])}"
        items.append(line(overrun(part, counted), "; ordered by expected cost."))
    return Section(id="risks", blocks=[Heading(text="Risks"), Bullets(items=items)])


def _risk(row: Mapping[str, Any], full: bool) -> Markup:
    price = ""
    if row.get("mitigation_usd"):
        more = ", more than it saves" if row.get("pays") is False else ""
        price = f" ({usd(row['mitigation_usd'])}{more})"
    return line(
        strong(upfirst(row["risk"])),
        f": {chance(row['likelihood'])} probability; impact {impact(row)}. ",
        f"{sentence(row['evidence'])} " if full else "",
        strong("Mitigation"),
        f": {row['mitigation'].replace('`', '')}{price}; {row['owner']}.",
    )


def avoid(view: View) -> Section:
    """Traps, and what each costs."""
    items: list[str] = []
    for trap in view.facts["avoid"]:
        cost = line(" (", strong(trap["cost"]), ")") if trap.get("cost") else ""
        items.append(line(strong(upfirst(trap["what"])), f": {trap['why']}", cost, "."))
    items = items or ["No trap tried costs this design anything."]
    return Section(id="avoid", blocks=[Heading(text="Avoid"), Bullets(items=items)])


# ---------------------------------------------------------------- roll-out
def rollout(view: View) -> Section | None:
    """Burn-in, alerts, playbooks, drills, people."""
    part = view.parts["rollout"]
    if not part:
        return None
    burn_in = f"Burn-in: {seconds(part['burn_in_s'])}, {usd(part['burn_in_usd'])}"
    blocks: list[Block] = [
        Heading(text="Roll-out"),
        Heading(text=burn_in, level=3),
        _burn_in(part["burn_in"]),
        Bullets(items=[*map(sentence, part["screen"]["lines"]), _smoke(part["smoke"])]),
        Heading(text="Alerts", level=3),
        _alerts(part["alerts"]),
        Heading(text="Playbooks", level=3),
        Bullets(items=[_playbook(playbook) for playbook in part["playbooks"]]),
        Heading(text=f"Recovery drill: {usd(part['drills_usd'])}", level=3),
        Bullets(items=[_drill(drill) for drill in part["drills"]]),
        Paragraph(text=_on_call(part["on_call"])),
    ]
    return Section(id="rollout", blocks=blocks)


def _burn_in(tests: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        columns=columns("Test", "Scope", "What", "Expected#", "Evict below#", "Because"),
        rows=rows(
            (
                strong(upfirst(test["id"])),
                test["scope"],
                test["what"],
                in_unit(test["unit"], test["expected"]),
                in_unit(test["unit"], test["evict_below"]),
                test["why"],
            )
            for test in tests
        ),
    )


def _smoke(smoke: Mapping[str, Any]) -> Markup:
    return line(
        strong("Numerical smoke test"),
        f", {whole(smoke['devices'])} devices, {whole(smoke['steps'])} steps, "
        f"{seconds(smoke['seconds'])}: first loss {in_unit('ratio', smoke['first_loss'])}; "
        f"{'; '.join(smoke['checks'])}.",
    )


def _alerts(alerts: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        columns=columns("Metric", "Normal#", "Alert#", "Level", "Action", "Because"),
        rows=rows(
            (
                upfirst(alert["metric"]),
                in_unit(alert["unit"], alert["normal"]),
                f"{alert['beyond']} {in_unit(alert['unit'], alert['threshold'])}",
                alert["level"],
                alert["action"],
                alert["why"],
            )
            for alert in alerts
        ),
    )


def _playbook(playbook: Mapping[str, Any]) -> Markup:
    times = playbook["per_run"]
    expected = "" if times is None else f", {_events(times)} expected in the run"
    text = f"{expected}: {'; '.join(playbook['signals'])}."
    return line(strong(upfirst(playbook["id"])), text, bullets(map(sentence, playbook["steps"])))


def _drill(drill: Mapping[str, Any]) -> Markup:
    return line(
        strong(upfirst(drill["what"])),
        f": back in {seconds(drill['expected_s'])}, passed within {seconds(drill['pass_s'])}; "
        f"{drill['checks']}.",
    )


def _on_call(people: Mapping[str, Any]) -> Markup:
    low, high = _events(people["pages_per_week_low"]), _events(people["pages_per_week_high"])
    return line(
        strong("On call"),
        f": {people['people']} people, {low} to {high} pages a week; an hour of silence costs "
        f"{usd(people['hour_of_silence_usd'])}.",
    )


# ---------------------------------------------------------------- what breaks next
def evolution(view: View) -> Section | None:
    """What a larger machine or model would break."""
    part = view.parts["evolution"]
    if not part:
        return None
    table = Table(
        columns=columns(
            "Change", "Figure", "Now#", "Then#", "What breaks", "What mends it", "To confirm"
        ),
        rows=rows(
            (
                strong(upfirst(change["what"])),
                change["figure"]["name"],
                in_unit(change["figure"]["unit"], change["figure"]["now"]),
                in_unit(change["figure"]["unit"], change["figure"]["then"]),
                change["breaks"] or ("nothing" if change["works"] else "does not work"),
                change["mend"],
                change["confirm"],
            )
            for change in part["changes"]
        ),
    )
    blocks: list[Block] = [Heading(text="What breaks next"), table]
    if part["next"]:
        first = part["next"] if isinstance(part["next"], str) else "; ".join(part["next"])
        blocks.append(Paragraph(text=line(strong("First to break"), f": {first}.")))
    return Section(id="evolution", blocks=blocks)
