"""Turns records of Codex into steps; the format is that of 0.169.0, and older ones as far as they agree with
it.

1. The items of an answer come before its usage (`token_usage_record`, in older versions only `token_count`).
   They wait for the usage, because steps have a request before its answer.
2. `token_count` repeats the sums of the thread. If the sums are unchanged, there was no request.
3. Instructions and the environment are messages of the roles user and developer. `content_item_kinds` says
   what each of their parts is; in older versions its first words tell.
4. `compacted` replaces all messages by `replacement_history`. The answer with the summary is marked
   (`compaction_output`), and its request sent no tools.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from nexus_context.assistants.codex import session_files as codex
from nexus_context.assistants.codex.forks import ForkBase
from nexus_context.assistants.codex.records import CALLS, COMPACTIONS, OUTPUTS, CodexRecord
from nexus_context.assistants.reading.record_values import count, field, seconds, text
from nexus_context.assistants.sessions.session_types import Usage, subtract_usage
from nexus_context.assistants.sessions.steps import (
    AgentStep,
    AssistantRequest,
    Category,
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

IMAGE_UNITS = 1_000 * UNITS_PER_TOKEN
_SUMMARY = "compaction.summary"
_INSTRUCTIONS = re.compile(r"# AGENTS\.md instructions(?: for (?P<folder>[^\n]*))?")


class CodexSteps:
    """Turns the records of one rollout into steps."""

    def __init__(self, base: ForkBase = ForkBase()) -> None:  # noqa: B008 - it is frozen
        self._base = base
        self._inherited = base.counts  # counts of tokens that are still the origin's
        self._waiting: list[
            Step
        ] = []  # items of an answer whose usage has not come, and what came after them
        self._model: str | None = None
        self._sums: Any = None  # of the thread, when they were counted last
        self._has_records = False  # whether there are `token_usage_record`
        self._is_aside = False
        self._last: Usage | None = None

    def read(self, record: CodexRecord) -> Iterator[Step | AgentStep]:
        """Yield the steps of a record. Call it for each record in order; the steps of an answer come with its
        usage.
        """
        kind, payload = record.kind, record.payload
        if payload is None:
            return
        at = seconds(record.value.get("timestamp"))
        if kind == "response_item":
            yield from self._item(payload, record)
        elif kind == "event_msg":
            yield from self._event(payload, at)
        elif kind == "token_usage_record":
            self._has_records = True
            key = text(payload.get("response_id")) or str(record.value.get("ordinal"))
            yield from self._request(key, payload.get("usage"), at)
        elif kind == "compacted":
            yield from self._compacted(payload, record.replacement, at)
        elif kind == "turn_context":
            self._model = text(payload.get("model")) or self._model

    def _item(self, payload: dict[str, Any], record: CodexRecord) -> Iterator[Step]:
        if field(record.value, "metadata", "compaction_output") is True:
            self._is_aside = True  # the summary itself comes with `compacted`
            return
        steps = list(item_steps(payload))
        if self._waiting or any(map(_is_answer, steps)):
            self._waiting += steps
        else:
            yield from steps

    def _event(self, payload: dict[str, Any], at: float) -> Iterator[Step]:
        kind, info = payload.get("type"), payload.get("info")
        if kind in ("task_complete", "turn_aborted"):
            yield from self._flush()
        if kind != "token_count" or not isinstance(info, dict):
            return
        sums, is_inherited = info.get("total_token_usage"), self._inherited > 0
        if sums != self._sums and isinstance(sums, dict):
            self._sums = sums
            if not self._has_records:
                yield from self._request(
                    f"{at}:{count(sums, 'total_tokens')}", info.get("last_token_usage"), at
                )
        if isinstance(sums, dict):
            self._inherited = max(self._inherited - 1, 0)
        usage, base = codex.usage_of(sums), codex.usage_of(self._base.sums)
        if is_inherited:
            usage = None
        elif usage is not None and base is not None and usage.sent >= base.sent:
            usage = subtract_usage(usage, base)
        yield StatedTotals(usage=usage, window=count(info, "model_context_window") or None)

    def _request(self, key: str, values: Any, at: float) -> Iterator[Step]:
        usage = codex.usage_of(values)
        if usage is None:
            return
        yield AssistantRequest(
            key=key,
            at=at,
            model=self._model,
            usage=usage,
            is_aside=self._is_aside,
            is_inherited=self._inherited > 0,
        )
        self._is_aside = False
        yield from self._flush()

    def _flush(self) -> Iterator[Step]:
        steps, self._waiting = self._waiting, []
        yield from steps

    def _compacted(
        self, payload: dict[str, Any], items: Sequence[dict[str, Any]], at: float
    ) -> Iterator[Step]:
        self._waiting = []
        yield SessionCompaction(at=at, trigger=text(payload.get("trigger")))
        for item in items:
            yield from item_steps(item)
        if not items and (summary := text(payload.get("message"))):
            yield WindowText("summary", summary)


def _is_answer(step: Step) -> bool:
    return isinstance(step, ToolUse) or (
        isinstance(step, WindowText) and step.category in ("answers", "thinking")
    )


def item_steps(payload: dict[str, Any]) -> Iterator[Step]:
    """Yield the steps of one item of a conversation, such as a message or a call."""
    kind, name = text(payload.get("type")), text(payload.get("id")) or ""
    if kind == "message":
        yield from _message(payload, name)
    elif kind == "reasoning":
        words = _texts(payload.get("summary")) or _texts(payload.get("content"))
        data = payload.get("encrypted_content")
        units = len(data) * 3 // 16 * UNITS_PER_TOKEN if isinstance(data, str) else 0
        yield WindowText("thinking", words, id=name, units=units)
    elif kind in CALLS:
        tool, server = split_server(str(payload.get("name") or kind))
        namespace = text(payload.get("namespace"))
        if namespace is not None and namespace.startswith("mcp__"):
            server = namespace.removeprefix("mcp__").strip("_")
        arguments = payload.get("arguments") or payload.get("input") or payload.get("action")
        yield ToolUse(str(payload.get("call_id")), tool, server, arguments, record=name)
    elif kind in OUTPUTS:
        output = payload.get("output")
        words, images = _output(output)
        yield ToolOutput(str(payload.get("call_id")), words, units=images * IMAGE_UNITS, record=name)
    elif kind in COMPACTIONS:
        data = payload.get("encrypted_content")
        units = len(data) * 3 // 16 * UNITS_PER_TOKEN if isinstance(data, str) else 0
        yield WindowText("summary", "", id=name, units=units)


def _message(payload: dict[str, Any], name: str) -> Iterator[Step]:
    role, content = payload.get("role"), payload.get("content")
    about = payload.get("internal_chat_message_metadata_passthrough")
    kinds = about.get("content_item_kinds") if isinstance(about, dict) else None
    parts: Sequence[Any] = content if isinstance(content, list) else ()
    for at, part in enumerate(parts):
        if not isinstance(part, dict):
            continue
        words = part.get("text")
        if not isinstance(words, str):
            yield WindowText("user", "", id=name, units=IMAGE_UNITS)
            continue
        kind = kinds[at] if isinstance(kinds, list) and at < len(kinds) else None
        category, label = _category(str(role), words, kind if isinstance(kind, str) else "")
        if category == "instructions":
            yield LoadedInstructions(((label, words),))
        else:
            yield WindowText(category, words, label, id=name)


def _category(role: str, words: str, kind: str) -> tuple[Category, str]:
    if role == "assistant":
        return "answers", ""
    match = _INSTRUCTIONS.match(words)
    if match is not None:
        return "instructions", match["folder"] or "AGENTS.md"
    if kind == _SUMMARY or words.startswith("Another language model started to solve this problem"):
        return "summary", ""
    if role != "user" or (kind and not kind.startswith("user.") and kind != "unknown"):
        return "attachments", kind.partition(".")[0] or role
    return ("attachments", "environment") if words.lstrip().startswith("<") else ("user", "")


def _output(output: Any) -> tuple[str, int]:
    """The text of a result, and its images."""
    if isinstance(output, dict):
        output = output.get("content") or output.get("output") or ""
    if isinstance(output, str):
        return output, 0
    parts = [part for part in output if isinstance(part, dict)] if isinstance(output, list) else []
    return _texts(parts), sum("image" in str(part.get("type")) for part in parts)


def _texts(parts: Any) -> str:
    if not isinstance(parts, list):
        return ""
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(words for words in texts if isinstance(words, str))
