"""The first page: verdict or refusal, what to promise, what it rests on, what to decide."""

from collections.abc import Mapping, Sequence
from json import dumps
from typing import Any

from markupsafe import Markup
from scantling.base.quantities.quantity import band, show
from scantling.base.show import chance, days, params, seconds, share, usd, value_text
from scantling.verdict.result import figure
from scantling.verdict.texts import verdict_sentence

from ...quantity_texts import plan_text
from ..blocks import (
    Block,
    Bullets,
    Heading,
    Paragraph,
    Pre,
    Section,
    Signature,
    Table,
    Tiles,
    columns,
    joined,
    line,
    rows,
    strong,
)
from ..phrases import (
    after_colon,
    fabric,
    fix_figures,
    lead,
    nodes,
    unbroken,
    upfirst,
    verdict_means,
    whole,
)
from ..view import FRONT, View, headline

REFUSAL = {"error": "Hardware constraints insufficient for model parameters"}


def header(view: View) -> Markup:
    """The title of the report, and what the design gives in a line."""
    size, cluster, job = view.resolved.params, view.cluster, view.job
    name = view.resolved.model.name
    model = f"{name}, " if name else ""
    model += show("params", size.total)
    if size.active != size.total:
        model += f", {show('active_params', size.active)} active"
    machine = f"{whole(cluster.devices)} × {cluster.accelerator.name}"
    if cluster.nodes > 1:
        machine += f" · {fabric(cluster.scale_out)}"
    tokens = f"{params(view.tokens)} tokens, " if view.tokens else ""
    run = f"sequence {whole(job.seq_len)}, batch {whole(job.global_batch)}, {job.precision}"
    return Markup('<header>\n<h1>{}</h1>\n<p class="given">{}</p>\n</header>').format(
        view.resolved.name, f"{model} parameters · {machine} · {tokens}{run}"
    )


# ---------------------------------------------------------------- the verdict
def verdict(view: View) -> Section:
    """The verdict, what is recommended, what can be promised, the headline figures, and what
    binds."""
    a = view.facts
    sentence = verdict_sentence(a)
    blocks: list[Block] = [
        Paragraph(
            text=line(strong(sentence.name), f": {sentence.reason}."), css=f"verdict {a['verdict']}"
        ),
        Paragraph(text=_recommended(view), css="recommended"),
        Bullets(items=_promises(view), css="promise"),
        Tiles(tiles=headline(a)),
    ]
    if a.get("measured"):
        figures = ", ".join(f"{key} {value_text(value)}" for key, value in a["measured"].items())
        text = line(strong("Measured, not computed"), f": {figures}.")
        blocks.append(Paragraph(text=text, css="measured"))
    if a.get("asked"):
        asked = joined(map(_constraint, a["asked"]), "; ")
        blocks.append(Paragraph(text=line(strong("Asked for"), ": ", asked, "."), css="asked"))
    blocks += limits("Limits", a.get("limits", ())[:FRONT])
    blocks += changes("Nearest changes", (a.get("nearest_fixes") or ())[:FRONT])
    blocks += changes("What this cluster can do of it", (a.get("can_do") or ())[:FRONT])
    return Section(id="verdict", blocks=blocks)


def _recommended(view: View) -> Markup:
    a = view.facts
    if a["verdict"] in ("feasible", "feasible-at-risk"):
        text = f": {plan_text(view.plan)} on {devices_in_use(view)}"
        if a.get("asked"):
            text += "; every stated constraint holds"
        if a["verdict"] == "feasible-at-risk":
            text += ", at the risk named below"
        return line(strong("Recommended"), f"{text}.")
    no = strong("Not recommended as asked")
    if not a.get("nearest_fixes"):
        return line(no, ". None of the changes tried makes it hold.")
    fix = a["nearest_fixes"][0]
    if fix.get("missed"):
        what = "Nearest change, which still violates a constraint"
    else:
        what = "Smallest change that makes it hold"
    return line(no, ". ", strong(what), f": {fix['change']}{fix_figures(fix)}.")


def devices_in_use(view: View) -> str:
    """Devices of the plan, and of how many where some stand idle."""
    used, there = view.facts["devices_used"], view.cluster.devices
    of = f" of {whole(there)}" if used < there else ""
    return f"{show('devices_used', used)}{of}"


def _promises(view: View) -> list[Markup]:
    """The date and the cost to promise, and what the network costs."""
    promise, planned = view.facts.get("promise"), view.facts.get("to_plan_for")
    items = [_date(view, promise)]
    if view.fits and planned and promise:
        items.append(_cost(view, promise, planned))
    if view.parts["network"].get("usd"):
        items.append(_network_cost(view, bool(planned)))
    return items


def _date(view: View, promise: Mapping[str, Any] | None) -> Markup:
    if not view.fits or not promise or not promise.get("days_p90"):
        why = "the design names no tokens" if view.fits else "the plan does not fit in memory"
        return line(strong("No date and no cost to promise"), f": {why}.")
    text = f", kept in nine of ten runs; {days(promise['days_p50'])} likely, kept in one of two"
    if promise.get("deadline_kept") is not None:
        text += (
            "; with failures and risks the deadline is kept in "
            f"{chance(promise['deadline_kept'])} of drawn runs"
        )
    date = strong(f"Date to promise: {days(promise['days_p90'])} after the start")
    return line(date, f"{text}.")


def _cost(view: View, promise: Mapping[str, Any], planned: Mapping[str, Any]) -> Markup:
    owned = view.resolved.prices.owned
    machine = "machine, staff, energy" if owned else "rent with its energy"
    text = (
        f": {usd(promise['cost_mean'])} expected for the run "
        f"({band('cost_usd', promise['cost_p10'], promise['cost_p90'])} in eight of ten), "
        f"{machine}, price, failures and the risks below each counted once"
    )
    if promise.get("budget_kept") is not None:
        text += f"; the budget holds in {chance(promise['budget_kept'])} of drawn runs"
    for row in planned["around"]:
        text += f"; {usd(row['usd'])} for {row['what']}"
    return line(strong(f"Cost to plan for: {usd(planned['total_usd'])}"), f"{text}.")


def _network_cost(view: View, planned: bool) -> Markup:
    """What ports and cables cost, and whether the cost above has it."""
    owned = view.resolved.prices.owned
    if owned and owned.network_usd:
        text = f"in the cost above as the {usd(owned.network_usd)} that the design states"
    elif owned:
        text = "outside the cost above"
    else:
        text = "inside the hourly price while devices are rented"
        if planned:
            text += ", outside the cost above where the network is bought"
    cost = usd(view.parts["network"]["usd"])
    return line(strong(f"Ports and cables: {cost}"), f", {text}.")


def _constraint(row: Mapping[str, Any]) -> Markup:
    met = "met" if row["met"] else Markup('<strong class="fault">violated</strong>')
    return line(f"{row['what']} {unbroken(row['limit'])} ({unbroken(row['value'])}, ", met, ")")


def limits(title: str, lines: Sequence[str]) -> list[Block]:
    """What binds."""
    if not lines:
        return []
    items = [Markup(unbroken(lead(text))) for text in lines]
    return [Heading(text=title), Bullets(items=items)]


def changes(title: str, fixes: Sequence[Mapping[str, Any]]) -> list[Block]:
    """The nearest changes and what each does."""
    if not fixes:
        return []
    return [Heading(text=title), Bullets(items=[_change(fix) for fix in fixes])]


def _change(fix: Mapping[str, Any]) -> Markup:
    missed = len(fix.get("missed") or ())
    still = ""
    if missed:
        still = " one" if missed == 1 else f" {missed}"
    text = f": {verdict_means(fix['verdict'])}{still}{fix_figures(fix)}"
    return line(strong(upfirst(fix["change"])), text)


# ---------------------------------------------------------------- a refusal
def refusal(view: View) -> Section:
    """That no plan holds the model, by which arithmetic, and what would."""
    a = view.facts
    proof = a.get("limits", [])
    fixes = a.get("nearest_fixes") or []
    said = strong("No plan can hold this model on this machine")
    blocks: list[Block] = [Paragraph(text=said, css=f"verdict {a['verdict']}")]
    if fixes:
        smallest = f": {fixes[0]['change']}; {verdict_means(fixes[0]['verdict'])}."
        text = line(strong("The smallest machine that works"), smallest)
        blocks.append(Paragraph(text=text, css="recommended"))
    blocks.append(Pre(text=dumps(REFUSAL), css="refusal"))
    if proof:
        arithmetic = [lead(text) for text in proof if not text.startswith("leanest:")]
        blocks += [Heading(text="Arithmetic"), Bullets(items=arithmetic)]
    blocks += [Heading(text="Avoid"), Bullets(items=[_any_plan(view, proof)])]
    if fixes[1:]:
        others = [
            line(strong(upfirst(fix["change"])), f": {verdict_means(fix['verdict'])}")
            for fix in fixes[1:]
        ]
        blocks += [Heading(text="Other changes that make it fit"), Bullets(items=others)]
    return Section(id="refusal", blocks=blocks)


def _any_plan(view: View, proof: Sequence[str]) -> Markup:
    leanest = [after_colon(text) for text in proof if text.startswith("leanest:")]
    machine = f"{whole(view.cluster.devices)} × {view.cluster.accelerator.name}"
    what = strong(f"Any plan on {machine}, full recompute and offload included")
    return line(what, f": {''.join(leanest) or 'none holds the model'}.")


# ---------------------------------------------------------------- what it rests on
def brief(view: View) -> Section:
    """The evidence, the failures and the risks in short, for who decides."""
    a = view.facts
    items = []
    if a.get("nearest_runs"):
        items.append(_nearest_run(a, a["nearest_runs"][0]))
    items.append(_failures(view))
    if a.get("measure_first"):
        first = a["measure_first"][0]
        text = f": {first['what']}; the band narrows by {share(first['narrows'])}."
        items.append(line(strong("Find out first"), text))
    blocks: list[Block] = [Heading(text="What it rests on"), Bullets(items=items)]
    blocks += _decisions(view)
    blocks += [Heading(text="To be avoided"), Bullets(items=_traps(view), css="short")]
    return Section(id="brief", blocks=blocks)


def _nearest_run(a: Mapping[str, Any], run: Mapping[str, Any]) -> Markup:
    return line(
        strong("Nearest published run"),
        f": {run['model']} on {whole(run['devices'])} {run['accelerator']}, MFU "
        f"{share(run['mfu'])} measured, {share(run['mfu_predicted'])} by this kit where it has not "
        f"seen that site, {share(a['mfu'])} here (full attention); differences, run against plan: "
        f"{run['differs']}.",
    )


def _failures(view: View) -> Markup:
    a, e = view.facts, view.endurance
    spare = nodes(a["spares"]) if figure(a, "spares") else "no node"
    return line(
        strong(f"One failure every {seconds(a['mtbf_s'])}"),
        f": {seconds(e.get('recovery_s'))} to recover, at most {seconds(e.get('lost_work_s'))} of "
        f"work lost, {spare} spare.",
    )


def _decisions(view: View) -> list[Block]:
    risks = view.parts["risks"]
    if not risks["rows"]:
        return []
    table = Table(
        columns=columns("Risk", "Probability, impact", "Decide", "By", "Who"),
        rows=rows(
            (
                upfirst(risk["risk"]),
                f"{chance(risk['likelihood'])}, {impact(risk)}",
                upfirst(risk["mitigation"].replace("`", "")),
                f"before {risk['by']}",
                risk["owner"],
            )
            for risk in risks["rows"][:FRONT]
        ),
        css="",
        named=True,
    )
    blocks: list[Block] = [Heading(text="What could break it, and what to decide now"), table]
    if risks.get("expected_days"):
        expected = strong(overrun(risks))
        text = line(f"Expected overrun from {whole(len(risks['rows']))} risks: ", expected)
        run = view.parts["domains"]["run"]
        counted = "" if run["of_the_run"] else f" in {days(run['days'])}, since no tokens are named"
        blocks.append(Paragraph(text=line(text, f"{counted}.")))
    return blocks


def overrun(risks: Mapping[str, Any]) -> str:
    """Days, and dollars where there is a price, that the risks take together."""
    cost = f", {usd(risks['expected_usd'])}" if risks.get("expected_usd") else ""
    return f"{days(risks['expected_days'])}{cost}"


def impact(risk: Mapping[str, Any]) -> str:
    """Days and dollars of a risk that comes true, whichever it has."""
    parts = []
    if risk.get("impact_days"):
        parts.append(days(risk["impact_days"]))
    if risk.get("impact_usd"):
        parts.append(usd(risk["impact_usd"]))
    return ", ".join(parts)


def _traps(view: View) -> list[str]:
    items: list[str] = []
    for trap in view.facts["avoid"][:FRONT]:
        cost = f": {trap['cost']}" if trap.get("cost") else ""
        items.append(line(strong(upfirst(trap["what"])), f"{cost}."))
    return items or ["No trap tried costs this design anything."]


def signing(view: View) -> Section:
    """Where whoever decides signs."""
    return Section(id="signing", blocks=[Heading(text="Decision"), Signature()])
