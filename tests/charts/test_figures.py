"""Figures as Altair charts: legal by Vega-Lite's schema, drawn without Altair where it is missing,
and titled by what is swept."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from scantling_widgets.charts import endurance, memory_step, network, plans, schedule
from scantling_widgets.charts.ahead import FIGURES, drawn_ahead
from scantling_widgets.charts.figure import Figure, compiled, laid, records, table
from scantling_widgets.charts.palette import MEMORY, STEP
from scantling_widgets.charts.sweeps import heat, line, titled_axes
from scantling_widgets.desk.panels import base


@pytest.mark.parametrize("legend", [False, True])
@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_the_marks_of_every_figure_keep_to_the_schema_of_vega_lite(figure, legend):
    spec = compiled(figure.draw(legend))  # Altair holds it to the schema
    assert figure.spec(legend).items() >= spec.items()


def test_every_figure_has_a_name_of_its_own():
    names = [figure.name for figure in FIGURES]
    assert len(names) == len(set(names))


def test_what_the_desk_and_the_report_show_is_drawn_ahead_for_the_page():
    shown = [memory_step.memory, memory_step.step, network.traffic, endurance.goodput]
    shown += [endurance.ladder, schedule.laid, *plans.printed_tornado.values()]
    panels = [base.Panel]
    while panels:
        panel = panels.pop()
        panels += panel.__subclasses__()
        shown += panel.charts
    assert {figure.name for figure in shown} <= {figure.name for figure in FIGURES}


WITHOUT_ALTAIR = """
import json, pathlib, sys
sys.modules["altair"] = None
from scantling_widgets.charts import ahead, figure
figure.DRAWN_AHEAD, figure.in_a_page = pathlib.Path(sys.argv[1]), lambda: True
print(json.dumps({f.name: [f.spec(False), f.spec(True)] for f in ahead.FIGURES}))
"""


def test_a_page_that_has_no_altair_shows_the_same_marks(tmp_path):
    (tmp_path / "drawn.json").write_text(drawn_ahead(), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ALTAIR, str(tmp_path / "drawn.json")],
        capture_output=True,
        text=True,
        check=True,
    )
    here = {figure.name: [figure.spec(False), figure.spec(True)] for figure in FIGURES}
    assert json.loads(done.stdout) == here


def test_importing_the_widgets_loads_neither_the_desk_nor_altair():
    code = (
        "import sys, scantling_widgets;"
        "heavy = 'altair.vegalite', 'scantling_widgets.desk', 'numpy';"
        "print(*(name for name in heavy if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_sweep_names_its_inputs_on_its_axes_and_nothing_else():
    for figure, titles in ((line["mfu"], {"x": "GPUs"}), (heat["mfu"], {"x": "GPUs", "y": "pp"})):
        before, after = figure.spec(), titled_axes(figure.spec(), titles)
        for was, now in zip(before["layer"], after["layer"]):
            assert was["mark"] == now["mark"]
            for channel, encoding in now["encoding"].items():
                own = was["encoding"][channel]
                named = encoding.get("title")
                assert encoding == own or named == titles[channel]
        text = json.dumps(after)
        assert all(f'"title": "{name}"' in text for name in titles.values())


@pytest.mark.parametrize("parts", [MEMORY, STEP])
def test_parts_of_a_whole_lie_end_to_end(parts):
    amounts = {key: float(i) for i, key in enumerate(parts)}
    rows = laid(parts, amounts)
    assert [row.start for row in rows] == [0.0, *(row.end for row in rows[:-1])]
    assert rows[-1].end == sum(amounts.values())
    assert [row.size for row in laid(parts, {})] == [0.0] * len(parts)


def test_rows_and_columns_are_the_same_thing():
    rows = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    assert records(table(rows)) == rows
    assert records({"a": [1.0, float("nan")]}) == [{"a": 1.0}, {"a": None}]


def test_a_figure_is_an_altair_chart_of_an_assessment():
    import altair

    figure = Figure(
        name="one",
        title="One",
        draw=lambda legend: altair.Chart(altair.NamedData("rows")).mark_bar().encode(x="a:Q"),
        rows=lambda given: {"rows": [{"a": given["a"]}]},
        words=lambda given: f"a is {given['a']}",
    )
    chart = figure({"a": 3}).to_dict()
    assert chart["datasets"] == {"rows": [{"a": 3}]}
    assert chart["description"] == "a is 3"
