"""How sure a step time is: 80 % bands from runs that the fit had not seen, and the published runs nearest to a plan.

The quantiles in catalogue/calibration.json are of ln(measured / predicted throughput) with the run's whole source (known stacks) or
whole stack (unknown ones) left out of the fit, every source weighing alike. They are not symmetric: what no model knows of mostly slows.
"""
from __future__ import annotations

import numpy as np

from .cases import Cases, devices, micro_batches
from .constants import calibration

# factor on both half widths where one of these holds, from the spread of the left-out errors with and without it
WIDER = {"unseen chip": 1.5, "inferred": 1.3, "memory": 1.25, "zero1 wide": 1.3, "ep across": 1.2, "single source": 1.2}
DEFAULT = {"known": {"dense": (-0.12, 0.11), "moe": (-0.16, 0.16)}, "unknown": {"dense": (-0.30, 0.15), "moe": (-0.32, 0.2)}}


def known_chip(name) -> bool:
    """True where runs on this accelerator are behind the calibration."""
    return name in calibration().get("support", {}).get("chip", {})


def known_stack(name) -> bool:
    """True where runs of this stack are behind the calibration, from more than one source or many settings of one."""
    support = calibration().get("support", {}).get("stack", {}).get(name or "")
    return bool(support) and support["rows"] >= 5


def single_source(name) -> bool:
    """True where one source alone supports a stack's constants."""
    support = calibration().get("support", {}).get("stack", {}).get(name or "")
    return bool(support) and support["single_source"]


def band(c: Cases, known=True, seen_chip=True, inferred=False, single=False, memory_share=0.0):
    """80 % band on the step time: (low, high) factors on the predicted seconds, columns or scalars.

    known: the stack has runs behind its constants; seen_chip: so has the accelerator; inferred: a setting that decides the step
    (micro-batch, recompute, layout) was not given; single: one source alone supports the stack; memory_share: predicted memory /
    capacity, above 0.85 of which allocator retries begin.
    """
    quantiles = calibration().get("bands", DEFAULT)
    moe = np.asarray(c.shape.moe_layers) > 0
    known = np.asarray(known, bool)

    def pick(i):
        table = {k: {m: v[i] for m, v in row.items()} for k, row in quantiles.items()}
        return np.where(known, np.where(moe, table["known"]["moe"], table["known"]["dense"]), np.where(moe, table["unknown"]["moe"], table["unknown"]["dense"]))

    p = c.plan
    wide = np.where(np.asarray(seen_chip, bool), 1.0, WIDER["unseen chip"]) * np.where(np.asarray(inferred, bool), WIDER["inferred"], 1.0)
    wide = wide * np.where(np.asarray(single, bool) & known, WIDER["single source"], 1.0) * np.where(np.asarray(memory_share) > 0.85, WIDER["memory"], 1.0)
    group = np.asarray(p.dp) * p.cp
    wide = wide * np.where((np.asarray(p.sharding) == 1) & (group > 128) & (micro_batches(c.job, p) < 8), WIDER["zero1 wide"], 1.0)
    wide = wide * np.where((np.asarray(p.ep) * p.etp > c.link.domain) & moe, WIDER["ep across"], 1.0)
    return np.exp(-pick(1) * wide)[()], np.exp(-pick(0) * wide)[()]


def conditions(c: Cases) -> dict:
    """Numbers by which two runs are near: logs of devices, hidden, layers, tokens, and the layout; one column each."""
    p, s = c.plan, c.shape
    log = lambda x: np.log2(np.maximum(np.asarray(x, float), 1))   # noqa: E731
    return dict(devices=log(devices(p)), hidden=log(s.hidden), layers=log(s.layers), seq_len=log(c.job.seq_len), tp=log(p.tp), pp=log(p.pp), cp=log(p.cp),
                ep=log(p.ep), micro_batch=log(p.micro_batch), recompute=np.asarray(p.recompute, float), moe=(np.asarray(s.experts) > 0) * 1.0)
