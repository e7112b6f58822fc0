"""A server of MCP with the official SDK, in its newest era: `python mcp_server.py DIRECTORY`.

As `mcp_old_server`, of which it has the tools `relist` and all that answer with their arguments.
"""

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

DIRECTORY = Path(sys.argv[1])
BUS = InMemorySubscriptionBus()


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    described = json.loads((DIRECTORY / "tools.json").read_text(encoding="utf-8"))
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    tools = [types.Tool(name=name, description=text, input_schema=schema) for name, text in described.items()]
    return types.ListToolsResult(tools=tools)


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    if params.name == "relist":
        await BUS.publish(ToolsListChanged())
    return types.CallToolResult(content=[types.TextContent(text=json.dumps(params.arguments))])


async def list_prompts(context: Any, params: Any) -> types.ListPromptsResult:
    arguments = [types.PromptArgument(name="file", required=True), types.PromptArgument(name="focus")]
    return types.ListPromptsResult(prompts=[types.Prompt(name="review", arguments=arguments)])


async def get_prompt(context: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    text = types.TextContent(text=f"Review {json.dumps(params.arguments)}.")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text)])


async def list_resources(context: Any, params: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[types.Resource(uri="memo://gate", name="gate")])


async def read_resource(context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    contents = types.TextResourceContents(uri=params.uri, text="It opens at six.")
    return types.ReadResourceResult(contents=[contents])


async def main() -> None:
    server: Any = Server(
        "test",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
        on_subscriptions_listen=ListenHandler(BUS),
        instructions="Be brief.",
    )
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(main)
