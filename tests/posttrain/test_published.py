"""Published rows, predicted with the constants that ship: medians and 90th percentiles of families
with weight one. What left-out families give is `python tests/bench/posttrain.py`."""

import numpy as np
import posttrain as bench
import pytest
from scantling.cli import main
from scantling.runs.read import read_table
from scantling_posttrain.constants import HERE, constants

ROWS = HERE / "published"


@pytest.fixture(scope="module")
def tuned():
    return bench.tuning_tables(ROWS / "sft.csv")


def sizes(table):
    found = bench.by_family(table.family, table.errors(constants()))
    return {name: np.abs(np.expm1(errors)) for name, errors in found.items()}


def test_speeds_of_fine_tuning(tuned):
    found = sizes(tuned[0])
    assert len(found) == 6
    assert bench.quantile(found, 0.5) < 0.15


def test_peaks_of_fine_tuning(tuned):
    found = sizes(tuned[1])
    assert len(found) == 4
    assert bench.quantile(found, 0.5) < 0.11 and bench.quantile(found, 0.9) < 0.26


def test_steps_of_policies():
    table, _ = bench.policy_table(ROWS / "rl.csv")
    found = sizes(table)
    assert len(found) == 2
    assert bench.quantile(found, 0.5) < 0.15 and bench.quantile(found, 0.9) < 0.40


def test_split_against_colocated():
    raw = bench.read(ROWS / "rl.csv")
    rows = bench.read_policy_rows(raw, constants())
    answers = bench.policy_answers(rows, constants())
    ready = [row for row, good in zip(raw, rows.ready) if good]
    right = bench.pairs_right(ready, answers.tokens_per_s_per_device)
    assert len(right) >= 15 and np.mean(right) >= 0.8


@pytest.mark.parametrize("name", ["sft", "rl"])
def test_predict_knows_these_tables_by_their_columns(name, tmp_path):
    out = tmp_path / "out.csv"
    assert main(["predict", str(ROWS / f"{name}.csv"), "-o", str(out)]) == 0
    table = read_table(out)
    assert {"step_s", "step_s_low", "step_s_high", "peak_memory_gb", "fits"} <= set(table)
    step, low, high = (table.numbers(c) for c in ("step_s", "step_s_low", "step_s_high"))
    known = ~np.isnan(step)
    assert known.sum() > 30
    assert np.all((low < step)[known] & (step < high)[known])


def test_no_measured_column_is_read(tuned):
    """Every measured figure is wiped: the answers stay."""
    raw = bench.read(ROWS / "rl.csv")
    measured = ("step_s", "rollout_s", "train_s", "logprob_s", "weight_sync_s", "other_s")
    wiped = [row | dict.fromkeys((*measured, "tokens_per_s_per_device"), "") for row in raw]
    k = constants()
    one, other = (
        bench.policy_answers(bench.read_policy_rows(rows, k), k).step_s for rows in (raw, wiped)
    )
    assert np.array_equal(one, other)


@pytest.mark.slow
def test_the_read_me_says_what_left_out_families_give(tmp_path, monkeypatch):
    copy = tmp_path / "README.md"
    kept = bench.README.read_text(encoding="utf-8")
    before, _, rest = kept.partition(bench.BEGIN)
    copy.write_text(before + bench.BEGIN + rest[rest.index(bench.END) :], encoding="utf-8")
    monkeypatch.setattr(bench, "README", copy)
    bench.main(["--readme"])
    assert copy.read_text(encoding="utf-8") == kept
