"""Reads events of OpenHands: lists of events, and records with `history` or `trajectory` of events.

Source: OpenHands `openhands/events/serialization`, `memory/conversation_memory.py`; events of its newer SDK
(`kind`): `frontend/src/types/v1/core`.

1. Actions that one answer called share its `model_response`: they are one message, as the model wrote it. In
   the newer form they share `llm_response_id`.
2. An observation is the result of the call in its `tool_call_metadata`. If it has none, its action is a call
   with the id of the action's event, which the observation names in `cause`.
3. A condensation forgets events: they are left out, and its summary takes their place. With `entire` they
   stay, and the summary follows them.
4. State changes, recalls and the like are left out and counted.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

from nexus_context.assistants.reading.record_values import field, text_in
from nexus_context.assistants.transcripts.conversation import (
    AnswerParts,
    Conversation,
    Draft,
    FormatReader,
    outcome_of,
    result_text,
)
from nexus_context.assistants.transcripts.records import Record, Report
from nexus_context.conversation.coercion import object_of
from nexus_context.conversation.summary import SUMMARY_META

_KINDS = (
    "SystemPromptEvent",
    "MessageEvent",
    "ActionEvent",
    "ObservationEvent",
    "UserRejectObservation",
    "AgentErrorEvent",
    "Condensation",
    "CondensationEvent",
    "CondensationRequest",
    "ConversationStateUpdateEvent",
    "PauseEvent",
)
_RESULT_KINDS = ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent")
_TOOLS = (
    *("run", "run_ipython", "read", "write", "edit", "browse", "browse_interactive", "call_tool_mcp"),
    *("delegate", "think", "task_tracking"),
)
_RESULTS = (
    *("run", "run_ipython", "read", "write", "edit", "browse", "mcp", "delegate", "think", "task_tracking"),
    *("error", "user_rejected", "chat", "download", "success"),
)
_NOT_ARGUMENTS = ("thought", "hidden", "confirmation_state", "security_risk", "blocking")
_OWN = "of OpenHands itself: states, recalls and the like"
_COMPACTED = "before the last compaction: its summary replaces them"


def is_file(values: Sequence[Any]) -> bool:
    """Whether any of the values is an event, or has a list of events."""
    return any(map(is_record, values))


def is_record(value: Any) -> bool:
    """Whether a value is an event, or has a list of events."""
    return _is_event(value) or _events_in(value) is not None


def convert(records: Sequence[Record], report: Report, entire: bool) -> list[Conversation]:
    """Convert each record that has events to a conversation, and all events outside of one to another. With
    `entire`, condensed events are included.
    """
    conversations = []
    loose = []
    for record in records:
        events = _events_in(record.value)
        if events is None:
            loose.append(record)
            continue
        listed = [
            record._replace(value=event, place=f"{record.place}, event {number}")
            for number, event in enumerate(events, 1)
        ]
        name = text_in(record.value, "instance_id") or text_in(record.value, "id") or ""
        conversations.append(_Events(report, entire).read(listed, name))
    if loose:
        conversations.append(_Events(report, entire).read(loose, ""))
    return conversations


class _Events:
    """Reads the events of one conversation."""

    def __init__(self, report: Report, entire: bool) -> None:
        self._draft = Draft(report)
        self._report = report
        self._entire = entire
        self._tools: Any = None
        self._responses: set[str] = set()
        self._calls: dict[Any, str] = {}  # event → id of the call made of it
        self._answer = AnswerParts()
        self._response: str | None = None  # whose answer it is
        self._first: Record | None = None

    def read(self, records: Sequence[Record], name: str) -> Conversation:
        """The conversation of these events."""
        forgotten, summaries = (set[int](), dict[int, str]()) if self._entire else _forgotten(records)
        for at, record in enumerate(records):
            if at in summaries:
                self._add(record, {"role": "user", "content": summaries[at], "meta": dict(SUMMARY_META)})
            if at in forgotten:
                self._report.leave("compacted", _COMPACTED, noun="event")
            elif not isinstance(record.value, dict):
                self._add(record, record.value)
            elif "kind" in record.value:
                self._read_event(record, record.value)
            else:
                self._read_old(record, record.value)
        self._finish()
        return self._draft.conversation(name=name, tools=self._tools)

    # ------------------------------------------------------------ events with `action` or `observation`

    def _read_old(self, record: Record, event: dict[str, Any]) -> None:
        action, raw_arguments = event.get("action"), event.get("args")
        arguments = raw_arguments if isinstance(raw_arguments, dict) else {}
        if action == "system":
            self._tools = arguments.get("tools") or self._tools
            self._add(record, {"role": "system", "content": arguments.get("content")})
        elif action == "message":
            role = "user" if event.get("source") == "user" else "assistant"
            self._add(record, {"role": role, "content": _with_images(arguments)})
        elif action == "condensation" and self._entire and text_in(arguments, "summary"):
            self._add(record, {"role": "user", "content": arguments["summary"], "meta": dict(SUMMARY_META)})
        elif action == "finish":
            text = (
                text_in(arguments, "final_thought")
                or text_in(arguments, "thought")
                or text_in(event, "message")
            )
            role = "user" if event.get("source") == "user" else "assistant"
            self._add(record, {"role": role, "content": text or ""}, _usage(event))
        elif action == "run" and event.get("source") == "user":
            content = f"User executed the command:\n{arguments.get('command')}"
            self._add(record, {"role": "user", "content": content})
        elif action in _TOOLS:
            self._add_action(record, event, action, arguments)
        elif event.get("observation") in _RESULTS:
            self._add_observation(record, event)
        else:
            self._report.leave("own", _OWN, noun="event")

    def _add_action(
        self, record: Record, event: dict[str, Any], action: str, event_arguments: dict[str, Any]
    ) -> None:
        response = field(event, "tool_call_metadata", "model_response")
        choices = field(response, "choices")
        message = field(choices[0], "message") if isinstance(choices, list) and choices else None
        if isinstance(message, dict):
            response_id = text_in(response, "id") or result_text(message)
            if response_id not in self._responses:
                self._responses.add(response_id)
                self._draft.model = text_in(response, "model") or self._draft.model
                answer = {key: message[key] for key in ("content", "tool_calls") if message.get(key)}
                self._add(record, {"role": "assistant", "content": None} | answer, _usage(event))
            return
        answer_parts = AnswerParts()
        answer_parts.add_text(event_arguments.get("thought"))
        call_id = f"event-{event.get('id')}"
        self._calls[_hashable(event.get("id"))] = call_id
        arguments = {
            key: value
            for key, value in event_arguments.items()
            if key not in _NOT_ARGUMENTS and value is not None and value != ""
        }
        answer_parts.add_call(call_id, action, arguments)
        self._add(record, answer_parts.message())

    def _add_observation(self, record: Record, event: dict[str, Any]) -> None:
        call_id = text_in(event, "tool_call_metadata", "tool_call_id")
        call_id = call_id or self._calls.get(_hashable(event.get("cause")))
        failed = event["observation"] in ("error", "user_rejected")
        content = event.get("content")
        message: dict[str, Any] = {"role": "user", "content": content}
        if call_id is not None:
            name = text_in(event, "tool_call_metadata", "function_name")
            message = {"role": "tool", "content": content, "toolCallId": call_id, "name": name}
        if failed:
            message["meta"] = {"is_error": True}
        self._add(record, message)

    # ------------------------------------------------------------ events with `kind`

    def _read_event(self, record: Record, event: dict[str, Any]) -> None:
        kind = event["kind"]
        if kind == "SystemPromptEvent":
            self._tools = event.get("tools") or self._tools
            self._add(record, {"role": "system", "content": text_in(event, "system_prompt", "text")})
        elif kind == "MessageEvent" and isinstance(event.get("llm_message"), dict):
            message = event["llm_message"]
            extended = event.get("extended_content")
            content = [*_listed(message.get("content")), *(extended if isinstance(extended, list) else ())]
            answer = {"tool_calls": message["tool_calls"]} if message.get("tool_calls") else {}
            self._add(record, {"role": message.get("role"), "content": _contents(content)} | answer)
        elif kind == "ActionEvent":
            self._add_call(record, event)
        elif kind in _RESULT_KINDS:
            self._add_result(record, event)
        elif kind in ("Condensation", "CondensationEvent") and self._entire and text_in(event, "summary"):
            self._add(record, {"role": "user", "content": event["summary"], "meta": dict(SUMMARY_META)})
        else:
            self._report.leave("own", _OWN, noun="event")

    def _add_call(self, record: Record, event: dict[str, Any]) -> None:
        """Add the call of an action. The actions of one response are one answer."""
        response = text_in(event, "llm_response_id")
        if response is None or response != self._response:
            self._finish()
            self._response, self._first = response, record
            for block in _listed(event.get("thinking_blocks")):
                if isinstance(block, dict):
                    self._answer.add_part(block)
            for part in _contents(_listed(event.get("thought"))):
                self._answer.add_part(part)
        call = event.get("tool_call")
        function = field(call, "function")
        source = function if isinstance(function, dict) else call
        arguments = field(source, "arguments")
        name = text_in(event, "tool_name") or field(source, "name")
        self._answer.add_call(
            text_in(event, "tool_call_id") or text_in(call, "id") or "",
            name,
            object_of(arguments) if isinstance(arguments, str) else (arguments or {}),
        )

    def _add_result(self, record: Record, event: dict[str, Any]) -> None:
        observation = event.get("observation")
        content: Any = text_in(event, "rejection_reason") or text_in(event, "error")
        failed = event["kind"] != "ObservationEvent" or field(observation, "is_error") is True
        failed = failed or field(observation, "error") not in (None, False, "")
        if content is None:
            content = field(observation, "content")
            if not content:
                content = next(
                    filter(None, (text_in(observation, key) for key in ("output", "message", "error"))), ""
                )
            content = _contents(content) if isinstance(content, list) else content
        name, call_id = text_in(event, "tool_name"), text_in(event, "tool_call_id")
        message = {"role": "tool", "content": content, "toolCallId": call_id, "name": name}
        self._add(record, message | ({"meta": {"is_error": True}} if failed else {}))

    # ------------------------------------------------------------ messages

    def _add(self, record: Record, message: Any, outcome: Any = None) -> None:
        self._finish()
        stamp = text_in(record.value, "timestamp")
        if isinstance(message, dict) and stamp is not None:
            message = message | {"timestamp": stamp}
        self._draft.add(record, message, outcome)

    def _finish(self) -> None:
        if self._answer and self._first is not None:
            stamp = text_in(self._first.value, "timestamp")
            self._draft.add(self._first, self._answer.message(timestamp=stamp))
        self._answer, self._response, self._first = AnswerParts(), None, None


def _is_event(value: Any) -> bool:
    if not isinstance(value, dict) or "role" in value:
        return False
    if value.get("kind") in _KINDS:
        return "source" in value
    if isinstance(value.get("action"), str) and isinstance(value.get("args"), dict):
        return "id" in value or "source" in value
    return isinstance(value.get("observation"), str) and "extras" in value


def _events_in(value: Any) -> list[Any] | None:
    """The events of a record, in pairs of action and observation or one by one."""
    if not isinstance(value, dict):
        return None
    for key in ("history", "trajectory", "events"):
        listed = value.get(key)
        if isinstance(listed, list):
            events = [event for item in listed for event in (item if isinstance(item, list) else [item])]
            if any(map(_is_event, events)):
                return events
    return None


def _forgotten(records: Sequence[Record]) -> tuple[set[int], dict[int, str]]:
    """The indexes of the events that condensations forget, and by index the summary that replaces them."""
    places: dict[Any, int] = {}
    for at, record in enumerate(records):
        places.setdefault(_hashable(field(record.value, "id")), at)
    numbers = sorted(number for number in places if type(number) is int)
    forgotten: set[int] = set()
    spans: list[tuple[int, int]] = []  # of `numbers`
    summaries: dict[int, str] = {}
    for record in records:
        source = _condensation(record.value)
        forgotten_ids, summary = field(source, "forgotten_event_ids"), text_in(source, "summary")
        ids = map(_hashable, forgotten_ids) if isinstance(forgotten_ids, list) else ()
        condensed = {places[event_id] for event_id in ids if event_id is not None and event_id in places}
        first_id, last_id = (
            field(source, "forgotten_events_start_id"),
            field(source, "forgotten_events_end_id"),
        )
        if type(first_id) is int and type(last_id) is int:
            start, end = bisect_left(numbers, first_id), bisect_right(numbers, last_id)
            spans.append((start, end))
            condensed |= {places[number] for number in numbers[start : min(start + 1, end)]}
        forgotten |= condensed
        if condensed and summary:
            summaries[min(condensed)] = summary
    covered_end = 0
    for start, end in sorted(spans):
        forgotten.update(places[number] for number in numbers[max(start, covered_end) : end])
        covered_end = max(covered_end, end)
    return forgotten, summaries


def _condensation(event: Any) -> Any:
    """What a condensation says; None for any other event."""
    if field(event, "action") == "condensation":
        return field(event, "args")
    return event if field(event, "kind") in ("Condensation", "CondensationEvent") else None


def _usage(event: Any) -> Any:
    response = field(event, "tool_call_metadata", "model_response")
    usage, choices = field(response, "usage"), field(response, "choices")
    return outcome_of(
        field(usage, "prompt_tokens"),
        field(usage, "completion_tokens"),
        cache_read=field(usage, "prompt_tokens_details", "cached_tokens"),
        cache_write=field(usage, "cache_creation_input_tokens"),
        includes_cache=True,
        stop_reason=field(choices[0], "finish_reason") if isinstance(choices, list) and choices else None,
    )


def _with_images(arguments: dict[str, Any]) -> Any:
    images = [url for url in _listed(arguments.get("image_urls")) if isinstance(url, str)]
    if not images:
        return arguments.get("content")
    text = [{"type": "text", "text": arguments["content"]}] if text_in(arguments, "content") else []
    return [*text, *({"type": "image_url", "image_url": {"url": url}} for url in images)]


def _contents(parts: list[Any]) -> list[Any]:
    """Parts, with one part for each image and without marks for caches."""
    contents: list[Any] = []
    for part in parts:
        urls = field(part, "image_urls")
        if isinstance(urls, list):
            contents += ({"type": "image_url", "image_url": {"url": url}} for url in urls)
        elif isinstance(part, dict):
            contents.append({key: value for key, value in part.items() if key != "cache_prompt"})
    return contents


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [{"type": "text", "text": value}] if value else []
    return value if isinstance(value, list) else []


def _hashable(value: Any) -> Any:
    return value if isinstance(value, str | int) else None


READER = FormatReader("openhands", is_file, is_record, convert)
