"""The server before the package's own client: handshake, tools, resources, hostile arguments, and
no growth over many calls."""

from __future__ import annotations

import json
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from scantling.catalogue.listing import KINDS
from scantling.cli.app import main
from scantling.design.design import Design

anyio = pytest.importorskip("anyio")
mcp = pytest.importorskip("mcp", reason="pip install 'scantling[mcp]'")

from scantling_mcp.server import build  # noqa: E402
from scantling_mcp.tools import TOOLS  # noqa: E402

BASE = {
    "model": "llama-2-13b",
    "cluster": {"accelerator": "h100-sxm", "devices": 64},
    "job": {"tokens": 1e11, "seq_len": 4096, "global_batch": 128},
}


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """A folder of designs, with a secret outside it and links to that."""
    top = tmp_path_factory.mktemp("top")
    folder = top / "designs"
    folder.mkdir()
    (top / "secret.yaml").write_text("secret: 1\n")
    (top / "secret.json").write_text('{"hidden_size": 1}')
    (folder / "link.yaml").symlink_to(top / "secret.yaml")
    (folder / "loop.yaml").symlink_to(folder / "loop.yaml")
    (folder / "endless.yaml").symlink_to("/dev/zero")
    (folder / "gone.yaml").symlink_to("nowhere")
    (folder / "outside").symlink_to(top)
    (folder / "model").mkdir()
    (folder / "model" / "config.json").symlink_to(top / "secret.json")
    os.mkfifo(folder / "pipe.yaml")
    (folder / "huge.yaml").write_text(f"name: {'x' * 2_000_000}")
    Design.from_data(BASE).write(folder / "run.yaml")
    Design.from_data(BASE | {"constraints": {"deadline_days": 1}}).write(folder / "missed.yaml")
    return folder


def ask(root, *calls):
    """The results of some calls to a server in this process, by the client of the package."""

    async def talk():
        async with mcp.Client(build(root)) as client:
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return anyio.run(talk)


@asynccontextmanager
async def process(root):
    """A client of the command, as an agent starts it."""
    command = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "scantling", "mcp"], cwd=str(root), env=dict(os.environ)
    )
    async with mcp.Client(command) as client:
        yield client


def test_handshake_tools_and_resources_over_stdio(root):
    async def talk():
        async with process(root) as client:
            tools = (await client.list_tools()).tools
            listed = (await client.list_resources()).resources
            templates = (await client.list_resource_templates()).resource_templates
            result = await client.call_tool("assess", {"design": "run.yaml"})
            return client.server_info, client.instructions, tools, listed, templates, result

    info, instructions, tools, listed, templates, result = anyio.run(talk)
    assert info.name == "scantling" and "unread" in instructions
    assert [tool.name for tool in tools] == list(TOOLS) and len(tools) <= 10
    for tool in tools:
        assert tool.description and tool.input_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
    assert {str(one.uri) for one in listed} >= {f"scantling://catalogue/{kind}" for kind in KINDS}
    assert [one.uri_template for one in templates] == ["scantling://report/{+path}"]
    assert not result.is_error and result.structured_content["verdict"] == "feasible"


def test_each_tool_answers(root):
    measured = BASE | {"measured": {"step_s": 6.0}, "plan": {"tp": 2}}
    calls = {
        "read_brief": {"text": "70B on 512 H100, 2T tokens, 30 days"},
        "assess": {"design": BASE, "detail": "full"},
        "search": {"design": "run.yaml", "top": 3, "space": "coarse"},
        "compare": {
            "designs": ["run.yaml", {**BASE, "cluster": {**BASE["cluster"], "devices": 128}}]
        },
        "answer": {"design": "run.yaml", "question": "biggest-micro-batch"},
        "fixes": {"design": "missed.yaml"},
        "diagnose": {"design": measured},
        "goodput": {"design": Design.from_data(BASE).to_yaml()},
        "explain": {"design": "run.yaml", "key": "mfu"},
        "kit": {"design": "run.yaml", "to": "megatron", "folder": "kits/one"},
    }
    assert calls.keys() == TOOLS.keys()
    answers = dict(zip(calls, ask(root, *calls.items())))
    for name, result in answers.items():
        assert not result.is_error, (name, result.content)
        assert json.loads(result.content[0].text) == result.structured_content
    data = {name: result.structured_content for name, result in answers.items()}
    assert data["read_brief"]["design"]["cluster"]["devices"] == 512
    assert len(data["search"]["plans"]) == 3 and data["search"]["legal"] > 3
    causes = data["compare"]["difference"]["causes"]
    assert [cause["cause"] for cause in causes] == ["cluster.devices"]
    assert data["answer"]["value"] >= 1
    assert data["fixes"]["verdict"] == "constraint-missed" and data["fixes"]["fixes"]
    assert data["diagnose"]["measured_s"] == 6.0 and data["diagnose"]["causes"]
    assert 0.9 < data["goodput"]["goodput"] < 1
    assert data["explain"]["key"] == "mfu"
    assert (root / "kits" / "one" / "plan.json").is_file()


def test_an_assessment_is_that_of_the_command_line(root, capsys):
    (result,) = ask(root, ("assess", {"design": "run.yaml"}))
    assert main(["design", str(root / "run.yaml"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert result.structured_content["likely"] == pytest.approx(said["likely"])
    assert result.structured_content["plan"] == said["plan"]


# (tool, arguments, field that the refusal names)
WRONG = [
    ("assess", {"design": "absent.yaml"}, "design"),
    ("assess", {"design": "../secret.yaml"}, "design"),
    ("assess", {"design": "/etc/passwd"}, "design"),
    ("assess", {"design": "link.yaml"}, "design"),
    ("assess", {"design": "loop.yaml"}, "design"),
    ("assess", {"design": "endless.yaml"}, "design"),
    ("assess", {"design": "gone.yaml"}, "design"),
    ("assess", {"design": "outside/secret.yaml"}, "design"),
    ("assess", {"design": "run.yaml/../../secret.yaml"}, "design"),
    ("assess", {"design": "pipe.yaml"}, "design"),
    ("assess", {"design": "huge.yaml"}, "design"),
    ("assess", {"design": Path("/etc/passwd").as_uri()}, "design"),
    ("assess", {"design": {f"k{i}": i for i in range(100_000)}}, ""),
    ("assess", {"design": {**BASE, "model": {"hf_config": "pipe.yaml"}}}, "model.hf_config"),
    ("assess", {"design": {**BASE, "model": {"hf_config": "endless.yaml"}}}, "model.hf_config"),
    ("assess", {"design": {**BASE, "calibration": "outside/secret.yaml"}}, "calibration"),
    ("assess", {"design": "."}, ""),
    ("assess", {"design": "a\0b"}, "design"),
    ("assess", {"design": "x" * 5000}, "design"),
    ("assess", {"design": ""}, "design"),
    ("assess", {"design": "git:HEAD:run.yaml"}, "design"),
    ("assess", {"design": "-"}, ""),
    ("assess", {"design": "{a: &a [1], b: [*a, *a]}"}, ""),
    ("assess", {"design": "!!python/object/apply:os.system [touch x]\n"}, ""),
    ("assess", {"design": {**BASE, "model": {"hf_config": "../secret.json"}}}, "model.hf_config"),
    ("assess", {"design": {**BASE, "calibration": "/etc/passwd"}}, "calibration"),
    (
        "assess",
        {"design": {**BASE, "cluster": {"accelerator": "h100-sxn", "devices": 8}}},
        "cluster",
    ),
    (
        "assess",
        {"design": {**BASE, "cluster": {"accelerator": "h100-sxm", "devices": 1e99}}},
        "cluster",
    ),
    ("assess", {"design": {}}, ""),
    ("assess", {"design": [1]}, "design"),
    ("assess", {"design": None}, "design"),
    ("assess", {}, "design"),
    ("assess", {"design": "run.yaml", "space": "wide"}, "argument"),
    ("assess", {"design": "run.yaml", "detail": "huge"}, "detail"),
    ("search", {"design": "run.yaml", "top": 10**9}, "top"),
    ("search", {"design": "run.yaml", "top": "3; rm -rf /"}, "top"),
    ("search", {"design": "run.yaml", "space": "wide"}, "space"),
    ("compare", {"designs": ["run.yaml"]}, "designs"),
    ("compare", {"designs": ["run.yaml"] * 9}, "designs"),
    ("answer", {"design": "run.yaml", "question": "how"}, "question"),
    ("answer", {"design": "run.yaml", "question": "cheaper", "most_devices": 3}, "most_devices"),
    ("explain", {"design": "run.yaml", "key": "__class__"}, "key"),
    ("diagnose", {"design": "run.yaml"}, "design"),
    ("read_brief", {"text": ""}, "text"),
    ("read_brief", {"text": "hello"}, "text"),
    ("read_brief", {"text": "8B on 64 H100 \x1b[2J"}, "text"),
    ("read_brief", {"text": "8" * 20_000}, "text"),
    ("kit", {"design": "run.yaml", "to": "megatron", "folder": "../out"}, "folder"),
    ("kit", {"design": "run.yaml", "to": "megatron", "folder": "/var/out"}, "folder"),
    ("kit", {"design": "run.yaml", "to": "megatron", "folder": "."}, "folder"),
    ("kit", {"design": "run.yaml", "to": "megatron", "folder": "outside/kit"}, "folder"),
    ("kit", {"design": "run.yaml", "to": "megatron", "folder": "k" * 300}, "folder"),
    ("kit", {"design": "run.yaml", "to": "megatron", "folder": "kits\nls"}, "folder"),
    ("kit", {"design": "run.yaml", "to": "megatron", "folder": "run.yaml/kit"}, ""),
    ("kit", {"design": "run.yaml", "to": "megatron; ls", "folder": "kits/two"}, "--to"),
    ("kit", {"design": "missed.yaml", "to": "nothing", "folder": "kits/two"}, "--to"),
    ("shell", {"command": "ls"}, "tool"),
    ("__class__", {}, "tool"),
]


def test_a_wrong_call_says_field_value_allowed_and_nearest(root):
    before = sorted(root.parent.rglob("*"))
    results = ask(root, *[(name, arguments) for name, arguments, _ in WRONG])
    for (name, arguments, field), result in zip(WRONG, results):
        assert result.is_error, (name, arguments)
        error = result.structured_content["error"]
        assert error.keys() >= {"field", "value", "problem", "allowed", "nearest", "message"}
        assert error["field"].startswith(field), (name, arguments, error)
        said = result.content[0].text
        assert said == error["message"] and said.isprintable() and "Traceback" not in said
        assert "secret: 1" not in said and "root:" not in said
    assert sorted(root.parent.rglob("*")) == before
    nearest = results[[w[2] for w in WRONG].index("cluster")].structured_content["error"]
    assert nearest["field"] == "cluster.accelerator" and nearest["nearest"] == "h100-sxm"


def test_the_config_in_a_folder_of_a_model_is_below_the_server_s(root):
    (result,) = ask(root, ("assess", {"design": {**BASE, "model": {"hf_config": "model"}}}))
    error = result.structured_content["error"]
    assert error["field"] == "model.hf_config" and error["problem"] == "is outside it"


def test_words_that_were_not_read_are_asked_about(root):
    (read,) = ask(root, ("read_brief", {"text": "70B on 512 H900, 2T tokens"}))
    design = read.structured_content["design"]
    assert read.structured_content["unread"]
    (result,) = ask(root, ("assess", {"design": design}))
    assert result.is_error and result.structured_content["error"]["unread"]


def test_resources_are_read_and_others_refused(root):
    async def talk():
        async with mcp.Client(build(root)) as client:
            good = {}
            for uri in ("catalogue/accelerators", "glossary", "schema", "report/run.yaml"):
                result = await client.read_resource(f"scantling://{uri}")
                good[uri] = result.contents[0].text
            wrong = []
            for uri in (
                "catalogue/passwords",
                "report/../secret.yaml",
                "report/%2e%2e/secret.yaml",
                "report//etc/passwd",
                "report/link.yaml",
                "report/pipe.yaml",
                "report/outside/secret.yaml",
                "report/",
                "report/a\nb: 1",
                "nothing",
            ):
                with pytest.raises(mcp.MCPError) as caught:
                    await client.read_resource(f"scantling://{uri}")
                wrong.append(str(caught.value))
            return good, wrong

    good, wrong = anyio.run(talk)
    assert any(row["id"] == "h100-sxm" for row in json.loads(good["catalogue/accelerators"]))
    assert "`mfu`" in good["glossary"] and json.loads(good["schema"])["properties"]["cluster"]
    assert "Feasible" in good["report/run.yaml"]
    assert not any("secret: 1" in line or "root:" in line for line in wrong)


def resident() -> int:
    """Resident memory of this process. [bytes]"""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
def test_a_thousand_calls_without_growth(root):
    """Different designs, refusals and resources among them: what is cached is bounded."""

    async def talk():
        sizes = []
        async with mcp.Client(build(root)) as client:
            for i in range(1000):
                job = {**BASE["job"], "tokens": 1e11 + 1e7 * i}
                if i % 10 == 0:
                    await client.call_tool("assess", {"design": "../secret.yaml"})
                elif i % 10 == 1:
                    await client.read_resource("scantling://glossary")
                else:
                    name = ("search", "goodput")[i % 2]
                    more = {"space": "coarse", "top": 2} if name == "search" else {}
                    await client.call_tool(name, {"design": {**BASE, "job": job}, **more})
                if i in (299, 999):
                    sizes.append(resident())
        return sizes

    before, after = anyio.run(talk)
    assert after - before < 60e6
