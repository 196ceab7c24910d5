"""Every field of `reliability` and `checkpoint`: in the schema with its unit, under `assumed` where
it is left out, in a sweep, and on the desk."""

import json

import pytest
import scantling as sc
from scantling.cli.app import main
from scantling.design.design import Design
from scantling_widgets import shipped_files
from scantling_widgets.desk import inputs
from scantling_widgets.desk.desk import DeskPane

BASE = {
    "model": "llama-3.1-405b",
    "cluster": {"accelerator": "h100-sxm", "devices": 16_384},
    "job": {"tokens": 15.6e12, "seq_len": 8192, "global_batch": 2048},
    "stack": "megatron-core",
    "plan": {"tp": 8, "cp": 1, "pp": 16, "vpp": 8, "dp": 128, "micro_batch": 1},
    "prices": {"usd_per_device_hour": 2.5},
}
WORDS = {"reliability.preset": ("good", "bad"), "reliability.recovery": ("restart", "in-place")}
NEAR = {"share": (0.001, 0.01), "ratio": (2, 20), "nodes": (0, 4), "1/day": (0.5, 4)}
# what a value changes is told by the fields beside it
NEEDS = {
    "reliability.lemons.share": {"reliability.lemons.factor": 10},
    "reliability.lemons.factor": {"reliability.lemons.share": 0.02},
    "reliability.causes.storage": {"reliability.causes.storage.per_1000_node_days": 0.5},
    # so many nodes as are chosen where repairs may take a day are never all away
    "reliability.causes.gpu.repair_s": {"reliability.spares": 1},
}
# no headline reads these: how many copies there are, a tier farther than a failure reaches
KEPT = ("checkpoint.keep_", "checkpoint.tiers.l3")
# a host that is lost needs no node of these
STAY = ("reliability.causes.software.repair_s", "reliability.causes.storage.repair_s")


def leaves(*path):
    for name, info in Design.section_fields(*path).items():
        here = (*path, name)
        if Design.section_fields(*here):
            yield from leaves(*here)
        else:
            yield ".".join(here), info


FIELDS = {f: info for section in ("reliability", "checkpoint") for f, info in leaves(section)}


@pytest.fixture(scope="module")
def plain():
    return sc.assess(Design.from_data(BASE)).as_dict(advice=False)


@pytest.fixture(scope="module")
def desk():
    return DeskPane(shipped_files.example("llama-3.1-405b"))


def schema_of(path: str, whole: dict) -> dict:
    """The schema of a field, through references and what may be null."""
    node = whole
    for name in path.split("."):
        found = [node, *node.get("anyOf", ())]
        found = [whole["$defs"][n["$ref"].rpartition("/")[2]] if "$ref" in n else n for n in found]
        node = next(n["properties"][name] for n in found if name in n.get("properties", ()))
    return node


def test_there_are_fields_to_walk():
    assert len(FIELDS) > 50
    assert {"reliability.causes.gpu.repair_s", "checkpoint.tiers.l3.every_s"} <= FIELDS.keys()


def test_each_stands_in_the_schema_with_its_unit(capsys):
    main(["schema"])
    whole = json.loads(capsys.readouterr().out)
    for path in FIELDS:
        found = schema_of(path, whole)
        assert found["description"], path
        assert found.get("unit") or path in WORDS, path


def test_each_is_assumed_with_its_rule_where_it_is_left_out(plain):
    """A cause's times are those of all causes; tiers that are not asked for are not used; the
    fleet's row says its rate."""
    said = {row["field"]: row for row in plain["assumed"]}
    assert "3.8 failures per 1,000 8-device node-days" in said["reliability.preset"]["why"]
    said["reliability.failures_per_1000_node_days"] = said["reliability.preset"]
    for path in FIELDS:
        section, _, last = path.rpartition(".")
        tier = section.startswith("checkpoint.tiers")
        of_all = section.startswith("reliability.causes") and last.endswith("_s")
        of = "checkpoint.interval_s" if tier else f"reliability.{last}" if of_all else path
        assert said[of]["why"] and said[of]["value"] is not None, path


@pytest.mark.parametrize("path", FIELDS)
def test_each_can_be_swept_and_is_used(path):
    unit = FIELDS[path].unit
    near = WORDS.get(path) or NEAR.get(unit, (40, 4000))
    design = Design.from_data(BASE)
    for start, more in NEEDS.items():
        if path.startswith(start):
            design = design.change(more)
    cells = sc.sweep(design, {path: near})
    assert [c.at for c in cells] == [(v,) for v in near]
    assert all(c.figures.get("goodput") for c in cells), [c.why for c in cells]
    if not path.startswith(KEPT) and path not in STAY:
        assert cells[0].figures["goodput"] != cells[1].figures["goodput"]


def test_each_is_an_input_of_the_desk_and_moves_the_design(desk):
    shown = {c.field: c for g in inputs.groups(desk.session) for c in g.controls}
    for path in FIELDS:
        control = shown[path]
        assert control.label != path and control.help, path
        if control.input_kind == "number":
            assert control.unit, path
            tier = path.startswith("checkpoint.tiers")
            assert tier or control.placeholder.startswith("auto") or control.value, path
    desk.controls.form.send_change("reliability.causes.gpu.repair_s", "8 h")
    assert desk.design.reliability.causes.gpu.repair_s == 28_800
    desk.controls.form.send_change("checkpoint.tiers.l1.every_s", "120")
    assert desk.design.checkpoint.tiers.l1.every_s == 120
    assert desk.session.refusal is None


def test_expert_balance_is_said():
    """Steps of a mixture of experts wait for the fullest one: how full, and why, is listed."""
    found = sc.assess(Design.read(shipped_files.example("case-5-deepseek-v3")))
    said = {row["field"]: row["why"] for row in found.as_dict(advice=False)["assumed"]}
    assert any("expert_skew" in field or "routing" in field for field in said)
