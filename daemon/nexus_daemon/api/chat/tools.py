"""Run the tool calls of a model: ask the user if needed, and make a result for the model.

1. The daemon's own tools run without a question: they read, or do what the agent's role allows.
2. A tool of an MCP server runs once the user has allowed it (`nexus/tool/approve`). No question is asked if
   the level of the permissions is `yolo`, or if an active skill of the user names the tool.
3. An error, or no answer within APPROVE_S, means that the user does not allow the call: clients that do not
   know the question answer with an error. After no answer, the user is not asked for the other calls of the
   same model answer.
4. Questions come one after another, in the order of the calls. Then tools that only read run at the same
   time, and so do agents, at most MOST_AT_ONCE of them. Every other tool runs alone.
5. Every call has a result, also if it failed, was refused, or was cancelled.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.revealed_tools import SEARCH
from nexus_context.errors import NexusError
from nexus_context.folder.prompt.agent_tools import NAMES as AGENT_TOOLS
from nexus_context.folder.prompt.sections import READ_SKILL
from nexus_context.memory.queries import NAMES as MEMORY_TOOLS
from nexus_context.servers.offered import OfferedTool
from nexus_daemon import api, protocol
from nexus_daemon.api import resolve

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection

APPROVE_S = 120.0
"""Seconds that the user may take to answer a question."""
MOST_AT_ONCE = 8

CANCELLED = "The user cancelled before this call was run."
INTERRUPTED = "The user cancelled while this call ran: it may have been carried out."
REFUSED = "The user did not allow this call. Do not repeat it; ask what to do instead."
FAILED = "The call failed: {reason}"
UNKNOWN = "There is no tool {name}. Offered: {offered}."

logger = logging.getLogger(__name__)


RunAgent = Callable[[str, str], Awaitable[str]]
"""Runs an agent of this name on this task, and returns its report."""
_Runner = Callable[[ToolCall], Awaitable["ToolResult"]]
_TOGETHER = frozenset((SEARCH, READ_SKILL, "list_agents", "spawn_agent", *MEMORY_TOOLS))
"""Those of which several run at a time."""


class ToolResult(msgspec.Struct, frozen=True):
    """The result of a tool call.

    `text` is what the model is sent, `whole` the full text if `text` is only a part.
    """

    text: str
    is_error: bool = False
    whole: str | None = None


class ToolRunner:
    """Runs the tool calls of one turn of a `session`. Use it on the event loop."""

    def __init__(
        self, client: "Connection", params: protocol.ChatSendParams, session: str, run_agent: RunAgent
    ) -> None:
        self._client = client
        self._folder = params.workspace_folder
        self.session = session
        self._agent = params.agent
        self._run_agent = run_agent
        self._runners: dict[str, _Runner] = {
            SEARCH: self._search,
            READ_SKILL: self._read_skill,
            **dict.fromkeys(MEMORY_TOOLS, self._ask_memory),
            **dict.fromkeys(AGENT_TOOLS, self._call_agents),
            "spawn_agent": self._start_agent,
        }
        self._offered: Mapping[str, OfferedTool] = {}
        self._approved: Collection[str] = ()
        self._is_free = False
        self._is_alone = False
        """Nobody answered a question in time: no other call of the same answer waits as long."""

    async def prepare(self, context: protocol.AssembledContext) -> None:
        """Learn which tools the `context` offers, and which of them need no question to the user."""
        folder = self._client.folders.at(self._folder)
        snapshot = await resolve.snapshot_of(self._client, folder, self._agent)
        offered = []
        if any(_is_of_server(str(tool.get("name"))) for tool in context.tools):
            offered = await self._client.daemon.servers.offered(folder, snapshot, starts=False)
        self._offered = {tool.name: tool for tool in offered}
        self._approved = context.permissions.get("preapproved", ())
        self._is_free = context.permissions.get("level") == "yolo"

    async def run_all(
        self, calls: Sequence[ToolCall], names: Collection[str], tell: Callable[[ToolCall, ToolResult], None]
    ) -> list[ToolResult]:
        """Run calls and return their results in the order of the calls.

        `names` are the tools that the model was offered.

        Calls `tell` with each result as it arrives. If the turn is cancelled, CallsCancelledError is raised
        once every call has a result.
        """
        results: dict[int, ToolResult] = {}

        async def run(index: int, call: ToolCall) -> None:
            try:
                results[index] = await self._run(call)
            except asyncio.CancelledError:
                results[index] = ToolResult(INTERRUPTED, is_error=True)
                raise
            tell(call, results[index])

        self._is_alone = False
        try:
            runnable = []
            for index, call in enumerate(calls):
                refusal = await self._refusal(call, names)
                if refusal is None:
                    runnable.append((index, call))
                else:
                    results[index] = refusal
                    tell(call, refusal)
            limit = asyncio.Semaphore(MOST_AT_ONCE)

            async def run_limited(index: int, call: ToolCall) -> None:
                async with limit:
                    await run(index, call)

            async with asyncio.TaskGroup() as group:
                for index, call in runnable:
                    if self._runs_beside_others(call.name):
                        group.create_task(run_limited(index, call))
            for index, call in runnable:
                if index not in results:
                    await run(index, call)
        except asyncio.CancelledError:
            cancelled = ToolResult(CANCELLED, is_error=True)
            raise CallsCancelledError(
                [results.get(index, cancelled) for index in range(len(calls))]
            ) from None
        return [results[index] for index in range(len(calls))]

    async def _refusal(self, call: ToolCall, names: Collection[str]) -> ToolResult | None:
        """Why a call is not run; None if it is."""
        if call.name not in names or not (call.name in self._runners or call.name in self._offered):
            offered = ", ".join(sorted(names)) or "none"
            return ToolResult(UNKNOWN.format(name=call.name, offered=offered), is_error=True)
        if call.name in self._runners or self._is_free:
            return None
        if call.name in self._approved:  # a skill's `tool(limit)` does not say yes to every call of the tool
            return None
        return None if await self._is_allowed(call) else ToolResult(REFUSED, is_error=True)

    async def _is_allowed(self, call: ToolCall) -> bool:
        tool = self._offered[call.name]
        key = (self._folder, self.session, call.name, msgspec.json.encode(tool.definition))
        if key in self._client.remembered_tools:
            return True
        if self._is_alone:
            return False
        question = protocol.ToolApproveParams(
            workspace_folder=self._folder,
            session=self.session,
            agent=self._agent,
            server=tool.server,
            tool=call.name,
            arguments=call.arguments,
        )
        try:
            answer = await self._client.ask(
                "nexus/tool/approve", question, protocol.ToolApproveResult, timeout_s=APPROVE_S
            )
        except (NexusError, TimeoutError) as error:
            self._is_alone = isinstance(error, TimeoutError)
            logger.info(
                "%s is not called: nobody answered (%s)", call.name, str(error) or "no answer in time"
            )
            return False
        if answer.approved and answer.remember:
            self._client.remembered_tools.add(key)
        return bool(answer.approved)

    def _runs_beside_others(self, name: str) -> bool:
        tool = self._offered.get(name)
        return name in _TOGETHER or (tool is not None and tool.only_reads)

    async def _run(self, call: ToolCall) -> ToolResult:
        try:
            return await self._runners.get(call.name, self._call_server)(call)
        except NexusError as error:
            return ToolResult(FAILED.format(reason=error), is_error=True)
        except Exception:  # the results of the calls beside it are kept
            logger.exception("%s failed.", call.name)
            return ToolResult(FAILED.format(reason="an error of Nexus, which is in its log"), is_error=True)

    async def _call_server(self, call: ToolCall) -> ToolResult:
        tool = self._offered[call.name]
        if not isinstance(call.arguments, dict):
            return ToolResult(FAILED.format(reason="its arguments are no JSON object"), is_error=True)
        answer = await api.mcp.call(
            self._client,
            protocol.ServerCallParams(
                self._folder,
                server=tool.server,
                tool=tool.tool,
                arguments=call.arguments,
                session=self.session,
                agent=self._agent,
            ),
        )
        return ToolResult(answer.text, answer.is_error, answer.whole)

    async def _search(self, call: ToolCall) -> ToolResult:
        query = call.arguments.get("query") if isinstance(call.arguments, dict) else call.arguments
        params = protocol.ToolSearchParams(self._folder, query=str(query or ""), agent=self._agent)
        return ToolResult((await api.mcp.search(self._client, params)).text)

    async def _ask_memory(self, call: ToolCall) -> ToolResult:
        params = protocol.MemoryQueryParams(
            self._folder, session=self.session, tool=call.name, arguments=call.arguments
        )
        return ToolResult((await api.memory.query(self._client, params)).text)

    async def _read_skill(self, call: ToolCall) -> ToolResult:
        params = protocol.SkillReadParams(self._folder, self._agent, arguments=call.arguments)
        return ToolResult((await api.skill.read(self._client, params)).text)

    async def _call_agents(self, call: ToolCall) -> ToolResult:
        params = protocol.AgentCallParams(
            self._folder, session=self.session, agent=self._agent, tool=call.name, arguments=call.arguments
        )
        answer = await api.agent.call(self._client, params)
        return ToolResult(answer.text, answer.is_error)

    async def _start_agent(self, call: ToolCall) -> ToolResult:
        """Start an agent, which works on its task at once: its report is the result."""
        started = await self._call_agents(call)
        if started.is_error or not isinstance(call.arguments, dict):
            return started
        try:
            report = await self._run_agent(str(call.arguments["agent_id"]), str(call.arguments["task"]))
        except NexusError as error:
            return ToolResult(f"{started.text} It failed: {error}", is_error=True)
        return ToolResult(f"{started.text} It is done, and reports:\n{report}")


class CallsCancelledError(asyncio.CancelledError):
    """The turn was cancelled while its tools ran. `results` has a result for each call."""

    def __init__(self, results: list[ToolResult]) -> None:
        super().__init__()
        self.results = results


def result_message(call: ToolCall, result: ToolResult) -> Message:
    """Build the conversation's message of a tool result."""
    meta: dict[str, Any] = {"isError": True} if result.is_error else {}
    if result.whole is not None:
        meta["whole"] = result.whole
    return Message("tool", result.text, tool_call_id=call.id, name=call.name, meta=meta or msgspec.UNSET)


def _is_of_server(name: str) -> bool:
    return name == SEARCH or name.startswith("mcp__")
