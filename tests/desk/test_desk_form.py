"""The form and the file have the same fields: whatever a person would set in a design file has a
control, which reads what is typed, says what is taken without it, and can be emptied again."""

from __future__ import annotations

from functools import cache

import pytest
from scantling.base.records import at
from scantling.design.design import Design
from scantling_widgets import shipped_files
from scantling_widgets.desk import inputs
from scantling_widgets.desk.controls import GROUPS
from scantling_widgets.desk.desk import DeskPane

GALLERY = shipped_files.example().parent
# fields that the file alone has, by the reason why no control stands for them
IN_THE_FILE = {
    "typed in the tab Compare": ("notes",),
    "written by the kit": ("scantling",),
    "the path of a file": ("calibration", "model.hf_config"),
    "a list of records, one for each": ("job.phases", "cluster.delivery", "cluster.sites"),
    "figures in place of those of a catalogue row": ("cluster.accelerator", "cluster.scale_out"),
    "said by another control": (
        "model.like",
        "model.moe",
        "model.seq_len",
        "stack.id",
        "stack.like",
        "job.global_batch_tokens",
        "plan.precision",
    ),
    "what is unusual and meant so": ("confirm",),
    "words of a line that have to be settled in the file that init wrote": ("unread",),
    "numbers of one kind of layer, which model.hf_config takes from its authors' file": (
        "model.mixers",
        "model.pattern",
        "model.mtp_pattern",
        "model.window_heads",
        "model.window_kv_heads",
        "model.window_head_dim",
        "model.v_dim",
        "model.ssm_heads",
        "model.ssm_head_dim",
        "model.groups",
        "model.conv",
        "model.chunk",
        "model.dt_rank",
        "model.d_inner",
        "model.lin_k_heads",
        "model.lin_v_heads",
        "model.lin_k_dim",
        "model.lin_v_dim",
        "model.lru_width",
        "model.index_heads",
        "model.index_dim",
        "model.index_topk",
        "model.o_lora",
        "model.o_groups",
        "model.hyper_connections",
        "model.hyper_mixed",
        "model.latent",
        "model.zero_experts",
        "model.memory_blocks",
        "model.adapter_rank",
        "model.shared_kv",
        "model.mtp_repeats",
        "model.gated_norm",
        "model.inner_norms",
        "model.conv_bias",
        "model.proj_bias",
        "model.full_decay",
        "model.full_gates",
        "model.latent_norm",
        "model.router_scales",
        "model.window_sinks",
        "model.chunks",
        "model.attention_adapter",
        "model.attention_gate",
    ),
}
FILE_ONLY = {field: why for why, fields in IN_THE_FILE.items() for field in fields}


def leaves(*path):
    """(path, pydantic field) of everything below a section of the schema."""
    for name, info in Design.section_fields(*path).items():
        below = (*path, name)
        if ".".join(below) in FILE_ONLY or not Design.section_fields(*below):
            yield ".".join(below), info
        else:
            yield from leaves(*below)


LEAVES = dict(leaves())
CONTROLS = {control.field for group in GROUPS for control in group.controls}


@pytest.fixture(scope="module")
def desk():
    return DeskPane(
        GALLERY / "mixtral-8x22b-128-h100.yaml"
    )  # with experts, so that every axis is there


def test_every_field_of_the_schema_is_in_the_form_or_is_named_with_the_reason():
    assert len(LEAVES) > 200
    assert sorted(set(LEAVES) - CONTROLS - set(FILE_ONLY)) == []
    assert sorted(set(FILE_ONLY) - set(LEAVES)) == [], "named, and no field of the file"
    ids = {"cluster.accelerator", "cluster.scale_out"}
    lists = {"cluster.sites", "cluster.delivery", "job.phases"}
    assert set(FILE_ONLY) & CONTROLS == ids | lists, "an id in the form, lists as the file has them"
    assert not {why for why in FILE_ONLY.values() if len(why.split()) < 3}


def test_every_control_says_its_field_by_a_name_of_its_own(desk):
    shown = [
        (g["title"], desk.controls.form.field(f))
        for g in desk.controls.form.groups
        for f in g["fields"]
    ]
    names = [(title, control["label"]) for title, control in shown]
    assert len(names) == len(set(names)) > 150
    for _title, control in shown:
        assert control["label"] != control["field"] and "_" not in control["label"]
        assert len(control["label"]) <= 22, control["label"]
        assert control["help"]


TYPED = sorted(CONTROLS & {field for field, info in LEAVES.items() if info.examples})


# method of a design in which a section of the job has a control
TUNED = {"job.adapter": "qlora", "job.data": "qlora", "job.rollout": "grpo"}


@cache
def tuned_desk(method):
    model = {"model": "llama-3.1-8b", "cluster": {"accelerator": "h100-sxm", "devices": 8}}
    return DeskPane(Design.from_data({**model, "job": {"method": method}}))


@pytest.mark.parametrize("field", TYPED)
def test_a_control_sets_what_the_schema_gives_as_an_example(desk, field):
    """Typed as text where it is a box, chosen from its list where it is one."""
    method = TUNED.get(".".join(field.split(".")[:2]))
    if method:
        desk = tuned_desk(method)
    example = LEAVES[field].examples[0]
    control = desk.controls.form.field(field)
    if control["input_kind"] in ("number", "text"):
        words = isinstance(example, list) and all(isinstance(word, str) for word in example)
        typed = ", ".join(example) if words else f"{example}"
    else:
        typed = example
    fields = inputs.changes(desk.session.now, field, typed)
    if LEAVES[field].choices and control["input_kind"] == "list":
        assert example in [option["value"] for option in control["options"]]
    if field == "model.size":
        assert fields["model"]["size"] == example  # the shape is derived from it
        return
    needed = {}
    if field.startswith("prices.owned"):
        needed = {"prices.owned.capex_usd": 3e9, "prices.usd_per_device_hour": None}
    if field.startswith("prices.spot"):
        needed = {"prices.spot": {"usd_per_device_hour": 1.0, "preemptions_per_day": 1.0}}
    changed = desk.design.change({**needed, **fields})
    assert at(changed.data(), field) == example
    assert Design.from_yaml(changed.to_yaml()) == changed


def test_most_fields_have_an_example_to_type():
    assert len(TYPED) > 140


@pytest.mark.slow
def test_what_is_emptied_leaves_nothing_behind(desk):
    before = desk.design
    try:
        for field, typed in (
            ("reliability.causes.gpu.detect_s", "90 s"),
            ("job.corpus.raw_bytes", "2 PB"),
            ("prices.owned.capex_usd", "$600M"),
            ("checkpoint.tiers.l0.every_s", "5 min"),
            ("plan.recompute_modules", "core_attn; norm"),
            ("plan.compile", True),
            ("name", "another"),
        ):
            desk.controls.form.send_change(field, typed)
            assert desk.session.refusal is None, desk.session.refusal
            shown = desk.controls.form.field(field)["value"]
            assert shown not in ("", None)
            assert desk.design != before
            desk.controls.form.send_change(field, before.data().get(field))
            assert desk.design.data() == before.data(), field
    finally:
        desk.session.put(before)


@pytest.mark.parametrize(
    "field, typed, wrong",
    [
        ("cluster.sites", "[{devices: 64}, {devices: 64, rtt_ms: 30}]", "[{devices: 64}]"),
        ("cluster.delivery", "[{day: 0, devices: 64}, {day: 30, devices: 64}]", "[{day: 0}]"),
        ("job.phases", "[{tokens: 1e12}, {tokens: 1e11, seq_len: 8192}]", "[{tokens: much}]"),
    ],
)
def test_lists_of_records_are_typed_as_the_file_has_them(desk, field, typed, wrong):
    """What is typed is the text of a design file: read by the same rules, refused by the same
    words, shown again as it would stand there."""
    before = desk.design
    try:
        desk.controls.form.send_change(field, typed)
        assert desk.session.refusal is None, desk.session.refusal
        whole = desk.design.to_yaml()
        assert len(at(desk.design.data(), field)) == 2 and Design.from_yaml(whole) == desk.design
        said = desk.controls.form.field(field)["value"]
        kept = desk.design
        desk.controls.form.send_change(field, said)
        assert desk.design == kept
        for text in (wrong, typed[:-3]):
            desk.controls.form.send_change(field, text)
            assert desk.session.refusal and desk.design == kept
            desk.controls.form.send_change(field, said)
    finally:
        desk.session.put(before)


@pytest.mark.slow
def test_fields_of_a_phase_are_shown_and_set_where_they_stand():
    paths = [p for p in sorted(GALLERY.glob("*.yaml")) if Design.read(p).job.phases]
    desk = DeskPane(paths[0])
    path = desk.session.now.resolved.job_path
    assert path.startswith("job.phases.")
    desk.controls.form.send_change(f"{path}.evaluation_hours", "30 min")
    assert desk.session.refusal is None
    phase = int(path.rpartition(".")[2])
    assert desk.design.job.phases[phase].evaluation_hours == 0.5
    assert desk.controls.form.field(f"{path}.evaluation_hours")["value"] == "0.5"
    desk.controls.form.send_change(f"{path}.evaluation_hours", None)
    assert desk.design.job.phases[phase].evaluation_hours is None


# ---------------------------------------------------------------- numbers beside sliders
@pytest.mark.parametrize(
    ("field", "typed", "value"),
    [
        ("cluster.devices", "2,000", 2000),
        ("cluster.devices", "24k", 24_000),
        ("model.size", "30B", 30e9),
        ("job.tokens", "1.5T", 1.5e12),
        ("job.seq_len", "12,288 tok", 12_288),
        ("job.global_batch", "1,000 seq", 1000),
    ],
)
def test_a_number_is_typed_beside_its_slider(field, typed, value):
    """Any number, not the steps of the slider alone; the slider then stands at it."""
    desk = DeskPane()
    assert desk.controls.form.field(field)["typed"]
    desk.controls.form.send_change(field, typed)
    assert desk.session.refusal is None, desk.session.refusal
    written = at(desk.design.data(), field)
    assert written == pytest.approx(value)
    control = desk.controls.form.field(field)
    assert control["value"] in [option["value"] for option in control["options"]]
    desk.controls.form.send_change(field, control["typed"])
    assert at(desk.design.data(), field) == pytest.approx(value), "what stands there reads back"


def test_what_is_no_number_stays_in_its_box_and_the_slider_where_it_was():
    desk = DeskPane()
    before = desk.controls.form.field("cluster.devices")["value"]
    desk.controls.form.send_change("cluster.devices", "many")
    control = desk.controls.form.field("cluster.devices")
    assert (control["typed"], control["value"]) == ("many", before) and control["fault"]


def test_half_the_network_is_one_step_and_every_step_does_something():
    desk, field = DeskPane(), "cluster.scale_out_gbytes_per_s_per_device"
    texts = [option["text"] for option in desk.controls.form.field(field)["options"]]
    assert texts[:2] == ["25 Gbit/s", "50 Gbit/s"] and "800 Gbit/s" in texts
    steps = []
    for option in desk.controls.form.field(field)["options"]:
        desk.controls.form.send_change(field, option["value"])
        cluster = desk.session.now.resolved.cluster
        assert cluster.scale_out_bytes_per_s == pytest.approx(1e9 * option["value"])
        steps.append(desk.result.step_s)
    assert all(slow > fast for slow, fast in zip(steps, steps[1:])), steps


def test_a_fabric_brings_its_own_rate_and_the_list_has_those_that_the_chip_is_sold_with():
    desk, rate = DeskPane(), "cluster.scale_out_gbytes_per_s_per_device"
    desk.controls.form.send_change(rate, 3.125)
    desk.controls.form.send_change("cluster.scale_out", "ib-hdr")
    assert desk.session.now.resolved.cluster.scale_out_bytes_per_s == 25e9
    offered = {o["value"] for o in desk.controls.form.field("cluster.scale_out")["options"]}
    assert {"ib-ndr", "efa-v2", "rocev2-400"} <= offered
    assert not {"dcn-tpu", "gb200-so-ndr", "efa-v4-b300"} & offered
