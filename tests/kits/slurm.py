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
SlurmUser=root
StateSaveLocation={here}/state
SlurmdSpoolDir={here}/spool
SlurmctldPidFile={here}/slurmctld.pid
SlurmctldLogFile={here}/slurmctld.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
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


def version() -> tuple[int, int]:
    """(22, 5) of 22.05."""
    said = subprocess.run(["slurmctld", "-V"], capture_output=True, text=True).stdout
    year, month = said.split()[-1].split(".")[:2]
    return int(year), int(month)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextmanager
def controller(folder, nodes: int, per_node: int = 8, rack: int = 0):
    """Environment for sbatch against a controller of `nodes` nodes with `per_node` devices each;
    with `rack` they stand in racks of so many, which topology/block knows."""
    here = Path(folder)
    for name in ("state", "spool"):
        (here / name).mkdir(parents=True)
    (here / "key").write_bytes(secrets.token_bytes(128))
    (here / "key").chmod(0o400)
    (here / "slurm.conf").write_text(
        CONF.format(port=free_port(), other=free_port(), here=here, nodes=nodes, per_node=per_node)
    )
    if rack:
        with (here / "slurm.conf").open("a") as f:
            f.write("TopologyPlugin=topology/block\n")
        blocks = [f"BlockName=r{i} Nodes=n[{i + 1}-{i + rack}]" for i in range(0, nodes, rack)]
        (here / "topology.conf").write_text("\n".join([*blocks, f"BlockSizes={rack}", ""]))
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
