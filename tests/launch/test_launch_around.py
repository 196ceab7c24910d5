"""Around a launch kit: the guide to troubles, scripts before shellcheck, manifests before published
schemas, jobs that stop and go on."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from scantling import Design, assess
from scantling.kits import FRAMEWORKS, framework, kits, write
from scantling.kits.express import express
from scantling.kits.frameworks import megatron as megatron_module

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))
import crd  # noqa: E402
from corpus import DENSE, PLANS, SMALL, Z1, spec  # noqa: E402


def design(data, **more):
    return Design.from_data(data | more)


@pytest.fixture(scope="module")
def small():
    return assess(
        design(
            spec(model=SMALL, devices=16, plan=dict(tp=1, pp=1, sharding="none", micro_batch=2)),
            name="small",
        )
    )


def test_troubles_are_ordered_by_what_is_likely_here():
    tight = assess(
        design(
            PLANS["zero3"]
            | {"plan": dict(tp=1, pp=1, sharding="zero3", micro_batch=4, recompute="none")},
            name="tight",
        )
    )
    first = re.findall(r"^1\. \*\*(.*?)\.\*\*", kits(tight, "fsdp")["README.md"], re.M)[0]
    assert (
        first == "Out of memory"
        or tight.memory_bytes["total"] < 0.5 * tight.memory_bytes["capacity"]
    )
    half = assess(design(PLANS["fp16"], name="half"))
    assert "FP16 overflow" in kits(half, "megatron")["README.md"]
    assert "FP16 overflow" not in kits(tight, "fsdp")["README.md"]


def test_scripts_pass_shellcheck(tmp_path, small):
    scripts, program = (
        [],
        shutil.which(
            "shellcheck", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        ),
    )
    odd = assess(design(PLANS["thirteen-devices"], name="odd"))
    for a, to in [(small, to) for to in FRAMEWORKS] + [(odd, "fsdp")]:
        for name, text in kits(a, to, "slurm").items():
            if name.endswith((".sh", ".sbatch")):
                path = tmp_path / f"{to}-{len(scripts)}-{name}"
                path.write_text(text)
                scripts.append(str(path))
    p = subprocess.run([program, "-s", "bash", *scripts], capture_output=True, text=True)
    assert p.returncode == 0, p.stdout
    broken = tmp_path / "broken.sh"
    broken.write_text("#!/bin/bash\nrm $1/*\n")
    assert subprocess.run([program, str(broken)], capture_output=True).returncode == 1


RACK = spec(
    cluster=dict(accelerator="gb200-nvl72", devices=64, devices_per_node=4, scale_up_domain=64)
)
TPU = spec(cluster=dict(accelerator="tpu-v5p", devices=64, devices_per_node=4))


@pytest.mark.parametrize(
    ("to", "data", "kinds"),
    [
        ("megatron", PLANS["dense-pp"], {"JobSet", "PyTorchJob"}),
        ("fsdp", PLANS["thirteen-devices"], {"JobSet", "PyTorchJob"}),
        ("maxtext", TPU, {"JobSet"}),
        ("megatron", RACK, {"JobSet", "PyTorchJob", "ComputeDomain"}),
    ],
)
def test_manifests_are_what_the_published_schemas_allow(to, data, kinds):
    """The CRD schemas of JobSet, of the Kubeflow training operator and of NVIDIA's driver, unknown
    fields refused; and they can refuse."""
    a = assess(design(data, name="job"))
    files = kits(a, to, "kubernetes")
    found = {f: yaml.safe_load(text) for f, text in files.items() if f.endswith(".yaml")}
    assert {d["kind"] for d in found.values()} == kinds
    domain = found.pop("computedomain.yaml", None)
    if domain:
        crd.check(domain)
        with pytest.raises(ValueError, match="numNodes"):
            crd.check(domain | {"spec": {"channel": domain["spec"]["channel"]}})
    for file, d in found.items():
        crd.check(d)
        pods = (
            [j["template"]["spec"]["template"]["spec"] for j in d["spec"]["replicatedJobs"]]
            if d["kind"] == "JobSet"
            else [r["template"]["spec"] for r in d["spec"]["pytorchReplicaSpecs"].values()]
        )
        for pod in pods:
            limits = pod["containers"][0]["resources"]["limits"]
            assert (
                limits.pop("google.com/tpu" if to == "maxtext" else "nvidia.com/gpu")
                == a.resolved.cluster.devices_per_node
            )
            assert bool(limits) == (to != "maxtext"), "the network's devices are asked for too"
            claimed = [c["resourceClaimTemplateName"] for c in pod.get("resourceClaims", [])]
            assert claimed == (
                [domain["spec"]["channel"]["resourceClaimTemplate"]["name"]] if domain else []
            )
            assert [c["name"] for c in pod["containers"][0]["resources"].get("claims", [])] == [
                c["name"] for c in pod.get("resourceClaims", [])
            ]
        for old, new in (
            ("containers:", "contaners:"),
            ("name: ", "nam: "),
            ("spec:", "specs:"),
            (r"/v1", "/v7"),
            (r"mountPath: /runs", "mountPath: [7]"),
        ):
            with pytest.raises(ValueError, match=r"\$|no resource"):
                crd.check(yaml.safe_load(files[file].replace(old, new)))
    if to == "maxtext":
        assert pods[0]["nodeSelector"] == {
            "cloud.google.com/gke-tpu-accelerator": "tpu-v5p-slice",
            "cloud.google.com/gke-tpu-topology": "4x4x4",
        }


def test_tpu_slices_are_those_on_sale():
    """Topologies of the vendor's tables: v5e and v6e are flat, v4, v5p and Ironwood have three
    axes."""
    from scantling.kits.scripts import tpu_slice

    a = assess(design(TPU, name="job"))
    launch = express(a, 0, framework("maxtext"), "kubernetes")
    for chip, chips, expected in (
        ("tpu-v5p", 4, "2x2x1"),
        ("tpu-v5p", 8, "2x2x2"),
        ("tpu-v5p", 16, "2x2x4"),
        ("tpu-v5p", 128, "4x4x8"),
        ("tpu-v5p", 4096, "16x16x16"),
        ("tpu-v5e", 256, "16x16"),
        ("tpu-v6e", 32, "4x8"),
        ("tpu-v4", 512, "8x8x8"),
        ("tpu-v7x", 256, "4x8x8"),
    ):
        k = replace(launch.cluster, accelerator=replace(launch.cluster.accelerator, id=chip))
        assert tpu_slice(replace(launch, cluster=k, devices=chips))[1] == expected
    assert tpu_slice(replace(launch, devices=96)) is None


def test_a_long_run_may_go_back_to_the_queue_as_often_as_it_has_to():
    """A run of months on few devices ends at the wall time more often than it fails: each of these
    ends is a return to the queue."""
    a = assess(
        design(
            spec(devices=64, job=dict(tokens=1e13), plan=dict(tp=1, pp=1, sharding="zero3")),
            name="long",
        )
    )
    text = kits(a, "fsdp", "slurm")["job.sbatch"]
    weeks = a.days / 7
    assert weeks > 10
    assert (
        int(re.search(r"SLURM_RESTART_COUNT:-0\}\" -lt (\d+)", text)[1])
        > weeks + a.days * 86400 / a.mtbf_s
    )


STUBS = {
    "scontrol": 'if [ "$1" = requeue ]; then echo requeue >> "$RUN_DIR/said"; else echo node0; fi',
    "torchrun": "exit 0",
}


@pytest.mark.parametrize(
    ("to", "srun", "code", "again", "said"),
    [
        (
            "fsdp",
            'while [ ! -e "$RUN_DIR/stop" ]; do sleep 0.05; done',
            0,
            True,
            True,
        ),  # the trainer sees the file, saves, ends
        (
            "megatron",
            "trap 'exit 143' TERM; while :; do sleep 0.05; done",
            143,
            True,
            True,
        ),  # the ranks get SIGTERM
        ("torchtitan", "trap 'exit 143' TERM; while :; do sleep 0.05; done", 143, True, True),
        ("fsdp", "exit 3", 3, False, False),
        ("fsdp", "exit 0", 0, False, False),
    ],
)
def test_a_job_that_is_stopped_goes_back_to_the_queue_and_one_that_fails_at_once_does_not(
    small, tmp_path, to, srun, code, again, said
):
    kit, bin_ = tmp_path / "kit", tmp_path / "bin"
    write(kits(small, to, "slurm"), kit)
    bin_.mkdir()
    for name, text in (STUBS | {"srun": srun}).items():
        (bin_ / name).write_text(
            f"#!/bin/bash\n{text}\n".replace("while", 'touch "$RUN_DIR/begun"; while')
        )
        (bin_ / name).chmod(0o755)
    run = kit / "run"
    p = subprocess.Popen(
        ["bash", "job.sbatch"],
        cwd=kit,
        env={
            "PATH": f"{bin_}:/usr/bin:/bin",
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_NODELIST": "n",
            "SLURM_SUBMIT_DIR": str(kit),
        },
    )
    if again:
        for _ in range(400):
            if (run / "begun").exists():
                break
            time.sleep(0.05)
        p.send_signal(signal.SIGUSR1)
    assert p.wait(timeout=20) == code
    assert (run / "said").exists() == said


def test_what_a_design_states_stays_where_the_framework_has_words_for_it():
    """The published DeepSeek-V3 plan under Megatron-LM: the schedule goes, stages and expert groups
    stay; a faster plan is named, not taken."""
    a = assess(Design.read(ROOT / "gallery" / "designs" / "case-5-deepseek-v3.yaml"))
    files = kits(a, "megatron", "slurm")
    plan = json.loads(files["plan.json"])
    assert {g["field"] for g in plan["not_expressed"]} == {"schedule"}
    assert (plan["plan"]["pp"], plan["plan"]["ep"], plan["plan"]["tp"]) == (16, 64, 1)
    arguments = dict(re.findall(r"^(--\S+) (\S+)$", files["megatron.args"], re.M))
    assert (
        arguments["--moe-router-score-function"],
        arguments["--hidden-dropout"],
        arguments["--rope-type"],
    ) == ("sigmoid", "0.0", "rope")  # DeepSeek-V3 report, sections 2.1 and 4.2
    assert "#SBATCH --mem=0" in files["job.sbatch"]


def test_megatron_knows_every_field_of_a_plan():
    """What the domain leaves out is in the plan's vocabulary: a misspelt field would let everything
    through."""
    from scantling.kits.express import FIELDS

    for to, each in FRAMEWORKS.items():
        assert set(each.domain) <= {*FIELDS, "optimizer"}, to
    assert megatron_module.chunks.__doc__
    assert DENSE
    assert Z1
