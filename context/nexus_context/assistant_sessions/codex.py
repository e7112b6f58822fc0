"""Sessions of Codex; the format is that of 0.169.0, and older ones as far as they agree with it.

1. `$CODEX_HOME` or `~/.codex`, then `sessions/<year>/<month>/<day>/rollout-*.jsonl` and
   `archived_sessions/`. A file can have gigabytes: only its ends are read.
2. The first record (`session_meta`) names the folder, and of a sub-agent the thread that started it.
   `turn_context` names the model of a turn.
3. `token_count` has the usage of the last request, that of all, and the size of the window. `input_tokens`
   include what was read from the cache.
"""

import time
from collections.abc import Iterable, Iterator
from functools import partial
from os.path import join
from typing import Any

import msgspec

from nexus_context import files
from nexus_context.assistant_sessions.model import (
    AssistantSession,
    Place,
    SessionSource,
    Usage,
    count,
    read_file,
    text,
)

NAME = "codex"
DEEPEST = 4  # directories below `sessions`
DAY_S = 86_400


class _Payload(msgspec.Struct):
    type: str | None = None
    id: str | None = None
    working_directory: str | None = msgspec.field(name="cwd", default=None)
    timestamp: str | None = None
    cli_version: str | None = None
    parent_thread_id: str | None = None
    source: Any = None
    model: str | None = None
    info: dict[str, Any] | None = None
    role: str | None = None
    content: Any = None
    message: Any = None


class _Record(msgspec.Struct):
    type: str
    timestamp: str | None = None
    payload: _Payload = msgspec.field(default_factory=_Payload)


def sources(place: Place, folder: str | None) -> Iterator[SessionSource]:
    """The sessions of a folder and of those inside it; without one, all."""
    root = root_of(place)
    for name in ("sessions", "archived_sessions"):
        for path in _rollouts(join(root, name), DEEPEST):
            stamp = files.file_stamp(path)
            if stamp is not None:
                yield SessionSource(path, stamp, lambda path=path: read(path, folder))  # type: ignore[misc]


def root_of(place: Place) -> str:
    """The directory of Codex."""
    return place.environ.get("CODEX_HOME") or join(place.home, ".codex")


def watched(place: Place, _: str) -> Iterator[str]:
    """The directories where a rollout may appear today, in any time zone, or that of a later day or month."""
    root = join(root_of(place), "sessions")
    yield join(root, "")
    for day in (-1, 0, 1):
        date = time.gmtime(time.time() + day * DAY_S)
        year, month, number = time.strftime("%Y %m %d", date).split()
        directory = join(root, year, month)
        yield from (join(root, year, ""), join(directory, ""), join(directory, number, ""))


def _rollouts(directory: str, depth: int) -> Iterator[str]:
    for name, kind in files.list_directory(directory) or ():
        path = join(directory, name)
        if kind == "directory":
            if depth:
                yield from _rollouts(path, depth - 1)
        elif name.startswith("rollout-") and name.endswith(".jsonl"):
            yield path


def read(path: str, folder: str | None) -> list[AssistantSession]:
    """The session of a file; none if it works elsewhere."""
    begin = partial(_from_start, path)
    return read_file(path, folder, _Record, begin=begin, complete=_from_end)


def _from_start(path: str, first: Iterable[_Record], changed: str) -> AssistantSession | None:
    session = None
    for record in first:
        payload = record.payload
        if record.type == "session_meta" and session is None:
            session = AssistantSession(
                assistant=NAME,
                id=payload.id or path,
                path=path,
                folder=text(payload.working_directory),
                version=payload.cli_version,
                started=payload.timestamp or record.timestamp,
                changed=changed,
                parent=payload.parent_thread_id or _parent(payload.source),
            )
        prompt = _words(payload) if session is not None and payload.role == "user" else None
        if session is not None and prompt is not None:
            return msgspec.structs.replace(session, prompt=prompt)
    return session


def _from_end(session: AssistantSession, last: Iterable[_Record]) -> AssistantSession:
    changes: dict[str, Any] = {}
    for record in last:
        payload = record.payload
        if record.timestamp:
            changes.setdefault("changed", record.timestamp)
        if payload.type == "token_count" and payload.info and "last" not in changes:
            changes |= {
                "last": usage_of(payload.info.get("last_token_usage")),
                "total": usage_of(payload.info.get("total_token_usage")),
                "window": count(payload.info, "model_context_window") or None,
            }
        if record.type == "turn_context" and payload.model:
            changes.setdefault("model", payload.model)
        if "last" in changes and "model" in changes:
            break
    return msgspec.structs.replace(session, **changes)


def usage_of(values: Any) -> Usage | None:
    """The usage of a request or of all; None if there is none."""
    if not isinstance(values, dict):
        return None
    cached, written = count(values, "cached_input_tokens"), count(values, "cache_write_input_tokens")
    fresh = max(count(values, "input_tokens") - cached - written, 0)
    return Usage(fresh=fresh, cache_read=cached, cache_write=written, output=count(values, "output_tokens"))


def _parent(source: Any) -> str | None:
    """The thread that started a sub-agent, as versions before 0.169.0 have it."""
    for name in ("subagent", "thread_spawn", "parent_thread_id"):
        source = source.get(name) if isinstance(source, dict) else None
    return text(source)


def _words(payload: _Payload) -> str | None:
    """What the user wrote; Codex sends instructions and the environment in messages of the user, too."""
    parts = payload.content if isinstance(payload.content, list) else []
    words = (text(part.get("text")) for part in parts if isinstance(part, dict))
    return next((one for one in words if one and not one.lstrip().startswith(("<", "# AGENTS.md"))), None)
