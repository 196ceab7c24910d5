"""The trace of a step: its sums are the step's parts, its slices follow the schedule, and the file
is what the trace format asks for."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise

import pytest
import scantling as sc
from scantling.advise.computed_by import computed_by
from scantling.base.errors import DesignError
from scantling.catalogue.words import SCHEDULES
from scantling.cli.app import main
from scantling.design.design import Design
from scantling.verdict.assess import assess
from scantling_code.trace import COMPUTE, STREAMS, passes_of, trace

# (vpp, micro-batches) that each schedule can run on four stages
PLANS = {"interleaved": 2, "zb-v": 2, "v-half": 2, "v-min": 2, "dualpipe-v": 2}


def design(schedule: str = "1f1b", **pins) -> Design:
    """A small dense model on four stages."""
    plan = {"pp": 4, "tp": 2, "micro_batch": 1, "schedule": schedule, "vpp": PLANS.get(schedule, 1)}
    return Design.from_data(
        {
            "model": "llama-2-13b",
            "cluster": {"accelerator": "h100-sxm", "devices": 64},
            "job": {"tokens": 1e11, "seq_len": 4096, "global_batch": 128},
            "plan": {**plan, **pins},
        }
    )


@pytest.fixture(scope="module", params=SCHEDULES)
def traced(request):
    assessment = assess(design(request.param))
    assert assessment.plan["schedule"] == request.param
    return assessment, trace(assessment)


def test_the_slices_of_the_rank_that_sets_the_pace_sum_to_the_parts_of_the_step(traced):
    assessment, one = traced
    step = assessment.chosen.step
    sums = one.sums(one.pace)
    for part, seconds in sums.items():
        assert seconds == pytest.approx(float(vars(step)[part]), rel=1e-9, abs=1e-12 * one.total_s)
    assert sum(sums.values()) == pytest.approx(float(step.total), rel=1e-12)
    for axis, exchange in step.axes.items():
        wire = sum(
            s.end_s - s.start_s for s in one.slices if s.rank == one.pace and s.stream == axis
        )
        assert wire == pytest.approx(float(exchange.wire_s), rel=1e-9, abs=1e-12)


def test_no_stream_does_two_things_at_once(traced):
    _, one = traced
    tracks = defaultdict(list)
    for s in one.slices:
        tracks[s.rank, s.stream, s.part != ""].append(s)
    for slices in tracks.values():
        for a, b in pairwise(sorted(slices, key=lambda s: (s.start_s, s.end_s))):
            assert b.start_s >= a.end_s - 1e-9 * one.total_s


def test_a_pass_begins_after_what_it_needs(traced):
    """A forward of a part follows that of the part before it, a backward that of the part after."""
    _, one = traced
    layout = one.layout
    ends = {}
    rows = list(zip(layout.kind, layout.part, layout.micro_batch, layout.start_s, layout.end_s))
    for kind, part, batch, _, end in rows:
        ends[kind, part, batch] = end
    last = max(layout.part)
    for kind, part, batch, start, _ in rows:
        if kind == "F" and part:
            assert start >= ends["F", part - 1, batch] - 1e-9
        if kind == "B":
            source = ("F", part, batch) if part == last else ("B", part + 1, batch)
            assert start >= ends[source] - 1e-9


def test_the_others_run_at_about_the_pace_of_a_mean_stage(traced):
    """The idle time of the formulas is that of the laid out schedule: published forms of unequal
    passes are those of equal ones for V schedules alone."""
    _, one = traced
    assert 0.5 < one.others < 1.6
    if one.schedule in ("gpipe", "1f1b", "interleaved"):
        assert one.others == pytest.approx(1.0, abs=0.06)


def test_the_file_is_a_chrome_trace(traced, tmp_path):
    """Complete events with whole nanoseconds, metadata of each track; slices of one thread lie
    inside each other or apart, without which Perfetto's importer drops them."""
    _, one = traced
    data = json.loads(one.to_json())
    assert data["displayTimeUnit"] == "ms"
    threads = defaultdict(list)
    for event in data["traceEvents"]:
        assert event["ph"] in ("X", "M") and isinstance(event["pid"], int)
        if event["ph"] == "M":
            assert event["args"]
            continue
        start, length = round(event["ts"] * 1000), round(event["dur"] * 1000)
        assert abs(event["ts"] * 1000 - start) < 1e-3 and length >= 0
        assert event["args"]["formula"].startswith("scantling.") and 1 <= event["tid"] <= len(
            STREAMS
        )
        threads[event["pid"], event["tid"]].append((start, start + length))
    assert {pid for pid, _ in threads} == set(range(one.layout.pp))
    for spans in threads.values():
        open_ends: list[int] = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1]
            open_ends.append(end)


# "Trace Event Format" (Google, 2016), what each field has to be
FORMAT = {
    "name": (str, "The name of the event, as displayed in Trace Viewer"),
    "cat": (str, "The event categories. This is a comma separated list of categories"),
    "ph": (str, "The event type. This is a single character"),
    "ts": (float, "The tracing clock timestamp of the event ... at microsecond granularity"),
    "dur": (float, "the tracing clock duration of complete events in microseconds"),
    "pid": (int, "The process ID for the process that output this event"),
    "tid": (int, "The thread ID for the thread that output this event"),
    "args": (dict, "Any arguments provided for the event"),
}
# metadata events (ph "M") and the argument of each
METADATA = {
    "process_name": "name",
    "process_sort_index": "sort_index",
    "thread_name": "name",
    "thread_sort_index": "sort_index",
}


def test_the_file_is_what_the_trace_event_format_says(traced):
    """Every field of it and no other; microseconds: from the first slice of the rank that sets the
    pace to its last is the step, on the tracks that the metadata name."""
    assessment, one = traced
    data = json.loads(one.to_json())
    assert data.keys() == {"traceEvents", "displayTimeUnit", "otherData"}
    tracks, named = set(), set()
    for event in data["traceEvents"]:
        if event["ph"] == "M":
            assert event["args"].keys() == {METADATA[event["name"]]}
            if event["name"] == "thread_name":
                named.add((event["pid"], event["tid"]))
            continue
        assert event.keys() == FORMAT.keys() and "," not in event["cat"]
        for field, (kind, _) in FORMAT.items():
            assert isinstance(event[field], (int, float) if kind is float else kind)
        tracks.add((event["pid"], event["tid"]))
    assert tracks <= named
    mine = [e for e in data["traceEvents"] if e["ph"] == "X" and e["pid"] == one.pace]
    mine = [e for e in mine if e["tid"] == 1 + STREAMS.index(COMPUTE)]
    length_us = max(e["ts"] + e["dur"] for e in mine) - min(e["ts"] for e in mine)
    assert length_us == pytest.approx(1e6 * float(assessment.chosen.step.total), rel=1e-6)


def test_each_slice_names_the_function_that_explain_names():
    assessment = assess(design())
    one = trace(assessment)
    named = {e["cat"]: e["args"]["formula"] for e in one.events() if e["ph"] == "X"}
    for part in ("gemm", "tp", "bubble", "optimizer"):
        assert named[part] == computed_by(f"step_breakdown_s.{part}")


def test_gathers_of_sharded_weights_recur_with_each_micro_batch():
    pins = {"pp": 1, "tp": 1, "sharding": "zero3"}
    data = design(**pins).data()
    data["cluster"] = {"accelerator": "h100-sxm", "devices": 16}
    assessment = assess(Design.from_data(data))
    one = trace(assessment)
    wires = [s for s in one.slices if s.stream == "dp" and s.micro_batch >= 0]
    assert {s.micro_batch for s in wires} == set(range(assessment.plan["grad_accum"]))


def test_the_command_writes_the_trace_and_refuses_what_has_no_plan(tmp_path, capsys):
    file, out = tmp_path / "a.yaml", tmp_path / "step.json"
    file.write_text(design().to_yaml())
    assert main(["trace", str(file), "-o", str(out)]) == 0
    assert "sets the pace" in capsys.readouterr().out
    assert json.loads(out.read_text())["otherData"]["schedule"] == "1f1b"
    assert main(["trace", str(file), "-o", str(out)]) == 2
    assert "--force" in capsys.readouterr().err
    impossible = design().change({"model": {"size": 5e12}, "cluster.devices": 8, "plan": None})
    with pytest.raises(DesignError, match="holds no plan"):
        trace(assess(impossible))
    assert COMPUTE == STREAMS[0]


def test_the_desk_draws_the_passes_of_the_trace(traced):
    """In forward passes of the stage that sets the pace, otherwise the same."""
    assessment, one = traced
    drawn = passes_of(assessment.chosen)
    unit = one.layout.makespan_s / drawn.makespan_s
    assert drawn.start_s * unit == pytest.approx(one.layout.start_s)
    assert drawn.span_s * unit == pytest.approx(one.layout.span_s)
    mine = (drawn.device == one.pace) & (drawn.kind == "F")
    forward = (drawn.end_s - drawn.start_s)[mine].sum() / one.layout.m
    assert forward == pytest.approx(1.0)


POLICY = {
    "model": "qwen2.5-7b",
    "cluster": {"accelerator": "h100-sxm", "devices": 16},
    "job": {
        "method": "grpo",
        "rollout": {
            "prompts": 64,
            "samples": 16,
            "mean_response": 1500,
            "max_response": 8192,
            "reward": {"kind": "rule"},
            "environment_s": 0,
        },
    },
}


@pytest.mark.parametrize("colocated", [True, False])
def test_a_policy_step_is_two_sides_on_one_clock(colocated, tmp_path, capsys):
    """Generation, log-probabilities, updates and weights; the last slice ends with the step."""
    one = Design.from_data(POLICY).change({"job.rollout.colocated": colocated})
    file, out = tmp_path / "a.yaml", tmp_path / "step.json"
    file.write_text(one.to_yaml(), encoding="utf-8")
    assert main(["trace", str(file), "-o", str(out)]) == 0
    written = json.loads(out.read_text(encoding="utf-8"))
    slices = [event for event in written["traceEvents"] if event["ph"] == "X"]
    assert {"rollout", "logprob", "train", "weight sync"} <= {each["name"] for each in slices}
    last = max(each["ts"] + each["dur"] for each in slices)
    assert last == pytest.approx(written["otherData"]["step_s"] * 1e6, rel=1e-6)
    begins = {each["name"]: each["ts"] for each in slices}
    assert (begins["logprob"] > begins["rollout"]) == colocated
    assert sc.trace(one).slices


def test_parts_of_a_fine_tune_add_up_to_its_step():
    job = {"method": "lora", "data": {"samples": 1e5, "mean_tokens": 900}}
    one = sc.trace(Design.from_data(POLICY | {"job": job}))
    assert sum(each.end_s - each.start_s for each in one.slices) == pytest.approx(one.total_s)
