"""The layouts: valid by construction rules, equal to the closed forms, and to the rates that the
zero-bubble paper prints."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scantling.physics.pipeline import (
    SCHEDULE_NAMES,
    SCHEDULES,
    bubble_time,
    in_flight,
    violations,
    weight_saved,
)
from scantling.physics.schedule import lay_out

EXACT = ("gpipe", "1f1b", "interleaved", "zb-1p", "zb-2p")
# (F, B, W) of a transformer's micro-batch: equal; attention makes F and B longer than W; recompute
# makes B longest
TIMES = [(1, 1, 1), (1, 1.2, 0.8), (1, 1.5, 0.9), (1, 1, 0.6), (1.1, 1, 1), (1, 2, 1)]


def chunks(name, vpp=2):
    return SCHEDULES[name].chunks or vpp


def grid(names, pps=(2, 3, 4, 6, 8, 16), rounds=(2, 5), vpps=(2, 4)):
    """Legal (name, pp, vpp, m)."""
    return [
        (name, p, v, k * p)
        for name in names
        for v in (vpps if SCHEDULES[name].chunks is None else (chunks(name),))
        for p in pps
        for k in rounds
        if not violations(name, p, v, k * p, 10**6)
    ]


def lost_s(layout):
    """Longest own span less the work of the busiest device: comparable with `bubble_time`. [s]"""
    return float(layout.span_s.max() - layout.busy_s.max())


@pytest.mark.parametrize(("name", "p", "v", "m"), grid(EXACT))
def test_idle_time_equals_the_closed_form(name, p, v, m):
    for f, b, w in TIMES:
        assert lost_s(lay_out(name, p, v, m, f, b, w)) == pytest.approx(
            bubble_time(name, p, v, m, f, b + w, w), abs=1e-9
        )


@pytest.mark.parametrize(
    ("name", "p", "v", "m"), grid(("dualpipe", "dualpipe-v"), pps=(2, 4, 6, 8, 16))
)
def test_dualpipe_equals_the_published_form(name, p, v, m):
    """Exact where an input gradient takes as long as a forward; else off by at most their
    difference per stage."""
    for f, b, w in TIMES:
        ours = lost_s(lay_out(name, p, v, m, f, b, w))
        assert ours == pytest.approx(
            bubble_time(name, p, v, m, f, b + w, w), abs=1e-9 + abs(f - b) * p / 2
        )


@pytest.mark.parametrize(
    ("name", "p", "v", "m"), grid(("zb-v", "v-half", "v-min"), pps=(3, 4, 8, 16), rounds=(2, 4))
)
def test_v_schedules_are_near_their_closed_forms(name, p, v, m):
    seen = 0
    for f, b, w in TIMES:
        ours, closed = (
            lost_s(lay_out(name, p, v, m, f, b, w)),
            bubble_time(name, p, v, m, f, b + w, w),
        )
        if name == "zb-v":
            seen += 1
            assert -0.15 * (f + b + w) <= ours - closed <= 1e-9
        else:
            seen += 1
            assert abs(ours - closed) <= (2 + p / 10) * max(f, b)
            assert ours == pytest.approx(closed, rel=0.5)
    assert seen


def test_zero_bubble_where_passes_are_equal():
    for p in (2, 3, 5, 8, 16):
        assert lay_out("zb-v", p, 2, 3 * p, 1, 1, 1).bubble_s.max() == pytest.approx(0)
        assert lay_out("zb-2p", p, 1, 3 * p, 1, 1, 1).bubble_s.max() == pytest.approx(0)
        # Narayanan et al. 2021, section 2.2.1: (p - 1)(F + B) on the first stage
        assert lay_out("1f1b", p, 1, 3 * p, 1, 1, 1).bubble_s.max() == pytest.approx((p - 1) * 3)


@pytest.mark.parametrize(("name", "p", "v", "m"), grid(SCHEDULE_NAMES, pps=(3, 4, 8, 16)))
def test_in_flight_equals_the_closed_form(name, p, v, m):
    layout = lay_out(name, p, v, m, 1, 1, 1)
    stages = np.arange(p)
    if name in ("gpipe", "1f1b", "interleaved", "zb-1p", "zb-2p"):
        assert layout.peak_in_flight == pytest.approx(in_flight(name, p, v, m, stages))
    else:
        assert layout.peak_in_flight.max() == pytest.approx(in_flight(name, p, v, m))
    when, held = layout.in_flight_over_time(0)
    assert held.max() == pytest.approx(layout.peak_in_flight[0])
    assert held[-1] == pytest.approx(0)
    assert (np.diff(when) >= 0).all()


# Qi et al. 2023: p, m, (hidden, heads) of table 3; T_F, T_B, T_W, T_comm of table 9; 1F1B, ZB-H1,
# ZB-H2, ZB-2p of table 5
TABLE_5 = [
    (8, 24, (2304, 24), 18.522, 18.086, 9.337, 0.601, 0.2431, 0.1585, 0.1083, 0.0433),
    (8, 32, (2304, 24), 18.513, 18.086, 9.331, 0.626, 0.1985, 0.1242, 0.0837, 0.0039),
    (8, 64, (2304, 24), 18.546, 18.097, 9.321, 0.762, 0.1240, 0.0674, 0.0444, 0.0026),
    (8, 24, (4096, 32), 29.718, 29.444, 19.927, 0.527, 0.2347, 0.1323, 0.0698, 0.0029),
    (8, 32, (4096, 32), 29.802, 29.428, 19.530, 0.577, 0.1898, 0.1045, 0.0559, 0.0022),
    (8, 64, (4096, 32), 29.935, 29.621, 19.388, 0.535, 0.1091, 0.0554, 0.0294, 0.0010),
    (16, 48, (5120, 40), 11.347, 11.248, 8.132, 0.377, 0.2552, 0.1397, 0.0672, 0.0066),
    (16, 64, (5120, 40), 11.307, 11.254, 8.101, 0.379, 0.2082, 0.1088, 0.0516, 0.0054),
    (16, 128, (5120, 40), 11.325, 11.308, 8.109, 0.378, 0.1251, 0.0576, 0.0266, 0.0028),
    (32, 96, (6144, 48), 10.419, 10.207, 7.715, 0.408, 0.2646, 0.1421, 0.0641, 0.0038),
    (32, 128, (6144, 48), 10.408, 10.204, 7.703, 0.408, 0.2168, 0.1106, 0.0490, 0.0029),
    (32, 256, (6144, 48), 10.402, 10.248, 7.698, 0.460, 0.1352, 0.0594, 0.0257, 0.0018),
]


@pytest.mark.parametrize(
    ("p", "m", "shape", "f", "b", "w", "comm", "one", "h1", "h2", "auto"), TABLE_5
)
def test_bubble_rates_of_the_zero_bubble_paper(p, m, shape, f, b, w, comm, one, h1, h2, auto):
    def rate(name, kept=1.0):
        return (
            1
            - m
            * (f + b + w)
            / lay_out(name, p, 1, m, f, b, w, t_p2p=comm, weight_saved=kept).span_s.max()
        )

    assert rate("1f1b") == pytest.approx(one, abs=1e-4)
    assert rate("zb-1p") == pytest.approx(h1, abs=1e-4)
    assert rate("zb-2p") == pytest.approx(h2, abs=1e-4)
    # their automatic schedule may also move forwards, ours only weight gradients
    assert rate("zb-2p", weight_saved(*shape, 1024, flash=False)) == pytest.approx(auto, abs=0.01)


def check(layout, f, b, w, t_p2p, scale):
    """One pass at a time, every pass once, nothing before its input: the rules of any pipeline."""
    row = SCHEDULES[layout.schedule]
    parts = layout.pp * chunks(layout.schedule, layout.vpp)
    eps = 1e-6 * (f + b + w)
    for d in range(layout.pp):
        mine = layout.device == d
        order = np.lexsort((layout.end_s[mine], layout.start_s[mine]))
        assert (layout.start_s[mine][order][1:] >= layout.end_s[mine][order][:-1] - eps).all()
    rows = list(
        zip(
            layout.kind,
            layout.part,
            layout.micro_batch,
            layout.device,
            layout.start_s,
            layout.end_s,
        )
    )
    at = {(k, int(p), int(j)): (d, s, e) for k, p, j, d, s, e in rows}
    assert len(at) == len(rows)
    assert sum(k == "F" for k, *_ in rows) == sum(k == "B" for k, *_ in rows) == parts * layout.m
    for (kind, part, j), (device, start, end) in at.items():
        if kind == "W":
            source, alone = ("B", part, j), w
        elif kind == "F":
            source, alone = ("F", part - 1, j), f
        else:
            source = ("B", part + 1, j) if part < parts - 1 else ("F", part, j)
            alone = b if ("W", part, j) in at else b + w
        assert end - start == pytest.approx(
            alone * scale[part] * layout.pp / parts if row.chunks != 1 else alone * scale[part],
            abs=eps,
        )
        if source in at:
            there, _, done = at[source]
            assert start >= done + (t_p2p if there != device and kind != "W" else 0) - eps
        else:
            assert kind == "F"
            assert part == 0
    work = layout.m * (f + b + w) * np.sum(scale) * layout.pp / parts
    assert layout.busy_s.sum() == pytest.approx(work)
    assert layout.makespan_s >= layout.span_s.max() - eps


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from(SCHEDULE_NAMES),
    st.integers(2, 6),
    st.integers(2, 3),
    st.integers(1, 3),
    st.floats(0.1, 3),
    st.floats(0.1, 3),
    st.floats(0.0, 3),
    st.floats(0, 1),
    st.floats(0.3, 1),
    st.randoms(use_true_random=False),
)
def test_every_layout_is_a_valid_pipeline(name, p, v, rounds, f, b, w, t_p2p, kept, random):
    p += p % 2 if name == "dualpipe" else 0
    v = chunks(name, v)
    m = p * rounds * (2 if name.startswith("dualpipe") else 1)
    scale = np.array([random.choice([0.5, 1.0, 1.0, 1.7]) for _ in range(p * v)])
    layout = lay_out(name, p, v, m, f, b, w, t_p2p=t_p2p, part_scale=scale, weight_saved=kept)
    check(layout, f, b, w, t_p2p, scale)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(("gpipe", "1f1b", "interleaved", "dualpipe", "dualpipe-v")),
    st.integers(1, 3),
    st.floats(0.1, 3),
    st.floats(0, 1),
)
def test_longer_transfers_never_shorten_a_fixed_order(name, rounds, b, t_p2p):
    v, p = chunks(name), 4
    m = 2 * p * rounds
    assert (
        lay_out(name, p, v, m, 1, b, 1, t_p2p=t_p2p).makespan_s
        >= lay_out(name, p, v, m, 1, b, 1).makespan_s - 1e-9
    )


@pytest.mark.parametrize("slow", range(4))
def test_slow_stage_paces_1f1b(slow):
    """One stage longer than the rest: m of its micro-batches and once the way past the others, less
    what an early stage, which runs more forwards ahead, does meanwhile. The last stage, where the
    loss is, pays in full."""
    scale = np.ones(4)
    scale[slow] = 1.5
    layout = lay_out("1f1b", 4, 1, 12, 1, 1, 1, part_scale=scale)
    assert layout.makespan_s == pytest.approx(12 * 4.5 + 3 * 3 - (3 - slow) * (4.5 - 3))


def test_barrier_makes_the_zero_bubble_schedules_wait_for_the_last_stage():
    """Without post-validation ZB-H2 is a parallelogram whose last device starts p - 1 forwards late
    (Qi et al. 2023, section 4)."""
    for name in ("zb-1p", "zb-2p"):
        layout = lay_out(name, 8, 1, 32, 1, 1, 0.9)
        assert layout.idle_s.max() == pytest.approx(
            bubble_time(name, 8, 1, 32, 1, 1.9, 0.9, barrier=True)
        )


def test_charts_of_the_papers():
    """Counted on figures: GPipe, 4 stages and 4 micro-batches; 1F1B and interleaved, 4 stages and 8
    (Narayanan et al. 2021, figures 3 and 4)."""
    gpipe = lay_out("gpipe", 4, 1, 4, 1, 1, 0)
    assert gpipe.makespan_s == 14
    assert gpipe.peak_in_flight.tolist() == [4, 4, 4, 4]
    one = lay_out("1f1b", 4, 1, 8, 1, 1, 1)
    first = one.device == 0
    assert "".join(one.kind[first][:8]) == "FFFFBFBF"
    assert one.makespan_s == 33
    assert "".join(one.kind[one.device == 3][:6]) == "FBFBFB"
    two = lay_out("interleaved", 4, 2, 8, 1, 1, 1)
    assert (
        two.chunk[(two.device == 0) & (two.kind == "F")][:12].tolist()
        == [0] * 4 + [1] * 4 + [0] * 4
    )
    assert two.makespan_s == 28.5


def test_dualpipe_places_two_copies_and_meets_in_the_middle():
    layout = lay_out(
        "dualpipe", 8, 1, 20, 1, 1, 1
    )  # the read-me's own example: 8 ranks, 20 micro-batches
    assert layout.device[(layout.part == 0) & (layout.micro_batch == 0)].tolist()[0] == 0
    assert set(layout.device[(layout.part == 0) & (layout.micro_batch == 19)]) == {7}
    assert layout.start_s[layout.device == 7].min() == 0
    assert lost_s(layout) == pytest.approx(3 * 2)


def test_refuses_what_the_schedule_forbids():
    with pytest.raises(ValueError, match="divisible by pp"):
        lay_out("interleaved", 4, 2, 6, 1, 1, 1)
    with pytest.raises(ValueError, match="even pp"):
        lay_out("dualpipe", 5, 1, 20, 1, 1, 1)
    with pytest.raises(ValueError, match="8 entries"):
        lay_out("zb-v", 4, 2, 8, 1, 1, 1, part_scale=[1, 1])
    with pytest.raises(ValueError, match="finite"):
        lay_out("1f1b", 4, 1, 8, 1, float("nan"), 1)


def test_large_charts_hold_every_pass():
    for name, v in (("interleaved", 4), ("zb-v", 2), ("dualpipe", 1)):
        layout = lay_out(name, 16, v, 128, 1, 1.2, 0.8)
        assert len(layout.kind) >= 2 * 16 * 128 * v
