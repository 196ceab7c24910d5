"""Traces of the PyTorch profiler (Kineto, Chrome trace JSON), plain or gzip, as a stream: the steps
that it marks, the machine that it names, the seconds of its kernels by part of the step.
"""

import re
from array import array
from collections.abc import Iterable, Mapping
from functools import cache, partial
from pathlib import Path

import numpy as np
from scantling.physics.step import AXES

from ..contents import Column, Contents, number
from ..file_format import FileFormat
from ..line_format import begins
from ..text import blocks

MARKS = (('"traceEvents"',), ("ProfilerStep#",), ('"deviceProperties"',), ("jsonData/", "chakra"))
OPENS = re.compile(r"\A\s*[{\[]|\A[\w./-]{1,300}[\s\S]{1,400}ustar")
STEP = re.compile(r'"name":\s*"ProfilerStep#(\d+)"[^{}]{0,400}?"dur":\s*([\d.]+)', re.S)
WORLD = re.compile(r'"world_size":\s*(\d+)')
DEVICE = re.compile(r'"deviceProperties":\s*\[\s*\{[^{}]{0,200}?"name":\s*"([^"]{1,80})"', re.S)
KERNEL = re.compile(
    r'"cat":\s*"kernel",\s*"name":\s*"((?:[^"\\]|\\.){1,8000})"[^{}]{0,200}?"ts":\s*([\d.]+)'
    r',\s*"dur":\s*([\d.]+)[^{}]{0,200}?"args":\s*\{([^{}]*)\}',
    re.S,
)
GROUP = re.compile(r'"Process Group Description":\s*"([^"]*)"')
DEVICE_INDEX = re.compile(r'"device":\s*(\d+)')
OVERLAP = 1 << 16
# kernels by class, the first that fits; the rest are element-wise
EXCHANGE = re.compile(r"nccl|rccl|oneccl", re.I)
KERNELS = {
    "attention": re.compile(r"flash|fmha|attention|sdpa|_attn_", re.I),
    "gemm": re.compile(
        r"gemm|matmul|cublas|cutlass.*Kernel|Cijk_|nvjet|xmma|wgmma|gemv|_mm_", re.I
    ),
}
# the axis of a collective, by what its process group is described as; dp where it is none of these
GROUPS = {
    "ep": re.compile(r"EXPERT_MODEL|mesh_ep|^ep"),
    "tp": re.compile(r"TENSOR_MODEL|mesh_tp|^tp"),
    "pp": re.compile(r"PIPELINE|mesh_pp|^pp"),
    "cp": re.compile(r"CONTEXT_PARALLEL|mesh_cp|^cp"),
}


def read(path: Path, log: Contents) -> None:
    """What the trace holds."""
    durations_s: dict[int, float] = {}
    spans: dict[str, array[float]] = {}
    devices: set[str] = set()
    tail = ""
    for block in blocks(path):
        text = tail + block.decode("utf-8", "replace")
        for match in STEP.finditer(text):
            step = int(match[1])
            durations_s[step] = max(durations_s.get(step, 0.0), number(match[2]) / 1e6)
        for name, pattern in (("world_size", WORLD), ("accelerator_name", DEVICE)):
            setting = pattern.search(text)
            if setting:
                log.add_setting(name, setting[1])
        end = 0
        for match in KERNEL.finditer(text):
            end = match.end()
            start = float(match[2])
            group = GROUP.search(match[4])
            part = part_of(match[1], group[1] if group else "")
            spans.setdefault(part, array("d")).extend((start, start + float(match[3])))
            devices.update(DEVICE_INDEX.findall(match[4]))
        tail = text[max(end, len(text) - OVERLAP) :]
    for step, seconds in sorted(durations_s.items()):
        log.add_step({Column.STEP: float(step), Column.SECONDS: seconds})
    if len(devices) == 1:  # without a world the job is the process
        log.add_setting("world_size", 1)
    steps = max(1, len(durations_s))
    log.kernels = {part: seconds / steps for part, seconds in alone(spans).items()}


@cache
def part_of(kernel: str, group: str = "") -> str:
    """The part of a step that a kernel is, by its name and that of its group of ranks."""
    if EXCHANGE.search(kernel):
        return next((axis for axis, words in GROUPS.items() if words.search(group)), "dp")
    return next((part for part, words in KERNELS.items() if words.search(kernel)), "elementwise")


def alone(spans: Mapping[str, "array[float]"]) -> dict[str, float]:
    """{part: seconds in which kernels of it ran}, of an axis those in which no other part did."""
    work = [span for part, span in spans.items() if part not in AXES]
    busy_s = covered(work)
    return {
        part: covered([*work, span]) - busy_s if part in AXES else covered([span])
        for part, span in spans.items()
    }


def covered(several: Iterable["array[float]"]) -> float:
    """Seconds in which any of some spans lasts: starts and ends in turn [us]."""
    spans = np.concatenate([np.zeros(2), *several]).reshape(-1, 2)
    start, end = spans[np.argsort(spans[:, 0])].T
    reached = np.maximum.accumulate(end)
    return float(np.sum(np.maximum(end[1:] - np.maximum(start[1:], reached[:-1]), 0))) / 1e6


KINETO = FileFormat(
    name="kineto",
    framework="PyTorch profiler",
    knows=partial(begins, marks=MARKS, opens=OPENS),
    read=read,
)
