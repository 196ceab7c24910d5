"""Sentences that nobody wrote: parts of known meaning in any order, and words of none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from scantling.design.design import DesignError
from scantling.design.draft import draft
from scantling_brief.brief import read_brief
from test_init import MOE, PARAGRAPH, fields

# sentences put together from parts whose meaning is known
SIZES = st.integers(1, 900).flatmap(
    lambda n: st.tuples(
        st.just(("model.size", n * 1e9)),
        st.sampled_from(
            [
                f"{n}B parameters",
                f"{n}B params",
                f"a {n} billion parameter model",
                f"{n}B-parameter LLM",
                f"{n}B model",
                f"parameters: {n}B",
            ]
        ),
    )
)
MACHINES = st.tuples(
    st.integers(1, 20_000),
    st.sampled_from(
        [
            ("H100", "h100-sxm"),
            ("A100 80GB", "a100-80-sxm"),
            ("A100-40GB", "a100-40-sxm"),
            ("H200", "h200-sxm"),
            ("MI300X", "mi300x"),
            ("B200", "b200-sxm"),
        ]
    ),
).flatmap(
    lambda m: st.tuples(
        st.just((("cluster.devices", m[0]), ("cluster.accelerator", m[1][1]))),
        st.sampled_from(
            [
                f"{m[0]}x {m[1][0]}",
                f"{m[0]:,} {m[1][0]} GPUs",
                f"on {m[0]} {m[1][0]}s" if m[1][0][-1].isdigit() else f"on {m[0]} {m[1][0]}",
                f"a cluster of {m[0]} {m[1][0]} GPUs",
            ]
        ),
    )
)
TOKENS = st.integers(1, 30_000).flatmap(
    lambda n: st.tuples(
        st.just(("job.tokens", n * 1e9)),
        st.sampled_from(
            [
                f"{n}B tokens",
                f"{n / 1000:g}T tokens",
                f"{n} billion tokens",
                f"{n / 1000:g} trillion tokens",
                f"{n}e9 tokens",
            ]
        ),
    )
)
DAYS = st.integers(1, 300).flatmap(
    lambda n: st.tuples(
        st.just(("constraints.deadline_days", n)),
        st.sampled_from(
            [
                f"in {n} days",
                f"within {n} days",
                f"deadline {n} days",
                f"{n}-day deadline",
                f"in under {n} days",
            ]
        ),
    )
)
MFU = st.integers(1, 90).flatmap(
    lambda n: st.tuples(
        st.just(("constraints.min_mfu", n / 100)),
        st.sampled_from(
            [
                f"at least {n}% MFU",
                f"MFU >= {n}%",
                f"minimum MFU of {n}%",
                f"MFU at least {n} percent",
            ]
        ),
    )
)
SAVES = st.integers(1, 50).flatmap(
    lambda n: st.tuples(
        st.just(("constraints.max_checkpoint_overhead", n / 100)),
        st.sampled_from(
            [
                f"at most {n}% checkpoint overhead",
                f"checkpointing overhead below {n}%",
                f"maximum {n}% overhead for checkpointing",
            ]
        ),
    )
)
BUDGET = st.integers(1, 900).flatmap(
    lambda n: st.tuples(
        st.just(("constraints.budget_usd", n * 1e6)),
        st.sampled_from(
            [f"budget ${n}M", f"for at most ${n} million", f"budget of {n} million dollars"]
        ),
    )
)
NETWORK = st.sampled_from(
    [(100, "ib-edr"), (200, "ib-hdr"), (400, "ib-ndr"), (800, "ib-xdr")]
).flatmap(
    lambda n: st.tuples(
        st.just(("cluster.scale_out", n[1])),
        st.sampled_from(
            [
                f"{n[0]}Gbps InfiniBand",
                f"{n[0]} Gb/s IB",
                f"{n[0] / 8:g} GB/s InfiniBand",
                f"InfiniBand at {n[0]} Gbit/s",
                f"{n[0]}G InfiniBand RDMA",
            ]
        ),
    )
)


@given(
    st.tuples(SIZES, MACHINES),
    st.lists(
        st.sampled_from([TOKENS, DAYS, MFU, SAVES, BUDGET, NETWORK]), max_size=5, unique_by=id
    ).flatmap(lambda parts: st.tuples(*parts)),
    st.randoms(use_true_random=False),
    st.sampled_from([". ", ", ", "; ", "\n", ", and "]),
)
@settings(max_examples=400, deadline=None)
def test_sentences_mean_their_parts_in_any_order(needed, more, shuffle, joint):
    (size, size_words), (machine, machine_words) = needed
    expected = dict([size, *machine, *(m[0] for m in more)])
    words = [size_words, machine_words, *(m[1] for m in more)]
    shuffle.shuffle(words)
    got = fields(joint.join(words))
    assert got.keys() == expected.keys(), joint.join(words)
    for path, value in expected.items():
        assert got[path] == (
            value if isinstance(value, str) else pytest.approx(value, rel=1e-12)
        ), joint.join(words)


@given(
    st.text(max_size=80)
    | st.lists(st.sampled_from(MOE.split() + PARAGRAPH.split()), max_size=30).map(" ".join)
)
@settings(max_examples=300, deadline=None)
def test_any_words_are_read_or_refused_in_one_line(text):
    try:
        brief = read_brief(text)
    except DesignError as e:
        assert str(e).isprintable()
        return
    assert all(r.words and (r.field or r.why) for r in (*brief.read, *brief.ignored))
    design, _, _ = draft(brief, None)
    assert design.cluster.devices >= 1


@given(st.sampled_from(["zebra", "unless", "blockchain", "quantum", "17"]), st.integers(0, 20))
@settings(deadline=None)
def test_no_word_is_dropped(word, at):
    parts = MOE.split()
    at = min(at, len(parts))
    try:
        brief = read_brief(" ".join(parts[:at] + [word] + parts[at:]))
    except DesignError as e:
        assert word in str(e)
        return
    assert any(word in r.words for r in (*brief.ignored, *brief.read, *brief.unread))


@pytest.mark.parametrize(
    "owned",
    ["We own 40 DGX H100.", "Our own cluster, 320 H100.", "On-prem, 320x H100.", "320 owned H100."],
)
def test_dollars_of_a_machine_that_is_owned_are_said_to_be_a_rent(owned):
    """Its price makes them the owner's: 12M USD over four years is 1.07 USD an hour of 320."""
    line = owned + " Train llama-3.1-8b on 1T tokens."
    assumed = {one.field for one in draft(read_brief(line), None).assumed}
    assert "prices.owned.capex_usd" in assumed, line
    for price in (" Bought for $12M, written off over 4 years.", " At $1.10 per GPU hour."):
        drafted = draft(read_brief(line + price), None)
        assert "prices.owned.capex_usd" not in {one.field for one in drafted.assumed}, price
    for rented in ("We rent 320 H100.", "320 H100.", "We own no GPUs: 320 H100."):
        reading = read_brief(rented + " Train llama-3.1-8b on 1T tokens.")
        assert all("owned" not in one.field for one in reading.assumed), rented


@pytest.mark.parametrize(
    ("words", "chip"),
    [
        ("H100 NVL 96GB", "h100-nvl"),  # 94 on the box, 93.6 GiB as nvidia-smi prints it
        ("H100 96GB", "h100-96-hbm2e-500w"),  # exactly so, of no form
        ("H200 144GB", "h200-sxm"),  # 141, announced as 144 of stacks
        ("B200 192GB", "b200-sxm"),  # 180 GiB
        ("MI300X 190GB", "mi300x"),
        ("A100 PCIe", "a100-80-pcie"),  # as an A100 alone is the one of 80 GB
        ("A100 48GB", None),
        ("H100 PCIe 96GB", None),
    ],
)
def test_memory_as_people_round_it_names_its_chip(words, chip):
    reading = read_brief(f"70B on 64 {words}, 1T tokens")
    assert (None if reading.unread else reading.fields["cluster.accelerator"]) == chip


@pytest.mark.parametrize(
    ("line", "chips"),
    [
        ("H100 SXM vs PCIe for 13B on 256 GPUs", ("h100-sxm", "h100-pcie")),
        ("how much slower is PCIe H100 than SXM for 13B on 256 GPUs?", ("h100-pcie", "h100-sxm")),
        ("SXM or PCIe H100s for a 13B on 256 GPUs?", ("h100-sxm", "h100-pcie")),
        ("is A100 SXM worth it over PCIe for 7B on 32 GPUs?", ("a100-80-sxm", "a100-80-pcie")),
        ("13B on 64 H100 SXM, offload over PCIe", ()),  # a way, and no other chip
        ("13B on 64 H100 PCIe over 100GbE", ()),
    ],
)
def test_two_forms_of_a_chip_that_is_named_once_are_compared(line, chips):
    reading = read_brief(line)
    compared = dict(reading.question.compared) if reading.question else {}
    assert (compared.get("cluster.accelerator", ()), reading.unread) == (chips, ())


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("how often to save if a node fails every 3 hours?", "failures_per_1000_node_days", 125.0),
        ("what happens if a node fails?", "failures_per_1000_node_days", None),
        ("power 0.08/kWh", "usd_per_kwh", 0.08),
        ("electricity is 0.08 per kWh", "usd_per_kwh", 0.08),
        ("GRPO with 16k response length", "max_response", 16384),
        ("GRPO, response length 16k", "max_response", 16384),
    ],
)
def test_words_between_a_figure_and_its_noun_take_nothing_away(words, field, value):
    reading = read_brief(f"70B on 512 H100, {words}")
    named = {path.rpartition(".")[2]: x for path, x in reading.fields.items()}
    assert (named.get(field), reading.unread) == (value, ())
