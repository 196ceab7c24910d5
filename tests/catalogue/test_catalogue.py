"""The catalogue walked row by row, and its figures held against sources that it was not written
from."""

from __future__ import annotations

import csv
import math
import re
import subprocess
import sys

import pytest
from scantling import catalogue
from scantling.base.errors import DesignError
from scantling.base.files import csv_rows
from scantling.catalogue.listing import listing
from scantling.catalogue.load import VERIFIED, CatalogueError, filled
from scantling.catalogue.models.entries import entries
from scantling.catalogue.rows import Optimizer
from scantling.catalogue.stacks import stacks
from scantling.catalogue.words import TOPOLOGIES
from scantling.plans.stack_laws import laws_of_stack

FILES = sorted({c["file"] for c in catalogue.columns()})
KEYS = {
    "accelerators": "id",
    "fabrics": "id",
    "nodes": "id",
    "storage": "id",
    "reliability": "id",
    "collective_fits": "series",
}
DATE = re.compile(r"20\d\d(-\d\d(-\d\d)?)?$")
NUMERIC_WORDS = {"as unit"}


def rows(file):
    return catalogue.read(catalogue.HERE / f"{file}.csv", KEYS.get(file))


@pytest.mark.parametrize("file", FILES)
def test_every_column_is_described_and_every_row_is_sourced_and_plausible(file):
    described = {c["column"]: c for c in catalogue.columns(file)}
    found = rows(file)
    assert set(found[0]) == set(described), f"{file}: columns.csv and the header differ"
    faults = []
    for i, row in enumerate(found, 2):
        name = (
            f"{file}.csv line {i} "
            f"({row.get('id') or row.get('series') or row.get('item') or row.get('accelerator')})"
        )
        if not DATE.match(row["date"]):
            faults.append(f"{name}: date {row['date']!r}")
        for column, how in (e.split("=") for e in row.get("verified_except", "").split()):
            if column not in described or how not in VERIFIED:
                faults.append(f"{name}: verified_except names {column}={how}")
        for column, about in described.items():
            if about["low"] == "" or row[column] == "":
                continue
            try:
                inside = float(about["low"]) <= float(row[column]) <= float(about["high"])
            except ValueError:
                inside = False
            if not inside:
                faults.append(
                    f"{name}: {column} is {row[column]}, plausible {about['low']} to "
                    f"{about['high']} {about['unit']}"
                )
    assert not faults, "\n".join(faults[:20])


def test_every_number_has_unit_and_kind_in_the_dictionary():
    seen = 0
    for c in catalogue.columns():
        assert c["description"], c
        if c["low"] != "" and c["unit"] not in (
            "year",
            "devices",
            "nodes",
            "1",
            "domains",
            "W",
            "GB",
            "byte",
        ):
            seen += 1
            assert c["unit"], f"{c['file']}.{c['column']} has no unit"
    for column in ("bf16_tflops", "fp16_tflops", "fp8_tflops", "fp4_tflops", "tf32_tflops"):
        assert next(c for c in catalogue.columns("accelerators") if c["column"] == column)[
            "kind"
        ].startswith("dense")
    for file in ("accelerators", "fabrics", "nodes"):
        for c in catalogue.columns(file):
            if c["unit"] in ("GB/s", "Gb/s") and c["column"] not in (
                "hbm_gbytes_per_s",
                "allreduce_busbw_max_gbytes_per_s",
            ):
                seen += 1
                assert "per direction" in c["kind"], (
                    f"{file}.{c['column']} does not say which direction"
                )
    assert seen


def test_catalogue_is_wide_enough():
    assert len(catalogue.accelerators()) >= 40
    assert len(catalogue.fabrics()) >= 20
    vendors = {a.vendor for a in catalogue.accelerators().values()}
    assert {"NVIDIA", "AMD", "Google", "AWS", "Intel"} <= vendors


def test_rows_point_at_rows_that_exist():
    chips, fabrics = catalogue.accelerators(), catalogue.fabrics()
    for a in chips.values():
        assert fabrics[a.scale_up].kind in ("scale-up", "host"), a.id
        assert not a.node or a.node in catalogue.nodes(), a.id
        assert 1 <= a.scale_up_domain <= a.scale_up_domain_max, a.id
    for n in catalogue.nodes().values():
        assert n.accelerator in chips, n.id
        assert fabrics[n.scale_out].kind == "scale-out", n.id
        assert n.node_bytes_per_s == pytest.approx(n.nics * n.nic_bytes_per_s, rel=0.01), (
            f"{n.id}: ports and node rate disagree"
        )
    for p in catalogue.prices(category="rent"):
        assert p.item in chips, p
        assert p.unit == "USD/device-hour"
        assert not math.isnan(p.middle)
        assert "recall" not in p.source, p.item
    for f in fabrics.values():
        assert f.usual_topology in ("", *TOPOLOGIES), f.id


def test_stacks_name_laws_that_are_written():
    """Each by the function of its law; one of another name is refused."""
    for name, stack in stacks().items():
        assert tuple(law.holds.__name__ for law in laws_of_stack(name)) == tuple(stack.laws)


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("collective_bench", "accelerator"),
        ("gemm_points", "accelerator"),
        ("published_memory", "accelerator"),
        ("published_plans", "chip"),
        ("published_plans", "model"),
        ("published_runs", "accelerator"),
    ],
)
def test_a_measured_row_names_what_the_catalogue_has(table, column):
    """A row of another name would be left out of the fits in silence."""
    known = entries() if column == "model" else catalogue.accelerators()
    assert {row[column] for row in csv_rows(catalogue.HERE / f"{table}.csv")} <= known.keys()


# words that a network is known by, of vendors' own links the chips that have it
LINKS = {
    "NVLink3": {"a100-80-sxm"},
    "NVLink4": {"h100-sxm", "h200-sxm"},
    "NVLink(H800)": {"h800-sxm"},
    "NVLink5": {"b200-sxm", "gb200-nvl72"},
    "NVL72": {"gb200-nvl72"},
    "xGMI": {"mi300x", "mi325x"},
}
NETWORKS = {"EFA", "NDR400", "CX7", "RoCE", "DeepEP", "(unspecified"}


def test_a_series_of_collectives_names_its_network_in_every_row():
    """The generation of NVLink is the chip's: third on A100, fourth on Hopper, fifth on
    Blackwell."""
    found = {}
    for row in csv_rows(catalogue.HERE / "collective_bench.csv"):
        assert found.setdefault(row["series"], row["fabric"]) == row["fabric"], row
        first = row["fabric"].split()[0].removesuffix("/NVSwitch")
        assert first in NETWORKS or row["accelerator"] in LINKS[first], row


# fp8 is twice bf16 on the same silicon. The exceptions, with the reason of each.
FP8_NOT_TWICE = {
    "rubin": "fp8 unit widened more than the bf16 unit (announced)",
    "rubin-ultra": "as rubin, twice",
    "tpu-v6e": "no fp8 unit: fp8 runs at the bf16 rate",
    "trn1": "cfp8 at the bf16 rate",
    "trn2": "1,299 against 667: printed 2.6 % under twice",
    "trn3": "mxfp8 unit widened, bf16 as on Trainium2",
    "gaudi3": "one MME rate for bf16 and fp8",
    "ascend-950dt": "919 against 486 in the table of the maker: 5.5 % under twice",
}


def test_dense_peaks_are_consistent():
    seen = 0
    for a in catalogue.accelerators().values():
        if not math.isnan(a.bf16_flops) and not math.isnan(a.fp8_flops):
            seen += 1
            twice = math.isclose(a.fp8_flops, 2 * a.bf16_flops, rel_tol=0.02)
            assert twice != (a.id in FP8_NOT_TWICE), (
                f"{a.id}: fp8 {a.fp8_flops:.4g} against bf16 {a.bf16_flops:.4g}"
            )
        if a.vendor in ("NVIDIA", "AMD") and not math.isnan(a.bf16_flops):
            seen += 1
            assert a.bf16_flops == a.fp16_flops, a.id
        if a.vendor == "NVIDIA" and not math.isnan(a.tf32_flops):
            seen += 1
            assert a.tf32_flops == pytest.approx(a.bf16_flops / 2, rel=0.02), (
                f"{a.id}: tf32 is half of bf16 on tensor cores"
            )
        if a.family in ("volta", "ampere", "cdna2"):
            seen += 1
            assert math.isnan(a.fp8_flops), f"{a.id} has no fp8 unit"
        if a.family == "volta":
            seen += 1
            assert math.isnan(a.bf16_flops), f"{a.id} has no bf16 unit"
    assert seen


def test_no_peak_is_a_sparse_one():
    """NVIDIA prints H100 SXM as 1,979 bf16 and 3,958 fp8 with sparsity, B200 as 4,500 and 9,000:
    none of these may stand as dense."""
    seen = 0
    sparse = {
        "h100-sxm": (1979e12, 3958e12),
        "h200-sxm": (1979e12, 3958e12),
        "b200-sxm": (4500e12, 9000e12),
        "a100-80-sxm": (624e12, None),
        "mi300x": (2614.9e12, 5229.8e12),
        "l40s": (733e12, 1466e12),
    }
    for id, (bf16, fp8) in sparse.items():
        a = catalogue.accelerator(id)
        assert a.bf16_flops == pytest.approx(bf16 / 2, rel=0.02)
        if fp8:
            seen += 1
            assert a.fp8_flops == pytest.approx(fp8 / 2, rel=0.02)
    assert seen


def test_usable_memory_is_near_the_name_on_the_box():
    """Cards named in GiB show more decimal bytes than their name, those named in GB fewer; never
    more than GiB would give."""
    for a in catalogue.accelerators().values():
        ratio = a.hbm_usable_bytes / a.hbm_bytes
        assert 0.95 <= ratio <= 1.1, (
            f"{a.id}: usable {a.hbm_usable_bytes / 1e9:.1f} of {a.hbm_bytes / 1e9:.0f} GB"
        )
    assert catalogue.accelerator("h100-sxm").hbm_usable_bytes == pytest.approx(85.0e9, rel=0.01)


# Tools that measure MFU carry their own peak tables [dense TFLOP/s]. torchtitan:
# torchtitan/tools/utils.py (get_peak_flops);
# levanter: src/levanter/utils/flop_utils.py; MaxText: its peak table per JAX device, times two on
# TPU7x.
@pytest.mark.parametrize(
    ("id", "column", "tflops", "who"),
    [
        ("a100-80-sxm", "bf16_flops", 312, "torchtitan"),
        ("a100-40-pcie", "bf16_flops", 312, "torchtitan"),
        ("h100-sxm", "bf16_flops", 989, "torchtitan"),
        ("h100-nvl", "bf16_flops", 835, "torchtitan"),
        ("h100-pcie", "bf16_flops", 756, "torchtitan"),
        ("h200-sxm", "bf16_flops", 989, "torchtitan"),
        ("b200-sxm", "bf16_flops", 2250, "torchtitan"),
        ("mi300x", "bf16_flops", 1300, "torchtitan"),
        ("mi325x", "bf16_flops", 1300, "torchtitan"),
        ("mi250x-gcd", "bf16_flops", 191.5, "torchtitan"),
        ("l40s", "bf16_flops", 362, "torchtitan"),
        ("h100-sxm", "fp8_flops", 1979, "levanter"),
        ("h100-pcie", "fp8_flops", 1513, "levanter"),
        ("h100-sxm", "tf32_flops", 494.5, "levanter"),
        ("a100-80-sxm", "tf32_flops", 156, "levanter"),
        ("a100-80-sxm", "fp32_flops", 19.5, "levanter"),
        ("v100-16-sxm2", "fp16_flops", 125, "levanter"),
        ("v100-16-pcie", "fp16_flops", 112, "levanter"),
        ("v100-16-pcie", "fp32_flops", 14, "levanter"),
        ("trn1", "bf16_flops", 190, "levanter"),
        ("tpu-v3", "bf16_flops", 123, "levanter"),
        ("tpu-v4", "bf16_flops", 275, "levanter"),
        ("tpu-v5e", "bf16_flops", 197, "levanter"),
        ("tpu-v5p", "bf16_flops", 459, "levanter"),
        ("tpu-v6e", "bf16_flops", 918, "levanter"),
        ("tpu-v7x", "bf16_flops", 2 * 1153.5, "MaxText"),
        ("tpu-v7x", "fp8_flops", 2 * 2307, "MaxText"),
    ],
)
def test_peaks_agree_with_the_tables_of_training_frameworks(id, column, tflops, who):
    assert getattr(catalogue.accelerator(id), column) == pytest.approx(tflops * 1e12, rel=0.006), (
        who
    )


# glennklockwood.com/garden/processors/h100: 989.4 dense bf16, 1978.9 dense fp8, 3.35 TB/s, 900 GB/s
# NVLink both ways, 700 W.
# aiconfigurator systems/h800_sxm.yaml: 200 GB/s a direction; h20_sxm.yaml: 4.0 TB/s, 148 TFLOP/s,
# 450 GB/s; l40s.yaml: 864 GB/s, 350 W.
# scaling-book, table of GPUs and of TPUs: V100 0.90, A100 2.0, H200 4.8, B200 8.0; v5p 2.8, v5e
# 0.81, v6e 1.6, v4 1.2 TB/s.
@pytest.mark.parametrize(
    ("id", "column", "value", "tolerance"),
    [
        ("h100-sxm", "hbm_bytes_per_s", 3.35e12, 0.01),
        ("h100-sxm", "link_bytes_per_s", 900e9 / 2, 0.01),
        ("h100-sxm", "tdp_w", 700, 0),
        ("h800-sxm", "link_bytes_per_s", 200e9, 0.01),
        ("h800-sxm", "hbm_bytes_per_s", 3.35e12, 0.01),
        ("h20-sxm", "hbm_bytes_per_s", 4.0e12, 0.01),
        ("h20-sxm", "bf16_flops", 148e12, 0.01),
        ("h20-sxm", "link_bytes_per_s", 450e9, 0.01),
        ("l40s", "hbm_bytes_per_s", 864e9, 0.01),
        ("l40s", "tdp_w", 350, 0),
        ("v100-32-sxm2", "hbm_bytes_per_s", 0.9e12, 0.01),
        ("a100-80-sxm", "hbm_bytes_per_s", 2.0e12, 0.03),
        ("h200-sxm", "hbm_bytes_per_s", 4.8e12, 0.01),
        ("b200-sxm", "hbm_bytes_per_s", 8.0e12, 0.04),
        ("tpu-v5p", "hbm_bytes_per_s", 2.8e12, 0.03),
        ("tpu-v5e", "hbm_bytes_per_s", 0.81e12, 0.03),
        ("tpu-v6e", "hbm_bytes_per_s", 1.6e12, 0.03),
        ("tpu-v4", "hbm_bytes_per_s", 1.2e12, 0.03),
        ("h100-sxm", "l2_bytes", 50e6, 0.01),
        ("b200-sxm", "l2_bytes", 126e6, 0.01),
        ("a100-80-sxm", "l2_bytes", 40e6, 0.01),
    ],
)
def test_memory_links_and_power_agree_with_independent_tables(id, column, value, tolerance):
    assert getattr(catalogue.accelerator(id), column) == pytest.approx(
        value, rel=max(tolerance, 1e-9)
    )


@pytest.mark.parametrize(
    ("id", "gib"),
    [
        ("h100-sxm", 81559 / 1024),
        ("a100-80-sxm", 81920 / 1024),
        ("a100-40-sxm", 40960 / 1024),
        ("l40s", 46068 / 1024),
        ("h200-sxm", 143771 / 1024),
        ("b200-sxm", 183359 / 1024),
        ("gb200-nvl72", 189471 / 1024),
        ("b300-sxm", 275040 / 1024),
    ],
)
def test_usable_memory_is_a_little_under_what_nvidia_smi_prints(id, gib):
    """nvidia-smi totals: modal-labs/modal-client pull 2797 for the first four, public logs for the
    others. CUDA reports 0.3 to 4 % less."""
    share = catalogue.accelerator(id).hbm_usable_bytes / (gib * 2**30)
    assert 0.96 < share < 1.0


def test_fabric_rates_agree_with_their_port_speed():
    seen = 0
    for f in catalogue.fabrics("scale-out").values():
        assert not math.isnan(f.port_bytes_per_s), f.id
        ports = f.device_bytes_per_s / f.port_bytes_per_s
        assert 0.2 <= ports <= 4, f"{f.id}: {ports:g} ports a device"
        if not math.isnan(f.nics_per_device):
            seen += 1
            assert ports == pytest.approx(f.nics_per_device), f.id
        if "InfiniBand" in f.name:
            seen += 1
            assert f.port_bytes_per_s == pytest.approx(f.device_bytes_per_s), f.id
    assert seen


# line rates of the standards [Gb/s]: EDR 100, HDR 200, NDR 400, XDR 800 (InfiniBand Trade
# Association roadmap); NVLink per direction
# and GPU: 150, 300, 450, 900 GB/s for generations 2 to 5 (half of NVIDIA's 300, 600, 900, 1,800
# both ways)
def test_named_fabrics():
    for id, gbits in {
        "ib-edr": 100,
        "ib-hdr": 200,
        "ib-ndr": 400,
        "ib-xdr": 800,
        "slingshot11": 200,
    }.items():
        assert catalogue.fabric(id).port_bytes_per_s == gbits * 1e9 / 8
    for id, both_ways in {
        "nvlink2": 300e9,
        "nvlink3": 600e9,
        "nvlink4": 900e9,
        "nvlink5-nvl8": 1800e9,
        "nvlink5-nvl72": 1800e9,
    }.items():
        assert catalogue.fabric(id).device_bytes_per_s == both_ways / 2
    assert catalogue.fabric("nvlink5-nvl72").domain_devices == 72
    assert catalogue.fabric("pcie3").device_bytes_per_s == pytest.approx(
        8e9 * 16 * 128 / 130 / 8, rel=0.01
    )  # 8 GT/s, 16 lanes, 128b/130b


def test_efficiency_follows_the_published_curves_it_is_taken_from():
    """The largest point of each published single-domain curve, ring accounting, is never under the
    efficiency of its fabric."""
    series = catalogue.collective_series()
    for name, fabric in {
        "a100_1n_ar": "nvlink3",
        "azure_a100_1n_ar": "nvlink3",
        "azure_h100_1n_ar": "nvlink4",
        "h200_1n_ar_nvls": "nvlink4",
        "b200_1n_ar": "nvlink5-nvl8",
        "azure_gb200_4gpu_ar": "nvlink5-nvl72",
        "cw_gb200_1rack_ar": "nvlink5-nvl72",
    }.items():
        s, f = series[name], catalogue.fabric(fabric)
        assert max(s.busbw_bytes_per_s) >= 0.95 * f.efficiency * f.device_bytes_per_s, name
    assert len(series) >= 28
    assert {row["series"] for row in rows("collective_fits")} <= set(series)


def test_gemm_points_are_below_their_peak():
    seen = 0
    points = catalogue.gemm_points()
    assert len(points) > 1000
    for p in points:
        if p.op.startswith(("matmul", "gemm", "grouped")) and not math.isnan(p.fraction):
            seen += 1
            assert 0 < p.fraction < 1, p
    assert seen


def test_llama3_interruptions_add_up():
    """Llama 3 Herd, table 5: 419 unexpected interruptions in 54 days, by cause; 466 with the
    planned ones."""
    facts = {f.id: f for f in catalogue.reliability_facts()}
    causes = [facts[f"R{i:03}"] for i in range(1, 19)]
    assert sum(f.number for f in causes) == facts["R021"].number == 419
    assert facts["R019"].number == facts["R020"].number + facts["R021"].number == 466


def test_price_is_the_newest_and_inside_its_range():
    p = catalogue.price("h100-sxm")
    assert p.date >= "2026-05"
    assert 1.9 <= p.low <= p.value <= p.high <= 5.5
    assert p.source
    assert p.notes.startswith("median of")
    assert catalogue.price("mi455x") is None
    assert (
        catalogue.price("h800").value == 2.0
    )  # DeepSeek-V3 report: 2.788M hours are 5.576M dollars
    assert catalogue.price("h800").value * 2.788e6 == pytest.approx(5.576e6)


@pytest.mark.parametrize(
    ("word", "id"),
    [
        ("h100", "h100-sxm"),
        ("A100-80", "a100-80-sxm"),
        ("gb200", "gb200-nvl72"),
        ("v5p", "tpu-v5p"),
        ("mi300", "mi300x"),
    ],
)
def test_friendly_names(word, id):
    assert catalogue.accelerator(word).id == id


@pytest.mark.parametrize(
    ("call", "wrong", "nearest"),
    [
        (catalogue.accelerator, "h100-smx", "h100-sxm"),
        (catalogue.accelerator, "gb200-nvl27", "gb200-nvl72"),
        (catalogue.accelerator, "a10080", "a100-80-sxm"),
        (catalogue.fabric, "ib-nrd", "ib-ndr"),
        (catalogue.fabric, "infinband", "ib-ndr"),
        (catalogue.storage, "lustr", "ddn-ai400x2"),
        (catalogue.node, "dgx-h10", "dgx-h100"),
    ],
)
def test_unknown_ids_name_the_nearest(call, wrong, nearest):
    with pytest.raises(DesignError) as e:
        call(wrong)
    assert e.value.nearest == nearest
    assert wrong in str(e.value)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("wrong", [None, 7, ["h100"], {"a": 1}, ""])
def test_ids_that_are_not_words(wrong):
    with pytest.raises(DesignError):
        catalogue.accelerator(wrong)


@pytest.mark.parametrize("column", ["source", "date", "verified"])
def test_numbers_with_no_source_do_not_load(tmp_path, column):
    good = rows("nodes")
    good[1][column] = " "
    path = tmp_path / "nodes.csv"
    with open(path, "w", newline="") as f:
        w = csv.DictWriter(f, list(good[0]))
        w.writeheader()
        w.writerows(good)
    with pytest.raises(CatalogueError, match=f"line 3 .*no {column}"):
        catalogue.read(path)


def test_doubled_ids_and_short_rows_do_not_load(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id,source,date,verified\na,s,2026,text\na,s,2026,text\n")
    with pytest.raises(CatalogueError, match="not unique"):
        catalogue.read(path)
    path.write_text("id,source,date,verified\na,s,2026\n")
    with pytest.raises(CatalogueError, match="as many cells"):
        catalogue.read(path)
    path.write_text("id,source,date,verified\na,s,2026,sure\n")
    with pytest.raises(CatalogueError, match="verified"):
        catalogue.read(path)


def test_provenance_of_one_figure():
    (row,) = (r for r in catalogue.rows("accelerators") if r["id"] == "a100-80-sxm")
    exceptions = dict(e.split("=") for e in row["verified_except"].split())
    assert exceptions.get("bf16_tflops", row["verified"]) == "text"
    assert exceptions["hbm_gbytes_per_s"] == "memory"


@pytest.mark.parametrize(
    "kind", ["accelerators", "fabrics", "nodes", "storage", "prices", "stacks", "models"]
)
def test_tables_are_plain_json(kind):
    import json

    table = listing(kind)
    assert table
    assert all(r["id"] for r in table)
    json.dumps(table, allow_nan=False)


def test_unknown_table():
    with pytest.raises(DesignError) as e:
        listing("fabric")
    assert e.value.nearest == "fabrics"


def test_catalogue_needs_neither_pandas_nor_scipy():
    code = (
        "import sys; from scantling import catalogue; from scantling.design.cluster_rules "
        "import build_cluster; "
        "build_cluster({'accelerator': 'h100', 'devices': 8}); sys.exit('pandas' in "
        "sys.modules or 'scipy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_table_and_its_record_have_the_same_names():
    """A column that no field takes, and a field that no column fills, do not load."""
    row = dict(id="a", moment_bytes="8", master_bytes="4", newton_schulz="0", notes="", source="x")
    assert filled(Optimizer, [row])[0].moment_bytes == 8.0
    with pytest.raises(CatalogueError, match="Optimizer has no field for the column momentum"):
        filled(Optimizer, [row | {"momentum": "1"}])
    with pytest.raises(CatalogueError, match="no column for master_bytes"):
        filled(Optimizer, [{k: v for k, v in row.items() if k != "master_bytes"}])
