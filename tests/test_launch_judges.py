"""Each framework's own parser on every emitted file of a corpus that covers every axis: accepted, read back as the same plan, and broken files refused.

The parsers live in virtual environments of their own (`make test-launch` makes them); without them these tests are left out.
"""
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "launch"
sys.path.insert(0, str(HERE))
import slurm  # noqa: E402
from corpus import PLANS, assessed, emitted, replicas  # noqa: E402
from scantling.launch import FRAMEWORKS, write  # noqa: E402

VENVS = Path(os.environ.get("LAUNCH_VENVS", Path.home() / ".cache" / "scantling"))
JUDGES, MAXTEXT = VENVS / "judges" / "bin" / "python", VENVS / "maxtext" / "bin" / "python"
WANTED = bool(os.environ.get("LAUNCH_JUDGES"))
pytestmark = [pytest.mark.launch, pytest.mark.slow, pytest.mark.skipif(not WANTED, reason="make test-launch runs the frameworks' own parsers")]
SCRIPT = {"megatron": "megatron", "megatron-bridge": "bridge", "torchtitan": "torchtitan", "fsdp": "torch", "ddp": "torch", "deepspeed": "deepspeed", "accelerate": "accelerate",
          "maxtext": "maxtext"}
READ_BACK = ("tp", "pp", "vpp", "cp", "ep", "etp", "dp", "sp", "sharding", "micro_batch", "grad_accum", "recompute", "precision", "cp_type", "offload", "global_batch", "seq_len",
             "save_steps", "layers", "hidden", "experts", "params", "shard_group", "layers_by_stage", "recompute_layers")


def judged(to, kits):
    python = MAXTEXT if to == "maxtext" else JUDGES
    if not python.exists():
        pytest.fail(f"no {python}: make test-launch installs it")
    p = subprocess.run([python, str(HERE / f"judge_{SCRIPT.get(to, to)}.py"), *map(str, kits)], capture_output=True, text=True, timeout=1500, cwd=kits[0].parent)
    rows = [json.loads(line) for line in p.stdout.splitlines() if line.startswith('{"kit"')]
    assert len(rows) == len(kits), p.stderr[-2000:]
    return {Path(r["kit"]).name: r for r in rows}


@pytest.fixture(scope="module")
def corpus():
    return assessed()


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
    spec["environment"] = [v for v in spec["environment"] if v["name"] != "CUDA_DEVICE_MAX_CONNECTIONS"]
    (kit / "plan.json").write_text(json.dumps(spec))


BROKEN = {      # framework: [(plan, what is broken)]
    "megatron": [("dense-tp", edit("megatron.args", (r"^--swiglu$", "--swiglue"))), ("dense-tp", edit("megatron.args", (r"-model-parallel-size 4", "-model-parallel-size 3"))),
                 ("dense-tp", edit("megatron.args", (r"--global-batch-size 256", "--global-batch-size 250"))), ("dense-pp", edit("megatron.args", (r"--num-layers 32", "--num-layers 30"))),
                 ("dense-tp", environment_lost), ("moe", edit("megatron.args", (r"--num-experts 16", "--num-experts 12"))),
                 ("uneven-pp", edit("megatron.args", (r"Et", "Ett"))), ("full", edit("megatron.args", (r"--recompute-granularity full", "--recompute-granularity selective"))),
                 ("dense-tp", edit("megatron.args", (r"^--use-persistent-ckpt-worker\n", "")))],
    "megatron-bridge": [("dense-tp", edit("bridge.overrides", (r"model.seq_length", "model.seq_lenght"))), ("dense-tp", edit("bridge.overrides", (r"global_batch_size=256", "global_batch_size=250"))),
                        ("dense-pp", edit("bridge.overrides", (r"model.num_layers=32", "model.num_layers=30"))), ("dense-tp", edit("bridge.overrides", (r"tensor_model_parallel_size=4", "tensor_model_parallel_size=3"))),
                        ("moe", edit("bridge.overrides", (r"moe_router_topk=2", "moe_router_topk=two")))],
    "torchtitan": [("zero3", edit("torchtitan_config.py", (r"tensor_parallel_degree", "tensor_parallel_size"))), ("zero3", edit("torchtitan_config.py", (r"global_batch_size=\d+", "global_batch_size=250"))),
                   ("zero3", edit("torchtitan_config.py", (r"data_parallel_shard_degree=\d+", "data_parallel_shard_degree=60"))),
                   ("cp-zero3", edit("torchtitan_config.py", (r"seq_len=\d+", "seq_len=16385"))), ("zero3", edit("torchtitan_config.py", (r'async_mode="async"', 'async_mode="often"')))],
    "fsdp": [("zero3", edit("train_fsdp.py", (r"param_dtype=", "param_type="))), ("zero3", edit("train_fsdp.py", (r"'dp': \d+", "'dp': 60"))), ("zero3", edit("train_fsdp.py", (r"'hidden': \d+", "'hidden': 4097"))),
             ("zero3", edit("launch.sh", (r"--max-restarts=\d+", "--max-restarts=often"))), ("hsdp", edit("train_fsdp.py", (r"'shard_group': \d+", "'shard_group': 24")))],
    "ddp": [("zero3", edit("train_ddp.py", (r"'dp': \d+", "'dp': 60"))), ("zero3", edit("launch.sh", (r"--nnodes=", "--nodez="))), ("zero3", edit("train_ddp.py", (r"'grad_accum': \d+", "'grad_accum': 999")))],
    "deepspeed": [("zero3", edit("ds_config.json", (r'"stage": 3', '"stage": 4'))), ("zero3", edit("ds_config.json", (r'"train_batch_size": \d+', '"train_batch_size": 250'))),
                  ("zero3", edit("ds_config.json", (r'"gradient_clipping"', '"gradient_clippping"'))), ("zero3", edit("ds_config.json", (r'"overlap_comm"', '"overlap_com"'))),
                  ("zero3", edit("ds_config.json", (r'"bf16": \{', '"fp16": {"enabled": true}, "bf16": {')))],
    "accelerate": [("zero3", edit("accelerate.yaml", (r"^mixed_precision: bf16", "mixed_precission: bf16"))), ("zero3", edit("accelerate.yaml", (r"dp_shard_size: \d+", "dp_shard_size: 60"))),
                   ("zero3", edit("accelerate.yaml", (r"TRANSFORMER_BASED_WRAP", "LAYER_WRAP"))), ("zero3", edit("accelerate.yaml", (r"fsdp_offload_params", "fsdp_ofload_params"))),
                   ("zero3", edit("accelerate.yaml", (r"mixed_precision: bf16", "mixed_precision: bf8")))],
    "maxtext": [("zero3", edit("maxtext.yml", (r"^ici_fsdp_parallelism", "ici_fsdb_parallelism"))), ("zero3", edit("maxtext.yml", (r"ici_fsdp_parallelism: \d+", "ici_fsdp_parallelism: 60"))),
                ("zero3", edit("maxtext.yml", (r'remat_policy: "\w+"', 'remat_policy: "most"'))), ("dense-pp", edit("maxtext.yml", (r"base_num_decoder_layers: 32", "base_num_decoder_layers: 30"))),
                ("zero3", edit("maxtext.yml", (r"max_target_length: \d+", 'max_target_length: "long"')))],
}


@pytest.mark.parametrize("to", FRAMEWORKS)
def test_its_own_parser(to, corpus, replicated, tmp_path):
    found, refused = emitted(replicated if to == "ddp" else corpus, to)
    for name, files in found.items():
        write(files, tmp_path / name)
    broken = []
    for i, (name, breaks) in enumerate(BROKEN[to]):
        kit = tmp_path / f"broken-{i}"
        shutil.copytree(tmp_path / name, kit)
        breaks(kit)
        broken.append(kit.name)
    rows = judged(to, [tmp_path / n for n in [*found, *broken]])
    assert len(found) >= 30, refused
    assert {n: rows[n].get("error") for n in found if not rows[n]["ok"]} == {}
    assert [n for n in broken if rows[n]["ok"]] == []
    different = {}
    for name in found:
        spec = json.loads((tmp_path / name / "plan.json").read_text())
        soft = {g["field"] for g in spec["not_expressed"]}
        want = spec["plan"] | {k: spec[k] for k in ("global_batch", "seq_len", "precision", "layers_by_stage", "params")}
        want |= {"save_steps": spec["checkpoint"]["every_steps"], "layers": spec["shape"]["layers"], "hidden": spec["shape"]["hidden"], "experts": spec["shape"]["experts"]}
        got = rows[name]["plan"]
        without = {"etp"} if not want["experts"] else set()
        without |= {"cp_type"} if want["cp"] == 1 else set()
        without |= {"shard_group"} if want["sharding"] != "hsdp" else set()
        without |= {"params"} if "model" in soft or any(f.startswith("model.") for f in soft) or spec["shape"]["tied_embeddings"] else set()
        without |= {"recompute_layers"} if to != "fsdp" else set()
        wrong = {k: (got[k], want[k]) for k in READ_BACK if k in got and k not in without and got[k] != want[k]}
        if wrong:
            different[name] = wrong
    assert different == {}


def test_kubernetes_schemas(corpus, tmp_path):
    kits = []
    for to in ("megatron", "fsdp", "maxtext"):
        for name, files in emitted({k: corpus[k] for k in list(PLANS)[::4]}, to, "kubernetes")[0].items():
            write(files, tmp_path / f"{to}-{name}")
            kits.append(tmp_path / f"{to}-{name}")
    broken = []
    for i, (pattern, new) in enumerate(((r"failurePolicy", "failurePolice"), (r"completionMode: Indexed", "completionMode: Index"), (r"parallelism: \d+", 'parallelism: "many"'),
                                        (r"mountPath: /kit", "mountpath: /kit"))):
        shutil.copytree(kits[0], tmp_path / f"broken-{i}")
        edit("jobset.yaml", (pattern, new))(tmp_path / f"broken-{i}")
        broken.append(tmp_path / f"broken-{i}")
    rows = judged("kubernetes", [*kits, *broken])
    assert {k.name: rows[k.name].get("error") for k in kits if not rows[k.name]["ok"]} == {}
    assert [k.name for k in broken if rows[k.name]["ok"]] == []
    for k in kits:
        spec = json.loads((k / "plan.json").read_text())
        assert rows[k.name]["plan"]["nodes"] == spec["nodes"]
        assert rows[k.name]["plan"]["per_node"] == spec["devices_per_node"]


@pytest.mark.skipif(not slurm.there(), reason="no slurmctld, munged and sbatch, or not root")
def test_a_real_slurm_takes_the_job(corpus, tmp_path):
    with slurm.controller(tmp_path / "slurm", nodes=16) as environment:
        def asked(file):
            return subprocess.run(["sbatch", "--test-only", str(file)], env=environment, capture_output=True, text=True, timeout=60, cwd=file.parent)

        for name in ("searched", "zero3", "uneven-pp", "moe", "cp-gather"):
            kit = tmp_path / name
            write(emitted({name: corpus[name]}, "megatron", "slurm")[0][name], kit)
            p = asked(kit / "job.sbatch")
            assert p.returncode == 0, p.stderr
            assert f"using {json.loads((kit / 'plan.json').read_text())['nodes'] * 128} processors" in p.stderr or "to start at" in p.stderr
        for pattern, new in ((r"--nodes=\d+", "--nodes=17"), (r"--gpus-per-node=\d+", "--gpus-per-node=9"), (r"--time=\S+", "--time=30-00:00:00"), (r"--requeue", "--requeues"),
                             (r"--signal=\S+", "--signal=B:NOPE@x")):
            text = re.sub(pattern, new, (tmp_path / "zero3" / "job.sbatch").read_text(), count=1)
            (tmp_path / "zero3" / "wrong.sbatch").write_text(text)
            assert asked(tmp_path / "zero3" / "wrong.sbatch").returncode != 0, new
