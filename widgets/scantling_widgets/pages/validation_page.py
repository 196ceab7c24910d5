"""The page "How right is it?" from the tables of `make validation`: one offline HTML file."""

from collections.abc import Iterator, Mapping, Sequence
from json import loads
from pathlib import Path
from typing import Any

from markupsafe import Markup
from pandas import DataFrame, read_csv
from scantling.base.show import percent

from .. import shipped_files
from ..charts import validation as charts
from ..report.blocks import (
    Block,
    Bullets,
    Heading,
    Paragraph,
    Raw,
    Row,
    Table,
    Tile,
    Tiles,
    columns,
    line,
    rows as plain_rows,
    strong,
)
from ..report.page import templated
from ..report.phrases import upfirst
from ..report.report_batch import write

KINDS = {
    "family left out": "families of sources left out of the fit",
    "source left out": "sources left out of the fit, siblings kept",
    "folds": "configurations not fitted, from sources that were",
    "in sample": "fitted: runs that were in the fit",
    "one line": "baseline: half of peak, with the bubble",
}
GROUPS = {
    "accelerator": "By accelerator",
    "stack": "By software stack",
    "precision": "By precision",
}
Figures = Mapping[str, Any]  # validation.json


def _signed(x: float | None, digits: int = 1) -> str:
    return percent(x, digits, "+")


def page(
    rows: DataFrame,
    figures: Figures,
    memory: DataFrame | None = None,
    board: DataFrame | None = None,
) -> str:
    """The page as HTML: nothing in it but what the tables hold."""
    blocks: list[Block] = [
        *_headline(figures),
        *_left_out(figures),
        _side_by_side(charts.scatter(rows), charts.spread(rows)),
        Heading(text="Source by source"),
        Raw(html=charts.by_source(rows)),
        *_groups(figures),
        *_bands(figures),
        *_residual(figures),
        *_plans(figures),
        *_worst(figures),
        *_memory(figures, memory),
        *_board(board),
        *_peers(figures),
        *_made(memory is not None),
    ]
    return templated(
        "validation",
        title="How right is it?",
        date=figures["made"],
        footer="scantling",
        blocks=blocks,
    )


def _side_by_side(*pictures: Markup) -> Raw:
    grid = Markup(
        '<div style="display:grid;grid-template-columns:repeat(auto-fit,'
        'minmax(min(100%,26rem),1fr));gap:0 1.6rem">\n{}\n{}\n</div>'
    )
    return Raw(html=grid.format(*pictures))


# ---------------------------------------------------------------- headline
def _headline(f: Figures) -> list[Block]:
    out, again, far = (
        f["headline"]["family left out"],
        f["repeats"],
        f["strangers"]["worse of both"],
    )
    text = (
        f"{out['rows']:,} published training runs from {f['sources']} sources, on "
        f"{f['accelerators']} accelerators and {f['stacks']} software stacks, predicted from their "
        "published plans and compared with what was measured. Error is predicted / measured − 1 of "
        "tokens per second and device. Constants fitted "
        f"{f.get('calibrated') or 'at an unknown date'}."
    )
    tiles = (
        Tile(
            label="on a site never seen",
            value=percent(far["median"]),
            band=f"median error; 90th percentile {percent(far['p90'])}",
        ),
        Tile(
            label="80 % interval there",
            value=percent(far["coverage"], 0),
            band=f"of runs inside; full width {far['width']:.2f}",
        ),
        Tile(
            label="the faster of two plans",
            value=percent(far["right"], 0),
            band="of pairs named rightly on a site never seen",
        ),
        Tile(
            label="same configuration, measured again",
            value=percent(again["median"]),
            band=f"{again['rows']} runs, from their median; 90th percentile "
            f"{percent(again['p90'])}",
        ),
    )
    return [Paragraph(text=text, css="given"), Tiles(tiles=tiles)]


# ---------------------------------------------------------------- what was left out
_LEFT_OUT = Markup(
    "The same model, its few constants fitted on all runs, then without the runs in question. "
    "<em>Families left out</em> is the figure to expect on a site of one's own: all sources of one "
    "maker, recipe or machine at once, every family with weight one. The headline is the worse of "
    "the older two thirds, each left out, and of the newest third, which chose nothing and is "
    "predicted by the older alone. Sources whose siblings stay in the fit are easier; "
    "<em>fitted</em> figures are no promise."
)


def _left_out(f: Figures) -> list[Block]:
    again = f["repeats"]
    floor = (
        f"Floor: {again['rows']} runs repeat one of {again['configurations']} configurations, some "
        f"in a later release of the same software. They lie {percent(again['median'])} from their "
        f"median in the middle, {percent(again['p90'])} at the 90th percentile. No model that "
        "reads the row alone can be nearer than that on these."
    )
    return [
        Heading(text="What was left out of the fit"),
        Paragraph(text=_LEFT_OUT),
        _strangers(f["strangers"]),
        _tiers(f["strangers"]),
        _kinds(f["headline"]),
        Paragraph(text=floor, css="cost"),
    ]


SITES = {
    "recipe": "a maker's tuned recipe",
    "ordinary": "an ordinary site",
    "first-week": "a first week, or a student's code",
}


def _parts(strangers: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The sets of families, all of each and by kind of site."""
    for name in ("families left out", "newest third"):
        if name in strangers:
            yield name, strangers[name]
            for kind, figures in strangers[name]["kinds"].items():
                yield f"{name}: {SITES[kind]}", figures
    for name, figures in strangers["effort unsaid"].items():
        yield f"{name}, effort unsaid", figures


def _tiers(strangers: Mapping[str, Any]) -> Table:
    """How far intervals hold by what is known of stack and chip."""
    return Table(
        columns=columns(
            "Tier, by other families", "Families#", "Runs#", "Inside#", "Half inside#", "Width#"
        ),
        rows=plain_rows(
            (
                name,
                str(r["families"]),
                f"{r['rows']:,}",
                percent(r["coverage"], 0),
                percent(r["half_inside"], 0),
                f"{r['width']:.2f}",
            )
            for name, r in strangers["tiers"].items()
        ),
        css="",
    )


def _strangers(strangers: Mapping[str, Any]) -> Table:
    return Table(
        columns=columns(
            "Families",
            "Number#",
            "Runs#",
            "Median error#",
            "90th percentile#",
            "Mean of the families#",
            "80 % of a bootstrap#",
            "Inside#",
            "Width#",
            "Half of its runs inside#",
            "Faster plan named#",
            "Ratio off#",
        ),
        rows=plain_rows(
            (
                name,
                str(r["families"]),
                f"{r['rows']:,}",
                percent(r["median"]),
                percent(r["p90"]),
                percent(r["family_mean"]),
                f"{percent(r['family_interval'][0])} to {percent(r['family_interval'][1])}",
                percent(r["coverage"], 0),
                f"{r['width']:.2f}",
                percent(r["half_inside"], 0),
                percent(r["right"], 0),
                percent(r["ratio_off"]),
            )
            for name, r in _parts(strangers)
        ),
        css="",
    )


def _kinds(headline: Mapping[str, Any]) -> Table:
    cells = []
    for kind, name in KINDS.items():
        r = headline[kind]
        texts = (
            name,
            f"{r['rows']:,}",
            percent(r["median"]),
            percent(r["p90"]),
            percent(r["over_sources"]),
            percent(r["mean"]),
            _signed(r["bias"]),
        )
        cells.append(Row(cells=texts, css="here" if kind == "family left out" else ""))
    return Table(
        columns=columns(
            "Predicted",
            "Runs#",
            "Median error#",
            "90th percentile#",
            "Median over sources#",
            "Mean#",
            "Bias#",
        ),
        rows=cells,
        css="",
    )


# ---------------------------------------------------------------- groups of runs
def _groups(f: Figures) -> list[Block]:
    floors = {row["key"]: percent(row["median"]) for row in f["repeats"]["by_source"]}
    heads = ("Runs#", "Fitted#", "Folds#", "Source left out#")
    tail = ("90th pct#", "Bias#", "In band#", "One line#")
    blocks: list[Block] = [
        Table(
            columns=columns("Source", *heads, *tail, "Floor#"),
            rows=plain_rows(
                [*_group(row), *_spread(row), floors.get(row["key"], "–")]
                for row in f["by"]["source"]
            ),
        )
    ]
    for name, title in GROUPS.items():
        table = Table(
            columns=columns(upfirst(name), *heads, "Family left out#", *tail),
            rows=plain_rows(
                [*_group(row), percent(row["medians"]["family left out"]), *_spread(row)]
                for row in f["by"][name]
            ),
        )
        blocks += [Heading(text=title), table]
    return [*blocks, Paragraph(text=_one_line_wins(f))]


def _group(r: Mapping[str, Any]) -> list[str]:
    """Name, size and median errors of a group."""
    medians = r["medians"]
    fits = (percent(medians[kind]) for kind in ("in sample", "folds", "source left out"))
    return [r["key"], f"{r['rows']:,}", *fits]


def _spread(r: Mapping[str, Any]) -> list[str]:
    """How errors of a group spread, and what one line of arithmetic reaches."""
    baseline = percent(r["baseline"])
    return [
        percent(r["p90"]),
        _signed(r["bias"]),
        percent(r["coverage"], 0),
        strong(baseline) if r["baseline_wins"] else baseline,
    ]


def _one_line_wins(f: Figures) -> Markup:
    """What the columns are, and where the one line is nearer than the model."""
    groups = [row for table in f["by"].values() for row in table]
    beaten = sum(bool(row["baseline_wins"]) for row in groups)
    start = (
        "Columns are median errors; floor is the median scatter of configurations that were "
        "measured more than once; 90th percentile, bias (median of the signed error) and the share "
        "inside the 80 % band are with the source left out. "
    )
    if not beaten:
        return line(start, "One line of arithmetic wins nowhere.")
    return line(
        start,
        strong("One line of arithmetic wins"),
        f" where its figure is bold: {beaten} of {len(groups)} groups. A rate of half the peak "
        "happens to be what those runs reached; it is no use for choosing between plans, since it "
        "sees neither network nor memory traffic.",
    )


# ---------------------------------------------------------------- bands and residual
def _bands(f: Figures) -> list[Block]:
    text = (
        "Every headline has an 80 % band. It should hold eight runs in ten that the fit has not "
        "seen, and be as narrow as that allows. Which runs it holds is checked here by leaving "
        "them out. It is a Student t of four degrees of freedom, fitted to the errors of families "
        "left out, families weighing alike, and wider for what is not known: a chip or a mechanism "
        "never measured, experts, a first week, steps under half a second."
    )
    table = Table(
        columns=columns(
            "Runs", "Number#", "Inside#", "Slower than the band#", "Faster#", "Median full width#"
        ),
        rows=plain_rows(
            (
                band["key"],
                f"{band['rows']:,}",
                percent(band["coverage"]),
                percent(band["below"]),
                percent(band["above"]),
                f"{band['width']:.2f}",
            )
            for band in f["bands"]
        ),
        css="",
    )
    return [Heading(text="Bands"), Paragraph(text=text), table]


def _residual(f: Figures) -> list[Block]:
    text = (
        "Much of the error with a source left out is common to all of its runs: software release, "
        "clocks and power limits, the network as built, what its figures count. That part belongs "
        "in the band, not in a constant."
    )
    table = Table(
        columns=columns(
            "Runs whose row shows",
            "Runs#",
            "Share of runs#",
            "Share of squared error#",
            "Median error with#",
            "without#",
        ),
        rows=plain_rows(
            (
                c["key"],
                f"{c['rows']:,}",
                percent(c["share_of_rows"], 0),
                percent(c["share_of_error"], 0),
                percent(c["median_with"]),
                percent(c["median_without"]),
            )
            for c in f["residual"]["conditions"]
        ),
        css="",
    )
    return [
        Heading(text="What the error is made of"),
        Raw(html=charts.parts(f["residual"])),
        Paragraph(text=text),
        table,
    ]


# ---------------------------------------------------------------- plans and outliers
def _plans(f: Figures) -> list[Block]:
    plans: Sequence[Mapping[str, Any]] = f.get("plans") or ()
    if not plans:
        return []
    text = (
        "Both are timed by this model; the search may come as near to the end of the memory as the "
        "published plan does. A negative distance is a plan that the search does not look at."
    )
    table = Table(
        columns=columns(
            "Design",
            "Stack",
            "Published plan",
            "Step#",
            "The search's plan",
            "Step#",
            "Longer by#",
            "No stack named#",
        ),
        rows=plain_rows(map(_plan, plans)),
    )
    longer = [line(strong(r["design"]), f": {r['why']}") for r in plans if r["longer"] > 0.005]
    return [
        Heading(text="Plans of published runs beside the best that the search finds"),
        Paragraph(text=text),
        table,
        Bullets(items=longer),
    ]


def _plan(r: Mapping[str, Any]) -> list[str]:
    without = r["longer_without_stack"]
    return [
        r["design"],
        r["stack"] or "none",
        r["plan"],
        f"{r['step_s']:.3g} s",
        "the same" if r["best"] == r["plan"] else r["best"],
        f"{r['best_step_s']:.3g} s",
        _signed(r["longer"]),
        "does not fit" if without is None else _signed(without),
    ]


def _worst(f: Figures) -> list[Block]:
    table = Table(
        columns=columns(
            "Run", "On", "Source left out#", "Folds#", "One line#", "What the row shows"
        ),
        rows=plain_rows(
            (
                _run_link(run),
                f"{run['devices']:,} × {run['accelerator']}, {run['stack']}",
                _signed(run["error"], 0),
                _signed(run["fold_error"], 0),
                _signed(run["baseline_error"], 0),
                f"{upfirst(run['reason'])}.",
            )
            for run in f["worst"]
        ),
    )
    text = "With their source left out of the fit. The reason is what the row itself shows."
    heading = Heading(text=f"The {len(f['worst'])} runs furthest off")
    return [heading, Paragraph(text=text), table]


def _run_link(run: Mapping[str, Any]) -> str:
    url = run.get("url")
    if not url:
        return str(run["id"])
    return _link(url if "://" in url else f"https://{url}", run["id"])


def _link(url: str, text: str) -> Markup:
    return Markup('<a href="{}">{}</a>').format(url, text)


# ---------------------------------------------------------------- memory
def _memory(f: Figures, rows: DataFrame | None) -> list[Block]:
    memory = f.get("memory")
    if not memory:
        return []
    text = (
        "Peaks that were measured, and configurations of which it is known that they ran or ran "
        f"out of memory. One sweep of layouts, {memory['sweep']}, supplies most of the failures; "
        "it stands apart."
    )
    blocks: list[Block] = [Heading(text="Memory"), Paragraph(text=text)]
    if rows is not None:
        blocks.append(Raw(html=charts.memory(rows)))
    blocks.append(_memory_fits(memory["figures"]))
    for chance in memory.get("chances") or ():
        blocks += _chances(chance)
    return blocks


def _memory_fits(figures: Mapping[str, Any]) -> Table:
    fits = {"in sample": "fitted", "family left out": "family left out"}
    parts = {"all": "all", "sweep": "the sweep", "rest": "the rest"}
    cells = []
    for kind, name in fits.items():
        for part, words in parts.items():
            r = figures[kind].get(part)
            if not r:
                continue
            texts = (
                name if part == "all" else "",
                words,
                str(r["peaks"]),
                percent(r["median"]),
                percent(r["p90"]),
                str(r["ran"]),
                percent(r["ran_called_fitting"]),
                str(r["out_of_memory"]),
                percent(r["out_of_memory_called"]),
            )
            cells.append(Row(cells=texts, css="here" if part == "all" else ""))
    return Table(
        columns=columns(
            "Fit",
            "Runs",
            "Peaks#",
            "Median error#",
            "90th pct#",
            "Ran#",
            "Called fitting#",
            "Ran out#",
            "Called too large#",
        ),
        rows=cells,
        css="",
    )


def _chances(c: Mapping[str, Any]) -> list[Block]:
    """Whether chances hold: of the runs to which a chance was given, how many ran out."""
    title = f"Does the chance of running out of memory hold? {c['key'].capitalize()}"
    text = (
        f"{c['rows']:,} runs. Brier score, the mean squared distance between the chance and what "
        f"happened, {c['brier']:.3f}; 0.25 is what a coin says, 0 is certainty that is right."
    )
    table = Table(
        columns=columns("Chance said", "Runs#", "Mean chance#", "Ran out#"),
        rows=plain_rows(
            (
                f"{percent(b['low'], 0)} to {percent(b['high'], 0)}",
                f"{b['rows']:,}",
                percent(b["said"]),
                percent(b["out"]),
            )
            for b in c["bins"]
        ),
        css="",
    )
    return [
        Heading(text=title, level=3),
        Paragraph(text=text),
        Raw(html=_reliability(c["bins"])),
        table,
    ]


def _reliability(bins: Sequence[Mapping[str, Any]]) -> Markup:
    """The chance that was said across, the share that ran out up, a square of 200 pixels."""
    words = "".join(
        f"said {percent(b['said'])}, ran out {percent(b['out'])} of {b['rows']}; " for b in bins
    )
    dots = Markup("").join(
        Markup('<circle cx="{}" cy="{}" r="5" fill="#0072b2"/>').format(
            f"{10 + 200 * b['said']:.1f}", f"{210 - 200 * b['out']:.1f}"
        )
        for b in bins
    )
    return Markup(
        '<svg viewBox="0 0 220 220" width="220" height="220" role="img" '
        'aria-label="Reliability: {}">\n'
        '<rect x="10" y="10" width="200" height="200" fill="none" stroke="currentColor" '
        'opacity="0.3"/><line x1="10" y1="210" x2="210" y2="10" stroke="currentColor" '
        'opacity="0.3"/>\n{}</svg>'
    ).format(words, dots)


# ---------------------------------------------------------------- other planners
def _board(board: DataFrame | None) -> list[Block]:
    if board is None or board.empty:
        return []
    planners = board.fillna({"version": ""}).to_dict("records")
    first = planners[0]
    text = line(
        "The same measured runs for every planner: published runs of dense models on A100-80 (at "
        "most 24 of a source, this kit with the family left out of the fit), the public grid of "
        "nanotron on H100 (in no fit), and experts over EFA by dispatcher (family left out); the "
        "others as they ship. Runs whose sharding a planner has no word for are left out for all. "
        "A run without an answer counts as 100 %. Scaled: after one factor on all answers of a "
        "planner, trained for everybody on the other families or models of the set. ",
        Markup("<code>make leaderboard</code>"),
        f" makes the table, by {first['script']}. ",
        strong(" ".join(nearer(planners)) or "No other planner is nearer in the median."),
    )
    table = Table(
        columns=columns(
            "Runs",
            "Planner",
            "Version",
            "Date",
            "Answered#",
            "Median error#",
            "90th pct#",
            "Median of its answers#",
            "Scaled, median#",
            "Scaled, 90th pct#",
            "Pairs#",
            "Faster plan named#",
            "Ratio off#",
            "Rows a second#",
            "Plans a second#",
        ),
        rows=[
            Row(cells=_planner(planner), css="here" if planner["planner"] == OWN else "")
            for planner in planners
        ],
        css="",
    )
    heading = Heading(text="Leaderboard: the same runs for every planner")
    return [heading, Paragraph(text=text), table]


OWN = "scantling"
NEARER = {  # figure of the board: its words, and whether more is better
    "median": ("median error", False),
    "scaled_median": ("median error after one factor", False),
    "right": ("share of pairs named rightly", True),
}


def nearer(planners: Sequence[Mapping[Any, Any]]) -> list[str]:
    """A sentence for every figure of a set in which another planner is better than this kit."""
    sentences = []
    for own in planners:
        if own["planner"] != OWN:
            continue
        for name, (words, more) in NEARER.items():
            for other in planners:
                if other["set"] != own["set"] or other["planner"] == OWN:
                    continue
                gain = other[name] - own[name]
                if (gain > 0) if more else (gain < 0):
                    sentences.append(
                        f"On {own['set']} {other['planner']} is better in {words}: "
                        f"{percent(other[name])}, this kit {percent(own[name])}."
                    )
    return sentences


def _planner(b: Mapping[Any, Any]) -> list[str]:
    rates = (b["rows_per_s"], b["plans_per_s"])
    return [
        b["set"],
        b["planner"],
        str(b["version"]),
        str(b["date"]),
        f"{b['answered']} of {b['rows']}",
        *(
            percent(_known(b[name]))
            for name in ("median", "p90", "median_answered", "scaled_median", "scaled_p90")
        ),
        "–" if _known(b["pairs"]) is None else f"{b['pairs']:,.0f}",
        percent(_known(b["right"])),
        percent(_known(b["ratio_off"])),
        *("–" if _known(rate) is None else f"{rate:,.0f}" for rate in rates),
    ]


def _known(value: float) -> float | None:
    """A figure of a table; None where it is blank."""
    return value if value == value else None


def _peers(f: Figures) -> list[Block]:
    text = Markup(
        "Error of the step time. This kit with the whole source of those runs left out of the fit; "
        "the others as they publish or as they come out when run as shipped. <em>Own figures</em> "
        "are the peer's, the rest was run for this comparison."
    )
    cells = [row for peer in f["peers"] for row in _peer(peer)]
    table = Table(
        columns=columns("Runs", "Planner", "Number#", "Mean#", "Median#", "Largest#", "How"),
        rows=cells,
        css="",
    )
    return [Heading(text="Other planners on the same runs"), Paragraph(text=text), table]


def _peer(p: Mapping[str, Any]) -> list[Row]:
    """A set of runs: this kit, the one line, and the rivals."""
    own, one = p["source_left_out"], p["one_line"]
    runs = str(p["rows"])
    how = "FLOPs / half of peak × bubble"
    return [
        Row(
            cells=(p["set"], "scantling", runs, *_errors(own), "source left out of the fit"),
            css="here",
        ),
        Row(cells=("", "one line", runs, *_errors(one), how)),
        *(Row(cells=_rival(rival)) for rival in p["rivals"]),
    ]


def _errors(r: Mapping[str, Any]) -> tuple[str, str, str]:
    return percent(r["mean"]), percent(r["median"]), percent(r["max"])


def _rival(r: Mapping[str, Any]) -> tuple[str, ...]:
    name = r["peer"].replace("-", "\u2011")  # hyphens that do not break
    own = " (own figures)" if r["verified"] == "text" else ""
    runs = f"{r['rows']:.0f}" if r["rows"] else "–"
    return "", _link(r["url"], name), runs, *_errors(r), f"{r['how']}{own}"


# ---------------------------------------------------------------- how it is made
def _made(memory: bool) -> list[Block]:
    csv = ' and <a href="memory.csv">memory.csv</a>' if memory else ""
    items = (
        "Counted are runs whose throughput was printed or follows from a printed MFU or TFLOP/s, "
        "and whose plan is known; what a row leaves out is inferred by rules that read no measured "
        "column.",
        "Folds group runs by source, model and scale. A source or a family left out takes all its "
        "runs with it, and the chip's constants that only they support.",
        "The one line is FLOPs / (half of the dense peak) × (1 + (pp − 1) / micro-batches), with "
        "the extra forward pass of full recompute.",
        Markup(
            f'Every line is in <a href="validation.csv">validation.csv</a>{csv}, every figure of '
            'this page in <a href="validation.json">validation.json</a>; '
            "<code>make validation</code> makes them again."
        ),
    )
    return [Heading(text="How these figures are made"), Bullets(items=items)]


def build(out: Path, folder: Path | None = None) -> None:
    """Draw the page of the tables in `folder`, of those that ship without one, into `out`."""
    folder = folder or shipped_files.published("validation/validation.json").parent
    out.mkdir(parents=True, exist_ok=True)
    tables = (folder / f"{name}.csv" for name in ("validation", "memory", "leaderboard"))
    rows, memory, board = (read_csv(path) if path.is_file() else None for path in tables)
    figures = loads((folder / "validation.json").read_text(encoding="utf-8"))
    write(out / "index.html", page(rows, figures, memory, board))
