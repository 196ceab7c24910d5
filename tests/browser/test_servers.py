"""`scantling lab` as a person starts it: from any folder, on loopback, with a token, gone when it
is told to stop."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from scantling_widgets import shipped_files
from scantling_widgets.pages import servers

from .conftest import isolated

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("command", ["lab", "page"])
def test_the_command_prints_an_address_and_ends_cleanly(command, tmp_path):
    folder = tmp_path / "anywhere"
    folder.mkdir()
    (tmp_path / "own").mkdir()
    argv = [
        sys.executable,
        "-m",
        "scantling",
        command,
        str(shipped_files.example()),
        "--port",
        "9450",
        "--no-browser",
    ]
    with isolated(tmp_path / "own"):
        process = subprocess.Popen(
            argv,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
    with process:
        try:
            found = next(
                filter(
                    None,
                    (
                        re.search(r"desk.*: (http://127\.0\.0\.1:\d+)(/\S*)\?token=(\S+)", line)
                        for line in process.stdout
                    ),
                )
            )
            base, path, token = found.groups()
            with urllib.request.urlopen(f"{base}{path}?token={token}", timeout=60) as answer:
                assert answer.status == 200
            if command == "lab":
                with urllib.request.urlopen(
                    f"{base}/api/status?token={token}", timeout=30
                ) as answer:
                    assert json.loads(answer.read())["kernels"] == 0
                assert (folder / servers.BOOK).read_bytes() == shipped_files.notebook(
                    "design_desk"
                ).read_bytes()
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(base, timeout=2)


def test_a_wrong_design_is_refused_before_a_server_starts(tmp_path):
    (tmp_path / "wrong.yaml").write_text(
        "model: llama-3.1-405b\ncluster: {accelerator: h100-smx, devices: 8}\njob: {}\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "scantling", "lab", "wrong.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "h100-sxm" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_what_is_there_is_never_overwritten(tmp_path):
    (tmp_path / servers.BOOK).write_text("mine", encoding="utf-8")
    assert servers.book_folder(tmp_path) == (tmp_path, tmp_path / servers.BOOK)
    assert (tmp_path / servers.BOOK).read_text(encoding="utf-8") == "mine"
