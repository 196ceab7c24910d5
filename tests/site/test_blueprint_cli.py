"""`scantling blueprint`: parts, JSON, exit codes, errors in one line."""

import json
import re
from pathlib import Path

import pytest
from scantling.cli import app as cli
from scantling_site import PARTS

DESIGNS = Path(__file__).parents[2] / "gallery" / "designs"
OWN = ("scheduler", "stores", "domains", "risks", "rollout", "evolution")


def run(capsys, name, *args):
    code = cli.main(["blueprint", str(DESIGNS / f"{name}.yaml"), *args])
    return code, *capsys.readouterr()


def test_every_part_is_printed_and_none_as_markup(capsys):
    code, out, err = run(capsys, "llama-3.1-70b-128-h100")
    assert code == 0 and not err
    for part in PARTS:
        assert f"\n{part}\n" in out
    assert "nan" not in out.split() and "Traceback" not in out


@pytest.mark.parametrize("part", OWN)
def test_one_part_alone_on_a_tpu(capsys, part):
    code, out, _ = run(capsys, "maxtext-32b-64-tpu-v5p", "--part", part)
    assert (
        code == 0
        and f"\n{part}\n" in out
        and not [p for p in PARTS if p != part and f"\n{p}\n" in out]
    )


@pytest.mark.parametrize("part", ["placement", "planes"])
def test_bytes_and_times_have_units_in_their_cells_and_none_in_their_heads(capsys, part):
    _, out, _ = run(capsys, "llama-3.1-70b-128-h100", "--part", part)
    assert not re.search(r"bytes per s|exposed s|start s|message bytes", out)
    assert not re.search(r"\d,\d{3},\d{3},\d{3}", out)  # no count of bytes in full
    assert re.search(r"\d [MGT]B", out)


def test_json_has_the_named_parts(capsys):
    code, out, _ = run(capsys, "llama-3.1-405b", "--json", "--part", "risks", "--part", "domains")
    data = json.loads(out)
    assert code == 0 and data.keys() == {"name", "verdict", "risks", "domains"}
    assert data["risks"]["rows"][0].keys() >= {
        "risk",
        "likelihood",
        "impact_days",
        "impact_usd",
        "mitigation",
        "owner",
        "expected_usd",
    }
    assert data["domains"]["rows"][0].keys() >= {
        "id",
        "devices",
        "replicas",
        "events_per_run",
        "recovers",
        "goodput_cost",
    }


def test_exit_codes_are_those_of_design(capsys):
    assert run(capsys, "case-3-500b-4096-h100", "--part", "domains")[0] == 3
    code, out, err = run(capsys, "case-2-1t-dense-8-v100")
    assert (
        code == 4
        and json.loads(out) == {"error": "Hardware constraints insufficient for model parameters"}
        and err
    )
    code, out, _ = run(capsys, "case-2-1t-dense-8-v100", "--json")
    assert code == 4 and json.loads(out)["verdict"] == "impossible"


def test_a_misspelt_part_and_a_missing_file_are_one_line(capsys):
    code, out, err = run(capsys, "llama-3.1-405b", "--part", "riks")
    assert code == 2 and not out and err.count("\n") == 1 and "risks" in err
    code = cli.main(["blueprint", "nowhere.yaml"])
    err = capsys.readouterr().err
    assert code == 2 and err.count("\n") == 1 and "nowhere.yaml" in err


def test_the_command_is_listed(capsys):
    assert cli.main(["--help"]) == 0
    assert "blueprint" in capsys.readouterr().out
