"""One learning rate for design, report and kit; none where nobody has published one."""

from __future__ import annotations

import re

import pytest
from scantling import Design, assess
from scantling.advise.batch_size import batch_guide
from scantling.advise.extremes import to_loss
from scantling.catalogue.scaling_laws import learning_rate_advice, loss, tokens_for_loss
from scantling.cli.app import main

TEXT = """
model: llama-3.1-8b
cluster: {accelerator: h100-sxm, devices: 64}
job: {tokens: 1.0e12, seq_len: 8192, global_batch: 256, optimizer: OPTIMIZER}
"""


def design(optimizer="adamw", **changes):
    return Design.from_text(TEXT.replace("OPTIMIZER", optimizer)).change(changes)


def test_the_kit_writes_the_rate_that_the_design_names(tmp_path):
    """ "design says "peak LR 2.7e-04 (DeepSeek), 5.7e-04 (Li)"; the launch kit of the same file
    writes `--lr 8.1e-05`"."""
    d = design()
    said = batch_guide(assess(d))["learning_rate"]
    file = tmp_path / "design.yaml"
    d.write(file)
    out = tmp_path / "kit"
    assert main(["launch", str(file), "--to", "megatron", "-o", str(out)]) == 0
    written = re.search(r"--lr (\S+)", (out / "megatron.args").read_text())[1]
    assert float(written) == said["start"]
    values = [row["value"] for row in said["peak"]]
    assert min(values) <= said["start"] <= max(values)


def test_deepseek_v3_and_llama_3_lie_within_a_factor_of_two():
    """DeepSeek-V3 used 2.2e-4 (arXiv 2412.19437, 4.2); Llama 3 405B 8e-5 (arXiv 2407.21783,
    3.4.1)."""
    v3 = learning_rate_advice(37e9, 14.8e12, "adamw")
    llama = learning_rate_advice(405e9, 15.6e12, "adamw")
    assert 0.5 < v3.start / 2.2e-4 < 2
    assert 0.5 < llama.start / 8e-5 < 2


def test_none_for_a_fine_tune_nor_where_laws_disagree():
    """ "70B, 50 M tokens: "1.2e-03 (DeepSeek-AI 2024), 7.6e-06 (Li)", 160x apart, printed side by
    side as "a start""."""
    tuned = batch_guide(assess(design(**{"job.from_checkpoint": True})))
    assert tuned["learning_rate"]["start"] is None
    assert "checkpoint" in " ".join(tuned["lines"])
    far = learning_rate_advice(70e9, 50e6, "adamw")
    assert far.start is None
    assert "differ" in far.why


@pytest.mark.parametrize(
    ("optimizer", "least", "most"), [("muon", 0.99, 1.01), ("lion", 0.1, 0.34), ("sgd", None, None)]
)
def test_advice_follows_the_optimizer(optimizer, least, most):
    """ "The Adam square-root rule (and "AdamW 0.9/0.95" in the kit) is printed for optimizer
    muon": Moonlight keeps AdamW's rate, Lion asks for 3 to 10 times less."""
    plain = learning_rate_advice(8e9, 1e12, "adamw").start
    other = learning_rate_advice(8e9, 1e12, optimizer).start
    if least is None:
        assert other is None
    else:
        assert least <= other / plain <= most


def test_tokens_to_a_loss_give_that_loss():
    for law in ("besiroglu-2024", "hoffmann-2022-3"):
        tokens = tokens_for_loss(8e9, 2.2, law)
        assert float(loss(8e9, tokens, law)) == pytest.approx(2.2)
    assert tokens_for_loss(8e9, 1.5) == float("inf")
    said = to_loss(assess(design()), 2.2)
    assert said["days_low"] <= said["days_high"]
    for row in said["rows"]:
        a = assess(design(**{"job.tokens": float(f"{row['tokens']:.4g}")}))
        assert row["days"] == pytest.approx(a.days)
