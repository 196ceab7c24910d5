"""One line per published run: what was measured, what is predicted with and without the run in the
fit, the band, and what its row shows.

The columns are read by validation_tables; nothing is averaged here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ...catalogue.words import SHARDINGS
from ...physics import bands
from ...physics.cases import Cases, devices, micro_batches, tokens
from ...physics.constants import calibration, gather
from ...physics.memory.peak import memory
from ...physics.step import rates, step_time
from ..calibrate import throughput as calibrate
from ..predict import decisive, predict_frame
from ..runs import read_runs
from .compare import SAME, baseline

PLAN = (
    "tp",
    "sp",
    "pp",
    "vpp",
    "cp",
    "ep",
    "etp",
    "dp",
    "sharding",
    "micro_batch",
    "global_batch_seqs",
    "recompute",
)
KINDS = {
    "in sample": "predicted",
    "folds": "fold_out",
    "source left out": "source_out",
    "stack left out": "stack_out",
}
FEW_ROWS = 5  # rows of a stack below which the kit calls it unknown, as bands.known_stack does
LARGE_SHARE = 0.90  # of the usable memory, from where allocators retry
SHARDED = [SHARDINGS.index("zero3"), SHARDINGS.index("hsdp")]
# tokens of a micro-batch up to which gathering weights over a network takes about as long as
# computing with them
FEW_TOKENS = 16384
SMALL_PRODUCT = (
    3e6  # tokens of a micro-batch x hidden / tp below which a GEMM ends in tens of microseconds
)


@dataclass(frozen=True)
class Condition:
    """Something a reader can see in a row without knowing its result, and that is known to make a
    prediction harder."""

    name: str
    says: str  # in the list of worst rows; {} takes a detail


CONDITIONS = {
    c.name: c
    for c in (
        Condition("settings not printed", "not printed, inferred: {}"),
        Condition("rounded figure", "measured figure is printed rounded (TFLOP/s or MFU)"),
        Condition(
            "only source of its stack",
            "no other source ran {}: without this one its constants are those of all stacks",
        ),
        Condition(
            "only source of its chip",
            "no other source used {}: without this one its constants are those of its family",
        ),
        Condition("tp across nodes", "tensor parallelism leaves the scale-up domain"),
        Condition("ep across nodes", "experts spread over more than one scale-up domain"),
        Condition(
            "sharded weights over the network",
            "sharded weights cross the network for {} tokens a device",
        ),
        Condition("fewer micro-batches than stages", "{} micro-batches for {} stages"),
        Condition("small GEMMs", "GEMMs of {} tokens by {} columns end in tens of microseconds"),
        Condition("memory nearly full", "predicted memory is {} of capacity: allocator retries"),
        Condition("hidden not a multiple of 128", "hidden {} is not a multiple of 128"),
        Condition(
            "mixture of experts", "mixture of experts: routing and its imbalance are not printed"
        ),
        Condition("fp8 or fp4", "{}: which layers stay in 16 bit depends on the release"),
        Condition(
            "one micro-batch per step",
            "one micro-batch per step: nothing hides the gradient exchange",
        ),
        Condition("offload", "states or activations offloaded to the host"),
    )
}


def counted(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of trust high or medium and setup full or partial that have a measured throughput."""
    measured = pd.to_numeric(frame.measured_tokens_per_s_per_device, errors="coerce")
    keep = (
        frame.trust.isin(calibrate.COUNTED_TRUST)
        & frame.setup.isin(calibrate.COUNTED_SETUP)
        & (measured > 0)
    )
    return frame[keep].reset_index(drop=True)


def shipped(model: calibrate.Model) -> np.ndarray:
    """The offsets of catalogue/calibration.json in the order of the model's free offsets."""
    offsets = calibration()["offsets"]
    return np.array(
        [
            offsets.get(name, {}).get(level, 0.0)
            if level == "global"
            else offsets.get(name, {}).get(level, {}).get(key, 0.0)
            for name, level, key in model.free.keys
        ]
    )


def build(path, told=lambda text: None) -> pd.DataFrame:
    """All columns for the counted rows of a run table. Takes minutes: the constants are fitted
    again for every fold, source and stack.

    told: called with a line of text before each part.
    """
    table = calibrate.load(path)
    model = calibrate.Model(table)
    start = shipped(model)
    frame = counted(read_runs(path))
    rows = frame[
        [
            "id",
            "source",
            "source_url",
            "locator",
            "published",
            "stack",
            "accelerator",
            "precision",
            "trust",
            "setup",
            "n_devices",
        ]
    ].copy()
    rows["measured"] = pd.to_numeric(frame.measured_tokens_per_s_per_device)
    got = predict_frame(frame)
    rows["baseline"], rows["assumed"], rows["unanswered"] = (
        baseline(got, frame),
        got.assumed,
        got.error,
    )
    at = pd.Index(rows.id).get_indexer(table.ids)

    def put(name, values):
        rows[name] = np.nan
        rows.loc[at, name] = values

    put("predicted", np.exp(model.log_rate(start)))
    for name, groups in (
        ("fold_out", table.fold),
        ("source_out", table.source),
        ("stack_out", table.levels["stack"]),
    ):
        told(f"{name.replace('_', ' ').replace('out', 'left out')}: {len(np.unique(groups))} fits")
        put(name, np.exp(calibrate.left_out(model, groups, start)))
    put("without_single", _without_single(table))
    put("moe", (np.asarray(table.cases.shape.moe_layers) > 0) * np.ones(len(at)))
    full = memory(table.cases)
    share = np.broadcast_to(full.total, len(at)) / table.cases.chip.usable_bytes
    inferred = np.array([", ".join(decisive(a)) for a in rows.assumed.iloc[at]], dtype=object)
    for name, groups in (
        ("fold", None),
        ("source", table.source),
        ("stack", table.levels["stack"]),
    ):
        known, single, chip = _standing(table, groups)
        low, high = bands.band(
            table.cases, known, chip, inferred != "", single, np.nan_to_num(share)
        )
        put(f"{name}_low", low)
        put(f"{name}_high", high)
        put(f"{name}_known", known.astype(float))
    _note(rows, at, table, share, inferred)
    rows["twin"], rows["twins_apart"] = twins(frame)
    rows[list(PLAN)] = frame[list(PLAN)]
    rows["job"] = pd.factorize(
        pd.Series(
            [
                "|".join(map(str, row))
                for row in frame[[c for c in SAME if c in frame and c not in PLAN]].itertuples(
                    index=False
                )
            ]
        )
    )[0]
    return rows


def _without_single(table):
    known = calibration()
    constants = gather(
        table.levels["family"],
        table.levels["chip"],
        table.levels["stack"],
        bands.several_sources_only(known["offsets"], known.get("support", {})),
    )
    cases = replace(table.cases, constants=constants)
    return rates(cases, step_time(cases).total)[0]


def _standing(table, groups):
    """(stack known, by one source alone, chip known) of every row to a fit that has not seen the
    row's group; None: the shipped fit."""
    out = []
    for level in ("stack", "chip"):
        pairs = pd.DataFrame(
            {
                "name": table.levels[level],
                "source": table.source,
                "group": table.source if groups is None else groups,
            }
        )
        everyone = pairs.groupby("name").source.agg(["size", "nunique"])
        own = pairs.groupby(["name", "group"]).source.agg(["size", "nunique"])
        key = pd.MultiIndex.from_frame(pairs[["name", "group"]])
        total = everyone.loc[pairs.name].to_numpy()
        out.append(total if groups is None else total - own.loc[key].to_numpy())
    stacks, chips = out
    return stacks[:, 0] >= FEW_ROWS, stacks[:, 1] == 1, chips[:, 0] > 0


def twins(frame: pd.DataFrame):
    """(name of the configuration, its largest over its smallest measurement - 1 where it was
    measured more than once) of every row."""
    have = [c for c in SAME if c in frame]
    key = pd.Series(
        ["|".join(map(str, row)) for row in frame[have].itertuples(index=False)], index=frame.index
    )
    measured = pd.to_numeric(frame.measured_tokens_per_s_per_device).groupby(key)
    apart = measured.transform("max") / measured.transform("min") - 1
    return pd.factorize(key)[0], apart.where(measured.transform("size") > 1)


def _note(rows, at, table, share, inferred):
    """Add a boolean column per condition, and `sees`: the conditions of each row in words."""
    c: Cases = table.cases
    p, n = c.plan, len(at)
    full = lambda x: np.broadcast_to(np.asarray(x, float), n)  # noqa: E731
    m, wide, columns = (
        full(micro_batches(c.job, p)),
        full(tokens(c)),
        full(c.shape.hidden) / full(p.tp),
    )
    frame = table.frame
    others = lambda level: (
        pd.Series(table.source).groupby(table.levels[level]).transform("nunique").to_numpy()
    )  # noqa: E731
    moe = full(c.shape.moe_layers) > 0
    found = {
        "settings not printed": (inferred != "", inferred),
        "rounded figure": (frame.trust.eq("medium").to_numpy(), None),
        "only source of its stack": (others("stack") == 1, table.levels["stack"]),
        "only source of its chip": (others("chip") == 1, table.levels["chip"]),
        "tp across nodes": (full(p.tp) > full(c.link.domain), None),
        "ep across nodes": (moe & (full(p.ep) * full(p.etp) > full(c.link.domain)), None),
        "sharded weights over the network": (
            np.isin(full(p.sharding), SHARDED)
            & (full(devices(p)) > full(c.link.domain))
            & (wide < FEW_TOKENS),
            [f"{t:,.0f}" for t in wide],
        ),
        "fewer micro-batches than stages": (
            (full(p.pp) > 1) & (m < full(p.pp)),
            [(f"{a:,.0f}", f"{b:,.0f}") for a, b in zip(m, full(p.pp))],
        ),
        "small GEMMs": (
            wide * columns < SMALL_PRODUCT,
            [(f"{a:,.0f}", f"{b:,.0f}") for a, b in zip(wide, columns)],
        ),
        "memory nearly full": (share > LARGE_SHARE, [f"{100 * s:.0f} %" for s in share]),
        "hidden not a multiple of 128": (
            full(c.shape.hidden) % 128 > 0,
            [f"{h:,.0f}" for h in full(c.shape.hidden)],
        ),
        "mixture of experts": (moe, None),
        "fp8 or fp4": (
            (full(c.job.precision) >= 2) & (full(c.job.precision) <= 6),
            frame.precision.to_numpy(),
        ),
        "one micro-batch per step": ((m <= 1) & (full(p.dp) > 1), None),
        "offload": (full(p.offload) > 0, None),
    }
    said = [[] for _ in range(n)]
    for name, (where, detail) in found.items():
        rows[name] = False
        rows.loc[at, name] = where
        for i in np.flatnonzero(where):
            words = (
                ()
                if detail is None
                else detail[i]
                if isinstance(detail[i], tuple)
                else (detail[i],)
            )
            said[i].append(CONDITIONS[name].says.format(*words))
    rows["sees"] = ""
    rows.loc[at, "sees"] = ["; ".join(s) for s in said]
