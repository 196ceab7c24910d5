"""The design file: what it may hold, that it survives being saved, how it changes, and the rules
that fill its gaps."""

from __future__ import annotations

import copy
import json
import math
import pickle
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import yaml
from hypothesis import given, settings, strategies as st
from scantling.catalogue import words
from scantling.design.design import Design, DesignError, json_schema
from scantling.design.fields import Kind, fields
from scantling.design.file import dump, load, number_text
from scantling.design.paths import section_at
from scantling.design.phases import batch_of_tokens, default_batch
from scantling.design.resolve import resolve
from scantling.plans.prepare import prepare

ROOT = Path(__file__).parents[2]
GALLERY = sorted((ROOT / "gallery/designs").glob("*.yaml"))

# the example of the format's own documentation, every section in it
FULL = """
scantling: 1
name: Llama 3.1 405B, 15.6T tokens
model: llama-3.1-405b
cluster: {accelerator: h100-sxm, devices: 16384, devices_per_node: 8, scale_up_domain: 8, scale_out: ib-ndr, oversubscription: 1.0, sites: 1,
          nics_per_node: 8, pod_devices: 3072, host_memory_gb: 2048, nvme_gb: 30000, storage: lustre}
job: {tokens: 15.6e12, seq_len: 8192, global_batch: 2048, precision: bf16, optimizer: adamw}
constraints: {deadline_days: 90, budget_usd: 1.5e8, min_mfu: 0.35, max_checkpoint_overhead: 0.05, min_goodput: 0.9, max_lost_work_s: 1800,
              max_recovery_s: 900, max_checkpoint_stall_s: 1, survive: node, max_power_mw: 30}
plan: {tp: 8, pp: 16, recompute: none}
stack: megatron-core
reliability: {preset: llama3, failures_per_1000_node_days: 3.8, checkpoint_stall_s: 10, checkpoint_durable_s: 120, restart_s: 300, detect_s: 120, repair_s: 14400, spares: 16}
prices: {usd_per_device_hour: 2.5, pue: 1.2, usd_per_kwh: 0.08}
measured: {step_s: 40.1}
"""  # noqa: E501
SMALL = "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 64}\njob: {}\n"
PHASES = """
model: llama-3.1-405b
cluster: {accelerator: h100-sxm, devices: 16384}
job: {precision: bf16, phases: [{tokens: 14e12, seq_len: 8192, global_batch: 2048}, {tokens: 0.8e12, seq_len: 131072, global_batch: 128, plan: {cp: 16}}]}
plan: {tp: 8, recompute: full}
"""  # noqa: E501


def test_every_documented_field_is_read():
    d = Design.from_yaml(FULL)
    assert d.cluster.devices == 16384
    assert d.job.tokens == 15.6e12
    assert d.constraints.survive == "node"
    assert d.plan.stated() == {"tp": 8, "pp": 16, "recompute": "none"}
    assert d.reliability.spares == 16
    assert d.prices.pue == 1.2
    assert d.measured.step_s == 40.1
    assert d.stack == "megatron-core"
    r = prepare(d)
    assert r.params.total == 405_853_388_800  # Llama 3.1 405B, as published with its checkpoint
    assert r.cluster.nodes == 2048
    assert r.cluster.pod_devices == 3072
    assert r.cluster.host_memory_bytes == 2048e9
    (phase,) = r.phases
    assert (phase.tokens, phase.seq_len, phase.global_batch, phase.precision, phase.optimizer) == (
        15.6e12,
        8192,
        2048,
        "bf16",
        "adamw",
    )
    assert phase.pins == {"tp": 8, "pp": 16, "recompute": "none"}
    assert not {a.field for a in r.assumed} & {
        "job.seq_len",
        "job.global_batch",
        "job.precision",
        "job.optimizer",
        "stack",
        "cluster.scale_out",
    }


def test_phases_carry_the_plan_and_the_job_and_override_them():
    r = prepare(Design.from_yaml(PHASES))
    long = r.phases[1]
    assert [p.seq_len for p in r.phases] == [8192, 131072]
    assert [p.precision for p in r.phases] == ["bf16", "bf16"]
    assert r.phases[0].pins == {"tp": 8, "recompute": "full"}
    assert long.pins == {"tp": 8, "recompute": "full", "cp": 16}


@pytest.mark.parametrize("text", [FULL, SMALL, PHASES] + [p.read_text() for p in GALLERY])
def test_saved_is_read_back_identical(text):
    design = Design.from_yaml(text)
    saved = design.to_yaml()
    again = Design.from_yaml(saved)
    assert again == design
    assert hash(again) == hash(design)
    assert again.to_yaml() == saved
    assert yaml.safe_load(saved) == load(
        saved
    )  # readers of YAML 1.1 see the same, numbers included


def test_schema_accepts_the_gallery_and_refuses_what_the_reader_refuses():
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    judge = jsonschema.Draft202012Validator(schema)
    assert GALLERY
    for path in GALLERY:
        judge.validate(load(path.read_text()))
    for text in (FULL, SMALL, PHASES):
        judge.validate(load(text))
    for wrong in (
        "a: 1\n",
        "model: x\ncluster: {accelerator: h100-sxm, devices: -8}\njob: {}\n",
        "model: x\ncluster: {accelerator: h100-sxm, devices: many}\njob: {}\n",
        "model: x\ncluster: {accelerator: h100-sxm, device: 8}\njob: {}\n",
        (
            "model: x\ncluster: {accelerator: h100-sxm, devices: 8}\njob: {}\nplan: "
            "{recompute: some}\n"
        ),
    ):
        with pytest.raises(jsonschema.ValidationError):
            judge.validate(load(wrong))
        with pytest.raises(DesignError):
            Design.from_yaml(wrong)


def test_every_field_of_the_schema_is_described_and_every_number_has_a_unit():
    seen = 0
    for name, section in json_schema()["$defs"].items():
        for field, spec in section.get("properties", {}).items():
            assert spec.get("description"), f"{name}.{field}"
            kinds = {k.get("type") for k in spec.get("anyOf", [spec])}
            if kinds & {"number", "integer"}:
                seen += 1
                assert spec.get("unit"), f"{name}.{field}"
    assert seen


def test_words_of_the_file_are_those_of_the_models():
    from scantling.catalogue.models.dimension_checks import CHOICES
    from scantling.physics.pipeline import SCHEDULE_NAMES

    assert words.SCHEDULES == SCHEDULE_NAMES
    assert set(words.MLPS) == set(CHOICES["mlp"])
    assert set(words.ATTENTIONS) == set(CHOICES["attention"])


def sections(section):
    """A section and those that stand in it."""
    yield section
    for name in section.model_fields:
        below = section_at(section, (name,))
        if below is not None:
            yield from sections(below)


def test_every_field_of_every_section_has_its_facts_and_its_numbers_have_bounds():
    seen = {section.__name__: section for section in sections(Design)}
    assert {"PlanSpec", "Owned", "Tier", "PlannedPhase"} <= seen.keys()
    for section in seen.values():
        assert fields(section).keys() == section.model_fields.keys(), section
        for name, facts in fields(section).items():
            assert facts.description, (section, name)
            if facts.kind in (Kind.COUNT, Kind.AMOUNT, Kind.SHARE):
                assert facts.unit and facts.low < facts.high, (section, name)
                assert all(facts.low <= x <= facts.high for x in facts.examples), (section, name)
            if facts.choices:
                of = facts.examples[0] if facts.several else facts.examples
                assert set(of) <= set(facts.choices), (section, name)


# changes


def test_a_dotted_keyword_is_a_path_too():
    base = Design.from_yaml(
        "scantling: 1\nmodel: llama-3.1-70b\ncluster: {accelerator: h100-sxm, devices: "
        "512}\njob: {tokens: 1e12}\n"
    )
    assert (
        base.change(**{"cluster.devices": 1024})
        == base.change({"cluster.devices": 1024})
        == base.change(cluster={"devices": 1024})
    )


def test_change_sets_a_field_and_leaves_the_design():
    d = Design.from_yaml(FULL)
    e = d.change({"cluster.devices": 8192, "plan.pp": None})
    assert (e.cluster.devices, e.plan.stated()) == (8192, {"tp": 8, "recompute": "none"})
    assert d.cluster.devices == 16384
    assert d.plan.pp == 16
    assert e.change({"cluster.devices": 16384, "plan.pp": 16}) == d
    assert d.change(cluster={"devices": 8192}).cluster.scale_out == "ib-ndr"
    assert d.change(plan=None).plan.stated() == {}
    assert d.change(model={"size": 70e9}).model.size == 70e9
    assert d.change({"cluster.accelerator.hbm_gb": 96}).cluster.accelerator.stated() == {
        "like": "h100-sxm",
        "hbm_gb": 96,
    }
    assert Design.from_yaml(PHASES).change({"job.phases.1.plan.cp": 8}).job.phases[1].plan.cp == 8
    assert d.change({"cluster.devices": np.int64(1024)}).cluster.devices == 1024


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"cluster.devices": -1}, "cluster.devices"),
        ({"cluster.gpus": 1}, "cluster.gpus"),
        ({"plan.tp": "8"}, "plan.tp"),
        ({"job.phases.7.seq_len": 1}, "job.phases.7.seq_len"),
        ({"job.tokens.x": 1}, "job.tokens.x"),
        ({"model": None}, "model"),
    ],
)
def test_a_wrong_change_is_refused_and_nothing_moves(change, field):
    d = Design.from_yaml(PHASES if "phases" in field else FULL)
    before = d.to_yaml()
    with pytest.raises(DesignError) as e:
        d.change(change)
    assert e.value.field == field
    assert d.to_yaml() == before


def test_a_design_is_frozen():
    d = Design.from_yaml(FULL)
    with pytest.raises(Exception, match="frozen"):
        d.name = "x"
    with pytest.raises(Exception, match="frozen"):
        d.cluster.devices = 1


CHANGE, RESOLVE = 500, 400  # Python calls: the same on every machine


def calls(work) -> tuple[object, int]:
    """(what the work returns, Python functions that it calls)."""
    seen = []
    sys.setprofile(lambda frame, event, of: seen.append(of) if event == "call" else None)
    try:
        return work(), len(seen)
    finally:
        sys.setprofile(None)


def test_a_slider_step_costs_little():
    d = Design.from_yaml(FULL).change(measured=None)
    prepare(d)
    for i in range(1, 4):
        changed, cost = calls(lambda: d.change({"cluster.devices": 1024 + 8 * i}))  # noqa: B023
        assert cost < CHANGE, cost
        cost = calls(lambda: prepare(changed))[1]  # noqa: B023
        assert cost < RESOLVE, cost


# numbers


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e12", 1e12),
        ("15.6e12", 15.6e12),
        ("1E+3", 1e3),
        ("1_000", 1000),
        ("017", 17),
        (".5", 0.5),
        ("1.", 1.0),
        ("-2e-3", -2e-3),
        ("+7", 7),
    ],
)
def test_scientific_notation_is_a_number(text, value):
    assert load(f"a: {text}") == {"a": value}


@pytest.mark.parametrize(
    ("text", "value"),
    [("15.6T", 15.6e12), ("15T", 15e12), ("500B", 5e11), ("2G", 2e9), ("300M", 3e8), ("1e3k", 1e6)],
)
def test_a_number_may_carry_its_scale(text, value):
    assert Design.from_yaml(SMALL).change({"job.tokens": text}).job.tokens == value


@pytest.mark.parametrize(
    ("text", "value"), [("8k", 8192), ("32K", 32768), ("128k", 131072), ("10k", 10000)]
)
def test_k_after_a_power_of_two_is_as_the_field_says_it(text, value):
    """Llama 3.1's context of "128K" is 131,072 tokens in its configuration."""
    assert Design.from_yaml(SMALL).change({"job.seq_len": text}).job.seq_len == value


@pytest.mark.parametrize(
    "text", ["1:30", "2026-11-21", "no", "on", "0x10", "0o17", "1e", "e5", "12abc", "1.2.3"]
)
def test_what_older_yaml_would_turn_into_something_else_stays_text(text):
    assert load(f"a: {text}") == {"a": text}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_written_numbers_are_exact(x):
    assert float(number_text(x)) == x
    assert load(dump({"a": x})) == {"a": x} == yaml.safe_load(dump({"a": x}))


def refusal(call) -> str | None:
    """The message of the DesignError that `call` ends in; None where it ends well; any other
    exception passes."""
    try:
        call()
    except DesignError as e:
        return str(e)
    return None


@given(st.text(max_size=60))
@settings(max_examples=300)
def test_any_text_is_data(text):
    """Whatever a name holds, it is kept as it is or refused in one line; it is never anything
    else."""
    data = {**load(SMALL), "name": text}
    said = refusal(lambda: Design.from_data(data))
    if said is not None:
        assert said.isprintable()
        assert "name" in said
        return
    design = Design.from_data(data)
    assert design.name == text
    assert Design.from_yaml(design.to_yaml()) == design


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda x: (
            st.lists(x, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "model",
                        "cluster",
                        "job",
                        "plan",
                        "tokens",
                        "devices",
                        "accelerator",
                        "size",
                        "like",
                        "phases",
                        "tp",
                    ]
                ),
                x,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
@settings(max_examples=300, deadline=None)
def test_any_data_is_a_design_or_one_line(data):
    said = refusal(lambda: prepare(Design.from_data(data)))
    assert said is None or (said.isprintable() and len(said) < 1500)


# the rules of what is left out


def test_gaps_are_filled_by_the_stated_rules():
    r = prepare(
        Design.from_yaml(
            "model: gpt-3-175b\ncluster: {accelerator: v100-32-sxm2, devices: 1024}\njob: {}\n"
        )
    )
    assumed = {a.field: a.value for a in r.assumed}
    phase = r.phases[0]
    assert phase.precision == "fp16" == assumed["job.precision"]  # a V100 has no bf16
    assert phase.seq_len == r.model.seq_len == 2048
    assert phase.tokens is None
    assert phase.global_batch == assumed["job.global_batch"] == 16 * 2**20 // 2048
    assert assumed["job.optimizer"] == "adamw"
    assert assumed["stack"] is None
    assert r.stack is None
    assert all(a.why for a in r.assumed)
    small = prepare(Design.from_yaml(SMALL))
    assert small.phases[0].precision == "bf16"
    assert small.phases[0].global_batch * small.phases[0].seq_len == 4 * 2**20


def test_context_is_4096_where_nothing_says_otherwise():
    r = prepare(
        Design.from_yaml(
            "model: {size: 7e9}\ncluster: {accelerator: h100-sxm, devices: 64}\njob: {}\n"
        )
    )
    assert r.phases[0].seq_len == 4096


@given(
    st.sampled_from([2048, 4096, 8192, 32768, 131072]),
    st.sampled_from([7e9, 99e9, 100e9, 1e12]),
    st.integers(1, 20_000),
)
def test_default_batch(seq_len, params, nodes):
    aim = (4 if params < 100e9 else 16) * 2**20 / seq_len
    batch = default_batch(params, seq_len, nodes)
    assert batch >= 1
    assert aim / 2.01 <= batch <= 2.01 * aim
    if nodes & (nodes - 1) == 0:
        assert batch == aim  # a power of two shares a power of two
    elif nodes <= aim:
        assert batch % nodes == 0  # an awkward node count divides it
        assert nodes > aim / 8 or abs(batch / aim - 1) <= 0.125
    elif nodes > 1.125 * aim:
        assert abs(batch / aim - 1) <= 0.125
        assert (
            batch % 2 ** max(0, int(math.log2(aim / 64))) == 0
        )  # pipelines and experts want powers of two
    assert batch == default_batch(params, seq_len, nodes)


def test_default_batch_of_an_incomplete_node():
    """1,009 devices are 126 nodes and one device: 126 nodes are what a batch has to be shared
    by."""
    r = resolve(
        Design.from_yaml(
            "model: llama-3.1-70b\ncluster: {accelerator: h100-sxm, devices: 1009}\njob: "
            "{seq_len: 8192}\n"
        )
    )
    assert r.phases[0].global_batch % 126 == 0


def test_tokens_in_a_step_become_whole_sequences():
    text = (
        "model: llama-3.1-8b\ncluster: {{accelerator: h100-sxm, devices: 64}}\njob: "
        "{{seq_len: 4096, global_batch_tokens: {}}}\n"
    )
    assert prepare(Design.from_yaml(text.format("4194304"))).phases[0].global_batch == 1024
    r = prepare(Design.from_yaml(text.format("4e6")))
    assert r.phases[0].global_batch == 960 and 960 % 64 == 0  # 977 is a prime
    assert "job.global_batch" in {a.field for a in r.assumed}


@pytest.mark.parametrize("devices", [8, 24, 96, 512, 3648, 14336, 16384, 65536])
@pytest.mark.parametrize("tokens", [1e6, 4e6, 16e6, 60e6, 240e6, 1e15])
def test_a_batch_in_tokens_divides_over_the_devices(devices, tokens):
    """58,594 = 2 x 83 x 353 sequences of 4,096 tokens are 240M tokens: no number of replicas."""
    batch = batch_of_tokens(tokens, 4096, devices, 1)
    assert abs(batch * 4096 / tokens - 1) <= 0.05 + 4096 / tokens
    asked = round(tokens / 4096)
    assert math.gcd(batch, devices) >= math.gcd(asked, devices)
    if asked >= 20 * devices:
        assert batch % devices == 0


def test_paths_are_relative_to_the_file(tmp_path):
    config = {
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "vocab_size": 100,
        "tie_word_embeddings": False,
    }
    for folder, layers in (("a", 2), ("b", 3)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "config.json").write_text(
            json.dumps({**config, "num_hidden_layers": layers})
        )
        (tmp_path / folder / "design.yaml").write_text(
            "model: {hf_config: config.json}\ncluster: {accelerator: h100-sxm, devices: "
            "8}\njob: {}\n"
        )
    a, b = Design.read(tmp_path / "a/design.yaml"), Design.read(tmp_path / "b/design.yaml")
    assert (prepare(a).model.layers, prepare(b).model.layers) == (2, 3)
    assert a != b
    (tmp_path / "a/config.json").write_text(json.dumps({**config, "num_hidden_layers": 5}))
    assert prepare(Design.read(tmp_path / "a/design.yaml")).model.layers == 5


def test_writing_replaces_nothing_unasked(tmp_path):
    d = Design.from_yaml(FULL)
    d.write(tmp_path / "d.yaml")
    with pytest.raises(DesignError, match="exists"):
        d.change(name="other").write(tmp_path / "d.yaml")
    assert Design.read(tmp_path / "d.yaml") == d
    d.change(name="other").write(tmp_path / "d.yaml", force=True)
    assert Design.read(tmp_path / "d.yaml").name == "other"
    assert [p.name for p in tmp_path.iterdir()] == ["d.yaml"]


def test_designs_and_errors_cross_processes():
    d = Design.from_yaml(FULL)
    assert pickle.loads(pickle.dumps(d)) == d
    assert copy.deepcopy(d) == d
    for text in ("{accelerator: h100-smx, devices: 8}", "{devices: 8}"):
        with pytest.raises(DesignError) as e:
            prepare(Design.from_yaml(f"model: llama-3.1-8b\ncluster: {text}\njob: {{}}\n"))
        again = pickle.loads(pickle.dumps(e.value))
        assert (str(again), again.field, again.value, again.nearest) == (
            str(e.value),
            e.value.field,
            e.value.value,
            e.value.nearest,
        )
        assert str(again.at("x")) == str(e.value.at("x"))


def test_reading_a_design_imports_nothing_heavy():
    code = (
        "import sys; from scantling.design.design import Design; Design.from_yaml('model: "
        "x\\ncluster: {accelerator: y, devices: 8}\\njob: {}'); print([m for m in ("
        "'pandas', 'scipy', 'rich', 'altair', 'dask', 'jinja2') if m in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )
