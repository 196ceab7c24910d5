"""The rollout's page, held to what is known of it: closed forms and limits."""

from dataclasses import replace

import numpy as np
import pytest
from scantling_posttrain.constants import constants
from scantling_posttrain.rollout import (
    Drawn,
    Engine,
    decode_step_s,
    experts_read,
    generate,
    median_of,
    survival,
)

K = constants()
ENGINE = Engine(
    weight_bytes=16e9,
    dense_bytes=15e9,
    expert_bytes=0.0,
    experts=0.0,
    top_k=0.0,
    active_flops=16e9,
    kv_bytes=131_072.0,
    layers=32.0,
    moe_layers=0.0,
    vocab=128_256.0,
    devices=1.0,
    inside=1.0,
    hbm_bytes_per_s=3.35e12,
    flops=989e12,
    memory_bytes=50e9,
    running=1024.0,
)
DRAWN = Drawn(
    samples=128.0,
    per_prompt=32.0,
    prompt=130.0,
    response=1060.0,
    longest=4096.0,
    replicas=16.0,
    spread=0.6,
)


def total(engine=ENGINE, drawn=DRAWN, k=K):
    return float(np.ravel(generate(engine, drawn, k).total_s)[0])


def test_lengths_have_the_mean_that_is_asked_for():
    """The mean of a variable that is not negative is the integral of its survival."""
    for mean, longest, spread in ((500, 4096, 0.6), (1000, 2000, 1.2), (3000, 4096, 0.3)):
        m, top, s = (np.array([float(x)]) for x in (mean, longest, spread))
        grid = np.linspace(0, longest, 20_001)[None]
        tail = survival(grid, median_of(m, top, s)[:, None], s[:, None])
        assert np.trapezoid(tail, grid)[0] == pytest.approx(mean, rel=0.02)


def test_one_sample_alone_takes_a_step_a_token():
    one = replace(DRAWN, samples=1.0, per_prompt=1.0, replicas=1.0, spread=0.05, response=1000.0)
    step = float(decode_step_s(ENGINE, np.array(1.0), np.array(630.0), K))
    assert float(np.ravel(generate(ENGINE, one, K).decode_s)[0]) == pytest.approx(
        1000 * step, rel=0.05
    )


def test_weights_are_read_once_whatever_the_batch():
    """Pope et al. 2022, section 2.1: at a small batch a step reads the weights, no more."""
    k = replace(K, engine_step_s=0.0, engine_row_s=0.0)
    least = ENGINE.dense_bytes / (ENGINE.hbm_bytes_per_s * k.decode_hbm)
    few, more = (float(decode_step_s(ENGINE, np.array(b), np.array(1.0), k)) for b in (1.0, 8.0))
    assert few == pytest.approx(least, rel=0.01) and more == pytest.approx(few, rel=0.02)


def test_experts_that_a_batch_visits_are_at_most_all_and_at_least_one_tokens():
    engine = replace(ENGINE, experts=128.0, top_k=8.0)
    assert experts_read(engine, np.array(1.0)) == pytest.approx(8.0)
    assert experts_read(engine, np.array(1e6)) == pytest.approx(128.0)


@pytest.mark.parametrize(
    "field, factor", [("hbm_bytes_per_s", 2.0), ("flops", 2.0), ("memory_bytes", 1.5)]
)
def test_a_better_device_never_takes_longer(field, factor):
    better = replace(ENGINE, **{field: vars(ENGINE)[field] * factor})
    for samples in (16.0, 256.0, 2048.0):
        drawn = replace(DRAWN, samples=samples)
        assert total(better, drawn) <= total(drawn=drawn) * (1 + 1e-9)


def test_twice_the_replicas_help_less_than_twice_because_of_the_tail():
    half = replace(DRAWN, samples=64.0, replicas=32.0)
    assert total() / 2 < total(drawn=half) < total()


def test_samples_that_find_no_room_wait():
    crowded = replace(ENGINE, memory_bytes=20e9)
    made = generate(crowded, DRAWN, K)
    assert np.ravel(made.running)[0] < DRAWN.samples
    assert total(crowded) > total()


def test_longer_answers_and_longer_caps_take_longer():
    assert total(drawn=replace(DRAWN, response=2000.0)) > total()
    assert total(drawn=replace(DRAWN, longest=8192.0)) > total()


def test_one_case_equals_the_same_case_among_many():
    many = replace(DRAWN, samples=np.array([64.0, 128.0, 512.0]))
    assert np.ravel(generate(ENGINE, many, K).total_s)[1] == pytest.approx(total())
