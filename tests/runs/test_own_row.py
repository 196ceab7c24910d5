"""A design's own row: its chosen plan written as a row of a run table and predicted gives its
assessment again."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from scantling import Design, assess
from scantling.runs.predict import predict_frame
from scantling.runs.read import read_runs

DESIGNS = Path(__file__).parents[2] / "gallery/designs"


def row_of(a) -> dict:
    """The chosen plan as a row in the format of published runs; nothing measured."""
    m, p, k, phase = a.resolved.model, a.plan, a.resolved.cluster, a.chosen.phase
    row = dict(
        id="own",
        stack=a.resolved.stack or "",
        accelerator=k.accelerator.id,
        precision={"fp8-block": "fp8-current"}.get(phase.precision, phase.precision),
        layers=m.layers,
        hidden=m.hidden,
        heads=m.heads,
        kv_heads=m.kv_heads,
        head_dim=m.head_dim,
        vocab=m.vocab,
        mlp=m.mlp,
        attention=m.attention,
        tied_embeddings=int(m.tied_embeddings),
        seq_len=phase.seq_len,
        n_devices=a.devices_used,
        devices_per_node=k.devices_per_node,
        scale_out=k.scale_out,
        scale_out_gbytes_per_s_per_device=k.scale_out_bytes_per_s / 1e9,
        tp=p["tp"],
        sp=int(p["sp"]),
        pp=p["pp"],
        vpp=p["vpp"],
        cp=p["cp"],
        ep=p["ep"],
        etp=p["etp"],
        dp=p["dp"],
        sharding=p["sharding"],
        micro_batch=p["micro_batch"],
        global_batch_seqs=phase.global_batch,
        grad_accum=p["grad_accum"],
        recompute=p["recompute"],
        offload=p["offload"],
        tuned=int(a.chosen.case.software.tuned),
        eager_tp=float(a.chosen.case.software.eager_tp),
        fused_norm=float(a.chosen.case.software.fused_norm),
        grad_bytes=a.chosen.case.job.grad_bytes,
        logit_bytes=float(a.chosen.case.software.logit_bytes),
        tp_overlap=float(a.chosen.case.software.tp_overlap),
        capacity_factor=float(a.chosen.case.software.capacity_factor),
        other_opts=p["schedule"] if p["schedule"] not in ("1f1b", "interleaved") else "",
    )
    if float(a.chosen.case.software.flash) == 3:
        row["other_opts"] += " flashattention-3"
    if m.is_moe:
        row |= dict(
            moe_experts=m.experts,
            moe_topk=m.top_k,
            moe_ffn_hidden=m.expert_ffn_hidden,
            moe_shared_ffn_hidden=m.shared_ffn_hidden,
            moe_layers=m.moe_layers,
            dense_ffn_hidden_in_moe_model=m.ffn_hidden,
            mtp_layers=m.mtp_layers,
        )
        row["other_opts"] += " deepep"
    else:
        row["ffn_hidden"] = m.ffn_hidden
    return {k: v for k, v in row.items() if v != ""}


@pytest.mark.parametrize(
    "name",
    [
        "llama-3.1-405b-16384-published",
        "llama-3.1-70b-128-h100",
        "bloom-176b-384-a100",
        "megatron-1t-3072-a100",
        "mt-nlg-530b-2240-a100",
        "gpt-3-175b-64-a100",
        "mixtral-8x22b-128-h100",
        "llama-3.1-405b",
        "maxtext-32b-64-tpu-v5p",
        "llama-3.1-8b-8-h100-fsdp",
    ],
)
def test_predict_on_a_designs_own_row_is_its_assessment(name, tmp_path):
    design = Design.read(DESIGNS / f"{name}.yaml")
    a = assess(design)
    if (
        float(a.chosen.case.plan.recompute_share) < 1
    ):  # the rows of run tables have no share of layers
        a = assess(design.change({"plan.recompute": "none"}))
    modules = {
        name: float(value)
        for name, value in vars(a.chosen.case.software).items()
        if name.startswith("selective_")
    }
    pd.DataFrame([row_of(a) | modules]).to_csv(tmp_path / "own.csv", index=False)
    (got,) = predict_frame(read_runs(tmp_path / "own.csv")).to_dict("records")
    assert not got["error"]
    assert got["flops_per_token"] == pytest.approx(a.flops_per_token, rel=1e-9)
    assert got["params"] == pytest.approx(a.params, rel=1e-3)
    assert got["step_time_s"] == pytest.approx(a.step_s, rel=6e-3)
    assert got["mfu"] == pytest.approx(a.mfu, rel=6e-3)
    assert got["hfu"] / got["mfu"] == pytest.approx(a.hfu / a.mfu, rel=1e-9)
    assert got["memory_bytes"] == pytest.approx(a.memory_bytes["total"], rel=6e-3)
    assert got["band_tier"] == a.band_tier
    assert got["oom_probability"] == pytest.approx(a.oom_probability, rel=0.2, abs=0.01)
