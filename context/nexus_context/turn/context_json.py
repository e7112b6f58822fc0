"""Makes the record that the ledger stores of a turn's context (`context_json`, seed 002): enough to say later
what the model read.

1. Texts are not repeated: files are named with the beginning of their SHA-256, so that a later reader can
   tell whether a file is still the one that the model was sent.
2. `system` describes the system prompt, `user` and `memory` the user's message. The agent's permissions are
   stored in another column of the ledger.
3. The record is stored once a turn, since the system prompt is not a message of the turn. `message_contexts`
   says which message has which part.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from nexus_context.conversation.message import Message
from nexus_context.folder.prompt.blocks import OWN_TEXTS
from nexus_context.folder.prompt.memo import TextMemo, whole
from nexus_context.folder.snapshot import Snapshot
from nexus_context.turn.event_facts import hook_count
from nexus_context.turn.request import AssembledContext, Request

HASH_LENGTH = 16
"""Hexadecimal digits of a file's hash."""

_hashes: TextMemo[str] = TextMemo()


def context_json(
    snapshot: Snapshot,
    context: AssembledContext,
    request: Request,
    *,
    now: datetime,
    attachments: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Make the record of a context. `attachments` are the turn's instruction files, in the form of the
    metadata.
    """
    metadata = context.metadata
    record = {
        "revision": snapshot.revision,
        "model": context.model,
        "prefixHash": metadata["prefixHash"],
        "tokens": metadata["tokens"],
        "truncated": metadata["truncated"],
        "tools": list(context.prefix.tool_names),
        "parameters": {name: parameter.value for name, parameter in context.parameters.items()},
        "system": _system(snapshot, context),
    }
    if request.message is not None or request.event is not None:
        record["user"] = _user(request, now, attachments)
    memory = metadata.get("memory")
    return record | ({} if memory is None else {"memory": memory})


def message_contexts(messages: Sequence[Message], record: Any) -> list[dict[str, Any] | None]:
    """Return, for each message of a turn, the part of the turn's record that belongs to it, or None.

    Only the user's message has such a part: the last user message before the assistant's first. `messages`
    must begin with the first message of the turn.
    """
    contexts: list[dict[str, Any] | None] = [None] * len(messages)
    record = record if isinstance(record, Mapping) else {}
    part = dict(user) if isinstance(user := record.get("user"), Mapping) else {}
    memory = record.get("memory")
    part |= {} if memory is None else {"memory": memory}
    roles = [message.role for message in messages]
    request = roles[: roles.index("assistant")] if "assistant" in roles else roles
    if part and "user" in request:
        contexts[len(request) - 1 - request[::-1].index("user")] = part
    return contexts


def file_hashes(snapshot: Snapshot, context: AssembledContext) -> list[dict[str, str]]:
    """Return `path` and `hash` of each file in the system prompt, in the order of the prompt."""
    paths = dict.fromkeys(fragment.path for fragment in context.prompt.fragments)
    texts = snapshot.layers.texts
    sent_paths = (path for path in paths if path in texts and not path.startswith(OWN_TEXTS))
    return [{"path": path, "hash": _hash(texts[path])} for path in sent_paths]


def _system(snapshot: Snapshot, context: AssembledContext) -> dict[str, Any]:
    record: dict[str, Any] = {"role": snapshot.role, "files": file_hashes(snapshot, context)}
    if snapshot.agent is not None:
        record["agent"] = snapshot.agent
    skills = context.metadata.get("activeSkills")
    return record | ({"skills": skills} if skills else {})


def _user(request: Request, now: datetime, attachments: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    event = {"platform": (request.event or {}).get("platform"), "hookCount": hook_count(request.event)}
    record: dict[str, Any] = {"injectedAt": now.isoformat(timespec="seconds")}
    if request.event is not None:
        record["event"] = {name: value for name, value in event.items() if value is not None}
    return record | ({"attachments": list(attachments)} if attachments else {})


def _hash(text: str) -> str:
    digest = _hashes.of(whole(text), lambda part: sha256(part.encode(errors="replace")).hexdigest())
    return f"sha256:{digest[:HASH_LENGTH]}"
