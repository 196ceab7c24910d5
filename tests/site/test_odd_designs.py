"""Sentences that no design of the gallery asks for: each of these designs does, and says so."""

import pytest
from scantling import Design, assess
from scantling.base.json import clean
from scantling_site import part

LONG = {"tokens": 5e10, "seq_len": 131_072}


def changed(assessed, name, **change):
    return assess(assessed(name).design.change(change))


def sentences(value):
    """Every text of a part's plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from sentences(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from sentences(inner)


def texts(a, name):
    found = list(sentences(clean(part(a, name))))
    for text in found:
        assert "{" not in text and "None" not in text and "nan" not in text.split(), text
    return found


def mentions(a, name, words):
    return any(words in text for text in texts(a, name))


@pytest.fixture(scope="module")
def phased():
    """Five phases, each of which changes something else."""
    return assess(
        Design.from_data(
            {
                "scantling": 1,
                "model": "llama-3-70b",
                "cluster": {"accelerator": "h100-sxm", "devices": 1024, "scale_out": "ib-ndr"},
                "job": {
                    "phases": [
                        {"name": "short", "tokens": 1e12, "seq_len": 8192, "global_batch": 512},
                        {**LONG, "name": "long", "global_batch": 32, "optimizer": "muon"},
                        {**LONG, "name": "fp8", "global_batch": 64, "precision": "fp8"},
                        {**LONG, "name": "wide", "global_batch": 128, "precision": "fp8"},
                    ]
                },
            }
        )
    )


def test_each_passage_says_what_it_changes(phased):
    calendar = part(phased, "calendar")
    long, fp8, wide = calendar.passages
    assert not long["compatible"] and any("muon" in line for line in long["why"])
    assert any("131,072 in place of 8,192" in line for line in long["why"])
    assert any("weights are cast anew" in line for line in fp8["why"])
    assert any("samples, not steps" in line for line in wide["why"])
    if not wide["changes"]:  # the same job goes on: nothing is saved, started or read
        assert wide["seconds"] == 0 and not wide["parts"] and "goes on" in wide["why"][0]


def test_a_node_too_small_for_its_copies_is_what_binds(assessed):
    a = changed(
        assessed,
        "llama-3.1-70b-128-h100",
        **{"cluster.host_memory_gb": 16, "cluster.nvme_gb": 100_000},
    )
    stores = part(a, "stores")
    assert stores.bottleneck == "burst: memory of a node" and stores.bottleneck_load > 1
    assert mentions(a, "stores", "copies go to disks or the file system instead")
    a = changed(assessed, "llama-3.1-70b-128-h100", **{"cluster.nvme_gb": 1})
    assert part(a, "stores").bottleneck == "burst: disks of a node"
    assert mentions(a, "stores", "copies stay in memory or go to the file system")


def test_a_small_corpus_is_seen_too_often_and_a_slow_one_waited_for(assessed):
    """Up to four passes are nearly as good as fresh tokens (Muennighoff et al. 2023)."""
    corpus = {"raw_bytes": 1e10, "read_gbytes_per_s": 1e-6}
    a = changed(assessed, "llama-3.1-70b-128-h100", **{"job.corpus": corpus})
    assert part(a, "stores").corpus.epochs > 4 and a.chosen.step.data > 0
    assert mentions(a, "stores", "more than four times")
    assert mentions(a, "stores", "of each step for its data")


@pytest.mark.parametrize(
    ("fabric", "routing", "fan_in"),
    [
        ("efa-v2", "none to set: the cards spray packets (SRD)", "left to the cards"),
        ("rocev2-400", "packet spraying or adaptive routing", "receiver-given credits"),
        ("ib-ndr", "adaptive routing on its own service level", "credits hold it at the card"),
    ],
)
def test_many_senders_to_a_card_are_held_as_the_fabric_can(assessed, fabric, routing, fan_in):
    a = changed(assessed, "case-5-deepseek-v3", **{"cluster.scale_out": fabric})
    settings = {x.what: x for x in part(a, "network").settings}
    assert settings["routing"].choice.startswith(routing)
    assert settings["fan-in"].choice.startswith(fan_in)
    texts(a, "network")


def test_repairs_of_days_are_no_surprise(assessed):
    a = changed(assessed, "llama-3.1-405b", **{"reliability.repair_s": 200_000})
    assert "repairs" not in {row.id for row in part(a, "risks").rows}
    texts(a, "risks")


def test_few_spares_stand_one_a_pod(assessed):
    a = changed(assessed, "case-6-100k-gpus", **{"reliability.spares": 3})
    assert "one in each of 3 of" in part(a, "scheduler").spares["where"]
