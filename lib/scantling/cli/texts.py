"""The lines that commands print of a design, from what `design --json` says."""

import re
from collections.abc import Iterable
from typing import Any

from ..advise.recovery import SparesRow
from ..base.errors import plain
from ..base.quantities.quantity import band
from ..base.records import Known
from ..base.show import chance, days, params, percent, rate, seconds, several, share, size, usd
from ..endure.tiers import TierRow
from ..verdict.result import Avoid, FixRow, LargestActive, Narrowed, Promise, Result, Sites, band_of
from ..verdict.verdicts import VERDICTS

NO_RUN = "without tokens there are no days and no cost"
NO_FIT = "none, the plan does not fit"
NONE_NEEDED = "none is needed"
NOT_CHECKED = "confirm or complete the file"
NONE_FOUND = "none found"
MORE = "--full: every part of step and memory, why this plan, batch, published runs, assumptions"


def valued(text: str, spread: str) -> str:
    """A figure with its band."""
    return f"{text} ({spread})" if spread else text


def job(result: Result) -> str:
    """What is trained on what: size, devices, tokens, sequence, batch, precision, stack."""
    phases = result["phases"]
    phase = max(phases, key=lambda p: p["tokens"] or 0)
    model = params(result["params"])
    if result["active_params"] < 0.95 * result["params"]:
        model += f" ({params(result['active_params'])} active)"
    tokens = f"{params(phase['tokens'] or 'no').replace(' ', '')} tokens"
    if len(phases) > 1:
        whole = params(sum(p["tokens"] or 0 for p in phases)).replace(" ", "")
        tokens = f"{whole} tokens in {len(phases)} phases, in the largest {tokens}"
    batch = params(phase["global_batch"] * phase["seq_len"]).replace(" ", "")
    return (
        f"{model} parameters, {result['devices']:,} {result['accelerator']}, {tokens}, "
        f"seq {phase['seq_len']:,}, batch {phase['global_batch']:,} ({batch} tokens), "
        f"{result['plan']['precision']}, {result['stack'] or 'no stack named'}"
    )


def run(result: Result) -> str:
    """Days and dollars that are likely, with their bands, what to promise, and what holds the bands
    up."""
    if result["days"] is None:
        return NO_RUN
    likely = result["likely"]
    line = f"likely {valued(days(likely['days']), band_of(result, 'likely.days'))}, "
    if likely["cost_usd"] is None:
        line += "no price"
    else:
        line += valued(usd(likely["cost_usd"]), band_of(result, "likely.cost_usd"))
    loss = result["to_loss"]
    if loss and loss["days_low"] is not None:
        spread = band("days", loss["days_low"], loss["days_high"])
        line += f"; {spread} to a loss of {loss['target_loss']:g} by {len(loss['rows'])} laws"
    promise = result.get("promise")
    if promise and promise["days_p90"] is not None:
        line += f"; to promise: {pair(promise['days_p90'], promise['cost_p90'])}"
    if promise and promise["deadline_kept"] is not None:
        line += f"; deadline kept: {chance(promise['deadline_kept'])}"
    if promise and promise["budget_kept"] is not None:
        line += f"; budget kept: {chance(promise['budget_kept'])}"
    return f"{line}; 80 % bands, {result['band_tier']}"


def pair(run_days: Known, cost_usd: Known) -> str:
    """Days, and dollars where there is a price."""
    if run_days is None:
        return NO_RUN
    return days(run_days) if cost_usd is None else f"{days(run_days)}, {usd(cost_usd)}"


def mfu(result: Result) -> str:
    """The MFU that leads, and that of the bf16 peak where it is another one."""
    leading = valued(share(result["mfu_shown"]), band_of(result, "mfu_shown"))
    peak = result["mfu_denominator"].partition(" of ")[0]
    line = f"{leading} of {peak}, {result['mfu_basis']} attention"
    if result["devices_used"] < result["devices"]:
        line += f", of the {result['devices_used']:,} devices in use"
    if abs(result["mfu_bf16_peak"] / result["mfu"] - 1) > 0.1:
        of_bf16 = result["mfu_shown"] * result["mfu_bf16_peak"] / result["mfu"]
        line += f"; {share(of_bf16)} of the bf16 peak"
    return line


def memory(result: Result) -> str:
    """Memory of the fullest device, and the chance of running out."""
    total, capacity = result["memory_bytes"]["total"], result["memory_bytes"]["capacity"]
    return (
        f"{size(total)} of {size(capacity)} ({percent(total / capacity, 0)}); "
        f"{chance(result['oom_probability'])} chance of running out"
    )


def goodput(result: Result) -> str:
    """Goodput, failures, saves, spare nodes; without them what a failure does."""
    spares = several(result["spares"], "spare node")
    if not result["spares"]:
        spares += f": {result['endurance']['without_spares']}"
    return (
        f"{share(result['goodput'])}; a failure every {seconds(result['mtbf_s'])}, a checkpoint "
        f"every {seconds(result['checkpoint_interval_s'])}, {spares}"
    )


def step(result: Result, parts: Iterable[str]) -> str:
    """The step, tokens a second, its largest parts."""
    span = valued(seconds(result["step_s"]), band_of(result, "step_s"))
    tokens = rate(result["tokens_per_s_per_device"], "tokens/s")
    return f"{span}, {tokens} a device; {', '.join(parts)}"


def fastest(plan: str, gain: float, why_not: str) -> str:
    """The fastest plan with the allowed chance of running out of memory, and why another is
    chosen."""
    return f"{plan}: {share(gain)} less time a step; not chosen: {why_not}"


def sites(row: Sites) -> str:
    """How several sites keep in step."""
    apart = "; what that costs in tokens is open" if row["confirm"] else ""
    return (
        f"{row['sites']}, {row['gbits_per_s']:,.4g} Gbit/s and {row['rtt_ms']:.3g} ms apart: "
        f"{size(row['exchange_bytes'])} sent in {seconds(row['exchange_s'])} every "
        f"{several(row['local_steps'], 'step')}, {percent(row['share'], 1)} of the time{apart}"
    )


def worth_knowing(row: Narrowed) -> str:
    """An input that is worth knowing first, and the bands then."""
    bands = [band("days", row["days_low"], row["days_high"])]
    if row["cost_usd_low"] is not None:
        bands.append(band("cost_usd", row["cost_usd_low"], row["cost_usd_high"]))
    return (
        f"{row['what']}: the band of {row['band']} narrows by {percent(row['narrows'], 0)}; then "
        f"{' and '.join(bands)}"
    )


def avoid_in_short(row: Avoid) -> str:
    """What to avoid, and what it costs."""
    return f"{row['what']} — {row['cost']}"


def avoid(row: Avoid) -> str:
    """What to avoid, why, and what it costs."""
    return f"{row['what']} — {row['why']} — {row['cost']}"


def assumed(n: int, names: str) -> str:
    """How many inputs were assumed, some of them by name."""
    return f"{several(n, 'input')} assumed" + (f", among them {names}" if names else "")


def change(row: FixRow, most: int = 1200) -> str:
    """A change in one line: what, the verdict with it, likely days, dollars, MFU and what is still
    missed; where the line has more than `most` characters, what stands in brackets is left out,
    then the figures of what is missed, and then the words of the change are cut."""
    likely = row["likely"]
    parts = [
        days(likely["days"]) if likely["days"] is not None else "",
        usd(likely["cost_usd"]) if likely["cost_usd"] is not None else "",
        f"MFU {share(row['mfu_shown'])}" if row.get("mfu_shown") is not None else "",
    ]
    figures = ", ".join(part for part in parts if part)
    words, after = row["change"], f" → {VERDICTS[row['verdict']].name.lower()}: {figures}"
    missed = [re.split(r", |; | \(", text)[0] for text in row["missed"]]
    still = _still(missed)
    if len(words + after + still) > most:
        words = re.sub(r" \([^()]*\)", "", words)
    if len(words + after + still) > most:
        still = _still([text.partition(":")[0] for text in missed])
    return plain(words, max(most - len(after + still), 24)) + after + still


def _still(missed: list[str]) -> str:
    """What a change leaves missed."""
    return f"; still missed: {', '.join(missed)}" if missed else ""


def tried(n: int, floor: float, best: str) -> str:
    """That no change reaches an MFU floor, and what the best come to."""
    return f"none of {n} changes reaches MFU {share(floor)}: {best}"


def active(row: LargestActive) -> str:
    """The largest active count that meets the deadline."""
    return (
        f"the active count was not given: up to {params(row['active_params'])} "
        f"(top-{row['top_k']} of {row['experts']}) meet the deadline, in {days(row['days'])}"
    )


def tier(row: TierRow) -> str:
    """Copies of one tier of the checkpoint."""
    return (
        f"{row['tier']}: every {seconds(row['every_s'])}, written in {seconds(row['write_s'])}, "
        f"restores {', '.join(row['restores']) or 'nothing'}"
    )


def spares(row: SparesRow) -> str:
    """What so many spare nodes bring."""
    return (
        f"Spares {row['spares']}: goodput {share(row['goodput'])}; "
        f"undisturbed {days(row['days'])}, {usd(row['cost_usd'])}"
    )


def promised(row: Promise) -> str:
    """The likely days and dollars, and those to promise."""
    return (
        f"Likely {pair(row['days_p50'], row['cost_p50'])}; to promise, kept in nine of ten runs: "
        f"{pair(row['days_p90'], row['cost_p90'])}"
    )


def assumption(field: str, value: Any, why: str) -> str:
    """An assumption on one line, foreign text made plain."""
    return f"assumed {plain(field, 60)}: {plain(value, 60)} ({plain(why, 200)})"


def searched(legal: int, evaluated: int, span_s: float) -> str:
    """How much a search looked at."""
    return f"{legal:,} legal plans, {evaluated:,} timed, {span_s:.2f} s"
