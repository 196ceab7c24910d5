"""What people type into an answer: numbers, units, sums, keys and plans are read, and a right
number in a wrong unit is told so."""

from __future__ import annotations

import pytest
import scantling_walkthroughs as learn
from scantling_walkthroughs.grade import grade
from scantling_walkthroughs.right_answers import right_answer
from scantling_walkthroughs.typed import read_number, read_plan


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("405B", "parameters", 405e9),
        ("1.2e25", "FLOP", 1.2e25),
        ("12,288", "", 12288),
        ("41 %", "%", 41),
        ("$3.5M", "", 3.5e6),
        ("3.1 h", "h", 3.1),
        ("86 M$", "M$", 86),
        ("7.9 min", "min", 7.9),
        ("~ 70 days", "days", 70),
        ("1 day", "days", 1),
        ("15.6 trillion", "", 15.6e12),
        ("450 GB/s", "GB/s", 450),
        ("−2", "", -2),
        (5, "", 5),
        ("186 min", "h", 3.1),
        ("0.125 days", "h", 3),
        ("472 s", "min", 472 / 60),
        ("9.7 weeks", "days", 67.9),
        ("48 per cent", "%", 48),
        ("48 percent", "%", 48),
        ("684 Gb", "GB", 85.5),
        ("79.65 GiB", "GB", 85.5235),
        ("66144 MB", "GB", 66.144),
        ("400 Gbps", "GB/s", 50),
        ("$86.1M", "M$", 86.1),
        ("86.1 million dollars", "M$", 86.1),
        ("5.6 trillion", "T", 5.6),
        ("405b params", "parameters", 405e9),
        ("9x", "times", 9),
        ("12 GPUs", "devices", 12),
        ("38e24 FLOPs", "FLOP", 3.8e25),
        ("6 * 405e9 * 15.6e12", "FLOP", 3.7908e25),
        ("38 × 10^24", "FLOP", 3.8e25),
        ("38x10^24 FLOP", "FLOP", 3.8e25),
        ("15/31 * 100 %", "%", 1500 / 31),
        ("sqrt", "", None),
        ("9**9**9", "", None),
        ("7,9 min", "min", 7.9),
        ("5 or 6", "", None),
        (float("nan"), "", None),
        (float("inf"), "", None),
        ([5], "", None),
    ],
)
def test_numbers_are_read_as_people_type_them(text, unit, value):
    if value is None:
        with pytest.raises(ValueError):
            read_number(text, unit)
    else:
        assert read_number(text, unit) == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("text", ["", "many", "5 apples", "1.2.3", True])
def test_what_is_no_number_in_the_unit_is_refused(text):
    with pytest.raises(ValueError):
        read_number(text, "days")


@pytest.mark.parametrize(
    ("ident", "wrong", "says"),
    [
        ("01.bubble", lambda x: x / 100, "per cent"),
        ("01.mtbf", lambda x: x * 60, "Right as minutes"),
        ("01.interval", lambda x: x * 60, "Right as seconds"),
        ("01.days", lambda x: x * 24, "Right as hours"),
        ("02.layer", lambda x: x * 8, "bits"),
        ("02.state", lambda x: x / 1.073741824, "GiB"),
        ("02.card", lambda x: f"{x:.2f} GiB", "from GiB to GB"),
        ("02.layer", lambda x: x * 1e9, "power of ten"),
        ("01.params", lambda x: x / 1e9, "power of ten"),
        ("01.cost", lambda x: x * 1e6, "million dollars"),
        ("01.ratio", lambda x: -x, "sign"),
        ("01.ratio", lambda x: 0, "not zero"),
        ("01.params", lambda x: f"{x / 1e9:.4g} GFLOP/s", "FLOP per second"),
        ("01.days", lambda x: f"{x} GB", "GB is bytes"),
        ("01.cost", lambda x: f"{x} days", "days is time"),
        ("01.params", lambda x: x * 8, "factor of 8.0."),
        ("01.cost", lambda x: x * 8, "factor of 8.0: devices of a node (eight) taken for one"),
        ("06.micro", lambda x: x * 8, "factor of 8.0."),
        ("01.cost", lambda x: x * 1e30, "30 powers of ten"),
        ("06.micro", lambda x: x + 0.1, "exactly"),
    ],
)
def test_a_right_number_in_a_wrong_unit_is_told_so(ident, wrong, says):
    w, q = (w := learn.walkthrough(ident[:2])), w.question(ident[3:])
    verdict = grade(q, wrong(right_answer(q)))
    assert not verdict.right
    assert says in verdict.says, verdict.says


@pytest.mark.parametrize(
    "typed",
    ["b", " B ", "(b)", "b.", "b: yes, device-hours are device-hours", ["b"], ("B",), "option b"],
)
def test_an_option_is_named_in_any_way(typed):
    q = learn.walkthrough("08").question("half")
    assert grade(q, typed).answer == typed
    assert [o.key for o in q.options if o.says == grade(q, typed).says] == ["b"]


@pytest.mark.parametrize(
    "typed",
    [
        "a, b, c, d and e",
        "abcde",
        "A B C D E",
        list("abcde"),
        {"a", "b", "c", "d", "e"},
        "(a), (b), (c), (d), (e)",
    ],
)
def test_options_are_named_in_any_way(typed):
    assert learn.check("01.scope", typed).right


@pytest.mark.parametrize(
    "typed", [5, 1.5, True, object(), b"a", {"x": 1}, ["a", 5], "none of them"]
)
def test_what_names_no_option_is_refused_and_breaks_nothing(typed):
    for ident in ("01.scope", "08.half"):
        assert learn.check(ident, typed).status == "unreadable"
        assert "wanted" in learn.check(ident, typed)._repr_html_()


@pytest.mark.parametrize(
    "typed",
    [
        "tp 8, pp 16, dp 128",
        "TP=8 PP=16 DP=128",
        "tp8 pp16 dp128",
        "8 x 16 x 128",
        (8, 16, 128),
        {"tp": "8", "pp": 16.0, "dp": 128},
        "{'tp': 8, 'pp': 16, 'dp': 128}",
    ],
)
def test_a_plan_is_read_as_it_is_typed(typed):
    assert read_plan(typed, ("tp", "pp", "dp")) == {"tp": 8, "pp": 16, "dp": 128}


@pytest.mark.parametrize(
    "typed",
    [
        5,
        "eight",
        [8, 16],
        None,
        {"tp": None, "pp": 1, "dp": 1},
        {"tp": -1, "pp": 1, "dp": 1},
        {"tp": 0, "pp": 1, "dp": 1},
        {"tp": "a", "pp": [], "dp": {}},
        "tp 8, pp 16, dp 128, color blue",
        {"tp": 1.5, "pp": 1, "dp": 1},
    ],
)
def test_what_is_no_plan_is_refused_and_breaks_nothing(typed):
    verdict = learn.check("01.plan", typed)
    assert verdict.status in ("unreadable", "wrong", "open")
    assert verdict._repr_html_()
