"""Designs side by side, a number opened to what it is made of, a design from a line."""

from __future__ import annotations

import json

import pytest
from scantling import Design, DesignError, assess, compare, explain
from scantling.advise import sweeps
from scantling.base.quantities import quantity as quantities
from scantling.cli import main
from scantling.physics.constants import PRIORS

LINE = "70B on 512 H100, 2T tokens, 30 days"


@pytest.fixture(scope="module")
def two():
    base = Design.from_text(LINE)
    return assess(base), assess(base.change({"cluster.devices": 1024, "name": "<b>twice</b> | 2"}))


def test_what_differs_stands_first_and_says_what_the_assessments_say(two):
    found = compare(two)
    rows = {row.key: row for row in found.rows}
    assert rows["cluster.devices"].values == (512, 1024) and "job.tokens" not in rows
    assert rows["mfu_shown"].values == tuple(a.mfu_shown for a in two)
    assert rows["days"].cells[0] == quantities.show("days", two[0].days)
    of_plans = [key.removeprefix("plan.") for key in rows if key.startswith("plan.")]
    assert of_plans
    for field in of_plans:
        assert rows[f"plan.{field}"].values == tuple(a.plan[field] for a in two)
    labels = [line[0] for line in found.cells()[1:]]
    assert labels[0] == rows["verdict"].label
    same = [rows[k].label for k in ("params", "plan.tp") if k in rows and not rows[k].differs]
    assert same and min(map(labels.index, same)) > labels.index(rows["days"].label)
    assert len(repr(found)) < 1500 and "twice" in repr(found).splitlines()[0]


def test_mfu_is_compared_in_one_convention():
    """One of 65,536 tokens, whose MFU counts attention as causal masks leave it, and one of 4,096,
    which is then shown so too, with bands; alone each keeps its own."""
    base = Design.from_text("8B on 64 H100, 1T tokens")
    short, long = (
        assess(base.change({"job.seq_len": n, "job.global_batch": 2**22 // n}))
        for n in (4096, 65536)
    )
    assert (short.mfu_basis, long.mfu_basis) == ("full", "causal")
    row = next(row for row in compare([short, long]).rows if row.key == "mfu_shown")
    assert row.values == (short.mfu_causal, long.mfu_causal) and "causal" in row.label
    assert row.bands[1] == quantities.band("mfu", long.mfu_shown_low, long.mfu_shown_high)
    alone = next(row for row in compare([short, short]).rows if row.key == "mfu_shown")
    assert alone.values == (short.mfu, short.mfu) and "causal" not in alone.label


def test_cells_of_a_sweep_side_by_side_say_by_which_count_they_are_shown():
    """As `test_mfu_is_compared_in_one_convention`, of the copies of one design; one that no plan
    fits has nothing to show."""
    base = Design.from_text("8B on 64 H100, 1T tokens")
    lengths = {"job.seq_len": [4096, 65536], "job.global_batch": [1024, 64]}
    cells = sweeps.sweep(base, lengths, together=True)
    assert [cell.figures["mfu_basis"] for cell in cells] == ["full", "causal"]
    shown = sweeps.comparable([*cells, sweeps.Cell(at=(), verdict="refused")])
    assert [cell.figures.get("mfu_basis") for cell in shown] == ["causal", "causal", None]
    assert shown[0].figures["mfu_shown"] == cells[0].figures["mfu_causal"]
    assert sweeps.comparable(cells[:1]) == cells[:1]


def test_phases_are_said_in_words(two):
    """Nested fields of a file are no literal of a language in a table."""
    job = {
        "phases": [
            {"tokens": 1.9e12, "seq_len": 4096, "global_batch": 1024},
            {"tokens": 1e11, "seq_len": 131072, "global_batch": 32, "plan": {"cp": 8}},
        ]
    }
    phased = assess(Design.from_data(two[0].design.data() | {"job": job}))
    row = next(row for row in compare([two[0], phased]).rows if row.key == "job.phases")
    assert row.cells[0] == "not given"
    assert "tokens 1.90 T, seq_len 4,096" in row.cells[1] and "plan.cp 8" in row.cells[1]
    assert not set("{}[]'") & set(row.cells[1])


def test_a_name_is_data_in_every_form(two):
    found = compare(two)
    assert "&lt;b&gt;twice" in found._repr_html_() and "<b>twice" not in found._repr_html_()
    lines = found.markdown().splitlines()
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1


def test_one_design_has_nothing_to_be_compared_with(two):
    with pytest.raises(DesignError, match="two or more"):
        compare(two[:1])


def test_the_command_ends_with_the_worst_of_the_designs(two, tmp_path, capsys):
    files = []
    for i, one in enumerate(two):
        files.append(str(tmp_path / f"{i}.yaml"))
        one.design.write(files[-1])
    code = main(["compare", *files, "--json"])
    said = json.loads(capsys.readouterr().out)
    (verdicts,) = (row["values"] for row in said["rows"] if row["key"] == "verdict")
    assert verdicts == [a.verdict for a in two]
    assert code == (3 if "constraint-missed" in verdicts else 0)
    page = tmp_path / "page.html"
    assert main(["compare", *files, "-o", str(page)]) == code
    assert "<script" not in page.read_text() and "&lt;b&gt;twice" in page.read_text()
    assert main(["compare", files[0]]) == 2
    assert capsys.readouterr().err.startswith("scantling: ")


def test_a_number_opens_to_its_formula_values_and_constants(two):
    a = two[0]
    found = explain(a, "mfu")
    lines = dict(found.lines)
    # PaLM, appendix B: observed tokens a second over what the peak allows
    peak = a.resolved.cluster.accelerator.peak_flops("bf16")
    assert a.mfu == pytest.approx(a.tokens_per_s_per_device * a.flops_per_token / peak)
    assert "tokens_per_s_per_device" in lines["Formula"] and "2204.02311" in lines["Source"]
    shown = quantities.show("tokens_per_s_per_device", a.tokens_per_s_per_device)
    assert shown in lines["With these values"]
    names = {name for name, *_ in found.constants}
    assert {"gemm", "attention"} <= names <= set(PRIORS)
    assert all(source for *_, source in found.constants)
    assert not explain(a, "memory_bytes.weights").constants
    assert len(repr(found)) < 1500
    with pytest.raises(DesignError, match="mfu"):
        explain(a, "mfuu")


def test_every_headline_number_opens(two):
    keys = [k for k, v in two[0].headline().items() if isinstance(v, float)]
    assert len(keys) > 20
    for key in keys:
        found = explain(two[0], key)
        assert found.value and dict(found.lines), key


def test_a_line_becomes_the_design_that_init_writes(tmp_path):
    path = tmp_path / "made.yaml"
    assert main(["init", "--text", LINE, "-o", str(path)]) == 0
    assert Design.from_text(LINE).data() == Design.read(path).data()
    assert Design.from_text(path.read_text()).data() == Design.read(path).data()


def test_an_assessment_shows_itself_shortly(two):
    text = repr(two[0])
    assert len(text) < 1500 and quantities.show("days", two[0].days) in text
    assert "&lt;b&gt;" in two[1]._repr_html_()


@pytest.mark.parametrize(
    "change",
    [
        {"cluster.devices": 128},
        {"job.precision": "fp8"},
        {"job.seq_len": 65536, "job.global_batch": 32},
        {"measured.step_s": 9.0},
        {"cluster.accelerator": "a100-80-sxm"},
    ],
)
def test_the_parts_of_the_step_add_up_to_its_change(change):
    before = Design.from_text("8B on 64 H100, 1T tokens, 8k context, batch 256")
    rows = compare([assess(before), assess(before.change(change))]).rows
    (step,) = (row.values for row in rows if row.key == "step_s")
    parts = [row for row in rows if row.group == "step"]
    assert parts[-1].key == "step_breakdown_s.others"
    for i in (0, 1):
        assert sum(row.values[i] for row in parts) == pytest.approx(step[i], rel=1e-9)
    moves = [abs(row.values[1] - row.values[0]) for row in parts[:-1]]
    assert moves == sorted(moves, reverse=True) and min(moves) > 0.01 * max(step)


def test_no_part_is_said_of_a_step_that_stays():
    design = Design.from_text("8B on 64 H100, 1T tokens, 8k context, batch 256")
    pair = [assess(design), assess(design.change({"constraints.deadline_days": 90}))]
    assert not [row for row in compare(pair).rows if row.group == "step"]
