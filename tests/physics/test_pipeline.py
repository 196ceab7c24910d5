"""Closed forms of the pipeline schedules against the figures their authors print."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scantling.physics import pipeline
from scantling.physics.pipeline import (
    RULES,
    SCHEDULE_NAMES,
    SCHEDULES,
    Passes,
    bubble_time,
    in_flight,
    schedule_code,
    stage_layers,
    violations,
    weight_copies,
    weight_saved,
)


def rate(idle, m, work):
    return idle / (m * work + idle)


@pytest.mark.parametrize(
    ("p", "m", "v", "share"),
    [(4, 8, 1, 3 / 8), (4, 8, 2, 3 / 16), (8, 64, 1, 7 / 64), (64, 512, 2, 63 / 1024)],
)
def test_bubble_over_ideal_time_as_in_sc21(p, m, v, share):
    """Narayanan et al. 2021, section 2.2: (p - 1)/m for GPipe and 1F1B, 1/v of it interleaved."""
    ideal = m * 3.0
    if v == 1:
        assert bubble_time("gpipe", p, 1, m, 1.0, 2.0, 1.0) / ideal == pytest.approx(share)
        assert bubble_time("1f1b", p, 1, m, 1.0, 2.0, 1.0) / ideal == pytest.approx(share)
    else:
        assert bubble_time("interleaved", p, v, m, 1.0, 2.0, 1.0) / ideal == pytest.approx(share)


@pytest.mark.parametrize("p", [4, 8, 16, 32])
@pytest.mark.parametrize(
    ("schedule", "part"),
    [("zb-1p", 1 / 3), ("zb-2p", 0), ("zb-v", 0), ("v-half", 1 / 2), ("v-min", 2 / 3)],
)
def test_share_of_1f1b_bubble_with_equal_passes(schedule, part, p):
    """The table in the read-me of the zero-bubble code: B/3, 0, 0, B/2 and 2B/3 of 1F1B's bubble
    where F = B = W."""
    m = 3 * p
    assert bubble_time(schedule, p, 2, m, 1.0, 2.0, 1.0) == pytest.approx(
        part * bubble_time("1f1b", p, 1, m, 1.0, 2.0, 1.0)
    )


# p, m, T_F, T_B, T_W of Qi et al. 2023, table 9, and the bubble rates of table 5 (1F1B, ZB-H1,
# ZB-H2), which include transfers
ZERO_BUBBLE = [
    (8, 24, 18.522, 18.086, 9.337, 0.2431, 0.1585, 0.1083),
    (8, 64, 29.935, 29.621, 19.388, 0.1091, 0.0554, 0.0294),
    (16, 48, 11.347, 11.248, 8.132, 0.2552, 0.1397, 0.0672),
    (32, 256, 10.402, 10.248, 7.698, 0.1352, 0.0594, 0.0257),
]


@pytest.mark.parametrize(("p", "m", "f", "b", "w", "one", "h1", "h2"), ZERO_BUBBLE)
def test_zero_bubble_rates_but_for_transfers(p, m, f, b, w, one, h1, h2):
    for schedule, printed in (("1f1b", one), ("zb-1p", h1), ("zb-2p", h2)):
        ours = rate(bubble_time(schedule, p, 1, m, f, b + w, w), m, f + b + w)
        assert printed - 0.03 < ours <= printed, (
            schedule
        )  # the transfers of tests/physics/test_schedule.py make up the rest


@pytest.mark.parametrize(
    ("p", "m", "f", "b", "w", "kept", "with_barrier", "without"),
    [
        (8, 24, 18.522, 18.086, 9.337, (2304, 24), 13.11, 14.5),
        (8, 24, 29.718, 29.444, 19.927, (4096, 32), 4.00, 4.32),
        (16, 48, 11.347, 11.248, 8.132, (5120, 40), 1.68, 1.81),
        (32, 96, 10.419, 10.207, 7.715, (6144, 48), 0.91, 0.99),
    ],
)
def test_barrier_costs_what_was_measured(p, m, f, b, w, kept, with_barrier, without):
    """Qi et al. 2023, table 10: samples per second of ZB-2p with synchronous and with
    post-validated optimizer steps.

    Their first and last stages have a layer less, which takes some of the wait away.
    """
    share = weight_saved(*kept, 1024, flash=False)
    slow, fast = (
        m * (f + b + w)
        + bubble_time("zb-2p", p, 1, m, f, b + w, w, weight_saved=share, barrier=barrier)
        for barrier in (True, False)
    )
    assert fast / slow == pytest.approx(with_barrier / without, abs=0.035)


@pytest.mark.parametrize(
    ("pp", "f", "whole", "w"), [(8, 1.0, 2.0, 1.0), (16, 1.0, 2.4, 1.0), (16, 3.0, 5.0, 2.0)]
)
def test_dualpipe_table(pp, f, whole, w):
    """DeepSeek-V3, table 2, B the whole backward: (PP - 1)(F + B), (PP - 1)(F + B - 2W), (PP/2 -
    1)(F&B + B - 3W); PP, PP, PP + 1; 1, 1, 2."""
    m = 4 * pp
    assert bubble_time("1f1b", pp, 1, m, f, whole, w) == pytest.approx((pp - 1) * (f + whole))
    assert bubble_time("zb-1p", pp, 1, m, f, whole, w) == pytest.approx(
        (pp - 1) * (f + whole - 2 * w)
    )
    assert bubble_time("dualpipe", pp, 1, m, f, whole, w) == pytest.approx(
        (pp / 2 - 1) * ((f + whole) + whole - 3 * w)
    )
    assert [in_flight(s, pp, 1, m) for s in ("1f1b", "zb-1p", "dualpipe")] == [pp, pp, pp + 1]
    assert [weight_copies(s) for s in ("1f1b", "zb-1p", "dualpipe")] == [1, 1, 2]
    # DualPipeV: the same table with two of the PP stages on each of PP/2 devices, a chunk taking
    # half a device's time
    assert bubble_time("dualpipe-v", pp // 2, 2, m, 2 * f, 2 * whole, 2 * w) == pytest.approx(
        (pp / 2 - 1) * (f + 2 * whole - 3 * w)
    )
    assert 2 * in_flight("dualpipe-v", pp // 2, 2, m) == pp + 1


@pytest.mark.parametrize("p", [4, 6, 8, 16, 32])
def test_activations_in_flight_as_published(p):
    m = 4 * p
    assert in_flight("gpipe", p, 1, m) == m
    assert in_flight("zb-2p", p, 1, m) == 2 * p - 1  # Qi et al. 2023, table 2
    assert in_flight("zb-v", p, 2, m) == p  # section 6
    assert (
        int(in_flight("v-half", p, 2, m)) == (p + 2) // 2
    )  # Qi et al. 2024: (p+2)//2 and (p+4)//3 micro-batches
    assert int(in_flight("v-min", p, 2, m)) == (p + 4) // 3
    for v in (2, 3, 4):  # Korthikanti et al. 2022, section 4.2.3: L(1 + (p-1)/(pm)) layers
        assert in_flight("interleaved", p, v, m) == pytest.approx(p * (1 + (p - 1) / (p * v)))


def test_activations_by_stage_with_lighter_weight_gradients():
    """Qi et al. 2023, section 2.3, workers from 1: (p-i+1)M_B + (i-1)M_W and (2p-2i+1)M_B +
    (2i-2)M_W."""
    p, kept = 8, 0.4
    i = np.arange(1, p + 1)
    assert in_flight("zb-1p", p, 1, 99, i - 1, kept) == pytest.approx((p - i + 1) + (i - 1) * kept)
    assert in_flight("zb-2p", p, 1, 99, i - 1, kept) == pytest.approx(
        (2 * p - 2 * i + 1) + (2 * i - 2) * kept
    )
    assert in_flight("1f1b", p, 1, 99, i - 1) == pytest.approx(p - i + 1)
    assert in_flight("1f1b", p, 1, 3, -1) == 1
    assert in_flight("1f1b", p, 1, 3, 0) == 3


def test_weight_kept_is_table_1():
    """Qi et al. 2023, table 1: 32sbh of sb(34h + 5as)."""
    h, a, s = 2304, 24, 1024
    assert weight_saved(h, a, s, flash=False) == pytest.approx(
        32 * s * h / (s * (34 * h + 5 * a * s))
    )
    assert weight_saved(h, a, s) == pytest.approx(32 / 34)


def test_codes_are_positions_and_every_alias_is_one_schedule():
    assert [row.code for row in SCHEDULES.values()] == list(range(len(SCHEDULE_NAMES)))
    names = [alias for row in SCHEDULES.values() for alias in (row.name, *row.aliases)]
    assert len(names) == len(set(names))
    assert schedule_code("ZB_H1") == schedule_code("zb-1p")
    assert schedule_code(np.array(["1f1b", "zbv"])).tolist() == [1, 5]
    with pytest.raises(KeyError):
        schedule_code("chimera")


plans = st.tuples(
    st.sampled_from(SCHEDULE_NAMES),
    st.integers(1, 64),
    st.integers(1, 8),
    st.integers(1, 512),
    st.floats(0.01, 10),
    st.floats(0.01, 10),
    st.floats(0, 1),
    st.floats(0.2, 1),
    st.booleans(),
)


@given(st.lists(plans, min_size=1, max_size=20))
def test_columns_equal_scalars(rows):
    name, pp, vpp, m, f, b, part, kept, barrier = (np.array(column) for column in zip(*rows))
    code = schedule_code(name)
    column = bubble_time(code, pp, vpp, m, f, b, part * b, weight_saved=kept, barrier=barrier)
    held = in_flight(code, pp, vpp, m, pp - 1, kept)
    for i, row in enumerate(rows):
        assert column[i] == pytest.approx(
            float(
                bubble_time(row[0], *row[1:6], row[6] * row[5], weight_saved=row[7], barrier=row[8])
            )
        )
        assert held[i] == pytest.approx(float(in_flight(row[0], *row[1:4], -1, row[7])))


@given(plans)
def test_no_plan_idles_less_than_nothing_nor_holds_more_than_it_has(plan):
    name, pp, vpp, m, f, b, part, kept, barrier = plan
    idle = bubble_time(name, pp, vpp, m, f, b, part * b, weight_saved=kept, barrier=barrier)
    assert idle >= 0
    assert idle == 0 or pp > 1
    assert 0 < in_flight(name, pp, vpp, m, 0, kept) <= m
    assert bubble_time(
        name, pp, vpp, m, f, b, part * b, weight_saved=kept, barrier=True
    ) >= bubble_time(name, pp, vpp, m, f, b, part * b, weight_saved=kept, barrier=False)


def test_rules_name_what_is_broken():
    schedule = schedule_code(
        np.array(["interleaved", "interleaved", "dualpipe", "dualpipe", "zb-v", "1f1b", "1f1b"])
    )
    pp, vpp, m = (
        np.array([4, 4, 5, 8, 4, 4, 64]),
        np.array([2, 2, 1, 1, 1, 1, 1]),
        np.array([10, 8, 40, 14, 8, 8, 8]),
    )
    broken = violations(schedule, pp, vpp, m, 48)
    assert {text: np.flatnonzero(bad).tolist() for text, bad in broken.items()} == {
        "vpp must be 2 for a V-shaped schedule": [4],
        "interleaved needs micro-batches per step divisible by pp": [0],
        "dualpipe needs an even pp": [2],
        "dualpipe needs at least 2·pp micro-batches": [3],
        (
            "every model part needs a layer, the embedding and the head counting as one "
            "each: layers + 2 ≥ pp·vpp; in a pattern every part has a layer of its own"
        ): [6],
    }
    assert violations("1f1b", 8, 1, 16, 32) == {}
    assert {name for rule in RULES for name in rule.schedules} == set(SCHEDULE_NAMES)


@pytest.mark.parametrize(
    ("layers", "pp", "ends", "middle"),
    [
        (126, 16, 7, 8),  # Llama 3 405B: one layer fewer on the first and the last stage
        (70, 12, 5, 6),  # BLOOM: 70 layers on 12 stages, embedding and head counted as a layer each
        (22, 8, 2, 3),  # Qi et al. 2023, table 3
    ],
)
def test_published_uneven_splits(layers, pp, ends, middle):
    assert [int(x) for x in stage_layers(layers, pp, 1, 1)] == [ends, middle, ends]
    assert 2 * ends + (pp - 2) * middle == layers


@given(st.integers(1, 200), st.integers(1, 32), st.integers(0, 3), st.integers(0, 3))
def test_stages_are_as_even_as_whole_layers_allow(layers, pp, first, last):
    """Against a split dealt out one layer at a time, the left-over ones from the second stage
    on."""
    if pp == 1:
        assert [int(x) for x in stage_layers(layers, pp, first, last)] == [layers, 0, layers]
        return
    places = layers + first + last
    split = np.full(pp, places // pp)
    split[1 : 1 + places % pp] += 1
    assert split.max() - split.min() <= 1
    split[0] -= first
    split[-1] -= last
    assert split.sum() == layers
    found = [int(x) for x in stage_layers(layers, pp, first, last)]
    assert found == [split[0], split[1:-1].max(initial=0), split[-1]]


def test_each_formula_stands_under_its_own_name():
    """p = 8, m = 24, F = 3, B = 4, W = 2: (p - 1)(F + B + W) and what each paper takes off it."""
    passes = Passes(p=8, v=2, m=24, F=3.0, B=4.0, W=2.0, k=1.0, barrier=False)
    bubbles = {name: float(row.bubble(passes)) for name, row in SCHEDULES.items()}
    assert bubbles == {
        "gpipe": 63,
        "1f1b": 63,
        "interleaved": 31.5,
        "zb-1p": 35,
        "zb-2p": 21,
        "zb-v": 14,
        "v-half": 7 * 6.5,
        "v-min": 49 + 24 * 3,
        "dualpipe": 27,
        "dualpipe-v": 31.5,
    }
    formulas = [f for n, f in vars(pipeline).items() if n.startswith(("bubble_", "in_flight_"))]
    assert len(formulas) > 15 and all(formula.__doc__ for formula in formulas)
