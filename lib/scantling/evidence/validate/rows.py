"""One line per published run: what was measured, what is predicted with and without the run in the
fit, the band, and what its row shows.

The columns are read by validation_tables; nothing is averaged here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from ...catalogue.words import SHARDINGS
from ...physics import bands
from ...physics.cases import PRECISIONS, Cases, devices, micro_batches, tokens
from ...physics.constants import calibration, gather
from ...physics.memory.peak import memory
from ..calibrate import throughput as calibrate
from ..predict import decisive, predict_frame
from ..runs import read_runs
from .compare import SAME, baseline

PLAN = tuple("tp sp pp vpp cp ep etp dp sharding micro_batch global_batch_seqs recompute".split())
RUN = (
    "id source source_url locator published stack accelerator precision trust setup n_devices"
).split()
KINDS = {
    "in sample": "predicted",
    "folds": "fold_out",
    "source left out": "source_out",
    "stack left out": "stack_out",
}
FEW_ROWS = 5  # rows of a stack below which the kit calls it unknown, as bands.known_stack does
LARGE_SHARE = 0.90  # of the usable memory, from where allocators retry
LOW = [i for i, name in enumerate(PRECISIONS) if "fp8" in name or "fp4" in name]
SHARDED = [SHARDINGS.index("zero3"), SHARDINGS.index("hsdp")]
# tokens of a micro-batch up to which gathering weights over a network takes about as long as
# computing with them
FEW_TOKENS = 16384
# tokens of a micro-batch x hidden / tp below which a GEMM ends in tens of microseconds
SMALL_PRODUCT = 3e6
# what a reader can see in a row without knowing its result and that is known to make a prediction
# harder -> the words for it; {} takes a detail
CONDITIONS = {
    "settings not printed": "not printed, inferred: {}",
    "rounded figure": "measured figure is printed rounded (TFLOP/s or MFU)",
    "only source of its stack": (
        "no other source ran {}: without this one its constants are those of all stacks"
    ),
    "only source of its chip": (
        "no other source used {}: without this one its constants are those of its family"
    ),
    "tp across nodes": "tensor parallelism leaves the scale-up domain",
    "ep across nodes": "experts spread over more than one scale-up domain",
    "sharded weights over the network": (
        "sharded weights cross the network for {:,.0f} tokens a device"
    ),
    "fewer micro-batches than stages": "{:,.0f} micro-batches for {:,.0f} stages",
    "small GEMMs": "GEMMs of {:,.0f} tokens by {:,.0f} columns end in tens of microseconds",
    "memory nearly full": "predicted memory is {:.0f} % of capacity: allocator retries",
    "hidden not a multiple of 128": "hidden {:,.0f} is not a multiple of 128",
    "mixture of experts": "mixture of experts: routing and its imbalance are not printed",
    "fp8 or fp4": "{}: which layers stay in 16 bit depends on the release",
    "one micro-batch per step": "one micro-batch per step: nothing hides the gradient exchange",
    "offload": "states or activations offloaded to the host",
}


def shipped(model: calibrate.Model) -> np.ndarray:
    """The offsets of catalogue/calibration.json in the order of the model's free offsets."""
    flat = {
        (name, level, key): value
        for name, levels in calibration()["offsets"].items()
        for level, of in levels.items()
        for key, value in (of.items() if level != "global" else [("", of)])
    }
    return np.array([flat.get(tuple(free), 0.0) for free in model.free.keys])


def build(path, told=lambda text: None) -> pd.DataFrame:
    """All columns for the counted rows of a run table. Takes minutes: the constants are fitted
    again for every fold, source and stack.

    told: called with a line of text before each part.
    """
    table = calibrate.load(path)
    model = calibrate.Model(table)
    start = shipped(model)
    frame = read_runs(path)
    frame = frame[calibrate.counted(frame)].reset_index(drop=True)
    got = predict_frame(frame)
    rows = frame[RUN].assign(
        measured=pd.to_numeric(frame.measured_tokens_per_s_per_device),
        baseline=baseline(got, frame),
        assumed=got.assumed,
        unanswered=got.error,
    )
    at = pd.Index(rows.id).get_indexer(table.ids)

    def put(name, values):
        rows[name] = pd.Series(np.broadcast_to(values, len(at)), index=rows.index[at])

    put("predicted", np.exp(model.log_rate(start)))
    stack = table.levels["stack"]
    for name, groups in (("fold", table.fold), ("source", table.source), ("stack", stack)):
        told(f"{name} left out: {len(np.unique(groups))} fits")
        put(f"{name}_out", np.exp(calibrate.left_out(model, groups, start)))
    put("without_single", _without_single(table))
    put("moe", np.where(table.cases.shape.moe_layers > 0, 1.0, 0.0))
    held = memory(table.cases)
    share = np.nan_to_num(held.total / held.capacity)
    inferred = np.array([", ".join(decisive(a)) for a in rows.assumed.iloc[at]], dtype=object)
    for name, groups in (("fold", None), ("source", table.source), ("stack", stack)):
        known, single, chip = _standing(table, groups)
        low, high = bands.band(
            table.cases,
            known,
            chip,
            inferred != "",
            single,
            share,
        )
        put(f"{name}_low", low)
        put(f"{name}_high", high)
        put(f"{name}_known", known.astype(float))
    _note(
        rows,
        at,
        table,
        share,
        inferred,
    )
    rows["twin"], rows["twins_apart"] = twins(frame)
    rows[list(PLAN)] = frame[list(PLAN)]
    rows["job"] = _configuration(frame, but=PLAN)
    return rows


def _without_single(table):
    known, levels = calibration(), table.levels
    offsets = bands.several_sources_only(known["offsets"], known.get("support", {}))
    constants = gather(
        levels["family"],
        levels["chip"],
        levels["stack"],
        offsets,
    )
    return np.exp(calibrate.log_rate(replace(table.cases, constants=constants)))


def _standing(table, groups):
    """(stack known, by one source alone, chip known) of every row to a fit that has not seen the
    row's group; None: the shipped fit."""
    out = []
    group = table.source if groups is None else groups
    for level in ("stack", "chip"):
        pairs = pd.DataFrame(
            dict(
                name=table.levels[level],
                source=table.source,
                group=group,
            )
        )
        for by in (["name"], ["name", "group"]):
            of = pairs.groupby(by).source
            out.append(np.stack([of.transform("size"), of.transform("nunique")], axis=1))
    seen = 0 if groups is None else 1
    stacks, chips = out[0] - seen * out[1], out[2] - seen * out[3]
    return stacks[:, 0] >= FEW_ROWS, stacks[:, 1] == 1, chips[:, 0] > 0


def _configuration(frame, but=()):
    """A number for each distinct configuration, a column named in `but` not counting."""
    columns = frame[[c for c in SAME if c in frame and c not in but]]
    return columns.groupby(
        list(columns),
        dropna=False,
        sort=False,
    ).ngroup()


def twins(frame: pd.DataFrame):
    """(number of the configuration, its largest over its smallest measurement - 1 where it was
    measured more than once) of every row."""
    key = _configuration(frame)
    measured = pd.to_numeric(frame.measured_tokens_per_s_per_device).groupby(key)
    apart = measured.transform("max") / measured.transform("min") - 1
    return key, apart.where(measured.transform("size") > 1)


def _seen(
    table,
    share,
    inferred,
) -> dict:
    """{condition: (rows that show it, *details for its words)}, columns over the rows."""
    c: Cases = table.cases
    p, shape, domain = c.plan, c.shape, c.link.domain
    m, wide = micro_batches(c.job, p), tokens(c)
    columns = shape.hidden / p.tp
    sharded = np.isin(p.sharding, SHARDED) & (devices(p) > domain)
    sources = pd.Series(table.source)
    alone = {
        level: sources.groupby(table.levels[level]).transform("nunique").to_numpy() == 1
        for level in ("stack", "chip")
    }
    moe = shape.moe_layers > 0
    return {
        "settings not printed": (inferred != "", inferred),
        "rounded figure": (table.frame.trust.eq("medium"),),
        "only source of its stack": (alone["stack"], table.levels["stack"]),
        "only source of its chip": (alone["chip"], table.levels["chip"]),
        "tp across nodes": (p.tp > domain,),
        "ep across nodes": (moe & (p.ep * p.etp > domain),),
        "sharded weights over the network": (sharded & (wide < FEW_TOKENS), wide),
        "fewer micro-batches than stages": ((p.pp > 1) & (m < p.pp), m, p.pp),
        "small GEMMs": (wide * columns < SMALL_PRODUCT, wide, columns),
        "memory nearly full": (share > LARGE_SHARE, 100 * share),
        "hidden not a multiple of 128": (shape.hidden % 128 > 0, shape.hidden),
        "mixture of experts": (moe,),
        "fp8 or fp4": (np.isin(c.job.precision, LOW), table.frame.precision),
        "one micro-batch per step": ((m <= 1) & (p.dp > 1),),
        "offload": (p.offload > 0,),
    }


def _note(
    rows,
    at,
    table,
    share,
    inferred,
):
    """Add a boolean column per condition, and `sees`: the conditions of each row in words."""
    said = [[] for _ in at]
    for name, found in _seen(table, share, inferred).items():
        where, *details = (np.broadcast_to(np.asarray(x), len(at)) for x in found)
        rows[name] = False
        rows.loc[at, name] = where
        for i in np.flatnonzero(where):
            said[i].append(CONDITIONS[name].format(*(d[i] for d in details)))
    rows["sees"] = ""
    rows.loc[at, "sees"] = ["; ".join(s) for s in said]
