"""Turns records of Claude Code into steps; the format is that of 2.1.330, and older ones as far as they
agree.

1. An answer is written as one record for each block (`answers`). Texts of a record that is written again
   count once.
2. What the program adds to a request are records `attachment`. `rendered` is the text as sent; an attachment
   without it was not sent. The type `instructions` names instruction files.
3. `api-request-shape` and `prompt_snapshot` hold the system prompt and the tools. `api-request` and
   `api-request-blob` repeat the request; nothing is taken from them.
4. A compaction is a record `compact_boundary`, then a summary (`isCompactSummary`). The request for the
   summary is not recorded; the program's own totals (`cost-state`) include it.
5. Records with `isSidechain` are of a sub-agent.
6. The file of a sub-agent has the same records.
7. A process of 2.1.277 or later that resumes a session goes on counting; earlier versions count from zero.
"""

from collections.abc import Iterator, Mapping
from os.path import basename
from typing import Any

import msgspec

from nexus_context.assistants.claude_code.answers import AnswerKeys, request_of, usage_of_models
from nexus_context.assistants.claude_code.forks import OriginRecords
from nexus_context.assistants.claude_code.records import UNPRICED, ClaudeCodeRecord
from nexus_context.assistants.reading.record_values import count, objects_in, seconds, text
from nexus_context.assistants.sessions.steps import (
    AgentStep,
    AssistantRequest,
    Definitions,
    LoadedInstructions,
    SessionCompaction,
    StatedTotals,
    Step,
    ToolOutput,
    ToolUse,
    WindowText,
    split_server,
)
from nexus_context.tokens.estimates import UNITS_PER_TOKEN

IMAGE_UNITS = 1_500 * UNITS_PER_TOKEN
"""An image whose size nobody states."""


class ClaudeCodeSteps:
    """Turns the records of one file into steps. With `is_agent`, the file is a sub-agent's own.

    `owners` maps the answers of sub-agents to the file that counts them, for all files of a session. `path`
    is the file that is read.
    """

    def __init__(
        self,
        base: OriginRecords = OriginRecords(),  # noqa: B008 - frozen
        *,
        is_agent: bool = False,
        owners: dict[str, str] | None = None,
        path: str = "",
    ) -> None:
        self._base = base
        self._owners = {} if owners is None else owners
        self._path = path
        self._own: dict[str, int] = {}  # tokens sent for each answer that no origin has
        self._is_agent = is_agent
        self._shape = ""
        self._keys: dict[str | None, AnswerKeys] = {}  # by sub-agent
        self._uuids: set[str] = set()
        self._counts_on = False

    def read(self, record: ClaudeCodeRecord) -> Iterator[Step | AgentStep]:
        """Yield the steps of a record. Call it for each record in order."""
        agent = None
        if record.is_sidechain and not self._is_agent:
            agent = record.agent or record.session or "sub-agent"
        keys = self._keys.get(agent)
        if keys is None:
            keys = self._keys[agent] = AnswerKeys()
        key, uuid = keys.key_of(record), record.uuid
        if record.kind == "assistant":
            self._counts_on = record.counts_on
        is_again = uuid in self._uuids
        if uuid is not None:
            self._uuids.add(uuid)
        for step in self._steps(record, key):
            if isinstance(step, AssistantRequest):
                step = self._with_origin(step, record)
            elif isinstance(step, SessionCompaction) and uuid in self._base.uuids:
                step = msgspec.structs.replace(step, is_recorded=True)  # the origin lacks its request
            if not is_again or isinstance(step, AssistantRequest):
                yield step if agent is None else AgentStep(agent, step)

    def _with_origin(self, request: AssistantRequest, record: ClaudeCodeRecord) -> AssistantRequest:
        """The request, marked as the origin's if it is, or if another file of the session has it, too."""
        name = f"{record.uuid}/{record.agent or basename(self._path)}/{record.value.get('timestamp')}"
        is_elsewhere = record.is_sidechain and self._owners.setdefault(name, self._path) != self._path
        if record.uuid in self._base.uuids or is_elsewhere:
            return msgspec.structs.replace(request, is_inherited=True)
        if not request.is_inherited:
            self._own[request.key] = request.total.sent
        return request

    def _steps(self, record: ClaudeCodeRecord, key: str) -> Iterator[Step]:
        kind, value = record.kind, record.value
        if kind == "user":
            return self._user(record)
        if kind == "assistant":
            return _answer(record, key)
        if kind == "attachment":
            return self._attachment(record)
        if kind == "system":
            return _system(record)
        if kind == "cost-state":
            return self._totals(record)
        if kind == "api-request-shape":
            return self._definitions(text(value.get("shapeHash")) or "", value.get("shape"))
        return iter(())

    def _user(self, record: ClaudeCodeRecord) -> Iterator[Step]:
        uuid, is_summary = record.uuid or "", record.is_summary
        if record.is_hidden:
            return
        is_meta = record.value.get("isMeta") is True or _origin(record.value) is not None
        for part in record.blocks:
            kind = part.get("type")
            if kind == "tool_result":
                yield _result(part, uuid)
            elif is_summary:
                yield WindowText("summary", str(part.get("text") or ""), id=uuid)
            elif kind == "text" and isinstance(words := part.get("text"), str):
                is_program = is_meta or words.lstrip().startswith("<")
                category, label = ("attachments", "notes") if is_program else ("user", "")
                yield WindowText(category, words, label, id=uuid)  # type: ignore[arg-type]
            elif kind in ("image", "document"):
                yield WindowText("user", "", "", id=uuid, units=IMAGE_UNITS)

    def _attachment(self, record: ClaudeCodeRecord) -> Iterator[Step]:
        value = record.value.get("attachment")
        attachment = value if isinstance(value, dict) else {}
        kind, uuid = text(attachment.get("type")) or "attachment", record.uuid or ""
        if kind == "instructions":
            yield LoadedInstructions(tuple(_files(attachment)))
            return
        if kind == "prompt_snapshot":
            snapshot = {"system": attachment.get("systemPrompt"), "tools": attachment.get("tools")}
            if not self._shape and isinstance(snapshot["tools"], list):
                yield from self._definitions("", snapshot)
            return
        rendered = record.value.get("rendered")
        texts = [_text_of(part.get("content")) for part in objects_in(rendered)]
        if rendered is None:  # before 2.1.330
            prompt = attachment.get("prompt")
            texts = [_text_of(prompt or attachment.get("content"))]
        for words in texts:
            if words:
                category = "user" if kind == "queued_command" else "attachments"
                yield WindowText(category, words, "" if category == "user" else kind, id=uuid)  # type: ignore[arg-type]

    def _totals(self, record: ClaudeCodeRecord) -> Iterator[Step]:
        cost = record.total_cost_usd
        if cost is None:
            return
        usage, cost = self._base.subtract_stated(
            usage_of_models(record.model_usage), cost, sum(self._own.values()) if self._base.uuids else 0
        )
        yield StatedTotals(
            usage=usage,
            cost_usd=cost,
            at=record.stated_at,
            is_continued=self._counts_on,
            lacks={UNPRICED: 0} if record.has_unpriced_model else {},
        )

    def _definitions(self, fingerprint: str, shape: Any) -> Iterator[Step]:
        if not isinstance(shape, dict):
            return
        if fingerprint and fingerprint == self._shape:
            return
        self._shape = fingerprint
        system, tools = shape.get("system"), shape.get("tools")
        yield Definitions(fingerprint, _text_of(system), tuple(_tools(tools)))


def _answer(record: ClaudeCodeRecord, key: str) -> Iterator[Step]:
    message, uuid = record.message, record.uuid or ""
    if message is None:
        return
    if record.model == "<synthetic>":
        return
    usage = record.usage
    if (window := record.stated_window) is not None:
        yield StatedTotals(window=window)
    if usage is not None:
        yield request_of(record, usage, key)
    for part in record.blocks:
        kind = part.get("type")
        if kind == "text":
            yield WindowText("answers", str(part.get("text") or ""), id=uuid)
        elif kind in ("thinking", "redacted_thinking"):
            yield WindowText("thinking", str(part.get("thinking") or part.get("data") or ""), id=uuid)
        elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            tool, server = split_server(str(part.get("name")))
            server = text(part.get("server_name")) or server
            yield ToolUse(str(part.get("id")), tool, server, part.get("input"), record=uuid)
        elif isinstance(kind, str) and kind.endswith("_tool_result"):
            yield _result(part, uuid)


def _system(record: ClaudeCodeRecord) -> Iterator[Step]:
    content = record.value.get("content")
    if record.is_compaction:
        about = record.compact_metadata
        yield SessionCompaction(
            at=seconds(record.value.get("timestamp")),
            trigger=text(about.get("trigger")),
            before=count(about, "preTokens") or None,
            after=count(about, "postTokens") or None,
            preserved=_preserved(about),
            is_recorded=False,
        )
    elif record.value.get("subtype") == "local_command" and isinstance(content, str):
        yield WindowText("attachments", content, "local_command", id=record.uuid or "")


def _preserved(about: Mapping[str, Any]) -> frozenset[str]:
    messages, segment = about.get("preservedMessages"), about.get("preservedSegment")
    if isinstance(messages, dict) and isinstance(messages.get("uuids"), list):
        return frozenset(str(uuid) for uuid in messages["uuids"])
    if isinstance(segment, dict):
        return frozenset(str(segment.get(name)) for name in ("headUuid", "tailUuid"))
    return frozenset()


def _tools(tools: Any) -> Iterator[tuple[str, str | None, str]]:
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            name, server = split_server(tool["name"])
            yield name, server, msgspec.json.encode(tool.get("schema") or tool).decode()


def _files(attachment: dict[str, Any]) -> Iterator[tuple[str, str]]:
    listed = attachment.get("files")
    for file in listed if isinstance(listed, list) else ():
        if isinstance(file, dict) and isinstance(path := file.get("path"), str):
            yield path, str(file.get("content") or "")


def _result(part: dict[str, Any], uuid: str) -> ToolOutput:
    content = part.get("content")
    images = sum(
        isinstance(block, dict) and block.get("type") in ("image", "document")
        for block in (content if isinstance(content, list) else ())
    )
    is_error = part.get("is_error") is True
    name, units = str(part.get("tool_use_id")), images * IMAGE_UNITS
    return ToolOutput(name, _text_of(content), is_error, units=units, record=uuid)


def _origin(record: dict[str, Any]) -> str | None:
    """The kind of author of a message of the user that the user did not write, such as a task."""
    origin = record.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else None
    return kind if isinstance(kind, str) and kind not in ("human", "user") else None


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = (
        part if isinstance(part, str) else part.get("text") for part in parts if isinstance(part, dict | str)
    )
    return "\n".join(words for words in texts if isinstance(words, str))
