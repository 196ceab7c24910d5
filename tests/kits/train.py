"""python train.py PYTHON KIT RANKS: train a tiny kit on gloo CPU processes through its own
launch.sh, kill it, resume it; prints one JSON line.

whole: losses of 20 unbroken steps. resumed: losses of a run whose processes are killed after step
12, started again by the same command.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

STEPS, EVERY, KILL_AFTER = 20, 5, 12


def start(python, kit, run, ranks):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    environment = os.environ | {
        "RUN_DIR": str(run),
        "MOCK_DATA": "1",
        "STEPS": str(STEPS),
        "SAVE_STEPS": str(EVERY),
        "OMP_NUM_THREADS": "1",
        "MASTER_PORT": str(port),
        "RUN_ID": run.name,
        "PATH": f"{Path(python).parent}:{os.environ['PATH']}",
        "CUDA_VISIBLE_DEVICES": "",
    }
    if os.environ.get("TRAIN_PATH"):
        environment["PYTHONPATH"] = os.environ["TRAIN_PATH"]
    out = open(run.parent / f"{run.name}.log", "ab")  # noqa: SIM115
    return subprocess.Popen(
        ["bash", str(kit / "launch.sh")],
        env=environment,
        stdout=out,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def rows(run):
    file = run / "metrics.jsonl"
    return (
        [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]
        if file.exists()
        else []
    )


def end(process):
    """SIGKILL to every process of the session: the launcher's children lead sessions of their
    own."""
    family = [process.pid]
    for pid in family:
        found = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True
        ).stdout.split()
        family += [int(p) for p in found]
    for pid in family:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()


def wait(process, run, until, limit):
    begin = time.time()
    while time.time() - begin < limit:
        if process.poll() is not None:
            return process.returncode
        if until and len(rows(run)) >= until:
            return None
        time.sleep(0.05)
    end(process)
    raise TimeoutError((run.parent / f"{run.name}.log").read_text()[-3000:])


def main(python, kit, ranks, limit=600):
    kit = Path(kit)
    whole, broken = kit / "whole", kit / "broken"
    for run in (whole, broken):
        shutil.rmtree(run, ignore_errors=True)
    process = start(python, kit, whole, ranks)
    if wait(process, whole, None, limit):
        raise RuntimeError((kit / "whole.log").read_text()[-3000:])
    process = start(python, kit, broken, ranks)
    wait(process, broken, KILL_AFTER, limit)
    end(process)
    killed = len(rows(broken))
    process = start(python, kit, broken, ranks)
    if wait(process, broken, None, limit):
        raise RuntimeError((kit / "broken.log").read_text()[-3000:])
    after = rows(broken)[killed:]
    return dict(
        whole=[(r["step"], r["loss"], r["grad_norm"]) for r in rows(whole)],
        resumed=[(r["step"], r["loss"], r["grad_norm"]) for r in after],
        killed_after=killed,
        done=(broken / "done").exists(),
        state=[json.loads((whole / f"state-{r}.json").read_text()) for r in range(ranks)],
    )


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
