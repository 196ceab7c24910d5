"""The plan: its axes and why, its phases, what a specialist confirms, the alternatives searched."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup
from scantling.base.quantities.quantity import band, show
from scantling.base.show import days, hours, params, seconds, share, size, usd
from scantling.endure.cost import CostFigures
from scantling.verdict.result import figure

from ...quantity_texts import plan_text
from ..blocks import (
    Block,
    Bullets,
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
from ..phrases import after_colon, fabric, schedule_name, sharding_name, upfirst, whole, within
from ..view import View, by_phase
from .summary import changes, costs_around, devices_in_use, front_limits, limits

BEST = 5  # plans searched that a report lists; a full one has a dozen


# ---------------------------------------------------------------- axes
def plan(view: View) -> Section:
    """What the first page had no room for, then the plan axis by axis."""
    a = view.facts
    blocks: list[Block] = [Heading(text="Appendix", css="part")]
    front = front_limits(a)
    blocks += limits("Further limits", [text for text in a["limits"] if text not in front])
    blocks += changes("Further changes", (a.get("nearest_fixes") or ())[len(view.rivals) :])
    blocks += changes("What this cluster can do of it", a.get("can_do") or ())
    axes = (_tensor, _context, _pipeline, _experts, _data, _batch, _devices)
    items = [item for axis in axes if (item := axis(view)) is not None]
    blocks += [Heading(text="Parallelism strategy"), Bullets(items=items)]
    return Section(id="plan", blocks=[*blocks, *_phases(view)])


def _tensor(view: View) -> Markup | None:
    p, cluster = view.plan, view.cluster
    if p["tp"] <= 1:
        return None
    sequence = " with sequence parallelism" if p.get("sp") else ""
    link = f"{fabric(cluster.scale_up)} domain of {cluster.scale_up_domain}"
    if p["tp"] <= cluster.scale_up_domain:
        where = line("inside one ", strong(link))
    else:
        where = line(strong(f"across the {link}"), f", over {fabric(cluster.scale_out)}")
    return line(
        strong(f"Tensor parallel {p['tp']}"), f"{sequence}, ", where, ".", _reason(view, "tp")
    )


def _context(view: View) -> Markup | None:
    p = view.plan
    if p["cp"] <= 1:
        return None
    kind = f" ({p['cp_type']})" if p.get("cp_type") else ""
    text = f"{kind}, the sequence of {whole(view.job.seq_len)} tokens cut over it."
    return line(strong(f"Context parallel {p['cp']}"), text, _reason(view, "cp"))


def _pipeline(view: View) -> Markup | None:
    p = view.plan
    if p["pp"] <= 1:
        return None
    chunks = f", {p['vpp']} virtual chunks a stage" if (p.get("vpp") or 1) > 1 else ""
    text = (
        f"{chunks}, {schedule_name(p['schedule'])}, {whole(p['grad_accum'])} micro-batches in a "
        "step: "
    )
    bubble = strong(f"bubble {share(view.facts['bubble_fraction'])}")
    name = strong(f"Pipeline parallel {p['pp']}")
    return line(name, text, bubble, " of it.", _reason(view, "pp"))


def _experts(view: View) -> Markup | None:
    p, model = view.plan, view.resolved.model
    if p["ep"] > 1:
        tensor = f", each expert over {p['etp']} tensor ranks" if (p.get("etp") or 1) > 1 else ""
        text = f", {model.experts} experts, top-{model.top_k}{tensor}."
        return line(strong(f"Expert parallel {p['ep']}"), text, _reason(view, "ep"))
    if not model.experts:
        return None
    text = f": every rank of a stage holds the {model.experts} experts of its layers."
    return line(strong("No expert parallelism"), text)


def _data(view: View) -> Markup | None:
    p = view.plan
    if p["dp"] <= 1:
        return None
    groups = f" inside groups of {p['shard_group']}" if p["sharding"] == "hsdp" else ""
    name = strong(f"Data parallel {p['dp']}, {sharding_name(p['sharding'])}")
    return line(name, f"{groups}.", _reason(view, "dp"))


def _batch(view: View) -> Markup:
    p, job = view.plan, view.job
    return line(
        strong(f"Global batch {whole(job.global_batch)}"),
        f" sequences of {whole(job.seq_len)} tokens: micro-batch {p['micro_batch']} × accumulation "
        f"{whole(p['grad_accum'])} × data parallel {p['dp']}.",
    )


def _devices(view: View) -> Markup:
    p, used = view.plan, view.facts["devices_used"]
    idle = devices_in_use(view).removeprefix(show("devices_used", used))
    folded = ", experts folded inside" if p["ep"] > 1 else ""
    degrees = f"tp {p['tp']} × pp {p['pp']} × cp {p['cp']} × dp {p['dp']}"
    return line(strong(show("devices_used", used)), f" in use{idle}: {degrees}{folded}.")


def tier_name(view: View, tier: str) -> str:
    """The fabric of a tier."""
    if tier in ("scale-up", "scale_up"):
        return fabric(view.cluster.scale_up)
    if tier in ("scale-out", "scale_out"):
        return fabric(view.cluster.scale_out)
    return fabric(tier)


def _reason(view: View, axis: str) -> Markup:
    """What an axis buys and costs: the library's own line where it has one, the traffic where it
    has not."""
    lines, traffic = view.why(axis), view.traffic(axis)
    if not lines:
        return bullets(_sent(view, row) for row in traffic)
    if not traffic:
        return bullets(f"{upfirst(after_colon(text))}." for text in lines)
    tier = strong(tier_name(view, traffic[0]["tier"]))
    return bullets(line(tier, f": {after_colon(text)}.") for text in lines)


def _sent(view: View, row: Mapping[str, Any]) -> Markup:
    """What an axis sends over one tier."""
    if row["exposed_s"]:
        exposed = line(", of which ", strong(f"{seconds(row['exposed_s'])} exposed"))
    else:
        exposed = line(", all of it hidden")
    return line(
        f"{row['what']} over ",
        strong(tier_name(view, row["tier"])),
        f": {size(row['bytes'])} a step and device in {whole(row['calls'])} calls, "
        f"{seconds(row['time_s'])}",
        exposed,
        ".",
    )


def _phases(view: View) -> list[Block]:
    phases = by_phase(view.facts)
    if not phases:
        return []
    table = Table(
        columns=columns(
            "Phase", "Tokens#", "Sequence#", "Batch#", "Plan", "Step#", "MFU#", "Memory#"
        ),
        rows=rows(
            (
                phase["name"],
                params(phase["tokens"]),
                whole(phase["seq_len"]),
                whole(phase["global_batch"]),
                plan_text(phase["plan"]),
                seconds(phase["step_s"]),
                share(phase["mfu_shown"]),
                size(phase["memory_bytes"]),
            )
            for phase in phases
        ),
        css="",
    )
    return [Heading(text="Phases", level=3), table]


# ---------------------------------------------------------------- time and cost
def cost(view: View) -> Section | None:
    """Days, dollars, energy."""
    a = view.facts
    items = []
    if a["days"] is not None:
        items.append(_duration(view))
    if a["cost_usd"] is not None:
        items.append(_price(view))
    items += costs_around(view)
    if not items:
        return None
    if figure(a, "energy_kwh") is not None:
        items.append(_energy(view))
    return Section(id="cost", blocks=[Heading(text="Time and cost"), Bullets(items=items)])


def _duration(view: View) -> Markup:
    a = view.facts
    bill = a.get("cost")
    device_hours = hours(None if bill is None else bill["device_hours"]).replace(" h", "")
    spares = ", spares included" if figure(a, "spares") else ""
    return line(
        strong(f"{days(a['likely']['days'])} likely"),
        f"{within(a, 'likely.days')} for {params(view.tokens)} tokens, downtime and risks "
        f"included; undisturbed by risks {days(a['days'])} and ",
        strong(f"{device_hours} device-hours"),
        f"{spares}.",
    )


def _price(view: View) -> Markup:
    bill = view.facts.get("cost")
    text = f"{within(view.facts, 'likely.cost_usd')}; undisturbed {usd(view.facts['cost_usd'])}"
    if bill is not None:
        text += _bill(bill)
    likely = view.facts["likely"]["cost_usd"]
    return line(strong(f"{usd(likely)} likely"), f"{text}.")


def _bill(bill: CostFigures) -> str:
    """What stands behind the dollars: the price, its range, and what failures burn."""
    text = ""
    if bill["usd_per_device_hour"]:
        text += f" at {usd(bill['usd_per_device_hour'])} a device-hour"
    low, high = bill["cost_usd_low"], bill["cost_usd_high"]
    if low and low != high:
        text += f", {band('cost_usd', low, high)} over the prices seen"
        if bill["price_date"]:
            text += f" ({bill['price_date']})"
    if bill["lost_usd"]:
        text += f"; failures and saves burn {usd(bill['lost_usd'])} of it"
    return text


def _energy(view: View) -> Markup:
    bill = view.facts.get("cost")
    text = f" at PUE {bill['pue']:g}" if bill and bill["pue"] else ""
    carbon = bill["carbon_kg"].get("world") if bill and bill["carbon_kg"] else None
    if carbon:
        text += f"; {params(carbon)} kg CO₂ at the world's mean grid"
    return line(strong(show("energy_kwh", view.facts["energy_kwh"])), f"{text}.")


# ---------------------------------------------------------------- to confirm
def specialist(view: View) -> Section | None:
    """What somebody who trains models should confirm."""
    p, job = view.plan, view.job
    items = []
    if job.precision == "fp16":
        text = ": dynamic loss scaling, and which operations stay in fp32."
        items.append(line(strong("Precision recipe, fp16"), text))
    elif job.precision not in ("bf16", "fp32"):
        text = (
            ": which matrix products run in it, the scaling granularity, and that norms, softmax, "
            "router and master weights stay higher."
        )
        items.append(line(strong(f"Precision recipe, {job.precision}"), text))
    if p["dp"] > 1:
        text = (
            f": losing data-parallel ranks changes accumulation {whole(p['grad_accum'])} or the "
            f"global batch of {whole(job.global_batch)} sequences; a new global batch needs a new "
            "learning-rate schedule."
        )
        items.append(line(strong("Batch after a reshape"), text))
    phases = len(view.resolved.phases)
    if phases > 1:
        text = f": {phases} phases change the global batch or the sequence length."
        items.append(line(strong("Batch and sequence ramp"), text))
    if view.resolved.model.experts:
        text = (
            ": strength of the balancing term against quality; the step time assumes the balance "
            "stated under assumptions."
        )
        items.append(line(strong("Router balance"), text))
    if not items:
        return None
    heading = Heading(text="To confirm with an ML specialist")
    return Section(id="specialist", blocks=[heading, Bullets(items=items)])


# ---------------------------------------------------------------- plans searched
def candidates(view: View) -> Section | None:
    """The best plans of the search, and why others were refused."""
    a = view.facts
    if not a.get("candidates"):
        return None
    text = f"{whole(a['legal'])} legal plans, {whole(a['evaluated'])} timed"
    if a.get("rejected"):
        reasons = (f"{whole(count)} {reason}" for reason, count in a["rejected"].items())
        text += f"; rejected: {', '.join(reasons)}"
    table = Table(
        columns=columns("Rank#", "Plan", "Step#", "MFU#", "Memory#"),
        rows=rows(
            (
                str(rank),
                plan_text(plan),
                seconds(plan["step_s"]),
                share(plan["mfu_shown"]),
                size(plan["memory_bytes"]),
            )
            for rank, plan in enumerate(a["candidates"][: 12 if view.full else BEST], 1)
        ),
        css="",
    )
    heading = Heading(text="Plans searched")
    return Section(id="candidates", blocks=[heading, Paragraph(text=f"{text}."), table])
