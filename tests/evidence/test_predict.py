"""Predictions of published runs: held to the printed figures, blind to the measured columns, one
row out for each row in."""

import numpy as np
import pandas as pd
import pytest
from scantling import catalogue
from scantling.evidence.normalise import OWN, TEXT, WORDS, normalise, rules, settled
from scantling.evidence.predict import COLUMNS, predict_frame
from scantling.evidence.runs import read_runs, to_runs
from scantling.evidence.validate.compare import validate_frame
from scantling.physics import bands
from scantling.physics.gather import SWITCHES
from scantling.physics.step import PARTS, step_time

RUNS = catalogue.HERE / "published_runs.csv"


@pytest.fixture(scope="module")
def frame():
    return read_runs(RUNS)


@pytest.fixture(scope="module")
def figures(frame):
    return validate_frame(frame)


def test_a_line_for_each_row_and_blank_where_a_dimension_is_missing(frame):
    got = predict_frame(frame)
    assert list(got.columns) == COLUMNS and list(got.id) == list(frame.id)
    said = got.error.ne("")
    assert got[said].mfu.isna().all() and got[~said].mfu.notna().all()
    assert got[said].error.str.contains("never guessed|not in the catalogue").all()


def test_no_measured_column_is_read(frame):
    rows = frame.iloc[::40]
    blank = rows.assign(
        measured_tokens_per_s_per_device=np.nan,
        measured_peak_memory_gb=np.nan,
        source="",
        locator="",
        trust="",
        fold=0,
        id=rows.id,
        model="",
    )
    pd.testing.assert_frame_equal(predict_frame(rows), predict_frame(blank))


def test_accuracy_on_what_was_published(figures):
    """Counted rows: medians and tails that the project states; every row with a shape answered."""
    o = figures["overall"]
    assert (
        o["answered"] > 0.97
        and o["median"] < 0.045
        and o["p90"] < 0.14
        and o["over_sources"] < 0.05
    )
    assert o["median"] < o["baseline_median"] / 3
    assert 0.75 < o["coverage"] < 0.96


@pytest.mark.parametrize(
    "source, limit",
    [
        ("SC21", 0.06),
        ("Reducing Activation", 0.06),
        ("DGX Cloud Benchmarking recipes, Llama 3.1 70B", 0.05),
        ("Llama 3 Herd", 0.10),
    ],
)
def test_sources_that_others_quote(figures, source, limit):
    got = [f["median"] for name, f in figures["by"]["source"].items() if source in name]
    assert got and max(got) < limit


def test_parts_sum_to_the_step_and_are_not_negative(frame):
    c = to_runs(frame).cases
    step = step_time(c)
    parts = [np.broadcast_to(getattr(step, p), len(c)) for p in PARTS]
    assert np.allclose(sum(parts), step.total) and min(p.min() for p in parts) >= 0


def test_one_row_alone_equals_the_same_row_among_many(frame):
    together = predict_frame(frame).set_index("id").mfu
    for i in ("korthikanti-t5-175B-full", "llama3-405b-t4-1"):
        alone = predict_frame(frame[frame.id == i]).mfu.iloc[0]
        assert alone == pytest.approx(together[i], rel=1e-9)


def test_faster_links_and_memory_never_slow(frame):
    from dataclasses import replace

    c = to_runs(frame).cases
    before = step_time(c).total
    for record, field in (
        ("link", "out_bytes_per_s"),
        ("link", "up_bytes_per_s"),
        ("chip", "hbm_bytes_per_s"),
    ):
        better = replace(
            c,
            **{
                record: replace(
                    getattr(c, record), **{field: 1.5 * getattr(getattr(c, record), field)}
                )
            },
        )
        assert np.all(step_time(better).total <= before * (1 + 1e-9)), field


def test_bands_widen_for_what_was_never_run(frame):
    c = to_runs(frame).cases.take(slice(0, 50))
    low, high = bands.band(c, known=True)
    wide_low, wide_high = bands.band(c, known=False)
    far_low, far_high = bands.band(c, known=False, seen_chip=False, inferred=True)
    assert np.all(low < 1) and np.all(high > 1)
    assert np.all(wide_high / wide_low >= high / low) and np.all(
        far_high / far_low > wide_high / wide_low
    )


def test_the_nearest_run_of_a_published_run_is_itself(frame):
    runs = to_runs(frame)
    i = (
        list(runs.ids[runs.ready]).index("megatron21-t1-1T")
        if "megatron21-t1-1T" in set(runs.ids[runs.ready])
        else 0
    )
    near = bands.nearest_runs(
        runs.cases.take(slice(i, i + 1)),
        chip=runs.chips[i],
        family=runs.families[i],
        stack=runs.stacks[i],
    )
    assert near[0]["id"] == runs.ids[runs.ready][i] and near[0]["distance"] == 0 and len(near) == 5
    assert all(n["differs"] and n["source"] for n in near)


def test_the_columns_of_the_shipped_tables_are_what_their_words_say(frame):
    for name in ("published_runs.csv", "published_memory.csv"):
        table = pd.read_csv(catalogue.HERE / name, low_memory=False, dtype={"id": str})
        assert set(settled()) <= set(table)
        made = normalise(table.drop(columns=list(settled())))
        for column in settled():
            if column in WORDS:
                assert (table[column].fillna("") == made[column].fillna("")).all(), column
            else:
                np.testing.assert_allclose(table[column], made[column], rtol=1e-8, err_msg=column)
    assert (frame.tp_overlap == 0.44).any() and (frame.even_routing == 2).any()


def test_every_word_names_a_column_that_something_reads():
    read = set(SWITCHES) | set(OWN) | set(WORDS) | {"released_month", "options_printed"}
    read |= {
        "scale_out",
        "slices",
        "interleaved",
        "grad_bytes",
        "recompute_layers",
        "layer_inputs_kept",
    }
    assert {r.column for r in rules()} <= read
    assert all(r.source and r.reads in (*TEXT, "options") for r in rules())


def test_spellings_that_tables_use_are_read(frame, tmp_path):
    row = frame[(frame.precision == "bf16") & (frame.sharding == "zero3")].iloc[[0]]
    as_printed = row.assign(precision="BF16", sharding="ZeRO-3", recompute="None")
    same = row.assign(recompute="none")
    pd.testing.assert_frame_equal(predict_frame(as_printed), predict_frame(same))
    blocks = frame[frame.precision == "fp8-current"].iloc[[0]].assign(precision="fp8-block")
    assert predict_frame(blocks).error.eq("").all()


def test_what_a_row_states_stands_against_its_words(frame):
    row = frame[frame["stack"].eq("megatron-core") & frame.tp.gt(1)].iloc[[0]]
    row = row.assign(other_opts="async tp", tp_overlap=np.nan)
    assert to_runs(row).cases.software.tp_overlap == 0.44
    assert to_runs(row.assign(tp_overlap=1.0)).cases.software.tp_overlap == 1.0


@pytest.mark.parametrize(
    "column, cell",
    [
        ("precision", "int7"),
        ("sharding", "zero9"),
        ("recompute", "sometimes"),
        ("micro_batch", "two"),
        ("layers", "12 or 24"),
        ("schedule", "zigzag"),
        ("cp_type", "star"),
    ],
)
def test_a_cell_that_cannot_be_read_is_one_rows_error(frame, tmp_path, column, cell):
    rows = frame[frame.layers.notna() & frame.n_devices.notna()].iloc[:3].drop(columns="unreadable")
    rows = rows.astype({column: object})
    rows.iloc[1, rows.columns.get_loc(column)] = cell
    rows.to_csv(tmp_path / "runs.csv", index=False)
    got = predict_frame(read_runs(tmp_path / "runs.csv"))
    assert cell in got.error[1] and np.isnan(got.mfu[1])
    assert got.error[[0, 2]].eq("").all() and got.mfu[[0, 2]].notna().all()
