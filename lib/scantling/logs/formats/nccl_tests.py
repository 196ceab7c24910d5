"""Tables of nccl-tests and rccl-tests (GB/s), and of all_reduce_bench.py (Gbps)."""

import re

from ..found import Found, number
from ..text import lines

ROW = re.compile(
    r"^\s*(?:\d+:\s+)?(\d{1,15})\s+(\d+)\s+(\w+)\s+(\w+)\s+(-?\d+)\s+"
    r"([\d.]+)\s+([\d.]+)\s+([\d.]+)\s"
)
RANK = re.compile(r"#\s+Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s+(\S+)\s+device\s+\d+ (.*)")
TEST = re.compile(r"Collective test starting: (\w+)_perf|\b(\w+)_perf\b")
MEMBERS = re.compile(r"\bnranks (\d+)\b")
GBPS = re.compile(r"(algbw|busbw): ([\d.]+)\s+Gbps")
COLUMNS = ("test", "bytes", "busbw_gbytes_per_s")
CHIP = re.compile(r"\]\s+(?:NVIDIA |AMD )?(.+?)\s*$")


def read(path, found: Found) -> None:
    """What the tables hold: `collectives` has a row a size."""
    ranks = set()
    hosts = set()
    test = ""
    for line in lines(path):
        match = TEST.search(line) if "_perf" in line else None
        test = (match[1] or match[2]) if match else test
        row = ROW.match(line) if "#" not in line[:4] else None
        bench = GBPS.search(line)
        told = ()
        if row and int(row[1]):  # out of place, as results are quoted
            told = test, int(row[1]), number(row[8])
        elif bench and bench[1] == "busbw":
            told = "all_reduce", None, number(bench[2]) / 8
        if told and len(found.collectives) < 100_000:
            found.collectives.append(dict(zip(COLUMNS, told)))
        match = MEMBERS.search(line) if "nranks" in line else None
        if match and not ranks:
            found.setting("world_size", match[1])
        match = RANK.search(line) if "Rank" in line else None
        if match:
            ranks.add(match[1])
            hosts.add(match[2])
            chip = CHIP.search(match[3])
            found.setting("accelerator_name", chip[1] if chip else "")
    if ranks:
        found.setting("world_size", len(ranks))
        found.setting("num_nodes", len(hosts))
