"""Reports where the disk is full, or a file may be no larger: the line names the design, the room
that its report needs and what there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DESIGN = ROOT / "gallery" / "designs" / "llama-3.1-8b-8-h100-fsdp.yaml"
pytestmark = pytest.mark.slow


def report(out: Path, setup: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """The command on one design, after a line of the shell."""
    call = f"{setup or ':'} && exec {sys.executable} -m scantling report {DESIGN} -o {out}"
    return subprocess.run(
        ["bash", "-c", f"{call} --workers 1"],
        capture_output=True,
        text=True,
        env=os.environ | env,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def mounted(folder: Path, size: str) -> str:
    """A line of the shell that mounts so small a file system on a folder, in a name space of its
    own; skips where that is not allowed."""
    folder.mkdir()
    line = f"mount -t tmpfs -o size={size} tmpfs {folder}"
    if subprocess.run(["unshare", "-rm", "sh", "-c", line], capture_output=True).returncode:
        pytest.skip("no file system may be mounted here")
    return line


def within(line: str, out: Path, **env: str) -> subprocess.CompletedProcess[str]:
    call = f"{line} && {sys.executable} -m scantling report {DESIGN} -o {out} --workers 1"
    code = f"{call}; code=$?; ls -A {out} >&2; exit $code"
    return subprocess.run(
        ["unshare", "-rm", "bash", "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | env,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def test_a_full_disk_names_the_design_and_the_room_it_needs(tmp_path):
    line = mounted(tmp_path / "small", "300k")
    done = within(line, tmp_path / "small" / "out")
    said = done.stdout + done.stderr
    assert done.returncode == 1 and "Traceback" not in said
    needs = re.search(r"llama-3\.1-8b-8-h100-fsdp: failed: .*\.ipynb.*: room for (\d+) kB; ", said)
    assert "No space left on device" in said and int(needs[1]) > 300
    assert re.search(r"kB are free", said)
    left = done.stderr.split()
    assert "llama-3.1-8b-8-h100-fsdp.json" in left
    assert not [name for name in left if name.endswith((".part", ".html", ".ipynb"))]


def test_a_full_folder_of_temporary_files_is_named(tmp_path):
    line = mounted(tmp_path / "small", "150k")
    done = within(line, tmp_path / "out", TMPDIR=str(tmp_path / "small"))
    said = done.stdout + done.stderr
    assert done.returncode == 1 and "Traceback" not in said
    assert "llama-3.1-8b-8-h100-fsdp: failed: " in said
    assert f"are free in {tmp_path / 'small'}" in said and "5.00 MB of temporary files" in said


def test_a_file_that_may_be_no_larger_is_named(tmp_path):
    """The limit of the shell, in blocks of 1,024 bytes."""
    done = report(tmp_path / "out", "ulimit -f 100")
    said = done.stdout + done.stderr
    assert done.returncode == 1 and "Traceback" not in said
    assert "llama-3.1-8b-8-h100-fsdp: failed: " in said and "(File too large)" in said
    assert "OSError" not in said and "Errno" not in said
