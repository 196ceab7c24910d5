"""The design report: what it says and how, that foreign text in it is inert, and that it goes
through papermill."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from html import unescape
from pathlib import Path

import pytest
import scantling
from pages import Page
from scantling.base.errors import DesignError
from scantling.base.quantities import quantity as quantities
from scantling.design.design import Design
from scantling.plans.prepare import prepare
from scantling_logs.learning import read_log
from scantling_logs.point import of_design
from scantling_logs.site_calibration import calibration
from scantling_site import blueprint
from scantling_widgets import report
from scantling_widgets.pages import gallery
from scantling_widgets.report.page import document
from scantling_widgets.shipped_files import example, notebook
from test_words import banned as odd_forms

TERMS = r"(?i)(ZeRO|RDMA|pipeline|parallelism|tensor|error)"
ACRONYMS = r"(RDMA|NCCL|MPI|Slurm|Kubernetes|NVLink|InfiniBand)"
REFUSAL = '{"error": "Hardware constraints insufficient for model parameters"}'
CASES = (
    "case-1-175b-moe-1024-a100",
    "case-2-1t-dense-8-v100",
    "case-3-500b-4096-h100",
    "llama-3.1-405b",
    "case-5-deepseek-v3",
    "case-6-100k-gpus",
)


def marked(names) -> list:
    """Names of designs to render: all but two with the slow tests."""
    quick = ("case-2-1t-dense-8-v100", "llama-3.1-405b")
    return [n if n in quick else pytest.param(n, marks=pytest.mark.slow) for n in names]


FEASIBLE = marked(c for c in CASES if not c.startswith("case-2"))
GALLERY = marked(gallery.designs())


def page_of(made: report.Report) -> Page:
    from markupsafe import Markup

    return Page(document(Markup(made.html()), title=made.design.title, date="2026-11-21"))


def words_only(design: Design) -> Page:
    """The page without its pictures and without the assessments of changed designs: what a design's
    own text can reach."""
    from markupsafe import Markup
    from scantling_widgets.report.order import ORDER

    made = report.Report(design)
    parts = [
        made.section(name)
        for name in (
            "header",
            "refusal",
            *(n for n in ORDER if n not in ("brief", "sensitivity") and not n.endswith("-picture")),
        )
    ]
    return Page(
        document(
            Markup("\n".join(part.html for part in parts if part)),
            title=design.title,
            date="2026-11-21",
        )
    )


SMALL = "llama-3.1-8b-8-h100-fsdp"


@cache
def assessed(name: str) -> scantling.Assessment:
    return scantling.assess(Design.read(example(name)))


@cache
def made(name: str) -> report.Report:
    return report.Report(assessed(name).design, assessed(name))


def told(name: str) -> dict:
    """What the assessment says, once for its page and its tests."""
    return made(name).data


@cache
def case(name: str) -> Page:
    return page_of(made(name))


@cache
def whole(name: str) -> Page:
    """With all that is looked up."""
    return page_of(report.Report(assessed(name).design, assessed(name), full=True))


# ---------------------------------------------------------------- what the reader asked for
@pytest.mark.parametrize("name", marked(CASES))
def test_speaks_the_language_of_the_field(name):
    assert re.search(TERMS, case(name).text)


@pytest.mark.parametrize("name", FEASIBLE)
def test_names_its_components(name):
    assert re.search(ACRONYMS, case(name).text)


@pytest.mark.slow
def test_the_mixture_of_experts_on_a100_is_sharded_by_zero():
    assert "ZeRO" in case("case-1-175b-moe-1024-a100").text


@pytest.mark.slow
def test_the_cluster_of_4096_names_nccl_and_what_it_thinks_of_the_floor():
    text = case("case-3-500b-4096-h100").text
    assert "NCCL" in text
    assert "Constraint violated" in text or "Feasible" in text
    assert re.search(r"(?i)mfu", text.split("Parallelism strategy")[0])


def test_the_refusal_is_words_and_arithmetic_and_nothing_that_looks_like_a_design():
    page = case("case-2-1t-dense-8-v100")
    lines = page.text.split("\n")
    assert "{" not in page.text, "its JSON stands in the notebook and on stdout"
    said = "No-go. Impossible: no plan can hold this model on 8 × V100 16GB PCIe, since there is "
    (refused,) = (i for i, line in enumerate(lines) if line.startswith(said))
    after = lines[refused + 1 :]
    assert sum(bool(re.search(r"\d", line)) for line in after) >= 2, "numbers that prove it"
    assert any("GB" in line or "bytes" in line for line in after)
    assert page.elements["svg"] == 0
    for word in (
        "Parallelism strategy",
        "Tensor parallel",
        "Pipeline parallel",
        "Checkpoint",
        "Recovery",
        "Hot spares",
        "MFU",
        "Step time",
    ):
        assert word.lower() not in page.text.lower()


@pytest.mark.parametrize("name", GALLERY)
def test_bold_marks_boundaries_bottleneck_recovery_and_components(name):
    page, result = case(name), told(name)
    bold = "\n".join(page.bold)
    if made(name).impossible:
        return _a_refusal_in_bold(page)
    for axis, word in (
        ("tp", "Tensor parallel"),
        ("pp", "Pipeline parallel"),
        ("cp", "Context parallel"),
        ("ep", "Expert parallel"),
        ("dp", "Data parallel"),
    ):
        assert (f"{word} {result['plan'][axis]}" in bold) == (result["plan"][axis] > 1), axis
    for word in (
        "Bottleneck",
        "Asynchronous checkpoint",
        "In-place gang restart",
        "Hot spares",
        "MTBF",
        "Mitigation",
    ):
        assert word in bold
    assert re.search(ACRONYMS, bold)


def _a_refusal_in_bold(page):
    """What stands in the way, what would work, and what not to try."""
    bold = "\n".join(page.bold)
    for word in ("No-go", "The smallest machine that works", "State", "Any plan on"):
        assert word in bold


@pytest.mark.parametrize("name", FEASIBLE)
def test_a_director_needs_the_first_page_alone(name):
    """Go, change or no-go; when and for how much, likely and to promise; the two best alternatives
    with their figures; what it hangs on, each bar with its value; three risks with who acts; what
    to measure first."""
    result = told(name)
    first, appendix = re.split(r"\nAppendix(?=\n)", case(name).text)
    met = result["verdict"] in ("feasible", "feasible-at-risk")
    word = re.search(r"^(Go|Change|No-go)\. ", first, re.M)[1]
    near = any(f["verdict"].startswith("feasible") for f in result["nearest_fixes"])
    want = ("Change" if result["saving"] else "Go") if met else ("Change" if near else "No-go")
    assert word == want
    assert ("Recommended: " in first) == met and ("Not recommended as asked" in first) != met
    assert "\nThe two best alternatives\n" in first
    table = case(name).html.partition('class="alternatives"')[2].partition("</table>")[0]
    assert table.count("<tr") - 2 - bool(result["saving"]) <= 2
    rivals = made(name).view.rivals
    assert all(quantities.show("likely.days", r["likely"]["days"]) in table for r in rivals)
    assert all(quantities.show("likely.cost_usd", r["likely"]["cost_usd"]) in table for r in rivals)
    own = result["likely"]["cost_usd"]
    cheapest = min([r["likely"]["cost_usd"] or math.inf for r in rivals], default=math.inf)
    cheaper = word == "Go" and own is not None and cheapest < 0.9 * own
    assert ("cheaper would be" in first) == cheaper, "why it is a go beside a cheaper design"
    if result["days"] is not None:
        promise = result["promise"]
        for key, value in (("days", promise["days_p90"]), ("cost_usd", promise["cost_p90"])):
            assert value is None or quantities.show(f"likely.{key}", value) in first
        assert "Days, likely" in first and "Days, to promise" in first
        assert "To promise: " in first
    if result["to_plan_for"]:
        total = quantities.show("cost_usd", result["to_plan_for"]["total_usd"])
        assert f"Cost to plan for: {total}" in appendix
    assert "when one input changes" in first, "one chart"
    bars = re.search(r"<svg.*?</svg>", case(name).html, re.S)[0]
    key = made(name).moved_by
    for row in made(name).variations[: report.WIDEST]:
        for end in ("low", "high"):
            assert row[end] is None or unescape(quantities.show(key, row[end])) in unescape(bars)
    assert "TP" not in re.findall(r">([^<>]+)</text>", bars), "a plan is no uncertainty"
    assert "\nWhat could break it, and what to decide now\n" in first
    risks = re.findall(r"(capacity lead|[a-z]+ engineer), before ", first)
    assert len(risks) == min(3, len(made(name).view.parts["risks"]["rows"]))
    assert ("\nMeasure first\n" in first) == bool(result["measure_first"])
    for heading in ("What it rests on", "To be avoided"):
        assert f"\n{heading}\n" not in first, heading
    assert first.rstrip().endswith("On"), "signed below it"
    for row in result["missed"]:
        assert row["text"].split(":")[0].lower() in first.lower()
    asked = assessed(name).resolved.constraints
    if any(v is not None for v in vars(asked).values()):
        assert re.search(r"Asked for: .*\((?:.*, )?(met|violated)\)", first)
    for heading in (
        "Parallelism strategy",
        "To confirm with an ML specialist",
        "Memory",
        "Step time and its losses",
        "Reliability and recovery",
        "Network",
        "Scheduler",
        "Storage",
        "Risks",
        "Nearest published runs",
        "Given and assumed",
    ):
        assert f"\n{heading}\n" in appendix, heading
    for heading in (
        "Communication by axis and tier",
        "What moves the result",
        "Quantities, formulas, conventions",
        "Roll-out",
    ):
        assert f"\n{heading}\n" not in appendix, heading
        assert f"\n{heading}\n" in whole(name).text, heading


def words_in(html: str) -> int:
    body = re.sub(r"<style.*?</style>|<title>.*?</title>", "", html, flags=re.S)
    return len(unescape(re.sub(r"<[^>]+>", " ", body)).split())


@pytest.mark.parametrize("name", GALLERY)
def test_a_report_is_short_enough_to_be_read(name):
    """5,000 words with those in the pictures; a whole report keeps all."""
    assert words_in(case(name).html) <= 5000
    if not made(name).impossible:
        assert words_in(whole(name).html) > 1.8 * words_in(case(name).html)


@pytest.mark.parametrize("name", GALLERY)
def test_numbers_are_written_one_way(name):
    text = whole(name).text.split("Quantities, formulas, conventions")[0]
    assert not re.search(r"\d%", text), "a space before the per cent"
    assert not re.search(r"(?<![\d.,])1 (days|nodes|hops|devices|spares|copies)\b", text)


@pytest.mark.parametrize(
    "changes",
    [
        {"cluster.devices": 8},
        {"job.seq_len": 8_388_608, "job.global_batch": 16},
        {"reliability.spares": 0, "reliability.failures_per_1000_node_days": 500},
    ],
)
def test_a_design_far_out_has_its_numbers_written_out(changes):
    text = page_of(report.Report(Design.read(example("llama-3.1-405b")).change(changes))).text
    assert not re.findall(r".{30}\d(?:\.\d+)?e\+?\d.{20}", text)


@pytest.mark.parametrize("name", GALLERY)
def test_read_only_and_without_pleasantries(name):
    page = case(name)
    for banned in (
        r"apiVersion",
        r"#SBATCH",
        r"\bsrun\b",
        r"torchrun",
        r"--[a-z]+-[a-z]+",
        r"export [A-Z_]+=",
        r"(?i)introduction",
        r"(?i)in conclusion",
        r"(?im)^summary\b",
        r"(?i)hope this",
        r"(?i)\bsure\b",
        r"(?i)let me",
        r"(?i)welcome",
        r"(?i)stands for",
        r"undefined",
        r"\bNone\b",
        r"\bnan\b",
        r"\[\]",
        r"\{\}",
    ):
        assert not re.search(banned, page.text), banned


@pytest.mark.parametrize("name", GALLERY)
def test_a_report_speaks_the_english_of_the_field(name):
    assert odd_forms(re.sub(r"\s+", " ", case(name).text)) == []


BULLETS = ("plan", "memory", "step", "recovery", "domains", "site", "risks", "avoid")


@pytest.mark.parametrize("name", GALLERY)
def test_strategy_overlap_memory_recovery_risks_and_domains_are_bullets(name):
    """Exclusively: no paragraph, and no table but that of the phases of a run."""
    sections = ("refusal",) if made(name).impossible else BULLETS
    html = case(name).html
    for section in sections:
        body = re.search(rf'<section id="{section}">(.*?)</section>', html, re.S)[1]
        assert body.count("<li>") >= (1 if section == "avoid" else 2), section
        assert "<p>" not in body, section
        assert "<table" not in body.partition("<h3>Phases</h3>")[0], section
    if "step" in sections and any((told(name).get("hidden_s") or {}).values()):
        assert "\nCommunication overlap\n" in case(name).text


@pytest.mark.parametrize("name", GALLERY)
def test_what_to_avoid_is_always_said(name):
    """As a section, with its reason; a refusal's is the machine itself."""
    text = case(name).text
    after = re.split(r"\nAvoid\n", text)[1]
    assert re.match(r".{30,}\.", after.split("\n")[0])
    for row in told(name).get("avoid", ()):
        assert row["why"] in after


@pytest.mark.parametrize("name", GALLERY)
def test_nothing_opens_or_closes_but_the_design(name):
    """The name and what is given come first, the date last."""
    lines = case(name).text.split("\n")
    assert lines[0] == told(name)["name"]
    assert re.search(r"sequence [\d,]+", lines[1])
    assert lines[-1] == "2026-11-21"


def numbers_in(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e\d+)?", text))


def known_numbers(name: str) -> set[str]:
    """Every number that the assessment or the resolved inputs hold, in every way the library shows
    numbers."""
    kinds = (
        "share",
        "seconds",
        "days",
        "bytes",
        "bytes_per_s",
        "flops",
        "flop",
        "params",
        "count",
        "rate",
        "ratio",
        "chance",
        "usd",
        "kwh",
        "watts",
    )
    known: set[str] = set()

    def walk(value, deep=0):
        if isinstance(value, dict):
            for k, v in value.items():
                walk(k, deep)
                walk(v, deep)
        elif isinstance(value, (list, tuple)):
            for v in value:
                walk(v, deep)
        elif isinstance(value, str):
            known.update(numbers_in(value))
            if re.fullmatch(r"[\d.]+", value) and value.count(".") < 2:
                walk(float(value), deep)
        elif hasattr(value, "__dataclass_fields__") and deep < 3:
            walk({f: getattr(value, f) for f in value.__dataclass_fields__}, deep + 1)
        elif hasattr(value, "item") and not hasattr(value, "__len__"):
            walk(value.item(), deep)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            for kind in kinds:
                known.update(numbers_in(quantities.shown(value, kind)))
            known.update(numbers_in(f"{value:g}"))
            known.update(numbers_in(f"{value:,g}"))

    assessment = assessed(name)
    design, resolved = assessment.design, assessment.resolved
    walk(told(name))
    walk(blueprint(assessment).as_dict())
    walk(design.data())
    walk(made(name).variations)
    walk([*made(name).view.rivals])
    for part in (
        resolved.cluster,
        resolved.model,
        resolved.params,
        resolved.phases,
        resolved.name,
        resolved.cluster.nodes,
    ):
        walk(part)
    from scantling import catalogue

    for fabric in (resolved.cluster.scale_up, resolved.cluster.scale_out):
        walk(catalogue.fabrics()[fabric].name)
    walk(catalogue.storages()[resolved.cluster.storage].name)
    return known


@pytest.mark.parametrize("name", FEASIBLE)
def test_every_number_comes_from_the_assessment(name):
    """The table of formulas has numbers of its own, and that of the plans searched those of other
    plans: those sections apart, and the short one on inputs, which weighs them."""
    apart = "quantities|candidates"
    for made_page, left_out in ((whole(name), apart), (case(name), f"{apart}|assumptions")):
        html = re.sub(rf'<section id="({left_out})">.*?</section>', "", made_page.html, flags=re.S)
        page = Page(html)
        said = numbers_in(page.text.replace("ZeRO-", "ZeRO ").split("2026-11-21")[0])
        # ZeRO-1, ZeRO-2, ZeRO-3, 1F1B, x : 1, per 1,000 node-days
        ours = {"1", "2", "3", "0", "1,000"}
        assert said - known_numbers(name) - ours == set()


@pytest.mark.slow
def test_tokens_and_memory_of_a_run_in_phases_are_those_of_the_whole():
    design = Design.read(example("llama-3.1-405b-long-context"))
    result, text = scantling.assess(design).as_dict(), words_only(design).text
    tokens = quantities.show("params", sum(phase["tokens"] for phase in result["phases"]))
    assert f"{tokens} tokens, sequence" in text
    assert f"for {tokens} tokens" in text
    fullest = max(result["phases"], key=lambda phase: phase["memory_bytes"])
    assert fullest["memory_bytes"] == result["memory_bytes"]["total"]
    assert re.findall(r"in the phase ([^:]+): ", text) == [fullest["name"]]


@pytest.mark.slow
def test_what_is_not_there_is_not_said():
    """Sentences come from figures: with nothing to say about it, no bullet."""
    dense = case("llama-3.1-405b").text
    assert "Expert parallel" not in dense
    assert "Expert load" not in dense
    assert "Expert" in case("case-5-deepseek-v3").text
    assert "To confirm with an ML specialist" in case("case-5-deepseek-v3").text
    assert re.search(r"Precision recipe, fp8", case("case-5-deepseek-v3").text)
    one_node = words_only(Design.read(example(SMALL))).text
    for word in ("Pipeline parallel", "Oversubscription", "Degraded rail"):
        assert word not in one_node


def test_what_was_measured_here_stands_in_its_section_with_date_and_release(tmp_path):
    """Lines as torchtitan writes them, learnt from beside the design: date, release, step and
    MFU as the log prints them; nothing of it without."""
    design = Design.read(example(SMALL))
    tokens = design.job.global_batch * design.job.seq_len
    seconds = tokens / design.cluster.devices / 5000
    lines = [
        f"2026-05-22 18:00:{i * seconds:06.3f} step: {i}  loss: 8.1  memory: 40.0GiB(50%)  "
        "tps: 5,000"
        for i in range(12)
    ]
    log = tmp_path / "job.log"
    log.write_text(
        "\n".join(["2026-05-22 17:59:00 torchtitan version: 0.2.0 (0.2.0 is a tag)", *lines])
    )
    reading = read_log(log)
    reading = replace(reading, devices=design.cluster.devices)  # which the log does not say
    made = calibration([of_design(reading, design)], [reading])
    text = re.sub(r"\s+", " ", words_only(design.change({"calibration": made})).text)
    step = quantities.show("step_s", seconds)
    assert re.search(
        rf"Measured here {made['made']}, H100.*?release 0\.2\.0: 1 measured step", text
    )
    assert re.search(rf"measured 8 {re.escape(step)} ", text)
    assert re.search(
        r"lost to Here Planned start \d\d\.?\d* % 0 % restart 0 % (?:<0\.1|0\.\d+) %", text
    )
    assert "Measured here" not in words_only(design).text


# ---------------------------------------------------------------- form
@pytest.mark.parametrize("name", marked(CASES))
def test_sound_html_that_asks_for_nothing(name):
    page = case(name)
    assert page.faults == []
    assert page.outside() == []
    assert page.elements["script"] == page.elements["iframe"] == page.elements["link"] == 0
    assert len(page.html) < 3_000_000


@pytest.mark.parametrize("name", FEASIBLE)
def test_pictures_have_words(name):
    pictures = [a for tag, a in case(name).attributes if tag == "svg"]
    assert len(pictures) >= 4
    for picture in pictures:
        assert picture["role"] == "img"
        assert len(picture["aria-label"]) > 20
        assert re.search(r"\d", picture["aria-label"])
    assert case(name).elements["figcaption"] == len(pictures)


@pytest.mark.slow
def test_the_same_design_gives_the_same_page():
    design = Design.read(example(SMALL))
    assert page_of(report.Report(design)).html == page_of(report.Report(design)).html


HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    '" onmouseover="alert(3)" x="',
    "'); DROP TABLE plans; --",
    "{{ 7 * 7 }} {% for x in y %} {{ config }}",
    "`rm -rf ~` $(id) ${HOME}",
    "[a](javascript:alert(4)) **bold** # head",
    "]]><!-- --> <![CDATA[ & &amp; &lt;b&gt;",
    "تصميم كبير על ספינה",
    "</title></main></style><h1>other",
    "\\u003cscript\\u003e",
)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_inert(name):
    base = Design.read(example(SMALL))
    plain = words_only(base)
    page = words_only(base.change({"name": name, "notes": f"{name}\n{name}\n" + "x < y & " * 1200}))
    assert page.elements - plain.elements == {"tr": 1, "td": 3}, (
        "a row for the notes, and no other element"
    )
    assert plain.elements - page.elements == {}
    assert page.faults == []
    assert page.text.split("\n")[0] == re.sub(r"\s+", " ", name).strip()
    assert not [a for _, a in page.attributes for k in a if k.startswith("on")]


@pytest.mark.parametrize(
    "name", ["a\nb", "a\x00b", "\u202egpj.exe", "x" * 10_000, "\u2028", "\x1b[31mred"]
)
def test_a_name_that_no_screen_can_show_is_refused_in_one_line(name):
    with pytest.raises(DesignError) as e:
        Design.read(example("llama-3.1-405b")).change({"name": name})
    assert str(e.value).startswith("name: ")
    assert str(e.value).isprintable()
    assert len(str(e.value)) < 600


def test_hostile_text_stays_inert_through_papermill(tmp_path):
    from scantling_widgets.report import jobs

    design = Design.read(example("case-2-1t-dense-8-v100")).change(
        {"name": HOSTILE[0] + "'''\\" + '"""' + HOSTILE[3], "notes": "'''\n\"\"\"\n`x`\n{{7*7}}\\"}
    )
    path = tmp_path / "hostile.yaml"
    design.write(path)
    done = jobs.make(jobs.job(path, "hostile", date="2026-11-21"))
    assert (done.status, done.exit, done.error) == ("done", 4, "")
    page = Page(done.html)
    assert page.text.split("\n")[0] == design.name
    assert page.elements["script"] == page.elements["img"] == 0
    assert page.faults == []


# ---------------------------------------------------------------- papermill
def papermill(*arguments, cwd) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "papermill", str(notebook("design_report")), *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def words_of(path: Path) -> str:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n".join(
        "".join(o.get("data", {}).get("text/html", "")) for c in cells for o in c.get("outputs", [])
    )


@pytest.mark.slow
def test_plain_papermill_takes_a_path_and_sections_on_top(tmp_path):
    path = tmp_path / "design.yaml"
    Design.read(example(SMALL)).write(path)
    done = papermill(
        "out.ipynb", "-p", "design", "design.yaml", "-y", "job: {seq_len: 4096}", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "sequence 4,096" in words_of(tmp_path / "out.ipynb")


@pytest.mark.slow
def test_plain_papermill_takes_a_whole_design(tmp_path):
    text = Design.read(example("case-2-1t-dense-8-v100")).to_yaml()
    done = papermill("out.ipynb", "-y", text, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    cells = json.loads((tmp_path / "out.ipynb").read_text(encoding="utf-8"))["cells"]
    printed = [o["data"]["text/plain"] for cell in cells for o in cell.get("outputs", ())]
    assert REFUSAL in ["".join(text) for text in printed]


def test_wrong_parameters_fail_with_the_design_files_own_error(tmp_path):
    done = papermill(
        "out.ipynb",
        "-y",
        "modle: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 8}\njob: {}",
        cwd=tmp_path,
    )
    assert done.returncode != 0
    assert "DesignError" in done.stderr
    assert "nearest: model" in done.stderr


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {
                "model": "llama-3.1-8b",
                "cluster": {"accelerator": "h100-smx", "devices": 8},
                "job": {},
            },
            None,
        ),
        ({"design": "absent.yaml"}, "absent.yaml"),
        ({"design": "model: [1\n"}, "YAML"),
        ({"design": str(example(SMALL)), "plan": {"tp": -1}}, "plan.tp"),
        ({"design": str(example(SMALL)), "seqlen": 4096}, "seqlen"),
        ({}, "model"),
    ],
)
def test_parameters_that_spell_no_design_are_refused_in_one_line(given, says):
    if says is None:
        assert "h100-sxm" in refused(lambda: prepare(report.read_design(given)))
    else:
        assert says in refused(lambda: report.read_design({"scantling": 1, **given}))


def refused(call) -> str:
    with pytest.raises(DesignError) as e:
        call()
    assert "\n" not in str(e.value)
    return str(e.value)


def test_sections_change_a_design_that_is_named(tmp_path):
    design = report.read_design(
        {
            "design": str(example(SMALL)),
            "job": {"seq_len": 4096},
            "name": "half the context",
            "scantling": 1,
            "_private": 3,
            "In": ["x"],
        }
    )
    assert (design.job.seq_len, design.job.global_batch, design.name) == (
        4096,
        16,
        "half the context",
    )


def test_parameters_are_documented_and_are_the_sections_of_a_design():
    import papermill as pm

    found = pm.inspect_notebook(str(notebook("design_report")))
    assert set(found) == {"design", "space", "full", *Design.model_fields}
    assert all(p["help"] for p in found.values())


def test_the_notebook_is_kept_without_outputs():
    cells = json.loads(notebook("design_report").read_text(encoding="utf-8"))["cells"]
    assert all(
        c["outputs"] == [] and c["execution_count"] is None
        for c in cells
        if c["cell_type"] == "code"
    )


@pytest.mark.slow
def test_the_page_without_papermill_is_the_page_with_it(monkeypatch):
    from markupsafe import Markup
    from scantling_widgets.report import jobs

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    done = jobs.make(jobs.job(example(SMALL), "x"))
    assert done.status == "done", done.error
    assert "2023-11-14" in done.html
    body = Markup(report.Report(Design.read(example(SMALL))).html())
    assert re.sub(r"\s+", " ", str(body)) in re.sub(r"\s+", " ", done.html)


def test_a_hybrid_shows_its_layers_on_the_stages_and_what_each_kind_takes():
    """nvidia/NVIDIA-Nemotron-3-Super-120B-A12B, config.json, hybrid_override_pattern: 40 M, 40 E
    and 8 * of 88 letters."""
    shown = report.Report(Design.read(example("nemotron-3-super-64-gb300")))
    words = shown.picture("layers").words
    assert all(said in words for said in ("40 mamba2", "40 moe", "8 attention"))
    rows = re.findall(r"<tr><td>(\w+)</td><td[^>]*>(\d+)</td>", shown.section("layers").html)
    assert {"mamba2": "40", "moe": "40", "attention": "8", "mtp": "1"}.items() <= dict(rows).items()
    plain = report.Report(Design.read(example(SMALL)))
    assert plain.picture("layers") is None and plain.section("layers") is None
