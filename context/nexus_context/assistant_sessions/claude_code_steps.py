"""Records of Claude Code → steps; the format is that of 2.1.330, and older ones as far as they agree with it.

1. An answer is written as one record for each block, all with the same message id, usage and request.
2. What the program adds to a request are records `attachment`; `rendered` is the text as sent, without which
   the record was not sent. Instruction files are named in that of the type `instructions`.
3. `api-request-shape` and `prompt_snapshot` hold the system prompt and the tools. `api-request` and
   `api-request-blob` repeat the request; nothing is taken from them.
4. A compaction is a record `compact_boundary`, then a summary (`isCompactSummary`). The request for the
   summary is not recorded; the program's own totals (`cost-state`) include it.
5. Records with `isSidechain` are of a sub-agent.
6. The file of a sub-agent has the same records.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from nexus_context.assistant_sessions import claude_code
from nexus_context.assistant_sessions.model import count, seconds, text
from nexus_context.assistant_sessions.steps import (
    AgentStep,
    AssistantRequest,
    Definitions,
    LoadedInstructions,
    SessionCompaction,
    StatedTotals,
    Step,
    ToolOutput,
    ToolUse,
    UnreadRecord,
    WindowText,
    split_server,
)
from nexus_context.decoding import decoder_of
from nexus_context.tokens.estimates import UNITS_PER_TOKEN

IMAGE_UNITS = 1_500 * UNITS_PER_TOKEN
"""An image whose size nobody states."""
_SILENT = frozenset(
    {
        *("queue-operation", "last-prompt", "atis-latch", "tools-used", "mode", "api-request", "summary"),
        *("api-request-blob", "file-history-snapshot", "progress", "permission-mode", "pr-link", "tag"),
        *("custom-title", "ai-title", "agent-name", "agent-color", "agent-setting", "worktree-state"),
        *("file-history-delta", "content-replacement", "marble-origami-commit", "task-summary"),
    }
)
"""Records that add nothing to the window: 2.1.330 wrote most of them, the rest are of the public readers."""


class ClaudeCodeSteps:
    """Turns the lines of one file into steps. `is_agent`: the file is that of a sub-agent."""

    def __init__(self, *, is_agent: bool = False) -> None:
        self._is_agent = is_agent
        self._decoder = decoder_of(dict[str, Any])
        self._shape = ""

    def read(self, line: bytes) -> Iterator[Step | AgentStep]:
        """The steps of a line; msgspec.DecodeError if it is not a record."""
        record = self._decoder.decode(line)
        agent = None
        if record.get("isSidechain") is True and not self._is_agent:
            agent = text(record.get("agentId")) or text(record.get("sessionId")) or "sub-agent"
        for step in self._steps(record):
            yield step if agent is None else AgentStep(agent, step)

    def _steps(self, record: dict[str, Any]) -> Iterator[Step]:
        kind = record.get("type")
        if kind == "user":
            return self._user(record)
        if kind == "assistant":
            return _answer(record)
        if kind == "attachment":
            return self._attachment(record)
        if kind == "system":
            return _system(record)
        if kind == "cost-state":
            return _totals(record)
        if kind == "api-request-shape":
            return self._definitions(text(record.get("shapeHash")) or "", record.get("shape"))
        if kind in _SILENT:
            return iter(())
        return iter((UnreadRecord(str(kind)),))

    def _user(self, record: dict[str, Any]) -> Iterator[Step]:
        content, uuid = _content(record), text(record.get("uuid")) or ""
        is_summary = record.get("isCompactSummary") is True
        if record.get("isVisibleInTranscriptOnly") is True and not is_summary:
            return
        is_meta = record.get("isMeta") is True or _origin(record) is not None
        for part in content:
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

    def _attachment(self, record: dict[str, Any]) -> Iterator[Step]:
        value = record.get("attachment")
        attachment = value if isinstance(value, dict) else {}
        kind, uuid = text(attachment.get("type")) or "attachment", text(record.get("uuid")) or ""
        if kind == "instructions":
            yield LoadedInstructions(tuple(_files(attachment)))
            return
        if kind == "prompt_snapshot":
            snapshot = {"system": attachment.get("systemPrompt"), "tools": attachment.get("tools")}
            if not self._shape and isinstance(snapshot["tools"], list):
                yield from self._definitions("", snapshot)
            return
        rendered = record.get("rendered")
        sent = [_text_of(part.get("content")) for part in rendered or () if isinstance(part, dict)]
        if rendered is None:  # before 2.1.330
            prompt = attachment.get("prompt")
            sent = [_text_of(prompt or attachment.get("content"))]
        for words in sent:
            if words:
                category = "user" if kind == "queued_command" else "attachments"
                yield WindowText(category, words, "" if category == "user" else kind, id=uuid)  # type: ignore[arg-type]

    def _definitions(self, fingerprint: str, shape: Any) -> Iterator[Step]:
        if not isinstance(shape, dict):
            return
        if fingerprint and fingerprint == self._shape:
            return
        self._shape = fingerprint
        system, tools = shape.get("system"), shape.get("tools")
        yield Definitions(fingerprint, _text_of(system), tuple(_tools(tools)))


def _answer(record: dict[str, Any]) -> Iterator[Step]:
    message, uuid = record.get("message"), text(record.get("uuid")) or ""
    if not isinstance(message, dict):
        return
    model, values = text(message.get("model")), message.get("usage")
    if model == "<synthetic>":
        return
    if isinstance(values, dict):
        written = values.get("cache_creation")
        yield AssistantRequest(
            key=f"{message.get('id') or uuid}:{record.get('requestId') or ''}",
            at=seconds(record.get("timestamp")),
            model=model,
            usage=claude_code.usage_of(values),
            written_1h=count(written, "ephemeral_1h_input_tokens") if isinstance(written, dict) else 0,
            version=text(record.get("version")),
        )
    for part in _content(record):
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


def _system(record: dict[str, Any]) -> Iterator[Step]:
    subtype = record.get("subtype")
    if subtype == "compact_boundary":
        value = record.get("compactMetadata")
        about: dict[str, Any] = value if isinstance(value, dict) else {}
        yield SessionCompaction(
            at=seconds(record.get("timestamp")),
            trigger=text(about.get("trigger")),
            before=count(about, "preTokens") or None,
            after=count(about, "postTokens") or None,
            preserved=_preserved(about),
        )
    elif subtype == "local_command" and isinstance(record.get("content"), str):
        yield WindowText("attachments", record["content"], "local_command", id=text(record.get("uuid")) or "")


def _preserved(about: Mapping[str, Any]) -> frozenset[str]:
    messages, segment = about.get("preservedMessages"), about.get("preservedSegment")
    if isinstance(messages, dict) and isinstance(messages.get("uuids"), list):
        return frozenset(str(one) for one in messages["uuids"])
    if isinstance(segment, dict):
        return frozenset(str(segment.get(name)) for name in ("headUuid", "tailUuid"))
    return frozenset()


def _totals(record: dict[str, Any]) -> Iterator[Step]:
    cost, models = record.get("totalCostUSD"), record.get("modelUsage")
    if isinstance(cost, int | float) and not isinstance(cost, bool):
        usages = {
            name: values
            for name, values in (models if isinstance(models, dict) else {}).items()
            if isinstance(values, dict)
        }
        yield StatedTotals(usage=claude_code.usage_of_models(usages), cost_usd=float(cost))


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
        isinstance(one, dict) and one.get("type") in ("image", "document")
        for one in (content if isinstance(content, list) else ())
    )
    is_error = part.get("is_error") is True
    name, units = str(part.get("tool_use_id")), images * IMAGE_UNITS
    return ToolOutput(name, _text_of(content), is_error, units=units, record=uuid)


def _origin(record: dict[str, Any]) -> str | None:
    """Who wrote a message of the user, if it was not the user: a task that ended."""
    origin = record.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else None
    return kind if isinstance(kind, str) and kind not in ("human", "user") else None


def _content(record: dict[str, Any]) -> list[dict[str, Any]]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = (
        part if isinstance(part, str) else part.get("text") for part in parts if isinstance(part, dict | str)
    )
    return "\n".join(one for one in texts if isinstance(one, str))
