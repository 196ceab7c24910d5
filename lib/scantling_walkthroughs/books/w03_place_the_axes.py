"""Place the axes: what each parallel axis sends, over which tier, how much of it can hide, and on
which machine the answer turns."""

import numpy as np
from scantling import assess

from ..measured import published_runs
from .base import swept, tp_sent

# ---- tensor parallel


def tp_bytes_of(activation, /, tp):
    return tp_sent(activation, tp)


def compute_of(layer_params, seq_len, peak, /, tp):
    """Seconds of a layer's matrix products per micro-batch on one device at full peak, forward
    and backward."""
    return 6 * layer_params * seq_len / tp / peak


# ---- pipeline and data


def order(tp_row, pp_row, dp_row):
    """The axes, from the most bytes to the fewest."""
    rows = sorted((tp_row, pp_row, dp_row), key=lambda row: -row["bytes"])
    return ", ".join(row["axis"] for row in rows)


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
    return [*swept(design, "cluster.devices", *dict(fsdp)).items()]


# ---- the rack-scale machine


def rack_answer(rack_best):
    return "a" if rack_best <= 8 else "b" if rack_best == 16 else "c"


def rack_published():
    """Tensor-parallel degrees of the published runs of this model on NVL72 racks."""
    table = published_runs()
    rows = table[
        table.model.str.contains("405b", case=False, na=False)
        & table.accelerator.isin(["gb200-nvl72", "gb300-nvl72"])
    ]
    return " or ".join(str(int(t)) for t in sorted(rows.tp.dropna().unique(), reverse=True))


def busbw(two_nodes, /, size):
    return np.interp(np.log(size), np.log(two_nodes.message_bytes), two_nodes.busbw_bytes_per_s)
