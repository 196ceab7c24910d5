"""Sums, settings, lists, dates and runs that are over: one thing in another form reads alike."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from scantling import catalogue
from scantling.catalogue.setting_names import NAMES, Setting
from scantling.design.draft import draft
from scantling.plans.prepare import prepare
from scantling_brief.brief import read_brief
from scantling_brief.question_commands import arguments

RUN = "13B on 64 H100, 1T tokens"


def asked(line):
    """The command that a line means, where nothing of it is asked about."""
    reading = read_brief(line)
    design, _, _ = draft(reading, None, prepare)
    assert not design.unread
    return " ".join(arguments(reading, design, "FILE"))


@pytest.mark.parametrize(
    "words",
    ["$3M", "USD 3M", "US$ 3M", "3M USD", "3 million dollars", "3M $", "three million dollars"],
)
def test_a_sum_in_dollars_is_one_however_it_is_written(words):
    for line in (
        f"{RUN}, budget {words}",
        f"{words}, {RUN}",
        f"{RUN} for at most {words} in total",
    ):
        reading = read_brief(line)
        assert reading.fields["constraints.budget_usd"] == 3e6
        assert not reading.unread


@pytest.mark.parametrize(
    ("words", "count"), [("5 lakh", 500_000), ("1.5 crore", 15_000_000), ("500k", 500_000)]
)
def test_indian_scales_count_samples_and_no_dollars(words, count):
    """A lakh is 100,000 and a crore 10,000,000; of money they are rupees."""
    line = "8B sft on 8 H100"
    assert read_brief(f"{line}, {words} samples of 600 tokens").amounts["examples"] == count
    if words[-1] != "k":
        reading = read_brief(f"{line}, 1B tokens, budget {words}")
        assert "constraints.budget_usd" not in reading.fields
        assert reading.unread


@pytest.mark.parametrize("words", ["$2.5/h", "2.5 $/h", "USD 2.5 per hour", "2.5 dollars an hour"])
def test_a_price_of_an_hour_is_one_however_it_is_written(words):
    assert read_brief(f"{RUN} at {words}").fields["prices.usd_per_device_hour"] == 2.5


@pytest.mark.parametrize(
    ("setting", "path"),
    [
        (Setting.TP, "plan.tp"),
        (Setting.SEQ_LEN, "job.seq_len"),
        (Setting.MICRO_BATCH, "plan.micro_batch"),
        (Setting.LAYERS, "model.layers"),
        (Setting.KV_HEADS, "model.kv_heads"),
    ],
)
def test_settings_are_read_by_the_names_of_frameworks(setting, path):
    for name in NAMES[setting]:
        keys = f"--{name.replace('_', '-')} 64", f"trainer.{name}: 64", f"{name}=64"
        for words in keys if "_" in name else ():
            assert read_brief(f"64 H100, {words}").fields[path] == 64


def test_several_values_of_a_list_are_compared():
    assert asked(f"{RUN}: which is faster, bf16, fp8 or mxfp8?").endswith("=bf16,fp8,mxfp8")
    assert "8192,32768,131072" in asked(f"how does it change with context 8k, 32k and 128k? {RUN}")


def test_a_question_of_another_value_compares_it_with_the_one_before():
    plan = "llama-3.1-8b at 131,072 context on 64 H100, CP=8, TP=8."
    assert asked(f"{plan} Would CP=16 help?") == "sweep FILE plan.cp=8,16"
    assert asked("70B on 64 H100. What about 128 GPUs?") == "sweep FILE cluster.devices=64,128"


@pytest.mark.parametrize("days", [30, 100, 250])
def test_two_dates_are_the_days_between_them(days):
    first = date(2027, 3, 10)
    last = first + timedelta(days)
    begin = f"{first:%B} {first.day}, {first.year}"
    for line in (
        f"{RUN}, from {first:%d %B} {first.year} to {last:%d %B} {last.year}",
        f"{RUN}, done by {last:%B} {last.day}, {last.year}, start {begin}",
    ):
        reading = read_brief(line)
        assert reading.fields["constraints.deadline_days"] == days
        assert not reading.unread


def test_one_date_alone_is_asked_about():
    reading = read_brief(f"{RUN}, done by 1 March")
    assert "constraints.deadline_days" not in reading.fields
    assert reading.unread


def test_days_that_a_run_took_are_its_speed_and_no_deadline():
    line = "We trained a 13B in 20 days on 256 A100 with 1T tokens. How long will a 30B take?"
    fields = read_brief(line).fields
    assert "constraints.deadline_days" not in fields
    rate = 1e12 / (20 * 86_400) / 256
    assert fields["measured.tokens_per_s_per_device"] == pytest.approx(rate, rel=1e-5)
    assert asked(line) == "sweep FILE model.size=13000000000,30000000000"


def test_when_a_machine_comes_is_no_deadline():
    reading = read_brief(
        "The 512 H100 will be delivered in 3 months. How long for a 70B, 2T tokens?"
    )
    assert "constraints.deadline_days" not in reading.fields
    assert "in 3 months" in [unread.words for unread in reading.unread]


@pytest.mark.parametrize("words", ["4x 80GB A100s", "with 4x 80GB A100s", "4 x 80GB A100"])
def test_a_memory_before_the_name_is_no_part_of_the_count(words):
    assert read_brief(f"13B {words}").fields["cluster.devices"] == 4


def test_a_count_behind_a_verb_of_needing_is_one_of_devices():
    line = "Is 4x H100 enough for a 13B at 32k context or do I need 8?"
    assert asked(line) == "sweep FILE cluster.devices=4,8"


def test_a_number_of_a_rack_is_its_devices():
    for row in catalogue.accelerators().values():
        if "nvl" in row.id and row.scale_up_domain > 8:
            said = row.id.replace("-", " ").upper()
            assert read_brief(f"13B on {said}").fields["cluster.accelerator"] == row.id


def test_epochs_of_tokens_are_their_product_under_every_method():
    for method in ("", ", LoRA", ", SFT", ", QLoRA r 16"):
        for words in ("3 epochs over 100M tokens", "for 3 epochs of 100M tokens"):
            fields = read_brief(f"qwen2.5-7b on 8 H100, {words}{method}").fields
            assert fields["job.tokens"] == 3e8


def test_our_chips_are_of_an_unsaid_number():
    assert "cluster.devices" not in read_brief("Our H200s, 70B, how many do we need?").fields
    assert read_brief("our H200, 7B").fields["cluster.devices"] == 1


def test_machines_of_one_count_are_paired_with_it():
    line = "13B: 64 H100, 64 H200 or 48 B200, which is better?"
    assert asked(line).endswith("devices=64,64,48 --together")


def test_a_batch_that_its_accumulation_does_not_part_is_of_each_device():
    fields = read_brief("7B, 1 A100 80GB, batch_size 2, gradient_accumulation_steps 16").fields
    assert (fields["plan.micro_batch"], fields["job.global_batch"]) == (2, 32)
