"""Each framework's own parser on every emitted file of a corpus that covers every axis: accepted,
read back as the same plan, and broken files refused.

The parsers live in virtual environments of their own (`make test-launch` makes them); without them
these tests are left out.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import slurm  # noqa: E402
from corpus import DENSE, MLA, MOE, PLANS, assessed, at_random, emitted, replicas, spec  # noqa: E402
from scantling import Design, assess  # noqa: E402
from scantling_kits import FRAMEWORKS, framework, kits, write  # noqa: E402
from scantling_kits.expressible import express  # noqa: E402
from scantling_kits.pages import kit  # noqa: E402

VENVS = Path(os.environ.get("LAUNCH_VENVS", Path.home() / ".cache" / "scantling"))
JUDGES, MAXTEXT = VENVS / "judges" / "bin" / "python", VENVS / "maxtext" / "bin" / "python"
WANTED = bool(os.environ.get("LAUNCH_JUDGES"))
pytestmark = [
    pytest.mark.launch,
    pytest.mark.slow,
    pytest.mark.skipif(not WANTED, reason="make test-launch runs the frameworks' own parsers"),
]
SCRIPT = {
    "megatron": "megatron",
    "megatron-bridge": "bridge",
    "torchtitan": "torchtitan",
    "fsdp": "torch",
    "ddp": "torch",
    "deepspeed": "deepspeed",
    "accelerate": "accelerate",
    "maxtext": "maxtext",
}
READ_BACK = (
    "tp",
    "pp",
    "vpp",
    "cp",
    "ep",
    "etp",
    "dp",
    "sp",
    "sharding",
    "micro_batch",
    "grad_accum",
    "recompute",
    "precision",
    "cp_type",
    "offload",
    "global_batch",
    "seq_len",
    "save_steps",
    "layers",
    "hidden",
    "experts",
    "params",
    "shard_group",
    "layers_by_stage",
    "recompute_layers",
)


def judged(to, kits):
    python = MAXTEXT if to == "maxtext" else JUDGES
    if not python.exists():
        pytest.fail(f"no {python}: make test-launch installs it")
    p = subprocess.run(
        [python, str(HERE / f"judge_{SCRIPT.get(to, to)}.py"), *map(str, kits)],
        capture_output=True,
        text=True,
        timeout=3600,
        cwd=kits[0].parent,
    )
    rows = [json.loads(line) for line in p.stdout.splitlines() if line.startswith('{"kit"')]
    assert len(rows) == len(kits), p.stderr[-2000:]
    return {Path(r["kit"]).name: r for r in rows}


@pytest.fixture(scope="module")
def corpus():
    first, last = map(int, os.environ.get("LAUNCH_RANDOM", "0-0").split("-"))
    return assessed() | at_random(first, last)


@pytest.fixture(scope="module")
def replicated():
    return assessed(replicas())


def edit(file, *changes):
    def apply(kit):
        text = (kit / file).read_text()
        for pattern, new in changes:
            text, n = re.subn(pattern, lambda m, new=new: new, text, count=1, flags=re.M)
            assert n, (file, pattern)
        (kit / file).write_text(text)

    return apply


def environment_lost(kit):
    spec = json.loads((kit / "plan.json").read_text())
    spec["environment"] = [
        v for v in spec["environment"] if v["name"] != "CUDA_DEVICE_MAX_CONNECTIONS"
    ]
    (kit / "plan.json").write_text(json.dumps(spec))


def swap(file, plan, *pairs):
    """One broken kit a pair (what is in the file, what stands there instead)."""
    return [(plan, edit(file, pair)) for pair in pairs]


MARGS, BRIDGE, TITAN, FSDP, DS, ACC, MAX = (
    "megatron.args",
    "bridge.overrides",
    "torchtitan_config.py",
    "train_fsdp.py",
    "ds_config.json",
    "accelerate.yaml",
    "maxtext.yml",
)
BROKEN = {  # framework: [(plan, what is broken)]
    "megatron": [
        *swap(
            MARGS,
            "dense-tp",
            (r"^--swiglu$", "--swiglue"),
            (r"-model-parallel-size 4", "-model-parallel-size 3"),
            (r"--global-batch-size 256", "--global-batch-size 250"),
            (r"^--use-persistent-ckpt-worker\n", ""),
            (r"--lr-decay-style cosine", "--lr-decay-style sine"),
        ),
        ("dense-pp", edit(MARGS, (r"--num-layers 32", "--num-layers 30"))),
        ("dense-tp", environment_lost),
        ("moe", edit(MARGS, (r"--num-experts 16", "--num-experts 12"))),
        ("uneven-pp", edit(MARGS, (r"Et", "Ett"))),
        (
            "full",
            edit(MARGS, (r"--recompute-granularity full", "--recompute-granularity selective")),
        ),
        ("cp-ring", edit(MARGS, (r"--seq-length 32768", "--seq-length 32770"))),
        *swap(
            MARGS,
            "hybrid",
            (r"hybrid-layer-pattern '", "hybrid-layer-pattern 'X"),
            (r"\|", "||M|"),
            (r"mamba-num-heads", "mamba-number-heads"),
        ),
        ("moe-beside-interleaved", edit(MARGS, (r"^--num-virtual-stages.*\n", ""))),
        ("moe-beside", edit(MARGS, (r"modules attn moe_router", "modules attn mlp"))),
        ("moe-captured", edit(MARGS, (r"^--use-transformer-engine-op-fuser\n", ""))),
        ("dense-captured", edit(MARGS, (r"^--no-check-for-nan-in-loss-and-grad\n", ""))),
        ("linear", edit(MARGS, (r"linear-num-value-heads 32", "linear-num-value-heads 31"))),
        *swap(
            MARGS,
            "near-copies",
            (r"^--replication-jump 8\n", ""),
            (r"-ckpt-type local", "-ckpt-type nearby"),
        ),
        *swap(
            MARGS,
            "sites",
            (r"^--use-tp-pp-dp-mapping\n", ""),
            (r"^--num-distributed-optimizer-instances 2\n", ""),
        ),
    ],
    "megatron-bridge": [
        *swap(
            BRIDGE,
            "dense-tp",
            (r"model.seq_length", "model.seq_lenght"),
            (r"global_batch_size=256", "global_batch_size=250"),
            (r"tensor_model_parallel_size=4", "tensor_model_parallel_size=3"),
            (r"mixed_precision='bf16_mixed'", "mixed_precision='bf17_mixed'"),
        ),
        ("dense-pp", edit(BRIDGE, (r"model.num_layers=32", "model.num_layers=30"))),
        ("hybrid", edit(BRIDGE, (r"hybrid_layer_pattern='", "hybrid_layer_pattern='X"))),
        ("full", edit(BRIDGE, (r"recompute_granularity='full'", "recompute_granularity='fully'"))),
        ("dense-tp", edit(BRIDGE, (r"^rng.seed", "rng.seeed"))),
        (
            "moe-beside-interleaved",
            edit(BRIDGE, (r"^model.virtual_pipeline_model_parallel_size=2\n", "")),
        ),
        ("moe-captured", edit(BRIDGE, (r"op_fuser=true", "op_fuser=false"))),
        ("dense-captured", edit(BRIDGE, (r"nan_in_loss=false", "nan_in_loss=true"))),
    ],
    "torchtitan": [
        *swap(
            TITAN,
            "zero3",
            (r"tensor_parallel_degree", "tensor_parallel_size"),
            (r"global_batch_size=\d+", "global_batch_size=250"),
            (r"data_parallel_shard_degree=\d+", "data_parallel_shard_degree=60"),
            (r'async_mode="async"', 'async_mode="often"'),
            (r"keep_latest_k=\d+", "keep_latest_k=1"),
        ),
        ("cp-zero3", edit(TITAN, (r"^ +seq_len=\d+", "            seq_len=16385"))),
    ],
    "fsdp": [
        *swap(
            FSDP,
            "zero3",
            (r"param_dtype=", "param_type="),
            (r"'dp': \d+", "'dp': 60"),
            (r"'heads': \d+", "'heds': 32"),
            (r"reshard_after_forward=again", "reshard_after_forward=3"),
        ),
        ("zero3", edit("launch.sh", (r"--max-restarts=\d+", "--max-restarts=often"))),
        ("hsdp", edit(FSDP, (r"'shards': \d+", "'shards': 24"))),
    ],
    "ddp": [
        *swap(
            "train_ddp.py",
            "zero3",
            (r"'dp': \d+", "'dp': 60"),
            (r"'grad_accum': \d+", "'grad_accum': 999"),
            (r"gradient_as_bucket_view", "gradients_as_bucket_view"),
            (r"'mlp': 'swiglu', ", ""),
        ),
        ("zero3", edit("launch.sh", (r"--nnodes=", "--nodez="))),
    ],
    "deepspeed": [
        *swap(
            DS,
            "zero3",
            (r'"stage": 3', '"stage": 4'),
            (r'"train_batch_size": \d+', '"train_batch_size": 250'),
            (r'"gradient_clipping"', '"gradient_clippping"'),
            (r'"overlap_comm"', '"overlap_com"'),
            (r'"bf16": \{', '"fp16": {"enabled": true}, "bf16": {'),
        )
    ],
    "accelerate": [
        ("zero3", edit("launch.sh", (r"--rdzv_backend c10d ", ""))),
        (
            "zero3",
            edit("launch.sh", (r'--main_process_ip "\$MASTER_ADDR"', "--main_process_ip node7")),
        ),
        *swap(
            ACC,
            "zero3",
            (r"^mixed_precision: bf16", "mixed_precission: bf16"),
            (r"dp_shard_size: \d+", "dp_shard_size: 60"),
            (r"TRANSFORMER_BASED_WRAP", "LAYER_WRAP"),
            (r"fsdp_offload_params", "fsdp_ofload_params"),
            (r"mixed_precision: bf16", "mixed_precision: bf8"),
        ),
    ],
    "maxtext": [
        *swap(
            MAX,
            "zero3",
            (r"^ici_fsdp_parallelism", "ici_fsdb_parallelism"),
            (r"ici_fsdp_parallelism: \d+", "ici_fsdp_parallelism: 60"),
            (r'remat_policy: "\w+"', 'remat_policy: "most"'),
            (r"max_target_length: \d+", 'max_target_length: "long"'),
        ),
        ("dense-pp", edit(MAX, (r"base_num_decoder_layers: 32", "base_num_decoder_layers: 30"))),
    ],
}


def result(what, **row):
    """A line for the table of results, where somebody collects one; without a row: begun, and
    failed unless another line follows."""
    if os.environ.get("LAUNCH_RESULTS"):
        with open(os.environ["LAUNCH_RESULTS"], "a") as f:
            f.write(
                json.dumps(dict(what=what, date=datetime.date.today().isoformat(), **row)) + "\n"
            )


@pytest.mark.parametrize("to", FRAMEWORKS)
def test_its_own_parser(to, corpus, replicated, tmp_path):
    result(to)
    found, refused = emitted(replicated if to == "ddp" else corpus, to)
    for name, files in found.items():
        write(files, tmp_path / name)
    broken = []
    for i, (name, breaks) in enumerate(BROKEN[to]):
        kit = tmp_path / f"broken-{i}"
        shutil.copytree(tmp_path / name, kit)
        breaks(kit)
        broken.append(kit.name)
    begin = time.time()
    rows = judged(to, [tmp_path / n for n in [*found, *broken]])
    spent = time.time() - begin
    assert len(found) >= 30, refused
    assert {n: rows[n].get("error") for n in found if not rows[n]["ok"]} == {}
    assert [n for n in broken if rows[n]["ok"]] == []
    different = {}
    for name in found:
        spec = json.loads((tmp_path / name / "plan.json").read_text())
        soft = {g["field"] for g in spec["not_expressed"]}
        want = spec["plan"] | {
            k: spec[k]
            for k in ("global_batch", "seq_len", "precision", "layers_by_stage", "params")
        }
        want |= {
            "save_steps": spec["checkpoint"]["every_steps"],
            "layers": spec["shape"]["layers"],
            "hidden": spec["shape"]["hidden"],
            "experts": spec["shape"]["experts"],
        }
        got = rows[name]["plan"]
        if spec["sync"] == "synchronous" and got["sharding"] == "hsdp":  # shared inside a site
            assert got["shard_group"] == spec["train"]["shards"] * want["cp"]
            assert got["dp"] == want["dp"]
            want |= {"sharding": "hsdp", "shard_group": got["shard_group"]}
        without = {"etp"} if not want["experts"] else set()
        without |= {"cp_type"} if want["cp"] == 1 else set()
        without |= {"shard_group"} if want["sharding"] != "hsdp" else set()
        without |= {"sharding"} if want["dp"] * want["cp"] == 1 else set()  # nothing to share
        without |= (
            {"params"}
            if "model" in soft
            or any(f.startswith("model.") for f in soft)
            or spec["shape"]["tied_embeddings"]
            or spec["shape"]["mtp_layers"]
            else set()
        )  # further tokens' modules are counted apart
        without |= {"params"} if got["params"] is None else set()
        without |= (
            {"recompute_layers"}
            if want["recompute"] != "full" or "recompute_layers" in soft
            else set()
        )
        without |= {
            g["field"]
            for g in spec["not_expressed"]
            if g["field"] in READ_BACK and spec["plan"].get(g["field"]) != g["instead"]
        }  # said in the kit: something else stands there
        assert set(READ_BACK) <= set(got), "a field of the plan is not read back"
        wrong = {
            k: (got[k], want[k])
            for k in READ_BACK
            if k in got and k not in without and got[k] != want[k]
        }
        if wrong:
            different[name] = wrong
    assert different == {}
    result(
        to,
        accepted=len(found),
        refused=len(broken),
        fields=len(READ_BACK),
        inexpressible=len(refused),
        seconds=round(spent),
    )


NEXT = {  # plans whose names and counts torchtitan's main changed
    "dense-pp": spec(model=DENSE, plan=dict(tp=2, pp=2, sharding="zero3"), stack="torchtitan"),
    "full": spec(
        model=DENSE, plan=dict(tp=1, pp=1, sharding="zero3", recompute="full"), stack="torchtitan"
    ),
    "experts": spec(model=MOE, plan=dict(tp=1, pp=1, ep=8, sharding="zero3"), stack="torchtitan"),
    "latent": spec(model=MLA, plan=dict(tp=1, pp=1, ep=8, sharding="zero3"), stack="torchtitan"),
}


@pytest.mark.skipif(
    "TORCHTITAN" not in os.environ,
    reason="TORCHTITAN names no checkout of main, and beside it what that imports (grain)",
)
def test_torchtitan_s_main_reads_the_kits_of_its_next_release(tmp_path, monkeypatch):
    """torchtitan at b5bcd76, 21 August 2026: batches in tokens, other modules and fields."""
    for name, data in NEXT.items():
        assessment = assess(Design.from_data(data | {"name": name}))
        launch = express(assessment, 0, framework("torchtitan"), "torchrun")
        later = replace(launch, framework=replace(launch.framework, version="0.4.0"))
        write(kit(later), tmp_path / name)
    monkeypatch.setenv("PYTHONPATH", os.environ["TORCHTITAN"])
    rows = judged("torchtitan", [tmp_path / name for name in NEXT])
    assert {name: row.get("error") for name, row in rows.items() if not row["ok"]} == {}
    for name, row in rows.items():
        written = json.loads((tmp_path / name / "plan.json").read_text())
        want = written["plan"] | {k: written[k] for k in ("global_batch", "seq_len", "params")}
        fields = ("tp", "pp", "vpp", "ep", "dp", "sp", "micro_batch", "grad_accum", "recompute")
        for field in (*fields, "global_batch", "seq_len", "params"):
            assert row["plan"][field] == want[field], (name, field)


TORCHRUN = """
from torch.distributed.run import get_args_parser
print(*(name for one in get_args_parser()._actions for name in one.option_strings))
"""


def test_the_guide_names_what_there_is(corpus):
    """Every option and key that a kit's pages name is one of the framework's own."""
    p = subprocess.run(
        [JUDGES, str(HERE / "judge_megatron.py"), "--options"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    options = set(p.stdout.split())
    assert len(options) > 700, p.stderr[-2000:]
    p = subprocess.run([JUDGES, "-c", TORCHRUN], capture_output=True, text=True, timeout=300)
    launching = set(p.stdout.split())
    assert "--nnodes" in launching, p.stderr[-2000:]
    base = next(MAXTEXT.parent.parent.glob("lib/python*/site-packages/maxtext/configs/base.yml"))
    keys = set(re.findall(r"^(\w+):", base.read_text(), re.M))
    for plan in ("moe", "zero3", "fp8", "dense-pp", "mla"):
        files = emitted({plan: corpus[plan]}, "megatron")[0][plan]
        pages = "\n".join(
            line
            for line in (
                files["README.md"] + files["plan.md"] + files["checkpoint.md"]
            ).splitlines()
            if not re.search("pip install|git clone|torchfrtrace", line)
        )
        others = {"--append-eod", "--capture-range", "--capture-range-end"}
        # of preprocess_data.py and nsys
        named = set(re.findall(r"(?<![\w-])--[a-z][\w-]+", pages))
        assert named - others - launching <= options
        found, refused = emitted({plan: corpus[plan]}, "maxtext")
        if plan == "fp8":  # on GPUs only, and not judged here
            assert "precision fp8" in refused[plan]
            continue
        files = found[plan]
        pages = files["README.md"] + files["plan.md"] + files["checkpoint.md"]
        named = set(re.findall(r"\b([a-z]+(?:_[a-z]+)+)(?==)", pages)) | set(
            re.findall(
                r"\((ici_\w+|remat_policy|per_device_batch_size|optimizer_memory_host_offload|max_num_\w+)",
                pages,
            )
        )
        assert named and named - {"xla_tpu_scoped_vmem_limit_kib"} <= keys | set(
            re.findall(r"xla_\w+", pages)
        ), named - keys


def test_kubernetes_schemas(corpus, tmp_path):
    result("kubernetes")
    kits = []
    for to in ("megatron", "fsdp", "maxtext"):
        for name, files in emitted({k: corpus[k] for k in list(corpus)[::3]}, to, "kubernetes")[
            0
        ].items():
            write(files, tmp_path / f"{to}-{name}")
            kits.append(tmp_path / f"{to}-{name}")
    broken = []
    breaks = [
        ("jobset.yaml", *x)
        for x in (
            (r"failurePolicy", "failurePolice"),
            (r"completionMode: Indexed", "completionMode: Index"),
            (r"parallelism: \d+", 'parallelism: "many"'),
            (r"mountPath: /kit", "mountpath: /kit"),
        )
    ]
    breaks += [
        ("pytorchjob.yaml", *x)
        for x in (
            (r"pytorchReplicaSpecs", "pytorchReplicas"),
            (r"nprocPerNode: .*", "nprocPerNode: [8]"),
            (r"minAvailable: \d+", 'minAvailable: "all"'),
            (r"medium: Memory", "media: Memory"),
            (r"apiVersion: kubeflow.org/v1", "apiVersion: kubeflow.org/v2"),
        )
    ]
    for i, (file, pattern, new) in enumerate(breaks):
        shutil.copytree(kits[0], tmp_path / f"broken-{i}")
        edit(file, (pattern, new))(tmp_path / f"broken-{i}")
        broken.append(tmp_path / f"broken-{i}")
    rows = judged("kubernetes", [*kits, *broken])
    assert {k.name: rows[k.name].get("error") for k in kits if not rows[k.name]["ok"]} == {}
    assert [k.name for k in broken if rows[k.name]["ok"]] == []
    for k in kits:
        spec = json.loads((k / "plan.json").read_text())
        assert rows[k.name]["plan"]["nodes"] == spec["nodes"]
        assert rows[k.name]["plan"]["per_node"] == spec["devices_per_node"]
    result("kubernetes", accepted=len(kits), refused=len(broken))


@pytest.mark.skipif(not slurm.there(), reason="no slurmctld, munged and sbatch, or not root")
def test_a_real_slurm_takes_the_job(corpus, tmp_path):
    result("slurm")
    with slurm.controller(tmp_path / "slurm", nodes=64) as environment:

        def asked(file):
            return subprocess.run(
                ["sbatch", "--test-only", str(file)],
                env=environment,
                capture_output=True,
                text=True,
                timeout=300,
                cwd=file.parent,
            )

        blocks = slurm.version() >= (24, 5)  # --segment
        kits = {}  # several sites have a scheduler each, and no job
        for name in {"zero3", *list(PLANS)[::2]}:
            found = emitted({name: corpus[name]}, "megatron", "slurm")[0]
            kits |= {k: v for k, v in found.items() if blocks or "--segment" not in v["job.sbatch"]}
        assert len(kits) > len(PLANS) / 3
        for name, files in kits.items():
            kit = tmp_path / name
            write(files, kit)
            p = asked(kit / "job.sbatch")
            assert p.returncode == 0, p.stderr
            assert (
                f"using {json.loads((kit / 'plan.json').read_text())['nodes'] * 128} processors"
                in p.stderr
                or "to start at" in p.stderr
            )
        breaks = (
            (r"--nodes=\d+", "--nodes=65"),
            (r"--gpus-per-node=\d+", "--gpus-per-node=9"),
            (r"--time=\S+", "--time=30-00:00:00"),
            (r"--requeue", "--requeues"),
            (r"--signal=\S+", "--signal=B:NOPE@x"),
            (r"--mem=0", "--mem=lots"),
            (r"--ntasks-per-node=1", "--ntasks-per-node=one"),
        )
        for pattern, new in breaks:
            text = re.sub(pattern, new, (tmp_path / "zero3" / "job.sbatch").read_text(), count=1)
            (tmp_path / "zero3" / "wrong.sbatch").write_text(text)
            assert asked(tmp_path / "zero3" / "wrong.sbatch").returncode != 0, new
        result(
            "slurm",
            accepted=len(kits),
            refused=len(breaks),
            version="{}.{:02}".format(*slurm.version()),
        )


@pytest.mark.skipif(
    not slurm.there() or slurm.version() < (24, 5),
    reason="no Slurm with topology/block, or no root",
)
@pytest.mark.parametrize(
    ("spares", "drained", "starts"),
    [
        (0, "", True),
        (0, "n[1-2],n[40-41]", True),  # sixteen trays are left in each rack
        (0, "n[1-3]", True),  # the fifth rack takes the place of the first
        (
            0,
            "n[1-3],n[37-39]",
            False,
        ),  # three racks hold sixteen: no job, whatever is free elsewhere
        (4, "n1", True),  # seventeen of each
        (4, "n[1-2],n[19-20]", False),
    ],
)
def test_a_real_slurm_keeps_each_segment_in_its_rack(tmp_path, spares, drained, starts):
    """256 GB200 on five racks of 18 trays (NVIDIA GB200 NVL72: 18 compute trays of four), by
    Slurm's topology/block: every segment in one rack, in the order in which the script takes it."""
    nvl = dict(accelerator="gb200-nvl72", devices=256, devices_per_node=4, scale_up_domain=64)
    a = assess(Design.from_data(spec(cluster=nvl, reliability={"spares": spares}) | {"name": "x"}))
    (tmp_path / "kit").mkdir()
    write(kits(a, "megatron", "slurm"), tmp_path / "kit")
    text = (tmp_path / "kit" / "job.sbatch").read_text()
    segment = int(re.search(r"--segment=(\d+)", text)[1])
    assert segment == 16 + spares // 4

    def run(*argv):
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout + done.stderr

    with slurm.controller(tmp_path / "slurm", nodes=90, per_node=4, rack=18) as environment:
        if drained:
            code, said = run(
                *("scontrol", "update", f"nodename={drained}", "state=drain", "reason=x")
            )
            assert code == 0, said
        code, said = run("sbatch", "--test-only", str(tmp_path / "kit" / "job.sbatch"))
        found = re.search(r" on nodes (\S+)", said)
        assert bool(code == 0 and found) == starts, said
        if starts:
            _, names = run("scontrol", "show", "hostnames", found[1])
            numbers = [int(n[1:]) - 1 for n in names.split()]
            assert len(numbers) == 64 + spares
            for first in range(0, len(numbers), segment):
                assert len({n // 18 for n in numbers[first : first + segment]}) == 1
            return
        free = tmp_path / "kit" / "free.sbatch"  # without the line it starts, over racks
        free.write_text(re.sub(r"#SBATCH --segment.*\n", "", text))
        assert run("sbatch", "--test-only", str(free))[0] == 0
