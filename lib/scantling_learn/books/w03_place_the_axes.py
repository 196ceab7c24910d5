"""Place the axes: what each parallel axis sends, over which tier, how much of it can hide, and on
which machine the answer turns."""

from __future__ import annotations

import numpy as np
from scantling import assess, catalogue

from ..measured import published_runs

# ---- tensor parallel


def tp_bytes_of(activation, /, tp):
    """Sent by a device per layer and micro-batch: 4 gathers or scatters forward, 4 backward."""
    return 8 * activation * (tp - 1) / tp


def compute_of(
    layer_params,
    seq_len,
    peak,
    /,
    tp,
):
    """Seconds of a layer's matrix products per micro-batch on one device at full peak, forward
    and backward."""
    return 6 * layer_params * seq_len / tp / peak


def two_nodes():
    return catalogue.collective_series()["aws_p5_h100_2n_all_reduce"]


def best_tp(by_tp):
    return min(by_tp, key=lambda tp: by_tp[tp].step_s)


def best_tp_answer(best_tp):
    return {
        4: "a",
        8: "b",
        16: "c",
    }.get(best_tp, "d")


# ---- pipeline and data


def row(classic, /, axis):
    return next(r for r in classic.as_dict()["communication"] if r["axis"] == axis)


def order(row):
    return sorted(("tp", "pp", "dp"), key=lambda a: -row(a)["bytes"])


def order_answer(order):
    return {
        ("tp", "pp", "dp"): "c",
        ("dp", "tp", "pp"): "a",
        ("tp", "dp", "pp"): "b",
    }.get(tuple(order), "d")


# ---- fully sharded data parallelism


def fsdp(global_batch, design):
    """(devices, assessment), every device at work: the batch's sequences first, then two and
    more devices to a sequence."""
    return [
        (
            n,
            assess(
                design.change(
                    {"cluster.devices": n},
                    plan={
                        "tp": 1,
                        "pp": 1,
                        "dp": min(n, global_batch),
                        "cp": max(1, n // global_batch),
                        "sharding": "zero3",
                    },
                )
            ),
        )
        for n in (1024, 2048, 4096, 8192, 16_384)
    ]


def placed(design, fsdp):
    """(devices, assessment) of the best of all plans."""
    return [(n, assess(design.change({"cluster.devices": n}))) for n, _ in fsdp]


# ---- the rack-scale machine


def rack_best(rack):
    return min(rack, key=lambda tp: rack[tp].step_s)


def rack_answer(rack_best):
    return "a" if rack_best <= 8 else "b" if rack_best == 16 else "c"


def rack_published():
    """Tensor-parallel degrees of the published runs of this model on NVL72 racks."""
    table = published_runs()
    rows = table[
        table.model.str.contains(
            "405b",
            case=False,
            na=False,
        )
        & table.accelerator.isin(["gb200-nvl72", "gb300-nvl72"])
    ]
    return " or ".join(str(int(t)) for t in sorted(rows.tp.dropna().unique(), reverse=True))


def busbw(two_nodes, /, size):
    return np.interp(np.log(size), np.log(two_nodes.message_bytes), two_nodes.busbw_bytes_per_s)
