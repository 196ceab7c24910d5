"""A real slurmctld on loopback, without compute daemons: enough for `sbatch --test-only`."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

CONF = """ClusterName=plan
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmdPort={other}
CommunicationParameters=NoInAddrAny
AuthType=auth/munge
AuthInfo=socket={here}/munge.socket
CryptoType=crypto/munge
SlurmUser=root
StateSaveLocation={here}/state
SlurmdSpoolDir={here}/spool
SlurmctldPidFile={here}/slurmctld.pid
SlurmctldLogFile={here}/slurmctld.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
EnforcePartLimits=ALL
ReturnToService=2
SlurmdTimeout=0
ResumeProgram=/bin/true
SuspendProgram=/bin/true
SuspendTime=-1
GresTypes=gpu
NodeName=n[1-{nodes}] State=CLOUD CPUs=128 RealMemory=1000000 Gres=gpu:{per_node}
PartitionName=train Nodes=ALL Default=YES MaxTime=7-00:00:00 State=UP
"""


def there() -> bool:
    return all(shutil.which(p) for p in ("munged", "slurmctld", "sbatch")) and os.geteuid() == 0


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextmanager
def controller(folder, nodes: int, per_node: int = 8):
    """Environment for sbatch against a controller of `nodes` nodes with `per_node` devices each."""
    here = Path(folder)
    for name in ("state", "spool"):
        (here / name).mkdir(parents=True)
    (here / "key").write_bytes(secrets.token_bytes(128))
    (here / "key").chmod(0o400)
    (here / "slurm.conf").write_text(
        CONF.format(port=free_port(), other=free_port(), here=here, nodes=nodes, per_node=per_node)
    )
    environment = os.environ | {"SLURM_CONF": str(here / "slurm.conf")}
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    started = [
        subprocess.Popen(
            [
                "munged",
                "--foreground",
                "--force",
                f"--socket={here}/munge.socket",
                f"--key-file={here}/key",
                f"--pid-file={here}/munged.pid",
                f"--log-file={here}/munged.log",
                f"--seed-file={here}/munged.seed",
            ],
            **quiet,
        )
    ]
    try:
        for _ in range(1200):
            if (here / "munge.socket").exists():
                break
            time.sleep(0.05)
        started.append(subprocess.Popen(["slurmctld", "-D"], env=environment, **quiet))
        for _ in range(600):
            if (
                subprocess.run(
                    ["sinfo", "-h"], env=environment, capture_output=True, timeout=60
                ).returncode
                == 0
            ):
                break
            time.sleep(0.1)
        else:
            raise RuntimeError((here / "slurmctld.log").read_text()[-2000:])
        yield environment
    finally:
        for p in reversed(started):
            p.terminate()
            p.wait(timeout=60)
