"""Stores, shards and who reads what."""

from __future__ import annotations

import closed_forms
import numpy as np
import pytest
from scantling import catalogue
from scantling.design.cluster_rules import build_cluster
from scantling.endure import storage
from scantling.physics.ingest import token_bytes


def cluster(**spec):
    return build_cluster({"accelerator": "h100-sxm", "devices": 16_384, **spec})[0]


def test_guidance_grows_with_the_cluster_and_published_systems_do_not():
    """SuperPOD's middle level: 20 GB/s written per 32 nodes; Meta's Tectonic 2 TB/s whatever the
    job."""
    assert storage.rates(cluster()).write_bytes_per_s == pytest.approx(20e9 * 64)
    assert storage.rates(cluster(storage="meta-tectonic")).write_bytes_per_s == pytest.approx(2e12)
    assert storage.rates(cluster(storage="meta-tectonic"), 16).write_bytes_per_s == pytest.approx(
        2e12
    )


@pytest.mark.parametrize("store", sorted(catalogue.storages()))
def test_every_store_gives_rates(store):
    r = storage.rates(cluster(storage=store))
    for rate in (
        r.write_bytes_per_s,
        r.read_bytes_per_s,
        r.node_write_bytes_per_s,
        r.node_read_bytes_per_s,
    ):
        assert 1e6 < rate < 1e15
    assert r.units >= 1
    assert r.source


def test_appliances_are_counted():
    """65 GB/s written by one AI400X2: 20 of them for 64 scalable units of 20 GB/s."""
    r = storage.rates(cluster(storage="ddn-ai400x2"))
    assert r.units == 20
    assert r.write_bytes_per_s == pytest.approx(20 * 65e9)


def test_carriers_are_judged_by_the_interval():
    often, seldom = ({c.id: c for c in storage.carriers(cluster(), 5.67e12, t)} for t in (60, 3600))
    assert often["meta-tectonic"].carries
    assert not often["gpfs-jeanzay"].carries
    assert seldom["gpfs-jeanzay"].carries
    assert all(c.needed_bytes_per_s == pytest.approx(5.67e12 / 60) for c in often.values())


def test_tokens_take_two_bytes_below_65536():
    """GPT-2's 50,257 fit in 16 bits, Llama 3's 128,256 do not: 15.6T tokens are 62.4 TB."""
    assert storage.corpus(15.6e12, token_bytes(128_256)).bytes == pytest.approx(62.4e12)
    assert storage.corpus(300e9, token_bytes(50_257)).bytes == pytest.approx(600e9)


def test_ingest_is_small():
    """16M tokens a step at 10 s: 6.7 MB/s for the whole job."""
    c = storage.corpus(15.6e12, 4, tokens_per_s=2**24 / 10, readers=128)
    assert c.read_bytes_per_s == pytest.approx(6.71e6, rel=1e-3)
    assert c.read_bytes_per_s_per_reader * 128 == pytest.approx(c.read_bytes_per_s)


def test_room_to_provision():
    room = storage.capacity(5e12, 60e12, recent=3, milestones=10)
    assert room["total"] == pytest.approx(15e12 + 60e12 + 1e12)
    assert room["provisioned"] == pytest.approx(room["total"] / 0.8)
    assert room["object_store"] == pytest.approx(50e12)


def test_a_shared_store_slows_saves_until_it_never_catches_up():
    """Processor sharing: half loaded by others, a save takes twice as long."""
    r = closed_forms.contention(np.array([1, 6, 11, 12]), 100e9, 10, 100e9)
    assert r["slowdown"] == pytest.approx([1, 2, np.inf, np.inf])
    assert r["utilisation"] == pytest.approx([0.1, 0.6, 1.1, 1.2])
