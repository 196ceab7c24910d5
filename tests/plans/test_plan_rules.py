"""The laws of plans beside the frameworks' own checks, over plans drawn at random: legal here is
legal there, and the other way round but for named differences.

The frameworks live in a virtual environment of their own (`make test-launch` makes it); without it
these tests are left out.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scantling import Design, DesignError
from scantling.plans import space as plans
from scantling.plans.enumerate import enumerate_plans
from scantling.plans.prepare import prepare

JUDGE = Path(__file__).parents[1] / "kits/rules_judge.py"
PYTHON = (
    Path(os.environ.get("LAUNCH_VENVS", Path.home() / ".cache" / "scantling")) / "judges/bin/python"
)
pytestmark = [
    pytest.mark.launch,
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get("LAUNCH_JUDGES"),
        reason="make test-launch runs the frameworks' own checks",
    ),
]
CASES = int(os.environ.get("RULE_CASES", "240"))


def drawn(rng, stack):
    """One plan, about half of them legal."""
    one = lambda *values: values[int(rng.integers(len(values)))]  # noqa: E731
    heads = one(8, 12, 24, 32)
    moe = stack != "deepspeed" and rng.random() < 0.4
    model = dict(
        layers=one(8, 12, 24, 30, 32),
        heads=heads,
        hidden=heads * 128,
        kv_heads=one(*[k for k in (1, 2, 4, 8, heads) if heads % k == 0]),
        ffn_hidden=one(4096, 11008, 14336, 6000),
        experts=one(8, 16, 60) if moe else 0,
        expert_ffn_hidden=one(1408, 2048, 700) if moe else 0,
    )
    plan = dict(
        tp=one(1, 2, 4, 8, 3, 6),
        cp=one(1, 1, 2, 4, 3),
        pp=one(1, 2, 4, 8, 3),
        vpp=one(1, 1, 2, 3),
        dp=one(1, 2, 4, 3, 8),
        ep=one(1, 2, 4, 8) if moe else 1,
        etp=1,
        micro_batch=one(1, 2, 3, 4),
        sharding="zero1",
        group=1,
    )
    if moe and rng.random() < 0.4:
        plan["etp"] = one(1, 2, plan["tp"])
    if stack == "deepspeed":
        plan |= dict(tp=1, cp=1, vpp=1, ep=1, sharding=one("none", "zero1", "zero2", "zero3"))
        plan["pp"] = one(1, 1, 2, 4)
    if stack == "torchtitan":
        plan |= dict(sharding="zero3", vpp=1, etp=1)
        if plan["dp"] > 3 and rng.random() < 0.5:
            plan |= dict(sharding="hsdp", group=2)
    if plan["pp"] == 1:
        plan["vpp"] = 1
    return {
        **model,
        **plan,
        "seq_len": one(4096, 8192, 6144, 1000, 4098),
        "global_batch": one(8, 24, 32, 48, 60, 64, 96),
    }


def legal(x):
    """(legal here, the rule that says no)."""
    model = {k: x[k] for k in ("layers", "hidden", "heads", "kv_heads", "ffn_hidden")} | dict(
        vocab=32000, mlp="swiglu", attention="gqa"
    )
    if x["experts"]:
        model |= dict(
            experts=x["experts"],
            top_k=2,
            expert_ffn_hidden=x["expert_ffn_hidden"],
            moe_layers=x["layers"],
        )
    pins = {k: x[k] for k in ("tp", "cp", "pp", "vpp", "dp", "micro_batch", "sharding")} | {
        "schedule": "interleaved" if x["vpp"] > 1 else "1f1b"
    }
    pins |= {"ep": x["ep"], "etp": x["etp"]} if x["experts"] else {}
    pins |= {"shard_group": x["group"] * x["cp"]} if x["sharding"] == "hsdp" else {}
    pins |= {"sp": True} if x["tp"] > 1 else {}
    devices = x["tp"] * x["cp"] * x["pp"] * x["dp"]
    try:
        r = prepare(
            Design.from_data(
                dict(
                    model=model,
                    cluster=dict(accelerator="h100-sxm", devices=devices),
                    job=dict(seq_len=x["seq_len"], global_batch=x["global_batch"]),
                    plan=pins,
                )
            )
        )
        columns = enumerate_plans(r.model, r.phases[0], r.cluster, plans.DEFAULT, r.phases[0].pins)
        return bool(columns.tp.size), ""
    except DesignError as error:
        return False, str(error)


def answers(stack, cases):
    if not PYTHON.exists():
        pytest.fail(f"no {PYTHON}: make test-launch installs it")
    p = subprocess.run(
        [PYTHON, JUDGE, stack],
        input="\n".join(map(json.dumps, cases)) + "\n",
        capture_output=True,
        text=True,
        timeout=1200,
    )
    rows = [json.loads(line) for line in p.stdout.splitlines() if line.startswith("{")]
    assert len(rows) == len(cases), p.stderr[-2000:]
    return rows


def compared(stack):
    rng = np.random.default_rng(7)
    cases = [drawn(rng, stack) for _ in range(CASES)]
    return [(x, *legal(x), row) for x, row in zip(cases, answers(stack, cases))]


# legal there and not here: words of our rule, and why it stands
STRICTER = {
    "megatron": {
        "with sequence parallelism": (
            "torchtitan asks for tp x 2 cp, Megatron-Core for tp x cp; no length in use "
            "tells them apart"
        )
    },
    "torchtitan": {
        "attention heads": (
            "the heads are cut in the first forward pass, after the configuration was accepted"
        ),
        "key-value heads": "the same",
        "feed-forward": "DTensor pads an uneven split; no published run uses one",
        "expert": "the same",
    },
    "deepspeed": {},
}
# legal here and not there: words of its refusal, and why ours stands
LOOSER = {
    "megatron": {
        "layers should be divisible by": "uneven stages are written as --pipeline-model-parallel-layout",  # noqa: E501
        "should be divisible by config.pipeline": "the same",
        "should be divisible by vp_size": "the same",
    },
    "torchtitan": {},
    "deepspeed": {
        "incompatible with pipeline parallelism": (
            "torchtitan and Megatron-FSDP do combine them; with the stacks deepspeed and "
            "megatron-deepspeed named they are not searched"
        )
    },
}


@pytest.mark.parametrize("stack", ["megatron", "torchtitan", "deepspeed"])
def test_the_laws_are_the_frameworks_own(stack):
    rows = compared(stack)
    both = sum(ours and row["ok"] for _, ours, _, row in rows)
    neither = sum(not ours and not row["ok"] for _, ours, _, row in rows)
    stricter = [
        (why, x)
        for x, ours, why, row in rows
        if row["ok"] and not ours and not any(w in why for w in STRICTER[stack])
    ]
    looser = [
        (row["error"], x)
        for x, ours, _, row in rows
        if ours and not row["ok"] and not any(w in row["error"] for w in LOOSER[stack])
    ]
    print(
        f"{stack}: {len(rows)} plans, {both} legal in both, {neither} in neither, "
        f"{len(rows) - both - neither} differ and are named"
    )
    assert not stricter, f"only {stack} allows: {stricter[:3]}"
    assert not looser, f"only this kit allows: {looser[:3]}"
    assert both > CASES / 10 and neither > CASES / 10
