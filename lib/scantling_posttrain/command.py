"""What `scantling design` and `scantling search` print of a post-training design."""

from rich.console import Console
from rich.text import Text
from scantling.base.console import console, print_json
from scantling.base.errors import plain
from scantling.base.show import (
    chance,
    days as days_text,
    params,
    percent,
    seconds,
    several,
    size,
    usd,
)
from scantling.design.design import Design
from scantling.verdict.verdicts import EXIT, VERDICTS

from .answering import posttrain
from .posttrained import Posttrained

WIDTH = 9  # of a line's name
COLOURS = {"good": "bold green", "warn": "bold yellow", "bad": "bold red"}
MOST_ASSUMED = 8


def answer(design: Design, as_json: bool = False) -> int:
    """Print the answer to a post-training design; returns the exit code of its verdict."""
    result = posttrain(design)
    if as_json:
        print_json(result.as_dict())
    else:
        for line in lines_of(result):
            show(line, result, console())
    return EXIT[result.verdict]


def show(line: tuple[str, str], result: Posttrained, out: Console) -> None:
    """One line: its name, its text."""
    name, text = line
    if not name:
        out.print(Text(plain(text, 400), style="bold"))
        return
    style = COLOURS[VERDICTS[result.verdict].tone] if name == "Verdict" else "dim"
    out.print(Text(f"{name:<{WIDTH}}", style=style).append(plain(text, 600), "default"))


def lines_of(result: Posttrained) -> list[tuple[str, str]]:
    """(name, text) of every line."""
    verdict = VERDICTS[result.verdict].name
    lines = [("", f"{result.name}: {result.method}"), ("Verdict", verdict)]
    lines += [("Limit", text) for text in result.limits]
    if result.plan is None:
        return lines + [("Ask", text) for text in result.asks]
    trained = f"{params(result.trained_params)} of {params(result.params)} parameters trained"
    lines.append(("Job", f"{trained}, {several(result.devices, 'device')}"))
    lines.append(("Plan", result.plan_words))
    lines += rollout_lines(result)
    lines += [("Step", step_text(result)), ("Memory", memory_text(result))]
    lines += run_lines(result)
    lines += [("Why", text) for text in result.why]
    lines += [("Avoid", f"{one.what}: {one.cost}") for one in result.others]
    for one in result.sensitivity:
        lines.append(("If", f"{one.change}: {seconds(one.step_s)} a step ({one.share:+.0%})"))
    lines += [("Ask", text) for text in result.asks]
    for each in result.assumed[:MOST_ASSUMED]:
        lines.append(("Assumed", f"{each.field} {each.value}: {each.why}"))
    rest = len(result.assumed) - MOST_ASSUMED
    if rest > 0:
        lines.append(("Assumed", f"{rest} more under --json"))
    return lines


def rollout_lines(result: Posttrained) -> list[tuple[str, str]]:
    """The engine's plan and the phases of a step."""
    if result.rollout is None:
        return []
    r = result.rollout
    where = "shares the devices" if r["colocated"] else f"{r['devices']:,} devices of its own"
    engine = (
        f"{r['engine']} {where}, tp {r['tp']} · dp {r['dp']}, {r['running']} samples at once a "
        f"replica, weights by {r['weight_sync']}"
    )
    times = ", ".join(
        f"{name.removesuffix('_s').replace('_', ' ')} {seconds(value)}"
        for name, value in result.phases_s.items()
    )
    return [("Rollout", engine), ("Phases", times)]


def step_text(result: Posttrained) -> str:
    """The step with its interval and, of a fine-tune, what it goes to."""
    assert result.step_s is not None
    low, high = result.step_s_low or 0.0, result.step_s_high or 0.0
    text = f"{seconds(result.step_s)} ({seconds(low)} to {seconds(high)} in 80 %)"
    if result.tokens_per_s_per_device:
        text += f", {result.tokens_per_s_per_device:,.0f} tokens/s a device"
    if result.rollout is None:
        total = sum(result.step_parts_s.values())
        largest = sorted(result.step_parts_s.items(), key=lambda part: -part[1])[:4]
        text += "; " + ", ".join(f"{name} {percent(part / total)}" for name, part in largest)
    return text


def memory_text(result: Posttrained) -> str:
    """The trainer's fullest device."""
    used = result.memory_bytes
    names = ("weights", "trained", "activations")
    parts = ", ".join(f"{name} {size(used[name])}" for name in names)
    out = chance(result.oom_probability or 0.0)
    total = f"{size(used['total'])} of {size(used['capacity'])}"
    return f"{total}: {parts}; {out} chance of running out"


def run_lines(result: Posttrained) -> list[tuple[str, str]]:
    """Days, dollars and goodput."""
    lines = []
    if result.days is not None and result.steps is not None:
        low, high = result.days_low or 0.0, result.days_high or 0.0
        text = f"{result.steps:,.0f} steps: {days_text(result.days)} "
        text += f"({days_text(low)} to {days_text(high)})"
        if result.cost_usd is not None:
            text += f", {usd(result.cost_usd)}"
        if result.cost_usd_low is not None and result.cost_usd_high is not None:
            text += f" ({usd(result.cost_usd_low)} to {usd(result.cost_usd_high)})"
        lines.append(("Run", text))
    if result.goodput is not None and result.checkpoint_interval_s is not None:
        saved, every = result.checkpoint_bytes or 0.0, result.checkpoint_interval_s
        text = f"{percent(result.goodput)}; a checkpoint of {size(saved)} every {seconds(every)}"
        lines.append(("Goodput", text))
    return lines
