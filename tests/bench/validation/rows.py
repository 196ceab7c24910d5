"""One line per published run: what was measured, what is predicted with and without the run in the
fit, the band, and what its row shows.

The columns are read by validation_tables; nothing is averaged here.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scantling.catalogue.words import SHARDINGS
from scantling.physics import bands
from scantling.physics.cases import PRECISIONS, Cases, devices
from scantling.physics.constants import calibration
from scantling.runs.accuracy import baseline, configuration
from scantling.runs.predict import decisive, predict_frame
from scantling.runs.read import read_runs

from . import throughput_fit as calibrate
from .families import newest

PLAN = tuple("tp sp pp vpp cp ep etp dp sharding micro_batch global_batch_seqs recompute".split())
RUN = (
    "id source source_url locator published stack accelerator precision trust setup n_devices"
).split()
KINDS = {
    "in sample": "predicted",
    "folds": "fold_out",
    "source left out": "source_out",
    "family left out": "family_out",
}
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
    return np.array([flat.get(free, 0.0) for free in model.keys])


def build(path, told=lambda text: None) -> pd.DataFrame:
    """All columns for the counted rows of a run table. Takes minutes: the constants are fitted
    again for every fold, source and family of sources.

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
    at = pd.Index(rows.id).get_indexer(table.frame.id)

    sites = table.levels["site"]
    found = {
        "predicted": np.exp(model.log_rate(start)),
        "moe": (table.cases.shape.moe_layers > 0) * 1.0,
        "family": sites,
        "newest": newest(table.frame) * 1.0,
    }
    told("folds, sources and families left out")
    blank = calibrate.unsaid(model)
    left = {
        "fold": calibrate.left_out(model, calibrate.folds(table), start),
        "source": calibrate.left_out(model, table.frame.source.to_numpy(), start),
        "family": calibrate.strangers(model),
    }
    for name, rate in left.items():
        holds = calibrate.unknown(table, rate)
        if name == "fold":  # runs of the same sources stay in the fit
            holds |= {"unseen stack": False, "unseen chip": False, "unmeasured": False}
        low, high = bands.ends(holds)
        found |= {
            f"{name}_out": np.exp(rate),
            f"{name}_low": low,
            f"{name}_high": high,
            f"{name}_known": np.where(holds["unseen stack"], 0.0, 1.0),
        }
    found["unsaid_out"] = np.exp(calibrate.strangers(model, blank))
    found |= _notes(table)
    rows = rows.join(pd.DataFrame(found, index=at))
    rows = rows.fillna({"sees": "", "family": rows.source} | dict.fromkeys(CONDITIONS, False))
    rows = rows.astype(dict.fromkeys(CONDITIONS, bool))
    rows["twin"], rows["twins_apart"] = twins(frame)
    rows[list(PLAN)] = frame[list(PLAN)]
    return rows


def twins(frame: pd.DataFrame):
    """(number of the configuration, its largest over its smallest measurement - 1 where it was
    measured more than once) of every row."""
    key = configuration(frame)
    measured = pd.to_numeric(frame.measured_tokens_per_s_per_device).groupby(key)
    apart = measured.transform("max") / measured.transform("min") - 1
    return key, apart.where(measured.transform("size") > 1)


def _seen(table) -> dict:
    """{condition: (rows that show it, *details for its words)}, columns over the rows."""
    c: Cases = table.cases
    p = c.plan
    shape = c.shape
    domain = c.link.domain
    m = c.micro_batches
    wide = c.tokens
    columns = shape.hidden / p.tp
    sharded = np.isin(p.sharding, SHARDED) & (devices(p) > domain)
    sources = table.frame.source
    alone = {
        level: sources.groupby(table.levels[level]).transform("nunique").to_numpy() == 1
        for level in ("stack", "chip")
    }
    moe = shape.moe_layers > 0
    inferred = np.array([", ".join(decisive(a)) for a in table.frame.assumed], dtype=object)
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
        "hidden not a multiple of 128": (shape.hidden % 128 > 0, shape.hidden),
        "mixture of experts": (moe,),
        "fp8 or fp4": (np.isin(c.job.precision, LOW), table.frame.precision),
        "one micro-batch per step": ((m <= 1) & (p.dp > 1),),
        "offload": (p.offload > 0,),
    }


def _notes(table) -> dict:
    """A boolean column per condition, and `sees`: the conditions of each row in words."""
    said = [[] for _ in table.log_measured]
    columns = {}
    for name, found in _seen(table).items():
        where, *details = (np.broadcast_to(np.asarray(x), len(said)) for x in found)
        columns[name] = where
        for i in np.flatnonzero(where):
            said[i].append(CONDITIONS[name].format(*(d[i] for d in details)))
    return columns | {"sees": ["; ".join(s) for s in said]}
