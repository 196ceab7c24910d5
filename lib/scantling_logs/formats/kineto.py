"""Traces of the PyTorch profiler (Kineto, Chrome trace JSON), plain or gzip, as a stream: the steps
that it marks, the machine that it names, the seconds of its kernels by part of the step.
"""

import re
from array import array
from functools import cache

import numpy as np
from scantling.physics.step import AXES

from ..found import Found, number
from ..rows import spoken
from ..text import blocks

STEP = re.compile(r'"name":\s*"ProfilerStep#(\d+)"[^{}]{0,400}?"dur":\s*([\d.]+)', re.S)
WORLD = re.compile(r'"world_size":\s*(\d+)')
DEVICE = re.compile(r'"deviceProperties":\s*\[\s*\{[^{}]{0,200}?"name":\s*"([^"]{1,80})"', re.S)
KERNEL = re.compile(
    r'"cat":\s*"kernel",\s*"name":\s*"((?:[^"\\]|\\.){1,8000})"[^{}]{0,200}?"ts":\s*([\d.]+)'
    r',\s*"dur":\s*([\d.]+)[^{}]{0,200}?"args":\s*\{([^{}]*)\}',
    re.S,
)
GROUP = re.compile(r'"Process Group Description":\s*"([^"]*)"')
OWN = re.compile(r'"device":\s*(\d+)')
OVERLAP = 1 << 16


def read(path, found: Found) -> None:
    """What the trace holds."""
    durations = {}
    spans = {}
    devices = set()
    tail = ""
    for block in blocks(path):
        text = tail + block.decode("utf-8", "replace")
        for match in STEP.finditer(text):
            step = int(match[1])
            seconds = number(match[2]) / 1e6
            durations[step] = max(durations.get(step, 0.0), seconds)
        for name, pattern in (("world_size", WORLD), ("accelerator_name", DEVICE)):
            match = pattern.search(text)
            if match:
                found.setting(name, match[1])
        end = 0
        for match in KERNEL.finditer(text):
            end = match.end()
            start = float(match[2])
            part = part_of(match[1], *GROUP.findall(match[4])[:1])
            spans.setdefault(part, array("d")).extend((start, start + float(match[3])))
            devices.update(OWN.findall(match[4]))
        tail = text[max(end, len(text) - OVERLAP) :]
    for step, seconds in sorted(durations.items()):
        found.add(step=float(step), s=seconds)
    if len(devices) == 1:  # without a world the job is the process
        found.setting("world_size", 1)
    found.kernels = {part: s / max(1, len(durations)) for part, s in alone(spans).items()}


@cache
def part_of(kernel: str, group: str = "") -> str:
    """The part of a step that a kernel is, by its name and that of its group of ranks."""
    known = spoken()
    part = next((p for p, words in known["kernels"].items() if re.search(words, kernel, re.I)), "")
    axis = (axis for axis, words in known["groups"].items() if re.search(words, group))
    return next(axis, part) if part == "dp" else part or "elementwise"


def alone(spans: dict) -> dict:
    """{part: seconds in which kernels of it ran}, of an axis those in which no other part did."""
    work = [s for part, s in spans.items() if part not in AXES]
    busy = covered(work)
    return {
        part: covered([*work, s]) - busy if part in AXES else covered([s])
        for part, s in spans.items()
    }


def covered(several: list) -> float:
    """Seconds in which any of some spans lasts: starts and ends in turn [us]."""
    spans = np.concatenate([np.zeros(2), *several]).reshape(-1, 2)
    start, end = spans[np.argsort(spans[:, 0])].T
    reached = np.maximum.accumulate(end)
    return float(np.sum(np.maximum(end[1:] - np.maximum(start[1:], reached[:-1]), 0))) / 1e6
