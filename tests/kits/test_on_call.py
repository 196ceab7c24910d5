"""What an engineer on call meets: emitted scripts, run with the machines' own commands answered."""

from __future__ import annotations

import math
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from corpus import DENSE, SMALL, spec
from scantling import Design, assess
from scantling_kits import FRAMEWORKS, framework, kits, write
from scantling_kits.expressible import express
from scantling_kits.pages import kit
from scantling_kits.preflight import dcgm_level, preflight


def design(**more):
    plan = dict(tp=1, pp=1, sharding="zero3", micro_batch=1)
    data = spec(model=SMALL, devices=16, plan=plan, job=dict(global_batch=16), **more)
    return Design.from_data(data | {"name": "job"})


@pytest.fixture(scope="module")
def launch():
    return express(assess(design()), 0, framework("fsdp"), "slurm")


@pytest.fixture
def node(tmp_path):
    """A node that runs scripts of a kit: (script, commands that answer, environment)."""
    here, bin_ = tmp_path / "kit", tmp_path / "bin"
    bin_.mkdir()

    def go(files, script, commands=None, stdin="", args=(), **environment):
        if not here.exists():
            write(files, here)
        for name, text in (commands or {}).items():
            (bin_ / name).write_text(f"#!/bin/bash\n{text}\n")
            (bin_ / name).chmod(0o755)
        p = subprocess.run(
            ["bash", str(here / script), *args],
            cwd=tmp_path,
            env={"PATH": f"{bin_}:/usr/bin:/bin", "RUN_DIR": str(tmp_path / "run")} | environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return p.returncode, p.stdout, p.stderr

    (tmp_path / "run").mkdir()
    go.folder = tmp_path
    return go


GOOD = {
    "nvidia-smi": 'case "$*" in -L) for i in 1 2 3 4 5 6 7 8; do echo "GPU $i: H100"; done ;; '
    '*ecc*) printf "0\\n0\\n" ;; esac',
    "dcgmi": 'echo "| Memory | Pass |"',
}
SEVEN = GOOD | {
    "nvidia-smi": 'if [ "$1" = -L ]; then for i in 1 2 3 4 5 6 7; do echo "GPU $i"; done; fi'
}
ECC = GOOD | {
    "nvidia-smi": 'case "$*" in -L) for i in 1 2 3 4 5 6 7 8; do echo "GPU $i: H100"; done ;; '
    '*ecc*) printf "0\\n3\\n" ;; esac'
}


@pytest.mark.parametrize(
    ("commands", "named"),
    [
        (GOOD, ""),
        (GOOD | {"nvidia-smi": "exit 9"}, "devices: nvidia-smi fails"),
        (SEVEN, "devices: 7 of 8 answer"),
        (ECC, "memory: 3 uncorrectable errors"),
        (GOOD | {"dcgmi": 'echo "| PCIe | Fail |"'}, "dcgmi diag"),
        (GOOD | {"dcgmi": "exec sleep 60"}, "dcgmi diag -r 2: no end within 1 s"),
    ],
)
def test_a_check_that_fails_names_itself_and_its_node_and_stops(launch, node, commands, named):
    files = kit(launch)
    bad = node.folder / "bad"
    more = dict(PER_NODE="8", BAD_NODES=str(bad), SLURMD_NODENAME="node-7", ROOM_GB="0")
    more["DCGM_S"] = "1"
    code, _, said = node(files, "preflight.sh", commands, **more)
    assert (code, said.count("\n")) == ((3, 1) if named else (0, 0)), said
    assert not named or f"preflight: node-7: {named}" in said
    assert (bad.read_text() if bad.exists() else "") == ("node-7\n" if named else "")
    code, _, said = node(files, "preflight.sh", commands, PREFLIGHT="warn", **more)
    assert code == 0 and (named in said)
    assert node(files, "preflight.sh", commands, PREFLIGHT="off", **more)[::2] == (0, "")


@pytest.mark.parametrize(
    ("ports", "rate", "passes"), [(8, 400, True), (7, 400, False), (8, 200, False)]
)
def test_links_have_to_be_up_at_the_rate_of_the_design(launch, node, ports, rate, passes):
    """Eight ConnectX-7 of a DGX H100 at 400 Gbit/s, as /sys/class/infiniband lists them."""
    asked = preflight(launch)
    assert (asked.cards, asked.card_gbits) == (8, 400)
    for i in range(8):
        port = node.folder / "links" / f"mlx5_{i}" / "ports" / "1"
        port.mkdir(parents=True)
        (port / "state").write_text("4: ACTIVE\n" if i < ports else "1: DOWN\n")
        (port / "rate").write_text(f"{rate} Gb/sec (4X NDR)\n")
    links = str(node.folder / "links")
    code, _, said = node(kit(launch), "preflight.sh", GOOD, PER_NODE="8", LINKS=links, ROOM_GB="0")
    assert (code == 0) == passes
    assert passes or "links: " in said


def test_room_for_all_copies_that_are_kept(launch, node):
    """Copies kept and the one being written, as checkpoint.md counts them."""
    asked = preflight(launch)
    each = launch.figures.checkpoint_bytes / 1e9
    assert asked.room_gb == math.floor((launch.keep + 1) * each)
    assert node(kit(launch), "preflight.sh", GOOD, PER_NODE="8", ROOM_GB="1")[0] == 0
    code, _, said = node(kit(launch), "preflight.sh", GOOD, PER_NODE="8", ROOM_GB="99999999")
    assert code == 3 and "room: " in said
    other = node(kit(launch), "preflight.sh", GOOD, PER_NODE="8", ROOM_GB="99999999", NODE_RANK="1")
    assert other[0] == 0


def test_no_start_waits_for_the_sum_of_a_million_files(launch, node):
    """16,384 ranks write 32,768 files a copy: 33 copies take `du` longer than a start may."""
    asked = []
    for du in ("sleep 30", "echo 1000000000 run", "echo 4 run"):  # kB
        code, _, said = node(
            kit(launch),
            "preflight.sh",
            GOOD | {"du": du, "df": "echo head; echo disk 9 9 1000000 9% /"},
            **dict(PER_NODE="8", ROOM_GB="1000", SUM_S="1"),
        )
        asked.append((code, "not summed up" in said))
    assert asked == [(0, True), (0, False), (3, False)]
    full = GOOD | {"du": "exit 9", "df": "echo head; echo disk 9 9 1000000000 9% /"}
    assert node(kit(launch), "preflight.sh", full, PER_NODE="8", ROOM_GB="1000")[::2] == (0, "")


@pytest.mark.parametrize(("bus", "passes"), [(480, True), (1, False)])
def test_nccl_has_to_reach_what_the_step_counts_on(launch, node, bus, passes):
    """all_reduce_perf of nccl-tests ends with `# Avg bus bandwidth    : 353.2`."""
    last = f"# Out of bounds values : 0 OK\n# Avg bus bandwidth    : {bus}.25\n#\n"
    tests = node.folder / "nccl-tests"
    tests.mkdir()
    (tests / "all_reduce_perf").write_text(f"#!/bin/bash\nprintf '{last}'\n")
    (tests / "all_reduce_perf").chmod(0o755)
    more = dict(PER_NODE="8", NCCL_TESTS=str(tests), ROOM_GB="0")
    code, _, said = node(kit(launch), "preflight.sh", GOOD, **more)
    assert (code == 0) == passes
    assert passes or "all-reduce in the node" in said
    code, _, said = node(kit(launch), "preflight.sh", GOOD, stdin=last, args=["all"])
    assert (code == 0) == passes
    assert passes or "all-reduce over 16 devices" in said


def test_the_diagnosis_is_as_long_as_failures_leave_room_for():
    """DCGM's user guide: level 2 takes two minutes, level 1 seconds."""
    assert dcgm_level(5 * 3600) == 2
    assert dcgm_level(3600) == 1


@pytest.mark.parametrize(
    ("to", "option"),
    [
        # torch.distributed.elastic's c10d rendezvous: join_timeout, read_timeout of its store
        ("fsdp", r"read_timeout=(\d+),join_timeout=(\d+)"),
        ("accelerate", r"read_timeout=(\d+),join_timeout=(\d+)"),
        # MaxText's base.yml: 300 s otherwise, of jax.distributed.initialize
        ("maxtext", r"jax_distributed_initialization_timeout=(\d+)"),
    ],
)
@pytest.mark.parametrize("diagnosis", ["", "2400"])
def test_who_waits_for_the_others_waits_longer_than_their_checks_may_take(
    to, option, diagnosis, node
):
    data = spec(model=SMALL, devices=16, plan=dict(tp=1, pp=1), job=dict(global_batch=16))
    files = kits(assess(Design.from_data(data | {"name": "x"})), to)
    ranks = {name: 'echo "$@"' for name in ("torchrun", "accelerate", "python3")}
    more = dict(DATA="/d", TOKENIZER="/t", ROOM_GB="0") | (
        {"DCGM_S": diagnosis} if diagnosis else {}
    )
    _, out, _ = node(files, "launch.sh", GOOD | ranks, **more)
    waited = re.search(option, out + logs(node.folder / "run"))
    limits = {
        name: re.findall(rf"{name}:=(\d+)", files["preflight.sh"]) for name in ("DCGM_S", "SUM_S")
    }
    stated = re.findall(r"timeout (\d+) ", files["preflight.sh"])
    asked = sum(map(int, stated + limits["SUM_S"])) + int(diagnosis or limits["DCGM_S"][0])
    assert len(stated) == 4 and all(int(s) > asked for s in waited.groups())


@pytest.mark.parametrize("to", FRAMEWORKS)
def test_a_start_asks_the_node_before_any_rank(to, node):
    data = spec(model=SMALL, devices=16, plan=dict(tp=1, pp=1), job=dict(global_batch=16))
    files = kits(assess(Design.from_data(data | {"name": "x"})), to)
    ranks = {name: "echo started" for name in ("torchrun", "accelerate", "python3")}
    more = dict(DATA="/d", TOKENIZER="/t", MEGATRON_LM="/m", PER_NODE="8", ROOM_GB="0")
    code, out, _ = node(files, "launch.sh", GOOD | ranks, **more)
    assert code == 0 and "started" in out + logs(node.folder / "run")
    code, out, said = node(files, "launch.sh", GOOD | {"nvidia-smi": "exit 9"}, **more)
    assert code == 3 and "devices" in said and "started" not in out


def logs(run: Path) -> str:
    return "".join(path.read_text() for path in run.rglob("*.log"))


SLURM = {
    "scontrol": 'echo "scontrol $*" >> "$RUN_DIR/calls"; '
    'case "$1" in show) echo node-0; echo node-1; echo node-2 ;; esac',
    "sinfo": "exit 0",
    "srun": 'echo "srun $*" >> "$RUN_DIR/calls"; exit 0',
}
JOB = dict(SLURM_JOB_ID="7", SLURM_JOB_NODELIST="node", DATA="/d")


def calls(node) -> str:
    file = node.folder / "run" / "calls"
    text = file.read_text() if file.exists() else ""
    file.unlink(missing_ok=True)
    return text


def test_a_bad_node_is_kept_out_of_the_next_allocation_and_counted(launch, node):
    files = kit(launch)
    strikes = SLURM | {
        "srun": 'echo "srun $*" >> "$RUN_DIR/calls"; echo node-1 >> "$BAD_NODES"; '
        'echo node-2 >> "$BAD_NODES"; exit 3'
    }
    more = JOB | {"SLURM_SUBMIT_DIR": str(node.folder / "kit")}
    code, _, said = node(files, "job.sbatch", strikes, **more)
    text = calls(node)
    assert code != 0 and "back to the queue" in said
    assert text.index("ExcNodeList=node-1,node-2") < text.index("scontrol requeue 7")
    # the next job passes over them in any case
    code, _, said = node(files, "job.sbatch", SLURM, SLURM_RESTART_COUNT="1", **more)
    assert "1 of 2 nodes are up" in said and "srun --nodes" not in calls(node)
    limit = int(files["job.sbatch"].split('"$healed" -gt ')[1].split()[0])
    (node.folder / "run" / "excluded-nodes").write_text("")
    (node.folder / "run" / "starts-for-bad-nodes").write_text(f"{limit}\n")
    code, _, said = node(files, "job.sbatch", strikes, SLURM_RESTART_COUNT="1", **more)
    assert (code, "requeue" in calls(node)) == (3, False)
    assert f"{limit} allowed" in said


def test_no_data_ends_before_any_task(launch, node):
    more = {name: value for name, value in JOB.items() if name != "DATA"}
    code, _, said = node(
        kit(launch), "job.sbatch", SLURM, SLURM_SUBMIT_DIR=str(node.folder / "kit"), **more
    )
    assert (code, "srun" in calls(node), said.count("\n")) == (2, False, 1)


def test_an_image_goes_to_every_task_and_logs_are_named_by_node(launch, node):
    more = JOB | {"SLURM_SUBMIT_DIR": str(node.folder / "kit")}
    files = kit(launch)
    assert node(files, "job.sbatch", SLURM, **more)[0] == 0
    plain = calls(node)
    assert "--container" not in plain
    assert f"--output={node.folder}/run/logs/%5t-%N.log" in plain
    assert (
        node(files, "job.sbatch", SLURM, CONTAINER="img:1", CONTAINER_MOUNTS="/a:/b", **more)[0]
        == 0
    )
    image = calls(node)
    assert "--container-image=img:1" in image
    assert f"--container-mounts={node.folder}/kit,{node.folder}/run,/a:/b" in image


def test_apply_brings_what_it_is_told_to_the_cluster(node):
    """kubectl answered: the image, the network's resource and the settings are in what it gets."""
    a = assess(design(cluster=dict(accelerator="h100-sxm")))
    files = kits(a, "fsdp", "kubernetes")
    kubectl = {
        "kubectl": 'echo "kubectl $*" >> "$RUN_DIR/calls"; cat >> "$RUN_DIR/applied" <&0 || true'
    }
    more = dict(CONTAINER="registry/x:1", RDMA_RESOURCE="nvidia.com/hostdev")
    code, _, said = node(files, "apply.sh", kubectl, **more)
    assert (code, calls(node)) == (2, "") and "no DATA" in said
    code, _, said = node(files, "apply.sh", kubectl, DATA="/runs/tokens", TOKENIZER="/t", **more)
    assert code == 0, said
    text = calls(node)
    assert "--from-literal=DATA=/runs/tokens --from-literal=TOKENIZER=/t" in text
    applied = (node.folder / "run" / "applied").read_text()
    assert 'image: "registry/x:1"' in applied and '"nvidia.com/hostdev"' in applied
    assert node(files, "apply.sh", kubectl, DATA="/d")[0] != 0  # no image


OF_THE_POD = {"RUN_DIR", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "RUN_ID", "PER_NODE"}


@pytest.mark.parametrize("to", ["megatron", "fsdp", "deepspeed", "ddp", "accelerate", "torchtitan"])
def test_what_a_run_may_be_told_reaches_its_pods(to):
    """sbatch hands on the whole environment; a pod sees what apply.sh puts into its config map: a
    learning rate that stayed behind would train at another."""
    plan = dict(tp=1, pp=1, sharding="none" if to == "ddp" else "zero3")
    data = spec(model=SMALL, devices=16, plan=plan, job=dict(global_batch=16)) | {"name": "x"}
    files = kits(assess(Design.from_data(data)), to, "kubernetes")
    handed = {*re.search(r"^for name in (.*); do$", files["apply.sh"], re.M)[1].split()}
    programs = "".join(text for name, text in files.items() if name.endswith(".py"))
    read = {*re.findall(r'os\.environ\.get\(\s*"([A-Z_]+)"', programs)}
    scripts = files["launch.sh"] + files["preflight.sh"]
    read |= {*re.findall(r'"\$\{([A-Z_]+):=', scripts)} | {"INIT", "NCCL_DEBUG"}
    assert read - handed - OF_THE_POD - {"LAUNCHED"} == set()
    named = re.findall(r"^- `([A-Z_]+)`: ", files["README.md"], re.M)
    assert named and set(named) <= handed


@pytest.mark.parametrize("on", ["torchrun", "slurm", "kubernetes"])
def test_the_readme_is_two_pages_with_the_launch_line_in_full(on):
    a = assess(Design.from_data(spec(model=DENSE, plan=dict(tp=8, pp=2)) | {"name": "x"}))
    files = kits(a, "megatron", on)
    text = files["README.md"]
    assert len(text.split()) < 1500
    for head in ("Before the run", "Start", "Budget", "Checkpoints", "Watch", "When something"):
        assert f"\n## {head}" in text
    assert "torchrun --nnodes=" in text and "pretrain_$MODEL.py" in text
    assert "job.corpus" not in text + files["assumptions.md"]
    assert "Left open by the design" in files["assumptions.md"]


@pytest.mark.parametrize(
    ("to", "on", "line"),
    [
        ("megatron", "slurm", "DATA=/shared/tokens sbatch"),
        ("torchtitan", "slurm", "DATA=/shared/text TOKENIZER=/shared/tokenizer sbatch"),
        ("torchtitan", "kubernetes", "DATA=/runs/text TOKENIZER=/runs/tokenizer bash apply.sh"),
        ("maxtext", "torchrun", "TOKENIZER=/shared/tokenizer NODE_RANK=0"),
    ],
)
def test_the_line_that_starts_names_a_tokenizer_where_text_is_read(to, on, line):
    """torchtitan reads c4 (hf_datasets/text_datasets.py), MaxText ArrayRecords of text through
    Grain; Megatron and the kit's own trainers read token ids."""
    page = kit(express(assess(design()), 0, framework(to), on))["README.md"]
    assert line in page
    assert "In the image: `export" not in page


def test_a_pod_whose_devices_no_longer_answer_is_ended(tmp_path):
    """A device that fell off its bus: `nvidia-smi -L` lists the others (NVIDIA, XID 79)."""
    files = kits(assess(design()), "fsdp", "kubernetes")
    pod = yaml.safe_load(files["jobset.yaml"])["spec"]["replicatedJobs"][0]
    container = pod["template"]["spec"]["template"]["spec"]["containers"][0]
    probe = container["livenessProbe"]
    assert probe["timeoutSeconds"] < probe["periodSeconds"]
    assert probe["failureThreshold"] > 1, "one slow answer is no failure"
    smi = tmp_path / "nvidia-smi"

    def answers(count):
        lines = "".join(f'echo "GPU {i}: NVIDIA H100"\n' for i in range(count))
        smi.write_text(f"#!/bin/bash\n{lines}")
        smi.chmod(0o755)
        path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        return subprocess.run(probe["exec"]["command"], env=path, check=False).returncode

    assert answers(8) == 0
    assert answers(7) != 0
    smi.unlink()
    bare = subprocess.run(probe["exec"]["command"], env={"PATH": "/usr/bin:/bin"}, check=False)
    assert bare.returncode == 0, "an image without the command is not asked"


def test_racks_without_spares_say_what_a_lost_node_costs():
    """Racks of 18 trays (GB200 NVL72) and segments of 16: two trays stand beside each."""
    plan = dict(tp=1, pp=1, sharding="zero3", micro_batch=1)
    data = spec(model=SMALL, devices=128, plan=plan, job=dict(global_batch=128), name="racks")
    data["cluster"] = dict(
        accelerator="gb200-nvl72", devices=128, devices_per_node=4, scale_up_domain=64
    )
    data["reliability"] = dict(spares=0)
    page = kits(assess(Design.from_data(data)), "fsdp", "slurm")["README.md"]
    line = next(row for row in page.splitlines() if "Slurm request" in row)
    assert "segments of 16 within one NVLink rack, none to spare" in line
    assert "a rack has 2 nodes beside it" in line


@pytest.mark.parametrize("script", ["launch.sh", "job.sbatch"])
def test_a_bucket_is_no_folder(launch, node, script):
    """mkdir -p gs://bucket/run makes a folder `gs:` here, and the run would save into it. Orbax
    writes to buckets; what job.sbatch remembers needs a folder whatever the framework."""
    more = JOB | {"SLURM_SUBMIT_DIR": str(node.folder / "kit"), "RUN_DIR": "gs://bucket/run"}
    code, out, said = node(kit(launch), script, GOOD | {"torchrun": "echo started"}, **more)
    assert (code, "started" in out, said.count("\n")) == (2, False, 1)
    assert "is a bucket" in said and not [*node.folder.rglob("gs:*")]


def test_no_host_stands_by_in_a_slice():
    """Cloud TPU: the chips of a slice are joined when it is made, and GKE makes a slice whose host
    is lost again as a whole (docs.cloud.google.com: TPUs in GKE, node pools of a slice)."""
    cluster = dict(accelerator="tpu-v5p", devices=512)
    data = spec(devices=512, plan=dict(tp=4, pp=1), reliability={"spares": 2})
    data |= {"name": "x", "cluster": cluster}
    a = assess(Design.from_data(data))
    assert a.spares == 2
    slurm, pods = (kits(a, "maxtext", on) for on in ("slurm", "kubernetes"))
    assert "#SBATCH --nodes=128\n" in slurm["job.sbatch"]
    assert "stand by" not in slurm["job.sbatch"] and "back to the queue" in slurm["job.sbatch"]
    assert "gpus-per-node" not in slurm["job.sbatch"] + slurm["README.md"]
    for files in (slurm, pods):
        assert "1 slice; 2 spare nodes in the reservation, none in a slice" in files["README.md"]
        assert "the slice of a lost host is made again from the reservation" in files["README.md"]
        assert "nccl-tests" not in files["README.md"]
    assert "quota for 128" in pods["README.md"]
