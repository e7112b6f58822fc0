"""Prepares a history for all formats: repairs it, and puts compactions and calls in their places.

1. A compaction that the provider's own server made comes first. Messages before it are left out, because it
   replaces them. System messages at the start stay.
2. A compaction of another provider becomes a user message with its text, or with a text that says that it has
   none. A compaction that failed is left out.
3. The history is repaired after that, so that a pair that a compaction divided is reported like any broken
   pair.
4. Calls stand where their marks are (`parts.CallPart`). A mark names its call by id. If a repair changed the
   id, calls are assigned to marks by their order.
5. If the format has no field that takes the name of a speaker, the name stands before the text.
6. Repairs and origins refer to messages by their indexes in the original list.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from nexus_context.conversation import parts
from nexus_context.conversation.body_shape import takes_name, with_speaker
from nexus_context.conversation.message import Message, ToolCall, text_part
from nexus_context.conversation.repair import Repair, RepairLog, Step, Traced, lifted_as, place, traced
from nexus_context.conversation.summary import compaction_text

_SPEAKERS = ("user", "assistant")
_NAME_REPAIRS = {
    "name-as-text": "Names of speakers stand before their texts: the provider has no field that takes them.",
    "name-left-out": "Names of speakers are left out of messages without a text.",
}


def prepared(messages: Iterable[Message], provider: parts.Provider | None) -> Traced:
    """Return the messages as the provider's format renders them, the repairs, and the index of the original
    message of each.

    `provider` is None for OpenAI's chat format, which has no place for a compaction.
    """
    sound = _prepared(messages, provider)
    named = [at for at, message in enumerate(sound.messages) if message.name and message.role != "tool"]
    if not named:
        return sound
    form = "openai" if provider is None else ""
    listed, kinds = list(sound.messages), dict[str, int]()
    for at in named:
        message = sound.messages[at]
        if not takes_name(form, message.name or ""):
            listed[at] = with_speaker(message)
            kind = "name-left-out" if listed[at] is message else "name-as-text"
            kinds.setdefault(kind, sound.origins[at])
    repairs = [Repair(kind, _NAME_REPAIRS[kind], origin) for kind, origin in kinds.items()]
    return Traced(listed, [*sound.repairs, *repairs], sound.origins)


def _prepared(messages: Iterable[Message], provider: parts.Provider | None) -> Traced:
    original = messages if isinstance(messages, list) else list(messages)
    if not any(map(_has_compaction, original)):
        return traced(original)
    repairs: list[Repair] = []
    steps = _with_compactions(original, provider, repairs)
    indexes = [step.origin for step in steps]
    sound = traced([step.message for step in steps])
    repairs += (
        repair if repair.index is None else msgspec.structs.replace(repair, index=indexes[repair.index])
        for repair in sound.repairs
    )
    return Traced(sound.messages, repairs, [indexes[origin] for origin in sound.origins])


def call_places(
    content: Sequence[Any], calls: Sequence[ToolCall]
) -> tuple[list[ToolCall | None], list[ToolCall]]:
    """Return the call at each mark of a content, or None at a mark without a call. Also return the calls
    without a mark.
    """
    marks = [part["id"] for part in content if is_mark(part)]
    if not marks:
        return [], list(calls)
    by_id = {call.id: call for call in calls}
    marked = [by_id.pop(mark, None) for mark in marks]
    unmarked_calls = [call for call in calls if call.id in by_id]
    return [call or (unmarked_calls.pop(0) if unmarked_calls else None) for call in marked], unmarked_calls


def is_mark(part: Any) -> bool:
    """Whether a part marks the place of a call."""
    return isinstance(part, dict) and part.get("type") == "tool_call" and isinstance(part.get("id"), str)


def leave_out_thinking(log: RepairLog, index: int | None = None) -> None:
    """Report that reasoning is left out, because another provider signed it or its provider cannot check it
    here.
    """
    text = "Reasoning is left out: only the provider that signed it accepts it."
    log.add("thinking-left-out", text, index)


# ---------------------------------------------------------------- compactions


def _has_compaction(message: Message) -> bool:
    content = message.content
    return isinstance(content, list) and any(map(_is_compaction, content))


def _is_system_prompt(message: Message) -> bool:
    """Whether a message at the start stays before a compaction: it holds no call or compaction."""
    content = message.content
    is_plain = not isinstance(content, list) or not any(
        lifted_as(part) or _is_compaction(part) for part in content
    )
    return message.role == "system" and not message.tool_calls and is_plain


def _is_compaction(part: Any) -> bool:
    return part.__class__ is dict and part.get("type") == "compaction"


def _as_text(compaction: parts.CompactionPart, index: int) -> Repair:
    """The repair of a compaction by another provider."""
    name = parts.PROVIDER_NAMES[compaction.provider]
    text = f"A compaction of {name} in {place(index)} is sent as text."
    if not compaction.text:
        text = f"Only {name} can read its compaction in {place(index)}; a text says so."
    return Repair("compaction-as-text", text, index)


def leave_out_fields(kind: parts.AnyPart, log: RepairLog, index: int) -> None:
    """Report the fields of a part that are left out because only Anthropic takes them."""
    match kind:
        case parts.TextPart(_, [_, *_]):
            text = "The citations of a text are left out: only Anthropic takes them."
            log.add("citations-left-out", text, index)
        case parts.DocumentPart(fields={**fields}) if fields:
            names = " and ".join(fields)
            text = f"A document is sent without its {names}: only Anthropic takes that."
            log.add("document-fields-left-out", text, index)
        case parts.CallPart(_, {"type": str(caller)}) if caller != "direct":
            text = "What called a tool is left out: only Anthropic is told that."
            log.add("caller-left-out", text, index)


def _with_compactions(
    messages: Sequence[Message], provider: parts.Provider | None, repairs: list[Repair]
) -> list[Step]:
    """Keep the messages from the newest own compaction on; other providers' compactions become texts."""
    steps: list[Step] = []
    lead: int | None = None  # number of steps of the system messages at the start
    for index, message in enumerate(messages):
        if lead is None and not _is_system_prompt(message):
            lead = len(steps)
        if not _has_compaction(message):
            steps.append(Step(index, message))
            continue
        content: list[Any] = message.content  # type: ignore[assignment]
        remaining_parts: list[Any] = []
        own_compaction: Any = None  # the provider's own compaction, if the message has one
        for part in content:
            kind = parts.read_part(part) if _is_compaction(part) else None
            if not isinstance(kind, parts.CompactionPart):
                remaining_parts.append(part)
            elif kind.part is None:
                text = f"A compaction in {place(index)} that holds nothing is left out."
                repairs.append(Repair("compaction-left-out", text, index))
            elif kind.provider == provider and message.role in _SPEAKERS:
                if steps[lead:] or remaining_parts:
                    text = f"The compaction in {place(index)} comes first; what it stands for is left out."
                    repairs.append(Repair("compaction-first", text, index))
                steps = steps[:lead]
                remaining_parts, own_compaction = [part], part
            else:
                if own_compaction is not None:  # nothing stands before the provider's own
                    remaining_parts.append(text_part(compaction_text(kind)))
                else:
                    steps.append(Step(index, Message("user", compaction_text(kind))))
                repairs.append(_as_text(kind, index))
        alone = (
            remaining_parts[:1]
            if own_compaction is not None and any(lifted_as(part) == "result" for part in remaining_parts)
            else []
        )
        # results are lifted before the rest of their message, but never before the compaction
        steps += [Step(index, Message(message.role, [part])) for part in alone]
        remaining_parts = remaining_parts[len(alone) :]
        if remaining_parts or message.tool_calls or message.role == "tool":
            steps.append(Step(index, msgspec.structs.replace(message, content=remaining_parts or None)))
    return steps
