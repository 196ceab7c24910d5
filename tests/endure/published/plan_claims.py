"""Common claims about large plans put to the model on one public case: 405B parameters on 16,384
H100 in nodes of eight.

Each comes out of the search, none is asserted; `failure_claims` does the same for failures and
checkpoints.
"""

from __future__ import annotations

from failure_claims import Claim, said
from scantling.design.design import Design
from scantling.plans import space as planning
from scantling.plans.prepare import prepare
from scantling.verdict.assess import assess

CASE = {
    "scantling": 1,
    "name": "Llama 3.1 405B on 16,384 H100",
    "model": "llama-3.1-405b",
    "cluster": {"accelerator": "h100-sxm", "devices": 16_384, "scale_out": "rocev2-400"},
    "job": {"tokens": 15.6e12, "seq_len": 8192, "global_batch": 2048, "precision": "bf16"},
}
NEAR = 0.10  # of the best step that still counts as near it
USUAL = 0.12  # the same for the plan that was run
COLLAPSE = 0.75  # of the best MFU and below counts as a collapse


def links(accelerator: str = "h100-sxm", scale_out: str = "ib-ndr") -> Claim:
    """Scale-up over scale-out rate of one device: as it goes round (both directions over one) and
    like for like."""
    r = prepare(
        Design.from_data(
            {**CASE, "cluster": {"accelerator": accelerator, "devices": 16, "scale_out": scale_out}}
        )
    ).cluster
    like, mixed = (
        r.scale_up_bytes_per_s / r.scale_out_bytes_per_s,
        2 * r.scale_up_bytes_per_s / r.scale_out_bytes_per_s,
    )
    return said(
        "links",
        "NVLink is 18 to 20 times as fast as a device's network card",
        17.5 <= mixed <= 20.5,
        (
            f"{2 * r.scale_up_bytes_per_s / 1e9:.0f} GB/s both ways over "
            f"{r.scale_out_bytes_per_s / 1e9:.0f} GB/s one way is {mixed:.0f}; one way over "
            f"one way it is {like:.0f}"
        ),
        {"both_over_one": mixed, "like_for_like": like},
    )


def tensor_across_nodes(groups=(8, 16, 32, 64)) -> Claim:
    """Best MFU under each tp, all else searched, beyond the node of eight too."""
    base = Design.from_data(CASE)
    rows = {}
    for tp in groups:
        a = assess(
            base.change({"plan.tp": tp}), space=planning.WIDE if tp > 16 else planning.DEFAULT
        )
        if a.phases and a.chosen.fits:
            rows[tp] = dict(
                mfu=a.mfu, tp_share=float(a.chosen.step.tp) / float(a.chosen.step.total)
            )
    best, worst = rows[8]["mfu"], rows[max(rows)]["mfu"]
    return said(
        "tp-across-nodes",
        "tensor parallelism across nodes collapses MFU",
        worst < COLLAPSE * best,
        ", ".join(
            (
                f"tp {k}: MFU {v['mfu']:.1%}, {v['tp_share']:.0%} of the step in exposed "
                f"tensor-parallel traffic"
            )
            for k, v in rows.items()
        ),
        {"by_tp": rows},
    )


def sharding_alone(devices=(512, 2048, 16_384)) -> Claim:
    """Fully sharded data parallelism with no tp, pp or cp against the best plan of a 70B model:
    useful FLOP/s over the peak of all devices."""
    rows = {}
    for n in devices:
        base = Design.from_data(
            {**CASE, "model": "llama-3.1-70b", "cluster": {**CASE["cluster"], "devices": n}}
        )
        alone = assess(
            base.change({"plan.tp": 1, "plan.pp": 1, "plan.cp": 1, "plan.sharding": "zero3"})
        )
        best = assess(base)
        rows[n] = {k: a.mfu * a.devices_used / n for k, a in (("alone", alone), ("best", best))} | {
            "used": alone.devices_used
        }
    last = rows[max(rows)]
    return said(
        "fsdp-alone",
        "FSDP scales linearly to 16,000 devices",
        last["alone"] > (1 - NEAR) * rows[min(rows)]["alone"],
        ", ".join(
            (
                f"{n:,}: {v['alone']:.1%} of the peak of all devices ({v['used']:,} used) "
                f"against {v['best']:.1%}"
            )
            for n, v in rows.items()
        )
        + (
            f"; one sequence a device is the end: the global batch of "
            f"{CASE['job']['global_batch']:,} feeds no more"
        ),
        {"by_devices": rows},
    )


def usual_plan() -> Claim:
    """tp 8, pp 16, dp 128 against the best of the whole search, by the trainer that ran it."""
    base = Design.from_data({**CASE, "stack": "meta-4d"})
    own, best = assess(base.change({"plan.tp": 8, "plan.pp": 16, "plan.dp": 128})), assess(base)
    ratio = own.step_s / best.step_s
    p = best.plan
    return said(
        "usual-plan",
        "tp 8, pp 16, dp 128 is near the best for 16,384 H100",
        ratio < 1 + USUAL,
        (
            f"{own.step_s:.2f} s a step against {best.step_s:.2f} s of tp {p['tp']}, cp "
            f"{p['cp']}, pp {p['pp']}, dp {p['dp']}: {ratio - 1:.1%} longer"
        ),
        {
            "ratio": ratio,
            "step_s": own.step_s,
            "best_step_s": best.step_s,
            "best_tp": p["tp"],
            "best_pp": p["pp"],
        },
    )
