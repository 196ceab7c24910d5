"""Import-only stand-ins for what frameworks import but a machine without accelerators cannot have,
and one judge process for many kits."""

from __future__ import annotations

import abc
import importlib.abc
import importlib.machinery
import io
import json
import os
import subprocess
import sys
import tempfile
import traceback
import types
from contextlib import redirect_stdout


class _Anything(abc.ABCMeta):
    """A class that has every attribute, decorates, calls and combines."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {})

    def __call__(cls, *args, **kwargs):
        if len(args) == 1 and not kwargs and callable(args[0]) and not isinstance(args[0], type):
            return args[0]
        return cls if cls.__mro__[1:] == (object,) else super().__call__(*args, **kwargs)

    def __or__(cls, other):
        return cls

    __ror__ = __or__

    def __getitem__(cls, item):
        return cls


class _Module(types.ModuleType):
    __version__ = "2.12.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {})


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if any(name == n or name.startswith(n + ".") for n in self.names):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module):
        module.__path__ = []


def provide(*names):
    sys.meta_path.append(_Finder(set(names)))


def without_triton():
    """torch looks for triton and finds none; then a stand-in takes its place for everybody else."""
    import torch  # noqa: F401
    import torch._dynamo  # noqa: F401
    import torch._inductor.runtime.triton_compat  # noqa: F401

    provide("triton")


def bridge(core):
    """Megatron-Bridge from the folder `core` without what it imports and a plan does not use: core
    decides that Transformer Engine is not there before its stand-in is."""
    sys.path.insert(0, str(core))
    import megatron.training.arguments  # noqa: F401

    provide(
        "transformer_engine",
        "modelopt",
        "nvidia_resiliency_ext",
        "flash_attn",
        "mamba_ssm",
        "causal_conv1d",
        "fla",
        "emerging_optimizers",
        "megatron.energon",
        "megatron.bridge.diffusion",
        "transformers.modeling_attn_mask_utils",  # gone from 5.24; one model's module asks
    )
    for name in (
        "megatron.bridge",
        "megatron.bridge.recipes",
    ):  # their __init__ imports every model
        package = types.ModuleType(name)
        package.__path__, package.AutoBridge = [f"{core}/{name.replace('.', '/')}"], None
        sys.modules[name] = package


def trainer(kit):
    """What the kit's own trainer takes from plan.json, its model built on the meta device: as
    train_deepspeed.py and train_accelerate.py read it."""
    import torch

    with open(f"{kit}/plan.json") as f:
        spec = json.load(f)
    sys.path.insert(0, str(kit))
    from model import Transformer

    plan = spec["train"]
    with torch.device("meta"):
        model = Transformer(spec["shape"])
    count = sum(p.numel() for p in model.parameters())
    return dict(
        tp=1,
        pp=1,
        vpp=1,
        cp=1,
        ep=1,
        etp=1,
        sp=False,
        cp_type="all-gather",
        offload="none",
        micro_batch=plan["micro_batch"],
        grad_accum=plan["grad_accum"],
        global_batch=plan["global_batch"],
        seq_len=plan["seq_len"],
        save_steps=plan["save_steps"],
        recompute=plan["recompute"],
        recompute_layers=plan["recompute_layers"],
        layers=len(model.blocks),
        layers_by_stage=[len(model.blocks)],
        hidden=spec["shape"]["hidden"],
        experts=spec["shape"]["experts"],
        params=count,
        shard_group=0,
    )


def command(kit, launcher):
    """Words of launch.sh's last command after the launcher's name, as bash expands them on every
    node: [of node 0, of node 1, ...]."""
    with open(f"{kit}/plan.json") as f:
        nodes = json.load(f)["nodes"]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/{launcher}", "w") as f:
            f.write('#!/bin/bash\nprintf "%s\\0" "$@"\n')
        os.chmod(f"{folder}/{launcher}", 0o755)
        for node in sorted({0, nodes - 1}):
            env = dict(
                PATH=f"{folder}:/usr/bin:/bin",
                NODE_RANK=str(node),
                MASTER_ADDR="node0",
                RUN_DIR=f"{folder}/run",
                MOCK_DATA="1",
            )
            out = subprocess.run(
                ["bash", f"{kit}/launch.sh"], env=env, capture_output=True, text=True, check=True
            ).stdout
            words = out[out.index("\n") + 1 :] if node == 0 else out  # after launch.sh's own line
            found.append(words.split("\0")[:-1])
    return found


def judge_all(judge, kits):
    """One child process a kit, since frameworks keep global state; prints one JSON line each: kit,
    ok, error, plan."""
    if "torch" in sys.modules:
        import torch._dynamo  # noqa: F401   a meta device imports it: once here, not once a kit
    for kit in kits:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            out = {"kit": kit, "ok": False}
            try:
                with redirect_stdout(io.StringIO()):
                    out |= {"plan": judge(kit), "ok": True}
            except BaseException as e:  # noqa: BLE001  argparse leaves by SystemExit
                out["error"] = f"{type(e).__name__}: {e}"[:600]
                if os.environ.get("TRACE"):
                    traceback.print_exc()
            with os.fdopen(writer, "w") as f:
                json.dump(out, f, default=str)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as f:
            text = f.read()
        os.waitpid(pid, 0)
        print(text or json.dumps({"kit": kit, "ok": False, "error": "the judge died"}), flush=True)
