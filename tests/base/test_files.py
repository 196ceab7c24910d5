"""Every file that a user names is read by one reader: regular, bounded, UTF-8, shallow; a device, a
pipe or a link to one is refused at once, and a file is written whole or not at all."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest
from scantling.base import files
from scantling.base.errors import DesignError
from scantling.cli.app import main

DESIGN = "scantling: 1\ncluster: {accelerator: h100-sxm, devices: 8}\njob: {tokens: 1e9}\n"
# how each kind of file is named: the rest of the design that names it, the command that reads it
NAMED = {
    "design": ["design", "{file}"],
    "hf_config": ["design", "{design}"],
    "calibration": ["design", "{design}"],
    "config": ["params", "{file}"],
    "runs": ["predict", "{file}", "-o", "{out}"],
    "published": ["validate", "{file}"],
    "candidates": ["candidates", "{good}", "--measured", "{file}"],
}
# what a file may be that is none: a sentence on the line
NO_FILE = {
    "/dev/zero": "is not a file",
    "pipe": "is not a file",
    "link to a device": "is not a file",
    "link to itself": "cannot be read",
    "folder": "directory",
    "": "",
    "nosuch": "no such file",
    "/proc/kmsg": "",
    "large": "larger than",
    "latin-1": "UTF-8",
}


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    folder = tmp_path_factory.mktemp("odd")
    os.mkfifo(folder / "pipe")
    os.symlink("/dev/zero", folder / "link to a device")
    os.symlink("link to itself", folder / "link to itself")
    (folder / "folder" / "config.json").mkdir(parents=True)
    (folder / "latin-1").write_bytes(b"name: caf\xe9\n")
    with open(folder / "large", "wb") as file:
        file.truncate(50_000_000_000)  # a hole: no disk, and no memory where the reader is bounded
    return folder


@pytest.mark.parametrize("what", NO_FILE)
@pytest.mark.parametrize("named", NAMED)
def test_what_is_no_readable_file_is_refused_in_one_line(named, what, odd, tmp_path, capsys):
    file, design = odd / what, tmp_path / "design.yaml"
    good = tmp_path / "good.yaml"
    good.write_text(DESIGN + "model: llama-3.1-8b\n")
    model = {"hf_config": f"model: {{hf_config: '{file}'}}\n"}.get(named, "model: llama-3.1-8b\n")
    calibration = f"calibration: '{file}'\n" if named == "calibration" else ""
    design.write_text(DESIGN + model + calibration)
    places = dict(file=file, design=design, good=good, out=tmp_path / "out.csv")
    before = resource.getrusage(resource.RUSAGE_SELF)
    assert main([word.format(**places) for word in NAMED[named]]) == 2
    after = resource.getrusage(resource.RUSAGE_SELF)
    said = capsys.readouterr().err
    assert said.startswith("scantling: ") and said.count("\n") == 1
    assert NO_FILE[what] in said
    assert after.ru_utime - before.ru_utime < 10
    assert after.ru_maxrss - before.ru_maxrss < 500_000  # kB
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    "text, said",
    {
        '{"hidden_size": ' + "9" * 10_000 + "}": "a number of 10,000 digits",
        '{"a":' * 25 + "1" + "}" * 25: "nested too deeply",
        "[" * 100_000: "nested too deeply",
        "[1]": "not a JSON object",
        '{"a": 1': "not JSON",
    }.items(),
)
def test_a_config_is_bounded_in_depth_and_digits(text, said, tmp_path):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(DesignError, match=said):
        from scantling.catalogue.models.hf import from_hf

        from_hf(tmp_path / "config.json")


@pytest.mark.parametrize("text", ["x" * 2_000_000, b"\xff\xfe"], ids=["long", "no text"])
def test_standard_input_is_bounded(text):
    text = text.encode() if isinstance(text, str) else text
    argv = [sys.executable, "-m", "scantling", "design", "-"]
    done = subprocess.run(argv, input=text, capture_output=True, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(b"scantling: ") and done.stderr.count(b"\n") == 1


def test_a_file_is_whole_whenever_the_write_ends(tmp_path, monkeypatch):
    """A power cut between the write and the rename: the old file stands, and its content was on the
    disk before its name was (the order that fsync(2) asks for)."""
    path, order = tmp_path / "design.yaml", []
    files.write_whole(path, b"old")
    sync, move = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (order.append("sync"), sync(handle)))
    monkeypatch.setattr(os, "replace", lambda *names: (order.append("rename"), move(*names)))
    files.write_whole(path, b"new")
    assert order == ["sync", "rename"] and path.read_bytes() == b"new"

    def cut(*names):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", cut)
    with pytest.raises(OSError):
        files.write_whole(path, b"half")
    assert path.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["design.yaml"]


TABLES = {  # a table of a user, as a spreadsheet with decimal commas exports it: what reads it
    "id;model;n_devices\na;llama-3.1-8b;8\n": ["predict", "{file}", "-o", "{out}"],
    "id;model;measured_step_s\na;llama-3.1-8b;1,5\n": ["validate", "{file}"],
    "item;value\nh100-sxm;2,5\n": ["prices", "{file}"],
    "cluster.devices;job.tokens\n64;1e12\n": ["assess-many", "{file}", "-o", "{out}"],
    "rank;measured_step_s\n1;2,5\n": ["candidates", "{good}", "--measured", "{file}"],
    "step;loss;step_time_s\n1;2,5;3,1\n": ["learn", "{file}"],
}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: TABLES[table][0])
@pytest.mark.parametrize("sign, name", [(";", "semicolons"), ("\t", "tabs")])
def test_a_table_that_is_not_separated_by_commas_says_so(table, sign, name, tmp_path, capsys):
    good, file = tmp_path / "good.yaml", tmp_path / "table.csv"
    good.write_text(DESIGN + "model: llama-3.1-8b\n")
    file.write_text(table.replace(";", sign))
    names = {"file": file, "good": good, "out": tmp_path / "out.csv"}
    assert main([part.format(**names) for part in TABLES[table]]) == 2
    err = capsys.readouterr().err
    assert f"is separated by {name}; allowed: columns separated by commas" in err
    assert err.count("\n") == 1 and not (tmp_path / "out.csv").exists()
