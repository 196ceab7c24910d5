"""Every accelerator, fabric and stack of the catalogue through physics, launch kits, network and
risks: none falls to a default that is not said."""

from __future__ import annotations

import csv
import json
from dataclasses import fields

import pytest
from scantling import Design, assess, catalogue
from scantling.base.errors import DesignError
from scantling.catalogue.families import constants_of, families, family
from scantling.catalogue.stacks import stack, stacks
from scantling.catalogue.words import CP_TYPES, RECOMPUTES, SHARDINGS
from scantling.physics import bands
from scantling.physics.constants import PRIORS, calibration
from scantling.physics.memory.constants import FRAGMENTATION, MemoryConstants
from scantling.physics.pipeline import SCHEDULE_NAMES
from scantling.physics.software import Software
from scantling.plans.space import Space
from scantling_kits import kits
from scantling_kits.misfits import Inexpressible
from scantling_site import part
from scantling_site.job_site import site_of
from scantling_site.network.traffic import trust
from scantling_site.risks.machines import slow_network

MODEL = "llama-3.1-8b"
TECHNOLOGIES = {"infiniband", "ethernet", "efa", "slingshot", "omni-path", "jupiter"}
TRANSPORTS = {"verbs", "srd", "tcp", "tcpx", "tcpxo", "cxi", "psm2"}


def assessed(**cluster):
    stated = cluster.pop("stack", None)
    data = {"model": MODEL, "cluster": {"devices": 64} | cluster, "job": {"tokens": 1e11}}
    return assess(Design.from_data(data | ({"stack": stated} if stated else {})))


def said(assessment, field):
    return [a.why for a in assessment.resolved.assumed if a.field == field]


def test_every_family_of_an_accelerator_is_a_row_of_its_own():
    used = {a.family for a in catalogue.accelerators().values()}
    assert used <= set(families()) - {"other"}


def test_constants_come_from_a_family_that_somebody_ran_a_job_on():
    seen = 0
    with (catalogue.HERE / "published_runs.csv").open(newline="") as file:
        ran = {catalogue.accelerators()[r["accelerator"]].family for r in csv.DictReader(file)}
    assert {f.id for f in families().values() if f.measured} == ran
    assert {f.constants_of for f in families().values()} <= ran
    priced = {f: PRIORS["gemm"].families[f] for f in ran}
    makers = {f: {c for c in ran if family(c).vendor_stack == family(f).vendor_stack} for f in ran}
    for f in families().values():
        if not f.measured:  # no family of the same maker sustains less, none at all for new makers
            seen += 1
            rivals = makers.get(f.constants_of) if f.vendor_stack != "other" else ran
            assert priced[f.constants_of] == min(priced[r] for r in rivals), f.id
    assert seen


def test_a_name_without_a_row_is_careful_too():
    assert family("quantum").id == "other" and not family("quantum").measured
    assert constants_of("quantum") == family("other").constants_of != "quantum"


COMPLETE = [chip.id for chip in catalogue.accelerators().values() if not chip.unpublished]
INCOMPLETE = [chip.id for chip in catalogue.accelerators().values() if chip.unpublished]


@pytest.mark.parametrize("chip", INCOMPLETE)
def test_a_chip_whose_peak_nobody_has_published_is_refused_and_can_be_stated(chip):
    """Unknown is not zero: announced chips without a 16-bit peak or a link rate are not priced."""
    row = catalogue.accelerator(chip)
    assert row.status == "announced"
    with pytest.raises(DesignError) as error:
        assessed(accelerator=chip)
    assert "announced" in str(error.value)
    stated = {"bf16_tflops": 2000, "link_gbytes_per_s": 900}
    named = {name: stated[name] for name in row.unpublished}
    assert all(name in str(error.value) for name in named)
    assert assessed(accelerator={"like": chip, **named}).step_s > 0


@pytest.mark.parametrize("chip", COMPLETE)
def test_every_accelerator(chip):
    a = assessed(accelerator=chip)
    if a.verdict == "impossible":
        pytest.fail(f"{MODEL} on 64 {chip}")
    kind = family(catalogue.accelerator(chip).family)
    named = [w for w in said(a, "cluster.accelerator") if kind.constants_of in w]
    assert bool(named) == (not kind.measured)
    low, high = a.step_s_low, a.step_s_high
    assert 0 < low < a.step_s < high
    json.dumps(part(a, "network").as_dict(), allow_nan=False)
    json.dumps(part(a, "risks").as_dict(), allow_nan=False)
    try:
        written = "env.sh" in kits(a, "maxtext" if kind.vendor_stack == "tpu" else "fsdp")
    except Inexpressible as e:  # 16 GB devices want a pipeline, which FSDP has none of
        written = "no kit is written" not in str(e)
    assert written == (kind.vendor_stack != "other")


def test_the_band_of_an_unmeasured_family_is_wider_than_that_of_an_unseen_chip():
    case = assessed(accelerator="h100-sxm").chosen.case
    _, chip = bands.band(case, seen_chip=False)
    _, kind = bands.band(case, seen_chip=False, seen_family=False)
    assert kind > chip


OUT = [f for f in catalogue.fabrics().values() if f.kind == "scale-out"]


@pytest.mark.parametrize("fabric", OUT, ids=lambda f: f.id)
def test_every_network(fabric):
    assert fabric.technology in TECHNOLOGIES and fabric.transport in TRANSPORTS
    a = assessed(accelerator="h100-sxm", scale_out=fabric.id)
    own = next(t for t in trust(a.resolved.cluster) if t["tier"] == "scale-out")
    assert own["judged_on"] or own["large_error"] is None
    row = slow_network(site_of(a))
    if row is not None:  # none where the step does not feel the network
        assert row.risk.startswith("flows collide") == (fabric.technology == "ethernet")
    readme = kits(a, "fsdp")["README.md"]  # NCCL speaks verbs, sockets and plugins, no PSM2
    assert ("this kit sets nothing for it" in readme) == (fabric.transport == "psm2")


def test_ethernet_is_one_column():
    names = {f.id for f in OUT if f.technology == "ethernet"}
    assert {"gcp-tcpx", "gcp-tcpxo", "rocev2-400", "oci-roce", "gcp-roce-a3u", "eth-100"} <= names
    assert not names & {"ib-ndr", "efa-v2", "slingshot11", "omnipath-100", "gb200-so-ndr"}


def test_every_scale_up_link_names_its_technology():
    assert all(f.technology for f in catalogue.fabrics().values())


@pytest.mark.parametrize("name", stacks())
def test_every_stack(name):
    s = stack(name)
    assert s.source and set(s.software) <= {f.name for f in fields(Software)}
    known = {f.name for f in fields(MemoryConstants)} | {"figures", "ran"}
    assert set(s.memory) <= known and bool(s.memory) == bool(s.memory_source)
    assert s.memory.get("figures", "device") in FRAGMENTATION
    assert set(s.offers) <= {f.name for f in fields(Space)} and bool(s.offers) == bool(
        s.offers_source
    )
    assert s.sharding in SHARDINGS and s.recompute in RECOMPUTES
    assert s.cp_type in ("", *CP_TYPES) and s.schedule in ("", *SCHEDULE_NAMES)
    measured = name in calibration()["support"]["stack"]
    a = assessed(accelerator="a100-80-sxm", stack=name)
    assert bool(s.unmeasured) == (not measured) == bool(said(a, "stack"))
    for axis, values in s.offers.items():
        plan = a.plan.get(axis)
        if axis == "recompute_modules":  # a list: some of those that it offers, or whole layers
            assert {*plan} <= {*values, "layers"}
        elif axis in a.plan:
            assert plan in values


def test_a_stack_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="is not a stack of the catalogue"):
        assessed(accelerator="h100-sxm", stack="nonesuch")
