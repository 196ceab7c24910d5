"""Five plans that were really run: legal, fitting, and how far from what the search finds with the
software they had."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest
from scantling import Design, assess
from scantling.advise.why import why
from validation.plans import distances, published_and_own

DESIGNS = Path(__file__).parents[2] / "gallery/designs"
# name: (the stack it ran on, the published plan)
RUNS = {
    "llama-3.1-405b-16384-published": (
        "meta-4d",
        dict(tp=8, cp=1, pp=16, dp=128),
    ),  # Llama 3 Herd of Models, table 4
    "case-5-deepseek-v3": (
        "hai-llm",
        dict(tp=1, pp=16, ep=64, dp=128),
    ),  # DeepSeek-V3 report, section 3.2
    "megatron-1t-3072-a100": (
        "megatron-lm",
        dict(tp=8, pp=64, dp=6),
    ),  # Narayanan et al. 2021, table 1
    "mt-nlg-530b-2240-a100": (
        "megatron-deepspeed",
        dict(tp=8, pp=35, dp=8),
    ),  # Smith et al. 2022, section 2.3
    "bloom-176b-384-a100": (
        "megatron-deepspeed",
        dict(tp=4, pp=12, dp=8),
    ),  # Le Scao et al. 2022, section 3.2
}


@lru_cache
def both(name):
    """(published plan, the search's own) on the stack of the run, the search with no less of a
    chance to run out of memory than the published plan takes."""
    return published_and_own(Design.read(DESIGNS / f"{name}.yaml").change({"stack": RUNS[name][0]}))


@pytest.mark.parametrize("name", RUNS)
def test_published_plans_are_legal_and_feasible(name):
    a, _ = both(name)
    assert a.verdict == "feasible" and not a.reasons
    for field, value in RUNS[name][1].items():
        assert a.plan[field] == value
    assert a.memory_bytes["total"] <= a.memory_bytes["capacity"]


def test_four_of_five_are_within_a_tenth_of_the_best():
    over = {name: both(name)[0].step_s / both(name)[1].fastest["step_s"] - 1 for name in RUNS}
    assert min(over.values()) >= -1e-9, over
    assert sum(x <= 0.10 for x in over.values()) >= 4, over


@pytest.mark.slow
def test_no_published_plan_of_the_gallery_is_faster_than_the_search():
    """With its stack and without: "DeepSeek-V3 without a stack: published plan 22.9 s, winner 24.5
    s"; 405B at 131,072 tokens was 7 % faster, by zero2 over micro-batches that was not searched."""
    rows = list(distances(DESIGNS))
    assert len(rows) >= 18
    for row in rows:
        for longer in (row["longer"], row["longer_without_stack"]):
            assert longer is None or longer >= -1e-9, row
    assert any(row["longer_without_stack"] is None for row in rows)  # no plan without its modules


def test_the_search_picks_the_published_plan_of_its_day():
    """With what Megatron-LM and Megatron-DeepSpeed offered then, the plans of Megatron 1T and
    MT-NLG are the search's own."""
    for name in ("megatron-1t-3072-a100", "mt-nlg-530b-2240-a100"):
        _, own = both(name)
        for field, value in RUNS[name][1].items():
            assert own.plan[field] == value, name


@lru_cache
def bloom():
    """BLOOM's plan and the search's own, as full as the estimate lets them be."""
    design = Design.read(DESIGNS / "bloom-176b-384-a100.yaml")
    stack = RUNS["bloom-176b-384-a100"][0]
    return published_and_own(
        design.change({"stack": stack, "constraints.max_oom_probability": 0.5})
    )


def test_what_bloom_left_on_the_table_is_recomputation():
    """BLOOM recomputed every layer; the search keeps the activations at tp 8 and saves the second
    forward, which nothing else that it saves comes near."""
    published, own = bloom()
    assert published.plan["recompute"] == "full" and own.plan["recompute"] == "none"
    saved = {
        part: seconds - own.step_breakdown_s[part]
        for part, seconds in published.step_breakdown_s.items()
    }
    again = published.step_breakdown_s["recompute"]
    assert (
        saved["recompute"] == again
        and 2 * max(v for part, v in saved.items() if part != "recompute") < again
    )
    assert own.step_s < published.step_s <= 1.10 * own.step_s
    # with recomputation kept, the published degrees are within a tenth of the best
    kept = assess(
        published.design.change(
            {f"plan.{k}": None for k in ("tp", "pp", "dp", "cp", "micro_batch", "sp")}
        )
    )
    assert published.step_s <= 1.10 * kept.step_s


def test_the_difference_is_explained_for_each():
    """One line says what the pins cost and where; for BLOOM, that it is recomputation."""
    for name in RUNS:
        published, own = both(name)
        line = next(w["text"] for w in why(published) if w["axis"] == "pins")
        gain = 1 - own.step_s / published.step_s
        if gain < 0.005:
            assert "nothing" in line, name
        else:
            assert f"takes {100 * gain:.1f} % less" in line and "saves" in line, name
    text = next(w["text"] for w in why(bloom()[0]) if w["axis"] == "pins")
    assert text.index("recomputation") < text.index("adds")
