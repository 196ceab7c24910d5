"""Kits train a small model on gloo CPU processes through their own launch.sh: memory as counted, a
kill survived to the last bit; torchtitan's own trainer takes its first steps."""

from __future__ import annotations

import json
import math
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scantling import Design, assess
from scantling_kits import kits, smoke_kit, write

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from test_launch_judges import result  # noqa: E402

VENVS = Path(os.environ.get("LAUNCH_VENVS", Path.home() / ".cache" / "scantling"))
PYTHON, JAX = VENVS / "judges" / "bin" / "python", VENVS / "maxtext" / "bin" / "python"
WANTED = bool(os.environ.get("LAUNCH_JUDGES"))
pytestmark = [
    pytest.mark.launch,
    pytest.mark.slow,
    pytest.mark.skipif(not WANTED, reason="make test-launch trains small models"),
]


EXPERTS = dict(moe_layers=4, experts=8, top_k=2, expert_ffn_hidden=64, shared_ffn_hidden=64)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def tiny(ranks, sharding, per_node=None, plan=(), tokens=1e9, **more):
    return Design.from_data(
        {
            "scantling": 1,
            "name": "tiny",
            "model": dict(
                layers=4,
                hidden=128,
                ffn_hidden=352,
                heads=8,
                kv_heads=4,
                head_dim=16,
                vocab=1024,
                mlp="swiglu",
                attention="gqa",
                **more,
            ),
            "cluster": {
                "accelerator": "h100-sxm",
                "devices": ranks,
                "devices_per_node": per_node or ranks,
                "scale_up_domain": per_node or ranks,
            },
            "job": {"tokens": tokens, "seq_len": 64, "global_batch": 16},
            "plan": {
                "sharding": sharding,
                **({"shard_group": 2} if sharding == "hsdp" else {}),
                "tp": 1,
                "pp": 1,
                "cp": 1,
                "micro_batch": 2,
                "recompute": "none",
                **dict(plan),
            },
        }
    )


RUNS = [
    ("fsdp", "zero3", 2),
    ("fsdp", "zero3", 4),
    ("fsdp", "hsdp", 4),
    ("ddp", "none", 2),
    ("ddp", "none", 4),
    ("deepspeed", "zero1", 2),
    ("deepspeed", "zero1", 4),
    ("deepspeed", "zero2", 2),
    ("deepspeed", "zero2", 4),
    ("deepspeed", "zero3", 2),
    ("deepspeed", "zero3", 4),
    ("accelerate", "zero3", 2),
    ("fsdp", "zero3", 2, "experts"),
    ("ddp", "none", 2, "experts"),
    ("deepspeed", "zero1", 2, "experts"),
    ("deepspeed", "zero3", 2, "experts"),
    ("accelerate", "zero3", 2, "experts"),
]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: "-".join(map(str, run)))
def test_trains_is_killed_and_resumes(run, tmp_path):
    """Blocks are compiled, as the kit has it."""
    to, sharding, ranks, *experts = run
    name = " ".join(map(str, ("train", *run)))
    result(name)
    more = EXPERTS if experts else {}
    write(kits(assess(tiny(ranks, sharding, **more)), to), tmp_path / "kit")
    p = subprocess.run(
        [sys.executable, str(HERE / "train.py"), str(PYTHON), str(tmp_path / "kit"), str(ranks)],
        capture_output=True,
        text=True,
        timeout=1800,
        env=os.environ | ({"TRAIN_PATH": str(HERE / "cpu_fsdp")} if to == "accelerate" else {}),
    )
    assert p.returncode == 0, p.stderr[-3000:]
    run = json.loads(p.stdout)
    whole = {step: (loss, norm) for step, loss, norm in run["whole"]}
    assert list(whole) == list(range(1, 21))
    assert run["done"]
    assert 12 <= run["killed_after"] < 20
    last = run["killed_after"] // 5 * 5
    assert run["resumed"][0][0] in (last - 4, last + 1), (
        "resumed from the newest checkpoint, or the one before where that was torn; not "
        "from the start"
    )
    assert run["resumed"][-1][0] == 20
    assert all(whole[step] == (loss, norm) for step, loss, norm in run["resumed"]), (
        "the resumed curve is that of the unbroken run"
    )
    for state in run["state"]:
        found, planned = state["found"], state["planned"]
        assert {k: found[k] for k in ("parameters", "gradients", "master", "moments")} == {
            k: planned[k] for k in ("parameters", "gradients", "master", "moments")
        }
    result(
        name,
        to=to,
        sharding=" ".join([sharding, *experts]),
        ranks=ranks,
        steps=20,
        killed=run["killed_after"],
        resumed=run["resumed"][0][0] - 1,
        bytes=sum(run["state"][0]["found"].values()),
    )


@pytest.mark.parametrize("to", ["fsdp", "accelerate"])
def test_two_nodes_meet_and_train(to, tmp_path):
    """launch.sh once for each of two nodes of one rank, the second node first: they find each other
    and take three steps together."""
    write(kits(assess(tiny(2, "zero3", per_node=1)), to), tmp_path / "kit")
    port = free_port()
    environment = os.environ | {
        "RUN_DIR": str(tmp_path / "run"),
        "MOCK_DATA": "1",
        "STEPS": "3",
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "COMPILE": "0",
        "PATH": f"{PYTHON.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(HERE / "cpu_fsdp") if to == "accelerate" else "",
    }
    nodes = []
    for node in (1, 0):
        with open(tmp_path / f"node-{node}.log", "wb") as log:
            nodes.append(
                subprocess.Popen(
                    ["bash", str(tmp_path / "kit" / "launch.sh")],
                    env=environment | {"NODE_RANK": str(node)},
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )
        time.sleep(2)
    assert [p.wait(timeout=600) for p in nodes] == [0, 0], (tmp_path / "node-0.log").read_text()[
        -3000:
    ]
    assert [
        json.loads(line)["step"]
        for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    ] == [1, 2, 3]


STARTS = {
    "fsdp": dict(sharding="zero3"),
    "tensor": dict(sharding="zero3", tp=2),
    "pipeline": dict(sharding="zero3", pp=2),
    "experts": dict(sharding="zero3", ep=2, etp=1, moe_dispatcher="alltoall"),
}


def letters(folder):
    """A tokenizer with a token for each character."""
    folder.mkdir()
    model = {
        "type": "WordLevel",
        "vocab": {chr(i): i for i in range(256)} | {"<eos>": 256, "<unk>": 257},
        "unk_token": "<unk>",
    }
    split = {"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated", "invert": False}
    parts = dict.fromkeys("truncation padding normalizer post_processor decoder".split())
    file = {"version": "1.0", "added_tokens": [], "pre_tokenizer": split, "model": model} | parts
    (folder / "tokenizer.json").write_text(json.dumps(file))
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<eos>"}')
    return folder


def started(kit, run, python, **environment):
    """What a kit's launch.sh prints on this machine's processor."""
    p = subprocess.run(
        ["bash", str(kit / "launch.sh")],
        capture_output=True,
        text=True,
        timeout=400,
        env=os.environ
        | {
            "RUN_DIR": str(run),
            "MOCK_DATA": "1",
            "OMP_NUM_THREADS": "1",
            "MASTER_PORT": str(free_port()),
            "CUDA_VISIBLE_DEVICES": "",
            "GLOO_SOCKET_IFNAME": "lo",
            "PATH": f"{python.parent}:{os.environ['PATH']}",
        }
        | environment,
    )
    said = re.sub(r"\x1b\[[\d;]*m", "", p.stdout + p.stderr)
    assert p.returncode == 0, said[-3000:]
    return said


@pytest.mark.parametrize("name", STARTS)
def test_torchtitan_starts(name, tmp_path):
    """torchtitan's trainer under the kit's launch.sh on two processes: four steps, the first at the
    loss of weights that know nothing (ln of the vocabulary), and the checkpoint of the last."""
    result(f"start torchtitan {name}")
    more = EXPERTS if name == "experts" else {}
    design = tiny(2, "zero3", plan=STARTS[name], tokens=4 * 16 * 64, **more)
    write(kits(assess(design), "torchtitan"), tmp_path / "kit")
    said = started(
        tmp_path / "kit",
        tmp_path / "run",
        PYTHON,
        TOKENIZER=str(letters(tmp_path / "tokenizer")),
        PYTHONPATH=str(HERE / "cpu_titan"),
    )
    first = float(re.search(r"step:\s+1\b.*?loss:\s+([\d.]+)", said)[1])
    assert abs(first - math.log(1024)) < 0.15
    assert (tmp_path / "run" / "checkpoint" / "step-4" / ".metadata").is_file()
    result(f"start torchtitan {name}", loss=first)


SMOKES = {"fsdp": "zero3", "ddp": "none", "deepspeed": "zero2", "torchtitan": "zero3"}
WHOLE = {"torchtitan": "checkpoint/step-{}/.metadata", "deepspeed": "checkpoints/**/step-{}"}


@pytest.mark.parametrize("to", SMOKES)
def test_a_smoke_test_runs_from_its_readme_alone(to, tmp_path):
    """The two shell blocks of README.md: up to a save, then on from it to the end."""
    data = tiny(8, SMOKES[to]).data() | {"model": "llama-3.1-8b"}
    write(smoke_kit(assess(Design.from_data(data)), to), tmp_path / "kit")
    page = (tmp_path / "kit" / "README.md").read_text()
    first, again = re.findall(r"^```\n(.*?)\n```$", page, flags=re.M | re.S)
    run = tmp_path / "kit" / "run"
    environment = os.environ | {
        "MASTER_PORT": str(free_port()),
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "GLOO_SOCKET_IFNAME": "lo",
        "PATH": f"{PYTHON.parent}:{os.environ['PATH']}",
    }
    if to == "torchtitan":
        environment |= {
            "TOKENIZER": str(letters(tmp_path / "tokenizer")),
            "PYTHONPATH": str(HERE / "cpu_titan"),
        }
    steps = []
    for line in (first, again):
        p = subprocess.run(
            ["bash", "-c", line],
            cwd=tmp_path / "kit",
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
        )
        said = re.sub(r"\x1b\[[\d;]*m", "", p.stdout + p.stderr)
        assert p.returncode == 0, said[-3000:]
        if to == "torchtitan":
            steps.append([int(n) for n in re.findall(r"step:\s+(\d+)\b.*?loss", said)])
        else:
            rows = (run / "metrics.jsonl").read_text().splitlines()
            steps.append([json.loads(row)["step"] for row in rows])
    assert max(steps[0]) == 10 and max(steps[1]) == 20
    after = steps[1] if to == "torchtitan" else steps[1][len(steps[0]) :]
    assert min(after) > 10, "it went on from the save"
    result(f"smoke {to}", to=to)


@pytest.mark.parametrize("name", [*STARTS, "context"])
def test_maxtext_starts(name, tmp_path):
    """MaxText's trainer under the kit's launch.sh on two host devices, with its own words for a
    processor and the attention that runs there: four steps, the loss falls, a checkpoint of the
    last. XLA has no ragged all-to-all for processors: experts are sharded, not spread."""
    result(f"start maxtext {name}")
    apart = {"context": dict(cp=2), "experts": dict(ep=1)}
    plan = dict(sharding="zero3", **apart[name]) if name in apart else STARTS[name]
    more = {k: v for k, v in EXPERTS.items() if "shared" not in k} if name == "experts" else {}
    design = tiny(2, "zero3", plan=plan, tokens=4 * 16 * 64, **more)
    write(kits(assess(design), "maxtext"), tmp_path / "kit")
    file = tmp_path / "kit" / "maxtext.yml"
    here = {"hardware": "cpu", "attention": "dot_product", "skip_jax_distributed_system": "true"}
    kept = [s for s in file.read_text().splitlines() if s.partition(":")[0] not in here]
    file.write_text("\n".join([*kept, *(f"{k}: {v}" for k, v in here.items()), ""]))
    said = started(
        tmp_path / "kit",
        tmp_path / "run",
        JAX,
        JAX_PLATFORMS="cpu",
        DECOUPLE_GCLOUD="TRUE",
        XLA_FLAGS="--xla_force_host_platform_device_count=2",
    )
    losses = [float(x) for x in re.findall(r"completed step: \d.*? loss: ([\d.]+)", said)]
    assert len(losses) == 4
    assert losses == sorted(losses, reverse=True)
    assert next((tmp_path / "run").glob("*/checkpoints/3"))
    result(f"start maxtext {name}", loss=losses[0])


OWN_KERNELS = """
--transformer-impl local
--no-persist-layer-norm
--no-gradient-accumulation-fusion
--no-rope-fusion
--no-masked-softmax-fusion
--no-bias-swiglu-fusion
--no-bias-dropout-fusion
--distributed-backend gloo
--async-strategy mcore
--log-interval 1
"""
OF_BRIDGE = """
model.gradient_accumulation_fusion=false
model.apply_rope_fusion=false
model.masked_softmax_fusion=false
model.bias_activation_fusion=false
model.bias_dropout_fusion=false
dist.distributed_backend=gloo
checkpoint.async_strategy=mcore
logger.log_interval=1
"""
MEGATRON = {
    "fsdp": dict(sharding="zero1"),
    "tensor": dict(sharding="zero1", tp=2),
    "pipeline": dict(sharding="zero1", pp=2),
    "interleaved": dict(sharding="zero1", pp=2, vpp=2),
    "recompute": dict(sharding="zero1", recompute="full"),
    "modules": dict(
        sharding="zero1", recompute="selective", recompute_modules=["core_attn", "mlp_act"]
    ),
    "experts": dict(sharding="zero1", ep=2, etp=1, moe_dispatcher="alltoall"),
    "experts and a further token": dict(sharding="zero1", ep=2, etp=1, moe_dispatcher="alltoall"),
}


@pytest.mark.parametrize("name", MEGATRON)
@pytest.mark.parametrize("to", ["megatron", "megatron-bridge"])
def test_megatron_starts(to, name, tmp_path):
    """Megatron's trainer under the kit's launch.sh on two processes that take CUDA's calls
    (no_cuda.py), with Megatron-Core's own kernels where Transformer Engine's stand: four steps, the
    first at the loss of weights that know nothing, and a checkpoint of the last. Not started again:
    without Transformer Engine Megatron-Core's sharded Adam cannot be read back."""
    if to == "megatron-bridge" and "further" in name:
        pytest.skip("Megatron-Bridge builds the further token of Transformer Engine's layers alone")
    if to == "megatron" and "MEGATRON_LM" not in os.environ:
        pytest.skip("MEGATRON_LM names no checkout: pretrain_gpt.py is not in the wheel")
    result(f"start {to} {name}")
    experts = EXPERTS if "experts" in name else {}
    further = {"mtp_layers": 1} if "further" in name else {}
    design = tiny(2, "zero1", plan=MEGATRON[name], tokens=4 * 16 * 64, **experts, **further)
    write(kits(assess(design), to), tmp_path / "kit")
    file, more, environment = {
        "megatron": ("megatron.args", OWN_KERNELS, "cpu_megatron"),
        "megatron-bridge": ("bridge.overrides", OF_BRIDGE, "cpu_bridge"),
    }[to]
    file = tmp_path / "kit" / file
    kept = [
        line
        for line in file.read_text().splitlines()
        if not re.search("permute|router.fusion", line)
    ]
    file.write_text("\n".join(kept) + more)
    launch = tmp_path / "kit" / "launch.sh"  # gloo does not meet again after a failed start
    launch.write_text(re.sub("--max-restarts=[0-9]+", "--max-restarts=0", launch.read_text()))
    here = dict(PYTHONPATH=str(HERE / environment), TORCHDYNAMO_DISABLE="1")
    line = re.compile(r"iteration +(\d+)/ +\d+ .* lm loss: ([\d.E+-]+)")
    said = started(tmp_path / "kit", tmp_path / "run", PYTHON, **here)
    first = line.findall(said)
    assert [int(step) for step, _ in first] == [1, 2, 3, 4]
    assert abs(float(first[0][1]) - math.log(1024)) < 0.15
    newest = tmp_path / "run" / "checkpoints" / "latest_checkpointed_iteration.txt"
    assert newest.read_text().strip() == "4"
    core = re.search(r"Megatron-Core version \.+ ([\d.]+)", said)
    result(f"start {to} {name}", loss=float(first[0][1]), **({"version": core[1]} if core else {}))


def test_weights_go_out_and_in(tmp_path):
    """A trained checkpoint and weights of three families, through handover.py: the Hugging Face
    class gives the same logits, and INIT the same model back."""
    result("train weights")
    write(kits(assess(tiny(2, "zero3")), "fsdp"), tmp_path / "kit")
    p = subprocess.run(
        [str(PYTHON), str(HERE / "judge_handover.py"), str(tmp_path / "kit")],
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
    )
    assert p.returncode == 0, p.stderr[-3000:]
    found = json.loads(p.stdout.splitlines()[-1])
    assert set(found) == {"trained Llama", "Llama", "Llama stretched", "Qwen3", "Qwen2", "Mixtral"}
    for name, row in found.items():
        assert row["logits"] < 1e-4, name  # fp32, weights rounded alike
        assert row["back"] == 0.0, name
    result("train weights", families=len(found), worst=max(row["logits"] for row in found.values()))
