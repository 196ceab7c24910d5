"""Tables of nccl-tests and rccl-tests (GB/s), and of all_reduce_bench.py (Gbps)."""

import re
from functools import partial
from pathlib import Path

from ..contents import Collective, Contents, number
from ..file_format import FileFormat
from ..line_format import begins
from ..text import lines

MARKS = (("busbw", "algbw"), ("busbw", "Gbps"), ("# nccl-tests",))
OPENS = re.compile(
    r"^.{0,40}#\s+(?:nThread|nccl-tests|Using devices|out-of-place)|busbw: [\d.]+ +Gbps", re.M
)

# size [bytes], count, type, operation, root, time, algbw, busbw, behind what a launcher writes
# before a line (rank, stamp); older releases leave the root out where there is none
ROW = re.compile(
    r"(?<![\w.])(\d{1,15})\s+\d+\s+[a-z]\w*\s+[a-z]\w*\s+(?:-?\d+\s+)?"
    r"[\d.]+\s+[\d.]+\s+([\d.]+)\s"
)
RANK = re.compile(
    r"#\s+Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s+(\S+)\s+device\s+\d+ "
    r"(?:.*\]\s+(?:NVIDIA |AMD )?(.+?)\s*$)?"
)
TEST = re.compile(r"Collective test starting: (\w+)_perf|\b(\w+)_perf\b")
MEMBERS = re.compile(r"\bnranks (\d+)\b")
GBPS = re.compile(r"busbw: ([\d.]+)\s+Gbps")
MOST = 100_000  # rows that are kept


def read(path: Path, log: Contents) -> None:
    """What the tables hold: `collectives` has a row a size."""
    ranks: set[str] = set()
    hosts: set[str] = set()
    test = ""
    for line in lines(path):
        if match := TEST.search(line):
            test = match[1] or match[2]
        row = row_of(line, test)
        if row and len(log.collectives) < MOST:
            log.collectives.append(row)
        if match := MEMBERS.search(line):
            log.add_setting("world_size", match[1])
        if match := RANK.search(line):
            ranks.add(match[1])
            hosts.add(match[2])
            log.add_setting("accelerator_name", match[3])
    if ranks:
        log.add_setting("world_size", len(ranks))
        log.add_setting("num_nodes", len(hosts))


def row_of(line: str, test: str) -> Collective | None:
    """The row that a line of a table is, out of place, as results are quoted."""
    match = ROW.search(line)
    if match and int(match[1]):
        return Collective(test=test, bytes=int(match[1]), busbw_gbytes_per_s=number(match[2]))
    match = GBPS.search(line)
    if match is None:
        return None
    return Collective(test="all_reduce", bytes=None, busbw_gbytes_per_s=number(match[1]) / 8)


NCCL_TESTS = FileFormat(
    name="nccl_tests",
    framework="nccl-tests",
    knows=partial(begins, marks=MARKS, opens=OPENS),
    read=read,
)
