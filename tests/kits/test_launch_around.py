"""Around a launch kit: the guide to troubles, scripts before shellcheck, manifests before published
schemas, jobs that stop and go on."""

from __future__ import annotations

import json
import math
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
from scantling import Design, assess, catalogue
from scantling.catalogue.models.entries import model as catalogue_model
from scantling_kits import FRAMEWORKS, Inexpressible, framework, kits, write
from scantling_kits.expressible import express
from scantling_kits.launch_plan import norm_epsilon, rotary_base
from scantling_site.job_site import site_of
from scantling_site.scheduler.dialects import request

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))
import crd  # noqa: E402
from corpus import MOE, PLANS, SMALL, spec  # noqa: E402


def design(data, **more):
    return Design.from_data(data | more)


def unexpressed(files):
    """{field of model, job or plan: what stands in its place} of a kit."""
    gaps = json.loads(files["plan.json"])["not_expressed"]
    return {g["field"]: g["instead"] for g in gaps if g["field"] != "reliability.recovery"}


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


@pytest.mark.slow
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
                path = tmp_path / f"{to}-{len(scripts)}-{name.replace('/', '-')}"
                path.write_text(text)
                scripts.append(str(path))
    p = subprocess.run([program, "-s", "bash", *scripts], capture_output=True, text=True)
    assert p.returncode == 0, p.stdout
    broken = tmp_path / "broken.sh"
    broken.write_text("#!/bin/bash\nrm $1/*\n")
    assert subprocess.run([program, str(broken)], capture_output=True).returncode == 1


JOB = re.compile(r"(jobset|pytorchjob|computedomain)\.yaml")
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
    found = {f: yaml.safe_load(text) for f, text in files.items() if JOB.fullmatch(f)}
    runtime, train = (
        yaml.safe_load(files[f"{name}.yaml"]) for name in ("trainingruntime", "trainjob")
    )
    crd.check(yaml.safe_load(files["jobset.yaml"]) | {"spec": runtime["spec"]["template"]["spec"]})
    assert train["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"]
    assert train["spec"]["trainer"]["numNodes"] == runtime["spec"]["mlPolicy"]["numNodes"]
    assert {d["kind"] for d in found.values()} == kinds
    host = a.resolved.cluster.host_memory_bytes
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
            assert pod["containers"][0]["resources"]["requests"] == limits  # guaranteed
            assert int(limits.pop("cpu")) >= 8 * a.resolved.cluster.devices_per_node
            assert int(limits.pop("memory").removesuffix("Gi")) * 2**30 < host
            assert all(e["value"] for e in pod["containers"][0]["env"])
            assert pod["containers"][0]["envFrom"] == [{"configMapRef": {"name": "job-settings"}}]
            plugin = "google.com/tpu" if to == "maxtext" else "nvidia.com/gpu"
            assert [t["key"] for t in pod["tolerations"]] == [plugin]
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


@pytest.mark.parametrize(
    ("file", "to"),
    [
        ("llama-3.1-405b", "megatron"),
        ("qwen3-235b-a22b-256-gb200", "megatron-bridge"),
        ("maxtext-32b-64-tpu-v5p", "maxtext"),
    ],
)
def test_manifests_ask_for_what_the_blueprint_says(file, to):
    a = assess(Design.read(ROOT / "gallery" / "designs" / f"{file}.yaml"))
    files = kits(a, to, "kubernetes")
    asked = request(site_of(a), "kueue")["fields"]
    spec = yaml.safe_load(files["jobset.yaml"])["spec"]
    (job,) = spec["replicatedJobs"]
    pods = job["template"]["spec"]["template"]
    assert job["replicas"] == asked["JobSet.replicatedJobs.replicas"]
    assert job["template"]["spec"]["parallelism"] == asked["parallelism of each"]
    assert spec["failurePolicy"]["maxRestarts"] == asked["failurePolicy.maxRestarts"]
    device = "google.com/tpu" if to == "maxtext" else "nvidia.com/gpu"
    limits = pods["spec"]["containers"][0]["resources"]["limits"]
    assert limits[device] == asked["devices per pod"]
    size = pods["metadata"]["annotations"].get("kueue.x-k8s.io/podset-slice-size", "")
    assert size == str(asked.get("podset-slice-size", ""))
    assert f"quota for {asked['quota nodes']}" in files["README.md"]
    domain = yaml.safe_load(files.get("computedomain.yaml", "spec: {}"))["spec"]
    assert domain.get("numNodes") == asked.get("ComputeDomain.numNodes")


def test_tpu_slices_are_those_on_sale():
    """Topologies of the vendor's tables: v5e and v6e are flat, v4, v5p and Ironwood have three
    axes."""
    from scantling_kits.kubernetes import tpu_slice

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
        k = replace(launch.cluster, accelerator=catalogue.accelerator(chip))
        assert tpu_slice(replace(launch, cluster=k, devices=chips)).topology == expected
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
    assert int(re.search(r"^REQUEUES=(\d+)$", text, re.M)[1]) > weeks + a.days * 86400 / a.mtbf_s


STUBS = {
    "scontrol": (
        'if [ "$1" = requeue ]; then echo requeue >> "$RUN_DIR/said"; '
        "else echo node0; echo node1; fi"
    ),
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
            "DATA": "/data/tokens",
        },
    )
    if again:
        while not (run / "begun").exists() and p.poll() is None:
            time.sleep(0.05)
        p.send_signal(signal.SIGUSR1)
    assert p.wait(timeout=600) == code
    assert (run / "said").exists() == said


def test_what_a_design_states_stays_where_the_framework_has_words_for_it():
    """The published DeepSeek-V3 plan under Megatron-LM: the schedule goes, stages and expert groups
    stay; a faster plan is named, not taken."""
    a = assess(Design.read(ROOT / "gallery" / "designs" / "case-5-deepseek-v3.yaml"))
    files = kits(a, "megatron", "slurm")
    plan = json.loads(files["plan.json"])
    assert {*unexpressed(files)} == {"schedule"}
    assert (plan["plan"]["pp"], plan["plan"]["ep"], plan["plan"]["tp"]) == (16, 64, 1)
    arguments = dict(re.findall(r"^(--\S+) (\S+)$", files["megatron.args"], re.M))
    assert (
        arguments["--moe-router-score-function"],
        arguments["--hidden-dropout"],
        float(arguments["--rotary-scaling-factor"]),
    ) == ("sigmoid", "0.0", 1)  # DeepSeek-V3 report, sections 2.1 and 4.2: stretched afterwards
    assert "#SBATCH --mem=0" in files["job.sbatch"]


def test_megatron_knows_every_field_of_a_plan():
    """What the domain leaves out is in the plan's vocabulary: a misspelt field would let everything
    through."""
    from scantling_kits.nearest import PINNED

    named = {*PINNED, "dp", "grad_accum", "precision", "optimizer"}
    for to, each in FRAMEWORKS.items():
        assert set(each.domain) <= named, to


def test_a_model_that_a_framework_cannot_build_is_counted_as_what_is_built():
    """GPT-3's layers of two matrices (Brown et al. 2020: 174.6 billion with Megatron's vocabulary)
    keep their count as SwiGLU of two thirds the width; with the same width they would be 233
    billion, and 83 GB a device of 80."""
    a = assess(Design.read(ROOT / "gallery" / "designs" / "gpt-3-175b-64-a100.yaml"))
    plan = json.loads(kits(a, "torchtitan")["plan.json"])
    s = plan["shape"]
    layer = s["hidden"] * (4 * s["hidden"] + 3 * s["ffn_hidden"] + 2)
    ends = s["hidden"] * (2 * s["vocab"] + 1)
    assert plan["params"] == s["layers"] * layer + ends
    assert plan["params"] == pytest.approx(a.params, rel=0.005)
    changed = [g for g in plan["not_expressed"] if g["field"].startswith("model")]
    assert changed
    assert all(f"{plan['params']:,} parameters against {a.params:,}" in g["cost"] for g in changed)
    assert plan["memory_bytes"]["total"] < plan["memory_bytes"]["capacity"]


def test_a_model_with_no_block_of_its_kind_is_refused():
    a = assess(design(PLANS["moe-shared"], name="shared"))
    with pytest.raises(Inexpressible, match="none shared"):
        kits(a, "maxtext")


@pytest.mark.parametrize(
    ("model", "base", "epsilon"),
    [
        ("mixtral-8x22b", 1_000_000, 1e-5),
        ("qwen3-32b", 1_000_000, 1e-6),
        ("llama-2-70b", 10_000, 1e-5),
        ("deepseek-v3", 10_000, 1e-6),
        ("qwen2.5-72b", 1_000_000, 1e-5),
        ("moonlight-16b", 50_000, 1e-5),
    ],
)
def test_rotary_base_and_epsilon_are_the_model_s_own(model, base, epsilon):
    """Figures of the publishers' config.json files."""
    m = catalogue_model(model)
    assert (rotary_base(m), norm_epsilon(m)) == (base, epsilon)


@pytest.mark.parametrize(
    ("plan", "job", "field", "instead"),
    [
        ({"sharding": "zero1"}, {}, None, None),
        ({"sharding": "zero3", "tp": 1, "pp": 1}, {}, "sharding", "zero1"),
        ({}, {"precision": "fp16"}, "precision", "bf16"),
        ({"offload": "optimizer"}, {}, "offload", "none"),
    ],
)
def test_muon_under_megatron_is_what_its_checks_allow(plan, job, field, instead):
    """Megatron-LM core_v0.19.0, training/arguments.py and core/optimizer/__init__.py: Muon with
    --use-distributed-optimizer is layer-wise; not with Megatron-FSDP, nor fp16. Bridge's recipe of
    Kimi K2 has dist_muon."""
    data = spec(model=SMALL, devices=16, plan=plan)
    data["job"] |= job | {"optimizer": "muon"}
    a = assess(design(data, name="muon"))
    files = kits(a, "megatron")
    gaps = unexpressed(files)
    assert gaps == ({field: instead} if field else {})
    lines = files["megatron.args"].splitlines()
    assert "--optimizer muon" in lines
    assert "--use-distributed-optimizer" in lines
    assert not {"--use-megatron-fsdp", "--fp16", "--optimizer-cpu-offload"} & set(lines)
    bridge = kits(a, "megatron-bridge")
    assert unexpressed(bridge) == gaps
    assert "optimizer.optimizer='dist_muon'" in bridge["bridge.overrides"].splitlines()


def test_selective_recompute_repeats_what_the_stack_does():
    """DeepSeek-V3 (arXiv 2412.19437, sections 3.2.3 and 3.3.3) repeats norms, up-projections and
    the experts' SwiGLU."""
    data = PLANS["mla"] | {"stack": "hai-llm", "name": "mla"}
    data["plan"] = data["plan"] | {"recompute": "selective"}
    args = kits(assess(Design.from_data(data)), "megatron")["megatron.args"]
    said = re.search(r"^--recompute-modules (.*)$", args, re.M)[1]
    assert set(said.split()) == {"mla_up_proj", "layernorm", "moe_act"}


def test_made_up_tokens_are_asked_for_and_said(tmp_path, small):
    """Without DATA one line on stderr and no rank, and made-up tokens for MOCK_DATA=1 alone."""
    for to in FRAMEWORKS:
        kit, bin_ = tmp_path / to, tmp_path / "bin"
        write(kits(small, to), kit)
        bin_.mkdir(exist_ok=True)
        for name in ("torchrun", "accelerate", "python3"):
            (bin_ / name).write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
            (bin_ / name).chmod(0o755)
        seen = {}
        for data in ({}, {"MOCK_DATA": "1"}, {"DATA": "/data/tokens", "TOKENIZER": "/tokenizer"}):
            env = {"PATH": f"{bin_}:/usr/bin:/bin", "MEGATRON_LM": "/megatron", "ROOM_GB": "0"}
            env |= data
            p = subprocess.run(
                ["bash", str(kit / "launch.sh")], env=env, capture_output=True, text=True
            )
            started = "--mock-data" in p.stdout, bool(p.stdout.strip())
            seen[p.returncode, len(p.stderr.splitlines()), *started] = p.stderr
        mock = to == "megatron"
        assert set(seen) == {(2, 1, False, False), (0, 1, mock, True), (0, 0, False, True)}, (
            to,
            seen,
        )
        assert all("no DATA" in s for (_, n, *_), s in seen.items() if n)


def test_the_guide_names_the_tools_with_what_this_run_should_show():
    design = Design.read(ROOT / "gallery" / "designs" / "llama-3.1-405b.yaml")
    a = assess(design.change({"plan.sharding": "zero1"}))  # Megatron-LM has no zero2
    text = kits(a, "megatron", "slurm")["plan.md"]
    guide = text[text.index("## Tools") : text.index("## Files")]
    for word in (
        "nvidia-smi dmon",
        "memory_stats",
        "snapshot",
        "nsys profile",
        "NCCL_DEBUG",
        "NCCL_IB_DISABLE",
        "Gradient compression",
        "NVMe first",
        "flight recorder",
        "Resume:",
        "Shrink:",
    ):
        assert word in guide, word
    assert f"{a.memory_bytes['total'] / 1e9:,.1f} GB" in guide
    assert f"about {100 * a.hfu:.0f} %" in guide
    p = a.plan
    ranks, devices = re.search(r"has (\d+) data-parallel ranks on ([\d,]+) devices", guide).groups()
    assert int(devices.replace(",", "")) == int(ranks) * p["tp"] * p["cp"] * p["pp"]
    assert a.resolved.phases[0].global_batch % (int(ranks) * p["micro_batch"]) == 0


def test_more_chips_than_a_slice_has_are_several_slices():
    """A v5p pod has 8,960 chips (Google's TPU v5p page): 16,384 are two slices of 8,192, whose
    mesh has its data-parallel ranks across them."""
    data = {
        "model": "llama-3.1-405b",
        "cluster": {"accelerator": "tpu-v5p", "devices": 16_384, "devices_per_node": 4},
        "job": {"seq_len": 8192, "global_batch": 4096},
    }
    a = assess(design(data, name="pods"))
    files = kits(a, "maxtext", "kubernetes")
    job = yaml.safe_load(files["jobset.yaml"])["spec"]["replicatedJobs"][0]
    assert (job["replicas"], job["template"]["spec"]["parallelism"]) == (2, 2048)
    pod = job["template"]["spec"]["template"]["spec"]
    assert pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"] == "16x16x32"
    mesh = yaml.safe_load(files["maxtext.yml"])
    sizes = {k: v for k, v in mesh.items() if k.endswith("_parallelism")}
    across = [v for k, v in sizes.items() if k.startswith("dcn_")]
    assert math.prod(across) == 2
    assert math.prod(sizes.values()) == a.plan["dp"] * a.plan["tp"] * a.plan["pp"] * a.plan["cp"]


@pytest.mark.parametrize(
    ("devices", "sharding", "offload", "stage", "instead"),
    [
        (1, None, "optimizer", 1, {}),
        (1, None, "optimizer+params", 3, {}),
        (16, "none", "optimizer", None, None),
        (16, "zero1", "optimizer", 1, {}),
        (16, "zero1", "optimizer+params", None, None),
        (16, "zero3", "optimizer+params", 3, {}),
    ],
)
def test_deepspeed_moves_to_the_hosts_what_its_stage_shares(
    devices, sharding, offload, stage, instead
):
    """deepspeed.ai/docs/config-json: offload_optimizer is of ZeRO stages 1 to 3, offload_param of
    stage 3; stage 0 has no ZeRO. One rank has the whole of every stage."""
    pins = dict(tp=1, pp=1, offload=offload) | ({"sharding": sharding} if sharding else {})
    data = spec(model=SMALL, devices=devices, plan=pins, job=dict(global_batch=16))
    files = kits(assess(design(data, name="hosts")), "deepspeed")
    zero = json.loads(files["ds_config.json"])["zero_optimization"]
    gaps = unexpressed(files)
    if instead is None:
        assert gaps["offload"] == json.loads(files["plan.json"])["plan"]["offload"] != offload
        return
    assert "offload" not in gaps
    assert zero["stage"] == stage
    assert "offload_optimizer" in zero
    assert ("offload_param" in zero) == (offload == "optimizer+params")


@pytest.mark.parametrize(
    ("devices", "sharding", "plan", "job", "instead"),
    [
        (1, None, {"offload": "optimizer"}, {}, None),
        (1, None, {}, {"optimizer": "adamw-bf16"}, None),
        (16, "zero1", {"offload": "optimizer"}, {}, None),
        (16, "none", {"offload": "optimizer"}, {}, "zero1"),
        (16, "none", {}, {"optimizer": "adamw-bf16"}, "zero1"),
    ],
)
def test_states_of_another_kind_are_those_of_the_distributed_optimizer(
    devices, sharding, plan, job, instead
):
    """Megatron-LM core_v0.19.0, core/optimizer/optimizer_config.py: --use-precision-aware-optimizer
    is only supported with the distributed optimizer, and training/arguments.py wants it for
    --optimizer-cpu-offload."""
    pins = dict(tp=1, pp=1) | plan | ({"sharding": sharding} if sharding else {})
    data = spec(model=SMALL, devices=devices, plan=pins, job=dict(global_batch=16) | job)
    a = assess(design(data, name="states"))
    files = kits(a, "megatron")
    lines = files["megatron.args"].splitlines()
    assert {"--use-precision-aware-optimizer", "--use-distributed-optimizer"} <= set(lines)
    assert unexpressed(files).get("sharding") == instead
    if "offload" in plan:
        said = kits(a, "megatron-bridge")["bridge.overrides"].splitlines()
        assert "optimizer.use_precision_aware_optimizer=true" in said
        assert "optimizer.use_distributed_optimizer=true" in said


@pytest.mark.parametrize("mlp", ["gelu", "squared-relu", "relu"])
def test_maxtext_has_no_experts_of_two_matrices(mlp):
    """MaxText 0.2.5, layers/moe.py: RoutedMoE makes wi_0, wi_1 and wo whatever mlp_activations
    are; with two thirds of the width they have the parameters of two (Shazeer 2020)."""
    data = spec(model=MOE | {"mlp": mlp}, plan=dict(tp=1, pp=1, ep=8, etp=1, sharding="zero3"))
    a = assess(design(data, name="two"))
    files = kits(a, "maxtext")
    assert "model" in unexpressed(files)
    given = dict(re.findall(r"^(\w+): (.*)$", files["maxtext.yml"], re.M))
    hidden, layers, experts = (
        int(given[k]) for k in ("base_emb_dim", "base_num_decoder_layers", "num_experts")
    )
    built = 3 * hidden * int(given["base_moe_mlp_dim"]) * layers * experts
    asked = 2 * hidden * MOE["expert_ffn_hidden"] * layers * experts
    assert given["mlp_activations"] == '["silu", "linear"]'
    assert built == pytest.approx(asked, rel=0.01)
