"""Tables of nccl-tests and rccl-tests (GB/s), and of all_reduce_bench.py (Gbps)."""

import re

from ..found import Found, number
from ..text import lines

ROW = re.compile(
    r"^\s*(?:\d+:\s+)?(\d{1,15})\s+(\d+)\s+(\w+)\s+(\w+)\s+(-?\d+)\s+"
    r"([\d.]+)\s+([\d.]+)\s+([\d.]+)\s"
)
RANK = re.compile(
    r"#\s+Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s+(\S+)\s+device\s+\d+ "
    r"(?:.*\]\s+(?:NVIDIA |AMD )?(.+?)\s*$)?"
)
TEST = re.compile(r"Collective test starting: (\w+)_perf|\b(\w+)_perf\b")
MEMBERS = re.compile(r"\bnranks (\d+)\b")
GBPS = re.compile(r"busbw: ([\d.]+)\s+Gbps")
COLUMNS = ("test", "bytes", "busbw_gbytes_per_s")
MOST = 100_000  # rows that are kept


def read(path, found: Found) -> None:
    """What the tables hold: `collectives` has a row a size."""
    ranks = set()
    test = ""
    for line in lines(path):
        if match := TEST.search(line):
            test = match[1] or match[2]
        told = ()
        if (match := ROW.match(line)) and int(match[1]):  # out of place, as results are quoted
            told = test, int(match[1]), number(match[8])
        elif match := GBPS.search(line):
            told = "all_reduce", None, number(match[1]) / 8
        if told and len(found.collectives) < MOST:
            found.collectives.append(dict(zip(COLUMNS, told)))
        if match := MEMBERS.search(line):
            found.setting("world_size", match[1])
        if match := RANK.search(line):
            ranks.add(match.group(1, 2))
            found.setting("accelerator_name", match[3])
    if ranks:
        numbers, hosts = map(set, zip(*ranks))
        found.setting("world_size", len(numbers))
        found.setting("num_nodes", len(hosts))
