"""Predictions of published runs: held to the printed figures, blind to the measured columns, one
row out for each row in."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scantling import catalogue
from scantling.base.errors import DesignError
from scantling.catalogue.models import entries as catalogue_models
from scantling.catalogue.models.shape import parameters
from scantling.catalogue.words import RECOMPUTES
from scantling.physics import bands
from scantling.physics.software import SWITCHES
from scantling.physics.step import PARTS, step_time
from scantling.runs.accuracy import validate_frame
from scantling.runs.frames import frame_of, table_of
from scantling.runs.normalise import PLAN_COLUMNS, TEXT, WORDS, normalise, settled
from scantling.runs.predict import COLUMNS, predict_frame
from scantling.runs.read import read_runs, table_of_text
from scantling.runs.run_columns import columns, plan_switches, template
from scantling.runs.run_words import RULES
from scantling.runs.to_cases import to_runs
from validation import memory_fit as memory

RUNS = catalogue.HERE / "published_runs.csv"


def normalised(rows):
    """A data frame with the columns that its words settle."""
    return frame_of(normalise(table_of(rows)))


@pytest.fixture(scope="module")
def frame():
    return read_runs(RUNS)


@pytest.fixture(scope="module")
def figures(frame):
    return validate_frame(frame)


def test_a_line_for_each_row_and_blank_where_a_dimension_is_missing(frame):
    got = predict_frame(frame)
    assert tuple(got.columns) == COLUMNS and list(got.id) == list(frame.id)
    said = got.error.ne("")
    assert got[said].mfu.isna().all() and got[~said].mfu.notna().all()
    assert (
        got[said]
        .error.str.contains(
            "never guessed|not in the catalogue|n_devices is|does not divide|divides"
        )
        .all()
    )


def test_runs_in_int8_are_foretold_by_a_fit_that_does_not_know_them(frame, figures):
    """MLPerf Training v4.0, Google: GPT-3 175B on 512 to 6,144 TPU v5p in int8 (AQT); their rows
    are no part of the fit. Google's documents print 918 TOP/s beside 459 TFLOP/s."""
    rows = frame[frame.precision.eq("int8") & frame.setup.eq("full")]
    got = predict_frame(rows)
    off = got.tokens_per_s_per_device / rows.measured_tokens_per_s_per_device.to_numpy(float) - 1
    assert len(off) == 4 and off.abs().max() < 0.13
    with pytest.raises(DesignError, match="'int8' is not a unit that H100"):
        catalogue.accelerator("h100-sxm").peak_flops("int8")


def test_no_measured_column_is_read(frame):
    rows = frame.iloc[::40].drop(columns="tuned")  # that its words settle again
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
        and o["median"] < 0.065
        and o["p90"] < 0.24
        and o["over_sources"] < 0.07
    )
    assert o["median"] < o["baseline_median"] / 3
    assert 0.75 < o["coverage"] < 0.96


@pytest.mark.parametrize(
    "source, limit",
    [
        ("SC21", 0.06),
        ("Reducing Activation", 0.06),
        ("DGX Cloud Benchmarking recipes, Llama 3.1 70B", 0.0585),
        ("Llama 3 Herd", 0.13),
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


def test_a_mechanism_that_nobody_has_measured_is_known_before_the_prediction(frame):
    """Experts of Trainium in 8 bit over a network that no run of the tables had."""
    runs = to_runs(frame)
    words = bands.mechanisms(runs.cases, runs.families, runs.fabrics)
    assert bands.measured_mechanisms(words).mean() > 0.98  # but rows that do not count
    case = runs.cases.take(slice(0, 1))
    strange = bands.mechanisms(case, ["trainium"], ["a-new-fabric"])
    assert not bands.measured_mechanisms(strange)[0]
    low, high = bands.band(case)
    far_low, far_high = bands.band(case, measured=False)
    assert np.all(far_high / far_low > high / low)


def test_the_kind_of_site_is_said_and_widens_the_interval(frame):
    """With effort blank, as most tables leave it, a row is an ordinary site, or a recipe where its
    words say so; a first week has the widest interval."""
    row = frame[frame.effort.eq("typical")].iloc[[0]].drop(columns="tuned")
    kinds = {}
    for effort in ("", "tuned", "typical", "first-week"):
        (got,) = predict_frame(row.assign(effort=effort)).to_dict("records")
        kinds[effort] = (got["site_kind"], got["mfu_high"] / got["mfu_low"])
    assert [kind for kind, _ in kinds.values()] == ["ordinary", "recipe", "ordinary", "first-week"]
    widths = [kinds[effort][1] for effort in ("tuned", "typical", "first-week")]
    assert widths == sorted(widths)


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


def test_what_is_said_of_a_nearest_run_is_said_by_who_has_not_seen_it():
    """Beside the measured MFU of a run stands the one of a fit without its family: the errors of
    all are those of the families left out."""
    runs = pd.read_csv(catalogue.HERE / "run_conditions.csv")
    off = abs(runs.mfu_predicted / runs.mfu - 1)
    told = bands.calibration()["figures"]["family left out"]
    assert off.median() == pytest.approx(told["median"], abs=1e-3)
    assert off.quantile(0.9) == pytest.approx(told["p90"], abs=2e-3)


def test_the_columns_of_the_shipped_tables_are_what_their_words_say(frame):
    for name in ("published_runs.csv", "published_memory.csv"):
        table = pd.read_csv(catalogue.HERE / name, low_memory=False, dtype={"id": str})
        assert set(settled()) <= set(table)
        made = normalised(table.drop(columns=list(settled())))
        for column in settled():
            if column in WORDS:
                assert (table[column].fillna("") == made[column].fillna("")).all(), column
            else:
                np.testing.assert_allclose(table[column], made[column], rtol=1e-8, err_msg=column)
    assert (frame.tp_overlap == 0.44).any() and (frame.even_routing == 2).any()


def test_every_word_names_a_column_that_something_reads():
    read = set(SWITCHES) | set(PLAN_COLUMNS) | set(WORDS) | {"released_month", "options_printed"}
    read |= {"scale_out", "slices", "interleaved", "recompute_layers", "shard_group"}
    read |= {"half_states", "peak_unit", "packed"}
    assert {r.column for r in RULES} <= read
    assert all(r.source and r.text in (*TEXT, "options", "when") for r in RULES)


def test_the_kinds_of_recompute_are_called_what_plans_call_them():
    assert bands.KINDS["recompute"] == tuple(f"recompute {name}" for name in RECOMPUTES)


def test_no_word_settles_a_number_that_tables_print():
    """What words settle is made anew from them in the shipped tables: a column of the published
    format would lose what its rows print."""
    table = pd.read_csv(catalogue.HERE / "published_runs.csv", nrows=1)
    printed = table.columns[: table.columns.get_loc("released")]
    assert not set(settled()) & set(printed)


def test_formats_of_states_and_losses_are_read_from_what_a_row_says(frame):
    row = frame[frame["stack"] == "torchtitan"].iloc[[0]].drop(columns=list(settled()))
    for published, options, size in (
        ("2025-08", "torch.compile", 4),
        ("2024-12", "torch.compile", 14),
        ("2025-08", "no compile", 14),
    ):
        made = normalised(row.assign(published=published, other_opts=options))
        assert made.logit_bytes.tolist() == [size]
    made = normalised(row.assign(half_states=1, grad_bytes=2))
    job = to_runs(made).cases.job
    assert (job.optimizer_bytes, job.master_bytes, job.grad_bytes) == (4, 0, 2)


def test_spellings_that_tables_use_are_read(frame, tmp_path):
    row = frame[(frame.precision == "bf16") & (frame.sharding == "zero3")].iloc[[0]]
    as_printed = row.assign(precision="BF16", sharding="ZeRO-3", recompute="None")
    same = row.assign(recompute="none")
    pd.testing.assert_frame_equal(predict_frame(as_printed), predict_frame(same))
    blocks = frame[frame.precision == "fp8-current"].iloc[[0]].assign(precision="fp8-block")
    assert predict_frame(blocks).error.eq("").all()


def test_a_switch_out_of_its_bounds_is_named_and_nothing_is_predicted(frame, tmp_path):
    """Infinities and 1e308 in a column of the software gave a step time without an error."""
    names = [*SWITCHES, "recompute_layers", "shard_group"]
    row = frame[frame.precision == "bf16"].iloc[[0]].drop(columns="unreadable")
    rows = []
    for name in names:
        for value in (np.inf, -np.inf, 1e308, -2.0):
            rows.append(row.assign(**{"id": f"{name} {value}", name: value}))
    path = tmp_path / "runs.csv"
    pd.concat([row.assign(id="whole"), *rows]).to_csv(path, index=False)
    got = predict_frame(read_runs(path)).set_index("id")
    assert got.error["whole"] == "" and got.mfu["whole"] > 0
    bad = got.drop(index="whole")
    assert bad.mfu.isna().all()
    assert all(error.startswith(id.split()[0]) for id, error in bad.error.items())


def test_what_ran_is_said_to_fit(frame):
    """All published runs ran; their chances of running out stay right too (Brier)."""
    chance, _ = memory.ran(RUNS)
    assert (chance <= 0.5).mean() >= 0.95 and (chance**2).mean() <= 0.08


def test_a_blank_setting_gives_way_where_its_run_would_not_fit(frame):
    """A printed setting stands; a blank one gives way as far as it must and no further."""
    row = frame[frame.id == "mbridge-26.02.01-021"].reset_index(drop=True)
    said, least, whole = (
        predict_frame(row.assign(recompute=word)).iloc[0] for word in ("none", "", "full")
    )
    assert said.fits == "false" and "the default" not in said.assumed
    assert least.fits == "true" and "recompute=full (the default does not fit)" in least.assumed
    assert least.memory_bytes > whole.memory_bytes


def test_a_custom_policy_of_maxtext_repeats_what_it_does_not_name(frame):
    """maxtext_trillium_model_configs.py: 70B at 4 sequences of 8,192 runs on chips of 32 GB, as the
    host keeps what the policy keeps."""
    row = frame[frame.id == "tpurec-trillium-llama3.1-70b-maxtext-v6e-128"].reset_index(drop=True)
    assert predict_frame(row).fits[0] == "true"
    assert predict_frame(row.assign(activation_offload=0.0)).fits[0] == "false"


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


def test_the_template_explains_every_column_and_its_row_is_predicted(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(template())
    lines = path.read_text().splitlines()
    (row,) = predict_frame(read_runs(path)).to_dict("records")
    every = [*columns(), *(switch.column for switch in plan_switches())]
    assert [line.split()[1] for line in lines[:-2]] == lines[-2].split(",") == every
    # what a plan has
    assert {"schedule", "cp_type", "layer_split", "tp_overlap", "ep_overlap"} <= set(every)
    assert row["error"] == "" and row["fits"] == "true"
    assert row["params"] == catalogue_models.entry("llama-3.1-70b").published_params


@pytest.mark.parametrize("name", ["deepseek-v3", "gpt-3-175b", "mixtral-8x22b", "gpt-oss-120b"])
def test_an_id_or_a_config_is_enough_for_the_shape(name, tmp_path):
    held = catalogue_models.entry(name)
    table = pd.DataFrame([dict(id="a", model=name, accelerator="h100-sxm", n_devices=256)])
    table.to_csv(tmp_path / "runs.csv", index=False)
    (row,) = predict_frame(read_runs(tmp_path / "runs.csv")).to_dict("records")
    assert row["error"] == "" and row["params"] == parameters(held.model).total


@pytest.mark.parametrize(
    ("column", "cell"),
    [("tp", "0"), ("micro_batch", "-1"), ("layers", "1e+308"), ("global_batch_seqs", "0.5")],
)
def test_a_senseless_cell_is_the_error_of_its_row_alone(column, cell, tmp_path):
    table = pd.read_csv(RUNS, dtype=str, keep_default_na=False).iloc[:3].copy()
    table.to_csv(tmp_path / "good.csv", index=False)
    table.loc[1, column] = cell
    table.to_csv(tmp_path / "bad.csv", index=False)
    good, bad = (predict_frame(read_runs(tmp_path / f"{n}.csv")) for n in ("good", "bad"))
    assert column in bad.error[1] and cell in bad.error[1]
    pd.testing.assert_frame_equal(good.drop(1), bad.drop(1))


@pytest.mark.parametrize(
    "cells",
    [
        {"precision": "BF16"},
        {"sharding": "ZeRO-3"},
        {"precision": "fp8-block"},
        {"precision": "mxfp8"},
    ],
)
def test_a_table_takes_the_words_that_a_design_takes(cells, tmp_path):
    table = pd.read_csv(RUNS, dtype=str, keep_default_na=False)
    row = table.iloc[[0]].assign(accelerator="b200-sxm", **cells)
    row.to_csv(tmp_path / "runs.csv", index=False)
    assert list(predict_frame(read_runs(tmp_path / "runs.csv")).error) == [""]


def test_one_table_holds_every_model_of_the_catalogue():
    """By id, shallow models beside those with windowed layers: none stops another."""
    rows = "".join(f"{m},{m},h100-sxm,1024,bf16\n" for m in catalogue_models.models())
    frame = frame_of(
        table_of_text(f"id,model,accelerator,n_devices,precision\n{rows}", Path("runs.csv"))
    )
    got = predict_frame(frame)
    assert (got.error == "").all() and (got.step_time_s > 0).all()
