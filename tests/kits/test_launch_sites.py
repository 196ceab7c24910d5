"""Several sites: a kit does what the design says between them, or is refused; the frameworks' own
parsers read the same kits in test_launch_judges.py."""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from pathlib import Path

import pytest
from scantling import Design, DesignError, assess
from scantling.cli.app import main
from scantling_kits import FRAMEWORKS, Inexpressible, kits

sys.path.insert(0, str(Path(__file__).parent))
from corpus import MOE, PLANS, SMALL, sites, spec  # noqa: E402

KINDS = ("synchronous", "local-steps")
Z3 = dict(tp=1, pp=1, sharding="zero3")


@cache
def two_sites(kind):
    return assess(Design.from_data(spec(model=SMALL, plan=Z3, **sites(kind)) | {"name": "two"}))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("to", FRAMEWORKS)
def test_every_framework_keeps_sites_in_step_as_the_design_says_or_refuses(to, kind):
    each = FRAMEWORKS[to]
    if kind not in each.syncs:
        with pytest.raises(Inexpressible) as e:
            kits(two_sites(kind), to)
        able = [f for f in FRAMEWORKS if kind in FRAMEWORKS[f].syncs]
        assert each.no_local_steps in str(e.value)
        assert all(f"--to {f}" in str(e.value) for f in able)
        assert "set job.sync.kind to synchronous" in str(e.value)
        return
    files = kits(two_sites(kind), to)
    guide = files["plan.md"].partition("\n## Sites\n")[2].partition("\n## ")[0]
    plan = json.loads(files["plan.json"])
    assert (plan["sites"], plan["sync"]) == (2, kind)
    assert "0 to 3 at site 1, 4 to 7 at site 2" in guide
    assert {line[2:].partition(":")[0] for line in guide.splitlines() if line} == {
        "Ranks",
        "Layout",
        "Traffic",
        "Interfaces",
        "Way",
        "Failures",
    }
    whole = json.loads(json.dumps(plan["plan"]))
    if whole["sharding"] in ("zero3", "zero2"):  # a copy stands inside a site
        assert plan["train"]["shards"] == whole["dp"] // 2


@pytest.mark.parametrize(
    ("model", "plan", "said"),
    [
        (SMALL, {"dp": 3}, "sites of one size hold equally many"),
        (MOE, {"dp": 12, "ep": 4}, "divides the dp x cp x tp ranks of one site"),
    ],
)
def test_sites_of_one_size_hold_equal_shares(model, plan, said):
    """Half of the replicas, and whole groups of experts, on each of two sites; sites of several
    sizes share as they can."""
    data = spec(model=model, devices=48, job=dict(global_batch=96), plan=dict(tp=1, pp=1) | plan)
    assert assess(Design.from_data(data | {"name": "one"})).phases
    halves = data["cluster"] | {"sites": 2, "site_gbytes_per_s": 5000}
    with pytest.raises(DesignError, match=said):
        assess(Design.from_data(data | {"name": "two", "cluster": halves}))


@pytest.mark.parametrize("to", FRAMEWORKS)
def test_no_kit_of_one_site_speaks_of_sites(to):
    one = assess(Design.from_data(spec(model=SMALL, plan=Z3) | {"name": "one"}))
    try:
        files = kits(one, to)
    except Inexpressible:
        files = kits(assess(Design.from_data(spec() | {"name": "one"})), to)
    said = "\n".join(files.values())
    assert "## Sites" not in said
    assert not re.search(r"diloco|optimizer.instances|tp.pp.dp.mapping", said)


def test_the_exchange_is_that_of_the_design():
    """DiLoCo (Douillard et al. 2023, arXiv 2311.08105): Nesterov at 0.7 with momentum 0.9."""
    fixed = sites("local-steps")
    fixed["job"]["sync"]["local_steps"] = 125
    a = assess(Design.from_data(spec(plan=Z3, **fixed) | {"name": "two"}))
    given = dict(re.findall(r"^(\w+): (.*)$", kits(a, "maxtext")["maxtext.yml"], re.M))
    assert given["enable_diloco"] == "true"
    assert given["diloco_sync_period"] == "125"
    assert (given["diloco_outer_lr"], given["diloco_outer_momentum"]) == ("0.7", "0.9")
    assert given["ici_diloco_parallelism"] == "2"
    assert int(given["ici_data_parallelism"]) * int(given["ici_fsdp_parallelism"]) == 32


def test_a_collective_waits_as_long_as_an_exchange_takes():
    slow = sites("local-steps")
    slow["cluster"]["site_gbytes_per_s"] = 1
    a = assess(Design.from_data(spec(plan=Z3, **slow) | {"name": "two"}))
    files = kits(a, "maxtext")
    took = 32.1 / 1  # GB of an 8B model in fp32, over GB/s
    given_up = int(re.search(r"given up after (\d+) s", files["plan.md"])[1])
    assert given_up > 2 * took


@pytest.mark.parametrize(
    ("change", "on", "said"),
    [
        ({"sync": {"kind": "local-steps", "overlap": True}}, "torchrun", "job.sync.overlap"),
        ({"sync": {"kind": "local-steps", "compress_bits": 4}}, "torchrun", "compress_bits"),
        ({}, "slurm", "each site has a scheduler of its own"),
        ({}, "kubernetes", "--on torchrun"),
        ([{"devices": 40}, {"devices": 24}], "torchrun", "give every site as many whole nodes"),
    ],
)
def test_what_cannot_be_written_ends_with_one_sentence(tmp_path, capsys, change, on, said):
    data = spec(plan=Z3, **sites("local-steps"))
    if isinstance(change, list):
        data["cluster"] = data["cluster"] | {"sites": change}
    else:
        data["job"] |= change
    file = tmp_path / "d.yaml"
    Design.from_data(data).write(file)
    out = tmp_path / "kit"
    assert main(["launch", str(file), "--to", "maxtext", "--on", on, "-o", str(out)]) == 3
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1
    assert not out.exists()


def test_a_nearest_plan_keeps_what_the_design_says_of_the_job():
    """The plan that stands in for DualPipe is assessed for the same sites and experts."""
    stated = PLANS["dualpipe"] | sites("synchronous")
    stated["job"] = PLANS["dualpipe"]["job"] | stated["job"] | {"from_checkpoint": True}
    stated["cluster"] = PLANS["dualpipe"]["cluster"] | stated["cluster"]
    plan = json.loads(
        kits(assess(Design.from_data(stated | {"name": "x"})), "megatron")["plan.json"]
    )
    assert plan["sync"] == "synchronous"


@pytest.mark.parametrize("apart", [False, True])
def test_the_step_has_data_parallelism_where_the_kit_puts_it(apart):
    """Megatron-LM's --use-tp-pp-dp-mapping, tp-cp-ep-pp-dp: its stages stand together, and the
    ranks of a gradient ring as many devices apart as a replica has."""
    given = spec(model=SMALL, plan=dict(tp=1, pp=2), **(sites("synchronous") if apart else {}))
    a = assess(Design.from_data(given))
    args = "\n".join(kits(a, "megatron").values())
    assert ("--use-tp-pp-dp-mapping\n" in args) == apart
    assert a.chosen.case.software.dp_outer == apart
