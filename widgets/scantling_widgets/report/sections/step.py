"""A step of the plan: memory, time and its losses, communication, what each kind of block takes,
what moves the result."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from scantling.base.quantities.quantity import quantity, show
from scantling.base.show import bytes_per_s, params, seconds, share, size
from scantling.catalogue.words import MEMORY_PARTS
from scantling.plans.plan_names import of_modules
from scantling.verdict.overheads import overheads, own_computation
from scantling.verdict.result import FigureKey, figure
from scantling.verdict.texts import loss_name

from ...charts.network import by_axis
from ..blocks import Block, Bullets, Heading, Paragraph, Section, Table, columns, line, rows, strong
from ..phrases import (
    after_colon,
    recompute_name,
    sentence,
    sharding_name,
    under,
    upfirst,
    whole,
    within,
)
from ..view import View, fullest_phase
from .plan import tier_name

MOST_INPUTS = 8  # in the list of what moves the result
MOST_OVERHEADS = 6


# ---------------------------------------------------------------- memory
def memory(view: View) -> Section:
    """What fills the fullest device, and what makes it less."""
    p, a = view.plan, view.facts
    items = [_fullest(view)]
    if p["sharding"] != "none" and p["dp"] > 1:
        items.append(_sharded(view))
    items.append(_recomputed(view))
    if p.get("sp") and p["tp"] > 1:
        text = f": norm and dropout activations cut over the {p['tp']} tensor ranks."
        items.append(line(strong("Sequence parallelism"), text))
    if p["cp"] > 1:
        text = f": every activation cut over {p['cp']} ranks."
        items.append(line(strong("Context parallelism"), text))
    if (p.get("offload") or "none") != "none":
        text = f" ({p['offload']}).{_because(view, 'offload')}"
        items.append(line(strong("Offload"), text))
    if figure(a, "mtp_params"):
        text = f"({show('mtp_params', a['mtp_params'])} parameters) are held by the last stage."
        items.append(line(f"The multi-token prediction modules {text}"))
    return Section(id="memory", blocks=[Heading(text="Memory"), Bullets(items=items)])


def _fullest(view: View) -> Markup:
    memory, stages = view.facts["memory_bytes"], view.facts.get("memory_by_stage") or []
    where = "the fullest device"
    if len(stages) > 1:
        fullest = max(stages, key=lambda stage: float(stage["total"]))
        where = f"stage {fullest['stage']}, the fullest of 0 to {stages[-1]['stage']}"
    phase = fullest_phase(view.facts)
    of_phase = f" in the phase {phase}" if phase else ""
    parts = ", ".join(f"{part} {size(memory[part])}" for part in MEMORY_PARTS if memory.get(part))
    shards = (
        "" if memory["weights"] else "; the shards of the weights are the optimizer's own copies"
    )
    return line(
        strong(f"{size(memory['total'])} of {size(memory['capacity'])}"),
        f" on {where}{of_phase}: {parts}{shards}.",
    )


def _sharded(view: View) -> Markup:
    p = view.plan
    ranks = p.get("shard_group") or p["dp"]
    both = p["cp"] > 1 and p.get("shard_group") == p["dp"] * p["cp"]
    text = f" over {whole(ranks)} ranks{', data times context parallel' if both else ''}."
    why = [sentence(after_colon(text)) for text in view.why("sharding") if ":" in text]
    return line(strong(sharding_name(p["sharding"])), " ".join([text, *why]))


def _recomputed(view: View) -> Markup:
    p = view.plan
    text = of_modules(p)
    if p.get("recompute_layers"):
        text += f" in {p['recompute_layers']} layers{' of a stage' if p['pp'] > 1 else ''}"
    time = view.facts["step_breakdown_s"].get("recompute")
    if time:
        text += f": {seconds(time)} a step"
    name = strong(recompute_name(p["recompute"]))
    return line(name, f"{text}.{_because(view, 'recompute')}")


def _because(view: View, axis: str) -> str:
    """What the library says of a choice, each line behind a blank."""
    return "".join(f" {sentence(text)}" for text in view.why(axis))


# ---------------------------------------------------------------- time
def step(view: View) -> Section:
    """A step, its overheads, the model's own computation, and what is hidden."""
    a = view.facts
    rate = show("tokens_per_s_per_device", a["tokens_per_s_per_device"])
    work = show("model_tflops_per_device", a["model_tflops_per_device"])
    items = [
        line(
            strong(f"{seconds(a['step_s'])} a step"),
            f"{within(a, 'step_s')}: {rate} a device, {work}.",
        )
    ]
    parts, offload = a["step_breakdown_s"], view.plan["offload"]
    over = [
        f"{loss_name(part, offload)}, {seconds(time_s)}"
        for part, time_s in overheads(parts)[:MOST_OVERHEADS]
        if time_s > 0
    ]
    if over:
        largest = strong(f"Bottleneck: the largest overhead is {over[0]}")
        items.append(line(largest, f"; then {'; '.join(over[1:])}." if over[1:] else "."))
    own = ", ".join(
        f"{quantity(f'step_breakdown_s.{part}').label} {seconds(time_s)}"
        for part, time_s in own_computation(parts)
        if time_s > 0
    )
    items.append(line(f"The model's own computation: {own}."))
    blocks: list[Block] = [Heading(text="Step time and its losses"), Bullets(items=items)]
    overlap = by_axis(a)
    if overlap:
        heading = Heading(text="Communication overlap", level=3)
        blocks += [heading, Bullets(items=[_overlap(view, row) for row in overlap])]
    return Section(id="step", blocks=blocks)


def _overlap(view: View, row: Mapping[str, Any]) -> Markup:
    if row["hidden_s"]:
        collectives = view.parts["planes"]["collectives"]
        hidden = f"{seconds(row['hidden_s'])} hidden {under(collectives, row['axis'])}"
    else:
        hidden = "nothing hidden"
    exposed = "none exposed"
    if row["exposed_s"]:
        exposed = strong(f"{seconds(row['exposed_s'])} exposed")
    return line(strong(row["axis"].upper()), f": {hidden}, ", exposed, ".")


# ---------------------------------------------------------------- communication
def communication(view: View) -> Section | None:
    """What each axis sends over which tier."""
    traffic = view.facts.get("communication")
    if not traffic:
        return None
    table = Table(
        columns=columns(
            "Axis",
            "Collective",
            "Ranks#",
            "Tier",
            "Bytes a step, a device#",
            "Calls#",
            "Time#",
            "Exposed#",
        ),
        rows=rows(
            (
                strong(row["axis"].upper()),
                row["what"],
                whole(row["group"]),
                tier_name(view, row["tier"]),
                size(row["bytes"]),
                whole(row["calls"]),
                seconds(row["time_s"]),
                seconds(row["exposed_s"]),
            )
            for row in traffic
        ),
        css="",
    )
    heading = Heading(text="Communication by axis and tier")
    return Section(id="communication", blocks=[heading, table])


# ---------------------------------------------------------------- kinds of blocks
def layers(view: View) -> Section | None:
    """What each kind of block takes, where a model has several."""
    kinds = {layer for run in view.facts["stages"] for layer in run["layers"]}
    if len(kinds) < 2:
        return None
    context = view.plan["cp"] > 1
    titles = ["Kind", "Blocks#", "Parameters#", "Compute#", "Memory#"]
    if context:
        titles.append("Bytes over cp#")
    cells = []
    for block in view.facts["blocks"]:
        row = [
            block["kind"],
            whole(block["count"]),
            params(block["parameters"]),
            share(block["step_share"]),
            share(block["memory_share"]),
        ]
        if context:
            row.append(share(block["context_share"]))
        cells.append(row)
    note = (
        "Compute: kernels of all layers and heads, forward and backward, nothing repeated. Memory: "
        "weights, gradients, optimizer states and saved activations over all stages."
    )
    return Section(
        id="layers",
        blocks=[
            Heading(text="What each kind of block takes"),
            Table(columns=columns(*titles), rows=rows(cells), css=""),
            Paragraph(text=note, css="cost"),
        ],
    )


# ---------------------------------------------------------------- planes
def planes(view: View) -> Section | None:
    """The planes of the network, one step through them, and its collectives."""
    part = view.parts["planes"]
    if not part:
        return None
    blocks: list[Block] = [
        Heading(text="Planes, and one step through them"),
        Table(
            columns=columns("Plane", "What", "Where", "Carries#", "Without it"),
            rows=rows(
                (
                    line(strong(upfirst(plane["plane"])), f" {plane['role']}"),
                    plane["what"],
                    plane["where"],
                    bytes_per_s(plane["rate_bytes_per_s"]),
                    plane["without"],
                )
                for plane in part["planes"]
            ),
        ),
        Heading(text=f"One step of {seconds(part['step_s'])}", level=3),
        Table(
            columns=columns(
                "What", "Plane", "Starts at#", "Exposed#", "Hidden#", "Beside", "Times#", "Bytes#"
            ),
            rows=rows(map(_moment, part["timeline"])),
        ),
    ]
    if part["collectives"]:
        blocks += [
            Heading(text="Collectives of a step", level=3),
            _collectives(part["collectives"]),
        ]
    held = size(part["checkpoint_bytes"])
    blocks += [
        Heading(text=f"State: what a consistent checkpoint of {held} holds", level=3),
        _states(part["states"]),
        Bullets(items=[sentence(text) for text in part["consistent"]]),
    ]
    return Section(id="planes", blocks=blocks)


def _states(states: Sequence[Mapping[str, Any]]) -> Table:
    """What a checkpoint holds."""
    return Table(
        columns=columns("State", "Plane", "Whole job#", "A device#", "Held", "Saved", "Without it"),
        rows=rows(
            (
                strong(upfirst(state["item"])),
                state["plane"],
                size(state["bytes"]),
                "" if state["bytes_per_device"] is None else size(state["bytes_per_device"]),
                state["held"],
                "yes" if state["saved"] else "no",
                state["without"],
            )
            for state in states
        ),
    )


def _moment(row: Mapping[str, Any]) -> list[str]:
    """A line of the timeline of a step."""
    note = f": {row['note']}" if row.get("note") else ""
    return [
        line(strong(upfirst(row["what"])), note),
        row["plane"],
        seconds(row["start_s"]),
        seconds(row["exposed_s"]),
        seconds(row["hidden_s"]),
        row["beside"],
        whole(row["times"]),
        size(row["bytes"]) if row.get("bytes") else "",
    ]


def _collectives(collectives: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        columns=columns(
            "Axis",
            "What",
            "Operation",
            "Ranks#",
            "Message#",
            "Times#",
            "Tier",
            "Time#",
            "Exposed#",
            "Hidden",
        ),
        rows=rows(
            (
                strong(row["axis"].upper()),
                row["what"],
                f"{row['operation'].replace('_', '-')}, {row['algorithm']}",
                whole(row["ranks"]),
                size(row["message_bytes"]),
                whole(row["times"]),
                row["tier"],
                seconds(row["time_s"]),
                seconds(row["exposed_s"]),
                _hidden(row),
            )
            for row in collectives
        ),
    )


def _hidden(row: Mapping[str, Any]) -> str:
    """Whether a collective is hidden, and beside what."""
    beside = row.get("beside")
    if beside and row["hidden"] != "no" and not beside.startswith("nothing"):
        return f"{row['hidden']}, beside {beside}"
    return str(row["hidden"])


# ---------------------------------------------------------------- what moves the result
def sensitivity(
    view: View, key: FigureKey, title: str, variations: Sequence[Mapping[str, Any]]
) -> Section | None:
    """Each input a step down and up, the plan searched again: what becomes of the figure `key`."""
    if not variations:
        return None
    items = [line(strong(f"{upfirst(title)} now"), f": {show(key, figure(view.facts, key))}.")]
    for row in variations[:MOST_INPUTS]:
        sides = (
            f"{row[f'{side}_says'].replace('_', '-')} → {show(key, row[side])}"
            for side in ("low", "high")
            if row[side] is not None
        )
        text = f": {', '.join(sides)}; {row['why']}."
        items.append(line(strong(row["what"].replace("_", "-")), text))
    heading = Heading(text="What moves the result")
    return Section(id="sensitivity", blocks=[heading, Bullets(items=items)])
