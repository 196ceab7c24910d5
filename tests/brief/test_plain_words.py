"""Ways in which colleagues say one thing, and ways that look alike and say another: what is read of
the one must not be read of the other."""

from __future__ import annotations

import pytest
from scantling.design.draft import draft
from scantling.plans.prepare import prepare
from scantling_brief.brief import read_brief
from scantling_brief.question_commands import arguments

LINE = "70B on 512 H100, 2T tokens, "


def _fields(words: str) -> dict[str, object]:
    """What words behind a plain line set; none of them is asked about."""
    reading = read_brief(LINE + words)
    assert not reading.unread, words
    return dict(reading.fields)


def _command(line: str) -> str:
    """The command that a line means; nothing of the line is asked about."""
    reading = read_brief(line)
    design, _, _ = draft(reading, None, prepare)
    assert not design.unread, design.unread
    return " ".join(arguments(reading, design, "FILE"))


@pytest.mark.parametrize(
    "words",
    [
        "restart 10 min",
        "a restart takes 10 minutes",
        "restarts of 10 min",
        "restart time: 600s",
        "10-minute restarts",
        "it takes 10 minutes to restart the job after a failure",
        "recovery takes 10 min",
        "the job recovers in 10 minutes",
    ],
)
def test_a_time_of_a_restart_without_a_bound_is_a_fact_of_the_machine(words):
    fields = _fields(words)
    assert fields["reliability.restart_s"] == 600
    assert "constraints.max_recovery_s" not in fields


@pytest.mark.parametrize(
    "words",
    [
        "restart must take at most 10 minutes",
        "restarts within 10 min",
        "recovery should not take longer than 10 minutes",
        "no more than 10 minutes to restart",
        "max recovery time 10 min",
        "RTO 10 min",
        "back within 10 minutes after a node failure",
        "recover in 10 minutes",
    ],
)
def test_a_time_of_a_restart_with_a_bound_is_a_limit(words):
    fields = _fields(words)
    assert fields["constraints.max_recovery_s"] == 600
    assert "reliability.restart_s" not in fields


def test_how_often_it_restarts_is_no_time_of_a_restart():
    for words in ("restarts every 6 hours", "the job restarts once every 6 hours"):
        fields = _fields(words)
        assert not fields.keys() & {"reliability.restart_s", "constraints.max_recovery_s"}
        assert "reliability.failures_per_1000_node_days" in fields
    (asked,) = read_brief(LINE + "recovery time 10 minutes").unread
    assert set(asked.choices) == {"constraints.max_recovery_s", "reliability.restart_s"}


@pytest.mark.parametrize(
    ("line", "networks"),
    [
        ("is InfiniBand worth it over 25GbE for a 13B on 64 H100?", "ib-ndr,eth-25"),
        ("InfiniBand or RoCE for 70B on 512 H100?", "ib-ndr,rocev2-400"),
        ("InfiniBand or 200G RoCE for 70B on 256 A100 80GB?", "ib-hdr,rocev2-200"),
        (
            "what happens if InfiniBand is replaced by 200G RoCE? 70B on 512 H100",
            "ib-ndr,rocev2-200",
        ),
        ("should we go with RoCE rather than InfiniBand, 70B 512 H100", "rocev2-400,ib-ndr"),
    ],
)
def test_two_networks_of_a_question_are_compared_each_at_its_own_rate(line, networks):
    assert _command(line) == f"sweep FILE cluster.scale_out={networks}"


def test_a_rate_that_no_network_of_its_kind_has_is_asked_about_where_it_is_compared():
    assert read_brief("Ethernet 100G or 400G? 70B on 512 H100").unread


def test_bytes_of_a_network_are_no_bits():
    assert _fields("50 GB/s InfiniBand")["cluster.scale_out"] == "ib-ndr"
    assert _fields("200G InfiniBand")["cluster.scale_out"] == "ib-hdr"
    assert read_brief(LINE + "400gb/s infiniband").unread


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("70B with tp8 pp4 on 512 H100. Would pp2 be better?", "sweep FILE plan.pp=4,2"),
        (
            "70B on 512 H100, 2T tokens. Would 256 B200 be cheaper?",
            "sweep FILE cluster.accelerator=h100-sxm,b200-sxm cluster.devices=512,256 --together",
        ),
        (
            "gbs 1024 on 512 H100 for a 70B, would gbs 2048 be faster?",
            "sweep FILE job.global_batch=1024,2048",
        ),
    ],
)
def test_a_second_value_in_a_sentence_that_asks_for_the_better_is_compared(line, command):
    assert _command(line) == command


@pytest.mark.parametrize(
    "line", ["13B and 30B on 64 H100", "70B on 512 H100, pp4, pp2", "7B, 1T tokens, 2T tokens"]
)
def test_a_second_value_without_a_question_is_a_contradiction(line):
    with pytest.raises(ValueError, match="twice"):
        read_brief(line)


@pytest.mark.parametrize(
    ("line", "stacks"),
    [
        ("fsdp or megatron for 70B on 128 H100?", "pytorch-fsdp,megatron-core"),
        ("Megatron or FSDP for 70B on 128 H100?", "megatron-core,pytorch-fsdp"),
        ("deepspeed zero3 or fsdp, 13B, 64 A100 80GB", "deepspeed,pytorch-fsdp"),
    ],
)
def test_fsdp_beside_a_stack_is_one(line, stacks):
    assert _command(line) == f"sweep FILE stack={stacks}"


def test_fsdp_beside_another_sharding_or_with_a_stack_is_a_sharding():
    line = "fsdp or zero2 for 13B on 64 H100?"
    assert _command(line) == "sweep FILE plan.sharding=zero3,zero2"
    fields = _fields("megatron with fsdp")
    assert fields["stack"] == "megatron-core" and fields["plan.sharding"] == "zero3"


def test_a_budget_and_a_deadline_are_no_range():
    fields = read_brief("70B on H100, I have $3.5M and 60 days").fields
    assert fields["constraints.budget_usd"] == 3.5e6
    assert fields["constraints.deadline_days"] == 60
    for range_ in ("between $3M and $5M", "$3M-5M", "$3M to $5M"):
        assert read_brief(f"70B on 512 H100, {range_}").unread, range_


@pytest.mark.parametrize(
    ("line", "model"),
    [
        ("70b llama 2", "llama-2-70b"),
        ("8x7B Mixtral", "mixtral-8x7b"),
        ("32B Qwen3", "qwen3-32b"),
        ("8B Llama-3.1", "llama-3.1-8b"),
    ],
)
def test_a_size_before_its_series_names_the_model(line, model):
    assert read_brief(f"{line} on 64 H100").fields["model"] == model


@pytest.mark.parametrize("line", ["13B Llama-style model", "a 70B llama 2 class model"])
def test_a_size_before_what_it_is_like_names_no_model(line):
    fields = read_brief(f"{line} on 64 H100").fields
    assert "model" not in fields and "model.size" in fields


def test_a_size_of_several_series_is_asked_about():
    assert read_brief("13B Llama on 64 A100 80GB").unread


@pytest.mark.parametrize("lacks", ["we don't have", "we dont have", "we have no", "there is no"])
def test_what_somebody_lacks_is_without_it(lacks):
    fields = read_brief(f"7B on 8 A100 80GB, {lacks} NVLink").fields
    assert fields["cluster.accelerator"] == "a100-80-pcie"
    fields = read_brief(f"7B on 8 A100 80GB, {lacks} deadline").fields
    assert "constraints.deadline_days" not in fields


def test_what_somebody_has_not_done_or_must_not_exceed_is_no_lack():
    assert read_brief("7B on 8 H100, we do not have more than 30 days").fields[
        "constraints.deadline_days"
    ] == pytest.approx(30)
    assert read_brief("can't we use fp8? 7B on 8 H100").fields["job.precision"] == "fp8"
    ignored = [read.words for read in read_brief("7B on 8 H100, we cant use fp8").ignored]
    assert ignored == ["can't use fp8"]


def test_cards_of_a_node_are_no_devices_of_it():
    fields = _fields("400G NICs, 2 per node")
    assert fields["cluster.nics_per_node"] == 2
    assert "cluster.devices_per_node" not in fields
    assert _fields("4 per node")["cluster.devices_per_node"] == 4


def test_a_form_before_its_chip_is_the_chips():
    fields = read_brief("7B on two PCIe nodes of 4 A100 80GB").fields
    assert fields["cluster.accelerator"] == "a100-80-pcie"
    assert fields["cluster.devices"] == 8
    assert read_brief("7B on 16 PCIe H100").fields["cluster.accelerator"] == "h100-pcie"


def test_devices_of_each_chip_that_is_compared():
    line = "Trn2 vs H100 for a 13B, 256 chips each"
    assert read_brief(line).fields["cluster.devices"] == 256
    assert read_brief("4 nodes, 8 GPUs each, 7B").fields["cluster.devices"] == 32
    assert read_brief("7B, 8 GPUs each").unread


def test_spot_is_a_price_and_how_often_it_is_taken_back():
    line = "256 spot H100 at $1.40, preempted every 6 hours, vs on-demand at $2.80: 30B"
    fields = read_brief(line).fields
    assert fields["prices.spot.usd_per_device_hour"] == 1.4
    assert fields["prices.spot.preemptions_per_day"] == 4
    assert fields["prices.usd_per_device_hour"] == 2.8
    for half in ("256 spot H100 at $1.40, 30B", "256 H100, preempted every 6 hours, 30B"):
        reading = read_brief(half)
        assert reading.unread and not any("spot" in path for path in reading.fields), half


def test_a_sentence_ends_the_reach_of_what_bounds():
    fields = read_brief("64 H100 and no money for more. 6.7B, 150B tokens").fields
    assert fields["model.size"] == 6.7e9


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("How sensitive is the cost of a 70B on 512 H100 to the failure rate?", "sensitivity FILE"),
        ("does a restart of 25 minutes matter with a 70B on 512 H100?", "goodput FILE"),
    ],
)
def test_questions_of_what_a_figure_hangs_on(line, command):
    assert _command(line) == command


def test_counts_of_two_spans_are_those_of_the_machine():
    line = "is it cheaper to run 30 days on 512 or 60 days on 256 H100? 13B, 3T tokens"
    swept = "constraints.deadline_days=30,60 cluster.devices=512,256 --together"
    assert _command(line) == f"sweep FILE {swept}"
    listed = "how does 13B do with tp 2, 4 or 8 on 64 H100?"
    assert _command(listed) == "sweep FILE plan.tp=2,4,8"


@pytest.mark.parametrize(
    ("line", "swept"),
    [
        (
            "If I cut the batch from 4M to 2M tokens, how much slower is a 70B on 512 H100?",
            "job.global_batch_tokens=4000000,2000000",
        ),
        ("context from 8k to 32k for 8B on 64 H100, how much slower?", "job.seq_len=8192,32768"),
        ("raise tp from 4 to 8 for 70B on 64 H100?", "plan.tp=4,8"),
    ],
)
def test_a_setting_from_one_value_to_another_is_compared(line, swept):
    assert _command(line) == f"sweep FILE {swept}"


def test_from_one_number_to_another_without_a_setting_is_a_range():
    assert read_brief("70B from 1T to 2T tokens on 64 H100").unread


@pytest.mark.parametrize(
    "words", ["the job dies 3 times a day", "it crashed 3 times a day", "3 failures a day"]
)
def test_so_many_failures_of_a_span_are_a_rate(words):
    rate = _fields(words)["reliability.failures_per_1000_node_days"]
    assert rate == pytest.approx(3 / 64 * 1000, rel=1e-3)


def test_dollars_that_no_run_costs_are_a_price_unless_the_line_says_budget():
    fields = read_brief("70B on 512 H100 for $2.10, 2T tokens").fields
    assert fields["prices.usd_per_device_hour"] == 2.1
    line = "what if the price goes up to $3? 70B on 512 H100 at $2.5/h, 2T tokens"
    assert _command(line) == "sweep FILE prices.usd_per_device_hour=2.5,3"
    fields = read_brief("LoRA of a 7B on one RTX 4090, budget $20").fields
    assert fields["constraints.budget_usd"] == 20
    assert read_brief("70B on 512 H100 for $60").unread


def test_power_of_a_site_is_a_limit_and_a_draw_is_none():
    assert _fields("in a 5 MW data center")["constraints.max_power_mw"] == 5
    assert read_brief(LINE + "they draw 5 MW").unread


@pytest.mark.parametrize(
    ("words", "choice"),
    [
        ("a checkpoint takes 90 s", "reliability.checkpoint_stall_s"),
        ("4 of them as spares", "reliability.spares"),
        ("should we buy them or rent them?", "prices.owned.capex_usd"),
        ("how many racks can we power?", "cluster.devices"),
    ],
)
def test_what_may_mean_two_things_is_asked_by_its_fields(words, choice):
    (asked,) = read_brief(LINE + words).unread
    assert choice in asked.choices


def test_hybrid_beside_a_named_hybrid_says_nothing_more_and_alone_it_decides():
    assert not read_brief("the hybrid nemotron-h-8b on 64 H100").unread
    assert read_brief("a 3B hybrid on 64 H100").unread


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("how big is a checkpoint of a 405B on 512 H100?", "goodput FILE"),
        ("would more frequent checkpoints help? 70B on 512 H100", "goodput FILE"),
        ("how many tokens can we afford with a 70B on 512 H100?", "design FILE"),
        ("how many tokens should we train a 70B on? 512 H100, 60 days", "scaling FILE"),
        ("how big a model can we train on 512 H100 with 2T tokens?", "answer FILE largest-model"),
    ],
)
def test_questions_that_sound_alike(line, command):
    assert _command(line) == command


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("GRPO with a 7B on 16 H100, how long per step?", "design FILE"),
        ("pretraining a 1B on a single H100 - how many tokens per day?", "design FILE"),
        ("is TP across nodes ever a good idea for 405B on 1,024 H100?", "search FILE"),
        ("is 1 checkpoint per hour too rare with MTBF 4h? 70B on 512 H100", "goodput FILE"),
        ("70B on 512 H100, MTBF 6 h, what fraction of time is lost?", "goodput FILE"),
        (
            "what would 2:1 oversubscription do to a 405B on 8,192 H100?",
            "sweep FILE cluster.oversubscription=2,1",
        ),
        (
            "70B on 512 H100: is the A100 twice as slow?",
            "sweep FILE cluster.accelerator=h100-sxm,a100-80-sxm",
        ),
        (
            "13B, what's cheaper, A100 at 1.2 or H100 at 2.3 per hour?",
            "sweep FILE cluster.accelerator=a100-80-sxm,h100-sxm"
            " prices.usd_per_device_hour=1.2,2.3 --together",
        ),
    ],
)
def test_questions_in_a_colleagues_words(line, command):
    assert _command(line) == command


def test_a_save_that_costs_stalls_and_one_that_takes_may_not():
    fields = _fields("checkpoint every 20 minutes costing 40 s")
    assert fields["checkpoint.interval_s"] == 1200
    assert fields["reliability.checkpoint_stall_s"] == 40
    assert read_brief(LINE + "checkpoint every 20 minutes, saving takes 40 s").unread


def test_nodes_that_die_are_counted_by_the_span_and_are_not_the_machine():
    fields = read_brief("5 nodes die per week on our 1,000 node H100 cluster, 405B").fields
    assert fields["cluster.devices"] == 8000
    rate = fields["reliability.failures_per_1000_node_days"]
    assert rate == pytest.approx(5 / 7, rel=1e-3)


def test_what_is_turned_off_is_left_out_and_a_machine_that_turns_off_is_none():
    assert _fields("turn off recompute")["plan.recompute"] == "none"
    assert read_brief(LINE + "nodes turn off every night").unread
    assert read_brief("should we turn off recompute? 70B on 256 MI300X").unread


def test_days_by_their_letter_are_no_dimensions():
    assert _fields("90 d ok?")["constraints.deadline_days"] == 90
    assert "constraints.deadline_days" not in read_brief(LINE + "3d parallelism").fields


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (
            "what does a 70B on 512 H100 cost if the rent goes from $2.20 to $2.80? 2T tokens",
            "sweep FILE prices.usd_per_device_hour=2.2,2.8",
        ),
        (
            "Would 64k instead of 16k context still fit with a 32B on 64 H100?",
            "sweep FILE job.seq_len=65536,16384",
        ),
        (
            "should the network be non-blocking or is 2:1 fine for 70B on 512 H100?",
            "sweep FILE cluster.oversubscription=1,2",
        ),
        ("GRPO with a 7B on 16 H100: how many steps a day?", "design FILE"),
        ("A step takes 9.8 s (70B, 512 H100). How far from good is that?", "diagnose FILE"),
        ("405B on 4,096 H100, are 6 spares enough?", "goodput FILE"),
    ],
)
def test_further_questions_in_a_colleagues_words(line, command):
    assert _command(line) == command


def test_a_restart_in_minutes_is_no_time_between_failures():
    fields = _fields("we restart in 15 minutes and lose a node every 9 hours")
    assert fields["reliability.restart_s"] == 900
    rate = fields["reliability.failures_per_1000_node_days"]
    assert rate == pytest.approx(1000 / 64 * 24 / 9, rel=1e-3)


def test_a_ratio_is_that_of_the_network_only_beside_words_of_it():
    assert _fields("2:1 spine")["cluster.oversubscription"] == 2
    assert read_brief(LINE + "a 2:1 mix of code and text").unread


def test_a_cost_with_a_bound_is_the_budget_and_other_money_is_asked_about():
    assert _fields("must cost less than 4 million")["constraints.budget_usd"] == 4e6
    assert read_brief(LINE + "pay less than 3 million euros").unread
    assert read_brief("70B on 512 H100, from $2M to $3M").unread


def test_years_beside_what_a_machine_cost_are_those_it_is_written_off_over():
    fields = _fields("bought for $60M over 4 years, electricity is 7 cents")
    assert fields["prices.owned.years"] == 4
    assert fields["prices.usd_per_kwh"] == 0.07
    assert read_brief(LINE + "over 4 years").unread


def test_a_rate_between_nodes_is_none_between_sites():
    asked = read_brief("13B on 64 H100, 200 Gb/s between nodes")
    assert "cluster.site_gbytes_per_s" not in asked.fields and asked.unread
    sites = read_brief("2 sites of 512 H100 each, 400 Gb/s between them, 70B").fields
    assert sites["cluster.site_gbytes_per_s"] == 50


def test_so_many_steps_of_a_span_are_the_time_of_each():
    fields = read_brief("100 steps take 20 minutes on 64 H100, 7B, is it slow?").fields
    assert fields["measured.step_s"] == 12
    assert "measured.step_s" not in read_brief("7B on 64 H100, 100 steps of 4M tokens").fields


@pytest.mark.parametrize(
    ("words", "path", "value"),
    [
        ("30 minutes between checkpoints", "checkpoint.interval_s", 1800),
        ("must restart from a checkpoint in 10 min", "constraints.max_recovery_s", 600),
    ],
)
def test_saves_by_what_lies_between_them_and_a_restart_that_must(words, path, value):
    fields = _fields(words)
    assert fields[path] == value
    assert "job.from_checkpoint" not in fields


def test_a_run_that_starts_from_a_checkpoint_is_still_one():
    assert read_brief("restart from a checkpoint, 70B on 512 H100").fields["job.from_checkpoint"]


def test_a_share_is_asked_about_as_a_number_and_not_as_a_chip():
    for words in ("10% of nodes idle", "20% repeated"):
        asked = read_brief(LINE + words).unread
        assert not any("accelerator" in one.question for one in asked), words
