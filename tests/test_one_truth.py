"""One rule, one answer: what the surfaces of the kit say of the same thing is the same, for every
design of the gallery and for designs drawn at random."""

from __future__ import annotations

import ast
import json
import re
from contextlib import suppress
from functools import cache
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from random_designs import drawn
from scantling import Assessment, Design, DesignError, assess, catalogue, search
from scantling.advise import design_json
from scantling.advise.design_json import as_dict
from scantling.base.quantities.quantity import show
from scantling.base.records import at
from scantling.base.show import seconds as seconds_text
from scantling.cli import main as command
from scantling.endure.checkpoint import contents
from scantling.physics import collectives
from scantling.physics.cases import accumulated
from scantling.physics.memory.peak import ZONES, zone
from scantling.physics.step import hardware_share
from scantling.runs.predict import predict_frame
from scantling.runs.read import read_runs
from scantling.verdict.limits import limits
from scantling.verdict.overheads import OWN_COMPUTATION, overheads
from scantling.verdict.texts import loss_name
from scantling_kits import FRAMEWORKS, Inexpressible, framework, kits
from scantling_kits.launched import launch_plan
from scantling_kits.misfits import hard_gaps
from scantling_kits.rank_state import state_bytes
from scantling_kits.run_guide import bus_rates
from scantling_site import part
from scantling_widgets.charts.palette import STEP
from scantling_widgets.desk.headline import cards, explanation
from scantling_widgets.desk.session import Session
from scantling_widgets.desk.story import bottleneck
from scantling_widgets.quantity_texts import withheld
from scantling_widgets.report import Report
from scantling_widgets.report.view import TILES, headline, tile_name

ROOT = Path(__file__).parents[1]
GALLERY = sorted((ROOT / "gallery/designs").glob("*.yaml"))
RANDOM = range(5, 40)
AXES = ("tp", "cp", "ep", "pp", "dp")


@cache
def shipped() -> dict[Path, Assessment]:
    """Assessments of the gallery, by the design file."""
    return {path: assess(path) for path in GALLERY}


@cache
def assessments() -> list[Assessment]:
    """Assessments of the gallery and of the drawn designs that some plan fits."""
    found = [*shipped().values()]
    for number in RANDOM:
        with suppress(DesignError):
            found.append(assess(Design.from_data(drawn(number))))
    return [a for a in found if a.phases and a.plan]


@cache
def told(a: Assessment) -> dict:
    """What `design --json` says of one of the assessments; each is worked out once."""
    return as_dict(a, False)


@cache
def launched() -> list:
    """(assessment, plan.json of its kit) of the gallery's feasible designs, by the first framework
    that expresses the very plan of the very model (a kit that cannot, as Megatron-LM's of BLOOM's
    norm after the embedding, counts its own parameters and names the gap)."""
    out = []
    for a in assessments()[: len(GALLERY)]:
        if not a.met:
            continue
        for to in FRAMEWORKS:
            try:
                if hard_gaps(launch_plan(a, framework(to), "torchrun", a.resolved.main)):
                    continue
                plan = json.loads(kits(a, to)["plan.json"])
            except Inexpressible:
                continue
            same = plan["params"] == told(a)["params"]
            assert same or "model" in {gap["field"] for gap in plan["not_expressed"]}
            if same and plan["plan"] == plan["assessed"]:
                out.append((a, plan))
                break
    return out


@pytest.mark.slow
def test_there_are_designs_enough():
    assert len(assessments()) > 55
    assert len(launched()) > 8


@pytest.mark.slow
def test_hfu_is_mfu_times_what_the_hardware_does_besides():
    for a in assessments():
        assert a.hfu == pytest.approx(a.mfu * float(hardware_share(a.chosen.case)), rel=1e-12)
        assert told(a)["hfu"] == a.hfu
        assert a.hfu >= a.mfu * (1 - 1e-12)
    for a, plan in launched():
        assert plan["figures"]["hfu"] == pytest.approx(a.hfu, rel=1e-12)


def test_predict_counts_hfu_as_the_assessment_does(tmp_path):
    """At 131,072 tokens attention weighs most, and two counts of it would part."""
    design = Design.read(ROOT / "gallery/designs/llama-3.1-70b-128-h100.yaml")
    design = design.change({"job.seq_len": 131_072, "job.global_batch": 64})
    a = assess(design.change({"plan.recompute": "selective"}))
    p, m, k = a.plan, a.resolved.model, a.resolved.cluster
    row = {name: p[name] for name in (*AXES, "vpp", "etp", "sharding", "micro_batch", "recompute")}
    row |= dict(
        id="own",
        stack=a.resolved.stack or "",
        accelerator=k.accelerator.id,
        precision="bf16",
        seq_len=131_072,
        n_devices=a.devices_used,
        sp=int(p["sp"]),
        global_batch_seqs=64,
    )
    for name in "layers hidden ffn_hidden heads kv_heads head_dim vocab mlp attention".split():
        row[name] = getattr(m, name)
    pd.DataFrame([row]).to_csv(tmp_path / "own.csv", index=False)
    (got,) = predict_frame(read_runs(tmp_path / "own.csv")).to_dict("records")
    assert got["hfu"] / got["mfu"] == pytest.approx(a.hfu / a.mfu, rel=1e-9)


@pytest.mark.parametrize("name", catalogue.optimizers())
def test_an_optimizer_weighs_the_same_in_memory_checkpoint_and_kit(name):
    design = Design.read(ROOT / "gallery/designs/llama-3.1-8b-8-h100-fsdp.yaml")
    design = design.change({"job.optimizer": name})
    case = assess(design).chosen.case
    row = catalogue.optimizer(name)
    n = 8e9
    kept = row.moment_bytes
    assert contents(n, optimizer=name).moments == pytest.approx(kept * n)
    for states in ("fp32 shards", "16-bit with master"):
        assert state_bytes(states, "none", 1, n, optimizer=name)["moments"] == kept * n
    assert float(case.job.optimizer_bytes) == kept


@pytest.mark.slow
def test_usable_memory_is_one_number_and_its_zones_are_one_rule():
    seen = 0
    for a in assessments():
        m = a.memory_bytes
        fullest = max(a.phases, key=lambda one: float(one.memory.total / one.memory.capacity))
        assert m["capacity"] == float(fullest.memory.capacity)
        assert a.fits == all(bool(one.memory.fits) for one in a.phases)
    for a in assessments()[: len(GALLERY)]:
        table = search(a.design)
        if not len(table):
            continue
        seen += 1
        share = table.memory_bytes / float(a.chosen.memory.capacity)
        said = [
            ZONES[int(i)] for i in np.atleast_1d(zone(table.memory_bytes, a.chosen.memory.capacity))
        ]
        assert list(table.zone) == said
        assert (share <= 1 + 1e-12).all()
    assert seen


@pytest.mark.slow
def test_micro_batches_are_counted_in_one_way():
    for a in assessments():
        p, phase = a.plan, a.chosen.phase
        counted = accumulated(phase.global_batch, p["dp"], p["micro_batch"])
        assert p["grad_accum"] == counted == float(a.chosen.case.micro_batches)
    for a, plan in launched():
        assert plan["plan"]["grad_accum"] == plan["train"]["grad_accum"] == a.plan["grad_accum"]


@pytest.mark.slow
def test_the_main_phase_is_the_one_with_the_most_tokens_on_every_surface():
    for a in assessments():
        tokens = [one.phase.tokens or 0 for one in a.phases]
        assert a.chosen is a.phases[tokens.index(max(tokens))]
        assert a.chosen.phase is a.resolved.main_phase
    for a, plan in launched():
        assert plan["tokens"] == a.chosen.phase.tokens
        assert plan["seq_len"] == a.chosen.phase.seq_len


@pytest.mark.slow
def test_bytes_shown_are_bytes_timed():
    for a in assessments():
        step = a.chosen.step
        for row in told(a)["communication"]:
            timed = step.axes[row["axis"]]
            assert row["bytes"] == float(timed.bytes)
            assert row["time_s"] == pytest.approx(float(timed.exposed_s + timed.hidden_s))


def exchanges(path) -> dict[str, np.ndarray]:
    """Seconds of what a step sends between nodes, as each surface has them."""
    a = assess(path)
    rows = [r for r in as_dict(a, False)["communication"] if r["axis"] in ("dp", "pp")]
    network = part(a, "network")
    far = [r for r in network.axes if r.tier == "scale-out" and r.axis in ("dp", "pp")]
    rings = [c for c in network.curves if c.domains > 1 and c.picked[-1] == "ring"]
    kit = launch_plan(a, framework("megatron"), "torchrun", a.resolved.main)
    return {
        "step": np.array([r["time_s"] for r in rows if r["time_s"]]),
        "network": np.array([r.alone_s for r in far]),
        "curves": np.array([c.seconds["ring"][-1] for c in rings]),
        "kit": 1 / np.array([rate for _, rate in bus_rates(kit)]),
    }


@pytest.mark.parametrize("name", ["llama-3.1-405b", "llama-3.1-70b-128-h100"])
def test_step_network_report_and_kit_time_a_collective_by_one_model(name, monkeypatch):
    """Cards of half the rate, in the one place where a ring meets them: whatever shows a collective
    between nodes takes longer, by no more than the cards are slower."""
    path = ROOT / f"gallery/designs/{name}.yaml"
    design = Design.read(path)
    a = assess(design)
    pinned = design.change({f"plan.{k}": v for k, v in a.plan.items() if k in AXES})
    before = exchanges(pinned)
    rate = collectives.out_rate
    monkeypatch.setattr(collectives, "out_rate", lambda w: rate(w) / 2)
    after = exchanges(pinned)
    for surface, seconds in before.items():
        assert len(seconds), surface
        ratio = after[surface] / seconds
        assert np.all((ratio > 1.05) & (ratio < 2.0001)), (surface, ratio)


@pytest.mark.slow
def test_goodput_alone_says_what_the_design_says(capsys):
    seen = 0
    for path in GALLERY:
        code = command(["goodput", str(path), "--json"])
        alone = json.loads(capsys.readouterr().out)
        if code == 4:
            continue
        seen += 1
        whole = told(shipped()[path])
        keys = "goodput mtbf_s checkpoint_interval_s checkpoint_bytes checkpoint_overhead spares"
        for key in keys.split():
            assert alone[key] == pytest.approx(whole[key], rel=1e-12), (path.stem, key)
    assert seen


def _numbers(data, path="") -> dict:
    """Every number of nested data, by its path."""
    if isinstance(data, dict):
        parts = data.items()
    elif isinstance(data, (list, tuple)):
        parts = enumerate(data)
    else:
        is_number = isinstance(data, (int, float, np.number)) and data == data
        return {path: float(data)} if is_number else {}
    found: dict = {}
    for key, value in parts:
        found |= _numbers(value, f"{path}.{key}")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama-3.1-405b", "case-6-100k-gpus"])
def test_design_goodput_and_desk_print_one_pair(name, capsys):
    """Likely and promised days and dollars, to the letter."""
    path = ROOT / f"gallery/designs/{name}.yaml"
    session = Session(Design.read(path))
    pairs = []
    for at_most in ("", "_high"):
        figures = session.now.figures["likely"]
        pairs.append([show(f"likely.{k}", figures[k + at_most]) for k in ("days", "cost_usd")])
    likely, promised = pairs
    command(["design", str(path)])
    said = " ".join(capsys.readouterr().out.split())
    assert f"likely {likely[0]} (" in said and f"), {likely[1]} (" in said
    assert f"to promise: {', '.join(promised)};" in said
    command(["goodput", str(path)])
    said = " ".join(capsys.readouterr().out.split())
    assert (
        f"Likely {', '.join(likely)}; to promise, kept in nine of ten runs: {', '.join(promised)}"
        in said
    )
    assert [
        f"{card['value']} {card['unit']}".strip()
        for card in cards(session.now.figures)
        if "likely" in card["key"]
    ] == likely
    for key, promise in zip(("likely.days", "likely.cost_usd"), promised, strict=True):
        assert dict(explanation(session, key)["lines"])["To promise"].startswith(f"{promise}, ")


@pytest.mark.slow
def test_desk_and_report_hold_the_numbers_of_the_design(monkeypatch):
    monkeypatch.setattr(design_json, "tries", lambda *of: None)  # advice: compared elsewhere
    seen = 0
    gallery = len(GALLERY)
    for a in assessments()[:gallery] + assessments()[gallery::5]:
        said = _numbers(told(a))
        said.pop(".search_seconds", None)
        session = Session(a.design)
        session.advise()
        desk, page = session.now.figures, Report(a.design, a)
        for surface in (desk, page.data):
            held = _numbers(surface)
            assert {key: held.get(key) for key in said} == pytest.approx(said, rel=1e-12)
        tiles = {tile.label: tile.value for tile in headline(page.data)}
        shown = {card["key"]: f"{card['value']} {card['unit']}".strip() for card in cards(desk)}
        for key in TILES:
            name = tile_name(key, page.data)
            if key in shown and name in tiles:
                seen += 1
                said = None if withheld(desk, key) else at(desk, key)
                assert tiles[name] == shown[key] == show(key, said), (a.design.name, key)
    assert seen


def test_verdict_report_and_desk_name_one_largest_overhead():
    """What holds a step back is what a lone device with the model's layers would not have: the
    output head is the model's own work, however long it takes."""
    seen = set()
    for a in assessments()[::3]:
        part, time_s = overheads(a.step_breakdown_s)[0]
        name = loss_name(part, a.plan["offload"])
        said = [line for line in limits(a, advice=False) if line.startswith("step: ")]
        assert not said or f"the largest overhead is {name}, " in said[0], a.design.name
        section = Report(a.design, a).section("step")
        page = unescape(re.sub("<[^>]+>", "", section.html)).replace("\xa0", " ")
        assert not time_s or f"the largest overhead is {name}, {seconds_text(time_s)}" in page
        on_desk = bottleneck(as_dict(a, False))
        assert on_desk is None or on_desk.name == STEP[part].name
        assert not {part} & set(OWN_COMPUTATION)
        seen.add(part)
    assert len(seen) > 2


@pytest.mark.slow
@pytest.mark.parametrize("path", GALLERY[::2], ids=lambda path: path.stem)
def test_a_rendered_report_prints_the_numbers_of_the_design(path):
    seen = 0
    a = shipped()[path]
    if not a.plan:
        pytest.skip("impossible: nothing is planned")
    text = unescape(re.sub("<[^>]+>", " ", Report(a.design, a).html())).replace("\xa0", " ")
    data = as_dict(a, False)
    for key in "mfu_shown step_s bubble_fraction goodput mtbf_s days cost_usd".split():
        if at(data, key) is not None:
            seen += 1
            assert show(key, at(data, key)) in text, key
    for held in ("total", "weights", "optimizer"):
        key = f"memory_bytes.{held}"
        assert show(key, at(data, key)) in text, key
    assert seen


@pytest.mark.long
def test_all_of_it_over_two_hundred_designs(monkeypatch):
    """The wide sample of the rules that need nothing but assessments."""
    monkeypatch.setitem(globals(), "RANDOM", range(200))
    assessments.cache_clear()
    try:
        assert len(assessments()) > 150
        test_hfu_is_mfu_times_what_the_hardware_does_besides()
        test_usable_memory_is_one_number_and_its_zones_are_one_rule()
        test_micro_batches_are_counted_in_one_way()
        test_the_main_phase_is_the_one_with_the_most_tokens_on_every_surface()
        test_bytes_shown_are_bytes_timed()
    finally:
        assessments.cache_clear()


def test_a_day_is_defined_once():
    """The number itself stands in base/units.py alone."""
    again = [
        str(path.relative_to(ROOT))
        for top in ("lib", "widgets")
        for path in (ROOT / top).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value == 86_400
        if "templates" not in path.parts
    ]
    assert again == ["lib/scantling/base/units.py"]
