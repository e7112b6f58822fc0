"""Turns records of Gemini CLI into steps; the format is that of 0.61.0 (`gemini`).

1. A message is written again as it grows, and all messages are when the history changes. Each text, call,
   result and usage counts once.
2. An answer waits for its usage, because steps have a request before its answer.
3. A compression writes all messages anew, with a summary among them.
4. What the user takes back was sent and paid for. It stays in the window's parts until the next compression.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from nexus_context.assistants.gemini.records import ADDED, COMMANDS, SNAPSHOT, GeminiRecord
from nexus_context.assistants.gemini.session_files import texts_of, usage_of
from nexus_context.assistants.reading.record_values import seconds, text
from nexus_context.assistants.sessions.steps import (
    AgentStep,
    AssistantRequest,
    SessionCompaction,
    Step,
    ToolOutput,
    ToolUse,
    WindowText,
    split_server,
)
from nexus_context.tokens.estimates import UNITS_PER_TOKEN

IMAGE_UNITS = 258 * UNITS_PER_TOKEN
"""Google counts so many tokens for a small image or a tile of a larger one."""
_MEDIA = ("inlineData", "fileData")


class GeminiSteps:
    """Turns the records of one session into steps."""

    def __init__(self) -> None:
        self._taken: set[tuple[str, str]] = set()  # what of each message was turned into steps
        self._waiting: dict[str, Any] | None = None  # the answer whose usage has not come

    def read(self, record: GeminiRecord) -> Iterator[Step | AgentStep]:
        """Yield the steps of a record. Call it for each record in order; the steps of an answer may come with
        a later record.
        """
        if record.name is not None:
            yield from self._message(record.value)
        elif record.messages:
            yield from self._all(record.messages)

    def _all(self, listed: Sequence[dict[str, Any]]) -> Iterator[Step]:
        """The steps of a list of all messages, which replaces the messages so far."""
        summary = next((message for message in listed if _is_summary(message)), None)
        if summary is not None and (summary["id"], "text") not in self._taken:
            yield from self._flush()
            yield SessionCompaction(at=seconds(summary.get("timestamp")))
            requests = {key for key in self._taken if key[1] == "request"}
            self._taken = requests
        for message in listed:
            yield from self._message(message)

    def _message(self, message: dict[str, Any]) -> Iterator[Step]:
        name, kind = message["id"], text(message.get("type"))
        if self._waiting is not None and self._waiting["id"] != name:
            yield from self._flush()
        if kind == "user":
            yield from self._user(name, message.get("content"))
        elif kind == "gemini":
            self._waiting = message
            if isinstance(message.get("tokens"), dict):
                yield from self._flush()

    def _user(self, name: str, content: Any) -> Iterator[Step]:
        if not self._takes(name, "text"):
            return
        for words in texts_of(content):
            start = words.lstrip()
            if start.startswith(COMMANDS):
                continue
            if SNAPSHOT in words:
                yield WindowText("summary", words, id=name)
            elif start.startswith(ADDED):
                yield WindowText("attachments", words, "context", id=name)
            else:
                yield WindowText("user", words, id=name)
        media = sum(
            isinstance(part, dict) and any(key in part for key in _MEDIA) for part in _listed(content)
        )
        if media:
            yield WindowText("user", "", id=name, units=media * IMAGE_UNITS)

    def _flush(self) -> Iterator[Step]:
        """The steps of the answer that waits."""
        message, self._waiting = self._waiting, None
        if message is None:
            return
        name, usage = message["id"], usage_of(message.get("tokens"))
        if usage is not None and (usage.sent or usage.output) and self._takes(name, "request"):
            at, model = seconds(message.get("timestamp")), text(message.get("model"))
            yield AssistantRequest(key=name, at=at, model=model, usage=usage)
        thoughts = [thought for thought in _listed(message.get("thoughts")) if isinstance(thought, dict)]
        if thoughts and self._takes(name, "thoughts"):
            words = (
                str(thought.get(key) or "") for thought in thoughts for key in ("subject", "description")
            )
            yield WindowText("thinking", "\n".join(words), id=name)
        texts = texts_of(message.get("content"))
        if texts and self._takes(name, "text"):
            yield WindowText("answers", "\n".join(texts), id=name)
        for call in _listed(message.get("toolCalls")):
            if isinstance(call, dict):
                yield from self._call(name, call)

    def _call(self, name: str, call: dict[str, Any]) -> Iterator[Step]:
        identifier = str(call.get("id"))
        if self._takes(name, f"call {identifier}"):
            tool, server = split_server(str(call.get("name")))
            yield ToolUse(identifier, tool, server, call.get("args"), record=name)
        result = call.get("result")
        if result is not None and self._takes(name, f"result {identifier}"):
            words, media = _output(result)
            is_error = call.get("status") == "error"
            yield ToolOutput(identifier, words, is_error, units=media * IMAGE_UNITS, record=name)

    def _takes(self, name: str, part_name: str) -> bool:
        """Note a part of a message; returns whether it was not turned into steps before."""
        is_new = (name, part_name) not in self._taken
        self._taken.add((name, part_name))
        return is_new


def _is_summary(message: dict[str, Any]) -> bool:
    return message.get("type") == "user" and any(
        SNAPSHOT in words for words in texts_of(message.get("content"))
    )


def _output(result: Any) -> tuple[str, int]:
    """The text of a result, and its images and other files."""
    if isinstance(result, str):
        return result, 0
    texts, media = [], 0
    for part in _listed(result):
        value = part.get("functionResponse") if isinstance(part, dict) else None
        response = value.get("response") if isinstance(value, dict) else None
        if isinstance(response, dict):
            output = response.get("output")
            texts.append(output if isinstance(output, str) else msgspec.json.encode(response).decode())
        elif isinstance(part, dict) and any(key in part for key in _MEDIA):
            media += 1
        else:
            texts += texts_of([part])
    return "\n".join(texts), media


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
