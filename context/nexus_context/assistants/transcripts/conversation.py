"""Defines what is read of a transcript, the same for every format, and helps format modules to build it.

1. `Draft` collects messages in our own JSON form. A message that is invalid or refused is reported and left
   out; the others stay.
2. `AnswerParts` keeps the order of an answer's texts, reasoning and calls. A call gets a mark
   (`parts.CallPart`) only if a part follows it or its provider signed it.
3. System messages at the beginning of a conversation are its system prompt; later ones stay in place.
4. An answer's usage is what the file says. Figures that are not sensible counts are ignored.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from nexus_context.assistants.reading.record_values import text_in
from nexus_context.assistants.transcripts.chat_records import contained
from nexus_context.assistants.transcripts.records import Record, Report
from nexus_context.conversation.agent_result import ProviderUsage, TurnOutcome
from nexus_context.conversation.message import Message, text_of

Format = Literal[
    "neutral",
    "openai",
    "anthropic",
    "claude-code",
    "tau-bench",
    "codex",
    "responses",
    "gemini",
    "gemini-cli",
    "pydantic-ai",
    "openhands",
    "swe-agent",
    "vscode-chat",
    "copilot-cli",
    "opencode",
    "claude-web",
    "aider",
]

_LONGEST_REASON = 100  # code points
_MOST_TOKENS = 1 << 40  # a larger figure is not a count


class Answer(msgspec.Struct, frozen=True):
    """What the provider said about one answer. `message` is the index of the answer among the messages."""

    message: int
    outcome: TurnOutcome


class Conversation(msgspec.Struct, frozen=True):
    """One conversation. `name` tells it apart from others in the file; `model` is the model that answered."""

    messages: tuple[Message, ...]
    system: str | None = None
    tools: tuple[dict[str, Any], ...] = ()
    name: str = ""
    model: str | None = None
    id: str | None = None  # that its program gave it
    agent: str | None = None  # of a sub-agent's conversation: its id
    answers: tuple[Answer, ...] = ()  # in the order of the messages


class FormatReader(NamedTuple):
    """Says how one format is detected and read.

    `is_file` tells whether the values of a file are in this format. `convert` gets the records for which
    `is_record` is true; its last argument, `entire`, tells whether to include the messages before
    compactions.
    """

    format: Format
    is_file: Callable[[Sequence[Any]], bool]
    is_record: Callable[[Any], bool]
    convert: Callable[[Sequence[Record], Report, bool], list[Conversation]]


class Draft:
    """Collects the messages of one conversation while they are read."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.messages: list[Message] = []
        self.model: str | None = None
        self._answers: list[int] = []  # the indices of answers
        self._outcomes: dict[int, TurnOutcome] = {}

    def add(self, record: Record, value: dict[str, Any], outcome: TurnOutcome | None = None) -> None:
        """Add a message in our own JSON form, with what the provider said about it. A message that is not
        valid is reported and left out.
        """
        for message in contained(record, value, self.report) or ():
            self.messages.append(message)
            if message.role == "assistant":
                self._answers.append(len(self.messages) - 1)
                self.note_outcome(outcome)

    def note_outcome(self, outcome: TurnOutcome | None) -> None:
        """Note what the provider said about the last answer. Without an answer, nothing is noted."""
        if outcome is not None and self._answers:
            self._outcomes[self._answers[-1]] = outcome

    def cut(self, start: int) -> int:
        """Remove the messages from index `start` on. Return how many there were."""
        count = len(self.messages) - start
        del self.messages[start:]
        while self._answers and self._answers[-1] >= start:
            self._outcomes.pop(self._answers.pop(), None)
        return count

    def conversation(
        self,
        *,
        name: str = "",
        session_id: str | None = None,
        agent: str | None = None,
        system: str | None = None,
        tools: Any = None,
    ) -> Conversation:
        """Return the conversation that was collected. `system` is put before the system messages at its
        beginning.
        """
        own_system, messages = leading_system(self.messages)
        shift = len(self.messages) - len(messages)
        prompts = [text for text in (system, own_system) if text]
        listed_tools = tools if isinstance(tools, list) else []
        named_tools = tuple(tool for tool in listed_tools if _is_tool(tool))
        self.report.leave("tool", "without a name", len(listed_tools) - len(named_tools), "tool")
        return Conversation(
            messages=tuple(messages),
            system="\n\n".join(prompts) if prompts else None,
            tools=named_tools,
            name=name,
            model=self.model,
            id=session_id,
            agent=agent,
            answers=tuple(
                Answer(at - shift, outcome) for at, outcome in sorted(self._outcomes.items()) if at >= shift
            ),
        )


class AnswerParts:
    """Collects the parts and calls of one answer, in order."""

    def __init__(self) -> None:
        self.parts: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []

    def __bool__(self) -> bool:
        return bool(self.parts or self.calls)

    def add_part(self, part: dict[str, Any]) -> None:
        self.parts.append(part)

    def add_text(self, text: Any) -> None:
        """Add a text, unless it is empty."""
        if isinstance(text, str) and text:
            self.parts.append({"type": "text", "text": text})

    def add_call(self, call_id: str, name: Any, arguments: Any, signature: str | None = None) -> None:
        """Add a call. `signature` is the one that Gemini's API gave it."""
        self.calls.append({"id": call_id, "name": name, "arguments": arguments})
        mark = {"type": "tool_call", "id": call_id}
        self.parts.append(mark if signature is None else mark | {"thoughtSignature": signature})

    def message(self, **fields: Any) -> dict[str, Any]:
        """Return the answer as a message in our own JSON form."""
        parts = list(self.parts)
        while parts and parts[-1].keys() == {"type", "id"} and parts[-1]["type"] == "tool_call":
            parts.pop()
        only = parts[0] if len(parts) == 1 else {}
        content: Any = only["text"] if only.keys() == {"type", "text"} else (parts or None)
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if self.calls:
            message["toolCalls"] = self.calls
        return message | {name: value for name, value in fields.items() if value is not None}


def leading_system(messages: Sequence[Message]) -> tuple[str | None, list[Message]]:
    """Split messages at the first one that is not a system message. Return the text of the system messages
    before it, None if there are none, and the messages from there on.
    """
    count = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
    return ("\n\n".join(map(text_of, messages[:count])) if count else None), list(messages[count:])


def outcome_of(
    input_tokens: Any,
    output_tokens: Any,
    *,
    cache_read: Any = None,
    cache_write: Any = None,
    includes_cache: bool,
    stop_reason: Any = None,
) -> TurnOutcome | None:
    """Return what a provider said about an answer, None if that is nothing.

    With `includes_cache`, the input tokens include those that were read from the cache and written to it.
    """
    read, written, taken, answered = map(_tokens, (cache_read, cache_write, input_tokens, output_tokens))
    reason = stop_reason if isinstance(stop_reason, str) and 0 < len(stop_reason) <= _LONGEST_REASON else None
    if taken is None or answered is None or not (taken or answered or read or written):
        return None if reason is None else TurnOutcome(stop_reason=reason)
    if includes_cache:
        taken = max(taken - (read or 0) - (written or 0), 0)
    return TurnOutcome(ProviderUsage(taken, answered, read, written), reason)


def result_text(value: Any) -> str:
    """Return the result of a tool as text: a string unchanged, anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


def media_part(media_type: Any, *, data: Any = None, url: Any = None) -> dict[str, Any]:
    """Make the message part of a file, such as an image, from its base64 data or its URL."""
    kind = media_type if isinstance(media_type, str) else ""
    if kind.startswith("audio/") and data is not None:
        return {"type": "audio", "mimeType": kind, "data": data}
    source: dict[str, Any] = {"type": "url", "url": url}
    if data is not None:
        source = {"type": "base64", "media_type": kind, "data": data}
    return {"type": "image" if kind.startswith("image/") else "document", "source": source}


def url_part(media_type: Any, url: Any) -> dict[str, Any]:
    """Make the message part of a file from its URL, which may be a data URL."""
    if isinstance(url, str) and url.startswith("data:") and ";base64," in url[:200]:
        head, _, data = url.partition(";base64,")
        return media_part(head.removeprefix("data:").partition(";")[0] or media_type, data=data)
    return media_part(media_type, url=url)


def _is_tool(tool: Any) -> bool:
    """Whether a tool has a name; those that a provider's server runs may have only a type."""
    if not isinstance(tool, dict):
        return False
    return (
        text_in(tool, "type") not in (None, "function")
        or text_in(tool, "name") is not None
        or text_in(tool, "function", "name") is not None
    )


def _tokens(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < _MOST_TOKENS else None
