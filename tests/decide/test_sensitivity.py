"""Tornado, sweeps and direct answers: signs, edges, and that every figure is that of a design
assessed alone."""

from __future__ import annotations

import numpy as np
import pytest
from scantling import Design, assess
from scantling.advise import answers, sensitivity, sweeps
from scantling.advise.scaling_laws import compute_optimal
from scantling.plans import space as plans

TEXT = (
    "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 64}\njob: {tokens: "
    "1.0e12, seq_len: 8192, global_batch: 256}\n"
)
D = Design.from_text(TEXT)


@pytest.mark.parametrize("key", ["days", "cost_usd", "mfu"])
def test_signs_of_the_tornado(key):
    a = assess(D)
    rows = {r["what"]: r for r in sensitivity.tornado(a, key)}
    now = a.headline()[key]
    worse = (lambda v: v >= now * (1 - 1e-9)) if key != "mfu" else (lambda v: v <= now * (1 + 1e-9))
    better = (
        (lambda v: v <= now * (1 + 1e-9)) if key != "mfu" else (lambda v: v >= now * (1 - 1e-9))
    )
    for what in ("HBM bandwidth", "Scale-up bandwidth", "Interconnect"):
        assert worse(rows[what]["low"]) and better(rows[what]["high"]), what
    if key == "cost_usd":
        assert rows["Price"]["low"] == pytest.approx(0.75 * now) and rows["Price"][
            "high"
        ] == pytest.approx(1.3 * now)
    if key == "days":
        assert rows["Failure rate"]["low"] < now < rows["Failure rate"]["high"]
        assert "Price" not in rows  # it moves nothing
    swings = [r["swing"] for r in rows.values()]
    assert swings == sorted(swings, reverse=True)


def test_each_bar_is_a_design_assessed_alone():
    a = assess(D)
    one = next(i for i in sensitivity.inputs(a) if i.what == "HBM bandwidth")
    (row,) = sensitivity.tornado(a, "step_s", over=[one])
    assert (
        row["low"] == assess(D.change(one.low)).step_s
        and row["high"] == assess(D.change(one.high)).step_s
    )


def test_unknown_quantities_are_refused():
    with pytest.raises(KeyError):
        sensitivity.tornado(assess(D), "happiness")


def test_a_one_way_sweep_and_its_edge():
    over = {"cluster.devices": [16, 32, 64, 128, 256]}
    seen = []
    cells = sweeps.sweep(
        D.change({"constraints.deadline_days": 25}), over, progress=lambda i, n: seen.append((i, n))
    )
    assert seen[-1] == (5, 5)
    assert [c.verdict for c in cells] == [
        "constraint-missed",
        "constraint-missed",
        "feasible",
        "feasible",
        "feasible",
    ]
    assert sweeps.edge(cells) == [(32, "constraint-missed", 64, "feasible")]
    assert cells[2].figures["days"] == assess(D).days


def test_a_two_way_sweep_with_what_is_refused():
    over = {"plan.tp": [1, 2, 3], "job.global_batch": [64, 256]}
    cells = sweeps.sweep(D, over)
    matrix = sweeps.table(cells, over, "step_s")
    assert matrix.shape == (3, 2)
    assert np.isnan(matrix[2]).all() and all(
        c.verdict == "refused" and "tp" in c.why for c in cells[4:]
    )
    assert matrix[1, 1] == assess(D.change({"plan.tp": 2})).step_s


def test_a_heat_map_has_the_edge_between_its_places():
    d = D.change({"constraints.deadline_days": 25})
    rows, columns = ("cluster.devices", [16, 32, 64, 128]), ("job.tokens", [0.5e12, 1e12, 2e12])
    seen = []
    h = sweeps.heat_map(d, rows, columns, progress=lambda i, n: seen.append(i))
    assert seen[-1] == 12 and h.paths == ("cluster.devices", "job.tokens")
    days = np.array(h.figures["days"], float)
    assert (
        days.shape == (4, 3)
        and np.all(np.diff(days, axis=0) < 0)
        and np.all(np.diff(days, axis=1) > 0)
    )  # more devices sooner, more tokens later
    assert [[v == "feasible" for v in row] for row in h.verdict] == (days <= 25).tolist()
    for a, b in h.edge:
        assert {h.verdict[a[0]][a[1]] == "feasible", h.verdict[b[0]][b[1]] == "feasible"} == {
            True,
            False,
        } and abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1
    assert h.edge and all(
        (h.why[i][j] == "") == (h.verdict[i][j] == "feasible") for i in range(4) for j in range(3)
    )
    exact = sweeps.heat_map(d, rows, columns, space=plans.DEFAULT)
    assert np.all(days / np.array(exact.figures["days"], float) < 1.15)
    refused = sweeps.heat_map(d, ("plan.tp", [2, 3]), ("job.global_batch", [128, 256]))
    assert (
        refused.verdict[1] == ["refused", "refused"]
        and refused.figures["mfu"][1] == [None, None]
        and "tp" in refused.why[1][0]
    )


def test_the_longest_sequence_fits_and_the_next_does_not():
    best = answers.longest_sequence(D)
    pins = {f"plan.{k}": assess(D).plan[k] for k in ("tp", "pp", "cp", "dp", "ep", "sharding")}
    at = lambda seq: assess(D.change({**pins, "job.seq_len": seq}))  # noqa: E731
    fits = at(best["seq_len"])
    assert fits.memory_bytes["total"] <= fits.memory_bytes["capacity"]
    more = at(best["seq_len"] + 1024)
    assert (
        more.memory_bytes["total"] > more.memory_bytes["capacity"] or more.plan["offload"] != "none"
    )


def test_the_fewest_devices_and_one_node_less():
    d = D.change({"constraints.deadline_days": 25})
    n = answers.fewest_devices(d)["devices"]
    assert assess(d.change({"cluster.devices": n})).verdict == "feasible"
    assert assess(d.change({"cluster.devices": n - 8})).verdict != "feasible"
    assert answers.fewest_devices(d.change({"constraints.deadline_days": 1e-3})) is None


def test_the_biggest_micro_batch():
    best = answers.biggest_micro_batch(D)
    assert best["memory_share"] <= 1 and best["micro_batch"] >= assess(D).plan["micro_batch"]


def test_the_earliest_finish_is_no_later_than_any_count_tried():
    best = answers.earliest_finish(D, most_devices=256)
    assert best["days"] <= min(
        assess(D.change({"cluster.devices": n})).days for n in (64, 128, 256)
    )


def test_the_largest_model_by_the_deadline():
    d = D.change({"constraints.deadline_days": 30})
    best = answers.largest_model(d)
    assert (
        9e9 < best["params"] < 16e9 and best["days"] <= 30
    )  # the 8B takes 19 of the 30 days: about 1.5 times its size


def test_a_compute_budget_becomes_size_and_tokens():
    d = D.change({"constraints.deadline_days": 30})
    got = answers.within_budget_of_compute(d)
    assert got["days"] == pytest.approx(30, rel=0.02)
    size, tokens = compute_optimal(got["compute_flops"])
    assert got["params"] == pytest.approx(float(size), rel=1e-6) and got["tokens"] == pytest.approx(
        float(tokens), rel=1e-6
    )
    assert (
        10 < got["tokens"] / got["params"] < 40
    )  # about 20 tokens a parameter (Hoffmann et al. 2022)
    assert "arXiv" in got["source"]


def test_reshapes_keep_the_global_batch():
    rows = answers.reshapes(D)
    assert len(rows) > 5 and all(r["dp"] * r["micro_batch"] * r["grad_accum"] == 256 for r in rows)
    assert rows[0]["step_s"] == pytest.approx(assess(D).step_s)
    assert [r["step_s"] for r in rows] == sorted(r["step_s"] for r in rows)
    assert all(
        r["memory_share"] <= 1 and r["tp"] * r["cp"] * r["pp"] * r["dp"] == r["devices_used"] <= 64
        for r in rows
    )


def test_variants_are_the_same_here_and_on_a_cluster():
    distributed = pytest.importorskip("distributed")
    designs = [D.change({"cluster.devices": n}) for n in (32, 64, 96)]
    here = sweeps.variants(designs, top=5)
    assert len(here) == 15 and here[0]["tokens_per_s"] == max(r["tokens_per_s"] for r in here)
    over = {"cluster.devices": [32, 64, 96]}
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert sweeps.variants(designs, top=5, scheduler=client) == here
        assert sweeps.sweep(D, over, scheduler=client, chunk=2) == sweeps.sweep(D, over)
