"""Debug: MFU fell from 35 to 26 % after the fleet was doubled; what is arithmetic, what is a fault,
and what proves it."""

from scantling.advise.diagnose import diagnose

from .base import layers_s

# ---------------------------------------------------------------- the fault


def node_table(nodes, slow, compute_ms, m):
    """Compute of a micro-batch and waiting in a step of four nodes, each by its own factor; the
    slow one has none given."""
    head = (
        "| node | compute a micro-batch | waiting in collectives, a step |\n| --- | ---: | ---: |\n"
    )
    return head + "\n".join(
        f"| {name} | {compute_ms * f:.1f} ms | {1e-3 * compute_ms * (slow - f) * m + 0.02:.2f} s |"
        for name, f in ((name, factor or slow) for name, factor in nodes)
    )


def part_table(after, step_s):
    """Measured step parts of an ordinary rank beside those of the kit."""
    kit = after.step_breakdown_s
    compute = layers_s(after) + kit["logits"]
    rest = kit["host"] + kit["pp"] + kit["optimizer"] + kit["straggler"]
    wait = step_s - compute - kit["tp"] - kit["bubble"] - rest
    rows = (
        ("matrix products, attention, norms, loss", compute, compute),
        ("tensor-parallel all-reduce", kit["tp"], kit["tp"]),
        ("pipeline idle", kit["bubble"], kit["bubble"]),
        ("gradient reduction", wait, kit["dp"]),
        ("the rest", rest, rest),
    )
    return "| part of a step | measured | the kit |\n| --- | ---: | ---: |\n" + "\n".join(
        f"| {n} | {a:.2f} s | {b:.2f} s |" for n, a, b in rows
    )


def causes(after_design, mfu_large):
    found = diagnose(after_design.change(measured={"mfu": mfu_large})).causes[:4]
    return "\n".join(
        f"1. {c['cause']}{' (' + c['size'] + ')' if c['size'] else ''}; measure: {c['measure']}"
        for c in found
    )
