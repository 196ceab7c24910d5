"""What the figures rest on: what was measured here, what was published, what was given and assumed,
and the formulas."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from scantling.base.quantities.quantity import Quantity
from scantling.base.records import Assumed, AssumedRow
from scantling.base.show import seconds, share, value_text
from scantling.design.design import Design
from scantling.physics.bands import WithoutLoneSources
from scantling.verdict.result import Result, band_of
from scantling_brief.weights import moves, weightiest

from ...quantity_texts import plan_text
from ..blocks import (
    Block,
    Bullets,
    Column,
    Heading,
    Paragraph,
    Row,
    Section,
    Table,
    columns,
    line,
    rows,
    strong,
)
from ..phrases import in_unit, whole
from ..view import View, appendix, stated_fields

MOST_POINTS, MOST_RUNS = 12, 8  # measured steps and published runs that are listed


# ---------------------------------------------------------------- measured here
def measured(view: View) -> Section | None:
    """What was measured on this machine, where the design names a calibration."""
    here = view.facts.get("measured_here")
    if not here:
        return None
    items = [_measurement(view, here)]
    if here["steps"].get("factor"):
        items.append(_factor(view, here))
    blocks: list[Block] = [Heading(text="Measured here"), Bullets(items=items)]
    if here["steps"].get("points"):
        blocks.append(_points(view, here["steps"]["points"][:MOST_POINTS]))
    if here["goodput"].get("badput"):
        blocks += _goodput(view, here)
    if here.get("constants"):
        constants = Table(
            columns=columns("Constant", "Published runs#", "Here#"),
            rows=rows(
                (
                    row["name"].replace("_", " "),
                    in_unit("ratio", row["was"]),
                    in_unit("ratio", row["value"]),
                )
                for row in here["constants"]
            ),
        )
        blocks.append(constants)
    return Section(id="measured", blocks=blocks)


def _measurement(view: View, here: Mapping[str, Any]) -> Markup:
    about = ""
    if view.facts.get("stack"):
        about += f", {view.facts['stack']}"
    if here["steps"].get("release"):
        about += f", release {here['steps']['release']}"
    steps, peaks = here["steps"].get("runs"), here["peaks"].get("runs")
    measured = []
    if steps:
        measured.append(f"{whole(steps)} measured step{'s' if steps > 1 else ''}")
    if peaks:
        measured.append(f"{whole(peaks)} measured peak{'s' if peaks > 1 else ''} of memory")
    what = " and ".join(measured) or "kernels or collectives"
    return line(strong(f"{here['made']}, {here['device']}"), f"{about}: {what}.")


def _factor(view: View, here: Mapping[str, Any]) -> Markup:
    a, usual = view.facts, here["usual_s"]
    return line(
        "A step takes ",
        strong(in_unit("ratio", here["steps"]["factor"])),
        " times what published runs say; with what was measured the 80 % band is "
        f"{seconds(a['step_s_low'])} to {seconds(a['step_s_high'])}, without it "
        f"{seconds(usual[0])} to {seconds(usual[1])}.",
    )


def _points(view: View, points: list[Mapping[str, Any]]) -> Table:
    a = view.facts
    cells = [
        Row(cells=("measured", whole(p["devices"]), seconds(p["step_s"]), share(p["mfu_shown"])))
        for p in points
    ]
    own = (
        "this design, predicted",
        whole(a["devices_used"]),
        seconds(a["step_s"]),
        share(a["mfu_shown"]),
    )
    return Table(
        columns=columns("Step", "Devices#", "Seconds#", "MFU#"),
        rows=[*cells, Row(cells=own, css="here")],
    )


def _goodput(view: View, here: Mapping[str, Any]) -> list[Block]:
    goodput, planned = here["goodput"], here["planned"]
    logs = f"{whole(goodput['logs'])} log{'s' if goodput['logs'] > 1 else ''}"
    text = line(
        f"Goodput of the wall clock in {logs}: ",
        strong(share(goodput["goodput"])),
        f"; of this design {share(view.facts['goodput'])}, without its first start and "
        "evaluations.",
    )
    table = Table(
        columns=columns("Wall clock lost to", "Here#", "Planned#"),
        rows=rows(
            (cause, share(lost), share(planned.get(cause, 0)))
            for cause, lost in goodput["badput"].items()
        ),
    )
    return [Paragraph(text=text), table]


# ---------------------------------------------------------------- published runs
def evidence(view: View) -> Section | None:
    """The nearest published runs beside the design."""
    a = view.facts
    if not a.get("nearest_runs"):
        return None
    table = Table(
        columns=(
            *columns("Run", "Accelerator", "Devices#", "Plan", "MFU#", "Predicted#", "Differences"),
            Column(title="Source", css="long"),
        ),
        rows=[_design_row(view), *map(_run_row, a["nearest_runs"][:MOST_RUNS])],
    )
    blocks: list[Block] = [Heading(text="Nearest published runs")]
    blocks.append(
        table
        if view.full
        else Bullets(items=[_mfu_beside(a), _nearest_run(a, a["nearest_runs"][0])])
    )
    without = a.get("without_single_source")
    if without:
        blocks.append(Bullets(items=[_one_source(without)]))
    return Section(id="evidence", blocks=blocks)


def _mfu_beside(a: Result) -> Markup:
    """MFU of the design between those of the runs most like it."""
    measured = [run["mfu_shown"] for run in a["nearest_runs"][:MOST_RUNS] if run["mfu_shown"]]
    return line(
        strong(f"MFU {share(a['mfu_shown'])} predicted"),
        f", {band_of(a, 'mfu_shown')} in eight of ten; the {len(measured)} "
        f"published runs most like it measured {share(min(measured))} to {share(max(measured))}.",
    )


def _nearest_run(a: Mapping[str, Any], run: Mapping[str, Any]) -> Markup:
    return line(
        strong("Nearest published run"),
        f": {run['model']} on {whole(run['devices'])} {run['accelerator']}, MFU "
        f"{share(run['mfu_shown'])} measured, {share(run['predicted_shown'])} by this kit where it "
        f"has not seen that site, {share(a['mfu_shown'])} here ({a['mfu_basis']} attention); "
        f"differences, run against plan: {run['differs']}.",
    )


def _design_row(view: View) -> Row:
    a = view.facts
    spread = band_of(a, "mfu_shown")
    return Row(
        css="here",
        cells=(
            "this design",
            view.cluster.accelerator.id,
            whole(a["devices_used"]),
            plan_text(view.plan),
            "",
            share(a["mfu_shown"]),
            "",
            f"{spread}; of the others, without their family of sources",
        ),
    )


def _run_row(run: Mapping[str, Any]) -> Row:
    locator = f", {run['locator']}" if run.get("locator") else ""
    return Row(
        cells=(
            run["model"],
            run["accelerator"],
            whole(run["devices"]),
            run["plan"],
            share(run["mfu_shown"]),
            share(run["predicted_shown"]),
            run["differs"],
            f"{run['source']}{locator}",
        )
    )


def _one_source(without: WithoutLoneSources) -> Markup:
    return line(
        strong("One source alone"),
        f" supports the constants of {', '.join(without['single_source'])}; without them the step "
        f"takes {seconds(without['step_s'])} at MFU {share(without['mfu_shown'])}, and the band is "
        "wider for it.",
    )


# ---------------------------------------------------------------- inputs
def assumptions(view: View) -> Section:
    """Every input: what the design gives, and what was assumed by which rule."""
    assumed = view.facts.get("assumed") or [row.row() for row in view.resolved.assumed]
    if not view.full:
        return _inputs_in_short(view, assumed)
    title = "Given and assumed"
    return given(view.resolved.design, assumed, title, "" if view.plan else "dense")


def given(design: Design, assumed: Sequence[AssumedRow], title: str, css: str) -> Section:
    """What a design gives, and what was assumed."""
    table = Table(
        columns=columns("Field", "Value", "From"),
        rows=[
            *_stated(design),
            *(_assumed(row["field"], row["value"], row["why"]) for row in assumed),
        ],
        css=css,
    )
    return Section(id="assumptions", blocks=[Heading(text=title), table])


def _stated(design: Design) -> list[Row]:
    return [Row(cells=(path, value, "given")) for path, value in stated_fields(design)]


def _assumed(field: str, value: Any, why: str) -> Row:
    return Row(cells=(field, value_text(value), f"assumed: {why}"), css="assumed")


def _inputs_in_short(view: View, assumed: Sequence[AssumedRow]) -> Section:
    """What the design gives, and the assumptions that days and dollars hang on most."""
    design = view.resolved.design.change({"unread": None})
    rules = [Assumed(field=row["field"], value=row["value"], why=row["why"]) for row in assumed]
    weighed = weightiest(design, rules) if view.plan else []
    heavy = [
        _assumed(one.assumed.field, one.assumed.value, f"{one.assumed.why}{moves(one)}")
        for one in weighed
    ]
    blocks: list[Block] = [
        Heading(text="Given and assumed"),
        Table(
            columns=columns("Field", "Value", "From"),
            rows=[*_stated(view.resolved.design), *heavy],
            css="",
        ),
    ]
    more = len(assumed) - len(heavy)
    if more > 0:
        text = f"{whole(more)} more assumptions, each with its rule: scantling report --full."
        blocks.append(Paragraph(text=text, css="cost"))
    return Section(id="assumptions", blocks=blocks)


def quantities(view: View) -> Section | None:
    """The numbers of the assessment with formula, convention and source."""
    listed = appendix(view.facts)
    if not listed:
        return None
    table = Table(
        columns=columns("Quantity", "Value#", "Formula", "Convention and source"),
        rows=rows((q.label, value, q.formula, _convention(q)) for q, value in listed),
    )
    heading = Heading(text="Quantities, formulas, conventions")
    return Section(id="quantities", blocks=[heading, table])


def _convention(quantity: Quantity) -> Markup:
    if not quantity.source:
        return line(quantity.convention)
    before = f"{quantity.convention}. " if quantity.convention else ""
    return line(before, Markup('<span class="cost">{}</span>').format(quantity.source))
