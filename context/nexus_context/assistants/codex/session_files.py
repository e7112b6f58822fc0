"""Finds and reads sessions of Codex; the format is that of 0.169.0, and older ones as far as they agree with
it.

1. The files are `sessions/<year>/<month>/<day>/rollout-*.jsonl` and those in `archived_sessions/`, in
   `$CODEX_HOME` or `~/.codex`; they may be compressed (`….jsonl.zst`). A file can have gigabytes, so only its
   ends are read.
2. The first record (`session_meta`) names the folder, and for a sub-agent the thread that started it.
   `turn_context` names the model of a turn.
3. `token_count` has the usage of the last request, the usage of all requests, and the size of the window.
   `input_tokens` include what was read from the cache.
"""

import re
import time
from collections.abc import Iterable, Iterator
from functools import partial
from os.path import join
from typing import Any

import msgspec

from nexus_context.assistants.codex.forks import ForkBase, find_rollout, list_rollouts, read_base, words_of
from nexus_context.assistants.codex.records import CodexRecord
from nexus_context.assistants.reading.record_values import count, field, text, text_in
from nexus_context.assistants.sessions.session_types import (
    AssistantSession,
    Folders,
    Place,
    SessionSource,
    Usage,
    read_file,
    subtract_usage,
)
from nexus_context.disk import files

NAME = "codex"
DAY_S = 86_400
_MARK = re.compile(b"token_count|turn_context")  # in the records of which the end of a session consists


def sources(place: Place, folder: Folders) -> Iterator[SessionSource]:
    """Yield all rollouts. Reading one gives a session only if it works in `folder`; None stands for any
    folder.
    """
    root = root_of(place)
    for name in ("sessions", "archived_sessions"):
        for path in list_rollouts(join(root, name)):
            stamp = files.file_stamp(path)
            if stamp is not None:
                yield SessionSource(path, stamp, lambda path=path: read(path, folder))  # type: ignore[misc]


def root_of(place: Place) -> str:
    """Return the directory in which Codex keeps its files."""
    return place.environ.get("CODEX_HOME") or join(place.home, ".codex")


def watched(place: Place, _: str) -> Iterator[str]:
    """Yield the directories in which a rollout may appear today in any time zone, and the directories above
    them.
    """
    root = join(root_of(place), "sessions")
    yield join(root, "")
    for day in (-1, 0, 1):
        date = time.gmtime(time.time() + day * DAY_S)
        year, month, number = time.strftime("%Y %m %d", date).split()
        directory = join(root, year, month)
        yield from (join(root, year, ""), join(directory, ""), join(directory, number, ""))


def read(path: str, folder: Folders) -> list[AssistantSession]:
    """Read the session of a rollout. Empty if it works in another folder."""
    begin = partial(_from_start, path)
    sessions = read_file(path, folder, CodexRecord, begin=begin, complete=_from_end, mark=_MARK)
    return [session if session.fork_of is None else _own_part(session) for session in sessions]


def _own_part(session: AssistantSession) -> AssistantSession:
    """A fork without what it has of its origin."""
    base = base_of(session)
    total, inherited = session.total, usage_of(base.sums)
    if total is not None and inherited is not None and total.sent >= inherited.sent:
        total = subtract_usage(total, inherited)
    return msgspec.structs.replace(session, prompt=base.prompt or session.prompt, total=total)


def base_of(session: AssistantSession) -> ForkBase:
    """Read what a session has inherited from its origin, nothing if it is not a fork. Raise OSError if a file
    cannot be read.
    """
    if session.fork_of is None:
        return ForkBase()
    return read_base(session.path, find_rollout(session.path, session.fork_of))


def _from_start(path: str, first_records: Iterable[CodexRecord], changed: str) -> AssistantSession | None:
    session = None
    for record in first_records:
        payload = record.payload
        if record.kind == "session_meta" and session is None:
            session = AssistantSession(
                assistant=NAME,
                id=text_in(payload, "id") or path,
                path=path,
                folder=text(record.folder),
                version=text_in(payload, "cli_version"),
                started=text_in(payload, "timestamp") or text_in(record.value, "timestamp"),
                changed=changed,
                parent=record.parent_thread,
                fork_of=record.fork_of,
            )
        is_prompt = session is not None and text_in(payload, "role") == "user"
        prompt = words_of(payload) if is_prompt else None
        if session is not None and prompt is not None:
            return msgspec.structs.replace(session, prompt=prompt)
    return session


def _from_end(session: AssistantSession, last_records: Iterable[CodexRecord]) -> AssistantSession:
    changes: dict[str, Any] = {}
    for record in last_records:
        if "changed" not in changes and (time := text_in(record.value, "timestamp")):
            changes["changed"] = time
        if "last" not in changes and record.payload_kind == "token_count":
            info = field(record.payload, "info")
            if isinstance(info, dict) and info:
                changes |= {
                    "last": usage_of(info.get("last_token_usage")),
                    "total": usage_of(info.get("total_token_usage")),
                    "window": count(info, "model_context_window") or None,
                }
        if "model" not in changes and record.kind == "turn_context":
            model = text_in(record.payload, "model")
            changes |= {} if model is None else {"model": model}
        if "last" in changes and "model" in changes:
            break
    return msgspec.structs.replace(session, **changes)


def usage_of(values: Any) -> Usage | None:
    """Read the token counts of one request or of a session. Return None if there are none."""
    if not isinstance(values, dict):
        return None
    cached, written = count(values, "cached_input_tokens"), count(values, "cache_write_input_tokens")
    fresh = max(count(values, "input_tokens") - cached - written, 0)
    return Usage(fresh=fresh, cache_read=cached, cache_write=written, output=count(values, "output_tokens"))
