"""The first page, which decides the purchase: go, change or no-go, likely and promise, the two best
alternatives, three risks with who acts, what to measure first."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from scantling.advise.saving import WORTH
from scantling.base.quantities.quantity import band, show
from scantling.base.records import Known
from scantling.base.show import chance, days, params, share, usd, value_text
from scantling.verdict.result import FixRow, LikelyRow, Narrowed, Result, figure
from scantling.verdict.texts import cured, leading, verdict_sentence
from scantling.verdict.verdicts import VERDICTS, met
from scantling_posttrain.posttrained import Posttrained

from ...quantity_texts import plan_text
from ..blocks import (
    Block,
    Bullets,
    Heading,
    Paragraph,
    Row,
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
    unbroken,
    upfirst,
    verdict_means,
    whole,
)
from ..view import FRONT, View, headline

MET = 2  # limits on the first page of a design that may be run
MEASURED = 2  # measurements on the first page
LONG_TITLE = 80  # letters from which a title is set smaller: more than a line and a half
NAMED = 2  # constraints that an alternative names; more are counted
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
    title = view.resolved.name
    css = Markup(' class="long"') if len(title) > LONG_TITLE else ""
    return Markup('<header>\n<h1{}>{}</h1>\n<p class="given">{}</p>\n</header>').format(
        css, title, f"{model} parameters · {machine} · {tokens}{run}"
    )


# ---------------------------------------------------------------- the verdict
def verdict(view: View) -> Section:
    """The verdict, what is recommended, what can be promised, the headline figures, and what
    binds."""
    a = view.facts
    sentence = verdict_sentence(a)
    blocks: list[Block] = [
        Paragraph(
            text=line(strong(f"{decision(a)}. {sentence.name}"), f": {sentence.reason}."),
            css=f"verdict {sentence.tone}",
        ),
        Paragraph(text=_recommended(view), css="recommended"),
        *_cheaper(view),
        Paragraph(text=_promised(view), css="promise"),
        Tiles(tiles=headline(a)),
    ]
    if a.get("measured"):
        figures = ", ".join(f"{key} {value_text(value)}" for key, value in a["measured"].items())
        text = line(strong("Measured, not computed"), f": {figures}.")
        blocks.append(Paragraph(text=text, css="measured"))
    if a.get("asked"):
        asked = joined(map(_constraint, a["asked"]), "; ")
        blocks.append(Paragraph(text=line(strong("Asked for"), ": ", asked, "."), css="asked"))
    blocks += limits("Limits", front_limits(a))
    blocks += _alternatives(view)
    return Section(id="verdict", blocks=blocks)


def decision(figures: Result) -> str:
    """Go: buy it as it is asked for. Change: there is a better design, or a near one that holds.
    No-go: neither it nor anything near it does what is asked."""
    if met(figures["verdict"]):
        return "Change" if figures.get("saving") else "Go"
    fixes = figures.get("nearest_fixes") or ()
    return "Change" if any(met(fix["verdict"]) for fix in fixes) else "No-go"


def _recommended(view: View) -> Markup:
    a = view.facts
    if a["verdict"] in ("feasible", "feasible-at-risk"):
        text = f": {plan_text(view.plan)} on {devices_in_use(view)}"
        if a.get("asked"):
            text += "; every stated constraint holds"
        if a["verdict"] == "feasible-at-risk":
            text += ", at the risk named below"
        saving = a.get("saving")
        if saving:
            return line(strong("Recommended"), f": {cured(saving)}. As asked for{text}.")
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


def _promised(view: View) -> Markup:
    """What may be promised, and what is likely."""
    promise = view.facts.get("promise")
    if not view.fits or not promise or not promise.get("days_p90"):
        why = "the design names no tokens" if view.fits else "the plan does not fit in memory"
        return line(strong("No date and no cost to promise"), f": {why}.")
    dear = promise["cost_p90"] is not None
    text = "To promise: " + days(promise["days_p90"])
    text += f" and {usd(promise['cost_p90'])}" if dear else ""
    likely = days(promise["days_p50"]) + (f" and {usd(promise['cost_p50'])}" if dear else "")
    means = f", which nine of ten drawn runs keep; likely {likely}, which half keep"
    if promise.get("deadline_kept") is not None:
        means += f". The deadline is kept in {chance(promise['deadline_kept'])} of them"
    if promise.get("budget_kept") is not None:
        means += f". The budget holds in {chance(promise['budget_kept'])} of them"
    return line(strong(text), f"{means}.")


def _cheaper(view: View) -> list[Block]:
    """Why it is a go where another design costs less: what was named does what was asked."""
    a = view.facts
    own = a["likely"]
    if decision(a) != "Go" or own["cost_usd"] is None:
        return []
    limit = own["cost_usd"] * (1 - WORTH)
    named = strong(f"Go with the {whole(view.cluster.devices)} devices that were named")
    for rival in view.rivals:
        likely = rival["likely"]
        if met(rival["verdict"]) and likely["cost_usd"] is not None and likely["cost_usd"] < limit:
            text = f"; cheaper would be {rival['change']}: likely {_days_and_dollars(likely)}, "
            text += f"in place of {_days_and_dollars(own)}."
            return [Paragraph(text=line(named, text), css="recommended")]
    return []


def _days_and_dollars(likely: LikelyRow) -> str:
    return " and ".join(show(f"likely.{key}", likely[key]) for key in ("days", "cost_usd"))


def _alternatives(view: View) -> list[Block]:
    """This design and the two best beside it, with the figures that decide."""
    if not view.rivals:
        return []
    a = view.facts
    own = Row(
        css="here",
        cells=(
            "This design",
            *_figures(figure(a, "mfu_shown"), view.cluster.devices, a["likely"]),
            VERDICTS[a["verdict"]].name,
        ),
    )
    saving = a.get("saving")
    asked = len(a.get("asked") or ())
    others = [_other(f"Recommended: {saving['change']}", saving, asked)] if saving else []
    others += [_other(upfirst(rival["change"]), rival, asked) for rival in view.rivals]
    table = Table(
        columns=columns("Design", "MFU#", "Devices#", "Days, likely#", "Cost, likely#", "Verdict"),
        rows=[own, *others],
        css="alternatives",
    )
    return [Heading(text="The two best alternatives"), table]


def _other(name: str, fix: FixRow, asked: int) -> Row:
    """Another design than this one."""
    figures = _figures(fix["mfu_shown"], fix["devices"], fix["likely"])
    return Row(cells=(name, *figures, _kept(fix, asked)))


def _figures(mfu: Known, devices: int, likely: LikelyRow) -> tuple[str, ...]:
    """MFU, devices, days and dollars of a design."""
    days_and_dollars = (show(f"likely.{key}", likely[key]) for key in ("days", "cost_usd"))
    return show("mfu_shown", mfu), whole(devices), *days_and_dollars


def _kept(rival: FixRow, asked: int) -> str:
    """The verdict of an alternative, and which of the constraints asked for it violates."""
    missed = [text.split(":")[0] for text in rival["missed"]]
    name = VERDICTS[rival["verdict"]].name
    if len(missed) > NAMED:
        return f"{name}: {len(missed)} of {asked}"
    return f"{name}: {', '.join(missed)}" if missed else name


def costs_around(view: View) -> list[Markup]:
    """What the whole programme costs beside the run, and what the network does."""
    promise, planned = view.facts.get("promise"), view.facts.get("to_plan_for")
    items = []
    if view.fits and planned and promise:
        items.append(_cost(view, promise, planned))
    if view.parts["network"].get("usd"):
        items.append(_network_cost(view, bool(planned)))
    return items


def _cost(view: View, promise: Mapping[str, Any], planned: Mapping[str, Any]) -> Markup:
    owned = view.resolved.prices.owned
    machine = "machine, staff, energy" if owned else "rent with its energy"
    text = (
        f": {usd(promise['cost_mean'])} expected for the run "
        f"({band('cost_usd', promise['cost_p10'], promise['cost_p90'])} in eight of ten), "
        f"{machine}, price, failures and the risks below each counted once"
    )
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


def front_limits(figures: Result) -> list[str]:
    """What binds beyond the verdict and the constraints that are missed: those stand in what was
    asked for, and leave room for the fewer. The risks have a table of their own on this page."""
    missed = {row["text"] for row in figures["missed"]}
    said = {*missed, *figures["limits"][: leading(figures)]}
    lines = zip(figures["limit_kinds"], figures["limits"])
    others = [text for kind, text in lines if kind != "risks" and text not in said]
    return others[: MET if met(figures["verdict"]) else max(0, FRONT - len(missed))]


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
    machine = f"{whole(view.cluster.devices)} × {view.cluster.accelerator.name}"
    said = line(
        strong("No-go. Impossible"), f": no plan can hold this model on {machine}, {_short(proof)}."
    )
    blocks: list[Block] = [Paragraph(text=said, css="verdict bad")]
    if fixes:
        smallest = f": {fixes[0]['change']}; {verdict_means(fixes[0]['verdict'])}."
        text = line(strong("The smallest machine that works"), smallest)
        blocks.append(Paragraph(text=text, css="recommended"))
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


def _short(proof: Sequence[str]) -> str:
    """By what the model does not fit, in words: the arithmetic's own conclusion."""
    known = dict(text.split(": ", 1) for text in proof if ": " in text)
    if "sum" in known:
        return f"since there is {known['sum'].replace(' > ', ' against ')}"
    return "with everything split, recomputed and offloaded"


def _any_plan(view: View, proof: Sequence[str]) -> Markup:
    leanest = [after_colon(text) for text in proof if text.startswith("leanest:")]
    machine = f"{whole(view.cluster.devices)} × {view.cluster.accelerator.name}"
    what = strong(f"Any plan on {machine}, every parallelism, full recompute and offload included")
    return line(what, f": {''.join(leanest) or 'none holds the model'}.")


# ---------------------------------------------------------------- risks and measurements
def brief(view: View) -> Section:
    """The gravest risks with who acts, and what to measure first."""
    a = view.facts
    blocks = _decisions(view)
    if a.get("measure_first"):
        blocks += [Heading(text="Measure first"), Bullets(items=_to_measure(a["measure_first"]))]
    return Section(id="brief", blocks=blocks)


def _to_measure(rows: Sequence[Narrowed]) -> list[Markup]:
    """What narrows the band most."""
    return [
        line(
            strong(upfirst(row["what"])),
            f": the band of {row['band']} narrows by {share(row['narrows'])}.",
        )
        for row in rows[:MEASURED]
    ]


def _decisions(view: View) -> list[Block]:
    risks = view.parts["risks"]
    if not risks["rows"]:
        return []
    table = Table(
        columns=columns("Risk", "Probability", "Impact", "Decide", "Who"),
        rows=rows(
            (
                upfirst(risk["risk"]),
                chance(risk["likelihood"]),
                impact(risk),
                upfirst(risk["mitigation"].replace("`", "")),
                f"{risk['owner']}, before {risk['by']}",
            )
            for risk in risks["rows"][:FRONT]
        ),
        css="",
        named=True,
    )
    blocks: list[Block] = [Heading(text="What could break it, and what to decide now"), table]
    if risks.get("expected_days"):
        run = view.parts["domains"]["run"]
        counted = "" if run["of_the_run"] else f" in {days(run['days'])}, since no tokens are named"
        blocks.append(Paragraph(text=line(overrun(risks, counted), ".")))
    return blocks


def overrun(risks: Mapping[str, Any], counted: str) -> Markup:
    """Days, and dollars where there is a price, that the risks which add to the run take together,
    and which of those listed do not; `counted`: over what they are counted."""
    listed = risks["rows"]
    why = {"before_start": "delays the start", "in_headline": "is in the predicted days already"}
    left_out = [row for row in listed if any(row[key] for key in why)]
    reasons = [text for key, text in why.items() if any(row[key] for row in left_out)]
    of_all = f" of {whole(len(listed))}" if left_out else ""
    cost = f", {usd(risks['expected_usd'])}" if risks.get("expected_usd") else ""
    return line(
        f"Expected overrun from {whole(len(listed) - len(left_out))}{of_all} risks: ",
        strong(f"{days(risks['expected_days'])}{cost}"),
        f"{counted}; what {' or '.join(reasons)} is not counted" if left_out else counted,
    )


def impact(risk: Mapping[str, Any]) -> str:
    """Days and dollars of a risk that comes true, whichever it has."""
    parts = []
    if risk.get("impact_days"):
        parts.append(days(risk["impact_days"]))
    if risk.get("impact_usd"):
        parts.append(usd(risk["impact_usd"]))
    return ", ".join(parts)


def signing(view: View | Posttrained) -> Section:
    """Where whoever decides signs."""
    return Section(id="signing", blocks=[Signature()])
