"""Processes of a command's own: what Ctrl-C, SIGTERM and the end of the block leave of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from scantling.base.workers import crew

# says its own number, and those of its workers once they have started
PROGRAM = """
import os, sys, time
from scantling.base.workers import crew
if __name__ == "__main__":
    with crew() as start:
        pool = start(2)
        jobs = [pool.submit(time.sleep, 600) for _ in range(2)]
        print(*pool._processes, flush=True)
        jobs[0].result()
"""


@pytest.fixture
def program(tmp_path):
    """The program above in a session of its own, and the numbers of its workers."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    p = subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    yield p, [int(number) for number in p.stdout.readline().split()]
    if p.poll() is None:
        os.killpg(p.pid, signal.SIGKILL)
    p.communicate()


def lives(number: int) -> bool:
    """Whether a process works; one that nobody has asked for its end does not."""
    try:
        with open(f"/proc/{number}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(numbers: list[int]) -> bool:
    while any(map(lives, numbers)):  # the suite's own limit of time ends a wait in vain
        time.sleep(0.1)
    return True


@pytest.mark.parametrize("late", [0, 2])
def test_ctrl_c_is_heard_by_workers_that_are_starting_without_a_word(program, late):
    p, workers = program
    time.sleep(late)
    os.killpg(p.pid, signal.SIGINT)
    said = p.communicate()[1]
    assert gone(workers)
    # of the program itself alone, which catches nothing
    assert said.count("Traceback") == 1 and "program.py" in said


def test_workers_end_when_what_started_them_is_killed(program):
    p, workers = program
    p.kill()
    assert p.wait() and gone(workers)


def test_workers_end_with_the_block():
    with crew() as start:
        pool = start(2)
        pool.submit(time.sleep, 600)
        assert pool.submit(os.getpid).result() in (workers := [*pool._processes])
    assert gone(workers)
