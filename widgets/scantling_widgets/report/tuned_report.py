"""The report of a post-training design: the same places as that of a pre-training design, said of
trainer and rollout."""

from collections.abc import Callable, Sequence

from markupsafe import Markup
from scantling.base.displayed import Html
from scantling.base.show import days, params, percent, seconds, several, share, size, usd
from scantling.verdict.texts import verdict_sentence
from scantling.verdict.verdicts import met
from scantling_posttrain.answer_lines import (
    fix_text,
    goodput_text,
    memory_text,
    rollout_text,
    step_text,
)
from scantling_posttrain.posttrained import Posttrained
from scantling_posttrain.texts import PARTS, PHASES

from ..charts import pictures
from ..charts.figure import Facts
from ..charts.pictures import Picture
from ..charts.sides import lengths, side_memory, sides
from .blocks import (
    Block,
    Bullets,
    Heading,
    Paragraph,
    Section,
    Table,
    Tiles,
    columns,
    line,
    part_of_report,
    rows,
    strong,
)
from .document import Document
from .phrases import sentence, upfirst, whole
from .sections.evidence import given
from .sections.summary import decision, limits, signing
from .view import FRONT, headline, plain


class TunedReport(Document):
    """The report of a post-training design."""

    def __init__(self, result: Posttrained) -> None:
        self.result_of = result
        self.data: Facts = plain(result.as_dict())

    @property
    def impossible(self) -> bool:
        return self.result_of.plan is None

    def section(self, name: str) -> Html | None:
        """One section as HTML; None where this design gives no reason for it."""
        if name == "header":
            return part_of_report(header(self.result_of))
        make = SECTIONS.get(name)
        if make is None or (self.impossible != (name == "refusal") and name not in OF_BOTH):
            return None
        section = make(self.result_of)
        return part_of_report(section.html()) if section else None

    def picture(self, name: str) -> Picture | None:
        """One figure as a static picture; None where there is nothing to draw."""
        tuned = self.result_of
        match name:
            case "memory":
                return pictures.draw(side_memory, self.data, tuned)
            case "step":
                return pictures.draw(sides, self.data, tuned)
            case "sensitivity":
                return pictures.draw(lengths, self.data, tuned)
        return None


def header(t: Posttrained) -> Markup:
    """The title of the report, and what the design gives in a line."""
    trained = f", {params(t.trained_params)} trained" if t.plan else ""
    given = f"{t.method.upper()} · {params(t.params)} parameters{trained} · {machine(t)}"
    return Markup('<header>\n<h1>{}</h1>\n<p class="given">{}</p>\n</header>').format(t.name, given)


def machine(t: Posttrained) -> str:
    """The devices, and of a policy on which side they are."""
    chip = t.design.cluster.accelerator
    name = (
        f"{whole(t.devices)} × {chip}" if isinstance(chip, str) else f"{whole(t.devices)} devices"
    )
    if t.rollout is None or t.rollout["colocated"]:
        return name
    return (
        f"{name}: {whole(t.rollout['train_devices'])} train, {whole(t.rollout['devices'])} generate"
    )


# ---------------------------------------------------------------- the first page
def verdict(t: Posttrained) -> Section:
    """Go, change or no-go, the plan, what can be promised, the headline figures, what binds and
    what has to be settled first."""
    a = t.as_dict()
    told = verdict_sentence(a)
    blocks: list[Block] = [
        Paragraph(
            text=line(strong(f"{decision(a)}. {told.name}"), f": {told.reason}."),
            css=f"verdict {told.tone}",
        ),
        Paragraph(text=recommended(t), css="recommended"),
        Bullets(items=promises(t), css="promise"),
        Tiles(tiles=headline(a)),
    ]
    blocks += limits("Limits", t.limits[:FRONT])
    blocks += listed("Changes", [fix_text(fix) for fix in t.fixes[:FRONT]])
    blocks += listed("To be settled first", t.asks)
    blocks += listed("Stated, and without effect", t.no_effect)
    return Section(id="verdict", blocks=blocks)


def recommended(t: Posttrained) -> Markup:
    """The plan, and whether it is to be run as it is asked for."""
    if met(t.verdict):
        return line(strong("Recommended"), f": {plan_text(t)}.")
    no = strong("Not recommended as asked")
    if t.fixes:
        return line(no, f". Smallest change: {fix_text(t.fixes[0])}.")
    return line(no, f", and no change that was tried helps. Its best plan: {plan_text(t)}.")


def plan_text(t: Posttrained) -> str:
    """The plans of both sides in a line."""
    if t.rollout is None:
        return t.plan_words
    return f"{t.plan_words}; {rollout_text(t.rollout)}"


def promises(t: Posttrained) -> list[Markup]:
    """The date and the cost to promise."""
    if t.days is None or t.days_high is None:
        return [line(strong("No date and no cost to promise"), ": the design names no end.")]
    text = f", kept in nine of ten runs; {days(t.days)} likely"
    if t.steps is not None:
        text += f", for {t.steps:,.0f} steps"
    items = [line(strong(f"Date to promise: {days(t.days_high)} after the start"), f"{text}.")]
    if t.cost_usd is not None and t.cost_usd_high is not None:
        text = f", price and step together; {usd(t.cost_usd)} likely."
        items.append(line(strong(f"Cost to plan for: {usd(t.cost_usd_high)}"), text))
    return items


def refusal(t: Posttrained) -> Section:
    """That no plan holds the model, and by which arithmetic."""
    said = line(strong("No-go. Impossible"), ": no plan can hold this model on this machine.")
    blocks: list[Block] = [
        Paragraph(text=said, css="verdict bad"),
        *listed("Arithmetic", [sentence(text) for text in t.limits]),
        *listed("What would hold it", [fix_text(fix) for fix in t.fixes]),
    ]
    return Section(id="refusal", blocks=blocks)


def brief(t: Posttrained) -> Section:
    """Why the plan is what it is, and what to avoid, in short."""
    short = [line(tempting(t, one.what), f": {one.cost}.") for one in t.others[:FRONT]]
    blocks = [*listed("Why", [sentence(text) for text in t.why]), *listed("To be avoided", short)]
    return Section(id="brief", blocks=blocks)


def listed(title: str, items: Sequence[str]) -> list[Block]:
    """A list below a heading; neither where there is nothing in it."""
    return [Heading(text=title), Bullets(items=items)] if items else []


def tempting(t: Posttrained, what: str) -> Markup:
    """A layout or a plan in bold: a plan begins with the name of an axis, a layout is a clause."""
    return strong(what if t.rollout is None else upfirst(what))


def traps(t: Posttrained) -> list[Markup]:
    """What looks as good and loses: what, why, what it costs."""
    return [
        line(tempting(t, one.what), f": {one.why} (", strong(one.cost), ").") for one in t.others
    ]


# ---------------------------------------------------------------- what follows
def plan(t: Posttrained) -> Section:
    """The trainer's plan and the rollout's, and among how many."""
    legal = several(t.legal_plans, "legal plan")
    items = [line(strong("Trainer"), f": {t.plan_words}, of {legal}.")]
    if t.rollout is not None:
        r = t.rollout
        items.append(line(strong("Rollout"), f": {rollout_text(r)}."))
        text = (
            f": {r['prompts']:,} prompts, {r['samples']:,} samples each, "
            f"{r['mean_response']:,.0f} tokens in the mean and at most {r['max_response']:,.0f}; "
            f"{several(r['updates'], 'update')} on the samples of a step, which are at most "
            f"{several(r['lag'], 'step')} old."
        )
        items.append(line(strong("A step draws"), text))
    return Section(id="plan", blocks=[Heading(text="Plan"), Bullets(items=items)])


def memory(t: Posttrained) -> Section:
    """What fills a device of each side."""
    items = [line(strong("Trainer"), f": {memory_text(t)}.")]
    if t.rollout is not None:
        held = t.rollout["memory_bytes"]
        text = (
            f": weights {size(held['weights'])}, keys and values of {t.rollout['running']:,} "
            f"samples at their mean length {size(held['keys_values'])}; the engine may fill "
            f"{size(held['engine'])} of {size(held['capacity'])}."
        )
        items.append(line(strong("Rollout"), text))
        if t.rollout["states_leave_the_device"]:
            items.append(line("The trainer's states go to the host while the engine generates."))
    return Section(id="memory", blocks=[Heading(text="Memory"), Bullets(items=items)])


def step(t: Posttrained) -> Section:
    """One step with its interval, by phases of a policy or by parts of a fine-tune."""
    names, times = (PHASES, t.phases_s) if t.rollout else (PARTS, t.step_parts_s)
    whole_s = t.step_s or 1.0
    table = Table(
        columns=columns("Phase" if t.rollout else "Part", "Time#", "Of a step#"),
        rows=rows(
            (names[key], seconds(time), share(time / whole_s))
            for key, time in times.items()
            if time > 0
        ),
        named=True,
    )
    items = [line(strong("A step"), f": {step_text(t)}.")]
    if t.overlaps:
        items.append(line("Rollout and trainer run side by side: phases add up to more than it."))
    return Section(
        id="step", blocks=[Heading(text="Phases of a step"), Bullets(items=items), table]
    )


def recovery(t: Posttrained) -> Section | None:
    """What failures and saves leave."""
    text = goodput_text(t)
    if not text:
        return None
    items = [line(strong("Goodput"), f" {text}.")]
    return Section(id="recovery", blocks=[Heading(text="Failures"), Bullets(items=items)])


def sensitivity(t: Posttrained) -> Section | None:
    """The step under other lengths."""
    if not t.sensitivity:
        return None
    table = Table(
        columns=columns("Change", "Step#", "Longer by#"),
        rows=rows(
            (upfirst(one.change), seconds(one.step_s), percent(one.share, 0, "+"))
            for one in t.sensitivity
        ),
        named=True,
    )
    title = "What the lengths do to a step, the plan kept"
    return Section(id="sensitivity", blocks=[Heading(text=title), table])


def avoid(t: Posttrained) -> Section:
    """What looks as good and loses."""
    items: list[str] = [*traps(t)] or ["No layout or plan tried loses notably to another."]
    return Section(id="avoid", blocks=[Heading(text="Avoid"), Bullets(items=items)])


def assumptions(t: Posttrained) -> Section:
    """Every input: what the design gives, and what was assumed by which rule."""
    rows_of = [one.row() for one in t.assumed]
    return given(t.design, rows_of, "Appendix. Given and assumed", "")


OF_BOTH = ("signing", "assumptions")
SECTIONS: dict[str, Callable[[Posttrained], Section | None]] = {
    "verdict": verdict,
    "refusal": refusal,
    "brief": brief,
    "signing": signing,
    "plan": plan,
    "memory": memory,
    "step": step,
    "recovery": recovery,
    "sensitivity": sensitivity,
    "avoid": avoid,
    "assumptions": assumptions,
}
