"""Debug: MFU fell from 35 to 26 % after the fleet was doubled; what is arithmetic, what is a fault,
and what proves it."""

from __future__ import annotations

from scantling.advise.diagnose import diagnose
from scantling.evidence.published_figures.recreate import recreate

# ---------------------------------------------------------------- reading the dashboard


def step_of(
    batch,
    seq_len,
    flops_per_token,
    peak,
    /,
    devices,
    mfu,
):
    return batch * seq_len * flops_per_token / (devices * peak * mfu)


# ---------------------------------------------------------------- the fault


def compute_ms(after, m):
    parts = after.step_breakdown_s
    return 1e3 * (parts["gemm"] + parts["attention"] + parts["elementwise"]) / m


def node_table(
    nodes,
    slow,
    compute_ms,
    m,
):
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
    compute = kit["gemm"] + kit["attention"] + kit["elementwise"] + kit["logits"]
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


def gradient_times(after, step_s):
    kit = after.step_breakdown_s
    return (step_s - (after.step_s - kit["dp"])) / kit["dp"]


def causes(after_design, mfu_large):
    found = diagnose(after_design.change(measured={"mfu": mfu_large})).causes[:4]
    return "\n".join(
        f"1. {c['cause']}{' (' + c['size'] + ')' if c['size'] else ''}; measure: {c['measure']}"
        for c in found
    )


# ---------------------------------------------------------------- measured by others


def megascale():
    t = recreate("strong-scaling").table().set_index(["series", "x"])
    return t.loc["Megatron-LM, batch 6144"]


def megascale_fall(megascale):
    t = megascale.published
    return 1 - t.iloc[-1] / t.iloc[0]


def megascale_fall_ours(megascale):
    t = megascale.ours
    return 1 - t.iloc[-1] / t.iloc[0]
