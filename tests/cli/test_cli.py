"""The command line: what each command prints where, and how it ends."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path

import jsonschema
import pytest
from scantling import assess
from scantling.advise.design_json import as_dict
from scantling.base import plugins
from scantling.base.console import console, print_json
from scantling.base.errors import DesignError
from scantling.base.files import write_text
from scantling.cli.app import CORE, QUESTIONS, main
from scantling.cli.search import leaderboard
from scantling.cli.texts import change
from scantling.design.design import Design
from scantling.design.file import load
from scantling.plans.leaderboard import plan_columns
from scantling.plans.prepare import prepare

ROOT = Path(__file__).parents[2]
LLAMA = """scantling: 1
model: llama-3.1-8b
cluster: {accelerator: h100-sxm, devices: 64}
job: {tokens: 1e12, seq_len: 8192, global_batch: 256}
"""
IMPOSSIBLE = (
    "model: {size: 1e12}\ncluster: {accelerator: v100-16-pcie, devices: 8, "
    "devices_per_node: 8}\njob: {precision: fp16}\n"
)
REFUSAL = '{"error": "Hardware constraints insufficient for model parameters"}\n'


def process(*arguments, **more):
    """A command as a shell starts it."""
    return subprocess.run(
        [sys.executable, "-m", "scantling", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        **more,
    )


@pytest.fixture
def run(capsys):
    """A command in this process."""

    def run(*arguments):
        code = main([*map(str, arguments)])
        out, err = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, out, err)

    return run


@pytest.fixture
def write(tmp_path):
    def write(text, name="design.yaml"):
        file = tmp_path / name
        file.write_text(text)
        return file

    return write


def test_help_imports_neither_data_frames_nor_charts_nor_jupyter():
    code = (
        "import sys; from scantling.cli import main; main(['--help']); "
        "print([m for m in ('pandas', 'scipy', 'altair', 'dask', 'ipywidgets', 'jupyterlab', "
        "'papermill', 'jinja2') if m in sys.modules], file=sys.stderr)"
    )
    p = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert p.stderr.strip() == "[]"
    assert "Usage: scantling" in p.stdout


def test_only_commands_that_exist_are_listed(capsys):
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out
    for name in CORE:
        assert f"\n  {name} " in listed
        assert main([name, "--help"]) == 0, name
    capsys.readouterr()


def test_help_lists_every_command_once_below_its_question_as_the_read_me_does(capsys):
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out
    shown = {
        question: re.findall(r"^  (\S+) ", part, re.M)
        for question, part in re.findall(r"^(\S[^\n]*\?)\n(.*?)(?=\n\n|\Z)", listed, re.M | re.S)
    }
    assert shown == {question: [*names] for question, names in QUESTIONS.items()}
    assert sorted(name for names in shown.values() for name in names) == sorted(
        {*CORE, *plugins.entries(plugins.COMMANDS)}
    )
    readme = Path(__file__).parents[2].joinpath("README.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| (.*\?) \| (.*) \|$", readme, re.M)
    assert {q: re.findall(r"`([a-z-]+)`", cells) for q, cells in table} == shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["desing", "x"],
        ["catalogue"],
        ["catalogue", "models", "extra"],
        ["schema", "--jsn"],
        ["init"],
        ["init", "-o"],
        ["catalogue", "accelerator"],
        ["--frobnicate"],
        ["params", "no-such.json"],
    ],
)
def test_a_wrong_call_is_one_line(arguments, capsys):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("scantling: ")
    assert err.count("\n") == 1, err


def test_a_misspelt_command_gets_the_nearest(capsys):
    assert main(["catalog", "models"]) == 2
    assert "nearest: catalogue" in capsys.readouterr().err


def test_schema_is_the_schema_of_the_gallery(capsys):
    assert main(["schema"]) == 0
    judge = jsonschema.Draft202012Validator(json.loads(capsys.readouterr().out))
    designs = sorted((ROOT / "gallery/designs").glob("*.yaml"))
    assert len(designs) >= 6
    for path in designs:
        judge.validate(load(path.read_text()))


@pytest.mark.parametrize(
    "kind", ["models", "accelerators", "fabrics", "stacks", "nodes", "storage", "prices"]
)
def test_catalogue(kind, capsys):
    assert main(["catalogue", kind, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) > 5
    assert all(r["id"] for r in rows)
    assert main(["catalogue", kind]) == 0
    printed = capsys.readouterr().out
    assert all(r["id"] in printed for r in rows)


def test_every_listed_id_is_accepted_in_a_design(capsys):

    base = Design.from_yaml(LLAMA)
    for kind, path in (
        ("models", "model"),
        ("accelerators", "cluster.accelerator"),
        ("stacks", "stack"),
        ("storage", "cluster.storage"),
    ):
        main(["catalogue", kind, "--json"])
        for row in json.loads(capsys.readouterr().out):
            try:
                prepare(base.change({path: row["id"]}))
            except DesignError as refused:
                # a chip that is announced, with figures which nobody has published
                assert row["status"] == "announced" and "of it is published" in str(refused)


def test_params_of_a_config(tmp_path, capsys):
    # Llama 3.2 1B: 1,235,814,400 parameters, as the transformers library counts them
    config = {
        "model_type": "llama",
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "num_hidden_layers": 16,
        "vocab_size": 128256,
        "tie_word_embeddings": True,
        "head_dim": 64,
        "max_position_embeddings": 131072,
    }
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    assert main(["params", str(file), "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["total"] == out["active"] == 1_235_814_400
    assert out["layers"] == 16
    assert out["lm_head"] == 0
    parts = (
        "embedding",
        "lm_head",
        "attention",
        "mlp_dense",
        "shared_experts",
        "router",
        "routed_experts",
        "norms",
        "other",
    )
    assert sum(out[k] for k in parts) == out["total"]
    assert main(["params", str(file)]) == 0
    assert "1,235,814,400" in capsys.readouterr().out
    file.write_text(
        json.dumps({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]})
    )
    assert main(["params", str(file)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "t5" in err.lower()
    assert err.count("\n") == 1


# Llama 3 Herd of Models, arXiv 2407.21783, Table 4: 8,192 GPUs, 430 TFLOP/s per GPU, MFU 43 %
RUN = """id,source,stack,layers,hidden,ffn_hidden,heads,kv_heads,head_dim,vocab,mlp,attention,tied_embeddings,seq_len,accelerator,n_devices,precision,tp,pp,cp,dp,micro_batch,global_batch_seqs,recompute,trust,setup,measured_tokens_per_s_per_device
a,Llama 3,meta-4d,126,16384,53248,128,8,128,128256,swiglu,gqa,0,8192,h100-sxm,8192,bf16,8,16,1,64,1,2048,none,high,full,162.2
b,Llama 3,meta-4d,126,,53248,128,8,128,128256,swiglu,gqa,0,8192,h100-sxm,8192,bf16,8,16,1,64,1,2048,none,high,full,162.2
"""  # noqa: E501


def test_predict_writes_a_line_for_each_line(run, write, tmp_path):
    out = tmp_path / "out.csv"
    p = run("predict", write(RUN, "runs.csv"), "-o", out)
    assert p.returncode == 0, p.stderr
    first, second = csv.DictReader(out.read_text().splitlines())
    assert float(first["model_tflops_per_device"]) == pytest.approx(430, rel=0.15)
    assert first["error"] == ""
    assert second["mfu"] == ""
    assert "hidden" in second["error"]


def test_a_table_of_which_no_row_is_predicted_is_written_and_its_errors_counted(
    write, tmp_path, capsys
):
    """Each row says why, and stderr how many; the command ends with 0."""
    out, (head, good, bad) = tmp_path / "out.csv", RUN.strip().splitlines()
    for rows in ([bad], [bad, good], []):
        table = write("\n".join([head, *rows]) + "\n", "runs.csv")
        assert not main(["predict", str(table), "-o", str(out)])
        assert len([*csv.DictReader(out.read_text().splitlines())]) == len(rows)
        assert f"{len(rows) - 1 if rows else 0} of {len(rows)} rows" in capsys.readouterr().err


def test_validate_compares(run, write, tmp_path):
    p = run("validate", write(RUN, "runs.csv"), "--json", tmp_path / "v.json")
    assert p.returncode == 0, p.stderr
    assert "Llama 3" in p.stdout
    assert json.loads((tmp_path / "v.json").read_text())["overall"]["rows"] == 2


@pytest.mark.parametrize("raw", [b"", b"a,b\n1,2\n", bytes(range(256)), b'id,"\n'])
@pytest.mark.parametrize("command", ["predict", "validate"])
def test_a_wrong_table_is_one_line(raw, command, tmp_path, capsys):
    (tmp_path / "runs.csv").write_bytes(raw)
    arguments = [
        command,
        str(tmp_path / "runs.csv"),
        *(["-o", str(tmp_path / "o.csv")] if command == "predict" else []),
    ]
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert not (tmp_path / "o.csv").exists()


def test_a_table_without_measurements_cannot_be_compared(write, capsys):
    assert main(["validate", str(write("id,layers\na,2\n", "runs.csv"))]) == 2
    assert "no row has measured_tokens_per_s_per_device" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        "predict RUNS -o OUT",
        "validate RUNS --json OUT",
        "candidates DESIGN -o OUT",
        "init --like llama-3.1-8b -o OUT",
        "walkthrough moe -o OUT",
    ],
)
def test_what_cannot_be_written_is_one_line(command, write, capsys):
    """A file stands where a folder is needed."""
    there = write("x", "there")
    names = {"RUNS": write(RUN, "runs.csv"), "DESIGN": write(LLAMA), "OUT": there / "out"}
    assert main([str(names.get(word, word)) for word in command.split()]) == 2
    err = capsys.readouterr().err
    assert err.startswith("scantling: ") and err.count("\n") == 1, err
    assert there.read_text() == "x"


def test_a_full_disk_is_one_line():
    with open("/dev/full", "w") as full:
        p = subprocess.run(
            [sys.executable, "-m", "scantling", "spaces"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert (p.returncode, p.stderr) == (2, "scantling: output: No space left on device\n")


def test_writing_leaves_links_and_devices_what_they_are(write, tmp_path):
    kept = write("old", "kept.yaml")
    link = tmp_path / "link.yaml"
    link.symlink_to(kept)
    write_text(link, "new", force=True)
    assert link.is_symlink() and kept.read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE, text=True)
    write_text(tmp_path / "pipe", "new", force=True)
    assert reader.communicate(timeout=600)[0] == "new"
    assert (tmp_path / "pipe").is_fifo()


def test_design_prints_json_alone(write):
    p = process("design", write(LLAMA), "--json")
    assert p.returncode == 0
    assert p.stderr == ""
    result = json.loads(p.stdout, parse_constant=lambda x: pytest.fail(f"{x} in JSON"))
    assert result["verdict"] == "feasible"
    assert (
        result["plan"]["tp"] * result["plan"]["pp"] * result["plan"]["cp"] * result["plan"]["dp"]
        == result["devices_used"]
    )


def test_design_from_stdin_and_in_words(write):
    p = process("design", "-", "--full", input=LLAMA)
    assert p.returncode == 0
    from scantling.base.quantities.quantity import quantity

    for key in (
        "days",
        "mfu",
        "step_s",
        "goodput",
        "memory_bytes.activations",
        "step_breakdown_s.gemm",
    ):
        assert quantity(key).label in p.stdout, key
    assert "Feasible" in p.stdout
    assert "job.precision" in p.stdout
    assert "\x1b" not in p.stdout
    assert "[" not in p.stdout.split("Assumed")[0] or "[bold" not in p.stdout


@pytest.mark.slow
def test_a_missed_constraint_ends_with_3(run, write):
    p = run("design", write(LLAMA + "constraints: {deadline_days: 0.01}\n"))
    assert p.returncode == 3
    assert "Constraint violated: deadline" in p.stdout.replace("\n", " ")


@cache
def said(name: str) -> dict:
    design = Design.read(ROOT / f"gallery/designs/{name}.yaml")
    return as_dict(assess(design))


# "`design` terminal page is ~120-140 lines; the verdict line has no reason, no accelerator, tokens,
# seq, batch; 30-35 lines "Assumed" dominate"
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["llama-3.1-405b", "case-1-175b-moe-1024-a100", "case-3-500b-4096-h100", "case-5-deepseek-v3"],
)
@pytest.mark.parametrize("columns", ["80", "120", "200"])
def test_the_first_ten_lines_decide(name, columns):
    import io

    from rich.console import Console
    from scantling.cli.summary import summary

    result = said(name)
    text = io.StringIO()
    summary(result, Console(file=text, width=int(columns), markup=False, highlight=False))
    lines = text.getvalue().splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= int(columns)
    assert "--full" in lines[-1]
    assert not any(line.startswith("%") for line in lines) and "\ue000" not in text.getvalue()
    first = "\n".join(lines[:12] if columns == "120" else lines)
    for word in ("Job", "Plan", "Run", "MFU", "Memory", "Goodput", "Change"):
        assert f"\n{word}" in first, word
    assert result["accelerator"] in first
    assert f"seq {result['phases'][0]['seq_len']:,}" in first or columns == "80"
    if columns == "120":
        assert result["mfu_denominator"].partition(" of ")[0] in first
        assert result["band_tier"] in first or result["days"] is None


@pytest.mark.parametrize("lines", range(18, 41, 2))
def test_what_finds_no_room_is_left_out_whole(lines, monkeypatch):
    """ "narrows by 17 %, to 18.8 to 48.5 days and $2.79M", where the line went on; "Avoid" over
    nothing."""
    import io

    from rich.console import Console
    from scantling.cli import summary as room

    def rows(most):
        monkeypatch.setattr(room, "LINES", most)
        text = io.StringIO()
        room.summary(said("case-3-500b-4096-h100"), Console(file=text, width=80, markup=False))
        return text.getvalue().splitlines()

    shown, every = rows(lines)[:-3], rows(1000)[:-3]
    assert every[: len(shown)] == shown
    if shown and len(shown) < len(every) and any(row.startswith("· ") for row in shown):
        following = every[len(shown)]
        assert following == "" or following.startswith("· ")
        headings = [i for i, row in enumerate(shown) if i and shown[i - 1] == "" and row]
        assert all(shown[i + 1].startswith("· ") for i in headings)


def test_the_assumptions_that_decide_are_named_first(run, write):
    """What `init` finds that days and dollars hang on most stands in the last line of a design; a
    corpus's deduplication does not."""
    design = (
        "model: {size: 8e9}\ncluster: {accelerator: h100-sxm, devices: 64}\njob: {tokens: 1e12}\n"
    )
    *_, line, _ = run("design", write(design)).stdout.splitlines()
    names = re.findall(r"[a-z]+\.[a-z_]+", line)
    assert names[:3] == ["job.precision", "job.seq_len", "job.global_batch"]
    assert not any("corpus" in name for name in names)


def test_a_title_never_contradicts_its_design():
    """ "`model: {size: 80e9, active: 3e9}` -> title "80B dense" while ep 16; `model: {hf_config}`
    -> title "model on 64 h100-sxm" (no file, no architecture)"."""

    def title(model):
        cluster = {"accelerator": "h100-sxm", "devices": 64}
        return prepare(Design.from_data({"model": model, "cluster": cluster, "job": {}})).name

    assert title({"size": 80e9, "active": 3e9}) == "80B MoE on 64 h100-sxm"
    assert title({"size": 80e9}) == "80B dense on 64 h100-sxm"
    assert title({"size": 1e12}) == "1T dense on 64 h100-sxm"
    shape = {"layers": 32, "hidden": 4096, "heads": 32, "vocab": 32000, "ffn_hidden": 11008}
    assert title(shape) == "6.74B dense on 64 h100-sxm"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["design", "search", "goodput"])
def test_the_refusal_is_exact(command, run, write):
    p = (process if command == "design" else run)(command, write(IMPOSSIBLE))
    assert (p.returncode, p.stdout) == (4, REFUSAL)
    assert any(c.isdigit() for c in p.stderr)
    assert "Traceback" not in p.stderr
    p = run(command, write(IMPOSSIBLE), "--json")
    assert p.returncode == 4
    assert p.stderr == ""
    assert list(json.loads(p.stdout)) == ["name", "verdict", "error", "limits", "nearest_fixes"]


SITES = """
scantling: 1
model: llama-3-70b
cluster: {accelerator: h100-sxm, devices: 1024, sites: 2}
job: {seq_len: 8192, global_batch: 512}
"""


@pytest.mark.slow
def test_every_key_of_an_assessment_is_in_the_table_of_quantities(run, write):
    from scantling.base.quantities.quantity import table

    results = [
        json.loads(run("design", write(text), "--json").stdout)
        for text in (LLAMA, LLAMA + "constraints: {min_mfu: 0.9}\n", SITES)
    ]
    free = {
        "rejected",
        "endurance.failures_per_day",
        "endurance.spares_for",
        "endurance.domain_nodes",
        "assumed.value",
        "endurance.assumed.value",
        "nearest_fixes.set",
        "can_do.set",
        "cost.carbon_kg",
        "fastest.plan",
    }  # their keys are reasons, causes, chances, domains, fields, countries, those of plan,
    # or those of whatever a field holds

    def walk(value, key=""):
        if isinstance(value, dict) and key not in free:
            for k, v in value.items():
                yield from walk(v, f"{key}.{k}" if key else k)
        elif key not in free and isinstance(value, list) and value and isinstance(value[0], dict):
            yield key
            for v in value:
                yield from walk(v, key)
        elif key:
            yield key

    missing = sorted({k for result in results for k in walk(result)} - table().keys())
    assert not missing, missing


@pytest.mark.parametrize(
    "name",
    [
        "case-1-175b-moe-1024-a100",
        "case-3-500b-4096-h100",
        "llama-3.1-405b",
        "case-5-deepseek-v3",
        "llama-3.1-8b-8-h100-fsdp",
    ],
)
def test_a_printed_plan_can_be_pinned(name):
    """What `plan` prints goes back into the file as it is, beside what the file says of the
    software, and gives the same plan and step."""

    design = Design.read(ROOT / f"gallery/designs/{name}.yaml")
    open_ = assess(design)
    pinned = assess(design.change({f"plan.{field}": v for field, v in open_.plan.items()}))
    assert pinned.plan == open_.plan
    assert pinned.step_s == pytest.approx(open_.step_s, rel=1e-9)
    assert pinned.verdict == open_.verdict


def test_text_of_a_design_is_never_markup(run, write):
    p = run("design", write("name: '[bold red]x[/] $(id) <b>'\n" + LLAMA))
    assert p.returncode == 0
    assert "[bold red]x[/] $(id) <b>" in p.stdout


def test_search(run, write, tmp_path):
    p = run("search", write(LLAMA), "--top", "3", "--csv", tmp_path / "plans.csv", "--json")
    assert p.returncode == 0, p.stderr
    found = json.loads(p.stdout)
    assert len(found["plans"]) == 3
    assert found["legal"] >= 3
    assert found["plans"][0]["step_s"] <= found["plans"][1]["step_s"]
    assert (tmp_path / "plans.csv").read_text().count("\n") > 3
    assert run("search", write(LLAMA)).returncode == 0


def test_a_table_of_plans_says_how_many_devices_work_where_that_differs(capsys):
    """MFU is of the devices in use: 1,920 of 2,048 may have the higher one and the longer step."""
    design = Design.from_yaml(
        "model: deepseek-v3\ncluster: {accelerator: h800-sxm, devices: 2048}\n"
        "job: {tokens: 1e13, seq_len: 4096, global_batch: 15360, precision: fp8}\n"
        "stack: megatron-core"
    )
    plans = plan_columns(design)
    used = plans["devices_used"]
    rows = [{name: column[i] for name, column in plans.items()} for i in range(len(used))]
    idle = next(row for row in rows if row["devices_used"] < 2048)
    for best, heads in ((rows[:1] + [idle], True), (rows[:1] * 2, False)):
        leaderboard("x", best, plans.attrs, console())
        table = capsys.readouterr().out
        assert ("devices" in table.split("legal")[0]) == heads
        assert (str(idle["devices_used"]) in table.split("legal")[0]) == heads


def test_goodput(run, write):
    out = json.loads(run("goodput", write(LLAMA), "--json").stdout)
    assert 0 < out["goodput"] <= 1
    assert out["endurance"]["mtbf_s"] == out["mtbf_s"]
    assert "Goodput" in run("goodput", write(LLAMA)).stdout


PLUGGED = """
import click


def hello(arguments):
    \"\"\"Say what was said.\"\"\"
    print(arguments)
    return 5


native = click.Command("native", callback=lambda: print("native"), help="A click command.")
"""


def test_a_plugged_in_command(monkeypatch, capsys, tmp_path):
    (tmp_path / "plugged_in.py").write_text(PLUGGED)
    monkeypatch.syspath_prepend(tmp_path)
    names = ("hello", "native", "lost")
    entries = {n: EntryPoint(n, f"plugged_in:{n}", plugins.COMMANDS) for n in names[:2]}
    entries["lost"] = EntryPoint("lost", "no_such_package:lost [desk]", plugins.COMMANDS)
    monkeypatch.setattr(plugins, "entries", lambda group: entries)
    assert main(["hello", "--a", "b", "--help"]) == 5
    assert capsys.readouterr().out == "['--a', 'b', '--help']\n"
    assert main(["native"]) == 0
    assert main(["--help"]) == 0
    assert "hello        Say what was said." in capsys.readouterr().out
    assert main(["lost"]) == 2
    assert capsys.readouterr().err == (
        "scantling: lost: needs no_such_package, which is not installed; allowed: "
        "pip install 'scantling[desk]'\n"
    )
    assert main(["lost", "file.yaml", "--to", "x", "--help"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("Usage: scantling lost") and said.err == ""
    assert "It needs no_such_package, which is not installed: pip install" in said.out


def test_a_closed_pipe_is_no_error():
    for command in ("schema", "spaces"):
        p = subprocess.run(
            [
                "bash",
                "-c",
                (
                    f"{sys.executable} -m scantling {command} | (exec <&-; sleep 2); echo "
                    f"${{PIPESTATUS[0]}}"
                ),
            ],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert (p.stdout, p.stderr) == ("1\n", ""), command


@pytest.mark.parametrize(
    "call",
    [
        "search {} --csv {}",
        "candidates {} -o {}",
        "compare {} {} -o {}",
        "predict {} -o {}",
        "predict --template {} -o {}",
        "validate {} --json {}",
        "check {} --junit {}",
        "trace {} --force -o {}",
        "learn {} -o {}",
    ],
)
def test_what_is_read_is_never_written_over(call, tmp_path, capsys):
    """Under another name of the same file either."""
    path = tmp_path / "mine.yaml"
    path.write_text("what somebody typed\n")
    name = tmp_path / "link.yaml"
    name.symlink_to(path)
    words = call.split()
    last = len(words) - words[::-1].index("{}") - 1
    words = [str(name) if i == last else w.format(path) for i, w in enumerate(words)]
    assert main(words) == 2
    assert "is a file of this call already; allowed: another file name" in capsys.readouterr().err
    assert path.read_text() == "what somebody typed\n"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("search {} --scheduler nonsense", "--scheduler: 'nonsense' cannot be reached: no address"),
        ("page {} --no-browser --port 99999", "99999 is not in the range 1<=x<=65535"),
        ("lab {} --no-browser --port 0", "0 is not in the range 1<=x<=65535"),
    ],
)
def test_an_address_that_is_none_is_refused(call, said, run, write):
    refused = run(*call.format(write(LLAMA)).split())
    assert refused.returncode == 2 and said in refused.stderr


def test_a_closed_input_is_an_empty_one():
    command = f"{sys.executable} -m scantling design - <&-"
    p = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (p.returncode, p.stdout) == (2, "")
    assert p.stderr.startswith("scantling: -: the file is empty")


def test_output_is_strict_json(capsys):
    import numpy as np

    print_json(
        {
            "a": np.float64("nan"),
            "b": [float("inf"), 1],
            "c": np.arange(2),
            "d": (np.int64(3), None, True),
        }
    )
    assert json.loads(capsys.readouterr().out) == {
        "a": None,
        "b": [None, 1],
        "c": [0, 1],
        "d": [3, None, True],
    }


@pytest.mark.parametrize(
    ("words", "offered"), [("scantling des", "design"), ("scantling launch --o", "--on")]
)
def test_a_shell_completes_commands_and_options(words, offered):
    """As the line that README gives asks for it."""
    readme = Path(__file__).parents[2].joinpath("README.md").read_text(encoding="utf-8")
    assert 'eval "$(_SCANTLING_COMPLETE=bash_source scantling)"' in readme
    asked = {
        "_SCANTLING_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "scantling"], env=os.environ | asked, capture_output=True, text=True
    )
    assert f"plain,{offered}\n" in done.stdout, done.stderr


def test_a_change_of_two_parts_names_both_where_the_line_is_short():
    """ "fp8 matrix products (60… → constraint violated" was fp8 and another network."""
    row = {
        "change": "fp8 matrix products (60.2 % of the bf16 peak; to be confirmed), and NDR 400",
        "verdict": "feasible",
        "mfu_shown": None,
        "likely": {"days": 15.0, "cost_usd": None},
        "missed": [],
    }
    assert change(row, 70).startswith("fp8 matrix products, and NDR 400 → ")
    assert change(row).startswith(row["change"])


def test_what_a_change_leaves_missed_keeps_its_whole_sum():
    """ "still missed: budget: $103" was $103,000."""
    row = {
        "change": "a global batch of 3,072 sequences, and 3,072 devices",
        "verdict": "constraint-missed",
        "mfu_shown": 0.275,
        "likely": {"days": 70.4, "cost_usd": 103_000.0},
        "missed": [
            "budget: $103,000 likely, $50,000 allowed; probability of meeting it 1 %",
            "MFU: 27.5 % predicted (21.8 % to 32.2 %), 35.0 % asked for",
        ],
    }
    assert change(row).endswith("; still missed: budget: $103,000 likely, MFU: 27.5 % predicted")
    assert change(row, 150).startswith(row["change"])
    assert change(row, 150).endswith("; still missed: budget, MFU")
