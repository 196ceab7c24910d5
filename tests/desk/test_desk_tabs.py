"""What the tabs draw and list: each number from the library, each opening to how it came about,
each picture downloadable."""

from __future__ import annotations

import re

import pytest
import scantling
from scantling.advise import explanation, sweeps
from scantling.advise.design_json import as_dict
from scantling.base.quantities import quantity as quantities
from scantling.base.quantities.quantity import show
from scantling.design.design import Design
from scantling.physics.roofline import roofline
from scantling.verdict.assess import assess
from scantling_site import blueprint, part
from scantling_widgets import quantity_texts
from scantling_widgets.charts import (
    network as charts_network,
    plans as charts_plans,
    roofline as charts_roofline,
    sweeps as charts_sweeps,
)
from scantling_widgets.charts.livechart import LiveChart
from scantling_widgets.desk import legend, studies
from scantling_widgets.desk.desk import DeskPane
from scantling_widgets.desk.page_table import Table
from scantling_widgets.shipped_files import example


@pytest.fixture(scope="module")
def desk():
    return DeskPane(example())


def opened(desk, title):
    panel = next(p for p in desk.panels if p.title == title)
    desk.tabs.selected_index = desk.panels.index(panel)
    assert desk.session.fault is None
    return panel


def test_every_tab_draws_a_run_over_several_sites():
    """What no tier states between sites is left out of its picture."""
    apart = {"cluster.sites": 2, "cluster.site_gbytes_per_s": 12.5, "cluster.site_rtt_ms": 20}
    pane = DeskPane(Design.read(example()).change(apart))
    for panel in pane.panels:
        if panel.answers(tuned=False):
            opened(pane, panel.title)


def worked(panel):
    """The panel once what it does in the background is done."""
    for job in (getattr(panel, "job", None), getattr(panel, "sweep_job", None)):
        if job is not None:
            job.run()
            job.thread.join(60)
            assert not job.thread.is_alive()
    return panel


def widgets(root, kind):
    """Widgets of a kind below one, in the order of the page."""
    found = [root] if isinstance(root, kind) else []
    for child in getattr(root, "children", ()):
        found += widgets(child, kind)
    return found


TITLES = (
    "Plans",
    "Schedule",
    "Network",
    "Roofline",
    "Reliability",
    "Cost",
    "Sensitivity",
    "Evidence",
)


# ---------------------------------------------------------------- every number opens, everything
# downloads
@pytest.mark.slow
@pytest.mark.parametrize("title", TITLES)
def test_every_number_of_a_table_opens_to_where_it_comes_from(desk, title):
    panel = worked(opened(desk, title))
    asked = 0
    for table in widgets(panel.root, Table):
        for index, row in enumerate(table.rows[:3]):
            for column, cell in zip(table.columns, row):
                if isinstance(cell, dict) and cell.get("key"):
                    table.ask(cell["key"], index)
                    detail = table.detail
                    assert detail["title"]
                    assert detail["value"] == cell["text"], (table.label, column["label"])
                    assert "Formula" in dict(detail["lines"]), (table.label, column["label"])
                    asked += 1
    assert asked or title == "Schedule"


def test_numbers_without_a_formula_are_few_and_are_no_results(desk):
    """Of the cells that hold a number, those that do not open are ranks, counts of the plan, or
    places."""
    seen = 0
    plain = {
        "Use",
        "TP",
        "CP",
        "PP",
        "VPP",
        "DP",
        "EP",
        "ETP",
        "Expert TP",
        "Micro-batch",
        "Lines",
        "Plans",
        "Blocks",
        "Switches",
        "Cables",
        "Devices",
        "GPU count",
        "Of usable memory",
        "In all",
    }
    for title in TITLES:
        for table in widgets(opened(desk, title).root, Table):
            if table.label == "What each input moves, in figures":  # of other designs
                continue
            for row in table.rows[:2]:
                for column, cell in zip(table.columns, row):
                    if (
                        isinstance(cell, dict)
                        and not cell.get("key")
                        and isinstance(cell["sort"], float)
                    ):
                        seen += 1
                        assert column["label"] in plain, (table.label, column["label"])
    assert seen


@pytest.mark.slow
@pytest.mark.parametrize("title", TITLES)
def test_every_picture_has_words_a_title_and_a_name_for_its_file(desk, title):
    for chart in widgets(worked(opened(desk, title)).root, LiveChart):
        assert chart.file_name not in ("", "chart")
        assert len(chart.alt) > 20 and "nothing is drawn" not in chart.alt


def test_a_picture_that_waits_for_its_data_says_so():
    assert (
        charts_plans.tornado["likely.days"]
        .words({"likely": {"days": 73.4}}, rows=[], key="likely.days")
        .endswith("nothing is drawn.")
    )


def test_amounts_of_the_two_main_pictures_open(desk):
    for key, picture in (
        (desk.memory_card.key, "memory_by_stage"),
        (desk.step_card.key, "step_breakdown_s"),
    ):
        assert isinstance(key, legend.Key)
        key.ask(key.entries[0]["key"], 0)
        lines = dict(key.detail["lines"])
        assert lines["Formula"]
        assert re.search(r"\d", lines["With these values"])
        assert key.entries[0]["key"].startswith(picture)


def test_every_input_of_every_formula_has_a_value(desk):
    desk.session.advise()
    seen = 0
    given, resolved, around = (
        desk.session.now.figures,
        explanation.inputs(desk.session.now, desk.session.now.figures),
        blueprint(desk.result),
    )
    network = around.network.as_dict()
    topology = network["alternatives"][0]
    rows = {
        "domains": around.domains.as_dict()["rows"][0],
        "risks": around.risks.as_dict()["rows"][0],
        "topologies": {**topology["topology"], **topology},
        "crossings": network["crossings"][0],
        "recovery": around.recovery.as_dict()["elastic"][0],
    }
    two = {"cluster.sites": 2, "cluster.site_gbytes_per_s": 12.5, "cluster.site_rtt_ms": 20}
    apart = assess(desk.session.now.design.change(two))
    said = as_dict(apart, advice=False)
    sites = said, explanation.inputs(apart, said)
    price = {"usd_per_device_hour": 1.0, "preemptions_per_day": 2.0}
    lent = assess(desk.session.now.design.change({"prices.spot": price}))
    said = as_dict(lent, advice=False)
    spot = said, explanation.inputs(lent, said)
    for key, quantity in quantities.table().items():
        if key.startswith(("roofline.", "phases")):  # those of a row
            continue
        seen += 1
        row = rows[key.split(".")[1]] if key.startswith("blueprint.") else {}
        values = {"sites": sites, "spot": spot}.get(key.split(".")[0], (given, resolved))
        for name in quantity.inputs:
            assert explanation.input_value(name, *values, row) is not None, (
                f"{key} speaks of {name}"
            )
    assert seen


def test_a_plan_of_the_list_is_not_explained_by_the_one_on_the_desk(desk):
    plans = opened(desk, "Plans")
    plans.table.ask("candidates.mfu", 3)
    detail = plans.table.detail
    assert detail["value"] == show("mfu", desk.session.now.figures["candidates"][3]["mfu"])
    assert "tokens_per_s_per_device" not in dict(detail["lines"]).get("With these values", "")
    assert "Band" not in dict(detail["lines"])


def test_a_quantity_that_is_as_another_is_explained_by_its_formula():
    assert (
        explanation.base_of(quantity_texts.quantity("memory_by_stage.weights")).key
        == "memory_bytes.weights"
    )
    assert explanation.base_of(quantity_texts.quantity("cost.cost_usd")).key == "cost_usd"
    assert explanation.base_of(quantity_texts.quantity("mfu")).key == "mfu"


# ---------------------------------------------------------------- roofline
def test_the_roofline_picture_holds_the_library_s_points_under_its_lines(desk):
    result = desk.result
    roof = roofline(result).as_dict()
    data = charts_roofline.kernels.data(result.as_dict(), roof=roof)
    assert data["points"]["x"] == [k["intensity"] for k in roof["kernels"]]
    assert data["points"]["y"] == [k["achieved_flops"] for k in roof["kernels"]]
    assert max(data["roofs"]["y"]) == roof["peak_flops"]
    links = charts_roofline.links.data(result.as_dict(), roof=roof)
    assert links["points"]["name"] == [a["axis"].upper() for a in roof["axes"]]
    slopes = {
        name: y / x
        for name, x, y in zip(links["roofs"]["roof"], links["roofs"]["x"], links["roofs"]["y"])
        if y < roof["peak_flops"]
    }
    assert slopes == pytest.approx(
        {"scale-up": roof["scale_up_bytes_per_s"], "scale-out": roof["scale_out_bytes_per_s"]}
    )


# ---------------------------------------------------------------- network
def test_the_drawn_replica_is_all_of_its_ranks_once(desk):
    placement = part(desk.result, "placement").as_dict()
    plan = desk.result.plan
    data = charts_network.nodes["pp"].data({}, placement=placement, by="pp")["devices"]
    assert len(data["node"]) == plan["tp"] * plan["cp"] * plan["pp"]
    assert len(set(zip(data["node"], data["device"]))) == len(data["node"])
    assert set(data["value"]) == set(range(plan["pp"]))


def test_peers_of_a_device_are_its_groups(desk):
    placement = part(desk.result, "placement").as_dict()
    data = charts_network.nodes["peers"].data({}, placement=placement, by="peers")["devices"]
    assert data["group"].count("TP") == desk.result.plan["tp"] - 1
    tp = [n for n, g in zip(data["node"], data["group"]) if g == "TP"]
    assert set(tp) == {"0"}, "tensor parallelism stays in one node"


def test_the_matrix_has_the_traffic_that_the_assessment_lists(desk):
    network = part(desk.result, "network").as_dict()
    data = charts_network.matrix.data(desk.session.now.figures, network=network)
    listed = {
        row["axis"].upper(): show("communication.bytes", row["bytes"])
        for row in desk.session.now.figures["communication"]
    }
    assert {
        row.split()[0]: text for row, text in zip(data["cells"]["axis"], data["cells"]["bytes"])
    } == listed


@pytest.mark.parametrize(
    "name",
    [
        "case-5-deepseek-v3",
        "qwen3-235b-a22b-256-gb200",
        "llama-3.1-405b-256-tpu-v7x",
        "llama-3.1-8b-8-h100-fsdp",
        "case-6-100k-gpus",
    ],
)
def test_any_cluster_can_be_drawn(name):
    result = scantling.assess(Design.read(example(name)))
    given, placement = result.as_dict(advice=False), part(result, "placement").as_dict()
    for by, figure in charts_network.nodes.items():
        data = figure.data(given, placement=placement, by=by)
        assert data["devices"]["node"]
        assert len(set(data["ground"]["node"])) <= 96
        assert set(data["devices"]["device"]) <= set(range(placement["per_node"]))
    blocks = charts_network.site.data(given, placement=placement)["blocks"]
    assert 1 <= len(blocks["pod"]) <= 2048


# ---------------------------------------------------------------- sweeps
def test_any_listed_input_can_be_swept_and_its_own_value_is_among_its_values(desk):
    fields = {a.field: a for a in studies.alongs(desk.session)}
    assert {
        "cluster.devices",
        "model.size",
        "cluster.scale_out",
        "job.seq_len",
        "job.global_batch",
        "plan.tp",
        "plan.micro_batch",
        "reliability.failures_per_1000_node_days",
        "prices.usd_per_device_hour",
    } <= set(fields)
    for along in fields.values():
        assert 0 <= along.now < len(along.values), along.field
        assert len(set(along.texts)) == len(along.values)


@pytest.mark.parametrize(
    "field", ["cluster.devices", "plan.micro_batch", "reliability.failures_per_1000_node_days"]
)
def test_a_cell_is_the_assessment_of_that_design(desk, field):
    along = next(a for a in studies.alongs(desk.session) if a.field == field)
    count, cells = studies.sweep(desk.session, along)
    cells = list(cells)
    assert count == len(cells) == len(along.values)
    own = cells[along.now]
    assert own.figures["step_s"] == pytest.approx(desk.result.step_s)
    other = (along.now + 1) % len(cells)
    if cells[other].verdict != "refused":
        value = along.values[other]
        of = scantling.assess(desk.design.change({field: value}))
        assert cells[other].figures["days"] == pytest.approx(of.days)
        assert cells[other].figures["likely"]["days"] == pytest.approx(of.likely.days)


def test_the_edge_is_drawn_where_feasible_meets_not(desk):
    def cell(verdict, days=None):
        figures = {"likely": {"days": days}} if days else {}
        return sweeps.Cell(at=(), verdict=verdict, figures=figures, memory_share=0.5)

    cells = [
        cell("feasible", 10.0),
        cell("constraint-missed", 20.0),
        cell("feasible", 11.0),
        cell("impossible"),
        cell("feasible", 12.0),
        cell("feasible", 13.0),
    ]
    data = charts_sweeps.heat["likely.days"].data(
        {"likely": {"days": 10.0}},
        cells=cells,
        rows=["a", "b", "c"],
        columns=["x", "y"],
        key="likely.days",
        names=("r", "c"),
        now=0,
    )
    assert list(zip(data["right"]["y"], data["right"]["x"])) == [("a", "x"), ("b", "x")]
    assert list(zip(data["below"]["y"], data["below"]["x"])) == [("b", "y")]
    assert data["bad"]["text"] == ["impossible"]
    assert data["good"]["text"] == ["10.0", "20.0 !", "11.0", "12.0", "13.0"]
    assert data["now"] == {"x": ["x"], "y": ["a"]}


@pytest.mark.slow
def test_a_cell_that_is_clicked_becomes_the_design(desk):
    desk = DeskPane(example())
    panel = opened(desk, "Sensitivity")
    panel.along.value, panel.across.value = "cluster.devices", "job.global_batch"
    panel.sweep_job.run()
    panel.sweep_job.thread.join(120)
    assert desk.session.fault is None
    wide = len(panel.swept[1].values)
    assert len(panel.cells) == wide * len(panel.swept[2].values)
    index = wide + 2
    panel.map.picked = {"index": index, "serial": 1}
    assert desk.design.cluster.devices == panel.swept[1].values[2]
    assert desk.design.job.global_batch == panel.swept[2].values[1]
    assert desk.session.now.figures["step_s"] == pytest.approx(panel.cells[index].figures["step_s"])


def test_both_ends_of_each_bar_stand_below_it_in_figures(desk):
    """Where a telephone shows the bars without their texts."""
    panel = opened(desk, "Sensitivity")
    panel.job.run()
    panel.job.thread.join(120)
    assert desk.session.fault is None
    ends = [(s["what"], s[side]) for s in panel.rows for side in ("low", "high")]
    known = [(what, value) for what, value in ends if value is not None]
    assert [(row[0], row[2]["sort"]) for row in panel.swings.rows] == known
    now = desk.result.likely.days
    for _, _, value, change in panel.swings.rows:
        assert value["sort"] / now - 1 == pytest.approx(change["sort"])


# ---------------------------------------------------------------- reliability
def test_reliability_lists_domains_and_risks_of_the_blueprint(desk):
    panel = opened(desk, "Reliability")
    around = blueprint(desk.result, ("domains", "risks"))
    assert len(panel.domains.rows) == len(around.domains.as_dict()["rows"])
    assert [row[0]["text"] for row in panel.risks.rows] == [
        r["risk"] for r in around.risks.as_dict()["rows"]
    ]
    lost = panel.lost.data["lost"]
    assert sum(lost["share"]) == pytest.approx(
        1 - desk.session.now.figures["endurance"]["goodput"], abs=1e-6
    )
    spares = panel.spares.data
    assert spares["marks"]["spares"][0] == desk.session.now.figures["spares"]


@pytest.mark.slow
def test_a_design_without_tokens_or_stages_says_so_in_place_of_empty_pictures():
    small = DeskPane(example("llama-3.1-8b-8-h100-fsdp"))
    schedule = opened(small, "Schedule")
    assert schedule.none.hidden is False
    assert all(box.hidden for box in [*schedule.pictures, schedule.strip])
    small.controls.form.send_change(
        "model", "qwen3-next-80b-a3b"
    )  # of several blocks: shown on one stage
    small.controls.form.send_change("plan.pp", 1)
    layers = schedule.laid.data["layers"]
    assert schedule.strip.hidden is False and schedule.none.hidden is False
    assert len(set(layers["blocks"])) == 2 and len(layers["blocks"]) == 48
    small = DeskPane(example("llama-3.1-8b-8-h100-fsdp"))
    assert "Tokens under Design" in opened(small, "Cost").why.value
    assert opened(small, "Sensitivity").what.value == "step_s"
    assert show("days", 30.0) in opened(small, "Reliability").domains.note
    notes = {item["key"]: item["note"] for item in small.headline.strip.items}
    assert (notes["likely.days"], notes["likely.cost_usd"]) == (
        "no tokens named",
        "no tokens named",
    )


# ---------------------------------------------------------------- pictures as functions of a
# result, for a report
def pictures():
    from scantling.endure.reliability import waiting
    from scantling_widgets.charts import endurance as charts_endurance, evidence as charts_evidence

    result = scantling.assess(Design.read(example()))
    roof, placement, network = (
        roofline(result).as_dict(),
        part(result, "placement").as_dict(),
        part(result, "network").as_dict(),
    )
    cells = sweeps.sweep(
        result.design, {"cluster.devices": [8192, 16384], "job.global_batch": [1024, 2048]}
    )
    return result, {
        "kernels": (charts_roofline.kernels, {"roof": roof}),
        "links": (charts_roofline.links, {"roof": roof}),
        "replica": (charts_network.nodes["pp"], {"placement": placement, "by": "pp"}),
        "peers": (charts_network.nodes["peers"], {"placement": placement, "by": "peers"}),
        "site": (charts_network.site, {"placement": placement}),
        "matrix": (charts_network.matrix, {"network": network}),
        "spares": (charts_endurance.spares, {"waiting": waiting(result.endurance)}),
        "evidence": (charts_evidence.evidence, {}),
        "line": (
            charts_sweeps.line["likely.days"],
            {
                "cells": cells[1::2],
                "texts": ["8,192", "16,384"],
                "key": "likely.days",
                "name": "GPU count",
            },
        ),
        "map": (
            charts_sweeps.heat["likely.days"],
            {
                "cells": cells,
                "rows": ["8,192", "16,384"],
                "columns": ["1,024", "2,048"],
                "key": "likely.days",
                "names": ("GPU count", "batch"),
            },
        ),
    }


@pytest.mark.slow
def test_every_picture_is_also_a_function_of_a_result_that_draws_without_a_desk():
    import vl_convert
    from scantling_widgets.charts.livechart import vega_version

    result, figures = pictures()
    for name, (figure, more) in figures.items():
        chart = figure(result, **more)
        assert len(chart.to_dict()["description"]) > 40, name
        svg = vl_convert.vegalite_to_svg(chart.to_dict(), vl_version=vega_version())
        marks = len(re.findall(r"<path|<text|<rect", svg))
        assert marks > 12, name
        assert "NaN" not in svg, name
        for word in {
            "kernels": ["FLOP per byte", "TFLOP/s"],
            "links": ["scale-out"],
            "spares": ["spare nodes"],
            "evidence": ["this design", "MFU"],
            "matrix": ["scale-up domain", "waits"],
            "map": ["8,192"],
        }.get(name, []):
            assert word in svg, (name, word)


def test_evidence_shows_the_band_and_the_runs_that_the_library_names(desk):
    from scantling_widgets.charts.evidence import evidence

    given = desk.session.now.figures
    data = evidence.data(given)
    assert (data["here"]["low"], data["here"]["high"]) == ([given["mfu_low"]], [given["mfu_high"]])
    assert data["runs"]["mfu"] == [r["mfu"] for r in given["nearest_runs"]]
    assert len(set(data["order"]["run"])) == 1 + len(given["nearest_runs"])


def test_a_part_of_a_schedule_is_that_part():
    from scantling.physics import schedule
    from scantling_widgets.charts.schedule import gantt, gantt_of, split

    layout = schedule.lay_out("1f1b", 4, 1, 8, 1.0, 1.0, 1.0)
    whole, first = (
        gantt.data({}, layout=layout, window=w)["passes"] for w in ((0.0, 1.0), (0.0, 0.25))
    )
    assert len(whole["start"]) == len(layout.start_s)
    assert 0 < len(first["start"]) < len(whole["start"])
    assert max(first["end"]) <= layout.makespan_s / 4 + 1e-9
    assert gantt_of(layout) is gantt
    assert gantt_of(schedule.lay_out("zb-1p", 4, 1, 8, 1.0, 1.0, 1.0)) is split
