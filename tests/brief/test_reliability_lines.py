"""How a line says what keeps a run alive: recovery, spares, checks, failures, the band of MFU."""

import pytest
import scantling as sc
from scantling_brief.brief import read_brief

LINE = "405B dense on 16,384 H100, 15.6T tokens, "
NODES = 2048


@pytest.mark.parametrize(
    ("words", "fields"),
    (
        ("elastic resize", {"reliability.recovery": "elastic"}),
        ("elastic recovery", {"reliability.recovery": "elastic"}),
        ("drops a failed gang", {"reliability.recovery": "elastic"}),
        ("hot spares", {"constraints.survive": "node"}),
        ("64 hot spares", {"reliability.spares": 64}),
        ("64 warm standby nodes", {"reliability.spares": 64}),
        ("SDC checks every 2 hours", {"reliability.sdc.check_every_s": 7200.0}),
        ("MFU 35-45%", {"constraints.min_mfu": 0.35}),
        ("keep MFU in the 35–45% band", {"constraints.min_mfu": 0.35}),
        ("35 to 45 percent MFU", {"constraints.min_mfu": 0.35}),
    ),
)
def test_words_that_keep_a_run_alive_are_read_into_fields(words, fields):
    reading = read_brief(LINE + words)
    assert not reading.unread and not reading.ignored
    assert fields.items() <= reading.fields.items()


def test_a_failure_every_three_hours_is_a_rate_of_the_nodes():
    for words in ("a failure every 3 hours", "MTBF 3 h", "a hardware failure roughly every 3 h"):
        reading = read_brief(LINE + words)
        rate = reading.fields["reliability.failures_per_1000_node_days"]
        assert rate * NODES / 1000 / 24 == pytest.approx(1 / 3, rel=1e-3)
    assert read_brief("405B, 15.6T tokens, a failure every 3 hours").unread


@pytest.mark.parametrize("chip", ("H100", "GB200", "TPU v5p"))
def test_a_failure_every_three_hours_is_one_whatever_a_node_holds(chip):
    """GB200 and TPU v5p have four devices a node; the rate counts nodes of eight."""
    design = sc.Design.from_text(f"70B on 1,024 {chip}, 2T tokens, a failure every 3 hours")
    assert sc.assess(design).mtbf_s == pytest.approx(3 * 3600, rel=1e-3)


@pytest.mark.parametrize(
    "words", ("several weeks", "SDC checks", "silent data corruption checks", "a few weeks")
)
def test_what_is_planned_anyway_is_understood(words):
    reading = read_brief(LINE + words)
    assert not reading.unread and not reading.ignored


@pytest.mark.parametrize(
    ("words", "choice"),
    (
        ("within several weeks", "constraints.deadline_days"),
        ("a few hundred hot spares", "reliability.spares"),
        ("against a fixed token budget", "job.tokens"),
    ),
)
def test_a_number_that_is_not_said_is_asked_for(words, choice):
    (asked,) = read_brief(LINE + words).unread
    assert choice in asked.choices


@pytest.mark.parametrize(
    "words",
    [
        "our node MTBF is 45 days",
        "node-level MTBF of 1080 hours",
        "MTBF per node is 45 days",
        "each node fails about once every 45 days",
        "per-GPU MTBF of 360 days",
        "each GPU dies once in 360 days",
    ],
)
@pytest.mark.parametrize("nodes", [16, 512])
def test_the_time_between_failures_of_a_node_is_not_that_of_the_job(words, nodes):
    """1,000 / 45 a node, however many nodes there are; a device of eight fails an eighth as often.
    With 512 nodes it was read as one failure of the job in 45 days."""
    fields = read_brief(f"{words}, {nodes} nodes of 8 H100, 405B").fields
    rate = fields["reliability.failures_per_1000_node_days"]
    assert rate == pytest.approx(1000 / 45, rel=1e-3)


def test_how_long_a_restart_takes_is_an_input_and_no_limit():
    fields = read_brief(
        "restarts take us 12 min and detecting a hang 10 min, 70B on 64 H100"
    ).fields
    assert fields["reliability.restart_s"] == 720 and fields["reliability.detect_s"] == 600
    assert "constraints.max_recovery_s" not in fields
