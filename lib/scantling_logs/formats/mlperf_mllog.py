"""MLPerf training result logs: `:::MLLOG {json}` lines.

Step times are the submitter's own where it logs them, else differences of the events that come
with a count of samples or tokens; those include evaluation.
"""

import re

from ..found import NAN, Found, number
from ..rows import events, spoken


def devices_of(platform: str) -> int:
    """The devices that the name of a platform tells, 0 where it tells none."""
    for pattern, product in spoken()["mlperf"]["platforms"].items():
        match = re.search(pattern, platform)
        if match:
            for group in match.groups():
                product *= int(group)
            return product
    return 0


def read(path, found: Found) -> None:
    """What the log holds."""
    words = spoken()["mlperf"]
    times = []
    counted = {name: [] for name in words["events"]}
    for event, line in events(path, ":::MLLOG "):
        for name, pattern in words["aside"].items() if line else ():
            match = name not in found.settings and re.search(pattern, line[:20_000])
            if match:
                found.setting(name, match[match.lastindex])
        key = event.get("key")
        value = event.get("value")
        more = event.get("metadata")
        more = more if isinstance(more, dict) else {}
        found.seen(at := number(event.get("time_ms")) / 1e3)
        if key in words["settings"]:
            found.setting(key, f"{value:g}" if isinstance(value, float) else value)
        if key == "tracked_stats" and isinstance(value, dict):
            told = map(value.get, ("train_step_time", "train_step_timing in s"))
            times += [
                (float(more.get("step") or len(times)), s) for s in map(number, told) if s > 0
            ]
        unit = next((c for c in words["counts"] if number(more.get(c)) == more.get(c)), "")
        if key in counted and unit:
            counted[key].append((float(more[unit]), at, unit))
    _platform(found)
    steps_of(found, times, counted)


def _platform(found: Found) -> None:
    """Devices and sequence length, from the platform and the benchmark."""
    devices = devices_of(found.settings.get("submission_platform", ""))
    if devices and "num_gpus_per_node" not in found.settings:
        found.settings["devices_total"] = str(devices)
    benchmark = found.settings.get("submission_benchmark")
    found.setting("model_name", spoken()["mlperf"]["models"].get(benchmark))
    lengths = spoken()["mlperf"]["seq_len"]
    if benchmark in lengths and "max_sequence_length" not in found.settings:
        found.setting("max_sequence_length", lengths[benchmark])
        found.notes.append(f"seq_len: the rules of the benchmark {benchmark} fix it")


def steps_of(found: Found, times: list, counted: dict) -> None:
    """Step lines: times as logged, else the clock of the events with the richest counts."""
    for step, seconds in times:
        found.add(step=step, s=seconds)
    rows = next((rows for rows in counted.values() if len(rows) > 2), [])
    if times or not rows:
        return
    batch, sequence = (
        float(found.settings.get(name, NAN))
        for name in ("global_batch_size", "max_sequence_length")
    )
    last, _, unit = rows[-1]
    per_step = 1.0 if unit == "step_num" else batch
    if unit in ("epoch_num", "first_epoch_num") and last % (batch * sequence) == 0:
        per_step = batch * sequence
    for count, at, _ in rows:
        found.add(step=count / per_step, clock_s=at)
    found.notes.append("step_s: from the clock of events, evaluation included")
