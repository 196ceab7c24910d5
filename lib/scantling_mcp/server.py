"""The server: tools and resources over the Model Context Protocol, on standard input and output."""

from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from anyio import CapacityLimiter, to_thread
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from scantling.base.errors import DesignError
from scantling.base.json import text as json_text
from scantling.base.plugins import first_sentence

from . import resources
from .guide import PAGE
from .tools import TOOLS, Answered, Tool, call, input_schema, refused
from .workspace import Workspace

AT_ONCE = 2  # calls that are worked on; the others wait


def build(root: str | Path) -> "Server[Any]":
    """The server over the files of a folder."""
    workspace = Workspace(root)
    limiter = CapacityLimiter(AT_ONCE)

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(*each) for each in TOOLS.items()])

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        work = partial(call, params.name, params.arguments or {}, workspace)
        try:
            answer = await to_thread.run_sync(work, limiter=limiter)
        except DesignError as error:
            return _result(refused(error), wrong=str(error))
        return _result(answer)

    async def list_resources(_: Any, __: Any) -> types.ListResourcesResult:
        listed = [
            types.Resource(
                uri=about.uri,
                name=about.name,
                description=about.description,
                mime_type=about.mime_type,
            )
            for about in resources.listed()
        ]
        return types.ListResourcesResult(resources=listed)

    async def list_templates(_: Any, __: Any) -> types.ListResourceTemplatesResult:
        report = types.ResourceTemplate(
            uri_template=f"{resources.REPORT}{{+path}}",
            name="report",
            description="everything that is said of the design in a file below the folder",
            mime_type="text/plain",
        )
        return types.ListResourceTemplatesResult(resource_templates=[report])

    async def read_resource(
        _: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            text, kind = await to_thread.run_sync(
                partial(resources.read, uri, workspace), limiter=limiter
            )
        except DesignError as error:
            data = refused(error)
            raise MCPError(code=types.INVALID_PARAMS, message=str(error), data=data) from None
        content = types.TextResourceContents(uri=uri, mime_type=kind, text=text)
        return types.ReadResourceResult(contents=[content])

    return Server(
        "scantling",
        version=version("scantling"),
        title="scantling",
        description="Plans large LLM training runs: fit, step time, days, dollars, goodput",
        instructions=PAGE.read_text(encoding="utf-8"),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


def _described(name: str, tool: Tool) -> types.Tool:
    """A tool as the protocol has it."""
    hints = types.ToolAnnotations(
        read_only_hint=not tool.writes,
        destructive_hint=False,
        idempotent_hint=not tool.writes,
        open_world_hint=False,
    )
    return types.Tool(
        name=name,
        description=first_sentence(tool.function.__doc__ or ""),
        input_schema=input_schema(tool),
        annotations=hints,
    )


def _result(data: Answered, wrong: str = "") -> types.CallToolResult:
    """Plain data as the result of a call, as text too, for clients that read no other; of what is
    wrong the text is its line."""
    content = types.TextContent(type="text", text=wrong or json_text(data, None))
    return types.CallToolResult(content=[content], structured_content=data, is_error=bool(wrong))


def serve(root: str | Path) -> None:
    """Serve on standard input and output until the input ends."""
    anyio.run(_serve, build(root))


async def _serve(server: "Server[Any]") -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
