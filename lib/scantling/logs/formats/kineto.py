"""Traces of the PyTorch profiler (Kineto, Chrome trace JSON), plain or gzip, as a stream: the steps
that it marks, the machine that it names."""

import re

from ..found import Found, number
from ..text import blocks

NAME = "kineto"
FRAMEWORK = "PyTorch profiler"
STEP = re.compile(r'"name":\s*"ProfilerStep#(\d+)"[^{}]{0,400}?"dur":\s*([\d.]+)', re.S)
WORLD = re.compile(r'"world_size":\s*(\d+)')
DEVICE = re.compile(r'"deviceProperties":\s*\[\s*\{[^{}]{0,200}?"name":\s*"([^"]{1,80})"', re.S)
OVERLAP = 4096


def knows(head: str) -> bool:
    """Whether the head of a file is of this format."""
    return (
        '"traceEvents"' in head
        or "ProfilerStep#" in head
        or '"deviceProperties"' in head
        or ("jsonData/" in head[:512] and "chakra" in head[:2048])
    )


def read(path) -> Found:
    """What the trace holds."""
    found = Found(
        format=NAME,
        framework=FRAMEWORK,
    )
    durations = {}
    tail = ""
    for block in blocks(path):
        text = tail + block.decode("utf-8", "replace")
        for match in STEP.finditer(text):
            step = int(match[1])
            seconds = number(match[2]) / 1e6
            durations[step] = max(durations.get(step, 0.0), seconds)
        for name, pattern in (("world_size", WORLD), ("accelerator_name", DEVICE)):
            match = None if name in found.settings else pattern.search(text)
            if match:
                found.setting(name, match[1])
        tail = text[-OVERLAP:]
    for step, seconds in sorted(durations.items()):
        found.add(
            step=float(step),
            s=seconds,
        )
    return found
