"""A post-training design in lines: what the terminal and the report print alike."""

from scantling.base.show import (
    chance,
    days as days_text,
    number,
    percent,
    seconds,
    several,
    size,
    usd,
)
from scantling.verdict.verdicts import VERDICTS

from .posttrained import Fix, Posttrained, RolloutRow
from .texts import PARTS, PHASES, TRAINER_MEMORY


def fix_text(fix: Fix) -> str:
    """A change and what it comes to."""
    figures = [VERDICTS[fix.verdict].name.lower()]
    if fix.step_s is not None:
        figures.append(f"{seconds(fix.step_s)} a step")
    if fix.days is not None:
        figures.append(days_text(fix.days))
    if fix.cost_usd is not None:
        figures.append(usd(fix.cost_usd))
    return f"{fix.change} → {', '.join(figures)}"


def rollout_text(r: RolloutRow) -> str:
    """The engine's plan."""
    where = "shares the devices" if r["colocated"] else f"on {r['devices']:,} devices of its own"
    return (
        f"{r['engine']} {where}, tp {r['tp']} · dp {r['dp']}, {several(r['running'], 'sample')} at "
        f"once a replica, weights by {r['weight_sync']}"
    )


def phases_text(result: Posttrained) -> str:
    """The phases of a policy step."""
    times = result.phases_s.items()
    return ", ".join(f"{PHASES[name].lower()} {seconds(value)}" for name, value in times)


def step_text(result: Posttrained) -> str:
    """The step with its interval and, of a fine-tune, what it goes to."""
    assert result.step_s is not None
    low, high = result.step_s_low or 0.0, result.step_s_high or 0.0
    text = f"{seconds(result.step_s)} ({seconds(low)} to {seconds(high)} in 80 %)"
    if result.tokens_per_s_per_device:
        text += f", {number(result.tokens_per_s_per_device)} tokens/s a device"
    if result.rollout is None:
        total = sum(result.step_parts_s.values())
        largest = sorted(result.step_parts_s.items(), key=lambda part: -part[1])[:4]
        text += "; " + ", ".join(
            f"{PARTS[name].lower()} {percent(part / total)}" for name, part in largest
        )
    return text


def memory_text(result: Posttrained) -> str:
    """The trainer's fullest device."""
    used = result.memory_bytes
    parts = ", ".join(f"{name.lower()} {size(used[key])}" for key, name in TRAINER_MEMORY.items())
    out = chance(result.oom_probability or 0.0)
    total = f"{size(used['total'])} of {size(used['capacity'])}"
    return f"{total}: {parts}; {out} chance of running out"


def run_text(result: Posttrained) -> str:
    """Days and dollars to the last step; nothing where the design names no end."""
    if result.days is None or result.steps is None:
        return ""
    low, high = result.days_low or 0.0, result.days_high or 0.0
    text = f"{result.steps:,.0f} steps: likely {days_text(result.days)} ({days_text(low)} to "
    text += days_text(high)
    if result.cost_usd is None:
        return f"{text}); to promise: {days_text(high)}"
    text += f"), {usd(result.cost_usd)}"
    dear = result.cost_usd_high
    if result.cost_usd_low is not None and dear is not None:
        text += f" ({usd(result.cost_usd_low)} to {usd(dear)})"
        return f"{text}; to promise: {days_text(high)}, {usd(dear)}"
    return f"{text}; to promise: {days_text(high)}"


def goodput_text(result: Posttrained) -> str:
    """What failures and saves leave of the time."""
    if result.goodput is None or result.checkpoint_interval_s is None or result.mtbf_s is None:
        return ""
    return (
        f"{percent(result.goodput)}; a failure every {seconds(result.mtbf_s)}, a checkpoint of "
        f"{size(result.checkpoint_bytes or 0.0)} every {seconds(result.checkpoint_interval_s)}"
    )
