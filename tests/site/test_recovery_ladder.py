"""How a run lives on: the ladder at sizes beyond its own, a first start, fewer replicas."""

from pathlib import Path

import pytest
import scantling as sc
from scantling.endure.first_step import first_step
from scantling_site import part

DESIGNS = Path(__file__).parents[2] / "gallery" / "designs"
SIZES = ("own", "at_100k", "at_300k", "at_1m")


@pytest.fixture(scope="module")
def large():
    return sc.assess(sc.Design.read(DESIGNS / "case-6-100k-gpus.yaml"))


@pytest.fixture(scope="module")
def found(large):
    return part(large, "recovery")


def test_half_is_reached_where_the_lines_say(found):
    """Meta lost more than half at 98,304 devices with whole-job restarts and kept 80 % with
    replicas that recover alone (arXiv 2602.00277)."""
    at = {key: [rung[key] for rung in found.ladder] for key in SIZES}
    assert all(values == sorted(values) for values in at.values())
    assert at["at_100k"][0] < 0.5 < 0.8 < at["at_100k"][-1]
    for here, there in zip(SIZES[1:], SIZES[2:]):
        assert all(a >= b for a, b in zip(at[here], at[there]))
    for key, line in zip(SIZES, found.lines):
        first = next((r["measure"] for r in found.ladder if r[key] > 0.5), None)
        assert f"“{first}”" in line if first else "one half needs" in line


def test_a_million_devices_keep_one_half_apart_and_what_in_step_would_need(found):
    """All in step a failure every three minutes leaves one half (each holds all up 90 s); parts
    that stop alone keep nine tenths (Decoupled DiLoCo prints 0.93 for 16 parts)."""
    assert found.ladder[-2]["at_1m"] < 0.5 < 0.9 < found.ladder[-1]["at_1m"]
    line = found.lines[-1]
    assert "alone" in line and "one half needs one every 180 s" in line


def test_a_design_of_a_million_devices_in_sixteen_parts_keeps_more_than_one_half(large):
    d = large.design.change({"cluster.devices": 1_048_576, "job.global_batch": 65_536})
    parts = {"cluster.sites": 16, "cluster.site_gbytes_per_s": 1e5}
    kinds = ({}, parts | {"job.sync": {"kind": "local-steps"}})
    together, apart = (sc.assess(d.change(k)).goodput for k in kinds)
    assert together < 0.01 and apart > 0.7


def test_restart_time_ladder_and_start_are_one_function(large, found):
    """A requeue of 454 s on 2,048 devices and 768 s on 16,384 (ByteRobust, Table 7), collectives 17
    and 200 s at 16,384 and 98,304 (FT-HSDP): the same parts in every place."""
    load = large.endurance.first_step_s["load"]
    for row in found.starts:
        parts = first_step(row["devices"], load)
        said = {f"{part}_s": seconds for part, seconds in parts.items()}
        said |= {"devices": row["devices"], "total_s": sum(parts.values())}
        assert row == pytest.approx(said)
    assert {8, 1024, 16_384, 100_000} <= {row["devices"] for row in found.starts}
    calendar = part(large, "calendar")
    start = next(e for e in calendar.entries if e["what"] == "first start")
    assert start["days"] * 86_400 == pytest.approx(sum(large.endurance.first_step_s.values()))
    given = sc.Design.read(DESIGNS / "llama-3.1-405b.yaml").change({"plan.cp": 2})
    restart = sum(first_step(16_384, load, "in-place").values())
    assert sc.assess(given).endurance.restart_s == pytest.approx(restart, rel=0.02)


def test_swap_while_spares_are_left_then_run_on(large, found):
    gang = large.endurance.life.gang
    for row in found.elastic:
        assert (row["choice"] == "swap") == (row["lost"] <= large.spares)
        batch = row["micro_batches"] * row["dp"]
        assert batch >= large.plan["dp"] * large.plan["grad_accum"] > batch - row["dp"]
        assert row["dp"] == large.plan["dp"] - row["lost"] * large.plan["dp"] // gang.replicas
