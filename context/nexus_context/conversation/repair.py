"""Turns a broken history into one that providers accept, and reports every repair.

1. Each tool call has one result, and results directly follow the message with their calls. A missing result
   becomes a text that says so, and a result elsewhere is moved. If a call has several results, the first
   counts. A result whose call was cut or compacted away becomes a marked text of the user.
2. Call ids are unique: the second call with the id `id` becomes `id-2`, and so does its result. Results
   belong to the calls before them, in order. If there are fewer results than calls, they belong to the newest
   calls.
3. A result without an id belongs to the newest message before it that has a call without a result: to the
   call of the same tool, or else to the first. A call without an id gets one.
4. Only assistants call tools. Calls of another role move to an assistant message. Calls and results inside a
   content, in the form of Anthropic, OpenAI or Gemini, become calls and results; that is a repair only if
   they stand in the wrong place. A mark keeps a call's place if parts follow it or Gemini signed it
   (`parts.CallPart`).
5. An empty message is left out, unless it is a result: a tool may return nothing.
6. Text is valid UTF-8 (U+FFFD replaces half a surrogate pair), and JSON no deeper than MOST_DEPTH.
7. A sound history is returned unchanged after one fast pass. A repair never changes the messages before its
   place.

Reading order: `traced`, `sound_part`, `steps_of` (one message), `Pairing` (calls and results).
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from nexus_context.conversation.gemini_parts import gemini_form
from nexus_context.conversation.half_pairs import is_whole, without_halves
from nexus_context.conversation.message import Message, ToolCall, content_of
from nexus_context.conversation.parts import is_blank, json_text, signature_of
from nexus_context.conversation.unpaired import late_result, missing_result

MOST_DEPTH = 200
"""Levels of JSON in arguments and parts. Decoders and encoders give up at about a thousand."""
UNNAMED = "call"
"""Id of a call that has none; a number follows."""

_LONGEST_QUOTE = 60  # code points of an id or a name in a sentence
_SPEAKERS = frozenset(("user", "assistant", "system"))
_LIFTED: dict[str, Literal["call", "result"]] = {
    "tool_use": "call",
    "function_call": "call",
    "tool_result": "result",
    "function_call_output": "result",
}
_GEMINI_CALL, _GEMINI_RESULT = ("functionCall", "function_call"), ("functionResponse", "function_response")
_encode = msgspec.json.Encoder().encode


class Repair(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One thing that is sent in another form than it is stored.

    `index` is that of the message. `given` and `sent` are a name or an id before and after the repair, if it
    changed.
    """

    kind: str  # such as result-missing; the same words for the same repair
    text: str  # one sentence for people
    index: int | None = None
    tool_call_id: str | None = None
    given: str | None = None
    sent: str | None = None


class RepairLog:
    """The repairs of one request's body. A repeated repair is listed once, with its count and its first
    index.
    """

    def __init__(self, repairs: Iterable[Repair]) -> None:
        self._repairs = list(repairs)
        self._counts: dict[tuple[str, str], tuple[Repair, int]] = {}

    def add(self, kind: str, text: str, index: int | None = None, **details: str | None) -> None:
        """Add a repair. `details` are fields of `Repair`; if kind and text are the same as before, only the
        count grows.
        """
        repair, count = self._counts.get((kind, text), (None, 0))
        if repair is None:
            repair = Repair(kind, text, index, **details)
        self._counts[kind, text] = (repair, count + 1)

    def repairs(self) -> list[Repair]:
        """Return all repairs, in the order in which each first occurred."""
        counted = (
            repair if count == 1 else msgspec.structs.replace(repair, text=f"{repair.text} ({count} times)")
            for repair, count in self._counts.values()
        )
        return [*self._repairs, *counted]


class Traced(NamedTuple):
    """Sound messages and the repairs. `origins` has, for each message, the index of the original message that
    it comes from.
    """

    messages: list[Message]
    repairs: list[Repair]
    origins: Sequence[int]


def repaired(messages: Iterable[Message]) -> tuple[list[Message], list[Repair]]:
    """Return the messages in a form that providers accept, and the repairs. A sound list is returned
    itself.
    """
    result = traced(messages)
    return result.messages, result.repairs


def traced(messages: Iterable[Message]) -> Traced:
    """Do the same as `repaired`, and also return the index of the original message of each message."""
    original = messages if isinstance(messages, list) else list(messages)
    start, ids = sound_part(original)
    if start == len(original):
        return Traced(original, [], range(start))
    repairs: list[Repair] = []
    steps = [step for at in range(start, len(original)) for step in steps_of(at, original[at], repairs)]
    if any(step.message.tool_call_id in ids for step in steps):  # a late result of an earlier call
        steps = [*map(Step, range(start), original), *steps]
        start, ids = 0, set()
    steps_in_order = Pairing(steps, repairs, ids).ordered()
    if not repairs and [id(step.message) for step in steps_in_order] == [*map(id, original[start:])]:
        return Traced(original, [], range(len(original)))
    repairs.sort(key=lambda repair: -1 if repair.index is None else repair.index)
    messages = [*original[:start], *(step.message for step in steps_in_order)]
    return Traced(messages, repairs, [*range(start), *(step.origin for step in steps_in_order)])


def place(index: int) -> str:
    """Return the place of a message in words."""
    return f"message {index + 1}"


def quote_name(name: str | None) -> str:
    """Return an id or a name for a sentence, shortened if it is long."""
    if not name:
        return '""'
    return name if len(name) <= _LONGEST_QUOTE else name[:_LONGEST_QUOTE] + "…"


def sound_part(messages: Iterable[Message]) -> tuple[int, set[str]]:
    """Return how many messages from the start need no repair, and the ids of their calls.

    The other messages begin with a whole group. `Pairing` determines whether they need a repair.
    """
    ids: set[str] = set()
    group_ids: set[str] = set()  # the ids of the newest group
    waiting: set[str | None] = set()  # ids whose results are still to come
    start = index = -1
    try:
        for index, message in enumerate(messages):
            content: Any = message.content
            if content.__class__ is not str or not content.isascii():
                content = _sample_text(content)
            if message.role == "tool":
                waiting.remove(message.tool_call_id)
                if message.tool_calls:
                    break
                continue
            if waiting:
                break
            start = index
            if group_ids:
                ids |= group_ids
                group_ids = set()
            if message.role not in _SPEAKERS:
                break
            if message.tool_calls:
                group_ids = _ids(message, ids)
                waiting = set(group_ids)
            elif not content or content.isspace():
                break
        else:
            if not waiting:
                return index + 1, ids
    except (UnicodeEncodeError, RecursionError, TypeError, AttributeError, ValueError, KeyError):
        pass  # KeyError: a result without a call
    return max(start, 0), ids


def _sample_text(content: Any) -> str:
    """Some text of a content, "" if it is blank. ValueError: it may need a repair."""
    if content.__class__ is str:
        content.encode()
        return str(content)
    if not content:
        return ""
    if content.__class__ is not list or not all(map(is_plain_part, content)):
        raise ValueError
    return "" if all(map(is_blank, content)) else "parts"


def _ids(message: Message, taken: set[str]) -> set[str]:
    """The ids of a message's calls. ValueError: they may need a repair."""
    if message.role != "assistant":
        raise ValueError
    ids: set[str] = set()
    for call in message.tool_calls:
        if not call.id or call.id in taken or call.id in ids or not is_clean_call(call):
            raise ValueError
        ids.add(call.id)
    return ids


def is_plain_part(part: Any) -> bool:
    """Whether a part can be encoded and is neither a call nor a result."""
    return lifted_as(part) is None and is_clean(part)


def lifted_as(part: Any) -> Literal["call", "result"] | None:
    """Return "call" or "result" if a part of a content is one in a provider's form. Return None for any other
    part.
    """
    if part.__class__ is not dict:
        return None
    kind = part.get("type")
    if kind is None:
        if any(part.get(key) is not None for key in _GEMINI_CALL):
            return "call"
        return "result" if any(part.get(key) is not None for key in _GEMINI_RESULT) else None
    return _LIFTED.get(kind) if kind.__class__ is str else None


class Step(NamedTuple):
    """A message, and the index of the original message that it comes from."""

    origin: int
    message: Message


def steps_of(index: int, original: Message, repairs: list[Repair]) -> list[Step]:
    """Return the repaired message. If calls or results stood in the wrong place, return several messages."""
    message = _encodable(index, original, repairs)
    if message.role not in ("system", "user", "assistant", "tool"):
        text = f"The role {message.role} of {place(index)} is unknown; it is sent as a user message."
        repairs.append(Repair("role-unknown", text, index))
        message = msgspec.structs.replace(message, role="user")
    content = message.content
    messages = _lifted(index, message, content, repairs) if isinstance(content, list) else [message]
    steps: list[Step] = []
    for lifted_message in messages:
        if lifted_message.tool_calls and lifted_message.role != "assistant":
            text = (
                f"Tool calls in {place(index)}, whose role is {lifted_message.role}, "
                "are sent in an assistant message."
            )
            repairs.append(Repair("call-misplaced", text, index, lifted_message.tool_calls[0].id))
            steps.append(Step(index, msgspec.structs.replace(lifted_message, tool_calls=())))
            lifted_message = Message("assistant", None, lifted_message.tool_calls)
        steps.append(Step(index, lifted_message))
    return steps


def _encodable(index: int, message: Message, repairs: list[Repair]) -> Message:
    """The message with text that UTF-8 can encode and JSON that is not too deep."""
    changes: dict[str, Any] = {}
    content: Any = message.content
    if not (content is None or content is msgspec.UNSET or isinstance(content, str | list)):
        changes["content"] = clean([content] if isinstance(content, dict) else str(content))
    elif content and not is_clean(content, -1):
        changes["content"] = clean(content, -1)
    for field in ("tool_call_id", "name"):
        value: str | None = getattr(message, field)
        if value is not None and not is_clean(value):
            changes[field] = clean(value)
    calls = message.tool_calls
    if calls and not all(map(is_clean_call, calls)):
        changes["tool_calls"] = tuple(
            ToolCall(clean(call.id), clean(call.name), clean(call.arguments)) for call in calls
        )
    if not changes:
        return message
    text = (
        f"What cannot be sent as JSON in {place(index)} is replaced: half a surrogate pair by U+FFFD, "
        f"values deeper than {MOST_DEPTH} levels by null, anything else by its text."
    )
    repairs.append(Repair("not-json", text, index))
    return msgspec.structs.replace(message, **changes)


def _lifted(index: int, message: Message, content: list[Any], repairs: list[Repair]) -> list[Message]:
    """The message without calls and results in its content; the results come before it."""
    kinds = [lifted_as(part) for part in content]
    if not any(kinds):
        return [message]
    if "result" in kinds and message.role not in ("user", "tool"):
        text = f"Results inside {place(index)}, whose role is {message.role}, are sent separately."
        repairs.append(Repair("block-lifted", text, index))
    messages: list[Message] = []
    calls = list(message.tool_calls)
    remaining_parts: list[Any] = []
    for original, kind in zip(content, kinds, strict=True):
        part = gemini_form(original) if kind and "type" not in original else original
        if kind == "result":
            messages.append(_lifted_result(part))
        elif kind == "call":
            calls.append(_lifted_call(part))
            remaining_parts.append(call_mark(part, calls[-1].id))
        else:
            remaining_parts.append(part)
    drop_last_marks(remaining_parts)
    if remaining_parts or calls or message.role == "tool":
        messages.append(
            msgspec.structs.replace(message, content=remaining_parts or None, tool_calls=tuple(calls))
        )
    return messages


def call_mark(part: dict[str, Any], call_id: str) -> dict[str, Any]:
    """Return the mark of a call's place among the parts, with the signature or the caller that the part
    had.
    """
    mark: dict[str, Any] = {"type": "tool_call", "id": call_id}
    signature, caller = signature_of(part), part.get("caller")
    if signature is not None:
        mark["thoughtSignature"] = signature
    return mark | {"caller": caller} if isinstance(caller, dict) else mark


def drop_last_marks(content: list[Any]) -> None:
    """Drop the marks at the end that carry nothing but an id, because calls without a mark come last
    anyway.
    """
    while content and isinstance(content[-1], dict) and content[-1].get("type") == "tool_call":
        if len(content[-1]) > len(("type", "id")):
            break
        del content[-1]


def _lifted_call(block: dict[str, Any]) -> ToolCall:
    if isinstance(block.get("functionCall"), dict):
        function = block["functionCall"]
        call_id, name, arguments = function.get("id"), function.get("name"), function.get("args", {})
    else:
        is_item = block.get("type") == "function_call"
        call_id, name = block.get("call_id" if is_item else "id"), block.get("name")
        arguments = block.get("arguments" if is_item else "input", {})
    return ToolCall(
        call_id if isinstance(call_id, str) else "", name if isinstance(name, str) else "", arguments
    )


def _lifted_result(block: dict[str, Any]) -> Message:
    name, is_failed = None, block.get("is_error") is True
    if isinstance(block.get("functionResponse"), dict):
        function = block["functionResponse"]
        call_id, name, content = function.get("id"), function.get("name"), function.get("response")
        if isinstance(content, dict):
            is_failed = "error" in content
            content = next((content[key] for key in ("output", "error") if key in content), content)
        content = None if content is None else json_text(content)
    elif block.get("type") == "function_call_output":
        call_id, content = block.get("call_id"), block.get("output")
    else:
        call_id, content = block.get("tool_use_id"), block.get("content")
    if not isinstance(content, str | list):
        content = None if content is None else [content]
    return Message(
        "tool",
        content,
        tool_call_id=call_id if isinstance(call_id, str) else None,
        name=name if isinstance(name, str) else None,
        meta={"is_error": True} if is_failed else msgspec.UNSET,
    )


class _Call(NamedTuple):
    step: int
    number: int  # among the calls of its message


class Pairing:
    """Pairs results with calls by the rules of this module.

    `earlier_ids` are the ids of the calls before these steps.
    """

    def __init__(self, steps: list[Step], repairs: list[Repair], earlier_ids: set[str]) -> None:
        self._steps = steps
        self._repairs = repairs
        self._calls: list[_Call] = []
        self._answers: dict[_Call, list[int]] = {}  # steps of the results; the first counts
        self._orphans: list[int] = []
        by_id: dict[str, list[_Call]] = {}
        results: dict[str, list[int]] = {}
        unnamed: list[int] = []
        self._speakers: list[int] = []  # for each step, the last one that is not a result
        for at, (_, message) in enumerate(steps):
            self._speakers.append(self._speakers[-1] if message.role == "tool" and at else at)
            for number, call in enumerate(message.tool_calls):
                self._calls.append(_Call(at, number))
                by_id.setdefault(call.id, []).append(_Call(at, number))
            if message.role == "tool":
                if message.tool_call_id:
                    results.setdefault(message.tool_call_id, []).append(at)
                else:
                    unnamed.append(at)
        for name, answers in results.items():
            self._match(by_id.get(name, []), answers)
        self._ids = self._named(set(earlier_ids), earlier_ids | by_id.keys())
        self._match_unnamed(unnamed)

    def ordered(self) -> list[Step]:
        """Return the messages in order, with each call followed by its result."""
        for at in self._orphans:
            self._log_orphan(at)
        orphans = frozenset(self._orphans)
        steps: list[Step] = []
        for at, step in enumerate(self._steps):
            message = step.message
            if message.tool_calls:
                steps += self._group(at)
            elif message.role == "tool":
                if at in orphans and not _is_silent(message):
                    steps.append(Step(step.origin, late_result(message)))
            elif _is_silent(message):
                text = f"The {message.role} {place(step.origin)} is empty; it is left out."
                self._repairs.append(Repair("message-empty", text, step.origin))
            else:
                steps.append(step)
        return steps

    # ------------------------------------------------------------ matching

    def _match(self, calls: list[_Call], results: list[int]) -> None:
        """Assign the results of one id to its calls: results answer the calls before them."""
        if not calls:
            self._orphans += results
            return
        waiting: list[_Call] = []
        start = 0
        borders = [*(call.step for call in calls[1:]), len(self._steps)]
        for call, border in zip(calls, borders, strict=True):
            waiting.append(call)
            end = bisect_left(results, border) if border > call.step else start
            count = min(end - start, len(waiting))
            if not count:
                continue
            newest = waiting[-count:]
            del waiting[-count:]
            for number, at in enumerate(results[start:end]):
                self._answers.setdefault(newest[min(number, count - 1)], []).append(at)
            start = end

    def _match_unnamed(self, unnamed: list[int]) -> None:
        """Assign results without an id to calls without a result."""
        unanswered = iter([call for call in self._calls if call not in self._answers] if unnamed else ())
        upcoming = next(unanswered, None)
        waiting: list[_Call] = []
        for at in unnamed:
            while upcoming is not None and upcoming.step < at:
                waiting.append(upcoming)
                upcoming = next(unanswered, None)
            if not waiting:
                self._orphans.append(at)
                continue
            origin, message = self._steps[at]
            batch_start = len(waiting) - 1
            while batch_start and waiting[batch_start - 1].step == waiting[-1].step:
                batch_start -= 1
            named = (self._call(call).name == message.name for call in waiting[batch_start:])
            call = waiting.pop(
                batch_start + next((number for number, is_same_name in enumerate(named) if is_same_name), 0)
            )
            self._answers[call] = [at]
            name = self._ids[call]
            text = f"The result in {place(origin)} names no call; it is sent for the call {quote_name(name)}."
            self._repairs.append(Repair("result-unnamed", text, origin, name))

    def _named(self, sent_ids: set[str], taken: set[str]) -> dict[_Call, str]:
        """The id that each call is sent with: not in `sent_ids`; a new one is not in `taken` either."""
        numbers: dict[str, int] = {}
        ids: dict[_Call, str] = {}
        for key in self._calls:
            call, origin = self._call(key), self._steps[key.step].origin
            name = call.id
            if not name or name in sent_ids:
                stem = name or UNNAMED
                number = numbers.get(stem, 1 if name else 0) + 1
                while f"{stem}-{number}" in taken:
                    number += 1
                numbers[stem] = number
                name = f"{stem}-{number}"
                text = f"An earlier call also has the id {quote_name(call.id)}; the one in {place(origin)}"
                if not call.id:
                    text = f"The call of {quote_name(call.name)} in {place(origin)} has no id; it"
                self._repairs.append(
                    Repair(
                        "call-renamed",
                        f"{text} is sent as {quote_name(name)}.",
                        origin,
                        tool_call_id=name,
                        given=call.id,
                        sent=name,
                    )
                )
            sent_ids.add(name)
            ids[key] = name
        return ids

    # ------------------------------------------------------------ in order

    def _group(self, at: int) -> list[Step]:
        """A message with calls and a result for each: in the order of arrival, missing ones last."""
        origin, message = self._steps[at]
        names = [self._ids[_Call(at, number)] for number in range(len(message.tool_calls))]
        if names != [call.id for call in message.tool_calls]:
            pairs = zip(names, message.tool_calls, strict=True)
            renamed = tuple(ToolCall(name, call.name, call.arguments) for name, call in pairs)
            message = msgspec.structs.replace(message, tool_calls=renamed)
        results: list[tuple[int, str]] = []
        missing: list[Step] = []
        for number, call in enumerate(message.tool_calls):
            answers = self._answers.get(_Call(at, number))
            if answers:
                results.append((answers[0], call.id))
                self._log_repeated(answers, call.id)
            else:
                missing.append(self._missing(origin, call))
        answered = [
            self._answer(result, name, self._speakers[result] == at) for result, name in sorted(results)
        ]
        return [Step(origin, message), *answered, *missing]

    def _answer(self, at: int, name: str, in_place: bool) -> Step:
        origin, message = self._steps[at]
        if not in_place:
            text = f"The result of the call {quote_name(name)} stood elsewhere; it now follows its call."
            self._repairs.append(Repair("result-moved", text, origin, name))
        if message.tool_call_id == name:
            return Step(origin, message)
        return Step(origin, msgspec.structs.replace(message, tool_call_id=name))

    def _missing(self, origin: int, call: ToolCall) -> Step:
        text = f"The call {quote_name(call.id)} of {quote_name(call.name)} has no result; a text says so."
        self._repairs.append(Repair("result-missing", text, origin, call.id))
        return Step(origin, missing_result(call))

    def _call(self, key: _Call) -> ToolCall:
        return self._steps[key.step].message.tool_calls[key.number]

    # ------------------------------------------------------------ left out

    def _log_orphan(self, at: int) -> None:
        origin, message = self._steps[at]
        name = message.tool_call_id
        treatment = (
            "left out, since it is empty" if _is_silent(message) else "sent as a marked text of the user"
        )
        text = (
            f"The result in {place(origin)} names no call, and no earlier call lacks one; it is {treatment}."
        )
        if name:
            text = (
                f"The result in {place(origin)} answers an unknown call {quote_name(name)}; "
                f"it is {treatment}."
            )
        self._repairs.append(Repair("result-orphan", text, origin, name or None))

    def _log_repeated(self, answers: list[int], name: str) -> None:
        for at in answers[1:]:
            origin = self._steps[at].origin
            text = (
                f"The call {quote_name(name)} has several results; only the first is sent, "
                f"the one in {place(origin)} is left out."
            )
            self._repairs.append(Repair("result-repeated", text, origin, name))


def _is_silent(message: Message) -> bool:
    content: Any = content_of(message)
    return is_blank(content) or (isinstance(content, list) and all(map(is_blank, content)))


def is_clean_call(call: ToolCall) -> bool:
    """Whether a call can be sent as JSON unchanged."""
    if not (call.id.isascii() and call.name.isascii()):
        return is_clean(call.id) and is_clean(call.name) and is_clean(call.arguments)
    try:
        encoded = _encode(call.arguments)
    except (UnicodeEncodeError, RecursionError, TypeError):
        return False
    levels = encoded.count(b"[") + encoded.count(b"{")
    return levels <= MOST_DEPTH or is_clean(call.arguments)


def is_clean(value: Any, depth: int = 0) -> bool:
    """Whether a value can be sent as JSON unchanged. `depth` is the number of levels of JSON around it."""
    kind = value.__class__
    if kind is str:
        return bool(value.isascii()) or is_whole(value)
    if value is None or kind is int or kind is float or kind is bool:
        return True
    if depth >= MOST_DEPTH:
        return False
    if kind is not dict:
        return kind is list and all(is_clean(item, depth + 1) for item in value)
    for key, item in value.items():
        if key.__class__ is not str or not (key.isascii() or is_whole(key)):
            return False
        if not (item.__class__ is str and item.isascii()) and not is_clean(item, depth + 1):
            return False
    return True


def clean(value: Any, depth: int = 0) -> Any:
    """Make a value valid JSON. Values that are nested too deeply become null, and values that are not JSON
    become their text.
    """
    if isinstance(value, str):
        return without_halves(value)
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, dict | list | tuple) and depth >= MOST_DEPTH:
        return None
    if isinstance(value, dict):
        return {clean(str(key)): clean(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item, depth + 1) for item in value]
    return clean(str(value))
