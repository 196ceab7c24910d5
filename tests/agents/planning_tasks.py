"""Twenty planning tasks as an agent works them: scripts of tool calls, each from a line of text to
a design, whose verdict the command line then says for itself.

    python tests/agents/planning_tasks.py [FOLDER]

prints a line a task; the designs are left in the folder.
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import mcp
from scantling.cli.app import main
from scantling.design.design import Design
from scantling_mcp.server import build

FIXES = 3  # changes that are tried, one after the other


class Task(NamedTuple):
    """What somebody asks, what they answer to words that were not read, a question that follows,
    what they decide afterwards; `fixed`: nothing may be changed."""

    text: str
    settled: dict[str, Any] = {}
    question: str = ""
    change: dict[str, Any] = {}
    fixed: bool = False


TASKS = (
    Task("70B on 512 H100, 2T tokens, 30 days"),
    Task("8B on 64 H100, 1T tokens, 30 days"),
    Task("Llama 3.1 405B on 16384 H100, 15.6T tokens, 60 days", fixed=True),
    Task("175B MoE, 96 layers, 1024x A100 80GB, 200Gb/s IB, 1T tokens in 30 days"),
    Task("Mixtral 8x22B on 256 H200, 2T tokens", question="earliest-finish"),
    Task("DeepSeek V3 on 2048 H800, 14.8T tokens, fp8"),
    Task("1T dense on 8 V100", fixed=True),
    Task("13B on 32 A100 80GB, 300B tokens, 20 days"),
    Task("70B on 256 H100, 1T tokens, 60 days", question="fewest-devices"),
    Task("70B on 512 H900, 2T tokens", settled={"cluster.accelerator": "h100-sxm"}),
    Task("8B on 128 Trainium7, 1T tokens", settled={"cluster.accelerator": "trn2"}),
    Task("30B on 128 MI300X, 1T tokens, sequence length 8192", question="longest-sequence"),
    Task("70B on 512 TPU v5p, 2T tokens", question="biggest-micro-batch"),
    Task("400B MoE with 17B active on 1024 B200, 10T tokens, 60 days"),
    Task("7B on 16 H100, 100B tokens, budget $100,000"),
    Task("70B on 64 H100, 15T tokens, 30 days", fixed=True),
    Task("20B on 96 H100, 400B tokens", question="largest-model"),
    Task("70B on 1024 H100, 3T tokens, 90 days", question="cheaper"),
    Task(
        "34B on 256 A100 40GB, 1T tokens", change={"job.seq_len": 16384, "constraints.min_mfu": 0.3}
    ),
    Task("3B on 8 RTX 4090, 60B tokens", change={"constraints.deadline_days": 40}),
)


class Ended(NamedTuple):
    """How a task ended: what the tools said of its last design, and what the command line says."""

    task: Task
    calls: int
    verdict: str  # of the tools
    met: bool  # by the tools
    exit: int  # of `scantling design`
    confirmed: str  # verdict of `scantling design --json`


async def worked(client: mcp.Client, task: Task, file: Path) -> Ended:
    """One task."""
    calls = 0

    async def tool(name: str, **arguments: Any) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        result = await client.call_tool(name, arguments)
        if result.is_error:
            raise RuntimeError(f"{name}: {result.content[0].text}")
        answer: dict[str, Any] = result.structured_content
        return answer

    read = await tool("read_brief", text=task.text)
    design = Design.from_data(read["design"])
    if read["unread"]:
        if not task.settled:
            raise RuntimeError(f"nobody said what is meant: {read['unread']}")
        design = design.change({**task.settled, "unread": None})
    design = design.change(task.change)
    first, said = design, await tool("assess", design=design.data())
    if task.question and said["met"]:
        design = design.change(
            _set_by(await tool("answer", design=design.data(), question=task.question))
        )
        said = await tool("assess", design=design.data())
    for _ in range(FIXES):
        if said["met"] or task.fixed:
            break
        offered = await tool("fixes", design=design.data())
        better = [fix for fix in offered["fixes"] if fix["verdict"].startswith("feasible")]
        if not better:
            break
        design = design.change(better[0]["set"])
        said = await tool("assess", design=design.data())
    if design != first and said["plan"] is not None:
        await tool("compare", designs=[first.data(), design.data()])
    if said["plan"] is not None:
        await tool("explain", design=design.data(), key="mfu")
        await tool("goodput", design=design.data())
    design.write(file, force=True)
    exit_code, confirmed = by_command_line(file)
    return Ended(task, calls, said["verdict"], said["met"], exit_code, confirmed)


def _set_by(answer: dict[str, Any]) -> dict[str, Any]:
    """What an answer means for the design; nothing where it has none."""
    if answer["question"] == "cheaper":
        return dict(answer["changes"][0]["set"]) if answer["changes"] else {}
    if answer["value"] is None:
        return {}
    match answer["question"]:
        case "fewest-devices" | "earliest-finish":
            return {"cluster.devices": answer["devices"]}
        case "longest-sequence":
            return {"job.seq_len": answer["seq_len"]}
        case "biggest-micro-batch":
            return {"plan.micro_batch": answer["micro_batch"]}
    return {}


def by_command_line(file: Path) -> tuple[int, str]:
    """(exit code, verdict) of `scantling design FILE --json`."""
    out = StringIO()
    with redirect_stdout(out), redirect_stderr(StringIO()):
        code = main(["design", str(file), "--json"])
    return code, json.loads(out.getvalue())["verdict"]


async def all_worked(folder: Path) -> list[Ended]:
    """Every task, over one server."""
    async with mcp.Client(build(folder)) as client:
        return [
            await worked(client, task, folder / f"task-{number:02}.yaml")
            for number, task in enumerate(TASKS, 1)
        ]


def run(folder: Path) -> list[Ended]:
    """Every task; the designs are left in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return anyio.run(all_worked, folder)


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    for one in run(place):
        line = (
            f"{one.calls} calls, {one.verdict}; the command line: {one.confirmed}, exit {one.exit}"
        )
        print(f"{one.task.text}: {line}")
