"""Makes turns for the ledger of conversations of other programs, quickly: their tokens are estimates by
length.

Whoever opens a session counts its messages again with the counter of its model, as for any session that
another counter counted.
"""

import re
from collections.abc import Sequence

import msgspec

from nexus_context.assistants.importing import Answer, Conversation
from nexus_context.assistants.importing.importers import turns_of
from nexus_context.conversation.message import Message, content_of, text_of
from nexus_context.ledger.records import NewTurn, SessionOrigin, as_new_turn
from nexus_context.text.redact import redact_message
from nexus_context.text.visible import visible_line
from nexus_context.tokens import SimpleTokenCounter, count_message

LONGEST_TITLE = 60
"""Code points of the user's words in the name of a session."""

COUNTER = SimpleTokenCounter()
"""Counts what is mirrored: thousands of times as fast as a tokenizer. Its counts are never taken as exact."""

_LOOKED_AT = 20  # messages that are searched for the user's words
_COVER = re.compile(r"\*{4,}")
_WRAPPED = re.compile(r"\s*(?:<|# AGENTS\.md|Caveat:)")  # what programs write in the user's name


def count_messages(messages: Sequence[Message]) -> list[int]:
    """Estimate the tokens of each message by its length."""
    return [
        count_message(COUNTER, content_of(message), message.tool_calls, message.role) for message in messages
    ]


def new_turns(
    conversation: Conversation, rest: Sequence[Message], origin: SessionOrigin, *, is_new: bool
) -> list[NewTurn]:
    """Make turns of the last messages of a conversation.

    `rest` are those messages; the first may lack its beginning. With `is_new`, they begin a session, and the
    first turn says where it comes from.
    """
    start = len(conversation.messages) - len(rest)
    answers = tuple(
        Answer(answer.message - start, answer.outcome)
        for answer in conversation.answers
        if answer.message >= start
    )
    new_conversation = msgspec.structs.replace(conversation, messages=tuple(rest), answers=answers)
    if not is_new:
        new_conversation = msgspec.structs.replace(new_conversation, system=None, tools=())
    turns = []
    for turn in turns_of(new_conversation, _event(origin) if is_new else None):
        counted_turn = msgspec.structs.replace(turn, counter=COUNTER.name)
        turns.append(as_new_turn(counted_turn, count_messages(turn.messages)))
    return turns


def name_of(conversation: Conversation, origin: SessionOrigin, title: str | None = None) -> str:
    """Make the name of a new session: the program, and its title or what the user said first. Secrets are
    covered.
    """
    messages = (message for message in conversation.messages[:_LOOKED_AT] if message.role == "user")
    texts = (text_of(message) for message in messages if not _is_aside(message))
    words = next((text for text in texts if text.strip() and not _WRAPPED.match(text)), "")
    words = title or words or conversation.name or origin.id
    line = _COVER.sub("***", visible_line(redact_message(" ".join(words[:1_000].split()))))
    if len(line) > LONGEST_TITLE:
        line = line[:LONGEST_TITLE].rstrip() + "…"
    agent = " agent" if origin.parent is not None else ""
    return f"{origin.assistant}{agent}: {line}"


def _event(origin: SessionOrigin) -> dict[str, str]:
    """The event of the first turn: that of an import, so that the file is not imported a second time."""
    return {
        "type": "import",
        "file": origin.path.replace("\\", "/").rpartition("/")[2],
        "id": origin.id,
        "assistant": origin.assistant,
    }


def _is_aside(message: Message) -> bool:
    meta = message.meta
    return isinstance(meta, dict) and (meta.get("isMeta") is True or meta.get("isCompactSummary") is True)
