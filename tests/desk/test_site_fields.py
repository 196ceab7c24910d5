"""Fields of sites, network, corpus and calendar: each stands in the schema, under `assumed` where a
design leaves it out, among the controls of the desk, and can be swept."""

import json
from dataclasses import asdict

import pytest
import scantling as sc
from scantling.advise.sweeps import sweep
from scantling.design.design import json_schema
from scantling_widgets.desk import inputs
from scantling_widgets.desk.session import Session

BASE = {
    "scantling": 1,
    "model": "llama-3-70b",
    "cluster": {"accelerator": "h100-sxm", "devices": 1024, "scale_out": "ib-ndr", "sites": 2},
    "job": {"tokens": 1e12, "seq_len": 8192, "global_batch": 512},
}
OWN = {  # of a section that holds more than these
    "cluster": (
        *("topology", "rails", "leaf_devices", "pod_devices", "oversubscription"),
        *("in_network_reduction", "sites", "site_rtt_ms", "site_gbytes_per_s"),
    ),
    "job": ("evaluation_hours",),
}
SECTIONS = {
    "cluster": "ClusterSpec",
    "job": "Job",
    "job.sync": "SyncSpec",
    "job.corpus": "CorpusSpec",
}
# lists have no unit of their own; words and flags none at all
NO_UNIT = {"topology", "in_network_reduction", "kind", "outer_optimizer", "overlap", "dedup"}
SCHEMA = json_schema()["$defs"]
FIELDS = [
    f"{section}.{name}"
    for section, spec in SECTIONS.items()
    for name in OWN.get(section, SCHEMA[spec]["properties"])
]


def schema(field):
    section, _, name = field.rpartition(".")
    return SCHEMA[SECTIONS[section]]["properties"][name]


@pytest.fixture(scope="module")
def alone():
    return sc.assess(sc.Design.from_data(BASE))


@pytest.mark.parametrize("field", FIELDS)
def test_the_schema_says_what_stands_there(field):
    said = schema(field)
    assert said["description"] and (said.get("unit") or field.rpartition(".")[2] in NO_UNIT)


@pytest.mark.parametrize("field", [f for f in FIELDS if f != "cluster.sites"])
def test_left_out_it_is_assumed_with_its_rule(field, alone):
    (found,) = [a for a in alone.as_dict()["assumed"] if a["field"] == field]
    assert found["why"]
    usual = schema(field).get("default")
    assert usual is None or usual == found["value"] or found["value"] is False


@pytest.mark.parametrize("field", FIELDS)
def test_it_can_be_given_and_swept(field):
    value = schema(field)["examples"][0]
    d = sc.Design.from_data(BASE)
    given = sc.assess(d.change({field: value}))
    assert field not in {a["field"] for a in given.as_dict()["assumed"]}
    (cell,) = sweep(d, {field: [value]})
    assert cell.verdict == given.verdict != "refused"
    assert cell.figures["step_s"] == given.step_s


def test_the_desk_has_a_control_for_each():
    session = Session(sc.Design.from_data(BASE))
    shown = {c.field: c for group in inputs.groups(session) for c in group.controls}
    assert {*FIELDS} <= {*shown}
    json.dumps([asdict(control) for control in shown.values()])
    taken = {a.field: a.value for a in session.now.resolved.assumed}
    for field in FIELDS:
        control = shown[field]
        assert control.label != field and control.help
        first = control.placeholder or control.options[0]["text"]
        assert first.startswith("auto") or taken.get(field) in (None, "")


@pytest.mark.parametrize(
    "field, typed, value",
    [
        ("job.sync.local_steps", "100", 100),
        ("job.corpus.keep_share", "40 %", 0.4),
        ("job.corpus.raw_bytes", "400T", 4e14),
        ("job.sync.overlap", False, False),
        ("cluster.topology", "rail-only", "rail-only"),
        ("cluster.site_rtt_ms", "7,5", 7.5),
    ],
)
def test_a_moved_control_changes_its_field(field, typed, value):
    session = Session(sc.Design.from_data(BASE))
    assert inputs.changes(session.now, field, typed) == {field: value}
